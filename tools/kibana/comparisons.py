"""The pictures of two runs: the two that are chosen, else the two that began last, each over the time since its first window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.kibana import requests, tables
from tools.kibana.bins import formula
from tools.kibana.filling import Signal, Spec, filled, named, percentile, promised, shades, threshold
from tools.kibana.pictures import NEAREST, answer, bounded
from tools.kibana.pictures import curves as drawn_curves
from tools.kibana.tables import Entry, entry

RUNS = 2
PERCENTILE_WINDOWS, HEAT_WINDOWS = 35, 21


def runs(prefix: str, fields: Mapping[str, Any]) -> Spec:
    """Return a percentile of both runs over elapsed time, on the same scales."""
    each = {"n": requests.samples(), **requests.extremes(), "p": requests.ranks()}
    asked = {"over_time": requests.windows(PERCENTILE_WINDOWS, each)}
    data = [
        answer(prefix, requests.body(fields, asked, RUNS)),
        *tables.chosen_runs(),
        bounded(),
        elapsed("windows"),
        tables.percentile_rows("ranked", "elapsed", "window.p.values", "[percentile]", ("run", "name")),
        tables.carried("ranked", kept=("run", "name")),
        *tables.held_against(),
        promised(),
    ]
    return filled(
        "runs", data, [percentile(), *threshold(kept=True), named(), tall("cell")], f"'p' + percentile + ' ' + {NEAREST}"
    )


def maps(prefix: str, fields: Mapping[str, Any]) -> Spec:
    """Return the heat maps of both runs over elapsed time; shades compare the cells of both."""
    asked = {
        "over_time": requests.windows(HEAT_WINDOWS, {"n": requests.samples(), "latency": requests.latency_rows(requests.ROWS)})
    }
    data = [
        answer(prefix, requests.body(fields, asked, RUNS)),
        *tables.chosen_runs(),
        tables.windows(),
        elapsed("windows"),
        *tables.cells("elapsed", ("run", "name")),
        *tables.held_against(),
    ]
    none = {"name": "drop", "value": 0}
    return filled("maps", data, [*shades(), none, tall("tall")], "'shades compare the cells of all runs'")


def curves(prefix: str, fields: Mapping[str, Any]) -> Spec:
    """Return the distributions of both runs on one pair of axes."""
    kinds = {"type": "joinaggregate", "ops": ["distinct"], "fields": ["kind"], "as": ["kinds"]}
    data = [
        answer(prefix, requests.body(fields, requests.curve(), RUNS)),
        *tables.chosen_runs(),
        *tables.curve([kinds, formula("part", "datum.of"), formula("label", "datum.kinds > 1 ? datum.name : datum.run")]),
        *tables.held_against(),
    ]
    return drawn_curves(data)


def tall(name: str) -> Signal:
    """Return the signal with the height of a picture: the panel's, shared by its rows."""
    return {"name": name, "update": "max(60, height / ceil(max(1, count) / columns) - 74)"}


def elapsed(source: str) -> Entry:
    """Return the windows with their times counted in ms from the first window of their run."""
    began = {"type": "joinaggregate", "groupby": ["name"], "ops": ["min"], "fields": ["t"], "as": ["began"]}
    return entry("elapsed", source, began, formula("t", "datum.t - datum.began"), formula("t2", "datum.t2 - datum.began"))
