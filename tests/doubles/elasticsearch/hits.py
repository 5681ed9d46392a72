"""Hits: which of the matching documents are shown, in what order, and how."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.doubles.elasticsearch.aggregations import Aggregation
from tests.doubles.elasticsearch.columns import Reader, View
from tests.doubles.elasticsearch.errors import CannotDo
from tests.doubles.elasticsearch.shards import Document
from tests.doubles.elasticsearch.sorting import SortKey, shard_order
from tests.doubles.elasticsearch.sorting import parse as parse_sort
from tests.doubles.elasticsearch.sources import SourceFilter, loads

if TYPE_CHECKING:
    from tests.doubles.elasticsearch.search import Search

Json = Any


def shown_hits(search: Search, view: View, documents: np.ndarray) -> Json:
    """Return the `hits` of an answer."""
    hits: Json = {}
    if search.total is not False:
        number = int(len(documents))
        limit = number if search.total is True else int(search.total)
        hits["total"] = {"value": min(number, limit), "relation": "eq" if number <= limit else "gte"}
    if not view.readers:
        return {**hits, "max_score": 0.0, "hits": []}  # recorded: no index at all
    if not search.size:
        return {**hits, "max_score": None, "hits": []}
    if search.keys:
        return {**hits, "max_score": None, "hits": _sorted(search, view, documents)}
    score = search.query.score
    if score is None and len(documents):
        raise CannotDo("scores: hits of a query that weighs its matches need a sort, or the query in a filter")
    page = documents[search.offset : search.offset + search.size].tolist()
    return {
        **hits,
        "max_score": score if len(documents) else None,
        "hits": [_hit(search, view, number, score, None) for number in page],
    }


class TopHits(Aggregation):
    """`top_hits` with a sort (from the documentation, not recorded)."""

    kind = "top_hits"
    known = ("size", "from", "sort", "_source")
    makes_buckets = False
    after = None

    def check(self) -> None:
        self.size, self.offset = int(self.body.get("size", 3)), int(self.body.get("from", 0))
        self.keys = parse_sort(self.body.get("sort"), point_in_time=False)
        self.source = SourceFilter(self.body.get("_source", True))
        self.extras: Json = {}
        if not self.keys:
            raise CannotDo("aggregation [top_hits] without a sort: it would show scores")

    def prepare(self, view: View) -> None:
        for key in self.keys:
            key.prepare(view)

    def collect(self, view: View, documents: np.ndarray, owner: np.ndarray, buckets: int) -> list[Json]:
        order = np.argsort(owner, kind="stable")
        edges = np.searchsorted(owner[order], np.arange(buckets + 1)).tolist()
        parts = [np.unique(documents[order[a:b]]) for a, b in zip(edges[:-1], edges[1:])]
        return [
            {"hits": {"total": {"value": len(part), "relation": "eq"}, "max_score": None, "hits": _sorted(self, view, part)}}
            for part in parts
        ]


def _places(view: View, order: list[int] | None) -> np.ndarray:
    """Return for each document what `_shard_doc` is: its shard's number times 2^32, plus its place in the shard."""
    ranks = {place: rank for rank, place in enumerate(order or range(len(view.readers)))}
    parts = [
        np.array([document.order for document in reader.documents], dtype=np.int64) + (ranks[place] << 32)
        for place, reader in enumerate(view.readers)
    ]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _sorted(search: Search | TopHits, view: View, documents: np.ndarray) -> list[Json]:
    places = _places(view, shard_order(view, search.keys))
    columns = [key.column(view, places) for key in search.keys]
    ties = places[documents]
    order = np.lexsort([ties, *[column[documents] for column, _ in reversed(columns)]])
    ordered = documents[order]
    begin = search.offset
    if search.after is not None:
        begin = _after(search.keys, columns, ordered, search.after)
    page = ordered[begin : begin + search.size].tolist()
    answers = []
    for number in page:
        values = [key.shown(column[number].item(), words) for key, (column, words) in zip(search.keys, columns)]
        answers.append(_hit(search, view, number, None, values))
    return answers


def _after(keys: list[SortKey], columns: list[Any], ordered: np.ndarray, after: list[Any]) -> int:
    """Return the place of the first document that lies after the values given."""
    wanted = [key.read(value, words) for key, (_, words), value in zip(keys, columns, after)]
    target: list[Any] = []
    for number, between in wanted:
        target.append(number)
        if between:  # no document has this value: what follows it is decided here
            target.append(float("inf"))
            break

    def key_of(number: int) -> list[Any]:
        return [column[number].item() for column, _ in columns][: len(wanted)]

    return bisect.bisect_right(ordered.tolist(), target, key=key_of)


def _hit(search: Search | TopHits, view: View, number: int, score: float | None, values: list[Any] | None) -> Json:
    reader, document = view.document(number)
    hit: Json = {"_index": reader.index.name, "_id": document.identifier}
    if search.extras.get("version"):
        hit["_version"] = document.version
    if search.extras.get("seq_no_primary_term"):
        hit["_seq_no"] = document.sequence
        hit["_primary_term"] = 1
    hit["_score"] = score
    if document.parsed.ignored:
        hit["_ignored"] = sorted(document.parsed.ignored)
    source = shown_source(search.source, reader, document)
    if source is not None:
        hit["_source"] = source
    fields = _fields(search.extras, reader, document)
    if fields:
        hit["fields"] = fields
    if values is not None:
        hit["sort"] = values
    return hit


def shown_source(shown: SourceFilter, reader: Reader, document: Document) -> Json:
    """Return a document's `_source` as filters, also the mapping's, leave it."""
    return shown.show(document, reader.index.mapping.tree.get("_source"))


def _fields(extras: Json, reader: Reader, document: Document) -> Json:
    """Return `fields` and `docvalue_fields` of histograms, the only ones recorded."""
    found: Json = {}
    for name in ("fields", "docvalue_fields"):
        for path in extras.get(name, []):
            item = reader.field(path) if isinstance(path, str) else None
            if item is None or item.kind != "histogram":
                raise CannotDo(f"[{name}] of other than a histogram field: {path}")
            if path not in document.parsed.fields:
                continue
            value = loads(document.source)
            for part in path.split("."):
                value = value[part]
            found[path] = ["<unserializable>"] if name == "docvalue_fields" else value if isinstance(value, list) else [value]
    return found
