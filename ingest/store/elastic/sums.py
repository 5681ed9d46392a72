"""Bins added up inside the server: every occurring bin is a range, so that the counts are those of the merged histograms.

First a survey of the whole selection finds layouts, occurring bins and whether sums are exact (a sum is a double there, so
past 2^53 ns it is not); then windows and groups come in pages of fewer buckets than the server allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from ingest.core.intervals import Exact, Int, Intervals
from ingest.core.layout import Layout
from ingest.core.series import Group
from ingest.query.question import Key
from ingest.store.elastic.connection import Connection
from ingest.store.elastic.encoding import MS, PATHS, series_of
from ingest.store.elastic.filters import Filters
from ingest.store.elastic.reading import search
from ingest.store.records import StoredSeries

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
    connection: Connection, index: str, filters: Filters, survey: Survey, labels: Sequence[str], key: Key, steps: tuple[int, int]
) -> Iterator[Intervals[Group]]:
    """Yield windows under the groups of `key`, as the server has added them up.

    `labels` are those that `key` looks at; `steps` are that of the documents, and the one asked for (0: one window over all).
    """
    stored_ns, step_ns = steps
    width = step_ns or survey.last_ns - survey.first_ns + stored_ns
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
        sources = [time_source(width, offset), *({label: label_source(label)} for label in labels)]
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
    connection: Connection,
    index: str,
    query: Mapping[str, Any],
    composite: Mapping[str, Any],
    aggs: Mapping[str, Any] | None = None,
    first: Mapping[str, Any] | None = None,
) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the buckets of all labels and windows that hold documents, in pages; none where no index has the name.

    `first` is the answer to the search of the first page, where that was asked already.
    """
    after: Mapping[str, Any] | None = None
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


def bucket_page(
    query: Mapping[str, Any],
    composite: Mapping[str, Any],
    aggs: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
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
    buckets: Sequence[Mapping[str, Any]], layout: Layout, bins: Int, key: Key, width_ns: int
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
