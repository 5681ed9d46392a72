"""One answer for all who ask the same, from one state of the store, and cheap news of whether it has changed."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from ingest.core.errors import StoreError, TailboardError
from ingest.core.pool import give_back_freed_memory
from ingest.query.origin import SNAPSHOT, is_server
from ingest.store import Store, open_store
from ingest.store.elastic.documents import search
from ingest.store.elastic.store import ElasticStore
from ingest.store.records import CLUSTER, COMPLETE, WHOLE_RUN

# One answer for all who ask the same: kept while it holds, made once at a time, by few workers, and never waited for long.
#
# Somebody who asks gets what is kept where it was looked at a moment ago; else it is looked at again (made anew where the
# source has changed) and waited for. What takes longer than that is answered by what was kept before, with its age, or by
# BusyError.


WORKERS = 2
MOST_PENDING = 16
MOST_WAITING = 6
MOST_KEPT = 32
MOST_BYTES = 64_000_000
FIRST_SECONDS = 10.0


class BusyError(TailboardError):
    """There is no answer yet: ask again in a while."""

    exit_status = 4


class Sized(Protocol):
    """What is kept."""

    @property
    def size(self) -> int:
        """Return how many bytes it takes."""
        ...


Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made", bound=Sized)


@dataclass(frozen=True, slots=True)
class CacheEntry(Generic[Made]):
    """What was made, and when it was last known to hold (of the monotonic clock, in seconds)."""

    made: Made
    at: float

    @property
    def age(self) -> float:
        """Return for how many seconds nobody has looked whether it still holds."""
        return time.monotonic() - self.at


class Cache(Generic[Key, Made]):
    """Answers by key. `make(key, before)` returns `before` where it still holds, else what holds now."""

    def __init__(self, make: Callable[[Key, Made | None], Made], fresh_seconds: float, patience_seconds: float) -> None:
        self._make = make
        self._fresh = fresh_seconds
        self._patience = patience_seconds
        self._lock = Lock()
        self._kept: OrderedDict[Key, CacheEntry[Made]] = OrderedDict()
        self._pending: dict[Key, Future[CacheEntry[Made]]] = {}
        self._waiting = 0
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="cache")

    def ask(self, key: Key) -> CacheEntry[Made]:
        """Return the answer, with its age; BusyError where there is none in time, and what `make` raises."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                if kept.age < self._fresh:
                    return kept
            future = self._pending.get(key)
            if future is None and len(self._pending) < MOST_PENDING:
                self._pending[key] = future = self._workers.submit(self._looked, key)
            if future is None or self._waiting >= MOST_WAITING:
                return _old(kept, "too many questions at once: this one is asked again in a moment")
            self._waiting += 1
        try:
            return future.result(timeout=FIRST_SECONDS if kept is None else self._patience)
        except NotYetError:
            return _old(kept, "the answer takes long: it is being computed, and this page asks for it again in a moment")
        finally:
            with self._lock:
                self._waiting -= 1

    def _looked(self, key: Key) -> CacheEntry[Made]:
        try:
            before = self._kept.get(key)
            begun = time.monotonic()
            kept = CacheEntry(self._make(key, before.made if before else None), begun)
            with self._lock:
                self._kept[key] = kept
                self._kept.move_to_end(key)
                while len(self._kept) > MOST_KEPT or self.size > MOST_BYTES:
                    self._kept.popitem(last=False)
            return kept
        finally:
            give_back_freed_memory()  # an answer is made of many times its size, and may be the last one for hours
            with self._lock:
                del self._pending[key]

    @property
    def size(self) -> int:
        """Return how many bytes are kept."""
        return sum(kept.made.size for kept in self._kept.values())


def _old(kept: CacheEntry[Made] | None, reason: str) -> CacheEntry[Made]:
    if kept is None:
        raise BusyError(reason)
    return kept


# Stores as a server reads them: one state of the store for a whole page, and cheap news of whether it has changed.


LONGEST_SECONDS = 300.0


@contextmanager
def reading(url: str) -> Iterator[Store]:
    """Give a store for reading, for a while; of a file all answers are of one moment, whatever is loaded meanwhile.

    StoreError where a file is read for longer than LONGEST_SECONDS; servers have limits of their own.
    """
    with open_store(url) as store:
        one_moment = store.offers.get(SNAPSHOT)
        with nullcontext() if one_moment is None else one_moment(LONGEST_SECONDS):
            yield store


Version = Callable[[], str]


def version_of(url: str) -> Version:
    """Return a cheap check of whether a store has changed: text that differs once anything in it has. Any thread may call it.

    It raises StoreError where this cannot be determined.
    """
    return ElasticVersion(url) if is_server(url) else SqliteVersion(url)


class SqliteVersion:
    """SQLite's own count of commits by others, on a connection that is kept for it; anew where the file is another one."""

    def __init__(self, url: str) -> None:
        self._path = Path(url.removeprefix("sqlite:"))
        self._lock = Lock()
        self._db: sqlite3.Connection | None = None
        self._file = (0, 0)
        self._opened = 0

    def __call__(self) -> str:
        """Return the file and the version of its data; where it cannot be opened, reading the store reports why."""
        with self._lock:
            try:
                there = self._path.stat()
            except OSError:
                self._close()
                return f"{self._opened} none"
            try:
                if self._db is None or (there.st_dev, there.st_ino) != self._file:
                    self._close()
                    quoted = str(self._path.resolve()).replace("?", "%3f").replace("#", "%23")
                    url = f"file:{quoted}?mode=ro"
                    self._db = sqlite3.connect(url, uri=True, isolation_level=None, check_same_thread=False)
                    self._file, self._opened = (there.st_dev, there.st_ino), self._opened + 1
                version = self._db.execute("PRAGMA data_version").fetchone()[0]
            except sqlite3.Error:  # as in a folder that cannot be written to
                self._close()
                return f"{there.st_ino} {there.st_mtime_ns} {there.st_size}"
            return f"{self._opened} {version}"

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db = None


class ElasticVersion:
    """The records of runs, sums of their whole rollups, marks, and how much there is of runs that are loading: small searches."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = Lock()
        self._store: ElasticStore | None = None

    def __call__(self) -> str:
        """Return a digest of what the server says."""
        with self._lock:
            try:
                if self._store is None:
                    self._store = ElasticStore(self._url)
                return _counts_of(self._store)
            except StoreError:
                self._store = None
                raise


def _counts_of(store: ElasticStore) -> str:
    records = store.runs()
    names = store.names
    growing = [record.run for record in records if record.state != COMPLETE]
    whole = {"bool": {"filter": [{"term": {"rollup.scope": CLUSTER}}, {"term": {"rollup.step_ms": WHOLE_RUN}}]}}
    sums = ("latency.count", "generation")
    counted = [
        _counted(store, names.one("marks"), {"match_all": {}}, ()),
        _counted(store, names.one("episodes"), {"match_all": {}}, ("episode.samples", "episode.windows")),
        _counted(store, names.all("rollups"), whole, sums),
    ]
    if growing:
        counted.append(_counted(store, names.all("intervals"), {"terms": {"run.id": growing}}, sums))
    return _digest((records, counted))


def _digest(facts: object) -> str:
    return hashlib.sha256(repr(facts).encode("utf-8", "backslashreplace")).hexdigest()


def _counted(store: ElasticStore, index: str, query: dict[str, Any], fields: tuple[str, ...]) -> Any:
    sums = {name: {"sum": {"field": name}} for name in fields}
    body: dict[str, Any] = {"size": 0, "track_total_hits": True, "query": query, **({"aggs": sums} if sums else {})}
    answer = search(store.connection, index, body)
    return answer["hits"]["total"]["value"], answer.get("aggregations")
