"""The picture of a sweep: what each run of it achieved, over its depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingest.query.sweeps import AT_ONCE, FIRST
from tools.kibana import requests, tables
from tools.kibana.bins import formula
from tools.kibana.filling import Spec, filled, named, percentile, promised, threshold
from tools.kibana.pictures import answer
from tools.kibana.tables import Entry, entry, flatten, keep, only

RUNS = 32
SETTINGS = tuple(name for name in FIRST if name not in AT_ONCE)  # runs that differ in these are a line each
POINT = ("run", "name", "label", "x", "rate", "v", "n")


def load(prefix: str, fields: Mapping[str, Any]) -> Spec:
    """Return a percentile of whole runs over their depth, where they are a sweep of depths; else over the rate they achieved."""
    each = {"n": requests.samples(), **requests.extremes(), "p": requests.ranks(most=requests.MOST_OF_RUN)}
    labels = {name: {"terms": {"field": f"labels.{name}", "size": 1}} for name in (*SETTINGS, *AT_ONCE)}
    asked = {
        **labels,
        "ended": requests.highest("interval.end_ns"),
        "start": {"min": {"field": "@timestamp"}},
        "operations": {"terms": {"field": "operation", "missing": "-", "size": requests.OPERATIONS}, "aggs": each},
    }
    own = [formula("n", "datum.part.n.value"), keep("datum.n > 0"), formula("rate", "datum.n / datum.seconds")]
    own += tables.extremes_of("datum.part")
    line = [formula("line", f"replace(trim({' + '.join(_setting(name) for name in SETTINGS)}), regexp('  +', 'g'), ' ')")]
    of_run = ("run", "name", "line", "at_once", "swept", "rate")
    data = [
        answer(prefix, requests.body(fields, asked, runs=RUNS)),
        *swept(),
        entry("parts", "chosen", flatten("of.operations.buckets", "part"), own, line, formula("t", "0"), formula("t2", "0")),
        tables.percentile_rows("ranked", "parts", "part.p.values", "[percentile]", (*of_run, "part")),
        entry(
            "points",
            "ranked",
            keep("datum.carried"),
            formula("label", "trim(datum.part.key + ' ' + datum.line)"),
            formula("name", "datum.run"),
            formula("x", "datum.swept ? datum.at_once : datum.rate"),
            only(*POINT),
        ),
        entry("capacities", "points", keep("false")),
        *tables.held_against(),
        promised(),
    ]
    depth = "length(data('chosen')) && data('chosen')[0].swept"
    axis = {"name": "depth", "update": depth}
    across = {"name": "across", "update": f"({depth}) ? 'requests at once: ' + data('chosen')[0].depth_name : 'I/Os a second'"}
    inputs = [percentile(), *threshold(kept=True), named(), axis, across]
    return filled("load", data, inputs, "'whole runs, p' + percentile + ' at the nearest rank'", width=False)


def swept() -> list[Entry]:
    """Return the entry `chosen`: also how long each run took, its depth (`at_once`), and whether runs are a sweep of depths."""
    found = [f"length(datum.of.{name}.buckets) ? '{name}'" for name in AT_ONCE]
    [chosen] = tables.chosen_runs()
    together = {
        "type": "joinaggregate",
        "ops": ["count", "valid", "distinct"],
        "fields": [None, "at_once", "at_once"],
        "as": ["all", "deep", "depths"],
    }
    more = [
        formula("seconds", "max(1, datum.of.ended.value / 1e6 - datum.of.start.value) / 1000"),
        formula("depth_name", f"{' : '.join(found)} : ''"),
        formula("at_once", "datum.depth_name ? toNumber(datum.of[datum.depth_name].buckets[0].key) : null"),
        together,
        formula("swept", "datum.deep == datum.all && datum.depths > 1"),
    ]
    return [{**chosen, "transform": [*chosen["transform"], *more]}]


def _setting(name: str) -> str:
    return f"(length(datum.of.{name}.buckets) ? datum.of.{name}.buckets[0].key + ' ' : '')"
