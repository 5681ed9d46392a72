"""The windows of long logs as their rows come: in small chunks where many logs are open at once, so that memory stays flat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ingest.core.errors import InputError
from ingest.core.intervals import Intervals
from ingest.core.series import Group, Series
from ingest.query.question import Question
from ingest.query.summed import Adding, adding_up
from ingest.read import Source, read
from ingest.read.context import EXPECTED
from ingest.read.format_names import HDR
from ingest.read.hdr import log as hdr_log

if TYPE_CHECKING:
    from ingest.query.files import Files

OPEN_ENTRIES = 1 << 18  # bins of all logs together that are held in chunks
LEAST_ENTRIES = 1 << 14

Rows = Callable[[int], Iterator[Intervals[Series]]]


def chunk_entries(logs: int) -> int:
    """Return how many bins a chunk of each of so many logs holds."""
    return min(hdr_log.CHUNK_ENTRIES, max(LEAST_ENTRIES, OPEN_ENTRIES // max(logs, 1)))


def entries_at_once(logs: Sequence[Source]) -> int:
    """Return how many bins a union of these logs may hold before it gives out what is whole."""
    return max(hdr_log.CHUNK_ENTRIES, chunk_entries(len(logs)) * len(logs))


def streams(
    files: Files, question: Question, step_ns: int, sources: Sequence[Source], rows: Rows | None = None
) -> tuple[list[Iterator[Intervals[Group]]], Mapping[str, Adding]]:
    """Return, for each log, its windows as its rows come, and what notes by run what is met; nothing is read before it is asked.

    `rows` gives those of the log at a place, where it is not to be read whole.
    """
    adding = adding_up(question, files.found.labels, step_ns, files.stored, files.starts_of(sources))

    def whole(place: int) -> Iterator[Intervals[Series]]:
        source = sources[place]
        try:
            if source.format != HDR or source.context.options.get(EXPECTED):
                yield from read(source)
            else:
                yield from hdr_log.read(source.path, source.context, chunk_entries(len(sources)))
        except InputError as error:
            source.context.account.note(f"not read: {error.reason}")

    def windows(place: int, source: Source) -> Iterator[Intervals[Group]]:
        for chunk in (rows or whole)(place):
            yield from adding[source.context.series.run].windowed(chunk)

    return [windows(place, source) for place, source in enumerate(sources)], adding
