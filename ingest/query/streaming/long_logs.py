"""The windows of long logs as their rows come: in small chunks where many logs are open at once, so that memory stays flat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ingest.core.errors import InputError
from ingest.core.grid import clipped, in_windows, window_parts
from ingest.core.intervals import Intervals, merged
from ingest.core.layout import Layout
from ingest.core.series import Group, Series
from ingest.query.files import Files
from ingest.query.question import Question, note_series, range_in
from ingest.query.spans import Reach, note_reach, widen
from ingest.read import Source, read
from ingest.read.context import EXPECTED
from ingest.read.format_names import HDR
from ingest.read.hdr import log as hdr_log

OPEN_ENTRIES = 1 << 18  # bins of all logs together that are held in chunks
LEAST_ENTRIES = 1 << 14


@dataclass(slots=True)
class Noted:
    """What is noted of all rows that are selected, also outside of the range that is asked for: layouts, reach, series."""

    layouts: set[Layout] = field(default_factory=set)
    reach: Reach = field(default_factory=dict)
    series: set[Series] = field(default_factory=set)

    def widen(self, other: Noted) -> None:
        """Note what was noted of other rows."""
        self.layouts |= other.layouts
        self.series |= other.series
        for key, span in other.reach.items():
            widen(self.reach, key, span)


def chunk_entries(logs: int) -> int:
    """Return how many bins a chunk of each of so many logs holds."""
    return min(hdr_log.CHUNK_ENTRIES, max(LEAST_ENTRIES, OPEN_ENTRIES // max(logs, 1)))


def streams(files: Files, question: Question, step_ns: int, noted: Noted | None = None) -> list[Iterator[Intervals[Group]]]:
    """Return, for each selected log, its windows as its rows come; nothing is read before a stream is asked.

    What is selected is noted in `noted`.
    """
    sources = files.selected(question)
    starts, entries = files.starts_of(sources), chunk_entries(len(sources))
    return [windowed(_rows(source, entries), source, files, question, step_ns, starts, noted) for source in sources]


def _rows(source: Source, entries: int) -> Iterator[Intervals[Series]]:
    if source.format != HDR or source.context.options.get(EXPECTED):
        rows = read(source)
    else:
        rows = hdr_log.read(source.path, source.context, entries)
    try:
        yield from rows
    except InputError as error:
        source.context.account.note(f"not read: {error.reason}")


def windowed(
    rows: Iterable[Intervals[Series]],
    source: Source,
    files: Files,
    question: Question,
    step_ns: int,
    starts: dict[str, int],
    noted: Noted | None = None,
) -> Iterator[Intervals[Group]]:
    """Yield the windows of each chunk of a log's rows under the question's groups, added up.

    What is selected, also outside of the question's range, is noted in `noted`.
    """
    key, run = question.key(files.found.labels), source.context.series.run
    stored = files.stored[run]
    grained = step_ns % stored == 0
    begin, end = range_in(question, starts[run], stored if grained else 1)
    for chunk in rows:
        part = chunk.relabelled(key)
        if noted is not None:
            note_reach(noted.reach, part)
            note_series(noted.series, chunk, key)
            if len(part.bins):
                noted.layouts.add(part.layout)
        if begin is not None or end is not None:
            part = in_windows(part, begin, end, stored) if grained else clipped(part, begin, end)
        if len(part):
            yield merged(window_parts(part, step_ns, stored if grained else 0))


def entries_at_once(logs: Sequence[Source]) -> int:
    """Return how many bins a union of these logs may hold before it gives out what is whole."""
    return max(hdr_log.CHUNK_ENTRIES, chunk_entries(len(logs)) * len(logs))
