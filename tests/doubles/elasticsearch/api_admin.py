"""Endpoints for everything but documents and searches: the node, templates, indices, mappings, settings, figures."""

from __future__ import annotations

from typing import Any

from tests.doubles.elasticsearch import mapping
from tests.doubles.elasticsearch.errors import CannotDo, illegal, no_such_index, refuse
from tests.doubles.elasticsearch.indices import Index
from tests.doubles.elasticsearch.node import Answer, Node, Request
from tests.doubles.elasticsearch.settings import flat, nested
from tests.doubles.elasticsearch.shards import counts_of_shards

Json = Any
DONE: Answer = (200, {"acknowledged": True})
COLUMNS = (
    "health",
    "status",
    "index",
    "uuid",
    "pri",
    "rep",
    "docs.count",
    "docs.deleted",
    "store.size",
    "pri.store.size",
    "dataset.size",
)
ORDER = {"green": 0, "yellow": 1, "red": 2}


def info(node: Node, request: Request) -> Answer:
    """Answer `GET /`."""
    version = {
        "number": node.version, "build_flavor": "default", "build_type": "unknown", "build_hash": node.build["build_hash"],
        "build_date": node.build["build_date"], "build_snapshot": False, "lucene_version": node.build["lucene_version"],
        "minimum_wire_compatibility_version": node.build["minimum_wire_compatibility_version"],
        "minimum_index_compatibility_version": node.build["minimum_index_compatibility_version"],
    }  # fmt: skip
    return 200, {
        "name": "double",
        "cluster_name": "double",
        "cluster_uuid": node.uuid,
        "version": version,
        "tagline": "You Know, for Search",
    }


def health(node: Node, request: Request) -> Answer:
    """Answer `_cluster/health`; a status that a single node cannot reach is timed out at once."""
    name = request.parts.get("index")
    missing = name is not None and "*" not in name and any(one not in node.indices.by_name for one in name.split(","))
    indices = [] if missing else node.indices.select(name)
    primary = sum(len(index.shards) for index in indices)
    unassigned = sum(len(index.shards) * index.replicas for index in indices)
    status = "red" if missing else "yellow" if unassigned else "green"
    late = missing or ORDER[status] > ORDER.get(request.parameters.get("wait_for_status", "red"), 2)
    share = 100.0 * primary / (primary + unassigned) if primary else 100.0
    answer = {
        "cluster_name": "double", "status": status, "timed_out": late, "number_of_nodes": 1, "number_of_data_nodes": 1,
        "active_primary_shards": primary, "active_shards": primary, "relocating_shards": 0, "initializing_shards": 0,
        "unassigned_shards": unassigned, "unassigned_primary_shards": 0, "delayed_unassigned_shards": 0, "number_of_pending_tasks": 0,
        "number_of_in_flight_fetch": 0, "task_max_waiting_in_queue_millis": 0, "active_shards_percent_as_number": share,
    }  # fmt: skip
    return (408 if late else 200), answer


def put_component(node: Node, request: Request) -> Answer:
    """Answer `PUT _component_template/name`."""
    node.templates.put_component(request.parts["name"], request.json(required=True), create=request.flag("create"))
    return DONE


def get_component(node: Node, request: Request) -> Answer:
    """Answer `GET _component_template/name`."""
    return 200, node.templates.get_components(request.parts.get("name"))


def delete_component(node: Node, request: Request) -> Answer:
    """Answer `DELETE _component_template/name`."""
    node.templates.delete_component(request.parts["name"])
    return DONE


def put_index_template(node: Node, request: Request) -> Answer:
    """Answer `PUT _index_template/name`."""
    node.templates.put_index(request.parts["name"], request.json(required=True), create=request.flag("create"))
    return DONE


def get_index_template(node: Node, request: Request) -> Answer:
    """Answer `GET _index_template/name`."""
    return 200, node.templates.get_indices(request.parts.get("name"))


def delete_index_template(node: Node, request: Request) -> Answer:
    """Answer `DELETE _index_template/name`."""
    node.templates.delete_index(request.parts["name"])
    return DONE


def simulate_index(node: Node, request: Request) -> Answer:
    """Answer `_index_template/_simulate_index/name`: what an index of that name would be."""
    if request.body.strip():
        raise CannotDo("a body of _simulate_index")
    return 200, node.templates.simulate(node.templates.matching(request.parts["name"]))


def simulate_template(node: Node, request: Request) -> Answer:
    """Answer `_index_template/_simulate/name`: what indices of that template would be."""
    if request.body.strip():
        raise CannotDo("a body of _simulate")
    name = request.parts["name"]
    if name not in node.templates.indices:
        raise illegal(f"unable to simulate template [{name}] that does not exist")
    return 200, node.templates.simulate([name])


def create_index(node: Node, request: Request) -> Answer:
    """Answer `PUT index`."""
    body = request.json()
    for key in body:
        if key not in ("settings", "mappings"):
            if key == "aliases":
                raise CannotDo("[aliases] of a new index")
            raise refuse(400, "parse_exception", f"unknown key [{key}] for create index")
    settings, tree = node.templates.for_index(request.parts["index"])
    own = mapping.parse(body["mappings"]).tree if body.get("mappings") else {}
    index = node.indices.create(
        request.parts["index"], settings | flat(body.get("settings", {})), mapping.merged(tree, own, templates=True)
    )
    return 200, {"acknowledged": True, "shards_acknowledged": True, "index": index.name}


def delete_index(node: Node, request: Request) -> Answer:
    """Answer `DELETE index`: by name only, as `action.destructive_requires_name` has it."""
    expression = request.parts["index"]
    if "*" in expression or expression == "_all":
        raise illegal("Wildcard expressions or all indices are not allowed")
    for index in node.selected(request):
        node.indices.delete(index)
    return DONE


def get_index(node: Node, request: Request) -> Answer:
    """Answer `GET index`, and `HEAD`."""
    found = node.selected(request)
    if not found and request.method == "HEAD":
        raise no_such_index(request.parts["index"])
    return 200, {
        index.name: {"aliases": {}, "mappings": index.mapping.tree, "settings": _settings(node, index, request)}
        for index in found
    }


def get_mapping(node: Node, request: Request) -> Answer:
    """Answer `GET index/_mapping`."""
    return 200, {index.name: {"mappings": index.mapping.tree} for index in node.selected(request)}


def put_mapping(node: Node, request: Request) -> Answer:
    """Answer `PUT index/_mapping`: fields are added, none is changed."""
    new = mapping.parse(request.json(required=True)).tree
    found = node.selected(request)
    for index in found:
        index.set_mapping(mapping.merged(index.mapping.tree, new))
    return DONE


def _settings(node: Node, index: Index, request: Request) -> Json:
    shut = {"index.verified_before_close": "true"} if index.shut else {}
    known = {
        **shut, "index.number_of_shards": "1", "index.number_of_replicas": "1", **index.settings, "index.provided_name": index.name,
        "index.creation_date": str(index.created), "index.uuid": index.uuid, "index.version.created": node.build["created"],
        "index.routing.allocation.include._tier_preference": "data_content",
    }  # fmt: skip
    return {name: known[name] for name in sorted(known)} if request.flag("flat_settings") else nested(known)


def get_settings(node: Node, request: Request) -> Answer:
    """Answer `GET index/_settings`."""
    found = node.selected(request, closed_too=True)
    return 200, {index.name: {"settings": _settings(node, index, request)} for index in found}


def close(node: Node, request: Request) -> Answer:
    """Answer `_close`, as OpenSearch 2.19 does (not recorded of Elasticsearch)."""
    found = node.selected(request, closed_too=True)
    for index in found:
        index.shut = True
    return 200, {"acknowledged": True, "shards_acknowledged": True, "indices": {index.name: {"closed": True} for index in found}}


def reopen(node: Node, request: Request) -> Answer:
    """Answer `_open`."""
    for index in node.selected(request, closed_too=True):
        index.shut = False
    return 200, {"acknowledged": True, "shards_acknowledged": True}


def put_settings(node: Node, request: Request) -> Answer:
    """Answer `PUT index/_settings`."""
    body = request.json(required=True)
    for index in node.selected(request):
        node.indices.put_settings(index, body.get("settings", body))
    return DONE


def refresh(node: Node, request: Request) -> Answer:
    """Answer `_refresh`."""
    found = node.selected(request)
    total = 0
    for index in found:
        for shard in index.shards:
            shard.refresh()
        total += len(index.shards) * (1 + index.replicas)
    return 200, {"_shards": {**counts_of_shards(total), "successful": sum(len(index.shards) for index in found)}}


def resolve(node: Node, request: Request) -> Answer:
    """Answer `_resolve/index/name`."""
    if request.body.strip():
        raise CannotDo("a body of _resolve/index")
    found = node.indices.select(request.parts["name"], ignore_unavailable=request.flag("ignore_unavailable"))
    mode = {"mode": "standard"} if node.major >= 9 else {}
    return 200, {
        "indices": [{"name": index.name, "attributes": ["open"], **mode} for index in found],
        "aliases": [],
        "data_streams": [],
    }


def _row(node: Node, index: Index) -> dict[str, str]:
    """Return the columns of an index; sizes are the bytes of its sources, not of a disk."""
    size = sum(len(document.source) for shard in index.shards for document in shard.live.values())
    visible = sum(len(reader) for reader in node.readers([index]))
    return {
        "health": "yellow" if index.replicas else "green", "status": "open", "index": index.name, "uuid": index.uuid,
        "pri": str(len(index.shards)), "rep": str(index.replicas), "docs.count": str(visible), "docs.deleted": "0",
        "store.size": str(size), "pri.store.size": str(size), "dataset.size": str(size),
    }  # fmt: skip


def cat_indices(node: Node, request: Request) -> Answer:
    """Answer `_cat/indices?format=json`."""
    given = request.parameters
    if given.get("format") != "json":
        raise CannotDo("_cat/indices without format=json")
    wanted = given["h"].split(",") if "h" in given else list(COLUMNS)
    for name in wanted:
        if name not in COLUMNS:
            raise CannotDo(f"column [{name}] of _cat/indices")
        if "size" in name and given.get("bytes") != "b":
            raise CannotDo("sizes in _cat/indices without bytes=b")
    rows = [_row(node, index) for index in node.indices.select(request.parts.get("index"))]
    for key in reversed(given.get("s", "index").split(",")):
        name, _, way = key.partition(":")
        if name not in COLUMNS:
            raise CannotDo(f"sort by [{name}] of _cat/indices")
        rows.sort(key=lambda row: int(row[name]) if row[name].isdigit() else row[name], reverse=way == "desc")
    return 200, [{name: row[name] for name in wanted} for row in rows]


def stats(node: Node, request: Request) -> Answer:
    """Answer `_stats/docs,store`; sizes are the bytes of the sources."""
    wanted = request.parts.get("metric", "").split(",")
    if not set(wanted) <= {"docs", "store"}:
        raise CannotDo(f"_stats of {wanted}")
    found, shards = {}, 0
    total: Json = {}
    for index in node.indices.select(request.parts.get("index")):
        row = _row(node, index)
        size = int(row["store.size"])
        one: Json = {
            "docs": {"count": int(row["docs.count"]), "deleted": 0, "total_size_in_bytes": size},
            "store": {"size_in_bytes": size, "total_data_set_size_in_bytes": size, "reserved_in_bytes": 0},
        }
        one = {name: one[name] for name in wanted}
        found[index.name] = {"uuid": index.uuid, "health": row["health"], "status": "open", "primaries": one, "total": one}
        shards += len(index.shards) * (1 + index.replicas)
        total = {
            name: {key: value + total.get(name, {}).get(key, 0) for key, value in part.items()} for name, part in one.items()
        }
    return 200, {"_shards": counts_of_shards(shards), "_all": {"primaries": total, "total": total}, "indices": found}
