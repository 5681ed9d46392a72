"""What sources of any format lack: files that are refused or end early, rows that were rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ingest.core.coverage import AGAIN, FEWER, MORE, REFUSED_FILE, SEE_INSPECT, Caveat, Missing, RowWidth, labels_of
from ingest.core.errors import as_text
from ingest.core.grid import stored_step
from ingest.core.intervals import Intervals
from ingest.core.labels import Series
from ingest.read.format_names import JSON, PLAIN_JSON
from ingest.read.formats import reader_of, row_labels, single_events

if TYPE_CHECKING:
    from ingest.core.events import Events
    from ingest.core.intervals import Int
    from ingest.read.account import Account
    from ingest.read.sources import Source

    Chunk = TypeVar("Chunk", Events, Intervals[Series])

CUT_SHORT, REJECTED = "cut-short", "rejected-rows"
SENTENCE = "lines were rejected: their samples are missing"
HOLES = ("NUL bytes", "more than 1 MiB")  # in the reason of a rejected line that may stand for many rows
MOST_STRETCHES = 64


def refused(run: str, labels: Mapping[str, str], path: Path, reason: str) -> Missing:
    """Return the missing samples of a run whose file is not read: anything, at any time, so far as its labels allow."""
    caveat = Caveat(REFUSED_FILE, as_text(path), f"not read: {reason}", SEE_INSPECT)
    return Missing({**labels, "run": run}, None, None, None, 0, None, caveat)


def unreadable(source: Source, reason: str) -> Missing:
    """Return the missing samples of a source that could not be read as its format."""
    return refused(source.context.series.run, _source_labels(source), source.path, reason)


def unlike_total(labels: Mapping[str, str], path: str, tool: str, stated: int, held: int, rejected: int = 0) -> Missing:
    """Return what a source lacks, or has too much of, where its tool counts `stated` samples and `held` are there.

    Of those that lack, `rejected` are known to be missing already.
    """
    lost = stated - held - rejected
    sentence = f"{tool} counts {stated:,} operations, "
    if lost > 0:
        sentence += f"of which {held:,} are here: {lost:,} are in no line"
        return Missing(labels, None, None, lost, 0, None, Caveat(FEWER, path, sentence, AGAIN))
    sentence += f"and {held:,} are here: counted twice?"
    return Missing(labels, None, None, None, 0, None, Caveat(MORE, path, sentence, SEE_INSPECT))


def followed(source: Source, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Yield the rows or events of a source; if its file ends early, what came after them is kept as missing in its account."""
    newest: Chunk | None = None
    for chunk in chunks:
        newest = chunk if len(chunk) else newest
        yield chunk
    account = source.context.account
    if account.cut_short:
        from_ns = None
        if newest is not None:
            from_ns = min(int(newest.end_ns[newest.series == code].max()) for code in np.unique(newest.series))
        caveat = Caveat(CUT_SHORT, account.path, f"{account.cut_short}: everything after that is missing", "copy the file again")
        account.lack(Missing(_source_labels(source), from_ns, None, None, 0, None, caveat))


class RejectedLines:
    """Keeps rejected lines of single operations as missing samples, each lot between the operations before and after it.

    Operations come nearly in order of time. Lines of which none is near may have been of any time. Reasons that are `harmless`
    cost no sample; with `weighed` a line stands for a number of operations that it says itself.
    """

    def __init__(
        self, account: Account, labels: Mapping[str, str], harmless: Collection[str] = (), *, weighed: bool = False
    ) -> None:
        self._account, self._labels, self._harmless, self._weighed = account, labels, harmless, weighed
        self._seen: Counter[str] = Counter(account.rejected)
        self._last_ns: int | None = None
        self._waiting: tuple[int | None, int | None, int] | None = None  # how many, from when, the last end around them
        self._kept: list[Missing] = []

    def passed(self, end_ns: Int) -> None:
        """Take the ends in ns of operations that were accepted since the last call; lines rejected since then lie among them."""
        if self._waiting is not None and len(end_ns):
            number, from_ns, newest = self._waiting
            self._waiting = None
            self._keep(number, from_ns, max(int(end_ns.min()), newest))
        number = self._lost()
        if not len(end_ns):
            if number != 0:
                self._keep(number, None, None)
            return
        first, newest = int(end_ns.min()), int(end_ns.max())
        if number != 0:
            self._waiting = number, None if self._last_ns is None else min(first, self._last_ns), newest
        self._last_ns = newest if self._last_ns is None else max(self._last_ns, newest)

    def finish(self) -> None:
        """Keep the lines that were rejected behind the last operation, and those that still wait for what comes after them."""
        if self._waiting is not None:
            self._keep(*self._waiting[:2], None)
            self._waiting = None
        number = self._lost()
        if number != 0:
            self._keep(number, self._last_ns, None)

    def _lost(self) -> int | None:
        """Return how many samples the lines cost that were rejected since the last call; None where that is not known."""
        new = {reason: number - self._seen[reason] for reason, number in self._account.rejected.items()}
        self._seen = Counter(self._account.rejected)
        costly = {reason: number for reason, number in new.items() if number and reason not in self._harmless}
        uncounted = self._weighed or any(hole in reason for reason in costly for hole in HOLES)
        return None if costly and uncounted else sum(costly.values())

    def _keep(self, number: int | None, from_ns: int | None, to_ns: int | None) -> None:
        low = None if from_ns is None else from_ns - 1  # (from, to]: what completed with the operation before may be missing, too
        caveat = Caveat(REJECTED, self._account.path, SENTENCE)
        entries = [*self._kept, Missing(self._labels, low, to_ns, number, 0, None, caveat)]
        if len(entries) > MOST_STRETCHES:
            entries = [_together(entries)]
        kept = [entry for entry in self._account.missing if entry not in self._kept]
        self._account.missing[:] = [*kept, *entries]
        self._kept = entries


def _together(entries: Sequence[Missing]) -> Missing:
    """Return missing samples of the same labels as one entry, from the first to the last."""
    begins, ends, counts = ([getattr(entry, name) for entry in entries] for name in ("from_ns", "to_ns", "count"))
    return replace(
        entries[0],
        from_ns=None if None in begins else min(begins),
        to_ns=None if None in ends else max(ends),
        count=None if None in counts else sum(counts),
    )


def counting_rejected(source: Source, chunks: Iterator[Events]) -> Iterator[Events]:
    """Yield the events of a source; lines that were rejected between them are kept as missing in its account."""
    context = source.context
    weighed = "weight" in getattr(context.description, "columns", ())
    lost = RejectedLines(context.account, _source_labels(source), reader_of(source.format).harmless, weighed=weighed)
    for chunk in chunks:
        lost.passed(np.array(chunk.reach[:2]) if len(chunk) else chunk.end_ns)
        yield chunk
    lost.finish()


def row_width(source: Source) -> RowWidth:
    """Return how wide the rows of a source are."""
    reader, whole = reader_of(source.format), source.format in (JSON, PLAIN_JSON)
    kinds = {"any_step": reader.events is not None, "whole": whole, "by_second": reader.by_second}
    return RowWidth(_source_labels(source), source.width_ns, as_text(source.path), **kinds)


def own_step(source: Source) -> int:
    """Return the step in ns that the rows of a source suggest, 0 where they may be cut anywhere or do not say."""
    return 0 if single_events(source) or not source.width_ns else stored_step(source.width_ns)


def _source_labels(source: Source) -> dict[str, str]:
    return labels_of(source.context.series, unknown=row_labels(source))
