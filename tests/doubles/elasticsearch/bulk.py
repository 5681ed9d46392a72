"""_bulk, and single writes: actions, versions, what each item answers."""

from __future__ import annotations

import base64
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.doubles.elasticsearch.bulk_lines import Write
from tests.doubles.elasticsearch.errors import CannotDo, Refusal, illegal, no_such_index
from tests.doubles.elasticsearch.indices import Index, Indices
from tests.doubles.elasticsearch.shards import Shard
from tests.doubles.elasticsearch.templates import Templates
from tests.doubles.elasticsearch.values import Rejected

Json = Any

_numbers = itertools.count()


def new_id() -> str:
    """Return an id for a document without one: 20 characters, as the server makes them."""
    return base64.urlsafe_b64encode(os.urandom(12) + next(_numbers).to_bytes(3, "big")).decode()


class ItemFailure(Exception):
    """An item that is refused, beside others that are not."""

    def __init__(self, status: int, error: Json) -> None:
        super().__init__(error.get("reason"))
        self.status = status
        self.error = error


@dataclass(slots=True)
class Writer:
    """Writes to indices, creating them from their templates."""

    indices: Indices
    templates: Templates
    lenient: bool  # 8.x closes an action line that lacks its last bracket
    denied: Callable[[str, str], Json | None]
    help_page: str  # of the flood stage
    touched: list[Shard] = field(default_factory=list)

    def index_for(self, name: str) -> Index:
        """Return the index to write to, made from its template if it is not there."""
        if name in self.indices.by_name:
            return self.indices.by_name[name]
        try:
            settings, tree = self.templates.for_index(name)
            unauthorized = self.denied("indices:admin/auto_create", name)
            if unauthorized:
                raise ItemFailure(403, unauthorized)
            return self.indices.create(name, settings, tree)
        except Refusal as error:
            inner = {key: value for key, value in error.body["error"].items() if key != "root_cause"}
            raise ItemFailure(error.status, inner) from error

    def apply(self, write: Write) -> tuple[int, Json]:
        """Return status and answer of one write; raise `ItemFailure`."""
        if write.require_alias:
            note = f" and [require_alias] request flag is [true] and [{write.index}] is not an alias"
            raise ItemFailure(404, _item_no_index(write.index, note))
        if write.action == "delete" and write.version_type == "internal" and write.index not in self.indices.by_name:
            raise ItemFailure(404, _item_no_index(write.index, ""))  # other writes make the index
        index = self.index_for(write.index)
        unauthorized = self.denied("indices:data/write/bulk[s]", write.index)
        if unauthorized:
            raise ItemFailure(403, unauthorized)
        if index.shut:
            uuid = {"index_uuid": index.uuid, "index": index.name}
            raise ItemFailure(400, {"type": "index_closed_exception", "reason": "closed", **uuid})
        blocked = index.blocked(self.help_page)
        if blocked:
            raise ItemFailure(
                blocked[0], {"type": "cluster_block_exception", "reason": f"index [{index.name}] blocked by: {blocked[1]}"}
            )
        if write.identifier is None:
            write.identifier = new_id()
        elif write.identifier == "" or len(write.identifier.encode()) > 512:
            raise CannotDo("an empty _id, or one longer than 512 bytes")
        shard = index.shard_of(write.identifier)
        for one in index.shards:
            one.tick(self.indices.clock())
        answer = self._delete(index, shard, write) if write.action == "delete" else self._put(index, shard, write)
        if shard not in self.touched:
            self.touched.append(shard)
        return answer

    def _next_version(self, index: Index, shard: Shard, write: Write) -> tuple[int, bool]:
        now = self.indices.clock()
        current, document = shard.version_of(write.identifier or "", now)
        if write.if_seq_no is not None:
            have = document.sequence if document else -2
            if (have, 1 if document else 0) != (write.if_seq_no, write.if_primary_term):
                raise self._conflict(
                    index,
                    shard,
                    write,
                    f"required seqNo [{write.if_seq_no}], primary term [{write.if_primary_term}]. "
                    + (f"current document has seqNo [{have}] and primary term [1]" if document else "but no document was found"),
                )
        if write.action == "create" and document is not None:
            raise self._conflict(index, shard, write, f"document already exists (current version [{current}])")
        if write.version_type == "internal":
            return current + 1, document is not None
        wanted = write.version or 0
        if write.version_type == "external" and current and wanted <= current:
            raise self._conflict(
                index, shard, write, f"current version [{current}] is higher or equal to the one provided [{wanted}]"
            )
        if current and wanted < current:
            raise self._conflict(index, shard, write, f"current version [{current}] is higher than the one provided [{wanted}]")
        return wanted, document is not None

    @staticmethod
    def _conflict(index: Index, shard: Shard, write: Write, why: str) -> ItemFailure:
        return ItemFailure(
            409,
            {
                "type": "version_conflict_engine_exception",
                "reason": f"[{write.identifier}]: version conflict, {why}",
                "index_uuid": index.uuid,
                "shard": str(shard.number),
                "index": index.name,
            },
        )

    def _put(self, index: Index, shard: Shard, write: Write) -> tuple[int, Json]:
        try:
            parsed = index.parse(write.identifier or "", write.source)
        except Rejected as error:
            raise ItemFailure(400, error.error) from error
        version, existed = self._next_version(index, shard, write)
        document = shard.put(write.identifier or "", version, write.source, parsed)
        return (200 if existed else 201), self._answer(
            index, write, version, "updated" if existed else "created", document.sequence
        )

    def _delete(self, index: Index, shard: Shard, write: Write) -> tuple[int, Json]:
        version, existed = self._next_version(index, shard, write)
        sequence = shard.remove(write.identifier or "", version, self.indices.clock())
        return (200 if existed else 404), self._answer(index, write, version, "deleted" if existed else "not_found", sequence)

    @staticmethod
    def _answer(index: Index, write: Write, version: int, result: str, sequence: int) -> Json:
        return {
            "_index": index.name,
            "_id": write.identifier,
            "_version": version,
            "result": result,
            "_shards": index.shard_counts,
            "_seq_no": sequence,
            "_primary_term": 1,
        }

    def finish(self, refresh: str) -> bool:
        """Refresh what was touched as asked; return whether answers say `forced_refresh`."""
        touched, self.touched = self.touched, []
        if refresh in ("false", "False"):
            return False
        if refresh not in ("true", "", "wait_for"):
            raise illegal(f"Unknown value for refresh: [{refresh}].")
        if refresh == "wait_for" and any(shard.index.refresh_seconds <= 0 for shard in touched):
            raise CannotDo("refresh=wait_for on an index that never refreshes: the server would not answer")
        for shard in touched:
            shard.refresh()
        return refresh != "wait_for"

    def bulk(self, lines: list[Write], refresh: str, rejected: Callable[[int], Json | None]) -> Json:
        """Return the answer of a bulk request, without `took`."""
        items, errors = [], False
        for number, write in enumerate(lines):
            try:
                refused = rejected(number)
                if refused:
                    raise ItemFailure(429, refused)
                status, answer = self.apply(write)
                answer["status"] = status
            except ItemFailure as failure:
                answer = {"_index": write.index, "_id": write.identifier, "status": failure.status, "error": failure.error}
                errors = True
            items.append({write.action: answer})
        if self.finish(refresh):
            items = [
                {action: answer if "error" in answer else refreshed(answer)} for item in items for action, answer in item.items()
            ]
        return {"errors": errors, "items": items}


def refreshed(answer: Json) -> Json:
    """Return the answer to a write with `forced_refresh`, where the server puts it."""
    before = ("_index", "_id", "_version", "result")
    return {**{name: answer[name] for name in before}, "forced_refresh": True, **answer}


def _item_no_index(name: str, note: str) -> Json:
    reason = no_such_index(name, note=note).body["error"]["reason"]
    return {"type": "index_not_found_exception", "reason": reason, "index_uuid": "_na_", "index": name}
