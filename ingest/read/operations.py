"""Single operations of any format -> intervals: labels, one operation once, histograms by window in bounded memory."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ingest.core import kernel
from ingest.core.errors import CapacityError, counted
from ingest.core.events import Events
from ingest.core.grid import INT64_MAX, SECOND, WEIGHT_BITS
from ingest.core.intervals import (
    MOST_SAMPLES,
    TOO_MANY,
    Bool,
    Exact,
    Histogram,
    Int,
    Intervals,
    distinct,
    distinct_rows,
    merged,
    summed_ns,
    surely_addable,
    total,
)
from ingest.core.labels import OFFSET, Series
from ingest.core.layout import LogLinear, hdr_half
from ingest.read.account import Account

# Single events: operations whose start and end are known, as raw logs and traces hold them, columnar like the waist.
#
# A reader of events yields bounded chunks of them; `event_rows` makes histograms by window of them. What needs the moment of
# each one (attribution while in flight, the offset within a second) is worked out from the same chunks, exactly.


LATENCY_BITS = 47
DAY_NS = 86_400 * 10**9
FIO_HALF = 64
EXPONENT_BIAS, MANTISSA_BITS = 1023, 52
MOMENTS = "moments (when something was seen), not latencies: tailboard show offsets shows them"


def latencies(chunks: Iterable[Events], account: Account) -> Iterator[Events]:
    """Yield the chunks without what has a time alone (kind offset); how much that was is noted in the account."""
    moments = 0
    for chunk in chunks:
        timed = chunk.where(lambda series: series.kind != OFFSET)
        moments += chunk.samples - timed.samples
        if len(timed) or timed is chunk:
            yield timed
    if moments:
        account.note(f"{counted(moments, 'sample is', 'samples are')} {MOMENTS}")


def events_layout(digits: int = 0) -> LogLinear:
    """Return the layout that events are binned in: nanoseconds, up to 39 hours, midpoints reported.

    Without digits as fio has it, 64 bins an octave (error 1/128), so that merging with fio's histograms is exact; else as
    fine as HdrHistogram with so many digits (2: 1/256, 3: 1/2048).
    """
    half = hdr_half(digits) if digits else FIO_HALF
    return LogLinear(half, (LATENCY_BITS - half.bit_length() + 2) * half, open_ended=False)


def bin_of(latency_ns: Int, half: int) -> Int:
    """Return the bin of each latency in `events_layout`: the exponent and first bits of a float, exact below 2^53."""
    bits = half.bit_length() - 1
    bins: Int = latency_ns.astype(np.float64).view(np.int64)
    bins >>= MANTISSA_BITS - bits
    bins -= (EXPONENT_BIAS - 1 + bits) * half
    small = latency_ns < half
    if small.any():
        np.copyto(bins, latency_ns, where=small)
    return bins


def newest_ns(chunks: Iterable[Events]) -> int:
    """Return when the last operation ended, in ns of the stamps; 0 where there is none."""
    return max((events.reach.last_end for events in chunks if len(events)), default=0)


# Operations that repeat earlier ones in a row, with the same times and latencies: a part of a file that stands there twice.
#
# Each stretch of some operations has a sum of hashes. It is the same again only where time goes back to the same moments, as
# many are met in it. Of long files some of the sums are kept, chosen by their own value, so that a long repetition is still met.
# Fewer of them, of stretches whose latencies are of many values, stay in the account: other files of a run are held against them.


STRETCH, MOMENTS_IN_IT, VALUES_IN_IT = 32, 4, 12
STATE = 7 + STRETCH  # words that the compiled loop carries from call to call
MOST_SUMS = 1 << 13
MOST_KEPT = 1 << 8
AT_ONCE = 1 << 15
MIXED = tuple(np.array(number, np.uint64) for number in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xFF51AFD7ED558CCD))
INVERSE = np.array(pow(int(MIXED[0]), -1, 1 << 64), np.uint64)
REPEATED = "operations repeat earlier ones in a row, with the same times and latencies: perhaps a part of it is counted twice"


class Repeats:
    """Takes the operations of one file in their order, and notes in the account where a stretch of them comes again.

    What other files are held against is in the account after `finish`.
    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self._met: Any = np.empty(0, np.uint64)
        self._every = self._every_kept = 1
        self._kept: Any = np.empty(0, np.uint64)
        none = np.empty(0, np.int64)
        self._state, self._room = np.zeros(STATE, np.uint64), (none.view(np.uint64), none)
        self._rest: tuple[Any, Int, Int] = none.view(np.uint64), none, none
        self._powers: tuple[Any, ...] = (none.view(np.uint64),) * 2
        self.found = False

    def add(self, end_ns: Int, latency_ns: Int, series: Int, table: Sequence[object]) -> None:
        """Take the next operations: `series` are places in a table of labels."""
        names = (f"{getattr(entry, 'op', entry)} {getattr(entry, 'kind', '')}" for entry in table)  # the same in each file
        labels = np.array([crc32(name.encode("utf-8", "surrogateescape")) for name in names], np.uint64)
        for first in range(0, len(end_ns), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            if not self.found:
                self._rest = *self._rest[:2], np.append(self._rest[2], latency_ns[part])
                ends, latencies, codes = kernel.words(end_ns[part], latency_ns[part], series[part])
                if kernel.stretches is None:
                    sums, at = self._stretches(ends, latencies, codes, labels)
                else:
                    sums, at = self._compiled(kernel.stretches, ends, latencies, codes, labels)
                self._look(sums, at, self._rest[2])
                self._rest = *self._rest[:2], self._rest[2][1 - STRETCH :]

    def _compiled(self, stretches: kernel.Loop, end_ns: Int, latency_ns: Int, series: Int, labels: Any) -> tuple[Any, Int]:
        """Return what `_stretches` does."""
        if len(self._room[0]) < len(end_ns):
            self._room = np.empty(len(end_ns), np.uint64), np.empty(len(end_ns), np.int64)
        found = stretches(end_ns, latency_ns, series, labels, self._every, self._state, *self._room)
        sums, last = self._room
        return sums[:found], last[:found] + (len(self._rest[2]) - len(end_ns) + 1 - STRETCH)

    def _stretches(self, end_ns: Int, latency_ns: Int, series: Int, labels: Any) -> tuple[Any, Int]:
        """Return the sums of stretches in which time goes on, of some of very many, and where they begin among all latencies."""
        with np.errstate(over="ignore"):
            mixed = (end_ns.astype(np.uint64) * MIXED[0]) ^ (latency_ns.astype(np.uint64) * MIXED[1]) ^ labels[series]
            mixed = np.append(self._rest[0], (mixed ^ (mixed >> np.uint64(29))) * MIXED[2])
            if len(self._powers[0]) < len(mixed):
                self._powers = tuple(np.cumprod(np.full(2 * len(mixed), base)) for base in (MIXED[0], INVERSE))
            powers, backwards = (each[: len(mixed)] for each in self._powers)
            sums = np.append(np.uint64(0), np.cumsum(mixed * powers))
            of_stretch = (sums[STRETCH:] - sums[:-STRETCH]) * backwards[: max(len(mixed) - STRETCH + 1, 0)]
        ends = np.append(self._rest[1], end_ns)
        at = _each(of_stretch, self._every)
        for time in (ends, ends - self._rest[2]) if len(at) else ():
            changes = np.append(0, np.cumsum(time[1:] != time[:-1]))  # up to each
            at = at[changes[at + STRETCH - 1] - changes[at] >= MOMENTS_IN_IT - 1]
        self._rest = mixed[1 - STRETCH :], ends[1 - STRETCH :], self._rest[2]
        return of_stretch[at], at

    def _look(self, sums: Any, at: Int, latencies: Int) -> None:
        """Keep sums of stretches that begin there, and see whether one was met before."""
        if not len(at):
            return
        self._keep(sums, at, latencies)
        self._met = np.sort(np.append(self._met, sums))
        if (self._met[1:] == self._met[:-1]).any():
            self.found = True
            self._account.note(REPEATED)
        while len(self._met) > MOST_SUMS:
            self._every *= 2
            self._met = self._met[_each(self._met, self._every)]

    def _keep(self, sums: Any, at: Int, latencies: Int) -> None:
        """Keep sums of stretches that no other operations can have by chance."""
        chosen = _each(sums, self._every_kept)
        while len(chosen) > 4 * MOST_KEPT:
            self._every_kept *= 2
            chosen = chosen[_each(sums[chosen], self._every_kept)]
        if len(chosen):
            values = np.sort(latencies[at[chosen][:, None] + np.arange(STRETCH)], axis=1)
            chosen = chosen[np.count_nonzero(np.diff(values, axis=1), axis=1) >= VALUES_IN_IT - 1]
            self._kept = np.append(self._kept, sums[chosen])
        self._kept = distinct(self._kept[_each(self._kept, self._every_kept)])
        while len(self._kept) > MOST_KEPT:
            self._every_kept *= 2
            self._kept = self._kept[_each(self._kept, self._every_kept)]

    def finish(self) -> None:
        """Put what other files are held against into the account."""
        if len(self._kept):
            sums = b64encode(self._kept.astype("<u8").tobytes()).decode()
            self._account.stretches.append({"path": self._account.path, "every": self._every_kept, "sums": sums})


def _each(sums: Any, every: int) -> Int:
    """Return the places of the sums that `every`, a power of two, divides."""
    return np.flatnonzero(sums & np.uint64(every - 1) == 0)


def repeats_noted(chunks: Iterable[Events], account: Account) -> Iterator[Events]:
    """Yield the chunks; a part of them that comes again is noted in the account."""
    repeats = Repeats(account)
    for chunk in chunks:
        repeats.add(chunk.end_ns, chunk.latency_ns, chunk.series.astype(np.int64, copy=False), chunk.table)
        yield chunk
    repeats.finish()


# Events -> intervals: histograms by window, with exact minimum, maximum and sum, bounded in memory.
#
# An event belongs to the window (start, start + step] that it completed in. While in flight it counts in each window by the
# share of its latency, as a weight of 2^-16; here that is exact, since start and end of each are known.
#
# Windows are held until they are whole. A log need not be in order of time: where so much was held that windows had to be let
# go, an event that comes too late for its window goes to a further segment of its series, and merging adds both up.


MOST_HELD = 2_000_000  # bins
DENSE_CELLS = 1 << 22
PIECES_AT_ONCE = 1 << 20
WHOLE = 1 << WEIGHT_BITS
_spare: list[Int] = []  # zeros that nobody adds to: fresh pages cost more than all that is added


@dataclass(frozen=True, slots=True)
class Windows:
    """How events are cut: at windows of `step_ns` (0: not at all), only those that completed in (begin, end].

    With `in_flight` each counts by share in every window it was under way in; begin and end are then the caller's business.
    Without `whole` a window may come in several rows, which the caller adds up: nothing has to be held for that.
    """

    step_ns: int = SECOND
    begin_ns: int | None = None
    end_ns: int | None = None
    in_flight: bool = False
    whole: bool = True


def intervals(
    chunks: Iterable[Events], windows: Windows, layout: LogLinear, account: Account, *, totals: bool = False
) -> Iterator[Intervals[Series]]:
    """Yield the events as rows, one a series and window. Counts are exact, the error is the layout's.

    Rows bear the bounds of their windows, narrowed to when the first of the source began and the last completed. Samples are
    counted in the account, and with `totals` what there was in all by op.
    """
    held, sums = _Held(windows), _Totals(layout, account)
    for chunk in chunks:
        events = chunk
        if not len(events):
            continue
        if events.weight is not None and not surely_addable([events.weight]) and total(events.weight) > MOST_SAMPLES:
            raise CapacityError(f"{account.path}: {TOO_MANY}")
        account.samples += events.samples
        if totals:
            sums.add(events, bin_of(events.latency_ns, layout.half))
        if windows.in_flight:
            for part in _in_flight(events, bin_of(events.latency_ns, layout.half), windows.step_ns, layout):
                held.add(part)
            continue
        low = -INT64_MAX if windows.begin_ns is None else windows.begin_ns
        if windows.begin_ns is not None or windows.end_ns is not None:
            high = INT64_MAX if windows.end_ns is None else windows.end_ns
            inside = np.flatnonzero((events.end_ns > low) & (events.end_ns <= high))
            events = events.take(inside)
        if len(events):  # what was under way at the beginning of a range counts in it, from there on
            if events.reach.first_end - events.reach.slowest < held.low:
                held.low = min(held.low, max(int(events.start_ns.min()), low))
            held.high = max(held.high, events.reach.last_end)
            held.add(_completed(events, windows.step_ns, layout))
            yield from held.whole()
    yield from held.rest()
    sums.keep()


def _completed(events: Events, step_ns: int, layout: LogLinear) -> Intervals[Series]:
    """Return a row for each series and window that events completed in."""
    if (
        kernel.event_rows is not None
        and events.weight is None
        and (added := _compiled(kernel.event_rows, events, step_ns, layout))
    ):
        return added
    window = (events.end_ns - 1) // step_ns if step_ns else np.zeros(len(events), np.int64)
    first, rows, cell = _cells(events, window)
    indptr, row_bins, counts = _summed(cell, rows, bin_of(events.latency_ns, layout.half), events.weight)
    latency = events.latency_ns
    low, high = np.full(rows, INT64_MAX), np.zeros(rows, np.int64)
    np.minimum.at(low, cell, latency)
    np.maximum.at(high, cell, latency)
    spent, past = summed_ns(latency if events.weight is None else latency * events.weight, cell, rows)
    start, exact = first[1] * step_ns, Exact(low, high, spent, ~past)
    return Intervals(layout, events.table, first[0], start, start + step_ns, indptr, row_bins, counts, exact)


def _compiled(event_rows: kernel.Loop, events: Events, step_ns: int, layout: LogLinear) -> Intervals[Series] | None:
    """Return what `_completed` does; None where it would take too much room, or sums might not be known."""
    ends, latency, known = events.end_ns, events.latency_ns, len(events.table)
    began, ended, low, high = events.reach
    first, last = ((began - 1) // step_ns, (ended - 1) // step_ns) if step_ns else (0, 0)
    lowest, highest = bin_of(np.array([low, high]), layout.half).tolist()
    cells, width = (last - first + 1) * known, highest - lowest + 1
    if low < 0 or high >> MANTISSA_BITS or cells * width > DENSE_CELLS or len(events) * high > MOST_SAMPLES:
        return None
    least, (most, spent), indptr = np.full(cells, INT64_MAX), np.zeros((2, cells), np.int64), np.empty(cells + 1, np.int64)
    bins, counts = np.empty((2, len(events)), np.int64)
    columns, sums = kernel.words(events.series, ends, latency), (least, most, spent, indptr, bins, counts)
    try:
        dense = _spare.pop()
    except IndexError:
        dense = np.zeros(DENSE_CELLS, np.int64)
    filled = event_rows(*columns, step_ns, first, known, layout.half, lowest, width, dense, *sums)
    _spare.append(dense)
    met = np.flatnonzero(least < INT64_MAX)
    exact = Exact(least[met], most[met], spent[met], np.ones(len(met), np.bool_))
    start = (met // known + first) * step_ns
    rows = met % known, start, start + step_ns, np.append(indptr[met], filled)
    return Intervals(layout, events.table, *rows, bins[:filled].copy(), counts[:filled].copy(), exact)


def _cells(events: Events, window: Int) -> tuple[Int, int, Int]:
    """Return the (series, window) pairs there are, ordered by window; how many; and the pair of each event.

    By window, because rows of one window that are added up later then lie beside each other.
    """
    lowest = int(window.min())
    span, width = int(window.max()) - lowest + 1, len(events.table)
    if width * span <= DENSE_CELLS >> 4:
        cell = window - lowest
        if width > 1:
            cell *= width
            cell += events.series
        occupied, cell = numbered(cell, width * span)
        return np.stack([occupied % width, occupied // width + lowest]), len(occupied), cell
    (windows, series), cell = distinct_rows(window, events.series.astype(np.int64))
    return np.stack([series, windows]), len(windows), cell


def numbered(values: Int, upto: int) -> tuple[Int, Int]:
    """Return which numbers from 0 to below `upto` occur among values, in order, and the place of each value among them."""
    if upto > DENSE_CELLS >> 4:
        met, place = np.unique(values, return_inverse=True)
        return met, place.reshape(-1)
    there = np.zeros(upto, np.bool_)
    there[values] = True
    met = np.flatnonzero(there)
    return met, values if len(met) == upto else (np.cumsum(there) - 1)[values]


def _summed(cell: Int, cells: int, bins: Int, weight: Int | None) -> tuple[Int, Int, Int]:
    """Return (row pointers, bins, counts) of events added up by cell and bin."""
    low = int(bins.min())
    width = int(bins.max()) - low + 1
    key = cell * width
    key += bins
    key -= low
    if cells * width > max(DENSE_CELLS, 8 * len(bins)):
        filled, place = np.unique(key, return_inverse=True)
        counts = np.bincount(place) if weight is None else _added(place, weight, len(filled))
    else:
        dense = np.bincount(key, minlength=cells * width) if weight is None else _added(key, weight, cells * width)
        filled = np.flatnonzero(dense != 0)
        counts = dense[filled]
    edges = np.arange(cells + 1) * width
    indptr = np.searchsorted(filled, edges)
    row_bins = filled - np.repeat(edges[:-1] - low, np.diff(indptr))
    return indptr, row_bins, counts


def _added(place: Int, weight: Int, size: int) -> Int:
    total = np.zeros(size, np.int64)
    np.add.at(total, place, weight)
    return total


def _in_flight(events: Events, bins: Int, step_ns: int, layout: LogLinear) -> Iterator[Intervals[Series]]:
    """Yield rows in which each event counts by the share of its latency that it was in flight in the window.

    The cumulative share of an event is rounded at each edge that it crosses (halves to even), so that its weights add up to
    2^16 exactly; the window that it completed in has at least one of them. An event that took no time counts there alone.
    """
    last = (events.end_ns - 1) // step_ns
    first = np.minimum(events.start_ns // step_ns, last)
    pieces = last - first + 1
    ends = np.cumsum(pieces)
    begin = 0
    while begin < len(events):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + PIECES_AT_ONCE, side="right")))
        event = np.repeat(np.arange(begin, end), pieces[begin:end])
        window = first[event] + np.arange(len(event)) - np.repeat(ends[begin:end] - pieces[begin:end] - before, pieces[begin:end])
        weight, completed = _weights(events, event, window, last, step_ns)
        part = events.take(event)
        pairs, cells, cell = _cells(part, window)
        indptr, row_bins, counts = _summed(cell, cells, bins[event], weight)
        start, done = pairs[1] * step_ns, _added(cell, completed, cells)
        yield Intervals(layout, part.table, pairs[0], start, start + step_ns, indptr, row_bins, counts, None, done)
        begin = end


def _weights(events: Events, event: Int, window: Int, last: Int, step_ns: int) -> tuple[Int, Int]:
    """Return the weight of each piece of an event in units of 2^-16, and how many completed in it."""
    start, latency = events.start_ns[event], events.latency_ns[event]
    final = window == last[event]
    part = np.minimum(np.maximum((window + 1) * step_ns - start, 0), latency)
    whole = np.maximum(latency, 1)
    share, rest = np.divmod(2 * WHOLE * part + whole, 2 * whole)
    share -= (rest == 0) & (share & 1 == 1)
    share = np.where(final, np.int64(WHOLE), np.minimum(share, WHOLE - 1))
    new = np.append(True, event[1:] != event[:-1])
    before: Int = np.concatenate(([0], share[:-1]))
    weight: Int = np.where(new, share, share - before)
    times = 1 if events.weight is None else events.weight[event]
    return weight * times, np.where(final, times, 0)


@dataclass(slots=True)
class _Held:
    """Windows that are not whole yet, and when the first event began and the last one ended."""

    windows: Windows
    parts: list[Intervals[Series]] = field(default_factory=list)
    late: list[Intervals[Series]] = field(default_factory=list)
    entries: int = 0
    gone_ns: int = -INT64_MAX
    low: int = INT64_MAX
    high: int = -INT64_MAX

    def add(self, part: Intervals[Series]) -> None:
        """Hold the rows of a chunk; those of windows that are gone already are kept for the end."""
        if self.gone_ns > -INT64_MAX:
            gone = part.start_ns < self.gone_ns
            if gone.any():
                self.late.append(part.take(np.flatnonzero(gone)))
                part = part.take(np.flatnonzero(~gone))
        self.parts.append(part)
        self.entries += len(part.bins)

    def whole(self) -> Iterator[Intervals[Series]]:
        """Yield all windows but the newest where too much is held, or all where they need not be whole."""
        if not self.windows.whole:
            yield from map(self._bounded, self.parts)
            self.parts = []
            return
        if self.entries < MOST_HELD or not self.windows.step_ns:
            return
        rows = merged(self.parts)
        newest = int(rows.start_ns.max())
        done = np.flatnonzero(rows.start_ns < newest)
        kept = rows.take(np.flatnonzero(rows.start_ns >= newest))
        self.parts, self.entries, self.gone_ns = [kept], len(kept.bins), newest
        if len(done):
            yield self._bounded(rows.take(done))

    def rest(self) -> Iterator[Intervals[Series]]:
        """Yield the rows that are still held, and late ones as a segment of their own."""
        for segment, parts in enumerate((self.parts, self.late)):
            if filled := [part for part in parts if len(part)]:
                rows = self._bounded(merged(filled))
                yield rows.relabelled(lambda series: series.replaced(segment=1)) if segment else rows

    def _bounded(self, rows: Intervals[Series]) -> Intervals[Series]:
        """Return rows with their bounds narrowed to the reach of their source; in-flight windows stay as they are.

        Series without a row are taken out of the table.
        """
        used, series = numbered(rows.series, len(rows.table))
        if len(used) < len(rows.table):
            rows = rows.keyed(tuple(rows.table[code] for code in used.tolist()), series)
        if self.windows.in_flight:
            return rows
        if not self.windows.step_ns:
            return replace(rows, start_ns=np.full(len(rows), self.low), end_ns=np.full(len(rows), self.high))
        return bounded(rows, self.low, self.high)


def bounded(rows: Intervals[Series], low_ns: int, high_ns: int) -> Intervals[Series]:
    """Return the rows of a source with their bounds narrowed to when its first operation began and its last one ended."""
    return replace(rows, start_ns=np.maximum(rows.start_ns, low_ns), end_ns=np.minimum(rows.end_ns, high_ns))


class _Totals:
    """What a source held in all, by op: kept in its account to be held against the tool's own summary."""

    def __init__(self, layout: LogLinear, account: Account) -> None:
        self.layout = layout
        self.account = account
        self.sums: dict[str, Int] = {}

    def add(self, events: Events, bins: Int) -> None:
        """Add events of any series."""
        ops = [series.op for series in events.table]
        for op in dict.fromkeys(ops):
            codes = np.array([other == op for other in ops])
            mine = codes[events.series] if not codes.all() else slice(None)
            weight = None if events.weight is None else events.weight[mine]
            added = np.bincount(bins[mine]) if weight is None else _added(bins[mine], weight, int(bins.max()) + 1)
            shorter, longer = sorted((self.sums.get(op, added[:0]), added), key=len)
            longer[: len(shorter)] += shorter
            self.sums[op] = longer

    def keep(self) -> None:
        """Put the sums into the account."""
        for op, dense in self.sums.items():
            filled = np.flatnonzero(dense)
            self.account.totals[op] = Histogram(self.layout, filled, dense[filled])


# Labels of events in Arrow's dictionaries -> the series that they are of, coded; Python sees each combination but once.


MOST_SERIES = 10_000
TOO_MANY_LABELS = f"more than {MOST_SERIES:,} series: such labels name single operations, not streams"


class SeriesTable:
    """The series met so far in one file, in the order in which they came."""

    def __init__(self, series_of: Callable[[Mapping[str, str]], Series | None]) -> None:
        """Make series of labels by `series_of`; it gives None for labels that are of no series."""
        self._series_of = series_of
        self._codes: dict[tuple[str, ...], int] = {}
        self._table: dict[Series, int] = {}

    @property
    def table(self) -> tuple[Series, ...]:
        """Return the series by code."""
        return tuple(self._table)

    def codes(self, columns: Mapping[str, Any], rows: int) -> Int:
        """Return the code of each row's series; -1 for a row of no series, -2 where there are too many.

        `columns` are dictionary arrays of text by label; a missing value is empty text.
        """
        if not columns:
            return np.full(rows, self._code((), {}), np.int64)
        keys, place = [()], np.zeros(rows, np.int64)  # the combinations of labels that occur, and that of each row
        for codes, names in (_coded(column) for column in columns.values()):
            # Numbered anew after each label: a product of as many as there can be would wrap.
            met, place = numbered(place * len(names) + codes, len(keys) * len(names))
            keys = [(*keys[number // len(names)], names[number % len(names)]) for number in met.tolist()]
        met_codes: Int = np.array([self._code(key, dict(zip(columns, key, strict=True))) for key in keys], np.int64)
        return met_codes[place]

    def _code(self, key: tuple[str, ...], labels: Mapping[str, str]) -> int:
        if (known := self._codes.get(key)) is not None:
            return known
        if len(self._codes) >= MOST_SERIES:
            return -2
        series = self._series_of(labels)
        code = -1 if series is None else self._table.setdefault(series, len(self._table))
        self._codes[key] = code
        return code


def _coded(column: Any) -> tuple[NDArray[np.int32], list[str]]:
    """Return the codes of a dictionary column and its words, the last of them for missing values."""
    values = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if hasattr(values, "num_chunks"):  # a chunked array of one chunk
        values = values.chunk(0)
    words = values.dictionary
    if str(words.type) in ("string", "large_string"):  # of JSON, where pyarrow takes any bytes for text
        words = words.cast("binary")
    words = [_text(word) for word in words.to_pylist()]
    indices = values.indices.fill_null(len(words)) if values.indices.null_count else values.indices
    return np.frombuffer(indices.buffers()[1], np.int32)[indices.offset : indices.offset + len(indices)], [*words, ""]


def _text(word: Any) -> str:
    text = word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word)
    return "".join(mark for mark in text.strip() if mark.isprintable())


def taken(codes: Int) -> Bool:
    """Return which rows are of a series."""
    of_series: Bool = codes >= 0
    return of_series
