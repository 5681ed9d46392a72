"""Logs of one host added up while they are read: windows, bin by bin, under the labels that they share.

    h1 job 1  1s  {500 us: 3, 900 us: 1}
    h1 job 2  1s  {500 us: 2}             ->  h1  1s  {500 us: 5, 900 us: 1}

Logs are read side by side, the one that is furthest behind first, so that little is held. Windows whose end all logs have
passed are given out. What comes for such a window later (a log whose time runs back) is a further segment: no window is given
twice. Each layout is a segment of its own, too, as in a log that is stored alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ingest.core.bins import Layout
from ingest.core.csr import distinct
from ingest.core.errors import InputError
from ingest.core.intervals import Intervals, Sum
from ingest.core.offsets import is_offsets
from ingest.core.series import Series

Spans = dict[Series, tuple[int, int]]
Windows = Iterator[Intervals[Series]]

SEGMENT_BITS = 12  # the lower bits of a segment's number: which one of its part
HELD_ENTRIES = 1_000_000  # bins of windows that wait for other logs, before any are given out: 16 MB
WAITING = 60  # windows that a log may be late by, as an op that is rare
EVER = 2**62


class AddingUp:
    """The windows of several logs under the labels that they share; `first_segment` is the number of its first segment."""

    def __init__(self, labels: Sequence[str], first_segment: int, step_ns: int) -> None:
        self._dropped = dict.fromkeys(labels, "")
        self._first = first_segment
        self._wait_ns = WAITING * step_ns
        self._held: Sum[Series] = Sum(HELD_ENTRIES)
        self._entries, self._most = 0, HELD_ENTRIES
        self._passed, self._late = -EVER, 0
        self._given: dict[tuple[Series, Layout, int], Series] = {}
        self._segments: dict[Series, int] = {}

    def windows(self, logs: Sequence[Windows]) -> Windows:
        """Yield the windows of `logs` added up; offsets go through. InputError for a log whose time runs back too often."""
        reached = dict.fromkeys(range(len(logs)), -EVER)
        while reached:
            number = min(reached, key=lambda each: (reached[each], each))
            part = next(logs[number], None)
            if part is None:
                del reached[number]
            elif is_offsets(part):
                yield part
            elif len(part):
                reached[number] = max(reached[number], int(part.start_ns.max()))
                self._held.add(part.relabelled(self.shared))
                self._entries += len(part.bins)
            if self._entries >= self._most and reached:
                yield from self._whole(min(reached.values()) - self._wait_ns)
        yield from self._whole(EVER)

    def shared(self, series: Series) -> Series:
        """Return the series that the windows of a log's series are added up under, without the number of its segment."""
        return series.replaced(segment=0, **self._dropped)

    def reach(self, spans: Sequence[Spans]) -> Spans:
        """Return from when to when the segments that were given out reach, by the reach of the series of each log."""
        extents: Spans = {}
        for own in spans:
            for series, (first, last) in own.items():
                low, high = extents.get(self.shared(series), (first, last))
                extents[self.shared(series)] = min(low, first), max(high, last)
        return {given: extents[series] for (series, _, _), given in self._given.items() if series in extents}

    def _whole(self, until_ns: int) -> Windows:
        """Yield the windows that begin before `until_ns`, and go on holding the others."""
        parts, self._held, self._entries, late = self._held.parts(), Sum(HELD_ENTRIES), 0, False
        for rows in parts:
            before = rows.start_ns < self._passed
            late |= bool(before.any())
            for level, chosen in ((self._late + 1, before), (0, ~before & (rows.start_ns < until_ns))):
                if chosen.any():
                    yield self._in_segments(rows.take(np.flatnonzero(chosen)), level)
            rest = rows.take(np.flatnonzero(~before & (rows.start_ns >= until_ns)))
            self._held.add(rest)
            self._entries += len(rest.bins)
        self._passed = max(self._passed, until_ns)
        self._late += late
        self._most = max(self._most, 2 * self._entries)

    def _in_segments(self, rows: Intervals[Series], late: int) -> Intervals[Series]:
        """Return rows of one layout under the segments that hold these; `late` tells apart those that come after their window."""
        for code in distinct(rows.series).tolist():
            series = rows.table[code]
            if (series, rows.layout, late) not in self._given:
                number = self._segments.get(series, 0)
                if number >> SEGMENT_BITS:
                    raise InputError("time begins anew in these logs too often to add them up: load them without --add-up")
                self._segments[series] = number + 1
                self._given[series, rows.layout, late] = series.replaced(segment=self._first + number)
        names = iter([self._given.get((series, rows.layout, late), series) for series in rows.table])
        return rows.relabelled(lambda _: next(names))
