"""SQLite files and stores as tests look into them: committed and closed at the end. Python 3.13 complains of what is only forgotten."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from ingest.store import Store, open_store


@contextmanager
def database(path: str | Path, **words: Any) -> Iterator[sqlite3.Connection]:
    """Give a connection to a file; what was written in it is committed where nothing was raised."""
    with closing(sqlite3.connect(path, **words)) as db, db:
        yield db


def rows_in(path: str | Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    """Return the rows that a query finds in a file."""
    with database(path) as db:
        return db.execute(query, values).fetchall()


@contextmanager
def opened(*urls: str, write: bool = False) -> Iterator[list[Store]]:
    """Give the stores of some URLs."""
    with ExitStack() as stack:
        yield [stack.enter_context(open_store(url, write=write)) for url in urls]
