"""How far shown latencies may lie from the recorded ones: one rule for every table, page and picture.

The bound of an answer is the largest of the bins that carry what is shown, not that of their layout: HdrHistogram's first bins
are as wide as its lowest discernible value (16 us in logs of jHiccup), whatever share of a short latency that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Int, Intervals
from ingest.core.labels import Group
from ingest.core.layout import MIDPOINT, Float, Layout
from ingest.core.quantiles import Percentile, Ranked
from ingest.core.values import Value

MOST_SHARE = 1.0
ONE_NUMBER = 0.05  # a range of bins of several layouts that is as narrow as this share is shown as one number: its upper end


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Precision(Value):
    """The largest distance of a shown latency from the recorded one: `share` of the recorded latency.

    Never below the nominal error of the layout, though some bins are nearer: it is then the same for all runs of a tool.
    Where a share would say nothing, because it would be more than all of it, shown latencies up to `low_ns` may be off by
    `off_ns`; both are 0 where no such bin carries the answer. What lies in an open last bin has no bound: it is shown as `>=`.
    """

    share: float = 0.0
    low_ns: int = 0
    off_ns: int = 0


def together(precisions: Iterable[Precision | None]) -> Precision | None:
    """Return the precision of several tables as one."""
    known = [(precision.share, precision.low_ns, precision.off_ns) for precision in precisions if precision is not None]
    return Precision(*map(max, zip(*known, strict=True))) if known else None


def precision_of(parts: Iterable[Intervals[Group]], percentiles: Sequence[Percentile]) -> Precision | None:
    """Return the precision of percentiles of all rows, None where no row has bins."""
    filled = [part.take(np.flatnonzero(part.samples > 0)) for part in parts]
    return together(precision_in(Ranked(rows), percentiles) for rows in filled)


def precision_in(ranked: Ranked, percentiles: Sequence[Percentile], *, interpolate: bool = False) -> Precision | None:
    """Return the precision of percentiles of rows, none of them empty; None where they have no bins.

    An exact maximum, which is p100, is carried by no bin. Of rows that hold bins of several layouts what is shown is the upper
    end of a range: it is off by as much as the range is wide.
    """
    rows = ranked.rows
    if not rows.layout.has_bins:
        return None
    samples = ranked.samples if rows.completions is None else rows.completions
    carrying: list[Int] = [rows.bins[:0]]
    ranges: list[Precision] = []
    for percentile in percentiles:
        known = percentile.top == 100 * percentile.bottom and rows.exact is not None
        if rows.completions is None and not known:
            picked, ranks, entries = ranked.carrying(percentile)
        else:
            carried = percentile.carried(samples)
            if known and rows.exact is not None:
                carried = carried & ~rows.exact.known_max
            picked = np.flatnonzero(carried)
            ranks = percentile.ranks(ranked.samples[picked])
            entries = ranked.entries(picked, ranks)
        unlike = ranked.mixed[picked]
        carrying.append(rows.bins[entries[~unlike]])
        ranges.append(of_ranges(ranked, picked[unlike], ranks[unlike]))
    return together((of_bins(rows.layout, np.concatenate(carrying), interpolate=interpolate), *ranges))


def precision_from(parts: Iterable[Intervals[Group]], lowest: Percentile | None = None) -> Precision | None:
    """Return the precision of every percentile from `lowest` on (None: of all bins that hold samples, and of their means)."""

    def held(ranked: Ranked) -> Precision | None:
        rows = ranked.rows
        every, row = np.arange(len(rows)), rows.row
        least = np.ones(len(rows), np.int64) if lowest is None else lowest.ranks(ranked.samples)
        of_each = np.arange(len(rows.bins)) >= np.repeat(ranked.entries(every, least), np.diff(rows.indptr))
        own = of_bins(rows.layout, np.unique(rows.bins[of_each & (~ranked.mixed[row] | (lowest is None))]))
        mixed = np.flatnonzero(of_each & ranked.mixed[row])
        ranks = ranked.total[mixed] - ranked.total[rows.indptr[row[mixed]]] + 1  # the lowest that each entry holds
        return together((own, of_ranges(ranked, row[mixed], np.maximum(ranks, least[row[mixed]]))))

    filled = [part.take(np.flatnonzero(part.samples > 0)) for part in parts if part.layout.has_bins]
    return together(held(Ranked(rows)) for rows in filled)


def of_ranges(ranked: Ranked, picked: Int, ranks: Int) -> Precision:
    """Return the precision of the upper ends of the ranges of ranks in picked rows; those without an upper end have none."""
    if not len(picked):
        return Precision()
    low, high = ranked.between(picked, ranks)
    low, high = low[closed := high < np.inf], high[closed]
    return _widest(high - low, np.divide(high - low, low, out=np.where(high > low, np.inf, 0.0), where=low > 0), high, 0.0)


def of_bins(layout: Layout, bins: Int, *, interpolate: bool = False) -> Precision:
    """Return the precision of what bins report; with `interpolate` of any value within them."""
    if layout.open_ended:
        bins = bins[~layout.opened(bins)]
    nominal = float(layout.error) * (2 if interpolate and layout.reports == MIDPOINT else 1) if layout.even else 0.0
    if not len(bins):
        return Precision(nominal)
    distances, errors = layout.errors_of(bins)
    if interpolate:
        low, high = layout.lowest_of(bins), layout.upper[bins]
        distances = high - low
        errors = np.divide(distances, low, out=np.full(len(bins), np.inf), where=low > 0)
    return _widest(distances, errors, layout.upper[bins], nominal)


def _widest(distances: NDArray[Any], errors: Float, upper: NDArray[Any], nominal: float) -> Precision:
    wide = errors > MOST_SHARE
    return Precision(
        float(errors[~wide].max(initial=nominal)), int(upper[wide].max(initial=0)), int(distances[wide].max(initial=0))
    )
