"""Trace events as Chrome, Node.js and many other programs write them: JSON, times in microseconds.

    {"traceEvents":[
    {"args":{"name":"Renderer"},"cat":"__metadata","name":"process_name","ph":"M","pid":7,"tid":0,"ts":0},
    {"cat":"toplevel","dur":79,"name":"RunTask","ph":"X","pid":7,"tid":7,"ts":5538781198},
    {"cat":"node","name":"fs.sync.stat","ph":"B","pid":7,"tid":7,"ts":5503053493}, ... "ph":"E" ...
    {"cat":"node","id":"0x2","name":"open","ph":"b","pid":7,"tid":7,"ts":5503056265}, ... "ph":"e" ...

Complete events (X) are operations; so are B and E, which nest in each thread, and b and e (S and F in old traces), which have
category, id and name in common. Kind service, the op is the name, the process its name from the metadata, else its number; the
tag is the name of the thread. Metadata may stand anywhere, so they are looked for first. Other phases are no operations:
counted as skipped. The array need not be closed: Chrome does not always come to that.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from ingest.core.dataclass import dataclass
from ingest.core.errors import InputError
from ingest.core.events import Events
from ingest.core.intervals import Int
from ingest.core.series import Series
from ingest.read.account import Account
from ingest.read.chrome.objects import BEGINNING, NO_ARRAY, NO_JSON, Objects, objects
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
MOST_OPEN = 1 << 20
NO_OPERATION = "trace events that are no operations (metadata, instants, counters, flows)"
NO_PHASE = "no trace event: it has no phase (ph)"
NO_TIME = "ts or dur is missing, or no time"
BACKWARDS = "it ended before it began"
TOO_LONG = "a duration of more than a day"
NO_BEGINNING = "an end whose beginning is not in the trace"
NO_END = "a beginning whose end is not in the trace"


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
    trace.finish()


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
class _Begun:
    """A beginning without its end so far: in which line, once that is known."""

    name: str
    start: int
    row: int
    line: int = 0
    ended: bool = False


@dataclass(slots=True)
class _Part:
    """The operations found in one part, and the faults of its other rows."""

    rows: list[int] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    labels: list[tuple[str, str, str]] = field(default_factory=list)
    bad: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    beginnings: Counter[str] = field(default_factory=Counter)
    fresh: list[_Begun] = field(default_factory=list)
    skipped: int = 0


class _Trace:
    """What is known of one trace so far: its series, the names of processes and threads, beginnings that have no end."""

    def __init__(self, pa: Any, context: Context, names: Mapping[tuple[str, ...], str]) -> None:
        self.pa = pa
        self.context = context
        self.names = names
        self.series = SeriesTable(self._series)
        self.open: dict[tuple[Any, ...], list[_Begun]] = {}

    def _series(self, labels: Mapping[str, str]) -> Series:
        return self.context.series.replaced(op=labels["op"].lower(), kind="service", process=labels["process"], tag=labels["tag"])

    def events(self, objects: Objects) -> Events:
        """Return the operations that ended among some objects."""
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
        if start is None or length is None:
            part.bad[NO_TIME].append(row)
        elif phase == "X":
            self._keep(part, row, event, str(event.get("name", "")), (start, start + length), rows=1)
        else:
            name = str(event.get("name", ""))
            key = self._key(event, phase)
            if phase in "BbS":
                begun = _Begun(name, start, row)
                self.open.setdefault(key, []).append(begun)
                part.fresh.append(begun)
                return
            waiting = self.open.get(key, [])
            at = next((at for at in reversed(range(len(waiting))) if phase == "E" or waiting[at].name == name), None)
            if at is None:
                part.bad[NO_BEGINNING].append(row)
                return
            begun = waiting.pop(at)
            begun.ended = True
            if not waiting:
                del self.open[key]
            self._keep(part, row, event, begun.name, (begun.start, start), rows=2)

    def _key(self, event: Mapping[str, Any], phase: str) -> tuple[Any, ...]:
        """Return what beginnings and ends have in common: the thread, or category and id."""
        if phase in "BE":
            return str(event.get("pid")), str(event.get("tid"))
        local = event.get("id2")
        if isinstance(local, dict):
            scope = str(event.get("pid")) if "local" in local else ""
            return str(event.get("cat")), scope, str(local.get("local", local.get("global")))
        return str(event.get("cat")), str(event.get("scope", "")), str(event.get("id"))

    def _keep(self, part: _Part, row: int, event: Mapping[str, Any], name: str, times: tuple[int, int], *, rows: int) -> None:
        """Keep an operation of one row, or of two."""
        start, end = times
        if end < start or end - start > DAY_NS:
            reason = BACKWARDS if end < start else TOO_LONG
            part.bad[reason].append(row)
            part.beginnings[reason] += rows - 1
            return
        pid, tid = str(event.get("pid", "")), str(event.get("tid", ""))
        part.rows.append(row)
        part.counted.append(rows)
        part.start.append(start)
        part.end.append(end)
        part.labels.append((name, self.names.get((pid,), pid), self.names.get((pid, tid), "")))

    def _events(self, objects: Objects, part: _Part) -> Events:
        account, pa = self.context.account, self.pa
        account.skip(NO_OPERATION, part.skipped)
        columns = {
            name: pa.array([label[place] for label in part.labels], pa.string()).dictionary_encode()
            for place, name in enumerate(("op", "process", "tag"))
        }
        codes = self.series.codes(columns, len(part.rows))
        rows, counted = np.array(part.rows, np.int64), np.array(part.counted, np.int64)
        left = [begun for begun in part.fresh if not begun.ended]
        if part.bad or left or (codes < 0).any():
            lines = objects.lines()
            for reason, bad in part.bad.items():
                reject(account, reason, lines[bad])
            reject(account, TOO_MANY, lines[rows[codes < 0]])
            part.beginnings[TOO_MANY] += int((counted - 1)[codes < 0].sum())
            for reason, count in part.beginnings.items():
                account.reject(reason, (), more=count)
            for begun in left:
                begun.line = int(lines[begun.row])
        self._bound()
        good: Int = np.flatnonzero(codes >= 0)
        account.accept(int(counted[good].sum()))
        end, start = np.array(part.end, np.int64)[good], np.array(part.start, np.int64)[good]
        base = (self.context.zero.epoch_ns or 0) + self.context.offset_ns
        return Events(self.series.table, codes[good], end + base, end - start)

    def _bound(self) -> None:
        """Give up all beginnings where there are more than a million of them."""
        if sum(map(len, self.open.values())) > MOST_OPEN:
            self.finish()

    def finish(self) -> None:
        """Count the beginnings that have no end."""
        lines = sorted(begun.line for waiting in self.open.values() for begun in waiting)
        reject(self.context.account, NO_END, np.array(lines, np.int64))
        self.open.clear()


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
