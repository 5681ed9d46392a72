"""ZigZag LEB128 words of V2 payloads -> bins and counts, all payloads of a batch in one pass.

V2 writes words of 7 bits a byte, low end first, each byte but the last marked by its highest bit, ZigZag:

    byte      3E        F5 03            00                 05
    word      62        501              0                  5
    ZigZag    31        -251             0                  -3
    means     31 here   251 zeros        one zero           3 zeros

So a word ends wherever a byte is below 128, and nearly all words are one byte long. All known writers put a count behind each
word of empty bins. The byte before a count then says how many empty bins lie before it, and a running sum over counts alone
gives their bins (`_by_counts`). What others write is summed up word by word (`_by_words`). Bytes of longer words say nothing by
themselves; what these words say is put in the place of their last byte. Words of nine bytes (counts from 2^55) are refused: no
benchmark counts that far.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]
Bytes = NDArray[np.uint8]

CONTINUED = 128
LONGEST_WORD = 8
FAR = 1 << 40

_BYTES = np.arange(256)
_ODD = _BYTES % 2 == 1
_ADVANCE = np.where(_BYTES >= CONTINUED, 0, np.where(_ODD, (_BYTES + 1) // 2, 1))
ADVANCE = _ADVANCE.astype(np.uint8).tobytes()
COUNTS = np.where((_BYTES >= CONTINUED) | _ODD, 0, _BYTES // 2).astype(np.uint8).tobytes()
# Last bytes are below 128, so in a copy of the words these stand for longer ones: what is within them, counts, empty bins.
# NO_COUNT are bits that a count, single or longer, has not when 2 is taken off; ADJOINING is a byte before one without a gap.
INSIDE, LONG_COUNT, LONG_GAP, NO_COUNT, ADJOINING = (np.uint8(byte) for byte in (255, 128, 129, 129, 2))
INT32_MAX = np.iinfo(np.int32).max


class _Longer(NamedTuple):
    """Words of two bytes or more, in order: where their first and last bytes lie, how far they advance, what they count.

    `continued` are the places of all bytes that belong to them but their last ones.
    """

    begins: Int
    ends: Int
    advance: Int
    counts: Int
    continued: Int


def rows_of(words: Sequence[bytes | memoryview]) -> tuple[Int, Int, Int, list[int]]:
    """Return CSR rows of the words of payloads, none of them cut off, and which rows have words of more than eight bytes."""
    starts = np.zeros(len(words) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, words), np.int64, len(words)), out=starts[1:])
    data = np.frombuffer(b"".join((b"\0", *words)), np.uint8)
    longer = _longer_words(data)
    too_long = longer.ends[longer.ends - longer.begins >= LONGEST_WORD]
    beyond = np.flatnonzero(np.bincount(np.searchsorted(starts, too_long, side="right") - 1)) if len(too_long) else too_long
    return *(_by_counts(data.copy(), starts, longer) or _by_words(data[1:], starts, longer)), beyond.tolist()


def _longer_words(data: Bytes) -> _Longer:
    """Return the words of two bytes or more; there is a byte before the first word."""
    words = data[1:]
    continued = np.flatnonzero(words >= CONTINUED)
    if not len(continued):
        return _Longer(continued, continued, continued, continued, continued)
    begins, ends = continued[data[continued] < CONTINUED], continued[words[continued + 1] < CONTINUED] + 1
    values = _long_values(words, ends, ends - begins + 1)
    odd = values & 1 == 1
    advance = np.where(odd, np.minimum((values + 1) >> 1, FAR), 1)
    return _Longer(begins, ends, advance, np.where(odd, 0, values >> 1), continued)


def _long_values(words: Bytes, ends: Int, sizes: Int) -> Int:
    """Return the values of words of two bytes or more; of those longer than eight bytes, of their last eight."""
    values = words[ends].astype(np.int64) << 7 | words[ends - 1] & 127
    for back in range(2, LONGEST_WORD):
        at = np.flatnonzero(sizes > back)
        if not len(at):
            break
        values[at] = values[at] << 7 | words[ends[at] - back] & 127
    return values


def _by_counts(data: Bytes, starts: Int, longer: _Longer) -> tuple[Int, Int, Int] | None:
    """Return CSR rows where a count follows each word of empty bins, else None.

    `data` has a byte before the first word: the byte before each count is looked up in it. It is changed: longer words are
    marked by what no last byte is.
    """
    words = data[1:]
    counted = longer.counts > 0
    words[longer.continued] = INSIDE
    words[longer.ends] = np.where(counted, LONG_COUNT, LONG_GAP)
    at = np.flatnonzero((words - np.uint8(2)) & NO_COUNT == 0)
    indptr = np.searchsorted(at, starts)
    if not len(at):
        return None if len(words) else (indptr, at, at)
    own, before = words.take(at, mode="clip"), data.take(at, mode="clip")
    counts = (own >> 1).astype(np.int64)
    long = np.flatnonzero(own == LONG_COUNT)
    counts[long] = longer.counts[counted]
    before[long] = data[longer.begins[counted]]
    filled = np.flatnonzero(np.diff(indptr))
    firsts = indptr[filled]
    first_ends = starts[filled]  # of the first word of each row
    inside = np.flatnonzero(words[first_ends] == INSIDE)
    first_ends[inside] = longer.ends[np.searchsorted(longer.begins, first_ends[inside])]
    before[firsts[at[firsts] == first_ends]] = ADJOINING  # nothing of their row is before them
    far = np.flatnonzero(before == LONG_GAP)
    is_empty = (before & 1).view(np.bool_)
    is_empty |= before == 0
    if np.count_nonzero(is_empty) + len(at) + len(longer.continued) != len(words):
        return None
    before >>= 1
    before += 1
    before *= is_empty
    before += 1
    bins = before.astype(np.int64)
    bins[far] = longer.advance[~counted] + 1  # as many, in the same order: a count follows each
    bins[firsts[1:]] -= np.add.reduceat(bins, firsts)[:-1]
    bins[0] -= 1
    return indptr, np.cumsum(bins, out=bins), counts


def _by_words(data: Bytes, starts: Int, longer: _Longer) -> tuple[Int, Int, Int]:
    """Return CSR rows: each count with its bin, the sum of all advances before it in its row. A count itself advances by 1."""
    text = data.tobytes()
    advance = _with(np.frombuffer(text.translate(ADVANCE), np.uint8), longer.ends, longer.advance)
    counts = _with(np.frombuffer(text.translate(COUNTS), np.uint8), longer.ends, longer.counts)
    narrow = len(advance) * np.iinfo(advance.dtype).max <= INT32_MAX or int(advance.sum(dtype=np.int64)) <= INT32_MAX
    passed = np.cumsum(advance, dtype=np.int32 if narrow else np.int64)
    at = np.flatnonzero(counts != 0)
    indptr = np.searchsorted(at, starts)
    firsts = starts[:-1]
    before = np.where(firsts > 0, passed.take(firsts - 1, mode="wrap") if len(passed) else 0, 0) + 1
    bins = passed.take(at).astype(np.int64)
    bins -= np.repeat(before, np.diff(indptr))
    return indptr, bins, counts.take(at).astype(np.int64)


def _with(short: NDArray[np.integer], places: Int, values: Int) -> NDArray[np.integer]:
    """Return one-byte values with larger ones put in their places, in the narrowest type that holds all."""
    if not len(places):
        return short
    largest = int(values.max())
    kind = np.uint8 if largest < 1 << 8 else np.uint16 if largest < 1 << 16 else np.int64
    wide: NDArray[np.integer] = short.astype(kind)
    wide[places] = values
    return wide
