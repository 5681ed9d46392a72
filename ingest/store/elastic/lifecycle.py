"""Coarsening and coarser bins on a server: in stages, each of which a repeat completes.

Coarsening a run on a server: nothing is changed at once there, so it goes in stages, each of which a repeat completes.

1. The run's record says that it is being coarsened (`COARSENING`): loads are refused, and answers come from documents of the
   step that the record names, which is the old one.
2. Documents at the new step are created beside the old ones. Nobody reads them yet. Their ids bear the step: a repeat finds
   those that are there, and one that comes late, when old ones are being deleted, cannot overwrite them. They go on only if
   they hold as many samples of each series and layout as the old ones.
3. The record takes the new step. From here on answers come from the new documents.
4. Documents and rollups of other steps are deleted, then the rollups are made from the new documents in a new generation.
   Dashboards have a gap in between, and never count twice.
5. The mark of stage 1 goes: the run is complete again.

Wider bins for a run on a server, in stages, each of which a repeat completes.

1. The run's record says that its bins are being coarsened (`BINS_COARSENING`): loads are refused, and answers come from
   documents, in the wider bins: those that are written already are in no others.
2. Documents are written over, one after another, under the same ids. Each holds all its samples at any moment.
3. The records of the sources say the new layouts, and the rollups are made from the documents in a new generation.
4. The mark of stage 1 goes, and the record says to what the bins were coarsened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ingest.core.errors import StoreError
from ingest.core.grid import coarsened
from ingest.core.intervals import Intervals, Segments, Sum, distinct, merged
from ingest.core.labels import Series
from ingest.core.layout import Layout, parse_layout
from ingest.store.elastic.aggregations import LATENCIES, Cell, Tallies, at_steps, totals_of
from ingest.store.elastic.documents import (
    READ,
    Documents,
    as_stored,
    bins_of,
    chunked,
    columns,
    documents_of,
    geometry,
    hits,
    interval_chunks,
    starts_of,
    windows_in,
    writing_line,
)
from ingest.store.elastic.rollups import OLDEST_FIRST, RollupWriter
from ingest.store.elastic.runs import SharedWindows, Sweeper
from ingest.store.lifecycle import (
    BINS,
    BINS_COARSENING,
    COARSENED,
    COARSENING,
    Coarsened,
    CoarserBins,
    Widened,
    check_coarser,
    check_widened,
    coarsening_lost,
    coarser_bins_lost,
    command_of,
    of_run,
    unfinished,
)
from ingest.store.records import COMPLETE, RunRecord, SourceRecord, StoredSeries
from ingest.store.rollups import default_kind_of

if TYPE_CHECKING:
    from ingest.store.elastic.store import ElasticStore


MOST_ENTRIES = 1_000_000


class Regridding:
    """What coarsening windows and coarsening bins have in common: loads are kept away, and in the end rollups are made again."""

    def __init__(self, store: ElasticStore) -> None:
        self.connection, self.names, self.sender, self.records = store.connection, store.names, store.sender, store.records
        self.store = store

    def claimed(self, record: RunRecord, mark: str, to: Any) -> RunRecord:
        """Return the record with the mark of stage 1, which keeps loads away; StoreError where one is under way."""
        claimed = self.records.amend(record, **{mark: to})
        if any(source.state != COMPLETE for source in self.records.sources(record.run)):
            self.records.amend(claimed, **{mark: None})
            raise StoreError(f"{record.run} is being loaded: coarsen it when it is complete")
        return claimed

    def roll(self, record: RunRecord) -> None:
        """Make all rollups of a run anew in a new generation."""
        stored, accounts = self.records.series([record.run])
        missing = self.store.lacking(record, accounts)
        RollupWriter(self.store, record, SharedWindows(), default_kind_of(stored), anew=True, missing=missing).write(stored)


class Coarsening(Regridding):
    """Coarsens runs of one site."""

    def coarsen(self, record: RunRecord, step_ns: int) -> Coarsened:
        """Coarsen a run; return what was done. UsageError and StoreError as `check_coarser`, or for refused documents."""
        pending = record.parameters.get(COARSENING)
        if pending is None and record.step_ns == step_ns:
            return Coarsened(record.run, step_ns, step_ns, 0, 0)
        if pending is None:
            check_coarser(record, step_ns)
            record = self.claimed(record, COARSENING, step_ns)
        elif pending != step_ns:
            raise StoreError(unfinished(record))
        from_ns = int(record.parameters.get(COARSENED, record.step_ns))
        after = 0
        if record.step_ns != step_ns:
            from_ns = record.step_ns
            after = self._write(record, step_ns)
            first = record.parameters.get(COARSENED, record.step_ns)
            record = self.records.amend(record, step_ns=step_ns, **{COARSENED: int(first)})
        before = Sweeper(self.store).sweep_steps(record)
        self.roll(record)
        self.records.amend(record, **{COARSENING: None})
        return Coarsened(record.run, from_ns, step_ns, before, after)

    def _write(self, record: RunRecord, step_ns: int) -> int:
        """Write the documents at the new step; return how many.

        StoreError if the server refuses one, or if they do not hold as much of each series as those at the old step.
        """
        sources = {source.source: source for source in self.records.sources(record.run)}
        target = replace(record, step_ns=step_ns, parameters={**record.parameters, COARSENED: record.step_ns})
        stored = self.records.series([record.run])[0]
        refused = self.sender.delivery.counts["rejected"]
        before = totals_of(self.connection, self.names, record.run, at_steps(record, stored))
        moves = self._one_layout_each(record, before)
        written = 0
        for held in self._slabs(record, stored, step_ns, moves):
            for source, total in held.items():
                known = sources.get(source) or SourceRecord(record.run, source, "", 0, "")
                for windows in total.parts():
                    for chunk in interval_chunks(windows, target, known, self.names):
                        # No document that is there under the same id is overwritten.
                        written += self.sender.put(
                            b'{"create"' + action.removeprefix(b'{"index"') + b"\n" + document + b"\n"
                            for action, document in documents_of(chunk)
                        )
        self.sender.flush()
        if self.sender.delivery.counts["rejected"] > refused:
            raise StoreError(f"documents were refused ({self.sender.delivery.first_reason}): {unfinished(record)}")
        after = totals_of(self.connection, self.names, record.run, at_steps(target))
        if after != {Cell(moves[cell], cell.layout): count for cell, count in before.items()}:
            raise StoreError(coarsening_lost(record, step_ns, sum(before.values()), sum(after.values())))
        return written

    def _one_layout_each(self, record: RunRecord, there: Tallies) -> dict[Cell, Series]:
        """Return under which series the documents of each series and layout go on: of a series in two, the other is a segment.

        Earlier versions have written such series. The records of their sources are corrected.
        """
        stored = {entry.series: entry for entry in self.records.series([record.run])[0]}
        own = {series: str(entry.layout) for series, entry in stored.items()}
        # Own layouts first: a further segment takes no number that another series has.
        ranks = {cell: (cell.layout != own.get(cell.series), cell.layout) for cell in there}
        best: dict[Series, tuple[bool, str]] = {}
        for cell, rank in ranks.items():
            best[cell.series] = min(rank, best.get(cell.series, rank))
        order = sorted(there, key=lambda cell: (ranks[cell] != best[cell.series], cell.series, ranks[cell]))
        segments = Segments()
        moves = {cell: segments.given(cell.series, parse_layout(cell.layout)) for cell in order}
        now: dict[Series, list[StoredSeries]] = {}
        for cell in order:
            series, bins = cell.series, parse_layout(cell.layout)
            kept = stored.get(series, StoredSeries(0, series, bins, exact=False))
            now.setdefault(series, []).append(replace(kept, series=moves[cell], layout=bins))
        wrong = {series: pieces for series, pieces in now.items() if series in stored and pieces != [stored[series]]}
        if wrong:
            self.records.put_series(record.run, wrong)
        return moves

    def _slabs(
        self, record: RunRecord, stored: Sequence[StoredSeries], step_ns: int, moves: Mapping[Cell, Series]
    ) -> Iterator[dict[str, Sum[Series]]]:
        """Yield the windows at the new step, added up by source, one after another in time."""
        query = [{"term": {"run.id": record.run}}, at_steps(record, stored), LATENCIES]
        fields = [*READ, "source.id", "segment"]
        held: dict[str, Sum[Series]] = {}
        slab = None
        for documents in columns(self.connection, self.names.all("intervals"), {"bool": {"filter": query}}, fields, OLDEST_FIRST):
            slabs = starts_of(documents) // step_ns
            for number in distinct(slabs).tolist():
                if held and number != slab:
                    yield held
                    held = {}
                slab = number
                for source, part in _by_source(documents.take(np.flatnonzero(slabs == number))):
                    total = held.setdefault(source, Sum(MOST_ENTRIES))
                    for windows in _in_segments(part, record.step_ns, moves):
                        total.add(merged([coarsened(windows, step_ns)]))
        if held:
            yield held


def _by_source(documents: Documents) -> Iterator[tuple[str, Documents]]:
    """Yield the documents of each source."""
    sources: dict[str, int] = {}
    codes = documents.codes(lambda shape: sources.setdefault(shape["source"]["id"], len(sources)))
    for source, code in sources.items():
        yield source, documents.take(np.flatnonzero(codes == code))


def _in_segments(documents: Documents, step_ns: int, moves: Mapping[Cell, Series]) -> Iterator[Intervals[Series]]:
    """Yield the windows of documents under the series that they go on under."""
    segments = documents.known_column("segment")
    for segment in distinct(segments).tolist():
        mine = documents.take(np.flatnonzero(segments == segment))
        for windows in windows_in(mine, starts_of(mine) + step_ns, as_stored):
            layout = str(windows.layout)
            table = tuple(moves[Cell(series.replaced(segment=segment), layout)] for series in windows.table)
            yield windows.keyed(table, windows.series)


class Widening(Regridding):
    """Widens the bins of runs of one site."""

    def widen(self, record: RunRecord, bins: CoarserBins) -> Widened:
        """Widen the bins of a run; return what was done. Raises as `check_widened` does, StoreError for refused documents."""
        pending = record.parameters.get(BINS_COARSENING)
        if pending is not None and pending != bins.to_dict():
            raise StoreError(
                f"the bins of {record.run} are being coarsened, or that was cut off: {command_of(record)} completes it"
            )
        layouts = {entry.layout for entry in self.records.series([record.run])[0]}
        if pending is None:
            check_widened(record, bins)
            if all(bins.of(layout) == layout for layout in layouts):
                return Widened(record.run, 0, 0, 0)
            record = self.claimed(record, BINS_COARSENING, bins.to_dict())
        done = self._write(record, bins)
        stored = self.records.series([record.run])[0]
        wider = {entry.series: [replace(entry, layout=bins.of(entry.layout))] for entry in stored}
        self.records.put_series(record.run, wider)
        self.roll(record)
        self.records.amend(record, step_ns=None, **{BINS_COARSENING: None, BINS: of_run(record).within(bins).to_dict()})
        return done

    def _write(self, record: RunRecord, bins: CoarserBins) -> Widened:
        """Write documents in finer bins over; StoreError if the server refuses one, or if samples are not what they were."""
        refused = self.sender.delivery.counts["rejected"]
        at = at_steps(record, self.records.series([record.run])[0])
        before = totals_of(self.connection, self.names, record.run, at)
        wanted: dict[Any, int] = {}
        finer = []
        for cell, count in before.items():
            wider = str(bins.of(parse_layout(cell.layout)))
            finer += [cell.layout] if wider != cell.layout else []
            wanted[cell._replace(layout=wider)] = wanted.get(cell._replace(layout=wider), 0) + count
        counts: Counter[str] = Counter()
        for chunk in chunked(self._lines(record, at, sorted(set(finer)), bins, counts)):
            self.sender.send(chunk)
        self.sender.flush()
        if self.sender.delivery.counts["rejected"] > refused:
            raise StoreError(f"documents were refused ({self.sender.delivery.first_reason}): {command_of(record)} completes it")
        after = totals_of(self.connection, self.names, record.run, at)
        if after != wanted:
            raise StoreError(coarser_bins_lost(record, sum(before.values()), sum(after.values())))
        return Widened(record.run, counts["documents"], counts["before"], counts["after"])

    def _lines(
        self, record: RunRecord, at: Mapping[str, Any], finer: Sequence[str], bins: CoarserBins, counts: Counter[str]
    ) -> Iterator[bytes]:
        """Yield the documents of finer layouts in wider bins, as lines of a bulk request; count them and their bins."""
        if not finer:
            return
        query = [{"term": {"run.id": record.run}}, at, LATENCIES, {"terms": {"latency.layout": list(finer)}}]
        for hit in hits(self.connection, self.names.all("intervals"), {"bool": {"filter": query}}, source=True):
            document = hit["_source"]
            place = "in_flight" if "in_flight" in document else "latency"
            layout = parse_layout(document["latency"]["layout"])
            wider = bins.of(layout)
            histogram = _moved(document[place]["histogram"], layout, wider)
            counts["documents"] += 1
            counts["before"] += len(document[place]["histogram"]["values"])
            counts["after"] += len(histogram["values"])
            moved = {**document, "latency": {**document["latency"], **geometry(wider)}}
            moved[place] = {**moved[place], "histogram": histogram}
            yield writing_line(hit["_index"], hit["_id"], moved)


def _moved(histogram: Mapping[str, Any], layout: Layout, wider: Layout) -> dict[str, list[int]]:
    """Return a stored histogram in wider bins."""
    bins = layout.moved_to(wider)[bins_of(layout, np.array(histogram["values"], np.int64))]
    own, first = np.unique(bins, return_index=True)
    counts = np.add.reduceat(np.array(histogram["counts"], np.int64), first) if len(own) else own
    return {"values": wider.keys[own].tolist(), "counts": counts.tolist()}
