"""Breaths of two runs on the same axes: the panel that a comparison shows where both have Snabb timelines.

Processes that both runs have are compared one by one, those that became dearest first. Where none bears the same name (a process
may be called by its number, which is another each time) all processes of a run are taken together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ingest.core.breaths import Kept
from ingest.core.series import Series
from ingest.query.breaths import Cost, Fit, Name, breath_rows, costs, fits
from ingest.view.page.finished.page import Chart, Control, Panel, View, table_of
from ingest.view.page.panels.breaths import thinned
from ingest.view.page.wording import text
from ingest.view.vega import Columns, printable

TOGETHER = "all processes"
MOST_PICTURES, MOST_POINTS = 4, 1500
STEPS = 40
HEIGHT, FLAT, GAP = 320, 230, 92
TITLES = ("process", "cycles a packet, baseline", "cycles a packet, run", "ratio", "line of the baseline", "line of the run")


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
    shared = [one for one in sides[0].costs if one in sides[1].costs]
    order = sorted(shared, key=lambda one: (-_ratio(sides, one), one))
    shown = order[:MOST_PICTURES]
    columns = min(2, len(shown))
    lines = math.ceil(len(shown) / columns)
    height = (FLAT if len(shown) > 1 else HEIGHT) * lines + GAP * (lines - 1)
    few = f"The {len(shown)} of {len(order)} processes that became dearest. " if len(shown) < len(order) else ""
    view = View(_tables(sides, shown), few + _says(sides, order), {"columns": columns}, height)
    return Panel(
        "breaths",
        "Breath efficiency",
        "Cycles of breaths by the packets that they moved: a random sample of each run, and the line of least squares through "
        "all of its stored breaths. A steeper line: each packet costs more. One that begins higher: each breath does.",
        [Chart("breaths", "Breath efficiency", "breaths", {"": view})],
        _table(sides, order),
        [Control("axis", "Axes", (("log", "log"), ("linear", "linear")))],
    )


def _sides(baseline: Kept, run: Kept) -> tuple[Side, Side]:
    names = [{one.process for one in breath_rows(kept.windows).table} for kept in (baseline, run)]

    def name(series: Series) -> str:
        return printable(series.process or "-") if names[0] & names[1] else TOGETHER

    first, second = (_side(kept, word, name) for kept, word in ((baseline, "baseline"), (run, "run")))
    return first, second


def _side(kept: Kept, word: str, name: Name) -> Side:
    windows = breath_rows(kept.windows)
    runs = ", ".join(sorted({one.run for one in windows.table}))
    told = {cost.name: cost for cost in costs(windows, name)}
    return Side(printable(f"{word} {runs}"), kept, name, told, fits(windows, name))


def _ratio(sides: tuple[Side, Side], process: str) -> float:
    """Return by how much a packet costs more in the run; 0 where it cannot be told."""
    before, after = (side.costs[process].cycles_a_packet for side in sides)
    found = after / before if before else math.nan
    return 0.0 if math.isnan(found) else found


def _tables(sides: tuple[Side, Side], shown: list[str]) -> dict[str, Columns]:
    place = {one: number for number, one in enumerate(shown)}
    counts = [[f"{side.costs[one].n:,} breaths" for side in sides] for one in shown]
    points: Columns = {name: [] for name in ("facet", "place", "label", "x", "y")}
    lines: Columns = {name: [] for name in ("facet", "place", "label", "x", "v")}
    for side in sides:
        sample = thinned(side.kept.sample, MOST_POINTS)
        facets = [side.name(one) for one in sample.table]
        for code, x, y in zip(sample.series.tolist(), sample.packets.tolist(), sample.cycles.tolist(), strict=True):
            if facets[code] in place:
                _add(points, facets[code], place[facets[code]], side.label, x, y)
        for one in shown:
            own = np.array([facets[code] == one for code in sample.series.tolist()], np.bool_)
            for x, v in _line(side.fits[one], int(sample.packets[own].min(initial=0)), int(sample.packets[own].max(initial=0))):
                _add(lines, one, place[one], side.label, x, v)
    facets_of: Columns = {
        "facet": list(shown),
        "place": list(range(len(shown))),
        "title": list(shown),
        "note": [" and ".join(one) for one in counts],
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
    one = order[0]
    before, after = (side.costs[one].cycles_a_packet for side in sides)
    ratio = _ratio(sides, one)
    return f"{one}: {before:,.3g} cycles a packet in the baseline, {after:,.3g} in the run ({ratio:.3g} times)."


def _table(sides: tuple[Side, Side], order: list[str]) -> str:

    rows = []
    for one in order:
        before, after = (side.costs[one].cycles_a_packet for side in sides)
        ratio = _ratio(sides, one)
        cells = (f"{before:,.3g}", f"{after:,.3g}", f"{ratio:.3g}" if ratio else "", *(_told(side.fits[one]) for side in sides))
        rows.append(f'<tr><th scope="row">{text(one)}</th>{"".join(f"<td>{text(cell)}</td>" for cell in cells)}</tr>')
    return table_of("What breaths cost", TITLES, rows, 1, folded=False)


def _told(fit: Fit) -> str:
    return fit.why or f"{fit.base:,.4g} + {fit.slope:,.3g} a packet (R² {fit.explained:.2f})"
