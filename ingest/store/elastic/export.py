"""What a store holds of a run, as the lines of bulk requests: sent to a server that was set up, the run is there.

    {"index":{"_index":"tailboard-intervals-2026.11","_id":"u1Zc3gJ0sV6m8Wm5b4Yq1db3b6e8"}}
    {"@timestamp":1789999200000,"run":{"id":"nightly-42"},"host":{"name":"ceph-a"},...}

From Elasticsearch documents are read back as they are; from SQLite they are made by the code that a load makes them with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ingest.core.errors import StoreError
from ingest.core.series import OFFSET
from ingest.query.origin import needed
from ingest.store import Store
from ingest.store.answers import Plan
from ingest.store.capabilities import DOCUMENTS
from ingest.store.elastic.breaths import INDEX as BREATHS
from ingest.store.elastic.breaths import breath_chunks
from ingest.store.elastic.encoding import interval_chunks, writing_line
from ingest.store.elastic.episodes import episode_line
from ingest.store.elastic.findings import finding_line
from ingest.store.elastic.marks import mark_line
from ingest.store.elastic.names import Names, digest
from ingest.store.elastic.reading import pages
from ingest.store.elastic.record_documents import RUN, SOURCE, SourceState, run_document, source_document
from ingest.store.elastic.rollup_documents import RollupDocuments
from ingest.store.live import ALL_FINAL
from ingest.store.records import CLUSTER, COMPLETE, HOST, UNKNOWN_ZERO, RunRecord, SourceRecord, rollup_steps, step_of
from ingest.store.rollups import cluster_group, host_group
from ingest.store.sqlite.breaths import breaths_of
from ingest.store.sqlite.documents import numbers_of, stored_series, windows_of
from ingest.store.sqlite.episodes import episodes_of
from ingest.store.sqlite.findings import findings_of
from ingest.store.sqlite.holdings import SqliteHoldings

if TYPE_CHECKING:
    from ingest.store.elastic.store import ElasticStore
    from ingest.store.sqlite.store import SqliteStore

KINDS = ("intervals", "rollups", BREATHS)
ONE = ("marks", "episodes", "findings", "runs")


def bulk_lines(store: Store, records: Iterable[RunRecord], names: Names) -> Iterator[bytes]:
    """Yield the lines of bulk requests of runs: intervals, rollups, breaths, marks, episodes, findings, sources, last the record.

    Raises StoreError for a run that is not complete, or that has no start time: no server would take it. UsageError for a store
    that cannot export documents.
    """
    export = needed(store, DOCUMENTS)
    for record in records:
        if record.state != COMPLETE:
            raise StoreError(f"{record.run} is not complete: load it to its end first")
        if record.zero == UNKNOWN_ZERO:
            raise StoreError(f"{record.run} has no start time, so its documents have no real times: load it with --t0")
        yield from export(record, names)


def read_back(store: ElasticStore, record: RunRecord) -> Iterator[bytes]:
    """Yield the lines for a run of a store in Elasticsearch: its documents as they are."""
    of_run = {"term": {"run.id": record.run}}
    for index in (*(store.names.all(kind) for kind in KINDS), *(store.names.one(kind) for kind in ONE)):
        last: list[bytes] = []
        for page in pages(store.connection, index, of_run, source=True):
            for hit in page:
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
        source_lines.append(
            writing_line(
                names.one("runs"),
                digest([SOURCE, *_key(source)]),
                source_document(source, SourceState({stored.series: stored for stored in mine})),
            )
        )
        for offsets in (False, True):
            chosen = [stored for stored in mine if (stored.series.kind == OFFSET) == offsets]
            if chosen:
                for windows in windows_of(store.db, chosen, step_of([chosen[0].series], record.step_ns)):
                    for chunk in interval_chunks(windows, record, source, names):
                        yield bytes(chunk.body)
        for chunk in breath_chunks(breaths_of(store.db, *_key(source)), source, names):
            yield bytes(chunk.body)
    documents = RollupDocuments(record, names, ALL_FINAL)
    for scope, grouped in ((HOST, host_group), (CLUSTER, cluster_group)):
        for step in rollup_steps(record.step_ns):
            for windows in SqliteHoldings(store.db).rollup_windows(Plan(record, step, scope=scope)):
                yield from map(b"".join, documents.lines(windows.relabelled(grouped), step, 0))
    for mark in store.marks_of([record.run]):
        yield mark_line(record.run, mark, names)
    for episode in episodes_of(store.db, [record.run]):
        yield episode_line(episode, names)
    for finding in findings_of(store.db, [record.run]):
        yield finding_line(finding, names)
    yield from source_lines
    yield writing_line(names.one("runs"), digest([RUN, record.run]), run_document(record, 0))


def _key(source: SourceRecord) -> tuple[str, str]:
    return source.run, source.source
