"""What Kibana would ask the server for a Vega panel: the requests of its `url` entries, completed as Kibana completes them.

Kibana puts the dashboard's filters and time range into `query`, and turns `interval: {"%autointerval%": N}` of a date_histogram
into a fixed interval: the range in N parts, rounded to one of its steps. Source: Kibana's es_query_parser, as the facts sheet and
its documentation tell it; no Kibana ran here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
ROUNDED = (
    (SECOND // 2, SECOND // 10),
    (5 * SECOND, SECOND),
    (15 * SECOND // 2, 5 * SECOND),
    (15 * SECOND, 10 * SECOND),
    (45 * SECOND, 30 * SECOND),
    (3 * MINUTE, MINUTE),
    (15 * MINUTE // 2, 5 * MINUTE),
    (20 * MINUTE, 10 * MINUTE),
    (45 * MINUTE, 30 * MINUTE),
    (2 * HOUR, HOUR),
    (6 * HOUR, 3 * HOUR),
    (DAY, 12 * HOUR),
    (7 * DAY, DAY),
)
LONGEST = 7 * DAY


@dataclass(frozen=True, slots=True)
class Shown:
    """What a dashboard shows: a time range in epoch ms and the filters of its controls, as Elasticsearch queries."""

    begin_ms: int
    end_ms: int
    filters: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A search: of which data entry, on which index, with which body."""

    name: str
    index: str
    body: Mapping[str, Any]


def chosen(field: str, values: Sequence[str], *, excluded: bool = False) -> dict[str, Any]:
    """Return the filter that an options list makes of what is chosen in it."""
    clause: dict[str, Any] = {"match_phrase": {field: values[0]}} if len(values) == 1 else {"terms": {field: list(values)}}
    return {"bool": {"must_not": [clause]}} if excluded else clause


def autointerval(range_ms: int, windows: int) -> int:
    """Return the width in ms of the windows into which Kibana divides a range when asked for a number of them."""
    wide = range_ms / windows
    return next((step for most, step in ROUNDED if wide <= most), LONGEST)


def vega_requests(spec: Mapping[str, Any], shown: Shown) -> list[Request]:
    """Return the searches of a Vega spec in the order of its data."""
    return [
        Request(entry["name"], entry["url"]["index"], _completed(entry["url"], shown)) for entry in _entries(spec.get("data", []))
    ]


def _entries(data: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (entry for entry in data if isinstance(entry.get("url"), Mapping))


def _completed(url: Mapping[str, Any], shown: Shown) -> dict[str, Any]:
    stamps = {
        word: datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for word, ms in (("gte", shown.begin_ms), ("lte", shown.end_ms))
    }
    filters: list[Any] = list(shown.filters) if url.get("%context%") else []
    if url.get("%timefield%"):
        filters.append({"range": {url["%timefield%"]: {**stamps, "format": "strict_date_optional_time"}}})
    query = {"bool": {"must": [], "filter": filters, "should": [], "must_not": []}}
    body = _with_intervals(url["body"], shown.end_ms - shown.begin_ms)
    return {**body, "query": query} if filters else body


def _with_intervals(value: Any, range_ms: int) -> Any:
    if isinstance(value, Mapping):
        body = {key: _with_intervals(inner, range_ms) for key, inner in value.items()}
        interval = value.get("interval")
        if isinstance(interval, Mapping) and "%autointerval%" in interval:
            del body["interval"]
            body["fixed_interval"] = f"{autointerval(range_ms, interval['%autointerval%'])}ms"
        return body
    return [_with_intervals(inner, range_ms) for inner in value] if isinstance(value, list) else value
