"""Tables as csv, ndjson and fiologparser text: what other programs read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ingest.core.labels import FAILED
from ingest.core.units import MS, UNITS_NS, Stamp, number_column, utc, utc_column
from ingest.query.coverage import LEAST, MOST
from ingest.query.table import Table

PLAIN = ("count", "rate", "mib_s", "exact", "complete", FAILED, "cumulative", "percentile", "x", "highlighted", "over")

INFINITE = "inf"  # the latency of an operation that failed

WORDS = ("verdict", "failed_verdict")  # columns of text that are no labels


def _column(name: str, values: Any, stamp: Stamp, unit: str, words: tuple[str, ...]) -> list[Any]:
    """Return the cells of a column: text, or numbers as csv has them; None for an empty cell."""
    if name in ("start_ns", "end_ns"):
        if stamp is utc:
            return utc_column(values)
        known = {value: stamp(value) for value in set(values.tolist())}
        return [known[value] for value in values.tolist()]
    if name in words:
        return [str(value) for value in values]
    if name in ("exact", "complete"):
        return ["true" if value else "false" for value in values]
    if name in PLAIN or name.startswith((f"{FAILED}_", "below_")) or name.endswith("_error"):
        return number_column(values)
    latencies = np.asarray(values) if unit == "ns" else np.asarray(values) / UNITS_NS[unit]
    cells = number_column(latencies)
    if latencies.dtype.kind == "f" and not name.endswith("hi"):  # an upper bound that is not there is empty
        for place in np.flatnonzero(np.isposinf(latencies)).tolist():
            cells[place] = INFINITE
    return cells


def shown_columns(table: Table) -> list[str]:
    """Return the columns that the command contract names; flags for the table view are left out."""
    return [name for name in table.columns if not name.endswith(("_censored", LEAST, MOST))]


def header_of(name: str) -> str:
    """Return the name of a column as csv has it."""
    return {"start_ns": "start", "end_ns": "end"}.get(name, name)


def csv_lines(table: Table, stamp: Stamp = utc, unit: str = "ns") -> Iterator[str]:
    """Yield the header and the rows of a table as csv; text with a comma, quote or newline is quoted."""
    names = shown_columns(table)
    yield ",".join(quoted(header_of(name)) for name in names)
    words = (*table.labels, *WORDS)
    columns = [_column(name, table.columns[name], stamp, unit, words) for name in names]
    columns = [[*map(quoted, cells)] if name in words else cells for name, cells in zip(names, columns, strict=True)]
    yield from map(",".join, zip(*columns, strict=True))


def quoted(cell: str) -> str:
    """Return text as a cell of csv."""
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\n\r') else cell


def ndjson_lines(table: Table, stamp: Stamp = utc, unit: str = "ns") -> Iterator[str]:
    """Yield each row as a JSON object with the names of the csv; empty cells are null, inf is text."""
    from json import dumps  # csv does without

    names = shown_columns(table)
    words = (*table.labels, *WORDS)
    columns = [_column(name, table.columns[name], stamp, unit, words) for name in names]

    def shown(name: str, cell: str) -> str:
        plain = name in ("start_ns", "end_ns") and cell.replace(".", "", 1).removeprefix("-").isdigit()
        quotes = name in words or (name in ("start_ns", "end_ns") and not plain)
        return dumps(cell) if quotes or cell == INFINITE else cell or "null"

    heads = [dumps(header_of(name)) for name in names]
    for row in zip(*columns, strict=True):
        cells = (f"{head}:{shown(name, cell)}" for head, name, cell in zip(heads, names, row, strict=True))
        yield "{" + ",".join(cells) + "}"


def fiologparser_lines(table: Table, zero_ns: int, percentiles: list[str]) -> Iterator[str]:
    """Yield the output format of fio's fiologparser_hist.py: end-time in ms, samples, min, avg, median, percentiles, max."""
    shown = [name for name in percentiles if name != "p50"]
    yield ", ".join(["end-time", "samples", "min", "avg", "median", *(f"{name[1:]}%" for name in shown), "max"])
    ends = (np.asarray(table.columns["end_ns"]) - zero_ns) // MS
    for row in range(len(table)):
        floats = [table.columns[name][row] for name in ("mean", "p50", *shown)]
        cells = [f"{ends[row]}", f"{table.columns['count'][row]}", f"{table.columns['min'][row]}"]
        cells += [f"{value:.3f}" if value == value else "nan" for value in floats]  # noqa: PLR0124  # NaN
        yield ", ".join([*cells, f"{table.columns['max'][row]}"])
