"""Averaged fio logs (`log_avg_msec`): one row a window and direction, and what each row stands for.

What each row of an averaged fio log stands for: I/Os and bytes, from the logs of IOPS and bandwidth beside it and fio's JSON.

    100, 160, 0, 0, 0       time ms, I/Os a second (or KiB/s) since the last tick, rounded down, direction, 0, 0
    200, 150, 0, 0, 0       16 I/Os in the first 100 ms, 15 in the next
    700, 100, 0, 0, 0       10 I/Os in the last 100 ms; the ticks from 300 to 600 found none and wrote no row

Its rows are stamped by a helper thread of fio that ticks once a window: a millisecond or half a window beside those of
latencies. So its running total is taken at their stamps, in between by time. Where ticks wrote no row, a row is of the last
tick alone; a tick that came late is known by rows of latencies before it. fio does not write its last part of a window,
as it does of latencies: what comes after its last tick goes on at the mean rate. Counts are whole, at least 1 where there is a
mean, and add up to N exactly; bytes are whole and add up to `io_bytes`.

fio before 2.10 ticks every 500 ms (`bwavgtime`), however short the window is: then rows of latencies lie closer than ticks.
fio before 3.18 may write all rates too low (`rate_doubts`). Up to 3.0 a row of the second direction may come a tick late, under
the stamp of the next; where jobs end one after another, the last row of one may be stamped at the end of the last.

Source: fio stat.c (__add_samples, add_log_sample), checked against the logs of fio 3.33, 2.2.10 and 2.16.

Averaged fio latency logs: `write_lat_log` with `log_avg_msec`, one row a window and direction. What CBT writes by default.

    101, 377895, 0, 0, 0            time ms, mean, direction (0 read, 1 write, 2 trim), block size 0, priority
    200, 428051, 3997741, 0, 0, 0   with log_window_value=both (3.37 and later): mean, then maximum

A mean holds no percentile: rows become intervals without bins, of the kinds `completion.mean` (clat), `total.mean` (lat) and
`submission.mean` (slat), with count, mean, and the maximum where it was logged. A row is stamped at its end and covers the
time since the row before it of the same direction. How many I/Os it stands for is in another log (`window_counts`); what that
leaves open is settled by fio's JSON: the counts of all rows add up to its N. Bytes come from the log of bandwidth beside it, and
add up to fio's `io_bytes`; without that log they are not known by row. Traps, each noted or counted:

* without the log of IOPS that of bandwidth gives the shares of windows, and without both they are even: fio's N must be known;
* `log_window_value=max` (3.37 and later) logs maxima and no means: these rows have a maximum and no sum;
* the last window may have the stamp of the one before it;
* an op that has no row at all is one row over the whole run, as fio's JSON says.

Source: fio stat.c (_add_stat_to_log, __add_samples); checked against the output of fio 3.33, 3.42 and of CBT.

Rows of fio's `_clat` and `_iops` logs as they stand, averaged or one for each I/O: what scripts that plot them read.

    102, 3525777, 1, 0, 0         time ms, value, direction, block size (0 where averaged), priority

They are means or single values, never histograms: percentiles of the product are not made of them, estimates are.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.core.coverage import Caveat, Missing, WholeRun, bytes_of, labels_of, sum_of
from ingest.core.documents import told_exact
from ingest.core.errors import InputError
from ingest.core.intervals import NO_MAX, NO_MIN, NO_SUM, Exact, Int, Intervals
from ingest.core.labels import MEAN, OPS, Series
from ingest.core.layout import NO_BINS
from ingest.core.units import figure
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.fio import clock
from ingest.read.fio.clock import MS
from ingest.read.fio.latency_log import DIRECTIONS, ROW, Shape, averaged_shape_of, direction_of, first_stamps
from ingest.read.fio.names import LOG_NAME, NANOSECONDS_SINCE
from ingest.read.operations import DAY_NS
from ingest.read.text import COMPRESSED, CUT_OFF, blocks, holds_nothing, plain_name, whole_blocks

# The rows of averaged fio logs (latency, IOPS, bandwidth) as columns of integers.


RANGE = "a value below zero or of more than a day: damage, or another unit than it was taken for (--recorded-unit)"


def averaged_rows(path: Path, columns: Sequence[str], account: Account, largest: int = DAY_NS) -> Int:
    """Return the first columns of a log, one row a line; other lines are counted in the account.

    `columns` names them: time first, then value, direction last.
    """
    rows: list[list[int]] = []
    bad: dict[str, list[int]] = {}
    number, width = 0, len(columns)
    integers = re.compile(rb"(?:[ \t]*-?\d+[ \t]*,){%d}" % width)  # columns that follow may be hexadecimal
    for block in whole_blocks(path, account):
        text = bytes(block)
        lines = text.removesuffix(b"\n").split(b"\n")
        for place, line in enumerate(lines):
            number += 1
            if not line.strip():
                continue
            cut = not text.endswith(b"\n") and place == len(lines) - 1
            reason = CUT_OFF if cut else ("" if ROW.match(line) and integers.match(line) else clock.NOT_A_ROW)
            cells = [] if reason else [int(cell) for cell in line.split(b",", width)[:width]]
            reason = reason or _bad(cells, largest)
            if reason:
                bad.setdefault(reason, []).append(number)
            else:
                rows.append(cells)
    for reason, places in bad.items():
        account.reject(reason, places)
    account.accept(len(rows))
    return np.array(rows, np.int64).reshape(len(rows), width)


def _bad(cells: Sequence[int], largest: int) -> str:
    """Return why the values of a row cannot be; empty text where they can."""
    if not 0 <= cells[-1] < DIRECTIONS:
        return clock.DIRECTION
    if cells[0] >= clock.LAST_STAMP_MS:
        return clock.STAMP
    return "" if all(0 <= cell <= largest for cell in cells[1:-1]) else RANGE


IOPS, BANDWIDTH = "iops", "bw"
KIB = 1024
SLACK_MS = 2  # a tick comes up to so much early (LOG_MSEC_SLACK of fio)
DENSER, MOST_STEPS = 1.7, 0.75  # so many times the steps of latencies a tick is at least, if it is longer than a window
SEVERAL = 3  # steps, of which one alone shows nothing
WINDOW_SINCE, OLD_TICK_MS = (2, 10), 500
ALIKE = 1.5  # steps of so many times the shortest are of one tick
SHORTEST = 0.05  # the share of steps that may be shorter than a tick, as ticks come late and the next one early

NO_STAMPS = np.empty(0, np.int64)

Floats = NDArray[np.float64]


class Beside(NamedTuple):
    """The log of IOPS or bandwidth beside an averaged log: by direction its stamps in ms and its values.

    `window_ms` is how often fio ticks by its options: once in the time that each mean of latencies is over.
    """

    type: str
    rows: Mapping[int, tuple[Int, Int]]
    window_ms: int

    def estimates(self, direction: int, stamps_ms: Int, begin_ms: int) -> Floats | None:
        """Return how much was done up to each stamp since the one before it; None where this log cannot say.

        I/Os of a log of IOPS, bytes of one of bandwidth. What this log holds after the last stamp counts with it.
        """
        times, values = self.rows.get(direction, (NO_STAMPS, NO_STAMPS))
        mine, theirs = segments(stamps_ms), segments(times)
        if not len(times) or len(mine) != len(theirs):
            return None
        tick, pairs = self.tick_ms(stamps_ms), zip(mine, theirs, strict=True)
        amounts = np.concatenate(
            [self._between(stamps_ms[own], times[other], values[other], begin_ms, tick) for own, other in pairs]
        )
        return amounts if amounts.sum() > 0 else None

    def tick_ms(self, stamps_ms: Int) -> int:
        """Return how often fio ticks, as the stamps of all rows show it beside those of latencies.

        A step of more than a window is one tick only where most rows of latencies lie closer, of several; else the ticks in it
        found no I/O.
        """
        steps = np.concatenate([_steps(times) for times, _ in self.rows.values()])
        steps = steps[steps > SLACK_MS]
        if not len(steps):
            return self.window_ms
        least = float(np.quantile(steps, SHORTEST, method="lower"))
        step = round(float(np.median(steps[steps <= ALIKE * least])))
        latencies = _steps(stamps_ms)
        latencies = latencies[latencies > SLACK_MS]
        denser = min(len(steps), len(latencies)) >= SEVERAL and DENSER * float(np.quantile(latencies, MOST_STEPS)) <= step
        return step if denser else min(step, self.window_ms)

    def _between(self, stamps: Int, times: Int, values: Int, begin_ms: int, tick_ms: int) -> Floats:
        times = _apart(times, tick_ms)
        begin_ms = min(begin_ms, int(times[0]))
        spent = ticks(times, stamps, begin_ms, tick_ms)
        done = values * spent / 1000
        done = np.ceil(done - 1e-6) if self.type == IOPS else done * KIB  # fio rounds down: 151 a second in 99 ms are 15
        if left := _left(times, stamps, tick_ms):
            rate = done.sum() / max(int(times[-1]) - begin_ms, 1)
            times, spent, done = np.append(times, stamps[-1]), np.append(spent, left), np.append(done, rate * left)
        total = np.concatenate([[0.0], np.cumsum(done)])
        edges = np.stack([times - spent, times], axis=1).reshape(-1)
        at = np.interp(stamps, np.concatenate([[begin_ms], edges]), np.concatenate([[0.0], np.repeat(total, 2)[1:-1]]))
        at[-1] = total[-1]
        amounts: Floats = np.diff(np.maximum.accumulate(at), prepend=0)
        return amounts

    def missing_ms(self, direction: int, stamps_ms: Int) -> int:
        """Return for how long this log has no row at the end of a segment, and should have some: the longest such time."""
        return max((left for _, left in self._spent(direction, stamps_ms, 0)), default=0)

    def unlogged_ms(self, direction: int, stamps_ms: Int, begin_ms: int) -> int:
        """Return for how long in all this log has no row where latencies have some: at the end, or before a late row."""
        least = 2 * self.tick_ms(stamps_ms) + SLACK_MS
        return sum(int(spent[spent > least].sum()) + left for spent, left in self._spent(direction, stamps_ms, begin_ms))

    def covered_ms(self, direction: int, stamps_ms: Int, begin_ms: int) -> int:
        """Return how long the rows of a direction are of in all."""
        return sum(int(spent.sum()) for spent, _ in self._spent(direction, stamps_ms, begin_ms))

    def _spent(self, direction: int, stamps_ms: Int, begin_ms: int) -> Iterator[tuple[Int, int]]:
        """Yield of each segment how long each row is of, and how long there is none at its end."""
        times, _ = self.rows.get(direction, (NO_STAMPS, NO_STAMPS))
        tick = self.tick_ms(stamps_ms)
        for own, other in zip(segments(stamps_ms), segments(times), strict=False):
            stamps, mine = stamps_ms[own], _apart(times[other], tick)
            yield ticks(mine, stamps, min(begin_ms, int(mine[0])), tick), _left(mine, stamps, tick)


def _steps(times_ms: Int) -> Int:
    """Return the ms from row to row, without those at which time begins anew."""
    return np.maximum(np.diff(times_ms), 0)


def _apart(times_ms: Int, tick_ms: int) -> Int:
    """Return the stamps with all but the last of those that are alike at the ticks before it, not before the row before them."""
    last = np.searchsorted(times_ms, times_ms, side="right") - 1
    apart: Int = np.maximum(times_ms - (last - np.arange(len(times_ms))) * tick_ms, times_ms[0] - tick_ms)
    np.maximum.accumulate(np.maximum(apart, 0), out=apart)
    return apart


def _left(times: Int, stamps: Int, tick_ms: int) -> int:
    """Return how many ms up to the last stamp are of no row: of ticks that wrote none only what came after them."""
    last, end = int(times[-1]), stamps[-1:]
    return int(ticks(end, stamps, last, tick_ms)[0]) if end[0] > last else 0


def ticks(times_ms: Int, latencies_ms: Int, begin_ms: int, tick_ms: int) -> Int:
    """Return how many ms each row of a log of IOPS or bandwidth is of: those since the tick before it.

    Ticks without an I/O write no row. Where the row before lies two ticks back or more, there were such ticks, unless rows
    of latencies lie in between, two or more and none long after the one before: some I/O ended from the one to the other, and it
    is this tick that came late. One says nothing: fio writes it when the next I/O of any direction ends.
    """
    since = np.maximum(np.diff(times_ms, prepend=begin_ms), 0)
    before = np.searchsorted(latencies_ms, times_ms - since + SLACK_MS, side="right")
    behind = np.searchsorted(latencies_ms, times_ms - tick_ms - SLACK_MS, side="left")
    ended = (behind > before + 1) & ~_silent(times_ms, latencies_ms, before, behind, tick_ms)
    idle = (since >= max(2 * (tick_ms - SLACK_MS), tick_ms + SLACK_MS)) & ~ended
    spent: Int = np.where(idle, tick_ms, since)
    return spent


def _silent(times_ms: Int, latencies_ms: Int, before: Int, behind: Int, tick_ms: int) -> NDArray[np.bool_]:
    """Return which rows have a stretch without latencies among those from `before` to `behind`, or after them up to the row."""
    if not len(latencies_ms):
        return np.ones(len(times_ms), np.bool_)
    steps = np.diff(latencies_ms)
    most = 2 * max(tick_ms, int(np.median(steps)) if len(steps) else 0) + SLACK_MS
    long = np.concatenate([[0], np.cumsum(steps > most)])
    first, last = np.minimum(before, len(latencies_ms) - 1), np.maximum(behind - 1, 0)
    silent: NDArray[np.bool_] = (long[last] > long[first]) | (times_ms - latencies_ms[last] > most)
    return silent


def segments(stamps_ms: Int) -> list[slice]:
    """Return the stretches in which time does not run back: jobs or runs that were appended to one log."""
    if not len(stamps_ms):
        return []
    cuts = [0, *(np.flatnonzero(np.diff(stamps_ms) < 0) + 1).tolist(), len(stamps_ms)]
    return [slice(first, last) for first, last in pairwise(cuts)]


def beside(path: Path, context: Context, kind: str, window_ms: int) -> Beside | None:
    """Return the log of IOPS or bandwidth beside an averaged log; None where there is none, or it has no row."""
    other = sibling(path, kind)
    place = None if other is None else direction_of(other, context)
    if other is None or place is None:
        return None
    table = averaged_rows(other, ("time", "value", *(("maximum",) if place > 2 else ()), "direction"), Account())
    rows = {code: (mine[:, 0], mine[:, 1]) for code in range(3) if len(mine := table[table[:, -1] == code])}
    old = context.version is not None and context.version < WINDOW_SINCE
    return Beside(kind, rows, max(window_ms, OLD_TICK_MS) if old else window_ms) if rows else None


def logs_beside(path: Path) -> list[Path]:
    """Return the logs of IOPS and bandwidth of the same job that there are."""
    return [other for kind in (IOPS, BANDWIDTH) if (other := sibling(path, kind)) is not None]


def sibling(path: Path, kind: str) -> Path | None:
    """Return the log of another type that the same job wrote, compressed or not; None where there is none."""
    name = plain_name(path)
    match = LOG_NAME.match(name)
    if match is None:
        return None
    plain = f"{name[: match.start('type')]}{kind}{name[match.end('type') :]}"
    return next((other for ending in ("", *COMPRESSED) if (other := path.with_name(plain + ending)).is_file()), None)


def fitted(estimates: Floats, total: int) -> Int:
    """Return whole counts in the proportions of the estimates that add up to `total`: at least 1 each where that can be."""
    rows = len(estimates)
    scaled = estimates * (total / estimates.sum())
    if total < rows:
        return rounded(scaled, total)
    over = np.maximum(scaled - 1, 0)
    return 1 + rounded(over if over.sum() > 0 else np.ones(rows), total - rows)


def rounded(shares: Floats, total: int) -> Int:
    """Return whole numbers in these proportions that add up to `total`, by rounding their running sum."""
    running = np.cumsum(shares)
    edges = np.rint(running * (total / running[-1])).astype(np.int64)
    edges[-1] = total
    counts: Int = np.diff(edges, prepend=0)
    return counts


# Why counts that come from fio's log of IOPS alone may be wrong by more than its rounding.
#
# fio before 3.18 divides what was done since its last tick by the time since another moment: the start, moved on by a window at
# each tick. Once a tick comes late (the start of a job, a busy machine), all rates after it are too low by the same factor, up
# to a half: 377 ms in place of 250 ms make 5,898 I/Os 3,765. Neither the log nor that of bandwidth shows it: both are divided
# alike.
#
# Source: fio stat.c (add_iops_samples, __add_samples), commit cdb8308d; measured on logs of fio 2.16.


FROM_RATES = "counts come only from fio's log of IOPS"
EXACT_RATES_SINCE = (3, 18)
UNLIKE = 0.05
REMEDY = "keep fio's JSON (--output-format=json) in the folder of its logs"
TOO_LOW = "fio before 3.18 may write all of its rates too low, by up to a half"


def why(iops: Beside, bandwidth: Beside | None, direction: int, stamps_ms: Int, begin_ms: int, *, exact_rates: bool) -> str:
    """Return why the counts of a direction may be wrong; empty text where nothing speaks against the log of IOPS."""
    covered = iops.covered_ms(direction, stamps_ms, begin_ms)
    unlogged = iops.unlogged_ms(direction, stamps_ms, begin_ms)
    reasons = [] if exact_rates else [TOO_LOW]
    if unlogged > max(2 * iops.tick_ms(stamps_ms), UNLIKE * (covered + unlogged)):
        reasons.append(f"it lacks rows for {unlogged:,} ms in which there are latencies: a rate was taken for them")
    if bandwidth is not None:
        other = bandwidth.covered_ms(direction, stamps_ms, begin_ms)
        if abs(other - covered) > UNLIKE * max(other, covered):
            reasons.append(f"its rows are of {covered:,} ms, those of the log of bandwidth beside it of {other:,} ms")
    return "; ".join(reasons)


DEFAULT_WINDOW_MS = 1000
LARGEST_SUM = 1 << 60
UNITS = {BANDWIDTH: "bandwidth", IOPS: "IOPS"}
MIB = 1 << 20
MAXIMA = "means: log_window_value=max: each row is the largest latency of a window, and no mean; log both to have means, too"
BYTES_FROM_RATES = "bytes come only from fio's log of bandwidth"
UNCOUNTED = (
    "averaged (log_avg_msec), and how many I/Os each mean stands for cannot be determined: neither a log of IOPS "
    "(write_iops_log) nor fio's JSON lies beside it"
)


class Averaged(NamedTuple):
    """What the head of an averaged log says: its shape, the time that each mean is over, whether stamps are since 1970.

    `maxima` says that its values are the largest latencies of windows, not means.
    """

    shape: Shape
    window_ms: int
    unix: bool
    maxima: bool


def look(path: Path, context: Context) -> Averaged | None:
    """Return what the head of an averaged log says, None of a log of single I/Os; InputError where it is no such log."""
    shape = averaged_shape_of(path, context)
    if shape is None:
        return None
    options = context.options
    largest = options.get("log_window_value") == "max" or options.get("log_max_value") == "1"
    window_option = options.get("log_avg_msec", "")
    steps = np.diff(np.unique(first_stamps(path, context)))
    typical = int(np.median(steps)) if len(steps) else DEFAULT_WINDOW_MS
    window = int(window_option) if window_option.isdigit() and int(window_option) else typical
    return Averaged(shape, window, clock.real_time(options, shape.first_ms), maxima=largest and "maximum" not in shape.columns)


def read(path: Path, context: Context) -> Iterator[Intervals[Series]]:
    """Yield the rows of a log without bins, ops as series of their own.

    Counts add up to fio's own N of each op where that is known, bytes to its `io_bytes`. Means are fio's, in whole ns; a sum is
    mean x count, and unknown where the log holds maxima alone. What fio says of the whole run goes into the account. Raises
    InputError where the log holds single I/Os, or counts cannot be determined.
    """
    averaged = look(path, context)
    if averaged is None:
        raise InputError("no averaged log: its rows are single I/Os", path, 1)
    if averaged.maxima:
        context.account.note(MAXIMA)
    columns = averaged.shape.columns[: averaged.shape.columns.index("direction") + 1]
    table = averaged_rows(path, columns, context.account, DAY_NS // averaged.shape.unit_ns)
    kind = context.series.kind.removesuffix(MEAN)
    whole = [
        summary.whole_run(context.series.replaced(op=op, kind=kind))
        for job in context.jobs
        for (op, of), summary in sorted(job.items())
        if of == kind and summary.count
    ]
    log = _Log.of(path, context, averaged, whole)
    for code, op in enumerate(OPS):
        mine = table[table[:, -1] == code]
        rows = log.rows(mine, code) if len(mine) else log.whole_row(op)
        if rows is not None:
            context.account.samples += int(rows.counts.sum())
            yield rows
    context.account.whole_runs.extend(replace(whole_run, window_ns=averaged.window_ms * MS).to_dict() for whole_run in log.whole)


class _Log(NamedTuple):
    """One averaged log with what surrounds it."""

    path: Path
    context: Context
    found: Averaged
    iops: Beside | None
    bandwidth: Beside | None
    whole: Sequence[WholeRun]

    @staticmethod
    def of(path: Path, context: Context, averaged: Averaged, whole: Sequence[WholeRun]) -> _Log:
        """Return a log with those of IOPS and bandwidth that lie beside it."""
        iops, bandwidth = (beside(path, context, kind, averaged.window_ms) for kind in (IOPS, BANDWIDTH))
        return _Log(path, context, averaged, iops, bandwidth, whole)

    @property
    def beside(self) -> Beside | None:
        """Return the log that shows how many I/Os a row stands for, or at least their shares."""
        return self.iops or self.bandwidth

    def begin_ms(self, op: str) -> int:
        """Return where the first row of an op begins, in the time of stamps."""
        begin, _ = self.span(op) or (0, 0)
        if not self.found.unix:
            return begin // MS
        zero = self.context.zero.epoch_ns
        first = self.found.shape.first_ms
        return (zero + begin) // MS if zero is not None and zero // MS < first else first - self.found.window_ms

    def span(self, op: str) -> tuple[int, int] | None:
        """Return from when to when of the run an op ran in ns, None where that is all of it, or not known."""
        return self.context.spans.get((op, self.context.series.kind.removesuffix(MEAN)))

    @property
    def base_ns(self) -> int:
        """Return the epoch ns that stamps count from."""
        return (0 if self.found.unix else self.context.zero.epoch_ns or 0) + self.context.offset_ns

    @property
    def exact_rates(self) -> bool:
        """Return whether fio divides by the time that a row of IOPS or bandwidth is of."""
        version = self.context.version
        return "priority" in self.found.shape.columns if version is None else version >= EXACT_RATES_SINCE

    def of_op(self, op: str) -> list[WholeRun]:
        """Return what fio says of an op over the whole run."""
        return [whole_run for whole_run in self.whole if whole_run.series.op == op]

    def rows(self, table: Int, code: int) -> Intervals[Series]:
        """Return the intervals of an op; `table` are its rows: time, mean, maximum where it is logged, direction."""
        stamps, counts = table[:, 0], self.counts(table[:, 0], code)
        parts, begin = segments(stamps), self.begin_ms(OPS[code])
        starts = np.concatenate([np.concatenate([[min(begin, int(stamps[own][0]))], stamps[own][:-1]]) for own in parts])
        unit, none = self.found.shape.unit_ns, np.full(len(table), NO_MIN)
        if int(table[:, 1].max()) * unit * int(counts.max()) > LARGEST_SUM:
            raise InputError("means and counts are larger than can be added up: damage, or another unit", self.path)
        logged = table[:, 1] * unit
        sums, most = logged * counts, table[:, 2] * unit if table.shape[1] > 3 else np.full(len(table), NO_MAX)
        if self.found.maxima:
            sums, most = np.full(len(table), NO_SUM), logged
        series = self.context.series.replaced(op=OPS[code])
        return _intervals(
            [series.replaced(segment=number) for number in range(len(parts))],
            np.repeat(np.arange(len(parts)), [own.stop - own.start for own in parts]),
            (self.base_ns + starts * MS, self.base_ns + stamps * MS),
            counts,
            Exact(none, most, sums, np.ones(len(table), np.bool_), self.moved(stamps, code)),
        )

    def counts(self, stamps: Int, code: int) -> Int:
        """Return how many I/Os each row stands for; InputError where that cannot be determined."""
        op, account = OPS[code], self.context.account
        estimates = self.beside.estimates(code, stamps, self.begin_ms(op)) if self.beside else None
        iops = estimates is not None and self.beside is not None and self.beside.type == IOPS
        total = self._total(op, code)
        if self.beside and estimates is not None:
            self._note_end(self.beside, stamps, code)
        if total is None:
            if estimates is None or not iops:
                raise InputError(UNCOUNTED, self.path)
            if not self.context.grouped:  # then another log of the group makes up for what is rounded here
                self._note_rates(stamps, code)
            return np.maximum(np.rint(estimates), 1).astype(np.int64)
        if estimates is None:
            account.note("means: no log of IOPS or bandwidth beside it fits: fio's own count is spread evenly over time")
            begin_ms = self.begin_ms(op)
            widths = np.concatenate([np.diff(stamps[part], prepend=begin_ms) for part in segments(stamps)])
            shares: Floats = np.maximum(widths, 1).astype(np.float64)
            estimates = shares
        elif not iops:
            account.note("means: no log of IOPS beside it fits: fio's own count is spread as its bandwidth was")
        elif abs(estimates.sum() - total) > UNLIKE * total:
            logged = round(float(estimates.sum()))
            account.note(f"means: {op}: fio's log of IOPS counts {logged:,} I/Os, its summary {total:,}: windows were scaled")
        if total < len(stamps):
            account.note(f"means: {op}: {len(stamps):,} means, but fio's summary counts {total:,} I/Os: some are left out")
        return fitted(estimates, total)

    def _note_rates(self, stamps: Int, code: int) -> None:
        """Say that counts come from rates, or keep what may be wrong with them."""
        begin, iops = self.begin_ms(OPS[code]), self.iops
        reason = why(iops, self.bandwidth, code, stamps, begin, exact_rates=self.exact_rates) if iops else ""
        if reason:
            span = self.base_ns + min(begin, int(stamps.min())) * MS, self.base_ns + int(stamps.max()) * MS
            caveat = Caveat("counts-from-rates", self.context.account.path, f"{OPS[code]}: {FROM_RATES}: {reason}", REMEDY)
            labels = labels_of(self.context.series.replaced(op=OPS[code]))
            self.context.account.lack(Missing(labels, *span, None, 0, None, caveat))
        else:
            self.context.account.note(f"means: {FROM_RATES}, which rounds: there is no fio JSON of the job")

    def _total(self, op: str, code: int) -> int | None:
        """Return how many I/Os of an op the log stands for by fio's own count, None where that is unknown.

        Where fio summed up groups of jobs, the log that carries the sum stands for what the others do not.
        """
        mine = self.of_op(op)
        if not mine:
            return None
        others = sum(int(log.counts(stamps, code).sum()) for log, stamps in self._others(code))
        return max(sum(whole_run.count for whole_run in mine) - others, 1)

    def _others(self, code: int) -> Iterator[tuple[_Log, Int]]:
        """Yield the other logs that a sum of fio stands for, with the stamps of their rows of an op; those that have some."""
        columns = self.found.shape.columns[: self.found.shape.columns.index("direction") + 1]
        for other in self.context.siblings:
            context = replace(self.context, jobs=(), siblings=(), account=Account())
            table = averaged_rows(other, columns, context.account)
            stamps = table[table[:, -1] == code][:, 0]
            if len(stamps):
                yield _Log.of(other, context, self.found, ()), stamps

    def _note_end(self, other: Beside, stamps: Int, code: int) -> None:
        short = other.missing_ms(code, stamps)
        if short > 2 * self.found.window_ms:
            said = f"means: {OPS[code]}: the log of {UNITS[other.type]} ends {short:,} ms before that of latencies"
            self.context.account.note(said)

    def moved(self, stamps: Int, code: int) -> Int | None:
        """Return the bytes that each row stands for; None where no log of bandwidth says so."""
        op, account = OPS[code], self.context.account
        estimates = self.bandwidth.estimates(code, stamps, self.begin_ms(OPS[code])) if self.bandwidth else None
        if self.bandwidth is None or estimates is None or not estimates.sum() <= LARGEST_SUM:
            return None
        if self.bandwidth is not self.beside:
            self._note_end(self.bandwidth, stamps, code)
        total = self._total_bytes(op, code)
        if total is None:
            if not self.context.grouped:
                low = "" if self.exact_rates else f"; {TOO_LOW}"
                account.note(f"means: {BYTES_FROM_RATES}, which rounds: no fio JSON of the job has them{low}")
            return np.rint(estimates).astype(np.int64)
        if abs(estimates.sum() - total) > UNLIKE * total:
            logged, summary = (f"{figure(value / MIB, 4)} MiB" for value in (estimates.sum(), total))
            account.note(f"means: {op}: fio's log of bandwidth holds {logged}, its summary {summary}: windows were scaled")
        return rounded(estimates, total)

    def _total_bytes(self, op: str, code: int) -> int | None:
        """Return the bytes of an op that the log stands for by fio's own count, as `_total`; None where that is unknown."""
        mine = self.of_op(op)
        total = bytes_of(mine) if mine else None
        if total is None:
            return None
        for log, stamps in self._others(code):
            moved = log.moved(stamps, code)
            if moved is None:
                return None
            total -= int(moved.sum())
        return max(total, 0)

    def whole_row(self, op: str) -> Intervals[Series] | None:
        """Return the interval of an op without rows in the log, from fio's values of the whole run; None where it has none."""
        if not (mine := self.of_op(op)):
            return None
        count, total, least, most = sum_of(mine)
        start = self.base_ns + self.begin_ms(op) * MS
        span = self.span(op)
        length = self.context.runtime_ns if span is None else span[1] - span[0]
        self.context.account.note(f"means: {op}: no row is in the log: one mean over the whole run from fio's JSON")
        exact = told_exact([total], [least], [most], [bytes_of(mine)])
        series = [self.context.series.replaced(op=op)]
        spans = (np.array([start]), np.array([start + max(length, MS)]))
        return _intervals(series, np.zeros(1, np.int64), spans, np.array([count]), exact)


def _intervals(table: Sequence[Series], codes: Int, spans: tuple[Int, Int], counts: Int, exact: Exact) -> Intervals[Series]:
    """Return rows without bins; those without I/Os are left out."""
    indptr, bins = np.arange(len(codes) + 1), np.zeros(len(codes), np.int64)
    rows = Intervals(NO_BINS, tuple(table), codes, *spans, indptr, bins, counts, exact)
    return rows if (counts > 0).all() else rows.take(np.flatnonzero(counts > 0))


LATENCIES, RATES = "clat", "iops"
BOTH = ("log_window_value", "log_max_value")


class Rows(NamedTuple):
    """Stamps in ms as logged, values (latencies in ns), directions; `averaged` says that rows are means over a window.

    `unix` says that stamps count from 1970, not from the start of fio.
    """

    stamp_ms: Int
    value: Int
    direction: Int
    averaged: bool
    unix: bool


def log_beside(path: Path, kind: str) -> Path | None:
    """Return the log of another kind of the same job beside a histogram or `_clat` log, None where there is none."""
    name = plain_name(path)
    for own in ("_clat_hist", "_clat"):
        head, separator, rest = name.rpartition(own)
        if separator:
            plain = f"{head}_{kind}{rest}"
            tried = (path.with_name(plain + ending) for ending in ("", *sorted(COMPRESSED)))
            return next((other for other in tried if other.is_file() and not holds_nothing(other)), None)
    return None


def rows_of(path: Path, context: Context, *, latencies: bool) -> Rows:
    """Return the rows of a log; InputError where it cannot be read, or a row is not of whole numbers."""
    first = next((bytes(block).split(b"\n", 1)[0] for block in blocks(path)), b"")
    place = 3 if any(context.options.get(name) in ("both", "1") for name in BOTH) and (first.count(b",") + 1) > 5 else 2
    parts = [np.zeros((0, 4), np.int64)]
    for block in blocks(path):
        text = bytes(block)
        if not text.strip():
            continue
        try:
            table = np.loadtxt(
                io.BytesIO(text), np.int64, comments=None, delimiter=",", usecols=(0, 1, place, place + 1), ndmin=2
            )
        except ValueError as error:
            raise InputError(f"not a log of whole numbers: {error}", path) from None
        parts.append(table)
    stamp, value, direction, size = np.concatenate(parts).T
    averaged = bool(len(size)) and 2 * int(np.count_nonzero(size == 0)) > len(size)
    unix = len(stamp) > 0 and clock.real_time(context.options, int(stamp[0]))
    unit = 1
    if latencies:
        unit = context.recorded_unit_ns or (1000 if context.version and context.version[:2] < NANOSECONDS_SINCE else 1)
    return Rows(stamp, value * unit, direction, averaged, unix)
