"""How two runs, or two phases of one, differ: percentiles side by side, their ratio with bounds, the excess.

Two sides of one run, cut at its marks: before and after, or outside and during; and the marks that a run has.

    first, second, said = sides_at("cache on", marks, life, step)
    first.name                              nightly-42 before 'cache on'
    first.ask(origin.answer)(question)      what a question is answered about this side alone, at any step

Where what matches has no end it is cut into what lies before the first mark and after the last; where it lasted, into what lies
outside and what lies during it. A side is made of whole windows of the stored step, and asked range by range: the sum is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import InputError, UsageError, listed, marks_for
from ingest.core.intervals import Int, Intervals
from ingest.core.labels import LAG, Group
from ingest.core.layout import Float, common_layout
from ingest.core.marks import (
    AFTER,
    AFTER_END_NS,
    BEFORE,
    DURING,
    OUTSIDE,
    Mark,
    NotedMark,
    Phase,
    Span,
    in_time_order,
    of_run,
    stretches,
)
from ingest.core.quantiles import FAILED_NS, Percentile, Ranked, parse_percentiles, percentile_values
from ingest.core.units import Instant, format_duration
from ingest.query.batch_means import LEAST_RUNS, Ratios, ShareAbove, difference_between, of_runs, share_above_of
from ingest.query.coverage import Rows, union
from ingest.query.coverage import labelled as missing_labelled
from ingest.query.means import check_bins
from ingest.query.origin import Origin
from ingest.query.overview import span_of
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import ALL, Answer, NothingMatchesError, Question
from ingest.query.sweeps import PERMUTATION
from ingest.query.table import Table, concatenated, groups_in, label_columns
from ingest.query.windows import regrouped, spanned, widened

# How two runs differ: percentiles side by side, their ratio with bounds from whole windows, the largest effect first.
#
# Samples of one run depend on one another, so the bounds come from windows that are added up to batches (`dependent`), or,
# where a side is three runs or more, from the spread between its runs where that is wider (`between_runs`). The widths of the
# bins are added in full, because they are no chance: a difference within the bins is never a difference. All rows of a table
# are held together: the more rows, the wider each (Bonferroni).
#
# One run a side: bounds are about these two executions. How much executions of the same thing differ is not in them.


Sides = tuple[tuple[Answer, ...], tuple[Answer, ...]]

FAILING = ("failed_baseline", "failed_run", "failed_lo", "failed_hi", "failed_verdict")
COLUMNS = ("percentile", "baseline", "run", "ratio", "lo", "hi", "count_baseline", "count_run", "verdict", *FAILING)
METHOD = "whole windows in batches that hardly depend on one another (Student's t), bins included"
BETWEEN_RUNS = "the spread between the runs of a side (Welch's t), bins included"
SLOWER, FASTER, SAME, UNKNOWN = "slower", "faster", "same", "cannot tell"
MORE, FEWER = "more", "fewer"
SAME_WITHIN = 1.05
SAME_SHARE = 0.001  # of all operations: failures that differ by no more than this are the same
MOST_HALVINGS = 40
MOST_ERROR = 1.0
NO_LATENCY = 2.0**60  # ns: above this are operations that failed
UNLIKE_BINS = "unlike bins are compared as they are: each side reports by its own, and lo and hi hold what both leave open"


@dataclass(frozen=True, slots=True)
class Measured:
    """A percentile of each row in ns (NaN: not carried), and how many samples a row has.

    It lies from `least` to `most` whatever is missing: both are the value where nothing is, or where it is not known how much.
    `open` says that the value itself is a lower bound. `error` is how far it may be off because of its bin, as a share of the
    recorded latency: at most MOST_ERROR, 0 where it is a lower bound.
    """

    count: Int
    value: Float
    least: Float
    most: Float
    open: NDArray[np.bool_]
    error: Float


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one question over the whole range, with the same labels and like kinds; `notes` are for people.

    `windows` are the answers to the same question in windows, of each side one a run: what bounds are estimated from. Without
    them there are none. `same_within` is the ratio up to which two percentiles are the same.
    """

    baseline: Answer
    run: Answer
    notes: tuple[str, ...] = ()
    windows: Sides = ((), ())
    same_within: float = SAME_WITHIN

    @property
    def by(self) -> tuple[str, ...]:
        """Return the labels of the rows."""
        return self.run.by


def measured_of(rows: Intervals[Group], percentile: Percentile, answer: Answer) -> Measured:
    """Return the percentile of each row of an answer; UsageError for in-flight weights."""
    if rows.completions is not None:
        raise UsageError("bounds count whole I/Os, in-flight weights are shares of them: leave out --attribution in-flight")
    ranked = Ranked(rows)
    count, value = ranked.samples, percentile_values(rows, percentile, ranked=ranked)
    least = most = value
    if answer.missing:
        lacking = Rows(rows, answer, ranked=ranked)
        cells = lacking.cells(percentile, value)
        least, most = (np.where(lacking.complete, value, limit) for limit in (cells.least, cells.most))
        least, most = np.fmin(value, least), np.fmax(value, most)
    opened = np.zeros(len(rows), np.bool_)
    places = np.flatnonzero(~np.isnan(value))
    bins = ranked.bins(places, percentile.ranks(count[places]))
    opened[places] = rows.layout.opened(bins)
    error = np.zeros(len(rows))
    shares = rows.layout.errors_of(bins)[1]
    if ranked.mixed.any():
        low, high = ranked.between(places, percentile.ranks(count[places]))
        wide = np.divide(high - low, low, out=np.full(len(low), MOST_ERROR), where=low > 0)
        shares = np.where(ranked.mixed[places], wide, shares)
    error[places] = np.where(opened[places], 0.0, np.minimum(shares, MOST_ERROR))
    return Measured(count, value, least, most, opened, error)


def together(answers: Sequence[Answer]) -> Answer:
    """Return the sum of answers about different runs to one question over the whole range; their labels must be the same."""
    if len(answers) == 1:
        return answers[0]
    if len({answer.by for answer in answers}) > 1 or len({answer.kind for answer in answers}) > 1:
        listing = "; ".join(sorted({f"{', '.join(answer.runs)}: {answer.kind}" for answer in answers}))
        raise UsageError(f"runs of unlike kinds are not added up ({listing}): choose one with --where kind=KIND")
    if len({answer.relative for answer in answers}) > 1:
        without = listed(run for answer in answers if answer.relative for run in answer.runs)
        raise UsageError(f"runs with and without a start time are not added up: {without} has none; name the others alone")
    return _added(
        answers,
        parts=tuple(spanned([part for answer in answers for part in answer.parts])),
        runs=tuple(sorted({run for answer in answers for run in answer.runs})),
        run_start_ns={run: start for answer in answers for run, start in answer.run_start_ns.items()},
        series=sum(answer.series for answer in answers),
    )


def _added(answers: Sequence[Answer], notes: Sequence[str] = (), **changes: Any) -> Answer:
    """Return what several answers say and lack together as one: the first, with changes."""
    joined = replace(
        answers[0],
        warnings=(*notes, *dict.fromkeys(text for answer in answers for text in answer.warnings)),
        missing=union(answer.missing for answer in answers),
        caveats=tuple(dict.fromkeys(caveat for answer in answers for caveat in answer.caveats)),
        **changes,
    )
    return regrouped(joined, joined.by)


def labelled(answer: Answer, name: str, value: str) -> Answer:
    """Return an answer with one label more in front of all others, the same in all of its rows."""
    tables = [tuple((value, *key) for key in part.table) for part in answer.parts]
    parts = tuple(replace(part, table=table) for part, table in zip(answer.parts, tables, strict=True))
    weights = None if answer.weights is None else {(value, *key): weight for key, weight in answer.weights.items()}
    missing = missing_labelled(answer.missing, name, value)
    return replace(answer, parts=parts, by=(name, *answer.by), weights=weights, missing=missing)


def kinds_of(answer: Answer) -> set[str]:
    """Return the kinds in an answer."""
    if "kind" not in answer.by:
        return set(answer.kind.split(", "))
    place = answer.by.index("kind")
    return {key[place] for part in answer.parts for key in part.table}


def compare(pair: Pair, percentiles: Sequence[Percentile]) -> Table:
    """Return one row per group and percentile: labels, then COLUMNS, the largest effect first.

    `baseline` and `run` in ns, `lo` and `hi` the bounds of `ratio`: all of them hold together 95 times in 100; counts are exact.
    NaN where the samples cannot carry a number, where there are too few windows, and throughout the run that does not have a
    group. A percentile among operations that failed is inf, and has no ratio; `lo` is inf, or `hi` 0, where that is certain.
    `verdict` is SLOWER, FASTER, SAME (within the ratio of the pair), UNKNOWN, or empty where one side has no value.
    `failed_baseline` and `failed_run` are the shares of the group's operations that failed, `failed_lo` and `failed_hi` the
    bounds of their difference (of all groups together; NaN where nothing failed, or windows are too few), `failed_verdict` MORE,
    FEWER, SAME (within SAME_SHARE), UNKNOWN, or empty where none failed.
    Effect: the least change that the bounds leave, then the ratio itself, on the log scale; then labels and percentiles in
    order. Error bound: that of the bins of each side, within lo and hi.
    """
    wanted = sorted(percentiles, key=lambda percentile: float(percentile.text))
    bounds, shares = Ratios(pair.windows, wanted), failed_shares(pair)
    tables = [
        _rows(groups, (first, second), percentile, pair, bounds, shares)
        for groups, first, second in _aligned(pair)
        for percentile in wanted
    ]
    table = concatenated(tables, order=()) if pair.by else concatenated(tables, order=("percentile",))
    ratio, low, high = (np.asarray(table.columns[name], np.float64) for name in ("ratio", "lo", "hi"))
    with np.errstate(all="ignore"):
        least = np.fmax(np.fmax(np.log(low), -np.log(high)), 0)
        size = np.nan_to_num(np.abs(np.log(ratio)), nan=-1.0, posinf=math.inf)
    return table.take(np.lexsort((-size, -np.nan_to_num(least, nan=-1.0))))


def method(pair: Pair) -> str:
    """Return what the bounds of a pair rest on, in words."""
    spread = PERMUTATION not in pair.by and max(len(side) for side in pair.windows) >= LEAST_RUNS
    return BETWEEN_RUNS if spread else METHOD


def verdict(low: float, high: float, same_within: float = SAME_WITHIN) -> str:
    """Return what the bounds of a ratio say; a certain difference within `same_within` is the same."""
    if 1 / same_within <= low and high <= same_within:
        return SAME
    return SLOWER if low > 1 else FASTER if high < 1 else UNKNOWN


def halvings(pair: Pair) -> tuple[Percentile, ...]:
    """Return the percentiles at which 1 / (1 - q) doubles, from p50 on, as far as any group of both runs can carry them."""
    most = max(
        (min(int(first.samples.max()), int(second.samples.max())) for _, first, second in _aligned(pair) if first and second),
        default=0,
    )
    texts = []
    for halving in range(1, MOST_HALVINGS):
        text = f"{100 - Decimal(100) / 2**halving:f}"
        if 2**halving > max(most, 2) or len(text) > len("99.") + 12:
            break
        texts.append(text)
    return parse_percentiles(",".join(texts))


def alone(table: Table) -> tuple[list[Group], list[Group]]:
    """Return the groups that only the baseline and that only the run has."""
    keys = groups_in(table)
    baseline = {key for key, count in zip(keys, table.columns["count_run"].tolist(), strict=True) if not count}
    both = zip(keys, table.columns["count_baseline"].tolist(), table.columns["count_run"].tolist(), strict=True)
    return sorted(baseline), sorted({key for key, before, count in both if count and not before})


def _aligned(pair: Pair) -> Iterator[tuple[list[Group], Intervals[Group] | None, Intervals[Group] | None]]:
    """Yield groups with their rows of the baseline and of the run, in one order and one layout; None where one has none."""
    first, second = (_by_layout(side) for side in (pair.baseline, pair.run))
    homes = [{key: part for part in parts for key in _keys(part)} for parts in (first, second)]
    for base_part in first:
        for other in second:
            shared = [key for key in _keys(base_part) if homes[1].get(key) is other]
            if shared:
                layout = common_layout((base_part.layout, other.layout))
                yield shared, _rows_of(base_part, shared).in_layout(layout), _rows_of(other, shared).in_layout(layout)
    for place, parts in enumerate((first, second)):
        for part in parts:
            single = [key for key in _keys(part) if key not in homes[1 - place]]
            if single:
                rows = _rows_of(part, single)
                yield single, *((rows, None) if place == 0 else (None, rows))


def _by_layout(answer: Answer) -> list[Intervals[Group]]:
    """Return the rows of an answer, one part a layout."""
    return sorted(spanned(answer.parts), key=lambda part: part.layout.rank)


def _keys(part: Intervals[Group]) -> list[Group]:
    return [part.table[code] for code in part.series.tolist()]


def _rows_of(part: Intervals[Group], keys: Sequence[Group]) -> Intervals[Group]:
    place = {key: row for row, key in enumerate(_keys(part))}
    return part.take(np.array([place[key] for key in keys], np.int64))


def _rows(
    groups: Sequence[Group],
    both: tuple[Intervals[Group] | None, Intervals[Group] | None],
    percentile: Percentile,
    pair: Pair,
    bounds: Ratios,
    shares: Mapping[Group, FailedShare],
) -> Table:
    """Return the rows of some groups at one percentile."""
    by, answers = pair.by, (pair.baseline, pair.run)
    baseline, run = (
        _nothing(len(groups)) if side is None else measured_of(side, percentile, answer)
        for side, answer in zip(both, answers, strict=True)
    )
    before, after = (np.minimum(side.value, FAILED_NS) for side in (baseline, run))  # what failed is slower by any ratio
    with np.errstate(all="ignore"):
        ratio = np.where(baseline.open | (before == 0), math.nan, after / before)
        low, high = bounds.of(groups, percentile, ratio)
        # What is missing may lie anywhere in its range: the percentile then lies between least and most.
        low = low * _part(run.least, after) * _part(before, baseline.most)
        high = high * _part(run.most, after) * _part(before, baseline.least)
    ratio = np.where(np.isfinite(ratio) & np.isfinite(baseline.value) & np.isfinite(run.value), ratio, math.nan)
    low = np.where((low > 0) & np.isfinite(baseline.value), np.where(low * before > NO_LATENCY, math.inf, low), math.nan)
    high = np.where(np.isfinite(high) & np.isfinite(run.value), np.where(after > high * NO_LATENCY, 0.0, high), math.nan)
    verdicts = [
        "" if math.isnan(first) or math.isnan(second) else verdict(least, most, pair.same_within)
        for first, second, least, most in zip(baseline.value, run.value, low, high, strict=True)
    ]
    columns = label_columns(groups, by)
    cells = (
        np.full(len(groups), float(percentile.text)),
        *(baseline.value, run.value, ratio, low, high),
        *(baseline.count, run.count, np.array(verdicts, object)),
    )
    *numbers, words = zip(*(shares.get(group, NONE_FAILED) for group in groups), strict=True)
    failed = (*(np.array(each, np.float64) for each in numbers), np.array(words, object))
    columns |= dict(zip(COLUMNS, (*cells, *failed), strict=True))
    columns |= {f"{name}_censored": side.open for name, side in (("baseline", baseline), ("run", run))}
    return Table(columns, tuple(by))


class FailedShare(NamedTuple):
    """The share of a group's operations that failed in both runs, the bounds of the difference run - baseline, and a verdict."""

    baseline: float
    run: float
    low: float
    high: float
    verdict: str


NONE_FAILED = FailedShare(0.0, 0.0, math.nan, math.nan, "")


def failed_shares(pair: Pair) -> dict[Group, FailedShare]:
    """Return what both runs say of failures, of the groups in which any failed; what is missing may have failed, or not."""
    answers = [own or (whole,) for own, whole in zip(pair.windows, (pair.baseline, pair.run), strict=True)]
    if all(part.layout.timed is part.layout for own in answers for answer in own for part in answer.parts):
        return {}
    runs = [[_failures_of(answer) for answer in own] for own in answers]
    groups = {group for own in runs for run in own for group, (failed, _) in run.items() if failed.any()}
    first_lost, second_lost = (_lost_share(side) for side in (pair.baseline, pair.run))
    found = {}
    for group in groups:
        held = [[share_above_of(*run[group]) for run in own if group in run] for own in runs]
        first, second = (of_runs(shares) if shares else ShareAbove(0, 0, math.nan, 0, 0) for shares in held)
        low, high = difference_between(first, second, len(groups))
        low -= second.value * second_lost + (1 - first.value) * first_lost
        high += (1 - second.value) * second_lost + first.value * first_lost
        found[group] = FailedShare(first.value, second.value, low, high, _share_verdict(low, high))
    return found


def _share_verdict(low: float, high: float) -> str:
    if low >= -SAME_SHARE and high <= SAME_SHARE:
        return SAME
    return MORE if low > 0 else FEWER if high < 0 else UNKNOWN


def _failures_of(answer: Answer) -> dict[Group, tuple[Float, Float]]:
    """Return of each group how many operations failed, and how many there are, by window in the order of time."""
    pieces: dict[Group, list[Int]] = {}
    for part in answer.parts:
        for code in np.unique(part.series).tolist():
            rows = np.flatnonzero(part.series == code)
            pieces.setdefault(part.table[code], []).append(
                np.stack([part.start_ns[rows], part.failures[rows], part.samples[rows]])
            )
    found = {}
    for group, parts in pieces.items():
        starts, *counts = np.concatenate(parts, axis=1)
        windows, place = np.unique(starts, return_inverse=True)
        failed, every = (np.bincount(place, each, len(windows)).astype(np.float64) for each in counts)
        found[group] = failed, every
    return found


def _lost_share(answer: Answer) -> float:
    """Return which share of an answer's operations is missing at most, of all groups together."""
    if any(lack.entry.count is None for lack in answer.missing):
        return 1.0
    lost = sum(lack.entry.count or 0 for lack in answer.missing)
    return lost / (lost + answer.samples) if lost else 0.0


def _part(first: Float, second: Float) -> Float:
    """Return the ratio of two latencies, of operations that failed 1."""
    return np.minimum(first, FAILED_NS) / np.minimum(second, FAILED_NS)


def _nothing(groups: int) -> Measured:
    none = np.full(groups, math.nan)
    return Measured(np.zeros(groups, np.int64), none, none, none, np.zeros(groups, np.bool_), np.zeros(groups))


# By which labels two runs are compared beside one another: operations, hosts, and what was asked for, from one answer each.
#
# An answer by all of these labels is asked once; sums over some of them are exact, so what is regrouped here is what a question
# by those labels alone is answered.


USUAL = ("op", "host")
APART = ("kind", PERMUTATION)
UNLIKE_EVENTS = "lags of unlike events are counted as they were stored, at unlike rates: --by op keeps events apart"


def labels_of(by: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of an answer of which all groupings can be made: those asked for, operation and host."""
    return tuple(dict.fromkeys((*by, *USUAL)))


def is_lag(*answers: Answer) -> bool:
    """Return whether the answers are about lags: those of unlike events are stored at unlike rates, and are not added up."""
    return all(kinds_of(answer) == {LAG} for answer in answers)


def groupings(baseline: Answer, run: Answer, by: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the labels to compare by, one after the other: operation, host, each that was asked for, and these together.

    Left out is what has one value in both runs; of lags what does not keep operations apart.
    Kinds and pairs of runs stay apart in all.
    """
    kind = tuple(name for name in by if name in APART)
    asked = tuple(name for name in by if name not in APART)
    wanted = [*((name,) for name in USUAL), *((name,) for name in asked), asked]
    lags = is_lag(baseline, run)
    label_sets = []
    for labels in dict.fromkeys(names for names in wanted if names):
        values = groups_of(baseline, labels) | groups_of(run, labels)
        if len(values) > 1 and (not lags or "op" in labels):
            label_sets.append((*kind, *labels))
    return label_sets


def groups_of(answer: Answer, by: Sequence[str]) -> set[Group]:
    """Return the groups that an answer has by some of its labels."""
    places = [answer.by.index(name) for name in by]
    keys = {key for part in answer.parts for key in part.table}
    return {tuple(key[place] for place in places) for key in keys}


def grouped(
    baseline: Answer,
    run: Answer,
    by: Sequence[str],
    windows: Sides = ((), ()),
    *,
    unlike: bool = False,
    same_within: float = SAME_WITHIN,
) -> Pair:
    """Return two answers and their windows as a pair by some of their labels.

    UsageError for unlike kinds (corrected and measured data among them), unless `unlike`.
    """
    sides = [baseline, run]
    for side in sides:
        check_bins(side, "comparisons of percentiles")
    kinds = [kinds_of(side) for side in sides]
    if not kinds[0] & kinds[1] and not unlike:
        raise UsageError(
            f"{', '.join(baseline.runs)} holds {listed(sorted(kinds[0])) or 'unnamed'} latency, {', '.join(run.runs)} "
            f"{listed(sorted(kinds[1])) or 'unnamed'}: unlike kinds are not compared; choose one with --where kind=KIND, or add "
            "--unlike-kinds"
        )
    if "kind" not in by and any("kind" in side.by for side in sides):
        raise UsageError(f"several kinds here ({', '.join(sorted(kinds[0] | kinds[1]))}): choose one with --where kind=KIND")
    notes = [UNLIKE_BINS] if len({part.layout.timed for side in sides for part in side.parts}) > 1 else []
    if is_lag(baseline, run) and "op" not in by:
        notes.append(UNLIKE_EVENTS)
    first, second = (tuple(regrouped(each, by) for each in own) for own in windows)
    return Pair(regrouped(baseline, by), regrouped(run, by), tuple(notes), (first, second), same_within=same_within)


def alone_in(pair: Pair, group: Group) -> Pair:
    """Return what a pair has of one group, without labels."""
    first, second = (tuple(_only(each, group) for each in side) for side in pair.windows)
    return replace(pair, baseline=_only(pair.baseline, group), run=_only(pair.run, group), windows=(first, second))


def _only(answer: Answer, group: Group) -> Answer:
    parts = (part.relabelled(lambda key: () if key == group else None) for part in answer.parts)
    return replace(answer, parts=tuple(part for part in parts if len(part)), by=())


Ask = Callable[[Question], Answer]
NotedIn = Callable[[Answer], Sequence[NotedMark]]

MOST_STRETCHES = 100


def noted_in(origin: Origin, given: Sequence[Mark] = ()) -> NotedIn:
    """Return what gives the marks of the run of an answer in order: those kept by an origin, and those given that overlap it.

    As in a store, a run takes marks until AFTER_END_NS behind its end.
    """

    def noted(answer: Answer) -> list[NotedMark]:
        end = span_of(answer.parts)[1] + AFTER_END_NS
        marks = {(int(mark["at_ns"]), str(mark["text"])): mark for mark in origin.marks(answer)}
        for run in answer.runs:
            own = of_run(given, run, answer.run_start_ns[run], end, relative=answer.relative)
            marks |= {(int(mark["at_ns"]), str(mark["text"])): mark for mark in own}
        return sorted(marks.values(), key=in_time_order)

    return noted


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a run that began at `zero_ns`: what it is called, and its ranges, edges of windows in ns, in order."""

    name: str
    run: str
    zero_ns: int
    spans: tuple[Span, ...]
    notes: tuple[str, ...] = ()

    def ask(self, ask: Ask) -> Ask:
        """Return what answers questions about this side; InputError where nothing of them lies in it."""

        def asked(question: Question) -> Answer:
            answers = []
            for span in self.spans:  # a range at a time
                begin, end = (Instant(edge - self.zero_ns, relative=True) for edge in span)
                with suppress(NothingMatchesError):
                    answers.append(ask(replace(question.about([self.run]), begin=begin, end=end)))
            if not answers:
                raise InputError(f"nothing of what is asked lies in {self.name}")
            # The sum of answers about ranges is one about a run with the name of this side.
            step = math.lcm(*(answer.step_ns for answer in answers)) if all(answer.step_ns for answer in answers) else 0
            parts = [part for answer in answers for part in answer.parts]
            return _added(
                answers,
                self.notes,
                parts=tuple(widened(parts, step) if step else spanned(parts)),
                step_ns=step,
                runs=(self.name,),
                run_start_ns={self.name: self.spans[0][0]},
                covered={},
                undated=frozenset(),
                series=max(answer.series for answer in answers),
            )

        return asked


def sides_of(origin: Origin, run: str, glob: str, question: Question, given: Sequence[Mark] = ()) -> tuple[Side, Side]:
    """Return what of a run lies on both sides of the marks that match, within the range of a question.

    `given` are marks beside those that the origin keeps. InputError where no mark matches, or no whole window lies on a side;
    UsageError for marks of which some have an end, and for too many.
    """
    (record,) = [record for record in origin.runs() if record.run == run]
    whole = origin.answer(Question(step=ALL).about([run]))
    step, zero = record.step_ns, whole.run_start_ns[run]
    low, high = span_of(whole.parts)
    begin, end = question.edges(run, zero)
    low, high = max(low, low if begin is None else begin), min(high, high if end is None else end)
    low, high = low // step * step, -(-high // step) * step
    if low >= high:
        raise InputError("no window of this run lies between --from and --to")
    marks = noted_in(origin, given)(whole)
    names, spans = _cut(glob, marks, run, (low, high), step)
    if (count := sum(map(len, spans))) > MOST_STRETCHES:
        raise UsageError(f"--at {glob} cuts {run} into {count} stretches, and each is read by itself: at most {MOST_STRETCHES}")
    left = (high - low - sum(end - begin for side in spans for begin, end in side)) // step
    counted = f"1 window of {format_duration(step)} is" if left == 1 else f"{left:,} windows of {format_duration(step)} are"
    notes = (f"{counted} on neither side: not wholly {names[0]}, nor {names[1]}",) if left else ()
    first, second = (
        Side(f"{run} {name}", run, zero, side, own) for name, side, own in zip(names, spans, (notes, ()), strict=True)
    )
    return first, second


def _cut(
    glob: str, marks: Sequence[NotedMark], run: str, life: Span, step_ns: int
) -> tuple[tuple[str, str], tuple[tuple[Span, ...], tuple[Span, ...]]]:
    """Return the names of both sides of a run, and their ranges of whole windows."""
    chosen = [mark for mark in marks if Phase(AFTER, glob).matches(mark)]
    lasting = [mark for mark in chosen if mark.get("end_ns") is not None]
    if not chosen:
        texts = [str(mark["text"]) for mark in marks]
        note = "note it with tailboard runs mark, or give --marks FILE"
        raise InputError(f"--at {glob} matches no mark of {run} ({marks_for(glob, texts)}): {note}")
    if lasting and len(lasting) < len(chosen):
        raise UsageError(f"--at {glob} matches marks with an end and marks without one: name one sort of them")
    words = (OUTSIDE, DURING) if lasting else (BEFORE, AFTER)
    phases = [Phase(word, glob) for word in words]
    first, second = (stretches([phase], marks, run).within(*life, step_ns).spans for phase in phases)
    return (str(phases[0]), str(phases[1])), (first, second)


# How much of the response time was waiting: response and service time of the same windows, and what lies between them.


RESPONSE, SERVICE, WAIT = "response", "service", "wait"


def gap(answer: Answer, percentile: Percentile) -> Table:
    """Return one row per window and group: start_ns, end_ns, labels without kind, service, response, wait, gap (all ns).

    `gap` is response minus service at this percentile: a distance between two curves, not a percentile of the waiting
    (which is `wait`: percentiles do not add up). NaN where one of them is missing or cannot be carried. The answer must be
    grouped by kind; InputError where it holds no response time.
    """
    table = percentiles(answer, Wanted((percentile,)))
    kinds = np.asarray(table.columns["kind"], object)
    if RESPONSE not in set(kinds.tolist()):
        raise InputError("no response time here: logs with tags -rt, or operation logs with --rate, have it")
    names = tuple(name for name in table.labels if name != "kind")
    keys = list(zip(*(table.columns[name].tolist() for name in ("start_ns", "end_ns", *names)), strict=True))
    places = {key: place for place, key in enumerate(sorted(set(keys)))}
    values = {kind: np.full(len(places), np.nan) for kind in (SERVICE, RESPONSE, WAIT)}
    for key, kind, value in zip(keys, kinds.tolist(), table.columns[percentile.name].tolist(), strict=True):
        if kind in values:
            values[kind][places[key]] = value
    spans = (np.array([key[edge] for key in places], np.int64) for edge in (0, 1))
    columns = dict(zip(("start_ns", "end_ns"), spans, strict=True)) | label_columns([key[2:] for key in places], names)
    return Table({**columns, **values, "gap": values[RESPONSE] - values[SERVICE]}, names)
