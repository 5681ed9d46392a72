"""The rule for how much a panel may ask for, and how many buckets a request makes at worst.

A server refuses more than 65,536 buckets (`search.max_buckets`). HDR histograms, one in each bucket, are counted by no circuit
breaker: 2,000 with 3 digits are about a GB, with the 2 digits of our panels an eighth of it, so a panel makes at most 1,200.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ingest.core.breaths import CELLS
from tools.kibana.asked_lens import BAR_TARGET
from tools.kibana.lint.objects import Objects, Problem
from tools.kibana.lint.trees import kind_of, subs

MOST_BUCKETS, MOST_HDR = 65_536, 1200
WIDENED = 7
FIXED_WINDOWS = 5000
AUTO_WINDOWS = BAR_TARGET + 2
UNASKED = 10
METRICS = frozenset({"max", "min", "sum", "avg", "cardinality", "value_count"})
LARGEST = {"breath.cells": CELLS - 1}
RANKED = frozenset({"percentiles", "percentile_ranks"})


@dataclass(frozen=True, slots=True)
class Buckets:
    """How many buckets a request makes at worst, and how many HDR histograms."""

    all: int
    hdr: int

    def __add__(self, other: Buckets) -> Buckets:
        """Return both together."""
        return Buckets(self.all + other.all, self.hdr + other.hdr)


def budget(objects: Objects) -> Iterator[Problem]:
    """Yield searches that may make too many buckets or HDR histograms."""
    for read in objects.reads():
        try:
            made = buckets(read.body.get("aggs", {}))
        except ValueError as error:
            yield read.panel, str(error)
            continue
        if made.all > MOST_BUCKETS:
            yield read.panel, f"{made.all:,} buckets at worst, more than {MOST_BUCKETS:,}"
        if made.hdr > MOST_HDR:
            yield read.panel, f"{made.hdr:,} HDR histograms at worst, more than {MOST_HDR:,}"


def buckets(aggs: Mapping[str, Any], windows: int = FIXED_WINDOWS, parents: int = 1) -> Buckets:
    """Return what aggregations make at worst; `windows` is how many buckets a date_histogram of a fixed interval has at most.

    ValueError for an aggregation of which the number of buckets is not known.
    """
    made = Buckets(0, 0)
    for aggregation in aggs.values():
        kind = kind_of(aggregation)
        if kind in RANKED:
            made += Buckets(0, parents if "hdr" in aggregation[kind] else 0)
            continue
        own = _own(kind, aggregation[kind], windows)
        if kind not in METRICS:
            inside = parents * own
            made += Buckets(0 if kind == "filter" else inside, 0) + buckets(subs(aggregation), windows, inside)
    return made


def _own(kind: str, body: Mapping[str, Any], windows: int) -> int:
    """Return how many buckets an aggregation makes of one."""
    if kind == "filter" or kind in METRICS:
        return 1
    if kind in ("terms", "composite"):
        return int(body.get("size", UNASKED))
    if kind in ("range", "filters"):
        return len(body["ranges" if kind == "range" else "filters"])
    if kind == "histogram" and body["field"] in LARGEST:
        return int(LARGEST[body["field"]] // body["interval"]) + 1
    if kind == "date_histogram":
        interval = body.get("interval")
        if isinstance(interval, Mapping):
            target = interval.get("%autointerval%", BAR_TARGET)
            return WIDENED * (BAR_TARGET if target is True else int(target))
        return AUTO_WINDOWS if interval == "auto" else windows
    raise ValueError(f"the number of buckets of {kind} cannot be determined")
