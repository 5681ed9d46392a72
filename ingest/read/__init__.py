"""Readers: one file a format, each a function `read(path, context) -> Iterator[Intervals]`.

Where a file holds single operations its reader yields `Events`, and the intervals are made of them here.

A reader knows nothing of stores or views. To add one: its file here, its line in READERS or EVENT_READERS, its recognition in
discover.py,
its section in docs/formats.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ingest.errors import InputError
from ingest.intervals import Intervals
from ingest.read import fio_hist
from ingest.read.context import EXPECTED, Context
from ingest.read.discover import discover
from ingest.read.event_rows import Windows
from ingest.read.events import Events, events_layout, latencies
from ingest.read.sources import (
    CHROME,
    DESCRIBED,
    HDR,
    HIST,
    JSON,
    OPERATIONS,
    PERF,
    RAW,
    SMALLFILE,
    SNABB,
    YCSB,
    Found,
    ReadOptions,
    Skipped,
    Source,
)


def _fio_json(path: Path, context: Context) -> Iterator[Intervals]:
    """Return what `fio_json.read` does; its imports are made when there is such a file."""
    from ingest.read import fio_json

    return fio_json.read(path, context)


def _hdr_log(path: Path, context: Context) -> Iterator[Intervals]:
    """Return what `hdr_log.read` does; its imports are made when there is such a file."""
    from ingest.read import hdr_log

    return hdr_log.read(path, context)


def _operations(path: Path, context: Context) -> Iterator[Intervals]:
    """Return what `operations.read` does; its imports are made when there is such a file."""
    from ingest.read import operations

    return operations.read(path, context)


def _fio_raw(path: Path, context: Context) -> Iterator[Events]:
    """Return what `fio_raw.read` does; its imports are made when there is such a file."""
    from ingest.read import fio_raw

    return fio_raw.read(path, context)


def _smallfile(path: Path, context: Context) -> Iterator[Events]:
    """Return what `smallfile.read` does."""
    from ingest.read import smallfile

    return smallfile.read(path, context)


def _ycsb_raw(path: Path, context: Context) -> Iterator[Events]:
    """Return what `ycsb_raw.read` does."""
    from ingest.read import ycsb_raw

    return ycsb_raw.read(path, context)


def _perf_script(path: Path, context: Context) -> Iterator[Events]:
    """Return what `perf_script.read` does."""
    from ingest.read import perf_script

    return perf_script.read(path, context)


def _chrome_trace(path: Path, context: Context) -> Iterator[Events]:
    """Return what `chrome_trace.read` does."""
    from ingest.read import chrome_trace

    return chrome_trace.read(path, context)


def _described(path: Path, context: Context) -> Iterator[Events]:
    """Return what `described.read` does."""
    from ingest.read import described

    if context.description is None:
        raise InputError("no description of its columns: --input-format takes the path of one, such as events.yml", path)
    return described.read(path, context, context.description)


def _snabb(path: Path, context: Context) -> Iterator[Events]:
    """Return what `snabb.read` does."""
    from ingest.read import snabb

    return snabb.read(path, context)


READERS: dict[str, Callable[[Path, Context], Iterator[Intervals]]] = {
    HIST: fio_hist.read,
    JSON: _fio_json,
    HDR: _hdr_log,
    OPERATIONS: _operations,
}
EVENT_READERS: dict[str, Callable[[Path, Context], Iterator[Events]]] = {
    RAW: _fio_raw,
    SMALLFILE: _smallfile,
    YCSB: _ycsb_raw,
    PERF: _perf_script,
    CHROME: _chrome_trace,
    DESCRIBED: _described,
    SNABB: _snabb,
}


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
        rows = READERS[source.format](source.path, context)
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
    for chunk in EVENT_READERS[source.format](source.path, source.context):
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
