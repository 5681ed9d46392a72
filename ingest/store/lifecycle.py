"""Runs that are kept long: windows added up to a larger step (coarsening), neighbouring bins added up (coarser bins).

Wider bins for runs that are kept long: neighbouring bins added up, as windows are by a coarser step.

    fio             --coarseness 3    8 bins are one, as with fio's log_hist_coarseness=3
    HdrHistogram    --digits 2        as if recorded with 2 significant digits

Each edge of the wider bins is one of the finer bins, so every count goes where a recording in wider bins would have put it:
adding up is exact. What a percentile may be off by grows, and every answer says by how much. Exact minima, maxima and sums stay.
Bins that are as wide already stay as they are, and so do offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ingest.core.errors import StoreError, UsageError
from ingest.core.grid import STEPS
from ingest.core.layout import HIGHEST, MIDPOINT, Layout, LogLinear, hdr_half
from ingest.core.units import format_duration
from ingest.store.coverage import check_same
from ingest.store.records import COMPLETE, DELETING, RunRecord, SourceRecord

BINS, BINS_COARSENING = "coarsened_bins", "coarsening_bins"
MOST_DIGITS, MOST_COARSENESS = 4, 6


@dataclass(frozen=True, slots=True)
class CoarserBins:
    """How wide bins are to be: of HdrHistogram in significant digits, of fio in its coarseness; None leaves them as they are."""

    digits: int | None = None
    coarseness: int | None = None

    def __post_init__(self) -> None:
        if self.digits is not None and not 0 <= self.digits <= MOST_DIGITS:
            raise UsageError(f"--digits is 0 to {MOST_DIGITS}, not {self.digits}")
        if self.coarseness is not None and not 1 <= self.coarseness <= MOST_COARSENESS:
            raise UsageError(f"--coarseness is 1 to {MOST_COARSENESS}, not {self.coarseness}")

    def __str__(self) -> str:
        """Return the options that name it."""
        return " ".join(f"--{name} {value}" for name, value in self.to_dict().items())

    def to_dict(self) -> dict[str, int]:
        """Return plain values, as `of_run` reads them."""
        values = {"digits": self.digits, "coarseness": self.coarseness}
        return {name: value for name, value in values.items() if value is not None}

    def of(self, layout: Layout) -> Layout:
        """Return the layout that counts in `layout` go to; itself where it is as wide already, or of another family."""
        wider = layout
        if not isinstance(layout, LogLinear):
            return layout
        if layout.reports == MIDPOINT and self.coarseness is not None:
            wider = replace(layout, coarseness=max(layout.coarseness, self.coarseness))
        elif layout.reports == HIGHEST and self.digits is not None and layout.fine % layout.half == 0:
            half = min(layout.half, hdr_half(self.digits))
            octaves = layout.fine // layout.half + (layout.half // half).bit_length() - 1
            wider = replace(layout, half=half, fine=octaves * half)
        return layout if wider is layout or not layout.nests_in(wider) else wider

    def within(self, other: CoarserBins) -> CoarserBins:
        """Return the bins of a run that had these and is coarsened to `other`: the wider of both."""
        digits = [value for value in (self.digits, other.digits) if value is not None]
        coarseness = [value for value in (self.coarseness, other.coarseness) if value is not None]
        return CoarserBins(min(digits, default=None), max(coarseness, default=None))


@dataclass(frozen=True, slots=True)
class Widened:
    """A coarsening of bins that is done: how many documents were changed, and how many bins they held before and hold now."""

    run: str
    documents: int
    before: int
    after: int


def of_run(record: RunRecord, name: str = BINS) -> CoarserBins:
    """Return to what the bins of a run were coarsened, or are being coarsened (`BINS_COARSENING`)."""
    return CoarserBins(**{option: int(value) for option, value in (record.parameters.get(name) or {}).items()})


def layout_shown(record: RunRecord, layout: Layout) -> Layout:
    """Return the bins that a series of a run is answered in: while they are being coarsened documents hold both, so the wider."""
    return of_run(record, BINS_COARSENING).of(layout)


def check_widened(record: RunRecord, bins: CoarserBins) -> None:
    """Raise UsageError where nothing is asked for, StoreError while the run is not complete."""
    if bins == CoarserBins():
        raise UsageError("give --step, --digits or --coarseness")
    if record.state != COMPLETE:
        raise StoreError(f"{record.run} is not complete: load it to its end before it is coarsened")


def command_of(record: RunRecord) -> str:
    """Return the command that completes a coarsening of bins that was cut off."""
    return f"tailboard runs coarsen '{record.run}' {of_run(record, BINS_COARSENING)}"


def coarser_bins_lost(record: RunRecord, before: int, after: int) -> str:
    """Return the sentence about a coarsening whose bins hold other samples than those before: it stops there."""
    return (
        f"{record.run} holds {before:,} samples in the bins before and {after:,} in the wider ones, or different ones in some "
        "series: run the same command again, and if that does not help, load the run anew with --replace"
    )


# Coarsening: the windows of a run added up to a larger step, for data that is kept long and looked at rarely.
#
# Adding windows up is exact: every count of every bin stays, and a question at the larger step has the same answer before and
# after. What is finer than the new step is gone for good. Offsets keep their seconds.
#
# A run remembers the step that it was loaded with (`COARSENED`): rows that were added now would be cut at another grid than
# those that are there, so a later load may repeat what it holds, or replace all of it, and nothing else.


COARSENED, COARSENING = "coarsened_from_ns", "coarsening_to_ns"
FORCED = "forced"  # what a load was told to do all the same
STEP_TOLD = "step_told"  # the step of the run is one that its first load was told, and not the one that rows suggest
NOT_OF_READING = (COARSENED, COARSENING, BINS, BINS_COARSENING, STEP_TOLD)
AS_LOADED = "as loaded"


def step_in(record: RunRecord, step_ns: int) -> int:
    """Return how wide the windows of a source of a run are that keeps `step_ns` (0: none) as its own: coarsened all are alike."""
    return record.step_ns if COARSENED in record.parameters or not step_ns else step_ns


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


def grid_of(record: RunRecord) -> str:
    """Return for people how a run's windows and bins came to their widths: as loaded, or coarsened from or to which."""
    before, bins = record.parameters.get(COARSENED), of_run(record)
    windows = [f"coarsened from {format_duration(int(before))}"] if before else []
    return ", ".join([*windows, *([f"bins coarsened ({bins})"] if bins != CoarserBins() else [])]) or AS_LOADED


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


def coarsening_lost(record: RunRecord, step_ns: int, before: int, after: int) -> str:
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
    _check_meaning(known, run)


def check_replaceable(known: RunRecord, run: RunRecord, sources: Iterable[SourceRecord], there: Mapping[str, int]) -> None:
    """Raise StoreError where a load anew would give documents another meaning that it does not replace.

    `sources` are those that it reads, `there` the generations of all that the run has by now: one that is not read is kept, and
    one that another load reads in the same generation, at the same time, is written by both.
    """
    above = {source.source for source in sources if source.generation > there.get(source.source, 0)}
    if not there.keys() <= above:
        _check_meaning(known, run)


def _check_meaning(known: RunRecord, run: RunRecord) -> None:
    told = {name: value for name, value in run.parameters.items() if name in OF_LOGS and name not in known.parameters}
    for name, of in MEANING.items():
        if of(replace(known, parameters={**known.parameters, **told})) != of(run):
            raise StoreError(f"{run.run} is being loaded with another {name}: use --replace to load it anew")


def moved_step(run: RunRecord, step_ns: int) -> str:
    """Return the sentence for a load that was planned for `run` and finds that it has another step by now."""
    then, now = format_duration(run.step_ns), format_duration(step_ns)
    return f"{run.run} is being loaded with another step, {now} and not {then}: use --replace to load it anew"


# What documents of a run mean depends on its record: all loads of it have these facts alike, or one replaces all of it.


COLUMNS = "columns"
OF_LOGS = ("t0", "recorded_unit_ns", "digits", "prefer", "fio_version", "tsc_hz")


def of_reading(record: RunRecord) -> dict[str, Any]:
    """Return the options of reading that all loads of a run share; a description is that of files of one layer."""
    return {name: value for name, value in record.parameters.items() if name not in (*NOT_OF_READING, COLUMNS)}


MEANING: Mapping[str, Callable[[RunRecord], Any]] = {
    "step": lambda record: format_duration(record.step_ns),
    "attribution": lambda record: record.attribution,
    "start of the run": lambda record: "unknown" if record.relative else "known",
    "reading options": of_reading,
    "grid": grid_of,
}
