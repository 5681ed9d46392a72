"""Rows of a fio histogram log -> intervals: chains per direction, segments, and the repairs that fio's faults need.

A chain is the rows of one direction in file order; a segment is a stretch of it in which time does not run back. Each
chain is a series (its op), each segment a series of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain as joined
from typing import TYPE_CHECKING

import numpy as np

from ingest.core.csr import gather, row_sums, total
from ingest.core.errors import counted, listed
from ingest.core.intervals import Histogram, Int, Intervals, one_row
from ingest.core.layout import LogLinear
from ingest.core.series import MIXED, OPS, Series
from ingest.core.timing import MOST_NS
from ingest.read.context import Context
from ingest.read.fio import clock, lost_rows
from ingest.read.fio import repairs as fio_repairs
from ingest.read.fio.lacks import Lacks, Span
from ingest.read.integer_rows import Rows
from ingest.read.lacks import UNCLEAR

if TYPE_CHECKING:
    from ingest.read.summary import Summary

MS = 1_000_000
LAST_STAMP_MS = MOST_NS // MS
LATE_FIRST = (
    "{op}: its first row is stamped {stamp}: it is taken to begin {width} ms before, as fio begins a row at the first I/O"
)
LONGEST_LAST = 2  # rows that a last interval may be long: it is a part of one, and the row before it may come late
COMPLETION = "completion"
NOT_A_ROW = "not a row of plain integers"
DIRECTION = "direction is not 0, 1 or 2"
STAMP = "time stamp past the year 2115"


class Chain:
    """What one direction carries from chunk to chunk: the last stamp (file ms), the segment, the sums so far."""

    def __init__(self, op: str, bins: int) -> None:
        self.op, self.bins = op, bins
        self.stamp, self.segment = 0, -1
        self.start_ns: int | None = None
        self.end_ns = 0
        self.lost, self.passed = 0, 0
        self.gaps: list[Span] = []
        self.holes: list[Span] = []
        self.late: list[Span] = []
        self.watch = lost_rows.Watch()
        self.base_ns: Int = np.zeros(1, np.int64)  # epoch ns that the last row's stamp counts from
        self.total: Int = np.zeros(bins, np.int64)
        self.repair = fio_repairs.Repair(bins)


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
        self.mask = fio_repairs.masked_from(layout, context.version)
        self.mode: str | None = None
        self.unix = False
        self.width_ms = 0
        self.period_ms = lost_rows.period_ms(context.options)
        self.chains: dict[str, Chain] = {}
        self.lacks = Lacks(context)
        self._told: set[int] = set()

    def whole(self, op: str, span: Span, bins: Int, counts: Int) -> None:
        """Take all rows of a direction as read: from when to when they are in ns, and their sum. None of them was rejected."""
        chain = self.chains[op] = Chain(op, self.layout.bins)
        chain.segment, chain.start_ns, chain.end_ns = 0, span[0], max(0, span[1])
        chain.total[bins] = counts

    def intervals(self, rows: Rows, lines: Int) -> Iterator[Intervals[Series]]:
        """Yield the intervals of a chunk of rows, in file order within each direction."""
        kept = self._plausible(rows, lines)
        if len(kept) < len(rows):
            rows, lines = fio_repairs.take(rows, kept), lines[kept]
        if not len(rows):
            return
        stamps = rows.lead[:, 0].astype(np.int64)
        if self.base_ms:
            stamps = np.maximum(stamps - self.base_ms, 0)
        order = self._order(rows)
        if self.mode is None:
            self._look(rows, stamps, order)
        if self.mask is None:
            self.mask = fio_repairs.garbage_from(rows, stamps, order, self.layout, self.context)
            if self.mask is not None and self.chains:
                late = f"bins from 786 us up are corrupt from line {lines[0]} on at the latest; earlier ones look whole"
                self.account.note(late)
        for code, chain_rows in enumerate(order):
            if len(chain_rows):
                op = OPS[code] if self.directed else "all"
                chain = self.chains.get(op) or self.chains.setdefault(op, Chain(op, self.layout.bins))
                part = self._chain(chain, fio_repairs.take(rows, chain_rows), stamps[chain_rows], lines[chain_rows])
                if part is not None and len(part):
                    yield part

    def _order(self, rows: Rows) -> list[Int]:
        """Return the places of the rows of each direction."""
        ops = rows.lead[:, 1] if self.directed else np.zeros(len(rows), np.uint64)
        if (ops == ops[0]).all():
            whole = np.arange(len(rows))
            return [whole if code == ops[0] else whole[:0] for code in range(len(OPS))]
        return [np.flatnonzero(ops == code) for code in range(len(OPS))]

    def _plausible(self, rows: Rows, lines: Int) -> Int:
        """Return the places of the rows whose leading cells can be, and that count something; others are rejected."""
        stamp, op = rows.lead[:, 0].max(initial=0), rows.lead[:, 1].max(initial=0) if self.directed else 0
        if stamp < LAST_STAMP_MS and op < len(OPS) and (rows.indptr[1:] > rows.indptr[:-1]).all():
            return np.arange(len(rows))
        direction_ok = rows.lead[:, 1] < len(OPS) if self.directed else np.ones(len(rows), np.bool_)
        stamp_ok = rows.lead[:, 0] < LAST_STAMP_MS
        filled = np.diff(rows.indptr) > 0
        self.account.reject(DIRECTION, lines[~direction_ok].tolist())
        self.account.reject(STAMP, lines[direction_ok & ~stamp_ok].tolist())
        good = direction_ok & stamp_ok
        self.account.reject("all bins zero (clat_percentiles=0?)", lines[good & ~filled].tolist())
        return np.flatnonzero(good & filled)

    def _look(self, rows: Rows, stamps: Int, order: list[Int]) -> None:
        """Decide from the first chunk how stamps and counts are to be read."""
        options = self.context.options
        steps = joined.from_iterable(np.diff(stamps[picked]).tolist() for picked in order)
        self.width_ms = clock.typical_width_ms(steps, options) or clock.DEFAULT_WIDTH_MS
        self.unix = not self.base_ms and clock.real_time(options, int(stamps[0]))
        self.mode = fio_repairs.counting(rows, order, self.layout, self.context)
        if self.mode != fio_repairs.PER_INTERVAL:
            self.account.note(f"counts are {self.mode}: differenced")

    def _chain(self, chain: Chain, rows: Rows, stamps: Int, lines: Int) -> Intervals[Series] | None:
        before = np.concatenate([[chain.stamp], stamps[:-1]])
        began = stamps < before
        if chain.segment < 0:
            began[0] = True
        segment = chain.segment + np.cumsum(began)
        first_ms = self._first_begins_ms(chain, rows, int(stamps[0]))
        start, jumped = clock.row_starts(before, stamps, began, self.width_ms, first_ms, unix=self.unix)
        chain.stamp, chain.segment = int(stamps[-1]), int(segment[-1])
        old = segment < self._older_segments(chain.op)
        reasons: dict[str, Int] = {"clock jump: the row is taken for as wide as its neighbours": jumped}
        if self.mask is not None:
            reasons[fio_repairs.MASKED] = np.arange(len(rows))
            rows = fio_repairs.masked(rows, self.mask)
        lost = np.array(self.account.rejected_lines, np.int64)
        gap = np.diff(np.searchsorted(lost, lines), prepend=chain.lost) > 0
        chain.lost = len(lost)
        damaged = self._damaged()
        after_damage = np.diff(np.searchsorted(damaged, lines), prepend=chain.passed) > 0
        chain.passed = len(damaged)
        repaired = chain.repair.apply(rows, began, gap, self.mode or fio_repairs.PER_INTERVAL)
        reasons.update(repaired.reasons)
        bad = np.zeros(len(rows), np.bool_)
        for reason, places in repaired.rejected.items():
            self.account.reject(reason, lines[places].tolist())
            bad[places] = True
        self.account.reject("row of an older run that was appended to", lines[old & ~bad].tolist())
        self._told.update(lines[bad | old].tolist())
        zero = (0 if self.unix else self.zero_ns) + self.context.offset_ns
        base = zero + np.where(segment > 0, self.context.restart_ns, 0)
        empty_handed = (bad | after_damage) & ~old
        chain.gaps += zip((start * MS + base)[empty_handed].tolist(), (stamps * MS + base)[empty_handed].tolist(), strict=True)
        if self.period_ms:
            samples = row_sums(repaired.indptr, repaired.counts)
            chain.base_ns = base[-1:]
            self._look_for_holes(chain, stamps, samples, np.flatnonzero(began), base)
        kept = np.flatnonzero(~bad & ~old)
        self._count(kept, lines, reasons)
        if not len(kept):
            return None
        indptr, bins, counts = repaired.indptr, repaired.bins, repaired.counts
        if len(kept) < len(rows):
            indptr, flat = gather(indptr, kept)
            bins, counts = bins[flat], counts[flat]
        np.add.at(chain.total, bins, counts)
        self.account.samples += total(counts)
        base = base[kept]
        first_ns = int((start[kept] * MS + base).min())
        chain.start_ns = first_ns if chain.start_ns is None else min(chain.start_ns, first_ns)
        chain.end_ns = max(chain.end_ns, int((stamps[kept] * MS + base).max()))
        lowest, highest = int(segment[kept[0]]), int(segment[kept[-1]])
        chunk = Intervals(
            layout=self.layout,
            table=tuple(self._series(chain.op, code) for code in range(lowest, highest + 1)),
            series=segment[kept] - lowest,
            start_ns=start[kept] * MS + base,
            end_ns=np.maximum(stamps[kept], start[kept]) * MS + base,
            indptr=indptr,
            bins=bins,
            counts=counts,
        )
        empty = np.diff(indptr) == 0
        return chunk.take(np.flatnonzero(~empty)) if empty.any() else chunk

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
        if not any(len(places) for places in reasons.values()):
            self.account.accept(len(kept))
            return
        touched = np.zeros(len(lines), np.bool_)
        chosen = np.zeros(len(lines), np.bool_)
        chosen[kept] = True
        named: dict[str, list[int]] = {}
        for reason, places in reasons.items():
            taken = places[chosen[places]]
            if len(taken):
                named[reason] = lines[taken].tolist()
                touched[taken] = True
        repaired = int(touched.sum())
        if repaired:
            self.account.repair(repaired, named)
        self.account.accept(len(kept) - repaired)

    def _older_segments(self, op: str) -> int:
        """Return how many segments of a direction belong to older runs: all but the last ones that fio's JSON knows jobs for."""
        segments = self.context.segments.get(op, 0)
        known = self.context.grouped or sum((op, COMPLETION) in job or (MIXED, COMPLETION) in job for job in self.context.jobs)
        return max(0, segments - known) if segments and known else 0

    def _series(self, op: str, segment: int) -> Series:
        return self.context.series.replaced(op=op, kind=COMPLETION, segment=segment)

    def tail(self, siblings: Mapping[str, Histogram]) -> Iterator[Intervals[Series]]:
        """Yield what fio's json+ holds beyond the log's rows, as a last interval of each direction, and keep the sums.

        fio never writes the last partial interval of a histogram log. The difference is exact where every bin of it is
        zero or more; else the log and the JSON are not of one run, and the account says so. `siblings` are the sums of
        the other logs where the JSON has but one sum for all. Where fio counted all ops together (unified_rw_reporting)
        the last interval is of no one op: it is `mixed`.
        """
        if self.mask is not None and not self.context.jobs and not self.context.grouped:
            self.account.note(fio_repairs.LOST_UNKNOWN)
        if self.context.zero.origin in clock.UNKNOWN:
            self.account.note(f"the start of the run is unknown ({self.context.zero.origin}): {clock.REMEDY}")
        completion = {op for job in self.context.jobs for op, kind in job if kind == COMPLETION}
        for op in sorted(set(self.chains) - completion - {"all"} if completion and MIXED not in completion else ()):
            held = int(self.chains[op].total.sum())
            self.account.note(f"{op}: the log holds {held} samples, fio's JSON none of this job: {fio_repairs.NOT_OF_ONE}")
        for op in sorted(completion | set(self.chains)):
            chain = self.chains.setdefault(op, Chain(op, self.layout.bins))
            if len(self._damaged()) > chain.passed and chain.segment >= 0:
                chain.gaps.append((chain.end_ns, self._run_end(chain)))
            part = self._residual(chain, siblings) if op in completion else None
            if part is not None and self.period_ms:  # more completed after the last row, so it was not late either
                self._look_for_holes(chain, np.array([chain.stamp]), np.array([2]), np.empty(0, np.int64), chain.base_ns)
            span = (int(part.start_ns[0]), int(part.end_ns[0])) if part is not None else (0, 0)
            if part is not None and (gaps := chain.gaps or chain.holes or chain.late):
                gaps.append(span)  # what these rows held cannot be separated from what was never written
            elif span[1] - span[0] > LONGEST_LAST * MS * (self.period_ms or self.width_ms):
                self.lacks.unplaced(chain.op, span, self._summaries(chain.op))
            self._lack(chain)
            if part is not None:
                chain.total[part.bins] += part.counts
                self.account.samples += int(part.counts.sum())
                yield part
            filled = np.flatnonzero(chain.total)
            self.account.totals[op] = Histogram(self.layout, filled, chain.total[filled])
            self.account.saturated += int(chain.total[-1])

    def _lack(self, chain: Chain) -> None:
        """Keep what the rows of an op lack where fio's JSON does not say how much."""
        self.lacks.rejected(chain.op, chain.gaps, self._summaries(chain.op))
        self.lacks.lost(chain.op, chain.holes, self._summaries(chain.op))
        self.lacks.late(chain.op, chain.late, self._summaries(chain.op))
        if self.context.jobs or self.context.grouped or chain.segment < 0:
            return
        if self.mask is not None:
            self.lacks.damaged_unknown(chain.op, (self._first_start(chain), chain.end_ns), int(self.layout.edges[self.mask]))
        if fio_repairs.DOUBTFUL in self.account.notes:
            self.lacks.doubtful(chain.op, (self._first_start(chain), chain.end_ns))
        self.lacks.after_last(chain.op, (chain.end_ns, self._run_end(chain)))

    def _summaries(self, op: str) -> list[Summary]:
        return [job[op, COMPLETION] for job in self.context.jobs if (op, COMPLETION) in job]

    def _first_begins_ms(self, chain: Chain, rows: Rows, stamp_ms: int) -> int | None:
        """Return where the first row of an op begins, in the time of stamps; None where one was before, and of epoch stamps."""
        if chain.segment >= 0 or self.unix:
            return None
        earliest = self.context.spans.get((chain.op, COMPLETION), (0, 0))[0] // MS
        samples = int(rows.counts[: rows.indptr[1]].sum()) if self.mode == fio_repairs.PER_INTERVAL else 0
        begin, late = clock.first_row(stamp_ms, samples, self.period_ms or self.width_ms, earliest)
        if late:
            zero = self.zero_ns + self.context.offset_ns
            chain.late.append((zero + earliest * MS, zero + begin * MS))
        return begin

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

    def _logged(self, chain: Chain, siblings: Mapping[str, Histogram]) -> Int:
        """Return what the rows of an op hold in all, those of sibling logs included; of `mixed` the rows of all ops."""
        logged = np.zeros(self.layout.bins, np.int64)
        for log_chain in self.chains.values():
            if chain.op in (log_chain.op, MIXED):
                # A latency_target reset zeroes what fio's JSON counts, so only what came after it is in both.
                logged += log_chain.repair.since_reset.astype(np.int64) if log_chain.repair.was_reset else log_chain.total
        for op, histogram in siblings.items():
            if chain.op in (op, MIXED):
                logged[histogram.bins] += histogram.counts
        return logged

    def _residual(self, chain: Chain, siblings: Mapping[str, Histogram]) -> Intervals[Series] | None:
        summaries = self._summaries(chain.op)
        logged = self._logged(chain, siblings)
        count = sum(summary.count for summary in summaries)
        missing = count - int(logged.sum())
        if self.context.absent and missing > 0:  # when they completed cannot be determined, so they are no last interval
            numbers = listed([str(number) for number in self.context.absent])
            held = f"{chain.op}: fio counts {count} of all jobs together"
            rest = UNCLEAR if self.context.absent_here else f"{missing} are missing"
            sentence = f"{held}, and the histogram log of job {numbers} is not here: {rest}"
            self.account.note(sentence)
            chain.gaps, chain.holes = [], []
            span, number = (self._first_start(chain), self._run_end(chain)), None if self.context.absent_here else missing
            self.lacks.of_absent(chain.op, span, number, summaries, sentence)
            return None
        expected = np.zeros(self.layout.bins, np.int64)
        for summary in summaries:
            if summary.bins is None:
                if missing:
                    sentence = fio_repairs.unwritten(chain.op, count, missing, masked=self.mask is not None)
                    self._keep_unwritten(chain, missing, summaries, sentence)
                return None
            if not summary.bins.layout.nests_in(self.layout):
                sentence = f"{chain.op}: fio's JSON has other bins than its log; not reconciled"
                self._keep_unwritten(chain, missing, summaries, sentence)
                return None
            np.add.at(expected, summary.bins.layout.moved_to(self.layout)[summary.bins.bins], summary.bins.counts)
        if self.mask is not None:
            lost = int(expected[self.mask :].sum())
            if lost:
                edge = int(self.layout.edges[self.mask])
                sentence = fio_repairs.lost_samples(chain.op, lost, count, edge)
                self.account.note(sentence)
                span = (self._first_start(chain), self._run_end(chain))
                self.lacks.damaged(chain.op, span, lost, edge, summaries, sentence)
            expected[self.mask :] = 0
        residual = expected - logged
        if (residual < 0).any():
            self.account.note(
                f"{chain.op}: the log holds {int(-residual[residual < 0].sum())} samples that fio's JSON does not: "
                f"{fio_repairs.NOT_OF_ONE}"
            )
            return None
        return self._last_interval(chain, residual)

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
        self.lacks.unwritten(chain.op, (begin, self._run_end(chain)), missing, summaries, sentence)

    def _first_start(self, chain: Chain) -> int:
        """Return the start of the first row of an op in ns, else that of the job."""
        of_op = (log_chain for log_chain in self.chains.values() if chain.op in (log_chain.op, MIXED))
        begins = [log_chain.start_ns for log_chain in of_op if log_chain.start_ns is not None]
        return min(begins, default=self._begin_of(chain.op))

    def _begin_of(self, op: str) -> int:
        """Return when an op without a row may have begun in ns."""
        begin, _ = self.context.spans.get((op, COMPLETION), (0, 0))
        return self.zero_ns + self.context.offset_ns + self.context.restart_ns + begin

    def _last_interval(self, chain: Chain, residual: Int) -> Intervals[Series] | None:
        bins = np.flatnonzero(residual)
        if not len(bins):
            return None
        start = self._last_end(chain) or self._begin_of(chain.op)
        end = self._run_end(chain)
        series = self._series(chain.op, max(chain.segment, 0))
        series = series.replaced(job="") if self.context.siblings else series
        return one_row(self.layout, series, (start, max(end, start)), bins, residual[bins])
