"""When an objective was violated, window by window: what `tailboard check` must find. Plain loops after docs/guides/check.md alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from oracles.events import index_of, midpoint, window_of

Event = tuple[str, str, int, int]  # host, op, completion in ns, latency in ns
Found = tuple[tuple[str, ...], int, int, int | None, int, int, int, int, str, str]


@dataclass(frozen=True)
class Promise:
    """An objective in plain numbers; the percentile as it is written. With a `rate` a second that is what is promised."""

    percentile: str
    threshold: int
    window: int
    lasting: int
    hold: int
    no_data: str
    where: dict[str, str] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    rate: Fraction | None = None


def rank_of(count: int, percentile: str) -> int:
    """Return the nearest rank: the smallest whole number that is at least count * p / 100."""
    exact = count * Fraction(percentile) / 100
    return max(-(-exact.numerator // exact.denominator), 1)


def value_of(latencies: list[int], percentile: str) -> int:
    """Return what is reported for the sample of that rank: the middle of its bin, within the extremes; of p100 the sample itself."""
    if Fraction(percentile) == 100:
        return max(latencies)
    middle = midpoint(index_of(sorted(latencies)[rank_of(len(latencies), percentile) - 1]))
    return max(min(latencies), min(max(latencies), middle))


def carried(count: int, percentile: str) -> bool:
    """Return whether so many samples can carry a percentile: above 50 at least one must lie beyond."""
    p = Fraction(percentile)
    return p <= 50 or p == 100 or count * (100 - p) >= 100


def labels_of(event: Event) -> dict[str, str]:
    return {"host": event[0], "op": event[1]}


def windows_of(
    events: list[Event], promise: Promise, until: int | None = None
) -> dict[tuple[str, ...], list[tuple[int, list[Event]]]]:
    """Return, for each group, every window of the run's life in order with the events that completed in it."""
    stamps = [window_of(end, promise.window) for _, _, end, _ in events]
    last = max(stamps) if until is None else until - promise.window
    mine = [one for one in events if all(labels_of(one)[name] == value for name, value in promise.where.items())]
    groups = sorted({tuple(labels_of(one)[name] for name in promise.by) for one in mine})
    if not groups and not promise.by and promise.no_data == "violate":
        groups = [()]
    found = {}
    for group in groups:
        own = [one for one in mine if tuple(labels_of(one)[name] for name in promise.by) == group]
        starts = range(min(stamps), last + promise.window, promise.window)
        found[group] = [(start, [one for one in own if window_of(one[2], promise.window) == start]) for start in starts]
    return found


def violations(windows: list[tuple[int, list[Event]]], promise: Promise) -> list[bool]:
    """Return which windows are violated."""
    found: list[bool] = []
    for _, inside in windows:
        if inside and promise.rate is not None:
            found.append(Fraction(len(inside) * 10**9, promise.window) < promise.rate)
        elif inside:
            found.append(value_of([one[3] for one in inside], promise.percentile) > promise.threshold)
        elif promise.no_data == "hold":
            found.append(found[-1] if found else False)
        else:
            found.append(promise.no_data == "violate")
    return found


def in_phase(word: str, marks: list[tuple[int, int | None]], start: int, end: int) -> bool:
    """Return whether a window (start, end] is in a phase, nanosecond by nanosecond in thought: marks are (from, to or None)."""
    spans = [(low, low if high is None else high) for low, high in marks]
    if word == "before":
        return all(end <= low for low, _ in spans)
    if word == "after":
        return all(start >= high for _, high in spans)
    if word == "outside":
        return all(end <= low or start >= high for low, high in spans)
    covered = start
    for low, high in sorted(spans):
        if low <= covered < high:
            covered = high
    return covered >= end


def segments(windows: list[tuple[int, list[Event]]], promise: Promise, judged) -> list[list[tuple[int, list[Event]]]]:
    """Return the windows that are judged, cut where one between them is not."""
    found: list[list[tuple[int, list[Event]]]] = []
    before = False
    for start, inside in windows:
        now = judged(start, start + promise.window)
        if now and before:
            found[-1].append((start, inside))
        elif now:
            found.append([(start, inside)])
        before = now
    return found


def episodes_of(events: list[Event], promise: Promise, until: int | None = None, judged=lambda start, end: True) -> list[Found]:  # noqa: ARG005
    """Return all episodes: group, start, end, peak, samples, windows, silent, thin, worst host, state; by start, then group.

    Windows that `judged` refuses are cut out, and nothing goes on across them.
    """
    found: list[Found] = []
    for group, every in windows_of(events, promise, until).items():
        filled = every if promise.rate is None else every[1:-1]  # the first and the last window of a run are parts
        life_end = filled[-1][0] + promise.window if filled else 0
        for windows in segments(filled, promise, judged):
            found += _episodes_in(group, windows, promise, life_end, every)
    return sorted(found, key=lambda one: (one[1], one[0]))


def _episodes_in(group: tuple[str, ...], windows, promise: Promise, life_end: int, every) -> list[Found]:
    found: list[Found] = []
    if windows:
        bad = violations(windows, promise)
        chains: list[list[int]] = []
        for place, is_bad in enumerate(bad):
            if not is_bad:
                continue
            start = windows[place][0]
            if chains and start - (windows[chains[-1][-1]][0] + promise.window) <= promise.hold:
                chains[-1].append(place)
            else:
                chains.append([place])
        stretch_end = windows[-1][0] + promise.window
        for chain in chains:
            start, end = windows[chain[0]][0], windows[chain[-1]][0] + promise.window
            if end - start >= promise.lasting:
                found.append(
                    (
                        group,
                        start,
                        end,
                        *_told(windows, chain, promise),
                        _worst(windows, chain, group, promise, every),
                        _state(end, life_end, promise) if stretch_end == life_end else "ended",
                    )
                )
    return found


def _told(windows, chain: list[int], promise: Promise) -> tuple[int | None, int, int, int, int]:
    full = [[one[3] for one in windows[place][1]] for place in chain]
    if promise.rate is not None:
        samples = sum(len(windows[place][1]) for place in range(chain[0], chain[-1] + 1))
        return min(map(len, full)), samples, len(chain), sum(1 for latencies in full if not latencies), 0
    peaks = [value_of(latencies, promise.percentile) for latencies in full if latencies]
    samples = sum(len(windows[place][1]) for place in range(chain[0], chain[-1] + 1))
    thin = sum(1 for latencies in full if latencies and not carried(len(latencies), promise.percentile))
    return max(peaks) if peaks else None, samples, len(chain), sum(1 for latencies in full if not latencies), thin


def _worst(windows, chain: list[int], group: tuple[str, ...], promise: Promise, every) -> str:
    if "host" in promise.by:
        return group[promise.by.index("host")]
    if promise.rate is not None:  # who does most less than in all of its life
        mine = [one[0] for place in range(chain[0], chain[-1] + 1) for one in windows[place][1]]
        whole = [one[0] for _, inside in every for one in inside]
        share = Fraction(chain[-1] - chain[0] + 1, len(every))
        less = {host: whole.count(host) * share - mine.count(host) for host in sorted(set(whole))}
        worst = max(less, key=lambda host: less[host], default="")
        return worst if worst and less[worst] > 0 else ""
    sums: dict[str, int] = {}
    for place in range(chain[0], chain[-1] + 1):
        for host, _, _, latency in windows[place][1]:
            if midpoint(index_of(latency)) > promise.threshold:
                sums[host] = sums.get(host, 0) + 1
    return min(sums, key=lambda host: (-sums[host], host)) if sums else ""


def _state(end: int, life_end: int, promise: Promise) -> str:
    return "open" if end + promise.hold >= life_end else "ended"
