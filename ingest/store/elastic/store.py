"""The store in Elasticsearch, as every store: runs, sources, documents, rollups, answers with the same numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ingest.errors import StoreError
from ingest.intervals import Intervals
from ingest.layout import LogLinear, common_layout, parse_layout
from ingest.query.question import Answer, Question
from ingest.query.table import Table
from ingest.ranks import Percentile
from ingest.series import Group, Series
from ingest.store.answers import answer_from, facts_from, windows_from
from ingest.store.elastic.approximate import approximated
from ingest.store.elastic.bulk import Delivery, Sender, owner_of
from ingest.store.elastic.connection import Connection, parse_address
from ingest.store.elastic.encoding import MS, Chunk, chunked, deletion, interval_chunks
from ingest.store.elastic.holdings import ElasticHoldings
from ingest.store.elastic.names import Names
from ingest.store.elastic.reading import pages
from ingest.store.elastic.records import Records, SourceState
from ingest.store.elastic.rollups import RollupWriter
from ingest.store.elastic.sweeping import Sweeper
from ingest.store.elastic.templates import site_of
from ingest.store.elastic.touched import Touch, Touched, touch_of
from ingest.store.records import COMPLETE, LOADING, UNKNOWN_ZERO, RunRecord, SourceRecord, Spans, StoredSeries, rollup_steps
from ingest.store.rollups import cluster_group, host_group

DEAD_LETTERS = "tailboard-dead-letters.ndjson"


@dataclass(frozen=True, slots=True)
class Packed:
    """Documents of a source as they are sent, and what they touch."""

    chunks: list[Chunk]
    touch: Touch


class ElasticStore:
    """The indices of one prefix on an Elasticsearch server; `write` checks that the server was set up."""

    def __init__(self, url: str, *, write: bool = False) -> None:
        """Make contact. StoreError says why there is none, or why nothing may be written; UsageError for a URL that cannot be."""
        address = parse_address(url)
        self.url = address.store
        self.connection = Connection(address)
        self.connection.open()
        self.names = Names(address.prefix)
        if write:
            self.names = site_of(self.connection, address.prefix).names
        self.records = Records(self.connection, self.names)
        self.dead_letters = Path(os.environ.get("TAILBOARD_DEAD_LETTERS", DEAD_LETTERS))
        self.delivery = Delivery()
        self._sender: Sender | None = None
        self._touched: dict[str, Touched] = {}
        self._states: dict[tuple[str, str], SourceState] = {}
        self._finished: dict[str, list[SourceRecord]] = {}
        self._anew: set[str] = set()

    def __enter__(self) -> Self:
        """Return the open store."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close it; what is not sent yet is dropped."""
        self._stop()
        self.connection.close()

    def _stop(self) -> None:
        """Stop the senders: no thread is about while the next run's reading processes are forked."""
        if self._sender is not None:
            self._sender.close()
        self._sender = None

    @property
    def sender(self) -> Sender:
        """Return the senders, started when they are first needed: after the reading processes were forked."""
        if self._sender is None:
            self._sender = Sender(self.connection, self.delivery, self.dead_letters)
        return self._sender

    @property
    def _holdings(self) -> ElasticHoldings:
        return ElasticHoldings(self.connection, self.names, self.records)

    def runs(self) -> list[RunRecord]:
        """Return the records of all runs, by name."""
        return self.records.runs()

    def sources(self, run: str) -> list[SourceRecord]:
        """Return what was loaded into a run, by identity."""
        return self.records.sources(run)

    def begin(self, run: RunRecord, sources: Iterable[SourceRecord], *, anew: bool = False) -> None:
        """Note a run and the sources that are about to be written; they count as loading until `finish_run`."""
        if run.zero == UNKNOWN_ZERO:
            raise StoreError(f"{run.run} has no time zero: Elasticsearch needs real times; give --t0 TIME, or --t0 mtime")
        self._anew |= {run.run} if anew else set()
        self.records.begin(run, anew=anew)
        self.records.put_sources((replace(source, state=LOADING), SourceState()) for source in sources)

    def packed(self, run: RunRecord, source: SourceRecord, windows: Intervals) -> Packed:
        """Return whole windows as they are sent; done in the reading processes."""
        return Packed(interval_chunks(windows, run, source, self.names), touch_of(windows))

    def write(self, run: RunRecord, source: SourceRecord, packed: Packed) -> int:
        """Hand documents of a source to the senders; return how many. Refused ones lie in the dead-letter file."""
        self._touched.setdefault(run.run, Touched()).add(packed.touch.windows)
        state = self._states.setdefault((source.run, source.source), SourceState())
        for series in packed.touch.series:
            exact = packed.touch.exact or (series in state.series and state.series[series].exact)
            state.series[series] = StoredSeries(0, series, parse_layout(packed.touch.layout), exact)
        for chunk in packed.chunks:
            self.sender.send(owner_of(source.run, source.source), chunk)
        return sum(chunk.documents for chunk in packed.chunks)

    def finish_source(self, source: SourceRecord, spans: Spans) -> None:
        """Note from when to when the series of a source reach; it is complete when `finish_run` has made the rollups."""
        state = self._states.setdefault((source.run, source.source), SourceState())
        for series, (first, last) in spans.items():
            if series in state.series:
                state.series[series] = replace(state.series[series], first_ns=first, last_ns=last)
        self._finished.setdefault(source.run, []).append(source)

    def finish_run(self, run: RunRecord) -> None:
        """Sweep older generations, make the rollups of what was touched, and note the sources complete that are whole."""
        finished = self._finished.pop(run.run, [])
        self.sender.flush()
        for source in finished:
            state = self._states[source.run, source.source]
            state.refused = self.delivery.refused[owner_of(source.run, source.source)]
        self._put(finished, LOADING)
        touched = self._touched.pop(run.run, Touched())
        again = [source for source in finished if source.generation > 1]
        if again:
            self.connection.call("POST", f"/{self.names.all('intervals')}/_refresh")
        sweeper = Sweeper(self.connection, self.names, self.sender)
        for source in again:
            touched.add(sweeper.sweep(source))
        stored, _ = self.records.series([run.run])
        mine = {series for source in finished for series in self._states[source.run, source.source].series}
        if _layouts_moved(stored, mine):
            touched.add(sweeper.all_windows(run))
        lowered = bool(again) or run.run in self._anew
        writer = RollupWriter(self.connection, self.names, self.sender, self.records, run, touched, lowered)
        writer.write(stored)
        if lowered:
            sweeper.sweep_rollups(run, [step // MS for step in rollup_steps(run.step_ns)], stored)
        self._put(finished, COMPLETE)
        self.records.note_loaded(run.run)
        self._stop()

    def _put(self, sources: Sequence[SourceRecord], state: str) -> None:
        """Write the records of sources; one of which documents were refused is never complete."""
        told = [(source, self._states[source.run, source.source]) for source in sources]
        self.records.put_sources((replace(source, state=LOADING if own.refused else state), own) for source, own in told)

    def delivered(self) -> Mapping[str, int]:
        """Return the final account of what was sent: created, updated, superseded, rejected, retried."""
        counts = self.delivery.as_dict()
        return {**counts, "retried": counts["retried"] + self.connection.retried}

    def refusals(self) -> tuple[int, str]:
        """Return how many documents the server has refused, and a sentence about them."""
        number, reason = self.delivery.counts["rejected"], self.delivery.first_reason
        if not number:
            return 0, ""
        return number, (
            f"{number} documents were refused by the server and lie in {self.dead_letters} (the first: {reason}); "
            f"mend what it names, then tailboard replay {self.dead_letters} --store {self.url}"
        )

    def delete_run(self, run: str) -> int:
        """Delete a run with all it holds; return how many documents that were."""
        query = {"term": {"run.id": run}}
        deleted = 0
        everywhere = (self.names.all("intervals"), self.names.all("rollups"), self.names.one("marks"), self.names.one("runs"))
        for index in everywhere:
            self.connection.call("POST", f"/{index}/_refresh", ignore_unavailable=True)
            found = pages(self.connection, index, query, source=False)
            for chunk in chunked(deletion(hit["_index"], hit["_id"]) for page in found for hit in page):
                self.sender.send(run, chunk)
                deleted += chunk.documents if index == everywhere[0] else 0
            self.sender.flush()
            self.connection.call("POST", f"/{index}/_refresh", ignore_unavailable=True)
        return deleted

    def answer(self, question: Question) -> Answer:
        """Return the merged windows that a question asks for, from rollups where they answer, else from documents."""
        return answer_from(self._holdings, self.runs(), question)

    def approximate(self, question: Question, wanted: Sequence[Percentile]) -> tuple[Table, Answer]:
        """Return a table of percentiles as the server estimates them (hdr, 3 digits), and the facts about it."""
        return approximated(self._holdings, self.runs(), question, wanted)

    def windows(self, question: Question) -> Iterator[Intervals]:
        """Yield the selected windows at the stored step under the question's groups, in bounded batches."""
        yield from windows_from(self._holdings, self.runs(), question)

    def offset_windows(self, run: str, begin_ns: int | None, end_ns: int | None) -> Iterator[Intervals]:
        """Yield the offsets of a run's events in [begin, end) under their series: 1 ms bins in windows of 1 s."""
        yield from self._holdings.offset_windows(run, begin_ns, end_ns)

    def facts(self, answer: Answer) -> list[tuple[str, str]]:
        """Return (name, value) pairs about the runs of an answer."""
        chosen = [record for record in self.runs() if record.run in answer.runs]
        return facts_from(self._holdings.catalogue(chosen))

    def mark(self, run: str, at_ns: int, text: str) -> None:
        """Note what happened at a time of a run; the same mark twice is one."""
        self.records.mark(run, at_ns, text)

    def marks(self, answer: Answer) -> list[Mapping[str, Any]]:
        """Return the marks of the runs of an answer in time order: run, at_ns, text."""
        return self.marks_of(answer.runs)

    def marks_of(self, runs: Iterable[str]) -> list[Mapping[str, Any]]:
        """Return the marks of runs in time order: run, at_ns, text."""
        return self.records.marks(runs)


def _layouts_moved(stored: Sequence[StoredSeries], mine: set[Series]) -> bool:
    """Return whether the layout of a host or of the cluster is another because of the series that were written now."""
    before: dict[Group, set[LogLinear]] = {}
    after: dict[Group, set[LogLinear]] = {}
    for one in stored:
        for group in (host_group(one.series), cluster_group(one.series)):
            after.setdefault(group, set()).add(one.layout)
            if one.series not in mine:
                before.setdefault(group, set()).add(one.layout)
    return any(common_layout(layouts) != common_layout(after[group]) for group, layouts in before.items())
