"""The statements that write rows of a SQLite store: every column is named, so that a new one moves nothing.

The columns of a table stand beside the code that makes its rows; those of the schema come from fields.yml, and a test holds them
against one another.
"""

from __future__ import annotations

from collections.abc import Sequence

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
