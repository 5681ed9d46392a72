"""Readers of files that grow: whole lines of the new bytes are read, the rest waits for the next cycle.

HdrHistogram logs come line by line; fio's status dumps document by document, each of which ends in a brace on its own line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from ingest.core.errors import InputError
from ingest.core.intervals import Intervals
from ingest.core.series import Series
from ingest.read import Source
from ingest.read.context import EXPECTED
from ingest.read.fio.dumps import Differences
from ingest.read.fio.json_plus import documents_in
from ingest.read.format_names import HDR
from ingest.read.formats import PIECES, reader_of
from ingest.read.hdr.kept import KeptRows
from ingest.read.hdr.log import UNIT_UNKNOWN, unpacked
from ingest.read.hdr.origin import origin_of
from ingest.read.omission import with_corrected
from ingest.read.text import HEAD_SIZE, LONGEST_LINE, is_plain

DOCUMENT_END = b"\n}\n"

Bytes = Callable[[int, int], bytes]


class Growing(Protocol):
    """Reads one file piece by piece. `reported_ns` is up to when all of its series have reported, None before the first row."""

    reported_ns: int | None

    def whole(self, data: bytes) -> int:
        """Return how many of the bytes that came are whole lines or documents."""
        ...

    def take(self, data: bytes, at: int) -> Iterator[Intervals[Series]]:
        """Yield the rows of whole lines or documents, which begin at offset `at`."""
        ...

    def state(self) -> dict[str, Any]:
        """Return the state for the bytes to come, as values that JSON can hold."""
        ...


def growing(source: Source, data: Bytes, state: Mapping[str, Any] | None) -> Growing:
    """Return the reader of a source; `data(offset, size)` reads its file, `state` goes on where another one was.

    Raises InputError where the unit of a log is unknown.
    """
    return GrowingLog(source, data, state) if source.format == HDR else GrowingDumps(source, data, state)


class GrowingLog:
    """The lines of an HdrHistogram log. All of its tags have reported up to where its newest interval begins."""

    def __init__(self, source: Source, data: Bytes, state: Mapping[str, Any] | None) -> None:
        self.reported_ns: int | None = state["reported_ns"] if state else None
        self._source, self._data = source, data
        self._rows, self._settled = self._begun(state["rows"] if state else None)

    def _begun(self, rows: Mapping[str, Any] | None) -> tuple[KeptRows, bool]:
        """Return what takes the lines, and whether the head of the log shows all that there is to know of its tags."""
        context, origin = self._source.context, origin_of(self._data(0, HEAD_SIZE))
        unit = context.recorded_unit_ns or origin.unit_ns
        if unit is None:
            raise InputError(UNIT_UNKNOWN, self._source.path)
        return KeptRows(context, origin, unit, rows), origin.settled or (rows is not None and rows["lines"] > 0)

    def whole(self, data: bytes) -> int:
        """Return how many bytes are whole lines; a line past all bounds is taken as it is, and rejected."""
        if not self._settled:
            self._rows, self._settled = self._begun(None)
            if not self._settled:
                return 0
        return data.rfind(b"\n") + 1 or (len(data) if len(data) >= LONGEST_LINE else 0)

    def take(self, data: bytes, at: int) -> Iterator[Intervals[Series]]:
        """Yield the rows of whole lines."""
        for rows in unpacked(self._rows, [data]):
            if len(rows):
                newest = int(rows.start_ns.max())
                self.reported_ns = newest if self.reported_ns is None else max(newest, self.reported_ns)
            yield rows
        self._rows.tell_doubts()

    def state(self) -> dict[str, Any]:
        """Return the state for the lines to come."""
        return {"reported_ns": self.reported_ns, "rows": self._rows.state()}


class GrowingDumps:
    """The documents that a running fio appends. With each of them all of its series have reported up to its end."""

    def __init__(self, source: Source, data: Bytes, state: Mapping[str, Any] | None) -> None:
        self.reported_ns: int | None = state["reported_ns"] if state else None
        self._path = source.path
        self._account = source.context.account
        self._lines = int(state["lines"]) if state else 0
        self._last: tuple[int, int] = (state["last"][0], state["last"][1]) if state else (0, 0)
        previous = None
        if self._last[1] > self._last[0]:
            text = data(self._last[0], self._last[1] - self._last[0])
            for previous in documents_in([text], self._path, []):  # noqa: B007  # the last one counts
                pass
        self._differences = Differences(source.context, previous, state["differences"] if state else None)

    def whole(self, data: bytes) -> int:
        """Return how many bytes are whole documents."""
        return data.rfind(DOCUMENT_END) + len(DOCUMENT_END) if DOCUMENT_END in data else 0

    def take(self, data: bytes, at: int) -> Iterator[Intervals[Series]]:
        """Yield the differences of whole documents; a last piece without its end is a document only if it parses."""
        bad: list[tuple[str, int]] = []
        for document in documents_in([data], self._path, bad, self._lines):
            rows = self._differences.take(document)
            if rows is not None:
                newest = int(rows.end_ns.max())
                self.reported_ns = newest if self.reported_ns is None else max(newest, self.reported_ns)
                yield rows
        for reason, line in bad:
            self._account.reject(reason, [line])
        self._lines += data.count(b"\n")
        begin = data.rfind(b"\n{\n") + 1
        self._last = (at + begin, at + len(data))

    def state(self) -> dict[str, Any]:
        """Return the state for the documents to come."""
        state = {"reported_ns": self.reported_ns, "lines": self._lines, "last": self._last}
        return {**state, "differences": self._differences.state()}


def with_corrections(source: Source, rows: Iterator[Intervals[Series]]) -> Iterator[Intervals[Series]]:
    """Return rows with what the user has asked to be added to them: corrected data."""
    expected = source.context.options.get(EXPECTED)
    return with_corrected(rows, int(expected), source.context.account) if expected else rows


def can_grow(source: Source, *, by_completion: bool, dated_by_file: bool) -> bool:
    """Return whether a source is read as it grows: plain logs and dumps, of which no row depends on what is still to come."""
    whole = by_completion and not dated_by_file and not source.context.left_out
    return reader_of(source.format).grows == PIECES and whole and is_plain(source.path)
