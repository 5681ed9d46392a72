"""Percentiles by nearest rank, in exact integer arithmetic from the decimal that was asked for.

The rank of p in N samples is ceil(N * p / 100): 99.9 of 1,000 is rank 999, which floating point gets wrong. The value
is the one that the bin of that rank reports. For p above 50 the data must hold at least one sample beyond: with
N * (100 - p) < 100 there is no value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core import kernel
from ingest.core.errors import UsageError
from ingest.core.grid import WEIGHT_BITS
from ingest.core.intervals import Intervals, no_exact, row_sums, surely_addable
from ingest.core.layout import LAST_NS, Mixed
from ingest.core.values import Value, one_of

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

INT64_MAX = 2**63 - 1
TAIL = 0.025
DEVIATIONS = 1.959963984540054
FAILED_NS = float(LAST_NS)  # from here on a latency is that of an operation that failed
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


NAMED = ("max", "maximum", "median", "med")  # that are no number


class ShareError(UsageError):
    """A percentile was written as a share: 0.99 for 99."""


def parse_percentiles(text: str) -> tuple[Percentile, ...]:
    """Return the percentiles of a comma-separated list such as `50,99,99.9`; UsageError if one is not in 0 to 100.

    Who writes 0.99 nearly always means the 99th percentile, as a share: a number between 0 and 1 is refused (ShareError) unless a
    percent sign says that it is none (`0.99%` is p0.99).
    """
    percentiles = []
    for word in one_of(str, text, "parse_percentiles", "a text such as '50,99,99.9'").split(","):
        plain = word.strip().removeprefix("p")
        plain, low = plain.removesuffix("%"), plain.endswith("%")
        try:
            number = Decimal(plain)
        except InvalidOperation:
            number = Decimal("nan")
        if not number.is_finite() or not 0 <= number <= 100 or -int(number.as_tuple().exponent) > 12:
            named = "; the median is 50, the maximum 100" if plain.lower() in NAMED else ""
            raise UsageError(f"{word.strip()!r} is not a percentile: give numbers from 0 to 100, as in 50,99,99.9{named}")
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

    A row that holds bins of several layouts (`mixed`) is ranked on the edges of each: the sample of a rank lies between the
    lowest latency up to which so many samples may lie, as their bins begin there or below, and the lowest up to which they
    surely do, as their bins end there. Both are the rank in the row's bins, ordered by where they begin, or by where they end.
    The latter is what is reported, the former where bins without an upper edge leave no upper bound. `rows` are those given,
    the entries of each ordered by where their bins end, or by the numbers `by`.
    """

    def __init__(self, rows: Intervals, *, by: Int | None = None) -> None:
        self.mixed = rows.mixed
        self.rows = _ordered(rows, _ends(rows) if by is None else by) if self.mixed.any() else rows
        self.samples = rows.samples
        self._sorted = surely_addable([self.samples])
        self._carrying: dict[Percentile, tuple[Int, Int, Int]] = {}

    @cached_property
    def total(self) -> Int:
        """Return how many samples lie before each entry, and before the end."""
        total = np.zeros(len(self.rows.counts) + 1, np.int64)
        np.cumsum(self.rows.counts, out=total[1:])  # modulo 2^64: differences within a row are right however many rows there are
        return total

    def entries(self, picked: Int, ranks: Int) -> Int:
        """Return, for each picked row, the entry that holds the sample of its rank (1 = smallest); rows must not be empty."""
        if kernel.rank_rows is not None and "total" not in vars(self) and len(picked) <= 2 * len(self.rows):
            places = np.empty(len(picked), np.int64)
            rows = *kernel.words(self.rows.indptr, picked), *kernel.narrow(*self.rows.held)
            kernel.rank_rows(*rows, *kernel.words(ranks), places)
            return places
        if not self._sorted:
            places = np.empty(len(picked), np.int64)
            for place, (row, rank) in enumerate(zip(picked.tolist(), ranks.tolist(), strict=True)):
                begin, end = self.rows.indptr[row : row + 2].tolist()
                places[place] = begin + np.searchsorted(self.total[begin + 1 : end + 1] - self.total[begin], rank, side="left")
            return places
        return np.searchsorted(self.total[1:], self.total[self.rows.indptr[picked]] + ranks, side="left")

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
        layout, bins = self.rows.layout, self.rows.held[0][held].astype(np.int64)
        values = layout.values[bins]
        unlike = np.flatnonzero(self.mixed[picked])
        if len(unlike):
            tops = layout.tops_of(bins[unlike])
            opened = layout.opened(bins[unlike])
            tops[opened] = self._begins(picked[unlike[opened]], ranks[unlike[opened]])
            values = values.copy()
            values[unlike] = tops
        return within_exact(self.rows, picked, values)

    def lowest(self, picked: Int, ranks: Int) -> Int:
        """Return the lowest latency in ns that the sample of each rank can have: of a row of one layout that of its bin."""
        lows = self.rows.layout.lowest_of(self.bins(picked, ranks))
        unlike = np.flatnonzero(self.mixed[picked])
        if len(unlike):
            lows[unlike] = self._begins(picked[unlike], ranks[unlike])
        return within_exact(self.rows, picked, lows)

    def between(self, picked: Int, ranks: Int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return between which latencies in ns the sample of each rank lies; the upper one is inf in a bin without an upper edge.

        Of a row of one layout both are what `values` has. Both are inf of an operation that failed.
        """
        entries = self.entries(picked, ranks)
        values = or_failed(self.rows, self.values(picked, ranks, entries).astype(np.float64))
        unlike = self.mixed[picked]
        if not unlike.any():
            return values, values
        low = or_failed(self.rows, np.where(unlike, self.lowest(picked, ranks), values))
        opened = unlike & self.rows.layout.opened(self.rows.bins[entries])
        high = np.where(opened, np.inf, values)
        if self.rows.exact is not None:
            exact = self.rows.exact.take(picked)
            high = np.where(opened & exact.known_max, exact.max_ns, high)
            largest = unlike & exact.known_max & (ranks == self.samples[picked])
            low, high = (np.where(largest, exact.max_ns, limit) for limit in (low, high))
        return low, high

    def _begins(self, picked: Int, ranks: Int) -> Int:
        """Return the latency in ns at or below which as many samples of each row may lie as its rank says."""
        by_begin = self._by_begin
        return by_begin.rows.layout.lowest_of(by_begin.rows.bins[by_begin.entries(picked, ranks)])

    @property
    def ends(self) -> tuple[Int, Int]:
        """Return between which latencies in ns the samples of each entry of `rows` lie; of one layout what is reported."""
        layout, bins = self.rows.layout, self.rows.bins
        values = layout.values[bins]
        if not self.mixed.any():
            return values, values
        unlike = self.mixed[self.rows.row]
        return np.where(unlike, layout.lowest_of(bins), values), np.where(unlike, _ends(self.rows), values)

    @cached_property
    def _by_begin(self) -> Ranked:
        """Return the rows with their entries ordered by where their bins begin."""
        return Ranked(self.rows, by=self.rows.layout.lowest_of(self.rows.bins))

    def interpolated(self, picked: Int, ranks: Int, entries: Int | None = None) -> NDArray[np.float64]:
        """Return the value in ns at each rank, spread evenly over its bin: the last rank in a bin gets its upper edge.

        None is above what an open bin reports: nothing is known of how samples are spread in it. Nor is it of bins of several
        layouts: of a row of these it is what `values` has.
        """
        layout, entry = self.rows.layout, self.entries(picked, ranks) if entries is None else entries
        bins = self.rows.bins[entry]
        lower, upper = layout.lower[bins], layout.upper[bins]
        within = ranks - (self.total[entry] - self.total[self.rows.indptr[picked]])
        values: NDArray[np.float64] = lower + (upper - lower) * (within / self.rows.counts[entry])
        if layout.open_ended and not self.mixed.any():
            values = np.where(bins < layout.timed.bins, np.minimum(values, layout.timed.values[-1]), values)
        values = np.where(layout.opened(bins), layout.values[bins], values)
        if self.mixed[picked].any():
            values = np.where(self.mixed[picked], self.values(picked, ranks, entry), values)
        return within_exact(self.rows, picked, values)


def _ends(rows: Intervals) -> Int:
    """Return the highest latency of the bin of each entry in ns: the highest there is of bins without an upper edge."""
    return np.where(rows.layout.opened(rows.bins), INT64_MAX, rows.layout.tops_of(rows.bins))


def _ordered(rows: Intervals, by: Int) -> Intervals:
    """Return the rows with the entries of each in another order."""
    order = np.lexsort((by, rows.row))
    return replace(rows, bins=rows.bins[order], counts=rows.counts[order])


def or_failed(rows: Intervals, values: NDArray[Any]) -> NDArray[Any]:
    """Return latencies in ns of rows, inf where they are those of operations that failed."""
    if rows.layout.timed is rows.layout:
        return values
    with np.errstate(invalid="ignore"):
        return np.where(values >= FAILED_NS, np.inf, values)


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
    """Return the value in ns that is reported for each entry of the rows: that of its bin, within the row's exact extremes.

    Of a row that holds bins of several layouts it is the highest latency of the bin, of an open one its lower edge.
    """
    values, unlike = rows.layout.values[rows.bins], rows.mixed
    if unlike.any():
        values = np.where(unlike[rows.row], rows.layout.tops_of(rows.bins), values)
    return within_exact(rows, rows.row, values)


def weighed(rows: Intervals, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of counts times the weights of their bins, one a bin of the layout, of each row; none is empty."""
    out = np.empty(len(rows))
    if kernel.weigh_rows is not None:
        held = *kernel.words(rows.indptr, np.arange(len(rows))), *kernel.narrow(*rows.held)
        kernel.weigh_rows(*held, weights, out)
        return out
    for piece, part in rows.pieces():
        out[piece] = np.add.reduceat(part.counts * weights[part.bins], part.indptr[:-1])
    return out


def counts_above(rows: Intervals, bins: Int) -> Int:
    """Return how many samples of each row lie above bins of its own, (rows, cuts) of both."""
    out = np.empty(bins.shape, np.int64)
    if kernel.above_rows is not None:
        held = *kernel.words(rows.indptr, np.arange(len(rows))), *kernel.narrow(*rows.held)
        kernel.above_rows(*held, *kernel.words(bins), out)
        return out
    for piece, part in rows.pieces():
        total = np.append(0, np.cumsum(part.counts))
        first = np.arange(len(part)) * part.layout.bins  # bins rise within each row
        entries = np.repeat(first, np.diff(part.indptr)) + part.bins
        upto = np.searchsorted(entries, first[:, None] + bins[piece], side="right")
        out[piece] = total[part.indptr[1:], None] - total[upto]
    return out


def percentile_values(
    rows: Intervals,
    percentile: Percentile,
    *,
    interpolate: bool = False,
    ranked: Ranked | None = None,
    others: Iterable[Percentile] = (),
) -> NDArray[np.float64]:
    """Return the percentile of each row in ns, NaN where the samples cannot carry it.

    inf where the rank falls among operations that failed: they are slower than any. p100 is the exact maximum where a row has
    one, and none lies outside of exact minimum and maximum. Values below 2^53 ns
    (104 days) are exact integers. `ranked` spares the work that several percentiles of the same rows share; `others` names these.
    Error bound: that of the bin of the rank (`layout.errors_of`), see `precision`; none in the open last bin. Of rows without
    bins there is p100 alone, where their maximum is known.
    """
    ranking = ranked or Ranked(rows)
    out = np.full(len(rows), np.nan)
    carrying = ranking.carrying(percentile, others)
    out[carrying[0]] = ranking.interpolated(*carrying) if interpolate else ranking.values(*carrying)
    out = or_failed(rows, out)
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
    below = np.flatnonzero(carried & (ranks[:, 0] >= 1))
    low[below] = ranked.lowest(below, (ranks[below, 0] - 1) * unit + 1)
    above = np.flatnonzero(carried & (ranks[:, 1] <= whole))
    bins = ranked.bins(above, np.minimum(ranks[above, 1] * unit, ranked.samples[above]))
    high[above] = np.where(rows.layout.opened(bins), np.nan, within_exact(rows, above, rows.layout.upper[bins]))
    return or_failed(rows, low), or_failed(rows, high)


def saturated(rows: Intervals) -> Int:
    """Return how many samples of each row lie in an open bin, where only their lower bound is known."""
    if not rows.layout.open_ended:
        return np.zeros(len(rows), np.int64)
    return row_sums(rows.indptr, np.where(rows.layout.opened(rows.bins), rows.counts, 0))


def censored(rows: Intervals, percentiles: Iterable[Percentile], ranked: Ranked | None = None) -> list[Bool]:
    """Return, for each percentile, where its value is only a lower bound because its rank may lie in an open bin."""
    if not rows.layout.open_ended:
        return [np.zeros(len(rows), np.bool_) for _ in percentiles]
    samples, over = rows.samples if ranked is None else ranked.samples, saturated(rows)
    ranks = [percentile.ranks(samples) for percentile in percentiles]
    if rows.layout.timed is rows.layout:
        return [(over > 0) & (rank > samples - over) for rank in ranks]
    timed = samples - rows.failures
    return [(over > 0) & (rank > timed - over) & (rank <= timed) for rank in ranks]


def extremes(rows: Intervals, ranked: Ranked | None = None) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64], Bool]:
    """Return min, max and mean in ns of each row, and where min and max are exact; rows must not be empty.

    Exact where the source gave them, else the lowest of the first bin and the highest of the last (`highest_of`; the lower
    edge if that bin is open). The mean uses exact sums where known, else the middles of bins; it is that of the operations that
    did not fail, and the maximum inf where any did. Of rows without bins whatever is not known is NaN.
    """
    if not rows.layout.has_bins:
        exact = rows.exact or no_exact(len(rows))
        least, most = np.where(exact.known_min, exact.min_ns, np.nan), np.where(exact.known_max, exact.max_ns, np.nan)
        mean = np.where(exact.known_sum, exact.sum_ns / rows.samples, np.nan)
        return least, most, mean, exact.known_min & exact.known_max
    low, high = _outermost(rows)
    if rows.indptr[-1] > rows.layout.bins:
        sums: NDArray[Any] = weighed(rows, rows.layout.weights)
    else:
        weights = rows.layout.middles_of(rows.bins) * rows.counts.astype(np.float64)
        sums = np.add.reduceat(weights, rows.indptr[:-1]) if len(rows) else weights
    known = np.zeros(len(rows), np.bool_)
    if rows.exact is not None:
        known = rows.exact.known
        low = np.where(known, rows.exact.min_ns, low)
        high = np.where(known, rows.exact.max_ns, high)
        sums = np.where(known, rows.exact.sum_ns, sums)
    samples = rows.samples if ranked is None else ranked.samples
    if rows.layout.timed is rows.layout:
        return low, high, sums / samples, known
    with np.errstate(invalid="ignore"):
        return or_failed(rows, low), or_failed(rows, high), sums / (samples - rows.failures), known


def _outermost(rows: Intervals) -> tuple[Int, Int]:
    """Return the lowest and the highest latency in ns of the bins of each row, of an open one its lower edge."""
    layout, first = rows.layout, rows.indptr[:-1]
    if not isinstance(layout.timed, Mixed) or not len(rows):
        least, most = (rows.held[0][places].astype(np.int64) for places in (first, rows.indptr[1:] - 1))
        return layout.lowest_of(least), layout.highest_of(most)
    lows: Int = np.minimum.reduceat(layout.lowest_of(rows.bins), first)
    highs: Int = np.maximum.reduceat(layout.highest_of(rows.bins), first)
    return lows, highs


def share_below(rows: Intervals, threshold_ns: int) -> NDArray[np.float64]:
    """Return the share of samples of each row below the threshold, a bin that straddles it counted by overlap.

    Of a row whose bins are of several layouts it is the share that surely lies below (see `shares_between`). NaN of rows
    without bins.
    """
    if not rows.layout.has_bins:
        return np.full(len(rows), np.nan)
    lower, upper = rows.layout.lower[rows.bins], rows.layout.upper[rows.bins]
    wide = np.maximum(upper - lower, 1)  # that of operations that failed has no width, and lies above all latencies
    part = np.clip((threshold_ns - lower) / wide, 0, 1)
    if rows.layout.open_ended:
        part = np.where(rows.layout.opened(rows.bins), 0, part)
    unlike = rows.mixed
    if unlike.any():
        part = np.where(unlike[rows.row] & (part < 1), 0, part)
    sums = np.add.reduceat(rows.counts * part, rows.indptr[:-1]) if len(rows) else part[:0]
    return sums / rows.samples


def shares_between(
    rows: Intervals, threshold_ns: int, below: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest share of each row's samples that can lie below the threshold; `below` is `share_below`.

    Because of rows whose bins are of several layouts: the bins that end below it, and those that begin below it. Of other rows
    both are `below`.
    """
    unlike = rows.mixed
    if not unlike.any():
        return below, below
    begun = row_sums(rows.indptr, np.where(rows.layout.lowest_of(rows.bins) < threshold_ns, rows.counts, 0))
    return below, np.where(unlike, begun / rows.samples, below)


def means_between(rows: Intervals, mean: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest mean in ns of each row, of which `mean` is reported.

    Of rows whose bins are of several layouts and whose sums are not known: from the lower and the upper ends of bins; inf where a
    bin has no upper end. Of other rows both are `mean`.
    """
    unlike = rows.mixed
    if rows.exact is not None:
        unlike = unlike & ~rows.exact.known_sum
    if not unlike.any():
        return mean, mean
    layout, first, samples = rows.layout, rows.indptr[:-1], rows.samples - rows.failures
    counts = np.where(rows.bins < layout.timed.bins, rows.counts, 0)
    tops = np.where(layout.opened(rows.bins), np.inf, layout.tops_of(rows.bins))
    with np.errstate(invalid="ignore"):
        least, most = (np.add.reduceat(counts * ends, first) / samples for ends in (layout.lowest_of(rows.bins) * 1.0, tops))
    return np.where(unlike, least, mean), np.where(unlike, most, mean)
