"""Which documents of a file are of one run of fio: a running fio appends them, and so does a loop over several runs.

    fio --status-interval=1 ... --output=a.json        each counts from the start of the run: the newest holds all others
    for n in 1 4 16; do fio ... >> a.json; done         each is a run of its own

A document is of another run than the one before it where it says so: it began once that one was written, it has other jobs or
options, its counts went back, or (where it does not say when it was written) no job ran longer. fio says when a run began
(`job_start`, since 3.36), else it is worked out: the time of the document less how long its jobs ran, and less `elapsed`, whole
seconds since fio was started. Checked against fio 3.33: loops of runs down to 100 ms, with and without `--status-interval`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ingest.core.coverage import Caveat
from ingest.read.account import Account
from ingest.read.context import Summary
from ingest.read.fio import clock
from ingest.read.fio.clock import MS
from ingest.read.fio.json_output import Document, documents

ROUNDED_MS = 2  # that a runtime is rounded by
LATE_MS = 100  # that fio may take from one of the times in a document to the next
MEAN_NS = 10  # that the mean that the oldest versions print may be off
OTHER_JOBS = "other jobs or options"
BACK = "counts went back"
EARLIER = "it was written earlier"
LATER = "it began once the one before was written"
NO_LONGER = "no job ran longer"
SEVERAL = "several-runs"
HOLDS_SEVERAL = "holds several runs of fio, which are one here: each is counted in its own time, under its own job numbers"
EACH_ALONE = "ask for one by --from and --to, or write each run into a file of its own"
RUNS_NAMED = 5


class RunIn(NamedTuple):
    """One run in a file: its last document, the time between its documents in ns, of a single one how long it ran.

    `first` and `last` are the numbers of its documents in the file, from 0. `why` says what shows that it is not the run before.
    """

    document: Document
    width_ns: int
    first: int
    last: int
    why: str


def runs_in(path: Path, rejected: list[tuple[str, int]]) -> Iterator[RunIn]:
    """Yield the runs of a file in order, each once; broken documents go to `rejected`."""
    ended: set[int] = set()  # the last documents of runs
    newest: RunIn | None = None
    steps: list[int] = []
    for number, document in enumerate(documents(path, rejected)):
        mark = hash(measured(document))
        if newest and mark == hash(measured(newest.document)):
            continue
        why = another_run(newest.document, document) if newest else ""
        if why and mark in ended:
            continue
        if newest and not why:
            steps.append(document.timestamp_ms - newest.document.timestamp_ms)
            newest = RunIn(document, int(np.median(steps)) * MS, newest.first, number, newest.why)
            continue
        if newest:
            ended.add(hash(measured(newest.document)))
            yield newest
        steps = []
        newest = RunIn(document, max((job.runtime_ms for job in document.jobs), default=0) * MS, number, number, why)
    if newest:
        yield newest


def began_ms(document: Document) -> int | None:
    """Return the epoch ms at which the first job of a document began, None where that cannot be determined."""
    return min((zero[0] for job in document.jobs if (zero := document.zero_ms(job)) is not None), default=None)


def over_before(document: Document, later: Document) -> bool:
    """Return whether the run of a document was over when that of another began: it began after more than half of it.

    A state of a run that was kept while it went on began when the run did. False where either start cannot be determined.
    """
    began, begun_later = began_ms(document), began_ms(later)
    if began is None or begun_later is None:
        return False
    ends = [zero[0] + job.runtime_ms for job in document.jobs if (zero := document.zero_ms(job)) is not None]
    return 2 * (begun_later - began) > max(ends) - began


def note_several_runs(account: Account, number: int, document: Document, why: str) -> None:
    """Keep in an account that a file holds several runs, and where the first of them begin; `number` counts from 1."""
    caveat = Caveat(SEVERAL, account.path, HOLDS_SEVERAL, EACH_ALONE)
    if caveat not in account.caveats:
        account.caveats.append(caveat)
    if number <= RUNS_NAMED:
        account.note(f"line {document.line}: another run begins ({why})")


def measured(document: Document) -> tuple[object, ...]:
    """Return values that no two documents of fio have in common, but copies."""
    jobs = [
        (job.name, job.host, key, summary.count, summary.min_ns, summary.max_ns, summary.mean_ns)
        for job in document.jobs
        for key, summary in sorted(job.summaries.items())
    ]
    return document.timestamp_ms, *jobs


def mark_of(document: Document) -> str:
    """Return a short text that no two documents have in common, but copies: of what may be kept for longer than a process."""
    import hashlib  # takes 3 ms, and most calls meet one document

    return hashlib.blake2b(repr(measured(document)).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def another_run(previous: Document, document: Document) -> str:
    """Return why a document is of another run than the one before it; empty text where it is a later state of the same."""
    if _shape(previous) != _shape(document):
        return OTHER_JOBS
    if not _grown(previous, document):
        return BACK
    if not (previous.timestamp_ms and document.timestamp_ms):
        return "" if _longer(previous, document) else NO_LONGER
    passed = document.timestamp_ms - previous.timestamp_ms
    rounded = max(previous.grain_ms, document.grain_ms) - 1
    if passed < -rounded:
        return EARLIER
    if not counts_any(previous):  # a ramp, or files that were laid out: it may be of either, and nothing is lost
        return ""
    if document.through_client:  # its time is that of its start
        return LATER if passed > rounded else ("" if _longer(previous, document) else NO_LONGER)
    began = _began_ms(document, previous.timestamp_ms - LATE_MS)
    if began is not None and began >= previous.timestamp_ms - ROUNDED_MS + rounded:
        return LATER
    if began is None or (rounded and began >= previous.timestamp_ms - rounded):  # within the second of the one before
        return "" if _longer(previous, document) else NO_LONGER
    return ""


def counts_any(document: Document) -> bool:
    """Return whether a document counts any I/O."""
    return any(job.summaries for job in document.jobs)


def _shape(document: Document) -> tuple[object, ...]:
    """Return what all documents of one run have in common."""
    jobs = tuple((job.name, job.group, job.host, tuple(sorted(job.options.items()))) for job in document.jobs)
    return document.version, document.through_client, document.grain_ms, jobs


def _began_ms(document: Document, enough: int) -> int | None:
    """Return the epoch ms at which the run of a document began; that it was before `enough` suffices. None where unknown."""
    stated = [job.start_ms for job in document.jobs if job.start_ms and clock.real_clock(job.options, "job_start_clock_id")]
    if stated:
        return min(stated)
    elapsed = max((job.elapsed_s for job in document.jobs), default=0)
    earliest = document.timestamp_ms - 1000 * elapsed
    if elapsed and earliest + 1000 + document.grain_ms <= enough:
        return earliest
    zeros = [document.zero_ms(job) for job in document.jobs]
    known = [zero[0] for zero in zeros if zero is not None]
    if len(known) == len(zeros):
        began = min(known, default=document.timestamp_ms)
    elif not any(job.runtime_ms for job in document.jobs):
        began = document.timestamp_ms
    elif elapsed:
        return earliest if earliest >= enough else None
    else:
        return None
    return max(began, earliest) if elapsed else began


def _longer(previous: Document, document: Document) -> bool:
    """Return whether some job ran longer, or none did anything more."""
    pairs = list(zip(previous.jobs, document.jobs, strict=True))
    if any(_time_of(after.summaries.values()) > _time_of(before.summaries.values()) for before, after in pairs):
        return True
    return all(after.summaries[key].count == then.count for before, after in pairs for key, then in before.summaries.items())


def _time_of(summaries: Iterable[Summary]) -> int:
    return sum(summary.runtime_ns for summary in summaries)


def _grown(previous: Document, document: Document) -> bool:
    """Return whether nothing that a document counts is less than what the one before it counts."""
    return all(
        (later := after.summaries.get(key)) is not None and _holds(later, summary)
        for before, after in zip(previous.jobs, document.jobs, strict=True)
        for key, summary in before.summaries.items()
    )


def _holds(later: Summary, summary: Summary) -> bool:
    """Return whether all I/Os of a summary may be among those of a later one.

    fio prints while it counts: of an I/O a part of the sums may be there already, and another part not yet.
    """
    more = later.count - summary.count
    if more < 0 or later.min_ns > summary.min_ns or later.max_ns < summary.max_ns:
        return False
    if later.bytes is not None and summary.bytes is not None and later.bytes < summary.bytes:
        return False
    added = later.mean_ns * later.count - summary.mean_ns * summary.count
    loose = 2 * later.max_ns + MEAN_NS * later.count
    if not more * later.min_ns - loose <= added <= more * later.max_ns + loose:
        return False
    if summary.bins is None or later.bins is None:
        return summary.bins is None
    if summary.bins.layout != later.bins.layout:
        return False
    dense = np.zeros(later.bins.layout.bins, np.int64)
    dense[later.bins.bins] = later.bins.counts
    return bool((dense[summary.bins.bins] >= summary.bins.counts).all())
