"""What runs measured in the order in which they began, where the level changed, and whether the newest is a regression."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

import numpy as np

from ingest.core.errors import UsageError, listed
from ingest.core.labels import FAILED, Group, RunLabels
from ingest.core.layout import Float
from ingest.core.quantiles import FAILED_NS, Percentile
from ingest.core.units import format_duration
from ingest.query.batch_means import sides_of, student, values_between
from ingest.query.change_points import LEAST_CHANGE, LEAST_RUNS, PHIS, change_points, tamed
from ingest.query.compare import kinds_of, measured_of, together
from ingest.query.means import check_bins
from ingest.query.percentiles import Wanted
from ingest.query.percentiles import percentiles as whole_runs
from ingest.query.question import Answer
from ingest.query.table import Table, groups_in, of_rows
from ingest.query.windows import regrouped
from ingest.read.placement import undated_part_of

# What runs measured, in the order in which they began: percentiles with their bounds, throughput, shares above a latency.
#
# Each of these is a measure, each measure of a group a series, and a series has levels: see change_points.py. Regressions of
# the newest run are judged in regressions.py.


COLUMNS = ("run", "start_ns", "percentile", "value", "lo", "hi", "count", "level", "change", "measure")
LATENCIES = ("value", "lo", "hi", "level")
THROUGHPUT = "throughput"
ABOVE = "above "


# Between which values in ns a percentile of each group of a run lies.
Bounds = Mapping[Percentile, Mapping[Group, tuple[float, float]]]


@dataclass(frozen=True, slots=True)
class Night:
    """The answer about one run over its whole range, when it began (epoch ns, 0 where it has no clock), and its `bounds`."""

    run: str
    start_ns: int
    answer: Answer
    bounds: Bounds = field(default_factory=dict)


# One measure of one run by group: value, lo, hi, count, whether the value is a lower bound, and the error of its bins.
Measured = Mapping[Group, tuple[float, float, float, int, bool, float]]


def lower_is_worse(measure: str) -> bool:
    """Return whether a fall of a measure is a regression."""
    return measure == THROUGHPUT


def in_order(answers: Sequence[Answer], bounds: Mapping[str, Bounds] | None = None) -> tuple[list[Night], tuple[str, ...]]:
    """Return the runs in the order in which they began, with their bounds by name, and notes on that order.

    A run without a clock stands where its name puts it (numbers in it by value), if names are in the order of the other runs;
    else it is left out. What is undated of a run that has dated logs is left out always.
    """
    nights = [
        Night(answer.runs[0], 0 if answer.relative else answer.start_of, answer, (bounds or {}).get(answer.runs[0], {}))
        for answer in answers
    ]
    dated = sorted((night for night in nights if night.start_ns), key=lambda night: (night.start_ns, _natural(night.run)))
    if len(dated) == len(nights):
        return dated, ()
    names = {night.run for night in dated}
    whole = [night for night in nights if not night.start_ns and undated_part_of(night.run) not in names]
    by_name = dated == sorted(dated, key=lambda night: _natural(night.run))
    taken = [*dated, *whole] if by_name else dated
    notes = [f"{whole[0].run} has no start time: the runs are in the order of their names"] if by_name and whole else []
    left = sorted((night.run for night in nights if night not in taken), key=_natural)
    notes += [f"left out, because they have no start time: {listed(left)}"] if left else []
    return sorted(taken, key=lambda night: _natural(night.run)) if by_name else taken, tuple(notes if len(nights) > 1 else ())


def by_archive(answers: Sequence[Answer], places: Mapping[str, tuple[str, str]]) -> list[Answer]:
    """Return one answer for each archive, under its name, of answers about a run each that a label keeps apart."""
    archives: dict[str, list[Answer]] = {}
    for answer in answers:
        archives.setdefault(places[answer.runs[0]][0], []).append(answer)
    joined = {name: together(mine) for name, mine in archives.items()}
    return [
        replace(answer, runs=(name,), run_start_ns={name: min(member.start_of for member in archives[name])})
        for name, answer in joined.items()
    ]


def alike(answers: Sequence[Answer]) -> Sequence[Answer]:
    """Return the answers; UsageError where runs hold unlike kinds that are not apart, InputError of means without a histogram."""
    for answer in answers:
        check_bins(answer, "trends of percentiles")
    kinds = [kinds_of(answer) for answer in answers]
    if "kind" not in answers[0].by and all(len(run_kinds) == 1 for run_kinds in kinds):
        different = {min(run_kinds): answer.runs[0] for run_kinds, answer in zip(kinds, answers, strict=True)}
        if len(different) > 1:
            listing = ", ".join(f"{run} {kind}" for kind, run in sorted(different.items()))
            raise UsageError(f"the runs hold unlike kinds of latency ({listing}): choose one with --where kind=KIND")
    return answers


def trend(
    nights: Sequence[Night],
    percentiles: Sequence[Percentile],
    least: float = LEAST_CHANGE,
    *,
    throughput: bool = False,
    above_ns: Sequence[int] = (),
) -> Table:
    """Return one row per group, measure and run in the given order: labels, then COLUMNS.

    Measures: percentiles in ns with their 95 % bounds `lo` and `hi` (those of `compare`, edges of bins); `throughput`,
    completions a second of the time in which the run has data; `above 5ms`, the share of samples above a latency; `failed`, that
    of operations that failed, where any did. The latter three have no bounds but what missing samples leave open, and no
    `percentile` (NaN). `count` exact; `level` the median of the runs since the last change, `change` the ratio of two levels at
    the first run of a new one (a change is more than `least`, up or down). NaN where samples cannot carry a number, and where
    there is no change. Error bound: each layout's.
    """
    by = nights[0].answer.by
    groups = sorted({key for night in nights for part in night.answer.parts for key in part.table})
    rows: list[tuple[object, ...]] = []
    for measure, percentile, measured in _measures(nights, percentiles, throughput=throughput, above_ns=above_ns):
        for group in groups:
            held = [(night, each[group]) for night, each in zip(nights, measured, strict=True) if group in each]
            values = np.array([value for _, (value, *_) in held])
            error = max((error for _, (*_, error) in held), default=0.0)
            scores = positive(measure, values, np.array([count for _, (_, _, _, count, *_) in held]))
            level, change = levels(values, max(least, 1 + 2 * error), scores)
            for place, (night, (value, low, high, count, opened, _)) in enumerate(held):
                known = not math.isnan(value)
                least_of_it = math.inf if low >= FAILED_NS else low
                bounds = least_of_it if known and low > 0 else math.nan, high if known and high < math.inf else math.nan
                measured_by = (percentile, value, *bounds, count, level[place], change[place], measure, opened)
                rows.append((*group, night.run, night.start_ns, *measured_by))
    kinds = {name: object if name in (*by, "run", "measure") else None for name in (*by, *COLUMNS, "value_censored")}
    return of_rows(sorted(rows, key=lambda row: tuple(map(str, row[: len(by)]))), kinds, (*by, "run"))


def positive(measure: str, values: Float, counts: Float) -> Float:
    """Return values of which ratios can be taken: latencies from 1 ns on, also of what failed, shares with half a sample more."""
    if is_share(measure):
        return (values * counts + 0.5) / (counts + 1)
    return np.clip(values, 1e-9 if measure == THROUGHPUT else 1.0, FAILED_NS)


def levels(values: Float, least: float = LEAST_CHANGE, scores: Float | None = None) -> tuple[Float, Float]:
    """Return the level of each run (the median since the last change), and the ratio of levels where a new one begins.

    `scores` are the values as ratios are taken of them, the values themselves if not given.
    """
    level, change = np.full(len(values), math.nan), np.full(len(values), math.nan)
    scores = np.maximum(values, 1.0) if scores is None else scores
    known = np.flatnonzero(~np.isnan(values))
    cuts = [0, *change_points(scores[known], least), len(known)]
    before = math.nan
    for first, last in pairwise(cuts):
        if last > first:
            now = median(scores[known[first:last]].tolist())
            level[known[first:last]] = median(values[known[first:last]].tolist())
            if first:
                change[known[first]] = now / before
            before = now
    return level, change


def series_of(table: Table) -> dict[tuple[object, ...], list[int]]:
    """Return the rows of each series (labels, measure) of the table of `trend`, in the order of the runs."""
    names = (*(name for name in table.labels if name != "run"), "measure")
    series: dict[tuple[object, ...], list[int]] = {}
    for row, key in enumerate(zip(*(table.columns[name] for name in names), strict=True)):
        series.setdefault(key, []).append(row)
    return series


def _measures(
    nights: Sequence[Night], percentiles: Sequence[Percentile], *, throughput: bool, above_ns: Sequence[int]
) -> Iterator[tuple[str, float, list[Measured]]]:
    """Yield each measure with its percentile (NaN: none), and what every run measured."""
    for percentile in sorted(percentiles, key=lambda wanted: float(wanted.text)):
        yield percentile.name, float(percentile.text), [percentile_of(night, percentile) for night in nights]
    failing = any(part.layout.timed is not part.layout for night in nights for part in night.answer.parts)
    if not throughput and not above_ns and not failing:
        return
    tables = [whole_runs(night.answer, Wanted((), above_ns, possible=True)) for night in nights]
    if throughput:
        yield THROUGHPUT, math.nan, [_column(table, table.columns["rate"]) for table in tables]
    for latency_ns in above_ns:
        name = format_duration(latency_ns)
        below = (f"below_{name}", f"below_{name}_hi", f"below_{name}_lo")
        measured = []
        for table in tables:  # where samples are missing, the bounds of a share are what they leave open
            shares, *bounds = (1 - table.columns[column] for column in below)
            measured.append(_column(table, shares, *(np.where(table.columns["complete"], math.nan, bound) for bound in bounds)))
        yield f"{ABOVE}{name}", math.nan, measured
    if failing:
        yield FAILED, math.nan, [_column(table, table.columns[FAILED] / table.columns["count"]) for table in tables]


def _column(table: Table, values: Float, low: Float | None = None, high: Float | None = None) -> Measured:
    """Return a column of a table of percentiles over whole runs, and its bounds where it has any."""
    none = np.full(len(table), math.nan)
    columns = (values, none if low is None else low, none if high is None else high, table.columns["count"])
    cells = zip(groups_in(table), *(column.tolist() for column in columns), strict=True)
    return {group: (value, bottom, top, int(count), False, 0.0) for group, value, bottom, top, count in cells}


def bounds_of(windows: Sequence[Answer], by: Sequence[str], percentiles: Sequence[Percentile]) -> Bounds:
    """Return the bounds of a run by its labels, from the answers to the same question in windows, of an archive one a run.

    Windows are looked at one group after another; of many runs and hosts they are more than all else, so none are kept.
    """
    bounds: dict[Percentile, dict[Group, tuple[float, float]]] = {percentile: {} for percentile in percentiles}
    for group, own in sides_of([regrouped(answer, by) for answer in windows]):
        for percentile in percentiles:
            bounds[percentile][group] = values_between(own, percentile)
    return bounds


def percentile_of(night: Night, percentile: Percentile) -> Measured:
    """Return a percentile of each group of a run with its bounds."""
    rows, bounds = {}, night.bounds.get(percentile, {})
    for part in night.answer.parts:
        measured = measured_of(part, percentile, night.answer)
        columns = (measured.value, measured.least, measured.most, measured.count, measured.open, measured.error)
        for code, cells in zip(part.series.tolist(), zip(*(column.tolist() for column in columns), strict=True), strict=True):
            key, (value, least, most, *rest) = part.table[code], cells
            low, high = bounds.get(key, (math.nan, math.nan))
            # What is missing may lie anywhere in its range.
            rows[key] = (value, float(np.minimum(low, least)), float(np.maximum(high, most)), *rest)
    return rows


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(word), "") if word.isdigit() else (-1, word) for word in re.split(r"(\d+)", name) if word]


# Whether the newest run of a series is a regression: held against the best level before it, which is not forgotten.
#
# The levels are those of the table of `trend`. The reference is the best of them (the lowest; of throughput the highest) since
# the last run that was accepted as normal; of levels that differ by less than the least change it is the latest. So a
# regression stays one until it is accepted, however many runs repeat it. Two things can be certain, with 99.5 % confidence:
#
# The newest run alone, by a prediction interval: its distance from the median of the reference, against the spread of runs
# around their levels (Student's t; the variance of a median is pi / 2 times that of a mean). Its own lower bound, if there is
# one, must leave as much. The two runs before it are not in that spread, where there are enough others: they may be of a new
# level that is too short to be seen. The level since a change: the distance of both medians, with the variances of both,
# widened by what the deviations of neighbouring runs have in common. It counts while the newest run is nearer to that level
# than to the reference.


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
    place = accepted_place(reference)
    since_then = set(reference.order[place:]) if place >= 0 else set()
    accepted = next((row for row, run in enumerate(runs) if run in since_then), None)  # itself, or the first one after it
    begin = 0 if accepted is None else _first_alike(logs, edges, accepted)
    edges = sorted({*edges, begin})
    settled = len(runs) - 1 - min(LEAST_RUNS - 1, max(len(runs) - 1 - LEAST_SETTLED, 0))
    spread, phi, freedom = _spread(logs[:settled], [*(edge for edge in edges if edge < settled), settled])
    levels = [(first, last, float(np.median(logs[first:last]))) for first, last in pairwise(edges) if first >= begin]
    earlier = [level for first, last, level in ((a, min(b, len(runs) - 1), c) for a, b, c in levels) if last > first]
    name = "" if accepted is None else reference.order[place]
    if not earlier:
        return Judgement(labels, measure, runs[-1], math.nan, math.nan, 0, accepted=name)
    best = min(earlier)
    at = max(number for number, level in enumerate(earlier) if level <= best + math.log(reference.least_change))
    first, last, _ = levels[at]
    last = min(last, len(runs) - 1)
    usual, count = float(np.median(logs[first:last])), last - first
    certain = student(freedom, TAIL) * spread if freedom else math.nan
    distance = float(logs[-1]) - usual
    least = math.exp(distance - certain * math.sqrt(1 + OF_A_MEDIAN / count))
    own_least = float(table.columns["lo"][-1])
    ratio = math.exp(distance) if table.columns["value"][-1] < math.inf else math.inf
    if _latency(measure) and not math.isnan(own_least):
        least = float(np.minimum(least if ratio < math.inf else math.inf, own_least / math.exp(usual)))
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
    return Judgement(labels, measure, runs[-1], ratio, least, count, since, name)


def changed_labels(labels: RunLabels, before: str, since: str) -> tuple[tuple[str, str, str], ...]:
    """Return the labels whose values differ between two runs: name, value before, value since; a few, by name."""
    values: tuple[Mapping[str, str], Mapping[str, str]] = labels.get(before, {}), labels.get(since, {})
    names = [name for name in values[1] if name in values[0] and values[0][name] != values[1][name]]
    return tuple((name, values[0][name], values[1][name]) for name in sorted(names)[:MOST_LABELS])


def accepted_place(reference: Reference) -> int:
    """Return the place in the order of the runs of the last one that was accepted, -1 without one."""
    return max((place for place, run in enumerate(reference.order) if run in reference.accepted), default=-1)


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


def is_share(measure: str) -> bool:
    """Return whether a measure is a share of the samples: above a latency, or of operations that failed."""
    return measure == FAILED or measure.startswith(ABOVE)


def _latency(measure: str) -> bool:
    return measure.startswith("p")
