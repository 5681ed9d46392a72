"""Single operations, columnar: what raw logs and traces hold, before it is counted into bins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Int, total
from ingest.core.labels import Series


class Reach(NamedTuple):
    """When the first and the last of some operations ended and how long the quickest and the slowest took, in ns."""

    first_end: int
    last_end: int
    quickest: int
    slowest: int


@dataclass(frozen=True, slots=True)
class Events:
    """Operations of `table[series[i]]` that took `latency_ns[i]` and completed at `end_ns[i]`.

    Latencies are 0 to a day. `weight[i]` says how many there were of one kind; None where each stands for itself. `offset[i]`
    and `size[i]` are bytes, None where the log has none.
    """

    table: Sequence[Series]
    series: NDArray[np.integer]
    end_ns: Int
    latency_ns: Int
    weight: Int | None = None
    offset: Int | None = None
    size: Int | None = None
    _reach: list[Reach] = field(default_factory=list, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.end_ns)

    @property
    def start_ns(self) -> Int:
        """Return when each began."""
        return self.end_ns - self.latency_ns

    @property
    def reach(self) -> Reach:
        """Return when the first and the last ended and how long the quickest and the slowest took, in ns; of none ValueError."""
        if not self._reach:
            self._reach.append(
                Reach(*(int(edge) for each in (self.end_ns, self.latency_ns) for edge in (each.min(), each.max())))
            )
        return self._reach[0]

    @property
    def samples(self) -> int:
        """Return how many operations there are."""
        return len(self) if self.weight is None else total(self.weight)

    def take(self, rows: Int) -> Events:
        """Return the given events in the given order."""
        weight, offset, size = (None if more is None else more[rows] for more in (self.weight, self.offset, self.size))
        return Events(self.table, self.series[rows], self.end_ns[rows], self.latency_ns[rows], weight, offset, size)

    def where(self, wanted: Callable[[Series], bool]) -> Events:
        """Return the events of the series that are wanted, these themselves where all are."""
        good = np.array([wanted(series) for series in self.table], np.bool_)
        return self if good.all() else self.take(np.flatnonzero(good[self.series]))

    def relabelled(self, key: Callable[[Series], Series]) -> Events:
        """Return the events with each series replaced by `key(it)`."""
        table: dict[Series, int] = {}
        codes = np.array([table.setdefault(key(before), len(table)) for before in self.table], np.int64)
        events = Events(tuple(table), codes[self.series], self.end_ns, self.latency_ns, self.weight, self.offset, self.size)
        events._reach.extend(self._reach)
        return events
