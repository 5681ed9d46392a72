"""Many small histogram logs in one pass over arrays: the intervals, accounts and last intervals that `hist.read` gives of each.

A folder may hold ten thousand logs of 30 kB, and of such a log the fixed cost of some hundred NumPy calls is most of what
reading it takes. Only logs without any fault or peculiarity are read here, which are almost all: every line is a row of the
same columns, stamps never run back, counts are surely those of their interval, and no two logs are added up. Whatever is not
plain is left to `hist.read`, untouched: each repair and each refusal stands there alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingest.core.csr import gather, row_sums, sum_rows
from ingest.core.intervals import Int, Intervals, concatenate
from ingest.core.layout import LogLinear
from ingest.core.series import OPS, Series
from ingest.core.timing import is_instant
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.fio import clock, hist, lost_rows, repairs
from ingest.read.fio.chains import COMPLETION, LAST_STAMP_MS, MS, Chains
from ingest.read.formats import SMALL
from ingest.read.integer_rows import Parser, Rows
from ingest.read.text import COMPRESSED, mark_of

MOST_TEXT = 1 << 21  # parsed at once

Log = tuple[Path, Context]


@dataclass(frozen=True, slots=True)
class _Plain:
    """A log that may be plain: its number in the call, its text, columns, and where its stamps begin."""

    number: int
    path: Path
    context: Context
    text: bytes

    @property
    def shape(self) -> tuple[int, int | None]:
        """Return what decides its layout: how many columns its first line has, and the unit that the user said."""
        return self.text.count(b",", 0, self.text.index(b"\n")) + 1, self.context.recorded_unit_ns


def read(logs: Sequence[Log]) -> tuple[list[Intervals[Series]], list[int]]:
    """Return the intervals of all logs that are plain, and the numbers of those that are not, whose accounts are as they were.

    The accounts of the former are those of `hist.read`. Nothing is raised: what cannot be read is not plain.
    """
    by_shape: dict[tuple[int, int | None], list[_Plain]] = {}
    for number, (path, context) in enumerate(logs):
        several = context.siblings or context.spans or max(context.segments.values(), default=0) > 1
        if (path.suffix not in COMPRESSED and not several) and (text := _text(path)):
            plain = _Plain(number, path, context, text)
            by_shape.setdefault(plain.shape, []).append(plain)
    intervals: list[Intervals[Series]] = []
    done: set[int] = set()
    for (columns, unit_ns), mine in by_shape.items():
        shape = hist.layout_of(columns, unit_ns)
        if shape is not None and shape[0] == hist.LEADING:
            for some, rows in _parsed(Parser(columns, hist.LEADING), mine):
                intervals += _Batch(some, rows, shape[1]).intervals(done)
    return intervals, [number for number in range(len(logs)) if number not in done]


def _text(path: Path) -> bytes:
    """Return a whole small log; nothing of one that is large, breaks off, has a byte order mark or cannot be read."""
    try:
        with path.open("rb", buffering=0) as stream:
            text = stream.read(SMALL + 1) or b""
    except OSError:
        return b""
    return text if len(text) <= SMALL and text.endswith(b"\n") and not mark_of(text) else b""


def _parsed(parser: Parser, logs: list[_Plain]) -> Iterator[tuple[list[_Plain], Rows]]:
    """Yield logs with their rows; where one has a line that is no row, the others without it."""
    stack = []
    size = first = 0
    for place, log in enumerate(logs):
        size += len(log.text)
        if size > MOST_TEXT:
            stack.append(logs[first:place])
            first, size = place, len(log.text)
    stack.append(logs[first:])
    while stack:
        some = stack.pop()
        rows = parser.parse(np.frombuffer(b"".join(log.text for log in some), np.uint8)) if some else None
        if rows is not None:
            yield some, rows
        elif len(some) > 1:
            stack += [some[: len(some) // 2], some[len(some) // 2 :]]


class _Batch:
    """The rows of logs of one layout, by log and direction (a chain), and which of the logs turned out to be plain."""

    def __init__(self, logs: list[_Plain], rows: Rows, layout: LogLinear) -> None:
        self.logs = logs
        self.layout = layout
        self.rows = rows
        self.first = np.zeros(len(logs) + 1, np.int64)  # row of each log
        np.cumsum([log.text.count(b"\n") for log in logs], out=self.first[1:])
        log_of_row = np.repeat(np.arange(len(logs)), np.diff(self.first))
        stamps, op = rows.lead[:, 0], rows.lead[:, 1]
        odd = (stamps >= LAST_STAMP_MS) | (op >= len(OPS)) | (rows.indptr[1:] <= rows.indptr[:-1])
        huge = np.flatnonzero(rows.counts > repairs.IMPLAUSIBLE)
        odd[np.searchsorted(rows.indptr, huge, side="right") - 1] = True
        self.plain = np.ones(len(logs), np.bool_)
        self.plain[log_of_row[odd]] = False
        # From here on in the order of chains, and within them in that of the file; odd rows are of no direction.
        chain = log_of_row * len(OPS) + np.where(odd, 0, op).astype(np.int64)
        order = np.argsort(chain, kind="stable")
        self.indptr, flat = gather(rows.indptr, order)
        self.bins, self.counts = rows.bins[flat], np.where(rows.counts > repairs.IMPLAUSIBLE, 0, rows.counts)[flat].view(np.int64)
        self.stamps = np.where(odd, 0, stamps).astype(np.int64)[order]
        self.log_of_row = log_of_row[order]
        self.lengths = np.bincount(chain, minlength=len(logs) * len(OPS)).reshape(len(logs), len(OPS))
        self.chain_at = np.zeros(self.lengths.size + 1, np.int64)
        np.cumsum(self.lengths.reshape(-1), out=self.chain_at[1:])
        self.before = np.zeros_like(self.stamps)
        self.before[1:] = self.stamps[:-1]
        self.began = np.zeros(len(chain), np.bool_)
        self.began[self.chain_at[:-1][self.lengths.reshape(-1) > 0]] = True
        self.before[self.began] = 0
        self.plain[self.log_of_row[self.stamps < self.before]] = False
        self.notes: dict[int, list[str]] = {}

    def intervals(self, done: set[int]) -> list[Intervals[Series]]:
        """Return the intervals of the plain logs and fill their accounts; note their numbers in `done`."""
        self._check_counting()
        self._check_rows()
        chains = self._clocks()
        start, end = self._times(chains)
        tails = self._tails(chains, start, end)
        done.update(log.number for log, plain in zip(self.logs, self.plain.tolist(), strict=True) if plain)
        if not self.plain.any():
            return []
        series, table = self._series()
        rows = Intervals(self.layout, table, series, start, end, self.indptr, self.bins, self.counts)
        parts = [rows.take(np.flatnonzero(self.plain[self.log_of_row]))]
        return [*parts, concatenate(tails)] if tails else parts

    def _check_counting(self) -> None:
        """Leave out the logs whose rows may count otherwise than per interval; a first look at widths finds most of them."""
        width = np.diff(self.indptr)
        longest = self.lengths.argmax(axis=1)
        length = self.lengths[np.arange(len(self.logs)), longest]
        at = self.chain_at[:-1].reshape(self.lengths.shape)[np.arange(len(self.logs)), longest]
        sure = length < 2
        for place in range(2, repairs.ROWS_TO_JUDGE):
            there = np.flatnonzero(length > place)
            sure[there] |= width[at[there] + place] < width[at[there] + place - 2]
        for number in np.flatnonzero(self.plain & ~sure).tolist():
            context = replace(self.logs[number].context, account=Account(path=self.logs[number].context.account.path))
            rows = self._rows_of(number)
            order = [np.flatnonzero(rows.lead[:, 1] == code) for code in range(len(OPS))]
            self.plain[number] = repairs.counting(rows, order, self.layout, context) == repairs.PER_INTERVAL
            self.notes[number] = context.account.notes

    def _check_rows(self) -> None:
        """Leave out the logs of which rows may be missing."""
        periods = np.array([lost_rows.period_ms(log.context.options) for log in self.logs], np.int64)
        number = np.arange(len(self.stamps)) - np.repeat(self.chain_at[:-1], self.lengths.reshape(-1))
        late = lost_rows.levels(self.stamps, number, periods[self.log_of_row])
        in_time = np.append((row_sums(self.indptr, self.counts) > 1)[1:] | self.began[1:], [True])
        rows, firsts = np.flatnonzero(in_time), np.flatnonzero(self.began)
        chain = np.cumsum(self.began)[rows] - 1
        least, most = np.full(len(firsts), LAST_STAMP_MS), np.full(len(firsts), -LAST_STAMP_MS)
        np.minimum.at(least, chain, late[rows])
        np.maximum.at(most, chain, late[rows])
        logs = self.log_of_row[firsts]
        self.plain[logs[(periods[logs] > 0) & (most - least >= periods[logs])]] = False

    def _rows_of(self, number: int) -> Rows:
        """Return the rows of a log in the order of its file."""
        first, last = self.first[number], self.first[number + 1]
        pointers = self.rows.indptr[first : last + 1]
        entries = slice(pointers[0], pointers[-1])
        return Rows(self.rows.lead[first:last], pointers - pointers[0], self.rows.bins[entries], self.rows.counts[entries])

    def _clocks(self) -> list[Chains | None]:
        """Return how the stamps of each plain log are to be read."""
        steps = (self.stamps - self.before)[~self.began].tolist()
        bounds = np.append(0, np.cumsum(~self.began))[self.chain_at[:: len(OPS)]].tolist()
        first_ms = self.rows.lead[self.first[:-1], 0].tolist()
        clocks: list[Chains | None] = []
        for number, log in enumerate(self.logs):
            context = log.context
            if not self.plain[number]:
                clocks.append(None)
                continue
            base = clock.OWN
            if not clock.surely_own(first_ms[number], context):
                base = hist.base_in(log.text[: hist.HEAD], hist.LEADING, self.layout, context, log.path)
            chains = Chains(self.layout, hist.LEADING, context, clock.OWN)
            chains.mode = repairs.PER_INTERVAL
            chains.width_ms = clock.typical_width_ms(steps[bounds[number] : bounds[number + 1]], context.options)
            chains.width_ms = chains.width_ms or clock.DEFAULT_WIDTH_MS
            chains.unix = clock.real_time(context.options, first_ms[number])
            self.plain[number] = base == clock.OWN and chains.mask is None
            clocks.append(chains)
        return clocks

    def _times(self, chains: Sequence[Chains | None]) -> tuple[Int, Int]:
        """Return when each row starts and ends in ns; logs with a jump of the clock, or of a far time, are not plain."""
        width = np.array([0 if log_chains is None else log_chains.width_ms for log_chains in chains], np.int64)
        unix = np.array([log_chains is not None and log_chains.unix for log_chains in chains])
        zeros = [
            0 if log_chains is None else ((0 if log_chains.unix else log_chains.zero_ns) + log_chains.context.offset_ns)
            for log_chains in chains
        ]
        zero = np.array(zeros, np.int64)[self.log_of_row]
        guess = np.maximum(self.stamps - width[self.log_of_row], 0)
        start = np.where(self.began & unix[self.log_of_row], guess, self.before)
        late = self.began & ~unix[self.log_of_row] & (self.stamps > clock.NEAR_START * width[self.log_of_row])
        self.plain[self.log_of_row[late | (self.stamps - start > clock.DAY_MS)]] = False
        start, end = start * MS + zero, self.stamps * MS + zero
        for number in np.flatnonzero(self.plain).tolist() if not _are_instants(start, end) else ():
            rows = slice(self.chain_at[number * len(OPS)], self.chain_at[(number + 1) * len(OPS)])
            self.plain[number] = _are_instants(start[rows], end[rows])
        return start, end

    def _tails(self, chains: Sequence[Chains | None], start: Int, end: Int) -> list[Intervals[Series]]:
        """Return the last intervals that fio's JSON adds to plain logs, and fill the accounts of the logs."""
        there = self.lengths.reshape(-1) > 0
        group = np.repeat(np.cumsum(there) - 1, self.lengths.reshape(-1))
        pointers, bins, counts = sum_rows(self.indptr, self.bins, self.counts, group, int(there.sum()))
        samples = row_sums(pointers, counts).tolist()
        bounds, edges = pointers.tolist(), self.chain_at.tolist()
        place = (np.cumsum(there) - 1).tolist()
        tails: list[Intervals[Series]] = []
        for number, log_chains in enumerate(chains):
            if log_chains is None or not self.plain[number]:
                continue
            account = log_chains.account
            notes = list(account.notes)
            for note in self.notes.get(number, ()):
                account.note(note)
            account.accept(int(self.first[number + 1] - self.first[number]))
            for code in np.flatnonzero(self.lengths[number]).tolist():
                chain, at = number * len(OPS) + code, place[number * len(OPS) + code]
                entries = slice(bounds[at], bounds[at + 1])
                begin, last = int(start[edges[chain]]), int(end[edges[chain + 1] - 1])
                log_chains.whole(OPS[code], (begin, last), bins[entries], counts[entries])
                account.samples += samples[at]
            tail = list(log_chains.tail({}))
            if all(_are_instants(part.start_ns, part.end_ns) for part in tail):
                tails += tail
            else:  # `read` says why
                self.plain[number] = False
                account.replace(Account(path=account.path, notes=notes))
        return tails

    def _series(self) -> tuple[Int, tuple[Series, ...]]:
        """Return the series of each row as a code, and the series."""
        there = np.flatnonzero(self.lengths)
        table = tuple(
            self.logs[chain // len(OPS)].context.series.replaced(op=OPS[chain % len(OPS)], kind=COMPLETION, segment=0)
            for chain in there.tolist()
        )
        return np.repeat(np.arange(len(there)), self.lengths.reshape(-1)[there]), table


def _are_instants(start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]) -> bool:
    return not len(start_ns) or (is_instant(int(start_ns.min())) and is_instant(int(end_ns.max())))
