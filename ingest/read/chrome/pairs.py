"""Beginnings and ends of operations, which belong together by time, in whatever order a trace holds them.

Each thread of a program has a buffer of its own, and a trace is the buffers one after another: the end of what two threads did
may stand before its beginning. So both wait until the trace is over, or until a million of them do: then those that belong
together leave, and the others wait on.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from ingest.core.intervals import Bool, Int

MOST_HELD = 1 << 20


@dataclass(frozen=True, slots=True)
class Marks:
    """Beginnings and ends in the order of the file: of which operation (`key`), when, in which line, its name and its place.

    `thread` are those that nest in a thread. Keys, names and places are numbers that only their owner knows.
    """

    key: Int
    at_ns: Int
    line: Int
    name: Int
    place: Int
    ends: Bool
    thread: Bool

    def __len__(self) -> int:
        return len(self.key)

    def take(self, rows: Int | Bool) -> Marks:
        """Return the given marks."""
        return Marks(*(getattr(self, column.name)[rows] for column in fields(self)))

    @classmethod
    def joined(cls, parts: list[Marks]) -> Self:
        """Return the marks of several parts, at least one."""
        return cls(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(cls)))


def paired(marks: Marks) -> tuple[Int, Int, Int]:
    """Return the rows of beginnings, of their ends, and of the marks that stay alone.

    By time, an end belongs to the last beginning of its key that has none yet; at one time the order of the file counts. A
    beginning and an end of one time that the file holds the wrong way round belong together, too, but not in a thread, which
    writes its own in order.
    """
    begin, end = _nested(marks, np.lexsort((marks.at_ns, marks.key)))
    left = _others(len(marks), begin, end)
    again = left[~marks.thread[left]]
    rest = marks.take(again)
    late_begin, late_end = (again[rows] for rows in _nested(rest, np.lexsort((rest.ends, rest.at_ns, rest.key))))
    begin, end = np.append(begin, late_begin), np.append(end, late_end)
    return begin, end, _others(len(marks), begin, end)


def is_out_of_order(marks: Marks) -> bool:
    """Return whether the marks of a key do not stand in the order of their times."""
    order = np.argsort(marks.key, kind="stable")
    key, at_ns = marks.key[order], marks.at_ns[order]
    return bool(((key[1:] == key[:-1]) & (at_ns[1:] < at_ns[:-1])).any())


def _others(size: int, begin: Int, end: Int) -> Int:
    alone = np.ones(size, np.bool_)
    alone[begin] = alone[end] = False
    return np.flatnonzero(alone)


def _nested(marks: Marks, order: Int) -> tuple[Int, Int]:
    """Return the rows of beginnings and of their ends, as brackets nest in the marks of each key in an order.

    At each place a key is so many levels deep; an end for which nothing is open lowers the ground that depth is counted from.
    """
    key, ends, size = marks.key[order], marks.ends[order], len(order)
    if not size:
        return order, order
    fresh = np.append(True, key[1:] != key[:-1])
    first, group = np.flatnonzero(fresh), np.cumsum(fresh) - 1
    step = np.where(ends, -1, 1)
    total = np.cumsum(step)
    depth = total - (total[first] - step[first])[group]
    below = group * (size + 1)  # each key begins below all of the one before, so that one pass finds the least of each
    ground = np.minimum.accumulate(np.minimum(depth, 0) - below) + below
    before = np.append(0, ground[:-1])
    before[first] = 0
    level = depth - ground + ends
    kept = np.flatnonzero(ground == before)
    kept = kept[np.lexsort((kept, level[kept], group[kept]))]
    one, two = kept[:-1], kept[1:]
    pair = (group[one] == group[two]) & (level[one] == level[two]) & ~ends[one] & ends[two]
    return order[one[pair]], order[two[pair]]
