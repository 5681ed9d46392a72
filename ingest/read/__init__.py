"""Readers: one module a format, and what joins their files into runs.

`placing.discover` says what is under some paths; `read` yields the intervals of a source, `events` its single operations, of
which intervals are made here. To add a format: its module with a READER, its entry point (see `formats`). A reader knows
nothing of stores or views.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from ingest.core.errors import CapacityError, InputError
from ingest.core.intervals import MOST_SAMPLES, Intervals
from ingest.core.labels import Series, default_kind
from ingest.core.units import OUT_OF_RANGE, is_instant
from ingest.read.context import EXPECTED, FAILED_LABELS, Context
from ingest.read.format_names import RAW, YCSB
from ingest.read.formats import SMALL, reader_of, single_events
from ingest.read.missing import counting_rejected, followed
from ingest.read.placement import in_their_layer, in_their_outcome, of_its_part
from ingest.read.sources import Source
from ingest.read.text import size_of

if TYPE_CHECKING:
    from pathlib import Path

    from ingest.core.events import Events
    from ingest.read.operations import Windows

    Labelled = TypeVar("Labelled", Events, Intervals[Series])


def read(
    source: Source,
    windows: Windows | None = None,
    seen: Callable[[Events], None] | None = None,
    *,
    rows_in: Callable[[Path, Context], Iterator[Intervals[Series]]] | None = None,
) -> Iterator[Intervals[Series]]:
    """Yield the intervals of a source in bounded chunks; InputError where it is not what it claims.

    `windows` says how single events are cut (by default into seconds); other sources come as they were recorded. `seen` is
    called with each chunk of single events before intervals are made of it. `rows_in` reads in place of the format's own reader,
    for chunks of another size.
    """
    context = source.context
    reader = reader_of(source.format)
    if reader.rows is None:
        from ingest.read import operations  # for single events alone
        from ingest.read.operations import events_layout, latencies, repeats_noted

        known = bool(context.jobs) or context.grouped > 0 or context.of_no_entry
        layout = events_layout(context.digits)
        events = repeats_noted(events_of(source), context.account)
        chunks = events if seen is None else _shown(events, seen)
        rows = operations.intervals(
            latencies(chunks, context.account), windows or operations.Windows(), layout, context.account, totals=known
        )
    else:
        rows = followed(source, _hosts_renamed((rows_in or reader.rows)(source.path, context), context))
        rows = _unshadowed(rows, context)
    rows = in_their_layer(source, in_their_outcome(source, of_its_part(source, _addable(rows, source))))
    if expected := context.options.get(EXPECTED):
        from ingest.read.schedule import with_corrected

        rows = with_corrected(rows, int(expected), context.account)
    return rows


def read_many(sources: Sequence[Source], left: list[Source]) -> Iterator[Intervals[Series]]:
    """Yield the intervals of many sources of one format; at the end `left` has those that are left to `read`, untouched."""
    many = reader_of(sources[0].format).many
    if (
        many is None
        or len(sources) == 1
        or any({EXPECTED, FAILED_LABELS} & source.context.options.keys() or source.context.layer for source in sources)
    ):
        left += sources
        return
    numbers: list[int] = []
    yield from many([(source.path, source.context) for source in sources], numbers)
    left += [sources[number] for number in numbers]


def is_small(source: Source) -> bool:
    """Return whether `read_many` may read a source with others of its format."""
    return reader_of(source.format).many is not None and size_of(source.path) <= SMALL


def small_ones_together(sources: Iterable[Source], most: int) -> list[list[Source]]:
    """Return each source once: large ones alone, and first; small ones of a format that `read_many` knows, at most so many."""
    alone: list[list[Source]] = []
    small: dict[str, list[Source]] = {}
    for source in sources:
        if is_small(source):
            small.setdefault(source.format, []).append(source)
        else:
            alone.append([source])
    return alone + [some[first : first + most] for some in small.values() for first in range(0, len(some), most)]


def _unshadowed(rows: Iterator[Intervals[Series]], context: Context) -> Iterator[Intervals[Series]]:
    """Yield the rows without those of ops that another source is taken for."""
    if not context.shadowed:
        yield from rows
        return
    for part in rows:
        ours = part.where(lambda series: series.op not in context.shadowed)
        left_out = int(part.samples.sum()) - int(ours.samples.sum())
        context.account.samples -= left_out
        context.account.shadowed += left_out
        yield ours


def _hosts_renamed(parts: Iterator[Labelled], context: Context) -> Iterator[Labelled]:
    """Yield intervals or events with the hosts that they name themselves called as the user said; that of the source is already.

    So it is with what the account says is missing of them.
    """
    alias, own, account = context.host_alias, context.series.host, context.account

    def named(series: Series) -> Series:
        other = alias.get(series.host) if series.host != own else None
        return series if other is None else series.replaced(host=other)

    for part in parts:
        yield part.relabelled(named) if any(series.host in alias for series in part.table) else part
    for place, entry in enumerate(account.missing if alias else ()):
        if (host := entry.labels.get("host", "")) in alias and host != own:
            account.missing[place] = replace(entry, labels={**entry.labels, "host": alias[host]})


def _addable(rows: Iterator[Intervals[Series]], source: Source) -> Iterator[Intervals[Series]]:
    """Yield the rows; CapacityError once they are more samples than can be added up, InputError for a time too far away."""
    for part in rows:
        if len(part):
            _check_times(int(part.start_ns.min()), int(part.end_ns.max()), source)
        if source.context.account.samples > MOST_SAMPLES:
            raise CapacityError(f"{source.path}: holds more than 2^62 samples, which cannot be added up")
        yield part


def _check_times(first_ns: int, last_ns: int, source: Source) -> None:
    """Raise InputError for times that cannot be counted with: a stamp and its start are in range, but not their sum."""
    if not (is_instant(first_ns) and is_instant(last_ns)):
        raise InputError(f"holds {OUT_OF_RANGE}, by its stamps and its start ({source.context.zero.origin})", source.path)


def _shown(chunks: Iterator[Events], seen: Callable[[Events], None]) -> Iterator[Events]:
    for chunk in chunks:
        seen(chunk)
        yield chunk


def events_of(source: Source) -> Iterator[Events]:
    """Yield the single operations of a source in bounded chunks; InputError where it is not what it claims, or has none."""
    reader = reader_of(source.format)
    if reader.events is None:
        raise InputError(f"{source.format}: holds histograms, not single operations", source.path)
    account, shadowed = source.context.account, source.context.shadowed
    events = _hosts_renamed(reader.events(source.path, source.context), source.context)
    for chunk in followed(source, counting_rejected(source, events)):
        if len(chunk):
            _check_times(chunk.reach.first_end, chunk.reach.last_end, source)
        ours = chunk.where(lambda series: series.op not in shadowed)
        account.shadowed += chunk.samples - ours.samples
        yield ours


# Each operation once, where only the moment of it counts: tools write one operation under several kinds.
#
# fio writes a log of completion, one of total and one of submission latency of the same I/Os; YCSB writes an operation a second
# time with its intended start. Latencies of unlike kinds are never merged; moments would be counted twice.


AGAIN = {YCSB: "response"}  # the kind of the second line of an operation, by format


def offset_sources(sources: Sequence[Source]) -> list[Source]:
    """Return the sources of single events that hold each I/O once: of fio's logs of one job the one of the preferred kind."""
    kinds: dict[tuple[str, ...], set[str]] = {}
    for source in sources:
        kinds.setdefault(_job(source), set()).add(source.context.series.kind)
    return [
        source for source in sources if single_events(source) and source.context.series.kind == default_kind(kinds[_job(source)])
    ]


def _job(source: Source) -> tuple[str, ...]:
    """Return what the logs of one job have in common: of fio the labels, of other formats the file alone."""
    series = source.context.series
    alone = "" if source.format == RAW else str(source.path)
    return source.format, series.run, series.host, series.volume, series.job, series.process, alone


def once(source: Source, chunk: Events) -> Events:
    """Return the events of a chunk without those that stand for an operation which another line holds already."""
    again = AGAIN.get(source.format)
    return chunk if again is None else chunk.where(lambda series: series.kind != again)


def events_once(source: Source) -> Iterator[Events]:
    """Yield the events of a source, each operation once; InputError where it is not what it claims."""
    return (once(source, chunk) for chunk in events_of(source))


class _Room(ModuleType):
    """This package, which bears the name of the public function: `ingest.read("archive")` is that of `ingest/api/door.py`."""

    def __call__(self, *sources: Any, **words: Any) -> Any:
        return import_module("ingest.api.door").read(*sources, **words)


sys.modules[__name__].__class__ = _Room
