"""The layers of a run under one another in the report, on one time axis and with one colour scale; layers.js draws them.

Bins of unlike layers have unlike heights, and layers unlike numbers of operations: a cell is coloured by the share of its
window's samples, per factor of 2 of latency. So an octave-wide bin has the colour of the narrow ones that it would be made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ingest.core.labels import LAYERS, bare_kind, default_kind, layer_of
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import spaced
from ingest.query.overview import Overview, fitted
from ingest.query.precision import precision_from
from ingest.query.question import Answer
from ingest.query.windows import regrouped
from ingest.view import vega
from ingest.view.page.tables import of_kind
from ingest.view.page.template import AFTER_HOSTS, Section, step_text
from ingest.view.specs import derived
from ingest.view.terminal.tables import bound_text

NAME = "layers"
MOST_WINDOWS = 180
ROWS_AN_OCTAVE = 4
(MEDIAN,) = parse_percentiles("50")


def sections(runs: Sequence[Overview]) -> list[Section]:
    """Return the section where a run was timed at several layers."""
    if all(len(run.cluster.layers) < 2 for run in runs):
        return []
    contents = [_content(run) for run in runs]
    return [Section(NAME, AFTER_HOSTS, ("panels/layers.js",), contents, {NAME: derived("layers")})]


def _content(run: Overview) -> dict[str, Any]:
    """Return the windows of each layer of a run, the client's first; no layers where there is one alone."""
    kinds = {key[run.cluster.by.index("kind")] for part in run.cluster.parts for key in part.table}
    if len({layer_of(kind) for kind in kinds}) < 2:
        return {"layers": []}
    answer, _ = fitted(run.cluster, MOST_WINDOWS)
    taken = {layer: default_kind(own) for layer in LAYERS if (own := [kind for kind in kinds if layer_of(kind) == layer])}
    return {"step": answer.step_ns / vega.MS, "layers": [_layer(answer, layer, kind) for layer, kind in taken.items()]}


@dataclass(frozen=True, slots=True)
class LayerCells:
    """The cells of one layer: `columns` are window start in ms, edges in ns, share of its window per octave, samples, open."""

    answer: Answer
    columns: dict[str, list[float]]


def layer_cells(answer: Answer, kind: str) -> LayerCells:
    """Return the cells of one kind of an answer by kind, in rows of at most ROWS_AN_OCTAVE, and the answer of that kind alone."""
    alone = regrouped(of_kind(answer, kind), ())
    columns: dict[str, list[float]] = {name: [] for name in ("t", "lower", "upper", "share", "n", "open")}
    for part in alone.parts:
        rows = part.in_layout(part.layout.coarser(ROWS_AN_OCTAVE))
        lower, upper = rows.layout.lower[rows.bins], rows.layout.upper[rows.bins]
        octaves = np.log2(upper / np.where(lower > 0, lower, upper / 2))  # the first bin begins at 0: an octave of it is shown
        columns["t"] += (rows.start_ns[rows.row] / vega.MS).tolist()
        columns["lower"] += lower.tolist()
        columns["upper"] += upper.tolist()
        columns["share"] += [float(f"{share:.3g}") for share in rows.counts / rows.samples[rows.row] / octaves]
        columns["n"] += rows.counts.tolist()
        columns["open"] += rows.layout.opened(rows.bins).astype(int).tolist()
    return LayerCells(alone, columns)


def _layer(answer: Answer, layer: str, kind: str) -> dict[str, Any]:
    """Return the cells of a layer, and what is said of it."""
    cells = layer_cells(answer, kind)
    bound = spaced(bound_text(precision_from(cells.answer.parts, MEDIAN)))
    said = {"layer": layer, "kind": vega.printable(bare_kind(kind)), "bound": bound, "windows": step_text(answer)}
    return {**said, **cells.columns}
