"""Bounds of the ratio of two percentiles where samples depend on one another: estimated from whole windows, in batches.

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
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Intervals
from ingest.core.ranks import Percentile

Float = NDArray[np.float64]

LEAST_BATCHES = 5
LEAST_RUNS = 3
LEAST_BLOCKS = 25  # sums of windows whose correlation is still measured
LEAST_WINDOWS = 10
MARGIN = 1.1  # of the length of a batch over the time in which correlation dies away
WHERE = (0.5, 0.9)  # shares at which correlations are measured, beside that of the percentile
MOST_CORRELATION = 0.999
FIRST_STEP, MOST_STEPS, PRECISE = 0.02, 12, 0.001  # of the search for a bound, on the log scale
TAIL = 0.015  # on either side: what the formula is asked for, so that 95 % are held as measured
NONE = math.nan


@dataclass(frozen=True)
class Windows:
    """One group of one side in windows: of each run, how many samples of each window lie above each used bin.

    `above[run][window, k]` are those above the first k used bins, `lowest` and `edges` their outer edges in ns. `is_open` says
    that the last of them has no upper edge. `step_ns` is how long a window is.
    """

    above: tuple[Float, ...]
    lowest: Float
    edges: Float
    is_open: bool
    step_ns: int

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
        return self._values.setdefault(share, _crossing(self.knots, self.knot_shares, share))

    @cached_property
    def _values(self) -> dict[float, float]:
        return {}

    def log_values(self, share: float) -> Float:
        """Return the log of the latency above which that share of each run's samples lies, of runs that have samples."""
        sums = [run.sum(axis=0) for run in self.above]
        shares = [own / own[0] for own in sums if own[0]]
        return np.log([_crossing(self.knots, np.column_stack([own[:-1], own[1:]]).ravel(), share) for own in shares])

    def bin_at(self, value: float) -> int:
        """Return which used bin a latency is in, the one below where it is between two."""
        return min(max(int(np.searchsorted(self.lowest, value, side="right")) - 1, 0), len(self.lowest) - 1)

    def above_at(self, value: float) -> list[Float]:
        """Return, run by run, how many samples of each window lie above a latency."""
        place = self.bin_at(value)
        low, high = self.lowest[place], self.edges[place]
        part = min(max((value - low) / (high - low), 0.0), 1.0)
        return [run[:, place] * (1 - part) + run[:, place + 1] * part for run in self.above]


def windows_of(rows_by_run: Sequence[Intervals], step_ns: int) -> Windows:
    """Return the rows of one group as windows, run by run; each run's are in the order of time, all in one layout with bins."""
    layout = rows_by_run[0].layout
    used = np.unique(np.concatenate([rows.bins for rows in rows_by_run]))
    above = []
    for rows in rows_by_run:
        counts = np.zeros((len(rows), len(used) + 1))
        counts[rows.row, np.searchsorted(used, rows.bins)] = rows.counts
        above.append(counts[:, ::-1].cumsum(axis=1)[:, ::-1])
    is_open = layout.open_ended and bool(len(used)) and int(used[-1]) == layout.bins - 1
    lowest, edges = layout.lowest_of(used).astype(np.float64), layout.edges[used + 1].astype(np.float64)
    return Windows(tuple(above), lowest, np.maximum(edges, lowest + 1), is_open, step_ns)


def batch_length(windows: Windows, percentile: Percentile) -> int:
    """Return how many windows make a batch that hardly depends on the next one."""
    length = 1
    for share in {*WHERE, _share(percentile)}:
        place = int(np.argmax(windows.shares <= 1 - share))
        series = [run[:, place] - windows.shares[place] * run[:, 0] for run in windows.above]
        blocks = 1
        while blocks == 1 or sum(len(run) // blocks for run in series) >= LEAST_BLOCKS:
            correlation = neighbours([_blocks(run, blocks) for run in series])
            if correlation > 0:
                length = max(length, math.ceil(MARGIN * blocks * (1 + correlation) / (1 - correlation) - PRECISE))
            blocks *= 2
    return length


def ratio_between(baseline: Windows, run: Windows, percentile: Percentile, ratio: float, rows: int = 1) -> tuple[float, float]:
    """Return the least and the largest ratio run / baseline of a percentile that the data leave possible, 95 times in 100.

    `ratio` is that of the two percentiles, `rows` how many ratios are to be held together. From the spread between runs where a
    side has three, else from windows. NaN on a side that is not bounded, on both where there are too few batches. Bins are in the
    bounds.
    """
    if not 0 < ratio < math.inf or not 0 < _share(percentile) < 1:
        return NONE, NONE
    if max(len(side.above) for side in (baseline, run)) >= LEAST_RUNS:
        low, high = _between_runs(baseline, run, percentile, rows)
        low, high = min(low, ratio), max(high, ratio)
    else:
        test = _Test.of(baseline, run, percentile, rows)
        if test is None:
            return NONE, NONE
        low, high = (_outermost(test.excess, math.log(ratio), direction) for direction in (-1, 1))
    return low * _widening(baseline, run, percentile, low, -1), high * _widening(baseline, run, percentile, high, 1)


def values_between(windows: Windows, percentile: Percentile, rows: int = 1) -> tuple[float, float]:
    """Return the latencies in ns between which a percentile lies, 95 times in 100; `rows` of them are held together.

    About this execution, from its windows; outer edges of bins. NaN on a side that is not bounded, on both where there are too
    few batches.
    """
    share = 1 - _share(percentile)
    firsts = _batches(windows, batch_length(windows, percentile)) if 0 < share < 1 else None
    if firsts is None:
        return NONE, NONE
    sizes = _summed([run[:, 0] for run in windows.above], firsts)
    allowed = student(len(sizes) - 1, TAIL / rows)

    def excess(value: float) -> float:
        above, variance = _spread(windows, value, firsts, sizes)
        if not variance:
            return 0.0 if above == share else math.copysign(math.inf, share - above)
        return (share - above) / (allowed * math.sqrt(variance))

    middle = math.log(max(windows.value_above(share), 1.0))
    low, high = (_outermost(excess, middle, direction) for direction in (-1, 1))
    if not math.isnan(low):
        low = min(low, float(windows.lowest[windows.bin_at(low)])) or NONE
    if not math.isnan(high):
        place = windows.bin_at(high)
        is_open = windows.is_open and place == len(windows.edges) - 1
        high = NONE if is_open else max(high, float(windows.edges[place]))
    return low, high


def _between_runs(baseline: Windows, run: Windows, percentile: Percentile, rows: int) -> tuple[float, float]:
    """Return the bounds by Welch's t of the logs of each run's percentile; a side of fewer runs is taken to vary as the other."""
    logs = [side.log_values(1 - _share(percentile)) for side in (baseline, run)]
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
        place = side.bin_at(value)
        if sign > 0:
            is_open = side.is_open and place == len(side.edges) - 1
            edge = math.inf if is_open else max(float(side.edges[place]), value)
        else:
            edge = min(float(side.lowest[place]), value)
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
class _Test:
    """Whether a ratio of two percentiles is possible."""

    baseline: Windows
    run: Windows
    share: float
    tail: float
    firsts: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]
    sizes: tuple[Float, Float]

    @classmethod
    def of(cls, baseline: Windows, run: Windows, percentile: Percentile, rows: int) -> _Test | None:
        """Return the test, None where there are too few batches."""
        length_ns = max(batch_length(side, percentile) * side.step_ns for side in (baseline, run))
        first, second = (_batches(side, -(-length_ns // side.step_ns)) for side in (baseline, run))
        if first is None or second is None or not 0 < _share(percentile) < 1:
            return None
        sizes = (_summed([each[:, 0] for each in baseline.above], first), _summed([each[:, 0] for each in run.above], second))
        return cls(baseline, run, _share(percentile), TAIL / rows, (first, second), sizes)

    def excess(self, ratio: float) -> float:
        """Return D in units of what chance allows: possible from -1 to 1, above where the ratio is too large."""
        difference, variances, freedoms = 0.0, [], []
        values = _latencies(self.baseline, self.run, 1 - self.share, ratio)
        for side, firsts, sizes, value, sign in zip(
            (self.baseline, self.run), self.firsts, self.sizes, values, (1, -1), strict=True
        ):
            share, own_variance = _spread(side, value, firsts, sizes)
            difference += sign * share
            variances.append(own_variance)
            freedoms.append(len(sizes) - 1)
        variance = sum(variances)
        if not variance:
            return 0.0 if not difference else math.copysign(math.inf, difference)
        freedom = variance**2 / sum(own**2 / free for own, free in zip(variances, freedoms, strict=True))
        return difference / (math.sqrt(variance) * student(freedom, self.tail))


def _spread(side: Windows, value: float, firsts: Sequence[NDArray[np.int64]], sizes: Float) -> tuple[float, float]:
    """Return the share of samples above a latency, and its variance from how the shares of batches vary."""
    above, batches = _summed(side.above_at(value), firsts), len(sizes)
    share = float(above.sum()) / side.count
    rest = above - share * sizes
    return share, float(rest @ rest) * batches / (batches - 1) / side.count**2


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


def _batches(windows: Windows, length: int) -> list[NDArray[np.int64]] | None:
    """Return, run by run, the first window of each batch; None where there are too few."""
    firsts = []
    for run in windows.above:
        batches = max(1, len(run) // length)
        firsts.append(np.arange(batches) * len(run) // batches)
    return firsts if sum(map(len, firsts)) >= LEAST_BATCHES else None


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
