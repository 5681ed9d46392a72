"""Operation logs: one line an operation, comma separated, the first line names the columns.

Operation logs: one line an operation, comma separated, the first line names the columns.

    start_us,end_us,op                           start_ms,latency_us,due_ms,op
    1700000000000000,1700000000001100,read       1700000000000,1100,1700000000000,read

A start and an end or a latency are needed; the unit is the ending of a column's name, else --recorded-unit. `op` and `tag`
are labels. Latency counts from the start that was: that is service time. Where the schedule is known (`--rate`, or
`--intended-start-column` with the time that each was due), response and wait time are worked out for each operation.

Operations are binned on the way in (3 digits: 0.1 %), each into the second in which it ended, exact minimum, maximum and
sum kept. Lines may come in any order: with --rate, the n-th to start is the n-th that was due.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from ingest.core.coverage import labels_of
from ingest.core.errors import InputError, counted
from ingest.core.grid import SECOND, window_start
from ingest.core.intervals import Exact, Int, Intervals
from ingest.core.labels import Series
from ingest.core.layout import Layout, hdr_layout
from ingest.core.units import MOST_NS, UNITS_NS
from ingest.read.account import Account
from ingest.read.context import INTENDED, NOT_REAL, NOT_RELATIVE, RATE, YEAR_NS, Context, TimeZero
from ingest.read.described.table import MORE_PLACES, PRECISION, Form, Lines, arrow, nanoseconds, places
from ingest.read.format_names import OPERATIONS
from ingest.read.formats import AGAIN, ROW_LABELS, Reader
from ingest.read.hdr.tools import ENDS, LATENCIES, OPS, STARTS, TAGS, column_names, looks_like_operations, plain_column
from ingest.read.missing import RejectedLines
from ingest.read.operations import Repeats, bounded
from ingest.read.schedule import Seen
from ingest.read.sources import Around, Source
from ingest.read.text import CUT_OFF, NEWLINE, head, name_without, whole_blocks

T = TypeVar("T", int, Int)

# Blocks of an operation log without a fault, as columns at once; what has one is left to be read line by line.
#
# Only a block of plain text is taken (printable ASCII, no quotes), of which every line has all columns, numbers as times (with a
# point where a column had one at the beginning), and is an operation that can be taken. Of such a block both ways give the same;
# this one is some ten times as fast.


SPACE, TILDE = 32, 126
HEXADECIMAL = (b"0x", b"0X")  # Arrow would take them for numbers


class Block(NamedTuple):
    """Columns of a block: `times` in ns, and for each label column the codes of rows and their words."""

    times: Sequence[Int]
    labels: Sequence[tuple[Int, Sequence[str]]]


class Blocks:
    """Parses the blocks of one file; without pyarrow, none."""

    def __init__(self, columns: Columns) -> None:
        """Parse lines of these columns."""
        self._times, self._labels = columns.times, list(map(str, columns.labelled))
        self._lines: Lines | None = None
        try:
            pa = arrow()
        except InputError:
            return
        types = {str(time.place): pa.string() if time.step_ns < time.unit_ns else pa.int64() for time in self._times}
        types |= dict.fromkeys(self._labels, pa.dictionary(pa.int32(), pa.string()))
        self._lines = Lines(Form(list(map(str, range(columns.width))), types, tiers=(), not_a_row=""), Account())

    def of(self, data: bytes) -> Block | None:
        """Return the columns of whole lines, None where one of them has to be looked at by itself."""
        if not data or data[-1] != NEWLINE or not is_plain(data) or any(word in data for word in HEXADECIMAL):
            return None
        table = None if self._lines is None else self._lines.table(data)
        if table is None or len(table) != data.count(b"\n"):
            return None
        times = [_all_ns(table.column(str(time.place)), time.unit_ns) for time in self._times]
        if any(time is None for time in times):
            return None
        return Block(cast("list[Int]", times), [_coded(table.column(name)) for name in self._labels])


def is_plain(data: bytes) -> bool:
    """Return whether text is printable ASCII and newlines, without quotes: lines and cells are where they seem to be."""
    text = np.frombuffer(data, np.uint8)
    return b'"' not in data and bool(((text >= SPACE) & (text <= TILDE) | (text == NEWLINE)).all())


def _all_ns(column: Any, unit_ns: int) -> Int | None:
    """Return whole numbers, or decimals in text, as ns, rounded down; None where one of them is no number or out of range."""
    pa = arrow()
    if pa.types.is_string(column.type):
        if not pa.compute.all(pa.compute.match_substring_regex(column, NUMBER.pattern)).as_py():
            return None
        try:
            column = column.cast(pa.decimal128(PRECISION, places(unit_ns) + MORE_PLACES))
        except pa.ArrowInvalid:  # more places than that
            return None
    times, sure = nanoseconds(pa, column, unit_ns)
    return times if sure.all() else None


def _coded(column: Any) -> tuple[Int, list[str]]:
    values = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return np.asarray(values.indices).astype(np.int64), [str(word) for word in values.dictionary.to_pylist()]


# Lines of an operation log -> operations: times in ns and labels; what cannot be taken is counted with its line and reason.


NUMBER = re.compile(r"^-?[0-9]{1,19}(\.[0-9]{1,12})?$")
MOST_OPERATIONS = 20_000_000
MOST_LABELS = 10_000
APART = "their end minus their start is not their latency, which was taken"
NEARBY = 100  # operations: so near to a line that is rejected its time is looked for
EXAMPLE = "such as start_us,end_us,op"


class Column(NamedTuple):
    """Where a time stands in a line, its unit in ns, and the least step in ns that its decimals show."""

    place: int
    unit_ns: int
    step_ns: Fraction = Fraction(0)


class Columns(NamedTuple):
    """Where everything stands in a line; `end` or `latency` is there, `due` where the log has the schedule.

    Of a log that has both, `latency` is None where it is coarser than its start and end are.
    """

    width: int
    start: Column
    end: Column | None
    latency: Column | None
    due: Column | None
    op: int | None
    tag: int | None

    @property
    def times(self) -> list[Column]:
        """Return the columns of times: start, end and latency as far as they are there, and when it was due."""
        return [column for column in (self.start, self.end, self.latency, self.due) if column is not None]

    def span_of(self, start: T, end: T | None, latency: T | None) -> tuple[T, T, T | int]:
        """Return start and end by what stands in these columns, and by how much end - start is beside the latency.

        What is said of the latency counts; it is laid from the finer one of start and end.
        """
        if self.end is None or end is None:
            return start, start + cast("T", latency), 0
        if self.latency is None or latency is None:
            return start, end, 0
        apart = abs(end - start - latency)
        return (end - latency, end, apart) if self.end.step_ns < self.start.step_ns else (start, start + latency, apart)

    @property
    def rounding_ns(self) -> Fraction:
        """Return by how much end - start can be beside the latency where all are rounded."""
        return sum((column.step_ns for column in (self.start, self.end, self.latency) if column), Fraction(0))

    @property
    def labelled(self) -> list[int]:
        """Return the places of labels: op, tag."""
        return [place for place in (self.op, self.tag) if place is not None]


@dataclass(slots=True)
class Taken:
    """Operations as they are read: times in ns, and the code of their labels. `epoch` are those since 1970, None takes all.

    Of `apart` operations end - start is not the latency that stands beside them.
    """

    epoch: bool | None = None
    apart: int = 0
    start: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))
    due: array[int] = field(default_factory=lambda: array("q"))
    labels: array[int] = field(default_factory=lambda: array("q"))
    table: dict[tuple[str, str], int] = field(default_factory=dict)


def columns_of(path: Path, context: Context) -> Columns:
    """Return where everything stands by the first line; InputError if a column is missing, twice there, or of unknown unit."""
    first, *lines = head(path, upto=context.upto).split(b"\n")
    return columns_named(column_names(first), csv.reader(_texts(lines[:LOOKED_AT])), path, context)


def columns_named(names: list[str], following: Iterable[list[str]], path: Path, context: Context, line: int = 1) -> Columns:
    """Return where everything stands below a line of names, of which `following` are the first; InputError as `columns_of`."""
    rows = [cells for cells in following if len(cells) == len(names)]
    plain = [plain_column(name) for name in names]

    def find(wanted: tuple[str, ...]) -> int | None:
        places = [place for place, (name, _) in enumerate(plain) if name in wanted]
        if len(places) > 1:
            raise InputError(f"two columns for one thing: {names[places[0]]} and {names[places[1]]}", path, line)
        return places[0] if places else None

    def timed(place: int | None) -> Column | None:
        if place is None:
            return None
        unit = UNITS_NS[plain[place][1]] if plain[place][1] else context.recorded_unit_ns
        if unit is None:
            reason = f"the unit of column {names[place]} is not in its name: give --recorded-unit s, ms, us or ns"
            raise InputError(reason, path, line)
        cells = [cells[place].strip() for cells in rows]
        decimals = max((len(cell.partition(".")[2]) for cell in cells if NUMBER.match(cell)), default=0)
        return Column(place, unit, Fraction(unit, 10**decimals))

    intended = context.options.get(INTENDED, "").lower()
    if intended and intended not in names:
        raise InputError(f"no column {intended!r}: there are {', '.join(names)}", path, line)
    start, end, latency = timed(find(STARTS)), timed(find(ENDS)), timed(find(LATENCIES))
    if start is None or (end is None and latency is None):
        raise InputError(f"no operation log: its first line names no start, or no end or latency, {EXAMPLE}", path, line)
    if end is not None and latency is not None and latency.step_ns > max(start.step_ns, end.step_ns):
        latency = None
    return Columns(len(names), start, end, latency, timed(names.index(intended)) if intended else None, find(OPS), find(TAGS))


def _texts(lines: Sequence[bytes]) -> list[str]:
    """Return lines as text that the csv module takes."""
    return b"\n".join(lines).decode("utf-8", "replace").replace("\0", "").splitlines()


def _ns(text: str, unit_ns: int) -> int:
    """Return a decimal number of units in ns, rounded down; ValueError if it is none."""
    text = text.strip()
    if not NUMBER.match(text):
        raise ValueError
    whole, _, decimals = text.partition(".")
    below: int = 10 ** len(decimals)
    return int(whole + decimals) * unit_ns // below


def read_lines(path: Path, context: Context, columns: Columns, *, epoch: bool) -> Taken:
    """Return all operations of a log; lines that cannot be taken are counted with their reason, and missing where they stood."""
    taken, number, told = Taken(epoch), 0, 0
    lost = RejectedLines(context.account, labels_of(context.series, unknown=ROW_LABELS))

    def passed() -> None:
        nonlocal told
        lost.passed(np.array(taken.end[told:], np.int64) + shift_of(context, epoch=epoch))
        told = len(taken.end)

    quick = Blocks(columns)
    for block in whole_blocks(path, context.account, context.upto):
        data = bytes(block)
        names = 0 if number else data.find(b"\n") + 1
        if is_plain(data[:names]) and (parsed := quick.of(data[names:])) is not None and _take_all(parsed, columns, taken):
            number += data.count(b"\n")
            _check_count(taken, path)
            passed()
            continue
        lines = data.decode("utf-8", "replace").replace("\0", "").splitlines()
        whole = data[-1] == NEWLINE
        rows = list(csv.reader(lines if whole else lines[:-1]))
        for place, cells in enumerate(rows):
            number += 1
            if number == 1 or not any(cell.strip() for cell in cells):
                continue
            if is_head(cells):  # of a log that was appended
                named_here, following = column_names(",".join(cells).encode()), rows[place + 1 : place + LOOKED_AT]
                columns = columns_named(named_here, following, path, context, number)
                quick = Blocks(columns)
                continue
            if len(cells) != columns.width:
                context.account.reject(f"not {columns.width} columns as the first line names", [number])
                continue
            if reason := take(cells, columns, taken):
                context.account.reject(reason, [number])
            _check_count(taken, path)
            if len(taken.end) - told >= NEARBY:
                passed()
        passed()
        if not whole:
            number += 1
            context.account.reject(CUT_OFF, [number])
    lost.finish()
    if taken.apart:
        context.account.note(f"{counted(taken.apart, 'operation')}: {APART}")
    return taken


def is_head(cells: Sequence[str]) -> bool:
    """Return whether a line names columns as the first line of an operation log does."""
    return not cells[0][:1].isdigit() and looks_like_operations(",".join(cells).encode())


def shift_of(context: Context, *, epoch: bool) -> int:
    """Return the ns that are added to all times of a log; `epoch` says that they are real times."""
    return context.offset_ns + (0 if epoch else context.zero.epoch_ns or 0)


def _check_count(taken: Taken, path: Path) -> None:
    if len(taken.start) > MOST_OPERATIONS:
        raise InputError(f"more than {MOST_OPERATIONS:,} operations in one log: split it", path)


def _take_all(block: Block, columns: Columns, taken: Taken) -> bool:
    """Take all operations of a block; return False, and take none, where one of them cannot be taken."""
    held = dict(zip(columns.times, block.times, strict=True))
    start, end, latency, due = (None if column is None else held[column] for column in columns[1:5])
    assert start is not None
    start, end, apart = columns.span_of(start, end, latency)
    due = start if due is None else due
    if (end < start).any() or ((start >= YEAR_NS) != taken.epoch).any():
        return False
    if min(int(start.min()), int(due.min())) <= -MOST_NS or max(int(end.max()), int(due.max())) >= MOST_NS:
        return False
    labels = _codes(block, columns, taken, len(start))
    if labels is None:
        return False
    taken.apart += int(np.count_nonzero(apart > int(columns.rounding_ns)))
    for kept, values in ((taken.start, start), (taken.end, end), (taken.due, due), (taken.labels, labels)):
        kept.frombytes(values.tobytes())
    return True


def _codes(block: Block, columns: Columns, taken: Taken, rows: int) -> Int | None:
    """Return the code of the labels of each row, in the order in which they come first; None where they are too many."""
    pairs = np.zeros(rows, np.int64)
    for own, words in block.labels:
        pairs = pairs * len(words) + own
    _, first, row = np.unique(pairs, return_index=True, return_inverse=True)
    named_by = zip(columns.labelled, block.labels, strict=True)
    labels_at = {place: [words[code] for code in own[first].tolist()] for place, (own, words) in named_by}
    ops = [op.strip().lower() for op in labels_at[columns.op]] if columns.op is not None else [""] * len(first)
    tags = [tag.strip() for tag in labels_at[columns.tag]] if columns.tag is not None else [""] * len(first)
    named = list(zip(ops, tags, strict=True))
    if len(taken.table) + len(set(named) - taken.table.keys()) > MOST_LABELS:
        return None
    codes = np.empty(len(first), np.int64)
    for at in np.argsort(first).tolist():
        codes[at] = taken.table.setdefault(named[at], len(taken.table))
    row_codes: Int = codes[row.reshape(-1)]
    return row_codes


def take(cells: list[str], columns: Columns, taken: Taken) -> str:
    """Take an operation; return why it cannot be taken, or empty text."""
    try:
        written = [None if column is None else _ns(cells[column.place], column.unit_ns) for column in columns[1:5]]
        start, end, apart = columns.span_of(cast("int", written[0]), written[1], written[2])
        due = start if written[3] is None else written[3]
    except ValueError:
        return "a time is no number"
    if end < start:
        return "it ended before it began"
    if not -MOST_NS < min(start, due) <= max(end, due) < MOST_NS:
        return "a time is out of range"
    if taken.epoch is not None and (start >= YEAR_NS) != taken.epoch:
        return NOT_REAL if taken.epoch else NOT_RELATIVE
    labels = (
        cells[columns.op].strip().lower() if columns.op is not None else "",
        cells[columns.tag].strip() if columns.tag is not None else "",
    )
    if labels not in taken.table and len(taken.table) >= MOST_LABELS:
        return f"more than {MOST_LABELS} ops and tags"
    taken.apart += apart > columns.rounding_ns
    taken.start.append(start)
    taken.end.append(end)
    taken.due.append(due)
    taken.labels.append(taken.table.setdefault(labels, len(taken.table)))
    return ""


LOOKED_AT = 101
DIGITS = 3
ENDINGS = (".hlog", ".hdr", ".histo", ".log", ".csv", ".txt")


def first_start_ns(path: Path, context: Context) -> int:
    """Return the start of the first operation, by the clock of most at the beginning; InputError if none can be read."""
    columns = columns_of(path, context)
    taken = Taken()
    for cells in csv.reader(_texts(head(path, upto=context.upto).split(b"\n")[1:])):
        if len(cells) == columns.width:
            take(cells, columns, taken)
        if len(taken.start) == LOOKED_AT:
            break
    if not taken.start:
        raise InputError("holds no operation that can be read", path)
    real = [start >= YEAR_NS for start in taken.start]
    return taken.start[real.index(2 * sum(real) >= len(real))]


def read(path: Path, context: Context) -> Iterator[Intervals[Series]]:
    """Yield service time, and with a schedule response and wait time, in rows of a second, exact minimum, maximum and sum.

    The first rows begin with the first operation, the last end with the last one. Error bound 1/1024. Raises InputError where a
    column is missing or there are more operations than can be held.
    """
    columns = columns_of(path, context)
    epoch = first_start_ns(path, context) >= YEAR_NS
    taken = read_lines(path, context, columns, epoch=epoch)
    count = len(taken.start)
    context.account.accept(count)
    if not count:
        return
    start, end, labels = (np.frombuffer(column, np.int64) for column in (taken.start, taken.end, taken.labels))
    repeats = Repeats(context.account)
    repeats.add(end, end - start, labels, list(taken.table))
    repeats.finish()
    rate = Fraction(context.options[RATE]) if RATE in context.options else None
    due: Int | None = None
    if columns.due is not None:
        due = np.frombuffer(taken.due, np.int64)
    elif rate is not None:
        due = np.empty(count, np.int64)
        due[np.argsort(start, kind="stable")] = due_at(int(start.min()), count, rate)
    kinds = {"service": end - start}
    if due is not None:
        if early := int(np.count_nonzero(start < due)):
            context.account.note(f"{counted(early, 'operation')} began earlier than planned: response time counts from the start")
        due = np.minimum(due, start)
        kinds |= {"response": end - due, "wait": start - due}
    lag = None if due is None else int((start - due).max())
    seen = Seen(context.options.get(RATE, ""))
    shift = shift_of(context, epoch=epoch)
    for kind, values in kinds.items():
        table = tuple(context.series.replaced(op=op, tag=tag, kind=kind) for op, tag in taken.table)
        rows = binned(table, labels, end + shift, values, hdr_layout(DIGITS, 0, 1))
        rows = bounded(rows, int(start.min()) + shift, int(end.max()) + shift)
        context.account.samples += int(rows.counts.sum()) if kind == "service" else 0
        seen.add(rows)
        yield rows
    context.account.schedule.append(seen.digest(context.series, span_ns=int(end.max() - start.min()), lag_ns=lag))


def due_at(start_ns: int, count: int, rate: Fraction) -> Int:
    """Return when each of `count` requests was due: start + n / rate, rounded down to ns, exact for any n."""
    numbers = np.arange(count, dtype=np.int64)
    interval = SECOND / rate
    whole, part = divmod(interval.numerator, interval.denominator)
    if part * count >= 2**63:
        return np.array([start_ns + n * interval.numerator // interval.denominator for n in range(count)], np.int64)
    due: Int = start_ns + numbers * whole + numbers * part // interval.denominator
    return due


def binned(table: tuple[Series, ...], series: Int, ends: Int, values: Int, layout: Layout) -> Intervals[Series]:
    """Return single values as rows of a second, one a series and second, ordered by both."""
    window = window_start(ends, SECOND)
    order = np.lexsort((values, window, series))
    series, window, values = series[order], window[order], values[order]
    bins = layout.index(values)
    new_row = np.append(True, (np.diff(series) != 0) | (np.diff(window) != 0))
    new_bin = new_row | np.append(True, np.diff(bins) != 0)
    rows, entries = np.flatnonzero(new_row), np.flatnonzero(new_bin)
    last = np.append(rows[1:], len(values)) - 1
    indptr, counts = np.append(np.searchsorted(entries, rows), len(entries)), np.diff(np.append(entries, len(values)))
    exact = Exact(values[rows], values[last], np.add.reduceat(values, rows), np.ones(len(rows), np.bool_))
    start_ns = window[rows]
    return Intervals(layout, table, series[rows], start_ns, start_ns + SECOND, indptr, bins[entries], counts, exact)


def last_end_ns(path: Path, context: Context) -> int:
    """Return when the last operation ended by the clock of the file, in ns; 0 if none can be read. Reads all of it."""
    quiet = replace(context, account=Account(path=str(path)), zero=TimeZero(0), offset_ns=0)
    return max((int(rows.end_ns.max()) for rows in read(path, quiet) if len(rows)), default=0)


def locate(path: Path, around: Around) -> Source:
    """Return the source of an operation log; InputError where a column is missing or no operation can be read."""
    context = around.context(path, process=name_without(path, ENDINGS))
    first = first_start_ns(path, context)
    dated = first >= YEAR_NS
    own = TimeZero(first, "epoch stamps in the log") if dated else TimeZero()
    zero = around.zero(path, own, lambda: last_end_ns(path, context), absolute=dated)
    return Source(path, OPERATIONS, replace(context, zero=zero), SECOND, str(hdr_layout(DIGITS, 0, 1)))


READER = Reader(locate, rows=read, accepts=lambda _, start: looks_like_operations(start), grows=AGAIN, by_second=True)
