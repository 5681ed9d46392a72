"""The disks of a server's nodes, and the watermarks at which it stops to use them.

A mark is a share that may be used (`85%`, `0.85`), of a large disk less a headroom (`low.max_headroom`, only where the mark is a
share), or the bytes that must stay free (`500mb`). Source: Elasticsearch's documentation of disk-based shard allocation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ingest.core.dataclass import dataclass
from ingest.store.elastic.connection import Connection

WATERMARK = "cluster.routing.allocation.disk.watermark"
THRESHOLD = "cluster.routing.allocation.disk.threshold_enabled"
UNITS = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40, "pb": 1 << 50}
MARKS = {  # the worst first
    "flood_stage": "the server blocks writing to its indices",
    "high": "the server moves shards away, where it can",
    "low": "the server puts no new shards there, such as those of the next month",
}


@dataclass(frozen=True, slots=True)
class Watermark:
    """A mark that a disk has passed: what the server does then, and the setting."""

    name: str
    effect: str
    setting: str


@dataclass(frozen=True, slots=True)
class Disk:
    """The disks of a node, in bytes, and the worst mark that they have passed."""

    name: str
    total: int
    free: int
    passed: Watermark | None


def allocation(connection: Connection) -> Iterator[Disk]:
    """Yield the disks of all nodes that tell of them."""
    answer = connection.call("GET", "/_cluster/settings", include_defaults=True, flat_settings=True)
    settings: dict[str, Any] = {}
    for level in ("defaults", "persistent", "transient"):  # the last one counts
        settings |= answer.get(level) or {}
    for node in connection.call("GET", "/_nodes/stats/fs").get("nodes", {}).values():
        whole = (node.get("fs") or {}).get("total") or {}
        if not whole.get("total_in_bytes"):
            continue
        total, free = int(whole["total_in_bytes"]), int(whole.get("available_in_bytes", whole.get("free_in_bytes", 0)))
        yield Disk(str(node.get("name", "a node")), total, free, _passed(settings, total, free))


def _passed(settings: Mapping[str, Any], total: int, free: int) -> Watermark | None:
    if str(settings.get(THRESHOLD, "true")) == "false":
        return None
    for name, effect in MARKS.items():
        mark = str(settings.get(f"{WATERMARK}.{name}", ""))
        if mark and free < least_free(mark, str(settings.get(f"{WATERMARK}.{name}.max_headroom", "-1")), total):
            return Watermark(name, effect, f"the setting is {WATERMARK}.{name}: {mark}")
    return None


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
