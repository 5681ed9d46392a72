"""What sources of any format lack: files that are refused or end early, rows that were rejected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.core.coverage import SEE_INSPECT, Caveat, Missing, RowWidth, labels_of
from ingest.core.errors import as_text
from ingest.core.grid import stored_step
from ingest.core.intervals import Intervals
from ingest.core.labels import Series
from ingest.read.format_names import JSON, PLAIN_JSON
from ingest.read.formats import reader_of, row_labels, single_events

if TYPE_CHECKING:
    from ingest.core.events import Events
    from ingest.read.sources import Source


REFUSED_FILE, CUT_SHORT, REJECTED = "refused", "cut-short", "rejected-rows"
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


def _keep_rejected(source: Source, number: int, from_ns: int | None, to_ns: int | None) -> None:
    account = source.context.account
    many = any(word in reason for reason in account.rejected for word in HOLES)
    low = None if from_ns is None else from_ns - 1  # (from, to]: what completed with the event before may be missing, too
    caveat = Caveat(REJECTED, account.path, "lines were rejected: their samples are missing")
    account.lack(Missing(_source_labels(source), low, to_ns, None if many else number, 0, None, caveat))


def row_width(source: Source) -> RowWidth:
    """Return how wide the rows of a source are."""
    events, whole = single_events(source), source.format in (JSON, PLAIN_JSON)
    return RowWidth(_source_labels(source), source.width_ns, as_text(source.path), any_step=events, whole=whole)


def own_step(source: Source) -> int:
    """Return the step in ns that the rows of a source suggest, 0 where they may be cut anywhere or do not say."""
    return 0 if single_events(source) or not source.width_ns else stored_step(source.width_ns)


def _source_labels(source: Source) -> dict[str, str]:
    return labels_of(source.context.series, unknown=row_labels(source))
