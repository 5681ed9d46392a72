"""What averaging would have said: the usual wrong ways, worked out from the same data and held against the exact columns.

What averaging would have said: the usual wrong ways, worked out from the same data and held against the exact columns.

    mean-of-percentiles   of each series the percentile of each window, then their plain mean
    mean-of-means         of each series the mean of each stored window, then the percentile of these means
    cbt                   the time series of CBT's post-processing (cbt.py)
    histogram             histogram logs against the single I/Os of the same jobs (logs.py)

docs/explanation/estimates.md has every formula. Nothing here changes an exact column: estimates stand beside them.

What CBT's own post-processing reports for the same logs (time series of 2026), window by window.

1. Of each fio process (volume) the rows of its `_clat` logs are taken as they stand, whether they are averaged or one for
   each I/O; rows of one ms and direction are added.
2. A percentile of a second is the interpolated quantile of these rows, its mean their sum.
3. Over the volumes of a host: the mean of those quantiles, weighted by the sum of the rows of the `_iops` logs.
4. Hosts are not combined: the one that is read last takes the place of the others.

CBT takes seconds since the start of each fio and has p50, p95, p99; here the formulas are held against the exact windows that
were asked for (sums are then those of a second on average), and any percentile. Which host is last is up to the file system:
here it is the last by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import InputError, UsageError, plural
from ingest.core.grid import window_start
from ingest.core.intervals import Int, Intervals
from ingest.core.labels import IN_FLIGHT, LABELS, OPS, Group, Series, run_and_kind
from ingest.core.quantiles import Percentile, Ranked, extremes, percentile_values
from ingest.core.units import format_duration
from ingest.query.aggregate import run_starts
from ingest.query.files import Files
from ingest.query.origin import LOGS, Origin, require
from ingest.query.question import Answer, Question, shape_of
from ingest.query.table import Table
from ingest.read import events_of, read
from ingest.read.account import Account
from ingest.read.fio import averaged_log
from ingest.read.fio.averaged_log import LATENCIES, RATES, log_beside
from ingest.read.format_names import HIST, RAW
from ingest.read.sources import COMPLETION, PREFER_HIST, PREFER_RAW, Source
from ingest.read.text import COMPRESSED

# What estimators share: where their values stand in the exact table, and percentiles of plain values.


Float = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The values of an estimator for a table, by the exact column that they stand beside (`mean`, `p99`), NaN where none.

    `truth` is what they are held against where that is not the exact column. `notes` say what was done and what cannot be.
    """

    name: str
    columns: Mapping[str, Float]
    notes: tuple[str, ...] = ()
    truth: Mapping[str, Float] = field(default_factory=dict)

    def errors(self, exact: Mapping[str, Float]) -> dict[str, Float]:
        """Return how far each value lies from the true one, as a share of it: -0.8 is 80 % too low."""
        return {name: relative(values, self.truth.get(name, exact[name])) for name, values in self.columns.items()}


def relative(values: Float, truth: Float) -> Float:
    """Return value / truth - 1; NaN where either is missing or the truth is 0."""
    true_values = np.asarray(truth, np.float64)
    errors: Float = np.full(len(values), np.nan)
    np.divide(values - true_values, true_values, out=errors, where=true_values > 0)
    return errors


class Places:
    """The rows of a table by group and window, to find where other rows of the same windows belong."""

    def __init__(self, table: Table, step_ns: int) -> None:
        names = [table.columns[name].tolist() for name in table.labels]
        groups: list[Group] = list(zip(*names, strict=True)) if names else [()] * len(table)
        self.size = len(table)
        self.step_ns = step_ns
        self.known: dict[Group, int] = {}
        self.group = np.array([self.known.setdefault(group, len(self.known)) for group in groups], np.int64)
        starts = np.asarray(table.columns["start_ns"], np.int64) if step_ns else np.zeros(self.size, np.int64)
        self.starts, window = np.unique(starts, return_inverse=True)
        key = self.group * len(self.starts) + window.reshape(-1)
        self.order = np.argsort(key, kind="stable")
        self.key = key[self.order]

    def rows(self, groups: Sequence[Group | None], codes: Int, starts_ns: Int) -> Int:
        """Return the table's row of each value, -1 where it has none; `groups[codes[i]]` at the window that starts there."""
        if not self.size or not len(codes):
            return np.full(len(codes), -1)
        group = np.array([-1 if member is None else self.known.get(member, -1) for member in groups], np.int64)[codes]
        starts = starts_ns if self.step_ns else np.zeros(len(codes), np.int64)
        window = np.minimum(np.searchsorted(self.starts, starts), len(self.starts) - 1)
        key = group * len(self.starts) + window
        place = np.minimum(np.searchsorted(self.key, key), self.size - 1)
        there = (group >= 0) & (self.starts[window] == starts) & (self.key[place] == key)
        return np.where(there, self.order[place], -1)


def means_of(at: Int, values: NDArray[np.int64] | Float, size: int) -> Float:
    """Return the plain mean of the values at each row, NaN where there is none."""
    count = np.bincount(at, minlength=size)
    total = np.bincount(at, weights=values, minlength=size)
    means: Float = np.full(size, np.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means


@dataclass(frozen=True, slots=True)
class Sorted:
    """Values by row, in order of size within each: what ranks and quantiles are looked up in."""

    rows: Int
    first: Int
    count: Int
    values: NDArray[np.int64] | Float
    size: int

    @classmethod
    def of(cls, at: Int, values: NDArray[np.int64] | Float, size: int) -> Sorted:
        """Return the values at each row (not -1) in order."""
        order = np.lexsort((values, at))
        rows, first, count = np.unique(at[order], return_index=True, return_counts=True)
        return cls(rows, first, count, values[order], size)

    def nearest(self, percentile: Percentile, *, carried: bool = False) -> Float:
        """Return the value of rank ceil(N p / 100) of each row; with `carried` NaN where so few cannot carry it."""
        values = np.full(self.size, np.nan)
        values[self.rows] = self.values[self.first + percentile.ranks(self.count) - 1]
        if carried:
            values[self.rows[~percentile.carried(self.count)]] = np.nan
        return values

    def interpolated(self, percentile: Percentile) -> Float:
        """Return the quantile of each row between its neighbours at (N - 1) p / 100, as NumPy and pandas have it."""
        share = percentile.top / (100 * percentile.bottom)
        place = (self.count - 1) * share
        low = np.floor(place).astype(np.int64)
        below = self.values[self.first + low].astype(np.float64)
        above = self.values[self.first + np.minimum(low + 1, self.count - 1)].astype(np.float64)
        quantiles = np.full(self.size, np.nan)
        quantiles[self.rows] = below + (above - below) * (place - low)
        return quantiles


MEAN_OF_PERCENTILES, MEAN_OF_MEANS = "mean-of-percentiles", "mean-of-means"
CBT, HISTOGRAM = "cbt", "histogram"
ESTIMATORS = (CBT, MEAN_OF_MEANS, MEAN_OF_PERCENTILES, HISTOGRAM)
OF_FILES = (CBT, HISTOGRAM)
UNNAMED = ("run", "kind")


def parse_estimates(text: str) -> tuple[str, ...]:
    """Return the estimators of a comma-separated list; UsageError for one that there is not."""
    names = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for name in names:
        if name not in ESTIMATORS:
            raise UsageError(f"no estimator {name!r}: --estimate takes {', '.join(ESTIMATORS)}")
    if not names:
        raise UsageError(f"--estimate takes at least one of {', '.join(ESTIMATORS)}")
    return names


def estimated(
    origin: Origin, question: Question, answer: Answer, table: Table, wanted: Sequence[Percentile], names: Sequence[str]
) -> list[Estimate]:
    """Return the values of each estimator for the windows of a table, which is that of `answer` to `question`.

    UsageError where an estimator cannot work on such a source or question.
    """
    if question.attribution == IN_FLIGHT:
        raise UsageError("--estimate is about completions: leave out --attribution in-flight")
    logs = {name: require(origin, LOGS, f"--estimate {name}") for name in names if name in OF_FILES}
    places = Places(table, answer.step_ns)
    estimates = []
    for name in names:
        if name == MEAN_OF_PERCENTILES:
            fine = by_series(origin, question, answer)
            estimates.append(Estimate(name, mean_of_percentiles(fine, answer.by, places, wanted), (_averaged(fine),)))
        elif name == MEAN_OF_MEANS:
            estimates.append(mean_of_means(origin, question, answer, places, wanted))
        elif name == CBT:
            estimates.append(cbt(logs[name], question, answer, table, places, wanted))
        else:
            estimates.append(histogram(logs[name], question, answer, places, wanted))
    return estimates


def with_estimates(table: Table, estimates: Sequence[Estimate]) -> Table:
    """Return the table with columns behind its own: `p99_cbt`, `p99_cbt_error` (a share), and what that is held against."""
    columns = dict(table.columns)
    for estimate in estimates:
        suffix, errors = estimate.name.replace("-", "_"), estimate.errors(table.columns)
        for name, values in estimate.columns.items():
            if name in estimate.truth:
                columns[f"{name}_samples"] = estimate.truth[name]
            columns |= {f"{name}_{suffix}": values, f"{name}_{suffix}_error": errors[name]}
    return replace(table, columns=columns)


def every_label(question: Question) -> tuple[str, ...]:
    """Return the labels that keep all series apart, beside run and kind, with those that are asked for."""
    return tuple(dict.fromkeys([*(name for name in LABELS if name not in UNNAMED), *question.by]))


def by_series(origin: Origin, question: Question, answer: Answer) -> Answer:
    """Return the same windows of every series by itself."""
    labels = tuple(dict.fromkeys(["run", *every_label(question)]))
    return origin.answer(replace(question, by=labels, step=answer.step_ns or "all"))


def mean_of_percentiles(fine: Answer, by: Sequence[str], places: Places, wanted: Sequence[Percentile]) -> dict[str, Float]:
    """Return the plain mean of the percentiles of all series of `fine` that have samples in a window, for each row.

    Of each series it is the nearest rank however few samples there are: what averages percentiles does not look at counts.
    """
    at, values = [np.zeros(0, np.int64)], {percentile.name: [np.zeros(0)] for percentile in wanted}
    for part in fine.parts:
        rows = part.take(np.flatnonzero(part.samples > 0))
        table_rows = places.rows(groups_of(rows, fine.by, by), rows.series, rows.start_ns)
        kept = np.flatnonzero(table_rows >= 0)
        ranked = Ranked(rows)
        at.append(table_rows[kept])
        for percentile in wanted:
            values[percentile.name].append(_nearest(ranked, percentile)[kept])
    where = np.concatenate(at)
    return {name: means_of(where, np.concatenate(chunks), places.size) for name, chunks in values.items()}


def _nearest(ranked: Ranked, percentile: Percentile) -> Float:
    rows = ranked.rows
    values = ranked.values(np.arange(len(rows)), percentile.ranks(ranked.samples)).astype(np.float64)
    if percentile.top == 100 * percentile.bottom and rows.exact is not None:
        return np.where(rows.exact.known, rows.exact.max_ns, values)
    return values


def _averaged(fine: Answer) -> str:
    series = len({part.table[code] for part in fine.parts for code in np.unique(part.series).tolist()})
    return f"{MEAN_OF_PERCENTILES}: the plain mean of the percentiles of {series:,} series, whatever their counts"


def mean_of_means(origin: Origin, question: Question, answer: Answer, places: Places, wanted: Sequence[Percentile]) -> Estimate:
    """Return percentiles of the means of each series over each stored window: of what is left where only means were kept.

    Where windows are asked for that the stored step does not divide, the means are those of the windows asked for.
    """
    every = every_label(question)
    means = _Means.of(origin.windows(replace(question, by=every)), every)
    if answer.step_ns and answer.step_ns % means.width_ns:
        means = _Means.of_answer(by_series(origin, question, answer), places.step_ns)
    groups = means.groups(question, answer.by)
    starts = means.start // answer.step_ns * answer.step_ns if answer.step_ns else means.start
    table_rows = places.rows(groups, means.code, starts)
    kept = np.flatnonzero(table_rows >= 0)
    columns = percentiles_of_means(table_rows[kept], means.value[kept], places.size, wanted)
    width = format_duration(means.width_ns) if means.width_ns else "the whole range"
    note = f"{MEAN_OF_MEANS}: percentiles of {len(kept):,} means, each of a series over {width}"
    return Estimate(MEAN_OF_MEANS, columns, (note,))


def percentiles_of_means(at: Int, means: Float, size: int, wanted: Sequence[Percentile]) -> dict[str, Float]:
    """Return the plain mean of means, and their percentiles by nearest rank, for each row."""
    ordered = Sorted.of(at, means, size)  # in order, so that a sum does not hang on who came first
    mean = means_of(np.repeat(ordered.rows, ordered.count), ordered.values, size)
    return {"mean": mean, **{percentile.name: ordered.nearest(percentile) for percentile in wanted}}


class _Means:
    """Means of series over windows of `width_ns`: `value[i]` of `keys[code[i]]` (run, kind, then labels) from `start[i]` on."""

    def __init__(
        self, keys: Sequence[Group], labels: Sequence[str], rows: Sequence[tuple[Int, Int, Float, Int]], width_ns: int
    ) -> None:
        self.keys, self.labels, self.width_ns = keys, tuple(labels), width_ns
        empty = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))
        code, start, total, count = (np.concatenate(column) for column in zip(*(empty, *rows), strict=True))
        start = start // width_ns * width_ns if width_ns else start
        order = np.lexsort((start, code))
        code, start, total, count = code[order], start[order], total[order], count[order]
        new = np.flatnonzero(np.append(True, (code[1:] != code[:-1]) | (start[1:] != start[:-1]))[: len(code)])
        self.code, self.start = code[new], start[new]
        self.value: Float = np.add.reduceat(total, new) / np.add.reduceat(count, new) if len(new) else np.zeros(0)

    @classmethod
    def of(cls, parts: Iterator[Intervals[Group]], labels: Sequence[str]) -> _Means:
        """Return the means of stored windows, of which only sums are kept."""
        known: dict[Group, int] = {}
        sums, width = [], 0
        for part in parts:
            rows = part.take(np.flatnonzero(part.samples > 0))
            if not len(rows):
                continue
            codes = [known.setdefault(key, len(known)) for key in rows.table]
            width = max(width, int((rows.end_ns - rows.start_ns).max()))
            sums.append((np.array(codes, np.int64)[rows.series], rows.start_ns, *_sums(rows)))
        return cls(list(known), labels, sums, width)

    @classmethod
    def of_answer(cls, fine: Answer, step_ns: int) -> _Means:
        """Return the means of an answer's windows by series."""
        kind = fine.by.index("kind") if "kind" in fine.by else None
        run = fine.by.index("run")
        labels = tuple(name for name in fine.by if name not in UNNAMED)
        places = [fine.by.index(name) for name in labels]
        known: dict[Group, int] = {}
        sums = []
        for part in fine.parts:
            rows = part.take(np.flatnonzero(part.samples > 0))
            keys = rows.table
            full = [(key[run], fine.kind if kind is None else key[kind], *(key[place] for place in places)) for key in keys]
            codes = [known.setdefault(key, len(known)) for key in full]
            sums.append((np.array(codes, np.int64)[rows.series], rows.start_ns, *_sums(rows)))
        return cls(list(known), labels, sums, step_ns)

    def groups(self, question: Question, by: Sequence[str]) -> list[Group | None]:
        """Return the group that each key belongs to in an answer by some labels; None where its kind is not in it."""
        kinds: dict[str, set[str]] = {}
        for run, kind, *_ in self.keys:
            kinds.setdefault(run, set()).add(kind)
        taken = shape_of(question, kinds).taken if kinds else {}
        return [
            _grouped(dict(zip((*UNNAMED, *self.labels), key, strict=True)), by) if kind in taken[run] else None
            for key in self.keys
            for run, kind in [run_and_kind(key)]
        ]


def _grouped(labels: Mapping[str, str], by: Sequence[str]) -> Group:
    return tuple(labels[name] for name in by)


def _sums(rows: Intervals[Group]) -> tuple[Float, Int]:
    _, _, mean, _ = extremes(rows)
    return mean * rows.samples, rows.samples


def groups_of(rows: Intervals[Group], labels: Sequence[str], by: Sequence[str]) -> list[Group]:
    """Return the group that each key of an answer's rows belongs to, by fewer of its labels."""
    places = [tuple(labels).index(name) for name in by]
    return [tuple(key[place] for place in places) for key in rows.table]


# Histogram logs against the single I/Os of the same jobs: how far the percentile of the one lies from that of the other.
#
# What a histogram log loses is the width of its bins, and within a row when each I/O completed: rows that cross the edge of a
# window are cut by time. Where fio also logged each I/O (`write_lat_log` without `log_avg_msec`), both can be seen.


HISTOGRAM_NAME = "histogram"
MOST_SAMPLES = 50_000_000
Job = tuple[str, str, str, str, str]


def histogram(files: Files, question: Question, answer: Answer, places: Places, wanted: Sequence[Percentile]) -> Estimate:
    """Return the percentiles of histogram logs, and as truth those of the single I/Os; only of groups that have both.

    UsageError where there are more I/Os than can be held.
    """
    empty = {percentile.name: np.full(places.size, np.nan) for percentile in wanted}
    by_bins, by_samples = (files.preferring(prefer) for prefer in (PREFER_HIST, PREFER_RAW))
    bins, samples = _jobs(by_bins, question, HIST), _jobs(by_samples, question, RAW)
    both = bins.keys() & samples.keys() if answer.kind == COMPLETION else set()
    if not both:
        note = (
            f"{HISTOGRAM_NAME}: cannot be computed here: needs jobs that have both a histogram log and a log of single I/Os "
            "(write_lat_log without log_avg_msec), of completion latency (--where kind=completion)"
        )
        return Estimate(HISTOGRAM_NAME, empty, (note,), empty)
    lone = {**bins, **samples}
    alone = [source for job, source in lone.items() if job not in both]
    key = _Key(files, question, answer)
    partial = {group for source in alone for group in key.groups([source.context.series.replaced(op=op) for op in OPS])}
    complete = np.array([group not in partial for group in places.known], np.bool_)
    binned, exact = _of_bins(by_bins, question, answer, places, wanted), _of_samples(samples, both, key, places, wanted)
    kept = complete[places.group] if places.size else np.zeros(0, np.bool_)
    against = "percentiles of histogram logs against those of each I/O (p.._samples)"
    notes = [f"{HISTOGRAM_NAME}: {against}, of {len(both)} jobs that have both"]
    if alone:
        notes.append(f"{HISTOGRAM_NAME}: {len(alone)} of {len(lone)} jobs have one of the two logs only: their groups are empty")
    return Estimate(
        HISTOGRAM_NAME,
        {name: np.where(kept, values, np.nan) for name, values in binned.items()},
        tuple(notes),
        {name: np.where(kept, values, np.nan) for name, values in exact.items()},
    )


def _jobs(files: Files, question: Question, kind: str) -> dict[Job, Source]:
    """Return the logs of a format by the job whose completion latencies they hold."""
    jobs: dict[Job, Source] = {}
    for source in files.selected(question):
        series = source.context.series
        if source.format == kind and series.kind == COMPLETION and not source.context.shadowed:
            jobs[series.run, series.host, series.volume, series.job, series.process] = source
    return jobs


class _Key:
    """Finds the groups of an answer that series belong to."""

    def __init__(self, files: Files, question: Question, answer: Answer) -> None:
        self.question, self.answer = question, answer
        self.key = question.key(files.found.labels)
        self.starts = run_starts(files.selected(question))

    def groups(self, table: Sequence[Series]) -> list[Group | None]:
        """Return the group of each series, None where it is not selected."""
        keys = (self.key(series) for series in table)
        named = (None if key is None else dict(zip(("run", "kind", *self.question.by), key, strict=True)) for key in keys)
        return [None if labels is None else tuple(labels[name] for name in self.answer.by) for labels in named]

    def inside(self, run: str, stamps_ns: Int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Return which of some stamps lie in the range that is asked for."""
        begin, end = self.question.begin, self.question.end
        inside = np.ones(len(stamps_ns), np.bool_)
        if begin is not None:
            inside &= stamps_ns > begin.epoch_ns(self.starts[run])
        if end is not None:
            inside &= stamps_ns <= end.epoch_ns(self.starts[run])
        return inside


def _of_bins(files: Files, question: Question, answer: Answer, places: Places, wanted: Sequence[Percentile]) -> dict[str, Float]:
    columns = {percentile.name: np.full(places.size, np.nan) for percentile in wanted}
    asked = files.answer(replace(question, step=answer.step_ns or "all"))
    for part in asked.parts:
        rows = part.take(np.flatnonzero(part.samples > 0))
        at = places.rows(rows.table, rows.series, rows.start_ns)
        kept = np.flatnonzero(at >= 0)
        for percentile in wanted:
            columns[percentile.name][at[kept]] = percentile_values(rows, percentile)[kept]
    return columns


def _of_samples(
    sources: dict[Job, Source], both: set[Job], key: _Key, places: Places, wanted: Sequence[Percentile]
) -> dict[str, Float]:
    pairs = list(_samples(sources, both, key, places))
    at = np.concatenate([np.zeros(0, np.int64), *(where for where, _ in pairs)])
    ordered = Sorted.of(at, np.concatenate([np.zeros(0, np.int64), *(values for _, values in pairs)]), places.size)
    return {percentile.name: ordered.nearest(percentile, carried=True) for percentile in wanted}


def _samples(sources: dict[Job, Source], both: set[Job], key: _Key, places: Places) -> Iterator[tuple[Int, Int]]:
    """Yield the table's row and the latency of single I/Os, log by log."""
    held = 0
    for job in sorted(both):
        source = sources[job]
        own = replace(source, context=replace(source.context, account=Account(path=str(source.path))))
        try:
            for chunk in events_of(own):
                window = window_start(chunk.end_ns, places.step_ns) if places.step_ns else chunk.end_ns
                at = places.rows(key.groups(chunk.table), np.asarray(chunk.series, np.int64), window)
                kept = np.flatnonzero((at >= 0) & key.inside(job[0], chunk.end_ns))
                held += len(kept)
                if held > MOST_SAMPLES:
                    raise UsageError(
                        f"--estimate {HISTOGRAM_NAME} holds at most {MOST_SAMPLES:,} I/Os: narrow it by --from, --to or --where"
                    )
                yield at[kept], chunk.latency_ns[kept]
        except InputError as error:
            raise InputError(error.reason, source.path) from None


MS = 1_000_000
SECOND = 1e9
CBT_NAME = "cbt"
COMPRESSED_TIMES = 16

Process = tuple[str, str, str, str]
Find = Callable[[Sequence[Series], Int, Int], Int]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one process: the table's row of each, its ms, direction and latency."""

    at: Int
    ms: Int
    direction: Int
    value: Float

    @property
    def summed(self) -> tuple[Int, Float]:
        """Return place and value of rows with those of equal ms and direction added."""
        order = np.lexsort((self.direction, self.ms, self.at))
        at, ms, direction, value = self.at[order], self.ms[order], self.direction[order], self.value[order]
        same = (at[1:] == at[:-1]) & (ms[1:] == ms[:-1]) & (direction[1:] == direction[:-1])
        new = np.flatnonzero(np.append(True, ~same)[: len(at)])
        return at[new], np.add.reduceat(value, new) if len(new) else value


def _together(parts: Sequence[_Rows]) -> _Rows:
    none = np.zeros(0, np.int64)
    return _Rows(
        np.concatenate([none, *(part.at for part in parts)]),
        np.concatenate([none, *(part.ms for part in parts)]),
        np.concatenate([none, *(part.direction for part in parts)]),
        np.concatenate([np.zeros(0), *(part.value for part in parts)]),
    )


@dataclass(slots=True)
class _Tally:
    """What the notes are made of: how many logs were read as what, and why others were not."""

    logs: int = 0
    made: int = 0
    counted: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    def notes(self) -> Iterator[str]:
        """Yield what a reader of the numbers must know."""
        for reason, count in sorted(self.faults.items()):
            yield f"{CBT_NAME}: {count} {plural(count, 'log')} left out: {reason}"
        if self.made:
            yield (
                f"{CBT_NAME}: {self.made} of {self.logs} jobs have no _clat log beside their histogram log: their rows are the "
                "means of its intervals, as log_avg_msec of that width would have logged them"
            )
        if self.counted:
            yield f"{CBT_NAME}: {self.counted} of {self.logs} jobs have no _iops log: weighted by their I/Os instead"


def cbt(files: Files, question: Question, answer: Answer, table: Table, places: Places, wanted: Sequence[Percentile]) -> Estimate:
    """Return what CBT reports for each row of a table; empty where the sources are not logs of fio."""
    tally = _Tally()
    processes = _processes(files, question, answer, tally)
    find = _finder(files, question, answer, places)
    names = ["mean", *(percentile.name for percentile in wanted)]
    columns = {name: np.full(places.size, np.nan) for name in names}
    hosts = sorted({process[:2] for process in processes})
    several = False
    for host in hosts:
        values = _of_host([sources for process, sources in processes.items() if process[:2] == host], find, places, wanted, tally)
        groups = np.unique(places.group[_there(values)])
        replaced = np.isin(places.group, groups)
        several |= bool((_there(columns) & replaced).any())
        for name in names:
            columns[name] = np.where(replaced, values[name], columns[name])
    columns["mean"] /= np.asarray(table.columns["end_ns"] - table.columns["start_ns"], np.float64) / SECOND
    notes = [*tally.notes()]
    if several:
        notes.append(
            f"{CBT_NAME}: hosts are not combined: of each group the last by name is shown, as CBT keeps the last it reads"
        )
    if not processes:
        notes.append(f"{CBT_NAME}: cannot be computed here: needs logs of fio, of completion latency (--where kind=completion)")
    return Estimate(CBT_NAME, columns, tuple(notes))


def effort(files: Files, question: Question) -> int | None:
    """Return about how many bytes of `_clat` logs `cbt` reads, compressed ones as what they hold; None where one is missing."""
    sources = [source for process in _processes(files, question, None, _Tally()).values() for source in process]
    paths = [source.path if source.format == RAW else log_beside(source.path, LATENCIES) for source in sources]
    known = [path for path in paths if path is not None]
    if not known or len(known) < len(files.selected(question)):
        return None
    return sum(path.stat().st_size * (COMPRESSED_TIMES if path.suffix in COMPRESSED else 1) for path in known)


def _there(columns: dict[str, Float]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return ~np.isnan(columns["mean"])


def _processes(files: Files, question: Question, answer: Answer | None, tally: _Tally) -> dict[Process, list[Source]]:
    """Return the sources that are logs of fio's completion latencies, by (run, host, volume, process)."""
    processes: dict[Process, list[Source]] = {}
    for source in files.selected(question):
        series = source.context.series
        if source.format not in (HIST, RAW):
            tally.faults[f"{source.format} is not a log that CBT reads"] += 1
        elif series.kind != COMPLETION or (answer is not None and COMPLETION not in answer.kind.split(", ")):
            continue
        else:
            processes.setdefault((series.run, series.host, series.volume, series.process), []).append(source)
    return processes


def _finder(files: Files, question: Question, answer: Answer, places: Places) -> Find:
    """Return the function that finds the table's row of values of some series (by code) that are stamped at some ns."""
    key = question.key(files.found.labels)
    starts = run_starts(files.selected(question))

    def find(series: Sequence[Series], codes: Int, stamps_ns: Int) -> Int:
        groups: list[Group | None] = []
        for stream in series:
            group = key(stream)
            labels = None if group is None else dict(zip(("run", "kind", *question.by), group, strict=True))
            groups.append(None if labels is None else tuple(labels[name] for name in answer.by))
        window = window_start(stamps_ns, places.step_ns) if places.step_ns else stamps_ns
        at = places.rows(groups, codes, window)
        start = starts[series[0].run]
        begin = question.begin.epoch_ns(start) if question.begin else None
        end = question.end.epoch_ns(start) if question.end else None
        inside = np.ones(len(at), np.bool_)
        if begin is not None:
            inside &= stamps_ns > begin
        if end is not None:
            inside &= stamps_ns <= end
        return np.where(inside, at, -1)

    return find


def _of_host(
    processes: Sequence[Sequence[Source]], find: Find, places: Places, wanted: Sequence[Percentile], tally: _Tally
) -> dict[str, Float]:
    """Return the means over the processes of a host, weighted by their rates."""
    names = ["mean", *(percentile.name for percentile in wanted)]
    weighted, weights = {name: np.zeros(places.size) for name in names}, np.zeros(places.size)
    plain: dict[str, list[tuple[Int, Float]]] = {name: [] for name in names}
    for sources in processes:
        rows, rate = _of_process(sources, find, places.size, tally)
        at, values = rows.summed
        ordered = Sorted.of(at, values, places.size)
        columns = {
            "mean": np.full(places.size, np.nan),
            **{percentile.name: ordered.interpolated(percentile) for percentile in wanted},
        }
        columns["mean"][ordered.rows] = np.bincount(at, weights=values, minlength=places.size)[ordered.rows]
        there = np.flatnonzero(_there(columns))
        weights[there] += rate[there]
        for name in names:
            weighted[name][there] += columns[name][there] * rate[there]
            plain[name].append((there, columns[name][there]))
    averages = {}
    for name in names:
        at = np.concatenate([np.zeros(0, np.int64), *(where for where, _ in plain[name])])
        means = means_of(at, np.concatenate([np.zeros(0), *(values for _, values in plain[name])]), places.size)
        np.divide(weighted[name], weights, out=means, where=weights > 0)
        averages[name] = means
    return averages


def _of_process(sources: Sequence[Source], find: Find, size: int, tally: _Tally) -> tuple[_Rows, Float]:
    """Return the rows of all jobs of a process, and the sum of its rates at each row of the table."""
    parts: list[_Rows] = []
    rate = np.zeros(size)
    seen: set[Path] = set()
    for source in sources:
        path = source.path if source.format == RAW else log_beside(source.path, LATENCIES)
        if path in seen:
            continue
        tally.logs += 1
        if path is not None:
            seen.add(path)
        try:
            made, count = _logged(source, path, find, size) if path else (None, None)
            rates = log_beside(source.path, RATES)
            if made is None or (count is None and rates is None):
                tally.made += made is None
                held, counted = _of_intervals(source, find, size)
                made, count = made or held, counted if count is None else count
            if rates is not None:
                count = _rates(source, rates, find, size)
            tally.counted += rates is None
            rate += 0 if count is None else count
        except InputError as error:
            tally.faults[error.reason] += 1
            continue
        parts.append(made)
    return _together(parts), rate


def _series_of(source: Source) -> list[Series]:
    return [source.context.series.replaced(op=op) for op in OPS]


def _placed(source: Source, rows: averaged_log.Rows, find: Find) -> Int:
    """Return the table's row of each row of a log, -1 where it has none."""
    context = source.context
    base = (0 if rows.unix else context.zero.epoch_ns or 0) + context.offset_ns
    known = (rows.direction >= 0) & (rows.direction < len(OPS))
    at = find(_series_of(source), np.where(known, rows.direction, 0), rows.stamp_ms * MS + base)
    return np.where(known, at, -1)


def _logged(source: Source, path: Path, find: Find, size: int) -> tuple[_Rows, Float | None]:
    """Return the rows of a `_clat` log, and how many I/Os they are where each is one."""
    rows = averaged_log.rows_of(path, source.context, latencies=True)
    at = _placed(source, rows, find)
    kept = np.flatnonzero(at >= 0)
    logged = _Rows(at[kept], rows.stamp_ms[kept], rows.direction[kept], rows.value[kept].astype(np.float64))
    return logged, None if rows.averaged else np.bincount(logged.at, minlength=size).astype(np.float64)


def _rates(source: Source, path: Path, find: Find, size: int) -> Float:
    """Return the sum of the rows of an `_iops` log at each row of the table."""
    rows = averaged_log.rows_of(path, source.context, latencies=False)
    at = _placed(source, rows, find)
    kept = np.flatnonzero(at >= 0)
    return np.bincount(at[kept], weights=rows.value[kept], minlength=size).astype(np.float64)


def _of_intervals(source: Source, find: Find, size: int) -> tuple[_Rows, Float]:
    """Return the means of a histogram log's intervals as rows, and how many I/Os they hold; of a raw log how many it has."""
    own = replace(source, context=replace(source.context, account=Account(path=str(source.path))))
    parts: list[_Rows] = []
    count = np.zeros(size)
    for chunk in read(own):
        rows = chunk.take(np.flatnonzero(chunk.samples > 0))
        series = rows.table
        at = find(series, rows.series, rows.end_ns) if len(rows) else rows.series
        kept = np.flatnonzero(at >= 0)
        rows, at = rows.take(kept), at[kept]
        direction = np.array([OPS.index(stream.op) if stream.op in OPS else 0 for stream in series], np.int64)[rows.series]
        parts.append(_Rows(at, rows.end_ns // MS, direction, extremes(rows)[2]))
        count += np.bincount(at, weights=rows.samples, minlength=size)
    return _together(parts), count
