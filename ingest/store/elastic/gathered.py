"""The windows of hosts that a load has written, added up as it goes: what its rollups are made of where nobody else writes them.

Memory is bounded. Where a load has more windows than fit, the later ones are let go, and are read back from the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Intervals, merged
from ingest.core.layout import Layout
from ingest.core.series import OFFSET, Series
from ingest.store.rollups import RollupKey, host_group

MOST_ENTRIES = 3_000_000  # 16 bytes each
KEPT = 0.6
FOREVER = 1 << 62

Kind = tuple[Layout, bool]


@dataclass(slots=True)
class Gathered:
    """Sums of windows by host, operation and kind, all that start before `until_ns`: whole time slabs."""

    slab_ns: int
    most_entries: int = field(default_factory=lambda: MOST_ENTRIES)
    until_ns: int = FOREVER
    _parts: dict[Kind, list[Intervals[RollupKey]]] = field(default_factory=dict)
    _entries: int = 0
    _limit: int = 0

    def add(self, windows: Intervals[RollupKey]) -> None:
        """Add windows."""
        rows = before(windows, self.until_ns)
        if not len(rows):
            return
        self._parts.setdefault((rows.layout, rows.completions is None), []).append(rows)
        self._entries += len(rows.bins)
        if self._entries > max(self._limit, self.most_entries // 2):
            self.settle()

    def parts(self) -> list[Intervals[RollupKey]]:
        """Return the sums: one part a layout and kind of counts."""
        self.settle()
        return [part for parts in self._parts.values() for part in parts]

    def settle(self) -> None:
        """Add up what was added, and let go of what does not fit: `until_ns` says then what there is."""
        self._parts = {kind: [merged(widened(parts))] for kind, parts in self._parts.items() if parts}
        self._count()
        if self._entries > self.most_entries:
            self._let_go()
        self._limit = self._entries + self.most_entries // 4

    def _count(self) -> None:
        self._entries = sum(len(part.bins) for parts in self._parts.values() for part in parts)

    def _let_go(self) -> None:
        """Let go of the last windows, so that some room is left."""
        every = [part for parts in self._parts.values() for part in parts]
        starts = np.concatenate([part.start_ns for part in every])
        order = np.argsort(starts, kind="stable")
        sizes = np.cumsum(np.concatenate([np.diff(part.indptr) for part in every])[order])
        place = int(np.searchsorted(sizes, int(self.most_entries * KEPT)))
        self.until_ns = int(starts[order][min(place, len(order) - 1)]) // self.slab_ns * self.slab_ns
        self._parts = {kind: [before(part, self.until_ns) for part in parts] for kind, parts in self._parts.items()}
        self._count()


def before(windows: Intervals[RollupKey], until_ns: int) -> Intervals[RollupKey]:
    """Return the windows that start before a time."""
    inside = windows.start_ns < until_ns
    return windows if inside.all() else windows.take(np.flatnonzero(inside))


def host_windows(windows: Intervals[Series]) -> Intervals[RollupKey]:
    """Return windows of series added up by host, in as few bytes as they fit in: they go from one process to another.

    Offsets have no rollups and are left out.
    """
    rows = windows if all(series.kind != OFFSET for series in windows.table) else windows.where(_has_rollups)
    summed = merged([rows.relabelled(host_group)])
    return replace(summed, bins=_narrow(summed.bins), counts=_narrow(summed.counts))


def widened(parts: Iterable[Intervals[RollupKey]]) -> list[Intervals[RollupKey]]:
    """Return windows with the bins and counts of full width that sums need."""
    return [replace(part, bins=part.bins.astype(np.int64), counts=part.counts.astype(np.int64)) for part in parts]


def _has_rollups(series: Series) -> bool:
    return series.kind != OFFSET


def _narrow(column: Any) -> Any:
    """Return integers as 4 bytes each where all of them fit."""
    return column.astype(np.int32) if len(column) and int(column.max()) < 1 << 31 else column


def joined(
    own: Sequence[Intervals[RollupKey]], theirs: Iterable[Sequence[Intervals[Series]]], slab_ns: int
) -> Iterator[list[Intervals[RollupKey]]]:
    """Yield own windows with those of others of the same time slab; those of slabs in which others have nothing come last."""
    left = list(own)
    for parts in theirs:
        slab = int(parts[0].start_ns[0]) // slab_ns
        mine, rest = [], []
        for part in left:
            inside = part.start_ns // slab_ns == slab
            mine.append(part.take(np.flatnonzero(inside)))
            rest.append(part.take(np.flatnonzero(~inside)))
        left = rest
        yield [*(part for part in mine if len(part)), *(part.relabelled(host_group) for part in parts)]
    if any(len(part) for part in left):
        yield [part for part in left if len(part)]
