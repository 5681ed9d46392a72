"""The file of the embedded store: opened, created, brought up to this version; SQLite's errors as sentences.

A store of an older version lacks tables, and columns that may be empty. Opened to be written it gets them, in one transaction;
opened to be read it stays as it is: empty tables of the connection's own stand in for those that it lacks, and views for those
that lack columns.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ingest.core.errors import StoreError, TailboardError, listed
from ingest.core.fields import assets
from ingest.core.writing import number
from ingest.environment import seconds
from ingest.store.sqlite.damage import DamagedError, damage

SCHEMA_VERSION = 6
OLDEST_VERSION = 1  # later versions only added tables and columns
PATIENCE_SECONDS = 60.0
WAL_TRIES, WAL_PAUSE_SECONDS = 50, 0.1
CREATE = "CREATE TABLE "
DAMAGED = "the file is damaged: load into a new store"
ADVICE = {
    "unable to open": "check that the folder exists and can be written to",
    "readonly": "it is read-only: check owner and mode, or name another store with --store",
    "not a database": "the file is something else: name another store",
    "is full": "the disk is full: free some space and run the same load again, it goes on where it stopped",
    "disk I/O": "the disk is full or failing, or a limit of file sizes is met: then run the same load again, it goes on",
    "malformed": DAMAGED,
    "no such table": DAMAGED,
    "no such column": DAMAGED,
    "Could not decode": DAMAGED,
}
FIRST = ("intervals", "rollups", "runs", "series", "sources")  # every store has these, whatever its version


def patience() -> float:
    """Return for how many seconds a store that another program writes is waited for."""
    return seconds("TAILBOARD_SQLITE_PATIENCE", PATIENCE_SECONDS)


@contextmanager
def store_errors(url: str, db: sqlite3.Connection | None = None) -> Iterator[None]:
    """Turn SQLite's errors into sentences, and any other failure into one where the store that was read is damaged."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        hint = next((advice for word, advice in ADVICE.items() if word in text), "")
        if "locked" in text:
            hint = f"another program has been writing for {number(patience())} s: try again"
        raise StoreError(f"{url}: {text}{f'; {hint}' if hint else ''}") from None
    except DamagedError as error:
        raise StoreError(f"{url}: {error}; {DAMAGED}") from None
    except TailboardError:
        raise
    except Exception as error:
        if db is None and isinstance(error, UnicodeDecodeError):  # SQLite names what it cannot read in its own message
            raise StoreError(f"{url}: the names of tables cannot be read; {DAMAGED}") from None
        cause = damage(db) if db is not None else ""
        if not cause:
            raise
        raise StoreError(f"{url}: {cause}; {DAMAGED}") from None


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Hold one write transaction: if anything fails, nothing of it is written."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite ends it by itself when the disk is full
            db.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """Hold one state of the store for several questions: a run that is coarsened between two would be read at the wrong step."""
    mine = not db.in_transaction
    if mine:
        db.execute("BEGIN")
    try:
        yield
    finally:
        if mine and db.in_transaction:
            db.execute("COMMIT")


def opened(path: Path, url: str, *, write: bool) -> sqlite3.Connection:
    """Return a connection to a store of this version; with `write` it is created, or brought up to it, if need be.

    StoreError where the file is no store, or one of a newer version.
    """
    _check_file(path, url)
    db = sqlite3.connect(path, timeout=patience(), isolation_level=None) if write else _for_reading(path, url)
    try:
        if write:
            _make(db)
        removed = write and not path.exists()  # whoever had made it has removed it again: see `removed_if_empty`
        if not removed:
            if _check_version(db, url) < SCHEMA_VERSION:
                _as_newest(db)
            db.execute("PRAGMA synchronous = NORMAL" if write else "PRAGMA mmap_size = 268435456")
    except BaseException:
        db.close()
        raise
    if removed:
        db.close()
        return opened(path, url, write=True)
    return db


def _check_version(db: sqlite3.Connection, url: str) -> int:
    """Return the version of a store; StoreError where the file is no store, or one of a newer version."""
    version = _version(db)
    if not OLDEST_VERSION <= version <= SCHEMA_VERSION:
        raise StoreError(f"{url} is not a tailboard store of this version (found {version}, need {SCHEMA_VERSION})")
    if missing := sorted(set(FIRST) - _tables(db)):
        raise StoreError(f"{url} is not a tailboard store, or is damaged: table {listed(missing)} is missing; name another store")
    return version


def _as_newest(db: sqlite3.Connection) -> None:
    """Let a store of an older version look like one of this version to its connection; the file stays as it is."""
    db.execute("PRAGMA temp_store = MEMORY")
    for statement in _missing(db):
        db.execute(statement.replace(CREATE, "CREATE TEMP TABLE ", 1))
    for table, columns in _lacking(db).items():
        there = [name for (name,) in db.execute("SELECT name FROM pragma_table_info(?, 'main') ORDER BY cid", (table,))]
        named = ", ".join([*there, *(f"NULL AS {name}" for name, _ in columns)])
        db.execute(f"CREATE TEMP VIEW {table} AS SELECT {named} FROM main.{table}")


def removed_if_empty(db: sqlite3.Connection, path: Path) -> None:
    """Remove the file of a store that holds nothing and that nobody else has open; `db` is no use afterwards.

    Leaving the write-ahead log needs the file for oneself; whoever opens it meanwhile waits, and then makes it anew (`opened`).
    """
    try:
        db.execute("PRAGMA busy_timeout = 0")
        if db.in_transaction:
            db.execute("ROLLBACK")
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("BEGIN EXCLUSIVE")
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if not any(db.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() for name in names):
            path.unlink(missing_ok=True)
    except (sqlite3.Error, OSError):  # it stays, empty
        pass


def _check_file(path: Path, url: str) -> None:
    """Raise StoreError for a path that cannot be a store: a folder, a pipe that would be waited for, an unreadable file."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  # a link that leads nowhere is no file yet
    except OSError:
        return
    if stat.S_ISDIR(mode):
        raise StoreError(f"{url} is a folder: name a file in it, as in sqlite:{path / 'tailboard.db'}")
    if not stat.S_ISREG(mode):
        raise StoreError(f"{url} is a named pipe, a socket or a device: name a file")
    if not os.access(path, os.R_OK):
        raise StoreError(f"{url}: no permission to read it: check owner and mode")


def _for_reading(path: Path, url: str) -> sqlite3.Connection:
    if not os.path.exists(path):  # noqa: PTH110  # below a closed folder there is none for us
        raise StoreError(f"there is no store at {url}: load something first, or name another (tailboard load --help)")
    quoted = str(path.resolve()).replace("?", "%3f").replace("#", "%23")
    try:
        return _readable(f"file:{quoted}?mode=ro")
    except sqlite3.OperationalError:
        # A folder that cannot be written to cannot hold the shared memory of the log: read the file as it is.
        if os.access(path.resolve().parent, os.W_OK) or not os.access(path, os.R_OK):
            raise
        log = path.resolve().with_name(f"{path.resolve().name}-wal")
        if log.exists() and log.stat().st_size:
            raise StoreError(
                f"{url} lies in a read-only folder, and {log.name} holds what is not in the file yet: copy both to a folder "
                "that can be written to"
            ) from None
    return sqlite3.connect(f"file:{quoted}?immutable=1", uri=True, isolation_level=None)


def _readable(uri: str) -> sqlite3.Connection:
    """Return a connection that can read; sqlite3.Error where it cannot."""
    db = sqlite3.connect(uri, uri=True, timeout=patience(), isolation_level=None)
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except BaseException:
        db.close()
        raise
    return db


def _make(db: sqlite3.Connection) -> None:
    """Create the tables and columns that a new or older file lacks; of several loaders that begin at once, one does."""
    version = _version(db)
    if version >= SCHEMA_VERSION:
        return
    with transaction(db):
        version = _version(db)
        empty = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if version < SCHEMA_VERSION and (empty or (version >= OLDEST_VERSION and set(FIRST) <= _tables(db))):
            for statement in _missing(db):
                db.execute(statement)
            for table, columns in _lacking(db).items():
                for name, kind in columns:
                    db.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    if version or not empty:
        return
    for _ in range(WAL_TRIES):
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            # Changing the journal needs the file for oneself, and does not wait for it.
            time.sleep(WAL_PAUSE_SECONDS)
        else:
            return


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _missing(db: sqlite3.Connection) -> list[str]:
    """Return the statements of the schema that create the tables that the file lacks."""
    there = _tables(db)
    return [statement for name, statement in _wanted().items() if name not in there]


def _lacking(db: sqlite3.Connection) -> dict[str, list[tuple[str, str]]]:
    """Return the columns (name, type) that tables of the file lack; all of them may be empty, and stand last in the schema."""
    there = _tables(db)
    plain = sqlite3.connect(":memory:")
    try:
        for name, statement in _wanted().items():
            if name in there:
                plain.execute(statement)
        columns = "SELECT name, type FROM pragma_table_info(?, 'main') ORDER BY cid"
        lacking = {}
        for name in there & set(_wanted()):
            own = {column for column, _ in db.execute(columns, (name,))}
            lacks = [(column, kind) for column, kind in plain.execute(columns, (name,)) if column not in own]
            if lacks:
                lacking[name] = lacks
        return lacking
    finally:
        plain.close()


def _tables(db: sqlite3.Connection) -> set[str]:
    return {name for (name,) in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")}


def _wanted() -> dict[str, str]:
    """Return the statements that create the tables of this version, by their names."""
    statements = (assets("mappings") / "sqlite.sql").read_text(encoding="utf-8").split(";\n")
    creating = [statement[statement.index(CREATE) :] for statement in statements if CREATE in statement]
    return {statement.removeprefix(CREATE).split(" ", 1)[0]: statement for statement in creating}


def tables_of_runs(db: sqlite3.Connection) -> list[str]:
    """Return the tables whose rows belong to a run: those with a column of that name."""
    query = "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'run'"
    return [name for (name,) in db.execute(query)]
