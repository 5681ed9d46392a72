"""What a store keeps of the breaths of Snabb timelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.core.breaths import Kept, only
from ingest.query.breath_sources import in_range, selected, together
from ingest.query.question import Question
from ingest.store.chosen import chosen_records

if TYPE_CHECKING:
    from ingest.store import Store


def from_store(store: Store, question: Question) -> Kept:
    """Return the breaths that a store keeps of the runs, hosts, processes and times that a question selects."""
    records = store.runs()
    key = selected(question, {record.run: dict(record.labels) for record in records})
    parts = []
    for record in chosen_records(records, question.runs):
        kept = in_range(store.breaths(record.run), question, record.start_ns)
        parts.append(Kept(only(kept.windows, key), only(kept.sample, key)))
    return together(parts)
