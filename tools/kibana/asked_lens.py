"""What Kibana would ask the server for a Lens panel: the layer's columns as one tree of aggregations.

Buckets nest in the order of the columns, numbers lie in the innermost; what orders a bucket is computed beside it, too. Names are
the places of the columns, a filtered number is `3-metric` in `3-filter`. Where a list is longer than its size, a second search
for "Other" follows; it is not imitated. Source: Kibana's code, to_expression of Lens and the agg
types, read and not run (no Kibana ran here), with its default settings. Intervals are fixed ones and in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tools.kibana.asked import DAY, HOUR, MINUTE, SECOND, Request, Shown
from tools.kibana.data_views import TIME_FIELD, index_of, pattern, timed
from tools.kibana.kql import query
from tools.kibana.objects import SavedObject

Json = dict[str, Any]
Interval = Callable[[str], Json]

BAR_TARGET, MOST_BARS = 50, 1000
STEPS = (
    *(365 * DAY, 30 * DAY, 7 * DAY, DAY, 12 * HOUR, 3 * HOUR, HOUR),
    *(30 * MINUTE, 10 * MINUTE, 5 * MINUTE, MINUTE, 30 * SECOND, 10 * SECOND, 5 * SECOND, SECOND, SECOND // 10),
)
UNITS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR}
METRICS = {"max": "max", "min": "min", "sum": "sum", "unique_count": "cardinality"}
COMPUTED = frozenset({"formula", "math"})
BUCKETS = frozenset({"terms", "date_histogram"})
MISSING = "__missing__"
FEW, SHARD_SIZE, ACCURATE_SHARD_SIZE = 10, 25, 1000


def lens_request(saved: SavedObject, shown: Shown) -> Request:
    """Return the search of a Lens panel on a dashboard that shows a time range and filters."""
    layer = lens_layer(saved)
    filters: list[Json] = []
    if not layer["ignoreGlobalFilters"]:
        text = saved.attributes["state"]["query"]["query"]
        filters = [*([query(text)] if text else []), *map(dict, shown.filters)]
    view = saved.references[0].id
    index = index_of(view)
    if timed(index):
        filters.append(_within(shown))
    aggs = lens_aggs(saved, lambda written: _fixed(written, shown))
    bool_query = {"bool": {"must": [], "filter": filters, "should": [], "must_not": []}}
    return Request(saved.id, pattern(view.removesuffix(f"-{index}"), index), {"size": 0, "query": bool_query, "aggs": aggs})


def lens_layers(saved: SavedObject) -> Mapping[str, Any]:
    """Return the layers of a Lens panel by id."""
    return dict(saved.attributes["state"]["datasourceStates"]["formBased"]["layers"])


def lens_layer(saved: SavedObject) -> Mapping[str, Any]:
    """Return the one layer of a Lens panel."""
    (layer,) = lens_layers(saved).values()
    return dict(layer)


def lens_columns(saved: SavedObject) -> Mapping[str, Any]:
    """Return the columns of a Lens panel by id."""
    return dict(lens_layer(saved)["columns"])


def unknown_operations(saved: SavedObject) -> set[str]:
    """Return the operations of a Lens panel whose request is not known here."""
    used = {column["operationType"] for column in lens_columns(saved).values()}
    return used - METRICS.keys() - COMPUTED - BUCKETS


def lens_aggs(saved: SavedObject, interval: Interval) -> Json:
    """Return the aggregations of a Lens panel; `interval` makes what a date_histogram needs of the interval as written."""
    layer = lens_layer(saved)
    asked = [name for name in layer["columnOrder"] if layer["columns"][name]["operationType"] not in COMPUTED]
    places = {name: str(place) for place, name in enumerate(asked)}
    columns = layer["columns"]
    numbers = {key: agg for name in asked if not columns[name]["isBucketed"] for key, agg in _number(columns[name], places[name])}
    inner = numbers
    for name in reversed([name for name in asked if columns[name]["isBucketed"]]):
        bucket, beside = _bucket(columns[name], places[name], columns, places, interval)
        inner = {places[name]: {**bucket, "aggs": {**beside, **inner}}}
    return inner


def lens_interval(range_ms: int, every: str) -> int:
    """Return the width in ms of the buckets that Kibana makes of a range: what is written, if these are not too many."""
    if every == "auto":
        target = range_ms / BAR_TARGET
        place = next((place for place, step in enumerate(STEPS) if step <= target), None)
        return max(int(target), 1) if place is None else STEPS[max(place - 1, 0)]
    number, unit = re.findall(r"\d+|[a-z]+", every)
    least = next((step for step in STEPS if step <= range_ms / MOST_BARS), max(range_ms // MOST_BARS, 1))
    return max(int(number) * UNITS[unit], least)


def _within(shown: Shown) -> Json:
    """Return the query of documents in the time range."""
    ends = [datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds") for ms in (shown.begin_ms, shown.end_ms)]
    gte, lte = (end.replace("+00:00", "Z") for end in ends)
    return {"range": {TIME_FIELD: {"format": "strict_date_optional_time", "gte": gte, "lte": lte}}}


def _fixed(every: str, shown: Shown) -> Json:
    width = lens_interval(shown.end_ms - shown.begin_ms, every)
    return {"fixed_interval": f"{width}ms", "time_zone": "UTC", "extended_bounds": {"min": shown.begin_ms, "max": shown.end_ms}}


def _bucket(
    column: Mapping[str, Any], place: str, columns: Mapping[str, Any], places: Mapping[str, str], interval: Interval
) -> tuple[Json, Json]:
    """Return the aggregation of a bucket column, and those that order it."""
    params, field = column["params"], {"field": column["sourceField"]}
    if column["operationType"] == "date_histogram":
        return {
            "date_histogram": {**field, **interval(params["interval"]), "min_doc_count": 0 if params["includeEmptyRows"] else 1}
        }, {}
    path, beside = _order(params, place, columns, places)
    sized = {"shard_size": SHARD_SIZE} if params["size"] <= FEW else {}
    if params.get("accuracyMode"):
        sized = {"shard_size": max(ACCURATE_SHARD_SIZE, params["size"] * 3 // 2 + 10)}
    asked = {**field, "order": {path: params["orderDirection"]}, "size": params["size"], **sized}
    return {
        "terms": {**asked, **({"missing": MISSING} if params.get("otherBucket") and params.get("missingBucket") else {})}
    }, beside


def _order(params: Mapping[str, Any], place: str, columns: Mapping[str, Any], places: Mapping[str, str]) -> tuple[str, Json]:
    order = params["orderBy"]
    if order["type"] == "custom":
        name = f"{place}-orderAgg"
        return name, {name: _metric(params["orderAgg"])}
    if order["type"] == "column":
        column, by = columns[order["columnId"]], places[order["columnId"]]
        return (f"{by}-filter>{by}-metric" if "filter" in column else by), dict(_number(column, by))
    return "_key", {}


def _number(column: Mapping[str, Any], place: str) -> Sequence[tuple[str, Json]]:
    """Return the aggregation of a number column under its name."""
    if "filter" not in column:
        return [(place, _metric(column))]
    inner = {f"{place}-metric": _metric(column)}
    return [(f"{place}-filter", {"filter": query(column["filter"]["query"]), "aggs": inner})]


def _metric(column: Mapping[str, Any]) -> Json:
    return {METRICS[column["operationType"]]: {"field": column["sourceField"]}}
