"""The rollups of a SQLite store: made from the documents of a run, in time slabs; of what is new alone where that is the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ingest.core.documents import id_range, packed_bins, window_of
from ingest.core.grid import SECOND, coarsened
from ingest.core.intervals import PIECE, Int, Intervals, Sum, distinct, merged
from ingest.core.labels import OFFSET, Series
from ingest.core.layout import Layout
from ingest.store.live import ALL_FINAL, NOTHING_LEFT, Marks
from ingest.store.records import CLUSTER, COMPLETE, HOST, WHOLE_RUN, RunRecord, StoredSeries, rollup_steps
from ingest.store.rollups import (
    VALUES,
    Balance,
    RollupKey,
    cluster_group,
    have_moved,
    host_group,
    layouts_of,
    merged_in,
    rollup_values,
    without_time,
)
from ingest.store.sqlite.documents import stored_series, windows_of
from ingest.store.sqlite.file import put
from ingest.store.sqlite.holdings import UNKNOWN, merged_windows

SLAB_WINDOWS = 60  # at least, of each series: twice as many take 70 MB more where a run has 900
SLAB_ROWS = 2000  # or more, where that takes few series: each slab has its own cost
SHARE_ROWS = 10_000  # of hosts that are added up together: of thousands of hosts one slab is large
OF_KEY = ("run", "scope", "kind", "step_ns", "start_ns", "op", "host")
ROLLUPS = (*OF_KEY, "end_ns", "layout", "count", *VALUES, "final", "coding", "bins")
PUT_ROLLUP = put("rollups", ROLLUPS)
SLAB_ALIGN = 60 * SECOND
ENDS = ("ASC", "DESC")
NEVER_NULL = ("min", "mean", "max")  # columns that are NOT NULL since the first schema


def write_rollups(db: sqlite3.Connection, run: RunRecord, marks: Marks = ALL_FINAL, new: Collection[int] | None = None) -> None:
    """Write the rollups of a run, inside the transaction of the caller: all anew, or of the series that are `new` alone.

    These are of hosts that no other series is of (see `only_new`): rollups of the cluster have them added to what they hold.
    StoreError where they do not come to the sum of the documents.
    """
    if new is None:
        db.execute("DELETE FROM rollups WHERE run = ?", (run.run,))
    for rows in rollup_rows(db, run, marks, new):
        db.executemany(PUT_ROLLUP, rows)


def only_new(db: sqlite3.Connection, run: str, sources: Collection[str], before: Mapping[str, int]) -> Collection[int] | None:
    """Return the series of sources that a load has brought into a run, where rollups can be made of these alone; None if not.

    `before` are the generations of all sources that the run had when it was complete, and its rollups of them all: those are as
    they were, of other hosts, and no group is in other bins than its rollup.
    """
    known = db.execute("SELECT source, generation, state FROM sources WHERE run = ?", (run,)).fetchall()
    if {source: (generation, COMPLETE) for source, generation in before.items()} != {
        source: (generation, state) for source, generation, state in known if source not in sources
    }:
        return None
    home = dict(db.execute("SELECT id, source FROM series WHERE run = ?", (run,)))
    stored = [member for member in stored_series(db, [run]) if member.series.kind != OFFSET]
    new = [member for member in stored if home[member.number] in sources]
    old = [member for member in stored if home[member.number] not in sources]
    if {member.series.host for member in new} & {member.series.host for member in old}:
        return None
    held = db.execute("SELECT scope, host, op, kind, layout FROM rollups WHERE run = ? AND step_ns = ?", (run, WHOLE_RUN))
    layouts = layouts_of(old)
    if {RollupKey(*key): layout for *key, layout in held} != {key: str(layout) for key, layout in layouts.items()}:
        return None
    return None if have_moved(layouts, layouts_of(stored)) else {member.number for member in new}


def rollup_rows(
    db: sqlite3.Connection, run: RunRecord, marks: Marks = ALL_FINAL, new: Collection[int] | None = None
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of the rollups table for a run, or for its `new` series, in time slabs of bounded memory, from documents.

    StoreError at the end where they do not come to the sum of the documents.
    """
    every = [member for member in stored_series(db, [run.run]) if member.series.kind != OFFSET]
    stored = every if new is None else [member for member in every if member.number in new]
    if not stored:
        return
    layouts = layouts_of(every)
    steps = rollup_steps(run.step_ns)
    whole: Sum[RollupKey] = Sum()
    balance = Balance()
    first, last = (_edges(db, every, run.step_ns, end) for end in ENDS)
    span = (min(first), max(last) + run.step_ns) if first else (0, 0)

    def rows_at(windows: Intervals[RollupKey], step: int) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of windows at a step; those of the cluster with what the series that are not new have made of them."""
        balance.wrote(windows, step)
        of_step = span if step == WHOLE_RUN else None
        for scope, rows in windows.split(lambda key: key.scope):
            held = _of_cluster(db, run, rows, step) if new is not None and scope == CLUSTER else []
            for part in merged_in([rows, *held], cluster_group, layouts) if held else [rows]:
                for _, piece in part.pieces(PIECE):  # of thousands of hosts the whole run is as large as a slab, and more
                    yield table_rows(run, piece, step, marks, of_step)

    def rows_of(windows: Intervals[RollupKey]) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of windows at each step, and add them to the whole run."""
        yield from rows_at(windows, run.step_ns)
        for step in steps[1:-1]:
            windows = merged([coarsened(windows, step)])
            yield from rows_at(windows, step)
        whole.add(without_time(windows))

    for slab in _slabs(db, stored, run.step_ns, span):
        cluster: list[Intervals[RollupKey]] = []
        for parts in slab:
            hosts = list(merged_in(balance.reading(parts), host_group, layouts))
            for windows in hosts:
                yield from rows_of(windows)
            cluster = list(merged_in([*cluster, *hosts], cluster_group, layouts))
        for windows in cluster:
            yield from rows_of(windows)
    if new is not None:  # the run may be longer now
        db.execute("UPDATE rollups SET start_ns = ?, end_ns = ? WHERE run = ? AND step_ns = ?", (*span, run.run, WHOLE_RUN))
    for part in whole.parts():
        yield from rows_at(part, WHOLE_RUN)
    balance.check(run.run)


def _of_cluster(
    db: sqlite3.Connection, run: RunRecord, windows: Intervals[RollupKey], step_ns: int
) -> list[Intervals[RollupKey]]:
    """Return the rollups of the cluster that there are of the kinds of windows, from the first to the last of them."""
    low, high = (int(windows.start_ns.min()), int(windows.start_ns.max()) + 1) if step_ns else (-(2**62), 2**62)
    kinds = sorted({windows.table[code].kind for code in distinct(windows.series).tolist()})
    where = "run = ? AND scope = ? AND step_ns = ? AND start_ns >= ? AND start_ns < ?"
    held = merged_windows(db, run.run, kinds, where, (run.run, CLUSTER, step_ns, low, high))
    return [(part if step_ns else without_time(part)).relabelled(cluster_group) for part in held]


def _edges(db: sqlite3.Connection, stored: Sequence[StoredSeries], step_ns: int, end: str, since: int | None = None) -> list[int]:
    """Return the start of the first or the last window of each series that has any from a time on; `end` is one of ENDS."""
    query = f"SELECT id FROM intervals WHERE id BETWEEN ? AND ? AND generation >= ? ORDER BY id {end} LIMIT 1"
    starts = []
    for member in stored:
        own_ns = member.step_ns or step_ns
        if row := db.execute(query, (*id_range(member.number, since, None, own_ns), member.since)).fetchone():
            starts.append(int(window_of(row[0], own_ns)) // step_ns * step_ns)
    return starts


def _slabs(
    db: sqlite3.Connection, stored: Sequence[StoredSeries], step_ns: int, span: tuple[int, int]
) -> Iterator[Iterator[Iterator[Intervals[Series]]]]:
    """Yield the windows of one time range of a span after another, of each those of some hosts after another.

    No window of any rollup step straddles two ranges. Empty stretches are skipped: a log with a clock jump must not cost a pass
    per minute of the gap.
    """
    first, end = span
    windows = max(SLAB_WINDOWS, SLAB_ROWS // len(stored))
    width = max(SLAB_ALIGN, windows * step_ns // SLAB_ALIGN * SLAB_ALIGN)
    shares = _by_host(stored, max(1, SHARE_ROWS * step_ns // width))
    at = first // width * width
    while at < end:
        parts = (windows_of(db, share, step_ns, at, at + width) for share in shares)
        filled = (chain([part], rest) for rest in parts if (part := next(rest, None)) is not None)
        first_share = next(filled, None)
        if first_share is None:
            at = min(_edges(db, stored, step_ns, ENDS[0], at + width), default=2**62) // width * width
            continue
        yield chain([first_share], filled)
        at += width


def _by_host(stored: Sequence[StoredSeries], most: int) -> list[list[StoredSeries]]:
    """Return the series in shares of about so many, those of a host in one."""
    by_host: dict[str, list[StoredSeries]] = {}
    for member in stored:
        by_host.setdefault(member.series.host, []).append(member)
    shares: list[list[StoredSeries]] = [[]]
    for members in by_host.values():
        if len(shares[-1]) >= most:
            shares.append([])
        shares[-1] += members
    return shares


def table_rows(
    run: RunRecord, windows: Intervals[RollupKey], step_ns: int, marks: Marks = ALL_FINAL, span: tuple[int, int] | None = None
) -> list[tuple[Any, ...]]:
    """Return the table rows of merged windows: the columns ROLLUPS."""
    codings, blobs = packed_bins(windows)
    counts = windows.samples if windows.completions is None else windows.completions
    values = {
        name: [UNKNOWN if value is None else value for value in column] if name in NEVER_NULL else column
        for name, column in rollup_values(windows).items()
    }
    keys = [windows.table[code] for code in windows.series.tolist()]
    start = windows.start_ns.tolist() if span is None else [span[0]] * len(windows)
    end = windows.end_ns.tolist() if span is None else [span[1]] * len(windows)
    final = [int(finish <= marks.of(key.host)) for key, finish in zip(keys, end, strict=True)]
    columns = (*(values[name] for name in VALUES), final, codings.tolist(), blobs.each())
    layout = str(windows.layout)
    return [
        (run.run, key.scope, key.kind, step_ns, begin, key.op, key.host, finish, layout, count, *rest)
        for key, begin, finish, count, *rest in zip(keys, start, end, counts.tolist(), *columns, strict=True)
    ]


class Touched(NamedTuple):
    """Windows of latencies that have changed: their starts in order, the hosts and the kinds that they are of."""

    starts: Int
    hosts: Collection[str]
    kinds: Collection[str]

    def beside(self, other: Touched) -> Touched:
        """Return the windows of both."""
        starts = distinct(np.concatenate([self.starts, other.starts]))
        return Touched(starts, {*self.hosts, *other.hosts}, {*self.kinds, *other.kinds})


def write_touched(
    db: sqlite3.Connection, run: RunRecord, touched: Touched, layouts: Mapping[RollupKey, Layout], marks: Marks
) -> None:
    """Make the rollups of some windows anew, inside the transaction of the caller: those of their hosts, and of the cluster.

    Windows of hosts come from documents, wider ones and those of the cluster from the rollups of hosts. The whole run is
    left out: while it grows it is added up when it is asked for.
    """
    starts, hosts, kinds = touched.starts, sorted(touched.hosts), sorted({*touched.kinds} - {OFFSET})
    if not len(starts):
        return
    near = int(starts[0]) - run.step_ns, int(starts[-1]) + 2 * run.step_ns
    only = f"host IN ({_places(hosts)}) AND kind IN ({_places(kinds)}) AND coalesce(last_ns >= ? AND first_ns <= ?, 1)"
    members = stored_series(db, [run.run], only, (*hosts, *kinds, *near))
    emptied = (
        f"DELETE FROM rollups WHERE run = ? AND step_ns = ? AND start_ns >= ? AND start_ns < ? AND kind IN ({_places(kinds)}) "
        f"AND (scope = ? OR (scope = ? AND host IN ({_places(hosts)})))"
    )
    steps = rollup_steps(run.step_ns)[:-1]
    for step, finer in zip(steps, (0, *steps), strict=False):
        most = max(1, SLAB_WINDOWS * (finer or step) // step)
        for low, high in _stretches(distinct(starts // step * step), step, most):
            db.execute(emptied, (run.run, step, low, high, *kinds, CLUSTER, HOST, *hosts))
            parts: Iterable[Intervals[Series]]
            if finer:
                parts = (coarsened(part, step) for part in _of_hosts(db, run, kinds, finer, low, high))
            else:
                parts = windows_of(db, members, step, low, high)
            for rows, grouped in ((parts, host_group), (_of_hosts(db, run, kinds, step, low, high), cluster_group)):
                balance = Balance()
                for windows in merged_in(balance.reading(rows), grouped, layouts):
                    balance.wrote(windows, step)
                    db.executemany(PUT_ROLLUP, table_rows(run, windows, step, marks))
                balance.check(run.run)


def _stretches(starts: Int, step_ns: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield [begin, end) of windows next to each other, at most so many."""
    cuts = np.flatnonzero(np.diff(starts) > step_ns) + 1
    for stretch in np.split(starts, cuts):
        for first in range(0, len(stretch), most):
            some = stretch[first : first + most]
            yield int(some[0]), int(some[-1]) + step_ns


def _of_hosts(
    db: sqlite3.Connection, run: RunRecord, kinds: Sequence[str], step_ns: int, low: int, high: int
) -> Iterator[Intervals[Series]]:
    """Yield the rollups of hosts at a step that begin in [low, high)."""
    where = "run = ? AND scope = ? AND step_ns = ? AND start_ns >= ? AND start_ns < ?"
    yield from merged_windows(db, run.run, kinds, where, (run.run, HOST, step_ns, low, high))


def note_final(db: sqlite3.Connection, run: RunRecord, marks: Marks, before: Marks | None) -> None:
    """Note which provisional windows have become final, inside the transaction of the caller; `before` were the last marks."""
    if marks == before:
        return
    steps = rollup_steps(run.step_ns)[:-1]
    known = (before.cluster_ns, *before.hosts.values()) if before else (-NOTHING_LEFT,)
    kinds = [kind for (kind,) in db.execute("SELECT DISTINCT kind FROM series WHERE run = ?", (run.run,))]
    query = (
        f"SELECT rowid, host, end_ns FROM rollups WHERE run = ? AND scope IN (?,?) AND kind IN ({_places(kinds)}) "
        f"AND step_ns IN ({_places(steps)}) AND start_ns >= ? AND NOT final"
    )
    rows = db.execute(query, (run.run, HOST, CLUSTER, *kinds, *steps, min(known) - steps[-1])).fetchall()
    final = [(number,) for number, host, end in rows if end <= marks.of(host)]
    db.executemany("UPDATE rollups SET final = 1 WHERE rowid = ?", final)


def _places(values: Collection[object]) -> str:
    return ",".join("?" * len(values))
