"""Records of runs and sources: read in one search, written by id while they still say it, tombstones and deletion."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import orjson

from ingest.core.errors import StoreError
from ingest.core.intervals import Int, Intervals, distinct
from ingest.core.intervals import total as sum_of
from ingest.core.labels import OFFSET, Series
from ingest.core.layout import parse_layout
from ingest.core.schema import indices
from ingest.store.coverage import identified
from ingest.store.elastic.aggregations import (
    LATENCIES,
    Filters,
    at_steps,
    bucket_page,
    counted,
    paged,
    rollups_of,
)
from ingest.store.elastic.bulk import put_at_once
from ingest.store.elastic.client import Connection, Refusal, closed_sentence
from ingest.store.elastic.documents import (
    FIELDS,
    MS,
    Chunk,
    chunked,
    deletion,
    deletions,
    documents,
    every,
    hits,
    hits_of,
    is_closed,
    label_in,
    labels_document,
    searches,
    settings_in,
    writing_line,
)
from ingest.store.elastic.templates import PERIODIC, Names, digest
from ingest.store.lifecycle import BINS, BINS_COARSENING, COARSENING, check_joinable, check_replaceable, unfinished
from ingest.store.live import Checkpoint, Watch, watched
from ingest.store.records import (
    COMPLETE,
    DELETING,
    HOST,
    LOADING,
    SINCE,
    STEP,
    RunGoneError,
    RunRecord,
    SourceRecord,
    Spans,
    StoredRun,
    StoredSeries,
    check_deletable,
    check_unclaimed,
    counting_since,
    loaded_now,
    not_there,
)
from ingest.store.rollups import RollupKey, host_group

if TYPE_CHECKING:
    from ingest.store.elastic.store import ElasticStore


# Records of runs and sources <-> documents.


RUN, SOURCE, CHECKPOINT, WATCH, TOMBSTONE = "run", "source", "checkpoint", "watch", "tombstone"
FROZEN = ("load", "step_ns", "attribution", "start_ns", "zero")  # of runs, as their records name them; so are the others
OF_SOURCE = ("path", "size", "digest", "context", "state")
TOLD = ("final_ns", "largest_ns", "told_ns")
WHOSE = ("run", "source", "watch")  # a checkpoint is
MAY_LACK: dict[str, Any] = {"parameters": {}, "labels": {}, "state": LOADING, "loaded": ""}  # the document of a run


@dataclass(slots=True)
class SourceState:
    """What a load knows of a source beside its record: its series as they were written, documents, samples, refused documents."""

    series: dict[Series, StoredSeries] = field(default_factory=dict)
    refused: int = 0
    written: int = 0
    samples: int = 0

    def wrote(self, touch: Touch) -> None:
        """Note series of which documents were written."""
        layout = parse_layout(touch.layout)
        for series in touch.series:
            exact = touch.exact or (series in self.series and self.series[series].exact)
            self.series[series] = StoredSeries(0, series, layout, exact)

    def reached(self, spans: Spans) -> None:
        """Note from when to when its series reach."""
        for series, (first, last) in spans.items():
            if series in self.series:
                self.series[series] = replace(self.series[series], first_ns=first, last_ns=last)


def run_document(run: RunRecord, generation: int, since: int = 0) -> dict[str, Any]:
    """Return the document of a run; `since` is the lowest generation of its sources where one of its name was deleted before."""
    head = {"record": RUN, **({"generation": since} if since else {}), "@timestamp": run.start_ns // MS}
    frozen = {name: getattr(run, name) for name in FROZEN}
    told = {"parameters": dict(run.parameters), "labels": dict(run.labels), "loaded": run.loaded, "generation": generation}
    return {**head, "run": {"id": run.run, **frozen, **told}, "labels": searchable(run.labels)}


def tombstone(run: str, generation: int) -> dict[str, Any]:
    """Return the document in place of the record of a deleted run: no document of the run is of a later generation."""
    return {"record": TOMBSTONE, "generation": generation, "run": {"id": run, "generation": generation}}


def watch_document(watch: Watch) -> dict[str, Any]:
    """Return the document of a watch."""
    told = {name: getattr(watch, name) for name in TOLD}
    return {"record": WATCH, "run": {"id": watch.run}, "watch": {"id": watch.watch, **told}}


def watch_of(document: Mapping[str, Any]) -> Watch:
    """Return a watch from its document."""
    final, largest, told = (int(document["watch"][name]) for name in TOLD)
    return Watch(document["run"]["id"], document["watch"]["id"], final, largest, told)


def checkpoint_document(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the document of a checkpoint."""
    ids = {name: {"id": getattr(checkpoint, name)} for name in WHOSE}
    return {"record": CHECKPOINT, **ids, "checkpoint": {"state": dict(checkpoint.state)}}


def checkpoint_of(document: Mapping[str, Any]) -> Checkpoint:
    """Return a checkpoint from its document."""
    return Checkpoint(**{name: document[name]["id"] for name in WHOSE}, state=document["checkpoint"]["state"])


def searchable(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels under names that are fields: dots would nest."""
    return {name.replace(".", "_") or "_": str(value) for name, value in labels.items()}


def run_record(document: Mapping[str, Any]) -> RunRecord:
    """Return the record of a run from its document; unless it is being deleted, its state is that of its sources."""
    run = document["run"]
    told = {name: run.get(name) or otherwise for name, otherwise in MAY_LACK.items()}
    return RunRecord(run=run["id"], **{name: run[name] for name in FROZEN}, **told)


def source_document(record: SourceRecord, state: SourceState) -> dict[str, Any]:
    """Return the document of a source."""
    series = [series_document(stored) for _, stored in sorted(state.series.items())]
    own = {name: getattr(record, name) for name in OF_SOURCE}
    fields = {"id": record.source, **own, "account": dict(record.account), "series": series, "refused": state.refused}
    return {"record": SOURCE, "run": {"id": record.run}, "generation": record.generation, "source": fields}


def source_record(document: Mapping[str, Any]) -> SourceRecord:
    """Return the record of a source from its document."""
    fields = document["source"]
    return SourceRecord(
        run=document["run"]["id"],
        source=fields["id"],
        **{name: fields[name] for name in OF_SOURCE},
        generation=int(document["generation"]),
        account=fields.get("account") or {},
    )


def account_in(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the account of a source in its document, with what is known of the source beside it."""
    fields, generation = document["source"], int(document["generation"])
    return identified(fields["id"], fields.get("account") or {}, reading=generation if fields["state"] == LOADING else None)


def series_document(stored: StoredSeries) -> dict[str, Any]:
    """Return the entry of a series in the document of its source."""
    bins = {"segment": stored.series.segment, "layout": str(stored.layout), "exact": stored.exact}
    return {**labels_document(stored.series), **bins, "first_ns": stored.first_ns, "last_ns": stored.last_ns}


def listed_series(document: Mapping[str, Any], first: int = 0) -> Iterator[StoredSeries]:
    """Yield the series in the document of a source, numbered from `first` on."""
    run, source = document["run"]["id"], document["source"]
    step = int((source.get("account") or {}).get(STEP, 0))
    for number, entry in enumerate(source.get("series") or (), first):
        labels = {label: label_in(entry, label) for label in FIELDS}
        series = Series(**{**labels, "run": run}, segment=int(entry["segment"]))
        bins, reach = (parse_layout(entry["layout"]), bool(entry["exact"])), (entry["first_ns"], entry["last_ns"])
        yield StoredSeries(number, series, *bins, *reach, step_ns=0 if series.kind == OFFSET else step)


# Records of runs and sources: small documents, written by id, seen by every search at once.
#
# A run is complete when all its sources are; a source is complete when its documents and the rollups of its windows are in.
# The record of a run is changed by several loaders at once, with optimistic concurrency: whoever comes late reads again.


STATES_A_PAGE = SOURCES_A_PAGE = 1000
STATES = {"bool": {"filter": [{"term": {"record": SOURCE}}]}}
STATES_CELLS = {
    "size": STATES_A_PAGE,
    "sources": [{"run": {"terms": {"field": "run.id"}}}, {"state": {"terms": {"field": "source.state"}}}],
}
FEW = {"bool": {"filter": [{"terms": {"record": [RUN, WATCH]}}]}}
NOT_FOUND, CONFLICT, OVERLOADED = 404, 409, 429
Change = Callable[[Mapping[str, Any] | None], dict[str, Any] | None]
RECORDS = (RUN, TOMBSTONE, SOURCE, WATCH)


class Records:
    """The records of a site. `CachedRecords` hold them as they were read, for several questions.

    Those of a run are read at one moment (`standings`), and written again only as long as they still say it (`begin`, `write`).
    Each record bears the numbers that guard it: a write under them fails where somebody has written the record since. Every load
    writes the record of its run when it begins. So a load that can write that record under the numbers of its beginning knows
    that nobody has joined, replaced, coarsened or deleted the run in between.
    """

    def __init__(self, connection: Connection, names: Names) -> None:
        self.connection = connection
        self.index = names.one("runs")

    def forget(self) -> None:
        """Let go of what is held: the next question reads it anew."""

    def runs(self) -> list[RunRecord]:
        """Return the records of all runs, by name."""
        found, counted = searches(self.connection, self.index, [every(FEW), bucket_page(STATES, STATES_CELLS)])
        return self.records_in(documents(self.connection, self.index, FEW, found), counted)

    def records_in(self, stored: Sequence[Mapping[str, Any]], counted: Mapping[str, Any]) -> list[RunRecord]:
        """Return the records of runs by their documents, with watches, and the answer for the states of their sources."""
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

    def sources(self, run: str, only: Collection[str] | None = None) -> list[SourceRecord]:
        """Return the records of a run's sources, by identity; of those that `only` names, where it is given."""
        query = records_of(run, SOURCE)
        if only is not None:
            query["bool"]["filter"].append({"terms": {"source.id": sorted(only)}})
        stored = documents(self.connection, self.index, query, source={"excludes": ["source.series"]})
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
            accounts.setdefault(document["run"]["id"], []).append(account_in(document))
            series += listed_series(document, len(series))
        return series, accounts

    def check_alive(self, run: str, generation: int) -> None:
        """Raise RunGoneError where a run has gone since sources of a generation were begun, or is another of its name now."""
        check_there(run, self.get(run), generation)

    def generation(self, run: str) -> int:
        """Return the generation of a run as it is now; RunGoneError where it was deleted."""
        return generation_in(living(run, document_of(self.get(run))))

    def raise_generation(self, run: str) -> int:
        """Raise the generation of a run and return it: counted samples may have gone. RunGoneError for a deleted one."""

        def change(known: Mapping[str, Any] | None) -> dict[str, Any]:
            there = living(run, known)
            return {**there, "run": {**there["run"], "generation": generation_in(there) + 1}}

        return generation_in(self.changed(run, change))

    def amend(self, run: RunRecord, *, step_ns: int | None = None, **parameters: Any) -> RunRecord:
        """Return the record of a run with another step or other parameters (None takes one away), once it is written.

        StoreError where the step is no longer that of `run`, where it is being coarsened to another, or the run has gone.
        """

        def change(known: Mapping[str, Any] | None) -> dict[str, Any]:
            there = living(run.run, known)
            if int(there["run"]["step_ns"]) != run.step_ns:
                raise StoreError(f"{run.run} was replaced, coarsened or deleted in the meantime")
            before = there["run"].get("parameters") or {}
            claims = {name: parameters.get(name) for name in (COARSENING, BINS_COARSENING)}
            if any(claims.values()) and any(before.get(name, claim) != claim for name, claim in claims.items()):
                raise StoreError(unfinished(run_record(there)))
            kept = {name: value for name, value in {**before, **parameters}.items() if value is not None}
            return {**there, "run": {**there["run"], "parameters": kept, "step_ns": step_ns or run.step_ns}}

        return run_record(self.changed(run.run, change))

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
                lines.append(self.source_line(record, state, Guarded.of(there)))
                sent.append((record, state))
        late: list[tuple[SourceRecord, SourceState]] = []
        for chunk in chunked(lines):
            here, sent = sent[: chunk.documents], sent[chunk.documents :]
            late += [pair for pair, outcome in zip(here, self.put_chunk(chunk), strict=True) if "error" in outcome]
        return late

    def source_line(self, record: SourceRecord, state: SourceState, there: Guarded | None = None) -> bytes:
        """Return the lines of a bulk request that write the record of a source: if given, in place of the one that is `there`."""
        id_ = digest([SOURCE, record.run, record.source])
        return writing_line(self.index, id_, source_document(record, state), "index", **(there.guard if there else {}))

    def put_series(self, run: str, replacements: Mapping[Series, Sequence[StoredSeries]]) -> None:
        """Write, in the records of the sources of a run, `replacements` in place of the series that they list now."""
        lines = []
        for document in documents(self.connection, self.index, records_of(run, SOURCE)):
            after = [stored for known in listed_series(document) for stored in replacements.get(known.series, [known])]
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

    def reopen(self, run: str, source: str, generation: int = 0, **changes: str) -> None:
        """Note that a source has to be read again, in a generation above this one; without a digest whatever it holds."""
        path, there = self._source(run, source)
        changed = {**there, "source": {**there["source"], "state": LOADING, **changes}}
        changed["generation"] = max(int(there["generation"]), generation)
        self.connection.call("PUT", path, changed, refresh=True)

    def _source(self, run: str, source: str) -> tuple[str, Mapping[str, Any]]:
        """Return the path and the body of a source's record; RunGoneError where it was deleted."""
        path = f"/{self.index}/_doc/{digest([SOURCE, run, source])}"
        if (there := self._at(path, f"the source {source}")) is None:
            raise RunGoneError(run)
        return path, there.document

    def get(self, run: str) -> Guarded | None:
        """Return the record of a run, or its tombstone, as it is now; or None."""
        return self._at(f"/{self.index}/_doc/{digest([RUN, run])}", run)

    def _at(self, path: str, whose: str) -> Guarded | None:
        try:
            return Guarded.of(self.connection.call("GET", path))
        except Refusal as error:
            if error.status == NOT_FOUND:
                return None
            raise StoreError(f"the record of {whose} cannot be read: {error}") from None

    def changed(self, run: str, change: Change) -> Any:
        """Return the record of a run once it is written as `change` returns it, as it is there where that returns none.

        It starts again while others write it, too.
        """
        path = f"/{self.index}/_doc/{digest([RUN, run])}"
        while True:
            there = self.get(run)
            body = change(document_of(there))
            if body is None:
                return document_of(there)
            guard: dict[str, Any] = there.guard if there else {"op_type": "create"}
            try:
                self.connection.call("PUT", path, body, refresh=True, **guard)
            except Refusal as error:
                if error.status == CONFLICT:
                    continue
                raise StoreError(f"the record of {run} is refused: {error}") from None
            return body

    def standings(self, runs: Sequence[str]) -> dict[str, RunMetadata]:
        """Return what there is of runs: one search for all."""
        found = {run: RunMetadata(run) for run in runs}
        query = {"bool": {"filter": [{"terms": {"run.id": list(runs)}}, {"terms": {"record": list(RECORDS)}}]}}
        for hit in hits_of(self.connection, self.index, query, **GUARDED):
            guarded = Guarded.of(hit)
            kind, standing = guarded.document["record"], found[guarded.document["run"]["id"]]
            if kind == SOURCE:
                standing.sources[guarded.document["source"]["id"]] = guarded
            elif kind == WATCH:
                standing.watches.append(watch_of(guarded.document))
            else:
                standing.record = guarded
        return found

    def begin(self, standing: RunMetadata, run: RunRecord, sources: Sequence[SourceRecord], *, anew: bool) -> RunMetadata:
        """Note a run, or join it, and the sources that are about to be written; return how it stands then.

        One request, the run last: whoever coarsens or deletes the run afterwards sees the sources, and where somebody did so
        before, the run is not written. StoreError where the run or a source is not to be loaded: nothing of this is left then.
        """
        made: dict[str, Guarded] = {}
        try:
            while not self._begun(standing, run, sources, made, anew=anew):
                standing = self.standings([run.run])[run.run]
        except StoreError:
            ids = {name: digest([SOURCE, run.run, name]) for name in made}
            words = [{"_index": self.index, "_id": ids[name], **guarded.guard} for name, guarded in made.items()]
            self.put(orjson.dumps({"delete": word}) + b"\n" for word in words)
            raise
        return standing

    def _begun(
        self, standing: RunMetadata, run: RunRecord, sources: Sequence[SourceRecord], made: dict[str, Guarded], *, anew: bool
    ) -> bool:
        """Return whether all was written; records of sources that were not there before are in `made`."""
        there = {record.source: record for record in standing.source_records}
        if anew and (known := standing.run_record) is not None:
            check_replaceable(known, run, sources, {name: record.generation for name, record in there.items()})
        for source in sources:
            check_unclaimed(source, there.get(source.source))
        new = {source.source for source in sources} - {name for name in standing.sources if name not in made}
        counting = [counting_since(source, there.get(source.source), anew=anew) for source in sources]
        ending = any(source.source in there and SINCE not in source.account for source in counting)
        body = joined(document_of(standing.record), run, sources, anew=anew, ending=ending)
        begun = [(replace(source, state=LOADING), SourceState()) for source in counting]
        late, run_late = self.write(standing, begun, lambda _there: body)
        names = new - {source.source for source, _ in late}
        made.update({name: standing.sources[name] for name in names})
        return not late and not run_late

    def write(
        self,
        standing: RunMetadata,
        sources: Sequence[tuple[SourceRecord, SourceState]],
        change: Callable[[Mapping[str, Any] | None], dict[str, Any]] | None = None,
        more: Iterable[bytes] = (),
    ) -> tuple[list[tuple[SourceRecord, SourceState]], bool]:
        """Write records of sources, then that of the run as `change` makes it, all under the guards of a standing; then `more`.

        Return which sources others have written since, and whether the run. What was written is in the standing.
        """
        lines, bodies = [], []
        for record, state in sources:
            bodies.append(source_document(record, state))
            known = standing.sources.get(record.source)
            lines.append(self._line(digest([SOURCE, record.run, record.source]), bodies[-1], known))
        if change is not None:
            bodies.append(change(standing.record.document if standing.record else None))
            lines.append(self._line(digest([RUN, standing.run]), bodies[-1], standing.record))
        outcomes = [outcome for chunk in chunked([*lines, *more]) for outcome in self.put_chunk(chunk)][: len(lines)]
        late = []
        for place, (outcome, body) in enumerate(zip(outcomes, bodies, strict=True)):
            if "error" in outcome:
                late.append(place)
                continue
            guarded = Guarded(body, int(outcome["_seq_no"]), int(outcome["_primary_term"]))
            if place < len(sources):
                standing.sources[sources[place][0].source] = guarded
            else:
                standing.record = guarded
        return [sources[place] for place in late if place < len(sources)], len(sources) in late

    def _line(self, name: str, body: Mapping[str, Any], there: Guarded | None) -> bytes:
        kind, guard = ("index", there.guard) if there else ("create", {})
        return writing_line(self.index, name, body, kind, **guard)


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


def check_there(run: str, there: Guarded | None, generation: int) -> None:
    """Raise RunGoneError unless the record of a run that is there is still that in which sources of a generation were begun."""
    if generation < lowest_generation(living(run, document_of(there))):
        raise RunGoneError(run)


def generation_in(record: Mapping[str, Any]) -> int:
    """Return the generation of a run by its record."""
    return int(record["run"].get("generation", 0))


def loaded_again(run: str, known: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the record of a run that says when and by which version a load ended: now, by this one."""
    there = living(run, known)
    return {**there, "run": {**there["run"], "loaded": loaded_now()}}


def records_of(run: str, record: str) -> dict[str, Any]:
    """Return the query for the records of one sort that a run has."""
    return {"bool": {"filter": [{"term": {"run.id": run}}, {"term": {"record": record}}]}}


# What the records of a run say at one moment.


@dataclass(frozen=True, slots=True)
class Guarded:
    """The document of a record with the numbers that guard it."""

    document: Mapping[str, Any]
    seq_no: int
    term: int

    @property
    def guard(self) -> dict[str, int]:
        """Return the words of a write that is to fail where the record was written since."""
        return {"if_seq_no": self.seq_no, "if_primary_term": self.term}

    @classmethod
    def of(cls, hit: Mapping[str, Any]) -> Self:
        """Return the record of a hit, or of another answer that has its numbers."""
        return cls(hit["_source"], int(hit["_seq_no"]), int(hit["_primary_term"]))


def document_of(there: Guarded | None) -> Mapping[str, Any] | None:
    """Return the document of a record, if there is one."""
    return there.document if there else None


@dataclass(slots=True)
class RunMetadata:
    """The records of a run: its own (or its tombstone, or none), those of its sources, its watches."""

    run: str
    record: Guarded | None = None
    sources: dict[str, Guarded] = field(default_factory=dict)
    watches: list[Watch] = field(default_factory=list)

    @property
    def held(self) -> StoredRun:
        """Return what a plan needs to know."""
        return StoredRun(self.run_record, max(1, lowest_generation(document_of(self.record))), self.source_records)

    @property
    def run_record(self) -> RunRecord | None:
        """Return the record of the run with its state as `Records.runs` has it; None where there is no run."""
        if self.record is None or self.record.document["record"] != RUN:
            return None
        record = run_record(self.record.document)
        complete = bool(self.sources) and self.all_complete(self.sources)
        return watched([with_state(record, complete=complete)], self.watches)[0]

    @property
    def start_ns(self) -> int:
        """Return the start of the run, 0 where there is none."""
        return int(self.record.document["run"].get("start_ns", 0)) if self.record else 0

    @property
    def source_records(self) -> list[SourceRecord]:
        """Return the records of the sources, by identity."""
        return [source_record(self.sources[name].document) for name in sorted(self.sources)]

    @property
    def generation(self) -> int:
        """Return the generation of the run."""
        return generation_in(self.record.document) if self.record else 0

    def generation_of(self, source: str) -> int:
        """Return the generation of a source, 0 where there is none."""
        return int(self.sources[source].document["generation"]) if source in self.sources else 0

    def all_complete(self, names: Iterable[str]) -> bool:
        """Return whether sources are complete."""
        return all(self.sources[name].document["source"]["state"] == COMPLETE for name in names)

    def series(self, without: Iterable[str] = ()) -> Iterator[StoredSeries]:
        """Yield the series of all sources but some."""
        left_out = set(without)
        for name, guarded in self.sources.items():
            if name not in left_out:
                yield from listed_series(guarded.document)

    def accounts(self) -> list[Mapping[str, Any]]:
        """Return the accounts of all sources."""
        return [account_in(guarded.document) for guarded in self.sources.values()]

    def check_alive(self, generation: int) -> None:
        """Raise RunGoneError where the run has gone since sources of a generation were begun, or is another one now."""
        check_there(self.run, self.record, generation)


def joined(
    there: Mapping[str, Any] | None, run: RunRecord, sources: Sequence[SourceRecord], *, anew: bool, ending: bool
) -> dict[str, Any]:
    """Return the document of a run that is begun, or joined with sources; `ending` says that documents of it count no more.

    StoreError where it has got other parameters in the meantime, or was deleted.
    """
    if there is not None and there["record"] == RUN and not lives(there):
        raise StoreError(unfinished(run_record(there)))
    since, generation = lowest_generation(there), (generation_in(there) if there else 0) + ending
    if any(source.generation < since for source in sources):
        raise RunGoneError(run.run)
    if there is None or there["record"] == TOMBSTONE or anew:
        return run_document(run, max(since, generation), since)
    known = run_record(there)
    check_joinable(known, run, len(sources))
    for name, fact in (("attribution", "attribution"), ("start of the run", "relative")):
        if getattr(known, fact) != getattr(run, fact):
            raise StoreError(f"{run.run} is being loaded with another {name}: use --replace to load it anew")
    start = min(known.start_ns, run.start_ns)
    labels = {**known.labels, **run.labels}
    return run_document(replace(run, start_ns=start, labels=labels, loaded=known.loaded), generation, since)


# The records of runs as one request tells them: what a question needs to know before it asks for data.
#
# They are read when they are first needed, and hold for one question, or for all questions of a command.


MOST_SOURCES = 500  # that are read before it is known whether a question is about them


GUARDED: dict[str, Any] = {"seq_no_primary_term": True}
MEANING = ("run.step_ns", "run.generation", "run.parameters")


class CachedRecords(Records):
    """The records of all runs, with those of their sources where these are not too many; `have_changed` asks how they are now."""

    def __init__(self, connection: Connection, names: Names) -> None:
        super().__init__(connection, names)
        self._records: list[RunRecord] | None = None
        self._sources: dict[str, list[Mapping[str, Any]]] = {}
        self._read: dict[str, Guarded] = {}

    def forget(self) -> None:
        """Let the next question read them anew."""
        self._records, self._sources = None, {}

    def runs(self) -> list[RunRecord]:
        """Return the records of all runs, by name."""
        if self._records is None:
            of_sources = {"size": MOST_SOURCES, "query": STATES, "track_total_hits": MOST_SOURCES + 1}
            bodies = [{**every(FEW), **GUARDED}, bucket_page(STATES, STATES_CELLS), of_sources]
            found, counted, sources = searches(self.connection, self.index, bodies)
            read = [Guarded.of(hit) for hit in hits_of(self.connection, self.index, FEW, found, **GUARDED)]
            self._read = {record.document["run"]["id"]: record for record in read if record.document["record"] == RUN}
            self._records = self.records_in([record.document for record in read], counted)
            if sources["hits"]["total"]["value"] <= MOST_SOURCES:
                self._sources = {record.run: [] for record in self._records}
                self._keep(hit["_source"] for hit in sources["hits"]["hits"])
        return self._records

    def have_changed(self, runs: Iterable[str]) -> bool:
        """Return whether what was asked of runs since their records were read may be of two readings of them.

        Whatever changes a run writes its record first. So data of a complete run are of one reading while nobody has written it.
        Those of a run that is being loaded are, and say what they lack, while documents mean and count what they did.
        """
        then = {record.run: record for record in self.runs()}
        names = sorted(runs)
        query = {"bool": {"filter": [{"terms": {"run.id": names}}, {"term": {"record": RUN}}]}}
        found = hits_of(self.connection, self.index, query, source=["run.id", *MEANING], **GUARDED)
        now = {guarded.document["run"]["id"]: guarded for guarded in map(Guarded.of, found)}
        for name in names:
            before, after = self._read[name], now.get(name)
            if after is None or _meaning(before) != _meaning(after):
                return True
            if then[name].state == COMPLETE and before.guard != after.guard:
                return True
        return False

    def sources(self, run: str, only: Collection[str] | None = None) -> list[SourceRecord]:
        """Return the records of a run's sources, by identity; of those that `only` names, where it is given."""
        if run not in self._sources:
            return super().sources(run, only)
        records = sorted((source_record(document) for document in self._sources[run]), key=lambda record: record.source)
        return [record for record in records if only is None or record.source in only]

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


def _meaning(record: Guarded) -> tuple[Any, ...]:
    """Return what tells which documents of a run count, and what they mean: the generation rises where some count no more."""
    run, parameters = record.document["run"], record.document["run"].get("parameters") or {}
    return run["step_ns"], run.get("generation", 0), parameters.get(BINS), parameters.get(BINS_COARSENING)


class StillRecords(CachedRecords):
    """The records of one run as they stand, for several questions about it."""

    def __init__(self, connection: Connection, names: Names, standing: RunMetadata) -> None:
        super().__init__(connection, names)
        self._records = [] if standing.run_record is None else [standing.run_record]
        self._sources = {standing.run: [guarded.document for guarded in standing.sources.values()]}

    def have_changed(self, runs: Iterable[str]) -> bool:
        """Return False: the questions are about the run as it stood."""
        return False


# Tombstones: documents in place of the records of deleted runs, with the generations of documents that belonged to them.


def mark_deleting(records: Records, run: str, *, force: bool) -> int | None:
    """Note that a run is being deleted, which keeps loads away; return a generation above all that it has.

    None where it is deleted already. StoreError where somebody may be writing to it, unless that is to be forced.
    """
    record = next((known for known in records.runs() if known.run == run), None)
    if record is not None and not force:
        check_deletable(record, unfinished(record))
    above = max((source.generation for source in records.sources(run)), default=0) + 1

    def change(there: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if there is None or not lives(there):
            return None
        marked = max(above, int(there.get("generation", 0)), generation_in(there) + 1)
        return {**there, "generation": marked, "run": {**there["run"], "state": DELETING}}

    now = records.changed(run, change)
    return None if now is None or now["record"] == TOMBSTONE else int(now["generation"])


def bury(records: Records, run: str, generation: int) -> None:
    """Leave a tombstone in place of the record of a run that was being deleted."""
    records.changed(run, lambda there: tombstone(run, generation) if there and there["run"].get("state") == DELETING else None)


def entomb(records: Records, run: str, generation: int) -> None:
    """Leave a tombstone for a run that has no record: a later run of its name begins above its generations."""

    def change(there: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if there is not None and (there["record"] != TOMBSTONE or int(there["generation"]) >= generation):
            return None
        return tombstone(run, generation)

    records.changed(run, change)


# Two loads of one source at the same time, the file having grown in between: neither may leave the older content as complete.
#
# Documents bear the same ids in every generation, so a slow load of the older content may overwrite what a quicker one of the
# newer has written. The slow one sees at its end that it was overtaken, and opens the source again. The quick one counts at its
# end what is there in its generation. Either way the next load reads the source once more.


def check_not_superseded(records: Records, run: str, finished: Iterable[SourceRecord]) -> None:
    """Raise StoreError where another load has read a source again since this one began; the source counts as loading then."""
    late = reopen_superseded(records, run, finished)
    if late:
        raise StoreError(_sentence(late[0]))


def reopen_superseded(records: Records, run: str, written: Iterable[SourceRecord]) -> list[SourceRecord]:
    """Return the sources that another load has begun again since they were written; they count as loading from now on."""
    there = {record.source: record.generation for record in records.sources(run)}
    late = [source for source in written if there.get(source.source, 0) > source.generation]
    for source in late:
        records.reopen(run, source.source)
    return late


def check_all_there(connection: Connection, names: Names, source: SourceRecord, state: SourceState) -> None:
    """Raise StoreError where the server does not hold all that was written of a source that was read again.

    A slower load may have overwritten documents. Asked before what earlier generations left is deleted.
    """
    filters: Filters = [*of_source(source), {"term": {"generation": source.generation}}]
    documents, samples = counted(connection, names.all("intervals"), filters)
    if documents < state.written - state.refused:
        raise StoreError(_sentence(source))
    if documents == state.written and samples != state.samples:
        raise not_there(source, state.samples, samples)


def of_source(source: SourceRecord) -> list[dict[str, Any]]:
    """Return the filters for the documents of a source."""
    return [{"term": {"run.id": source.run}}, {"term": {"source.id": source.source}}]


def left_of(source: SourceRecord) -> list[dict[str, Any]]:
    """Return the filters for what older generations of a source have left."""
    return [*of_source(source), {"range": {"generation": {"lt": source.generation}}}]


def _sentence(source: SourceRecord) -> str:
    return f"{source.path} was loaded by another program at the same time: run the same load again"


# Deleting a run from all indices, while somebody may be writing to it; cut off anywhere, a repeat goes on.
#
# 1. The run's record says that it is being deleted, and a generation above all that it has: loads are refused from here on.
# 2. All documents of the run go, up to that generation.
# 3. A tombstone stays in place of the record: a later run of this name begins above its generation.
#
# Nobody can lock a server. Who was writing to the run reads its record once more after the last thing that was written. It was
# read before stage 1: then stage 2 finds what was written. Else the writer sees it, and deletes by `sweep_dead` what it wrote:
# its generation distinguishes it from the documents of a later run of this name.


def delete_run(store: ElasticStore, run: str, *, force: bool) -> int:
    """Return how many documents of intervals a run had, once all that belongs to it is deleted.

    Its sources go first: cut off after that, the run is no longer complete. StoreError where somebody may be writing to it,
    unless it is to be deleted by `force`.
    """
    names = store.names
    closed = [name for name, settings in settings_in(store.connection, names).items() if is_closed(settings)]
    if closed:  # before anything is deleted, or said to be
        raise StoreError(f"{store.connection.address.url}: {closed_sentence(closed[0])}")
    generation = mark_deleting(store.records, run, force=force)
    if generation is None:
        return 0
    mine = _up_to(run, generation)
    stages = [(names.one("runs"), {**mine, "filter": [*mine["filter"], {"term": {"record": SOURCE}}]})]
    stages += [(names.pattern(index), mine) for index in indices() if index != "runs"]
    stages.append((names.one("runs"), {**mine, "must_not": [*mine["must_not"], {"terms": {"record": [RUN, TOMBSTONE]}}]}))
    deleted = {index: swept(store, index, query) for index, query in stages}
    bury(store.records, run, generation)
    return deleted[names.all("intervals")]


def sweep_dead(store: ElasticStore, run: str, sources: Iterable[SourceRecord]) -> None:
    """Delete documents that a writer wrote to a run after it was deleted; `sources` are those of the writer."""
    last = lowest_generation(document_of(store.records.get(run))) - 1
    if last < 1:  # there is no tombstone: somebody has deleted the record by hand
        last = max((source.generation for source in sources), default=0)
    mine = _up_to(run, last)
    swept(store, store.names.one("runs"), {**mine, "filter": [*mine["filter"], {"term": {"record": SOURCE}}]})
    for index in PERIODIC:
        swept(store, store.names.all(index), mine)


def settle_breaths(store: ElasticStore, again: Sequence[SourceRecord]) -> None:
    """Let searches see all that was sent, and delete documents of older generations of the sources that were read again."""
    index = store.names.all("points")
    store.connection.refresh(index)
    for source in again:
        store.sender.put(deletions(store.connection, index, left_of(source)))
    if again:
        store.flush()
        store.connection.refresh(index)


def _up_to(run: str, generation: int) -> dict[str, Any]:
    """Return the query for all documents of a run up to a generation, and those without one."""
    return {"filter": [{"term": {"run.id": run}}], "must_not": [{"range": {"generation": {"gt": generation}}}]}


def swept(store: ElasticStore, index: str, query: dict[str, Any]) -> int:
    """Return how many documents a query finds, once they are deleted."""
    store.connection.refresh(index)
    return dropped(store, index, [{"bool": query}])


def dropped(store: ElasticStore, index: str, filters: Filters) -> int:
    """Return how many documents that searches see already meet all filters, once they are deleted."""
    deleted = store.sender.put(deletions(store.connection, index, filters))
    store.sender.flush()
    store.connection.refresh(index)
    return deleted


# Writing to a run that may be deleted meanwhile: its record is read once more after the last thing that was written.


EVERY_GENERATION = 1 << 40


@contextmanager
def writing(store: ElasticStore, run: str, sources: Sequence[SourceRecord] = ()) -> Iterator[None]:
    """Hold the writes to a run, of some of its sources: RunGoneError where the run was deleted before their end.

    All that they wrote is deleted then.
    """
    generation = min((source.generation for source in sources), default=EVERY_GENERATION)
    with leaving_nothing(store, run, sources):
        yield
        store.records.check_alive(run, generation)


@contextmanager
def leaving_nothing(store: ElasticStore, run: str, sources: Sequence[SourceRecord] = ()) -> Iterator[None]:
    """Hold writes that find out for themselves whether the run was deleted: all that they wrote is deleted then."""
    generation = min((source.generation for source in sources), default=EVERY_GENERATION)
    try:
        yield
    except StoreError as error:
        if not isinstance(error, RunGoneError) and _is_alive(store, run, generation):
            raise
        with suppress(StoreError):  # the first failure is known
            store.flush()
        store.stop_senders()
        reopen_superseded(store.records, run, sources)
        sweep_dead(store, run, sources)
        store.stop_senders()
        raise RunGoneError(run) from None


@contextmanager
def keeping(store: ElasticStore, index: str, run: str, *, known: bool = False) -> Iterator[None]:
    """Hold the writing of marks, episodes or findings of a run: RunGoneError where it was deleted, and they are deleted, too.

    A run that was just read is `known`, and is not looked for at the beginning.
    """
    if not known:
        store.records.check_alive(run, EVERY_GENERATION)
    yield
    try:
        store.records.check_alive(run, EVERY_GENERATION)
    except RunGoneError:
        swept(store, store.names.pattern(index), {"filter": [{"term": {"run.id": run}}]})
        store.stop_senders()
        raise


def _is_alive(store: ElasticStore, run: str, generation: int) -> bool:
    """Return whether a run is still the one that sources of a generation were begun in; true where nobody answers."""
    try:
        store.records.check_alive(run, generation)
    except StoreError as error:
        return not isinstance(error, RunGoneError)
    return True


# Which windows a load has touched, by the rollups of hosts that have to be made anew.


@dataclass(frozen=True, slots=True)
class Touch:
    """What one piece of a load touches: starts of windows by rollup of their host, series written, how many samples.

    `rolled` of these samples are in windows that have rollups.
    """

    windows: dict[RollupKey, Int]
    series: tuple[Series, ...]
    layout: str
    exact: bool
    samples: int
    rolled: int


def touch_of(windows: Intervals[Series]) -> Touch:
    """Return the touch of windows; of offsets no rollups are made, so they touch no windows."""
    table = windows.table
    cells: dict[RollupKey, list[Int]] = {}
    present = np.flatnonzero(np.bincount(windows.series, minlength=len(table))).tolist()
    for code in present:
        series = table[code]
        if series.kind == OFFSET:
            continue
        cells.setdefault(host_group(series), []).append(windows.start_ns[windows.series == code])
    starts = {cell: distinct(np.concatenate(parts)) for cell, parts in cells.items()}
    samples = sum_of(windows.counts if windows.completions is None else windows.completions)
    offsets = [code for code in present if table[code].kind == OFFSET]
    rolled = samples - (sum_of(windows.samples[np.isin(windows.series, offsets)]) if offsets else 0)
    return Touch(starts, tuple(table[code] for code in present), str(windows.layout), windows.exact is not None, samples, rolled)


def host_key_in(document: Mapping[str, Any]) -> RollupKey:
    """Return the rollup of a host that a document is of, or is made into."""
    return RollupKey(HOST, label_in(document, "host"), label_in(document, "op"), label_in(document, "kind"))


@dataclass(slots=True)
class SharedWindows:
    """What a load has touched so far: windows by rollup of their host; `also` are starts at which the cluster's may change."""

    windows: dict[RollupKey, list[Int]] = field(default_factory=dict)
    also: list[Int] = field(default_factory=list)

    def add(self, windows: dict[RollupKey, Int]) -> None:
        """Add window starts."""
        for key, starts in windows.items():
            self.windows.setdefault(key, []).append(starts)

    @property
    def hosts(self) -> list[str]:
        """Return the hosts of which something was touched."""
        return sorted({key.host for key in self.windows})

    def starts(self, key: RollupKey) -> Int:
        """Return the starts of the touched windows of a host's rollup, in order."""
        return distinct(np.concatenate(self.windows[key]))

    def slabs(self, width_ns: int) -> Int:
        """Return the starts of the time slabs of `width_ns` in which something was touched, in order."""
        every = [*self.also, *(part for parts in self.windows.values() for part in parts)]
        starts = [distinct(part // width_ns * width_ns) for part in every]
        return distinct(np.concatenate(starts)) if starts else np.empty(0, np.int64)


# Deleting documents of older generations by their ids: no module of the server is needed for it.


LABELS = ("@timestamp", "host.name", "operation", "kind")


@dataclass(frozen=True, slots=True)
class Sweeper:
    """Deletes documents by id, and reports which windows they were of."""

    store: ElasticStore

    def sweep(self, source: SourceRecord) -> dict[RollupKey, Int]:
        """Delete the documents that older generations of a source have left; return the windows that they were of."""
        lines: list[bytes] = []
        windows = self._windows("intervals", left_of(source), lines)
        self.store.sender.put(lines)
        self.store.sender.flush()
        return windows

    def all_windows(self, run: RunRecord) -> dict[RollupKey, Int]:
        """Return all windows of a run of which hosts have rollups."""
        return self._windows("rollups", rollups_of(run.run, HOST, run.step_ns))

    def _windows(self, index: str, filters: Filters, deleting: list[bytes] | None = None) -> dict[RollupKey, Int]:
        """Return the windows that documents are of, by the rollup of their host; note the lines that delete them."""
        cells: dict[RollupKey, list[int]] = {}
        query = {"bool": {"filter": list(filters)}}
        for hit in hits(self.store.connection, self.store.names.all(index), query, source=list(LABELS)):
            cell = host_key_in(hit["_source"])
            if cell.kind != OFFSET:  # there are no rollups of offsets
                cells.setdefault(cell, []).append(hit["_source"]["@timestamp"] * MS)
            if deleting is not None:
                deleting.append(deletion(hit["_index"], hit["_id"]))
        return {cell: distinct(np.array(starts, np.int64)) for cell, starts in cells.items()}

    def sweep_steps(self, run: RunRecord) -> int:
        """Delete the documents of latencies at other steps than the run's; return how many there were."""
        other = {"bool": {"must_not": [at_steps(run, self.store.records.series([run.run])[0])]}}
        filters: Filters = [{"term": {"run.id": run.run}}, other, LATENCIES]
        return dropped(self.store, self.store.names.all("intervals"), filters)
