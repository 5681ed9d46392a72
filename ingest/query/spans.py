"""Rows over one span of time, so that they are added up regardless of when they were."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.grid import INT64_MAX
from ingest.core.intervals import Intervals, Sum, merged
from ingest.core.series import Group, layer_of, run_and_kind

MANY_ENTRIES = 100_000
PIECE = 1 << 16

Span = tuple[int, int]
Bounds = tuple[int | None, int | None]  # from when to when, None for no bound
RunLayer = tuple[str, str]  # each layer of a run is timed by itself: polls of a server may go on when its clients have ended
Reach = dict[tuple[str, str], Span]  # from when to when the rows of a run and kind are, before they are cut into windows


def together(rows: Intervals[Group], low_ns: int = 0, high_ns: int = 0) -> Intervals[Group]:
    """Return the rows with one span, so that they are added up regardless of time."""
    return replace(rows, start_ns=np.full(len(rows), low_ns), end_ns=np.full(len(rows), high_ns))


def pieces(rows: Intervals[Group]) -> Iterator[tuple[slice, Intervals[Group]]]:
    """Yield the rows in pieces of about PIECE bins, not copied, each with its place: what is made of one stays in a cache."""
    first = 0
    while first < len(rows):
        last = max(first + 1, int(np.searchsorted(rows.indptr, rows.indptr[first] + PIECE, side="right")) - 1)
        yield slice(first, last), rows.take(np.arange(first, last))
        first = last


def dense(part: Intervals[Group]) -> Intervals[Group]:
    """Return the rows of a large chunk that lie in a few windows already added up: so much less is held until the end."""
    if len(part.bins) < MANY_ENTRIES or 4 * np.count_nonzero(np.diff(part.start_ns)) > len(part):
        return part
    return merged([part])


def spanned(parts: Sequence[Intervals[Group]], span: Span | None = None) -> list[Intervals[Group]]:
    """Return the parts with every row over `span`, by default the range of all of them, added up per key."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return []
    low, high = span or (min(int(p.start_ns.min()) for p in filled), max(int(p.end_ns.max()) for p in filled))
    total: Sum[Group] = Sum()
    for part in filled:
        total.add(together(part, low, high))
    return total.parts()


def ranges(parts: Sequence[Intervals[Group]]) -> dict[RunLayer, Span]:
    """Return from when to when the rows of each layer of a run are; keys begin with run and kind."""
    spans: dict[RunLayer, Span] = {}
    for part in parts:
        names, places = _layers_of(part)
        low, high = np.full(len(names), INT64_MAX), np.full(len(names), -INT64_MAX)
        np.minimum.at(low, places, part.start_ns)
        np.maximum.at(high, places, part.end_ns)
        for name, first, last in zip(names, low.tolist(), high.tolist(), strict=True):
            known = spans.get(name, (first, last))
            spans[name] = min(first, known[0]), max(last, known[1])
    return {name: (first, last) for name, (first, last) in spans.items() if first < INT64_MAX}


def spanned_by_run(parts: Sequence[Intervals[Group]], spans: Mapping[RunLayer, Span] | None = None) -> list[Intervals[Group]]:
    """Return the parts with every row over the span of its layer of its run, by default the range of its rows, added up per key.

    Keys begin with run and kind. A row that is of one run must not reach into the time of another: its rate would be too low.
    """
    known = ranges(parts) if spans is None else spans
    total: Sum[Group] = Sum()
    for part in parts:
        if not len(part):
            continue
        names, places = _layers_of(part)
        low, high = (np.array([known.get(name, (0, 0))[edge] for name in names], np.int64) for edge in (0, 1))
        total.add(replace(part, start_ns=low[places], end_ns=high[places]))
    return total.parts()


def over_reach(
    parts: Sequence[Intervals[Group]],
    reach: Mapping[RunLayer, Span],
    windows: Mapping[RunLayer, tuple[Span, int]],
    adds_up_runs: bool,  # noqa: FBT001  # as the question says
) -> list[Intervals[Group]]:
    """Return the rows over the whole range of their layer of their run; where runs are added up, over the range of them all.

    That is how far each reaches; of part of a run it is the windows that hold samples of it (span and step), the first and
    the last no longer than that.
    """
    present = ranges(parts)
    partial = {name: narrowed(span, reach.get(name), step) for name, (span, step) in windows.items()}
    spans = {**present, **reach, **partial}
    if adds_up_runs:
        of_layer: dict[str, Span] = {}
        for name in windows.keys() | present.keys():
            widen(of_layer, name[1], spans[name])
        spans = {name: of_layer[name[1]] for name in present}
    return spanned_by_run(parts, spans)


def narrowed(windows: Span, reach: Span | None, step_ns: int) -> Span:
    """Return from when to when windows are; the first and the last no longer than their series reach.

    What a run reaches that is being loaded may be older than its windows: an edge that lies outside of them is not used.
    """
    (start, end), (first, last) = windows, reach or windows
    return first if start < first < start + step_ns else start, last if end - step_ns < last < end else end


def note_reach(reach: Reach, rows: Intervals[Group]) -> None:
    """Widen `reach` by rows whose keys begin with run and kind."""
    low, high = np.full(len(rows.table), INT64_MAX), np.full(len(rows.table), -INT64_MAX)
    np.minimum.at(low, rows.series, rows.start_ns)
    np.maximum.at(high, rows.series, rows.end_ns)
    for key, first, last in zip(rows.table, low.tolist(), high.tolist(), strict=True):
        if first < INT64_MAX:
            widen(reach, run_and_kind(key), (first, last))


def widen(spans: dict[Any, Span], key: Any, span: Span) -> None:
    """Widen the span of a key so that it holds another one."""
    known = spans.get(key, span)
    spans[key] = min(known[0], span[0]), max(known[1], span[1])


def of_layers(reach: Mapping[tuple[str, str], Span]) -> dict[RunLayer, Span]:
    """Return from when to when the rows of each layer of a run are, of all its kinds."""
    spans: dict[RunLayer, Span] = {}
    for (run, kind), span in reach.items():
        widen(spans, (run, layer_of(kind)), span)
    return spans


def of_runs(reach: Mapping[tuple[str, str], Span]) -> dict[str, Span]:
    """Return from when to when the rows of each run are, of all its kinds."""
    spans: dict[str, Span] = {}
    for (run, _), span in reach.items():
        widen(spans, run, span)
    return spans


def _layers_of(part: Intervals[Group]) -> tuple[list[RunLayer], NDArray[np.int64]]:
    """Return the layers of runs in the keys of a part, and which of them each row is of."""
    of_keys = [(run, layer_of(kind)) for run, kind in map(run_and_kind, part.table)]
    names = list(dict.fromkeys(of_keys))
    place = {name: number for number, name in enumerate(names)}
    return names, np.array([place[name] for name in of_keys], np.int64)[part.series]


def inside(span: Span, bounds: Bounds) -> Span | None:
    """Return what of a span lies within bounds, None where nothing does."""
    low = span[0] if bounds[0] is None else max(span[0], bounds[0])
    high = span[1] if bounds[1] is None else min(span[1], bounds[1])
    return (low, high) if low <= high else None


def reach_inside(reach: Mapping[tuple[str, str], Span], bounds: Mapping[str, Bounds]) -> Reach:
    """Return what of the reach of each run and kind lies within the bounds of its run."""
    return {key: span for key, whole in reach.items() if (span := inside(whole, bounds[key[0]])) is not None}


def covered_by(
    reach: Mapping[tuple[str, str], Span], taken: Mapping[str, Collection[str]], *, all_kinds: bool
) -> dict[str, Span]:
    """Return from when to when there is data of each run that an answer holds: of the kinds taken of it, or of all its kinds."""
    covered: dict[str, Span] = {}
    for (run, kind), span in reach.items():
        if run in taken and (all_kinds or kind in taken[run]):
            widen(covered, run, span)
    return covered
