"""Where the level of a series of runs changed, told from values that only hang together from run to run.

Nights are not independent: a fuller disk or a busy neighbour lasts for days, and a series that wanders looks like one with
steps. So a step is weighed against wandering: the log values are fitted by an autoregressive process of order 1 (each run keeps a
share `phi` of the deviation of the run before it) around one level, and around two or three levels. The statistic is the gain in
log-likelihood, doubled and maximised over phi and over all places of the levels, at least LEAST_RUNS runs each (a test of the
kind of Gallagher, Lund and Robbins, Changepoint detection in climate series, 2013). It is a step if the gain is more than 99 in
100 simulated series of that length reach that have no step and the same phi. The limits were simulated once
(benchmarks/trend_limits.py) and stand in LIMITS. phi is taken from the fit without a step, corrected for its bias in short
series (Kendall 1954), but no more than WIDER above the phi that is left once the levels are taken out: a real step looks like
wandering only until then. Beyond phi 0.8 wandering and steps cannot be told apart in a few dozen runs.

Where a series as a whole shows nothing, its overlapping halves, quarters and so on are tried, against limits that are raised for
their number. Then the pieces between changes are looked at again. A single wild run decides nothing: log values are drawn to
within three deviations of the median of the five runs around them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ingest.core.intervals import median
from ingest.core.layout import Float

METHOD = "likelihood of a step against a series that wanders, 99 %"
LEAST_CHANGE = 1.1
LEAST_RUNS = 3
FEW_RUNS = 10
LEAST_WINDOW = 20
ALIKE = 1e-9
AROUND = 5
CLIP = 3 * 1.4826
FLOOR = 0.002
WIDER = 0.4
RAISED = 6.0
SHORT_STRETCH = 30
GROWTH = 1.1
PHIS = np.arange(9) / 10

LIMIT_RUNS = (10, 12, 15, 20, 30, 45, 70, 120, 250, 500)
LIMIT_PHIS = (0.0, 0.2, 0.4, 0.6, 0.8)
LIMITS = {  # the gain of 99 in 100 series without a step, by the number of changes: a row a length, a column a phi
    1: (
        (10.5, 12.1, 13.8, 15.0, 16.0),
        (10.6, 12.2, 14.0, 15.4, 16.4),
        (10.6, 12.2, 14.0, 15.4, 16.9),
        (10.8, 12.7, 14.0, 15.8, 17.8),
        (11.1, 13.0, 14.6, 16.1, 18.0),
        (11.6, 13.2, 14.7, 16.1, 18.0),
        (11.8, 13.7, 14.7, 16.1, 18.0),
        (12.7, 14.1, 14.7, 16.1, 18.0),
        (12.7, 14.1, 14.7, 16.1, 18.0),
        (13.9, 14.9, 14.9, 16.6, 18.0),
    ),
    2: (
        (13.8, 16.0, 17.4, 18.8, 20.1),
        (14.8, 17.3, 18.9, 20.9, 21.9),
        (15.5, 17.8, 20.0, 21.7, 23.9),
        (16.2, 18.8, 21.0, 23.1, 25.1),
        (16.9, 19.6, 22.2, 24.2, 26.8),
        (18.0, 20.5, 22.9, 24.7, 26.8),
        (19.0, 21.6, 22.9, 25.4, 26.8),
        (20.4, 22.3, 22.9, 25.4, 26.8),
        (22.4, 22.5, 26.3, 26.3, 26.8),
        (23.4, 24.2, 26.3, 27.2, 27.5),
    ),
}


def change_points(values: Float, least: float = LEAST_CHANGE) -> list[int]:
    """Return the places at which a new level begins; values are positive and in order of time.

    A change is a ratio of the medians on both sides of more than `least`, up or down.
    """
    logs = np.log(values)
    places: list[int] = []
    pending = [(0, len(logs))]
    while pending:
        first, last = pending.pop()
        cuts = [first + cut for cut in _split(logs[first:last])]
        if cuts:
            places += cuts
            pending += pairwise([first, *cuts, last])
    places.sort()
    while places:
        cuts = [0, *places, len(logs)]
        middle = [float(median(logs[a:b])) for a, b in pairwise(cuts)]
        sizes = [abs(b - a) for a, b in pairwise(middle)]
        smallest = min(range(len(sizes)), key=sizes.__getitem__)
        if sizes[smallest] > math.log(least) + ALIKE:
            break
        del places[smallest]
    return places


def tamed(logs: Float, around: int = AROUND) -> Float:
    """Return log values of which none is further than three deviations from the median of the `around` ones about it."""
    count = len(logs)
    if count < around:
        return logs
    first = np.clip(np.arange(count) - around // 2, 0, count - around)
    middle = median(logs[first[:, None] + np.arange(around)], axis=1)
    reach = CLIP * float(median(np.abs(logs - middle)))
    return np.clip(logs, middle - reach, middle + reach) if reach else logs


def fits(logs: Float, most: int = 2) -> tuple[Float, dict[int, Float]]:
    """Return -2 log-likelihoods of series (rows): of one level, (rows, PHIS), and of one or two changes, (rows, PHIS, places).

    `places_of` has the places, none of two changes where `most` is 1. They leave out what all have in common; a deviation below
    FLOOR is no better than FLOOR.
    """
    rows, count = logs.shape
    centred = logs - logs.mean(axis=1, keepdims=True)
    first, last = np.array(places_of(count, 2) if most > 1 else [], np.int64).reshape(-1, 2).T
    single = np.arange(LEAST_RUNS, count - LEAST_RUNS + 1)
    level = np.empty((rows, len(PHIS)))
    changed = {1: np.empty((rows, len(PHIS), len(single))), 2: np.empty((rows, len(PHIS), len(first)))}
    for number, phi in enumerate(PHIS.tolist()):
        white, ones = whitened(centred, phi), whitened(np.ones((1, count)), phi)[0]
        start = -math.log(1 - phi * phi)
        squares, across = float(ones @ ones), white @ ones
        rest = np.einsum("rt,rt->r", white, white) - across**2 / squares
        behind = np.cumsum(white[:, ::-1], axis=1)[:, ::-1]
        after = np.concatenate([behind[:, 1:], np.zeros((rows, 1))], axis=1)
        share = 1 - phi
        common = share + share**2 * (count - 1 - single)
        own = 1 + share**2 * (count - 1 - single) - common**2 / squares
        gain = white[:, single] + share * after[:, single] - np.outer(across, common / squares)
        level[:, number] = likelihood(rest, count) + start
        changed[1][:, number] = likelihood(rest[:, None] - gain * gain / own, count) + start
        if len(first):
            at, to = first - LEAST_RUNS, last - LEAST_RUNS
            both = share + share**2 * (count - 1 - last) - common[at] * common[to] / squares
            one, other = gain[:, at], gain[:, to]
            taken = (one * one * own[to] - 2 * one * other * both + other * other * own[at]) / (own[at] * own[to] - both * both)
            changed[2][:, number] = likelihood(rest[:, None] - taken, count) + start
    return level, changed


def places_of(count: int, changes: int) -> list[tuple[int, ...]]:
    """Return the places that are tried: all for one change, for two those with a stretch of one of LENGTHS between."""
    if changes == 1:
        return [(place,) for place in range(LEAST_RUNS, count - LEAST_RUNS + 1)]
    return [
        (first, first + length)
        for length in _lengths(count - 2 * LEAST_RUNS)
        for first in range(LEAST_RUNS, count - LEAST_RUNS - length + 1)
    ]


def limit_of(count: int, changes: int, phi: float) -> float:
    """Return the gain that 1 % of series without a step exceed, between the simulated lengths by the logarithm of the length."""
    by_runs = [float(np.interp(phi, LIMIT_PHIS, row)) for row in LIMITS[changes]]
    lengths = np.log(LIMIT_RUNS)
    inside = float(np.interp(math.log(count), lengths, by_runs))
    steep = (by_runs[-1] - by_runs[-2]) / (lengths[-1] - lengths[-2])
    return inside + max(math.log(count) - float(lengths[-1]), 0.0) * max(float(steep), 0.0)


def _split(logs: Float) -> list[int]:
    """Return where a series changes: one place or two, of the series as a whole or else of a part of it."""
    for first, last, windows in _windows(len(logs)):
        cuts = _changes(tamed(logs[first:last]), RAISED * math.log(windows))
        if cuts:
            return [first + cut for cut in cuts]
    return []


def _windows(count: int) -> Iterator[tuple[int, int, int]]:
    """Yield the stretches of a series that are tried, the longest first, and how many have its length."""
    if count >= FEW_RUNS:
        yield 0, count, 1
    halvings = 1
    while (length := count >> halvings) >= LEAST_WINDOW:
        windows = 2 ** (halvings + 1) - 1
        for number in range(windows):
            first = number * length // 2
            if first + length <= count:
                yield first, first + length, windows
        halvings += 1


def _changes(logs: Float, raised: float) -> list[int]:
    count = len(logs)
    level, changed = fits(logs[None])
    for changes, fit in changed.items():
        if not fit.size:
            continue
        best = fit[0].min(axis=1)
        gain = float(level.min() - best.min())
        phi = kept_share(PHIS[int(level.argmin())], count)
        phi = min(phi, float(PHIS[int(best.argmin())]) + WIDER)
        if gain > limit_of(count, changes, phi) + raised:
            return list(places_of(count, changes)[int(fit[0].min(axis=0).argmin())])
    return []


def kept_share(fitted: float, count: int) -> float:
    """Return the share that a run keeps of the deviation before it, corrected for its bias in short series (Kendall 1954)."""
    return min(fitted + (1 + 3 * fitted) / count, float(PHIS[-1]))


def whitened(series: Float, phi: float) -> Float:
    """Return what is new in each run of series (rows): independent if they are autoregressive with that phi."""
    white = series.copy()
    white[:, 1:] -= phi * series[:, :-1]
    white[:, 0] *= math.sqrt(1 - phi * phi)
    return white


def likelihood(squares: Float, count: int) -> Float:
    """Return -2 log-likelihoods of sums of squares of what is new, but for what all series of that length have in common."""
    return count * np.log(np.maximum(squares, 0.0) / count + FLOOR**2)


def _lengths(longest: int) -> list[int]:
    """Return the lengths of stretches that are tried: all up to SHORT_STRETCH, then each a tenth longer."""
    lengths = list(range(LEAST_RUNS, min(longest, SHORT_STRETCH) + 1))
    while lengths and (following := int(lengths[-1] * GROWTH)) <= longest and len(lengths) >= SHORT_STRETCH - LEAST_RUNS + 1:
        lengths.append(following)
    return lengths
