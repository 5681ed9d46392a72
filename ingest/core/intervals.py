"""The waist: `Intervals`, many latency histograms side by side in NumPy arrays.

Readers yield bounded chunks of them; grid, percentiles, documents, stores and views take them. Bins are kept sparse in
CSR form: row i has `bins[indptr[i]:indptr[i + 1]]`, strictly increasing, with `counts` above zero.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ingest.core.csr import gather, laid_out, row_sums, sum_parts, sum_rows, summed, summed_known
from ingest.core.layout import Layout, common_layout
from ingest.core.series import Group, Series
from ingest.core.values import Value

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

Key = TypeVar("Key", bound=Series | Group)
Other = TypeVar("Other", bound=Series | Group)
Chosen = TypeVar("Chosen", bound=Hashable)
if TYPE_CHECKING:  # the default is for checkers alone: Python knows it from 3.13 on, and typing_extensions is no dependency
    from typing_extensions import TypeVar as WithDefault

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
    def row(self) -> Int:
        """Return the row number of each bin entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    @property
    def samples(self) -> Int:
        """Return the sum of counts of each row."""
        return row_sums(self.indptr, self.counts)

    @property
    def each_once(self) -> bool:
        """Return whether all rows are of one key, each begins after the one before it, and none is empty."""
        return len(self.table) == 1 and all(bool((each[1:] > each[:-1]).all()) for each in (self.start_ns, self.indptr))

    def reach(self: Intervals[Series]) -> Iterator[tuple[Series, int, int]]:
        """Yield each series with the start of its first and the end of its last row."""
        for code, key in enumerate(self.table):
            rows = self.series == code
            if rows.any():
                yield key, int(self.start_ns[rows].min()), int(self.end_ns[rows].max())

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
        return Intervals(
            layout=self.layout,
            table=self.table,
            series=self.series[rows],
            start_ns=self.start_ns[rows],
            end_ns=self.end_ns[rows],
            indptr=indptr,
            bins=self.bins[entries],
            counts=self.counts[entries],
            exact=None if self.exact is None else self.exact.take(rows),
            completions=None if self.completions is None else self.completions[rows],
        )

    def where(self, wanted: Callable[[Key_co], bool]) -> Intervals[Key_co]:
        """Return the rows of the keys that are wanted, under the same table; `wanted` is asked once a key, not once a row."""
        good = np.array([wanted(key) for key in self.table], np.bool_)
        return self if good.all() else self.take(np.flatnonzero(good[self.series]))

    def split(self, of: Callable[[Key_co], Chosen]) -> Iterator[tuple[Chosen, Intervals[Key_co]]]:
        """Yield each value that `of` gives to keys, in the order of the table, with the rows of these keys; the table is kept."""
        places: dict[Chosen, int] = {}
        codes = [places.setdefault(of(key), len(places)) for key in self.table]
        if len(places) == 1:
            yield next(iter(places)), self
            return
        of_rows = np.array(codes, np.int64)[self.series] if codes else self.series
        for value, place in places.items():
            yield value, self.take(np.flatnonzero(of_rows == place))

    def keyed(self, table: Sequence[Other], series: Int) -> Intervals[Other]:
        """Return the rows under other keys: row i is of `table[series[i]]`."""
        columns = self.start_ns, self.end_ns, self.indptr, self.bins, self.counts, self.exact, self.completions
        return Intervals(self.layout, table, series, *columns)

    def relabelled(self, key: Callable[[Key_co], Other | None]) -> Intervals[Other]:
        """Return the rows with each key replaced by `key(it)`; rows whose key becomes None are left out."""
        table: dict[Other, int] = {}
        keys = [key(before) for before in self.table]
        codes = [-1 if now is None else table.setdefault(now, len(table)) for now in keys]
        series = np.array(codes, np.int64)[self.series] if codes else self.series
        moved = self.keyed(tuple(table), series)
        return moved if (series >= 0).all() else moved.take(np.flatnonzero(series >= 0))

    def in_layout(self, target: Layout) -> Intervals[Key_co]:
        """Return the same counts in another layout; see `Layout.moved_to` for where a bin's counts go."""
        if target == self.layout:
            return self
        moved = self.layout.moved_to(target)[self.bins]
        indptr, bins, counts = sum_rows(self.indptr, moved, self.counts, np.arange(len(self)), len(self))
        return replace(self, layout=target, indptr=indptr, bins=bins, counts=counts)


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
    columns = {name: [getattr(chunk, name) for chunk in chunks] for name in ("start_ns", "end_ns", "indptr", "bins", "counts")}
    chunks.clear()
    start, end = (np.concatenate(columns[name])[order] for name in ("start_ns", "end_ns"))
    entries = laid_out(columns["indptr"], columns["bins"], columns["counts"], order)
    exact = None if exact is None else exact.take(order)
    completions = None if completions is None else completions[order]
    return Intervals(layout, tuple(table), series[order], start, end, *entries, exact, completions)


def _joined_tables(chunks: Sequence[Intervals[Key]]) -> tuple[list[Key], Int]:
    """Return the keys of all chunks, each once, and what the rows of all chunks are of these."""
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
    return Exact(
        np.concatenate([part.min_ns for part in filled]),
        np.concatenate([part.max_ns for part in filled]),
        np.concatenate([part.sum_ns for part in filled]),
        np.concatenate([part.known for part in filled]),
        None if all(part.bytes is None for part in filled) else np.concatenate([part.moved for part in filled]),
    )


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
    if len(parts) == 1 and parts[0].each_once and bool((parts[0].counts > 0).all()):
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
    if not same.any() and all(bool((chunk.counts > 0).all()) and bool((np.diff(chunk.indptr) > 0).all()) for chunk in chunks):
        in_place = len(chunks) == 1 and (order[1:] > order[:-1]).all()
        return chunks[0] if in_place else _laid(chunks, table, series, order)
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(~same) - 1
    first = order[~same]
    groups = len(first)
    indptr, bins, counts = sum_parts([(chunk.indptr, chunk.bins, chunk.counts) for chunk in chunks], group, groups)
    completions = _joined_completions(chunks)
    result = Intervals(
        layout=chunks[0].layout,
        table=table,
        series=series[first],
        start_ns=start[first],
        end_ns=end[first],
        indptr=indptr,
        bins=bins,
        counts=counts,
        exact=_summed_exact(_joined_exact(chunks), group, groups),
        completions=None if completions is None else summed(completions, group, groups),
    )
    filled = np.diff(indptr) > 0
    return result if filled.all() else result.take(np.flatnonzero(filled))


def in_time_order(rows: Intervals[Key]) -> Intervals[Key]:
    """Return the rows ordered by start, then key."""
    if rows.each_once:
        return rows
    order = np.lexsort((_table_ranks(rows.table)[rows.series], rows.start_ns))
    return rows if (order[1:] > order[:-1]).all() else rows.take(order)


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
    """A running sum of rows that keeps its memory bounded: chunks are added up whenever they outgrow the result."""

    def __init__(self, most_entries: int = 4_000_000) -> None:
        self._parts: list[Intervals[Key]] = []
        self._pending = 0
        self._most = most_entries
        self._limit = most_entries

    def add(self, part: Intervals[Key]) -> None:
        """Add the rows of `part`."""
        if len(part):
            self._parts.append(part)
            self._pending += len(part.bins)
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
            self._parts += [_added_up(chunks, rows)] if wholly or rows.same.any() else chunks
        self._pending = sum(len(part.bins) for part in self._parts)
        self._limit = max(self._most, 2 * self._pending)

    @property
    def pending(self) -> list[Intervals[Key]]:
        """Return the sums so far in as many parts as they have come to, for another sum."""
        return self._parts

    def parts(self) -> list[Intervals[Key]]:
        """Return the sums so far, one per layout."""
        if self._parts:
            self._compact(wholly=True)
        return self._parts
