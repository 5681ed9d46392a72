"""Where answers come from: what files and every store can do, and by name what only some of them can do.

    for run in origin.runs(): ...                       files and stores alike
    origin.answer(Question(by=("host",)))
    needed(origin, OFFSETS)(wanted)                     one error, one sentence, where it is not there
    origin.offers.get(BREATHS)                          None where it is not there

A new kind of store implements `Origin` and has one line in `KINDS`. What it offers beyond that it adds to its
`offers`; everything else that asks it goes without, or stops with the sentence of the capability.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

from ingest.core.errors import UsageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ingest.core.breaths import StoredBreaths
    from ingest.core.coverage import WholeRun
    from ingest.core.intervals import Intervals
    from ingest.core.labels import Group
    from ingest.query.episodes import Episode
    from ingest.query.files import Files
    from ingest.query.interval_log import IntervalLog
    from ingest.query.offsets import OffsetMap, OffsetOverview, WantedOffsets
    from ingest.query.percentiles import Wanted
    from ingest.query.question import Answer, Question
    from ingest.query.slowest import Slowest
    from ingest.query.story.ground import Story
    from ingest.query.table import Table

T = TypeVar("T")

DEFAULT_STORE = "sqlite:tailboard.db"
DATABASES = (".db", ".sqlite", ".sqlite3")  # endings of files that are stores

KINDS = {  # how the URLs of a kind of store begin, and what opens one: it is called with the URL, and `write`
    "sqlite:": "ingest.store.sqlite.store.open_url",
    "http://": "ingest.store.elastic.store.ElasticStore",
    "https://": "ingest.store.elastic.store.ElasticStore",
    "cloud:": "ingest.store.elastic.store.ElasticStore",
}


def named(home: str) -> Any:
    """Return what has a dotted name; its module is loaded now."""
    module, _, name = home.rpartition(".")
    return getattr(import_module(module), name)


def is_store(text: str) -> bool:
    """Return whether a text is the URL of a store, as sqlite:PATH, http(s)://HOST:PORT or cloud:ID."""
    return text.startswith(tuple(KINDS))


def is_server(text: str) -> bool:
    """Return whether a text is the URL of a store on a server."""
    return is_store(text) and not text.startswith("sqlite:")


def store_url(named: str | None) -> str:
    """Return the URL that --store names, else that of the default store; a file of a database is one of SQLite."""
    word = named or os.environ.get("TAILBOARD_STORE") or DEFAULT_STORE
    return store_at(word) or word


def store_at(word: str) -> str:
    """Return the URL of the store that a word names, as URL or as a file; empty for any other word."""
    if is_store(word):
        return word
    return f"sqlite:{word}" if word.endswith(DATABASES) else ""


class Run(Protocol):
    """What every origin knows of a run; the record of a run in a store is one."""

    @property
    def run(self) -> str:
        """Return its name."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels of the whole run."""

    @property
    def start_ns(self) -> int:
        """Return its start in epoch ns; where its times are relative, the time that they count from."""

    @property
    def relative(self) -> bool:
        """Return whether its start is not known, so that its times are elapsed."""

    @property
    def final_ns(self) -> int | None:
        """Return the end of its last final window in ns while it is being watched, else None."""

    @property
    def step_ns(self) -> int:
        """Return the width of its windows in ns; of files that which a store would keep."""


class Capability(NamedTuple, Generic[T]):
    """Something that only some origins can do: its name, and what follows the name where an origin cannot (see `needed`)."""

    name: str
    missing: str


class Capabilities:
    """The capabilities of an origin."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def add(self, capability: Capability[T], provider: T) -> Self:
        """Offer a capability, in place of what was offered under its name; return these offers."""
        self._found[capability.name] = provider
        return self

    def later(self, capability: Capability[Any], home: str, *first: Any) -> Self:
        """Offer a function by its dotted name, whose module is loaded when it is called; it is called with `first` in front."""
        return self.add(capability, lambda *asked, **words: named(home)(*first, *asked, **words))

    def get(self, capability: Capability[T]) -> T | None:
        """Return its implementation, None where the origin has no such capability."""
        provider: T | None = self._found.get(capability.name)
        return provider

    @property
    def names(self) -> list[str]:
        """Return the names of all that is offered."""
        return sorted(self._found)


class Answering(Protocol):
    """What answers questions."""

    def answer(self, question: Question) -> Answer:
        """Return the merged windows that a question asks for.

        InputError where nothing matches, UsageError for labels and steps that cannot be.
        """


class Origin(Answering, Protocol):
    """Files or a store: what can be asked, with the same numbers from all of them."""

    @property
    def indexed(self) -> bool:
        """Return whether a question about a part of the data reads hardly more than that part: large ones are then cut up."""

    @property
    def offers(self) -> Capabilities:
        """Return what it can do beyond this."""

    def runs(self) -> Sequence[Run]:
        """Return all runs, by name."""

    def windows(self, question: Question) -> Iterator[Intervals[Group]]:
        """Yield the selected windows at the stored step under (run, kind, then the question's labels), in bounded batches."""

    def facts(self, answer: Answer) -> Sequence[tuple[str, str]]:
        """Return (name, value) pairs about the runs of an answer."""

    def marks(self, answer: Answer) -> Sequence[Mapping[str, Any]]:
        """Return the marks of the runs of an answer in time order: run, at_ns, text, and end_ns where there is one."""

    def episodes(self, runs: Iterable[str]) -> Sequence[Episode]:
        """Return the kept episodes of runs in time order."""


class OffsetTicks(Protocol):
    """The function that makes the map of offsets of a report."""

    def __call__(self, names: Mapping[str, str], wanted: WantedOffsets, *, full: bool) -> list[OffsetOverview]:
        """Return the offsets of the runs in `names` (run: under which name it is shown), those that have any."""


WHOLE = "are not available here: ask for the whole answer"
NO_MOMENTS = "need the moments of single events, which this store does not keep: name the logs themselves"
WEIGHED: Capability[Callable[[Question], Answer]] = Capability("weights of sampled events", WHOLE)
PERCENTILES: Capability[Callable[[Question, Wanted], tuple[Table, Answer]]] = Capability("percentiles as they are read", WHOLE)
INTERVAL_LOG: Capability[Callable[[Question], IntervalLog]] = Capability("logs of intervals", WHOLE)
OFFSETS: Capability[Callable[[WantedOffsets], OffsetMap]] = Capability("offsets", NO_MOMENTS)
OFFSET_TICKS: Capability[OffsetTicks] = Capability("maps of offsets", NO_MOMENTS)
SLOWEST: Capability[Callable[[Mapping[str, str], Question], Slowest]] = Capability("single operations", NO_MOMENTS)
BREATHS: Capability[Callable[[Question], StoredBreaths]] = Capability(
    "breaths", "are not kept here: name the timelines themselves"
)
FINDINGS: Capability[Callable[[str, str], Story | None]] = Capability("findings", "are not kept here: they are computed")
WHOLE_RUNS: Capability[Callable[[Collection[str]], list[WholeRun]]] = Capability(
    "whole runs", "as the tools reported them are not kept in this store: name the logs themselves"
)
LOGS: Capability[Files] = Capability("this", "reads the logs themselves: name their files or folder, not a store")
SNAPSHOT: Capability[Callable[[float], AbstractContextManager[None]]] = Capability(
    "one moment for several answers", "is not available here: this store changes while it is read"
)

KNOWN_RUNS: Capability[Callable[[], AbstractContextManager[None]]] = Capability(
    "what runs are, read once for several questions", "costs nothing to read here"
)


def require(origin: Origin, capability: Capability[T], subject: str = "") -> T:
    """Return its implementation; UsageError about `subject` (by default the capability) where the origin has none."""
    provider = origin.offers.get(capability)
    if provider is None:
        raise UsageError(f"{subject or capability.name} {capability.missing}")
    return provider
