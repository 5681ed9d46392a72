"""Endpoints that search: _search, _msearch, _count, _pit."""

from __future__ import annotations

import base64
import json
import os
import time
from typing import Any

import orjson

from tests.doubles.elasticsearch.columns import Reader
from tests.doubles.elasticsearch.dates import seconds_of
from tests.doubles.elasticsearch.errors import CannotDo, Refusal, ShardFailure, illegal, refuse
from tests.doubles.elasticsearch.node import Answer, Node, PointInTime, Request
from tests.doubles.elasticsearch.search import Search, all_failed, count
from tests.doubles.elasticsearch.shards import counts_of_shards
from tests.doubles.elasticsearch.sources import SourceFilter

Json = Any


def search(node: Node, request: Request) -> Answer:
    """Answer `_search`."""
    body = request.json()
    for name in ("size", "from"):
        if name in request.parameters:
            body[name] = int(request.parameters[name])
    if "track_total_hits" in request.parameters:
        value = request.parameters["track_total_hits"]
        body["track_total_hits"] = value == "true" if value in ("true", "false") else int(value)
    for name in ("version", "seq_no_primary_term"):
        if name in request.parameters:
            body[name] = request.flag(name)
    return 200, _run(node, request, body, request.text)


def _run(node: Node, request: Request, body: Json, text: str) -> Json:
    begin = time.monotonic()
    found = Search(body, text, node.millis(), max_buckets=node.max_buckets)
    if {"_source", "_source_includes", "_source_excludes"} & request.parameters.keys():
        found.source = source_filter(request)
    gone: list[tuple[Reader, ShardFailure]] = []
    answer: Json = {}
    if found.pit is not None:
        if "index" in request.parts:
            raise refuse(
                400,
                "action_request_validation_exception",
                "Validation Failed: 1: [indices] cannot be used with point in time. Do not specify any index with point in time.;",
            )
        identifier, readers, gone = _held(node, found.pit)
        answer["pit_id"] = identifier
    else:
        readers = node.readers(node.selected(request))
    closed = [reader for reader in readers if not reader.index.open]
    gone += [
        (reader, ShardFailure(404, {"type": "search_context_missing_exception", "reason": _missing(node, place)}, repeated=False))
        for place, reader in enumerate(closed)
    ]
    readers = [reader for reader in readers if reader.index.open]
    result = found.run(readers, gone, partial=request.flag("allow_partial_search_results", True))
    return {**answer, "took": int((time.monotonic() - begin) * 1000), **result}


def source_filter(request: Request) -> SourceFilter:
    """Return the filter that a request's parameters ask for."""
    given: Any = request.parameters.get("_source", "true")
    return SourceFilter(given, request.parameters.get("_source_includes"), request.parameters.get("_source_excludes"))


def _missing(node: Node, number: int) -> str:
    if node.major < 9:
        return f"No search context found for id [{number}]"
    return f"No search context found for id [[{node.uuid}][{number}] searcherId [null]]"


def msearch(node: Node, request: Request) -> Answer:
    """Answer `_msearch` (from the documentation, not recorded): each search has a status of its own."""
    lines = request.body.split(b"\n")
    if not request.body.endswith(b"\n"):
        raise illegal("The msearch request must be terminated by a newline [\\n]")
    lines = [line for line in lines[:-1]]
    if len(lines) % 2:
        raise CannotDo("_msearch with a header that has no body")
    begin = time.monotonic()
    responses = [_one(node, request, header, body) for header, body in zip(lines[::2], lines[1::2])]
    return 200, {"took": int((time.monotonic() - begin) * 1000), "responses": responses}


def _one(node: Node, request: Request, header: bytes, body: bytes) -> Json:
    given = orjson.loads(header or b"{}")
    known = {
        "index",
        "ignore_unavailable",
        "allow_no_indices",
        "allow_partial_search_results",
        "request_cache",
        "preference",
        "expand_wildcards",
    }
    for key in given:
        if key not in known:
            raise CannotDo(f"[{key}] in a header of _msearch")
    index = given.get("index", request.parts.get("index"))
    parts = {"index": ",".join(index) if isinstance(index, list) else index} if index else {}
    parameters = {key: str(value).lower() for key, value in given.items() if key != "index"}
    inner = Request("POST", "/_search", "/_search", parameters, {}, body, parts)
    try:
        return {**_run(node, inner, inner.json(), inner.text), "status": 200}
    except Refusal as refusal:
        return dict(refusal.body)


def count_all(node: Node, request: Request) -> Answer:
    """Answer `_count`."""
    return 200, count(request.json(), request.text, node.millis(), node.readers(node.selected(request)))


def open_point(node: Node, request: Request) -> Answer:
    """Answer `POST index/_pit`: what can be searched now stays so."""
    if "keep_alive" not in request.parameters:
        raise refuse(400, "action_request_validation_exception", "Validation Failed: 1: [keep_alive] is not specified;")
    if request.body.strip():
        raise CannotDo("a body of _pit")
    readers = node.readers(node.selected(request))
    keep = seconds_of(request.parameters["keep_alive"])
    identifier = base64.urlsafe_b64encode(b"pit" + os.urandom(30)).decode()
    node.points[identifier] = PointInTime(readers, keep, node.clock() + keep)
    return 200, {"id": identifier, "_shards": counts_of_shards(len(readers), skipped=0)}


def _held(node: Node, given: Json) -> tuple[str, list[Reader], list[tuple[Reader, ShardFailure]]]:
    for key in given:
        if key not in ("id", "keep_alive"):
            raise CannotDo(f"[{key}] in pit")
    identifier = str(given["id"])
    if not identifier.startswith("cGl0"):
        raise illegal("unknown transport version [105] reading search context id")
    point = node.points.get(identifier)
    if point is not None and point.until < node.clock():
        node.closed[identifier] = node.points.pop(identifier)
        point = None
    if point is None:
        if identifier not in node.closed:
            raise CannotDo("a point in time that the double never opened")
        failures = [
            (
                reader,
                ShardFailure(404, {"type": "search_context_missing_exception", "reason": _missing(node, place)}, repeated=False),
            )
            for place, reader in enumerate(node.closed[identifier].readers)
        ]
        raise all_failed(failures)
    if "keep_alive" in given:
        point.keep = seconds_of(given["keep_alive"])
    point.until = node.clock() + point.keep
    return identifier, point.readers, []


def close_point(node: Node, request: Request) -> Answer:
    """Answer `DELETE _pit`."""
    identifier = request.json(required=True).get("id")
    if identifier is None:
        raise CannotDo(f"_pit closed with {json.dumps(request.json())}")
    point = node.points.pop(identifier, None)
    if point is None:
        return 404, {"succeeded": False, "num_freed": 0}
    node.closed[identifier] = point
    return 200, {"succeeded": True, "num_freed": len(point.readers)}
