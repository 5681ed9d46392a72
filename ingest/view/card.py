"""A card: one picture of 1200 x 630 for a chat or a paper: the story of a run, its heat map, the p99 of its hosts over time."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from ingest.core.errors import UsageError, counted
from ingest.core.units import format_duration, latency
from ingest.query.heatmap import cells, in_windows
from ingest.query.means import check_bins
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer
from ingest.query.story.ground import Story
from ingest.view import vega
from ingest.view.pictures import LINE, MOST_COLUMNS, clock_of_answer, cut_in_the_middle, map_tables
from ingest.view.specs import derived

MOST_SENTENCES, LINES_A_SENTENCE, LETTERS = 3, 2, 138
MOST_HOSTS = 6
LONGEST_HOST = 11


def card_picture(story: Story, whole: Answer, windows: Answer, hosts: Answer, clock: str = "utc") -> dict[str, Any]:
    """Return the filled spec of a card of one run.

    `windows` has all groups added up, `hosts` is by host (both in windows of the same width), `whole` is by host over the whole
    range. UsageError where there are several runs.
    """
    check_bins(windows, "cards")
    if len(vega.group_names(windows)) > 1:
        raise UsageError(f"a card shows one run, here are {len(windows.runs)}: choose with --run, or add --merge-runs")
    heat_map = cells(in_windows(windows, MOST_COLUMNS), vega.EIGHTHS)
    table, rows = _hosts_of(whole)
    places = {name: place for place, name in enumerate(rows)}
    strips = [
        (t, t2, v, places[label])
        for columns in (vega.points(hosts, LINE), vega.thin(hosts, LINE))
        for t, t2, v, label in zip(*(columns[name] for name in ("t", "t2", "v", "label")), strict=True)
        if label in places and v > 0
    ]
    beside = {"strips": vega.columns_of(("t", "t2", "v", "row"), strips), "hosts": table}
    title = vega.printable(", ".join(windows.runs))
    tables = map_tables(heat_map, windows)
    line = any(value > 0 for value in tables["points"]["v"])  # of windows with samples enough for it
    spec = derived("card", title=title, lines=lines_of(story, windows, line=line, strips=bool(strips)))
    return vega.with_values(spec, {**tables, **beside}, **clock_of_answer(windows, clock))


def lines_of(story: Story, answer: Answer, *, line: bool, strips: bool) -> list[str]:
    """Return the text of a card: the first findings, each in at most LINES_A_SENTENCE lines, and what is drawn below them."""
    sentences = [finding.text for finding in story.findings[:MOST_SENTENCES]] or [story.nothing]
    lines: list[str] = []
    for sentence in sentences:
        lines += textwrap.wrap(vega.printable(sentence), LETTERS, max_lines=LINES_A_SENTENCE, placeholder=" …")
    step = f" in windows of {format_duration(answer.step_ns)}" if answer.step_ns else ""
    drawn = [word for word, there in (("the line is p99", line), ("the strips p99 by host", strips)) if there]
    of = f"{answer.latency} of {counted(answer.samples, 'sample')}{step}"
    return [*lines, f"Below: {of}{'; ' if drawn else ''}{', '.join(drawn)}."]


def _hosts_of(whole: Answer) -> tuple[vega.Columns, Sequence[str]]:
    """Return name and values of the hosts with the highest maximum, by the name that the groups have; in the order of names."""
    table = percentiles(whole, Wanted(LINE))
    names = vega.group_names(whole)
    host = whole.by.index("host")
    keys = list(zip(*(table.columns[name] for name in whole.by), strict=True))
    p99, largest = (np.asarray(table.columns[name], np.float64) for name in ("p99", "max"))
    worst = np.argsort(-np.where(np.isnan(p99), largest, p99), kind="stable")[:MOST_HOSTS].tolist()
    shown = [row for row in sorted(worst, key=lambda row: names[keys[row]]) if keys[row][host]]
    known = [f"p99 {latency(float(p99[row]))}, " if p99[row] == p99[row] else "" for row in shown]  # not NaN
    columns = {
        "row": [*range(len(shown))],
        "name": [cut_in_the_middle(vega.printable(keys[row][host]), LONGEST_HOST) for row in shown],
        "values": [f"{start}max {latency(float(largest[row]))}" for start, row in zip(known, shown, strict=True)],
    }
    return columns, [names[keys[row]] for row in shown]
