"""What series of a store reach, and what they have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from ingest.core.errors import InputError, listed
from ingest.core.series import LABELS, OFFSET, layer_of
from ingest.query.spans import RunLayer, Span, widen
from ingest.store.records import RunRecord, StoredSeries


def reach_of(series: Iterator[StoredSeries] | Sequence[StoredSeries]) -> tuple[int, int] | None:
    """Return from when to when the series reach, before they were cut into windows."""
    known = [(stored.first_ns, stored.last_ns) for stored in series if stored.first_ns is not None and stored.last_ns is not None]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else None


def reach_of_layers(runs: Iterable[Iterable[StoredSeries]]) -> dict[RunLayer, Span]:
    """Return from when to when the series of each layer of each run reach, before they were cut into windows."""
    reach: dict[RunLayer, Span] = {}
    for stored in (one for series in runs for one in series):
        if stored.first_ns is not None and stored.last_ns is not None:
            widen(reach, (stored.series.run, layer_of(stored.series.kind)), (stored.first_ns, stored.last_ns))
    return reach


def alike(series: Sequence[StoredSeries], borne: Collection[str]) -> dict[str, str]:
    """Return the labels that all series have alike, without those that are `borne` anyway."""
    values = {label: {getattr(stored.series, label) for stored in series} for label in LABELS if label not in borne}
    return {label: next(iter(found)) for label, found in values.items() if len(found) == 1}


def check_latencies(series: Sequence[StoredSeries], records: Sequence[RunRecord]) -> None:
    """Raise InputError where runs hold only the times of events, and no latency."""
    if series and all(stored.series.kind == OFFSET for stored in series):
        runs = listed(record.run for record in records)
        raise InputError(f"{runs}: only the times of events, no latencies; tailboard offsets shows them")
