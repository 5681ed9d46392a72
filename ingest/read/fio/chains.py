"""Rows of a fio histogram log -> intervals: chains per direction, segments, and the repairs that fio's faults need.

A chain is the rows of one direction in file order; a segment is a stretch of it in which time does not run back. Each
chain is a series (its op), each segment a series of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ingest.intervals import Histogram, Int, Intervals, gather, total
from ingest.layout import LogLinear
from ingest.read.context import Context
from ingest.read.fio import clock, starts
from ingest.read.fio import repairs as fio_repairs
from ingest.read.integer_rows import Rows
from ingest.series import MIXED, OPS, Series
from ingest.timing import MOST_NS

MS = 1_000_000
LAST_STAMP_MS = MOST_NS // MS
NEAR_START = 3
COMPLETION = "completion"


@dataclass(slots=True)
class Chain:
    """What one direction carries from chunk to chunk: the last stamp (file ms), the segment, the sums so far."""

    op: str
    bins: int
    stamp: int = 0
    segment: int = -1
    end_ns: int = 0
    lost: int = 0
    total: Int = field(init=False)
    repair: fio_repairs.Repair = field(init=False)

    def __post_init__(self) -> None:
        self.total = np.zeros(self.bins, np.int64)
        self.repair = fio_repairs.Repair(self.bins)


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
        self.chains: dict[str, Chain] = {}

    def intervals(self, rows: Rows, lines: Int) -> Iterator[Intervals]:
        """Yield the intervals of a chunk of rows, in file order within each direction."""
        kept = self._plausible(rows, lines)
        rows, lines = fio_repairs.take(rows, kept), lines[kept]
        if not len(rows):
            return
        stamps = rows.lead[:, 0].astype(np.int64)
        if self.base_ms:
            stamps = np.maximum(stamps - self.base_ms, 0)
        ops = rows.lead[:, 1].astype(np.int64) if self.directed else np.zeros(len(rows), np.int64)
        order = [np.flatnonzero(ops == code) for code in range(len(OPS))]
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
                chain = self.chains.setdefault(op, Chain(op, self.layout.bins))
                part = self._chain(chain, fio_repairs.take(rows, chain_rows), stamps[chain_rows], lines[chain_rows])
                if part is not None and len(part):
                    yield part

    def _plausible(self, rows: Rows, lines: Int) -> Int:
        direction_ok = rows.lead[:, 1] < len(OPS) if self.directed else np.ones(len(rows), np.bool_)
        stamp_ok = rows.lead[:, 0] < LAST_STAMP_MS
        filled = np.diff(rows.indptr) > 0
        self.account.reject("direction is not 0, 1 or 2", lines[~direction_ok].tolist())
        self.account.reject("time stamp past the year 2115", lines[direction_ok & ~stamp_ok].tolist())
        good = direction_ok & stamp_ok
        self.account.reject("all bins zero (clat_percentiles=0?)", lines[good & ~filled].tolist())
        return np.flatnonzero(good & filled)

    def _look(self, rows: Rows, stamps: Int, order: list[Int]) -> None:
        """Decide from the first chunk how stamps and counts are to be read."""
        options = self.context.options
        steps = np.concatenate([np.diff(stamps[picked]) for picked in order])
        self.width_ms = clock.typical_width_ms(steps, options) or clock.DEFAULT_WIDTH_MS
        self.unix = not self.base_ms and clock.real_time(options, int(stamps[0]))
        self.mode = fio_repairs.counting(rows, order, self.layout, self.context)
        if self.mode != fio_repairs.PER_INTERVAL:
            self.account.note(f"counts are {self.mode}: differenced")

    def _chain(self, chain: Chain, rows: Rows, stamps: Int, lines: Int) -> Intervals | None:
        before = np.concatenate([[chain.stamp], stamps[:-1]])
        began = stamps < before
        if chain.segment < 0:
            began[0] = True
        segment = chain.segment + np.cumsum(began)
        start, jumped = self._starts(before, stamps, began, first=chain.segment < 0)
        chain.stamp, chain.segment = int(stamps[-1]), int(segment[-1])
        old = segment < self._older_segments(chain.op)
        reasons: dict[str, Int] = {"clock jump: the row is taken for as wide as its neighbours": jumped}
        if self.mask is not None:
            reasons[fio_repairs.MASKED] = np.arange(len(rows))
            rows = fio_repairs.masked(rows, self.mask)
        lost = np.array(self.account.rejected_lines, np.int64)
        gap = np.diff(np.searchsorted(lost, lines), prepend=chain.lost) > 0
        chain.lost = len(lost)
        repaired = chain.repair.apply(rows, began, gap, self.mode or fio_repairs.PER_INTERVAL)
        reasons.update(repaired.reasons)
        bad = np.zeros(len(rows), np.bool_)
        for reason, places in repaired.rejected.items():
            self.account.reject(reason, lines[places].tolist())
            bad[places] = True
        self.account.reject("row of an older run that was appended to", lines[old & ~bad].tolist())
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
        zero = (0 if self.unix else self.zero_ns) + self.context.offset_ns
        base = zero + np.where(segment[kept] > 0, self.context.restart_ns, 0)
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

    def _starts(self, before: Int, stamps: Int, began: NDArray[np.bool_], *, first: bool) -> tuple[Int, Int]:
        """Return where each row's interval begins (file ms), and which rows had to be narrowed after a clock jump."""
        guess = np.maximum(stamps - self.width_ms, 0)
        start = np.where(began, guess if self.unix else 0, before)
        jumped = stamps - start > clock.DAY_MS
        if not self.unix:
            later = began & (stamps > NEAR_START * self.width_ms)
            if first:
                later[0] = False
            jumped |= later
        return np.where(jumped, guess, start), np.flatnonzero(jumped)

    def _count(self, kept: Int, lines: Int, reasons: dict[str, Int]) -> None:
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
        found = self.context.segments.get(op, 0)
        known = self.context.grouped or sum((op, COMPLETION) in job or (MIXED, COMPLETION) in job for job in self.context.jobs)
        return max(0, found - known) if found and known else 0

    def _series(self, op: str, segment: int) -> Series:
        return self.context.series.replaced(op=op, kind=COMPLETION, segment=segment)

    def tail(self, siblings: Mapping[str, Histogram]) -> Iterator[Intervals]:
        """Yield what fio's json+ holds beyond the log's rows, as a last interval of each direction, and keep the sums.

        fio never writes the last partial interval of a histogram log. The difference is exact where every bin of it is
        zero or more; else the log and the JSON are not of one run, and the account says so. `siblings` are the sums of
        the other logs where the JSON has but one sum for all. Where fio counted all ops together (unified_rw_reporting)
        the last interval is of no one op: it is `mixed`.
        """
        if self.mask is not None and not self.context.jobs and not self.context.grouped:
            self.account.note(fio_repairs.LOST_UNKNOWN)
        if self.context.zero.origin in starts.UNKNOWN:
            self.account.note(f"time zero is unknown ({self.context.zero.origin}): {starts.REMEDY}")
        completion = {op for job in self.context.jobs for op, kind in job if kind == COMPLETION}
        for op in sorted(set(self.chains) - completion - {"all"} if completion and MIXED not in completion else ()):
            held = int(self.chains[op].total.sum())
            self.account.note(f"{op}: the log holds {held} samples, fio's JSON none of this job: {fio_repairs.NOT_OF_ONE}")
        for op in sorted(completion | set(self.chains)):
            chain = self.chains.setdefault(op, Chain(op, self.layout.bins))
            part = self._residual(chain, siblings) if op in completion else None
            if part is not None:
                chain.total[part.bins] += part.counts
                self.account.samples += int(part.counts.sum())
                yield part
            filled = np.flatnonzero(chain.total)
            self.account.totals[op] = Histogram(self.layout, filled, chain.total[filled])
            self.account.saturated += int(chain.total[-1])

    def _logged(self, chain: Chain, siblings: Mapping[str, Histogram]) -> Int:
        """Return what the rows of an op hold in all, those of sibling logs included; of `mixed` the rows of all ops."""
        logged = np.zeros(self.layout.bins, np.int64)
        for one in self.chains.values():
            if chain.op in (one.op, MIXED):
                # A latency_target reset zeroes what fio's JSON counts, so only what came after it is in both.
                logged += one.repair.since_reset.astype(np.int64) if one.repair.was_reset else one.total
        for op, found in siblings.items():
            if chain.op in (op, MIXED):
                logged[found.bins] += found.counts
        return logged

    def _residual(self, chain: Chain, siblings: Mapping[str, Histogram]) -> Intervals | None:
        summaries = [job[chain.op, COMPLETION] for job in self.context.jobs if (chain.op, COMPLETION) in job]
        logged = self._logged(chain, siblings)
        count = sum(summary.count for summary in summaries)
        missing = count - int(logged.sum())
        expected = np.zeros(self.layout.bins, np.int64)
        for summary in summaries:
            if summary.bins is None:
                if missing:
                    self.account.note(fio_repairs.unwritten(chain.op, count, missing, masked=self.mask is not None))
                return None
            if not summary.bins.layout.nests_in(self.layout):
                self.account.note(f"{chain.op}: fio's JSON has other bins than its log; not reconciled")
                return None
            np.add.at(expected, summary.bins.layout.moved_to(self.layout)[summary.bins.bins], summary.bins.counts)
        if self.mask is not None:
            lost = int(expected[self.mask :].sum())
            if lost:
                self.account.note(fio_repairs.lost_samples(chain.op, lost, count, int(self.layout.edges[self.mask])))
            expected[self.mask :] = 0
        residual = expected - logged
        if (residual < 0).any():
            self.account.note(
                f"{chain.op}: the log holds {int(-residual[residual < 0].sum())} samples that fio's JSON does not: "
                f"{fio_repairs.NOT_OF_ONE}"
            )
            return None
        return self._last_interval(chain, residual)

    def _last_interval(self, chain: Chain, residual: Int) -> Intervals | None:
        bins = np.flatnonzero(residual)
        if not len(bins):
            return None
        zero = self.zero_ns + self.context.offset_ns + self.context.restart_ns
        own = [job[key].runtime_ns for job in self.context.jobs for key in job if key[0] == chain.op]
        runtime = max([self.context.runtime_ns, *own])
        ends = (one.end_ns for one in self.chains.values() if chain.op in (one.op, MIXED))
        start = max(ends, default=0) or zero
        end = zero + runtime if not self.unix or self.context.zero.epoch_ns else start
        series = self._series(chain.op, max(chain.segment, 0))
        return Intervals(
            layout=self.layout,
            table=(series.replaced(job="") if self.context.siblings else series,),
            series=np.zeros(1, np.int64),
            start_ns=np.array([start]),
            end_ns=np.array([max(end, start)]),
            indptr=np.array([0, len(bins)]),
            bins=bins,
            counts=residual[bins],
        )
