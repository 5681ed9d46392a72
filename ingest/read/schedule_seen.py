"""What one source shows of its schedule: latencies by op and kind, when; kept in its account as a line of JSON.

`ingest.read.schedule` judges by the digests of all sources of a generator.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Int, Intervals
from ingest.core.layout import Layout
from ingest.core.series import Series

SECOND = 1_000_000_000
P99 = 99.0
LEVELS = (50.0, 90.0, P99, 99.9)
BEYOND = 10  # samples that must lie beyond a percentile before it is judged
PART = 64  # bins an octave: percentiles of a digest are off by at most 1.1 %
CELLS = 64 * PART
MOST_SERIES, MOST_WINDOWS = 256, 512
MOST_BY_BIN, MOST_BINS, MANY = 4, 1 << 17, 4
MOST_EXACT = 2.0**53
SERVICE, RESPONSE, WAIT = "service", "response", "wait"
RATED = (SERVICE, RESPONSE, WAIT, "")

Label = tuple[str, str, str]  # op, tag, kind


class Seen:
    """What the rows of one source show of its schedule: latencies by op and kind, when; with a `rate` over time, too."""

    def __init__(self, rate: str = "") -> None:
        self._rate = rate
        self._cells: dict[Label, NDArray[np.float64]] = {}
        self._bins: dict[tuple[Label, Layout], Int] = {}  # not yet in cells
        self._samples: Counter[str] = Counter()
        self._windows: dict[str, Counter[int]] = {}
        self._width = SECOND
        self._longest = 0
        self._span: tuple[int, int, int] | None = None  # first start, last end, start of the row that ends last
        self._lag_ns: int | None = None

    def add(self, rows: Intervals[Series], samples: Int | None = None) -> None:
        """Take rows with samples (how many in each, where that is known); those of means are left out."""
        filled = np.diff(rows.indptr) > 0
        if not filled.all():
            rows, samples = rows.take(np.flatnonzero(filled)), None
        if not len(rows) or not rows.layout.has_bins:
            return
        samples = rows.samples if samples is None else samples
        few = float(samples.sum(dtype=np.float64)) < MOST_EXACT
        newest = int(rows.end_ns.argmax())
        self._add_edges(int(rows.start_ns.min()), int(rows.end_ns[newest]), int(rows.start_ns[newest]))
        self._longest = max(self._longest, int((rows.end_ns - rows.start_ns).max()))
        codes = np.flatnonzero(np.bincount(rows.series, minlength=len(rows.table))).tolist()
        entry_codes = rows.series[rows.row] if len(codes) > 1 else None
        for code in codes:
            series = rows.table[code]
            label = (series.op, series.tag, series.kind)
            mine = slice(None) if entry_codes is None else entry_codes == code
            ours = slice(None) if entry_codes is None else rows.series == code
            self._samples[label[2]] += int(samples[ours].sum())
            if self._rate:
                self._add_windows(label[2], rows.start_ns[ours], rows.end_ns[ours], samples[ours])
            if label in self._cells or len(self._cells) < MOST_SERIES:
                self._count(label, rows.layout, rows.bins[mine], rows.counts[mine], few=few)
            if label[2] == WAIT:
                self._lag_ns = max(self._lag_ns or 0, int(rows.layout.values[rows.bins[mine].max()]))

    def _count(self, label: Label, layout: Layout, bins: Int, counts: Int, *, few: bool) -> None:
        """Add counts to those of a series; of the first series with many of them bin by bin, which spares looking up cells."""
        self._cells.setdefault(label, np.zeros(CELLS))
        by_bin = self._bins.get((label, layout))
        if by_bin is None and len(self._bins) < MOST_BY_BIN and layout.bins <= min(MANY * len(bins), MOST_BINS):
            by_bin = self._bins[label, layout] = np.zeros(layout.bins, np.int64)
        if few and by_bin is not None:
            np.add.at(by_bin, bins, counts)
        else:
            self._cells[label] += np.bincount(_cells(layout)[bins], counts, CELLS)

    def _fold(self) -> None:
        """Add all counts by bin to those by cell."""
        for (label, layout), counts in self._bins.items():
            self._cells[label] += np.bincount(_cells(layout), counts, CELLS)
        self._bins = {}

    def _add_edges(self, first: int, last: int, since: int) -> None:
        known = self._span or (first, last, since)
        self._span = (min(first, known[0]), *max((last, since), known[1:]))

    def _add_windows(self, kind: str, start_ns: Int, end_ns: Int, samples: Int) -> None:
        """Spread the samples of rows evenly over the windows that they lie in."""
        first, last = self._span[:2] if self._span else (0, 0)
        while self._longest > 8 * self._width or last - first > MOST_WINDOWS * self._width:
            self._widen()
        lengths = np.maximum(end_ns - start_ns, 1)
        windows = self._windows.setdefault(kind, Counter())
        index = start_ns // self._width
        for further in range(int((end_ns // self._width - index).max()) + 1):
            low = np.maximum(start_ns, (index + further) * self._width)
            high = np.minimum(start_ns + lengths, (index + further + 1) * self._width)
            share = np.maximum(high - low, 0) / lengths * samples
            places, inverse = np.unique(index + further, return_inverse=True)
            for place, count in zip(places.tolist(), np.bincount(inverse, share).tolist(), strict=True):
                if count:
                    windows[place] += count

    def _widen(self) -> None:
        self._width *= 2
        for kind, windows in self._windows.items():
            halved: Counter[int] = Counter()
            for place, count in windows.items():
                halved[place // 2] += count
            self._windows[kind] = halved

    def absorb(self, other: Seen) -> None:
        """Add what was seen of another part of the same source."""
        while other._width < self._width:
            other._widen()
        while self._width < other._width:
            self._widen()
        other._fold()
        for label, cells in other._cells.items():
            if label in self._cells or len(self._cells) < MOST_SERIES:
                self._cells[label] = self._cells[label] + cells if label in self._cells else cells
        self._samples.update(other._samples)
        for kind, windows in other._windows.items():
            self._windows.setdefault(kind, Counter()).update(windows)
        self._longest = max(self._longest, other._longest)
        if other._span is not None:
            self._add_edges(*other._span)
        self._lag_ns = max((lag for lag in (self._lag_ns, other._lag_ns) if lag is not None), default=None)

    def digest(self, series: Series, *, span_ns: int = 0, lag_ns: int | None = None, expected_ns: int = 0) -> str:
        """Return all that was seen as a line of JSON, as accounts and stores keep it.

        `span_ns` is how long the run took where that is known to the ns, `lag_ns` the longest wait, `expected_ns` the interval
        that data was corrected by.
        """
        self._fold()
        rated = next((kind for kind in RATED if self._samples[kind]), "")
        windows = self._windows.get(rated, Counter[int]())
        first = min(windows, default=0)
        counts = [round(windows[place], 3) for place in range(first, max(windows, default=-1) + 1)]
        return json.dumps(
            {
                "labels": [series.run, series.host, series.volume, series.job, series.process],
                "rate": self._rate,
                "span_ns": span_ns,
                "lag_ns": self._lag_ns if lag_ns is None else lag_ns,
                "expected_ns": expected_ns,
                "edges": self._span,
                "longest_ns": self._longest,
                "windows": [self._width, first, counts],
                "samples": dict(self._samples),
                "series": [[*label, *_levels(counted)] for label, counted in sorted(self._cells.items())],
            }
        )


@lru_cache(maxsize=8)
def _cells(layout: Layout) -> Int:
    """Return the cell of a digest that each bin of a layout lies in."""
    cells: Int = np.floor(PART * np.log2(np.maximum(layout.values, 1))).astype(np.int64)
    return np.minimum(cells, CELLS - 1)


def _levels(counted: NDArray[np.float64]) -> list[int | None]:
    """Return the number of samples, then the value of each level in ns, None where too few samples lie beyond."""
    below = np.cumsum(counted)
    total = int(below[-1])
    values: list[int | None] = [total]
    for level in LEVELS:
        enough = total * (100 - level) / 100 >= BEYOND
        cell = int(np.searchsorted(below, total * level / 100))
        values.append(round(2 ** ((min(cell, CELLS - 1) + 0.5) / PART)) if enough else None)
    return values
