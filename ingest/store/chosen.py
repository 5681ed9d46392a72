"""Which runs of a store a question is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingest.core.errors import InputError, StoreError
from ingest.core.nearest import choices
from ingest.core.series import runs_asked
from ingest.query.clocks import left_out
from ingest.query.question import Question
from ingest.store.records import UNKNOWN_ZERO, RunRecord


def chosen_records(records: Sequence[RunRecord], globs: Sequence[str], where: Mapping[str, str] | None = None) -> list[RunRecord]:
    """Return the records that a question names, also by labels of runs in `where`.

    StoreError where there is none at all, InputError where none matches by name.
    """
    if not records:
        raise StoreError("the store holds no run yet: tailboard load PATH --run NAME")
    labels = {record.run: record.labels for record in records} if where else {}
    named = set(runs_asked((record.run for record in records), globs, where or {}, labels))
    chosen = [record for record in records if record.run in named]
    if not chosen:
        asked = [*globs, *(f"--where {name}={glob}" for name, glob in (where or {}).items())]
        raise InputError(f"no run matches {' '.join(asked)}: {choices(asked[0], (record.run for record in records))}")
    return chosen


def on_one_clock(records: Sequence[RunRecord], question: Question) -> tuple[list[RunRecord], list[RunRecord]]:
    """Return the runs that an answer is about, and the undated ones that it leaves out beside them."""
    apart = left_out(question, {record.run: record.zero == UNKNOWN_ZERO for record in records})
    return [record for record in records if record.run not in apart], [record for record in records if record.run in apart]
