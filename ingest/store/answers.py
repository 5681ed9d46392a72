"""What a store holds for a question: merged rollups where they can answer, else documents; the same for every store.

What becomes of it is in `query.plan`, as for files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import compress, islice
from typing import Any, Protocol

import numpy as np

from ingest.core.coverage import WIDTHS, Missing, RowWidth, WholeRun, in_last_bin, whole_rows, whole_runs
from ingest.core.documents import Whole
from ingest.core.errors import UsageError, counted
from ingest.core.grid import coarsened
from ingest.core.intervals import Intervals, Narrow, Sum, merged, renamed
from ingest.core.labels import IN_FLIGHT, LABELS, LAYER, OFFSET, OUTCOME, Group, RunLabels, Series
from ingest.core.layout import Layout, common_layout
from ingest.core.units import format_duration
from ingest.query.coverage import caveats_asked, widths_asked, widths_selected
from ingest.query.means import own_facts
from ingest.query.plan import Merged, Sums, alike_in, answer_of, groups_in, troubles
from ingest.query.question import (
    ALL,
    AUTO,
    Answer,
    AnswerKey,
    Layouts,
    Question,
    check_labels,
    note_layouts,
    range_in,
    run_left_out,
)
from ingest.query.windows import auto_span, auto_step, check_step, grain_of, ordered, ranges, spanned_by_run, widen
from ingest.store.coverage import (
    being_read,
    caveats_in,
    check_asked,
    logs_in,
    lost,
    missing_in,
    not_loaded,
    row_widths,
    sentences,
    since_in,
)
from ingest.store.lifecycle import AS_LOADED, FORCED, STEP_TOLD, grid_of, layout_shown, step_in, unfinished
from ingest.store.live import NOTHING_FINAL, provisional
from ingest.store.records import (
    CLUSTER,
    COMPLETE,
    HOST,
    LOADING,
    SINCE,
    WATCHED,
    WHOLE_RUN,
    RunRecord,
    StoredSeries,
    alike,
    check_latencies,
    on_one_clock,
    rollup_steps,
    selected_records,
    time_range_of,
)
from ingest.store.rollups import cluster_group, host_group, layouts_by

ROLLUP_LABELS = {"run", "host", "op", "kind", LAYER, OUTCOME}
# Notes in a source's account that concern every number from it.
SAID_WITH_ANSWERS = ("coordinated omission:", "schedule:", "means:", "failed:")

# Which rows a store has kept finer than they suggest depends on the order of its loads, unless it was told a step.
HELD_ENTRIES = 250_000  # bins of rollups that are added up together: 6 MB
FORCED_AT_LOAD = "--force allows it of files, and load --step ... --force in a store"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What a store holds of some runs: their records, their series, and the accounts of their sources by run."""

    records: Sequence[RunRecord]
    series: Sequence[StoredSeries]
    accounts: Mapping[str, Sequence[Mapping[str, Any]]]
    _by_run: dict[str, list[StoredSeries]] = field(init=False, default_factory=dict, compare=False, repr=False)
    _widths: dict[str, list[RowWidth]] = field(init=False, default_factory=dict, compare=False, repr=False)
    _missing: dict[str, list[Missing]] = field(init=False, default_factory=dict, compare=False, repr=False)
    # Of the last question, which asks several times.
    _of: dict[str, tuple[AnswerKey, list[StoredSeries]]] = field(init=False, default_factory=dict, compare=False, repr=False)
    _asked_widths: dict[str, tuple[Question, list[RowWidth]]] = field(init=False, default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for stored in self.series:
            self._by_run.setdefault(stored.series.run, []).append(stored)

    def since(self, run: str) -> dict[str, int]:
        """Return from which generation on documents count, of each source of a run that is being read."""
        return since_in(self.accounts.get(run, ()))

    def widths(self, run: str) -> list[RowWidth]:
        """Return how wide the rows of a run's sources are."""
        if run not in self._widths:
            self._widths[run] = row_widths(run, self.accounts.get(run, ()))
        return self._widths[run]

    def missing(self, run: str, step_ns: int) -> Iterator[Missing]:
        """Yield what a run lacks in windows of a step (0: one over all of it)."""
        if run not in self._missing:
            self._missing[run] = missing_in(run, self.accounts.get(run, ()))
        yield from self._missing[run]
        yield from (each.spread() for each in self.widths(run) if 0 < step_ns < each.least_ns)

    def stored_ns(self, record: RunRecord, key: AnswerKey) -> int:
        """Return the width in ns of the widest windows in which the series of a run that a question selects are stored."""
        if not any(stored.step_ns for stored in self.latencies(record.run)):
            return record.step_ns
        return max((step_in(record, stored.step_ns) for stored in self.of(record.run, key)), default=record.step_ns)

    def grain(self, record: RunRecord, step_ns: int, question: Question) -> int:
        """Return the width in ns of the windows that a range of a run is made of at a multiple of the stored step (0: all of it).

        They are those that the rows that are asked for suggest, as of files, whichever load was the first; the stored ones where
        these are wider, or were told.
        """
        labels = {record.run: record.labels}
        stored = self.stored_ns(record, question.key(labels))
        if STEP_TOLD in record.parameters:
            return stored
        widths, known = self.widths(record.run), self._asked_widths.get(record.run)
        if known is None or known[0] is not question:
            known = self._asked_widths[record.run] = question, widths_asked(widths, question, labels)
        return max(stored, grain_of(widths, known[1], step_ns)) if known[1] else stored

    def all_of(self, run: str) -> list[StoredSeries]:
        """Return all series of a run."""
        return list(self._by_run.get(run, ()))

    def latencies(self, run: str) -> list[StoredSeries]:
        """Return the series of a run but those of offsets."""
        return [stored for stored in self.all_of(run) if stored.series.kind != OFFSET]

    def of(self, run: str, key: AnswerKey) -> list[StoredSeries]:
        """Return the series of latencies of a run that a question selects; offsets are never among them."""
        known = self._of.get(run)
        if known is None or known[0] is not key:
            known = self._of[run] = key, [stored for stored in self.latencies(run) if key(stored.series) is not None]
        return known[1]


@dataclass(frozen=True, slots=True)
class Plan:
    """The data that answers for one run: rollups of a scope and step, or the documents of some series.

    Documents are read in windows of the record's step: of the widest that any member is stored in.
    `members` are the series that are asked for, `everything` all of the run, `labels` those that the question looks at.
    `constant` are labels that all series of the run have alike: rollups do not bear them, and stand for them all the same.
    Of the sources in `since` documents count from these generations on.
    """

    record: RunRecord
    rollup_step: int | None
    begin_ns: int | None = None
    end_ns: int | None = None
    scope: str = CLUSTER
    members: Sequence[StoredSeries] = ()
    everything: Sequence[StoredSeries] = ()
    labels: Sequence[str] = LABELS
    constant: Mapping[str, str] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)


class Holdings(Protocol):
    """The data of a store that questions are answered from: what it holds of runs, and the windows that a plan names."""

    def catalogue(self, records: Sequence[RunRecord]) -> Catalogue:
        """Return records, series and accounts of the runs."""

    def shares(self, series: Sequence[StoredSeries], key: AnswerKey, windows: int) -> Iterator[Sequence[StoredSeries]]:
        """Yield the series, of so many windows each, in shares that have no group in common and are read one after another."""

    def sorted_windows(self, plan: Plan, key: AnswerKey, by: Sequence[str]) -> Iterator[Sequence[Intervals[Group]]]:
        """Yield stored windows under the groups that `key` makes of the labels `by`, in batches that go on by group and start."""

    def rollup_windows(self, plan: Plan) -> Iterator[Intervals[Series]]:
        """Yield the merged windows of a plan under series that bear run, host, op and kind alone."""

    def rollup_span(self, plan: Plan) -> tuple[int, int] | None:
        """Return from when to when the windows of a plan reach, None where there is none."""

    def document_windows(self, plan: Plan, key: AnswerKey, step_ns: int) -> Iterator[Intervals[Group]]:
        """Yield windows under the groups that `key` gives: as stored, or added up to `step_ns` (0: any width) already."""


def answer_from(holdings: Holdings, records: Sequence[RunRecord], question: Question, *, rollups: bool = True) -> Answer:
    """Return the merged windows that a question asks for; the same numbers as from the documents.

    Without `rollups` documents alone are read.
    """
    merged, rolled = _merged(holdings, records, question, rollups=rollups)
    recorded = {stored.layout for plan in rolled for stored in plan.everything}.union(*merged.sums.layouts.values())
    if rolled and not all(recorded.issuperset(part.layout.members) for part in merged.sums.parts):
        return answer_from(holdings, records, question, rollups=False)  # of an earlier version, in bins that none was recorded in
    answer = answer_of(merged, question)
    if not all(_moved_once(plan, answer.layouts) for plan in rolled):
        return answer_from(holdings, records, question, rollups=False)
    return answer


def _merged(
    holdings: Holdings, records: Sequence[RunRecord], question: Question, *, rollups: bool
) -> tuple[Merged, Sequence[Plan]]:
    """Return what a store holds for a question, and by which rollups it was answered."""
    labels = {record.run: record.labels for record in records}
    if records:
        check_labels(question, labels)
    selected = selected_records(records, question.runs, question.where)
    chosen, apart = on_one_clock(selected, question)
    check_asked(chosen, question.where)
    if question.attribution == IN_FLIGHT and not any(record.attribution == IN_FLIGHT for record in chosen):
        raise UsageError("these runs were loaded by completion: load them with --attribution in-flight to ask for it")
    catalogue = holdings.catalogue(chosen)
    check_latencies(catalogue.series, catalogue.records)
    key = cache(question.key(labels))  # of thousands of series it is asked several times
    loaded = [each for record in chosen for each in catalogue.widths(record.run)]
    if isinstance(question.step, int):
        forced = {record.run for record in chosen if FORCED in record.parameters}
        unforced = [each for each in loaded if each.labels["run"] not in forced]
        rows = widths_asked(unforced, question, labels)
        if all(STEP_TOLD in record.parameters for record in _holding(catalogue, key)):
            check_step(question.step, rows, force=question.force)
        else:
            check_step(question.step, rows, force=False, allowed=FORCED_AT_LOAD)
    step = step_of(catalogue, question, key)
    sums, selected_series, plans = Sums(), list[Series](), list[Plan]()
    for record in chosen:
        for stored in catalogue.of(record.run, key):
            selected_series.append(stored.series)
            note_layouts(sums.layouts, [key(stored.series) or ()], layout_shown(record, stored.layout))
            if stored.first_ns is not None and stored.last_ns is not None:
                widen(sums.reach, (record.run, stored.series.kind), (stored.first_ns, stored.last_ns))
        for plan in _plans(holdings, catalogue, record, question, key, step, rollups=rollups):
            plans.append(plan)
            total: Sum[Group] = Sum()
            for part in _windows(holdings, plan, key, step):
                if len(part):
                    total.add(Narrow.of([part]) if question.narrow else part)
            sums.parts += [Narrow.of([part]) for part in total.parts()] if question.narrow else total.parts()
    grains = {record.run: catalogue.grain(record, step, question) for record in chosen}
    if not step and question.in_part:
        spans = ((name, grains[name[0]], span) for name, span in ranges(sums.parts).items())
        sums.windows = {name: (low // grain * grain, -(-high // grain) * grain) for name, grain, (low, high) in spans}
    left_out = [stored.series for record in chosen for stored in catalogue.latencies(record.run) if key(stored.series) is None]
    rolled = [plan for plan in plans if plan.rollup_step is not None]
    ways = [("documents", len(rolled) < len(plans)), ("rollups", bool(rolled))]
    read = Merged(
        sums=sums,
        step_ns=step,
        runs=[replace(record, step_ns=grains[record.run]) for record in chosen],
        labels=labels,
        named=[record.run for record in chosen],
        selected=selected_series,
        left_out=left_out,
        # What a run reaches that is being loaded may be older than its windows. Coarsening leaves it as it is.
        loading=[record.run for record in chosen if record.state == LOADING and not unfinished(record)],
        whole_runs=_whole_runs(catalogue),
        whole_rows=[row for record in chosen for row in whole_rows(record.run, catalogue.accounts.get(record.run, ()))],
        lacking=[
            *(entry for record in chosen for entry in catalogue.missing(record.run, step)),
            *not_loaded(chosen, catalogue.accounts),
        ],
        caveats=caveats_asked(caveats_in(catalogue.accounts, [record.run for record in chosen]), loaded, question, labels),
        apart=list(_sentences_left_out(holdings, apart)),
        notes=[*sentences(chosen, question.by), *_warnings(_asked(catalogue, question, labels))],
        answered_from=" and ".join(way for way, taken in ways if taken),
        auto_ns=0 if step else auto_step_of(catalogue, question, key),
        alike=alike_in([stored.series for stored in catalogue.series]),
    )
    return read, rolled


def _moved_once(plan: Plan, targets: Layouts) -> bool:
    """Return whether counts of a plan's rollups are where their documents' would be.

    Rollups of groups of several layouts are in their common one: the bins that those of one layout come to on their way are not
    always those that they come to directly, where they nest in several that are unlike.
    """
    if len({stored.layout for stored in plan.everything}) == 1:
        return True
    hosts, clusters = layouts_by(plan.everything, host_group), layouts_by(plan.everything, cluster_group)
    for member in plan.members:
        host, cluster = host_group(member.series), cluster_group(member.series)
        if not member.layout.has_bins or len(clusters[cluster]) == 1:
            continue
        way = [common_layout(hosts[host]), *([common_layout(clusters[cluster])] if plan.scope == CLUSTER else [])]
        if not all(
            _same_place(member.layout, way, target) for target in targets.get((member.series.run, member.series.kind), ())
        ):
            return False
    return True


def _same_place(source: Layout, way: Sequence[Layout], target: Layout) -> bool:
    """Return whether each bin of `source` comes to the same bin of `target` by way of other layouts as directly."""
    bins, last = np.arange(source.bins), source
    for layout in (*way, target):
        bins, last = last.moved_to(layout)[bins], layout
    return np.array_equal(bins, source.moved_to(target))


def _whole_runs(catalogue: Catalogue) -> list[WholeRun]:
    """Return the values of whole runs without a histogram, as the tools themselves report them."""
    return [
        whole_run for record in catalogue.records for whole_run in whole_runs(record.run, catalogue.accounts.get(record.run, ()))
    ]


def _sentences_left_out(holdings: Holdings, apart: Sequence[RunRecord]) -> Iterator[str]:
    """Yield a sentence on each run that is left out, with how many samples were read of it."""
    accounts = holdings.catalogue(apart).accounts if apart else {}
    for record in apart:
        yield run_left_out(record.run, sum(int(account.get("samples", 0)) for account in accounts.get(record.run, ())))


def windows_from(holdings: Holdings, records: Sequence[RunRecord], question: Question) -> Iterator[Intervals[Group]]:
    """Yield the selected windows at the stored step under the question's groups, in bounded batches, as `ordered` has them."""
    labels = {record.run: record.labels for record in records}
    check_labels(question, labels)
    key = question.key(labels)
    chosen = selected_records(records, question.runs, question.where)
    check_asked(chosen, question.where)
    catalogue = holdings.catalogue(chosen)
    for record in chosen:
        stored = replace(record, step_ns=catalogue.stored_ns(record, key))
        begin, end = range_in(question, record.run, record.start_ns, stored.step_ns)
        members, everything = catalogue.of(record.run, key), catalogue.all_of(record.run)
        plan = Plan(stored, None, begin, end, members=members, everything=everything, since=catalogue.since(record.run))
        yield from ordered(holdings.sorted_windows(plan, key, question.by))


def facts_from(catalogue: Catalogue) -> list[tuple[str, str]]:
    """Return (name, value) pairs about runs."""
    chosen = catalogue.records
    accounts = [account for record in chosen for account in catalogue.accounts.get(record.run, ())]
    rows = sum(int(account.get("rows", 0)) for account in accounts)
    hosts = sorted({stored.series.host for stored in catalogue.series} - {""})
    return [
        ("Sources", f"{counted(sum(map(logs_in, accounts)), 'file')}, {counted(rows, 'row')}"),
        ("Hosts", ", ".join(hosts) or "not named"),
        ("Start taken from", ", ".join(sorted({record.zero for record in chosen}))),
        ("Stored step", ", ".join(sorted({_stored(record) for record in chosen}))),
        *(("Added up", said) for said in sorted({lost(record) for record in chosen} - {""})),
        ("Loaded", ", ".join(sorted({record.loaded for record in chosen}))),
        *((name, value) for record in chosen for name, value in sorted(record.labels.items()) if len(chosen) == 1),
        *own_facts(_whole_runs(catalogue)),
    ]


def lacked_by(catalogue: Catalogue, record: RunRecord) -> list[str]:
    """Return what loads of older versions have not kept of a complete run, and loading it again adds."""
    own = [account for account in catalogue.accounts.get(record.run, ()) if SINCE not in account]
    ends = [stored.last_ns for stored in catalogue.latencies(record.run)]
    lacked = {
        "how wide its rows are (a step that is too fine is refused)": any(WIDTHS not in account for account in own),
        "how many samples of each kind were stored (runs check)": any(
            account.get("samples") and "stored" not in account for account in own
        ),
        "when it ended": None in ends,
    }
    return [what for what, is_lacked in lacked.items() if is_lacked and record.state == COMPLETE]


def _stored(record: RunRecord) -> str:
    step = format_duration(record.step_ns)
    return f"{step}, {grid}" if (grid := grid_of(record)) != AS_LOADED else step


def step_of(catalogue: Catalogue, question: Question, key: AnswerKey) -> int:
    """Return the query step in ns, 0 for the whole range; UsageError unless it is a multiple of every stored step.

    That is the one that rows suggest, so that no order of loads decides, or the one that the load was told.
    """
    if question.step == ALL:
        return 0
    if question.step == AUTO:
        return auto_step_of(catalogue, question, key)
    kept = [catalogue.grain(record, 0, question) for record in _holding(catalogue, key)]
    stored, step = int(np.lcm.reduce(kept)), int(question.step)
    if step % stored:
        raise UsageError(f"a step of {format_duration(step)} is not a multiple of the stored step {format_duration(stored)}")
    return step


def auto_step_of(catalogue: Catalogue, question: Question, key: AnswerKey) -> int:
    """Return the step in ns that makes about 150 windows of the selected series within the range."""
    stored = max(catalogue.grain(record, 0, question) for record in _holding(catalogue, key))
    of_run = ((record, time_range_of(catalogue.of(record.run, key))) for record in catalogue.records)
    reach = {record.run: (record, span) for record, span in of_run if span is not None}
    bounds = {
        run: range_in(question, run, record.start_ns, catalogue.grain(record, stored, question))
        for run, (record, _) in reach.items()
    }
    span = auto_span({run: extent for run, (_, extent) in reach.items()}, bounds, stored)
    members = (member.series for record in catalogue.records for member in catalogue.of(record.run, key))
    return auto_step(*span, stored, question.most_windows(groups_in(members, key)))


def _holding(catalogue: Catalogue, key: AnswerKey) -> Sequence[RunRecord]:
    """Return the runs that have a selected series: of these alone the rows count, as of files; all where none has one."""
    return [record for record in catalogue.records if catalogue.of(record.run, key)] or catalogue.records


def _plans(
    holdings: Holdings, catalogue: Catalogue, record: RunRecord, question: Question, key: AnswerKey, step: int, *, rollups: bool
) -> Iterator[Plan]:
    """Yield how a run is answered: by its rollups in one go, else by the documents of one share of its series after another."""
    begin, end = range_in(question, record.run, record.start_ns, catalogue.grain(record, step, question))
    everything, members = catalogue.all_of(record.run), catalogue.of(record.run, key)
    constant = alike(everything, ROLLUP_LABELS) if record.state == COMPLETE else {}
    asked = {*question.by, *question.where} - set(record.labels) - constant.keys()
    looked_at = tuple(label for label in LABELS if label in {"run", "kind", *question.by, *question.where})
    loading = being_read(record, catalogue.accounts.get(record.run, ()))  # beside a watch: rollups may be of what it read before
    counting = catalogue.since(record.run)
    final = None if loading else _final_until(record, step, begin, end)
    fit = not any(edge % record.step_ns for edge in (step, begin or 0, end or 0))
    by_rollups = rollups and fit and asked <= ROLLUP_LABELS and (record.state == COMPLETE or final is not None)
    if not by_rollups or final is not None:
        since = final if by_rollups else begin
        stored = replace(record, step_ns=catalogue.stored_ns(record, key))
        windows = _windows_in(time_range_of(members), since, end, stored.step_ns)
        for share in holdings.shares(members, key, windows) if since is None or end is None or since < end else ():
            yield Plan(stored, None, since, end, members=share, everything=everything, labels=looked_at, since=counting)
    if not by_rollups:
        return
    end = final if final is not None else end
    fits = [
        kept
        for kept in rollup_steps(record.step_ns)
        if (kept == WHOLE_RUN and step == 0 and begin is None and end is None)
        or (kept and step % kept == 0 and (begin or 0) % kept == 0 and (end or 0) % kept == 0)
    ]
    scope = HOST if "host" in question.by or "host" in question.where else CLUSTER
    yield Plan(record, WHOLE_RUN if WHOLE_RUN in fits else max(fits), begin, end, scope, members, everything, looked_at, constant)


def _windows_in(span: tuple[int, int] | None, begin: int | None, end: int | None, step_ns: int) -> int:
    """Return in how many windows of a step a range overlaps the span of series at most, at least in one."""
    low, high = span or (0, 0)
    low, high = low if begin is None else max(low, begin), high if end is None else min(high, end)
    return max(1, -(-(high - low) // step_ns))


def _final_until(record: RunRecord, step: int, begin: int | None, end: int | None) -> int | None:
    """Return up to when the rollups of a watched run answer, at an edge of the query's windows; None if not at all."""
    if record.state != WATCHED or record.final_ns in (None, NOTHING_FINAL):
        return None
    width = step or record.step_ns
    until = min(record.final_ns, end if end is not None else record.final_ns) // width * width
    return until if begin is None or begin < until else None


def _windows(holdings: Holdings, plan: Plan, key: AnswerKey, step: int) -> Iterator[Intervals[Group]]:
    """Yield the windows of a plan at a step (0: the whole range) under the question's groups, added up as they come.

    Those that are made of several rollups are held until they are whole: parts of them that came one by one would all have to be
    added up again, together.
    """
    parts = holdings.document_windows(plan, key, step) if plan.rollup_step is None else _rollups(holdings, plan, key, step)
    if not step:
        yield from (rows for part in parts for rows in spanned_by_run([part]))
    elif plan.rollup_step is None:
        yield from (merged([coarsened(part, step)]) for part in parts)
    elif plan.rollup_step == step and _one_to_one(plan, key):
        yield from parts
    else:
        whole: Whole[Group] = Whole()
        some, held = list[Intervals[Group]](), 0
        for part in parts:
            some.append(coarsened(part, step))
            held += len(part.bins)
            if held >= HELD_ENTRIES:  # each time all that is held is added up anew
                yield from whole.add(some)
                some, held = [], 0
        yield from whole.add(some)
        yield from whole.rest()


def _one_to_one(plan: Plan, key: AnswerKey) -> bool:
    """Return whether no two rollups of a plan are of one group."""
    of_host = plan.scope == HOST
    rolled = {(stored.series.host if of_host else "", stored.series.op, stored.series.kind) for stored in plan.members}
    return len(rolled) == len({key(stored.series) for stored in plan.members})


def _rollups(holdings: Holdings, plan: Plan, key: AnswerKey, step: int) -> Iterator[Intervals[Group]]:
    """Yield the rollups of a plan under the question's groups."""
    # Rollups of a wider step than the stored one have exact counts, but bounds of time that are too rough.
    wide = not step and plan.rollup_step not in (WHOLE_RUN, plan.record.step_ns)
    span = holdings.rollup_span(replace(plan, rollup_step=plan.record.step_ns)) if wide else None
    named = cache(lambda series: key(series.replaced(**plan.constant)))
    before, names = None, renamed((), named)
    for part in holdings.rollup_windows(plan):
        if part.table is not before:  # mostly it is that of the last batch
            before, names = part.table, renamed(part.table, named)
        windows = part.renamed(*names)
        if span is not None:
            windows = replace(windows, start_ns=np.full(len(windows), span[0]), end_ns=np.full(len(windows), span[1]))
        yield windows


def _asked(catalogue: Catalogue, question: Question, labels: RunLabels) -> Catalogue:
    """Return a catalogue without the accounts of sources that a question leaves out by their labels."""
    if not question.where:
        return catalogue
    asked = {}
    for run, own in catalogue.accounts.items():
        rows = iter(catalogue.widths(run))
        widths = [list(islice(rows, len(account.get(WIDTHS, ())))) for account in own]
        kept = (not mine or widths_selected(mine, question, labels) for mine in widths)
        asked[run] = list(compress(own, kept))
    return replace(catalogue, accounts=asked)


def _warnings(catalogue: Catalogue) -> Iterator[str]:
    """Yield the sentences that a reader of the numbers must see: unfinished loads, repairs, rejects, saturation."""
    for record in catalogue.records:
        if sentence := unfinished(record):
            yield sentence
        elif record.state == WATCHED:
            yield provisional(record)
        elif record.state != COMPLETE:
            yield f"the load of {record.run} was cut off: run it again to complete it"
    for record in catalogue.records:
        name = record.run if len(catalogue.records) > 1 else ""
        digests = [(name, text) for account in catalogue.accounts.get(record.run, ()) for text in account.get("schedule", ())]
        if digests:
            from ingest.read import schedule  # a store needs nothing else of readers

            yield from schedule.sentences(digests)
        for account in catalogue.accounts.get(record.run, ()):
            yield from (note for note in account.get("notes", ()) if note.startswith(SAID_WITH_ANSWERS))
    accounts = [account for record in catalogue.records for account in catalogue.accounts.get(record.run, ())]
    yield from troubles(accounts)
    if saturated := sum(account.get("saturated", 0) for account in accounts):
        yield in_last_bin(saturated)
