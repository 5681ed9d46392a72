"""Wider bins for a run of a SQLite store, inside the transaction of the caller: killed at any moment, nothing has happened."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ingest.core.documents import id_range, packed_bins, window_of
from ingest.core.errors import StoreError
from ingest.core.intervals import Int
from ingest.core.series import OFFSET
from ingest.store.records import RunRecord, StoredSeries
from ingest.store.sqlite.coarsening import write_grid
from ingest.store.sqlite.documents import BATCH, stored_series, windows_of
from ingest.store.wider_bins import BINS, Widened, WiderBins, check_widened, lost, of_run

IDS = "SELECT id FROM intervals WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?"
UPDATE = "UPDATE intervals SET coding = ?, bins = ? WHERE id = ?"


def widen(db: sqlite3.Connection, record: RunRecord, bins: WiderBins) -> Widened:
    """Widen the bins of a run, one series after another, then make its rollups; return what was done.

    Raises UsageError and StoreError as `check_widened` does, and StoreError where bins do not hold what those before held.
    """
    check_widened(record, bins)
    documents = before = after = 0
    for stored in stored_series(db, [record.run]):
        wider = bins.of(stored.layout)
        if stored.series.kind == OFFSET or wider == stored.layout:
            continue
        for ids in _pages(db, stored):
            low, end = window_of(ids[[0, -1]], record.step_ns).tolist()
            for windows in windows_of(db, [stored], record.step_ns, low, end + record.step_ns):
                moved = windows.in_layout(wider)
                if len(moved) != len(ids) or not np.array_equal(moved.samples, windows.samples):
                    raise StoreError(lost(record, int(windows.samples.sum()), int(moved.samples.sum())))
                codings, blobs = packed_bins(moved)
                db.executemany(UPDATE, zip(codings.tolist(), blobs.each(), ids.tolist(), strict=True))
                documents, before, after = documents + len(ids), before + len(windows.bins), after + len(moved.bins)
        db.execute("UPDATE series SET layout = ? WHERE id = ?", (str(wider), stored.number))
    if documents:
        write_grid(db, replace(record, parameters={**record.parameters, BINS: of_run(record).within(bins).told()}))
    return Widened(record.run, documents, before, after)


def _pages(db: sqlite3.Connection, stored: StoredSeries) -> Iterator[Int]:
    """Yield the ids of the documents of a series in order, at most BATCH at a time."""
    first, last = id_range(stored.number, None, None, 1)
    while rows := db.execute(IDS, (first, last, BATCH)).fetchall():
        ids = np.array([number for (number,) in rows], np.int64)
        yield ids
        first = int(ids[-1]) + 1
