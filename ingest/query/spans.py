"""Rows over one span of time, so that they are added up regardless of when they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ingest.intervals import Intervals, Sum, merged

MANY_ENTRIES = 100_000


def together(rows: Intervals, low_ns: int = 0, high_ns: int = 0) -> Intervals:
    """Return the rows with one span, so that they are added up regardless of time."""
    return replace(rows, start_ns=np.full(len(rows), low_ns), end_ns=np.full(len(rows), high_ns))


def dense(part: Intervals) -> Intervals:
    """Return the rows of a large chunk that lie in a few windows already added up: so much less is held until the end."""
    if len(part.bins) < MANY_ENTRIES or 4 * np.count_nonzero(np.diff(part.start_ns)) > len(part):
        return part
    return merged([part])


def spanned(parts: Sequence[Intervals], span: tuple[int, int] | None = None) -> list[Intervals]:
    """Return the parts with every row over `span`, by default the range of all of them, added up per key."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return []
    low, high = span or (min(int(p.start_ns.min()) for p in filled), max(int(p.end_ns.max()) for p in filled))
    total = Sum()
    for part in filled:
        total.add(replace(part, start_ns=np.full(len(part), low), end_ns=np.full(len(part), high)))
    return total.parts()
