"""The official client as we use it: bodies pass as they are, sockets are ours, and no request is repeated.

It chooses the node, and another one where a node fails; `Client.again` repeats. It is imported for the URL of a server alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from elastic_transport import NodeConfig, Serializer, Urllib3HttpNode
from elasticsearch import Elasticsearch
from urllib3 import HTTPConnectionPool

Pools = Callable[[str, int], HTTPConnectionPool]
POOL = "pool"


class Raw(Serializer):
    """Bytes are sent and returned as they are: ours are NDJSON already, and answers are read by those who ask."""

    mimetype: ClassVar[str] = "application/json"

    def dumps(self, data: bytes) -> bytes:
        """Return a body."""
        return data

    def loads(self, data: bytes) -> bytes:
        """Return a body."""
        return data


class Node(Urllib3HttpNode):
    """A node with our sockets, whose certificates are judged by our context alone.

    The client's own class adds the authorities of certifi to a context that it is given, and whoever shows a copy of a pinned
    certificate meets its fingerprint.
    """

    def __init__(self, config: NodeConfig) -> None:
        super().__init__(config)
        self.pool = config._extras[POOL](config.host, config.port)  # noqa: SLF001  # where the library keeps what others add

    def perform_request(self, *args: Any, **words: Any) -> Any:
        """Return an answer without the warnings in its headers, which are about requests and would be printed."""
        answer = super().perform_request(*args, **words)
        answer.meta.headers.pop("warning", None)
        return answer


def client_of(urls: Sequence[str], pools: Pools) -> Elasticsearch:
    """Return a client of the nodes at some URLs; `pools` returns the sockets of a host and port."""
    raw = Raw()
    return Elasticsearch(
        [
            NodeConfig(parts.scheme, parts.hostname or "", parts.port or 0, path_prefix=parts.path, _extras={POOL: pools})
            for parts in map(urlsplit, urls)
        ],
        node_class=Node,
        serializers=dict.fromkeys(("application/json", "application/x-ndjson", "application/*", "text/*"), raw),
        max_retries=0,
        retry_on_timeout=False,
        meta_header=False,
    )
