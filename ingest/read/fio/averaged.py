"""Averaged fio latency logs: `write_lat_log` with `log_avg_msec`, one row a window and direction. What CBT writes by default.

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
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ingest.core.documents import told_exact
from ingest.core.errors import InputError
from ingest.core.intervals import NO_MAX, NO_MIN, NO_SUM, Exact, Int, Intervals
from ingest.core.layout import NO_BINS
from ingest.core.series import MEAN, OPS, Series
from ingest.core.whole_runs import WholeRun, bytes_of, sum_of
from ingest.core.writing import figure
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.events import DAY_NS
from ingest.read.fio.averaged_rows import averaged_rows
from ingest.read.fio.rate_doubts import EXACT_RATES_SINCE, FROM_RATES, TOO_LOW, entry, why
from ingest.read.fio.raw_shape import Shape, averaged_shape_of, first_stamps, is_epoch
from ingest.read.fio.window_counts import BANDWIDTH, IOPS, Beside, Floats, beside, fitted, rounded, segments

MS = 1_000_000
DEFAULT_WINDOW_MS = 1000
UNLIKE = 0.05
LARGEST_SUM = 1 << 60
UNITS = {BANDWIDTH: "bandwidth", IOPS: "IOPS"}
MIB = 1 << 20
MAXIMA = "means: log_window_value=max: each row is the largest latency of a window, and no mean; log both to have means, too"
BYTES_FROM_RATES = "bytes come only from fio's log of bandwidth"
UNCOUNTED = (
    "averaged (log_avg_msec), and how many I/Os each mean stands for cannot be determined: neither a log of IOPS "
    "(write_iops_log) nor fio's JSON lies beside it"
)


@dataclass(frozen=True, slots=True)
class Averaged:
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
    return Averaged(shape, window, is_epoch(shape, context), maxima=largest and "maximum" not in shape.columns)


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
    log = _Log.of(path, context, averaged, _whole_runs(context))
    for code, op in enumerate(OPS):
        mine = table[table[:, -1] == code]
        rows = log.rows(mine, code) if len(mine) else log.whole_row(op)
        if rows is not None:
            context.account.samples += int(rows.counts.sum())
            yield rows
    context.account.whole_runs.extend(replace(whole_run, window_ns=averaged.window_ms * MS).told() for whole_run in log.whole)


def _whole_runs(context: Context) -> list[WholeRun]:
    """Return what fio says of the jobs of a log over the whole run, for the log's kind."""
    kind = context.series.kind.removesuffix(MEAN)
    series = context.series.replaced(kind=kind)
    return [
        summary.whole_run(series.replaced(op=op))
        for job in context.jobs
        for (op, of), summary in sorted(job.items())
        if of == kind and summary.count
    ]


@dataclass(frozen=True, slots=True)
class _Log:
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
        zero = 0 if self.found.unix else self.context.zero.epoch_ns or 0
        return zero + self.context.offset_ns

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
            self.context.account.lack(entry(self.context, OPS[code], span, reason))
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
    rows = Intervals(
        layout=NO_BINS,
        table=tuple(table),
        series=codes,
        start_ns=spans[0],
        end_ns=spans[1],
        indptr=np.arange(len(codes) + 1),
        bins=np.zeros(len(codes), np.int64),
        counts=counts,
        exact=exact,
    )
    return rows if (counts > 0).all() else rows.take(np.flatnonzero(counts > 0))
