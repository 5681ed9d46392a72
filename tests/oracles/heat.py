"""Heat maps counted slowly: one sample or bin at a time, in whole numbers and fractions."""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import itemgetter


def nested_row(value: int, half: int, unit: int = 1) -> tuple[int, int]:
    """The row of a value where an octave has `half` rows, by doubling until it fits."""
    units, wide = value // unit, 1
    while units // wide >= 2 * half:
        wide *= 2
    return units // wide * wide * unit, (units // wide + 1) * wide * unit


def spread(ranges: Iterable[tuple[int, int, int]], edges: Sequence[Fraction]) -> list[Fraction]:
    """Counts of [lower, upper) over rows between edges, each evenly filled."""
    out = [Fraction(0)] * (len(edges) - 1)
    whole = [int(edge) if edge.denominator == 1 else edge for edge in edges]  # the same numbers, quicker
    for lower, upper, count in ranges:
        for row, (low, high) in enumerate(pairwise(whole)):
            if lower < high and upper > low:
                shared = min(upper, high) - max(lower, low)
                out[row] += count if shared == upper - lower else count * Fraction(shared) / (upper - lower)
    return out


def running(ranges: Sequence[tuple[int, int, int]]) -> Callable[[Fraction], Fraction]:
    """How many samples lie below an edge, of bins [lower, upper) that do not overlap, each evenly filled."""
    bins = sorted(ranges)
    before = [0, *accumulate(count for *_, count in bins)]

    @functools.cache
    def below(edge: Fraction) -> Fraction:
        edge = int(edge) if edge.denominator == 1 else edge  # the same number, quicker
        place = bisect_left(bins, edge, key=itemgetter(0))  # the last bin that begins below the edge is before it
        if not place:
            return Fraction(0)
        lower, upper, count = bins[place - 1]
        return Fraction(before[place]) if edge >= upper else before[place - 1] + Fraction(count * (edge - lower), upper - lower)

    return below


def equal(low: int, high: int, rows: int) -> list[Fraction]:
    """Edges of equal rows."""
    return [low + Fraction(high - low, rows) * row for row in range(rows + 1)]


def trace_boxes(events: Iterable[tuple[int, int]], row: int, most: int, column: int) -> Counter:
    """What a script that draws a trace counts: (time, latency) by column since the first event, and row, below `most`."""
    found: Counter = Counter()
    first = None
    for time, latency in events:
        first = time if first is None else first
        if latency < most:
            found[(time - first) // column, latency // row * row] += 1
    return found
