"""Tables for people at a terminal: humanised units, the terminal's width, a heading that says what the numbers are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from ingest.query.question import Answer
from ingest.query.table import Table
from ingest.timing import format_duration
from ingest.view.text import Stamp, shown_columns

STEPS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))
LARGE = 100
MIDDLE = 10


def latency(value_ns: float) -> str:
    """Return a latency for people: 4.23 ms; empty if not a number."""
    if value_ns != value_ns:  # noqa: PLR0124  # NaN
        return ""
    scale, unit = next(((scale, unit) for scale, unit in STEPS if abs(value_ns) >= scale), STEPS[-1])
    shown = value_ns / scale
    digits = 0 if shown >= LARGE or scale == 1 else 1 if shown >= MIDDLE else 2
    return f"{shown:.{digits}f} {unit}"


def count(value: float) -> str:
    """Return a count or rate with thousands separated, one decimal below 100."""
    return f"{value:,.0f}" if value >= LARGE or value == int(value) else f"{value:,.1f}"


def _cell(name: str, value: Any, table: Table, row: int, stamp: Stamp) -> str:
    if name in ("start_ns", "end_ns"):
        return stamp(int(value))
    if name in table.labels:
        return escape(str(value)) or "-"
    if name in ("count", "rate", "cumulative"):
        return count(float(value))
    if name.startswith("below_"):
        return f"{100 * float(value):.3f} %"
    flags = table.columns.get(f"{name}_censored")
    return (">= " if flags is not None and flags[row] else "") + latency(float(value))


def heading(answer: Answer, what: str) -> list[str]:
    """Return the lines above a table: runs, kind, step, series, samples, error bound, warnings."""
    step = f"step {format_duration(answer.step_ns)}" if answer.step_ns else "whole range"
    runs = ", ".join(answer.runs[:3]) + (f" and {len(answer.runs) - 3} more" if len(answer.runs) > 3 else "")  # noqa: PLR2004  # a line's worth
    bound = max((part.layout.error for part in answer.parts), default=None)
    error = f"+-{100 * float(bound):.2g} %" if bound else "none"
    return [
        f"{what} of {runs}: {answer.kind} latency, {step}, {answer.samples:,} samples from {answer.series} "
        f"series ({answer.answered_from}), error bound {error}",
        *(f"note: {text}" for text in answer.warnings),
    ]


def print_table(table: Table, lines: Sequence[str], stamp: Stamp, *, console: Console | None = None) -> None:
    """Print a table under its heading, as wide as the terminal."""
    out = console or Console()
    for line in lines:
        out.print(escape(line), style="dim" if line.startswith("note:") else None, highlight=False, soft_wrap=True)
    names = [name for name in shown_columns(table) if name not in ("exact", "end_ns")]
    shown = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    for name in names:
        shown.add_column(
            escape("start" if name == "start_ns" else name),
            justify="left" if name in table.labels or name == "start_ns" else "right",
            no_wrap=name == "start_ns",
        )
    for row in range(len(table)):
        shown.add_row(*(_cell(name, table.columns[name][row], table, row, stamp) for name in names))
    out.print(shown)
