"""Many streams of windows -> one, in time order, in memory that does not grow with their length or number.

Each stream gives the windows of a source as its rows come, about in the order of time. A window is given out once every
stream has passed it: added up over all of them, exact, whatever the order of the streams. What a stream brings later than
that (a log whose lines run back in time) is given out then, as a window of its own: counts are never lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ingest.core.grid import INT64_MAX
from ingest.core.intervals import Intervals, in_time_order, merged
from ingest.core.series import Group

MOST_ENTRIES = 500_000


def union(
    streams: Sequence[Iterator[Intervals[Group]]], most_entries: int = MOST_ENTRIES, slack_ns: int = 0
) -> Iterator[Intervals[Group]]:
    """Yield the windows of all streams added up, ordered by start, then group; one layout at a time.

    Each (group, start, end) comes once, unless a stream brings it later than `slack_ns` after what it had reached. Merging
    is exact as `intervals.merged` is.
    """
    live = dict(enumerate(streams))
    reached = dict.fromkeys(live, -INT64_MAX)
    pending: list[Intervals[Group]] = []
    entries, limit = 0, most_entries
    while live:
        number = min(live, key=lambda stream: (reached[stream], stream))
        part = next(live[number], None)
        if part is None:
            del live[number], reached[number]
            continue
        if not len(part):
            continue
        reached[number] = max(reached[number], int(part.start_ns.max()))
        pending.append(part)
        entries += len(part.bins)
        if entries > limit:
            done, pending = _passed(pending, min(reached.values()) - slack_ns)
            yield from done
            entries = sum(len(piece.bins) for piece in pending)
            limit = entries + most_entries
    yield from _passed(pending, INT64_MAX)[0]


def regrouped(part: Intervals[Group], places: Sequence[int]) -> Intervals[Group]:
    """Return windows with only these places of their groups kept: equal groups become one when they are added up."""
    return part.relabelled(lambda key: tuple(key[place] for place in places))


def _passed(pending: list[Intervals[Group]], until_ns: int) -> tuple[list[Intervals[Group]], list[Intervals[Group]]]:
    """Return the sums of windows that begin before a time, and those of the others; per layout."""
    by_layout: dict[str, list[Intervals[Group]]] = {}
    for part in pending:
        by_layout.setdefault(str(part.layout), []).append(part)
    done, rest = [], []
    for _, parts in sorted(by_layout.items()):
        for rows in _summed(parts):
            early = rows.start_ns < until_ns
            if early.any():
                done.append(in_time_order(rows.take(np.flatnonzero(early))))
            if not early.all():
                rest.append(rows.take(np.flatnonzero(~early)))
    return done, rest


def _summed(parts: list[Intervals[Group]]) -> list[Intervals[Group]]:
    """Return the sums of parts of one layout, ordered by time one after another.

    Windows of the last part that begin after those of all others are added to nothing: where they lie together they are not
    copied, which takes longer than all the rest for a single log.
    """
    *others, last = parts
    if not others or not (last.start_ns[1:] >= last.start_ns[:-1]).all():
        return [merged(parts)]
    after = int(np.searchsorted(last.start_ns, max(int(part.start_ns.max()) for part in others), side="right"))
    rows = np.arange(len(last))
    if 2 * last.indptr[after] > last.indptr[-1] or not (later := last.take(rows[after:])).each_once:
        return [merged(parts)]
    return [merged([*others, last.take(rows[:after])] if after else others), later]
