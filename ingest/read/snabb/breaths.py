"""Breaths of a Snabb timeline: what each cost and what it moved, one row a breath that was stored whole.

A breath is a `breath_start` and the `breath_end` that bears the same number. What it moved is decided by the names of the
arguments, which changed over the years: where the end has `npackets`, it is of this breath alone (`bpp` bytes a packet);
where start and end both have `totalpackets`, they are totals since the process began, and their difference is the breath's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Bool, Int
from ingest.read.snabb.clock import nanoseconds
from ingest.read.snabb.lags import BREATH_END, BREATH_START
from ingest.read.snabb.timeline import Timeline

Float = NDArray[np.float64]

NUMBER = "breath"
OWN_PACKETS, OWN_SIZE = "npackets", "bpp"
TOTALS = ("totalpackets", "totalbytes", "totaletherbits")
EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Breaths:
    """Breaths in order: when each began (ns, as stamps of the timeline), its number, cycles and ns that it took.

    `packets`, `bytes` and `bits` (on the wire, with what Ethernet adds) are what it moved, NaN where the file does not show it.
    `core` is TSC_AUX, node and cpu together. Breaths are a sample: of `rate`, one in 5^(9-rate) was stored.
    """

    start_ns: Int
    number: Int
    core: Int
    cycles: Int
    lasted_ns: Int
    packets: Float
    bytes: Float
    bits: Float
    rate: Int

    def __len__(self) -> int:
        return len(self.number)


def breaths(timeline: Timeline) -> Breaths:
    """Return the breaths of a timeline, oldest first: those whose start and end are both there, on one core.

    Cycles are exact below 2^53 of the counter (40 days at 2.6 GHz), beyond that to the rounding of doubles.
    """
    starts, ends = timeline.named(BREATH_START), timeline.named(BREATH_END)
    start, end = _pairs(timeline, starts, ends)
    cycles = timeline.tsc[end] - timeline.tsc[start]
    moved = {name: grown(timeline, start, end, name) for name in TOTALS}
    own, has_own = timeline.argument(end, OWN_PACKETS)
    size, has_size = timeline.argument(end, OWN_SIZE)
    with np.errstate(over="ignore", invalid="ignore"):
        packets = np.where(has_own, own, moved["totalpackets"])
        volume = np.where(has_own & has_size, own.astype(np.float64) * size, moved["totalbytes"])
    rates = np.array([message.rate for message in timeline.messages], np.int64)
    return Breaths(
        start_ns=timeline.stamp_ns[start],
        number=_whole(timeline.argument(start, NUMBER)[0]),
        core=timeline.core[start],
        cycles=cycles,
        lasted_ns=nanoseconds(cycles, timeline.clock.hz),
        packets=_possible(packets),
        bytes=_possible(volume),
        bits=moved["totaletherbits"],
        rate=rates[timeline.codes[end]],
    )


def _pairs(timeline: Timeline, starts: Int, ends: Int) -> tuple[Int, Int]:
    """Return start and end of each breath: an end belongs to the last start before it if both bear the same number."""
    if not len(starts):
        return starts, starts
    before = np.searchsorted(starts, ends) - 1
    ends, before = ends[before >= 0], before[before >= 0]
    first = np.append(True, before[1:] != before[:-1])[: len(before)]
    ends, mine = ends[first], starts[before[first]]
    number, has_number = timeline.argument(mine, NUMBER)
    other, has_other = timeline.argument(ends, NUMBER)
    same: Bool = has_number & has_other & (number == other) & (timeline.core[mine] == timeline.core[ends])
    return mine[same], ends[same]


def grown(timeline: Timeline, start: Int, end: Int, name: str) -> Float:
    """Return by how much a total grew from start to end; NaN where it is unknown, or fell."""
    before, has_before = timeline.argument(start, name)
    after, has_after = timeline.argument(end, name)
    with np.errstate(invalid="ignore"):
        usable = has_before & has_after & (after >= before)
        growth = np.where(usable, after - before, 0).astype(np.float64)
    return np.where(usable & np.isfinite(growth), growth, np.nan)


def _possible(values: Float) -> Float:
    """Return the values that are numbers of something, NaN for the others."""
    with np.errstate(invalid="ignore"):
        return np.where((values >= 0) & (values < np.inf), values, np.nan)


def _whole(numbers: NDArray[np.generic]) -> Int:
    """Return numbers of breaths as integers; -1 for values that are no number."""
    values = numbers.astype(np.float64)
    with np.errstate(invalid="ignore"):
        usable = (values >= 0) & (values < EXACT)
    return np.where(usable, values, -1).astype(np.int64)
