"""Stores: where documents are kept and asked. `open_store(url)` gives the one that a URL names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from ingest.core.breaths import StoredBreaths
from ingest.core.errors import UsageError
from ingest.core.intervals import Int, Intervals
from ingest.core.labels import Series
from ingest.core.marks import noted
from ingest.core.values import one_of
from ingest.query.origin import KINDS, Answering, Capability, Origin, named, require
from ingest.query.question import Answer, AnswerKey
from ingest.store.lifecycle import Coarsened
from ingest.store.live import LiveStore
from ingest.store.records import RunRecord, SourceRecord, Spans, StoredRun

if TYPE_CHECKING:
    from pathlib import Path

    from ingest.query.episodes import Episode, Judgement
    from ingest.query.story.stored import StoredFinding
    from ingest.store.answers import Catalogue
    from ingest.store.elastic.export import ReplayAccount
    from ingest.store.elastic.templates import Names
    from ingest.store.lifecycle import CoarserBins, Widened
    from ingest.store.verify import Chosen, Verification


# What only stores can do, or only some of them: growing runs, documents, dead letters.


GROWTH: Capability[Callable[[], LiveStore]] = Capability(
    "watch", "needs a store that takes growing runs: give sqlite:PATH or http://HOST:9200"
)
DOCUMENTS: Capability[Callable[[RunRecord, Names], Iterator[bytes]]] = Capability(
    "documents", "are exported from a store of SQLite or Elasticsearch: load the files into one first"
)
DEAD_LETTERS: Capability[Callable[[Path], ReplayAccount]] = Capability(
    "dead letters", "are what Elasticsearch has refused: give --store http://HOST:9200"
)


class Gatherer(Protocol):
    """Adds up windows in a reading process."""

    def add(self, windows: Intervals[Series]) -> None:
        """Add windows."""

    def sums(self) -> Any:
        """Hand over what was added up, when the process has read all that it reads."""

    def take(self, sums: Any) -> None:
        """Add what a reading process has handed over; done in the process that writes."""


class Foreseen(Answering, Protocol):
    """A run of which all is read and not all is written: it answers from memory, from any thread."""

    @property
    def record(self) -> RunRecord:
        """Return its record, complete."""

    @property
    def sources(self) -> Sequence[SourceRecord]:
        """Return the records of its sources, complete."""


class Store(Origin, Protocol):
    """An origin that keeps runs and documents, and is loaded into.

    A store derives from it. What has a body here is for stores that write documents at once; one that sends them does it anew.
    """

    def __enter__(self) -> Self:
        """Return the open store."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close it."""

    needs_clock: bool = False  # it takes runs with a known start alone
    most_samples: int  # of one run that it adds up exactly

    def runs(self) -> list[RunRecord]:
        """Return the records of all runs, by name."""

    def sources(self, run: str, only: Collection[str] | None = None) -> list[SourceRecord]:
        """Return the records of a run's sources, by identity; of those that `only` names, where it is given."""

    def catalogue(self) -> Catalogue:
        """Return the records of all runs, with their series and the accounts of their sources."""

    def first_generation(self, run: str) -> int:
        """Return the generation that a new source of a run begins with: above all that a deleted run of its name has left."""
        return 1

    def held(self, runs: Sequence[str]) -> dict[str, StoredRun]:
        """Return what is held of each of some runs, for the plan of a load."""

    def still(self, run: str) -> AbstractContextManager[None]:
        """Hold what the records of a run say while questions are asked about this run alone, if it costs much to read them."""
        return nullcontext()

    def begin(self, run: RunRecord, sources: Iterable[SourceRecord], *, anew: bool = False) -> None:
        """Note a run and the sources that are about to be written; they count as loading until `finish_source`.

        `anew` overwrites what an earlier load froze.
        """

    def packed(self, run: RunRecord, source: SourceRecord, windows: Intervals[Series]) -> Any:
        """Return whole windows of a source as `write` takes them; done in the reading processes, away from any connection."""

    def at_once(self) -> AbstractContextManager[None]:
        """Let what is written meanwhile be there all at once: one transaction costs less than many."""
        return nullcontext()

    def write(self, run: RunRecord, source: SourceRecord, packed: Any) -> int:
        """Write whole documents of a source, replacing older ones of the same identity; return how many."""

    def gatherer(self, run: RunRecord, processes: int) -> Gatherer | None:
        """Return what adds up the windows of a run in each of so many reading processes; None where nothing needs their sums."""
        return None

    def write_breaths(self, source: SourceRecord, kept: StoredBreaths) -> int:
        """Write the breaths that are kept of a source, replacing documents of the same identity; return how many."""

    def breaths(self, run: str) -> StoredBreaths:
        """Return the breaths that are kept of a run."""

    def finish_source(self, source: SourceRecord, spans: Spans) -> None:
        """Note that a source is complete, from when to when its series reach, and sweep what older generations left of it."""

    def foreseen(self, run: RunRecord) -> Foreseen | None:
        """Return a run as it will be after `finish_run`, to be asked beside that; None where this is not known."""
        return None

    def finish_run(self, run: RunRecord) -> None:
        """Write the run's rollups from its documents and note it complete if all its sources are."""

    def delivered(self) -> Mapping[str, int]:
        """Return counts of the documents that were sent to a server, by outcome; empty where there is none."""
        return {}

    def refusals(self) -> tuple[int, str]:
        """Return how many documents the server has refused, and a sentence about where they are."""
        return 0, ""

    def delete_run(self, run: str, *, force: bool = False) -> int:
        """Delete a run with all it holds; return how many documents that were.

        StoreError where somebody may be writing to it: with `force` it is deleted all the same, and who writes to it ends
        with a sentence.
        """

    def verify(self, chosen: Chosen, *, mend: bool = False) -> Verification:
        """Return the faults in the runs that `chosen` accepts; where it accepts "", also in documents that belong to no run.

        With `mend` they are repaired where they can be. Runs that somebody may be writing to are looked at for owners alone.
        """

    def coarsen(self, run: str, step_ns: int) -> Coarsened:
        """Add the windows of a run up to a larger step, exactly; return what was done. Cut off, a repeat completes it.

        At that step already, nothing is done. UsageError for a smaller step, StoreError while the run is not complete.
        """

    def widen(self, run: str, bins: CoarserBins) -> Widened:
        """Add neighbouring bins of a run up, exactly; return what was done. Cut off, a repeat completes it.

        Bins that are as wide already stay. StoreError while the run is not complete.
        """

    def mark(self, run: str, at_ns: int, text: str, end_ns: int | None = None) -> None:
        """Note a mark at a time of a run, or from then to `end_ns`; the same mark twice is one, with the last end."""
        self.mark_all(run, [noted(run, at_ns, text, end_ns)])

    def marks(self, answer: Answer) -> list[Mapping[str, Any]]:
        """Return the marks of the runs of an answer in time order: run, at_ns, text, and end_ns where there is one."""
        return self.marks_of(answer.runs)

    def mark_all(self, run: str, marks: Sequence[Mapping[str, Any]]) -> None:
        """Note many marks of a run: at_ns, text, and end_ns where there is one; a mark that is noted already stays one."""

    def offset_windows(
        self, run: str, begin_ns: int | None, end_ns: int | None, wanted: AnswerKey | None = None
    ) -> Iterator[Intervals[Series]]:
        """Yield the offsets of a run's events in [begin, end) under their series: 1 ms bins in windows of 1 s.

        With `wanted` those of series that it gives a group; little else is read, but some may come.
        """

    def offset_seconds(self, run: str, begin_ns: int | None, end_ns: int | None) -> Int:
        """Return the starts in ns of the seconds of [begin, end), whole ones, in which a run has any event."""

    def marks_of(self, runs: Iterable[str]) -> list[Mapping[str, Any]]:
        """Return the marks of runs in time order: run, at_ns, text, and end_ns where there is one."""

    def keep_episodes(self, run: str, objective: str, episodes: Sequence[Episode], judgement: Judgement | None = None) -> None:
        """Write all episodes of an objective in a run and the judgement of it, in place of what an earlier check has left."""

    def keep_findings(self, run: str, documents: Sequence[StoredFinding]) -> None:
        """Write all findings of a run, in place of those that an earlier load has left."""

    def findings_of(self, runs: Iterable[str]) -> list[StoredFinding]:
        """Return the findings that are kept of runs, by run and rank, of whatever state of the run."""


def open_store(url: str, *, write: bool = False) -> Store:
    """Return the store that a URL names: sqlite:PATH or http(s)://HOST:PORT.

    StoreError if it cannot be opened, UsageError for another URL.
    """
    one_of(bool, write, "write", "True or False")
    for prefix, home in KINDS.items():
        if isinstance(url, str) and url.startswith(prefix):
            store: Store = named(home)(url, write=write)
            return store
    raise UsageError(f"{url!r} is not a store: a file of one is named sqlite:{url}, a server http://HOST:9200")


def live_store(store: Store) -> LiveStore:
    """Return the interface of an open store for a watch; UsageError where it takes no growing runs."""
    return require(store, GROWTH)()
