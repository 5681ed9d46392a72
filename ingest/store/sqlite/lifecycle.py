"""Coarsening and coarser bins in SQLite, inside the caller's transaction: killed at any moment, nothing has happened."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ingest.core.documents import document_ids, id_range, pack, packed_bins, window_of
from ingest.core.errors import StoreError
from ingest.core.grid import coarsened
from ingest.core.intervals import Int, Sum, merged
from ingest.core.labels import OFFSET, Series
from ingest.store.lifecycle import (
    BINS,
    COARSENED,
    Coarsened,
    CoarserBins,
    Widened,
    check_coarser,
    check_widened,
    coarsening_lost,
    coarser_bins_lost,
    of_run,
)
from ingest.store.records import STEP, RunRecord, StoredSeries
from ingest.store.sqlite.documents import (
    BATCH,
    INSERT_DOCUMENT,
    count_of,
    document_columns,
    document_rows,
    stored_series,
    windows_of,
)
from ingest.store.sqlite.rollups import write_rollups

# Coarsening a run of a SQLite store, inside the transaction of the caller: killed at any moment, nothing has happened.


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
        deleted, written = _series(db, stored, stored.step_ns or record.step_ns, step_ns)
        if (now := count_of(db, stored.number)) != held:
            raise StoreError(coarsening_lost(record, step_ns, held, now))
        before, after = before + deleted, after + written
    db.execute(f"UPDATE sources SET account = json_remove(account, '$.{STEP}') WHERE run = ?", (record.run,))
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


# Wider bins for a run of a SQLite store, inside the transaction of the caller: killed at any moment, nothing has happened.


IDS = "SELECT id FROM intervals WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?"
UPDATE = "UPDATE intervals SET coding = ?, bins = ? WHERE id = ?"


def widen(db: sqlite3.Connection, record: RunRecord, bins: CoarserBins) -> Widened:
    """Widen the bins of a run, one series after another, then make its rollups; return what was done.

    Raises UsageError and StoreError as `check_widened` does, and StoreError where bins do not hold what those before held.
    """
    check_widened(record, bins)
    documents = before = after = 0
    for stored in stored_series(db, [record.run]):
        wider = bins.of(stored.layout)
        if stored.series.kind == OFFSET or wider == stored.layout:
            continue
        step = stored.step_ns or record.step_ns
        for ids in _pages(db, stored):
            low, end = window_of(ids[[0, -1]], step).tolist()
            for windows in windows_of(db, [stored], step, low, end + step):
                moved = windows.in_layout(wider)
                if len(moved) != len(ids) or not np.array_equal(moved.samples, windows.samples):
                    raise StoreError(coarser_bins_lost(record, int(windows.samples.sum()), int(moved.samples.sum())))
                codings, blobs = packed_bins(moved)
                db.executemany(UPDATE, zip(codings.tolist(), blobs.each(), ids.tolist(), strict=True))
                documents, before, after = documents + len(ids), before + len(windows.bins), after + len(moved.bins)
        db.execute("UPDATE series SET layout = ? WHERE id = ?", (str(wider), stored.number))
    if documents:
        write_grid(db, replace(record, parameters={**record.parameters, BINS: of_run(record).within(bins).to_dict()}))
    return Widened(record.run, documents, before, after)


def _pages(db: sqlite3.Connection, stored: StoredSeries) -> Iterator[Int]:
    """Yield the ids of the documents of a series in order, at most BATCH at a time."""
    first, last = id_range(stored.number, None, None, 1)
    while rows := db.execute(IDS, (first, last, BATCH)).fetchall():
        ids = np.array([number for (number,) in rows], np.int64)
        yield ids
        first = int(ids[-1]) + 1
