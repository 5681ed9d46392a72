"""The faults of fio's histogram counts and how each is recognised and undone, exactly where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Bool, Int, add_counts, gather, joined_rows
from ingest.core.labels import OPS
from ingest.core.layout import LogLinear
from ingest.core.units import figure
from ingest.core.values import Value
from ingest.read.context import Context, Summary
from ingest.read.fio.names import parse_log_name
from ingest.read.integers import Rows

# The faults of fio's histogram counts and how each is recognised and undone, exactly where that is possible.


PER_INTERVAL, CUMULATIVE, COMPOUNDED = "per interval", "cumulative since the start", "compounded by fio --client"
DOUBTFUL = (
    "counts may be compounded by fio --client (row n holds row n - 2 as well), which these rows neither show nor rule out: they "
    "are taken as they are; put fio's JSON beside the log"
)
MASKED = "fio 3.6 to 3.16: bins from 786 us up are uninitialised memory and were masked"
LOST_UNKNOWN = (
    "bins from 786 us up are damaged (fio 3.6 to 3.16), and how many samples they held cannot be determined without fio's json+: "
    "every percentile is a lower bound"
)
NOT_OF_ONE = "not of one run, or counts of an unknown kind"
IMPLAUSIBLE = 2**40
MOST_COUNT = 2**41
WRAPPED = "counts wrapped by a latency_target reset"
TOO_MANY = "implausible counts (above 2^40 in one interval)"
FIRST_CORRUPT_BIN = 928
CORRUPT_VERSIONS = ((3, 6), (3, 17))
ROWS_TO_JUDGE = 5
MOST_JUDGED = 1000
DENSE_ROWS = 512


def take(rows: Rows, picked: Int) -> Rows:
    """Return the picked rows."""
    if len(picked) == len(rows):
        return rows
    indptr, flat = gather(rows.indptr, picked)
    return Rows(rows.lead[picked], indptr, rows.bins[flat], rows.counts[flat])


def masked_from(layout: LogLinear, version: tuple[int, ...] | None) -> int | None:
    """Return the first bin that this fio version corrupts, or None."""
    if version is None or layout.unit_ns != 1 or not CORRUPT_VERSIONS[0] <= version[:2] < CORRUPT_VERSIONS[1]:
        return None
    return FIRST_CORRUPT_BIN >> layout.coarseness


def lost_samples(op: str, lost: int, count: int, from_ns: int) -> str:
    """Return the sentence on the samples of a run that lie in damaged bins: all others are sound, and lower."""
    share, least = 100 * (count - lost) / count, f"{from_ns / 1000:.0f} us or more"
    return (
        f"{op}: {lost} of {count} samples, all of {least}, are not in the log (fio 3.6 to 3.16 damages their bins): every "
        f"percentile is a lower bound, and those above {figure(share, 4)} are {least}"
    )


def unwritten(op: str, count: int, missing: int, *, masked: bool) -> str:
    """Return the sentence on samples that fio counted and the log does not hold, where only json+ knows their latencies."""
    held = f"{op}: fio counts {count}, its log holds {count - missing}"
    if masked:
        return (
            f"{held} sound samples: the others lie in damaged bins (786 us or more) or in the last partial interval, and only "
            "json+ shows which; every percentile is a lower bound"
        )
    return f"{held}; fio never writes the last partial interval, and only json+ shows what was in it"


def garbage_from(rows: Rows, stamps: Int, order: list[Int], layout: LogLinear, context: Context) -> int | None:
    """Return the first corrupt bin if the rows show the garbage of fio 3.6 to 3.16 and no version says otherwise.

    The counts of a latency_target reset are as huge, but there time runs back.
    """
    if context.version is not None or layout.unit_ns != 1:
        return None
    first = FIRST_CORRUPT_BIN >> layout.coarseness
    huge = rows.counts > IMPLAUSIBLE
    if not huge.any() or (rows.bins[huge] < first).any():
        return None
    back = np.zeros(len(rows), np.bool_)
    for picked in order:
        back[picked[1:]] = stamps[picked[1:]] < stamps[picked[:-1]]
    row = np.repeat(np.arange(len(rows)), np.diff(rows.indptr))
    return None if back[row[huge]].any() else first


def masked(rows: Rows, first: int) -> Rows:
    """Return the rows without the bins from `first` on."""
    keep = rows.bins < first
    kept = np.zeros(len(keep) + 1, np.int64)
    np.cumsum(keep, out=kept[1:])
    return Rows(rows.lead, kept[rows.indptr], rows.bins[keep], rows.counts[keep])


def bins_of(summaries: Sequence[Summary], layout: LogLinear) -> Int | None:
    """Return what fio counts in all in the bins of a layout; None where it does not say so, or in bins that do not fit."""
    counts = np.zeros(layout.bins, np.int64)
    for summary in summaries:
        if summary.bins is None or not summary.bins.layout.nests_in(layout):
            return None
        np.add.at(counts, summary.bins.layout.moved_to(layout)[summary.bins.bins], summary.bins.counts)
    return counts


def counting(rows: Rows, order: list[Int], layout: LogLinear, context: Context) -> str:
    """Return how the first rows of a log count: per interval, cumulatively, or compounded by --client.

    Cumulative (only development versions, which counted in us): no bin falls in the direction with most rows, but in one
    damaged row in a hundred, and the total grows with the row number. Compounded: no bin falls against the row before the last
    (D_n >= D_(n-2)), and the log was written through --client, or its sum passes what fio's JSON counts. Without a JSON the rows
    alone must show it, in every direction (`compounded`); a host suffix on the file name is no evidence: CBT appends one, too.
    """
    picked = max(order, key=len)[:MOST_JUDGED]
    if len(picked) < 2 or _surely_falls(rows, picked) or falls(_first_stretch(rows, picked[:ROWS_TO_JUDGE], layout.bins)):
        return PER_INTERVAL
    counts = _first_stretch(rows, picked, layout.bins)
    if (counts > IMPLAUSIBLE).any():
        return PER_INTERVAL
    op = OPS[int(rows.lead[picked[0], 1])]
    jobs = context.jobs or context.group
    totals = [job[op, "completion"].count for job in jobs if (op, "completion") in job]
    known = sum(totals) if totals else None
    back = np.count_nonzero((np.diff(counts, axis=0) < 0).any(axis=1))
    if layout.unit_ns > 1 and len(counts) >= 2 and back <= len(counts) // 100:
        totals = counts.sum(axis=1)
        grows = len(counts) >= ROWS_TO_JUDGE and totals[-1] > totals[0] * len(counts) / 3
        if known is not None:
            grows = len(counts) == len(picked) and totals.sum() > known >= totals[-1]
        if grows:
            return CUMULATIVE
    if len(counts) < 3 or falls(counts):
        return PER_INTERVAL
    if context.jobs or context.runtime_ns or context.through_client:
        grown = counts[2:].sum() > counts[:-2].sum()
        told = bins_of([job[op, "completion"] for job in jobs if (op, "completion") in job], layout)
        too_many = known is not None and int(counts.sum()) > known
        if told is not None and len(counts) == len(picked):
            too_many = bool((counts.sum(axis=0) > told).any()) and not (counts[-2:].sum(axis=0) > told).any()
        by_client = context.through_client and (known is None or len(counts) < len(picked) or bool(context.group))
        return COMPOUNDED if grown and (too_many or by_client) else PER_INTERVAL
    return _alone([_first_stretch(rows, chain[:MOST_JUDGED], layout.bins) for chain in order if len(chain)], context)


def falls(counts: Int) -> bool:
    """Return whether a bin falls against the row before the last, in dense rows of one direction."""
    return bool((counts[2:] < counts[:-2]).any())


def _surely_falls(rows: Rows, picked: Int) -> bool:
    """Return whether `falls` would hold of the first rows, by a look at widths: a row of fewer bins than the last but one."""
    first = picked[:ROWS_TO_JUDGE]
    stamps, width = rows.lead[first, 0], rows.indptr[first + 1] - rows.indptr[first]
    return bool((stamps[1:] >= stamps[:-1]).all() and (width[2:] < width[:-2]).any())


def _alone(chains: list[Int], context: Context) -> str:
    """Return how rows without a JSON count that do not fall in the direction with most rows; what decided is noted."""
    if any((counts > IMPLAUSIBLE).any() or falls(counts) for counts in chains):
        return PER_INTERVAL

    proof = evidence(chains)
    if proof.certain:
        context.account.note(
            f"taken as compounded from its rows only, without fio's JSON: {proof.bins} bins never fall against the row before "
            f"the last, in {proof.pairs} rows; ordinary rows look so with a chance of 1 in 2^{proof.bits:.0f}"
        )
        return COMPOUNDED
    name = parse_log_name(Path(context.account.path))
    if proof.possible and (proof.bits >= DOUBTFUL_BITS or (name is not None and name.host and not name.cbt)):
        context.account.note(DOUBTFUL)
    return PER_INTERVAL


def _first_stretch(rows: Rows, picked: Int, bins: int) -> Int:
    """Return the counts of the picked rows up to where time first runs back, dense; impossible counts stay above 2^40."""
    back = np.flatnonzero(np.diff(rows.lead[picked, 0].astype(np.int64)) < 0)
    return np.minimum(_dense(take(rows, picked[: back[0] + 1] if len(back) else picked), bins), MOST_COUNT).astype(np.int64)


def _dense(rows: Rows, bins: int) -> NDArray[np.uint64]:
    dense = np.zeros((len(rows), bins), np.uint64)
    dense[np.repeat(np.arange(len(rows)), np.diff(rows.indptr)), rows.bins] = rows.counts
    return dense


class Repaired(NamedTuple):
    """Rows after repair in CSR form; row places by the reason of their repair or rejection."""

    indptr: Int
    bins: Int
    counts: Int
    reasons: dict[str, Int]
    rejected: dict[str, Int]


class Repair:
    """Undoes what fio did to the counts of one chain; keeps what it needs from chunk to chunk."""

    def __init__(self, bins: int) -> None:
        self.bins = bins
        self.since_reset = np.zeros(bins, np.uint64)
        self.was_reset = False
        self.earlier: list[NDArray[np.uint64]] = []
        self.orphans = 0

    def apply(self, rows: Rows, began: Bool, gap: Bool, mode: str) -> Repaired:
        """Return the rows with per-interval counts; `began` marks rows that begin a segment, `gap` those after a lost row."""
        if mode == PER_INTERVAL and not (rows.counts > IMPLAUSIBLE).any():
            last = np.flatnonzero(began)
            first = int(last[-1]) if len(last) else 0
            if len(last):
                self.since_reset[:] = 0
            add_counts(self.since_reset, rows.bins[rows.indptr[first] :], rows.counts[rows.indptr[first] :])
            return Repaired(rows.indptr, rows.bins, rows.counts.view(np.int64), {}, {})
        parts = []
        for first in range(0, len(rows), DENSE_ROWS):
            picked = np.arange(first, min(first + DENSE_ROWS, len(rows)))
            piece = take(rows, picked)
            if mode == PER_INTERVAL:
                parts.append(self._unwrapped(piece, began[picked]))
            else:
                parts.append(self._differenced(piece, began[picked], gap[picked], mode))
        return _joined(parts)

    def _unwrapped(self, rows: Rows, began: Bool) -> Repaired:
        """Add back to a wrapped row what fio took away: after a reset it logs new counts minus all logged before, mod 2^64."""
        dense = _dense(rows, self.bins)
        good: list[int] = []
        bad: list[int] = []
        for at in range(len(rows)):
            huge = bool((dense[at] > IMPLAUSIBLE).any())
            if huge:
                dense[at] += self.since_reset
            if (dense[at] > IMPLAUSIBLE).any():
                bad.append(at)
                dense[at] = 0
                continue
            if huge:
                good.append(at)
            if began[at] or huge:
                self.since_reset[:] = 0
            self.since_reset += dense[at]
        self.was_reset |= bool(good)
        reasons = {WRAPPED: np.array(good, np.int64)}
        return _sparse(dense.astype(np.int64), reasons, {TOO_MANY: np.array(bad, np.int64)})

    def _differenced(self, rows: Rows, began: Bool, gap: Bool, mode: str) -> Repaired:
        lag = 1 if mode == CUMULATIVE else 2
        dense = _dense(rows, self.bins)
        out = np.empty(dense.shape, np.int64)
        bad: list[int] = []
        orphaned: list[int] = []
        for at in range(len(rows)):
            if began[at]:
                self.earlier, self.orphans = [], 0
            if gap[at] and lag == 2:
                self.earlier, self.orphans = [], 2
            if self.orphans:
                self.orphans -= 1
                self.earlier = [*self.earlier[-1:], dense[at].copy()]
                orphaned.append(at)
                out[at] = 0
                continue
            out[at] = dense[at]
            if len(self.earlier) >= lag:
                out[at] -= self.earlier[-lag].astype(np.int64)
            if (out[at] < 0).any() or (dense[at] > IMPLAUSIBLE).any():
                bad.append(at)
                out[at] = 0
                if lag == 1:
                    continue
            self.earlier = [*self.earlier[-1:], dense[at].copy()]
        places = np.arange(len(rows))
        rejected = {
            f"a bin falls although counts are {mode}": bad,
            f"a row before it is missing, and counts are {mode}": orphaned,
        }
        return _sparse(out, {f"counts {mode}": places}, {reason: np.array(at, np.int64) for reason, at in rejected.items()})


def _joined(parts: list[Repaired]) -> Repaired:
    """Return the rows of all parts after one another, places counted from the first."""
    if len(parts) == 1:
        return parts[0]
    offsets = np.cumsum([0] + [len(part.indptr) - 1 for part in parts])
    reasons: dict[str, Int] = {}
    rejected: dict[str, Int] = {}
    for part, offset in zip(parts, offsets, strict=False):
        for into, by_reason in ((reasons, part.reasons), (rejected, part.rejected)):
            for reason, places in by_reason.items():
                into[reason] = np.concatenate([into.get(reason, places[:0]), places + offset])
    bins, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in ("bins", "counts"))
    return Repaired(joined_rows([part.indptr for part in parts]), bins, counts, reasons, rejected)


def _sparse(dense: Int, reasons: dict[str, Int], rejected: dict[str, Int]) -> Repaired:
    row, bins = np.nonzero(dense)
    indptr = np.searchsorted(row, np.arange(len(dense) + 1))
    return Repaired(indptr, bins, dense[row, bins], reasons, rejected)


# Whether rows count what `fio --client` makes of them, D(n) = d(n) + D(n-2), by the rows alone: for logs without their JSON.
#
# In such rows no bin ever falls against the row before the last. In ordinary rows a bin that holds few samples falls as often
# as it rises: of t samples in both rows each lies in the later one with a chance q, which is the share of the later row in all
# samples of the two (so that a load which grows is no evidence). The chance that the later row holds at least half of them, bin
# by bin, multiplied over bins of up to 60 samples and over rows, is how likely ordinary rows look so. Its logarithm is given in
# bits.
#
# Measured: 5,621 stretches of 3 to 8 rows of 60 recorded ordinary logs: at most 2.0 bits; 30,000 drawn at random (3 to 12 rows,
# 29 to 1,856 bins, 3 to 1,000,000 samples a row, steady, growing by a factor, growing evenly, at random, shifting): at most
# 9.2. Recorded --client logs: 48 to 2,364 bits; of 8 to 11 rows at coarseness 6: 10 to 16.


CERTAIN_BITS, DOUBTFUL_BITS = 30, 8
FEWEST_BINS = 5
LEAST_GROWTH, MOST_GROWTH = 0.25, 4
FEW = 60
MOST_ROWS = 100


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evidence(Value):
    """What rows show: `bits` as above, the bins that rose, how many pairs of rows were compared and how they grow.

    `growth` is what a row adds to the row before the last, against the first two rows: 1 where a steady load is compounded, 0
    where equal rows repeat.
    """

    bits: float = 0.0
    bins: int = 0
    pairs: int = 0
    growth: float = 0.0

    @property
    def possible(self) -> bool:
        """Return whether rows grow as compounded ones do."""
        return LEAST_GROWTH <= self.growth <= MOST_GROWTH

    @property
    def certain(self) -> bool:
        """Return whether no ordinary log looks like this."""
        return self.possible and self.bits >= CERTAIN_BITS and self.bins >= FEWEST_BINS


def evidence(chains: Sequence[Int]) -> Evidence:
    """Return what the rows of a log show, dense and by direction, of which no bin falls."""
    bits, pairs = 0.0, 0
    added: list[int] = []
    first: list[int] = []
    risen: set[int] = set()
    for counts in chains:
        first.extend(counts[:2].sum(axis=1).tolist())
        for earlier, later in zip(counts[: MOST_ROWS - 2], counts[2:MOST_ROWS], strict=False):
            both = earlier + later
            small = np.flatnonzero((both > 0) & (both <= FEW))
            share = round(1000 * int(later.sum()) / max(1, int(both.sum())))
            bits += float(_bits(min(share, 999))[both[small]].sum())
            risen.update(small[later[small] > earlier[small]].tolist())
            added.append(int(later.sum() - earlier.sum()))
            pairs += 1
    growth = float(np.median(added)) / max(1.0, float(np.median(first))) if added else 0.0
    return Evidence(bits, len(risen), pairs, growth)


@cache
def _bits(share: int) -> NDArray[np.float64]:
    """Return, for 0 to 60 samples of two rows, -log2 of the chance that the later row has at least half, at `share` in 1000."""
    q = max(share, 1) / 1000
    samples = np.arange(FEW + 1)[:, None]
    later = np.arange(FEW + 1)[None, :]
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, FEW + 1)))])
    chosen = logs[samples] - logs[later] - logs[np.maximum(samples - later, 0)]
    chance = np.exp(chosen + later * np.log(q) + (samples - later) * np.log(1 - q))
    held = np.where((later <= samples) & (2 * later >= samples), chance, 0.0).sum(axis=1)
    bits: NDArray[np.float64] = -np.log2(np.minimum(held, 1.0))
    return bits
