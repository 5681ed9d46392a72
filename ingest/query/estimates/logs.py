"""Histogram logs against the single I/Os of the same jobs: how far the percentile of the one lies from that of the other.

What a histogram log loses is the width of its bins, and within a row when each I/O completed: rows that cross the edge of a
window are cut by time. Where fio also logged each I/O (`write_lat_log` without `log_avg_msec`), both can be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ingest.core.errors import InputError, UsageError
from ingest.core.grid import window_start
from ingest.core.intervals import Int
from ingest.core.ranks import Percentile, percentile_values
from ingest.core.series import OPS, Group, Series
from ingest.query.estimates.rows import Estimate, Float, Places, Sorted
from ingest.query.files import Files
from ingest.query.question import Answer, Question
from ingest.query.summed import run_starts
from ingest.read import events_of
from ingest.read.account import Account
from ingest.read.format_names import HIST, RAW
from ingest.read.sources import COMPLETION, PREFER_HIST, PREFER_RAW, Source

NAME = "histogram"
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
            f"{NAME}: cannot be computed here: needs jobs that have both a histogram log and a log of single I/Os "
            "(write_lat_log without log_avg_msec), of completion latency (--where kind=completion)"
        )
        return Estimate(NAME, empty, (note,), empty)
    lone = {**bins, **samples}
    alone = [source for job, source in lone.items() if job not in both]
    key = _Key(files, question, answer)
    partial = {group for source in alone for group in key.groups([source.context.series.replaced(op=op) for op in OPS])}
    complete = np.array([group not in partial for group in places.known], np.bool_)
    binned, exact = _of_bins(by_bins, question, answer, places, wanted), _of_samples(samples, both, key, places, wanted)
    kept = complete[places.group] if places.size else np.zeros(0, np.bool_)
    notes = [f"{NAME}: percentiles of histogram logs against those of each I/O (p.._samples), of {len(both)} jobs that have both"]
    if alone:
        notes.append(f"{NAME}: {len(alone)} of {len(lone)} jobs have one of the two logs only: their groups are empty")
    return Estimate(
        NAME,
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
                        f"--estimate {NAME} holds at most {MOST_SAMPLES:,} I/Os: narrow it by --from, --to or --where"
                    )
                yield at[kept], chunk.latency_ns[kept]
        except InputError as error:
            raise InputError(error.reason, source.path) from None
