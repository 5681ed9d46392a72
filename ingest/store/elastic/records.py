"""Records of runs, sources and marks: small documents, written by id, seen by every search at once.

A run is complete when all its sources are; a source is complete when its documents and the rollups of its windows are in.
The record of a run is changed by several loaders at once, with optimistic concurrency: whoever comes late reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import orjson

from ingest import __version__
from ingest.errors import StoreError
from ingest.layout import parse_layout
from ingest.series import Series
from ingest.store.elastic.connection import Connection, Refusal, TooLargeError, TransientError
from ingest.store.elastic.encoding import FIELDS, MS, Chunk, chunked, halves, label_in, labels_document
from ingest.store.elastic.names import Names, digest
from ingest.store.elastic.reading import documents
from ingest.store.records import COMPLETE, LOADING, UNKNOWN_ZERO, RunRecord, SourceRecord, StoredSeries

RUN, SOURCE = "run", "source"
NOT_FOUND, CONFLICT, OVERLOADED = 404, 409, 429
Change = Callable[[Mapping[str, Any] | None], dict[str, Any] | None]


@dataclass(slots=True)
class SourceState:
    """What a load knows of a source beside its record: its series as they were written, and how many documents were refused."""

    series: dict[Series, StoredSeries] = field(default_factory=dict)
    refused: int = 0


class Records:
    """The records of a site."""

    def __init__(self, connection: Connection, names: Names) -> None:
        self._connection = connection
        self._index = names.one("runs")
        self._marks = names.one("marks")

    def runs(self) -> list[RunRecord]:
        """Return the records of all runs, by name."""
        found = documents(self._connection, self._index, {"match_all": {}}, excludes=("source.series", "source.account"))
        states: dict[str, set[str]] = {}
        records = []
        for document in found:
            if document["record"] == SOURCE:
                states.setdefault(document["run"]["id"], set()).add(document["source"]["state"])
        for document in found:
            if document["record"] == RUN:
                state = COMPLETE if states.get(document["run"]["id"]) == {COMPLETE} else LOADING
                records.append(replace(run_record(document), state=state))
        return sorted(records, key=lambda record: record.run)

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
                found.append(_stored_series(len(found), document["run"]["id"], told))
        return found, accounts

    def begin(self, run: RunRecord, *, anew: bool) -> None:
        """Note a run, or join it: StoreError where another load froze other parameters in the meantime."""

        def change(there: Mapping[str, Any] | None) -> dict[str, Any]:
            if there is None or anew:
                generation = 0 if there is None else int(there["run"].get("generation", 0))
                return run_document(run, generation)
            known = run_record(there)
            for name, before, now in (
                ("step", known.step_ns, run.step_ns),
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
        errors = [item["index"]["error"] for item in answer["items"] if "error" in item["index"]]
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

    def mark(self, run: str, at_ns: int, text: str) -> None:
        """Note what happened at a time of a run; the same mark twice is one."""
        body = {"run": {"id": run}, "@timestamp": at_ns // MS, "mark": {"at_ns": at_ns}, "text": text}
        self._connection.call("PUT", f"/{self._marks}/_doc/{digest([run, at_ns, text])}", body, refresh=True)

    def marks(self, runs: Iterable[str]) -> list[Mapping[str, Any]]:
        """Return the marks of runs in time order: run, at_ns, text."""
        found = documents(self._connection, self._marks, {"terms": {"run.id": sorted(runs)}})
        rows = [{"run": one["run"]["id"], "at_ns": int(one["mark"]["at_ns"]), "text": one["text"]} for one in found]
        return sorted(rows, key=lambda row: (row["at_ns"], row["text"]))

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
    if any(item["index"]["status"] == OVERLOADED for item in answer["items"]):
        raise TransientError("the server is overloaded (429)")


def _of_run(run: str) -> dict[str, Any]:
    return {"bool": {"filter": [{"term": {"run.id": run}}, {"term": {"record": SOURCE}}]}}


def run_document(run: RunRecord, generation: int) -> dict[str, Any]:
    """Return the document of a run."""
    return {
        "record": RUN,
        "@timestamp": run.start_ns // MS,
        "run": {
            "id": run.run,
            "load": run.load,
            "step_ns": run.step_ns,
            "attribution": run.attribution,
            "start_ns": run.start_ns,
            "zero": run.zero,
            "parameters": dict(run.parameters),
            "labels": dict(run.labels),
            "loaded": run.loaded,
            "generation": generation,
        },
        "labels": searchable(run.labels),
    }


def searchable(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels under names that are fields: dots would nest."""
    return {name.replace(".", "_") or "_": str(value) for name, value in labels.items()}


def run_record(document: Mapping[str, Any]) -> RunRecord:
    """Return the record of a run from its document; the state is that of its sources."""
    run = document["run"]
    return RunRecord(
        run=run["id"],
        load=run["load"],
        step_ns=int(run["step_ns"]),
        attribution=run["attribution"],
        start_ns=int(run["start_ns"]),
        zero=run["zero"],
        parameters=run.get("parameters") or {},
        labels=run.get("labels") or {},
        loaded=run.get("loaded") or "",
    )


def source_document(record: SourceRecord, state: SourceState) -> dict[str, Any]:
    """Return the document of a source."""
    series = [
        {
            **labels_document(one.series),
            "segment": one.series.segment,
            "layout": str(one.layout),
            "exact": one.exact,
            "first_ns": one.first_ns,
            "last_ns": one.last_ns,
        }
        for one in state.series.values()
    ]
    told = {
        "id": record.source,
        "path": record.path,
        "size": record.size,
        "digest": record.digest,
        "context": record.context,
        "state": record.state,
        "account": dict(record.account),
        "series": series,
        "refused": state.refused,
    }
    return {"record": SOURCE, "run": {"id": record.run}, "generation": record.generation, "source": told}


def source_record(document: Mapping[str, Any]) -> SourceRecord:
    """Return the record of a source from its document."""
    told = document["source"]
    return SourceRecord(
        run=document["run"]["id"],
        source=told["id"],
        path=told["path"],
        size=int(told["size"]),
        digest=told["digest"],
        context=told["context"],
        state=told["state"],
        generation=int(document["generation"]),
        account=told.get("account") or {},
    )


def _stored_series(number: int, run: str, told: Mapping[str, Any]) -> StoredSeries:
    labels = {label: label_in(told, label) for label in FIELDS}
    series = Series(**{**labels, "run": run}, segment=int(told["segment"]))
    return StoredSeries(number, series, parse_layout(told["layout"]), bool(told["exact"]), told["first_ns"], told["last_ns"])
