"""How dark a cell of a map is, for renderers that have no Vega: what the specs in kibana/vega say of `shade`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

HALF = 2
WORDS = {"rank": "by rank", "linear": "in proportion", "exponent": "by square root"}


def used(counts: NDArray[np.float64], shading: str) -> str:
    """Return the shading that is used: in proportion instead of `rank` where at least half of the cells hold the same count."""
    _, alike = np.unique(counts[counts > 0], return_counts=True)
    return "linear" if shading == "rank" and len(alike) and HALF * alike.max() >= alike.sum() else shading


def shades(counts: NDArray[np.float64], shading: str) -> NDArray[np.float64]:
    """Return the shade of each cell, of the shape of `counts`: 0 only where there is nothing, up to 1 for the fullest.

    By `rank` among the different counts, so that faint patterns show (see `used`); `linear` is in proportion, `exponent` by the
    square root.
    """
    if used(counts, shading) == "rank":
        each, place = np.unique(counts, return_inverse=True)
        return (place.reshape(counts.shape) + (each[0] > 0)) / max(1, np.count_nonzero(each)) if len(each) else counts
    part: NDArray[np.float64] = counts / max(1.0, float(counts.max(initial=0)))
    return np.sqrt(part) if shading == "exponent" else part


def quarters(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least, the quartiles and the most of the different counts above zero; empty where there is none."""
    each = np.unique(counts[counts > 0])
    return each[(len(each) - 1) * np.arange(5) // 4] if len(each) else each
