"""The embedded store: one SQLite file, write-ahead log, one writer at a time and any number of readers.

A series is one contiguous range of row ids in time order (see `documents.document_ids`), so writing appends and reading a
time range is one range scan per series. Every commit holds whole documents: a loader may be killed at any moment.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from ingest import __version__
from ingest.documents import Documents, document_ids, id_range, known_only, pack
from ingest.errors import StoreError, UsageError
from ingest.fields import assets
from ingest.intervals import Int, Intervals
from ingest.query.question import Answer, Question
from ingest.series import LABELS
from ingest.store.answers import answer_from, facts_from, windows_from
from ingest.store.records import COMPLETE, LOADING, RunRecord, SourceRecord, Spans, step_of
from ingest.store.sqlite_holdings import SqliteHoldings
from ingest.store.sqlite_rollups import rollup_rows

BUSY_SECONDS = 60
WAL_TRIES, WAL_PAUSE_SECONDS = 50, 0.1
SCHEMA_VERSION = 2
OVERWRITE = "".join(f"{name} = excluded.{name}, " for name in ("start_ns", "step_ns", "attribution", "zero", "parameters"))
SERIES_COLUMNS = (*LABELS, "segment")
SERIES_KEY = " AND ".join(f"{column} = ?" for column in SERIES_COLUMNS)


def _run_record(row: tuple[Any, ...]) -> RunRecord:
    run, load, step_ns, attribution, start_ns, zero, parameters, labels, state, loaded = row
    told, own = json.loads(parameters), json.loads(labels)
    return RunRecord(run, load, step_ns, attribution, start_ns, zero, told, own, state, loaded)


def _source_record(row: tuple[Any, ...]) -> SourceRecord:
    run, source, path, size, digest, context, state, generation, account = row
    return SourceRecord(run, source, path, size, digest, context, state, generation, json.loads(account))


class SqliteStore:
    """A store in one SQLite file; opened for reading unless `write`."""

    def __init__(self, path: str, *, write: bool = False) -> None:
        """Open the file; with `write` it is created if need be. StoreError says why it cannot be opened."""
        if not path:
            raise UsageError("sqlite: needs a path, as in sqlite:tailboard.db")
        self.path = Path(path)
        self.url = f"sqlite:{path}"
        self._series: dict[tuple[Any, ...], int] = {}
        with self._told():
            self.db = self._opened(write=write)
            if write:
                self._create()
            version = self.db.execute("PRAGMA user_version").fetchone()[0]
            if version != SCHEMA_VERSION:
                raise StoreError(f"{self.url} is no tailboard store of this version (found {version}, need {SCHEMA_VERSION})")
            self.db.execute("PRAGMA synchronous = NORMAL" if write else "PRAGMA mmap_size = 268435456")

    def _opened(self, *, write: bool) -> sqlite3.Connection:
        if write:
            return sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        if not self.path.exists():
            raise StoreError(f"there is no store at {self.url}: load something first, or name another (tailboard load --help)")
        quoted = str(self.path.resolve()).replace("?", "%3f").replace("#", "%23")
        try:
            db = sqlite3.connect(f"file:{quoted}?mode=ro", uri=True, timeout=BUSY_SECONDS, isolation_level=None)
            db.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            # A folder that cannot be written to cannot hold the shared memory of the log: read the file as it is.
            if os.access(self.path.resolve().parent, os.W_OK) or not os.access(self.path, os.R_OK):
                raise
            db = sqlite3.connect(f"file:{quoted}?immutable=1", uri=True, isolation_level=None)
        return db

    def _create(self) -> None:
        """Create the tables if the file is new; of several loaders that begin at once, one does."""
        if self.db.execute("PRAGMA user_version").fetchone()[0]:
            return
        self.db.execute("BEGIN EXCLUSIVE")
        try:
            empty = not self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if empty and not self.db.execute("PRAGMA user_version").fetchone()[0]:
                schema = (assets("mappings") / "sqlite.sql").read_text(encoding="utf-8")
                for statement in schema.split(";\n"):
                    self.db.execute(statement)
        finally:
            self.db.execute("COMMIT")
        for _ in range(WAL_TRIES):
            try:
                self.db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError:
                # Changing the journal needs the file for oneself, and does not wait for it.
                time.sleep(WAL_PAUSE_SECONDS)
            else:
                return

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn SQLite's errors into sentences."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            text = str(error)
            advice = {
                "unable to open": "check that the folder exists and can be written to",
                "readonly": "it is read-only: check owner and mode, or name another store with --store",
                "not a database": "the file is something else: name another store",
                "locked": "another program has been writing for a minute: try again",
                "full": "the disk is full: free some space and run the same load again, it goes on where it stopped",
                "disk I/O": "the disk reports an error",
                "malformed": "the file is damaged: load into a new store",
            }
            hint = next((advice for word, advice in advice.items() if word in text), "")
            raise StoreError(f"{self.url}: {text}{f'; {hint}' if hint else ''}") from None

    def __enter__(self) -> Self:
        """Return the open store."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close it; what is not committed is dropped."""
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give the connection inside one write transaction."""
        with self._told():
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield self.db
            except BaseException:
                self.db.execute("ROLLBACK")
                raise
            self.db.execute("COMMIT")

    def runs(self) -> list[RunRecord]:
        """Return the records of all runs, by name."""
        columns = "run, load, step_ns, attribution, start_ns, zero, parameters, labels, state, loaded"
        with self._told():
            rows = self.db.execute(f"SELECT {columns} FROM runs ORDER BY run").fetchall()
        return [_run_record(row) for row in rows]

    def sources(self, run: str) -> list[SourceRecord]:
        """Return what was loaded into a run, by identity."""
        columns = "run, source, path, size, digest, context, state, generation, account"
        with self._told():
            rows = self.db.execute(f"SELECT {columns} FROM sources WHERE run = ? ORDER BY source", (run,)).fetchall()
        return [_source_record(row) for row in rows]

    def begin(self, run: RunRecord, sources: Iterable[SourceRecord], *, anew: bool = False) -> None:
        """Note a run and the sources that are about to be written; they count as loading until `finish_source`."""
        with self.transaction() as db:
            row = (
                run.run,
                run.load,
                LOADING,
                run.step_ns,
                run.attribution,
                run.start_ns,
                run.zero,
                json.dumps(run.parameters, sort_keys=True),
                json.dumps(dict(run.labels), sort_keys=True),
                run.loaded,
            )
            start = "" if anew else "start_ns = min(start_ns, excluded.start_ns), "
            db.execute(
                f"INSERT INTO runs VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (run) DO UPDATE SET {start or OVERWRITE}"
                "load = excluded.load, state = excluded.state, labels = excluded.labels",
                row,
            )
            db.executemany(
                "INSERT OR REPLACE INTO sources VALUES (?,?,?,?,?,?,?,?,?)",
                [
                    (s.run, s.source, s.path, s.size, s.digest, s.context, LOADING, s.generation, json.dumps(s.account))
                    for s in sources
                ],
            )

    def packed(self, run: RunRecord, source: SourceRecord, windows: Intervals) -> Documents:
        """Return whole windows of a source as packed documents."""
        return pack(windows)

    def delivered(self) -> Mapping[str, int]:
        """Return nothing: documents are written here, not sent."""
        return {}

    def refusals(self) -> tuple[int, str]:
        """Return none: a document is written, or the load fails."""
        return 0, ""

    def write(self, run: RunRecord, source: SourceRecord, packed: Documents) -> int:
        """Write whole documents of a source, replacing older ones of the same identity; return how many."""
        documents = packed
        if not len(documents):
            return 0
        with self.transaction() as db:
            step = step_of(documents.table, run.step_ns)
            ids = document_ids(self._series_ids(db, source, documents)[documents.series], documents.start_ns, step)
            if documents.exact is None:
                columns: list[list[Any]] = [[None] * len(documents)] * 3
            else:
                known = documents.exact.known
                exact = (documents.exact.sum_ns, documents.exact.min_ns, documents.exact.max_ns)
                columns = [known_only(values, known) for values in exact]
            rows = zip(
                ids.tolist(),
                documents.count.tolist(),
                *columns,
                documents.coding.tolist(),
                documents.blobs,
                [source.generation] * len(documents),
                strict=True,
            )
            db.executemany("INSERT OR REPLACE INTO intervals VALUES (?,?,?,?,?,?,?,?)", rows)
        return len(documents)

    def _series_ids(self, db: sqlite3.Connection, source: SourceRecord, documents: Documents) -> Int:
        ids = []
        exact = documents.exact is not None
        for series in documents.table:
            labels = tuple(getattr(series, column) for column in SERIES_COLUMNS)
            if (labels, source.generation) not in self._series:
                found = db.execute(f"SELECT id FROM series WHERE {SERIES_KEY}", labels).fetchone()
                if found:
                    update = "UPDATE series SET layout = ?, source = ?, exact = max(exact, ?) WHERE id = ?"
                    db.execute(update, (str(documents.layout), source.source, exact, found[0]))
                else:
                    marks = ",".join("?" * (len(SERIES_COLUMNS) + 3))
                    columns = f"{','.join(SERIES_COLUMNS)},layout,source,exact"
                    new = f"INSERT INTO series ({columns}) VALUES ({marks})"
                    found = (db.execute(new, (*labels, str(documents.layout), source.source, exact)).lastrowid,)
                self._series[labels, source.generation] = int(found[0] or 0)
            ids.append(self._series[labels, source.generation])
        return np.array(ids, np.int64)

    def finish_source(self, source: SourceRecord, spans: Spans) -> None:
        """Note that a source is complete, from when to when its series reach, and sweep what older generations left of it."""
        with self.transaction() as db:
            update = f"UPDATE series SET first_ns = ?, last_ns = ? WHERE {SERIES_KEY}"
            db.executemany(
                update,
                [(*span, *(getattr(series, column) for column in SERIES_COLUMNS)) for series, span in spans.items()],
            )
            if source.generation > 1:
                series = db.execute("SELECT id FROM series WHERE run = ? AND source = ?", (source.run, source.source)).fetchall()
                for (number,) in series:
                    first, last = id_range(number, None, None, 1)
                    db.execute(
                        "DELETE FROM intervals WHERE id BETWEEN ? AND ? AND generation < ?", (first, last, source.generation)
                    )
                    if not db.execute("SELECT 1 FROM intervals WHERE id BETWEEN ? AND ? LIMIT 1", (first, last)).fetchone():
                        db.execute("DELETE FROM series WHERE id = ?", (number,))
            db.execute(
                "UPDATE sources SET state = ?, account = ? WHERE run = ? AND source = ?",
                (COMPLETE, json.dumps(source.account), source.run, source.source),
            )

    def finish_run(self, run: RunRecord) -> None:
        """Write the run's rollups from its documents and note it complete if all its sources are."""
        with self.transaction() as db:
            db.execute("DELETE FROM rollups WHERE run = ?", (run.run,))
            for rows in rollup_rows(db, run):
                db.executemany(f"INSERT INTO rollups VALUES ({','.join('?' * 25)})", rows)
            loading = db.execute("SELECT count(*) FROM sources WHERE run = ? AND state = ?", (run.run, LOADING)).fetchone()[0]
            when = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            state = LOADING if loading else COMPLETE
            text = f"{when} by tailboard {__version__}"
            db.execute("UPDATE runs SET state = ?, loaded = ? WHERE run = ?", (state, text, run.run))

    def delete_run(self, run: str) -> int:
        """Delete a run with all it holds; return how many documents that were."""
        with self.transaction() as db:
            deleted = 0
            for (number,) in db.execute("SELECT id FROM series WHERE run = ?", (run,)).fetchall():
                deleted += db.execute("DELETE FROM intervals WHERE id BETWEEN ? AND ?", id_range(number, None, None, 1)).rowcount
            for table in ("series", "rollups", "sources", "marks", "runs"):
                db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
            self._series.clear()
        return deleted

    def answer(self, question: Question) -> Answer:
        """Return the merged windows that a question asks for, from rollups where they answer, else from documents."""
        with self._told():
            return answer_from(SqliteHoldings(self.db), self.runs(), question)

    def windows(self, question: Question) -> Iterator[Intervals]:
        """Yield the selected windows at the stored step under the question's groups, in bounded batches."""
        with self._told():
            yield from windows_from(SqliteHoldings(self.db), self.runs(), question)

    def offset_windows(self, run: str, begin_ns: int | None, end_ns: int | None) -> Iterator[Intervals]:
        """Yield the offsets of a run's events in [begin, end) under their series: 1 ms bins in windows of 1 s."""
        with self._told():
            yield from SqliteHoldings(self.db).offset_windows(run, begin_ns, end_ns)

    def facts(self, answer: Answer) -> list[tuple[str, str]]:
        """Return (name, value) pairs about the runs of an answer."""
        with self._told():
            chosen = [record for record in self.runs() if record.run in answer.runs]
            return facts_from(SqliteHoldings(self.db).catalogue(chosen))

    def mark(self, run: str, at_ns: int, text: str) -> None:
        """Note what happened at a time of a run; the same mark twice is one."""
        with self.transaction() as db:
            db.execute("INSERT OR REPLACE INTO marks VALUES (?,?,?)", (run, at_ns, text))

    def marks(self, answer: Answer) -> list[Mapping[str, Any]]:
        """Return the marks of the runs of an answer in time order: run, at_ns, text."""
        return self.marks_of(answer.runs)

    def marks_of(self, runs: Iterable[str]) -> list[Mapping[str, Any]]:
        """Return the marks of runs in time order: run, at_ns, text."""
        wanted = set(runs)
        with self._told():
            rows = self.db.execute("SELECT run, at_ns, text FROM marks ORDER BY at_ns, text").fetchall()
        return [{"run": run, "at_ns": at, "text": text} for run, at, text in rows if run in wanted]
