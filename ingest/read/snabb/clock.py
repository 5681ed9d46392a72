"""The clock of a Snabb timeline: cycles of the TSC as nanoseconds, from the clock readings that the ring itself holds.

An event `engine.got_monotonic_time` bears the time in ns beside its stamp. All cores count at one frequency (they are fitted
together), but need not have begun at the same time: each has an offset of its own, and one without a reading is taken to
agree with the others. The time is that of a clock with a date, or of one that counts from the start of the machine; the
numbers show which.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ingest.core.errors import InputError
from ingest.core.grid import MS, SECOND
from ingest.core.intervals import Int
from ingest.read.snabb.order import CPU

READING, READING_ARGUMENT = "engine.got_monotonic_time", "unixnanos"
REAL_FROM = 10**18  # ns: September 2001, or 31 years after a machine was started
SLOWEST, FASTEST = 10**6, 9 * 10**9
STRAIGHT_NS = 10 * MS
STRAIGHT_SHARE = 0.02
NO_CLOCK = (
    "the frequency of its TSC cannot be determined (this takes two engine.got_monotonic_time events on one core): "
    "give --tsc-hz, as in --tsc-hz 2.6e9; the kernel's log shows it as 'tsc: ... MHz'"
)


@dataclass(frozen=True, slots=True)
class Readings:
    """Clock readings: at cycle `tsc[i]` of core `core[i]` the clock showed `ns[i]`."""

    tsc: Int
    core: Int
    ns: Int

    def take(self, rows: Int) -> Readings:
        """Return the given readings."""
        return Readings(self.tsc[rows], self.core[rows], self.ns[rows])


@dataclass(frozen=True, slots=True)
class Clock:
    """`hz` cycles a second; at cycle `zero_tsc` core c shows `core_ns[c]`, any other core `other_ns`.

    `real` says that the time is one since 1970. `notes` say what a reader of the numbers must know.
    """

    hz: int
    zero_tsc: int
    other_ns: int
    core_ns: dict[int, int]
    real: bool
    notes: tuple[str, ...] = ()

    def stamps(self, tsc: Int, core: Int) -> Int:
        """Return the ns that the clock shows at each cycle, rounded down."""
        offsets = np.full(1 << 16, self.other_ns, np.int64)
        for number, shown in self.core_ns.items():
            offsets[number] = shown
        stamps_ns: Int = nanoseconds(tsc - self.zero_tsc, self.hz) + offsets[core]
        return stamps_ns


def nanoseconds(cycles: Int, hz: int) -> Int:
    """Return cycles as ns, rounded down, exact for frequencies up to 9 GHz and whatever fits 64 bits."""
    whole, rest = np.divmod(cycles, hz)
    ns: Int = whole * SECOND + rest * SECOND // hz
    return ns


def clock_of(readings: Readings, first_tsc: int, hz: int = 0, path: Path | None = None) -> Clock:
    """Return the clock; `hz` is what the user said, 0 to have it from the readings. InputError where it cannot be determined."""
    straight = _straight(readings, hz)
    notes = []
    left_out = len(readings.tsc) - len(straight.tsc)
    if left_out:
        notes.append(f"{left_out} of {len(readings.tsc)} clock readings lie off the line of the others and were left out")
    if not hz:
        hz = _fitted(straight, path)
    if not len(straight.tsc):
        return Clock(hz, first_tsc, 0, {}, real=False, notes=tuple(notes))
    shown = straight.ns - nanoseconds(straight.tsc - first_tsc, hz)
    cores = {int(core): _mean(shown[straight.core == core]) for core in np.unique(straight.core)}
    spread = (
        int(shown.max() - shown.min()) if len(cores) == 1 else max(int(np.ptp(shown[straight.core == core])) for core in cores)
    )
    if spread > 2 * MS:
        notes.append(f"its clock readings lie up to {spread / MS:.0f} ms apart around a straight line: was the clock set?")
    if len(cores) > 1 and max(cores.values()) - min(cores.values()) > MS:
        apart = (max(cores.values()) - min(cores.values())) / MS
        core_names = ", ".join(str(core & CPU) for core in sorted(cores))
        notes.append(f"the counters of its cores ({core_names}) lie {apart:.0f} ms apart: each core's own clock was taken")
    return Clock(hz, first_tsc, _mean(shown), cores, bool((straight.ns >= REAL_FROM).all()), tuple(notes))


def _mean(values: Int) -> int:
    """Return the mean, rounded down."""
    first = int(values[0])
    return first + int((values - first).sum()) // len(values)


def _straight(readings: Readings, hz: int) -> Readings:
    """Return the readings without those far off the line of the others (a damaged argument, a clock that was set)."""
    if len(readings.tsc) < 3:
        return readings
    slope = SECOND / hz if hz else _usual_slope(readings)
    if not slope:
        return readings
    since = (readings.tsc - readings.tsc[0]).astype(np.float64)
    off = (readings.ns - readings.ns[0]).astype(np.float64) - since * slope
    cores = np.unique(readings.core)
    for core in cores:
        mine = readings.core == core
        off[mine] -= np.median(off[mine])
    allowed = STRAIGHT_NS + STRAIGHT_SHARE * slope * (since.max() - since.min())
    return readings.take(np.flatnonzero(np.abs(off) <= allowed))


def _usual_slope(readings: Readings) -> float:
    """Return the median of ns a cycle between readings that follow each other on a core, 0 where there are none."""
    order = np.lexsort((readings.tsc, readings.core))
    same = np.diff(readings.core[order]) == 0
    cycles = np.diff(readings.tsc[order])[same].astype(np.float64)
    passed = np.diff(readings.ns[order])[same].astype(np.float64)
    slopes = passed[cycles > 0] / cycles[cycles > 0]
    return float(np.median(slopes)) if len(slopes) else 0.0


def _fitted(readings: Readings, path: Path | None) -> int:
    """Return the frequency in Hz from the least-squares slope that all cores share; InputError where there is none."""
    top, bottom = 0.0, 0.0
    for core in np.unique(readings.core):
        mine = readings.core == core
        tsc = (readings.tsc[mine] - readings.tsc[mine][0]).astype(np.float64)
        passed = (readings.ns[mine] - readings.ns[mine][0]).astype(np.float64)
        top += float(((tsc - tsc.mean()) * (passed - passed.mean())).sum())
        bottom += float(((tsc - tsc.mean()) ** 2).sum())
    if bottom <= 0:
        raise InputError(NO_CLOCK, path)
    hz = round(SECOND * bottom / top) if top > 0 else 0
    if not SLOWEST <= hz <= FASTEST:
        frequency = f"{hz:,} cycles a second" if hz else "that time stands still or runs back"
        raise InputError(f"its clock readings say {frequency}, which is impossible: give --tsc-hz, as in --tsc-hz 2.6e9", path)
    return hz
