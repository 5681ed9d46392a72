"""fio histogram logs (`write_hist_log`): rows -> intervals, what they lack, and many small logs in one pass.

fio histogram logs: `write_hist_log` with `log_hist_msec`.

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

import math
import os
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain as joined
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ingest.core.coverage import AGAIN, MORE, SEE_INSPECT, Caveat, Missing, labels_of
from ingest.core.errors import InputError, counted, listed
from ingest.core.intervals import (
    Bool,
    Histogram,
    Int,
    Intervals,
    add_counts,
    concatenate,
    gather,
    median,
    one_row,
    row_sums,
    sum_apart,
    sum_rows,
    total,
)
from ingest.core.labels import MIXED, OPS, Series
from ingest.core.layout import LogLinear, fio_layout
from ingest.core.units import is_instant
from ingest.core.values import Value
from ingest.read import integers
from ingest.read.account import Account
from ingest.read.context import COARSEST, Context
from ingest.read.fio import clock, repairs
from ingest.read.fio.clock import MS
from ingest.read.fio.names import NANOSECONDS_SINCE, LogName, parse_log_name
from ingest.read.fio.repairs import garbage_from, masked_from
from ingest.read.formats import SMALL
from ingest.read.integers import Parser, Rows
from ingest.read.text import COMPRESSED, CRLF, CUT_OFF, NEWLINE, NULS, blocks, head, mark_of, plain_name, whole_blocks

if TYPE_CHECKING:
    from ingest.read.context import Summary


# What a fio histogram log lacks, as entries of its account: damaged bins, the last interval, rows that were rejected.


MASKED, UNWRITTEN, NO_SUMMARY, REJECTED = "damaged-bins", "last-interval", "no-summary", "rejected-rows"
LOST, LATE, DOUBTFUL, UNPLACED = "lost-rows", "late-first-row", "perhaps-compounded", "long-last-interval"
SHARED, RESET = "shared-sum", "statistics-reset"
KEEP_JSON = "keep fio's JSON (json+) in the folder of its logs"
WITH_BINS = "run fio with --output-format=json+"
NEWER = "run fio 3.17 or later, or log each I/O as well (write_lat_log)"
NO_LAST = "I/Os that completed after the last row are missing: only fio's JSON shows how many"
LONG_LAST = (
    "its last row ends long before the run: what fio's JSON counts beyond the rows is spread evenly over that time; "
    "rows were lost at the end of the log, or nothing completed"
)
LATE_FIRST_REASON = (
    "its first row is stamped long after the beginning: it is taken to be as wide as a row is; rows were lost before it, "
    "or it began so late"
)
PLACE = "their samples are missing there, or counted at the end where fio's JSON has them"
WRITTEN_OVER = (
    "jobs wrote this log over one another (fio issue 1032): what fio's JSON counts beyond the rows is spread evenly over the run"
)
RESET_REASON = (
    "latency_target reset fio's statistics: I/Os between the last row before it and the reset are in no row, "
    "and later times are early by up to a row"
)
EACH_IO = "log each I/O as well (write_lat_log) and ask with --prefer raw"
MORE_LAST = (
    "far more completed after the last rows than before, a second: fio's JSON may count jobs whose logs are not here, "
    "and they are all counted there"
)
STAGED_LAST = (
    "the jobs of this log ran one after another: what fio's JSON counts beyond the rows is placed after the last of them, "
    "and may have completed after the last row of any"
)
NO_ROW = "holds no row: what fio's JSON counts beyond the rows of the other logs of its group is spread evenly over the run"
SEVERAL = 2  # samples that a row is taken to have held for the clock of rows, where it is not known: not a stall's last one
ALL_ZERO = "all bins zero (clat_percentiles=0?)"
NOWHERE: Mapping[str, str] = {}
MOST_GAPS = 64

Span = tuple[int, int]


def extremes(summaries: Sequence[Summary], least_ns: int | None = None) -> tuple[int, int | None]:
    """Return the least latency that fio counts, or `least_ns` where only those from there on count, and the largest, if known."""
    low = min((summary.min_ns for summary in summaries), default=0) if least_ns is None else least_ns
    return low, max((max(low, summary.max_ns) for summary in summaries), default=None)


def lack(
    context: Context,
    op: str,
    span: Span,
    words: tuple[str, str, str],
    count: int | None,
    bounds: tuple[int, int | None],
    counted_as: Mapping[str, str] = NOWHERE,
    within: Span | None = None,
) -> None:
    """Keep in the account of a log that it lacks samples of an op from `span[0]` to `span[1]` in ns: `count`, if that is known.

    `words` are code, sentence and remedy, `bounds` the least and the largest latency; `counted_as` and `within` are as `Missing`
    has them.
    """
    series: Series = context.series.replaced(op="" if op in (MIXED, "all") else op, kind="completion")
    in_group = context.siblings or context.absent or "job" in counted_as
    labels = labels_of(series, unknown=context.summed_over if in_group else ())  # the sum of jobs is that of none of them
    code, *said = words
    caveat = Caveat(code, context.account.path, *said)
    context.account.lack(Missing(labels, span[0], max(span), count, *bounds, caveat, counted_as, within))


# Rows that are not in a histogram log although fio wrote them: lines that were deleted, or lost in a copy.
#
# fio's clock for rows goes on by log_hist_msec with each row, however late it was (stat.c, `hist_last`): row n is written at
# the first completion at or after h + n * log_hist_msec. A row that is late by a whole log_hist_msec or more is therefore
# followed by one that holds a single sample. So of all rows whose next row holds more, stamp - n * log_hist_msec differs by
# less than log_hist_msec; where it grows by that much or more, rows are missing. A stall leaves its rows behind it, and is
# none.
#
# Measured: 158 directions of 101 recorded logs, stalls and ramps among them: none shows a missing row; one row deleted in the
# middle of 1,701: 1,698 seen, and the others are in logs of 8 rows.


MOST = 64
LOOK_AHEAD = 16  # proofs of which the one that says best where rows are missing is taken
LOOK_BACK = 64  # rows that are carried from chunk to chunk


class Hole(NamedTuple):
    """Where rows are missing: between the stamps (file ms) of two rows of a direction, and how many."""

    after_ms: int
    before_ms: int
    rows: int


def period_ms(options: Mapping[str, str]) -> int:
    """Return log_hist_msec, 0 where the job's options are not known: then nothing shows that a row is missing."""
    option = options.get("log_hist_msec", "")
    return int(option) if option.isdigit() else 0


class Watch:
    """Looks for missing rows of one direction, chunk by chunk."""

    def __init__(self) -> None:
        self._stamps = np.empty(0, np.int64)
        self._samples = np.empty(0, np.int64)

    def holes(self, stamps: Int, samples: Int, began: Int, period: int) -> list[Hole]:
        """Return the holes that the next rows show; `began` are the places of rows at which time begins anew."""
        holes: list[Hole] = []
        for first, last in pairwise([0, *began[began > 0].tolist(), len(stamps)]):
            if first or began[:1].tolist() == [0]:
                self._stamps, self._samples = stamps[:0], samples[:0]
            self._stamps = np.concatenate([self._stamps, stamps[first:last]])
            self._samples = np.concatenate([self._samples, samples[first:last]])
            found = _holes(self._stamps, self._samples, period)
            holes += [Hole(int(self._stamps[low]), int(self._stamps[high]), rows) for low, high, rows in found]
            kept = max(0, len(self._stamps) - LOOK_BACK, *(high for _, high, _ in found))
            self._stamps, self._samples = self._stamps[kept:], self._samples[kept:]
        return holes


def _holes(stamps: Int, samples: Int, period: int) -> list[tuple[int, int, int]]:
    """Return between which rows others are missing, and how many; where there are more than `MOST` holes the last one is all."""
    in_time = np.flatnonzero(samples[1:] > 1)
    late = stamps[in_time] - in_time * period  # how late rows are, against the first of all
    holes: list[tuple[int, int, int]] = []
    while len(holes) < MOST:
        proof = np.flatnonzero(late - np.minimum.accumulate(late) >= period) if len(late) else in_time
        if not len(proof):
            return holes
        pairs = [(int(np.flatnonzero(late[:at] <= late[at] - period)[-1]), int(at)) for at in proof[:LOOK_AHEAD]]
        first, last = min(pairs, key=lambda pair: pair[1] - pair[0])
        rows = max(1, round(int(late[last] - late[first]) / period))
        # Rows are missing after the first of the pair and, as the second may be late itself, before the row that follows it.
        holes.append((int(in_time[first]), int(in_time[last]) + 1, rows))
        late[last:] -= rows * period
        late[first + 1 : last] = late[first]
    return [*holes[:-1], (holes[-1][0], len(stamps) - 1, holes[-1][2])]


# A gap is a gap: when the samples of a row that came late completed.
#
# By the same clock a row is due log_hist_msec after the one before it was, and the first completion from then on writes it and is
# its last sample. So all other samples of a row completed before it was due, one completed at its stamp, and none in between.
# When the first row of a direction was due, the rows after it say: each shows the latest that the clock can have begun.
#
# Measured with fio 3.33, stopped for 1 to 6 s: of 3,548 rows none holds another sample from the moment on at which it was due,
# and the last sample of each is stamped as the row is, 2 of them a millisecond less.


JITTER = 32  # a row that is late by less than this part of its width is not late: widths that stamps alone tell are no better
MOST_BREAKS = 64  # of the clock: with more of them the width is not what it was taken for
FAR_MS = 1 << 45  # further than stamps lie apart


def settled_ms(
    stamps: Int, samples: Int, anew: Bool, width_ms: Int | int, firsts: Int, before: tuple[int, int] = (0, 0)
) -> tuple[Int, int]:
    """Return by when all samples of each row but the last had completed, and by how much the last of the rows was late, in ms.

    `stamps` (ms) and `samples` are those of the rows of a direction, or of several after one another; `width_ms` is their
    log_hist_msec. `anew` says which rows do not follow the row before them: the first of a direction or segment, and those before
    which a line was rejected. `firsts` are the places of those that fio's clock began with and whose width fio's options say.
    `before` is the stamp of the row before the first, and by how much that was late. The stamp stands for rows that were not
    late, and where nothing is known: for other rows of `anew`, and where rows are missing before (`_holes`).
    """
    due_after = np.cumsum(np.broadcast_to(width_ms, len(stamps))) - np.cumsum(anew) * FAR_MS
    latest = np.minimum.reduceat(stamps - due_after, firsts) + due_after[firsts] if len(firsts) else firsts
    stamps, samples, anew = np.append(before[0], stamps), np.append(0, samples), np.append(True, anew)
    slack = np.maximum(np.asarray(width_ms) // JITTER, 1)
    step = np.zeros(len(stamps), np.int64)
    step[1:] = width_ms + slack
    passed, written = np.cumsum(step), stamps.copy()
    written[0] -= before[1]
    for _ in range(MOST_BREAKS):
        segment = np.cumsum(anew)
        apart = passed + segment * FAR_MS
        due = np.minimum.accumulate(written - apart) + apart
        # The row after one that is late by a whole width holds one sample: more, and the log lacks rows.
        lost = np.flatnonzero(((stamps - due)[:-1] >= step[1:]) & (samples[1:] > 1) & ~anew[1:])
        if not len(lost):
            break
        lost = lost[np.diff(segment[lost], prepend=0) > 0]
        anew[lost] = True
        written[lost] = stamps[lost]
    else:
        return stamps[1:], 0
    until = np.maximum(due[:-1] + width_ms, stamps[:-1] + 1)
    until = np.where(due[1:] < stamps[1:] - slack, until, stamps[1:])
    until = np.where(samples[1:] == 1, stamps[:-1], until)
    until = np.where(anew[1:], stamps[1:], until)
    late = (latest < (stamps[1:] - slack)[firsts]) & (samples[1:][firsts] > 1)
    until[firsts[late]] = latest[late]
    return until, int(stamps[-1] - due[-1])


def with_last_apart(rows: Intervals[Series], until_ns: Int) -> Intervals[Series]:
    """Return the rows, those whose other samples had completed before their end (by `until_ns`) as an interval and a point each.

    The point holds one sample: the longest, where that is as long as the gap or as the interval before it, in which it then had
    no room; else the one in the middle, as no latency says which it is. A row of one sample is a point.
    """
    late = np.flatnonzero(until_ns < rows.end_ns)
    if not len(late):
        return rows
    samples = rows.samples[late]
    alone, late, samples = late[samples == 1], late[samples > 1], samples[samples > 1]
    start = rows.start_ns.copy()
    start[alone] = rows.end_ns[alone]
    rows = rows.at(start, rows.end_ns)
    if not len(late):
        return rows
    highest = rows.bins[rows.indptr[late + 1] - 1]
    least = np.minimum(rows.end_ns - until_ns, until_ns - rows.start_ns)[late]
    reaches = (rows.layout.edges[highest + 1] > least) | (highest == rows.layout.bins - 1)
    rank = np.where(reaches, samples, (samples + 1) // 2)
    counted = np.append(0, np.cumsum(rows.counts))
    last = np.searchsorted(counted, counted[rows.indptr[late]] + rank) - 1
    counts = rows.counts.copy()
    counts[last] -= 1
    ends = rows.indptr[late + 1]
    bins, counts = np.insert(rows.bins, ends, rows.bins[last]), np.insert(counts, ends, 1)
    indptr = np.append(0, np.cumsum(np.insert(np.diff(rows.indptr), late + 1, 1)))
    row = np.insert(np.arange(len(rows)), late + 1, late)
    points = late + 1 + np.arange(len(late))
    start, end = rows.start_ns[row], rows.end_ns[row]
    start[points], end[points - 1] = end[points], until_ns[late]
    kept = np.append(0, np.cumsum(counts > 0))
    columns = kept[indptr], bins[counts > 0], counts[counts > 0]
    return Intervals(rows.layout, rows.table, rows.series[row], start, end, *columns)


# Rows of a fio histogram log -> intervals: chains per direction, segments, and the repairs that fio's faults need.
#
# A chain is the rows of one direction in file order; a segment is a stretch of it in which time does not run back. Each
# chain is a series (its op), each segment a series of its own.


HIDDEN_GROWTH, MOST_GROWTH = 1.3, 3  # of completions a second after the last rows, against those before
NEWEST = 3  # rows, which show how fast a job was at the end
LONGEST_LAST = 2  # rows that a last interval may be long: it is a part of one, and the row before it may come late
RARE = 10
TOGETHER_MS = 100  # fio looks every 100 ms which jobs may begin
COMPLETION = "completion"


# Rows that another log of the run holds, too, as where a part of a log was copied under another name.
#
# Of stretches of rows that no other I/Os can give by chance a number is kept, made of their stamps and counts. The more bins a
# row counts in, and the more it counts there, the less likely another one is the same: of c completions at random in a bin, two
# counts agree once in 2 * sqrt(pi * c) times. The bin that holds most is left out (an even load fills it alike each time), and so
# are stretches of which two rows are alike. Which stretches are kept is decided by the stamp of the first, the same in each log.
# Of a row some bins are enough, evenly among its own.

ROWS_TOGETHER, BINS_OF_ROW, LEAST_BITS, MOST_KEPT = 4, 16, 48, 64
MIXED_BY = tuple(np.array(number, np.uint64) for number in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xFF51AFD7ED558CCD))


class Copied:
    """What other logs of a run are held against: numbers of stretches of rows, see `stated.in_both`."""

    def __init__(self) -> None:
        self.every, self._samples, self._rows = 1, 0, 0
        self._kept: dict[int, int] = {}

    def add(self, op: str, stamps: Int, rows: tuple[Int, Int, Int], samples: int) -> None:
        """Take rows of a direction in their order: row pointers, bins and counts of each stamp, and how much they hold."""
        self.add_each([self], [op], (np.zeros(1, np.int64), np.array([len(stamps)])), stamps, rows, [samples])

    @staticmethod
    def add_each(
        logs: Sequence[Copied],
        ops: Sequence[str],
        bounds: tuple[Int, Int],
        stamps: Int,
        rows: tuple[Int, Int, Int],
        samples: Sequence[int],
    ) -> None:
        """Take the rows of several directions, those of direction i from bounds[0][i] to bounds[1][i]; see `add`."""
        filled = np.flatnonzero(rows[0][1:] > rows[0][:-1])
        stamps, edges = stamps[filled], [*zip(*(np.searchsorted(filled, each).tolist() for each in bounds), strict=True)]
        firsts: list[Int] = []
        every: list[int] = []
        with np.errstate(over="ignore"):
            chosen_by = (stamps.astype(np.uint64) * MIXED_BY[0]) >> np.uint64(32)
            for log, (begin, end) in zip(logs, edges, strict=True):
                mine, own = chosen_by[begin : max(begin, end + 1 - ROWS_TOGETHER)], log.every
                while len(begins := np.flatnonzero((mine & np.uint64(own - 1)) == 0)) > MOST_KEPT:
                    own *= 2
                firsts.append(begins + begin)
                every.append(own)
            if not len(first := np.concatenate([filled[:0], *firsts])):
                return
            numbers, sure = _numbers(filled, first, stamps, rows)
            numbers += np.repeat(np.array([crc32(op.encode()) for op in ops], np.uint64), [*map(len, firsts)])
        stretches = [*zip(numbers.tolist(), chosen_by[first].tolist(), sure.tolist(), strict=True)]
        at = 0
        for log, some, own, (begin, end), held in zip(logs, map(len, firsts), every, edges, samples, strict=True):
            log.take(stretches[at : at + some], own, end - begin, held)
            at += some

    def take(self, stretches: Sequence[tuple[int, int, bool]], every: int, rows: int, samples: int) -> None:
        """Take stretches (number, what it is chosen by, whether it is sure) of so many rows and samples."""
        self.every = max(self.every, every)
        if not (chosen := [each for each in stretches if each[1] % self.every == 0]):
            return
        self._rows += rows
        self._samples += samples
        self._kept.update((number, by) for number, by, sure in chosen if sure)
        while len(self._kept) > MOST_KEPT:
            self.every *= 2
            self._kept = {number: by for number, by in self._kept.items() if by % self.every == 0}

    def finish(self, account: Account, kind: str) -> None:
        """Put it into the account, with the kind of the log and how many I/Os each stretch stands for."""
        if self._kept:
            sums = b64encode(np.array(sorted(self._kept), "<u8").tobytes()).decode()
            each = max(1, self.every * self._samples // self._rows)
            account.stretches.append({"path": account.path, "kind": kind, "every": each, "sums": sums})


def _numbers(filled: Int, first: Int, stamps: Int, rows: tuple[Int, Int, Int]) -> tuple[NDArray[np.uint64], Bool]:
    """Return a number of each stretch of rows, which begins with a `first` of those that are `filled`, and whether it is sure."""
    taken = (first[:, None] + np.arange(ROWS_TOGETHER)).ravel()
    of_row = filled[taken]
    held = (rows[0][of_row + 1] - rows[0][of_row])[:, None]
    some = np.arange(BINS_OF_ROW) * held // np.minimum(held, BINS_OF_ROW)
    picked = (rows[0][of_row][:, None] + some)[some < held]
    indptr = np.append(0, np.cumsum(np.minimum(held, BINS_OF_ROW)))
    bins, counts = rows[1][picked].astype(np.uint64), rows[2][picked]
    numbers = ((bins * MIXED_BY[0]) ^ (counts.astype(np.uint64) * MIXED_BY[1])) * MIXED_BY[2]
    row_numbers = np.add.reduceat(numbers ^ (numbers >> np.uint64(29)), indptr[:-1])
    bits = 1 + np.log2(np.pi * counts) / 2
    surprise = np.add.reduceat(bits, indptr[:-1]) - np.maximum.reduceat(bits, indptr[:-1])
    each = row_numbers.reshape(len(first), ROWS_TOGETHER)
    unlike = (np.diff(np.sort(each, axis=1), axis=1) != 0).all(axis=1)
    sure = unlike & (surprise.reshape(each.shape).sum(axis=1) >= LEAST_BITS)
    dated = (each ^ (stamps[taken].reshape(each.shape).astype(np.uint64) * MIXED_BY[2])) * MIXED_BY[1]
    return (dated * np.cumprod(np.full(ROWS_TOGETHER, MIXED_BY[0]))).sum(axis=1), sure


class Chain:
    """What one direction carries from chunk to chunk: the last stamp (file ms), the segment, the sums so far."""

    def __init__(self, op: str, bins: int) -> None:
        self.op, self.bins = op, bins
        self.stamp, self.segment = 0, -1
        self.late_ms = 0
        self.start_ns: int | None = None
        self.end_ns = 0
        self.lost, self.passed = 0, 0
        self.closed = False  # whether fio's JSON has all that the rows lack
        self.newest: tuple[Int, Int, Int] | None = None  # samples, start and end in ns of some last rows
        self.gaps: list[Span] = []
        self.holes: list[Span] = []
        self.late: list[Span] = []
        self.resets: list[Span] = []
        self.watch = Watch()
        self.base_ns: Int = np.zeros(1, np.int64)  # epoch ns that the last row's stamp counts from
        self.total: Int = np.zeros(bins, np.int64)
        self.of_stages: dict[int, Int] = {}  # the same of each stage of jobs, and when their last rows end
        self.until_ns: dict[int, int] = {}
        self.repair = repairs.Repair(bins)

    @property
    def last(self) -> LastRow:
        """Return its last row."""
        if self.newest is None:
            return LastRow(self.end_ns)
        _, start_ns, end_ns = self.newest
        return LastRow(self.end_ns, int(median(end_ns - start_ns)), int(self.total.sum()))


class _Placed(NamedTuple):
    """Rows of a direction with their stamps and starts in ms of the file, lines, segments and their zeros in ns.

    `old` are of an older run, `began` begin a segment, `jumped` are the places of rows that were narrowed.
    """

    rows: Rows
    stamps: Int
    lines: Int
    start: Int
    segment: Int
    base: Int
    old: Bool
    began: Bool
    jumped: Int

    def take(self, places: Int) -> _Placed:
        """Return some rows; what a row begins that is left out begins with the next one that stays."""
        began = np.diff(np.cumsum(self.began)[places], prepend=0) > 0
        stamps, lines, start = self.stamps[places], self.lines[places], self.start[places]
        segment, base, old = self.segment[places], self.base[places], self.old[places]
        jumped = np.flatnonzero(np.isin(places, self.jumped))
        return _Placed(repairs.take(self.rows, places), stamps, lines, start, segment, base, old, began, jumped)


class Stage(NamedTuple):
    """Jobs of a shared log that ran together, from when to when in ns."""

    begin_ns: int
    end_ns: int
    jobs: tuple[Mapping[tuple[str, str], Summary], ...]


def stages_of(context: Context) -> list[Stage]:
    """Return the stages in which jobs of a shared log ran, one after another; none where that is unknown, or some overlap."""
    found: list[Stage] = []
    for (begin, end), job in sorted(zip(context.stages or (), context.jobs, strict=False), key=lambda each: each[0]):
        begin_ns, end_ns = begin + context.offset_ns, end + context.offset_ns
        if found and begin_ns - found[-1].begin_ns < TOGETHER_MS * MS:
            begin_ns, last_ns, jobs = found.pop()
            found.append(Stage(begin_ns, max(last_ns, end_ns), (*jobs, job)))
        else:
            found.append(Stage(begin_ns, end_ns, (job,)))
    return found if all(one.end_ns < other.begin_ns for one, other in pairwise(found)) else []


class Chains:
    """Builds intervals from the rows of one log, chunk by chunk, and the residual interval at its end."""

    def __init__(self, layout: LogLinear, leading: int, context: Context, base: clock.Base) -> None:
        self.layout = layout
        self.context = context
        self.account = context.account
        self.base_ms = base.ms
        self.zero_ns = clock.zero_ns(context, base.ms)
        if base.note:
            context.account.note(base.note)
        self.directed = leading > 1
        self.mask = repairs.masked_from(layout, context.version)
        self.mode: str | None = None
        self.unix = False
        self.width_ms = self.interval_ms = 0
        self.period_ms = period_ms(context.options) if context.stages is None else 0  # between jobs there are no rows
        self.stages = stages_of(context)
        self.chains: dict[str, Chain] = {}
        self.copied = Copied()
        self._told: dict[int, str] = {}  # of rejected lines whose op is known

    def whole(self, op: str, span: Span, bins: Int, counts: Int, newest: tuple[Int, Int, Int]) -> None:
        """Take all rows of a direction as read: from when to when they are in ns, and their sum. None of them was rejected.

        `newest` are samples, start and end in ns of some last rows.
        """
        chain = self.chains[op] = Chain(op, self.layout.bins)
        chain.segment, chain.start_ns, chain.end_ns = 0, span[0], max(0, span[1])
        chain.total[bins], chain.newest = counts, newest

    def intervals(self, parts: Sequence[tuple[Rows, Int]]) -> Iterator[Intervals[Series]]:
        """Yield the intervals of rows with their line numbers, in file order within each direction."""
        rows, lines = integers.concatenate([part for part, _ in parts]), np.concatenate([numbers for _, numbers in parts])
        kept = self._plausible(rows, lines)
        kept = kept[self._legible(rows, lines)[kept]]
        if len(kept) < len(rows):
            rows, lines = repairs.take(rows, kept), lines[kept]
        filled = np.diff(rows.indptr) > 0
        if self.mode is None and not filled.any():
            self.account.reject(ALL_ZERO, lines[~np.isin(lines, self.account.rejected_lines)].tolist())
            return
        stamps = rows.lead[:, 0].astype(np.int64)
        if self.base_ms:
            stamps = np.maximum(stamps - self.base_ms, 0)
        ops = rows.lead[:, 1] if self.directed else np.zeros(len(rows), np.uint64)
        order = [np.flatnonzero(ops == code) for code in range(len(OPS))]
        in_full = order if filled.all() else [picked[filled[picked]] for picked in order]
        samples = row_sums(rows.indptr, rows.counts.view(np.int64))
        if self.mode is None:
            self._look(rows, stamps, samples, in_full)
        if self.mask is None:
            self.mask = repairs.garbage_from(rows, stamps, in_full, self.layout, self.context)
            if self.mask is not None and self.chains:
                late = f"bins from 786 us up are corrupt from line {lines[0]} on at the latest; earlier ones look whole"
                self.account.note(late)
        for code, chain_rows in enumerate(order):
            if len(chain_rows):
                op = OPS[code] if self.directed else "all"
                chain = self.chains.get(op) or self.chains.setdefault(op, Chain(op, self.layout.bins))
                part = self._chain(
                    chain, repairs.take(rows, chain_rows), stamps[chain_rows], samples[chain_rows], lines[chain_rows]
                )
                if part is not None and len(part):
                    yield part

    def _plausible(self, rows: Rows, lines: Int) -> Int:
        """Return the places of the rows whose leading cells can be; others are rejected."""
        direction_ok = rows.lead[:, 1] < len(OPS) if self.directed else np.ones(len(rows), np.bool_)
        stamp_ok = rows.lead[:, 0] < clock.LAST_STAMP_MS
        if direction_ok.all() and stamp_ok.all():
            return np.arange(len(rows))
        new = ~np.isin(lines, self.account.rejected_lines)
        self.account.reject(clock.DIRECTION, lines[~direction_ok & new].tolist())
        self.account.reject(clock.STAMP, lines[direction_ok & ~stamp_ok & new].tolist())
        return np.flatnonzero(direction_ok & stamp_ok)

    def _legible(self, rows: Rows, lines: Int) -> Bool:
        """Return which rows may be taken: of the lines that were rejected, those whose leading cells fit what is around them.

        They have the block size of the row before them, and lie in time between that and the row after them: else they may be
        damaged, too, and the line may be of any direction.
        """
        legible = np.ones(len(rows), np.bool_)
        if not self.account.rejected_lines:
            return legible
        rejected = np.isin(lines, self.account.rejected_lines)
        sound = np.flatnonzero(~rejected)
        for place in np.flatnonzero(rejected).tolist():
            after = int(np.searchsorted(sound, place))
            between = 0 < after < len(sound)
            around = rows.lead[[sound[after - 1], place, sound[after]]] if between else rows.lead[:0]
            legible[place] = between and around[0, 2] == around[1, 2] and around[0, 0] <= around[1, 0] <= around[2, 0]
        return legible

    def _look(self, rows: Rows, stamps: Int, samples: Int, order: list[Int]) -> None:
        """Decide from the first chunk how stamps and counts are to be read."""
        options = self.context.options
        steps = np.concatenate([np.diff(stamps[picked]) for picked in order])
        several = np.concatenate([samples[picked[1:]] != 1 for picked in order])
        self.width_ms = clock.typical_width_ms(steps, options) or clock.DEFAULT_WIDTH_MS
        self.interval_ms = clock.interval_ms(steps, several, self.width_ms, options)
        self.unix = not self.base_ms and clock.real_time(options, int(stamps[0]))
        self.mode = repairs.counting(rows, order, self.layout, self.context)
        if self.mode != repairs.PER_INTERVAL:
            self.account.note(f"counts are {self.mode}: differenced")

    def _chain(self, chain: Chain, rows: Rows, stamps: Int, samples: Int, lines: Int) -> Intervals[Series] | None:
        before = np.concatenate([[chain.stamp], stamps[:-1]])
        began = stamps < before
        began[0] |= chain.segment < 0
        segment = chain.segment + np.cumsum(began)
        of_a_job = began & (segment >= self._older_segments(chain.op)) & ((segment == 0) | bool(self.context.segments))
        pieces = pairwise([*np.flatnonzero(of_a_job).tolist(), len(stamps)])
        firsts = {piece[0]: self._first_begins_ms(chain, stamps, samples, piece, int(segment[piece[0]])) for piece in pieces}
        start, jumped = clock.row_starts(before, stamps, began, self.width_ms, firsts, unix=self.unix)
        last_ms, chain.stamp, chain.segment = chain.stamp, int(stamps[-1]), int(segment[-1])
        old = segment < self._older_segments(chain.op)
        base = (0 if self.unix else self.zero_ns) + self.context.offset_ns + np.where(segment > 0, self.context.restart_ns, 0)
        placed = _Placed(rows, stamps, lines, start, segment, base, old, began, jumped)
        filled = np.diff(rows.indptr) > 0
        if filled.all():
            return self._taken(chain, placed, placed, filled, last_ms)
        self._reject_empty(chain, placed, np.flatnonzero(~filled))
        full = placed.take(np.flatnonzero(filled))
        return self._taken(chain, full, placed, filled, last_ms) if len(full.stamps) else None

    def _reject_empty(self, chain: Chain, placed: _Placed, empty: Int) -> None:
        """Reject the rows of a direction that count nothing: they spoil it alone, and its next row begins at their stamps."""
        lines = placed.lines[empty]
        self.account.reject(ALL_ZERO, lines[~np.isin(lines, self.account.rejected_lines)].tolist())
        self._told.update(dict.fromkeys(lines.tolist(), chain.op))
        mine = empty[~placed.old[empty]]
        starts, ends = ((edge * MS + placed.base)[mine].tolist() for edge in (placed.start, placed.stamps))
        chain.gaps += zip(starts, ends, strict=True)

    def _taken(self, chain: Chain, full: _Placed, every: _Placed, filled: Bool, last_ms: int) -> Intervals[Series] | None:
        """Return the intervals of the rows of a direction that count something; `filled` says which of `every` they are.

        `last_ms` is the stamp of the row before all of them.
        """
        rows, stamps, lines, start, segment, base, old, began, jumped = full
        reasons: dict[str, Int] = {"clock jump: the row is taken for as wide as its neighbours": jumped}
        if self.mask is not None:
            reasons[repairs.MASKED] = np.arange(len(rows))
            rows = repairs.masked(rows, self.mask)
        gap, after_damage = self._after_rejected(chain, lines)
        repaired = chain.repair.apply(rows, began, gap, self.mode or repairs.PER_INTERVAL)
        reasons.update(repaired.reasons)
        for place in repaired.reasons.get(repairs.WRAPPED, np.empty(0, np.int64)).tolist():
            before = int(stamps[place - 1]) * MS + int(base[place - 1]) if place else chain.end_ns
            chain.resets.append((before, before + self.width_ms * MS))
        bad = np.zeros(len(rows), np.bool_)
        for reason, places in repaired.rejected.items():
            self.account.reject(reason, lines[places].tolist())
            bad[places] = True
        self.account.reject("row of an older run that was appended to", lines[old & ~bad].tolist())
        self._told.update(dict.fromkeys(lines[bad | old].tolist(), chain.op))
        chain.lost += int((bad | old).sum())  # what was rejected here spoils no row of a later chunk
        empty_handed = (bad | after_damage) & ~old
        chain.gaps += zip((start * MS + base)[empty_handed].tolist(), (stamps * MS + base)[empty_handed].tolist(), strict=True)
        samples = row_sums(repaired.indptr, repaired.counts)
        if self.period_ms:
            chain.base_ns = every.base[-1:]
            held = np.full(len(filled), SEVERAL)
            held[filled] = samples
            self._look_for_holes(chain, every.stamps, held, np.flatnonzero(every.began), every.base)
        unsure = bad | (np.isin(np.arange(len(rows)), jumped) if len(jumped) else False)
        anew, firsts = began | gap | after_damage | unsure, np.flatnonzero(began & ~unsure & (self.period_ms > 0))
        until, chain.late_ms = settled_ms(stamps, samples, anew, self.interval_ms, firsts, (last_ms, chain.late_ms))
        kept = np.flatnonzero(~bad & ~old)
        self._count(kept, lines, reasons)
        if not len(kept):
            return None
        indptr, bins, counts = repaired.indptr, repaired.bins, repaired.counts
        if len(kept) < len(rows):
            indptr, flat = gather(indptr, kept)
            bins, counts = bins[flat], counts[flat]
        self._hold(chain, stamps[kept], (indptr, bins, counts), total(samples[kept]))
        base = base[kept]
        start_ns, end_ns = start[kept] * MS + base, np.maximum(stamps[kept], start[kept]) * MS + base
        start_ns = self._by_stage(chain, start_ns, end_ns, (indptr, bins, counts)) if self.stages else start_ns
        chain.newest = samples[kept][-LOOK_AHEAD:], start_ns[-LOOK_AHEAD:], end_ns[-LOOK_AHEAD:]
        first_ns = int(start_ns.min())
        chain.start_ns = first_ns if chain.start_ns is None else min(chain.start_ns, first_ns)
        chain.end_ns = max(chain.end_ns, int((stamps[kept] * MS + base).max()))
        lowest, highest = int(segment[kept[0]]), int(segment[kept[-1]])
        series = self.context.series.replaced(op=chain.op, kind=COMPLETION)
        table = tuple(series.replaced(segment=code) for code in range(lowest, highest + 1))
        chunk = Intervals(self.layout, table, segment[kept] - lowest, start_ns, end_ns, indptr, bins, counts)
        if self.mask is None:  # else what completed last may be in a damaged bin
            chunk = with_last_apart(chunk, np.maximum(until[kept], start[kept]) * MS + base)
        empty = np.diff(indptr) == 0
        return chunk.take(np.flatnonzero(~empty)) if empty.any() else chunk

    def _hold(self, chain: Chain, stamps: Int, rows: tuple[Int, Int, Int], samples: int) -> None:
        """Add rows (row pointers, bins, counts) of so many samples to what the log holds."""
        add_counts(chain.total, rows[1], rows[2])
        self.account.samples += samples
        self.copied.add(chain.op, stamps, rows, samples)

    def _by_stage(self, chain: Chain, start_ns: Int, end_ns: Int, rows: tuple[Int, Int, Int]) -> Int:
        """Keep what rows of a direction hold by the stage of its jobs; return when they start: none before its stage does."""
        edges = [(one.end_ns + other.begin_ns) // 2 for one, other in pairwise(self.stages)]
        stage_of = np.searchsorted(edges, end_ns)
        indptr, bins, counts = rows
        for number in np.unique(stage_of).tolist():
            mine = stage_of == number
            entries = np.repeat(mine, np.diff(indptr))
            np.add.at(chain.of_stages.setdefault(number, np.zeros_like(chain.total)), bins[entries], counts[entries])
            chain.until_ns[number] = max(chain.until_ns.get(number, 0), int(end_ns[mine].max()))
        return np.clip(start_ns, np.array([stage.begin_ns for stage in self.stages])[stage_of], end_ns)

    def _after_rejected(self, chain: Chain, lines: Int) -> tuple[Bool, Bool]:
        """Return before which rows of a direction a line was rejected that may be of it, and before which one of any."""
        if not self.account.rejected_lines:
            return np.zeros(len(lines), np.bool_), np.zeros(len(lines), np.bool_)
        own = (line for line in self.account.rejected_lines if self._told.get(line, chain.op) == chain.op)
        lost, damaged = np.array([*own], np.int64), self._damaged()
        gap = np.diff(np.searchsorted(lost, lines), prepend=chain.lost) > 0
        after_damage = np.diff(np.searchsorted(damaged, lines), prepend=chain.passed) > 0
        chain.lost, chain.passed = len(lost), len(damaged)
        return gap, after_damage

    def _look_for_holes(self, chain: Chain, stamps: Int, samples: Int, began: Int, base: Int) -> None:
        """Keep where rows of a direction are missing that no line of the log stands for."""
        for hole in chain.watch.holes(stamps, samples, began, self.period_ms):
            zero = int(base[min(int(np.searchsorted(stamps, hole.before_ms)), len(base) - 1)])
            chain.holes.append((hole.after_ms * MS + zero, hole.before_ms * MS + zero))
            self.account.note(
                f"{chain.op}: {counted(hole.rows, 'row')} of {self.period_ms} ms missing between the stamps {hole.after_ms} and "
                f"{hole.before_ms}: fio wrote more rows than the log holds"
            )

    def _damaged(self) -> Int:
        """Return the lines that were rejected because of damage before their op was known, in order."""
        return np.array([line for line in self.account.rejected_lines if line not in self._told], np.int64)

    def _count(self, kept: Int, lines: Int, reasons: dict[str, Int]) -> None:
        taken = {reason: np.intersect1d(places, kept, assume_unique=True) for reason, places in reasons.items() if len(places)}
        repaired = len(set().union(*(places.tolist() for places in taken.values())))
        if repaired:
            self.account.repair(repaired, {reason: lines[places].tolist() for reason, places in taken.items() if len(places)})
        self.account.accept(len(kept) - repaired)

    def _older_segments(self, op: str) -> int:
        """Return how many segments of a direction belong to older runs: all but the last ones that fio's JSON knows jobs for."""
        segments = self.context.segments.get(op, 0)
        known = self.context.grouped or sum((op, COMPLETION) in job or (MIXED, COMPLETION) in job for job in self.context.jobs)
        return max(0, segments - known) if segments and known else 0

    def tail(self, siblings: Mapping[str, Logged]) -> Iterator[Intervals[Series]]:
        """Yield what fio's json+ holds beyond the log's rows, as a last interval of each direction, and keep the sums.

        fio never writes the last partial interval of a histogram log. The difference is exact where every bin of it is
        zero or more; else the log and the JSON are not of one run, and the account says so. `siblings` are the sums of
        the other logs where the JSON has but one sum for all. Where fio counted all ops together (unified_rw_reporting)
        the last interval is of no one op: it is `mixed`.
        """
        self.copied.finish(self.account, self.context.series.kind)
        if self.mask is not None and not self.context.jobs and not self.context.grouped:
            self.account.note(repairs.LOST_UNKNOWN)
        if self.context.zero.origin in clock.UNKNOWN:
            self.account.note(f"the start of the run is unknown ({self.context.zero.origin}): {clock.REMEDY}")
        completion = {op for job in self.context.jobs for op, kind in job if kind == COMPLETION}
        for op in sorted(set(self.chains) - completion - {"all"} if completion and MIXED not in completion else ()):
            held = int(self.chains[op].total.sum())
            self.account.note(f"{op}: the log holds {held} samples, fio's JSON none of this job: {repairs.NOT_OF_ONE}")
        for op in sorted(completion | set(self.chains)):
            chain = self.chains.setdefault(op, Chain(op, self.layout.bins))
            if len(self._damaged()) > chain.passed and chain.segment >= 0:
                chain.gaps.append((chain.end_ns, self._run_end(chain)))
            part = self._residual(chain, siblings) if op in completion else None
            if part is not None and self.period_ms:  # more completed after the last row, so it was not late either
                self._look_for_holes(chain, np.array([chain.stamp]), np.array([SEVERAL]), np.empty(0, np.int64), chain.base_ns)
            span = (int(part.start_ns[0]), int(part.end_ns[0])) if part is not None else (0, 0)
            if part is not None and (gaps := chain.gaps or chain.holes or chain.late):
                gaps.append(span)  # what these rows held cannot be separated from what was never written
            elif part is not None and (why := self._unplaced(chain, part, siblings)) is not None:
                span = (self._first_start(chain) if self.context.stages is not None else span[0]), span[1]
                words, within = (UNPLACED, f"{op}: {why[0]}", why[1]), self._whole(chain, [span])
                lack(self.context, op, span, words, None, extremes(self._summaries(op)), within=within)
            self._lack(chain, all_there=chain.closed and part is None)
            if part is not None:
                self._keep_shared(op, part)
                np.add.at(chain.total, part.bins, part.counts)
                self.account.samples += int(part.counts.sum())
                yield part
            self.account.last[op] = chain.last
            filled = np.flatnonzero(chain.total)
            self.account.totals[op] = Histogram(self.layout, filled, chain.total[filled])
            self.account.saturated += int(chain.total[-1])

    def _unplaced(self, chain: Chain, part: Intervals[Series], siblings: Mapping[str, Logged]) -> tuple[str, str] | None:
        """Return why it is not known when the samples of a last interval completed, and the remedy; None where it is known."""
        if self._written_over(chain.op):
            return WRITTEN_OVER, ""
        if self.context.stages is not None:
            return None if self._rests(chain) else (STAGED_LAST, "")
        if empty := next((held.empty for held in siblings.values() if held.empty), None):
            return f"{listed(empty)} {NO_ROW}", AGAIN
        if self._is_more_than_rows(chain, part, siblings):
            return MORE_LAST, AGAIN
        ((_, *span),) = part.reach()
        return (LONG_LAST, AGAIN) if self._is_cut(self._last_rows(chain, siblings), *span) else None

    def _is_cut(self, rows: Sequence[LastRow], begin_ns: int, end_ns: int) -> bool:
        """Return whether a log ends longer before a moment than its rows explain; without a row it began at `begin_ns`."""
        least_ns = MS * (self.period_ms or self.width_ms)
        return any(end_ns - (row.end_ns or begin_ns) > LONGEST_LAST * max(row.width_ns, least_ns) for row in rows)

    def _last_rows(self, chain: Chain, siblings: Mapping[str, Logged]) -> list[LastRow]:
        """Return the last rows of an op of all logs of a sum; of jobs that did other operations alone none."""
        rows = [row for op, held in siblings.items() if chain.op in (op, MIXED) for row in held.last]
        own = [each.last for each in self.chains.values() if chain.op in (each.op, MIXED)]
        last = max(own, default=LastRow(0))
        return [*rows, last] if last.end_ns or not rows else rows

    def _is_more_than_rows(self, chain: Chain, part: Intervals[Series], siblings: Mapping[str, Logged]) -> bool:
        """Return whether a last interval holds more than its time explains: what jobs did whose logs are not here.

        fio may make one entry of several sections (issue 2132), so that its JSON does not show how many jobs there were. Where it
        surely tells of fewer than have logs, less is taken for too much.
        """
        jobs = 1 + len(self.context.siblings)
        growth = HIDDEN_GROWTH if 0 < self.context.grouped < jobs else MOST_GROWTH
        span, before = int(part.end_ns[0] - part.start_ns[0]), int(part.start_ns[0]) - self._first_start(chain)
        if before <= 0 or self.context.segments:  # a shared log holds the rows of all jobs
            return False
        span = max(span, MS * (self.period_ms or self.width_ms) // 4)  # I/Os come in bursts, and ends are known to some ms
        likely = growth * int(self._logged(chain, siblings).sum()) * span / before
        depth = self.context.options.get("iodepth", "")
        in_flight = jobs * (int(depth) if depth.isdigit() else 1)
        if int(part.counts.sum()) <= likely + 3 * math.sqrt(likely) + in_flight:
            return False
        likely *= self._growth(chain)
        return int(part.counts.sum()) > likely + 3 * math.sqrt(likely) + in_flight

    def _growth(self, chain: Chain) -> float:
        """Return how many times as fast as all rows of a direction the fastest of the last ones is, at least 1."""
        if chain.newest is None:
            return 1
        samples, start_ns, end_ns = chain.newest
        width_ns = end_ns - start_ns
        wide = np.flatnonzero(2 * width_ns >= max(self.width_ms, 1) * MS)[-NEWEST:]
        fastest = float((samples[wide] / width_ns[wide]).max(initial=0))
        return max(1, fastest * (chain.end_ns - self._first_start(chain)) / max(int(chain.total.sum()), 1))

    def _keep_shared(self, op: str, part: Intervals[Series]) -> None:
        """Keep that rows of one job, or of one op, may lack what fio counts of all of them together."""
        of_others = bool(self.context.siblings) or part.table[0].job != self.context.series.job
        counted_as = {
            **dict.fromkeys(self.context.summed_over if of_others else (), ""),
            **({"op": MIXED} if op == MIXED else {}),
        }
        if counted_as:
            together = " and ".join(f"{name}s" for name in ("job", "op") if name in counted_as)
            sentence = f"{op}: fio counts all {together} together: I/Os after the last rows may be of any of them"
            ((_, *span),), count = part.reach(), int(part.counts.sum())
            lack(self.context, op, (span[0], span[1]), (SHARED, sentence, ""), count, extremes(self._summaries(op)), counted_as)

    def _written_over(self, op: str) -> bool:
        """Return whether jobs wrote their shared log over one another, as those of fio --client do (issue 1032)."""
        shared = self.context.through_client and bool(self.context.segments)
        return shared and self.context.segments.get(op, 0) < len(self._summaries(op))

    def _whole(self, chain: Chain, spans: Sequence[Span]) -> Span | None:
        """Return from when to when all that fio counts of an op completed, None where its JSON and the rows do not agree.

        Whether the rows of a whole group agree with it is for the log that carries its remainder to say.
        """
        if not chain.closed and not (self.context.grouped and self.context.group and not self.context.jobs):
            return None
        begins, ends = zip(*spans, strict=True)
        return min(self._first_start(chain), *begins), max(self._run_end(chain), *ends)

    def _lack(self, chain: Chain, *, all_there: bool) -> None:
        """Keep what the rows of an op lack where fio's JSON does not say how much, and when it completed where that does.

        Where rows hold all that it counts (`all_there`), no row of theirs is missing; when a late first one began is a guess.
        """
        told, any_latency = extremes(self._summaries(chain.op)), (0, None)
        for code, spans, sentence, remedy in (
            (REJECTED, chain.gaps, "rows were rejected: their samples are missing", ""),
            (LOST, chain.holes, f"rows that fio wrote are not in the log: {PLACE}", AGAIN),
            (LATE, chain.late, LATE_FIRST_REASON, AGAIN),
            (RESET, chain.resets, RESET_REASON, EACH_IO),
        ):
            gaps = [] if all_there and code != LATE else sorted(set(spans))
            within = self._whole(chain, gaps) if gaps and code != RESET else None
            if len(gaps) > MOST_GAPS:
                gaps = [(gaps[0][0], max(high for _, high in gaps))]
            for gap in gaps:
                bounds = told if code != RESET else any_latency  # fio's JSON counts only what came after it
                lack(self.context, chain.op, gap, (code, f"{chain.op}: {sentence}", remedy), None, bounds, within=within)
        if self.context.jobs or self.context.grouped or chain.segment < 0:
            return
        span = self._first_start(chain), chain.end_ns
        if self.mask is not None:
            edge = int(self.layout.edges[self.mask])
            lack(self.context, chain.op, span, (MASKED, repairs.LOST_UNKNOWN, NEWER), None, (edge, None))
        if repairs.DOUBTFUL in self.account.notes:
            lack(self.context, chain.op, span, (DOUBTFUL, repairs.DOUBTFUL, ""), None, (0, None))
        span = chain.end_ns, self._run_end(chain)
        lack(self.context, chain.op, span, (NO_SUMMARY, NO_LAST, KEEP_JSON), None, (0, None))

    def _summaries(self, op: str) -> list[Summary]:
        return [job[op, COMPLETION] for job in self.context.jobs if (op, COMPLETION) in job]

    def began_ms(self) -> int | None:
        """Return when the job began, in the time of stamps; None of epoch stamps where fio's JSON does not say so well enough."""
        if not self.unix:
            return 0
        known = (self.context.jobs or self.context.grouped) and not self.context.through_client and self.context.stages is None
        return self.zero_ns // MS if known else None

    def _first_begins_ms(self, chain: Chain, stamps: Int, samples: Int, places: Span, segment: int) -> int | None:
        """Return where the first of the rows of a segment begins, in the time of stamps; None where nothing says when."""
        began = self.began_ms()
        if began is None:
            return None
        earliest = self.context.spans.get((chain.op, COMPLETION), (0, 0))[0] // MS
        mine = slice(places[0], min(places[1], places[0] + MOST_GAPS))
        stamps, samples = stamps[mine] - began, samples[mine] * (self.mode == repairs.PER_INTERVAL)
        width_ms = self.period_ms or clock.dense_width_ms(stamps, samples, self.width_ms)
        begin, late = clock.first_row(stamps if self.period_ms else stamps[:1], samples, width_ms, earliest)
        if late:
            zero = self.zero_ns + self.context.offset_ns + (self.context.restart_ns if segment else 0)
            chain.late.append((zero + earliest * MS, zero + begin * MS))
        return began + begin

    def _run_end(self, chain: Chain) -> int:
        """Return when the jobs of a log ended in ns, or the op of it; without fio's JSON a row's width after its last one."""
        if not self.context.jobs and not self.context.runtime_ns:
            return chain.end_ns + self.width_ms * MS
        zero = self.zero_ns + self.context.offset_ns + self.context.restart_ns
        own = [job[key].runtime_ns for job in self.context.jobs for key in job if key[0] == chain.op]
        span = self.context.spans.get((chain.op, COMPLETION))
        end = zero + (max([self.context.runtime_ns, *own]) if span is None else span[1])
        return max(end if not self.unix or self.context.zero.epoch_ns else 0, self._last_end(chain) or zero)

    def _last_end(self, chain: Chain) -> int:
        """Return the end of the last row of an op in ns, 0 where it has none."""
        return max((log_chain.end_ns for log_chain in self.chains.values() if chain.op in (log_chain.op, MIXED)), default=0)

    def _logged(self, chain: Chain, siblings: Mapping[str, Logged]) -> Int:
        """Return what the rows of an op hold in all, those of sibling logs included; of `mixed` the rows of all ops."""
        logged = np.zeros(self.layout.bins, np.int64)
        for log_chain in self.chains.values():
            if chain.op in (log_chain.op, MIXED):
                # A latency_target reset zeroes what fio's JSON counts, so only what came after it is in both.
                logged += log_chain.repair.since_reset.astype(np.int64) if log_chain.repair.was_reset else log_chain.total
        for op, held in siblings.items():
            if chain.op in (op, MIXED):
                logged += held.counts
        return logged

    def _residual(self, chain: Chain, siblings: Mapping[str, Logged]) -> Intervals[Series] | None:
        summaries = self._summaries(chain.op)
        logged = self._logged(chain, siblings)
        count = sum(summary.count for summary in summaries)
        missing = count - int(logged.sum())
        if self.context.absent and missing > 0:  # when these completed cannot be determined: they are no last interval
            chain.gaps, chain.holes = [], []  # what they held is among what is held against the sum (core/stated.py)
            return None
        expected = repairs.bins_of(summaries, self.layout)
        if expected is None:
            other = all(summary.bins is not None for summary in summaries)
            if missing or other:
                sentence = repairs.unwritten(chain.op, count, missing, masked=self.mask is not None)
                sentence = f"{chain.op}: fio's JSON has other bins than its log; not reconciled" if other else sentence
                self._keep_unwritten(chain, missing, summaries, sentence)
            return None
        if self.mask is not None:
            # Logs of single I/Os in a group are sound.
            if (lost := int(expected[self.mask :].sum() - logged[self.mask :].sum())) > 0:
                edge = int(self.layout.edges[self.mask])
                sentence = repairs.lost_samples(chain.op, lost, count, edge)
                self.account.note(sentence)
                span = (self._first_start(chain), self._run_end(chain))
                lack(self.context, chain.op, span, (MASKED, sentence, NEWER), lost, extremes(summaries, edge))
            expected[self.mask :] = logged[self.mask :]
        residual = expected - logged
        if (residual < 0).any():
            held = f"the {'logs of the group hold' if self.context.siblings else 'log holds'}"
            sentence = f"{chain.op}: {held} {int(-residual[residual < 0].sum())} samples that fio's JSON does not"
            sentence = f"{sentence}: {repairs.NOT_OF_ONE}"
            if missing < 0:
                sentence += f"; fio counts {count:,}, and {count - missing:,} are in its logs: counted twice?"
            self.account.note(sentence)
            span = self._first_start(chain), self._run_end(chain)
            lack(self.context, chain.op, span, (MORE, sentence, SEE_INSPECT), None, (0, None))
            return None
        chain.closed = self.mask is None and not chain.repair.was_reset
        bins = np.flatnonzero(residual)
        if not len(bins):
            return None
        start, end = self._last_span(chain, self._last_rows(chain, siblings))
        # A segment of its own where a window may be one of its rows, or of another group: no window is stored twice.
        rests = self._rests(chain)
        again = bool(rests) or start < self._last_end(chain)
        series = self.context.series.replaced(op=chain.op, kind=COMPLETION, segment=max(chain.segment, 0) + again)
        if self.context.siblings or self._is_of_others(chain, end - start, int(residual[bins].sum())):
            series = series.replaced(
                **dict.fromkeys(self.context.summed_over, ""), segment=int(series.job or 0) or series.segment
            )
        rests = rests or [((start, max(end, start)), bins, residual[bins])]
        return concatenate([one_row(self.layout, series, *rest) for rest in rests])

    def _rests(self, chain: Chain) -> list[tuple[Span, Int, Int]]:
        """Return what no row holds of each stage of jobs that lacks something: its time, bins and counts; none where unknown."""
        key, found = (chain.op, COMPLETION), []
        for number, stage in enumerate(self.stages):
            rest = repairs.bins_of([job[key] for job in stage.jobs if key in job], self.layout)
            held = [each for each in self.chains.values() if chain.op in (each.op, MIXED) and number in each.of_stages]
            if rest is None or self.mask is not None or any(each.repair.was_reset for each in held):
                return []
            rest -= sum((each.of_stages[number] for each in held), np.zeros_like(rest))
            if (rest < 0).any():
                return []
            begin = max((each.until_ns[number] for each in held), default=stage.begin_ns)
            if len(bins := np.flatnonzero(rest)):
                found.append(((begin, max(begin, stage.end_ns)), bins, rest[bins]))
        return found

    def _is_of_others(self, chain: Chain, span_ns: int, samples: int) -> bool:
        """Return whether what fio counts of an op of which the log has no row is of jobs whose logs are not here.

        A job that did so much for so long would have written rows of it. The entry of a group may hide them (issue 2132).
        """
        rows = chain.segment >= 0 or not any(other.segment >= 0 for other in self.chains.values())
        return not rows and samples >= clock.SURELY_DENSE and span_ns > LONGEST_LAST * MS * (self.period_ms or self.width_ms)

    def _last_span(self, chain: Chain, rows: Sequence[LastRow]) -> Span:
        """Return from when to when completed what no row holds, in ns; `rows` are the last ones of all logs of a sum.

        Logs whose rows come one a row's time are those that lack something of the last one. Of a log whose rows come seldom it
        completed within a row's time after the last: what completes later makes fio write a row.
        """
        begin = 0 if self._written_over(chain.op) else min(row.end_ns for row in rows)
        end = self._run_end(chain)
        if not begin or not self.period_ms or self._is_cut(rows, begin, end):
            return begin or self._begin_of(chain.op), end
        most = max(row.samples for row in rows)  # of a log of a tenth as many hardly any are left, whenever its last row ends
        busy = [row for row in rows if RARE * row.samples >= most]
        dense = [row.end_ns for row in busy if row.width_ns <= LONGEST_LAST * MS * self.period_ms]
        return min(dense, default=begin), end if dense or len(rows) > 1 else min(end, begin + MS * self.period_ms)

    def _keep_unwritten(self, chain: Chain, missing: int, summaries: Sequence[Summary], sentence: str) -> None:
        """Keep what fio counted and the log does not hold: of the last interval, or of any time where rows are damaged."""
        self.account.note(sentence)
        if missing <= 0:
            return
        begin = self._last_end(chain) or self._first_start(chain)
        if self.mask is not None:
            begin = self._first_start(chain)
        elif chain.gaps or chain.holes:
            begin = min(low for low, _ in (*chain.gaps, *chain.holes))
        chain.gaps, chain.holes = [], []  # what they held is among what is counted here
        span = begin, self._run_end(chain)
        lack(self.context, chain.op, span, (UNWRITTEN, sentence, WITH_BINS), missing, extremes(summaries))

    def _first_start(self, chain: Chain) -> int:
        """Return the start of the first row of an op in ns, else that of the job."""
        of_op = (log_chain for log_chain in self.chains.values() if chain.op in (log_chain.op, MIXED))
        begins = [log_chain.start_ns for log_chain in of_op if log_chain.start_ns is not None]
        return min(begins, default=self._begin_of(chain.op))

    def _begin_of(self, op: str) -> int:
        """Return when an op without a row may have begun in ns."""
        begin, _ = self.context.spans.get((op, COMPLETION), (0, 0))
        return self.zero_ns + self.context.offset_ns + self.context.restart_ns + begin


LEADING = 3
NS_GROUPS, US_GROUPS = 29, 19
NS_UNIT, US_UNIT = 1, 1000
LARGEST_CUSTOM, SMALLEST_CUSTOM = 37, 19
HEAD = 1 << 16
CHUNK_ENTRIES = 200_000
CHUNK_ROWS = 20_000
GARBAGE_COLUMNS = range(4, 9)
WRAPPED_COUNT = rb"\d{19}"
EMPTY = "holds no line: fio wrote no histogram (gtod_reduce, disable_clat, or a run shorter than log_hist_msec)"


@lru_cache(maxsize=256)
def layout_of(columns: int, unit_ns: int | None = None) -> tuple[int, LogLinear] | None:
    """Return (leading cells, layout) for a number of columns, or None if fio writes no such row.

    Builds with another group count are known by it; between 20 and 28 groups the unit must be given.
    """
    for leading, coarseness in (*((LEADING, coarseness) for coarseness in range(7)), (1, 0)):
        groups, rest = divmod((columns - leading) << coarseness, 64)
        if not rest and groups in (NS_GROUPS, US_GROUPS):
            return leading, fio_layout(groups, unit_ns or (NS_UNIT if groups == NS_GROUPS else US_UNIT), coarseness)
    for coarseness in range(7):
        groups, rest = divmod((columns - LEADING) << coarseness, 64)
        if not rest and SMALLEST_CUSTOM < groups <= LARGEST_CUSTOM and (unit_ns or groups >= NS_GROUPS):
            return LEADING, fio_layout(groups, unit_ns or NS_UNIT, coarseness)
    return None


def layout_of_text(text: bytes, context: Context, path: Path) -> tuple[int, int, LogLinear]:
    """Return (columns, leading, layout) that the first lines of a log agree on; InputError if they are no histogram rows."""
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == NEWLINE)[:200]
    ends = ends if len(ends) else np.array([len(text)])
    comma = data == integers.COMMA
    lines = zip([0, *(ends[:-1] + 1).tolist()], ends.tolist(), strict=True)
    commas = ((int(np.count_nonzero(comma[first:end])), text[first:end]) for first, end in lines)
    widths = Counter(number + 1 for number, line in commas if number or line.strip(b"\r \0"))
    for columns, _ in widths.most_common():
        if shape := layout_of(columns, context.recorded_unit_ns):
            leading, layout = shape
            if (wider := int(context.options.get(COARSEST, "0")) - layout.coarseness) <= 0:
                return columns, leading, layout
            return leading + ((columns - leading) >> wider), leading, replace(layout, coarseness=layout.coarseness + wider)
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


def coarsenesses(path: Path) -> set[str]:
    """Return the values of log_hist_coarseness that rows of a whole log are of."""
    columns: set[int] = set()
    for block in blocks(path):
        columns.update(line.count(b",") + 1 for line in bytes(block).splitlines())
    return {str(shape[1].coarseness) for width in columns if (shape := layout_of(width)) is not None}


class Peeked(NamedTuple):
    """What the first lines of a log show: its layout, its first stamp, the median width of its rows, the kind of stamps.

    `base` is the beginning of the job where stamps are of another clock than fio's and real time.
    """

    layout: LogLinear
    first_ms: int
    width_ms: int
    unix: bool
    base: clock.Base


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
        if second_comma > first_comma and (stamp := clock.stamp_in(line[:first_comma])) is not None:
            stamps.setdefault(line[first_comma + 1 : second_comma] if leading > 1 else b"", []).append(stamp)
    firsts = [times[0] for times in stamps.values()]
    steps = [after - before for times in stamps.values() for before, after in pairwise(times)]
    first = min(firsts, default=0)
    unix = clock.real_time(context.options, first)
    width = clock.typical_width_ms(steps, context.options)
    begin = max(first - (width or clock.DEFAULT_WIDTH_MS), 0)
    base = clock.OWN if unix else clock.base_of(begin, context, lambda: clock.last_stamp_ms(path))
    return Peeked(layout, first, width or (clock.DEFAULT_WIDTH_MS if unix or base.ms else max(firsts, default=0)), unix, base)


def base_in(text: bytes, leading: int, layout: LogLinear, context: Context, path: Path) -> clock.Base:
    """Return where the stamps of a log begin, by its first bytes; for almost all logs the first cell decides."""
    cells = text.split(b",", 2)
    first = clock.stamp_in(cells[0]) if len(cells) == 3 and b"\n" not in cells[1] else None
    if first is not None and clock.surely_own(first, context):
        return clock.OWN
    return _peeked(text, leading, layout, context, path).base


def _stamped(path: Path) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the stamp in ms, the cell of the direction, and the rest of each row."""
    for block in blocks(path):
        for line in bytes(block).split(b"\n"):
            cells = line.split(b",", 2)
            if len(cells) == 3 and (stamp := clock.stamp_in(cells[0])) is not None:
                yield stamp, cells[1], cells[2]


def segments_of(path: Path) -> dict[str, int]:
    """Return, by op, how often time begins anew in a log that several jobs or runs share; empty if that does not separate runs.

    A latency_target reset also begins time anew; it shows by counts near 2^64, and then runs cannot be separated.
    """
    last: dict[bytes, int] = {}
    segments: dict[bytes, int] = {}
    for stamp, cell, bins in _stamped(path):
        op = cell.strip()
        if stamp < last.get(op, clock.LAST_STAMP_MS):
            if op in last and re.search(WRAPPED_COUNT, bins):
                return {}
            segments[op] = segments.get(op, 0) + 1
        last[op] = stamp
    return {OPS[int(op)]: count for op, count in segments.items() if op in (b"0", b"1", b"2")}


def segments_told(path: Path, context: Context) -> int:
    """Return how many of the last segments of a shared log fio's JSON counts, where that is not one an entry; else 0.

    As many as the JSON says that jobs are grouped, or more where their bins fit into its own: fio makes one entry of several
    sections of a group (issue 2132) and gives it the options of one of them, so there are more segments than it tells of.
    """
    told: dict[str, list[Summary]] = {}
    for job in context.jobs:
        for (op, kind), summary in job.items():
            if kind == COMPLETION:
                told.setdefault(op, []).append(summary)
    known = {op: max(len(summaries), context.grouped) for op, summaries in told.items()}
    ops = {op: list(context.segments) if op == MIXED else [op] for op in told}
    more = [op for op in told if max((context.segments.get(own, 0) for own in ops[op]), default=0) > known[op]]
    if not more:
        return context.grouped
    rows: dict[str, dict[int, Int]] = {own: {} for own in context.segments}
    layout = None
    alone = replace(context, jobs=(), grouped=0, account=Account(path=str(path)))
    for part in read(path, alone):
        layout = part.layout
        for row, series in enumerate(part.table):
            mine = part.take(np.flatnonzero(part.series == row))
            counts = rows[series.op].setdefault(series.segment, np.zeros(part.layout.bins, np.int64))
            np.add.at(counts, mine.bins, mine.counts)
    fitting = max(known[op] for op in more)
    for op in more:
        bins = repairs.bins_of(told[op], layout) if isinstance(layout, LogLinear) else None
        if bins is None or any(len(rows[own]) != context.segments[own] for own in ops[op]):
            return context.grouped
        numbers = sorted({number for own in ops[op] for number in rows[own]}, reverse=True)
        nothing = np.zeros_like(bins)
        held = np.array([sum((rows[own].get(number, nothing) for own in ops[op]), nothing) for number in numbers])
        fitting = max(fitting, int((np.cumsum(held, axis=0) <= bins).all(axis=1).sum()))
    return fitting if fitting > max(known[op] for op in more) else context.grouped


def restart_ms(path: Path) -> int:
    """Return the largest stamp in ms before time first runs back in a log, 0 if it does not."""
    last: dict[bytes, int] = {}
    for stamp, op, _ in _stamped(path):
        if stamp < last.get(op, 0):
            return max(last.values())
        last[op] = stamp
    return 0


def read(path: Path, context: Context) -> Iterator[Intervals[Series]]:
    """Yield the histogram rows of a log in bounded chunks, ops and segments as series of their own, kind `completion`.

    Stamps become epoch ns (relative ns where the context knows no start). Counts are exact; the layout's error bound
    is at most 1/128 times 2^coarseness. Rejected and repaired rows are counted in the account with their lines. Raises
    InputError where the file as a whole is not a histogram log.
    """
    data = whole_blocks(path, context.account)
    first = next(data, memoryview(b""))
    text = bytes(first[:HEAD])
    told = [summary.bins.layout for job in context.jobs for summary in job.values() if summary.bins is not None]
    if not text and told and isinstance(told[0], LogLinear):  # all of it is the last interval
        yield from Chains(told[0], LEADING, context, clock.OWN).tail(sums_of(context.siblings, told[0], context))
        return
    columns, leading, layout = layout_of_text(text, context, path)
    scanner = Scanner(columns, leading, context)
    chains = Chains(layout, leading, context, base_in(text, leading, layout, context, path))
    pending: list[tuple[Rows, Int]] = []
    for block in joined([first], data):
        pending.extend(scanner.rows(block))
        if sum(len(rows.bins) for rows, _ in pending) > CHUNK_ENTRIES or sum(len(rows) for rows, _ in pending) > CHUNK_ROWS:
            yield from chains.intervals(pending)
            pending = []
    if pending:
        yield from chains.intervals(pending)
    yield from chains.tail(sums_of(context.siblings, chains.layout, context) if context.siblings else {})


class LastRow(NamedTuple):
    """When the last row of an op in a log ends, 0 if there is none, how wide the last ones are (median) in ns, samples of all."""

    end_ns: int
    width_ns: int = 0
    samples: int = 0


class Logged(NamedTuple):
    """What several logs hold of an op: counts by bin, and the last row of each of them; the names of those without any row."""

    counts: Int
    last: Sequence[LastRow]
    empty: Sequence[str] = ()

    @property
    def total(self) -> int:
        """Return how many samples they hold."""
        return int(self.counts.sum())


def sums_of(paths: Sequence[Path], layout: LogLinear, context: Context) -> dict[str, Logged]:
    """Return what the logs of jobs hold by op, of histograms or of single I/Os, in the bins of a layout."""
    sums: dict[str, Int] = {}
    ends: dict[str, list[LastRow]] = {}
    empty: list[str] = []
    for path in paths:
        own = replace(context, siblings=(), jobs=(), account=Account(path=str(path)))
        last: dict[str, LastRow] = {}
        with suppress(InputError):  # of what cannot be read its own source says so
            if (name := parse_log_name(path)) is not None and name.type == "clat_hist":
                for _ in read(path, own):
                    pass
                histograms, last = own.account.totals, own.account.last
            else:
                from ingest.read.fio import latency_log  # for groups with logs of single I/Os alone

                histograms = {}
                for events in latency_log.read(path, own):
                    for code in np.unique(events.series).tolist():
                        op, mine = events.table[code].op, events.series == code
                        counts = sums.setdefault(op, np.zeros(layout.bins, np.int64))
                        counts += np.bincount(layout.index(events.latency_ns[mine]), minlength=layout.bins)
                        before = last.get(op, LastRow(0))
                        until = max(before.end_ns, int(events.end_ns[mine].max()))
                        last[op] = LastRow(until, 0, before.samples + int(mine.sum()))
            for op, histogram in histograms.items():
                bins = layout.index(histogram.layout.lowest_of(histogram.bins))
                np.add.at(sums.setdefault(op, np.zeros(layout.bins, np.int64)), bins, histogram.counts)
        empty += [] if last else [path.name]
        for op, end in last.items():
            ends.setdefault(op, []).append(end)
    if empty:  # their jobs may have done any operation, at any time
        return {op: Logged(sums.get(op, np.zeros(layout.bins, np.int64)), [LastRow(0)], empty) for op in OPS}
    return {op: Logged(counts, ends.get(op, [LastRow(0)])) for op, counts in sums.items()}


# The leading cells of a row whose other cells cannot be read; all else that begins like this is none.
LEGIBLE = re.compile(rb"[ \t]*(\d{1,15}),[ \t]*([012]),[ \t]*(\d{1,15}),[ \t]*\d")


def row_without_counts(stamp: int, direction: int, block_size: int) -> Rows:
    """Return a row that counts nothing: what is known of a line that was rejected."""
    none = np.empty(0, np.int64)
    return Rows(np.array([[stamp, direction, block_size]], np.uint64), np.zeros(2, np.int64), none, none.astype(np.uint64))


def in_wider_bins(rows: Rows, coarser: int) -> Rows:
    """Return rows in bins that are 2^`coarser` of theirs each, as fio's log_hist_coarseness makes them."""
    if not coarser:
        return rows
    row, bins = np.repeat(np.arange(len(rows)), np.diff(rows.indptr)), rows.bins >> coarser
    first = np.flatnonzero((np.diff(row, prepend=-1) > 0) | (np.diff(bins, prepend=-1) != 0))
    counts = np.add.reduceat(rows.counts, first) if len(first) else rows.counts
    return Rows(rows.lead, np.searchsorted(row[first], np.arange(len(rows) + 1)), bins[first], counts)


class Scanner:
    """Turns blocks of text into rows and line numbers, counting what cannot be parsed.

    Where jobs share a log that count in unlike bins (`COARSEST`) the rows of all come in the widest of them.
    """

    def __init__(self, columns: int, leading: int, context: Context) -> None:
        self.columns = columns
        finer = range(int(context.options.get(COARSEST, "0")) + 1)
        self.parsers = [(Parser(leading + ((columns - leading) << coarser), leading), coarser) for coarser in finer]
        self.leading = leading
        self.account = context.account
        self.line = 1

    def _parsed(self, block: memoryview | bytes) -> Rows | None:
        """Return the rows of a block of plain lines of one number of columns, None of any other."""
        every = ((parser.parse(np.frombuffer(block, np.uint8)), coarser) for parser, coarser in self.parsers)
        return next((in_wider_bins(rows, coarser) for rows, coarser in every if rows is not None), None)

    def rows(self, block: memoryview) -> Iterator[tuple[Rows, Int]]:
        """Yield the rows of a block and their line numbers."""
        if (parsed := self._parsed(block)) is not None:
            yield parsed, self.line + np.arange(len(parsed))
            self.line += len(parsed)
            return
        text = bytes(block)
        if b"\r\n" in text:
            self.account.note(CRLF)
            text = text.replace(b"\r\n", b"\n")
        yield from self._halves(text)

    def _halves(self, block: bytes) -> Iterator[tuple[Rows, Int]]:
        """Parse a block with a fault in it: halve it until the lines at fault stand alone."""
        stack = [re.findall(rb"[^\n]*\n|[^\n]+", block)]
        while stack:
            lines = stack.pop()
            if (parsed := self._parsed(b"".join(lines))) is not None:
                yield parsed, self.line + np.arange(len(parsed))
                self.line += len(lines)
            elif len(lines) > 1:
                middle = len(lines) // 2
                stack.extend((lines[middle:], lines[:middle]))
            else:
                if reason := self._fault(lines[0]):
                    self.account.reject(reason, [self.line])
                    if self.leading == LEADING and (lead := LEGIBLE.match(lines[0])):
                        yield row_without_counts(*map(int, lead.groups())), np.array([self.line])
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
        return clock.NOT_A_ROW


# Many histogram logs in one pass over arrays: the intervals, accounts and last intervals that `hist.read` gives of each.
#
# A folder may hold ten thousand logs of 30 kB, and of such a log the fixed cost of some hundred NumPy calls is most of what
# reading it takes; of one of 3 MB it is as much as all else. Only logs without any fault or peculiarity are read here, which are
# almost all: every line is a row of the same columns, stamps never run back, counts are surely those of their interval, and no
# two logs are added up. Whatever is not plain is left to `hist.read`, untouched: each repair and each refusal stands there alone.


WHOLE_TEXT = 1 << 18  # of a log that is parsed with others: joining larger ones costs more than it spares
MOST_TEXT = 1 << 21  # parsed at once
TOGETHER_ENTRIES = 1 << 19  # bins of logs that are taken in one pass; as many again may come with the last block

Log = tuple[Path, Context]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Plain(Value):
    """A log that may be plain: its number in the call, and its text, `whole` or how it begins."""

    number: int
    path: Path
    context: Context
    text: bytes
    whole: bool


class _Shape:
    """The logs of one number of columns that are taken together next, with their rows, and those whose text waits for others'."""

    def __init__(self, columns: int, layout: LogLinear, done: set[int]) -> None:
        self._layout, self._done = layout, done
        self._parser = Parser(columns, LEADING, 2 * TOGETHER_ENTRIES)
        self._waiting: list[_Plain] = []
        self._logs: list[_Plain] = []
        self._lengths: list[int] = []
        self._rows: list[Rows] = []
        self._hopeless = False  # no log of the last ones was plain: large ones are not read twice for nothing

    def intervals(self, log: _Plain) -> Iterator[Intervals[Series]]:
        """Take another log; yield the intervals of all where there are enough of them."""
        if log.whole:
            self._waiting.append(log)
            if sum(len(waiting.text) for waiting in self._waiting) > MOST_TEXT:
                self._parse()
        elif not self._hopeless and (rows := self._of_file(log)):
            self._keep([log], [sum(map(len, rows))], rows)
        if sum(len(rows.bins) for rows in self._rows) >= TOGETHER_ENTRIES:
            yield from self.rest()

    def rest(self) -> Iterator[Intervals[Series]]:
        """Yield the intervals of the logs that are left."""
        self._parse()
        if self._logs:
            logs, lengths, rows = self._logs, self._lengths, integers.concatenate(self._rows)
            self._logs, self._lengths, self._rows = [], [], []
            self._parser.renew()
            before = len(self._done)
            yield from _Batch(logs, lengths, rows, self._layout).intervals(self._done)
            self._hopeless = len(self._done) == before

    def _keep(self, logs: list[_Plain], lengths: list[int], rows: list[Rows]) -> None:
        self._logs += logs
        self._lengths += lengths
        self._rows += rows

    def _parse(self) -> None:
        """Parse the texts that wait; where one has a line that is no row, the others without it."""
        stack, self._waiting = [self._waiting], []
        while stack:
            some = stack.pop()
            rows = self._parser.parse(np.frombuffer(b"".join(log.text for log in some), np.uint8)) if some else None
            if rows is not None:
                self._keep(some, [log.text.count(b"\n") for log in some], [rows])
            elif len(some) > 1:
                stack += [some[: len(some) // 2], some[len(some) // 2 :]]

    def _of_file(self, log: _Plain) -> list[Rows]:
        """Return the rows of a log block by block, none where it has a line that is no row."""
        found: list[Rows] = []
        with suppress(InputError):
            for block in blocks(log.path):
                if (rows := self._parser.parse(np.frombuffer(block, np.uint8))) is None:
                    return []
                found.append(rows)
            return found
        return []


def read_many(logs: Sequence[Log], left: list[int]) -> Iterator[Intervals[Series]]:
    """Yield the intervals of all logs that are plain; at the end `left` has the numbers of those that are not.

    The accounts of the former are those of `hist.read`, those of the latter as they were. Nothing is raised: what cannot be read
    is not plain.
    """
    shapes: dict[tuple[int, int | None], _Shape | None] = {}
    done: set[int] = set()
    for number, (path, context) in enumerate(logs):
        several = context.siblings or context.spans or context.stages or max(context.segments.values(), default=0) > 1
        several = several or COARSEST in context.options
        text, whole = _text(path) if path.suffix not in COMPRESSED and not several else (b"", True)
        if text:
            shape = text.count(b",", 0, text.index(b"\n")) + 1, context.recorded_unit_ns
            if shape not in shapes:
                found = layout_of(*shape)
                shapes[shape] = _Shape(shape[0], found[1], done) if found is not None and found[0] == LEADING else None
            if (mine := shapes[shape]) is not None:
                yield from mine.intervals(_Plain(number, path, context, text, whole))
    for mine in shapes.values():
        yield from mine.rest() if mine is not None else ()
    left += [number for number in range(len(logs)) if number not in done]


def _text(path: Path) -> tuple[bytes, bool]:
    """Return a log, or how a larger one begins, and whether it is whole; nothing of one that cannot be plain.

    That is one that is too large, breaks off, has a byte order mark or cannot be read.
    """
    try:
        with path.open("rb", buffering=0) as stream:
            size = os.fstat(stream.fileno()).st_size
            text = stream.read(WHOLE_TEXT if size <= WHOLE_TEXT else HEAD) or b""
    except OSError:
        return b"", False
    whole = len(text) == size
    plain = size <= SMALL and not mark_of(text) and (text.endswith(b"\n") if whole else b"\n" in text)
    return (text, whole) if plain else (b"", whole)


class _Batch:
    """The rows of logs of one layout, by log and direction (a chain), and which of the logs turned out to be plain."""

    def __init__(self, logs: list[_Plain], lengths: list[int], rows: Rows, layout: LogLinear) -> None:
        self.logs = logs
        self.layout = layout
        self.rows = rows
        self.first = np.zeros(len(logs) + 1, np.int64)  # row of each log
        np.cumsum(lengths, out=self.first[1:])
        log_of_row = np.repeat(np.arange(len(logs)), np.diff(self.first))
        stamps, op = rows.lead[:, 0], rows.lead[:, 1]
        odd = (stamps >= clock.LAST_STAMP_MS) | (op >= len(OPS)) | (rows.indptr[1:] <= rows.indptr[:-1])
        if huge := int(rows.counts.max(initial=0)) > repairs.IMPLAUSIBLE:
            odd[np.searchsorted(rows.indptr, np.flatnonzero(rows.counts > repairs.IMPLAUSIBLE), side="right") - 1] = True
        self.plain = np.ones(len(logs), np.bool_)
        self.plain[log_of_row[odd]] = False
        # From here on in the order of chains, and within them in that of the file; odd rows are of no direction.
        chain = log_of_row * len(OPS) + np.where(odd, 0, op).astype(np.int64)
        order = np.argsort(chain, kind="stable")
        counts = (np.where(rows.counts > repairs.IMPLAUSIBLE, 0, rows.counts) if huge else rows.counts).view(np.int64)
        self.indptr, self.bins, self.counts = rows.indptr, rows.bins, counts
        if (order[1:] < order[:-1]).any():
            self.indptr, flat = gather(rows.indptr, order)
            self.bins, self.counts = rows.bins[flat], counts[flat]
        self.samples = row_sums(self.indptr, self.counts)
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
        start, end, until = self._times(chains)
        tails = self._tails(chains, start, end)
        done.update(log.number for log, plain in zip(self.logs, self.plain.tolist(), strict=True) if plain)
        if not self.plain.any():
            return []
        series, table = self._series()
        rows = Intervals(self.layout, table, series, start, end, self.indptr, self.bins, self.counts)
        plain = np.flatnonzero(self.plain[self.log_of_row])
        parts = [with_last_apart(rows.take(plain), until[plain])]
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
        periods = np.array([period_ms(log.context.options) for log in self.logs], np.int64)
        number = np.arange(len(self.stamps)) - np.repeat(self.chain_at[:-1], self.lengths.reshape(-1))
        late = self.stamps - number * periods[self.log_of_row]
        in_time = np.append((self.samples > 1)[1:] | self.began[1:], [True])
        rows, firsts = np.flatnonzero(in_time), np.flatnonzero(self.began)
        chain = np.cumsum(self.began)[rows] - 1
        least, most = np.full(len(firsts), clock.LAST_STAMP_MS), np.full(len(firsts), -clock.LAST_STAMP_MS)
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
        steps = (self.stamps - self.before)[~self.began]
        several = (self.samples != 1)[~self.began]
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
                base = base_in(log.text[:HEAD], LEADING, self.layout, context, log.path)
            chains = Chains(self.layout, LEADING, context, clock.OWN)
            chains.mode = repairs.PER_INTERVAL
            mine = slice(bounds[number], bounds[number + 1])
            chains.width_ms = clock.typical_width_ms(steps[mine], context.options) or clock.DEFAULT_WIDTH_MS
            chains.interval_ms = clock.interval_ms(steps[mine], several[mine], chains.width_ms, context.options)
            chains.unix = clock.real_time(context.options, first_ms[number])
            self.plain[number] = base == clock.OWN and chains.mask is None
            clocks.append(chains)
        return clocks

    def _times(self, chains: Sequence[Chains | None]) -> tuple[Int, Int, Int]:
        """Return when each row starts and ends, and by when all its samples but the last had completed, in ns.

        Logs with a jump of the clock, or of a far time, are not plain.
        """
        width = np.array([0 if log_chains is None else log_chains.width_ms for log_chains in chains], np.int64)
        interval = np.array([0 if log_chains is None else log_chains.interval_ms for log_chains in chains], np.int64)
        job_began = [None if log_chains is None else log_chains.began_ms() for log_chains in chains]
        unknown = np.array([began is None for began in job_began])[self.log_of_row]
        from_ms = np.array([began or 0 for began in job_began], np.int64)[self.log_of_row]
        zeros = [
            0 if log_chains is None else ((0 if log_chains.unix else log_chains.zero_ns) + log_chains.context.offset_ns)
            for log_chains in chains
        ]
        zero = np.array(zeros, np.int64)[self.log_of_row]
        first = np.where(unknown, np.maximum(self.stamps - width[self.log_of_row], 0), from_ms)
        start = np.where(self.began, first, self.before)
        late = self.began & (self.stamps - first > clock.NEAR_START * width[self.log_of_row])
        self.plain[self.log_of_row[late | (self.stamps - start > clock.DAY_MS)]] = False
        timed = np.array([log_chains is not None and log_chains.period_ms > 0 for log_chains in chains])
        firsts = np.flatnonzero(self.began & timed[self.log_of_row])
        until, _ = settled_ms(self.stamps, self.samples, self.began, interval[self.log_of_row], firsts)
        until = np.maximum(until, start)
        start, end, until = start * MS + zero, self.stamps * MS + zero, until * MS + zero
        for number in np.flatnonzero(self.plain).tolist() if not _are_instants(start, end) else ():
            rows = slice(self.chain_at[number * len(OPS)], self.chain_at[(number + 1) * len(OPS)])
            self.plain[number] = _are_instants(start[rows], end[rows])
        return start, end, until

    def _tails(self, chains: Sequence[Chains | None], start: Int, end: Int) -> list[Intervals[Series]]:
        """Return the last intervals that fio's JSON adds to plain logs, and fill the accounts of the logs."""
        there = self.lengths.reshape(-1) > 0
        group = np.repeat(np.cumsum(there) - 1, self.lengths.reshape(-1))
        groups = int(there.sum())
        apart = sum_apart([(group, self.indptr, self.bins, self.counts)], groups)
        pointers, bins, counts = apart or sum_rows(self.indptr, self.bins, self.counts, group, groups)
        samples = row_sums(pointers, counts).tolist()
        bounds, edges = pointers.tolist(), self.chain_at.tolist()
        place = (np.cumsum(there) - 1).tolist()
        tails: list[Intervals[Series]] = []
        mine = np.flatnonzero(there & np.repeat(self.plain, len(OPS)))
        copied = [log_chains.copied for chain in mine.tolist() if (log_chains := chains[chain // len(OPS)]) is not None]
        held = [samples[place[chain]] for chain in mine.tolist()]
        ops, where = [OPS[chain % len(OPS)] for chain in mine.tolist()], (self.chain_at[mine], self.chain_at[mine + 1])
        Copied.add_each(copied, ops, where, self.stamps, (self.indptr, self.bins, self.counts), held)
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
                rows = slice(max(edges[chain], edges[chain + 1] - LOOK_AHEAD), edges[chain + 1])
                newest = self.samples[rows], start[rows], end[rows]
                log_chains.whole(OPS[code], (begin, last), bins[entries], counts[entries], newest)
                account.samples += samples[at]
            tail = list(log_chains.tail({}))
            own = log_chains.context.series
            if all(
                _are_instants(part.start_ns, part.end_ns) and (part.table[0].job, part.table[0].process) == (own.job, own.process)
                for part in tail
            ):
                tails += tail
            else:  # `read` says why, or of which jobs it is
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


def _are_instants(start_ns: Int, end_ns: Int) -> bool:
    return not len(start_ns) or (is_instant(int(start_ns.min())) and is_instant(int(end_ns.max())))


# Whether a histogram log was written by a fio that damages its upper bins, and whether anything of it is sound.


def is_masked(path: Path, context: Context) -> bool:
    """Return whether fio damaged the bins of a log from 786 us up (3.6 to 3.16): by its version, else by its first rows.

    A raw log of the same I/Os is whole, so such a log is no reason to leave it out. InputError if it is no histogram log.
    """
    text = head(path)
    columns, leading, layout = layout_of_text(text, context, path)
    if context.version is not None or leading == 1:
        return masked_from(layout, context.version) is not None
    whole = memoryview(text[: text.rfind(b"\n") + 1])
    for rows, _ in Scanner(columns, leading, replace(context, account=Account())).rows(whole):
        stamps, ops = rows.lead[:, 0].astype(np.int64), rows.lead[:, 1].astype(np.int64)
        order = [np.flatnonzero(ops == code) for code in range(len(OPS))]
        if garbage_from(rows, stamps, order, layout, context) is not None:
            return True
    return False


def holds_nothing(path: Path, context: Context) -> bool:
    """Return whether no sound sample can be taken from a histogram log."""
    return not any(part.counts.any() for part in read(path, replace(context, account=Account(path=str(path)))))


# Which fio wrote a log without a version in its JSON: files beside the log show the version, or the earliest it can be.


def since_of_layout(layout: LogLinear) -> tuple[int, ...] | None:
    """Return the earliest version that writes histograms of this layout: ns bins came with 2.99; None where any can."""
    return NANOSECONDS_SINCE if layout.unit_ns == 1 else None


def since_beside(path: Path, name: LogName) -> tuple[int, ...] | None:
    """Return the earliest version that can have written the histogram log of the same job in the folder of a raw log."""
    job, host = (f".{part}" if part else "" for part in (name.job, name.host))
    plain = f"{name.prefix}_clat_hist{job}.log{host}"
    for ending in ("", *COMPRESSED) if plain != plain_name(path) else ():
        if (log := path.with_name(plain + ending)).is_file():
            with suppress(InputError):
                return since_of_layout(peek(log, Context()).layout)
    return None
