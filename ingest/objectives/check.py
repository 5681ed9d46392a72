"""Objectives held against runs, in files and in stores alike, and the finding of a run that an episode belongs to.

Objectives held against runs, in files and in stores alike; what of it a store keeps, and what is reported.

    checked = check(origin.answer, labels, objectives, Question(runs=("nightly-42",)))
    checked.verdicts                                one for each objective, run and group
    keep(store, checked)                            the store's episodes of these objectives are then those of the verdicts

For each run and width of windows one question for its life, then one for each objective, by its labels; of files by host, too, as
they are read once, of a store about the hosts in episodes. All numbers are those of the query layer, so that files, SQLite and
Elasticsearch give the same verdicts. Marks are those that a store keeps of the run and those of files that it overlaps
(`ingest.query.compare.noted_in`); they are asked for where an objective speaks of phases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ingest.core.errors import InputError, UsageError, counted
from ingest.core.labels import (
    ALTERNATIVE,
    ASKABLE,
    RunLabels,
    Series,
    as_options,
    fits,
    in_words,
    is_pattern,
    label_of,
    run_matches,
    wanted_and_others,
)
from ingest.core.layout import Mixed
from ingest.core.marks import FOREVER, OUTSIDE, InstantError, Mark, joined, stretches
from ingest.core.objective import VIOLATE, AnyObjective, Latency, Objective, Rate, RunObjective
from ingest.core.units import Instant, format_duration
from ingest.objectives.baseline import Comparison, compared
from ingest.objectives.objectives import read_objectives
from ingest.query.burn_rate import BurnAlert
from ingest.query.compare import NotedIn, noted_in
from ingest.query.episodes import (
    ENDED,
    HOST,
    NOT_BETWEEN,
    OPEN,
    PROVISIONAL,
    VIOLATED,
    Episode,
    Labels,
    Life,
    Verdict,
    judged,
    judgement,
    no_windows,
    verdicts,
    with_worst_hosts,
)
from ingest.query.lags import answered
from ingest.query.origin import Origin, Run
from ingest.query.overview import span_of
from ingest.query.plan import settled
from ingest.query.question import (
    ABSOLUTE,
    ALL,
    Answer,
    NothingMatchesError,
    Question,
    check_labels,
    is_absolute,
    literal,
    steady_words,
)
from ingest.query.story.ground import Finding, Story
from ingest.store import Store

Ask = Callable[[Question], Answer]
Tell = Callable[[Episode | BurnAlert], None]


@dataclass(frozen=True, slots=True)
class Unjudged:
    """An objective that a run has nothing for, and why."""

    objective: AnyObjective
    run: str
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdicts in the order of objectives, runs and labels; what could not be judged; what a reader must know.

    `compared` are those about a baseline.
    """

    verdicts: tuple[Verdict, ...]
    unjudged: tuple[Unjudged, ...] = ()
    warnings: tuple[str, ...] = ()
    compared: tuple[Comparison, ...] = ()

    @property
    def met(self) -> bool:
        """Return whether every promise was kept for certain."""
        return all(verdict.met for verdict in self.verdicts) and all(each.met for each in self.compared)

    @property
    def violated(self) -> bool:
        """Return whether a promise was broken for certain."""
        return VIOLATED in {*(verdict.outcome for verdict in self.verdicts), *(each.outcome for each in self.compared)}


def check(
    ask: Ask,
    runs: RunLabels,
    objectives: Sequence[AnyObjective],
    selection: Question,
    path: Path | None = None,
    finals: Mapping[str, int] | None = None,
    noted: NotedIn | None = None,
    *,
    growing: bool = False,
    indexed: bool = False,
) -> Checked:
    """Return the verdicts of objectives over the runs of a selection; its `where`, `begin` and `end` narrow what is judged.

    Only windows that lie wholly between `begin` and `end` are judged. `runs` has the labels of each run, `finals` the end in ns
    of the last final window of those that are being watched, `noted` gives the marks of the run of an answer. An objective that
    has nothing to judge in a run is named. InputError where that is so for all of them, or (with `path` and line) for one that
    cannot be asked of the data, such as what lies during a mark without an end; where runs are `growing` that mark may still get
    one. Of what is `indexed` hosts are asked for where an objective needs them, and in episodes; else the data is read once.
    """
    check_labels(selection, runs)
    asked = _remembered(ask)
    narrowed = {promise.name: _narrowed(promise, selection, path) for promise in objectives}
    found: dict[str, list[Verdict | Comparison | Unjudged]] = {promise.name: [] for promise in objectives}
    warnings: dict[str, None] = {}
    phased = any(isinstance(objective, Objective) and objective.phases for objective in objectives)

    def judge(own: AnyObjective, run: str, lives: dict[int, Life]) -> Sequence[Verdict | Comparison]:
        if isinstance(own, RunObjective):
            return compared(asked, own, run, runs, selection)
        step = own.window_ns
        if step not in lives:
            question = _whole_run(run, step, () if indexed and _without_hosts(own) else (HOST,))
            lives[step] = _life(asked(question), run, (finals or {}).get(run, FOREVER), noted if phased else None)
        of_run, said = _of_run(asked, own, lives[step], selection, indexed=indexed)
        warnings.update(dict.fromkeys(said))
        return of_run

    for run in sorted(runs):
        lives: dict[int, Life] = {}
        for objective in objectives:
            own = narrowed[objective.name]
            if own is None or not _selected(run, selection, own, runs):
                continue
            try:
                if not lives:
                    _check_overlap(ask, run, selection)
                found[own.name] += judge(own, run, lives)
            except InstantError as error:
                if not growing:
                    raise InputError(f"{own.name}: {error}", path, error.line) from None
                found[own.name].append(Unjudged(objective, run, str(error)))
            except UsageError as error:
                reason = str(error).partition("; --force")[0]
                raise InputError(f"{own.name}: {reason}", path, own.line) from None
            except InputError as error:
                found[own.name].append(Unjudged(objective, run, str(error)))
    for objective in objectives:
        found[objective.name] = found[objective.name] or [Unjudged(objective, "", _nothing(objective))]
    every = [entry for several in found.values() for entry in several]
    checked = Checked(
        tuple(entry for entry in every if isinstance(entry, Verdict)),
        tuple(entry for entry in every if isinstance(entry, Unjudged)),
        tuple(warnings),
        tuple(entry for entry in every if isinstance(entry, Comparison)),
    )
    if not checked.verdicts and not checked.compared:
        raise InputError(f"no objective can be judged: {checked.unjudged[0].objective.name}: {checked.unjudged[0].reason}")
    return checked


def check_in(
    origin: Origin, path: Path | None, selection: Question, marks: Sequence[Mark] = (), said: Sequence[AnyObjective] = ()
) -> Checked:
    """Return the verdicts of the objectives of a file and of those `said`, by marks of files beside those of the origin.

    UsageError where two have one name; else as `check`.
    """
    records = origin.runs()
    runs = labels_of(records)
    of_file = read_objectives(path, {name for labels in runs.values() for name in labels}) if path else ()
    objectives = [*of_file, *said]
    globs = tuple(each.promise.baseline for each in objectives if isinstance(each, RunObjective)) if selection.runs else ()
    selection = replace(settled(origin, replace(selection, runs=(*selection.runs, *globs))), runs=selection.runs)
    names = [objective.name for objective in objectives]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two objectives are called {twice!r}: leave one out, or name it in a file")
    noted = noted_in(origin, marks)
    return check(partial(answered, origin), runs, objectives, selection, path, finals_of(records), noted, indexed=origin.indexed)


def _nothing(objective: AnyObjective) -> str:
    beside = f", beside {objective.promise.baseline}" if isinstance(objective, RunObjective) else ""
    return f"no run is selected by --run, --where and where{beside}"


def keep(store: Store, checked: Checked) -> None:
    """Write certain episodes and what came of each objective in a run into a store, in place of those of an earlier check."""
    found: dict[tuple[str, str], list[Verdict]] = {}
    for unjudged in checked.unjudged:
        if unjudged.run:
            found[unjudged.run, unjudged.objective.name] = []
    for verdict in checked.verdicts:
        found.setdefault((verdict.run, verdict.objective.name), []).append(verdict)
    for (run, name), own in found.items():
        episodes = [episode for verdict in own for episode in certain(verdict)]
        store.keep_episodes(run, name, episodes, judgement(own) if own else None)


def certain(verdict: Verdict) -> list[Episode]:
    """Return the episodes of a verdict that final windows alone make."""
    return [episode for episode in verdict.episodes if episode.state != PROVISIONAL]


def alerting(
    objectives: Sequence[AnyObjective], tell: Tell, path: Path | None = None, marks: Sequence[Mark] = ()
) -> Callable[[Store, str], Checked | None]:
    """Return what `watch` calls after each cycle: it judges the final windows of a run, keeps the episodes, reports changes.

    `marks` are given beside those that the store keeps. It returns what was found, None where there is nothing to judge yet.
    Baselines are for `against_baselines`, once the run has ended.

    `tell` is called once when an episode has begun (its state is open), once when it has ended, and once when a budget that has
    a period begins to burn too fast. The store holds which episodes were reported, also for the next process; if this one is
    killed between reporting and keeping, the change is reported again, under the same id and state, and an alert that lasts is
    always. InputError and StoreError as of `check` and of the store.
    """
    windowed = [objective for objective in objectives if isinstance(objective, Objective)]
    alerts: dict[str, set[tuple[str, Labels, int]]] = {}

    def judge(store: Store, run: str) -> Checked | None:
        if not windowed:
            return None
        records = [record for record in store.runs() if record.run == run]
        try:
            words = (labels_of(records), windowed, Question(), path, finals_of(records), noted_in(store, marks))
            checked = check(store.answer, *words, growing=True, indexed=True)
        except InputError as error:
            if error.line is not None:
                raise
            return None  # nothing has come yet that an objective could be held against
        known = {kept.id: kept.state for kept in store.episodes([run])}
        for episode in (each for verdict in checked.verdicts for each in certain(verdict)):
            before = known.get(episode.id)
            if before is None:
                tell(replace(episode, state=OPEN))
            if episode.state == ENDED != before:
                tell(episode)
        first, told = run not in alerts, alerts.setdefault(run, set())
        for verdict in checked.verdicts:
            if verdict.objective.budget and verdict.objective.budget.period_ns:
                for alert in verdict.alerts:
                    if (verdict.objective.name, verdict.labels, alert.start_ns) not in told and (alert.open or not first):
                        tell(alert)
                    told.add((verdict.objective.name, verdict.labels, alert.start_ns))
        keep(store, checked)
        return checked

    return judge


def against_baselines(
    objectives: Sequence[AnyObjective], store: Store, run: str, path: Path | None = None
) -> Sequence[Comparison]:
    """Return how a run of a store compares with its baselines there. InputError where that cannot be told, as of `check`."""
    whole = [objective for objective in objectives if isinstance(objective, RunObjective)]
    if not whole:
        return ()
    return check(store.answer, labels_of(store.runs()), whole, Question(runs=(literal(run),)), path).compared


def labels_of(records: Iterable[Run]) -> RunLabels:
    """Return the labels of runs by their names."""
    return {record.run: dict(record.labels) for record in records}


def finals_of(records: Iterable[Run]) -> dict[str, int]:
    """Return the end in ns of the last final window of the runs that are being watched."""
    return {record.run: record.final_ns for record in records if record.final_ns is not None}


def _remembered(ask: Ask) -> Ask:
    """Return a way to ask that keeps the last answer: objectives often differ in percentile and threshold alone."""
    last: list[tuple[Question, Answer]] = []

    def asked(question: Question) -> Answer:
        if not last or last[0][0] != question:
            last[:] = [(question, ask(question))]
        return last[0][1]

    return asked


def _of_run(
    ask: Ask, objective: Objective, whole: Life, selection: Question, *, indexed: bool
) -> tuple[list[Verdict], Sequence[str]]:
    """Return the verdicts of a run and the warnings about its data. InputError where it has nothing of what is asked."""
    begin, end = selection.edges(whole.run, whole.zero_ns)
    phases = stretches(objective.phases, whole.marks, whole.run) if objective.phases else None
    begin, end = -FOREVER if begin is None else begin, FOREVER if end is None else end
    if isinstance(objective.promise, Rate):  # the run fills its first and its last window in part
        begin, end = max(begin, whole.start_ns + objective.window_ns), min(end, whole.end_ns - objective.window_ns)
        if begin >= end:
            raise InputError(f"the run fills no window of {format_duration(objective.window_ns)}: take narrower ones for a rate")
    life = replace(whole, from_ns=begin, to_ns=end, judged=phases)
    by = objective.by if HOST in objective.by else (*objective.by, HOST)
    question = _whole_run(life.run, objective.window_ns, by)
    question = replace(question, where={**objective.where, **question.where})
    alone = replace(question, by=objective.by) if indexed and _without_hosts(objective) else question
    try:
        answer = ask(alone)
        if alone != question and not _of_one_kind(answer):
            answer = ask(question)
    except NothingMatchesError:
        if objective.no_data != VIOLATE or objective.by not in ((), ("run",)):
            asked = ", ".join(f"{name} {in_words(glob)}" for name, glob in objective.where.items())
            raise InputError(f"nothing matches where {asked}" if asked else "nothing here has a latency") from None
        group = tuple((name, life.run) for name in objective.by)
        return verdicts(objective, no_windows(), [group], life.within(objective.window_ns), ""), _all_of_it(objective, life)
    steady = filter(None, [steady_words(selection, life.run, life.zero_ns, min(life.to_ns, span_of(answer.parts)[1]))])
    found = judged(objective, answer, life)
    if HOST not in answer.by and (
        spans := joined((each.start_ns, each.end_ns) for verdict in found for each in verdict.episodes)
    ):
        found = with_worst_hosts(found, _in_spans(ask, question, spans, answer.series), answer.by, objective, life_ns=0)
    return found, (*steady, *answer.warnings, *_all_of_it(objective, life))


ROWS_A_SLICE = 1 << 16  # of episodes: some 40 MB


def _without_hosts(objective: Objective) -> bool:
    """Return whether an objective is judged without its hosts, which are asked for in episodes alone."""
    return HOST not in objective.by and isinstance(objective.promise, Latency)


def _of_one_kind(answer: Answer) -> bool:
    """Return whether all bins are of one layout, and no events have weights: only then a sum of hosts is what is stored of it."""
    return answer.weights is None and not any(isinstance(part.layout, Mixed) for part in answer.parts)


def _in_spans(ask: Ask, question: Question, spans: Iterable[tuple[int, int]], series: int) -> Iterator[Answer]:
    """Yield the answer about spans of time, and what lies between near ones, in slices of about ROWS_A_SLICE rows."""
    width = max(1, ROWS_A_SLICE // max(1, series)) * int(question.step)
    last = -FOREVER
    for begin, end in spans:
        while max(begin, last) < end:
            first = max(begin, last)
            last = first + width
            with suppress(NothingMatchesError):  # nothing completed
                yield ask(replace(question, begin=Instant(first), end=Instant(last)))


def _all_of_it(objective: Objective, life: Life) -> list[str]:
    """Return a sentence on each `outside` without a mark: it leaves nothing out."""
    return [
        f"{objective.name}: no mark of {life.run} matches {phase.word}: {phase.glob}: nothing is left out there"
        for phase in objective.phases
        if phase.word == OUTSIDE and not any(map(phase.matches, life.marks))
    ]


def _life(whole: Answer, run: str, final_ns: int, noted: NotedIn | None) -> Life:
    """Return a run from the first to the last window in which anything of its default kind completed, with its marks."""
    low, high = span_of(whole.parts)
    marks = tuple(noted(whole)) if noted else ()
    return Life(run, low, high, final_ns, whole.run_start_ns[run], whole.relative, marks=marks)


def _check_overlap(ask: Ask, run: str, selection: Question) -> None:
    """Raise InputError where nothing of a run lies in the range that is selected: its windows are then not read at all."""
    if not selection.in_part:
        return
    whole = ask(Question(step=ALL).about([run]))
    if whole.relative and is_absolute(selection):
        raise InputError(ABSOLUTE)
    low, high = span_of(whole.parts)
    zero = whole.run_start_ns[run]
    begin, end = selection.edges(run, zero)
    if (begin is not None and begin >= high) or (end is not None and end <= low):
        raise InputError(NOT_BETWEEN)


def _whole_run(run: str, step_ns: int, by: tuple[str, ...]) -> Question:
    """Return the question for all windows of a run: where an objective asks for the same it is asked once."""
    return Question(by=by, step=step_ns, narrow=True).about([run])


def _selected(run: str, selection: Question, objective: AnyObjective, runs: RunLabels) -> bool:
    """Return whether a run is asked for, by what `where` says of runs."""
    series = Series(run=run)
    own = {name: glob for name, glob in objective.where.items() if name == "run" or name not in ASKABLE}
    return run_matches(run, selection.runs) and all(fits(label_of(series, name, runs), glob) for name, glob in own.items())


def _narrowed(objective: AnyObjective, selection: Question, path: Path | None) -> AnyObjective | None:
    """Return the objective for the selected series alone; None where they have nothing in common."""
    where = dict(objective.where)
    for name, globs in selection.where.items():
        if name in where and wanted_and_others(globs)[1]:
            if is_pattern(where[name]):
                asked = as_options("--where", {name: globs})[0]
                raise InputError(f"where has {name}: {where[name]}; {asked} cannot be combined with it", path, objective.line)
            if not fits(where[name], globs):
                return None
            continue
        if name in where and ALTERNATIVE in globs:
            so_far = replace(objective, where=where)
            each = [_narrowed(so_far, replace(selection, where={name: glob}), path) for glob in globs.split(ALTERNATIVE)]
            if not any(each):
                return None
            where[name] = ALTERNATIVE.join(dict.fromkeys(one.where[name] for one in each if one))
            continue
        glob, own = globs, where.get(name, globs)
        if own == glob or not is_pattern(glob):
            if own != glob and not fits(glob, own):
                return None
            where[name] = glob
        elif is_pattern(own):
            raise InputError(f"where has {name}: {own}; --where {name}={glob} cannot be combined with it", path, objective.line)
        elif not fits(own, glob):
            return None
    return replace(objective, where=where)


# Which finding of a run an episode belongs to: what happened while an objective was violated.


MOST_RUNS = 8  # whose data are read once more for it
LONG = 3  # times an episode: what lasts longer is said only where nothing shorter fits

StoryOf = Callable[[str], Story]


def belongings(verdicts: Sequence[Verdict], tell: StoryOf) -> list[str]:
    """Return a sentence on each finding that episodes belong to, in the order of the findings; `tell` gives the story of a run.

    Of the first MOST_RUNS runs that have episodes. A run of which nothing can be told has none.
    """
    violated: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.episodes:
            violated.setdefault(verdict.run, []).append(verdict)
    sentences = []
    for run in sorted(violated)[:MOST_RUNS]:
        try:
            findings = tell(run).findings
        except InputError:  # means alone, or nothing that has windows
            continue
        pairs = [(each, finding_of(each, own.objective.where, findings)) for own in violated[run] for each in own.episodes]
        for finding in findings:
            mine = [each for each, its in pairs if its is finding]
            if mine:
                names = ", ".join(dict.fromkeys(each.objective for each in mine))
                verb = "belongs" if len(mine) == 1 else "belong"
                sentences.append(f"{counted(len(mine), 'episode')} of {names} {verb} to this: {finding.text}")
    return sentences


def finding_of(episode: Episode, where: Mapping[str, str], findings: Sequence[Finding]) -> Finding | None:
    """Return the finding that an episode belongs to: at its time and, where it names any, of its labels; None without one.

    `where` selects what the objective speaks of: what happened to other operations or hosts than these, or on another host than
    the one that was worst, is no cause. Of several that of the worst host comes first, then what does not last much longer than
    the episode, then the first in the story.
    """
    labels = dict(episode.labels) | ({HOST: episode.worst_host} if episode.worst_host else {})

    def fits_one(finding: Finding) -> bool:
        """Return whether the episode's labels, as far as they are known, are those of any member that a finding is about."""
        each = ((*finding.who, *member) for member in finding.members or ((),))
        return any(
            all(labels.get(name, value) == value and fits(value, where.get(name, "*")) for name, value in who) for who in each
        )

    fitting = [
        finding
        for finding in findings
        if finding.start_ns < episode.end_ns and finding.end_ns > episode.start_ns and fits_one(finding)
    ]

    def order(finding: Finding) -> tuple[bool, bool]:
        lasts = finding.end_ns - finding.start_ns
        return bool(episode.worst_host) and HOST not in dict(finding.who), lasts > LONG * (episode.end_ns - episode.start_ns)

    return min(fitting, key=order, default=None)
