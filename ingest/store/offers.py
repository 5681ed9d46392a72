"""What every store that keeps documents offers beyond the protocol; the code of each is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ingest.core.whole_runs import WholeRun, whole_runs
from ingest.query.origin import BREATHS, FINDINGS, OFFSET_TICKS, OFFSETS, WHOLE_RUNS, Offers

if TYPE_CHECKING:
    from ingest.core.breaths import Kept
    from ingest.query.findings.model import Story
    from ingest.query.offsets.counts import Wanted
    from ingest.query.offsets.map import OffsetMap
    from ingest.query.offsets.overview import OffsetOverview
    from ingest.query.question import Question
    from ingest.store import Store


def offers_of(store: Store) -> Offers:
    """Return the capabilities of a store that keeps offsets, breaths and the accounts of its sources."""
    kept = _Keeping(store)
    offers = Offers().add(OFFSETS, kept.offsets).add(OFFSET_TICKS, kept.offset_ticks)
    return offers.add(BREATHS, kept.breaths).add(FINDINGS, kept.findings).add(WHOLE_RUNS, kept.whole_runs)


class _Keeping:
    def __init__(self, store: Store) -> None:
        self._store = store

    def offsets(self, wanted: Wanted) -> OffsetMap:
        from ingest.store.offsets import from_store

        return from_store(self._store, wanted)

    def offset_ticks(self, names: Mapping[str, str], wanted: Wanted, *, full: bool) -> list[OffsetOverview]:
        from ingest.store.offsets import overviews_from_store

        return overviews_from_store(self._store, names, wanted, full=full)

    def breaths(self, question: Question) -> Kept:
        from ingest.store.breaths import from_store

        return from_store(self._store, question)

    def findings(self, run: str, source: str) -> Story | None:
        from ingest.store.findings import kept_story

        return kept_story(self._store, run, source)

    def whole_runs(self, runs: Collection[str]) -> list[WholeRun]:
        return [
            whole_run
            for run in sorted(runs)
            for whole_run in whole_runs(run, [source.account for source in self._store.sources(run)])
        ]
