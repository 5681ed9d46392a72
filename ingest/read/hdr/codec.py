"""One HdrHistogram payload: base64 -> header and counts as bytes, of every encoding that the Java library has written.

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
"""

from __future__ import annotations

import binascii
import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ingest.core.layout import hdr_half
from ingest.read.unpacking import from_base64, inflated

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


@dataclass(frozen=True, slots=True)
class Geometry:
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
