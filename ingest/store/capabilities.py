"""What only stores can do, or only some of them: growing runs, documents, dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ingest.query.origin import Capability

if TYPE_CHECKING:
    from pathlib import Path

    from ingest.store.elastic.names import Names
    from ingest.store.elastic.replay import ReplayAccount
    from ingest.store.live import LiveStore
    from ingest.store.records import RunRecord

GROWTH: Capability[Callable[[], LiveStore]] = Capability(
    "watch", "needs a store that takes growing runs: give sqlite:PATH or http://HOST:9200"
)
DOCUMENTS: Capability[Callable[[RunRecord, Names], Iterator[bytes]]] = Capability(
    "documents", "are exported from a store of SQLite or Elasticsearch: load the files into one first"
)
DEAD_LETTERS: Capability[Callable[[Path], ReplayAccount]] = Capability(
    "dead letters", "are what Elasticsearch has refused: give --store http://HOST:9200"
)
