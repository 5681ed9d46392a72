"""The windows of hosts that a load has written, added up as it goes: what its rollups are made of where nobody else writes them.

Each reading process adds up what it packs, and hands its sums over when it ends: they are far fewer than the windows. Memory is
bounded. Where a load has more windows than fit, the later ones are let go, and are read back from the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ingest.core.csr import total as sum_of
from ingest.core.intervals import Intervals, Key, merged
from ingest.core.layout import Layout
from ingest.core.series import OFFSET, Series
from ingest.store.elastic.passing import narrowed, widened
from ingest.store.elastic.remembered import Remembered, Windows
from ingest.store.rollups import RollupKey, host_group

MOST_ENTRIES, LEAST_ENTRIES = 2_000_000, 500_000  # 16 bytes each; of all reading processes, of one of them
KEPT = 0.6
FOREVER = 1 << 62

Kind = tuple[Layout, bool]


class Sums(NamedTuple):
    """What one process has gathered: sums of the windows that start before `until_ns`, of how many samples in all.

    `kept` are the windows themselves, if they are of one host and few enough.
    """

    until_ns: int
    samples: int
    parts: list[Intervals[RollupKey]]
    kept: Windows | None


@dataclass(slots=True)
class Gathered:
    """Sums of windows by host, operation and kind, all that start before `until_ns`: whole time slabs.

    `samples` are those of all windows that were added, also of those that were let go.
    """

    slab_ns: int
    most_entries: int = field(default_factory=lambda: MOST_ENTRIES)
    until_ns: int = FOREVER
    samples: int = 0
    keeps_bytes: bool = True
    remembered: Remembered = field(default_factory=Remembered)
    _parts: dict[Kind, list[Intervals[RollupKey]]] = field(default_factory=dict)
    _entries: int = 0
    _limit: int = 0

    def share(self, processes: int) -> None:
        """Hold no more than is left for one of so many reading processes."""
        self.most_entries = max(min(LEAST_ENTRIES, MOST_ENTRIES), MOST_ENTRIES // processes)
        self.remembered.most //= processes

    def add(self, windows: Intervals[Series]) -> None:
        """Add windows of series. Offsets have no rollups and are left out."""
        latencies = all(series.kind != OFFSET for series in windows.table)
        rows = windows if latencies else windows.where(lambda series: series.kind != OFFSET)
        rows = rows if self.keeps_bytes else without_bytes(rows)
        if len(rows):
            self.samples += sum_of(rows.counts if rows.completions is None else rows.completions)
            self.remembered.add(rows)
            self._hold(rows.relabelled(host_group))

    def take(self, sums: Sums) -> None:
        """Add what a reading process has handed over."""
        self.most_entries = MOST_ENTRIES  # of all of them together
        self.samples += sums.samples
        if sums.until_ns < self.until_ns:
            self._cut(sums.until_ns)
        for part in sums.parts:
            self._hold(widened(part))
        self.remembered.take(sums.kept)

    def sums(self) -> Sums:
        """Hand over what was gathered, in as few bytes as it fits in: it goes from one process to another."""
        sums = Sums(self.until_ns, self.samples, [narrowed(part) for part in self.parts()], self.remembered.kept)
        self.samples, self._parts, self._entries, self.remembered = 0, {}, 0, Remembered()
        return sums

    def _hold(self, windows: Intervals[RollupKey]) -> None:
        rows = before(windows, self.until_ns)
        if not len(rows):
            return
        self._parts.setdefault((rows.layout, rows.completions is None), []).append(rows)
        self._entries += len(rows.bins)
        if self._entries > max(self._limit, self.most_entries):
            self.settle()

    def parts(self) -> list[Intervals[RollupKey]]:
        """Return the sums: one part a layout and kind of counts."""
        self.settle()
        return [part for parts in self._parts.values() for part in parts]

    def settle(self) -> None:
        """Add up what was added, and let go of what does not fit: `until_ns` says then what there is."""
        self._parts = {kind: [merged(parts)] for kind, parts in self._parts.items() if parts}
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
        self._cut(int(starts[order][min(place, len(order) - 1)]) // self.slab_ns * self.slab_ns)

    def _cut(self, until_ns: int) -> None:
        self.until_ns = until_ns
        self._parts = {kind: [before(part, self.until_ns) for part in parts] for kind, parts in self._parts.items()}
        self._count()


def without_bytes(windows: Intervals[Key]) -> Intervals[Key]:
    """Return windows without the bytes that were moved in them."""
    if windows.exact is None or windows.exact.bytes is None:
        return windows
    return replace(windows, exact=replace(windows.exact, bytes=None))


def before(windows: Intervals[RollupKey], until_ns: int) -> Intervals[RollupKey]:
    """Return the windows that start before a time."""
    inside = windows.start_ns < until_ns
    return windows if inside.all() else windows.take(np.flatnonzero(inside))


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
