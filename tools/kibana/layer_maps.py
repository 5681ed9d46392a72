"""The picture of layers: a heat map of each layer of a run, one under another, with one axis of time and one scale of colour.

    chosen   one row a layer
      shapes   the bins of its layout, put together where they report into the same row of the request: lower, upper
      windows  one row a layer and window
        points a cell a row of the request that has samples, as high as its bins really are

A cell is coloured by the share of its window's samples, for each factor of 2 of latency, as in the report (panels/layers.py): so
bins of unlike width compare. What the server counts in a row are the samples of the bins that report a value in it, whole bins:
these are drawn. Where the bins of a layer are not known (it has several layouts) or finer than FINE an octave, it is the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingest.core.labels import CLIENT, LAYERS
from ingest.view.page.panels.layers import ROWS_AN_OCTAVE
from ingest.view.specs import derived
from tools.kibana import requests, tables
from tools.kibana.bins import bins_of, family_columns, formula
from tools.kibana.filling import Spec, clicked, filled
from tools.kibana.pictures import answer
from tools.kibana.requests import FIRST_OCTAVE, LAST_OCTAVE
from tools.kibana.tables import Entry, entry, flatten, keep, only

WINDOWS = 28  # of each layer, fine and coarse: see the budget in requests.py
FINE = 8  # bins an octave: finer ones are lower than half a row
BETWEEN = "24 / max(60, height / max(1, length(data('rows'))))"  # room for a line of text above each layer
OF_LAYER = f"length(split(datum._source.kind || '', ':')) > 1 ? split(datum._source.kind, ':')[0] : '{CLIENT}'"
HIGHEST_ROW = (LAST_OCTAVE - FIRST_OCTAVE) * ROWS_AN_OCTAVE + 1


def layers(prefix: str, fields: Mapping[str, Any]) -> Spec:
    """Return the heat maps of the layers of one run."""
    own = {"n": requests.samples(), "latency": requests.latency_rows(ROWS_AN_OCTAVE)}
    asked = {"n": requests.samples(), "error": requests.highest("latency.error"), "over_time": requests.windows(WINDOWS, own)}
    data = [
        answer(prefix, requests.body(fields, asked, by_layer=True)),
        *_chosen(),
        tables.windows(kept=("row",)),
        tables.edges(ROWS_AN_OCTAVE),
        *_shapes(),
        *_points(),
        entry("thin", "points", keep("false")),
        _rows(),
        *tables.row_gaps(),
        *_ticks(),
        *tables.noted(row=OF_LAYER),
    ]
    first = "data('rows')[0].row"
    alone = f"'of ' + {first} + ' operations alone: the run has no other layer here, or a kind, host or operation is chosen'"
    note = f"length(data('rows')) == 1 ? {alone} : 'one scale of latency and of colour for all layers'"
    signals = [
        clicked(),
        {"name": "yd", "update": "length(data('heights')) ? [data('heights')[0].low, data('heights')[0].high] : [1, 10]"},
        {"name": "between", "update": BETWEEN},
        {"name": "what", "value": "share of window"},
    ]
    return filled("layers", data, signals, note, width=False, picture=derived("layers"))


def _chosen() -> list[Entry]:
    """Return the entry `chosen`, which knows of each layer whether its bins are drawn as they are."""
    [asked] = tables.chosen_runs(LAYERS)
    own = [
        *family_columns("datum.layout"),
        formula("drawn", f"datum.family && datum.octave_bins <= {FINE} ? 1 : 0"),
        formula("approximate", "datum.approximate && !datum.drawn ? 1 : 0"),
    ]
    return [{**asked, "transform": [*asked["transform"], *own]}]


def _shapes() -> list[Entry]:
    """Return the entry `shapes`: which latencies the bins of a layer cover that report into a row of the request."""
    octave = "floor(log(datum.value) / LN2 + 1e-12)"
    part = f"floor((datum.value / pow(2, {octave}) - 1) * {ROWS_AN_OCTAVE})"
    within = f"1 + ({octave} - {FIRST_OCTAVE}) * {ROWS_AN_OCTAVE} + {part}"
    at = f"datum.value < {1 << FIRST_OCTAVE} ? 0 : datum.value >= {1 << LAST_OCTAVE} ? {HIGHEST_ROW} : {within}"
    bins = entry(
        "layer_bins",
        "chosen",
        keep("datum.drawn"),
        bins_of(),
        formula("key", f"datum.row + ' ' + ({at})"),
        only("key", "lower", "upper", "open"),
    )
    together = {"ops": ["min", "max", "max"], "fields": ["lower", "upper", "open"], "as": ["lower", "upper", "open"]}
    return [bins, entry("shapes", "layer_bins", {"type": "aggregate", "groupby": ["key"], **together})]


def _points() -> list[Entry]:
    """Return the entries `points`, the cells, and `heights`, the latencies from the lowest to the highest of them."""
    shape = {"type": "lookup", "from": "shapes", "key": "key", "fields": ["key"], "values": ["lower", "upper", "open"]}
    points = entry(
        "points",
        "windows",
        tables.rows_below("window.latency.values"),
        formula("key", "datum.row + ' ' + datum.edge.at"),
        {**shape, "as": ["from", "to", "open"]},
        formula("lower", "isValid(datum.to) ? datum.from : datum.lower"),
        formula("upper", "isValid(datum.to) ? datum.to : datum.upper"),
        formula("bottom", "datum.lower > 0 ? datum.lower : datum.upper / 2"),
        formula("v", "datum.c / datum.n * LN2 / log(datum.upper / datum.bottom)"),
        formula("n", "datum.c"),
        only("t", "t2", "row", "lower", "upper", "bottom", "v", "n", "open"),
    )
    extent = {"type": "aggregate", "ops": ["min", "max"], "fields": ["bottom", "upper"], "as": ["low", "high"]}
    return [points, entry("heights", "points", extent, keep("isValid(datum.low)"))]


def _rows() -> Entry:
    """Return the entry `rows`: the layers that have samples, from the top, and what is said of each."""
    kind = "split(datum.kind, ':')"
    bare = f"datum.row == '{CLIENT}' ? datum.kind : slice({kind}, 1)[0]"
    said = (
        f"datum.row + ': ' + ({bare}) + ' latency, windows of ' + format(datum.width / 1000, ',') + ' s, error of a value '"
        " + (isValid(datum.of.error.value) ? 'up to ' + format(100 * datum.of.error.value, '.2~r') + ' %' : 'not known')"
        " + ', ' + format(datum.of.n.value, ',') + ' samples' + (datum.approximate ? ', APPROXIMATE' : '')"
    )
    return entry("rows", "chosen", keep("datum.of.n.value > 0"), formula("says", said), only("row", "says"))


def _ticks() -> list[Entry]:
    """Return the entry `ticks`: the powers of ten on the latency axis of each layer."""
    first, last = (f"{side}(log(yd[{end}]) / LN10 {sign} 1e-9)" for side, end, sign in (("ceil", 0, "-"), ("floor", 1, "+")))
    powers = [
        formula("powers", f"sequence({first}, {last} + 1)"),
        flatten("powers", "power"),
        formula("tick", "pow(10, datum.power)"),
    ]
    return [entry("ticks", "rows", *powers, only("row", "tick"))]
