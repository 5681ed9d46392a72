"""HdrHistogram interval logs: versions 1.01 to 1.3, of jHiccup, cassandra-stress, YCSB, wrk2 and others.

    #[Logged with jHiccup version 2.0.7-SNAPSHOT]
    #[Histogram log format version 1.2]
    #[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09 08:24:39 PDT 2015]
    "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
    0.127,1.007,2.769,HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsPEBEJISEuATEZMQ4uASkhIR4nrxg9v2lMaxhvMekILGZkKmcC...
    Tag=insert-rt,1.134,0.999,0.442,HISTFAAAAEJ42pNpmSzMwMAgxwABTBDKT4GBgdnNYMcCBvsPEBEWLj45FTExAT4pBSEBKa6UkAgBi1...

A line is an interval: start and length in seconds, its maximum, its histogram. Traps, and what is done:

* the recorded unit is nowhere stated: taken from the tool's first comment, else asked for (--recorded-unit);
* stamps are seconds since BaseTime; without one since StartTime if they lie more than a year before it, else since 1970.
  Comments further down begin another log that was appended: they replace what was said before;
* an interval that begins a little before StartTime counts (tools that read from 0.0 on lose it);
* the maximum says nothing that the histogram does not, and is not read;
* lines of one tag may overlap (unions, appended logs): overlaps by the rounding of stamps are taken off the later line, a
  line within another one goes to a further segment of its series;
* the last line may be cut off while the tool is still writing.

Source: HdrHistogram's HistogramLogWriter, HistogramLogScanner and HistogramLogReader; checked against the Java library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingest.core.errors import InputError
from ingest.core.intervals import Intervals
from ingest.core.series import Series
from ingest.read.context import Context
from ingest.read.hdr.clock import Clock, StampError
from ingest.read.hdr.codec import Payload, PayloadError, payload_of
from ingest.read.hdr.counts import counts_of
from ingest.read.hdr.layouts import Bins, Layouts, upper_edge
from ingest.read.hdr.origin import Origin, origin_of
from ingest.read.hdr.rows import COMMENT, LEGEND, Rows
from ingest.read.hdr.stamps import interval_of
from ingest.read.text import blocks, head

BATCH_BYTES = 1 << 18
TOGETHER = 32  # lines that are taken at once
CHUNK_ENTRIES = 1 << 17
CHUNK_ROWS = 20_000
HEAD_ROWS = 200
NEWLINE = 10
UNIT_UNKNOWN = "the unit that it was recorded in cannot be determined: give --recorded-unit ns, 100ns, us or ms"


@dataclass(frozen=True, slots=True)
class Peeked:
    """The head of a log: its origin, its start and where that was taken from, row width, and how its stamps count.

    `base_ns` is what the first stamps count from, 0 for epoch stamps; `largest` the largest value, in recorded units.
    """

    origin: Origin
    zero_ns: int | None
    zero_origin: str
    width_ns: int
    base_ns: int
    largest: float
    layout: str


def peek(path: Path, context: Context) -> Peeked:
    """Return the head of a log; InputError if it holds no interval that can be read."""
    text = head(path)
    origin = origin_of(text)
    clock = Clock(adrift=origin.adrift)
    widths: list[int] = []
    payloads: list[Payload] = []
    first: int | None = None
    zero: tuple[int | None, str] = (None, "unknown")
    reason = ""
    for line in text.split(b"\n"):
        if line.startswith(COMMENT):
            clock.comment(line)
            continue
        if line.startswith(LEGEND) or not line.strip() or len(widths) >= HEAD_ROWS:
            continue
        try:
            _, stamp, width, payload, _ = interval_of(line, origin.stamps)
            payloads.append(payload_of(payload))
        except (StampError, PayloadError) as error:
            reason = reason or str(error)
            continue
        if first is None:
            first = stamp
            zero = clock.zero(stamp)
        widths.append(width)
    if first is None:
        raise InputError(f"holds no interval that can be read{': ' + reason if reason else ''}", path)
    unit = context.recorded_unit_ns or origin.unit_ns
    known = Layouts(unit or 1).of(payloads[0].geometry)
    layout = str(known.layout) if isinstance(known, Bins) and unit else ""
    return Peeked(origin, *zero, sorted(widths)[len(widths) // 2], clock.base_of(first), _largest(payloads), layout)


def _largest(payloads: list[Payload]) -> float:
    """Return the upper edge of the highest bin of all payloads, in recorded units."""
    counts = counts_of(payloads)
    filled = np.flatnonzero(np.diff(counts.indptr)).tolist()
    edges = [
        upper_edge(payloads[row].geometry, int(counts.bins[counts.indptr[row + 1] - 1])) * payloads[row].geometry.ratio
        for row in filled
    ]
    return max(edges, default=0.0)


def last_end_ns(path: Path) -> int:
    """Return the latest end of all lines, by the log's own clock."""
    origin = origin_of(head(path))
    clock, latest, stamps = Clock(adrift=origin.adrift), 0, origin.stamps
    for block in blocks(path):
        for line in bytes(block).split(b"\n"):
            if line.startswith(COMMENT):
                clock.comment(line)
                continue
            try:
                _, stamp, length, _, _ = interval_of(line, stamps)
                latest = max(latest, clock.base_of(stamp) + stamp + length)
            except StampError:
                continue
    return latest


def read(path: Path, context: Context, chunk_entries: int = CHUNK_ENTRIES) -> Iterator[Intervals[Series]]:
    """Yield the intervals of a log in bounded chunks, one layout each; bins and counts exactly as the tool recorded them.

    Times are epoch ns (relative ns where the start is unknown). A tag's op, kind and tag make its series, with a
    segment for each layout and each overlapping row. Error bound: 1/128 for 2 digits, 1/1024 for 3. Lines that cannot be
    taken are counted in the account with their reason. A chunk holds about `chunk_entries` bins. Raises InputError where
    the unit is unknown or the file cannot be read.
    """
    rows = rows_of(path, context)
    try:
        yield from unpacked(rows, blocks(path, context.upto), chunk_entries)
    except InputError:
        rows.settle()
        raise
    rows.settle()


def rows_of(path: Path, context: Context) -> Rows:
    """Return what takes the lines of a log; InputError where the unit is unknown."""
    origin = origin_of(head(path))
    unit = context.recorded_unit_ns or origin.unit_ns
    if unit is None:
        raise InputError(UNIT_UNKNOWN, path)
    return Rows(context, origin, unit)


def unpacked(rows: Rows, text: Iterable[memoryview | bytes], chunk_entries: int = CHUNK_ENTRIES) -> Iterator[Intervals[Series]]:
    """Yield the intervals of blocks of whole lines in chunks; what came before an InputError is yielded before it is raised."""
    batch = min(BATCH_BYTES, 2 * chunk_entries)
    try:
        for block in text:
            ended = block[-1] == NEWLINE
            lines = bytes(block).split(b"\n")
            if ended:
                lines.pop()
            place = 0
            while place < len(lines):
                some = lines[place : place + TOGETHER]
                place += rows.take(some, whole=ended or place + len(some) < len(lines), room=batch)
                if rows.pending >= batch:
                    rows.unpack()
                    if rows.entries >= chunk_entries or rows.unpacked >= CHUNK_ROWS:
                        yield from rows.intervals()
    except InputError:
        yield from rows.intervals()
        raise
    yield from rows.intervals()
