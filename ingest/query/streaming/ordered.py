"""Windows in the order of their labels, kind, start and layout: an export is the same whoever is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ingest.core.intervals import Intervals, merged
from ingest.core.layout import Layout, in_order
from ingest.core.series import Group, labels_first


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
    low, high = 0, len(part)
    while low < high:
        middle = (low + high) // 2
        if _place(part, middle) < place:
            low = middle + 1
        else:
            high = middle
    return part.take(np.arange(low)), part.take(np.arange(low, len(part)))


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
