"""Rollups: merged histograms per scope, operation and kind at a few steps, with their percentiles as plain numbers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ingest.documents import id_range, known_only, pack, window_of
from ingest.grid import SECOND, coarsened
from ingest.intervals import Intervals, Sum, merged
from ingest.layout import LogLinear, common_layout
from ingest.ranks import Ranked, extremes, parse_percentiles, percentile_values
from ingest.series import Group, Series
from ingest.store.documents_read import StoredSeries, stored_series, windows_of
from ingest.store.records import RunRecord

HOST, CLUSTER = "host", "cluster"
WHOLE_RUN = 0
COARSE_STEPS = (10 * SECOND, 60 * SECOND)
PERCENTILES = parse_percentiles("50,75,90,95,99,99.9,99.99")
SLAB_WINDOWS = 60
SLAB_ALIGN = 60 * SECOND
MOST_ENTRIES = 1_000_000


def rollup_steps(step_ns: int) -> tuple[int, ...]:
    """Return the steps that rollups are kept at: the stored one, 10 s and 1 min if they are multiples of it, the whole run."""
    coarse = [step for step in COARSE_STEPS if step > step_ns and step % step_ns == 0]
    return (step_ns, *coarse, WHOLE_RUN)


def rollup_rows(db: sqlite3.Connection, run: RunRecord) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of the rollups table for a run, in time slabs of bounded memory, from its documents."""
    stored = stored_series(db, [run.run])
    if not stored:
        return
    layouts = _layouts(stored)
    steps = rollup_steps(run.step_ns)
    whole = Sum()
    for begin, end in _slabs(db, stored, run.step_ns):
        hosts = list(_merged_in(windows_of(db, stored, run.step_ns, begin, end), _host_group, layouts))
        for windows in (*hosts, *_merged_in(hosts, _cluster_group, layouts)):
            yield _rows(run, windows, run.step_ns)
            finer = windows
            for step in steps[1:-1]:
                finer = merged([coarsened(finer, step)])
                yield _rows(run, finer, step)
            whole.add(_flat(finer))
    span = _span(db, stored, run.step_ns)
    for part in whole.parts():
        yield _rows(run, part, WHOLE_RUN, span)


def _span(db: sqlite3.Connection, stored: Sequence[StoredSeries], step_ns: int) -> tuple[int, int]:
    """Return start of the first and end of the last window of the series."""
    found = []
    for one in stored:
        query = "SELECT min(id), max(id) FROM intervals WHERE id BETWEEN ? AND ?"
        low, high = db.execute(query, id_range(one.number, None, None, step_ns)).fetchone()
        if low is not None:
            found.append(window_of(np.array([low, high]), step_ns))
    return (int(min(pair[0] for pair in found)), int(max(pair[1] for pair in found)) + step_ns) if found else (0, 0)


def _slabs(db: sqlite3.Connection, stored: Sequence[StoredSeries], step_ns: int) -> Iterator[tuple[int, int]]:
    """Yield time ranges that no window of any rollup step straddles.

    They hold about 60 windows each, which keeps the work in the processor's cache.

    Empty stretches are skipped: a log with a clock jump must not cost a pass per minute of the gap.
    """
    first, end = _span(db, stored, step_ns)
    width = max(SLAB_ALIGN, SLAB_WINDOWS * step_ns // SLAB_ALIGN * SLAB_ALIGN)
    at = first // width * width
    while at < end:
        yield at, at + width
        at = _next_start(db, stored, at + width, step_ns) // width * width


def _next_start(db: sqlite3.Connection, stored: Sequence[StoredSeries], after: int, step_ns: int) -> int:
    starts = []
    for one in stored:
        query = "SELECT min(id) FROM intervals WHERE id BETWEEN ? AND ?"
        low = db.execute(query, id_range(one.number, after, None, step_ns)).fetchone()[0]
        if low is not None:
            starts.append(int(window_of(np.array([low]), step_ns)[0]))
    return min(starts, default=2**62)


def _host_group(key: Series | Group) -> Group:
    """Return the (scope, host, op, kind) that a series counts in on its host."""
    if not isinstance(key, Series):
        raise TypeError("hosts are merged from series")
    return HOST, key.host, key.op, key.kind


def _cluster_group(key: Series | Group) -> Group:
    """Return the (scope, host, op, kind) that a series, or a host's group, counts in for the cluster."""
    if isinstance(key, Series):
        return CLUSTER, "", key.op, key.kind
    return CLUSTER, "", key[2], key[3]


def _layouts(stored: Sequence[StoredSeries]) -> dict[Group, LogLinear]:
    """Return the layout of each group: the common one of all its series."""
    found: dict[Group, set[LogLinear]] = {}
    for one in stored:
        for group in (_host_group(one.series), _cluster_group(one.series)):
            found.setdefault(group, set()).add(one.layout)
    return {group: common_layout(layouts) for group, layouts in found.items()}


def _merged_in(
    parts: Iterable[Intervals], grouped: Callable[[Series | Group], Group], layouts: dict[Group, LogLinear]
) -> Iterator[Intervals]:
    """Yield windows added up under the group of each row, in the group's layout: one part a layout and kind of counts."""
    buckets: dict[tuple[LogLinear, bool], Sum] = {}
    for part in parts:
        groups = [grouped(key) for key in part.table]
        table = {group: code for code, group in enumerate(dict.fromkeys(groups))}
        codes = np.array([table[group] for group in groups], np.int64)
        moved = replace(part, table=tuple(table), series=codes[part.series])
        targets = [layouts[group] for group in table]
        for target in dict.fromkeys(targets):
            rows = np.flatnonzero(np.array([target == other for other in targets])[moved.series])
            chosen = moved if len(rows) == len(moved) else moved.take(rows)
            if len(rows):
                buckets.setdefault((target, part.completions is None), Sum(MOST_ENTRIES)).add(chosen.in_layout(target))
    for bucket in buckets.values():
        yield from bucket.parts()


def _flat(windows: Intervals) -> Intervals:
    zero = np.zeros(len(windows), np.int64)
    return replace(windows, start_ns=zero, end_ns=zero)


def _rows(run: RunRecord, windows: Intervals, step_ns: int, span: tuple[int, int] | None = None) -> list[tuple[Any, ...]]:
    """Return the table rows of merged windows, in the column order of fields.yml."""
    documents = pack(windows)
    low, high, mean, exact = extremes(windows)
    sums: list[Any] = [None] * len(windows)
    if windows.exact is not None:
        sums = known_only(windows.exact.sum_ns, windows.exact.known)
    ranked = Ranked(windows)
    columns = [percentile_values(windows, percentile, ranked=ranked) for percentile in PERCENTILES]
    shown = [[None if value != value else value for value in column.tolist()] for column in columns]  # noqa: PLR0124  # NaN
    keys = [windows.table[code] for code in windows.series.tolist()]
    start = windows.start_ns.tolist() if span is None else [span[0]] * len(windows)
    end = windows.end_ns.tolist() if span is None else [span[1]] * len(windows)
    return [
        (run.run, key[0], key[3], step_ns, begin, key[2], key[1], finish, str(windows.layout), count, total, *rest)
        for key, begin, finish, count, total, *rest in zip(
            keys,
            start,
            end,
            documents.count.tolist(),
            sums,
            low.tolist(),
            mean.tolist(),
            high.tolist(),
            exact.astype(int).tolist(),
            *shown,
            [1] * len(windows),
            documents.coding.tolist(),
            documents.blobs,
            strict=True,
        )
    ]
