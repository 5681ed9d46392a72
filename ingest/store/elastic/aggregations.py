"""Sums inside the server: clauses of queries, bins added up, counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import orjson

from ingest.core.intervals import Exact, Int, Intervals
from ingest.core.labels import OFFSET, Group, Series
from ingest.core.layout import Layout
from ingest.query.question import AnswerKey
from ingest.store.answers import Plan
from ingest.store.elastic.client import Connection
from ingest.store.elastic.documents import MS, PATHS, search, series_of
from ingest.store.elastic.templates import Names
from ingest.store.lifecycle import step_in
from ingest.store.records import RunRecord, StoredSeries

# Clauses of queries: by a run's rollups, by the values of a field, by time.


MOST_RANGES = 64
YEARS_END = 10_000
HOLDS_SAMPLES = {"exists": {"field": "latency.layout"}}
LATENCIES = {"bool": {"must_not": [{"term": {"kind": OFFSET}}]}}

Json = Mapping[str, Any]
Filters = Sequence[Json]


def rollups_of(run: str, scope: str, step_ns: int) -> list[dict[str, Any]]:
    """Return the filters for the rollups of a run in one scope and step; 0 is the step of the whole run."""
    return [{"term": {"run.id": run}}, {"term": {"rollup.scope": scope}}, {"term": {"rollup.step_ms": step_ns // MS}}]


def at_steps(record: RunRecord, stored: Iterable[StoredSeries] = ()) -> dict[str, Any]:
    """Return the filter for windows of the widths that some series of a run are stored in, without any those of the run.

    While a run is coarsened its documents are there in two.
    """
    own = {step_in(record, member.step_ns) for member in stored if member.series.kind != OFFSET}
    steps = sorted(step // MS for step in own or {record.step_ns})
    return {"term": {"interval.step_ms": steps[0]}} if len(steps) == 1 else {"terms": {"interval.step_ms": steps}}


def one_of(field: str, values: Sequence[str]) -> dict[str, Any]:
    """Return a query for documents that have one of the values; empty text stands for none."""
    named = [value for value in values if value]
    clauses: list[dict[str, Any]] = [{"terms": {field: named}}] if named else []
    if len(named) < len(values):
        clauses.append({"bool": {"must_not": [{"exists": {"field": field}}]}})
    return any_of(clauses)


def any_of(clauses: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a query for documents that meet at least one clause."""
    return clauses[0] if len(clauses) == 1 else {"bool": {"should": list(clauses), "minimum_should_match": 1}}


def time_filters(begin_ns: int | None, end_ns: int | None, step_ns: int) -> list[dict[str, Any]]:
    """Return the filter for windows that start in [floor(begin), end)."""
    wanted: dict[str, int] = {}
    if begin_ns is not None:
        wanted["gte"] = (begin_ns // step_ns * step_ns if step_ns else begin_ns) // MS
    if end_ns is not None:
        wanted["lt"] = -(-end_ns // MS)
    return [_range(wanted)] if wanted else []


def slab_filter(slabs: Int, width_ns: int) -> dict[str, Any]:
    """Return a query for windows that start in time slabs: neighbours joined, the widest gaps kept where there are many."""
    gaps = np.diff(slabs)
    cuts = np.flatnonzero(gaps > width_ns)
    if len(cuts) >= MOST_RANGES:
        cuts = np.sort(cuts[np.argsort(gaps[cuts])[-(MOST_RANGES - 1) :]])
    lows, highs = slabs[[0, *(cuts + 1)]], slabs[[*cuts, len(slabs) - 1]] + width_ns
    ranges = zip((lows // MS).tolist(), (highs // MS).tolist(), strict=True)
    return any_of([_range({"gte": low, "lt": high}) for low, high in ranges])


def _range(bounds: Mapping[str, int]) -> dict[str, Any]:
    """Return a query for times between bounds in ms; without a format a server takes four digits for a year."""
    time_format = {"format": "epoch_millis"} if any(bound < YEARS_END for bound in bounds.values()) else {}
    return {"range": {"@timestamp": {**bounds, **time_format}}}


# Bins added up inside the server: every occurring bin is a range, so that the counts are those of the merged histograms.
#
# First a survey of the whole selection finds layouts, occurring bins and whether sums are exact (a sum is a double there, so
# past 2^53 ns it is not); then windows and groups come in pages of fewer buckets than the server allows.


MOST_BUCKETS = 60_000
MOST_SURVEY_BINS = 4096
SAMPLE, LABEL_BYTES = 10, 200
EXACT_DOUBLE = 2**53
FIELD = "latency.histogram"


@dataclass(frozen=True, slots=True)
class Survey:
    """What a selection holds: by layout the occurring bins; how many documents; from when to when its windows start.

    `entries` is about how many bins a document has, `size` how many bytes: of the first ones.
    """

    bins: Mapping[Layout, Int]
    documents: int
    entries: float
    size: float
    first_ns: int
    last_ns: int
    summable: bool


def survey_of(connection: Connection, index: str, filters: Filters, members: Sequence[StoredSeries]) -> Survey | None:
    """Return the survey of a selection, or None where it is empty, has no bins, or too many to be asked for at once."""
    layouts = sorted({member.layout for member in members}, key=str)
    if not all(layout.has_bins for layout in layouts) or sum(layout.bins for layout in layouts) > MOST_SURVEY_BINS:
        return None
    aggs: dict[str, Any] = {
        f"layout{place}": {
            "filter": {"term": {"latency.layout": str(layout)}},
            "aggs": {
                "bins": _ranges(layout, np.arange(layout.bins)),
                "samples": {"sum": {"field": "latency.count"}},
                "sum": {"sum": {"field": "latency.sum"}},
            },
        }
        for place, layout in enumerate(layouts)
    }
    aggs |= {"first": {"min": {"field": "@timestamp"}}, "last": {"max": {"field": "@timestamp"}}}
    sample = {"size": SAMPLE, "sort": ["_doc"], "_source": ["latency", "in_flight"]}
    body = {**sample, "track_total_hits": True, "query": {"bool": {"filter": list(filters)}}, "aggs": aggs}
    answer = search(connection, index, body)
    aggregations, hits = answer.get("aggregations"), answer["hits"]["hits"]
    if not aggregations or not hits:
        return None
    by_layout = {layout: aggregations[f"layout{place}"] for place, layout in enumerate(layouts)}
    if sum(bucket["doc_count"] for bucket in by_layout.values()) != answer["hits"]["total"]["value"]:
        return None
    counts = {
        layout: np.array([b["doc_count"] for b in bucket["bins"]["buckets"]], np.int64) for layout, bucket in by_layout.items()
    }
    return Survey(
        bins={layout: np.flatnonzero(count) for layout, count in counts.items() if count.any()},
        documents=int(answer["hits"]["total"]["value"]),
        entries=sum(len(hit["_source"]["latency"]["histogram"]["values"]) for hit in hits) / len(hits),
        size=sum(len(orjson.dumps(hit)) for hit in hits) / len(hits) + LABEL_BYTES,
        first_ns=int(aggregations["first"]["value"]) * MS,
        last_ns=int(aggregations["last"]["value"]) * MS,
        summable=all(
            bucket["sum"]["value"] < EXACT_DOUBLE and bucket["samples"]["value"] < EXACT_DOUBLE for bucket in by_layout.values()
        ),
    )


def summed_windows(
    connection: Connection, index: str, filters: Filters, survey: Survey, plan: Plan, key: AnswerKey, step_ns: int
) -> Iterator[Intervals[Group]]:
    """Yield windows of a step (0: one window over all) under the groups of `key`, as the server has added them up."""
    width = step_ns or survey.last_ns - survey.first_ns + plan.record.step_ns
    offset = 0 if step_ns else survey.first_ns
    for layout, bins in survey.bins.items():
        query = {"bool": {"filter": [*filters, {"term": {"latency.layout": str(layout)}}]}}
        aggs = {
            "bins": _ranges(layout, bins),
            "low": {"min": {"field": "latency.min"}},
            "high": {"max": {"field": "latency.max"}},
            "sum": {"sum": {"field": "latency.sum"}},
            "known": {"value_count": {"field": "latency.sum"}},
        }
        sources = [time_source(width, offset), *({label: label_source(label)} for label in plan.labels)]
        cells = {"size": max(1, MOST_BUCKETS // (len(bins) + 1)), "sources": sources}
        for buckets in paged(connection, index, query, cells, aggs):
            yield from _intervals(buckets, layout, bins, key, width)


def time_source(width_ns: int, offset_ns: int) -> dict[str, Any]:
    """Return the source of a composite aggregation that gives windows of a width, the first of which starts at an offset."""
    width = width_ns // MS
    times = {"field": "@timestamp", "fixed_interval": f"{width}ms", "offset": f"{offset_ns // MS % width}ms"}
    return {"time": {"date_histogram": times}}


def label_source(label: str) -> dict[str, Any]:
    """Return the source of a composite aggregation that gives the values of a label, null where a document has none."""
    return {"terms": {"field": PATHS[label], "missing_bucket": True}}


def paged(
    connection: Connection, index: str, query: Json, composite: Json, aggs: Json | None = None, first: Json | None = None
) -> Iterator[list[Json]]:
    """Yield the buckets of all labels and windows that hold documents, in pages; none where no index has the name.

    `first` is the answer to the search of the first page, where that was asked already.
    """
    after: Json | None = None
    while True:
        answer, first = first or search(connection, index, bucket_page(query, composite, aggs, after)), None
        if "aggregations" not in answer:
            return
        cells = answer["aggregations"]["cells"]
        if cells["buckets"]:
            yield cells["buckets"]
        after = cells.get("after_key")
        if after is None or len(cells["buckets"]) < composite["size"]:
            return


def bucket_page(query: Json, composite: Json, aggs: Json | None = None, after: Json | None = None) -> dict[str, Any]:
    """Return the search for one page of buckets."""
    asked = {**composite, **({} if after is None else {"after": after})}
    cell = {"composite": asked, **({"aggs": dict(aggs)} if aggs else {})}
    return {"size": 0, "query": query, "aggs": {"cells": cell}}


def _ranges(layout: Layout, bins: Int) -> dict[str, Any]:
    """Return the aggregation that counts the samples of each bin: its reported value lies between its edges or on one."""
    values = layout.keys
    ranges = [{"from": float(values[number]), "to": float(values[number]) + 1} for number in bins.tolist()]
    return {"range": {"field": FIELD, "ranges": ranges}}


def _intervals(
    buckets: Sequence[Mapping[str, Any]], layout: Layout, bins: Int, key: AnswerKey, width_ns: int
) -> Iterator[Intervals[Group]]:
    table: dict[Group, int] = {}
    keys = [key(series_of(bucket["key"])) for bucket in buckets]
    chosen = [
        (bucket, table.setdefault(group, len(table))) for bucket, group in zip(buckets, keys, strict=True) if group is not None
    ]
    if not chosen:
        return
    dense = np.array([[cell["doc_count"] for cell in bucket["bins"]["buckets"]] for bucket, _ in chosen], np.int64)
    rows, columns = np.nonzero(dense)
    start = np.array([bucket["key"]["time"] for bucket, _ in chosen], np.int64) * MS
    known = np.array([bucket["known"]["value"] == bucket["doc_count"] for bucket, _ in chosen], np.bool_)
    low, high, total = (
        np.array([int(bucket[name]["value"] or 0) for bucket, _ in chosen], np.int64) * known for name in ("low", "high", "sum")
    )
    yield Intervals(
        layout=layout,
        table=tuple(table),
        series=np.array([code for _, code in chosen], np.int64),
        start_ns=start,
        end_ns=start + width_ns,
        indptr=np.searchsorted(rows, np.arange(len(chosen) + 1)),
        bins=bins[columns],
        counts=dense[rows, columns],
        exact=Exact(low, high, total, known) if known.any() else None,
    )


# Sums of counts, as the server has them: asked before anything is deleted that something else is to stand for.


SERIES_A_PAGE = 1000
COUNTS = ("latency.count", "offset.count")


class Cell(NamedTuple):
    """A series and the layout of some of its documents."""

    series: Series
    layout: str


Tallies = dict[Cell, int]


def totals_of(connection: Connection, names: Names, run: str, at_step: Json) -> Tallies:
    """Return the completions in a run's documents of latencies at a step, by series and layout. The index is refreshed first."""
    index = names.all("intervals")
    connection.refresh(index)
    sources: list[dict[str, Any]] = [{label: label_source(label)} for label in PATHS]
    sources += [{"segment": {"terms": {"field": "segment"}}}, {"layout": {"terms": {"field": "latency.layout"}}}]
    query = {"bool": {"filter": [{"term": {"run.id": run}}, at_step, LATENCIES]}}
    cells = {"size": SERIES_A_PAGE, "sources": sources}
    tallies: Tallies = {}
    for page in paged(connection, index, query, cells, {"count": {"sum": {"field": COUNTS[0]}}}):
        for bucket in page:
            key = bucket["key"]
            series = series_of(key).replaced(segment=int(key["segment"]))
            tallies[Cell(series, key["layout"])] = int(bucket["count"]["value"])
    return tallies


def counted(connection: Connection, index: str, filters: Filters) -> tuple[int, int]:
    """Return how many documents meet all filters, and the sum of their counts. The index is refreshed first."""
    connection.refresh(index)
    aggs = {name: {"sum": {"field": name}} for name in COUNTS}
    body = {"size": 0, "track_total_hits": True, "query": {"bool": {"filter": list(filters)}}, "aggs": aggs}
    answer = search(connection, index, body)
    sums: Mapping[str, Any] = answer.get("aggregations") or {}
    return int(answer["hits"]["total"]["value"]), sum(int(total["value"]) for total in sums.values())
