"""Breaths in the embedded store: a table of windows, their cells packed as bins are, and a table of single ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ingest.core.breaths import SUMS, BreathSample, BreathWindows, Kept
from ingest.core.documents import CODINGS, unpack
from ingest.core.intervals import Int
from ingest.core.series import Series
from ingest.store.records import SourceRecord
from ingest.store.sqlite.statements import put_unless_newer

CODING = 3  # a cell is below 2^16, and a window holds less than 2^32 breaths
LABELS = ("run", "host", "process", "op", "job")
COUNTS = ("rate", "start_ns", "count", "known", "idle", "longest")
WINDOWS = (*LABELS, *COUNTS, *SUMS, "cells", "source", "generation")
WINDOW_KEY, POINT_KEY = (*LABELS, "rate", "start_ns"), (*LABELS, "place", "at_ns")
POINTS = (*LABELS, "place", "at_ns", "rate", "packets", "cycles", "source", "generation")


def write_breaths(db: sqlite3.Connection, source: SourceRecord, kept: Kept) -> int:
    """Write the breaths of a source inside the transaction of the caller; return how many documents."""
    owner = (source.source, source.generation)
    db.executemany(put_unless_newer("breaths", WINDOWS, WINDOW_KEY), ((*row, *owner) for row in _window_rows(kept.windows)))
    db.executemany(put_unless_newer("points", POINTS, POINT_KEY), ((*row, *owner) for row in _point_rows(kept.sample)))
    return len(kept.windows) + len(kept.sample)


def sweep_breaths(db: sqlite3.Connection, source: SourceRecord) -> None:
    """Delete the rows of older generations of a source."""
    for table in ("breaths", "points"):
        db.execute(
            f"DELETE FROM {table} WHERE run = ? AND source = ? AND generation < ?",
            (source.run, source.source, source.generation),
        )


def breaths_of(db: sqlite3.Connection, run: str, source: str | None = None) -> Kept:
    """Return the breaths that are kept of a run, or of one of its sources."""
    where, words = ("run = ?", (run,)) if source is None else ("run = ? AND source = ?", (run, source))
    columns = ", ".join((*LABELS, *COUNTS, *SUMS, "cells"))
    windows = db.execute(f"SELECT {columns} FROM breaths WHERE {where}", words).fetchall()
    columns = ", ".join(POINTS[:-2])
    return Kept(_windows(windows), _sample(db.execute(f"SELECT {columns} FROM points WHERE {where}", words).fetchall()))


def _labels(table: Iterable[Series]) -> list[tuple[str, ...]]:
    return [tuple(getattr(series, label) for label in LABELS) for series in table]


def _window_rows(rows: BreathWindows) -> Iterator[tuple[Any, ...]]:
    labels = _labels(rows.table)
    records = np.empty(len(rows.cells), CODINGS[CODING])
    records["bin"], records["count"] = rows.cells, rows.counts
    data, size, cuts = records.tobytes(), records.itemsize, rows.indptr.tolist()
    columns = (getattr(rows, name).tolist() for name in COUNTS)
    for place, (code, *counts, sums) in enumerate(zip(rows.series.tolist(), *columns, rows.sums.tolist(), strict=True)):
        yield (*labels[code], *counts, *sums, data[size * cuts[place] : size * cuts[place + 1]])


def _point_rows(rows: BreathSample) -> Iterator[tuple[Any, ...]]:
    labels = _labels(rows.table)
    columns = (rows.series, rows.order, rows.at_ns, rows.rate, rows.packets, rows.cycles)
    for code, *numbers in zip(*(column.tolist() for column in columns), strict=True):
        yield (*labels[code], *numbers)


def _coded(rows: Sequence[tuple[Any, ...]]) -> tuple[tuple[Series, ...], Int]:
    """Return the series of rows that begin with their labels, and which of them each row belongs to."""
    table: dict[Series, int] = {}
    codes = [table.setdefault(Series(**dict(zip(LABELS, row, strict=False))), len(table)) for row in rows]
    return tuple(table), np.array(codes, np.int64)


def _windows(rows: Sequence[tuple[Any, ...]]) -> BreathWindows:
    table, codes = _coded(rows)
    first, last = len(LABELS), len(LABELS) + len(COUNTS)
    counts = np.array([row[first:last] for row in rows], np.int64).reshape(-1, len(COUNTS)).T
    sums = np.array([row[last:-1] for row in rows], np.float64).reshape(-1, len(SUMS))
    indptr, cells, each = unpack(np.full(len(rows), CODING), [row[-1] for row in rows])
    return BreathWindows(
        table, codes, **dict(zip(COUNTS, counts, strict=True)), sums=sums, indptr=indptr, cells=cells, counts=each
    )


def _sample(rows: Sequence[tuple[Any, ...]]) -> BreathSample:
    table, codes = _coded(rows)
    order, at, rate, packets, cycles = np.array([row[len(LABELS) :] for row in rows], np.int64).reshape(-1, 5).T
    return BreathSample(table, codes, rate, order, at, packets, cycles)
