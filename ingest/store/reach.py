"""The ranges of time of series and windows of a store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingest.store.records import StoredSeries


def reach_of(series: Iterator[StoredSeries] | Sequence[StoredSeries]) -> tuple[int, int] | None:
    """Return from when to when the series reach, before they were cut into windows."""
    known = [(stored.first_ns, stored.last_ns) for stored in series if stored.first_ns is not None and stored.last_ns is not None]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else None
