"""H4: a rule stands in one place: the columns of SQLite's tables, the percentiles that are stored and shown, what a thread is."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from ingest.core.labels import LABELS, THREAD
from ingest.core.quantiles import COMMON, STORED, SUMMARY
from ingest.core.schema import fields, in_store, schema_version
from ingest.store.elastic.documents import PATHS
from ingest.store.rollups import VALUES, column_of
from ingest.store.sqlite import documents as sqlite_documents
from ingest.store.sqlite import live as sqlite_live
from ingest.store.sqlite import records as sqlite_breaths
from ingest.store.sqlite import records as sqlite_episodes
from ingest.store.sqlite import records as sqlite_findings
from ingest.store.sqlite import records as sqlite_records
from ingest.store.sqlite import rollups as sqlite_rollups
from ingest.store.sqlite import store as sqlite
from ingest.store.sqlite.file import SCHEMA_VERSION, insert, put, put_unless_newer
from tests.databases import database
from tools.build import column, sqlite_schema
from tools.kibana.requests import by_thread

ROOT = Path(__file__).parents[1]
WRITTEN = {
    "intervals": sqlite_documents.INTERVALS,
    "series": ("id", *sqlite.SERIES_COLUMNS, "layout", "source", "exact", "first_ns", "last_ns"),
    "rollups": sqlite_rollups.ROLLUPS,
    "runs": sqlite.RUNS,
    "sources": sqlite.SOURCES,
    "checkpoints": sqlite_live.CHECKPOINTS,
    "watches": sqlite_records.WATCHES,
    "breaths": sqlite_breaths.WINDOWS,
    "points": sqlite_breaths.POINTS,
    "marks": sqlite.MARKS,
    "episodes": sqlite_episodes.EPISODES,
    "judgements": sqlite_episodes.JUDGEMENTS,
    "findings": sqlite_findings.FINDINGS,
}


def test_h4_rows_have_the_columns_of_fields_yml() -> None:
    documents = {name: [column(field) for field in in_store(one, "sqlite")] for name, one in fields()["documents"].items()}
    assert {name: set(columns) for name, columns in documents.items()} == {
        name: set(columns) for name, columns in WRITTEN.items()
    }
    assert all(len(set(columns)) == len(columns) for columns in WRITTEN.values())


def test_h4_the_version_is_that_of_fields_yml() -> None:
    assert schema_version() == fields()["version"] == SCHEMA_VERSION


def test_h4_no_statement_goes_by_the_order_of_columns() -> None:
    blind = re.compile(r"INTO \w+ VALUES|INTO \{\w+\} VALUES|SELECT \*")
    found = [path.name for path in (ROOT / "ingest").rglob("*.py") if blind.search(path.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize("turned", [False, True])
def test_h4_the_order_of_columns_in_the_file_does_not_matter(turned: bool) -> None:
    with database(":memory:") as db:
        db.executescript(sqlite_schema())
        if turned:
            db.execute("DROP TABLE watches")
            db.execute(
                "CREATE TABLE watches (told_ns INTEGER, largest_ns INTEGER, final_ns INTEGER, watch TEXT, run TEXT, PRIMARY KEY (run, watch))"
            )
        for told in (3, 4):
            db.execute(put("watches", sqlite_records.WATCHES), ("r", "w", 1, 2, told))
        rows = sqlite_records.fields_of(db, "watches", sqlite_records.WATCHES)
        assert [tuple(row.values()) for row in rows] == [("r", "w", 1, 2, 4)]


def test_h4_an_older_row_never_replaces_a_newer_one() -> None:
    with database(":memory:") as db:
        db.executescript(sqlite_schema())
        for generation, count in ((2, 20), (1, 10), (2, 21)):
            db.execute(
                sqlite_documents.PUT_DOCUMENT[sqlite_documents.INTERVALS], (7, count, 1, b"", generation, None, None, None, None)
            )
        assert db.execute("SELECT id, count, generation FROM intervals").fetchall() == [(7, 21, 2)]
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(insert("intervals", sqlite_documents.INTERVALS), (7, 1, 1, b"", 3, None, None, None, None))
    assert "excluded.count" not in put_unless_newer("intervals", ("id", "count"), ("id", "count"))


def test_h4_a_row_without_exact_values_takes_those_of_an_older_one_away() -> None:
    with database(":memory:") as db:
        db.executescript(sqlite_schema())
        put_all, put_plain = (
            sqlite_documents.PUT_DOCUMENT[each] for each in (sqlite_documents.INTERVALS, sqlite_documents.PLAIN)
        )
        db.execute(put_all, (7, 1, 1, b"abc", 1, 10, 20, 30, 40))
        db.execute(put_plain, (7, 2, 1, b"abd", 2))
        assert db.execute("SELECT count, sum, min, max, bytes FROM intervals").fetchall() == [(2, None, None, None, None)]
        db.execute(put_plain, (7, 3, 1, b"abe", 1))
        db.execute(put_all, (7, 4, 1, b"abf", 2, 11, 21, 31, 41))
        assert db.execute("SELECT count, sum, min, max, bytes FROM intervals").fetchall() == [(4, 11, 21, 31, 41)]


def test_h4_stored_percentiles_are_those_of_fields_yml_and_others_are_chosen_of_them() -> None:
    names = [field["name"].removeprefix("latency.") for field in fields()["documents"]["rollups"]["fields"]]
    assert [name for name in names if re.fullmatch(r"p\d+(_\d+)?", name)] == [column_of(one) for one in STORED]
    assert set(VALUES) <= set(sqlite_rollups.ROLLUPS)
    assert [one.text for one in STORED] == ["50", "75", "90", "95", "99", "99.9", "99.99"]
    assert [one.text for one in SUMMARY] == ["50", "90", "95", "99", "99.9", "99.99"]
    assert [one.text for one in COMMON] == ["50", "90", "95", "99", "99.9"]


def test_h4_a_thread_is_the_same_in_kibana() -> None:
    level, asked = by_thread()["sources"], []
    for label in THREAD:
        level = level["aggs"][label]
        asked.append(level["terms"]["field"])
    assert asked == [PATHS[label] for label in THREAD]
    assert set(THREAD) == set(LABELS) - {"run", "op", "kind"}


def test_r4_readers_open_and_look_at_files_through_one_module() -> None:
    """A file that goes while it is read is a sentence there; elsewhere it would end a call."""
    own = {
        "text.py",
        "discovery.py",
        "description.py",
        "marks.py",
        "cbt.py",
        "ring.py",
        "histogram_log.py",
    }  # these say it themselves
    raw = re.compile(r"(?<!gzip)(?<!lzma)\.(open\(\"rb\"|stat\(\)|read_bytes\(\))")
    found = {path.name for path in (ROOT / "ingest" / "read").rglob("*.py") if raw.search(path.read_text("utf-8"))}
    assert found <= own
