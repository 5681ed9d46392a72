"""The page of a comparison: two runs side by side, the largest changes, their distributions, their breaths."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ingest.core.breaths import StoredBreaths
from ingest.core.grid import SECOND
from ingest.core.labels import Series
from ingest.core.quantiles import Percentile
from ingest.core.units import figure, number, spaced
from ingest.query.breaths import Cost, Fit, Name, breath_rows, costs, fits
from ingest.query.compare import (
    APART,
    FASTER,
    SLOWER,
    Pair,
    Sides,
    alone_in,
    compare,
    grouped,
    groupings,
    groups_of,
    halvings,
    is_lag,
    kinds_of,
    method,
)
from ingest.query.lags import MIXED
from ingest.query.overview import span_of
from ingest.query.question import Answer
from ingest.query.table import Table
from ingest.query.windows import regrouped, widened
from ingest.view import vega
from ingest.view.page.finished import Chart, Control, Head, Panel, View, finished_page, table_of
from ingest.view.page.panels.breaths import thinned
from ingest.view.page.tables import over_all
from ingest.view.page.template import duration, exact, shown_latency, text, time_text
from ingest.view.terminal.comparison import (
    both,
    bounds_text,
    cells,
    counts_text,
    elapsed,
    errors_of,
    in_groups,
    kinds_text,
    label_text,
    notes,
    opening,
    ratio_text,
    runs_text,
    verdict,
)
from ingest.view.terminal.tables import first_of
from ingest.view.vega import Columns, printable

# What the page of a comparison draws and lists: ratios as rows of the specs, lines of tables as HTML, and sentences.


REACH, LEAST_REACH = 1.5, 1.25
MOST_NAMED = 3
SIDES = ("baseline", "run")
COLUMNS = (
    *("i", "row", "x", "ratio", "lo", "hi", "baseline", "run", "open_baseline", "open_run", "n_baseline", "n_run"),
    *("verdict", "first", "last", "cut_low", "cut_high"),
)


def percentile_text(table: Table, row: int) -> str:
    """Return p99.9."""
    return f"p{table.columns['percentile'][row]:.15g}"


def group_text(table: Table, row: int, labels: Sequence[str]) -> str:
    """Return the labels of a row for people: ceph-b, read, volume 0; `all` without any."""
    return vega.printable(", ".join(label_text(name, str(table.columns[name][row])) for name in labels)) or "all"


def is_drawn(table: Table, row: int) -> bool:
    """Return whether a row has a ratio that a logarithmic axis can show."""
    ratio = float(table.columns["ratio"][row])
    return math.isfinite(ratio) and ratio > 0


def ratio_columns(table: Table, rows: Sequence[int], names: Sequence[str]) -> vega.Columns:
    """Return ratios as rows of `movers` and `shifts`, in this order: i, row, x, ratio, lo, hi, first, last, and their texts.

    `first` to `last` is what is drawn of the bounds: cut where they reach much further than any ratio on their side of 1
    (`cut_low`, `cut_high`).
    """
    logs = [math.log(table.columns["ratio"][row]) for row in rows]
    lowest, highest = (math.exp(REACH * power) for power in (min(logs, default=0), max(logs, default=0)))
    lowest, highest = min(lowest, 1 / LEAST_REACH), max(highest, LEAST_REACH)
    cells = []
    for at, (row, name) in enumerate(zip(rows, names, strict=True)):
        row_values = {key: column[row] for key, column in table.columns.items()}
        low, high = float(row_values["lo"]), float(row_values["hi"])
        first, last = max(low, lowest), min(high, highest)
        cells.append(
            (
                *(at, name, 1 / (1 - min(float(row_values["percentile"]) / 100, 1 - 1e-12))),
                *(float(row_values[key]) for key in ("ratio", "lo", "hi", *SIDES)),
                *(int(row_values[f"{side}_censored"]) for side in SIDES),
                *(int(row_values[f"count_{side}"]) for side in SIDES),
                *(verdict(table, row), lowest if math.isnan(low) else first, highest if math.isnan(high) else last),
                *(int(math.isnan(low) or first > low), int(math.isnan(high) or last < high)),
            )
        )
    return vega.columns_of(COLUMNS, cells)


def names_of(table: Table, rows: Sequence[int], labels: Sequence[str]) -> list[str]:
    """Return the texts of rows, unlike ones for unlike groups."""
    names: list[str] = []
    for row in rows:
        name = group_text(table, row, labels)
        while name in names:
            name += "'"
        names.append(name)
    return names


def line_of(table: Table, row: int, labels: Sequence[str]) -> str:
    """Return a row as a line of a table: labels, percentile, both values, ratio, bounds, samples, verdict."""
    row_values = {name: column[row] for name, column in table.columns.items()}
    least = {side: "≥ " if row_values[f"{side}_censored"] else "" for side in SIDES}
    low, high, ratio = (float(row_values[name]) for name in ("lo", "hi", "ratio"))
    what = verdict(table, row)
    kind = what if what in ("slower", "faster") else ""
    shown = {side: shown_latency(row_values[side]) for side in SIDES}
    cells = [
        *(f'<td class="left label">{text(str(row_values[name]) or "-")}</td>' for name in labels),
        f'<th scope="row">{percentile_text(table, row)}</th>',
        *(exact(row_values[side], value and least[side] + value) for side, value in shown.items()),
        exact(ratio, ratio_text(ratio) and least["run"] + ratio_text(ratio)),
        f'<td data-lo="{number(low)}" data-hi="{number(high)}">{bounds_text(low, high)}</td>',
        *(exact(row_values[f"count_{side}"], f"{int(row_values[f'count_{side}']):,}") for side in SIDES),
        f'<td class="left {kind}">{text(what)}</td>',
    ]
    return f"<tr>{''.join(cells)}</tr>"


def changes_sentence(table: Table, rows: Sequence[int], labels: Sequence[str]) -> str:
    """Return the largest effects by name, then how many rows are slower, faster, alike or cannot be judged."""
    sentences = []
    for kind in (SLOWER, FASTER):
        mine = [row for row in rows if verdict(table, row) == kind]
        if mine:
            named = first_of([_effect(table, row, rows, labels, kind) for row in mine], MOST_NAMED)
            sentences.append(f"{kind.capitalize()}: {named}.")
    said = sentences or ["Nothing is certain to have changed."]
    return " ".join([*said, *([counts_text(table, rows)] if len(rows) > 1 else [])])


def _effect(table: Table, row: int, rows: Sequence[int], labels: Sequence[str], kind: str) -> str:
    ratio = ratio_text(float(table.columns["ratio"][row]))
    bound, word = ("lo", "least") if kind == "slower" else ("hi", "most")
    several = len(set(table.columns["percentile"][list(rows)])) > 1
    name = " ".join([*([group_text(table, row, labels)] if labels else []), *([percentile_text(table, row)] if several else [])])
    return f"{name} {ratio} times (at {word} {ratio_text(float(table.columns[bound][row]))})"


# The page of a comparison: two runs side by side, the largest changes, where their distributions differ, and both over time.
#
# Its numbers are those of `tailboard compare`: the tables hold each number as csv has it (`data value`), the charts draw them.


MOST_BARS, MOST_LINES, MOST_CURVES, MOST_STEPS = 14, 400, 40, 900
MOST_FOLDED = 16
BAR, MARGIN, TALL = 26, 12, 190
BENEATH, ABOVE = 4, 1.75  # widths of lines: of two that lie on one another both are seen
TITLES = ("percentile", "baseline", "run", "ratio", "95 % bounds", "n baseline", "n run", "verdict")
RATIOS_HINT = (
    "Ratio of each percentile, run / baseline, with the bounds between which it lies with 95 % confidence (an arrow: further, or "
    "not known). Right of the line the run is slower. With bounds on either side of 1 it cannot be determined."
)
DISTRIBUTIONS_HINT = (
    "Latency by percentile of both runs: each further nine takes the same width. Below, their ratio at each halving of 1 - q, "
    "with its 95 % bounds."
)
ELAPSED_HINT = (
    "The chosen percentile of both runs, each from its own start: a level line for each window, a circle at the maximum where it "
    "has too few samples. Grey: no completions in either. Dashed: the whole range."
)
MAPS_HINT = "Samples by elapsed time and latency. No colour: no samples. A shade means the same in both."
SHADING = Control("shading", "Shading", (("rank", "rank"), ("linear", "linear"), ("exponent", "square root")))
PALETTE = Control("palette", "Colours", (("single", "single hue"), ("false", "false colour")))


@dataclass(frozen=True, slots=True)
class Compared:
    """What a page of a comparison is made of: two runs by nothing, by each of some labels, and over time.

    `whole` is None for lags, of which unlike events are not added up; `windows` where a side is several runs or kinds.
    """

    whole: Pair | None
    movers: Sequence[Pair]
    windows: Pair | None
    percentiles: Sequence[Percentile]

    @property
    def pairs(self) -> list[Pair]:
        """Return all pairs of the whole range."""
        return [*([self.whole] if self.whole else []), *self.movers]

    def subject(self, asked: Pair) -> Pair:
        """Return the pair that the verdict is about: what was asked for; of lags the one that keeps events apart."""
        return asked if self.whole or not self.movers else self.movers[0]

    def opening(self, asked: Pair) -> list[str]:
        """Return the verdict, which page and terminal open with."""
        subject = self.subject(asked)
        known = {*subject.by, *APART}
        others = [pair for pair in self.movers if not known.issuperset(pair.by) and not set(pair.by) & {*subject.by} - {*APART}]
        return opening(subject, compare(subject, self.percentiles), [compare(pair, self.percentiles) for pair in others])


def compared(
    pair: Pair, answers: tuple[Answer, Answer], windows: Sides, percentiles: Sequence[Percentile], *, unlike: bool
) -> Compared:
    """Return what the page of a comparison is made of: `pair` was asked for, `answers` and `windows` are by all of its labels."""
    baseline, run = answers

    def by(labels: Sequence[str]) -> Pair:
        return grouped(baseline, run, labels, windows, unlike=unlike, same_within=pair.same_within)

    whole = None if is_lag(baseline, run) else by([name for name in pair.by if name in APART])
    movers = [by(labels) for labels in groupings(baseline, run, pair.by)]
    return Compared(whole, movers, over_time(pair), percentiles)


def over_time(pair: Pair) -> Pair | None:
    """Return both runs over time in windows of one width; None for several runs or kinds a side, as no map is common to them."""
    if any(len(side) != 1 for side in pair.windows) or any(len(kinds_of(side)) > 1 for side in (pair.baseline, pair.run)):
        return None
    answers = [regrouped(side[0], ()) for side in pair.windows]
    step = math.lcm(*(answer.step_ns for answer in answers))
    first, second = (replace(answer, parts=tuple(widened(answer.parts, step)), step_ns=step) for answer in answers)
    return Pair(first, second)


def compare_page(
    compared: Compared, asked: Pair, verdict: Sequence[str] = (), *, bad: bool = False, more: Sequence[Panel] = ()
) -> str:
    """Return the page: `asked` is the pair of the command's table, `verdict` what --fail-above says, `more` panels at the end.

    UsageError where vl-convert-python is not installed.
    """
    subject = compared.subject(asked)
    table = compare(subject, compared.percentiles)
    head = Head(
        f"{runs_text(asked.run)} against {runs_text(asked.baseline)}",
        f"{kinds_text(asked)} latency, {asked.run.samples:,} samples against {asked.baseline.samples:,}",
        _facts(asked, table),
        [*notes(subject, table), *_left_out(compared)],
        [*compared.opening(asked), *verdict],
        bad,
    )
    choices = [(percentile.name, percentile.name) for percentile in sorted(compared.percentiles)]
    certain = [percentile_text(table, row) for row in range(len(table)) if table.columns["verdict"][row] in (SLOWER, FASTER)]
    first = next((name for name in (*certain, "p99") if (name, name) in choices), "")  # what the verdict names
    wanted = Control("p", "Percentile", choices, first)
    panels = [
        *([_side_by_side(compared.whole, compared.percentiles)] if compared.whole else []),
        *(_movers(pair, compared.percentiles) for pair in compared.movers),
    ]
    at_top = next((panel for panel in panels if panel.name == _name(subject.by)), panels[0]) if panels else None
    panels.sort(key=lambda panel: panel is not at_top)
    panels += [*_distributions(compared), *(_over_time(compared.windows, compared) if compared.windows else []), *more]
    return finished_page(head, panels, [wanted], labels="Facts of both runs", opened=["elapsed"])


def _facts(pair: Pair, table: Table) -> list[tuple[str, str]]:
    """Return (name, value) pairs that the answers hold, the baseline's first."""
    sides = dict(zip(SIDES, (pair.baseline, pair.run), strict=True))
    spans = {name: _span(side) for name, side in sides.items()}
    return [
        *((name.capitalize(), ", ".join(side.runs)) for name, side in sides.items()),
        ("Latency", kinds_text(pair)),
        ("Samples", " and ".join(f"{side.samples:,}" for side in sides.values())),
        ("Elapsed time", " and ".join(duration(high - low) for low, high in spans.values())),
        *((f"Time of the {name}", time_text(*span, relative=sides[name].relative)) for name, span in spans.items()),
        ("Error bound of the bins", spaced(errors_of(pair, table))),
        ("Merged from", " and ".join(side.made_of for side in sides.values())),
        ("Bounds of ratios, 95 %", f"{method(pair)}; of all rows of a table together"),
    ]


def _span(answer: Answer) -> tuple[int, int]:
    return span_of([part for part in answer.parts if len(part)])


def _left_out(compared: Compared) -> list[str]:
    """Return why a page has fewer panels than others."""
    apart = "lags of different events are stored at different rates: they are compared event by event, not all together"
    several = "several runs or kinds on one side have no common heat map or time axis: choose one run and one kind"
    return [note for part, note in ((compared.whole, apart), (compared.windows, several)) if part is None]


def _side_by_side(pair: Pair, percentiles: Sequence[Percentile]) -> Panel:
    table = compare(pair, percentiles)
    rows = in_groups(table)
    drawn = [row for row in rows if is_drawn(table, row)]
    groups = [f"{group_text(table, row, pair.by)} " if pair.by else "" for row in drawn]
    names = [f"{group}{percentile_text(table, row)}" for group, row in zip(groups, drawn, strict=True)]
    height = MARGIN + BAR * max(1, len(drawn))
    view = View({"points": ratio_columns(table, drawn, names)}, changes_sentence(table, rows, ()), height=height)
    title = "Percentiles side by side"
    return _one_chart("ratios", title, RATIOS_HINT, "movers", {"": view}, table=_table(table, rows, pair.by))


def _movers(pair: Pair, percentiles: Sequence[Percentile]) -> Panel:
    """Return the panel of ratios by some labels: at each percentile a bar for each group, the largest effect first."""
    table, labels = compare(pair, percentiles), pair.by
    views = {}
    for percentile in percentiles:
        mine = [row for row in range(len(table)) if percentile_text(table, row) == percentile.name]
        drawn = [row for row in mine if is_drawn(table, row)]
        shown = drawn[:MOST_BARS]
        cut = f"The {len(shown)} with the largest effect of {len(drawn)}. " if len(shown) < len(drawn) else ""
        says = f"{percentile.name}. {cut}{changes_sentence(table, mine, labels)}"
        columns = ratio_columns(table, shown, names_of(table, shown, labels))
        views[percentile.name] = View({"points": columns}, says, height=MARGIN + BAR * max(1, len(shown)))
    title, rows = f"Largest changes, by {', '.join(labels)}", _table(table, in_groups(table), labels)
    hint = "The chosen percentile of each group, the largest effect first: the change that is certain, then the ratio itself."
    return _one_chart(_name(labels), title, hint, "movers", views, "p", table=rows)


def _name(labels: Sequence[str]) -> str:
    """Return the id of the panel of some labels."""
    words = ("".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in label) for label in labels)
    return "-".join(("movers", *words)) if labels else "ratios"


def _table(table: Table, rows: Sequence[int], labels: Sequence[str]) -> str:
    cut = f", the first {MOST_LINES} of {len(rows)} (csv has all)" if len(rows) > MOST_LINES else ""
    many = f", {min(len(rows), MOST_LINES)} rows{cut}" if len(rows) > MOST_FOLDED else ""
    caption = f"Values, ratios and bounds{many}"
    lines = [line_of(table, row, labels) for row in rows[:MOST_LINES]]
    return table_of(caption, (*labels, *TITLES), lines, len(labels) + 1, folded=len(rows) > MOST_FOLDED)


def _distributions(compared: Compared) -> list[Panel]:
    """Return the panel of both distributions and their ratio, of all together and of each group that moved."""
    chosen: dict[str, tuple[str, Pair]] = {}
    for pair in compared.pairs:
        table = compare(pair, compared.percentiles)
        shared = groups_of(pair.baseline, pair.by) & groups_of(pair.run, pair.by)
        ordered = dict.fromkeys(tuple(str(table.columns[name][row]) for name in pair.by) for row in range(len(table)))
        for group in (group for group in ordered if group in shared):
            name = ", ".join(f"{label} {value or '-'}" for label, value in zip(pair.by, group, strict=True)) or "all together"
            if len(chosen) < MOST_CURVES:
                chosen[f"g{len(chosen)}"] = name, alone_in(pair, group) if pair.by else pair
    curves, shifts = {}, {}
    for value, (name, pair) in chosen.items():
        table = compare(pair, halvings(pair))
        columns = vega.curve(both(pair), MOST_STEPS)
        columns["label"] = [label.rsplit(", ", 1)[-1] for label in columns["label"]]
        columns["wide"] = [BENEATH if label == "baseline" else ABOVE for label in columns["label"]]
        drawn = [row for row in in_groups(table) if is_drawn(table, row)]
        points = ratio_columns(table, drawn, [percentile_text(table, row) for row in drawn])
        curves[value] = View({"points": columns}, f"{name}: {pair.run.samples:,} against {pair.baseline.samples:,} samples.")
        shifts[value] = View({"points": points}, f"{name}: {_parting(table, drawn)}", {"most": max(columns["x"])}, TALL)
    if not curves:
        return []
    charts = [
        Chart("curves", "Both distributions", "distribution", curves, "group"),
        Chart("shifts", "Ratio of both distributions", "shifts", shifts, "group"),
    ]
    control = Control("group", "Of", [(value, name) for value, (name, _) in chosen.items()])
    return [Panel("shifts", "Where the distributions differ", DISTRIBUTIONS_HINT, charts, controls=[control])]


def _parting(table: Table, rows: Sequence[int]) -> str:
    """Return from which percentile on the run is certain to be slower, or faster."""
    stretches = []
    for kind, name, beyond in (("slower", "lo", 1), ("faster", "hi", -1)):
        mine = [row for row in rows if beyond * (float(table.columns[name][row]) - 1) > 0]
        if mine:
            first, last = percentile_text(table, mine[0]), percentile_text(table, mine[-1])
            stretches.append(f"{kind} at {first}" + (f" to {last}" if last != first else "") + f" ({len(mine)} of {len(rows)})")
    return f"certain to be {'; '.join(stretches)}." if stretches else "no percentile is certain to differ."


def _over_time(windows: Pair, compared: Compared) -> list[Panel]:
    """Return the percentile over elapsed time of both runs, and their heat maps."""
    answer = both(Pair(elapsed(windows.baseline), elapsed(windows.run)))
    whole = over_all(both(windows))  # by the clock: elapsed times may begin below zero, where a range would be cut in two
    reach = [stamp / vega.MS for stamp in _span(answer)]
    shared = {"gaps": _silence(answer), "marks": vega.noted(())}
    views = {}
    for percentile in compared.percentiles:
        wanted = [percentile]
        tables = {"points": vega.points(answer, wanted), "thin": vega.thin(answer, wanted), "whole": vega.points(whole, wanted)}
        says = f"{_highest(percentile, tables)} Windows of {number(answer.step_ns / SECOND)} s."
        views[percentile.name] = View({**tables, **shared}, says, {"clock": "elapsed", "range": reach})
    squares = {name: column for name, column in cells(windows).items() if name not in ("cum", "over")}
    everything = " and ".join(f"{side.samples:,}" for side in (windows.baseline, windows.run))
    weighed = f" E{MIXED[1:]}." if any(MIXED in side.warnings for side in (windows.baseline, windows.run)) else ""
    says = f"{everything} samples; time, latency and shades are on the same scales.{weighed}"
    maps = View({"cells": squares}, says, {"tall": TALL})
    return [
        _one_chart("elapsed", "Percentile over elapsed time", ELAPSED_HINT, "percentiles", views, "p"),
        _one_chart("maps", "Heat maps of both runs", MAPS_HINT, "maps", {"": maps}, controls=[SHADING, PALETTE]),
    ]


def _one_chart(name: str, title: str, hint: str, spec: str, views: Mapping[str, View], chosen_by: str = "", **more: Any) -> Panel:
    """Return a panel with one chart, which is called as the panel is."""
    return Panel(name, title, hint, [Chart(name, title, spec, views, chosen_by)], **more)


def _silence(answer: Answer) -> vega.Columns:
    """Return the stretches in which neither run has a window; those of both need not begin at the same moments."""
    starts = np.concatenate([part.start_ns for part in answer.parts])
    order = np.argsort(starts, kind="stable")
    ends = np.maximum.accumulate(np.concatenate([part.end_ns for part in answer.parts])[order])
    silent = np.flatnonzero(starts[order][1:] > ends[:-1])
    return {"t": (ends[silent] / vega.MS).tolist(), "t2": (starts[order][silent + 1] / vega.MS).tolist()}


def _highest(percentile: Percentile, tables: Mapping[str, vega.Columns]) -> str:
    """Return the highest window of each run; of those with too few samples for the percentile their maximum counts."""
    peaks = []
    for side in ("baseline", "run"):
        few = {name: [row for row in vega.rows(tables[name]) if row["label"] == side] for name in ("points", "thin")}
        mine = [*few["points"], *few["thin"]]
        if mine:
            top = max(mine, key=lambda row: float(row["v"]))
            what = "" if top in few["points"] else f", the maximum: too few samples for {percentile.name}"
            value = ("≥ " if top["open"] else "") + shown_latency(top["v"])
            peaks.append(f"{side} {value} ({top['t'] / 1000:.1f} to {top['t2'] / 1000:.1f} s{what})")
    return f"Highest {percentile.name} of a window: {', '.join(peaks)}."


# Breaths of two runs on the same axes: the panel that a comparison shows where both have Snabb timelines.
#
# Processes that both runs have are compared one by one, those that became dearest first; the one whose longest breath grew most
# is always among the pictures. Where none bears the same name (a process may be called by its number, which is another each
# time) all processes of a run are taken together.


BREATHS_HINT = (
    "Cycles of breaths by the packets that they moved: the longest and a random sample of each run, and the line of least "
    "squares through all of its stored breaths. A steeper line: each packet costs more. One that begins higher: each breath "
    "does. The residual is how far breaths lie from the line, as a standard deviation."
)
TOGETHER = "all processes"
MOST_PICTURES, MOST_POINTS = 4, 1500
STEPS = 40
HEIGHT, FLAT, GAP = 320, 230, 92
BREATH_TITLES = (
    *("process", "cycles a packet", "in the run", "ratio", "longest", "in the run", "residual", "in the run"),
    *("base + a packet", "in the run"),
)


@dataclass(frozen=True, slots=True)
class Side:
    """What breaths of one run cost, by the picture that they are in."""

    label: str
    kept: StoredBreaths
    name: Name
    costs: dict[str, Cost]
    fits: dict[str, Fit]


def breath_panel(baseline: StoredBreaths, run: StoredBreaths) -> Panel | None:
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
    rows, axes = _breath_table(sides, order), [Control("axis", "Axes", (("log", "log"), ("linear", "linear")))]
    return _one_chart("breaths", "Breath efficiency", BREATHS_HINT, "breaths", {"": view}, table=rows, controls=axes)


def _sides(baseline: StoredBreaths, run: StoredBreaths) -> tuple[Side, Side]:
    windows = [breath_rows(kept.windows) for kept in (baseline, run)]
    shared = set.intersection(*({stream.process for stream in own.table} for own in windows))

    def name(series: Series) -> str:
        return printable(series.process or "-") if shared else TOGETHER

    sides = []
    for word, kept, own in zip(SIDES, (baseline, run), windows, strict=True):
        runs = ", ".join(sorted({stream.run for stream in own.table}))
        costs_by_process = {cost.name: cost for cost in costs(own, name)}
        sides.append(Side(printable(f"{word} {runs}"), kept, name, costs_by_process, fits(own, name)))
    return sides[0], sides[1]


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
    points: list[tuple[Any, ...]] = []
    lines: list[tuple[Any, ...]] = []
    for side in sides:
        sample = thinned(side.kept.sample, MOST_POINTS)
        names = [side.name(stream) for stream in sample.table]
        facets = [names[code] for code in sample.series.tolist()]
        for facet, x, y in zip(facets, sample.packets.tolist(), sample.cycles.tolist(), strict=True):
            if facet in place:
                points.append((facet, place[facet], side.label, x, y))
        for process in shown:
            own = sample.packets[np.array([facet == process for facet in facets], np.bool_)]
            line = _line(side.fits[process], int(own.min(initial=0)), int(own.max(initial=0)))
            lines += [(process, place[process], side.label, x, v) for x, v in line]
    notes_of = [" and ".join(f"{side.costs[process].n:,} breaths" for side in sides) for process in shown]
    return {
        "facets": {"facet": shown, "place": [*range(len(shown))], "title": shown, "note": notes_of},
        "points": vega.columns_of(("facet", "place", "label", "x", "y"), points),
        "lines": vega.columns_of(("facet", "place", "label", "x", "v"), lines),
    }


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


def _breath_table(sides: tuple[Side, Side], order: list[str]) -> str:
    rows = []
    for process in order:
        before, after = (side.costs[process].cycles_a_packet for side in sides)
        ratio = _ratio(sides, process)
        found = [side.fits[process] for side in sides]
        cells = (
            *(figure(before), figure(after), figure(ratio) if ratio else ""),
            *(f"{side.costs[process].longest:,}" for side in sides),
            *("" if math.isnan(fit.residual) else figure(fit.residual, 4) for fit in found),
            *(fit.why or f"{figure(fit.base, 4)} + {figure(fit.slope)}" for fit in found),
        )
        rows.append(f'<tr><th scope="row">{text(process)}</th>{"".join(f"<td>{text(cell)}</td>" for cell in cells)}</tr>')
    return table_of("What breaths cost, in cycles: in the baseline, then in the run", BREATH_TITLES, rows, 1, folded=False)
