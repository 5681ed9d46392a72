"""What each row of an averaged fio log stands for: I/Os and bytes, from the logs of IOPS and bandwidth beside it and fio's JSON.

    100, 160, 0, 0, 0       time ms, I/Os a second (or KiB/s) since the last tick, rounded down, direction, 0, 0
    200, 150, 0, 0, 0       16 I/Os in the first 100 ms, 15 in the next
    700, 100, 0, 0, 0       10 I/Os in the last 100 ms; the ticks from 300 to 600 found none and wrote no row

Its rows are stamped by a helper thread of fio that ticks once a window: a millisecond or half a window beside those of
latencies. So its running total is taken at their stamps, in between by time. Where ticks wrote no row, a row is of the last
tick alone; a tick that came late is known by rows of latencies before it. fio does not write its last part of a window,
as it does of latencies: what comes after its last tick goes on at the mean rate. Counts are whole, at least 1 where there is a
mean, and add up to N exactly; bytes are whole and add up to `io_bytes`.

Source: fio stat.c (__add_samples, add_log_sample), checked against the logs of fio 3.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Int
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.fio.averaged_rows import averaged_rows
from ingest.read.fio.names import LOG_NAME
from ingest.read.fio.raw_shape import direction_of
from ingest.read.text import COMPRESSED, plain_name

IOPS, BANDWIDTH = "iops", "bw"
KIB = 1024
SLACK_MS = 2  # a tick comes up to so much early (LOG_MSEC_SLACK of fio)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Beside:
    """The log of IOPS or bandwidth beside an averaged log: by direction its stamps in ms and its values; how often fio ticks."""

    type: str
    rows: Mapping[int, tuple[Int, Int]]
    window_ms: int

    def estimates(self, direction: int, stamps_ms: Int, begin_ms: int) -> Floats | None:
        """Return how much was done up to each stamp since the one before it; None where this log cannot say.

        I/Os of a log of IOPS, bytes of one of bandwidth. What this log holds after the last stamp counts with it.
        """
        times, values = self.rows.get(direction, (np.empty(0, np.int64), np.empty(0, np.int64)))
        mine, theirs = segments(stamps_ms), segments(times)
        if not len(times) or len(mine) != len(theirs):
            return None
        pairs = zip(mine, theirs, strict=True)
        amounts = np.concatenate([self._between(stamps_ms[own], times[other], values[other], begin_ms) for own, other in pairs])
        return amounts if amounts.sum() > 0 else None

    def _between(self, stamps: Int, times: Int, values: Int, begin_ms: int) -> Floats:
        begin_ms = min(begin_ms, int(times[0]))
        spent = ticks(times, stamps, begin_ms, self.window_ms)
        done = values * spent / 1000
        done = np.ceil(done - 1e-6) if self.type == IOPS else done * KIB  # fio rounds down: 151 a second in 99 ms are 15
        if left := self._left(times, stamps):
            rate = done.sum() / max(int(times[-1]) - begin_ms, 1)
            times, spent, done = np.append(times, stamps[-1]), np.append(spent, left), np.append(done, rate * left)
        total = np.concatenate([[0.0], np.cumsum(done)])
        edges = np.stack([times - spent, times], axis=1).reshape(-1)
        at = np.interp(stamps, np.concatenate([[begin_ms], edges]), np.concatenate([[0.0], np.repeat(total, 2)[1:-1]]))
        at[-1] = total[-1]
        amounts: Floats = np.diff(np.maximum.accumulate(at), prepend=0)
        return amounts

    def missing_ms(self, direction: int, stamps_ms: Int) -> int:
        """Return for how long before the last stamp this log has no row, and should have some."""
        times, _ = self.rows.get(direction, (stamps_ms, stamps_ms))
        return self._left(times, stamps_ms[segments(stamps_ms)[-1]]) if len(times) and len(stamps_ms) else 0

    def _left(self, times: Int, stamps: Int) -> int:
        """Return how many ms up to the last stamp are of no row: of ticks that wrote none only what came after them."""
        last, end = int(times[-1]), stamps[-1:]
        return int(ticks(end, stamps, last, self.window_ms)[0]) if end[0] > last else 0


def ticks(times_ms: Int, latencies_ms: Int, begin_ms: int, window_ms: int) -> Int:
    """Return how many ms each row of a log of IOPS or bandwidth is of: those since the tick before it.

    Ticks without an I/O write no row. Where the row before lies two windows back or more, there were such ticks, unless two rows
    of latencies lie in between: some I/O ended from the one to the other, and it is this tick that came late. One says
    nothing: fio writes it when the next I/O of any direction ends.
    """
    since = np.maximum(np.diff(times_ms, prepend=begin_ms), 0)
    before = np.searchsorted(latencies_ms, times_ms - since + SLACK_MS, side="right")
    ended = np.searchsorted(latencies_ms, times_ms - window_ms - SLACK_MS, side="left") > before + 1
    idle = (since >= max(2 * (window_ms - SLACK_MS), window_ms + SLACK_MS)) & ~ended
    spent: Int = np.where(idle, window_ms, since)
    return spent


def segments(stamps_ms: Int) -> list[slice]:
    """Return the stretches in which time does not run back: jobs or runs that were appended to one log."""
    if not len(stamps_ms):
        return []
    cuts = [0, *(np.flatnonzero(np.diff(stamps_ms) < 0) + 1).tolist(), len(stamps_ms)]
    return [slice(first, last) for first, last in pairwise(cuts)]


def beside(path: Path, context: Context, kind: str, window_ms: int) -> Beside | None:
    """Return the log of IOPS or bandwidth beside an averaged log; None where there is none, or it has no row."""
    other = sibling(path, kind)
    place = None if other is None else direction_of(other, context)
    if other is None or place is None:
        return None
    table = averaged_rows(other, ("time", "value", *(("maximum",) if place > 2 else ()), "direction"), Account())
    rows = {code: (mine[:, 0], mine[:, 1]) for code in range(3) if len(mine := table[table[:, -1] == code])}
    steps = np.diff(table[:, 0])
    least = int(steps[steps > SLACK_MS].min(initial=window_ms))  # fio never ticks sooner, and its own option may be shorter
    return Beside(kind, rows, least) if rows else None


def logs_beside(path: Path) -> list[Path]:
    """Return the logs of IOPS and bandwidth of the same job that there are."""
    return [other for kind in (IOPS, BANDWIDTH) if (other := sibling(path, kind)) is not None]


def sibling(path: Path, kind: str) -> Path | None:
    """Return the log of another type that the same job wrote, compressed or not; None where there is none."""
    match = LOG_NAME.match(plain_name(path))
    if match is None:
        return None
    name = plain_name(path)
    plain = f"{name[: match.start('type')]}{kind}{name[match.end('type') :]}"
    return next((other for ending in ("", *COMPRESSED) if (other := path.with_name(plain + ending)).is_file()), None)


def fitted(estimates: Floats, total: int) -> Int:
    """Return whole counts in the proportions of the estimates that add up to `total`: at least 1 each where that can be."""
    rows = len(estimates)
    scaled = estimates * (total / estimates.sum())
    if total < rows:
        return rounded(scaled, total)
    over = np.maximum(scaled - 1, 0)
    return 1 + rounded(over if over.sum() > 0 else np.ones(rows), total - rows)


def rounded(shares: Floats, total: int) -> Int:
    """Return whole numbers in these proportions that add up to `total`, by rounding their running sum."""
    running = np.cumsum(shares)
    edges = np.rint(running * (total / running[-1])).astype(np.int64)
    edges[-1] = total
    counts: Int = np.diff(edges, prepend=0)
    return counts
