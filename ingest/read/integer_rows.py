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


class Parser:
    """Parses blocks of rows of `columns` cells, of which the first `leading` (at most 3) are no bins.

    Keeps scratch memory between blocks: fresh pages for every intermediate cost more than the arithmetic.
    """

    def __init__(self, columns: int, leading: int) -> None:
        self.columns = columns
        self.leading = leading
        self._scratch = np.empty((3, 0), np.bool_)

    def parse(self, block: Bytes) -> Rows | None:
        """Return the rows of `block` (whole lines, each with its newline), or None if any byte has not the plain shape.

        Values go up to 2^64 - 1.
        """
        size = len(block)
        if not size or block[-1] != NEWLINE or int(block.max()) > NINE:
            return None
        if self._scratch.shape[1] < size:
            self._scratch = np.empty((3, size), np.bool_)
        digit, comma, space = self._scratch[:, :size]
        ends = np.flatnonzero(np.equal(block, NEWLINE, out=space))
        np.greater_equal(block, ZERO, out=digit)
        np.equal(block, COMMA, out=comma)
        np.equal(block, SPACE, out=space)
        rows, digits, commas = len(ends), int(np.count_nonzero(digit)), int(np.count_nonzero(comma))
        if commas != rows * (self.columns - 1) or digits + 2 * commas + rows != size or space[0]:
            return None
        np.not_equal(comma[:-1], space[1:], out=space[1:])
        runs = int(np.count_nonzero(np.greater(digit[1:], digit[:-1], out=comma[1:]))) + int(digit[0])
        if runs != rows * self.columns or np.count_nonzero(space[1:]):
            return None
        return self._cells(block, ends, np.flatnonzero(np.greater(block, ZERO, out=digit)))

    def _cells(self, block: Bytes, ends: Int, nonzero: Int) -> Rows | None:
        rows, columns = len(ends), self.columns
        starts = np.empty_like(ends)
        starts[0] = 0
        np.add(ends[:-1], 1, out=starts[1:])
        # Index -1 wraps to the final newline, which is what stands before byte 0.
        at = nonzero[block[nonzero - 1] < ZERO]
        value, width = _values(block, at)
        if value is None:
            return None
        bounds = np.append(np.searchsorted(at, starts), len(at))
        per_row = bounds[1:] - bounds[:-1]
        row = np.repeat(np.arange(rows), per_row)
        shift = np.empty(len(at) + 1, np.int64)
        shift[0] = 0
        np.cumsum(width, out=shift[1:])
        before = shift[bounds]
        if not np.array_equal(ends - starts, 3 * columns - 2 + before[1:] - before[:-1]):
            return None
        offset = at - shift[:-1]
        offset -= np.repeat(starts - before[:-1], per_row)
        column = offset // 3
        if not np.array_equal(column * 3, offset):
            return None
        head = np.flatnonzero(column < self.leading)
        lead = np.zeros((rows, 3), np.uint64)
        lead[row[head], column[head]] = value[head]
        tail = np.ones(len(at), np.bool_)
        tail[head] = False
        indptr = bounds - np.searchsorted(head, bounds)
        return Rows(lead, indptr, column[tail] - self.leading, value[tail])


def _values(block: Bytes, at: Int) -> tuple[NDArray[np.uint64] | None, NDArray[np.int8]]:
    """Return the integers that start at `at` and their digit counts less one; None if one exceeds 2^64 - 1."""
    value = (block[at] - ZERO).astype(np.uint64)
    extra = np.zeros(len(at), np.int8)
    more = np.flatnonzero(block[at + 1] >= ZERO)
    place = 1
    while len(more) and place < MOST_DIGITS - 1:
        value[more] = value[more] * 10 + (block[at[more] + place] - ZERO)
        extra[more] = place
        place += 1
        more = more[block[at[more] + place] >= ZERO]
    for index in more:  # twenty digits: only the wrapped counters of a latency_target reset have them
        text = block[at[index] : at[index] + MOST_DIGITS + 1].tobytes()
        number = text.split(b",")[0].split(b"\n")[0]
        if len(number) > MOST_DIGITS or int(number) > UINT64_MAX:
            return None, extra
        value[index] = int(number)
        extra[index] = MOST_DIGITS - 1
    return value, extra


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
