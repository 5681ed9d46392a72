"""The highest load of a sweep that meets an objective of latency or failures, as an interval: where curves cross a level."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product, takewhile

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import UsageError
from ingest.core.intervals import Intervals, merged
from ingest.core.labels import Group, RunLabels
from ingest.core.layout import Float
from ingest.core.objective import ANY_LATENCY, Latency, parse_promise
from ingest.core.quantiles import Percentile, Ranked, percentile_values
from ingest.core.units import figure
from ingest.query.batch_means import ShareAbove, of_runs, share_above_of
from ingest.query.means import check_bins
from ingest.query.percentiles import spans_of
from ingest.query.question import Answer
from ingest.query.sweeps import AT_ONCE, RATES, loads
from ingest.query.table import Table, of_rows

# Where rising curves through uncertain points cross a level.
#
# Each column of what is drawn is a curve that the points leave possible. It is made to rise (isotonic regression, weighted by
# how sure its points are) and looked up where it crosses, by straight lines and by monotone cubics of the logit of the share,
# over the load and over its logarithm. How these four differ is what is not known between two tested loads.
#
# Sources: the min-max formula of isotonic regression: Robertson, Wright and Dykstra, Order restricted statistical inference
# (1988), theorem 1.4.4; cubics: Fritsch and Carlson, SIAM J. Numer. Anal. 17 (1980), slopes as Fritsch and Butland, SIAM J.
# Sci. Stat. Comput. 5 (1984); at the ends three-point slopes, as Moler, Numerical computing with MATLAB (2004), section 3.6.


APART = 1e-6  # in logits: points of one height are taken for this far apart


def crossings(loads: Float, shares: Float, level: float, ends: tuple[float, float]) -> list[Float]:
    """Return the loads between `ends` at which drawn curves reach the share `level`, by each of the four ways.

    `loads` rise and are above 0; `shares` (loads x draws) lie above 0 and below 1.
    """
    logits = np.log(shares / (1 - shares))
    rising = isotonic(logits, 1 / np.maximum(logits.var(axis=1), APART))
    wanted = math.log(level / (1 - level))
    found = []
    for logarithmic, way in product((False, True), (_straight, _cubic)):
        reached = np.exp(way(np.log(loads), rising, wanted)) if logarithmic else way(loads, rising, wanted)
        found.append(np.clip(reached, *ends))
    return found


def isotonic(values: Float, weights: Float) -> Float:
    """Return the rising columns nearest to those of `values` (points x draws), by weighted least squares."""
    count = len(values)
    total = np.concatenate([[0.0], np.cumsum(weights)])
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values * weights[:, None], axis=0)])
    rising = np.full(values.shape, -math.inf)
    for row in range(count):
        for begin in range(row + 1):
            means = [(sums[end + 1] - sums[begin]) / (total[end + 1] - total[begin]) for end in range(row, count)]
            rising[row] = np.maximum(rising[row], np.minimum.reduce(means))
    return rising


def _segments(y: Float, level: float) -> tuple[NDArray[np.int64], Float, Float, NDArray[np.int64]]:
    """Return of each column of rising points: the row below the level, how high the step is, how far up it the level lies."""
    below = np.clip((y <= level).sum(axis=0), 1, len(y) - 1) - 1
    columns = np.arange(y.shape[1])
    steps = np.maximum(y[below + 1, columns] - y[below, columns], APART)
    return below, steps, np.clip((level - y[below, columns]) / steps, 0, 1), columns


def _straight(x: Float, y: Float, level: float) -> Float:
    """Return where straight lines between points reach the level."""
    below, _, part, _ = _segments(y, level)
    return x[below] + (x[below + 1] - x[below]) * part


def _cubic(x: Float, y: Float, level: float) -> Float:
    """Return where monotone cubics through the points, x as a function of y, are at the level."""
    steps = np.maximum(np.diff(y, axis=0), APART)
    slopes = np.diff(x)[:, None] / steps
    tangents = np.repeat(slopes[:1], len(x), axis=0)
    if len(x) > 2:  # two points have one slope
        near, far = 2 * steps[1:] + steps[:-1], steps[1:] + 2 * steps[:-1]
        tangents[1:-1] = (near + far) / (near / slopes[:-1] + far / slopes[1:])
        for end, inner, outer in ((0, 0, 1), (-1, -1, -2)):
            weighed = (2 * steps[inner] + steps[outer]) * slopes[inner] - steps[inner] * slopes[outer]
            tangents[end] = np.clip(weighed / (steps[inner] + steps[outer]), 0, 3 * slopes[inner])
    below, height, part, columns = _segments(y, level)
    square, cube = part**2, part**3
    reached: Float = (
        (2 * cube - 3 * square + 1) * x[below]
        + (cube - 2 * square + part) * height * tangents[below, columns]
        + (3 * square - 2 * cube) * x[below + 1]
        + (cube - square) * height * tangents[below + 1, columns]
    )
    return reached


# The highest load of a sweep that meets an objective of latency, as an interval.
#
# "p99 < 5 ms" says that at most 1 % of the samples take 5 ms or longer. So the curve that is looked at is this share over the
# load, which rises. Each tested load gives a point of it, as sure as its windows leave it (`windows_variance`). Where a load
# surely meets the objective (97.5 %) and a higher one surely does not, the capacity lies between them: of many curves that the
# points leave possible each is looked up where it crosses the allowed share (`crossings`), and the middle 95 % of these are the
# interval. Measured coverage: docs/explanation/verdicts.md.
#
# The knee is the tested load with the most throughput for its latency (Kleinrock's power, ICC 1979).


ACHIEVED = "achieved"
DRAWS, SEED = 1000, 20_261_122
SURE = (0.025, 0.975)
NOWHERE = (math.nan, math.nan)
MEETS, VIOLATES, UNSURE = "meets", "violates", "cannot tell"
BRACKETED, NONE_MEETS, CANNOT_TELL = "bracketed", "none meets", "cannot tell"


@dataclass(frozen=True, slots=True)
class Sla:
    """An objective: this percentile is to lie below this latency."""

    percentile: Percentile
    limit_ns: int
    text: str

    @property
    def allowed(self) -> float:
        """Return the share of samples that may reach the limit."""
        return 1 - self.percentile.top / (100 * self.percentile.bottom)


@dataclass(frozen=True, slots=True)
class Load:
    """A run as a point of a sweep: its load, what it achieved a second, and its windows of one group.

    `shares` and `values_ns` hold, by objective, the share that is above its limit, and its percentile. `lost` counts samples that
    are missing and may be above: infinite where their number is not known.
    """

    runs: tuple[str, ...]
    load: float
    achieved: float
    shares: tuple[ShareAbove, ...]
    values_ns: tuple[float, ...]
    lost: float = 0.0


@dataclass(frozen=True, slots=True)
class Point:
    """What a tested load says of an objective: the share above its limit with 95 % bounds, and whether it surely meets it.

    `batches` is how many batches of windows that rests on, 0 for too few windows.
    """

    tested: Load
    share: float
    low: float
    high: float
    verdict: str
    batches: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """The highest load of a line that meets an objective.

    `verdict` is BRACKETED (then `load` lies from `low` to `high`, all NaN otherwise), NONE_MEETS or CANNOT_TELL, `reason` a
    sentence where it is one of these. `between` are the tested loads on either side, `knee` the tested load of the knee, NaN
    at an end of the sweep.
    """

    line: str
    group: Group
    sla: Sla
    axis: str
    verdict: str
    load: float
    low: float
    high: float
    between: tuple[float, float]
    knee: float
    points: tuple[Point, ...]
    reason: str = ""


def parse_sla(text: str) -> Sla:
    """Return the objective of a text such as p99<5ms; UsageError for anything else."""
    promise = parse_promise(text)
    if not isinstance(promise, Latency) or promise.percentile.top == 100 * promise.percentile.bottom:
        raise UsageError(f"--sla {text}: this is about a share of samples, as in 'p99<5ms' (below p100) or 'failures<0.1%'")
    return Sla(promise.percentile, promise.threshold_ns, re.sub(r"[\s=]", "", text))


def axis_of(labels: RunLabels, wanted: str = "") -> tuple[str, Mapping[str, tuple[float, str]]]:
    """Return what the load of runs is, a label or ACHIEVED, and of each run its load (NaN if achieved) and its line.

    `wanted` is a label, or ACHIEVED; without one it is a rate that was offered, else a depth, else what was achieved. UsageError
    where a label that is wanted is no number of every run.
    """
    if wanted != ACHIEVED:
        sweep = loads(labels, (wanted,) if wanted else (*RATES, *AT_ONCE))
        if sweep is not None:
            return sweep.label, sweep.places
        if wanted:
            raise UsageError(f"--load {wanted}: this label is not a number above 0 of every run, or is the same in all of them")
    return ACHIEVED, dict.fromkeys(labels, (math.nan, ""))


def tested_in(answer: Answer, run: str, load: float, slas: Sequence[Sla]) -> dict[Group, Load]:
    """Return the point of a run in each group of its answer, which holds windows; a `load` of NaN is what was achieved.

    InputError of means without a histogram.
    """
    check_bins(answer, "capacities")
    [[first, last]] = spans_of([run], answer.covered).tolist()
    points = {}
    for part in answer.parts:
        for code in np.flatnonzero(np.bincount(part.series, minlength=len(part.table))).tolist():
            key, rows = part.table[code], part.take(np.flatnonzero(part.series == code))
            if not rows.samples.sum():
                continue
            span = max(min(last, int(rows.end_ns.max())) - max(first, int(rows.start_ns.min())), 1)
            achieved = float(rows.samples.sum()) / span * 1e9
            shares = tuple(share_above_of(*_above(rows, sla.limit_ns)) for sla in slas)
            values = tuple(_percentile(rows, sla.percentile) for sla in slas)
            lost = _lost(answer, min(sla.limit_ns for sla in slas))
            points[key] = Load((run,), achieved if math.isnan(load) else load, achieved, shares, values, lost)
    return points


def capacities(tested: Mapping[tuple[str, Group], Sequence[Load]], axis: str, slas: Sequence[Sla]) -> list[list[Capacity]]:
    """Return, for each line and group, the capacity by each objective; `tested` are its points by line and group."""
    results = []
    for (line, group), points in sorted(tested.items()):
        by_load: dict[float, list[Load]] = {}
        for point in points:
            by_load.setdefault(point.load, []).append(point)
        joined = [_joined(by_load[load]) for load in sorted(by_load)]
        results.append([_capacity(line, group, axis, sla, place, joined) for place, sla in enumerate(slas)])
    return results


def binding(capacity: Sequence[Capacity]) -> Capacity:
    """Return the capacity by all objectives of a line: the lowest, which binds, or why it cannot be told."""
    for by_sla in capacity:
        if by_sla.verdict == NONE_MEETS:
            return by_sla
    known = [by_sla for by_sla in capacity if by_sla.verdict == BRACKETED]
    lowest = min(known, key=lambda by_sla: by_sla.load, default=None)
    open_ones = [by_sla for by_sla in capacity if by_sla.verdict == CANNOT_TELL]
    if lowest is None or any(_surely_met_to(by_sla) < lowest.between[1] for by_sla in open_ones):
        return open_ones[0]
    return lowest


def rows_of(results: Sequence[Sequence[Capacity]], by: Sequence[str]) -> Table:
    """Return one row a line, group and objective: labels, then sla, axis, verdict, binds, capacity, lo, hi, met, missed, knee."""
    rows = [
        (
            *(by_sla.line, *by_sla.group[: len(by)], by_sla.sla.text, by_sla.axis, by_sla.verdict),
            "true" if by_sla is binding(capacity) else "false",
            *(by_sla.load, by_sla.low, by_sla.high, *by_sla.between, by_sla.knee),
        )
        for capacity in results
        for by_sla in capacity
    ]
    return _table(rows, ("line", *by, "sla", "axis", "verdict", "binds"), ("capacity", "lo", "hi", "met", "missed", "knee"))


def points_of(results: Sequence[Sequence[Capacity]], by: Sequence[str]) -> Table:
    """Return one row a line, group, objective and tested load: achieved a second, percentile (ns), share above, bounds."""
    rows = [
        (
            *(by_sla.line, *by_sla.group[: len(by)], by_sla.sla.text, by_sla.axis, " ".join(point.tested.runs), point.verdict),
            *(point.tested.load, point.tested.achieved, point.tested.shares[place].samples, point.tested.values_ns[place]),
            *(point.share, point.low, point.high, point.batches),
        )
        for capacity in results
        for place, by_sla in enumerate(capacity)
        for point in by_sla.points
    ]
    numbers = ("load", "achieved", "count", "value", "above", "above_lo", "above_hi", "batches")
    return _table(rows, ("line", *by, "sla", "axis", "runs", "verdict"), numbers)


def _table(rows: Sequence[Sequence[object]], words: Sequence[str], numbers: Sequence[str]) -> Table:
    return of_rows(rows, dict.fromkeys(words, object) | dict.fromkeys(numbers, np.float64), words)


def _surely_met_to(capacity: Capacity) -> float:
    """Return up to which tested load an objective is surely met."""
    met = takewhile(lambda point: point.verdict == MEETS, capacity.points)
    return max((point.tested.load for point in met), default=-math.inf)


def _above(rows: Intervals, limit_ns: int) -> tuple[Float, Float]:
    """Return, by window in the order of time, how many samples are reported at the limit or above, and how many there are."""
    order = np.argsort(rows.start_ns, kind="stable")
    above = rows.failures  # slower than any
    if limit_ns != ANY_LATENCY:
        held = Ranked(rows)  # of bins of several layouts those count as above that may be
        over = np.where(held.ends[1] >= limit_ns, held.rows.counts, 0)
        above = np.bincount(rows.row, over, len(rows))
    return above[order].astype(np.float64), rows.samples[order].astype(np.float64)


def _percentile(rows: Intervals, percentile: Percentile) -> float:
    """Return a percentile over all windows, in ns; NaN where too few samples carry it."""
    start, end = np.full(len(rows), int(rows.start_ns.min())), np.full(len(rows), int(rows.end_ns.max()))
    return float(percentile_values(merged([replace(rows, start_ns=start, end_ns=end)]), percentile)[0])


def _lost(answer: Answer, limit_ns: int) -> float:
    """Return how many samples that are missing may take as long as the limit."""
    entries = [lack.entry for lack in answer.missing if lack.entry.high_ns is None or lack.entry.high_ns >= limit_ns]
    return sum(math.inf if entry.count is None else float(entry.count) for entry in entries)


def _joined(points: Sequence[Load]) -> Load:
    """Return the point of all runs at one load."""
    if len(points) == 1:
        return points[0]
    shares = tuple(of_runs([point.shares[place] for point in points]) for place in range(len(points[0].shares)))
    values = tuple(float(np.median([point.values_ns[place] for point in points])) for place in range(len(shares)))
    achieved = sum(point.achieved for point in points) / len(points)
    runs = tuple(run for point in points for run in point.runs)
    return Load(runs, points[0].load, achieved, shares, values, sum(point.lost for point in points))


def _capacity(line: str, group: Group, axis: str, sla: Sla, place: int, tested: Sequence[Load]) -> Capacity:
    """Return the capacity of one line by one objective."""
    noise = np.random.default_rng(SEED)
    shares, most = _draws(tested, place, noise)
    points = tuple(_point(point, place, shares[row], most[row], sla.allowed) for row, point in enumerate(tested))
    verdicts = [point.verdict for point in points]
    knee = _knee(tested, place)

    def result(verdict: str, reason: str = "", between: tuple[float, float] = NOWHERE, at: Sequence[float] = ()) -> Capacity:
        load, low, high = at or (math.nan,) * 3
        return Capacity(line, group, sla, axis, verdict, load, low, high, between, knee, points, reason)

    met = [row for row, verdict in enumerate(verdicts) if verdict == MEETS]
    missed = [row for row, verdict in enumerate(verdicts) if verdict == VIOLATES]
    if missed and missed[0] == 0 and not met:
        advice = "test lower loads"
        if tested[-1].values_ns[place] < tested[0].values_ns[place]:
            advice = f"look what was different, as {sla.percentile.name} falls with the load"
        return result(NONE_MEETS, f"the lowest tested load, {load_text(tested[0].load)}, does not meet {sla.text}: {advice}")
    if len(tested) < 2:  # a sweep
        return result(CANNOT_TELL, "there is one load only: a capacity lies between two, of which one meets the objective")
    if not met or not missed:
        return result(CANNOT_TELL, _open_end(tested, sla, met, missed))
    first, last = met[-1], missed[0]
    if last < first:
        return result(
            CANNOT_TELL,
            f"load {load_text(tested[last].load)} does not meet {sla.text} and the higher {load_text(tested[first].load)} does: "
            "look what was different, or leave one of them out (--run)",
        )
    between = (tested[first].load, tested[last].load)
    used = [row for row in range(max(first - 1, 0), min(last + 2, len(tested))) if tested[row].shares[place].batches]
    loads_used = np.array([tested[row].load for row in used])
    possible = (shares,) if most is shares else (shares, most)
    found = [values for drawn in possible for values in crossings(loads_used, drawn[used], sla.allowed, between)]
    ends = [np.quantile(values, SURE) for values in found]
    low, high = min(float(end[0]) for end in ends), max(float(end[1]) for end in ends)
    middle = float(np.median(np.concatenate(found)))
    at = [middle, low, high]
    if axis in AT_ONCE:  # there is nothing between two depths
        at = [float(math.floor(load)) for load in at]
    return result(BRACKETED, between=between, at=at)


def _open_end(tested: Sequence[Load], sla: Sla, met: Sequence[int], missed: Sequence[int]) -> str:
    """Return why the tested loads do not bracket a capacity, and what to do."""
    if met and not missed:
        surely = load_text(tested[met[-1]].load)
        return f"every load up to {surely} meets {sla.text}, and none is sure not to: test higher loads"
    if missed:
        return f"no load is sure to meet {sla.text}: test loads below {load_text(tested[missed[0]].load)}, or for longer"
    return f"no load is sure to meet {sla.text} or not to: the runs are too short, or lack samples"


def _draws(tested: Sequence[Load], place: int, noise: np.random.Generator) -> tuple[Float, Float]:
    """Return the possible shares of each point (rows), without the samples that are missing and with all of them above.

    What waits behind one another grows with the load, and the effect with it: where few samples are above, it is taken to be no
    larger than at the higher loads.
    """
    effects = [point.shares[place].effect for point in tested]
    drawn = []
    for row, point in enumerate(tested):
        others = [effect for effect in effects[row + 1 :] + effects[:row][::-1] if not math.isnan(effect)]
        higher = [effect for effect in effects[row + 1 :] if not math.isnan(effect)]
        most = max(higher, default=math.inf)
        share = point.shares[place]
        if not share.above:  # as few as at the higher loads that have none above either: all of these are its samples
            empty = takewhile(lambda other: not other.shares[place].above, tested[row:])
            share = replace(share, samples=sum(other.shares[place].samples for other in empty))
        drawn.append(share.draws(DRAWS, noise, others[0] if others else 1.0, most))
    shares = np.array(drawn)
    lost = np.array([point.lost for point in tested])
    if not lost.any():
        return shares, shares
    samples = np.array([point.shares[place].samples for point in tested])
    weight = np.where(np.isinf(lost), 1.0, lost / (samples + np.where(np.isinf(lost), 0.0, lost)))[:, None]
    return shares, np.clip(shares * (1 - weight) + weight, 0, 1 - 1e-12)


def _point(tested: Load, place: int, shares: Float, most: Float, allowed: float) -> Point:
    """Return what a point says of an objective."""
    share = tested.shares[place]
    low, high = float(np.quantile(shares, SURE[0])), float(np.quantile(most, SURE[1]))
    if not share.batches:
        low, high = 0.0, 1.0
    verdict = MEETS if high <= allowed else VIOLATES if low > allowed else UNSURE
    return Point(tested, share.value, low, high, verdict, share.batches)


def _knee(tested: Sequence[Load], place: int) -> float:
    """Return the tested load with the most throughput for its latency, NaN at an end of the sweep."""
    power = [point.achieved / point.values_ns[place] if point.values_ns[place] else math.nan for point in tested]
    if not power or np.isnan(power).any():
        return math.nan
    best = int(np.argmax(power))
    return tested[best].load if 0 < best < len(power) - 1 else math.nan


def load_text(load: float) -> str:
    """Return a load for people: whole numbers as they are, others in four digits."""
    return f"{load:,.0f}" if load == round(load) or load >= 10_000 else figure(load, 4)  # five digits and more
