"""Groups added up: an answer by some of its labels only, and rows so that each group is in one part.

by host, op:  (node-a, read), (node-b, read), (node-a, write)  ->  by op:  read (both hosts), write
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ingest.core.csr import total
from ingest.core.errors import InputError, UsageError
from ingest.core.grid import WEIGHT_BITS
from ingest.core.intervals import Intervals, merged
from ingest.core.layout import Layout, common_layout
from ingest.core.series import Group

if TYPE_CHECKING:
    from ingest.query.question import Answer

MOST_WEIGHED = 1 << 62


def regrouped(answer: Answer, by: Sequence[str]) -> Answer:
    """Return the answer grouped by some of its labels only: the groups of the others are added up.

    Where events that were stored at unlike rates come together, each counts by its weight, in units of 2^-16, and what was
    stored are the completions. UsageError where that would be added up in flight.
    """
    places = [answer.by.index(name) for name in by]

    def regroup(key: Group) -> Group:
        return tuple(key[place] for place in places)

    if answer.weights is None:
        parts = by_layout([part.relabelled(regroup) for part in answer.parts if len(part)])
        return replace(answer, parts=tuple(parts), by=tuple(by))
    weights = _weights_of(answer, regroup)
    mixed = {group for group, group_weights in weights.items() if len(group_weights) > 1 or 0 in group_weights}
    plain, heavy = [], []
    for part in answer.parts:
        plain.append(part.where(lambda key: regroup(key) not in mixed).relabelled(regroup))
        heavy.append(_times_weight(part.where(lambda key: regroup(key) in mixed), answer).relabelled(regroup))
    parts = [part for rows in (plain, heavy) for part in by_layout([share for share in rows if len(share)])]
    alike = {group: group_weights.pop() for group, group_weights in weights.items() if group not in mixed}
    return replace(answer, parts=tuple(parts), by=tuple(by), weights=alike)


def _weights_of(answer: Answer, regroup: Callable[[Group], Group]) -> dict[Group, set[int]]:
    """Return the weights that come together in each group: 0 for counts that are weighed already."""
    known = answer.weights or {}
    weights: dict[Group, set[int]] = {}
    for part in answer.parts:
        for code in np.flatnonzero(np.bincount(part.series)).tolist():
            key = part.table[code]
            weights.setdefault(regroup(key), set()).add(known.get(key, 0))
    return weights


def _times_weight(rows: Intervals[Group], answer: Answer) -> Intervals[Group]:
    """Return rows with each count times the weight of its group in units of 2^-16, what was stored as completions."""
    known = answer.weights or {}
    weights = np.array([known.get(key, 0) for key in rows.table], np.int64)[rows.series]
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
