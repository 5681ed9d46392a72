"""What the page of a comparison draws and lists: ratios as rows of the specs, lines of tables as HTML, and sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ingest.core.writing import number
from ingest.query.table import Table
from ingest.view import vega
from ingest.view.page.wording import exact, shown_latency, text
from ingest.view.terminal.comparison import bounds_text, counts_text, label_text, ratio_text, verdict

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
    columns: vega.Columns = {name: [] for name in COLUMNS}
    logs = [math.log(table.columns["ratio"][row]) for row in rows]
    lowest, highest = (math.exp(REACH * power) for power in (min(logs, default=0), max(logs, default=0)))
    lowest, highest = min(lowest, 1 / LEAST_REACH), max(highest, LEAST_REACH)
    for at, (row, name) in enumerate(zip(rows, names, strict=True)):
        row_values = {key: column[row] for key, column in table.columns.items()}
        low, high = float(row_values["lo"]), float(row_values["hi"])
        first, last = max(low, lowest), min(high, highest)
        cells = {
            "i": at,
            "row": name,
            "x": 1 / (1 - min(float(row_values["percentile"]) / 100, 1 - 1e-12)),
            **{key: float(row_values[key]) for key in ("ratio", "lo", "hi", "baseline", "run")},
            **{f"open_{side}": int(row_values[f"{side}_censored"]) for side in SIDES},
            **{f"n_{side}": int(row_values[f"count_{side}"]) for side in SIDES},
            "verdict": verdict(table, row),
            "first": lowest if math.isnan(low) else first,
            "last": highest if math.isnan(high) else last,
            "cut_low": int(math.isnan(low) or first > low),
            "cut_high": int(math.isnan(high) or last < high),
        }
        for key, cell in cells.items():
            columns[key].append(cell)
    return columns


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
    low, high = float(row_values["lo"]), float(row_values["hi"])
    what = verdict(table, row)
    kind = what if what in ("slower", "faster") else ""
    cells = [
        *(f'<td class="left label">{text(str(row_values[name]) or "-")}</td>' for name in labels),
        f'<th scope="row">{percentile_text(table, row)}</th>',
        *(
            exact(row_values[side], (shown_latency(row_values[side]) and least[side] + shown_latency(row_values[side])))
            for side in least
        ),
        exact(
            row_values["ratio"], ratio_text(float(row_values["ratio"])) and least["run"] + ratio_text(float(row_values["ratio"]))
        ),
        f'<td data-lo="{number(low)}" data-hi="{number(high)}">{bounds_text(low, high)}</td>',
        *(exact(row_values[f"count_{side}"], f"{int(row_values[f'count_{side}']):,}") for side in least),
        f'<td class="left {kind}">{text(what)}</td>',
    ]
    return f"<tr>{''.join(cells)}</tr>"


def changes_sentence(table: Table, rows: Sequence[int], labels: Sequence[str]) -> str:
    """Return the largest effects by name, then how many rows are slower, faster, alike or cannot be judged."""
    sentences = []
    for kind in ("slower", "faster"):
        mine = [row for row in rows if verdict(table, row) == kind]
        if mine:
            named = ", ".join(_effect(table, row, rows, labels, kind) for row in mine[:MOST_NAMED])
            more = len(mine) - MOST_NAMED
            sentences.append(f"{kind.capitalize()}: {named}{f' and {more} more' if more > 0 else ''}.")
    if not sentences:
        sentences.append("Nothing is certain to have changed.")
    return " ".join([*sentences, *([counts_text(table, rows)] if len(rows) > 1 else [])])


def _effect(table: Table, row: int, rows: Sequence[int], labels: Sequence[str], kind: str) -> str:
    ratio = ratio_text(float(table.columns["ratio"][row]))
    bound, word = ("lo", "least") if kind == "slower" else ("hi", "most")
    several = len(set(table.columns["percentile"][list(rows)])) > 1
    name = " ".join([*([group_text(table, row, labels)] if labels else []), *([percentile_text(table, row)] if several else [])])
    return f"{name} {ratio} times (at {word} {ratio_text(float(table.columns[bound][row]))})"
