"""Where the answers of a call come from: files or a store, behind one face."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ingest.cli import options

if TYPE_CHECKING:
    from ingest.query.origin import Origin

READING = ("input_format", "host", "host_alias", "t0", "host_offset", "recorded_unit", *options.SCHEDULE, *options.EVENTS)


@contextmanager
def opened(sources: tuple[str, ...], words: Mapping[str, Any]) -> Iterator[Origin]:
    """Give the files or the store that the sources of a call name."""
    stores, paths = options.split_sources(sources)
    if stores:
        from ingest.store import open_store

        with open_store(stores[0]) as store:
            yield store
        return
    from ingest.cli.progress import Progress
    from ingest.query.files import Files

    with Progress("reading") as bar:
        yield Files(paths, options.read_options(**{name: words[name] for name in READING}), words["jobs"], bar)
