"""Files of metrics: what else was measured while a benchmark ran, such as the load of a disk or of a CPU, a value a line.

    time,name,value
    2026-11-20T21:00:30Z,ceph-b sdb %util,98.2
    +31s,ceph-b CPU %,12

Times are those of files of marks (see marks.py). The first line may be a heading; columns have this order. A line that is no
value of a metric is left out and counted with its reason.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import NamedTuple

from ingest.core.errors import InputError, UsageError, counted, plural
from ingest.core.marks import one_line
from ingest.core.units import Instant
from ingest.read.account import Account
from ingest.read.discovery import check_is_file
from ingest.read.marks import instant_of, is_unzoned
from ingest.read.text import numbered_lines

COLUMNS = ("time", "name", "value")
FORM = "give lines of time,name,value"
TIME_FORM = "give ISO 8601, epoch seconds or ms, or +90s (from the run's start)"


class MetricsFile(NamedTuple):
    """The values of each metric of a file in its order, as (time, value), and what is said of other lines."""

    values: dict[str, list[tuple[Instant, float]]]
    said: list[str]


def read_metrics(path: Path) -> MetricsFile:
    """Return the metrics of a file; InputError where it cannot be read or no line of it is a value."""
    check_is_file(path)
    if not path.exists():
        raise InputError("cannot be read: no such file", path)
    account, values = Account(str(path)), dict[str, list[tuple[Instant, float]]]()
    for number, raw in numbered_lines(path, account):
        line = raw.decode("utf-8", "backslashreplace").lstrip("\ufeff").strip()
        if not line or line.startswith("#"):
            continue
        try:
            cells = [cell.strip() for cell in next(csv.reader([line], strict=True, skipinitialspace=True))]
            if not account.rows and tuple(cell.lower() for cell in cells) == COLUMNS:
                continue
            at, name, value = _value(cells)
        except (csv.Error, UsageError) as error:
            account.reject(str(error), [number])
            continue
        if is_unzoned(cells[0]):
            account.repair(1, {"time has no zone: taken as UTC": [number]})
        else:
            account.accept(1)
        values.setdefault(name, []).append((at, value))
    rejected = [finding for finding in account.findings if finding.action == "rejected"]
    if not values:
        if rejected:
            raise InputError(f"no line of it is a value of a metric: {rejected[0].reason}", path, rejected[0].line)
        raise InputError(f"it holds no metrics: {FORM}", path)
    left = account.rows_rejected - len(rejected)
    said = [f"{path}: {counted(count, 'value')}: {reason}" for reason, count in sorted(account.repaired.items())]
    said += map(str, rejected)
    return MetricsFile(values, said + ([f"{path}: ... and {left:,} more {plural(left, 'line')} rejected"] if left > 0 else []))


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
