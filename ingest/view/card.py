"""A card: one picture of 1200 x 630 for a chat or a paper: the story of a run, its heat map, the p99 of its hosts over time."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from ingest.core.errors import UsageError, counted
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import format_duration, latency
from ingest.query.coverage import bands
from ingest.query.heatmap import cells, in_windows
from ingest.query.means import check_bins
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer
from ingest.query.story.ground import Story
from ingest.view import vega
from ingest.view.pictures import MOST_COLUMNS, clock_of_answer, cut_in_the_middle
from ingest.view.specs import derived

WIDTH, HEIGHT = 1200, 630
MOST_SENTENCES, LINES_A_SENTENCE, LINE = 3, 2, 138
MOST_HOSTS = 6
LONGEST_HOST = 11
P99 = parse_percentiles("99")


def card_picture(story: Story, whole: Answer, windows: Answer, hosts: Answer, clock: str = "utc") -> dict[str, Any]:
    """Return the filled spec of a card of one run.

    `windows` has all groups added up, `hosts` is by host (both in windows of the same width), `whole` is by host over the whole
    range. UsageError where there are several runs.
    """
    check_bins(windows, "cards")
    if len(vega.group_names(windows)) > 1:
        raise UsageError(f"a card shows one run, here are {len(windows.runs)}: choose with --run, or add --merge-runs")
    heat_map = cells(in_windows(windows, MOST_COLUMNS), vega.EIGHTHS)
    columns = vega.cell_columns(heat_map, windows)
    table, rows = _hosts_of(whole)
    places = {name: place for place, name in enumerate(rows)}
    strips: vega.Columns = {"t": [], "t2": [], "v": [], "row": []}
    for columns_of in (vega.points(hosts, P99), vega.thin(hosts, P99)):
        for t, t2, v, label in zip(*(columns_of[name] for name in ("t", "t2", "v", "label")), strict=True):
            if label in places and v > 0:
                for name, value in zip(strips, (t, t2, v, places[label]), strict=True):
                    strips[name].append(value)
    tables = {
        "cells": {name: column for name, column in columns.items() if name != "group"},
        "points": vega.points(windows, P99),
        "gaps": vega.gaps(windows),
        "marks": vega.noted(bands(windows)),
        "strips": strips,
        "hosts": table,
    }
    spec = derived(
        "card", title=vega.printable(", ".join(windows.runs)), lines=lines_of(story, windows, len(whole.parts and rows))
    )
    return vega.with_values(spec, tables, **clock_of_answer(windows, clock))


def lines_of(story: Story, answer: Answer, hosts: int) -> list[str]:
    """Return the text of a card: the first findings, each in at most LINES_A_SENTENCE lines, and what is drawn below them."""
    sentences = [finding.text for finding in story.findings[:MOST_SENTENCES]] or [story.nothing]
    lines: list[str] = []
    for sentence in sentences:
        lines += textwrap.wrap(vega.printable(sentence), LINE, max_lines=LINES_A_SENTENCE, placeholder=" …")
    step = f" in windows of {format_duration(answer.step_ns)}" if answer.step_ns else ""
    drawn = f"{answer.latency} of {counted(answer.samples, 'sample')}{step}; the line is p99"
    return [*lines, f"Below: {drawn}{', the strips p99 by host' if hosts else ''}."]


def _hosts_of(whole: Answer) -> tuple[vega.Columns, Sequence[str]]:
    """Return name and values of the hosts with the highest maximum, by the name that the groups have; in the order of names."""
    table = percentiles(whole, Wanted(P99))
    names = vega.group_names(whole)
    host = whole.by.index("host")
    keys = list(zip(*(table.columns[name] for name in whole.by), strict=True))
    worst = sorted(range(len(table)), key=lambda row: -_tail(table.columns, row))[:MOST_HOSTS]
    columns: vega.Columns = {"row": [], "name": [], "values": []}
    shown = [row for row in sorted(worst, key=lambda row: names[keys[row]]) if keys[row][host]]
    for place, row in enumerate(shown):
        p99, largest = float(table.columns["p99"][row]), float(table.columns["max"][row])
        columns["row"].append(place)
        columns["name"].append(cut_in_the_middle(vega.printable(keys[row][host]), LONGEST_HOST))
        columns["values"].append(f"p99 {latency(p99)}, max {latency(largest)}" if p99 == p99 else f"max {latency(largest)}")  # noqa: PLR0124  # NaN
    return columns, [names[keys[row]] for row in shown]


def _tail(columns: Any, row: int) -> float:
    p99 = float(columns["p99"][row])
    return p99 if p99 == p99 else float(columns["max"][row])  # noqa: PLR0124  # NaN
