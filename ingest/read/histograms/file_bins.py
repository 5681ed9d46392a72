"""Histograms with the bins that a file shows, and with those that all of its histograms have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ingest.core.bins import LAST_NS
from ingest.core.edges import MOST_EDGES, Edges
from ingest.core.errors import counted
from ingest.core.intervals import Int
from ingest.core.series import Series
from ingest.read.context import Context
from ingest.read.histograms.description import HistogramDescription
from ingest.read.histograms.polls import Lost, Poll, Polls, sparse

OPEN = None


@dataclass(frozen=True, slots=True)
class FileBin:
    """A bin as a file has it: the last whole ns below it and its own last one (None: none), and its count."""

    before: int | None
    last: int | None
    count: int


@dataclass(frozen=True, slots=True)
class FileHistogram:
    """A histogram as a file has it."""

    line: int
    series: Series
    start_ns: int | None
    end_ns: int
    bins: Sequence[FileBin]
    total: bool


def in_bins(found: Sequence[FileHistogram], description: HistogramDescription, context: Context, held: Polls) -> None:
    """Add histograms to `held` with the bins that all have in common: by the rule, else of all edges that the file shows."""
    shared: tuple[int, ...] | None = description.rule
    if not shared:
        every = {end for entry in found for one in entry.bins for end in (one.before, one.last) if end is not None}
        shared = tuple(sorted(every)) if len(every) < MOST_EDGES - 1 else None
    known: dict[tuple[tuple[int, ...], bool], tuple[Edges, Int]] = {}
    below = 0
    for entry in found:
        own = tuple(sorted({end for one in entry.bins for end in (one.before, one.last) if end is not None}))
        is_open = description.is_open or any(one.last is OPEN for one in entry.bins)
        whole = shared is not None and (bool(description.rule) or not _cut(entry.bins, shared))
        ends, is_open = (
            (shared or (), is_open or any(one.last is OPEN for entry in found for one in entry.bins)) if whole else (own, is_open)
        )
        try:
            if (ends, is_open) not in known:
                known[ends, is_open] = Edges.of_ends(ends, is_open=is_open)
            layout = known[ends, is_open][0]
            lasts = [layout.edges[-2] if one.last is OPEN else one.last for one in entry.bins]
            below += sum(one.count for last, one in zip(lasts, entry.bins, strict=True) if last < 0)
            places = layout.index(np.array([min(max(last, 0), LAST_NS // 2) for last in lasts], np.int64))
            bins, counts = sparse(places, [one.count if last >= 0 else 0 for last, one in zip(lasts, entry.bins, strict=True)])
            held.add(Poll(entry.line, entry.series, entry.start_ns, entry.end_ns, layout, bins, counts, entry.total))
        except (ValueError, OverflowError) as error:
            held.reject(str(error), entry.line, Lost(entry.series, entry.start_ns, entry.end_ns, total=entry.total))
    if below:
        context.account.note(f"{counted(below, 'value', 'values')} below zero: no latencies, left out")


def _cut(bins: Sequence[FileBin], ends: Sequence[int]) -> bool:
    """Return whether one of the bins with samples has an edge of others inside."""
    below = -1
    for one in bins:
        before = below if one.before is None else one.before
        last = one.last
        below = before if last is None else last
        if one.count and any(before < end < (1 << 62 if last is None else last) for end in ends):
            return True
    return False
