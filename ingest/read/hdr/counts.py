"""Packed counts of many HdrHistogram payloads -> bins and counts, all lines of a batch at once, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ingest.core.csr import gather, joined_rows, row_sums
from ingest.read.hdr import words
from ingest.read.hdr.codec import ANY_SIZE, PAST, Payload
from ingest.read.hdr.words import CONTINUED

Int = NDArray[np.int64]

MOST_SAMPLES = 1 << 53
CUT = "the last count is cut off"
TOO_LONG = "a count or gap of 2^55 or more"
NEGATIVE = "a count below zero"
TOO_MANY = "more than 2^53 samples"


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
    texts = [payload.words for payload in payloads]
    long = max(map(len, texts)) > min(payload.slots for payload in payloads)
    if long or any([len(text) and text[-1] >= CONTINUED for text in texts]):  # noqa: C419  # a list takes half as long
        for row, payload in enumerate(payloads):
            text = payload.words
            if len(text) and text[-1] >= CONTINUED:
                faults[row] = CUT
            elif len(text) > payload.slots and np.count_nonzero(np.frombuffer(text, np.uint8) < CONTINUED) > payload.slots:
                faults[row] = PAST
    for row in faults:
        texts[row] = b""
    indptr, bins, counts, too_long = words.rows_of(texts)
    faults.update(dict.fromkeys(too_long, TOO_LONG))
    return indptr, bins, counts


def _fixed(payloads: Sequence[Payload], size: int, faults: dict[int, str]) -> tuple[Int, Int, Int]:
    """Return CSR rows of V0 and V1 payloads with counts of `size` bytes."""
    texts = [payload.words[: len(payload.words) // size * size] for payload in payloads]
    for row, payload in enumerate(payloads):
        if len(payload.words) % size:
            faults[row] = CUT
            texts[row] = b""
    slots = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) // size for text in texts], out=slots[1:])
    data = np.frombuffer(b"".join(texts), np.dtype(f">i{size}"))
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
