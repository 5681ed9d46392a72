"""What is kept of log files while they are added up: sums, time ranges, layouts; and what a reader must know of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ingest.core.coverage import in_last_bin
from ingest.core.grid import clipped, coarsened, cut_down, in_flight, in_windows, to_windows, window_sums
from ingest.core.intervals import Intervals, Sum, distinct, merged
from ingest.core.labels import IN_FLIGHT, LABELS, OFFSET, OUTCOME, Group, RunLabels, Series, in_flight_kind
from ingest.query.plan import Sums, troubles
from ingest.query.question import AUTO, AnswerKey, Question, keys_of, note_layouts, range_in
from ingest.query.windows import (
    auto_span,
    dense,
    note_time_range,
    of_runs,
    ranges,
    sure_step,
    widen,
    widened,
    with_one_span,
)
from ingest.read.account import Account
from ingest.read.formats import row_labels
from ingest.read.sources import Found, Source

if TYPE_CHECKING:
    from ingest.core.events import Events
    from ingest.read.operations import Windows


def adding_up(
    question: Question, labels: RunLabels, step: int, grains: Mapping[str, int], starts: Mapping[str, int]
) -> dict[str, Aggregation]:
    """Return what adds up the rows of each run, by run: of those that begin at `starts`; `grains` are of `Files.grain`."""
    key = question.key(labels)
    return {run: Aggregation(question, key, step, grains[run], start, run) for run, start in starts.items()}


def all_of(adding: Mapping[str, Aggregation]) -> Sums:
    """Return the sums of several runs as one."""
    total = Sums()
    for of_run in adding.values():
        sums = of_run.summed()
        total.widen(sums)
        total.parts += sums.parts
    return total


def series_before_reading(files: Iterable[Series], question: Question, labels: RunLabels) -> Iterator[Series]:
    """Yield the series of files that show their kind before they are read, if a question selects them by what they show."""
    keys: dict[tuple[str, ...], AnswerKey] = {}
    for own in files:
        if not own.kind:
            continue
        shown = tuple(name for name in question.where if name != OUTCOME and (name not in LABELS or getattr(own, name)))
        if shown not in keys:
            keys[shown] = replace(question, where={name: question.where[name] for name in shown}).key(labels)
        if keys[shown](own) is not None:
            yield own


def grouped_sources(sources: Sequence[Source]) -> list[list[Source]]:
    """Return the sources by run, host, volume and job, in this order; by as many of these as are known before files are read."""
    first = LABELS[:4]
    known = min(first.index(name) if name in first else 4 for source in sources for name in (*row_labels(source), "kind"))
    groups: dict[tuple[str, ...], list[Source]] = {}
    for source in sources:
        labels = tuple(str(getattr(source.context.series, name)) for name in first[:known])
        groups.setdefault(labels, []).append(source)
    return [some for _, some in sorted(groups.items())]


def files_in_order(
    numbered: Iterable[tuple[int, Sequence[Intervals[Group]]]], sizes: Sequence[int]
) -> Iterator[Intervals[Group]]:
    """Yield the windows of files as `ordered` has them, one group of files after another; `sizes` says how many are in each.

    `numbered` gives the number of a file, counted through all groups, and its windows, in any order.
    """
    from ingest.query.windows import ordered  # for answers that are written while they are made

    group = np.repeat(np.arange(len(sizes)), sizes).tolist()
    held: list[list[Intervals[Group]]] = [[] for _ in sizes]
    left, turn = list(sizes), 0
    for number, parts in numbered:
        held[group[number]] += parts
        left[group[number]] -= 1
        while turn < len(sizes) and not left[turn]:
            yield from ordered([held[turn]])
            held[turn], turn = [], turn + 1


class Aggregation:
    """Adds up the rows of sources of one run, as they are read, to the windows of a question: to `sums`.

    `key` is that of the question, `grain` that of the run (see `grain_of`), `start_ns` when the run began.
    """

    def __init__(self, question: Question, key: AnswerKey, step: int, grain: int, start_ns: int, run: str) -> None:
        self._question, self._key, self._run = question, key, run
        self._step = self._finest = step
        self._grain = grain
        self._weighed = question.attribution == IN_FLIGHT
        self._width = self._grain or step
        self._bounds = range_in(question, run, start_ns, self._grain or (step if self._weighed else 1))
        self._total: Sum[Group] = Sum()
        self.sums = Sums()

    @property
    def windows(self) -> Windows:
        """Return how single events are cut: where a store could answer, as it cuts them, so that rows reach as far as there."""
        from ingest.read.operations import Windows

        windows = Windows(self._width, in_flight=True) if self._weighed else Windows(self._width, whole=False)
        begin, end = self._bounds
        return windows if self._grain else replace(windows, begin_ns=begin, end_ns=end)

    def seen(self, source: Source) -> Callable[[Events], None]:
        """Return what notes the layouts of the single events of a source: those outside of a range are not made into rows."""
        from ingest.read.operations import events_layout

        def seen(events: Events) -> None:
            if not self._grain and self._bounds != (None, None) and not self._weighed:
                present = np.flatnonzero(np.bincount(events.series)).tolist()
                groups = (self._key(events.table[code]) for code in present if events.table[code].kind != OFFSET)
                layout = events_layout(source.context.digits)
                note_layouts(self.sums.layouts, (group for group in groups if group is not None), layout)

        return seen

    def _cut(self, rows: Intervals[Group], own_ns: int) -> tuple[Intervals[Group], int]:
        """Return rows of a source of such an own step, cut where they are wider, and the windows they are cut at then."""
        finest = min(own_ns or self._grain, self._grain)
        return (cut_down(rows, own_ns, finest) if finest else rows), finest

    def selected(self, chunk: Intervals[Series], own_ns: int) -> Intervals[Group]:
        """Return the rows of a chunk that are asked for, under the groups of the question; what was met is noted.

        They are of a source whose own step is `own_ns`, 0 where they are made for any.
        """
        weighed = self._weighed
        rows = chunk.relabelled(lambda series: self._key(in_flight_kind(series) if weighed else series))
        for series in (chunk.table[code] for code in distinct(chunk.series).tolist()):
            (self.sums.left_out if self._key(series) is None else self.sums.series).add(series)
        note_time_range(self.sums.reach, rows)
        note_layouts(self.sums.layouts, keys_of(rows), rows.layout)
        if weighed and rows.completions is None:
            rows = in_flight(rows, self._width)
        if self._bounds == (None, None):
            return rows
        rows, finest = self._cut(rows, own_ns)
        return in_windows(rows, *self._bounds, finest) if finest else clipped(rows, *self._bounds)

    def _parts(self, rows: Intervals[Group], own_ns: int) -> list[Intervals[Group]]:
        rows, finest = self._cut(rows, own_ns)
        return window_sums(rows, self._step, finest)

    def windowed(self, chunk: Intervals[Series], own_ns: int) -> Iterator[Intervals[Group]]:
        """Yield the windows of the rows of a chunk at the step of the question, one part or none; see `selected`."""
        rows = self.selected(chunk, own_ns)
        if len(rows):
            yield merged(self._parts(rows, own_ns))

    def add(self, chunk: Intervals[Series], own_ns: int) -> None:
        """Add the rows of a chunk; see `selected`."""
        rows = self.selected(chunk, own_ns)
        if not self._step:
            self._total.add(dense(with_one_span(self._noted(rows, own_ns) if self._bounds != (None, None) else rows)))
        elif self._weighed:
            self._total.add(coarsened(rows, self._step))
        elif len(rows):
            if self._question.step == AUTO:
                first, last = auto_span(of_runs(self.sums.reach), {self._run: self._bounds}, self._finest)
                wider = sure_step(first, last, self._finest, self._question.windows)
                if wider > self._step:
                    held, self._step, self._total = self._total.parts(), wider, Sum()
                    for part in widened(held, wider):
                        self._total.add(part)
            for part in self._parts(rows, own_ns):
                self._total.add(dense(part))

    def _noted(self, rows: Intervals[Group], own_ns: int) -> Intervals[Group]:
        """Return the rows in windows of the stored step that hold samples, and note from when to when these are."""
        rows, finest = self._cut(rows, own_ns)
        stepped = rows if rows.completions is not None else to_windows(rows, self._grain, finest)
        filled = stepped.take(np.flatnonzero(stepped.samples > 0))
        for name, span in ranges([filled]).items():
            widen(self.sums.windows, name, span)
        return filled

    def summed(self) -> Sums:
        """Return the sums of all that was added, in parts that are still to be added up, and from when to when it reaches."""
        self.sums.parts = list(self._total.pending)
        return self.sums


def warnings_of(sources: Iterable[Source], discovered: Found) -> list[str]:
    """Return the sentences that a reader of the numbers must see: repairs, rejects, refused files, saturation."""
    total, taken = Account(), [source.context.account for source in sources]
    for account in taken:
        total.add(account)
    troubled = (account for account in taken if account.repaired or account.rejected)
    texts = list(troubles({**account.troubles(), "findings": [*map(str, account.findings)]} for account in troubled))
    if total.saturated:
        texts.append(in_last_bin(total.saturated))
    schedules: list[str] = []
    if digests := [(account.path, digest) for account in taken for digest in account.schedule]:
        from ingest.read.schedule import sentences  # most logs show nothing of it

        schedules = sentences(digests)
    return [*texts, *discovered.refusals(), *map(str, (*discovered.caveats, *total.caveats)), *total.notes, *schedules]


def beside_entries(sources: Sequence[Source], discovered: Found) -> list[str]:
    """Return those sentences but for what entries of missing samples say: an answer says that of the entries that it has."""
    entries = [entry.caveat for source in sources for entry in source.context.account.missing]
    said = {f"{caveat.subject}: {caveat.sentence}" for caveat in entries}
    return [text for text in warnings_of(sources, discovered) if text not in said]


def run_starts(sources: Iterable[Source]) -> dict[str, int]:
    """Return, per run, the epoch ns of its earliest start (0 where stamps are relative)."""
    starts: dict[str, int] = {}
    for source in sources:
        run = source.context.series.run
        zero = (source.context.zero.epoch_ns or 0) + source.context.offset_ns
        starts[run] = min(starts.get(run, zero), zero)
    return starts
