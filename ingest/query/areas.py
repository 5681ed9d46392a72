"""By how much samples took longer than as many of a reference: the area by which one quantile function lies above another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Int, Intervals
from ingest.core.series import Group
from ingest.query.spans import pieces

Float = NDArray[np.float64]

CELLS = 1 << 14
MANY_ROWS = 100  # from here on the table of all cells takes less time than it spares


def excess_of(rows: Intervals[Group], group: Int, reference: Intervals[Group]) -> Float:
    """Return N times the one-sided area between the quantile function of each row and its reference's, in ns; `group` is its row.

    The area by which one quantile function lies above another is that by which its distribution function lies below: the
    integral of max(F_reference - F, 0) over latencies. F is a step function, so that it is a difference of two integrals of
    F_reference on each of its steps. Exact for the bins.
    """
    values = rows.layout.values.astype(np.float64)
    samples = rows.samples
    out = np.zeros(len(rows))
    order = np.argsort(group, kind="stable")
    edges = np.searchsorted(group[order], np.arange(len(reference) + 1))
    for code in range(len(reference)):
        mine = np.sort(order[edges[code] : edges[code + 1]])
        if not len(mine):
            continue
        kept = slice(int(reference.indptr[code]), int(reference.indptr[code + 1]))
        knots = values[reference.bins[kept]]
        below = np.cumsum(reference.counts[kept]) / reference.counts[kept].sum()
        area = np.concatenate([[0.0], np.cumsum(np.diff(knots) * below[:-1])])
        place = np.searchsorted(knots, values, side="right") - 1
        inside = np.maximum(place, 0)
        upto = np.where(place < 0, 0.0, area[inside] + below[inside] * (values - knots[inside]))  # of F_reference, by bin
        found = Places(below, many=len(mine) > MANY_ROWS)
        for piece, own in pieces(rows.take(mine)):
            out[mine[piece]] = samples[mine[piece]] * _areas(own, values, knots, area, upto, found)
    return out


class Places:
    """Finds the first of rising shares that is above another: `np.searchsorted(shares, other, side="right")`, for many others.

    Where no share lies within a cell of the unit interval, a table knows the place of all that do.
    """

    def __init__(self, shares: Float, *, many: bool) -> None:
        self._shares, self._table = shares, np.empty(0, np.int64)
        if many:
            self._table = np.searchsorted(shares, np.arange(CELLS + 2) / CELLS, side="right")
            self._open = self._table[1:] > self._table[:-1]

    def above(self, others: Float) -> Int:
        """Return the place of each; all lie within 0 and 1."""
        if not len(self._table):
            return np.searchsorted(self._shares, others, side="right")
        cell = (others * CELLS).astype(np.int64)  # exact: CELLS is a power of two
        place: Int = self._table[cell]
        within = np.flatnonzero(self._open[cell])
        place[within] = np.searchsorted(self._shares, others[within], side="right")
        return place


def _areas(own: Intervals[Group], values: Float, knots: Float, area: Float, upto: Float, found: Places) -> Float:
    """Return the integral of max(F_reference - F, 0) of each row.

    `area` is that of F_reference up to each of its knots, `upto` that up to each bin; `found` finds knots by F_reference.
    """
    at = values[own.bins]
    total = np.concatenate([[0], np.cumsum(own.counts)])
    first, last = own.indptr[:-1], own.indptr[1:] - 1
    row = own.row
    share = (total[1:] - total[first][row]) / (total[last + 1] - total[first])[row]
    until, upto_at = np.append(at[1:], 0.0), upto[own.bins]
    # Where F_reference first exceeds the level of this step: from there on it lies above.
    place = found.above(share)
    crossing = np.append(knots, np.inf)[place]
    gains = crossing < until
    gains[last] = False
    steps = np.flatnonzero(gains)
    low, high, since = at[steps], until[steps], crossing[steps]
    upto_since = np.where(since <= low, upto_at[steps], area[place[steps]])
    gained = np.zeros(len(at))
    gained[steps] = upto_at[steps + 1] - upto_since - share[steps] * (high - np.maximum(low, since))
    sums: Float = np.add.reduceat(gained, first) + upto_at[first]
    return np.maximum(sums, 0.0)
