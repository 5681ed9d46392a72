"""Snabb timelines as sources: host, process, start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ingest.core.events import Events
from ingest.core.series import LAG
from ingest.read.context import Context, TimeZero
from ingest.read.events import events_layout
from ingest.read.format_names import SNABB
from ingest.read.formats import Reader
from ingest.read.snabb.names import OWN_NAMES, looks_like_timeline, process_of
from ingest.read.sources import Around, Source
from ingest.read.text import plain_name


def locate(path: Path, around: Around) -> Source:
    """Return the source of a timeline; InputError where it is none, or the speed of its counter is not known."""
    from ingest.read.snabb import timeline as snabb

    context = around.context(path, origin="place of the file", process=process_of(path), kind=LAG)
    recorded = snabb.timeline(path, around.options.tsc_hz)
    own = TimeZero(int(recorded.stamp_ns[0]), "clock readings in the timeline") if recorded.real else TimeZero()
    zero = around.zero(path, own, lambda: int(recorded.stamp_ns[-1]), absolute=recorded.real)
    return Source(path, SNABB, replace(context, zero=zero), layout=str(events_layout(around.options.digits)))


def _events(path: Path, context: Context) -> Iterator[Events]:
    from ingest.read.snabb import timeline

    return timeline.read(path, context)


READER = Reader(
    locate,
    line_each=False,
    timed=False,
    events=_events,
    accepts=looks_like_timeline,
    folder_is_host=lambda path: plain_name(path) not in OWN_NAMES,
)
