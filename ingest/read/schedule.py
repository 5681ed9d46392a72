"""When requests were due, whether a run kept to it, and the correction where it did not: coordinated omission.

When requests were due, and whether a run kept to it: the verdict on coordinated omission.

    due      T0 + n / rate, or a column of the log        wait      started - due
    service  ended - started                              response  ended - due = wait + service

A generator that falls behind its schedule hides waiting time: its service times are those of fewer requests than were due.
Each source leaves a digest in its account (`ingest.read.schedule`); `sentences` puts those of one generator together and
judges by the best evidence that they hold, and says which:

1. response against service time of an op (or wait against either): behind where at one of LEVELS the response takes at least
   TIMES what the service takes, and at least TIMER_NS more, which is what timers alone can be late by;
2. the expected interval: what the correction puts back, held against what was measured in the same way;
3. the achieved rate against --rate, all ops added up: behind below ENOUGH of it, or where a stretch of windows lacks more
   requests than fit into SLACK windows and the rate before or after it shows that more was possible. The end of the log
   that its last interval leaves idle does not count, nor a ramp in the first quarter of the run.

Logs of one generator are those of one run, host, volume and job whose names differ by an op or by `Intended-` alone (YCSB).
Measured error rates: docs/explanation/verdicts.md.

Coordinated omission: the correction of a histogram whose requests were due at a known interval.

A closed-loop generator that waits for a slow answer sends nothing meanwhile: the requests that were due are missing from
its histogram. Where their interval I is known, each sample of value v stands also for those that would have waited behind
it: v - I, v - 2I, ... down to I.

    I = 10 ms, one sample of 35 ms among thousands of 1 ms  ->  35, 25, 15 ms

Right only for service times that were measured without a schedule, never twice, and never for response times. So corrected
counts are a kind of their own (`service.corrected`), taken only when asked for.

Source: HdrHistogram's copyCorrectedForCoordinatedOmission, which takes the highest value of each bin; checked against it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.core.coverage import OMISSION
from ingest.core.errors import counted
from ingest.core.intervals import Int, Intervals, add_counts
from ingest.core.labels import CORRECTED, Series, is_mean
from ingest.core.layout import Layout
from ingest.core.units import figure, format_duration, latency, number
from ingest.read.account import Account

# What one source shows of its schedule: latencies by op and kind, when; kept in its account as a line of JSON.
#
# `ingest.read.schedule` judges by the digests of all sources of a generator.


SECOND = 1_000_000_000
P99 = 99.0
LEVELS = (50.0, 90.0, P99, 99.9)
BEYOND = 10  # samples that must lie beyond a percentile before it is judged
PART = 64  # bins an octave: percentiles of a digest are off by at most 1.1 %
CELLS = 64 * PART
MOST_SERIES, MOST_WINDOWS = 256, 512
MOST_BY_BIN, MOST_BINS, MANY = 4, 1 << 17, 4
MOST_EXACT = 2.0**53
SERVICE, RESPONSE, WAIT = "service", "response", "wait"
RATED = (SERVICE, RESPONSE, WAIT, "")

Label = tuple[str, str, str]  # op, tag, kind


class Seen:
    """What the rows of one source show of its schedule: latencies by op and kind, when; with a `rate` over time, too."""

    def __init__(self, rate: str = "") -> None:
        self._rate = rate
        self._cells: dict[Label, NDArray[np.float64]] = {}
        self._bins: dict[tuple[Label, Layout], Int] = {}  # not yet in cells
        self._samples: Counter[str] = Counter()
        self._windows: dict[str, Counter[int]] = {}
        self._width = SECOND
        self._longest = 0
        self._span: tuple[int, int, int] | None = None  # first start, last end, start of the row that ends last
        self._lag_ns: int | None = None

    def add(self, rows: Intervals[Series], samples: Int | None = None) -> None:
        """Take rows with samples (how many in each, where that is known); those of means are left out."""
        filled = np.diff(rows.indptr) > 0
        if not filled.all():
            rows, samples = rows.take(np.flatnonzero(filled)), None
        if not len(rows) or not rows.layout.has_bins:
            return
        samples = rows.samples if samples is None else samples
        few = float(samples.sum(dtype=np.float64)) < MOST_EXACT
        newest = int(rows.end_ns.argmax())
        self._add_edges(int(rows.start_ns.min()), int(rows.end_ns[newest]), int(rows.start_ns[newest]))
        self._longest = max(self._longest, int((rows.end_ns - rows.start_ns).max()))
        codes = np.flatnonzero(np.bincount(rows.series, minlength=len(rows.table))).tolist()
        entry_codes = rows.series[rows.row] if len(codes) > 1 else None
        for code in codes:
            series = rows.table[code]
            label = (series.op, series.tag, series.kind)
            mine = slice(None) if entry_codes is None else entry_codes == code
            ours = slice(None) if entry_codes is None else rows.series == code
            self._samples[label[2]] += int(samples[ours].sum())
            if self._rate:
                self._add_windows(label[2], rows.start_ns[ours], rows.end_ns[ours], samples[ours])
            if label in self._cells or len(self._cells) < MOST_SERIES:
                self._count(label, rows.layout, rows.bins[mine], rows.counts[mine], few=few)
            if label[2] == WAIT:
                self._lag_ns = max(self._lag_ns or 0, int(rows.layout.values[rows.bins[mine].max()]))

    def _count(self, label: Label, layout: Layout, bins: Int, counts: Int, *, few: bool) -> None:
        """Add counts to those of a series; of the first series with many of them bin by bin, which spares looking up cells."""
        self._cells.setdefault(label, np.zeros(CELLS))
        by_bin = self._bins.get((label, layout))
        if by_bin is None and len(self._bins) < MOST_BY_BIN and layout.bins <= min(MANY * len(bins), MOST_BINS):
            by_bin = self._bins[label, layout] = np.zeros(layout.bins, np.int64)
        if few and by_bin is not None:
            add_counts(by_bin, bins, counts)
        else:
            self._cells[label] += np.bincount(_cells(layout)[bins], counts, CELLS)

    def _fold(self) -> None:
        """Add all counts by bin to those by cell."""
        for (label, layout), counts in self._bins.items():
            self._cells[label] += np.bincount(_cells(layout), counts, CELLS)
        self._bins = {}

    def _add_edges(self, first: int, last: int, since: int) -> None:
        known = self._span or (first, last, since)
        self._span = (min(first, known[0]), *max((last, since), known[1:]))

    def _add_windows(self, kind: str, start_ns: Int, end_ns: Int, samples: Int) -> None:
        """Spread the samples of rows evenly over the windows that they lie in."""
        first, last = self._span[:2] if self._span else (0, 0)
        while self._longest > 8 * self._width or last - first > MOST_WINDOWS * self._width:
            self._widen()
        lengths = np.maximum(end_ns - start_ns, 1)
        windows = self._windows.setdefault(kind, Counter())
        index = start_ns // self._width
        for further in range(int((end_ns // self._width - index).max()) + 1):
            low = np.maximum(start_ns, (index + further) * self._width)
            high = np.minimum(start_ns + lengths, (index + further + 1) * self._width)
            share = np.maximum(high - low, 0) / lengths * samples
            places, inverse = np.unique(index + further, return_inverse=True)
            for place, count in zip(places.tolist(), np.bincount(inverse, share).tolist(), strict=True):
                if count:
                    windows[place] += count

    def _widen(self) -> None:
        self._width *= 2
        for kind, windows in self._windows.items():
            halved: Counter[int] = Counter()
            for place, count in windows.items():
                halved[place // 2] += count
            self._windows[kind] = halved

    def digest(self, series: Series, *, span_ns: int = 0, lag_ns: int | None = None, expected_ns: int = 0) -> str:
        """Return all that was seen as a line of JSON, as accounts and stores keep it.

        `span_ns` is how long the run took where that is known to the ns, `lag_ns` the longest wait, `expected_ns` the interval
        that data was corrected by.
        """
        self._fold()
        rated = next((kind for kind in RATED if self._samples[kind]), "")
        windows = self._windows.get(rated, Counter[int]())
        first = min(windows, default=0)
        counts = [round(windows[place], 3) for place in range(first, max(windows, default=-1) + 1)]
        return json.dumps(
            {
                "labels": [series.run, series.host, series.volume, series.job, series.process],
                "rate": self._rate,
                "span_ns": span_ns,
                "lag_ns": self._lag_ns if lag_ns is None else lag_ns,
                "expected_ns": expected_ns,
                "edges": self._span,
                "longest_ns": self._longest,
                "windows": [self._width, first, counts],
                "samples": dict(self._samples),
                "series": [[*label, *_levels(counted)] for label, counted in sorted(self._cells.items())],
            }
        )


@lru_cache(maxsize=8)
def _cells(layout: Layout) -> Int:
    """Return the cell of a digest that each bin of a layout lies in."""
    cells = np.log2(np.maximum(layout.values, 1))
    cells *= PART
    return np.minimum(cells, CELLS - 1, out=cells).astype(np.int16)


def _levels(counted: NDArray[np.float64]) -> list[int | None]:
    """Return the number of samples, then the value of each level in ns, None where too few samples lie beyond."""
    below = np.cumsum(counted)
    total = int(below[-1])
    values: list[int | None] = [total]
    for level in LEVELS:
        enough = total * (100 - level) / 100 >= BEYOND
        cell = int(np.searchsorted(below, total * level / 100))
        values.append(round(2 ** ((min(cell, CELLS - 1) + 0.5) / PART)) if enough else None)
    return values


ENOUGH = 0.99
TIMES = 2.0
TIMER_NS = 1_000_000
SLACK = 1.5  # windows that stamps and counts of intervals may be off by
LOW = 0.8  # of the target: windows below it are a stall
RAMP = 0.25  # of the windows: so long may a run take to reach its rate
UNSCHEDULED = (
    "service time only: it is unknown when requests were due (--rate, --intended-start-column), so omitted waiting cannot be seen"
)


class _Rates(NamedTuple):
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
    rated = _rated(digests)
    counted = [(digest["samples"].get(rated, 0) if rated is not None else sum(digest["samples"].values())) for digest in digests]
    spans = [digest["span_ns"] for digest in digests]
    if not all(spans):
        if (rates := _rates(digests)) is not None:
            counts, seconds = rates.clipped()
            return float(counts.sum() / seconds.sum())
        edges = [digest["edges"] for digest in digests if digest["edges"]]
        spans = [max((last for _, last, _ in edges), default=0) - min((first for first, _, _ in edges), default=0)]
    return float(sum(counted) * SECOND / max(*spans, 1))


def _rated(digests: Sequence[dict[str, Any]]) -> str | None:
    """Return the kind by which the rate of a generator is counted, service time where there is any; None of other kinds alone."""
    return next((kind for kind in RATED if any(digest["samples"].get(kind) for digest in digests)), None)


def _rates(digests: Sequence[dict[str, Any]]) -> _Rates | None:
    """Return the windows of all logs of a generator added up, those of service time where there is any; None without any."""
    known = [digest for digest in digests if digest["edges"] and digest["windows"][2]]
    rated = _rated(known)
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
        share, behind, slack = _achieved(digests) / float(target), 0.0, 0.0
    else:
        counts, seconds = rates.clipped()
        due = seconds * float(target)
        share = float(counts.sum() / due.sum())
        if share < ENOUGH:  # a ramp ends with the first window that reaches the target, where one in the first quarter does
            reached = np.flatnonzero(counts / due >= ENOUGH)
            begun = int(reached[0]) if len(reached) and reached[0] <= RAMP * len(due) else 0
            counts, due = counts[begun:], due[begun:]
            share = float(counts.sum() / due.sum())
        slack = SLACK * max(rates.width_ns, rates.longest_ns) / SECOND
        behind = max(_largest_stall(counts, due), _largest_backlog(counts, due)) / float(target)
    if share < ENOUGH:
        how = f"only {100 * share:.1f} % of the requests that were due could be sent in time"
    elif behind > slack:
        how = f"requests were up to {figure(behind, 2)} s behind --rate, of which {100 * share:.1f} % was reached"
    else:
        return ""
    return f"judged by the rate: {how}; percentiles of service time leave out what waited: read response time"


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


MEASURED_FROM_SCHEDULE = ("response", "wait", "lag", "offset", "submission")
MOST_SAMPLES = 1 << 53
DENSE_CELLS = 1 << 21
TOO_MANY = "more samples than can be counted would be added: the expected interval is too short for these latencies"


def corrected_kind(kind: str) -> str:
    """Return the kind of corrected data: `service.corrected`."""
    return f"{kind}.{CORRECTED}" if kind else CORRECTED


def correctable(series: Series) -> bool:
    """Return whether a series may lack what waited: not where time counts from a schedule, and never twice."""
    kind = series.kind
    return not is_mean(kind) and kind not in MEASURED_FROM_SCHEDULE and not kind.endswith(CORRECTED)


def with_corrected(chunks: Iterator[Intervals[Series]], interval_ns: int, account: Account) -> Iterator[Intervals[Series]]:
    """Yield the chunks of a reader, each followed by what of it can be corrected, under the corrected kind.

    The account is left what the correction shows of a schedule.
    """
    seen, series = Seen(), None
    for chunk in chunks:
        yield chunk
        rows = chunk.relabelled(lambda key: key.replaced(kind=corrected_kind(key.kind)) if correctable(key) else None)
        if not len(rows):
            continue
        put_back, dropped = corrected(rows, interval_ns)
        if dropped:
            account.note(f"{counted(dropped, 'interval is', 'intervals are')} not corrected: {TOO_MANY}")
        seen.add(chunk)
        seen.add(put_back)
        series = series or next(iter(chunk.table), None)
        yield put_back
    if series is not None:
        account.schedule.append(seen.digest(series, expected_ns=interval_ns))


def corrected(rows: Intervals[Series], interval_ns: int) -> tuple[Intervals[Series], int]:
    """Return the rows with what was omitted put back, and how many rows had to be left out.

    Counts equal the Java library's, bin by bin. Each sample counts as the highest value of its bin, so the error bound is
    that of the layout, once more for the samples added.
    """
    if interval_ns < 1:
        raise ValueError(f"an expected interval of {interval_ns} ns")
    values = rows.layout.edges[1:] - rows.layout.recorded_unit
    added = rows.counts.astype(np.float64) * np.maximum(values[rows.bins] // interval_ns - 1, 0)
    totals = np.zeros(len(rows))
    np.add.at(totals, rows.row, added + rows.counts)
    good = np.flatnonzero(totals < MOST_SAMPLES)
    kept = rows if len(good) == len(rows) else rows.take(good)
    width = int(kept.bins.max(initial=0)) + 1
    step = max(1, DENSE_CELLS // width)
    parts = [_block(kept, first, min(first + step, len(kept)), width, interval_ns) for first in range(0, len(kept), step)]
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([part[0] for part in parts]))]) if parts else np.zeros(1, np.int64)
    bins = np.concatenate([part[1] for part in parts]) if parts else kept.bins
    counts = np.concatenate([part[2] for part in parts]) if parts else kept.counts
    return replace(kept, indptr=indptr, bins=bins, counts=counts, exact=None), len(rows) - len(kept)


def _block(rows: Intervals[Series], first: int, last: int, width: int, interval_ns: int) -> tuple[Int, Int, Int]:
    """Return the lengths, bins and counts of rows first to last, corrected."""
    entries = slice(rows.indptr[first], rows.indptr[last])
    row = np.repeat(np.arange(last - first), np.diff(rows.indptr[first : last + 1]))
    bins, counts = rows.bins[entries], rows.counts[entries]
    dense = np.zeros((last - first, width), np.int64)
    dense[row, bins] = counts
    values = rows.layout.edges[1:] - rows.layout.recorded_unit
    order = np.argsort(bins, kind="stable")
    distinct, begins = np.unique(bins[order], return_index=True)
    ends = np.append(begins[1:], len(bins))
    for place in np.flatnonzero(values[distinct] >= 2 * interval_ns).tolist():
        low, weights = _omitted(rows.layout, int(values[distinct[place]]), interval_ns)
        chosen = order[begins[place] : ends[place]]
        dense[row[chosen], low : low + len(weights)] += counts[chosen, None] * weights
    where = np.nonzero(dense)
    return np.bincount(where[0], minlength=last - first), where[1], dense[where]


def _omitted(layout: Layout, value: int, interval_ns: int) -> tuple[int, Int]:
    """Return the first bin and how many of value - I, value - 2I, ... >= I fall into each bin from there on."""
    low, high = (int(index) for index in layout.index(np.array([interval_ns, value - interval_ns])))
    edges = layout.edges[low : high + 2].copy()
    edges[0] = interval_ns
    at_or_above = np.minimum((value - edges) // interval_ns, value // interval_ns - 1)
    return low, -np.diff(np.maximum(at_or_above, 0))
