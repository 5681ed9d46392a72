"""Whose documents a SQLite store takes: asked inside the transaction that writes, so that none outlives its run or source."""

from __future__ import annotations

import sqlite3

from ingest.core.errors import StoreError
from ingest.store.coarsening import moved_step
from ingest.store.records import RunGoneError, RunRecord, SourceRecord

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
