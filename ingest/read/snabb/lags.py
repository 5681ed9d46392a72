"""Lags: the cycles since the closest stored event before that is of the same level or further out, its anchor.

    level 1   breath_start                          breath_end      lag of breath_end: since breath_start, the whole breath
    level 3            push   pushed   push  pushed                 lag of pushed: since push; of push: since pushed
    level 9                 x                                       lag of x: since push

Only stored events can be anchors, so one event has several anchors, at different rates: lags of (event, anchor) pairs are
series of their own. Not every lag is a latency, and those that are not are left out:

* the first event of a breath counts from the last one that was sampled, on average hundreds of breaths ago;
* a lag across two cores compares two counters;
* where an entry in between was lost, it may have been the anchor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Int
from ingest.read.snabb.messages import Message

BREATH_START, BREATH_END = "engine.breath_start", "engine.breath_end"
OF_BREATH = frozenset(
    f"engine.{name}" for name in ("commited_counters", "polled_timers", "sleep_hz", "sleep_on_idle", "wakeup_from_sleep")
)
COUNTED, FIRST, BETWEEN, OTHER_CORE, LOST, UNNAMED = range(6)
REASONS = (
    "",
    "nothing of its level or further out before it",
    "it would count from an earlier breath",
    "it would count from another core",
    "an entry before it was lost",
    "no text describes it",
)


@dataclass(frozen=True, slots=True)
class Lags:
    """Of each event the index of its anchor (-1 where there is none), the cycles since, and why these are no latency.

    `fault` is a number in REASONS: COUNTED where the lag is one, FIRST and UNNAMED where there is no anchor at all.
    """

    anchor: Int
    cycles: Int
    fault: Int


def anchors(depth: Int) -> Int:
    """Return the index of the last event before each that is at most as deep; -1 where there is none, or depth is below 0."""
    anchor = np.full(len(depth), -1, np.int64)
    for level in range(int(depth.max(initial=-1)) + 1):
        outer = np.flatnonzero((depth >= 0) & (depth <= level))
        mine = np.flatnonzero(depth[outer] == level)
        mine = mine[mine > 0]
        anchor[outer[mine]] = outer[mine - 1]
    return anchor


def units(codes: Int, messages: Sequence[Message]) -> Int:
    """Return the number of the breath that each event belongs to: from breath_start to what follows breath_end.

    What comes after that, outside any stored breath, has a number of its own.
    """
    names = [message.name.lower() for message in messages]
    starts = np.array([name == BREATH_START for name in names], np.bool_)[codes]
    ends = np.array([name == BREATH_END for name in names], np.bool_)[codes]
    trailing = np.array([name in OF_BREATH for name in names], np.bool_)[codes]
    begins = starts.copy()
    # After breath_end the breath goes on while events are trailing ones: the first other one is outside.
    outside = np.flatnonzero(~trailing & ~ends & ~starts)
    last_mark = np.maximum.accumulate(np.where(ends | begins, np.arange(len(codes)), -1))
    after_end = (last_mark >= 0) & ends[np.maximum(last_mark, 0)]
    first_outside = outside[after_end[outside]]
    if len(first_outside):
        marks = last_mark[first_outside]
        begins[first_outside[np.append(True, marks[1:] != marks[:-1])]] = True
    unit_numbers: Int = np.cumsum(begins)
    return unit_numbers


def lags_of(tsc: Int, core: Int, codes: Int, messages: Sequence[Message], lost: Int) -> Lags:
    """Return the lag of each event, oldest first; `lost` counts the entries before each that were lost."""
    depth = np.array([message.depth for message in messages], np.int64)[codes]
    anchor = anchors(depth)
    at = np.maximum(anchor, 0)
    unit = units(codes, messages)
    fault = np.select(
        [depth < 0, anchor < 0, core != core[at], lost != lost[at], unit != unit[at]],
        [UNNAMED, FIRST, OTHER_CORE, LOST, BETWEEN],
        COUNTED,
    )
    return Lags(anchor, np.where(anchor < 0, 0, tsc - tsc[at]), fault)
