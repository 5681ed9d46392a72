"""An HTTP server that takes bulk requests for Elasticsearch, counts them and forgets them: what is measured then is the sender.

    python benchmarks/sink.py [--record FILE]           prints its port on 127.0.0.1; ends when its standard input does

It says what a client must hear: product header, version, templates, single documents and records of runs as they were put,
empty searches, and for a bulk request one item for each document, as long as a real node writes them (or cut by `filter_path`),
all created. It does not look into other documents: lines are counted, so a body must have its lines as Elasticsearch wants them.
`GET /_sink/stats` tells requests, bulk requests, documents, deletes, bytes of bodies and its own CPU seconds. With --record each
bulk body is appended to FILE behind a line with its length. What it does not know it refuses with 501 and a sentence.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, unquote, urlsplit

HEAD_BYTES = 1 << 16
FIRST_BUFFER = 1 << 22
RECORDS = b'-runs"'  # how the index of records of runs ends
SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
ITEM = {
    "_index": "tailboard-intervals-0000.00",
    "_id": "x" * 20,
    "_version": 1,
    "result": "created",
    "_shards": {"total": 1, "successful": 1, "failed": 0},
    "_seq_no": 100_000,
    "_primary_term": 1,
    "status": 201,
}
OUTSIDE = {"errors": b'"errors":false', "took": b'"took":0'}
ALL_THERE = 2**53  # as the sum of samples: a load asks whether all is there that it has sent
BUCKETS = {"terms", "date_histogram", "histogram", "range", "date_range", "filters", "composite", "multi_terms"}
INFO = {
    "name": "sink",
    "cluster_name": "sink",
    "cluster_uuid": "sink-sink-sink-sink-si",
    "version": {"number": "9.5.3", "build_flavor": "default", "lucene_version": "10.5.1", "build_snapshot": False},
    "tagline": "You Know, for Search",
}
Reply = tuple[int, object]


class BadRequestError(Exception):
    """What was sent cannot be counted; the text says why."""


@dataclass(slots=True)
class Stats:
    """What came over one connection."""

    requests: int = 0
    bulk_requests: int = 0
    documents: int = 0
    deletes: int = 0
    bytes: int = 0
    bulk_bytes: int = 0


@dataclass(slots=True)
class Memory:
    """What all connections share: their counters, and what must be found again."""

    stats: list[Stats] = field(default_factory=list)
    templates: dict[str, dict[str, Any]] = field(default_factory=dict)
    documents: dict[tuple[str, str], tuple[int, Any]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    record: BinaryIO | None = None

    def totals(self) -> dict[str, float]:
        """Return the sums over all connections, and the CPU seconds of this process."""
        sums = {one.name: sum(getattr(stats, one.name) for stats in list(self.stats)) for one in fields(Stats)}
        return {**sums, "cpu_seconds": time.process_time()}


def counted(body: bytes | bytearray, begin: int, end: int) -> tuple[str, int, int]:
    """Return the operation of the first item, the number of items and how many delete; BadRequestError if a line is missing."""
    if end == begin or body[end - 1] != 10:
        raise BadRequestError("The bulk request must be terminated by a newline [\\n]")
    first = re.compile(rb'\s*\{\s*"(\w+)"').match(body, begin, min(end, begin + 256))
    if not first:
        raise BadRequestError("the first line is no action")
    deletes = body.count(b'\n{"delete"', begin, end) + (first[1] == b"delete")
    others, odd = divmod(body.count(b"\n", begin, end) - deletes, 2)
    if odd:
        raise BadRequestError("the lines are not pairs of action and document")
    return first[1].decode(), others + deletes, deletes


def operations(body: bytes | bytearray, begin: int, end: int) -> Iterator[str]:
    """Yield the operation of each item of a body in which some are deletes."""
    lines = iter(bytes(body[begin:end]).splitlines())
    for line in lines:
        op = json.loads(line).popitem()[0]
        if op != "delete":
            next(lines, None)
        yield op


def item_of(op: str, patterns: list[str]) -> bytes:
    """Return one item of a bulk answer, cut by filter_path; empty if nothing is left of it."""
    whole = {**ITEM, "result": "deleted", "status": 200} if op == "delete" else ITEM
    names = {pattern.split(".")[2] for pattern in patterns if pattern.count(".") >= 2}
    kept = {name: value for name, value in whole.items() if name in names or not patterns or {"items", "items.*"} & {*patterns}}
    return json.dumps({op: kept}, separators=(",", ":")).encode() if kept else b""


def answered(ops: list[str], count: int, patterns: list[str]) -> bytes:
    """Return the answer to a bulk request: `ops` of its items in order, or one that all `count` share.

    A part of which filter_path leaves nothing is not there. BadRequestError if it asks for what is not known here.
    """
    for pattern in patterns:
        known = re.fullmatch(r"errors|took|items|items\.\*(\.error(\..+)?)?|items\.\*\.(\w+)", pattern)
        if not known or (known[3] and known[3] not in ITEM):
            raise BadRequestError(f"the sink does not understand filter_path={pattern}")
    made = {op: item_of(op, patterns) for op in set(ops)}
    items = [made[ops[0]]] * count if len(ops) == 1 else [made[op] for op in ops]
    parts = [text for name, text in OUTSIDE.items() if not patterns or name in patterns]
    if made[ops[0]]:
        parts.append(b'"items":[' + b",".join(items) + b"]")
    return b"{" + b",".join(parts) + b"}"


def emptied(aggregations: dict[str, dict[str, Any]]) -> dict[str, object]:
    """Return what aggregations answer when nothing was found."""
    found: dict[str, object] = {}
    for name, asked in aggregations.items():
        kind = next(key for key in asked if key not in {"aggs", "aggregations", "meta"})
        if kind == "filter":
            found[name] = {"doc_count": 0, **emptied(asked.get("aggs") or {})}
            continue
        found[name] = {"buckets": []} if kind in BUCKETS else {"values": {}} if kind.startswith("percentile") else {"value": None}
        if kind in {"sum", "value_count", "cardinality"}:
            found[name] = {"value": ALL_THERE if asked[kind].get("field") == "latency.count" else 0}
    return found


def plain(memory: Memory, method: str, path: str, body: bytes) -> Reply:  # noqa: PLR0912  # a table of routes
    """Return the answer to everything but bulk requests."""
    parts = [unquote(part) for part in path.split("/") if part]
    words = json.loads(body) if body.strip() else {}
    match method, parts:
        case _, ["_sink", "stats"]:
            return 200, memory.totals()
        case _, []:
            return 200, INFO
        case _, ["_cluster", "health"]:
            return 200, {"cluster_name": "sink", "status": "green", "timed_out": False, "number_of_nodes": 1}
        case "PUT", ["_index_template" | "_component_template" as kind, name]:
            memory.templates[f"{kind}/{name}"] = words
            return 200, {"acknowledged": True}
        case "DELETE", ["_index_template" | "_component_template" as kind, name]:
            memory.templates.pop(f"{kind}/{name}", None)
            return 200, {"acknowledged": True}
        case "GET" | "HEAD", ["_index_template" | "_component_template" as kind, *name]:
            return templates(memory, kind, (name or ["*"])[0])
        case _, [*_, "_refresh" | "_flush"]:
            return 200, {"_shards": SHARDS}
        case _, [*_, "_search"]:
            return 200, searched(words)
        case "POST", [_, "_mget"]:
            known = {"found": True, "_seq_no": 0, "_primary_term": 1, "_source": {"generation": 1}}
            return 200, {"docs": [{"_id": name, **known} for name in words["ids"]]}
        case _, [*_, "_count"]:
            return 200, {"count": 0, "_shards": SHARDS}
        case "POST", [_, "_pit"]:
            return 200, {"id": "sink", "_shards": SHARDS}
        case "DELETE", ["_pit"]:
            return 200, {"succeeded": True, "num_freed": 1}
        case "GET", ["_resolve", "index", _]:
            return 200, {"indices": [], "aliases": [], "data_streams": []}
        case "GET" | "HEAD", [_] | [_, "_mapping" | "_settings"]:
            return 200, {}
        case "PUT" | "DELETE", [_]:
            return 200, {"acknowledged": True}
        case _, [index, "_doc" | "_create", name]:
            return document(memory, method, (index, name), words)
        case _:
            return 501, {"error": {"type": "sink", "reason": f"the sink does not know {method} {path}"}, "status": 501}


def templates(memory: Memory, kind: str, name: str) -> Reply:
    """Return the templates that were put under a name or pattern, 404 for a name that was not."""
    found = {key.partition("/")[2]: value for key, value in memory.templates.items() if fnmatchcase(key, f"{kind}/{name}")}
    if not found and "*" not in name:
        kind_of = "resource_not_found_exception"
        return 404, {"error": {"type": kind_of, "reason": f"template matching [{name}] not found"}, "status": 404}
    inner = kind.strip("_")
    return 200, {f"{inner}s": [{"name": key, inner: value} for key, value in found.items()]}


def document(memory: Memory, method: str, key: tuple[str, str], words: object) -> Reply:
    """Return the answer to a single document: these are kept, so that run records are found again."""
    with memory.lock:
        version, held = memory.documents.get(key, (0, None))
        named = {"_index": key[0], "_id": key[1], "_seq_no": version, "_primary_term": 1}
        if method in {"GET", "HEAD"}:
            known = {**named, "_version": version, "found": True, "_source": held}
            return (200, known) if version else (404, {"_index": key[0], "_id": key[1], "found": False})
        if method == "DELETE":
            memory.documents.pop(key, None)
            return (200 if version else 404), {**named, "result": "deleted" if version else "not_found"}
        memory.documents[key] = (version + 1, words)
    return (200 if version else 201), {**named, "_version": version + 1, "result": "updated" if version else "created"}


def searched(words: dict[str, Any]) -> dict[str, object]:
    """Return the answer to a search that finds nothing."""
    found: dict[str, object] = {"took": 0, "timed_out": False, "_shards": SHARDS}
    found["hits"] = {"total": {"value": 0, "relation": "eq"}, "max_score": None, "hits": []}
    asked = words.get("aggs") or words.get("aggregations")
    if asked:
        found["aggregations"] = emptied(asked)
    return {**found, "pit_id": "sink"} if "pit" in words else found


class Connection:
    """One client: reads its requests into one buffer, which is kept, and answers them."""

    def __init__(self, client: socket.socket, memory: Memory) -> None:
        self.client, self.memory, self.stats = client, memory, Stats()
        self.buffer = bytearray(FIRST_BUFFER)
        self.have = 0
        memory.stats.append(self.stats)

    def serve(self) -> None:
        """Answer until the client leaves."""
        self.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while self._one():
                pass
        except OSError:
            pass
        finally:
            self.client.close()

    def _more(self, wanted: int, flags: int = 0) -> bool:
        with memoryview(self.buffer) as view:
            got = self.client.recv_into(view[self.have : self.have + wanted], wanted, flags)
        self.have += got
        return got > 0

    def _one(self) -> bool:
        while (head_end := self.buffer.find(b"\r\n\r\n", 0, self.have)) < 0:
            if self.have >= HEAD_BYTES or not self._more(HEAD_BYTES):
                return False
        first, *lines = bytes(self.buffer[:head_end]).decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        begin = head_end + 4
        end = begin + int(headers.get("content-length", 0))
        if end > len(self.buffer):
            self.buffer.extend(bytes(end - len(self.buffer)))
        while self.have < end:
            if not self._more(end - self.have, socket.MSG_WAITALL):
                return False
        self.stats.requests += 1
        self.stats.bytes += end - begin
        status, text = self._answer(method, target, headers, begin, end)
        self.buffer[: self.have - end] = self.buffer[end : self.have]
        self.have -= end
        kind = headers.get("accept", "application/json")
        head = f"HTTP/1.1 {status} .\r\nX-Elastic-Product: Elasticsearch\r\nContent-Type: {kind}\r\n"
        head += f"Content-Length: {len(text)}\r\n\r\n"
        self.client.sendall(head.encode() + (b"" if method == "HEAD" else text))
        return headers.get("connection", "").lower() != "close"

    def _answer(self, method: str, target: str, headers: dict[str, str], begin: int, end: int) -> tuple[int, bytes]:
        place = urlsplit(target)
        try:
            if headers.get("transfer-encoding"):
                raise BadRequestError("the sink takes no chunked bodies")
            if not place.path.endswith("/_bulk"):
                status, words = plain(self.memory, method, place.path, bytes(self.buffer[begin:end]))
                return status, json.dumps(words).encode()
            if headers.get("content-encoding") == "gzip":
                body: bytes | bytearray = gzip.decompress(self.buffer[begin:end])
                begin, end = 0, len(body)
            else:
                body = self.buffer
            return 200, self._bulk(body, begin, end, parse_qs(place.query).get("filter_path", []))
        except (BadRequestError, ValueError) as error:
            words = {"error": {"type": "illegal_argument_exception", "reason": str(error)}, "status": 400}
            return 400, json.dumps(words).encode()

    def _bulk(self, body: bytes | bytearray, begin: int, end: int, filters: list[str]) -> bytes:
        op, items, deletes = counted(body, begin, end)
        ops = list(operations(body, begin, end)) if 0 < deletes < items else [op]
        answer = answered(ops, items, [one for text in filters for one in text.split(",")])
        if RECORDS in bytes(body[begin : begin + 200]):
            self._keep(bytes(body[begin:end]))
        self.stats.bulk_requests += 1
        self.stats.documents += items - deletes
        self.stats.deletes += deletes
        self.stats.bulk_bytes += end - begin
        if self.memory.record:
            with self.memory.lock:
                self.memory.record.write(b"%d\n" % (end - begin) + body[begin:end])
                self.memory.record.flush()
        return answer

    def _keep(self, body: bytes) -> None:
        """Keep the records of runs: a load looks for that of its run before it ends."""
        lines = iter(body.splitlines())
        for line in lines:
            ((op, words),) = json.loads(line).items()
            with self.memory.lock:
                self.memory.documents[words["_index"], words["_id"]] = (1, None if op == "delete" else json.loads(next(lines)))


def serve(listener: socket.socket, memory: Memory) -> None:
    """Take connections, a thread each, until the listener is closed."""
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=Connection(client, memory).serve, daemon=True).start()


def main() -> None:
    """Print the port and serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, metavar="FILE", help="append each bulk body behind a line with its length")
    words = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        record = words.record.open("ab") if words.record else None
        memory = Memory(record=record)
        threading.Thread(target=serve, args=(listener, memory), daemon=True).start()
        print(listener.getsockname()[1], flush=True)
        sys.stdin.buffer.read()
        if record:
            record.close()


if __name__ == "__main__":
    main()
