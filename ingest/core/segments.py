"""One layout a series: what a source holds in further layouts under the same labels is in further segments.

    labels a, 3 digits      segment 0
    labels a, 2 digits      segment 1: the first of these labels that nothing else has
    labels a, 3 digits      segment 0 again

The identity of documents then shows that they hold bins of one layout, and they are never moved to another one.
Numbers follow the order in which a source brings its layouts, so that every reading of it gives the same. From when to when
a series reaches is said of all its segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ingest.core.intervals import Intervals
from ingest.core.layout import Layout, parse_layout
from ingest.core.series import LABELS, Series


class Segments:
    """The segments that one source has been given so far."""

    def __init__(self, kept: Iterable[Sequence[Any]] = ()) -> None:
        """Begin a source, or go on where `state` was kept."""
        self._given: dict[tuple[Series, Layout], Series] = {}
        for *labels, layout, segment in kept:
            series = Series(*labels)
            self._given[series, parse_layout(layout)] = series.replaced(segment=segment)
        self._taken = set(self._given.values())

    def apart(self, rows: Intervals[Series]) -> Intervals[Series]:
        """Return the rows under series that have one layout each; most are under the series that they came with."""
        codes, first = np.unique(rows.series, return_index=True)
        table = list(rows.table)
        for code in codes[np.argsort(first)].tolist():
            table[code] = self.given(table[code], rows.layout)
        if all(now is before for now, before in zip(table, rows.table, strict=True)):
            return rows
        named = iter(table)
        return rows.relabelled(lambda _: next(named))

    def given(self, series: Series, layout: Layout) -> Series:
        """Return the series that holds what the source has under `series` in this layout."""
        given = self._given.get((series, layout))
        if given is None:
            given = series
            while given in self._taken:
                given = given.replaced(segment=given.segment + 1)
            self._given[series, layout] = given
            self._taken.add(given)
        return series if given == series else given

    def state(self) -> list[list[Any]]:
        """Return the segments given so far, as values that JSON can hold."""
        return [
            [*(getattr(series, label) for label in LABELS), series.segment, str(layout), given.segment]
            for (series, layout), given in self._given.items()
        ]


def of_all_segments(reach: Mapping[Series, tuple[int, int]]) -> dict[Series, tuple[int, int]]:
    """Return from when to when series reach, each segment as far as all of its labels: one without a sample is not stored."""
    extents: dict[Series, tuple[int, int]] = {}
    for series, (first, last) in reach.items():
        whole = series.replaced(segment=0)
        low, high = extents.get(whole, (first, last))
        extents[whole] = min(low, first), max(high, last)
    return {series: extents[series.replaced(segment=0)] for series in reach}
