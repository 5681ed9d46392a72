"""The rows of a latency heat map: how many, between which latencies, nested in bins or equally high."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.dataclass import dataclass
from ingest.core.errors import UsageError
from ingest.core.intervals import Int
from ingest.core.layout import Layout
from ingest.core.writing import latency
from ingest.query.overlap import autoscaled

LINEAR_ROWS = 40
NONE = Fraction(0)


@dataclass(frozen=True, slots=True)
class Rows:
    """Which rows a map is to have.

    `low_ns` to `high_ns` is the range of latency (0: as far as there are samples), `most` how many rows at most (on a linear
    axis: how many; 0: no limit, on a linear axis 40), `octave` how many an octave at most (0: down to the bins themselves);
    where it is given, one an octave may be more than `most`. `drop` is the share of samples that may lie above the map, in a
    row of their own.
    """

    axis: str = "log"
    low_ns: int = 0
    high_ns: int = 0
    most: int = 0
    octave: int = 0
    drop: Fraction = NONE


@dataclass(frozen=True, slots=True)
class Ladder:
    """The rows: edges in ns, the first row that is open-ended, those that are shown (first, stop), the row of what was dropped.

    Rows outside of those shown hold what lies below and above; there is no dropped row where `over` is past the last.
    """

    edges: NDArray[Any]
    open_from: int
    first: int
    stop: int
    over: int


def ladder(rows: Rows, layout: Layout, sums: NDArray[Any]) -> Ladder:
    """Return the rows that are asked for, where `sums` are the samples of each bin of the layout.

    UsageError where the range holds no sample, or more rows are needed on a logarithmic axis.
    """
    if rows.axis == "linear":
        return _linear(rows, layout, sums)
    full = _logarithmic(rows, layout, np.flatnonzero(sums), kept(sums, rows.drop))
    if not rows.drop:
        return full
    places = np.searchsorted(full.edges, layout.edges[:-1], side="right") - 1
    held = np.zeros(len(full.edges) - 1)
    np.add.at(held, np.minimum(places, len(held) - 1), sums)
    stop, top = kept(held, rows.drop), int(np.flatnonzero(held)[-1])
    if stop > top:
        return full
    edges = np.concatenate([full.edges[: stop + 1], full.edges[top + 1 : top + 2]])
    return Ladder(edges, stop if top >= full.open_from else stop + 1, full.first, stop, stop)


def row_layout(layout: Layout, an_octave: int) -> Layout:
    """Return the layout of rows of so many an octave where their edges are edges of the bins, else the bins themselves."""
    return layout.coarser(an_octave)


def _logarithmic(rows: Rows, layout: Layout, used: Int, below: int) -> Ladder:
    """Return the finest rows that nest in the bins, are no more than asked, and hold the range, or the first `below` bins."""
    end = rows.high_ns or layout.edges[below]
    inside = used[(layout.edges[used + 1] > rows.low_ns) & (layout.edges[used] < end)]
    if not len(inside):
        raise UsageError(_nowhere(layout, used))
    an_octave = rows.octave or layout.octave
    while True:
        finest = an_octave >= layout.octave
        chosen = layout if finest else row_layout(layout, an_octave)
        edges = chosen.edges
        low, high = rows.low_ns or int(layout.edges[inside[0]]), rows.high_ns or int(layout.edges[inside[-1]]) + 1
        first, stop = int(np.searchsorted(edges, low, side="right")) - 1, int(np.searchsorted(edges[:-1], high, side="left"))
        least = an_octave == 1 or (chosen == layout and not finest)
        if not rows.most or stop - first <= rows.most or (least and rows.octave):
            return Ladder(edges, chosen.bins - 1 if chosen.open_ended else chosen.bins, first, stop, len(edges))
        if least:
            said = f"{stop - first} rows are the least on a logarithmic axis here"
            raise UsageError(f"--rows {rows.most}: {said}; choose a range with --latency, or --axis linear")
        an_octave //= 2


def _linear(rows: Rows, layout: Layout, sums: NDArray[Any]) -> Ladder:
    """Return equal rows of the range, else of what is left below the drop; one row more where samples lie above them."""
    used = np.flatnonzero(sums)
    top = int(layout.edges[used[-1]] + 1) if _is_open(layout, used[-1]) else int(layout.edges[used[-1] + 1])
    high = rows.high_ns or autoscaled(min(int(layout.edges[kept(sums, rows.drop)]), top))
    if rows.low_ns >= min(high, top) or high <= layout.edges[used[0]]:
        raise UsageError(_nowhere(layout, used))
    low, widest = rows.low_ns, int(np.diff(layout.edges)[used[layout.edges[used] < high]].max())
    most = rows.most or max(1, min(LINEAR_ROWS, (high - low) // widest))
    inner = low + (high - low) * np.arange(most + 1) / most
    below, above = [0.0] if low else [], [float(top)] if top > high else []
    edges = np.concatenate([below, inner, above])
    open_from = int(np.searchsorted(edges, layout.edges[-2], side="right")) - 1 if _is_open(layout, used[-1]) else len(edges)
    stop = len(below) + most
    return Ladder(edges, open_from, len(below), stop, len(edges) if rows.high_ns else stop)


def _is_open(layout: Layout, place: int) -> bool:
    return layout.open_ended and place == layout.bins - 1


def kept(sums: NDArray[Any], drop: Fraction) -> int:
    """Return how many of the lowest rows or bins stay where at most the share `drop` of all samples may lie above them."""
    above = np.cumsum(sums[::-1])[::-1]
    allowed = drop * Fraction(float(above[0])) if len(above) else NONE
    return int(np.flatnonzero(above > float(allowed))[-1]) + 1


def _nowhere(layout: Layout, used: Int) -> str:
    low, high = latency(int(layout.edges[used[0]])), latency(int(layout.edges[used[-1] + 1]))
    return f"no samples in the range of --latency: they lie between {low} and {high}"
