"""Runs that are loaded while they grow: the records that a watch keeps beside documents, and the interface of stores for it.

A watch writes the windows of growing logs again until they are whole. Its sources count as loading until they are settled
by an ordinary load. A checkpoint says how far a log was read; documents are written before it, and windows whole, so that
reading on from an older checkpoint writes the same documents again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from ingest.core.intervals import Intervals
from ingest.core.labels import Series
from ingest.store.records import UNKNOWN_ZERO, WATCHED, RunRecord, SourceRecord, Spans

NOTHING_LEFT = 1 << 62  # as `final_ns`: no live series is waited for
NOTHING_FINAL = -NOTHING_LEFT
SILENT_NS = 60 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a source was read, in words of its reader, and by which watch."""

    run: str
    source: str
    watch: str
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Watch:
    """A watch of a run, as others see it: up to when windows are final as far as it knows, and when (epoch ns) it noted that.

    `hosts` are its marks by host; they are not stored.
    """

    run: str
    watch: str
    final_ns: int
    largest_ns: int
    told_ns: int
    hosts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class News:
    """What a cycle has read of a source: its record with the account so far, windows to write whole, reach, checkpoint."""

    source: SourceRecord
    windows: Sequence[Intervals[Series]]
    spans: Spans
    checkpoint: Checkpoint


@dataclass(frozen=True, slots=True)
class Marks:
    """Up to when windows are final: of the cluster, and of hosts whose series are read here; others as the cluster."""

    cluster_ns: int
    hosts: Mapping[str, int] = field(default_factory=dict)

    def of(self, host: str) -> int:
        """Return up to when the windows of a host are final, of the cluster for empty text."""
        return self.hosts.get(host, self.cluster_ns) if host else self.cluster_ns


ALL_FINAL = Marks(NOTHING_LEFT)


class LiveStore(Protocol):
    """What a store does for a watch."""

    def checkpoints(self, run: str) -> list[Checkpoint]:
        """Return all checkpoints of a run."""

    def watches(self, run: str) -> list[Watch]:
        """Return the watches of a run."""

    def keep(self, run: RunRecord, news: Sequence[News], watch: Watch) -> int:
        """Write what a cycle has read, the rollups of its windows, then checkpoints and marks; return how many documents."""

    def forget(self, run: RunRecord, sources: Iterable[str], watch: Watch) -> None:
        """Delete sources with their documents and checkpoints, and make the rollups anew where they were."""

    def set_aside(self, run: RunRecord, source: str, kept: SourceRecord, segment: int) -> None:
        """Move the documents of a source to another one, complete, their series' segments moved by `segment`.

        Nothing is done once a later reading of the source has begun: it takes over what there is of it.
        """

    def finish(self, source: SourceRecord) -> None:
        """Note that a source is complete as it is: its file is gone, and no more of it can be read."""

    def note_watch(self, watch: Watch) -> None:
        """Note up to when windows are final as far as a watch knows."""

    def leave(self, run: str, watch: str) -> None:
        """Delete a watch that has settled all that it read, with its checkpoints."""


def marks_of(watches: Iterable[Watch], own: Watch, now_ns: int) -> Marks:
    """Return up to when windows are final where all watches are heard, but those silent for a minute; `own` stands for itself."""
    others = [watch for watch in heard(watches, now_ns) if watch.watch != own.watch]
    return Marks(min([own.final_ns, *(watch.final_ns for watch in others)]), own.hosts)


def heard(watches: Iterable[Watch], now_ns: int | None = None) -> list[Watch]:
    """Return the watches that were heard within the last minute: the others were killed, or have lost their store."""
    now = time.time_ns() if now_ns is None else now_ns
    return [watch for watch in watches if now - watch.told_ns < SILENT_NS]


def final_by_all(watches: Iterable[Watch]) -> Marks:
    """Return up to when windows are final as far as all watches that are heard know."""
    return Marks(min((watch.final_ns for watch in heard(watches)), default=NOTHING_LEFT))


def provisional(record: RunRecord) -> str:
    """Return the sentence that a reader of a run's numbers must see while it is being watched."""
    final = record.final_ns
    if final is None or final == NOTHING_FINAL:
        return f"{record.run} is being watched: all of it is provisional"
    if final >= NOTHING_LEFT:
        return f"{record.run} is being watched: its logs are read to their end and not settled yet"
    if record.zero == UNKNOWN_ZERO:
        return f"{record.run} is being watched: provisional after +{(final - record.start_ns) / 1e9:.0f}s"
    when = datetime.fromtimestamp(final // 10**9, UTC).isoformat().replace("+00:00", "Z")
    return f"{record.run} is being watched: provisional after {when}"


def watched(records: Sequence[RunRecord], watches: Iterable[Watch]) -> list[RunRecord]:
    """Return the records, those of runs that are being watched with that state and their final mark.

    A watch that is silent for a minute counts for nothing: the run is what its sources are, complete or cut off.
    """
    marks: dict[str, int] = {}
    for watch in heard(watches):
        marks[watch.run] = min(watch.final_ns, marks.get(watch.run, watch.final_ns))
    return [replace(record, state=WATCHED, final_ns=marks[record.run]) if record.run in marks else record for record in records]
