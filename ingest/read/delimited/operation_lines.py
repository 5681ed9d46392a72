"""Lines of an operation log -> operations: times in ns and labels; what cannot be taken is counted with its line and reason."""

from __future__ import annotations

import csv
import re
from array import array
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

from ingest.core.errors import InputError
from ingest.core.intervals import Int
from ingest.core.timing import MOST_NS, UNITS_NS
from ingest.read.context import INTENDED, NOT_REAL, NOT_RELATIVE, YEAR_NS, Context
from ingest.read.delimited.operation_blocks import Block, Blocks, is_plain
from ingest.read.hdr.names import ENDS, LATENCIES, OPS, STARTS, TAGS, column_names, plain_column
from ingest.read.text import CUT_OFF, NEWLINE, blocks, head

NUMBER = re.compile(r"^-?\d{1,19}(\.\d{1,12})?$")
MOST_OPERATIONS = 20_000_000
MOST_LABELS = 10_000
EXAMPLE = "such as start_us,end_us,op"


@dataclass(frozen=True, slots=True)
class Column:
    """Where a time stands in a line, and its unit in ns."""

    place: int
    unit_ns: int


@dataclass(frozen=True, slots=True)
class Columns:
    """Where everything stands in a line; `end` or `latency` is there, `due` where the log has the schedule."""

    width: int
    start: Column
    end: Column | None
    latency: Column | None
    due: Column | None
    op: int | None
    tag: int | None

    @property
    def times(self) -> list[Column]:
        """Return the columns of times: start, end or else latency, and when it was due where that is there."""
        return [column for column in (self.start, self.end or self.latency, self.due) if column is not None]

    @property
    def labelled(self) -> list[int]:
        """Return the places of labels: op, tag."""
        return [place for place in (self.op, self.tag) if place is not None]


def _numbers() -> array[int]:
    return array("q")


@dataclass(slots=True)
class Taken:
    """Operations as they are read: times in ns, and the code of their labels. `epoch` are those since 1970, None takes all."""

    epoch: bool | None = None
    start: array[int] = field(default_factory=_numbers)
    end: array[int] = field(default_factory=_numbers)
    due: array[int] = field(default_factory=_numbers)
    labels: array[int] = field(default_factory=_numbers)
    table: dict[tuple[str, str], int] = field(default_factory=dict)


def columns_of(path: Path, context: Context) -> Columns:
    """Return where everything stands; InputError if a column is missing, twice there, or of unknown unit."""
    names = column_names(head(path, upto=context.upto).split(b"\n", 1)[0])
    plain = [plain_column(name) for name in names]

    def find(wanted: tuple[str, ...]) -> int | None:
        places = [place for place, (name, _) in enumerate(plain) if name in wanted]
        if len(places) > 1:
            raise InputError(f"two columns for one thing: {names[places[0]]} and {names[places[1]]}", path, 1)
        return places[0] if places else None

    def timed(place: int | None) -> Column | None:
        if place is None:
            return None
        unit = UNITS_NS[plain[place][1]] if plain[place][1] else context.recorded_unit_ns
        if unit is None:
            raise InputError(f"the unit of column {names[place]} is not in its name: give --recorded-unit ns, us or ms", path, 1)
        return Column(place, unit)

    intended = context.options.get(INTENDED, "").lower()
    if intended and intended not in names:
        raise InputError(f"no column {intended!r}: there are {', '.join(names)}", path, 1)
    start, end, latency = timed(find(STARTS)), timed(find(ENDS)), timed(find(LATENCIES))
    if start is None or (end is None and latency is None):
        raise InputError(f"no operation log: its first line names no start, or no end or latency, {EXAMPLE}", path, 1)
    due = timed(names.index(intended)) if intended else None
    return Columns(len(names), start, end, latency, due, find(OPS), find(TAGS))


def _ns(text: str, unit_ns: int) -> int:
    """Return a decimal number of units in ns, rounded down; ValueError if it is none."""
    text = text.strip()
    if not NUMBER.match(text):
        raise ValueError
    if "." not in text:
        return int(text) * unit_ns
    return int(Fraction(text) * unit_ns // 1)


def read_lines(path: Path, context: Context, columns: Columns, *, epoch: bool) -> Taken:
    """Return all operations of a log; lines that cannot be taken are counted with their reason."""
    taken, number = Taken(epoch), 0
    quick = Blocks(columns.width, [column.place for column in columns.times], columns.labelled)
    for block in blocks(path, context.upto):
        data = bytes(block)
        names = 0 if number else data.find(b"\n") + 1
        if is_plain(data[:names]) and (parsed := quick.of(data[names:])) is not None and _take_all(parsed, columns, taken):
            number += data.count(b"\n")
            _check_count(taken, path)
            continue
        lines = data.decode("utf-8", "replace").replace("\0", "").splitlines()
        whole = data[-1] == NEWLINE
        for cells in csv.reader(lines if whole else lines[:-1]):
            number += 1
            if number == 1 or not any(cell.strip() for cell in cells):
                continue
            if len(cells) != columns.width:
                context.account.reject(f"not {columns.width} columns as the first line names", [number])
                continue
            reason = take(cells, columns, taken)
            if reason:
                context.account.reject(reason, [number])
            _check_count(taken, path)
        if not whole:
            number += 1
            context.account.reject(CUT_OFF, [number])
    return taken


def _check_count(taken: Taken, path: Path) -> None:
    if len(taken.start) > MOST_OPERATIONS:
        raise InputError(f"more than {MOST_OPERATIONS:,} operations in one log: split it", path)


def _take_all(block: Block, columns: Columns, taken: Taken) -> bool:
    """Take all operations of a block; return False, and take none, where one of them cannot be taken."""
    units = [column.unit_ns for column in columns.times]
    for time, unit in zip(block.times, units, strict=True):
        if not len(time) or int(time.max()) > MOST_NS // unit or int(time.min()) < -MOST_NS // unit:
            return False
    start, second, *others = (time * unit for time, unit in zip(block.times, units, strict=True))
    end, due = second if columns.end is not None else start + second, others[0] if others else start
    if (end < start).any() or ((start >= YEAR_NS) != taken.epoch).any():
        return False
    if min(int(start.min()), int(due.min())) <= -MOST_NS or max(int(end.max()), int(due.max())) >= MOST_NS:
        return False
    labels = _codes(block, columns, taken, len(start))
    if labels is None:
        return False
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
        start = _ns(cells[columns.start.place], columns.start.unit_ns)
        if columns.end is not None:
            end = _ns(cells[columns.end.place], columns.end.unit_ns)
        else:
            latency = columns.latency or columns.start
            end = start + _ns(cells[latency.place], latency.unit_ns)
        due = start if columns.due is None else _ns(cells[columns.due.place], columns.due.unit_ns)
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
    taken.start.append(start)
    taken.end.append(end)
    taken.due.append(due)
    taken.labels.append(taken.table.setdefault(labels, len(taken.table)))
    return ""
