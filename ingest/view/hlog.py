"""HdrHistogram interval logs (version 1.3, V2 payloads) and percentile distributions (hgrm), written.

HdrHistogram interval logs, written: version 1.3, V2 payloads, a tag for each op, kind and tag.

    #[Written by tailboard 0.9.0; recorded unit ns]
    #[Histogram log format version 1.3]
    #[BaseTime: 1700000000.000 (seconds since epoch)]
    #[StartTime: 1700000000.000 (seconds since epoch), 2023-11-14T22:13:20.000Z]
    "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
    Tag=insert-rt,0.000,1.000,4.317,HISTFAAAAE...

Bins of HdrHistogram's own layouts are written as they are: the Java library reads equal bins. Others (fio's) go to the
HdrHistogram bin, at least as fine, that holds the highest value of each. The words of all rows of a batch are made at once.

Source: HdrHistogram's AbstractHistogram.encodeIntoByteBuffer and HistogramLogWriter, checked by reading back with Java.

The percentile distribution as HdrHistogram prints it (hgrm): one text a group, equal to the Java library's.

           Value     Percentile TotalCount 1/(1-Percentile)

           9.735 0.000000000000          1           1.00
          65.023 0.100000000000        360           1.11
    ...
        5197.823 1.000000000000       3600
    #[Mean    =      301.706, StdDeviation   =      325.387]
    #[Max     =     5197.823, Total count    =         3600]
    #[Buckets =           13, SubBuckets     =         2048]

Source: HdrHistogram's AbstractHistogram.outputPercentileDistribution and PercentileIterator.
"""

from __future__ import annotations

import binascii
import math
import struct
import zlib
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import shown
from ingest.core.intervals import Int, Intervals
from ingest.core.labels import Group
from ingest.core.layout import Layout, LogLinear, hdr_half
from ingest.core.quantiles import reported, within_exact
from ingest.core.units import MS
from ingest.query.curves import LAST, TICKS, levels
from ingest.query.interval_log import NAMED, Form, form_of
from ingest.query.means import check_bins
from ingest.query.question import Answer
from ingest.read.hdr.tools import tag_of

INNER, OUTER = 0x1C849313, 0x1C849314
HEADER = struct.Struct(">IIIIqqd")
COMPRESSED = struct.Struct(">II")
MOST_BYTES = 9
AT_ONCE = 1 << 15  # bins whose words are made in one pass: they fit a processor's cache
LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'


def head(unit_ns: int, start_ns: int | None, version: str) -> str:
    """Return the comments and legend of a log whose stamps count from `start_ns` (None if the start of the run is not known)."""
    lines = [f"#[Written by tailboard {version}; recorded unit {NAMED[unit_ns]}]", "#[Histogram log format version 1.3]"]
    if start_ns is not None:
        seconds = _seconds(start_ns)
        lines.append(f"#[BaseTime: {seconds} (seconds since epoch)]")
        lines.append(f"#[StartTime: {seconds} (seconds since epoch), {np.datetime64(start_ns // MS, 'ms')}Z]")
    return "\n".join(lines) + "\n" + LEGEND


def _seconds(stamp_ns: int) -> str:
    """Return decimal seconds to the ms, rounded down."""
    sign, ms = ("-", -(stamp_ns // MS)) if stamp_ns < 0 else ("", stamp_ns // MS)
    return f"{sign}{ms // 1000}.{ms % 1000:03d}"


def lines(windows: Intervals[Group], names: tuple[str, ...], base_ns: int, unit_ns: int) -> Iterator[str]:
    """Yield a log line for each window; `names` are the labels of its groups, of which op, kind and tag make the tag.

    All other labels are put before it, as `gen1::insert-rt`. Where the unit of the bins is not `unit_ns`, they are moved to
    others as fine.
    """
    form = form_of(windows.layout)
    if form.unit_ns != unit_ns:
        form = Form(form.digits, 0, unit_ns)
    moved = windows if form.layout == windows.layout else windows.in_layout(form.layout)
    tags = [_tag(key, names) for key in moved.table]
    last = within_exact(moved, np.arange(len(moved)), moved.layout.values[_last_bins(moved)])
    columns = (column.tolist() for column in (moved.series, moved.start_ns, moved.end_ns, last))
    for code, start, end, highest, payload in zip(*columns, payloads(moved, form), strict=True):
        tag = f"Tag={tags[code]}," if tags[code] else ""
        length = f"{(end - start) // MS // 1000}.{(end - start) // MS % 1000:03d}"
        yield f"{tag}{_seconds(start - base_ns)},{length},{highest / MS:.3f},{payload}\n"


def _tag(key: tuple[str, ...], names: tuple[str, ...]) -> str:
    labels = dict(zip(names, key, strict=True))
    others = [value for name, value in labels.items() if name not in ("op", "kind", "tag") and value]
    tag = "::".join([*others, *([labels["tag"]] if labels.get("tag") else [])])
    return tag_of(labels.get("op", ""), labels.get("kind", ""), tag)


def payloads(rows: Intervals[Group], form: Form) -> Iterator[str]:
    """Yield the base64 text of each row's histogram, V2, compressed; rows must be in the form's layout."""
    cuts = np.searchsorted(rows.indptr, np.arange(0, len(rows.bins), AT_ONCE), side="left")
    edges = np.unique(np.concatenate([cuts, [0, len(rows)]])).tolist()
    for begin, end in pairwise(edges):
        yield from _payloads(rows.take(np.arange(begin, end)), form)


def _payloads(rows: Intervals[Group], form: Form) -> Iterator[str]:
    words, ends = _words(rows)
    data = words.tobytes()
    begin = 0
    half = rows.layout.octave
    for end, index in zip(ends.tolist(), _last_bins(rows).tolist(), strict=True):
        octaves = max(index // half, 1)
        highest = ((2 * half << form.magnitude) << (octaves - 1)) - 1
        body = HEADER.pack(INNER, end - begin, 0, form.digits, 1 << form.magnitude, max(highest, 2 << form.magnitude), 1.0)
        packed = zlib.compress(body + data[begin:end])
        yield binascii.b2a_base64(COMPRESSED.pack(OUTER, len(packed)) + packed, newline=False).decode()
        begin = end


def _last_bins(rows: Intervals[Group]) -> Int:
    """Return the highest occupied bin of each row, 0 of an empty one."""
    filled = np.flatnonzero(np.diff(rows.indptr) > 0)
    last = np.zeros(len(rows), np.int64)
    last[filled] = rows.bins[rows.indptr[1:][filled] - 1]
    return last


def _words(rows: Intervals[Group]) -> tuple[NDArray[np.uint8], Int]:
    """Return the ZigZag LEB128 words of all rows, and where each row's end: gaps (a lone zero is 0, as Java has it), counts."""
    before = np.empty(len(rows.bins), np.int64)
    before[1:] = rows.bins[:-1] + 1
    before[rows.indptr[:-1][np.diff(rows.indptr) > 0]] = 0
    gaps = rows.bins - before
    entry = np.repeat(np.arange(len(gaps)), 1 + (gaps > 0))
    is_count = np.ones(len(entry), np.bool_)
    is_count[:-1] = entry[1:] != entry[:-1]
    gap_words = np.where(gaps == 1, 0, 2 * gaps - 1)
    values = np.where(is_count, 2 * rows.counts[entry], gap_words[entry]).astype(np.uint64)
    sizes = np.ones(len(values), np.int64)
    for size in range(1, MOST_BYTES):
        sizes += values >= np.uint64(1) << np.uint64(7 * size)
    ends = np.cumsum(sizes)
    out = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    first = ends - sizes
    for place in range(int(sizes.max(initial=0))):
        at = np.flatnonzero(sizes > place)
        part = values[at] >> np.uint64(7 * place)
        more = (sizes[at] > place + 1).astype(np.uint64) << np.uint64(7)
        mask = np.uint64(0xFF) if place == MOST_BYTES - 1 else np.uint64(0x7F)
        out[first[at] + place] = (part & mask | more).astype(np.uint8)
    counted = np.searchsorted(entry, rows.indptr[1:])
    return out, np.concatenate([[0], ends])[counted]


DIGITS = {hdr_half(digits): digits for digits in range(6)}
USUAL_DIGITS = 3


def texts(answer: Answer, unit_ns: int, ticks: int = TICKS) -> Iterator[str]:
    """Yield the text of each group, latencies in units of `unit_ns`; several groups are headed by a comment with their labels.

    Windows must span the whole range (step all). Values are those that the layout reports; the mean is that of `extremes`, by
    the middle of each bin, as the Java library's. InputError of means without a histogram.
    """
    check_bins(answer, "percentile distributions")
    several = sum(len(part) for part in answer.parts) > 1
    for part in answer.parts:
        for row in range(len(part)):
            group = part.table[part.series[row]]
            labels = ", ".join(f"{name} {value or '-'}" for name, value in zip(answer.by, group, strict=True))
            yield from (f"#[{shown(labels)}]\n",) if several else ()
            yield text(part.take(np.array([row])), unit_ns, ticks)


def text(windows: Intervals[Group], unit_ns: int, ticks: int = TICKS) -> str:
    """Return the percentile distribution of one histogram (a row) with at least one sample."""
    digits = DIGITS.get(_half(windows.layout), USUAL_DIGITS)
    reaches = reported(windows)
    if windows.exact is not None and windows.exact.known_max[0]:
        reaches[-1] = windows.exact.max_ns[0]
    values = [value / unit_ns for value in reaches.tolist()]
    cumulative = np.cumsum(windows.counts).tolist()
    lines = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}\n\n"]
    for at, level in levels(cumulative, ticks):
        row = f"{_fixed(values[at], digits):>12} {_fixed(level / 100.0, 12)} {cumulative[at]:>10}"
        lines.append(f"{row}\n" if level == LAST else f"{row} {_fixed(1 / (1 - level / 100.0), 2):>14}\n")
    mean, deviation = _moments(windows)
    spread = f"{_fixed(mean / unit_ns, digits):>12}, StdDeviation   = {_fixed(deviation / unit_ns, digits):>12}"
    lines.append(f"#[Mean    = {spread}]\n")
    lines.append(f"#[Max     = {_fixed(values[-1], digits):>12}, Total count    = {cumulative[-1]:>12}]\n")
    half = _half(windows.layout)
    buckets = max(int(windows.bins[-1]) // half, 1)  # octaves that hold the last bin
    lines.append(f"#[Buckets = {buckets:>12}, SubBuckets     = {2 * half:>12}]\n")
    return "".join(lines)


def _fixed(value: float, digits: int) -> str:
    """Return a number with fixed decimals as Java prints it: halves of its shortest decimal form are rounded up."""
    return f"{Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}"


def _moments(windows: Intervals[Group]) -> tuple[float, float]:
    """Return mean and standard deviation in ns: of the exact sum where it is known, else each sample in the middle of its bin."""
    middle, total = windows.layout.middles_of(windows.bins), int(windows.counts.sum())
    if windows.exact is not None and windows.exact.known[0]:
        mean = int(windows.exact.sum_ns[0]) / total
    else:
        mean = sum(value * count for value, count in zip(middle.tolist(), windows.counts.tolist(), strict=True)) / total
    deviation = math.sqrt(float(((middle - mean) ** 2 * windows.counts).sum()) / total)
    return mean, deviation


def _half(layout: Layout) -> int:
    """Return the bins an octave before coarsening."""
    return layout.half if isinstance(layout, LogLinear) else layout.octave
