"""HdrHistogram payloads: base64 -> header, counts and bins, all lines of a batch at once.

One HdrHistogram payload: base64 -> header and counts as bytes, of every encoding that the Java library has written.

    HISTFAAAAD942pNpmSzMwMAgwwABTBDKT4GBgdnNYMcCBvsPEBExPiEpITEFGTkRKSEeOR6FkCg1hTeM...

    u32 cookie, u32 compressed length, zlib stream of:  u32 cookie, header, counts                     (big-endian)
    V1, V2 header: u32 payload length, u32 index offset, u32 digits, u64 lowest, u64 highest, f64 ratio
    V0 header:     u32 digits, u64 lowest, u64 highest, u64 total (not used)
    double:        u32 cookie, u32 digits, u64 ratio, then an integer histogram, compressed or not

The cookie gives all: encoding, word size of the counts (V0, V1: 2, 4 or 8 bytes; V2: ZigZag LEB128 words), compressed or
not. The version line of the log does not. Traps:

* the header's sizes are claims: nothing is allocated after them. A stream is inflated up to what its own histogram could
  fill, never past 64 MiB;
* `payload length` may pass what a cut-off writer left: the bytes that are there bound it;
* a double histogram whose range has moved keeps its counts turned round in memory by the index offset. V1 writes them as
  they lie there, V2 in order of their values (there the offset says nothing); the library itself reads V1 doubles no more;
* the ratio counts behind a double cookie alone. Before integer histograms Java writes 1.0 there, and never uses what it
  reads; hdr-histogram-js writes an integer 1 (as a float: 5e-324).

Source: HdrHistogram's AbstractHistogram.java and DoubleHistogram.java; checked against the library, version by version.

ZigZag LEB128 words of V2 payloads -> bins and counts, all payloads of a batch in one pass.

V2 writes words of 7 bits a byte, low end first, each byte but the last marked by its highest bit, ZigZag:

    byte      3E        F5 03            00                 05
    word      62        501              0                  5
    ZigZag    31        -251             0                  -3
    means     31 here   251 zeros        one zero           3 zeros

So a word ends wherever a byte is below 128, and nearly all words are one byte long. A running sum of how far words advance gives
the bins of counts. Bytes of longer words say nothing by themselves; what these words say is put in the place of their last byte.
Words of nine bytes (counts from 2^55) are refused: no benchmark counts that far.
"""

from __future__ import annotations

import binascii
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.core import kernel
from ingest.core.intervals import gather, joined_rows, row_sums
from ingest.core.layout import UPPER, LogLinear, hdr_half, hdr_layout

WORD_SIZE_BITS = 0xF0
V0, V1, V2 = 0x1C849308, 0x1C849301, 0x1C849303
COMPRESSED = {0x1C849309: V0, 0x1C849302: V1, 0x1C849304: V2}
DOUBLE = (0x0C72124E, 0x0C72124F, 0x0C72124C, 0x0C72124D, 0x0C72144C, 0x0C72144D)  # 2.1 and later, 2.0, before that
NAMES = {V0: "V0", V1: "V1", V2: "V2"}
WORD_SIZES = (2, 4, 8)
ANY_SIZE = 0
OUTER = struct.Struct(">II")
DOUBLE_OUTER = struct.Struct(">IIQ")
HEADER = struct.Struct(">IIIIqqd")
HEADER_V0 = struct.Struct(">IIqqq")
USUAL, USUAL_BODY = 0x1C849314, 0x1C849313  # compressed V2, what it holds: nearly all payloads
USUAL_SHAPE = struct.Struct(">IIqqd")  # the header behind its payload length
USUAL_HEADER = struct.Struct(f">II{USUAL_SHAPE.size}s")
LARGEST_WORD = 9
MOST_INFLATED = 64 << 20
PLENTY = 1 << 20
SMALL = 1 << 14  # inflates to 16 MiB at most
PAST = "counts lie past the highest trackable value"
MOST_DIGITS = 5
HIGHEST_BIT = 62


class PayloadError(ValueError):
    """A payload that is no histogram; the text is the reason."""


class Geometry(NamedTuple):
    """How the bins of a histogram lie: digits, bins of 2^unit_magnitude or more units, each unit worth `ratio`."""

    digits: int
    unit_magnitude: int
    ratio: float = 1.0


class Payload(NamedTuple):
    """One histogram, its counts still packed: `word_size` 2, 4 or 8 bytes each, or 0 for ZigZag LEB128 words.

    `slots` is the number of bins of its range: no count may lie at or above it. Counts begin at bin `shift`, and go on
    from bin 0 where they reach the end.
    """

    geometry: Geometry
    slots: int
    word_size: int
    words: bytes | memoryview
    shift: int = 0


def payload_of(text: bytes) -> Payload:
    """Return the histogram that base64 text holds, its counts packed; PayloadError says why it holds none."""
    try:
        data = from_base64(text)
    except binascii.Error as error:
        reason = str(error)
        raise PayloadError(f"no base64 ({reason[:1].lower()}{reason[1:]})") from None
    return _usual(data) or payload_of_bytes(data)


def payload_of_bytes(data: bytes) -> Payload:
    """Return the histogram of its encoded bytes, compressed or not, integer or double; PayloadError if there is none."""
    if len(data) < OUTER.size:
        raise PayloadError("no histogram: too short")
    cookie, second = OUTER.unpack_from(data)
    double = cookie in DOUBLE
    if double:
        data = data[DOUBLE_OUTER.size :]
        if len(data) < OUTER.size:
            raise PayloadError("a double histogram that is cut off")
        cookie, second = OUTER.unpack_from(data)
    base = cookie & ~WORD_SIZE_BITS
    if base in COMPRESSED:
        body = _inflated(data, second)
        if len(body) < OUTER.size or int.from_bytes(body[:4], "big") & ~WORD_SIZE_BITS != COMPRESSED[base]:
            raise PayloadError(f"the compressed histogram is no {NAMES[COMPRESSED[base]]} histogram")
        return _histogram(body, double=double)
    if base in NAMES:
        return _histogram(data, double=double)
    raise PayloadError("no histogram: unknown cookie")


def _usual(data: bytes) -> Payload | None:
    """Return a compressed V2 integer histogram, as `payload_of_bytes` does; None of all else, and where it has a fault."""
    if not OUTER.size <= len(data) <= SMALL:
        return None
    cookie, length = OUTER.unpack_from(data)
    if cookie != USUAL:
        return None
    try:
        body = inflated(data[OUTER.size : OUTER.size + length])
        cookie, length, shape = USUAL_HEADER.unpack_from(body)
        geometry, slots = _shape(shape)
    except (zlib.error, struct.error, PayloadError):
        return None
    words = body[USUAL_HEADER.size : USUAL_HEADER.size + length]
    if cookie != USUAL_BODY or len(words) > slots * LARGEST_WORD:
        return None
    return Payload(geometry, slots, ANY_SIZE, words)


def _inflated(data: bytes, length: int) -> bytes:
    """Return the inflated stream that follows the outer header, at most as long as its own histogram can be."""
    source = memoryview(data)[OUTER.size : OUTER.size + length]
    try:
        if len(source) <= SMALL:
            return inflated(source)
        stream = zlib.decompressobj()
        body = stream.decompress(source, PLENTY)
        if not stream.eof and stream.unconsumed_tail:
            slots = _header(body, double=False)[1]
            body += stream.decompress(stream.unconsumed_tail, min(LARGEST_WORD * slots + HEADER.size, MOST_INFLATED))
    except zlib.error as error:
        reason = str(error).rpartition(": ")[2] or "zlib"  # without the numbers that differ from line to line
        raise PayloadError(f"damaged compressed data ({reason})") from None
    if stream.eof:
        return body
    raise PayloadError("inflates past the size of its own histogram" if stream.unconsumed_tail else "compressed data is cut off")


def _histogram(body: bytes, *, double: bool) -> Payload:
    """Return the histogram of an uncompressed encoding; of integer histograms the ratio is not read."""
    cookie = int.from_bytes(body[:4], "big")
    version = cookie & ~WORD_SIZE_BITS
    size = ANY_SIZE if version == V2 else (cookie & WORD_SIZE_BITS) >> 4 & 0xE
    if version != V2 and size not in WORD_SIZES:
        raise PayloadError("counts of a size that is not 2, 4 or 8 bytes")
    geometry, slots, begin, length, offset = _header(body, double=double)
    words = memoryview(body)[begin : begin + length]
    if len(words) > slots * (size or LARGEST_WORD):
        raise PayloadError(PAST)
    return Payload(geometry, slots, size, words, offset % slots if version == V1 else 0)


def _header(body: bytes, *, double: bool) -> tuple[Geometry, int, int, int, int]:
    """Return geometry, slots, where the counts begin, how many bytes they claim, and the index offset."""
    version = int.from_bytes(body[:4], "big") & ~WORD_SIZE_BITS
    header = HEADER_V0 if version == V0 else HEADER
    if len(body) < header.size:
        raise PayloadError("the histogram's header is cut off")
    if version == V0:
        _, digits, lowest, highest, _ = header.unpack_from(body)
        return *_geometry(digits, lowest, highest, 1.0), header.size, len(body), 0
    _, length, offset, digits, lowest, highest, ratio = header.unpack_from(body)
    return *_geometry(digits, lowest, highest, ratio if double else 1.0), header.size, length, offset


@lru_cache(maxsize=64)
def _shape(text: bytes) -> tuple[Geometry, int]:
    """Return geometry and slots of what a V2 header of an integer histogram says behind its payload length."""
    _, digits, lowest, highest, _ = USUAL_SHAPE.unpack(text)
    return _geometry(digits, lowest, highest, 1.0)


@lru_cache(maxsize=1024)
def _geometry(digits: int, lowest: int, highest: int, ratio: float) -> tuple[Geometry, int]:
    """Return a header's geometry, and how many bins its range has; PayloadError for impossible values."""
    if not 0 <= digits <= MOST_DIGITS:
        raise PayloadError("impossible header: the significant digits are not 0 to 5")
    if lowest < 1 or highest < 2 * lowest:
        raise PayloadError("impossible header: the lowest value is not 1 or more, or the highest not twice that")
    if not 0 < ratio < float("inf"):
        raise PayloadError("impossible header: the ratio of a double histogram is not a positive number")
    half = hdr_half(digits)
    magnitude = lowest.bit_length() - 1
    if magnitude + half.bit_length() > HIGHEST_BIT:
        raise PayloadError("impossible header: the lowest value leaves no room for the digits")
    octaves, reach = 1, 2 * half << magnitude
    while reach <= highest:
        octaves, reach = octaves + 1, reach << 1
    return Geometry(digits, magnitude, ratio), (octaves + 1) * half


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
INT32_MAX = np.iinfo(np.int32).max


class _Longer(NamedTuple):
    """Words of two bytes or more, in order: where their first and last bytes lie, how far they advance, what they count."""

    begins: Int
    ends: Int
    advance: Int
    counts: Int


def rows_of(words: Sequence[bytes | memoryview]) -> tuple[Int, Int, Int, list[int]]:
    """Return CSR rows of the words of payloads, none of them cut off, and which rows have words of more than eight bytes."""
    starts = np.zeros(len(words) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, words), np.int64, len(words)), out=starts[1:])
    data = np.frombuffer(b"".join((b"\0", *words)), np.uint8)
    if kernel.hdr_rows is not None:
        indptr, bins, counts = np.empty(len(starts), np.int64), *np.empty((2, len(data)), np.int64)
        if (entries := kernel.hdr_rows(data[1:], starts, indptr, bins, counts)) >= 0:
            return indptr, bins[:entries], counts[:entries], []
    longer = _longer_words(data)
    too_long = longer.ends[longer.ends - longer.begins >= LONGEST_WORD]
    beyond = np.flatnonzero(np.bincount(np.searchsorted(starts, too_long, side="right") - 1)) if len(too_long) else too_long
    return *_by_words(data[1:], starts, longer), beyond.tolist()


def _longer_words(data: Bytes) -> _Longer:
    """Return the words of two bytes or more; there is a byte before the first word."""
    words = data[1:]
    continued = np.flatnonzero(words >= CONTINUED)
    if not len(continued):
        return _Longer(continued, continued, continued, continued)
    begins, ends = continued[data[continued] < CONTINUED], continued[words[continued + 1] < CONTINUED] + 1
    values = _long_values(words, ends, ends - begins + 1)
    odd = values & 1 == 1
    return _Longer(begins, ends, np.where(odd, np.minimum((values + 1) >> 1, FAR), 1), np.where(odd, 0, values >> 1))


def _long_values(words: Bytes, ends: Int, sizes: Int) -> Int:
    """Return the values of words of two bytes or more; of those longer than eight bytes, of their last eight."""
    values = words[ends].astype(np.int64) << 7 | words[ends - 1] & 127
    for back in range(2, LONGEST_WORD):
        at = np.flatnonzero(sizes > back)
        if not len(at):
            break
        values[at] = values[at] << 7 | words[ends[at] - back] & 127
    return values


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


# Packed counts of many HdrHistogram payloads -> bins and counts, all lines of a batch at once, and what is wrong with them.


MOST_SAMPLES = 1 << 53
CUT = "the last count is cut off"


class Counts(NamedTuple):
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
            faults.setdefault(row, "more than 2^53 samples")
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
    indptr, bins, counts, too_long = rows_of(texts)
    faults.update(dict.fromkeys(too_long, "a count or gap of 2^55 or more"))
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
        faults[row] = "a count below zero"
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


# The layout that the bins of a histogram have in ns, and where its counts go when they do not fall on whole ns.
#
# Integer histograms, and double ones whose unit is whole ns, keep their bins. Of other double histograms (ratio 2^-20 in
# microseconds, say) each bin goes to the bin of 1 ns or more, as fine as its own, that holds its highest value: exact where
# their edges meet, else off by up to one more bin.


MOST_BINS = 1 << 24
MOST_NS = 1 << 62
PAST_RANGE = "values past 2^62 ns"
TOO_MANY_LAYOUTS = "one log mixes more bin geometries than can be held"


class Bins(NamedTuple):
    """A layout, and the length of a unit of the histogram in ns where its bins have to be moved to it."""

    layout: LogLinear
    moved_by: Fraction | None = None


class Layouts:
    """The layouts of one log; `bins` of all of them together are bounded, whatever its lines claim.

    `found` are the geometries that were met, in order, each with its layout or the reason why there is none.
    """

    def __init__(self, unit_ns: int, bins: int = 0) -> None:
        self.unit_ns = unit_ns
        self.found: dict[Geometry, Bins | str] = {}
        self.bins = bins

    def of(self, geometry: Geometry) -> Bins | str:
        """Return the layout of a geometry, or the reason why there is none."""
        known = self.found.get(geometry)
        if known is None:
            known = self._new(geometry)
            if len(self.found) < MOST_BINS >> 12:
                self.found[geometry] = known
        return known

    def _new(self, geometry: Geometry) -> Bins | str:
        unit = Fraction(geometry.ratio) * self.unit_ns
        try:
            if unit.denominator == 1:
                bins = Bins(hdr_layout(geometry.digits, geometry.unit_magnitude, int(unit)))
            else:
                whole = unit.numerator == 1 and not unit.denominator & (unit.denominator - 1)
                first_ns = math.ceil(unit * (1 << geometry.unit_magnitude))  # the width of its first bins
                target = hdr_layout(geometry.digits, first_ns.bit_length() - 1 if whole else 0, 1)
                upper = replace(target, reports=UPPER, recorded_unit_ns=first_ns if first_ns > 1 else 0)
                bins = Bins(target if whole else upper, unit)
        except (ValueError, OverflowError):
            return PAST_RANGE
        if all(not isinstance(known, Bins) or known.layout != bins.layout for known in self.found.values()):
            self.bins += bins.layout.bins
        return bins if self.bins <= MOST_BINS else TOO_MANY_LAYOUTS


def upper_edge(geometry: Geometry, index: int) -> int:
    """Return the upper edge of a bin in units of its histogram."""
    half = hdr_half(geometry.digits)
    octave = max(index // half - 1, 0)
    lower = index if index < 2 * half else (half + index % half) << octave
    return (lower + (1 << octave)) << geometry.unit_magnitude


@lru_cache(maxsize=1 << 16)
def _place(geometry: Geometry, unit: Fraction, index: int) -> int:
    """Return the highest whole ns within a bin."""
    return -(-upper_edge(geometry, index) * unit.numerator // unit.denominator) - 1


def moved(bins: Int, geometry: Geometry, target: Bins) -> Int:
    """Return the bin of the target layout for each bin; those past its end get the number of its bins, or a larger one."""
    if target.moved_by is None:
        return bins
    unit = target.moved_by
    distinct, place = np.unique(bins, return_inverse=True)
    values = [_place(geometry, unit, index) for index in distinct.tolist()]
    top = int(target.layout.edges[-1])
    inside = target.layout.index(np.array([min(value, top - 1) for value in values], np.int64))
    return np.where([value < top for value in values], inside, target.layout.bins)[place.reshape(-1)].astype(np.int64)


# base64 and zlib: by the packages pybase64 and isal where they are installed (extra `fast`), else by the standard library.
#
# What these refuse is given to the standard library, which alone decides what is damaged, and says why.


def _installed(name: str) -> Any:
    """Return a module, None where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


PYBASE64, ISAL = _installed("pybase64"), _installed("isal.isal_zlib")


def from_base64(text: bytes) -> bytes:
    """Return what strict base64 text holds; binascii.Error says why it holds nothing."""
    if PYBASE64 is not None:
        try:
            data: bytes = PYBASE64.b64decode(text, None, True)  # `validate`: named, it takes a third longer
        except binascii.Error:
            return binascii.a2b_base64(text, strict_mode=True)
        return data
    return binascii.a2b_base64(text, strict_mode=True)


def inflated(data: bytes | memoryview) -> bytes:
    """Return what a zlib stream holds, whatever follows it; zlib.error says why it holds nothing."""
    if ISAL is not None:
        try:
            body: bytes = ISAL.decompress(data)
        except ISAL.error:
            return zlib.decompress(data)
        return body
    return zlib.decompress(data)
