"""How over-represented something is among some samples, against the rest: counts, lifts, and bounds that rest on windows.

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

import numpy as np
from numpy.typing import NDArray

from ingest.core.dataclass import dataclass
from ingest.query.dependent import LEAST_BATCHES, TAIL, neighbours, student

Float = NDArray[np.float64]

MORE, LESS, SAME, UNSURE = "more", "less", "same", "cannot tell"
SAME_WITHIN = 1.1  # a lift that its bounds hold so near to 1 is none
LEAST_BLOCKS = 25  # sums of windows whose correlation is still measured
ENOUGH = 50  # windows whose dependence is measured well enough by themselves
NONE = (math.nan, math.nan)


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
    for own in zip(inside.counts, outside.counts, strict=True):
        pairs = list(zip(own, (inside.every, outside.every), strict=True))
        own_factors = [dependence(counts, every) for counts, every in pairs]
        factors = [
            factor if windows_with(every) >= ENOUGH else max(own_factors)
            for factor, (_, every) in zip(own_factors, pairs, strict=True)
        ]
        found.append(
            _lift(*(share_of(counts, every, rows, factor) for factor, (counts, every) in zip(factors, pairs, strict=True)))
        )
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
        sums = rest[: len(rest) // blocks * blocks].reshape(-1, blocks).sum(axis=1)
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
        return Share(math.nan, *NONE, NONE)
    share = float(counts.sum()) / total
    loose = _wilson(share, total, student(math.inf, TAIL / rows))
    rest = counts - share * every
    effective = number / factor
    if effective < LEAST_BATCHES:
        return Share(share, *NONE, loose)
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
        return Lift(math.nan, *NONE, UNSURE, stands_out=False)
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
        return NONE
    if not outside.share:
        return inside.low / outside.high, math.inf
    if not inside.share:
        return 0.0, inside.high / outside.low if outside.low else math.inf
    down = math.hypot(_log(inside.share, inside.low), _log(outside.high, outside.share))
    up = math.hypot(_log(inside.high, inside.share), _log(outside.share, outside.low))
    return lift * math.exp(-down), lift * math.exp(up)


def _log(larger: float, smaller: float) -> float:
    return math.log(larger / smaller) if smaller else math.inf
