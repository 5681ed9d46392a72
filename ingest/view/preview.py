"""A heat map on a terminal: a row of blocks for each range of latency, coloured by rank; letters where there is no colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from ingest.grid import WEIGHT_BITS
from ingest.intervals import Intervals
from ingest.layout import LogLinear, common_layout
from ingest.query.question import Answer, widened
from ingest.timing import format_duration
from ingest.view import vega
from ingest.view.terminal import clock, count, latency, people
from ingest.view.text import Stamp

ROWS = 24
GUTTER = 9
LEAST_COLUMNS = 20
MOST_GROUPS = 8
LETTERS = " .:-=+*#%@"
RAMP = ((40, 44, 84), (59, 82, 139), (44, 113, 142), (33, 145, 140), (53, 183, 121), (144, 215, 67), (253, 231, 37))


@dataclass(frozen=True, slots=True)
class Grid:
    """Samples by latency row (lowest first) and window; `edges` in ns, one more than rows; `starts` of the windows in ns."""

    counts: NDArray[np.float64]
    edges: NDArray[np.int64]
    starts: NDArray[np.int64]


def print_heatmap(answer: Answer, lines: Sequence[str], stamp: Stamp, *, console: Console | None = None) -> None:
    """Print a map of each group, as wide as the terminal, under one heading."""
    out = console or people()
    for line in lines:
        out.print(escape(line), style="dim" if line.startswith("note:") else None, highlight=False, soft_wrap=True)
    shown, note = _fitting(answer, max(LEAST_COLUMNS, out.width - GUTTER - 1))
    names = vega.group_names(shown)
    for key, name in list(names.items())[:MOST_GROUPS]:
        if len(names) > 1:
            out.print(escape("".join(letter if letter.isprintable() else "?" for letter in name)), style="bold", highlight=False)
        _print(grid_of(shown, key), stamp, note, out)
    if len(names) > MOST_GROUPS:
        out.print(f"{len(names) - MOST_GROUPS} more groups: csv has them all, --where chooses", style="dim", highlight=False)


def _fitting(answer: Answer, columns: int) -> tuple[Answer, str]:
    """Return the answer in at most so many windows, and how wide they are."""
    low = min(int(part.start_ns.min()) for part in answer.parts)
    high = max(int(part.end_ns.max()) for part in answer.parts)
    step = answer.step_ns or high - low
    wider = step
    while -(-high // wider) - low // wider > columns and answer.step_ns:
        wider += step
    shown = answer if wider == step else replace(answer, parts=tuple(widened(answer.parts, wider)), step_ns=wider)
    return shown, f"a column is {format_duration(wider)}"


def grid_of(answer: Answer, key: tuple[str, ...]) -> Grid:
    """Return the samples of a group by latency row and window; rows nest in the bins, at most 24 of them."""
    common = common_layout(part.layout for part in answer.parts)
    moved = [_group(part.in_layout(common), key) for part in answer.parts]
    low = min(int(part.start_ns.min()) for part in answer.parts)
    high = max(int(part.end_ns.max()) for part in answer.parts)
    step = answer.step_ns or max(high - low, 1)
    starts = np.arange(low, high, step)
    layout = _rows(common, np.concatenate([part.bins for part in moved]))
    dense = np.zeros((layout.bins, len(starts)))
    for part in moved:
        rows = part.in_layout(layout)
        weights = rows.counts if rows.completions is None else rows.counts / (1 << WEIGHT_BITS)
        np.add.at(dense, (rows.bins, (rows.start_ns[rows.row] - low) // step), weights)
    filled = np.flatnonzero(dense.any(axis=1))
    span = slice(int(filled[0]), int(filled[-1]) + 1) if len(filled) else slice(0, 1)
    return Grid(dense[span], layout.edges[span.start : span.stop + 1], starts)


def _group(part: Intervals, key: tuple[str, ...]) -> Intervals:
    codes = [code for code, found in enumerate(part.table) if found == key]
    return part.take(np.flatnonzero(np.isin(part.series, codes)))


def _rows(layout: LogLinear, bins: NDArray[np.int64]) -> LogLinear:
    """Return the finest layout of 8, 4, 2 or 1 rows an octave in which these bins fill at most 24 rows."""
    for an_octave in (8, 4, 2, 1):
        rows = vega.row_layout(layout, an_octave)
        found = layout.moved_to(rows)[bins]
        if not len(found) or int(found.max() - found.min()) < ROWS:
            break
    return rows


def _print(grid: Grid, stamp: Stamp, note: str, out: Console) -> None:
    counts = grid.counts[grid.counts > 0]
    ranked = np.sort(counts)
    shares = np.searchsorted(ranked, grid.counts, side="right") / max(len(ranked), 1)
    shares[grid.counts == 0] = 0
    coloured = out.is_terminal and out.color_system is not None
    for row in range(len(grid.counts) - 1, -1, -1):
        line = Text(f"{latency(float(grid.edges[row])):>{GUTTER - 2}} ", no_wrap=True)
        for share in shares[row].tolist():
            line.append(" " if coloured else LETTERS[_level(share, len(LETTERS))], style=_style(share) if coloured else None)
        out.print(line, highlight=False, soft_wrap=True)
    short, day = clock([int(start) for start in grid.starts], stamp)
    first, last = short(int(grid.starts[0])), short(int(grid.starts[-1]))
    room = len(grid.starts) - len(first)
    out.print(" " * (GUTTER - 1) + first + (last.rjust(room) if room > len(last) else ""), style="dim", highlight=False)
    quarters = [count(float(ranked[min(len(ranked) - 1, len(ranked) * part // 4)])) for part in range(5)] if len(ranked) else []
    legend = f"{day}; {note}; samples in a cell by rank: {' '.join(dict.fromkeys(quarters))}; {count(float(counts.sum()))} in all"
    out.print(legend, style="dim", highlight=False, soft_wrap=True)


def _level(share: float, levels: int) -> int:
    return 0 if share == 0 else 1 + min(levels - 2, int(share * (levels - 1)))


def _style(share: float) -> str | None:
    if share == 0:
        return None
    at = share * (len(RAMP) - 1)
    low = min(int(at), len(RAMP) - 2)
    mixed = [round(a + (b - a) * (at - low)) for a, b in zip(RAMP[low], RAMP[low + 1], strict=True)]
    return "on #{:02x}{:02x}{:02x}".format(*mixed)
