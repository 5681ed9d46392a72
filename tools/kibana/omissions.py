"""The pictures of coordinated omission: service, response and wait of one run beside one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingest.view.page.panels.omission import KINDS
from tools.kibana import requests, tables
from tools.kibana.bins import formula
from tools.kibana.filling import TRY, Spec, filled, named, percentile, promised, threshold
from tools.kibana.pictures import NEAREST, TOPMOST, answer, bounded, curves
from tools.kibana.tables import entry, keep

KIND_WINDOWS, GAP_WINDOWS = 17, 35
NONE = f"no service, response or wait time here (the load generator told none): {TRY}"
COMPARED = ("response", "service")
MEDIAN = tables.reached("datum.window.p.values", "50")
CHOSEN = tables.reached("datum.window.p.values", "percentile")


def kinds(prefix: str, fields: Mapping[str, Any]) -> Spec:
    """Return each kind over time: from its median to its maximum, the chosen percentile as a line."""
    asked = {"over_time": requests.windows(KIND_WINDOWS, {"n": requests.samples(), **requests.extremes(), "p": requests.ranks()})}
    data = [
        answer(prefix, requests.body(fields, asked, kinds=len(KINDS), only=KINDS)),
        *tables.chosen_runs(),
        bounded(),
        entry(
            "points",
            "windows",
            formula("label", "datum.kind"),
            formula("high", "datum.top_ns"),
            formula("open_high", TOPMOST),
            formula("median", MEDIAN),
            tables.within("low", "datum.median"),
            formula("p", "percentile"),
            formula("h", CHOSEN),
            tables.within("reached", "datum.h"),
            formula("v", f"{tables.CARRIES} ? datum.reached : null"),
            tables.only("t", "t2", "label", "low", "v", "high", "n", "open", "open_high"),
        ),
        tables.gaps(by="kind", name="gaps"),
        *tables.noted(),
        promised(),
    ]
    return filled(
        "omission",
        data,
        [percentile(), *threshold(kept=True), named()],
        f"'median, p' + percentile + ' and maximum ' + {NEAREST}",
        nothing=NONE,
    )


def gap(prefix: str, fields: Mapping[str, Any]) -> Spec:
    """Return by how much a percentile of response is above that of service, over time."""
    each = {"n": requests.samples(), **requests.extremes(), "p": requests.ranks()}
    asked = {"over_time": requests.windows(GAP_WINDOWS, each)}
    reached = [formula("p", "percentile"), keep(tables.CARRIES), formula("h", CHOSEN), *tables.within("v", "datum.h")]
    service = {
        "type": "lookup",
        "from": "service",
        "key": "t",
        "fields": ["t"],
        "values": ["v", "open"],
        "as": ["service", "below"],
    }
    data = [
        answer(prefix, requests.body(fields, asked, kinds=len(COMPARED), only=COMPARED)),
        *tables.chosen_runs(),
        bounded(),
        entry("ranked", "windows", reached, tables.only("kind", "t", "t2", "n", "v", "open")),
        entry("service", "ranked", keep("datum.kind == 'service'")),
        entry(
            "points",
            "ranked",
            keep("datum.kind == 'response'"),
            service,
            keep("isNumber(datum.service)"),
            formula("response", "datum.v"),
            formula("v", "datum.response - datum.service"),
            formula("open", "max(datum.open, datum.below)"),
            formula("label", "'all operations'"),
        ),
        tables.gaps(),
        *tables.noted(),
    ]
    both = f"'p' + percentile + ' of response minus that of service, ' + {NEAREST}"
    note = (
        f"length(data('points')) ? {both} : 'no window has both service and response time, and samples enough for p' + percentile"
    )
    return filled("gap", data, [percentile(), named()], note, nothing=NONE)


def kind_curves(prefix: str, fields: Mapping[str, Any]) -> Spec:
    """Return the distribution of each kind over 1 / (1 - q)."""
    data = [
        answer(prefix, requests.body(fields, requests.curve(), kinds=len(KINDS), only=KINDS)),
        *tables.chosen_runs(),
        *tables.curve([formula("part", "datum.of"), formula("label", "datum.kind")]),
        *tables.held_against(),
    ]
    return curves(data, NONE)
