"""Stores as a server reads them: one state of the store for a whole page, and cheap news of whether it has changed."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from ingest.core.errors import StoreError
from ingest.query.origin import SNAPSHOT
from ingest.store import Store, open_store
from ingest.store.elastic.reading import search
from ingest.store.elastic.store import ElasticStore
from ingest.store.records import CLUSTER, COMPLETE, WHOLE_RUN

LONGEST_SECONDS = 60.0


@contextmanager
def reading(url: str) -> Iterator[Store]:
    """Give a store for reading, for a while; of a file all answers are of one moment, whatever is loaded meanwhile.

    StoreError where a file is read for longer than LONGEST_SECONDS; servers have limits of their own.
    """
    with open_store(url) as store:
        one_moment = store.offers.get(SNAPSHOT)
        with nullcontext() if one_moment is None else one_moment(LONGEST_SECONDS):
            yield store


class Version(Protocol):
    """A cheap check of whether a store has changed."""

    def __call__(self) -> str:
        """Return text that differs once anything in the store has changed; StoreError where this cannot be determined."""
        ...


def version_of(url: str) -> Version:
    """Return the check of whether a store has changed; it may be called by any thread."""
    for prefix, known in VERSIONS.items():
        if url.startswith(prefix):
            return known(url)
    return RecordsVersion(url)


class RecordsVersion:
    """The records of all runs, which every store has."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self) -> str:
        """Return a digest of the records."""
        with open_store(self._url) as store:
            return _digest(store.runs())


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
                    self._open((there.st_dev, there.st_ino))
                version = self._db.execute("PRAGMA data_version").fetchone()[0] if self._db else 0
            except sqlite3.Error:  # as in a folder that cannot be written to
                self._close()
                return f"{there.st_ino} {there.st_mtime_ns} {there.st_size}"
            return f"{self._opened} {version}"

    def _open(self, file: tuple[int, int]) -> None:
        self._close()
        quoted = str(self._path.resolve()).replace("?", "%3f").replace("#", "%23")
        self._db = sqlite3.connect(f"file:{quoted}?mode=ro", uri=True, isolation_level=None, check_same_thread=False)
        self._file = file
        self._opened += 1

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


VERSIONS: dict[str, Callable[[str], Version]] = {"sqlite:": SqliteVersion, "http://": ElasticVersion, "https://": ElasticVersion}
