"""Stores: where documents are kept and asked. `open_store(url)` gives the one that a URL names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from ingest.documents import Documents
from ingest.errors import StoreError, UsageError
from ingest.intervals import Intervals
from ingest.query.question import Answer, Question
from ingest.store.records import RunRecord, SourceRecord, Spans


class Store(Protocol):
    """What every store can do: keep runs and documents, and answer questions about them with the same numbers."""

    def __enter__(self) -> Self:
        """Return the open store."""
        ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close it."""
        ...

    def runs(self) -> list[RunRecord]:
        """Return the records of all runs, by name."""
        ...

    def sources(self, run: str) -> list[SourceRecord]:
        """Return what was loaded into a run."""
        ...

    def begin(self, run: RunRecord, sources: Iterable[SourceRecord], *, anew: bool = False) -> None:
        """Note a run and the sources that are about to be written; they count as loading until `finish_source`.

        `anew` overwrites what an earlier load froze.
        """
        ...

    def write(self, run: RunRecord, source: SourceRecord, documents: Documents) -> int:
        """Write whole documents of a source, replacing older ones of the same identity; return how many."""
        ...

    def finish_source(self, source: SourceRecord, spans: Spans) -> None:
        """Note that a source is complete, from when to when its series reach, and sweep what older generations left of it."""
        ...

    def finish_run(self, run: RunRecord) -> None:
        """Write the run's rollups from its documents and note it complete if all its sources are."""
        ...

    def delete_run(self, run: str) -> int:
        """Delete a run with all it holds; return how many documents that were."""
        ...

    def answer(self, question: Question) -> Answer:
        """Return the merged windows that a question asks for."""
        ...

    def mark(self, run: str, at_ns: int, text: str) -> None:
        """Note what happened at a time of a run."""
        ...

    def windows(self, question: Question) -> Iterator[Intervals]:
        """Yield the selected windows at the stored step under the question's groups, in bounded batches."""
        ...

    def facts(self, answer: Answer) -> list[tuple[str, str]]:
        """Return (name, value) pairs about the runs of an answer."""
        ...

    def marks(self, answer: Answer) -> list[Mapping[str, Any]]:
        """Return the marks of the runs of an answer in time order: run, at_ns, text."""
        ...

    def marks_of(self, runs: Iterable[str]) -> list[Mapping[str, Any]]:
        """Return the marks of runs in time order: run, at_ns, text."""
        ...


def open_store(url: str, *, write: bool = False) -> Store:
    """Return the store that a URL names: sqlite:PATH. StoreError if it cannot be opened, UsageError for another URL."""
    if url.startswith("sqlite:"):
        from ingest.store.sqlite import SqliteStore

        return SqliteStore(url.removeprefix("sqlite:"), write=write)
    if url.startswith(("http://", "https://")):
        raise StoreError("Elasticsearch is not a store of this version yet; use sqlite:PATH")
    raise UsageError(f"{url!r} is no store: give sqlite:PATH")


__all__ = ["RunRecord", "SourceRecord", "Spans", "Store", "open_store"]
