"""Is a run worse than a baseline: a percentile, or the rate, that is to be at most so much worse, by the bounds of `compare`.

    p99 at most 10% above nightly-41        met: the ratio is at most 1.1 for certain; violated: it is above 1.1 for certain
    rate at most 5% below nightly-4?        three runs or more: the bounds rest on the spread between them

Everything else cannot be told: the runs are too short or too unlike in themselves. A run is compared whole, so there are no
windows and no episodes. Where several runs match, each run is held against the one that is the same thing (permutations of an
archive), or against all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ingest.core.coverage import UNKNOWN
from ingest.core.errors import InputError, UsageError, choices, counted, listed
from ingest.core.grid import SECOND
from ingest.core.labels import Group, RunLabels, run_matches
from ingest.core.layout import Float
from ingest.core.marks import Span
from ingest.core.objective import RunObjective, per_second
from ingest.core.units import latency
from ingest.query.batch_means import LEAST_BATCHES, LEAST_RUNS, rates_between
from ingest.query.compare import compare, grouped, together, verdict
from ingest.query.coverage import cut
from ingest.query.episodes import CANNOT_TELL, MET, VIOLATED, Labels
from ingest.query.overview import span_of
from ingest.query.question import ALL, AUTO, Answer, Question
from ingest.query.sweeps import paired_runs
from ingest.query.table import groups_in

Ask = Callable[[Question], Answer]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One group of a run against the same group of its baseline: both values (ns, or completions a second), and their ratio.

    `ratio` is run / baseline, between `low` and `high` 95 times in 100, all groups of the run together. NaN: it is not known.
    """

    objective: RunObjective
    run: str
    labels: Labels
    baseline: str
    before: float
    value: float
    ratio: float
    low: float
    high: float

    @property
    def outcome(self) -> str:
        """Return met or violated where the bounds are certain of it, else "cannot tell"."""
        promise = self.objective.promise
        limit = float(promise.limit)
        if promise.percentile is None:
            return MET if self.low >= limit else VIOLATED if self.high < limit else CANNOT_TELL
        return MET if self.high <= limit else VIOLATED if self.low > limit else CANNOT_TELL

    @property
    def met(self) -> bool:
        """Return whether it is certain that the promise was kept."""
        return self.outcome == MET

    def to_dict(self) -> dict[str, Any]:
        """Return what was promised and measured as webhooks have it: null where it is not known."""
        promise = self.objective.promise
        measured = {name: getattr(self, name) for name in ("before", "value", "ratio", "low", "high")}
        return {
            "percentile": promise.percentile.text if promise.percentile else "",
            "baseline": self.baseline,
            "limit": float(promise.limit),
            **{name: None if math.isnan(value) else value for name, value in measured.items()},
        }

    def __str__(self) -> str:
        """Return what was measured in words: 553µs to 717µs, 1.296 times nightly-41 (95 %: 1.183 to 1.462), slower."""
        of_rate = self.objective.promise.percentile is None
        said = [per_second(each) if of_rate else latency(each) for each in (self.before, self.value) if not math.isnan(each)]
        if math.isnan(self.ratio):
            side = "neither run has" if not said else f"only one of the runs has ({said[0]})"
            return f"{self.baseline}: {side} what is compared, or too few samples for it"
        times = f"{' to '.join(said)}, {self.ratio:.3f} times {self.baseline}"
        if math.isnan(self.low) and math.isnan(self.high):
            return f"{times}; too few windows for bounds"
        low, high = ("?" if math.isnan(bound) else f"{bound:.3f}" for bound in (self.low, self.high))
        certain = (1 / self.high if self.high else math.inf, 1 / self.low if self.low else math.inf) if of_rate else None
        word = verdict(*(certain or (self.low, self.high)), same_within=1 + float(self.objective.promise.share))
        return f"{times} (95 %: {low} to {high}){'' if word == CANNOT_TELL else f', {word}'}"


def compared(ask: Ask, objective: RunObjective, run: str, runs: RunLabels, selection: Question) -> list[Comparison]:
    """Return a comparison for each group of a run and of its baselines among `runs`, ordered by labels; none for a baseline.

    `selection` has the range of both. InputError where a run has no baseline, or nothing of one matches; UsageError for unlike
    kinds of latency, and for a baseline that is no run or several.
    """
    promise = objective.promise
    before = _baselines(promise.baseline, run, selection, runs)
    if not before:
        return []
    where = {name: glob for name, glob in objective.where.items() if name != "run"}
    by = tuple(name for name in objective.by if name != "run")
    whole = Question(where=where, by=by, step=ALL, begin=selection.begin, end=selection.end)
    names = (tuple(before), (run,))
    answers = [[ask(whole.about([name])) for name in side] for side in names]
    windows = [tuple(ask(replace(whole, step=AUTO).about([name])) for name in side) for side in names]
    pair = grouped(together(answers[0]), answers[1][0], by, (windows[0], windows[1]))
    if promise.percentile is not None:
        table = compare(pair, [promise.percentile])
        cells = zip(*(table.columns[name].tolist() for name in ("baseline", "run", "ratio", "lo", "hi")), strict=True)
        measured = dict(zip(groups_in(table), cells, strict=True))
    else:
        alive = replace(whole, where={}, by=())
        lives = [[span_of(ask(alive.about([name])).parts) for name in side] for side in names]
        measured = _rates(windows, lives, (pair.baseline, pair.run))
    said = before[0] if len(before) == 1 else f"{promise.baseline} ({len(before)} runs)"
    return [
        Comparison(objective, run, tuple(zip(by, group, strict=True)), said, *cells) for group, cells in sorted(measured.items())
    ]


def _baselines(glob: str, run: str, selection: Question, runs: RunLabels) -> Sequence[str]:
    """Return the runs that a run is held against, none for one of them."""
    matching = [glob] if glob in runs else [name for name in sorted(runs) if run_matches(name, (glob,))]
    if not matching:
        apart = "; a store tells the logs of several runs apart (load --run NAME)" if len(runs) == 1 else ""
        raise UsageError(f"{glob} is no run here: {choices(glob, sorted(runs))}{apart}")
    if run in matching:
        return []
    if len(matching) == 1:
        return matching
    others = [name for name in sorted(runs) if name not in matching and run_matches(name, selection.runs)]
    if paired := paired_runs(matching, others, runs):
        alike = [first for _, first, second in paired.pairs if second == run]
        if not alike:
            raise InputError(f"no run like it among {glob}")
        return alike
    if len(matching) < LEAST_RUNS:
        several = f"{glob} matches {counted(len(matching), 'run')} ({listed(matching)})"
        raise UsageError(f"{several}: name one, or {LEAST_RUNS} or more for the spread between them")
    return matching


Measured = tuple[float, float, float, float, float]


def _rates(
    windows: Sequence[Sequence[Answer]], lives: Sequence[Sequence[Span]], whole: Sequence[Answer]
) -> dict[Group, Measured]:
    """Return the rates of both sides by group, their ratio and its bounds; a group that a run lacks does nothing there."""
    sides = [list(map(_each_second, *side)) for side in zip(windows, lives, strict=True)]
    lacking = [_lacking(answer) for answer in whole]
    groups = {group for side in sides for rates in side for group in rates}
    found = {}
    for group in groups:
        before, now = ([rates.get(group, np.zeros(LEAST_BATCHES)) for rates in side] for side in sides)
        low, high = rates_between(before, now, len(groups))
        (first, first_most), (second, second_most) = (each.get(group, (1.0, 1.0)) for each in lacking)
        means = [float(np.concatenate(runs).mean()) if sum(map(len, runs)) else math.nan for runs in (before, now)]
        means = [mean * least for mean, least in zip(means, (first, second), strict=True)]
        ratio = means[1] / means[0] if means[0] else math.nan
        # What is missing may have completed in any window.
        found[group] = (means[0], means[1], ratio, low * second / first_most, high * second_most / first)
    return found


def _each_second(answer: Answer, life: Span) -> dict[Group, Float]:
    """Return the completions a second of each group in the windows that a run fills: neither its first nor its last one."""
    step = answer.step_ns
    low, high = life[0] // step * step + step, -(-life[1] // step) * step - step
    found: dict[Group, Float] = {}
    for part in answer.parts:
        rows = np.flatnonzero((part.start_ns >= low) & (part.end_ns <= high))
        for code in np.unique(part.series).tolist():
            own = rows[part.series[rows] == code]
            rates = found.setdefault(part.table[code], np.zeros(max((high - low) // step, 0)))
            np.add.at(rates, (part.start_ns[own] - low) // step, part.samples[own] * (SECOND / step))
    return found


def _lacking(answer: Answer) -> dict[Group, tuple[float, float]]:
    """Return how many times as much each group may have completed as is there, at least and at most."""
    found = {}
    for part in answer.parts:
        lacks = cut(part, answer)
        least, most = np.zeros((2, len(part)))
        np.add.at(least, lacks.row, lacks.least)
        np.add.at(most, lacks.row, np.where(lacks.most == UNKNOWN, np.inf, lacks.most))
        for row, code in enumerate(part.series.tolist()):
            count = max(int(part.samples[row]), 1)
            found[part.table[code]] = (1 + float(least[row]) / count, 1 + float(most[row]) / count)
    return found
