"""What the Vega panels ask Elasticsearch for: one request a panel, no window in Python; marks and objectives are hits of it.

All begin alike, because kinds and runs are never merged by accident:

    clock       Kibana's windows, empty ones, too: how wide they are
    picked      what the panel reads: scope and step of rollups
      runs      one run: the one that is chosen, else the one that began last
        kinds   one kind: the one that is chosen, else the default (fields.yml, kind_preference)

`breadth_first` keeps the server from summing histograms of runs that are not shown. Sums and merges of host rollups make the
cluster, so that a chosen (or excluded) host is honoured. Samples are counted by `percentile_ranks` at the edges of rows: they lie
on edges of hdr's own bins, so that a count is exact, and no empty bucket travels. The budget: 1,200 HDR histograms of 2 digits,
whose memory (40 kB each) no circuit breaker counts; Kibana makes at most seven times the windows that it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ingest.core.labels import CLIENT, LAYERS, THREAD, in_layer
from ingest.store.elastic.documents import PATHS

Json = dict[str, Any]

PERCENTS = (50, 90, 95, 99, 99.9, 99.99, 99.999)  # of each a dozen are asked for: see ranks
RATIO = 2.9  # of what is asked above a percentile
MOST_SAMPLES, MOST_OF_RUN = 100_000_000, 10_000_000_000  # of a window, of a run, whose percentiles are exact
HDR_WINDOWS, HEAT_WINDOWS = 71, 42  # the budget: 7 times as many, fine and coarse, in a heat map two histograms each
MEDIAN = 50
HDR = {"number_of_significant_value_digits": 2}
OVERVIEW, STORED = "rollup.overview", "rollup.stored"
FAILED_BELOW = -15  # of kind_preference
FINE_MINUTES = 5  # up to about this range windows are narrower than the 10 s of overviews
FIRST_OCTAVE, LAST_OCTAVE = 10, 36
ROWS, NARROW_ROWS = 8, 64  # an octave: of heat maps, of distributions
HOSTS, SOURCES, OPERATIONS = 64, 32, 4
PARTS = {"host": 1, "volume": 2, "job": 1, "process": 3, "tag": 2}  # of a log; a trace has several processes
ROW_WINDOWS = 22
SECOND_NS, OFFSET_ROWS = 1_000_000_000, 50
NUMBERS = ("p50", "p90", "p99", "p99_9")


def edges(an_octave: int) -> list[int]:
    """Return the edges in ns of rows from 1 us (2^10 ns) to 69 s (2^36 ns), each octave in equal parts: edges of fio's bins."""
    return [
        (an_octave + part << octave) // an_octave for octave in range(FIRST_OCTAVE, LAST_OCTAVE) for part in range(an_octave)
    ] + [1 << LAST_OCTAVE]


def latency_rows(an_octave: int) -> Json:
    """Return the aggregation that says which share of the samples lies below each of `edges`.

    What is asked for is a value in the last bin of hdr (1/128 octave wide) below the edge: bins up to that one are counted.
    """
    below = [edge - edge // 512 for edge in edges(an_octave)]
    return {"percentile_ranks": {"field": "latency.histogram", "values": below, "hdr": HDR}}


def steps(percent: float, most: int) -> range:
    """Return the numbers k of the percentiles above one that are asked for, too: (100 - p) / 2.9^k above it."""
    most_beyond = (100 - percent) * most / 100
    return range(0) if percent == MEDIAN else range(1 + math.ceil(math.log(most_beyond, RATIO)))


def ranks(percents: Sequence[float] = PERCENTS, most: int = MOST_SAMPLES) -> Json:
    """Return the aggregation of percentiles: hdr with 2 digits, each value within 0.8 %.

    The server takes the rank round(p n), which is one below the nearest rank ceil(p n) of every second window. So percentiles
    above p are asked for, too: of up to `most` samples one of them has the nearest rank, and tables.percent_key says which. They
    lie above p by (100 - p) / 2.9^k, rounded to three digits: short numbers, of which each step is short enough (3) to miss no
    rank. The median needs none: a half of n is exact, and rounded up.
    """
    above = {
        round(percent + float(f"{(100 - percent) * RATIO**-step:.3g}"), 12)
        for percent in percents
        for step in steps(percent, most)
    }
    return {"percentiles": {"field": "latency.histogram", "percents": sorted({*map(float, percents), *above}), "hdr": HDR}}


def windows(target: int, aggs: Mapping[str, Any]) -> Json:
    """Return the aggregation over time in about `target` windows that Kibana chooses."""
    return {"date_histogram": {"field": "@timestamp", "interval": {"%autointerval%": target}}, "aggs": dict(aggs)}


def samples() -> Json:
    """Return the number of I/Os: a sum, as the server counts documents."""
    return {"sum": {"field": "latency.count"}}


def highest(field: str) -> Json:
    """Return the maximum of a field."""
    return {"max": {"field": field}}


def tops() -> Json:
    """Return the parts of a maximum: the largest known value, and the value that the highest bin reports."""
    return {"max": highest("latency.max"), "top": highest("latency.histogram")}


def extremes() -> Json:
    """Return the parts of a maximum, and the least known value: no percentile lies beyond them."""
    return {**tops(), "least": {"min": {"field": "latency.min"}}}


def over_time(percents: Sequence[float] = PERCENTS) -> Json:
    """Return what percentiles over time and the surface need: each window and all of them together."""
    each = {"n": samples(), **extremes()}
    over_time = windows(HDR_WINDOWS, {**each, "p": ranks(percents)})
    return {**each, "p": ranks(percents, MOST_OF_RUN), "over_time": over_time}


def heat(target: int = HEAT_WINDOWS, an_octave: int = ROWS) -> Json:
    """Return what a heat map with its percentile line needs."""
    each = {"n": samples(), **extremes(), "p": ranks(), "latency": latency_rows(an_octave)}
    return {"n": samples(), "over_time": windows(target, each)}


def by_host(target: int = ROW_WINDOWS) -> Json:
    """Return the numbers of each host over time: the largest of its windows, exact, nothing is merged."""
    largest = {name: highest(f"latency.{name}") for name in NUMBERS}
    inner = {"worst": highest("latency.histogram"), "over_time": windows(target, {"n": samples(), **tops(), **largest})}
    host = {"field": "host.name", "missing": "-", "size": HOSTS, "order": {"worst": "desc"}}
    return {"hosts": {"terms": host, "aggs": inner}, "named": {"cardinality": {"field": "host.name"}}}


def by_thread(target: int = ROW_WINDOWS) -> Json:
    """Return the highest bin of each thread over time: the worst logs, and of each its worst threads.

    Not `multi_terms`: it is no part of the server's core, and was never recorded.
    """
    worst = highest("latency.histogram")
    inner: Json = {"over_time": windows(target, {"n": samples(), **tops()})}
    for label in reversed(THREAD):
        terms = {"field": PATHS[label], "missing": "-", "size": PARTS[label], "order": {"worst": "desc"}}
        inner = {label: {"terms": terms, "aggs": {"worst": worst, **inner}}}
    sources = {"field": "source.id", "size": SOURCES, "order": {"worst": "desc"}}
    return {"sources": {"terms": sources, "aggs": {"worst": worst, **inner}}, "named": {"cardinality": {"field": "source.id"}}}


def curve() -> Json:
    """Return what a distribution needs: samples by latency, in rows as narrow as fio's bins, and the known extremes."""
    extremes = {"least": {"min": {"field": "latency.min"}}, "max": highest("latency.max")}
    return {"n": samples(), **extremes, "latency": latency_rows(NARROW_ROWS)}


def distribution() -> Json:
    """Return the distribution of each operation."""
    return {"operations": {"terms": {"field": "operation", "missing": "-", "size": OPERATIONS}, "aggs": curve()}}


def offset_rows() -> Json:
    """Return the aggregation that counts events by their offset within the second."""
    tall = SECOND_NS // OFFSET_ROWS
    ranges = [{"from": low, "to": low + tall} for low in range(0, SECOND_NS, tall)]
    return {"range": {"field": "offset.histogram", "ranges": ranges}}


def offsets(target: int = 120) -> Json:
    """Return what a map of offsets needs: columns of whole seconds, those of events that were reported late beside them."""
    events = {"sum": {"field": "offset.count"}}
    late = {"filter": {"term": {"segment": 1}}, "aggs": {"n": events}}
    return {"over_time": windows(target, {"n": events, "late": late, "offsets": offset_rows()})}


def body(
    where: Mapping[str, Any],
    inner: Mapping[str, Any],
    runs: int = 1,
    kinds: int = 1,
    only: Sequence[str] = (),
    measured: str = "latency",
    *,
    by_layer: bool = False,
) -> Json:
    """Return the request: what is read, `runs` runs, the preferred `kinds` kinds of each, and what is asked of them.

    With `by_layer` so many kinds of each layer of a run.

    Where both levels of rollups are named, `inner` is asked of each: `coarse` of overviews, `fine` of what is stored in the last
    minutes of the time range. tools.kibana.tables takes the fine one where it lacks nothing.
    """
    both = where.keys() >= {OVERVIEW, STORED}
    levels = _levels() if both else {}
    terms: list[Json] = [
        {"term": {field: value}} for field, value in where.items() if not both or field not in (OVERVIEW, STORED)
    ]
    if both:
        terms.append(any_of(list(levels.values())))
    terms.append({"range": {f"{measured}.count": {"gt": 0}}})  # a reload may leave rollups of windows that lost all samples
    if only:
        terms.append({"terms": {"kind": list(only)}})
    kind = {"field": "kind", "missing": "-", "size": kinds, "order": {"preference": "desc"}, "collect_mode": "breadth_first"}
    layouts = {"terms": {"field": f"{measured}.layout", "size": 2}}
    began = _began(where)
    order = [{name: "desc"} for name in began]
    run = {"field": "run.id", "size": runs, "shard_size": runs + 4, "order": order, "collect_mode": "breadth_first"}
    facts = {"step": highest(step_field(where))}
    if "rollup.scope" in where:
        facts["lacking"] = {"filter": {"term": {"rollup.complete": False}}, "aggs": {"n": samples()}}
    asked = {**facts, **inner}
    if both:
        asked = {name: {"filter": level, "aggs": {"n": samples(), **asked}} for name, level in levels.items()}
    of_kind = {"preference": highest("kind_preference"), "layouts": layouts, **asked}
    inside: Json = {"kinds": {"terms": kind, "aggs": of_kind}}
    if by_layer:
        inside = {layer: {"filter": query, "aggs": inside} for layer, query in _layers().items()}
    if "rollup.scope" in where:
        inside["failed"] = failed(both=both)
    of_runs = {"terms": run, "aggs": {**began, **inside}}
    picked = {"filter": {"bool": {"filter": terms}}, "aggs": {"runs": of_runs, "names": {"cardinality": {"field": "run.id"}}}}
    target = _target(inner)
    return {"size": 0, "aggs": {"picked": picked, **({"clock": _clock(target)} if target else {})}}


def failed(*, both: bool) -> Json:
    """Return the aggregation of how many operations failed: their kinds are below all others, and each counts all of them."""
    below: Json = {"range": {"kind_preference": {"lt": FAILED_BELOW}}}
    counted = {"n": samples(), "kinds": {"cardinality": {"field": "kind"}}}
    return {"filter": {"bool": {"filter": [below, {"term": {OVERVIEW: True}}]}} if both else below, "aggs": counted}


def _began(where: Mapping[str, Any]) -> Json:
    """Return the aggregations of when a run began: as stored, alike on all shards and for any time range; then its first window.

    Only rollups have it stored, those of before version 7 of the templates neither.
    """
    stored = {"start": highest("run.start")} if "rollup.scope" in where else {}
    return {**stored, "began": {"min": {"field": "@timestamp"}}}


def _target(asked: Any) -> int:
    """Return the number of windows that an aggregation or one in it is divided into, 0 for none."""
    if not isinstance(asked, Mapping):
        return 0
    return int(asked.get("%autointerval%", 0)) or max((_target(inner) for inner in asked.values()), default=0)


def _clock(target: int) -> Json:
    """Return the aggregation that tells the width of windows, also where all that there is lies in one of them."""
    ends = {end: {"%timefilter%": end} for end in ("min", "max")}
    windows = {"field": "@timestamp", "interval": {"%autointerval%": target}, "extended_bounds": ends}
    return {"filter": shown_time(), "aggs": {"windows": {"date_histogram": windows}}}


def _levels() -> dict[str, Json]:
    """Return the queries of the two levels of rollups."""
    since = {"%timefilter%": "max", "shift": -FINE_MINUTES, "unit": "minute"}
    recent = {"range": {"@timestamp": {"gte": since, "format": "epoch_millis"}}}
    return {"coarse": {"term": {OVERVIEW: True}}, "fine": {"bool": {"filter": [{"term": {STORED: True}}, recent]}}}


def _layers() -> dict[str, Json]:
    """Return the query of each layer: a kind of a lower one begins with its name, the client's is bare."""
    below = {layer: {"prefix": {"kind": in_layer("", layer)}} for layer in LAYERS if layer != CLIENT}
    return {CLIENT: {"bool": {"must_not": list(below.values())}}, **below}


def step_field(where: Mapping[str, Any]) -> str:
    """Return the field with the width of the windows that are read."""
    return "rollup.step_ms" if "rollup.scope" in where else "interval.step_ms"


def shown_time() -> Json:
    """Return the query for what lies in the time range."""
    return {"range": {"@timestamp": {"%timefilter%": True}}}


def beside(prefix: str, indices: Sequence[str], asked: Json, names: Sequence[str], told: Json, *others: Json) -> Json:
    """Return the `url` of a Vega data entry that is also told of what was found, promised or noted: as hits, in one search.

    Such documents have no host, operation or kind: Kibana's filters would empty them, so these are of all others alone. They have
    one of the fields `names`, and overlap the time range. `told` is which columns of them, in which order and how many.
    """
    filters = {name: [f"%dashboard_context-{name}_clause%"] for name in ("must", "filter", "must_not")}
    measured = {"bool": {**filters, "filter": [*filters["filter"], shown_time()]}}
    those = any_of([{"exists": {"field": name}} for name in names])
    query = any_of([measured, {"bool": {"filter": [those, overlapping("episode.end", *others)]}}])
    first, *more = indices
    return {
        "index": ",".join([f"{prefix}-{first}-*", *(f"{prefix}-{name}*" for name in more)]),
        "body": {**asked, **told, "query": query, "post_filter": those},
    }


def any_of(queries: Sequence[Json]) -> Json:
    """Return the query for what one of several asks for."""
    return {"bool": {"should": list(queries), "minimum_should_match": 1}}


def overlapping(end: str, *others: Json) -> Json:
    """Return the query for documents that have a part in the time range, or begin before its end and are what `others` ask for.

    Those that last have an `end` in ms.
    """
    edge = {name: {"%timefilter%": name} for name in ("min", "max")}
    since = [{"range": {field: {"gte": edge["min"], "format": "epoch_millis"}}} for field in ("@timestamp", end)]
    until = {"range": {"@timestamp": {"lte": edge["max"], "format": "epoch_millis"}}}
    return {"bool": {"filter": [until, any_of([*since, *others])]}}


def marked(prefix: str, index: str, asked: Json) -> Json:
    """Return the `url` of a picture: also annotations, those without an end, then those that lasted longest; then objectives.

    What came of an objective has the time of all that was judged, so it is there wherever a part of that is shown. Stores of
    earlier versions have the episodes alone.
    """
    promised = {"objective.threshold_ns": {"order": "asc", "missing": "_first", "unmapped_type": "long"}}
    lasted = {"mark.duration_ns": {"order": "desc", "missing": "_first", "unmapped_type": "long"}}
    columns = ["run.id", "kind", "mark.at_ns", "mark.duration_ns", "text", "objective.percentile", "objective.threshold_ns"]
    told = {"size": 1000, "_source": columns, "sort": [promised, lasted, {"@timestamp": "asc"}]}
    names = ("mark.at_ns", "objective.threshold_ns")
    lasting = {"exists": {"field": "mark.duration_ns"}}  # of a mark the end is told in ns alone
    return beside(prefix, (index, "marks", "episodes"), asked, names, told, lasting)


def url(prefix: str, index: str, asked: Mapping[str, Any]) -> Json:
    """Return the `url` of a Vega data entry: Kibana adds the time range and the dashboard's filters."""
    return {"index": f"{prefix}-{index}-*", "%context%": True, "%timefield%": "@timestamp", "body": dict(asked)}
