"""Files of metrics: what else was measured while a benchmark ran, such as the load of a disk or of a CPU, a value a line.

    time,name,value
    2026-11-20T21:00:30Z,ceph-b sdb %util,98.2
    +31s,ceph-b CPU %,12

Times are those of files of marks (see marks.py). The first line may be a heading; columns have this order. A line that is no
value of a metric is left out and counted with its reason.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from ingest.core.errors import InputError, UsageError, counted
from ingest.core.marks import one_line
from ingest.core.units import Instant
from ingest.read.account import Account
from ingest.read.discovery import check_is_there
from ingest.read.marks import TIME_FORM, assumed_of, instant_of, numbered_cells, said_of

COLUMNS = ("time", "name", "value")
FORM = "give lines of time,name,value"


class MetricsFile(NamedTuple):
    """The values of each metric of a file in its order, as (time, value), and what became of its lines."""

    path: Path
    values: dict[str, list[tuple[Instant, float]]]
    account: Account

    @property
    def said(self) -> list[str]:
        """Return sentences about the lines that were repaired and left out."""
        return said_of(self.path, self.account, "value")


def read_metrics(path: Path) -> MetricsFile:
    """Return the metrics of a file; InputError where it cannot be read or no line of it is a value."""
    check_is_there(path)
    account, values = Account(str(path)), dict[str, list[tuple[Instant, float]]]()
    for number, raw in numbered_cells(path, account):
        cells = [cell.strip() for cell in raw]
        if not account.rows and tuple(map(str.lower, cells)) == COLUMNS:
            continue
        try:
            at, name, value = _value(cells)
        except UsageError as error:
            account.reject(str(error), [number])
            continue
        if assumed := assumed_of(cells[0]):
            account.repair(1, {reason: [number] for reason in assumed})
        else:
            account.accept(1)
        values.setdefault(name, []).append((at, value))
    if values:
        return MetricsFile(path, values, account)
    if not account.rows_rejected:
        raise InputError(f"it holds no metrics: {FORM}", path)
    first = account.findings[0]
    raise InputError(f"no line of it is a value of a metric: {first.reason}", path, first.line)


def _value(cells: list[str]) -> tuple[Instant, str, float]:
    """Return the time, the name and the value of a line; UsageError says why it has none."""
    if len(cells) != len(COLUMNS):
        raise UsageError(f"it has {counted(len(cells), 'column')}: {FORM}")
    at, name = instant_of(cells[0]), one_line(cells[1])
    if at is None:
        raise UsageError(f"{cells[0][:40]!r} is not a time: {TIME_FORM}")
    if not name:
        raise UsageError("it has no name")
    try:
        value = float(cells[2])
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in cells[2]:
        raise UsageError(f"{cells[2][:40]!r} is not a number")
    return at, name, value
