"""Rules for numbers: no documents where I/Os are meant, no t-digest, no operation of Lens whose request is not known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tools.kibana.asked_lens import lens_columns, unknown_operations
from tools.kibana.data_views import index_of, view_fields
from tools.kibana.lint.objects import Objects, Problem, entries, spec_of, tables_of
from tools.kibana.lint.trees import Node, nodes
from tools.kibana.objects import SavedObject

COUNT = "count"
DIGESTS = frozenset({"percentile", "percentile_rank", "median"})
SERVER_DIGESTS = frozenset({"percentiles", "percentile_ranks", "median_absolute_deviation", "boxplot"})
COUNTED = re.compile(r"((?:[\w$]+(?:\[[^\]]*\])?\.)*)(?<!\w)doc_count\b")
BUCKETS = re.compile(r"buckets(?:\[[^\]]*\])?$")


def operation(objects: Objects) -> Iterator[Problem]:
    """Yield operations of Lens that no rule knows."""
    for saved in objects.of("lens"):
        for name in sorted(unknown_operations(saved) - DIGESTS - {COUNT}):
            yield saved.id, f"the data that {name} requests cannot be determined"


def t_digest(objects: Objects) -> Iterator[Problem]:
    """Yield percentiles that the server would take from a t-digest: measured wrong by up to 3,245 %."""
    for saved in objects.of("lens"):
        for name, column in lens_columns(saved).items():
            if column["operationType"] in DIGESTS:
                yield saved.id, f"{name} ({column['operationType']}) is a t-digest"
    for read in objects.reads():
        for node in nodes(read.body.get("aggs", {}), {}):
            if node.kind in SERVER_DIGESTS and "hdr" not in node.body:
                yield read.panel, f"{node.name} ({node.kind}) has no hdr: it is a t-digest"


def document_count(objects: Objects) -> Iterator[Problem]:
    """Yield counts of documents where one document stands for many I/Os."""
    for saved in objects.of("lens"):
        if _is_counted(index_of(saved.references[0].id)):
            yield from _counting_columns(saved)
    for read in objects.reads():
        for node in nodes(read.body.get("aggs", {}), {}):
            if node.kind == "value_count" and _is_counted(read.index) and not _is_histogram(read.index, node.field):
                yield read.panel, f"{node.name} counts documents, not I/Os: the sum of latency.count does"
    for saved in objects.of("visualization"):
        yield from _counted_by(saved, objects)


def _counting_columns(saved: SavedObject) -> Iterator[Problem]:
    for name, column in lens_columns(saved).items():
        if column["operationType"] == COUNT:
            yield saved.id, f"{name} counts documents, not I/Os: the sum of latency.count does"


def _counted_by(saved: SavedObject, objects: Objects) -> Iterator[Problem]:
    """Yield what a spec reads as doc_count of anything but buckets of a histogram's values: only there it counts samples."""
    sampled: dict[str, bool] = {}
    for entry in entries(saved):
        index = objects.index(entry["url"].get("index", ""))
        for node in nodes(entry["url"].get("body", {}).get("aggs", {}), {}):
            sampled[node.name] = sampled.get(node.name, True) and (not _is_counted(index) or _samples(index, node))
    spec = spec_of(saved)
    aliases = dict(_flattened(spec))
    for text in _texts({**spec, "data": [{**table, "url": None} for table in spec.get("data", ())]}):
        for match in COUNTED.finditer(text):
            path = [part for part in match[1].split(".") if part and part != "datum"]
            name = _bucketed(path, aliases)
            if not sampled.get(name, False):
                yield saved.id, f"doc_count of {name or 'a bucket'} counts documents, not I/Os: the sum of latency.count does"


def _bucketed(path: list[str], aliases: Mapping[str, str]) -> str:
    """Return the aggregation that a path's last element is a bucket of; empty text if it cannot be determined."""
    if path and not BUCKETS.match(path[-1]):
        path = aliases.get(path[-1], "").split(".")
    elif not path:
        path = aliases.get("", "").split(".")
    return path[-2] if len(path) > 1 and BUCKETS.match(path[-1]) else ""


def _flattened(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield names with the path of the array that they are an element of; the empty name is a row of an answer."""
    for entry in tables_of(spec):
        form = (entry.get("format") or {}).get("property")
        if form:
            yield "", form
        for transform in entry.get("transform", ()):
            if isinstance(transform, Mapping) and transform.get("type") == "flatten":
                yield from zip(transform.get("as", transform["fields"]), transform["fields"], strict=False)


def _samples(index: str, node: Node) -> bool:
    return node.kind in ("range", "histogram") and _is_histogram(index, node.field)


def _is_counted(index: str) -> bool:
    """Return whether documents of an index hold histograms."""
    return any(field["type"] == "histogram" for one in index.split(",") for field in view_fields(one).values())


def _is_histogram(index: str, name: str) -> bool:
    return any(view_fields(one).get(name, {}).get("type") == "histogram" for one in index.split(","))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
