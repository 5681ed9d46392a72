"""The node: all that the double remembers, and one request on its way through it."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from tests.doubles.elasticsearch.bulk import Writer
from tests.doubles.elasticsearch.columns import Reader
from tests.doubles.elasticsearch.errors import refuse
from tests.doubles.elasticsearch.indices import Index, Indices, new_uuid
from tests.doubles.elasticsearch.parameters import flag
from tests.doubles.elasticsearch.security import Guard
from tests.doubles.elasticsearch.sources import body_error
from tests.doubles.elasticsearch.templates import Templates

Json = Any
HELP = {
    8: "https://www.elastic.co/guide/en/elasticsearch/reference/{}/fix-watermark-errors.html",
    9: "https://www.elastic.co/docs/troubleshoot/elasticsearch/fix-watermark-errors?version={}",
}
BUILDS = {  # recorded
    8: {"build_hash": "4fe44c255c3d0da06779b921e132cdc555ed9aff", "build_date": "2026-08-26T22:10:47.574903747Z", "lucene_version": "9.12.2",
        "minimum_wire_compatibility_version": "7.17.0", "minimum_index_compatibility_version": "7.0.0", "created": "8537000"},
    9: {"build_hash": "367ec317ec5f668dd864d41be06052a567102fec", "build_date": "2026-09-01T16:11:59.322249404Z", "lucene_version": "10.5.1",
        "minimum_wire_compatibility_version": "8.19.0", "minimum_index_compatibility_version": "8.0.0", "created": "9111000"},
}  # fmt: skip


class Seen(NamedTuple):
    """One request that was answered: `path` with its query, the length of its body in bytes."""

    method: str
    path: str
    status: int
    length: int


@dataclass(slots=True)
class Request:
    """One request."""

    method: str
    path: str
    target: str
    parameters: dict[str, str]
    headers: dict[str, str]
    body: bytes
    parts: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the body as text."""
        return self.body.decode("utf-8", "replace")

    def json(self, *, required: bool = False) -> Json:
        """Return the body's object, empty without a body."""
        if not self.body.strip():
            if required:
                raise refuse(400, "parse_exception", "request body is required")
            return {}
        try:
            found = orjson.loads(self.body)
        except orjson.JSONDecodeError:
            raise body_error(self.text) from None
        if not isinstance(found, dict):
            raise refuse(400, "parsing_exception", "Expected [START_OBJECT] but found something else", line=1, col=1)
        return found

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a parameter that is true or false."""
        return flag(self.parameters, name, default)


@dataclass(slots=True)
class PointInTime:
    """Readers held for a while."""

    readers: list[Reader]
    keep: float
    until: float


@dataclass(slots=True)
class Rejecting:
    """What `reject_next` asked for."""

    whole: int = 0
    share: float = 0.0
    requests: int = 0


@dataclass(slots=True)
class Memory:
    """What `hold_at_most` asked for, and how many bulk requests were refused for it."""

    limit: int = sys.maxsize
    breaker: bool = False
    refused: int = 0


class Node:
    """State and configuration of the double."""

    def __init__(self, version: str, modules: frozenset[str], guard: Guard, max_buckets: int) -> None:
        self.version = version
        self.major = int(version.split(".", maxsplit=1)[0])
        self.build = BUILDS[self.major]
        self.modules = modules
        self.guard = guard
        self.max_buckets = max_buckets
        self.ahead = 0.0
        self.lock = threading.RLock()
        self.uuid = new_uuid()
        self.indices = Indices(self.clock, self.millis)
        self.templates = Templates(self.millis, dated=self.major >= 9, tiered=self.major < 9)
        self.points: dict[str, PointInTime] = {}
        self.closed: dict[str, PointInTime] = {}
        self.rejecting = Rejecting()
        self.disk = (500 << 30, 400 << 30)  # bytes: all, free
        self.cluster_settings: dict[str, str] = {}
        self.memory = Memory()
        self.seen: deque[Seen] = deque(maxlen=20_000)
        self.refusals: list[str] = []

    def clock(self) -> float:
        """Return seconds that only go forward; tests can make them jump."""
        return time.monotonic() + self.ahead

    def millis(self) -> int:
        """Return the wall clock in milliseconds."""
        return int((time.time() + self.ahead) * 1000)

    def writer(self) -> Writer:
        """Return what a write request works with."""
        version = ".".join(self.version.split(".")[:2])
        page = HELP[self.major].format(version)
        return Writer(self.indices, self.templates, self.major < 9, self.guard.denial, page)

    def readers(self, indices: list[Index]) -> list[Reader]:
        """Return what can be searched of some indices now."""
        now = self.clock()
        found = []
        for index in indices:
            for shard in index.shards:
                shard.tick(now)
                found.append(shard.reader)
        return found

    def selected(self, request: Request, name: str = "index", *, closed_too: bool = False) -> list[Index]:
        """Return the indices that a request's path names; closed ones are refused, or left out, unless they may be there, too."""
        return self.indices.select(
            request.parts.get(name),
            ignore_unavailable=request.flag("ignore_unavailable"),
            allow_no_indices=request.flag("allow_no_indices", True),
            wildcards=request.parameters.get("expand_wildcards", "open"),
            closed_too=closed_too,
        )


Answer = tuple[int, Json]
Handler = Callable[[Node, Request], Answer]
