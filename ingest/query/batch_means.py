"""How sure a value is whose samples depend on one another: bounds from whole windows, in batches.

Bounds of the ratio of two percentiles where samples depend on one another: estimated from whole windows, in batches.

Latencies of one run are not independent draws: a pause, a warm cache or a neighbour moves many of them together. So the samples
of a window are one observation, and windows that still resemble their neighbours are added up to batches that do not:

    windows of 20 s    . . . . . . . . . . . .      share of samples above a latency in each
    batches            |-----|-----|-----|-----|    as long as the shares of neighbours are correlated, at least 5 a side

A ratio is tested like this: the baseline's latencies, times that ratio, and the run's are put together, and x is the percentile
of both. D is the share of the run's samples above x less that of the baseline's; its variance follows from how the shares of
the batches of each side vary. (As x is that of both, three pauses that all fell on one side have the spread of three pauses, even
if the other side had none.) A ratio is possible where |D| is within Student's t, with Satterthwaite's degrees of freedom; the
bounds are the least and the largest possible ratio, widened by the bins of both sides.

Correlations are measured at p50, p90 and the percentile itself, as at p99.9 few samples hide how alike neighbours are, and of
sums of 1, 2, 4, ... windows; each is corrected for the bias of short series (Marriott and Pope 1954). Measured error rates are in
docs/explanation/verdicts.md.

How sure the share of samples above a threshold is, from the variation between whole windows: samples are not independent.

    windows   x_w samples above of n_w; share p = sum x / sum n; what a window has too many: r_w = x_w - p n_w
    batches   of b windows, b = LENGTHS times the integrated autocorrelation time of r, at least so long that there are
              about MOST_BATCHES; the sums of r over batches are as good as independent
    effect    variance of the sum of r by batches / the variance that independent samples would have (at least 1)

The share is then as sure as that of sum n / effect independent samples, of which sum x / effect are above: a beta distribution
(Jeffreys' prior), mixed over the effect, which is known with `freedom` degrees: batches - 1, but no more than CLUSTERS of
the independent samples on the rarer side. A share that rests on a few bursts has a variance that rests on these, too.

Sources: batch means and their t distribution: Alexopoulos and Seila, Output data analysis (Handbook of Simulation, 1998);
the window of the autocorrelation sum: Sokal, Monte Carlo methods in statistical mechanics (1997), section 3. CLUSTERS was
chosen by measured coverage on M/M/1 queues at loads of 0.3 to 0.92 (docs/explanation/verdicts.md).

How over-represented something is among some samples, against the rest: counts, lifts, and bounds that rest on windows.

    lift = share among the samples inside / share among those outside         ceph-b made 90 % inside, 30 % outside: 3 times

Samples of one run depend on one another (see `dependent`), so a window is one observation. On each side the variance of a share
is that of a ratio of sums over windows, times a factor where neighbours resemble each other: the largest that sums of 1, 2, 4,
... windows show; a side of few windows takes the factor of the other if that is larger. That makes an effective number of
samples, never more than there are (Korn and Graubard 1998), and Wilson's interval with Student's t from it. Both intervals give
that of the ratio (MOVER; Donner and Zou 2012). Fewer than 5 effective windows with samples on a side: no bound, as all may be
a single event. view/page/panels/box.js does the same in the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Intervals
from ingest.core.labels import Group
from ingest.core.layout import LAST_NS, Float, common_layout
from ingest.core.quantiles import Percentile

if TYPE_CHECKING:
    from ingest.query.question import Answer


LEAST_BATCHES = 5
LEAST_RUNS = 3
LEAST_BLOCKS = 25  # sums of windows whose correlation is still measured
LEAST_WINDOWS = 10
MARGIN = 1.1  # of the length of a batch over the time in which correlation dies away
WHERE = (0.5, 0.9)  # shares at which correlations are measured, beside that of the percentile
MOST_CORRELATION = 0.999
SURELY = 1.645  # standard errors: a correlation is at most so much higher, 95 times in 100
FIRST_STEP, MOST_STEPS, PRECISE = 0.02, 12, 0.001  # of the search for a bound, on the log scale
TAIL = 0.015  # on either side: what the formula is asked for, so that 95 % are held as measured
NONE = math.nan


@dataclass(frozen=True)
class Windows:
    """One group of one side in windows: of each run, how many samples of each window lie above each used bin.

    `above[run][window, k]` are those above the first k used bins, `lowest` and `edges` their outer edges in ns. `is_open` says
    that the last of them has no upper edge. `step_ns` is how long a window is. Of bins that overlap these are the pieces that
    they are cut into, and `outer` are the least and the most that a sample in each piece can be: the ends of all bins across it.
    """

    above: tuple[Float, ...]
    lowest: Float
    edges: Float
    is_open: bool
    step_ns: int
    outer: tuple[Float, Float] | None = None

    @cached_property
    def count(self) -> float:
        """Return the number of samples."""
        return float(sum(run[:, 0].sum() for run in self.above))

    @cached_property
    def shares(self) -> Float:
        """Return the share of samples above the first k used bins, k = 0, 1, ..."""
        total: Float = sum((run.sum(axis=0) for run in self.above), np.zeros(len(self.edges) + 1))
        return total / self.count

    @cached_property
    def knots(self) -> Float:
        """Return both edges of each used bin: between them its samples are taken to be evenly spread."""
        return np.column_stack([self.lowest, self.edges]).ravel()

    @cached_property
    def knot_shares(self) -> Float:
        """Return the share of samples above each knot."""
        return np.column_stack([self.shares[:-1], self.shares[1:]]).ravel()

    def value_above(self, share: float) -> float:
        """Return the latency above which that share of the samples lies."""
        return _crossing(self.knots, self.knot_shares, share)

    def log_values(self, share: float) -> Float:
        """Return the log of the latency above which that share of each run's samples lies, of runs that have samples."""
        sums = [run.sum(axis=0) for run in self.above]
        shares = [own / own[0] for own in sums if own[0]]
        return np.log([_crossing(self.knots, np.column_stack([own[:-1], own[1:]]).ravel(), share) for own in shares])

    def bin_at(self, value: float) -> int:
        """Return which used bin a latency is in, the one below where it is between two."""
        return min(max(int(np.searchsorted(self.lowest, value, side="right")) - 1, 0), len(self.lowest) - 1)

    def lowest_at(self, value: float) -> float:
        """Return the least that a latency can be, wherever in its bin it is."""
        lowest = self.lowest if self.outer is None else self.outer[0]
        return min(float(lowest[self.bin_at(value)]), value)

    def highest_at(self, value: float) -> float:
        """Return the most that a latency can be, infinite in a bin without an upper edge."""
        place = self.bin_at(value)
        if self.outer is not None:
            return max(float(self.outer[1][place]), value)
        return math.inf if self.is_open and place == len(self.edges) - 1 else max(float(self.edges[place]), value)

    def above_at(self, value: float) -> list[Float]:
        """Return, run by run, how many samples of each window lie above a latency."""
        place = self.bin_at(value)
        low, high = self.lowest[place], self.edges[place]
        part = min(max((value - low) / (high - low), 0.0), 1.0)
        return [run[:, place] * (1 - part) + run[:, place + 1] * part for run in self.above]


def windows_of(rows_by_run: Sequence[Intervals], step_ns: int) -> Windows:
    """Return the rows of one group as windows, run by run; each run's are in the order of time, all in one layout with bins."""
    layout = rows_by_run[0].layout
    if any(rows.mixed.any() for rows in rows_by_run):
        return _overlapping(rows_by_run, step_ns)
    used = np.unique(np.concatenate([rows.bins for rows in rows_by_run]))
    above = []
    for rows in rows_by_run:
        counts = np.zeros((len(rows), len(used) + 1))
        counts[rows.row, np.searchsorted(used, rows.bins)] = rows.counts
        above.append(counts[:, ::-1].cumsum(axis=1)[:, ::-1])
    is_open = bool(len(used)) and bool(layout.opened(used[-1:])[0])
    lowest, edges = layout.lowest_of(used).astype(np.float64), layout.upper[used].astype(np.float64)
    edges = np.maximum(edges, lowest + 1)
    if len(used) and used[-1] >= layout.timed.bins:  # failed operations: above all, and without an upper edge
        is_open, edges[-1] = True, 2 * lowest[-1]
    return Windows(tuple(above), lowest, edges, is_open, step_ns)


def _overlapping(rows_by_run: Sequence[Intervals], step_ns: int) -> Windows:
    """Return windows of bins of several layouts: cut into pieces at the edges of all, samples evenly spread over those of theirs.

    Where `value` is a percentile of samples that are spread so, the true one lies within the bins across it: those that end
    below it are too few to reach the rank, and with those that begin at it or above there are enough.
    """
    layout = rows_by_run[0].layout
    used = np.unique(np.concatenate([rows.bins for rows in rows_by_run]))
    lower = np.minimum(layout.lowest_of(used), LAST_NS - 1)
    opened = layout.opened(used) | (used >= layout.timed.bins)  # failed operations are above all, and without an upper edge
    upper = np.maximum(layout.upper[used], lower + 1)
    edges = np.unique(np.concatenate([lower, upper]))
    first, last = np.searchsorted(edges, lower), np.searchsorted(edges, upper)
    inside = (first[:, None] <= np.arange(len(edges) - 1)) & (np.arange(len(edges) - 1) < last[:, None])
    kept = np.flatnonzero(inside.any(axis=0))
    shares = (inside * (np.diff(edges) / (upper - lower)[:, None]))[:, kept]
    above = []
    for rows in rows_by_run:
        counts = np.zeros((len(rows), len(used)))
        counts[rows.row, np.searchsorted(used, rows.bins)] = rows.counts
        pieces = np.column_stack([counts @ shares, np.zeros(len(rows))])
        above.append(pieces[:, ::-1].cumsum(axis=1)[:, ::-1])
    least = np.where(inside, lower[:, None], np.inf).min(axis=0)[kept]
    most = np.where(inside, np.where(opened, np.inf, upper)[:, None], -np.inf).max(axis=0)[kept]
    beyond = edges[kept] >= lower[opened].min(initial=np.iinfo(np.int64).max)  # what is counted in an open bin may lie there, too
    begin, end = edges[kept].astype(np.float64), edges[kept + 1].astype(np.float64)
    end = np.where(begin < end, end, 2 * begin)
    return Windows(tuple(above), begin, end, bool(opened.any()), step_ns, (least, np.where(beyond, np.inf, most)))


def batch_length(windows: Windows, percentile: Percentile) -> int:
    """Return how many windows make a batch that hardly depends on the next one."""
    places = [int(np.argmax(windows.shares <= 1 - share)) for share in {*WHERE, _share(percentile)}]
    return max(_uncorrelated([run[:, place] - windows.shares[place] * run[:, 0] for run in windows.above]) for place in places)


def _uncorrelated(series: Sequence[Float]) -> int:
    """Return how many neighbours in series about 0, one a run, are added up so that sums hardly depend on the next one."""
    length = blocks = 1
    while blocks == 1 or sum(len(run) // blocks for run in series) >= LEAST_BLOCKS:
        correlation = neighbours([_blocks(run, blocks) for run in series])
        length = max(length, _apart(correlation, blocks))
        blocks *= 2
    return length


def _apart(correlation: float, blocks: int = 1) -> int:
    """Return how many windows make batches that hardly depend on one another, by the correlation of sums of so many."""
    return math.ceil(MARGIN * blocks * (1 + correlation) / (1 - correlation) - PRECISE) if correlation > 0 else 1


def ratio_between(baseline: Windows, run: Windows, percentile: Percentile, ratio: float, rows: int = 1) -> tuple[float, float]:
    """Return the least and the largest ratio run / baseline of a percentile that the data leave possible, 95 times in 100.

    `ratio` is that of the two percentiles, `rows` how many ratios are to be held together. From the spread between runs where a
    side has three, else from windows. NaN on a side that is not bounded, on both where there are too few batches. Bins are in the
    bounds.
    """
    if not 0 < ratio < math.inf or not 0 < _share(percentile) < 1:
        return NONE, NONE
    if max(len(side.above) for side in (baseline, run)) >= LEAST_RUNS:
        low, high = _between_runs([side.log_values(1 - _share(percentile)) for side in (baseline, run)], rows)
        low, high = min(low, ratio), max(high, ratio)
    else:
        excess = _excess(baseline, run, percentile, rows)
        if excess is None:
            return NONE, NONE
        low, high = (_outermost(excess, math.log(ratio), direction) for direction in (-1, 1))
    return low * _widening(baseline, run, percentile, low, -1), high * _widening(baseline, run, percentile, high, 1)


def values_between(windows: Windows, percentile: Percentile, rows: int = 1) -> tuple[float, float]:
    """Return the latencies in ns between which a percentile lies, 95 times in 100; `rows` of them are held together.

    About this execution, from its windows; outer edges of bins. NaN on a side that is not bounded, on both where there are too
    few batches.
    """
    share = 1 - _share(percentile)
    batches = _Batches.of(windows, batch_length(windows, percentile)) if 0 < share < 1 else None
    if batches is None:
        return NONE, NONE
    allowed = student(len(batches.sizes) - 1, TAIL / rows)

    def excess(value: float) -> float:
        above, variance = batches.spread(value)
        if not variance:
            return 0.0 if above == share else math.copysign(math.inf, share - above)
        return (share - above) / (allowed * math.sqrt(variance))

    middle = math.log(max(windows.value_above(share), 1.0))
    low, high = (_outermost(excess, middle, direction) for direction in (-1, 1))
    low = low if math.isnan(low) else windows.lowest_at(low) or NONE
    high = high if math.isnan(high) else windows.highest_at(high)
    return low, high if high < math.inf else NONE


def rates_between(baseline: Sequence[Float], run: Sequence[Float], rows: int = 1) -> tuple[float, float]:
    """Return the least and the largest ratio run / baseline of two rates that their windows leave possible, 95 times in 100.

    Each side has, run by run, what completed in each window in the order of time, in one unit; windows of one side are equally
    long, a side is one run, or three and more. From the spread between runs where a side has three, else from windows. NaN on
    both sides where there are too few batches, or where nothing completed in the baseline.
    """
    sides = [[rates for rates in side if len(rates) >= LEAST_BATCHES] for side in (baseline, run)]
    means = [np.array([rates.mean() for rates in side]) for side in sides]
    if not len(means[1]) or not len(means[0]) or not means[0].all():
        return NONE, NONE
    if not means[1].all():
        return 0.0, 0.0
    if max(map(len, means)) >= LEAST_RUNS:
        return _between_runs([np.log(each) for each in means], rows)
    spreads = [_spread_of_mean(side[0]) for side in sides]
    variance, ratio = sum(spread for spread, _ in spreads), float(means[1][0] / means[0][0])
    if math.isnan(variance) or not variance:
        return ratio * (1 + variance), ratio * (1 + variance)
    freedom = variance**2 / sum(spread**2 / freedom for spread, freedom in spreads)
    half = math.sqrt(variance) * student(freedom, TAIL / rows)
    return ratio * math.exp(-half), ratio * math.exp(half)


def _spread_of_mean(rates: Float) -> tuple[float, int]:
    """Return the variance of the mean of a series, as a share of the mean's square, and its degrees of freedom; NaN: too few.

    Neighbours are taken to be as much alike as they may be: few windows hide it. What batches of that correlation still have in
    common (of a process of first order) is added to their variance.
    """
    mean, count = float(rates.mean()), len(rates)
    measured = neighbours([rates - mean])
    alike = min(measured + SURELY * math.sqrt((1 - measured**2) / count), MOST_CORRELATION)
    batches = count // max(_uncorrelated([rates - mean]), _apart(alike))
    if batches < LEAST_BATCHES:
        return NONE, 1
    firsts = np.arange(batches) * count // batches
    means = np.add.reduceat(rates, firsts) / np.diff(firsts, append=count)
    length = count / batches
    lags = np.arange(1, math.ceil(length))
    inside = 1 + 2 * float(((1 - lags / length) * alike**lags).sum())  # of the variance, what a batch holds of it
    common = max((1 + alike) / (1 - alike) / inside, 1.0)
    return common * float(means.var(ddof=1)) / batches / mean**2, batches - 1


def _between_runs(logs: Sequence[Float], rows: int) -> tuple[float, float]:
    """Return the bounds by Welch's t of the logs of what each run measured; a side of fewer runs varies as the other."""
    spreads = [float(own.var(ddof=1)) if len(own) >= LEAST_RUNS else NONE for own in logs]
    known = [(spread, len(own)) for spread, own in zip(spreads, logs, strict=True) if not math.isnan(spread)]
    spreads = [known[0][0] if math.isnan(spread) else spread for spread in spreads]
    shares = [spread / len(own) for spread, own in zip(spreads, logs, strict=True)]
    variance, middle = sum(shares), float(logs[1].mean() - logs[0].mean())
    freedom = float(known[0][1] - 1)
    if len(known) > 1 and variance:
        freedom = variance**2 / sum(own**2 / (count - 1) for own, (_, count) in zip(shares, known, strict=True))
    half = math.sqrt(variance) * student(freedom, TAIL / rows)
    return math.exp(middle - half), math.exp(middle + half)


def _widening(baseline: Windows, run: Windows, percentile: Percentile, ratio: float, direction: int) -> float:
    """Return how much lower (or higher) a bound is because samples may be anywhere in their bins; NaN for an open bin."""
    if math.isnan(ratio):
        return NONE
    factors = []
    values = _latencies(baseline, run, 1 - _share(percentile), ratio)
    for side, value, sign in zip((baseline, run), values, (-direction, direction), strict=True):
        edge = side.highest_at(value) if sign > 0 else side.lowest_at(value)
        factors.append((edge / value) ** (1 if side is run else -1) if value > 0 and edge > 0 else 0.0)
    widened = factors[0] * factors[1]
    return widened if 0 < widened < math.inf else NONE


def _latencies(baseline: Windows, run: Windows, share: float, ratio: float) -> tuple[float, float]:
    """Return x of the baseline and of the run: the mean of the shares of both above it is `share`."""
    low, high = sorted((baseline.value_above(share), run.value_above(share) / ratio))
    inner = (
        baseline.knots[np.searchsorted(baseline.knots, low) : np.searchsorted(baseline.knots, high, side="right")],
        run.knots[np.searchsorted(run.knots, low * ratio) : np.searchsorted(run.knots, high * ratio, side="right")] / ratio,
    )
    knots = np.sort(np.concatenate([[low], *inner, [high]]), kind="stable")
    above = np.interp(knots, baseline.knots, baseline.knot_shares, left=1, right=0)
    above += np.interp(knots * ratio, run.knots, run.knot_shares, left=1, right=0)
    value = _crossing(knots, above, 2 * share)
    return value, value * ratio


@dataclass(frozen=True)
class _Batches:
    """The windows of one side in batches: run by run the first window of each, and how many samples each has."""

    side: Windows
    firsts: list[NDArray[np.int64]]
    sizes: Float

    @classmethod
    def of(cls, side: Windows, length: int) -> _Batches | None:
        """Return batches of so many windows; None where there are too few."""
        counts = [max(1, len(run) // length) for run in side.above]
        if sum(counts) < LEAST_BATCHES:
            return None
        firsts = [np.arange(count) * len(run) // count for count, run in zip(counts, side.above, strict=True)]
        return cls(side, firsts, _summed([run[:, 0] for run in side.above], firsts))

    def spread(self, value: float) -> tuple[float, float]:
        """Return the share of samples above a latency, and its variance from how the shares of batches vary."""
        above, batches = _summed(self.side.above_at(value), self.firsts), len(self.sizes)
        share = float(above.sum()) / self.side.count
        rest = above - share * self.sizes
        return share, float(rest @ rest) * batches / (batches - 1) / self.side.count**2


def _excess(baseline: Windows, run: Windows, percentile: Percentile, rows: int) -> Callable[[float], float] | None:
    """Return what gives D of a ratio of two percentiles in units of what chance allows; None where there are too few batches.

    The ratio is possible from -1 to 1, above where it is too large.
    """
    length_ns = max(batch_length(side, percentile) * side.step_ns for side in (baseline, run))
    first, second = (_Batches.of(side, -(-length_ns // side.step_ns)) for side in (baseline, run))
    if first is None or second is None:
        return None

    def excess(ratio: float) -> float:
        values = _latencies(baseline, run, 1 - _share(percentile), ratio)
        (share, own), (other_share, other) = first.spread(values[0]), second.spread(values[1])
        difference, variance = share - other_share, own + other
        if not variance:
            return 0.0 if not difference else math.copysign(math.inf, difference)
        freedom = variance**2 / (own**2 / (len(first.sizes) - 1) + other**2 / (len(second.sizes) - 1))
        return difference / (math.sqrt(variance) * student(freedom, TAIL / rows))

    return excess


def _outermost(excess: Callable[[float], float], middle: float, direction: int) -> float:
    """Return the last value in a direction that is possible, NaN where there is none; `middle` is the log of one that is."""
    inside, step = middle, FIRST_STEP
    for _ in range(MOST_STEPS):
        outside = inside + direction * step
        if direction * excess(math.exp(outside)) > 1:
            break
        inside, step = outside, 2 * step
    else:
        return NONE
    while abs(outside - inside) > PRECISE:
        between = (inside + outside) / 2
        if direction * excess(math.exp(between)) > 1:
            outside = between
        else:
            inside = between
    return math.exp(outside)


def _crossing(knots: Float, above: Float, wanted: float) -> float:
    """Return where shares that fall from knot to knot pass one."""
    place = min(max(int(np.searchsorted(-above, -wanted)), 1), len(knots) - 1)
    higher, lower = float(above[place - 1]), float(above[place])
    part = min(max((higher - wanted) / (higher - lower), 0.0), 1.0) if higher > lower else 0.0
    return float(knots[place - 1] + (knots[place] - knots[place - 1]) * part)


@lru_cache(maxsize=4096)
def _student(freedom: float, tail: float) -> float:
    """Return the quantile of Student's t that `tail` lies above (Hill 1970, Algorithm 396).

    Relative error below 0.2 % from 2 degrees of freedom on, below 0.00001 from 3 on.
    """
    if freedom > 1e6:
        return NormalDist().inv_cdf(1 - tail)
    two = 2 * tail
    a = 1 / (freedom - 0.5)
    b = (48 / a) / a
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * freedom
    y = (d * two) ** (2 / freedom)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(tail)
        y = x * x
        if freedom < 5:
            c += 0.3 * (freedom - 4.5) * (x + 0.6)
        c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        y = ((1 / (((freedom + 6) / (freedom * y) - 0.089 * d - 0.822) * (freedom + 2) * 3) + 0.5 / (freedom + 4)) * y - 1) * (
            freedom + 1
        ) / (freedom + 2) + 1 / y
    return math.sqrt(freedom * y)


def student(freedom: float, tail: float) -> float:
    """Return the quantile of Student's t that `tail` lies above; degrees of freedom to a tenth, below 2 as of 1 (so too wide)."""
    return 1 / math.tan(math.pi * tail) if freedom < 2 else _student(round(freedom, 1), tail)


def _share(percentile: Percentile) -> float:
    return percentile.top / (100 * percentile.bottom)


def _summed(series: Sequence[Float], firsts: Sequence[NDArray[np.int64]]) -> Float:
    """Return the sums of batches, all runs after one another."""
    return np.concatenate([np.add.reduceat(run, first) for run, first in zip(series, firsts, strict=True)])


def _blocks(series: Float, length: int) -> Float:
    """Return sums of `length` neighbours; what is left at the end is left out."""
    blocks: Float = series[: len(series) // length * length].reshape(-1, length).sum(axis=1)
    return blocks


def neighbours(series: Sequence[Float]) -> float:
    """Return the correlation of neighbours in all runs, corrected for the bias of short series; 0 for too short ones."""
    centred = [run - run.mean() for run in series if len(run) > 1]
    length = sum(map(len, centred))
    variance = sum(float(run @ run) for run in centred)
    if length < LEAST_WINDOWS or not variance:
        return 0.0
    measured = sum(float(run[1:] @ run[:-1]) for run in centred) / variance
    each = length / len(centred)
    return min((each * measured + 1) / (each - 3), MOST_CORRELATION) if each > 4 else 0.0


LENGTHS, CUTOFF = 3.0, 4.0
MOST_BATCHES, LEAST_SHARE_BATCHES = 30, 4
CLUSTERS = 0.6
LEAST_SHARE = 1e-12


@dataclass(frozen=True, slots=True)
class ShareAbove:
    """How many of how many samples lie above a threshold, and how much the windows that they come from vary.

    `effect` is NaN where no sample is above, or all are: then nothing varies. `batches` 0 says that there are too few windows.
    """

    above: float
    samples: float
    effect: float
    batches: int
    windows: int

    @property
    def value(self) -> float:
        """Return the share above."""
        return self.above / self.samples if self.samples else math.nan

    def draws(self, count: int, noise: np.random.Generator, effect: float = 1.0, most: float = math.inf) -> Float:
        """Return `count` shares as likely as the windows leave them.

        `effect` is taken where these do not give one; none that is drawn is above `most`, unless the measured one is.
        """
        known = not math.isnan(self.effect)
        mean = self.effect if known else effect
        rarer = min(self.above, self.samples - self.above) / mean
        freedom = max(1.0, min(self.batches - 1, CLUSTERS * rarer))
        drawn = mean * freedom / noise.chisquare(freedom, count) if known else np.full(count, mean)
        effects = np.clip(drawn, 1.0, max(most, mean))
        shares = noise.beta(self.above / effects + 0.5, (self.samples - self.above) / effects + 0.5)
        return np.clip(shares, LEAST_SHARE, 1 - LEAST_SHARE)


def share_above_of(above: Float, samples: Float) -> ShareAbove:
    """Return the share above a threshold of windows in the order of time, those of one run; equal lengths, counts."""
    windows, total, over = len(samples), float(samples.sum()), float(above.sum())
    batches = 0
    if total and windows >= LEAST_SHARE_BATCHES:  # so that their sums are as good as independent
        length = LENGTHS * autocorrelation_time(above - over / total * samples)
        batches = max(LEAST_SHARE_BATCHES, min(MOST_BATCHES, int(windows / length)))
    naive = over * (1 - over / total) if total else 0.0
    if batches < LEAST_SHARE_BATCHES or naive <= 0:
        return ShareAbove(over, total, math.nan, batches, windows)
    starts = np.linspace(0, windows, batches + 1).astype(np.int64)[:-1]
    sums = np.add.reduceat(above, starts) - over / total * np.add.reduceat(samples, starts)
    variance = float(sums @ sums) * batches / (batches - 1)
    return ShareAbove(over, total, max(variance / naive, 1.0), batches, windows)


def of_runs(shares: list[ShareAbove]) -> ShareAbove:
    """Return the share of several runs of the same thing: from three on, how much it varies is that between the runs."""
    above, total = sum(share.above for share in shares), sum(share.samples for share in shares)
    windows = sum(share.windows for share in shares)
    naive = above * (1 - above / total) if total else 0.0
    known = [share for share in shares if not math.isnan(share.effect)]
    within = sum(share.effect * share.samples for share in known) / sum(share.samples for share in known) if known else math.nan
    batches = min(share.batches for share in shares)
    if len(shares) < 3 or naive <= 0:  # of two runs the spread is hardly known
        return ShareAbove(above, total, within, batches, windows)
    left = np.array([share.above - above / total * share.samples for share in shares])
    between = float(left @ left) * len(shares) / (len(shares) - 1) / naive
    return ShareAbove(above, total, max(between, 1.0), len(shares), windows)


def difference_between(baseline: ShareAbove, run: ShareAbove, rows: int = 1) -> tuple[float, float]:
    """Return the least and the largest difference run - baseline of two shares, 95 times in 100; `rows` are held together.

    Wilson's interval of each with Student's t, of as many samples as the windows leave independent, combined as by Newcombe
    (1998, method 10). A share of which nothing, or all, is above varies as that of the other side does. NaN where there are too
    few windows.
    """
    sides = (baseline, run)
    if not all(side.batches and side.samples for side in sides):
        return NO_BOUNDS
    usual = max((side.effect for side in sides if not math.isnan(side.effect)), default=1.0)
    ends = []
    for side in sides:
        held = side.samples / (usual if math.isnan(side.effect) else side.effect)
        square = student(max(side.batches - 1, 1), TAIL / rows) ** 2
        middle = (side.value + square / (2 * held)) / (1 + square / held)
        half = math.sqrt(square * (side.value * (1 - side.value) / held + square / (4 * held**2))) / (1 + square / held)
        ends.append((side.value, max(middle - half, 0.0), min(middle + half, 1.0)))
    (first, first_low, first_high), (second, second_low, second_high) = ends
    difference = second - first
    low, high = math.hypot(second - second_low, first_high - first), math.hypot(second_high - second, first - first_low)
    return difference - low, difference + high


def autocorrelation_time(values: Float) -> float:
    """Return 1 + 2 sum of the autocorrelations, summed up to CUTOFF times itself: at least 1, in places of the series."""
    centred = values - values.mean()
    power = np.abs(np.fft.rfft(centred, 2 * len(values))) ** 2
    covariance = np.fft.irfft(power)[: len(values)]
    if covariance[0] <= 0:
        return 1.0
    sums = 1 + 2 * np.cumsum(covariance[1 : max(2, len(values) // 3)]) / covariance[0]
    enough = np.flatnonzero(np.arange(1, len(sums) + 1) >= CUTOFF * np.maximum(sums, 1.0))
    return max(1.0, float(sums[enough[0] if len(enough) else -1]))


# The bounds of the ratios of a pair of answers, from their windows: which rows are one group, and how many are held together.


KEPT = 64  # groups whose windows are held at a time: 1 to 2 MB each


class Ratios:
    """The bounds of the ratios of all groups that both sides have, at some percentiles, held together."""

    def __init__(self, sides: Sequence[Sequence[Answer]], percentiles: Sequence[Percentile]) -> None:
        """Take the windows of both sides, an answer for each run, grouped alike."""
        each = [_Side(answers) for answers in sides]
        shared = set(each[0].counts) & set(each[1].counts)
        bounded = [group for group in shared if all(side.counts[group] >= LEAST_BATCHES for side in each)]
        self.rows = max(1, len(bounded) * len(percentiles))
        # Without self, so that no circle keeps the windows when this goes.
        self._windows = lru_cache(maxsize=KEPT)(lambda group: tuple(side.windows(group) for side in each))

    def of(self, groups: Sequence[Group], percentile: Percentile, ratios: Float) -> tuple[Float, Float]:
        """Return the bounds of the ratios of groups at a percentile, NaN where there are none (see `dependent`)."""
        low, high = np.full(len(groups), math.nan), np.full(len(groups), math.nan)
        for row, (group, ratio) in enumerate(zip(groups, ratios.tolist(), strict=True)):
            baseline, run = self._windows(group)
            if baseline is not None and run is not None:
                low[row], high[row] = ratio_between(baseline, run, percentile, ratio, self.rows)
        return low, high


def sides_of(answers: Sequence[Answer]) -> Iterator[tuple[Group, Windows]]:
    """Yield the windows of each group of one side, of which there is an answer for each run."""
    side = _Side(answers)
    return ((group, windows) for group in side.counts if (windows := side.windows(group)) is not None)


class _Side:
    """The windows of one side by group."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._step_ns = max((answer.step_ns for answer in answers), default=0)
        self._rows: dict[Group, list[tuple[Intervals, NDArray[np.int64]]]] = {}
        for answer in answers:
            for part in answer.parts:
                order = np.lexsort((part.start_ns, part.series))
                codes, firsts = np.unique(part.series[order], return_index=True)
                for code, rows in zip(codes.tolist(), np.split(order, firsts[1:]), strict=True):
                    self._rows.setdefault(part.table[code], []).append((part, rows))
        self.counts = {group: sum(len(rows) for _, rows in own) for group, own in self._rows.items()}

    def windows(self, group: Group) -> Windows | None:
        """Return the windows of a group, None where it has none with bins."""
        runs = [part.take(rows) for part, rows in self._rows.get(group, ()) if part.layout.has_bins]
        if not runs:
            return None
        layout = common_layout({rows.layout for rows in runs})
        return windows_of([rows.in_layout(layout) for rows in runs], self._step_ns)


MORE, LESS, SAME, UNSURE = "more", "less", "same", "cannot tell"
SAME_WITHIN = 1.1  # a lift that its bounds hold so near to 1 is none
ENOUGH = 50  # windows whose dependence is measured well enough by themselves
NO_BOUNDS = (math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a box: of each value its samples in each window in the order of time, and the samples of all in each window."""

    counts: Float
    every: Float


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the samples of a side: itself, between which bounds it lies, and whether chance alone could have made it.

    `low` and `high` are NaN where too few windows have samples. `loose` are the bounds if samples did not depend on each other:
    too narrow, but what lies within them is surely chance.
    """

    share: float
    low: float
    high: float
    loose: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Lift:
    """A lift, its bounds (NaN: there are none) and what they say; `stands_out`: beyond chance, were samples independent."""

    lift: float
    low: float
    high: float
    verdict: str
    stands_out: bool


def lifts(inside: Side, outside: Side, rows: int) -> list[Lift]:
    """Return the lift of each value; `rows` is how many are held together, 95 times in 100 (see docs/explanation/boxes.md)."""
    found = []
    enough = [windows_with(side.every) >= ENOUGH for side in (inside, outside)]
    for first, second in zip(inside.counts, outside.counts, strict=True):
        factors = dependence(first, inside.every), dependence(second, outside.every)
        own, other = (factor if sure else max(factors) for factor, sure in zip(factors, enough, strict=True))
        found.append(_lift(share_of(first, inside.every, rows, own), share_of(second, outside.every, rows, other)))
    return found


def dependence(counts: Float, every: Float) -> float:
    """Return how many times as much a share varies as if windows did not depend on each other; 1 where too few windows tell.

    Of sums of b windows: their variance over b times that of one, times (1 + r) / (1 - r), r the correlation of neighbours.
    """
    total = float(every.sum())
    rest = (counts - float(counts.sum()) / max(total, 1.0) * every)[every > 0]
    power = float(rest @ rest)
    factor, blocks = 1.0, 1
    while power and len(rest) // blocks >= LEAST_BLOCKS:
        sums = _blocks(rest, blocks)
        correlation = neighbours([sums])
        wider = float(sums @ sums) / len(sums) / blocks / (power / len(rest))
        factor = max(factor, wider * (1 + correlation) / (1 - correlation))
        blocks *= 2
    return factor


def windows_with(every: Float) -> int:
    """Return how many windows have samples."""
    return int(np.count_nonzero(every))


def share_of(counts: Float, every: Float, rows: int, factor: float) -> Share:
    """Return the share that `counts` have of all samples, window by window, and its bounds; `factor` is their dependence."""
    number, total = windows_with(every), float(every.sum())
    if not total:
        return Share(math.nan, *NO_BOUNDS, NO_BOUNDS)
    share = float(counts.sum()) / total
    loose = _wilson(share, total, student(math.inf, TAIL / rows))
    rest = counts - share * every
    effective = number / factor
    if effective < LEAST_BATCHES:
        return Share(share, *NO_BOUNDS, loose)
    variance = float(rest @ rest) * number / (number - 1) / total**2 * number / effective
    samples = min(share * (1 - share) / variance, total) if variance > 0 else min(effective, total)
    return Share(share, *_wilson(share, samples, student(effective - 1, TAIL / rows)), loose)


def _wilson(share: float, samples: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's interval of a share of so many samples."""
    part = quantile**2 / samples
    middle, half = share + part / 2, math.sqrt(part * share * (1 - share) + part**2 / 4)
    return max((middle - half) / (1 + part), 0.0), min((middle + half) / (1 + part), 1.0)


def _lift(inside: Share, outside: Share) -> Lift:
    if math.isnan(inside.share) or math.isnan(outside.share):
        return Lift(math.nan, *NO_BOUNDS, UNSURE, stands_out=False)
    lift = inside.share / outside.share if outside.share else math.inf
    stands_out = inside.share > outside.share and inside.loose[0] > outside.loose[1]
    low, high = _between(inside, outside, lift)
    if math.isnan(low):
        return Lift(lift, low, high, UNSURE, stands_out=stands_out)
    near = low >= 1 / SAME_WITHIN and high <= SAME_WITHIN
    verdict = SAME if near else MORE if low > 1 else LESS if high < 1 else UNSURE
    return Lift(lift, low, high, verdict, stands_out=stands_out)


def _between(inside: Share, outside: Share, lift: float) -> tuple[float, float]:
    """Return the bounds of a ratio of two shares from those of each (MOVER on the log scale), NaN where one has none."""
    if math.isnan(inside.low) or math.isnan(outside.low):
        return NO_BOUNDS
    if not outside.share:
        return inside.low / outside.high, math.inf
    if not inside.share:
        return 0.0, inside.high / outside.low if outside.low else math.inf
    down = math.hypot(_log(inside.share, inside.low), _log(outside.high, outside.share))
    up = math.hypot(_log(inside.high, inside.share), _log(outside.share, outside.low))
    return lift * math.exp(-down), lift * math.exp(up)


def _log(larger: float, smaller: float) -> float:
    return math.log(larger / smaller) if smaller else math.inf
