"""Breaths of two runs on the same axes: the panel that a comparison shows where both have Snabb timelines.

Processes that both runs have are compared one by one, those that became dearest first; the one whose longest breath grew most is
always among the pictures. Where none bears the same name (a process
may be called by its number, which is another each time) all processes of a run are taken together.
"""

from __future__ import annotations

import math

import numpy as np

from ingest.core.breaths import Kept
from ingest.core.dataclass import dataclass
from ingest.core.series import Series
from ingest.core.writing import figure
from ingest.query.breaths import Cost, Fit, Name, breath_rows, costs, fits
from ingest.view.page.finished.page import Chart, Control, Panel, View, table_of
from ingest.view.page.panels.breaths import thinned
from ingest.view.page.wording import text
from ingest.view.vega import Columns, printable

TOGETHER = "all processes"
MOST_PICTURES, MOST_POINTS = 4, 1500
STEPS = 40
HEIGHT, FLAT, GAP = 320, 230, 92
TITLES = (
    *("process", "cycles a packet", "in the run", "ratio", "longest", "in the run", "residual", "in the run"),
    *("base + a packet", "in the run"),
)


@dataclass(frozen=True, slots=True)
class Side:
    """What breaths of one run cost, by the picture that they are in."""

    label: str
    kept: Kept
    name: Name
    costs: dict[str, Cost]
    fits: dict[str, Fit]


def breath_panel(baseline: Kept, run: Kept) -> Panel | None:
    """Return the panel with breaths of two runs overlaid: samples, lines, and a table; None unless both have breaths."""
    if not (len(breath_rows(baseline.windows)) and len(breath_rows(run.windows))):
        return None
    sides = _sides(baseline, run)
    shared = [process for process in sides[0].costs if process in sides[1].costs]
    order = sorted(shared, key=lambda process: (-_ratio(sides, process), process))
    shown = _pictured(sides, order)
    columns = min(2, len(shown))
    lines = math.ceil(len(shown) / columns)
    height = (FLAT if len(shown) > 1 else HEIGHT) * lines + GAP * (lines - 1)
    few = f"Drawn: {len(shown)} of {len(order)} processes, whose cost or longest breath rose most. "
    few = few if len(shown) < len(order) else ""
    view = View(_tables(sides, shown), few + _says(sides, order), {"columns": columns}, height)
    return Panel(
        "breaths",
        "Breath efficiency",
        "Cycles of breaths by the packets that they moved: the longest and a random sample of each run, and the line of least "
        "squares through all of its stored breaths. A steeper line: each packet costs more. One that begins higher: each breath "
        "does. The residual is how far breaths lie from the line, as a standard deviation.",
        [Chart("breaths", "Breath efficiency", "breaths", {"": view})],
        _table(sides, order),
        [Control("axis", "Axes", (("log", "log"), ("linear", "linear")))],
    )


def _sides(baseline: Kept, run: Kept) -> tuple[Side, Side]:
    names = [{stream.process for stream in breath_rows(kept.windows).table} for kept in (baseline, run)]

    def name(series: Series) -> str:
        return printable(series.process or "-") if names[0] & names[1] else TOGETHER

    first, second = (_side(kept, word, name) for kept, word in ((baseline, "baseline"), (run, "run")))
    return first, second


def _side(kept: Kept, word: str, name: Name) -> Side:
    windows = breath_rows(kept.windows)
    runs = ", ".join(sorted({stream.run for stream in windows.table}))
    costs_by_process = {cost.name: cost for cost in costs(windows, name)}
    return Side(printable(f"{word} {runs}"), kept, name, costs_by_process, fits(windows, name))


def _ratio(sides: tuple[Side, Side], process: str) -> float:
    """Return by how much a packet costs more in the run; 0 where it cannot be determined."""
    before, after = (side.costs[process].cycles_a_packet for side in sides)
    ratio = after / before if before else math.nan
    return 0.0 if math.isnan(ratio) else ratio


def _grown(sides: tuple[Side, Side], process: str) -> float:
    """Return how many times as long the longest breath of the run is."""
    before, after = (side.costs[process].longest for side in sides)
    return after / before if before else 0.0


def _pictured(sides: tuple[Side, Side], order: list[str]) -> list[str]:
    """Return the processes that are drawn: those whose cost rose most, and the one whose longest breath did."""
    shown = order[:MOST_PICTURES]
    grown = max(order, key=lambda process: _grown(sides, process), default="")
    return shown if grown in shown or not order else [*shown[:-1], grown]


def _tables(sides: tuple[Side, Side], shown: list[str]) -> dict[str, Columns]:
    place = {process: number for number, process in enumerate(shown)}
    counts = [[f"{side.costs[process].n:,} breaths" for side in sides] for process in shown]
    points: Columns = {name: [] for name in ("facet", "place", "label", "x", "y")}
    lines: Columns = {name: [] for name in ("facet", "place", "label", "x", "v")}
    for side in sides:
        sample = thinned(side.kept.sample, MOST_POINTS)
        facets = [side.name(stream) for stream in sample.table]
        for code, x, y in zip(sample.series.tolist(), sample.packets.tolist(), sample.cycles.tolist(), strict=True):
            if facets[code] in place:
                _add(points, facets[code], place[facets[code]], side.label, x, y)
        for process in shown:
            own = np.array([facets[code] == process for code in sample.series.tolist()], np.bool_)
            for x, v in _line(
                side.fits[process], int(sample.packets[own].min(initial=0)), int(sample.packets[own].max(initial=0))
            ):
                _add(lines, process, place[process], side.label, x, v)
    facets_of: Columns = {
        "facet": list(shown),
        "place": list(range(len(shown))),
        "title": list(shown),
        "note": [" and ".join(pair) for pair in counts],
    }
    return {"facets": facets_of, "points": points, "lines": lines}


def _add(columns: Columns, *values: object) -> None:
    for name, value in zip(columns, values, strict=True):
        columns[name].append(value)


def _line(fit: Fit, low: int, high: int) -> list[tuple[float, float]]:
    if fit.why:
        return []
    steps = [low + (high - low) * step / STEPS for step in range(STEPS + 1)]
    return [(x, fit.base + fit.slope * x) for x in steps if fit.base + fit.slope * x > 0]


def _says(sides: tuple[Side, Side], order: list[str]) -> str:
    if not order:
        return "No process is in both runs."
    process = order[0]
    before, after = (side.costs[process].cycles_a_packet for side in sides)
    ratio = _ratio(sides, process)
    cost = f"{process}: {figure(before)} cycles a packet in the baseline, {figure(after)} in the run ({figure(ratio)} times)."
    grown = max(order, key=lambda process: _grown(sides, process))
    longest = [f"{side.costs[grown].longest:,}" for side in sides]
    times = f"{longest[0]} cycles in the baseline, {longest[1]} in the run ({figure(_grown(sides, grown))} times)"
    return f"{cost} Longest breath of {grown}: {times}."


def _table(sides: tuple[Side, Side], order: list[str]) -> str:

    rows = []
    for process in order:
        before, after = (side.costs[process].cycles_a_packet for side in sides)
        ratio = _ratio(sides, process)
        cells = (
            figure(before),
            figure(after),
            figure(ratio) if ratio else "",
            *(f"{side.costs[process].longest:,}" for side in sides),
            *(_residual_text(side.fits[process]) for side in sides),
            *(_fit_text(side.fits[process]) for side in sides),
        )
        rows.append(f'<tr><th scope="row">{text(process)}</th>{"".join(f"<td>{text(cell)}</td>" for cell in cells)}</tr>')
    return table_of("What breaths cost, in cycles: in the baseline, then in the run", TITLES, rows, 1, folded=False)


def _residual_text(fit: Fit) -> str:
    return "" if math.isnan(fit.residual) else figure(fit.residual, 4)


def _fit_text(fit: Fit) -> str:
    return fit.why or f"{figure(fit.base, 4)} + {figure(fit.slope)}"
