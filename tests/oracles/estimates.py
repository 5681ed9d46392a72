"""The usual wrong ways, by their definitions alone: plain Python, exact fractions, no product code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from oracles.brute import MS, OPS, value_of, window_of

Series = Mapping[int, Counter[int]]


def rank(count: int, percent: str) -> int:
    share = Fraction(percent)
    return max(-(-count * share.numerator // (share.denominator * 100)), 1)


def nearest(values: Iterable, percent: str):
    """Return the value of the nearest rank, however few there are."""
    ordered = sorted(values)
    return ordered[rank(len(ordered), percent) - 1]


def of_bins(counts: Counter[int], bins: int, percent: str) -> int:
    return value_of(bins, nearest(counts.elements(), percent))


def mean_of_bins(counts: Counter[int], bins: int) -> Fraction:
    return Fraction(sum(value_of(bins, slot) * count for slot, count in counts.items()), sum(counts.values()))


def mean_of_percentiles(series: Sequence[Series], bins: int, start: int, percent: str) -> Fraction:
    """Return the mean of the percentiles of the series that have samples in a window."""
    found = [of_bins(one[start], bins, percent) for one in series if one.get(start)]
    return Fraction(sum(found), len(found))


def means(series: Sequence[Series], bins: int, start: int, step: int) -> list[Fraction]:
    """Return the means of the (finer) windows of all series that lie in the window (start, start + step]."""
    return [mean_of_bins(counts, bins) for one in series for at, counts in one.items() if start <= at < start + step and counts]


def quantile(values: Iterable[Fraction], percent: str) -> Fraction:
    """Return the quantile between its neighbours: place (N - 1) p / 100."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * Fraction(percent) / 100
    low = place.numerator // place.denominator
    return ordered[low] + (ordered[min(low + 1, len(ordered) - 1)] - ordered[low]) * (place - low)


def rows(text: str, ops: Sequence[str] = OPS) -> list[tuple[int, int, int]]:
    """Return (ms, value, direction) of the rows of a log, of some ops."""
    cells = [[int(cell) for cell in line.split(",")] for line in text.splitlines()]
    return [(stamp, value, direction) for stamp, value, direction, *_ in cells if OPS[direction] in ops]


def cbt_volume(
    latencies: Sequence[str], rates: Sequence[str], zero: int, step: int, ops: Sequence[str] = OPS
) -> dict[int, tuple]:
    """Return of each window of a volume the rows that CBT takes quantiles of, and the sum of its rates."""
    added: Counter[tuple[int, int]] = Counter()
    for text in latencies:
        for stamp, value, direction in rows(text, ops):
            added[stamp, direction] += value
    found: dict[int, tuple[list, list]] = {}
    for (stamp, _), value in added.items():
        found.setdefault(window_of(zero + stamp * MS, step), ([], []))[0].append(Fraction(value))
    for text in rates:
        for stamp, value, _ in rows(text, ops):
            found.setdefault(window_of(zero + stamp * MS, step), ([], []))[1].append(value)
    return {start: (values, sum(weights)) for start, (values, weights) in found.items() if values}


def cbt(volumes: Sequence[Mapping[int, tuple]], start: int, percent: str) -> Fraction:
    """Return the mean of the quantiles of a host's volumes, weighted by their rates (plain without); `percent` "mean" the mean of their sums."""
    there = [volume[start] for volume in volumes if start in volume]
    of = sum if percent == "mean" else lambda values: quantile(values, percent)
    if not sum(weight for _, weight in there):
        return Fraction(sum(of(values) for values, _ in there), len(there))
    return Fraction(sum(of(values) * weight for values, weight in there), sum(weight for _, weight in there))
