"""What every layout of bins has in common: edges in whole ns, the value that a bin reports, and where counts go in a merge.

A layout is an immutable value that can be compared and be a key. Its kinds are `layout.LogLinear` and those of `edges`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import InputError

Int = NDArray[np.int64]
Float = NDArray[np.float64]

REPORTS = MIDPOINT, HIGHEST, UPPER, NOTHING = ("midpoint", "highest", "upper", "nothing")
LAST_NS = 2**63 - 1
UNLIKE = "means without a histogram are never added to histograms: choose one kind, as in --where kind=completion"


class Layout:
    """Bins of latencies: bin i is [edges[i], edges[i + 1]) in ns, from 0 on. With `open_ended` the last one has no upper edge.

    `reports` says which value stands for a bin. `text` form is what `str` returns and `parse_layout` reads back.
    """

    __slots__ = ()

    @property
    def reports(self) -> str:
        """Return which value stands for a bin: its `midpoint`, `highest` value or `upper` edge; of no bins: `nothing`."""
        return HIGHEST

    @property
    def open_ended(self) -> bool:
        """Return whether the last bin also holds everything above its lower edge."""
        return False

    @property
    def has_bins(self) -> bool:
        """Return whether bins say anything of latencies: not in `NO_BINS`."""
        return self.reports != NOTHING

    @property
    def even(self) -> bool:
        """Return whether all bins but the first are equally wide, as a share of their latency."""
        return True

    @property
    def grain(self) -> int:
        """Return the unit in ns that values were recorded in."""
        return 1

    @property
    def rank(self) -> tuple[int | str | tuple[int, ...], ...]:
        """Return what layouts are put in order by: the number of their kind, then what tells layouts of the kind apart."""
        raise NotImplementedError

    @property
    def below(self) -> tuple[int, int]:
        """Return how far a sample can lie below its bin: by so many millionths of itself or so many ns, whichever is more."""
        return 0, 0

    @property
    def edges(self) -> Int:
        """Return the `bins + 1` edges in ns; bin i is [edges[i], edges[i + 1])."""
        raise NotImplementedError

    @property
    def bins(self) -> int:
        """Return the number of bins."""
        return len(self.edges) - 1

    @property
    def octave(self) -> int:
        """Return how many bins an octave has at most, a power of two."""
        raise NotImplementedError

    @property
    def spread(self) -> tuple[Fraction, int]:
        """Return how wide bins are at most: as a share of their lower edge, or in ns; each bin keeps to one of the two."""
        raise NotImplementedError

    @property
    def error(self) -> Fraction:
        """Return the nominal error of the layout: that of bins above the first, where widths grow with latency.

        Bins below have one width: a share of their latency may be more. What an answer may be off by is said by
        `precision.precision_of`, of the bins that carry it.
        """
        raise NotImplementedError

    def coarser(self, an_octave: int) -> Self:
        """Return a layout of at most so many bins an octave, where there is one with edges of this one; else itself."""
        raise NotImplementedError

    @property
    def values(self) -> Int:
        """Return the value in ns that is reported for each bin; none is above what the open last bin reports.

        The open last bin reports the lowest latency that its samples can have: its lower edge; where unlike bins were merged,
        less, as one of these may have begun below.
        """
        return _highest_values(self)

    @property
    def keys(self) -> Int:
        """Return the number that stands for each bin where a store keeps one instead of the bin: each is another, rising."""
        return self.values

    def middles_of(self, bins: Int) -> Int:
        """Return the middles of bins in ns, which means are made of; what the open last bin reports, and none above it.

        Half of a bin's width in whole grains above its lower edge, as HdrHistogram's medianEquivalentValue.
        """
        if self.reports == MIDPOINT or not self.has_bins:
            return self.values[bins]
        if len(bins) > self.bins:
            return _middles(self).take(bins)
        return self._middles_of(bins)

    def weights_of(self, bins: Int) -> Float:
        """Return the middles of bins as new floating-point numbers, for sums of latencies."""
        if len(bins) > self.bins and self.has_bins:
            return _float_middles(self).take(bins)
        return self.middles_of(bins).astype(np.float64)

    def _middles_of(self, bins: Int) -> Int:
        lower = self.edges[bins]
        width = self.edges[bins + 1] - lower
        middle = lower + (width >> 1 if self.grain == 1 else width // self.grain // 2 * self.grain)
        if not self.open_ended:
            return middle
        least = self.values[-1]
        points: Int = np.where(bins == self.bins - 1, least, np.minimum(middle, least))
        return points

    def lowest_of(self, bins: Int) -> Int:
        """Return the lowest latency in ns that a sample in each of the bins can have: its lower edge.

        Merged bins take the counts of others by their highest value: these may begin below.
        """
        return self.edges[bins]

    def highest_of(self, bins: Int) -> Int:
        """Return the maximum in ns that is reported for samples in each of the bins: never below the true one.

        HdrHistogram's highest equivalent value; else the upper edge, of the open last bin what it reports.
        """
        if self.reports == HIGHEST:
            return self.values[bins]
        upper = self.edges[bins + 1]
        return np.where(bins == self.bins - 1, self.values[-1], upper) if self.open_ended else upper

    def errors_of(self, bins: Int) -> tuple[Int, Float]:
        """Return the largest distance in ns of a recorded latency from the value reported for each of the bins, and its share.

        The share of the recorded latency is infinite where bins from zero on report something else. Of the open last bin there
        is no such distance: 2^63 - 1, and infinite.
        """
        values, low = self.values[bins], self.lowest_of(bins)
        high = np.maximum(self.edges[bins + 1] - self.grain, low)
        below, above = np.maximum(values - low, 0), np.maximum(high - values, 0)
        shares = np.maximum(
            np.divide(below, low, out=np.where(below > 0, np.inf, 0.0), where=low > 0),
            np.divide(above, high, out=np.zeros(len(bins)), where=high > 0),
        )
        last = (bins == self.bins - 1) & self.open_ended
        return np.where(last, np.iinfo(np.int64).max, np.maximum(below, above)), np.where(last, np.inf, shares)

    def index(self, values_ns: Int) -> Int:
        """Return the bin of each value; values past the top go to the last bin. Negative values are a caller's error."""
        place = np.searchsorted(self.edges, values_ns, side="right") - 1
        return np.minimum(place, self.bins - 1).astype(np.int64)

    def nests_in(self, coarser: Layout) -> bool:
        """Return whether moving counts is exact: each edge of `coarser` below its last bin is one here, and it ends no lower."""
        if not coarser.open_ended and (self.open_ended or coarser.edges[-1] < self.edges[-1]):
            return False
        inner = coarser.edges[:-1]
        at = np.searchsorted(self.edges, inner)
        inside = at < len(self.edges) - (1 if self.open_ended else 0)
        return bool(inside.all() and np.array_equal(self.edges[at], inner))

    def moved_to(self, target: Layout) -> Int:
        """Return, for each bin here, the bin of `target` that takes its counts: the one that holds its highest value.

        InputError between bins and none.
        """
        if self.has_bins != target.has_bins:
            raise InputError(UNLIKE)
        return _moved(self, target)


@lru_cache(maxsize=64)
def _highest_values(layout: Layout) -> Int:
    values: Int = layout.edges[1:] - layout.grain
    if layout.open_ended:
        values[-1] = layout.edges[-2]
    values.flags.writeable = False
    return values


@lru_cache(maxsize=8)
def _middles(layout: Layout) -> Int:
    return layout._middles_of(np.arange(layout.bins))  # noqa: SLF001  # its own, for all bins at once


@lru_cache(maxsize=8)
def _float_middles(layout: Layout) -> Float:
    return layout.middles_of(np.arange(layout.bins)).astype(np.float64)


@lru_cache(maxsize=64)
def _moved(source: Layout, target: Layout) -> Int:
    highest = source.edges[1:] - 1
    if source.open_ended:
        highest = highest.copy()
        highest[-1] = source.edges[-2]
    moved = target.index(highest)
    moved.flags.writeable = False
    return moved
