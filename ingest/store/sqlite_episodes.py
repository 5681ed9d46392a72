"""Episodes in a SQLite store: one row each, those of an objective and run always of one check."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from ingest.query.verdicts import Episode
from ingest.store.sqlite_damage import check_cells, object_in

COLUMNS = (
    "run, objective, labels, start_ns, end_ns, kind, percentile, threshold_ns, window_ns, peak_ns, peak_open, samples, windows, "
    "silent, thin, worst_host, state"
)


def keep_episodes(db: sqlite3.Connection, run: str, objective: str, episodes: Sequence[Episode]) -> None:
    """Write all episodes of an objective in a run, in place of those that are there; inside the caller's transaction."""
    db.execute("DELETE FROM episodes WHERE run = ? AND objective = ?", (run, objective))
    marks = ",".join("?" * (COLUMNS.count(",") + 1))
    db.executemany(f"INSERT INTO episodes ({COLUMNS}) VALUES ({marks})", [_row(one) for one in episodes])


def episodes_of(db: sqlite3.Connection, runs: Iterable[str]) -> list[Episode]:
    """Return the episodes of runs in time order."""
    wanted = set(runs)
    order = "start_ns, run, objective, labels"
    rows = db.execute(f"SELECT {COLUMNS} FROM episodes ORDER BY {order}").fetchall()
    check_cells("episodes", COLUMNS.split(", "), rows)
    return [_episode(row) for row in rows if row[0] in wanted]


def _row(one: Episode) -> tuple[Any, ...]:
    promise = (one.kind, one.percentile, one.threshold_ns, one.window_ns)
    found = (one.peak_ns, one.peak_open, one.samples, one.windows, one.silent, one.thin, one.worst_host, one.state)
    return (one.run, one.objective, json.dumps(dict(one.labels)), one.start_ns, one.end_ns, *promise, *found)


def _episode(row: tuple[Any, ...]) -> Episode:
    run, objective, labels, start, end, kind, percentile, threshold, window, peak, is_open, *counts = row
    known = tuple(object_in(labels).items())
    return Episode(objective, run, known, kind, percentile, threshold, window, start, end, peak, bool(is_open), *counts)
