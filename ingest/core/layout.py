"""Bin geometry: index <-> [lower, upper) in integer nanoseconds, of every kind of layout, and the value that a bin reports.

Bin geometry: index <-> [lower, upper) in integer nanoseconds, and the value that is reported for a bin.

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
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import InputError
from ingest.core.values import Value

# What every layout of bins has in common: edges in whole ns, the value that a bin reports, and where counts go in a merge.
#
# A layout is an immutable value that can be compared and be a key. Its kinds are `layout.LogLinear` and those of `edges`.


Int = NDArray[np.int64]
Float = NDArray[np.float64]

REPORTS = MIDPOINT, HIGHEST, UPPER, NOTHING = ("midpoint", "highest", "upper", "nothing")
LAST_NS = 2**63 - 1
UNLIKE = "means without a histogram are never added to histograms: choose one kind, as in --where kind=completion"


def _kept(work: Callable[[Any], Int]) -> Callable[[Any], Int]:
    """Return numbers of a layout that are worked out once, and that nobody writes to: layouts are few and never change."""

    @lru_cache(maxsize=64)
    def numbers(layout: Layout) -> Int:
        worked_out = work(layout)
        worked_out.flags.writeable = False
        return worked_out

    return numbers


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
    def recorded_unit(self) -> int:
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
    def members(self) -> tuple[Layout, ...]:
        """Return the layouts whose bins these are: itself, of `Several` bins more."""
        return (self,)

    @property
    def timed(self) -> Layout:
        """Return the layout of the operations that did not fail: itself, of `Failing` bins all but the last."""
        return self

    @property
    def lower(self) -> Int:
        """Return the lower edge of each bin in ns."""
        return self.edges[:-1]

    @property
    def upper(self) -> Int:
        """Return the edge in ns that each bin ends below; of the open last bin a nominal one."""
        return self.edges[1:]

    @property
    def member_bins(self) -> tuple[Int, ...]:
        """Return which bins those of each member are."""
        return (np.arange(self.bins),)

    def opened(self, bins: Int) -> NDArray[np.bool_]:
        """Return which of the bins have no upper edge."""
        opened: NDArray[np.bool_] = (bins == self.bins - 1) & self.open_ended
        return opened

    def tops_of(self, bins: Int) -> Int:
        """Return the highest latency in ns that was counted in each of the bins; of the open last bin what it reports.

        A bin [a, b) of fio ends at b - 1 ns; others at the value that they report, in the unit that was recorded.
        """
        tops = self.upper[bins] - 1 if self.reports == MIDPOINT else self.values[bins]
        return np.where(self.opened(bins), self.lowest_of(bins), tops)

    @property
    def octave(self) -> int:
        """Return how many bins an octave has at most, a power of two."""
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
    @_kept
    def values(self) -> Int:
        """Return the value in ns that is reported for each bin; none is above what the open last bin reports.

        The open last bin reports the lowest latency that its samples can have: its lower edge; where unlike bins were merged,
        less, as one of these may have begun below.
        """
        values: Int = self.edges[1:] - self.recorded_unit
        if self.open_ended:
            values[-1] = self.edges[-2]
        return values

    @property
    def rising(self) -> Int:
        """Return what bins report where it has to rise from bin to bin: of mixed ones the highest latency in each."""
        return self.values

    @property
    def keys(self) -> Int:
        """Return the number that stands for each bin where a store keeps one instead of the bin: each is another, rising."""
        return self.values

    def middles_of(self, bins: Int) -> Int:
        """Return the middles of bins in ns, which means are made of; what the open last bin reports, and none above it.

        Half of a bin's width in whole recorded units above its lower edge, as HdrHistogram's medianEquivalentValue.
        """
        if self.reports == MIDPOINT or not self.has_bins:
            return self.values[bins]
        if len(bins) > self.bins:
            return _middles(self).take(bins)
        return self._middles_of(bins)

    @property
    def weights(self) -> Float:
        """Return the middles of all bins as floating-point numbers, for sums of latencies."""
        return _float_middles(self)

    def _middles_of(self, bins: Int) -> Int:
        lower = self.edges[bins]
        width = self.edges[bins + 1] - lower
        middle = lower + (width >> 1 if self.recorded_unit == 1 else width // self.recorded_unit // 2 * self.recorded_unit)
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
        high = np.maximum(self.edges[bins + 1] - self.recorded_unit, low)
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

        Of mixed bins it is the bin itself, or the one that it lies in where its layout nests in a member of them. InputError
        between bins and none.
        """
        if self.has_bins != target.has_bins:
            raise InputError(UNLIKE)
        return _moved(self, target)


@lru_cache(maxsize=8)
def _middles(layout: Layout) -> Int:
    return layout._middles_of(np.arange(layout.bins))  # noqa: SLF001  # its own, for all bins at once


@lru_cache(maxsize=8)
def _float_middles(layout: Layout) -> Float:
    return layout.middles_of(np.arange(layout.bins)).astype(np.float64)


@lru_cache(maxsize=64)
def _moved(source: Layout, target: Layout) -> Int:
    moved: Int
    if isinstance(target, Several):
        moved = np.empty(source.bins, np.int64)
        for member, own in zip(source.members, source.member_bins, strict=True):
            home = _home(member, target.members)
            moved[own] = target.member_bins[home][member.moved_to(target.members[home])]
    elif isinstance(source, Several):
        moved = np.empty(source.bins, np.int64)
        for member, own in zip(source.members, source.member_bins, strict=True):
            moved[own] = member.moved_to(target)
    else:
        highest = source.edges[1:] - 1
        if source.open_ended:
            highest = highest.copy()
            highest[-1] = source.edges[-2]
        moved = target.index(highest)
    moved.flags.writeable = False
    return moved


def _home(layout: Layout, others: Sequence[Layout]) -> int:
    """Return which of other layouts takes the counts of one: itself, else the first that it is brought to, or nests in.

    Where there is none, as in documents that bear another layout than their series says, the first takes them.
    """
    if FAILED in others:
        return int(layout is FAILED)
    for is_home in (layout.__eq__, lambda other: _contains(other, layout), layout.nests_in):
        for number, other in enumerate(others):
            if is_home(other) is True:
                return number
    return 0


PIECE = 1 << 16
NO_BINS_TEXT = "nobins"
TOPS = {"open": True, "closed": False}
MOST_SAID = 200


@dataclass(frozen=True, slots=True)
class LogLinear(Layout):
    """A log-linear layout: `half` bins an octave, `fine` bins before coarsening, values in units of `unit_ns`.

    `reports` names the value of a bin: fio's `midpoint`, HdrHistogram's `highest` equivalent value, or the `upper`
    edge where unlike layouts were merged. With `open_ended` the last bin also holds everything above its lower edge.
    `recorded_unit_ns` is the unit that was recorded in where bins are wider than that from the start (HdrHistogram's lowest
    discernible value): the highest value of a bin is one such unit below its upper edge. 0 stands for `unit_ns`. Of bins that
    report their `upper` edge, because they were merged from others, it is the widest first bin of those (0: no wider than 1 ns).
    `NO_BINS` is the layout of what was recorded without a histogram: its one bin holds the count and says nothing of latencies.
    """

    half: int
    fine: int
    unit_ns: int = 1
    coarseness: int = 0
    reports: str = MIDPOINT
    open_ended: bool = True
    recorded_unit_ns: int = 0

    def __post_init__(self) -> None:
        if self.half < 1 or self.half & (self.half - 1):
            raise ValueError(f"half must be a power of two, not {self.half}")
        if self.reports not in REPORTS:
            raise ValueError(f"reports must be one of {', '.join(REPORTS)}, not {self.reports!r}")
        if self.fine < 1 or self.unit_ns < 1 or not 0 <= self.coarseness < 32:
            raise ValueError(f"impossible layout: {self.fine} bins of {self.unit_ns} ns, coarseness {self.coarseness}")
        if self.recorded_unit_ns < 0 or (self.recorded_unit_ns >= self.unit_ns and self.reports != UPPER):
            raise ValueError(f"a recorded unit of {self.recorded_unit_ns} ns must be finer than the unit of {self.unit_ns} ns")

    def __str__(self) -> str:
        """Return the stored form, which `parse_layout` reads back."""
        if not self.has_bins:
            return NO_BINS_TEXT
        top = "open" if self.open_ended else "closed"
        recorded = f":{self.recorded_unit_ns}ns" if self.recorded_unit_ns else ""
        return f"loglinear:{self.half}:{self.fine}:{self.unit_ns}ns:c{self.coarseness}:{self.reports}:{top}{recorded}"

    @property
    def rank(self) -> tuple[int | str | tuple[int, ...], ...]:
        """Return the place of these bins among layouts: before those of other kinds."""
        return 0, self.half, self.fine, self.unit_ns, self.coarseness, self.reports, self.open_ended, self.recorded_unit_ns

    @property
    @_kept
    def edges(self) -> Int:
        """Return the `bins + 1` edges in ns; bin i is [edges[i], edges[i + 1])."""
        edges = np.empty(self.bins + 1, np.int64)
        for first in range(0, len(edges), PIECE):  # 5 digits have six million bins, 48 MB a column
            piece = edges[first : first + PIECE]
            index = np.minimum(np.arange(first, first + len(piece)) << self.coarseness, self.fine)
            octave = np.maximum(index // self.half - 1, 0)
            piece[:] = np.where(index < 2 * self.half, index, (self.half + index % self.half) << octave) * self.unit_ns
        last = max(self.fine // self.half - 1, 0)
        if ((self.fine - last * self.half) << last) * self.unit_ns > LAST_NS:  # of merged bins the last may end at 2^63
            edges[-1] = LAST_NS
        if (edges[1:] <= edges[:-1]).any():
            raise ValueError(f"{self} reaches past 2^63 ns")
        return edges

    @property
    def recorded_unit(self) -> int:
        """Return the unit in ns that values were recorded in."""
        return self.unit_ns if self.reports == UPPER else self.recorded_unit_ns or self.unit_ns

    @property
    def first_ns(self) -> int:
        """Return the width in ns of the first bin; of merged bins that of the widest first bin among them."""
        width = self.unit_ns << self.coarseness
        return max(width, self.recorded_unit_ns) if self.reports == UPPER else width

    @property
    def bins(self) -> int:
        """Return the number of bins after coarsening."""
        return -(-self.fine // (1 << self.coarseness))

    @property
    @_kept
    def values(self) -> Int:
        """Return the value in ns that is reported for each bin; none is above what the open last bin reports.

        The open last bin reports the lowest latency that its samples can have: its lower edge; where unlike bins were merged,
        less, as one of these may have begun below.
        """
        lower, upper = self.edges[:-1], self.edges[1:]
        if self.reports == MIDPOINT:
            values = lower + (upper - lower) // self.unit_ns // 2 * self.unit_ns
        elif self.reports == HIGHEST:
            values = upper - self.recorded_unit
        else:
            values = (upper if self.has_bins else lower).copy()
        return np.minimum(values, self.lowest_of(np.array([self.bins - 1])), out=values) if self.open_ended else values

    @property
    @_kept
    def keys(self) -> Int:
        """Return the number that stands for each bin where a store keeps one instead of the bin: each is another, rising."""
        if self.reports != UPPER:
            return self.values
        keys = self.edges[1:].copy()
        if self.open_ended:  # 1 ns above the edge that stands for the bin before it
            keys[-1] = self.edges[-2] + 1
        return keys

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

    def coarser(self, an_octave: int) -> LogLinear:
        """Return the layout of so many bins an octave where its edges are edges of this one, else this one."""
        unit = self.unit_ns << self.coarseness
        top = -(-int(self.edges[-1]) // unit)
        octaves = max(1, (top - 1).bit_length() - an_octave.bit_length() + 2)
        reaching = LogLinear(an_octave, an_octave * octaves, unit, open_ended=self.open_ended)
        last = int(reaching.index(self.edges[-2:-1])[0])
        coarser = replace(reaching, fine=last + 1)
        return coarser if self.nests_in(coarser) else self


def parse_layout(text: str) -> Layout:
    """Return the layout that `str(layout)` wrote; ValueError if it is not one."""
    with suppress(ValueError, KeyError):
        match text.split(":"):
            case [only] if only == NO_BINS_TEXT:
                return NO_BINS
            case ["loglinear", half, fine, unit, coarseness, reports, top, *recorded]:
                [recorded_unit] = recorded or ["0ns"]
                numbers = int(half), int(fine), int(unit.removesuffix("ns")), int(coarseness[1:])
                return LogLinear(*numbers, reports, TOPS[top], int(recorded_unit.removesuffix("ns")))
            case ["exponential", scale, unit, *below]:
                ppm, ns = below or ("0ppm", "0ns")
                sizes = (unit.removesuffix("ns"), ppm.removesuffix("ppm"), ns.removesuffix("ns"))
                return Exponential(int(scale.removeprefix("s")), *map(int, sizes))
            case ["edges", bounds, top]:
                return Edges(tuple(map(int, bounds.removeprefix("e").split(","))), TOPS[top])
            case [_, _, *_] if text.startswith(MIXED):
                return Mixed(tuple(map(parse_layout, text.removeprefix(MIXED).split(BESIDE))))
    raise ValueError(f"not a bin layout: {text[:MOST_SAID]!r}")


def common_layout(layouts: Iterable[Layout]) -> Layout:
    """Return the layout that holds the counts of all of `layouts`, whatever their order.

    One layout stays itself. Bins of one kind whose edges nest are brought to the coarser ones: fio's coarseness, HdrHistogram's
    digits, scales of exponential bins. Unlike ones stay as they are, side by side (`Mixed`): no count is moved, nothing is lost.
    InputError where some have bins and some have none.
    """
    together = set(layouts)
    if len(together) == 1:
        return together.pop()
    if any(layout.timed is not layout for layout in together):
        return Failing(common_layout(layout.timed for layout in together))
    distinct = in_order({member for layout in together for member in layout.members})
    if not distinct:
        raise ValueError("no layout to merge")
    if len({layout.has_bins for layout in distinct}) > 1:
        raise InputError(UNLIKE)
    coarsest: list[Layout] = []
    for layout in distinct:
        if not any(_contains(other, layout) for other in coarsest):
            coarsest = [*(other for other in coarsest if not _contains(layout, other)), layout]
    return coarsest[0] if len(coarsest) == 1 else Mixed(tuple(coarsest))


def in_order(layouts: Iterable[Layout]) -> list[Layout]:
    """Return layouts in an order that is always the same, by kind and then by their own."""
    return sorted(layouts, key=lambda layout: layout.rank)


@lru_cache(maxsize=256)
def _contains(coarser: Layout, finer: Layout) -> bool:
    """Return whether counts of `finer` bins are brought to `coarser` ones of their kind: edges nest, and none reports too little.

    Log-linear bins must report the same, recorded in the same unit; samples of exponential ones lie no further below.
    """
    if isinstance(finer, LogLinear) and isinstance(coarser, LogLinear):
        own, others = ((it.reports, it.recorded_unit, it.reports == UPPER and it.recorded_unit_ns) for it in (finer, coarser))
        return own == others and finer.nests_in(coarser)
    if isinstance(finer, Exponential) and isinstance(coarser, Exponential):
        return all(own <= others for own, others in zip(finer.below, coarser.below, strict=True)) and finer.nests_in(coarser)
    return False


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
    recorded = recorded_ns if unit_magnitude else 0
    return LogLinear(half, (octaves + 2) * half, unit_ns, reports=HIGHEST, open_ended=False, recorded_unit_ns=recorded)


def hdr_half(digits: int) -> int:
    """Return HdrHistogram's bins an octave: half of the power of two that resolves 2 * 10^digits units."""
    finest: int = 2 * 10**digits
    return 1 << ((finest - 1).bit_length() - 1)


# Layouts of other tools than fio and HdrHistogram: exponential bins, and bins between edges that the tool lists.
#
# Both report the highest whole ns of a bin. Most tools count values up to an edge, that edge included: `(a, b]` is
# `[floor(a) + 1, floor(b) + 1)` in whole ns, and b itself is what such a bin reports.


LEAST_SCALE, MOST_SCALE = -6, 8
MOST_EDGES = 1500  # their text fits in a keyword of Elasticsearch: 32,766 bytes
FINEST = 1024
MILLION = 1_000_000
DIGITS = 60  # of 2^(j / 2^scale): 40 behind the point of the largest edge


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exponential(Layout, Value):
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

    def lowest_of(self, bins: Int) -> Int:
        """Return the lowest latency in ns that a sample in each of the bins can have: its lower edge, or below it."""
        lower = self.edges[bins]
        if not self.below_ppm and not self.below_ns:
            return lower
        relative = np.floor(lower / (1 + self.below_ppm / MILLION) * (1 - 1e-15)).astype(np.int64)
        return np.maximum(np.minimum(relative, lower - self.below_ns), 0)

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Edges(Layout, Value):
    """Bins between the edges of a tool's own list: `bounds` in whole ns, from 0 on, rising."""

    bounds: tuple[int, ...]
    open_ended: bool = False

    def __post_init__(self) -> None:
        rising = all(low < high for low, high in zip(self.bounds, self.bounds[1:], strict=False))
        if len(self.bounds) < 2 or self.bounds[0] or not rising or self.bounds[-1] > LAST_NS:
            raise ValueError("edges begin at 0 ns and rise, at least two of them, none of 2^63 ns or more")
        if len(self.bounds) > MOST_EDGES:
            raise ValueError(f"{len(self.bounds):,} edges: more than {MOST_EDGES:,} are no layout")

    def __str__(self) -> str:
        """Return the stored form, which `parse_layout` reads back."""
        return f"edges:e{','.join(map(str, self.bounds))}:{'open' if self.open_ended else 'closed'}"

    @property
    def rank(self) -> tuple[int | str | tuple[int, ...], ...]:
        """Return the place of these bins among layouts: behind all others."""
        return 2, self.bounds, self.open_ended

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
    def even(self) -> bool:
        """Return that nothing is known of all bins together."""
        return False

    @property
    @_kept
    def edges(self) -> Int:
        """Return the edges in ns."""
        return np.array(self.bounds, np.int64)

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
        edges = self.edges[1:-1] if self.open_ended else self.edges[1:]
        return edges[:-1], edges[1:]

    @property
    def error(self) -> Fraction:
        """Return the largest share that a sample can lie below the highest value of its bin, in any but the first."""
        low, high = self._inner
        return Fraction(float(((high - 1 - low) / low).max(initial=0.0)))

    def coarser(self, an_octave: int) -> Edges:
        """Return every edge that is far enough from the one before it."""
        return _thinned(self, an_octave)


@lru_cache(maxsize=64)
def _thinned(layout: Edges, an_octave: int) -> Edges:
    bounds, least = [0], 2.0 ** (1 / an_octave) * (1 - 1e-9)
    last = layout.bounds[-2] if layout.open_ended else layout.bounds[-1]
    for bound in layout.bounds[1:]:
        if bound < last and (len(bounds) == 1 or bound >= bounds[-1] * least):
            bounds.append(bound)
    bounds.extend(layout.bounds[-2:] if layout.open_ended and last > 0 else layout.bounds[-1:])
    return Edges(tuple(bounds), layout.open_ended)


# Unlike bins side by side: those of fio beside those of OpenTelemetry have the edge 0 alone in common.


MIXED = "mixed:"
BESIDE = "+"
NO_EDGES = "of unlike bins there are no common edges: choose what has one sort of bins with --where or --run"
LARGEST_KEY = float(LAST_NS - 1023)  # the largest double below 2^63


class Several(Layout, Value):
    """The bins of several layouts, its `members`: each reports, holds and is off by what it does in its own layout."""

    __slots__ = ()

    def _located(self, bins: Int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return of which member each of the bins is, and which of its bins."""
        raise NotImplementedError

    @property
    def open_ended(self) -> bool:
        """Return whether any member has an open bin."""
        return any(member.open_ended for member in self.members)

    @property
    def even(self) -> bool:
        """Return whether the bins of all members are even."""
        return all(member.even for member in self.members)

    @property
    def bins(self) -> int:
        """Return the number of bins of all members."""
        return sum(member.bins for member in self.members)

    @property
    def edges(self) -> Int:
        """Raise InputError: overlapping bins have no edges in common."""
        raise InputError(NO_EDGES)

    @property
    def lower(self) -> Int:
        """Return the lower edge of each bin in ns."""
        return _in_order(self, "lower")

    @property
    def upper(self) -> Int:
        """Return the edge in ns that each bin ends below; of open bins a nominal one."""
        return _in_order(self, "upper")

    @property
    def values(self) -> Int:
        """Return what each bin reports in its own layout."""
        return _in_order(self, "values")

    @property
    def octave(self) -> int:
        """Return how many bins an octave the finest member has."""
        return max(member.octave for member in self.members)

    @property
    def error(self) -> Fraction:
        """Return the largest nominal error of the members."""
        return max(member.error for member in self.members)

    def opened(self, bins: Int) -> NDArray[np.bool_]:
        """Return which of the bins have no upper edge."""
        return self._of_each(bins, lambda member, own: member.opened(own)).astype(np.bool_)

    def lowest_of(self, bins: Int) -> Int:
        """Return the lowest latency in ns that a sample in each of the bins can have."""
        return self._of_each(bins, lambda member, own: member.lowest_of(own))

    def highest_of(self, bins: Int) -> Int:
        """Return the maximum in ns that is reported for samples in each of the bins."""
        return self._of_each(bins, lambda member, own: member.highest_of(own))

    def tops_of(self, bins: Int) -> Int:
        """Return the highest latency in ns that was counted in each of the bins; of open ones their lower edge."""
        return self._of_each(bins, lambda member, own: member.tops_of(own))

    def errors_of(self, bins: Int) -> tuple[Int, Float]:
        """Return what each bin is off by in its own layout."""
        distances = self._of_each(bins, lambda member, own: member.errors_of(own)[0])
        return distances, self._of_each(bins, lambda member, own: member.errors_of(own)[1], np.float64)

    def middles_of(self, bins: Int) -> Int:
        """Return the middles of bins in ns, as each member says them."""
        return self._of_each(bins, lambda member, own: member.middles_of(own))

    def _of_each(self, bins: Int, of: Callable[[Layout, Int], NDArray[Any]], dtype: type = np.int64) -> NDArray[Any]:
        """Return what each member says of its own among the bins."""
        found: NDArray[Any] = np.empty(len(bins), dtype)
        number, own = self._located(bins)
        for at, member in enumerate(self.members):
            mine = np.flatnonzero(number == at)
            found[mine] = of(member, own[mine])
        return found

    def index(self, values_ns: Int) -> Int:
        """Raise InputError: a value lies in a bin of each member."""
        raise InputError(NO_EDGES)


class Mixed(Several):
    """The bins of several layouts, none of which is brought to another: they overlap, and each count stays exact.

    `parts` are the layouts, two or more in order, all with bins. Bins are numbered by the value that they stand for (the highest
    latency in them, of an open one its lower edge), then by their lower edge and layout. A bin alone reports what it does in its
    own layout. What a row of several layouts says is found by ranks (see `quantiles.Ranked`).
    """

    __slots__ = __match_args__ = ("parts",)  # no dataclass: most starts make none

    def __init__(self, parts: tuple[Layout, ...]) -> None:
        if len(parts) < 2 or any(isinstance(part, Mixed) or not part.has_bins for part in parts):
            raise ValueError("mixed bins are those of two layouts or more")
        self.parts = parts

    def __str__(self) -> str:
        """Return the stored form, which `parse_layout` reads back."""
        return MIXED + BESIDE.join(map(str, self.parts))

    @property
    def rank(self) -> tuple[int | str | tuple[int, ...], ...]:
        """Return the place of these bins among layouts: behind all others."""
        return 3, str(self)

    @property
    def members(self) -> tuple[Layout, ...]:
        """Return the layouts whose bins these are."""
        return self.parts

    @property
    def member_bins(self) -> tuple[Int, ...]:
        """Return which bins those of each member are."""
        return _ordered(self).member_bins

    @property
    def member(self) -> Int:
        """Return of which member each bin is."""
        return _ordered(self).member

    def _located(self, bins: Int) -> tuple[NDArray[Any], NDArray[Any]]:
        order = _ordered(self)
        return order.member[bins], order.own[bins]

    @property
    def rising(self) -> Int:
        """Return the highest latency in each bin, of open ones the lower edge."""
        return _ordered(self).tops

    @property
    def keys(self) -> Int:
        """Return the number that stands for each bin in a store: its highest latency, moved up where another has that number.

        All differ as floating-point numbers, too.
        """
        return _mixed_keys(self)

    def nests_in(self, coarser: Layout) -> bool:
        """Return whether each member nests."""
        return all(part.nests_in(coarser) for part in self.parts)

    def coarser(self, an_octave: int) -> Layout:  # type: ignore[override]  # of one layout it may be all that is left
        """Return the bins of coarser members."""
        return common_layout(part.coarser(an_octave) for part in self.parts)


class Failing(Several):
    """The bins of a layout, `timed`, and above all of them one for operations that failed: these are slower than any.

    Answers alone are in it, never documents. Its last bin has no edges and no middle: it reports LAST_NS, which stands for no
    latency, and adds nothing to a sum of latencies.
    """

    __slots__ = __match_args__ = ("of",)  # no dataclass: most starts make none

    def __init__(self, of: Layout) -> None:
        self.of = of

    def __str__(self) -> str:
        """Return its name: that of the bins below, after a word."""
        return f"failing:{self.of}"

    @property
    def rank(self) -> tuple[int | str | tuple[int, ...], ...]:
        """Return the place of these bins among layouts: behind all others."""
        return 4, str(self)

    @property
    def timed(self) -> Layout:
        """Return the layout of the operations that did not fail."""
        return self.of

    @property
    def members(self) -> tuple[Layout, ...]:
        """Return the layout of the operations that did not fail, and the bin of those that did."""
        return self.of, FAILED

    @property
    def member_bins(self) -> tuple[Int, ...]:
        """Return which bins those of each member are."""
        return np.arange(self.of.bins), np.array([self.of.bins])

    def _located(self, bins: Int) -> tuple[NDArray[Any], NDArray[Any]]:
        failed = bins >= self.of.bins
        return failed, np.where(failed, 0, bins)

    @property
    def reports(self) -> str:
        """Return which value stands for a bin below the last."""
        return self.of.reports

    @property
    def recorded_unit(self) -> int:
        """Return the unit in ns that latencies were recorded in."""
        return self.of.recorded_unit

    def coarser(self, an_octave: int) -> Failing:
        """Return coarser bins, with that of failed operations as it is."""
        return Failing(self.of.coarser(an_octave))


class _Failed(Layout):
    """The one bin of operations that failed, above all latencies: it has no width."""

    edges = np.array([LAST_NS, LAST_NS])
    recorded_unit = octave = 0
    error = Fraction(0)

    def middles_of(self, bins: Int) -> Int:
        return np.zeros(len(bins), np.int64)


FAILED = _Failed()


def shared_edges(layout: Mixed, used: Int) -> Edges:
    """Return the bins between edges that none of the used bins goes across: moved to these, every count is exact.

    Of more than MOST_EDGES of them some are left out: bins are then wider, and as exact.
    """
    used = used[np.argsort(layout.lower[used], kind="stable")]
    opened = layout.opened(used)
    reach = np.maximum.accumulate(np.where(opened, LAST_NS, layout.upper[used]))
    free = layout.lower[used[1:]][layout.lower[used[1:]] >= reach[:-1]]
    edges = np.unique(np.concatenate([[0], layout.lower[used[:1]], free, layout.upper[used].max(initial=1, keepdims=True)]))
    if len(edges) > MOST_EDGES:
        edges = edges[np.linspace(0, len(edges) - 1, MOST_EDGES).astype(np.int64)]
    return Edges(tuple(edges.tolist()), bool(opened.any()))


def outlined(layout: Layout, used: Int) -> Edges:
    """Return bins that end where used bins end, for what counts bins one after another: a count moved here lies at its highest.

    So a percentile by these bins is the upper end of what it can be. From the lowest edge of a used open bin on there is one bin,
    also open. Of more than MOST_EDGES some are left out: counts then lie higher.
    """
    opened = layout.opened(used)
    ends = np.unique(layout.tops_of(used[~opened])) + 1
    if opened.any():
        least = int(layout.lower[used[opened]].min())
        across = used[layout.tops_of(used) >= least]
        least = min(least, int(layout.lower[across].min()))  # nothing in the open bin lies below it
        ends = np.append(ends[ends <= least], least)
    ends = np.unique(ends[ends > 0])
    if len(ends) > MOST_EDGES - 2:
        ends = ends[np.linspace(0, len(ends) - 1, MOST_EDGES - 2).astype(np.int64)]
    last = int(ends[-1]) if len(ends) else 1
    bounds = [0, *ends.tolist(), *([min(2 * last, LAST_NS)] if opened.any() and last > 0 else [])]
    return Edges(tuple(bounds) if len(bounds) > 1 else (0, 1), bool(opened.any()))


class _Order(NamedTuple):
    """Which bin of which member each of the mixed bins is, the highest latencies in them, and the places of each member's."""

    member: NDArray[Any]
    own: NDArray[Any]
    tops: Int
    member_bins: tuple[Int, ...]


@lru_cache(maxsize=8)
def _ordered(layout: Mixed) -> _Order:
    # As narrow as may be: the bins of 5 digits are six million.
    own = np.concatenate([np.arange(part.bins, dtype=np.int32) for part in layout.parts])
    member = np.repeat(np.arange(len(layout.parts), dtype=np.int16), [part.bins for part in layout.parts])
    tops = np.concatenate([part.tops_of(np.arange(part.bins)) for part in layout.parts])
    order = np.lexsort((member, np.concatenate([part.lower for part in layout.parts]), tops))
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    cuts = np.cumsum([part.bins for part in layout.parts])[:-1]
    return _Order(member[order], own[order], tops[order], tuple(np.split(place, cuts)))


@lru_cache(maxsize=32)
def _in_order(layout: Several, name: str) -> NDArray[Any]:
    """Return what a column of each member says of the bins, in their order."""
    placed = np.empty(layout.bins, np.int64)
    for member, places in zip(layout.members, layout.member_bins, strict=True):
        placed[places] = getattr(member, name)
    placed.flags.writeable = False
    return placed


@lru_cache(maxsize=8)
def _mixed_keys(layout: Mixed) -> Int:
    tops = _ordered(layout).tops
    whole = int(np.searchsorted(tops, 1 << 52))
    places = np.arange(whole)
    keys = np.empty(len(tops), np.int64)
    keys[:whole] = np.maximum.accumulate(tops[:whole] - places) + places
    last = float(keys[whole - 1]) if whole else -1.0
    far = np.minimum(tops[whole:].astype(np.float64), LARGEST_KEY).tolist()  # where doubles are more than 1 apart
    for place, key in enumerate(far):
        last = far[place] = key if key > last else math.nextafter(last, math.inf)
    ceiling = math.nextafter(LARGEST_KEY, math.inf)
    for place in range(len(far) - 1, -1, -1):  # what came to lie above all that int64 holds goes down again
        if far[place] < ceiling:
            break
        ceiling = far[place] = math.nextafter(ceiling, 0)
    keys[whole:] = far
    keys.flags.writeable = False
    return keys
