"""Logs of one host added up while they are read (`--add-up`): to a store a part is one source.

Logs of one host added up while they are read: windows, bin by bin, under the labels that they share.

    h1 job 1  1s  {500 us: 3, 900 us: 1}
    h1 job 2  1s  {500 us: 2}             ->  h1  1s  {500 us: 5, 900 us: 1}

Logs are read side by side, the one that is furthest behind first, so that little is held. Windows whose end all logs have
passed are given out. What comes for such a window later (a log whose time runs back) is a further segment: no window is given
twice. Each layout is a segment of its own, too, as in a log that is stored alone.

Parts: the logs of one host that a load adds up (`--add-up`). To a store a part is one source.

A part is named after the identities of its logs, and its record lists them (`MEMBERS`) with their digests. A log belongs to one
part:

    load h1/job1 h1/job2    part of job 1 and job 2
    load h1/job3            a second part: its documents stand beside those of the first, and answers add both up
    load h1                 nothing new
    job 2 has grown         its part is read again, all of it: its other logs have to be there, else the load is refused

So repeats and corrections converge as those of single logs do, by the generation of the part. Two loads that begin at once with
logs in common see each other in the records: who comes second takes its claim back.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ingest.core.errors import InputError, StoreError, UsageError, as_text, listed, plural
from ingest.core.intervals import Intervals, Sum, distinct
from ingest.core.labels import Series
from ingest.core.layout import Layout
from ingest.core.offsets import is_offsets
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.format_names import SNABB
from ingest.read.sources import Source
from ingest.store import Store
from ingest.store.coverage import LABELS, MEMBERS
from ingest.store.records import SourceRecord

Spans = dict[Series, tuple[int, int]]
Windows = Iterator[Intervals[Series]]

SEGMENT_BITS = 12  # the lower bits of a segment's number: which one of its part
HELD_ENTRIES = 1_000_000  # bins of windows that wait for other logs, before any are given out: 16 MB
WAITING = 60  # windows that a log may be late by, as an op that is rare
EVER = 2**62


class LogAggregation:
    """The windows of several logs under the labels that they share; `first_segment` is the number of its first segment."""

    def __init__(self, labels: Sequence[str], first_segment: int, step_ns: int) -> None:
        self._dropped = dict.fromkeys(labels, "")
        self._first = first_segment
        self._wait_ns = WAITING * step_ns
        self._held: Sum[Series] = Sum(HELD_ENTRIES)
        self._entries, self._most = 0, HELD_ENTRIES
        self._passed, self._late = -EVER, 0
        self._given: dict[tuple[Series, Layout, int], Series] = {}
        self._segments: dict[Series, int] = {}

    def windows(self, logs: Sequence[Windows]) -> Windows:
        """Yield the windows of `logs` added up; offsets go through. InputError for a log whose time runs back too often."""
        reached = dict.fromkeys(range(len(logs)), -EVER)
        while reached:
            number = min(reached, key=lambda each: (reached[each], each))
            part = next(logs[number], None)
            if part is None:
                del reached[number]
            elif is_offsets(part):
                yield part
            elif len(part):
                reached[number] = max(reached[number], int(part.start_ns.max()))
                self._held.add(part.relabelled(self.shared))
                self._entries += len(part.bins)
            if self._entries >= self._most and reached:
                yield from self._whole(min(reached.values()) - self._wait_ns)
        yield from self._whole(EVER)

    def shared(self, series: Series) -> Series:
        """Return the series that the windows of a log's series are added up under, without the number of its segment."""
        return series.replaced(segment=0, **self._dropped)

    def reach(self, spans: Sequence[Spans]) -> Spans:
        """Return from when to when the segments that were given out reach, by the reach of the series of each log."""
        extents: Spans = {}
        for own in spans:
            for series, (first, last) in own.items():
                low, high = extents.get(self.shared(series), (first, last))
                extents[self.shared(series)] = min(low, first), max(high, last)
        return {given: extents[series] for (series, _, _), given in self._given.items() if series in extents}

    def _whole(self, until_ns: int) -> Windows:
        """Yield the windows that begin before `until_ns`, and go on holding the others."""
        parts, self._held, self._entries, late = self._held.parts(), Sum(HELD_ENTRIES), 0, False
        for rows in parts:
            before = rows.start_ns < self._passed
            late |= bool(before.any())
            for level, chosen in ((self._late + 1, before), (0, ~before & (rows.start_ns < until_ns))):
                if chosen.any():
                    yield self._in_segments(rows.take(np.flatnonzero(chosen)), level)
            rest = rows.take(np.flatnonzero(~before & (rows.start_ns >= until_ns)))
            self._held.add(rest)
            self._entries += len(rest.bins)
        self._passed = max(self._passed, until_ns)
        self._late += late
        self._most = max(self._most, 2 * self._entries)

    def _in_segments(self, rows: Intervals[Series], late: int) -> Intervals[Series]:
        """Return rows of one layout under the segments that hold these; `late` tells apart those that come after their window."""
        for code in distinct(rows.series).tolist():
            series = rows.table[code]
            if (series, rows.layout, late) not in self._given:
                number = self._segments.get(series, 0)
                if number >> SEGMENT_BITS:
                    raise InputError("time begins anew in these logs too often to add them up: load them without --add-up")
                self._segments[series] = number + 1
                self._given[series, rows.layout, late] = series.replaced(segment=self._first + number)
        names = iter([self._given.get((series, rows.layout, late), series) for series in rows.table])
        return rows.relabelled(lambda _: next(names))


ADDED_UP = "added-up"
OF_LOG = ("source", "path", "size", "digest", "context")
MOST_LOGS = 64  # of a part: they are open at once
DIGEST_SIZE = 16
NUMBER_SIZE = 5  # bytes of a part's number: with the bits of its segments it stays exact where numbers are doubles

Work = tuple[Source, SourceRecord]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a run: its record, and its logs, each with the record that it would have alone."""

    record: SourceRecord
    logs: tuple[Work, ...]

    @property
    def source(self) -> Source:
        """Return the logs as one source; its path is the folder that holds them all."""
        paths = [source.path for source, _ in self.logs]
        path = paths[0] if len(paths) == 1 else Path(os.path.commonpath(paths))
        series = self.logs[0][0].context.series
        return Source(path, ADDED_UP, Context(series=Series(run=series.run, host=series.host), account=Account(path=str(path))))

    @property
    def first_segment(self) -> int:
        """Return the number of its first segment, which tells its documents from those of other parts of the host."""
        number = hashlib.blake2b(self.record.source.encode(), digest_size=NUMBER_SIZE).digest()
        return (int.from_bytes(number) + 1) << SEGMENT_BITS


def labels_in(text: str) -> tuple[str, ...]:
    """Return the labels that `--add-up` names, always in the same order; UsageError for one that cannot be added up."""
    named = {label.strip() for label in text.split(",") if label.strip()}
    for label in sorted(named - {*LABELS}):
        raise UsageError(f"--add-up {label}: only {listed(LABELS)} can be added up; runs, hosts, ops and kinds stay apart")
    return tuple(label for label in LABELS if label in named)


def members_of(record: SourceRecord) -> list[SourceRecord]:
    """Return the records of the logs of a part as if each had been loaded alone; of another source its own."""
    if not record.source.startswith(f"{ADDED_UP}|"):
        return [record]
    return [
        replace(
            record,
            source=log["source"],
            path=log["path"],
            size=int(log["size"]),
            digest=log["digest"] if record.digest else "",  # none where all of it is to be read again
            context=log["context"],
            account={"samples": log.get("samples", 0)},
        )
        for log in record.account.get(MEMBERS, {}).values()
    ]


def parts_of(
    run: str,
    sources: Sequence[Source],
    work: Sequence[Work],
    records: Sequence[SourceRecord],
    first: int,
    duplicates: Counter[str],
) -> list[Part]:
    """Return the parts of a run that have to be read for `work`, of which `sources` are given and `records` are stored.

    Logs that are read again only because another of their part is are no longer counted in `duplicates`. StoreError where a log
    of such a part is not given, InputError for a log that cannot be added up.
    """
    for source, _ in work:
        if source.format == SNABB:
            raise InputError("timelines of Snabb hold breaths, which are not added up: load them without --add-up", source.path)
    given: dict[str, Source] = {}
    for source in sources:
        given.setdefault(source.identity, source)
    todo = {record.source: (source, record) for source, record in work}
    parts = []
    for record in records:
        members = members_of(record)
        if not any(member.source in todo for member in members):
            continue
        if absent := [member.path for member in members if member.source not in given]:
            raise StoreError(
                f"{record.path}: some of its logs are new or changed, and were added up with {listed(absent)} ({run}): "
                f"give {plural(len(absent), 'that log', 'those logs')}, too"
            )
        logs = [todo.get(member.source, (given[member.source], member)) for member in members]
        again = sum(log is member for (_, log), member in zip(logs, members, strict=True))
        duplicates["already loaded"] = max(0, duplicates["already loaded"] - again)
        parts.append(_part(run, record.source, logs, max(log.generation for _, log in logs)))
        todo = {name: log for name, log in todo.items() if name not in {member.source for member in members}}
    if not duplicates["already loaded"]:
        del duplicates["already loaded"]
    generations = {record.source: record.generation for record in records}
    for logs in _new(todo.values()):
        digest = _digest(sorted(record.source for _, record in logs))
        name = f"{ADDED_UP}|{logs[0][0].context.series.host}|{digest}"
        parts.append(_part(run, name, logs, generations.get(name, first - 1) + 1))
    return parts


def _new(work: Iterable[Work]) -> Iterator[list[Work]]:
    """Yield logs that are new, those of each host together, at most MOST_LOGS at a time."""
    hosts: dict[str, list[Work]] = {}
    for source, record in sorted(work, key=lambda log: log[1].source):
        hosts.setdefault(source.context.series.host, []).append((source, record))
    for logs in hosts.values():
        for start in range(0, len(logs), MOST_LOGS):
            yield logs[start : start + MOST_LOGS]


def _part(run: str, name: str, logs: Sequence[Work], generation: int) -> Part:
    ordered = tuple(sorted(logs, key=lambda log: log[1].source))
    record = SourceRecord(
        run=run,
        source=name,
        path="",
        size=sum(log.size for _, log in ordered),
        digest=_digest([log.digest for _, log in ordered]),
        context=_digest([log.context for _, log in ordered]),
        generation=generation,
        account={MEMBERS: _members([log for _, log in ordered])},
    )
    part = Part(record, ordered)
    return Part(replace(record, path=as_text(part.source.path)), ordered)


def _members(logs: Sequence[SourceRecord], accounts: Sequence[Account] | None = None) -> dict[str, dict[str, Any]]:
    samples: Sequence[int] = [0] * len(logs) if accounts is None else [account.stored or 0 for account in accounts]
    return {
        str(number): {**{name: getattr(log, name) for name in OF_LOG}, "samples": held}
        for number, (log, held) in enumerate(zip(logs, samples, strict=True), 1)
    }


def _digest(texts: Sequence[str]) -> str:
    return hashlib.blake2b("\n".join(texts).encode(), digest_size=DIGEST_SIZE).hexdigest()


def account_of(part: Part, accounts: Sequence[Account]) -> dict[str, Any]:
    """Return the accounts of the logs of a part as that of one source: nothing of them is lost, their logs are listed."""
    total: dict[str, Any] = {}
    for account in accounts:
        for name, value in account.as_dict().items():
            total[name] = _joined(total[name], value) if name in total else value
    return {**total, MEMBERS: _members([log for _, log in part.logs], accounts)}


def _joined(first: Any, second: Any) -> Any:
    """Return values of two accounts as that of both: numbers added up, lists and numbered entries after one another."""
    if not isinstance(first, dict):
        return first + second
    entries = [*first.values(), *second.values()]
    if all(isinstance(entry, dict) for entry in entries):
        return {str(number): entry for number, entry in enumerate(entries, 1)}
    return dict(sorted((Counter(first) + Counter(second)).items()))


def check_claims(store: Store, run: str, parts: Mapping[str, Part]) -> str:
    """Return a sentence where another load has claimed a log of these parts meanwhile for a part of its own, else empty text."""
    mine = {log.source: part for part in parts.values() for _, log in part.logs}
    for record in store.sources(run):
        if record.source in parts:
            continue
        for log in members_of(record):
            if log.source in mine:
                return (
                    f"{log.path} is being loaded by two loads at once, each adds it up with other logs: this one has stored "
                    "nothing of it; run it again when the other has ended"
                )
    return ""
