"""Whether a server is well for tailboard: version, templates, mappings, disks, privileges, clock, and what it holds."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

from ingest.core.errors import StoreError, listed
from ingest.core.schema import elasticsearch_mappings, indices
from ingest.core.units import size
from ingest.store.doctor import NOT_SEEN, OK, WRONG, Line, failed, fits
from ingest.store.elastic.client import MAJORS, Connection, Refusal, parse_address
from ingest.store.elastic.documents import is_closed, settings_in
from ingest.store.elastic.setup import changes
from ingest.store.elastic.store import ElasticStore
from ingest.store.elastic.templates import Names, site_of

# The disks of a server's nodes, and the watermarks at which it stops to use them.
#
# A mark is a share that may be used (`85%`, `0.85`), of a large disk less a headroom (`low.max_headroom`, only where the mark
# is a share), or the bytes that must stay free (`500mb`). Source: Elasticsearch's documentation of disk-based shard allocation.


WATERMARK = "cluster.routing.allocation.disk.watermark"
THRESHOLD = "cluster.routing.allocation.disk.threshold_enabled"
UNITS = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40, "pb": 1 << 50}
MARKS = {  # the worst first
    "flood_stage": "the server blocks writing to its indices",
    "high": "the server moves shards away, where it can",
    "low": "the server puts no new shards there, such as those of the next month",
}


def _passed(settings: Mapping[str, Any], total: int, free: int) -> str:
    """Return the worst mark that a disk has passed, empty text where it has passed none."""
    if str(settings.get(THRESHOLD, "true")) == "false":
        return ""
    for name in MARKS:
        mark = str(settings.get(f"{WATERMARK}.{name}", ""))
        if mark and free < least_free(mark, str(settings.get(f"{WATERMARK}.{name}.max_headroom", "-1")), total):
            return name
    return ""


def least_free(mark: str, headroom: str, total: int) -> int:
    """Return how many bytes of a disk must stay free for a watermark; 0 for one that is not understood."""
    if (held := _bytes(mark)) is not None:
        return held
    share = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", mark.strip())
    if share is None:
        return 0
    used = float(share[1]) / (100 if share[2] else 1)
    least, most = int(total * (1 - used)), _bytes(headroom)
    return least if most is None else min(least, most)


def _bytes(text: str) -> int | None:
    """Return a size such as 500mb in bytes, None for what is none."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(b|kb|mb|gb|tb|pb)", text.strip().lower())
    return int(float(found[1]) * UNITS[found[2]]) if found else None


# Whether a server is well for tailboard: version, templates, mappings, blocks, disks, privileges, clock, and what it holds.
#
# Everything is read, nothing is changed. What the login may not look at is said, and is no fault.
# Sources of what is not recorded (see tests/doubles/elasticsearch): Elasticsearch's documentation of `_nodes/stats/fs`,
# `_cluster/settings`, `_security/user/_has_privileges`, and of disk-based shard allocation.


MOST_CLOCK_S = 5.0
BLOCKS = "index.blocks."
LOADS = ("auto_configure", "index", "read", "delete", "maintenance", "view_index_metadata")  # docs/guides/security.md
READS = ("read", "view_index_metadata")
SECURITY = "docs/guides/security.md"

Look = Callable[["Connection", "Names"], Iterator[Line]]


def examined(url: str) -> Iterator[Line]:
    """Yield what is found of the server at a URL."""
    address = parse_address(url)
    with closing(Connection(address)) as connection:
        try:
            connection.open()
        except StoreError as error:
            yield failed("server", error)
            return
        yield Line(
            "server", OK, f"Elasticsearch {connection.version} (supported: {' and '.join(f'{each}.x' for each in MAJORS)})"
        )
        names = Names(address.prefix)
        for name, look in LOOKS.items():
            try:
                yield from look(connection, names)
            except Refusal as error:
                yield Line(name, NOT_SEEN, f"the server does not tell: {error}")
            except StoreError as error:
                yield Line(name, NOT_SEEN, str(error))
    try:
        with ElasticStore(url) as store:
            yield from fits(store.verify(lambda _: True), url)
    except StoreError as error:
        yield Line("what is stored", NOT_SEEN, str(error))


def _templates(connection: Connection, names: Names) -> Iterator[Line]:
    """Yield whether the templates are there and those of this version."""
    command = f"tailboard store setup --elasticsearch {connection.address.url}"
    command += "" if names.prefix == "tailboard" else f" --index-prefix {names.prefix}"
    try:
        site = site_of(connection, names.prefix)
        differing = changes(connection, site)
    except StoreError as error:
        yield failed("templates", error, "upgrade tailboard" if "upgrade" in str(error) else command)
        return
    missing = [change.name for change in differing if change.missing]
    other = [f"{change.name} ({change.lines[0]})" for change in differing if not change.missing]
    if missing:
        yield Line("templates", WRONG, f"{listed(missing)}: missing, so documents would be stored without their types", command)
    if other:
        yield Line("templates", WRONG, f"not those of this version: {listed(other)}", f"{command} --overwrite")
    if not differing:
        yield Line("templates", OK, f"those of this version ({site.version}); period {site.period}, shards {site.shards}")


def _mappings(connection: Connection, names: Names) -> Iterator[Line]:
    """Yield the indices whose fields have other types than those that are written, or lack some."""
    seen = wrong = 0
    for index in indices():
        wanted = elasticsearch_mappings(index)["properties"]
        answer = connection.call("GET", f"/{names.pattern(index)}/_mapping", ignore_unavailable=True)
        for name, entry in sorted(answer.items()):
            seen += 1
            there = entry.get("mappings", {}).get("properties", {})
            conflicts: list[str] = []
            lacking: dict[str, Any] = {}
            for path, kind in _leaves(wanted):
                own = _at(there, path)
                if own is None:
                    _put(lacking, path, _at(wanted, path))
                elif own.get("type", "object") != kind:
                    conflicts.append(f"{'.'.join(path)} is {own.get('type', 'object')}, not {kind}")
            wrong += bool(conflicts or lacking)
            if conflicts:
                remedy = f"DELETE /{name}, remove the runs in it (tailboard runs check --mend), and load their logs again"
                yield Line("mappings", WRONG, f"{name}: {listed(conflicts)}", remedy)
            elif lacking:
                text = (
                    f"{name} has no field {listed('.'.join(path) for path, _ in _leaves(lacking))}: it refuses documents with it"
                )
                yield Line("mappings", WRONG, text, f"PUT /{name}/_mapping {json.dumps({'properties': lacking})}")
    if not wrong:
        yield Line("mappings", OK, f"{seen:,} indices have the fields that are written" if seen else "no index is there yet")


def _leaves(properties: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield path and type of each field."""
    for name, field in properties.items():
        if "properties" in field:
            yield from _leaves(field["properties"], (*above, name))
        else:
            yield (*above, name), str(field.get("type", "object"))


def _at(properties: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Return the mapping of a field, None where there is none."""
    place: Any = {"properties": properties}
    for name in path:
        place = (place.get("properties") or {}).get(name)
        if place is None:
            return None
    return place


def _put(properties: dict[str, Any], path: tuple[str, ...], field: Any) -> None:
    for name in path[:-1]:
        properties = properties.setdefault(name, {"properties": {}})["properties"]
    properties[path[-1]] = field


def _blocks(connection: Connection, names: Names) -> Iterator[Line]:
    """Yield the indices that take no documents."""
    answer, free = settings_in(connection, names), True
    for name, settings in answer.items():
        if is_closed(settings):
            free = False
            yield Line("write blocks", WRONG, f"{name} is closed: what it holds is in no answer", f"POST /{name}/_open")
            continue
        blocks = sorted(key for key, value in settings.items() if key.startswith(BLOCKS) and str(value) == "true")
        if blocks:
            free = False
            full = "read_only_allow_delete" in blocks[0]
            why = ", as the server does where its disk is full" if full else ""
            lift = json.dumps(dict.fromkeys(blocks))
            remedy = f"PUT /{name}/_settings {lift}" + (", once there is room on its disk" if full else "")
            yield Line("write blocks", WRONG, f"{name} takes no documents ({listed(blocks)}{why})", remedy)
    if free:
        yield Line("write blocks", OK, f"none on {len(answer):,} indices")


def _health(connection: Connection) -> Iterator[Line]:
    """Yield whether all primary shards are there."""
    status = str(connection.call("GET", "/_cluster/health")["status"])
    if status == "red":
        text = "red: shards are missing, and questions that need them fail"
        yield Line("shards", WRONG, text, "GET /_cluster/allocation/explain says why; restore what is missing, or load it again")
    else:
        yield Line("shards", OK, f"{status}: every primary shard is there")


def _disks(connection: Connection) -> Iterator[Line]:
    """Yield how far each disk is from the marks at which the server takes no more shards, moves them, and blocks writing."""
    answer = connection.call("GET", "/_cluster/settings", include_defaults=True, flat_settings=True)
    settings: dict[str, Any] = {}
    for level in ("defaults", "persistent", "transient"):  # the last one counts
        settings |= answer.get(level) or {}
    for node in connection.call("GET", "/_nodes/stats/fs").get("nodes", {}).values():
        whole = (node.get("fs") or {}).get("total") or {}
        if not whole.get("total_in_bytes"):
            continue
        total, free = int(whole["total_in_bytes"]), int(whole.get("available_in_bytes", whole.get("free_in_bytes", 0)))
        text = f"{node.get('name', 'a node')} has {size(free)} of {size(total)} free"
        if passed := _passed(settings, total, free):
            setting = f"the setting is {WATERMARK}.{passed}: {settings[f'{WATERMARK}.{passed}']}"
            remedy = (
                "free some space there, or remove runs (tailboard runs delete --older-than 90d --yes), or add a disk or a node"
            )
            yield Line("disk", WRONG, f"{text}: past the {passed} watermark, {MARKS[passed]}", f"{remedy}; {setting}")
        else:
            yield Line("disk", OK, text)


def _privileges(connection: Connection, names: Names) -> Iterator[Line]:
    """Yield what of the privileges for reading and loading the login lacks."""
    patterns = [names.pattern(index) for index in indices()]
    body = {"cluster": ["monitor"], "index": [{"names": patterns, "privileges": sorted({*LOADS, *READS})}]}
    try:
        answer = connection.call("POST", "/_security/user/_has_privileges", body)
    except Refusal:
        yield Line("privileges", OK, "the server has no security: everybody may read and write")
        return
    user = answer.get("username", "")
    held = answer.get("index", {})
    cluster = [] if answer.get("cluster", {}).get("monitor") else ["monitor (cluster)"]
    for purpose, wanted, role in (("ask", READS, "tailboard_read"), ("load", LOADS, "tailboard_load")):
        lacking = [f"{name} on {pattern}" for pattern in patterns for name in wanted if not held.get(pattern, {}).get(name)]
        if lacking or cluster:
            text = f"{user} may not {purpose}: it lacks {listed([*cluster, *lacking])}"
            text += "" if purpose == "ask" else "; to ask, what it has is enough"
            yield Line("privileges", WRONG, text, f"give {user} the role {role} ({SECURITY})")
            return
    yield Line("privileges", OK, f"{user} may ask and load")


def _clock(connection: Connection) -> Iterator[Line]:
    """Yield how far the clocks of the server's nodes are from that of this machine."""
    before = time.time()
    answer = connection.call("GET", "/_nodes/stats/fs")
    after = time.time()
    for node in answer.get("nodes", {}).values():
        theirs, name = int(node["timestamp"]) / 1000, node.get("name", "a node")
        ahead = theirs - after if theirs > after else min(0.0, theirs - before)
        if abs(ahead) > MOST_CLOCK_S:
            way = "ahead of" if ahead > 0 else "behind"
            text = f"{name} is {abs(ahead):,.0f} s {way} this machine: now-15m and marks are off by that"
            yield Line("clock", WRONG, text, "let both follow one time server: timedatectl set-ntp true")
        else:
            yield Line("clock", OK, f"{name} and this machine agree")


LOOKS: Mapping[str, Look] = {
    "templates": _templates,
    "mappings": _mappings,
    "write blocks": _blocks,
    "shards": lambda connection, _: _health(connection),
    "disk": lambda connection, _: _disks(connection),
    "privileges": _privileges,
    "clock": lambda connection, _: _clock(connection),
}
