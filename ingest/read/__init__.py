"""Readers: one file a format, each a function `read(path, context) -> Iterator[Intervals]`.

Where a file holds single operations its reader yields `Events`, and the intervals are made of them here.

A reader knows nothing of stores or views. To add one: its file here, its module in READERS or EVENT_READERS, its recognition in
discover.py, its section in docs/formats.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ingest.errors import InputError
from ingest.intervals import Intervals
from ingest.read.context import EXPECTED, Context
from ingest.read.discover import discover
from ingest.read.event_rows import Windows
from ingest.read.events import Events, events_layout, latencies
from ingest.read.sources import (
    AVERAGED,
    CHROME,
    DESCRIBED,
    HDR,
    HIST,
    JSON,
    OPERATIONS,
    PERF,
    PLAIN_JSON,
    RAW,
    SMALLFILE,
    SNABB,
    YCSB,
    Found,
    ReadOptions,
    Skipped,
    Source,
)

READERS = {
    HIST: "fio.hist",
    AVERAGED: "fio.averaged",
    JSON: "fio.dumps",
    PLAIN_JSON: "fio.plain_json",
    HDR: "hdr.log",
    OPERATIONS: "operations",
}
EVENT_READERS = {
    RAW: "fio.raw",
    SMALLFILE: "smallfile",
    YCSB: "ycsb_raw",
    PERF: "perf.script",
    CHROME: "chrome.trace",
    DESCRIBED: "described",
    SNABB: "snabb.timeline",
}


def _reader(name: str) -> Callable[[Path, Context], Iterator[Any]]:
    """Return the `read` of a module; its imports are made when there is such a file."""
    found: Callable[[Path, Context], Iterator[Any]] = import_module(f"ingest.read.{name}").read
    return found


def read(source: Source, windows: Windows | None = None, seen: Callable[[Events], None] | None = None) -> Iterator[Intervals]:
    """Yield the intervals of a source in bounded chunks; InputError where it is not what it claims.

    `windows` says how single events are cut (by default into seconds); other sources come as they were recorded. `seen` is
    called with each chunk of single events before intervals are made of it.
    """
    context = source.context
    if source.format in EVENT_READERS:
        from ingest.read import event_rows

        known = bool(context.jobs) and not context.shadowed
        layout = events_layout(context.digits)
        chunks = events(source) if seen is None else _shown(events(source), seen)
        rows = event_rows.intervals(
            latencies(chunks, context.account), windows or Windows(), layout, context.account, totals=known
        )
    else:
        rows = _reader(READERS[source.format])(source.path, context)
    expected = context.options.get(EXPECTED)
    if not expected:
        return rows
    from ingest.omission import with_corrected

    return with_corrected(rows, int(expected), context.account)


def _shown(chunks: Iterator[Events], seen: Callable[[Events], None]) -> Iterator[Events]:
    for chunk in chunks:
        seen(chunk)
        yield chunk


def events(source: Source) -> Iterator[Events]:
    """Yield the single operations of a source in bounded chunks; InputError where it is not what it claims, or has none."""
    if source.format not in EVENT_READERS:
        raise InputError(f"{source.format}: holds histograms, not single operations", source.path)
    account, shadowed = source.context.account, source.context.shadowed
    for chunk in _reader(EVENT_READERS[source.format])(source.path, source.context):
        ours = np.array([series.op not in shadowed for series in chunk.table], np.bool_)
        if ours.all():
            yield chunk
            continue
        kept = chunk.take(np.flatnonzero(ours[chunk.series]))
        account.shadowed += chunk.samples - kept.samples
        yield kept


__all__ = [
    "EVENT_READERS",
    "READERS",
    "Context",
    "Events",
    "Found",
    "ReadOptions",
    "Skipped",
    "Source",
    "Windows",
    "discover",
    "events",
    "read",
]
