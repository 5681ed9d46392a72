"""What is asked and what is answered: `Question` in, `Answer` out, and why a question matches nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ingest.core.coverage import Caveat, sentences
from ingest.core.errors import InputError, TailboardError, UsageError, choices, counted, listed
from ingest.core.grid import MS, SECOND, whole_windows
from ingest.core.intervals import Intervals, total
from ingest.core.labels import (
    ALTERNATIVE,
    ASKABLE,
    CLIENT,
    FAILED,
    IN_FLIGHT,
    LAYER,
    LAYERS,
    NOT,
    NOT_ITSELF,
    OK,
    OUTCOME,
    Group,
    RunLabels,
    Series,
    as_options,
    bare_kind,
    default_kind,
    fits,
    group_of,
    in_words,
    label_of,
    layer_of,
    outcome_of,
    run_and_kind,
    run_matches,
    succeeded_kind,
    wanted_and_others,
)
from ingest.core.layout import Layout, common_layout
from ingest.core.units import MOST_NS, UNITS_NS, Instant, figure, format_duration, parse_duration, parse_instant, utc
from ingest.core.values import Value, at_least, several, true_or_false
from ingest.query.coverage import Lack, caveats_of, left_out, of_kinds, taken_of
from ingest.query.origin import Origin
from ingest.query.windows import AUTO_WINDOWS, Bounds, Span, by_layout, widest

if TYPE_CHECKING:
    from ingest.read.sources import Source


# What is asked and what is answered, whatever holds the data: `Question` in, `Answer` out.


AUTO, ALL = "auto", "all"

ATTRIBUTIONS = ("completion", IN_FLIGHT)

STEADY = "steady"


class Steady(NamedTuple):
    """From when on a run is steady, in epoch ns; None where that is from its start on: no warm-up is seen, or `why` says.

    `tail` says what its warm-up makes of the tail of the run.
    """

    start_ns: int | None = None
    why: str = ""
    tail: str = ""


class Settled(NamedTuple):
    """A range that begins where each run is steady: `runs`, once these were looked at (`settled` of query/story/steady.py)."""

    runs: Mapping[str, Steady] = {}

    @property
    def relative(self) -> bool:
        """Return that it is no time of the clock."""
        return True

    def of(self, run: str) -> Steady:
        """Return from when on a run is steady; UsageError where nobody has looked."""
        if run not in self.runs:
            raise UsageError(f"{STEADY} is found in the data of a run: origin.answer looks, and settled(origin, question)")
        return self.runs[run]


AnswerKey = Callable[[Series], Group | None]
RunKind = tuple[str, str]
Layouts = Mapping[RunKind, Collection[Layout]]


LEAST_WINDOWS = 60  # that "auto" makes, of however many groups
UNLIMITED = 1 << 40  # windows, or cells


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Question(Value):
    """A selection of measurements and how they are to be merged.

    `where` holds a glob for each label, or several as lines of one text (`core/labels.py`): any of them may match.
    `step` is ns, "auto" (at most `windows` windows, about 150; where groups are many fewer, at most `cells` of all together) or
    "all" (one window for the whole range). `begin` and `end` are instants, or texts of such; `begin="steady"` leaves out the
    warm-up of each run. `kind` empty takes each run's default kind.
    Different runs are merged only with `merge_runs`. A `narrow` answer is held in a quarter of the bytes mostly, for looking at a
    piece at a time (`core.intervals.Narrow`).
    """

    runs: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    step: int | str = AUTO
    begin: Instant | Settled | None = None
    end: Instant | None = None
    merge_runs: bool = False
    force: bool = False
    attribution: str = "completion"
    windows: int = AUTO_WINDOWS
    cells: int = UNLIMITED
    narrow: bool = False

    def __post_init__(self) -> None:
        """Take one text for a tuple of one, and texts of times for times; UsageError for what no question can have."""
        if not isinstance(self.where, Mapping) or any(not isinstance(name, str) for name in self.where):
            raise UsageError(f"where takes a mapping such as {{'op': 'read'}}, not {self.where!r}")
        globs = {
            name: several(glob, str, f"where[{name!r}]", "'read', or ('read', 'write')") for name, glob in self.where.items()
        }
        where = {name: ALTERNATIVE.join(some) for name, some in globs.items()}
        true_or_false(self, ("merge_runs", "force"))
        taken: dict[str, Any] = {
            "runs": several(self.runs, str, "runs", "'nightly-42', or ('nightly-41', 'nightly-42*')"),
            "by": several(self.by, str, "by", "'host', or ('host', 'op')"),
            "where": self.where if where == self.where else where,
            "begin": start_of_range(self.begin),
            "end": _instant(self.end, "end"),
            "windows": at_least(1, self.windows, "windows"),
            "cells": at_least(1, self.cells, "cells"),
        }
        if not isinstance(self.step, str):
            taken["step"] = at_least(1, self.step, "step ('auto', 'all', '10s', or ns)")
        elif self.step not in (AUTO, ALL):
            taken["step"] = parse_duration(self.step)
        if not isinstance(self.attribution, str) or self.attribution not in ATTRIBUTIONS:
            raise UsageError(f"attribution takes {' or '.join(map(repr, ATTRIBUTIONS))}, not {self.attribution!r}")
        for name, value in taken.items():
            object.__setattr__(self, name, value)  # as a frozen dataclass sets its own

    @property
    def in_one_window(self) -> bool:
        """Return whether the whole range is one row of each group."""
        return self.step == ALL

    @property
    def unsettled(self) -> bool:
        """Return whether the range begins where runs are steady, and nobody has looked yet where that is."""
        return isinstance(self.begin, Settled) and not self.begin.runs

    @property
    def in_part(self) -> bool:
        """Return whether it is about a part of the time of runs."""
        if isinstance(self.begin, Settled):
            return self.end is not None or any(steady.start_ns is not None for steady in self.begin.runs.values())
        return self.begin is not None or self.end is not None

    @property
    def slowest_failures(self) -> bool:
        """Return whether operations that failed rank above all others: where it names no `outcome`, which tells them apart."""
        return OUTCOME not in self.by and OUTCOME not in self.where

    @property
    def adds_up_runs(self) -> bool:
        """Return whether rows of several runs become one."""
        return self.merge_runs and "run" not in self.by

    def edges(self, run: str, run_start_ns: int) -> Bounds:
        """Return both edges of the range in a run that began then, in epoch ns; None for no bound."""
        if isinstance(self.begin, Settled):
            return self.begin.of(run).start_ns, edges_of(None, self.end, run_start_ns)[1]
        return edges_of(self.begin, self.end, run_start_ns)

    def key(self, run_labels: RunLabels) -> AnswerKey:
        """Return the function that gives a series its group (run, kind, then `by`), or None where it is not selected."""

        def key(series: Series) -> Group | None:
            if not run_matches(series.run, self.runs):
                return None
            if any(not self._holds(label_of(series, name, run_labels), name, glob) for name, glob in self.where.items()):
                return None
            return (series.run, series.kind, *group_of(series, self.by, run_labels))

        return key

    def most_windows(self, groups: int) -> int:
        """Return how many windows "auto" makes at most of so many groups."""
        return min(self.windows, max(self.cells // max(1, groups), LEAST_WINDOWS))

    def _holds(self, label: str, name: str, glob: str) -> bool:
        """Return whether a label is one that is asked for.

        What failed is of the kind of all operations, and weights in flight are of the kind that they are the shares of, too.
        """
        label = succeeded_kind(label) if name == "kind" else label
        of = label.removesuffix(f".{IN_FLIGHT}")
        if name == "kind" and self.attribution == IN_FLIGHT and of != label:
            return fits(of, glob) or (not wanted_and_others(glob)[1] and fits(label, glob))
        return fits(label, glob)

    def unmatched(self, series: Iterable[Series], left_out: Collection[Series], run_labels: RunLabels) -> Iterator[str]:
        """Yield a sentence on each label of which some of the values that are asked for are in none of the selected series.

        Of values that are to be left out they are in none of those that are `left_out` either, whatever the other labels select.
        """
        selected = list(series)
        for name, globs in self.where.items():
            each, others = wanted_and_others(globs)
            labels = {label_of(one, name, run_labels) for one in selected} if len(each) > 1 else set()
            if gone := [glob for glob in each if labels and not any(self._holds(label, name, glob) for label in labels)]:
                yield f"no {name} matches {' or '.join(gone)}: the answer is of the others"
            if not others:
                continue
            key = replace(self, where={**self.where, name: ALTERNATIVE.join(each) or "*"}).key(run_labels)
            labels = {label_of(one, name, run_labels) for one in (*selected, *left_out) if key(one) is not None}
            labels |= {own[name] for own in run_labels.values() if name in own} if name != "run" else {*run_labels}
            if gone := [glob for glob in others if not any(self._holds(label, name, glob) for label in labels)]:
                there = choices(gone[0], sorted(filter(None, labels)))
                yield f"no {name} matches {' or '.join(gone)}, so nothing is left out for it: {there}"

    def about(self, runs: Sequence[str]) -> Question:
        """Return the question about these runs alone.

        A name selects, beside the run that bears it, all runs of a load of that name. Where one run is asked for, its label keeps
        those out; what chose several runs has chosen those as well, or keeps them out by a label that stays.
        """
        where = {**self.where, "run": literal(runs[0])} if len(runs) == 1 else self.where
        return replace(self, runs=tuple(literal(run) for run in runs), where=where)


def start_of_range(value: Any) -> Instant | Settled | None:
    """Return what a range begins with: a time, of text or as it is, or where runs are steady; UsageError for anything else."""
    if isinstance(value, Settled):
        return value
    return Settled() if isinstance(value, str) and value == STEADY else _instant(value, "begin")


def _instant(value: Any, what: str) -> Instant | None:
    """Return a time, of text as people write it; UsageError for anything else: whole numbers might be seconds, ms or ns."""
    if isinstance(value, Instant):
        at_least(1 - MOST_NS, value.ns, f"Instant of {what}")
    if value is None or isinstance(value, Instant):
        return value
    if not isinstance(value, str):
        raise UsageError(f"{what} takes an Instant, or text such as '2026-11-20T21:06:32Z' or '+90s', not {value!r}")
    return parse_instant(value)


MOST_LOST = 2


class NothingMatchesError(InputError):
    """A question selects nothing of `runs` but what is `missing`. `known` are values of labels known without a further look."""

    def __init__(
        self,
        question: Question,
        runs: Collection[str],
        *,
        known: Mapping[str, Collection[str]] | None = None,
        missing: Sequence[Lack] = (),
    ) -> None:
        asked = [f"--run {glob}" for glob in question.runs] + where_words(question.where)
        asked += ["--from/--to"] if question.in_part else []
        here = listed(sorted(runs))
        super().__init__(f"nothing matches {' '.join(asked)}; runs here: {here}" if asked else _no_samples(here, missing))
        self.question = question
        self.known = known or {}
        self.missing = missing


def _no_samples(runs: str, missing: Sequence[Lack]) -> str:
    """Return the sentence for runs of which everything was asked for, and of which nothing was counted."""
    caveats = caveats_of(missing)
    each = {caveat.code: caveat for caveat in reversed(caveats)}  # every reason is said before the first is repeated
    lost = list(dict.fromkeys((*sentences(list(each.values())[::-1]), *sentences(caveats))))
    why = "; ".join(lost[:MOST_LOST]) or "nothing that was read holds one"
    more = f"; and {len(lost) - MOST_LOST} more: tailboard inspect" if len(lost) > MOST_LOST else ""
    return f"there are no samples in {runs}: {why}{more}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answer(Value):
    """Merged windows per group: what every table and picture is made of.

    `parts` hold one layout each; their tables hold groups (the labels of `by`), each group in one part. Tables put rows in
    order; a part is ordered by group.
    `run_start_ns` gives, per run, the time that elapsed time counts from; `relative` says that no run has a real clock,
    `undated` which ones have none where others have.
    `missing` is what the answer lacks, `caveats` what a reader must know as values; `warnings` hold their `sentences`, too.
    `layouts`, by run and kind: before it is finished those of all that is selected, also outside of the range that is asked for;
    then the common one that its rows are in.
    `weights` is set where events were sampled: how many events a stored one stands for in each group of one rate.
    `covered` gives, per run, from when to when there is data within the range that was asked for (of all kinds where the step is
    "all"): rates of the first and the last window count that time alone. `auto_ns` is the step that "auto" would have, where a
    store was asked for the whole range. `layers` are those that the selected data was timed at, also where rows are of one alone.
    `series` is how many files that may hold them, or how many stored series of the kinds of the answer, the rows are from.
    `alike` are the labels of jobs (volume, job, tag) that all selected series of a host have in common, so far as that is known.
    """

    parts: tuple[Intervals[Group], ...]
    by: tuple[str, ...]
    step_ns: int
    kind: str
    runs: tuple[str, ...]
    run_start_ns: Mapping[str, int]
    relative: bool
    series: int = 0
    warnings: tuple[str, ...] = ()
    answered_from: str = "files"
    weights: Mapping[Group, int] | None = None
    undated: frozenset[str] = frozenset()
    covered: Mapping[str, Span] = field(default_factory=dict)
    auto_ns: int = 0
    missing: tuple[Lack, ...] = ()
    caveats: tuple[Caveat, ...] = ()
    layouts: Layouts = field(default_factory=dict)
    layers: tuple[str, ...] = ()
    alike: frozenset[str] = frozenset()

    @property
    def latency(self) -> str:
        """Return what was timed, in words: `completion latency`; where there are several layers, at which one."""
        if not set(self.layers) - {CLIENT}:
            return f"{self.kind} latency".lstrip()  # what some logs time has no name
        kinds = self.kind.split(", ")
        named = [(layer, [bare_kind(kind) for kind in kinds if layer_of(kind) == layer]) for layer in LAYERS]
        return " and ".join(f"{', '.join(own)} latency of the {layer} layer" for layer, own in named if own)

    @property
    def made_of(self) -> str:
        """Return what the rows were added up from, in words: `12 files`, `24 series (rollups)`."""
        return counted(self.series, "file") if self.answered_from == "files" else f"{self.series:,} series ({self.answered_from})"

    @property
    def samples(self) -> int:
        """Return the number of samples in all parts (completions for in-flight weights)."""
        return sum(total(part.counts if part.completions is None else part.completions) for part in self.parts)

    @property
    def start_of(self) -> int:
        """Return the epoch ns that elapsed time counts from: the earliest start of the runs asked, undated ones aside."""
        return min((start for run, start in self.run_start_ns.items() if run not in self.undated), default=0)


def samples_by_kind(answers: Iterable[Answer]) -> dict[str, int]:
    """Return how many samples answers hold of each kind: those of unlike kinds are the same operations."""
    sums: Counter[str] = Counter()
    for answer in answers:
        kinds = answer.kind.split(", ")
        name = next((name for name in ("kind", LAYER) if name in answer.by), "")
        if not name:
            sums[kinds[0]] += answer.samples
            continue
        kind_of = {layer_of(kind): kind for kind in kinds} if name == LAYER else {}  # a layer without a kind beside it has one
        place = answer.by.index(name)
        for part in answer.parts:
            for label, rows in part.split(lambda key, at=place: key[at]):  # type: ignore[misc]
                sums[kind_of.get(label, label)] += replace(answer, parts=(rows,)).samples
    return {kind: sums[kind] for kind in sorted(sums, key=lambda kind: (LAYERS.index(layer_of(kind)), kind))}


def samples_apart(answers: Iterable[Answer]) -> dict[str, int]:
    """Return how many samples answers hold of each layer, or of each kind where a layer has several."""
    sums = samples_by_kind(answers)
    by_layer = {layer_of(kind): number for kind, number in sums.items()}
    return by_layer if len(by_layer) == len(sums) else {kind or "-": number for kind, number in sums.items()}


def where_words(where: Mapping[str, str]) -> list[str]:
    """Return the options that say which labels are asked for."""
    return as_options("--where", where)


def literal(text: str) -> str:
    """Return the glob that matches exactly this text."""
    glob = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)
    return NOT_ITSELF + glob[1:] if glob[:1] == NOT else glob


def edges_of(begin: Instant | None, end: Instant | None, run_start_ns: int) -> Bounds:
    """Return both edges of a range in epoch ns, for a run that began then; None for no bound.

    A time of day at its end is the first one behind its beginning.
    """
    first, last = (None if edge is None else edge.epoch_ns(run_start_ns) for edge in (begin, end))
    if first is not None and last is not None and end is not None and end.of_day and last <= first:
        last += ((first - last) // UNITS_NS["d"] + 1) * UNITS_NS["d"]
    return first, last


def range_in(question: Question, run: str, run_start_ns: int, step_ns: int) -> Bounds:
    """Return from when to when a question asks about a run that is kept in windows of `step_ns`, in epoch ns; None for no bound.

    A range is that of the windows it touches: what was within a window is not kept.
    """
    return whole_windows(*question.edges(run, run_start_ns), step_ns)


def moved_edges(question: Question, run: str, run_start_ns: int, step_ns: int) -> str:
    """Return a sentence on the edges of a range that lie between windows of `step_ns`, empty where none does."""
    moved = []
    asked, edges = question.edges(run, run_start_ns), range_in(question, run, run_start_ns, step_ns)
    for name, given, edge, to in zip(("--from", "--to"), (question.begin, question.end), asked, edges, strict=True):
        if given is not None and to is not None and edge != to:
            since, at = f"{(to - run_start_ns) / SECOND:+.9g}s", f"{np.datetime64(to // MS, 'ms')}Z"
            moved.append(f"{name} to {since if given.relative else at}")
    return f"moved to whole windows of {format_duration(step_ns)}: {', '.join(moved)}" if moved else ""


def steady_words(question: Question, run: str, run_start_ns: int, end_ns: int | None = None) -> str:
    """Return a sentence on where the steady part of a run is that an answer up to `end_ns` is about; empty for other ranges."""
    if not isinstance(question.begin, Settled):
        return ""
    start_ns, why, _ = question.begin.of(run)
    edges = (start_ns or run_start_ns, *(() if end_ns is None else (end_ns,)))
    reach = "from " + " to ".join(since(round((edge - run_start_ns) / MS) * MS) for edge in edges)
    if start_ns is None:
        return f"{run}: {why or 'no warm-up is seen'}, so {STEADY} is all of it: {reach}"
    return f"{run}: {STEADY} is {reach}; its warm-up is left out"


CALLED = {  # labels by what others call them
    **dict.fromkeys(("client", "node", "server", "machine", "hostname", "hosts"), "host"),
    **dict.fromkeys(("operation", "rw", "ops"), "op"),
    **dict.fromkeys(("disk", "device", "image"), "volume"),
    "thread": "job",
}


def check_labels(question: Question, run_labels: RunLabels) -> None:
    """Raise UsageError for a label that no series and no run has."""
    known = {*ASKABLE, *(name for labels in run_labels.values() for name in labels)}
    for name in (*question.by, *question.where):
        if name not in known:
            raise UsageError(f"no label {name!r} here: {choices(CALLED.get(name, name), sorted(known), most=len(known))}")


def finish(
    parts: Sequence[Intervals[Group]],
    question: Question,
    facts: Answer,
    reach: Mapping[tuple[str, str], Span] | None = None,
    series: Collection[Series] = (),
    jobs: Iterable[Series] | None = None,
) -> Answer:
    """Return the answer from merged windows keyed (run, kind, *by): default kind taken, runs merged or named, layouts joined.

    Several kinds in one answer are named: they are never added up.

    `facts` is an answer with everything but its parts; `reach` from when to when there is data of a run and kind, `series` what
    the windows are from, stored series or those of files, `jobs` all series that are selected, where these are not the same.
    InputError where the selection is empty.
    """
    rows = [part for part in parts if len(part)]
    keys = {key for part in rows for key in keys_of(part)}
    if not keys:
        raise NothingMatchesError(question, facts.runs, missing=facts.missing)
    kinds: dict[str, set[str]] = {}
    for run, kind, *_ in keys:
        kinds.setdefault(run, set()).add(succeeded_kind(kind))
    shape = shape_of(question, kinds, {outcome_of(kind) for _, kind, *_ in keys})

    at_kind = question.by.index("kind") if "kind" in question.by else None

    def regroup(key: Group) -> Group | None:
        run, kind, *labels = key
        plain = succeeded_kind(kind)
        if plain not in shape.taken.get(run, ()):  # a table may hold keys that no row is of
            return None
        if at_kind is not None:
            labels[at_kind] = plain
        if not shape.named:
            return tuple(labels)
        own = {"run": run, "kind": plain, LAYER: layer_of(kind), OUTCOME: outcome_of(kind)}
        return (*(own[name] for name in shape.named), *labels)

    targets = _targets(rows, facts.layouts, shape, question)
    alike = (own for part in rows for own in _alike(part, targets, question))
    joined = by_layout([taken for own in alike if len(taken := own.relabelled(regroup))])
    notes = (*((UNLIKE_BINS,) if any(part.mixed.any() for part in joined) else ()), *failed_words(joined))
    alone = bool(facts.undated) and facts.undated.issuperset(shape.runs)
    undated = frozenset() if alone else facts.undated.intersection(shape.runs)
    of_kind = (
        (run, span)
        for (run, kind), span in (reach or {}).items()
        if not facts.step_ns or succeeded_kind(kind) in shape.taken.get(run, ())
    )
    covered = widest((run, span) for run, span in of_kind if run in shape.taken)
    there = {layer_of(kind) for run_kinds in kinds.values() for kind in run_kinds}
    layers = tuple(layer for layer in LAYERS if layer in there)
    missing = of_kinds(facts.missing, shape.taken)
    caveats = caveats_of(missing, facts.caveats)
    said = {f"{lack.caveat.subject}: {lack.caveat.sentence}" for lack in missing} | {str(caveat) for caveat in facts.caveats}
    rest = (text for text in (*layers_beside(layers, shape.kind, question), *facts.warnings) if text not in said)
    return replace(
        facts,
        parts=tuple(joined),
        by=shape.by,
        kind=shape.kind,
        runs=shape.runs,
        relative=facts.relative or alone,
        series=len(taken_of(map(_succeeded, series), kinds, shape.taken)),
        warnings=(
            *notes,
            *left_out(map(_succeeded, series if jobs is None else jobs), kinds, shape.taken, missing),
            *dict.fromkeys((*rest, *sentences(caveats))),
        ),
        undated=undated,
        covered=covered,
        missing=missing,
        caveats=caveats,
        layouts={key: (layout,) for key, layout in targets.items()},
        layers=layers,
    )


def of_succeeded(answer: Answer) -> Answer:
    """Return an answer without the operations that failed, in which nothing says that any did; InputError where all failed."""
    parts = tuple(rows.in_key_order() for part in answer.parts if len(rows := part.succeeded()))
    if not parts:
        raise InputError("all operations failed: --failures apart shows how long they took")
    said = failed_words(answer.parts)
    return replace(answer, parts=parts, warnings=tuple(text for text in answer.warnings if text not in said))


def _succeeded(series: Series) -> Series:
    """Return a series under the kind of the operations that did not fail."""
    return series if outcome_of(series.kind) == OK else series.replaced(kind=succeeded_kind(series.kind))


SLOWEST = "they are slower than any, and in no mean; --failures apart shows how long they took, ignore leaves them out"


def failed_words(parts: Iterable[Intervals[Group]], where: str = SLOWEST) -> tuple[str, ...]:
    """Return a sentence on the operations that failed, where they rank above all others; `where` says what became of them."""
    failing = [part for part in parts if part.layout.timed is not part.layout]
    if not failing:
        return ()
    failed, every = sum(total(part.failures) for part in failing), sum(total(part.counts) for part in parts)
    return (f"{figure(100 * failed / every)} % of operations failed: {where}",)


def layers_beside(layers: Sequence[str], kind: str, question: Question) -> tuple[str, ...]:
    """Return a sentence on layers that were selected and that an answer of these kinds holds nothing of."""
    shown = {layer_of(own) for own in kind.split(", ")}
    beside = [layer for layer in layers if layer not in shown]
    if not beside or LAYER in question.where or "kind" in question.where:
        return ()
    inside = [layer for layer in layers if layer in shown]
    return (f"of the {' and '.join(inside)} layer; {' and '.join(beside)} latencies are there, too: --by layer shows them apart",)


def _targets(parts: Sequence[Intervals[Group]], layouts: Layouts, shape: Shape, question: Question) -> dict[RunKind, Layout]:
    """Return the layout of the rows of each run and kind: the common one of all that is selected of them.

    Runs and kinds that are added up have one layout. Those that are kept apart have one each: what was recorded in one run
    changes no number of another.
    """
    known = {key: set(layouts_of_key) for key, layouts_of_key in layouts.items()}
    for part in parts:
        note_layouts(known, keys_of(part), part.layout)
    apart = {*shape.named, *question.by}
    together: dict[tuple[str, str], set[Layout]] = {}
    places: dict[RunKind, tuple[str, str]] = {}
    for (run, kind), own_layouts in known.items():
        binned = {layout for layout in own_layouts if layout.has_bins}
        plain = succeeded_kind(kind)
        if question.slowest_failures and plain != kind and (run, plain) in known:
            continue  # how long these took changes nothing
        if plain in shape.taken.get(run, ()) and binned:
            place = (run if "run" in apart else "", plain if "kind" in apart else layer_of(kind) if LAYER in apart else "")
            places[run, plain] = place
            together.setdefault(place, set()).update(binned)
    common = {place: common_layout(shared_layouts) for place, shared_layouts in together.items()}
    of_all = ((run, kind, places.get((run, succeeded_kind(kind)))) for run, kind in known)
    return {(run, kind): common[place] for run, kind, place in of_all if place is not None}


def _alike(part: Intervals[Group], targets: Mapping[RunKind, Layout], question: Question) -> Iterator[Intervals[Group]]:
    """Yield the rows of a part in the layouts of their runs and kinds; those without bins as they are.

    Operations that failed come to lie above all others, unless the question tells outcomes apart.
    """

    def told(key: Group) -> tuple[Layout | None, bool]:
        return targets.get(run_and_kind(key)), question.slowest_failures and outcome_of(key[1]) == FAILED

    if not part.layout.has_bins or all(told(key) in ((None, False), (part.layout, False)) for key in part.table):
        yield part
        return
    for (target, failed), rows in part.split(told):
        if failed:
            yield rows.failing(target or rows.layout)
        else:
            yield rows if target is None else rows.in_layout(target)


def keys_of(rows: Intervals[Group]) -> list[Group]:
    """Return the keys that rows with samples have: a table may name others."""
    filled = rows.series[np.diff(rows.indptr) > 0]
    return [rows.table[code] for code in np.flatnonzero(np.bincount(filled)).tolist()]


def note_layouts(met: dict[RunKind, set[Layout]], keys: Iterable[Group], layout: Layout) -> None:
    """Note the layout of what is selected by run and kind: keys are groups that begin with both."""
    for key in keys:
        met.setdefault(run_and_kind(key), set()).add(layout)


class Shape(NamedTuple):
    """What an answer's rows are: the kinds taken of each run, the labels they bear, and the kinds in words.

    `named` are labels that rows bear because runs or kinds would be merged otherwise.
    """

    taken: Mapping[str, Sequence[str]]
    by: tuple[str, ...]
    named: tuple[str, ...]
    kind: str

    @property
    def runs(self) -> tuple[str, ...]:
        """Return the runs in the answer."""
        return tuple(sorted(self.taken))


def shape_of(question: Question, kinds: Mapping[str, Collection[str]], outcomes: Collection[str] = ()) -> Shape:
    """Return what the rows of an answer are where runs hold these kinds: the default kind of each, unless kinds are asked for.

    Operations that failed are of the kind of all others; `outcomes` are those that there are.
    """
    asked = "kind" in question.by or "kind" in question.where
    taken = {run: sorted(run_kinds) if asked else _default_kinds(run_kinds, question) for run, run_kinds in kinds.items()}
    shown = sorted({kind for run_kinds in taken.values() for kind in run_kinds})
    name_runs = len(kinds) > 1 and "run" not in question.by and not question.merge_runs
    name_kinds = asked and "kind" not in question.by and len(shown) > 1
    several = len({layer_of(kind) for kind in shown}) > 1  # where runs are added up, each of another layer by default
    name_layers = several and not name_runs and not {"run", "kind", LAYER} & {*question.by} and not name_kinds
    name_outcomes = OUTCOME in question.where and OUTCOME not in question.by and len(outcomes) > 1
    naming = {"run": name_runs, "kind": name_kinds, LAYER: name_layers, OUTCOME: name_outcomes}
    named = tuple(name for name, is_named in naming.items() if is_named)
    return Shape(taken, (*named, *question.by), named, ", ".join(kind for kind in shown if kind))


def _default_kinds(kinds: Collection[str], question: Question) -> list[str]:
    """Return the kind that is taken of those of a run where none is asked for; of each layer where layers are kept apart."""
    if LAYER not in question.by:
        return [default_kind(kinds)]
    layers = {layer_of(kind) for kind in kinds}
    return sorted(default_kind(kind for kind in kinds if layer_of(kind) == layer) for layer in layers)


# Runs that know when they began and runs that do not share no axis of time.
#
# An answer over time is given on the clock: runs without one are left out of it, and a sentence names them. Asked alone they
# are answered on their own axis, in seconds since their start. Without an axis of time (`--step all`) both are in one answer,
# each run with a range of its own; there times without a clock are written as `+12.5s`, as --from and --to take them.


UNLIKE_BINS = (
    "histograms of unlike bins are added up here: percentiles are found by ranks on the edges of each, and are ranges "
    "where these leave one; a number alone is the upper end"
)
ABSOLUTE = "this run has no start time, so its times are elapsed: give --from and --to as +90s, or give --t0"


def is_absolute(question: Question) -> bool:
    """Return whether a question gives a time of the clock as an end of its range."""
    return any(edge is not None and not edge.relative for edge in (question.begin, question.end))


def undated_runs(sources: Iterable[Source]) -> dict[str, bool]:
    """Return, per run, whether none of its sources has a start time."""
    undated: dict[str, bool] = {}
    for source in sources:
        run = source.context.series.run
        undated[run] = undated.get(run, True) and source.context.zero.epoch_ns is None
    return undated


def left_out_by_clock(question: Question, undated: Mapping[str, bool]) -> frozenset[str]:
    """Return the runs that an answer leaves out: the undated ones where others have a clock, if their times are looked at.

    `undated` says of each run that is asked for whether it has no clock.
    """
    without = frozenset(run for run, is_undated in undated.items() if is_undated)
    if len(without) == len(undated):
        return frozenset()
    return without if question.step != ALL or question.merge_runs or is_absolute(question) else frozenset()


def beside(undated: Mapping[str, bool]) -> frozenset[str]:
    """Return the undated runs of an answer where others have a clock."""
    without = frozenset(run for run, is_undated in undated.items() if is_undated)
    return without if len(without) < len(undated) else frozenset()


def logs_left_out(names: Sequence[str], logs: int, runs: Collection[str]) -> str:
    """Return the sentence about logs that an answer leaves out, of so many that were selected."""
    which = f"{len(names)} of {logs} logs ({listed(sorted(names))})"
    clause = "has no start time, so it is" if len(names) == 1 else "have no start time, so they are"
    return f"{which} {clause} left out here: ask for the run {listed(sorted(runs))} alone, or give --t0"


def run_left_out(run: str, samples: int) -> str:
    """Return the sentence about a run of a store that an answer leaves out."""
    return f"{run} has no start time, so its {samples:,} samples are left out here: ask for this run alone"


def shown_beside(undated: Collection[str]) -> list[str]:
    """Return the sentence about undated runs that an answer shows beside dated ones; none where there are none."""
    if not undated:
        return []
    clause = "has no start time: it is a run of its own, and its" if len(undated) == 1 else "have no start time: their"
    return [f"{listed(sorted(undated))} {clause} times are elapsed seconds, as +12.5s"]


def stamps_beside(answer: Answer) -> dict[int, str]:
    """Return how the times of undated runs are written beside those of dated ones, by their ns: +12.5s."""
    if not answer.undated or "run" not in answer.by:
        return {}
    place = answer.by.index("run")
    stamps: dict[int, str] = {}
    for part in answer.parts:
        names = [key[place] for key in part.table]
        for code, *edges in zip(part.series.tolist(), part.start_ns.tolist(), part.end_ns.tolist(), strict=True):
            if names[code] in answer.undated:
                stamps |= {edge: since(edge - answer.run_start_ns[names[code]]) for edge in edges}
    return stamps


def since(elapsed_ns: int) -> str:
    """Return a time without a clock as it is written beside others that have one: +12.5s."""
    return f"{'-' if elapsed_ns < 0 else '+'}{abs(elapsed_ns) / SECOND:.12g}s"


def named(stamp: Callable[[int], str], known: Mapping[int, str]) -> Callable[[int], str]:
    """Return a function that writes times as `stamp` does, but for those that are `known`."""
    return (lambda stamp_ns: known.get(stamp_ns) or stamp(stamp_ns)) if known else stamp


# Why a question matches nothing: which of its words no data has, and what there is instead.


def explained(error: NothingMatchesError, origins: Iterable[Origin]) -> InputError:
    """Return an error that names the words of the question that match nothing, with the values that the data has, nearest first.

    The values of a label are known of the error, else the origins are asked again, without that word. Where what matches is
    known to be missing (a client that left nothing, a log that was refused), the error says that. It stays as it was where each
    word matches something.
    """
    question, asked = error.question, list(origins)
    runs = [record.run for origin in asked for record in origin.runs()]
    if not any(run_matches(run, question.runs) for run in runs):
        return InputError(f"no run matches {' '.join(question.runs)}: {choices(question.runs[0], runs)}")
    for name, glob in question.where.items():
        values = runs if name == "run" else error.known.get(name) or _values(asked, question, name)
        if values and not any(fits(value, glob) for value in values):
            named = sorted(value for value in values if value)
            (first, *_), *_ = filter(None, wanted_and_others(glob))
            there = choices(first, named) if named else f"nothing here has a {name}"
            lost = dict.fromkeys(str(lack.caveat) for lack in error.missing if name in lack.entry.labels)
            return InputError("; ".join((f"no {name} matches {in_words(glob)}: {there}", *lost)))
    if question.in_part and (held := _held(asked, question)):
        return InputError(f"{error}; {held}")
    return error


def _held(origins: Sequence[Origin], question: Question) -> str:
    """Return from when to when there are data of a question whose range matches none; empty where there are none at all."""
    for origin in origins:
        with suppress(TailboardError):  # it is asked for the sentence of another error
            answer = origin.answer(replace(question, begin=None, end=None, by=("run",), step=ALL))
            if answer.relative and is_absolute(question):
                return ABSOLUTE
            filled = [part for part in answer.parts if len(part)]
            first, last = min(int(part.start_ns.min()) for part in filled), max(int(part.end_ns.max()) for part in filled)
            clock = "" if answer.relative else f" ({utc(first)} to {utc(last)})"
            return f"there are data from {since(first - answer.start_of)} to {since(last - answer.start_of)}{clock}"
    return ""


def _values(origins: Sequence[Origin], question: Question, name: str) -> Collection[str]:
    """Return the values of a label in the runs that a question names."""
    values: set[str] = set()
    for origin in origins:
        with suppress(TailboardError):  # it is asked for the sentence of another error
            answer = origin.answer(replace(Question(runs=question.runs, by=(name,), step=ALL), attribution=question.attribution))
            place = answer.by.index(name)
            values |= {part.table[code][place] for part in answer.parts for code in set(part.series.tolist())}
    return values


def selected_runs(runs: Sequence[str], question: Question) -> list[str]:
    """Return the names that a question selects, in their order; InputError where it selects none."""
    wanted = question.where.get("run", "*")
    chosen = [run for run in runs if run_matches(run, question.runs) and fits(run, wanted)]
    if not chosen:
        raise InputError(f"no run matches {' '.join(question.runs) or wanted}: {choices((*question.runs, wanted)[0], runs)}")
    return chosen
