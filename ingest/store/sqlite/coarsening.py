"""Coarsening a run of a SQLite store, inside the transaction of the caller: killed at any moment, nothing has happened."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace

import numpy as np

from ingest.core.documents import document_ids, id_range, pack
from ingest.core.errors import StoreError
from ingest.core.grid import coarsened
from ingest.core.intervals import Sum, merged
from ingest.core.series import OFFSET, Series
from ingest.store.coarsening import COARSENED, Coarsened, check_coarser, lost
from ingest.store.records import RunRecord, StoredSeries
from ingest.store.sqlite.documents import INSERT_DOCUMENT, count_of, document_columns, document_rows, stored_series, windows_of
from ingest.store.sqlite.rollups import write_rollups

MOST_ENTRIES = 1_000_000


def coarsen(db: sqlite3.Connection, record: RunRecord, step_ns: int) -> Coarsened:
    """Coarsen a run: its windows to `step_ns`, one series after another, then its rollups; return what was done.

    Raises UsageError and StoreError as `check_coarser` does, and StoreError where the windows do not hold what those before held.
    """
    if record.step_ns == step_ns:
        return Coarsened(record.run, step_ns, step_ns, 0, 0)
    check_coarser(record, step_ns)
    before = after = 0
    for stored in stored_series(db, [record.run]):
        if stored.series.kind == OFFSET:
            continue
        held = count_of(db, stored.number)
        deleted, written = _series(db, stored, record.step_ns, step_ns)
        if (now := count_of(db, stored.number)) != held:
            raise StoreError(lost(record, step_ns, held, now))
        before, after = before + deleted, after + written
    write_grid(db, replace(record, step_ns=step_ns, parameters={COARSENED: record.step_ns, **record.parameters}))
    return Coarsened(record.run, record.step_ns, step_ns, before, after)


def write_grid(db: sqlite3.Connection, record: RunRecord) -> None:
    """Write step and parameters of a run whose windows or bins were coarsened, and its rollups anew."""
    text = json.dumps(dict(record.parameters), sort_keys=True)
    db.execute("UPDATE runs SET step_ns = ?, parameters = ? WHERE run = ?", (record.step_ns, text, record.run))
    write_rollups(db, record)


def _series(db: sqlite3.Connection, stored: StoredSeries, from_ns: int, to_ns: int) -> tuple[int, int]:
    """Replace the documents of a series by those at the larger step; return how many there were and are."""
    total: Sum[Series] = Sum(MOST_ENTRIES)
    for part in windows_of(db, [stored], from_ns):
        total.add(merged([coarsened(part, to_ns)]))
    everything = id_range(stored.number, None, None, 1)
    generation = db.execute("SELECT max(generation) FROM intervals WHERE id BETWEEN ? AND ?", everything).fetchone()[0]
    deleted = db.execute("DELETE FROM intervals WHERE id BETWEEN ? AND ?", everything).rowcount
    written = 0
    for windows in total.parts():
        documents = pack(windows)
        ids = document_ids(np.full(len(documents), stored.number, np.int64), documents.start_ns, to_ns)
        db.executemany(INSERT_DOCUMENT[document_columns(documents)], document_rows(ids, documents, generation))
        written += len(documents)
    return deleted, written
