"""Deleting documents of older generations by their ids: no module of the server is needed for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ingest.core.csr import distinct
from ingest.core.intervals import Int
from ingest.core.series import OFFSET
from ingest.store.elastic.bulk import Sender
from ingest.store.elastic.connection import Connection
from ingest.store.elastic.encoding import MS, deletion
from ingest.store.elastic.filters import LATENCIES, Filters, any_of, at_step, one_of, rollups_of
from ingest.store.elastic.names import Names
from ingest.store.elastic.reading import deletions, pages
from ingest.store.elastic.sums import label_source, paged
from ingest.store.elastic.touched import host_key_in
from ingest.store.records import HOST, RunRecord, SourceRecord
from ingest.store.rollups import RollupKey

KINDS_A_PAGE = 1000
LABELS = ("@timestamp", "host.name", "operation", "kind")


@dataclass(frozen=True, slots=True)
class Sweeper:
    """Deletes documents by id, and reports which windows they were of."""

    connection: Connection
    names: Names
    sender: Sender

    def sweep(self, source: SourceRecord) -> dict[RollupKey, Int]:
        """Delete the documents that older generations of a source have left; return the windows that they were of."""
        query: Filters = [
            {"term": {"run.id": source.run}},
            {"term": {"source.id": source.source}},
            {"range": {"generation": {"lt": source.generation}}},
        ]
        cells: dict[RollupKey, list[int]] = {}
        lines = []
        for hit in self._hits("intervals", query):
            cell = host_key_in(hit["_source"])
            if cell.kind != OFFSET:  # there are no rollups of offsets
                cells.setdefault(cell, []).append(hit["_source"]["@timestamp"] * MS)
            lines.append(deletion(hit["_index"], hit["_id"]))
        self.sender.put(lines)
        self.sender.flush()
        return {cell: distinct(np.array(starts, np.int64)) for cell, starts in cells.items()}

    def all_windows(self, run: RunRecord) -> dict[RollupKey, Int]:
        """Return all windows of a run of which hosts have rollups."""
        return self._windows("rollups", rollups_of(run.run, HOST, run.step_ns))

    def stored_windows(self, run: RunRecord) -> dict[RollupKey, Int]:
        """Return all windows of latencies that a run's documents at its stored step have."""
        return self._windows("intervals", [{"term": {"run.id": run.run}}, at_step(run.step_ns), LATENCIES])

    def _windows(self, index: str, filters: Filters) -> dict[RollupKey, Int]:
        """Return the windows that documents are of, by the rollup of their host."""
        cells: dict[RollupKey, list[int]] = {}
        for hit in self._hits(index, filters):
            cells.setdefault(host_key_in(hit["_source"]), []).append(hit["_source"]["@timestamp"] * MS)
        return {cell: distinct(np.array(starts, np.int64)) for cell, starts in cells.items()}

    def sweep_steps(self, run: RunRecord) -> int:
        """Delete the documents of latencies at other steps than the run's; return how many there were."""
        other = {"bool": {"must_not": [at_step(run.step_ns)]}}
        return self._delete("intervals", [{"term": {"run.id": run.run}}, other, LATENCIES])

    def sweep_rollups(self, run: RunRecord, steps_ms: Sequence[int]) -> None:
        """Delete the rollups of a run that was replaced: those of steps that it does not have, of kinds without documents."""
        other = {"bool": {"must_not": [{"terms": {"rollup.step_ms": list(steps_ms)}}]}}
        cells = {"size": KINDS_A_PAGE, "sources": [{"kind": label_source("kind")}]}
        query = {"bool": {"filter": [{"term": {"run.id": run.run}}, at_step(run.step_ns), LATENCIES]}}
        bucket_pages = paged(self.connection, self.names.all("intervals"), query, cells)
        kinds = sorted({str(bucket["key"]["kind"] or "") for page in bucket_pages for bucket in page})  # "": some have none
        gone = {"bool": {"must_not": [one_of("kind", kinds)]}} if kinds else {"match_all": {}}
        self._delete("rollups", [{"term": {"run.id": run.run}}, any_of([other, gone])])

    def _delete(self, index: str, filters: Filters) -> int:
        """Delete all documents that meet the filters; return how many."""
        deleted = self.sender.put(deletions(self.connection, self.names.all(index), filters))
        self.sender.flush()
        self.connection.refresh(self.names.all(index))
        return deleted

    def _hits(self, index: str, filters: Filters) -> Iterator[Mapping[str, Any]]:
        for page in pages(self.connection, self.names.all(index), {"bool": {"filter": list(filters)}}, source=list(LABELS)):
            yield from page
