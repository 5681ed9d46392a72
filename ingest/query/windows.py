"""At which step a question is answered, rows over one span of time, and groups added up."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ingest.core.coverage import ENOUGH, RowWidth, median_width
from ingest.core.errors import InputError, UsageError, listed
from ingest.core.grid import INT64_MAX, STEPS, WEIGHT_BITS, coarsened, common_step, stored_step
from ingest.core.intervals import Int, Intervals, Sum, merged, total
from ingest.core.labels import Group, labels_first, layer_of, run_and_kind
from ingest.core.layout import Layout, Mixed, common_layout, in_order
from ingest.core.units import format_duration

if TYPE_CHECKING:
    from ingest.query.question import Answer


# Rows over one span of time, so that they are added up regardless of when they were.


MANY_ENTRIES = 100_000

Name = TypeVar("Name")
Span = tuple[int, int]
Bounds = tuple[int | None, int | None]  # from when to when, None for no bound
RunLayer = tuple[str, str]  # each layer of a run is timed by itself: polls of a server may go on when its clients have ended
Reach = dict[tuple[str, str], Span]  # from when to when the rows of a run and kind are, before they are cut into windows


def of_places(rows: Intervals[Group], places: Sequence[int]) -> Intervals[Group]:
    """Return rows with only these places of their groups kept: equal groups become one when they are added up."""
    return rows.relabelled(picked(places))


def picked(places: Sequence[int]) -> Callable[[Group], Group]:
    """Return what gives these places of a group, in their order."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda key: tuple(key[place] for place in places)


def with_one_span(rows: Intervals[Group], low_ns: int = 0, high_ns: int = 0) -> Intervals[Group]:
    """Return the rows with one span, so that they are added up regardless of time."""
    return rows.at(np.full(len(rows), low_ns), np.full(len(rows), high_ns))


def dense(part: Intervals[Group]) -> Intervals[Group]:
    """Return the rows of a large chunk that lie in a few windows already added up: so much less is held until the end."""
    if len(part.bins) < MANY_ENTRIES or 4 * np.count_nonzero(np.diff(part.start_ns)) > len(part):
        return part
    return merged([part])


def spanned(parts: Sequence[Intervals[Group]]) -> list[Intervals[Group]]:
    """Return the parts with every row over the range of all of them, added up per key."""
    filled = [part for part in parts if len(part)]
    low = min((int(part.start_ns.min()) for part in filled), default=0)
    high = max((int(part.end_ns.max()) for part in filled), default=0)
    total: Sum[Group] = Sum()
    for part in filled:
        total.add(with_one_span(part, low, high))
    return total.parts()


def ranges(parts: Sequence[Intervals[Group]]) -> dict[RunLayer, Span]:
    """Return from when to when the rows of each layer of a run are; keys begin with run and kind."""
    reach: Reach = {}
    for part in parts:
        note_time_range(reach, part)
    return of_layers(reach)


def spanned_by_run(parts: Sequence[Intervals[Group]], spans: Mapping[RunLayer, Span] | None = None) -> list[Intervals[Group]]:
    """Return the parts with every row over the span of its layer of its run, by default the range of its rows, added up per key.

    Keys begin with run and kind. A row that is of one run must not reach into the time of another: its rate would be too low.
    """
    known = ranges(parts) if spans is None else spans
    total: Sum[Group] = Sum()
    for part in parts:
        if len(part):
            layers = ((run, layer_of(kind)) for run, kind in map(run_and_kind, part.table))
            low, high = np.array([known.get(layer, (0, 0)) for layer in layers], np.int64)[part.series].T
            total.add(part.at(low, high))
    return total.parts()


def over_time_range(
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
        of_layer = widest((name[1], spans[name]) for name in windows.keys() | present.keys())
        spans = {name: of_layer[name[1]] for name in present}
    return spanned_by_run(parts, spans)


def narrowed(windows: Span, reach: Span | None, step_ns: int) -> Span:
    """Return from when to when windows are; the first and the last no longer than their series reach.

    What a run reaches that is being loaded may be older than its windows: an edge that lies outside of them is not used.
    """
    (start, end), (first, last) = windows, reach or windows
    return first if start < first < start + step_ns else start, last if end - step_ns < last < end else end


def note_time_range(reach: Reach, rows: Intervals[Group]) -> None:
    """Widen `reach` by rows whose keys begin with run and kind."""
    low, high = np.full(len(rows.table), INT64_MAX), np.full(len(rows.table), -INT64_MAX)
    np.minimum.at(low, rows.series, rows.start_ns)
    np.maximum.at(high, rows.series, rows.end_ns)
    for key, first, last in zip(rows.table, low.tolist(), high.tolist(), strict=True):
        if first < INT64_MAX:
            widen(reach, run_and_kind(key), (first, last))


def widen(spans: dict[Name, Span], key: Name, span: Span) -> None:
    """Widen the span of a key so that it holds another one."""
    known = spans.get(key, span)
    spans[key] = min(known[0], span[0]), max(known[1], span[1])


def widest(spans: Iterable[tuple[Name, Span]]) -> dict[Name, Span]:
    """Return from when to when all spans of each name are together."""
    known: dict[Name, Span] = {}
    for name, span in spans:
        widen(known, name, span)
    return known


def of_layers(reach: Mapping[tuple[str, str], Span]) -> dict[RunLayer, Span]:
    """Return from when to when the rows of each layer of a run are, of all its kinds."""
    return widest(((run, layer_of(kind)), span) for (run, kind), span in reach.items())


def of_runs(reach: Mapping[tuple[str, str], Span]) -> dict[str, Span]:
    """Return from when to when the rows of each run are, of all its kinds."""
    return widest((run, span) for (run, _), span in reach.items())


def inside(span: Span, bounds: Bounds) -> Span | None:
    """Return what of a span lies within bounds, None where nothing does."""
    low = span[0] if bounds[0] is None else max(span[0], bounds[0])
    high = span[1] if bounds[1] is None else min(span[1], bounds[1])
    return (low, high) if low <= high else None


# At which step a question is answered: that of its windows, where it says `auto` one that makes about 150 of them.


AUTO_WINDOWS = 150
MULTIPLES = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


def auto_span(reach: Mapping[str, Span], bounds: Mapping[str, Bounds], stored_ns: int) -> Span:
    """Return the whole windows that runs reach within the bounds of each: what `auto` makes its windows of."""
    whole = ((run, (low // stored_ns * stored_ns, -(-high // stored_ns) * stored_ns)) for run, (low, high) in reach.items())
    known = [span for run, windows in whole if (span := inside(windows, bounds[run])) is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else (0, 0)


def auto_step(first_ns: int, last_ns: int, stored_ns: int, windows: int = AUTO_WINDOWS) -> int:
    """Return the multiple of the stored step that makes about `windows` windows of the range, never more."""
    span = max(last_ns - first_ns, stored_ns)
    wider = MULTIPLES[-1] * -(-span // (windows * stored_ns * MULTIPLES[-1]))
    return stored_ns * next((multiple for multiple in MULTIPLES if span <= windows * stored_ns * multiple), wider)


def sure_step(first_ns: int, last_ns: int, stored_ns: int, windows: int = AUTO_WINDOWS) -> int:
    """Return the widest step that divides whatever `auto_step` makes of this range once it has grown."""
    least = auto_step(first_ns, last_ns, stored_ns, windows) // stored_ns
    return stored_ns * math.gcd(*(multiple for multiple in MULTIPLES if multiple >= least), MULTIPLES[-1])


def widened(parts: Sequence[Intervals[Group]], step_ns: int) -> list[Intervals[Group]]:
    """Return windows added up to a multiple of their step."""
    return [merged([coarsened(part, step_ns)]) for part in parts if len(part)]


def grain_of(rows: Sequence[RowWidth], asked: Sequence[RowWidth], step_ns: int) -> int:
    """Return the width in ns of the windows that a range of a run is made of at a step (0: all of it), and its rows are cut at.

    They are those that the widest of the rows that are `asked` for suggest, whichever a store was loaded with first. At a step
    that these do not divide they are narrower, if a store that was loaded with a part of all `rows` may answer at it; 0 where
    none can.
    """
    stored = step_of_rows(asked)
    if step_ns % stored == 0:
        return stored
    mixed = any(stored_step(each.width_ns) < stored for each in rows if each.width_ns)
    return common_step(stored, step_ns) if mixed or step_ns in STEPS else 0


def step_of_rows(rows: Sequence[RowWidth]) -> int:
    """Return the step in ns that no row of some sources is wider than: windows of `auto` are made of it."""
    width = max((each.width_ns for each in _timed(rows)), default=0) or median_width(())
    stored = stored_step(width)
    return stored * max(1, math.ceil(ENOUGH * width / stored))


def _timed(rows: Iterable[RowWidth]) -> list[RowWidth]:
    """Return those that may be wider than a step: rows over a whole run count where there are no others."""
    known = [each for each in rows if each.least_ns]
    return [each for each in known if not each.whole] or known


OF_A_SECOND = "tailboard adds such operations up by the second as it reads them, and what is finer is not kept"


MOST_CUTS = 10_000


def check_step(step_ns: int, rows: Iterable[RowWidth], *, force: bool, allowed: str = "--force allows it") -> str:
    """Return a warning if a step is finer than the rows of some source and `force` is given; UsageError without it.

    What is `allowed` instead stands at the end of the error. UsageError also for one that is so fine that an answer would take
    minutes: 1 where 1 s is meant.
    """
    timed = _timed(rows)
    wide = [each for each in timed if step_ns < each.least_ns]
    if not wide:
        return ""
    widths = list(dict.fromkeys(each.words for each in sorted(wide, key=lambda each: each.width_ns)))
    whose = f" of {listed(sorted({each.subject for each in wide}))}" if len(wide) < len(timed) else ""
    wide_as = " to ".join(widths[:: max(1, len(widths) - 1)])
    finer = f"step of {format_duration(step_ns)} is finer than the rows{whose} ({wide_as})"
    if step_ns * MOST_CUTS < max(each.width_ns for each in wide):
        raise UsageError(f"a {finer}: it would cut a row into more than {MOST_CUTS:,} windows")
    if not force:
        why = OF_A_SECOND if all(each.by_second for each in wide) else "it would invent detail"
        raise UsageError(f"a {finer}: {why}; {allowed}")
    return f"{finer}: counts are spread evenly within a row"


# Groups added up: an answer by some of its labels only, and rows so that each group is in one part.
#
# by host, op:  (node-a, read), (node-b, read), (node-a, write)  ->  by op:  read (both hosts), write


MOST_WEIGHED = 1 << 62


def regrouped(answer: Answer, by: Sequence[str]) -> Answer:
    """Return the answer grouped by some of its labels only: the groups of the others are added up.

    Where events that were stored at unlike rates come together, each counts by its weight, in units of 2^-16, and what was
    stored are the completions. UsageError where that would be added up in flight.
    """
    regroup = picked([answer.by.index(name) for name in by])
    if answer.weights is None:
        parts = by_layout([part.relabelled(regroup) for part in answer.parts if len(part)])
        return replace(answer, parts=tuple(parts), by=tuple(by))
    weights = _weights_of(answer, regroup)
    mixed = {group for group, group_weights in weights.items() if len(group_weights) > 1 or 0 in group_weights}
    plain = [part.where(lambda key: regroup(key) not in mixed).relabelled(regroup) for part in answer.parts]
    mixed_rows = (part.where(lambda key: regroup(key) in mixed) for part in answer.parts)
    heavy = [_times_weight(rows, answer.weights).relabelled(regroup) for rows in mixed_rows]
    parts = [part for rows in (plain, heavy) for part in by_layout([share for share in rows if len(share)])]
    alike = {group: group_weights.pop() for group, group_weights in weights.items() if group not in mixed}
    return replace(answer, parts=tuple(parts), by=tuple(by), weights=alike)


def _weights_of(answer: Answer, regroup: Callable[[Group], Group]) -> dict[Group, set[int]]:
    """Return the weights that come together in each group: 0 for counts that are weighed already."""
    known = answer.weights or {}
    weights: dict[Group, set[int]] = {}
    for part in answer.parts:
        for code in np.flatnonzero(np.bincount(part.series)).tolist():
            weights.setdefault(regroup(part.table[code]), set()).add(known.get(part.table[code], 0))
    return weights


def weights_in(rows: Intervals[Group], weights: Mapping[Group, int]) -> Int:
    """Return the weight of each row, 0 where its counts are weighed already."""
    return np.array([weights.get(key, 0) for key in rows.table], np.int64)[rows.series]


def _times_weight(rows: Intervals[Group], known: Mapping[Group, int]) -> Intervals[Group]:
    """Return rows with each count times the weight of its group in units of 2^-16, what was stored as completions."""
    weights = weights_in(rows, known)
    if not len(rows) or not weights.any():
        return rows
    if rows.completions is not None:
        raise UsageError("events of unlike rates cannot be added up in flight: add --by op, or --where op=...")
    samples = rows.samples
    if total(samples) > (MOST_WEIGHED >> WEIGHT_BITS) // int(weights.max()):
        raise InputError("more sampled events of unlike rates than can be added up: add --by op")
    return replace(rows, counts=rows.counts * weights[rows.row] << WEIGHT_BITS, completions=samples, exact=None)


def by_layout(parts: Sequence[Intervals[Group]]) -> list[Intervals[Group]]:
    """Return the parts added up so that each group is in one part, in the common layout of all its rows.

    A part whose groups are in no other is left alone: answers by thread are large, and sums over them are made once.
    """
    if len(parts) == 1:
        return [merged(parts)]
    layouts: dict[Group, set[Layout]] = {}
    homes: Counter[Group] = Counter()
    for part in parts:
        for code in np.flatnonzero(np.bincount(part.series)).tolist():
            layouts.setdefault(part.table[code], set()).add(part.layout)
            homes[part.table[code]] += 1
    target = {group: common_layout(own_layouts) for group, own_layouts in layouts.items()}
    buckets: dict[object, list[Intervals[Group]]] = {}
    for number, part in enumerate(parts):
        if all(homes[group] <= 1 for group in part.table):
            buckets[f"{part.layout} {number}"] = [part]
            continue
        for layout, rows in part.split(target.get):
            if layout is not None and len(rows):
                buckets.setdefault(layout, []).append(rows.in_layout(layout))
    return [merged(bucket) for _, bucket in sorted(buckets.items(), key=lambda item: str(item[0]))]


def in_own_layouts(part: Intervals[Group]) -> Iterator[Intervals[Group]]:
    """Yield the rows of a part: groups whose samples are all in bins of one layout in that one, each other group by itself."""
    layout = part.layout
    if not isinstance(layout, Mixed):
        yield part
        return
    member, of_entries = layout.member[part.bins], part.series[part.row]
    first, last = np.full(len(part.table), len(layout.parts)), np.full(len(part.table), -1)
    np.minimum.at(first, of_entries, member)
    np.maximum.at(last, of_entries, member)
    alone = dict(zip(part.table, np.where(first == last, first, -1).tolist(), strict=True))
    for home, rows in part.split(alone.__getitem__):
        if len(rows) and home >= 0:
            yield replace(rows, layout=layout.parts[home], bins=np.searchsorted(layout.member_bins[home], rows.bins))
        elif len(rows):
            yield from (own for _, own in rows.split(lambda key: key) if len(own))


# Windows in the order of their labels, kind, start and layout: an export is the same whoever is asked.


def ordered(batches: Iterable[Sequence[Intervals[Group]]]) -> Iterator[Intervals[Group]]:
    """Yield the windows of batches by group (run, kind, labels), start and layout: by labels first, then by run and kind.

    Windows of one group, start and layout are added up.

    No batch may hold a window that belongs before the last one of the batch before it. What is held is the last window of a
    batch, and the batch that comes.
    """
    held: list[Intervals[Group]] = []
    for batch in batches:
        held = _by_layout([*held, *batch])
        if held:
            last = max(_place(part, len(part) - 1) for part in held)
            before = [_split(part, last) for part in held]
            yield from _interleaved([early for early, _ in before])
            held = [late for _, late in before]
    yield from _interleaved(held)


def _place(part: Intervals[Group], row: int) -> tuple[Group, int]:
    return labels_first(part.table[part.series[row]]), int(part.start_ns[row])


def _by_layout(parts: Iterable[Intervals[Group]]) -> list[Intervals[Group]]:
    """Return the rows of parts added up by layout and kind of counts, each ordered by group and start."""
    alike: dict[tuple[Layout, bool], list[Intervals[Group]]] = {}
    for part in parts:
        if len(part):
            alike.setdefault((part.layout, part.completions is None), []).append(part)
    sums = []
    layouts = in_order({layout for layout, _ in alike})
    for key in sorted(alike, key=lambda key: (layouts.index(key[0]), key[1])):
        part = merged(alike[key])
        ranks = np.argsort(sorted(range(len(part.table)), key=lambda code: labels_first(part.table[code])))  # used at once
        sums.append(part.take(np.lexsort((part.start_ns, ranks[part.series]))))
    return [part for part in sums if len(part)]


def _split(part: Intervals[Group], place: tuple[Group, int]) -> tuple[Intervals[Group], Intervals[Group]]:
    """Return the rows of an ordered part before a place and those from it on."""
    first = bisect_left(range(len(part)), place, key=lambda row: _place(part, row))
    return part.take(np.arange(first)), part.take(np.arange(first, len(part)))


def _interleaved(parts: Sequence[Intervals[Group]]) -> Iterator[Intervals[Group]]:
    """Yield the rows of ordered parts of unlike layouts by group and start: stretches of one layout each."""
    filled = [part for part in parts if len(part)]
    if len(filled) < 2:
        yield from filled
        return
    ranks = {key: rank for rank, key in enumerate(sorted({key for part in filled for key in part.table}, key=labels_first))}
    groups = np.concatenate([np.array([ranks[key] for key in part.table], np.int64)[part.series] for part in filled])
    starts = np.concatenate([part.start_ns for part in filled])
    which = np.repeat(np.arange(len(filled)), [len(part) for part in filled])
    rows = np.concatenate([np.arange(len(part)) for part in filled])
    order = np.lexsort((which, starts, groups))
    which, rows = which[order], rows[order]
    cuts = np.flatnonzero(np.diff(which)) + 1
    for first, last in zip([0, *cuts.tolist()], [*cuts.tolist(), len(order)], strict=True):
        yield filled[which[first]].take(rows[first:last])
