"""Parts: the logs of one host that a load adds up (`--add-up`). To a store a part is one source.

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

from ingest.core.errors import InputError, StoreError, UsageError, listed, plural
from ingest.core.plain import as_text
from ingest.core.series import Series
from ingest.load.adding_up import SEGMENT_BITS
from ingest.read import Source
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.format_names import SNABB
from ingest.store import Store
from ingest.store.added_up import LABELS, MEMBERS
from ingest.store.records import SourceRecord

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
    samples: Sequence[int] = [0] * len(logs) if accounts is None else [account.samples for account in accounts]
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
