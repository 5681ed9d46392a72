"""Which runs of a store a question is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from ingest.core.errors import InputError, StoreError, listed
from ingest.core.series import LABELS, RunLabels, Series, label_of, run_matches
from ingest.query.clocks import left_out
from ingest.query.question import Question
from ingest.store.records import UNKNOWN_ZERO, RunRecord


def chosen_records(records: Sequence[RunRecord], globs: Sequence[str], where: Mapping[str, str] | None = None) -> list[RunRecord]:
    """Return the records that a question names, also by labels of runs in `where`.

    StoreError where there is none at all, InputError where none matches by name.
    """
    if not records:
        raise StoreError("the store holds no run yet: tailboard load PATH --run NAME")
    chosen = [record for record in records if run_matches(record.run, globs)]
    of_runs = {name: glob for name, glob in (where or {}).items() if name == "run" or name not in LABELS}
    labels = {record.run: record.labels for record in chosen}
    if of_runs:
        fits = [one for one in chosen if _fits(one.run, of_runs, labels)]
        chosen = fits or chosen
    if not chosen:
        raise InputError(f"no run matches {' '.join(globs)}; there are {listed(record.run for record in records)}")
    return chosen


def _fits(run: str, where: Mapping[str, str], labels: RunLabels) -> bool:
    return all(fnmatchcase(label_of(Series(run=run), name, labels), glob) for name, glob in where.items())


def on_one_clock(records: Sequence[RunRecord], question: Question) -> tuple[list[RunRecord], list[RunRecord]]:
    """Return the runs that an answer is about, and the undated ones that it leaves out beside them."""
    apart = left_out(question, {record.run: record.zero == UNKNOWN_ZERO for record in records})
    return [one for one in records if one.run not in apart], [one for one in records if one.run in apart]
