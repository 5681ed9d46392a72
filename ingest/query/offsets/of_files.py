"""When within each second (or minute, hour, day) did things happen: events counted by whole period and offset.

The same map comes from the single events of files, exact whatever the rows, and from the offsets that a store keeps (1 ms
bins in windows of 1 s): equal where the edges of rows are whole milliseconds, else resampled by overlap and said so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ingest.core.errors import InputError, counted
from ingest.core.intervals import Int, Intervals, Sum, merged
from ingest.core.offsets import Periods, shared
from ingest.core.series import Group
from ingest.core.timing import format_duration
from ingest.query.clocks import left_out, logs_left_out, undated_runs
from ingest.query.offsets.counts import ALL, CELLS, LATE, SHARED, Wanted, of_source
from ingest.query.offsets.map import OffsetMap
from ingest.query.question import AUTO
from ingest.query.summed import run_starts, warnings_of
from ingest.read.event_once import offset_sources
from ingest.read.formats import single_events

if TYPE_CHECKING:
    from ingest.query.files import Files
    from ingest.read import Source

HELD_ENTRIES = 500_000


def from_files(files: Files, wanted: Wanted) -> OffsetMap:
    """Return the map of the single events in files, streamed; exact whatever the rows.

    Raises InputError where no file holds single events or none is selected, UsageError for labels that there are not.
    """
    wanted.check(files.found.labels)
    every = files.selected(replace(wanted.question, where={}, step="all"))
    asked = offset_sources([source for source in every if wanted.takes(source.context.series.run)])
    apart = left_out(replace(wanted.question, step=AUTO), undated_runs(asked))
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
        ),
        answered_from="files",
    )


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
    wanted: Wanted,
    *,
    starts: Mapping[str, int],
    relative: bool,
    warnings: Sequence[str],
    answered_from: str,
) -> OffsetMap:
    """Return the map of counts that are keyed by what they are (cells, shared, late, all), run and labels."""
    question, periods = wanted.question, wanted.periods
    straddling = _flagged(parts, SHARED)
    cells = [*_flagged(parts, CELLS), *(shared(merged(straddling), periods) for _ in straddling[:1])]
    runs = tuple(sorted({key[1] for part in cells for key in part.table}))
    if not runs:
        raise InputError(f"no event matches {selection_in_words(wanted)}")
    named = len(runs) > 1 and "run" not in question.by and not question.merge_runs
    columns = np.unique(np.concatenate([part.start_ns for part in _flagged(parts, ALL)]))
    late, count = _late(_flagged(parts, LATE))
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


def _flagged(parts: Sequence[Intervals[Group]], flag: str) -> list[Intervals[Group]]:
    """Return the rows of the parts whose key begins with a flag; those alone are in their tables."""
    flagged = [part.relabelled(lambda key: key if key[0] == flag else None) for part in parts]
    return [part for part in flagged if len(part)]


def selection_in_words(wanted: Wanted) -> str:
    """Return what was asked for, as options, for a sentence."""
    asked = [f"--where {name}={glob}" for name, globs in wanted.isolate.items() for glob in globs]
    asked += [f"--where {name}!={glob}" for name, globs in wanted.exclude.items() for glob in globs]
    asked += [f"--highlight {name}={glob}" for name, globs in wanted.lit.items() for glob in globs]
    asked += ["--from/--to"] if wanted.question.begin or wanted.question.end else []
    return " ".join(asked) or "the question"


def _late(parts: Sequence[Intervals[Group]]) -> tuple[Int, Int]:
    """Return the periods in which events came late, and how many."""
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    late, place = np.unique(np.concatenate([part.start_ns for part in parts]), return_inverse=True)
    count = np.zeros(len(late), np.int64)
    np.add.at(count, place, np.concatenate([part.samples for part in parts]))
    return late, count


def _marked(periods: Periods, gaps: Int, late: Int) -> Iterator[str]:
    """Yield a sentence on what is marked in the map."""
    period = format_duration(periods.period_ns)
    missing = int(((gaps[1] - gaps[0]) // periods.period_ns).sum())
    if missing:
        yield f"{missing} whole periods of {period} without any event of these runs: marked as missing, not as zero"
    if len(late):
        sentence = f"{counted(int(late.sum()), 'event was', 'events were')} reported more than a second late"
        yield f"{sentence}, in {counted(len(late), 'period')}: marked, placed by their own time"
