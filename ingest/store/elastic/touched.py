"""Which windows a load has touched: per host, operation and kind, what its rollups have to be made anew for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ingest.intervals import Int, Intervals
from ingest.series import Series

MOST_RANGES = 64

Cell = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Touch:
    """What one piece of a load touches: starts of windows by (host, op, kind), and the series that were written."""

    windows: dict[Cell, Int]
    series: tuple[Series, ...]
    layout: str
    exact: bool


def touch_of(windows: Intervals) -> Touch:
    """Return what the windows touch."""
    table = [key for key in windows.table if isinstance(key, Series)]
    cells: dict[Cell, list[Int]] = {}
    present = np.flatnonzero(np.bincount(windows.series, minlength=len(table))).tolist()
    for code in present:
        series = table[code]
        cells.setdefault((series.host, series.op, series.kind), []).append(windows.start_ns[windows.series == code])
    starts = {cell: np.unique(np.concatenate(parts)) for cell, parts in cells.items()}
    return Touch(starts, tuple(table[code] for code in present), str(windows.layout), windows.exact is not None)


@dataclass(slots=True)
class Touched:
    """All that a load has touched so far."""

    windows: dict[Cell, list[Int]] = field(default_factory=dict)

    def add(self, windows: dict[Cell, Int]) -> None:
        """Add window starts."""
        for cell, starts in windows.items():
            self.windows.setdefault(cell, []).append(starts)

    @property
    def hosts(self) -> list[str]:
        """Return the hosts of which something was touched."""
        return sorted({host for host, _, _ in self.windows})

    def starts(self, cell: Cell) -> Int:
        """Return the starts of the touched windows of a cell, in order."""
        return np.unique(np.concatenate(self.windows[cell]))

    def slabs(self, width_ns: int) -> Int:
        """Return the starts of the time slabs of `width_ns` in which something was touched, in order."""
        found = [np.unique(part // width_ns * width_ns) for parts in self.windows.values() for part in parts]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def time_filter(slabs: Int, width_ns: int) -> dict[str, Any]:
    """Return a query for `@timestamp` in the slabs: neighbours joined, the widest gaps kept where there are many."""
    ranges = list(_joined(slabs, width_ns))
    clauses = [{"range": {"@timestamp": {"gte": low // 1_000_000, "lt": high // 1_000_000}}} for low, high in ranges]
    return clauses[0] if len(clauses) == 1 else {"bool": {"should": clauses, "minimum_should_match": 1}}


def _joined(slabs: Int, width_ns: int) -> Iterator[tuple[int, int]]:
    gaps = np.diff(slabs)
    cuts = np.flatnonzero(gaps > width_ns)
    if len(cuts) >= MOST_RANGES:
        cuts = np.sort(cuts[np.argsort(gaps[cuts])[-(MOST_RANGES - 1) :]])
    firsts: Sequence[int] = [0, *(cuts + 1).tolist()]
    lasts: Sequence[int] = [*cuts.tolist(), len(slabs) - 1]
    for first, last in zip(firsts, lasts, strict=True):
        yield int(slabs[first]), int(slabs[last]) + width_ns
