"""The data of a SQLite store that questions are answered from: catalogue, merged rollups, windows of documents."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ingest.core.documents import id_range, told_exact, window_of
from ingest.core.grid import SECOND
from ingest.core.intervals import Exact, Int, Intervals, distinct
from ingest.core.labels import IN_FLIGHT, OFFSET, Group, Series, labels_first
from ingest.core.layout import Layout
from ingest.core.offsets import within
from ingest.query.question import AnswerKey
from ingest.store.answers import Catalogue, Plan
from ingest.store.coverage import identified
from ingest.store.records import CLUSTER, LOADING, RunRecord, StoredSeries
from ingest.store.sqlite.documents import (
    BATCH,
    LISTED,
    MOST_NAMED,
    PACKED,
    Packed,
    listed_in,
    most_rows,
    stored_series,
    windows_of,
)
from ingest.store.sqlite.file import check_bins, check_times, layout_in, object_in, state_of

SERIES_A_SHARE = 8
ACCOUNTS = "SELECT source, account, state, generation FROM sources WHERE run = ?"
KEY = ("op", "host", "layout")  # of rollups of one kind
EXACT = ("sum", "min", "max", "exact", "bytes")
ROLLUP_BATCH = 2000  # rows: four times as many take 40 MB more
MOST_TEXTS = 100  # of those that many rows have in common: a window without one of its groups has another
UNKNOWN = -1  # as min or max of a rollup without bins


class SqliteHoldings:
    """The holdings of an open database; with `keeps` the last catalogue is kept, and not read again while nothing is written."""

    def __init__(self, db: sqlite3.Connection, *, keeps: bool = False) -> None:
        self.db = db
        self._keeps = keeps
        self._kept: tuple[tuple[tuple[int, int], Sequence[RunRecord]], Catalogue] | None = None

    def catalogue(self, records: Sequence[RunRecord]) -> Catalogue:
        """Return records, series and accounts of the runs."""
        if not self._keeps:
            return self._catalogue(records)
        asked = state_of(self.db), records
        if self._kept is None or self._kept[0] != asked:
            self._kept = None  # before another one is read
            self._kept = asked, self._catalogue(records)
        return self._kept[1]

    def _catalogue(self, records: Sequence[RunRecord]) -> Catalogue:
        accounts = {
            record.run: [
                identified(source, object_in(text), reading=generation if state == LOADING else None)
                for source, text, state, generation in self.db.execute(ACCOUNTS, (record.run,))
            ]
            for record in records
        }
        return Catalogue(records, stored_series(self.db, [record.run for record in records]), accounts)

    def shares(self, series: Sequence[StoredSeries], key: AnswerKey, windows: int) -> Iterator[Sequence[StoredSeries]]:
        """Yield the series in shares that have no group in common, so that each share can be summed on its own."""
        groups: dict[Group | None, list[StoredSeries]] = {}
        for stored in series:
            groups.setdefault(key(stored.series), []).append(stored)
        share: list[StoredSeries] = []
        for members in groups.values():
            share += members
            if len(share) >= SERIES_A_SHARE and len(share) * windows >= BATCH:
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
        where, values = self._rollups(plan)
        members = plan.members or stored_series(self.db, [plan.record.run])  # of one without members all rollups of its step
        kinds = sorted({member.series.kind for member in members})
        yield from merged_windows(self.db, plan.record.run, kinds, where, values, plan.everything)

    def rollup_span(self, plan: Plan) -> tuple[int, int] | None:
        """Return from when to when the windows of a plan reach, None where there is none."""
        where, values = self._rollups(plan)
        low, high = self.db.execute(f"SELECT min(start_ns), max(end_ns) FROM rollups WHERE {where}", values).fetchone()
        return None if low is None else (low, high)

    def _rollups(self, plan: Plan) -> tuple[str, tuple[object, ...]]:
        """Return the conditions, with their values, for the rollups of a plan."""
        step = plan.rollup_step or 0
        low = -(2**62) if plan.begin_ns is None else plan.begin_ns // (step or 1) * (step or 1)
        high = 2**62 if plan.end_ns is None else plan.end_ns
        asked, values = _selected(plan)
        where = "run = ? AND scope = ? AND step_ns = ? AND start_ns >= ? AND start_ns < ?"
        return where + asked, (plan.record.run, plan.scope, step, low, high, *values)


def _selected(plan: Plan) -> tuple[str, list[str]]:
    """Return the conditions, with their values, for the labels by which the members of a plan differ from all series."""
    text, values = "", []
    for label in ("op", "kind") if plan.scope == CLUSTER else ("op", "kind", "host"):
        wanted = {getattr(member.series, label) for member in plan.members}
        if len(wanted) <= MOST_NAMED and wanted != {getattr(member.series, label) for member in plan.everything}:
            text += f" AND {label} IN ({','.join('?' * len(wanted))})"
            values += sorted(wanted)
    return text, values


def merged_windows(
    db: sqlite3.Connection,
    run: str,
    kinds: Sequence[str],
    where: str,
    values: Sequence[object],
    stored: Sequence[StoredSeries] = (),
) -> Iterator[Intervals[Series]]:
    """Yield the windows of rollups of some kinds in bounded batches: of each, one part a layout and kind of counts.

    `where` is a condition of SQL with its `values`, `stored` are the series that they are made of, where these are known.
    """
    exact = not stored or any(member.exact or not member.layout.has_bins for member in stored)
    groups = len({(member.series.op, member.series.host) for member in stored})
    together = 0 < groups <= min((most_rows(member.layout) for member in stored), default=0)
    listed = ", ".join(map(LISTED.format, (*KEY, *EXACT) if exact else KEY))
    # In the order of the primary key, where those of one kind and start are neighbours; they end alike, too.
    order = "start_ns" if together else "start_ns, op, host"
    query = f"SELECT start_ns, end_ns, {PACKED}, {listed} FROM rollups WHERE {where} AND kind = ? GROUP BY {order}"
    for kind in kinds:
        held, number, met = list[tuple[Any, ...]](), 0, _Groups(run, kind)
        for row in db.execute(query, (*values, kind)):
            held.append(row)
            number += row[2]
            if number >= ROLLUP_BATCH:
                yield from _parts(held, met)
                held, number = [], 0
        if held:
            yield from _parts(held, met)


class _Groups:
    """The groups of rollups of one kind, as they are met: of many windows few are of others. Each text of KEY is read once."""

    def __init__(self, run: str, kind: str) -> None:
        self._run, self._kind, self.weighted = run, kind, kind.endswith(IN_FLIGHT)
        self._read: dict[tuple[str, ...], tuple[Int, Int]] = {}
        self._places: dict[tuple[str, str], int] = {}  # of an operation and its host
        self._layouts: dict[str, int] = {}
        self.table: tuple[Series, ...] = ()

    def of(self, texts: Sequence[tuple[str, ...]]) -> tuple[Int, Int]:
        """Return the place of each row in `table`, and of its layout in `layouts`; of several rows a text."""
        if len(self._read) > MOST_TEXTS:
            self._read = {}
        for each in dict.fromkeys(texts):
            if each not in self._read:
                ops, hosts, layouts = map(json.loads, each)
                places = [self._places.setdefault(own, len(self._places)) for own in zip(ops, hosts, strict=True)]
                named = [self._layouts.setdefault(layout, len(self._layouts)) for layout in layouts]
                self._read[each] = np.array(places, np.int64), np.array(named, np.int64)
        if len(self._places) > len(self.table):
            self.table = tuple(Series(run=self._run, host=host, op=op, kind=self._kind) for op, host in self._places)
        codes, layouts = zip(*(self._read[each] for each in texts), strict=True)
        return np.concatenate(codes), np.concatenate(layouts)

    @property
    def layouts(self) -> list[Layout]:
        """Return the layouts that were met."""
        return [layout_in(name) for name in self._layouts]


def _parts(held: Sequence[tuple[Any, ...]], groups: _Groups) -> Iterator[Intervals[Series]]:
    """Yield the windows of rollups of one kind, one part a layout."""
    start, end, *cells = zip(*held, strict=True)
    packed = Packed(*cells[: len(Packed._fields)])
    listed = cells[len(Packed._fields) :]
    (codes, own_layout), told = groups.of(list(zip(*listed[: len(KEY)], strict=True))), listed[len(KEY) :]
    starts, ends = (np.repeat(np.array(times, np.int64), packed.number) for times in (start, end))
    check_times(starts, ends)
    indptr, bins, counts, count = packed.entries()
    columns = groups.table, codes, starts, ends, indptr, bins, counts
    there = distinct(own_layout).tolist()
    for place in there:
        layout = groups.layouts[place]
        part = Intervals(layout, *columns, _exact(layout, *map(listed_in, told)) if told else None, count)
        if len(there) > 1:
            part = part.take(np.flatnonzero(own_layout == place))
        check_bins(layout, part.indptr, part.bins, part.counts, None if groups.weighted else part.completions)
        exact = None if part.exact is None or part.exact.says_nothing else part.exact
        yield replace(part, exact=exact, completions=part.completions if groups.weighted else None)


def _exact(
    layout: Layout, total: Sequence[Any], least: Sequence[int], most: Sequence[int], exact: Sequence[int], moved: Sequence[Any]
) -> Exact:
    """Return the exact values of rollups; of those with bins minima and maxima are as exact as they say."""
    if not layout.has_bins:
        lows, highs = ([None if value == UNKNOWN else value for value in values] for values in (least, most))
        return told_exact(total, lows, highs, moved)
    sums = np.array([value or 0 for value in total], np.int64)
    return Exact(np.array(least, np.int64), np.array(most, np.int64), sums, np.array(exact, np.bool_))
