"""Start and length of an interval from what stands in its line, also of tools that write other things there.

    Tag=read-st,1.001,1.001,4.2,HISTF...               Cql-stress: the stamp is when the interval ended
    Tag=raw,1.000248,2.000412,4.2,HISTF...             cql-stress-scylla-bench: in place of the length stands the end
    Tag=raw,1.000000,2.000000,4.2,HISTF...             scylla-bench before 0.3.2: the end, in whole seconds
    3898.058,3899.059,637.0,HISTF...                   the C library's hdr_log_write: the end; see `origin_of`

Each rule looks at one line alone: it holds for a log that is read whole, in parts, or while it grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ingest.read.hdr.clock import NEGATIVE, SECOND, TAG, StampError, seconds_ns, split_line

USUAL, BY_END, WITH_END, SCYLLA = "", "stamped by its end", "with its end", "as scylla-bench"
ROUNDING_NS = 5_000_000
ROUNDED_SHARE = 10
ADRIFT = "its stamps count from a moment that it does not say: its first interval is taken to begin at the time in its head"
ENDED = "this tool writes the end of an interval in place of its length: taken as its end"
SAID = {
    BY_END: "this tool stamps intervals at their ends: their start is one length earlier",
    WITH_END: ENDED,
    SCYLLA: ENDED,
}


def rounding_of(length_ns: int) -> int:
    """Return by how much two intervals may overlap because their stamps are rounded, in ns."""
    return max(ROUNDING_NS, length_ns // ROUNDED_SHARE)


class Fronts(NamedTuple):
    """What stands in lines: tags, times in ns by the log's own clock, packed histograms; `righted` are the times put right."""

    tags: list[bytes]
    starts: list[int]
    lengths: list[int]
    texts: list[bytes]
    righted: list[bool]


def usual_intervals(lines: Sequence[bytes], stamps: str) -> Fronts | None:
    """Return what `interval_of` does of each line, in less time; None where one is no interval, or not cut by commas alone."""
    parts = [line.rpartition(b",") for line in lines]
    cells = [front.split(b",") for front, _, _ in parts]
    widths = {len(each) for each in cells}
    tagged = widths == {4} and all(each[0].startswith(TAG) for each in cells)
    if not (tagged or widths == {3}) or b" " in b"".join([front for front, _, _ in parts]):
        return None
    tags = [each.pop(0)[len(TAG) :] for each in cells] if tagged else [b""] * len(lines)
    try:
        starts, lengths = [seconds_ns(start) for start, _, _ in cells], [_length_ns(length) for _, length, _ in cells]
    except StampError:
        return None
    righted: list[bool] = []
    if stamps:
        printed = list(zip(starts, lengths, strict=True))
        right = [_put_right(start, length, stamps) for start, length in printed]
        righted = [before != after for before, after in zip(printed, right, strict=True)]
        starts, lengths = [start for start, _ in right], [length for _, length in right]
    return Fronts(tags, starts, lengths, [text.rstrip() for _, _, text in parts], righted) if min(lengths) >= 0 else None


def interval_of(line: bytes, stamps: str) -> tuple[bytes, int, int, bytes, bool]:
    """Return (tag, start, length, payload) of a line, times in ns by the log's own clock, and whether they were put right.

    StampError if it is no interval.
    """
    tag, start_text, length_text, payload = split_line(line)
    as_printed = start, length = seconds_ns(start_text), _length_ns(length_text)
    if stamps:
        start, length = _put_right(start, length, stamps)
    if length < 0:
        raise StampError(NEGATIVE)
    return tag, start, length, payload, bool(stamps) and (start, length) != as_printed


_length_ns = lru_cache(maxsize=64)(seconds_ns)  # nearly all intervals of a log are as long


def _put_right(start: int, length: int, stamps: str) -> tuple[int, int]:
    if stamps == BY_END:
        return start - length, length
    if stamps == WITH_END:
        return start, length - start
    whole = not start % SECOND and not length % SECOND
    return start, length - start if whole and length >= start else length
