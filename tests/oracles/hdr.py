"""HdrHistogram by its definitions alone: bins, words, logs. Slow and short; nothing of `ingest`, nothing of NumPy."""

from __future__ import annotations

import base64
import struct
import zlib


def half_of(digits: int) -> int:
    """Return half of the smallest power of two that is at least 2 * 10^digits."""
    size = 1
    while size < 2 * 10**digits:
        size *= 2
    return size // 2


def lower_edge(index: int, digits: int, magnitude: int = 0) -> int:
    """Return the lowest value of a bin."""
    half = half_of(digits)
    octave = index // half - 1
    if octave < 0:
        return index << magnitude
    return (half + index % half) << (octave + magnitude)


def index_of(value: int, digits: int, magnitude: int = 0) -> int:
    """Return the bin of a value, by search."""
    index = 0
    step = 1 << 24
    while step:
        if lower_edge(index + step, digits, magnitude) <= value:
            index += step
        step >>= 1
    return index


def zigzag(number: int) -> bytes:
    """Return a number as a ZigZag LEB128 word of at most nine bytes, the ninth carrying eight bits."""
    word = (number << 1) ^ (number >> 63)
    word &= (1 << 64) - 1
    out = bytearray()
    while word >= 0x80 and len(out) < 8:
        out.append(word & 0x7F | 0x80)
        word >>= 7
    out.append(word)
    return bytes(out)


def v2(counts: dict[int, int], digits: int = 3, lowest: int = 1, highest: int = 3_600_000_000_000, lone_zero: int = 0) -> bytes:
    """Return an uncompressed V2 encoding; `lone_zero` is how one empty bin is written: 0 by Java, -1 by C and Python."""
    words = bytearray()
    at = 0
    for index, count in sorted(counts.items()):
        gap = index - at
        if gap == 1:
            words += zigzag(lone_zero)
        elif gap:
            words += zigzag(-gap)
        words += zigzag(count)
        at = index + 1
    header = struct.pack(">IIIIqqd", 0x1C849313, len(words), 0, digits, lowest, highest, 1.0)
    return header + bytes(words)


def compressed(body: bytes) -> bytes:
    """Return what a log line holds of an encoded histogram, before base64."""
    data = zlib.compress(body)
    return struct.pack(">II", 0x1C849314, len(data)) + data


def line(start: str, length: str, counts: dict[int, int], tag: str = "", **shape: int) -> str:
    """Return a log line of counts."""
    front = f"Tag={tag}," if tag else ""
    return f"{front}{start},{length},0.000,{base64.b64encode(compressed(v2(counts, **shape))).decode()}\n"


def log(lines: list[str], head: str = "#[Logged with jHiccup]\n#[StartTime: 1700000000.000 (seconds since epoch)]\n") -> str:
    """Return a log of these lines."""
    return head + '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n' + "".join(lines)


def percentile(counts: dict[int, int], digits: int, magnitude: int, rank: int) -> int:
    """Return the highest value of the bin that holds the sample of this rank."""
    passed = 0
    for index, count in sorted(counts.items()):
        passed += count
        if passed >= rank:
            return lower_edge(index + 1, digits, magnitude) - 1
    raise AssertionError("no such rank")


def omitted(values: list[int], interval: int) -> list[int]:
    """Return the values and what each stands for: those that were due every `interval` behind it."""
    found = list(values)
    for value in values:
        missing = value - interval
        while missing >= interval:
            found.append(missing)
            missing -= interval
    return found
