"""The rollups of a SQLite store: made anew from the documents of a run, in time slabs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ingest.documents import id_range, pack, window_of
from ingest.grid import SECOND, coarsened
from ingest.intervals import Intervals, Sum, merged
from ingest.series import OFFSET
from ingest.store.records import WHOLE_RUN, RunRecord, StoredSeries, rollup_steps
from ingest.store.rollups import cluster_group, host_group, layouts_of, merged_in, rollup_values, without_time
from ingest.store.sqlite_documents import stored_series, windows_of

SLAB_WINDOWS = 120
SLAB_ALIGN = 60 * SECOND


def rollup_rows(db: sqlite3.Connection, run: RunRecord) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of the rollups table for a run, in time slabs of bounded memory, from its documents."""
    stored = [one for one in stored_series(db, [run.run]) if one.series.kind != OFFSET]
    if not stored:
        return
    layouts = layouts_of(stored)
    steps = rollup_steps(run.step_ns)
    whole = Sum()
    for parts in _slabs(db, stored, run.step_ns):
        hosts = list(merged_in(parts, host_group, layouts))
        for windows in (*hosts, *merged_in(hosts, cluster_group, layouts)):
            yield _rows(run, windows, run.step_ns)
            finer = windows
            for step in steps[1:-1]:
                finer = merged([coarsened(finer, step)])
                yield _rows(run, finer, step)
            whole.add(without_time(finer))
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


def _slabs(db: sqlite3.Connection, stored: Sequence[StoredSeries], step_ns: int) -> Iterator[Iterator[Intervals]]:
    """Yield the windows of one time range after another; no window of any rollup step straddles two.

    Empty stretches are skipped: a log with a clock jump must not cost a pass per minute of the gap.
    """
    first, end = _span(db, stored, step_ns)
    width = max(SLAB_ALIGN, SLAB_WINDOWS * step_ns // SLAB_ALIGN * SLAB_ALIGN)
    at = first // width * width
    while at < end:
        parts = windows_of(db, stored, step_ns, at, at + width)
        first_part = next(parts, None)
        if first_part is None:
            at = _next_start(db, stored, at + width, step_ns) // width * width
            continue
        yield chain([first_part], parts)
        at += width


def _next_start(db: sqlite3.Connection, stored: Sequence[StoredSeries], after: int, step_ns: int) -> int:
    starts = []
    for one in stored:
        query = "SELECT min(id) FROM intervals WHERE id BETWEEN ? AND ?"
        low = db.execute(query, id_range(one.number, after, None, step_ns)).fetchone()[0]
        if low is not None:
            starts.append(int(window_of(np.array([low]), step_ns)[0]))
    return min(starts, default=2**62)


def _rows(run: RunRecord, windows: Intervals, step_ns: int, span: tuple[int, int] | None = None) -> list[tuple[Any, ...]]:
    """Return the table rows of merged windows, in the column order of fields.yml."""
    documents = pack(windows)
    values = rollup_values(windows)
    keys = [windows.table[code] for code in windows.series.tolist()]
    start = windows.start_ns.tolist() if span is None else [span[0]] * len(windows)
    end = windows.end_ns.tolist() if span is None else [span[1]] * len(windows)
    return [
        (run.run, key[0], key[3], step_ns, begin, key[2], key[1], finish, str(windows.layout), count, *rest)
        for key, begin, finish, count, *rest in zip(
            keys,
            start,
            end,
            documents.count.tolist(),
            *values.values(),
            [1] * len(windows),
            documents.coding.tolist(),
            documents.blobs,
            strict=True,
        )
    ]
