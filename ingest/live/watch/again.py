"""Logs of single operations that grow: read from their beginning each time, up to their last whole line, as a load reads them.

Their lines may come in any order: a late one changes a window of long ago and, where requests were due by a schedule, all that
follow. Reading all again takes longer as a log grows, so it is re-read at intervals that keep reading under 10 % of the time.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from ingest.core.documents import document_ids
from ingest.core.errors import InputError
from ingest.core.intervals import Int, Intervals
from ingest.core.series import Series
from ingest.live.watch.files import Print, Seen
from ingest.live.watch.held import alone
from ingest.live.watch.tail import Tail
from ingest.load.load import whole_windows
from ingest.read import Source
from ingest.read.account import Account
from ingest.read.context import RATE
from ingest.read.format_names import HDR
from ingest.read.formats import AGAIN, reader_of
from ingest.read.text import is_plain, last_line_end

REST = 9  # seconds of rest for each second of reading
_NONE = np.empty(0, np.int64)


def can_be_read_again(source: Source, *, dated_by_file: bool) -> bool:
    """Return whether a source is read anew when it has grown: plain logs of lines whose stamps do not hang on the file's time."""
    by_lines = reader_of(source.format).grows == AGAIN or source.format == HDR
    return by_lines and is_plain(source.path) and not dated_by_file


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
        size = os.fstat(self.descriptor).st_size if last else last_line_end(path)
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
            for part in whole_windows(now, self.run.step_ns, spans, in_flight=self.in_flight):
                if len(part.bins):
                    largest = max(largest, int(part.layout.edges[int(part.bins.max()) + 1]))
                # By a schedule a late line moves when all later ones were due: what was written may be another by now.
                new = part if RATE in source.context.options else written.changed(part, self.run.step_ns)
                if len(new):
                    windows.append(alone(new))
        except InputError as error:
            account.note(f"not read: {error.reason}")
        status = path.stat()
        if (status.st_dev, status.st_ino) != self.place or not known.fits(self.descriptor):
            return []
        self.account, self.spans, self.known = account, spans, known
        self.largest_ns, self._written = largest, written
        return windows
