"""_search, _count, points in time: from a request to an answer, shard failures included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.doubles.elasticsearch import aggregations, buckets, histogram_buckets, metrics, percentiles, queries, sorting, terms
from tests.doubles.elasticsearch.aggregations import Aggregation, count_buckets
from tests.doubles.elasticsearch.columns import Reader, View
from tests.doubles.elasticsearch.errors import CannotDo, Refusal, ShardFailure, illegal, refuse
from tests.doubles.elasticsearch.hits import TopHits, shown_hits
from tests.doubles.elasticsearch.multi_terms import MultiTerms
from tests.doubles.elasticsearch.sources import SourceFilter
from tests.doubles.elasticsearch.tokens import place_of

Json = Any
WINDOW = (
    "Result window is too large, from + size must be less than or equal to: [{0}] but was [{1}]. "
    "See the scroll api for a more efficient way to request large data sets. This limit can be set by changing the [index.max_result_window] index level setting."
)
KINDS: dict[str, type[Aggregation]] = {
    one.kind: one
    for one in (
        metrics.Min, metrics.Max, metrics.Sum, metrics.Avg, metrics.ValueCount, metrics.Cardinality, percentiles.Percentiles,
        percentiles.PercentileRanks, histogram_buckets.Histogram, histogram_buckets.DateHistogram,
        buckets.RangeBuckets, buckets.Filter, buckets.Filters,
        terms.Terms, terms.Composite, MultiTerms, TopHits,
    )
}  # fmt: skip
BODY = {
    "query",
    "post_filter",
    "aggs",
    "aggregations",
    "size",
    "from",
    "sort",
    "track_total_hits",
    "_source",
    "search_after",
    "pit",
    "fields",
    "docvalue_fields",
    "version",
    "seq_no_primary_term",
}
REAL_BODY = frozenset(
    "collapse explain ext highlight indices_boost knn min_score profile rank rescore retriever runtime_mappings script_fields "
    "slice stats stored_fields suggest terminate_after timeout track_scores".split()
)


class Search:
    """One search request, parsed."""

    def __init__(self, body: Json, text: str, now: int, *, max_buckets: int) -> None:
        for key, value in body.items():
            if key in REAL_BODY:
                raise CannotDo(f"[{key}] in a search")
            if key not in BODY:
                line, column = place_of(text, key)
                kind = {
                    dict: "START_OBJECT",
                    list: "START_ARRAY",
                    str: "VALUE_STRING",
                    bool: "VALUE_BOOLEAN",
                    type(None): "VALUE_NULL",
                }.get(type(value), "VALUE_NUMBER")
                raise refuse(400, "parsing_exception", f"Unknown key for a {kind} in [{key}].", line=line, col=column)
        self.text = text
        self.query = queries.parse(body.get("query", {"match_all": {}}), text, now)
        # from the documentation: hits are filtered again after aggregations were collected, and the total is of these hits
        self.post_filter = queries.parse(body["post_filter"], text, now) if "post_filter" in body else None
        given = body.get("aggs", body.get("aggregations"))
        self.aggs = aggregations.parse(given, aggregations.Context(text, now, max_buckets), KINDS) if given else None
        self.size = int(body.get("size", 10))
        self.offset = int(body.get("from", 0))
        if self.size < 0 or self.offset < 0:
            raise illegal(
                f"[size] parameter cannot be negative, found [{self.size}]"
                if self.size < 0
                else f"[from] parameter cannot be negative but was [{self.offset}]"
            )
        self.pit = body.get("pit")
        self.keys = sorting.parse(body.get("sort"), point_in_time=self.pit is not None)
        self.after = body.get("search_after")
        if self.after is not None:
            self._check_after()
        self.total = body.get("track_total_hits", 10000)
        self.source = SourceFilter(body.get("_source", True))
        self.extras = {
            name: body[name] for name in ("fields", "docvalue_fields", "version", "seq_no_primary_term") if name in body
        }
        self.max_buckets = max_buckets

    def _check_after(self) -> None:
        if not self.keys:
            raise illegal("Sort must contain at least one field.")
        if self.offset:
            raise refuse(
                400,
                "action_request_validation_exception",
                "Validation Failed: 1: `from` parameter must be set to 0 when `search_after` is used;",
            )
        if len(self.after) != len(self.keys):
            raise illegal(f"search_after has {len(self.after)} value(s) but sort has {len(self.keys)}.")

    def run(self, readers: list[Reader], gone: list[tuple[Reader, ShardFailure]], *, partial: bool) -> Json:
        """Return the answer, without `took`; `gone` are shards that cannot be searched any more."""
        view = View(readers)
        skipped = 0
        failures = list(gone)
        try:
            hits, answers = self._on(view)
        except ShardFailure:
            good = []
            for reader in readers:
                try:
                    self._on(View([reader]))
                    good.append(reader)
                except ShardFailure as failure:
                    failures.append((reader, failure))
            if not good or not failures:
                raise all_failed(failures) from None
            hits, answers = self._on(View(good))
        if failures and not partial:
            raise all_failed(failures, "Partial shards failure")
        if not readers and failures:
            raise all_failed(failures)
        if self.keys and self.keys[0].kind not in ("", "_doc"):
            skipped = self._skipped(readers)
        number = len(readers) + len(gone)
        counted = self.total is True and not self.size and self.aggs is None
        answer: Json = {
            "timed_out": False,
            **({"terminated_early": False} if counted else {}),  # recorded: nothing was wanted but the number
            "_shards": {"total": number, "successful": number - len(failures), "skipped": skipped, "failed": len(failures)},
        }
        if failures:
            answer["_shards"]["failures"] = [_failed(reader, failure) for reader, failure in failures]
        answer["hits"] = hits
        if answers is not None and readers:
            answer["aggregations"] = answers
        return answer

    def _skipped(self, readers: list[Reader]) -> int:
        """Return how many shards a sorted search skips, since their bounds lie outside the query's; one is always searched."""
        outside = 0
        for reader in readers:
            for path, (low, high) in self.query.ranges.items():
                item = reader.field(path)
                if item is not None and item.kind in ("date", "long"):
                    values = reader.numbers(path, real=False).values
                    if not len(values) or values.max() < low or values.min() > high:
                        outside += 1
                        break
        return min(outside, max(len(readers) - 1, 0))

    def _on(self, view: View) -> tuple[Json, Json]:
        window = min([int(reader.index.settings.get("index.max_result_window", 10000)) for reader in view.readers], default=10000)
        if self.offset + self.size > window:
            raise ShardFailure(
                400,
                {"type": "illegal_argument_exception", "reason": WINDOW.format(window, self.offset + self.size)},
                repeated=True,
            )
        if self.aggs is not None:
            self.aggs.prepare(view)
        for key in self.keys:
            key.prepare(view)
        mask = self.query.mask(view)
        documents = np.flatnonzero(mask)
        hits = shown_hits(
            self, view, documents if self.post_filter is None else np.flatnonzero(mask & self.post_filter.mask(view))
        )
        if self.aggs is None:
            return hits, None
        if not view.readers:
            return hits, None
        reduced = len(view.readers) > 1  # recorded: of one shard the uppermost answers stay as they were asked for
        answers = self.aggs.collect(view, documents, np.zeros(len(documents), dtype=np.int64), 1, reduced=reduced)[0]
        if count_buckets(answers) > self.max_buckets:
            raise buckets.too_many(self.max_buckets)
        return hits, answers


def count(body: Json, text: str, now: int, readers: list[Reader]) -> Json:
    """Return the answer of `_count`."""
    for key in body:
        if key != "query":
            raise refuse(400, "parsing_exception", f"request does not support [{key}]", line=1, col=1)
    query = queries.parse(body.get("query", {"match_all": {}}), text, now)
    try:
        number = int(query.mask(View(readers)).sum())
    except ShardFailure as failure:
        raise all_failed([(reader, failure) for reader in readers]) from None
    return {"count": number, "_shards": {"total": len(readers), "successful": len(readers), "skipped": 0, "failed": 0}}


def _error(reader: Reader, failure: ShardFailure) -> Json:
    if not failure.per_index:
        return failure.error
    named = {
        "type": failure.error["type"],
        "reason": failure.error["reason"],
        "index_uuid": reader.index.uuid,
        "index": reader.index.name,
    }
    return {**named, **({"caused_by": failure.error["caused_by"]} if "caused_by" in failure.error else {})}


def _failed(reader: Reader, failure: ShardFailure) -> Json:
    return {"shard": reader.shard, "index": reader.index.name, "node": "double", "reason": _error(reader, failure)}


def all_failed(failures: list[tuple[Reader, ShardFailure]], reason: str = "all shards failed") -> Refusal:
    """Return the refusal of a search that failed on its shards: grouped by index, as the server groups them."""
    grouped: dict[tuple[str, str], tuple[Reader, ShardFailure]] = {}
    for reader, failure in failures:
        grouped.setdefault((reader.index.name, failure.error["reason"]), (reader, failure))
    listed = [_failed(reader, failure) for reader, failure in grouped.values()]
    roots = [{key: value for key, value in one["reason"].items() if key != "caused_by"} for one in listed]
    error: Json = {
        "root_cause": roots,
        "type": "search_phase_execution_exception",
        "reason": reason,
        "phase": "query",
        "grouped": True,
        "failed_shards": listed,
    }
    first = failures[0][1]
    if first.repeated and reason == "all shards failed":
        error["caused_by"] = {**first.error, "caused_by": first.error}
    return Refusal(
        max(failure.status for _, failure in failures), {"error": error, "status": max(failure.status for _, failure in failures)}
    )


Run = Callable[..., Json]
