"""Trace events as Chrome, Node.js and many other programs write them: JSON, times in microseconds.

    {"traceEvents":[
    {"args":{"name":"Renderer"},"cat":"__metadata","name":"process_name","ph":"M","pid":7,"tid":0,"ts":0},
    {"cat":"toplevel","dur":79,"name":"RunTask","ph":"X","pid":7,"tid":7,"ts":5538781198},
    {"cat":"node","name":"fs.sync.stat","ph":"B","pid":7,"tid":7,"ts":5503053493}, ... "ph":"E" ...
    {"cat":"node","id":"0x2","name":"open","ph":"b","pid":7,"tid":7,"ts":5503056265}, ... "ph":"e" ...

Complete events (X) are operations; so are B and E, which nest in each thread, and b and e (S and F in old traces), which have
category, id and name in common: by time, not by their order in the file (see `pairs`). Kind service, the op is the name, the
process its name from the metadata, else its number; the tag is the name of the thread. Metadata may stand anywhere, so they are
looked for first. Other phases are no operations: counted as skipped. The array need not be closed: Chrome does not always come
to that.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from ingest.core.errors import InputError
from ingest.core.events import Events
from ingest.core.intervals import Int
from ingest.core.series import Series
from ingest.read.account import Account
from ingest.read.chrome.objects import BEGINNING, NO_ARRAY, NO_JSON, Objects, objects
from ingest.read.chrome.pairs import MOST_HELD, Marks, is_out_of_order, paired
from ingest.read.context import Context
from ingest.read.delimited.arrow_lines import arrow, reject
from ingest.read.event_labels import TOO_MANY, SeriesTable
from ingest.read.events import DAY_NS
from ingest.read.text import head, whole_blocks

US = 1000
LATEST_US = 4 * 10**15
EXACT_US = 10**12  # below it a float of microseconds is exact to the ns
INEXACT = -(1 << 62)
EPOCH_US = 20 * 365 * 86_400 * 10**6  # no clock that starts with the machine reads so much
NAMES = re.compile(rb'"(?:process|thread)_name"')
STAMP = re.compile(rb'"ts"\s*:\s*"?(\d+)')
NEAR = 1 << 12
NO_OPERATION = "trace events that are no operations (metadata, instants, counters, flows)"
NO_PHASE = "no trace event: it has no phase (ph)"
NO_TIME = "ts or dur is missing, or no time"
BACKWARDS = "it ended before it began"
TOO_LONG = "a duration of more than a day"
NO_BEGINNING = "an end whose beginning is not in the trace"
NO_END = "a beginning whose end is not in the trace"
FAR_APART = (
    "over a million beginnings and ends, some out of order: those farther apart than that may be paired otherwise than by time"
)
NONE = np.zeros(0, np.int64)


def zero_of(path: Path) -> int | None:
    """Return 0 where stamps are of the epoch, None where they are of the machine's own clock."""
    start = head(path)
    if not start:
        raise InputError("empty file", path)
    if not BEGINNING.match(start) and len(start) < 1 << 16:
        raise InputError(NO_ARRAY, path, 1)
    first = next((int(match[1]) for match in STAMP.finditer(start) if int(match[1])), 0)
    return 0 if EPOCH_US <= first <= LATEST_US else None


def last_ns(path: Path) -> int:
    """Return when the last operation ended in ns of the trace's clock, 0 if there is none; reads all of it."""
    chunks = read(path, Context(account=Account(path=str(path))))
    return max((int(events.end_ns.max()) for events in chunks if len(events)), default=0)


def read(path: Path, context: Context) -> Iterator[Events]:
    """Yield the operations of a trace; what has no end, or cannot be one, is rejected with its line.

    Times are exact to the ns. InputError where there is no array of trace events.
    """
    trace = _Trace(arrow(path), context, names_in(path))
    for part in objects(path, context.account):
        yield trace.events(part)
        if trace.held >= MOST_HELD:
            yield trace.ended(last=False)
    yield trace.ended(last=True)


def names_in(path: Path) -> Mapping[tuple[str, ...], str]:
    """Return the names of processes by (pid) and of threads by (pid, tid) in the metadata."""
    names: dict[tuple[str, ...], str] = {}
    before = b""
    for block in whole_blocks(path, Account()):
        text = before + bytes(block)
        for match in NAMES.finditer(text):
            event = _around(text, match.start())
            if event is not None:
                pid, tid = str(event.get("pid")), str(event.get("tid"))
                key = (pid,) if event["name"] == "process_name" else (pid, tid)
                names[key] = str(event["args"]["name"])
        before = text[-NEAR:]
    return names


def _around(text: bytes, place: int) -> Mapping[str, Any] | None:
    """Return the metadata event around a place in a text, None if there is none."""
    begin = place
    for _ in range(4):
        begin = text.rfind(b"{", max(place - NEAR, 0), begin)
        if begin < 0:
            return None
        try:
            _, length = json.JSONDecoder().raw_decode(text[begin : place + NEAR].decode("latin-1"))
            event = orjson.loads(text[begin : begin + length])
        except (ValueError, RecursionError):
            continue
        names = isinstance(event, dict) and event.get("ph") == "M" and event.get("name") in ("process_name", "thread_name")
        if names and begin + length > place and isinstance(event.get("args"), dict) and "name" in event["args"]:
            return dict(event)
    return None


@dataclass(slots=True)
class _Part:
    """The whole operations of one part, its beginnings and ends, and the faults of its other rows."""

    rows: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    labels: list[tuple[str, str, str]] = field(default_factory=list)
    marks: list[tuple[int, ...]] = field(default_factory=list)  # as `Marks`, with rows for lines
    bad: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    skipped: int = 0


class _Numbers(dict[Any, int]):
    """A number for each value, in the order in which they are met."""

    def __missing__(self, value: Any) -> int:
        self[value] = number = len(self)
        return number

    def keep(self, used: Int) -> Int:
        """Forget all but those in use, and return these by their new numbers."""
        values = list(self)
        kept, fresh = np.unique(used, return_inverse=True)
        self.clear()
        self.update((values[number], place) for place, number in enumerate(kept.tolist()))
        return fresh.reshape(-1)


class _Trace:
    """What is known of one trace so far: its series, names of processes and threads, beginnings and ends that wait."""

    def __init__(self, pa: Any, context: Context, names: Mapping[tuple[str, ...], str]) -> None:
        self.pa = pa
        self.context = context
        self.names = names
        self.series = SeriesTable(self._series)
        self.held = 0
        self._waiting: list[Marks] = []
        self._keys, self._words, self._places = _Numbers(), _Numbers(), _Numbers()
        self._several = self._out_of_order = False

    def _series(self, labels: Mapping[str, str]) -> Series:
        return self.context.series.replaced(op=labels["op"].lower(), kind="service", process=labels["process"], tag=labels["tag"])

    def events(self, objects: Objects) -> Events:
        """Return the complete events among some objects; beginnings and ends wait."""
        part = _Part()
        exact: list[Any] | None = None
        for row, event in enumerate(objects.values):
            phase = event.get("ph") if isinstance(event, dict) else None
            if not isinstance(phase, str) or not phase:
                part.bad[NO_PHASE if isinstance(event, dict) else NO_JSON].append(row)
            elif phase not in "XBEbeSF":
                part.skipped += 1
            else:
                start = _ns(event.get("ts"))
                length = _ns(event.get("dur")) if phase == "X" else 0
                if INEXACT in (start, length):
                    exact = objects.exact() if exact is None else exact
                    start, length = _ns(exact[row].get("ts")), _ns(exact[row].get("dur")) if phase == "X" else 0
                self._take(part, row, event, phase, start, length)
        return self._events(objects, part)

    def _take(self, part: _Part, row: int, event: Mapping[str, Any], phase: str, start: int | None, length: int | None) -> None:
        name, place = str(event.get("name", "")), (str(event.get("pid", "")), str(event.get("tid", "")))
        if start is None or length is None:
            part.bad[NO_TIME].append(row)
        elif phase != "X":
            numbers = self._keys[self._key(event, phase, name)], start, row, self._words[name], self._places[place]
            part.marks.append((*numbers, phase in "EeF", phase in "BE"))
        elif length < 0 or length > DAY_NS:
            part.bad[BACKWARDS if length < 0 else TOO_LONG].append(row)
        else:
            part.rows.append(row)
            part.start.append(start)
            part.end.append(start + length)
            part.labels.append((name, *self._named(place)))

    def _key(self, event: Mapping[str, Any], phase: str, name: str) -> str:
        """Return what beginnings and ends have in common: the thread, or category, id and name; one text takes least memory."""
        if phase in "BE":
            process = str(event.get("pid"))
            return f"thread {len(process)} {process}{event.get('tid')}"
        local = event.get("id2")
        if not isinstance(local, dict):
            words = event.get("cat"), event.get("scope", ""), event.get("id")
        else:
            words = event.get("cat"), event.get("pid") if "local" in local else "", local.get("local", local.get("global"))
        category, scope, known = map(str, words)
        return f"{len(category)} {len(scope)} {len(known)} {category}{scope}{known}{name}"

    def _named(self, place: tuple[str, str]) -> tuple[str, str]:
        """Return what the process and the thread of a place are called."""
        return self.names.get(place[:1], place[0]), self.names.get(place, "")

    def _events(self, objects: Objects, part: _Part) -> Events:
        account = self.context.account
        account.skip(NO_OPERATION, part.skipped)
        names = zip(*part.labels, strict=True) if part.labels else ((), (), ())
        columns = {name: self._texts(values) for name, values in zip(("op", "process", "tag"), names, strict=True)}
        codes = self.series.codes(columns, len(part.rows))
        if part.bad or part.marks or (codes < 0).any():
            lines = objects.lines()
            for reason, bad in part.bad.items():
                reject(account, reason, lines[bad])
            reject(account, TOO_MANY, lines[np.array(part.rows, np.int64)[codes < 0]])
            if part.marks:
                key, at, row, name, place, ends, thread = np.array(part.marks, np.int64).T
                self._waiting.append(Marks(key, at, lines[row], name, place, ends > 0, thread > 0))
                self.held += len(key)
        return self._kept(codes, np.array(part.start, np.int64), np.array(part.end, np.int64), rows_each=1)

    def _texts(self, values: Iterable[str]) -> Any:
        return self.pa.array(values, self.pa.string()).dictionary_encode()

    def ended(self, *, last: bool) -> Events:
        """Return the operations whose beginning and end are known; the others wait on, unless they are too many or the `last`."""
        if not self._waiting:
            return self._kept(NONE, NONE, NONE, rows_each=2)
        account, marks = self.context.account, Marks.joined(self._waiting)
        self._out_of_order |= is_out_of_order(marks)
        self._several |= not last
        if self._several and self._out_of_order:
            account.note(FAR_APART)
        begin, end, left = paired(marks)
        start, length = marks.at_ns[begin], marks.at_ns[end] - marks.at_ns[begin]
        codes = self._codes(marks.name[begin], marks.place[end])
        for reason, bad in ((TOO_LONG, length > DAY_NS), (TOO_MANY, (length <= DAY_NS) & (codes < 0))):
            reject(account, reason, np.sort(marks.line[end[bad]]))
            account.reject(reason, (), more=int(bad.sum()))
        rest = marks.take(left)
        if last or len(rest) > MOST_HELD // 2:
            reject(account, NO_BEGINNING, np.sort(rest.line[rest.ends]))
            reject(account, NO_END, np.sort(rest.line[~rest.ends]))
            rest = rest.take(NONE)
        key, name, place = self._keys.keep(rest.key), self._words.keep(rest.name), self._places.keep(rest.place)
        self._waiting, self.held = [replace(rest, key=key, name=name, place=place)], len(rest)
        return self._kept(np.where(length <= DAY_NS, codes, -1), start, start + length, rows_each=2)

    def _codes(self, name: Int, place: Int) -> Int:
        """Return the series of operations by the numbers of their names and places."""
        named = [self._named(known) for known in self._places]
        texts = (list(self._words), *([words[at] for words in named] for at in (0, 1)))
        columns = {
            label: self.pa.DictionaryArray.from_arrays(
                self.pa.array(numbers.astype(np.int32)), self.pa.array(text, self.pa.string())
            )
            for label, numbers, text in zip(("op", "process", "tag"), (name, place, place), texts, strict=True)
        }
        return self.series.codes(columns, len(name))

    def _kept(self, codes: Int, start: Int, end: Int, *, rows_each: int) -> Events:
        """Return operations without those of no series."""
        good = np.flatnonzero(codes >= 0)
        self.context.account.accept(rows_each * len(good))
        base = (self.context.zero.epoch_ns or 0) + self.context.offset_ns
        return Events(self.series.table, codes[good], end[good] + base, end[good] - start[good])


def _ns(value: Any) -> int | None:
    """Return microseconds as ns, INEXACT where a float may not be exact to the ns, None where it is no time."""
    if isinstance(value, float):
        if abs(value) >= EXACT_US:
            return INEXACT if abs(value) <= LATEST_US else None
        return round(value * US)
    if isinstance(value, str):
        try:
            value = Decimal(value)
        except ArithmeticError:
            return None
    known = (isinstance(value, Decimal) and value.is_finite()) or (isinstance(value, int) and not isinstance(value, bool))
    return round(value * US) if known and abs(value) <= LATEST_US else None
