"""The report of runs that were recorded as means, without a histogram: what there is of them, and why there is no more.

Means over time with the largest latency where that was logged, I/Os and MiB a second, and what fio itself says of the whole
run, by job. Percentiles, heat map and distribution are left out with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ingest.core.coverage import WholeRun
from ingest.core.labels import default_kind, is_mean
from ingest.core.quantiles import COMMON, parse_percentiles
from ingest.query.compare import kinds_of
from ingest.query.means import REMEDY
from ingest.query.overview import CLUSTER_WINDOWS, fitted, span_of
from ingest.query.percentiles import BANDWIDTH, Wanted, percentiles
from ingest.query.question import Answer
from ingest.query.table import Table
from ingest.query.windows import regrouped
from ingest.view import vega
from ingest.view.page.finished import Chart, Control, Head, Panel, View, finished_page, table_of
from ingest.view.page.tables import of_kind
from ingest.view.page.template import duration, exact, shown_latency, step_text, text, time_text
from ingest.view.terminal.tables import bandwidth

SHOWN = tuple(percentile.text for percentile in COMMON)
TITLES = ("", "N", "mean", *(f"p{name}" for name in SHOWN), "max")
MOST_ROWS, MOST_HOSTS = 400, 16
NONE = Wanted(parse_percentiles("100"))


@dataclass(frozen=True, slots=True)
class MeansRun:
    """One run: its means by host, op and kind over time and of the whole range, and what the tool says of the whole run."""

    run: str
    answer: Answer
    whole: Answer
    told: Sequence[WholeRun]
    marks: Sequence[Mapping[str, Any]] = ()


def means_page(runs: Sequence[MeansRun], facts: Sequence[tuple[str, str]] = ()) -> str:
    """Return the page of runs that hold means alone; `facts` follow those of the answers.

    UsageError where vl-convert-python is not installed.
    """
    shown = [replace(run, answer=fitted(run.answer, CLUSTER_WINDOWS)[0]) for run in runs]
    names = ", ".join(run.run for run in shown)
    samples = sum(_of_kind(run.answer, _kind(run)).samples for run in shown)
    spans = [span_of(run.whole.parts) for run in shown]
    low, high = min(span[0] for span in spans), max(span[1] for span in spans)
    relative = all(run.answer.relative for run in shown)
    known = [
        ("Runs", names),
        ("Latency", ", ".join(sorted({_kind(run) for run in shown}))),
        ("Samples", f"{samples:,}"),
        ("Time", time_text(low, high, relative=relative)),
        ("Duration", duration(high - low)),
        ("Step", ", ".join(sorted({step_text(run.answer) for run in shown}))),
        ("Error bound", "none of the means by window: their counts are approximate; means of the whole run are fio's own"),
        *facts,
    ]
    notes = dict.fromkeys(warning for run in shown for warning in run.answer.warnings)
    head = Head(names, f"means of {samples:,} latencies", known, list(notes))
    views = dict(_views(shown))
    control = Control("shown", "Shown", [(name, name) for name in views])
    panels = [
        *(
            Panel(name, title, hint, [Chart(name, called, spec, {view: three[place] for view, three in views.items()}, "shown")])
            for place, (name, title, called, spec, hint) in enumerate(CHARTS)
        ),
        Panel("whole", "The whole run, by job, as fio printed it", WHOLE_HINT, table=_whole_table(shown)),
        Panel("why", "No percentiles, heat map or distribution", f"{NO_LATENCY} {REMEDY[0].upper()}{REMEDY[1:]}."),
    ]
    return finished_page(head, panels, [control], labels="Facts of the runs", opened=[panel.name for panel in panels[1:]])


MEAN_HINT = (
    "A line for each series: the mean latency of each window, as fio logged it, weighted by its I/Os where several logs meet. "
    "Hollow dots: the largest latency of the window, where log_window_value was both, or max "
    "(then the mean of a window is not known). "
    "Dashed: the mean of the whole run."
)
RATE_HINT = "Completions a second of every window, from fio's log of IOPS; in total they are fio's own count."
BANDWIDTH_HINT = (
    "Bytes moved a second in every window, from fio's log of bandwidth (write_bw_log); in total it is fio's own io_bytes. "
    "A window has no line where the size of its I/Os was not logged."
)
CHARTS = (
    ("means", "Mean latency over time", "Mean latency over time", "means", MEAN_HINT),
    ("rate", "I/Os a second", "I/Os a second over time", "rate", RATE_HINT),
    ("bandwidth", "MiB a second", "MiB a second over time", "rate", BANDWIDTH_HINT),
)
WHOLE_HINT = "Percentiles of one job, as fio printed them. They cannot be merged into percentiles of a host or of the cluster."
NOT_LOGGED = "No log of bandwidth (write_bw_log) lies beside these logs."
NO_LATENCY = "These logs hold one mean a window and no single latency, so none of these can be computed from them."


def _kinds(answer: Answer) -> list[str]:
    return sorted(filter(is_mean, kinds_of(answer)))


def _kind(run: MeansRun) -> str:
    return default_kind(_kinds(run.answer))


def _of_kind(answer: Answer, kind: str) -> Answer:
    """Return the rows of one kind, by the other labels."""
    rest = tuple(name for name in answer.by if name != "kind")
    return regrouped(replace(of_kind(answer, kind), kind=kind), rest)


def _views(runs: Sequence[MeansRun]) -> Iterator[tuple[str, tuple[View, View, View]]]:
    """Yield what can be shown by its name: the kinds of each run, the default one first, by op and by host."""
    for run in runs:
        kinds = sorted(_kinds(run.answer), key=lambda kind: (kind != _kind(run), kind))
        start = f"{run.run}, " if len(runs) > 1 else ""
        for kind in kinds:
            shown, whole = _of_kind(run.answer, kind), _of_kind(run.whole, kind)
            hosts = {key[shown.by.index("host")] for part in shown.parts for key in part.table}
            ops = {key[shown.by.index("op")] for part in shown.parts for key in part.table}
            by_host = [("op", "host") if len(ops) > 1 else ("host",)] if 1 < len(hosts) <= MOST_HOSTS else []
            for by in [*by_host, ("op",)]:
                yield f"{start}{kind} by {' and '.join(by)}", _three(regrouped(shown, by), regrouped(whole, by), run.marks)


def _three(answer: Answer, of_range: Answer, marks: Sequence[Mapping[str, Any]]) -> tuple[View, View, View]:
    """Return the views of CHARTS of an answer, with marks; `of_range` is one of the whole range."""
    table, whole = percentiles(answer, NONE), percentiles(of_range, NONE)
    labels = vega.group_names(answer)
    starts, ends = ((np.asarray(table.columns[name]) / vega.MS).tolist() for name in ("start_ns", "end_ns"))
    base = {"label": _labels(table, answer, labels), "t": starts, "t2": ends, "n": table.columns["count"].tolist()}
    zeros = [0] * len(table)

    def of_windows(name: str) -> dict[str, list[Any]]:
        return {**base, "v": np.asarray(table.columns[name], np.float64).tolist(), "beyond": zeros, "open": zeros}

    points, rates, moved = _known(of_windows("mean")), of_windows("rate"), _known(of_windows(BANDWIDTH))
    thin = _known({**base, "v": np.asarray(table.columns["max"], np.float64).tolist(), "open": zeros})
    over_time = {"gaps": vega.gaps(answer), "marks": vega.noted(marks)}
    totals = {"label": _labels(whole, answer, labels), "v": whole.columns["mean"].tolist(), "n": whole.columns["count"].tolist()}
    lines = {name: column for name, column in _known(totals).items() if name != "n"}
    signals = {"clock": "elapsed", "origin": answer.start_of / vega.MS} if answer.relative else {}
    means = {"points": points, "thin": thin, "whole": lines, **over_time}
    said = "; ".join(
        f"{name}: mean {shown_latency(value) if value == value else 'unknown'}, {int(count):,} I/Os"  # noqa: PLR0124  # NaN
        for name, value, count in zip(*totals.values(), strict=True)
    )
    units = {**signals, "measure": "MiB/s", "counted": " MiB/s"}
    return (
        View(means, f"{said}.", signals),
        View({"points": rates, **over_time}, _said(rates, "{:,.0f}".format, "a second"), signals),
        View({"points": moved, **over_time}, _said(moved, bandwidth, "MiB/s") or NOT_LOGGED, units),
    )


def _known(columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the rows whose value is known."""
    known = [row for row, value in enumerate(columns["v"]) if value == value]  # noqa: PLR0124  # NaN
    return {name: [column[row] for row in known] for name, column in columns.items()}


def _said(columns: Mapping[str, list[Any]], shown: Callable[[float], str], unit: str) -> str:
    rates: dict[str, list[float]] = {}
    for name, value in zip(columns["label"], columns["v"], strict=True):
        rates.setdefault(name, []).append(value)
    said = "; ".join(f"{name}: {shown(min(values))} to {shown(max(values))} {unit}" for name, values in rates.items())
    return said and f"{said}."


def _labels(table: Table, answer: Answer, names: dict[tuple[str, ...], str]) -> list[str]:
    return [names[key] for key in zip(*(table.columns[label].tolist() for label in answer.by), strict=True)]


def _whole_table(runs: Sequence[MeansRun]) -> str:
    """Return the table of what fio says of each job over the whole run."""
    rows = [(run, whole) for run in runs for whole in run.told if not whole.has_bins]
    lines = []
    for run, whole in rows[:MOST_ROWS]:
        name = f"{run.run} {whole.name}" if len(runs) > 1 else whole.name
        printed = {f"{float(name):g}": value for name, value in whole.percentiles}
        cells = [exact(whole.count, f"{whole.count:,}"), exact(whole.mean_ns, shown_latency(whole.mean_ns))]
        cells += [exact(printed[name], shown_latency(printed[name])) if name in printed else "<td>&ndash;</td>" for name in SHOWN]
        cells.append(exact(whole.max_ns, shown_latency(whole.max_ns)))
        lines.append(f'<tr><th scope="row" class="left">{text(name)}</th>{"".join(cells)}</tr>')
    more = f", the first {MOST_ROWS} of {len(rows):,} rows" if len(rows) > MOST_ROWS else ""
    return table_of(f"fio's own numbers{more}", TITLES, lines, 1, folded=len(lines) > MOST_HOSTS * 2)
