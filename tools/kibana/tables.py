"""From the server's answer to the flat tables of kibana/vega/ (ingest.view.vega names their columns), as Vega transforms.

    answer      the answer: one row
      chosen    one row a run and kind: run, kind, step, bucket (width of a window in ms), layout
        windows one row a window that has samples: t, t2, n
          points, thin, cells ...

A window is drawn as wide as the stored step where Kibana's windows are narrower. A gap is where no window follows at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ingest.core.objective import ANY_LATENCY
from tools.kibana import requests
from tools.kibana.bins import LAYOUT_COLUMNS, Transform, bin_of, edges_of, formula, layout_columns, snapped, value_of
from tools.kibana.requests import FIRST_OCTAVE, LAST_OCTAVE, NARROW_ROWS, ROWS

Entry = dict[str, Any]

WHOLE = "datum.of.fine.n.value >= datum.of.coarse.n.value"  # no sample lies before the last minutes
BEYOND_ROWS = 1 << (LAST_OCTAVE + 1)  # the upper edge of the row above all edges

# A layout whose bins are not those of the panel (exponential, listed edges), among the first two of a run.
LISTED = "length(datum.of_kind.layouts.buckets) > {0} && indexof(datum.of_kind.layouts.buckets[{0}].key, 'loglinear') != 0"

AS_WIDE = f"datum.half / datum.wide <= {NARROW_ROWS}"  # bins that are no finer than the rows of a distribution
EXTREMES = [
    (f"datum.part.{name}.value", f"{nearer}(datum.v, datum.part.{name}.value)")
    for name, nearer in (("least", "max"), ("max", "min"))
]
CARRIES = "(datum.p <= 50 || datum.n * round((100 - datum.p) * 1e4) >= 1e6)"
BEYOND = "datum.n - ceil(datum.n * round(datum.p * 1e4) / 1e6)"
KNOWN = {"type": "lookup", "from": "chosen", "key": "run", "fields": ["_source.run.id"], "values": ["run"], "as": ["known"]}
POINT = ("t", "t2", "label", "row", "p", "v", "n", "beyond", "open")


def entry(name: str, source: str | Sequence[str], *transforms: Transform | Sequence[Transform]) -> Entry:
    """Return a data entry made from others."""
    flat = [step for part in transforms for step in ([part] if isinstance(part, dict) else part)]
    return {"name": name, "source": source if isinstance(source, str) else list(source), "transform": flat}


def keep(expression: str) -> Transform:
    """Return the transform that keeps rows."""
    return {"type": "filter", "expr": expression}


def flatten(field: str, name: str) -> Transform:
    """Return the transform that makes a row of each element of an array."""
    return {"type": "flatten", "fields": [field], "as": [name]}


def only(*names: str) -> Transform:
    """Return the transform that keeps columns alone: rows hold no reference to the answer."""
    return {"type": "project", "fields": list(names)}


def chosen_runs(layers: Sequence[str] = ()) -> list[Entry]:
    """Return the entry `chosen`; where runs were asked for by layer, with the layer as `row`, in the order of `layers`."""
    kinds = [flatten("by_run.kinds.buckets", "of")]
    if layers:
        parts = ", ".join(f"{{layer: '{layer}', kinds: datum.by_run.{layer}.kinds.buckets}}" for layer in layers)
        kinds = [
            formula("parts", f"[{parts}]"),
            flatten("parts", "part"),
            flatten("part.kinds", "of"),
            formula("row", "datum.part.layer"),
        ]
    return [
        entry(
            "chosen",
            "answer",
            formula("several", "datum.names.value"),
            flatten("runs.buckets", "by_run"),
            formula("run", "datum.by_run.key"),
            formula("failed", "datum.by_run.failed ? datum.by_run.failed.n.value / max(1, datum.by_run.failed.kinds.value) : 0"),
            kinds,
            formula("of_kind", "datum.of"),
            formula("kind", "datum.of.key"),
            formula("of", f"datum.of.fine ? ({WHOLE} ? datum.of.fine : datum.of.coarse) : datum.of"),
            formula("name", "datum.run + ', ' + datum.kind"),
            formula("layout", "length(datum.of_kind.layouts.buckets) == 1 ? datum.of_kind.layouts.buckets[0].key : ''"),
            layout_columns("datum.layout"),
            formula("approximate", f"({LISTED.format(0)}) || ({LISTED.format(1)}) ? 1 : 0"),
            formula("step", "datum.of.step.value || 0"),
            formula("lacking", "datum.of.lacking && datum.of.lacking.n.value > 0 ? 1 : 0"),
            formula("width", "max(datum.apart, datum.step)"),
        )
    ]


def rows_of(path: Sequence[str], name: str) -> list[Entry]:
    """Return the entries `chosen` and `wide`, one row each of the aggregations `path`, the inner ones in those before them.

    `name` is an expression of their keys, `datum.host_key`; `chosen` knows how many rows there are.
    """
    inner = zip(("of", *("one" for _ in path[1:])), path, strict=True)
    nested = [
        [
            formula(f"{part}_left", f"datum.{outer}.{part}.sum_other_doc_count"),
            flatten(f"{outer}.{part}.buckets", "one"),
            formula(f"{part}_key", "datum.one.key"),
        ]
        for outer, part in inner
    ]
    rows = entry("wide", "chosen", *nested, formula("row", name))
    [asked] = chosen_runs()
    return [{**asked, "transform": [*asked["transform"], formula("rows", "datum.of.named.value")]}, rows]


def windows(
    source: str = "chosen",
    buckets: str = "of.over_time.buckets",
    kept: Sequence[str] = (),
    more: Sequence[Transform] = (),
) -> Entry:
    """Return the entry `windows`: the windows that have samples."""
    return entry(
        "windows",
        source,
        flatten(buckets, "window"),
        formula("t", "datum.window.key"),
        formula("t2", "datum.t + datum.width"),
        formula("n", "datum.window.n.value"),
        keep("datum.n > 0"),
        list(more),
        only("run", "kind", "name", "t", "t2", "n", "window", *LAYOUT_COLUMNS, *kept),
    )


def percentile_rows(name: str, source: str, values: str, chosen: str, kept: Sequence[str] = ()) -> Entry:
    """Return an entry with one row a window and percentile of the list `chosen`: p, label, beyond, carried, v (snapped)."""
    return entry(
        name,
        source,
        formula("percents", chosen),
        flatten("percents", "p"),
        formula("h", reached(f"datum.{values}", "datum.p")),
        keep("isNumber(datum.h)"),
        formula("label", "'p' + datum.p"),
        formula("row", "datum.label"),
        formula("carried", CARRIES),
        formula("beyond", BEYOND),
        within("v", "datum.h"),
        only(*POINT, "carried", "top_ns", *LAYOUT_COLUMNS, *kept),
    )


def within(name: str, value: str) -> list[Transform]:
    """Return transforms for what a bin reports of a percentile: none lies beyond the known extremes (extremes_of)."""
    return [*snapped(name, value), formula(name, f"max(datum.least, min(datum.{name}, datum.top_ns))")]


def reached(values: str, percent: str) -> str:
    """Return the expression for a percentile of `datum.n` samples in an answer to requests.ranks.

    It is that at the nearest rank; of more samples than were reckoned with at that rank or one below.
    """
    return f"({values}[{percent_key(percent)}] || {values}[{_as_java(percent)}])"


def percent_key(percent: str) -> str:
    """Return the expression for the name in an answer to requests.ranks of what has the nearest rank of a percentile.

    Where the rank round(p n) of the server is the nearest rank, `short` of which it is by less than a half, the name is that of
    the percentile; else that of the highest one that does not overshoot the rank.
    """
    parts = f"datum.n * round({percent} * 1e4) / 1e6"
    short = f"(ceil({parts}) - {parts})"
    step = f"max(0, ceil(log((100 - {percent}) * datum.n / 100 / ({short} + 0.49)) / log({requests.RATIO})))"
    raised = f"{percent} + toNumber(format((100 - {percent}) * pow({requests.RATIO}, -{step}), '.3~r'))"
    return _as_java(f"{short} < 0.49 || {percent} == {requests.MEDIAN} ? {percent} : {raised}")


def _as_java(number: str) -> str:
    """Return the expression for a number as Java writes it: 99.9, 50.0."""
    return f"replace(format({number}, '.12~f'), regexp('^([0-9]+)$'), '$1.0')"


def carried(source: str, name: str = "points", kept: Sequence[str] = ()) -> Entry:
    """Return the rows that have samples enough for their percentile."""
    return entry(name, source, keep("datum.carried"), only(*POINT, *kept))


def maxima(source: str, name: str, *, label: str | None = None, thin: str = "") -> Entry:
    """Return rows with the maximum (column top_ns) of each window; with `thin` of those too few for their percentile."""
    labelled = [formula("label", f"'{label}'"), formula("row", f"'{label}'"), formula("p", "100"), formula("beyond", "0")]
    filtered = [keep(thin)] if thin else []
    return entry(
        name,
        source,
        filtered,
        labelled if label else [],
        formula("v", "datum.top_ns"),
        keep("datum.v > 0"),
        bin_of("own", "datum.v"),
        formula("open", "datum.half && datum.own == datum.top ? 1 : 0"),
        only(*POINT),
    )


def top_of(aggregations: str) -> list[Transform]:
    """Return transforms that add `top_ns`, the maximum, from the aggregations max and top (requests.tops).

    A maximum that is not exact is the upper edge of its bin: then what the bin reports is taken, as for a percentile of 100.
    """
    largest, reported = f"{aggregations}.max.value", f"{aggregations}.top.value"
    bin_columns = [*bin_of("own", reported), *edges_of("own")]
    known = f"{largest} > 0 && (!datum.half || {largest} != datum.upper_edge || datum.own == datum.top)"
    return [*bin_columns, formula("top_ns", f"{known} ? {largest} : {reported}")]


def extremes_of(aggregations: str) -> list[Transform]:
    """Return transforms that add `top_ns` and `least`, the known minimum or 0, from requests.extremes."""
    return [*top_of(aggregations), formula("least", f"{aggregations}.least.value || 0")]


def gaps(source: str = "windows", *, by: str = "", name: str = "gaps") -> Entry:
    """Return the stretches between windows in which nothing completed, of all or of each row of `by`."""
    group = {"groupby": [by]} if by else {}
    between = [
        {"type": "window", "sort": {"field": "t"}, "ops": ["lag"], "fields": ["t2"], "as": ["before"], **group},
        keep("datum.before && datum.before < datum.t"),
        formula("t2", "datum.t"),
        formula("t", "datum.before"),
        only("t", "t2", *([by] if by else [])),
    ]
    return entry(name, source, between)


def row_gaps(source: str = "windows") -> list[Entry]:
    """Return the entry `gaps` of a map with rows: between the windows of a row, before its first and after its last."""
    extent = {"type": "joinaggregate", "ops": ["min", "max"], "fields": ["t", "t2"], "as": ["first_t", "last_t2"]}
    own = {"type": "joinaggregate", "groupby": ["row"], "ops": ["min", "max"], "fields": ["t", "t2"], "as": ["own_t", "own_t2"]}
    before = [extent, own, keep("datum.t == datum.own_t && datum.own_t > datum.first_t")]
    after = [extent, own, keep("datum.t2 == datum.own_t2 && datum.own_t2 < datum.last_t2")]
    return [
        gaps(source, by="row", name="gaps_between"),
        entry("gaps_before", source, before, formula("t2", "datum.own_t"), formula("t", "datum.first_t"), only("t", "t2", "row")),
        entry("gaps_after", source, after, formula("t", "datum.own_t2"), formula("t2", "datum.last_t2"), only("t", "t2", "row")),
        entry("gaps", ["gaps_between", "gaps_before", "gaps_after"]),
    ]


def cells(source: str = "windows", kept: Sequence[str] = ()) -> list[Entry]:
    """Return the entry `cells`: occupied rows of each window with what their shade needs; `drop` percent lie above the map."""
    columns = ("t", "t2", "lower", "upper", "c", "open", *kept)
    by_window = {"groupby": [*kept, "t"]}
    raw = entry(
        "all_cells",
        source,
        rows_below("window.latency.values"),
        formula("first", "datum.top * datum.wide"),
        formula("last_edge", "datum.top < 0 ? 0 : " + _edge_of_first()),
        formula("open", "datum.top >= 0 && datum.upper > datum.last_edge ? 1 : 0"),
        only(*columns),
    )
    rows = entry(
        "latency_rows",
        "all_cells",
        {"type": "aggregate", "groupby": ["upper"], "ops": ["sum"], "fields": ["c"], "as": ["c"]},
        {"type": "joinaggregate", "ops": ["sum"], "fields": ["c"], "as": ["total"]},
        {"type": "window", "sort": {"field": "upper", "order": "descending"}, "ops": ["sum"], "fields": ["c"], "as": ["above"]},
        keep("datum.above > datum.total * drop / 100"),
        {"type": "aggregate", "ops": ["max"], "fields": ["upper"], "as": ["limit"]},
    )
    limit = formula("limit", "length(data('latency_rows')) ? data('latency_rows')[0].limit : 0")
    inside = entry(
        "inside_cells", "all_cells", limit, keep("datum.upper <= datum.limit"), formula("over", "0"), only(*columns, "over")
    )
    sums = {"ops": ["sum", "max", "max", "min"], "fields": ["c", "upper", "open", "limit"], "as": ["c", "upper", "open", "lower"]}
    outside = entry(
        "outside_cells",
        "all_cells",
        limit,
        keep("datum.upper > datum.limit"),
        {"type": "aggregate", "groupby": [*kept, "t", "t2"], **sums},
        formula("over", "1"),
    )
    shaded = entry(
        "cells",
        ["inside_cells", "outside_cells"],
        {"type": "joinaggregate", **by_window, "ops": ["sum"], "fields": ["c"], "as": ["n"]},
        {"type": "window", **by_window, "sort": {"field": "lower"}, "ops": ["sum"], "fields": ["c"], "as": ["cum"]},
    )
    return [edges(ROWS), raw, rows, inside, outside, shaded]


def rows_below(ranks: str) -> list[Transform]:
    """Return transforms that make a row of each latency that has samples: lower, upper (ns), c (samples).

    `ranks` are the answers to requests.latency_rows: the percentage of the `n` samples below each edge.
    """
    below = f"(datum.edge.above ? datum.{ranks}[datum.edge.above] : 100)"
    before = f"(datum.edge.below ? datum.{ranks}[datum.edge.below] : 0)"
    return [
        formula("edges", "data('edges')"),
        flatten("edges", "edge"),
        formula("c", f"round(datum.n * ({below} - {before}) / 100)"),
        keep("datum.c > 0"),
        formula("lower", "datum.edge.lower"),
        formula("upper", "datum.edge.upper"),
    ]


def edges(an_octave: int) -> Entry:
    """Return the entry `edges`: the rows of requests.latency_rows, with the names of their ends in an answer (`below`, `above`).

    There is one row below all edges, from 0 on, and one above, to 2^37 ns. Java writes 10,733,568 as 1.0733568E7.
    """
    number = (LAST_OCTAVE - FIRST_OCTAVE) * an_octave + 1
    edge = f"pow(2, {FIRST_OCTAVE} + floor({{at}} / {an_octave})) * (1 + {{at}} % {an_octave} / {an_octave})"
    whole, power = "datum.asked + '.0'", "replace(format(datum.asked, '.15~e'), 'e+', 'E')"
    named = f"datum.asked < 1e7 ? {whole} : replace({power}, regexp('^([0-9])E'), '$1.0E')"
    shift = {"type": "window", "ops": ["lag", "lag"], "fields": ["edge", "name"], "as": ["lower", "below"]}
    return {
        "name": "edges",
        "transform": [
            {"type": "sequence", "start": 0, "stop": number + 1, "as": "at"},
            formula("edge", f"datum.at < {number} ? {edge.format(at='datum.at')} : {BEYOND_ROWS}"),
            formula("asked", "datum.edge - floor(datum.edge / 512)"),
            formula("name", f"datum.at < {number} ? ({named}) : null"),
            {**shift, "sort": {"field": "at"}},
            formula("lower", "datum.lower || 0"),
            formula("upper", "datum.edge"),
            formula("above", "datum.name"),
        ],
    }


def _edge_of_first() -> str:
    [edge] = [step["expr"] for step in edges_of("top") if step["as"] == "lower_edge"]
    return str(edge)


def curve(parts: Sequence[Transform]) -> list[Entry]:
    """Return the entry `points` of a distribution: steps of each label, v up to x = 1 / (1 - q).

    `parts` make rows with the columns label and part, the aggregation with the counts by latency.
    """
    steps = entry(
        "curve",
        "chosen",
        list(parts),
        formula("n", "datum.part.n.value"),
        keep("datum.n > 0"),
        rows_below("part.latency.values"),
        formula("lower", "datum.lower || datum.upper - 1"),
        {"type": "joinaggregate", "groupby": ["label"], "ops": ["sum"], "fields": ["c"], "as": ["n"]},
        {"type": "window", "groupby": ["label"], "sort": {"field": "lower"}, "ops": ["sum"], "fields": ["c"], "as": ["cum"]},
        formula("x", "datum.n / max(1, datum.n - datum.cum)"),
        bin_of("own", "datum.lower"),
        value_of("v", "own"),
        formula("v", f"datum.half && {AS_WIDE} ? datum.v : datum.upper < {BEYOND_ROWS} ? datum.upper : datum.lower"),
        *(
            formula("v", f"{known} && {known} >= datum.lower && {known} < datum.upper ? {one} : datum.v")
            for known, one in EXTREMES
        ),
        formula("open", "datum.half && datum.own == datum.top ? 1 : 0"),
        formula("t", "datum.cum"),
        formula("t2", "datum.lower"),
        only("label", "x", "v", "cum", "n", "open", "t", "t2"),
    )
    first = {"type": "aggregate", "groupby": ["label", "n"], "ops": ["min"], "fields": ["v"], "as": ["v"]}
    begin = entry("begins", "curve", first, formula("x", "1"), formula("cum", "0"), formula("open", "0"))
    joined = entry("points", ["begins", "curve"], {"type": "collect", "sort": {"field": ["label", "cum"]}})
    return [edges(NARROW_ROWS), steps, begin, joined]


def noted(**columns: str) -> list[Entry]:
    """Return the entries of `held_against`, and `marks`, what was noted of the chosen runs.

    Whatever host or operation is chosen.
    """
    table = entry(
        "marks",
        "notes",
        KNOWN,
        keep("datum.known && datum._source.mark"),
        formula("t", "toNumber(datum.sort[2])"),
        formula("t2", "isValid(datum._source.mark.duration_ns) ? datum.t + datum._source.mark.duration_ns / 1e6 : null"),
        formula("text", "datum._source.text"),
        only("t", "t2", "text"),
    )
    return [*held_against(**columns), table]


def hits(name: str) -> Entry:
    """Return the entry with the hits of the answer."""
    rows = [formula("found", "datum.hits ? datum.hits.hits : []"), flatten("found", "hit")]
    columns = [formula(column, f"datum.hit.{column}") for column in ("_source", "sort")]
    return entry(name, "answer", rows, columns, only("_source", "sort"))


def held_against(**columns: str) -> list[Entry]:
    """Return the entries `notes`, and `promises`: what the chosen runs were held against, of the kinds that are shown.

    `columns` are further ones, expressions of a note.
    """
    shown_kind = "indexof(pluck(data('chosen'), 'kind'), datum._source.kind) >= 0"
    promises = entry(
        "promises",
        "notes",
        KNOWN,
        keep("datum.known && datum._source.objective && datum._source.objective.threshold_ns > 0"),
        keep(f"datum._source.objective.threshold_ns < {ANY_LATENCY} && (!datum._source.kind || {shown_kind})"),
        formula("percentile", "toNumber(datum._source.objective.percentile)"),
        formula("threshold", "datum._source.objective.threshold_ns"),
        *(formula(name, value) for name, value in columns.items()),
        {"type": "aggregate", "groupby": ["percentile", "threshold", *columns]},
        {"type": "collect", "sort": {"field": "threshold"}},
    )
    return [hits("notes"), promises]
