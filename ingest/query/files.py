"""Answers straight from log files, without a store: read, grid, merge, in parallel and in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ingest.errors import InputError, listed
from ingest.grid import UNTIMED, clipped, coarsened, in_flight, in_windows, stored_step, window_parts
from ingest.intervals import Intervals, Sum
from ingest.parallel import fork_map, processes
from ingest.query.clocks import beside, left_out, logs_left_out, shown_beside, undated_runs
from ingest.query.file_offers import offers_of
from ingest.query.means import described, holds_means_alone, own_facts, told_of, with_left_out, with_whole_runs
from ingest.query.missing import Lack, lacks
from ingest.query.origin import Offers
from ingest.query.question import ALL, AUTO, Answer, Question, check_labels, finish, keys_of, moved_edges, note_layouts, range_in
from ingest.query.spans import Bounds, dense, note_reach, of_runs, over_reach, reach_inside, together
from ingest.query.steps import auto_span, auto_step, check_step, sure_step, widened
from ingest.query.summed import Summed, in_order, is_grained, of_kinds, told_apart, wide_enough
from ingest.query.whole_rows import whole_rows_of, with_whole_rows
from ingest.read import Found, ReadOptions, Source, Windows, discover, read
from ingest.read.account import Account, nothing_taken
from ingest.read.copies import conflicts
from ingest.read.events import MOMENTS, Events, events_layout
from ingest.read.formats import HDR, SNABB
from ingest.read.lacks import dead
from ingest.read.reconcile import reconciled, skew
from ingest.series import IN_FLIGHT, LABELS, OFFSET, in_flight_kind
from ingest.whole_runs import WholeRun

if TYPE_CHECKING:
    from ingest.query.percentiles import Wanted
    from ingest.query.table import Table
    from ingest.query.verdicts import Episode

DEFAULT_WIDTH_NS = 1_000_000_000
HELD_ENTRIES = 1_000_000  # bins a process holds before it adds them up: adding up takes several times their memory


@dataclass(frozen=True, slots=True)
class LogRun:
    """A run of log files: what every origin knows of a run."""

    run: str
    labels: Mapping[str, str]
    start_ns: int
    relative: bool
    final_ns: int | None = None


class Files:
    """Log files and folders that can be asked the same questions as a store."""

    def __init__(
        self,
        paths: Sequence[Path | str],
        options: ReadOptions | None = None,
        jobs: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Look under `paths`; nothing is read yet. `progress` is called with (done, total) files while they are read.

        `jobs` is how many processes read, None as `processes` has it.

        Raises InputError where there is nothing to read.
        """
        self.paths = tuple(paths)
        self.options = options or ReadOptions()
        self.progress = progress
        self.found: Found = discover([Path(path) for path in paths], self.options)
        self.jobs = processes(jobs, (source.path for source in self.found.sources))
        for conflict in conflicts(self.found):
            raise InputError(conflict.sentence, conflict.subject)
        by_run: dict[str, list[Source]] = {}
        for source in self.found.sources:
            by_run.setdefault(source.context.series.run, []).append(source)
        self.stored = {run: stored_step(median_width(sources)) for run, sources in by_run.items()}

    @property
    def indexed(self) -> bool:
        """Return that a question about a part of the data reads all of it."""
        return False

    @property
    def offers(self) -> Offers:
        """Return what files can do beyond what every origin can."""
        return offers_of(self)

    def runs(self) -> list[LogRun]:
        """Return the runs that the files belong to, by name."""
        starts, undated = run_starts(self.found.sources), undated_runs(self.found.sources)
        return [LogRun(run, self.found.labels.get(run, {}), starts[run], undated[run]) for run in self.run_names]

    @property
    def run_names(self) -> list[str]:
        """Return the runs that the files belong to."""
        return sorted(self.stored)

    @property
    def account(self) -> Account:
        """Return what became of all rows read so far."""
        total = Account()
        for source in self.found.sources:
            total.add(source.context.account)
        return total

    def answer(self, question: Question) -> Answer:
        """Return the merged windows that a question asks for.

        Raises InputError where nothing is selected or no row could be taken, UsageError for labels and steps that cannot be.
        """
        check_labels(question, self.found.labels)
        sources, apart = self.choice(question)
        width = median_width(sources)
        stored = max(self.stored[source.context.series.run] for source in sources)
        stored *= max(1, math.ceil(0.9 * width / stored)) if question.step == AUTO else 1
        step = stored if question.step == AUTO else 0 if question.step == ALL else int(question.step)
        warning = check_step(step, finest_width(sources), force=question.force) if step else ""
        starts, undated = self.starts_of(sources), beside(undated_runs(sources))
        summed = self._added_up(sources, question, step, starts)
        parts = summed.parts
        self._check_rejects(sources, parts)
        kept = self.bounds_of(question, step, starts)
        if question.step == AUTO and parts:
            reach = of_runs(summed.reach)
            step = auto_step(*auto_span(reach, kept, stored), stored, question.windows)
            parts = widened(parts, step)
        told = told_of(sources)
        if question.step == ALL:
            bounded = question.begin is not None or question.end is not None
            windows = {run: (span, self.stored[run]) for run, span in summed.windows.items()} if bounded else {}
            parts = over_reach(parts, of_runs(summed.reach), windows, question.adds_up_runs)
            parts = with_whole_runs(parts, question, question.key(self.found.labels), told)
            parts = with_whole_rows(parts, question, question.key(self.found.labels), whole_rows_of(sources))
        moved = {moved_edges(question, start, self.grain(run, step)) for run, start in starts.items()}
        facts = Answer(
            parts=(),
            by=question.by,
            step_ns=step,
            kind="",
            runs=tuple(sorted({source.context.series.run for source in self.found.sources})),
            run_start_ns=starts,
            relative=all(source.context.zero.epoch_ns is None for source in sources),
            series=len(sources),
            warnings=tuple(filter(None, (warning, *sorted(moved), *apart, *shown_beside(undated), *self._warnings(sources)))),
            undated=undated,
            missing=self.lacks(sources, question, kept),
            caveats=self.found.caveats,
            layouts=summed.layouts,
        )
        alone = [source.context.series for source in self.found.sources if holds_means_alone(source)]
        answer = finish(parts, question, facts, reach_inside(summed.reach, kept))
        return with_left_out(described(answer, told), alone, question.key(self.found.labels))

    def grain(self, run: str, step: int) -> int:
        """Return the width in ns of the windows that a range is made of; 1 at a step that no store could answer."""
        return self.stored[run] if is_grained(step, self.stored[run]) else 1

    def bounds_of(self, question: Question, step: int, starts: Mapping[str, int]) -> dict[str, Bounds]:
        """Return from when to when a question asks about each run, which began at `starts`, at a step."""
        return {run: range_in(question, start, self.grain(run, step)) for run, start in starts.items()}

    def lacks(self, sources: Sequence[Source], question: Question, bounds: Mapping[str, Bounds]) -> tuple[Lack, ...]:
        """Return what the sources that were read lack, and what no source holds."""
        entries = [entry for source in sources for entry in source.context.account.missing]
        return lacks((*self.found.missing, *entries), question, self.found.labels, bounds)

    def percentiles(self, question: Question, wanted: Wanted) -> tuple[Table, Answer]:
        """Return the table of percentiles that a question asks for, and the facts about it.

        Long logs at a fixed step are answered window by window, in memory that does not grow with their length; the `parts` of
        the facts are then the whole range. Raises what `answer` raises.
        """
        from ingest.query.percentiles import percentiles

        if all(source.format == HDR for source in self.found.sources):
            from ingest.query.streamed import streamed

            found = streamed(self, question, wanted)
            if found is not None:
                return found
        answer = self.weighed(question)
        return percentiles(answer, wanted), answer

    def weighed(self, question: Question) -> Answer:
        """Return the answer, of timelines weighed in one reading; raises what `answer` raises."""
        if all(source.format != SNABB for source in self.found.sources):
            return self.answer(question)
        from ingest.query.lags import weighed

        return weighed(self.answer, question)

    def whole_runs(self, runs: Collection[str]) -> list[WholeRun]:
        """Return what the tools themselves say of whole runs that have no histogram; known once these were asked about."""
        return told_of([source for source in self.found.sources if source.context.series.run in runs])

    def _added_up(self, sources: Sequence[Source], question: Question, step: int, starts: dict[str, int]) -> Summed:
        """Return the sums over all sources, added up in each process first: only sums are handed on."""
        total, of_process, finished = Sum(HELD_ENTRIES), Sum(HELD_ENTRIES), 0
        found = Summed()

        def work(source: Source) -> Iterator[tuple[Account, Summed]]:
            one = self._summed(source, question, step, starts)
            for part in one.parts:
                of_process.add(part)
            yield source.context.account, replace(one, parts=[])

        for number, result in fork_map(work, sources, self.jobs, of_process.parts):
            if number < len(sources):
                account, one = result
                sources[number].context.account.replace(account)
                found.widen(one)
                finished += 1
                if self.progress:
                    self.progress(finished, len(sources))
            else:
                for part in result:
                    total.add(part)
        found.parts = total.parts()
        return found

    def windows(self, question: Question) -> Iterator[Intervals]:
        """Yield the selected windows at the stored step under the question's groups, as `ordered` has them.

        Each run is on its own clock. What is held are the windows of files whose labels cannot be told apart before they are
        read: those of a host and job.
        """
        check_labels(question, self.found.labels)
        sources = of_kinds(self._matching(question), question)
        starts = self.starts_of(sources)
        step = max(self.stored[source.context.series.run] for source in sources)
        fixed = replace(question, step=step)
        groups = told_apart(sources) if question.by[:4] == LABELS[:4] else [sources]
        flat = [source for some in groups for source in some]
        found = fork_map(lambda one: iter([self._summed(one, fixed, step, starts).parts]), flat, self.jobs)
        yield from in_order(found, [len(some) for some in groups])

    def facts(self, answer: Answer) -> list[tuple[str, str]]:
        """Return (name, value) pairs about the runs of an answer."""
        sources = [source for source in self.found.sources if source.context.series.run in answer.runs]
        hosts = sorted({source.context.series.host for source in sources} - {""})
        origins = sorted({source.context.zero.origin for source in sources})
        read = sum(source.context.account.rows for source in sources)
        return [
            ("Sources", f"{len(sources)} files, {read:,} rows"),
            ("Hosts", ", ".join(hosts) or "not named"),
            ("Time zero from", ", ".join(origins)),
            *(("Checked", text) for text in reconciled(sources)),
            *(("Clocks", text) for text in skew(sources)),
            *own_facts(told_of(sources)),
        ]

    def marks(self, answer: Answer) -> list[Mapping[str, Any]]:
        """Return no marks: files have none."""
        return []

    def starts_of(self, sources: Iterable[Source]) -> dict[str, int]:
        """Return when the runs of some sources began in epoch ns: by all of their sources, as a store knows it."""
        runs = {source.context.series.run for source in sources}
        return {run: start for run, start in run_starts(self.found.sources).items() if run in runs}

    def episodes(self, runs: Iterable[str]) -> list[Episode]:
        """Return no episodes: files keep none."""
        return []

    def selected(self, question: Question) -> list[Source]:
        """Return the sources that can hold what is asked; labels that only their rows tell are decided later."""
        return self.choice(question)[0]

    def choice(self, question: Question) -> tuple[list[Source], tuple[str, ...]]:
        """Return the sources that can hold what is asked and share an axis of time, and a sentence about those that do not."""
        sources = self._matching(question)
        apart = left_out(question, undated_runs(sources))
        names = [str(source.path) for source in sources if source.context.series.run in apart]
        kept = [source for source in sources if source.context.series.run not in apart]
        return of_kinds(kept, question), (logs_left_out(names, len(sources), apart),) if names else ()

    def _matching(self, question: Question) -> list[Source]:
        keys = {
            told: replace(question, where={k: v for k, v in question.where.items() if k not in told}).key(self.found.labels)
            for told in {source.row_labels for source in self.found.sources}
        }
        sources = [source for source in self.found.sources if keys[source.row_labels](source.context.series) is not None]
        if not sources:
            runs = sorted({source.context.series.run for source in self.found.sources})
            raise InputError(f"no log matches --run/--where; there are the runs {listed(runs)}")
        return sources

    def _summed(self, source: Source, question: Question, step: int, starts: dict[str, int]) -> Summed:
        """Return the sums of one source, and from when to when it reaches."""
        key = question.key(self.found.labels)
        run = source.context.series.run
        stored = self.stored[run]
        grained = is_grained(step, stored)
        weighed = question.attribution == IN_FLIGHT
        begin, end = range_in(question, starts[run], stored if grained else step if weighed else 1)
        # Read anew, counted anew: a report asks the same files more than once.
        source.context.account.replace(Account(path=source.context.account.path, notes=source.context.account.notes))
        total, found, finest = Sum(), Summed(), step
        bounded = begin is not None or end is not None
        # Where a store could answer, single events are cut as it cuts them: so rows reach as far as there.
        width = stored if grained else step
        windows = Windows(width, in_flight=True) if weighed else Windows(width, whole=False)
        if not grained:
            windows = replace(windows, begin_ns=begin, end_ns=end)

        def seen(events: Events) -> None:  # what lies outside of a range is not made into rows
            if not grained and bounded and not weighed:
                present = np.flatnonzero(np.bincount(events.series)).tolist()
                groups = (key(events.table[code]) for code in present if events.table[code].kind != OFFSET)
                layout = events_layout(source.context.digits)
                note_layouts(found.layouts, (group for group in groups if group is not None), layout)

        try:
            for chunk in read(source, windows, seen):
                rows = chunk.relabelled(lambda series: key(in_flight_kind(series) if weighed else series))
                note_reach(found.reach, rows)
                note_layouts(found.layouts, keys_of(rows), rows.layout)
                if weighed and rows.completions is None:
                    rows = in_flight(rows, width)
                if bounded:
                    rows = in_windows(rows, begin, end, stored) if grained else clipped(rows, begin, end)
                if weighed and step:
                    rows = coarsened(rows, step)
                if not step and bounded:
                    rows = found.windowed(rows, stored)
                if not step:
                    total.add(dense(together(rows)))
                elif weighed:
                    total.add(rows)
                elif len(rows):
                    if question.step == AUTO:
                        first, last = auto_span(of_runs(found.reach), {run: (begin, end)}, finest)
                        step, total = wide_enough(total, step, sure_step(first, last, finest, question.windows))
                    for part in window_parts(rows, step, stored if grained else 0):
                        total.add(dense(part))
        except InputError as error:
            source.context.account.note(f"not read: {error.reason}")
            source.context.account.lack(dead(source, error.reason))
        found.parts = total.parts()
        return found

    def _check_rejects(self, sources: Iterable[Source], parts: Sequence[Intervals]) -> None:
        account = self.account
        moments = [] if parts else [note for note in account.notes if note.endswith(MOMENTS)]
        if moments:
            raise InputError(f"nothing here has a latency: {moments[0]}")
        if not parts and any(UNTIMED in note for note in account.notes):
            raise InputError(UNTIMED)
        unread = [note for note in account.notes if "not read: " in note]
        if unread and not parts:
            raise InputError(unread[0])
        if not parts and not account.taken:
            raise nothing_taken(account, [source.path for source in sources])

    def _warnings(self, sources: Sequence[Source]) -> list[str]:
        return warnings_of([source.context.account for source in sources], self.found)


def warnings_of(accounts: Iterable[Account], found: Found | None = None) -> list[str]:
    """Return the sentences that a reader of the numbers must see: repairs, rejects, refused files, saturation."""
    total = Account()
    for account in accounts:
        total.add(account)
    texts = [f"{count} rows repaired: {reason}" for reason, count in sorted(total.repaired.items())]
    texts += [f"{count} rows rejected: {reason}" for reason, count in sorted(total.rejected.items())]
    if total.saturated:
        texts.append(f"{total.saturated} samples lie in the last bin: at least its lower edge, true values unknown")
    if found is None:
        return texts + total.notes
    return [*texts, *found.refusals(), *(str(caveat) for caveat in found.caveats), *total.notes]


def median_width(sources: Iterable[Source]) -> float:
    """Return the median width in ns of the rows of all sources, 1 s if none tells."""
    widths = sorted(source.width_ns for source in sources if source.width_ns)
    middle = len(widths) // 2
    return (widths[middle] + widths[~middle]) / 2 if widths else DEFAULT_WIDTH_NS


def finest_width(sources: Iterable[Source]) -> float:
    """Return the width in ns that a step must not fall below: that of the rows, 0 where all are single events."""
    recorded = [source for source in sources if not source.single_events]
    return median_width(recorded) if recorded else 0.0


def run_starts(sources: Iterable[Source]) -> dict[str, int]:
    """Return, per run, the epoch ns of its earliest time zero (0 where stamps are relative)."""
    starts: dict[str, int] = {}
    for source in sources:
        run = source.context.series.run
        zero = (source.context.zero.epoch_ns or 0) + source.context.offset_ns
        starts[run] = min(starts.get(run, zero), zero)
    return starts
