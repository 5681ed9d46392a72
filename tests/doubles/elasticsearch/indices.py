"""Indices: settings, mapping, shards; and the cluster that holds them and finds them by name."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

from tests.doubles.elasticsearch import fast, mapping
from tests.doubles.elasticsearch.dates import seconds_of
from tests.doubles.elasticsearch.documents import Parsed, read
from tests.doubles.elasticsearch.errors import CannotDo, Refusal, illegal, no_such_index, refuse
from tests.doubles.elasticsearch.settings import checked, flat
from tests.doubles.elasticsearch.shards import Shard, shard_number

Json = Any
FLOOD = "[TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has read-only-allow-delete block; for more information, see {}];"
BAD_NAME = re.compile(r'[\\/*?"<>| ,#]')


def new_uuid() -> str:
    """Return an identifier as the server makes them: 22 characters."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def check_name(name: str) -> None:
    """Refuse what is no name for an index."""
    reason = None
    if BAD_NAME.search(name):
        reason = "must not contain the following characters ['\\','/','*','?','\"','<','>','|',' ',',']"
    elif name != name.lower():
        reason = "must be lowercase"
    elif name.startswith(("_", "-", "+")):
        reason = "must not start with '_', '-', or '+'" if name[0] != "_" else "must not start with '_'."
    elif name in (".", "..") or len(name.encode()) > 255:
        reason = "must not be '.' or '..'" if name.startswith(".") else f"index name is too long, ({len(name.encode())} > 255)"
    if reason:
        raise refuse(400, "invalid_index_name_exception", f"Invalid index name [{name}], {reason}", index_uuid="_na_", index=name)


class Index:
    """One index."""

    def __init__(self, name: str, settings: dict[str, Any], tree: Json, now: float, created: int) -> None:
        self.name = name
        self.uuid = new_uuid()
        self.created = created
        self.settings = settings
        self.open = True
        self.shut = False  # closed by `_close`
        self.mapping = mapping.parse(tree)
        self.plan = fast.plan_of(self.mapping)
        self.shards = [Shard(self, number, now) for number in range(int(settings.get("index.number_of_shards", 1)))]

    @property
    def refresh_seconds(self) -> float:
        """Return the refresh interval; the default is 1 s."""
        return seconds_of(self.settings.get("index.refresh_interval", "1s"))

    @property
    def replicas(self) -> int:
        """Return the number of replicas; none is ever assigned on a single node, and one that expands to none is not wanted."""
        if self.settings.get("index.auto_expand_replicas", "false") != "false":
            return int(self.settings["index.auto_expand_replicas"].partition("-")[0])
        return int(self.settings.get("index.number_of_replicas", 1))

    @property
    def shard_counts(self) -> Json:
        """Return `_shards` of a write to this index."""
        return {"total": 1 + self.replicas, "successful": 1, "failed": 0}

    def shard_of(self, identifier: str) -> Shard:
        """Return the shard of a document."""
        return self.shards[shard_number(identifier, len(self.shards))]

    def set_mapping(self, tree: Json) -> None:
        """Take another mapping, already merged."""
        self.mapping = mapping.parse(tree)
        self.plan = fast.plan_of(self.mapping)

    def parse(self, identifier: str, raw: bytes) -> Parsed:
        """Return a document's values, with new fields added to the mapping; raise `Rejected`."""
        parsed = fast.read(raw, self.plan, self.mapping.disabled)
        if parsed is None:
            parsed = read(raw.decode("utf-8", "replace"), self.mapping, identifier)
            if parsed.added:
                self.set_mapping(mapping.merged(self.mapping.tree, parsed.added))
        return parsed

    def blocked(self, help_page: str) -> tuple[int, str] | None:
        """Return status and reason if a setting blocks writing."""
        on = {key for key, value in self.settings.items() if key.startswith("index.blocks.") and value == "true"}
        if "index.blocks.read_only_allow_delete" in on:
            return 429, FLOOD.format(help_page)
        if "index.blocks.write" in on:
            return 403, "[FORBIDDEN/8/index write (api)];"
        if on - {"index.blocks.read_only_allow_delete"}:
            raise CannotDo(f"writing to an index with {sorted(on)}")
        return None


class Indices:
    """All indices of the double, by name."""

    def __init__(self, clock: Callable[[], float], millis: Callable[[], int]) -> None:
        self.by_name: dict[str, Index] = {}
        self.most: int | None = None  # indices that there may be, as by cluster.max_shards_per_node
        self.clock = clock
        self.millis = millis

    def create(self, name: str, settings: Json, tree: Json) -> Index:
        """Return a new index with settings and mapping already put together."""
        check_name(name)
        if name in self.by_name:
            old = self.by_name[name]
            raise refuse(
                400,
                "resource_already_exists_exception",
                f"index [{name}/{old.uuid}] already exists",
                index_uuid=old.uuid,
                index=name,
            )
        if self.most is not None and len(self.by_name) >= self.most:
            there = f"this cluster currently has [{self.most}]/[{self.most}] maximum shards open;"
            raise refuse(
                400, "validation_exception", f"Validation Failed: 1: this action would add [1] total shards, but {there}"
            )
        known = checked(flat(settings))
        index = Index(name, known, tree, self.clock(), self.millis())
        self.by_name[name] = index
        return index

    def get(self, name: str) -> Index:
        """Return an index by its exact name."""
        if name not in self.by_name:
            raise no_such_index(name)
        return self.by_name[name]

    def delete(self, index: Index) -> None:
        """Remove an index; searches that hold its readers fail on them from now on."""
        del self.by_name[index.name]
        index.open = False

    def select(
        self,
        expression: str | None,
        *,
        ignore_unavailable: bool = False,
        allow_no_indices: bool = True,
        wildcards: str = "open",
        closed_too: bool = False,
    ) -> list[Index]:
        """Return the indices that an expression names, by name: lists and wildcards; closed ones only where they may be."""
        found = self._named(expression, ignore_unavailable=ignore_unavailable, allow_no_indices=allow_no_indices)
        both = {"closed", "all"} & set(wildcards.split(","))
        named = set((expression or "").split(","))
        found = [index for index in found if not index.shut or both or index.name in named]
        shut = [index for index in found if index.shut and not closed_too]
        if shut and not ignore_unavailable:
            raise refuse(400, "index_closed_exception", "closed", index_uuid=shut[0].uuid, index=shut[0].name)
        return [index for index in found if index not in shut]

    def _named(self, expression: str | None, *, ignore_unavailable: bool, allow_no_indices: bool) -> list[Index]:
        found: dict[str, Index] = {}
        parts = (expression or "_all").split(",")
        for part in parts:
            if part.startswith(("-", "<")) or ":" in part:
                raise CannotDo(f"index expression [{part}]")
            if part in ("_all", "*") or "*" in part or "?" in part:
                pattern = "*" if part == "_all" else part
                matching = {
                    name: self.by_name[name]
                    for name in self.by_name
                    if fnmatchcase(name, pattern.replace("[", "[[]")) and (pattern[0] == "." or name[0] != ".")
                }
                if not matching and not allow_no_indices:
                    raise no_such_index(part)
                found |= matching
            elif part in self.by_name:
                found[part] = self.by_name[part]
            elif not ignore_unavailable:
                if part.startswith("_"):
                    raise self._bad_start(part)
                raise no_such_index(part)
        return [found[name] for name in sorted(found)]

    @staticmethod
    def _bad_start(name: str) -> Refusal:
        return refuse(
            400,
            "invalid_index_name_exception",
            f"Invalid index name [{name}], must not start with '_'.",
            index_uuid="_na_",
            index=name,
        )

    def put_settings(self, index: Index, given: Json) -> None:
        """Change settings of an index; null takes one back to its default."""
        changed = flat(given)
        checked({key: value for key, value in changed.items() if value is not None})
        for key in changed:
            if key in ("index.number_of_shards", "index.codec", "index.mode", "index.sort.field"):
                raise illegal(f"Can't update non dynamic settings [[{key}]] for open indices [[{index.name}/{index.uuid}]]")
        for key, value in changed.items():
            if value is None:
                index.settings.pop(key, None)
            else:
                index.settings[key] = value
