"""Rows of plain integers, `1005, 241908, 0, 4096, 0`, as arrays: twice as fast as a parser that takes any csv.

Eight digits are one word of 64 bits, of which three multiplications make a number. Every byte is looked at: a block that
holds anything but digits, commas with one blank behind them and line ends gives nothing, and is for a parser that can say
what is wrong with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Int
from ingest.read.text import NEWLINE

Words = NDArray[np.uint64]

COMMA, BLANK, ZERO, NINE = 44, 32, 48, 9
WORD, MOST_DIGITS = 8, 18  # 18 digits always fit 64 bits
_U = np.uint64
_KEPT = np.array([0, *((1 << 64) - (1 << 8 * (WORD - digits)) for digits in range(1, WORD + 1))], _U)
_ZEROS, _ABOVE_NINE, _HIGH = (_U(int.from_bytes(bytes([byte]) * WORD)) for byte in (ZERO, 0x80 - 10, 0x80))
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
        np.equal(data, COMMA, out=others)
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
    if most > MOST_DIGITS or int(digits.min()) < 1:
        return None
    if most == 1:
        single = padded.take(ends + (WORD - 1))
        single -= ZERO
        return single.astype(np.int64) if int(single.max()) <= NINE else None
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
