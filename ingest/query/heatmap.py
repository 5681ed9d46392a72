"""Where did the samples lie, over time and latency, and how are they distributed in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Int, Intervals, in_time_order
from ingest.core.series import Group
from ingest.query.lags import whole_counts
from ingest.query.means import check_bins
from ingest.query.question import Answer
from ingest.query.table import Table, concatenated

LADDERS: tuple[tuple[float, ...], ...] = (
    tuple(10 ** (step / 40) for step in range(40)),
    (1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3.15, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9),
    (1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8),
    (1, 1.5, 2, 3, 5, 7),
    (1, 2, 5),
    (1, 3),
    (1,),
)  # finest first; of ISO 3 where they have ten steps and more
HIGHEST_POWER = 18


def _labels(part: Intervals[Group], answer: Answer, series: Int) -> dict[str, NDArray[Any]]:
    """Return the label columns of rows with these series codes."""
    columns = {}
    for place, name in enumerate(answer.by):
        values = np.array([key[place] for key in part.table], object)
        columns[name] = values[series] if len(values) else values
    return columns


def heatmap(answer: Answer) -> Table:
    """Return one row per window, group and occupied bin: start_ns, end_ns, labels, lower, upper (ns), count.

    Exact bins: a row's count samples lie in [lower, upper), in the last bin of an open layout at or above lower.
    """
    check_bins(answer, "heat maps")
    tables = []
    for part in map(in_time_order, whole_counts(answer)):
        row = part.row
        columns = {"start_ns": part.start_ns[row], "end_ns": part.end_ns[row], **_labels(part, answer, part.series[row])}
        edges = part.layout.edges
        columns |= {"lower": edges[part.bins], "upper": edges[part.bins + 1], "count": part.counts}
        tables.append(Table(columns, answer.by))
    return concatenated(tables) if len(tables) > 1 else tables[0]


def distribution(answer: Answer) -> Table:
    """Return one row per group and occupied bin over all windows: labels, lower, upper (ns), count, cumulative.

    `cumulative` counts the samples of the group up to and with the bin. Windows must span the whole range (step all).
    """
    check_bins(answer, "distributions")
    tables = []
    for part in whole_counts(answer):
        row = part.row
        edges = part.layout.edges
        tables.append(_distributed(part, answer, row, edges[part.bins], edges[part.bins + 1], part.counts))
    return concatenated(tables, order=()) if len(tables) > 1 else tables[0]


def _distributed(part: Intervals[Group], answer: Answer, row: Int, lower: Int, upper: Int, count: Int) -> Table:
    """Return the table of a distribution from its rows, those of a group one after another."""
    first = np.flatnonzero(np.append(True, np.diff(row) != 0))
    before = (np.cumsum(count) - count)[first]
    cumulative = np.cumsum(count) - np.repeat(before, np.diff(np.append(first, len(row))))
    columns = {**_labels(part, answer, part.series[row]), "lower": lower, "upper": upper}
    return Table({**columns, "count": count, "cumulative": cumulative}, answer.by)


def ranges(answer: Answer, most: int) -> Table:
    """Return `distribution` for a reader: bins added up to ranges that begin near 1, 2, 5, 10, ...; counts stay exact.

    `share` is the part of the group's samples up to and with the range.

    LADDERS says where ranges may begin. The finest of them is taken that gives no group more than `most` ranges, and all groups
    no more than twice as many; the coarsest where none does. A range begins where a bin begins, next to the number of the ladder.
    Ranges without samples are left out. Windows must span the whole range (step all).
    """
    check_bins(answer, "distributions")
    parts = whole_counts(answer)
    for ladder in LADDERS:
        tables, longest = zip(*(_in_ranges(part, answer, ladder) for part in parts), strict=True)
        if max(longest) <= most and sum(map(len, tables)) <= 2 * most:
            break
    return concatenated(tables, order=()) if len(tables) > 1 else tables[0]


def _in_ranges(part: Intervals[Group], answer: Answer, ladder: Sequence[float]) -> tuple[Table, int]:
    """Return a part in ranges that begin next to the numbers of a ladder, times powers of ten, and the most ranges of a group."""
    edges = part.layout.edges
    steps = np.outer(10.0 ** np.arange(HIGHEST_POWER + 1), ladder).ravel()
    after = np.clip(np.searchsorted(edges, steps), 1, len(edges) - 1)
    nearest = np.where(steps - edges[after - 1] <= edges[after] - steps, after - 1, after)
    starts = np.unique(np.concatenate([[0], nearest[nearest < len(edges) - 1]]))  # the first bin of each range
    ends = np.append(starts[1:], len(edges) - 1)
    row, place = part.row, np.searchsorted(starts, part.bins, side="right") - 1
    first = np.flatnonzero(np.append(True, (np.diff(row) != 0) | (np.diff(place) != 0)))
    counts = np.add.reduceat(part.counts, first)
    table = _distributed(part, answer, row[first], edges[starts[place[first]]], edges[ends[place[first]]], counts)
    totals = np.bincount(row[first], counts)[row[first]]
    table = replace(table, columns={**table.columns, "share": table.columns["cumulative"] / totals})
    return table, int(np.bincount(row[first]).max(initial=0))
