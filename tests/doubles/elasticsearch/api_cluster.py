"""Endpoints for what an operator looks at: settings of the cluster, disks, what a login may do. From the documentation: none is
recorded."""

from __future__ import annotations

from typing import Any

from tests.doubles.elasticsearch.errors import CannotDo
from tests.doubles.elasticsearch.node import Answer, Node, Request
from tests.doubles.elasticsearch.security import CLUSTER_PRIVILEGES, INDEX_PRIVILEGES

Json = Any
WATERMARK = "cluster.routing.allocation.disk.watermark"
DEFAULTS = {
    "cluster.routing.allocation.disk.threshold_enabled": "true",
    f"{WATERMARK}.low": "85%",
    f"{WATERMARK}.low.max_headroom": "200gb",
    f"{WATERMARK}.high": "90%",
    f"{WATERMARK}.high.max_headroom": "150gb",
    f"{WATERMARK}.flood_stage": "95%",
    f"{WATERMARK}.flood_stage.max_headroom": "100gb",
}


def settings(node: Node, request: Request) -> Answer:
    """Answer `_cluster/settings`; of the defaults only those of disks."""
    if not (request.flag("flat_settings") and request.flag("include_defaults")):
        raise CannotDo("_cluster/settings without flat_settings and include_defaults")
    defaults = {name: value for name, value in DEFAULTS.items() if name not in node.cluster_settings}
    return 200, {"persistent": dict(node.cluster_settings), "transient": {}, "defaults": defaults}


def disks(node: Node, request: Request) -> Answer:
    """Answer `_nodes/stats/fs`."""
    total, free = node.disk
    now = node.millis()
    room = {"total_in_bytes": total, "free_in_bytes": free, "available_in_bytes": free}
    fs = {"timestamp": now, "total": room, "data": []}
    one = {"timestamp": now, "name": "double", "transport_address": "127.0.0.1:9300", "host": "127.0.0.1", "ip": "127.0.0.1:9300",
           "roles": ["data", "ingest", "master"], "fs": fs}  # fmt: skip
    counts = {"total": 1, "successful": 1, "failed": 0}
    return 200, {"_nodes": counts, "cluster_name": "double", "nodes": {node.uuid: one}}


def has_privileges(node: Node, request: Request) -> Answer:
    """Answer `_security/user/_has_privileges` for privileges of the cluster and of indices."""
    body = request.json(required=True)
    if set(body) - {"cluster", "index"}:
        raise CannotDo(f"_has_privileges of {sorted(set(body) - {'cluster', 'index'})}")
    cluster = {name: node.guard.grants(name, CLUSTER_PRIVILEGES) for name in body.get("cluster", ())}
    index: Json = {}
    for entry in body.get("index", ()):
        for name in entry["names"]:
            index.setdefault(name, {}).update({each: node.guard.grants(each, INDEX_PRIVILEGES) for each in entry["privileges"]})
    whole = all(cluster.values()) and all(all(own.values()) for own in index.values())
    answer = {"username": node.guard.user, "has_all_requested": whole, "cluster": cluster, "index": index, "application": {}}
    return 200, answer
