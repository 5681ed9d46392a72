"""Breaths and callbacks of a Snabb timeline: what each cost and what it moved.

Callbacks of apps in a Snabb timeline: what each cost and what it moved, where its events show it.

    3,3|app.pull app=nic:   inpackets inbytes outpackets outbytes droppackets dropbytes
    3,3|app.pulled app=nic: inpackets inbytes outpackets outbytes droppackets dropbytes

The arguments are counters of all links of the app: what a callback moved is by how much they grew from its first event to its
second, the larger of in and out. Events have borne them until December 2022; newer ones show only how long it took.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ingest.core.breaths import BREATH, Float, StoredBreaths, Work, joined, sampled, windows_of
from ingest.core.intervals import Bool, Int
from ingest.core.labels import Series
from ingest.read.context import TSC_HZ
from ingest.read.format_names import SNABB
from ingest.read.plugins.snabb.timeline import BREATH_END, BREATH_START, COUNTED, Lags, Timeline, nanoseconds, timeline
from ingest.read.sources import Source

# Breaths of a Snabb timeline: what each cost and what it moved, one row a breath that was stored whole.
#
# A breath is a `breath_start` and the `breath_end` that bears the same number. What it moved is decided by the names of the
# arguments, which changed over the years: where the end has `npackets`, it is of this breath alone (`bpp` bytes a packet);
# where start and end both have `totalpackets`, they are totals since the process began, and their difference is the breath's.


NUMBER = "breath"
OWN_PACKETS, OWN_SIZE = "npackets", "bpp"
TOTALS = ("totalpackets", "totalbytes", "totaletherbits")
EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Breaths:
    """Breaths in order: when each began (ns, as stamps of the timeline), its number, cycles and ns that it took.

    `packets`, `bytes` and `bits` (on the wire, with what Ethernet adds) are what it moved, NaN where the file does not show it.
    `core` is TSC_AUX, node and cpu together. Breaths are a sample: of `rate`, one in 5^(9-rate) was stored.
    """

    start_ns: Int
    number: Int
    core: Int
    cycles: Int
    lasted_ns: Int
    packets: Float
    bytes: Float
    bits: Float
    rate: Int

    def __len__(self) -> int:
        return len(self.number)


def breaths(timeline: Timeline) -> Breaths:
    """Return the breaths of a timeline, oldest first: those whose start and end are both there, on one core.

    Cycles are exact below 2^53 of the counter (40 days at 2.6 GHz), beyond that to the rounding of doubles.
    """
    starts, ends = timeline.named(BREATH_START), timeline.named(BREATH_END)
    start, end = _pairs(timeline, starts, ends)
    cycles = timeline.tsc[end] - timeline.tsc[start]
    moved = {name: grown(timeline, start, end, name) for name in TOTALS}
    own, has_own = timeline.argument(end, OWN_PACKETS)
    size, has_size = timeline.argument(end, OWN_SIZE)
    with np.errstate(over="ignore", invalid="ignore"):
        packets = np.where(has_own, own, moved["totalpackets"])
        said = timeline.argument(start, NUMBER)[0].astype(np.float64)
        number = np.where((said >= 0) & (said < EXACT), said, -1).astype(np.int64)  # -1 for what is no number
        volume = np.where(has_own & has_size, own.astype(np.float64) * size, moved["totalbytes"])
    rates = np.array([message.rate for message in timeline.messages], np.int64)
    return Breaths(
        start_ns=timeline.stamp_ns[start],
        number=number,
        core=timeline.core[start],
        cycles=cycles,
        lasted_ns=nanoseconds(cycles, timeline.clock.hz),
        packets=_possible(packets),
        bytes=_possible(volume),
        bits=moved["totaletherbits"],
        rate=rates[timeline.codes[end]],
    )


def _pairs(timeline: Timeline, starts: Int, ends: Int) -> tuple[Int, Int]:
    """Return start and end of each breath: an end belongs to the last start before it if both bear the same number."""
    if not len(starts):
        return starts, starts
    before = np.searchsorted(starts, ends) - 1
    ends, before = ends[before >= 0], before[before >= 0]
    first = np.append(True, before[1:] != before[:-1])[: len(before)]
    ends, mine = ends[first], starts[before[first]]
    number, has_number = timeline.argument(mine, NUMBER)
    other, has_other = timeline.argument(ends, NUMBER)
    same: Bool = has_number & has_other & (number == other) & (timeline.core[mine] == timeline.core[ends])
    return mine[same], ends[same]


def grown(timeline: Timeline, start: Int, end: Int, name: str) -> Float:
    """Return by how much a total grew from start to end; NaN where it is unknown, or fell."""
    before, has_before = timeline.argument(start, name)
    after, has_after = timeline.argument(end, name)
    with np.errstate(invalid="ignore"):
        usable = has_before & has_after & (after >= before)
        growth = np.where(usable, after - before, 0).astype(np.float64)
    return np.where(usable & np.isfinite(growth), growth, np.nan)


def _possible(values: Float) -> Float:
    """Return the values that are numbers of something, NaN for the others."""
    with np.errstate(invalid="ignore"):
        return np.where((values >= 0) & (values < np.inf), values, np.nan)


CALLBACKS = {"app.pulled": "app.pull", "app.pushed": "app.push"}
IN, OUT = ("inpackets", "inbytes"), ("outpackets", "outbytes")


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Callbacks in order: the event that ended each (index into the timeline), the cycles that it took, what it moved.

    `packets` and `bytes` are NaN where the events do not show them. They are a sample: of `rate`, one in 5^(9-rate) was stored.
    """

    end: Int
    cycles: Int
    packets: Float
    bytes: Float
    rate: Int


def callbacks(timeline: Timeline, lags: Lags) -> Callbacks:
    """Return the callbacks of a timeline, oldest first: those of which both events are there, one right within the other's."""
    ends = timeline.named(*CALLBACKS)
    begins = lags.anchor[ends]
    known = {(message.name.lower(), message.attributes): code for code, message in enumerate(timeline.messages)}
    wanted = [(CALLBACKS.get(message.name.lower(), ""), message.attributes) for message in timeline.messages]
    starts = np.array([known.get(key, -1) if key[0] else -1 for key in wanted], np.int64)  # which message begins one of its app
    mine = (lags.fault[ends] == COUNTED) & (starts[timeline.codes[ends]] >= 0)
    mine[mine] = timeline.codes[begins[mine]] == starts[timeline.codes[ends[mine]]]
    end, start = ends[mine], begins[mine]
    rates = np.array([message.rate for message in timeline.messages], np.int64)
    packets, volume = (
        np.fmax(grown(timeline, start, end, inward), grown(timeline, start, end, outward))
        for inward, outward in zip(IN, OUT, strict=True)
    )
    return Callbacks(end, lags.cycles[end], packets, volume, np.minimum(rates[timeline.codes[start]], rates[timeline.codes[end]]))


# The breaths and callbacks of a source as they are kept: under labels, at the time of its run.


MOST_MOVED = 1 << 50


def kept_of(source: Source) -> StoredBreaths | None:
    """Return a source's breaths as they are kept; None where it is no timeline. InputError as `timeline`."""
    if source.format != SNABB:
        return None
    recorded = timeline(source.path, int(source.context.options.get(TSC_HZ, "0")))
    zero = 0 if recorded.clock.real else (source.context.zero.epoch_ns or 0)
    shift, labels = zero + source.context.offset_ns, source.context.series.replaced(kind="")
    whole = breaths_of(recorded, labels, shift)
    parts = [windows_of(whole), *(windows_of(part) for part in callbacks_of(recorded, labels, shift))]
    return StoredBreaths(joined(parts), sampled(whole))


def breaths_of(recorded: Timeline, labels: Series, shift_ns: int) -> Work:
    """Return the breaths of a timeline; `shift_ns` is added to when they ended."""
    rows = breaths(recorded)
    table, series = (labels.replaced(op=BREATH),), np.zeros(len(rows), np.int64)
    ended, moved = rows.start_ns + rows.lasted_ns + shift_ns, map(credible, (rows.packets, rows.bytes, rows.bits))
    return Work(table, series, rows.rate, ended, rows.number, rows.cycles, *moved)


def callbacks_of(recorded: Timeline, labels: Series, shift_ns: int) -> Iterator[Work]:
    """Yield the callbacks of a timeline whose packets are known, if there are any."""
    rows = callbacks(recorded, recorded.lags())
    packets = credible(rows.packets)
    counted = np.flatnonzero(~np.isnan(packets))
    if not len(counted):
        return
    table: dict[Series, int] = {}
    codes = np.full(len(recorded.messages), -1, np.int64)
    for code, message in enumerate(recorded.messages):
        if (name := message.name.lower()) in CALLBACKS:
            series = labels.replaced(op=name, job=message.app)
            codes[code] = table.setdefault(series, len(table))
    end = rows.end[counted]
    moved = packets[counted], credible(rows.bytes[counted]), np.full(len(counted), np.nan)
    done = (
        codes[recorded.codes[end]],
        rows.rate[counted],
        recorded.stamp_ns[end] + shift_ns,
        recorded.place[end],
        rows.cycles[counted],
    )
    yield Work(tuple(table), *done, *moved)


def credible(moved: Float) -> Float:
    """Return packets or bytes in whole numbers, NaN for more than a breath can move: there an argument was damaged."""
    with np.errstate(invalid="ignore"):
        return np.where(moved < MOST_MOVED, np.floor(moved), np.nan)
