"""Episodes in a SQLite store: one row each, those of an objective and run always of one check."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ingest.store.sqlite.damage import check_cells, object_in
from ingest.store.sqlite.statements import insert

if TYPE_CHECKING:  # what most questions to a store do without
    from ingest.query.verdicts import Episode

PROMISE = ("kind", "percentile", "threshold_ns", "window_ns")
FOUND = ("peak_ns", "peak_open", "samples", "windows", "silent", "thin", "worst_host", "state")
EPISODES = ("run", "objective", "labels", "start_ns", "end_ns", *PROMISE, *FOUND)


def keep_episodes(db: sqlite3.Connection, run: str, objective: str, episodes: Sequence[Episode]) -> None:
    """Write all episodes of an objective in a run, in place of those that are there; inside the caller's transaction."""
    db.execute("DELETE FROM episodes WHERE run = ? AND objective = ?", (run, objective))
    rows = [
        tuple(json.dumps(dict(episode.labels)) if name == "labels" else getattr(episode, name) for name in EPISODES)
        for episode in episodes
    ]
    db.executemany(insert("episodes", EPISODES), rows)


def episodes_of(db: sqlite3.Connection, runs: Iterable[str]) -> list[Episode]:
    """Return the episodes of runs in time order."""
    wanted = set(runs)
    order, columns = "start_ns, run, objective, labels", ", ".join(EPISODES)
    rows = db.execute(f"SELECT {columns} FROM episodes ORDER BY {order}").fetchall()
    check_cells("episodes", EPISODES, rows)
    return [_episode(row) for row in rows if row[0] in wanted]


def _episode(row: tuple[Any, ...]) -> Episode:
    from ingest.query.verdicts import Episode

    run, objective, labels, start, end, kind, percentile, threshold, window, peak, is_open, *counts = row
    known = tuple(object_in(labels).items())
    return Episode(objective, run, known, kind, percentile, threshold, window, start, end, peak, bool(is_open), *counts)
