"""Damage in a SQLite store that SQLite itself does not see: cells of another type, bins that cannot be, text that is no JSON.

Bins are looked at whenever they are read: those of a row add up to its count, in order, inside its layout. All else is looked
for only once something has failed, so that it costs nothing where all is well.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.documents import CODINGS
from ingest.core.fields import assets
from ingest.core.intervals import Int
from ingest.core.layout import Layout, parse_layout

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


def check_bins(layout: Layout, indptr: Int, bins: Int, counts: Int, totals: Sequence[int] | None) -> None:
    """Raise DamagedError unless bins (CSR) can be those of a layout, and add up to `totals`, one a row (None: unknown)."""
    filled = np.flatnonzero(np.diff(indptr))
    starts = indptr[filled]
    rising = bins[1:] > bins[:-1]
    rising[starts[1:] - 1] = True
    if len(bins) and not (rising.all() and bins[indptr[filled + 1] - 1].max() < layout.bins):
        raise DamagedError("bins that cannot be of their layout")
    if totals is None:
        return
    sums = np.zeros(len(indptr) - 1, np.int64)
    if len(filled):
        sums[filled] = np.add.reduceat(counts, starts)
    if not np.array_equal(sums, np.array(totals, np.int64)):
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


def object_in(text: str) -> dict[str, Any]:
    """Return the object that a cell holds as JSON; DamagedError where it is none."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise DamagedError(f"an account, state or labels that cannot be read ({text[:40]!r})")
    return value


def layout_in(text: str) -> Layout:
    """Return the layout that a cell names; DamagedError where it names none, or one that no reader makes."""
    try:
        layout = parse_layout(text)
        if layout.bins > MOST_BINS or not len(layout.edges):
            raise ValueError
    except (ArithmeticError, ValueError):
        raise DamagedError(f"a layout that cannot be read ({text[:40]!r})") from None
    return layout


@cache
def _types(table: str) -> dict[str, set[type]]:
    """Return the types that the cells of each column of a table may have, from the statement that creates it."""
    text = (assets("mappings") / "sqlite.sql").read_text(encoding="utf-8")
    body = text.partition(f"CREATE TABLE {table} (\n")[2].partition("\n);")[0]
    types = {}
    for line in body.splitlines():
        name, kind, *rest = line.strip(" ,").split(" ")
        if kind in PYTHON:
            types[name] = {*PYTHON[kind], *(() if "NOT" in rest else (type(None),))}
    return types


def damage(db: sqlite3.Connection) -> str:
    """Return the first damage as a part of a sentence; empty text where there is none."""
    try:
        for (text,) in db.execute("PRAGMA main.quick_check(1)"):
            if text != "ok":
                return "its pages are damaged"
        return next(_of_cells(db), "")
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return str(error)


def _of_cells(db: sqlite3.Connection) -> Iterator[str]:
    tables = [name for (name,) in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")]
    for table in tables:
        for name, kind, never_null in db.execute(f'SELECT name, type, "notnull" FROM pragma_table_info({table!r})').fetchall():
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
