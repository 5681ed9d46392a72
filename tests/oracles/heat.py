"""Heat maps counted slowly: one sample or bin at a time, in whole numbers and fractions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise


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
