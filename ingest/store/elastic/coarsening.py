"""Coarsening a run on a server: nothing is changed at once there, so it goes in stages, each of which a repeat completes.

1. The run's record says that it is being coarsened (`COARSENING`): loads are refused, and answers come from documents of the
   step that the record names, which is the old one.
2. Documents at the new step are created beside the old ones. Nobody reads them yet. Their ids bear the step: a repeat finds
   those that are there, and one that comes late, when old ones are being deleted, cannot overwrite them.
3. The record takes the new step. From here on answers come from the new documents.
4. Documents and rollups of other steps are deleted, then the rollups are made from the new documents in a new generation.
   Dashboards have a gap in between, and never count twice.
5. The mark of stage 1 goes: the run is complete again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ingest.errors import StoreError
from ingest.grid import coarsened
from ingest.intervals import Sum, merged
from ingest.query.missing import Lack
from ingest.store.coarsening import COARSENED, COARSENING, Coarsened, check_coarser, unfinished
from ingest.store.elastic.bulk import Sender
from ingest.store.elastic.connection import Connection
from ingest.store.elastic.encoding import MS, READ, Chunk, documents_of, interval_chunks, windows_in
from ingest.store.elastic.filters import LATENCIES, at_step
from ingest.store.elastic.names import Names
from ingest.store.elastic.reading import pages
from ingest.store.elastic.records import Records
from ingest.store.elastic.rollups import OLDEST_FIRST, RollupWriter
from ingest.store.elastic.sweeping import Sweeper
from ingest.store.elastic.touched import Touched
from ingest.store.records import COMPLETE, RunRecord, SourceRecord, rollup_steps

MOST_ENTRIES = 1_000_000

Hits = Sequence[Mapping[str, Any]]
Part = tuple[str, int]
Lacking = Callable[[RunRecord, Mapping[str, Sequence[Mapping[str, Any]]]], tuple[Lack, ...] | None]


@dataclass(frozen=True, slots=True)
class Coarsening:
    """Coarsens runs of one site."""

    connection: Connection
    names: Names
    sender: Sender
    records: Records
    lacking: Lacking

    def coarsen(self, record: RunRecord, step_ns: int) -> Coarsened:
        """Return what was made of a run; UsageError and StoreError as `check_coarser`, or where the server refuses documents."""
        pending = record.parameters.get(COARSENING)
        if pending is None and record.step_ns == step_ns:
            return Coarsened(record.run, step_ns, step_ns, 0, 0)
        if pending is None:
            check_coarser(record, step_ns)
            record = self._claimed(record, step_ns)
        elif pending != step_ns:
            raise StoreError(unfinished(record))
        from_ns = int(record.parameters.get(COARSENED, record.step_ns))
        after = 0
        if record.step_ns != step_ns:
            from_ns = record.step_ns
            after = self._write(record, step_ns)
            first = record.parameters.get(COARSENED, record.step_ns)
            record = self.records.amend(record, step_ns=step_ns, **{COARSENED: int(first)})
        sweeper = Sweeper(self.connection, self.names, self.sender)
        before = sweeper.sweep_steps(record)
        stored, accounts = self.records.series([record.run])
        sweeper.sweep_rollups(record, [step // MS for step in rollup_steps(step_ns)], stored)
        touched = Touched()
        touched.add(sweeper.stored_windows(record))
        parts = (self.connection, self.names, self.sender, self.records)
        RollupWriter(*parts, record, touched, lowered=True, missing=self.lacking(record, accounts)).write(stored)
        self.records.amend(record, **{COARSENING: None})
        return Coarsened(record.run, from_ns, step_ns, before, after)

    def _claimed(self, record: RunRecord, step_ns: int) -> RunRecord:
        """Return the record with the mark of a coarsening, which keeps loads away; StoreError where one is under way."""
        claimed = self.records.amend(record, **{COARSENING: step_ns})
        if any(source.state != COMPLETE for source in self.records.sources(record.run)):
            self.records.amend(claimed, **{COARSENING: None})
            raise StoreError(f"{record.run} is being loaded: coarsen it when it is complete")
        return claimed

    def _write(self, record: RunRecord, step_ns: int) -> int:
        """Write the documents at the new step; return how many. StoreError if the server refuses one."""
        sources = {source.source: source for source in self.records.sources(record.run)}
        target = replace(record, step_ns=step_ns)
        refused = self.sender.delivery.counts["rejected"]
        self._refresh()
        written = 0
        for held in self._slabs(record, step_ns):
            for (source, _), total in held.items():
                known = sources.get(source) or SourceRecord(record.run, source, "", 0, "")
                for windows in total.parts():
                    for chunk in interval_chunks(windows, target, known, self.names):
                        self.sender.send(record.run, _creating(chunk))
                        written += chunk.documents
        self.sender.flush()
        if self.sender.delivery.counts["rejected"] > refused:
            raise StoreError(f"documents were refused ({self.sender.delivery.first_reason}): {unfinished(record)}")
        self._refresh()
        return written

    def _slabs(self, record: RunRecord, step_ns: int) -> Iterator[dict[Part, Sum]]:
        """Yield the windows at the new step, added up by source and segment, one after another in time."""
        query = [{"term": {"run.id": record.run}}, at_step(record.step_ns), LATENCIES]
        fields = [*READ, "source.id", "segment"]
        held: dict[Part, Sum] = {}
        slab = None
        for page in pages(self.connection, self.names.all("intervals"), {"bool": {"filter": query}}, fields, OLDEST_FIRST):
            by_slab: dict[int, dict[Part, list[Mapping[str, Any]]]] = {}
            for hit in page:
                one = hit["_source"]
                place = by_slab.setdefault(one["@timestamp"] * MS // step_ns, {})
                place.setdefault((one["source"]["id"], int(one["segment"])), []).append(one)
            for number, parts in by_slab.items():  # in time order, as the page is
                if held and number != slab:
                    yield held
                    held = {}
                slab = number
                for part, documents in parts.items():
                    self._add(held.setdefault(part, Sum(MOST_ENTRIES)), documents, part[1], (record.step_ns, step_ns))
        if held:
            yield held

    @staticmethod
    def _add(total: Sum, documents: Hits, segment: int, steps: tuple[int, int]) -> None:
        from_ns, to_ns = steps
        for windows in windows_in(
            documents, lambda one: int(one["@timestamp"]) * MS + from_ns, lambda series: series.replaced(segment=segment)
        ):
            total.add(merged([coarsened(windows, to_ns)]))

    def _refresh(self) -> None:
        self.connection.call("POST", f"/{self.names.all('intervals')}/_refresh", ignore_unavailable=True)


def _creating(chunk: Chunk) -> Chunk:
    """Return a chunk that leaves alone what is there under the same ids."""
    lines = [
        b'{"create"' + action.removeprefix(b'{"index"') + b"\n" + document + b"\n" for action, document in documents_of(chunk)
    ]
    return Chunk(b"".join(lines), len(lines))
