"""Documents of a SQLite store -> intervals, in bounded batches, decoded in one pass each."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ingest.core.documents import CODINGS, WINDOW_BITS, Documents, id_range, known_only, told_exact, unpacked, window_of
from ingest.core.errors import StoreError
from ingest.core.grid import coarsened
from ingest.core.intervals import NO_BYTES, Int, Intervals
from ingest.core.labels import LABELS, OFFSET, Series
from ingest.core.layout import Layout
from ingest.store.records import COMPLETE, SourceRecord, StoredSeries, not_there
from ingest.store.rollups import RollupKey, layouts_of
from ingest.store.sqlite.file import DamagedError, check_bins, check_cells, check_times, insert, layout_in, put_unless_newer
from ingest.store.sqlite.records import COUNTS_SINCE, OWN_STEP

# SQLite lays the cells of many rows one behind the other, in the order in which it comes by them, in half of the time that it
# takes to hand over each; LISTED is for those that may be NULL.
PACKED = "count(*), group_concat(coding), group_concat(length(bins)), group_concat(count), CAST(group_concat(bins, '') AS BLOB)"
LISTED = "json_group_array({})"
BATCH = 1_000  # rows: to get fresh memory for eight times as many took longer than to decode them
MOST_BYTES = 900_000_000  # of a cell: a billion are none to SQLite
MOST_NAMED = 1000  # in one statement
INTERVALS: tuple[str, ...] = ("id", "count", "coding", "bins", "generation", "sum", "min", "max", "bytes")
PLAIN = INTERVALS[:5]  # of documents without exact values; a NULL that is bound takes as long as a number
INSERT_DOCUMENT = {columns: insert("intervals", columns) for columns in (INTERVALS, PLAIN)}
OWN = ", ".join(("id", "layout", "exact", "first_ns", "last_ns", *LABELS, "segment", "source", "state", "account", "generation"))
OF_SOURCES = f"(SELECT {OWN}, {COUNTS_SINCE} AS since FROM series JOIN sources USING (run, source)) AS own"
# Of a series that no document counts of, the layout and the reach are those of a reading before.
COUNTED = (
    f"(state = '{COMPLETE}' OR EXISTS (SELECT 1 FROM intervals WHERE intervals.id BETWEEN own.id << {WINDOW_BITS} "
    f"AND (own.id << {WINDOW_BITS}) + {(1 << WINDOW_BITS) - 1} AND intervals.generation >= own.since))"
)
PUT_DOCUMENT = {columns: put_unless_newer("intervals", INTERVALS, ("id",), columns) for columns in (INTERVALS, PLAIN)}


def document_columns(documents: Documents) -> tuple[str, ...]:
    """Return the columns of the rows of documents: INTERVALS, or PLAIN where nothing exact is known of them."""
    return PLAIN if documents.exact is None else INTERVALS


def document_rows(ids: Int, documents: Documents, generation: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table of intervals for documents: the columns `document_columns`."""
    columns: list[Sequence[Any]] = [ids.tolist(), documents.count.tolist(), documents.coding.tolist(), documents.blobs.each()]
    columns.append([generation] * len(documents))
    if documents.exact is not None:
        exact = documents.exact
        columns += [known_only(values, known) for values, known in exact.told]
        columns.append(known_only(exact.moved, exact.moved != NO_BYTES))
    yield from zip(*columns, strict=True)


def drop_unlike(db: sqlite3.Connection, source: SourceRecord, number: int, series: Series) -> None:
    """Delete documents of older generations of a series that is read again in another layout: its bins would be misread.

    StoreError where documents of this or a newer generation hold the other layout: a series has one.
    """
    reach = id_range(number, None, None, 1)
    db.execute("DELETE FROM intervals WHERE id BETWEEN ? AND ? AND generation < ?", (*reach, source.generation))
    if db.execute("SELECT 1 FROM intervals WHERE id BETWEEN ? AND ? LIMIT 1", reach).fetchone():
        labels = " ".join(f"{label}={value}" for label in LABELS[1:] if (value := getattr(series, label)))
        raise StoreError(
            f"{source.path}: {source.run} holds other bins under the same labels{f' ({labels})' if labels else ''}: "
            "give --host or another --run"
        )


def count_of(db: sqlite3.Connection, number: int, generation: int | None = None) -> int:
    """Return the sum of the counts of a series' documents, or of those of one generation; it may pass 2^63."""
    query = "SELECT sum(count >> 32), sum(count & 4294967295) FROM intervals WHERE id BETWEEN ? AND ?"
    values: tuple[int, ...] = id_range(number, None, None, 1)
    if generation is not None:
        query, values = f"{query} AND generation = ?", (*values, generation)
    high, low = db.execute(query, values).fetchone()
    return ((high or 0) << 32) + (low or 0)


def numbers_of(db: sqlite3.Connection, run: str, source: str) -> list[int]:
    """Return the numbers of the series of a source."""
    return [number for (number,) in db.execute("SELECT id FROM series WHERE run = ? AND source = ?", (run, source))]


def delete_documents(db: sqlite3.Connection, number: int) -> int:
    """Delete all documents of a series; return how many."""
    return db.execute("DELETE FROM intervals WHERE id BETWEEN ? AND ?", id_range(number, None, None, 1)).rowcount


def check_all_there(db: sqlite3.Connection, source: SourceRecord, samples: int) -> None:
    """Raise StoreError where a generation of a source does not hold all that was written; asked before older ones go."""
    held = sum(count_of(db, number, source.generation) for number in numbers_of(db, source.run, source.source))
    if held != samples:
        raise not_there(source, samples, held)


def sweep(db: sqlite3.Connection, source: SourceRecord) -> None:
    """Delete the documents that older generations of a source have left, and the series that have none any more."""
    for number in numbers_of(db, source.run, source.source):
        first, last = id_range(number, None, None, 1)
        db.execute("DELETE FROM intervals WHERE id BETWEEN ? AND ? AND generation < ?", (first, last, source.generation))
        if not db.execute("SELECT 1 FROM intervals WHERE id BETWEEN ? AND ? LIMIT 1", (first, last)).fetchone():
            db.execute("DELETE FROM series WHERE id = ?", (number,))


def stored_series(
    db: sqlite3.Connection, runs: Iterable[str], only: str = "", values: Sequence[object] = ()
) -> list[StoredSeries]:
    """Return the series of the runs, by number: those that documents count of, by the records of their sources.

    `only` is a condition of SQL for those that are wanted, with its `values`.
    """
    wanted = set(runs)
    columns = ("id", "layout", "exact", "first_ns", "last_ns", *LABELS, "segment")
    few = f"run IN ({', '.join('?' * len(wanted))})" if len(wanted) <= MOST_NAMED else ""
    conditions = " AND ".join(filter(None, (few, only, COUNTED)))
    query = f"SELECT {', '.join(columns)}, state, since, {OWN_STEP} FROM {OF_SOURCES} WHERE {conditions} ORDER BY id"
    rows = db.execute(query, (*(wanted if few else ()), *values)).fetchall()
    check_cells("series", columns, [row[: len(columns)] for row in rows])
    check_cells("sources", ("state", "generation"), [row[len(columns) : -1] for row in rows])
    return [
        StoredSeries(number, Series(*labels), layout_in(layout), bool(exact), first, last, since, step)
        for number, layout, exact, first, last, *labels, _, since, step in rows
        if labels[0] in wanted
    ]


def layouts_in(db: sqlite3.Connection, run: str) -> dict[RollupKey, Layout]:
    """Return the layouts of the rollups of a run; of thousands of series each group and layout is looked at once."""
    columns = ("layout", *LABELS)
    query = (
        f"SELECT {', '.join(columns)} FROM {OF_SOURCES} WHERE run = ? AND kind != ? AND {COUNTED} GROUP BY host, op, kind, layout"
    )
    rows = db.execute(query, (run, OFFSET)).fetchall()
    check_cells("series", columns, rows)
    return layouts_of(StoredSeries(0, Series(*labels), layout_in(layout), exact=False) for layout, *labels in rows)


def starts_of(db: sqlite3.Connection, number: int, step_ns: int) -> Int:
    """Return the starts of the windows of a series, of its own width, in order."""
    ids = db.execute("SELECT id FROM intervals WHERE id BETWEEN ? AND ?", id_range(number, None, None, step_ns)).fetchall()
    return window_of(np.array(ids, np.int64).reshape(-1), step_ns)


def windows_of(
    db: sqlite3.Connection, stored: Sequence[StoredSeries], step_ns: int, begin_ns: int | None = None, end_ns: int | None = None
) -> Iterator[Intervals[Series]]:
    """Yield the windows of series whose start lies in [floor(begin), end), in batches of one layout and kind of counts.

    Those of series that have windows of their own, narrower ones, are not yet added up to the step.
    """
    kinds: dict[tuple[Layout, bool, bool, int], list[StoredSeries]] = {}
    for member in stored:
        kinds.setdefault((member.layout, member.exact, member.weighted, member.step_ns or step_ns), []).append(member)
    for (layout, exact, _, own_ns), members in kinds.items():
        values = (("sum", "min", "max") if layout.has_bins else ("sum", "min", "max", "bytes")) if exact else ()
        columns = ", ".join(("id", "coding", "bins", "count", *values))
        some = f"SELECT {columns} FROM intervals WHERE id BETWEEN ? AND ? AND generation >= ? ORDER BY id LIMIT ?"
        query = f"SELECT {', '.join(('max(id)', 'group_concat(id)', PACKED, *map(LISTED.format, values)))} FROM ({some})"
        most = min(BATCH, most_rows(layout))
        held, room = list[tuple[Any, ...]](), most
        for member in members:
            first, last = id_range(member.number, begin_ns, end_ns, own_ns)
            while first <= last:
                found = db.execute(query, (first, last, member.since, room)).fetchone()
                if found[0] is None:
                    break
                held.append(found)
                first, room = found[0] + 1, room - found[2]
                if room:  # there are no more
                    break
                yield coarsened(_decoded(held, members, own_ns), step_ns)
                held, room = [], most
        if held:
            yield coarsened(_decoded(held, members, own_ns), step_ns)


def most_rows(layout: Layout) -> int:
    """Return how many rows with bins of a layout surely fit one cell."""
    return max(1, MOST_BYTES // (CODINGS[max(CODINGS)].itemsize * layout.bins))


def numbers_in(texts: Sequence[str], rows: int) -> Int:
    """Return the numbers that texts of group_concat hold; DamagedError where they are not so many."""
    found = np.fromstring(",".join(texts), np.int64, sep=",")
    if len(found) != rows:
        raise DamagedError("a number that is none")
    return found


class Packed(NamedTuple):
    """The cells PACKED of some rows: how many each is of, and their texts."""

    number: tuple[int, ...]
    coding: tuple[str, ...]
    sizes: tuple[str, ...]
    totals: tuple[str, ...]
    bins: tuple[bytes, ...]

    def entries(self) -> tuple[Int, Int, Int, Int]:
        """Return row pointers, bins and counts of all, and the count beside each."""
        coding, sizes, totals = (numbers_in(texts, sum(self.number)) for texts in (self.coding, self.sizes, self.totals))
        return *unpacked(coding, sizes, b"".join(self.bins)), totals


def listed_in(texts: Sequence[str]) -> list[Any]:
    """Return the values that texts of LISTED hold."""
    return [value for text in texts for value in json.loads(text)]


def _decoded(held: Sequence[tuple[Any, ...]], members: Sequence[StoredSeries], step_ns: int) -> Intervals[Series]:
    """Return the windows of rows of series of one layout and kind of counts."""
    layout, exact, weighted = members[0].layout, members[0].exact, members[0].weighted
    _, numbers, *cells = zip(*held, strict=True)
    packed, values = Packed(*cells[: len(Packed._fields)]), cells[len(Packed._fields) :]
    indptr, bins, counts, count = packed.entries()
    check_bins(layout, indptr, bins, counts, None if weighted else count)
    ids = numbers_in(numbers, len(count))
    start = window_of(ids, step_ns)
    check_times(window_of(ids, 1) * float(step_ns))  # a product of 64 bits would wrap
    known = np.array([member.number for member in members], np.int64)
    order = np.argsort(known)
    codes = order[np.searchsorted(known[order], ids >> WINDOW_BITS)]
    return Intervals(
        layout=layout,
        table=tuple(member.series for member in members),
        series=codes,
        start_ns=start,
        end_ns=start + step_ns,
        indptr=indptr,
        bins=bins,
        counts=counts,
        exact=told_exact(*map(listed_in, values)) if exact else None,
        completions=count if weighted else None,
    )
