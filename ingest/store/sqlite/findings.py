"""Findings in a SQLite store: a row for the story of a run and one for each finding, always of one load."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ingest.store.sqlite.damage import check_cells, object_in
from ingest.store.sqlite.statements import insert

if TYPE_CHECKING:  # what most questions to a store do without
    from ingest.query.findings.kept import KeptFinding

FINDINGS = ("run", "rank", "stamp", "kind", "labels", "start_ns", "end_ns", "text", "share", "missing_share", "content")
IN_JSON = ("labels", "content")


def keep_findings(db: sqlite3.Connection, run: str, documents: Sequence[KeptFinding]) -> None:
    """Write all findings of a run, in place of those that are there; inside the caller's transaction."""
    db.execute("DELETE FROM findings WHERE run = ?", (run,))
    rows = [
        tuple(json.dumps(getattr(document, name)) if name in IN_JSON else getattr(document, name) for name in FINDINGS)
        for document in documents
    ]
    db.executemany(insert("findings", FINDINGS), rows)


def findings_of(db: sqlite3.Connection, runs: Iterable[str]) -> list[KeptFinding]:
    """Return the findings of runs, by run and rank."""
    wanted = sorted(set(runs))
    marks = ", ".join("?" * len(wanted))
    query = f"SELECT {', '.join(FINDINGS)} FROM findings WHERE run IN ({marks}) ORDER BY run, rank"
    rows = db.execute(query, wanted).fetchall()
    check_cells("findings", FINDINGS, rows)
    return [_kept(row) for row in rows]


def _kept(row: tuple[Any, ...]) -> KeptFinding:
    from ingest.query.findings.kept import KeptFinding

    run, rank, stamp, kind, labels, start, end, text, share, missing_share, content = row
    whose, told = object_in(labels), object_in(content)
    return KeptFinding(run, rank, stamp, kind, whose, start, end, text, float(share), float(missing_share), told)
