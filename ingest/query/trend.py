"""What runs measured, in the order in which they began: percentiles with their bounds, throughput, shares above a latency.

Each of these is a measure, each measure of a group a series, and a series has levels: see change_points.py. Regressions of the
newest run are judged in regressions.py.
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
from ingest.core.timing import format_duration
from ingest.query.change_points import LEAST_CHANGE, change_points
from ingest.query.compare import kinds_of, like, measured_of, together
from ingest.query.dependent import values_between
from ingest.query.means import check_bins
from ingest.query.percentiles import Wanted
from ingest.query.percentiles import percentiles as whole_runs
from ingest.query.question import Answer
from ingest.query.ratios import sides_of
from ingest.query.regrouped import regrouped
from ingest.query.table import Table
from ingest.read.undated import undated_part_of

Float = NDArray[np.float64]

COLUMNS = ("run", "start_ns", "percentile", "value", "lo", "hi", "count", "level", "change", "measure")
LATENCIES = ("value", "lo", "hi", "level")
THROUGHPUT = "throughput"
ABOVE = "above "


@dataclass(frozen=True, slots=True)
class Night:
    """The answer about one run over its whole range, and when it began (epoch ns, 0 where it has no clock).

    `windows` are the answers to the same question in windows, of an archive one a run: what bounds are estimated from.
    """

    run: str
    start_ns: int
    answer: Answer
    windows: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """One measure of one run by group: value, lo, hi, count, whether the value is a lower bound, and the error of its bins."""

    rows: Mapping[Group, tuple[float, float, float, int, bool, float]]


def lower_is_worse(measure: str) -> bool:
    """Return whether a fall of a measure is a regression."""
    return measure == THROUGHPUT


def in_order(
    answers: Sequence[Answer], windows: Mapping[str, Sequence[Answer]] | None = None
) -> tuple[list[Night], tuple[str, ...]]:
    """Return the runs in the order in which they began, with their windows by name, and notes on that order.

    A run without a clock stands where its name puts it (numbers in it by value), if names are in the order of the other runs;
    else it is left out. What is undated of a run that has dated logs is left out always.
    """
    nights = [
        Night(answer.runs[0], 0 if answer.relative else answer.start_of, answer, tuple((windows or {}).get(answer.runs[0], ())))
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
    completions a second of the time in which the run has data; `above 5ms`, the share of samples above a latency. The latter two
    have no bounds but what missing samples leave open, and no `percentile` (NaN). `count` exact; `level` the median of the runs
    since the last change, `change` the ratio of two levels at the first run of a new one (a change is more than `least`, up or
    down). NaN where samples cannot carry a number, and where there is no change. Error bound: each layout's.
    """
    by = nights[0].answer.by
    groups = sorted({key for night in nights for part in night.answer.parts for key in part.table})
    columns: dict[str, list[object]] = {name: [] for name in (*by, *COLUMNS, "value_censored")}
    for measure, percentile, measured in _measures(nights, percentiles, throughput=throughput, above_ns=above_ns):
        for group in groups:
            held = [(night, each.rows[group]) for night, each in zip(nights, measured, strict=True) if group in each.rows]
            values = np.array([value for _, (value, *_) in held])
            error = max((error for _, (*_, error) in held), default=0.0)
            scores = positive(measure, values, np.array([count for _, (_, _, _, count, *_) in held]))
            level, change = levels(values, max(least, 1 + 2 * error), scores)
            for place, (night, (value, low, high, count, opened, _)) in enumerate(held):
                known = not math.isnan(value)
                cells = (
                    *group,
                    night.run,
                    night.start_ns,
                    percentile,
                    value,
                    low if known and low > 0 else math.nan,
                    high if known and high < math.inf else math.nan,
                    count,
                    level[place],
                    change[place],
                    measure,
                    opened,
                )
                for name, cell in zip(columns, cells, strict=True):
                    columns[name].append(cell)
    texts = (*by, "run", "measure")
    table = Table({name: np.array(cells, object if name in texts else None) for name, cells in columns.items()}, (*by, "run"))
    return table.take(sorted(range(len(table)), key=lambda row: tuple(str(columns[name][row]) for name in by)))


def positive(measure: str, values: Float, counts: Float) -> Float:
    """Return values of which ratios can be taken, none of them 0: latencies from 1 ns on, shares with half a sample more."""
    if measure.startswith(ABOVE):
        return (values * counts + 0.5) / (counts + 1)
    return np.maximum(values, 1e-9 if measure == THROUGHPUT else 1.0)


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
    names = [name for name in table.labels if name != "run"]
    series: dict[tuple[object, ...], list[int]] = {}
    for row in range(len(table)):
        key = (*(table.columns[name][row] for name in names), table.columns["measure"][row])
        series.setdefault(key, []).append(row)
    return series


def _measures(
    nights: Sequence[Night], percentiles: Sequence[Percentile], *, throughput: bool, above_ns: Sequence[int]
) -> Iterator[tuple[str, float, list[Measured]]]:
    """Yield each measure with its percentile (NaN: none), and what every run measured."""
    for percentile in sorted(percentiles, key=lambda wanted: float(wanted.text)):
        yield percentile.name, float(percentile.text), [_bounds(night, percentile) for night in nights]
    if not throughput and not above_ns:
        return
    tables = [whole_runs(night.answer, Wanted((), above_ns, possible=True)) for night in nights]
    if throughput:
        yield THROUGHPUT, math.nan, [_column(table, table.columns["rate"]) for table in tables]
    for latency_ns in above_ns:
        name = format_duration(latency_ns)
        yield f"{ABOVE}{name}", math.nan, [_share_above(table, f"below_{name}") for table in tables]


def _share_above(table: Table, below: str) -> Measured:
    """Return the share above a latency of each group; where samples are missing, its bounds are what they leave open."""
    shares, most, least = (1 - table.columns[name] for name in (below, f"{below}_lo", f"{below}_hi"))
    complete = table.columns["complete"]
    return _column(table, shares, np.where(complete, math.nan, least), np.where(complete, math.nan, most))


def _column(table: Table, values: Float, low: Float | None = None, high: Float | None = None) -> Measured:
    """Return a column of a table of percentiles over whole runs, and its bounds where it has any."""
    none = np.full(len(table), math.nan)
    groups = [tuple(str(table.columns[name][row]) for name in table.labels) for row in range(len(table))]
    columns = (values, none if low is None else low, none if high is None else high, table.columns["count"])
    cells = zip(groups, *(column.tolist() for column in columns), strict=True)
    return Measured({group: (value, bottom, top, int(count), False, 0.0) for group, value, bottom, top, count in cells})


def _bounds(night: Night, percentile: Percentile) -> Measured:
    """Return a percentile of each group of a run with its bounds."""
    rows: dict[Group, tuple[float, float, float, int, bool, float]] = {}
    sides = sides_of([like(windows, night.answer.by) for windows in night.windows])
    for part in night.answer.parts:
        measured = measured_of(part, percentile, night.answer)
        columns = (measured.value, measured.least, measured.most, measured.count, measured.open, measured.error)
        for code, cells in zip(part.series.tolist(), zip(*(column.tolist() for column in columns), strict=True), strict=True):
            key, (value, least, most, *rest) = part.table[code], cells
            low, high = values_between(sides[key], percentile) if key in sides else (math.nan, math.nan)
            # What is missing may lie anywhere in its range.
            rows[key] = (value, float(np.minimum(low, least)), float(np.maximum(high, most)), *rest)
    return Measured(rows)


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(word), "") if word.isdigit() else (-1, word) for word in re.split(r"(\d+)", name) if word]
