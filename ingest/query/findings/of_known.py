"""Sums of what is known: NaN where nothing is, and no warning then, as NumPy's functions of the same kind give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ingest.query.findings.model import Float


def median(values: Float, axis: int | None = None, *, keepdims: bool = False) -> Float:
    """Return the median of the values that are not NaN, by sorting: NumPy's goes row by row."""
    rows = np.moveaxis(values, axis, -1) if axis is not None else values.reshape(-1)
    ordered = np.sort(rows, axis=-1)  # NaN comes last
    count = (~np.isnan(rows)).sum(axis=-1, keepdims=True)
    if not rows.shape[-1]:
        ordered = np.full((*rows.shape[:-1], 1), np.nan)
    low, high = (np.take_along_axis(ordered, np.maximum(place, 0), axis=-1) for place in ((count - 1) // 2, count // 2))
    # The upper of the two lies beyond what is known where nothing is: it is NaN then, too.
    middle: Float = np.where(count > 0, (low + np.where(count % 2 == 0, high, low)) / 2, np.nan)
    if axis is None:
        return middle.reshape((1,) * values.ndim if keepdims else ())
    return np.moveaxis(middle, -1, axis) if keepdims else middle[..., 0]


def mean(values: Float, axis: int | None = None, *, keepdims: bool = False) -> Float:
    """Return the mean of the values that are not NaN."""
    return _of(np.nanmean, values, axis, keepdims=keepdims)


def least(values: Float, axis: int | None = None, *, keepdims: bool = False) -> Float:
    """Return the least of the values that are not NaN."""
    return _of(np.nanmin, values, axis, keepdims=keepdims)


def most(values: Float, axis: int | None = None, *, keepdims: bool = False) -> Float:
    """Return the largest of the values that are not NaN."""
    return _of(np.nanmax, values, axis, keepdims=keepdims)


def _of(function: Callable[..., Any], values: Float, axis: int | None, *, keepdims: bool) -> Float:
    none = np.isnan(values).all(axis=axis, keepdims=True)
    if not values.size:
        empty: Float = np.full(none.shape if keepdims else np.squeeze(none, axis=axis).shape, np.nan)
        return empty
    out = function(np.where(none, 0.0, values), axis=axis, keepdims=True)
    found: Float = np.where(none, np.nan, out)
    return found if keepdims else np.squeeze(found, axis=axis)
