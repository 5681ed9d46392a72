"""Held against the tool's own summary: counts and percentiles as fio printed them, and as they were read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ingest.core.intervals import Histogram, one_row
from ingest.core.labels import MIXED
from ingest.core.quantiles import parse_percentiles, percentile_values
from ingest.core.units import fine_latency
from ingest.read.context import Summary
from ingest.read.fio.clock import STAGED
from ingest.read.format_names import HIST, RAW
from ingest.read.sources import COMPLETION, Source

Line = tuple[str, str, str]


def reconciled(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a line per run, op and kind: "fio says N = 900, p99 = 4.23 ms; tailboard 900, 4.23 ms".

    Both sides are of the same jobs: logs of which fio's JSON says nothing are left out, logs whose sum it says are added up,
    and a job is counted once where its histogram log and its raw log are both read. Where fio counted all ops together
    (unified_rw_reporting), so are the logs.
    """
    kept = [source for source in sources if source.format in (HIST, RAW)]
    summed = {path for source in kept for path in source.context.siblings}
    lines: dict[Line, _Compared] = {}
    for source in kept:
        if not source.context.jobs and source.path not in summed:
            continue
        series, totals = source.context.series, source.context.account.totals
        for place, job in enumerate(source.context.jobs):
            owner = (series.host, series.volume, series.job, series.process, place)
            for (op, kind), summary in job.items():
                if kind == series.kind and op not in source.context.shadowed:
                    lines.setdefault((series.run, op, kind), _Compared()).theirs[owner] = summary
        for op, total in totals.items():
            lines.setdefault((series.run, op, series.kind), _Compared()).ours.append(total)
    for (run, op, kind), line in sorted(_together(lines).items()):
        if line.theirs and line.ours:
            word = "" if kind == COMPLETION else f" {kind}"
            theirs, count = tuple(line.theirs.values()), sum(int(total.counts.sum()) for total in line.ours)
            said = f"fio says N = {sum(summary.count for summary in theirs)}{_printed_p99(theirs)}"
            ours = f", {p99}" if (p99 := _p99(line.ours)) else ""
            yield f"{run} {op}{word}: {said}; tailboard {count}{ours}"


@dataclass(slots=True)
class _Compared:
    """What a line of `reconciled` compares: fio's summaries by job, and what was read."""

    theirs: dict[tuple[str | int, ...], Summary] = field(default_factory=dict)
    ours: list[Histogram] = field(default_factory=list)


def _together(lines: Mapping[Line, _Compared]) -> dict[Line, _Compared]:
    """Return the lines with all ops of a run and kind as one where fio counted any of them together."""
    mixed = {(run, kind) for (run, op, kind), line in lines.items() if op == MIXED and line.theirs}
    combined: dict[Line, _Compared] = {}
    for (run, op, kind), line in lines.items():
        into = combined.setdefault((run, MIXED if (run, kind) in mixed else op, kind), _Compared())
        into.theirs.update({(op, *owner): summary for owner, summary in line.theirs.items()})
        into.ours.extend(line.ours)
    return combined


def _printed_p99(summaries: Sequence[Summary]) -> str:
    """Return fio's own p99: as printed for one job, from its bins for several."""
    if len(summaries) == 1:
        printed = {float(text): value for text, value in summaries[0].percentiles}
        return f", p99 = {fine_latency(printed[99.0])}" if 99.0 in printed else ""  # the percentile's name
    bins = [summary.bins for summary in summaries if summary.bins is not None]
    return f", p99 = {_p99(bins)} (of its bins)" if len(bins) == len(summaries) else ""


def _p99(histograms: Sequence[Histogram]) -> str:
    filled = [histogram for histogram in histograms if len(histogram.bins)]
    layouts = {histogram.layout for histogram in filled}
    if len(layouts) != 1:
        return ""
    layout = layouts.pop()
    dense = np.zeros(layout.bins, np.int64)
    for histogram in filled:
        dense[histogram.bins] += histogram.counts
    bins = np.flatnonzero(dense)
    rows = one_row(layout, (), (0, 0), bins, dense[bins])
    value = float(percentile_values(rows, parse_percentiles("99")[0])[0])
    return fine_latency(value) if value == value else ""  # noqa: PLR0124  # NaN


def skew(sources: Iterable[Source]) -> Iterator[str]:
    """Yield a line per run with the spread of time zeros, the part of the clock error that can be seen."""
    zeros: dict[str, list[int]] = {}
    for source in sources:
        if source.context.zero.epoch_ns is not None and source.context.zero.origin not in STAGED:
            zeros.setdefault(source.context.series.run, []).append(source.context.zero.epoch_ns + source.context.offset_ns)
    for run, of_run in sorted(zeros.items()):
        if len(of_run) > 1:
            spread = (max(of_run) - min(of_run)) / 1e6
            yield f"{run}: starts of {len(of_run)} sources lie within {spread:.0f} ms (clock skew and start-up together)"
