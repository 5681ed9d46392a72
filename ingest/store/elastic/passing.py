"""Windows as they go from one process to another, and are held in great number: in as few bytes as they fit in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ingest.core.intervals import Intervals, Key


def narrowed(part: Intervals[Key]) -> Intervals[Key]:
    """Return windows with bins and counts of 2 or 4 bytes each where they fit."""
    return replace(part, bins=_narrow(part.bins), counts=_narrow(part.counts))


def widened(part: Intervals[Key]) -> Intervals[Key]:
    """Return windows with bins and counts of the full width that sums need."""
    return replace(part, bins=part.bins.astype(np.int64, copy=False), counts=part.counts.astype(np.int64, copy=False))


def _narrow(column: Any) -> Any:
    if not len(column):
        return column
    most = int(column.max())
    return column.astype(np.uint16) if most < 1 << 16 else column.astype(np.int32) if most < 1 << 31 else column
