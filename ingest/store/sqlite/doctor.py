"""Whether a SQLite store is well: its file, its version, the room beside it, and what it holds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from ingest.core.errors import StoreError
from ingest.core.units import size
from ingest.store.doctor import NOT_SEEN, OK, WRONG, Line, failed, fits
from ingest.store.sqlite.file import SCHEMA_VERSION, opened, store_errors
from ingest.store.sqlite.store import SqliteStore
from ingest.store.verify import FILE

LEAST_FREE = 500_000_000  # bytes: a load of a few hundred hosts
LARGE_WAL = 1_000_000_000


def examined(url: str) -> Iterator[Line]:
    """Yield what is found of the store in a file."""
    path = Path(url.removeprefix("sqlite:"))
    if not path.is_file():
        yield Line("file", WRONG, f"{path} is not there", f"tailboard load PATH --run NAME --store {url} makes it")
        return
    try:
        version = _version(path, url)
    except StoreError as error:
        yield failed("file", error)
        return
    yield Line("file", OK, f"{path}, {size(path.stat().st_size)}")
    if version < SCHEMA_VERSION:
        text = f"{version}, this tailboard writes {SCHEMA_VERSION}: all of it can be read, the next load brings it up to that"
        yield Line("version", OK, text)
    else:
        yield Line("version", OK, f"{version}, as this tailboard writes it")
    yield _writable(path)
    yield _room(path)
    yield from _journal(path)
    try:
        with SqliteStore(str(path)) as store:
            verification = store.verify(lambda _: True)
    except StoreError as error:
        yield failed("integrity", error, f"load the logs into a new store; until then: tailboard runs list --store {url}")
        return
    damaged = [fault for fault in verification.faults if fault.kind == FILE]
    if damaged:
        yield Line("integrity", WRONG, damaged[0].first, "load the logs into a new store")
    else:
        yield Line("integrity", OK, "PRAGMA integrity_check finds no damage")
        yield from fits(verification, url)


def _version(path: Path, url: str) -> int:
    """Return the version of the schema; StoreError where the file is no store, or of a newer version."""
    with store_errors(url), closing(opened(path, url, write=False)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def _writable(path: Path) -> Line:
    """Return whether this user may load into the store."""
    for place in (path, path.absolute().parent):  # beside the file SQLite keeps its log
        if not os.access(place, os.W_OK):
            return Line("writing", NOT_SEEN, f"this user may not write {place}: the store can be read, not loaded into")
    return Line("writing", OK, "this user may load into it")


def _room(path: Path) -> Line:
    """Return whether there is room for loads on the disk."""
    free = shutil.disk_usage(path.absolute().parent).free
    text = f"{size(free)} are free beside it"
    if free >= LEAST_FREE:
        return Line("disk", OK, text)
    remedy = (
        f"free some space, or remove runs: tailboard runs delete --older-than 90d --yes --store sqlite:{path}; then VACUUM it"
    )
    return Line("disk", WRONG, text, remedy)


def _journal(path: Path) -> Iterator[Line]:
    """Yield a line where the write-ahead log has grown large: a reader that never ends keeps it from being taken in."""
    with suppress(FileNotFoundError):
        if (held := path.with_name(f"{path.name}-wal").stat().st_size) > LARGE_WAL:
            text = f"{size(held)} of writes wait in {path.name}-wal, since a program has had the store open for long"
            yield Line("journal", WRONG, text, f"end the programs that have {path} open (fuser '{path}')")
