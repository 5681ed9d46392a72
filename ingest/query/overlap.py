"""Counts of ranges spread over other ranges in proportion to their overlap: what heat maps are resampled by.

    ranges [0, 20): 10, [20, 30): 20, [30, 100): 60        over ten rows of [0, 120)
    6, 12, 17.14, 10.29, 10.29, 10.29, 10.29, 10.29, 3.43, 0

A range is taken to be evenly filled. Where every range lies in one row, counts stay whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Int

Float = NDArray[np.float64]


def overlaps(lower: Int, upper: Int, edges: NDArray[Any]) -> tuple[Int, Int, Float]:
    """Return (range, row, share): the share of each range [lower, upper) that lies in each row [edges[i], edges[i + 1]).

    Edges ascend; what of a range lies outside of all rows is in no share.
    """
    first = np.maximum(np.searchsorted(edges, lower, side="right") - 1, 0)
    last = np.minimum(np.searchsorted(edges, upper, side="left") - 1, len(edges) - 2)
    width = np.maximum(last - first + 1, 0)
    which = np.repeat(np.arange(len(lower)), width)
    row = np.arange(int(width.sum())) - np.repeat(np.cumsum(width) - width - first, width)
    shared = np.minimum(upper[which], edges[row + 1]) - np.maximum(lower[which], edges[row])
    share = shared / (upper[which] - lower[which])
    kept = np.flatnonzero(share > 0)
    return which[kept], row[kept], share[kept]


def autoscaled(most: int) -> int:
    """Return a round limit above `most`, at most a quarter higher, that stays while the maximum wanders a little."""
    unit: int = 10 ** (len(str(most)) + 3)
    scaled = most * 10**3
    limit, turn = (scaled // unit + 1) * unit, 0
    while 4 * limit >= 5 * scaled and unit > 1:
        unit //= 2 if turn % 2 else 5
        limit, turn = (scaled // unit + 1) * unit, turn + 1
    return -(-limit // 10**3)
