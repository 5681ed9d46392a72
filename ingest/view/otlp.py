"""OpenTelemetry metrics, written: JSON lines as those of the Collector's file exporter, a histogram point a window and series.

    {"resourceMetrics": [{"resource": {"attributes": [host.name, tailboard.run]}, "scopeMetrics": [{"scope": {"name": ...},
      "metrics": [{"name": "tailboard.client.completion.duration", "unit": "s", "metadata": [tailboard.error, ...],
        "exponentialHistogram": {"aggregationTemporality": 1, "dataPoints": [{"startTimeUnixNano": "...", "scale": 5}]}}]}]}]}

Counts are those of a window alone (delta temporality). Layer and kind are in the name, as their samples are never added up.

- **Log-linear bins** go to exponential buckets, each count to the bucket that holds the highest value of its bin. The scale is
  the finest whose buckets are no narrower than the widest bins: a sample may lie below its bucket, by a bin's width at most.
- **Exponential bins** are written as they are, in their own unit and scale, **listed edges** as an explicit histogram: both
  exact.
- The bin from 0 on is the zero bucket; `zeroThreshold` is its highest value. `min`, `max`, `sum` stand where they are exact.

`metadata` of a metric states the error: `tailboard.error`, by how much a sample may lie below the end of its bucket, as a share
of itself; `tailboard.below_ppm` and `tailboard.below_ns`, by how much below its beginning, whichever is more. Our reader
(`read/plugins/otlp.py`) heeds them, so that its bounds are true.

Source: opentelemetry-proto's metrics.proto 1.3 (metadata); checked by reading back with protobuf's decoder.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

from ingest.core.intervals import Int, Intervals
from ingest.core.labels import Group, bare_kind, layer_of
from ingest.core.layout import LEAST_SCALE, MILLION, MOST_SCALE, Edges, Exponential, Layout, LogLinear, Mixed
from ingest.core.units import UNITS_NS, figure
from ingest.query.windows import in_own_layouts
from ingest.read.plugins.otlp import BELOW_NS, BELOW_PPM, DELTA, ERROR, HOST, KIND, PREFIX, RUN, SCOPE, SUFFIX

AT_ONCE = 1000  # points of a line: each is read whole
MOST_PPM = MILLION * MILLION
UNITS = ("s", "ms", "us", "ns")
SECOND = UNITS_NS["s"]
UNFIT = re.compile(r"[^A-Za-z0-9_./-]")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Written:
    """How the bins of a layout are written: as buckets of `target` in a unit; `error` as a share, None of listed edges."""

    target: Exponential | Edges
    unit: str
    error: Fraction

    @property
    def metadata(self) -> Json:
        """Return what the file says of the error; of listed edges nothing, as their bounds say all."""
        if isinstance(self.target, Edges):
            return {}
        return {ERROR: float(self.error), BELOW_PPM: self.target.below_ppm, BELOW_NS: self.target.below_ns}


@lru_cache(maxsize=64)
def written(layout: Layout) -> Written:
    """Return how a layout with bins is written."""
    if isinstance(layout, Edges):
        return Written(layout, "s", layout.error)
    if isinstance(layout, Exponential) and (unit := next((name for name in UNITS if UNITS_NS[name] == layout.unit_ns), "")):
        return Written(layout, unit, layout.error)
    width = layout.width if isinstance(layout, LogLinear) else Fraction(1, layout.octave)
    scale = math.floor(-math.log2(math.log2(1 + float(width))) + 1e-9)
    below = _below(layout, width if layout.reports != "upper" else (1 + width) ** 2 - 1)
    target = Exponential(max(LEAST_SCALE, min(MOST_SCALE, scale)), SECOND, *below)
    return Written(target, "s", target.error)


def _below(layout: Layout, share: Fraction) -> tuple[int, int]:
    """Return by how many ppm, or else ns, the lowest sample of a bin lies below its highest value."""
    bins = np.arange(layout.bins)
    bins = bins[~layout.opened(bins)]
    low, high = layout.lowest_of(bins), layout.upper[bins] - 1
    ppm = min(math.ceil(share * MILLION) + 1, MOST_PPM)  # one more than the share, so that no rounding takes a bin for a wide one
    wide = high > low * (1 + ppm / MILLION) * (1 - 1e-12)
    return ppm, int((high - low)[wide].max(initial=0))


def capped(windows: Intervals[Group]) -> int:
    """Return how many samples lie in an open last bin and cannot be said to do so: listed edges alone can say it."""
    layout = windows.layout
    if not layout.open_ended or isinstance(layout, Edges):
        return 0
    return int(windows.counts[layout.opened(windows.bins)].sum())


def lines(windows: Intervals[Group], names: Sequence[str]) -> Iterator[bytes]:
    """Yield lines with the windows that hold samples; `names` are the labels of their groups, `kind` among them.

    All must have bins, and times from 1970 on: the format cannot hold others.
    """
    if isinstance(windows.layout, Mixed):
        for own in in_own_layouts(windows):
            yield from _in_form(own, names)
    else:
        yield from _in_form(windows, names)


def _in_form(windows: Intervals[Group], names: Sequence[str]) -> Iterator[bytes]:
    """Yield the lines of windows in bins that their layout is written in."""
    form = written(windows.layout)
    target, point = form.target, _explicit
    if isinstance(target, Exponential):
        target, point = Exponential(target.scale, target.unit_ns), _exponential
    rows = windows.in_layout(target)
    labels = [dict(zip(names, key, strict=True)) for key in rows.table]
    filled = np.flatnonzero(rows.samples > 0)
    for begin in range(0, len(filled), AT_ONCE):
        owners: dict[tuple[str, str], dict[str, list[Json]]] = {}
        some = rows.take(filled[begin : begin + AT_ONCE])
        for row, samples in enumerate(some.samples.tolist()):
            own = labels[int(some.series[row])]
            kinds = owners.setdefault((own.get("host", ""), own.get("run", "")), {})
            kinds.setdefault(own["kind"], []).append({**_common(some, row, samples, own, form), **point(some, row)})
        said = []
        for (host, run), kinds in owners.items():
            metrics = [_metric(kind, points, form) for kind, points in kinds.items()]
            scopes = [{"scope": {"name": SCOPE}, "metrics": metrics}]
            said.append({"resource": {"attributes": _attributes({HOST: host, RUN: run})}, "scopeMetrics": scopes})
        yield orjson.dumps({"resourceMetrics": said}, option=orjson.OPT_APPEND_NEWLINE)


def _metric(kind: str, points: list[Json], form: Written) -> Json:
    layer, bare = layer_of(kind), bare_kind(kind)
    field = "histogram" if isinstance(form.target, Edges) else "exponentialHistogram"
    name = f"{PREFIX}{layer}.{UNFIT.sub('_', bare)}{SUFFIX}"
    metadata = {**form.metadata, **({KIND: kind} if UNFIT.search(bare) else {})}
    return {
        "name": name,
        "description": _description(layer, bare, form),
        "unit": form.unit,
        **({"metadata": _attributes(metadata)} if metadata else {}),
        field: {"aggregationTemporality": DELTA, "dataPoints": points},
    }


def _description(layer: str, kind: str, form: Written) -> str:
    """Return what is said of a metric in words: what was timed, and how far samples lie from the ends of their buckets."""
    if isinstance(form.target, Edges):
        return f"{kind} latency of the {layer} layer; counts are exact, buckets are those of the tool"
    error = f"{figure(100 * float(form.error))} %"
    short = f" (short ones by {form.target.below_ns} ns and the width of the bucket)" if form.target.below_ns else ""
    return (
        f"{kind} latency of the {layer} layer; counts are exact, samples lie at most {error}{short} below the end of their bucket"
    )


def _common(rows: Intervals[Group], row: int, samples: int, labels: dict[str, str], form: Written) -> Json:
    """Return what all points have: labels, times, count, and what is exact of the samples."""
    attributes = {name: value for name, value in labels.items() if name not in ("host", "run", "kind", "layer")}
    point: Json = {
        "attributes": _attributes(attributes),
        "startTimeUnixNano": str(int(rows.start_ns[row])),
        "timeUnixNano": str(int(rows.end_ns[row])),
        "count": str(samples),
    }
    exact, unit_ns = rows.exact, UNITS_NS[form.unit]
    if exact is not None:
        known = {"min": exact.known_min, "max": exact.known_max, "sum": exact.known_sum}  # none of which is where `known` is not
        point |= {name: int(getattr(exact, f"{name}_ns")[row]) / unit_ns for name, rows_of in known.items() if rows_of[row]}
    return point


def _exponential(rows: Intervals[Group], row: int) -> Json:
    """Return the buckets of a point: the bin from 0 on, and the others from the first to the last that holds samples."""
    layout = rows.layout
    assert isinstance(layout, Exponential)  # for mypy: `lines` has brought rows into it
    own = slice(int(rows.indptr[row]), int(rows.indptr[row + 1]))
    bins, counts = rows.bins[own], rows.counts[own]
    zero = int(counts[bins == 0].sum())
    numbers, held = layout.numbers(bins[bins > 0]), counts[bins > 0]
    buckets: Json = {}
    if len(numbers):
        dense = np.zeros(int(numbers[-1] - numbers[0]) + 1, np.int64)
        dense[numbers - numbers[0]] = held
        buckets = {"positive": {"offset": int(numbers[0]), "bucketCounts": list(map(str, dense.tolist()))}}
    threshold = {"zeroThreshold": (int(layout.edges[1]) - 1) / layout.unit_ns} if zero and layout.edges[1] > 1 else {}
    return {"scale": layout.scale, **({"zeroCount": str(zero)} if zero else {}), **threshold, **buckets}


def _explicit(rows: Intervals[Group], row: int) -> Json:
    """Return the bounds of a point, each the highest value of its bin, and their counts; the last has no bound."""
    layout = rows.layout
    own = slice(int(rows.indptr[row]), int(rows.indptr[row + 1]))
    ends: Int = layout.edges[1:-1] if layout.open_ended else layout.edges[1:]
    counts = np.zeros(len(ends) + 1, np.int64)
    counts[rows.bins[own]] = rows.counts[own]
    return {"explicitBounds": [(end - 1) / SECOND for end in ends.tolist()], "bucketCounts": list(map(str, counts.tolist()))}


def _attributes(values: dict[str, Any]) -> list[Json]:
    """Return the attributes that are not empty."""
    return [{"key": name, "value": _value(value)} for name, value in values.items() if value != ""]


def _value(value: Any) -> Json:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}
