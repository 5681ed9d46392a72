"""The offset map as a value: its cells, what is marked in it, and its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Int, Intervals, in_time_order, merged
from ingest.core.offsets import Periods
from ingest.core.series import Group
from ingest.query.table import Table


@dataclass(frozen=True, slots=True)
class OffsetMap:
    """Events by group, column and row: `cells` has a row per group and period, its bins are rows of `periods`.

    `late_ns` are the periods of events that were reported late, with how many in `late`; `missing_ns` the stretches (starts,
    ends) of periods in which no event of these runs was recorded at all, whatever was selected: no zero, but nothing known.
    The runs reach from `first_ns` to `end_ns`, whole periods. `lit` are the highlighted among the events of `cells`.
    """

    cells: Intervals[Group]
    periods: Periods
    by: tuple[str, ...]
    runs: tuple[str, ...]
    run_start_ns: Mapping[str, int]
    relative: bool
    late_ns: Int
    late: Int
    first_ns: int
    end_ns: int
    missing_ns: Int
    warnings: tuple[str, ...] = ()
    answered_from: str = "files"
    lit: Intervals[Group] | None = None
    undated: frozenset[str] = frozenset()  # an answer has it: a map is never of runs on clocks that differ

    @property
    def samples(self) -> int:
        """Return the number of events in the map."""
        return int(self.cells.counts.sum())

    @property
    def start_of(self) -> int:
        """Return the epoch ns that elapsed time counts from."""
        return min(self.run_start_ns.values(), default=0)


def offsets(answer: OffsetMap) -> Table:
    """Return one row per period, group and occupied row: start_ns, labels, offset_lower, offset_upper (ns), count.

    Where something is highlighted also how many of them are: highlighted.
    """
    part = in_time_order(answer.cells)
    row, edges = part.row, answer.periods.edges
    columns = {"start_ns": part.start_ns[row], **_labels(part, answer.by, part.series[row])}
    columns |= {"offset_lower": edges[part.bins], "offset_upper": edges[part.bins + 1], "count": part.counts}
    columns |= {"highlighted": lit_counts(answer)} if answer.lit is not None else {}
    return Table(columns, answer.by)


def highlighted(answer: OffsetMap, lit: OffsetMap) -> OffsetMap:
    """Return the map with the events of a second one, which are a part of its own, highlighted."""
    cells = lit.cells
    if answer.by != lit.by:  # the part is of one run alone, so that it is not named there
        cells = cells.relabelled(lambda key: (*lit.runs, *key))
    return replace(answer, lit=cells)


def lit_counts(answer: OffsetMap) -> Int:
    """Return how many events are highlighted in each cell, in the order of `offsets`."""
    part, lit = in_time_order(answer.cells), answer.lit
    if lit is None:
        return np.zeros(len(part.bins), np.int64)
    keys, table = part.table, lit.table
    place = np.array([keys.index(key) if key in keys else -1 for key in table], np.int64)
    ours, theirs = (
        np.stack([cells.start_ns[cells.row], code[cells.row], cells.bins])
        for cells, code in ((part, part.series), (lit, place[lit.series]))
    )
    both, at = np.unique(np.concatenate([ours, theirs], axis=1), axis=1, return_inverse=True)
    counts = np.zeros(both.shape[1], np.int64)
    np.add.at(counts, at.reshape(-1)[ours.shape[1] :], lit.counts)
    return counts[at.reshape(-1)[: ours.shape[1]]]


def joined(answer: OffsetMap, most: int) -> tuple[OffsetMap, int]:
    """Return the map with neighbouring periods added up, offset by offset, so that there are at most `most` columns.

    Beside it the width of a column in ns.
    """
    period, cells = answer.periods.period_ns, answer.cells
    width = -(-((answer.end_ns - answer.first_ns) // period) // most) * period
    if width <= period:
        return answer, period
    lit = None if answer.lit is None else _widened(answer.lit, answer.first_ns, width)
    return replace(answer, cells=_widened(cells, answer.first_ns, width), lit=lit), width


def _widened(cells: Intervals[Group], first_ns: int, width_ns: int) -> Intervals[Group]:
    start = (cells.start_ns - first_ns) // width_ns * width_ns + first_ns
    return merged([replace(cells, start_ns=start, end_ns=start + width_ns)])


def _labels(part: Intervals[Group], by: Sequence[str], series: Int) -> dict[str, NDArray[Any]]:
    """Return the label columns of rows with these series codes."""
    keys = [np.array([key[place] for key in part.table], object) for place in range(len(by))]
    return {name: column[series] for name, column in zip(by, keys, strict=True)}
