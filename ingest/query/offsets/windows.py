"""What of a run's stored offsets a map needs: the series that are asked for, of others no more than when they had events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ingest.core.grid import SECOND
from ingest.core.intervals import Int, Intervals
from ingest.core.offsets import Periods, counted
from ingest.query.offsets.counts import ALL, Key, Wanted, of_windows

if TYPE_CHECKING:
    from ingest.store import Store


def of_store(store: Store, run: str, wanted: Wanted, key: Key, begin_ns: int | None, end_ns: int | None) -> Iterator[Intervals]:
    """Yield the counts of a run's offsets in [begin, end), read in batches.

    Where labels choose, other series are read where periods or the range cut through seconds alone: else it is enough to know in
    which seconds the run has events at all.
    """
    periods = wanted.periods
    low = None if begin_ns is None else -(-begin_ns // SECOND) * SECOND
    high = None if end_ns is None else end_ns // SECOND * SECOND
    within_one = low is not None and high is not None and low > high
    if not wanted.selects or periods.period_ns % SECOND or within_one:
        for windows in store.offset_windows(run, begin_ns, end_ns):
            yield from of_windows(windows, periods, key)
        return
    for windows in store.offset_windows(run, begin_ns, end_ns, key):
        yield from of_windows(windows, periods, key)
    yield _occupied(store.offset_seconds(run, low, high), run, periods)
    for first, last in ((begin_ns, low), (high, end_ns)):
        if first != last:
            for windows in store.offset_windows(run, first, last):
                yield from of_windows(windows, periods, _none)


def _none(_: object) -> None:
    """Return that no series is asked for."""


def _occupied(seconds: Int, run: str, periods: Periods) -> Intervals:
    """Return that a run has events in seconds, as counts: how many does not matter."""
    columns = np.unique(periods.column(seconds))
    zeros = np.zeros(len(columns), np.int64)
    return counted([(ALL, run)], zeros, columns, zeros, None, periods.period_ns, periods.layout)
