"""Verifying a SQLite store: every document decoded, sums against accounts, every rollup made again and compared.

Faults are looked for in one snapshot. Mending is one transaction, which looks for them once more: others may have written in
between.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.dataclass import dataclass
from ingest.core.documents import CODINGS, WINDOW_BITS, id_range, unpack, window_of
from ingest.core.errors import InputError, StoreError
from ingest.core.grid import SECOND
from ingest.core.intervals import Int
from ingest.core.layout import Layout, parse_layout
from ingest.core.series import IN_FLIGHT, LABELS, OFFSET
from ingest.core.writing import number, utc
from ingest.store.live import final_by_all
from ingest.store.records import COMPLETE, LOADING, RunRecord, SourceRecord
from ingest.store.sqlite.breaths import CODING as CELLS_CODING
from ingest.store.sqlite.file import snapshot, tables_of_runs
from ingest.store.sqlite.rollups import OF_KEY, rollup_rows, write_rollups
from ingest.store.sqlite.rollups import ROLLUPS as ROLLUPS_COLUMNS
from ingest.store.verify import (
    BINS,
    FILE,
    GENERATIONS,
    LAYOUTS,
    NO_RUN,
    NO_SERIES,
    NO_SOURCE,
    ROLLUPS,
    SAMPLES,
    STATES,
    Chosen,
    Verification,
    in_words,
    is_whole,
    note_again,
    samples_differ,
    unfinished_sentence,
)

if TYPE_CHECKING:
    from ingest.store.sqlite.store import SqliteStore

BATCH = 8_000
NO_RUN_OF = "t.run NOT IN (SELECT run FROM runs)"
NO_SOURCE_OF = (
    "t.run IN (SELECT run FROM runs) AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.run = t.run AND s.source = t.source)"
)
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
        return _verifier(store, chosen).verify()


def mended(store: SqliteStore, chosen: Chosen) -> Verification:
    """Return the faults, once they are repaired: they are looked for again in one write transaction."""
    verification = verified(store, chosen)
    if not verification.findings or verification.of(FILE):
        return verification
    with store.transaction():
        verifier = _verifier(store, chosen)
        verification = verifier.verify()
        verifier.mend()
    return verification


def _verifier(store: SqliteStore, chosen: Chosen) -> SqliteVerifier:
    records = store.runs()
    sources = {record.run: store.sources(record.run) for record in records if chosen(record.run)}
    return SqliteVerifier(store.db, records, sources, chosen)


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


@dataclass(slots=True)
class Wrong:
    """What has to be mended: documents to delete by id, series without owner, sources to be read again, rollups to be made."""

    documents: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    rows: list[tuple[str, str, tuple[object, ...]]] = field(default_factory=list)
    sources: dict[tuple[str, str], SourceRecord] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    rolled: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Stored:
    """A series as its row has it: number, labels, segment, layout, source."""

    number: int
    labels: Mapping[str, str]
    segment: int
    layout: str
    source: str

    @property
    def words(self) -> str:
        """Return it for people."""
        return in_words(self.labels)


class SqliteVerifier:
    """Verifies the runs of an open database that `chosen` accepts; with `everything` also rows that belong to no run at all."""

    def __init__(
        self, db: sqlite3.Connection, records: Sequence[RunRecord], sources: Mapping[str, Sequence[SourceRecord]], chosen: Chosen
    ) -> None:
        self.db = db
        self.records = [record for record in records if chosen(record.run)]
        self.sources = sources
        self.chosen = chosen
        self.everything = chosen("")
        self.found = Verification(runs=len(self.records))
        self.wrong = Wrong()

    def verify(self) -> Verification:
        """Return the faults; nothing is changed."""
        self._owners()
        for record in self.records:
            self._run(record)
        return self.found

    def mend(self) -> None:
        """Repair the faults, inside the write transaction of the caller."""
        for table, condition, words in self.wrong.rows:
            self.db.execute(f"DELETE FROM {table} AS t WHERE {condition}", words)
        for series in self.wrong.numbers:
            self.db.execute("DELETE FROM intervals WHERE id BETWEEN ? AND ?", id_range(series, None, None, 1))
            self.db.execute("DELETE FROM series WHERE id = ?", (series,))
        self.db.executemany("DELETE FROM intervals WHERE id = ?", ((document,) for document in self.wrong.documents))
        for (run, source), record in self.wrong.sources.items():
            self.db.execute(
                "UPDATE sources SET state = ?, digest = '', generation = ? WHERE run = ? AND source = ?",
                (LOADING, record.generation, run, source),
            )
            self.found.again[source] = record.path
        for run in self.wrong.opened | {run for run, _ in self.wrong.sources}:
            self.db.execute("UPDATE runs SET state = ? WHERE run = ?", (LOADING, run))
        by_name = {record.run: record for record in self.records}
        for run in sorted(self.wrong.rolled | {run for run, _ in self.wrong.sources}):
            if run in by_name:
                write_rollups(self.db, by_name[run], final_by_all(()))
        self.found.mended = True

    def _owners(self) -> None:
        """Look for rows that belong to runs, sources or series that are not there."""
        tables = tables_of_runs(self.db)
        for table in tables:
            if table != "runs":
                self._unowned(table, NO_RUN, NO_RUN_OF)
        for table in tables:
            if table != "sources" and self.db.execute(HAS_SOURCE, (table,)).fetchone():
                self._unowned(table, NO_SOURCE, NO_SOURCE_OF)
        if self.everything:
            known = {number for (number,) in self.db.execute("SELECT id FROM series")}
            for number in self._numbers():
                if number not in known:
                    self._orphans(NO_SERIES, "", number, f"the documents from {number << WINDOW_BITS} on")

    def _unowned(self, table: str, kind: str, condition: str) -> None:
        """Note the rows of a table that meet a condition by which nobody owns them; of series all their documents."""
        if table == "series":
            query = f"SELECT run, source, id FROM series AS t WHERE {condition}"
            for run, source, number in self.db.execute(query).fetchall():
                if self.chosen(run):
                    self._orphans(kind, run, number, f"documents of {run} from {source}")
            return
        query = f"SELECT run, count(*) FROM main.{table} AS t WHERE {condition} GROUP BY run"
        for run, count in self.db.execute(query).fetchall():
            if self.chosen(run):
                self.found.found(kind, run, count, f"{table} of {run}")
                self.wrong.rows.append((table, f"run = ? AND {condition}", (run,)))

    def _orphans(self, kind: str, run: str, series: int, example: str) -> None:
        """Note all documents of a series that belongs to nobody, and the series itself."""
        count = self.db.execute("SELECT count(*) FROM intervals WHERE id BETWEEN ? AND ?", id_range(series, None, None, 1))
        self.found.found(kind, run, max(1, count.fetchone()[0]), example)
        self.wrong.numbers.append(series)
        self.wrong.rolled.add(run)

    def _numbers(self) -> Iterator[int]:
        """Yield the numbers of all series that documents bear, one lookup each."""
        query, low = "SELECT id FROM intervals WHERE id >= ? ORDER BY id LIMIT 1", -(2**63)
        while (row := self.db.execute(query, (low,)).fetchone()) is not None:
            number = row[0] >> WINDOW_BITS
            yield number
            low = (number + 1) << WINDOW_BITS

    def _run(self, record: RunRecord) -> None:
        sources = {entry.source: entry for entry in self.sources.get(record.run, ())}
        if record.state == COMPLETE and (open_ := [entry for entry in sources.values() if entry.state != COMPLETE]):
            self.found.found(STATES, record.run, 1, f"{record.run}: {open_[0].path} is not complete")
            self.wrong.opened.add(record.run)
            self.found.again |= {entry.source: entry.path for entry in open_}
        whole = is_whole(record)
        if not whole:
            self.found.unfinished.append(unfinished_sentence(record, list(sources.values())))
        before = len(self.found.of(BINS, LAYOUTS, STATES))
        samples = self._documents(record, sources, whole=whole)
        for source in sources.values():
            if whole and (text := samples_differ(source, samples.get(source.source, 0))):
                self.found.found(SAMPLES, record.run, 1, text)
                self._read_again(source)
        self._breaths(record, sources)
        if whole and record.run not in self.wrong.opened and len(self.found.of(BINS, LAYOUTS, STATES)) == before:
            self._rollups(record)

    def _read_again(self, source: SourceRecord, generation: int = 0) -> None:
        note_again(self.wrong.sources, source, generation)

    def _documents(self, record: RunRecord, sources: Mapping[str, SourceRecord], *, whole: bool) -> dict[str, int]:
        """Return how many samples of its last reading each source has, offsets left out, once all documents were looked at."""
        samples: dict[str, int] = {}
        for stored in self._series(record.run):
            source = sources.get(stored.source)
            if source is None:
                continue
            try:
                layout = parse_layout(stored.layout)
                layout.edges  # noqa: B018  # one that reaches too far has none
            except (ValueError, InputError):
                self.found.found(LAYOUTS, record.run, 1, f"{stored.words} has the layout {stored.layout!r}")
                self.wrong.numbers.append(stored.number)
                self._read_again(source)
                continue
            query = "SELECT id, count, coding, bins, generation FROM intervals WHERE id BETWEEN ? AND ?"
            cursor = self.db.execute(query, id_range(stored.number, None, None, 1))
            while rows := cursor.fetchmany(BATCH):
                self.found.documents += len(rows)
                good = self._decoded(record, stored, layout, source, rows)
                mine = [row for row, fine in zip(rows, good.tolist(), strict=True) if fine]
                if stored.labels["kind"] != OFFSET:
                    last = sum(row[1] for row in mine if row[4] == source.generation)
                    samples[stored.source] = samples.get(stored.source, 0) + last
                self._generations(record, stored, source, mine, whole=whole)
        return samples

    def _series(self, run: str) -> list[Stored]:
        columns = f"id, {', '.join(LABELS)}, segment, layout, source"
        rows = self.db.execute(f"SELECT {columns} FROM series WHERE run = ? ORDER BY id", (run,)).fetchall()
        return [Stored(row[0], dict(zip(LABELS, row[1:-3], strict=True)), *row[-3:]) for row in rows]

    def _decoded(
        self, record: RunRecord, stored: Stored, layout: Layout, source: SourceRecord, rows: Sequence[tuple[Any, ...]]
    ) -> NDArray[np.bool_]:
        """Return which documents hold bins of their layout that add up to their count; the others are noted."""
        good = readable([row[2] for row in rows], [row[3] for row in rows])
        at = np.flatnonzero(good)
        if len(at):
            coding = np.array([rows[place][2] for place in at.tolist()], np.int64)
            indptr, bins, counts = unpack(coding, [rows[place][3] for place in at.tolist()])
            total = None
            if not stored.labels["kind"].endswith(IN_FLIGHT):
                total = np.array([rows[place][1] for place in at.tolist()], np.int64)
            good[at] = sound(indptr, bins, counts, layout.bins, total)
        bad = np.flatnonzero(~good).tolist()
        if bad:
            step = SECOND if stored.labels["kind"] == OFFSET else record.step_ns
            start = int(window_of(np.array([rows[bad[0]][0]]), step)[0])
            self.found.found(BINS, record.run, len(bad), f"{stored.words}, window {utc(start)}")
            self.wrong.documents += [rows[place][0] for place in bad]
            self._read_again(source)
        return good

    def _generations(
        self, record: RunRecord, stored: Stored, source: SourceRecord, rows: Sequence[tuple[Any, ...]], *, whole: bool
    ) -> None:
        older = [row[0] for row in rows if row[4] < source.generation] if whole and source.state == COMPLETE else []
        newer = [row for row in rows if row[4] > source.generation]
        if older:
            self.found.found(GENERATIONS, record.run, len(older), f"{stored.words}, from {source.path}")
            self.wrong.documents += older
            self.wrong.rolled.add(record.run)
        if newer:
            self.found.found(GENERATIONS, record.run, len(newer), f"{stored.words}, from {source.path}")
            self._read_again(source, max(row[4] for row in newer))

    def _breaths(self, record: RunRecord, sources: Mapping[str, SourceRecord]) -> None:
        width = CODINGS[CELLS_CODING].itemsize
        query = f"SELECT rowid, source FROM breaths WHERE run = ? AND length(cells) % {width} <> 0"
        rows = self.db.execute(query, (record.run,)).fetchall()
        for row, name in rows:
            self.wrong.rows.append(("breaths", "rowid = ?", (row,)))
            if name in sources:
                self._read_again(sources[name])
        self.found.found(BINS, record.run, len(rows), f"breaths of {record.run}")

    def _rollups(self, record: RunRecord) -> None:
        """Make every rollup of a run again, and compare its counts with the stored ones."""
        wanted: Counter[tuple[Any, ...]] = Counter()
        differ, first = 0, ""
        for rows in self._made_again(record):
            for row in rows:
                wanted[CELL_OF_ROLLUP(row)] += 1
                there = self.db.execute(ROLLUP_AT, KEY_OF_ROLLUP(row)).fetchone()
                if there != HELD_BY_ROLLUP(row):
                    differ += 1
                    start = row[ROLLUPS_COLUMNS.index("start_ns")]
                    what = "other" if there else "none"
                    first = first or f"{what} at {_cell(CELL_OF_ROLLUP(row))}, window {utc(start)}"
        query = f"SELECT {', '.join(CELL)}, count(*) FROM rollups WHERE run = ? GROUP BY {', '.join(CELL)}"
        for *cell, count in self.db.execute(query, (record.run,)):
            surplus = count - wanted[tuple(cell)]
            if surplus > 0:
                differ += surplus
                first = first or f"{surplus} too many at {_cell(tuple(cell))}"
        if differ:
            self.found.found(ROLLUPS, record.run, differ, f"{record.run}: {first}")
            self.wrong.rolled.add(record.run)

    def _made_again(self, record: RunRecord) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of all rollups of a run as its documents make them."""
        try:
            yield from rollup_rows(self.db, record)
        except (InputError, StoreError) as error:
            self.found.found(ROLLUPS, record.run, 1, f"{record.run}: {error}")
            self.wrong.rolled.add(record.run)


def _cell(cell: tuple[Any, ...]) -> str:
    scope, kind, step, op, host = cell
    width = f"{number(step / SECOND)}s" if step else "all"
    return in_words({"scope": scope, "kind": kind, "op": op, "host": host, "step": width})


def readable(codings: Sequence[Any], blobs: Sequence[Any]) -> NDArray[np.bool_]:
    """Return which packed bins have a size that their coding can have."""
    size = {code: record.itemsize for code, record in CODINGS.items()}
    return np.array(
        [
            isinstance(blob, bytes) and coding in size and len(blob) % size[coding] == 0
            for coding, blob in zip(codings, blobs, strict=True)
        ],
        np.bool_,
    )


def sound(indptr: Int, bins: Int, counts: Int, most: int, total: Int | None) -> NDArray[np.bool_]:
    """Return which rows hold increasing bins below `most` with positive counts; with `total` those that add up to it."""
    widths = np.diff(indptr)
    row = np.repeat(np.arange(len(widths)), widths)
    wrong = (bins >= most) | (counts <= 0)
    wrong[1:] |= (np.diff(bins) <= 0) & (row[1:] == row[:-1])
    good = np.ones(len(widths), np.bool_)
    good[row[wrong]] = False
    if total is not None:
        sums = np.zeros(len(widths), np.int64)
        np.add.at(sums, row, counts)
        good &= sums == total
    return good
