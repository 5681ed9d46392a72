"""What the records of a run say at one moment: read in one search, and written again only as long as they still say it.

Each record bears the numbers that guard it: a write under them fails where somebody has written the record since. Every load
writes the record of its run when it begins. So a load that can write that record under the numbers of its beginning knows that
nobody has joined, replaced, coarsened or deleted the run in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from ingest.core.errors import StoreError
from ingest.store.coarsening import Grid, check_joinable, grid_in, unfinished
from ingest.store.elastic.connection import Connection
from ingest.store.elastic.encoding import chunked, writing_line
from ingest.store.elastic.names import Names, digest
from ingest.store.elastic.reading import guarded_hits
from ingest.store.elastic.record_documents import (
    RUN,
    SOURCE,
    TOMBSTONE,
    WATCH,
    SourceState,
    run_document,
    run_record,
    source_document,
    source_record,
    stored_series,
    watch_of,
)
from ingest.store.elastic.records import Records, lives, living, lowest_generation, with_state
from ingest.store.lacking import identified
from ingest.store.live import Watch, watched
from ingest.store.records import (
    COMPLETE,
    LOADING,
    UNKNOWN_ZERO,
    Held,
    RunGoneError,
    RunRecord,
    SourceRecord,
    StoredSeries,
    check_unclaimed,
)

RECORDS = (RUN, TOMBSTONE, SOURCE, WATCH)


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


@dataclass(slots=True)
class Standing:
    """The records of a run: its own (or its tombstone, or none), those of its sources, its watches."""

    run: str
    record: Guarded | None = None
    sources: dict[str, Guarded] = field(default_factory=dict)
    watches: list[Watch] = field(default_factory=list)

    @property
    def held(self) -> Held:
        """Return what a plan needs to know."""
        first = max(1, lowest_generation(self.record.document)) if self.record else 1
        return Held(self.run_record, first, self.source_records)

    @property
    def run_record(self) -> RunRecord | None:
        """Return the record of the run with its state as `Records.runs` has it; None where there is no run."""
        if self.record is None or self.record.document["record"] != RUN:
            return None
        record = run_record(self.record.document)
        complete = bool(self.sources) and self.all_complete(self.sources)
        return watched([with_state(record, complete=complete)], self.watches)[0]

    @property
    def source_records(self) -> list[SourceRecord]:
        """Return the records of the sources, by identity."""
        return [source_record(self.sources[name].document) for name in sorted(self.sources)]

    @property
    def generation(self) -> int:
        """Return the generation of the run."""
        return int(self.record.document["run"].get("generation", 0)) if self.record else 0

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
            for entry in guarded.document["source"].get("series") or () if name not in left_out else ():
                yield stored_series(0, self.run, entry)

    def accounts(self) -> list[Mapping[str, Any]]:
        """Return the accounts of all sources."""
        return [identified(name, guarded.document["source"].get("account") or {}) for name, guarded in self.sources.items()]

    def check_alive(self, generation: int) -> None:
        """Raise RunGoneError where the run has gone since sources of a generation were begun, or is another one now."""
        if generation < lowest_generation(living(self.run, self.record.document if self.record else None)):
            raise RunGoneError(self.run)


class Standings:
    """Reads and writes the records of runs under their guards."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def read(self, runs: Sequence[str]) -> dict[str, Standing]:
        """Return what there is of runs: one search for all."""
        found = {run: Standing(run) for run in runs}
        query = {"bool": {"filter": [{"terms": {"run.id": list(runs)}}, {"terms": {"record": list(RECORDS)}}]}}
        for hit in guarded_hits(self._records.connection, self._records.index, query):
            guarded = Guarded(hit["_source"], int(hit["_seq_no"]), int(hit["_primary_term"]))
            kind, standing = guarded.document["record"], found[guarded.document["run"]["id"]]
            if kind == SOURCE:
                standing.sources[guarded.document["source"]["id"]] = guarded
            elif kind == WATCH:
                standing.watches.append(watch_of(guarded.document))
            else:
                standing.record = guarded
        return found

    def begin(self, standing: Standing, run: RunRecord, sources: Sequence[SourceRecord], *, anew: bool) -> Standing:
        """Note a run, or join it, and the sources that are about to be written; return how it stands then.

        One request, the run last: whoever coarsens or deletes the run afterwards sees the sources, and where somebody did so
        before, the run is not written. StoreError where the run or a source is not to be loaded: nothing of this is left then.
        """
        made: dict[str, Guarded] = {}
        try:
            while not self._begun(standing, run, sources, made, anew=anew):
                standing = self.read([run.run])[run.run]
        except StoreError:
            ids = {name: digest([SOURCE, run.run, name]) for name in made}
            words = [{"_index": self._records.index, "_id": ids[name], **guarded.guard} for name, guarded in made.items()]
            self._records.put(orjson.dumps({"delete": word}) + b"\n" for word in words)
            raise
        return standing

    def _begun(
        self, standing: Standing, run: RunRecord, sources: Sequence[SourceRecord], made: dict[str, Guarded], *, anew: bool
    ) -> bool:
        """Return whether all was written; records of sources that were not there before are in `made`."""
        body = joined(standing.record.document if standing.record else None, run, sources, anew=anew)
        for source in sources:
            if there := standing.sources.get(source.source):
                known = there.document["source"]
                check_unclaimed(source, (int(there.document["generation"]), known["digest"], known["path"]))
        new = {source.source for source in sources} - {name for name in standing.sources if name not in made}
        begun = [(replace(source, state=LOADING), SourceState()) for source in sources]
        late, run_late = self.write(standing, begun, lambda _there: body)
        names = new - {source.source for source, _ in late}
        made.update({name: standing.sources[name] for name in names})
        return not late and not run_late

    def write(
        self,
        standing: Standing,
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
        outcomes = [outcome for chunk in chunked([*lines, *more]) for outcome in self._records.put_chunk(chunk)][: len(lines)]
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
        return writing_line(self._records.index, name, body, kind, **guard)


class StillRecords(Records):
    """The records of one run as they stand, for several questions about it."""

    def __init__(self, connection: Connection, names: Names, standing: Standing) -> None:
        super().__init__(connection, names)
        self._standing = standing

    @property
    def held(self) -> bool:
        """Return that they are."""
        return True

    def runs(self) -> list[RunRecord]:
        """Return the record of the run, if there is one."""
        record = self._standing.run_record
        return [] if record is None else [record]

    def sources(self, run: str) -> list[SourceRecord]:
        """Return the records of the run's sources, by identity."""
        return self._standing.source_records

    def series(self, runs: Iterable[str]) -> tuple[list[StoredSeries], dict[str, list[Mapping[str, Any]]]]:
        """Return all series of the run, and the accounts of its sources."""
        series = [replace(stored, number=number) for number, stored in enumerate(self._standing.series())]
        return series, {self._standing.run: self._standing.accounts()}

    def grids(self) -> dict[str, Grid]:
        """Return step and bins of the run."""
        return {record.run: grid_in(record.step_ns, record.parameters) for record in self.runs()}


def joined(there: Mapping[str, Any] | None, run: RunRecord, sources: Sequence[SourceRecord], *, anew: bool) -> dict[str, Any]:
    """Return the document of a run that is begun, or joined with sources.

    StoreError where it has got other parameters in the meantime, or was deleted.
    """
    if there is not None and there["record"] == RUN and not lives(there):
        raise StoreError(unfinished(run_record(there)))
    since, generation = lowest_generation(there), int(there["run"].get("generation", 0)) if there else 0
    if any(source.generation < since for source in sources):
        raise RunGoneError(run.run)
    if there is None or there["record"] == TOMBSTONE or anew:
        return run_document(run, max(since, generation), since)
    known = run_record(there)
    check_joinable(known, run, len(sources))
    for name, before, now in (
        ("attribution", known.attribution, run.attribution),
        ("start of the run", known.zero == UNKNOWN_ZERO, run.zero == UNKNOWN_ZERO),
    ):
        if before != now:
            raise StoreError(f"{run.run} is being loaded with another {name}: use --replace to load it anew")
    start = min(known.start_ns, run.start_ns)
    labels = {**known.labels, **run.labels}
    return run_document(replace(run, start_ns=start, labels=labels, loaded=known.loaded), generation, since)
