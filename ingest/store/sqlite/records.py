"""Records of runs and sources as rows of a SQLite store."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from ingest.store.live import Watch, watched
from ingest.store.records import RunRecord, SourceRecord
from ingest.store.sqlite.damage import check_cells, object_in

RUNS = ("run", "load", "step_ns", "attribution", "start_ns", "zero", "parameters", "labels", "state", "loaded")
SOURCES = ("run", "source", "path", "size", "digest", "context", "state", "generation", "account")

WATCHES = ("run", "watch", "final_ns", "largest_ns", "told_ns")
SELECT_WATCHES = f"SELECT {', '.join(WATCHES)} FROM watches"


class Runs:
    """The records of all runs, read again once anything was written: each of many questions asks for them."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._read: tuple[tuple[int, int], list[RunRecord], list[Watch]] | None = None

    def all(self) -> list[RunRecord]:
        """Return the records, by name."""
        state = self._db.execute("PRAGMA data_version").fetchone()[0], self._db.total_changes
        if self._read is None or self._read[0] != state:
            rows = self._db.execute(f"SELECT {', '.join(RUNS)} FROM runs ORDER BY run").fetchall()
            check_cells("runs", RUNS, rows)
            watches = self._db.execute(SELECT_WATCHES).fetchall()
            check_cells("watches", WATCHES, watches)
            self._read = state, [run_record(row) for row in rows], [Watch(*row) for row in watches]
        return watched(*self._read[1:])

    def forget(self) -> None:
        """Forget what was read: a write was undone."""
        self._read = None


def run_record(row: tuple[Any, ...]) -> RunRecord:
    """Return a row of RUNS as a record."""
    run, load, step_ns, attribution, start_ns, zero, parameters, labels, state, loaded = row
    options, own_labels = object_in(parameters), object_in(labels)
    return RunRecord(run, load, step_ns, attribution, start_ns, zero, options, own_labels, state, loaded)


def source_record(row: tuple[Any, ...]) -> SourceRecord:
    """Return a row of SOURCES as a record."""
    run, source, path, size, digest, context, state, generation, account = row
    return SourceRecord(run, source, path, size, digest, context, state, generation, object_in(account))


def run_row(run: RunRecord) -> tuple[Any, ...]:
    """Return the row of a run."""
    parameters, labels = (json.dumps(dict(values), sort_keys=True) for values in (run.parameters, run.labels))
    return (
        *(run.run, run.load, run.step_ns, run.attribution, run.start_ns, run.zero),
        *(parameters, labels, run.state, run.loaded),
    )


def source_row(source: SourceRecord) -> tuple[Any, ...]:
    """Return a record as a row of SOURCES."""
    return tuple(json.dumps(source.account) if name == "account" else getattr(source, name) for name in SOURCES)
