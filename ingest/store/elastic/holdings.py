"""The data of a server that questions are answered from: catalogue, merged rollups, windows of documents, summed there or read.

A planner picks by estimated time. Adding up in the server costs one number a window, group and occupied bin; reading back
costs each document whole. Both give the same counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ingest.core.grid import SECOND, coarsened
from ingest.core.intervals import Int, Intervals
from ingest.core.labels import OFFSET, Group, Series
from ingest.core.layout import parse_layout
from ingest.core.offsets import within
from ingest.query.question import AnswerKey
from ingest.store.answers import Catalogue, Plan
from ingest.store.coverage import since_in
from ingest.store.elastic.aggregations import (
    HOLDS_SAMPLES,
    Filters,
    Survey,
    at_steps,
    label_source,
    one_of,
    paged,
    rollups_of,
    summed_windows,
    survey_of,
    time_filters,
    time_source,
)
from ingest.store.elastic.client import Connection
from ingest.store.elastic.documents import (
    FIELDS,
    MS,
    PATHS,
    READ,
    Expected,
    as_stored,
    columns,
    edges,
    offsets_in,
    series_of,
    starts_of,
    windows_in,
)
from ingest.store.elastic.runs import Records
from ingest.store.elastic.templates import Names
from ingest.store.records import CLUSTER, COMPLETE, RunRecord, StoredSeries

LABEL_PAGE = 1000
SECONDS_A_PAGE = 10_000
DOCUMENT_BYTES, BIN_BYTES = 400, 12  # of JSON
# In us, measured on a 9.5.3 node: 100,000 documents were added up to 23,200 cells in 0.9 s, some to 2 million in 6.8 s;
# documents of 236 bins were read at 8,000 a second.
SUM_DOCUMENT, SUM_CELL, READ_DOCUMENT, READ_BIN = 9.0, 3.4, 40.0, 0.35


@dataclass(frozen=True, slots=True)
class ElasticHoldings:
    """The holdings of one site."""

    connection: Connection
    names: Names
    records: Records

    def catalogue(self, records: Sequence[RunRecord]) -> Catalogue:
        """Return what is held of the runs; for a run that is not complete, the series that its documents show."""
        series, accounts = self.records.series([record.run for record in records])
        known = {(stored.series.replaced(segment=0), stored.layout, stored.step_ns) for stored in series}
        for record in records:
            if record.state != COMPLETE:
                counting = counting_only(since_in(accounts.get(record.run, ())))
                found = self._found_series(record, counting, len(series))
                series += [stored for stored in found if (stored.series, stored.layout, stored.step_ns) not in known]
        return Catalogue(records, series, accounts)

    def _found_series(self, record: RunRecord, counting: Filters, first: int) -> Iterator[StoredSeries]:
        """Yield the series that occur in documents of a run that count, in windows that are no wider than those of the run."""
        sources = [{label: label_source(label)} for label in PATHS]
        sources += [{"layout": {"terms": {"field": "latency.layout"}}}, {"step": {"terms": {"field": "interval.step_ms"}}}]
        filters = [{"term": {"run.id": record.run}}, {"range": {"interval.step_ms": {"lte": record.step_ns // MS}}}, *counting]
        cells = {"size": LABEL_PAGE, "sources": sources}
        bucket_pages = paged(self.connection, self.names.all("intervals"), {"bool": {"filter": filters}}, cells)
        for number, bucket in enumerate((bucket for page in bucket_pages for bucket in page), first):
            key, step = bucket["key"], int(bucket["key"]["step"]) * MS
            own = step if step < record.step_ns else 0
            yield StoredSeries(number, series_of(key), parse_layout(key["layout"]), exact=False, step_ns=own)

    def shares(self, series: Sequence[StoredSeries], key: AnswerKey, windows: int) -> Iterator[Sequence[StoredSeries]]:
        """Yield all series at once: the server reads them together."""
        if series:
            yield series

    def rollup_windows(self, plan: Plan) -> Iterator[Intervals[Series]]:
        """Yield the merged windows of a plan: one part a layout and kind of counts."""
        for documents in columns(self.connection, self.names.all("rollups"), _rollups(plan), READ):
            yield from windows_in(documents, documents.known_column("interval", "end_ns"), as_stored)

    def rollup_span(self, plan: Plan) -> tuple[int, int] | None:
        """Return from when to when the windows of a plan reach, None where there is none."""
        found = edges(self.connection, self.names.all("rollups"), _rollups(plan))
        return None if found is None else (found[0] * MS, found[1] * MS + (plan.rollup_step or 0))

    def document_windows(self, plan: Plan, key: AnswerKey, step_ns: int) -> Iterator[Intervals[Group]]:
        """Yield windows of a plan's series under the groups that `key` gives, added up in the server if that is less to read."""
        step = plan.record.step_ns
        filters = self._filters(plan)
        index = self.names.all("intervals")
        expected = _most_expected(plan)
        weighted = any(member.weighted for member in plan.members)
        groups = len({key(member.series) for member in plan.members})
        if not weighted and (step_ns != step or groups < len(plan.members)):
            survey = survey_of(self.connection, index, filters, plan.members)
            if survey and _cheaper_summed(survey, groups, step, step_ns):
                yield from summed_windows(self.connection, index, filters, survey, plan, key, step_ns)
                return
            expected = Expected(survey.documents, int(survey.documents * survey.size)) if survey else expected
        for documents in columns(self.connection, index, {"bool": {"filter": filters}}, READ, expected=expected):
            yield from (coarsened(windows, step) for windows in windows_in(documents, starts_of(documents) + step, key))

    def sorted_windows(self, plan: Plan, key: AnswerKey, by: Sequence[str]) -> Iterator[Sequence[Intervals[Group]]]:
        """Yield the windows of a plan's series page by page, in the order of their groups and starts."""
        filters = self._filters(plan)
        labels = [PATHS[label] for label in (*by, "kind") if label in FIELDS and label != "run"]
        ascending = {"order": "asc", "missing": "_first", "unmapped_type": "keyword"}
        sort = [*({path: ascending} for path in dict.fromkeys(labels)), {"@timestamp": {"order": "asc"}}]
        index, step = self.names.all("intervals"), plan.record.step_ns
        for documents in columns(self.connection, index, {"bool": {"filter": filters}}, READ, sort):
            yield [coarsened(windows, step) for windows in windows_in(documents, starts_of(documents) + step, key)]

    def _filters(self, plan: Plan) -> list[dict[str, Any]]:
        """Return the filters for the documents of a plan."""
        step = plan.record.step_ns
        return [
            {"term": {"run.id": plan.record.run}},
            at_steps(plan.record, plan.members),
            *time_filters(plan.begin_ns, plan.end_ns, step),
            *_differing(plan.members, plan.everything, tuple(FIELDS)),
            *counting_only(plan.since),
        ]

    def offset_windows(
        self, run: str, begin_ns: int | None, end_ns: int | None, wanted: AnswerKey | None = None
    ) -> Iterator[Intervals[Series]]:
        """Yield the offsets of a run's events in [begin, end) under their series: the `wanted` ones, with some others."""
        labelled = self._labelled(run, wanted)
        if labelled is None:
            return
        filters = [*_offsets_of(run, begin_ns, end_ns), *labelled]
        includes = ["@timestamp", "offset", "segment", *PATHS.values()]
        for documents in columns(self.connection, self.names.all("intervals"), {"bool": {"filter": filters}}, includes):
            for windows in offsets_in(documents):
                yield from within(windows, begin_ns, end_ns)

    def _labelled(self, run: str, wanted: AnswerKey | None) -> list[dict[str, Any]] | None:
        """Return filters for the labels by which wanted series of offsets differ from all; None where none is wanted.

        While series are unknown there are none for labels.
        """
        series, accounts = self.records.series([run])
        since = since_in(accounts.get(run, ()))
        if wanted is None or since:
            return counting_only(since)
        every = [stored for stored in series if stored.series.kind == OFFSET]
        mine = [stored for stored in every if wanted(stored.series) is not None]
        return _differing(mine, every, tuple(FIELDS)) if mine else None

    def offset_seconds(self, run: str, begin_ns: int | None, end_ns: int | None) -> Int:
        """Return the starts in ns of the seconds of [begin, end) in which a run has any event."""
        cells = {"size": SECONDS_A_PAGE, "sources": [time_source(SECOND, 0)]}
        _, accounts = self.records.series([run])
        counting = counting_only(since_in(accounts.get(run, ())))
        query = {"bool": {"filter": [*_offsets_of(run, begin_ns, end_ns), *counting]}}
        bucket_pages = paged(self.connection, self.names.all("intervals"), query, cells)
        return np.array([bucket["key"]["time"] * MS for page in bucket_pages for bucket in page], np.int64)


def counting_only(since: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the filter for documents that count: of some sources those from a generation on; none where all do."""
    groups: dict[int, list[str]] = {}
    for source, generation in sorted(since.items()):
        if generation > 1:
            groups.setdefault(generation, []).append(source)
    older = [
        {"bool": {"filter": [{"terms": {"source.id": own}}, {"range": {"generation": {"lt": generation}}}]}}
        for generation, own in sorted(groups.items())
    ]
    return [{"bool": {"must_not": older}}] if older else []


def _rollups(plan: Plan) -> dict[str, Any]:
    """Return the query for the rollups of a plan."""
    step = plan.rollup_step or 0
    labels = ("op", "kind") if plan.scope == CLUSTER else ("host", "op", "kind")  # a cluster's have no host
    filters = [
        *rollups_of(plan.record.run, plan.scope, step),
        HOLDS_SAMPLES,
        *time_filters(plan.begin_ns, plan.end_ns, step),
        *_differing(plan.members, plan.everything, labels),
    ]
    return {"bool": {"filter": filters}}


def _offsets_of(run: str, begin_ns: int | None, end_ns: int | None) -> list[dict[str, Any]]:
    return [{"term": {"run.id": run}}, {"term": {"kind": OFFSET}}, *time_filters(begin_ns, end_ns, SECOND)]


def _differing(
    members: Sequence[StoredSeries], everything: Sequence[StoredSeries], labels: Sequence[str]
) -> list[dict[str, Any]]:
    """Return filters for the labels by which members differ from all series of their run."""
    filters = []
    for label in labels:
        wanted = {getattr(member.series, label) for member in members}
        if wanted != {getattr(member.series, label) for member in everything}:
            filters.append(one_of(PATHS[label], sorted(wanted)))
    return filters


def _cheaper_summed(survey: Survey, groups: int, stored_ns: int, step_ns: int) -> bool:
    """Return whether adding up in the server takes less time than reading documents."""
    windows = -(-(survey.last_ns - survey.first_ns + stored_ns) // step_ns) if step_ns else 1
    cells = sum(len(bins) for bins in survey.bins.values()) * windows * groups
    summing = SUM_DOCUMENT * survey.documents + SUM_CELL * cells
    return survey.summable and summing < survey.documents * (READ_DOCUMENT + READ_BIN * survey.entries)


def _most_expected(plan: Plan) -> Expected | None:
    """Return what the documents of a plan can be at most, by what the records of complete sources say; else None."""
    documents = size = 0
    for member in plan.members:
        if plan.record.state != COMPLETE or member.first_ns is None or member.last_ns is None:
            return None
        low, high = max(member.first_ns, plan.begin_ns or member.first_ns), min(member.last_ns, plan.end_ns or member.last_ns)
        windows = max(0, -(-high // plan.record.step_ns) - low // plan.record.step_ns)
        documents += windows
        size += windows * (DOCUMENT_BYTES + BIN_BYTES * member.layout.bins)
    return Expected(documents, size)
