"""The data of a SQLite store that questions are answered from: catalogue, merged rollups, windows of documents."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ingest.core.documents import id_range, told_exact, unpack, window_of
from ingest.core.grid import SECOND
from ingest.core.intervals import Exact, Int, Intervals
from ingest.core.labels import IN_FLIGHT, OFFSET, Group, Series, labels_first
from ingest.core.offsets import within
from ingest.query.question import AnswerKey
from ingest.store.answers import Catalogue, Plan
from ingest.store.coverage import identified
from ingest.store.records import CLUSTER, LOADING, RunRecord, StoredSeries
from ingest.store.sqlite.documents import MOST_NAMED, stored_series, windows_of
from ingest.store.sqlite.file import check_bins, check_times, layout_in, object_in

SERIES_A_SHARE = 8
ACCOUNTS = "SELECT source, account, state, generation FROM sources WHERE run = ?"
# What tells groups apart is one text: of many rows few are unlike, and each text of a row is made and hashed anew.
MERGED = "json_array(op, kind, host, layout), start_ns, end_ns, coding, bins, sum, min, max, exact, bytes, count"
ROLLUP_BATCH = 2000
UNKNOWN = -1  # as min or max of a rollup without bins


class SqliteHoldings:
    """The holdings of an open database."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def catalogue(self, records: Sequence[RunRecord]) -> Catalogue:
        """Return records, series and accounts of the runs."""
        accounts = {
            record.run: [
                identified(source, object_in(text), reading=generation if state == LOADING else None)
                for source, text, state, generation in self.db.execute(ACCOUNTS, (record.run,))
            ]
            for record in records
        }
        return Catalogue(records, stored_series(self.db, [record.run for record in records]), accounts)

    def shares(self, series: Sequence[StoredSeries], key: AnswerKey) -> Iterator[Sequence[StoredSeries]]:
        """Yield the series in shares that have no group in common, so that each share can be summed on its own."""
        groups: dict[Group | None, list[StoredSeries]] = {}
        for stored in series:
            groups.setdefault(key(stored.series), []).append(stored)
        share: list[StoredSeries] = []
        for members in groups.values():
            share += members
            if len(share) >= SERIES_A_SHARE:
                yield share
                share = []
        if share:
            yield share

    def document_windows(self, plan: Plan, key: AnswerKey, step_ns: int) -> Iterator[Intervals[Group]]:
        """Yield the windows of a plan's series as stored, under the groups that `key` gives."""
        for part in windows_of(self.db, plan.members, plan.record.step_ns, plan.begin_ns, plan.end_ns):
            yield part.relabelled(key)

    def sorted_windows(self, plan: Plan, key: AnswerKey, by: Sequence[str]) -> Iterator[Sequence[Intervals[Group]]]:
        """Yield the windows of one group after another: those of a lone series as they are read, of several all at once."""
        groups: dict[Group, list[StoredSeries]] = {}
        for stored in plan.members:
            if (group := key(stored.series)) is not None:
                groups.setdefault(group, []).append(stored)
        for _, members in sorted(groups.items(), key=lambda pair: labels_first(pair[0])):
            parts = windows_of(self.db, members, plan.record.step_ns, plan.begin_ns, plan.end_ns)
            relabelled = (part.relabelled(key) for part in parts)
            if len(members) == 1:
                yield from ([part] for part in relabelled)
            else:
                yield list(relabelled)

    def offset_windows(
        self, run: str, begin_ns: int | None, end_ns: int | None, wanted: AnswerKey | None = None
    ) -> Iterator[Intervals[Series]]:
        """Yield the offsets of a run's events in [begin, end) under their series: those that are `wanted`."""
        stored = [member for member in self._of_offsets(run) if wanted is None or wanted(member.series) is not None]
        for windows in windows_of(self.db, stored, SECOND, begin_ns, end_ns):
            yield from within(windows, begin_ns, end_ns)

    def offset_seconds(self, run: str, begin_ns: int | None, end_ns: int | None) -> Int:
        """Return the starts in ns of the seconds of [begin, end) in which a run has any event."""
        seconds = np.empty(0, np.int64)
        for stored in self._of_offsets(run):
            ids = self.db.execute(
                "SELECT id FROM intervals WHERE id BETWEEN ? AND ? AND generation >= ?",
                (*id_range(stored.number, begin_ns, end_ns, SECOND), stored.since),
            )
            starts = window_of(np.fromiter((number for (number,) in ids), np.int64), SECOND)
            seconds = np.union1d(seconds, starts)
        return seconds

    def _of_offsets(self, run: str) -> list[StoredSeries]:
        return [stored for stored in stored_series(self.db, [run]) if stored.series.kind == OFFSET]

    def rollup_windows(self, plan: Plan) -> Iterator[Intervals[Series]]:
        """Yield the merged windows of a plan in bounded batches: of each, one part a layout and kind of counts."""
        cursor = self._rollups(MERGED, plan)
        while rows := cursor.fetchmany(ROLLUP_BATCH):
            yield from merged_windows(rows, plan.record.run)

    def rollup_span(self, plan: Plan) -> tuple[int, int] | None:
        """Return from when to when the windows of a plan reach, None where there is none."""
        low, high = self._rollups("min(start_ns), max(end_ns)", plan).fetchone()
        return None if low is None else (low, high)

    def _rollups(self, columns: str, plan: Plan) -> sqlite3.Cursor:
        step = plan.rollup_step or 0
        low = -(2**62) if plan.begin_ns is None else plan.begin_ns // (step or 1) * (step or 1)
        high = 2**62 if plan.end_ns is None else plan.end_ns
        query = f"SELECT {columns} FROM rollups WHERE run = ? AND scope = ? AND step_ns = ? AND start_ns >= ? AND start_ns < ?"
        asked, values = _selected(plan)
        return self.db.execute(query + asked, (plan.record.run, plan.scope, step, low, high, *values))


def _selected(plan: Plan) -> tuple[str, list[str]]:
    """Return the conditions, with their values, for the labels by which the members of a plan differ from all series."""
    text, values = "", []
    for label in ("op", "kind") if plan.scope == CLUSTER else ("op", "kind", "host"):
        wanted = {getattr(member.series, label) for member in plan.members}
        if len(wanted) <= MOST_NAMED and wanted != {getattr(member.series, label) for member in plan.everything}:
            text += f" AND {label} IN ({','.join('?' * len(wanted))})"
            values += sorted(wanted)
    return text, values


def merged_windows(rows: Sequence[tuple[Any, ...]], run: str) -> Iterator[Intervals[Series]]:
    """Yield the windows in rows of rollups, columns MERGED: one part a layout and kind of counts."""
    groups: dict[str, tuple[tuple[str, str, str], tuple[str, bool]]] = {}
    for text in dict.fromkeys(row[0] for row in rows):
        op, kind, host, layout = json.loads(text)
        groups[text] = (op, kind, host), (layout, kind.endswith(IN_FLIGHT))
    homes = dict.fromkeys(home for _, home in groups.values())
    for home in homes:
        layout, weighted = home
        own = {text: key for text, (key, each) in groups.items() if each == home}
        bucket = rows if len(homes) == 1 else [row for row in rows if row[0] in own]
        text, start, end, coding, bins, total, least, most, exact, moved, count = zip(*bucket, strict=True)
        places = {text: place for place, text in enumerate(own)}
        codes = [places[each] for each in text]
        indptr, bin_numbers, counts = unpack(np.array(coding, np.int64), bins)
        check_bins(layout_in(layout), indptr, bin_numbers, counts, None if weighted else count)
        starts, ends = np.array(start, np.int64), np.array(end, np.int64)
        check_times(starts, ends)
        values = _exact(total, least, most, exact, None if layout_in(layout).has_bins else moved)
        yield Intervals(
            layout=layout_in(layout),
            table=tuple(Series(run=run, host=h, op=o, kind=k) for o, k, h in own.values()),
            series=np.array(codes, np.int64),
            start_ns=starts,
            end_ns=ends,
            indptr=indptr,
            bins=bin_numbers,
            counts=counts,
            exact=None if values.says_nothing else values,
            completions=np.array(count, np.int64) if weighted else None,
        )


def _exact(
    total: Sequence[Any], least: Sequence[int], most: Sequence[int], exact: Sequence[int], moved: Sequence[Any] | None
) -> Exact:
    """Return the exact values of rollups; of those with bins `moved` is None, and minima and maxima are as exact as they say."""
    if moved is not None:
        lows, highs = ([None if value == UNKNOWN else value for value in values] for values in (least, most))
        return told_exact(total, lows, highs, moved)
    sums = np.array([value or 0 for value in total], np.int64)
    return Exact(np.array(least, np.int64), np.array(most, np.int64), sums, np.array(exact, np.bool_))
