"""Histograms that Aerospike's asbench prints each period (`--output-file FILE`), an operation a line.

    read_hist:
            Bucket range 0:
                    Range min: 100us
                    Range max: 4000us
                    Bucket width: 100us
    read_hist 2026-11-24T19:12:11Z, 1.00031s, 901, 0:59, 100:122, 200:149, 300:109

Latencies are whole us, cut off; `100:122` is from 100 us to just below the next bucket, `0:` below the first one, and one at the
end of the last bucket is above all. A line holds what was counted since the line before. Its stamp is when it was printed, in
whole seconds cut off: lines of an operation follow each other without a gap where their stamps allow it.

Source: aerospike/aerospike-benchmark, histogram.c and latency_output.c (August 2026); its histogram.c wrote what tests read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ingest.core.units import UNITS_NS, iso_ns
from ingest.read.context import Context
from ingest.read.described.description import NDJSON, HistogramDescription
from ingest.read.format_names import ASBENCH
from ingest.read.polls import OPEN, FileBin, FileHistogram, Lost, Polls, WrongError, in_bins, lines_of, polled
from ingest.read.text import CUT_OFF

SECOND, US = UNITS_NS["s"], UNITS_NS["us"]
RANGES = ((100, 4000, 100), (4000, 64_000, 1000), (64_000, 128_000, 4000))  # us; what all versions have
MOST_BUCKETS = 1400
BEGUN = re.compile(r"^(?:read|write|udf)_hist (?=[0-9]{4}-)")
LINE = re.compile(
    r"^(read|write|udf)_hist ([0-9]{4}-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z), "
    r"([0-9]{1,9}(?:\.[0-9]{1,9})?(?:e[+-][0-9][0-9])?)s, ([0-9]{1,18})((?:, [0-9]{1,18}:[0-9]{1,18})*)$"
)
BUCKETS = re.compile(r"(?:, [0-9]{1,18}:[0-9]{1,18}){2}")  # of a line whose beginning was damaged
NO_HISTOGRAM = "no histogram: not `read_hist TIME, SECONDSs, COUNT, BUCKET:COUNT, ...`"
LIMIT = re.compile(r"^\s+(Range min|Range max|Bucket width): ([0-9]{1,12})us$")


class _Buckets(NamedTuple):
    """The buckets of a file in us: where each ends by where it begins, None for what lies above all, and their last ns."""

    ends: dict[int, int | None]
    rule: tuple[int, ...]

    @staticmethod
    def of(ranges: tuple[tuple[int, int, int], ...]) -> _Buckets:
        """Return the buckets of ranges (from, to, width), each of which begins where the one before ends."""
        ends: dict[int, int | None] = {0: ranges[0][0]}
        for low, high, width in ranges:
            ends |= {at: at + width for at in range(low, high, width)}
        rule = tuple(end * US - 1 for end in ends.values() if end is not None)
        return _Buckets(ends | {ranges[-1][1]: None}, rule)

    def bins(self, text: str) -> list[FileBin]:
        """Return the bins of a line; WrongError for a bucket that there is not."""
        found = []
        for cell in text.split(", ")[1:]:
            low, _, count = cell.partition(":")
            if int(low) not in self.ends:
                raise WrongError("a bucket that the head of the file does not name")
            end = self.ends[int(low)]
            found.append(FileBin(int(low) * US - 1, OPEN if end is None else end * US - 1, int(count)))
        return found


def read(path: Path, context: Context, held: Polls) -> None:
    """Add the histograms of a file to `held`."""
    buckets, found = _Buckets.of(RANGES), defaultdict[tuple[int, ...], list[FileHistogram]](list)  # by the ends of buckets
    limits: list[int] = []
    ends: dict[str, int] = {}
    for number, line, ended in lines_of(path, context):
        text = line.decode("utf-8", "replace").rstrip("\r")
        if not ended:
            context.account.reject(CUT_OFF, [number])
            continue
        if limit := LIMIT.match(text):
            limits.append(int(limit[2]))
            continue
        if limits and not text[:1].isspace():
            buckets, limits = _told(limits) or buckets, []
        if not BEGUN.match(text):  # what else it prints to the same place
            if BUCKETS.search(text):
                held.reject(NO_HISTOGRAM, number, Lost(context.series))
            continue
        match = LINE.match(text)
        series = context.series.replaced(op=text.partition("_")[0], kind="service")
        second = iso_ns(match[2]) if match else None
        if match is None or second is None:
            held.reject(NO_HISTOGRAM, number, Lost(series))
            continue
        start, end = _times(second, match[3], ends.get(match[1]))
        ends[match[1]] = end
        try:
            bins = buckets.bins(match[5])
            if sum(one.count for one in bins) != int(match[4]):
                raise WrongError("its buckets do not add up to its count")
        except WrongError as error:
            held.reject(str(error), number, Lost(series, start, end, int(match[4])))
            continue
        found[buckets.rule].append(FileHistogram(number, series, start, end, bins, total=False))
    for rule, alike in found.items():
        in_bins(alike, HistogramDescription("", NDJSON, "", rule=rule, is_open=True), context, held)


def _told(limits: list[int]) -> _Buckets | None:
    """Return the buckets that the head of an operation tells, None where it is none: its own limits, then those of each range."""
    ranges = tuple(zip(limits[2::3], limits[3::3], limits[4::3], strict=False))
    chained = ranges and all(low == before for (_, before, _), (low, _, _) in pairwise(ranges))
    sound = chained and all(width > 0 and low < high and (high - low) % width == 0 for low, high, width in ranges)
    few = sound and sum((high - low) // width for low, high, width in ranges) <= MOST_BUCKETS
    return _Buckets.of(ranges) if few else None


def _times(second: int, period: str, before: int | None) -> tuple[int, int]:
    """Return start and end of a line in ns: from where the one `before` ended, if the second of its stamp allows that."""
    length = min(int(Decimal(period) * SECOND), 86_400 * SECOND)
    if before is not None and second <= before + length < second + SECOND:
        return before, before + length
    end = second if before is None or before + length < second else second + SECOND - 1
    if before is not None and abs(end - length - before) <= SECOND and end > before:
        return before, end
    return end - length, end


READER = polled(ASBENCH, read, "holds no histogram: asbench writes them with --output-file FILE")
