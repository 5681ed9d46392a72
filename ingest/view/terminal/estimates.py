"""Estimates for people at a terminal: below each exact row a line for every estimator, each value with how far it is off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape as unmarked

from ingest.core.quantiles import Percentile
from ingest.core.units import Stamp, latency
from ingest.query.estimates import Estimate
from ingest.query.question import Answer
from ingest.query.table import Table
from ingest.view.terminal.tables import clock, count, empty_table, heading, people, say_heading

EXACT = "exact"
SAMPLES = "single I/Os"
TIMES, TENFOLD = 2, 9.95  # from where on a share is said as so many times, and these without a decimal
SAID = {"histogram": "histogram log"}


def off(share: float) -> str:
    """Return how far a value is off: -81 %, +3.1 %, x4.2 from three times as much on; empty if not a number."""
    if share != share:  # noqa: PLR0124  # NaN
        return ""
    if share >= TIMES:
        return f"x{1 + share:,.0f}" if 1 + share >= TENFOLD else f"x{1 + share:.1f}"
    shown = f"{100 * share:+.1f}" if abs(share) < 0.0995 else f"{100 * share:+.0f}"  # two digits
    return f"{'0' if float(shown) == 0 else shown} %"


def lines_of(table: Table, estimates: Sequence[Estimate], names: Sequence[str], row: int) -> list[tuple[str, list[str]]]:
    """Return the lines of a row: by what, and a cell for each of the named columns."""
    least = [(flags := table.columns.get(f"{name}_censored")) is not None and flags[row] for name in names]
    exact = [(">= " if open_end else "") + _value(table.columns, name, row) for name, open_end in zip(names, least, strict=True)]
    lines = [(EXACT, exact)]
    for estimate in estimates:
        if estimate.truth:
            lines.append((SAMPLES, [_value(estimate.truth, name, row) for name in names]))
        errors = estimate.errors(table.columns)
        cells = [
            f"{_value(estimate.columns, name, row)} {off(errors[name][row])}".strip() if name in errors else "" for name in names
        ]
        lines.append((SAID.get(estimate.name, estimate.name), cells))
    return lines


def _value(columns: Mapping[str, Any], name: str, row: int) -> str:
    return latency(float(columns[name][row])) if name in columns else ""


def print_estimates(
    table: Table, estimates: Sequence[Estimate], wanted: Sequence[Percentile], answer: Answer, stamp: Stamp
) -> None:
    """Print each exact row with the estimates below it, and what they are in the heading."""
    out = people()
    say_heading(out, heading(answer, "percentiles and what averaging would say", table.precision))
    short, day = clock(table.columns["start_ns"], stamp)
    out.print(f"{day}; after each estimate its error", style="dim", highlight=False)
    names = ["mean", *(percentile.name for percentile in wanted)]
    shown = empty_table(("start", *table.labels, "count", "by", *names), ("start", *table.labels, "by"))
    for row in range(len(table)):
        labels = [unmarked(str(table.columns[name][row])) or "-" for name in table.labels]
        head = [short(int(table.columns["start_ns"][row])), *labels, count(float(table.columns["count"][row]))]
        for place, (by, cells) in enumerate(lines_of(table, estimates, names, row)):
            shown.add_row(*(head if place == 0 else [""] * len(head)), by, *cells)
    out.print(shown)
