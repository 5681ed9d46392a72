"""Layouts of other tools than fio and HdrHistogram: exponential bins, and bins between edges that the tool lists.

Both report the highest whole ns of a bin. Most tools count values up to an edge, that edge included: `(a, b]` is
`[floor(a) + 1, floor(b) + 1)` in whole ns, and b itself is what such a bin reports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ingest.core.bins import LAST_NS, Int, Layout

LEAST_SCALE, MOST_SCALE = -6, 8
MOST_EDGES = 1500  # their text fits in a keyword of Elasticsearch: 32,766 bytes
FINEST = 1024
MILLION = 1_000_000
DIGITS = 60  # of 2^(j / 2^scale): 40 behind the point of the largest edge


@dataclass(frozen=True, slots=True)
class Exponential(Layout):
    """Bins that grow by 2^(2^-scale): the upper ends are unit_ns * 2^((i + 1) / 2^scale) for any whole i, themselves included.

    Ends are rounded down to whole ns once, by integer arithmetic, so that edges of scale s are edges of every higher one: a
    change of scale is an exact merge. Bins of equal ends are one bin. Error 2^(2^-scale) - 1: 9.1 % at scale 3, 0.27 % at 8.
    Where counts came from other bins, by their highest value, a sample may lie below its bin: by `below_ppm` millionths of itself
    or by `below_ns`, whichever is more (see `lowest_of`).
    Source: OpenTelemetry's exponential histogram; Prometheus's native one counts i from one higher.
    """

    scale: int
    unit_ns: int
    below_ppm: int = 0
    below_ns: int = 0

    def __post_init__(self) -> None:
        if not LEAST_SCALE <= self.scale <= MOST_SCALE or not 0 < self.unit_ns < LAST_NS:
            raise ValueError(f"impossible layout: scale {self.scale} in units of {self.unit_ns} ns")
        if not 0 <= self.below_ppm <= LAST_NS or not 0 <= self.below_ns <= LAST_NS:
            raise ValueError(f"impossible layout: samples {self.below_ppm} ppm, {self.below_ns} ns below their bins")

    def __str__(self) -> str:
        """Return the stored form, which `parse_layout` reads back."""
        below = f":{self.below_ppm}ppm:{self.below_ns}ns" if self.below_ppm or self.below_ns else ""
        return f"exponential:s{self.scale}:{self.unit_ns}ns{below}"

    @property
    def rank(self) -> tuple[int | str | tuple[int, ...], ...]:
        """Return the place of these bins among layouts: behind log-linear ones."""
        return 1, self.scale, self.unit_ns, *self.below

    @property
    def below(self) -> tuple[int, int]:
        """Return how far a sample can lie below its bin."""
        return self.below_ppm, self.below_ns

    @property
    def edges(self) -> Int:
        """Return the edges in ns: 0, and one above each end."""
        return _ends(self)[0]

    def numbers(self, bins: Int) -> Int:
        """Return the numbers that OpenTelemetry gives to bins; where it has several that end at the same ns, the first."""
        _, first, places = _ends(self)
        return np.searchsorted(places, bins) + first

    @property
    def octave(self) -> int:
        """Return how many bins an octave has: 2^scale, at least 1."""
        return 1 << max(self.scale, 0)

    @property
    def error(self) -> Fraction:
        """Return how far the end of a bin lies above its beginning, as a share."""
        return Fraction(2.0 ** (2.0**-self.scale)) * (1 + self._below) - 1

    @property
    def _below(self) -> Fraction:
        return Fraction(self.below_ppm, MILLION)

    @property
    def spread(self) -> tuple[Fraction, int]:
        """Return the width of bins as a power of two, and that of the widest bin below where rounding makes them wider."""
        width = Fraction(1, self.octave) if self.scale >= 0 else Fraction((1 << (1 << -self.scale)) - 1)
        width = (1 + width) * (1 + self._below) - 1
        lower = self.lowest_of(np.arange(self.bins))
        widths = self.edges[1:] - lower
        return width, int(widths[widths > lower * float(width)].max(initial=1))

    def lowest_of(self, bins: Int) -> Int:
        """Return the lowest latency in ns that a sample in each of the bins can have: its lower edge, or below it."""
        lower = self.edges[bins]
        if not self.below_ppm and not self.below_ns:
            return lower
        relative = np.floor(lower / (1 + self.below_ppm / MILLION) * (1 - 1e-15)).astype(np.int64)
        lowest: Int = np.maximum(np.minimum(relative, lower - self.below_ns), 0)
        return lowest

    def coarser(self, an_octave: int) -> Exponential:
        """Return the layout of a lower scale with at most so many bins an octave."""
        return replace(self, scale=min(self.scale, an_octave.bit_length() - 1))

    def places(self, indices: Int) -> Int:
        """Return the bins that hold the numbered bins of OpenTelemetry; what lies past the ends of the layout goes there."""
        _, first, bins = _ends(self)
        return bins[np.clip(indices - first, 0, len(bins) - 1)]


@lru_cache(maxsize=32)
def _ends(layout: Exponential) -> tuple[Int, int, Int]:
    """Return the edges, the number of the last bin of OpenTelemetry that ends below 1 ns, and the places of all from it on."""
    parts, jump = 1 << max(layout.scale, 0), 1 << max(-layout.scale, 0)
    with localcontext() as context:
        context.prec = DIGITS
        roots = [Decimal(layout.unit_ns) * Decimal(2) ** (Decimal(j) / parts) for j in range(parts)]
        ends = [0]
        lowest = -(layout.unit_ns.bit_length() + 1) // jump * jump
        numbers = []
        for octave in range(lowest, 64 + jump, jump):
            power = Decimal(2) ** octave
            for j, root in enumerate(roots):
                end = math.floor(root * power)
                if end >= 1:
                    numbers.append(octave // jump * parts + j)
                    ends.append(min(end, LAST_NS - 1))
    edges = np.unique(np.concatenate([[0], np.array(ends, np.int64) + 1]))
    # Bin i of OpenTelemetry ends where end i + 1 lies: the one before the first end of 1 ns holds less than that.
    places = np.searchsorted(edges, np.array(ends, np.int64) + 1) - 1
    edges.flags.writeable = places.flags.writeable = False
    return edges, numbers[0] - 2, places.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Edges(Layout):
    """Bins between the edges of a tool's own list: `bounds` in whole ns, from 0 on, rising."""

    bounds: tuple[int, ...]
    is_open: bool = False

    def __post_init__(self) -> None:
        rising = all(low < high for low, high in zip(self.bounds, self.bounds[1:], strict=False))
        if len(self.bounds) < 2 or self.bounds[0] or not rising or self.bounds[-1] > LAST_NS:
            raise ValueError("edges begin at 0 ns and rise, at least two of them, none of 2^63 ns or more")
        if len(self.bounds) > MOST_EDGES:
            raise ValueError(f"{len(self.bounds):,} edges: more than {MOST_EDGES:,} are no layout")

    def __str__(self) -> str:
        """Return the stored form, which `parse_layout` reads back."""
        return f"edges:e{','.join(map(str, self.bounds))}:{'open' if self.is_open else 'closed'}"

    @property
    def rank(self) -> tuple[int | str | tuple[int, ...], ...]:
        """Return the place of these bins among layouts: behind all others."""
        return 2, self.bounds, self.is_open

    @staticmethod
    def of_ends(ends_ns: Sequence[int], *, is_open: bool) -> tuple[Edges, Int]:
        """Return the layout of bins that end at these whole ns, ends included, and the bin of each; open: one more beyond.

        Bins of equal ends are one bin. ValueError where no end is left.
        """
        bounds = sorted({0, *(min(end, LAST_NS // 2) + 1 for end in ends_ns if end >= 0)})
        edges = np.array(bounds, np.int64)
        places = np.maximum(
            np.searchsorted(edges, np.array([min(max(end, -1), LAST_NS // 2) + 1 for end in ends_ns], np.int64)) - 1, 0
        )
        if is_open:
            bounds.append(2 * bounds[-1])
            places = np.append(places, len(bounds) - 2)
        return Edges(tuple(bounds), is_open), places.astype(np.int64)

    @property
    def open_ended(self) -> bool:
        """Return whether the last bin also holds everything above its lower edge."""
        return self.is_open

    @property
    def even(self) -> bool:
        """Return that nothing is known of all bins together."""
        return False

    @property
    def edges(self) -> Int:
        """Return the edges in ns."""
        return _listed(self)

    @property
    def octave(self) -> int:
        """Return how many bins an octave would have if all were as narrow as the narrowest but the first."""
        low, high = self._inner
        narrow = float((high / low).min(initial=2.0))
        least = math.ceil(1 / math.log2(narrow))
        return 1 << min(least - 1, FINEST - 1).bit_length()

    @property
    def _inner(self) -> tuple[Int, Int]:
        """Return the edges of all bins but the first and an open last one."""
        edges = self.edges[1:-1] if self.is_open else self.edges[1:]
        return edges[:-1], edges[1:]

    @property
    def error(self) -> Fraction:
        """Return the largest share that a sample can lie below the highest value of its bin, in any but the first."""
        low, high = self._inner
        return Fraction(float(((high - 1 - low) / low).max(initial=0.0)))

    @property
    def spread(self) -> tuple[Fraction, int]:
        """Return the width of the first bin, and of the others the largest as a share."""
        first = self.bounds[1]
        low, high = self._inner
        wide = (high - low) > first
        shares = [Fraction(int(b - a), int(a)) for a, b in zip(low[wide], high[wide], strict=True)]
        return max([*shares, Fraction(1, FINEST)]), first

    def coarser(self, an_octave: int) -> Edges:
        """Return every edge that is far enough from the one before it."""
        return _thinned(self, an_octave)


@lru_cache(maxsize=64)
def _listed(layout: Edges) -> Int:
    edges = np.array(layout.bounds, np.int64)
    edges.flags.writeable = False
    return edges


@lru_cache(maxsize=64)
def _thinned(layout: Edges, an_octave: int) -> Edges:
    bounds, least = [0], 2.0 ** (1 / an_octave) * (1 - 1e-9)
    last = layout.bounds[-2] if layout.is_open else layout.bounds[-1]
    for bound in layout.bounds[1:]:
        if bound < last and (len(bounds) == 1 or bound >= bounds[-1] * least):
            bounds.append(bound)
    bounds.extend(layout.bounds[-2:] if layout.is_open and last > 0 else layout.bounds[-1:])
    return Edges(tuple(bounds), layout.is_open)
