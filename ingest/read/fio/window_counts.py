"""What each row of an averaged fio log stands for: I/Os and bytes, from the logs of IOPS and bandwidth beside it and fio's JSON.

    100, 160, 0, 0, 0       time ms, I/Os a second (or KiB/s) since the last tick, rounded down, direction, 0, 0
    200, 150, 0, 0, 0       16 I/Os in the first 100 ms, 15 in the next
    700, 100, 0, 0, 0       10 I/Os in the last 100 ms; the ticks from 300 to 600 found none and wrote no row

Its rows are stamped by a helper thread of fio that ticks once a window: a millisecond or half a window beside those of
latencies. So its running total is taken at their stamps, in between by time. Where ticks wrote no row, a row is of the last
tick alone; a tick that came late is known by rows of latencies before it. fio does not write its last part of a window,
as it does of latencies: what comes after its last tick goes on at the mean rate. Counts are whole, at least 1 where there is a
mean, and add up to N exactly; bytes are whole and add up to `io_bytes`.

fio before 2.10 ticks every 500 ms (`bwavgtime`), however short the window is: then rows of latencies lie closer than ticks.
fio before 3.18 may write all rates too low (`rate_doubts`). Up to 3.0 a row of the second direction may come a tick late, under
the stamp of the next; where jobs end one after another, the last row of one may be stamped at the end of the last.

Source: fio stat.c (__add_samples, add_log_sample), checked against the logs of fio 3.33, 2.2.10 and 2.16.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
KIB = 1024
SLACK_MS = 2  # a tick comes up to so much early (LOG_MSEC_SLACK of fio)
DENSER, MOST_STEPS = 1.7, 0.75  # so many times the steps of latencies a tick is at least, if it is longer than a window
WINDOW_SINCE, OLD_TICK_MS = (2, 10), 500
ALIKE = 1.5  # steps of so many times the shortest are of one tick
SHORTEST = 0.05  # the share of steps that may be shorter than a tick, as ticks come late and the next one early

NO_STAMPS = np.empty(0, np.int64)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Beside:
    """The log of IOPS or bandwidth beside an averaged log: by direction its stamps in ms and its values.

    `window_ms` is how often fio ticks by its options: once in the time that each mean of latencies is over.
    """

    type: str
    rows: Mapping[int, tuple[Int, Int]]
    window_ms: int

    def estimates(self, direction: int, stamps_ms: Int, begin_ms: int) -> Floats | None:
        """Return how much was done up to each stamp since the one before it; None where this log cannot say.

        I/Os of a log of IOPS, bytes of one of bandwidth. What this log holds after the last stamp counts with it.
        """
        times, values = self.rows.get(direction, (NO_STAMPS, NO_STAMPS))
        mine, theirs = segments(stamps_ms), segments(times)
        if not len(times) or len(mine) != len(theirs):
            return None
        tick, pairs = self.tick_ms(stamps_ms), zip(mine, theirs, strict=True)
        amounts = np.concatenate(
            [self._between(stamps_ms[own], times[other], values[other], begin_ms, tick) for own, other in pairs]
        )
        return amounts if amounts.sum() > 0 else None

    def tick_ms(self, stamps_ms: Int) -> int:
        """Return how often fio ticks, as the stamps of all rows show it beside those of latencies.

        A step of more than a window is one tick only where most rows of latencies lie closer; else the ticks in it found no I/O.
        """
        steps = np.concatenate([_steps(times) for times, _ in self.rows.values()])
        steps = steps[steps > SLACK_MS]
        if not len(steps):
            return self.window_ms
        least = float(np.quantile(steps, SHORTEST, method="lower"))
        step = round(float(np.median(steps[steps <= ALIKE * least])))
        latencies = _steps(stamps_ms)
        latencies = latencies[latencies > SLACK_MS]
        denser = len(latencies) > 0 and DENSER * float(np.quantile(latencies, MOST_STEPS)) <= step
        return step if denser else min(step, self.window_ms)

    def _between(self, stamps: Int, times: Int, values: Int, begin_ms: int, tick_ms: int) -> Floats:
        times = _apart(times, tick_ms)
        begin_ms = min(begin_ms, int(times[0]))
        spent = ticks(times, stamps, begin_ms, tick_ms)
        done = values * spent / 1000
        done = np.ceil(done - 1e-6) if self.type == IOPS else done * KIB  # fio rounds down: 151 a second in 99 ms are 15
        if left := _left(times, stamps, tick_ms):
            rate = done.sum() / max(int(times[-1]) - begin_ms, 1)
            times, spent, done = np.append(times, stamps[-1]), np.append(spent, left), np.append(done, rate * left)
        total = np.concatenate([[0.0], np.cumsum(done)])
        edges = np.stack([times - spent, times], axis=1).reshape(-1)
        at = np.interp(stamps, np.concatenate([[begin_ms], edges]), np.concatenate([[0.0], np.repeat(total, 2)[1:-1]]))
        at[-1] = total[-1]
        amounts: Floats = np.diff(np.maximum.accumulate(at), prepend=0)
        return amounts

    def missing_ms(self, direction: int, stamps_ms: Int) -> int:
        """Return for how long this log has no row at the end of a segment, and should have some: the longest such time."""
        return max((left for _, left in self._spent(direction, stamps_ms, 0)), default=0)

    def unlogged_ms(self, direction: int, stamps_ms: Int, begin_ms: int) -> int:
        """Return for how long in all this log has no row where latencies have some: at the end, or before a late row."""
        least = 2 * self.tick_ms(stamps_ms) + SLACK_MS
        return sum(int(spent[spent > least].sum()) + left for spent, left in self._spent(direction, stamps_ms, begin_ms))

    def covered_ms(self, direction: int, stamps_ms: Int, begin_ms: int) -> int:
        """Return how long the rows of a direction are of in all."""
        return sum(int(spent.sum()) for spent, _ in self._spent(direction, stamps_ms, begin_ms))

    def _spent(self, direction: int, stamps_ms: Int, begin_ms: int) -> Iterator[tuple[Int, int]]:
        """Yield of each segment how long each row is of, and how long there is none at its end."""
        times, _ = self.rows.get(direction, (NO_STAMPS, NO_STAMPS))
        tick = self.tick_ms(stamps_ms)
        for own, other in zip(segments(stamps_ms), segments(times), strict=False):
            stamps, mine = stamps_ms[own], _apart(times[other], tick)
            yield ticks(mine, stamps, min(begin_ms, int(mine[0])), tick), _left(mine, stamps, tick)


def _steps(times_ms: Int) -> Int:
    """Return the ms from row to row, without those at which time begins anew."""
    return np.maximum(np.diff(times_ms), 0)


def _apart(times_ms: Int, tick_ms: int) -> Int:
    """Return the stamps with all but the last of those that are alike at the ticks before it, not before the row before them."""
    last = np.searchsorted(times_ms, times_ms, side="right") - 1
    apart: Int = np.maximum(times_ms - (last - np.arange(len(times_ms))) * tick_ms, times_ms[0] - tick_ms)
    np.maximum.accumulate(np.maximum(apart, 0), out=apart)
    return apart


def _left(times: Int, stamps: Int, tick_ms: int) -> int:
    """Return how many ms up to the last stamp are of no row: of ticks that wrote none only what came after them."""
    last, end = int(times[-1]), stamps[-1:]
    return int(ticks(end, stamps, last, tick_ms)[0]) if end[0] > last else 0


def ticks(times_ms: Int, latencies_ms: Int, begin_ms: int, tick_ms: int) -> Int:
    """Return how many ms each row of a log of IOPS or bandwidth is of: those since the tick before it.

    Ticks without an I/O write no row. Where the row before lies two ticks back or more, there were such ticks, unless rows
    of latencies lie in between, two or more and none long after the one before: some I/O ended from the one to the other, and it
    is this tick that came late. One says nothing: fio writes it when the next I/O of any direction ends.
    """
    since = np.maximum(np.diff(times_ms, prepend=begin_ms), 0)
    before = np.searchsorted(latencies_ms, times_ms - since + SLACK_MS, side="right")
    behind = np.searchsorted(latencies_ms, times_ms - tick_ms - SLACK_MS, side="left")
    ended = (behind > before + 1) & ~_silent(times_ms, latencies_ms, before, behind, tick_ms)
    idle = (since >= max(2 * (tick_ms - SLACK_MS), tick_ms + SLACK_MS)) & ~ended
    spent: Int = np.where(idle, tick_ms, since)
    return spent


def _silent(times_ms: Int, latencies_ms: Int, before: Int, behind: Int, tick_ms: int) -> NDArray[np.bool_]:
    """Return which rows have a stretch without latencies among those from `before` to `behind`, or after them up to the row."""
    if not len(latencies_ms):
        return np.ones(len(times_ms), np.bool_)
    steps = np.diff(latencies_ms)
    most = 2 * max(tick_ms, int(np.median(steps)) if len(steps) else 0) + SLACK_MS
    long = np.concatenate([[0], np.cumsum(steps > most)])
    first, last = np.minimum(before, len(latencies_ms) - 1), np.maximum(behind - 1, 0)
    silent: NDArray[np.bool_] = (long[last] > long[first]) | (times_ms - latencies_ms[last] > most)
    return silent


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
    old = context.version is not None and context.version < WINDOW_SINCE
    return Beside(kind, rows, max(window_ms, OLD_TICK_MS) if old else window_ms) if rows else None


def logs_beside(path: Path) -> list[Path]:
    """Return the logs of IOPS and bandwidth of the same job that there are."""
    return [other for kind in (IOPS, BANDWIDTH) if (other := sibling(path, kind)) is not None]


def sibling(path: Path, kind: str) -> Path | None:
    """Return the log of another type that the same job wrote, compressed or not; None where there is none."""
    name = plain_name(path)
    match = LOG_NAME.match(name)
    if match is None:
        return None
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
