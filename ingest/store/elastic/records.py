"""Records of runs and sources: small documents, written by id, seen by every search at once.

A run is complete when all its sources are; a source is complete when its documents and the rollups of its windows are in.
The record of a run is changed by several loaders at once, with optimistic concurrency: whoever comes late reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson

from ingest import __version__
from ingest.errors import StoreError
from ingest.series import Series
from ingest.store.coarsening import COARSENING, check_joinable, unfinished
from ingest.store.elastic.connection import Connection, Refusal, TooLargeError, TransientError
from ingest.store.elastic.encoding import Chunk, chunked, halves
from ingest.store.elastic.names import Names, digest
from ingest.store.elastic.reading import documents
from ingest.store.elastic.record_documents import (
    RUN,
    SOURCE,
    WATCH,
    SourceState,
    run_document,
    run_record,
    series_document,
    source_document,
    source_record,
    stored_series,
    watch_of,
)
from ingest.store.elastic.sums import paged
from ingest.store.live import Watch, watched
from ingest.store.records import COMPLETE, LOADING, UNKNOWN_ZERO, RunRecord, SourceRecord, StoredSeries

STATES_A_PAGE = 1000
NOT_FOUND, CONFLICT, OVERLOADED = 404, 409, 429
Change = Callable[[Mapping[str, Any] | None], dict[str, Any] | None]


class Records:
    """The records of a site."""

    def __init__(self, connection: Connection, names: Names) -> None:
        self._connection = connection
        self._index = names.one("runs")

    def runs(self) -> list[RunRecord]:
        """Return the records of all runs, by name."""
        few = {"bool": {"filter": [{"terms": {"record": [RUN, WATCH]}}]}}
        found = documents(self._connection, self._index, few)
        states = self._states()
        records = []
        for document in found:
            if document["record"] == RUN:
                record = run_record(document)
                whole = states.get(record.run) == {COMPLETE} and not unfinished(record)
                records.append(replace(record, state=COMPLETE if whole else LOADING))
        watches = [watch_of(document) for document in found if document["record"] == WATCH]
        return watched(sorted(records, key=lambda record: record.run), watches)

    def _states(self) -> dict[str, set[str]]:
        """Return the states that the sources of each run are in: of many thousand sources a few buckets are read."""
        pairs = {"run": {"terms": {"field": "run.id"}}, "state": {"terms": {"field": "source.state"}}}
        cells = {"size": STATES_A_PAGE, "sources": [{name: source} for name, source in pairs.items()]}
        query = {"bool": {"filter": [{"term": {"record": SOURCE}}]}}
        found: dict[str, set[str]] = {}
        for page in paged(self._connection, self._index, query, cells):
            for bucket in page:
                found.setdefault(bucket["key"]["run"], set()).add(bucket["key"]["state"])
        return found

    def watches(self, run: str) -> list[Watch]:
        """Return the watches of a run."""
        query = {"bool": {"filter": [{"term": {"run.id": run}}, {"term": {"record": WATCH}}]}}
        return [watch_of(one) for one in documents(self._connection, self._index, query)]

    def steps(self) -> dict[str, int]:
        """Return the step of each run in ns, as it is now."""
        found = documents(
            self._connection, self._index, {"bool": {"filter": [{"term": {"record": RUN}}]}}, includes=("run.id", "run.step_ns")
        )
        return {one["run"]["id"]: int(one["run"]["step_ns"]) for one in found}

    def sources(self, run: str) -> list[SourceRecord]:
        """Return what was loaded into a run, by identity."""
        found = documents(self._connection, self._index, _of_run(run), excludes=("source.series",))
        return sorted((source_record(one) for one in found), key=lambda record: record.source)

    def series(self, runs: Iterable[str]) -> tuple[list[StoredSeries], dict[str, list[Mapping[str, Any]]]]:
        """Return all series of runs, and the accounts of their sources by run."""
        query = {"bool": {"filter": [{"terms": {"run.id": sorted(runs)}}, {"term": {"record": SOURCE}}]}}
        found: list[StoredSeries] = []
        accounts: dict[str, list[Mapping[str, Any]]] = {}
        for document in documents(self._connection, self._index, query):
            accounts.setdefault(document["run"]["id"], []).append(document["source"].get("account") or {})
            for told in document["source"].get("series") or ():
                found.append(stored_series(len(found), document["run"]["id"], told))
        return found, accounts

    def begin(self, run: RunRecord, sources: int, *, anew: bool) -> None:
        """Note a run, or join it with so many sources: StoreError where it has got other parameters in the meantime."""

        def change(there: Mapping[str, Any] | None) -> dict[str, Any]:
            if there is None or anew:
                generation = 0 if there is None else int(there["run"].get("generation", 0))
                return run_document(run, generation)
            known = run_record(there)
            check_joinable(known, run, sources)
            for name, before, now in (
                ("attribution", known.attribution, run.attribution),
                ("time zero", known.zero == UNKNOWN_ZERO, run.zero == UNKNOWN_ZERO),
            ):
                if before != now:
                    raise StoreError(f"{run.run} is being loaded with another {name}: use --replace to load it anew")
            start = min(known.start_ns, run.start_ns)
            labels = {**known.labels, **run.labels}
            joined = replace(run, start_ns=start, labels=labels, loaded=known.loaded)
            return run_document(joined, int(there["run"].get("generation", 0)))

        self._changed(run.run, change)

    def check_joined(self, run: RunRecord) -> None:
        """Raise StoreError where a run that a load has just joined is being coarsened since: it did not see the load coming."""
        there = self._get(run.run)
        known = run_record(there["_source"]) if there else run
        if known.step_ns != run.step_ns or unfinished(known):
            raise StoreError(unfinished(known) or f"{run.run} was coarsened at this moment: --replace loads it anew")

    def generation(self, run: str) -> int:
        """Return the generation of a run as it is now."""
        there = self._get(run)
        return int(there["_source"]["run"].get("generation", 0)) if there else 0

    def raise_generation(self, run: str) -> int:
        """Raise the generation of a run and return it: what was counted before may have gone."""
        raised = 0

        def change(there: Mapping[str, Any] | None) -> dict[str, Any] | None:
            nonlocal raised
            if there is None:
                return None
            raised = int(there["run"].get("generation", 0)) + 1
            return {**there, "run": {**there["run"], "generation": raised}}

        self._changed(run, change)
        return raised

    def amend(self, run: RunRecord, *, step_ns: int | None = None, **parameters: int | None) -> RunRecord:
        """Return the record of a run with another step or other parameters (None takes one away), once it is written.

        StoreError where the step is no longer that of `run`, where it is being coarsened to another, or the run has gone.
        """
        amended = run

        def change(there: Mapping[str, Any] | None) -> dict[str, Any]:
            nonlocal amended
            if there is None or int(there["run"]["step_ns"]) != run.step_ns:
                raise StoreError(f"{run.run} was replaced, coarsened or deleted in the meantime")
            before = there["run"].get("parameters") or {}
            if parameters.get(COARSENING) and before.get(COARSENING, parameters[COARSENING]) != parameters[COARSENING]:
                raise StoreError(unfinished(run_record(there)))
            told = {**before, **parameters}
            kept = {name: value for name, value in told.items() if value is not None}
            changed = {**there, "run": {**there["run"], "parameters": kept, "step_ns": step_ns or run.step_ns}}
            amended = run_record(changed)
            return changed

        self._changed(run.run, change)
        return amended

    def note_loaded(self, run: str) -> None:
        """Note when and by which version a load ended."""
        when = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

        def change(there: Mapping[str, Any] | None) -> dict[str, Any] | None:
            return None if there is None else {**there, "run": {**there["run"], "loaded": f"{when} by tailboard {__version__}"}}

        self._changed(run, change)

    def put_sources(self, sources: Iterable[tuple[SourceRecord, SourceState]]) -> None:
        """Write the records of sources."""
        lines = []
        for record, state in sources:
            action = {"index": {"_index": self._index, "_id": digest([SOURCE, record.run, record.source])}}
            lines.append(orjson.dumps(action) + b"\n" + orjson.dumps(source_document(record, state)) + b"\n")
        self.put(lines)

    def put_series(self, run: str, told: Mapping[Series, Sequence[StoredSeries]]) -> None:
        """Write, in the records of the sources of a run, series in place of those that they tell of now."""
        lines = []
        for document in documents(self._connection, self._index, _of_run(run)):
            before = [stored_series(0, run, one) for one in document["source"].get("series") or ()]
            after = [one for known in before for one in told.get(known.series, [known])]
            source = {**document["source"], "series": [series_document(one) for one in after]}
            action = {"index": {"_index": self._index, "_id": digest([SOURCE, run, source["id"]])}}
            lines.append(orjson.dumps(action) + b"\n" + orjson.dumps({**document, "source": source}) + b"\n")
        self.put(lines)

    def put(self, lines: Iterable[bytes]) -> None:
        """Write records, seen by every search at once: lines of a bulk request, actions with their documents or deletions."""
        for chunk in chunked(lines):
            self._put_chunk(chunk)

    def _put_chunk(self, chunk: Chunk) -> None:
        try:
            answer = self._connection.call("POST", "/_bulk", chunk.body, _none_rejected, refresh=True)
        except TooLargeError:
            parts = list(halves(chunk))
            if len(parts) < 2:
                raise StoreError(f"{self._connection.address.url}: the record of a source is too large for the server") from None
            for part in parts:
                self._put_chunk(part)
            return
        errors = [one["error"] for item in answer["items"] for one in item.values() if "error" in one]
        if errors:
            raise StoreError(f"{self._connection.address.url}: the record of a source is refused: {errors[0].get('reason')}")

    def settle(self, run: str, source: str, taken: int) -> int:
        """Note that `taken` refused documents of a source are in now; return how many are still missing."""
        path = f"/{self._index}/_doc/{digest([SOURCE, run, source])}"
        try:
            there = self._connection.call("GET", path)["_source"]
        except Refusal as error:
            raise StoreError(f"the record of the source {source} cannot be read: {error}") from None
        left = max(0, int(there["source"]["refused"]) - taken)
        told = {**there["source"], "refused": left, "state": LOADING if left else COMPLETE}
        self._connection.call("PUT", path, {**there, "source": told}, refresh=True)
        return left

    def reopen(self, run: str, source: str) -> None:
        """Note that a source has to be read again."""
        path = f"/{self._index}/_doc/{digest([SOURCE, run, source])}"
        there = self._connection.call("GET", path)["_source"]
        self._connection.call("PUT", path, {**there, "source": {**there["source"], "state": LOADING}}, refresh=True)

    def _get(self, run: str) -> Mapping[str, Any] | None:
        try:
            answer: Mapping[str, Any] = self._connection.call("GET", f"/{self._index}/_doc/{digest([RUN, run])}")
        except Refusal as error:
            if error.status == NOT_FOUND:
                return None
            raise StoreError(f"the record of {run} cannot be read: {error}") from None
        return answer

    def _changed(self, run: str, change: Change) -> None:
        """Write what `change` makes of the record of a run, again from the start while others write it, too."""
        path = f"/{self._index}/_doc/{digest([RUN, run])}"
        while True:
            there = self._get(run)
            body = change(there["_source"] if there else None)
            if body is None:
                return
            guard: dict[str, Any] = {"op_type": "create"}
            if there:
                guard = {"if_seq_no": there["_seq_no"], "if_primary_term": there["_primary_term"]}
            try:
                self._connection.call("PUT", path, body, refresh=True, **guard)
            except Refusal as error:
                if error.status == CONFLICT:
                    continue
                raise StoreError(f"the record of {run} is refused: {error}") from None
            return


def _none_rejected(answer: Mapping[str, Any]) -> None:
    if any(one["status"] == OVERLOADED for item in answer["items"] for one in item.values()):
        raise TransientError("the server is overloaded (429)")


def _of_run(run: str) -> dict[str, Any]:
    return {"bool": {"filter": [{"term": {"run.id": run}}, {"term": {"record": SOURCE}}]}}
