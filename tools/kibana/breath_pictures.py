"""The pictures of Snabb's breaths: what breaths of processes cost by what they moved, one small picture a process.

Both ask for the run that began last (or is chosen) and the processes of it that used the most cycles. Sums and cells are exact; a
line is that of least squares through all stored breaths of a process, from sums of its windows (ingest/query/breaths.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingest.core.breaths import BREATH, CYCLES, PACKETS
from ingest.query.breaths import CERTAIN, LEAST_FITTED
from tools.kibana import requests
from tools.kibana.bins import Transform, formula
from tools.kibana.filling import TRY, Signal, Spec, choice, filled, shades
from tools.kibana.tables import Entry, entry, flatten, keep, only

Json = dict[str, Any]

DENSITIES, SCATTERS = 3, 4
POINTS, LONGEST = 100, 20
STEPS = 40
SUMMED = ("known", "idle", "packets", "cycles", "packets_squared", "packets_cycles", "cycles_squared")
LINE = ("facet", "place", "label", "x", "v")
NONE = f"no breaths here (timelines of Snabb have them): {TRY}"


def density(prefix: str, _: Mapping[str, Any]) -> Spec:
    """Return the counts of breaths by packets moved and cycles a packet, exactly."""
    cells = {"histogram": {"field": "breath.cells", "interval": 1, "min_doc_count": 1}}
    data = [
        answer(prefix, body(DENSITIES, {"cells": cells})),
        *processes(),
        entry(
            "cells",
            "processes",
            flatten("one.cells.buckets", "cell"),
            formula("n", "datum.cell.doc_count"),
            formula("c", "datum.n"),
            formula("column", f"floor(datum.cell.key / {CYCLES.bins})"),
            formula("line", f"datum.cell.key % {CYCLES.bins}"),
            formula("x", _edge(PACKETS.half, "datum.column")),
            formula("x2", _edge(PACKETS.half, "(datum.column + 1)")),
            formula("y", _edge(CYCLES.half, "datum.line")),
            formula("y2", _edge(CYCLES.half, "(datum.line + 1)")),
            {"type": "joinaggregate", "groupby": ["facet"], "ops": ["sum"], "fields": ["c"], "as": ["all"]},
            only("facet", "place", "x", "x2", "y", "y2", "n", "c", "all"),
        ),
        *lines("cells", "x2", "datum.base / datum.x + datum.slope"),
    ]
    return filled("breath-density", data, [*shades(), *shape()], _note("exact counts"), width=False, nothing=NONE)


def scatter(prefix: str, _: Mapping[str, Any]) -> Spec:
    """Return single breaths, a random sample and the longest of each process, by packets and cycles."""
    wanted = {"first": (POINTS, {"_key": "asc"}), "longest": (LONGEST, {"cycles": "desc"})}
    single = {name: requests.highest(f"point.{name}") for name in ("packets", "cycles")}  # a place in the order has one breath
    places = {
        name: {"terms": {"field": "point.order", "size": size, "order": order}, "aggs": single}
        for name, (size, order) in wanted.items()
    }
    sample = {"filter": {"term": {"record": "point"}}, "aggs": places}
    data = [
        answer(prefix, body(SCATTERS, {"sample": sample})),
        *processes(),
        *(
            entry(
                name,
                "processes",
                flatten(f"one.sample.{name}.buckets", "point"),
                formula("x", "datum.point.packets.value"),
                formula("y", "datum.point.cycles.value"),
                formula("label", "'single breaths'"),
                only("facet", "place", "label", "x", "y"),
            )
            for name in wanted
        ),
        {"name": "points", "source": list(wanted)},
        *lines("points", "x", "datum.base + datum.slope * datum.x"),
    ]
    note = _note(f"the {LONGEST} longest and a random sample of {POINTS} breaths a process, lines through all")
    return filled("breaths", data, shape(), note, width=False, nothing=NONE)


def answer(prefix: str, asked: Mapping[str, Any]) -> Entry:
    """Return the data entry that holds the server's answer: all of it, as there are no aggregations where nobody uses Snabb."""
    return {"name": "answer", "url": requests.url(prefix, "points", asked), "format": {"type": "json"}}


def body(most: int, inner: Mapping[str, Any]) -> Json:
    """Return the request: one run, its `most` processes with the most cycles, the sums of each, and what is asked of them."""
    names = {name: {"terms": {"field": f"{name}.name", "size": 1}} for name in ("host", "process")}
    sums = {name: {"sum": {"field": f"breath.{name}"}} for name in SUMMED}
    cells = {**sums, "n": {"sum": {"field": "breath.count"}}, "rates": {"cardinality": {"field": "breath.rate"}}}
    source = {"field": "source.id", "size": most, "order": {"cycles": "desc"}}  # each process writes one timeline
    process = {"terms": source, "aggs": {**names, **cells, **inner}}
    run = {"field": "run.id", "size": 1, "shard_size": 5, "order": {"began": "desc"}, "collect_mode": "breadth_first"}
    ends = {"began": {"min": {"field": "@timestamp"}}, "ended": requests.highest("@timestamp"), "n": cells["n"]}
    named = {"named": {"cardinality": {"field": "process.name"}}}
    runs = {"terms": run, "aggs": {**ends, **named, "processes": process}}
    chosen = {"filter": {"bool": {"filter": [{"term": {"operation": BREATH}}]}}}
    return {"size": 0, "aggs": {"picked": {**chosen, "aggs": {"runs": runs, "names": {"cardinality": {"field": "run.id"}}}}}}


def processes() -> list[Entry]:
    """Return the entries `chosen` (the run) and `processes` (with the line through each), and `facets`, which are drawn."""
    chosen = entry(
        "chosen",
        "answer",
        keep("isValid(datum.aggregations)"),
        formula("several", "datum.aggregations.picked.names.value"),
        flatten("aggregations.picked.runs.buckets", "of"),
        formula("run", "datum.of.key"),
        formula("kind", "'breaths'"),
        formula("n", "datum.of.n.value"),
        keep("datum.n > 0"),
        formula("t", "datum.of.began.value"),
        formula("t2", "datum.of.ended.value"),
        formula("rows", "datum.of.named.value"),
        formula("width", "0"),
    )
    listed = entry(
        "processes",
        "chosen",
        flatten("of.processes.buckets", "one"),
        formula("host", "length(datum.one.host.buckets) ? datum.one.host.buckets[0].key + ' ' : ''"),
        formula("facet", "datum.host + datum.one.process.buckets[0].key"),
        {"type": "window", "ops": ["row_number"], "as": ["nth"]},
        formula("place", "datum.nth - 1"),
        formula("label", "datum.facet"),
        [formula(name, f"datum.one.{name}.value") for name in SUMMED],
        fitted(),
    )
    note = f"({_fit_text()}) + '; ' + format(datum.one.n.value, ',') + ' breaths'"
    facets = entry("facets", "processes", formula("title", "datum.facet"), formula("note", note))
    return [chosen, listed, {**facets, "transform": [*facets["transform"], only("facet", "place", "title", "note")]}]


def fitted() -> list[Transform]:
    """Return the transforms that add a line: base, slope, error, explained, and whether it is to be drawn."""
    mean = [formula("mean", "datum.packets / datum.known"), formula("middle", "datum.cycles / datum.known")]
    return [
        *mean,
        formula("spread", "datum.packets_squared / datum.known - datum.mean * datum.mean"),
        formula("joint", "datum.packets_cycles / datum.known - datum.mean * datum.middle"),
        formula("variance", "max(0, datum.cycles_squared / datum.known - datum.middle * datum.middle)"),
        formula("varied", "datum.spread > 1e-12 * datum.mean * datum.mean"),
        formula("slope", "datum.varied ? datum.joint / datum.spread : 0"),
        formula("base", "datum.middle - datum.slope * datum.mean"),
        formula("left", "max(0, datum.variance - datum.slope * datum.joint)"),
        formula("explained", "datum.variance ? 1 - datum.left / datum.variance : 1"),
        formula("error", "sqrt(datum.left / max(1, datum.known - 2) / max(datum.spread, 1e-300))"),
        formula("enough", f"datum.known >= {LEAST_FITTED}"),
        formula("certain", f"abs(datum.slope) >= {CERTAIN} * datum.error"),
        formula("drawn", "datum.enough && datum.varied && datum.certain && datum.one.rates.value == 1"),
    ]


def _fit_text() -> str:
    """Return the expression that describes the line, or why there is none."""
    line = "format(datum.base, ',.3~r') + ' + ' + format(datum.slope, ',.3~r') + ' a packet (R² '"
    few = "format(datum.known, ',') + ' breaths are too few for a line'"
    alike = "'no line: every breath moved ' + format(datum.mean, ',.6~g') + ' packets'"
    mixed = "'no line: its events have several rates'"
    unsure = (
        "'no line: ' + format(datum.slope, '.3~r') + ' ± ' + format(datum.error, '.2~r') + ' cycles a packet are not certain'"
    )
    why = f"!datum.enough ? {few} : !datum.varied ? {alike} : datum.one.rates.value > 1 ? {mixed} : {unsure}"
    return f"datum.drawn ? {line} + format(datum.explained, '.2f') + ')' : {why}"


def lines(reached: str, last: str, value: str) -> list[Entry]:
    """Return the entry `lines`, over the packets that the rows of `reached` have (up to their column `last`)."""
    ends = {"type": "aggregate", "groupby": ["facet"], "ops": ["min", "max"], "fields": ["x", last], "as": ["low", "high"]}
    known = {"type": "lookup", "from": "reach", "key": "facet", "fields": ["facet"], "values": ["low", "high"]}
    top = "datum.high - 1" if last == "x2" else "datum.high"
    return [
        entry("reach", reached, ends),
        entry(
            "lines",
            "processes",
            keep("datum.drawn"),
            known,
            keep("isNumber(datum.low)"),
            formula("steps", f"sequence(0, {STEPS + 1})"),
            flatten("steps", "step"),
            formula("x", f"datum.low + (({top}) - datum.low) * datum.step / {STEPS}"),
            formula("v", value),
            keep("datum.v > 0"),
            only(*LINE),
        ),
    ]


def shape() -> list[Signal]:
    """Return the signals of the grid of small pictures, and of its axes."""
    return [
        choice("axis", "log", ["log", "linear"], "axes"),
        {"name": "columns", "update": "width < 560 ? 1 : width < 900 && count > 3 ? 2 : max(1, count)"},
    ]


def _edge(half: int, index: str) -> str:
    """Return the expression for the lower edge of a bin of a log-linear layout of units."""
    return f"({index} < {2 * half} ? {index} : ({half} + {index} % {half}) * pow(2, floor({index} / {half}) - 1))"


def _note(what: str) -> str:
    rows = "data('chosen')[0].rows"
    shown = "length(data('facets'))"
    most = f"'the ' + {shown} + ' of ' + {rows} + ' processes with the most cycles; '"
    return f"({rows} > {shown} ? {most} : '') + '{what}'"
