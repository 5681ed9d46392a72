"""Endpoints for documents: _bulk, _doc, _create, _update, _mget."""

from __future__ import annotations

import time
from typing import Any

import orjson

from tests.doubles.elasticsearch.api_search import source_filter
from tests.doubles.elasticsearch.bulk import ItemFailure, refreshed
from tests.doubles.elasticsearch.bulk_lines import Write, read_lines
from tests.doubles.elasticsearch.errors import CannotDo, Refusal, error_body, no_such_index, refuse
from tests.doubles.elasticsearch.indices import Index
from tests.doubles.elasticsearch.mapping import deep
from tests.doubles.elasticsearch.node import Answer, Node, Request
from tests.doubles.elasticsearch.shards import Document
from tests.doubles.elasticsearch.sources import SourceFilter, loads

Json = Any
PRESSURE = (
    "rejected execution of coordinating operation [coordinating_and_primary_bytes={0}, replica_bytes=0, all_bytes={0}, "
    "coordinating_operation_bytes={0}, max_coordinating_bytes={1}]"
)
BREAKER = "[parent] Data too large, data for [<http_request>] would be [{0}], which is larger than the limit of [{1}]"
QUEUE = "rejected execution of TimedRunnable{{...}} on TaskExecutionTimeTrackingEsThreadPoolExecutor[name = {0}/write, queue capacity = 1]"


def bulk(node: Node, request: Request) -> Answer:
    """Answer `_bulk`."""
    begin = time.monotonic()
    if node.rejecting.whole > 0:
        node.rejecting.whole -= 1
        raise refuse(429, "es_rejected_execution_exception", PRESSURE.format(len(request.body), 1048576))
    if len(request.body) > node.memory.limit:
        node.memory.refused += 1
        if node.memory.breaker:
            note = {"bytes_wanted": len(request.body), "bytes_limit": node.memory.limit, "durability": "TRANSIENT"}
            raise refuse(429, "circuit_breaking_exception", BREAKER.format(len(request.body), node.memory.limit), **note)
        raise refuse(429, "es_rejected_execution_exception", PRESSURE.format(len(request.body), node.memory.limit))
    lines = read_lines(
        request.body, request.parts.get("index"), lenient=node.major < 9, require_alias=request.flag("require_alias")
    )
    share = 0.0
    if node.rejecting.requests > 0:
        node.rejecting.requests -= 1
        share = node.rejecting.share

    def rejected(number: int) -> Json | None:
        if int((number + 1) * share + 1e-9) > int(number * share + 1e-9):
            return {"type": "es_rejected_execution_exception", "reason": QUEUE.format("double")}
        return None

    answer = node.writer().bulk(lines, request.parameters.get("refresh", "false"), rejected)
    return 200, {"errors": answer["errors"], "took": int((time.monotonic() - begin) * 1000), "items": answer["items"]}


def write(node: Node, request: Request) -> Answer:
    """Answer `PUT|POST index/_doc/id`, `POST index/_doc`, `index/_create/id`."""
    parameters = request.parameters
    operation = "create" if request.parts.get("kind") == "_create" else parameters.get("op_type", "index")
    identifier = request.parts.get("id")
    if identifier is None and operation == "index":
        operation = "create" if "op_type" in parameters else "index"
    return _single(node, request, _write_of(request, operation, identifier, request.body.strip()))


def _write_of(request: Request, operation: str, identifier: str | None, source: bytes) -> Write:
    given = request.parameters

    def number(name: str) -> int | None:
        return int(given[name]) if name in given else None

    found = Write(
        operation,
        request.parts["index"],
        identifier,
        number("version"),
        given.get("version_type", "internal"),
        number("if_seq_no"),
        number("if_primary_term"),
        request.flag("require_alias"),
        source,
    )
    if found.version_type == "internal" and found.version is not None:
        raise CannotDo("a version without version_type external or external_gte")
    return found


def _single(node: Node, request: Request, one: Write) -> Answer:
    if one.action != "delete" and not one.source:
        raise refuse(400, "parse_exception", "request body is required")
    writer = node.writer()
    try:
        status, answer = writer.apply(one)
    except ItemFailure as failure:
        error = dict(failure.error)
        if (
            error["type"] == "document_parsing_exception"
            and "caused_by" in error
            and error["caused_by"]["type"] in ("document_parsing_exception", "parsing_exception")
        ):
            raise Refusal(
                failure.status, {"error": {"root_cause": [error["caused_by"]], **error}, "status": failure.status}
            ) from failure
        raise Refusal(failure.status, error_body(failure.status, error)) from failure
    if writer.finish(request.parameters.get("refresh", "false")):
        answer = refreshed(answer)
    return status, answer


def delete(node: Node, request: Request) -> Answer:
    """Answer `DELETE index/_doc/id`."""
    name = request.parts["index"]
    if name not in node.indices.by_name and request.parameters.get("version_type", "internal") == "internal":
        raise no_such_index(name)
    return _single(node, request, _write_of(request, "delete", request.parts["id"], b""))


def update(node: Node, request: Request) -> Answer:
    """Answer `POST index/_update/id` with a partial document."""
    body = request.json(required=True)
    if set(body) != {"doc"}:
        raise CannotDo(f"_update with {sorted(body)}")
    index = node.indices.get(request.parts["index"])
    identifier = request.parts["id"]
    document = index.shard_of(identifier).live.get(identifier)
    if document is None:
        shard = index.shard_of(identifier).number
        raise refuse(
            404,
            "document_missing_exception",
            f"[{identifier}]: document missing",
            index_uuid=index.uuid,
            shard=str(shard),
            index=index.name,
        )
    old = loads(document.source)
    new = deep(old, body["doc"])
    if new == old:
        return 200, {
            "_index": index.name,
            "_id": identifier,
            "_version": document.version,
            "result": "noop",
            "_shards": {"total": 0, "successful": 0, "failed": 0},
            "_seq_no": document.sequence,
            "_primary_term": 1,
        }
    return _single(node, request, Write("index", index.name, identifier, source=orjson.dumps(new)))


def _found(index: Index, identifier: str, shown: SourceFilter) -> Json:
    document = index.shard_of(identifier).live.get(identifier)
    if document is None:
        return {"_index": index.name, "_id": identifier, "found": False}
    return {**_head(index, document), **_source_of(index, document, shown)}


def _head(index: Index, document: Document) -> Json:
    head: Json = {
        "_index": index.name,
        "_id": document.identifier,
        "_version": document.version,
        "_seq_no": document.sequence,
        "_primary_term": 1,
    }
    if document.parsed.ignored:
        head["_ignored"] = sorted(document.parsed.ignored)
    return {**head, "found": True}


def _source_of(index: Index, document: Document, shown: SourceFilter) -> Json:
    source = shown.show(document, index.mapping.tree.get("_source"))
    return {} if source is None else {"_source": source}


def get(node: Node, request: Request) -> Answer:
    """Answer `GET index/_doc/id`: what was written last, refreshed or not."""
    index = node.indices.get(request.parts["index"])
    answer = _found(index, request.parts["id"], source_filter(request))
    return (200 if answer["found"] else 404), answer


def mget(node: Node, request: Request) -> Answer:
    """Answer `_mget`."""
    body = request.json(required=True)
    if set(body) - {"ids", "docs"}:
        raise CannotDo(f"_mget with {sorted(body)}")
    wanted = [{"_id": one} for one in body.get("ids", [])] + body.get("docs", [])
    if not wanted:
        raise refuse(400, "action_request_validation_exception", "Validation Failed: 1: no documents to get;")
    found = []
    for one in wanted:
        if set(one) - {"_index", "_id", "_source"}:
            raise CannotDo(f"_mget of a document with {sorted(one)}")
        name = one.get("_index", request.parts.get("index"))
        if name is None:
            raise refuse(400, "action_request_validation_exception", "Validation Failed: 1: index is missing for doc 0;")
        if name not in node.indices.by_name:
            error = no_such_index(name).body["error"]
            found.append({"_index": name, "_id": str(one["_id"]), "error": error})
            continue
        shown = SourceFilter(one["_source"]) if "_source" in one else source_filter(request)
        found.append(_found(node.indices.by_name[name], str(one["_id"]), shown))
    return 200, {"docs": found}
