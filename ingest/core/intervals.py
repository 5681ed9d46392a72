"""The waist: `Intervals`, many latency histograms side by side in NumPy arrays, and the exact sums of their sparse rows.

One layout a series: what a source holds in further layouts under the same labels is in further segments.

    labels a, 3 digits      segment 0
    labels a, 2 digits      segment 1: the first of these labels that nothing else has
    labels a, 3 digits      segment 0 again

The identity of documents then shows that they hold bins of one layout, and they are never moved to another one.
Numbers follow the order in which a source brings its layouts, so that every reading of it gives the same. From when to when
a series reaches is said of all its segments.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ingest.core import kernel
from ingest.core.errors import CapacityError
from ingest.core.labels import LABELS, Group, Series
from ingest.core.layout import Failing, Layout, Mixed, common_layout, parse_layout
from ingest.core.pool import give_back_freed_memory
from ingest.core.values import Value

if TYPE_CHECKING:
    from typing_extensions import TypeVar as WithDefault


# Sparse rows in CSR form: exact sums of them that cannot wrap.
#
# Row i has `bins[indptr[i]:indptr[i + 1]]` and as many counts. All sums are int64; what would pass 2^62 is an error or not
# known.


Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

DENSE_CELLS = 1 << 18
LARGE_CELLS, CELLS_AN_ENTRY = 1 << 21, 4  # of rows in any order: 16 MB, and not mostly empty
PIECE = 1 << 18  # entries that are laid out at once
LARGE = 1 << 22  # entries, of which all take so much memory that what they were made of is given back before more is done
WIDE = 2_000_000  # entries of a sum at full width: 32 MB, and several times that while it is made
IN_CACHE = 1 << 16  # entries of rows that are looked at together: what is made of them stays in a cache ...
IN_MEMORY = 1 << 20  # ... or takes little memory, where each piece costs more than its entries
WORTH_A_BLOCK = 1000  # entries: adding up fewer of a part at once costs more than laying them after others
MOST_SAMPLES = 1 << 62  # of a row, and of what is added up to one: sums and ranks are int64
TOO_MANY = "more than 2^62 samples (in flight: 2^46) cannot be added up: choose fewer with --where, --by, --from or --to"


def surely_addable(counts: Iterable[Int]) -> bool:
    """Return whether all counts together are surely at most MOST_SAMPLES; a quick look, that looks closer where it must."""
    filled = [each for each in counts if len(each)]
    if sum(len(each) * int(each.max()) for each in filled) <= MOST_SAMPLES:
        return True
    return sum(float(each.sum(dtype=np.float64)) for each in filled) < 0.999 * MOST_SAMPLES


def total(counts: Int) -> int:
    """Return the sum of counts, exact however large it is."""
    if surely_addable([counts]):
        return int(counts.sum())
    return (int((counts >> 31).sum()) << 31) + int((counts & (1 << 31) - 1).sum())


def check_addable(parts: Sequence[tuple[Int, Int, Int]], groups: int) -> None:
    """Raise CapacityError where a row of CSR parts (result row of each row, row pointers, counts) would pass MOST_SAMPLES."""
    if surely_addable(counts for _, _, counts in parts):
        return
    high, low = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    for group, indptr, counts in parts:
        np.add.at(high, group, row_sums(indptr, counts >> 31))
        np.add.at(low, group, row_sums(indptr, counts & (1 << 31) - 1))
    if (_joined_limbs(high, low)[1]).any():
        raise CapacityError(TOO_MANY)


def _joined_limbs(high: Int, low: Int) -> tuple[Int, Bool]:
    """Return sums of numbers that were cut at bit 31, and where they pass MOST_SAMPLES (the sum is then 0)."""
    high = high + (low >> 31)
    low = low & (1 << 31) - 1
    past = (high > 1 << 31) | ((high == 1 << 31) & (low > 0))
    return np.where(past, 0, (np.where(past, 0, high) << 31) + low), past


def row_sums(indptr: Int, counts: Int) -> Int:
    """Return the sum of `counts` of each CSR row, exact in int64: no row holds more than MOST_SAMPLES."""
    filled = np.flatnonzero(indptr[1:] > indptr[:-1])
    sums = np.zeros(len(indptr) - 1, np.int64)
    if len(filled):
        sums[filled] = np.add.reduceat(counts, indptr[filled], dtype=np.int64)
    return sums


def gather(indptr: Int, rows: Int) -> tuple[Int, Int]:
    """Return the row pointers of the chosen CSR rows, and for each of their entries its place in the old arrays."""
    width = indptr[rows + 1] - indptr[rows]
    out = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(width, out=out[1:])
    return out, np.arange(out[-1]) + np.repeat(indptr[rows] - out[:-1], width)


def sum_rows(indptr: Int, bins: Int, counts: Int, group: Int, groups: int) -> tuple[Int, Int, Int]:
    """Return CSR arrays of `groups` rows: the rows of equal `group` added up, bins in increasing order.

    Sums are exact in int64 and zero sums are left out; CapacityError where one would pass MOST_SAMPLES. Works in dense blocks of
    2 MB, which fit a processor's cache.
    """
    if not len(bins):
        return np.zeros(groups + 1, np.int64), bins, counts
    check_addable([(group, indptr, counts)], groups)
    span = span_of([(group, indptr, bins, counts)])
    if kernel.sum_rows is not None and span[1] <= DENSE_CELLS:
        return _sum_compiled(kernel.sum_rows, indptr, bins, counts, group, groups, span)
    if groups * span[1] <= DENSE_CELLS:
        return sum_dense([(group, indptr, bins, counts)], groups, span)
    if (group[1:] < group[:-1]).any():
        order = np.argsort(group, kind="stable")
        group = group[order]
        indptr, flat = gather(indptr, order)
        bins, counts = bins[flat], counts[flat]
    return sum_ordered([(group, indptr, bins, counts)], groups, span)


def _sum_compiled(
    loop: kernel.Loop, indptr: Int, bins: Int, counts: Int, group: Int, groups: int, span: tuple[int, int]
) -> tuple[Int, Int, Int]:
    """Return what `sum_dense` does, one row after the other: whatever their order, nothing is moved."""
    order = np.argsort(group, kind="stable") if (group[1:] < group[:-1]).any() else np.arange(len(group))
    pointers, cells = np.empty(groups + 1, np.int64), np.zeros(span[1], np.int64)
    summed, sums = np.empty((2, min(len(bins), groups * span[1]) + 1), np.int64)
    found = loop(*kernel.words(order, group, indptr, bins, counts), span[0], cells, pointers, summed, sums)
    if 2 * found > len(sums):
        return pointers, summed[:found], sums[:found]
    return pointers, summed[:found].copy(), sums[:found].copy()  # so that no more is held than is there


def sum_parts(parts: Sequence[tuple[Int, Int, Int]], group: Int, groups: int) -> tuple[Int, Int, Int]:
    """Return what `sum_rows` does of the rows of all parts (row pointers, bins, counts), laid after one another only if need be.

    Bins rise within each row.
    """
    if len(parts) == 1 and kernel.sum_rows is not None:
        return sum_rows(*parts[0], group, groups)
    ends = np.cumsum([len(indptr) - 1 for indptr, _, _ in parts]).tolist()
    filled = [(group[end + 1 - len(part[0]) : end], *part) for end, part in zip(ends, parts, strict=True) if len(part[1])]
    if (sums := sum_apart(filled, groups)) is not None:
        return sums
    pointers, bins, counts = zip(*parts, strict=True)
    return sum_rows(joined_rows(pointers), np.concatenate(bins), np.concatenate(counts), group, groups)


def sum_apart(parts: Sequence[tuple[Int, Int, Int, Int]], groups: int) -> tuple[Int, Int, Int] | None:
    """Return the sums of CSR parts (result row of each row, row pointers, bins, counts), added up where they lie.

    Bins rise within each row. None where that would take longer than laying them after one another; CapacityError as `sum_rows`.
    """
    span = _span_of_rising(parts)
    blocks = groups * span[1] // DENSE_CELLS
    if blocks and not (
        (blocks * len(parts) * WORTH_A_BLOCK <= sum(len(bins) for _, _, bins, _ in parts))
        and all((rows[1:] >= rows[:-1]).all() for rows, *_ in parts)
    ):
        if groups * span[1] > min(LARGE_CELLS, CELLS_AN_ENTRY * sum(len(bins) for _, _, bins, _ in parts)):
            return None
        blocks = 0  # a larger block takes less time than rows that are brought into another order
    check_addable([(rows, indptr, counts) for rows, indptr, _, counts in parts], groups)
    return sum_ordered(parts, groups, span) if blocks else sum_dense(parts, groups, span)


def sum_ordered(parts: Sequence[tuple[Int, Int, Int, Int]], groups: int, span: tuple[int, int]) -> tuple[Int, Int, Int]:
    """Return what `sum_dense` does of CSR parts whose rows are in the order of their result rows, in blocks of 2 MB."""
    step = max(1, DENSE_CELLS // max(span[1], 1))
    edges = np.append(np.arange(0, groups, step), groups)
    cuts = [np.searchsorted(part[0], edges).tolist() for part in parts]
    sums: list[tuple[Int, Int, Int]] = []
    for block, first in enumerate(edges[:-1].tolist()):
        rows = []
        for (group, indptr, bins, counts), cut in zip(parts, cuts, strict=True):
            begin, end = cut[block : block + 2]
            entries = slice(indptr[begin], indptr[end])
            rows.append((group[begin:end] - first, indptr[begin : end + 1], bins[entries], counts[entries]))
        sums.append(sum_dense(rows, min(step, groups - first), span))
    pointers, all_bins, all_counts = zip(*sums, strict=True)
    return joined_rows(pointers), np.concatenate(all_bins), np.concatenate(all_counts)


def span_of(parts: Sequence[tuple[Int, Int, Int, Int]]) -> tuple[int, int]:
    """Return the lowest bin of CSR parts and how many there are up to the highest."""
    low = min((int(bins.min()) for _, _, bins, _ in parts), default=0)
    return low, max((int(bins.max()) for _, _, bins, _ in parts), default=low - 1) + 1 - low


def _span_of_rising(parts: Sequence[tuple[Int, Int, Int, Int]]) -> tuple[int, int]:
    """Return what `span_of` does of parts whose bins rise within each row: from the ends of rows, which are far fewer."""
    ends = [np.flatnonzero(indptr[1:] > indptr[:-1]) for _, indptr, _, _ in parts]
    low = min((int(part[2][part[1][rows]].min()) for part, rows in zip(parts, ends, strict=True) if len(rows)), default=0)
    high = max(
        (int(part[2][part[1][rows + 1] - 1].max()) for part, rows in zip(parts, ends, strict=True) if len(rows)), default=-1
    )
    return low, high + 1 - low


def sum_dense(parts: Sequence[tuple[Int, Int, Int, Int]], rows: int, span: tuple[int, int]) -> tuple[Int, Int, Int]:
    """Return the sums of CSR parts (result row of each row, row pointers, bins, counts); `span` is theirs (`span_of`)."""
    parts = [part for part in parts if len(part[2])]
    low, width = span
    if rows == 1 and low + width <= DENSE_CELLS:  # without moving all bins first
        low, width = 0, low + width
    dense = np.zeros(rows * width, np.int64)
    for group, indptr, bins, counts in parts:  # viewed: `add.at` takes 30 times as long with the type of an array from a pickle
        if kernel.add_rows is not None:
            kernel.add_rows(*kernel.words(group, indptr, bins, counts), low, width, dense)
            continue
        if rows == 1:
            np.add.at(dense, bins - low if low else bins, counts.view(np.int64))
            continue
        cell = np.repeat(group * width - low, np.diff(indptr))
        cell += bins
        np.add.at(dense, cell, counts.view(np.int64))
    filled = np.flatnonzero(dense != 0)
    sums = dense.take(filled)
    edges = np.arange(rows + 1) * width
    indptr = np.searchsorted(filled, edges)
    filled -= np.repeat(edges[:-1] - low, np.diff(indptr))
    return indptr, filled, sums


def add_counts(sums: NDArray[np.int64] | NDArray[np.uint64], bins: Int, counts: NDArray[np.int64] | NDArray[np.uint64]) -> None:
    """Add counts to the sums of their bins."""
    if kernel.add_rows is None:
        np.add.at(sums, bins, counts)
    else:
        one_row = np.zeros(1, np.int64), np.array([0, len(bins)])
        kernel.add_rows(*one_row, *kernel.words(bins, counts.view(np.int64)), 0, len(sums), sums)


def joined_rows(pointers: Sequence[Int]) -> Int:
    """Return the row pointers of CSR parts laid after one another."""
    offsets = np.cumsum([0] + [part[-1] for part in pointers])
    return np.concatenate([[0], *(part[1:] + at for part, at in zip(pointers, offsets, strict=False))])


def laid_out(pointers: Sequence[Int], bins: list[Int], counts: list[Int], order: Int) -> tuple[Int, Int, Int]:
    """Return CSR arrays of the rows of CSR parts in an order, numbered as they come in the parts.

    The lists are emptied one after the other, part by part: parts and result are never there as a whole together.
    """
    width = np.concatenate([np.diff(indptr) for indptr in pointers])
    out = np.zeros(len(order) + 1, np.int64)
    np.cumsum(width[order], out=out[1:])
    begin = np.empty(len(width), np.int64)
    begin[order] = out[:-1]
    size = int(out[-1])
    placed = _placed(pointers, bins, begin, size)
    if size >= LARGE:
        give_back_freed_memory()  # of the bins, before that of the counts is needed
    return out, placed, _placed(pointers, counts, begin, size)


def _placed(pointers: Sequence[Int], columns: list[Int], begin: Int, size: int) -> Int:
    """Return a column of entries whose rows begin at the places given; `columns` is emptied."""
    placed, row = np.empty(size, np.result_type(*columns)), 0
    for indptr in pointers:
        column, own = columns.pop(0), begin[row : row + len(indptr) - 1]
        row += len(own)
        if kernel.lay_rows is not None:
            kernel.lay_rows(*kernel.words(indptr, own), np.ascontiguousarray(column, placed.dtype), placed)
            continue
        cuts = distinct(np.append(np.searchsorted(indptr, np.arange(0, indptr[-1], PIECE)), len(own)))
        for first, last in pairwise(np.append(0, cuts).tolist()):
            entries = np.arange(indptr[first], indptr[last])
            entries += np.repeat(own[first:last] - indptr[first:last], np.diff(indptr[first : last + 1]))
            placed[entries] = column[indptr[first] : indptr[last]]
    return placed


def distinct(values: Int) -> Int:
    """Return what `np.unique` does of numbers, which takes 8 ms to import masked arrays when it is called first."""
    ordered = np.sort(values)
    new = np.ones(len(ordered), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


def median(values: NDArray[Any] | Sequence[float], axis: int = -1, *, keepdims: bool = False) -> Any:
    """Return what `np.median` does of numbers along an axis, which imports masked arrays, too, and takes long of few."""
    numbers = np.asarray(values)
    count = numbers.shape[axis]
    if not count:
        return np.full(numbers.sum(axis=axis, keepdims=keepdims).shape, np.nan)[()]
    places = [(count - 1) // 2, count // 2, *([count - 1] if numbers.dtype.kind == "f" else ())]
    low, high, *last = np.moveaxis(np.partition(numbers, places, axis=axis).take(places, axis=axis), axis, 0)
    middle = (low + high) / 2
    if last:
        middle = np.where(np.isnan(last[0]), np.nan, middle)[()]
    return np.expand_dims(middle, axis) if keepdims else middle


def distinct_rows(*columns: Int) -> tuple[list[Int], Int]:
    """Return the distinct rows of columns, in order and by column, and which of them each row is.

    `np.unique` of rows says the same, and compares them as bytes: 4 million took 30 s instead of 2.
    """
    order = np.lexsort(columns[::-1])
    ordered = [column[order] for column in columns]
    new = np.ones(len(order), np.bool_)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in ordered])
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(new) - 1
    return [column[new] for column in ordered], place


def summed(values: Int, group: Int, groups: int) -> Int:
    """Return the sum of the values of each group, in int64."""
    total = np.zeros(groups, np.int64)
    np.add.at(total, group, values)
    return total


def summed_ns(values: Int, group: Int, groups: int) -> tuple[Int, Bool]:
    """Return sums of latencies in ns, and where they pass 2^62 (146 years): they are then not known."""
    if surely_addable([values]):
        return summed(values, group, groups), np.zeros(groups, np.bool_)
    return _joined_limbs(summed(values >> 31, group, groups), summed(values & (1 << 31) - 1, group, groups))


def summed_known(values: Int, group: Int, groups: int, none: int) -> tuple[Int, Bool]:
    """Return what `summed_ns` does, but `none` of groups of which a value is `none`."""
    lacks = values == none
    if not lacks.any():
        return summed_ns(values, group, groups)
    total, past = summed_ns(np.where(lacks, 0, values), group, groups)
    total[group[lacks]] = none
    past[group[lacks]] = False
    return total, past


# The waist: `Intervals`, many latency histograms side by side in NumPy arrays.
#
# Readers yield bounded chunks of them; grid, percentiles, documents, stores and views take them. Bins are kept sparse in
# CSR form: row i has `bins[indptr[i]:indptr[i + 1]]`, strictly increasing, with `counts` above zero.


Key = TypeVar("Key", bound=Series | Group)
Other = TypeVar("Other", bound=Series | Group)
Chosen = TypeVar("Chosen", bound=Hashable)
if TYPE_CHECKING:  # the default is for checkers alone: Python knows it from 3.13 on, and typing_extensions is no dependency
    Key_co = WithDefault("Key_co", bound=Series | Group, covariant=True, default=Series | Group)
else:
    Key_co = TypeVar("Key_co", bound=Series | Group, covariant=True)

# In place of unknown values of a row without bins; a merge keeps them.
NO_MIN, NO_MAX, NO_SUM, NO_BYTES = -1, 2**63 - 1, -1, -1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Histogram(Value):
    """One histogram, sparse: `counts[i]` samples in bin `bins[i]`, bins increasing."""

    layout: Layout
    bins: Int
    counts: Int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exact(Value):
    """Exact `min_ns`, `max_ns`, `sum_ns` of each row, valid where `known`: never where the sum would pass 2^62 ns.

    Of rows without bins (layout `NO_BINS`) sums are as good as the means that they come from. NO_MIN, NO_MAX and NO_SUM stand for
    an unknown minimum, maximum and sum; a merge of rows with one of these has it, too. These rows alone have `bytes`: what their
    I/Os moved, NO_BYTES where that is unknown, and None where it is unknown of all rows.
    """

    min_ns: Int
    max_ns: Int
    sum_ns: Int
    known: Bool
    bytes: Int | None = None

    @property
    def known_min(self) -> Bool:
        """Return where the minimum is known."""
        bounded: Bool = self.known & (self.min_ns != NO_MIN)
        return bounded

    @property
    def known_max(self) -> Bool:
        """Return where the maximum is known."""
        bounded: Bool = self.known & (self.max_ns != NO_MAX)
        return bounded

    @property
    def known_sum(self) -> Bool:
        """Return where the sum is known."""
        with_sum: Bool = self.known & (self.sum_ns != NO_SUM)
        return with_sum

    @property
    def told(self) -> tuple[tuple[Int, Bool], ...]:
        """Return sum, minimum and maximum, each with where it is known, as stores keep them."""
        return (self.sum_ns, self.known_sum), (self.min_ns, self.known_min), (self.max_ns, self.known_max)

    @property
    def moved(self) -> Int:
        """Return the bytes of each row, NO_BYTES where they are unknown."""
        return np.full(len(self.known), NO_BYTES) if self.bytes is None else self.bytes

    @property
    def says_nothing(self) -> bool:
        """Return whether nothing is known of any row."""
        return not self.known.any() and (self.bytes is None or bool((self.bytes == NO_BYTES).all()))

    def take(self, rows: Int) -> Exact:
        """Return the values of `rows`."""
        moved = None if self.bytes is None else self.bytes[rows]
        return Exact(self.min_ns[rows], self.max_ns[rows], self.sum_ns[rows], self.known[rows], moved)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Intervals(Value, Generic[Key_co]):
    """Histograms of `series[i]` over (`start_ns[i]`, `end_ns[i]`], all in one `layout`.

    `table` holds what the codes in `series` stand for: `Intervals[Series]` comes from readers and documents, `Intervals[Group]`
    is (part of) a result. `exact` is None where no row has exact values. `completions` is set for in-flight attribution
    alone: then `counts` are weights in units of 2^-16.
    """

    layout: Layout
    table: Sequence[Key_co]
    series: Int
    start_ns: Int
    end_ns: Int
    indptr: Int
    bins: Int
    counts: Int
    exact: Exact | None = None
    completions: Int | None = None

    def __len__(self) -> int:
        return len(self.series)

    @property
    def held(self) -> list[Int]:
        """Return bins and counts as they are held: those of `Narrow` rows in fewer bytes."""
        return [vars(Intervals)[name].__get__(self) for name in ("bins", "counts")]

    @property
    def all_filled(self) -> bool:
        """Return whether all counts are above zero."""
        return bool((self.held[1] > 0).all())

    @property
    def row(self) -> Int:
        """Return the row number of each bin entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    @property
    def samples(self) -> Int:
        """Return the sum of counts of each row."""
        return row_sums(self.indptr, self.held[1])

    @property
    def mixed(self) -> Bool:
        """Return which rows hold bins of several layouts (see `layout.Mixed`)."""
        found, layout = np.zeros(len(self), np.bool_), self.layout.timed
        if isinstance(layout, Mixed):
            filled = np.flatnonzero(self.indptr[1:] > self.indptr[:-1])
            if len(filled):
                ends = (np.append(layout.member, none)[self.bins] for none in (len(layout.parts), -1))  # none: failed operations
                first, last = (
                    of.reduceat(member, self.indptr[filled]) for of, member in zip((np.minimum, np.maximum), ends, strict=True)
                )
                found[filled] = first < last
        return found

    @property
    def failures(self) -> Int:
        """Return how many samples of each row are operations that failed, where these are ranked above all (see `Failing`)."""
        if self.layout.timed is self.layout:
            return np.zeros(len(self), np.int64)
        return row_sums(self.indptr, np.where(self.bins == self.layout.bins - 1, self.counts, 0))

    def failing(self, timed: Layout) -> Intervals[Key_co]:
        """Return the rows as operations that failed, slower than any in the bins `timed`: how long they took is left out.

        Rows that they are added to keep their exact minimum and sum, which are then of what did not fail.
        """
        layout, rows = Failing(timed), len(self)
        zero = np.zeros(rows, np.int64)
        exact = Exact(np.full(rows, NO_MAX), np.full(rows, NO_MAX), zero, np.ones(rows, np.bool_))
        return replace(
            self, layout=layout, indptr=np.arange(rows + 1), bins=zero + layout.bins - 1, counts=self.samples, exact=exact
        )

    def succeeded(self) -> Intervals[Key_co]:
        """Return the rows without the operations that failed, in the bins of the others; rows of nothing else are left out."""
        timed = self.layout.timed
        if timed is self.layout:
            return self
        bins, counts = self.held
        kept = bins < timed.bins
        indptr = np.append(0, np.cumsum(kept))[self.indptr]
        exact = self.exact and replace(self.exact, known=self.exact.known & self.exact.known_max)
        columns = self.series, self.start_ns, self.end_ns, indptr, bins[kept], counts[kept], exact, self.completions
        rows: Intervals[Key_co] = type(self)(timed, self.table, *columns)
        filled = np.flatnonzero(np.diff(indptr) > 0)
        return rows if len(filled) == len(rows) else rows.chosen(filled)

    @property
    def each_once(self) -> bool:
        """Return whether all rows are of one key, each begins after the one before it, and none is empty."""
        return len(self.table) == 1 and all(bool((each[1:] > each[:-1]).all()) for each in (self.start_ns, self.indptr))

    def reach(self: Intervals[Series]) -> Iterator[tuple[Series, int, int]]:
        """Yield each series with the start of its first and the end of its last row."""
        order = np.argsort(self.series, kind="stable")
        codes, first = np.unique(self.series[order], return_index=True)
        if len(codes):
            starts, ends = np.minimum.reduceat(self.start_ns[order], first), np.maximum.reduceat(self.end_ns[order], first)
            for code, start, end in zip(codes.tolist(), starts.tolist(), ends.tolist(), strict=True):
                yield self.table[code], start, end

    def at(self, start_ns: Int, end_ns: Int) -> Intervals[Key_co]:
        """Return the rows with other bounds; quicker than `replace` by far, which many small logs feel."""
        columns = self.indptr, self.bins, self.counts, self.exact, self.completions
        return Intervals(self.layout, self.table, self.series, start_ns, end_ns, *columns)

    def take(self, rows: Int) -> Intervals[Key_co]:
        """Return the given rows in the given order; neighbours in order are not copied."""
        together = len(rows) > 0 and (rows == np.arange(rows[0], rows[0] + len(rows))).all()
        if together and len(rows) == len(self):
            return self
        entries: slice | Int
        if together:
            indptr = self.indptr[rows[0] : rows[0] + len(rows) + 1]
            entries = slice(indptr[0], indptr[-1])
            indptr = indptr - indptr[0]
        else:
            indptr, entries = gather(self.indptr, rows)
        series, start, end = self.series[rows], self.start_ns[rows], self.end_ns[rows]
        bins, counts = self.bins[entries], self.counts[entries]
        exact = None if self.exact is None else self.exact.take(rows)
        completions = None if self.completions is None else self.completions[rows]
        return Intervals(self.layout, self.table, series, start, end, indptr, bins, counts, exact, completions)

    def chosen(self, rows: Int) -> Intervals[Key_co]:
        """Return what `take` does, held as these rows are."""
        return self.take(rows)

    def pieces(self, most: int = 0) -> Iterator[tuple[slice, Intervals[Key_co]]]:
        """Yield the rows in pieces of at most so many bins (IN_CACHE) or one row, each with its place; none is copied if wide."""
        first = 0
        while first < len(self):
            last = max(first + 1, int(np.searchsorted(self.indptr, self.indptr[first] + (most or IN_CACHE), side="right")) - 1)
            yield slice(first, last), self.take(np.arange(first, last))
            first = last

    def where(self, wanted: Callable[[Key_co], bool]) -> Intervals[Key_co]:
        """Return the rows of the keys that are wanted, under the same table; `wanted` is asked once a key, not once a row."""
        good = np.array([wanted(key) for key in self.table], np.bool_)
        return self if good.all() else self.chosen(np.flatnonzero(good[self.series]))

    def split(self, of: Callable[[Key_co], Chosen]) -> Iterator[tuple[Chosen, Intervals[Key_co]]]:
        """Yield each value that `of` gives to keys, in the order of the table, with the rows of these keys; the table is kept."""
        places: dict[Chosen, int] = {}
        codes = [places.setdefault(of(key), len(places)) for key in self.table]
        if len(places) == 1:
            yield next(iter(places)), self
            return
        of_rows = np.array(codes, np.int64)[self.series] if codes else self.series
        for value, place in places.items():
            yield value, self.chosen(np.flatnonzero(of_rows == place))

    def keyed(self, table: Sequence[Other], series: Int) -> Intervals[Other]:
        """Return the rows under other keys: row i is of `table[series[i]]`."""
        columns = self.start_ns, self.end_ns, self.indptr, self.bins, self.counts, self.exact, self.completions
        return Intervals(self.layout, table, series, *columns)

    def in_key_order(self) -> Intervals[Key_co]:
        """Return the same rows with a table of the keys that have rows, sorted, whatever order the keys were met in."""
        order = sorted(np.unique(self.series).tolist(), key=self.table.__getitem__)
        place = np.zeros(len(self.table), np.int64)
        place[order] = np.arange(len(order))
        return self.keyed(tuple(self.table[code] for code in order), place[self.series])

    def relabelled(self, key: Callable[[Key_co], Other | None]) -> Intervals[Other]:
        """Return the rows with each key replaced by `key(it)`; rows whose key becomes None are left out."""
        return self.renamed(*renamed(self.table, key))

    def renamed(self, table: Sequence[Other], codes: Int) -> Intervals[Other]:
        """Return the rows with each key replaced by that of its code in another table; rows of code -1 are left out."""
        series = codes[self.series] if len(codes) else self.series
        moved = self.keyed(table, series)
        return moved if (series >= 0).all() else moved.chosen(np.flatnonzero(series >= 0))

    def in_layout(self, target: Layout) -> Intervals[Key_co]:
        """Return the same counts in another layout; see `Layout.moved_to` for where a bin's counts go."""
        if target == self.layout:
            return self
        if not len(self.bins):
            return replace(self, layout=target)
        moved = self.layout.moved_to(target)[self.bins]
        indptr, bins, counts = sum_rows(self.indptr, moved, self.counts, np.arange(len(self)), len(self))
        return replace(self, layout=target, indptr=indptr, bins=bins, counts=counts)


def renamed(keys: Sequence[Key], key: Callable[[Key], Other | None]) -> tuple[tuple[Other, ...], Int]:
    """Return the table of what `key` makes of keys, each once, and the place there of each; -1 of those that become None."""
    table: dict[Other, int] = {}
    codes = [-1 if now is None else table.setdefault(now, len(table)) for now in map(key, keys)]
    return tuple(table), np.array(codes, np.int64)


class Narrow(Intervals[Key_co]):
    """Rows whose bins and counts are held in as few bytes as they need, a quarter mostly: each use of either makes a copy.

    For many rows that are looked at a piece at a time. What is taken of them is as wide as ever; what is made of all of them
    (chosen rows, other keys, times and layouts, sums) is made a piece at a time, and is as narrow.
    """

    __slots__ = ()

    @staticmethod
    def of(parts: list[Intervals[Key]]) -> Narrow[Key]:
        """Return the rows of parts (at least one) of one layout after one another, their tables joined. The list is emptied."""
        none = np.empty(0, np.int64)
        row = concatenate([replace(part, indptr=np.zeros(len(part) + 1, np.int64), bins=none, counts=none) for part in parts])
        indptr, held = joined_rows([part.indptr for part in parts]), []
        while parts:
            part = parts.pop(0)
            held.append(part.held if isinstance(part, Narrow) else _narrowest(part.bins, part.counts))
        bins, counts = (columns[0] if len(held) == 1 else np.concatenate(columns) for columns in zip(*held, strict=True))
        columns = row.series, row.start_ns, row.end_ns, indptr, bins, counts, row.exact, row.completions
        return Narrow(row.layout, row.table, *columns)

    @property
    def bins(self) -> Int:
        """Return the bin of each entry."""
        return self.held[0].astype(np.int64)

    @bins.setter
    def bins(self, bins: Int) -> None:
        vars(Intervals)["bins"].__set__(self, *_narrowest(bins))

    @property
    def counts(self) -> Int:
        """Return the count of each entry."""
        return self.held[1].astype(np.int64)

    @counts.setter
    def counts(self, counts: Int) -> None:
        vars(Intervals)["counts"].__set__(self, *_narrowest(counts))

    @property
    def samples(self) -> Int:
        """Return the sum of counts of each row; of narrow ones NumPy would make a wide copy of all."""
        sums, rows = np.zeros(len(self), np.int64), np.arange(len(self))
        if kernel.place_rows is not None:
            held = *kernel.words(self.indptr, rows), *kernel.narrow(*self.held)
            kernel.place_rows(*held, rows, np.zeros(self.layout.bins, np.int64), 1, sums)
            return sums
        for place, piece in self.pieces():
            sums[place] = piece.samples
        return sums

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes it of a pickle, which is as narrow."""
        times = self.start_ns, self.end_ns, self.indptr
        return Narrow, (self.layout, self.table, self.series, *times, *self.held, self.exact, self.completions)

    def at(self, start_ns: Int, end_ns: Int) -> Narrow[Key_co]:
        """Return the rows with other bounds."""
        _, (layout, table, series, _, _, *columns) = self.__reduce__()
        return Narrow(layout, table, series, start_ns, end_ns, *columns)

    def keyed(self, table: Sequence[Other], series: Int) -> Narrow[Other]:
        """Return the rows under other keys: row i is of `table[series[i]]`."""
        _, (layout, _, _, *columns) = self.__reduce__()
        return Narrow(layout, table, series, *columns)

    def take(self, rows: Int) -> Intervals[Key_co]:
        """Return the given rows in the given order, wide."""
        part: Intervals[Key_co] = Intervals(*self.__reduce__()[1]).take(rows)
        return replace(part, bins=part.bins.astype(np.int64), counts=part.counts.astype(np.int64))

    def chosen(self, rows: Int) -> Narrow[Key_co]:
        """Return the given rows in the given order, as narrow."""
        if len(rows) == len(self) and (rows[1:] > rows[:-1]).all():
            return self
        held: Intervals[Key_co] = Intervals(*self.__reduce__()[1])
        ends = np.cumsum(np.diff(self.indptr)[rows])
        cuts = distinct(np.append(np.searchsorted(ends, np.arange(0, ends[-1] if len(ends) else 0, PIECE)), [0, len(rows)]))
        return Narrow.of([held.take(rows[first:last]) for first, last in pairwise(cuts.tolist())] or [held.take(rows)])

    def in_layout(self, target: Layout) -> Intervals[Key_co]:
        """Return the same counts in another layout, as narrow."""
        if target == self.layout or not len(self):
            return super().in_layout(target)
        return Narrow.of([Narrow.of([piece.in_layout(target)]) for _, piece in self.pieces()])


def _narrowest(*columns: Int) -> list[Int]:
    """Return columns of numbers, none below 0, in the narrowest type that holds each; those of another than int64 are in it."""
    types = (np.min_scalar_type(int(values.max(initial=0))) for values in columns)
    return [values.astype(kind) if values.dtype == np.int64 else values for values, kind in zip(columns, types, strict=True)]


def one_row(
    layout: Layout, series: Key, span_ns: tuple[int, int], bins: Int, counts: Int, exact: Exact | None = None
) -> Intervals[Key]:
    """Return the row of one series and interval; `bins` rise and `counts` are those of each."""
    start, end = (np.array([moment], np.int64) for moment in span_ns)
    return Intervals(layout, (series,), np.zeros(1, np.int64), start, end, np.array([0, len(bins)]), bins, counts, exact)


def concatenate(parts: Iterable[Intervals[Key]]) -> Intervals[Key]:
    """Return all rows of `parts` (at least one, all of one layout) after one another, their tables joined."""
    chunks = list(parts)
    if len(chunks) == 1:
        return chunks[0]
    layout = chunks[0].layout
    if any(chunk.layout != layout for chunk in chunks):
        raise ValueError(f"unlike layouts: {', '.join(sorted({str(chunk.layout) for chunk in chunks}))}")
    table, series = _joined_tables(chunks)
    return _laid(chunks, table, series, np.arange(len(series)))


def _laid(chunks: list[Intervals[Key]], table: Sequence[Key], series: Int, order: Int) -> Intervals[Key]:
    """Return the rows of chunks of one layout in an order: row i of them all is of `table[series[i]]`. The list is emptied."""
    layout, exact, completions = chunks[0].layout, _joined_exact(chunks), _joined_completions(chunks)
    narrow = all(isinstance(chunk, Narrow) for chunk in chunks)  # so are the rows then
    columns = {name: [getattr(chunk, name) for chunk in chunks] for name in ("start_ns", "end_ns", "indptr")}
    held = [chunk.held if narrow else [chunk.bins, chunk.counts] for chunk in chunks]
    bins, counts = (list(column) for column in zip(*held, strict=True))
    del held
    chunks.clear()
    start, end = (np.concatenate(columns[name])[order] for name in ("start_ns", "end_ns"))
    entries = laid_out(columns["indptr"], bins, counts, order)
    exact = None if exact is None else exact.take(order)
    completions = None if completions is None else completions[order]
    kind = Narrow if narrow else Intervals
    return kind(layout, tuple(table), series[order], start, end, *entries, exact, completions)


def _joined_tables(chunks: Sequence[Intervals[Key]]) -> tuple[list[Key], Int]:
    """Return the keys of all chunks, each once, and what the rows of all chunks are of these."""
    first = chunks[0].table
    if all(chunk.table is first for chunk in chunks) and len(set(first)) == len(first):  # pieces of rows of thousands of keys
        return list(first), np.concatenate([chunk.series for chunk in chunks])
    table: dict[Key, int] = {}
    series = []
    for chunk in chunks:
        codes = [table.setdefault(key, len(table)) for key in chunk.table]
        if len(chunk):
            series.append(chunk.series if codes == list(range(len(codes))) else np.array(codes, np.int64)[chunk.series])
    return list(table), np.concatenate(series) if series else np.empty(0, np.int64)


def _joined_exact(chunks: Sequence[Intervals]) -> Exact | None:
    if all(chunk.exact is None for chunk in chunks):
        return None
    filled = [chunk.exact or no_exact(len(chunk)) for chunk in chunks]
    names = ("min_ns", "max_ns", "sum_ns", "known")
    low, high, sums, known = (np.concatenate([getattr(part, name) for part in filled]) for name in names)
    moved = None if all(part.bytes is None for part in filled) else np.concatenate([part.moved for part in filled])
    return Exact(low, high, sums, known, moved)


def _joined_completions(chunks: Sequence[Intervals]) -> Int | None:
    known = [chunk.completions for chunk in chunks if chunk.completions is not None]
    if len(known) not in (0, len(chunks)):
        raise ValueError("completion counts and in-flight weights are never added")
    return np.concatenate(known) if known else None


def exact_of(sums: Int, lows: Int, highs: Int, moved: Int | None = None) -> Exact:
    """Return exact values; unknown ones are NO_SUM, NO_MIN, NO_MAX and NO_BYTES, and known is a row of which any is known."""
    known = (sums != NO_SUM) | (lows != NO_MIN) | (highs != NO_MAX)
    total, low, high = (np.where(known, column, 0) for column in (sums, lows, highs))
    return Exact(low, high, total, known, moved)


def no_exact(rows: int) -> Exact:
    """Return the exact values of `rows` rows of which none is known."""
    zero = np.zeros(rows, np.int64)
    return Exact(zero, zero, zero, np.zeros(rows, np.bool_))


def merged(parts: Sequence[Intervals[Key]]) -> Intervals[Key]:
    """Return `parts` with all rows of equal (key, start, end) added up, ordered by key, then start, then end.

    Key first, because that is how rows come from readers and stores: they are then summed where they lie. Unlike layouts
    are moved to their common layout first. Exact values survive where every row of a sum has them and the sum of latencies is
    at most 2^62 ns. Rows without a sample are left out. CapacityError where more than MOST_SAMPLES would be added up.
    """
    if len(parts) == 1 and parts[0].each_once and parts[0].all_filled:
        return parts[0]
    chunks = list(parts)
    return _added_up(chunks, _ordered(chunks))


class _Ordered(NamedTuple, Generic[Key]):
    """Rows of chunks of one layout, laid after one another: their order, and which are to be added to the one before in it."""

    table: Sequence[Key]
    series: Int
    start: Int
    end: Int
    order: Int
    same: Bool


def _ordered(chunks: list[Intervals[Key]]) -> _Ordered[Key]:
    """Return the order of the rows of all chunks, which are moved to their common layout in the list."""
    layout = common_layout(chunk.layout for chunk in chunks)
    chunks[:] = [chunk.in_layout(layout) for chunk in chunks]
    table, series = _joined_tables(chunks)
    start = np.concatenate([chunk.start_ns for chunk in chunks])
    end = np.concatenate([chunk.end_ns for chunk in chunks])
    key = _table_ranks(table)[series] if len(table) > 1 else series
    order = np.lexsort((end, start, key))
    same = np.zeros(len(order), np.bool_)
    if len(order) > 1:
        same[1:] = np.logical_and.reduce([each[1:] == each[:-1] for each in (start[order], key[order], end[order])])
    return _Ordered(tuple(table), series, start, end, order, same)


def _added_up(chunks: list[Intervals[Key]], rows: _Ordered[Key]) -> Intervals[Key]:
    """Return the sums of chunks by row; the list may be emptied, so that parts that nobody else holds go while copied."""
    table, series, start, end, order, same = rows
    if not same.any() and all(chunk.all_filled and bool((np.diff(chunk.indptr) > 0).all()) for chunk in chunks):
        in_place = len(chunks) == 1 and (order[1:] > order[:-1]).all()
        return chunks[0] if in_place else _laid(chunks, table, series, order)
    if all(isinstance(chunk, Narrow) for chunk in chunks):
        return _added_up_in_pieces(chunks, rows)
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(~same) - 1
    first = order[~same]
    groups = len(first)
    indptr, bins, counts = sum_parts([(chunk.indptr, chunk.bins, chunk.counts) for chunk in chunks], group, groups)
    exact, completions = _summed_exact(_joined_exact(chunks), group, groups), _joined_completions(chunks)
    completions = None if completions is None else summed(completions, group, groups)
    columns = series[first], start[first], end[first], indptr, bins, counts
    result = Intervals(chunks[0].layout, table, *columns, exact, completions)
    filled = np.diff(indptr) > 0
    return result if filled.all() else result.take(np.flatnonzero(filled))


def _added_up_in_pieces(chunks: list[Intervals[Key]], rows: _Ordered[Key]) -> Intervals[Key]:
    """Return the sums of narrow chunks by row, as narrow: those of all rows are never there at their full width.

    The list is emptied, so that parts that nobody else holds are gone when the pieces of the sum are laid after one another.
    """
    table, series, _, _, order, same = rows
    offsets = np.cumsum([0, *map(len, chunks)])
    parts = [*chunks]
    chunks.clear()
    home = np.searchsorted(offsets, order, side="right") - 1
    begins = np.append(np.flatnonzero(~same), len(order))  # of the rows of each sum, in order
    before = np.append(0, np.cumsum(np.concatenate([np.diff(chunk.indptr) for chunk in parts])[order]))[begins]
    sums: list[Intervals[Key]] = []
    first = 0
    while first < len(begins) - 1:
        last = max(first + 1, int(np.searchsorted(before, before[first] + PIECE, side="right")) - 1)
        own = slice(begins[first], begins[last])
        # A piece is of few of thousands of keys, and a sum looks at each key of a table: that of a piece has its own.
        codes, key = np.unique(series[order[own]], return_inverse=True)
        keys = tuple(table[code] for code in codes.tolist())
        mine = ((place, home[own] == place) for place in distinct(home[own]).tolist())
        piece = merged([parts[place].take(order[own][rows] - offsets[place]).keyed(keys, key[rows]) for place, rows in mine])
        sums.append(Narrow.of([piece.keyed(table, codes[piece.series])]))
        first = last
    parts.clear()
    return Narrow.of(sums)


def in_time_order(rows: Intervals[Key]) -> Intervals[Key]:
    """Return the rows ordered by start, then key."""
    if rows.each_once:
        return rows
    order = np.lexsort((_table_ranks(rows.table)[rows.series], rows.start_ns))
    return rows.chosen(order)


def _table_ranks(table: Sequence[Series | Group]) -> Int:
    ranks = np.empty(len(table), np.int64)
    ranks[sorted(range(len(table)), key=lambda code: table[code])] = np.arange(len(table))
    return ranks


def _summed_exact(exact: Exact | None, group: Int, groups: int) -> Exact | None:
    if exact is None or exact.says_nothing:
        return None
    low = np.full(groups, np.iinfo(np.int64).max)
    high = np.zeros(groups, np.int64)
    known = np.ones(groups, np.bool_)
    np.minimum.at(low, group, exact.min_ns)
    np.maximum.at(high, group, exact.max_ns)
    np.logical_and.at(known, group, exact.known)
    total, past = summed_known(exact.sum_ns, group, groups, NO_SUM)
    known &= ~past
    moved = None
    if exact.bytes is not None:
        moved, too_many = summed_known(exact.bytes, group, groups, NO_BYTES)
        moved[too_many] = NO_BYTES
    return Exact(np.where(known, low, 0), np.where(known, high, 0), np.where(known, total, 0), known, moved)


class Sum(Generic[Key]):
    """A running sum of rows that keeps its memory bounded: chunks are added up whenever they outgrow the result.

    A large sum is held narrow.
    """

    def __init__(self, most_entries: int = WIDE) -> None:
        self._parts: list[Intervals[Key]] = []
        self._pending = 0
        self._most = most_entries
        self._limit = most_entries
        self._large = False

    def add(self, part: Intervals[Key]) -> None:
        """Add the rows of `part`."""
        if len(part):
            self._parts.append(Narrow.of([part]) if self._large else part)
            self._pending += int(part.indptr[-1])
        if self._pending > self._limit:
            self._compact(wholly=False)

    def _compact(self, *, wholly: bool) -> None:
        """Add up what there is; parts of which no rows come together stay as they are, unless it is to be done `wholly`."""
        by_layout: dict[Layout, list[Intervals[Key]]] = {}
        while self._parts:
            by_layout.setdefault(self._parts[0].layout, []).append(self._parts.pop(0))
        for layout in list(by_layout):
            chunks = by_layout.pop(layout)
            rows = _ordered(chunks)
            if wholly or rows.same.any():
                self._parts.append(_added_up(chunks, rows))
                continue
            small: list[Intervals[Key]] = []  # few large arrays go back to the system one by one, many do not
            for chunk in chunks:
                (small if isinstance(chunk, Narrow) and chunk.indptr[-1] < self._most else self._parts).append(chunk)
            chunks.clear()
            self._parts += [Narrow.of(small)] if small else []
        self._pending = sum(int(part.indptr[-1]) for part in self._parts)
        self._limit = max(self._most, 2 * self._pending)
        if self._pending > WIDE and not self._large:
            self._large = True
            self._parts += [Narrow.of([self._parts.pop(0)]) for _ in range(len(self._parts))]

    @property
    def pending(self) -> list[Intervals[Key]]:
        """Return the sums so far in as many parts as they have come to, for another sum."""
        return self._parts

    def parts(self) -> list[Intervals[Key]]:
        """Return the sums so far, one per layout."""
        if self._parts:
            self._compact(wholly=True)
        return self._parts


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
