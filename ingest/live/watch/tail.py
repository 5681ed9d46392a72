"""A file that is read as it grows: how far, what its reader knows, the windows that are not whole yet."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from ingest.core.coverage import WIDTHS, Caveat, Missing, labels_of
from ingest.core.documents import check_storable, document_ids, pack, unpack
from ingest.core.errors import InputError, as_path, as_text
from ingest.core.intervals import Exact, Int, Intervals, Segments, merged, total
from ingest.core.labels import LABELS, Series
from ingest.core.layout import Layout, parse_layout
from ingest.live.watch.files import HEAD_BYTES, Fate, Place, Print, Seen, fate_of, held_open
from ingest.load.load import stored_parts, whole_windows
from ingest.read.account import Account
from ingest.read.context import EXPECTED, RATE
from ingest.read.fio.json_intervals import Differences
from ingest.read.fio.json_output import LARGEST_DOCUMENT, documents_in
from ingest.read.format_names import HDR
from ingest.read.formats import row_labels
from ingest.read.hdr.log import UNIT_UNKNOWN, ResumableRows, unpacked
from ingest.read.hdr.tools import origin_of
from ingest.read.missing import row_width, unreadable
from ingest.read.placement import in_their_layer
from ingest.read.schedule import with_corrected
from ingest.read.sources import Source
from ingest.read.text import HEAD_SIZE, LONGEST_LINE, last_line_end
from ingest.store.lifecycle import step_in
from ingest.store.live import Checkpoint, News
from ingest.store.records import STEP, RunRecord, SourceRecord

# Readers of files that grow: whole lines of the new bytes are read, the rest waits for the next cycle.
#
# HdrHistogram logs come line by line; fio's status dumps document by document, each of which ends in a brace on its own line.


DOCUMENT_END = b"\n}\n"

Bytes = Callable[[int, int], bytes]


class Growing:
    """Reads one file piece by piece. `reported_ns` is up to when all of its series have reported, None before the first row."""

    def __init__(self, source: Source, state: Mapping[str, Any] | None) -> None:
        self.reported_ns: int | None = state["reported_ns"] if state else None
        self._source = source

    def _reported(self, newest_ns: int) -> None:
        self.reported_ns = newest_ns if self.reported_ns is None else max(newest_ns, self.reported_ns)


class GrowingLog(Growing):
    """The lines of an HdrHistogram log. All of its tags have reported up to where its newest interval begins.

    `data(offset, size)` reads its file, `state` goes on where another one was. InputError where the unit is unknown.
    """

    def __init__(self, source: Source, data: Bytes, state: Mapping[str, Any] | None) -> None:
        super().__init__(source, state)
        self._data = data
        self._rows, self._settled = self._begun(state["rows"] if state else None)

    def _begun(self, rows: Mapping[str, Any] | None) -> tuple[ResumableRows, bool]:
        """Return what takes the lines, and whether the head of the log shows all that there is to know of its tags."""
        context, origin = self._source.context, origin_of(self._data(0, HEAD_SIZE))
        unit = context.recorded_unit_ns or origin.unit_ns
        if unit is None:
            raise InputError(UNIT_UNKNOWN, self._source.path)
        return ResumableRows(context, origin, unit, rows), origin.settled or (rows is not None and rows["lines"] > 0)

    def whole(self, data: bytes) -> int:
        """Return how many bytes are whole lines; a line past all bounds is taken as it is, and rejected."""
        if not self._settled:
            self._rows, self._settled = self._begun(None)
            if not self._settled:
                return 0
        return data.rfind(b"\n") + 1 or (len(data) if len(data) >= LONGEST_LINE else 0)

    def take(self, data: bytes, at: int) -> Iterator[Intervals[Series]]:
        """Yield the rows of whole lines, which begin at offset `at`."""
        for rows in unpacked(self._rows, [data]):
            if len(rows):
                self._reported(int(rows.start_ns.max()))
            yield rows
        self._rows.tell_doubts()

    def state(self) -> dict[str, Any]:
        """Return the state for the lines to come, as values that JSON can hold."""
        return {"reported_ns": self.reported_ns, "rows": self._rows.state()}


class GrowingDumps(Growing):
    """The documents that a running fio appends. With each of them all of its series have reported up to its end."""

    def __init__(self, source: Source, data: Bytes, state: Mapping[str, Any] | None) -> None:
        super().__init__(source, state)
        self._lines = int(state["lines"]) if state else 0
        begin, end = self._last = (state["last"][0], state["last"][1]) if state else (0, 0)
        documents = documents_in([data(begin, end - begin)] if end > begin else [], source.path, [])
        *_, previous = (None, *documents)
        self._differences = Differences(source.context, previous, state["differences"] if state else None)

    def whole(self, data: bytes) -> int:
        """Return how many bytes are whole documents."""
        return data.rfind(DOCUMENT_END) + len(DOCUMENT_END) if DOCUMENT_END in data else 0

    def take(self, data: bytes, at: int) -> Iterator[Intervals[Series]]:
        """Yield the differences of whole documents; a last piece without its end is a document only if it parses."""
        bad: list[tuple[str, int]] = []
        for document in documents_in([data], self._source.path, bad, self._lines):
            rows = self._differences.take(document)
            if rows is not None:
                self._reported(int(rows.end_ns.max()))
                yield rows
        for reason, line in bad:
            self._source.context.account.reject(reason, [line])
        self._lines += data.count(b"\n")
        begin = data.rfind(b"\n{\n") + 1
        self._last = (at + begin, at + len(data))

    def state(self) -> dict[str, Any]:
        """Return the state for the documents to come."""
        state = {"reported_ns": self.reported_ns, "lines": self._lines, "last": self._last}
        return {**state, "differences": self._differences.state()}


# Windows that may still grow: held until newer ones have begun, written whole each time, kept in checkpoints.


ARRAYS = ("series", "start_ns", "end_ns", "indptr", "bins", "counts")


class OpenWindows:
    """The newest window of each series of one log, by layout: rows of a series come in time order, so older ones are whole."""

    def __init__(self, kept: Sequence[Mapping[str, Any]] = ()) -> None:
        """Hold nothing, or what `state` has kept."""
        self._parts: dict[Layout, Intervals[Series]] = {windows.layout: windows for windows in map(_windows, kept)}

    def add(self, parts: Sequence[Intervals[Series]]) -> list[Intervals[Series]]:
        """Return the windows that rows cut at the grid have changed, each with all that it holds by now."""
        changed = []
        for layout in dict.fromkeys(part.layout for part in parts):
            new = [part for part in parts if part.layout == layout]
            rows = merged([*new, *([self._parts[layout]] if layout in self._parts else [])])
            if not len(rows):
                continue
            newest = np.full(len(rows.table), np.iinfo(np.int64).min)
            np.maximum.at(newest, rows.series, rows.start_ns)
            self._parts[layout] = alone(rows.take(np.flatnonzero(rows.start_ns == newest[rows.series])))
            met = {key for part in new for key in part.table}
            changed.append(rows.where(met.__contains__))
        return changed

    def state(self) -> list[dict[str, Any]]:
        """Return all windows as values that JSON can hold."""
        return [_kept(windows) for windows in self._parts.values()]


def alone(rows: Intervals[Series]) -> Intervals[Series]:
    """Return rows with arrays of their own: a few windows must not keep all those alive that they were read with."""
    own: dict[str, Any] = {name: getattr(rows, name).copy() for name in ARRAYS}
    return replace(rows, **own, exact=rows.exact and rows.exact.take(np.arange(len(rows))))


def _kept(windows: Intervals[Series]) -> dict[str, Any]:
    documents = pack(windows)
    stored: dict[str, Any] = {
        "layout": str(windows.layout),
        "table": [[*(getattr(series, label) for label in LABELS), series.segment] for series in documents.table],
        "series": windows.series.tolist(),
        "start": windows.start_ns.tolist(),
        "end": windows.end_ns.tolist(),
        "coding": documents.coding.tolist(),
        "bins": [base64.b64encode(blob).decode() for blob in documents.blobs.each()],
    }
    if exact := windows.exact:
        columns = (exact.min_ns, exact.max_ns, exact.sum_ns, exact.known, exact.bytes)
        stored["exact"] = [column.tolist() for column in columns if column is not None]
    return stored


def _windows(kept: Mapping[str, Any]) -> Intervals[Series]:
    indptr, bins, counts = unpack(np.array(kept["coding"], np.int64), [base64.b64decode(text) for text in kept["bins"]])
    return Intervals(
        layout=parse_layout(kept["layout"]),
        table=tuple(Series(*labels) for labels in kept["table"]),
        series=np.array(kept["series"], np.int64),
        start_ns=np.array(kept["start"], np.int64),
        end_ns=np.array(kept["end"], np.int64),
        indptr=indptr,
        bins=bins,
        counts=counts,
        exact=Exact(*map(np.array, kept["exact"])) if "exact" in kept else None,
    )


# A file that is read as it grows: how far, what its reader knows, the windows that are not whole yet.


AT_ONCE = 1 << 19
SILENT, GROWS = "silent", "if its job has ended, nothing is missing: the end of the watch shows it"


@dataclass(slots=True)
class Tail:
    """A source that is read as it grows. Its file is held open: what was written before it was moved away is still read.

    `behind` is one that has more to read than a cycle takes, one that `rests` has grown and is read later. `silent` is what is
    missing of one that others of its run have gone on without.
    """

    again: ClassVar[bool] = False
    run: RunRecord
    record: SourceRecord
    path: Path
    place: Place = (0, 0)
    known: Print = field(default_factory=lambda: Print(0, 0, "", b""))
    spans: dict[Series, tuple[int, int]] = field(default_factory=dict)
    account: Account = field(default_factory=Account)
    largest_ns: int = 0
    heard: float = 0.0
    gone: bool = False
    behind: bool = False
    rests: bool = False
    silent: Missing | None = None
    descriptor: int = -1
    source: Source | None = None
    _reader: GrowingLog | GrowingDumps | None = None
    _state: Mapping[str, Any] | None = None
    _held: OpenWindows = field(default_factory=OpenWindows)
    _segments: Segments = field(default_factory=Segments)
    _seen: Seen | None = None

    def __post_init__(self) -> None:
        """Let its windows be of its own width, where that is not the run's."""
        self.run = replace(self.run, step_ns=step_in(self.run, self.record.step_ns))

    @classmethod
    def left(cls, run: RunRecord, record: SourceRecord, checkpoint: Checkpoint) -> Self:
        """Return a tail as another process has left it; it reads on once it is attached to its source."""
        state = checkpoint.state
        device, inode = state["place"]
        account = Account.from_dict(state["account"])
        return cls(
            run=run,
            record=record,
            path=as_path(state["path"]),
            place=(device, inode),
            known=Print.from_state(state["print"]),
            spans={Series(*labels): (first, last) for *labels, first, last in state["spans"]},
            account=account,
            silent=next((entry for entry in account.missing if entry.caveat.code == SILENT), None),
            largest_ns=state["largest_ns"],
            _state=state["reader"],
            _held=OpenWindows(state["held"]),
            _segments=Segments(state.get("segments", ())),
        )

    def attach(self, source: Source) -> None:
        """Read on in the file of a source, from where this one has come to; InputError where it cannot be read."""
        descriptor = held_open(source.path)
        self.close()
        self.descriptor = descriptor
        status = os.fstat(self.descriptor)
        self.place, self.path = (status.st_dev, status.st_ino), source.path
        source.context.account.replace(replace(self.account, path=as_text(source.path), notes=list(source.context.account.notes)))
        self.source, self.account = source, source.context.account
        self._seen = None
        self._read_on(source)

    def _read_on(self, source: Source) -> None:
        """Make a reader that goes on where the one before has come to."""
        self._state = self._reader.state() if self._reader is not None else self._state
        kind = GrowingLog if source.format == HDR else GrowingDumps
        descriptor = self.descriptor  # not by way of this tail: what refers to itself stays until Python looks for circles
        self._reader = kind(source, lambda at, size: os.pread(descriptor, size, at), self._state)

    def close(self) -> None:
        """Let go of the file."""
        if self.descriptor >= 0:
            with suppress(OSError):
                os.close(self.descriptor)
        self.descriptor = -1

    @property
    def print(self) -> Print:
        """Return what its file is known by: of one that nothing was read of, all that it holds."""
        if self.known.offset or self.descriptor < 0:
            return self.known
        return Print.of(self.descriptor, os.fstat(self.descriptor).st_size)

    @property
    def reported_ns(self) -> int | None:
        """Return up to when all series of the file have reported, None before its first row."""
        if self._reader is not None:
            return self._reader.reported_ns
        return self._state["reported_ns"] if self._state else None

    @property
    def newest_ns(self) -> int | None:
        """Return the end of its newest row, None before the first."""
        return max((last for _, last in self.spans.values()), default=None)

    def fate(self, files: Mapping[Path, Seen], names: Mapping[Place, Path]) -> tuple[Fate, Path]:
        """Return what has become of the file, and its path now; nothing is read of one that has not changed."""
        here = files.get(self.path)
        if here is not None and here == self._seen:
            return Fate.SAME, self.path
        return fate_of(self.path, self.place, self.known, files, names)

    def is_there(self) -> bool:
        """Return whether the file has the name, at this moment, under which it was seen, and holds what was read of it."""
        try:
            with self.path.open("rb", buffering=0) as stream:
                status = os.fstat(stream.fileno())
                return (status.st_dev, status.st_ino) == self.place and self.known.fits(stream.fileno())
        except OSError:
            return False

    def has_grown(self, seen: Seen | None) -> bool:
        """Return whether there may be something to read."""
        return self.source is not None and (seen is None or seen != self._seen)

    def read(self, seen: Seen | None, *, last: bool = False) -> list[Intervals[Series]]:
        """Return the windows that new rows have changed, whole; none where the file has not grown. `last` reads a cut-off row."""
        if self._reader is None or not (last or self.has_grown(seen)):
            return []
        at_once, start = AT_ONCE, os.pread(self.descriptor, HEAD_BYTES, 0)
        while True:
            data = os.pread(self.descriptor, at_once, self.known.offset)
            size = len(data) if last and len(data) < at_once else self._reader.whole(data)
            if size or len(data) < at_once or at_once >= LARGEST_DOCUMENT:
                break
            at_once *= 2
        self.behind = len(data) == at_once
        self._seen = None if self.behind else seen
        return self._taken(start, data[:size]) if size else []

    def _taken(self, start: bytes, data: bytes) -> list[Intervals[Series]]:
        """Return the windows that whole lines or documents have changed."""
        assert self._reader is not None
        assert self.source is not None
        changed: list[Intervals[Series]] = []
        rows_of, context = self._reader.take(data, self.known.offset), self.source.context
        if expected := context.options.get(EXPECTED):
            rows_of = with_corrected(rows_of, int(expected), context.account)
        for recorded in in_their_layer(self.source, rows_of):
            if not len(recorded):
                continue
            rows = self._segments.apart(recorded)
            self.account.stored = (self.account.stored or 0) + total(rows.counts)
            for series, first, newest in rows.reach():
                low, high = self.spans.get(series, (first, newest))
                self.spans[series] = (min(low, first), max(high, newest))
            if len(rows.bins):
                self.largest_ns = max(self.largest_ns, int(rows.layout.upper[rows.bins].max()))
            parts = stored_parts(rows, self.source, self.run)
            check_storable(parts, self.run.step_ns, self.path)
            changed += self._held.add(parts)
        self.known = self.known.grown(start, data)
        return changed

    def fall_silent(self) -> None:
        """Keep in the account that all since its last report may be missing."""
        unknown = () if self.source is None else row_labels(self.source)
        series = next(iter(self.spans)) if self.source is None else self.source.context.series
        caveat = Caveat(SILENT, as_text(self.path), "has not grown for a minute: its later samples, if any, are missing", GROWS)
        self.silent = Missing(labels_of(series, unknown=unknown), self.reported_ns, None, None, 0, None, caveat)
        self.account.lack(self.silent)

    def speak(self) -> None:
        """Take back that it is silent."""
        if self.silent in self.account.missing:
            self.account.missing.remove(self.silent)
        self.silent = None

    def news(self, windows: list[Intervals[Series]], watch: str) -> News:
        """Return what the store is to keep of this tail, with windows to write."""
        self.record = replace(self.record, path=as_text(self.path), size=self.known.offset, account=self.kept())
        return News(self.record, windows, self.spans, Checkpoint(self.run.run, self.record.source, watch, self._state_of()))

    def kept(self, *notes: str) -> dict[str, Any]:
        """Return the account that the record of its source keeps, with further notes: of what a load keeps, too."""
        widths = {"1": row_width(self.source).to_dict()} if self.source is not None else self.record.account.get(WIDTHS, {})
        own = {STEP: self.record.step_ns} if self.record.step_ns else {}
        return {**self.account.as_dict(), **own, "notes": [*self.account.notes, *notes], WIDTHS: widths}

    def _state_of(self) -> dict[str, Any]:
        known = self.known
        return {
            "path": as_text(self.path),
            "place": self.place,
            "print": [known.offset, known.head_size, known.head, known.mark.hex()],
            "spans": [
                [*(getattr(series, label) for label in LABELS), series.segment, *span] for series, span in self.spans.items()
            ],
            "account": self.account.to_dict(),
            "largest_ns": self.largest_ns,
            "again": self.again,
            "held": self._held.state(),
            "segments": self._segments.state(),
            "reader": self._reader.state() if self._reader is not None else self._state,
        }


# Logs of single operations that grow: read from their beginning each time, up to their last whole line, as a load reads them.
#
# Their lines may come in any order: a late one changes a window of long ago and, where requests were due by a schedule, all
# that follow. Reading all again takes longer as a log grows, so it is re-read at intervals that keep reading under 10 % of the
# time.


REST = 9  # seconds of rest for each second of reading
_NONE = np.empty(0, np.int64)


class Written:
    """What one reading of a source has found: of each window its bounds, how many samples, and their sum."""

    def __init__(self, before: Written | None = None) -> None:
        """Begin a reading; what the one `before` has found was written."""
        self.codes: dict[object, int] = before.codes if before else {}
        self._known = before.found() if before else (_NONE, np.empty((4, 0), np.int64))
        self._ids: list[Int] = []
        self._facts: list[Int] = []

    def changed(self, part: Intervals[Series], step_ns: int) -> Intervals[Series]:
        """Return the windows that are new, or hold more than they did; all are noted."""
        codes = np.array([self.codes.setdefault(series, len(self.codes)) for series in part.table], np.int64)
        ids, facts = document_ids(codes[part.series], part.start_ns, step_ns), _facts(part)
        self._ids.append(ids)
        self._facts.append(facts)
        known, known_facts = self._known
        if not len(known):
            return part
        at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        same = (known[at] == ids) & (known_facts[:, at] == facts).all(axis=0)
        return part.take(np.flatnonzero(~same))

    def found(self) -> tuple[Int, Int]:
        """Return the windows that were noted, as numbers in order, and the facts of each."""
        ids = np.concatenate([_NONE, *self._ids])
        order = np.argsort(ids, kind="stable")
        return ids[order], np.concatenate([np.empty((4, 0), np.int64), *self._facts], axis=1)[:, order]


def _facts(part: Intervals[Series]) -> Int:
    """Return start, end, samples and sum of each window: what only grows with each sample, and bounds that others narrow.

    Bytes only grow, too, and are in the sum of what has them.
    """
    sums = part.exact.sum_ns if part.exact is not None else np.zeros(len(part), np.int64)
    if part.exact is not None and part.exact.bytes is not None:
        sums = sums + part.exact.bytes
    return np.stack([part.start_ns, part.end_ns, part.samples, sums])


@dataclass(slots=True)
class ReadAgain(Tail):
    """A source that is read from its beginning when it has grown. `took` are the seconds of the last time, of all of a watch."""

    again: ClassVar[bool] = True
    in_flight: bool = False
    took: dict[Path, float] = field(default_factory=dict)
    _ended: float = float("-inf")
    _notes: list[str] = field(default_factory=list)
    _written: Written | None = None

    def _read_on(self, source: Source) -> None:
        """Keep what was said of the source when it was found: every time begins with that alone."""
        self._notes = list(source.context.account.notes)

    @property
    def reported_ns(self) -> int | None:
        """Return the end of its newest row: an operation is logged when it has ended."""
        return self.newest_ns

    def read(self, seen: Seen | None, *, last: bool = False) -> list[Intervals[Series]]:
        """Return the windows that have changed; none where it has not grown, or was read lately. `last` reads a cut-off row."""
        self.behind = False
        if self.source is None or not (last or self.has_grown(seen)):
            return []
        began = time.monotonic()
        self.rests = not last and began < self._ended + REST * sum(self.took.values())
        if self.rests:
            return []
        path = Path(f"/proc/self/fd/{self.descriptor}") if self.gone else self.path
        try:
            size = os.fstat(self.descriptor).st_size if last else last_line_end(path)
        except InputError:  # it has gone: what is held open is read next time
            return []
        windows: list[Intervals[Series]] = []
        if size > self.known.offset:
            windows = self._read_whole(self.source, path, size)
            self._ended = time.monotonic()
            self.took[self.path] = self._ended - began
        self._seen = seen if self.known.offset == size else None
        return windows

    def _read_whole(self, source: Source, path: Path, size: int) -> list[Intervals[Series]]:
        """Return the windows of the first `size` bytes that have changed; none where the file was replaced meanwhile."""
        known, spans, windows = Print.of(self.descriptor, size), dict[Series, tuple[int, int]](), list[Intervals[Series]]()
        written, largest = Written(self._written), self.largest_ns
        account = Account(path=source.context.account.path, notes=list(self._notes))
        now = replace(source, path=path, context=replace(source.context, account=account, upto=size))
        try:
            for part in whole_windows(now, self.run, spans, in_flight=self.in_flight):
                if len(part.bins):
                    largest = max(largest, int(part.layout.upper[part.bins].max()))
                # By a schedule a late line moves when all later ones were due: what was written may be another by now.
                new = part if RATE in source.context.options else written.changed(part, self.run.step_ns)
                if len(new):
                    windows.append(alone(new))
        except InputError as error:
            account.lack(unreadable(source, error.reason))
        try:
            status = path.stat()
        except OSError:  # it has gone: what is held open is read next time
            return []
        if (status.st_dev, status.st_ino) != self.place or not known.fits(self.descriptor):
            return []
        self.account, self.spans, self.known = account, spans, known
        self.largest_ns, self._written = largest, written
        return windows
