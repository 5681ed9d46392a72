"""The file of the embedded store: opened, created, brought up to this version; its statements, and its damage."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core import kernel
from ingest.core.documents import CODINGS
from ingest.core.errors import StoreError, TailboardError, listed
from ingest.core.intervals import Int, row_sums
from ingest.core.layout import Layout, parse_layout
from ingest.core.schema import assets
from ingest.core.units import number
from ingest.environment import seconds

# The statements that write rows of a SQLite store: every column is named, so that a new one moves nothing.
#
# The columns of a table stand beside the code that makes its rows; those of the schema come from fields.yml, and a test holds
# them against one another.


NEWER = "WHERE excluded.generation >= generation"  # a load that was overtaken by another of the same source changes nothing


def insert(table: str, columns: Sequence[str]) -> str:
    """Return the statement that adds a row."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def put(table: str, columns: Sequence[str]) -> str:
    """Return the statement that writes a row in place of one of the same key."""
    return insert(table, columns).replace("INSERT", "INSERT OR REPLACE", 1)


def put_unless_newer(table: str, columns: Sequence[str], key: Sequence[str], given: Sequence[str] = ()) -> str:
    """Return the statement that writes a row in place of an older one, never of one that a later reading has written.

    Where some columns alone are `given` the others become NULL.
    """
    own = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return f"{insert(table, given or columns)} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {own} {NEWER}"


# Damage in a SQLite store that SQLite itself does not see: cells of another type, bins that cannot be, text that is no JSON.
#
# Bins are looked at whenever they are read: those of a row add up to its count, in order, inside its layout. All else is looked
# for only once something has failed, so that it costs nothing where all is well.


IN_JSON = {
    "runs": ("parameters", "labels"),
    "sources": ("account",),
    "checkpoints": ("state",),
    "episodes": ("labels",),
    "findings": ("labels", "content"),
}
WITH_LAYOUTS = ("series", "rollups")
WITH_BINS = ("intervals", "rollups")
TYPES = {"INTEGER": ("integer",), "REAL": ("real", "integer"), "TEXT": ("text",), "BLOB": ("blob",)}
PYTHON: dict[str, tuple[type, ...]] = {"INTEGER": (int,), "REAL": (float, int), "TEXT": (str,), "BLOB": (bytes,)}
MOST_BINS = 1 << 24
FARTHEST_NS = 1 << 62


class DamagedError(Exception):
    """A value that was read cannot have been written so; the text names it."""


def check_bins(layout: Layout, indptr: Int, bins: Int, counts: Int, totals: Sequence[int] | Int | None) -> None:
    """Raise DamagedError unless bins (CSR) can be those of a layout, and add up to `totals`, one a row (None: unknown)."""
    if kernel.check_rows is not None:
        sums = np.empty(len(indptr) - 1, np.int64)
        sound = kernel.check_rows(*kernel.words(indptr, bins, counts), layout.bins, sums)
    else:
        filled = np.flatnonzero(np.diff(indptr))
        rising = bins[1:] > bins[:-1]
        rising[indptr[filled][1:] - 1] = True
        sound = not len(bins) or bool(rising.all() and bins[indptr[filled + 1] - 1].max() < layout.bins)
        sums = row_sums(indptr, counts)
    if not sound:
        raise DamagedError("bins that cannot be of their layout")
    if totals is not None and not np.array_equal(sums, np.array(totals, np.int64)):
        raise DamagedError("bins that do not add up to the count beside them")


def check_times(*times: NDArray[Any]) -> None:
    """Raise DamagedError for a time that no log can have: sums and differences of those that are let through fit 64 bits."""
    for each in times:
        if len(each) and not (int(each.min()) > -FARTHEST_NS and int(each.max()) < FARTHEST_NS):
            raise DamagedError("a time that is more than 146 years from 1970")


def check_cells(table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Raise DamagedError unless the cells of rows are of the types that their columns have."""
    wanted = _types(table)
    for name, cells in zip(columns, zip(*rows, strict=True), strict=False):
        if not set(map(type, cells)) <= wanted[name]:
            raise DamagedError(f"{name} of a row of {table} has another type than it was written with")
        if name.endswith("_ns") and any(cell is not None and abs(cell) > FARTHEST_NS for cell in cells):
            raise DamagedError(f"{name} of a row of {table} is not a time")
        if name == "step_ns" and min(cells) <= 0:
            raise DamagedError(f"{name} of a row of {table} is not a width")


def state_of(db: sqlite3.Connection) -> tuple[int, int]:
    """Return what is another once this connection, or another one, has written."""
    return db.execute("PRAGMA data_version").fetchone()[0], db.total_changes


def _shared(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object whose texts are one with equal ones: thousands of accounts say nearly the same."""
    return {intern(name): intern(value) if type(value) is str else value for name, value in pairs}


_DECODER = json.JSONDecoder(object_pairs_hook=_shared)


def object_in(text: str) -> dict[str, Any]:
    """Return the object that a cell holds as JSON; DamagedError where it is none."""
    try:
        value = _DECODER.decode(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise DamagedError(f"an account, state or labels that cannot be read ({text[:40]!r})")
    return value


def layout_in(text: str) -> Layout:
    """Return the layout that a cell names; DamagedError where it names none, or one that no reader makes."""
    try:
        layout = parse_layout(text)
        if layout.bins > MOST_BINS or not len(layout.lower):
            raise ValueError
    except (ArithmeticError, ValueError):
        raise DamagedError(f"a layout that cannot be read ({text[:40]!r})") from None
    return layout


@cache
def _types(table: str) -> dict[str, set[type]]:
    """Return the types that the cells of each column of a table may have, from the schema."""
    columns = _schema()[table][1]
    return {name: {*PYTHON[kind], *(() if never_null else (type(None),))} for name, kind, never_null in columns}


def database_damage(db: sqlite3.Connection) -> str:
    """Return the first damage as a part of a sentence; empty text where there is none."""
    try:
        for (text,) in db.execute("PRAGMA main.quick_check(1)"):
            if text != "ok":
                return "its pages are damaged"
        return next(_of_cells(db), "")
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return str(error)


def _of_cells(db: sqlite3.Connection) -> Iterator[str]:
    tables = _tables(db)
    for table in tables:
        for name, kind, never_null in db.execute(COLUMNS_OF, (table,)).fetchall():
            types = (*TYPES.get(kind, ()), *(() if never_null else ("null",)))
            places = ",".join("?" * len(types))
            if db.execute(f'SELECT 1 FROM "{table}" WHERE typeof("{name}") NOT IN ({places}) LIMIT 1', types).fetchone():
                yield f"{name} of a row of {table} is not {kind}"
    for table, names in IN_JSON.items():
        for name in names if table in tables else ():
            if not all(_reads(object_in, text) for (text,) in db.execute(f"SELECT {name} FROM {table}")):
                yield f"{name} of a row of {table} cannot be read"
    for table in WITH_LAYOUTS:
        if not all(_reads(layout_in, text) for (text,) in db.execute(f"SELECT DISTINCT layout FROM {table}")):
            yield f"a layout in {table} cannot be read"
    if db.execute("SELECT 1 FROM runs WHERE step_ns <= 0 LIMIT 1").fetchone():
        yield "a run has no step"
    sizes = " ".join(f"WHEN {code} THEN {kind.itemsize}" for code, kind in CODINGS.items())
    for table in WITH_BINS:
        query = f"SELECT 1 FROM {table} WHERE CASE coding {sizes} END IS NULL OR length(bins) % CASE coding {sizes} END LIMIT 1"
        if db.execute(query).fetchone():
            yield f"bins of a row of {table} cannot be read"


def _reads(read: Callable[[Any], object], text: Any) -> bool:
    try:
        read(text)
    except (AttributeError, DamagedError, TypeError):
        return False
    return True


# The file of the embedded store: opened, created, brought up to this version; SQLite's errors as sentences.
#
# A store of an older version lacks tables, and columns that may be empty. Opened to be written it gets them, in one
# transaction; opened to be read it stays as it is: empty tables of the connection's own stand in for those that it lacks, and
# views for those that lack columns.


SCHEMA_VERSION = 9
OLDEST_VERSION = 1  # later versions only added tables and columns
PATIENCE_SECONDS = 60.0
WAL_TRIES, WAL_PAUSE_SECONDS = 50, 0.1
CREATE = "CREATE TABLE "
COLUMNS_OF = """SELECT name, type, "notnull" FROM pragma_table_info(?, 'main') ORDER BY cid"""
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
    except sqlite3.ProgrammingError as error:
        if "thread" not in str(error):
            raise
        raise StoreError(f"{url}: an open store belongs to the thread that opened it: open one in each thread") from None
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
        cause = database_damage(db) if db is not None else ""
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
            if write:
                db.execute("PRAGMA synchronous = NORMAL")
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
    if missing := sorted(set(FIRST).difference(_tables(db))):
        raise StoreError(f"{url} is not a tailboard store, or is damaged: table {listed(missing)} is missing; name another store")
    return version


def _as_newest(db: sqlite3.Connection) -> None:
    """Let a store of an older version look like one of this version to its connection; the file stays as it is."""
    db.execute("PRAGMA temp_store = MEMORY")
    for statement in _missing(db):
        db.execute(statement.replace(CREATE, "CREATE TEMP TABLE ", 1))
    for table, columns in _lacking(db).items():
        there = [name for name, *_ in db.execute(COLUMNS_OF, (table,))]
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
        if not any(db.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() for name in _tables(db)):
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
        raise StoreError(f"there is no store at {url}: name files, or load some first (tailboard load PATH --run NAME)")
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
        if version < SCHEMA_VERSION and (empty or (version >= OLDEST_VERSION and set(FIRST).issubset(_tables(db)))):
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
    return [statement for name, (statement, _) in _schema().items() if name not in there]


def _lacking(db: sqlite3.Connection) -> dict[str, list[tuple[str, str]]]:
    """Return the columns (name, type) that tables of the file lack; all of them may be empty, and stand last in the schema."""
    lacking = {}
    for table in set(_tables(db)) & _schema().keys():
        own = {name for name, *_ in db.execute(COLUMNS_OF, (table,))}
        if lacks := [(name, kind) for name, kind, _ in _schema()[table][1] if name not in own]:
            lacking[table] = lacks
    return lacking


def _tables(db: sqlite3.Connection) -> list[str]:
    return [name for (name,) in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")]


@cache
def _schema() -> dict[str, tuple[str, list[tuple[str, str, bool]]]]:
    """Return the statement that creates each table of this version, and its columns as COLUMNS_OF has them."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript((assets("mappings") / "sqlite.sql").read_text(encoding="utf-8"))
        statements = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        return {table: (statement, db.execute(COLUMNS_OF, (table,)).fetchall()) for table, statement in statements}


def tables_of_runs(db: sqlite3.Connection) -> list[str]:
    """Return the tables whose rows belong to a run: those with a column of that name."""
    query = "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'run'"
    return [name for (name,) in db.execute(query)]
