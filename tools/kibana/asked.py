"""What Kibana would ask the server for a Vega panel: the requests of its `url` entries, completed as Kibana completes them.

Kibana puts the dashboard's filters and time range into `query`, and turns `interval: {"%autointerval%": N}` of a date_histogram
into the range in N parts, rounded to one of its intervals: fixed ones, or calendar ones where there is one of that length. An end
of the range, shifted, stands where `{"%timefilter%": "max", "shift": -5, "unit": "minute"}` was written, the range where it is
true. In a request with a `query` of its own the filters stand where `%dashboard_context-filter_clause%` was written.
Source: es_query_parser.ts and dateHistogramInterval of Kibana; docs/reference/compatibility.md says what was run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
ROUNDED = (
    (SECOND // 2, "100ms"),
    (5 * SECOND, "1s"),
    (15 * SECOND // 2, "5s"),
    (15 * SECOND, "10s"),
    (45 * SECOND, "30s"),
    (3 * MINUTE, "1m"),
    (15 * MINUTE // 2, "5m"),
    (20 * MINUTE, "10m"),
    (45 * MINUTE, "30m"),
    (2 * HOUR, "1h"),
    (6 * HOUR, "3h"),
    (DAY, "12h"),
    (7 * DAY, "24h"),
    (21 * DAY, "1w"),
    (42 * DAY - 1, "30d"),
)
LONGEST = "1y"
ENDS = ("min", "max")
SHIFTS = {"week": 7 * DAY, "day": DAY, "hour": HOUR, "minute": MINUTE, "second": SECOND}
CALENDAR = frozenset({"1m", "1h", "1d", "1w", "1M", "1y"})


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


def autointerval(range_ms: int, windows: int) -> dict[str, str]:
    """Return the interval of windows, as a request has it, when Kibana is asked to divide a range into a number of them."""
    wide = range_ms / windows
    every = next((step for most, step in ROUNDED if wide <= most), LONGEST)
    return {"calendar_interval" if every in CALENDAR else "fixed_interval": every}


def vega_requests(spec: Mapping[str, Any], shown: Shown) -> list[Request]:
    """Return the searches of a Vega spec in the order of its data."""
    return [
        Request(entry["name"], entry["url"]["index"], _completed(entry["url"], shown)) for entry in _entries(spec.get("data", []))
    ]


def _entries(data: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (entry for entry in data if isinstance(entry.get("url"), Mapping))


def _completed(url: Mapping[str, Any], shown: Shown) -> dict[str, Any]:
    body = _in_context(url["body"], shown)
    time = {"range": {url["%timefield%"]: _range(shown)}} if url.get("%timefield%") else None
    if not url.get("%context%"):
        return {**body, "query": time} if time else body
    return {**body, "query": {"bool": {**_filters(shown), "must": [time] if time else []}}}


def _filters(shown: Shown) -> dict[str, list[Any]]:
    return {"must": [], "filter": list(shown.filters), "should": [], "must_not": []}


def _range(shown: Shown) -> dict[str, str]:
    stamps = {
        word: datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for word, ms in (("gte", shown.begin_ms), ("lte", shown.end_ms))
    }
    return {**stamps, "format": "strict_date_optional_time"}


def _in_context(value: Any, shown: Shown) -> Any:
    if isinstance(value, Mapping):
        if value.get("%timefilter%") in ENDS:
            end = shown.begin_ms if value["%timefilter%"] == "min" else shown.end_ms
            return end + value.get("shift", 0) * SHIFTS[value.get("unit", "day")]
        if value.get("%timefilter%") is True:
            return _range(shown)
        body = {key: _in_context(inner, shown) for key, inner in value.items()}
        interval = value.get("interval")
        if isinstance(interval, Mapping) and "%autointerval%" in interval:
            del body["interval"]
            body |= autointerval(shown.end_ms - shown.begin_ms, interval["%autointerval%"])
        return body
    if not isinstance(value, list):
        return value
    clauses = {f"%dashboard_context-{name}_clause%": clause for name, clause in _filters(shown).items()}
    parts = [clauses[one] if isinstance(one, str) and one in clauses else [_in_context(one, shown)] for one in value]
    return [one for part in parts for one in part]
