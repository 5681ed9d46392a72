"""What can go wrong with an HTTP call to Elasticsearch, which of it makes sense for which call, and how it looks to a client.

The answers are those of real nodes: a full queue gives 429 to the whole bulk or to single items of a 200, a body above
`http.max_content_length` an empty 413 without product header, a gateway a 502 with a page.
"""

from __future__ import annotations

import gzip
import http.client
import json
import random
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import BinaryIO
from urllib.parse import parse_qsl, urlencode, urlsplit


class Fault(StrEnum):
    """What can happen to a call. `written`: the target has processed it although the client sees an error."""

    REFUSE = "refuse"  # the connection is closed without a word
    DOWN = "down"  # the same, and for `away` seconds the port refuses connections
    RESET_BEFORE = "reset_before"  # reset while the body is being sent
    RESET_AFTER = "reset_after"  # written, then reset: the answer is lost
    TIMEOUT_BEFORE = "timeout_before"  # no answer until the client gives up; never forwarded
    TIMEOUT_AFTER = "timeout_after"  # written; no answer until the client gives up
    TIMEOUT_LATE = "timeout_late"  # no answer, and written only after the client gave up: it may overtake what came later
    REJECT = "reject"  # 429 for the whole request
    REJECT_ITEMS = "reject_items"  # bulk: some items are answered with 429 and not written, the others are written
    UNAVAILABLE = "unavailable"  # 503
    BAD_GATEWAY = "bad_gateway"  # 502 of a gateway that did not reach the server
    BAD_GATEWAY_AFTER = "bad_gateway_after"  # written, then 502 of a gateway that lost the answer
    TOO_LARGE = "too_large"  # bulk of two items or more: 413, empty, without product header, connection closed
    TRUNCATE = "truncate"  # written; the answer breaks off before its Content-Length

    @property
    def written(self) -> bool:
        """Return whether the target processes a whole call that meets this fault."""
        return self in {Fault.RESET_AFTER, Fault.TIMEOUT_AFTER, Fault.TIMEOUT_LATE, Fault.BAD_GATEWAY_AFTER, Fault.TRUNCATE}


ALL = tuple(fault for fault in Fault if fault is not Fault.TIMEOUT_LATE)
EARLY = frozenset({Fault.REFUSE, Fault.DOWN, Fault.RESET_BEFORE})
BULK_ONLY = frozenset({Fault.REJECT_ITEMS, Fault.TOO_LARGE})
HOP_BY_HOP = frozenset({"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"})
FRAMING = HOP_BY_HOP | {"content-length", "expect", "host"}
REJECTED = {
    "type": "es_rejected_execution_exception",
    "reason": "rejected execution of coordinating operation [coordinating_and_primary_bytes=1039066, replica_bytes=0]",
}
NOT_READY = {
    "type": "cluster_block_exception",
    "reason": "blocked by: [SERVICE_UNAVAILABLE/1/state not recovered / initialized];",
}
GATEWAY_PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"
Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Request:
    """A call as the client sent it, the body unchunked but not decompressed."""

    method: str
    target: str
    headers: Headers
    body: bytes = b""
    keep: bool = True

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back. `length` is what Content-Length says, where that is not the length of the body."""

    status: int
    headers: Headers
    body: bytes = b""
    length: int | None = None

    def text(self, keep: bool) -> bytes:
        reason = http.client.responses.get(self.status, "")
        length = len(self.body) if self.length is None else self.length
        lines = [
            f"HTTP/1.1 {self.status} {reason}",
            *(f"{name}: {value}" for name, value in self.headers if name.lower() not in FRAMING),
        ]
        lines += [f"Content-Length: {length}", f"Connection: {'keep-alive' if keep else 'close'}", "", ""]
        return "\r\n".join(lines).encode("latin-1") + self.body


def planned(seed: int, number: int, share: float, faults: Collection[Fault]) -> list[Fault]:
    """Return the faults for a call, best first (the first that fits is taken); empty for a call that is left alone."""
    chance = random.Random(f"{seed}/{number}")
    return chance.sample(sorted(faults), len(faults)) if chance.random() < share else []


def bulk_items(request: Request) -> list[tuple[str, dict[str, object], bytes]] | None:
    """Return operation, its words and the lines of each bulk item; None if this is no well-formed bulk request."""
    if request.method not in {"POST", "PUT"} or not request.path.endswith("/_bulk"):
        return None
    try:
        body = gzip.decompress(request.body) if request.header("content-encoding") == "gzip" else request.body
        *lines, last = body.split(b"\n")
        found, place = [], 0
        while place < len(lines):
            ((op, words),) = json.loads(lines[place]).items()
            end = place + (1 if op == "delete" else 2)
            found.append((op, dict(words), b"".join(line + b"\n" for line in lines[place:end])))
            place = end
    except (ValueError, TypeError, AttributeError, OSError, EOFError, zlib.error):
        return None
    return found if place == len(lines) and not last else None


def filtered(value: object, patterns: list[list[str]]) -> object:
    """Return what a `filter_path` of inclusions (split at dots) leaves of an answer, None for nothing; lists are looked through."""
    if any(not rest for rest in patterns):
        return value
    if isinstance(value, list):
        return [part for one in value if (part := filtered(one, patterns)) is not None] or None
    if not isinstance(value, dict):
        return None
    kept = {}
    patterns = patterns + [rest[1:] for rest in patterns if rest[0] == "**" and len(rest) > 1]
    for name, one in value.items():
        deeper = [rest if rest[0] == "**" and len(rest) > 1 else rest[1:] for rest in patterns if fnmatchcase(name, rest[0])]
        if deeper and (part := filtered(one, deeper)) is not None:
            kept[name] = part
    return kept or None


def _error(status: int, error: dict[str, str]) -> Answer:
    body = json.dumps({"error": {"root_cause": [error], **error}, "status": status}).encode()
    return Answer(status, [("X-Elastic-Product", "Elasticsearch"), ("Content-Type", "application/json")], body)


CANNED = {
    Fault.REJECT: _error(429, REJECTED),
    Fault.UNAVAILABLE: _error(503, NOT_READY),
    Fault.BAD_GATEWAY: Answer(502, [("Content-Type", "text/html")], GATEWAY_PAGE),
    Fault.BAD_GATEWAY_AFTER: Answer(502, [("Content-Type", "text/html")], GATEWAY_PAGE),
    Fault.TOO_LARGE: Answer(413, []),
}


def may_meet(fault: Fault, head: Request) -> bool:
    """Return whether a fault makes sense for a call, as far as its first lines tell."""
    if fault in BULK_ONLY:
        return head.method in {"POST", "PUT"} and head.path.endswith("/_bulk")
    return not (fault is Fault.TRUNCATE and head.method == "HEAD")


def fits(fault: Fault, request: Request) -> bool:
    """Return whether a fault makes sense for a whole call: one document alone is never too large, or it could never be written."""
    if fault not in BULK_ONLY:
        return True
    items = bulk_items(request)
    patterns = without_filter(request.target)[1]
    if fault is Fault.REJECT_ITEMS and any(parts[0].startswith("-") for parts in patterns):
        return False  # exclusions are not understood here
    return len(items or ()) >= (2 if fault is Fault.TOO_LARGE else 1)


def without_filter(target: str) -> tuple[str, list[list[str]]]:
    """Return a request's target without filter_path, and the patterns that were in it."""
    parts = urlsplit(target)
    words = parse_qsl(parts.query, keep_blank_values=True)
    patterns = [one.split(".") for name, value in words if name == "filter_path" for one in value.split(",") if one]
    query = urlencode([(name, value) for name, value in words if name != "filter_path"])
    return parts._replace(query=query).geturl(), patterns


def read_head(stream: BinaryIO) -> Request | None:
    """Return the request line and headers, None at the end of the connection; ValueError if it is not HTTP."""
    line = stream.readline(1 << 16)
    if not line:
        return None
    method, target, version = line.decode("latin-1").split()
    headers = []
    while (line := stream.readline(1 << 16).strip()) != b"":
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name.strip(), value.strip()))
    head = Request(method, target, headers)
    wish = head.header("connection").lower()
    return replace(head, keep=wish == "keep-alive" if version == "HTTP/1.0" else wish != "close")


def read_body(head: Request, stream: BinaryIO) -> bytes:
    if head.header("transfer-encoding").lower() != "chunked":
        size = int(head.header("content-length") or 0)
        return _exactly(stream, size)
    parts = []
    while size := int(stream.readline(1 << 16).split(b";")[0], 16):
        parts.append(_exactly(stream, size))
        stream.readline(1 << 16)
    while stream.readline(1 << 16).strip():
        pass
    return b"".join(parts)


def _exactly(stream: BinaryIO, size: int) -> bytes:
    found = stream.read(size)
    if len(found) != size:
        raise ConnectionAbortedError("the client left within its request")
    return found
