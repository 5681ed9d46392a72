"""How many I/Os each row of an averaged fio log stands for: from the log of IOPS (else of bandwidth) beside it, and fio's N.

    100, 160, 0, 0, 0       time ms, I/Os a second since the row before it (rounded down), direction, 0, 0
    200, 150, 0, 0, 0       16 I/Os in the first 100 ms, 15 in the next

Its rows are stamped by a helper thread of fio: a millisecond or half a window beside those of latencies. So its running total
is taken at their stamps, in between by time. fio does not write its last part of a window, as it does of latencies: what comes
after its last row goes on at the mean rate. Counts are whole, at least 1 where there is a mean, and add up to N exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Int
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.fio.averaged_rows import averaged_rows
from ingest.read.fio.names import LOG_NAME
from ingest.read.fio.raw_shape import direction_of
from ingest.read.text import COMPRESSED, plain_name

IOPS, BANDWIDTH = "iops", "bw"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Beside:
    """The log of IOPS or bandwidth beside an averaged log: by direction its stamps in ms and its values."""

    type: str
    rows: Mapping[int, tuple[Int, Int]]

    def estimates(self, direction: int, stamps_ms: Int, begin_ms: int) -> Floats | None:
        """Return how much was done up to each stamp since the one before it; None where this log cannot say.

        I/Os of a log of IOPS, else shares without a unit. What this log holds after the last stamp counts with it.
        """
        times, values = self.rows.get(direction, (np.empty(0, np.int64), np.empty(0, np.int64)))
        mine, theirs = segments(stamps_ms), segments(times)
        if not len(times) or len(mine) != len(theirs):
            return None
        parts = [
            _between(stamps_ms[own], times[other], values[other], begin_ms, whole=self.type == IOPS)
            for own, other in zip(mine, theirs, strict=True)
        ]
        found = np.concatenate(parts)
        return found if found.sum() > 0 else None

    def missing_ms(self, direction: int, stamps_ms: Int) -> int:
        """Return how long before the last stamp this log ends."""
        times, _ = self.rows.get(direction, (stamps_ms, stamps_ms))
        return max(int(stamps_ms[-1]) - int(times[-1]), 0) if len(times) and len(stamps_ms) else 0


def _between(stamps: Int, times: Int, values: Int, begin_ms: int, *, whole: bool) -> Floats:
    spent = np.maximum(np.diff(times, prepend=min(begin_ms, int(times[0]))), 0)
    done = values * spent / 1000
    if whole:
        done = np.ceil(done - 1e-6)  # fio rounds down: 151 a second in 99 ms are 15
    total = np.concatenate([[0.0], np.cumsum(done)])
    at = np.interp(stamps, np.concatenate([[begin_ms], times]), total)
    rate = total[-1] / max(int(times[-1]) - begin_ms, 1)
    at[-1] = total[-1]
    at += rate * np.maximum(stamps - int(times[-1]), 0)
    found: Floats = np.diff(np.maximum.accumulate(at), prepend=0)
    return found


def segments(stamps_ms: Int) -> list[slice]:
    """Return the stretches in which time does not run back: jobs or runs that were appended to one log."""
    if not len(stamps_ms):
        return []
    cuts = [0, *(np.flatnonzero(np.diff(stamps_ms) < 0) + 1).tolist(), len(stamps_ms)]
    return [slice(first, last) for first, last in pairwise(cuts)]


def beside(path: Path, context: Context) -> Beside | None:
    """Return the log of IOPS beside an averaged log, else that of bandwidth; None where there is neither."""
    for kind in (IOPS, BANDWIDTH):
        other = sibling(path, kind)
        if other is None:
            continue
        place = direction_of(other, context)
        if place is None:
            continue
        table = averaged_rows(other, ("time", "value", *(("maximum",) if place > 2 else ()), "direction"), Account())
        rows = {code: (mine[:, 0], mine[:, 1]) for code in range(3) if len(mine := table[table[:, -1] == code])}
        if rows:
            return Beside(kind, rows)
    return None


def logs_beside(path: Path) -> list[Path]:
    """Return the logs of IOPS and bandwidth of the same job that there are."""
    return [other for kind in (IOPS, BANDWIDTH) if (other := sibling(path, kind)) is not None]


def sibling(path: Path, kind: str) -> Path | None:
    """Return the log of another type that the same job wrote, compressed or not; None where there is none."""
    found = LOG_NAME.match(plain_name(path))
    if found is None:
        return None
    name = plain_name(path)
    plain = f"{name[: found.start('type')]}{kind}{name[found.end('type') :]}"
    return next((other for ending in ("", *COMPRESSED) if (other := path.with_name(plain + ending)).is_file()), None)


def fitted(estimates: Floats, total: int) -> Int:
    """Return whole counts in the proportions of the estimates that add up to `total`: at least 1 each where that can be."""
    rows = len(estimates)
    scaled = estimates * (total / estimates.sum())
    if total < rows:
        return _rounded(scaled, total)
    over = np.maximum(scaled - 1, 0)
    return 1 + _rounded(over if over.sum() > 0 else np.ones(rows), total - rows)


def _rounded(shares: Floats, total: int) -> Int:
    """Return whole numbers in these proportions that add up to `total`, by rounding their running sum."""
    running = np.cumsum(shares)
    edges = np.rint(running * (total / running[-1])).astype(np.int64)
    edges[-1] = total
    counts: Int = np.diff(edges, prepend=0)
    return counts
