"""Wider bins for a run on a server, in stages, each of which a repeat completes.

1. The run's record says that its bins are being coarsened (`BINS_COARSENING`): loads are refused, and answers come from
   documents, in the wider bins: those that are written already are in no others.
2. Documents are written over, one after another, under the same ids. Each holds all its samples at any moment.
3. The records of the sources say the new layouts, and the rollups are made from the documents in a new generation.
4. The mark of stage 1 goes, and the record says to what the bins were coarsened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ingest.core.bins import Layout
from ingest.core.errors import StoreError
from ingest.core.layout import parse_layout
from ingest.store.elastic.coarsening import Regridding
from ingest.store.elastic.encoding import bins_of, chunked, geometry, writing_line
from ingest.store.elastic.filters import LATENCIES, at_step
from ingest.store.elastic.reading import pages
from ingest.store.elastic.tallies import tallies_of
from ingest.store.records import RunRecord
from ingest.store.wider_bins import BINS, BINS_COARSENING, Widened, WiderBins, check_widened, command_of, lost, of_run


class Widening(Regridding):
    """Widens the bins of runs of one site."""

    def widen(self, record: RunRecord, bins: WiderBins) -> Widened:
        """Widen the bins of a run; return what was done. Raises as `check_widened` does, StoreError for refused documents."""
        pending = record.parameters.get(BINS_COARSENING)
        if pending is not None and pending != bins.told():
            raise StoreError(
                f"the bins of {record.run} are being coarsened, or that was cut off: {command_of(record)} completes it"
            )
        layouts = {entry.layout for entry in self.records.series([record.run])[0]}
        if pending is None:
            check_widened(record, bins)
            if all(bins.of(layout) == layout for layout in layouts):
                return Widened(record.run, 0, 0, 0)
            record = self.claimed(record, BINS_COARSENING, bins.told())
        done = self._write(record, bins)
        stored = self.records.series([record.run])[0]
        wider = {entry.series: [replace(entry, layout=bins.of(entry.layout))] for entry in stored}
        self.records.put_series(record.run, wider)
        self.roll(record)
        self.records.amend(record, step_ns=None, **{BINS_COARSENING: None, BINS: of_run(record).within(bins).told()})
        return done

    def _write(self, record: RunRecord, bins: WiderBins) -> Widened:
        """Write documents in finer bins over; StoreError if the server refuses one, or if samples are not what they were."""
        refused = self.sender.delivery.counts["rejected"]
        before = tallies_of(self.connection, self.names, record.run, record.step_ns)
        wanted: dict[Any, int] = {}
        finer = []
        for cell, count in before.items():
            wider = str(bins.of(parse_layout(cell.layout)))
            finer += [cell.layout] if wider != cell.layout else []
            wanted[cell._replace(layout=wider)] = wanted.get(cell._replace(layout=wider), 0) + count
        counts = _Counts()
        for chunk in chunked(self._lines(record, sorted(set(finer)), bins, counts)):
            self.sender.send(chunk)
        self.sender.flush()
        if self.sender.delivery.counts["rejected"] > refused:
            raise StoreError(f"documents were refused ({self.sender.delivery.first_reason}): {command_of(record)} completes it")
        after = tallies_of(self.connection, self.names, record.run, record.step_ns)
        if after != wanted:
            raise StoreError(lost(record, sum(before.values()), sum(after.values())))
        return Widened(record.run, counts.documents, counts.before, counts.after)

    def _lines(self, record: RunRecord, finer: Sequence[str], bins: WiderBins, counts: _Counts) -> Iterator[bytes]:
        """Yield the documents of finer layouts in wider bins, as lines of a bulk request; `counts` are those of their bins."""
        if not finer:
            return
        query = [{"term": {"run.id": record.run}}, at_step(record.step_ns), LATENCIES, {"terms": {"latency.layout": list(finer)}}]
        for page in pages(self.connection, self.names.all("intervals"), {"bool": {"filter": query}}, source=True):
            for hit in page:
                document = hit["_source"]
                place = "in_flight" if "in_flight" in document else "latency"
                layout = parse_layout(document["latency"]["layout"])
                wider = bins.of(layout)
                histogram = _moved(document[place]["histogram"], layout, wider)
                counts.documents += 1
                counts.before += len(document[place]["histogram"]["values"])
                counts.after += len(histogram["values"])
                moved = {**document, "latency": {**document["latency"], **geometry(wider)}}
                moved[place] = {**moved[place], "histogram": histogram}
                yield writing_line(hit["_index"], hit["_id"], moved)


@dataclass(slots=True)
class _Counts:
    """How many documents were written over, and how many bins they held before and hold now."""

    documents: int = 0
    before: int = 0
    after: int = 0


def _moved(histogram: Mapping[str, Any], layout: Layout, wider: Layout) -> dict[str, list[int]]:
    """Return a stored histogram in wider bins."""
    bins = layout.moved_to(wider)[bins_of(layout, np.array(histogram["values"], np.int64))]
    own, first = np.unique(bins, return_index=True)
    counts = np.add.reduceat(np.array(histogram["counts"], np.int64), first) if len(own) else own
    return {"values": wider.keys[own].tolist(), "counts": counts.tolist()}
