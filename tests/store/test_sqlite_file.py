"""The file of the embedded store: versions, full disks, read-only places, other writers. Never a damaged store, always a sentence."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.errors import StoreError
from ingest.core.schema import assets
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.rollups import LOWS
from ingest.store.sqlite import file as sqlite_file
from ingest.store.sqlite import holdings
from ingest.store.sqlite.store import SqliteStore
from tests.databases import database, rows_in
from tests.store.grounds import SqliteGround, loaded
from tests.store.test_contract import EXAMPLE, SECOND, answered

DATA = Path(__file__).parents[1] / "data" / "store"
QUESTION = Question(by=("host", "op"), step=10 * SECOND)


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> SqliteGround:
    ground = SqliteGround(tmp_path_factory.mktemp("clean"))
    loaded(ground.url, [EXAMPLE])
    return ground


@pytest.fixture
def older(clean, tmp_path: Path) -> Path:
    """A store as version 1 made it: its own SQL, the same rows."""
    path = tmp_path / "older.db"
    with database(path) as db:
        db.executescript((DATA / "version-1.sql").read_text())
        db.execute("ATTACH ? AS new", (str(clean.path),))
        for table in tables(path):
            columns = ",".join(name for (name,) in db.execute(f"SELECT name FROM pragma_table_info('{table}', 'main')"))
            db.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM new.{table}")
        db.commit()
        db.execute("DETACH new")
        db.execute("PRAGMA journal_mode = WAL")
    return path


def tables(path: Path) -> set[str]:
    with database(path) as db:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def version(path: Path) -> int:
    with database(path) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


def whole(path: Path) -> bool:
    return not path.exists() or rows_in(path, "PRAGMA integrity_check")[0] == ("ok",)


def test_an_older_store_is_read_as_it_is(clean, older: Path, tmp_path: Path) -> None:
    content = older.read_bytes()
    assert answered(f"sqlite:{older}", QUESTION) == answered(clean.url, QUESTION)
    with open_store(f"sqlite:{older}") as store:
        assert all(
            store.db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,) for table in tables(clean.path) - tables(older)
        )
    assert (older.read_bytes(), version(older)) == (content, 1)
    copy = tmp_path / "copy.db"
    shutil.copy(older, copy)
    copy.chmod(0o444)
    assert answered(f"sqlite:{copy}", QUESTION) == answered(clean.url, QUESTION)


def test_an_older_store_gets_its_tables_when_it_is_written(clean, older: Path) -> None:
    missing = tables(clean.path) - tables(older)
    assert missing, "version 2 has tables of its own"
    again = loaded(f"sqlite:{older}", [EXAMPLE])
    assert (again.documents, dict(again.duplicate)) == (0, {"already loaded": 12})
    assert version(older) == sqlite_file.SCHEMA_VERSION and tables(older) == tables(clean.path)
    assert answered(f"sqlite:{older}", QUESTION) == answered(clean.url, QUESTION)
    with database(older) as found, database(clean.path) as fresh:
        columns = "SELECT m.name, c.name, c.type, c.pk FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1, c.cid"
        assert found.execute(columns).fetchall() == fresh.execute(columns).fetchall()


def test_an_upgrade_is_all_or_nothing(clean, older: Path, monkeypatch) -> None:
    before = tables(older)
    real = sqlite_file._missing
    monkeypatch.setattr(sqlite_file, "_missing", lambda db: [*real(db), "CREATE TABLE runs (x)"])
    with pytest.raises(StoreError, match="already exists"):
        open_store(f"sqlite:{older}", write=True)
    assert (tables(older), version(older)) == (before, 1)


@pytest.mark.slow
def test_several_programs_upgrade_at_once(clean, older: Path) -> None:
    words = [sys.executable, "-m", "ingest", "load", str(EXAMPLE), "--run", "r", "--store", f"sqlite:{older}"]
    programs = [subprocess.Popen(words, stderr=subprocess.DEVNULL) for _ in range(3)]
    assert [one.wait(timeout=600) for one in programs] == [0] * 3
    assert tables(older) == tables(clean.path) and whole(older)


@pytest.mark.parametrize("write", [False, True])
def test_a_store_of_a_newer_version_is_left_alone(older: Path, write: bool) -> None:
    with database(older) as db:
        db.execute("PRAGMA user_version = 99")
    before = tables(older)
    with pytest.raises(
        StoreError, match=rf"not a tailboard store of this version \(found 99, need {sqlite_file.SCHEMA_VERSION}\)"
    ):
        open_store(f"sqlite:{older}", write=write)
    assert (tables(older), version(older)) == (before, 99)


def test_the_sql_of_version_1_is_a_part_of_todays() -> None:
    today = (assets("mappings") / "sqlite.sql").read_text()
    lines = {
        "marks": "  text TEXT NOT NULL,\n",
        "intervals": "  generation INTEGER NOT NULL",
        "rollups": "  bins BLOB NOT NULL,\n",
    }
    lows = "".join(f"  {name} REAL,\n" for name in LOWS.values())
    added = {
        "marks": "  text TEXT NOT NULL,\n  end_ns INTEGER,\n",
        "intervals": "  generation INTEGER NOT NULL,\n  bytes INTEGER",
        "rollups": f"  bins BLOB NOT NULL,\n  bytes INTEGER,\n{lows}",
    }
    for statement in (DATA / "version-1.sql").read_text().split(";\n")[1:]:
        table = statement.partition("TABLE ")[2].partition(" ")[0]
        wider = statement.replace(lines[table], added[table]) if table in lines else statement
        assert wider in today, "what a table of version 1 lacks must be added when it is opened, too"


def test_marks_of_a_store_of_version_2_are_read_as_they_are_and_get_an_end_when_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "older.db"
    with database(path) as db:
        db.executescript((DATA / "version-2.sql").read_text())
        db.execute("INSERT INTO marks VALUES ('r', 5, 'osd.3 down')")
        db.execute("INSERT INTO runs VALUES ('r', 'r', 'complete', 1000000000, 'completion', 0, 'told', '{}', '{}', '')")
    db.close()
    content = path.read_bytes()
    with open_store(f"sqlite:{path}") as store:
        assert store.marks_of(["r"]) == [{"run": "r", "at_ns": 5, "text": "osd.3 down"}]
    assert (path.read_bytes(), version(path)) == (content, 2)
    with open_store(f"sqlite:{path}", write=True) as store:
        store.mark("r", 5, "osd.3 down", 9)
        store.mark("r", 7, "later")
    with open_store(f"sqlite:{path}") as store:
        assert store.marks_of(["r"]) == [
            {"run": "r", "at_ns": 5, "text": "osd.3 down", "end_ns": 9},
            {"run": "r", "at_ns": 7, "text": "later"},
        ]
    assert version(path) == sqlite_file.SCHEMA_VERSION


SHARES = [0.05, 0.4, 0.9, *(pytest.param(share / 20, marks=pytest.mark.soak) for share in range(2, 20))]


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("share", SHARES)
def test_a_full_disk_at_any_moment_leaves_a_whole_store(clean, tmp_path: Path, monkeypatch, share: float) -> None:
    """The file may not grow past a share of the pages that it needs, which SQLite reports as a full disk."""
    ground = SqliteGround(tmp_path)
    real = sqlite_file._make
    pages = int(share * rows_in(clean.path, "PRAGMA page_count")[0][0])

    def limited(db: sqlite3.Connection) -> None:
        db.execute(f"PRAGMA max_page_count = {pages}")
        real(db)

    with monkeypatch.context() as full:
        full.setattr(sqlite_file, "_make", limited)
        with pytest.raises(StoreError, match="the disk is full: free some space and run the same load again"):
            loaded(ground.url, [EXAMPLE])
    assert whole(ground.path)
    loaded(ground.url, [EXAMPLE])
    assert (ground.documents(), ground.rollups()) == (clean.documents(), clean.rollups())


def load_command(path: Path) -> list[str]:
    return [sys.executable, "-m", "ingest", "load", str(EXAMPLE), "--run", "r", "--store", f"sqlite:{path}"]


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 50_000, pytest.param(300_000, marks=pytest.mark.soak), 700_000])
def test_a_limit_of_file_sizes_gives_a_sentence(clean, tmp_path: Path, limit: int) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    ground = SqliteGround(tmp_path)
    done = subprocess.run(load_command(ground.path), preexec_fn=limited, capture_output=True, text=True)
    assert done.returncode == 4, done.stderr
    assert "run the same load again" in done.stderr and done.stderr.count("\n") == 1
    assert whole(ground.path)
    loaded(ground.url, [EXAMPLE])
    assert (ground.documents(), ground.rollups()) == (clean.documents(), clean.rollups())


def test_a_coarsening_without_room_changes_nothing(clean, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shutil.copy(clean.path, path)
    words = [sys.executable, "-m", "ingest", "runs", "coarsen", "*", "--step", "10s", "--store", f"sqlite:{path}"]
    done = subprocess.run(
        words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000)), capture_output=True, text=True
    )
    assert done.returncode == 4 and "a limit of file sizes is met" in done.stderr and "Traceback" not in done.stderr
    assert whole(path) and answered(f"sqlite:{path}", Question(step=SECOND)) == answered(clean.url, Question(step=SECOND))
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
    assert answered(f"sqlite:{path}", QUESTION) == answered(clean.url, QUESTION)


def test_a_store_goes_on_after_a_write_that_found_no_room(clean, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shutil.copy(clean.path, path)
    with open_store(f"sqlite:{path}", write=True) as store:
        store.db.execute("PRAGMA max_page_count = 1")  # as many as there are
        run = store.runs()[0].run
        with pytest.raises(StoreError, match="the disk is full"):
            store.mark(run, 6, "x" * 1_000_000)
        store.mark(run, 5, "fits")
        assert [mark["text"] for mark in store.marks_of([run])] == ["fits"]
    assert whole(path)


def test_a_second_writer_waits_and_then_gives_a_sentence(clean, tmp_path: Path, monkeypatch, capsys) -> None:
    path = tmp_path / "s.db"
    shutil.copy(clean.path, path)
    monkeypatch.setenv("TAILBOARD_SQLITE_PATIENCE", "0.3")
    with open_store(f"sqlite:{path}", write=True) as first, first.transaction():
        assert command(["mark", "--run", "*", "--at", "+1s", "late", "--store", f"sqlite:{path}"]) == 4
        told = capsys.readouterr().err
        assert "locked; another program has been writing for 0.3 s: try again" in told and told.count("\n") == 1
        assert command(["percentiles", f"sqlite:{path}", "--step", "all"]) == 0, "readers do not wait"
    assert command(["mark", "--run", "*", "--at", "+1s", "late", "--store", f"sqlite:{path}"]) == 0
    monkeypatch.setenv("TAILBOARD_SQLITE_PATIENCE", "soon")
    assert command(["mark", "--run", "*", "--at", "+1s", "late", "--store", f"sqlite:{path}"]) == 2


def test_a_file_in_the_middle_of_a_write_is_not_read_without_its_log(clean, tmp_path: Path, monkeypatch) -> None:
    """In a read-only folder SQLite cannot read the write-ahead log: without it the numbers would be old ones."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with open_store(f"sqlite:{tmp_path / 's.db'}", write=True) as store:
        store.db.execute("PRAGMA wal_autocheckpoint = 0")
        loaded(f"sqlite:{tmp_path / 's.db'}", [EXAMPLE])
        for name in ("s.db", "s.db-wal"):
            shutil.copy(tmp_path / name, folder / name)
    real = sqlite3.connect

    def refused(name: str, **words):
        if "mode=ro" in name:
            raise sqlite3.OperationalError("unable to open database file")
        return real(name, **words)

    monkeypatch.setattr(sqlite_file.sqlite3, "connect", refused)
    monkeypatch.setattr(sqlite_file.os, "access", lambda path, mode: mode == os.R_OK)
    with pytest.raises(StoreError, match="s.db-wal holds what is not in the file yet"):
        SqliteStore(str(folder / "s.db"))
    (folder / "s.db-wal").unlink()
    shutil.copy(clean.path, folder / "s.db")
    with SqliteStore(str(folder / "s.db")) as store:
        assert len(store.runs()) == 1


def test_a_refused_load_leaves_no_new_file(tmp_path: Path) -> None:
    store, log = tmp_path / "new.db", tmp_path / "a_clat_hist.1.log"
    for text in ("1, 2, 3\n", f"1000, 0, 4096{', 0' * 1856}\n"):  # no histogram log; one of which no row can be taken
        log.write_text(text)
        assert command(["load", str(log), "--run", "r", "--store", f"sqlite:{store}"]) == 3
        assert [path.name for path in tmp_path.iterdir()] == [log.name]


def test_a_refused_load_leaves_a_file_that_was_there_or_that_others_have_open(tmp_path: Path, clean) -> None:
    log = tmp_path / "a_clat_hist.1.log"
    log.write_text("1, 2, 3\n")
    with SqliteStore(str(tmp_path / "empty.db"), write=True):
        pass
    shutil.copy(clean.path, tmp_path / "full.db")
    for name in ("empty.db", "full.db"):
        assert command(["load", str(log), "--run", "x", "--store", f"sqlite:{tmp_path / name}"]) == 3
        assert (tmp_path / name).exists()
    path = tmp_path / "new.db"
    with SqliteStore(str(path), write=True) as other:
        other.runs()
        mine = SqliteStore(str(path), write=True)
        mine._is_new = True  # as if both had begun at once
        mine.__exit__(KeyError, KeyError(), None)
        assert path.exists() and not other.runs()


def test_b2_two_that_begin_a_new_store_at_once_lose_nothing(tmp_path: Path) -> None:
    """One finds nothing to load and removes the file that it made; the other's run is there all the same."""
    path = tmp_path / "new.db"
    mine = SqliteStore(str(path), write=True)
    loaded(f"sqlite:{path}", [EXAMPLE / "results"], run="other")
    mine.__exit__(KeyError, KeyError(), None)
    with SqliteStore(str(path)) as found:
        assert found.runs()


def test_equal_texts_of_accounts_are_one() -> None:
    """Of 10,000 sources each account had words and sentences of its own: 68 MB, of which half said the same."""
    said = '{"caveat": {"code": "no-summary", "sentence": "I/Os are missing"}}'
    one, other = (sqlite_file.object_in(said)["caveat"] for _ in range(2))
    assert one == other
    assert one["sentence"] is other["sentence"]
    assert all(mine is theirs for mine, theirs in zip(one, other, strict=True))


def test_what_is_known_of_runs_is_read_once_while_nothing_is_written(tmp_path: Path, monkeypatch) -> None:
    """A page of 10,000 hosts asks dozens of questions, and each read the accounts and series of all their logs."""
    path = tmp_path / "s.db"
    assert command(["load", str(EXAMPLE), "--run", "x", "--store", f"sqlite:{path}"]) == 0
    read = []
    listed = holdings.stored_series
    monkeypatch.setattr(holdings, "stored_series", lambda *words: read.append(words) or listed(*words))
    with SqliteStore(str(path), write=True) as store, SqliteStore(str(path), write=True) as other:
        run = store.runs()[0].run
        asked = Question(by=("host",)).about([run])
        first = store.answer(asked)
        with store.knowing_runs():
            answers = [store.answer(asked), store.answer(asked)]
            assert len(read) == 2
            for written, writer in enumerate((store, other), 3):
                writer.mark_all(run, [{"at_ns": written, "text": "now"}])
                answers += [store.answer(asked), store.answer(asked)]
                assert len(read) == written
    assert {str(answer) for answer in answers} == {str(first)}
