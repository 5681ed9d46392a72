"""The tables of the report that stand in the file itself: they need no script, and are the first thing that is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ingest.core.errors import counted
from ingest.core.labels import default_kind
from ingest.core.quantiles import SUMMARY, parse_percentiles
from ingest.query.compare import kinds_of
from ingest.query.coverage import MOST
from ingest.query.overview import WHOLE_RANGE, Overview, worst_windows
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer
from ingest.query.table import Table
from ingest.query.windows import regrouped, widened
from ingest.view import vega
from ingest.view.page.template import shown_latency, text

WORST_SHOWN = 8
MAKERS_SHOWN = 3
FEW = 10
MOST_ROWS = 200
NOTES_SHOWN = 6


def summary(runs: Sequence[Overview], by: Sequence[str]) -> str:
    """Return the table of the whole range of each run, one row per group."""
    titles = ["group", "samples", *(percentile.name for percentile in SUMMARY), "max"]
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    body = []
    for short, names, whole in _wholes(runs, by):
        for row, name in enumerate(names[:MOST_ROWS]):
            shown = f"{short} {name}" if len(runs) > 1 else name
            cells = [f"{int(whole.columns['count'][row]):,}"]
            cells += [cell(whole, name, row) for name in (*(percentile.name for percentile in SUMMARY), "max")]
            body.append(f'<tr><th scope="row">{text(shown)}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f"<caption>The whole range</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"


def cell(table: Table, name: str, row: int) -> str:
    """Return a percentile, or the maximum: 4.23 ms, ≥ 4.23 ms, or 4.23 to 9 ms where samples are missing."""
    low, high = (shown_latency(table.columns[column][row]) for column in (name, name + MOST))
    flags = table.columns.get(f"{name}_censored")
    if not low:
        return "&ndash;" if flags is not None else ""
    if np.isinf(table.columns[name + MOST][row]) or (flags is not None and flags[row]):
        return f"≥ {low}"
    return f"{low} to {high}" if high and high != low else low


def few(runs: Sequence[Overview], by: Sequence[str]) -> list[str]:
    """Return a sentence for each percentile of the summary that rests on fewer than 10 samples beyond it."""
    sentences = []
    for short, names, whole in _wholes(runs, by):
        count = whole.columns["count"]
        for percentile in SUMMARY:
            beyond = count - percentile.ranks(count)
            for row in (percentile.carried(count) & (beyond < FEW)).nonzero()[0].tolist():
                where = f"{short}, {names[row]}" if len(runs) > 1 else names[row]
                samples = counted(int(beyond[row]), "sample")
                sentences.append(f"{percentile.name} of {where} rests on {samples} beyond it: take it as a hint")
    more = len(sentences) - NOTES_SHOWN
    rest = f"{more} more percentiles of the whole range rest on fewer than {FEW} samples"
    return sentences[:NOTES_SHOWN] + ([rest] if more > 0 else [])


def worst(runs: Sequence[Overview], percentile: str) -> str:
    """Return the rows of the table of the worst windows of the first run, of its default kind; the page's script renews them."""
    answer = of_kind(runs[0].hosts, default_kind(kinds_of(runs[0].hosts)))
    (wanted,) = parse_percentiles(percentile)
    lines = []
    for window in worst_windows(answer, "host", wanted, WORST_SHOWN):
        total = sum(above for _, above in window.makers)
        makers = ", ".join(f"{name or '-'} {100 * above / total:.0f} %" for name, above in window.makers[:MAKERS_SHOWN])
        begin, end = ((stamp - answer.start_of) / 1e9 for stamp in (window.start_ns, window.end_ns))
        value = "" if window.value_ns is None else ("≥ " if window.open else "") + shown_latency(window.value_ns)
        most, excess = shown_latency(window.max_ns), shown_latency(window.excess_ns)
        cells = [f"{begin:.1f} to {end:.1f} s elapsed", most, value, f"{window.samples:,}", excess, makers, ""]
        sides = (' class="left"' if at in (0, 5, 6) else "" for at in range(len(cells)))
        lines.append("".join(f"<td{side}>{text(cell)}</td>" for side, cell in zip(sides, cells, strict=True)))
    return "".join(f"<tr>{line}</tr>" for line in lines)


def over_all(answer: Answer) -> Answer:
    """Return an answer in one window, of its whole range."""
    return replace(answer, parts=tuple(widened(answer.parts, WHOLE_RANGE)), step_ns=0)


def of_kind(answer: Answer, kind: str) -> Answer:
    """Return the rows of one kind of an answer by kinds."""
    place = answer.by.index("kind")
    parts = (part.where(lambda key: key[place] == kind) for part in answer.parts)
    return replace(answer, parts=tuple(part for part in parts if len(part)))


def _wholes(runs: Sequence[Overview], by: Sequence[str]) -> Iterator[tuple[str, list[str], Table]]:
    """Yield the short name of each run, and the percentiles of its whole range by its labels, with the name of each row."""
    for run, short in zip(runs, vega.short_names([run.run for run in runs]), strict=True):
        source = run.hosts if "host" in by else run.cluster
        kinds = ("kind",) if len(kinds_of(source)) > 1 else ()
        labels = tuple(name for name in source.by if name in by or name in run.extra)
        whole = over_all(regrouped(source, (*dict.fromkeys((*labels, *kinds)),)))
        names, table = vega.group_names(whole), percentiles(whole, Wanted(SUMMARY))
        keys = (tuple(table.columns[label][row] for label in whole.by) for row in range(len(table)))
        yield short, [names[key] for key in keys], table
