"""By how much samples took longer than as many of a reference: the area by which one quantile function lies above another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Int, Intervals
from ingest.core.series import Group

Float = NDArray[np.float64]


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
        own = rows.take(mine)
        kept = slice(int(reference.indptr[code]), int(reference.indptr[code + 1]))
        knots = values[reference.bins[kept]]
        below = np.cumsum(reference.counts[kept]) / reference.counts[kept].sum()
        area = np.concatenate([[0.0], np.cumsum(np.diff(knots) * below[:-1])])
        out[mine] = samples[mine] * _areas(own, values, knots, below, area)
    return out


def _areas(own: Intervals[Group], values: Float, knots: Float, below: Float, area: Float) -> Float:
    """Return the integral of max(F_reference - F, 0) of each row; `area` is that of F_reference up to each of its knots."""
    place = np.searchsorted(knots, values, side="right") - 1
    inside = np.maximum(place, 0)
    upto = np.where(place < 0, 0.0, area[inside] + below[inside] * (values - knots[inside]))  # of F_reference, by bin
    at = values[own.bins]
    total = np.concatenate([[0], np.cumsum(own.counts)])
    first, last = own.indptr[:-1], own.indptr[1:] - 1
    share = (total[1:] - total[own.indptr[:-1]][own.row]) / own.samples[own.row]
    until, upto_at = np.append(at[1:], 0.0), upto[own.bins]
    upto_until = np.append(upto_at[1:], 0.0)
    until[last], upto_until[last] = at[last], upto_at[last]
    # Where F_reference first exceeds the level of this step: from there on it lies above.
    place = np.searchsorted(below, share, side="right")
    knot = np.minimum(place, len(knots) - 1)
    crossing = np.where(place < len(knots), knots[knot], np.inf)
    since = np.minimum(np.maximum(at, crossing), until)
    upto_since = np.where(crossing <= at, upto_at, np.where(crossing >= until, upto_until, area[knot]))
    gained = upto_until - upto_since - share * (until - since)
    gained[last] = 0.0
    sums: Float = np.add.reduceat(gained, first) + upto_at[first]
    return np.maximum(sums, 0.0)
