"""Samples of servers beside the clients of several runs: of each row of theirs, the run in whose time it lies.

    clients     |--- run 4k/8 ---|      |--- run 16k/8 ---|
    osd.ndjson  .  .  .  .  .  .  .  .  .  .  .  .  .  .  .      a source of each run, with its own part of the rows
                                    ^ of the run it overlaps; of two the one its middle is nearer to; else of none

A server runs on while benchmarks come and go, so one file of it belongs to many runs. Beside one run all of it is that run's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ingest.core.caveats import Caveat
from ingest.core.errors import counted
from ingest.core.intervals import Intervals
from ingest.core.missing import ANY_TIME
from ingest.core.series import Series
from ingest.read.account import Account
from ingest.read.context import Part
from ingest.read.format_names import OF_FIO, SERVERS
from ingest.read.sources import Found, Source

CODE = "servers-of-runs"
BETWEEN = "each has what was sampled in its time, and what was sampled between and around them is in none"
UNKNOWN = "when these runs began and ended is not known, so its samples are a run of their own"
AT_ONCE = "some of these runs went on at the same time, so its samples are a run of their own"
Span = tuple[int, int]


def among_runs(found: Found) -> Found:
    """Return what was found with sources of servers in the runs of the clients beside them; as it is where there are none.

    Where several runs are there, and it cannot be known which of them a sample belongs to, a caveat says so.
    """
    runs = {source.context.series.run for source in found.sources if source.format in OF_FIO}
    servers = [source for source in found.sources if source.format in SERVERS and source.context.series.run not in runs]
    if not runs or not servers:
        return found
    spans = _spans(found, runs)
    parts: dict[str, Part | None]
    if len(runs) == 1:
        parts, sentence = dict.fromkeys(runs), ""
    elif spans is None:
        parts, sentence = {}, UNKNOWN
    elif (own := _parts(spans)) is None:
        parts, sentence = {}, AT_ONCE
    else:
        parts, sentence = dict(own), BETWEEN
    said = f"sampled beside {counted(len(runs), 'run')}: {sentence}"
    caveats = [Caveat(CODE, str(path), said) for path in sorted({source.path for source in servers}) if sentence]
    if not parts:
        return replace(found, caveats=(*found.caveats, *caveats))
    moved = {id(source) for source in servers}
    sources = [source for source in found.sources if id(source) not in moved]
    sources += [_of_run(source, run, part) for source in servers for run, part in parts.items()]
    ordered = tuple(sorted(sources, key=lambda source: (source.path.parts, source.context.series.run)))
    return replace(found, sources=ordered, caveats=(*found.caveats, *caveats))


def _spans(found: Found, runs: set[str]) -> dict[str, Span] | None:
    """Return when the clients of each run began and ended in ns, by their start and fio's runtime; None if one is unknown."""
    spans: dict[str, Span] = {}
    for source in found.sources:
        context = source.context
        if source.format not in OF_FIO or context.zero.epoch_ns is None or not context.runtime_ns:
            continue
        begin = context.zero.epoch_ns + context.offset_ns
        low, high = spans.get(context.series.run, (begin, begin))
        spans[context.series.run] = min(low, begin), max(high, begin + context.restart_ns + context.runtime_ns)
    return spans if spans.keys() == runs else None


def _parts(spans: dict[str, Span]) -> dict[str, Part] | None:
    """Return the part of each run, None where two of them went on at the same time."""
    ordered = sorted(spans.items(), key=lambda item: item[1])
    edges = [ANY_TIME[0]]
    for (_, (_, end)), (_, (begin, _)) in pairwise(ordered):
        if begin < end:
            return None
        edges.append((end + begin) // 2)
    edges.append(ANY_TIME[1])
    return {run: Part(*span, *edges[at : at + 2]) for at, (run, span) in enumerate(ordered)}


def _of_run(source: Source, run: str, part: Part | None) -> Source:
    """Return a source as one of a run, with an account of its own."""
    context = source.context
    own = replace(context, series=context.series.replaced(run=run), part=part, account=Account(path=context.account.path))
    return replace(source, context=own)


def of_its_part(source: Source, rows: Iterator[Intervals[Series]]) -> Iterator[Intervals[Series]]:
    """Yield the rows of a source that lie in its part, all where it has none; its account counts the samples of these alone.

    Once all are read, what the source lacks at other times is taken out of the account.
    """
    part, account = source.context.part, source.context.account
    if part is None:
        yield from rows
        return
    for chunk in rows:
        middle = chunk.start_ns + (chunk.end_ns - chunk.start_ns) // 2
        inside = (middle > part.after_ns) & (middle <= part.before_ns)
        inside &= (chunk.start_ns < part.end_ns) & (chunk.end_ns > part.begin_ns)
        kept = chunk.take(np.flatnonzero(inside))
        account.samples -= int(chunk.counts.sum()) - int(kept.counts.sum())
        if len(kept):
            yield kept
    account.missing = [entry for entry in account.missing if entry.span[0] < part.end_ns and entry.span[1] > part.begin_ns]


__all__ = ["among_runs", "of_its_part"]
