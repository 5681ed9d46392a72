"""What trend shows people: a table with a small chart, and a picture of each percentile by run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import counted, listed
from ingest.core.units import LARGE, UNITS_NS, figure, latency, utc
from ingest.query.change_points import FEW_RUNS, METHOD
from ingest.query.compare import METHOD as OF_WINDOWS
from ingest.query.precision import Precision, precision_of
from ingest.query.table import Table
from ingest.query.trend import LATENCIES, THROUGHPUT, Judgement, Night, is_share, lower_is_worse, series_of
from ingest.view import vega
from ingest.view.specs import derived
from ingest.view.terminal.comparison import needed, percentiles_in, ratio_text, whisker
from ingest.view.terminal.tables import bound_text, empty_table, escape, people, samples_text, say, say_notes

NOTHING = 1e-9
MOST_NAMED = 3
LEAST_BOUND = 0.001  # of a ratio: what is only known to be above it is known to be nothing


def print_trend(nights: Sequence[Night], table: Table, notes: Sequence[str], judgements: Sequence[Judgement] = ()) -> None:
    """Print the runs of each group and measure in their order, with a chart: the bounds as a line, the value as an o."""
    out = people()
    say(out, opening(table, judgements, nights[-1].run), "bold")
    say(out, heading(nights, table))
    say_notes(out, notes)
    names = [name for name in table.labels if name != "run"]
    titles = (*names, "", "run", "start", "value", "95 % bounds", "n", "change", "chart")
    shown = empty_table(titles, (*names, "", "run", "start", "chart"))
    charts = _charts(table, names)
    for row in range(len(table)):
        shown.add_row(*(escape(cell) for cell in _cells(table, row, names)), charts[row])
    out.print(shown)


def opening(table: Table, judgements: Sequence[Judgement], newest: str) -> list[str]:
    """Return the verdict, which page and terminal open with: whether the newest run is worse, in what, since when, how much."""
    known = ranked(judgements)
    if not known:
        return [f"Cannot tell whether {newest} is slower than before: nothing of it has runs before it to be held against."]
    worse = [each for each in known if each.certain() > 1]
    if worse:
        others = [f"{said_of(each)}." for each in worse[1:MOST_NAMED]]
        more = len(worse) - MOST_NAMED
        first = f"{newest} is slower than before: {said_of(worse[0])}."
        return [first, *others, *([f"{counted(more, 'more measure')} of {newest} got worse."] if more > 0 else [])]
    closest = f"Closest: {said_of(known[0])}."
    if all(math.isnan(each.certain()) for each in known):
        return [f"Cannot tell whether {newest} is slower than before: too few runs to know how much they differ.", closest]
    return [f"Nothing of {newest} is certain to be slower than before.", *better(table, newest), closest]


def better(table: Table, newest: str) -> list[str]:
    """Return a sentence on the levels that improved at their last change, which still last; none where none did."""
    said = []
    for rows in series_of(table).values():
        changed = [row for row in rows if not math.isnan(table.columns["change"][row])]
        if not changed or table.columns["run"][rows[-1]] != newest:
            continue
        change, since = float(table.columns["change"][changed[-1]]), table.columns["run"][changed[-1]]
        if (change > 1) == lower_is_worse(str(table.columns["measure"][rows[-1]])):
            said.append(f"{row_name(table, rows[-1])} has been {figure(change)} times the level before since {since}")
    return [f"It got better: {listed(said[:MOST_NAMED])}."] if said else []


def ranked(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Return the judgements with a ratio: what is worse for certain first, percentiles before throughput and shares."""

    def rank(judgement: Judgement) -> tuple[bool, bool, float, float]:
        least = float(np.nan_to_num(judgement.certain(), nan=0.0))
        return least <= 1, drawn_as(judgement.measure) != "latency", -least, -judgement.ratio

    return sorted((judgement for judgement in judgements if not math.isnan(judgement.ratio)), key=rank)


def judgement_text(judgement: Judgement) -> str:
    """Return a sentence without its point: the level since a change, whether it is accepted, and the newest run."""
    if math.isnan(judgement.ratio):
        state = "is accepted" if judgement.accepted else "has too few samples"
        return f"{judgement.run}: {series_text(judgement)} {state}"
    return said_of(judgement) if judgement.since else f"{judgement.run}: {said_of(judgement)}"


def said_of(judgement: Judgement) -> str:
    """Return what a known judgement says behind the name of the newest run."""
    name, since, run = series_text(judgement), judgement.since, judgement.run
    newest = f"{ratio_of(judgement, judgement.ratio)} times"
    of = f" ({judgement.accepted} is accepted)" if judgement.accepted else ""
    if since:
        change = f"{ratio_of(judgement, since.ratio)} times the level before since {since.run}{labels_text(since.labels)}"
        itself = f"{run} itself is {newest} that level{certain_text(judgement, judgement.least)}"
        return f"{name} has been {change}{certain_text(judgement, since.least)}, not accepted as normal{of}; {itself}"
    held, end = ("median", " it (--last)") if judgement.last else ("level", "")
    usual = f"{held} of the {judgement.earlier} runs" if judgement.earlier > 1 else "run"
    return f"{name} is {newest} the {usual} before{end}{certain_text(judgement, judgement.least)}{of}"


def ratio_of(judgement: Judgement, ratio: float) -> str:
    """Return a ratio as value / level: below 1 where a fall is worse."""
    if math.isinf(ratio):
        return "infinitely many"  # a percentile of operations that failed
    return figure(1 / ratio if lower_is_worse(judgement.measure) else ratio)


def certain_text(judgement: Judgement, ratio: float) -> str:
    """Return the bound of a ratio behind it: at least 1.2; empty where it is not known, or says nothing."""
    bound = "most" if lower_is_worse(judgement.measure) else "least"
    return "" if not LEAST_BOUND < ratio < math.inf else f", at {bound} {ratio_of(judgement, ratio)}"


def labels_text(changed: Sequence[tuple[str, str, str]]) -> str:
    """Return which labels changed where, in brackets behind a run; nothing where none did."""
    labels = ", ".join(f"{name} {before or '-'} to {after or '-'}" for name, before, after in changed)
    return f" ({labels})" if labels else ""


def series_text(judgement: Judgement) -> str:
    """Return what a judgement is about: read p99."""
    return " ".join([*(label or "-" for label in judgement.labels), judgement.measure])


def row_name(table: Table, row: int) -> str:
    """Return what a row is about: ceph-b read p99; the run itself is left out."""
    labels = [str(table.columns[name][row]) or "-" for name in table.labels if name != "run"]
    return " ".join([*labels, str(table.columns["measure"][row])])


def amount(measure: str, value: float) -> str:
    """Return a value of a measure for people: 4.23ms, 12,345/s, 0.123 %; empty if it is not known."""
    if math.isnan(value):
        return ""
    if measure == THROUGHPUT:
        return f"{figure(value, 4) if value < LARGE else f'{value:,.0f}'}/s"
    return f"{figure(100 * value)} %" if is_share(measure) else latency(value)


def of_latencies(table: Table) -> NDArray[np.bool_]:
    """Return which rows of a table are of percentiles."""
    rows: NDArray[np.bool_] = ~np.isnan(table.columns["percentile"])
    return rows


def drawn_as(measure: str) -> str:
    """Return what a measure is for its axis: latency, throughput, share."""
    return "throughput" if measure == THROUGHPUT else "share" if is_share(measure) else "latency"


def in_unit(table: Table, names: Sequence[str], unit: str) -> Table:
    """Return a table as csv and ndjson have it: latencies in a unit, throughput and shares as they are, the measure as a text."""
    scale = np.where(of_latencies(table), UNITS_NS[unit], 1)
    scaled = {name: table.columns[name] / scale for name in names} if UNITS_NS[unit] > 1 else {}
    return replace(table, columns={**table.columns, **scaled}, labels=(*table.labels, "measure"))


def bound_of(nights: Sequence[Night], table: Table) -> Precision | None:
    """Return how far the values of a table may be off."""
    wanted = percentiles_in(table.take(np.flatnonzero(of_latencies(table)).tolist()))
    return precision_of([part for night in nights for part in night.answer.parts], wanted)


def kinds_of(nights: Sequence[Night]) -> str:
    """Return the kinds of latency of runs."""
    return ", ".join(sorted({night.answer.kind for night in nights}))


def heading(nights: Sequence[Night], table: Table) -> list[str]:
    """Return the lines above a table: runs, kind, samples, error bound, methods."""
    runs = f"{len(nights)} runs, {nights[0].run} to {nights[-1].run}" if len(nights) > 1 else nights[0].run
    held = f"{kinds_of(nights)} latency, {samples_text([night.answer for night in nights])} samples"
    error = bound_text(bound_of(nights, table))
    return [f"trend of {runs}: {held}, error bound of the bins {error}", f"bounds by {OF_WINDOWS}; changes by {METHOD}"]


def notes(nights: Sequence[Night], table: Table) -> list[str]:
    """Return the sentences that a reader must see: too few samples, too few runs to detect a change, different bins."""
    sentences = []
    for percentile in sorted(set(table.columns["percentile"][of_latencies(table)].tolist())):
        few = (table.columns["percentile"] == percentile) & np.isnan(table.columns["value"])
        if few.any():
            runs = listed(dict.fromkeys(str(run) for run in table.columns["run"][few]))
            sentences.append(f"p{percentile:.15g} needs {needed(percentile):,} samples; there are fewer in {runs}")
    newest = nights[-1].run
    gone = [row for row in (rows[-1] for rows in series_of(table).values()) if table.columns["run"][row] != newest]
    if gone:
        sentences.append(f"{newest} has nothing of {listed(row_name(table, row) for row in gone)}")
    if len(nights) < FEW_RUNS:
        sentences.append(f"{counted(len(nights), 'run is', 'runs are')} too few to detect a change of level: it takes {FEW_RUNS}")
    if len({part.layout for night in nights for part in night.answer.parts}) > 1:
        sentences.append("the runs have different bins: each value is accurate within the bins of its own run")
    return sentences


def trend_picture(nights: Sequence[Night], table: Table) -> dict[str, Any]:
    """Return the filled spec of a percentile by run: a line with bounds for each group and percentile, changes marked."""
    held = f"{kinds_of(nights)} latency, {samples_text([night.answer for night in nights])} samples"
    subtitle = f"{held} in {len(nights)} runs, 95 % bounds by whole windows"
    head = derived("picture", text=vega.printable(f"{nights[0].run} to {nights[-1].run}"), subtitle=subtitle)
    rows = points(nights, table.take(np.flatnonzero(of_latencies(table)).tolist()))
    return {**vega.with_values(vega.spec("trend"), {"points": rows}), **head}


def points(nights: Sequence[Night], table: Table) -> vega.Columns:
    """Return one row per group, measure and run with a value: i, run, t, label, v, lo, hi, n, open, level, change, m.

    `i` is the place of the run, `t` its start in epoch ms (0: no clock). Latencies are in ns, throughput and shares in
    billionths, so that all are drawn alike; `m` says which: latency, throughput, share. `change` is 0 where there is none. A
    bound that is not known is the value itself.
    """
    place = {night.run: number for number, night in enumerate(nights)}
    rows = [row for row in range(len(table)) if math.isfinite(table.columns["value"][row])]  # no line leads to what failed
    column = {name: table.columns[name][rows] for name in table.columns}
    scale = np.where(of_latencies(table)[rows], 1.0, 1e9)
    column = {name: (values * scale if name in LATENCIES else values).tolist() for name, values in column.items()}
    low, high = (
        [value if math.isnan(limit) else limit for limit, value in zip(column[name], column["value"], strict=True)]
        for name in ("lo", "hi")
    )
    return {
        "i": [place[run] for run in column["run"]],
        "run": [vega.printable(run) for run in column["run"]],
        "t": [start / vega.MS for start in column["start_ns"]],
        "label": [vega.printable(row_name(table, row)) for row in rows],
        "v": column["value"],
        "lo": low,
        "hi": high,
        "n": column["count"],
        "open": [int(censored) for censored in column["value_censored"]],
        "level": column["level"],
        "change": [0 if math.isnan(change) or math.isinf(change) else change for change in column["change"]],
        "m": [drawn_as(measure) for measure in column["measure"]],
    }


def _cells(table: Table, row: int, names: Sequence[str]) -> list[str]:
    cells = {name: column[row] for name, column in table.columns.items()}
    measure = str(cells["measure"])
    value, *bounds = (amount(measure, float(cells[name])) for name in ("value", "lo", "hi"))
    change = "" if math.isnan(cells["change"]) else f"{ratio_text(cells['change'])} times"
    return [
        *(str(cells[name]) or "-" for name in names),
        *(measure, str(cells["run"]), minute_text(int(cells["start_ns"]))),
        (">= " if cells["value_censored"] else "") + value,
        *(between_text(*bounds), f"{cells['count']:,}", change),
    ]


def minute_text(start_ns: int) -> str:
    """Return when a run began, to the minute; empty without a clock."""
    return utc(start_ns)[:16].replace("T", " ") if start_ns else ""


def between_text(low: str, high: str) -> str:
    """Return bounds for people, one that is not known as a question mark; empty where neither is."""
    return f"{low or '?'} to {high or '?'}" if low or high else ""


def _charts(table: Table, names: Sequence[str]) -> list[str]:
    """Return a line for each row: on one logarithmic scale for the runs of a group and measure."""
    keys = list(zip(*(table.columns[name] for name in (*names, "measure")), strict=True))
    lines = [""] * len(table)
    for key in dict.fromkeys(keys):
        mine = [row for row, own in enumerate(keys) if own == key and 0 < table.columns["value"][row] < math.inf]
        logs = {name: np.log(np.asarray(table.columns[name][mine], np.float64)) for name in ("value", "lo", "hi")}
        every = np.concatenate([log[np.isfinite(log)] for log in logs.values()])
        if len(every):
            low, span = float(every.min()), max(float(every.max() - every.min()), NOTHING)
            for at, row in enumerate(mine):
                lines[row] = whisker([log[at] for log in logs.values()], low, span)
    return lines
