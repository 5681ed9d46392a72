"""What averaging would have said: the usual wrong ways, worked out from the same data and held against the exact columns.

What averaging would have said: the usual wrong ways, worked out from the same data and held against the exact columns.

    mean-of-percentiles   of each series the percentile of each window, then their plain mean
    weighted-mean         the same, weighted by the completions of each series: the first method of the paper on distributed fio
    mean-of-means         of each series the mean of each stored window, then the percentile of these means
    cbt                   the time series of CBT's post-processing (cbt.py)
    histogram             histogram logs against the single I/Os of the same jobs (logs.py)

docs/explanation/estimates.md says who computes what. Nothing here changes an exact column: estimates stand beside them.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ingest.core.errors import InputError, UsageError, plural
from ingest.core.grid import MS, SECOND, window_start
from ingest.core.intervals import Int, Intervals
from ingest.core.labels import IN_FLIGHT, LABELS, OPS, Group, Series
from ingest.core.layout import Float
from ingest.core.quantiles import Percentile, Ranked, extremes, percentile_values
from ingest.core.units import format_duration
from ingest.query.aggregate import run_starts
from ingest.query.files import Files
from ingest.query.origin import LOGS, Origin, require
from ingest.query.question import Answer, Question, shape_of
from ingest.query.table import Table, groups_in
from ingest.read import events_of, read
from ingest.read.account import Account
from ingest.read.fio import averaged_log
from ingest.read.fio.averaged_log import LATENCIES, RATES, log_beside
from ingest.read.format_names import HIST, RAW
from ingest.read.sources import COMPLETION, PREFER_HIST, PREFER_RAW, Source
from ingest.read.text import COMPRESSED, size_of

# What estimators share: where their values stand in the exact table, and percentiles of plain values.


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
        self.size = len(table)
        self.step_ns = step_ns
        self.known: dict[Group, int] = {}
        self.group = np.array([self.known.setdefault(group, len(self.known)) for group in groups_in(table)], np.int64)
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


def means_of(at: Int, values: Int | Float, size: int, counts: Int | None = None) -> Float:
    """Return the mean of the values at each row, weighted by `counts` where these are given; NaN where there is none."""
    weight = np.bincount(at, weights=counts, minlength=size)
    total = np.bincount(at, weights=values if counts is None else values * counts, minlength=size)
    means: Float = np.full(size, np.nan)
    np.divide(total, weight, out=means, where=weight > 0)
    return means


class Sorted:
    """Values by row, in order of size within each: what ranks and quantiles are looked up in."""

    def __init__(self, at: Int, values: Int | Float, size: int) -> None:
        """Take the values at each row (not -1)."""
        order = np.lexsort((values, at))
        self.rows, self.first, self.count = np.unique(at[order], return_index=True, return_counts=True)
        self.values, self.size = values[order], size

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


MEAN_OF_PERCENTILES, WEIGHTED_MEAN, MEAN_OF_MEANS = "mean-of-percentiles", "weighted-mean", "mean-of-means"
CBT, HISTOGRAM = "cbt", "histogram"
ESTIMATORS = (CBT, MEAN_OF_MEANS, MEAN_OF_PERCENTILES, WEIGHTED_MEAN, HISTOGRAM)
OF_FILES = (CBT, HISTOGRAM)
UNNAMED = ("run", "kind")
NO_ROW = np.zeros(0, np.int64)


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
        if name in (MEAN_OF_PERCENTILES, WEIGHTED_MEAN):
            fine, weighted = by_series(origin, question, answer), name == WEIGHTED_MEAN
            series = len({part.table[code] for part in fine.parts for code in np.unique(part.series).tolist()})
            mean, counts = ("mean", "weighted by their counts") if weighted else ("plain mean", "whatever their counts")
            said = f"{name}: the {mean} of the percentiles of {series:,} series, {counts}"
            columns = mean_of_percentiles(fine, answer.by, places, wanted, weighted=weighted)
            estimates.append(Estimate(name, columns, (said,)))
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
    return origin.answer(replace(question, by=labels, step=answer.step_ns or "all", force=True))


def mean_of_percentiles(
    fine: Answer, by: Sequence[str], places: Places, wanted: Sequence[Percentile], *, weighted: bool = False
) -> dict[str, Float]:
    """Return the mean of the percentiles of all series of `fine` that have samples in a window, for each row.

    The plain mean, or `weighted` by completions. Of each series it is the nearest rank however few samples there are: what
    averages percentiles does not look whether they carry it.
    """
    at, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    values = {percentile.name: [np.zeros(0)] for percentile in wanted}
    for part in fine.parts:
        rows = part.take(np.flatnonzero(part.samples > 0))
        table_rows = places.rows(groups_of(rows, fine.by, by), rows.series, rows.start_ns)
        kept = np.flatnonzero(table_rows >= 0)
        ranked = Ranked(rows)
        at.append(table_rows[kept])
        counts.append(rows.samples[kept])
        for percentile in wanted:
            nearest = ranked.values(np.arange(len(rows)), percentile.ranks(ranked.samples)).astype(np.float64)
            if percentile.top == 100 * percentile.bottom and rows.exact is not None:
                nearest = np.where(rows.exact.known, rows.exact.max_ns, nearest)
            values[percentile.name].append(nearest[kept])
    where, weights = np.concatenate(at), np.concatenate(counts) if weighted else None
    return {name: means_of(where, np.concatenate(chunks), places.size, weights) for name, chunks in values.items()}


def mean_of_means(origin: Origin, question: Question, answer: Answer, places: Places, wanted: Sequence[Percentile]) -> Estimate:
    """Return percentiles of the means of each series over each stored window: of what is left where only means were kept.

    Where windows are asked for that the stored step does not divide, the means are those of the windows asked for.
    """
    every = every_label(question)
    means = _Means(origin.windows(replace(question, by=every)), every)
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
    ordered = Sorted(at, means, size)  # in order, so that a sum does not hang on who came first
    mean = means_of(np.repeat(ordered.rows, ordered.count), ordered.values, size)
    return {"mean": mean, **{percentile.name: ordered.nearest(percentile) for percentile in wanted}}


def _in_order(*columns: Int) -> tuple[Int, Int]:
    """Return the order of rows by some columns, and where in it each group of equal ones begins."""
    order = np.lexsort(columns[::-1])
    unlike = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    return order, np.flatnonzero(np.append(True, unlike)[: len(order)])


class _Means:
    """Means of series over windows of `width_ns`: `value[i]` of `keys[code[i]]` (run, kind, then labels) from `start[i]` on."""

    def __init__(self, parts: Iterable[Intervals[Group]], labels: Sequence[str], width_ns: int | None = None) -> None:
        """Take windows under run, kind and labels, of which only sums are kept; of the widest, unless a width is given."""
        known: dict[Group, int] = {}
        sums, widest = [(NO_ROW, NO_ROW, np.zeros(0), NO_ROW)], 0
        for part in parts:
            rows = part.take(np.flatnonzero(part.samples > 0))
            if not len(rows):
                continue
            codes = np.array([known.setdefault(key, len(known)) for key in rows.table], np.int64)
            widest = max(widest, int((rows.end_ns - rows.start_ns).max()))
            sums.append((codes[rows.series], rows.start_ns, extremes(rows)[2] * rows.samples, rows.samples))
        self.keys, self.labels, self.width_ns = list(known), labels, widest if width_ns is None else width_ns
        code, start, total, count = (np.concatenate(column) for column in zip(*sums, strict=True))
        start = start // self.width_ns * self.width_ns if self.width_ns else start
        order, new = _in_order(code, start)
        self.code, self.start = code[order][new], start[order][new]
        self.value = np.zeros(0)
        if len(new):
            self.value = np.add.reduceat(total[order], new) / np.add.reduceat(count[order], new)

    @classmethod
    def of_answer(cls, fine: Answer, step_ns: int) -> _Means:
        """Return the means of an answer's windows by series."""
        kind = fine.by.index("kind") if "kind" in fine.by else None
        run = fine.by.index("run")
        labels = tuple(name for name in fine.by if name not in UNNAMED)
        places = [fine.by.index(name) for name in labels]

        def full(key: Group) -> Group:
            return key[run], fine.kind if kind is None else key[kind], *(key[place] for place in places)

        return cls((part.relabelled(full) for part in fine.parts), labels, step_ns)

    def groups(self, question: Question, by: Sequence[str]) -> list[Group | None]:
        """Return the group that each key belongs to in an answer by some labels; None where its kind is not in it."""
        kinds: dict[str, set[str]] = {}
        for run, kind, *_ in self.keys:
            kinds.setdefault(run, set()).add(kind)
        taken = shape_of(question, kinds).taken if kinds else {}
        places = [(*UNNAMED, *self.labels).index(name) for name in by]
        return [tuple(key[place] for place in places) if key[1] in taken[key[0]] else None for key in self.keys]


def groups_of(rows: Intervals[Group], labels: Sequence[str], by: Sequence[str]) -> list[Group]:
    """Return the group that each key of an answer's rows belongs to, by fewer of its labels."""
    places = [tuple(labels).index(name) for name in by]
    return [tuple(key[place] for place in places) for key in rows.table]


# Histogram logs against the single I/Os of the same jobs: how far the percentile of the one lies from that of the other.
#
# What a histogram log loses is the width of its bins, and within a row when each I/O completed: rows that cross the edge of a
# window are cut by time. Where fio also logged each I/O (`write_lat_log` without `log_avg_msec`), both can be seen.


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
            f"{HISTOGRAM}: cannot be computed here: needs jobs that have both a histogram log and a log of single I/Os "
            "(write_lat_log without log_avg_msec), of completion latency (--where kind=completion)"
        )
        return Estimate(HISTOGRAM, empty, (note,), empty)
    lone = {**bins, **samples}
    alone = [source for job, source in lone.items() if job not in both]
    find = _Finder(files, question, answer, places)
    partial = {group for source in alone for group in find.groups([source.context.series.replaced(op=op) for op in OPS])}
    complete = np.array([group not in partial for group in places.known], np.bool_)
    binned, exact = _of_bins(by_bins, question, answer, places, wanted), _of_samples(samples, both, find, wanted)
    kept = complete[places.group] if places.size else np.zeros(0, np.bool_)
    against = "percentiles of histogram logs against those of each I/O (p.._samples)"
    notes = [f"{HISTOGRAM}: {against}, of {len(both)} jobs that have both"]
    if alone:
        notes.append(f"{HISTOGRAM}: {len(alone)} of {len(lone)} jobs have one of the two logs only: their groups are empty")
    return Estimate(
        HISTOGRAM,
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


class _Finder:
    """Finds the rows of a table that values of series belong to."""

    def __init__(self, files: Files, question: Question, answer: Answer, places: Places) -> None:
        self._question, self._by = question, answer.by
        self._key = question.key(files.found.labels)
        self._starts = run_starts(files.selected(question))
        self.places = places

    def groups(self, table: Sequence[Series]) -> list[Group | None]:
        """Return the group of each series, None where it is not selected."""
        at = [(*UNNAMED, *self._question.by).index(name) for name in self._by]
        return [None if (key := self._key(series)) is None else tuple(key[place] for place in at) for series in table]

    def rows(self, series: Sequence[Series], codes: Int, stamps_ns: Int) -> Int:
        """Return the table's row of values of some series of a run (by code) that are stamped at some ns; -1 where none is."""
        step = self.places.step_ns
        at = self.places.rows(self.groups(series), codes, window_start(stamps_ns, step) if step else stamps_ns)
        begin, end = self._question.edges(series[0].run, self._starts[series[0].run])
        inside = np.ones(len(at), np.bool_)
        if begin is not None:
            inside &= stamps_ns > begin
        if end is not None:
            inside &= stamps_ns <= end
        return np.where(inside, at, -1)


def _of_bins(files: Files, question: Question, answer: Answer, places: Places, wanted: Sequence[Percentile]) -> dict[str, Float]:
    columns = {percentile.name: np.full(places.size, np.nan) for percentile in wanted}
    asked = files.answer(replace(question, step=answer.step_ns or "all", force=True))
    for part in asked.parts:
        rows = part.take(np.flatnonzero(part.samples > 0))
        at = places.rows(rows.table, rows.series, rows.start_ns)
        kept = np.flatnonzero(at >= 0)
        for percentile in wanted:
            columns[percentile.name][at[kept]] = percentile_values(rows, percentile)[kept]
    return columns


def _of_samples(sources: dict[Job, Source], both: set[Job], find: _Finder, wanted: Sequence[Percentile]) -> dict[str, Float]:
    pairs = [(NO_ROW, NO_ROW), *_samples(sources, both, find)]
    at, values = (np.concatenate(column) for column in zip(*pairs, strict=True))
    ordered = Sorted(at, values, find.places.size)
    return {percentile.name: ordered.nearest(percentile, carried=True) for percentile in wanted}


def _samples(sources: dict[Job, Source], both: set[Job], find: _Finder) -> Iterator[tuple[Int, Int]]:
    """Yield the table's row and the latency of single I/Os, log by log."""
    held = 0
    for job in sorted(both):
        source = sources[job]
        try:
            for chunk in events_of(_unnoted(source)):
                at = find.rows(chunk.table, np.asarray(chunk.series, np.int64), chunk.end_ns)
                kept = np.flatnonzero(at >= 0)
                held += len(kept)
                if held > MOST_SAMPLES:
                    raise UsageError(
                        f"--estimate {HISTOGRAM} holds at most {MOST_SAMPLES:,} I/Os: narrow it by --from, --to or --where"
                    )
                yield at[kept], chunk.latency_ns[kept]
        except InputError as error:
            raise InputError(error.reason, source.path) from None


def _unnoted(source: Source) -> Source:
    """Return a source whose reading is noted in no account of others."""
    return replace(source, context=replace(source.context, account=Account(path=str(source.path))))


COMPRESSED_TIMES = 16

Process = tuple[str, str, str, str]


class _Rows(NamedTuple):
    """Rows of one process: the table's row of each, its ms, direction and latency."""

    at: Int
    ms: Int
    direction: Int
    value: Float


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
            yield f"{CBT}: {count} {plural(count, 'log')} left out: {reason}"
        if self.made:
            yield (
                f"{CBT}: {self.made} of {self.logs} jobs have no _clat log beside their histogram log: their rows are the "
                "means of its intervals, as log_avg_msec of that width would have logged them"
            )
        if self.counted:
            yield f"{CBT}: {self.counted} of {self.logs} jobs have no _iops log: weighted by their I/Os instead"


def cbt(files: Files, question: Question, answer: Answer, table: Table, places: Places, wanted: Sequence[Percentile]) -> Estimate:
    """Return what CBT reports for each row of a table; empty where the sources are not logs of fio."""
    tally = _Tally()
    processes = _processes(files, question, answer, tally)
    find = _Finder(files, question, answer, places)
    names = ["mean", *(percentile.name for percentile in wanted)]
    columns = {name: np.full(places.size, np.nan) for name in names}
    hosts = sorted({process[:2] for process in processes})
    several = False
    for host in hosts:
        values = _of_host([sources for process, sources in processes.items() if process[:2] == host], find, names, wanted, tally)
        replaced = np.isin(places.group, places.group[~np.isnan(values["mean"])])
        several |= bool((~np.isnan(columns["mean"]) & replaced).any())
        for name in names:
            columns[name] = np.where(replaced, values[name], columns[name])
    columns["mean"] /= np.asarray(table.columns["end_ns"] - table.columns["start_ns"], np.float64) / SECOND
    notes = [*tally.notes()]
    if several:
        notes.append(f"{CBT}: hosts are not combined: of each group the last by name is shown, as CBT keeps the last it reads")
    if not processes:
        notes.append(f"{CBT}: cannot be computed here: needs logs of fio, of completion latency (--where kind=completion)")
    return Estimate(CBT, columns, tuple(notes))


def effort(files: Files, question: Question) -> int | None:
    """Return about how many bytes of `_clat` logs `cbt` reads, compressed ones as what they hold; None where one is missing."""
    sources = [source for process in _processes(files, question, None, _Tally()).values() for source in process]
    paths = [source.path if source.format == RAW else log_beside(source.path, LATENCIES) for source in sources]
    known = [path for path in paths if path is not None]
    if not known or len(known) < len(files.selected(question)):
        return None
    return sum(size_of(path) * (COMPRESSED_TIMES if path.suffix in COMPRESSED else 1) for path in known)


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


def _of_host(
    processes: Sequence[Sequence[Source]], find: _Finder, names: Sequence[str], wanted: Sequence[Percentile], tally: _Tally
) -> dict[str, Float]:
    """Return the means over the processes of a host, weighted by their rates."""
    size = find.places.size
    weighted, weights = {name: np.zeros(size) for name in names}, np.zeros(size)
    plain: dict[str, list[tuple[Int, Float]]] = {name: [(NO_ROW, np.zeros(0))] for name in names}
    for sources in processes:
        rows, rate = _of_process(sources, find, tally)
        order, new = _in_order(rows.at, rows.ms, rows.direction)  # those of one ms and direction are added
        at, values = rows.at[order][new], np.add.reduceat(rows.value[order], new) if len(new) else rows.value
        ordered = Sorted(at, values, size)
        columns = {"mean": np.full(size, np.nan), **{percentile.name: ordered.interpolated(percentile) for percentile in wanted}}
        columns["mean"][ordered.rows] = np.bincount(at, weights=values, minlength=size)[ordered.rows]
        there = np.flatnonzero(~np.isnan(columns["mean"]))
        weights[there] += rate[there]
        for name in names:
            weighted[name][there] += columns[name][there] * rate[there]
            plain[name].append((there, columns[name][there]))
    averages = {}
    for name in names:
        at, values = (np.concatenate(column) for column in zip(*plain[name], strict=True))
        averages[name] = means_of(at, values, size)
        np.divide(weighted[name], weights, out=averages[name], where=weights > 0)
    return averages


def _of_process(sources: Sequence[Source], find: _Finder, tally: _Tally) -> tuple[_Rows, Float]:
    """Return the rows of all jobs of a process, and the sum of its rates at each row of the table."""
    parts = [_Rows(NO_ROW, NO_ROW, NO_ROW, np.zeros(0))]
    rate = np.zeros(find.places.size)
    seen: set[Path] = set()
    for source in sources:
        path = source.path if source.format == RAW else log_beside(source.path, LATENCIES)
        if path in seen:
            continue
        tally.logs += 1
        if path is not None:
            seen.add(path)
        try:
            made, count = _logged(source, path, find) if path else (None, None)
            rates = log_beside(source.path, RATES)
            if made is None or (count is None and rates is None):
                tally.made += made is None
                held, counted = _of_intervals(source, find)
                made, count = made or held, counted if count is None else count
            if rates is not None:
                rows, at, kept = _placed(source, rates, find, latencies=False)
                count = np.bincount(at, weights=rows.value[kept], minlength=find.places.size).astype(np.float64)
            tally.counted += rates is None
            rate += 0 if count is None else count
        except InputError as error:
            tally.faults[error.reason] += 1
            continue
        parts.append(made)
    return _Rows(*(np.concatenate(column) for column in zip(*parts, strict=True))), rate


def _placed(source: Source, path: Path, find: _Finder, *, latencies: bool) -> tuple[averaged_log.Rows, Int, Int]:
    """Return the rows of a log of averages, the table's rows of those that have one, and which these are."""
    context = source.context
    rows = averaged_log.rows_of(path, context, latencies=latencies)
    base = (0 if rows.unix else context.zero.epoch_ns or 0) + context.offset_ns
    known = (rows.direction >= 0) & (rows.direction < len(OPS))
    series = [context.series.replaced(op=op) for op in OPS]
    at = np.where(known, find.rows(series, np.where(known, rows.direction, 0), rows.stamp_ms * MS + base), -1)
    kept = np.flatnonzero(at >= 0)
    return rows, at[kept], kept


def _logged(source: Source, path: Path, find: _Finder) -> tuple[_Rows, Float | None]:
    """Return the rows of a `_clat` log, and how many I/Os they are where each is one."""
    rows, at, kept = _placed(source, path, find, latencies=True)
    logged = _Rows(at, rows.stamp_ms[kept], rows.direction[kept], rows.value[kept].astype(np.float64))
    return logged, None if rows.averaged else np.bincount(at, minlength=find.places.size).astype(np.float64)


def _of_intervals(source: Source, find: _Finder) -> tuple[_Rows, Float]:
    """Return the means of a histogram log's intervals as rows, and how many I/Os they hold; of a raw log how many it has."""
    parts = [_Rows(NO_ROW, NO_ROW, NO_ROW, np.zeros(0))]
    count = np.zeros(find.places.size)
    for chunk in read(_unnoted(source)):
        rows = chunk.take(np.flatnonzero(chunk.samples > 0))
        at = find.rows(rows.table, rows.series, rows.end_ns) if len(rows) else rows.series
        kept = np.flatnonzero(at >= 0)
        rows, at = rows.take(kept), at[kept]
        direction = np.array([OPS.index(stream.op) if stream.op in OPS else 0 for stream in rows.table], np.int64)[rows.series]
        parts.append(_Rows(at, rows.end_ns // MS, direction, extremes(rows)[2]))
        count += np.bincount(at, weights=rows.samples, minlength=find.places.size)
    return _Rows(*(np.concatenate(column) for column in zip(*parts, strict=True))), count
