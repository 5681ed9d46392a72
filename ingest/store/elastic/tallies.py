"""Sums of counts, as the server has them: asked before anything is deleted that something else is to stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ingest.core.series import Series
from ingest.store.elastic.connection import Connection
from ingest.store.elastic.encoding import PATHS, series_of
from ingest.store.elastic.filters import LATENCIES, Filters, at_step
from ingest.store.elastic.names import Names
from ingest.store.elastic.reading import search
from ingest.store.elastic.sums import label_source, paged

SERIES_A_PAGE = 1000
COUNTS = ("latency.count", "offset.count")


class Cell(NamedTuple):
    """A series and the layout of some of its documents."""

    series: Series
    layout: str


Tallies = dict[Cell, int]


def tallies_of(connection: Connection, names: Names, run: str, step_ns: int) -> Tallies:
    """Return the completions in a run's documents of latencies at a step, by series and layout. The index is refreshed first."""
    index = names.all("intervals")
    connection.refresh(index)
    sources: list[dict[str, Any]] = [{label: label_source(label)} for label in PATHS]
    sources += [{"segment": {"terms": {"field": "segment"}}}, {"layout": {"terms": {"field": "latency.layout"}}}]
    query = {"bool": {"filter": [{"term": {"run.id": run}}, at_step(step_ns), LATENCIES]}}
    cells = {"size": SERIES_A_PAGE, "sources": sources}
    tallies: Tallies = {}
    for page in paged(connection, index, query, cells, {"count": {"sum": {"field": COUNTS[0]}}}):
        for bucket in page:
            key = bucket["key"]
            series = series_of(key).replaced(segment=int(key["segment"]))
            tallies[Cell(series, key["layout"])] = int(bucket["count"]["value"])
    return tallies


def counted(connection: Connection, index: str, filters: Filters, fields: Sequence[str] = COUNTS) -> tuple[int, int]:
    """Return how many documents meet all filters, and the sum of their counts. The index is refreshed first."""
    connection.refresh(index)
    aggs = {name: {"sum": {"field": name}} for name in fields}
    body = {"size": 0, "track_total_hits": True, "query": {"bool": {"filter": list(filters)}}, "aggs": aggs}
    answer = search(connection, index, body)
    sums: Mapping[str, Any] = answer.get("aggregations") or {}
    return int(answer["hits"]["total"]["value"]), sum(int(total["value"]) for total in sums.values())
