"""A load of a run, from its beginning to its end.

    begin:   the records of its sources and of the run, in one request, under the guards of what the plan has read
    write:   documents; what their windows add up to is gathered in memory
    finish:  documents are in and seen -> rollups -> records with series, and that of the run -> records: complete

What a load finds when it ends decides how its rollups are made (`rollups.py`). Killed anywhere, it leaves
sources that count as loading: the next load reads them again, and finds the same documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ingest.core.coverage import Missing
from ingest.query.coverage import Lack, stored_entries
from ingest.store.coverage import IDENTITY, brings, identified, known_together
from ingest.store.elastic.rollups import CachedRun, HostTotals, OwnRollups, RollupWriter, slab_of
from ingest.store.elastic.runs import (
    EVERY_GENERATION,
    Guarded,
    RunMetadata,
    SharedWindows,
    SourceState,
    Sweeper,
    Touch,
    check_all_there,
    check_not_superseded,
    loaded_again,
    settle_breaths,
    source_document,
)
from ingest.store.live import final_by_all
from ingest.store.records import COMPLETE, LOADING, RunRecord, SourceRecord, Spans, StoredSeries
from ingest.store.rollups import default_kind_of, have_moved, layouts_of

if TYPE_CHECKING:
    from ingest.store.elastic.store import ElasticStore


MOST_SLABS = 1000


@dataclass(slots=True)
class Loading:
    """What a load knows of a run that it writes: how it stood when it began, what it has written, which sources are read.

    `began_ns` is the start that the run had before, None where it was not there. `rolled` are the samples that the load has
    written and that rollups have to hold.
    """

    standing: RunMetadata
    gathered: HostTotals
    began_ns: int | None = None
    fresh: bool = True
    anew: bool = False
    breathed: bool = False
    rolled: int = 0
    touched: SharedWindows = field(default_factory=SharedWindows)
    states: dict[str, SourceState] = field(default_factory=dict)
    finished: list[SourceRecord] = field(default_factory=list)

    def state(self, source: str) -> SourceState:
        """Return what is known of a source."""
        return self.states.setdefault(source, SourceState())

    def wrote(self, source: str, touch: Touch, documents: int) -> None:
        """Note documents that were written."""
        self.touched.add(touch.windows)
        self.rolled += touch.rolled
        state = self.state(source)
        state.wrote(touch)
        state.written += documents
        state.samples += touch.samples

    def reached(self, source: SourceRecord, spans: Spans) -> None:
        """Note that a source is read, and from when to when its series reach."""
        self.state(source.source).reached(spans)
        self.finished.append(source)


class Finish:
    """The end of a load of a run."""

    def __init__(self, store: ElasticStore, run: RunRecord, loading: Loading) -> None:
        self._store, self._run, self._loading = store, run, loading
        self._mine = {source.source for source in loading.finished}

    def finish(self) -> None:
        """Make the rollups of all that was written, and note the sources complete that are whole."""
        store, loading = self._store, self._loading
        store.sender.arrive()
        for source in loading.finished:
            loading.state(source.source).refused = store.delivery.refused_of(source.run, source.source)
        loading.gathered.settle()
        if not (self._can_be_alone() and self._alone()):
            self._among_others()

    def foreseen(self) -> CachedRun | None:
        """Return the run as it will be once all is in; None unless this load alone has written it, and has it still."""
        loading, gathered = self._loading, self._loading.gathered
        gathered.settle()
        if loading.standing.sources.keys() - self._mine or not self._can_be_alone():
            return None
        kept = gathered.remembered.kept
        if kept is None and len(loading.touched.hosts) == 1:  # its findings look at what it is made of
            return None
        sources = {source.source: Guarded(source_document(source, own), 0, 0) for source, own in self._records(COMPLETE)}
        standing = replace(loading.standing, sources=sources)
        record = standing.run_record
        if record is None:
            return None
        series = [replace(stored, number=number) for number, stored in enumerate(standing.series())]
        if any(stored.step_ns for stored in series):  # what is in memory is added up to the windows of the run
            return None
        return CachedRun(record, standing.source_records, series, gathered.parts(), kept)

    @property
    def _written(self) -> list[str]:
        """Return the indices that hold what the readers have brought."""
        return [self._store.names.all(index) for index in ("intervals", *(["points"] if self._loading.breathed else []))]

    def _can_be_alone(self) -> bool:
        """Return whether all rollups can be made from memory as far as was known when the load began."""
        loading = self._loading
        others = loading.standing.sources.keys() - self._mine
        if not self._from_memory() or not loading.standing.all_complete(others):
            return False
        if self._found:
            return False
        theirs = list(loading.standing.series(without=self._mine))
        shared = {member.series.host for member in theirs} & {key.host for key in loading.touched.windows}
        if not others:
            return True
        return not shared and not self._moves([*theirs, *self._series()]) and self._lacks_in_place()

    def _moves(self, stored: Sequence[StoredSeries]) -> bool:
        """Return whether rollups of others say something else because of this load: `stored` are all series of the run.

        That is the layout of a host or of the cluster, the start of the run, or its default kind.
        """
        mine, loading = {member.series for member in self._series()}, self._loading
        others = [member for member in stored if member.series not in mine]
        if have_moved(layouts_of(others), layouts_of(stored)):
            return True
        begun = loading.began_ns not in (None, loading.standing.start_ns)
        return bool(others) and (begun or default_kind_of(others) != default_kind_of(stored))

    def _from_memory(self) -> bool:
        """Return whether the store holds of the sources just what this load has written of them, and all of that was gathered."""
        loading = self._loading
        refused = any(state.refused for state in loading.states.values())
        whole = loading.gathered.whole and loading.gathered.samples == loading.rolled
        return whole and loading.fresh and not refused and bool(loading.finished) and bool(loading.touched.windows)

    def _alone(self) -> bool:
        """Make the rollups from memory; return whether nobody has touched the run meanwhile, and its sources are complete."""
        store, loading, standing = self._store, self._loading, self._loading.standing
        stored = [*standing.series(without=self._mine), *self._series()]
        missing = store.lacking(self._run, {self._run.run: [*standing.accounts(), *self._accounts()]})
        others = bool(standing.sources.keys() - self._mine)
        superseded = store.delivery.counts["superseded"]
        writer = self._writer(standing, stored, missing)
        OwnRollups(writer, loading.gathered, layouts_of(stored)).write_alone(standing.generation, others=others)
        store.sender.show(store.names.all("rollups"), *self._written)
        writer.check_sent(standing.generation)
        if store.delivery.counts["superseded"] > superseded:  # somebody has written later ones
            return False
        late, run_late = store.records.write(standing, self._records(LOADING), partial(loaded_again, self._run.run))
        if late or run_late:
            return False
        self._complete(standing)
        return True

    def _among_others(self) -> None:
        """Make the rollups where others may be writing to the run, or something was there before."""
        store, loading, run = self._store, self._loading, self._run
        store.sender.show(*self._written)
        finished = loading.finished
        again = [source for source in finished if source.generation > 1]
        store.records.update_sources(self._records(LOADING))
        standing = loading.standing = store.records.standings([run.run])[run.run]
        standing.check_alive(min((source.generation for source in finished), default=EVERY_GENERATION))
        check_not_superseded(store.records, run.run, finished)
        for source in again:
            check_all_there(store.connection, store.names, source, loading.state(source.source))
        sweeper = Sweeper(store)
        for source in again:
            loading.touched.add(sweeper.sweep(source))
        if again or loading.breathed:
            settle_breaths(store, again)
        stored = list(standing.series())
        missing = store.lacking(run, {run.run: standing.accounts()})
        if self._moves(stored) or bool(missing and not self._lacks_in_place()) or self._found:
            loading.touched.add(sweeper.all_windows(run))  # what a source lacks may concern windows that others wrote
        writer = self._writer(standing, stored, missing, lowered=bool(again))
        writer.write(stored)
        for source in again:
            check_all_there(store.connection, store.names, source, loading.state(source.source))
        store.records.changed(run.run, partial(loaded_again, run.run))
        standing = store.records.standings([run.run])[run.run]
        standing.check_alive(min((source.generation for source in finished), default=EVERY_GENERATION))
        if (standing.start_ns, default_kind_of(standing.series())) != (
            writer.run.start_ns,
            writer.kind,
        ):  # because of another load
            self._among_others()
            return
        self._complete(standing)
        loading.standing = store.records.standings([run.run])[run.run]  # another load may have ended at the same moment

    def _complete(self, standing: RunMetadata) -> None:
        """Note the sources complete of which no document was refused."""
        store = self._store
        late, _ = store.records.write(standing, self._records(COMPLETE))
        if late:
            store.records.update_sources(late)
            standing = store.records.standings([self._run.run])[self._run.run]
        self._loading.standing = standing

    def _writer(
        self, standing: RunMetadata, stored: Sequence[StoredSeries], missing: tuple[Lack, ...] | None, *, lowered: bool = False
    ) -> RollupWriter:
        marks, anew = final_by_all(standing.watches), self._loading.anew
        run, touched = replace(self._run, start_ns=standing.start_ns), SharedWindows() if anew else self._loading.touched
        return RollupWriter(self._store, run, touched, default_kind_of(stored), lowered, marks, anew=anew, missing=missing)

    def _records(self, state: str) -> list[tuple[SourceRecord, SourceState]]:
        """Return the records of the sources; one of which documents were refused is never complete."""
        pairs = [(source, self._loading.state(source.source)) for source in self._loading.finished]
        return [(replace(source, state=LOADING if own.refused else state), own) for source, own in pairs]

    def _series(self) -> list[StoredSeries]:
        return [stored for name in sorted(self._mine) for stored in self._loading.state(name).series.values()]

    def _lacks_in_place(self) -> bool:
        """Return whether what the sources lack concerns rollups of their own hosts, and of the cluster at known times, alone.

        These times are noted, so that the cluster's rollups are made anew there.
        """
        entries = [*stored_entries(self._run.run, self._accounts()), *self._changed()[1]]
        hosts, width = {key.host for key in self._loading.touched.windows}, slab_of(self._run.step_ns)
        for entry in entries:
            low, high = entry.span
            if entry.labels.get("host") not in hosts or not 0 <= high - low <= MOST_SLABS * width:
                return False
        spans = [(entry.span[0] // width * width, entry.span[1]) for entry in entries]
        self._loading.touched.also += [np.arange(low, high + 1, width) for low, high in spans]
        return True

    @property
    def _found(self) -> bool:
        """Return whether this load brings what was missing with earlier ones: rollups of others may be complete now."""
        return brings(self._mine, self._loading.standing.accounts()) or bool(self._changed()[0])

    def _changed(self) -> tuple[list[Missing], list[Missing]]:
        """Return what all sources together lacked without this load and lack no more, and what they lack since."""
        others = [account for account in self._loading.standing.accounts() if account[IDENTITY] not in self._mine]
        before, after = (known_together(self._run.run, accounts) for accounts in (others, [*others, *self._accounts()]))
        return [entry for entry in before if entry not in after], [entry for entry in after if entry not in before]

    def _accounts(self) -> list[Mapping[str, Any]]:
        return [identified(source.source, source.account) for source in self._loading.finished]
