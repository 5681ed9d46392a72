"""Marks of files, put with the runs of a store that they overlap, and sentences on each run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ingest.core.errors import InputError, counted
from ingest.core.grid import SECOND
from ingest.core.marks import AFTER_END_NS, MOST_OF_RUN, Mark, longest, of_run, overlaps
from ingest.query.overview import span_of
from ingest.query.question import Question
from ingest.store import Store
from ingest.store.records import UNKNOWN_ZERO, RunRecord


def keep_marks(store: Store, runs: Collection[str], marks: Sequence[Mark]) -> Iterator[str]:
    """Put marks with the named runs, and yield a sentence on each run that took some, and on those left out.

    A run takes what overlaps it, from its start to AFTER_END_NS behind its end: windows may reach beyond that. A repeat adds
    nothing.
    """
    placed: set[Mark] = set()
    unknown = False
    for record in store.runs():
        if record.run not in runs:
            continue
        end, relative = end_of(store, record) + AFTER_END_NS, record.zero == UNKNOWN_ZERO
        own = [mark for mark in marks if overlaps(mark, record.start_ns, end, relative=relative)]
        placed.update(own)
        unknown = unknown or relative
        noted = of_run(own, record.run, record.start_ns, end, relative=relative)
        kept = longest(noted, MOST_OF_RUN)
        store.mark_all(record.run, kept)
        if kept:
            left_out = len(noted) - len(kept)
            reason = f"; {left_out:,} shorter ones are left out: a run takes {MOST_OF_RUN:,}" if left_out else ""
            yield f"{record.run}: {counted(len(kept), 'mark')}{reason}"
    outside = sum(mark not in placed for mark in marks)
    if outside:
        why = " (a run has no start time, so marks with clock times cannot be placed in it: load it with --t0)" if unknown else ""
        yield f"{outside:,} of {len(marks):,} marks lie outside the times of the runs and are left out{why}"


def end_of(store: Store, record: RunRecord) -> int:
    """Return when the last row of a run ends, in epoch ns; its start where it holds none."""
    question = Question(by=("op", "kind"), step="all").about([record.run])
    ends = [record.start_ns]
    try:
        ends.append(span_of(store.answer(question).parts)[1])
    except InputError:  # offsets alone
        seconds = store.offset_seconds(record.run, None, None)
        ends += [int(seconds.max()) + SECOND] if len(seconds) else []
    return max(ends)
