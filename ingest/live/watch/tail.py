"""A file that is read as it grows: how far, what its reader knows, the windows that are not whole yet."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from ingest.core.caveats import Caveat
from ingest.core.documents import check_storable
from ingest.core.grid import window_parts
from ingest.core.intervals import Intervals
from ingest.core.missing import Missing, labels_of
from ingest.core.plain import as_path, as_text
from ingest.core.segments import Segments
from ingest.core.series import LABELS, Series
from ingest.live.watch.files import Fate, Place, Print, Seen, fate_of, held_open
from ingest.live.watch.growing import Growing, growing, with_corrections
from ingest.live.watch.held import Held
from ingest.read import Source
from ingest.read.account import Account
from ingest.read.fio.texts import LARGEST_DOCUMENT
from ingest.read.formats import row_labels
from ingest.read.layers import in_their_layer
from ingest.store.live import Checkpoint, News
from ingest.store.records import RunRecord, SourceRecord

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
    _reader: Growing | None = None
    _state: Mapping[str, Any] | None = None
    _held: Held = field(default_factory=Held)
    _segments: Segments = field(default_factory=Segments)
    _seen: Seen | None = None

    @classmethod
    def left(cls, run: RunRecord, record: SourceRecord, checkpoint: Checkpoint) -> Self:
        """Return a tail as another process has left it; it reads on once it is attached to its source."""
        state = checkpoint.state
        device, inode = state["place"]
        offset, size, head, mark = state["print"]
        account = Account.of(state["account"])
        return cls(
            run=run,
            record=record,
            path=as_path(state["path"]),
            place=(device, inode),
            known=Print(offset, size, head, bytes.fromhex(mark)),
            spans={Series(*labels): (first, last) for *labels, first, last in state["spans"]},
            account=account,
            silent=next((entry for entry in account.missing if entry.caveat.code == SILENT), None),
            largest_ns=state["largest_ns"],
            _state=state["reader"],
            _held=Held(state["held"]),
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
        self._reader = growing(source, lambda at, size: os.pread(self.descriptor, size, at), self._state)

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

    @property
    def rows(self) -> int:
        """Return how many rows there were so far."""
        return self.account.rows

    def fate(self, files: Mapping[Path, Seen], names: Mapping[Place, Path]) -> tuple[Fate, Path]:
        """Return what has become of the file, and its path now; nothing is read of one that has not changed."""
        here = files.get(self.path)
        if here is not None and here == self._seen:
            return Fate.SAME, self.path
        return fate_of(self.path, self.place, self.known, files, names)

    def has_grown(self, seen: Seen | None) -> bool:
        """Return whether there may be something to read."""
        return self.source is not None and (seen is None or seen != self._seen)

    def read(self, seen: Seen | None, *, last: bool = False) -> list[Intervals[Series]]:
        """Return the windows that new rows have changed, whole; none where the file has not grown. `last` reads a cut-off row."""
        if self._reader is None or not (last or self.has_grown(seen)):
            return []
        at_once = AT_ONCE
        while True:
            data = os.pread(self.descriptor, at_once, self.known.offset)
            size = len(data) if last and len(data) < at_once else self._reader.whole(data)
            if size or len(data) < at_once or at_once >= LARGEST_DOCUMENT:
                break
            at_once *= 2
        self.behind = len(data) == at_once
        self._seen = None if self.behind else seen
        return self._taken(data[:size]) if size else []

    def _taken(self, data: bytes) -> list[Intervals[Series]]:
        """Return the windows that whole lines or documents have changed."""
        assert self._reader is not None
        assert self.source is not None
        changed: list[Intervals[Series]] = []
        rows_of = in_their_layer(self.source, with_corrections(self.source, self._reader.take(data, self.known.offset)))
        for recorded in rows_of:
            if not len(recorded):
                continue
            rows = self._segments.apart(recorded)
            for series, first, newest in rows.reach():
                low, high = self.spans.get(series, (first, newest))
                self.spans[series] = (min(low, first), max(high, newest))
            if len(rows.bins):
                self.largest_ns = max(self.largest_ns, int(rows.layout.edges[int(rows.bins.max()) + 1]))
            parts = window_parts(rows, self.run.step_ns)
            check_storable(parts, self.run.step_ns, self.path)
            changed += self._held.add(parts)
        self.known = Print.of(self.descriptor, self.known.offset + len(data))
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
        self.record = replace(self.record, path=as_text(self.path), size=self.known.offset, account=self.account.as_dict())
        return News(self.record, windows, self.spans, Checkpoint(self.run.run, self.record.source, watch, self._kept()))

    def _kept(self) -> dict[str, Any]:
        known = self.known
        return {
            "path": as_text(self.path),
            "place": self.place,
            "print": [known.offset, known.head_size, known.head, known.mark.hex()],
            "spans": [
                [*(getattr(series, label) for label in LABELS), series.segment, *span] for series, span in self.spans.items()
            ],
            "account": self.account.told(),
            "largest_ns": self.largest_ns,
            "again": self.again,
            "held": self._held.state(),
            "segments": self._segments.state(),
            "reader": self._reader.state() if self._reader is not None else self._state,
        }
