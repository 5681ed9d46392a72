"""The offsets of a run as a page holds them: events by thread and tick of time, as fine as the room for them allows.

    fine    ticks of `tick_ms`; where `seconds` is more than 1 so many seconds are added up, offset by offset
    wide    where `seconds` is more than 1: ticks of `wide_ms` in plain time, for periods of a minute and more

A tick has a number: in plain time ms // tick_ms since 1970, else column * ticks of a second + tick within the second. Maps of
any period whose rows are whole ticks follow from them exactly, others by overlap (see `ingest.core.offsets.shared`).

Threads that there is no room for are added up, by host where that can be, never left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from ingest.core.dataclass import dataclass
from ingest.core.grid import MS, SECOND
from ingest.core.intervals import Int, Intervals, Sum, merged
from ingest.core.offsets import LAYOUT, counted
from ingest.core.series import Group, Series
from ingest.query.offsets import resolution as offset_resolution
from ingest.query.offsets.resolution import Resolution, resolution_of

BLOCK = 1000  # ticks
MOST_HELD = 500_000
MOST_PENDING = 64
TENTH_MS = 100
MOST_GAPS = MOST_LATE = 20_000
LATE_UNITS_MS = (TENTH_MS, 1_000, 60_000, 3_600_000, 86_400_000)

Name = Callable[[Series], Group | None]  # (run, *LABELS) of a series that is asked for


@dataclass(frozen=True, slots=True)
class Ticks:
    """How many events of `groups[group[i]]` lie in tick `index[i]`; ordered by group, then tick."""

    groups: Sequence[Group]
    group: Int
    index: Int
    count: Int


@dataclass(frozen=True, slots=True)
class RunTicks:
    """The offsets of one run (or of several added up) for a page.

    `fine` and `wide` have the same groups: (host, volume, job, process, tag, op, ""), or REST at the end for what was added
    up, `folded` threads in all. `gaps_ms` are stretches (starts, ends) of whole units of `gap_ms` without any event of the run,
    whatever was selected; `late` has ticks of `late_ms`. From `first_ms` to `end_ms`: tenths of a second with an event.
    """

    run: str
    resolution: Resolution
    fine: Ticks
    wide: Ticks | None
    folded: int
    first_ms: int
    end_ms: int
    gaps_ms: Int
    gap_ms: int
    late: Ticks
    late_ms: int

    @property
    def samples(self) -> int:
        """Return the number of events."""
        return int(self.fine.count.sum())


@dataclass(slots=True)
class Met:
    """What a first pass has met: of each thread how many events, when there were any, which came late; all while they are few."""

    most: int = MOST_HELD
    totals: dict[Group, int] = field(default_factory=dict)
    tenths: dict[str, list[Int]] = field(default_factory=dict)
    late: Sum[Group] = field(default_factory=lambda: Sum(MOST_HELD))
    rows: list[Intervals[Group]] | None = field(default_factory=list)
    held: int = 0

    def add(self, run: str, windows: Intervals[Series], name: Name) -> None:
        """Take windows of a run as a store keeps them: 1 ms bins in windows of 1 s, under their series."""
        self._note(run, np.unique(_times_ms(windows) // TENTH_MS))
        names = {series: name(series) for series in windows.table}
        rows = windows.relabelled(names.__getitem__)
        if not len(rows):
            return
        totals = np.zeros(len(rows.table), np.int64)
        np.add.at(totals, rows.series, rows.samples)
        for key, total in zip(rows.table, totals.tolist(), strict=True):
            self.totals[key] = self.totals.get(key, 0) + total
        if any(series.segment and group for series, group in names.items()):
            self.late.add(windows.relabelled(lambda series: names[series] if series.segment else None))
        self._hold([rows])

    def absorb(self, other: Met) -> None:
        """Take what another process has met."""
        for run, tenths in other.tenths.items():
            self._note(run, *tenths)
        for key, total in other.totals.items():
            self.totals[key] = self.totals.get(key, 0) + total
        for part in other.late.parts():
            self.late.add(part)
        if other.rows is None:
            self.rows = None
        else:
            self._hold(other.rows)

    def occupied(self, run: str) -> Int:
        """Return the tenths of a second since 1970 in which a run has events, in order."""
        self.tenths[run] = [np.unique(np.concatenate(self.tenths[run]))]
        return self.tenths[run][0]

    def _note(self, run: str, *tenths: Int) -> None:
        self.tenths.setdefault(run, []).extend(tenths)
        if len(self.tenths[run]) > MOST_PENDING:
            self.occupied(run)

    def _hold(self, rows: Sequence[Intervals[Group]]) -> None:
        if self.rows is None:
            return
        self.rows += rows
        self.held += sum(len(part.bins) for part in rows)
        if self.held > self.most:
            self.rows = _together(self.rows)
            self.held = sum(len(part.bins) for part in self.rows)
            if 2 * self.held > self.most:
                self.rows = None


def _together(parts: Sequence[Intervals[Group]]) -> list[Intervals[Group]]:
    filled = [part for part in parts if len(part)]
    return [merged(filled)] if filled else []


def _times_ms(windows: Intervals) -> Int:
    return windows.start_ns[windows.row] // MS + windows.bins


@dataclass(slots=True)
class Kept:
    """Ticks of runs at their resolutions, added up as they come."""

    resolutions: Mapping[str, Resolution]
    fine: Sum[Group] = field(default_factory=lambda: Sum(MOST_HELD))
    wide: Sum[Group] = field(default_factory=lambda: Sum(MOST_HELD))

    def add(self, run: str, windows: Intervals[Series], name: Name) -> None:
        """Take windows of a run as a store keeps them."""
        self.take(windows.relabelled(name))

    def take(self, rows: Intervals[Group]) -> None:
        """Take windows that bear (run, *LABELS)."""
        for run in sorted({key[0] for key in rows.table}):
            resolution = self.resolutions[run]
            mine = rows.relabelled(_folded(run, resolution))
            if not len(mine):
                continue
            self.fine.add(_blocks(mine, resolution.index(_times_ms(mine))))
            if resolution.wide_ms:
                self.wide.add(_blocks(mine, _times_ms(mine) // resolution.wide_ms))

    def handed(self) -> tuple[list[Intervals[Group]], list[Intervals[Group]]]:
        """Return the sums so far, for another process to `absorb`."""
        return self.fine.parts(), self.wide.parts()

    def absorb(self, parts: tuple[list[Intervals[Group]], list[Intervals[Group]]]) -> None:
        """Take the sums of another process."""
        for total, sums in zip((self.fine, self.wide), parts, strict=True):
            for part in sums:
                total.add(part)


def _folded(run: str, resolution: Resolution) -> Callable[[Group], Group | None]:
    """Return the function that gives the groups of a run as they are kept at a resolution, None for those of other runs."""
    return lambda key: (run, *resolution.fold(key)) if key[0] == run else None


def _blocks(rows: Intervals[Group], index: Int) -> Intervals[Group]:
    """Return counts by number of tick, in blocks of BLOCK ticks that stand where windows do."""
    return counted(rows.table, rows.series[rows.row], index // BLOCK, index % BLOCK, rows.counts, SECOND, LAYOUT)


def run_ticks(run: str, met: Met, kept: Kept) -> RunTicks:
    """Return what was met of a run, at the resolution that it was kept at."""
    resolution = kept.resolutions[run]
    fine = _ticks(run, kept.fine.parts())
    wide = _ticks(run, kept.wide.parts(), fine.groups) if resolution.wide_ms else None
    tenths = met.occupied(run)
    gaps, unit = _gaps(tenths)
    late, late_ms = _late(run, met.late.parts(), resolution, fine.groups)
    threads = {key for key in met.totals if key[0] == run}
    return RunTicks(
        run=run,
        resolution=resolution,
        fine=fine,
        wide=wide,
        folded=0 if resolution.threads is None else len(threads - resolution.threads),
        first_ms=int(tenths[0]) * TENTH_MS,
        end_ms=int(tenths[-1] + 1) * TENTH_MS,
        gaps_ms=gaps,
        gap_ms=unit,
        late=late,
        late_ms=late_ms,
    )


def _ticks(run: str, parts: Sequence[Intervals[Group]], groups: Sequence[Group] = ()) -> Ticks:
    """Return the ticks of a run, its groups in order unless they are given."""
    mine = [part.relabelled(lambda key: key if key[0] == run else None) for part in parts]
    filled = [part for part in mine if len(part)]
    if not filled:
        return Ticks(groups, *(np.empty(0, np.int64) for _ in range(3)))
    rows = merged(filled)
    used = [key[1:] for key in rows.table]
    order = list(groups) or sorted(used)
    place = np.array([order.index(key) for key in used], np.int64)
    group = place[rows.series[rows.row]]
    index = rows.start_ns[rows.row] // SECOND * BLOCK + rows.bins
    at = np.lexsort((index, group))
    return Ticks(order, group[at], index[at], rows.counts[at])


def _gaps(tenths: Int) -> tuple[Int, int]:
    """Return stretches in ms without any event, and the unit that they are given in; the longest, where they are too many."""
    for unit in (TENTH_MS, 1000):
        occupied = np.unique(tenths * TENTH_MS // unit)
        jumps = np.flatnonzero(np.diff(occupied) > 1)
        gaps = np.stack([occupied[jumps] + 1, occupied[jumps + 1]]) * unit
        if gaps.shape[1] <= MOST_GAPS:
            return gaps, unit
    longest = np.sort(np.argsort(gaps[0] - gaps[1], kind="stable")[:MOST_GAPS])
    return gaps[:, longest], unit


def _late(run: str, late: Sequence[Intervals[Group]], resolution: Resolution, groups: Sequence[Group]) -> tuple[Ticks, int]:
    """Return late events by group and ticks of the unit beside them, as fine as there is room for."""
    mine = _together([part.relabelled(_folded(run, resolution)) for part in late])
    for unit in LATE_UNITS_MS:
        ticks = _ticks(run, [_blocks(part, _times_ms(part) // unit) for part in mine], groups)
        if len(ticks.index) <= MOST_LATE:
            break
    return ticks, unit


def kept_of(met: Met, *, full: bool = False) -> tuple[Kept, bool]:
    """Return where the ticks of all runs are kept, and whether they are there already: what was met is not held if it is much."""
    runs = sorted({key[0] for key in met.totals})
    resolutions = {}
    for run in runs:
        totals = {key: total for key, total in met.totals.items() if key[0] == run}
        seconds = len(np.unique(met.occupied(run) * TENTH_MS // 1000))
        resolutions[run] = Resolution() if full else resolution_of(totals, seconds, offset_resolution.MOST_ENTRIES // len(runs))
    kept = Kept(resolutions)
    for rows in met.rows or ():
        kept.take(rows)
    return kept, met.rows is not None


def unkept(kept: Kept) -> Kept:
    """Return an empty one of the same resolutions, for another process."""
    return replace(kept, fine=Sum(MOST_HELD), wide=Sum(MOST_HELD))


def all_ticks(met: Met, kept: Kept) -> Iterator[RunTicks]:
    """Yield the ticks of each run, by name."""
    for run in sorted(kept.resolutions):
        yield run_ticks(run, met, kept)
