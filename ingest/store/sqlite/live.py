"""What a SQLite store does for a watch: a cycle is one transaction, so documents, rollups and checkpoints always agree."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ingest.core.documents import pack
from ingest.core.intervals import distinct
from ingest.core.layout import Layout
from ingest.store.live import Checkpoint, Marks, News, Watch, marks_of
from ingest.store.records import COMPLETE, RunRecord, SourceRecord
from ingest.store.rollups import RollupKey, have_moved
from ingest.store.sqlite.documents import delete_documents, layouts_in, starts_of
from ingest.store.sqlite.file import object_in, put, store_errors
from ingest.store.sqlite.records import OWN_STEP, WATCHES, check_run, fields_of, is_newest
from ingest.store.sqlite.rollups import Touched, note_final, write_rollups, write_touched

if TYPE_CHECKING:
    from ingest.store.sqlite.store import SqliteStore

CHECKPOINTS = ("run", "source", "watch", "state")
PUT_CHECKPOINT = put("checkpoints", CHECKPOINTS)

Layouts = Mapping[RollupKey, Layout]


class SqliteLive:
    """An open SQLite store, as a watch uses it."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._layouts: dict[str, Layouts] = {}
        self._noted: dict[str, Marks] = {}

    def checkpoints(self, run: str) -> list[Checkpoint]:
        """Return all checkpoints of a run."""
        query = f"SELECT {', '.join(CHECKPOINTS)} FROM checkpoints WHERE run = ? ORDER BY source"
        with store_errors(self._store.url, self._store.db):
            rows = self._store.db.execute(query, (run,))
            return [Checkpoint(name, source, watch, object_in(state)) for name, source, watch, state in rows]

    def watches(self, run: str) -> list[Watch]:
        """Return the watches of a run."""
        with store_errors(self._store.url, self._store.db):
            return [Watch(**fields) for fields in fields_of(self._store.db, "watches", WATCHES, "WHERE run = ?", (run,))]

    def keep(self, run: RunRecord, news: Sequence[News], watch: Watch) -> int:
        """Write what a cycle has read, the rollups of its windows, then checkpoints and marks; return how many documents."""
        written = 0
        with self._store.transaction() as db:
            check_run(db, run.run)
            mine = [entry for entry in news if is_newest(db, entry.source)]
            before = self._layouts.get(run.run) or layouts_in(db, run.run)
            for update in mine:
                written += sum(self._store.put(db, run, update.source, pack(windows)) for windows in update.windows)
                self._store.note_reach(db, update.spans)
            marks = marks_of(self.watches(run.run), watch, watch.told_ns)
            self._roll(db, run, _touched(mine), before, marks)
            db.executemany(
                "UPDATE sources SET account = ?, size = ? WHERE run = ? AND source = ?",
                [(json.dumps(dict(entry.source.account)), entry.source.size, run.run, entry.source.source) for entry in mine],
            )
            db.executemany(PUT_CHECKPOINT, [_row(entry.checkpoint) for entry in mine])
            _put_watch(db, watch)
        return written

    def _roll(self, db: sqlite3.Connection, run: RunRecord, touched: Touched, before: Layouts, marks: Marks) -> None:
        """Make the rollups anew that have changed, or have become final."""
        now = layouts_in(db, run.run)
        if have_moved(before, now):
            write_rollups(db, run, marks)
        else:
            write_touched(db, run, touched, now, marks)
            note_final(db, run, marks, self._noted.get(run.run))
        self._layouts[run.run], self._noted[run.run] = now, marks

    def forget(self, run: RunRecord, sources: Iterable[str], watch: Watch) -> None:
        """Delete sources with their documents and checkpoints, and make the rollups anew where they were."""
        with self._store.transaction() as db:
            check_run(db, run.run)
            before = self._layouts.get(run.run) or layouts_in(db, run.run)
            touched = Touched(np.empty(0, np.int64), set(), set())
            for source in sources:
                query = (
                    f"SELECT id, host, kind, {OWN_STEP} FROM series JOIN sources USING (run, source) WHERE run = ? AND source = ?"
                )
                for number, host, kind, own_ns in db.execute(query, (run.run, source)).fetchall():
                    starts = starts_of(db, number, own_ns or run.step_ns) // run.step_ns * run.step_ns
                    touched = touched.beside(Touched(starts, {host}, {kind}))
                    delete_documents(db, number)
                for table in ("series", "sources", "checkpoints"):
                    db.execute(f"DELETE FROM {table} WHERE run = ? AND source = ?", (run.run, source))
            marks = marks_of(self.watches(run.run), watch, watch.told_ns)
            self._roll(db, run, touched, before, marks)
            _put_watch(db, watch)
        self._store.look_again()

    def set_aside(self, run: RunRecord, source: str, kept: SourceRecord, segment: int) -> None:
        """Move the documents of a source to another one, complete, their series' segments moved by `segment`."""
        with self._store.transaction() as db:
            if not is_newest(db, replace(kept, source=source)):  # a later reading has taken it over
                return
            db.execute(
                "UPDATE series SET segment = segment + ?, source = ? WHERE run = ? AND source = ?",
                (segment, kept.source, run.run, source),
            )
            db.execute(
                "UPDATE sources SET source = ?, state = ?, account = ?, digest = ? WHERE run = ? AND source = ?",
                (kept.source, COMPLETE, json.dumps(dict(kept.account)), kept.digest, run.run, source),
            )
            db.execute("DELETE FROM checkpoints WHERE run = ? AND source = ?", (run.run, source))
        self._store.look_again()

    def finish(self, source: SourceRecord) -> None:
        """Note that a source is complete as it is."""
        self._store.finish_source(source, {})

    def note_watch(self, watch: Watch) -> None:
        """Note up to when windows are final as far as a watch knows."""
        with self._store.transaction() as db:
            check_run(db, watch.run)
            _put_watch(db, watch)

    def leave(self, run: str, watch: str) -> None:
        """Delete a watch that has settled all that it read, with its checkpoints."""
        with self._store.transaction() as db:
            for table in ("checkpoints", "watches"):
                db.execute(f"DELETE FROM {table} WHERE run = ? AND watch = ?", (run, watch))


def _touched(news: Sequence[News]) -> Touched:
    """Return the windows of latencies that were written."""
    parts = [windows for update in news for windows in update.windows if len(windows)]
    starts = distinct(np.concatenate([part.start_ns for part in parts])) if parts else np.empty(0, np.int64)
    met = {series for part in parts for series in part.table}
    return Touched(starts, {series.host for series in met}, {series.kind for series in met})


def _row(checkpoint: Checkpoint) -> tuple[str, ...]:
    state = json.dumps(dict(checkpoint.state), separators=(",", ":"))
    return checkpoint.run, checkpoint.source, checkpoint.watch, state


def _put_watch(db: sqlite3.Connection, watch: Watch) -> None:
    db.execute(put("watches", WATCHES), tuple(getattr(watch, name) for name in WATCHES))
