"""Runs whose logs were added up before they were stored (`load --add-up job`): what they can be asked, and how that is said.

The labels that were added up are empty in such a run. A question that names them in `where` is refused; one that groups by them
has one group, and says so. All other questions have the same answer as without `--add-up`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ingest.core.errors import StoreError, UsageError, listed
from ingest.store.records import RunRecord

ADD_UP = "add_up"  # a parameter of the run
MEMBERS = "members"  # in the account of a source that is several logs
LABELS = ("volume", "job", "process", "tag")  # what can be added up: a host stays a host


def added_up(record: RunRecord) -> tuple[str, ...]:
    """Return the labels whose values were added up when the run was loaded."""
    return tuple(record.parameters.get(ADD_UP) or ())


def logs_in(account: Mapping[str, Any]) -> int:
    """Return how many logs a source is, by its account."""
    return len(account.get(MEMBERS, (account,)))


def option_of(labels: Iterable[str]) -> str:
    """Return the option of a load that adds up these labels, in words where there is none."""
    named = ",".join(labels)
    return f"--add-up {named}" if named else "no --add-up"


def check_same(known: RunRecord, new: RunRecord) -> None:
    """Raise StoreError where a load would mix logs that were added up with logs that were not: samples would count twice."""
    before, now = added_up(known), added_up(new)
    if before != now:
        raise StoreError(
            f"{known.run} was loaded with {option_of(before)}, this load has {option_of(now)}: use the same, or another --run, "
            f"or remove the run first (tailboard runs delete '{known.run}')"
        )


def check_asked(records: Iterable[RunRecord], where: Mapping[str, str]) -> None:
    """Raise UsageError where a question selects by a label that was added up in one of the runs."""
    for record in records:
        if labels := [label for label in added_up(record) if label in where]:
            raise UsageError(f"--where {labels[0]}: {_lost(record, labels)}")


def sentences(records: Iterable[RunRecord], by: Iterable[str]) -> Iterator[str]:
    """Yield a sentence on each run that is grouped by labels that were added up in it."""
    named = set(by)
    for record in records:
        if labels := [label for label in added_up(record) if label in named]:
            yield f"--by {','.join(labels)}: {_lost(record, labels)}"


def lost(record: RunRecord) -> str:
    """Return what tables and panels of threads cannot show of a run, empty where all labels are there."""
    labels = added_up(record)
    return f"{_several(labels)} of each host, before they were stored: panels of threads show them as one" if labels else ""


def _several(labels: Iterable[str]) -> str:
    return listed([f"{label}s" if label != "process" else "processes" for label in labels])


def _lost(record: RunRecord, labels: Iterable[str]) -> str:
    """Return the sentence about labels that a run cannot be asked by."""
    return (
        f"{record.run} was loaded with {option_of(added_up(record))}, so its {_several(labels)} are one; "
        "to ask for them, load the logs without --add-up as another --run"
    )
