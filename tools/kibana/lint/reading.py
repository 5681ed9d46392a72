"""Rules for what panels read: fields that exist, of rollups one scope and step, and never several kinds at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tools.kibana.data_views import view_fields
from tools.kibana.lint.objects import Objects, Problem, Read
from tools.kibana.lint.trees import Node, fields_in, nodes, pins, queried

SCOPE = "rollup.scope"
STEP, MARKED_STEPS = "rollup.step_ms", ("rollup.overview", "rollup.stored")
LABELS = "labels"
KIND, DEFAULT_KIND = "kind", "rollup.default_kind"
MEASURED = ("latency.", "in_flight.")
NUMBERS = frozenset({"max", "min", "sum", "avg", "value_count", "percentiles", "percentile_ranks", "range", "histogram", "stats"})
WHOLE = frozenset({"_shard_doc", "_doc", "_score"})


def fields(objects: Objects) -> Iterator[Problem]:
    """Yield fields that documents of the index do not have."""
    for read in objects.reads():
        if not read.index:
            yield read.panel, "no data view covers the index that it reads"
            continue
        known = {name for index in read.index.split(",") for name in view_fields(index)}
        for name in sorted(_named(read) - known):
            if LABELS in known and name.startswith(f"{LABELS}."):
                continue
            yield read.panel, f"{read.index} have no field {name}"


def scope_and_step(objects: Objects) -> Iterator[Problem]:
    """Yield numbers of rollups of several scopes or steps: every I/O is in each of them."""
    for read in objects.reads():
        if "rollups" not in read.index.split(","):
            continue
        for node in measuring(read):
            if SCOPE not in node.pinned:
                yield read.panel, f"{node.field} is not limited to one scope"
            elif not _of_one_step(node.pinned):
                yield read.panel, f"{node.field} is not limited to one step"
        shown = pins(read.body.get("query"))
        if "aggs" not in read.body and not (SCOPE in shown and _of_one_step(shown)):
            yield read.panel, "documents are not limited to one scope and step"


def kinds(objects: Objects) -> Iterator[Problem]:
    """Yield numbers that mix kinds: neither by kind, nor of one kind, nor divided by the number of kinds."""
    for read in objects.reads():
        for node in measuring(read):
            if KIND not in node.by and not node.pinned.keys() & {KIND, DEFAULT_KIND} and not _divided(node):
                yield read.panel, f"{node.field} mixes kinds"


def measuring(read: Read) -> Iterator[Node]:
    """Yield the aggregations that read what was measured."""
    for node in nodes(read.body.get("aggs", {}), pins(read.body.get("query"))):
        if node.kind in NUMBERS and node.field.startswith(MEASURED):
            yield node


def _of_one_step(pinned: Mapping[str, Any]) -> bool:
    """Return whether documents with these values are of one step of each run."""
    return STEP in pinned or any(pinned.get(name) is True for name in MARKED_STEPS)


def _divided(node: Node) -> bool:
    """Return whether a count has the number of kinds beside it."""
    return node.kind == "sum" and any(sibling.get("cardinality") == {"field": KIND} for sibling in node.beside.values())


def _named(read: Read) -> set[str]:
    """Return the fields that a search names."""
    sorts = {str(field) for sort in read.body.get("sort", ()) if isinstance(sort, dict) for field in sort}
    shown = read.body.get("_source", ())
    named = {*fields_in(read.body.get("aggs", {})), *queried(read.body.get("query")), *sorts, read.timefield}
    return {*named, *(map(str, shown) if isinstance(shown, list) else ())} - WHOLE - {""}
