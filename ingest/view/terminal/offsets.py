"""An offset map on a terminal: periods from left to right, offsets from the bottom up, coloured by rank or in proportion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from ingest.core.intervals import Intervals
from ingest.core.labels import Group
from ingest.core.units import Stamp, format_duration, latency
from ingest.query.offsets import OffsetMap, joined
from ingest.view.terminal.heatmap import (
    GUTTER,
    LEAST_COLUMNS,
    MOST_GROUPS,
    NOTHING,
    WORDS,
    say_group,
    say_more,
    say_rows,
    say_times,
    shades,
    used,
)
from ingest.view.terminal.tables import RUNS_NAMED, count, first_of, people, say_heading

MOST_LINES = 25
LATE = "!"


def heading(answer: OffsetMap) -> list[str]:
    """Return the lines above a map: runs, period, rows, events, warnings."""
    runs, periods = first_of(answer.runs, RUNS_NAMED), answer.periods
    rows = f"{periods.rows} rows of {latency(periods.period_ns / periods.rows)}"
    events = f"{answer.samples:,} events ({answer.answered_from})"
    head = f"offsets of {runs}: {events} by offset within each {format_duration(periods.period_ns)}, {rows}"
    return [head, *(f"note: {text}" for text in answer.warnings)]


def print_offsets(
    answer: OffsetMap, lines: Sequence[str], stamp: Stamp, shading: str = "rank", *, console: Console | None = None
) -> None:
    """Print a map of each group, as wide as the terminal, under one heading."""
    out = console or people()
    say_heading(out, lines)
    groups = sorted(answer.cells.table[code] for code in np.unique(answer.cells.series).tolist())
    shown, width = joined(answer, max(LEAST_COLUMNS, out.width - GUTTER - 1))
    for group in groups[:MOST_GROUPS]:
        if len(groups) > 1:
            say_group(out, ", ".join(label or "-" for label in group))
        _print(shown, group, width, stamp, shading, out)
    if len(groups) > MOST_GROUPS:
        say_more(out, len(groups) - MOST_GROUPS)


def dense(answer: OffsetMap, cells: Intervals[Group], group: Group, width_ns: int) -> NDArray[np.int64]:
    """Return the events of a group in `cells` by line (lowest offsets first) and column of `width_ns`; at most 25 lines."""
    rows = answer.periods.rows
    tall = -(-rows // MOST_LINES)
    counts = np.zeros((-(-rows // tall), -(-(answer.end_ns - answer.first_ns) // width_ns)), np.int64)
    mine = np.array([key == group for key in cells.table], np.bool_)[cells.series[cells.row]]
    column = (cells.start_ns[cells.row] - answer.first_ns) // width_ns
    np.add.at(counts, (cells.bins[mine] // tall, column[mine]), cells.counts[mine])
    return counts


def _print(answer: OffsetMap, group: Group, step: int, stamp: Stamp, shading: str, out: Console) -> None:
    counts = dense(answer, answer.cells, group, step)
    lit = np.zeros_like(counts) if answer.lit is None else dense(answer, answer.lit, group, step)
    weights = counts.astype(np.float64)
    starts = answer.first_ns + np.arange(counts.shape[1]) * step
    nothing = _nothing(answer, starts, step)
    late = np.isin(starts, starts[(answer.late_ns - answer.first_ns) // step])
    tall = -(-answer.periods.rows // MOST_LINES)
    if late.any():
        marks = " " * (GUTTER - 1) + "".join(LATE if is_late else " " for is_late in late)
        out.print(marks, style="red", highlight=False, soft_wrap=True)
    labels = [latency(float(edge)) for edge in answer.periods.edges[:-1:tall]]
    coloured = say_rows(out, labels, shades(weights, shading), lit / np.maximum(counts, 1), nothing.tolist())
    shaded = f"events in a cell up to {count(float(counts.max(initial=1)))}, shaded {WORDS[used(weights, shading)]}"
    notes = [say_times(out, starts, stamp), f"a column is {format_duration(step)}", shaded]
    notes += [f"{NOTHING}: nothing recorded"] if nothing.any() else []
    notes += [f"{LATE}: reported late"] if late.any() else []
    how = "red" if coloured else "letters, capital where they are half of a cell or more"
    notes += [f"highlighted ({how}): {count(float(lit.sum()))} of {count(float(counts.sum()))}"] if answer.lit is not None else []
    out.print("; ".join(notes), style="dim", highlight=False, soft_wrap=True)


def _nothing(answer: OffsetMap, starts: NDArray[np.int64], step_ns: int) -> NDArray[np.bool_]:
    """Return the columns that lie within a stretch in which nothing was recorded."""
    begin, end = answer.missing_ns
    place = np.searchsorted(begin, starts, side="right") - 1
    nothing: NDArray[np.bool_] = place >= 0
    nothing[nothing] = starts[nothing] + step_ns <= end[place[nothing]]
    return nothing
