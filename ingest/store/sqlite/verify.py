"""Verifying a SQLite store: every document decoded, sums against accounts, every rollup made again and compared.

Faults are looked for in one snapshot. Mending is one transaction, which looks for them once more: others may have written in
between.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ingest.core.documents import CODINGS, WINDOW_BITS, id_range, unpack, window_of
from ingest.core.errors import InputError, StoreError
from ingest.core.grid import SECOND
from ingest.core.labels import IN_FLIGHT, LABELS, OFFSET
from ingest.core.layout import Layout, parse_layout
from ingest.core.units import number, utc
from ingest.store.lifecycle import step_in
from ingest.store.live import final_by_all
from ingest.store.records import COMPLETE, LOADING, RunRecord, SourceRecord
from ingest.store.sqlite.documents import delete_documents
from ingest.store.sqlite.file import DamagedError, check_bins, snapshot, tables_of_runs
from ingest.store.sqlite.records import CODING as CELLS_CODING
from ingest.store.sqlite.rollups import OF_KEY, rollup_rows, write_rollups
from ingest.store.sqlite.rollups import ROLLUPS as ROLLUPS_COLUMNS
from ingest.store.verify import BINS, FILE, LAYOUTS, NO_RUN, NO_SERIES, STATES, Chosen, Reading, Verification, Verifier, in_words

if TYPE_CHECKING:
    from ingest.store.sqlite.store import SqliteStore


BATCH = 8_000
HAS_SOURCE = "SELECT 1 FROM pragma_table_info(?, 'main') WHERE name = 'source'"
COMPARED = ("end_ns", "layout", "count", "sum", "coding", "bins", "bytes")  # what is derived from them may be an older version's
ROLLUP_AT = f"SELECT {', '.join(COMPARED)} FROM rollups WHERE {' AND '.join(f'{name} = ?' for name in OF_KEY)}"
KEY_OF_ROLLUP, HELD_BY_ROLLUP = (itemgetter(*map(ROLLUPS_COLUMNS.index, names)) for names in (OF_KEY, COMPARED))
CELL = ("scope", "kind", "step_ns", "op", "host")
CELL_OF_ROLLUP = itemgetter(*map(ROLLUPS_COLUMNS.index, CELL))


def verified(store: SqliteStore, chosen: Chosen) -> Verification:
    """Return the faults of an open store, all as of one moment; for a damaged file only that."""
    verification = damage(store.db)
    if verification.findings:
        return verification
    with snapshot(store.db):
        return SqliteVerifier(store, chosen).verify()


def mended(store: SqliteStore, chosen: Chosen) -> Verification:
    """Return the faults, once they are repaired: they are looked for again in one write transaction."""
    verification = verified(store, chosen)
    if not verification.findings or verification.of(FILE):
        return verification
    with store.transaction():
        verifier = SqliteVerifier(store, chosen)
        verification = verifier.verify()
        verifier.mend()
    return verification


def damage(db: sqlite3.Connection) -> Verification:
    """Return the faults of the file that SQLite itself finds; asked outside of any transaction, as that could not end well."""
    verification = Verification()
    try:
        messages = [text for (text,) in db.execute("PRAGMA integrity_check(100)").fetchall()]
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            raise
        messages = [str(error)]
    if messages != ["ok"]:
        verification.found(FILE, "", len(messages), str(messages[0]).splitlines()[-1])
    return verification


@dataclass(frozen=True, slots=True)
class Stored:
    """A series as its row has it."""

    number: int
    labels: Mapping[str, str]
    layout: str
    source: str

    @property
    def words(self) -> str:
        """Return it for people."""
        return in_words(self.labels)


class SqliteVerifier(Verifier):
    """Verifies the runs of an open database that `chosen` accepts; where it accepts all, also rows that belong to no run."""

    one_moment = True

    def __init__(self, store: SqliteStore, chosen: Chosen) -> None:
        super().__init__(chosen)
        self.store, self.db = store, store.db
        self.documents: list[int] = []  # all to be deleted: documents by id, series by number, rows by table and condition
        self.numbers: list[int] = []
        self.rows: list[tuple[str, str, tuple[object, ...]]] = []

    def records(self) -> tuple[list[RunRecord], list[SourceRecord]]:
        """Return the records of all runs, and of the sources of those that are chosen."""
        records = self.store.runs()
        return records, [source for record in records if self.chosen(record.run) for source in self.store.sources(record.run)]

    def unowned(self) -> Iterator[tuple[str, str, int, str]]:
        """Yield kind, run, number and words of rows that belong to no run or source, and of documents without a series."""
        for table in tables_of_runs(self.db):
            whose = table != "sources" and self.db.execute(HAS_SOURCE, (table,)).fetchone()
            source = "source" if whose else "NULL"
            if table == "series":
                for run, name, number_ in self.db.execute("SELECT run, source, id FROM series").fetchall():
                    if kind := self.owner(run, name):
                        yield kind, run, self._orphans(number_), f"documents of {run} from {name}"
                continue
            query = f"SELECT run, {source}, count(*) FROM main.{table} GROUP BY 1, 2"
            for run, name, count in self.db.execute(query).fetchall() if table != "runs" else ():
                if kind := self.owner(run, name):
                    yield kind, run, count, f"{table} of {run}"
                    owned, words = ("run = ?", (run,)) if kind == NO_RUN else ("run = ? AND source = ?", (run, name))
                    self.rows.append((table, owned, words))
        if self.chosen(""):
            known = {number for (number,) in self.db.execute("SELECT id FROM series")}
            for number_ in self._numbers():
                if number_ not in known:
                    yield NO_SERIES, "", self._orphans(number_), f"the documents from {number_ << WINDOW_BITS} on"

    def _orphans(self, series: int) -> int:
        """Return how many documents a series has that belongs to nobody; it is to be deleted with them."""
        self.numbers.append(series)
        count = self.db.execute("SELECT count(*) FROM intervals WHERE id BETWEEN ? AND ?", id_range(series, None, None, 1))
        return max(1, int(count.fetchone()[0]))

    def _numbers(self) -> Iterator[int]:
        """Yield the numbers of all series that documents bear, one lookup each."""
        query, low = "SELECT id FROM intervals WHERE id >= ? ORDER BY id LIMIT 1", -(2**63)
        while (row := self.db.execute(query, (low,)).fetchone()) is not None:
            number = row[0] >> WINDOW_BITS
            yield number
            low = (number + 1) << WINDOW_BITS

    def misstated(self) -> None:
        """Note the runs that are marked complete although some of their sources are not."""
        for record in self.runs.values():
            own = [source for (run, _), source in self.sources.items() if run == record.run and source.state != COMPLETE]
            if record.state == COMPLETE and own:
                self.found.found(STATES, record.run, 1, f"{record.run}: {own[0].path} is not complete")
                self.found.again |= {source.source: source.path for source in own}
                for source in own:
                    self.read_again(source)

    def readings(self) -> Iterator[Reading]:
        """Yield what each batch of documents holds by reading, once they were decoded; then breaths are looked at."""
        for record in self.runs.values():
            for stored in self._series(record.run):
                if source := self.sources.get((record.run, stored.source)):
                    yield from self._readings_of(record, stored, source)
            self._breaths(record.run)

    def _readings_of(self, record: RunRecord, stored: Stored, source: SourceRecord) -> Iterator[Reading]:
        try:
            layout = parse_layout(stored.layout)
            layout.lower  # noqa: B018  # one that reaches too far has none
        except (ValueError, InputError):
            self.found.found(LAYOUTS, record.run, 1, f"{stored.words} has the layout {stored.layout!r}")
            self.numbers.append(stored.number)
            self.read_again(source)
            return
        query = "SELECT id, count, coding, bins, generation FROM intervals WHERE id BETWEEN ? AND ?"
        cursor = self.db.execute(query, id_range(stored.number, None, None, 1))
        whose = (record.run, stored.source, stored.number, stored.words, stored.labels["kind"], stored.layout, None)
        while rows := cursor.fetchmany(BATCH):
            self.found.documents += len(rows)
            fine = self._decoded(record, stored, layout, source, rows)
            for generation in sorted({row[4] for row in fine}):
                mine = [row for row in fine if row[4] == generation]
                samples, ids = sum(row[1] for row in mine), [row[0] for row in mine]
                yield Reading(*whose, generation, len(mine), samples, binned=None, place=ids)

    def _series(self, run: str) -> list[Stored]:
        columns = f"id, {', '.join(LABELS)}, layout, source"
        rows = self.db.execute(f"SELECT {columns} FROM series WHERE run = ? ORDER BY id", (run,)).fetchall()
        return [Stored(row[0], dict(zip(LABELS, row[1:-2], strict=True)), *row[-2:]) for row in rows]

    def _decoded(
        self, record: RunRecord, stored: Stored, layout: Layout, source: SourceRecord, rows: Sequence[tuple[Any, ...]]
    ) -> list[tuple[Any, ...]]:
        """Return the documents that hold bins of their layout that add up to their count; the others are noted."""
        weights = stored.labels["kind"].endswith(IN_FLIGHT)
        if fit(layout, rows, weights=weights):
            return list(rows)
        good = [row for row in rows if fit(layout, [row], weights=weights)]
        kept = {row[0] for row in good}
        bad = [row[0] for row in rows if row[0] not in kept]
        step = SECOND if stored.labels["kind"] == OFFSET else step_in(record, source.step_ns)
        self.found.found(BINS, record.run, len(bad), f"{stored.words}, window {utc(int(window_of(np.array(bad[:1]), step)[0]))}")
        self.documents += bad
        self.read_again(source)
        return good

    def _breaths(self, run: str) -> None:
        width = CODINGS[CELLS_CODING].itemsize
        query = f"SELECT rowid, source FROM breaths WHERE run = ? AND length(cells) % {width} <> 0"
        rows = self.db.execute(query, (run,)).fetchall()
        for row, name in rows:
            self.rows.append(("breaths", "rowid = ?", (row,)))
            if (run, name) in self.sources:
                self.read_again(self.sources[run, name])
        self.found.found(BINS, run, len(rows), f"breaths of {run}")

    def unlike_rollups(self, record: RunRecord) -> Iterator[tuple[int, str]]:
        """Make every rollup of a run again, and compare its counts with the stored ones; not where documents are faulty."""
        if any(finding.run == record.run for finding in self.found.of(BINS, LAYOUTS, STATES)):
            return
        wanted: Counter[tuple[Any, ...]] = Counter()
        differ, first = 0, ""
        try:
            for row in chain.from_iterable(rollup_rows(self.db, record)):
                wanted[CELL_OF_ROLLUP(row)] += 1
                there = self.db.execute(ROLLUP_AT, KEY_OF_ROLLUP(row)).fetchone()
                if there != HELD_BY_ROLLUP(row):
                    differ += 1
                    start = row[ROLLUPS_COLUMNS.index("start_ns")]
                    what = "other" if there else "none"
                    first = first or f"{what} at {_cell(CELL_OF_ROLLUP(row))}, window {utc(start)}"
        except (InputError, StoreError) as error:
            yield 1, f"{record.run}: {error}"
        query = f"SELECT {', '.join(CELL)}, count(*) FROM rollups WHERE run = ? GROUP BY {', '.join(CELL)}"
        for *cell, count in self.db.execute(query, (record.run,)):
            surplus = count - wanted[tuple(cell)]
            if surplus > 0:
                differ += surplus
                first = first or f"{surplus} too many at {_cell(tuple(cell))}"
        if differ:
            yield differ, f"{record.run}: {first}"

    def drop(self, reading: Reading, source: SourceRecord) -> None:
        """Note that the documents of an older reading are to be deleted."""
        self.documents += reading.place

    def delete(self) -> None:
        """Delete all that was noted, inside the write transaction of the caller."""
        for table, condition, words in self.rows:
            self.db.execute(f"DELETE FROM {table} WHERE {condition}", words)
        for series in self.numbers:
            delete_documents(self.db, series)
            self.db.execute("DELETE FROM series WHERE id = ?", (series,))
        self.db.executemany("DELETE FROM intervals WHERE id = ?", ((document,) for document in self.documents))

    def reopen(self, source: SourceRecord) -> None:
        """Mark a source and its run incomplete, so that the next load reads it again."""
        self.db.execute(
            "UPDATE sources SET state = ?, digest = '', generation = ? WHERE run = ? AND source = ?",
            (LOADING, source.generation, source.run, source.source),
        )
        self.db.execute("UPDATE runs SET state = ? WHERE run = ?", (LOADING, source.run))

    def roll(self, run: str) -> None:
        """Make all rollups of a run again, if the run is there."""
        if run in self.runs:
            write_rollups(self.db, self.runs[run], final_by_all(()))


def _cell(cell: tuple[Any, ...]) -> str:
    scope, kind, step, op, host = cell
    width = f"{number(step / SECOND)}s" if step else "all"
    return in_words({"scope": scope, "kind": kind, "op": op, "host": host, "step": width})


def fit(layout: Layout, rows: Sequence[tuple[Any, ...]], *, weights: bool) -> bool:
    """Return whether documents (id, count, coding, bins) hold filled bins of their layout, and their count; of weights any."""
    size = {code: record.itemsize for code, record in CODINGS.items()}
    if not all(isinstance(row[3], bytes) and row[2] in size and len(row[3]) % size[row[2]] == 0 for row in rows):
        return False
    indptr, bins, counts = unpack(np.array([row[2] for row in rows], np.int64), [row[3] for row in rows])
    try:
        check_bins(layout, indptr, bins, counts, None if weights else [row[1] for row in rows])
    except DamagedError:
        return False
    emptied = weights and any(row[1] and not held for row, held in zip(rows, np.diff(indptr).tolist(), strict=True))
    return bool((counts > 0).all()) and not emptied
