"""What breaths of Snabb processes cost and what they moved: from timelines read now, or from what a store keeps.

What breaths cost and what they moved: counts by packets and cycles a packet, lines through them, a sample of single ones.

    cycles of a breath = base + slope * packets        least squares over every breath in range, from the sums of its windows

The same from files and stores, to the last digit: a range takes whole windows of a second, and sums are added up exactly. Where
timelines of unlike rates come together in a group, each breath counts 5^(9-rate) times; `n` is always what was stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ingest.core.breaths import (
    BREATH,
    CYCLES,
    PACKETS,
    SUMS,
    BreathWindows,
    Rows,
    StoredBreaths,
    joined,
    nothing,
    only,
    taken,
    weight_of,
)
from ingest.core.errors import InputError
from ingest.core.grid import SECOND, window_start
from ingest.core.intervals import Int, distinct_rows
from ingest.core.labels import ASKABLE, RunLabels, Series
from ingest.core.pool import fork_map
from ingest.core.units import figure, number
from ingest.query.aggregate import run_starts
from ingest.query.origin import BREATHS, Origin
from ingest.query.question import Question
from ingest.read.format_names import SNABB

if TYPE_CHECKING:
    from ingest.query.files import Files
    from ingest.read.sources import Source


LEAST_FITTED = 30
LEAST_ALIKE = 3  # of unlike weights: how many of equal ones are as certain
CERTAIN = 2.0  # standard errors that a slope must be away from 0

Name = Callable[[Series], str]


@dataclass(frozen=True, slots=True)
class Fit:
    """A line through breaths: cycles of one without packets, cycles a packet with its standard error, and how well it fits.

    `explained` is the share of the variance (R squared), `residual` the standard deviation of what is left, in cycles. `why`
    says why there is no line: then all these are NaN, but for `residual`, which is about the mean where enough breaths are known.
    """

    n: int
    base: float = math.nan
    slope: float = math.nan
    error: float = math.nan
    explained: float = math.nan
    residual: float = math.nan
    why: str = ""


@dataclass(frozen=True, slots=True)
class Density:
    """Occupied cells, by group: packets of a breath in [.., ..), cycles a packet in [.., ..), `n` stored breaths.

    `count` is n, or where a group mixes rates how many breaths these stand for. `open` is 1 where the upper edge of cycles or
    packets is none.
    """

    groups: tuple[str, ...]
    group: Int
    packets: Int
    packets_to: Int
    cycles: Int
    cycles_to: Int
    n: Int
    count: Int
    open: Int


@dataclass(frozen=True, slots=True)
class Cost:
    """All breaths of a group: stored ones, of which `known` record their packets and `idle` moved none, and what they cost.

    `packets`, `cycles`, `bytes` are sums over the known ones (of all by estimate where `mixed`), `all_breaths` and `all_packets`
    estimates for stored and not stored ones together. `longest` is the most cycles of one.
    """

    name: str
    n: int
    known: int
    idle: int
    longest: int
    packets: float
    cycles: float
    bytes: float
    all_breaths: int
    all_packets: int
    mixed: bool

    @property
    def cycles_a_packet(self) -> float:
        """Return cycles a packet over all; NaN where none was moved."""
        return self.cycles / self.packets if self.packets else math.nan


def breath_rows(windows: BreathWindows) -> BreathWindows:
    """Return the windows of breaths, without those of callbacks."""
    return only(windows, lambda series: series.op == BREATH)


def grouped(windows: BreathWindows, name: Name) -> tuple[tuple[str, ...], Int]:
    """Return the names of groups in order, and the group of each row."""
    names = [name(series) for series in windows.table]
    groups = sorted(set(names))
    place = {group: number for number, group in enumerate(groups)}
    codes = np.array([place[own_name] for own_name in names], np.int64)
    return tuple(groups), codes[windows.series] if len(windows) else np.empty(0, np.int64)


def mixed_groups(windows: BreathWindows, group: Int, groups: int) -> Int:
    """Return, of each group, whether breaths of unlike rates come together in it (1) or not (0)."""
    (paired, _), _ = distinct_rows(group, windows.rate)
    return (np.bincount(paired, minlength=groups) > 1).astype(np.int64)


def density(windows: BreathWindows, name: Name) -> Density:
    """Return how many breaths moved so many packets at so many cycles a packet: exact counts, by group."""
    groups, group = grouped(windows, name)
    mixed = mixed_groups(windows, group, len(groups))
    row = np.repeat(np.arange(len(windows)), np.diff(windows.indptr))
    weight = np.where(mixed[group] > 0, weight_of(windows.rate), 1)[row] if len(row) else row
    span = PACKETS.bins * CYCLES.bins
    occupied, place = np.unique(group[row] * span + windows.cells, return_inverse=True)
    n, count = np.zeros(len(occupied), np.int64), np.zeros(len(occupied), np.int64)
    np.add.at(n, place.reshape(-1), windows.counts)
    np.add.at(count, place.reshape(-1), windows.counts * weight)
    cell = occupied % span
    x, y = cell // CYCLES.bins, cell % CYCLES.bins
    last = (x == PACKETS.bins - 1) | (y == CYCLES.bins - 1)
    edges = (PACKETS.edges[x], PACKETS.edges[x + 1], CYCLES.edges[y], CYCLES.edges[y + 1])
    return Density(groups, occupied // span, *edges, n, count, last.astype(np.int64))


def fits(windows: BreathWindows, name: Name) -> dict[str, Fit]:
    """Return the line through the breaths of each group, computed exactly from their sums, by name."""
    groups, group = grouped(windows, name)
    return {group_name: fitted(moments(taken(windows, np.flatnonzero(group == code)))) for code, group_name in enumerate(groups)}


class Moments(NamedTuple):
    """Exact sums over breaths that record their packets, each `weight` times; `alike`: how many equal weights are as certain."""

    n: int
    total: Fraction
    alike: Fraction
    sums: Mapping[str, Fraction]


def moments(windows: BreathWindows) -> Moments:
    """Return the sums over windows; each breath counts by its rate where rates are mixed."""
    rates = np.unique(windows.rate).tolist()
    total, squared = Fraction(0), Fraction(0)
    sums = dict.fromkeys(SUMS, Fraction(0))
    for rate in rates:
        mine = windows.rate == rate
        weight = int(weight_of(np.array(rate))) if len(rates) > 1 else 1
        known = int(windows.known[mine].sum())
        total += weight * known
        squared += weight * weight * known
        for column, quantity in enumerate(SUMS):
            sums[quantity] += weight * Fraction(math.fsum(windows.sums[mine, column].tolist()))
    return Moments(int(windows.known.sum()), total, total**2 / squared if squared else Fraction(0), sums)


def fitted(breaths: Moments) -> Fit:
    """Return the line of least squares; without one where breaths are few, all moved as much, or the slope is not certain."""
    if breaths.n < LEAST_FITTED:
        return Fit(breaths.n, why=f"{breaths.n} breaths are too few for a line: at least {LEAST_FITTED}")
    if breaths.alike <= LEAST_ALIKE:
        return Fit(breaths.n, why=f"no line: a few breaths stand for nearly all of {breaths.n}")
    sums, total = breaths.sums, breaths.total
    packets, cycles = sums["packets"] / total, sums["cycles"] / total
    spread = sums["packets_squared"] / total - packets**2
    variance = max(Fraction(0), sums["cycles_squared"] / total - cycles**2)
    about = math.sqrt(float(variance) * float(breaths.alike / (breaths.alike - 1)))
    if spread <= 0:
        return Fit(breaths.n, residual=about, why=f"no line: every breath moved {number(float(packets))} packets")
    both = sums["packets_cycles"] / total - packets * cycles
    slope = both / spread
    left = max(Fraction(0), variance - slope * both)
    residual = float(left) * float(breaths.alike / (breaths.alike - 2))
    error = math.sqrt(residual / float(breaths.alike * spread))
    line = Fit(
        n=breaths.n,
        base=float(cycles - slope * packets),
        slope=float(slope),
        error=error,
        explained=1 - float(left / variance) if variance else 1.0,
        residual=math.sqrt(residual),
    )
    if abs(line.slope) < CERTAIN * error:
        why = f"no line: {figure(line.slope)} ± {figure(error, 2)} cycles a packet are not certain"
        return Fit(breaths.n, residual=about, why=why)
    return line


def costs(windows: BreathWindows, name: Name) -> list[Cost]:
    """Return what the breaths of each group cost, those that cost the most cycles a packet first."""
    groups, group = grouped(windows, name)
    mixed = mixed_groups(windows, group, len(groups))
    group_costs = []
    for code, group_name in enumerate(groups):
        mine = taken(windows, np.flatnonzero(group == code))
        sums = moments(mine).sums
        weight = weight_of(mine.rate)
        group_costs.append(
            Cost(
                name=group_name,
                n=int(mine.count.sum()),
                known=int(mine.known.sum()),
                idle=int(mine.idle.sum()),
                longest=int(mine.longest.max(initial=0)),
                packets=float(sums["packets"]),
                cycles=float(sums["cycles"]),
                bytes=float(sums["bytes"]),
                all_breaths=int((mine.count * weight).sum()),
                all_packets=round(math.fsum((mine.sums[:, 0] * weight).tolist())),
                mixed=bool(mixed[code]),
            )
        )
    return sorted(group_costs, key=lambda cost: (-cost.cycles_a_packet if cost.packets else math.inf, cost.name))


def names_of(windows: BreathWindows) -> Name:
    """Return how processes are called: with their host, run and app where there are several of these."""
    hosts, runs = {series.host for series in windows.table}, {series.run for series in windows.table}

    def name(series: Series) -> str:
        parts = [series.run] if len(runs) > 1 else []
        parts += [series.host] if len(hosts) > 1 else []
        parts.append(series.process or "-")
        if series.op != BREATH:
            parts.append(f"{series.job or '-'} {series.op.rpartition('.')[2].removesuffix('ed')}")
        return " ".join(part for part in parts if part)

    return name


# Where breaths come from: timelines read now, or what a store keeps of them; the same rows from both.


OF_BREATHS = ("run", "host", "process")


def kept_from(origin: Origin, question: Question) -> StoredBreaths:
    """Return what is kept of the breaths in files or a store, of the runs, hosts, processes and the time that are asked."""
    breaths = origin.offers.get(BREATHS)
    return breaths(question) if breaths else nothing()


def from_files(files: Files, question: Question) -> StoredBreaths:
    """Return what is kept of the timelines among files, of the runs, hosts, processes and the time that are asked."""
    key = selected(question, files.found.labels)
    sources = [source for source in files.found.sources if source.format == SNABB and key(source.context.series)]
    if not sources:
        return nothing()
    from ingest.read.plugins.snabb.breaths import kept_of  # before processes are forked

    starts = run_starts(sources)

    def work(source: Source) -> Iterator[StoredBreaths | None]:
        try:
            yield kept_of(source)
        except InputError as error:
            source.context.account.note(f"not read: {error.reason}")

    kept_parts = [(number, kept) for number, kept in fork_map(work, sources, files.jobs, joining=True) if kept is not None]
    parts = [
        in_range(kept, question, run := sources[number].context.series.run, starts[run])
        for number, kept in sorted(kept_parts, key=lambda numbered: sources[numbered[0]].context.series)
    ]
    return together(parts)


def selected(question: Question, labels: RunLabels) -> Callable[[Series], bool]:
    """Return whether a question asks for a series; what it says of ops, kinds, jobs and tags is not about breaths."""
    mine = {name: glob for name, glob in question.where.items() if name in OF_BREATHS or name not in ASKABLE}
    key = replace(question, where=mine, by=()).key(labels)
    return lambda series: key(series) is not None


def in_range(kept: StoredBreaths, question: Question, run: str, start_ns: int) -> StoredBreaths:
    """Return what lies in the windows that begin in [floor(begin), end)."""
    begin, end = question.edges(run, start_ns)
    if begin is None and end is None:
        return kept
    low, high = -math.inf if begin is None else begin // SECOND * SECOND, math.inf if end is None else end
    starts = kept.windows.start_ns
    moments = window_start(kept.sample.at_ns, SECOND)
    return StoredBreaths(
        taken(kept.windows, np.flatnonzero((starts >= low) & (starts < high))),
        taken(kept.sample, np.flatnonzero((moments >= low) & (moments < high))),
    )


def together(parts: Sequence[StoredBreaths]) -> StoredBreaths:
    """Return several parts as one, series in order."""
    if not parts:
        return nothing()
    return StoredBreaths(ordered(joined([part.windows for part in parts])), ordered(joined([part.sample for part in parts])))


def ordered(rows: Rows) -> Rows:
    """Return the rows by series, rate and time (those of a sample: by series and order), under a table in order."""
    used = sorted({rows.table[code] for code in np.unique(rows.series)})
    place = {series: number for number, series in enumerate(used)}
    codes = np.array([place.get(series, -1) for series in rows.table], np.int64)[rows.series]
    moved = replace(rows, table=tuple(used), series=codes)
    if isinstance(moved, BreathWindows):
        return taken(moved, np.lexsort((moved.start_ns, moved.rate, moved.series)))
    return taken(moved, np.lexsort((moved.at_ns, moved.order, moved.series)))
