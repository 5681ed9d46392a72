"""What sources of any format lack: files that are refused or end early, rows that were rejected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.core.coverage import ANY_TIME, Caveat, Missing, labels_of
from ingest.core.errors import as_text
from ingest.core.intervals import Intervals
from ingest.core.labels import MIXED, Series
from ingest.read.formats import reader_of, row_labels
from ingest.read.text import blocks

if TYPE_CHECKING:
    from ingest.core.events import Events
    from ingest.read.context import Summary
    from ingest.read.sources import Source


REFUSED_FILE, CUT_SHORT, REJECTED, SHORT = "refused", "cut-short", "rejected-rows", "short-log"
NOT_OF_ONE = "not of one run, so its start may be wrong, too"
AGAIN, ALL_LOGS = "copy the log again", "keep the logs of all jobs in one folder"
SEE_INSPECT = "tailboard inspect shows more"
HOLES = ("NUL", "longer than", "too long")  # in the reason of a rejected line that may stand for many rows


def refused(run: str, labels: Mapping[str, str], path: Path, reason: str) -> Missing:
    """Return the missing samples of a run whose file is not read: anything, at any time, so far as its labels allow."""
    caveat = Caveat(REFUSED_FILE, as_text(path), f"not read: {reason}", SEE_INSPECT)
    return Missing({**labels, "run": run}, None, None, None, 0, None, caveat)


def unreadable(source: Source, reason: str) -> Missing:
    """Return the missing samples of a source that could not be read as its format."""
    return refused(source.context.series.run, _source_labels(source), source.path, reason)


def followed(source: Source, rows: Iterator[Intervals[Series]]) -> Iterator[Intervals[Series]]:
    """Yield the rows of a source; if its file ends early, what came after them is kept as missing in its account."""
    newest: Intervals[Series] | None = None
    for chunk in rows:
        newest = chunk if len(chunk) else newest
        yield chunk
    account = source.context.account
    if account.cut_short:
        from_ns = None if newest is None else min(last for *_, last in newest.reach())
        caveat = Caveat(CUT_SHORT, account.path, f"{account.cut_short}: everything after that is missing", "copy the file again")
        account.lack(Missing(_source_labels(source), from_ns, None, None, 0, None, caveat))


def counting_rejected(source: Source, chunks: Iterator[Events]) -> Iterator[Events]:
    """Yield the events of a source; lines that were rejected between them are kept as missing in its account, each one event.

    Their time is that between the events around them: events come nearly in order of time. What is rejected of traces and of
    timelines is no such line: it may have no end, or be a part of one.
    """
    if not reader_of(source.format).line_each:
        yield from chunks
        return
    account = source.context.account
    before, last_ns = account.rows_rejected, None
    waiting: tuple[int, int | None, int | None] | None = None
    for chunk in chunks:
        ends = chunk.end_ns
        first, newest = (int(ends.min()), int(ends.max())) if len(ends) else (None, None)
        if waiting is not None and first is not None:
            _keep_rejected(source, waiting[0], waiting[1], max(first, waiting[2] or first))
            waiting = None
        if account.rows_rejected > before:
            earliest = first if last_ns is None or (first is not None and first < last_ns) else last_ns
            waiting = (account.rows_rejected - before, None if last_ns is None else earliest, newest)
            before = account.rows_rejected
        last_ns = newest if last_ns is None else max(last_ns, newest or last_ns)
        yield chunk
    number = account.rows_rejected - before + (waiting[0] if waiting else 0)
    if number:
        _keep_rejected(source, number, waiting[1] if waiting else last_ns, None)


def with_tool_total(source: Source, rows: Iterator[Intervals[Series]]) -> Iterator[Intervals[Series]]:
    """Yield the rows of a log of single operations; what the tool itself counts beyond them is kept as missing in its account.

    When they completed cannot be determined: a log may have been cut, or have lost lines. Where the tool gives one sum only, for
    all ops or for a group of jobs, the logs are added up likewise.
    """
    last, first = ANY_TIME
    for part in rows:
        if len(part):
            first, last = min(first, int(part.start_ns.min())), max(last, int(part.end_ns.max()))
        yield part
    context, account = source.context, source.context.account
    by_op = _counted_by_tool(source)
    held = {op: int(total.counts.sum()) for op, total in account.totals.items()}
    if context.siblings or MIXED in by_op:
        if context.shadowed:
            return
        by_op = {"": by_op.get(MIXED) or [summary for several in by_op.values() for summary in several]}
        lines = sum(bytes(block).count(b"\n") for path in context.siblings for block in blocks(path))
        held = {"": sum(held.values()) + lines}
    counts = {op: sum(summary.count for summary in several) for op, several in by_op.items()}
    if (context.series.job or context.siblings) and "latency_target" not in context.options:  # a reset of it counts anew
        for op, count in counts.items():
            if held.get(op, 0) > count > 0:
                name, logs = f"{op}: " if op else "", "logs of the group hold" if context.siblings else "log holds"
                account.note(f"{name}the {logs} {held[op]} I/Os, fio's JSON counts {count}: {NOT_OF_ONE}")
    short = {op: lost for op, count in counts.items() if (lost := count - held.get(op, 0)) > 0 and op not in context.shadowed}
    if account.cut_short or sum(short.values()) <= account.rows_rejected:  # these are missing by themselves
        return
    begin = (context.zero.epoch_ns or 0) + context.offset_ns
    begin, end = min(begin, first), max(begin + context.restart_ns + context.runtime_ns, last)
    labels = {**_source_labels(source), "kind": context.series.kind}
    if context.siblings:  # the sum of a group of jobs is that of none of them
        labels.pop("job", None)
    remedy = ALL_LOGS if context.siblings else AGAIN
    for op, lost in sorted(short.items()):
        held_here = f"of which {held.get(op, 0):,} are in logs of single I/Os: the others are missing"
        sentence = f"fio counts {counts[op]:,} {op or 'I/O'}s, {held_here}"
        extremes = min(summary.min_ns for summary in by_op[op]), max(summary.max_ns for summary in by_op[op])
        own = {**labels, "op": op} if op else labels
        number = None if account.rows_rejected else lost
        account.lack(Missing(own, begin, end, number, *extremes, Caveat(SHORT, account.path, sentence, remedy)))


def _counted_by_tool(source: Source) -> dict[str, list[Summary]]:
    """Return the tool's own counts of the operations of a source's kind, by op; none of a log that is still written."""
    summaries: dict[str, list[Summary]] = {}
    if source.context.upto is None:
        for job in source.context.jobs:
            for (op, kind), summary in job.items():
                if kind == source.context.series.kind and summary.count:
                    summaries.setdefault(op, []).append(summary)
    return summaries


def _keep_rejected(source: Source, number: int, from_ns: int | None, to_ns: int | None) -> None:
    account = source.context.account
    many = any(word in reason for reason in account.rejected for word in HOLES)
    low = None if from_ns is None else from_ns - 1  # (from, to]: what completed with the event before may be missing, too
    caveat = Caveat(REJECTED, account.path, "lines were rejected: their samples are missing")
    account.lack(Missing(_source_labels(source), low, to_ns, None if many else number, 0, None, caveat))


def _source_labels(source: Source) -> dict[str, str]:
    return labels_of(source.context.series, unknown=row_labels(source))
