"""Answers straight from log files, without a store: read, grid, merge, in parallel and in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ingest.core.coverage import DEFAULT_WIDTH_NS, REFUSED_FILE, RowWidth, WholeRow, median_width
from ingest.core.errors import InputError, UsageError, counted
from ingest.core.grid import UNTIMED, stored_step
from ingest.core.intervals import Intervals, Narrow, Sum
from ingest.core.labels import LABELS, LAYER, OUTCOME, Group, Series, label_of, runs_asked
from ingest.core.pool import fork_map
from ingest.core.values import Value, at_least, one_of, several
from ingest.query.aggregate import (
    adding_up,
    all_of,
    beside_entries,
    files_in_order,
    grouped_sources,
    run_starts,
    series_before_reading,
)
from ingest.query.coverage import ANY_KIND, caveats_asked, missing_from, of_asked_kinds, widths_asked
from ingest.query.means import holds_means_alone, own_facts, whole_runs_of
from ingest.query.origin import (
    BREATHS,
    INTERVAL_LOG,
    LOGS,
    OFFSET_TICKS,
    OFFSETS,
    PERCENTILES,
    SLOWEST,
    WEIGHED,
    WHOLE_RUNS,
    Capabilities,
)
from ingest.query.plan import Merged, Sums, alike_in, answer_of, groups_in, settled
from ingest.query.question import (
    ALL,
    AUTO,
    Answer,
    NothingMatchesError,
    Question,
    check_labels,
    keys_of,
    left_out_by_clock,
    logs_left_out,
    range_in,
    undated_runs,
)
from ingest.query.windows import auto_span, auto_step, check_step, grain_of, of_runs, step_of_rows, widened
from ingest.read import read, read_many, small_ones_together
from ingest.read.account import Account, nothing_taken
from ingest.read.copies import conflicts
from ingest.read.discovery import processes
from ingest.read.format_names import HDR, SNABB
from ingest.read.formats import SHARES, row_labels, single_events
from ingest.read.missing import own_step, row_width, unreadable
from ingest.read.placement import discover
from ingest.read.sources import Found, ReadOptions, Source

if TYPE_CHECKING:
    from ingest.core.coverage import Missing, WholeRun
    from ingest.query.episodes import Episode
    from ingest.query.percentiles import Wanted
    from ingest.query.table import Table


T = TypeVar("T")

MOST_TOGETHER = 64  # small logs read in one pass
HELD_ENTRIES = 1_000_000  # bins a process holds before it adds them up: adding up takes several times their memory


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LogRun(Value):
    """A run of log files: what every origin knows of a run."""

    run: str
    labels: Mapping[str, str]
    start_ns: int
    relative: bool
    final_ns: int | None = None
    step_ns: int = DEFAULT_WIDTH_NS


class Files:
    """Log files and folders that can be asked the same questions as a store."""

    def __init__(
        self,
        paths: Sequence[Path | str] | Path | str,
        options: ReadOptions | None = None,
        jobs: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Look under `paths`, one or several; nothing is read yet. `progress` is called with (done, total) files meanwhile.

        `jobs` is how many processes read, None as `processes` has it.

        Raises InputError where there is nothing to read, UsageError for values of other types.
        """
        self.paths: tuple[Path | str, ...] = several(paths, (str, Path), "Files", "a path, or ['archive', 'more.log']")
        self.options: ReadOptions = one_of(
            ReadOptions, ReadOptions() if options is None else options, "Files", "ReadOptions(run='nightly-42')"
        )
        if not callable(progress or print):
            raise UsageError(f"progress takes a function of (done, total), not {progress!r}")
        self.progress = progress
        if jobs is not None:
            at_least(1, jobs, "jobs")
        self.found: Found = discover([Path(path) for path in self.paths], self.options)
        self._lacking = self.found.lacking()
        self.jobs = processes(jobs, (source.path for source in self.found.sources))
        for conflict in conflicts(self.found):
            raise InputError(conflict.sentence, conflict.subject)
        self._measured: tuple[Found, Mapping[str, list[RowWidth]]] | None = None
        self.stored = {run: stored_step(median_width(rows)) for run, rows in self._row_widths().items()}

    @property
    def indexed(self) -> bool:
        """Return that a question about a part of the data reads all of it."""
        return False

    @property
    def offers(self) -> Capabilities:
        """Return what files can do beyond what every origin can: they can be read again in any other way."""
        offers = Capabilities().add(LOGS, self).add(WEIGHED, self.weighed).add(PERCENTILES, self.percentiles)
        offers.add(WHOLE_RUNS, self.whole_runs).later(INTERVAL_LOG, "ingest.query.interval_log.from_files", self)
        offers.later(OFFSETS, "ingest.query.offsets.from_files", self).later(OFFSET_TICKS, "ingest.query.offsets.of_files", self)
        offers.later(SLOWEST, "ingest.query.slowest.of_files", self)
        return offers.later(BREATHS, "ingest.query.breaths.from_files", self)

    def runs(self) -> list[LogRun]:
        """Return the runs that the files belong to, by name."""
        starts, undated = run_starts(self.found.sources), undated_runs(self.found.sources)
        return [
            LogRun(run, self.found.labels.get(run, {}), starts[run], undated[run], step_ns=self.stored[run])
            for run in self.run_names
        ]

    def preferring(self, prefer: str) -> Files:
        """Return these files with `prefer` deciding among logs of the same I/Os; themselves where it does already."""
        if self.options.prefer == prefer:
            return self
        return Files(self.paths, replace(self.options, prefer=prefer), self.jobs, self.progress)

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
        one_of(Question, question, "question", "Question(by=('op',))")
        check_labels(question, self.found.labels)
        question = settled(self, question)
        return answer_of(self._merged(question, *self.choice(question)), question)

    def _merged(self, question: Question, sources: Sequence[Source], apart: Sequence[str]) -> Merged:
        """Return what the rows of some sources are, added up; those of better kinds first, all where they hold nothing."""
        asked = self.widths_asked(question)
        stored = step_of_rows(asked)
        step = stored if question.step == AUTO else 0 if question.step == ALL else int(question.step)
        if isinstance(question.step, int):
            check_step(step, asked, force=question.force)
        starts = self.starts_of(sources)
        sums = self._added_up(sources, question, step, starts)
        answered_runs = {key[0] for part in sums.parts for key in keys_of(part)}
        if any(source.context.series.run not in answered_runs for source in sources):
            every = self.choice(question, every_kind=True)[0]
            if len(every) > len(sources):  # the default kind is the best of what is there in the range
                return self._merged(question, every, apart)
        self._check_rejects(sources, sums.parts)
        if question.step == AUTO and sums.parts:
            bounds = {run: range_in(question, run, start, self.grain(run, step, asked) or 1) for run, start in starts.items()}
            most = question.most_windows(groups_in(sums.series, question.key(self.found.labels)))
            step = auto_step(*auto_span(of_runs(sums.reach), bounds, stored), stored, most)
            sums.parts = widened(sums.parts, step)
        return self.merged_of(sums, question, step, sources, apart)

    def merged_of(self, sums: Sums, question: Question, step: int, sources: Sequence[Source], apart: Sequence[str]) -> Merged:
        """Return sums over sources, which were read, with all that is known of these.

        `apart` is said of sources that are left out.
        """
        undated, asked = undated_runs(sources), self.widths_asked(question)
        widths = map(row_width, self.found.sources)
        caveats = caveats_asked(self.found.caveats, widths, question, self.found.labels)
        files = [source.context.series for source in self.choice(question, every_kind=True)[0]]
        # Also of files that were not read, as theirs is another kind.
        before = series_before_reading(files, question, self.found.labels)
        return Merged(
            sums=sums,
            step_ns=step,
            runs=[
                LogRun(run, {}, start, undated[run], step_ns=self.grain(run, step, asked) or 1)
                for run, start in self.starts_of(sources).items()
            ],
            labels=self.found.labels,
            named=self.run_names,
            selected=[own.replaced(kind=ANY_KIND) if _rows_tell_kind(own, sums.series) else own for own in files],
            jobs=sums.series.union(before),
            left_out=sums.left_out.union(source.context.series for source in self.found.sources),
            means_alone=[source.context.series for source in self.found.sources if holds_means_alone(source)],
            whole_runs=whole_runs_of(sources),
            whole_rows=[
                WholeRow.from_dict(source.context.series.run, row)
                for source in sources
                for row in source.context.account.whole_rows
            ],
            lacking=[
                *self._lacking,
                *(entry for source in sources for entry in source.context.account.missing),
                *(row_width(source).spread() for source in sources),
                *self._disagreements(sources),
                *self._in_both(sources),
            ],
            caveats=caveats,
            apart=apart,
            notes=beside_entries(sources, replace(self.found, caveats=caveats)),
            alike=alike_in(sums.series),
        )

    def _in_both(self, sources: Sequence[Source]) -> Iterator[Missing]:
        """Yield what files that were read hold of operations of others of their run."""
        by_run: dict[str, list[Source]] = {}
        for source in sources:
            if source.context.account.stretches:
                by_run.setdefault(source.context.series.run, []).append(source)
        if by_run:
            from ingest.core.stated import in_both  # most calls read no single operations

            for of_run in by_run.values():
                labels = {width.subject: width.labels for width in map(row_width, of_run)}
                yield from in_both((entry for source in of_run for entry in source.context.account.stretches), labels)

    def _disagreements(self, sources: Sequence[Source]) -> list[Missing]:
        """Return what the files that were read hold fewer or more samples of than their tools state."""
        contexts = [source.context for source in sources]
        if not any(context.jobs or context.group or context.of_no_entry for context in contexts):
            return []
        from ingest.read.totals import disagreements_in  # most calls meet no tool that states anything

        return disagreements_in(self.found.sources, {id(source) for source in sources})

    def grain(self, run: str, step: int, asked: Sequence[RowWidth]) -> int:
        """Return the width in ns of the windows that a range of a run is made of; 0 at a step that no store could answer.

        `asked` is how wide the rows are of what is asked for.
        """
        return grain_of(self._row_widths()[run], [each for each in asked if each.labels["run"] == run], step)

    def _grains(self, question: Question, step: int, runs: Iterable[str]) -> dict[str, int]:
        """Return the grain of each run for a question."""
        asked = self.widths_asked(question)
        return {run: self.grain(run, step, asked) for run in runs}

    def _row_widths(self) -> Mapping[str, list[RowWidth]]:
        """Return how wide the rows of the sources of each run are."""
        if self._measured is None or self._measured[0] is not self.found:
            by_run: dict[str, list[RowWidth]] = {}
            for source in self.found.sources:
                by_run.setdefault(source.context.series.run, []).append(row_width(source))
            self._measured = self.found, by_run
        return self._measured[1]

    def widths_asked(self, question: Question) -> list[RowWidth]:
        """Return how wide the rows are of the sources that can hold what is asked."""
        rows = map(row_width, self.choice(question, every_kind=True)[0])
        return widths_asked(rows, question, self.found.labels)

    def percentiles(self, question: Question, wanted: Wanted) -> tuple[Table, Answer]:
        """Return the table of percentiles that a question asks for, and the facts about it.

        Long logs at a fixed step are answered window by window, in memory that does not grow with their length; the `parts` of
        the facts are then the whole range. Raises what `answer` raises.
        """
        from ingest.query.percentiles import percentiles

        if all(source.format == HDR for source in self.found.sources):
            from ingest.query.streaming import streamed

            table_and_facts = streamed(self, question, wanted)
            if table_and_facts is not None:
                return table_and_facts
        answer = self.weighed(question)
        return percentiles(answer, wanted), answer

    def weighed(self, question: Question) -> Answer:
        """Return the answer, of timelines weighed in one reading; raises what `answer` raises."""
        if all(source.format != SNABB for source in self.found.sources):
            return self.answer(question)
        from ingest.query.lags import weighed

        return weighed(self.answer, question)

    def whole_runs(self, runs: Collection[str]) -> list[WholeRun]:
        """Return what the tools themselves report of whole runs that have no histogram; known once these were asked about."""
        return whole_runs_of([source for source in self.found.sources if source.context.series.run in runs])

    def _added_up(self, sources: Sequence[Source], question: Question, step: int, starts: dict[str, int]) -> Sums:
        """Return the sums over all sources, added up in each process first: only sums are handed on."""
        total, of_process = Sum[Group](HELD_ENTRIES), Sum[Group](HELD_ENTRIES)
        summed, met = Sums(), Sums()
        grains = self._grains(question, step, starts)

        def work(some: Sequence[Source]) -> None:
            own_sums = self._summed(some, question, step, starts, grains)
            parts = own_sums.parts
            if question.narrow:  # chunks of a file have windows in common, files mostly not
                whole = Sum[Group](HELD_ENTRIES)
                for part in parts:
                    whole.add(part)
                parts = [Narrow.of([part]) for part in whole.parts()]
            for part in parts:
                of_process.add(part)
            met.widen(own_sums)

        def parts_of(sums: Sum[Group]) -> list[Intervals[Group]]:
            return sums.pending if question.narrow else sums.parts()

        items = small_ones_together(sources, min(MOST_TOGETHER, max(1, len(sources) // (SHARES * self.jobs))))
        for parts, of_parts in self.in_processes(items, work, lambda: (parts_of(of_process), met)):
            summed.widen(of_parts)
            for part in parts:
                total.add(part)
        return replace(summed, parts=parts_of(total))

    def in_processes(
        self, items: Sequence[Sequence[Source]], work: Callable[[Sequence[Source]], None], gathered: Callable[[], T]
    ) -> Iterator[T]:
        """Yield what each process has `gathered` when it has done the `work` on all its items; accounts of sources come back."""

        def accounts_of(some: Sequence[Source]) -> Iterator[list[Account]]:
            work(some)
            yield [source.context.account for source in some]

        finished, files = 0, sum(map(len, items))
        for number, result in fork_map(accounts_of, items, self.jobs, gathered, joining=True):
            if number == len(items):
                yield result
                continue
            for source, account in zip(items[number], result, strict=True):
                source.context.account.replace(account)
            finished += len(result)
            if self.progress:
                self.progress(finished, files)

    def windows(self, question: Question) -> Iterator[Intervals[Group]]:
        """Yield the selected windows at the stored step under the question's groups, as `ordered` has them.

        Each run is on its own clock. The windows of files whose labels are not known before they are read are held: those
        of a host and job.
        """
        check_labels(question, self.found.labels)
        sources = _of_kinds(self._matching(question), question)
        starts = self.starts_of(sources)
        fixed = replace(question, step=(step := max(self.stored[source.context.series.run] for source in sources)))
        groups = grouped_sources(sources) if question.by[:4] == LABELS[:4] else [sources]
        flat = [source for some in groups for source in some]
        grains = self._grains(fixed, step, starts)

        def work(source: Source) -> Iterator[list[Intervals[Group]]]:
            total: Sum[Group] = Sum(HELD_ENTRIES)
            for part in self._summed([source], fixed, step, starts, grains).parts:
                total.add(part)
            yield total.parts()

        yield from files_in_order(fork_map(work, flat, self.jobs), [len(some) for some in groups])

    def facts(self, answer: Answer) -> list[tuple[str, str]]:
        """Return (name, value) pairs about the runs of an answer."""
        from ingest.read.totals import reconciled, skew  # for people's headings alone

        sources = [source for source in self.found.sources if source.context.series.run in answer.runs]
        hosts = sorted({source.context.series.host for source in sources} - {""})
        origins = sorted({source.context.zero.origin for source in sources})
        read = sum(source.context.account.rows for source in sources)
        return [
            ("Sources", f"{counted(len(sources), 'file')}, {counted(read, 'row')}"),
            ("Hosts", ", ".join(hosts) or "not named"),
            ("Start taken from", ", ".join(origins)),
            *(("Checked", text) for text in reconciled(sources)),
            *(("Clocks", text) for text in skew(sources)),
            *own_facts(whole_runs_of(sources)),
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
        """Return the sources that can hold what is asked; labels that only their rows hold are decided later."""
        return self.choice(question)[0]

    def choice(self, question: Question, *, every_kind: bool = False) -> tuple[list[Source], tuple[str, ...]]:
        """Return the sources that can hold what is asked and share an axis of time, and a sentence about those that do not.

        With `every_kind` also those whose kind is asked for only where there is none of a better one.
        """
        sources = self._matching(question)
        apart = left_out_by_clock(question, undated_runs(sources))
        names = [str(source.path) for source in sources if source.context.series.run in apart]
        kept = [source for source in sources if source.context.series.run not in apart]
        return kept if every_kind else _of_kinds(kept, question), (logs_left_out(names, len(sources), apart),) if names else ()

    def _named(self, question: Question, sources: Sequence[Source]) -> set[str]:
        """Return the runs whose steps decide that of an answer: as in a store, those that are named, whatever is selected."""
        named = runs_asked(self.stored, question.runs, question.where, self.found.labels)
        apart = left_out_by_clock(question, undated_runs(self.found.sources))
        return {source.context.series.run for source in sources} | {run for run in named if run not in apart}

    def _matching(self, question: Question) -> list[Source]:
        of_rows = (row_labels(source) for source in self.found.sources)
        labels = [(*names, OUTCOME, LAYER) if "kind" in names else (*names, OUTCOME) for names in of_rows]
        keys = {
            by_rows: replace(question, where={k: v for k, v in question.where.items() if k not in by_rows}).key(self.found.labels)
            for by_rows in set(labels)
        }
        asked = zip(self.found.sources, labels, strict=True)
        sources = [source for source, by_rows in asked if keys[by_rows](source.context.series) is not None]
        if not sources:
            runs = sorted({source.context.series.run for source in self.found.sources})
            sure = [name for name in question.where if not any(name in by_rows for by_rows in keys)]
            known = {
                name: {label_of(source.context.series, name, self.found.labels) for source in self.found.sources} for name in sure
            }
            missing = missing_from(self._lacking, question, self.found.labels, dict.fromkeys(runs, (None, None)))
            raise NothingMatchesError(question, runs, known=known, missing=missing)
        return sources

    def _summed(
        self, sources: Sequence[Source], question: Question, step: int, starts: Mapping[str, int], grains: Mapping[str, int]
    ) -> Sums:
        """Return the sums of some sources, and from when to when they reach; small ones are read in one pass."""
        for source in sources:  # read anew, counted anew: a report asks the same files more than once
            source.context.account.replace(Account(path=source.context.account.path, notes=source.context.account.notes))
        runs = dict.fromkeys(source.context.series.run for source in sources)
        own_grains, own_starts = ({run: of[run] for run in runs} for of in (grains, starts))
        adding = adding_up(question, self.found.labels, step, own_grains, own_starts)
        alike: dict[int, list[Source]] = {}
        for source in sources:
            alike.setdefault(own_step(source), []).append(source)
        for own, some in alike.items():
            left: list[Source] = []
            for chunk in read_many(some, left):
                for run, rows in chunk.split(lambda series: series.run):
                    adding[run].add(rows, own)
            for source in left:
                mine = adding[source.context.series.run]
                try:
                    for chunk in read(source, *((mine.windows, mine.seen(source)) if single_events(source) else ())):
                        mine.add(chunk, own)
                except InputError as error:
                    source.context.account.lack(unreadable(source, error.reason))
        return all_of(adding)

    def _check_rejects(self, sources: Iterable[Source], parts: Sequence[Intervals[Group]]) -> None:
        """Raise InputError where nothing came of the sources, with the reason."""
        if parts:
            return
        from ingest.read.operations import MOMENTS

        account = self.account
        if moments := [note for note in account.notes if note.endswith(MOMENTS)]:
            raise InputError(f"nothing here has a latency: {moments[0]}")
        if any(UNTIMED in note for note in account.notes):
            raise InputError(UNTIMED)
        if unread := [entry.caveat for entry in account.missing if entry.caveat.code == REFUSED_FILE]:
            raise InputError(f"{unread[0].subject}: {unread[0].sentence}")
        if not account.taken:
            raise nothing_taken(account, [source.path for source in sources])


def _of_kinds(sources: list[Source], question: Question) -> list[Source]:
    """Return the sources of the kinds that are asked for; the range of a run, where none is said, is that of all its kinds."""
    if "kind" not in question.where and not isinstance(question.step, int):
        return sources
    return of_asked_kinds(sources, question, lambda source: (source.context.series.run, source.context.series.kind))


def _rows_tell_kind(file: Series, met: Collection[Series]) -> bool:
    """Return whether rows tell the kind that a file itself does not: some series met that may be of it has one."""
    told = [(name, value) for name in LABELS if (value := getattr(file, name))]
    return not file.kind and any(own.kind and all(getattr(own, name) == value for name, value in told) for own in met)
