"""Prometheus histograms: expositions, answers of the query API, `promtool tsdb dump`; classic and, over HTTP, native ones.

    op_latency_seconds_bucket{host="h1",op="read",le="0.001"} 38 [stamp]
    {__name__="op_latency_seconds_bucket", op="read", le="0.001"} 38 1795329818508
    op_latency_seconds_bucket{op="read",vmrange="8.799e-03...1.000e-02"} 50      (VictoriaMetrics: of this range alone)
    {__name__="op_latency_seconds"} {count:10, sum:2.5, (0.0005,0.0007]:4, (0.0014,0.002]:6} 1795329818508
    {"status":"success","data":{"resultType":"matrix","result":[{"metric":{..., "le":"0.001"},"values":[[1795329818.508,"38"]]}]}}

Counts are of all samples up to `le`, since the start of the process. A stamp in an exposition is in ms (in OpenMetrics, which
ends with `# EOF`, in s); without one the scrape is as old as the file, and began at `_created` or `process_start_time_seconds`.
Native buckets are [rule, left, right, count] of base 2^(2^-schema), whose edges tell the schema, or between custom bounds: the
first of them then begins at -Inf, and empty ones are left out.

Source: prometheus/docs exposition formats and HTTP API, prometheus/prometheus model/histogram; checked against recorded answers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ingest.core.intervals import Int
from ingest.core.layout import LEAST_SCALE, MOST_SCALE, Exponential, Layout
from ingest.core.units import UNITS_NS
from ingest.read.context import Context
from ingest.read.format_names import PROMETHEUS
from ingest.read.plugins.otlp import NO_SUM, series_of
from ingest.read.polls import (
    BELOW_ZERO,
    Lost,
    Poll,
    Polls,
    WrongError,
    between_edges,
    count,
    documents_of,
    end_ns,
    lines_of,
    polled,
    sparse,
    whole,
    word,
)
from ingest.read.text import changed_ns, decimal_of

NOTHING = "holds no histogram of latencies: ask for NAME_bucket[1h], or for a native histogram, not for rate() or a quantile"
SAMPLE = re.compile(
    r"""^\s*(?P<name>[A-Za-z_:][\w:]*)?\s*(?:\{(?P<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?\s+"""
    r"""(?P<value>[-+.\w]+|\{count:[^}]*\})(?:\s+(?P<stamp>-?[0-9.eE+]+))?\s*(?:\#.*)?$"""
)
LABEL = re.compile(r'([A-Za-z_][\w.]*|"(?:[^"\\]|\\.)*")\s*=\s*"((?:[^"\\]|\\.)*)"')
RANGE = re.compile(r"([\[(])([-+.\w]+),([-+.\w]+)([\])]):([-+.\w]+)")
RULES = {"(]": 0, "[)": 1, "()": 2, "[]": 3}
ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
LE, RANGED, TO = "le", "vmrange", "..."
BUCKET, COUNT, CREATED, PROCESS_START = "_bucket", "_count", "_created", "process_start_time_seconds"
ENDINGS = {"seconds": "s", "milliseconds": "ms", "ms": "ms", "microseconds": "us", "us": "us", "nanoseconds": "ns", "ns": "ns"}
ABOVE_ALL = 1 << 61  # ns: what ends there or later has no end
INFINITE = ("+inf", "inf", "-inf")
FRACTIONS = "counts that are no whole numbers, as of rate(): ask for the buckets themselves, as in NAME_bucket[1h]"
NO_START = "a scrape without time stamps, and nothing says when its process began: dump the series with promtool, or query them"
ANSWERS = re.compile(rb'\[*\s*(\{(?!__name__)[^}]*"|\{?\s*$)')  # not `{__name__=` of a dump
CLOSED, LEFT_OPEN = 3, 0
EXACT = 1e-6


@dataclass(slots=True)
class _Scrape:
    """The buckets of one series and time: counts up to each `le`, as text, and the line of the first."""

    line: int
    counts: dict[str, str] = field(default_factory=dict)


Key = tuple[tuple[tuple[str, str], ...], int]


def looks_like_prometheus(_: Path, start: bytes) -> bool:
    """Return whether a file begins like one of the three forms, with buckets in it."""
    text = start.decode("utf-8", "replace")
    if text.lstrip().startswith(("{", "[")) and '"resultType"' in text:
        return any(word in text for word in ('"le"', '"vmrange"', '"histograms"'))
    return bool(re.search(r'(?m)^\s*(\w+_bucket\{[^\n]*(le|vmrange)="|\{__name__="[^"\n]+")', text))


def read(path: Path, context: Context, held: Polls) -> None:
    """Add the histograms of a file to `held`; what cannot be read is rejected with its reason."""
    lines = list(lines_of(path, context))
    first = next((line for _, line, _ in lines if line.strip()), b"").lstrip()
    if ANSWERS.match(first):
        take_answers(list(documents_of(lines, context.account)), context, held)
    else:
        take(lines, context, held, asked_ns=changed_ns(path), dated=False)


def take(
    lines: Sequence[tuple[int, bytes, bool]], context: Context, held: Polls, *, asked_ns: int, dated: bool, host: str = ""
) -> None:
    """Add the buckets of an exposition, or of a dump, to `held`; samples without a time are of `asked_ns`.

    Unless it is `dated`, such a scrape stands alone: it has to say when counting began. `host` is that of labels without one.
    """
    open_metrics = any(line.strip() == b"# EOF" for _, line, _ in lines)
    scrapes, of_all = dict[Key, _Scrape](), dict[Key, str]()
    created: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
    process: int | None = None
    for line, labels, value, stamp in _parsed(lines, context):
        name = labels["__name__"]
        try:
            if name == PROCESS_START:
                process = end_ns(value, UNITS_NS["s"])
            elif name.endswith(CREATED):
                created[name.removesuffix(CREATED), _owner(labels)] = end_ns(value, UNITS_NS["s"])
            elif value.startswith("{") and stamp:
                times = None, end_ns(stamp, UNITS_NS["ms"])
                _add(line, name, dict(_owner(labels)), times, partial(_native, _of_text(value)), context, held)
            elif (name.endswith(BUCKET) and _edge(labels)) or name.endswith(COUNT):
                unit = "s" if open_metrics and labels.get("\0plain") else "ms"
                end = end_ns(stamp, UNITS_NS[unit]) if stamp else -1
                if name.endswith(COUNT):
                    of_all[_owner(labels, name.removesuffix(COUNT) + BUCKET), end] = value
                else:
                    _put(scrapes, (_owner(labels, name), end), line, _edge(labels), value)
        except WrongError as error:
            context.account.reject(str(error), [line])
    for (owner, end), scrape in scrapes.items():
        labels = dict(owner)
        name = labels.pop("__name__").removesuffix(BUCKET)
        start = created.get((name, _owner(labels)), process)
        own = {"host": host, **labels} if host and not labels.get("instance") else labels
        lone = not dated and end == -1 and start is None
        told = partial(_classic, scrape.counts, of_all.get((owner, end)), lacks_start=lone)
        _add(scrape.line, name, own, (start, asked_ns if end == -1 else end), told, context, held)


def _edge(labels: Mapping[str, str]) -> str:
    """Return what tells a bucket from others of its series: its upper edge, or its range."""
    return labels.get(LE) or labels.get(RANGED, "")


def _owner(labels: Mapping[str, str], name: str = "") -> tuple[tuple[str, str], ...]:
    kept = {key: value for key, value in labels.items() if key not in (LE, RANGED, "__name__", "\0plain")}
    return tuple(sorted({**kept, "__name__": name}.items() if name else kept.items()))


def _put(scrapes: dict[Key, _Scrape], key: Key, line: int, edge: str, value: str) -> None:
    if scrapes.setdefault(key, _Scrape(line)).counts.setdefault(edge, value) != value:
        raise WrongError("two counts of one bucket and time")


def _parsed(lines: Sequence[tuple[int, bytes, bool]], context: Context) -> Iterator[tuple[int, Mapping[str, str], str, str]]:
    """Yield the samples: line, labels, value and stamp."""
    for number, line, _ in lines:
        text = line.decode("utf-8", "replace").strip()
        if not text or text.startswith("#"):
            continue
        match = SAMPLE.match(text)
        labels = {} if match is None else {name.strip('"'): _plain(value) for name, value in LABEL.findall(match["labels"] or "")}
        if match is None or not (match["name"] or labels.get("__name__")):
            context.account.reject("not a sample", [number])
            continue
        own = {"__name__": match["name"], "\0plain": "1"} if match["name"] else {}
        yield number, {**labels, **own}, match["value"], match["stamp"] or ""


def _plain(text: str) -> str:
    return re.sub(r"\\.", lambda match: ESCAPES.get(match[0], match[0]), text)


def _add(
    line: int,
    name: str,
    labels: Mapping[str, str],
    times: tuple[int | None, int],
    told: Callable[[int], tuple[Layout, Int, Int]],
    context: Context,
    held: Polls,
) -> None:
    """Add the histogram of one series and time, which is `told` for so many ns a unit."""
    unit_ns = _unit(name, context)
    if unit_ns is None:
        context.account.skip("not a latency by its name: its unit is no unit of time (--recorded-unit says which it is)", 1)
        return
    series = series_of(context.series, name, labels)
    try:
        held.add(Poll(line, series, times[0], times[1], *told(unit_ns), total=True))
    except WrongError as error:
        held.reject(str(error), line, Lost(series, *times, total=True))


def _unit(name: str, context: Context) -> int | None:
    words = [word for word in name.lower().split("_") if word in ENDINGS]
    return UNITS_NS[ENDINGS[words[-1]]] if words else context.recorded_unit_ns


def _classic(told: Mapping[str, str], of_all: str | None, unit_ns: int, *, lacks_start: bool = False) -> tuple[Layout, Int, Int]:
    """Return the layout of buckets, the bins that hold samples and their counts.

    `of_all` is what the tool says that it counted, None where it does not. WrongError where that is another number, and where
    counting began nobody knows.
    """
    if lacks_start:
        raise WrongError(NO_START)
    if any(TO in edge for edge in told):
        halves = ((edge.partition(TO), number) for edge, number in told.items() if TO in edge)
        ranges = [(_bound(left), _bound(right), _count(number)) for (left, _, right), number in halves]
        if len(ranges) < len(told) or (of_all is not None and _count(of_all) != sum(number for *_, number in ranges)):
            raise WrongError(NO_SUM)
        return _ranges(ranges, unit_ns)
    top = [edge for edge in told if edge.lower() in ("+inf", "inf")]
    if not top:
        raise WrongError("buckets without le=+Inf: not all of a histogram")
    edges = sorted((Decimal(_number(edge)), edge) for edge in told if edge not in top)
    upto = [_count(told[edge]) for _, edge in edges] + [_count(told[top[0]])]
    counts = [high - low for low, high in pairwise([0, *upto])]
    if min(counts) < 0:
        raise WrongError("counts up to an edge that fall")
    if of_all is not None and _count(of_all) != upto[-1]:
        raise WrongError(NO_SUM)
    ends = [end_ns(edge, unit_ns) for edge, _ in edges]
    layout, places = between_edges(ends, counts, is_open=True)
    return layout, *sparse(places, counts)


def _ranges(ranges: Sequence[tuple[Any, Any, int]], unit_ns: int) -> tuple[Layout, Int, Int]:
    """Return the layout, bins and counts of buckets (lower, upper], of which empty ones are left out."""
    if any(not right > max(left, 0) for left, right, number in ranges if number):
        raise WrongError(BELOW_ZERO)
    found = [(end_ns(left, unit_ns), end_ns(right, unit_ns), number) for left, right, number in ranges]
    by_end = {end: 0 for left, right, _ in found for end in (left, right) if 0 < end < ABOVE_ALL}
    for _, right, number in found:
        if right in by_end:
            by_end[right] += number
    above = sum(number for _, right, number in found if right >= ABOVE_ALL)
    ends = sorted(by_end)
    counts = [by_end[end] for end in ends] + ([above] if above else [])
    layout, places = between_edges(ends, counts, is_open=bool(above))
    return layout, *sparse(places, counts)


def _bound(text: str) -> Decimal:
    return Decimal(text if text.lower() in INFINITE else _number(text))


def _number(text: str) -> str:
    try:
        if decimal_of(text).is_finite():
            return text
    except ArithmeticError:
        pass
    raise WrongError(f"{text[:40]!r} is no edge")


def _count(text: Any) -> int:
    try:
        return count(text)
    except WrongError:
        raise WrongError(FRACTIONS) from None


def take_answers(documents: Sequence[tuple[int, Any]], context: Context, held: Polls) -> None:
    """Add the series of answers of the query API, with their lines, to `held`."""
    scrapes, of_all = dict[Key, _Scrape](), dict[Key, str]()
    for number, document in documents:
        data = document.get("data") if isinstance(document, dict) else None
        result = data.get("result") if isinstance(data, dict) else None
        for entry in result if isinstance(result, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("metric"), dict):
                _series(entry, number, (scrapes, of_all), context, held)
    for (owner, stamp), scrape in scrapes.items():
        labels = dict(owner)
        name = labels.pop("__name__", "").removesuffix(BUCKET)
        told = partial(_classic, scrape.counts, of_all.get((owner, stamp)))
        _add(scrape.line, name, labels, (None, stamp), told, context, held)


def _series(
    entry: Mapping[str, Any], line: int, told: tuple[dict[Key, _Scrape], dict[Key, str]], context: Context, held: Polls
) -> None:
    """Add a series of an answer: its native histograms to `held`, buckets and counts of all to the two of `told`."""
    scrapes, of_all = told
    try:
        labels = {key: word(value) for key, value in entry["metric"].items()}
        name = labels.get("__name__", "")
        owner = _owner(labels, name) if name else _owner(labels)
        if edge := _edge(labels):
            for stamp, value in _pairs(entry, "values", "value"):
                _put(scrapes, (owner, end_ns(stamp, UNITS_NS["s"])), line, edge, str(value))
        elif name.endswith(COUNT):
            buckets = _owner(labels, name.removesuffix(COUNT) + BUCKET)
            for stamp, value in _pairs(entry, "values", "value"):
                of_all[buckets, end_ns(stamp, UNITS_NS["s"])] = str(value)
        for stamp, histogram in _pairs(entry, "histograms", "histogram"):
            times = None, end_ns(stamp, UNITS_NS["s"])
            _add(line, name, dict(_owner(labels)), times, partial(_native, histogram), context, held)
    except WrongError as error:
        context.account.reject(str(error), [line])


def _of_text(text: str) -> dict[str, Any]:
    """Return a native histogram of a dump, `{count:10, sum:2.51, [-1e-06,1e-06]:1, (0.5,0.7]:9}`, as the query API gives it."""
    match = re.search(r"count:([-+.\w]+)", text)
    buckets = [[RULES[opening + closing], left, right, number] for opening, left, right, closing, number in RANGE.findall(text)]
    return {"count": match[1] if match else "", "buckets": buckets}


def _pairs(entry: Mapping[str, Any], many: str, single: str) -> Iterator[tuple[Any, Any]]:
    listed = entry.get(many)
    for pair in listed if isinstance(listed, list) else [entry.get(single)]:
        if isinstance(pair, list) and len(pair) == 2:
            yield pair[0], pair[1]


def _native(histogram: Any, unit_ns: int) -> tuple[Layout, Int, Int]:
    """Return the layout of native buckets (of custom bounds: of these), the bins that hold samples and their counts."""
    buckets = histogram.get("buckets") or [] if isinstance(histogram, dict) else None
    if not isinstance(buckets, list) or not all(isinstance(one, list) and len(one) == 4 for one in buckets):
        raise WrongError("no list of buckets")
    edges = [(whole(rule), _float(left), _float(right), _count(number)) for rule, left, right, number in buckets]
    if sum(number for *_, number in edges) != _count(histogram.get("count", "0")):
        raise WrongError(NO_SUM)
    if any(right <= 0 for _, _, right, number in edges if number):
        raise WrongError(BELOW_ZERO)
    if any(math.isinf(edge) for _, left, right, _ in edges for edge in (left, right)):
        return _ranges([(left, right, number) for _, left, right, number in edges], unit_ns)
    scales = {_scale(left, right) for rule, left, right, _ in edges if rule == LEFT_OPEN and left > 0}
    if len(scales) > 1 or None in scales:
        return _ranges([(left, right, number) for _, left, right, number in edges], unit_ns)
    scale = next(iter(scales), None)
    exponential = Exponential(MOST_SCALE if scale is None else scale, unit_ns)
    numbers = [round(math.log2(right) * 2.0**exponential.scale) - 1 for _, left, right, _ in edges if left > 0]
    near = exponential.index(np.array([end_ns(right, unit_ns) for _, left, right, _ in edges if left <= 0], np.int64))
    places = np.concatenate([near, exponential.places(np.array(numbers, np.int64))])
    ordered = [number for _, left, _, number in edges if left <= 0] + [number for _, left, _, number in edges if left > 0]
    return exponential, *sparse(places, ordered)


def _float(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise WrongError(f"{str(value)[:40]!r} is no edge") from None
    if math.isnan(number):
        raise WrongError("a bucket without an end")
    return number


def _scale(left: float, right: float) -> int | None:
    """Return the schema of a bucket, None where its edges are of none."""
    octaves = math.log2(right / left) if right > left else 0.0
    scale = -math.log2(octaves) if octaves > 0 else math.inf
    if not LEAST_SCALE - EXACT <= scale <= MOST_SCALE + EXACT or abs(scale - round(scale)) > EXACT:
        return None
    return round(scale)


READER = polled(PROMETHEUS, read, NOTHING, accepts=looks_like_prometheus, names_series=True)
