"""Where did the samples lie, over time and latency, and how are they distributed in all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Int, Intervals, in_time_order
from ingest.core.series import Group
from ingest.query.lags import whole_counts
from ingest.query.means import check_bins
from ingest.query.question import Answer
from ingest.query.table import Table, concatenated


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
        total = np.cumsum(part.counts)
        before = np.concatenate([[0], total])[part.indptr[:-1]]
        edges = part.layout.edges
        columns = _labels(part, answer, part.series[row])
        columns |= {"lower": edges[part.bins], "upper": edges[part.bins + 1]}
        columns |= {"count": part.counts, "cumulative": total - before[row]}
        tables.append(Table(columns, answer.by))
    return concatenated(tables, order=()) if len(tables) > 1 else tables[0]
