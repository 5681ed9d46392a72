"""fio's plain JSON (`--output-format=json`): no bins, one mean of the whole run for each job, op and kind of latency.

    "clat_ns" : { "min" : 10749, "max" : 9310767, "mean" : 498376.300466, "N" : 1501, "percentile" : { "99.000000" : 4554752 } }

Each is one row without bins over the run, of the kinds `completion.mean`, `total.mean` and `submission.mean`: count, mean,
minimum, maximum and bytes are exact. Percentiles that fio printed are of one job and cannot be merged: they go into the
account as they are. Jobs whose averaged logs are read as well (`described`) are left out here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ingest.core.documents import told_exact
from ingest.core.intervals import Intervals, one_row
from ingest.core.layout import NO_BINS
from ingest.core.series import Series, mean_kind
from ingest.read.context import Context
from ingest.read.fio.json_plus import MS, Document, Job, no_document
from ingest.read.fio.names import parse_log_name
from ingest.read.fio.successive import began_ms, runs_in, tell_of_runs
from ingest.read.summary import Summary


def left_of(document: Document, logs: tuple[Path, ...]) -> list[tuple[int, str, str]]:
    """Return (job number from 0, op, kind) of all summaries without bins of jobs that none of these averaged logs is of."""
    logged = {name.job for path in logs if (name := parse_log_name(path)) is not None}
    return [
        (number, op, kind)
        for number, job in enumerate(document.jobs)
        for (op, kind), summary in job.summaries.items()
        if summary.bins is None and not {str(number + 1), ""} & logged
    ]


def read(path: Path, context: Context) -> Iterator[Intervals[Series]]:
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
            tell_of_runs(context.account, read_here, document, run.why)
        began = began_ms(document)
        first_ms = began if first_ms is None else first_ms
        shift_ns = 0 if began is None or first_ms is None else (began - first_ms) * MS
        context.account.accept(1)
        for at, op, kind in left_of(document, context.described.get(run.first, ())):
            job = document.jobs[at]
            summary = job.summaries[op, kind]
            series = context.series.replaced(host=context.series.host or job.host, job=str(at + 1), op=op, kind=kind)
            context.account.samples += summary.count
            context.account.whole_runs.append(summary.whole_run(series).told())
            bounds = _bounds(document, job, summary, context, shift_ns)
            total = round(summary.mean_ns * summary.count)
            exact = told_exact([total], [summary.min_ns], [summary.max_ns], [summary.bytes])
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
