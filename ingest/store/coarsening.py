"""Coarsening: the windows of a run added up to a larger step, for data that is kept long and looked at rarely.

Adding windows up is exact: every count of every bin stays, and a question at the larger step has the same answer before and
after. What is finer than the new step is gone for good. Offsets keep their seconds.

A run remembers the step that it was loaded with (`COARSENED`): rows that were added now would be cut at another grid than
those that are there, so a later load may repeat what it holds, or replace all of it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingest.core.dataclass import dataclass
from ingest.core.errors import StoreError, UsageError
from ingest.core.grid import STEPS
from ingest.core.timing import format_duration
from ingest.store.added_up import check_same
from ingest.store.records import COMPLETE, DELETING, RunRecord
from ingest.store.wider_bins import BINS, BINS_COARSENING, WiderBins, command_of, of_run

COARSENED, COARSENING = "coarsened_from_ns", "coarsening_to_ns"
NOT_OF_READING = (COARSENED, COARSENING, BINS, BINS_COARSENING)
AS_LOADED = "as loaded"


@dataclass(frozen=True, slots=True)
class Coarsened:
    """A coarsening that is done: the step of the run before and now in ns, and how many documents it had and has."""

    run: str
    from_ns: int
    to_ns: int
    before: int
    after: int


def check_step(step_ns: int) -> None:
    """Raise UsageError unless runs are stored at such a step."""
    if step_ns not in STEPS:
        steps = ", ".join(format_duration(step) for step in STEPS)
        raise UsageError(f"{format_duration(step_ns)} cannot be a stored step: choose one of {steps}")


def check_coarser(record: RunRecord, step_ns: int) -> None:
    """Raise UsageError unless the step is a larger multiple of the run's, StoreError while the run is not complete."""
    check_step(step_ns)
    if step_ns <= record.step_ns or step_ns % record.step_ns:
        now, asked = format_duration(record.step_ns), format_duration(step_ns)
        raise UsageError(f"{record.run} is stored at {now}: {asked} is not a larger multiple of that")
    if record.state != COMPLETE:
        raise StoreError(f"{record.run} is not complete: load it to its end before it is coarsened")


Grid = tuple[int, Any, Any]


def grid_in(step_ns: int, parameters: Mapping[str, Any]) -> Grid:
    """Return what answers over windows and bins of a run depend on: its step, and how its bins were or are being coarsened."""
    return step_ns, parameters.get(BINS), parameters.get(BINS_COARSENING)


def grid_of(record: RunRecord) -> str:
    """Return for people how a run's windows and bins came to their widths: as loaded, or coarsened from or to which."""
    before, bins = record.parameters.get(COARSENED), of_run(record)
    windows = [f"coarsened from {format_duration(int(before))}"] if before else []
    return ", ".join([*windows, *([f"bins coarsened ({bins})"] if bins != WiderBins() else [])]) or AS_LOADED


def unfinished(record: RunRecord) -> str:
    """Return a sentence about a deletion or a coarsening that is under way or was cut off, empty where there is none."""
    if record.state == DELETING:
        return f"{record.run} is being deleted, or its deletion was cut off: tailboard runs delete '{record.run}' completes it"
    if BINS_COARSENING in record.parameters:
        return f"the bins of {record.run} are being coarsened, or that was cut off: {command_of(record)} completes it"
    step = record.parameters.get(COARSENING)
    if not step:
        return ""
    command = f"tailboard runs coarsen '{record.run}' --step {format_duration(int(step))}"
    return f"{record.run} is being coarsened, or its coarsening was cut off: {command} completes it"


def lost(record: RunRecord, step_ns: int, before: int, after: int) -> str:
    """Return the sentence about a coarsening whose windows hold other samples than those before: it stops there."""
    then, now = format_duration(record.step_ns), format_duration(step_ns)
    return (
        f"{record.run} holds {before:,} samples at {then} and {after:,} at {now}, or different ones in some series: nothing "
        "was deleted; run the same command again, and if that does not help, load the run anew with --replace"
    )


def check_addable(record: RunRecord, sources: int) -> None:
    """Raise StoreError where `sources` would be added to a run that is coarsened."""
    if sentence := unfinished(record):
        raise StoreError(sentence)
    if sources and (grid := grid_of(record)) != AS_LOADED:
        if COARSENED in record.parameters:
            then, now = format_duration(int(record.parameters[COARSENED])), format_duration(record.step_ns)
            grid = f"coarsened from {then} to {now}"
        raise StoreError(
            f"{record.run} was {grid}, and {sources} of these sources are new to it or have grown: "
            "load them as another --run, or use --replace with all sources to load it anew"
        )


def check_joinable(known: RunRecord, run: RunRecord, sources: int) -> None:
    """Raise StoreError where a load that was planned for `run` would write into a run that is another by now."""
    if known.step_ns != run.step_ns:
        raise StoreError(moved_step(run, known.step_ns))
    check_same(known, run)
    check_addable(known, sources)


def moved_step(run: RunRecord, step_ns: int) -> str:
    """Return the sentence for a load that was planned for `run` and finds that it has another step by now."""
    then, now = format_duration(run.step_ns), format_duration(step_ns)
    return f"{run.run} is being loaded with another step, {now} and not {then}: use --replace to load it anew"
