"""Held against the tool's own summary: counts and percentiles as fio printed them, and as they were read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ingest.intervals import Histogram, Intervals
from ingest.ranks import parse_percentiles, percentile_values
from ingest.read.context import Summary
from ingest.read.fio.starts import STAGED
from ingest.read.sources import COMPLETION, HIST, RAW, Source

MS = 1e6


def reconciled(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a line per run, op and kind: "fio says N = 900, p99 = 4.23 ms; tailboard 900, 4.23 ms"."""
    found: dict[tuple[str, str, str], tuple[list[Summary], list[Histogram]]] = {}
    for source in sources:
        if source.format not in (HIST, RAW) or source.context.shadowed:
            continue
        run, ours = source.context.series.run, source.context.series.kind
        word = "" if ours == COMPLETION else f" {ours}"
        for job in source.context.jobs:
            for (op, kind), summary in job.items():
                if kind == ours:
                    found.setdefault((run, op, word), ([], []))[0].append(summary)
        for op, total in source.context.account.totals.items():
            found.setdefault((run, op, word), ([], []))[1].append(total)
    for (run, op, word), (summaries, totals) in sorted(found.items()):
        if summaries and totals:
            theirs, ours = _told(summaries), _ours(totals)
            count = sum(int(total.counts.sum()) for total in totals)
            yield f"{run} {op}{word}: fio says N = {sum(s.count for s in summaries)}{theirs}; tailboard {count}{ours}"


def _told(summaries: Sequence[Summary]) -> str:
    """Return fio's own p99: as printed for one job, from its bins for several."""
    if len(summaries) == 1:
        printed = {float(text): value for text, value in summaries[0].percentiles}
        return f", p99 = {printed[99.0] / MS:.4g} ms" if 99.0 in printed else ""  # the percentile's name
    bins = [summary.bins for summary in summaries if summary.bins is not None]
    return f", p99 = {_p99(bins)} (of its bins)" if len(bins) == len(summaries) else ""


def _ours(totals: Sequence[Histogram]) -> str:
    value = _p99(totals)
    return f", {value}" if value else ""


def _p99(histograms: Sequence[Histogram]) -> str:
    layouts = {histogram.layout for histogram in histograms}
    if len(layouts) != 1:
        return ""
    layout = layouts.pop()
    dense = np.zeros(layout.bins, np.int64)
    for histogram in histograms:
        dense[histogram.bins] += histogram.counts
    bins = np.flatnonzero(dense)
    zero = np.zeros(1, np.int64)
    rows = Intervals(layout, ((),), zero, zero, zero, np.array([0, len(bins)]), bins, dense[bins])
    value = float(percentile_values(rows, parse_percentiles("99")[0])[0])
    return f"{value / MS:.4g} ms" if value == value else ""  # noqa: PLR0124  # NaN


def skew(sources: Iterable[Source]) -> Iterator[str]:
    """Yield a line per run with the spread of time zeros, the part of the clock error that can be seen."""
    zeros: dict[str, list[int]] = {}
    for source in sources:
        if source.context.zero.epoch_ns is not None and source.context.zero.origin not in STAGED:
            zeros.setdefault(source.context.series.run, []).append(source.context.zero.epoch_ns + source.context.offset_ns)
    for run, found in sorted(zeros.items()):
        if len(found) > 1:
            spread = (max(found) - min(found)) / MS
            yield f"{run}: time zeros of {len(found)} sources lie within {spread:.0f} ms (clock skew and start-up together)"
