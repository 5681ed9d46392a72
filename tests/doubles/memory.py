"""A third kind of store, in memory: no more than `Origin` asks for, kept by a stranger who knows nothing of the other two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from ingest.core.grid import coarsened
from ingest.core.intervals import Intervals, merged
from ingest.core.labels import LABELS, Series
from ingest.query.episodes import Episode
from ingest.query.origin import Capabilities, Origin
from ingest.query.question import Answer, AnswerKey, Question
from ingest.query.windows import spanned
from ingest.store.answers import Catalogue, Plan, answer_from, facts_from, windows_from
from ingest.store.records import HOST, RunRecord, StoredSeries

SHELF: dict[str, MemoryStore] = {}


class MemoryStore:
    """Runs with their windows, each under its series; it is its own holdings."""

    indexed = True

    def __init__(
        self, records: Sequence[RunRecord], windows: Sequence[Intervals], reach: Mapping[Series, tuple[int, int]]
    ) -> None:
        self._records = records
        self._windows = windows
        self._reach = reach

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    @property
    def offers(self) -> Capabilities:
        return Capabilities()

    def runs(self) -> Sequence[RunRecord]:
        return self._records

    def answer(self, question: Question) -> Answer:
        return answer_from(self, self._records, question)

    def windows(self, question: Question) -> Iterator[Intervals]:
        return windows_from(self, self._records, question)

    def facts(self, answer: Answer) -> Sequence[tuple[str, str]]:
        return facts_from(self.catalogue([record for record in self._records if record.run in answer.runs]))

    def marks(self, _answer: Answer) -> list[dict[str, Any]]:
        return []

    def episodes(self, _runs: Iterable[str]) -> list[Episode]:
        return []

    def catalogue(self, records: Sequence[RunRecord]) -> Catalogue:
        runs = {record.run for record in records}
        found = []
        for part in self._windows:
            for series in part.table:
                if series.run in runs:
                    found.append(StoredSeries(len(found), series, part.layout, part.exact is not None, *self._reach[series]))
        return Catalogue(records, found, {})

    def shares(self, series: Sequence[StoredSeries], _key: AnswerKey, _windows: int) -> Iterator[Sequence[StoredSeries]]:
        yield series

    def sorted_windows(self, plan: Plan, key: AnswerKey, by: Sequence[str]) -> Iterator[Sequence[Intervals]]:
        yield list(self.document_windows(plan, key, plan.record.step_ns))

    def document_windows(self, plan: Plan, key: AnswerKey, _step_ns: int) -> Iterator[Intervals]:
        for part in self._of(plan, plan.record.step_ns):
            yield part.relabelled(key)

    def rollup_windows(self, plan: Plan) -> Iterator[Intervals]:
        kept = ("run", "op", "kind", *(("host",) if plan.scope == HOST else ()))
        step = plan.rollup_step
        for part in self._of(plan, step or plan.record.step_ns):
            rows = part.relabelled(lambda series: Series(**{name: getattr(series, name) for name in kept}))
            yield from [merged([coarsened(rows, step)])] if step else spanned([rows])

    def rollup_span(self, plan: Plan) -> tuple[int, int] | None:
        parts = list(self._of(plan, plan.rollup_step or plan.record.step_ns))
        return (min(int(one.start_ns.min()) for one in parts), max(int(one.end_ns.max()) for one in parts)) if parts else None

    def _of(self, plan: Plan, step_ns: int) -> Iterator[Intervals]:
        """Yield the windows of the members of a plan that begin in [floor(begin), end)."""
        wanted = {one.series for one in plan.members}
        for part in self._windows:
            inside = np.array([series in wanted for series in part.table], np.bool_)[part.series]
            if plan.begin_ns is not None:
                inside &= part.start_ns >= plan.begin_ns // step_ns * step_ns
            if plan.end_ns is not None:
                inside &= part.start_ns < plan.end_ns
            if inside.any():
                yield part.take(np.flatnonzero(inside))


def open_url(url: str, *, write: bool = False) -> MemoryStore:
    assert not write
    return SHELF[url]


def shelved(url: str, origin: Origin, records: Sequence[RunRecord]) -> MemoryStore:
    """Keep all windows of an origin under a URL."""
    every = Question(by=LABELS, where={"kind": "*"})
    found = []
    for part in origin.windows(every):
        named = Intervals(
            part.layout,
            tuple(Series(*key[2:]) for key in part.table),
            part.series,
            part.start_ns,
            part.end_ns,
            part.indptr,
            part.bins,
            part.counts,
            part.exact,
            part.completions,
        )
        found.append(merged([named]))
    reach = {}
    for series in {one for part in found for one in part.table}:
        where = {name: getattr(series, name) for name in LABELS}
        (whole,) = origin.answer(Question(where=where, step="all")).parts
        reach[series] = int(whole.start_ns[0]), int(whole.end_ns[0])
    SHELF[url] = MemoryStore(records, found, reach)
    return SHELF[url]
