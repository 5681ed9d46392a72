"""Whether the newest run of a series is a regression: held against the best level before it, which is not forgotten.

The levels are those of the table of `trend`. The reference is the best of them (the lowest; of throughput the highest) since the
last run that was accepted as normal; of levels that differ by less than the least change it is the latest. So a regression stays
one until it is accepted, however many runs repeat it. Two things can be certain, with 99.5 % confidence:

The newest run alone, by a prediction interval: its distance from the median of the reference, against the spread of runs around
their levels (Student's t; the variance of a median is pi / 2 times that of a mean). Its own lower bound, if there is one, must
leave as much. The two runs before it are not in that spread, where there are enough others: they may be of a new level that is
too short to be seen.
The level since a change: the distance of both medians, with the variances of both, widened by what the deviations of
neighbouring runs have in common. It counts while the newest run is nearer to that level than to the reference.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from ingest.core.dataclass import dataclass
from ingest.core.series import Group, RunLabels
from ingest.query.change_points import LEAST_CHANGE, LEAST_RUNS, PHIS, tamed
from ingest.query.dependent import student
from ingest.query.table import Table
from ingest.query.trend import lower_is_worse, positive, series_of

Float = NDArray[np.float64]

TAIL = 0.005
OF_A_MEDIAN = math.pi / 2
MOST_LABELS = 3
LEAST_SETTLED = 5


@dataclass(frozen=True, slots=True)
class Since:
    """A level that is worse than the reference: its first run, ratio, the least of it that is certain, and what changed there.

    `labels` are those whose values differ between the run before and the first run: name, value before, value since.
    """

    run: str
    ratio: float
    least: float
    labels: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The newest run of a series against the runs before it; ratios say how many times worse, 1 is the same.

    `ratio` of the newest run, and the `least` of it that is certain (NaN: not known); `earlier` runs make the reference. `since`
    is the level that the newest run belongs to, where that is worse than the reference. `accepted` is the run that was accepted
    last, "" without one. `last` says that the reference is the median of the last runs, as asked for.
    """

    labels: Group
    measure: str
    run: str
    ratio: float
    least: float
    earlier: int
    since: Since | None = None
    accepted: str = ""
    last: bool = False

    def certain(self) -> float:
        """Return how many times worse it is for certain, NaN where that is not known."""
        known = [least for least in (self.least, self.since.least if self.since else math.nan) if not math.isnan(least)]
        return max(known, default=math.nan)


@dataclass(frozen=True, slots=True)
class Reference:
    """What the newest run is held against: `order` of all runs, those `accepted`, and the labels of runs.

    `last` is the number of runs whose median is taken, None for levels; `least_change` the ratio of levels that differ.
    """

    order: Sequence[str]
    accepted: Collection[str] = ()
    labels: RunLabels | None = None
    last: int | None = None
    least_change: float = LEAST_CHANGE


def judged(table: Table, reference: Reference) -> list[Judgement]:
    """Return the newest run of the table of `trend` against those before it, series by series.

    Series without the newest run or without a value before it are left out.
    """
    judgements = []
    for key, rows in series_of(table).items():
        known = [row for row in rows if not math.isnan(table.columns["value"][row])]
        newest = rows[-1]
        if table.columns["run"][newest] != reference.order[-1] or not [row for row in known if row != newest]:
            continue
        labels, measure = tuple(str(label) for label in key[:-1]), str(key[-1])
        if newest not in known:
            judgements.append(Judgement(labels, measure, reference.order[-1], math.nan, math.nan, len(known)))
            continue
        make = _of_last if reference.last else _of_levels
        judgements.append(make(labels, measure, table.take(known), reference))
    return judgements


def _of_last(labels: Group, measure: str, table: Table, reference: Reference) -> Judgement:
    """Return the newest run against the median of the last runs before it."""
    values = table.columns["value"]
    earlier = values[:-1][-(reference.last or 1) :].tolist()
    usual, newest = median(earlier), float(values[-1])
    low, high = float(table.columns["lo"][-1]), float(table.columns["hi"][-1])
    if not _latency(measure):
        low = high = newest
    parts = (usual, newest), (usual, high)
    if not lower_is_worse(measure):
        parts = (newest, usual), (low, usual)
    ratio, least = (worse / better if better else math.nan for worse, better in parts)
    return Judgement(labels, measure, reference.order[-1], ratio, least, len(earlier), last=True)


def _of_levels(labels: Group, measure: str, table: Table, reference: Reference) -> Judgement:
    """Return the newest run, and the level it belongs to, against the best level since the last accepted run."""
    runs = [str(run) for run in table.columns["run"]]
    sign = -1.0 if lower_is_worse(measure) else 1.0
    logs = sign * np.log(positive(measure, table.columns["value"], table.columns["count"]))
    edges = [0, *(row for row in range(1, len(runs)) if not math.isnan(table.columns["change"][row])), len(runs)]
    accepted = _accepted(runs, reference)
    begin = 0 if accepted is None else _first_alike(logs, edges, accepted)
    edges = sorted({*edges, begin})
    settled = len(runs) - 1 - min(LEAST_RUNS - 1, max(len(runs) - 1 - LEAST_SETTLED, 0))
    spread, phi, freedom = _spread(logs[:settled], [*(edge for edge in edges if edge < settled), settled])
    levels = [(first, last, float(np.median(logs[first:last]))) for first, last in pairwise(edges) if first >= begin]
    earlier = [level for first, last, level in ((a, min(b, len(runs) - 1), c) for a, b, c in levels) if last > first]
    name = "" if accepted is None else reference.order[accepted_place(reference)]
    if not earlier:
        return Judgement(labels, measure, runs[-1], math.nan, math.nan, 0, accepted=name)
    best = min(earlier)
    at = max(place for place, level in enumerate(earlier) if level <= best + math.log(reference.least_change))
    first, last, _ = levels[at]
    last = min(last, len(runs) - 1)
    usual, count = float(np.median(logs[first:last])), last - first
    certain = student(freedom, TAIL) * spread if freedom else math.nan
    distance = float(logs[-1]) - usual
    least = math.exp(distance - certain * math.sqrt(1 + OF_A_MEDIAN / count))
    own_least = float(table.columns["lo"][-1])
    if _latency(measure) and not math.isnan(own_least):
        least = float(np.minimum(least, own_least / math.exp(usual)))
    since = None
    if at < len(levels) - 1 and levels[-1][2] > usual + math.log(reference.least_change):
        own = len(levels) - 1
        middle = (usual + levels[own][2]) / 2
        while own - 1 > at and levels[own - 1][2] > middle:
            own -= 1
        begun, now = levels[own][0], float(np.median(logs[levels[own][0] :]))
        variance = OF_A_MEDIAN * (1 / count + 1 / (len(runs) - begun)) * (1 + phi) / (1 - phi)
        if logs[-1] >= (usual + now) / 2:
            since = Since(
                runs[begun],
                math.exp(now - usual),
                math.exp(now - usual - certain * math.sqrt(variance)),
                changed_labels(reference.labels or {}, runs[begun - 1], runs[begun]),
            )
    return Judgement(labels, measure, runs[-1], math.exp(distance), least, count, since, name)


def changed_labels(labels: RunLabels, before: str, since: str) -> tuple[tuple[str, str, str], ...]:
    """Return the labels whose values differ between two runs: name, value before, value since; a few, by name."""
    values: tuple[Mapping[str, str], Mapping[str, str]] = labels.get(before, {}), labels.get(since, {})
    names = [name for name in values[1] if name in values[0] and values[0][name] != values[1][name]]
    return tuple((name, values[0][name], values[1][name]) for name in sorted(names)[:MOST_LABELS])


def accepted_place(reference: Reference) -> int:
    """Return the place in the order of the runs of the last one that was accepted, -1 without one."""
    return max((place for place, run in enumerate(reference.order) if run in reference.accepted), default=-1)


def _accepted(runs: Sequence[str], reference: Reference) -> int | None:
    """Return the row of the accepted run in a series, or of the first one after it; None without one."""
    place = accepted_place(reference)
    since = set(reference.order[place:]) if place >= 0 else set()
    return next((row for row, run in enumerate(runs) if run in since), None)


def _first_alike(logs: Float, edges: Sequence[int], accepted: int) -> int:
    """Return the first run of the level that an accepted run belongs to: itself, where it is not like the runs before it."""
    first = max(edge for edge in edges if edge <= accepted)
    before = logs[first:accepted]
    if len(before) < 2:
        return first if not len(before) or first else accepted
    spread, _, freedom = _spread(before, [0, len(before)])
    reach = student(freedom, TAIL) * spread * math.sqrt(1 + OF_A_MEDIAN / len(before))
    return first if abs(float(logs[accepted]) - float(np.median(before))) <= reach else accepted


def _spread(logs: Float, edges: Sequence[int]) -> tuple[float, float, int]:
    """Return the deviation of runs from their levels, what neighbouring deviations have in common, and degrees of freedom.

    Wild runs are drawn in, so that one of them hides no other.
    """
    near = tamed(logs)
    parts = [near[first:last] - near[first:last].mean() for first, last in pairwise(edges)]
    squares = sum(float(part @ part) for part in parts)
    freedom = len(logs) - len(parts)
    if freedom < 1 or not squares:
        return 0.0, 0.0, max(freedom, 0)
    phi = sum(float(part[1:] @ part[:-1]) for part in parts) / squares
    return math.sqrt(squares / freedom), min(max(phi, 0.0), float(PHIS[-1])), freedom


def _latency(measure: str) -> bool:
    return measure.startswith("p")
