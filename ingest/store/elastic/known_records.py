"""The records of runs as one request tells them: what a question needs to know before it asks for data.

They are read when they are first needed, and hold for one question, or for all questions of a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ingest.store.elastic.connection import Connection
from ingest.store.elastic.names import Names
from ingest.store.elastic.reading import documents, every, searches
from ingest.store.elastic.record_documents import source_record
from ingest.store.elastic.records import FEW, STATES, STATES_CELLS, Records, sources_of
from ingest.store.elastic.sums import bucket_page
from ingest.store.records import RunRecord, SourceRecord, StoredSeries

MOST_SOURCES = 500  # that are read before it is known whether a question is about them


class KnownRecords(Records):
    """The records of all runs, with those of their sources where these are not too many; `grids` alone asks how they are now."""

    def __init__(self, connection: Connection, names: Names) -> None:
        super().__init__(connection, names)
        self._records: list[RunRecord] | None = None
        self._sources: dict[str, list[Mapping[str, Any]]] = {}

    @property
    def held(self) -> bool:
        """Return that they are."""
        return True

    def forget(self) -> None:
        """Let the next question read them anew."""
        self._records, self._sources = None, {}

    def runs(self) -> list[RunRecord]:
        """Return the records of all runs, by name."""
        if self._records is None:
            of_sources = {"size": MOST_SOURCES, "query": STATES, "track_total_hits": MOST_SOURCES + 1}
            bodies = [every(FEW), bucket_page(STATES, STATES_CELLS), of_sources]
            found, counted, sources = searches(self.connection, self.index, bodies)
            self._records = self.records_in(found, counted)
            if sources["hits"]["total"]["value"] <= MOST_SOURCES:
                self._sources = {record.run: [] for record in self._records}
                self._keep(hit["_source"] for hit in sources["hits"]["hits"])
        return self._records

    def sources(self, run: str) -> list[SourceRecord]:
        """Return the records of a run's sources, by identity."""
        if run not in self._sources:
            return super().sources(run)
        return sorted((source_record(document) for document in self._sources[run]), key=lambda record: record.source)

    def series(self, runs: Iterable[str]) -> tuple[list[StoredSeries], dict[str, list[Mapping[str, Any]]]]:
        """Return all series of runs, and the accounts of their sources by run."""
        wanted = sorted(runs)
        missing = [run for run in wanted if run not in self._sources]
        if missing:
            self._sources |= {run: [] for run in missing}
            self._keep(documents(self.connection, self.index, sources_of(missing)))
        return self.series_in(document for run in wanted for document in self._sources[run])

    def _keep(self, sources: Iterable[Mapping[str, Any]]) -> None:
        for document in sources:
            self._sources.setdefault(document["run"]["id"], []).append(document)
