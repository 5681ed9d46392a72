"""fio histogram logs: `write_hist_log` with `log_hist_msec`.

    1005, 0, 4096, 0, 0, 12, 0, 3, ...         time ms, direction (0 read, 1 write, 2 trim), block size, bins
    1010, 1, 4096, 0, 1, 0, 0, 0, ...

A row is stamped with the END of its interval and holds the completion latencies since the row before it of the same
direction; each direction has its own chain. Rows follow I/O completions: none without I/O, one wide row and then many
narrow ones (also with equal stamps) after a stall. The last partial interval is never written; fio's json+ has it, and it
is added as the last interval. The first row begins where fio's own stamps begin.

Which fio wrote it, by the number of columns: 1,216 bins of us (2.14 to 2.21, 19 groups of 64), 1,856 bins of ns (since
2.99, 29 groups), each divided by 2^coarseness: 14 counts, all different. Traps, each repaired or refused with its line:

* development versions of 2016 count cumulatively; `fio --client` compounds (row n holds row n - 2 as well);
* fio 3.6 to 3.16 write uninitialised memory into the bins above 928 (786 us): they are masked and flagged;
* `latency_target` resets wrap the counts around 2^64; the row plus all rows since the last reset gives them back;
* `per_job_logs=0` and old logs of the same name stand one after another: time runs back, a new segment begins;
* `log_compression` writes heap addresses instead of bins (5 to 7 columns); `clat_percentiles=0` writes zeros.

Source: fio stat.c and iolog.c for the format; each point checked against the output of fio 3.33.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import InputError
from ingest.core.intervals import Histogram, Intervals
from ingest.core.layout import LogLinear, fio_layout
from ingest.core.series import OPS, Series
from ingest.read import integer_rows
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.fio import clock
from ingest.read.fio.chains import LAST_STAMP_MS, NOT_A_ROW, Chains
from ingest.read.text import CRLF, CUT_OFF, NULS, blocks, head, whole_blocks

Bytes = NDArray[np.uint8]

LEADING = 3
NS_GROUPS, US_GROUPS = 29, 19
NS_UNIT, US_UNIT = 1, 1000
LARGEST_CUSTOM, SMALLEST_CUSTOM = 37, 19
HEAD = 1 << 16
CHUNK_ENTRIES = 200_000
CHUNK_ROWS = 20_000
STAMP_DIGITS = len(str(LAST_STAMP_MS))
GARBAGE_COLUMNS = range(4, 9)
WRAPPED_COUNT = rb"\d{19}"
EMPTY = "holds no line: fio wrote no histogram (gtod_reduce, disable_clat, or a run shorter than log_hist_msec)"


@lru_cache(maxsize=256)
def layout_of(columns: int, unit_ns: int | None = None) -> tuple[int, LogLinear] | None:
    """Return (leading cells, layout) for a number of columns, or None if fio writes no such row.

    Builds with another group count are known by it; between 20 and 28 groups the unit must be given.
    """
    for leading in (LEADING, 1):
        bins = columns - leading
        for coarseness in range(7):
            groups, rest = divmod(bins << coarseness, 64)
            if rest or (leading == 1 and coarseness):
                continue
            if groups in (NS_GROUPS, US_GROUPS):
                return leading, fio_layout(groups, unit_ns or (NS_UNIT if groups == NS_GROUPS else US_UNIT), coarseness)
    for coarseness in range(7):
        groups, rest = divmod((columns - LEADING) << coarseness, 64)
        if not rest and SMALLEST_CUSTOM < groups <= LARGEST_CUSTOM and (unit_ns or groups >= NS_GROUPS):
            return LEADING, fio_layout(groups, unit_ns or NS_UNIT, coarseness)
    return None


def layout_of_text(text: bytes, context: Context, path: Path) -> tuple[int, int, LogLinear]:
    """Return (columns, leading, layout) that the first lines of a log agree on; InputError if they are no histogram rows."""
    lines = text.split(b"\n")
    complete = lines[:-1] or lines
    commas = ((line.count(b","), line) for line in complete[:200])
    widths = Counter(number + 1 for number, line in commas if number or line.strip(b"\r \0"))
    for columns, _ in widths.most_common():
        shape = layout_of(columns, context.recorded_unit_ns)
        if shape:
            return columns, *shape
    if not widths:
        raise InputError(EMPTY, path)
    columns = widths.most_common(1)[0][0]
    if columns in GARBAGE_COLUMNS:
        raise InputError(
            f"rows of {columns} columns are not histograms: log_compression destroys them, and averaged or raw latency logs "
            "hold no bins; run fio without log_compression",
            path,
            1,
        )
    custom = ""
    groups, rest = divmod(columns - LEADING, 64)
    if not rest and SMALLEST_CUSTOM < groups < NS_GROUPS:
        custom = f"; {groups} groups of 64 bins are a custom build: give its unit with --recorded-unit us or ns"
    raise InputError(f"{columns} columns are not a fio histogram (expected 1859 or 1219, less with coarseness){custom}", path, 1)


class Peeked(NamedTuple):
    """What the first lines of a log show: its layout, its first stamp, the median width of its rows, the kind of stamps.

    `base` is the beginning of the job where stamps are of another clock than fio's and real time.
    """

    layout: LogLinear
    first_ms: int
    width_ms: int
    unix: bool
    base: clock.Base


def _stamp(cell: bytes) -> int | None:
    """Return a time stamp in ms, None if the cell holds none that a row can have."""
    return stamp if cell.isdigit() and len(cell) <= STAMP_DIGITS and (stamp := int(cell)) < LAST_STAMP_MS else None


def peek(path: Path, context: Context) -> Peeked:
    """Return what the head of a log shows; InputError if it is no histogram log."""
    text = head(path)
    _, leading, layout = layout_of_text(text, context, path)
    return _peeked(text, leading, layout, context, path)


def _peeked(text: bytes, leading: int, layout: LogLinear, context: Context, path: Path) -> Peeked:
    """Return what the whole lines of a log's head show."""
    stamps: dict[bytes, list[int]] = {}
    for line in text.split(b"\n")[:-1]:
        first_comma = line.find(b",")
        second_comma = line.find(b",", first_comma + 1)
        if second_comma > first_comma and (stamp := _stamp(line[:first_comma])) is not None:
            stamps.setdefault(line[first_comma + 1 : second_comma] if leading > 1 else b"", []).append(stamp)
    firsts = [times[0] for times in stamps.values()]
    steps = [after - before for times in stamps.values() for before, after in pairwise(times)]
    first = min(firsts, default=0)
    unix = clock.real_time(context.options, first)
    width = clock.typical_width_ms(steps, context.options)
    begin = max(first - (width or clock.DEFAULT_WIDTH_MS), 0)
    base = clock.OWN if unix else clock.base_of(begin, context, lambda: last_stamp_ms(path))
    return Peeked(layout, first, width or (clock.DEFAULT_WIDTH_MS if unix or base.ms else max(firsts, default=0)), unix, base)


def base_in(text: bytes, leading: int, layout: LogLinear, context: Context, path: Path) -> clock.Base:
    """Return where the stamps of a log begin, by its first bytes; for almost all logs the first cell decides."""
    cells = text.split(b",", 2)
    first = _stamp(cells[0]) if len(cells) == 3 and b"\n" not in cells[1] else None
    if first is not None and clock.surely_own(first, context):
        return clock.OWN
    return _peeked(text, leading, layout, context, path).base


def _stamped(path: Path) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the stamp in ms, the cell of the direction, and the rest of each row."""
    for block in blocks(path):
        for line in bytes(block).split(b"\n"):
            cells = line.split(b",", 2)
            if len(cells) == 3 and (stamp := _stamp(cells[0])) is not None:
                yield stamp, cells[1], cells[2]


def segments_of(path: Path) -> dict[str, int]:
    """Return, by op, how often time begins anew in a log that several jobs or runs share; empty if that does not separate runs.

    A latency_target reset also begins time anew; it shows by counts near 2^64, and then runs cannot be separated.
    """
    last: dict[bytes, int] = {}
    segments: dict[bytes, int] = {}
    for stamp, cell, bins in _stamped(path):
        op = cell.strip()
        if stamp < last.get(op, LAST_STAMP_MS):
            if op in last and re.search(WRAPPED_COUNT, bins):
                return {}
            segments[op] = segments.get(op, 0) + 1
        last[op] = stamp
    return {OPS[int(op)]: count for op, count in segments.items() if op in (b"0", b"1", b"2")}


def restart_ms(path: Path) -> int:
    """Return the largest stamp in ms before time first runs back in a log, 0 if it does not."""
    last: dict[bytes, int] = {}
    for stamp, op, _ in _stamped(path):
        if stamp < last.get(op, 0):
            return max(last.values())
        last[op] = stamp
    return 0


def last_stamp_ms(path: Path) -> int:
    """Return the largest stamp of a log's last lines in ms."""
    largest = 0
    for block in blocks(path):
        stamps = [_stamp(line.split(b",", 1)[0]) for line in bytes(block).split(b"\n")[-8:]]
        largest = max((stamp for stamp in stamps if stamp is not None), default=largest)
    return largest


def read(path: Path, context: Context) -> Iterator[Intervals[Series]]:
    """Yield the histogram rows of a log in bounded chunks, ops and segments as series of their own, kind `completion`.

    Stamps become epoch ns (relative ns where the context knows no start). Counts are exact; the layout's error bound
    is at most 1/128 times 2^coarseness. Rejected and repaired rows are counted in the account with their lines. Raises
    InputError where the file as a whole is not a histogram log.
    """
    chains: Chains | None = None
    pending: list[tuple[integer_rows.Rows, NDArray[np.int64]]] = []
    scanner: Scanner | None = None
    for data in whole_blocks(path, context.account):
        if scanner is None or chains is None:
            text = bytes(data[:HEAD])
            columns, leading, layout = layout_of_text(text, context, path)
            scanner = Scanner(columns, leading, context)
            chains = Chains(layout, leading, context, base_in(text, leading, layout, context, path))
        pending.extend(scanner.rows(data))
        if sum(len(rows.bins) for rows, _ in pending) > CHUNK_ENTRIES or sum(len(rows) for rows, _ in pending) > CHUNK_ROWS:
            yield from chains.intervals(*_joined(pending))
            pending = []
    if scanner is None or chains is None:
        layout_of_text(b"", context, path)
        return
    if pending:
        yield from chains.intervals(*_joined(pending))
    yield from chains.tail(_sums_of(context))


def _sums_of(context: Context) -> dict[str, Histogram]:
    """Return the sums by op of the sibling logs, for the one log that carries the sums of a job group."""
    sums: dict[str, Histogram] = {}
    for path in context.siblings:
        account = Account(path=str(path))
        for _ in read(path, replace(context, siblings=(), jobs=(), account=account)):
            pass
        for op, counts in account.totals.items():
            dense = np.zeros(counts.layout.bins, np.int64)
            for part in (counts, sums.get(op)):
                if part is not None:
                    dense[part.bins] += part.counts
            bins = np.flatnonzero(dense)
            sums[op] = Histogram(counts.layout, bins, dense[bins])
    return sums


class Scanner:
    """Turns blocks of text into rows and line numbers, counting what cannot be parsed."""

    def __init__(self, columns: int, leading: int, context: Context) -> None:
        self.columns = columns
        self.parser = integer_rows.Parser(columns, leading)
        self.account = context.account
        self.line = 1

    def rows(self, block: memoryview) -> Iterator[tuple[integer_rows.Rows, NDArray[np.int64]]]:
        """Yield the rows of a block and their line numbers."""
        parsed = self.parser.parse(np.frombuffer(block, np.uint8))
        if parsed is not None:
            yield parsed, self.line + np.arange(len(parsed))
            self.line += len(parsed)
            return
        text = bytes(block)
        if b"\r\n" in text:
            self.account.note(CRLF)
            text = text.replace(b"\r\n", b"\n")
        yield from self._halves(text)

    def _halves(self, block: bytes) -> Iterator[tuple[integer_rows.Rows, NDArray[np.int64]]]:
        """Parse a block with a fault in it: halve it until the lines at fault stand alone."""
        lines = [line + b"\n" for line in block.split(b"\n")]
        lines[-1] = lines[-1][:-1]
        stack = [lines if lines[-1] else lines[:-1]]
        while stack:
            lines = stack.pop()
            parsed = self.parser.parse(np.frombuffer(b"".join(lines), np.uint8))
            if parsed is not None:
                yield parsed, self.line + np.arange(len(parsed))
                self.line += len(lines)
            elif len(lines) > 1:
                middle = len(lines) // 2
                stack.extend((lines[middle:], lines[:middle]))
            else:
                reason = self._fault(lines[0])
                if reason:
                    self.account.reject(reason, [self.line])
                self.line += 1

    def _fault(self, line: bytes) -> str:
        """Return why a line cannot be taken, or empty text if it is blank."""
        text = line.rstrip(b"\n")
        if not text.strip(b" \t\r"):
            return ""
        if b"\0" in text:
            return NULS
        if not line.endswith(b"\n"):
            return CUT_OFF
        cells = text.count(b",") + 1
        if cells != self.columns:
            return f"{'fewer' if cells < self.columns else 'more'} columns than the rows of this log ({self.columns})"
        return NOT_A_ROW


def _joined(
    pending: list[tuple[integer_rows.Rows, NDArray[np.int64]]],
) -> tuple[integer_rows.Rows, NDArray[np.int64]]:
    parts = [rows for rows, _ in pending]
    lines = np.concatenate([numbers for _, numbers in pending])
    return integer_rows.concatenate(parts), lines
