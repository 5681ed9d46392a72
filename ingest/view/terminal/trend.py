"""What trend shows people: a table with a small chart, and a picture of each percentile by run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable

from ingest.core.errors import listed
from ingest.core.writing import latency, utc
from ingest.query.precision import Precision, precision_of
from ingest.query.table import Table
from ingest.query.trend import FEW_RUNS, METHOD, Night, series_of
from ingest.view import vega
from ingest.view.marked import escape
from ingest.view.specs import derived
from ingest.view.terminal.comparison import needed, percentiles_in, ratio_text, row_name
from ingest.view.terminal.tables import bound_text, people

CHART = 32
NOTHING = 1e-9


def print_trend(nights: Sequence[Night], table: Table, notes: Sequence[str], *, console: Console | None = None) -> None:
    """Print the runs of each group and percentile in their order, with a chart: the bounds as a line, the value as an o."""
    out = console or people()
    for line in heading(nights, table):
        out.print(escape(line), highlight=False, soft_wrap=True)
    for line in notes:
        out.print(escape(f"note: {line}"), style="dim", highlight=False, soft_wrap=True)
    shown = RichTable(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    names = [name for name in table.labels if name != "run"]
    for name in (*names, "", "run", "start", "value", "95 % bounds", "n", "change", "chart"):
        left = name in (*names, "", "run", "start", "chart")
        shown.add_column(escape(name), justify="left" if left else "right", no_wrap=True)
    charts = _charts(table, names)
    for row in range(len(table)):
        shown.add_row(*(escape(cell) for cell in _cells(table, row, names)), charts[row])
    out.print(shown)


def bound_of(nights: Sequence[Night], table: Table) -> Precision | None:
    """Return how far the values of a table may be off."""
    return precision_of([part for night in nights for part in night.answer.parts], percentiles_in(table))


def heading(nights: Sequence[Night], table: Table) -> list[str]:
    """Return the lines above a table: runs, kind, samples, error bound, methods."""
    runs = f"{len(nights)} runs, {nights[0].run} to {nights[-1].run}" if len(nights) > 1 else nights[0].run
    samples = sum(night.answer.samples for night in nights)
    kind = ", ".join(sorted({night.answer.kind for night in nights}))
    return [
        f"trend of {runs}: {kind} latency, {samples:,} samples, error bound of the bins {bound_text(bound_of(nights, table))}",
        f"bounds by order statistics (exact binomial ranks), bins included; changes by {METHOD}",
    ]


def notes(nights: Sequence[Night], table: Table) -> list[str]:
    """Return the sentences that a reader must see: too few samples, too few runs to tell a change, unlike bins."""
    found = []
    for percentile in sorted(set(table.columns["percentile"].tolist())):
        few = (table.columns["percentile"] == percentile) & np.isnan(table.columns["value"])
        if few.any():
            runs = listed(dict.fromkeys(str(run) for run in table.columns["run"][few]))
            found.append(f"p{percentile:.15g} needs {needed(percentile):,} samples; there are fewer in {runs}")
    newest = nights[-1].run
    gone = [row for row in (rows[-1] for rows in series_of(table).values()) if table.columns["run"][row] != newest]
    if gone:
        found.append(f"{newest} has nothing of {listed(row_name(table, row) for row in gone)}")
    if len(nights) < FEW_RUNS:
        found.append(f"{len(nights)} runs are too few to tell a change of level: it takes {FEW_RUNS}")
    if len({part.layout for night in nights for part in night.answer.parts}) > 1:
        found.append("the runs have unlike bins: each value is right within its own")
    return found


def trend_picture(nights: Sequence[Night], table: Table) -> dict[str, Any]:
    """Return the filled spec of a percentile by run: a line with bounds for each group and percentile, changes marked."""
    samples = sum(night.answer.samples for night in nights)
    kind = ", ".join(sorted({night.answer.kind for night in nights}))
    head = derived(
        "picture",
        text=vega.printable(f"{nights[0].run} to {nights[-1].run}"),
        subtitle=f"{kind} latency, {samples:,} samples in {len(nights)} runs, 95 % bounds by order statistics",
    )
    spec = vega.with_values(vega.spec("trend"), {"points": points(nights, table)})
    return {**spec, **head}


def points(nights: Sequence[Night], table: Table) -> vega.Columns:
    """Return one row per group, percentile and run with a value: i, run, t, label, v, lo, hi, n, open, level, change.

    `i` is the place of the run, `t` its start in epoch ms (0: no clock), latencies are in ns, `change` is 0 where there is
    none. A bound that is not known is the value itself.
    """
    place = {night.run: number for number, night in enumerate(nights)}
    told = [row for row in range(len(table)) if not math.isnan(table.columns["value"][row])]
    column = {name: table.columns[name][told].tolist() for name in table.columns}
    bound = {
        name: [value if math.isnan(one) else one for one, value in zip(column[name], column["value"], strict=True)]
        for name in ("lo", "hi")
    }
    labels = [row_name(table, row) for row in told]
    return {
        "i": [place[run] for run in column["run"]],
        "run": [vega.printable(run) for run in column["run"]],
        "t": [start / vega.MS for start in column["start_ns"]],
        "label": [vega.printable(label) for label in labels],
        "v": column["value"],
        "lo": bound["lo"],
        "hi": bound["hi"],
        "n": column["count"],
        "open": [int(one) for one in column["value_censored"]],
        "level": column["level"],
        "change": [0 if math.isnan(one) or math.isinf(one) else one for one in column["change"]],
    }


def _cells(table: Table, row: int, names: Sequence[str]) -> list[str]:
    told = {name: column[row] for name, column in table.columns.items()}
    low, high = latency(float(told["lo"])), latency(float(told["hi"]))
    bounds = f"{low or '?'} to {high or '?'}" if low or high else ""
    change = "" if math.isnan(told["change"]) else f"{ratio_text(told['change'])} times"
    return [
        *(str(told[name]) or "-" for name in names),
        f"p{told['percentile']:.15g}",
        str(told["run"]),
        utc(int(told["start_ns"]))[:16].replace("T", " ") if told["start_ns"] else "",
        (">= " if told["value_censored"] else "") + latency(float(told["value"])),
        bounds,
        f"{told['count']:,}",
        change,
    ]


def _charts(table: Table, names: Sequence[str]) -> list[str]:
    """Return a line for each row: on one logarithmic scale for the runs of a group and percentile."""
    keys = list(zip(*(table.columns[name] for name in (*names, "percentile")), strict=True))
    lines = [""] * len(table)
    for key in dict.fromkeys(keys):
        mine = [row for row, one in enumerate(keys) if one == key and table.columns["value"][row] > 0]
        logs = {name: np.log(np.asarray(table.columns[name][mine], np.float64)) for name in ("value", "lo", "hi")}
        every = np.concatenate([one[~np.isnan(one)] for one in logs.values()])
        if len(every):
            low, span = float(every.min()), max(float(every.max() - every.min()), NOTHING)
            for at, row in enumerate(mine):
                lines[row] = _line({name: one[at] for name, one in logs.items()}, low, span)
    return lines


def _line(logs: dict[str, float], low: float, span: float) -> str:
    def place(value: float) -> int:
        return round((value - low) / span * (CHART - 1))

    value = place(logs["value"])
    first, last = (value if math.isnan(logs[name]) else place(logs[name]) for name in ("lo", "hi"))
    cells = ["-" if first <= at <= last else " " for at in range(CHART)]
    cells[value] = "o"
    return "".join(cells).rstrip()
