"""What is kept of log files while they are added up: sums, from when to when they reach, the layouts that were met."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from ingest.core.grid import clipped, coarsened, in_flight, in_windows, to_windows, window_parts
from ingest.core.intervals import Intervals, Sum
from ingest.core.layout import Layout
from ingest.core.series import IN_FLIGHT, LABELS, LAYER, OFFSET, Group, RunLabels, Series, default_kind, in_flight_kind
from ingest.query.question import AUTO, Key, Question, keys_of, note_layouts, note_series, range_in
from ingest.query.spans import Reach, RunLayer, Span, dense, note_reach, of_runs, ranges, together, widen
from ingest.query.steps import auto_span, sure_step, widened
from ingest.read import Source
from ingest.read.formats import row_labels

if TYPE_CHECKING:  # for single events alone
    from ingest.core.events import Events
    from ingest.read.event_rows import Windows

Met = dict[tuple[str, str], set[Layout]]  # layouts by run and kind


@dataclass(slots=True, eq=False)
class Summed:
    """Sums; reach of rows and their layouts, by run and kind; of whole ranges the windows with samples, by run and layer.

    `series` are those that rows were of, of what is selected.
    """

    parts: list[Intervals[Group]] = field(default_factory=list)
    reach: Reach = field(default_factory=dict)
    layouts: Met = field(default_factory=dict)
    windows: dict[RunLayer, Span] = field(default_factory=dict)
    series: set[Series] = field(default_factory=set)

    def windowed(self, rows: Intervals[Group], stored: int) -> Intervals[Group]:
        """Return the rows in windows of the stored step that hold samples, and note from when to when these are."""
        stepped = rows if rows.completions is not None else to_windows(rows, stored)
        filled = stepped.take(np.flatnonzero(stepped.samples > 0))
        for name, span in ranges([filled]).items():
            widen(self.windows, name, span)
        return filled

    def widen(self, other: Summed) -> None:
        """Widen these by the reach, layouts and windows of another source."""
        for key, span in other.reach.items():
            widen(self.reach, key, span)
        for key, layouts in other.layouts.items():
            self.layouts.setdefault(key, set()).update(layouts)
        for name, span in other.windows.items():
            widen(self.windows, name, span)
        self.series |= other.series


def all_of(sums: Iterable[Summed]) -> Summed:
    """Return the sums of several runs as one."""
    first, *rest = sums
    for other in rest:
        first.widen(other)
        first.parts += other.parts
    return first


def by_run(rows: Intervals[Series]) -> Iterator[tuple[str, Intervals[Series]]]:
    """Yield the rows of each run."""
    return rows.split(lambda series: series.run)


def wide_enough(total: Sum[Group], step: int, wider: int) -> tuple[int, Sum[Group]]:
    """Return a step that is no less than a wider one, and the sums at it."""
    if wider <= step:
        return step, total
    sums: Sum[Group] = Sum()
    for part in widened(total.parts(), wider):
        sums.add(part)
    return wider, sums


def is_grained(step: int, stored: int) -> bool:
    """Return whether a run that is stored at a step can be asked at another one (0: all)."""
    return step % stored == 0


def of_kinds(sources: list[Source], question: Question) -> list[Source]:
    """Return the sources whose kinds are asked for, where each shows its kind before it is read (fio's logs do).

    Without a kind asked for it is the default one; but the range of a run, which decides what auto and all are, is that of
    all its kinds.
    """
    kinds: dict[str, set[str]] = {}
    for source in sources:
        kinds.setdefault(source.context.series.run, set()).add(source.context.series.kind)
    layers = LAYER in question.by or LAYER in question.where
    if layers or "kind" in question.by or any("" in run_kinds for run_kinds in kinds.values()):
        return sources
    glob = question.where.get("kind")
    if not glob and not isinstance(question.step, int):
        return sources
    taken = {run: run_kinds if glob else {default_kind(run_kinds)} for run, run_kinds in kinds.items()}
    mine = [source for source in sources if source.context.series.kind in taken[source.context.series.run]]
    return mine if not glob else [source for source in mine if fnmatchcase(source.context.series.kind, glob)] or sources


def told_before(files: Iterable[Series], question: Question, labels: RunLabels) -> Iterator[Series]:
    """Yield the series of files that show their kind before they are read, if a question selects them by what they show."""
    keys: dict[tuple[str, ...], Key] = {}
    for own in files:
        if not own.kind:
            continue
        shown = tuple(name for name in question.where if name not in LABELS or getattr(own, name))
        if shown not in keys:
            keys[shown] = replace(question, where={name: question.where[name] for name in shown}).key(labels)
        if keys[shown](own) is not None:
            yield own


def kept_apart(sources: Sequence[Source]) -> list[list[Source]]:
    """Return the sources by run, host, volume and job, in this order; by as many of these as are known before files are read."""
    first = LABELS[:4]
    known = min(first.index(name) if name in first else 4 for source in sources for name in (*row_labels(source), "kind"))
    groups: dict[tuple[str, ...], list[Source]] = {}
    for source in sources:
        labels = tuple(str(getattr(source.context.series, name)) for name in first[:known])
        groups.setdefault(labels, []).append(source)
    return [some for _, some in sorted(groups.items())]


def in_order(numbered: Iterable[tuple[int, Sequence[Intervals[Group]]]], sizes: Sequence[int]) -> Iterator[Intervals[Group]]:
    """Yield the windows of files as `ordered` has them, one group of files after another; `sizes` says how many are in each.

    `numbered` gives the number of a file, counted through all groups, and its windows, in any order.
    """
    from ingest.query.streaming.ordered import ordered  # for answers that are written while they are made

    group = np.repeat(np.arange(len(sizes)), sizes).tolist()
    held: list[list[Intervals[Group]]] = [[] for _ in sizes]
    left, turn = list(sizes), 0
    for number, parts in numbered:
        held[group[number]] += parts
        left[group[number]] -= 1
        while turn < len(sizes) and not left[turn]:
            yield from ordered([held[turn]])
            held[turn], turn = [], turn + 1


class Adding:
    """Adds up the rows of sources of one run, as they are read, to the windows of a question.

    `key` is that of the question, `stored` the step that a store would keep the run at, `start_ns` when the run began.
    """

    def __init__(self, question: Question, key: Key, step: int, stored: int, start_ns: int, run: str) -> None:
        self._question, self._key, self._run = question, key, run
        self._step = self._finest = step
        self._stored = stored
        self._grained = is_grained(step, stored)
        self._weighed = question.attribution == IN_FLIGHT
        self._width = stored if self._grained else step
        self._bounds = range_in(question, start_ns, stored if self._grained else step if self._weighed else 1)
        self._total: Sum[Group] = Sum()
        self._found = Summed()

    @property
    def windows(self) -> Windows:
        """Return how single events are cut: where a store could answer, as it cuts them, so that rows reach as far as there."""
        from ingest.read.event_rows import Windows

        windows = Windows(self._width, in_flight=True) if self._weighed else Windows(self._width, whole=False)
        begin, end = self._bounds
        return windows if self._grained else replace(windows, begin_ns=begin, end_ns=end)

    def seen(self, source: Source) -> Callable[[Events], None]:
        """Return what notes the layouts of the single events of a source: those outside of a range are not made into rows."""
        from ingest.read.events import events_layout

        def seen(events: Events) -> None:
            if not self._grained and self._bounds != (None, None) and not self._weighed:
                present = np.flatnonzero(np.bincount(events.series)).tolist()
                groups = (self._key(events.table[code]) for code in present if events.table[code].kind != OFFSET)
                layout = events_layout(source.context.digits)
                note_layouts(self._found.layouts, (group for group in groups if group is not None), layout)

        return seen

    def add(self, chunk: Intervals[Series]) -> None:
        """Add the rows of a chunk."""
        question, stored, weighed, bounded = self._question, self._stored, self._weighed, self._bounds != (None, None)
        rows = chunk.relabelled(lambda series: self._key(in_flight_kind(series) if weighed else series))
        note_series(self._found.series, chunk, self._key)
        note_reach(self._found.reach, rows)
        note_layouts(self._found.layouts, keys_of(rows), rows.layout)
        if weighed and rows.completions is None:
            rows = in_flight(rows, self._width)
        if bounded:
            rows = in_windows(rows, *self._bounds, stored) if self._grained else clipped(rows, *self._bounds)
        if weighed and self._step:
            rows = coarsened(rows, self._step)
        if not self._step and bounded:
            rows = self._found.windowed(rows, stored)
        if not self._step:
            self._total.add(dense(together(rows)))
        elif weighed:
            self._total.add(rows)
        elif len(rows):
            if question.step == AUTO:
                first, last = auto_span(of_runs(self._found.reach), {self._run: self._bounds}, self._finest)
                wider = sure_step(first, last, self._finest, question.windows)
                self._step, self._total = wide_enough(self._total, self._step, wider)
            for part in window_parts(rows, self._step, stored if self._grained else 0):
                self._total.add(dense(part))

    def summed(self) -> Summed:
        """Return the sums of all that was added, in parts that are still to be added up, and from when to when it reaches."""
        self._found.parts = list(self._total.pending)
        return self._found
