"""Chrome trace events: the objects of a file that may be broken off, and the operations that they record.

The objects of a JSON array, in pieces of bounded size, however they are laid out and wherever the file breaks off.

    {"traceEvents":[            or just         [
    {"ph":"X","name":"a"},                      {"ph":"X","name":"a"},
    {"ph":"X","name":"b"}                       {"ph":"X","na
    ],"metadata":{}}

A block is cut where one object ends and the next begins, at the last such place, and parsed at once: a cut inside an object or
a text leaves something that is no JSON, and the place before is tried. Only a block with a fault in it is gone through object
by object.

Trace events as Chrome, Node.js and many other programs write them: JSON, times in microseconds.

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
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from ingest.core.errors import InputError
from ingest.core.events import Events
from ingest.core.intervals import Int
from ingest.core.labels import Series
from ingest.read.account import Account
from ingest.read.context import Context, TimeZero
from ingest.read.described.table import arrow, reject
from ingest.read.format_names import CHROME
from ingest.read.formats import ROW_LABELS, Reader
from ingest.read.operations import DAY_NS, TOO_MANY_LABELS, SeriesTable, events_layout, newest_ns
from ingest.read.sources import Around, Source
from ingest.read.text import TRACE_ENDINGS, decimal_of, head, name_without, whole_blocks

BETWEEN = re.compile(rb"\}\s*,\s*\{")
NEXT = re.compile(r"\}\s*,\s*(?=\{)|\n\s*(?=\{\")")
PASSED = re.compile(r"[\s,]*")
BEGINNING = re.compile(rb'^(?:\xef\xbb\xbf)?\s*(?:\[|\{(?s:.*?)"traceEvents"\s*:\s*\[)')
END = re.compile(r'\]\s*(?:\}?\s*$|,\s*")')
LOOKS = re.compile(rb'"ph"\s*:\s*"[A-Za-z(){}=,]"')
LONGEST = 1 << 23
TRIED = 6
UNFINISHED = 12  # bytes of a word or an escape that may be cut in two
NO_JSON = "no JSON object"
CUT_SHORT = "the trace breaks off within its last event"
NO_ARRAY = 'no array of trace events: it begins neither with [ nor with {"traceEvents": [...'


def looks_like_chrome(start: bytes) -> bool:
    """Return whether a file begins like trace events."""
    match = BEGINNING.match(start)
    return match is not None and LOOKS.search(start, match.end()) is not None


@dataclass(frozen=True, slots=True)
class Objects:
    """Some objects of the array, and the text that they were parsed from, which begins in line `line`."""

    values: list[Any]
    text: bytes
    line: int
    places: list[int] | None = None

    def lines(self) -> Int:
        """Return the line that each object begins in."""
        newlines = np.flatnonzero(np.frombuffer(self.text, np.uint8) == 10)
        return self.line + np.searchsorted(newlines, np.array(self._places(), np.int64))

    def exact(self) -> list[Any]:
        """Return the objects with each number that has decimals as a Decimal; only their numbers are meant."""
        text = self.text.decode("latin-1")
        decoder = json.JSONDecoder(parse_float=Decimal)
        return [decoder.raw_decode(text, place)[0] for place in self._places()]

    def _places(self) -> list[int]:
        if self.places is not None:
            return self.places
        places = [len(self.text) - len(self.text.lstrip()), *(match.end() - 1 for match in BETWEEN.finditer(self.text))]
        return places if len(places) == len(self.values) else _Walk(self.text, last=True).places


def objects(path: Path, account: Account) -> Iterator[Objects]:
    """Yield the objects of the array in a file; all else is rejected. InputError where there is no array."""
    text, line, begun = b"", 1, False
    for block in whole_blocks(path, account):
        text += bytes(block)
        if not begun:
            match = BEGINNING.match(text)
            if not match and len(text) > LONGEST:
                raise InputError(NO_ARRAY, path, 1)
            if not match:
                continue
            begun, line, text = True, line + text.count(b"\n", 0, match.end()), text[match.end() :]
        part, used = _parsed(text, line)
        if part is None:
            walk = _Walk(text, last=False)
            part, used = walk.objects(line, account), walk.used
            if walk.over:
                yield part
                return
        yield part
        line, text = line + text.count(b"\n", 0, used), text[used:]
    if not begun:
        raise InputError(NO_ARRAY, path, 1)
    yield _Walk(text, last=True).objects(line, account)


def _parsed(text: bytes, line: int) -> tuple[Objects | None, int]:
    """Return the objects up to the last place where one ends, and where the next begins; None where that is no JSON."""
    end = len(text)
    for _ in range(TRIED):
        end = text.rfind(b"}", 0, end)
        if end < 0:
            break
        if match := BETWEEN.match(text, end):
            with suppress(orjson.JSONDecodeError):
                return Objects(orjson.loads(b"[" + text[: end + 1] + b"]"), text[: end + 1], line), match.end() - 1
    return None, 0


class _Walk:
    """Goes through a text object by object: `values` begin at `places`, `bad` are the places of all else.

    `used` is where an object begins that may go on in the next block, `over` says whether the array has ended. With `last`
    there is no next block.
    """

    def __init__(self, text: bytes, *, last: bool) -> None:
        self.text, self.last = text, last
        self.values: list[Any] = []
        self.places: list[int] = []
        self.bad: list[int] = []
        self.over = self.cut_off = False
        self._plain = text.decode("latin-1")  # a byte is a character: structure is ASCII
        self._damaged = False
        self.used = self._go()

    def objects(self, line: int, account: Account) -> Objects:
        """Return the objects; all else is rejected."""
        newlines = np.flatnonzero(np.frombuffer(self.text, np.uint8) == 10)
        reject(account, NO_JSON, line + np.searchsorted(newlines, np.array(self.bad, np.int64)))
        if self.cut_off:
            account.cut_short = account.cut_short or CUT_SHORT
        return Objects(self.values, self.text, line, self.places)

    def _go(self) -> int:
        decoder, plain, place = json.JSONDecoder(), self._plain, 0
        while True:
            place = PASSED.match(plain, place).end()  # type: ignore[union-attr]  # it matches nothing, too
            if place >= len(plain):
                return place
            if plain[place] == "]" and (not self._damaged or END.match(plain, place)):
                self.over = True
                return place
            try:
                _, end = decoder.raw_decode(plain, place)
            except (RecursionError, ValueError) as error:  # also brackets by the thousand; a number of thousands of digits
                if isinstance(error, json.JSONDecodeError) and self._may_go_on(error, place):
                    self.cut_off = self.last
                    return len(plain) if self.last else place
                place = self._resumed(place)
                continue
            self._take(place, end)
            place = end

    def _take(self, place: int, end: int) -> None:
        """Keep what lies there; what has no phase and stands behind damage is a part of that."""
        try:
            value = orjson.loads(self.text[place:end])
        except orjson.JSONDecodeError:  # no UTF-8, or a number that is none (NaN)
            self.bad.append(place)
            return
        if self._damaged and not (isinstance(value, dict) and "ph" in value):
            return
        self._damaged = False
        self.values.append(value)
        self.places.append(place)

    def _may_go_on(self, error: json.JSONDecodeError, place: int) -> bool:
        """Return whether a place is the beginning of an object rather than damage."""
        if len(self._plain) - place > LONGEST and not self.last:
            return False
        return error.msg.startswith("Unterminated") or error.pos >= len(self._plain) - UNFINISHED

    def _resumed(self, place: int) -> int:
        """Return where the next object begins behind damage."""
        if not self._damaged:
            self.bad.append(place)
        self._damaged = True
        match = NEXT.search(self._plain, place + 1)
        return match.end() if match else len(self._plain)


# Beginnings and ends of operations, which belong together by time, in whatever order a trace holds them.
#
# Each thread of a program has a buffer of its own, and a trace is the buffers one after another: the end of what two threads
# did may stand before its beginning. So both wait until the trace is over, or until a million of them do: then those that
# belong together leave, and the others wait on.


MOST_HELD = 1 << 20


# A beginning or an end, in the order of the file: of which operation, when, in which line, its name and its place, which end
# it is, and whether it nests in a thread. Keys, names and places are numbers that only their owner knows.
MARK = np.dtype(
    [(name, np.int64) for name in ("key", "at_ns", "line", "name", "place")] + [("ends", np.bool_), ("thread", np.bool_)],
    align=True,
)
Marks = NDArray[Any]


def paired(marks: Marks) -> tuple[Int, Int, Int]:
    """Return the rows of beginnings, of their ends, and of the marks that stay alone.

    By time, an end belongs to the last beginning of its key that has none yet; at one time the order of the file counts. A
    beginning and an end of one time that the file holds the wrong way round belong together, too, but not in a thread, which
    writes its own in order.
    """
    begin, end = _nested(marks, np.lexsort((marks["at_ns"], marks["key"])))
    left = _others(len(marks), begin, end)
    again = left[~marks["thread"][left]]
    rest = marks[again]
    late_begin, late_end = (again[rows] for rows in _nested(rest, np.lexsort((rest["ends"], rest["at_ns"], rest["key"]))))
    begin, end = np.append(begin, late_begin), np.append(end, late_end)
    return begin, end, _others(len(marks), begin, end)


def is_out_of_order(marks: Marks) -> bool:
    """Return whether the marks of a key do not stand in the order of their times."""
    order = np.argsort(marks["key"], kind="stable")
    key, at_ns = marks["key"][order], marks["at_ns"][order]
    return bool(((key[1:] == key[:-1]) & (at_ns[1:] < at_ns[:-1])).any())


def _others(size: int, begin: Int, end: Int) -> Int:
    alone = np.ones(size, np.bool_)
    alone[begin] = alone[end] = False
    return np.flatnonzero(alone)


def _nested(marks: Marks, order: Int) -> tuple[Int, Int]:
    """Return the rows of beginnings and of their ends, as brackets nest in the marks of each key in an order.

    At each place a key is so many levels deep; an end for which nothing is open lowers the ground that depth is counted from.
    """
    key, ends, size = marks["key"][order], marks["ends"][order], len(order)
    if not size:
        return order, order
    fresh = np.append(True, key[1:] != key[:-1])
    first, group = np.flatnonzero(fresh), np.cumsum(fresh) - 1
    step = np.where(ends, -1, 1)
    total = np.cumsum(step)
    depth = total - (total[first] - step[first])[group]
    below = group * (size + 1)  # each key begins below all of the one before, so that one pass finds the least of each
    ground = np.minimum.accumulate(np.minimum(depth, 0) - below) + below
    before = np.append(0, ground[:-1])
    before[first] = 0
    level = depth - ground + ends
    kept = np.flatnonzero(ground == before)
    kept = kept[np.lexsort((kept, level[kept], group[kept]))]
    one, two = kept[:-1], kept[1:]
    pair = (group[one] == group[two]) & (level[one] == level[two]) & ~ends[one] & ends[two]
    return order[one[pair]], order[two[pair]]


US = 1000
LATEST_US = 4 * 10**15
EXACT_US = 10**12  # below it a float of microseconds is exact to the ns
INEXACT = -(1 << 62)
EPOCH_US = 20 * 365 * 86_400 * 10**6  # no clock that starts with the machine reads so much
NAMES = re.compile(rb'"(?:process|thread)_name"')
STAMP = re.compile(rb'"ts"\s*:\s*"?(\d+)')
NEAR = 1 << 12
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

    whole: list[tuple[int, int, int]] = field(default_factory=list)  # row, start and end
    labels: list[tuple[str, str, str]] = field(default_factory=list)
    marks: list[tuple[int, ...]] = field(default_factory=list)  # as MARK, with rows for lines
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
            part.whole.append((row, start, start + length))
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
        account.skip("trace events that are no operations (metadata, instants, counters, flows)", part.skipped)
        words = zip(*part.labels, strict=True) if part.labels else ((), (), ())
        columns = {
            name: self.pa.array(values, self.pa.string()).dictionary_encode()
            for name, values in zip(("op", "process", "tag"), words, strict=True)
        }
        rows, start, end = np.array(part.whole, np.int64).reshape(-1, 3).T
        codes = self.series.codes(columns, len(rows))
        if part.bad or part.marks or (codes < 0).any():
            lines = objects.lines()
            for reason, bad in part.bad.items():
                reject(account, reason, lines[bad])
            reject(account, TOO_MANY_LABELS, lines[rows[codes < 0]])
            if part.marks:
                marks = np.array(part.marks, MARK)
                marks["line"] = lines[marks["line"]]
                self._waiting.append(marks)
                self.held += len(marks)
        return self._kept(codes, start, end, rows_each=1)

    def ended(self, *, last: bool) -> Events:
        """Return the operations whose beginning and end are known; the others wait on, unless they are too many or the `last`."""
        if not self._waiting:
            return self._kept(NONE, NONE, NONE, rows_each=2)
        account, marks = self.context.account, np.concatenate(self._waiting)
        self._out_of_order |= is_out_of_order(marks)
        self._several |= not last
        if self._several and self._out_of_order:
            account.note(FAR_APART)
        begin, end, left = paired(marks)
        start, length = marks["at_ns"][begin], marks["at_ns"][end] - marks["at_ns"][begin]
        codes = self._codes(marks["name"][begin], marks["place"][end])
        for reason, bad in ((TOO_LONG, length > DAY_NS), (TOO_MANY_LABELS, (length <= DAY_NS) & (codes < 0))):
            reject(account, reason, np.sort(marks["line"][end[bad]]))
            account.reject(reason, (), more=int(bad.sum()))
        rest = marks[left]
        if last or len(rest) > MOST_HELD // 2:
            reject(account, NO_BEGINNING, np.sort(rest["line"][rest["ends"]]))
            reject(account, NO_END, np.sort(rest["line"][~rest["ends"]]))
            rest = rest[:0]
        for name, numbers in (("key", self._keys), ("name", self._words), ("place", self._places)):
            rest[name] = numbers.keep(rest[name])
        self._waiting, self.held = [rest], len(rest)
        return self._kept(np.where(length <= DAY_NS, codes, -1), start, start + length, rows_each=2)

    def _codes(self, name: Int, place: Int) -> Int:
        """Return the series of operations by the numbers of their names and places."""
        texts = {"op": (name, list(self._words))}
        for at, label in enumerate(("process", "tag")):
            texts[label] = place, [self._named(known)[at] for known in self._places]
        pa, columns = self.pa, {}
        for label, (numbers, words) in texts.items():
            columns[label] = pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), pa.array(words, pa.string()))
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
            value = decimal_of(value)
        except ArithmeticError:
            return None
    known = (isinstance(value, Decimal) and value.is_finite()) or (isinstance(value, int) and not isinstance(value, bool))
    return round(value * US) if known and abs(value) <= LATEST_US else None


# Chrome traces as sources: host, what distinguishes recordings, start.


def locate(path: Path, around: Around) -> Source:
    """Return the source of a trace. Its job is its name; InputError where it is no array of trace events."""
    zero_ns = zero_of(path)
    context = around.context(path, job=name_without(path, TRACE_ENDINGS, every=True))
    own = TimeZero(zero_ns, "unknown" if zero_ns is None else "epoch stamps in the log")
    quiet = Context(account=Account(path=str(path)))
    zero = around.zero(path, own, lambda: newest_ns(read(path, quiet)), absolute=zero_ns == 0)
    return Source(path, CHROME, replace(context, zero=zero), layout=str(events_layout(around.options.digits)))


READER = Reader(
    locate,
    harmless=frozenset({NO_BEGINNING, NO_END}),
    timed=False,
    events=read,
    accepts=lambda _, start: looks_like_chrome(start),
    row_labels=(*ROW_LABELS, "process"),
    arrow=True,
)
