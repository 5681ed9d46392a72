"""Which windows a load has touched: by host, operation and kind; their rollups have to be made anew."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ingest.core.intervals import Int, Intervals
from ingest.core.series import OFFSET, Series

Cell = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Touch:
    """What one piece of a load touches: starts of windows by (host, op, kind), the series that were written, how many samples."""

    windows: dict[Cell, Int]
    series: tuple[Series, ...]
    layout: str
    exact: bool
    samples: int


def touch_of(windows: Intervals[Series]) -> Touch:
    """Return the touch of windows; of offsets no rollups are made, so they touch no windows."""
    table = windows.table
    cells: dict[Cell, list[Int]] = {}
    present = np.flatnonzero(np.bincount(windows.series, minlength=len(table))).tolist()
    for code in present:
        series = table[code]
        if series.kind == OFFSET:
            continue
        cells.setdefault((series.host, series.op, series.kind), []).append(windows.start_ns[windows.series == code])
    starts = {cell: np.unique(np.concatenate(parts)) for cell, parts in cells.items()}
    samples = int((windows.counts if windows.completions is None else windows.completions).sum())
    return Touch(starts, tuple(table[code] for code in present), str(windows.layout), windows.exact is not None, samples)


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
        starts = [np.unique(part // width_ns * width_ns) for parts in self.windows.values() for part in parts]
        return np.unique(np.concatenate(starts)) if starts else np.empty(0, np.int64)
