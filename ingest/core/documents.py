"""Intervals <-> documents: packed bins and document ids.

A document is the histogram of one series in one window. Its bins are packed as records of bin number and count; the
narrowest of four codings that holds them is taken, so that a typical fio bin takes three bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from ingest.core import kernel
from ingest.core.errors import InputError
from ingest.core.intervals import NO_BYTES, NO_MAX, NO_MIN, NO_SUM, Exact, Int, Intervals, Key, exact_of, gather, merged
from ingest.core.labels import Series
from ingest.core.layout import Layout

CODINGS = {
    1: np.dtype([("bin", "<u2"), ("count", "u1")]),
    2: np.dtype([("bin", "<u2"), ("count", "<u2")]),
    3: np.dtype([("bin", "<u2"), ("count", "<u4")]),
    4: np.dtype([("bin", "<u4"), ("count", "<i8")]),
}
WINDOW_BITS = 36
WINDOW_BIAS = 1 << (WINDOW_BITS - 1)
YEAR_NS = 31_556_952 * 10**9


@dataclass(frozen=True, slots=True)
class Blobs:
    """Packed bins of many rows in one text: those of row i are `text[begin[i]:end[i]]`."""

    text: bytes
    begin: Int
    end: Int

    def each(self) -> list[bytes]:
        """Return the bytes of each row."""
        return [self.text[begin:end] for begin, end in zip(self.begin.tolist(), self.end.tolist(), strict=True)]


@dataclass(frozen=True, slots=True)
class Documents:
    """Packed documents of one layout: parallel arrays, and each one's bins as bytes. `series` are codes into `table`."""

    layout: Layout
    table: Sequence[Series]
    series: Int
    start_ns: Int
    count: Int
    coding: Int
    blobs: Blobs
    exact: Exact | None

    def __len__(self) -> int:
        return len(self.series)


def document_ids(series_id: Int, start_ns: Int, step_ns: int) -> Int:
    """Return the id of each document: series * 2^36 + 2^35 + window number; ValueError if a window is out of range."""
    window = start_ns // step_ns + WINDOW_BIAS
    if len(window) and (int(window.min()) < 0 or int(window.max()) >= 1 << WINDOW_BITS):
        raise ValueError("a time stamp lies outside the range that can be stored at this step")
    return (series_id << WINDOW_BITS) + window


def check_storable(parts: Sequence[Intervals], step_ns: int, path: Path) -> None:
    """Raise InputError where windows of a file lie so far from 1970 that their ids would not hold them."""
    reach = WINDOW_BIAS * step_ns
    for part in parts:
        if len(part) and not -reach <= int(part.start_ns.min()) <= int(part.start_ns.max()) < reach:
            raise InputError(f"a time stamp more than {reach // YEAR_NS} years from 1970: a larger --step holds it", path)


def window_of(ids: Int, step_ns: int) -> Int:
    """Return the window start in ns of document ids."""
    return ((ids & ((1 << WINDOW_BITS) - 1)) - WINDOW_BIAS) * step_ns


def id_range(series_id: int, begin_ns: int | None, end_ns: int | None, step_ns: int) -> tuple[int, int]:
    """Return the first and last document id of a series whose windows start in [floor(begin), end)."""
    base = series_id << WINDOW_BITS
    low = 0 if begin_ns is None else max(0, begin_ns // step_ns + WINDOW_BIAS)
    high = (1 << WINDOW_BITS) - 1 if end_ns is None else min((1 << WINDOW_BITS) - 1, -(-end_ns // step_ns) + WINDOW_BIAS - 1)
    return base + low, base + high


def known_only(values: Int, known: NDArray[np.bool_]) -> list[int | None]:
    """Return the values as a list, None where they are not known."""
    return [value if sure else None for value, sure in zip(values.tolist(), known.tolist(), strict=True)]


def told_exact(
    sums: Sequence[int | None],
    lows: Sequence[int | None],
    highs: Sequence[int | None],
    moved: Sequence[int | None] | None = None,
) -> Exact:
    """Return exact values as stores keep them, None where they are unknown; `moved` are bytes of rows without bins."""
    extremes = ((sums, NO_SUM), (lows, NO_MIN), (highs, NO_MAX))
    total, low, high = (np.array([none if value is None else value for value in values], np.int64) for values, none in extremes)
    if moved is None or all(value is None for value in moved):
        return exact_of(total, low, high)
    return exact_of(total, low, high, np.array([NO_BYTES if value is None else value for value in moved], np.int64))


def pack(windows: Intervals[Series]) -> Documents:
    """Return windows (one row per series and window) as documents."""
    count = windows.samples if windows.completions is None else windows.completions
    columns = windows.layout, windows.table, windows.series, windows.start_ns, count
    return Documents(*columns, *packed_bins(windows), windows.exact)


def packed_bins(windows: Intervals) -> tuple[Int, Blobs]:
    """Return the coding of each row and its bins in it: what `unpack` reads.

    All rows are laid out in the coding of most, which is quicker than to pick those; of the others nothing is read there.
    """
    codings = _codings(windows)
    most = int(np.bincount(codings, minlength=min(CODINGS) + 1).argmax()) or min(CODINGS)
    texts = [_records(windows.bins, windows.counts, most)]
    cuts = windows.indptr * CODINGS[most].itemsize
    begin, end = cuts[:-1].copy(), cuts[1:].copy()
    for code in sorted(CODINGS.keys() - {most}):
        rows = np.flatnonzero(codings == code)
        if len(rows):
            indptr, flat = gather(windows.indptr, rows)
            cuts = indptr * CODINGS[code].itemsize + sum(map(len, texts))
            begin[rows], end[rows] = cuts[:-1], cuts[1:]
            texts.append(_records(windows.bins[flat], windows.counts[flat], code))
    return codings, Blobs(b"".join(texts), begin, end)


def _records(bins: Int, counts: Int, code: int) -> bytes:
    """Return bins and counts in a coding; counts that do not fit are cut off."""
    records = np.empty(len(bins), CODINGS[code])
    records["bin"], records["count"] = bins, counts
    return records.tobytes()


def _codings(windows: Intervals) -> Int:
    """Return the narrowest coding of each row."""
    largest = np.zeros(len(windows), np.int64)
    filled = np.flatnonzero(np.diff(windows.indptr) > 0)
    if len(filled):
        largest[filled] = np.maximum.reduceat(windows.counts, windows.indptr[filled])
    wide = windows.layout.bins > 1 << 16
    codes = np.where(largest < 1 << 8, 1, np.where(largest < 1 << 16, 2, np.where(largest < 1 << 32, 3, 4)))
    return np.where(wide, 4, codes).astype(np.int64)


def unpack(coding: NDArray[np.integer], blobs: Sequence[bytes]) -> tuple[Int, Int, Int]:
    """Return CSR arrays (indptr, bins, counts) of packed bins."""
    sizes = np.fromiter(map(len, blobs), np.int64, len(blobs))
    return unpacked(np.asarray(coding, np.int64), sizes, b"".join(blobs))


def unpacked(codes: Int, sizes: Int, text: bytes) -> tuple[Int, Int, Int]:
    """Return CSR arrays (indptr, bins, counts) of packed bins, those of each row in its coding and so many bytes of a text."""
    itemsize = np.array([0, *(CODINGS[code].itemsize for code in sorted(CODINGS))])
    width = sizes // itemsize[codes]
    indptr = np.concatenate([[0], np.cumsum(width)])
    if kernel.unpack_rows is not None:
        filled = np.empty((2, int(indptr[-1])), np.int64)
        kernel.unpack_rows(text, codes, indptr, *filled)
        return indptr, filled[0], filled[1]
    present = np.flatnonzero(np.bincount(codes)).tolist()
    if len(present) < 2:
        return indptr, *_decoded([text], present[0] if present else 1)
    ends = np.cumsum(sizes)
    blobs = Blobs(text, ends - sizes, ends).each()
    decoded = {code: _decoded([blobs[row] for row in np.flatnonzero(codes == code).tolist()], code) for code in present}
    starts = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])
    taken = dict.fromkeys(present, 0)
    bins, counts = [], []
    for code, entries in zip(codes[starts].tolist(), np.add.reduceat(width, starts).tolist(), strict=True):
        begin, taken[code] = taken[code], taken[code] + entries
        bins.append(decoded[code][0][begin : taken[code]])
        counts.append(decoded[code][1][begin : taken[code]])
    return indptr, np.concatenate(bins), np.concatenate(counts)


def _decoded(blobs: Sequence[bytes], code: int) -> tuple[Int, Int]:
    """Return bins and counts of blobs of one coding after one another."""
    records = np.frombuffer(b"".join(blobs), CODINGS[code])
    return records["bin"].astype(np.int64), records["count"].astype(np.int64)


class Whole(Generic[Key]):
    """Lets windows through when they are whole: the newest window of each series is held until a newer one begins.

    Each layout is held for itself: windows keep the bins that they were recorded in.
    """

    def __init__(self) -> None:
        self._held: dict[Layout, Intervals[Key]] = {}

    def add(self, parts: Sequence[Intervals[Key]]) -> Iterator[Intervals[Key]]:
        """Yield the windows that are whole now; rows of one series come in time order from chunk to chunk."""
        for layout, rows in self._hold(parts):
            newest = np.full(len(rows.table), np.iinfo(np.int64).min)
            np.maximum.at(newest, rows.series, rows.start_ns)
            last = rows.start_ns == newest[rows.series]
            self._held[layout] = rows.take(np.flatnonzero(last))
            if not last.all():
                yield rows.take(np.flatnonzero(~last))

    def add_all(self, parts: Sequence[Intervals[Key]]) -> Iterator[Intervals[Key]]:
        """Hold everything back: an I/O in flight for long reaches windows that are long past."""
        self._hold(parts)
        yield from ()

    def _hold(self, parts: Sequence[Intervals[Key]]) -> list[tuple[Layout, Intervals[Key]]]:
        """Add parts to what is held; return the layouts of these parts, with all that is held of each."""
        new: dict[Layout, list[Intervals[Key]]] = {}
        for part in parts:
            if len(part):
                new.setdefault(part.layout, []).append(part)
        for layout, filled in new.items():
            held = self._held.get(layout)
            self._held[layout] = merged([*([held] if held is not None else []), *filled])
        return [(layout, self._held[layout]) for layout in new if len(self._held[layout])]

    def rest(self) -> Iterator[Intervals[Key]]:
        """Yield the windows that are still held."""
        held, self._held = self._held, {}
        yield from held.values()
