"""How dark a cell of a map is, for renderers that have no Vega: what the specs in kibana/vega say of `shade`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

HALF = 2


def shades(counts: NDArray[np.float64], shading: str) -> NDArray[np.float64]:
    """Return the shade of each cell, of the shape of `counts`: 0 only where there is nothing, up to 1 for the fullest.

    By `rank` among the different counts, so that faint patterns show; in proportion (`linear`) where at least half of the cells
    hold the same count; `exponent` is by the square root.
    """
    each, place, alike = np.unique(counts[counts > 0], return_inverse=True, return_counts=True)
    shade = np.zeros(counts.shape)
    if not len(each):
        return shade
    if shading == "rank" and HALF * alike.max() < alike.sum():
        shade[counts > 0] = (place + 1) / len(each)
        return shade
    part: NDArray[np.float64] = counts / max(1.0, float(each[-1]))
    return np.sqrt(part) if shading == "exponent" else part


def quarters(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least, the quartiles and the most of the different counts above zero; empty where there is none."""
    each = np.unique(counts[counts > 0])
    return each[(len(each) - 1) * np.arange(5) // 4] if len(each) else each
