"""Offset maps by the definition alone: column floor(t / P), row floor(rows * (t mod P) / P), in plain numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

Cell = tuple[str, int, int]  # label, start of the period in ns, row
MS = 1_000_000
SECOND = 1_000_000_000


def cells(events: Iterable[tuple[str, int, int]], period_ns: int, rows: int) -> Counter[Cell]:
    """Return the events (label, own time in ns, how many) in each cell."""
    found: Counter[Cell] = Counter()
    for label, time, many in events:
        column = time // period_ns
        within = Fraction(time - column * period_ns, period_ns)
        found[label, column * period_ns, int(within * rows)] += many
    return found


def edges(period_ns: int, rows: int) -> list[tuple[int, int]]:
    """Return the offsets in ns that each row begins and ends with: the whole numbers of which it holds."""
    ends = [-int(-Fraction(period_ns * row, rows) // 1) for row in range(rows + 1)]
    return list(zip(ends, ends[1:]))


def resampled(events: Iterable[tuple[str, int, int]], period_ns: int, rows: int) -> Counter[Cell]:
    """Return the cells of events that are known to the ms alone: a ms that straddles two rows is shared, halves to even."""
    found: Counter[Cell] = Counter()
    for (label, at), many in bins(events).items():
        column, offset = at // period_ns * period_ns, at % period_ns
        left = many
        for row, (low, high) in enumerate(edges(period_ns, rows)):
            if low <= offset < high < offset + MS:
                part = round(Fraction(many * (high - offset), MS))
                found[label, column, row] += part
                left -= part
                offset_row = row + 1
                break
            if low <= offset < high:
                offset_row = row
                break
        found[label, column, offset_row] += left
    return +found


def bins(events: Iterable[tuple[str, int, int]]) -> Counter[tuple[str, int]]:
    """Return how many events there are by label and whole ms (as its beginning in ns)."""
    found: Counter[tuple[str, int]] = Counter()
    for label, time, many in events:
        found[label, time // MS * MS] += many
    return found


def by_collection(events: Iterable[tuple[int, int]], period_ns: int, rows: int) -> Counter[tuple[int, int]]:
    """Return the map as it must not be drawn: the column from when an event (own time, collected at) was collected."""
    return Counter((seen // period_ns * period_ns, int(Fraction(time % period_ns, period_ns) * rows)) for time, seen in events)


def late(events: Iterable[tuple[str, int, int]], slack_ns: int = SECOND) -> list[bool]:
    """Return which events (series, start, end), in the order of a file, began and ended long before the newest of their series."""
    begun: dict[str, int] = {}
    ended: dict[str, int] = {}
    found = []
    for series, start, end in events:
        behind = series in begun and start < begun[series] - slack_ns and end < ended[series] - slack_ns
        found.append(behind)
        begun[series] = max(begun.get(series, start), start)
        ended[series] = max(ended.get(series, end), end)
    return found
