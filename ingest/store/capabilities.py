"""What every store that keeps documents offers beyond the protocol; the code of each is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ingest.core.coverage import WholeRun, whole_runs
from ingest.query.origin import BREATHS, FINDINGS, OFFSET_TICKS, OFFSETS, WHOLE_RUNS, Capabilities
from ingest.query.question import Question
from ingest.store.records import selected_records

if TYPE_CHECKING:
    from ingest.core.breaths import StoredBreaths
    from ingest.query.offsets import OffsetMap, OffsetOverview, WantedOffsets
    from ingest.query.story.ground import Story
    from ingest.store import Store


def capabilities_of(store: Store) -> Capabilities:
    """Return the capabilities of a store that keeps offsets, breaths and the accounts of its sources."""
    kept = _Keeping(store)
    offers = Capabilities().add(OFFSETS, kept.offsets).add(OFFSET_TICKS, kept.offset_ticks)
    return offers.add(BREATHS, kept.breaths).add(FINDINGS, kept.findings).add(WHOLE_RUNS, kept.whole_runs)


class _Keeping:
    def __init__(self, store: Store) -> None:
        self._store = store

    def offsets(self, wanted: WantedOffsets) -> OffsetMap:
        from ingest.store.offsets import from_store

        return from_store(self._store, wanted)

    def offset_ticks(self, names: Mapping[str, str], wanted: WantedOffsets, *, full: bool) -> list[OffsetOverview]:
        from ingest.store.offsets import overviews_from_store

        return overviews_from_store(self._store, names, wanted, full=full)

    def breaths(self, question: Question) -> StoredBreaths:
        return breaths_from_store(self._store, question)

    def findings(self, run: str, source: str) -> Story | None:
        from ingest.store.findings import stored_story

        return stored_story(self._store, run, source)

    def whole_runs(self, runs: Collection[str]) -> list[WholeRun]:
        return [
            whole_run
            for run in sorted(runs)
            for whole_run in whole_runs(run, [source.account for source in self._store.sources(run)])
        ]


def breaths_from_store(store: Store, question: Question) -> StoredBreaths:
    """Return the breaths that a store keeps of the runs, hosts, processes and times that a question selects."""
    from ingest.core.breaths import StoredBreaths, only
    from ingest.query.breaths import in_range, selected, together

    records = store.runs()
    key = selected(question, {record.run: dict(record.labels) for record in records})
    parts = []
    for record in selected_records(records, question.runs):
        kept = in_range(store.breaths(record.run), question, record.run, record.start_ns)
        parts.append(StoredBreaths(only(kept.windows, key), only(kept.sample, key)))
    return together(parts)
