"""The text of `perf script` as a source: host, what distinguishes recordings, start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ingest.core.errors import InputError
from ingest.core.events import Events
from ingest.read.context import KEEP_IDLE, Context, TimeZero
from ingest.read.events import events_layout
from ingest.read.format_names import PERF
from ingest.read.formats import ROW_LABELS, Reader
from ingest.read.perf import header
from ingest.read.sources import Around, Source
from ingest.read.text import TRACE_ENDINGS, head, name_without


def locate(path: Path, around: Around) -> Source:
    """Return the source of a recording; its job is the name of the file. InputError where samples have no time."""
    if header.lacks_stamps(head(path)):
        raise InputError(header.NO_STAMPS, path)
    recorded = header.header_of(path)
    job = name_without(path, TRACE_ENDINGS, every=True)
    context = around.context(path, host=recorded.host, origin="header of the recording", job=job)
    kept = {**context.options, **({KEEP_IDLE: "yes"} if around.options.keep_idle else {})}
    real = recorded.zero_ns == 0
    zero = around.zero(path, TimeZero(recorded.zero_ns, recorded.origin), lambda: header.last_ns(path), absolute=real)
    return Source(path, PERF, replace(context, zero=zero, options=kept), layout=str(events_layout(around.options.digits)))


def _events(path: Path, context: Context) -> Iterator[Events]:
    from ingest.read.perf import script

    return script.read(path, context)


READER = Reader(
    locate,
    line_each=False,
    timed=False,
    events=_events,
    accepts=lambda _, start: header.looks_like_perf(start),
    row_labels=(*ROW_LABELS, "process", "volume"),
    arrow=True,
)
