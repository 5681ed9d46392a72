"""The page of a comparison: two runs side by side, the largest changes, where their distributions differ, and both over time.

Its numbers are those of `tailboard compare`: the tables hold each number as csv has it (`data value`), the charts draw them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ingest import __version__
from ingest.core.grid import SECOND
from ingest.core.ranks import Percentile
from ingest.core.writing import number, spaced
from ingest.query.compare import FASTER, SLOWER, Pair, compare, halvings, method
from ingest.query.groupings import APART, alone_in, groups_of
from ingest.query.lags import MIXED
from ingest.query.overview import span_of
from ingest.query.question import Answer
from ingest.query.table import Table
from ingest.view import vega
from ingest.view.page.finished.compare_tables import (
    changes_sentence,
    group_text,
    is_drawn,
    line_of,
    names_of,
    percentile_text,
    ratio_columns,
)
from ingest.view.page.finished.page import Chart, Control, Head, Panel, View, finished_page, table_of
from ingest.view.page.report.tables import over_all
from ingest.view.page.wording import duration, shown_latency, time_text
from ingest.view.terminal.comparison import (
    both,
    cells,
    elapsed,
    errors_of,
    in_groups,
    kinds_text,
    notes,
    opening,
    runs_text,
)

MOST_BARS, MOST_LINES, MOST_CURVES, MOST_STEPS = 14, 400, 40, 900
MOST_FOLDED = 16
BAR, MARGIN, TALL = 26, 12, 190
BENEATH, ABOVE = 4, 1.75  # widths of lines: of two that lie on one another both are seen
TITLES = ("percentile", "baseline", "run", "ratio", "95 % bounds", "n baseline", "n run", "verdict")
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
    return finished_page(head, panels, [wanted], labels="Facts of both runs")


def _facts(pair: Pair, table: Table) -> list[tuple[str, str]]:
    """Return (name, value) pairs that the answers hold, the baseline's first."""
    sides = (("baseline", pair.baseline), ("run", pair.run))
    spans = [_span(side) for _, side in sides]
    return [
        *((name.capitalize(), ", ".join(side.runs)) for name, side in sides),
        ("Latency", kinds_text(pair)),
        ("Samples", " and ".join(f"{side.samples:,}" for _, side in sides)),
        ("Elapsed time", " and ".join(duration(high - low) for low, high in spans)),
        *(
            (f"Time of the {name}", time_text(*span, relative=side.relative))
            for (name, side), span in zip(sides, spans, strict=True)
        ),
        ("Error bound of the bins", spaced(errors_of(pair, table, "± "))),
        ("Merged from", " and ".join(side.made_of for _, side in sides)),
        ("Bounds of ratios, 95 %", f"{method(pair)}; of all rows of a table together"),
        ("Made by", f"tailboard {__version__}"),
    ]


def _span(answer: Answer) -> tuple[int, int]:
    return span_of([part for part in answer.parts if len(part)])


def _left_out(compared: Compared) -> list[str]:
    """Return why a page has fewer panels than others."""
    notes_left = []
    if compared.whole is None:
        notes_left.append(
            "lags of different events are stored at different rates: they are compared event by event, not all together"
        )
    if compared.windows is None:
        notes_left.append("several runs or kinds on one side have no common heat map or time axis: choose one run and one kind")
    return notes_left


def _side_by_side(pair: Pair, percentiles: Sequence[Percentile]) -> Panel:
    table = compare(pair, percentiles)
    rows = in_groups(table)
    drawn = [row for row in rows if is_drawn(table, row)]
    groups = [f"{group_text(table, row, pair.by)} " if pair.by else "" for row in drawn]
    names = [f"{group}{percentile_text(table, row)}" for group, row in zip(groups, drawn, strict=True)]
    height = MARGIN + BAR * max(1, len(drawn))
    view = View({"points": ratio_columns(table, drawn, names)}, changes_sentence(table, rows, ()), height=height)
    return Panel(
        "ratios",
        "Percentiles side by side",
        "Ratio of each percentile, run / baseline, with the bounds between which it lies with 95 % confidence (an arrow: "
        "further, or not known). Right of the line the run is slower. With bounds on either side of 1 it cannot be determined.",
        [Chart("ratios", "Percentiles side by side", "movers", {"": view})],
        _table(table, rows, pair.by),
    )


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
    name = _name(labels)
    title = f"Largest changes, by {', '.join(labels)}"
    hint = "The chosen percentile of each group, the largest effect first: the change that is certain, then the ratio itself."
    return Panel(name, title, hint, [Chart(name, title, "movers", views, "p")], _table(table, in_groups(table), labels))


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
    control = Control("group", "Of", [(value, name) for value, (name, *_) in chosen.items()])
    return [
        Panel(
            "shifts",
            "Where the distributions differ",
            "Latency by percentile of both runs: each further nine takes the same width. Below, their ratio at each halving of "
            "1 - q, with its 95 % bounds.",
            [
                Chart("curves", "Both distributions", "distribution", curves, "group"),
                Chart("shifts", "Ratio of both distributions", "shifts", shifts, "group"),
            ],
            controls=[control],
        )
    ]


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
    whole = both(windows)  # by the clock: elapsed times may begin below zero, and there a range would be cut in two
    whole = over_all(whole)
    reach = [stamp / vega.MS for stamp in _span(answer)]
    shared = {"gaps": _silence(answer), "marks": vega.noted(())}
    views = {}
    for percentile in compared.percentiles:
        tables = {
            "points": vega.points(answer, [percentile]),
            "thin": vega.thin(answer, [percentile]),
            "whole": vega.points(whole, [percentile]),
        }
        says = f"{_highest(percentile, tables)} Windows of {number(answer.step_ns / SECOND)} s."
        views[percentile.name] = View({**tables, **shared}, says, {"clock": "elapsed", "range": reach})
    squares = {name: column for name, column in cells(windows).items() if name not in ("cum", "over")}
    everything = " and ".join(f"{side.samples:,}" for side in (windows.baseline, windows.run))
    weighed = f" E{MIXED[1:]}." if any(MIXED in side.warnings for side in (windows.baseline, windows.run)) else ""
    says = f"{everything} samples; time, latency and shades are on the same scales.{weighed}"
    return [
        Panel(
            "elapsed",
            "Percentile over elapsed time",
            "The chosen percentile of both runs, each from its own start: a level line for each window, a circle at the maximum "
            "where it has too few samples. Grey: no completions in either. Dashed: the whole range.",
            [Chart("elapsed", "Percentile over elapsed time", "percentiles", views, "p")],
        ),
        Panel(
            "maps",
            "Heat maps of both runs",
            "Samples by elapsed time and latency. No colour: no samples. A shade means the same in both.",
            [Chart("maps", "Heat maps of both runs", "maps", {"": View({"cells": squares}, says, {"tall": TALL})})],
            controls=[SHADING, PALETTE],
        ),
    ]


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
