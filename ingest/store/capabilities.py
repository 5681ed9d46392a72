"""What every store that keeps documents offers beyond the protocol; the code of each is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ingest.core.coverage import WholeRun, whole_runs
from ingest.query.origin import BREATHS, FINDINGS, OFFSET_TICKS, OFFSETS, WHOLE_RUNS, Capabilities
from ingest.query.question import Question
from ingest.store.records import selected_records

if TYPE_CHECKING:
    from ingest.core.breaths import StoredBreaths
    from ingest.store import Store


def capabilities_of(store: Store) -> Capabilities:
    """Return the capabilities of a store that keeps offsets, breaths and the accounts of its sources."""
    offers = Capabilities().later(OFFSETS, "ingest.store.offsets.from_store", store)
    offers.later(OFFSET_TICKS, "ingest.store.offsets.overviews_from_store", store)
    offers.later(BREATHS, "ingest.store.capabilities.breaths_from_store", store)
    offers.later(WHOLE_RUNS, "ingest.store.capabilities.whole_runs_from_store", store)
    return offers.later(FINDINGS, "ingest.store.findings.stored_story", store)


def whole_runs_from_store(store: Store, runs: Collection[str]) -> list[WholeRun]:
    """Return what the tools themselves report of whole runs, by the accounts that a store keeps of its sources."""
    return [whole for run in sorted(runs) for whole in whole_runs(run, [source.account for source in store.sources(run)])]


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
