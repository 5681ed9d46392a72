"""Bin geometry: index <-> [lower, upper) in integer nanoseconds, and the value that is reported for a bin.

`LogLinear` covers fio and HdrHistogram alike: the first `2 * half` bins are one unit wide, after that every octave
has `half` bins. fio has half = 64 (a bin is at most 1/64 wide, so its midpoint is off by at most 1/128); HdrHistogram
with 2 digits has half = 128, with 3 digits half = 1,024. Coarseness c joins 2^c neighbouring bins, as fio's
`log_hist_coarseness` does.

    index    0 ... 127  128        129        192        954               1855
    lower    0 ... 127  128        130        256        999,424           17,045,651,456     (half 64, unit 1 ns)

Layouts of other tools are in `edges`; `Layout` is what all have in common.

Sources: fio stat.c (plat_val_to_idx, plat_idx_to_val) for the arithmetic, checked against the vectors of its output.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ingest.core.bins import HIGHEST, LAST_NS, MIDPOINT, NOTHING, REPORTS, UNLIKE, UPPER, Int, Layout
from ingest.core.errors import InputError

NO_BINS_TEXT = "nobins"
TOPS = OPEN, _ = ("open", "closed")
MOST_SAID = 200
__all__ = [
    "HIGHEST",
    "LAST_NS",
    "MIDPOINT",
    "NOTHING",
    "NO_BINS",
    "NO_BINS_TEXT",
    "REPORTS",
    "UPPER",
    "Int",
    "Layout",
    "LogLinear",
    "common_layout",
    "fio_layout",
    "hdr_half",
    "hdr_layout",
    "parse_layout",
]


@dataclass(frozen=True, slots=True)
class LogLinear(Layout):
    """A log-linear layout: `half` bins an octave, `fine` bins before coarsening, values in units of `unit_ns`.

    `reports` names the value of a bin: fio's `midpoint`, HdrHistogram's `highest` equivalent value, or the `upper`
    edge where unlike layouts were merged. With `open_ended` the last bin also holds everything above its lower edge.
    `grain_ns` is the unit that was recorded in where bins are wider than that from the start (HdrHistogram's lowest
    discernible value): the highest value of a bin is one grain below its upper edge. 0 stands for `unit_ns`. Of bins that
    report their `upper` edge, because they were merged from others, it is the widest first bin of those (0: no wider than 1 ns).
    `NO_BINS` is the layout of what was recorded without a histogram: its one bin holds the count and says nothing of latencies.
    """

    half: int
    fine: int
    unit_ns: int = 1
    coarseness: int = 0
    reports: str = MIDPOINT
    open_ended: bool = True
    grain_ns: int = 0

    def __post_init__(self) -> None:
        if self.half < 1 or self.half & (self.half - 1):
            raise ValueError(f"half must be a power of two, not {self.half}")
        if self.reports not in REPORTS:
            raise ValueError(f"reports must be one of {', '.join(REPORTS)}, not {self.reports!r}")
        if self.fine < 1 or self.unit_ns < 1 or not 0 <= self.coarseness < 32:
            raise ValueError(f"impossible layout: {self.fine} bins of {self.unit_ns} ns, coarseness {self.coarseness}")
        if self.grain_ns < 0 or (self.grain_ns >= self.unit_ns and self.reports != UPPER):
            raise ValueError(f"a grain of {self.grain_ns} ns must be finer than the unit of {self.unit_ns} ns")

    def __str__(self) -> str:
        """Return the stored form, which `parse_layout` reads back."""
        if not self.has_bins:
            return NO_BINS_TEXT
        top = "open" if self.open_ended else "closed"
        grain = f":{self.grain_ns}ns" if self.grain_ns else ""
        return f"loglinear:{self.half}:{self.fine}:{self.unit_ns}ns:c{self.coarseness}:{self.reports}:{top}{grain}"

    @property
    def rank(self) -> tuple[int | str | tuple[int, ...], ...]:
        """Return the place of these bins among layouts: before those of other kinds."""
        return 0, self.half, self.fine, self.unit_ns, self.coarseness, self.reports, self.open_ended, self.grain_ns

    @property
    def edges(self) -> Int:
        """Return the `bins + 1` edges in ns; bin i is [edges[i], edges[i + 1])."""
        return _edges(self)

    @property
    def grain(self) -> int:
        """Return the unit in ns that values were recorded in."""
        return self.unit_ns if self.reports == UPPER else self.grain_ns or self.unit_ns

    @property
    def first_ns(self) -> int:
        """Return the width in ns of the first bin; of merged bins that of the widest first bin among them."""
        width = self.unit_ns << self.coarseness
        return max(width, self.grain_ns) if self.reports == UPPER else width

    @property
    def bins(self) -> int:
        """Return the number of bins after coarsening."""
        return -(-self.fine // (1 << self.coarseness))

    @property
    def values(self) -> Int:
        """Return the value in ns that is reported for each bin; none is above what the open last bin reports.

        The open last bin reports the lowest latency that its samples can have: its lower edge; where unlike bins were merged,
        less, as one of these may have begun below.
        """
        return _values(self)

    @property
    def keys(self) -> Int:
        """Return the number that stands for each bin where a store keeps one instead of the bin: each is another, rising."""
        return _keys(self)

    def lowest_of(self, bins: Int) -> Int:
        """Return the lowest latency in ns that a sample in each of the bins can have: its lower edge.

        Merged bins take the counts of others by their highest value: these may begin below.
        """
        lower = self.edges[bins]
        if self.reports != UPPER:
            return lower
        # A bin [a, b) whose highest value lies here ends above the lower edge, and is at most as wide as the widest first bin, or
        # as a bin of this layout at a.
        if self.octaves:
            wide: Int = np.maximum(np.minimum(lower - self.first_ns, lower >> min(self.octaves, 63)), 0)
            return wide
        parts, rest = np.divmod(lower, self.half + (1 << self.coarseness))  # for lower / (1 + width), without passing 2^63
        relative = parts * self.half + rest * self.half // (self.half + (1 << self.coarseness))
        lowest: Int = np.maximum(np.minimum(lower - self.first_ns, relative), 0)
        return lowest

    @property
    def error(self) -> Fraction:
        """Return the nominal error of the layout: that of bins above the first octaves, where widths grow with latency.

        Bins below have one width: a share of their latency may be more. What an answer may be off by is said by
        `precision.precision_of`, of the bins that carry it.
        """
        return self.width / 2 if self.reports == MIDPOINT else self.width

    @property
    def octaves(self) -> int:
        """Return how many octaves each bin spans, 0 where it is at most one."""
        return (1 << self.coarseness) // self.half if 1 << self.coarseness > self.half else 0

    @property
    def width(self) -> Fraction:
        """Return the largest width of bins as a share of their lower edge, but for the first."""
        return Fraction((1 << min(self.octaves, 63)) - 1) if self.octaves else Fraction(1 << self.coarseness, self.half)

    @property
    def octave(self) -> int:
        """Return how many bins an octave has, at least 1."""
        return max(1, self.half >> self.coarseness)

    @property
    def spread(self) -> tuple[Fraction, int]:
        """Return the width of bins as a share of their lower edge, and that of the first bins in ns."""
        return self.width, self.first_ns

    def coarser(self, an_octave: int) -> LogLinear:
        """Return the layout of so many bins an octave where its edges are edges of this one, else this one."""
        unit = self.unit_ns << self.coarseness
        top = -(-int(self.edges[-1]) // unit)
        octaves = max(1, (top - 1).bit_length() - an_octave.bit_length() + 2)
        reaching = LogLinear(an_octave, an_octave * octaves, unit, open_ended=self.open_ended)
        last = int(reaching.index(self.edges[-2:-1])[0])
        coarser = replace(reaching, fine=last + 1)
        return coarser if self.nests_in(coarser) else self


@lru_cache(maxsize=64)
def _edges(layout: LogLinear) -> Int:
    index = np.arange(layout.bins + 1, dtype=np.int64) << layout.coarseness
    index = np.minimum(index, layout.fine)
    octave = np.maximum(index // layout.half - 1, 0)
    lower = np.where(index < 2 * layout.half, index, (layout.half + index % layout.half) << octave)
    edges: Int = lower * layout.unit_ns
    octave = max(layout.fine // layout.half - 1, 0)
    if ((layout.fine - octave * layout.half) << octave) * layout.unit_ns > LAST_NS:  # of merged bins the last may end at 2^63
        edges[-1] = LAST_NS
    if (np.diff(edges) <= 0).any():
        raise ValueError(f"{layout} reaches past 2^63 ns")
    edges.flags.writeable = False
    return edges


@lru_cache(maxsize=64)
def _values(layout: LogLinear) -> Int:
    edges = layout.edges
    lower, upper = edges[:-1], edges[1:]
    if layout.reports == MIDPOINT:
        units = (upper - lower) // layout.unit_ns
        values = lower + units // 2 * layout.unit_ns
    elif layout.reports == HIGHEST:
        values = upper - layout.grain
    elif layout.has_bins:
        values = upper.copy()
    else:
        values = lower.copy()
    if layout.open_ended:
        values = np.minimum(values, layout.lowest_of(np.array([layout.bins - 1])))
    values.flags.writeable = False
    return values


@lru_cache(maxsize=64)
def _keys(layout: LogLinear) -> Int:
    if layout.reports != UPPER:
        return layout.values
    keys = layout.edges[1:].copy()
    if layout.open_ended:  # 1 ns above the edge that stands for the bin before it
        keys[-1] = layout.edges[-2] + 1
    keys.flags.writeable = False
    return keys


def parse_layout(text: str) -> Layout:
    """Return the layout that `str(layout)` wrote; ValueError if it is not one."""
    if text == NO_BINS_TEXT:
        return NO_BINS
    name, _, rest = text.partition(":")
    try:
        if name == "loglinear":
            return _log_linear(text)
        from ingest.core.edges import Edges, Exponential  # bins of other tools, which most runs do not have

        if name == "exponential":
            scale, unit, *below = rest.split(":")
            ppm, ns = below or ("0ppm", "0ns")
            sizes = (unit.removesuffix("ns"), ppm.removesuffix("ppm"), ns.removesuffix("ns"))
            return Exponential(int(scale.removeprefix("s")), *map(int, sizes))
        if name == "edges":
            bounds, top = rest.split(":")
            if top not in TOPS:
                raise ValueError
            return Edges(tuple(map(int, bounds.removeprefix("e").split(","))), top == OPEN)
        raise ValueError
    except ValueError:
        raise ValueError(f"not a bin layout: {text[:MOST_SAID]!r}") from None


def _log_linear(text: str) -> LogLinear:
    _, half, fine, unit, coarseness, reports, top, *grains = text.split(":")
    grain = int(grains[0].removesuffix("ns")) if grains else 0
    if len(grains) > 1 or top not in TOPS:
        raise ValueError
    return LogLinear(int(half), int(fine), int(unit.removesuffix("ns")), int(coarseness[1:]), reports, top == OPEN, grain)


def common_layout(layouts: Iterable[Layout]) -> Layout:
    """Return the finest layout that all of `layouts` can be moved to, whatever their order.

    One layout stays itself. Where one of them is coarser and all others nest in it, it is the answer and the merge is
    exact. Otherwise: nanosecond log-linear bins as wide as the coarsest of them, upper edges reported, ending where the
    lowest-reaching open-ended layout ends, so that a censored count stays censored; they remember the widest first bin of
    them, which bounds the error of low latencies. InputError where some have bins and some have none.
    """
    distinct = in_order(set(layouts))
    if not distinct:
        raise ValueError("no layout to merge")
    if len({layout.has_bins for layout in distinct}) > 1:
        raise InputError(UNLIKE)
    for candidate in distinct:
        others = [other for other in distinct if other != candidate]
        alike = all(_alike(other, candidate) for other in others)
        if alike and all(other.nests_in(candidate) for other in others):
            return candidate
    spreads = [layout.spread for layout in distinct]
    width, first = max(width for width, _ in spreads), max(first for _, first in spreads)
    half = max(1, 1 << (int(1 / width).bit_length() - 1)) if width <= 1 else 1
    tops = [int(layout.edges[-2]) for layout in distinct if layout.open_ended]
    # Of bins that were merged before the last begins where they would end here: merging again must not add another.
    top = min(tops) if tops else max(int(layout.edges[-2 if layout.reports == UPPER else -1]) for layout in distinct)
    wide = LogLinear(half, _bins_up_to(top, half), reports=UPPER, open_ended=bool(tops), grain_ns=first if first > 1 else 0)
    if width <= 1:
        return wide
    octaves = math.ceil(width).bit_length()  # as many as hold 1 + width, and then a power of two
    return replace(wide, coarseness=(octaves - 1).bit_length())


def in_order(layouts: Iterable[Layout]) -> list[Layout]:
    """Return layouts in an order that is always the same, by kind and then by their own."""
    return sorted(layouts, key=lambda layout: layout.rank)


def _alike(layout: Layout, other: Layout) -> bool:
    """Return whether counts of `layout` can be counts of `other` where the edges nest: no bin then reports too little.

    Log-linear bins must report the same, recorded in the same unit; of other kinds those that were merged before never are.
    """
    if isinstance(layout, LogLinear) and isinstance(other, LogLinear):
        return (layout.reports, layout.grain, layout.reports == UPPER and layout.grain_ns) == (
            other.reports,
            other.grain,
            other.reports == UPPER and other.grain_ns,
        )
    if any(own > others for own, others in zip(layout.below, other.below, strict=True)):
        return False
    return UPPER not in (layout.reports, other.reports) and other.grain <= layout.grain


def _bins_up_to(top: int, half: int) -> int:
    """Return how many bins of `half` an octave reach so far that the last bin begins at or below `top`."""
    if top < 2 * half:
        return top + 1
    octave = top.bit_length() - half.bit_length()
    return (octave + 1) * half + (top >> octave) - half + 1


NO_BINS = LogLinear(1, 1, reports=NOTHING, open_ended=False)


def fio_layout(groups: int, unit_ns: int, coarseness: int = 0) -> LogLinear:
    """Return fio's layout of `groups` x 64 bins: 29 groups of ns since 2.99, 19 groups of us before."""
    return LogLinear(half=64, fine=groups * 64, unit_ns=unit_ns, coarseness=coarseness)


@lru_cache(maxsize=256)
def hdr_layout(digits: int, unit_magnitude: int, recorded_ns: int) -> LogLinear:
    """Return HdrHistogram's layout for values recorded in units of `recorded_ns`, each bin 2^unit_magnitude of them or more.

    As many whole octaves as end below 2^63 ns: histograms of any highest trackable value (also resized ones) then share
    one layout. Error bound 1/half: 1/128 for 2 digits, 1/1024 for 3. Source: HdrHistogram's AbstractHistogram.init.
    """
    half = hdr_half(digits)
    unit_ns = recorded_ns << unit_magnitude
    octaves = ((2**63 - 1) // (2 * half * unit_ns)).bit_length() - 1
    if octaves < 0:
        raise ValueError(f"{digits} digits in units of {unit_ns} ns reach past 2^63 ns")
    return LogLinear(
        half, (octaves + 2) * half, unit_ns, reports=HIGHEST, open_ended=False, grain_ns=recorded_ns if unit_magnitude else 0
    )


def hdr_half(digits: int) -> int:
    """Return HdrHistogram's bins an octave: half of the power of two that resolves 2 * 10^digits units."""
    finest: int = 2 * 10**digits
    return 1 << ((finest - 1).bit_length() - 1)
