"""A percentile by run, in the order in which the runs began: its bounds, and where its level changed.

Change points: binary segmentation of the log values. Of all cuts the one with the largest standardised CUSUM (difference of the
means before and after, in standard errors, at least three runs on either side) is held against random orders of the same
values (1,999, seeded, so that an answer never changes); where 1 % of them or fewer hold as large a one, it is a change. Where
there is none, stretches inside are tried alike (a week that was slow until it was mended). Then the pieces are looked at
again. So 2 to 3 in 100 series without a change are taken for one where the least change is small against their noise.
Log values are clipped at three deviations (of the median of absolute deviations): a single wild night decides nothing. A change
counts if the medians differ by more than the least change that is asked for, and by more than the bins do. With fewer than 10
runs no order is rare enough to be a change.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import UsageError, listed
from ingest.core.ranks import Percentile
from ingest.core.series import Group
from ingest.query.compare import Bounded, bounded, kinds_of, together
from ingest.query.means import check_bins
from ingest.query.question import Answer, regrouped
from ingest.query.table import Table
from ingest.read.undated import undated_part_of

Float = NDArray[np.float64]

COLUMNS = ("run", "start_ns", "percentile", "value", "lo", "hi", "count", "level", "change")
LEAST_CHANGE = 1.1
LEAST_RUNS = 3
FEW_RUNS = 10
ORDERS = 1999
FEWER_ORDERS = 499
MANY_RUNS = 200
ALIKE = 1e-9
SIGNIFICANCE = 0.01
CLIP = 3 * 1.4826
SEED = 20_260_101
METHOD = "CUSUM of log values against random orders"


@dataclass(frozen=True, slots=True)
class Night:
    """The answer about one run over its whole range, and when it began (epoch ns, 0 where it has no clock)."""

    run: str
    start_ns: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Judgement:
    """The newest run of a series against the median of those before it: its ratio, and the least that its lower bound leaves."""

    labels: Group
    percentile: float
    run: str
    ratio: float
    least: float
    earlier: int


def in_order(answers: Sequence[Answer]) -> tuple[list[Night], tuple[str, ...]]:
    """Return the runs in the order in which they began, and notes on that order.

    A run without a clock stands where its name puts it (numbers in it by value), if names are in the order of the other runs;
    else it is left out. What is undated of a run that has dated logs is left out always.
    """
    nights = [Night(answer.runs[0], 0 if answer.relative else answer.start_of, answer) for answer in answers]
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


def alike(answers: Sequence[Answer], by: Sequence[str]) -> list[Answer]:
    """Return the answers grouped by `by`, and by kind where they hold several; UsageError where runs hold unlike kinds.

    InputError of means without a histogram.
    """
    for answer in answers:
        check_bins(answer, "trends of percentiles")
    kinds = [kinds_of(answer) for answer in answers]
    if "kind" not in by and all(len(run_kinds) == 1 for run_kinds in kinds):
        different = {min(run_kinds): answer.runs[0] for run_kinds, answer in zip(kinds, answers, strict=True)}
        if len(different) > 1:
            listing = ", ".join(f"{run} {kind}" for kind, run in sorted(different.items()))
            raise UsageError(f"the runs hold unlike kinds of latency ({listing}): choose one with --where kind=KIND")
        return [regrouped(answer, by) for answer in answers]
    if len({answer.by for answer in answers}) > 1:
        listing = ", ".join(sorted({kind for run_kinds in kinds for kind in run_kinds}))
        raise UsageError(f"several kinds here ({listing}): choose one with --where kind=KIND, or add --by kind")
    return list(answers)


def trend(nights: Sequence[Night], percentiles: Sequence[Percentile], least: float = LEAST_CHANGE) -> Table:
    """Return one row per group, percentile and run in the given order: labels, then COLUMNS.

    `value` in ns with its 95 % bounds `lo` and `hi` by order statistics, edges of bins; `count` exact; `level` the median of
    the runs since the last change, `change` the ratio of two levels at the first run of a new one (a change is more than
    `least`, up or down). NaN where samples cannot carry a number, and where there is no change. Error bound: each layout's.
    """
    by = nights[0].answer.by
    groups = sorted({key for night in nights for part in night.answer.parts for key in part.groups})
    columns: dict[str, list[object]] = {name: [] for name in (*by, *COLUMNS, "value_censored")}
    for percentile in sorted(percentiles, key=lambda wanted: float(wanted.text)):
        bounds = [_bounds(night.answer, percentile) for night in nights]
        for group in groups:
            held = [(night, *by_group[group]) for night, by_group in zip(nights, bounds, strict=True) if group in by_group]
            values = np.array([limits.value[row] for _, limits, row, _ in held])
            error = max((error for *_, error in held), default=0.0)
            level, change = levels(values, max(least, 1 + 2 * error))
            for place, (night, bound, row, _) in enumerate(held):
                low, high = float(bound.low_edge[row]), float(bound.high_edge[row])
                known = not math.isnan(values[place])
                cells = (
                    *group,
                    night.run,
                    night.start_ns,
                    float(percentile.text),
                    values[place],
                    low if known and low > 0 else math.nan,
                    high if known and high < math.inf else math.nan,
                    int(bound.count[row]),
                    level[place],
                    change[place],
                    bool(bound.open[row]),
                )
                for name, cell in zip(columns, cells, strict=True):
                    columns[name].append(cell)
    table = Table({name: np.array(cells, object if name in by else None) for name, cells in columns.items()}, (*by, "run"))
    return table.take(sorted(range(len(table)), key=lambda row: tuple(str(columns[name][row]) for name in by)))


def levels(values: Float, least: float = LEAST_CHANGE) -> tuple[Float, Float]:
    """Return the level of each run (the median since the last change), and the ratio of levels where a new one begins."""
    level, change = np.full(len(values), math.nan), np.full(len(values), math.nan)
    known = np.flatnonzero(~np.isnan(values))
    cuts = [0, *change_points(values[known], least), len(known)]
    before = math.nan
    for first, last in pairwise(cuts):
        if last > first:
            now = median(values[known[first:last]].tolist())
            level[known[first:last]] = now
            if first:
                change[known[first]] = now / before if before else math.inf
            before = now
    return level, change


def change_points(values: Float, least: float = LEAST_CHANGE) -> list[int]:
    """Return the places at which a new level begins; see the top of this file. Values are positive and in order of time."""
    logs = np.log(np.maximum(values, 1.0))
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
        middle = [float(np.median(logs[a:b])) for a, b in pairwise(cuts)]
        sizes = [abs(b - a) for a, b in pairwise(middle)]
        smallest = min(range(len(sizes)), key=sizes.__getitem__)
        if sizes[smallest] > math.log(least) + ALIKE:
            break
        del places[smallest]
    return places


def judged(table: Table, run: str, last: int) -> list[Judgement]:
    """Return the run, the newest of the table of `trend`, against the median of up to `last` runs before it, series by series.

    Series without the run or without a value before it are left out; NaN where its samples carry no value or no lower bound.
    """
    judgements = []
    for key, rows in series_of(table).items():
        earlier = [float(value) for value in table.columns["value"][rows[:-1]] if not math.isnan(value)][-last:]
        if earlier and table.columns["run"][rows[-1]] == run:
            usual, newest = median(earlier), rows[-1]
            ratio, least = (float(table.columns[name][newest]) / usual if usual else math.nan for name in ("value", "lo"))
            labels = tuple(str(label) for label in key[:-1])
            judgements.append(Judgement(labels, float(table.columns["percentile"][newest]), run, ratio, least, len(earlier)))
    return judgements


def series_of(table: Table) -> dict[tuple[object, ...], list[int]]:
    """Return the rows of each series (labels, percentile) of the table of `trend`, in the order of the runs."""
    names = [name for name in table.labels if name != "run"]
    series: dict[tuple[object, ...], list[int]] = {}
    for row in range(len(table)):
        key = (*(table.columns[name][row] for name in names), table.columns["percentile"][row])
        series.setdefault(key, []).append(row)
    return series


def _split(logs: Float) -> list[int]:
    """Return where the log values change: one cut, else the two around a stretch; none where random orders do as much."""
    count = len(logs)
    if count < 2 * LEAST_RUNS:
        return []
    middle = float(np.median(logs))
    spread = CLIP * float(np.median(np.abs(logs - middle)))
    clipped = np.clip(logs, middle - spread, middle + spread) if spread else logs
    orders = np.tile(clipped - clipped.mean(), (1 + (ORDERS if count <= MANY_RUNS else FEWER_ORDERS), 1))
    orders[1:] = np.random.default_rng(SEED).permuted(orders[1:], axis=1)
    sums = np.concatenate([np.zeros((len(orders), 1)), np.cumsum(orders, axis=1)], axis=1)
    return _outstanding(_steps(sums)) or _outstanding(_stretches(sums))


def _outstanding(candidates: Iterator[tuple[list[tuple[int, ...]], Float]]) -> list[int]:
    """Return the cuts of the largest difference of the first order, none where the others hold one as large too often."""
    best: tuple[int, ...] = ()
    largest: Float | None = None
    for places, sizes in candidates:
        if largest is None or sizes[0].max() > largest[0]:
            best = places[int(sizes[0].argmax())]
        largest = sizes.max(axis=1) if largest is None else np.maximum(largest, sizes.max(axis=1))
    if largest is None:
        return []
    as_large = int(np.count_nonzero(largest >= largest[0] - ALIKE))
    return list(best) if as_large <= SIGNIFICANCE * len(largest) else []


def _steps(sums: Float) -> Iterator[tuple[list[tuple[int, ...]], Float]]:
    """Yield all cuts in two of at least LEAST_RUNS runs each, and how far the means of both differ, in every order."""
    count = sums.shape[1] - 1
    places = np.arange(LEAST_RUNS, count - LEAST_RUNS + 1)
    yield [(place,) for place in places.tolist()], np.abs(sums[:, places]) * np.sqrt(count / (places * (count - places)))


def _stretches(sums: Float) -> Iterator[tuple[list[tuple[int, ...]], Float]]:
    """Yield, for each length, the stretches with at least LEAST_RUNS runs on either side, and how far each differs from these."""
    count, least = sums.shape[1] - 1, LEAST_RUNS
    for length in range(least, count - 2 * least + 1):
        weight = math.sqrt(count / (length * (count - length)))
        inner = sums[:, least + length : count - least + 1] - sums[:, least : count - least - length + 1]
        yield [(first, first + length) for first in range(least, count - least - length + 1)], np.abs(inner) * weight


def _bounds(answer: Answer, percentile: Percentile) -> dict[Group, tuple[Bounded, int, float]]:
    """Return where each group of an answer stands in the bounds of its part, and the error of the bin that carries it."""
    places: dict[Group, tuple[Bounded, int, float]] = {}
    for part in answer.parts:
        part_bounds = bounded(part, percentile, answer)
        for row, code in enumerate(part.series.tolist()):
            key = part.table[code]
            if isinstance(key, tuple):
                places[key] = part_bounds, row, float(part_bounds.error[row])
    return places


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(word), "") if word.isdigit() else (-1, word) for word in re.split(r"(\d+)", name) if word]
