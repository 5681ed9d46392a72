"""The double as tests use it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Any

from tests.doubles.elasticsearch.aggregations import MAX_BUCKETS
from tests.doubles.elasticsearch.connection import Server
from tests.doubles.elasticsearch.node import Memory, Node, Rejecting, Seen
from tests.doubles.elasticsearch.security import Guard
from tests.doubles.elasticsearch.sources import loads
from tests.doubles.serving import Serving

Json = Any
MODULES = ("reindex",)


class ElasticsearchDouble(Serving):
    """An Elasticsearch server in this process, on 127.0.0.1 and a free port, from `with` to its end."""

    def __init__(
        self,
        version: str = "9.5.3",
        modules: Collection[str] = (),
        api_key: str | tuple[str, str] | None = None,
        basic: tuple[str, str] | None = None,
        denied: Collection[str] = (),
        max_content_length: int = 100 << 20,
        max_buckets: int = MAX_BUCKETS,
    ) -> None:
        unknown = set(modules) - set(MODULES)
        if unknown:
            raise ValueError(f"modules {sorted(unknown)}: the double knows {MODULES}")
        self.node = Node(version, frozenset(modules), Guard(api_key, basic, frozenset(denied)), max_buckets)
        super().__init__(Server(self.node, max_content_length))

    @property
    def url(self) -> str:
        """Return where it listens."""
        return self.origin

    @property
    def requests(self) -> deque[Seen]:
        """Return the requests so far (the last 20,000): method, path with query, status, bytes of the body."""
        return self.node.seen

    @property
    def refusals(self) -> list[str]:
        """Return what the double could not do: a test asserts that it is empty."""
        return self.node.refusals

    def index_names(self) -> list[str]:
        """Return the names of all indices, sorted."""
        with self.node.lock:
            return sorted(self.node.indices.by_name)

    def documents(self, index_pattern: str) -> dict[str, Json]:
        """Return the sources of all documents as they are now, refreshed or not, by `_id`, of indices that a pattern names."""
        with self.node.lock:
            indices = self.node.indices.select(index_pattern, ignore_unavailable=True)
            return {
                name: loads(document.source)
                for index in indices
                for shard in index.shards
                for name, document in shard.live.items()
            }

    def reject_next(self, whole: int = 0, items: float = 0.0, requests: int = 1) -> None:
        """Answer the next `whole` bulk requests 429; then, in the next `requests` ones, that share of the items."""
        with self.node.lock:
            self.node.rejecting = Rejecting(whole, items, requests if items else 0)

    def hold_at_most(self, limit: int, *, breaker: bool = False) -> Memory:
        """Answer bulk requests of more bytes 429 from now on: for indexing pressure, or as a breaker whose state may pass."""
        with self.node.lock:
            self.node.memory = Memory(limit, breaker)
            return self.node.memory

    def advance(self, seconds: float) -> None:
        """Let time pass: refresh intervals end, points in time expire."""
        with self.node.lock:
            self.node.ahead += seconds
