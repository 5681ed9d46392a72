"""A shard: what was written, what of it can be searched, and when that changes.

Reading a document by its id sees every write at once. Searching sees what was written before the last refresh: asked for, or
after `index.refresh_interval` (ticks from the shard's creation; the double looks at its clock with each access). A reader is a
picture of the shard that never changes: points in time hold one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.doubles.elasticsearch.columns import Reader
from tests.doubles.elasticsearch.documents import Parsed

if TYPE_CHECKING:
    from tests.doubles.elasticsearch.indices import Index

TOMBSTONE_SECONDS = 60.0  # index.gc_deletes


@dataclass(frozen=True, slots=True)
class Document:
    """One version of a document."""

    identifier: str
    version: int
    sequence: int
    order: int  # its place in the shard: what `_shard_doc` counts
    source: bytes
    parsed: Parsed


class Shard:
    """One primary shard of an index."""

    def __init__(self, index: Index, number: int, now: float) -> None:
        self.index = index
        self.number = number
        self.live: dict[str, Document] = {}
        self.tombstones: dict[str, tuple[int, float]] = {}
        self.sequence = 0
        self.order = 0
        self.reader = Reader(index, number, ())
        self.dirty = False
        self.ticked = now

    def tick(self, now: float) -> None:
        """Refresh if an interval has ended since: what was written before its end becomes visible."""
        interval = self.index.refresh_seconds
        if interval <= 0:
            return
        if now - self.ticked >= interval:
            self.ticked += (now - self.ticked) // interval * interval
            self.refresh()

    def refresh(self) -> None:
        """Make all that was written visible to searches."""
        if self.dirty:
            ordered = sorted(self.live.values(), key=lambda document: document.order)
            self.reader = Reader(self.index, self.number, tuple(ordered))
            self.dirty = False

    def version_of(self, identifier: str, now: float) -> tuple[int, Document | None]:
        """Return the current version, also of a document deleted lately; 0 if there is none."""
        document = self.live.get(identifier)
        if document is not None:
            return document.version, document
        version, when = self.tombstones.get(identifier, (0, 0.0))
        return (version, None) if version and now - when < TOMBSTONE_SECONDS else (0, None)

    def put(self, identifier: str, version: int, source: bytes, parsed: Parsed) -> Document:
        """Store a version of a document."""
        document = Document(identifier, version, self.sequence, self.order, source, parsed)
        self.sequence += 1
        self.order += 1
        self.live[identifier] = document
        self.tombstones.pop(identifier, None)
        self.dirty = True
        return document

    def remove(self, identifier: str, version: int, now: float) -> int:
        """Delete a document, or note that it is deleted; return the sequence number."""
        self.live.pop(identifier, None)
        self.tombstones[identifier] = (version, now)
        self.sequence += 1
        self.dirty = True
        return self.sequence - 1


def shard_number(identifier: str, shards: int) -> int:
    """Return the shard that a document's id belongs to (documentation and Elasticsearch's published rule, not recorded)."""
    if shards == 1:
        return 0
    splits = max(10 - (shards - 1).bit_length(), 1)
    slots = shards << splits
    return murmur3(identifier.encode("utf-16-le")) % slots // (1 << splits)


def murmur3(data: bytes) -> int:
    """Return the signed 32-bit MurmurHash3 (x86) with seed 0."""
    mask, value = 0xFFFFFFFF, 0
    for start in range(0, len(data), 4):
        block = data[start : start + 4]
        part = int.from_bytes(block, "little") * 0xCC9E2D51 & mask
        part = ((part << 15 | part >> 17) & mask) * 0x1B873593 & mask
        value ^= part
        if len(block) == 4:
            value = ((value << 13 | value >> 19) & mask) * 5 + 0xE6546B64 & mask
    value ^= len(data)
    value = (value ^ value >> 16) * 0x85EBCA6B & mask
    value = (value ^ value >> 13) * 0xC2B2AE35 & mask
    value ^= value >> 16
    return value - 2**32 if value & 0x80000000 else value


def counts_of_shards(total: int, **more: Any) -> dict[str, Any]:
    """Return `_shards` of an answer in which all went well."""
    return {"total": total, "successful": total, **more, "failed": 0}
