"""What fio's JSON knows beyond the logs: jobs without a log, runs whose logs were overwritten, hosts that it does not name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ingest.core.caveats import Caveat
from ingest.read.fio.joining import Beside, Documents

if TYPE_CHECKING:
    from ingest.read.fio.json_plus import Job

COMPLETION = "completion"


def caveats(documents: Documents) -> Iterator[Caveat]:
    """Yield what fio's JSON has beyond the logs, and the logs whose host it does not know."""
    for path, (summary, sentence) in sorted(documents.unmatched.items()):
        remedy = "name the host with --host, or link the names with --host-alias A=B"
        yield Caveat("host-conflict", str(path), f"{sentence}: {summary.name} was not used for it", remedy)
    for beside, number, job in jobs_without_log(documents):
        yield without_log_caveat(beside, number, job)
    for key, (beside, later) in sorted(documents.overwritten.items()):
        if key in documents.read and not documents.told.get(key):
            wrote = f"is of an earlier run of fio than {later.name}, which wrote its logs anew"
            sentence = f"{wrote}: one row is left of it, spread over its time"
            remedy = "have each run of fio write its logs under names of their own"
            yield Caveat("several-runs", str(beside.path), sentence, remedy)


def jobs_without_log(documents: Documents) -> Iterator[tuple[Beside, int, Job]]:
    """Yield jobs, with their numbers from 0, that no log and no histogram holds, while others of their run have one."""
    for beside in documents.all():
        if beside.key in documents.overwritten and beside.key in documents.read:
            yield from ((beside, number, job) for number, job in enumerate(beside.document.jobs) if _has_means_alone(job))
        if not documents.claimed.get(beside.key) or beside.key in documents.read:
            continue
        for number, job in enumerate(beside.document.jobs):
            if not documents.claimed[beside.key].get(number) and any(kind == COMPLETION for _, kind in job.summaries):
                yield beside, number, job


def without_log_caveat(beside: Beside, number: int, job: Job) -> Caveat:
    """Return what a reader must know of a job that no log holds."""
    counts = ", ".join(f"{summary.count:,} {op}s" for (op, kind), summary in sorted(job.summaries.items()) if kind == COMPLETION)
    where = f" on {job.host}" if job.host else ""
    sentence = f"fio counts {counts} of job {number + 1} ({job.name}){where} that no log here holds: they are missing"
    remedy = "have every job log: write_hist_log in front of the first --name, or tailboard wrap-fio"
    return Caveat("jobs-without-log", str(beside.path), sentence, remedy)


def _has_means_alone(job: Job) -> bool:
    """Return whether fio has measured completions of a job, and tells no histogram of them."""
    told = [summary.bins for (_, kind), summary in job.summaries.items() if kind == COMPLETION]
    return bool(told) and all(bins is None for bins in told)
