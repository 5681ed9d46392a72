"""When requests were due, and whether a run kept to it: the verdict on coordinated omission.

    due      T0 + n / rate, or a column of the log        wait      started - due
    service  ended - started                              response  ended - due = wait + service

A generator that falls behind its schedule hides waiting time: its service times are those of fewer requests than were due.
Each source leaves a digest in its account (`ingest.read.schedule_seen`); `sentences` puts those of one generator together and
judges by the best evidence that they hold, and says which:

1. response against service time of an op (or wait against either): behind where at one of LEVELS the response takes at least
   TIMES what the service takes, and at least TIMER_NS more, which is what timers alone can be late by;
2. the expected interval: what the correction puts back, held against what was measured in the same way;
3. the achieved rate against --rate, all ops added up: behind below ENOUGH of it, or where a stretch of windows lacks more
   requests than fit into SLACK windows and the rate before or after it shows that more was possible. The end of the log
   that its last interval leaves idle does not count, nor a ramp in the first quarter of the run.

Logs of one generator are those of one run, host, volume and job whose names differ by an op or by `Intended-` alone (YCSB).
Measured error rates: docs/explanation/verdicts.md.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.series import CORRECTED
from ingest.core.timing import format_duration
from ingest.core.writing import figure, latency, number
from ingest.read.schedule_seen import LEVELS, P99, RATED, RESPONSE, SECOND, SERVICE, WAIT

ENOUGH = 0.99
TIMES = 2.0
TIMER_NS = 1_000_000
SLACK = 1.5  # windows that stamps and counts of intervals may be off by
LOW = 0.8  # of the target: windows below it are a stall
RAMP = 0.25  # of the windows: so long may a run take to reach its rate
OMISSION = "coordinated omission: "
UNSCHEDULED = (
    "service time only: it is unknown when requests were due (--rate, --intended-start-column), so omitted waiting cannot be seen"
)


@dataclass(frozen=True, slots=True)
class _Rates:
    """Samples by window of a generator, all ops added up: window width and the longest row in ns."""

    counts: NDArray[np.float64]
    width_ns: int
    longest_ns: int
    first_ns: int
    edges: tuple[int, int, int]

    def clipped(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return counts and seconds of the windows that are judged: without those of the last interval, if others are left."""
        starts = self.first_ns + self.width_ns * np.arange(len(self.counts))
        low = np.maximum(starts, self.edges[0])
        high = np.minimum(starts + self.width_ns, self.edges[1])
        whole = np.flatnonzero((high > low) & (starts + self.width_ns <= self.edges[2]))
        places = whole if len(whole) else np.flatnonzero(high > low)
        return self.counts[places], (high - low)[places] / SECOND


def sentences(digests: Iterable[tuple[str, str]]) -> list[str]:
    """Return what is to be said of the schedules of runs: a line on each that has one, and a warning where it was not kept.

    `digests` are those of all sources, each with the name that it is to be called by.
    """
    generators: dict[tuple[str, ...], list[tuple[str, dict[str, Any]]]] = {}
    for name, text in digests:
        digest = json.loads(text)
        generators.setdefault((*digest["labels"][:4], _stem(digest)), []).append((name, digest))
    said: dict[str, set[str]] = {}  # what holds for many generators is said once
    for sources in generators.values():
        for sentence in _sentences([digest for _, digest in sources]):
            said.setdefault(sentence, set()).update(name for name, _ in sources if name)
    return [_front(sorted(names)) + sentence for sentence, names in said.items()]


def _front(names: Sequence[str]) -> str:
    """Return what a sentence begins with that is about these logs."""
    return "" if not names else f"{names[0]}: " if len(names) == 1 else f"{names[0]} and {len(names) - 1} more: "


def _stem(digest: Mapping[str, Any]) -> str:
    """Return the name of a process without what names an op or a kind of time in it."""
    process = str(digest["labels"][4]).lower().replace("intended-", "")
    for op in {str(entry[0]) for entry in digest["series"]} - {""}:
        process = re.sub(rf"(?<![a-z0-9]){re.escape(op)}(?![a-z0-9])", "", process)
    return process


def _sentences(digests: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield what is said of one generator."""
    by_op: dict[tuple[str, str], dict[str, list[int | None]]] = {}
    for digest in digests:
        for op, tag, kind, *levels in digest["series"]:
            kinds = by_op.setdefault((op, tag), {})
            if kind not in kinds or (levels[0] or 0) > (kinds[kind][0] or 0):
                kinds[kind] = levels
    kinds_seen = {kind for digest in digests for kind, count in digest["samples"].items() if count}
    rate = next((Fraction(digest["rate"]) for digest in digests if digest["rate"]), None)
    expected = max(digest["expected_ns"] for digest in digests)
    measured = [digest for digest in digests if not digest["expected_ns"]]
    if measured and (rate is not None or kinds_seen & {RESPONSE, WAIT}):
        yield _facts(measured, rate)
    elif kinds_seen == {SERVICE} and not expected:
        yield UNSCHEDULED
    by_rate = _by_rate(measured, rate) if measured and rate is not None else ""
    if behind := _by_waiting(by_op) or _by_correction(by_op, expected) or by_rate:
        yield OMISSION + behind


def _facts(digests: Sequence[dict[str, Any]], rate: Fraction | None) -> str:
    """Return the line on a schedule: its target and achieved rate, the longest wait."""
    achieved = _achieved(digests)
    lag = max((digest["lag_ns"] for digest in digests if digest["lag_ns"] is not None), default=None)
    target, share = (f"target {_rate(rate)}, ", f" ({100 * achieved / rate:.1f} %)") if rate else ("", "")
    late = "" if lag is None else f", largest lag {latency(lag)}"
    return f"schedule: {target}achieved {_rate(achieved)}{share}{late}"


def _achieved(digests: Sequence[dict[str, Any]]) -> float:
    """Return the samples of a generator a second, of service time where there is any; the end of its last interval apart."""
    kinds = {kind for digest in digests for kind, count in digest["samples"].items() if count}
    rated = next((kind for kind in RATED if kind in kinds), None)
    counted = [(digest["samples"].get(rated, 0) if rated is not None else sum(digest["samples"].values())) for digest in digests]
    spans = [digest["span_ns"] for digest in digests]
    if not all(spans):
        rates = _rates(digests)
        if rates is not None:
            counts, seconds = rates.clipped()
            return float(counts.sum() / seconds.sum())
        edges = [digest["edges"] for digest in digests if digest["edges"]]
        spans = [max((last for _, last, _ in edges), default=0) - min((first for first, _, _ in edges), default=0)]
    return float(sum(counted) * SECOND / max(*spans, 1))


def _rates(digests: Sequence[dict[str, Any]]) -> _Rates | None:
    """Return the windows of all logs of a generator added up, those of service time where there is any; None without any."""
    known = [digest for digest in digests if digest["edges"] and digest["windows"][2]]
    kinds = {kind for digest in known for kind, count in digest["samples"].items() if count}
    rated = next((kind for kind in RATED if kind in kinds), None)
    mine = [digest for digest in known if rated is None or digest["samples"].get(rated)]
    if not mine:
        return None
    width = max(digest["windows"][0] for digest in mine)
    total: Counter[int] = Counter()
    for digest in mine:
        own_width, first, counts = digest["windows"]
        for place, count in enumerate(counts, first):
            total[place * own_width // width] += count
    first = min(total)
    counts = np.array([total[place] for place in range(first, max(total) + 1)], np.float64)
    edges = [digest["edges"] for digest in mine]
    last, since = max((last, since) for _, last, since in edges)
    longest = max(digest["longest_ns"] for digest in mine)
    return _Rates(counts, width, longest, first * width, (min(edge[0] for edge in edges), last, since))


def _by_waiting(by_op: Mapping[tuple[str, str], Mapping[str, Sequence[int | None]]]) -> str:
    """Return how far the op that waited most is behind, by its percentiles; nothing where no op is."""
    worst: tuple[bool, float, str] = (False, 0.0, "")  # p99 is named first, where it is one of them
    for (op, _), kinds in by_op.items():
        service, response, wait = (kinds.get(kind) for kind in (SERVICE, RESPONSE, WAIT))
        of_op = f" of {op}" if op else ""
        for place, level in enumerate(LEVELS, 1):
            at = [values[place] if values else None for values in (service, response, wait)]
            if at[0] is not None and at[1] is not None:
                low, high, words = at[0], at[1], "response p{0:g}{1} is {2}, service p{0:g} {3}"
            elif at[0] is not None and at[2] is not None:
                low, high, words = at[0], at[0] + at[2], "service p{0:g}{1} is {3}, and p{0:g} of the wait before it {4}"
            elif at[1] is not None and at[2] is not None:
                low, high, words = max(at[1] - at[2], 1), at[1], "response p{0:g}{1} is {2}, of which p{0:g} of the wait {4}"
            else:
                continue
            if high >= TIMES * low and high - low >= TIMER_NS:
                sentence = words.format(level, of_op, _short(high), _short(low), _short(at[2] or 0))
                worst = max(worst, (level == P99, high / max(low, 1), sentence))
    if not worst[2]:
        return ""
    return (
        f"judged by the time that requests waited: {worst[2]}; "
        "service time leaves out what waited before it was sent: read response time"
    )


def _by_correction(by_op: Mapping[tuple[str, str], Mapping[str, Sequence[int | None]]], expected_ns: int) -> str:
    """Return how much the correction by an expected interval changes, where it is much."""
    worst: tuple[float, str] = (0.0, "")
    for (op, _), kinds in by_op.items():
        for kind, values in kinds.items():
            fixed = kinds.get(f"{kind}.{CORRECTED}" if kind else CORRECTED)
            for level, low, high in zip(LEVELS, values[1:], fixed[1:] if fixed else (), strict=False):
                if low is None or high is None or high < TIMES * low or high - low < TIMER_NS or high / max(low, 1) <= worst[0]:
                    continue
                named = f"{kind or 'measured'} p{number(level)}" + (f" of {op}" if op else "")
                worst = high / max(low, 1), f"{named} is {_short(low)} as measured and {_short(high)} corrected"
    if not worst[1]:
        return ""
    return (
        f"judged by the expected interval of {format_duration(expected_ns)}: {worst[1]}; "
        "requests that were due meanwhile were not sent: read the corrected kind"
    )


def _by_rate(digests: Sequence[dict[str, Any]], target: Fraction) -> str:
    """Return how far the achieved rate is behind its target; nothing where it is not."""
    exact = all(digest["span_ns"] for digest in digests)
    rates = None if exact else _rates(digests)
    if rates is None:
        share = _achieved(digests) / float(target)
        return _too_few(share) if share < ENOUGH else ""
    counts, seconds = rates.clipped()
    due = seconds * float(target)
    share = counts.sum() / due.sum()
    if share < ENOUGH:
        begun = _after_ramp(counts / due)
        share = counts[begun:].sum() / due[begun:].sum()
        if share < ENOUGH:
            return _too_few(float(share))
        counts, due = counts[begun:], due[begun:]
    slack = SLACK * max(rates.width_ns, rates.longest_ns) / SECOND
    behind = max(_largest_stall(counts, due), _largest_backlog(counts, due)) / float(target)
    if behind <= slack:
        return ""
    return (
        f"judged by the rate: requests were up to {figure(behind, 2)} s behind --rate, of which {100 * share:.1f} % was reached; "
        "percentiles of service time leave out what waited: read response time"
    )


def _too_few(share: float) -> str:
    return (
        f"judged by the rate: only {100 * share:.1f} % of the requests that were due could be sent in time; "
        "percentiles of service time leave out what waited: read response time"
    )


def _after_ramp(shares: NDArray[np.float64]) -> int:
    """Return the first window that reaches the target, 0 where none in the first quarter does: then it is no ramp."""
    reached = np.flatnonzero(shares >= ENOUGH)
    first = int(reached[0]) if len(reached) else len(shares)
    return first if first <= RAMP * len(shares) else 0


def _largest_stall(counts: NDArray[np.float64], due: NDArray[np.float64]) -> float:
    """Return how many requests the worst stretch of slow windows lacks."""
    worst = lacking = 0.0
    for count, wanted in zip(counts.tolist(), due.tolist(), strict=True):
        lacking = lacking + wanted - count if count < LOW * wanted else 0.0
        worst = max(worst, lacking)
    return worst


def _largest_backlog(counts: NDArray[np.float64], due: NDArray[np.float64]) -> float:
    """Return by how many requests the run was behind at most that it made up for afterwards."""
    behind = np.concatenate([[0.0], np.cumsum(due - counts)])
    risen = behind - np.minimum.accumulate(behind)
    fallen = behind - np.minimum.accumulate(behind[::-1])[::-1]
    return float(np.minimum(risen, 2 * fallen).max())


def _short(ns: float) -> str:
    """Return a duration in two digits: a digest has no more."""
    rounded = float(f"{ns:.1e}")
    for unit, size in (("s", SECOND), ("ms", 1_000_000), ("us", 1000)):
        if rounded >= size:
            return f"{number(rounded / size)} {unit}"
    return f"{number(rounded)} ns"


def _rate(rate: float | Fraction) -> str:
    return f"{figure(float(rate), 6 if rate < SECOND else 4)}/s"
