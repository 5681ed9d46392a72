"""What a report's page holds of offsets: ticks of each selected run, from files or a store, read in bounded memory.

The first pass counts threads, and holds all bins while they are few. Where they are not, the resolution that follows from it
is what a second pass is added up at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ingest.core.errors import InputError
from ingest.core.grid import MS, SECOND
from ingest.core.intervals import Intervals
from ingest.core.offsets import LAYOUT, Order, counted
from ingest.core.series import Group, RunLabels, Series
from ingest.query.offsets.counts import Wanted, range_of
from ingest.query.offsets.resolution import LABELS
from ingest.query.offsets.ticks import Kept, Met, Name, RunTicks, all_ticks, kept_of, unkept
from ingest.query.origin import OFFSET_TICKS, Origin
from ingest.query.overview import chosen_runs
from ingest.query.question import Question
from ingest.query.summed import run_starts, warnings_of
from ingest.read.account import Account
from ingest.read.event_once import events_once, offset_sources
from ingest.read.formats import single_events
from ingest.read.sources import PREFER_RAW

if TYPE_CHECKING:
    from ingest.core.events import Events
    from ingest.query.files import Files
    from ingest.read import Source


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


class Pass(Protocol):
    """What a pass over all offsets adds up in: `Met` or `Kept`."""

    def add(self, run: str, windows: Intervals[Series], name: Name) -> None:
        """Take windows of a run."""
        ...


def shown_names(names: Sequence[str], question: Question) -> dict[str, str]:
    """Return under which name each run that a question selects is shown; of all together with `merge_runs`."""
    chosen = chosen_runs(names, question)
    return {run: ", ".join(chosen) if question.merge_runs else run for run in chosen}


def offset_overviews(origin: Origin, names: Mapping[str, str], question: Question, *, full: bool = False) -> list[OffsetOverview]:
    """Return the offsets of the runs in `names` (run: under which name it is shown), those that have any.

    Range and labels of the question select; an origin that keeps no offsets has none. UsageError for labels that there are not.
    """
    isolate = {label: (glob,) for label, glob in question.where.items() if label not in ("kind", "run")}
    wanted = Wanted(replace(question, by=("run", *LABELS), where={}, step="all"), isolate=isolate)
    ticks = origin.offers.get(OFFSET_TICKS)
    return ticks(names, wanted, full=full) if ticks else []


def _raw(files: Files) -> Files:
    """Return the files with raw logs in place of the histogram logs that hold the same I/Os."""
    if not any(skipped.action == "shadowed" for skipped in files.found.skipped):
        return files
    return files.preferring(PREFER_RAW)


def name_of(wanted: Wanted, labels: RunLabels, names: Mapping[str, str]) -> Name:
    """Return the function that gives a series (run as it is shown, *LABELS), None where it is not asked for."""
    key = wanted.key(labels)

    def name(series: Series) -> Group | None:
        group = key(series)
        return None if group is None or series.run not in names else (names[series.run], *group[2:])

    return name


def of_files(files: Files, names: Mapping[str, str], wanted: Wanted, *, full: bool) -> list[OffsetOverview]:
    """Return the offsets of runs in files; where a raw log and a histogram log hold the same I/Os, those of the raw log."""
    files = _raw(files)
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
        _read(files, sources, wanted.question, names, name, kept, unkept(kept))
    return [
        _overview(
            ticks,
            files,
            [source for source in sources if names[source.context.series.run] == ticks.run],
            [source for source in logs if names[source.context.series.run] == ticks.run],
        )
        for ticks in all_ticks(met, kept)
    ]


def _read(
    files: Files,
    sources: Sequence[Source],
    question: Question,
    names: Mapping[str, str],
    name: Name,
    total: Met | Kept,
    mine: Met | Kept,
) -> None:
    """Add all sources up in `total`, those that one process reads in `mine` first."""
    starts = run_starts(sources)

    def work(some: Sequence[Source]) -> None:
        for source in some:
            run = source.context.series.run
            for windows in _windows_of(source, *range_of(question, starts[run])):
                mine.add(names[run], windows, name)

    last: Callable[[], Any] = (lambda: mine) if isinstance(mine, Met) else mine.handed
    for result in files.in_processes([[source] for source in sources], work, last):
        total.absorb(result)


def _overview(ticks: RunTicks, files: Files, taken: Sequence[Source], logs: Sequence[Source]) -> OffsetOverview:
    relative = all(source.context.zero.epoch_ns is None for source in taken)
    histograms = sum(not single_events(source) for source in logs)
    said = f"{histograms} of {len(logs)} logs hold histograms, not single events: they are not in the map of offsets"
    starts = run_starts(taken)
    warnings = tuple(warnings_of(taken, files.found))
    return OffsetOverview(ticks, tuple(sorted(starts)), min(starts.values()), relative, (said,) if histograms else (), warnings)


def _windows_of(source: Source, begin_ns: int | None, end_ns: int | None) -> Iterator[Intervals[Series]]:
    """Yield the offsets of a source's events in [begin, end) as a store keeps them: late ones are of segment 1."""
    order, account = Order(), source.context.account
    account.replace(Account(path=account.path, notes=account.notes))  # read anew, counted anew
    try:
        for chunk in events_once(source):
            account.samples += chunk.samples
            late = order.late(chunk)
            inside = np.ones(len(chunk), np.bool_)
            if begin_ns is not None:
                inside &= chunk.end_ns >= begin_ns
            if end_ns is not None:
                inside &= chunk.end_ns < end_ns
            at = np.flatnonzero(inside)
            if len(at):
                yield _windows(chunk.take(at), late[at].astype(np.int64))
    except InputError as error:
        source.context.account.note(f"not read: {error.reason}")


def _windows(events: Events, segment: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Intervals[Series]:
    second, within_it = np.divmod(events.end_ns, SECOND)
    series, many = list(events.table), len(events.table)
    table = [stream.replaced(segment=number) for number in range(int(segment.max()) + 1) for stream in series]
    codes = events.series + many * segment
    return counted(table, codes, second, within_it // MS, events.weight, SECOND, LAYOUT)
