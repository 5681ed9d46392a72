"""Sums of what is known: NaN where nothing is, and no warning then, as NumPy's functions of the same kind give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ingest.query.findings.model import Float


def median(values: Float, axis: int | None = None, *, keepdims: bool = False) -> Float:
    """Return the median of the values that are not NaN."""
    return _of(np.nanmedian, values, axis, keepdims=keepdims)


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
