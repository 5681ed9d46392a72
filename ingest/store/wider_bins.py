"""Wider bins for runs that are kept long: neighbouring bins added up, as windows are by a coarser step.

    fio             --coarseness 3    8 bins are one, as with fio's log_hist_coarseness=3
    HdrHistogram    --digits 2        as if recorded with 2 significant digits

Each edge of the wider bins is one of the finer bins, so every count goes where a recording in wider bins would have put it:
adding up is exact. What a percentile may be off by grows, and every answer says by how much. Exact minima, maxima and sums stay.
Bins that are as wide already stay as they are, and so do offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ingest.core.bins import Layout
from ingest.core.dataclass import dataclass
from ingest.core.errors import StoreError, UsageError
from ingest.core.layout import HIGHEST, MIDPOINT, LogLinear, hdr_half
from ingest.store.records import COMPLETE, RunRecord

BINS, BINS_COARSENING = "coarsened_bins", "coarsening_bins"
MOST_DIGITS, MOST_COARSENESS = 4, 6


@dataclass(frozen=True, slots=True)
class WiderBins:
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
        return " ".join(f"--{name} {value}" for name, value in self.told().items())

    def told(self) -> dict[str, int]:
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
        return wider if layout.nests_in(wider) else layout

    def within(self, other: WiderBins) -> WiderBins:
        """Return the bins of a run that had these and is coarsened to `other`: the wider of both."""
        digits = [value for value in (self.digits, other.digits) if value is not None]
        coarseness = [value for value in (self.coarseness, other.coarseness) if value is not None]
        return WiderBins(min(digits, default=None), max(coarseness, default=None))


@dataclass(frozen=True, slots=True)
class Widened:
    """A coarsening of bins that is done: how many documents were changed, and how many bins they held before and hold now."""

    run: str
    documents: int
    before: int
    after: int


def of_run(record: RunRecord, name: str = BINS) -> WiderBins:
    """Return to what the bins of a run were coarsened, or are being coarsened (`BINS_COARSENING`)."""
    return told_bins(record.parameters.get(name))


def told_bins(stored: Mapping[str, Any] | None) -> WiderBins:
    """Return what `told` gave."""
    return WiderBins(**{name: int(value) for name, value in (stored or {}).items()})


def layout_shown(record: RunRecord, layout: Layout) -> Layout:
    """Return the bins that a series of a run is answered in: while they are being coarsened documents hold both, so the wider."""
    return of_run(record, BINS_COARSENING).of(layout)


def check_widened(record: RunRecord, bins: WiderBins) -> None:
    """Raise UsageError where nothing is asked for, StoreError while the run is not complete."""
    if bins == WiderBins():
        raise UsageError("give --step, --digits or --coarseness")
    if record.state != COMPLETE:
        raise StoreError(f"{record.run} is not complete: load it to its end before it is coarsened")


def command_of(record: RunRecord) -> str:
    """Return the command that completes a coarsening of bins that was cut off."""
    return f"tailboard runs coarsen '{record.run}' {of_run(record, BINS_COARSENING)}"


def lost(record: RunRecord, before: int, after: int) -> str:
    """Return the sentence about a coarsening whose bins hold other samples than those before: it stops there."""
    return (
        f"{record.run} holds {before:,} samples in the bins before and {after:,} in the wider ones, or different ones in some "
        "series: run the same command again, and if that does not help, load the run anew with --replace"
    )
