"""Where rising curves through uncertain points cross a level.

Each column of what is drawn is a curve that the points leave possible. It is made to rise (isotonic regression, weighted by how
sure its points are) and looked up where it crosses, by straight lines and by monotone cubics of the logit of the share, over
the load and over its logarithm. How these four differ is what is not known between two tested loads.

Sources: the min-max formula of isotonic regression: Robertson, Wright and Dykstra, Order restricted statistical inference (1988),
theorem 1.4.4; cubics: Fritsch and Carlson, SIAM J. Numer. Anal. 17 (1980), slopes as Fritsch and Butland, SIAM J. Sci. Stat.
Comput. 5 (1984); at the ends three-point slopes, as Moler, Numerical computing with MATLAB (2004), section 3.6.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

APART = 1e-6  # in logits: points of one height are taken for this far apart


def crossings(loads: Float, shares: Float, level: float, ends: tuple[float, float]) -> list[Float]:
    """Return the loads between `ends` at which drawn curves reach the share `level`, by each of the four ways.

    `loads` rise and are above 0; `shares` (loads x draws) lie above 0 and below 1.
    """
    logits = np.log(shares / (1 - shares))
    rising = isotonic(logits, 1 / np.maximum(logits.var(axis=1), APART))
    wanted = math.log(level / (1 - level))
    found = []
    for logarithmic, way in product((False, True), (_straight, _cubic)):
        reached = np.exp(way(np.log(loads), rising, wanted)) if logarithmic else way(loads, rising, wanted)
        found.append(np.clip(reached, *ends))
    return found


def isotonic(values: Float, weights: Float) -> Float:
    """Return the rising columns nearest to those of `values` (points x draws), by weighted least squares."""
    count = len(values)
    total = np.concatenate([[0.0], np.cumsum(weights)])
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values * weights[:, None], axis=0)])
    rising = np.full(values.shape, -math.inf)
    for row in range(count):
        for begin in range(row + 1):
            means = [(sums[end + 1] - sums[begin]) / (total[end + 1] - total[begin]) for end in range(row, count)]
            rising[row] = np.maximum(rising[row], np.minimum.reduce(means))
    return rising


def _segments(y: Float, level: float) -> tuple[NDArray[np.int64], Float, Float, NDArray[np.int64]]:
    """Return of each column of rising points: the row below the level, how high the step is, how far up it the level lies."""
    below = np.clip((y <= level).sum(axis=0), 1, len(y) - 1) - 1
    columns = np.arange(y.shape[1])
    steps = np.maximum(y[below + 1, columns] - y[below, columns], APART)
    return below, steps, np.clip((level - y[below, columns]) / steps, 0, 1), columns


def _straight(x: Float, y: Float, level: float) -> Float:
    """Return where straight lines between points reach the level."""
    below, _, part, _ = _segments(y, level)
    reached: Float = x[below] + (x[below + 1] - x[below]) * part
    return reached


def _cubic(x: Float, y: Float, level: float) -> Float:
    """Return where monotone cubics through the points, x as a function of y, are at the level."""
    steps = np.maximum(np.diff(y, axis=0), APART)
    slopes = np.diff(x)[:, None] / steps
    tangents = np.repeat(slopes[:1], len(x), axis=0)
    if len(x) > 2:  # two points have one slope
        near, far = 2 * steps[1:] + steps[:-1], steps[1:] + 2 * steps[:-1]
        tangents[1:-1] = (near + far) / (near / slopes[:-1] + far / slopes[1:])
        for end, inner, outer in ((0, 0, 1), (-1, -1, -2)):
            weighed = (2 * steps[inner] + steps[outer]) * slopes[inner] - steps[inner] * slopes[outer]
            tangents[end] = np.clip(weighed / (steps[inner] + steps[outer]), 0, 3 * slopes[inner])
    below, height, part, columns = _segments(y, level)
    square, cube = part**2, part**3
    reached: Float = (
        (2 * cube - 3 * square + 1) * x[below]
        + (cube - 2 * square + part) * height * tangents[below, columns]
        + (3 * square - 2 * cube) * x[below + 1]
        + (cube - square) * height * tangents[below + 1, columns]
    )
    return reached
