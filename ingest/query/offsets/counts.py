"""Events and stored offsets -> counts by what they are: cells of the map, shared bins, late events, all events of a run.

Counts are intervals whose keys are (what, run, labels): sums of them can be handed from process to process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np

from ingest.core.errors import InputError, UsageError
from ingest.core.events import Events
from ingest.core.intervals import Bool, Intervals, Other
from ingest.core.offsets import Order, Periods, from_bins
from ingest.core.series import LAYER, OFFSET, Group, RunLabels, Series, label_of
from ingest.query.question import Question, check_labels
from ingest.read import Source
from ingest.read.account import Account
from ingest.read.event_once import events_once

CELLS, SHARED, LATE, ALL = "cells", "shared", "late", "all"

Key = Callable[[Series], Group | None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events are to be mapped, and how.

    `question` selects runs and time and groups (its step and its `where` are not looked at). `isolate` names, by label, the
    globs of which one must match, `exclude` those of which none may; `lit` is a further choice of the same kind as `isolate`.
    """

    question: Question = field(default_factory=Question)
    periods: Periods = field(default_factory=Periods)
    isolate: Mapping[str, Sequence[str]] = field(default_factory=dict)
    exclude: Mapping[str, Sequence[str]] = field(default_factory=dict)
    lit: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def selects(self) -> bool:
        """Return whether labels choose among the events of a run."""
        return bool(self.isolate or self.exclude or self.lit)

    def check(self, run_labels: RunLabels) -> None:
        """Raise UsageError for a label that no series and no run has, and for the layer, which events are kept without."""
        if LAYER in (*self.question.by, *self.isolate, *self.exclude, *self.lit):
            raise UsageError("single events are kept without their layer, all in one map: leave out layer")
        check_labels(replace(self.question, where=dict.fromkeys({**self.isolate, **self.exclude, **self.lit}, "*")), run_labels)

    def takes(self, run: str) -> bool:
        """Return whether a run is among those that labels choose."""
        here = [(globs, True) for name, globs in (*self.isolate.items(), *self.lit.items()) if name == "run"]
        here += [(globs, False) for name, globs in self.exclude.items() if name == "run"]
        return all(_matches(run, globs) == wanted for globs, wanted in here)

    def key(self, run_labels: RunLabels) -> Key:
        """Return the function that gives a series its group (run, then the labels of `by`), None if it is not selected.

        All events are of the kind offset here, as a store keeps them, whatever was timed beside their moment.
        """

        def key(timed: Series) -> Group | None:
            series = timed.replaced(kind=OFFSET)
            for name, globs in (*self.isolate.items(), *self.lit.items()):
                if not _matches(label_of(series, name, run_labels), globs):
                    return None
            for name, globs in self.exclude.items():
                if _matches(label_of(series, name, run_labels), globs):
                    return None
            return (series.run, *(label_of(series, name, run_labels) for name in self.question.by))

        return key


def _matches(text: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(text, glob) for glob in globs)


def of_source(source: Source, wanted: Wanted, key: Key, start_ns: int) -> Iterator[Intervals[Group]]:
    """Yield the counts of the events of a source, chunk by chunk."""
    begin, end = range_of(wanted.question, start_ns)
    source.context.account.replace(Account(path=source.context.account.path, notes=source.context.account.notes))
    order, run = Order(), source.context.series.run
    known: dict[Series, Group | None] = {}
    try:
        for chunk in events_once(source):
            source.context.account.samples += chunk.samples
            late = order.late(chunk)
            inside = np.ones(len(chunk), np.bool_)
            if begin is not None:
                inside &= chunk.end_ns >= begin
            if end is not None:
                inside &= chunk.end_ns < end
            at = np.flatnonzero(inside)
            known |= {series: key(series) for series in chunk.table if series not in known}
            if len(at):
                groups = [known[series] for series in chunk.table]
                yield from _of_events(chunk.take(at), late[at], groups, run, wanted.periods)
    except InputError as error:
        source.context.account.note(f"not read: {error.reason}")


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


def range_of(question: Question, start_ns: int) -> tuple[int | None, int | None]:
    """Return from when to when a question asks about a run, in epoch ns; None for no bound."""
    begin = question.begin.epoch_ns(start_ns) if question.begin else None
    return begin, question.end.epoch_ns(start_ns) if question.end else None


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
