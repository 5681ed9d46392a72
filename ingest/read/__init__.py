"""Readers: one file a format, each a function `read(path, context) -> Iterator[Intervals]`.

A reader knows nothing of stores or views. To add one: its file here, its line in READERS, its recognition in discover.py,
its section in docs/formats.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ingest.intervals import Intervals
from ingest.read import fio_hist
from ingest.read.context import Context
from ingest.read.discover import HIST, JSON, Found, ReadOptions, Skipped, Source, discover


def _fio_json(path: Path, context: Context) -> Iterator[Intervals]:
    """Return what `fio_json.read` does; its imports are made when there is such a file."""
    from ingest.read import fio_json

    return fio_json.read(path, context)


READERS: dict[str, Callable[[Path, Context], Iterator[Intervals]]] = {
    HIST: fio_hist.read,
    JSON: _fio_json,
}


def read(source: Source) -> Iterator[Intervals]:
    """Yield the intervals of a source in bounded chunks; InputError where it is not what it claims."""
    return READERS[source.format](source.path, source.context)


__all__ = ["READERS", "Context", "Found", "ReadOptions", "Skipped", "Source", "discover", "read"]
