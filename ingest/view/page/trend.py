"""The page of a trend: what each run measured, with bounds, levels and where these changed; a panel for each group and kind.

Its numbers are those of `tailboard compare --trend`: tables hold each number as csv has it (`data value`), charts draw them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ingest.core.errors import counted
from ingest.core.labels import RunLabels
from ingest.core.units import number, spaced
from ingest.query.change_points import METHOD
from ingest.query.compare import METHOD as OF_WINDOWS
from ingest.query.table import Table
from ingest.query.trend import Judgement, Night, changed_labels, series_of
from ingest.view import vega
from ingest.view.page.compare import group_text
from ingest.view.page.finished import Chart, Head, Panel, View, finished_page, table_of
from ingest.view.page.template import between, exact, shown_latency, text
from ingest.view.terminal.comparison import ratio_text
from ingest.view.terminal.tables import bound_text
from ingest.view.terminal.trend import (
    amount,
    between_text,
    bound_of,
    drawn_as,
    judgement_text,
    kinds_of,
    labels_text,
    minute_text,
    opening,
    points,
    ranked,
)
from ingest.view.terminal.trend import notes as notes_of

MOST_PANELS, MOST_FOLDED = 40, 24
KINDS = {"latency": "Percentile by run", "throughput": "Throughput by run", "share": "Share of slow samples by run"}
TITLES = ("run", "start", "measure", "value", "95 % bounds", "n", "level", "change")


def trend_page(
    nights: Sequence[Night],
    table: Table,
    judgements: Sequence[Judgement],
    verdict: Sequence[str] = (),
    notes: Sequence[str] = (),
    *,
    bad: bool = False,
    labels: RunLabels | None = None,
) -> str:
    """Return the page of the table of `trend`; `verdict` is what the command says of the newest run, where it judges that.

    `judgements` are the newest run against those before it, `notes` what else a reader must know, `labels` those of each run.
    UsageError where vl-convert-python is not installed.
    """
    names = [name for name in table.labels if name != "run"]
    groups: dict[tuple[str, str], list[int]] = {}
    for row in range(len(table)):
        key = group_text(table, row, names), drawn_as(str(table.columns["measure"][row]))
        groups.setdefault(key, []).append(row)
    first = next(map(group_of, ranked(judgements)), None)
    shown = sorted(groups.items(), key=lambda entry: entry[0] != first)[:MOST_PANELS]  # what the verdict is about comes first
    left = [f"{len(groups)} groups: the page shows the first {MOST_PANELS}, csv has all"] if len(groups) > MOST_PANELS else []
    judged: dict[tuple[str, str], list[Judgement]] = {}
    for each in judgements:
        judged.setdefault(group_of(each), []).append(each)
    panels = [
        _panel(place, key, nights, table.take(rows), judged.get(key, ()), labels or {}) for place, (key, rows) in enumerate(shown)
    ]
    runs = f"{len(nights)} runs" if len(nights) > 1 else nights[0].run
    head = Head(
        f"Trend of {runs}" + (f", {nights[0].run} to {nights[-1].run}" if len(nights) > 1 else ""),
        f"{kinds_of(nights)} latency, {sum(night.answer.samples for night in nights):,} samples",
        _facts(nights, table),
        [*notes, *notes_of(nights, table), *left],
        [*opening(table, judgements, nights[-1].run), *verdict],
        bad,
    )
    return finished_page(head, panels, labels="Facts of the runs")


def group_of(judgement: Judgement) -> tuple[str, str]:
    """Return the group and the kind of measure of a judgement, which have a panel."""
    return vega.printable(", ".join(label or "-" for label in judgement.labels)) or "all", drawn_as(judgement.measure)


def _facts(nights: Sequence[Night], table: Table) -> list[tuple[str, str]]:
    stamped = all(night.start_ns for night in nights)
    return [
        ("Runs", f"{len(nights)}"),
        ("First", nights[0].run),
        ("Newest", nights[-1].run),
        ("Began", between(nights[0].start_ns, nights[-1].start_ns) if stamped else "not known of all: in the order of names"),
        ("Latency", kinds_of(nights)),
        ("Samples", f"{sum(night.answer.samples for night in nights):,}"),
        ("Error bound of the bins", spaced(bound_text(bound_of(nights, table)))),
        ("Bounds, 95 %", OF_WINDOWS),
        ("Changes of level", METHOD),
    ]


def _panel(
    place: int, key: tuple[str, str], nights: Sequence[Night], table: Table, judgements: Sequence[Judgement], labels: RunLabels
) -> Panel:
    """Return the panel of one group and kind of measure: a line for each measure, and its table."""
    name, kind = key
    columns = points(nights, table)
    order = sorted(range(len(columns["i"])), key=lambda at: columns["i"][at])
    columns = {key: [column[at] for at in order] for key, column in columns.items()}
    filled = [row for row in range(len(table)) if not math.isnan(table.columns["value"][row])]
    columns["label"] = [str(table.columns["measure"][filled[at]]) for at in order]
    columns = _with_all_runs(columns, nights, str(table.columns["measure"][0]), kind)
    says = " ".join([*(f"{judgement_text(judgement)}." for judgement in judgements), *_changes(table, labels)])
    view = View({"points": columns}, says if filled else "Too few samples in every run.")
    title = f"{KINDS[kind]}: {name}" if name != "all" else KINDS[kind]
    hint = (
        "A dot for each run with its 95 % bounds, where it has any. The wide pale line is the level: the median since the last "
        "change. A triangle marks the first run of a new level, with the ratio of both and the levels themselves."
    )
    lines = [_line(table, row) for row in range(len(table))]
    folded = len(lines) > MOST_FOLDED
    many = f", {counted(len(lines), 'row')}" if folded else ""
    rows = table_of(f"Values, bounds and levels{many}", TITLES, lines, 2, folded=folded)
    return Panel(f"trend-{place}", title, hint, [Chart(f"trend-{place}", title, "trend", {"": view})], rows)


def _with_all_runs(columns: vega.Columns, nights: Sequence[Night], label: str, kind: str) -> vega.Columns:
    """Return the points with one that is not drawn for each run without any, so that it has its place on the axis."""
    rows: list[dict[str, Any]] = vega.rows(columns)
    for place, night in enumerate(nights):
        if place not in columns["i"]:
            named = {"i": place, "run": vega.printable(night.run), "t": night.start_ns / vega.MS, "label": label, "m": kind}
            rows.append({**dict.fromkeys(columns, 0), **named})
    return vega.columns_of(columns, [row.values() for row in rows])


def _changes(table: Table, labels: RunLabels) -> list[str]:
    """Return a sentence for each change of level."""
    sentences = []
    for rows in series_of(table).values():
        for before, row in pairwise(rows):
            change, measure = table.columns["change"][row], table.columns["measure"][row]
            if not math.isnan(change):
                levels = [_amount(measure, float(table.columns["level"][place])) for place in (before, row)]
                earlier = f"from {levels[0]} " if levels[0] else ""
                runs = [str(table.columns["run"][place]) for place in (before, row)]
                where = f"{runs[1]}{labels_text(changed_labels(labels, *runs))}"
                sentences.append(f"{measure} changed at {where}: {ratio_text(change)} times, {earlier}to {levels[1]}.")
    return sentences or ["No change of level."]


def _line(table: Table, row: int) -> str:
    row_values = {name: column[row] for name, column in table.columns.items()}
    measure, low, high = str(row_values["measure"]), float(row_values["lo"]), float(row_values["hi"])
    start = minute_text(int(row_values["start_ns"]))
    value = _amount(measure, float(row_values["value"]))
    value = f"≥ {value}" if value and row_values["value_censored"] else value
    change = ratio_text(float(row_values["change"]))
    bounds = between_text(_amount(measure, low), _amount(measure, high))
    cells = [
        f'<th scope="row" class="left">{text(str(row_values["run"]))}</th>',
        f'<td class="left">{start}</td>',
        f"<td>{text(measure)}</td>",
        exact(row_values["value"], value),
        f'<td data-lo="{number(low)}" data-hi="{number(high)}">{bounds}</td>',
        exact(row_values["count"], f"{int(row_values['count']):,}"),
        exact(row_values["level"], _amount(measure, float(row_values["level"]))),
        exact(row_values["change"], change and f"{change} times"),
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _amount(measure: str, value: float) -> str:
    """Return a value of a measure as the page writes it."""
    return shown_latency(value) if drawn_as(measure) == "latency" else amount(measure, value)
