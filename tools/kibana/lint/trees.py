"""Aggregations as a tree: what each reads, in which buckets, of which documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]

SINGLE = ("term", "match", "match_phrase")
SUBS = ("aggs", "aggregations")


@dataclass(frozen=True, slots=True)
class Node:
    """An aggregation: `pinned` are fields of which its documents have one value, `by` those that the buckets around it split."""

    name: str
    kind: str
    body: Json
    pinned: Mapping[str, Any]
    by: frozenset[str]
    beside: Json

    @property
    def field(self) -> str:
        """Return the field that it reads, or empty text."""
        return str(self.body.get("field", ""))


def nodes(aggs: Json, pinned: Json, by: frozenset[str] = frozenset()) -> Iterator[Node]:
    """Yield all aggregations of a tree, the outer ones first."""
    for name, aggregation in aggs.items():
        kind = kind_of(aggregation)
        node = Node(name, kind, aggregation[kind], pinned, by, aggs)
        yield node
        inner = {**pinned, **pins(aggregation[kind])} if kind == "filter" else pinned
        yield from nodes(subs(aggregation), inner, by | set(split(node)))


def kind_of(aggregation: Json) -> str:
    """Return the type of an aggregation."""
    return str(next(key for key in aggregation if key not in (*SUBS, "meta")))


def subs(aggregation: Json) -> Json:
    """Return the aggregations within one."""
    return next((aggregation[key] for key in SUBS if key in aggregation), {})


def split(node: Node) -> list[str]:
    """Return the fields that an aggregation splits documents by: each bucket holds one value."""
    return [node.field] if node.kind == "terms" else []


def pins(query: Any) -> dict[str, Any]:
    """Return the fields that a query leaves one value, with it."""
    if isinstance(query, Sequence) and not isinstance(query, str):
        return {field: value for clause in query for field, value in pins(clause).items()}
    pinned: dict[str, Any] = {}
    for kind, inner in (query or {}).items():
        if kind in SINGLE:
            pinned |= {
                field: content.get("value", content.get("query")) if isinstance(content, Mapping) else content
                for field, content in inner.items()
            }
        elif kind == "terms":
            pinned |= {field: values[0] for field, values in inner.items() if isinstance(values, list) and len(values) == 1}
        elif kind == "bool":
            alone = inner.get("should", [])
            parts = [inner.get("filter", []), inner.get("must", []), alone if len(alone) == 1 else []]
            for part in parts:
                pinned |= pins(part if isinstance(part, list) else [part])
    return pinned


def fields_in(aggs: Json) -> Iterator[str]:
    """Yield the fields that aggregations name."""
    for node in nodes(aggs, {}):
        yield from ([node.field] if "field" in node.body else [])
        yield from (queried(node.body) if node.kind == "filter" else [])


def queried(query: Any) -> Iterator[str]:
    """Yield the fields that a query names."""
    if isinstance(query, Sequence) and not isinstance(query, str):
        for clause in query:
            yield from queried(clause)
    elif isinstance(query, Mapping):
        for kind, inner in query.items():
            if kind in (*SINGLE, "terms", "range", "prefix", "wildcard"):
                yield from (str(field) for field in inner)
            elif kind == "exists":
                yield str(inner["field"])
            elif isinstance(inner, (Mapping, list)):
                yield from queried(inner)
