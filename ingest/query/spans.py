"""Rows over one span of time, so that they are added up regardless of when they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ingest.grid import INT64_MAX
from ingest.intervals import Intervals, Sum, merged

MANY_ENTRIES = 100_000

Span = tuple[int, int]


def together(rows: Intervals, low_ns: int = 0, high_ns: int = 0) -> Intervals:
    """Return the rows with one span, so that they are added up regardless of time."""
    return replace(rows, start_ns=np.full(len(rows), low_ns), end_ns=np.full(len(rows), high_ns))


def dense(part: Intervals) -> Intervals:
    """Return the rows of a large chunk that lie in a few windows already added up: so much less is held until the end."""
    if len(part.bins) < MANY_ENTRIES or 4 * np.count_nonzero(np.diff(part.start_ns)) > len(part):
        return part
    return merged([part])


def spanned(parts: Sequence[Intervals], span: Span | None = None) -> list[Intervals]:
    """Return the parts with every row over `span`, by default the range of all of them, added up per key."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return []
    low, high = span or (min(int(p.start_ns.min()) for p in filled), max(int(p.end_ns.max()) for p in filled))
    total = Sum()
    for part in filled:
        total.add(together(part, low, high))
    return total.parts()


def ranges(parts: Sequence[Intervals]) -> dict[str, Span]:
    """Return from when to when the rows of each run are; keys begin with the run."""
    found: dict[str, Span] = {}
    for part in parts:
        names, places = _runs_of(part)
        low, high = np.full(len(names), INT64_MAX), np.full(len(names), -INT64_MAX)
        np.minimum.at(low, places, part.start_ns)
        np.maximum.at(high, places, part.end_ns)
        for name, first, last in zip(names, low.tolist(), high.tolist(), strict=True):
            known = found.get(name, (first, last))
            found[name] = min(first, known[0]), max(last, known[1])
    return {name: (first, last) for name, (first, last) in found.items() if first < INT64_MAX}


def spanned_by_run(parts: Sequence[Intervals], spans: Mapping[str, Span] | None = None) -> list[Intervals]:
    """Return the parts with every row over the span of its run, by default the range of its rows, added up per key.

    Keys begin with the run. A row that is of one run must not reach into the time of another: its rate would be too low.
    """
    known = {**ranges(parts), **(spans or {})}
    total = Sum()
    for part in parts:
        if not len(part):
            continue
        names, places = _runs_of(part)
        low, high = (np.array([known.get(name, (0, 0))[edge] for name in names], np.int64) for edge in (0, 1))
        total.add(replace(part, start_ns=low[places], end_ns=high[places]))
    return total.parts()


def _runs_of(part: Intervals) -> tuple[list[str], NDArray[np.int64]]:
    """Return the runs in the keys of a part, and which of them each row is of."""
    of_keys = [str(key[0]) if isinstance(key, tuple) else key.run for key in part.table]
    names = list(dict.fromkeys(of_keys))
    place = {name: number for number, name in enumerate(names)}
    return names, np.array([place[name] for name in of_keys], np.int64)[part.series]
