"""Single operations by the definitions alone: windows of completions, exact values, shares while in flight. Plain loops."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from oracles.brute import OPS

Event = tuple[str, int, int]  # label (an op), completion in ns, latency in ns
MS = 1_000_000


def fio_events(text: str, unit_ns: int = 1, zero_ns: int = 0, *, epoch: bool = False) -> list[Event]:
    """Return the I/Os of a raw fio log; one that completed in the first ms is taken for 1 ns after time zero."""
    found = []
    for line in text.splitlines():
        stamp, value, direction = (int(cell) for cell in line.split(",")[:3])
        end = stamp * MS if epoch else zero_ns + max(stamp * MS, 1)
        found.append((OPS[direction], end, value * unit_ns))
    return found


def index_of(value: int, half: int = 64) -> int:
    """Return the bin of a latency: `half` bins an octave, the first two of them of one ns each."""
    shift = max(value.bit_length() - half.bit_length(), 0)
    return shift * half + (value >> shift)


def midpoint(index: int, half: int = 64) -> int:
    """Return what is reported for a bin."""
    if index < 2 * half:
        return index
    shift = index // half - 1
    return ((half + index % half) << shift) + (1 << shift) // 2


def window_of(end_ns: int, step_ns: int) -> int:
    """Return the start of the window (start, start + step] of a completion."""
    return -(-end_ns // step_ns) * step_ns - step_ns


def by_window(events: list[Event], step_ns: int) -> dict[tuple[str, int], list[int]]:
    """Return the latencies that completed in each window, by label and start."""
    found: dict[tuple[str, int], list[int]] = {}
    for label, end, latency in events:
        found.setdefault((label, window_of(end, step_ns)), []).append(latency)
    return found


def in_flight(
    events: list[Event], step_ns: int, half: int = 64
) -> tuple[dict[tuple[str, int], Counter[int]], Counter[tuple[str, int]]]:
    """Return weights of 2^-16 by (label, window) and bin, and the completions by (label, window).

    The cumulative share of an I/O at each edge that it crosses is rounded, halves to even; its weight is what is added there,
    and at least one in the window that it completed in.
    """
    weights: dict[tuple[str, int], Counter[int]] = {}
    completed: Counter[tuple[str, int]] = Counter()
    for label, end, latency in events:
        last = window_of(end, step_ns)
        completed[label, last] += 1
        start = end - latency
        window = min(start // step_ns * step_ns, last)
        done = 0
        while window <= last:
            share = 1 if window == last else Fraction(window + step_ns - start, latency)
            until = 65536 if window == last else min(round(share * 65536), 65535)
            weights.setdefault((label, window), Counter())[index_of(latency, half)] += until - done
            done = until
            window += step_ns
    return {key: +found for key, found in weights.items() if +found}, completed


def nearest_rank(values: list[int], percent: str) -> int:
    """Return the smallest value that at least `percent` of the values do not exceed."""
    share = Fraction(percent)
    return sorted(values)[max(-(-len(values) * share.numerator // (share.denominator * 100)), 1) - 1]
