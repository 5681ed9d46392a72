"""Percentiles by nearest rank, in exact integer arithmetic from the decimal that was asked for.

The rank of p in N samples is ceil(N * p / 100): 99.9 of 1,000 is rank 999, which floating point gets wrong. The value
is the one that the bin of that rank reports. For p above 50 the data must hold at least one sample beyond: with
N * (100 - p) < 100 there is no value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import UsageError
from ingest.core.grid import WEIGHT_BITS
from ingest.core.intervals import Intervals, no_exact, row_sums, surely_addable
from ingest.core.values import Value

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

INT64_MAX = 2**63 - 1
TAIL = 0.025
DEVIATIONS = 1.959963984540054
BLOCK = 16  # entries whose counts are looked through one by one
FEW_ENTRIES = 64  # a row: with so few, one running total of all is quicker
EXACT_VARIANCE = 1e6  # of the rank; above it the normal distribution gives nearly the same


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Percentile(Value):
    """A percentile as the exact fraction top / (100 * bottom), with the text that the user wrote; ordered by its size."""

    top: int
    bottom: int
    text: str

    def __lt__(self, other: Percentile) -> bool:
        return self.top * other.bottom < other.top * self.bottom

    @property
    def name(self) -> str:
        """Return the column name: p99.9."""
        return f"p{self.text}"

    def ranks(self, counts: Int) -> Int:
        """Return ceil(N * p / 100) of each N, at least 1."""
        divisor = 100 * self.bottom
        if len(counts) and int(counts.max()) * self.top > INT64_MAX:
            exact = [-(-int(count) * self.top // divisor) for count in counts]
            return np.maximum(np.array(exact, np.int64), 1)
        return np.maximum(-(-counts * self.top // divisor), 1)

    def carried(self, counts: Int) -> Bool:
        """Return where N samples can carry this percentile: N > 0, and above 50 also N * (100 - p) >= 100."""
        if 2 * self.top <= 100 * self.bottom or self.top == 100 * self.bottom:
            return counts > 0
        beyond = 100 * self.bottom - self.top
        return counts >= -(-100 * self.bottom // beyond)


class ShareError(UsageError):
    """A percentile was written as a share: 0.99 for 99."""


def parse_percentiles(text: str) -> tuple[Percentile, ...]:
    """Return the percentiles of a comma-separated list such as `50,99,99.9`; UsageError if one is not in 0 to 100.

    Who writes 0.99 nearly always means the 99th percentile, as a share: a number between 0 and 1 is refused (ShareError) unless a
    percent sign says that it is none (`0.99%` is p0.99; up to 1 alone).
    """
    percentiles = []
    for word in text.split(","):
        plain = word.strip().removeprefix("p")
        plain, low = plain.removesuffix("%"), plain.endswith("%")
        try:
            number = Decimal(plain)
        except InvalidOperation:
            number = Decimal("nan")
        if not number.is_finite() or not 0 <= number <= (1 if low else 100) or -int(number.as_tuple().exponent) > 12:
            raise UsageError(f"{word.strip()!r} is not a percentile: give numbers from 0 to 100, as in 50,99,99.9")
        if 0 < number < 1 and not low:
            meant = f"{(100 * number).normalize():f}"
            raise ShareError(
                f"{word.strip()!r} would be p{plain}, the lowest {plain} % of samples: did you mean {meant}? For p{plain} "
                f"write {plain}%"
            )
        scale = 10 ** max(0, -int(number.as_tuple().exponent))
        percentiles.append(Percentile(int(number * scale), scale, plain))
    return tuple(dict.fromkeys(percentiles))


STORED = parse_percentiles("50,75,90,95,99,99.9,99.99")  # every rollup has them as plain numbers (fields.yml names them)
SUMMARY = tuple(percentile for percentile in STORED if percentile.text != "75")  # the tables of a page
# The percentiles in one line about a run; other tools print them, too.
COMMON = tuple(percentile for percentile in SUMMARY if percentile.text != "99.99")


class Ranked:
    """Finds samples by rank in many rows at once; the running totals of counts are made once.

    What a row knows exactly bounds what is reported: no value lies below its minimum or above its maximum.
    """

    def __init__(self, rows: Intervals) -> None:
        self.rows = rows
        self.samples = row_sums(rows.indptr, rows.counts)
        self._sorted = surely_addable([self.samples])
        self._carrying: dict[Percentile, tuple[Int, Int, Int]] = {}

    @cached_property
    def total(self) -> Int:
        """Return how many samples lie before each entry, and before the end."""
        total = np.zeros(len(self.rows.counts) + 1, np.int64)
        np.cumsum(self.rows.counts, out=total[1:])  # modulo 2^64: differences within a row are right however many rows there are
        return total

    @cached_property
    def _reached(self) -> tuple[Int, Int]:
        """Return how many samples lie before each row, and how many up to the end of each block of entries."""
        counts = self.rows.counts
        before = np.cumsum(self.samples) - self.samples + counts[: self.rows.indptr[0]].sum()
        return before, np.cumsum(np.add.reduceat(counts, np.arange(0, len(counts), BLOCK)))

    def entries(self, picked: Int, ranks: Int) -> Int:
        """Return, for each picked row, the entry that holds the sample of its rank (1 = smallest); rows must not be empty."""
        if not self._sorted:
            places = np.empty(len(picked), np.int64)
            for place, (row, rank) in enumerate(zip(picked.tolist(), ranks.tolist(), strict=True)):
                begin, end = self.rows.indptr[row : row + 2].tolist()
                places[place] = begin + np.searchsorted(self.total[begin + 1 : end + 1] - self.total[begin], rank, side="left")
            return places
        if len(picked) * FEW_ENTRIES > len(self.rows.counts):
            return np.searchsorted(self.total[1:], self.total[self.rows.indptr[picked]] + ranks, side="left")
        before, blocks = self._reached
        wanted = before[picked] + ranks
        block = np.searchsorted(blocks, wanted, side="left")
        wanted -= np.where(block > 0, blocks[block - 1], 0)
        counts = self.rows.counts.take(block[:, None] * BLOCK + np.arange(BLOCK), mode="clip")
        entries: Int = block * BLOCK + np.count_nonzero(np.cumsum(counts, axis=1) < wanted[:, None], axis=1)
        return entries

    def carrying(self, percentile: Percentile, others: Iterable[Percentile] = ()) -> tuple[Int, Int, Int]:
        """Return which rows carry a percentile, its rank in each, and the entry that holds it.

        Each percentile is looked for once: together with `others`, which will be asked for, in less time than alone.
        """
        if percentile not in self._carrying:
            whole = _whole_samples(self.rows, self.samples)
            new = [each for each in dict.fromkeys((percentile, *others)) if each not in self._carrying]
            picked = [np.flatnonzero(each.carried(whole) & self.rows.layout.has_bins) for each in new]
            ranks = [each.ranks(self.samples[rows]) for each, rows in zip(new, picked, strict=True)]
            entries = self.entries(np.concatenate(picked), np.concatenate(ranks))
            apart = np.split(entries, np.cumsum([len(rows) for rows in picked])[:-1])
            self._carrying |= dict(zip(new, zip(picked, ranks, apart, strict=True), strict=True))
        return self._carrying[percentile]

    def bins(self, picked: Int, ranks: Int) -> Int:
        """Return the bin that holds the sample of each rank."""
        return self.rows.bins[self.entries(picked, ranks)]

    def values(self, picked: Int, ranks: Int, entries: Int | None = None) -> Int:
        """Return the reported value in ns of the sample of each rank; `entries` are those that hold them, where known."""
        held = self.entries(picked, ranks) if entries is None else entries
        return within_exact(self.rows, picked, self.rows.layout.values[self.rows.bins[held]])

    def interpolated(self, picked: Int, ranks: Int, entries: Int | None = None) -> NDArray[np.float64]:
        """Return the value in ns at each rank, spread evenly over its bin: the last rank in a bin gets its upper edge.

        None is above what the open last bin reports: nothing is known of how samples are spread in it.
        """
        layout, entry = self.rows.layout, self.entries(picked, ranks) if entries is None else entries
        lower, upper = layout.edges[self.rows.bins[entry]], layout.edges[self.rows.bins[entry] + 1]
        within = ranks - (self.total[entry] - self.total[self.rows.indptr[picked]])
        values: NDArray[np.float64] = lower + (upper - lower) * (within / self.rows.counts[entry])
        if layout.open_ended:
            values = np.minimum(values, layout.values[-1])
        return within_exact(self.rows, picked, values)


def within_exact(rows: Intervals, picked: Int, values: NDArray[Any]) -> NDArray[Any]:
    """Return values in ns of picked rows, none of them below the exact minimum or above the exact maximum of its row."""
    if rows.exact is None:
        return values
    exact = rows.exact.take(picked)
    low = np.where(exact.known_min, exact.min_ns, 0)
    high = np.where(exact.known_max, exact.max_ns, INT64_MAX)
    within: NDArray[Any] = np.minimum(np.maximum(values, low), high)
    return within


def reported(rows: Intervals) -> Int:
    """Return the value in ns that is reported for each entry of the rows: that of its bin, within the row's exact extremes."""
    return within_exact(rows, rows.row, rows.layout.values[rows.bins])


def percentile_values(
    rows: Intervals,
    percentile: Percentile,
    *,
    interpolate: bool = False,
    ranked: Ranked | None = None,
    others: Iterable[Percentile] = (),
) -> NDArray[np.float64]:
    """Return the percentile of each row in ns, NaN where the samples cannot carry it.

    p100 is the exact maximum where a row has one, and none lies outside of exact minimum and maximum. Values below 2^53 ns
    (104 days) are exact integers. `ranked` spares the work that several percentiles of the same rows share; `others` names these.
    Error bound: that of the bin of the rank (`layout.errors_of`), see `precision`; none in the open last bin. Of rows without
    bins there is p100 alone, where their maximum is known.
    """
    ranking = ranked or Ranked(rows)
    out = np.full(len(rows), np.nan)
    carrying = ranking.carrying(percentile, others)
    out[carrying[0]] = ranking.interpolated(*carrying) if interpolate else ranking.values(*carrying)
    if percentile.top == 100 * percentile.bottom and rows.exact is not None:
        out = np.where(rows.exact.known_max & (ranking.samples > 0), rows.exact.max_ns, out)
    return out


def _whole_samples(rows: Intervals, samples: Int) -> Int:
    """Return how many samples each row holds: its counts, or for in-flight weights (2^-16) their sum rounded up."""
    return samples if rows.completions is None else -(-samples >> WEIGHT_BITS)


@lru_cache(maxsize=4096)
def rank_bounds(count: int, percentile: Percentile) -> tuple[int, int]:
    """Return the ranks of the samples between which the percentile lies with at least 95 % confidence.

    0 and `count` + 1 stand for none: so few samples leave that side open. From the binomial distribution of how many of
    `count` samples lie below the percentile, 2.5 % on either side.
    """
    share = percentile.top / (100 * percentile.bottom)
    if share in (0, 1):
        return 0, count + 1
    mean = count * share
    deviation = math.sqrt(mean * (1 - share))
    if deviation * deviation > EXACT_VARIANCE:
        return math.floor(mean - DEVIATIONS * deviation), math.ceil(mean + DEVIATIONS * deviation) + 1
    first, last = max(0, math.floor(mean - 10 * deviation - 30)), min(count, math.ceil(mean + 10 * deviation + 30))
    ranks = np.arange(first, last)
    logs = np.concatenate([[0.0], np.cumsum(np.log((count - ranks) / (ranks + 1)) + math.log(share / (1 - share)))])
    chance = np.exp(logs - logs.max())
    below = np.cumsum(chance / chance.sum())
    low = first + int(np.searchsorted(below, TAIL, side="right"))
    return low, first + int(np.searchsorted(below, 1 - TAIL, side="left")) + 1


def bounds(rows: Intervals, percentile: Percentile) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the values between which the percentile lies with 95 % confidence, from order statistics (see rank_bounds).

    Edges of the bins at those ranks, so the bin width is included. NaN on a side that so few samples leave open or that lies
    in the open last bin, on both where the percentile is not carried or rows have no bins.
    """
    ranked = Ranked(rows)
    whole, unit = _whole_samples(rows, ranked.samples), 1 if rows.completions is None else 1 << WEIGHT_BITS
    low, high = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    if not rows.layout.has_bins:
        return low, high
    counts, place = np.unique(whole, return_inverse=True)
    ranks = np.array([rank_bounds(count, percentile) for count in counts.tolist()], np.int64).reshape(-1, 2)[place]
    carried = percentile.carried(whole)
    edges = rows.layout.edges
    below = np.flatnonzero(carried & (ranks[:, 0] >= 1))
    low[below] = within_exact(rows, below, rows.layout.lowest_of(ranked.bins(below, (ranks[below, 0] - 1) * unit + 1)))
    above = np.flatnonzero(carried & (ranks[:, 1] <= whole))
    bins = ranked.bins(above, np.minimum(ranks[above, 1] * unit, ranked.samples[above]))
    last = bins == rows.layout.bins - 1 if rows.layout.open_ended else np.zeros(len(bins), np.bool_)
    high[above] = np.where(last, np.nan, within_exact(rows, above, edges[bins + 1]))
    return low, high


def saturated(rows: Intervals) -> Int:
    """Return how many samples of each row lie in the open last bin, where only their lower bound is known."""
    over = np.zeros(len(rows), np.int64)
    filled = np.flatnonzero(np.diff(rows.indptr) > 0)
    last = rows.indptr[filled + 1] - 1
    if rows.layout.open_ended:
        over[filled] = np.where(rows.bins[last] == rows.layout.bins - 1, rows.counts[last], 0)
    return over


def censored(rows: Intervals, percentiles: Iterable[Percentile], ranked: Ranked | None = None) -> list[Bool]:
    """Return, for each percentile, where its value is only a lower bound because its rank lies in the open last bin."""
    if not rows.layout.open_ended:
        return [np.zeros(len(rows), np.bool_) for _ in percentiles]
    samples, over = rows.samples if ranked is None else ranked.samples, saturated(rows)
    return [(over > 0) & (percentile.ranks(samples) > samples - over) for percentile in percentiles]


def extremes(rows: Intervals, ranked: Ranked | None = None) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64], Bool]:
    """Return min, max and mean in ns of each row, and where min and max are exact; rows must not be empty.

    Exact where the source gave them, else the lowest of the first bin and the highest of the last (`highest_of`; the lower
    edge if that bin is open). The mean uses exact sums where known, else the middles of bins. Of rows without bins whatever is
    not known is NaN.
    """
    if not rows.layout.has_bins:
        exact = rows.exact or no_exact(len(rows))
        least, most = np.where(exact.known_min, exact.min_ns, np.nan), np.where(exact.known_max, exact.max_ns, np.nan)
        mean = np.where(exact.known_sum, exact.sum_ns / rows.samples, np.nan)
        return least, most, mean, exact.known_min & exact.known_max
    first, last = rows.bins[rows.indptr[:-1]], rows.bins[rows.indptr[1:] - 1]
    low, high = rows.layout.lowest_of(first), rows.layout.highest_of(last)
    weighted = rows.layout.weights_of(rows.bins)
    weighted *= rows.counts
    sums = np.add.reduceat(weighted, rows.indptr[:-1]) if len(rows) else weighted
    known = np.zeros(len(rows), np.bool_)
    if rows.exact is not None:
        known = rows.exact.known
        low = np.where(known, rows.exact.min_ns, low)
        high = np.where(known, rows.exact.max_ns, high)
        sums = np.where(known, rows.exact.sum_ns, sums)
    return low, high, sums / (rows.samples if ranked is None else ranked.samples), known


def share_below(rows: Intervals, threshold_ns: int) -> NDArray[np.float64]:
    """Return the share of samples of each row below the threshold, a bin that straddles it counted by overlap.

    NaN of rows without bins.
    """
    if not rows.layout.has_bins:
        return np.full(len(rows), np.nan)
    edges = rows.layout.edges
    lower, upper = edges[rows.bins], edges[rows.bins + 1]
    part = np.clip((threshold_ns - lower) / (upper - lower), 0, 1)
    if rows.layout.open_ended:
        part = np.where(rows.bins == rows.layout.bins - 1, 0, part)
    sums = np.add.reduceat(rows.counts * part, rows.indptr[:-1]) if len(rows) else part[:0]
    return sums / rows.samples
