"""Rows of comma-separated non-negative integers, almost all of them zero: the text of a fio histogram log.

    1005, 0, 4096, 0, 0, 0, 12, 0, 0, 1, 0, 0

The text is taken only if it is proven to have the plain shape; a block that is not is parsed again in halves down to the rows
that are at fault, so one bad row costs only itself. Two programs do so, with the same result for every text
(`tests/test_kernel.py`): a loop in C where there is one (`ingest/core/kernel.c`), and whole-array steps of NumPy, which
are the judge. What these prove:

* only digits, `, ` pairs and newlines occur (largest byte, byte counts, every comma stands before a space);
* no cell is empty (as many digit runs as cells), the block has rows x columns cells;
* each row is as long as its non-zero cells say (so no cell has leading zeros), and each column offset is a whole number.

From these follows, by counting, that each row has exactly `columns` cells. Where the cells stand that are not zero says which
columns they are of: a zero cell is three bytes long, so nothing is looked up cell by cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core import kernel
from ingest.core.intervals import Int, joined_rows
from ingest.core.values import Value
from ingest.read.text import NEWLINE

Bytes = NDArray[np.uint8]

SPACE, COMMA, ZERO, NINE = 32, 44, 48, 57
CELL = 3  # bytes of a cell that is zero, with what separates it from the next
LEADING = 3  # cells at most that are no bins
MOST_DIGITS = 20  # of 2^64 - 1
BLOCKS_AT_ONCE = 3
TENTH, LAST = divmod(2**64 - 1, 10)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rows(Value):
    """Sparse rows: `lead[n, 3]` are the leading cells, `bins`/`counts` the non-zero cells after them, in CSR form."""

    lead: NDArray[np.uint64]
    indptr: Int
    bins: Int
    counts: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.lead)


class Parser:
    """Parses blocks of rows of `columns` cells, of which the first `leading` (at most 3) are no bins.

    Rows of several blocks lie behind one another in memory that is got for `room` cells at once, or for some such blocks.
    """

    def __init__(self, columns: int, leading: int, room: int = 0) -> None:
        self.columns = columns
        self.leading = leading
        self._room = room
        self._bins, self._counts = np.empty(0, np.int64), np.empty(0, np.uint64)
        self._filled = 0

    def renew(self) -> None:
        """Let go of what earlier rows lie in: those that come lie behind one another."""
        self._bins, self._counts, self._filled = self._bins[:0].copy(), self._counts[:0].copy(), 0

    def parse(self, block: Bytes) -> Rows | None:
        """Return the rows of `block` (whole lines, each with its newline), or None if any byte has not the plain shape.

        Values go up to 2^64 - 1.
        """
        if not len(block) or block[-1] != NEWLINE:
            return None
        return self._parsed(block) if kernel.fio_rows is None else self._compiled(block, kernel.fio_rows)

    def _compiled(self, block: Bytes, fio_rows: kernel.Loop) -> Rows | None:
        """Return what `_parsed` does."""
        most_rows = len(block) // (CELL * self.columns - 1) + 1  # and one that begins
        if len(self._bins) - self._filled < (cells := most_rows * self.columns):
            most = max(cells, self._room or BLOCKS_AT_ONCE * cells)
            self._bins, self._counts, self._filled = np.empty(most, np.int64), np.empty(most, np.uint64), 0
        lead, indptr = np.empty((most_rows, LEADING), np.uint64), np.empty(most_rows + 1, np.int64)
        first = self._filled
        rows = fio_rows(block, self.columns, self.leading, first, lead, indptr, self._bins, self._counts)
        if rows < 0:
            return None
        self._filled = end = int(indptr[rows])
        return Rows(lead[:rows], indptr[: rows + 1] - first, self._bins[first:end], self._counts[first:end])

    def _parsed(self, text: Bytes) -> Rows | None:
        digit, comma, space = text >= ZERO, text == COMMA, text == SPACE
        ends = np.flatnonzero(text == NEWLINE)
        cells, commas = len(ends) * self.columns, np.count_nonzero(comma)
        if int(text.max()) > NINE or commas != cells - len(ends) or space[0] or (comma[:-1] != space[1:]).any():
            return None
        if np.count_nonzero(digit) + 2 * commas + len(ends) != len(text):
            return None
        first = digit
        first[1:] &= ~digit[:-1]
        if np.count_nonzero(first) != cells:
            return None
        return self._cells(text, ends, np.flatnonzero(first & (text > ZERO)))

    def _cells(self, text: Bytes, ends: Int, at: Int) -> Rows | None:
        """Return the rows that end at `ends` and whose non-zero cells begin `at`; None if a row is not as long as they say."""
        found = _values(text, at)
        if found is None:
            return None
        value, extra = found
        bounds = np.append(0, np.searchsorted(at, ends))
        shift = np.append(0, np.cumsum(extra))
        before = shift[bounds]
        starts = np.append(0, ends[:-1] + 1)
        if not np.array_equal(ends - starts, CELL * self.columns - 2 + np.diff(before)):
            return None
        column, rest = np.divmod(at - shift[:-1] - np.repeat(starts - before[:-1], np.diff(bounds)), CELL)
        return None if rest.any() else self._split(column, value, bounds)

    def _split(self, column: Int, value: NDArray[np.uint64], bounds: Int) -> Rows:
        """Return rows with the leading cells apart."""
        row, leads = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)), column < self.leading
        lead = np.zeros((len(bounds) - 1, LEADING), np.uint64)
        lead[row[leads], column[leads]] = value[leads]
        indptr = np.append(0, np.cumsum(~leads))[bounds]
        return Rows(lead, indptr, column[~leads] - self.leading, value[~leads])


def _values(text: Bytes, at: Int) -> tuple[NDArray[np.uint64], Int] | None:
    """Return the integers that start at `at` and their digit counts less one; None if one exceeds 2^64 - 1."""
    value, extra = (text[at] - ZERO).astype(np.uint64), np.zeros(len(at), np.int64)
    more = np.arange(len(at))
    for place in range(1, MOST_DIGITS + 1):
        more = more[text[at[more] + place] >= ZERO]
        if not len(more):
            return value, extra
        digit = text[at[more] + place] - ZERO
        if ((value[more] > TENTH) | ((value[more] == TENTH) & (digit > LAST))).any():
            return None
        value[more] = value[more] * 10 + digit
        extra[more] = place
    return None


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Return all rows of `parts` after one another."""
    if len(parts) == 1:
        return parts[0]
    lead = np.concatenate([part.lead for part in parts])
    bins, counts = (_laid([getattr(part, name) for part in parts]) for name in ("bins", "counts"))
    return Rows(lead, joined_rows([part.indptr for part in parts]), bins, counts)


def _laid(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Return columns after one another; those that lie so are not copied."""
    whole = columns[0].base
    if whole is None or any(column.base is not whole for column in columns):
        return np.concatenate(columns)
    begins = [(column.ctypes.data - whole.ctypes.data) // whole.itemsize for column in columns]
    behind = all(begin + len(column) == after for begin, column, after in zip(begins, columns, begins[1:], strict=False))
    return whole[begins[0] : begins[-1] + len(columns[-1])] if behind else np.concatenate(columns)


# Rows of plain integers, `1005, 241908, 0, 4096, 0`, as arrays: twice as fast as a parser that takes any csv.
#
# Eight digits are one word of 64 bits, of which three multiplications make a number. Every byte is looked at: a block that
# holds anything but digits, commas with one blank behind them and line ends gives nothing, and is for a parser that can say
# what is wrong with it.


Words = NDArray[np.uint64]

PLAIN_COMMA, BLANK, PLAIN_ZERO, PLAIN_NINE = 44, 32, 48, 9
WORD, PLAIN_DIGITS = 8, 18  # 18 digits always fit 64 bits
_U = np.uint64
_KEPT = np.array([0, *((1 << 64) - (1 << 8 * (WORD - digits)) for digits in range(1, WORD + 1))], _U)
_ZEROS, _ABOVE_NINE, _HIGH = (_U(int.from_bytes(bytes([byte]) * WORD)) for byte in (PLAIN_ZERO, 0x80 - 10, 0x80))
_PAIRS, _OUTER, _INNER = _U(0x000000FF_000000FF), _U(100 + (1_000_000 << 32)), _U(1 + (10_000 << 32))


class PlainIntegers:
    """Makes columns of blocks of whole lines of `width` integers each. Memory is kept from block to block."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._marks = np.empty((2, 0), np.bool_)
        self._padded = np.zeros(0, np.uint8)

    def columns(self, data: NDArray[np.uint8]) -> list[Int] | None:
        """Return the columns of integers (up to 18 digits, no sign); None where any line is not so, and of no line."""
        size, width = len(data), self.width
        if kernel.integer_rows is not None:
            found = np.empty((width, size // (CELL * width - 1) + 1), np.int64)
            rows = kernel.integer_rows(data, width, found)
            return [*found[:, :rows]] if rows > 0 else None
        if size > self._marks.shape[1]:
            most = size + size // 8  # blocks differ a little in size
            self._marks = np.empty((2, most), np.bool_)
            self._padded = np.zeros((most // WORD + 3) * WORD, np.uint8)
        marks, others = self._marks[:, :size]
        np.equal(data, BLANK, out=marks)
        blanks = int(np.count_nonzero(marks))
        np.equal(data, NEWLINE, out=marks)
        rows = int(np.count_nonzero(marks))
        np.equal(data, PLAIN_COMMA, out=others)
        marks |= others
        places = np.flatnonzero(marks)
        # What is no digit, comma or line end below stands behind a comma: so many blanks, so no other byte.
        if blanks != rows * (width - 1) or len(places) != rows * width or not rows:
            return None
        ends = np.ascontiguousarray(places.reshape(rows, width).T)
        if not (data.take(ends[-1]) == NEWLINE).all() or int(ends[-1, -1]) != size - 1:
            return None
        padded = self._padded
        padded[WORD : WORD + size] = data
        words: Words = np.ndarray(len(padded) - WORD + 1, "<u8", padded, strides=(1,))  # one ends before each place
        starts = np.empty(rows, np.int64)
        starts[0] = 0
        np.add(ends[-1, :-1], 1, out=starts[1:])
        columns = []
        for end in ends:
            column = _numbers(words, padded, end, end - starts)
            if column is None:
                return None
            columns.append(column)
            starts = end + 2
        return columns


def _numbers(words: Words, padded: NDArray[np.uint8], ends: Int, digits: Int) -> Int | None:
    """Return the numbers of so many digits that end before these places (a word before the first); None where one is none."""
    most = int(digits.max())
    if most > PLAIN_DIGITS or int(digits.min()) < 1:
        return None
    if most == 1:
        single = padded.take(ends + (WORD - 1))
        single -= PLAIN_ZERO
        return single.astype(np.int64) if int(single.max()) <= PLAIN_NINE else None
    numbers = _of_word(words, ends, np.minimum(digits, WORD) if most > WORD else digits)
    scale = 1
    while numbers is not None and most > WORD:
        scale, most, digits, ends = scale * 10**WORD, most - WORD, digits - WORD, ends - WORD
        rows = np.flatnonzero(digits > 0)
        higher = _of_word(words, ends.take(rows), np.minimum(digits.take(rows), WORD))
        if higher is None:
            return None
        higher *= scale
        numbers[rows] += higher
    return numbers


def _of_word(words: Words, ends: Int, digits: Int) -> Int | None:
    """Return the numbers of up to eight digits each; None where there is anything else among them."""
    word = words[ends].astype(_U, copy=False)
    word ^= _ZEROS
    word &= _KEPT.take(digits)
    rest = word + _ABOVE_NINE
    rest |= word
    if int(np.bitwise_or.reduce(rest)) & int(_HIGH):
        return None
    np.right_shift(word, _U(8), out=rest)
    word *= _U(10)
    word += rest
    np.right_shift(word, _U(16), out=rest)
    word &= _PAIRS
    word *= _OUTER
    rest &= _PAIRS
    rest *= _INNER
    word += rest
    word >>= _U(32)
    return word.view(np.int64)
