"""A store in Elasticsearch for a watch: documents, then rollups, then checkpoints and the final mark, in this order.

Whoever is killed between two of them writes the same documents again. Answers take rollups only for windows that are final,
so what lies between is never seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ingest.core.errors import StoreError
from ingest.core.labels import OFFSET, Series
from ingest.core.layout import Layout
from ingest.store.coverage import identified, since_in
from ingest.store.elastic.aggregations import counted
from ingest.store.elastic.documents import MS, deletion, deletions, documents, hits, series_in, writing_line
from ingest.store.elastic.rollups import RollupWriter
from ingest.store.elastic.runs import (
    CHECKPOINT,
    EVERY_GENERATION,
    SOURCE,
    WATCH,
    RunMetadata,
    SharedWindows,
    SourceState,
    Sweeper,
    check_there,
    checkpoint_document,
    checkpoint_of,
    leaving_nothing,
    listed_series,
    records_of,
    watch_document,
    watch_of,
    writing,
)
from ingest.store.elastic.templates import digest, series_digest, window_ids
from ingest.store.live import Checkpoint, News, Watch, marks_of
from ingest.store.records import COMPLETE, LOADING, RunGoneError, RunRecord, SourceRecord
from ingest.store.rollups import RollupKey, default_kind_of, have_moved, layouts_of

if TYPE_CHECKING:
    from ingest.store.elastic.store import ElasticStore

Listing = dict[Series, Layout]
LONGEST_NOTED_NS = 3600 * 10**9


class ElasticLive:
    """An open store in Elasticsearch, as a watch uses it."""

    def __init__(self, store: ElasticStore) -> None:
        self._store = store
        self._index = store.names.one("runs")
        self._states: dict[tuple[str, str], SourceState] = {}
        self._layouts: dict[str, Mapping[RollupKey, Layout]] = {}
        self._facts: dict[str, tuple[str, int]] = {}  # the default kind of a run, and its start
        self._told: dict[str, Watch] = {}
        self._cells: dict[str, set[RollupKey]] = {}
        self._listed: dict[str, dict[str, Listing]] = {}

    def checkpoints(self, run: str) -> list[Checkpoint]:
        """Return all checkpoints of a run."""
        stored = documents(self._store.connection, self._index, records_of(run, CHECKPOINT))
        return sorted(map(checkpoint_of, stored), key=lambda checkpoint: checkpoint.source)

    def watches(self, run: str) -> list[Watch]:
        """Return the watches of a run."""
        return [watch_of(one) for one in documents(self._store.connection, self._index, records_of(run, WATCH))]

    def keep(self, run: RunRecord, news: Sequence[News], watch: Watch) -> int:
        """Write what a cycle has read, the rollups of its windows, then checkpoints and marks; return how many documents."""
        with self._writing(run.run, [entry.source for entry in news], watch.watch, leaving_nothing):
            written = self._keep(run, news, watch)
        self._store.stop_senders()
        return written

    @contextmanager
    def _writing(
        self, run: str, sources: Sequence[SourceRecord], watch: str, held: Callable[..., AbstractContextManager[None]] = writing
    ) -> Iterator[None]:
        """Hold the writes of a watch to a run: RunGoneError, and nothing is left, where the run was deleted before their end."""
        try:
            with held(self._store, run, sources):
                yield
        except RunGoneError:
            own = [digest([CHECKPOINT, run, source.source]) for source in sources]
            self._drop([*own, digest([WATCH, run, watch])])
            raise

    def _keep(self, run: RunRecord, news: Sequence[News], watch: Watch) -> int:
        store, touched = self._store, SharedWindows()
        oldest = min((int(part.start_ns.min()) for entry in news for part in entry.windows), default=watch.final_ns)
        ends = min((int(part.end_ns.min()) for entry in news for part in entry.windows), default=watch.final_ns + 1)
        if run.run in self._told and ends <= self._told[run.run].final_ns:  # a window that was final has come again
            store.records.put([self._watch_line(replace(watch, final_ns=oldest))])
        written = self._send(run, news, touched)
        records = [(replace(entry.source, state=LOADING), self._state(entry.source)) for entry in news]
        if any(self._listed.get(run.run, {}).get(record.source) != _listing(state) for record, state in records):
            store.records.update_sources(records)  # whoever writes to the run is to know its layouts before rollups are made
        self._listed.setdefault(run.run, {}).update({record.source: _listing(state) for record, state in records})
        standing = store.records.standings([run.run])[run.run]
        generation = min((entry.source.generation for entry in news), default=EVERY_GENERATION)
        standing.check_alive(generation)
        if any(record.source not in standing.sources for record, _ in records):
            raise RunGoneError(run.run)
        writer = self._writer(run, touched, watch, standing, news)
        # Nobody else is writing to the run where its sources are read by this watch, or complete.
        mine, bodies = f"read while it grew by {watch.watch}", [known.document["source"] for known in standing.sources.values()]
        alone = all(body["digest"] == mine or body["state"] == COMPLETE for body in bodies)
        if store.needs_rollups(run.run):
            alone = False
            for source, since in since_in(standing.accounts()).items():
                Sweeper(store).sweep(SourceRecord(run.run, source, "", 0, "", generation=since))
            replace(writer, touched=SharedWindows(), anew=True).write(list(standing.series()))
        elif alone:
            writer.write_at_once(list(standing.series()), standing.generation)
        else:
            writer.write(list(standing.series()))
        seen = standing.record
        lines = [
            writing_line(self._index, digest([CHECKPOINT, run.run, entry.source.source]), checkpoint_document(entry.checkpoint))
            for entry in news
        ]
        lines.append(self._watch_line(watch))
        records = [pair for pair in records if standing.generation_of(pair[0].source) <= pair[0].generation]
        late, _ = store.records.write(standing, records, more=lines)
        store.records.update_sources(late)
        now = store.records.get(run.run)
        check_there(run.run, now, generation)
        if alone and seen is not None and now is not None and now.seq_no != seen.seq_no:  # somebody has joined meanwhile
            standing = store.records.standings([run.run])[run.run]
            self._writer(run, touched, watch, standing, news).write(list(standing.series()))
            store.records.check_alive(run.run, generation)
        return written

    def _send(self, run: RunRecord, news: Sequence[News], touched: SharedWindows) -> int:
        """Write the documents of a cycle; return how many once searches see them."""
        store, written = self._store, 0
        for update in news:
            state = self._state(update.source)
            for windows in update.windows:
                packed = store.packed(run, update.source, windows)
                touched.add(packed.touch.windows)
                state.wrote(packed.touch)
                for chunk in packed.chunks:
                    store.sender.send(chunk)
                    written += chunk.documents
            state.reached(update.spans)
        store.sender.show(store.names.all("intervals"))
        for update in news:
            state = self._state(update.source)
            state.refused = store.delivery.refused_of(run.run, update.source.source)
        return written

    def _writer(
        self, run: RunRecord, touched: SharedWindows, watch: Watch, standing: RunMetadata, news: Sequence[News]
    ) -> RollupWriter:
        """Return what makes the rollups that have changed, or have become final."""
        store, stored = self._store, list(standing.series())
        run = replace(run, start_ns=standing.start_ns)
        now, facts = (
            layouts_of([member for member in stored if member.series.kind != OFFSET]),
            (default_kind_of(stored), run.start_ns),
        )
        before = self._layouts.get(run.run, now)
        if have_moved(before, now) or self._facts.get(run.run, facts) != facts:
            touched.add(Sweeper(store).all_windows(run))
        self._layouts[run.run], self._facts[run.run] = now, facts
        cells = self._cells.setdefault(run.run, set())
        cells |= set(touched.windows)
        told = self._told.get(run.run)
        if told is not None and 0 < watch.final_ns - told.final_ns < LONGEST_NOTED_NS:  # windows have become final since
            edges = np.arange(told.final_ns // run.step_ns - 1, watch.final_ns // run.step_ns, dtype=np.int64)
            touched.add(dict.fromkeys(cells, edges * run.step_ns))
        accounts = dict(zip(standing.sources, standing.accounts(), strict=True))
        accounts |= {entry.source.source: identified(entry.source.source, entry.source.account) for entry in news}
        missing = store.lacking(run, {run.run: list(accounts.values())})
        marks = marks_of(standing.watches, watch, watch.told_ns)
        return RollupWriter(store, run, touched, facts[0], False, marks, grown=False, missing=missing)  # nothing has gone

    def _state(self, source: SourceRecord) -> SourceState:
        """Return the state of a source; from its record where another process began it."""
        key = (source.run, source.source)
        if key not in self._states:
            self._states[key] = state = SourceState()
            mine = records_of(source.run, SOURCE)
            mine["bool"]["filter"].append({"term": {"source.id": source.source}})
            for document in documents(self._store.connection, self._index, mine):
                state.series = {member.series: member for member in listed_series(document)}
        return self._states[key]

    def forget(self, run: RunRecord, sources: Iterable[str], watch: Watch) -> None:
        """Delete sources with their documents and checkpoints, and make the rollups anew where they were."""
        store, touched = self._store, SharedWindows()
        with self._writing(run.run, (), watch.watch):
            store.records.put([self._watch_line(watch)])
            store.connection.refresh(store.names.all("intervals"))
            for source in sources:
                touched.add(Sweeper(store).sweep(SourceRecord(run.run, source, "", 0, "", generation=EVERY_GENERATION)))
                self._states.pop((run.run, source), None)
                self._drop(digest([record, run.run, source]) for record in (SOURCE, CHECKPOINT))
            stored, accounts = store.records.series([run.run])
            marks = marks_of(self.watches(run.run), watch, watch.told_ns)
            missing = store.lacking(run, accounts)
            kind = default_kind_of(stored)
            RollupWriter(store, run, touched, kind, lowered=True, marks=marks, grown=False, missing=missing).write(stored)
        self._layouts.pop(run.run, None)

    def set_aside(self, run: RunRecord, source: str, kept: SourceRecord, segment: int) -> None:
        """Move the documents of a source to another one, complete, their series' segments moved by `segment`."""
        read = {record.source: record.generation for record in self._store.records.sources(run.run, [source])}
        if read.get(source, kept.generation) > kept.generation:  # a later reading has taken it over
            self._states.pop((run.run, source), None)
            return
        store, index = self._store, self._store.names.all("intervals")
        with writing(store, run.run, [kept]):
            store.connection.refresh(index)
            mine, theirs = ([{"term": {"run.id": run.run}}, {"term": {"source.id": name}}] for name in (source, kept.source))
            found = hits(store.connection, index, {"bool": {"filter": mine}}, source=True)
            store.sender.put(_moved(hit, kept, segment) for hit in found)
            store.sender.flush()
            there, moved_there = (counted(store.connection, index, filters) for filters in (mine, theirs))
            if there[0] > moved_there[0] or there[1] > moved_there[1]:  # less is left where an earlier attempt was cut off
                sentence = f"{there[1]:,} samples of {source} were to be kept, {moved_there[1]:,} are there: nothing was deleted"
                raise StoreError(f"{run.run}: {sentence}")
            store.sender.put(deletions(store.connection, index, mine))
            store.sender.flush()
            before = self._state(SourceRecord(run.run, source, "", 0, ""))
            moved = [
                replace(stored, series=stored.series.replaced(segment=stored.series.segment + segment))
                for stored in before.series.values()
            ]
            state = SourceState({stored.series: stored for stored in moved}, before.refused)
            store.records.put([store.records.source_line(replace(kept, state=COMPLETE), state)])
            self._states.pop((run.run, source), None)
            self._drop(digest([record, run.run, source]) for record in (SOURCE, CHECKPOINT))

    def finish(self, source: SourceRecord) -> None:
        """Note that a source is complete as it is."""
        with writing(self._store, source.run, [source]):
            self._store.records.update_sources([(replace(source, state=COMPLETE), self._state(source))])

    def note_watch(self, watch: Watch) -> None:
        """Note up to when windows are final as far as a watch knows."""
        with self._writing(watch.run, (), watch.watch):
            self._store.records.put([self._watch_line(watch)])

    def _watch_line(self, watch: Watch) -> bytes:
        self._told[watch.run] = watch
        return writing_line(self._index, digest([WATCH, watch.run, watch.watch]), watch_document(watch))

    def _drop(self, ids: Iterable[str]) -> None:
        self._store.records.put(deletion(self._index, id_) for id_ in ids)

    def leave(self, run: str, watch: str) -> None:
        """Delete a watch that has settled all that it read, with its checkpoints."""
        own = [digest([CHECKPOINT, run, checkpoint.source]) for checkpoint in self.checkpoints(run) if checkpoint.watch == watch]
        self._drop([*own, digest([WATCH, run, watch])])
        self._told.pop(run, None)


def _listing(state: SourceState) -> Listing:
    """Return what others must know of a source before rollups are made: the layouts of its series."""
    return {series: stored.layout for series, stored in state.series.items()}


def _moved(hit: Mapping[str, Any], kept: SourceRecord, segment: int) -> bytes:
    """Return the bulk line of a document under another source and segment."""
    document = dict(hit["_source"])
    document["segment"] = int(document.get("segment", 0)) + segment
    document["source"] = {"id": kept.source}
    step = int(document["interval"]["step_ms"]) * MS
    series = series_in(document).replaced(segment=document["segment"])
    start = np.array([document["@timestamp"] * MS], np.int64)
    [id_] = window_ids([series_digest(series, step)], np.zeros(1, np.int64), start, step)
    return writing_line(hit["_index"], id_, document)
