"""Readers: one file a format, each a function `read(path, context) -> Iterator[Intervals]`.

A reader knows nothing of stores or views. To add one: its file here, its line in READERS, its recognition in discover.py,
its section in docs/formats.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ingest.intervals import Intervals
from ingest.read import fio_hist, fio_json
from ingest.read.context import Context
from ingest.read.discover import HIST, JSON, Found, ReadOptions, Skipped, Source, discover

READERS: dict[str, Callable[[Path, Context], Iterator[Intervals]]] = {
    HIST: fio_hist.read,
    JSON: fio_json.read,
}


def read(source: Source) -> Iterator[Intervals]:
    """Yield the intervals of a source in bounded chunks; InputError where it is not what it claims."""
    return READERS[source.format](source.path, source.context)


__all__ = ["READERS", "Context", "Found", "ReadOptions", "Skipped", "Source", "discover", "read"]
