"""What a store holds of a run as lines of bulk requests, and dead letters sent again.

What a store holds of a run, as the lines of bulk requests: sent to a server that was set up, the run is there.

    {"index":{"_index":"tailboard-intervals-2026.11","_id":"u1Zc3gJ0sV6m8Wm5b4Yq1db3b6e8"}}
    {"@timestamp":1789999200000,"run":{"id":"nightly-42"},"host":{"name":"ceph-a"},...}

From Elasticsearch documents are read back as they are; from SQLite they are made by the code that a load makes them with.

Sending dead letters again: documents that a server has refused, after the cause was corrected.

    {"status":400,"reason":"...","action":{"index":{"_index":"...","_id":"..."}},"document":{"@timestamp":...}}

A document of an older generation than its source has now is obsolete: the source was read again since. So is one of which run
or source were deleted. What is taken gets its rollups, and a source of which nothing is refused any more is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from ingest.core.errors import InputError, StoreError, counted
from ingest.core.labels import OFFSET
from ingest.query.origin import require
from ingest.store import DOCUMENTS, Store
from ingest.store.answers import Plan
from ingest.store.elastic.bulk import Delivery
from ingest.store.elastic.documents import MS, hits, interval_chunks, writing_line
from ingest.store.elastic.findings import BREATHS_INDEX as BREATHS
from ingest.store.elastic.findings import breath_chunks, episode_line, finding_line, judgement_line, mark_line
from ingest.store.elastic.rollups import RollupDocuments, RollupWriter
from ingest.store.elastic.runs import RUN, SOURCE, SharedWindows, SourceState, host_key_in, run_document, source_document, writing
from ingest.store.elastic.templates import Names, digest
from ingest.store.findings import stamp_of
from ingest.store.lifecycle import step_in
from ingest.store.live import ALL_FINAL
from ingest.store.records import (
    CLUSTER,
    COMPLETE,
    HOST,
    UNKNOWN_ZERO,
    RunRecord,
    SourceRecord,
    record_named,
    rollup_steps,
    step_of,
)
from ingest.store.rollups import cluster_group, default_kind_of, host_group
from ingest.store.sqlite.documents import numbers_of, stored_series, windows_of
from ingest.store.sqlite.holdings import SqliteHoldings
from ingest.store.sqlite.records import breaths_of

if TYPE_CHECKING:
    from ingest.store.elastic.store import ElasticStore
    from ingest.store.sqlite.store import SqliteStore


KINDS = ("intervals", "rollups", BREATHS, "marks", "episodes", "findings", "runs")


def bulk_lines(store: Store, records: Iterable[RunRecord], names: Names) -> Iterator[bytes]:
    """Yield the lines of bulk requests of runs: intervals, rollups, breaths, marks, episodes, findings, sources, last the record.

    Raises StoreError for a run that is not complete, or that has no start time: no server would take it. UsageError for a store
    that cannot export documents.
    """
    export = require(store, DOCUMENTS)
    for record in records:
        if record.state != COMPLETE:
            raise StoreError(f"{record.run} is not complete: load it to its end first")
        if record.zero == UNKNOWN_ZERO:
            raise StoreError(f"{record.run} has no start time, so its documents have no real times: load it with --t0")
        yield from export(record, names)


def read_back(store: ElasticStore, record: RunRecord, names: Names) -> Iterator[bytes]:  # noqa: ARG001  # as they are named there
    """Yield the lines for a run of a store in Elasticsearch: its documents as they are."""
    of_run = {"term": {"run.id": record.run}}
    for index in map(store.names.pattern, KINDS):
        last: list[bytes] = []
        for hit in hits(store.connection, index, of_run, source=True):
            line = writing_line(hit["_index"], hit["_id"], hit["_source"])
            if hit["_source"].get("record") == RUN:
                last.append(line)
            else:
                yield line
        yield from last


def made(store: SqliteStore, record: RunRecord, names: Names) -> Iterator[bytes]:
    """Yield the lines for a run of a SQLite store: documents made by the code that a load makes them with."""
    series = sorted(stored_series(store.db, [record.run]), key=lambda stored: stored.series)
    source_lines: list[bytes] = []
    for source in sorted(store.sources(record.run), key=_key):
        numbers = set(numbers_of(store.db, *_key(source)))
        mine = [stored for stored in series if stored.number in numbers]
        document = source_document(source, SourceState({stored.series: stored for stored in mine}))
        source_lines.append(writing_line(names.one("runs"), digest([SOURCE, *_key(source)]), document))
        for offsets in (False, True):
            chosen = [stored for stored in mine if (stored.series.kind == OFFSET) == offsets]
            if chosen:
                for windows in windows_of(store.db, chosen, step_of([chosen[0].series], step_in(record, source.step_ns))):
                    for chunk in interval_chunks(windows, record, source, names):
                        yield chunk.body
        for chunk in breath_chunks(breaths_of(store.db, *_key(source)), source, names):
            yield chunk.body
    documents = RollupDocuments(record, names, ALL_FINAL, default_kind_of(series))
    for scope, grouped in ((HOST, host_group), (CLUSTER, cluster_group)):
        for step in rollup_steps(record.step_ns):
            for windows in SqliteHoldings(store.db).rollup_windows(Plan(record, step, scope=scope)):
                yield from map(b"".join, documents.lines(windows.relabelled(grouped), step, 0))
    for mark in store.marks_of([record.run]):
        yield mark_line(record.run, mark, names)
    yield from (episode_line(episode, names) for episode in store.episodes([record.run]))
    yield from (judgement_line(judgement, names) for judgement in store.judgements(record.run))
    stamp = stamp_of(record, store.sources(record.run))
    for finding in store.findings_of([record.run]):
        yield finding_line(finding, names, of_now=finding.stamp == stamp)
    yield from source_lines
    yield writing_line(names.one("runs"), digest([RUN, record.run]), run_document(record, 0))


def _key(source: SourceRecord) -> tuple[str, str]:
    return source.run, source.source


Source = tuple[str, str]


@dataclass(slots=True)
class ReplayAccount:
    """Counts of dead letters: sent = taken + refused; obsolete ones were not sent; `runs` are sentences on completed runs."""

    sent: int = 0
    taken: int = 0
    refused: int = 0
    obsolete: int = 0
    reason: str = ""
    runs: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter: the bulk lines to send, and its document."""

    lines: bytes
    document: Mapping[str, Any]

    @property
    def run(self) -> str:
        """Return the run that its document is of."""
        return str((self.document.get("run") or {}).get("id", ""))

    @property
    def source(self) -> Source | None:
        """Return run and source of a document of intervals; None for another."""
        source = self.document.get("source")
        return (str(self.document["run"]["id"]), str(source["id"])) if source else None


def replayed(store: ElasticStore, path: Path) -> ReplayAccount:
    """Send all documents of a dead-letter file again and return the account; only those refused again stay in the file.

    Raises InputError for a file that holds something else, StoreError where the server fails.
    """
    letters = list(_letters(path))
    runs = {record.run for record in store.runs()} & {letter.run for letter in letters}
    known = {(run, record.source): record.generation for run in runs for record in store.sources(run)}
    first = {run: store.first_generation(run) for run in runs}
    current = [candidate for candidate in letters if _is_current(candidate, known, first)]
    account = ReplayAccount(sent=len(current), obsolete=len(letters) - len(current))
    again = path.with_name(f"{path.name}.again")
    again.unlink(missing_ok=True)
    again.touch()
    store.dead_letters, store.delivery = again, Delivery()
    try:
        by_source: dict[Source | None, list[Letter]] = {}
        for letter in current:
            by_source.setdefault(letter.source, []).append(letter)
        for some in by_source.values():
            store.sender.put(letter.lines for letter in some)
        store.flush()
        account.refused = store.delivery.counts["rejected"]
        account.taken, account.reason = account.sent - account.refused, store.delivery.first_reason
        for run in sorted({source[0] for source in by_source if source}):
            account.runs.append(_complete(store, run, {s: some for s, some in by_source.items() if s and s[0] == run}))
    finally:
        store.stop_senders()
    again.replace(path)
    if not account.refused:
        path.unlink()
    return account


def _is_current(letter: Letter, known: Mapping[Source, int], first: Mapping[str, int]) -> bool:
    """Return whether a letter is of a run that is still there, and its source was not read again since.

    `known` are the generations of sources, `first` the lowest ones of the runs that are there.
    """
    if letter.run not in first:
        return False
    generation = int(letter.document.get("generation", 0))
    if letter.source is not None:
        return letter.source in known and generation >= known[letter.source]
    return generation >= first[letter.run] or first[letter.run] == 1


def _complete(store: ElasticStore, run: str, letters: Mapping[Source, list[Letter]]) -> str:
    """Make the rollups of the documents that were sent, and note their sources complete; return a sentence about the run."""
    with writing(store, run):
        record = record_named(run, store.runs())
        touched = SharedWindows()
        for document in (letter.document for some in letters.values() for letter in some):
            key = host_key_in(document)
            if key.kind != OFFSET and "record" not in document:  # there are no rollups of offsets and breaths
                touched.add({key: np.array([document["@timestamp"] * MS], np.int64)})
        stored, accounts = store.records.series([run])
        RollupWriter(store, record, touched, default_kind_of(stored), missing=store.lacking(record, accounts)).write(stored)
        left = sum(
            store.records.settle(*source, taken=len(some) - store.delivery.refused_of(*source))
            for source, some in letters.items()
        )
        store.flush()
    return (
        f"{run}: {counted(left, 'document is', 'documents are')} still missing" if left else f"{run}: nothing is missing any more"
    )


def _letters(path: Path) -> Iterator[Letter]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                fields = orjson.loads(line)
                action, document = fields["action"], fields["document"]
                lines = orjson.dumps(action) + b"\n" + orjson.dumps(document) + b"\n"
                if not isinstance(document, dict):
                    raise TypeError
            except (orjson.JSONDecodeError, KeyError, TypeError):
                raise InputError("is not a dead letter: it needs status, reason, action and document", path, number) from None
            yield Letter(lines, document)
