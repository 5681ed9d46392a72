"""Rows of comma-separated non-negative integers, almost all of them zero: the text of a fio histogram log.

    1005, 0, 4096, 0, 0, 0, 12, 0, 0, 1, 0, 0

Every zero cell is exactly three bytes (`0, `) and digits other than zero are rare, so one vector scan for the
bytes '1'..'9' finds all that is not zero, and arithmetic on the positions gives row, column and value. Nothing
is looked up cell by cell. What makes that safe is that the block is proven to have the plain shape first:

* only digits, `, ` pairs and newlines occur (largest byte, byte counts, every comma stands before a space);
* no cell is empty (as many digit runs as cells), the block has rows x columns cells;
* each row is as long as its non-zero cells say (so no cell has leading zeros), and each column offset is a whole number.

From these follows, by counting, that each row has exactly `columns` cells. A block that fails is parsed again in
halves down to the rows that are at fault, so one bad row costs only itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ingest.intervals import joined_rows

Bytes = NDArray[np.uint8]
Int = NDArray[np.int64]

NEWLINE, SPACE, COMMA, ZERO, NINE = 10, 32, 44, 48, 57
MOST_DIGITS = 20
UINT64_MAX = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Rows:
    """Sparse rows: `lead[n, 3]` are the leading cells, `bins`/`counts` the non-zero cells after them, in CSR form."""

    lead: NDArray[np.uint64]
    indptr: Int
    bins: Int
    counts: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.lead)


def parse(block: Bytes, columns: int, leading: int) -> Rows | None:
    """Return the rows of `block` (whole lines, each with its newline), or None if any byte has not the plain shape.

    `columns` counts all cells of a row, `leading` those before the first bin (at most 3). Values go up to 2^64 - 1.
    """
    if not len(block) or block[-1] != NEWLINE or int(block.max()) > NINE:
        return None
    digit = block >= ZERO
    comma = block == COMMA
    space = block == SPACE
    ends = np.flatnonzero(block == NEWLINE)
    rows = len(ends)
    digits, commas = int(np.count_nonzero(digit)), int(np.count_nonzero(comma))
    runs = int(np.count_nonzero(digit[1:] > digit[:-1])) + int(digit[0])
    if (
        commas != rows * (columns - 1)
        or digits + 2 * commas + rows != len(block)
        or runs != rows * columns
        or space[0]
        or not np.array_equal(comma[:-1], space[1:])
    ):
        return None
    return _cells(block, ends, columns, leading)


def _cells(block: Bytes, ends: Int, columns: int, leading: int) -> Rows | None:
    starts = np.empty_like(ends)
    starts[0] = 0
    np.add(ends[:-1], 1, out=starts[1:])
    nonzero = np.flatnonzero(block > ZERO)
    first = block[nonzero - 1] < ZERO  # index -1 wraps to the final newline, which is what stands before byte 0
    at = nonzero[first]
    value, width = _values(block, at)
    if value is None:
        return None
    bounds = np.searchsorted(at, starts)
    per_row = np.diff(bounds, append=len(at))
    row = np.repeat(np.arange(len(ends)), per_row)
    shift = np.zeros(len(at) + 1, np.int64)
    np.cumsum(width - 1, out=shift[1:])
    before = shift[bounds]
    extra = np.diff(before, append=shift[-1])
    if not np.array_equal(ends - starts, 3 * columns - 2 + extra):
        return None
    column, rest = np.divmod(at - shift[:-1] - (starts - before)[row], 3)
    if rest.any():
        return None
    head = column < leading
    lead = np.zeros((len(ends), 3), np.uint64)
    lead[row[head], column[head]] = value[head]
    indptr = np.zeros(len(ends) + 1, np.int64)
    np.cumsum(per_row - np.bincount(row[head], minlength=len(ends)), out=indptr[1:])
    tail = ~head
    return Rows(lead, indptr, column[tail] - leading, value[tail])


def _values(block: Bytes, at: Int) -> tuple[NDArray[np.uint64] | None, Int]:
    """Return the integers that start at `at` and their digit counts; None if one exceeds 2^64 - 1."""
    value = block[at].astype(np.uint64) - ZERO
    width = np.ones(len(at), np.int64)
    active = np.arange(len(at))
    for place in range(1, MOST_DIGITS):
        digit = block[at[active] + place]
        more = digit >= ZERO
        active = active[more]
        if not len(active):
            return value, width
        if place == MOST_DIGITS - 1:
            break
        value[active] = value[active] * 10 + (digit[more] - ZERO)
        width[active] += 1
    for index in active:  # twenty digits: only the wrapped counters of a latency_target reset have them
        text = block[at[index] : at[index] + MOST_DIGITS + 1].tobytes()
        number = text.split(b",")[0].split(b"\n")[0]
        if len(number) > MOST_DIGITS or int(number) > UINT64_MAX:
            return None, width
        value[index] = int(number)
        width[index] = MOST_DIGITS
    return value, width


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Return all rows of `parts` after one another."""
    if len(parts) == 1:
        return parts[0]
    return Rows(
        np.concatenate([part.lead for part in parts]),
        joined_rows([part.indptr for part in parts]),
        np.concatenate([part.bins for part in parts]),
        np.concatenate([part.counts for part in parts]),
    )
