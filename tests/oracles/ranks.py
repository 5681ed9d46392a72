"""What samples of unlike bins can be, by the rule alone: plain loops over single samples, each known by the ends of its bin.

A sample of a bin lies from `low` to `top` ns, both included; `top` is infinite where the bin has no end. Of the sample of a rank
in order of size is known: it is at least the lowest x at or below which so many samples may lie, as their bins begin there or
below, and at most the lowest x at or below which so many surely lie, as their bins end there.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

from tests.oracles import brute, hdr

Sample = tuple[int, float]  # low and top in ns
Bins = Callable[[int], Sample]  # the ends of the bin that a latency in ns is counted in

MS = 1_000_000


def between(samples: Sequence[Sample], rank: int) -> tuple[float, float]:
    """Return the least and the most that the sample of a rank (1 is the smallest) can be."""
    least = next(x for x in sorted({low for low, _ in samples}) if sum(low <= x for low, _ in samples) >= rank)
    most = next(x for x in sorted({top for _, top in samples}) if sum(top <= x for _, top in samples) >= rank)
    return least, most


def shares_below(samples: Sequence[Sample], threshold: int) -> tuple[float, float]:
    """Return the least and the largest share of samples that can lie below a threshold in ns."""
    surely, possibly = sum(top < threshold for _, top in samples), sum(low < threshold for low, _ in samples)
    return surely / len(samples), possibly / len(samples)


def means(samples: Sequence[Sample]) -> tuple[float, float]:
    """Return the least and the largest mean in ns."""
    return sum(low for low, _ in samples) / len(samples), sum(top for _, top in samples) / len(samples)


def rank_of(percent: str, count: int) -> int:
    """Return the nearest rank."""
    return max(math.ceil(count * Fraction(percent) / 100), 1)


def fio(coarseness: int) -> Bins:
    """fio's bins in ns, 29 groups of 64."""
    bins = 29 * 64 >> coarseness

    def ends(value: int) -> Sample:
        index = brute.index_of(value, 29 * 64 - 1) >> coarseness
        low, high = brute.edges(bins)[index : index + 2]
        return low, math.inf if index == bins - 1 else high - 1

    return ends


def raw(half: int) -> Bins:
    """Bins of single latencies: so many an octave, the first of 1 ns, without an end."""

    def ends(value: int) -> Sample:
        width = 1 << max(value.bit_length() - (2 * half).bit_length() + 1, 0)
        return value // width * width, value // width * width + width - 1

    return ends


def hdr_bins(digits: int, magnitude: int = 0) -> Bins:
    """HdrHistogram's bins of values recorded in ns."""

    def ends(value: int) -> Sample:
        index = hdr.index_of(value, digits, magnitude)
        return hdr.lower_edge(index, digits, magnitude), hdr.lower_edge(index + 1, digits, magnitude) - 1

    return ends


def listed(ends_ns: Sequence[int]) -> Bins:
    """Bins that end at the listed latencies, these included, and one beyond."""

    def ends(value: int) -> Sample:
        place = bisect_left(ends_ns, value)
        low = ends_ns[place - 1] + 1 if place else 0
        return low, ends_ns[place] if place < len(ends_ns) else math.inf

    return ends


@cache
def exponential_end(number: int, scale: int) -> int:
    """Return 2^(number / 2^scale) ms in whole ns, rounded down."""
    with localcontext() as context:
        context.prec = 80
        power = Decimal(number) / (1 << scale) if scale >= 0 else Decimal(number) * (1 << -scale)
        value = Decimal(2) ** power * MS
        nearest = value.to_integral_value()
        return int(nearest) if abs(value - nearest) < Decimal("1e-40") else math.floor(value)


def exponential_number(value: int, scale: int) -> int:
    """Return the number of OpenTelemetry's exponential bucket of a latency in ns; the unit is ms."""
    number = math.floor(math.log2(value / MS) * 2.0**scale) - 2
    while exponential_end(number + 1, scale) < value:
        number += 1
    return number


def exponential(scale: int) -> Bins:
    """OpenTelemetry's exponential bins of a scale."""

    def ends(value: int) -> Sample:
        number = exponential_number(value, scale)
        return exponential_end(number, scale) + 1, exponential_end(number + 1, scale)

    return ends
