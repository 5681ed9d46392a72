"""Sparse rows in CSR form: exact sums of them that cannot wrap.

Row i has `bins[indptr[i]:indptr[i + 1]]` and as many counts. All sums are int64; what would pass 2^62 is an error or not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import CapacityError

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

DENSE_CELLS = 1 << 18
WORTH_A_RUN = 32  # entries: fewer of neighbours that stay neighbours are better laid out one by one
LARGE_CELLS, CELLS_AN_ENTRY = 1 << 21, 4  # of rows in any order: 16 MB, and not mostly empty
PIECE = 1 << 18  # entries that are laid out at once
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
        sums[filled] = np.add.reduceat(counts, indptr[filled])
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
    if groups * span[1] <= DENSE_CELLS:
        return sum_dense([(group, indptr, bins, counts)], groups, span)
    if (group[1:] < group[:-1]).any():
        order = np.argsort(group, kind="stable")
        group = group[order]
        indptr, flat = gather(indptr, order)
        bins, counts = bins[flat], counts[flat]
    return sum_ordered([(group, indptr, bins, counts)], groups, span)


def sum_parts(parts: Sequence[tuple[Int, Int, Int]], group: Int, groups: int) -> tuple[Int, Int, Int]:
    """Return what `sum_rows` does of the rows of all parts (row pointers, bins, counts), laid after one another only if need be.

    Bins rise within each row.
    """
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
    return out, _placed(pointers, bins, begin, int(out[-1])), _placed(pointers, counts, begin, int(out[-1]))


def _placed(pointers: Sequence[Int], columns: list[Int], begin: Int, size: int) -> Int:
    """Return a column of entries whose rows begin at the places given; `columns` is emptied.

    Rows that stay neighbours are copied at once.
    """
    placed, row = np.empty(size, np.int64), 0
    for indptr in pointers:
        column, own = columns.pop(0), begin[row : row + len(indptr) - 1]
        row += len(own)
        if not len(column):
            continue
        runs = np.flatnonzero(np.append(True, own[1:] != (own + np.diff(indptr))[:-1]))
        if len(runs) * WORTH_A_RUN < len(column):
            for first, last in pairwise([*runs.tolist(), len(own)]):
                low, high = int(indptr[first]), int(indptr[last])
                placed[own[first] : own[first] + high - low] = column[low:high]
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
