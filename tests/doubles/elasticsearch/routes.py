"""Which path and method is answered by what, and what refuses a request before that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tests.doubles.elasticsearch import api_admin as admin
from tests.doubles.elasticsearch import api_cluster as cluster
from tests.doubles.elasticsearch import api_documents as documents
from tests.doubles.elasticsearch import api_search as searches
from tests.doubles.elasticsearch import esql, parameters
from tests.doubles.elasticsearch.errors import CannotDo, Refusal, refuse
from tests.doubles.elasticsearch.node import Answer, Handler, Node, Request

Json = Any
MEDIA = re.compile(
    r"application/vnd\.elasticsearch\+(json|x-ndjson|cbor|smile|yaml)\s*;\s*compatible-with\s*=\s*(\d+)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint."""

    methods: str
    parts: tuple[str, ...]
    handler: Handler
    group: str
    action: str
    module: str = ""


def _route(methods: str, path: str, handler: Handler, group: str, action: str, module: str = "") -> Route:
    return Route(methods, tuple(path.strip("/").split("/")) if path != "/" else (), handler, group, action, module)


ROUTES = [
    _route("GET HEAD", "/", admin.info, "info", "cluster:monitor/main"),
    _route("GET", "/_cluster/health", admin.health, "health", "cluster:monitor/health"),
    _route("GET", "/_cluster/health/{index}", admin.health, "health", "cluster:monitor/health"),
    _route(
        "PUT POST", "/_component_template/{name}", admin.put_component, "put_component", "cluster:admin/component_template/put"
    ),
    _route(
        "GET HEAD", "/_component_template/{name}", admin.get_component, "get_component", "cluster:admin/component_template/get"
    ),
    _route("GET", "/_component_template", admin.get_component, "get_component", "cluster:admin/component_template/get"),
    _route(
        "DELETE",
        "/_component_template/{name}",
        admin.delete_component,
        "delete_component",
        "cluster:admin/component_template/delete",
    ),
    _route(
        "POST",
        "/_index_template/_simulate_index/{name}",
        admin.simulate_index,
        "simulate",
        "indices:admin/index_template/simulate_index",
    ),
    _route(
        "POST", "/_index_template/_simulate/{name}", admin.simulate_template, "simulate", "indices:admin/index_template/simulate"
    ),
    _route(
        "PUT POST", "/_index_template/{name}", admin.put_index_template, "put_index_template", "indices:admin/index_template/put"
    ),
    _route(
        "GET HEAD", "/_index_template/{name}", admin.get_index_template, "get_index_template", "indices:admin/index_template/get"
    ),
    _route("GET", "/_index_template", admin.get_index_template, "get_index_template", "indices:admin/index_template/get"),
    _route(
        "DELETE",
        "/_index_template/{name}",
        admin.delete_index_template,
        "delete_index_template",
        "indices:admin/index_template/delete",
    ),
    _route("PUT POST", "/_bulk", documents.bulk, "bulk", "indices:data/write/bulk"),
    _route("PUT POST", "/{index}/_bulk", documents.bulk, "bulk", "indices:data/write/bulk"),
    _route("GET POST", "/_search", searches.search, "search", "indices:data/read/search"),
    _route("GET POST", "/{index}/_search", searches.search, "search", "indices:data/read/search"),
    _route("GET POST", "/_msearch", searches.msearch, "msearch", "indices:data/read/msearch"),
    _route("GET POST", "/{index}/_msearch", searches.msearch, "msearch", "indices:data/read/msearch"),
    _route("GET POST", "/_count", searches.count_all, "count", "indices:data/read/search"),
    _route("GET POST", "/{index}/_count", searches.count_all, "count", "indices:data/read/search"),
    _route("POST", "/{index}/_pit", searches.open_point, "open_pit", "indices:data/read/open_point_in_time"),
    _route("DELETE", "/_pit", searches.close_point, "close_pit", "indices:data/read/close_point_in_time"),
    _route("GET POST", "/_mget", documents.mget, "mget", "indices:data/read/mget"),
    _route("GET POST", "/{index}/_mget", documents.mget, "mget", "indices:data/read/mget"),
    _route("GET HEAD", "/{index}/_doc/{id}", documents.get, "get", "indices:data/read/get"),
    _route("PUT POST", "/{index}/{kind:_doc}/{id}", documents.write, "write", "indices:data/write/index"),
    _route("POST", "/{index}/{kind:_doc}", documents.write, "write", "indices:data/write/index"),
    _route("PUT POST", "/{index}/{kind:_create}/{id}", documents.write, "write", "indices:data/write/index"),
    _route("DELETE", "/{index}/_doc/{id}", documents.delete, "write", "indices:data/write/delete"),
    _route("POST", "/{index}/_update/{id}", documents.update, "update", "indices:data/write/update"),
    _route("POST", "/_query", esql.query, "esql", "indices:data/read/esql"),
    _route("GET POST", "/_refresh", admin.refresh, "refresh", "indices:admin/refresh"),
    _route("GET POST", "/{index}/_refresh", admin.refresh, "refresh", "indices:admin/refresh"),
    _route("GET", "/_mapping", admin.get_mapping, "get_mapping", "indices:admin/mappings/get"),
    _route("GET", "/{index}/_mapping", admin.get_mapping, "get_mapping", "indices:admin/mappings/get"),
    _route("PUT POST", "/{index}/_mapping", admin.put_mapping, "put_mapping", "indices:admin/mapping/put"),
    _route("POST", "/{index}/_close", admin.close, "close", "indices:admin/close"),
    _route("POST", "/{index}/_open", admin.reopen, "open", "indices:admin/open"),
    _route("GET", "/_settings", admin.get_settings, "get_settings", "indices:monitor/settings/get"),
    _route("GET", "/{index}/_settings", admin.get_settings, "get_settings", "indices:monitor/settings/get"),
    _route("PUT", "/{index}/_settings", admin.put_settings, "put_settings", "indices:admin/settings/update"),
    _route("GET", "/_resolve/index/{name}", admin.resolve, "resolve", "indices:admin/resolve/index"),
    # the client 9.5.1 sends POST, as the API of 9.5 has it; only GET was recorded
    _route("POST", "/_resolve/index/{name}", admin.resolve, "resolve", "indices:admin/resolve/index", "9.x"),
    _route("GET", "/_cat/indices", admin.cat_indices, "cat_indices", "indices:monitor/stats"),
    _route("GET", "/_cat/indices/{index}", admin.cat_indices, "cat_indices", "indices:monitor/stats"),
    _route("GET", "/_stats/{metric}", admin.stats, "stats", "indices:monitor/stats"),
    _route("GET", "/{index}/_stats/{metric}", admin.stats, "stats", "indices:monitor/stats"),
    _route("GET", "/_cluster/settings", cluster.settings, "cluster_settings", "cluster:monitor/settings"),
    _route("GET", "/_nodes/stats/fs", cluster.disks, "nodes_stats", "cluster:monitor/nodes/stats"),
    _route(
        "GET POST",
        "/_security/user/_has_privileges",
        cluster.has_privileges,
        "has_privileges",
        "cluster:monitor/main",
        "security",
    ),
    _route("PUT", "/{index}", admin.create_index, "create_index", "indices:admin/create"),
    _route("DELETE", "/{index}", admin.delete_index, "delete_index", "indices:admin/delete"),
    _route("GET HEAD", "/{index}", admin.get_index, "get_index", "indices:admin/get"),
]
MISSING = (  # endpoints of modules that the recorded nodes lacked; recorded: _delete_by_query, _data_stream, and a path that none has
    ("_delete_by_query", "reindex"), ("_update_by_query", "reindex"), ("_reindex", "reindex"), ("_data_stream", "data-streams"),
    ("_ilm", "ilm"), ("_security", "security"), ("_nope", ""),
)  # fmt: skip
MISSING_ALONE = ("_license", "_xpack")  # a single name: taken for an index


def _match(route: Route, parts: list[str]) -> dict[str, str] | None:
    if len(route.parts) != len(parts):
        return None
    found = {}
    for pattern, part in zip(route.parts, parts):
        if not pattern.startswith("{"):
            if pattern != part:
                return None
            continue
        name, _, fixed = pattern.strip("{}").partition(":")
        if (fixed and part != fixed) or (name == "index" and part.startswith("_") and part != "_all"):
            return None
        found[name] = part
    return found


def _there(node: Node, module: str) -> bool:
    if module == "security":
        return node.guard.on
    return not module or module in node.modules or (module == "9.x" and node.major >= 9)


def dispatch(node: Node, request: Request) -> Answer:
    """Return status and body of a request, or raise what refuses it."""
    parts = [unquote(part) for part in request.path.strip("/").split("/")] if request.path.strip("/") else []
    allowed: list[str] = []
    for route in ROUTES:
        found = _match(route, parts)
        if found is None or not _there(node, route.module):
            continue
        if request.method not in route.methods.split():
            allowed += route.methods.split()
            continue
        request.parts = found
        parameters.check(route.group, request.path, request.parameters)
        node.guard.allow(route.action, found.get("index", ""))
        return route.handler(node, request)
    raise _unknown(node, request, parts, allowed)


def _unknown(node: Node, request: Request, parts: list[str], allowed: list[str]) -> Exception:
    for name, module in MISSING:
        if name in parts and (not module or not _there(node, module)):
            return Refusal(400, {"error": f"no handler found for uri [{request.target}] and method [{request.method}]"})
    if parts and parts[0] in MISSING_ALONE and len(parts) == 1 and request.method == "GET":
        return refuse(
            400,
            "invalid_index_name_exception",
            f"Invalid index name [{parts[0]}], must not start with '_'.",
            index_uuid="_na_",
            index=parts[0],
        )
    if allowed:
        listed = ", ".join(sorted(set(allowed)))
        return Refusal(
            405,
            {
                "error": f"Incorrect HTTP method for uri [{request.target}] and method [{request.method}], allowed: [{listed}]",
                "status": 405,
            },
            {"Allow": listed},
        )
    return CannotDo(f"endpoint {request.method} {request.path}")


def check_media(node: Node, request: Request) -> str:
    """Return the content type of the answer, or refuse the request's types."""
    accept, sent = request.headers.get("accept", ""), request.headers.get("content-type", "")
    versions = (node.major, node.major - 1)
    bad = []
    # recorded: the reason lists Accept first on 8.19, Content-Type first on 9.5; the cause names Accept on both
    for name, value in (("Accept", accept), ("Content-Type", sent)):
        match = MEDIA.search(value)
        if match and int(match.group(2)) not in versions:
            bad.append((name, value, match.group(2)))
    if bad:
        listed = ", ".join([name for name, _, _ in bad][:: 1 if node.major < 9 else -1])
        cause = {
            "type": "status_exception",
            "reason": f"{bad[0][0]} version must be either version {versions[0]} or {versions[1]}, but found {bad[0][2]}. {bad[0][0]}={bad[0][1]}",
        }
        raise refuse(400, "media_type_header_exception", f"Invalid media-type value on headers [{listed}]", cause)
    if request.body:
        plain = sent.split(";")[0].strip().lower()
        match = MEDIA.search(sent)
        if not match and plain not in ("application/json", "application/x-ndjson"):
            raise Refusal(406, {"error": f"Content-Type header [{sent}] is not supported", "status": 406})
        if match and match.group(1).lower() not in ("json", "x-ndjson"):
            raise CannotDo(f"content type [{sent}]")
    match = MEDIA.search(accept)
    return f"application/vnd.elasticsearch+json;compatible-with={match.group(2)}" if match else "application/json"
