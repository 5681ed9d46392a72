"""A heat map on a terminal: a row of blocks for each range of latency, coloured by rank; letters where there is no colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from ingest.core.errors import UsageError, counted
from ingest.core.units import Stamp, format_duration, latency
from ingest.query.heatmap import Cells, Rows, cells, in_windows, of_step
from ingest.query.question import Answer
from ingest.view import vega
from ingest.view.terminal.tables import clock, count, escape, people, say, say_heading

# How dark a cell of a map is, for renderers that have no Vega: what the specs in kibana/vega say of `shade`.


WORDS = {"rank": "by rank", "linear": "in proportion", "exponent": "by square root"}


def used(counts: NDArray[np.float64], shading: str) -> str:
    """Return the shading that is used: in proportion instead of `rank` where at least half of the cells hold the same count."""
    _, alike = np.unique(counts[counts > 0], return_counts=True)
    return "linear" if shading == "rank" and len(alike) and 2 * alike.max() >= alike.sum() else shading


def shades(counts: NDArray[np.float64], shading: str) -> NDArray[np.float64]:
    """Return the shade of each cell, of the shape of `counts`: 0 only where there is nothing, up to 1 for the fullest.

    By `rank` among the different counts, so that faint patterns show (see `used`); `linear` is in proportion, `exponent` by the
    square root.
    """
    if used(counts, shading) == "rank":
        each, place = np.unique(counts, return_inverse=True)
        return (place.reshape(counts.shape) + (each[0] > 0)) / max(1, np.count_nonzero(each)) if len(each) else counts
    part: NDArray[np.float64] = counts / max(1.0, float(counts.max(initial=0)))
    return np.sqrt(part) if shading == "exponent" else part


def quarters(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least, the quartiles and the most of the different counts above zero; empty where there is none."""
    each = np.unique(counts[counts > 0])
    return each[(len(each) - 1) * np.arange(5) // 4] if len(each) else each


EIGHTHS = Rows(octave=8, most=24)
GUTTER = 9
HALF, LEAST_HUE = 0.5, 0.15
NOTHING = "?"
LEAST_COLUMNS = 20
MOST_GROUPS = 8
LETTERS, SOME, MOSTLY = " .:-=+*#%@", " abcdefghi", " ABCDEFGHI"
RAMP = ((40, 44, 84), (59, 82, 139), (44, 113, 142), (33, 145, 140), (53, 183, 121), (144, 215, 67), (253, 231, 37))
OTHER = ((96, 32, 44), (140, 40, 56), (180, 50, 66), (214, 68, 78), (240, 98, 96), (252, 142, 126), (255, 196, 176))


@dataclass(frozen=True, slots=True)
class Asked:
    """What a map is to show: its rows, columns (0: windows), shading (rank, linear, exponent), and what is highlighted in it."""

    rows: Rows = EIGHTHS
    columns: int = 0
    shading: str = "rank"
    lit: Answer | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """Samples by latency row (lowest first, then what was dropped, then what failed) and column; `lit` are the highlighted.

    `edges` in ns are one more than rows, inf around what failed, `starts` of the columns in ns; `over` says that the row behind
    the shown ones is what was dropped.
    """

    counts: NDArray[np.float64]
    edges: NDArray[Any]
    starts: NDArray[np.int64]
    lit: NDArray[np.float64] | None
    over: bool


def print_heatmap(
    answer: Answer, lines: Sequence[str], stamp: Stamp, asked: Asked | None = None, *, console: Console | None = None
) -> None:
    """Print a map of each group, as wide as the terminal, under one heading; UsageError for more columns than it has."""
    out, asked = console or people(), asked or Asked()
    room = max(LEAST_COLUMNS, out.width - GUTTER - 1)
    if asked.columns > room:
        raise UsageError(f"--columns {asked.columns}: this terminal has room for {room}; csv, png and svg have it for all")
    shown = answer if asked.columns else in_windows(answer, room)
    lit = asked.lit and of_step(asked.lit, shown.step_ns)
    names = vega.group_names(shown)
    maps = {}
    for key, name in list(names.items())[:MOST_GROUPS]:
        own = _only(shown, key)
        drawn_too = len(names) == 1 or any(len(part.succeeded()) for part in own.parts)
        maps[name] = cells(own, asked.rows, lit and _only(lit, key), asked.columns) if drawn_too else None
    say_heading(out, lines)
    for name, heat_map in maps.items():
        if len(names) > 1:
            say_group(out, name)
        if heat_map is None:
            say(out, ["all of its operations failed: --failures apart shows how long they took"], "dim")
        else:
            _print(grid_of(heat_map), stamp, asked, heat_map, out)
    if len(names) > MOST_GROUPS:
        say_more(out, len(names) - MOST_GROUPS)


def _only(answer: Answer, key: tuple[str, ...]) -> Answer:
    """Return the rows of one group."""
    parts = (part.where(lambda group: group == key) for part in answer.parts)
    return replace(answer, parts=tuple(part for part in parts if len(part)))


def grid_of(heat_map: Cells) -> Grid:
    """Return the cells of one group by row and column, filled or not."""
    over = bool(heat_map.over.any())
    edges = np.append(heat_map.edges, heat_map.upper[heat_map.over > 0].max()) if over else heat_map.edges
    row = np.searchsorted(heat_map.edges, heat_map.lower, side="right") - 1
    if heat_map.failed.any():
        row[heat_map.failed] = len(edges) - 1
        edges = np.append(edges, np.inf)
    column = np.searchsorted(heat_map.starts, heat_map.start_ns, side="right") - 1
    counts, lit = np.zeros((2, len(edges) - 1, len(heat_map.starts)))
    counts[row, column] = heat_map.count
    if heat_map.lit is not None:
        lit[row, column] = heat_map.lit
    return Grid(counts, edges, heat_map.starts, None if heat_map.lit is None else lit, over)


def _print(grid: Grid, stamp: Stamp, asked: Asked, heat_map: Cells, out: Console) -> None:
    lit = np.zeros_like(grid.counts) if grid.lit is None else grid.lit
    shares = np.divide(lit, grid.counts, out=np.zeros_like(grid.counts), where=grid.counts > 0)
    labels = [latency(float(edge)) for edge in grid.edges[:-1]]
    if np.isinf(grid.edges[-1]):
        labels[-1] = latency(np.inf)
    if grid.over:
        labels[len(heat_map.edges) - 1] = f">{labels[len(heat_map.edges) - 1]}"
    coloured = say_rows(out, labels, shades(grid.counts, asked.shading), shares)
    day = say_times(out, grid.starts, stamp)
    wide = int((heat_map.end_ns - heat_map.start_ns).max())
    width = format_duration(wide) if wide % vega.MS == 0 else latency(wide)
    steps = " ".join(dict.fromkeys(count(float(value)) for value in quarters(grid.counts)))
    total = count(float(grid.counts.sum()))
    legend = f"samples in a cell {WORDS[used(grid.counts, asked.shading)]}: {steps}; {total} in all"
    how = "red" if coloured else "letters, capital where it has half of a cell or more"
    of_lit = [f"{asked.name} ({how}): {count(float(lit.sum()))} of {total}"] if grid.lit is not None else []
    say(out, [f"{day}; a column is {width}; {legend}", *of_lit, *notes_of(heat_map)], "dim")


def say_rows(
    out: Console, labels: Sequence[str], shaded: NDArray[np.float64], shares: NDArray[np.float64], unknown: Sequence[bool] = ()
) -> bool:
    """Print the rows of a map, the last on top, columns of which nothing is known as `?`; return whether they have colours."""
    coloured = out.is_terminal and out.color_system is not None
    for label, of_cells, of_lit in zip(reversed(labels), shaded[::-1].tolist(), shares[::-1].tolist(), strict=True):
        line = Text(f"{label:>{GUTTER - 2}} ", no_wrap=True)
        for shade, share, nothing in zip(of_cells, of_lit, unknown or repeat(False), strict=False):
            letter, style = drawn(shade, share, coloured=coloured)
            line.append(NOTHING if nothing else letter, style)
        out.print(line, highlight=False, soft_wrap=True)
    return coloured


def say_group(out: Console, name: str) -> None:
    """Print whose a map is, where there are several."""
    out.print(escape("".join(letter if letter.isprintable() else "?" for letter in name)), style="bold", highlight=False)


def say_more(out: Console, groups: int) -> None:
    """Print how many groups have no map."""
    out.print(f"{counted(groups, 'more group')}: csv has them all, --where chooses", style="dim", highlight=False)


def say_times(out: Console, starts: NDArray[np.int64], stamp: Stamp) -> str:
    """Print the times of the first and, if there is room, the last column below a map; return what clock and days they are of."""
    short, day = clock([int(start) for start in starts], stamp)
    first, last = short(int(starts[0])), short(int(starts[-1]))
    room = len(starts) - len(first)
    out.print(" " * (GUTTER - 1) + first + (last.rjust(room) if room > len(last) else ""), style="dim", highlight=False)
    return day


def notes_of(heat_map: Cells) -> list[str]:
    """Return what is not on the map, and other remarks, in sentences."""
    outside = [
        f"{_samples(number)} {where}" for number, where in ((heat_map.below, "below"), (heat_map.above, "above")) if number
    ]
    said = [f"{' and '.join(outside)} the range of latency that was asked"] if outside else []
    if heat_map.left_out:
        said.append(f"{_samples(heat_map.left_out)} above the map, at {latency(float(heat_map.edges[-1]))} or more")
    return [*said, *heat_map.notes]


def _samples(number: float) -> str:
    return f"{count(number)} {'sample lies' if number == 1 else 'samples lie'}"


def drawn(shade: float, share: float, *, coloured: bool) -> tuple[str, str | None]:
    """Return the letter of a cell and its colour: of its two hues, plain and highlighted, each by its share (0 to 1)."""
    if not coloured:
        letters = LETTERS if share == 0 else SOME if share < HALF else MOSTLY
        return letters[0 if shade == 0 else 1 + min(len(letters) - 2, int(shade * (len(letters) - 1)))], None
    if shade == 0:
        return " ", None
    hues = []
    for ramp in (RAMP, OTHER):
        at = shade * (len(ramp) - 1)
        low = min(int(at), len(ramp) - 2)
        hues.append([a + (b - a) * (at - low) for a, b in zip(ramp[low], ramp[low + 1], strict=True)])
    mixed = [round(a + (b - a) * mix(share)) for a, b in zip(*hues, strict=True)]
    return " ", "on #{:02x}{:02x}{:02x}".format(*mixed)


def mix(share: float) -> float:
    """Return how much of a cell's hue is the highlighted one: a part of the samples is always distinct from none and from all."""
    return share if share in (0, 1) else LEAST_HUE + (1 - 2 * LEAST_HUE) * share
