"""Answers straight from log files, without a store: read, grid, merge, in parallel and in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ingest.errors import InputError, listed
from ingest.grid import INT64_MAX, UNTIMED, clipped, coarsened, in_flight, stored_step, window_parts
from ingest.intervals import Intervals, Sum
from ingest.layout import LogLinear
from ingest.parallel import fork_map
from ingest.query.clocks import beside, left_out, logs_left_out, shown_beside, undated_runs
from ingest.query.file_offers import offers_of
from ingest.query.means import described, holds_means_alone, own_facts, told_of, with_left_out, with_whole_runs
from ingest.query.missing import Lack, lacks
from ingest.query.origin import Offers
from ingest.query.question import (
    ALL,
    AUTO,
    Answer,
    Layouts,
    Question,
    auto_step,
    check_labels,
    check_step,
    finish,
    keys_of,
    note_layouts,
    sure_step,
    widened,
)
from ingest.query.spans import dense, spanned, spanned_by_run, together
from ingest.read import Found, ReadOptions, Source, Windows, discover, read
from ingest.read.account import Account
from ingest.read.copies import conflicts
from ingest.read.events import MOMENTS, Events, events_layout
from ingest.read.formats import HDR, SNABB
from ingest.read.lacks import dead
from ingest.read.reconcile import reconciled, skew
from ingest.read.sources import REFUSED
from ingest.series import IN_FLIGHT, OFFSET, default_kind, in_flight_kind
from ingest.whole_runs import WholeRun

if TYPE_CHECKING:
    from ingest.query.percentiles import Wanted
    from ingest.query.table import Table
    from ingest.query.verdicts import Episode

DEFAULT_WIDTH_NS = 1_000_000_000
Met = dict[tuple[str, str], set[LogLinear]]  # layouts by run and kind

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
        jobs: int = 2,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Look under `paths`; nothing is read yet. `progress` is called with (done, total) files while they are read.

        Raises InputError where there is nothing to read.
        """
        self.paths = tuple(paths)
        self.options = options or ReadOptions()
        self.jobs = jobs
        self.progress = progress
        self.found: Found = discover([Path(path) for path in paths], self.options)
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
        starts, undated = run_starts(sources), beside(undated_runs(sources))
        parts, layouts = self._added_up(sources, question, step, starts)
        self._check_rejects(sources, parts)
        if question.step == AUTO and parts:
            first, last = min(int(p.start_ns.min()) for p in parts), max(int(p.end_ns.max()) for p in parts)
            step = auto_step(first, last, stored, question.windows)
            parts = widened(parts, step)
        told = told_of(sources)
        if question.step == ALL:
            parts = spanned(parts) if question.adds_up_runs else spanned_by_run(parts)
            parts = with_whole_runs(parts, question, question.key(self.found.labels), told)
        facts = Answer(
            parts=(),
            by=question.by,
            step_ns=step,
            kind="",
            runs=tuple(sorted({source.context.series.run for source in self.found.sources})),
            run_start_ns=starts,
            relative=all(source.context.zero.epoch_ns is None for source in sources),
            series=len(sources),
            warnings=tuple(text for text in (warning, *apart, *shown_beside(undated), *self._warnings(sources)) if text),
            undated=undated,
            missing=self.lacks(sources, question, starts),
            caveats=self.found.caveats,
            layouts=layouts,
        )
        alone = [source.context.series for source in self.found.sources if holds_means_alone(source)]
        return with_left_out(described(finish(parts, question, facts), told), alone, question.key(self.found.labels))

    def lacks(self, sources: Sequence[Source], question: Question, starts: Mapping[str, int]) -> tuple[Lack, ...]:
        """Return what the sources that were read lack, and what no source holds."""
        entries = [entry for source in sources for entry in source.context.account.missing]
        return lacks((*self.found.missing, *entries), question, self.found.labels, starts)
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

    def _added_up(
        self, sources: Sequence[Source], question: Question, step: int, starts: dict[str, int]
    ) -> tuple[list[Intervals], Layouts]:
        """Return the sums over all sources, added up in each process first (only sums are handed on), and the layouts met."""
        total, of_process, finished = Sum(HELD_ENTRIES), Sum(HELD_ENTRIES), 0
        layouts: dict[tuple[str, str], set[LogLinear]] = {}

        def work(source: Source) -> Iterator[tuple[Account, Met]]:
            met: Met = {}
            for parts, account in self._summed(source, question, step, starts, met):
                for part in parts:
                    of_process.add(part)
                yield account, met

        for number, result in fork_map(work, sources, self.jobs, of_process.parts):
            if number < len(sources):
                account, met = result
                sources[number].context.account.replace(account)
                for key, found in met.items():
                    layouts.setdefault(key, set()).update(found)
                finished += 1
                if self.progress:
                    self.progress(finished, len(sources))
            else:
                for part in result:
                    total.add(part)
        return total.parts(), layouts

    def windows(self, question: Question) -> Iterator[Intervals]:
        """Yield the selected windows at the stored step under the question's groups, file by file; each run on its own clock."""
        check_labels(question, self.found.labels)
        sources = _of_kinds(self._matching(question), question)
        starts = run_starts(sources)
        step = max(self.stored[source.context.series.run] for source in sources)
        fixed = replace(question, step=step)
        for _, (parts, _) in fork_map(lambda source: self._summed(source, fixed, step, starts), sources, self.jobs):
            yield from parts

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
        return _of_kinds(kept, question), (logs_left_out(names, len(sources), apart),) if names else ()

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

    def _summed(
        self, source: Source, question: Question, step: int, starts: dict[str, int], met: Met | None = None
    ) -> Iterator[tuple[list[Intervals], Account]]:
        """Yield the sums of a source and its account; the layouts of all that is selected of it are noted in `met`."""
        met = {} if met is None else met
        key = question.key(self.found.labels)
        run = source.context.series.run
        start, stored = starts[run], self.stored[run]
        begin = question.begin.epoch_ns(start) if question.begin else None
        end = question.end.epoch_ns(start) if question.end else None
        # Read anew, counted anew: a report asks the same files more than once.
        source.context.account.replace(Account(path=source.context.account.path, notes=source.context.account.notes))
        total = Sum()
        finest, low, high = step, INT64_MAX, -INT64_MAX
        weighed, bounded = question.attribution == IN_FLIGHT, begin is not None or end is not None
        # Weights are those of whole windows, so where a range is asked for they are cut as a store cuts them.
        width = stored if not step or (bounded and step % stored == 0) else step
        begin = begin // stored * stored if weighed and begin is not None else begin
        windows = Windows(width, in_flight=True) if weighed else Windows(step, begin, end, whole=False)

        def seen(events: Events) -> None:  # what lies outside of a range is not made into rows
            if bounded and not weighed:
                present = np.flatnonzero(np.bincount(events.series)).tolist()
                groups = (key(events.table[code]) for code in present if events.table[code].kind != OFFSET)
                note_layouts(met, (group for group in groups if group is not None), events_layout(source.context.digits))

        try:
            for chunk in read(source, windows, seen):
                rows = chunk.relabelled(lambda series: key(in_flight_kind(series) if weighed else series))
                note_layouts(met, keys_of(rows), rows.layout)
                if weighed and rows.completions is None:
                    rows = in_flight(rows, width)
                if bounded:
                    rows = clipped(rows, begin, end)
                if weighed and step:
                    rows = coarsened(rows, step)
                if len(rows):
                    low, high = min(low, int(rows.start_ns.min())), max(high, int(rows.end_ns.max()))
                if not step:
                    total.add(dense(together(rows)))
                elif weighed:
                    total.add(rows)
                elif len(rows):
                    if question.step == AUTO and (wider := sure_step(low, high, finest, question.windows)) > step:
                        step, finer, total = wider, total.parts(), Sum()
                        for part in widened(finer, step):
                            total.add(part)
                    for part in window_parts(rows, step, stored if step % stored == 0 else 0):
                        total.add(dense(part))
        except InputError as error:
            source.context.account.note(f"not read: {error.reason}")
            source.context.account.lack(dead(source, error.reason))
        parts = total.parts()
        yield parts if step else [together(part, low, high) for part in parts], source.context.account

    def _check_rejects(self, sources: Iterable[Source], parts: Sequence[Intervals]) -> None:
        account = self.account
        moments = [] if parts else [note for note in account.notes if note.endswith(MOMENTS)]
        if moments:
            raise InputError(f"nothing here has a latency: {moments[0]}")
        if not parts and any(UNTIMED in note for note in account.notes):
            raise InputError(UNTIMED)
        if parts or account.accepted or account.rows_repaired:
            return
        reasons = [*account.rejected, *account.notes]
        detail = f": {reasons[0]}" if reasons else ""
        raise InputError(f"no row could be taken{detail}", ", ".join(str(source.path) for source in sources))

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
    return [*texts, *refusals(found), *(str(caveat) for caveat in found.caveats), *total.notes]


def refusals(found: Found) -> list[str]:
    """Return a sentence for each reason why files were refused, with the first of them."""
    by_reason: dict[str, list[str]] = {}
    for entry in found.skipped:
        if entry.action == REFUSED:
            by_reason.setdefault(entry.reason, []).append(str(entry.path))
    return [f"refused {listed(paths)}: {reason}" for reason, paths in by_reason.items()]


def median_width(sources: Iterable[Source]) -> float:
    """Return the median width in ns of the rows of all sources, 1 s if none tells."""
    widths = sorted(source.width_ns for source in sources if source.width_ns)
    middle = len(widths) // 2
    return (widths[middle] + widths[~middle]) / 2 if widths else DEFAULT_WIDTH_NS


def finest_width(sources: Iterable[Source]) -> float:
    """Return the width in ns that a step must not fall below: that of the rows, 0 where all are single events."""
    recorded = [source for source in sources if not source.single_events]
    return median_width(recorded) if recorded else 0.0


def _of_kinds(sources: list[Source], question: Question) -> list[Source]:
    """Return the sources whose kinds are asked for, where each tells its kind before it is read (fio's logs do).

    Without a kind asked for it is the default one; but the range of a run, which decides what auto and all are, is that of
    all its kinds.
    """
    kinds: dict[str, set[str]] = {}
    for source in sources:
        kinds.setdefault(source.context.series.run, set()).add(source.context.series.kind)
    if "kind" in question.by or any("" in found for found in kinds.values()):
        return sources
    glob = question.where.get("kind")
    if not glob and not isinstance(question.step, int):
        return sources
    taken = {run: found if glob else {default_kind(found)} for run, found in kinds.items()}
    mine = [source for source in sources if source.context.series.kind in taken[source.context.series.run]]
    return mine if not glob else [one for one in mine if fnmatchcase(one.context.series.kind, glob)] or sources


def run_starts(sources: Iterable[Source]) -> dict[str, int]:
    """Return, per run, the epoch ns of its earliest time zero (0 where stamps are relative)."""
    starts: dict[str, int] = {}
    for source in sources:
        run = source.context.series.run
        zero = (source.context.zero.epoch_ns or 0) + source.context.offset_ns
        starts[run] = min(starts.get(run, zero), zero)
    return starts
