"""Tables for people at a terminal: humanised units, the terminal's width, a heading that says what the numbers are."""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, Any

import numpy as np
from rich import box
from rich.console import Console, JustifyMethod, OverflowMethod
from rich.markup import escape as unmarked
from rich.table import Table as RichTable

from ingest.core.errors import counted, shown
from ingest.core.labels import FAILED
from ingest.core.units import INFINITE, LARGE, Stamp, figure, format_duration, latency, up_to
from ingest.query.coverage import LEAST, MOST
from ingest.query.means import lacks_bins
from ingest.query.percentiles import BANDWIDTH
from ingest.query.precision import Precision
from ingest.query.question import Answer, samples_apart
from ingest.query.table import Table
from ingest.view.text import shown_columns

# Text from outside on a terminal: shown as it is spelled, never obeyed, neither by the terminal nor by rich's markup.


def escape(text: object) -> str:
    """Return text for rich: control characters as their numbers, brackets of markup as brackets."""
    return unmarked(shown(text))


WIDE, WIDEST = 160, 10_000
MOST_ROWS = 60
RUNS_NAMED = 3  # a line's worth
A_DAY = 86_400
DISPENSABLE = ("rate", "mean")
TITLES = {"start_ns": "start", BANDWIDTH: "MiB/s", "share": "up to here"}


def say(out: Console, lines: Iterable[str], style: str | None = None) -> None:
    """Print lines as they are spelled, each whole however long it is."""
    for line in lines:
        out.print(escape(line), style=style, highlight=False, soft_wrap=True)


def say_heading(out: Console, lines: Iterable[str]) -> None:
    """Print the lines above a table or map; those that are notes are dim."""
    for line in lines:
        say(out, [line], "dim" if line.startswith("note:") else None)


def say_notes(out: Console, notes: Iterable[str]) -> None:
    """Print notes, each marked as one."""
    say(out, (f"note: {note}" for note in notes), "dim")


def empty_table(
    titles: Iterable[str], left: Collection[str], folding: Collection[str] = (), overflow: OverflowMethod = "ellipsis"
) -> RichTable:
    """Return a table for a terminal without rows: columns of the titles, `left` aligned left, `folding` on several lines."""
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for title in titles:
        left_or_right: JustifyMethod = "left" if title in left else "right"
        shown.add_column(escape(title), justify=left_or_right, overflow=overflow, no_wrap=title not in folding)
    return shown


def first_of(names: Sequence[str], most: int) -> str:
    """Return the first names of many: a, b and 3 more."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def count(value: float) -> str:
    """Return a count or rate with thousands separated, one decimal below 100."""
    return f"{value:,.0f}" if value >= LARGE or value == int(value) else f"{value:,.1f}"


def bandwidth(value: float) -> str:
    """Return MiB a second with three digits, thousands separated."""
    return f"{value:,.0f}" if value >= LARGE else figure(value)


def clock(stamps_ns: Sequence[int], stamp: Stamp) -> tuple[Stamp, str]:
    """Return a shorter form of a stamp for a column, and the days to say once above it; rows have theirs if there are several.

    Elapsed times of more than a day have days, too: 1d 01:30:00.
    """
    shown = [stamp(int(value)) for value in stamps_ns]
    days = sorted({text[:10] for text in shown if "T" in text})
    whole = all(".000" in text for text in shown)
    long = any("T" not in text and not text.startswith("+") and abs(float(text)) >= A_DAY for text in shown)

    def short(stamp_ns: int) -> str:
        text = stamp(stamp_ns)
        if "T" not in text:
            return text if text.startswith("+") else since(float(text)) if long else f"{text} s"
        time = text[11:19] if whole else text[11:23]
        return time if len(days) == 1 else f"{text[5:10]} {time}"

    zone = "UTC" if any(text.endswith("Z") for text in shown) else "local time"
    if not days:
        return short, f"{'times' if long else 'seconds'} from the start of the run"
    return short, f"{' to '.join(dict.fromkeys((days[0], days[-1])))}, {zone}"


def since(seconds: float) -> str:
    """Return a time since the start of a run with its days: 1d 01:30:00, -0d 00:00:04."""
    days, rest = divmod(round(abs(seconds)), A_DAY)
    return f"{'-' if seconds < 0 else ''}{days}d {rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


FORMS: Mapping[str, Callable[[float], str]] = {
    **dict.fromkeys(("count", "rate", "cumulative"), count),
    BANDWIDTH: bandwidth,
    "share": up_to,
    "percentile": lambda percentile: up_to(percentile / 100).removesuffix(" %"),
    "x": lambda x: figure(x, 4),
}  # how numbers are written that are no latencies


def _cell(name: str, value: Any, table: Table, row: int, stamp: Stamp) -> str:
    if name in ("start_ns", "end_ns"):
        return stamp(int(value))
    if name in table.labels:
        return escape(str(value)) or "-"
    if value != value:  # noqa: PLR0124  # NaN
        return ""
    if name == FAILED:
        share = f" ({figure(100 * value / table.columns['count'][row], 2)} %)" if value else ""
        return f"{value:,}{share}"
    if name in FORMS:
        return FORMS[name](float(value))
    if name.startswith("below_"):
        most = table.columns.get(f"{name}{MOST}", table.columns[name])[row]
        low, high = (f"{100 * float(share):.3f} %" for share in (value, most))
        if most == -INFINITE:
            return f"<= {low}"
        return low if high in (low, "nan %") else f"{low} - {high}"
    flags, most = table.columns.get(f"{name}_censored"), table.columns.get(f"{name}{MOST}")
    least = float(table.columns.get(f"{name}{LEAST}", table.columns[name])[row])
    if least == least:  # noqa: PLR0124  # not NaN
        value = least
    return between(float(value), float(value if most is None else most[row]), censored=flags is not None and bool(flags[row]))


def between(least: float, most: float, *, censored: bool = False) -> str:
    """Return a latency for people of which the least and the largest possible value are known: 4.23ms, >= 4.23ms, 4.23-9.00ms."""
    low, high = latency(least), latency(most) if most != INFINITE else ""
    if least == INFINITE:
        return low
    if censored or most == INFINITE:
        return f">= {low}"
    return low if not high or low == high else f"{low} - {high}"


def bound_text(precision: Precision | None) -> str:
    """Return how far shown latencies may be off, for people; `none` where there are no bins."""
    if precision is None:
        return "none"
    share = f"± {100 * precision.share:.{'2g' if precision.share < 0.995 else '0f'}} %"
    low = f"below {latency(precision.low_ns)} by up to {latency(precision.off_ns)}"
    return share if not precision.off_ns else f"{share}, {low}" if precision.share else low


def samples_text(answers: Sequence[Answer]) -> str:
    """Return how many samples there are; of each layer or kind where there are several: these hold the same operations."""
    sums = samples_apart(answers)
    if len(sums) < 2:
        return f"{sum(sums.values()):,}"
    return ", ".join(f"{name} {number:,}" for name, number in sums.items())


def heading(answer: Answer, what: str, bound: Precision | None) -> list[str]:
    """Return the lines above a table: runs, kind, step, series, samples, error bound, warnings."""
    step = f"step {format_duration(answer.step_ns)}" if answer.step_ns else "whole range"
    runs, error = first_of(answer.runs, RUNS_NAMED), f"error bound {bound_text(bound)}"
    if lacks_bins(answer):
        error = f"{error}; means without percentiles, approximate" if bound else "means without percentiles, approximate"
    alike = len(samples_apart([answer])) < 2
    samples = counted(answer.samples, "sample") if alike else f"{samples_text([answer])} samples"
    head = f"{what} of {runs}: {answer.latency}, {step}, {samples} from {answer.made_of}, {error}"
    return [head, *(f"note: {text}" for text in answer.warnings)]


class PageConsole(Console):
    """Writes what people read at a terminal as text of a page, which has all rows and no pictures of letters."""

    def __init__(self, file: IO[str] | None = None) -> None:
        super().__init__(file=file, width=WIDEST, no_color=True)


class MarkdownConsole(PageConsole):
    """A page of Markdown: a paragraph for each line, tables as those of GitHub."""

    def print(self, *things: Any, style: Any = None, **_others: Any) -> None:
        """Write a table, or a line; bold ones stay so."""
        for thing in things:
            if isinstance(thing, RichTable):
                table = RichTable(*(str(column.header) for column in thing.columns), box=box.MARKDOWN)
                for column, of in zip(table.columns, thing.columns, strict=True):
                    column.justify = of.justify
                for row in zip(*(column.cells for column in thing.columns), strict=True):
                    table.add_row(*(str(cell).replace("|", "\\|") for cell in row))
                super().print(table, soft_wrap=True)
                super().print()
            elif text := str(thing).strip():
                name, _, command = text.partition(": tailboard ")
                around = "**" if style == "bold" else ""
                said = f"{name}: `tailboard {command}`" if command else around + text.replace("*", "\\*") + around
                super().print(f"{said}\n", highlight=False, soft_wrap=True)


class HtmlConsole(PageConsole):
    """A part of a page of HTML: a paragraph for each line, and tables."""

    def print(self, *things: Any, style: Any = None, **_others: Any) -> None:
        """Write a table, or a line; bold ones stay so."""
        for thing in things:
            if isinstance(thing, RichTable):
                rows = zip(*(column.cells for column in thing.columns), strict=True)
                lines = [self._row("th", [column.header for column in thing.columns], thing)]
                lines += [self._row("td", row, thing) for row in rows]
                self.file.write(f"<table>{''.join(lines)}</table>")
            elif text := self._text(thing).strip():
                self.file.write(f"<p><b>{text}</b></p>" if style == "bold" else f"<p>{text}</p>")

    def _row(self, tag: str, cells: Iterable[Any], table: RichTable) -> str:
        ways = (column.justify for column in table.columns)
        of_row = (f'<{tag} style="text-align:{way}">{self._text(cell)}</{tag}>' for cell, way in zip(cells, ways, strict=True))
        return f"<tr>{''.join(of_row)}</tr>"

    def _text(self, marked: Any) -> str:
        return html.escape(self.render_str(str(marked), emoji=False, highlight=False).plain)


WRITTEN_ON: ContextVar[Console | None] = ContextVar("written_on", default=None)


@contextmanager
def written_on(console: Console) -> Iterator[None]:
    """Have tables and lines that are printed inside this written on a console."""
    before = WRITTEN_ON.set(console)
    try:
        yield
    finally:
        WRITTEN_ON.reset(before)


def people() -> Console:
    """Return a console as wide as the terminal; wide enough for any table where there is none, or what `written_on` says."""
    if console := WRITTEN_ON.get():
        return console
    console = Console()
    return console if console.is_terminal else Console(width=WIDE)


def worst_rows(table: Table, most: int) -> tuple[Table, str]:
    """Return the rows with the highest latencies, in their order, and what they are the highest of; empty where all rows fit.

    The highest percentile of a row decides, where too few samples carry it the maximum.
    """
    named = [name for name in shown_columns(table) if name[0] == "p" and name[1:2].isdigit() and "_" not in name]
    measures = [name for name in (*named[-1:], "max", "mean") if name in table.columns]
    if len(table) <= most or not measures:
        return table, ""
    values = np.asarray(table.columns[measures[0]], np.float64)
    for name in measures[1:]:
        values = np.where(np.isnan(values), np.asarray(table.columns[name], np.float64), values)
    ranked = np.argsort(-np.nan_to_num(values, nan=-1.0), kind="stable")
    return table.take(np.sort(ranked[:most])), measures[0]


def print_table(
    table: Table,
    lines: Sequence[str],
    stamp: Stamp,
    *,
    every: bool = False,
    short: bool = False,
    console: Console | None = None,
) -> None:
    """Print a table under its heading, as wide as the terminal.

    On a terminal at most MOST_ROWS rows unless `every` is asked for, and a line that says which they are. What is written to a
    pipe or a file has all rows, unless it is to be `short`.
    """
    out = console or people()
    rows = len(table)
    table, measure = worst_rows(table, MOST_ROWS) if short or (out.is_terminal and not every) else (table, "")
    say_heading(out, lines)
    names = [name for name in shown_columns(table) if name not in ("exact", "complete", "end_ns", "min", "max")]
    names += ["max"] if "max" in table.columns else []
    if FAILED in names and not np.any(table.columns[FAILED]):
        names.remove(FAILED)
    if "start_ns" in names:
        stamp, day = clock(table.columns["start_ns"], stamp)
        out.print(day, style="dim", highlight=False)
    cells = {name: [_cell(name, table.columns[name][row], table, row, stamp) for row in range(len(table))] for name in names}
    widths = {name: max([len(name), *map(len, column)]) + 2 for name, column in cells.items()}
    carried = any(any(column) for name, column in cells.items() if name[0] == "p" and name[1:2].isdigit())
    for name in DISPENSABLE if carried else ():  # of means alone they are what there is
        if sum(widths.values()) > out.width and name in widths:
            del widths[name]
    titles = {name: TITLES.get(name, name) for name in widths}
    shown = empty_table(titles.values(), [title for name, title in titles.items() if name in (*table.labels, "start_ns")])
    for row in zip(*(cells[name] for name in widths), strict=True):
        shown.add_row(*row)
    out.print(shown)
    if measure:
        text = f"{len(table)} of {rows:,} rows, those with the highest {measure}; --all shows all, --step and --where choose"
        out.print(text, style="dim", highlight=False, soft_wrap=True)
