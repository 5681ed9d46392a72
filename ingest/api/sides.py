"""Runs that are asked one at a time and set side by side: which source holds each, and two sides that are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ingest.api.words import answering, saying_why
from ingest.core.errors import StoreError, UsageError, listed, plural
from ingest.core.labels import run_matches
from ingest.read.placement import undated_part_of

if TYPE_CHECKING:
    from ingest.core.labels import RunLabels
    from ingest.query.compare import Pair, Sides
    from ingest.query.origin import Origin
    from ingest.query.question import Answer, Question
    from ingest.query.sweeps import Paired
    from ingest.read.sources import ReadOptions

    Ask = Callable[[Question], Answer]

SIDES = ("baseline", "run")
EMPTY = "the store holds no run yet: tailboard load PATH --run NAME"


def matching(names: Iterable[str], glob: str) -> list[str]:
    """Return the run that is called so, else those that a glob matches."""
    names = list(names)
    return [name for name in names if name == glob] or [name for name in names if run_matches(name, (glob,))]


def named(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """Return each path with what its run is to be called: nothing for a path alone, whose files name it."""
    if len(paths) == 1:
        return [(paths[0], "")]
    short = [path.resolve().name if path.is_dir() else path.name.split(".", maxsplit=1)[0] for path in paths]
    times = Counter(short)
    return [(path, name if times[name] == 1 else str(path)) for path, name in zip(paths, short, strict=True)]


@contextmanager
def opened_each(
    store: str,
    paths: Sequence[tuple[Path, str]],
    reading: ReadOptions,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Mapping[str, Origin]]:
    """Give what holds each run: the store of a URL, else the files of each path, whose run has the name beside it.

    StoreError where the store is empty, UsageError where two paths hold a run of one name.
    """
    if store:
        with answering(store) as origin:
            records = origin.runs()
            if not records:
                raise StoreError(EMPTY)
            yield {record.run: origin for record in records}
        return
    from ingest.query.files import Files

    known: dict[str, Origin] = {}
    for path, name in paths:
        files = Files([path], replace(reading, run=name), jobs, progress)
        for run in files.run_names:
            if run in known:
                raise UsageError(f"two sources hold a run {run}: load them with --run into a store to tell them apart")
            known[run] = files
    with saying_why(dict.fromkeys(known.values())):
        yield known


def asks_of(origins: Mapping[str, Origin]) -> dict[str, Ask]:
    """Return what answers questions about each run; where its warm-up is left out, that is looked for once."""
    known: dict[str, Question] = {}

    def ask(run: str, question: Question) -> Answer:
        if question.unsettled:
            from ingest.query.plan import settled

            known[run] = known.get(run) or settled(origins[run], question)
            question = replace(question, begin=known[run].begin)
        return origins[run].answer(question)

    return {run: partial(ask, run) for run in origins}


def labels_of(origins: Mapping[str, Origin]) -> RunLabels:
    """Return the labels of runs."""
    labels: dict[str, Mapping[str, str]] = {}
    for origin in dict.fromkeys(origins.values()):
        labels |= {record.run: record.labels for record in origin.runs()}
    return labels


def undated_beside(names: Sequence[str], taken: Sequence[str]) -> tuple[str, ...]:
    """Return the sentence about logs without a start time of the runs that are taken: they are runs of their own."""
    left = sorted(name for name in names if name not in taken and undated_part_of(name) in taken)
    return (f"not in it: {listed(left)}, logs without a start time beside dated ones",) if left else ()


class ChosenSides(NamedTuple):
    """The runs of the baseline and of the run that is judged; `pairs` where several of each are alike, two by two."""

    names: tuple[Sequence[str], Sequence[str]]
    pairs: Paired | None = None


def chosen_sides(
    matched: tuple[Sequence[str], Sequence[str]], labels: RunLabels, called: tuple[str, str], *, merge: bool = False
) -> ChosenSides:
    """Return which of the runs that each side `matched` are compared, with which; sides are `called` so in errors.

    A side is one run, three and more that are the same thing, pairs of runs with settings that are alike, or with `merge` all.
    UsageError where it cannot be any of these.
    """
    if pairs := None if merge else _pairs_among(matched, labels):
        return ChosenSides(([pair[1] for pair in pairs.pairs], [pair[2] for pair in pairs.pairs]), pairs)
    first, second = (_side(names, labels, call, merge=merge) for names, call in zip(matched, called, strict=True))
    if both := set(first) & set(second):
        raise UsageError(f"{' and '.join(call.split(' ')[0] for call in called)} both take {listed(sorted(both))}")
    return ChosenSides((first, second))


def _side(matched: Sequence[str], labels: RunLabels, called: str, *, merge: bool) -> list[str]:
    """Return the run of a side, or three and more that are the same thing; all with `merge`, otherwise an error."""
    from ingest.query.batch_means import LEAST_RUNS
    from ingest.query.sweeps import permutations

    dated = _dated(matched)
    if len(matched) > 1 and not merge:
        many = f"{called} matches {len(matched)} runs ({listed(sorted(matched))})"
        if permutations(dated, labels):
            raise UsageError(f"{many} that are unlike: name one, or add --merge-runs")
        if len(dated) < LEAST_RUNS:
            raise UsageError(f"{many}: name one, {LEAST_RUNS} or more for the spread between them, or add --merge-runs")
    return sorted(dated if len(matched) > 1 else matched)


def _dated(names: Collection[str]) -> list[str]:
    """Return runs without what is undated of others of them, which is not added to these."""
    return [name for name in names if undated_part_of(name) not in names]


def _pairs_among(matched: Sequence[Sequence[str]], labels: RunLabels) -> Paired | None:
    """Return the pairs of runs where a side names several and they can be paired; None where a side is to be one run."""
    from ingest.query.sweeps import paired_runs

    dated = [_dated(names) for names in matched]
    if not all(dated) or all(len(names) == 1 for names in matched):
        return None
    return paired_runs(sorted(dated[0]), sorted(dated[1]), labels)


def _pair_notes(paired: Paired) -> tuple[str, ...]:
    """Return the sentences about runs that are compared pair by pair, and about those that have none like them."""
    many = f"{len(paired.pairs)} {plural(len(paired.pairs), 'pair')}"
    alone = ((side, runs) for side, runs in zip(SIDES, paired.alone, strict=True) if runs)
    return (
        f"{many} of runs that are alike, compared one by one; --merge-runs adds each side up",
        *(f"not compared, since the other side has no run like it: {listed(runs)} ({side})" for side, runs in alone),
    )


class SideBySide(NamedTuple):
    """What two sides answered: the pair that was asked for, and both sides by all labels of the question, in windows."""

    pair: Pair
    answers: tuple[Answer, Answer]
    windows: Sides


def side_by_side(
    asks: Mapping[str, Ask], sides: ChosenSides, question: Question, *, unlike: bool, same_within: float, opens: bool = True
) -> SideBySide:
    """Return what two sides answer to a question; `opens`: also by operation and host, which a verdict names.

    `unlike` compares even where the sides hold other kinds; up to the ratio `same_within` two percentiles are the same.
    """
    from ingest.query.compare import grouped, labelled, labels_of, together
    from ingest.query.question import AUTO
    from ingest.query.sweeps import PERMUTATION

    pairs, by = sides.pairs, question.by
    by = (PERMUTATION, *by) if pairs else by
    wanted = replace(question, by=labels_of(question.by)) if opens else question

    def answers(names: Sequence[str], asked: Question) -> tuple[Answer, ...]:
        each = tuple(asks[name](asked.about([name])) for name in names)
        if not pairs:
            return each
        return tuple(labelled(answer, PERMUTATION, what) for answer, (what, *_) in zip(each, pairs.pairs, strict=True))

    baseline, run = (together(answers(names, wanted)) for names in sides.names)
    over_time = replace(wanted, step=AUTO, narrow=True)
    windows = answers(sides.names[0], over_time), answers(sides.names[1], over_time)
    pair = grouped(baseline, run, by, windows, unlike=unlike, same_within=same_within)
    taken = [name for names in sides.names for name in names]
    notes = (*(_pair_notes(pairs) if pairs else ()), *undated_beside(list(asks), taken))
    return SideBySide(replace(pair, notes=(*pair.notes, *notes)), (baseline, run), windows)
