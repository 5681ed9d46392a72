"""The pictures of one run: which request, which tables, which inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ingest.core.labels import LAG, THREAD
from tools.kibana import requests, tables
from tools.kibana.bins import formula
from tools.kibana.filling import NOTHING, TRY, Spec, choice, clicked, filled, percentile, promised, shades, threshold
from tools.kibana.tables import Entry, entry, keep

SURFACE = (50, 75, 90, 95, 98, 99, 99.5, 99.9, 99.95, 99.99)
LAGS = (50, 90, 99, 99.9, 99.99)
NO_LAGS = f"no lags here (timelines of Snabb have them): {TRY}"
MANY = f"extent(pluck(data('points'), 'n'))[1] > {requests.MOST_SAMPLES}"
NEAREST = f"({MANY} ? 'at the nearest rank, or one below it' : 'at the nearest rank')"
TOPMOST = "datum.half && datum.own == datum.top ? 1 : 0"
CELL = tables.only("t", "t2", "v", "n", "open", "row")
ORDERED = {"type": "collect", "sort": {"field": "row"}}
Fields = Mapping[str, Any]


def answer(prefix: str, asked: Mapping[str, Any], index: str = "rollups") -> Entry:
    """Return the data entry of a picture: what it asks, with marks and objectives (tables.noted)."""
    return answered(requests.marked(prefix, index, dict(asked)))


def answered(url: Mapping[str, Any]) -> Entry:
    """Return the data entry with the answer of the server: which shards failed, names and runs of what was picked.

    `apart` is the width in ms of the windows that were asked for.
    """
    clock = "datum.aggregations && datum.aggregations.clock ? datum.aggregations.clock.windows.buckets : []"
    apart = [
        formula("spaced", clock),
        formula("apart", "length(datum.spaced) > 1 ? datum.spaced[1].key - datum.spaced[0].key : 0"),
    ]
    picked = "datum.aggregations && datum.aggregations.picked"
    runs = formula("runs", f"{picked} ? {picked}.runs : {{buckets: []}}")
    parts = [formula("names", f"{picked} ? {picked}.names : {{}}"), runs, *apart]
    return {"name": "answer", "url": dict(url), "transform": parts}


def bounded() -> Entry:
    """Return the entry `windows` with what no percentile lies beyond."""
    return tables.windows(kept=("top_ns", "own", "least"), more=tables.extremes_of("datum.window"))


def percentiles(
    prefix: str, fields: Fields, percents: Sequence[float] = requests.PERCENTS, only: Sequence[str] = (), nothing: str = NOTHING
) -> Spec:
    """Return percentiles over time, of the kinds `only`: the median, that of `percents` which is chosen, the maximum."""
    picked = "percentile == 50 ? [50] : [50, percentile]"
    data = [
        answer(prefix, requests.body(fields, requests.over_time(percents), only=only)),
        *tables.chosen_runs(),
        bounded(),
        tables.percentile_rows("ranked", "windows", "window.p.values", picked),
        tables.carried("ranked", "ranks"),
        tables.maxima("windows", "tops", label="max"),
        entry("points", ["ranks", "tops"]),
        tables.maxima("ranked", "thin", thin="!datum.carried"),
        tables.gaps(),
        *_all_windows(picked),
        *tables.noted(),
        promised(),
    ]
    return filled("percentiles", data, [percentile(percents), *threshold(kept=True)], NEAREST, nothing=nothing)


def lags(prefix: str, fields: Fields) -> Spec:
    """Return percentiles of lags over time: of sampled events, on a dashboard that else asks for little."""
    return percentiles(prefix, fields, LAGS, (LAG,), NO_LAGS)


def lag_curves(prefix: str, fields: Fields) -> Spec:
    """Return the distribution of the lag of each event."""
    return distribution(prefix, fields, (LAG,), NO_LAGS)


def _all_windows(picked: str) -> list[Entry]:
    """Return the entry `whole`: percentiles of all windows together."""
    shaped = [formula("n", "datum.of.n.value"), *tables.extremes_of("datum.of"), formula("t", "0"), formula("t2", "0")]
    return [
        entry("whole_of", "chosen", shaped, keep("datum.n > 0")),
        tables.percentile_rows("whole_rows", "whole_of", "of.p.values", picked),
        tables.carried("whole_rows", "whole_ranks"),
        tables.maxima("whole_of", "whole_top", label="max"),
        entry("whole", ["whole_ranks", "whole_top"], {"type": "collect", "sort": {"field": "p"}}),  # a series keeps its colour
    ]


def surface(prefix: str, fields: Fields) -> Spec:
    """Return the percentile surface: a row a percentile, colour is latency."""
    downwards = {"type": "collect", "sort": {"field": "p", "order": "descending"}}
    data = [
        answer(prefix, requests.body(fields, requests.over_time(SURFACE))),
        *tables.chosen_runs(),
        bounded(),
        tables.percentile_rows("ranked", "windows", "window.p.values", f"{list(SURFACE)}"),
        tables.carried("ranked"),
        entry("rows", "points", {"type": "aggregate", "groupby": ["row", "p"]}, downwards),
        tables.gaps(),
        *tables.noted(),
    ]
    return filled("surface", data, [], NEAREST)


def heatmap(prefix: str, fields: Fields) -> Spec:
    """Return the latency heat map with the chosen percentile as a line; a click sets the time range to its window."""
    data = [
        answer(prefix, requests.body(fields, requests.heat())),
        *tables.chosen_runs(),
        bounded(),
        *tables.cells(),
        tables.percentile_rows("ranked", "windows", "window.p.values", "[percentile]"),
        tables.carried("ranked"),
        tables.gaps(),
        *tables.noted(),
        promised(),
    ]
    drop = {"input": "select", "options": [0, 0.01, 0.1, 1, 5], "name": "drop top % "}
    inputs = [
        percentile(),
        *threshold(kept=True),
        *shades(),
        {"name": "drop", "value": 0, "bind": drop},
        choice("axis", "log", ["log", "linear"], "axis"),
        clicked(),
    ]
    return filled("heatmap", data, inputs, f"'line: p' + percentile + ' ' + {NEAREST}")


def hosts(prefix: str, fields: Fields) -> Spec:
    """Return the tail map of hosts: the worst window of each cell, from the numbers of rollups, nothing is merged."""
    number = "(number == 'max' ? datum.top_ns : datum.window[number].value)"
    few = [keep(f"!({number} > 0)"), formula("v", "datum.top_ns"), formula("open", TOPMOST), CELL]
    data = [
        answer(prefix, requests.body(fields, requests.by_host())),
        *tables.rows_of(("hosts",), "datum.hosts_key"),
        tables.windows("wide", "one.over_time.buckets", ("row", "top_ns", "own"), tables.top_of("datum.window")),
        entry("points", "windows", formula("v", number), keep("datum.v > 0"), formula("open", "0"), CELL),
        entry("thin", "windows", few),
        entry("rows", "wide", {"type": "aggregate", "groupby": ["row"]}, ORDERED),
        *tables.row_gaps(),
        *tables.noted(),
    ]
    what = {"name": "what", "update": "'worst ' + replace(number, '_', '.')"}
    note = f"({_of_more(requests.HOSTS, 'hosts')}) + 'a cell is the worst of its windows and operations'"
    return filled("tails", data, [choice("number", "p99", [*requests.NUMBERS, "max"], "number"), what], note)


def threads(prefix: str, fields: Fields) -> Spec:
    """Return the tail map of threads: the maximum of each, from their own histograms."""
    keys = ", ".join(f"datum.{label}_key" for label in THREAD)
    data = [
        answer(prefix, requests.body(fields, requests.by_thread()), "intervals"),
        *tables.rows_of(("sources", *THREAD), f"replace(join([{keys}], ' '), regexp('( -)+$'), '')"),
        tables.windows("wide", "one.over_time.buckets", ("row", "top_ns", "own"), tables.top_of("datum.window")),
        entry("points", "windows", formula("v", "datum.top_ns"), formula("open", TOPMOST), CELL),
        entry("thin", "windows", keep("false")),
        entry("rows", "wide", {"type": "aggregate", "groupby": ["row"]}, ORDERED),
        entry("full", "wide", keep(" || ".join(f"datum.{label}_left > 0" for label in THREAD))),
        *tables.row_gaps(),
        *tables.noted(),
    ]
    some = "length(data('full')) ? 'of a log of many threads those with the highest maximum alone; ' : ''"
    note = f"({_of_more(requests.SOURCES, 'logs')}) + ({some}) + 'the maximum of each thread'"
    return filled("tails", data, [{"name": "what", "value": "maximum"}], note)


def _of_more(most: int, what: str) -> str:
    """Return the expression that says that not all rows are shown."""
    rows = "data('chosen')[0].rows"
    return f"{rows} > {most} ? 'the {most} with the highest maximum of ' + {rows} + ' {what}; ' : ''"


def distribution(prefix: str, fields: Fields, only: Sequence[str] = (), nothing: str = NOTHING) -> Spec:
    """Return the distribution of each operation over 1 / (1 - q), of the kinds `only`."""
    operations = [tables.flatten("of.operations.buckets", "part"), formula("label", "datum.part.key")]
    data = [
        answer(prefix, requests.body(fields, requests.distribution(), only=only)),
        *tables.chosen_runs(),
        *tables.curve(operations),
        *tables.held_against(),
    ]
    return curves(data, nothing)


def curves(data: Sequence[Entry], nothing: str = NOTHING) -> Spec:
    """Return distributions, the legend above: beside the plot it would move where the plot is made to fit, out of the panel."""
    note = "'counts added up in rows of 1/64 octave'"
    return filled("distribution", data, [*threshold(), {"name": "main", "update": "width"}], note, width=False, nothing=nothing)
