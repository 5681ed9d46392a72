"""Held against the tool's own summary: what fio states of each source, and counts and percentiles as printed and as read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ingest.core.coverage import Missing, labels_of
from ingest.core.errors import as_text
from ingest.core.intervals import Histogram, one_row
from ingest.core.labels import MIXED, in_layer
from ingest.core.quantiles import parse_percentiles, percentile_values
from ingest.core.stated import Counted, Stated, disagreements
from ingest.core.units import fine_latency
from ingest.read.context import Summary
from ingest.read.fio.clock import STAGED
from ingest.read.format_names import HIST, RAW
from ingest.read.sources import COMPLETION, Source

# What fio states of the jobs of each source, for the gate (see core/stated.py).


def stated_of(source: Source) -> list[Stated]:
    """Return what fio counts of the jobs that a source holds, or shares a sum of: of its kind, and of ops that it is taken for.

    Of a log of a job that fio's JSON beside it does not tell of, it counts nothing.
    Of a log that is still written, of a part of a file, and where a reset (latency_target) made fio count anew, nothing is held
    against what fio says in the end.
    """
    context, series = source.context, source.context.series
    if source.format not in (HIST, RAW) or context.upto is not None or context.part or "latency_target" in context.options:
        return []
    begin = None if context.zero.epoch_ns is None else context.zero.epoch_ns + context.offset_ns
    end = None if begin is None else begin + context.restart_ns + context.runtime_ns
    kind = in_layer(series.kind, context.layer) if context.layer else series.kind
    own = labels_of(series.replaced(kind=kind), unknown=("job",) if context.group else ())
    if context.of_no_entry:
        path = as_text(source.path)
        return [Stated(path, own, MIXED, 0, 0, 0, from_ns=None, to_ns=None, path=path)]
    told = (item for job in context.jobs or context.group for item in job.items())
    return [
        Stated(
            entry=summary.entry,
            labels=own if op == MIXED else {**own, "op": op},
            op=op,
            count=summary.count,
            low_ns=summary.min_ns,
            high_ns=summary.max_ns,
            from_ns=begin,
            to_ns=end,
            path=as_text(source.path),
        )
        for (op, kind_of), summary in told
        if kind_of == series.kind and op not in context.shadowed
    ]


def counted_in(source: Source) -> Counted:
    """Return what the gate knows of a source that was read."""
    account = source.context.account
    return Counted({op: int(total.counts.sum()) for op, total in account.totals.items()}, stated_of(source), account.missing)


def disagreements_in(sources: Iterable[Source], read: Collection[int]) -> list[Missing]:
    """Return what files hold fewer or more samples of than their tools state; `read` are the ids of those that were read."""
    by_run: dict[str, list[Counted]] = {}
    for source in sources:
        own = counted_in(source) if id(source) in read else Counted(None, stated_of(source))
        by_run.setdefault(source.context.series.run, []).append(own)
    return [entry for of_run in by_run.values() for entry in disagreements(of_run)]


Line = tuple[str, str, str]


def reconciled(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a line per run, op and kind: "fio says N = 900, p99 = 4.23 ms; tailboard 900, 4.23 ms".

    Both sides are of the same jobs: logs of which fio's JSON says nothing are left out, and each entry of it is one, however many
    logs share it. Where fio counted all ops together (unified_rw_reporting), so are the logs.
    """
    lines: dict[Line, _Compared] = {}
    for source in sources:
        context, series = source.context, source.context.series
        entries = {} if context.of_no_entry else {entry.entry: entry for entry in stated_of(source)}
        summaries = {summary.entry: summary for job in context.jobs or context.group for summary in job.values()}
        for name, entry in entries.items():
            lines.setdefault((series.run, entry.op, series.kind), _Compared()).theirs[name] = summaries[name]
        for op, total in context.account.totals.items() if entries else ():
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
    """What a line of `reconciled` compares: fio's summaries by entry, and what was read."""

    theirs: dict[str, Summary] = field(default_factory=dict)
    ours: list[Histogram] = field(default_factory=list)


def _together(lines: Mapping[Line, _Compared]) -> dict[Line, _Compared]:
    """Return the lines with all ops of a run and kind as one where fio counted any of them together."""
    mixed = {(run, kind) for (run, op, kind), line in lines.items() if op == MIXED and line.theirs}
    combined: dict[Line, _Compared] = {}
    for (run, op, kind), line in lines.items():
        into = combined.setdefault((run, MIXED if (run, kind) in mixed else op, kind), _Compared())
        into.theirs.update(line.theirs)
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
