"""Records of runs and sources, episodes, findings and breaths as rows of SQLite, and whose documents it takes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ingest.core.breaths import SUMS, BreathSample, BreathWindows, StoredBreaths
from ingest.core.documents import CODINGS, unpack
from ingest.core.errors import StoreError
from ingest.core.intervals import Int
from ingest.core.labels import OFFSET, Series
from ingest.store.lifecycle import moved_step
from ingest.store.records import LOADING, SINCE, STEP, RunGoneError, RunRecord, SourceRecord
from ingest.store.sqlite.file import IN_JSON, check_cells, insert, object_in, put_unless_newer

# Records of runs and sources as rows of a SQLite store.


RUNS = ("run", "load", "step_ns", "attribution", "start_ns", "zero", "parameters", "labels", "state", "loaded")
SOURCES = ("run", "source", "path", "size", "digest", "context", "state", "generation", "account")

ROWS_AT_ONCE = 1000

WATCHES = ("run", "watch", "final_ns", "largest_ns", "told_ns")


def fields_of(
    db: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    rest: str = "",
    values: Sequence[Any] = (),
    runs: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of a table by the names of their columns, what is JSON decoded; `rest` is the end of the statement.

    With `runs` those of these runs alone: the others are looked at, and not decoded.
    """
    cursor = db.execute(f"SELECT {', '.join(columns)} FROM {table} {rest}", values)
    text, found = IN_JSON.get(table, ()), list[dict[str, Any]]()
    while rows := cursor.fetchmany(ROWS_AT_ONCE):  # the texts of thousands of accounts take as much as what they say
        check_cells(table, columns, rows)
        found += [
            {name: object_in(cell) if name in text else cell for name, cell in zip(columns, row, strict=True)}
            for row in rows
            if runs is None or row[0] in runs
        ]
    return found


def row_of(table: str, columns: Sequence[str], record: object, *, in_order: bool = False) -> tuple[Any, ...]:
    """Return a record as a row of a table."""
    cells = ((name, getattr(record, name)) for name in columns)
    return tuple(json.dumps(dict(cell), sort_keys=in_order) if name in IN_JSON.get(table, ()) else cell for name, cell in cells)


def keep(db: sqlite3.Connection, table: str, columns: Sequence[str], records: Iterable[object], **whose: str) -> None:
    """Write records in place of the rows that are there; inside the caller's transaction."""
    db.execute(f"DELETE FROM {table} WHERE {' AND '.join(f'{name} = ?' for name in whose)}", tuple(whose.values()))
    db.executemany(insert(table, columns), [row_of(table, columns, record) for record in records])


# Whose documents a SQLite store takes: asked inside the transaction that writes, so that none outlives its run or source.


COUNTS_SINCE = f"CASE WHEN state = '{LOADING}' THEN coalesce(json_extract(account, '$.{SINCE}'), generation) ELSE generation END"
# Of series: few sources have windows of their own, and an account that does not name them is not parsed.
OWN_STEP = f"CASE WHEN kind <> '{OFFSET}' AND instr(account, '\"{STEP}\"') THEN json_extract(account, '$.{STEP}') ELSE 0 END"
CURRENT = "SELECT r.step_ns, s.generation, s.digest FROM runs r LEFT JOIN sources s ON s.run = ? AND s.source = ? WHERE r.run = ?"


def check_run(db: sqlite3.Connection, run: str) -> None:
    """Raise RunGoneError where a run is not there any more."""
    if db.execute("SELECT 1 FROM runs WHERE run = ?", (run,)).fetchone() is None:
        raise RunGoneError(run)


def is_newest(db: sqlite3.Connection, source: SourceRecord) -> bool:
    """Return whether no later reading of a source has begun.

    RunGoneError where the source is not there any more, or an older reading stands in its place.
    """
    query = "SELECT generation FROM sources WHERE run = ? AND source = ?"
    row = db.execute(query, (source.run, source.source)).fetchone()
    if row is None or row[0] < source.generation:
        raise RunGoneError(source.run)
    return bool(row[0] == source.generation)


def is_current(db: sqlite3.Connection, run: RunRecord, source: SourceRecord) -> bool:
    """Return whether documents of a source are to be written: not once a later reading of it has begun.

    Raises RunGoneError where run or source have gone or were begun anew by another load, StoreError where the run has got
    another step.
    """
    row = db.execute(CURRENT, (run.run, source.source, run.run)).fetchone()
    if row is None:
        raise RunGoneError(run.run)
    step, generation, digest = row
    if step != run.step_ns:
        raise StoreError(moved_step(run, step))
    if generation is None or generation < source.generation or (generation == source.generation and digest != source.digest):
        raise RunGoneError(run.run)
    return bool(generation == source.generation)


# Episodes in a SQLite store: one row each, those of an objective and run always of one check.


PROMISE = ("kind", "percentile", "threshold_ns", "window_ns", "least_rate")
FOUND = ("peak_ns", "peak_open", "samples", "windows", "silent", "thin", "worst_host", "state", "lowest_rate")
EPISODES = ("run", "objective", "labels", "start_ns", "end_ns", *PROMISE, *FOUND)
JUDGEMENTS = ("run", "objective", "start_ns", "end_ns", "kind", "percentile", "threshold_ns", "window_ns", "state")


# Findings in a SQLite store: a row for the story of a run and one for each finding, always of one load.


FINDINGS = ("run", "rank", "stamp", "kind", "labels", "start_ns", "end_ns", "text", "share", "missing_share", "content")


# Breaths in the embedded store: a table of windows, their cells packed as bins are, and a table of single ones.


CODING = 3  # a cell is below 2^16, and a window holds less than 2^32 breaths
LABELS = ("run", "host", "process", "op", "job")
COUNTS = ("rate", "start_ns", "count", "known", "idle", "longest")
WINDOWS = (*LABELS, *COUNTS, *SUMS, "cells", "source", "generation")
WINDOW_KEY, POINT_KEY = (*LABELS, "rate", "start_ns"), (*LABELS, "place", "at_ns")
POINTS = (*LABELS, "place", "at_ns", "rate", "packets", "cycles", "source", "generation")


def write_breaths(db: sqlite3.Connection, source: SourceRecord, kept: StoredBreaths) -> int:
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


def breaths_of(db: sqlite3.Connection, run: str, source: str | None = None) -> StoredBreaths:
    """Return the breaths that are kept of a run, or of one of its sources: those that count by the records of sources."""
    counting = f"SELECT {COUNTS_SINCE} FROM sources s WHERE s.run = kept.run AND s.source = kept.source"
    where = f"WHERE kept.run = ?{'' if source is None else ' AND kept.source = ?'} AND kept.generation >= ({counting})"
    words = (run,) if source is None else (run, source)

    def rows(table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        return db.execute(f"SELECT {', '.join(columns)} FROM {table} kept {where}", words).fetchall()

    return StoredBreaths(_windows(rows("breaths", WINDOWS[:-2])), _sample(rows("points", POINTS[:-2])))


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
