"""The page of a trend: a percentile by run, with its bounds, its levels and where these changed; a panel for each group.

Its numbers are those of `tailboard trend`: the tables hold each number as csv has it (`data value`), the charts draw them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ingest import __version__
from ingest.core.writing import number, utc
from ingest.query.table import Table
from ingest.query.trend import METHOD, Judgement, Night
from ingest.view import vega
from ingest.view.page.finished.compare_tables import exact, group_text, percentile_text
from ingest.view.page.finished.page import Chart, Head, Panel, View, page_of, table_of
from ingest.view.page.wording import between, shown_latency, spaced, text
from ingest.view.terminal.comparison import ratio_text
from ingest.view.terminal.tables import bound_text
from ingest.view.terminal.trend import bound_of, points
from ingest.view.terminal.trend import notes as notes_of

MOST_PANELS, MOST_FOLDED, MOST_NAMED = 40, 24, 3
TITLES = ("run", "start", "", "value", "95 % bounds", "n", "level", "change")


def trend_page(
    nights: Sequence[Night],
    table: Table,
    judgements: Sequence[Judgement],
    verdict: Sequence[str] = (),
    notes: Sequence[str] = (),
    *,
    bad: bool = False,
) -> str:
    """Return the page of the table of `trend`; `verdict` is what the command says of the newest run, where it judges that.

    `judgements` are the newest run against those before it, `notes` what else a reader must know. UsageError where
    vl-convert-python is not installed.
    """
    labels = [name for name in table.labels if name != "run"]
    groups: dict[str, list[int]] = {}
    for row in range(len(table)):
        groups.setdefault(group_text(table, row, labels), []).append(row)
    shown = list(groups.items())[:MOST_PANELS]
    left = [f"{len(groups)} groups: the page shows the first {MOST_PANELS}, csv has all"] if len(groups) > MOST_PANELS else []
    panels = [
        _panel(place, name, nights, table.take(rows), [one for one in judgements if group_of(one) == name])
        for place, (name, rows) in enumerate(shown)
    ]
    runs = f"{len(nights)} runs" if len(nights) > 1 else nights[0].run
    head = Head(
        f"Trend of {runs}" + (f", {nights[0].run} to {nights[-1].run}" if len(nights) > 1 else ""),
        f"{_kinds(nights)} latency, {sum(night.answer.samples for night in nights):,} samples",
        _facts(nights, table),
        [*notes, *notes_of(nights, table), *left],
        verdict or _newest(judgements),
        bad,
    )
    return page_of(head, panels, labels="Facts of the runs")


def group_of(judgement: Judgement) -> str:
    """Return the name of the panel that a judgement belongs to."""
    return vega.printable(", ".join(label or "-" for label in judgement.labels)) or "all"


def _kinds(nights: Sequence[Night]) -> str:
    return ", ".join(sorted({night.answer.kind for night in nights}))


def _facts(nights: Sequence[Night], table: Table) -> list[tuple[str, str]]:
    stamped = all(night.start_ns for night in nights)
    return [
        ("Runs", f"{len(nights)}"),
        ("First", nights[0].run),
        ("Newest", nights[-1].run),
        ("Began", between(nights[0].start_ns, nights[-1].start_ns) if stamped else "not known of all: in the order of names"),
        ("Latency", _kinds(nights)),
        ("Samples", f"{sum(night.answer.samples for night in nights):,}"),
        ("Error bound of the bins", spaced(bound_text(bound_of(nights, table), "± "))),
        ("Bounds, 95 %", "order statistics (exact binomial ranks), bins included"),
        ("Changes of level", METHOD),
        ("Made by", f"tailboard {__version__}"),
    ]


def _newest(judgements: Sequence[Judgement]) -> list[str]:
    """Return how the newest run stands, the largest certain ratios first."""
    told = sorted((one for one in judgements if not math.isnan(one.least)), key=lambda one: -one.least)[:MOST_NAMED]
    return [f"{one.run}: {' '.join(label or '-' for label in one.labels)} {_against(one)}".replace("  ", " ") for one in told]


def _against(one: Judgement) -> str:
    usual = f"the median of the {one.earlier} runs before" if one.earlier > 1 else "the run before"
    least = "" if math.isnan(one.least) else f", at least {ratio_text(one.least)}"
    name = f"p{one.percentile:.15g}"
    return (
        f"{name} is {ratio_text(one.ratio)} times {usual}{least}" if not math.isnan(one.ratio) else f"{name} has too few samples"
    )


def _panel(place: int, name: str, nights: Sequence[Night], table: Table, judgements: Sequence[Judgement]) -> Panel:
    """Return the panel of one group: a line for each percentile, and its table."""
    columns = points(nights, table)
    order = sorted(range(len(columns["i"])), key=lambda at: columns["i"][at])
    columns = {key: [column[at] for at in order] for key, column in columns.items()}
    told = [row for row in range(len(table)) if not math.isnan(table.columns["value"][row])]
    columns["label"] = [percentile_text(table, told[at]) for at in order]
    columns = _with_all_runs(columns, nights, percentile_text(table, 0))
    newest = "; ".join(_against(one) for one in judgements)
    says = " ".join([*([f"{judgements[0].run}: {newest}."] if judgements else []), *_changes(table)])
    view = View({"points": columns}, says if told else "Too few samples in every run.")
    title = f"Percentile by run: {name}" if name != "all" else "Percentile by run"
    hint = (
        "A dot for each run with its 95 % bounds; the wide pale line is the level, the median since the last change. "
        "A triangle marks the first run of a new level, with the ratio of both and the levels themselves."
    )
    lines = [_line(table, row) for row in range(len(table))]
    folded = len(lines) > MOST_FOLDED
    rows = table_of(f"{len(lines)} rows" if folded else "Values, bounds and levels", TITLES, lines, 2, folded=folded)
    return Panel(f"trend-{place}", title, hint, [Chart(f"trend-{place}", title, "trend", {"": view})], rows)


def _with_all_runs(columns: vega.Columns, nights: Sequence[Night], label: str) -> vega.Columns:
    """Return the points with one that is not drawn for each run without any, so that it has its place on the axis."""
    known = set(columns["i"])
    rows: list[dict[str, Any]] = vega.rows(columns)
    for place, night in enumerate(nights):
        if place not in known:
            nothing: Mapping[str, Any] = dict.fromkeys(columns, 0)
            rows.append({**nothing, "i": place, "run": vega.printable(night.run), "t": night.start_ns / vega.MS, "label": label})
    return {key: [row[key] for row in rows] for key in columns}


def _changes(table: Table) -> list[str]:
    """Return a sentence for each change of level."""
    found = []
    for row in range(len(table)):
        change, level = float(table.columns["change"][row]), float(table.columns["level"][row])
        if not math.isnan(change):
            before = f"from {shown_latency(level / change)} " if 0 < change < math.inf else ""
            found.append(
                f"{percentile_text(table, row)} changed at {table.columns['run'][row]}: {ratio_text(change)} times, "
                f"{before}to {shown_latency(level)}."
            )
    return found or ["No change of level."]


def _line(table: Table, row: int) -> str:
    told = {name: column[row] for name, column in table.columns.items()}
    low, high = float(told["lo"]), float(told["hi"])
    bounds = f"{shown_latency(low) or '?'} to {shown_latency(high) or '?'}" if shown_latency(low) or shown_latency(high) else ""
    start = utc(int(told["start_ns"]))[:16].replace("T", " ") if told["start_ns"] else ""
    value = shown_latency(told["value"]) and ("≥ " if told["value_censored"] else "") + shown_latency(told["value"])
    change = ratio_text(float(told["change"]))
    cells = [
        f'<th scope="row" class="left">{text(str(told["run"]))}</th>',
        f'<td class="left">{start}</td>',
        f"<td>{percentile_text(table, row)}</td>",
        exact(told["value"], value),
        f'<td data-lo="{number(low)}" data-hi="{number(high)}">{bounds}</td>',
        exact(told["count"], f"{int(told['count']):,}"),
        exact(told["level"], shown_latency(told["level"])),
        exact(told["change"], change and f"{change} times"),
    ]
    return f"<tr>{''.join(cells)}</tr>"
