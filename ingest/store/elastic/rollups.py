"""Rollups: documents -> merged histograms by host, then by cluster, for the windows that a load has touched.

Several loaders may write rollups of one run at once. Each stage refreshes, reads the run's generation, reads back what it
merges, and writes with version generation * 2^48 + count (`external_gte`): while samples are only added, whoever refreshed
last has seen most and wins. A loader that takes something away (a source read again, a replaced run) raises the generation
after it has refreshed: from then on everybody reads what is left, and whatever was merged before loses.

Hosts are merged from documents; the cluster, and the whole run, from the rollups of hosts. A cell that has lost its last
sample is overwritten by one without any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import orjson

from ingest.core.csr import distinct
from ingest.core.errors import StoreError
from ingest.core.grid import SECOND, coarsened
from ingest.core.intervals import Int, Intervals, Key, Sum, merged
from ingest.core.layout import Layout
from ingest.core.series import Series
from ingest.core.timing import format_duration
from ingest.query.missing import Lack
from ingest.store.elastic.bulk import Sender
from ingest.store.elastic.connection import Connection
from ingest.store.elastic.encoding import MS, READ, as_stored, deletion, joined_chunks, starts_of, windows_in
from ingest.store.elastic.filters import HOLDS_SAMPLES, LATENCIES, Filters, any_of, at_step, one_of, rollups_of, slab_filter
from ingest.store.elastic.gathered import FOREVER
from ingest.store.elastic.names import Names, digest, window_ids
from ingest.store.elastic.reading import columns, deletions, edges, pages, search
from ingest.store.elastic.records import Records
from ingest.store.elastic.rollup_documents import VERSION_BITS, RollupDocuments, action
from ingest.store.elastic.touched import Touched
from ingest.store.live import ALL_FINAL, Marks
from ingest.store.records import CLUSTER, HOST, WHOLE_RUN, RunRecord, StoredSeries, rollup_steps
from ingest.store.rollups import RollupKey, cluster_group, host_group, layouts_of, merged_in, samples_of, without_time

SLAB_NS = 60 * SECOND
OLDEST_FIRST = ({"@timestamp": "asc"}, "_shard_doc")
HOLDS_WINDOWS = {"range": {"rollup.step_ms": {"gt": WHOLE_RUN}}}

Layouts = dict[RollupKey, Layout]


class Stage(NamedTuple):
    """The rollups of one scope and step."""

    scope: str
    step_ns: int


@dataclass(frozen=True, slots=True)
class RollupWriter:
    """Makes the rollups of one run anew where a load has touched it. `lowered` says that something may have gone.

    `marks` say which windows are final; a run that is `grown` to its end has rollups of the whole run, too. `missing` are the
    entries that the run lacks, None where the server's rollups have no field for it. Where all windows of a run are made `anew`,
    rollups of older generations are deleted: those of hosts before the cluster's are made of them.
    """

    connection: Connection
    names: Names
    sender: Sender
    records: Records
    run: RunRecord
    touched: Touched
    lowered: bool
    marks: Marks = ALL_FINAL
    grown: bool = True
    anew: bool = False
    missing: tuple[Lack, ...] | None = ()
    sent: Counter[Stage] = field(default_factory=Counter)

    @property
    def slab_ns(self) -> int:
        """Return the width of the time slabs that are merged one after another; no window of any step straddles two."""
        return slab_of(self.run.step_ns)

    @property
    def _steps(self) -> tuple[int, ...]:
        """Return the steps that windows of rollups have."""
        return rollup_steps(self.run.step_ns)[:-1]

    @property
    def widest_ns(self) -> int:
        """Return the widest of these steps."""
        return self._steps[-1]

    @property
    def _documents(self) -> RollupDocuments:
        return RollupDocuments(self.run, self.names, self.marks, self.missing)

    def write(self, stored: Sequence[StoredSeries]) -> None:
        """Write the rollups of hosts, then those of the cluster and of the whole run; `stored` are all series of the run."""
        slabs = self.touched.slabs(self.slab_ns)
        if not len(slabs):
            self._refresh("intervals")  # offsets have no rollups, and searches must see them
            return
        layouts = layouts_of(stored)
        self._refresh("intervals")
        first = self._generation()
        self.write_hosts(layouts, first)
        self.write_cluster(layouts, first)

    def write_cluster(self, layouts: Layouts, first: int | None = None) -> None:
        """Write the rollups of the cluster and of the whole run, those of hosts being sent; `first` is their generation."""
        slabs = self.touched.slabs(self.slab_ns)
        self._refresh("rollups")
        if self.anew and first is not None:
            self._drop_older(first, [{"term": {"rollup.scope": HOST}}, HOLDS_WINDOWS])
        generation = self._generation()
        gone = Gone(self._touched_cluster(), self._steps)
        query = [*rollups_of(self.run.run, HOST, self.run.step_ns), slab_filter(slabs, self.slab_ns)]
        for parts in self.slabs(self.names.all("rollups"), query, self.run.step_ns):
            self._write_steps(merged_in(parts, cluster_group, known_layouts(layouts, parts, cluster_group)), gone, generation)
        self._write_gone(gone, generation)
        if self.grown:
            self._write_whole(layouts, generation)
        if self.anew and first is not None:
            self._refresh("rollups")
            self._drop_older(first, [])
        self.sender.show(self.names.all("rollups"))
        self.check_sent(generation)

    def write_at_once(self, stored: Sequence[StoredSeries], generation: int) -> None:
        """Write the rollups of windows from the documents of all hosts, read once: for a run that nobody else is writing to.

        Not those of the whole run.
        """
        slabs, layouts = self.touched.slabs(self.slab_ns), layouts_of(stored)
        if not len(slabs):
            return
        query = [{"term": {"run.id": self.run.run}}, at_step(self.run.step_ns), LATENCIES, slab_filter(slabs, self.slab_ns)]
        gone = Gone({**self._touched_hosts(), **self._touched_cluster()}, self._steps)
        touched = set(self.touched.hosts)
        for parts in self.slabs(self.names.all("intervals"), query, self.run.step_ns):
            hosts = [merged([part]) for part in merged_in(parts, host_group, known_layouts(layouts, parts, host_group))]
            self._write_steps((part.where(lambda key: key.host in touched) for part in hosts), gone, generation)
            self._write_steps(merged_in(hosts, cluster_group, known_layouts(layouts, hosts, cluster_group)), gone, generation)
        self._write_gone(gone, generation)
        self.sender.show(self.names.all("rollups"))

    def _touched_hosts(self) -> dict[RollupKey, Int]:
        return {key: self.touched.starts(key) for key in self.touched.windows}

    def _touched_cluster(self) -> dict[RollupKey, Int]:
        touched: dict[RollupKey, Int] = {}
        for host in self.touched.windows:
            key = cluster_group(host)
            touched[key] = np.union1d(touched.get(key, np.empty(0, np.int64)), self.touched.starts(host))
        return touched

    def check_sent(self, generation: int) -> None:
        """Raise StoreError where rollups hold less than was sent, and nobody has taken anything away since.

        Another load may have added to them: more is no fault.
        """
        slabs = self.touched.slabs(self.slab_ns)
        hosts: dict[str, Any] = {"bool": {"filter": [{"term": {"rollup.scope": HOST}}, one_of("host.name", self.touched.hosts)]}}
        windows = [slab_filter(slabs, self.slab_ns), any_of([hosts, {"term": {"rollup.scope": CLUSTER}}])]
        stages = {f"{stage.scope} {stage.step_ns}": stage for stage in self.sent}
        aggs = {
            name: {
                "filter": {"bool": {"filter": [*rollups_of(self.run.run, scope, step), *(windows if step else [])]}},
                "aggs": {"count": {"sum": {"field": "latency.count"}}},
            }
            for name, (scope, step) in stages.items()
        }
        body = {"size": 0, "query": {"bool": {"filter": [{"term": {"run.id": self.run.run}}]}}, "aggs": aggs}
        sums = search(self.connection, self.names.all("rollups"), body).get("aggregations") or {} if aggs else {}
        for name, stage in stages.items():
            there = int(sums[name]["count"]["value"]) if name in sums else 0
            if there < self.sent[stage] and self.records.generation(self.run.run) == generation:
                raise StoreError(
                    f"{self.run.run}: {self.sent[stage]:,} samples were sent in rollups ({stage.scope}, "
                    f"{format_duration(stage.step_ns) if stage.step_ns else 'whole run'}) and {there:,} are in the store: "
                    "run the same command again"
                )

    def _refresh(self, index: str) -> None:
        self.sender.flush()
        self.sender.refresh(self.names.all(index))

    def _generation(self) -> int:
        return self.records.raise_generation(self.run.run) if self.lowered else self.records.generation(self.run.run)

    def write_hosts(self, layouts: Layouts, generation: int, since_ns: int = -FOREVER) -> None:
        """Write the rollups of hosts from their documents, in the slabs from a time on."""
        slabs = self.touched.slabs(self.slab_ns)
        slabs = slabs[slabs >= since_ns]
        if not len(slabs):
            return
        index = self.names.all("intervals")
        query: list[Mapping[str, Any]] = [
            {"term": {"run.id": self.run.run}},
            at_step(self.run.step_ns),
            LATENCIES,
            one_of("host.name", self.touched.hosts),
            slab_filter(slabs, self.slab_ns),
        ]
        gone = Gone({key: starts[starts >= since_ns] for key, starts in self._touched_hosts().items()}, self._steps)
        for parts in self.slabs(index, query, self.run.step_ns):
            self._write_steps(merged_in(parts, host_group, known_layouts(layouts, parts, host_group)), gone, generation)
        self._write_gone(gone, generation)

    def _write_whole(self, layouts: Layouts, generation: int) -> None:
        whole: Sum[RollupKey] = Sum()
        for parts in self.slabs(self.names.all("rollups"), rollups_of(self.run.run, HOST, self.widest_ns), self.widest_ns):
            hosts = list(merged_in(parts, host_group, known_layouts(layouts, parts, host_group)))
            for windows in (*hosts, *merged_in(hosts, cluster_group, known_layouts(layouts, hosts, cluster_group))):
                whole.add(without_time(windows))
        filled = {"bool": {"filter": [*rollups_of(self.run.run, HOST, self.run.step_ns), HOLDS_SAMPLES]}}
        if found := edges(self.connection, self.names.all("rollups"), filled):
            low, high = found[0] * MS, found[1] * MS + self.run.step_ns
        else:
            low = high = int(self.touched.slabs(self.slab_ns)[0])
        self.write_whole(whole, (low, high), generation)
        self.sender.flush()
        self.drop_strays(low)

    def write_whole(self, whole: Sum[RollupKey], span: tuple[int, int], generation: int) -> None:
        """Write the rollups of the whole run, which reaches from the one time to the other; touched ones without samples, too."""
        low, high = span
        gone = {*self.touched.windows, *map(cluster_group, self.touched.windows)}
        for part in whole.parts():
            gone -= set(part.table)
            spanned = replace(part, start_ns=np.full(len(part), low), end_ns=np.full(len(part), high))
            self._send(spanned, WHOLE_RUN, generation)
        for key in sorted(gone):
            self._send_empty(key, np.array([low]), WHOLE_RUN, generation)

    def drop_strays(self, start_ns: int) -> None:
        """Delete rollups of the whole run from indices of a period in which it no longer begins."""
        home = self.names.of("rollups", np.array([start_ns]))[0]
        query = [{"term": {"run.id": self.run.run}}, {"term": {"rollup.step_ms": WHOLE_RUN}}]
        hit_pages = pages(self.connection, self.names.all("rollups"), {"bool": {"filter": query}}, source=False)
        self.sender.put([deletion(hit["_index"], hit["_id"]) for page in hit_pages for hit in page if hit["_index"] != home])

    def _drop_older(self, generation: int, filters: Sequence[Mapping[str, Any]]) -> None:
        """Delete the rollups of the run that are of an older generation."""
        query: Filters = [{"term": {"run.id": self.run.run}}, {"range": {"generation": {"lt": generation}}}, *filters]
        self.sender.put(deletions(self.connection, self.names.all("rollups"), query))
        self._refresh("rollups")

    def slabs(self, index: str, filters: Sequence[Mapping[str, Any]], step_ns: int) -> Iterator[list[Intervals[Series]]]:
        """Yield the windows of a query under their series, all of one time slab after another."""
        held: list[Intervals[Series]] = []
        slab = None
        for documents in columns(self.connection, index, {"bool": {"filter": list(filters)}}, READ, OLDEST_FIRST):
            filled = documents.where(lambda shape: "layout" in shape["latency"])
            starts = starts_of(filled)
            numbers = starts // self.slab_ns
            for number in distinct(numbers).tolist():
                if slab is not None and number != slab:
                    yield held
                    held = []
                slab = number
                rows = np.flatnonzero(numbers == number)
                held += windows_in(filled.take(rows), starts[rows] + step_ns, as_stored)
        if held:
            yield held

    def _write_steps(self, parts: Iterable[Intervals[RollupKey]], gone: Gone, generation: int) -> None:
        """Write merged windows at each step; they are taken out of `gone`."""
        for part in parts:
            if len(part):
                self.write_windows(merged([part]), generation, gone)

    def write_windows(self, windows: Intervals[RollupKey], generation: int, gone: Gone | None = None) -> Intervals[RollupKey]:
        """Write merged windows at each step, taken out of `gone`; return those of the widest."""
        for step in self._steps:
            windows = windows if step == self.run.step_ns else merged([coarsened(windows, step)])
            if gone is not None:
                gone.found(windows, step)
            self._send(windows, step, generation)
        return windows

    def _write_gone(self, gone: Gone, generation: int) -> None:
        """Overwrite the rollups of windows that have lost their last sample."""
        for (key, step), starts in gone.cells.items():
            if len(starts):
                self._send_empty(key, starts, step, generation)

    def _send_empty(self, key: RollupKey, starts: Int, step: int, generation: int) -> None:
        ids = window_ids([digest([self.run.run, *key, step])], np.zeros(len(starts), np.int64), starts, step)
        self.sender.put(
            action(index, id_, generation << VERSION_BITS)
            + orjson.dumps({**self._documents.head(key, (start, start + step), step, generation), "latency": {"count": 0}})
            + b"\n"
            for index, id_, start in zip(self.names.of("rollups", starts), ids, starts.tolist(), strict=True)
        )

    def _send(self, windows: Intervals[RollupKey], step_ns: int, generation: int) -> None:
        for scope, rows in windows.split(lambda key: key.scope):
            self.sent[Stage(scope, step_ns)] += samples_of(rows)
        for chunk in joined_chunks(self._documents.lines(windows, step_ns, generation)):
            self.sender.send(chunk)


def slab_of(step_ns: int) -> int:
    """Return the width of the time slabs of a run."""
    return max(SLAB_NS, step_ns)


class Gone:
    """Windows that were touched and of which nothing was found yet, by key and step."""

    def __init__(self, touched: Mapping[RollupKey, Int], steps: Sequence[int]) -> None:
        self.cells = {(key, step): distinct(starts // step * step) for key, starts in touched.items() for step in steps}

    def found(self, windows: Intervals[RollupKey], step_ns: int) -> None:
        """Take windows out."""
        for code, key in enumerate(windows.table):
            cell = (key, step_ns)
            if cell in self.cells:
                self.cells[cell] = np.setdiff1d(self.cells[cell], windows.start_ns[windows.series == code])


def known_layouts(layouts: Layouts, parts: Iterable[Intervals[Key]], grouped: Callable[[Key], RollupKey]) -> Layouts:
    """Return the layouts of all groups in the parts; of a series that no record lists yet, its own."""
    known = dict(layouts)
    for part in parts:
        for key in part.table:
            known.setdefault(grouped(key), part.layout)
    return known
