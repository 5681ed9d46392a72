"""fio's JSON documents -> intervals: with bins (json+, finished or appended), or means alone (plain JSON).

fio's JSON documents -> intervals: one of a finished run, or the differences of those that a running fio appends.

    fio --status-interval=1 --output-format=json+ --output=out.json      (3.33: a document a second, then the last one)

Each document counts from the start of the run, so the difference of two that follow each other is what was done between
them: that is how a stock fio can be watched. Traps, and what is done:

* another run may have been appended (`successive`). Its intervals count from its own start, in a further segment where they
  would lie over those of a run before;
* a document may stand in the file twice, also the last one of a run: it counts once;
* runtimes of a job and of the run are rounded apart by some ms: an interval begins where the one before it of the same
  series ended, and never ends before that.

fio's plain JSON (`--output-format=json`): no bins, one mean of the whole run for each job, op and kind of latency.

    "clat_ns" : { "min" : 10749, "max" : 9310767, "mean" : 498376.300466, "N" : 1501, "percentile" : { "99.000000" : 4554752 } }

Each is one row without bins over the run, of the kinds `completion.mean`, `total.mean` and `submission.mean`: count, mean,
minimum, maximum and bytes are exact. Percentiles that fio printed are of one job and cannot be merged: they go into the
account as they are. Jobs whose averaged logs are read as well (`described`) are left out here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ingest.core.coverage import Caveat, Missing, WholeRow, labels_of
from ingest.core.documents import told_exact
from ingest.core.errors import InputError
from ingest.core.intervals import Exact, Intervals, concatenate, one_row, total
from ingest.core.labels import Series, mean_kind
from ingest.core.layout import NO_BINS
from ingest.read.context import Context, Summary
from ingest.read.fio.clock import MS
from ingest.read.fio.json_output import Document, Job, documents, no_document
from ingest.read.fio.names import parse_log_name
from ingest.read.fio.runs import another_run, began_ms, counts_any, mark_of, measured, note_several_runs, runs_in

WITHOUT_BINS, NO_BINS_HERE = "runs-without-bins", "a run without bins beside others that have them: its I/Os are missing"
WITH_BINS = "run fio with --output-format=json+, or keep such runs in a file of their own to have their means"
DAMAGED, FEWER = "bins-damaged", "its bins hold fewer I/Os than fio counts (N): a part of it is gone"
MORE = "its bins hold more I/Os than fio counts (N): it was damaged"
KEEP_WHOLE = "take the file anew from where fio wrote it"
EXACT_BELOW = 1_000_000
AGREE_NS = 5 * MS  # that the end of a run and the start of the next are rounded apart by
AGAIN, ELSEWHERE = "stands in the file twice", "a run that other files are read for"


def read(path: Path, context: Context) -> Iterator[Intervals[Series]]:
    """Yield one interval per job, op and kind for a finished run, or per consecutive pair of appended documents.

    Bins are fio's own (error 1/128); min, max and mean are exact in the interval of a finished run. Each document counts
    as one row of the account. Raises InputError if no document has bins.
    """
    account = context.account
    rejected: list[tuple[str, int]] = []
    differences = Differences(context)
    number = -1
    for number, document in enumerate(documents(path, rejected)):
        if any(first <= number <= last for first, last in context.left_out):
            differences.leave_out(document)
            continue
        if (chunk := differences.take(document)) is not None:
            yield chunk
    for reason, line in rejected:
        account.reject(reason, [line])
    if number < 0:
        raise no_document(path, rejected)
    if not account.samples:
        raise InputError("fio JSON without bins: run fio with --output-format=json+ to have its histograms", path)


class Differences:
    """Takes the documents of one file in order and gives what was done between them. `previous` is the last one taken."""

    def __init__(self, context: Context, previous: Document | None = None, state: Mapping[str, Any] | None = None) -> None:
        self.previous = previous
        self._context = context
        self._left_out = set[int]()
        state = state or {}
        self._segment = int(state.get("segment", 0))
        self._runs = int(state.get("runs", 1))
        self._first_ms: int | None = state.get("first_ms")
        self._shift_ms = int(state.get("shift_ms", 0))
        # Of runs that are over a state keeps the last documents alone: those of a status interval may be many.
        self._ended: list[str] = list(state.get("ended", ()))
        self._ends = {Series(*labels): int(end) for *labels, end in state.get("ends", ())}

    def state(self) -> dict[str, Any]:
        """Return the state that the documents to come need beside the last one, as values that JSON can hold."""
        ends = [[*(getattr(series, name) for name in Series.__slots__), end] for series, end in self._ends.items()]
        runs = {"runs": self._runs, "ended": self._ended, "first_ms": self._first_ms, "shift_ms": self._shift_ms}
        return {"segment": self._segment, "ends": ends, **runs}

    def leave_out(self, document: Document) -> None:
        """Pass over a document of a run that something else is read for, and over copies of it."""
        self._left_out.add(hash(measured(document)))
        self._context.account.skip(ELSEWHERE, 1)

    def _again(self, document: Document) -> bool:
        """Return whether a document came before: just before, or as the last one of a run and is no later state of this one.

        No others are known to a watch that goes on: documents of a status interval that are there twice are a run of their own.
        """
        mine, previous = measured(document), self.previous
        if hash(mine) in self._left_out or (previous is not None and mine == measured(previous)):
            return True
        if not self._ended or mark_of(document) not in self._ended:
            return False
        return previous is None or bool(another_run(previous, document))

    def take(self, document: Document) -> Intervals[Series] | None:
        """Return the intervals since the last document; None if nothing was done."""
        account, previous = self._context.account, self.previous
        if self._again(document):
            account.skip(AGAIN, 1)
            return None
        if previous is None:
            self._began(document)
        elif why := another_run(previous, document):
            self._runs += 1
            self._ended.append(mark_of(previous))
            note_several_runs(account, self._runs, document, why)
            previous = None
            self._began(document)
            starts = [self._start_of(document, job) for job in document.jobs]
            self._segment += any(start + AGREE_NS < end for start in starts for end in self._ends.values())
        chunk = self._difference(previous if previous is not None and counts_any(previous) else None, document)
        if chunk is not None:
            account.samples += total(chunk.counts)
        account.accept(1)
        self.previous = document
        return chunk

    def _difference(self, previous: Document | None, document: Document) -> Intervals[Series] | None:
        parts = []
        context, account = self._context, self._context.account
        binned = any(summary.bins is not None for job in document.jobs for summary in job.summaries.values())
        for number, job in enumerate(document.jobs):
            before = previous.jobs[number] if previous else None
            for (op, kind), summary in job.summaries.items():
                old = before.summaries.get((op, kind)) if before else None
                own = {"host": context.series.host or job.host, "job": str(number + 1), "op": op, "kind": kind}
                series = context.series.replaced(**own, segment=self._segment)
                bounds = self._bounds(series, document, job, previous, summary)
                if summary.bins is None:
                    count = summary.count - (old.count if old else 0)
                    if not binned and count > 0:  # of a document without any bins in a file that has some elsewhere
                        caveat = Caveat(WITHOUT_BINS, account.path, f"line {document.line}: {NO_BINS_HERE}", WITH_BINS)
                        account.lack(Missing(labels_of(series), *bounds, count, summary.min_ns, summary.max_ns, caveat))
                    continue
                layout = summary.bins.layout
                dense = np.zeros(layout.bins, np.int64)
                dense[summary.bins.bins] = summary.bins.counts
                if old is not None and old.bins is not None:
                    dense[old.bins.bins] -= old.bins.counts
                unbinned = summary.unbinned - (old.unbinned if old else 0)
                if unbinned > 0:
                    caveat = Caveat(DAMAGED, account.path, f"line {document.line}: {FEWER}", KEEP_WHOLE)
                    account.lack(Missing(labels_of(series), *bounds, unbinned, summary.min_ns, summary.max_ns, caveat))
                elif unbinned < 0:
                    account.note(MORE)
                bins = np.flatnonzero(dense)
                exact = None
                # fio prints the mean with six decimals: below a million samples mean * N gives back the integer sum.
                if len(bins) and old is None and summary.count < EXACT_BELOW and summary.mean_ns:
                    spent = round(summary.mean_ns / layout.recorded_unit * summary.count) * layout.recorded_unit
                    least, most = summary.min_ns, summary.max_ns
                    exact = Exact(np.array([least]), np.array([most]), np.array([spent]), np.array([True]))
                    account.whole_rows.append(WholeRow(series, int(dense.sum()), least, most, spent).to_dict())
                if len(bins):
                    parts.append(one_row(layout, series, bounds, bins, dense[bins], exact))
        return concatenate(parts) if parts else None

    def _began(self, document: Document) -> None:
        """Keep how long after the first run of the file this one began: of a --t0 that is the first one's start."""
        began = began_ms(document)
        self._first_ms = began if self._first_ms is None else self._first_ms
        self._shift_ms = 0 if began is None or self._first_ms is None else began - self._first_ms

    def _start_of(self, document: Document, job: Job) -> int:
        """Return the epoch ns at which the run of a document began."""
        zero = self._context.zero
        if zero.epoch_ns is not None and zero.origin.startswith("--t0"):
            return zero.epoch_ns + self._shift_ms * MS + self._context.offset_ns
        job_zero = document.zero_ms(job)
        return (job_zero[0] * MS if job_zero else zero.epoch_ns or 0) + self._context.offset_ns

    def _bounds(self, series: Series, document: Document, job: Job, previous: Document | None, now: Summary) -> tuple[int, int]:
        zero = self._start_of(document, job)
        begin, end = now.span_ns or (0, max(job.runtime_ms * MS, now.runtime_ns))
        start, end = zero + begin, zero + end
        if previous is not None:
            since = end - (document.timestamp_ms - previous.timestamp_ms) * MS
            start = max(start, since) if begin else min(end, since)
        if series in self._ends and (previous is not None or start < self._ends[series]):
            start = self._ends[series]
        self._ends[series] = max(start, end)
        return start, self._ends[series]


def left_of(document: Document, logs: tuple[Path, ...]) -> list[tuple[int, str, str]]:
    """Return (job number from 0, op, kind) of all summaries without bins of jobs that none of these averaged logs is of."""
    logged = {name.job for path in logs if (name := parse_log_name(path)) is not None}
    return [
        (number, op, kind)
        for number, job in enumerate(document.jobs)
        for (op, kind), summary in job.summaries.items()
        if summary.bins is None and not {str(number + 1), ""} & logged
    ]


def read_means(path: Path, context: Context) -> Iterator[Intervals[Series]]:
    """Yield one row for each run in the file, job, op and kind; counts, means, minima and maxima are fio's own, exact.

    A run that appended documents has them by its last one. InputError where there is no document.
    """
    rejected: list[tuple[str, int]] = []
    runs = list(runs_in(path, rejected))
    read_here = 0
    first_ms: int | None = None
    for run in runs:
        document = run.document
        if (run.first, run.last) in context.left_out:
            continue
        read_here += 1
        if read_here > 1:
            note_several_runs(context.account, read_here, document, run.why)
        began = began_ms(document)
        first_ms = began if first_ms is None else first_ms
        shift_ns = 0 if began is None or first_ms is None else (began - first_ms) * MS
        context.account.accept(1)
        for at, op, kind in left_of(document, context.described.get(run.first, ())):
            job = document.jobs[at]
            summary = job.summaries[op, kind]
            series = context.series.replaced(host=context.series.host or job.host, job=str(at + 1), op=op, kind=kind)
            context.account.samples += summary.count
            context.account.whole_runs.append(summary.whole_run(series).to_dict())
            bounds = _bounds(document, job, summary, context, shift_ns)
            exact = told_exact([round(summary.mean_ns * summary.count)], [summary.min_ns], [summary.max_ns], [summary.bytes])
            of_mean = series.replaced(kind=mean_kind(kind))
            yield one_row(NO_BINS, of_mean, bounds, np.zeros(1, np.int64), np.array([summary.count]), exact)
    for reason, line in rejected:
        context.account.reject(reason, [line])
    if not runs:
        raise no_document(path, rejected)


def _bounds(document: Document, job: Job, summary: Summary, context: Context, shift_ns: int) -> tuple[int, int]:
    """Return when a job, or an op of it, began and ended in epoch ns (relative ns where that is unknown).

    `shift_ns` is how long after the first run of the file its run began: a start that the user gave is that of the first.
    """
    zero = context.zero
    own = None if zero.epoch_ns is not None and zero.origin.startswith("--t0") else document.zero_ms(job)
    start = (own[0] * MS if own else (zero.epoch_ns or 0) + shift_ns) + context.offset_ns
    begin, end = summary.span_ns or (0, max(job.runtime_ms * MS, summary.runtime_ns))
    return start + begin, start + max(end, begin + MS)
