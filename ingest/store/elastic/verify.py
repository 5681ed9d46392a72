"""Verifying a site: counted by the server, in pages of buckets, so that little is read and documents stay where they are.

    intervals by series, reading and step -> owners, readings, steps, counts against bins, samples against the load's account
    intervals and rollups by cell and hour -> every scope and step of rollups against documents
    bins by layout                         -> values that no bin of a layout reports

Records are read last: whoever writes documents has written their records before. Mending deletes faulty documents, makes rollups
again and notes sources to be read again, one run after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ingest.core.errors import InputError, StoreError
from ingest.core.labels import IN_FLIGHT
from ingest.core.layout import NO_BINS, NO_BINS_TEXT, Layout, parse_layout
from ingest.core.units import number
from ingest.store.elastic.aggregations import LATENCIES, Filters, one_of, paged
from ingest.store.elastic.documents import MS, PATHS, bins_of, hits, search
from ingest.store.elastic.findings import BREATHS_INDEX as BREATHS
from ingest.store.elastic.rollups import RollupWriter
from ingest.store.elastic.runs import (
    CHECKPOINT,
    RUN,
    SOURCE,
    TOMBSTONE,
    SharedWindows,
    Sweeper,
    entomb,
    settle_breaths,
    source_record,
    swept,
    writing,
)
from ingest.store.elastic.templates import PERIODIC
from ingest.store.lifecycle import step_in
from ingest.store.records import CLUSTER, COMPLETE, HOST, STEP, WHOLE_RUN, RunRecord, SourceRecord, rollup_steps
from ingest.store.rollups import default_kind_of
from ingest.store.verify import LAYOUTS, NO_RUN, ROLLUPS, STATES, Chosen, Reading, Verifier, in_words, is_whole

if TYPE_CHECKING:
    from ingest.store.elastic.store import ElasticStore


PAGE = 5_000
HOUR_MS = 3_600_000
MOST_RANGES = 30_000
MOST_BINS = 20 * MOST_RANGES
LABELS = ("host", "volume", "job", "op", "tag", "process")
FIELDS = {
    "run": "run.id",
    "source": "source.id",
    "generation": "generation",
    "step": "interval.step_ms",
    "kind": "kind",
    "segment": "segment",
    "layout": "latency.layout",
    "scope": "rollup.scope",
    "width": "rollup.step_ms",
    **{label: PATHS[label] for label in LABELS},
}
HISTOGRAMS = ("latency.histogram", "in_flight.histogram")
COUNTS = {
    "samples": {"sum": {"field": "latency.count"}},
    "bins": {"value_count": {"field": HISTOGRAMS[0]}},
    "weights": {"value_count": {"field": HISTOGRAMS[1]}},
}
TIMELESS = ("marks", "episodes", "findings")

OF_ACCOUNT = ("samples", "stored", "notes", "missing", STEP)
OF_SOURCE = ("id", "path", "size", "digest", "context", "state", "refused", *(f"account.{name}" for name in OF_ACCOUNT))
RECORD_FIELDS = ("record", "run.id", "generation", *(f"source.{name}" for name in OF_SOURCE))
SERIES = ("run", "source", "generation", "step", "kind", "segment", "layout", *LABELS)


class Cell(NamedTuple):
    """What counts are compared by: an hour of a kind, an operation and a host; empty or 0 where they are added up."""

    kind: str
    op: str
    host: str
    hour: int


LABELS_OF_CELL = Cell._fields[:3]
Counted = tuple[int, ...]
Hours = dict[Cell, Counted]
Cells = dict[str, dict[tuple[Any, ...], Hours]]


@dataclass(frozen=True, slots=True)
class Bucket:
    """What the documents of some values of fields count: how many there are, samples, samples in bins, weights in bins."""

    key: Mapping[str, Any]
    documents: int
    counted: Counted


class ElasticVerifier(Verifier):
    """Verifies the runs of a site that `chosen` accepts."""

    one_moment = False

    def __init__(self, store: ElasticStore, chosen: Chosen) -> None:
        super().__init__(chosen)
        self.store, self.connection, self.names = store, store.connection, store.names
        self.series: list[Bucket] = []
        self.owned: dict[str, list[Bucket]] = {}
        self.cells: Cells = {}
        self.rollups: Cells = {}
        self.others: list[tuple[str, str, str, str | None]] = []  # records beside those of runs: id, kind, run, source
        self.refused: list[SourceRecord] = []
        self.queries: dict[tuple[str, str, str], dict[str, Any]] = {}  # what is to be deleted, by index, run and place
        self.swept: dict[tuple[str, str], SourceRecord] = {}
        self.there: dict[str, RunRecord] = {}

    def records(self) -> tuple[list[RunRecord], list[SourceRecord]]:
        """Return the records of all runs, and of the sources of those that are chosen, once documents were counted."""
        intervals, rollups, points = (self.names.all(index) for index in ("intervals", "rollups", BREATHS))
        self.series = list(self._buckets(intervals, SERIES))
        self.cells, self.rollups = self._cells(intervals, ("step",)), self._cells(rollups, ("scope", "width"))
        self.owned = {intervals: self.series, points: list(self._buckets(points, ("run", "source")))}
        self.owned |= {index: list(self._buckets(index, ("run",))) for index in (rollups, *map(self.names.one, TIMELESS))}
        self.found.documents = sum(bucket.documents for bucket in self.series)
        runs, sources = self.store.records.runs(), []
        query = {"bool": {"must_not": [{"terms": {"record": [RUN, TOMBSTONE]}}]}}
        for hit in hits(self.connection, self.names.one("runs"), query, list(RECORD_FIELDS)):
            document = hit["_source"]
            kind, run, source = document["record"], document["run"]["id"], document.get("source") or {}
            if self.chosen(run):
                self.others.append((hit["_id"], kind, run, source.get("id") if kind == CHECKPOINT else None))
                if kind == SOURCE:
                    sources.append(source_record(document))
                    if source.get("refused") and source["state"] == COMPLETE:
                        self.refused.append(sources[-1])
        return runs, sources

    def unowned(self) -> Iterator[tuple[str, str, int, str]]:
        """Yield kind, run, number and words of records and documents that belong to no run or source."""
        index = self.names.one("runs")
        for id_, record, run, source in self.others:
            if kind := self.owner(run, source):
                yield kind, run, 1, f"record of a {record} of {run}"
                self.queries[index, run, id_] = {"ids": {"values": [id_]}}
        for index, buckets in self.owned.items():
            for bucket in buckets:
                run, source = bucket.key["run"], bucket.key.get("source")
                if not (kind := self.owner(run, source)):
                    continue
                yield kind, run, bucket.documents, f"{index} of {run or 'no name'}{f', source {source}' if source else ''}"
                mine, place = one_of("run.id", [run]), "" if kind == NO_RUN else str(source)
                query = mine if kind == NO_RUN else {"bool": {"filter": [mine, one_of("source.id", [place])]}}
                self.queries[index, run, place] = query

    def _buckets(self, index: str, keys: Sequence[str], filters: Filters = (), *, hours: bool = False) -> Iterator[Bucket]:
        """Yield the counts of an index by the values of some fields (empty where documents have none), page by page."""
        sources: list[dict[str, Any]] = [{key: {"terms": {"field": FIELDS[key], "missing_bucket": True}}} for key in keys]
        sources += [{"hour": {"date_histogram": {"field": "@timestamp", "fixed_interval": f"{HOUR_MS}ms"}}}] if hours else []
        cells = {"size": PAGE, "sources": sources}
        aggs = COUNTS if index in (self.names.all("intervals"), self.names.all("rollups")) else None
        for page in paged(self.connection, index, {"bool": {"filter": list(filters)}}, cells, aggs):
            for bucket in page:
                counted = tuple(int(bucket[name]["value"]) for name in COUNTS) if aggs else (0, 0, 0)
                key = {name: "" if value is None else value for name, value in bucket["key"].items()}
                if self.chosen(str(key["run"])):
                    yield Bucket(key, int(bucket["doc_count"]), counted)

    def _cells(self, index: str, keys: Sequence[str]) -> Cells:
        """Return the counts of an index by run, then by the values of `keys`, then by cell and hour."""
        cells: Cells = {}
        for bucket in self._buckets(index, ("run", *keys, *LABELS_OF_CELL), [LATENCIES], hours=True):
            if any(bucket.counted):
                kept = cells.setdefault(bucket.key["run"], {}).setdefault(tuple(bucket.key[key] for key in keys), {})
                cell = Cell(bucket.key["kind"], bucket.key["op"], bucket.key["host"], int(bucket.key["hour"]))
                kept[cell] = bucket.counted
        return cells

    def misstated(self) -> None:
        """Note the sources that are marked complete although documents of them were refused."""
        for source in self.refused:
            text = f"{source.path} of {source.run} is marked complete, but the server refused some of its documents"
            self.found.found(STATES, source.run, 1, text)
            self.read_again(source)

    def _whole(self, run: str) -> RunRecord | None:
        """Return the record of a run if its sums must be right."""
        record = self.runs.get(run)
        return record if record is not None and is_whole(record) else None

    def readings(self) -> Iterator[Reading]:
        """Yield what the documents of whole runs hold by reading; then look for values that no bin of their layout reports."""
        for bucket in self.series:
            key = bucket.key
            if self._whole(key["run"]) and (key["run"], key["source"]) in self.sources:
                has_bins = key["layout"] != NO_BINS_TEXT and not key["kind"].endswith(IN_FLIGHT)
                series = tuple(key[name] for name in ("run", *LABELS, "kind", "segment"))
                words = in_words({name: key[name] for name in (*LABELS, "kind")})
                whose = (key["run"], key["source"], series, words, key["kind"], key["layout"])
                held = (int(key["step"] or 0) * MS, int(key["generation"]), bucket.documents, bucket.counted[0])
                yield Reading(*whose, *held, binned=bucket.counted[1] if has_bins else None, place=None)
        self._layouts(sorted({bucket.key["layout"] for bucket in self.series} - {""}))

    def _layouts(self, layouts: Sequence[str]) -> None:
        """Look for values that no bin of their layout reports."""
        for text in layouts:
            try:
                layout = parse_layout(text)
                if not layout.has_bins or all(self._is_of(layout, field) for field in HISTOGRAMS):
                    continue
            except (ValueError, InputError):
                layout = NO_BINS
            self._read_back(text, layout)

    def _is_of(self, layout: Layout, field: str) -> bool:
        """Return whether all values of a field in documents and rollups of a layout are of its bins, as the server counts."""
        indices = f"{self.names.all('intervals')},{self.names.all('rollups')}"
        query = {"bool": {"filter": [{"term": {"latency.layout": str(layout)}}, {"exists": {"field": field}}]}}
        aggs = {name: {how: {"field": field}} for name, how in (("low", "min"), ("high", "max"), ("count", "value_count"))}
        extent = search(self.connection, indices, {"size": 0, "query": query, "aggs": aggs}).get("aggregations")
        if not extent or not extent["count"]["value"]:
            return True
        values = layout.keys
        first, last = np.searchsorted(values, [extent["low"]["value"], extent["high"]["value"]])
        if last - first >= MOST_BINS:
            return False  # the documents are read back
        inside = 0
        for at in range(int(first), min(int(last) + 1, len(values)), MOST_RANGES):
            some = values[at : min(at + MOST_RANGES, int(last) + 1)].tolist()
            ranges = {"field": field, "ranges": [{"from": float(value), "to": float(value) + 1} for value in some]}
            answer = search(self.connection, indices, {"size": 0, "query": query, "aggs": {"bins": {"range": ranges}}})
            inside += sum(bucket["doc_count"] for bucket in answer["aggregations"]["bins"]["buckets"])
        return inside == int(extent["count"]["value"])

    def _read_back(self, text: str, layout: Layout) -> None:
        """Read all documents of a layout back, and note those that hold other values than its bins report."""
        for index in (self.names.all("intervals"), self.names.all("rollups")):
            query = {"term": {"latency.layout": text}}
            for hit in hits(self.connection, index, query, ["run", "source", "latency", "in_flight"]):
                document = hit["_source"]
                record = self._whole(document["run"]["id"])
                values = (document.get("in_flight") or document["latency"]).get("histogram", {"values": ()})["values"]
                if record is None or _holds(layout, values):
                    continue
                self.queries[hit["_index"], record.run, hit["_id"]] = {"ids": {"values": [hit["_id"]]}}
                source = self.sources.get((record.run, (document.get("source") or {}).get("id", "")))
                place = f"{hit['_index']}/_doc/{hit['_id']} says {text}"
                self.found.found(LAYOUTS if source else ROLLUPS, record.run, 1, place)
                self.rolled.add(record.run)
                if source is not None:
                    self.read_again(source)

    def unlike_rollups(self, record: RunRecord) -> Iterator[tuple[int, str]]:
        """Compare rollups of every scope and step with the documents that they are made of, by cell and hour."""
        hosts: Hours = {}
        steps = {step_in(record, source.step_ns) for (run, _), source in self.sources.items() if run == record.run}
        for own_ns in steps:
            for cell, counted in self.cells.get(record.run, {}).get((own_ns // MS,), {}).items():
                hosts[cell] = tuple(map(add, hosts.get(cell, (0, 0, 0)), counted))
        wanted: dict[tuple[Any, ...], Hours] = {}
        for scope in (HOST, CLUSTER):
            cells = hosts if scope == HOST else _added(hosts, host="")
            whole = _added(cells, hour=0)
            wanted |= {(scope, step // MS): cells if step else whole for step in rollup_steps(record.step_ns)}
        there = self.rollups.get(record.run, {})
        there |= {(scope, step): _added(cells, hour=0) for (scope, step), cells in there.items() if step == WHOLE_RUN}
        for scope, step_ms in sorted({*wanted, *there}):
            mine, other = wanted.get((scope, step_ms), {}), there.get((scope, step_ms), {})
            if differ := sorted(cell for cell in {*mine, *other} if mine.get(cell) != other.get(cell)):
                cell = differ[0]
                documents, rolled = (counts[cell][0] if cell in counts else 0 for counts in (mine, other))
                step = f"{number(step_ms / 1000)}s" if step_ms else "all"
                where = in_words({"scope": scope, "step": step, **dict(zip(LABELS_OF_CELL, cell, strict=False))})
                yield len(differ), f"{record.run}, {where}: {rolled:,} samples, documents hold {documents:,}"

    def drop(self, reading: Reading, source: SourceRecord) -> None:
        """Note that what older readings of a source have left is to be deleted."""
        self.swept[source.run, source.source] = source

    def delete(self) -> None:
        """Delete all that was noted. StoreError where the server refuses."""
        store = self.store
        there = self.there = {record.run: record for record in store.runs()}
        ghosts = {run: self._highest(run) for _, run, _ in self.queries if run and run not in self.runs and run not in there}
        for (index, run, _), query in self.queries.items():
            if run in self.runs or run not in there:  # not a run that a load has begun under this name since
                swept(store, index, {"filter": [query]})
        for run, generation in ghosts.items():
            entomb(store.records, run, generation)
        sweeper = Sweeper(store)
        for source in self.swept.values():
            sweeper.sweep(source)
        if self.swept:
            settle_breaths(store, list(self.swept.values()))
        for run in sorted(self.steps):
            sweeper.sweep_steps(there[run])

    def _highest(self, run: str) -> int:
        """Return the highest generation that documents of a run have.

        A server remembers versions of deleted documents for a minute: rollups of a later run of this name must be above them.
        """
        indices = ",".join(self.names.all(index) for index in PERIODIC)
        body = {"size": 0, "query": {"term": {"run.id": run}}, "aggs": {"highest": {"max": {"field": "generation"}}}}
        aggregations = search(self.connection, indices, body).get("aggregations")
        return int(aggregations["highest"]["value"] or 0) if aggregations else 0

    def reopen(self, source: SourceRecord) -> None:
        """Mark a source incomplete, so that the next load reads it again."""
        self.store.records.reopen(source.run, source.source, source.generation, digest="")

    def roll(self, run: str) -> None:
        """Make all rollups of a run from its documents, in place of those that are there. RunGoneError where it is deleted."""
        store = self.store
        if (record := self.there.get(run)) is None:
            return
        with writing(store, run):
            store.connection.refresh(store.names.all("intervals"))
            stored, accounts = store.records.series([run])
            missing = store.lacking(record, accounts)
            RollupWriter(store, record, SharedWindows(), default_kind_of(stored), anew=True, missing=missing).write(stored)


def _holds(layout: Layout, values: Sequence[float]) -> bool:
    if not layout.has_bins:
        return False
    try:
        bins_of(layout, np.array(values, np.int64))
    except StoreError:
        return False
    return True


def _added(cells: Hours, **common: Any) -> Hours:
    """Return the cells added up under what they are to have in common."""
    sums: Hours = {}
    for cell, counted in cells.items():
        key = cell._replace(**common)
        sums[key] = tuple(map(add, sums.get(key, (0, 0, 0)), counted))
    return sums
