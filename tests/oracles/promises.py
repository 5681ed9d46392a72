"""What is certain of an objective where samples are missing: loops over every window and everything that may be missing in it.

A missing sample may have completed in any window, within any time; each window is looked at by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from oracles import episodes
from oracles.episodes import Event, Promise

FAST, NEVER = 1, 10**15
Window = tuple[int, list[Event]]


@dataclass(frozen=True)
class Told:
    """Of one group: how many windows were judged, are violated for certain, or may be; starts and ends of episodes; the outcome, and between
    which shares of the windows, or of the requests, the promise was missed.
    """

    windows: int
    violated: int
    unknown: int
    certain: list[tuple[int, int]]
    outcome: str
    used: tuple[Fraction, Fraction]


def may_be_violated(inside: list[Event], promise: Promise, missing: int, before: tuple[bool, bool]) -> tuple[bool, bool]:
    """Return whether a window is violated whatever is missing, and whether it is if something is; `before` of the one before."""
    found = []
    for more in range(missing + 1):
        if promise.rate is not None and (inside or more):
            found.append(Fraction((len(inside) + more) * 10**9, promise.window) < promise.rate)
        elif inside or more:
            for took in (FAST, NEVER) if more else (FAST,):
                latencies = sorted([one[3] for one in inside] + [took] * more)
                value = latencies[episodes.rank_of(len(latencies), promise.percentile) - 1]
                found.append(value > promise.threshold)
        elif promise.no_data == "hold":
            found += before
        else:
            found.append(promise.no_data == "violate")
    return all(found), any(found)


def spans(windows: list[Window], bad: list[bool], promise: Promise) -> list[tuple[int, int]]:
    """Return the start and end of each episode in a stretch of windows."""
    chains: list[list[int]] = []
    for (start, _), is_bad in zip(windows, bad, strict=True):
        if is_bad and chains and start - chains[-1][1] <= promise.hold:
            chains[-1][1] = start + promise.window
        elif is_bad:
            chains.append([start, start + promise.window])
    return [(start, end) for start, end in chains if end - start >= promise.lasting]


def told(every: list[Window], promise: Promise, missing: int, budget: tuple[Fraction, bool] | None, judged) -> Told:
    """Return what is certain of one group, all of whose windows are given; a budget is a share, of requests or of windows."""
    filled = every if promise.rate is None else every[1:-1]
    certain: list[tuple[int, int]] = []
    possible: list[tuple[int, int]] = []
    count = violated = perhaps = requests = over = 0
    for windows in episodes.segments(filled, promise, judged):
        states, before = [], (False, False)
        for _, inside in windows:
            before = may_be_violated(inside, promise, missing, before)
            states.append(before)
            requests += len(inside)
            over += sum(one[3] > promise.threshold for one in inside)
        certain += spans(windows, [each for each, _ in states], promise)
        possible += spans(windows, [each for _, each in states], promise)
        count += len(windows)
        violated += sum(each for each, _ in states)
        perhaps += sum(each for _, each in states)
    least, most = Fraction(violated, count or 1), Fraction(perhaps, count or 1)
    if budget is not None and budget[1]:
        least, most = (Fraction(each, requests + missing or 1) for each in (over, over + missing))
    if budget is None:
        outcome = "violated" if certain else "cannot tell" if possible else "met"
    else:
        outcome = "violated" if least > budget[0] else "cannot tell" if most > budget[0] else "met"
    return Told(count, violated, perhaps - violated, certain, outcome, (least, most))
