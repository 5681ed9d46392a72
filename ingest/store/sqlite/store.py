"""The embedded store: one SQLite file, write-ahead log, one writer at a time and any number of readers.

A series is one contiguous range of row ids in time order (see `documents.document_ids`), so writing appends and reading a
time range is one range scan per series. Every commit holds whole documents: a loader may be killed at any moment.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ingest.core.breaths import StoredBreaths
from ingest.core.documents import Documents, document_ids, pack
from ingest.core.errors import StoreError, UsageError
from ingest.core.intervals import MOST_SAMPLES, Int, Intervals
from ingest.core.labels import LABELS, Group, Series
from ingest.core.marks import noted
from ingest.core.units import number
from ingest.query.origin import KNOWN_RUNS, SNAPSHOT, Capabilities
from ingest.query.plan import settled
from ingest.query.question import Answer, AnswerKey, Question
from ingest.store import DOCUMENTS, GROWTH, Store
from ingest.store.answers import answer_from, facts_from, windows_from
from ingest.store.capabilities import capabilities_of
from ingest.store.lifecycle import Coarsened, CoarserBins, Widened, check_joinable, check_replaceable, step_in
from ingest.store.live import Watch, final_by_all, watched
from ingest.store.records import (
    COMPLETE,
    LOADING,
    RunRecord,
    SourceRecord,
    Spans,
    StoredRun,
    check_deletable,
    check_unclaimed,
    counting_since,
    loaded_now,
    record_named,
    step_of,
)
from ingest.store.sqlite.documents import (
    PUT_DOCUMENT,
    check_all_there,
    delete_documents,
    document_columns,
    document_rows,
    drop_unlike,
    sweep,
)
from ingest.store.sqlite.file import (
    insert,
    opened,
    put,
    put_unless_newer,
    removed_if_empty,
    snapshot,
    state_of,
    store_errors,
    tables_of_runs,
    transaction,
)
from ingest.store.sqlite.holdings import SqliteHoldings
from ingest.store.sqlite.lifecycle import coarsen, widen
from ingest.store.sqlite.records import (
    EPISODES,
    FINDINGS,
    JUDGEMENTS,
    RUNS,
    SOURCES,
    WATCHES,
    breaths_of,
    check_run,
    fields_of,
    is_current,
    is_newest,
    keep,
    row_of,
    sweep_breaths,
    write_breaths,
)
from ingest.store.sqlite.rollups import only_new, write_rollups

if TYPE_CHECKING:
    from ingest.query.episodes import Episode, Judgement
    from ingest.query.story.stored import StoredFinding
    from ingest.store.answers import Catalogue
    from ingest.store.elastic.templates import Names
    from ingest.store.verify import Chosen, Verification

OVERWRITE = "".join(f"{name} = excluded.{name}, " for name in ("start_ns", "step_ns", "attribution", "zero", "parameters"))
STEPS_BETWEEN = 100_000  # of SQLite's machine, between two looks at the clock
SERIES_COLUMNS = (*LABELS, "segment")
PUT_SOURCE = put_unless_newer("sources", SOURCES, ("run", "source"))
MARKS = ("run", "at_ns", "text", "end_ns")
SERIES_KEY = " AND ".join(f"{column} = ?" for column in SERIES_COLUMNS)


def open_url(url: str, *, write: bool = False) -> SqliteStore:
    """Return the store that a URL sqlite:PATH names; raises what SqliteStore raises."""
    return SqliteStore(url.removeprefix("sqlite:"), write=write)


class SqliteStore(Store):
    """A store in one SQLite file; opened for reading unless `write`."""

    indexed = True
    most_samples = MOST_SAMPLES

    def __init__(self, path: str, *, write: bool = False) -> None:
        """Open the file; with `write` it is created if need be. StoreError says why it cannot be opened."""
        if path in ("", ":memory:"):  # the latter is a database of one connection alone
            raise UsageError("sqlite: needs the path of a file, as in sqlite:tailboard.db")
        self.path = Path(path)
        self.url = f"sqlite:{path}"
        self._series: dict[tuple[Any, ...], int] = {}
        self._finished: dict[str, list[SourceRecord]] = {}
        self._before: dict[str, dict[str, int]] = {}  # the sources of runs that were complete when a load began
        self._seen = -1
        self._written: Counter[tuple[str, str, int]] = Counter()
        self._is_new = write and not self.path.exists()
        with store_errors(self.url):
            self.db = opened(self.path, self.url, write=write)
        self._runs: tuple[tuple[int, int], list[RunRecord], list[Watch]] | None = None
        self._holdings = SqliteHoldings(self.db)
        self._at_once = False

    def _store_errors(self) -> AbstractContextManager[None]:
        """Turn SQLite's errors, and those of a damaged file, into sentences."""
        return store_errors(self.url, self.db)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close it; what is not committed is dropped. Where the input is at fault a new file that holds nothing is removed."""
        if error is not None and self._is_new and not isinstance(error, StoreError):
            removed_if_empty(self.db, self.path)
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give the connection inside one write transaction, that of `at_once` where one is open."""
        if self._at_once:
            yield self.db
            return
        with self._store_errors(), transaction(self.db):
            seen, self._seen = self._seen, self.db.execute("PRAGMA data_version").fetchone()[0]
            if seen != self._seen:  # others have written: numbers of series may have gone, or be those of other series
                self.look_again()
            try:
                yield self.db
            except BaseException:
                self.look_again()
                raise

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let what is written meanwhile be one transaction."""
        with self.transaction():
            self._at_once = True
            try:
                yield
            finally:
                self._at_once = False

    @property
    def offers(self) -> Capabilities:
        """Return the capabilities beyond those that every origin has."""
        offers = capabilities_of(self).add(SNAPSHOT, self.one_moment).add(DOCUMENTS, self._documents)
        offers.add(KNOWN_RUNS, self.knowing_runs)
        return offers.later(GROWTH, "ingest.store.sqlite.live.SqliteLive", self)

    def _documents(self, record: RunRecord, names: Names) -> Iterator[bytes]:
        from ingest.store.elastic.export import made

        with self._store_errors():
            yield from made(self, record, names)

    @contextmanager
    def knowing_runs(self) -> Iterator[None]:
        """Hold what is known of runs, their series and sources for several questions: of thousands each reads for a second."""
        before, self._holdings = self._holdings, SqliteHoldings(self.db, keeps=True)
        try:
            yield
        finally:
            self._holdings = before

    @contextmanager
    def one_moment(self, longest_seconds: float) -> Iterator[None]:
        """Let all answers be of one moment, even if a load runs meanwhile; StoreError where it takes longer."""
        end = time.monotonic() + longest_seconds
        self.db.set_progress_handler(lambda: time.monotonic() > end, STEPS_BETWEEN)
        try:
            with self._store_errors(), snapshot(self.db):
                yield
        except StoreError:
            if time.monotonic() > end:
                text = f"{self.url}: the answer takes more than {number(longest_seconds)} s: choose a shorter range"
                raise StoreError(text) from None
            raise
        finally:
            self.db.set_progress_handler(None, 0)

    def runs(self) -> list[RunRecord]:
        """Return the records of all runs, by name: read again once anything was written, for many questions."""
        with self._store_errors():
            state = state_of(self.db)
            if self._runs is None or self._runs[0] != state:
                records = [RunRecord(**fields) for fields in fields_of(self.db, "runs", RUNS, "ORDER BY run")]
                self._runs = state, records, [Watch(**fields) for fields in fields_of(self.db, "watches", WATCHES)]
            return watched(*self._runs[1:])

    def sources(self, run: str, only: Collection[str] | None = None) -> list[SourceRecord]:
        """Return the records of a run's sources, by identity; of those that `only` names, where it is given."""
        named, values = ("", ()) if only is None else (" AND source IN (SELECT value FROM json_each(?))", (json.dumps([*only]),))
        with self._store_errors():
            rows = fields_of(self.db, "sources", SOURCES, f"WHERE run = ?{named} ORDER BY source", (run, *values))
            return [SourceRecord(**fields) for fields in rows]

    def held(self, runs: Sequence[str]) -> dict[str, StoredRun]:
        """Return what is held of each run."""
        known = {record.run: record for record in self.runs()}
        return {run: StoredRun(known.get(run), self.first_generation(run), self.sources(run)) for run in runs}

    def begin(self, run: RunRecord, sources: Iterable[SourceRecord], *, anew: bool = False) -> None:
        """Note a run and the sources that are about to be written; they count as loading until `finish_source`."""
        with self.transaction() as db:
            wanted = list(sources)
            there = {known.source: known for known in self.sources(run.run, None if anew else [own.source for own in wanted])}
            self._before.pop(run.run, None)
            for fields in fields_of(db, "runs", RUNS, "WHERE run = ?", (run.run,)):
                if not anew and fields["state"] == COMPLETE:
                    held = db.execute("SELECT source, generation FROM sources WHERE run = ?", (run.run,))
                    self._before[run.run] = dict(held.fetchall())
                if anew:
                    generations = {name: known.generation for name, known in there.items()}
                    check_replaceable(RunRecord(**fields), run, wanted, generations)
                else:
                    check_joinable(RunRecord(**fields), run, len(wanted))
            start = "" if anew else "start_ns = min(start_ns, excluded.start_ns), "
            db.execute(
                f"{insert('runs', RUNS)} ON CONFLICT (run) DO UPDATE SET {start or OVERWRITE}"
                "load = excluded.load, state = excluded.state, labels = excluded.labels",
                row_of("runs", RUNS, replace(run, state=LOADING), in_order=True),
            )
            for source in wanted:
                self._written.pop((source.run, source.source, source.generation), None)
                check_unclaimed(source, there.get(source.source))
                counting = counting_since(source, there.get(source.source), anew=anew)
                db.execute(PUT_SOURCE, row_of("sources", SOURCES, replace(counting, state=LOADING)))

    def packed(self, run: RunRecord, source: SourceRecord, windows: Intervals[Series]) -> Documents:
        """Return whole windows of a source as packed documents."""
        return pack(windows)

    def write(self, run: RunRecord, source: SourceRecord, packed: Documents) -> int:
        """Write whole documents of a source, replacing older ones of the same identity; return how many."""
        if not len(packed):
            return 0
        with self.transaction() as db:
            written = self.put(db, run, source, packed)
        self._written[source.run, source.source, source.generation] += sum(packed.count.tolist())
        return written

    def put(self, db: sqlite3.Connection, run: RunRecord, source: SourceRecord, documents: Documents) -> int:
        """Write documents inside the transaction of the caller; return how many. Raises as `is_current` does."""
        if not is_current(db, run, source):
            return len(documents)
        step = step_of(documents.table, step_in(run, source.step_ns))
        ids = document_ids(self._series_ids(db, source, documents)[documents.series], documents.start_ns, step)
        rows = document_rows(ids, documents, source.generation)
        db.executemany(PUT_DOCUMENT[document_columns(documents)], rows)
        return len(documents)

    def look_again(self) -> None:
        """Forget what is known of the store: series were deleted or renamed, or a write was undone."""
        self._series.clear()
        self._runs = None

    def note_reach(self, db: sqlite3.Connection, spans: Spans) -> None:
        """Write from when to when series reach, inside the transaction of the caller."""
        update = f"UPDATE series SET first_ns = ?, last_ns = ? WHERE {SERIES_KEY}"
        db.executemany(
            update, [(*span, *(getattr(series, column) for column in SERIES_COLUMNS)) for series, span in spans.items()]
        )

    def _series_ids(self, db: sqlite3.Connection, source: SourceRecord, documents: Documents) -> Int:
        """Return the number of each series that has documents, by its code; 0 for the others."""
        ids = np.zeros(len(documents.table), np.int64)
        exact, layout = documents.exact is not None, str(documents.layout)
        for code in np.flatnonzero(np.bincount(documents.series)).tolist():
            series = documents.table[code]
            labels = tuple(getattr(series, column) for column in SERIES_COLUMNS)
            key = labels, layout, source.generation
            if key not in self._series:
                row = db.execute(f"SELECT id, layout FROM series WHERE {SERIES_KEY}", labels).fetchone()
                if row:
                    if row[1] != layout:
                        drop_unlike(db, source, row[0], series)
                    # How far it reaches is that of a reading before, until this one notes its own.
                    reach = "first_ns = NULL, last_ns = NULL"
                    update = f"UPDATE series SET layout = ?, source = ?, exact = max(exact, ?), {reach} WHERE id = ?"
                    db.execute(update, (layout, source.source, exact, row[0]))
                else:
                    new = insert("series", (*SERIES_COLUMNS, "layout", "source", "exact"))
                    row = (db.execute(new, (*labels, layout, source.source, exact)).lastrowid,)
                self._series[key] = int(row[0] or 0)
            ids[code] = self._series[key]
        return ids

    def write_breaths(self, source: SourceRecord, kept: StoredBreaths) -> int:
        """Write the breaths that are kept of a source, replacing documents of the same identity; return how many."""
        with self.transaction() as db:
            return write_breaths(db, source, kept) if is_newest(db, source) else len(kept.windows) + len(kept.sample)

    def breaths(self, run: str) -> StoredBreaths:
        """Return the breaths that are kept of a run."""
        with self._store_errors():
            return breaths_of(self.db, run)

    def finish_source(self, source: SourceRecord, spans: Spans) -> None:
        """Note that a source is complete, from when to when its series reach, and sweep what older generations left of it."""
        with self.transaction() as db:
            if not is_newest(db, source):  # the later reading sweeps what this one has written, and notes its reach
                return
            self.note_reach(db, spans)
            if source.generation > 1:
                written = self._written.pop((source.run, source.source, source.generation), None)
                if written is not None:
                    check_all_there(db, source, written)
                sweep(db, source)
                sweep_breaths(db, source)
            db.execute(
                "UPDATE sources SET state = ?, account = ?, digest = ? WHERE run = ? AND source = ?",
                (COMPLETE, json.dumps(source.account), source.digest, source.run, source.source),
            )
        self._finished.setdefault(source.run, []).append(replace(source, account={}))

    def finish_run(self, run: RunRecord) -> None:
        """Write the run's rollups from its documents and note it complete if all its sources are."""
        with self.transaction() as db:
            check_run(db, run.run)
            finished, before = self._finished.pop(run.run, []), self._before.pop(run.run, None)
            for source in finished:
                is_current(db, run, source)
            watches = fields_of(db, "watches", WATCHES, "WHERE run = ?", (run.run,))
            new = None if before is None or watches else only_new(db, run.run, {source.source for source in finished}, before)
            write_rollups(db, run, final_by_all(Watch(**fields) for fields in watches), new)
            loading = db.execute("SELECT count(*) FROM sources WHERE run = ? AND state = ?", (run.run, LOADING)).fetchone()[0]
            state = LOADING if loading else COMPLETE
            db.execute("UPDATE runs SET state = ?, loaded = ? WHERE run = ?", (state, loaded_now(), run.run))

    def delete_run(self, run: str, *, force: bool = False) -> int:
        """Delete a run with all it holds; return how many documents that were.

        Unless it is to be done by `force`, raises as `check_deletable` does.
        """
        with self.transaction() as db:
            if not force:
                check_deletable(record_named(run, self.runs()))
            numbers = db.execute("SELECT id FROM series WHERE run = ?", (run,)).fetchall()
            deleted = sum(delete_documents(db, number) for (number,) in numbers)
            for table in tables_of_runs(db):
                db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
            self.look_again()
        return deleted

    def coarsen(self, run: str, step_ns: int) -> Coarsened:
        """Add the windows of a run up to a larger step, in one transaction; return what was done."""
        with self.transaction() as db:
            return coarsen(db, record_named(run, self.runs()), step_ns)

    def widen(self, run: str, bins: CoarserBins) -> Widened:
        """Add the bins of a run up to wider ones, in one transaction; return what was done."""
        with self.transaction() as db:
            return widen(db, record_named(run, self.runs()), bins)

    def verify(self, chosen: Chosen, *, mend: bool = False) -> Verification:
        """Return the faults in the runs that `chosen` accepts; with `mend` they are repaired where they can be."""
        from ingest.store.sqlite.verify import mended, verified

        with self._store_errors():
            return mended(self, chosen) if mend else verified(self, chosen)

    def answer(self, question: Question) -> Answer:
        """Return the merged windows that a question asks for, from rollups where they answer, else from documents."""
        question = settled(self, question)
        with self._store_errors(), snapshot(self.db):
            return answer_from(self._holdings, self.runs(), question)

    def catalogue(self) -> Catalogue:
        """Return the records of all runs, with their series and the accounts of their sources."""
        with self._store_errors(), snapshot(self.db):
            return self._holdings.catalogue(self.runs())

    def windows(self, question: Question) -> Iterator[Intervals[Group]]:
        """Yield the selected windows at the stored step under the question's groups, in bounded batches."""
        with self._store_errors(), snapshot(self.db):
            yield from windows_from(self._holdings, self.runs(), question)

    def offset_windows(
        self, run: str, begin_ns: int | None, end_ns: int | None, wanted: AnswerKey | None = None
    ) -> Iterator[Intervals[Series]]:
        """Yield the offsets of a run's events in [begin, end) under their series: 1 ms bins in windows of 1 s."""
        with self._store_errors(), snapshot(self.db):
            yield from self._holdings.offset_windows(run, begin_ns, end_ns, wanted)

    def offset_seconds(self, run: str, begin_ns: int | None, end_ns: int | None) -> Int:
        """Return the starts in ns of the seconds of [begin, end), whole ones, in which a run has any event."""
        with self._store_errors(), snapshot(self.db):
            return self._holdings.offset_seconds(run, begin_ns, end_ns)

    def facts(self, answer: Answer) -> list[tuple[str, str]]:
        """Return (name, value) pairs about the runs of an answer."""
        with self._store_errors():
            chosen = [record for record in self.runs() if record.run in answer.runs]
            return facts_from(self._holdings.catalogue(chosen))

    def mark_all(self, run: str, marks: Sequence[Mapping[str, Any]]) -> None:
        """Note many marks of a run, in one transaction."""
        with self.transaction() as db:
            check_run(db, run)
            rows = [(run, mark["at_ns"], mark["text"], mark.get("end_ns")) for mark in marks]
            db.executemany(put("marks", MARKS), rows)

    def marks_of(self, runs: Iterable[str]) -> list[Mapping[str, Any]]:
        """Return the marks of runs in time order: run, at_ns, text, and end_ns where there is one."""
        with self._store_errors():
            rows = fields_of(self.db, "marks", MARKS, "ORDER BY at_ns, text", runs=set(runs))
            return [noted(**fields) for fields in rows]

    def keep_episodes(self, run: str, objective: str, episodes: Sequence[Episode], judgement: Judgement | None = None) -> None:
        """Write all episodes of an objective in a run and the judgement of it, in place of what an earlier check has left."""
        with self.transaction() as db:
            check_run(db, run)
            keep(db, "episodes", EPISODES, episodes, run=run, objective=objective)
            keep(db, "judgements", JUDGEMENTS, [judgement] if judgement else [], run=run, objective=objective)

    def episodes(self, runs: Iterable[str]) -> list[Episode]:
        """Return the episodes of runs in time order."""
        from ingest.query.episodes import Episode

        with self._store_errors():
            rows = fields_of(self.db, "episodes", EPISODES, "ORDER BY start_ns, run, objective, labels", runs=set(runs))
        own = [{"labels": tuple(fields["labels"].items()), "peak_open": bool(fields["peak_open"])} for fields in rows]
        return [Episode(**{**fields, **more}) for fields, more in zip(rows, own, strict=True)]

    def judgements(self, run: str) -> list[Judgement]:
        """Return what came of the objectives of a run."""
        from ingest.query.episodes import Judgement

        with self._store_errors():
            rows = fields_of(self.db, "judgements", JUDGEMENTS, "ORDER BY objective", runs={run})
        return [Judgement(**fields) for fields in rows]

    def keep_findings(self, run: str, documents: Sequence[StoredFinding]) -> None:
        """Write all findings of a run, in place of those that an earlier load has left."""
        with self.transaction() as db:
            check_run(db, run)
            keep(db, "findings", FINDINGS, documents, run=run)

    def findings_of(self, runs: Iterable[str]) -> list[StoredFinding]:
        """Return the findings that are kept of runs, by run and rank, of whatever state of the run."""
        from ingest.query.story.stored import StoredFinding

        with self._store_errors():
            wanted = sorted(set(runs))
            mine = f"WHERE run IN ({', '.join('?' * len(wanted))}) ORDER BY run, rank"
            return [StoredFinding(**fields) for fields in fields_of(self.db, "findings", FINDINGS, mine, wanted)]
