"""Offsets within whole periods: which column and which row of a subsecond-offset map each event falls into.

    period 1 s, 50 rows    an event at 12:00:03.745 lies in the column 12:00:03, offset 745 ms, row 37 [740, 760) ms

Column and offset are both worked out from the event's own time (the completion of an I/O, the stamp of a sample), never from
the moment at which it was collected: the column then changes exactly where the offset is 0. All arithmetic is of integers.

Stored offsets are bins of 1 ms in windows of 1 s, in `LAYOUT`: a log-linear layout is exactly linear below 2 * half bins, so
that everything which takes intervals (merging, packing, histogram fields) takes offsets, too. Unlike the windows of latencies,
which are (start, start + step], those of offsets are [start, start + 1 s): a period begins with its offset 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ingest.core.errors import UsageError
from ingest.core.grid import INT64_MAX, MS, SECOND, round_ratio
from ingest.core.intervals import Bool, Int, Intervals, Key, Sum, summed
from ingest.core.labels import OFFSET, Series
from ingest.core.layout import LogLinear
from ingest.core.units import format_duration

if TYPE_CHECKING:  # stores keep offsets, and need no reader for that
    from ingest.core.events import Events

ROWS = 50
MOST_ROWS = 1000
LONGEST = 7 * 86_400 * SECOND
LATE_NS = SECOND
MOST_HELD = 2_000_000  # bins
DENSE_CELLS = 1 << 22
LAYOUT = LogLinear(half=512, fine=SECOND // MS, unit_ns=MS, open_ended=False)


@dataclass(frozen=True, slots=True)
class Periods:
    """Whole periods of the epoch, each cut into `rows` equal rows of offsets. UsageError for what cannot be."""

    period_ns: int = SECOND
    rows: int = ROWS

    def __post_init__(self) -> None:
        if not MS <= self.period_ns <= LONGEST:
            raise UsageError(
                f"a period of {format_duration(self.period_ns)} is not possible: choose 1ms to {format_duration(LONGEST)}"
            )
        if not 1 <= self.rows <= MOST_ROWS:
            raise UsageError(f"{self.rows} rows are not possible: choose 1 to {MOST_ROWS}")

    @property
    def layout(self) -> LogLinear:
        """Return a layout whose bin numbers are row numbers; its edges mean nothing, see `edges`."""
        return LogLinear(half=1 << self.rows.bit_length(), fine=self.rows, open_ended=False)

    @property
    def edges(self) -> Int:
        """Return the `rows + 1` edges in ns: row i holds the offsets in [edges[i], edges[i + 1])."""
        return -(-np.arange(self.rows + 1, dtype=np.int64) * self.period_ns // self.rows)

    def column(self, times_ns: Int) -> Int:
        """Return the number of the period that each time lies in, counted from 1970."""
        return times_ns // self.period_ns

    def row(self, times_ns: Int) -> Int:
        """Return the row that each time lies in, 0 at the beginning of its period."""
        return times_ns % self.period_ns * self.rows // self.period_ns

    @property
    def resampled(self) -> bool:
        """Return whether bins of 1 ms straddle rows, so that stored offsets have to be resampled by overlap."""
        return bool((self.edges % MS).any())

    def placed(self, events: Events, table: Sequence[Key], codes: Int) -> Intervals[Key]:
        """Return how many events lie in each column and row under `table[codes[i]]`; exact whatever the rows."""
        times = events.end_ns
        return counted_offsets(table, codes, self.column(times), self.row(times), events.weight, self.period_ns, self.layout)


def counted_offsets(
    table: Sequence[Key], codes: Int, window: Int, bins: Int, weight: Int | None, width_ns: int, layout: LogLinear
) -> Intervals[Key]:
    """Return one row per (code, window) that has an event, with the counts of its bins; exact in int64.

    Window w is [w, w + 1) times `width_ns`.
    """
    starts = np.arange(0)
    if len(window):
        low, span = int(window.min()), int(window.max() - window.min()) + 1
        if span > max(DENSE_CELLS >> 4, 4 * len(window)):
            starts, window = np.unique(window, return_inverse=True)
        else:
            starts, window = np.arange(low, low + span), window - low
    high = layout.bins
    key = (codes.astype(np.int64) * len(starts) + window) * high + bins
    size = len(table) * len(starts) * high
    if size <= max(DENSE_CELLS, 8 * len(key)):
        dense = np.bincount(key, minlength=size) if weight is None else summed(weight, key, size)
        filled = np.flatnonzero(dense)
        counts = dense[filled]
    elif weight is None:
        filled, counts = np.unique(key, return_counts=True)
    else:
        filled, place = np.unique(key, return_inverse=True)
        counts = summed(weight, place, len(filled))
    cell, bin_of_cell = np.divmod(filled, high)
    new = np.flatnonzero(np.diff(cell, prepend=-1))
    code, column = np.divmod(cell[new], max(len(starts), 1))
    start = starts[column] * width_ns
    indptr = np.append(new, len(cell))
    return Intervals(layout, table, code, start, start + width_ns, indptr, bin_of_cell, counts.astype(np.int64))


class Order:
    """Finds the events of a source that came late: more than a second after the newest of their series.

    The order of a file is the order in which its events were reported. An event is late where it both began and ended more
    than `LATE_NS` before what its series had reached: a file in the order of starts is in order, too.
    """

    def __init__(self) -> None:
        self._reached: dict[Series, tuple[int, int]] = {}

    def began(self, series: Series) -> int:
        """Return the latest start of a series so far."""
        return self._reached.get(series, (-INT64_MAX, 0))[0]

    def late(self, events: Events) -> Bool:
        """Return which events of the next chunk came late."""
        known = [self._reached.get(series, (-INT64_MAX, -INT64_MAX)) for series in events.table]
        codes, late = events.series.astype(np.int64), np.ones(len(events), np.bool_)
        reached = []
        for place, times in enumerate((events.start_ns, events.end_ns)):
            before = np.array([order[place] for order in known], np.int64)
            newest = _running(times, codes, before)
            late &= times < newest - LATE_NS
            np.maximum.at(before, codes, times)
            reached.append(before.tolist())
        present = np.flatnonzero(np.bincount(codes, minlength=len(events.table))).tolist()
        for code in present:
            self._reached[events.table[code]] = (reached[0][code], reached[1][code])
        return late


def _running(times: Int, codes: Int, before: Int) -> Int:
    """Return the highest time of each one's series up to it, `before` being the highest of earlier chunks."""
    if not len(times):
        return times
    floor = before[codes]
    if (times[1:] >= times[:-1]).all():
        return np.maximum(times, floor)
    low = int(times.min())
    width = int(times.max()) - low + 1
    order = np.argsort(codes, kind="stable")
    if width > INT64_MAX // (len(before) + 1):  # times all over the ages: series after series
        newest = np.empty_like(times)
        for mine in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
            newest[mine] = np.maximum.accumulate(times[mine])
        return np.maximum(newest, floor)
    shift = codes[order] * width
    highest = np.empty_like(times)
    highest[order] = np.maximum.accumulate(times[order] - low + shift) - shift + low
    return np.maximum(highest, floor)


def is_offsets(windows: Intervals[Series]) -> bool:
    """Return whether stored windows are of offsets, not of latencies: a chunk holds one or the other."""
    return any(series.kind == OFFSET for series in windows.table)


class Stored:
    """Offsets of the events of one source as they are stored: 1 ms bins in windows of 1 s, each window given out once.

    Events that came late are of a segment of their own, 1: their windows may be gone, and maps mark them.
    """

    def __init__(self, most_held: int = MOST_HELD) -> None:
        self._order = Order()
        self._sum: Sum[Series] = Sum(most_held)
        self._entries = 0
        self._most = most_held
        self._series: dict[Series, list[Series]] = {}
        self._gone: dict[Series, int] = {}

    def add(self, events: Events) -> None:
        """Take the next chunk."""
        if not len(events):
            return
        late = self._order.late(events)
        table: dict[Series, int] = {}
        places, gone = [], []
        for series in events.table:
            named = [series.replaced(kind=OFFSET, segment=segment) for segment in (0, 1)]
            places.append([table.setdefault(label, len(table)) for label in named])
            gone.append(self._gone.get(named[0], -INT64_MAX))
            mine = self._series.setdefault(named[0], [])
            if series not in mine:
                mine.append(series)
        late |= events.end_ns < np.array(gone, np.int64)[events.series]
        codes = np.array(places, np.int64)[events.series, late.astype(np.int64)]
        window, within = np.divmod(events.end_ns, SECOND)
        rows = counted_offsets(tuple(table), codes, window, within // MS, events.weight, SECOND, LAYOUT)
        used, of_row = np.unique(rows.series, return_inverse=True)
        names = tuple(table)
        self._sum.add(rows.keyed(tuple(names[code] for code in used.tolist()), of_row.reshape(-1)))
        self._entries += len(rows.bins)

    def whole(self) -> Iterator[Intervals[Series]]:
        """Yield windows that no event in order can reach any more, where much is held."""
        if self._entries < self._most:
            return
        held, self._sum, self._entries = self._sum.parts(), Sum(self._most), 0
        for rows in held:
            reach = [
                -INT64_MAX if series.segment else min(self._order.began(label) for label in self._series[series]) - LATE_NS
                for series in rows.table
            ]
            done = rows.end_ns <= np.array(reach, np.int64)[rows.series]
            self._sum.add(rows.take(np.flatnonzero(~done)))
            self._entries += int(np.diff(rows.indptr)[~done].sum())
            if done.any():
                ready = rows.take(np.flatnonzero(done))
                self._gone |= {series: max(last, self._gone.get(series, last)) for series, _, last in ready.reach()}
                yield ready
        self._most = max(self._most, 2 * self._entries)

    def rest(self) -> Iterator[Intervals[Series]]:
        """Yield the offsets that are still held."""
        yield from self._sum.parts()
        self._sum = Sum(self._most)


def within(stored: Intervals[Series], begin_ns: int | None, end_ns: int | None) -> Iterator[Intervals[Series]]:
    """Yield what of stored offsets lies in [begin, end), by whole bins of 1 ms."""
    if begin_ns is None and end_ns is None:
        yield stored
        return
    time = stored.start_ns[stored.row] + stored.bins * MS
    low, high = (-INT64_MAX if begin_ns is None else begin_ns), (INT64_MAX if end_ns is None else end_ns)
    keep = np.flatnonzero((time > low - MS) & (time < high))
    rows = replace(stored, indptr=np.searchsorted(keep, stored.indptr), bins=stored.bins[keep], counts=stored.counts[keep])
    filled = np.flatnonzero(np.diff(rows.indptr))
    if len(filled):
        yield rows.take(filled)


def from_bins(stored: Intervals[Series], periods: Periods) -> tuple[Intervals[Series], Intervals[Series]]:
    """Return stored offsets in columns and rows: what lies in one row whole, and what straddles two, under the lower one.

    Of the latter `shared` makes counts once all of them are added up. UsageError where rows are finer than what is stored.
    """
    if periods.period_ns % MS or periods.period_ns < MS * periods.rows:
        raise UsageError(
            f"{periods.rows} rows in {format_duration(periods.period_ns)} are finer than the 1 ms that a store keeps: "
            "ask the files, or for fewer rows"
        )
    time = stored.start_ns[stored.row] + stored.bins * MS
    code, column, row = stored.series[stored.row], periods.column(time), periods.row(time)
    straddles = periods.row(time + MS - 1) != row

    def counted(at: Int) -> Intervals[Series]:
        places = code[at], column[at], row[at], stored.counts[at]
        return counted_offsets(stored.table, *places, periods.period_ns, periods.layout)

    return counted(np.flatnonzero(~straddles)), counted(np.flatnonzero(straddles))


def shared(straddling: Intervals[Key], periods: Periods) -> Intervals[Key]:
    """Return bins of 1 ms that straddle two rows shared out by overlap, halves to even: events are taken as spread evenly.

    No count is lost; a row is off by at most the events of the two bins at its edges.
    """
    edge = periods.edges[straddling.bins + 1]
    lower = round_ratio(straddling.counts * (edge % MS), MS)
    code, window = straddling.series[straddling.row], straddling.start_ns[straddling.row] // periods.period_ns
    codes, windows = (np.concatenate([column, column]) for column in (code, window))
    bins = np.concatenate([straddling.bins, straddling.bins + 1])
    counts = np.concatenate([lower, straddling.counts - lower])
    filled = np.flatnonzero(counts)
    return counted_offsets(
        straddling.table, codes[filled], windows[filled], bins[filled], counts[filled], periods.period_ns, periods.layout
    )
