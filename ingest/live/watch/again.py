"""Logs of single operations that grow: read from their beginning each time, up to their last whole line, as a load reads them.

Their lines may come in any order: a late one changes a window of long ago and, where requests were due by a schedule, all that
follow. Reading all again takes the longer the more there is, so it is done as seldom as makes it a tenth of the time.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from ingest.documents import document_ids
from ingest.errors import InputError
from ingest.intervals import Bool, Int, Intervals
from ingest.live.watch.files import Print, Seen
from ingest.live.watch.tail import Tail
from ingest.load import whole_windows
from ingest.read import Source
from ingest.read.account import Account
from ingest.read.context import RATE
from ingest.read.sources import DESCRIBED, HDR, OPERATIONS, SMALLFILE, YCSB
from ingest.read.text import COMPRESSED, last_line_end
from ingest.series import Series

FORMATS = (HDR, OPERATIONS, SMALLFILE, YCSB, DESCRIBED)
REST = 9  # seconds of rest for each second of reading



def can_be_read_again(source: Source, *, dated_by_file: bool) -> bool:
    """Return whether a source is read anew when it has grown: plain logs of lines whose stamps do not hang on the file's time."""
    return source.format in FORMATS and source.path.suffix not in COMPRESSED and not dated_by_file


class Written:
    """What was written of a source: of each window its bounds, how many samples, and their sum."""

    def __init__(self) -> None:
        self._codes: dict[object, int] = {}
        self._ids, self._facts = np.empty(0, np.int64), np.empty((4, 0), np.int64)

    def changed(self, parts: list[Intervals], step_ns: int) -> list[Intervals]:
        """Return the windows that are new, or hold more than when they were written last; all are noted as written."""
        if not parts:
            return []
        ids = [self._ids_of(part, step_ns) for part in parts]
        facts = [_facts(part) for part in parts]
        found = [part.take(np.flatnonzero(~self._same(*one))) for part, *one in zip(parts, ids, facts, strict=True)]
        order = np.argsort(np.concatenate(ids), kind="stable")
        self._ids, self._facts = np.concatenate(ids)[order], np.concatenate(facts, axis=1)[:, order]
        return [part for part in found if len(part)]

    def _ids_of(self, part: Intervals, step_ns: int) -> Int:
        codes = np.array([self._codes.setdefault(series, len(self._codes)) for series in part.table], np.int64)
        return document_ids(codes[part.series], part.start_ns, step_ns)

    def _same(self, ids: Int, facts: Int) -> Bool:
        if not len(self._ids):
            return np.zeros(len(ids), np.bool_)
        at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        same: Bool = (self._ids[at] == ids) & (self._facts[:, at] == facts).all(axis=0)
        return same


def _facts(part: Intervals) -> Int:
    """Return start, end, samples and sum of each window: what only grows with each sample, and bounds that others narrow."""
    sums = part.exact.sum_ns if part.exact is not None else np.zeros(len(part), np.int64)
    return np.stack([part.start_ns, part.end_ns, part.samples, sums])


@dataclass(slots=True)
class ReadAgain(Tail):
    """A source that is read from its beginning when it has grown. `took` are the seconds of the last time, of all of a watch."""

    again: ClassVar[bool] = True
    in_flight: bool = False
    took: dict[Path, float] = field(default_factory=dict)
    _ended: float = float("-inf")
    _notes: list[str] = field(default_factory=list)
    _written: Written = field(default_factory=Written)

    def _read_on(self, source: Source) -> None:
        """Keep what was said of the source when it was found: every time begins with that alone."""
        self._notes = list(source.context.account.notes)

    @property
    def reported_ns(self) -> int | None:
        """Return the end of its newest row: an operation is logged when it has ended."""
        return self.newest_ns

    def read(self, seen: Seen | None, *, last: bool = False) -> list[Intervals]:
        """Return the windows that have changed; none where it has not grown, or was read lately. `last` reads a cut-off row."""
        self.behind = False
        if self.source is None or not (last or self.has_grown(seen)):
            return []
        began = time.monotonic()
        self.rests = not last and began < self._ended + REST * sum(self.took.values())
        if self.rests:
            return []
        path = Path(f"/proc/self/fd/{self.descriptor}") if self.gone else self.path
        size = os.fstat(self.descriptor).st_size if last else last_line_end(path)
        windows: list[Intervals] = []
        if size > self.known.offset:
            windows = self._read_whole(self.source, path, size)
            self._ended = time.monotonic()
            self.took[self.path] = self._ended - began
        self._seen = seen if self.known.offset == size else None
        return windows

    def _read_whole(self, source: Source, path: Path, size: int) -> list[Intervals]:
        """Return the windows of the first `size` bytes that have changed; none where the file was replaced meanwhile."""
        known, spans, windows = Print.of(self.descriptor, size), dict[Series, tuple[int, int]](), list[Intervals]()
        account = Account(path=source.context.account.path, notes=list(self._notes))
        now = replace(source, path=path, context=replace(source.context, account=account, upto=size))
        try:
            windows.extend(whole_windows(now, self.run.step_ns, spans, in_flight=self.in_flight))
        except InputError as error:
            account.note(f"not read: {error.reason}")
        found = path.stat()
        if (found.st_dev, found.st_ino) != self.place or not known.fits(self.descriptor):
            return []
        self.account, self.spans, self.known = account, spans, known
        for part in windows:
            if len(part.bins):
                self.largest_ns = max(self.largest_ns, int(part.layout.edges[int(part.bins.max()) + 1]))
        if RATE in source.context.options:  # a late line moves when others were due: what was written may be another by now
            return windows
        return self._written.changed(windows, self.run.step_ns)
