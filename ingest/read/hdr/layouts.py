"""The layout that the bins of a histogram have in ns, and where its counts go when they do not fall on whole ns.

Integer histograms, and double ones whose unit is whole ns, keep their bins. Of other double histograms (ratio 2^-20 in
microseconds, say) each bin goes to the bin of 1 ns or more, as fine as its own, that holds its highest value: exact where
their edges meet, else off by up to one more bin.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ingest.core.dataclass import dataclass
from ingest.core.layout import UPPER, LogLinear, hdr_half, hdr_layout
from ingest.read.hdr.codec import Geometry

Int = NDArray[np.int64]

MOST_BINS = 1 << 24
MOST_NS = 1 << 62
PAST_RANGE = "values past 2^62 ns"
TOO_MANY = "one log mixes more bin geometries than can be held"


@dataclass(frozen=True, slots=True)
class Bins:
    """A layout, and the length of a unit of the histogram in ns where its bins have to be moved to it."""

    layout: LogLinear
    moved_by: Fraction | None = None


class Layouts:
    """The layouts of one log; the bins of all of them together are bounded, whatever its lines claim."""

    def __init__(self, recorded_ns: int) -> None:
        self._recorded_ns = recorded_ns
        self._found: dict[Geometry, Bins | str] = {}
        self._bins = 0

    @property
    def total(self) -> int:
        """Return the bins of all layouts so far."""
        return self._bins

    @property
    def geometries(self) -> list[Geometry]:
        """Return the geometries that were met, in order."""
        return list(self._found)

    def of(self, geometry: Geometry) -> Bins | str:
        """Return the layout of a geometry, or the reason why there is none."""
        known = self._found.get(geometry)
        if known is None:
            known = self._new(geometry)
            if len(self._found) < MOST_BINS >> 12:
                self._found[geometry] = known
        return known

    def _new(self, geometry: Geometry) -> Bins | str:
        unit = Fraction(geometry.ratio) * self._recorded_ns
        try:
            if unit.denominator == 1:
                bins = Bins(hdr_layout(geometry.digits, geometry.unit_magnitude, int(unit)))
            else:
                whole = unit.numerator == 1 and not unit.denominator & (unit.denominator - 1)
                first_ns = math.ceil(unit * (1 << geometry.unit_magnitude))  # the width of its first bins
                target = hdr_layout(geometry.digits, first_ns.bit_length() - 1 if whole else 0, 1)
                upper = replace(target, reports=UPPER, grain_ns=first_ns if first_ns > 1 else 0)
                bins = Bins(target if whole else upper, unit)
        except (ValueError, OverflowError):
            return PAST_RANGE
        if all(not isinstance(known, Bins) or known.layout != bins.layout for known in self._found.values()):
            self._bins += bins.layout.bins
        return bins if self._bins <= MOST_BINS else TOO_MANY


def upper_edge(geometry: Geometry, index: int) -> int:
    """Return the upper edge of a bin in units of its histogram."""
    half = hdr_half(geometry.digits)
    octave = max(index // half - 1, 0)
    lower = index if index < 2 * half else (half + index % half) << octave
    return (lower + (1 << octave)) << geometry.unit_magnitude


@lru_cache(maxsize=1 << 16)
def _place(geometry: Geometry, unit: Fraction, index: int) -> int:
    """Return the highest whole ns within a bin."""
    return -(-upper_edge(geometry, index) * unit.numerator // unit.denominator) - 1


def moved(bins: Int, geometry: Geometry, target: Bins) -> Int:
    """Return the bin of the target layout for each bin; those past its end get the number of its bins, or a larger one."""
    if target.moved_by is None:
        return bins
    unit = target.moved_by
    distinct, place = np.unique(bins, return_inverse=True)
    values = [_place(geometry, unit, index) for index in distinct.tolist()]
    top = int(target.layout.edges[-1])
    inside = target.layout.index(np.array([min(value, top - 1) for value in values], np.int64))
    target_bins = np.where([value < top for value in values], inside, target.layout.bins)
    return target_bins[place.reshape(-1)].astype(np.int64)
