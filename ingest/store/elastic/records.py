"""Records of runs and sources: small documents, written by id, seen by every search at once.

A run is complete when all its sources are; a source is complete when its documents and the rollups of its windows are in.
The record of a run is changed by several loaders at once, with optimistic concurrency: whoever comes late reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ingest.core.errors import StoreError
from ingest.core.series import Series
from ingest.store.coarsening import COARSENING, Grid, grid_in, unfinished
from ingest.store.elastic.bulk import put_at_once
from ingest.store.elastic.connection import Connection, Refusal
from ingest.store.elastic.encoding import Chunk, chunked, writing_line
from ingest.store.elastic.names import Names, digest
from ingest.store.elastic.reading import documents, every, searches
from ingest.store.elastic.record_documents import (
    RUN,
    SOURCE,
    WATCH,
    SourceState,
    run_record,
    series_document,
    source_document,
    source_record,
    stored_series,
    watch_of,
)
from ingest.store.elastic.sums import bucket_page, paged
from ingest.store.lacking import identified
from ingest.store.live import Watch, watched
from ingest.store.records import (
    COMPLETE,
    DELETING,
    LOADING,
    RunGoneError,
    RunRecord,
    SourceRecord,
    StoredSeries,
    loaded_now,
)
from ingest.store.wider_bins import BINS_COARSENING

STATES_A_PAGE = SOURCES_A_PAGE = 1000
STATES = {"bool": {"filter": [{"term": {"record": SOURCE}}]}}
STATES_CELLS = {
    "size": STATES_A_PAGE,
    "sources": [{"run": {"terms": {"field": "run.id"}}}, {"state": {"terms": {"field": "source.state"}}}],
}
FEW = {"bool": {"filter": [{"terms": {"record": [RUN, WATCH]}}]}}
NOT_FOUND, CONFLICT, OVERLOADED = 404, 409, 429
Change = Callable[[Mapping[str, Any] | None], dict[str, Any] | None]


class Records:
    """The records of a site."""

    def __init__(self, connection: Connection, names: Names) -> None:
        self.connection = connection
        self.index = names.one("runs")

    @property
    def held(self) -> bool:
        """Return whether they are held as they were read, for several questions."""
        return False

    def forget(self) -> None:
        """Let go of what is held: the next question reads it anew."""

    def runs(self) -> list[RunRecord]:
        """Return the records of all runs, by name."""
        found, counted = searches(self.connection, self.index, [every(FEW), bucket_page(STATES, STATES_CELLS)])
        return self.records_in(found, counted)

    def records_in(self, found: Mapping[str, Any], counted: Mapping[str, Any]) -> list[RunRecord]:
        """Return the records of runs by the answers for these and for the states of their sources."""
        stored = documents(self.connection, self.index, FEW, found)
        states: dict[str, set[str]] = {}
        for page in paged(self.connection, self.index, STATES, STATES_CELLS, first=counted):
            for bucket in page:
                states.setdefault(bucket["key"]["run"], set()).add(bucket["key"]["state"])
        records = []
        for document in stored:
            if document["record"] == RUN:
                record = run_record(document)
                records.append(with_state(record, complete=states.get(record.run) == {COMPLETE}))
        watches = [watch_of(document) for document in stored if document["record"] == WATCH]
        return watched(sorted(records, key=lambda record: record.run), watches)

    def watches(self, run: str) -> list[Watch]:
        """Return the watches of a run."""
        return [watch_of(document) for document in documents(self.connection, self.index, records_of(run, WATCH))]

    def grids(self) -> dict[str, Grid]:
        """Return step and bins of each run, as they are now."""
        runs = {"bool": {"filter": [{"term": {"record": RUN}}]}}
        stored = documents(self.connection, self.index, runs, includes=("run.id", "run.step_ns", "run.parameters"))
        return {
            document["run"]["id"]: grid_in(int(document["run"]["step_ns"]), document["run"].get("parameters") or {})
            for document in stored
        }

    def sources(self, run: str) -> list[SourceRecord]:
        """Return the records of a run's sources, by identity."""
        stored = documents(self.connection, self.index, records_of(run, SOURCE), excludes=("source.series",))
        return sorted((source_record(document) for document in stored), key=lambda record: record.source)

    def series(self, runs: Iterable[str]) -> tuple[list[StoredSeries], dict[str, list[Mapping[str, Any]]]]:
        """Return all series of runs, and the accounts of their sources by run."""
        return self.series_in(documents(self.connection, self.index, sources_of(runs)))

    @staticmethod
    def series_in(sources: Iterable[Mapping[str, Any]]) -> tuple[list[StoredSeries], dict[str, list[Mapping[str, Any]]]]:
        """Return all series in records of sources, and the accounts by run."""
        series: list[StoredSeries] = []
        accounts: dict[str, list[Mapping[str, Any]]] = {}
        for document in sources:
            source = document["source"]
            accounts.setdefault(document["run"]["id"], []).append(identified(source["id"], source.get("account") or {}))
            for entry in source.get("series") or ():
                series.append(stored_series(len(series), document["run"]["id"], entry))
        return series, accounts

    def first_generation(self, run: str) -> int:
        """Return the generation that a new source of a run begins with: above all that a deleted run of its name had."""
        there = self.get(run)
        return max(1, lowest_generation(there["_source"])) if there else 1

    def check_alive(self, run: str, generation: int) -> None:
        """Raise RunGoneError where a run has gone since sources of a generation were begun, or is another of its name now."""
        self.check_there(run, self.get(run), generation)

    @staticmethod
    def check_there(run: str, there: Mapping[str, Any] | None, generation: int) -> None:
        """Raise RunGoneError as `check_alive` does, by the record that `get` has returned."""
        if generation < lowest_generation(living(run, there and there["_source"])):
            raise RunGoneError(run)

    def generation(self, run: str) -> int:
        """Return the generation of a run as it is now; RunGoneError where it was deleted."""
        there = self.get(run)
        return int(living(run, there and there["_source"])["run"].get("generation", 0))

    def raise_generation(self, run: str) -> int:
        """Raise the generation of a run and return it: counted samples may have gone. RunGoneError for a deleted one."""
        raised = 0

        def change(known: Mapping[str, Any] | None) -> dict[str, Any]:
            nonlocal raised
            there = living(run, known)
            raised = int(there["run"].get("generation", 0)) + 1
            return {**there, "run": {**there["run"], "generation": raised}}

        self.changed(run, change)
        return raised

    def amend(self, run: RunRecord, *, step_ns: int | None = None, **parameters: Any) -> RunRecord:
        """Return the record of a run with another step or other parameters (None takes one away), once it is written.

        StoreError where the step is no longer that of `run`, where it is being coarsened to another, or the run has gone.
        """
        amended = run

        def change(known: Mapping[str, Any] | None) -> dict[str, Any]:
            nonlocal amended
            there = living(run.run, known)
            if int(there["run"]["step_ns"]) != run.step_ns:
                raise StoreError(f"{run.run} was replaced, coarsened or deleted in the meantime")
            before = there["run"].get("parameters") or {}
            claims = any(parameters.get(name) for name in (COARSENING, BINS_COARSENING))
            if claims and any(
                before.get(name, parameters.get(name)) != parameters.get(name) for name in (COARSENING, BINS_COARSENING)
            ):
                raise StoreError(unfinished(run_record(there)))
            merged = {**before, **parameters}
            kept = {name: value for name, value in merged.items() if value is not None}
            changed = {**there, "run": {**there["run"], "parameters": kept, "step_ns": step_ns or run.step_ns}}
            amended = run_record(changed)
            return changed

        self.changed(run.run, change)
        return amended

    def note_loaded(self, run: str) -> None:
        """Note when and by which version a load ended."""
        self.changed(run, loaded_again(run))

    def put_sources(self, sources: Iterable[tuple[SourceRecord, SourceState]]) -> None:
        """Write the records of sources that are begun."""
        self.put(self._source_line(record, state) for record, state in sources)

    def update_sources(self, sources: Iterable[tuple[SourceRecord, SourceState]]) -> None:
        """Write the records of sources in place of those that are there.

        One that was begun again since is left alone. RunGoneError where one is not there: its run was deleted.
        """
        left = list(sources)
        while left:
            some, left = left[:SOURCES_A_PAGE], left[SOURCES_A_PAGE:]
            left += self._update_page(some)

    def _update_page(self, sources: Sequence[tuple[SourceRecord, SourceState]]) -> list[tuple[SourceRecord, SourceState]]:
        """Write the records of some sources; return those that others have changed at the same moment."""
        ids = [digest([SOURCE, record.run, record.source]) for record, _ in sources]
        path = f"/{self.index}/_mget"
        stored = self.connection.call("POST", path, {"ids": ids}, _source_includes="generation")["docs"]
        lines, sent = [], []
        for (record, state), there in zip(sources, stored, strict=True):
            if not there.get("found"):
                raise RunGoneError(record.run)
            if int(there["_source"]["generation"]) <= record.generation:
                guard = {"if_seq_no": there["_seq_no"], "if_primary_term": there["_primary_term"]}
                lines.append(self._source_line(record, state, guard))
                sent.append((record, state))
        late: list[tuple[SourceRecord, SourceState]] = []
        for chunk in chunked(lines):
            here, sent = sent[: chunk.documents], sent[chunk.documents :]
            late += [pair for pair, outcome in zip(here, self.put_chunk(chunk), strict=True) if "error" in outcome]
        return late

    def _source_line(self, record: SourceRecord, state: SourceState, guard: Mapping[str, Any] | None = None) -> bytes:
        id_ = digest([SOURCE, record.run, record.source])
        return writing_line(self.index, id_, source_document(record, state), **(guard or {}))

    def put_series(self, run: str, replacements: Mapping[Series, Sequence[StoredSeries]]) -> None:
        """Write, in the records of the sources of a run, `replacements` in place of the series that they list now."""
        lines = []
        for document in documents(self.connection, self.index, records_of(run, SOURCE)):
            before = [stored_series(0, run, entry) for entry in document["source"].get("series") or ()]
            after = [stored for known in before for stored in replacements.get(known.series, [known])]
            source = {**document["source"], "series": [series_document(stored) for stored in after]}
            lines.append(writing_line(self.index, digest([SOURCE, run, source["id"]]), {**document, "source": source}))
        self.put(lines)

    def put(self, lines: Iterable[bytes]) -> None:
        """Write records, seen by every search at once: lines of a bulk request, actions with their documents or deletions."""
        for chunk in chunked(lines):
            self.put_chunk(chunk)

    def put_chunk(self, chunk: Chunk) -> list[Mapping[str, Any]]:
        """Write records; return the outcome of each: an error only where it is guarded, and others have changed it since."""
        outcomes = put_at_once(self.connection, chunk, "the record of a source")
        errors = [outcome["error"] for outcome in outcomes if "error" in outcome and outcome["status"] != CONFLICT]
        if errors:
            raise StoreError(f"{self.connection.address.url}: the record of a source is refused: {errors[0].get('reason')}")
        return outcomes

    def settle(self, run: str, source: str, taken: int) -> int:
        """Note that `taken` refused documents of a source are in now; return how many are still missing."""
        path, there = self._source(run, source)
        left = max(0, int(there["source"]["refused"]) - taken)
        settled = {**there["source"], "refused": left, "state": LOADING if left else COMPLETE}
        self.connection.call("PUT", path, {**there, "source": settled}, refresh=True)
        return left

    def read_again(self, run: str, source: str, generation: int) -> None:
        """Note that a source has to be read again, in a generation above this one, also where its content is the same."""
        self.reopen(run, source, generation, digest="")

    def reopen(self, run: str, source: str, generation: int = 0, **changes: str) -> None:
        """Note that a source has to be read again."""
        path, there = self._source(run, source)
        changed = {**there, "source": {**there["source"], "state": LOADING, **changes}}
        changed["generation"] = max(int(there["generation"]), generation)
        self.connection.call("PUT", path, changed, refresh=True)

    def _source(self, run: str, source: str) -> tuple[str, Mapping[str, Any]]:
        """Return the path and the body of a source's record; RunGoneError where it was deleted."""
        path = f"/{self.index}/_doc/{digest([SOURCE, run, source])}"
        try:
            there: Mapping[str, Any] = self.connection.call("GET", path)["_source"]
        except Refusal as error:
            if error.status == NOT_FOUND:
                raise RunGoneError(run) from None
            raise StoreError(f"the record of the source {source} cannot be read: {error}") from None
        return path, there

    def get(self, run: str) -> Mapping[str, Any] | None:
        """Return the record of a run, or its tombstone, as it is now, with the numbers that guard it; or None."""
        try:
            answer: Mapping[str, Any] = self.connection.call("GET", f"/{self.index}/_doc/{digest([RUN, run])}")
        except Refusal as error:
            if error.status == NOT_FOUND:
                return None
            raise StoreError(f"the record of {run} cannot be read: {error}") from None
        return answer

    def changed(self, run: str, change: Change) -> None:
        """Write the record of a run as `change` returns it; start again while others write it, too."""
        path = f"/{self.index}/_doc/{digest([RUN, run])}"
        while True:
            there = self.get(run)
            body = change(there["_source"] if there else None)
            if body is None:
                return
            guard: dict[str, Any] = {"op_type": "create"}
            if there:
                guard = {"if_seq_no": there["_seq_no"], "if_primary_term": there["_primary_term"]}
            try:
                self.connection.call("PUT", path, body, refresh=True, **guard)
            except Refusal as error:
                if error.status == CONFLICT:
                    continue
                raise StoreError(f"the record of {run} is refused: {error}") from None
            return


def sources_of(runs: Iterable[str]) -> dict[str, Any]:
    """Return the query for the records of the sources of runs."""
    return {"bool": {"filter": [{"terms": {"run.id": sorted(runs)}}, {"term": {"record": SOURCE}}]}}


def with_state(record: RunRecord, *, complete: bool) -> RunRecord:
    """Return the record of a run with its state, by whether all its sources are complete."""
    whole = complete and not unfinished(record)
    return replace(record, state=DELETING if record.state == DELETING else COMPLETE if whole else LOADING)


def lowest_generation(record: Mapping[str, Any] | None) -> int:
    """Return the lowest generation that new sources may have beside the record of a run, living, deleted or none at all."""
    if record is None:
        return 0
    generation = int(record.get("generation", 0))
    return generation if lives(record) else generation + 1


def lives(record: Mapping[str, Any]) -> bool:
    """Return whether a run is neither deleted nor being deleted."""
    return bool(record["record"] == RUN and record["run"].get("state") != DELETING)


def living(run: str, record: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the record of a run; RunGoneError where it was deleted, or is being deleted."""
    if record is None or not lives(record):
        raise RunGoneError(run)
    return record


def loaded_again(run: str) -> Callable[[Mapping[str, Any] | None], dict[str, Any]]:
    """Return the change of a run's record that says when and by which version a load ended: now, by this one."""

    def change(known: Mapping[str, Any] | None) -> dict[str, Any]:
        there = living(run, known)
        return {**there, "run": {**there["run"], "loaded": loaded_now()}}

    return change


def records_of(run: str, record: str) -> dict[str, Any]:
    """Return the query for the records of one sort that a run has."""
    return {"bool": {"filter": [{"term": {"run.id": run}}, {"term": {"record": record}}]}}
