"""Verifying a site: counted by the server, in pages of buckets, so that little is read and documents stay where they are.

    intervals by series, reading and step -> owners, readings, steps, counts against bins, samples against the load's account
    intervals and rollups by cell and hour -> every scope and step of rollups against documents
    bins by layout                         -> values that no bin of a layout reports

Records are read last: whoever writes documents has written their records before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from ingest.core.dataclass import dataclass
from ingest.core.errors import InputError, StoreError
from ingest.core.grid import SECOND
from ingest.core.layout import NO_BINS, NO_BINS_TEXT, Layout, parse_layout
from ingest.core.series import IN_FLIGHT, OFFSET
from ingest.core.writing import number
from ingest.store.elastic.breaths import INDEX as BREATHS
from ingest.store.elastic.connection import Connection
from ingest.store.elastic.encoding import MS, PATHS, bins_of
from ingest.store.elastic.filters import LATENCIES, Filters, one_of
from ingest.store.elastic.names import Names
from ingest.store.elastic.reading import pages, search
from ingest.store.elastic.record_documents import CHECKPOINT, RUN, SOURCE, TOMBSTONE, source_record
from ingest.store.elastic.records import Records
from ingest.store.elastic.sums import paged
from ingest.store.records import CLUSTER, COMPLETE, DELETING, HOST, WHOLE_RUN, RunRecord, SourceRecord, rollup_steps
from ingest.store.verify import (
    BINS,
    GENERATIONS,
    LAYOUTS,
    NO_RUN,
    NO_SOURCE,
    ROLLUPS,
    SAMPLES,
    STATES,
    STEPS,
    Chosen,
    Verification,
    in_words,
    is_whole,
    note_again,
    samples_differ,
    unfinished_sentence,
)

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

RECORD_FIELDS = (
    "record",
    "run.id",
    "generation",
    *(f"source.{name}" for name in ("id", "path", "size", "digest", "context", "state", "refused")),
    "source.account.samples",
    "source.account.notes",
)
SERIES = ("run", "source", "generation", "step", "kind", "segment", "layout", *LABELS)


class Cell(NamedTuple):
    """What counts are compared by: an hour of a kind, an operation and a host; empty or 0 where they are added up."""

    kind: str
    op: str
    host: str
    hour: int

    def of_cluster(self) -> Cell:
        """Return the cell of all hosts."""
        return Cell(self.kind, self.op, "", self.hour)

    def of_all_hours(self) -> Cell:
        """Return the cell of the whole run."""
        return Cell(self.kind, self.op, self.host, 0)


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


@dataclass(slots=True)
class Wrong:
    """What has to be mended: documents by index and query, readings to sweep, sources to be read again, rollups to be made."""

    queries: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    swept: dict[tuple[str, str], SourceRecord] = field(default_factory=dict)
    sources: dict[tuple[str, str], SourceRecord] = field(default_factory=dict)
    steps: set[str] = field(default_factory=set)
    rolled: set[str] = field(default_factory=set)


@dataclass(slots=True)
class ElasticVerifier:
    """Verifies the runs of a site that `chosen` accepts."""

    connection: Connection
    names: Names
    records: Records
    chosen: Chosen
    found: Verification = field(default_factory=Verification)
    wrong: Wrong = field(default_factory=Wrong)
    runs: dict[str, RunRecord] = field(default_factory=dict)
    sources: dict[tuple[str, str], SourceRecord] = field(default_factory=dict)
    names_of_runs: set[str] = field(default_factory=set)
    refused: list[tuple[str, str]] = field(default_factory=list)

    def verify(self) -> Verification:
        """Return the faults; nothing is changed."""
        intervals, rollups, points = (self.names.all(index) for index in ("intervals", "rollups", BREATHS))
        series = list(self._buckets(intervals, SERIES))
        cells, rolled = self._cells(intervals, ("step",)), self._cells(rollups, ("scope", "width"))
        owned = {intervals: series, points: list(self._buckets(points, ("run", "source")))}
        owned |= {index: list(self._buckets(index, ("run",))) for index in (rollups, *map(self.names.one, TIMELESS))}
        self._read_records()
        self.found.runs, self.found.documents = len(self.runs), sum(bucket.documents for bucket in series)
        for index, buckets in owned.items():
            self._owners(index, buckets)
        self._states()
        self._series(series)
        self._layouts(sorted({bucket.key["layout"] for bucket in series} - {""}))
        self._compare(cells, rolled)
        return self.found

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

    def _read_records(self) -> None:
        """Read the records of all runs and sources, and look for those whose owner is not there."""
        every = self.records.runs()
        self.names_of_runs = {known.run for known in every}
        self.runs = {known.run: known for known in every if self.chosen(known.run)}
        index, lost = self.names.one("runs"), []
        query = {"bool": {"must_not": [{"terms": {"record": [RUN, TOMBSTONE]}}]}}
        for page in pages(self.connection, index, query, list(RECORD_FIELDS)):
            for hit in page:
                document = hit["_source"]
                run = document["run"]["id"]
                if document["record"] == SOURCE and self.chosen(run):
                    self.sources[run, document["source"]["id"]] = source_record(document)
                    if document["source"].get("refused") and document["source"]["state"] == COMPLETE:
                        self.refused.append((run, document["source"]["id"]))
                if self.chosen(run):
                    lost.append((hit["_id"], document["record"], run, (document.get("source") or {}).get("id")))
        for id_, record, run, source in lost:
            kind = self._owner(run, source if record == CHECKPOINT else None)
            if kind:
                self.found.found(kind, run, 1, f"record of a {record} of {run}")
                self.wrong.queries[index, run, id_] = {"ids": {"values": [id_]}}

    def _owner(self, run: str, source: str | None) -> str:
        """Return which kind of owner is missing: that of a run, of a source where one is named, or none."""
        if run not in self.names_of_runs:
            return NO_RUN
        gone = source is not None and (run, source) not in self.sources and self.runs[run].state != DELETING
        return NO_SOURCE if gone else ""

    def _owners(self, index: str, buckets: Sequence[Bucket]) -> None:
        """Look for documents of an index that belong to runs or sources that are not there."""
        for bucket in buckets:
            run, source = bucket.key["run"], bucket.key.get("source")
            kind = self._owner(run, source)
            if not kind:
                continue
            mine: dict[str, Any] = {"term": {"run.id": run}} if run else {"bool": {"must_not": [{"exists": {"field": "run.id"}}]}}
            query = mine if kind == NO_RUN else {"bool": {"filter": [mine, one_of("source.id", [str(source)])]}}
            self.found.found(
                kind, run, bucket.documents, f"{index} of {run or 'no name'}{f', source {source}' if source else ''}"
            )
            self.wrong.queries[index, run, str(source) if kind == NO_SOURCE else ""] = query
            if kind == NO_SOURCE:
                self.wrong.rolled.add(run)

    def _states(self) -> None:
        for run, source in self.refused:
            mine = self.sources[run, source]
            self.found.found(
                STATES, run, 1, f"{mine.path} of {run} is marked complete, but the server refused some of its documents"
            )
            self._read_again(mine)
        for record in self.runs.values():
            if not is_whole(record):
                own = [entry for (run, _), entry in self.sources.items() if run == record.run]
                self.found.unfinished.append(unfinished_sentence(record, own))

    def _read_again(self, source: SourceRecord, generation: int = 0) -> None:
        note_again(self.wrong.sources, source, generation)

    def _whole(self, run: str) -> RunRecord | None:
        """Return the record of a run if its sums must be right."""
        record = self.runs.get(run)
        return record if record is not None and is_whole(record) else None

    def _series(self, buckets: Sequence[Bucket]) -> None:
        """Look at readings, steps, counts, layouts and samples of the series of whole runs."""
        samples: Counter[tuple[str, str]] = Counter()
        layouts: dict[tuple[Any, ...], set[str]] = {}
        for bucket in buckets:
            key = bucket.key
            record, source = self._whole(key["run"]), self.sources.get((key["run"], key["source"]))
            if record is None or source is None:
                continue
            words = in_words({name: key[name] for name in (*LABELS, "kind")})
            if key["step"] * MS != (SECOND if key["kind"] == OFFSET else record.step_ns):
                self.found.found(STEPS, record.run, bucket.documents, f"{words}, step {key['step']} ms")
                self.wrong.steps.add(record.run)
                continue
            if source.state == COMPLETE and key["generation"] != source.generation:
                self.found.found(GENERATIONS, record.run, bucket.documents, f"{words}, from {source.path}")
                self.wrong.rolled.add(record.run)
                if key["generation"] > source.generation:
                    self._read_again(source, int(key["generation"]))
                else:
                    self.wrong.swept[source.run, source.source] = source
                continue
            if key["kind"] == OFFSET:
                continue
            samples[record.run, key["source"]] += bucket.counted[0]
            series = tuple((name, key[name]) for name in ("run", *LABELS, "kind", "segment"))
            layouts.setdefault(series, set()).add(key["layout"])
            has_bins = key["layout"] != NO_BINS_TEXT and not key["kind"].endswith(IN_FLIGHT)
            if has_bins and bucket.counted[0] != bucket.counted[1]:
                text = f"{words}: bins hold {bucket.counted[1]:,}, the documents say {bucket.counted[0]:,}"
                self.found.found(BINS, record.run, 1, text)
                self._read_again(source)
            if len(layouts[series]) > 1:
                self.found.found(LAYOUTS, record.run, 1, f"{words}: {' and '.join(sorted(layouts[series]))}")
                self._read_again(source)
        for (run, name), source in self.sources.items():
            if self._whole(run) and (text := samples_differ(source, samples[run, name])):
                self.found.found(SAMPLES, run, 1, text)
                self._read_again(source)

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
            for page in pages(self.connection, index, query, ["run", "source", "latency", "in_flight"]):
                for hit in page:
                    document = hit["_source"]
                    record = self._whole(document["run"]["id"])
                    values = (document.get("in_flight") or document["latency"]).get("histogram", {"values": ()})["values"]
                    if record is None or _holds(layout, values):
                        continue
                    self.wrong.queries[hit["_index"], record.run, hit["_id"]] = {"ids": {"values": [hit["_id"]]}}
                    source = self.sources.get((record.run, (document.get("source") or {}).get("id", "")))
                    place = f"{hit['_index']}/_doc/{hit['_id']} says {text}"
                    self.found.found(LAYOUTS if source else ROLLUPS, record.run, 1, place)
                    self.wrong.rolled.add(record.run)
                    if source is not None:
                        self._read_again(source)

    def _compare(self, documents: Cells, rollups: Cells) -> None:
        """Compare rollups of every scope and step with the documents that they are made of, by cell and hour."""
        for record in self.runs.values():
            if not is_whole(record):
                continue
            hosts = documents.get(record.run, {}).get((record.step_ns // MS,), {})
            wanted: dict[tuple[Any, ...], Hours] = {}
            for scope in (HOST, CLUSTER):
                cells = hosts if scope == HOST else _added(hosts, Cell.of_cluster)
                whole = _added(cells, Cell.of_all_hours)
                wanted |= {(scope, step // MS): cells if step else whole for step in rollup_steps(record.step_ns)}
            there = rollups.get(record.run, {})
            there |= {
                (scope, step): _added(cells, Cell.of_all_hours) for (scope, step), cells in there.items() if step == WHOLE_RUN
            }
            for place in sorted({*wanted, *there}):
                mine, other = wanted.get(place, {}), there.get(place, {})
                differ = sorted(cell for cell in {*mine, *other} if mine.get(cell) != other.get(cell))
                if differ:
                    self._differs(record.run, place, len(differ), differ[0], (mine.get(differ[0]), other.get(differ[0])))

    def _differs(
        self, run: str, place: tuple[Any, ...], count: int, cell: Cell, counts: tuple[Counted | None, Counted | None]
    ) -> None:
        documents, rolled = (counted[0] if counted else 0 for counted in counts)
        scope, step_ms = place
        step = f"{number(step_ms / 1000)}s" if step_ms else "all"
        where = in_words({"scope": scope, "step": step, **dict(zip(LABELS_OF_CELL, cell, strict=False))})
        self.found.found(ROLLUPS, run, count, f"{run}, {where}: {rolled:,} samples, documents hold {documents:,}")
        self.wrong.rolled.add(run)


def _holds(layout: Layout, values: Sequence[float]) -> bool:
    if not layout.has_bins:
        return False
    try:
        bins_of(layout, np.array(values, np.int64))
    except StoreError:
        return False
    return True


def _added(cells: Hours, moved: Callable[[Cell], Cell]) -> Hours:
    """Return the cells added up under the cell that `moved` gives for each."""
    sums: Hours = {}
    for cell, counted in cells.items():
        key = moved(cell)
        before = sums.get(key, (0, 0, 0))
        sums[key] = (before[0] + counted[0], before[1] + counted[1], before[2] + counted[2])
    return sums
