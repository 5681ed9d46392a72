"""The store in Elasticsearch, as every store: runs, sources, documents, rollups, answers with the same numbers."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ingest.core.breaths import StoredBreaths
from ingest.core.errors import InputError, StoreError, counted
from ingest.core.intervals import Int, Intervals
from ingest.core.labels import Group, Series
from ingest.core.schema import schema_version
from ingest.query.coverage import Lack
from ingest.query.episodes import Episode, Judgement
from ingest.query.origin import KNOWN_RUNS, Capabilities
from ingest.query.plan import settled
from ingest.query.question import Answer, AnswerKey, Question
from ingest.store import DEAD_LETTERS, DOCUMENTS, GROWTH, Store
from ingest.store.answers import answer_from, facts_from, windows_from
from ingest.store.capabilities import capabilities_of
from ingest.store.coverage import missing_from_runs, since_in
from ingest.store.elastic.bulk import Delivery, Sender
from ingest.store.elastic.client import Connection, parse_address
from ingest.store.elastic.documents import Chunk, interval_chunks
from ingest.store.elastic.findings import (
    breath_chunks,
    breaths_in,
    check_template,
    episodes_of,
    findings_of,
    keep_episodes,
    keep_findings,
    keep_marks,
    marks_of,
)
from ingest.store.elastic.holdings import ElasticHoldings, counting_only
from ingest.store.elastic.load import Finish, Loading
from ingest.store.elastic.rollups import CachedRun, HostTotals, without_bytes
from ingest.store.elastic.runs import (
    CachedRecords,
    Records,
    RunMetadata,
    StillRecords,
    Touch,
    document_of,
    keeping,
    leaving_nothing,
    lowest_generation,
    touch_of,
    writing,
)
from ingest.store.elastic.templates import PERIODIC, Site, site_of
from ingest.store.lifecycle import Coarsened, CoarserBins, Widened
from ingest.store.records import (
    COMPLETE,
    UNKNOWN_ZERO,
    RunRecord,
    SourceRecord,
    Spans,
    StoredRun,
    goes_on,
    record_named,
    selected_records,
)
from ingest.store.verify import Chosen, Verification

if TYPE_CHECKING:
    from ingest.query.story.stored import StoredFinding
    from ingest.store.answers import Catalogue

DEAD_LETTER_FILE = "tailboard-dead-letters.ndjson"


@dataclass(frozen=True, slots=True)
class Packed:
    """Documents of a source as they are sent, and what they touch."""

    chunks: list[Chunk]
    touch: Touch


class ElasticStore(Store):
    """The indices of one prefix on an Elasticsearch server; `write` checks that the server was set up."""

    needs_clock = True
    indexed = True
    most_samples = 1 << 53  # the server adds up in doubles

    def __init__(self, url: str, *, write: bool = False) -> None:
        """Make contact. StoreError says why there is none, or why nothing may be written; UsageError for a URL that cannot be."""
        address = parse_address(url)
        self.url = address.store
        self.connection = Connection(address)
        self.connection.open()
        self.site = site_of(self.connection, address.prefix) if write else Site(address.prefix, version=schema_version())
        self.names = self.site.names
        self.records = Records(self.connection, self.names)
        self.dead_letters = Path(os.environ.get("TAILBOARD_DEAD_LETTERS", DEAD_LETTER_FILE))
        self.delivery = Delivery()
        self._loads: dict[str, Loading] = {}
        self._planned: dict[str, RunMetadata] = {}
        self._ended: dict[str, RunMetadata] = {}

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close it; what is not sent yet is dropped."""
        self.stop_senders()
        self.connection.close()

    def stop_senders(self) -> None:
        """Stop the senders: no thread is about while the next run's reading processes are forked."""
        if "sender" in vars(self):
            self.sender.close()
            del self.sender

    def flush(self) -> None:
        """Wait until all that was handed to the senders is in or refused."""
        if "sender" in vars(self):
            self.sender.flush()

    @cached_property
    def sender(self) -> Sender:
        """Return the senders, started when they are first needed: after the reading processes were forked."""
        return Sender(self.connection, self.delivery, self.dead_letters)

    def _holdings_of(self, records: Records) -> ElasticHoldings:
        return ElasticHoldings(self.connection, self.names, records)

    def _known(self) -> CachedRecords:
        """Return the records for a question: those that are held, or else as they are when it is asked."""
        return self.records if isinstance(self.records, CachedRecords) else CachedRecords(self.connection, self.names)

    @property
    def offers(self) -> Capabilities:
        """Return the capabilities beyond those that every origin has."""
        offers = capabilities_of(self).add(KNOWN_RUNS, self.knowing_runs)
        offers.later(GROWTH, "ingest.store.elastic.live.ElasticLive", self)
        offers.later(DOCUMENTS, "ingest.store.elastic.export.read_back", self)
        return offers.later(DEAD_LETTERS, "ingest.store.elastic.export.replayed", self)

    def runs(self) -> list[RunRecord]:
        """Return the records of all runs, by name."""
        return self.records.runs()

    def sources(self, run: str, only: Collection[str] | None = None) -> list[SourceRecord]:
        """Return the records of a run's sources, by identity; of those that `only` names, where it is given."""
        return self.records.sources(run, only)

    def held(self, runs: Sequence[str]) -> dict[str, StoredRun]:
        """Return what is held of each run, for the plan of a load."""
        standings = self.records.standings(runs)
        self._planned |= standings
        return {run: standing.held for run, standing in standings.items()}

    def begin(self, run: RunRecord, sources: Iterable[SourceRecord], *, anew: bool = False) -> None:
        """Note a run and the sources that are about to be written; they count as loading until `finish_run`."""
        if run.zero == UNKNOWN_ZERO:
            raise StoreError(f"{run.run} has no start time, and Elasticsearch needs real times: give --t0 TIME, or --t0 mtime")
        wanted = list(sources)
        there = self._planned.pop(run.run, None) or self.records.standings([run.run])[run.run]
        known = self._loads.get(run.run)
        fresh = known is None and not anew and not (there.sources.keys() & {source.source for source in wanted})
        began = there.start_ns if there.run_record and not anew else None
        loading = known or Loading(there, HostTotals(), began, anew=anew)
        for source in wanted:
            loading.states.pop(source.source, None)
        before = {record.source: record for record in there.source_records}
        again = [(before[source.source], source) for source in wanted if source.source in before]
        cut_off = any(earlier.state != COMPLETE or not goes_on(earlier, source) for earlier, source in again)
        loading.fresh, loading.anew = fresh, loading.anew or anew or cut_off
        loading.standing = self.records.begin(there, run, wanted, anew=anew)
        self._loads[run.run] = loading

    def first_generation(self, run: str) -> int:
        """Return the generation that a new source of a run begins with: above all that a deleted run of its name had."""
        return max(1, lowest_generation(document_of(self.records.get(run))))

    def packed(self, run: RunRecord, source: SourceRecord, windows: Intervals[Series]) -> Packed:
        """Return whole windows as they are sent; done in the reading processes.

        A server that was set up before documents kept bytes gets none: it would refuse the documents.
        """
        windows = windows if self.site.keeps_bytes else without_bytes(windows)
        return Packed(interval_chunks(windows, run, source, self.names), touch_of(windows))

    def write(self, run: RunRecord, source: SourceRecord, packed: Packed) -> int:
        """Hand documents of a source to the senders; return how many. Refused ones lie in the dead-letter file."""
        documents = sum(chunk.documents for chunk in packed.chunks)
        self._loading(run.run).wrote(source.source, packed.touch, documents)
        for chunk in packed.chunks:
            self.sender.send(chunk)
        return documents

    def gatherer(self, run: RunRecord, processes: int) -> HostTotals:
        """Return what adds up the windows of a run, in each of so many reading processes."""
        gathered = self._loading(run.run).gathered
        gathered.keeps_bytes, gathered.step_ns = self.site.keeps_bytes, run.step_ns
        gathered.share(processes)
        return gathered

    def write_breaths(self, source: SourceRecord, kept: StoredBreaths) -> int:
        """Hand the breaths that are kept of a source to the senders; return how many documents."""
        check_template(self.connection, self.names, self.site.kept)
        self._loading(source.run).breathed = True
        chunks = list(breath_chunks(kept, source, self.names))
        for chunk in chunks:
            self.sender.send(chunk)
        return sum(chunk.documents for chunk in chunks)

    def breaths(self, run: str) -> StoredBreaths:
        """Return the breaths that are kept of a run."""
        _, accounts = self.records.series([run])
        return breaths_in(self.connection, self.names, run, counting_only(since_in(accounts.get(run, ()))))

    def _loading(self, run: str) -> Loading:
        """Return the load of a run; of one that nothing was begun of, what is to be finished."""
        if run not in self._loads:
            self._loads[run] = Loading(self.records.standings([run])[run], HostTotals(), fresh=False)
        return self._loads[run]

    def finish_source(self, source: SourceRecord, spans: Spans) -> None:
        """Note from when to when the series of a source reach; it is complete when `finish_run` has made the rollups."""
        self._loading(source.run).reached(source, spans)

    def needs_rollups(self, run: str) -> bool:
        """Return whether all rollups of a run are to be made anew, as a load of it was cut off or replaced: true once."""
        loading = self._loads.get(run)
        if loading is None or not loading.anew:
            return False
        loading.anew = False
        return True

    def foreseen(self, run: RunRecord) -> CachedRun | None:
        """Return a run as it will be after `finish_run`, asked from memory; None unless this load alone holds all of it."""
        return Finish(self, run, self._loading(run.run)).foreseen()

    def finish_run(self, run: RunRecord) -> None:
        """Sweep older generations, make the rollups of touched windows, and note the sources complete that are whole."""
        loading = self._loading(run.run)
        with leaving_nothing(self, run.run, loading.finished):
            Finish(self, run, loading).finish()
        del self._loads[run.run]
        self._ended[run.run] = loading.standing
        self.stop_senders()

    @contextmanager
    def knowing_runs(self) -> Iterator[None]:
        """Hold what the records of runs say for several questions; whether a run is another now is asked after each."""
        records, self.records = self.records, CachedRecords(self.connection, self.names)
        try:
            yield
        finally:
            self.records = records

    @contextmanager
    def still(self, run: str) -> Iterator[None]:
        """Hold what the records of a run say while questions are asked about this run alone."""
        standing = self._ended.pop(run, None) or self.records.standings([run])[run]
        records, self.records = self.records, StillRecords(self.connection, self.names, standing)
        try:
            yield
        finally:
            self.records = records

    def lacking(self, run: RunRecord, accounts: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[Lack, ...] | None:
        """Return the data that a run lacks by the accounts of its sources, None where rollups there have no field for it."""
        return missing_from_runs([run], accounts) if self.site.says_complete else None

    def delivered(self) -> Mapping[str, int]:
        """Return the final account of what was sent: created, updated, superseded, rejected, retried."""
        counts = self.delivery.as_dict()
        return {**counts, "retried": counts["retried"] + self.connection.retried}

    def refusals(self) -> tuple[int, str]:
        """Return how many documents the server has refused, and a sentence about them."""
        number, reason = self.delivery.counts["rejected"], self.delivery.first_reason
        if not number:
            return 0, ""
        refused = counted(number, "document was", "documents were")
        lie = "lies" if number == 1 else "lie"
        return number, (
            f"{refused} refused by the server and {lie} in {self.dead_letters} (the first: {reason}); "
            f"correct what it names, then run tailboard store replay {self.dead_letters} --store {self.url}"
        )

    def delete_run(self, run: str, *, force: bool = False) -> int:
        """Delete a run with all it holds; return how many documents that were.

        Unless it is to be done by `force`, raises as `check_deletable` does.
        """
        from ingest.store.elastic.runs import delete_run

        deleted = delete_run(self, run, force=force)
        self.stop_senders()
        return deleted

    def coarsen(self, run: str, step_ns: int) -> Coarsened:
        """Add the windows of a run up to a larger step; return what was done. Cut off anywhere, a repeat completes it."""
        from ingest.store.elastic.lifecycle import Coarsening

        record = record_named(run, self.runs())
        with writing(self, run):
            done = Coarsening(self).coarsen(record, step_ns)
        self.stop_senders()
        return done

    def widen(self, run: str, bins: CoarserBins) -> Widened:
        """Add the bins of a run up to wider ones; return what was done. Cut off anywhere, a repeat completes it."""
        from ingest.store.elastic.lifecycle import Widening

        record = record_named(run, self.runs())
        with writing(self, run):
            done = Widening(self).widen(record, bins)
        self.stop_senders()
        return done

    def verify(self, chosen: Chosen, *, mend: bool = False) -> Verification:
        """Return the faults in the runs that `chosen` accepts; with `mend` they are repaired where they can be."""
        from ingest.store.elastic.verify import ElasticVerifier

        if mend:
            for index in PERIODIC:
                self.connection.refresh(self.names.all(index))
        verifier = ElasticVerifier(self, chosen)
        verification = verifier.verify()
        if mend and verification.findings:
            verifier.mend()
            self.stop_senders()
        return verification

    def answer(self, question: Question) -> Answer:
        """Return the merged windows that a question asks for, from rollups where they answer, else from documents.

        It is asked again where a run was loaded anew, coarsened or deleted meanwhile: no answer is of two readings.
        """
        question = settled(self, question)
        known = self._known()
        while True:
            try:
                answer = answer_from(self._holdings_of(known), known.runs(), question)
            except InputError:
                if not known.have_changed(record.run for record in known.runs()):
                    raise
            else:
                if not known.have_changed(answer.runs):
                    return answer
            known.forget()

    def catalogue(self) -> Catalogue:
        """Return the records of all runs, with their series and the accounts of their sources."""
        known = self._known()
        return self._holdings_of(known).catalogue(known.runs())

    def windows(self, question: Question) -> Iterator[Intervals[Group]]:
        """Yield the selected windows at the stored step under the question's groups, in bounded batches."""
        known = self._known()
        yield from windows_from(self._holdings_of(known), known.runs(), question)
        _check_unchanged(known, (record.run for record in selected_records(known.runs(), question.runs, question.where)))

    def offset_windows(
        self, run: str, begin_ns: int | None, end_ns: int | None, wanted: AnswerKey | None = None
    ) -> Iterator[Intervals[Series]]:
        """Yield the offsets of a run's events in [begin, end) under their series: 1 ms bins in windows of 1 s."""
        known = self._known()
        named = [record.run for record in known.runs() if record.run == run]
        yield from self._holdings_of(known).offset_windows(run, begin_ns, end_ns, wanted)
        _check_unchanged(known, named)

    def offset_seconds(self, run: str, begin_ns: int | None, end_ns: int | None) -> Int:
        """Return the starts in ns of the seconds of [begin, end), whole ones, in which a run has any event."""
        known = self._known()
        named = [record.run for record in known.runs() if record.run == run]
        seconds = self._holdings_of(known).offset_seconds(run, begin_ns, end_ns)
        _check_unchanged(known, named)
        return seconds

    def facts(self, answer: Answer) -> list[tuple[str, str]]:
        """Return (name, value) pairs about the runs of an answer."""
        known = self._known()
        chosen = [record for record in known.runs() if record.run in answer.runs]
        return facts_from(self._holdings_of(known).catalogue(chosen))

    def mark_all(self, run: str, marks: Sequence[Mapping[str, Any]]) -> None:
        """Note many marks of a run."""
        with keeping(self, "marks", run):
            keep_marks(self.connection, self.names, run, marks)

    def marks_of(self, runs: Iterable[str]) -> list[Mapping[str, Any]]:
        """Return the marks of runs in time order: run, at_ns, text, and end_ns where there is one."""
        return marks_of(self.connection, self.names, runs)

    def keep_episodes(self, run: str, objective: str, episodes: Sequence[Episode], judgement: Judgement | None = None) -> None:
        """Write all episodes of an objective in a run and the judgement of it, in place of what an earlier check has left."""
        with keeping(self, "episodes", run):
            keep_episodes(self.connection, self.names, run, objective, episodes, judgement)

    def episodes(self, runs: Iterable[str]) -> list[Episode]:
        """Return the episodes of runs in time order."""
        return episodes_of(self.connection, self.names, runs)

    def keep_findings(self, run: str, documents: Sequence[StoredFinding]) -> None:
        """Write all findings of a run, in place of those that an earlier load has left; none where the server has no place."""
        if "findings" in self.site.kept:
            with keeping(self, "findings", run, known=True):
                keep_findings(self.connection, self.names, run, documents)

    def findings_of(self, runs: Iterable[str]) -> list[StoredFinding]:
        """Return the findings that are kept of runs, by run and rank, of whatever state of the run."""
        return findings_of(self.connection, self.names, runs)


def _check_unchanged(known: CachedRecords, runs: Iterable[str]) -> None:
    """Raise StoreError where what was read of runs may be of two readings of them."""
    if known.have_changed(runs):
        raise StoreError("a run was loaded anew or coarsened while it was read: ask again")
