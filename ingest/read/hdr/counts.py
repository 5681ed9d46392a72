"""Packed counts of many HdrHistogram payloads -> bins and counts, all lines of a batch in one pass.

V2 writes words of 7 bits a byte, low end first, each byte but the last marked by its highest bit, ZigZag:

    byte      3E        F5 03            00                 05
    word      62        501              0                  5
    ZigZag    31        -251             0                  -3
    means     31 here   251 zeros        one zero           3 zeros

So a word ends wherever a byte is below 128. Nearly all words are one byte long: two tables hold for each byte how far it
advances and what it counts, a running sum gives each count's bin. Bytes of longer words say nothing by themselves; what
these words say is put in the place of their last byte. Words of nine bytes (counts from 2^55) are refused: no benchmark
counts that far.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ingest.core.csr import gather, joined_rows, row_sums
from ingest.core.dataclass import dataclass
from ingest.read.hdr.codec import ANY_SIZE, PAST, Payload

Int = NDArray[np.int64]
Bytes = NDArray[np.uint8]

CONTINUED = 128
LONGEST_WORD = 8
MOST_SAMPLES = 1 << 53
FAR = 1 << 40
CUT = "the last count is cut off"
TOO_LONG = "a count or gap of 2^55 or more"
NEGATIVE = "a count below zero"
TOO_MANY = "more than 2^53 samples"

_BYTES = np.arange(256)
_ODD = _BYTES % 2 == 1
ADVANCE = np.where(_BYTES >= CONTINUED, 0, np.where(_ODD, (_BYTES + 1) // 2, 1)).astype(np.uint8).tobytes()
COUNTS = np.where((_BYTES >= CONTINUED) | _ODD, 0, _BYTES // 2).astype(np.uint8).tobytes()
INT32_MAX = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Counts:
    """CSR rows of bins and counts, one a payload; `faults` gives the reason for each row that holds none because of it."""

    indptr: Int
    bins: Int
    counts: Int
    faults: dict[int, str]


def counts_of(payloads: Sequence[Payload]) -> Counts:
    """Return the counts of all payloads, bin by bin, exact; a payload with a fault gets an empty row and a reason."""
    faults: dict[int, str] = {}
    sizes = np.array([payload.word_size for payload in payloads], np.int64)
    present = np.flatnonzero(np.bincount(sizes)).tolist() if len(sizes) else []
    if present == [ANY_SIZE]:
        indptr, bins, counts = _zigzag(payloads, faults)
    else:
        parts = []
        order = np.argsort(sizes, kind="stable")
        for size in present:
            rows = np.flatnonzero(sizes == size).tolist()
            size_faults: dict[int, str] = {}
            chosen = [payloads[row] for row in rows]
            parts.append(_zigzag(chosen, size_faults) if size == ANY_SIZE else _fixed(chosen, size, size_faults))
            faults.update({rows[at]: reason for at, reason in size_faults.items()})
        indptr, bins, counts = _reordered(parts, order)
    return _checked(payloads, indptr, bins, counts, faults)


def _reordered(parts: Sequence[tuple[Int, Int, Int]], order: Int) -> tuple[Int, Int, Int]:
    """Return the rows of parts laid after one another, each moved back to its place in `order`."""
    if not parts:
        none = np.empty(0, np.int64)
        return np.zeros(1, np.int64), none, none
    indptr = joined_rows([part[0] for part in parts])
    bins, counts = np.concatenate([part[1] for part in parts]), np.concatenate([part[2] for part in parts])
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    pointers, entries = gather(indptr, back)
    return pointers, bins[entries], counts[entries]


def _checked(payloads: Sequence[Payload], indptr: Int, bins: Int, counts: Int, faults: dict[int, str]) -> Counts:
    """Return the rows without those that have a fault: a bin outside the histogram's range, too many samples."""
    width = np.diff(indptr)
    filled = np.flatnonzero(width)
    slots = np.array([payload.slots for payload in payloads], np.int64)
    last = bins[indptr[1:][filled] - 1]
    for row in filled[last >= slots[filled]].tolist():
        faults.setdefault(row, PAST)
    if len(counts) and int(counts.max()) >= MOST_SAMPLES >> 20:
        rough = np.zeros(len(payloads))
        rough[filled] = np.add.reduceat(counts.astype(np.float64), indptr[:-1][filled])
        for row in np.flatnonzero((rough > MOST_SAMPLES) | (row_sums(indptr, counts) > MOST_SAMPLES)).tolist():
            faults.setdefault(row, TOO_MANY)
    if not faults:
        return Counts(indptr, bins, counts, faults)
    good = np.ones(len(payloads), np.bool_)
    good[list(faults)] = False
    keep = np.repeat(good, width)
    pointers = np.zeros(len(indptr), np.int64)
    np.cumsum(np.where(good, width, 0), out=pointers[1:])
    return Counts(pointers, bins[keep], counts[keep], faults)


def _zigzag(payloads: Sequence[Payload], faults: dict[int, str]) -> tuple[Int, Int, Int]:
    """Return CSR rows of V2 payloads."""
    words = [payload.words for payload in payloads]
    for row, payload in enumerate(payloads):
        text = payload.words
        if len(text) and text[-1] >= CONTINUED:
            faults[row] = CUT
        elif len(text) > payload.slots and np.count_nonzero(np.frombuffer(text, np.uint8) < CONTINUED) > payload.slots:
            faults[row] = PAST
    for row in faults:
        words[row] = b""
    starts = np.zeros(len(words) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, words), np.int64, len(words)), out=starts[1:])
    joined = b"".join(words)
    data = np.frombuffer(joined, np.uint8)
    advance: NDArray[np.integer] = np.frombuffer(joined.translate(ADVANCE), np.uint8)
    counts: NDArray[np.integer] = np.frombuffer(joined.translate(COUNTS), np.uint8)
    continued = np.flatnonzero(data >= CONTINUED)
    if len(continued):
        last = continued[np.append(np.diff(continued) > 1, True)] + 1
        first = continued[np.append(True, np.diff(continued) > 1)]
        sizes = last - first + 1
        values = _long_words(data, last, sizes)
        for row in np.unique(np.searchsorted(starts, last[sizes > LONGEST_WORD], side="right") - 1).tolist():
            faults[row] = TOO_LONG
        odd = values & 1 == 1
        advance = _with(advance, last, np.where(odd, np.minimum((values + 1) >> 1, FAR), 1))
        counts = _with(counts, last, np.where(odd, 0, values >> 1))
    return _placed(advance, counts, starts)


def _with(short: NDArray[np.integer], places: Int, values: Int) -> NDArray[np.integer]:
    """Return one-byte values with larger ones put in their places, in the narrowest type that holds all."""
    largest = int(values.max(initial=0))
    kind = np.uint8 if largest < 1 << 8 else np.uint16 if largest < 1 << 16 else np.int64
    wide: NDArray[np.integer] = short.astype(kind)
    wide[places] = values
    return wide


def _long_words(data: Bytes, ends: Int, sizes: Int) -> Int:
    """Return the values of words of two bytes or more; of those longer than eight bytes, of their last eight."""
    values = data[ends].astype(np.int64)
    for back in range(1, LONGEST_WORD):
        at = np.flatnonzero(sizes > back)
        if not len(at):
            break
        values[at] = values[at] << 7 | data[ends[at] - back] & 127
    return values


def _placed(advance: NDArray[np.integer], counts: NDArray[np.integer], starts: Int) -> tuple[Int, Int, Int]:
    """Return CSR rows: each count with its bin, the sum of all advances before it in its row. A count itself advances by 1."""
    narrow = len(advance) * np.iinfo(advance.dtype).max <= INT32_MAX or int(advance.sum(dtype=np.int64)) <= INT32_MAX
    passed = np.cumsum(advance, dtype=np.int32 if narrow else np.int64)
    at = np.flatnonzero(counts != 0)
    indptr = np.searchsorted(at, starts)
    firsts = starts[:-1]
    before = np.where(firsts > 0, passed.take(firsts - 1, mode="wrap") if len(passed) else 0, 0) + 1
    bins = passed.take(at).astype(np.int64)
    bins -= np.repeat(before, np.diff(indptr))
    return indptr, bins, counts.take(at).astype(np.int64)


def _fixed(payloads: Sequence[Payload], size: int, faults: dict[int, str]) -> tuple[Int, Int, Int]:
    """Return CSR rows of V0 and V1 payloads with counts of `size` bytes."""
    words = [payload.words[: len(payload.words) // size * size] for payload in payloads]
    for row, payload in enumerate(payloads):
        if len(payload.words) % size:
            faults[row] = CUT
            words[row] = b""
    slots = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(text) // size for text in words], out=slots[1:])
    data = np.frombuffer(b"".join(words), np.dtype(f">i{size}"))
    at = np.flatnonzero(data)
    indptr = np.searchsorted(at, slots)
    counts = data[at].astype(np.int64)
    for row in np.unique(np.searchsorted(indptr, np.flatnonzero(counts < 0), side="right") - 1).tolist():
        faults[row] = NEGATIVE
    bins = at - np.repeat(slots[:-1], np.diff(indptr))
    if not any(payload.shift for payload in payloads):
        return indptr, bins, counts
    rows = np.repeat(np.arange(len(payloads)), np.diff(indptr))
    slots_of = np.array([payload.slots for payload in payloads])[rows]
    shift = np.array([payload.shift for payload in payloads])[rows]
    bins = np.where(bins < slots_of, (bins + shift) % slots_of, bins)
    order = np.lexsort((bins, rows))
    return indptr, bins[order], counts[order]


def taken(counts: Counts, rows: list[int]) -> tuple[Int, Int, Int]:
    """Return the CSR arrays of some rows."""
    if len(rows) == len(counts.indptr) - 1:
        return counts.indptr, counts.bins, counts.counts
    indptr, flat = gather(counts.indptr, np.array(rows, np.int64))
    return indptr, counts.bins[flat], counts.counts[flat]
