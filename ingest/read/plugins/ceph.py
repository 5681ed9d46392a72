"""Ceph's own histograms: `ceph daemon osd.N perf histogram dump -f json`, polled, a document each.

    {"sampled_at": 1795330000.0, "host": "ceph1", "daemon": "osd.3", "dump": {"osd": {"op_w_latency_in_bytes_histogram": {
      "axes": [{"name": "Latency (usec)", "ranges": [{"max": -1}, {"min": 0, "max": 99999}, ..., {"min": 53687091200000}]},
               {"name": "Request size (bytes)", ...}], "values": [[32 counts by size], ... 32 rows by latency]}}}}

The axis of latencies is found by its name, and the counts of all others are added up. It says usec and holds nanoseconds,
unless a `unit` says otherwise. Ranges are inclusive whole numbers; counts are since the start of the daemon, or `perf reset`. Of
operations that read and write those by size of what came in are taken: those by what went out are the same operations.

Source: Ceph's perf_histogram.h and doc/dev/perf_histograms.rst; synthetic polls only, no cluster was at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ingest.core.intervals import Int
from ingest.core.labels import SERVICE, in_layer
from ingest.core.layout import Layout
from ingest.core.units import UNITS_NS, iso_ns
from ingest.read.context import Context
from ingest.read.format_names import CEPH
from ingest.read.polls import Lost, Poll, Polls, WrongError, between_edges, end_ns, objects_of, polled, sparse, whole, word

KIND = in_layer("service", SERVICE)
OPS = {"op_r_": "read", "op_w_": "write", "op_rw_": "read and write"}
TWICE = "op_rw_latency_out_"
UNITS = {"nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms", "seconds": "s"}
LATENCY = ("latency", "duration", "usec")


def read(path: Path, context: Context, held: Polls) -> None:
    """Add the histograms of a file to `held`; those of other things than latencies are skipped."""
    for line, entry in objects_of(path, context):
        try:
            if (said := entry.get("sampled_at")) is None:
                raise WrongError("a poll without sampled_at: the time it was made, in epoch s or ISO 8601")
            stamp = iso_ns(said) if isinstance(said, str) else None
            end = end_ns(said, UNITS_NS["s"]) if stamp is None else stamp
            host, daemon = word(entry.get("host")), word(entry.get("daemon"))
            if not isinstance(entry.get("dump"), dict):
                raise WrongError("a poll without a dump")
        except WrongError as error:
            context.account.reject(str(error), [line])
            continue
        take(entry.get("dump"), line, end, host, daemon, context, held)


def take(dump: Any, line: int, end: int, host: str, daemon: str, context: Context, held: Polls) -> None:
    """Add the histograms of one dump to `held`: of a daemon on a host, asked at `end` in ns."""
    base = context.series
    for name, body in histograms(dump):
        op = next((word for prefix, word in OPS.items() if name.startswith(prefix)), name)
        series = base.replaced(host=base.host or host, volume=daemon, op=op, kind=KIND, tag=name.removesuffix("_histogram"))
        try:
            if name.startswith(TWICE):
                context.account.skip("operations that another histogram of the dump holds by another size", 1)
                continue
            histogram = _latencies(body)
            if histogram is None:
                context.account.skip("a histogram without an axis of latencies", 1)
                continue
            held.add(Poll(line, series, None, end, *histogram, total=True))
        except WrongError as error:
            held.reject(str(error), line, Lost(series, None, end, total=True))


def histograms(dump: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the names and bodies of the histograms of a dump."""
    for counters in dump.values() if isinstance(dump, dict) else ():
        for name, body in counters.items() if isinstance(counters, dict) else ():
            if isinstance(body, dict) and ("axes" in body or "values" in body):
                yield str(name), body


def _latencies(body: Mapping[str, Any]) -> tuple[Layout, Int, Int] | None:
    """Return the layout, bins and counts of a histogram by its axis of latencies, None where it has none."""
    axes = body.get("axes")
    if not isinstance(axes, list) or not all(isinstance(axis, dict) for axis in axes):
        raise WrongError("no list of axes")
    place = next((at for at, axis in enumerate(axes) if any(word in str(axis.get("name")).lower() for word in LATENCY)), None)
    if place is None:
        return None
    unit = UNITS_NS[UNITS.get(str(axes[place].get("unit")), "ns")]
    ranges = axes[place].get("ranges")
    if not isinstance(ranges, list) or not all(isinstance(one, dict) for one in ranges):
        raise WrongError("an axis without ranges")
    values = body.get("values")
    try:
        counts = np.array(values, np.int64)
    except (ValueError, TypeError, OverflowError):
        raise WrongError("counts that are no table of whole numbers") from None
    if counts.ndim != len(axes) or counts.shape[place] != len(ranges) or (counts < 0).any():
        raise WrongError("counts that do not fit its axes")
    sums = counts.sum(axis=tuple(at for at in range(counts.ndim) if at != place))
    is_open = "max" not in ranges[-1]
    ends = [(whole(one.get("max")) + 1) * unit - 1 for one in (ranges[:-1] if is_open else ranges)]
    layout, places = between_edges(ends, sums.tolist(), is_open=is_open)
    return layout, *sparse(places, sums)


READER = polled(CEPH, read, "holds no histogram of latencies: poll `ceph daemon osd.N perf histogram dump -f json`")
