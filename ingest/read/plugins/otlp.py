"""OpenTelemetry metrics as JSON: the Collector's file exporter, and SDKs. Exponential and explicit histograms.

OpenTelemetry metrics as JSON: the Collector's file exporter, and SDKs. Exponential and explicit histograms.

    {"resourceMetrics": [{"resource": {"attributes": [...]}, "scopeMetrics": [{"metrics": [{"name": "rpc.duration", "unit": "ms",
      "exponentialHistogram": {"aggregationTemporality": 1, "dataPoints": [{"startTimeUnixNano": "...", "timeUnixNano": "...",
        "count": "201", "scale": 2, "zeroCount": "1", "positive": {"offset": -5, "bucketCounts": ["2", "3"]}}]}}]}]}]}

Bin i of an exponential histogram is (base^i, base^(i+1)] with base 2^(2^-scale); explicit bounds end their bins. Counts are of an
interval (temporality 1, delta) or since a start (2, cumulative). Whole numbers may be text; fields at zero are left out. The
minimum, maximum and sum of a point are not taken: they would hold for its own interval alone, which windows cut. What
`export --format otlp` wrote has its labels and its error again (`otlp_own.py`).

Source: opentelemetry-proto's metrics.proto; checked against the counts of the Python SDK.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ingest.core.errors import InputError
from ingest.core.events import Events
from ingest.core.intervals import Int
from ingest.core.labels import CLIENT, LABELS, LAYER, LAYERS, Series, failed_kind, in_layer
from ingest.core.layout import LEAST_SCALE, MOST_SCALE, Exponential, Layout
from ingest.core.units import UNITS_NS
from ingest.read.account import Account
from ingest.read.context import NOT_REAL, OWN_STAMPS, YEAR_NS, Context, TimeZero
from ingest.read.described.table import sound_rows
from ingest.read.format_names import OTLP, SPANS
from ingest.read.formats import AGAIN, Reader
from ingest.read.operations import DAY_NS, MOST_SERIES, TOO_MANY_LABELS, events_layout
from ingest.read.polls import (
    BELOW_ZERO,
    Lost,
    Poll,
    Polls,
    WrongError,
    between_edges,
    count,
    end_ns,
    objects_of,
    polled,
    sparse,
    whole,
)
from ingest.read.sources import Around, Source
from ingest.read.text import TABLE_ENDINGS, name_without

# The OpenTelemetry metrics that `export --format otlp` writes: their words, and what they are when they are read again.


NOTHING = "holds no histogram of latencies: export histograms with a unit of time (s, ms, us or ns), not gauges or sums"
SCOPE = "tailboard"
PREFIX, SUFFIX = "tailboard.", ".duration"
HOST, RUN, KIND = "host.name", "tailboard.run", "tailboard.kind"
ERROR, BELOW_PPM, BELOW_NS = "tailboard.error", "tailboard.below_ppm", "tailboard.below_ns"
TAKEN = frozenset(LABELS) - {"run", "kind", "host"}


def own_series(base: Series, metric: str, metadata: Mapping[str, str], attributes: Mapping[str, str]) -> Series:
    """Return the series of a point of ours: `tailboard.device.completion.duration` is of kind device:completion."""
    layer, _, kind = metric.removeprefix(PREFIX).removesuffix(SUFFIX).partition(".")
    labels = {name: attributes.get(name, "") for name in TAKEN}
    host = base.host or attributes.get(HOST, "")
    return base.replaced(**{**labels, "host": host, "kind": metadata.get(KIND) or in_layer(kind, layer)})


# Which labels of ours the attributes of a metric are: those that people use for hosts, operations and volumes, by name.


KNOWN = {
    "host": ("host", "host.name", "hostname", "node"),
    "job": ("job", "service.name"),
    "process": ("process", "service.instance.id", "pid", "instance"),
    "volume": ("volume", "pool", "device", "disk"),
    "op": ("op", "operation", "method", "http.request.method", "rpc.method", "db.operation.name", "db.operation", "command"),
}
OF_THE_SDK = "telemetry.sdk."


def series_of(base: Series, metric: str, attributes: Mapping[str, str]) -> Series:
    """Return the series of a metric's attributes; what has no label of ours stays in the tag, behind the metric's name.

    A Prometheus `instance` is host and port: the host is taken from it where nothing else says it.
    """
    rest = {name: value for name, value in attributes.items() if not name.startswith(OF_THE_SDK)}
    layer = rest.pop(LAYER) if rest.get(LAYER) in LAYERS else CLIENT
    labels = {}
    for label, names in KNOWN.items():
        name = next((name for name in names if rest.get(name)), None)
        if name is not None:
            labels[label] = rest.pop(name)
    instance = attributes.get("instance", "")
    if instance and "host" not in labels:
        labels["host"] = instance.rsplit(":", 1)[0]
    more = ",".join(f"{name}={rest[name]}" for name in sorted(rest))
    labels["tag"] = f"{metric}{{{more}}}" if more else metric
    labels.setdefault("op", metric)
    labels["kind"] = in_layer("service", layer)
    host = base.host or labels.get("host", "")
    return base.replaced(**{**labels, "host": host})


DELTA, CUMULATIVE = 1, 2
TEMPORALITIES = {"AGGREGATION_TEMPORALITY_DELTA": DELTA, "AGGREGATION_TEMPORALITY_CUMULATIVE": CUMULATIVE}
UNIT_UNKNOWN = "the unit of its values is not stated: give --recorded-unit s, ms, us or ns"
NO_SUM = "the counts of its buckets are not its count: it was damaged"
MOST_BUCKETS = 1 << 16
OTHER_SIGNALS = {"resourceSpans", "resourceLogs", "resourceProfiles"}
DATA = {"gauge", "sum", "histogram", "exponentialHistogram", "summary"}
# What an object around points may hold. One that lacks its array is empty (protobuf's JSON leaves empty arrays out) unless it
# holds something of another name: a receiver passes over that, and so would over a name that was damaged.
NAMES = {"resourceMetrics", "resource", "scopeMetrics", "instrumentationLibraryMetrics", "scope", "instrumentationLibrary"}
NAMES |= {"metrics", "schemaUrl", "name", "description", "unit", "metadata", "dataPoints", "aggregationTemporality", *DATA}
VALUES: Mapping[str, type | tuple[type, ...]] = {
    "stringValue": str,
    "boolValue": bool,
    "intValue": (int, str),
    "doubleValue": (int, float, Decimal, str),
    "bytesValue": str,
    "arrayValue": dict,
    "kvlistValue": dict,
}
ESCAPED = str.maketrans({"µ": "u", "μ": "u"})


def read(path: Path, context: Context, held: Polls) -> None:
    """Add the histograms of a file to `held`; points that cannot be taken are rejected, metrics that are no latencies skipped."""
    for line, entry in objects_of(path, context):
        take(entry, line, context, held)


def take(entry: Mapping[str, Any], line: int, context: Context, held: Polls) -> None:
    """Add the histograms of one document to `held`; what behind a part of another form stands in it is not taken."""
    try:
        for metric, resource, scope in _metrics(entry):
            own = _attributes(metric.get("metadata")) if scope == SCOPE else None
            _take(metric, own, resource, line, context, held)
    except WrongError as error:
        context.account.reject(str(error), [line])


def _metrics(entry: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, str], str]]:
    """Yield the metrics of a line with the attributes of their resource, and the name of their scope."""
    if "resourceMetrics" not in entry and entry.keys() & OTHER_SIGNALS:
        return
    for resource in _objects(entry, "resourceMetrics"):
        attributes = _attributes(_object(resource, "resource").get("attributes"))
        scopes = "instrumentationLibraryMetrics" if "instrumentationLibraryMetrics" in resource else "scopeMetrics"
        for scope in _objects(resource, scopes):
            name = str(_object(scope, "scope").get("name") or "")
            for metric in _objects(scope, "metrics"):
                yield metric, attributes, name


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object of a name, an empty one where there is none; WrongError where that is something else."""
    value = body.get(name)
    if not isinstance(value, dict | None):
        raise WrongError(f"{name} is no object")
    return value or {}


def _objects(body: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects of the array of a name; WrongError where it is none, or not there beside an unknown name."""
    value = body.get(name, None if body.keys() - NAMES else [])
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise WrongError(f"no array of objects called {name}")
    return value


def _attributes(pairs: Any) -> dict[str, str]:
    """Return the words of attributes; WrongError where a value is not of its type: it would name another series."""
    words = {}
    for pair in _objects({"attributes": pairs}, "attributes") if pairs is not None else ():
        key, typed = pair.get("key"), _object(pair, "value")
        if not isinstance(key, str) or pair.get("value") is None:
            raise WrongError("an attribute without a key or a value")
        for kind, value in typed.items():
            if kind not in VALUES or not isinstance(value, VALUES[kind]) or isinstance(value, bool) != (kind == "boolValue"):
                raise WrongError("an attribute whose value is not of its type")
            if not isinstance(value, dict):  # lists, as of the words of a command, name no series
                words[key] = str(value)
    return words


def _take(
    metric: Mapping[str, Any],
    own: Mapping[str, str] | None,
    resource: Mapping[str, str],
    line: int,
    context: Context,
    held: Polls,
) -> None:
    """Add the points of a metric; `own` is the metadata of one that we exported ourselves."""
    name, unit = metric.get("name"), metric.get("unit") or ""
    if not isinstance(name, str) or not isinstance(unit, str) or not any(isinstance(metric.get(sort), dict) for sort in DATA):
        raise WrongError("a metric without a name, a unit or data")
    unit = unit.translate(ESCAPED)
    for key, binned in (("exponentialHistogram", _exponential), ("histogram", _explicit)):
        body = _object(metric, key)
        points = _objects(body, "dataPoints") if body else []
        if unit and unit not in UNITS_NS:
            context.account.skip("not a latency: its unit is no unit of time", len(points))
            continue
        for point in points:
            base = context.series
            try:
                attributes = {**resource, **_attributes(point.get("attributes"))}
            except WrongError as error:
                context.account.reject(str(error), [line])
                continue
            series = series_of(base, name, attributes) if own is None else own_series(base, name, own, attributes)
            try:
                unit_ns = UNITS_NS.get(unit) or context.recorded_unit_ns
                if unit_ns is None:
                    raise WrongError(UNIT_UNKNOWN)
                total = _total(body)
                if whole(point.get("flags") or 0) & 1:
                    context.account.skip("a point without a value", 1)
                    continue
                layout, places, counts = binned(point, unit_ns, own)
                if sum(counts) != count(point.get("count") or 0):
                    raise WrongError(NO_SUM)
                if not sum(counts) and not total:
                    context.account.skip("a point without samples", 1)
                    continue
                start, end = (whole(point.get(moment) or 0) for moment in ("startTimeUnixNano", "timeUnixNano"))
                if not end:
                    raise WrongError("a point without a time")
                held.add(Poll(line, series, start or None, end, layout, *sparse(places, counts), total))
            except WrongError as error:
                none = str(error) in (UNIT_UNKNOWN, BELOW_ZERO)  # it may be no latency at all
                held.reject(str(error), line, None if none else _lost(str(error), series, body, point))


def _lost(reason: str, series: Series, body: Mapping[str, Any], point: Mapping[str, Any]) -> Lost:
    """Return whose samples a point that cannot be taken holds, and from when to when."""
    start, end, samples = (_or_none(point.get(name)) for name in ("startTimeUnixNano", "timeUnixNano", "count"))
    try:
        total = _total(body)
    except WrongError:
        total = False
    return Lost(series, start or None, end or None, None if reason == NO_SUM else samples, total)


def _or_none(value: Any) -> int | None:
    try:
        return count(value)
    except WrongError:
        return None


def _total(body: Mapping[str, Any]) -> bool:
    said = body.get("aggregationTemporality")
    temporality = TEMPORALITIES.get(said, 0) if isinstance(said, str) else said
    if isinstance(temporality, bool) or temporality not in (DELTA, CUMULATIVE):
        raise WrongError("nothing says whether it counts since a start or since the point before")
    return bool(temporality == CUMULATIVE)


def _exponential(point: Mapping[str, Any], unit_ns: int, own: Mapping[str, str] | None) -> tuple[Layout, Int, Sequence[int]]:
    """Return the layout of a point, the bin of each bucket and its count; scales above 8 are brought down, which is exact."""
    scale = whole(point.get("scale") or 0)
    if scale < LEAST_SCALE:
        raise WrongError(f"a scale below {LEAST_SCALE}: its bins are wider than all latencies")
    if any(count(number) for number in _buckets(point.get("negative"))[1]):
        raise WrongError(BELOW_ZERO)
    offset, numbers = _buckets(point.get("positive"))
    finest = min(scale, MOST_SCALE)
    layout = Exponential(finest, unit_ns)
    if own is not None:
        try:  # what the export says of samples below their buckets
            layout = replace(layout, below_ppm=int(own.get(BELOW_PPM, "0")), below_ns=int(own.get(BELOW_NS, "0")))
        except ValueError as error:
            raise WrongError(str(error)) from None
    indices = np.arange(len(numbers), dtype=np.int64) + offset
    zero = count(point.get("zeroCount") or 0)
    threshold = max(end_ns(point.get("zeroThreshold") or 0, unit_ns), 0)
    places = np.append(layout.places(indices >> (scale - finest)), layout.index(np.array([threshold])))
    return layout, places, [*map(count, numbers), zero]


def _buckets(body: Any) -> tuple[int, list[Any]]:
    if not isinstance(body, dict):
        return 0, []
    numbers = body.get("bucketCounts") or []
    if not isinstance(numbers, list) or len(numbers) > MOST_BUCKETS:
        raise WrongError("no list of buckets")
    offset = whole(body.get("offset") or 0)
    if not -(2**31) <= offset < 2**31:
        raise WrongError("an offset of buckets out of range")
    return offset, numbers


def _explicit(point: Mapping[str, Any], unit_ns: int, _: Mapping[str, str] | None) -> tuple[Layout, Int, Sequence[int]]:
    """Return the layout of a point, the bin of each bucket and its count."""
    bounds, numbers = point.get("explicitBounds") or [], point.get("bucketCounts") or []
    if not isinstance(bounds, list) or not isinstance(numbers, list):
        raise WrongError("no list of buckets")
    if not bounds or not numbers:
        raise WrongError("a histogram without buckets, of which only the mean is known: have the SDK keep buckets")
    if len(numbers) != len(bounds) + 1:
        raise WrongError("buckets are not one more than bounds")
    ends = [end_ns(bound, unit_ns) for bound in bounds]
    counts = [count(number) for number in numbers]
    if any(low >= high for low, high in pairwise(ends)) and sorted(ends) != ends:
        raise WrongError("bounds do not rise")
    return *between_edges(ends, counts, is_open=True), counts


# Spans, as operations: a line holds those of some resources, each with its start and end.
#
#     {"resourceSpans": [{"resource": {"attributes": [...]}, "scopeSpans": [{"spans": [{"name": "GET /cart", "kind": 2,
#       "startTimeUnixNano": "1795329757042528000", "endTimeUnixNano": "1795329757045519000", "status": {"code": 2}}]}]}]}
#
# The op is the name, the tag the kind (server, client ...): a call is a span of either side, and spans hold one another.


SPAN_KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
BAD_SPAN = "a span without a name, a start or an end that can be read"
AT_ONCE = 1 << 14


def spans(path: Path, context: Context) -> Iterator[Events]:
    """Yield the spans of a file, of kind service; those whose status is an error failed. Rejected ones are counted."""
    table: dict[Series, int] = {}
    rows: list[tuple[int, int, int, int]] = []
    for line, entry in objects_of(path, context):
        try:
            for resource in _objects(entry, "resourceSpans"):
                words = _attributes(_object(resource, "resource").get("attributes"))
                base = series_of(context.series, "", words).replaced(tag="")
                for scope in _objects(resource, "scopeSpans"):
                    rows += (_span(span, line, base, table) for span in _objects(scope, "spans"))
        except WrongError as error:
            context.account.reject(str(error), [line])
        if len(rows) >= AT_ONCE:
            yield _events(rows, table, context)
            rows = []
    if rows:
        yield _events(rows, table, context)


def _span(span: Mapping[str, Any], line: int, base: Series, table: dict[Series, int]) -> tuple[int, int, int, int]:
    """Return line, place in the table, start and end of a span; the end lies before the start where it cannot be read."""
    try:
        start, end = (count(span.get(name)) for name in ("startTimeUnixNano", "endTimeUnixNano"))
        kind, status = span.get("kind") or 0, _object(span, "status").get("code")
        word = SPAN_KINDS[int(kind)] if str(kind).isdecimal() else str(kind).removeprefix("SPAN_KIND_").lower()
        failed = status in (2, "2", "STATUS_CODE_ERROR")
        series = base.replaced(op=str(span["name"]), tag=word, kind=failed_kind("service") if failed else "service")
    except (WrongError, KeyError, IndexError):
        return line, 0, 1, 0
    return line, table.setdefault(series, len(table)), start, end


def _events(rows: Sequence[tuple[int, int, int, int]], table: Mapping[Series, int], context: Context) -> Events:
    """Return the spans that are sound; the others are rejected."""
    lines, codes, start, end = np.array(rows, np.int64).T
    faults = [
        (BAD_SPAN, (end < start) & (end == 0)),
        ("it ended before it began", end < start),
        ("a latency of more than a day: damage, or another unit than was given", end - start > DAY_NS),
        (NOT_REAL, start < YEAR_NS),
        (TOO_MANY_LABELS, codes >= MOST_SERIES),
    ]
    good = sound_rows(context.account, lines, faults)
    return Events(tuple(table), codes, end + context.offset_ns, end - start).take(good)


def locate_spans(path: Path, around: Around) -> Source:
    """Return the source of a file of spans; InputError where none can be read."""
    context = around.context(path, process=name_without(path, TABLE_ENDINGS))
    quiet = replace(context, account=Account(path=str(path)), offset_ns=0)
    first = next((int(chunk.end_ns[0]) for chunk in spans(path, quiet) if len(chunk)), None)
    if first is None:
        raise InputError("holds no span that can be read", path)
    return Source(path, SPANS, replace(context, zero=TimeZero(first, OWN_STAMPS)), layout=str(events_layout(context.digits)))


OF_SPANS = Reader(locate_spans, events=spans, grows=AGAIN)
READER = polled(OTLP, read, NOTHING, names_series=True)
