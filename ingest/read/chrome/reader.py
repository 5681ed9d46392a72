"""Chrome traces as sources: host, what distinguishes recordings, start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ingest.core.events import Events
from ingest.read.chrome.objects import looks_like_chrome
from ingest.read.context import Context, TimeZero
from ingest.read.events import events_layout
from ingest.read.format_names import CHROME
from ingest.read.formats import ROW_LABELS, Reader
from ingest.read.sources import Around, Source
from ingest.read.text import TRACE_ENDINGS, name_without


def locate(path: Path, around: Around) -> Source:
    """Return the source of a trace. Its job is its name; InputError where it is no array of trace events."""
    from ingest.read.chrome import trace

    zero_ns = trace.zero_of(path)
    context = around.context(path, job=name_without(path, TRACE_ENDINGS, every=True))
    own = TimeZero(zero_ns, "unknown" if zero_ns is None else "epoch stamps in the log")
    zero = around.zero(path, own, lambda: trace.last_ns(path), absolute=zero_ns == 0)
    return Source(path, CHROME, replace(context, zero=zero), layout=str(events_layout(around.options.digits)))


def _events(path: Path, context: Context) -> Iterator[Events]:
    from ingest.read.chrome import trace

    return trace.read(path, context)


READER = Reader(
    locate,
    line_each=False,
    timed=False,
    events=_events,
    accepts=lambda _, start: looks_like_chrome(start),
    row_labels=(*ROW_LABELS, "process"),
    arrow=True,
)
