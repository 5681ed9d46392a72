"""Rows of comma-separated non-negative integers, almost all of them zero: the text of a fio histogram log.

    1005, 0, 4096, 0, 0, 0, 12, 0, 0, 1, 0, 0

Most of such a text is `0, ` over and over. So it is shortened first: of every 24 bytes that repeat the 24 bytes before
them and are nothing but eight zero cells, only the number is kept (three 64-bit words, compared at full memory speed).
Taking out whole zero cells in phase leaves a text that has the plain shape if and only if the long one has it. In the
short text, one vector scan for the bytes '1'..'9' finds all that is not zero, and arithmetic on the positions gives row,
column and value. Nothing is looked up cell by cell. What makes that safe is that the text is proven to have the plain
shape first:

* only digits, `, ` pairs and newlines occur (largest byte, byte counts, every comma stands before a space);
* no cell is empty (as many digit runs as cells), the block has rows x columns cells;
* each row is as long as its non-zero cells say (so no cell has leading zeros), and each column offset is a whole number.

From these follows, by counting, that each row has exactly `columns` cells. A block that fails is parsed again in
halves down to the rows that are at fault, so one bad row costs only itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Int, joined_rows
from ingest.core.values import Value
from ingest.read.text import NEWLINE

Bytes = NDArray[np.uint8]

SPACE, COMMA, ZERO, NINE = 32, 44, 48, 57
MOST_DIGITS = 20
UINT64_MAX = 2**64 - 1
UNIT, CELLS_A_UNIT = 24, 8
ZEROS = np.frombuffer(b"".join((b"0, " * 9)[phase : phase + UNIT] for phase in range(3)), np.uint64).reshape(3, 3)
THIRD = np.uint64(0xAAAAAAAAAAAAAAAB)


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

    Keeps scratch memory between blocks: fresh pages for every intermediate cost more than the arithmetic.
    """

    def __init__(self, columns: int, leading: int) -> None:
        self.columns = columns
        self.leading = leading
        self._scratch = np.empty((3, 0), np.bool_)
        self._text = np.empty(0, np.uint8)

    def parse(self, block: Bytes) -> Rows | None:
        """Return the rows of `block` (whole lines, each with its newline), or None if any byte has not the plain shape.

        Values go up to 2^64 - 1.
        """
        if not len(block) or block[-1] != NEWLINE:
            return None
        text, moved = self._shortened(block)
        size, columns = len(text), self.columns
        if int(text.max()) > NINE:
            return None
        if self._scratch.shape[1] < size:
            self._scratch = np.empty((3, size + size % 2), np.bool_)
        digit, comma, space = self._scratch[:, :size]
        ends = np.flatnonzero(np.equal(text, NEWLINE, out=space))
        np.greater_equal(text, ZERO, out=digit)
        np.equal(text, COMMA, out=comma)
        np.equal(text, SPACE, out=space)
        rows, digits, commas = len(ends), int(np.count_nonzero(digit)), int(np.count_nonzero(comma))
        cells = rows * columns - (len(block) - size) // UNIT * CELLS_A_UNIT
        if commas != cells - rows or digits + 2 * commas + rows != size or space[0]:
            return None
        np.not_equal(comma[:-1], space[1:], out=space[1:])
        first = comma
        first[0] = digit[0]
        np.greater(digit[1:], digit[:-1], out=first[1:])
        if np.count_nonzero(first) != cells or np.count_nonzero(space[1:]):
            return None
        np.greater(text, ZERO, out=space)
        np.logical_and(first, space, out=first)
        return self._cells(text, moved, ends, _sparse_places(self._scratch[1], size))

    def _shortened(self, block: Bytes) -> tuple[Bytes, Int]:
        """Return the block without repeated units of zero cells, and how many bytes were taken out before each unit left."""
        units = len(block) // UNIT
        words = block[: units * UNIT].view(np.uint64)
        same = words[3:] == words[:-3]
        again = np.zeros(units + 1, np.bool_)
        np.logical_and(same[::3], same[1::3], out=again[1:-1])
        again[1:-1] &= same[2::3]
        triples = words.reshape(units, 3)
        _keep_other(again, triples)
        kept = np.flatnonzero(~again[:-1])
        size = len(kept) * UNIT
        rest = block[units * UNIT :]
        if len(self._text) < size + UNIT:
            self._text = np.empty(size + size // 4 + UNIT, np.uint8)
        text = self._text[: size + len(rest)]
        triples.take(kept, axis=0, out=text[:size].view(np.uint64).reshape(len(kept), 3), mode="clip")
        text[size:] = rest
        moved = np.empty(len(kept) + 1, np.int64)
        np.subtract(kept, np.arange(len(kept)), out=moved[:-1])
        moved[-1] = units - len(kept)
        moved *= UNIT
        return text, moved

    def _cells(self, text: Bytes, moved: Int, ends: Int, at: Int) -> Rows | None:
        """Return the rows that end at `ends` and whose non-zero cells begin `at`; None if a row is not as long as they say."""
        value, extra = _values(text, at)
        if value is None:
            return None
        bounds = np.zeros(len(ends) + 1, np.int64)
        bounds[1:] = np.searchsorted(at, ends)
        shift = np.zeros(len(at) + 1, np.int64)
        np.cumsum(extra, out=shift[1:])
        before = shift[bounds]
        at += moved.take(at // UNIT)
        ends += moved.take(ends // UNIT)
        starts = np.zeros_like(ends)
        np.add(ends[:-1], 1, out=starts[1:])
        if not np.array_equal(ends - starts, 3 * self.columns - 2 + np.diff(before)):
            return None
        at -= shift[:-1]
        at -= np.repeat(starts - before[:-1], np.diff(bounds))
        # Modulo 2^64, a multiple of three times this is its third, and anything else is larger than any column.
        column = at.view(np.uint64)
        column *= THIRD
        if len(column) and int(column.max()) >= self.columns:
            return None
        return self._split(at, value, bounds)

    def _split(self, column: Int, value: NDArray[np.uint64], bounds: Int) -> Rows:
        """Return rows with the leading cells apart; they are among the first three non-zero cells of each row."""
        lead = np.zeros((len(bounds) - 1, 3), np.uint64)
        near = bounds[:-1, None] + np.arange(self.leading)
        row, place = np.nonzero((near < bounds[1:, None]) & (column.take(near, mode="clip") < self.leading))
        head = near[row, place]
        lead[row, column[head]] = value[head]
        tail = np.ones(len(column), np.bool_)
        tail[head] = False
        heads = np.searchsorted(row, np.arange(len(bounds)))
        bins = np.flatnonzero(tail)
        indptr = bounds - heads
        counts = value.take(bins)
        column.take(bins, out=bins, mode="clip")
        bins -= self.leading
        return Rows(lead, indptr, bins, counts)


def _keep_other(again: NDArray[np.bool_], triples: NDArray[np.uint64]) -> None:
    """Clear `again` where what repeats is not eight zero cells, as in `1, 1, 1, 1, `."""
    heads = np.flatnonzero(again[1:] > again[:-1])
    repeated = triples.take(heads, axis=0)
    phase = (repeated[:, 0] == ZEROS[1, 0]) + 2 * (repeated[:, 0] == ZEROS[2, 0])
    other = (repeated != ZEROS.take(phase, axis=0)).any(axis=1)
    for head in heads[other].tolist():
        end = head + 1 + int(again[head + 1 :].argmin())
        again[head + 1 : end] = False


def _sparse_places(flags: NDArray[np.bool_], size: int) -> Int:
    """Return where `flags[:size]` is set; no two neighbours are, so half as many pairs are looked through."""
    flags[size : size + size % 2] = False
    pairs = flags[: size + size % 2].view(np.uint16)
    places = np.flatnonzero(pairs != 0)
    second = pairs.take(places) >> 8
    places *= 2
    places += second
    return places


def _values(text: Bytes, at: Int) -> tuple[NDArray[np.uint64] | None, NDArray[np.uint8]]:
    """Return the integers that start at `at` and their digit counts less one; None if one exceeds 2^64 - 1.

    Up to three digits, which is almost all of them, are taken in passes over whole arrays. Places past the end are
    clipped to the last newline.
    """
    first, second, third = (text[place:].take(at, mode="clip") - ZERO for place in range(3))
    longer = second <= NINE - ZERO
    longest = longer & (third <= NINE - ZERO)
    extra = longer.view(np.uint8)
    value = (first + extra * (first * 9 + second)).astype(np.uint16)
    value += longest * (value * 9 + third)
    extra += longest.view(np.uint8)
    more = np.flatnonzero(longest)
    more = more[text[3:].take(at[more], mode="clip") >= ZERO]
    wide = value.astype(np.uint64)
    return (wide, extra) if _longer(text, at, more, wide, extra) else (None, extra)


def _longer(text: Bytes, at: Int, more: Int, value: NDArray[np.uint64], extra: NDArray[np.uint8]) -> bool:
    """Complete the values of four and more digits; return False if one exceeds 2^64 - 1."""
    place = 3
    while len(more) and place < MOST_DIGITS - 1:
        value[more] = value[more] * 10 + (text[at[more] + place] - ZERO)
        extra[more] = place
        place += 1
        more = more[text[at[more] + place] >= ZERO]
    for index in more:  # twenty digits: only the wrapped counters of a latency_target reset have them
        number = text[at[index] : at[index] + MOST_DIGITS + 1].tobytes().split(b",")[0].split(b"\n")[0]
        if len(number) > MOST_DIGITS or int(number) > UINT64_MAX:
            return False
        value[index] = int(number)
        extra[index] = MOST_DIGITS - 1
    return True


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Return all rows of `parts` after one another."""
    if len(parts) == 1:
        return parts[0]
    lead, bins, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in ("lead", "bins", "counts"))
    return Rows(lead, joined_rows([part.indptr for part in parts]), bins, counts)


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
        words: Words = padded.view(_U)
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
    """Return the numbers of so many digits that end before these places (from the second word on); None where one is none."""
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
    at = ends >> 3
    shift: Any = (ends & 7).view(_U)
    shift <<= _U(3)
    word = words.take(at)
    word >>= shift
    at += 1
    rest = words.take(at)
    np.subtract(_U(63), shift, out=shift)
    rest <<= shift
    rest <<= _U(1)
    word |= rest
    word ^= _ZEROS
    word &= _KEPT.take(digits)
    np.add(word, _ABOVE_NINE, out=rest)
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
