"""What averaging would have said: the usual wrong ways, worked out from the same data and held against the exact columns.

    mean-of-percentiles   of each series the percentile of each window, then their plain mean
    mean-of-means         of each series the mean of each stored window, then the percentile of these means
    cbt                   the time series of CBT's post-processing (cbt.py)
    histogram             histogram logs against the single I/Os of the same jobs (logs.py)

docs/explanation/estimates.md has every formula. Nothing here changes an exact column: estimates stand beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ingest.core.errors import UsageError
from ingest.core.intervals import Int, Intervals
from ingest.core.ranks import Percentile, Ranked, extremes
from ingest.core.series import IN_FLIGHT, LABELS, Group, run_and_kind
from ingest.core.timing import format_duration
from ingest.query.estimates.rows import Estimate, Float, Places, Sorted, means_of
from ingest.query.origin import LOGS, Origin, needed
from ingest.query.question import Answer, Question, shape_of
from ingest.query.table import Table

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
    logs = {name: needed(origin, LOGS, f"--estimate {name}") for name in names if name in OF_FILES}
    places = Places(table, answer.step_ns)
    estimates = []
    for name in names:
        if name == MEAN_OF_PERCENTILES:
            fine = by_series(origin, question, answer)
            estimates.append(Estimate(name, mean_of_percentiles(fine, answer.by, places, wanted), (_averaged(fine),)))
        elif name == MEAN_OF_MEANS:
            estimates.append(mean_of_means(origin, question, answer, places, wanted))
        elif name == CBT:
            from ingest.query.estimates.cbt import cbt

            estimates.append(cbt(logs[name], question, answer, table, places, wanted))
        else:
            from ingest.query.estimates.logs import histogram

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
