"""Clauses of queries: by a run's rollups, by the values of a field, by time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ingest.core.intervals import Int
from ingest.core.series import OFFSET
from ingest.store.elastic.encoding import MS

MOST_RANGES = 64
YEARS_END = 10_000
HOLDS_SAMPLES = {"exists": {"field": "latency.layout"}}
LATENCIES = {"bool": {"must_not": [{"term": {"kind": OFFSET}}]}}

Filters = Sequence[Mapping[str, Any]]


def rollups_of(run: str, scope: str, step_ns: int) -> list[dict[str, Any]]:
    """Return the filters for the rollups of a run in one scope and step; 0 is the step of the whole run."""
    return [{"term": {"run.id": run}}, {"term": {"rollup.scope": scope}}, {"term": {"rollup.step_ms": step_ns // MS}}]


def at_step(step_ns: int) -> dict[str, Any]:
    """Return the filter for windows of one width: while a run is coarsened its documents are there in two."""
    return {"term": {"interval.step_ms": step_ns // MS}}


def one_of(field: str, values: Sequence[str]) -> dict[str, Any]:
    """Return a query for documents that have one of the values; empty text stands for none."""
    named = [value for value in values if value]
    clauses: list[dict[str, Any]] = [{"terms": {field: named}}] if named else []
    if len(named) < len(values):
        clauses.append({"bool": {"must_not": [{"exists": {"field": field}}]}})
    return any_of(clauses)


def any_of(clauses: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a query for documents that meet at least one clause."""
    return clauses[0] if len(clauses) == 1 else {"bool": {"should": list(clauses), "minimum_should_match": 1}}


def time_filters(begin_ns: int | None, end_ns: int | None, step_ns: int) -> list[dict[str, Any]]:
    """Return the filter for windows that start in [floor(begin), end)."""
    wanted: dict[str, int] = {}
    if begin_ns is not None:
        wanted["gte"] = (begin_ns // step_ns * step_ns if step_ns else begin_ns) // MS
    if end_ns is not None:
        wanted["lt"] = -(-end_ns // MS)
    return [_range(wanted)] if wanted else []


def slab_filter(slabs: Int, width_ns: int) -> dict[str, Any]:
    """Return a query for windows that start in time slabs: neighbours joined, the widest gaps kept where there are many."""
    ranges = _joined(slabs, width_ns)
    return any_of([_range({"gte": low // MS, "lt": high // MS}) for low, high in ranges])


def _range(bounds: Mapping[str, int]) -> dict[str, Any]:
    """Return a query for times between bounds in ms; without a format a server takes four digits for a year."""
    time_format = {"format": "epoch_millis"} if any(bound < YEARS_END for bound in bounds.values()) else {}
    return {"range": {"@timestamp": {**bounds, **time_format}}}


def _joined(slabs: Int, width_ns: int) -> Iterator[tuple[int, int]]:
    gaps = np.diff(slabs)
    cuts = np.flatnonzero(gaps > width_ns)
    if len(cuts) >= MOST_RANGES:
        cuts = np.sort(cuts[np.argsort(gaps[cuts])[-(MOST_RANGES - 1) :]])
    firsts: Sequence[int] = [0, *(cuts + 1).tolist()]
    lasts: Sequence[int] = [*cuts.tolist(), len(slabs) - 1]
    for first, last in zip(firsts, lasts, strict=True):
        yield int(slabs[first]), int(slabs[last]) + width_ns
