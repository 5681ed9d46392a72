"""Rows of fio's `_clat` and `_iops` logs as they stand, averaged or one for each I/O: what scripts that plot them read.

    102, 3525777, 1, 0, 0         time ms, value, direction, block size (0 where averaged), priority

They are means or single values, never histograms: percentiles of the product are not made of them, estimates are.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingest.core.errors import InputError
from ingest.core.intervals import Int
from ingest.read.context import Context
from ingest.read.fio import clock
from ingest.read.text import COMPRESSED, blocks, holds_nothing, plain_name

LATENCIES, RATES = "clat", "iops"
NANOSECONDS_SINCE = (2, 99)
BOTH = ("log_window_value", "log_max_value")


@dataclass(frozen=True, slots=True)
class Rows:
    """Stamps in ms as logged, values (latencies in ns), directions; `averaged` says that rows are means over a window.

    `unix` says that stamps count from 1970, not from the start of fio.
    """

    stamp_ms: Int
    value: Int
    direction: Int
    averaged: bool
    unix: bool

    def __len__(self) -> int:
        return len(self.stamp_ms)


def beside(path: Path, kind: str) -> Path | None:
    """Return the log of another kind of the same job beside a histogram or `_clat` log, None where there is none."""
    name = plain_name(path)
    for own in ("_clat_hist", "_clat"):
        head, separator, rest = name.rpartition(own)
        if separator:
            plain = f"{head}_{kind}{rest}"
            tried = (path.with_name(plain + ending) for ending in ("", *sorted(COMPRESSED)))
            return next((other for other in tried if other.is_file() and not holds_nothing(other)), None)
    return None


def rows_of(path: Path, context: Context, *, latencies: bool) -> Rows:
    """Return the rows of a log; InputError where it cannot be read, or a row is not of whole numbers."""
    first = next((bytes(block).split(b"\n", 1)[0] for block in blocks(path)), b"")
    place = 3 if any(context.options.get(name) in ("both", "1") for name in BOTH) and (first.count(b",") + 1) > 5 else 2
    parts = [np.zeros((0, 4), np.int64)]
    for block in blocks(path):
        text = bytes(block)
        if not text.strip():
            continue
        try:
            table = np.loadtxt(
                io.BytesIO(text), np.int64, comments=None, delimiter=",", usecols=(0, 1, place, place + 1), ndmin=2
            )
        except ValueError as error:
            raise InputError(f"not a log of whole numbers: {error}", path) from None
        parts.append(table)
    stamp, value, direction, size = np.concatenate(parts).T
    averaged = bool(len(size)) and 2 * int(np.count_nonzero(size == 0)) > len(size)
    unix = len(stamp) > 0 and clock.real_time(context.options, int(stamp[0]))
    unit = 1
    if latencies:
        unit = context.recorded_unit_ns or (1000 if context.version and context.version[:2] < NANOSECONDS_SINCE else 1)
    return Rows(stamp, value * unit, direction, averaged, unix)
