"""The percentile distribution as HdrHistogram prints it (hgrm): one text a group, equal to the Java library's.

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

import math
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from ingest.core.intervals import Intervals
from ingest.core.layout import Layout, LogLinear, hdr_half
from ingest.core.plain import shown
from ingest.core.ranks import reported
from ingest.core.series import Group
from ingest.query.curves import LAST, TICKS, levels
from ingest.query.means import check_bins
from ingest.query.question import Answer

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
    lines.append(
        f"#[Buckets = {_buckets(windows.layout, int(windows.bins[-1])):>12}, SubBuckets     = {2 * _half(windows.layout):>12}]\n"
    )
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


def _buckets(layout: Layout, last: int) -> int:
    """Return how many octaves a histogram needs that holds the last bin."""
    return max(last // _half(layout), 1)


def _half(layout: Layout) -> int:
    """Return the bins an octave before coarsening."""
    return layout.half if isinstance(layout, LogLinear) else layout.octave
