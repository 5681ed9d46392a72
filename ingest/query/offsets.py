"""When within each second (or minute, hour, day) things happened: counts by offset, from files and stores.

The offsets of a run as a page holds them: events by thread and tick of time, as fine as the room for them allows.

    fine    ticks of `tick_ms`; where `seconds` is more than 1 so many seconds are added up, offset by offset
    wide    where `seconds` is more than 1: ticks of `wide_ms` in plain time, for periods of a minute and more

A tick has a number: in plain time ms // tick_ms since 1970, else column * ticks of a second + tick within the second. Maps of
any period whose rows are whole ticks follow from them exactly, others by overlap (see `ingest.core.offsets.shared`).

Threads that there is no room for are added up, by host where that can be, never left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ingest.core.coverage import REFUSED_FILE, Missing
from ingest.core.errors import InputError, UsageError, counted
from ingest.core.events import Events
from ingest.core.grid import MS, SECOND
from ingest.core.intervals import Bool, Int, Intervals, Other, Sum, distinct_rows, in_time_order, merged, summed
from ingest.core.labels import LAYER, OFFSET, OUTCOME, Group, RunLabels, Series, as_options, fits, label_of
from ingest.core.offsets import LAYOUT, Order, Periods, counted_offsets, from_bins, shared
from ingest.core.units import format_duration
from ingest.query.aggregate import run_starts, warnings_of
from ingest.query.coverage import folded
from ingest.query.origin import OFFSET_TICKS, Origin
from ingest.query.question import AUTO, Question, check_labels, left_out_by_clock, logs_left_out, selected_runs, undated_runs
from ingest.query.table import Table, label_columns
from ingest.read import events_once, offset_sources
from ingest.read.account import Account
from ingest.read.formats import single_events
from ingest.read.missing import CUT_SHORT, unreadable
from ingest.read.sources import PREFER_RAW, Source

if TYPE_CHECKING:
    from ingest.query.files import Files


# The offset map as a value: its cells, what is marked in it, and its tables.


@dataclass(frozen=True, slots=True)
class OffsetMap:
    """Events by group, column and row: `cells` has a row per group and period, its bins are rows of `periods`.

    `late_ns` are the periods of events that were reported late, with how many in `late`; `missing_ns` the stretches (starts,
    ends) of periods in which no event of these runs was recorded at all, whatever was selected: no zero, but nothing known.
    The runs reach from `first_ns` to `end_ns`, whole periods. `lit` are the highlighted among the events of `cells`.
    """

    cells: Intervals[Group]
    periods: Periods
    by: tuple[str, ...]
    runs: tuple[str, ...]
    run_start_ns: Mapping[str, int]
    relative: bool
    late_ns: Int
    late: Int
    first_ns: int
    end_ns: int
    missing_ns: Int
    warnings: tuple[str, ...] = ()
    answered_from: str = "files"
    lit: Intervals[Group] | None = None
    undated: frozenset[str] = frozenset()  # an answer has it: a map is never of runs on clocks that differ

    @property
    def samples(self) -> int:
        """Return the number of events in the map."""
        return int(self.cells.counts.sum())

    @property
    def start_of(self) -> int:
        """Return the epoch ns that elapsed time counts from."""
        return min(self.run_start_ns.values(), default=0)


def offsets(answer: OffsetMap) -> Table:
    """Return one row per period, group and occupied row: start_ns, labels, offset_lower, offset_upper (ns), count.

    Where something is highlighted also how many of them are: highlighted.
    """
    part = in_time_order(answer.cells)
    row, edges = part.row, answer.periods.edges
    columns = {"start_ns": part.start_ns[row], **label_columns(part.table, answer.by, part.series[row])}
    columns |= {"offset_lower": edges[part.bins], "offset_upper": edges[part.bins + 1], "count": part.counts}
    columns |= {"highlighted": lit_counts(answer)} if answer.lit is not None else {}
    return Table(columns, answer.by)


def highlighted(answer: OffsetMap, lit: OffsetMap) -> OffsetMap:
    """Return the map with the events of a second one, which are a part of its own, highlighted."""
    cells = lit.cells
    if answer.by != lit.by:  # the part is of one run alone, so that it is not named there
        cells = cells.relabelled(lambda key: (*lit.runs, *key))
    return replace(answer, lit=cells)


def lit_counts(answer: OffsetMap) -> Int:
    """Return how many events are highlighted in each cell, in the order of `offsets`."""
    part, lit = in_time_order(answer.cells), answer.lit
    if lit is None:
        return np.zeros(len(part.bins), np.int64)
    keys, table = part.table, lit.table
    place = np.array([keys.index(key) if key in keys else -1 for key in table], np.int64)
    ours, theirs = (
        (cells.start_ns[cells.row], code[cells.row], cells.bins)
        for cells, code in ((part, part.series), (lit, place[lit.series]))
    )
    (met, *_), at = distinct_rows(*(np.concatenate(column) for column in zip(ours, theirs, strict=True)))
    return summed(lit.counts, at[len(part.bins) :], len(met))[at[: len(part.bins)]]


def joined(answer: OffsetMap, most: int) -> tuple[OffsetMap, int]:
    """Return the map with neighbouring periods added up, offset by offset, so that there are at most `most` columns.

    Beside it the width of a column in ns.
    """
    period, cells = answer.periods.period_ns, answer.cells
    width = -(-((answer.end_ns - answer.first_ns) // period) // most) * period
    if width <= period:
        return answer, period
    lit = None if answer.lit is None else _widened(answer.lit, answer.first_ns, width)
    return replace(answer, cells=_widened(cells, answer.first_ns, width), lit=lit), width


def _widened(cells: Intervals[Group], first_ns: int, width_ns: int) -> Intervals[Group]:
    start = (cells.start_ns - first_ns) // width_ns * width_ns + first_ns
    return merged([replace(cells, start_ns=start, end_ns=start + width_ns)])


# Events and stored offsets -> counts by what they are: cells of the map, shared bins, late events, all events of a run.
#
# Counts are intervals whose keys are (what, run, labels): sums of them can be handed from process to process.


CELLS, SHARED, LATE, ALL = "cells", "shared", "late", "all"

Key = Callable[[Series], Group | None]


@dataclass(frozen=True, slots=True)
class WantedOffsets:
    """Which events are to be mapped, and how.

    `question` selects runs and time and groups (its step and its `where` are not looked at). `isolate` names, by label, the
    globs that `fits` takes; `lit` is a further choice of the same kind.
    """

    question: Question = field(default_factory=Question)
    periods: Periods = field(default_factory=Periods)
    isolate: Mapping[str, str] = field(default_factory=dict)
    lit: Mapping[str, str] = field(default_factory=dict)

    @property
    def selects(self) -> bool:
        """Return whether labels choose among the events of a run."""
        return bool(self.isolate or self.lit)

    def check(self, run_labels: RunLabels) -> None:
        """Raise UsageError for a label that no series and no run has, and for layer and outcome, which no event has."""
        named = (*self.question.by, *self.isolate, *self.lit)
        if without := next((label for label in (LAYER, OUTCOME) if label in named), ""):
            raise UsageError(f"single events are kept without their {without}, all in one map: leave out {without}")
        check_labels(replace(self.question, where=dict.fromkeys({**self.isolate, **self.lit}, "*")), run_labels)

    def takes(self, run: str) -> bool:
        """Return whether a run is among those that labels choose."""
        return all(fits(run, chosen["run"]) for chosen in (self.isolate, self.lit) if "run" in chosen)

    def key(self, run_labels: RunLabels) -> Key:
        """Return the function that gives a series its group (run, then the labels of `by`), None if it is not selected.

        All events are of the kind offset here, as a store keeps them, whatever was timed beside their moment.
        """
        criteria = [*self.isolate.items(), *self.lit.items()]

        def key(timed: Series) -> Group | None:
            series = timed.replaced(kind=OFFSET)
            if not all(fits(label_of(series, name, run_labels), globs) for name, globs in criteria):
                return None
            return (series.run, *(label_of(series, name, run_labels) for name in self.question.by))

        return key


def of_source(source: Source, wanted: WantedOffsets, key: Key, start_ns: int) -> Iterator[Intervals[Group]]:
    """Yield the counts of the events of a source, chunk by chunk."""
    known: dict[Series, Group | None] = {}
    for events, late in events_in(source, wanted.question, start_ns):
        known |= {series: key(series) for series in events.table if series not in known}
        groups = [known[series] for series in events.table]
        yield from _of_events(events, late, groups, source.context.series.run, wanted.periods)


def events_in(source: Source, question: Question, start_ns: int) -> Iterator[tuple[Events, Bool]]:
    """Yield the events of a source in the range of a question, and which came late; counted anew, as they are read anew."""
    begin, end = question.edges(source.context.series.run, start_ns)
    order, account = Order(), source.context.account
    account.replace(Account(path=account.path, notes=account.notes))
    try:
        for chunk in events_once(source):
            account.samples += chunk.samples
            late = order.late(chunk)
            inside = np.ones(len(chunk), np.bool_)
            if begin is not None:
                inside &= chunk.end_ns >= begin
            if end is not None:
                inside &= chunk.end_ns < end
            if len(at := np.flatnonzero(inside)):
                yield chunk.take(at), late[at]
    except InputError as error:
        account.lack(unreadable(source, error.reason))


def _of_events(
    events: Events, late: Bool, groups: Sequence[Group | None], run: str, periods: Periods
) -> Iterator[Intervals[Group]]:
    """Yield the counts of events in time: of those in a group, of those of them that came late, and of all of the run."""
    table = {group: code for code, group in enumerate(dict.fromkeys(group for group in groups if group is not None))}
    codes = np.array([-1 if group is None else table[group] for group in groups], np.int64)[events.series]
    mine = np.flatnonzero(codes >= 0)
    placed = None
    if len(mine):
        placed = periods.placed(events.take(mine), [(CELLS, *group) for group in table], codes[mine])
        yield placed
    belated = np.flatnonzero(late & (codes >= 0))
    if len(belated):
        yield _without_rows(periods.placed(events.take(belated), [(LATE, *group) for group in table], codes[belated]))
    if placed is None or len(mine) < len(events):
        placed = periods.placed(events, [(ALL, run)], np.zeros(len(events), np.int64))
    yield _without_rows(placed).relabelled(lambda _: (ALL, run))


def _without_rows(placed: Intervals[Other]) -> Intervals[Other]:
    """Return how many events there are by column alone."""
    ends = np.arange(len(placed) + 1, dtype=np.int64)
    return replace(placed, indptr=ends, bins=np.zeros(len(placed), np.int64), counts=placed.samples)


def of_windows(windows: Intervals[Series], periods: Periods, key: Key) -> Iterator[Intervals[Group]]:
    """Yield the counts of stored offsets under their groups."""
    for rows, flag in zip(from_bins(windows, periods), (CELLS, SHARED), strict=True):
        if len(rows):
            yield from _of_rows(rows, flag, key)


def _of_rows(rows: Intervals[Series], flag: str, key: Key) -> Iterator[Intervals[Group]]:
    groups = {series: key(series) for series in rows.table}
    yield rows.relabelled(lambda series: _flagged(flag, groups[series]))
    counts = _without_rows(rows)
    yield counts.relabelled(lambda series: _flagged(LATE, groups[series]) if series.segment else None)
    yield counts.relabelled(lambda series: (ALL, series.run))


def _flagged(flag: str, group: Group | None) -> Group | None:
    """Return a group with what its counts are in front."""
    return None if group is None else (flag, *group)


# When within each second (or minute, hour, day) did things happen: events counted by whole period and offset.
#
# The same map comes from the single events of files, exact whatever the rows, and from the offsets that a store keeps (1 ms
# bins in windows of 1 s): equal where the edges of rows are whole milliseconds, else resampled by overlap and said so.


HELD_ENTRIES = 500_000


def from_files(files: Files, wanted: WantedOffsets) -> OffsetMap:
    """Return the map of the single events in files, streamed; exact whatever the rows.

    Raises InputError where no file holds single events or none is selected, UsageError for labels that there are not.
    """
    wanted.check(files.found.labels)
    every = files.selected(replace(wanted.question, where={}, step="all"))
    asked = offset_sources([source for source in every if wanted.takes(source.context.series.run)])
    apart = left_out_by_clock(replace(wanted.question, step=AUTO), undated_runs(asked))
    names = [str(source.path) for source in asked if source.context.series.run in apart]
    logs = [source for source in every if source.context.series.run not in apart]
    sources = offset_sources(logs)
    if not sources:
        raise InputError("none of these files holds single events: histograms do not record when each I/O completed")
    starts = run_starts(sources)
    total, of_process = Sum[Group](HELD_ENTRIES), Sum[Group](HELD_ENTRIES)

    def work(some: Sequence[Source]) -> None:
        for source in some:
            for part in of_source(source, wanted, wanted.key(files.found.labels), starts[source.context.series.run]):
                of_process.add(part)

    for counts in files.in_processes([[source] for source in sources], work, of_process.parts):
        for part in counts:
            total.add(part)
    parts, account = total.parts(), files.account
    if not parts and not account.accepted:
        reason = next(iter((*account.rejected, *account.notes)), "they are empty")
        raise InputError(f"no event could be taken: {reason}", ", ".join(str(source.path) for source in sources))
    return map_of(
        parts,
        wanted,
        starts=starts,
        relative=all(undated_runs(sources).values()),
        warnings=(
            *((logs_left_out(names, len(asked), apart),) if names else ()),
            *_left_out(logs, sources),
            *warnings_of(sources, files.found),
            *cut_short(_missing(sources)),
        ),
        answered_from="files",
    )


def cut_short(entries: Iterable[Missing]) -> tuple[str, ...]:
    """Return the sentences on files that end early: a map does not show what it lacks."""
    return tuple(map(str, folded(entry.caveat for entry in entries if entry.caveat.code in (CUT_SHORT, REFUSED_FILE))))


def _missing(sources: Sequence[Source]) -> Iterator[Missing]:
    return (entry for source in sources for entry in source.context.account.missing)


def _left_out(logs: Sequence[Source], taken: Sequence[Source]) -> Iterator[str]:
    """Yield a sentence on files that are not in a map of their events."""
    histograms = sum(not single_events(source) for source in logs)
    if histograms:
        yield f"{histograms} of {len(logs)} logs hold histograms, not single events: they are not in the map"
    again = len(logs) - histograms - len(taken)
    if again:
        kinds = ", ".join(sorted({source.context.series.kind for source in taken}))
        hold, are = ("holds", "is") if again == 1 else ("hold", "are")
        their = "its" if again == 1 else "their"
        said = f"{counted(again, 'log')} {hold} the same I/Os as another log of {their} job and {are} left out"
        yield f"{said}: each counts once (kind {kinds})"


def map_of(
    parts: Sequence[Intervals[Group]],
    wanted: WantedOffsets,
    *,
    starts: Mapping[str, int],
    relative: bool,
    warnings: Sequence[str],
    answered_from: str,
) -> OffsetMap:
    """Return the map of counts that are keyed by what they are (cells, shared, late, all), run and labels."""
    question, periods = wanted.question, wanted.periods
    straddling = _with_flag(parts, SHARED)
    cells = [*_with_flag(parts, CELLS), *(shared(merged(straddling), periods) for _ in straddling[:1])]
    runs = tuple(sorted({key[1] for part in cells for key in part.table}))
    if not runs:
        raise InputError(f"no event matches {selection_in_words(wanted)}")
    named = len(runs) > 1 and "run" not in question.by and not question.merge_runs
    columns = np.unique(np.concatenate([part.start_ns for part in _with_flag(parts, ALL)]))
    late, count = _late(_with_flag(parts, LATE))
    jumps = np.flatnonzero(np.diff(columns) > periods.period_ns)
    gaps = np.stack([columns[jumps] + periods.period_ns, columns[jumps + 1]])
    return OffsetMap(
        cells=merged([part.relabelled(lambda key: (*key[1:2][: int(named)], *key[2:])) for part in cells]),
        periods=periods,
        by=(*(("run",) if named else ()), *question.by),
        runs=runs,
        run_start_ns={run: starts[run] for run in runs},
        relative=relative,
        late_ns=late,
        late=count,
        first_ns=int(columns[0]),
        end_ns=int(columns[-1]) + periods.period_ns,
        missing_ns=gaps,
        warnings=(*warnings, *_marked(periods, gaps, count)),
        answered_from=answered_from,
    )


def _with_flag(parts: Sequence[Intervals[Group]], flag: str) -> list[Intervals[Group]]:
    """Return the rows of the parts whose key begins with a flag; those alone are in their tables."""
    flagged = [part.relabelled(lambda key: key if key[0] == flag else None) for part in parts]
    return [part for part in flagged if len(part)]


def selection_in_words(wanted: WantedOffsets) -> str:
    """Return what was asked for, as options, for a sentence."""
    asked = as_options("--where", wanted.isolate) + as_options("--highlight", wanted.lit)
    asked += ["--from/--to"] if wanted.question.begin or wanted.question.end else []
    return " ".join(asked) or "the question"


def _late(parts: Sequence[Intervals[Group]]) -> tuple[Int, Int]:
    """Return the periods in which events came late, and how many."""
    none = np.empty(0, np.int64)
    late, place = np.unique(np.concatenate([none, *(part.start_ns for part in parts)]), return_inverse=True)
    count = np.zeros(len(late), np.int64)
    np.add.at(count, place, np.concatenate([none, *(part.samples for part in parts)]))
    return late, count


def _marked(periods: Periods, gaps: Int, late: Int) -> Iterator[str]:
    """Yield a sentence on what is marked in the map."""
    period = format_duration(periods.period_ns)
    if missing := int(((gaps[1] - gaps[0]) // periods.period_ns).sum()):
        yield f"{missing} whole periods of {period} without any event of these runs: marked as missing, not as zero"
    if len(late):
        sentence = f"{counted(int(late.sum()), 'event was', 'events were')} reported more than a second late"
        yield f"{sentence}, in {counted(len(late), 'period')}: marked, placed by their own time"


# How finely the offsets of a run are kept for a page: ticks, columns, and which threads by themselves.
#
# It follows from the counts of a first pass alone, so that it is the same however many processes read.


LABELS = ("host", "volume", "job", "process", "tag", "op")
HOST = 1  # the place of the host in (run, *LABELS)
REST = "rest"
MOST_ENTRIES, MOST_WIDE = 900_000, 150_000  # at most 3 characters of a page each, usually one
SPARSE = 2  # how many others a tick of 1 ms takes the room of: the distances between them are large
COLUMNS = 720
TICKS_MS = ((256, 1), (256, 10), (256, 20), (64, 20))  # of how many threads, what ticks
WIDTHS = (2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
FEWER = (64, 32, 16, 8, 4, 2, 1)
LEAST_BESIDE_HOSTS = 16
WIDE_MS = (200, 600, 1_200, 6_000, 12_000, 72_000, 1_728_000)  # each in rows of whole minutes, hours and days


@dataclass(frozen=True, slots=True)
class Resolution:
    """How finely the events of a run are kept: ticks, and which threads by themselves (None: all).

    The others are added up, by host or all together.
    """

    tick_ms: int = 1
    seconds: int = 1
    wide_ms: int = 0
    threads: frozenset[Group] | None = None
    by_host: bool = True

    def index(self, time_ms: Int) -> Int:
        """Return the number of the fine tick that each time lies in."""
        if self.seconds == 1:
            return time_ms // self.tick_ms
        second, within = np.divmod(time_ms, 1000)
        index: Int = second // self.seconds * (1000 // self.tick_ms) + within // self.tick_ms
        return index

    def fold(self, key: Group) -> Group:
        """Return (host, volume, job, process, tag, op, "") of a thread that is kept, else what it is added up in."""
        if self.threads is None or key in self.threads:
            return (*key[1:], "")
        return (key[HOST] if self.by_host else "", *[""] * (len(LABELS) - 1), REST)


def resolution_of(totals: Mapping[Group, int], seconds: int, most: int) -> Resolution:
    """Return the finest resolution of which the ticks that can be filled are at most `most`.

    `totals` are the events of each thread, `seconds` those in which there were any. Finer ticks are given up first, then
    threads, then columns down to as many as a picture has, threads again, then hosts, then threads down to one.
    """
    order = sorted(totals, key=lambda key: (-totals[key], key))
    enough = -(-seconds // COLUMNS)
    widths = sorted({1, *(width for width in WIDTHS if width < enough), enough})
    tries = [(1, *ticks, True) for ticks in TICKS_MS] + [(width, FEWER[0], TICKS_MS[-1][1], True) for width in widths]
    tries += [(enough, threads, TICKS_MS[-1][1], True) for threads in FEWER if threads >= LEAST_BESIDE_HOSTS]
    tries += [(enough, threads, TICKS_MS[-1][1], False) for threads in FEWER]
    for width, threads, tick, by_host in tries:
        cells = -(-seconds // width) * (1000 // tick)
        if _filled(order, totals, threads, cells, by_host=by_host) * (SPARSE if tick == 1 else 1) <= most:
            break
    kept = None if len(order) <= threads else frozenset(order[:threads])
    wide = 0
    if width > 1:
        room = most * MOST_WIDE // MOST_ENTRIES
        fits = (
            tick_ms
            for tick_ms in WIDE_MS
            if _filled(order, totals, threads, -(-seconds * 1000 // tick_ms), by_host=by_host) <= room
        )
        wide = next(fits, WIDE_MS[-1])
    return Resolution(tick, width, wide, kept, by_host)


def _filled(order: Sequence[Group], totals: Mapping[Group, int], threads: int, cells: int, *, by_host: bool) -> int:
    """Return an upper bound of how many ticks are filled where `cells` can be, by thread."""
    rest = Counter[str]()
    for key in order[threads:]:
        rest[key[HOST] if by_host else ""] += totals[key]
    return sum(min(total, cells) for total in (*(totals[key] for key in order[:threads]), *rest.values()))


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
    up, `folded` threads in all. `gaps_ms` are stretches (starts, ends) without any event of the run,
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
    totals: Counter[Group] = field(default_factory=Counter)
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
        self.totals.update(dict(zip(rows.table, totals.tolist(), strict=True)))
        if any(series.segment and group for series, group in names.items()):
            self.late.add(windows.relabelled(lambda series: names[series] if series.segment else None))
        self._hold([rows])

    def absorb(self, other: Met) -> None:
        """Take what another process has met."""
        for run, tenths in other.tenths.items():
            self._note(run, *tenths)
        self.totals.update(other.totals)
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
    """Return the sum of parts, none where they are empty."""
    filled = [part for part in parts if len(part)]
    return [merged(filled)] if filled else []


def _times_ms(windows: Intervals) -> Int:
    return windows.start_ns[windows.row] // MS + windows.bins


@dataclass(slots=True)
class TickSums:
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
    return counted_offsets(rows.table, rows.series[rows.row], index // BLOCK, index % BLOCK, rows.counts, SECOND, LAYOUT)


def _ticks(run: str, parts: Sequence[Intervals[Group]], groups: Sequence[Group] = ()) -> Ticks:
    """Return the ticks of a run, its groups in order unless they are given."""
    mine = _together([part.relabelled(lambda key: key if key[0] == run else None) for part in parts])
    if not mine:
        return Ticks(groups, *(np.empty(0, np.int64) for _ in range(3)))
    (rows,) = mine
    used = [key[1:] for key in rows.table]
    order = list(groups) or sorted(used)
    place = np.array([order.index(key) for key in used], np.int64)
    group = place[rows.series[rows.row]]
    index = rows.start_ns[rows.row] // SECOND * BLOCK + rows.bins
    at = np.lexsort((index, group))
    return Ticks(order, group[at], index[at], rows.counts[at])


def _gaps(tenths: Int) -> Int:
    """Return stretches in ms without any event, of whole seconds or the longest where they are too many."""
    for unit in (TENTH_MS, 1000):
        occupied = np.unique(tenths * TENTH_MS // unit)
        jumps = np.flatnonzero(np.diff(occupied) > 1)
        gaps = np.stack([occupied[jumps] + 1, occupied[jumps + 1]]) * unit
        if gaps.shape[1] <= MOST_GAPS:
            return gaps
    longest = np.sort(np.argsort(gaps[0] - gaps[1], kind="stable")[:MOST_GAPS])
    return gaps[:, longest]


def kept_of(met: Met, *, full: bool = False) -> tuple[TickSums, bool]:
    """Return where the ticks of all runs are kept, and whether they are there already: what was met is not held if it is much."""
    runs = sorted({key[0] for key in met.totals})
    resolutions = {}
    for run in runs:
        totals = {key: total for key, total in met.totals.items() if key[0] == run}
        seconds = len(np.unique(met.occupied(run) * TENTH_MS // 1000))
        resolutions[run] = Resolution() if full else resolution_of(totals, seconds, MOST_ENTRIES // len(runs))
    kept = TickSums(resolutions)
    for rows in met.rows or ():
        kept.take(rows)
    return kept, met.rows is not None


def all_ticks(met: Met, kept: TickSums) -> Iterator[RunTicks]:
    """Yield the ticks of each run, by name, at the resolution that it was kept at."""
    for run in sorted(kept.resolutions):
        resolution = kept.resolutions[run]
        fine = _ticks(run, kept.fine.parts())
        tenths = met.occupied(run)
        mine = _together([part.relabelled(_folded(run, resolution)) for part in met.late.parts()])
        for late_ms in LATE_UNITS_MS:  # as fine as there is room for
            late = _ticks(run, [_blocks(part, _times_ms(part) // late_ms) for part in mine], fine.groups)
            if len(late.index) <= MOST_LATE:
                break
        threads = {key for key in met.totals if key[0] == run}
        yield RunTicks(
            run=run,
            resolution=resolution,
            fine=fine,
            wide=_ticks(run, kept.wide.parts(), fine.groups) if resolution.wide_ms else None,
            folded=0 if resolution.threads is None else len(threads - resolution.threads),
            first_ms=int(tenths[0]) * TENTH_MS,
            end_ms=int(tenths[-1] + 1) * TENTH_MS,
            gaps_ms=_gaps(tenths),
            late=late,
            late_ms=late_ms,
        )


# What a report's page holds of offsets: ticks of each selected run, from files or a store, read in bounded memory.
#
# The first pass counts threads, and holds all bins while they are few. Where they are not, the resolution that follows from it
# is what a second pass is added up at.


@dataclass(frozen=True, slots=True)
class OffsetOverview:
    """The offsets of a run (or of several added up), when elapsed time begins, whether no clock is known, and notes.

    `warnings` are those that latencies of the same sources come with, too: repairs, rejects, what was left out.
    """

    ticks: RunTicks
    runs: tuple[str, ...]
    start_ns: int
    relative: bool
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def shown_names(names: Sequence[str], question: Question) -> dict[str, str]:
    """Return under which name each run that a question selects is shown; of all together with `merge_runs`."""
    chosen = selected_runs(names, question)
    return {run: ", ".join(chosen) if question.merge_runs else run for run in chosen}


def offset_overviews(origin: Origin, names: Mapping[str, str], question: Question, *, full: bool = False) -> list[OffsetOverview]:
    """Return the offsets of the runs in `names` (run: under which name it is shown), those that have any.

    Range and labels of the question select; an origin that keeps no offsets has none. UsageError for labels that there are not.
    """
    ticks = origin.offers.get(OFFSET_TICKS)
    return ticks(names, chosen_of(question), full=full) if ticks else []


def chosen_of(question: Question) -> WantedOffsets:
    """Return which events a question selects: by its range and labels, grouped by run and LABELS."""
    isolate = {label: glob for label, glob in question.where.items() if label not in ("kind", "run")}
    return WantedOffsets(replace(question, by=("run", *LABELS), where={}, step="all"), isolate=isolate)


def name_of(wanted: WantedOffsets, labels: RunLabels, names: Mapping[str, str]) -> Name:
    """Return the function that gives a series (run as it is shown, *LABELS), None where it is not asked for."""
    key = wanted.key(labels)

    def name(series: Series) -> Group | None:
        group = key(series)
        return None if group is None or series.run not in names else (names[series.run], *group[2:])

    return name


def of_files(files: Files, names: Mapping[str, str], wanted: WantedOffsets, *, full: bool) -> list[OffsetOverview]:
    """Return the offsets of runs in files; where a raw log and a histogram log hold the same I/Os, those of the raw log."""
    if any(skipped.action == "shadowed" for skipped in files.found.skipped):
        files = files.preferring(PREFER_RAW)
    wanted.check(files.found.labels)
    logs = [source for source in files.found.sources if source.context.series.run in names]
    sources = offset_sources(logs)
    if not sources:
        return []
    name = name_of(wanted, files.found.labels, names)
    met = Met()
    _read(files, sources, wanted.question, names, name, met, Met())
    kept, there = kept_of(met, full=full)
    if not there:
        _read(files, sources, wanted.question, names, name, kept, TickSums(kept.resolutions))
    overviews = []
    for ticks in all_ticks(met, kept):
        taken, own = ([source for source in of if names[source.context.series.run] == ticks.run] for of in (sources, logs))
        histograms = sum(not single_events(source) for source in own)
        said = f"{histograms} of {len(own)} logs hold histograms, not single events: they are not in the map of offsets"
        relative, starts = all(undated_runs(taken).values()), run_starts(taken)
        about = (tuple(sorted(starts)), min(starts.values()), relative, (said,) if histograms else ())
        overviews.append(OffsetOverview(ticks, *about, (*warnings_of(taken, files.found), *cut_short(_missing(taken)))))
    return overviews


def _read(
    files: Files,
    sources: Sequence[Source],
    question: Question,
    names: Mapping[str, str],
    name: Name,
    total: Met | TickSums,
    mine: Met | TickSums,
) -> None:
    """Add all sources up in `total`, those that one process reads in `mine` first."""
    starts = run_starts(sources)

    def work(some: Sequence[Source]) -> None:
        for source in some:
            run = source.context.series.run
            for events, late in events_in(source, question, starts[run]):
                mine.add(names[run], _windows(events, late.astype(np.int64)), name)

    last: Callable[[], Any] = (lambda: mine) if isinstance(mine, Met) else mine.handed
    for result in files.in_processes([[source] for source in sources], work, last):
        total.absorb(result)


def _windows(events: Events, segment: Int) -> Intervals[Series]:
    """Return offsets of events as a store keeps them: late ones are of segment 1."""
    second, within_it = np.divmod(events.end_ns, SECOND)
    series, many = list(events.table), len(events.table)
    table = [stream.replaced(segment=number) for number in range(int(segment.max()) + 1) for stream in series]
    codes = events.series + many * segment
    return counted_offsets(table, codes, second, within_it // MS, events.weight, SECOND, LAYOUT)
