"""Each operation once, where only the moment of it counts: tools write one operation under several kinds.

fio writes a log of completion, one of total and one of submission latency of the same I/Os; YCSB writes an operation a second
time with its intended start. Latencies of unlike kinds are never merged; moments would be counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ingest.core.series import default_kind
from ingest.read import events_of
from ingest.read.format_names import RAW, YCSB
from ingest.read.formats import single_events
from ingest.read.sources import Source

if TYPE_CHECKING:
    from ingest.core.events import Events

AGAIN = {YCSB: "response"}  # the kind of the second line of an operation, by format


def offset_sources(sources: Sequence[Source]) -> list[Source]:
    """Return the sources of single events that hold each I/O once: of fio's logs of one job the one of the preferred kind."""
    kinds: dict[tuple[str, ...], set[str]] = {}
    for source in sources:
        kinds.setdefault(_job(source), set()).add(source.context.series.kind)
    return [
        source for source in sources if single_events(source) and source.context.series.kind == default_kind(kinds[_job(source)])
    ]


def _job(source: Source) -> tuple[str, ...]:
    """Return what the logs of one job have in common: of fio the labels, of other formats the file alone."""
    series = source.context.series
    alone = "" if source.format == RAW else str(source.path)
    return source.format, series.run, series.host, series.volume, series.job, series.process, alone


def once(source: Source, chunk: Events) -> Events:
    """Return the events of a chunk without those that stand for an operation which another line holds already."""
    again = AGAIN.get(source.format)
    twice = np.array([again is not None and series.kind == again for series in chunk.table], np.bool_)
    return chunk.take(np.flatnonzero(~twice[chunk.series])) if twice.any() else chunk


def events_once(source: Source) -> Iterator[Events]:
    """Yield the events of a source, each operation once; InputError where it is not what it claims."""
    for chunk in events_of(source):
        yield once(source, chunk)
