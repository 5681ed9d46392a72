"""From when to when series and windows of a store reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingest.store.records import StoredSeries


def narrowed(windows: tuple[int, int], reach: tuple[int, int] | None, step_ns: int) -> tuple[int, int]:
    """Return from when to when windows are; the first and the last no longer than their series reach.

    What a run reaches that is being loaded may be older than its windows: an edge that lies outside of them tells nothing.
    """
    (start, end), (first, last) = windows, reach or windows
    return first if start < first < start + step_ns else start, last if end - step_ns < last < end else end


def reach_of(series: Iterator[StoredSeries] | Sequence[StoredSeries]) -> tuple[int, int] | None:
    """Return from when to when the series reach, before they were cut into windows."""
    known = [(one.first_ns, one.last_ns) for one in series if one.first_ns is not None and one.last_ns is not None]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else None
