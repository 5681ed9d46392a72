"""Readers: one file a format, each a function `read(path, context) -> Iterator[Intervals]`.

A reader knows nothing of stores or views. To add one: its file here, its line in READERS, its recognition in discover.py,
its section in docs/formats.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ingest.intervals import Intervals
from ingest.read import fio_hist
from ingest.read.context import EXPECTED, Context
from ingest.read.discover import discover
from ingest.read.sources import HDR, HIST, JSON, OPERATIONS, Found, ReadOptions, Skipped, Source


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


READERS: dict[str, Callable[[Path, Context], Iterator[Intervals]]] = {
    HIST: fio_hist.read,
    JSON: _fio_json,
    HDR: _hdr_log,
    OPERATIONS: _operations,
}


def read(source: Source) -> Iterator[Intervals]:
    """Yield the intervals of a source in bounded chunks; InputError where it is not what it claims."""
    rows = READERS[source.format](source.path, source.context)
    expected = source.context.options.get(EXPECTED)
    if not expected:
        return rows
    from ingest.omission import with_corrected

    return with_corrected(rows, int(expected), source.context.account)


__all__ = ["READERS", "Context", "Found", "ReadOptions", "Skipped", "Source", "discover", "read"]
