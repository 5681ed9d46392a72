"""Where the answers of a call come from: files or a store, behind one face."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from ingest.cli import options

if TYPE_CHECKING:
    from ingest.intervals import Intervals
    from ingest.query.question import Answer, Question

READING = ("input_format", "host", "host_alias", "t0", "host_offset", "recorded_unit", *options.SCHEDULE, *options.EVENTS)


class Origin(Protocol):
    """What files and stores can both do."""

    def answer(self, question: Question) -> Answer:
        """Return the merged windows that a question asks for."""
        ...

    def windows(self, question: Question) -> Iterator[Intervals]:
        """Yield the selected windows at the stored step under the question's groups, in bounded batches."""
        ...

    def facts(self, answer: Answer) -> Sequence[tuple[str, str]]:
        """Return (name, value) pairs about the runs of an answer."""
        ...

    def marks(self, answer: Answer) -> Sequence[Mapping[str, Any]]:
        """Return the marks of the runs of an answer: run, at_ns, text."""
        ...


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
        yield Files(paths, options.read_options(**{name: words[name] for name in READING}), options.cores(words["jobs"]), bar)
