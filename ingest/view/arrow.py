"""Columns as Arrow, and exported windows as a file of Parquet."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import InputError, UsageError
from ingest.core.intervals import Intervals
from ingest.core.labels import LABELS, Group
from ingest.query.table import label_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from ingest.query.origin import Origin
    from ingest.query.question import Question


def library(name: str, what: str) -> Any:
    """Return a library that not every installation has; UsageError with the remedy where it is missing."""
    try:
        return import_module(name)
    except ImportError:
        raise UsageError(f"{what} needs {name}: pip install {name.partition('.')[0]}") from None


def arrow_table(columns: Mapping[str, NDArray[Any]]) -> pa.Table:
    """Return columns of numbers, text, times (UTC) and spans of time as a table of pyarrow; NaN and NaT become null."""
    arrow = library("pyarrow", "an Arrow stream")
    types = {"O": arrow.string(), "U": arrow.string(), "M": arrow.timestamp("ns", "UTC")}
    return arrow.table({name: arrow.array(one, types.get(one.dtype.kind), from_pandas=True) for name, one in columns.items()})


def times(stamps_ns: NDArray[Any], zero_ns: int | None) -> NDArray[Any]:
    """Return epoch ns as times, or where `zero_ns` is the start of a run without a clock as times since it."""
    return stamps_ns.view("M8[ns]") if zero_ns is None else (stamps_ns - zero_ns).view("m8[ns]")


def write_parquet(origin: Origin, question: Question, out: IO[bytes] | str) -> None:
    """Write all windows that a question selects as Parquet, batch by batch: a row for each series, window and occupied bin.

    Columns are start and end, all labels, lower and upper (ns), count. InputError where there is none, UsageError where runs with
    and without a clock would share a column.
    """
    parquet = library("pyarrow.parquet", "Parquet")
    starts = {record.run: record.start_ns if record.relative else None for record in origin.runs()}
    writer: Any = None
    for windows in origin.windows(question):
        for run, rows in windows.split(lambda key: key[0]):
            table = arrow_table(_columns(rows, starts[run]))
            writer = writer or parquet.ParquetWriter(out, table.schema)
            if table.schema != writer.schema:
                raise UsageError("some runs have no start time, so no axis with the others: choose with --run")
            writer.write_table(table)
    if writer is None:
        raise InputError("nothing matches the question: no window to write")
    writer.close()


def _columns(rows: Intervals[Group], zero_ns: int | None) -> dict[str, NDArray[Any]]:
    row, labels = rows.row, [key[2:] for key in rows.table]
    edges = {name: getattr(rows.layout, name)[rows.bins].astype(np.float64) for name in ("lower", "upper")}
    if not rows.layout.has_bins:  # counts of means: nothing is known of where their samples lie
        edges = {name: np.full(len(row), np.nan) for name in edges}
    return {
        "start": times(rows.start_ns[row], zero_ns),
        "end": times(rows.end_ns[row], zero_ns),
        **label_columns(labels, LABELS, rows.series[row]),
        **edges,
        "count": rows.counts,
    }
