"""Snabb timelines, versions 2 and 3: events of the ring, their clock, messages and lags, as a source.

What the entries of a Snabb timeline mean: the texts in its table of strings.

    1,5|engine.breath_start: breath totalpackets totalbytes totaletherbits      level, rate, name, arguments
    3,3|app.pull app=0000:01:00.0:                                              attributes before the last colon
    5|engine.breath_start: breath totalpackets                                  until November 2018: one digit for both

What follows the first line is prose. Level 0 is outermost, and the rate says how often an event is stored (9 always, each
number below a fifth of that). The single digit of older files counts the other way round: high is outermost and often.

Lags: the cycles since the closest stored event before that is of the same level or further out, its anchor.

    level 1   breath_start                          breath_end      lag of breath_end: since breath_start, the whole breath
    level 3            push   pushed   push  pushed                 lag of pushed: since push; of push: since pushed
    level 9                 x                                       lag of x: since push

Only stored events can be anchors, so one event has several anchors, at different rates: lags of (event, anchor) pairs are
series of their own. Not every lag is a latency, and those that are not are left out:

* the first event of a breath counts from the last one that was sampled, on average hundreds of breaths ago;
* a lag across two cores compares two counters;
* where an entry in between was lost, it may have been the anchor.

Snabb timelines: the binary log of events that a Snabb process keeps in a ring, versions 2 and 3.

    stamp           core  event                                   lag       arguments
    4178080110971   1     engine.breath_start                               breath=1260 totalpackets=257040 ...
    4178080122697   1     engine.breath_end                       11726     breath=1260 totalpackets=257244 ...

Each event becomes one sample of kind `lag`: how long ago its anchor was, the closest stored event before it of the same
level or further out (`lags`). Traps, and what is done:

* the writer's place in the ring is not in the file: it follows from the stamps of each core (`order`);
* stamps count cycles: their frequency is that of the clock readings in the ring, or --tsc-hz (`clock`);
* events are stored at random, at rate r one in 5^(9-r), whole breaths at once. Counts are those of stored events; the tag
  names level, rate and anchor (`3,3 after app.push app=tee`), by which `query/lags` weighs where rates are mixed;
* numbers with no text in the table (it was full) are counted and shown, but have no lag.

op is the event as category.event in lower case, job the app, process the Snabb process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import InputError
from ingest.core.events import Events
from ingest.core.grid import MS, SECOND
from ingest.core.intervals import Bool, Int
from ingest.core.labels import LAG, Series
from ingest.core.units import MOST_NS
from ingest.read.account import Account
from ingest.read.context import TSC_HZ, Context, TimeZero
from ingest.read.described.table import reject
from ingest.read.format_names import SNABB
from ingest.read.formats import Reader
from ingest.read.operations import DAY_NS, events_layout
from ingest.read.plugins.snabb.ring import (
    ALIGNED,
    ARGUMENTS,
    CPU,
    OWN_NAMES,
    SEAM,
    WRITING,
    Ring,
    looks_like_timeline,
    process_of,
    read_ring,
)
from ingest.read.sources import Around, Source
from ingest.read.text import plain_name

OUTERMOST = 9
FRONT = re.compile(r"(\d)(?:,(\d))?\|(.*)", re.DOTALL)
NAME = re.compile(r"\w+", re.ASCII)
EVENT = re.compile(r"[\w.\-/]+")


@dataclass(frozen=True, slots=True)
class Message:
    """An event as the program announced it: `name` as category.event, its attributes, the names of its arguments.

    `level` and `rate` are as spelled; `depth` counts from 0, the outermost, in either spelling. Unknown messages have no name,
    and level, rate and depth -1.
    """

    name: str
    level: int
    rate: int
    depth: int
    attributes: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Return whether the table of strings describes this."""
        return bool(self.name)

    @property
    def text(self) -> str:
        """Return name and attributes as the program wrote them: app.push app=tee."""
        return " ".join((self.name, *(f"{name}={value}" for name, value in self.attributes)))

    @property
    def app(self) -> str:
        """Return the name of the app, followed by other attributes as name=value; empty where there is none."""
        return " ".join(value if name == "app" else f"{name}={value}" for name, value in self.attributes)


UNKNOWN = Message("", -1, -1, -1)


def message_of(text: str) -> Message:
    """Return the message that a text of the table announces; an unknown one where it announces none."""
    line = text.split("\n", 1)[0].rstrip()
    front = FRONT.fullmatch(line)
    if not front:
        return UNKNOWN
    body, names = _split(front[3])
    words = body.split()
    if not words or not EVENT.fullmatch(words[0]):
        return UNKNOWN
    level = int(front[1])
    pairs = tuple((name, value) for name, mark, value in (word.partition("=") for word in words[1:]) if mark and name)
    if front[2] is None:
        return Message(words[0], level, level, OUTERMOST - level, pairs, names)
    return Message(words[0], level, int(front[2]), level, pairs, names)


def _split(body: str) -> tuple[str, tuple[str, ...]]:
    """Return what stands before the last colon that only names follow, and these names; values may hold colons themselves."""
    front, colon, behind = body.rpartition(":")
    names = behind.split()
    if colon and all(NAME.fullmatch(name) for name in names):
        return front, tuple(names[:ARGUMENTS])
    return body, ()


def _at(strings: bytes, number: int) -> Message:
    """Return the message of a number, an unknown one where the table has no text there."""
    start = number * ALIGNED
    if start >= len(strings) or (start and strings[start - 1]):
        return UNKNOWN
    end = strings.find(b"\0", start)
    return message_of(strings[start : end if end >= 0 else len(strings)].decode("utf-8", "replace"))


# The clock of a Snabb timeline: cycles of the TSC as nanoseconds, from the clock readings that the ring itself holds.
#
# An event `engine.got_monotonic_time` bears the time in ns beside its stamp. All cores count at one frequency (they are fitted
# together), but need not have begun at the same time: each has an offset of its own, and one without a reading is taken to
# agree with the others. The time is that of a clock with a date, or of one that counts from the start of the machine; the
# numbers show which.


READING, READING_ARGUMENT = "engine.got_monotonic_time", "unixnanos"
REAL_FROM = 10**18  # ns: September 2001, or 31 years after a machine was started
SLOWEST, FASTEST = 10**6, 9 * 10**9
STRAIGHT_NS = 10 * MS
STRAIGHT_SHARE = 0.02
NO_CLOCK = (
    "the frequency of its TSC cannot be determined (this takes two engine.got_monotonic_time events on one core): "
    "give --tsc-hz, as in --tsc-hz 2.6e9; the kernel's log shows it as 'tsc: ... MHz'"
)


@dataclass(frozen=True, slots=True)
class Readings:
    """Clock readings: at cycle `tsc[i]` of core `core[i]` the clock showed `ns[i]`."""

    tsc: Int
    core: Int
    ns: Int


@dataclass(frozen=True, slots=True)
class Clock:
    """`hz` cycles a second; at cycle `zero_tsc` core c shows `core_ns[c]`, any other core `other_ns`.

    `real` says that the time is one since 1970. `notes` say what a reader of the numbers must know.
    """

    hz: int
    zero_tsc: int
    other_ns: int
    core_ns: dict[int, int]
    real: bool
    notes: tuple[str, ...] = ()

    def stamps(self, tsc: Int, core: Int) -> Int:
        """Return the ns that the clock shows at each cycle, rounded down."""
        offsets = np.full(1 << 16, self.other_ns, np.int64)
        offsets[list(self.core_ns)] = list(self.core_ns.values())
        return nanoseconds(tsc - self.zero_tsc, self.hz) + offsets[core]


def nanoseconds(cycles: Int, hz: int) -> Int:
    """Return cycles as ns, rounded down, exact for frequencies up to 9 GHz and whatever fits 64 bits."""
    whole, rest = np.divmod(cycles, hz)
    ns: Int = whole * SECOND + rest * SECOND // hz
    return ns


def clock_of(readings: Readings, first_tsc: int, hz: int = 0, path: Path | None = None) -> Clock:
    """Return the clock; `hz` is what the user said, 0 to have it from the readings. InputError where it cannot be determined."""
    straight = _straight(readings, hz)
    notes = []
    left_out = len(readings.tsc) - len(straight.tsc)
    if left_out:
        notes.append(f"{left_out} of {len(readings.tsc)} clock readings lie off the line of the others and were left out")
    if not hz:
        hz = _fitted(straight, path)
    if not len(straight.tsc):
        return Clock(hz, first_tsc, 0, {}, real=False, notes=tuple(notes))
    shown = straight.ns - nanoseconds(straight.tsc - first_tsc, hz)
    cores = {int(core): _mean(shown[straight.core == core]) for core in np.unique(straight.core)}
    spread = max(int(np.ptp(shown[straight.core == core])) for core in cores)
    if spread > 2 * MS:
        notes.append(f"its clock readings lie up to {spread / MS:.0f} ms apart around a straight line: was the clock set?")
    if (apart := (max(cores.values()) - min(cores.values())) / MS) > 1:
        core_names = ", ".join(str(core & CPU) for core in sorted(cores))
        notes.append(f"the counters of its cores ({core_names}) lie {apart:.0f} ms apart: each core's own clock was taken")
    return Clock(hz, first_tsc, _mean(shown), cores, bool((straight.ns >= REAL_FROM).all()), tuple(notes))


def _mean(values: Int) -> int:
    """Return the mean, rounded down."""
    first = int(values[0])
    return first + int((values - first).sum()) // len(values)


def _straight(readings: Readings, hz: int) -> Readings:
    """Return the readings without those far off the line of the others (a damaged argument, a clock that was set)."""
    if len(readings.tsc) < 3:
        return readings
    slope = SECOND / hz if hz else _usual_slope(readings)
    if not slope:
        return readings
    since = (readings.tsc - readings.tsc[0]).astype(np.float64)
    off = (readings.ns - readings.ns[0]).astype(np.float64) - since * slope
    cores = np.unique(readings.core)
    for core in cores:
        mine = readings.core == core
        off[mine] -= np.median(off[mine])
    allowed = STRAIGHT_NS + STRAIGHT_SHARE * slope * (since.max() - since.min())
    near = np.abs(off) <= allowed
    return Readings(readings.tsc[near], readings.core[near], readings.ns[near])


def _usual_slope(readings: Readings) -> float:
    """Return the median of ns a cycle between readings that follow each other on a core, 0 where there are none."""
    order = np.lexsort((readings.tsc, readings.core))
    same = np.diff(readings.core[order]) == 0
    cycles = np.diff(readings.tsc[order])[same].astype(np.float64)
    passed = np.diff(readings.ns[order])[same].astype(np.float64)
    slopes = passed[cycles > 0] / cycles[cycles > 0]
    return float(np.median(slopes)) if len(slopes) else 0.0


def _fitted(readings: Readings, path: Path | None) -> int:
    """Return the frequency in Hz from the least-squares slope that all cores share; InputError where there is none."""
    top, bottom = 0.0, 0.0
    for core in np.unique(readings.core):
        mine = readings.core == core
        tsc = (readings.tsc[mine] - readings.tsc[mine][0]).astype(np.float64)
        passed = (readings.ns[mine] - readings.ns[mine][0]).astype(np.float64)
        top += float(((tsc - tsc.mean()) * (passed - passed.mean())).sum())
        bottom += float(((tsc - tsc.mean()) ** 2).sum())
    if bottom <= 0:
        raise InputError(NO_CLOCK, path)
    hz = round(SECOND * bottom / top) if top > 0 else 0
    if not SLOWEST <= hz <= FASTEST:
        frequency = f"{hz:,} cycles a second" if hz else "that time stands still or runs back"
        raise InputError(f"its clock readings say {frequency}, which is impossible: give --tsc-hz, as in --tsc-hz 2.6e9", path)
    return hz


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
    # After breath_end the breath goes on while events are trailing ones: the first other one is outside.
    outside = np.flatnonzero(~trailing & ~ends & ~starts)
    last_mark = np.maximum.accumulate(np.where(ends | starts, np.arange(len(codes)), -1))
    after_end = (last_mark >= 0) & ends[np.maximum(last_mark, 0)]
    first_outside = outside[after_end[outside]]
    starts[first_outside[np.flatnonzero(np.diff(last_mark[first_outside], prepend=-1))]] = True
    return np.cumsum(starts)


Numbers = NDArray[Any]

CHUNK = 1 << 17
MOST_SERIES = 50_000
LONGEST_NS = 1 << 61


@dataclass(frozen=True, slots=True)
class Timeline:
    """The events of a timeline, oldest first: event i is `messages[codes[i]]`, stored at `tsc[i]` on core `core[i]`.

    `place` is its number in the ring, from 0. `stamp_ns` counts from 1970 where the `clock` is `real`, else from the first event.
    """

    ring: Ring
    messages: Sequence[Message]
    codes: Int
    tsc: Int
    core: Int
    place: Int
    stamp_ns: Int
    clock: Clock

    def __len__(self) -> int:
        return len(self.codes)

    def arguments(self, rows: Int) -> Numbers:
        """Return the six arguments of the given events as they were stored: unsigned integers in version 2, else doubles."""
        return self.ring.entries["arguments"][self.place[rows]]

    def argument(self, rows: Int, name: str) -> tuple[Numbers, Bool]:
        """Return the argument of this name of the given events, and where their message has it (0 elsewhere)."""
        places = np.array([_place(message, name) for message in self.messages], np.int64)[self.codes[rows]]
        values = self.ring.entries["arguments"][self.place[rows], np.maximum(places, 0)]
        return np.where(places < 0, values.dtype.type(0), values), places >= 0

    def named(self, *names: str) -> Int:
        """Return the indices of the events of these names."""
        wanted = np.array([message.name.lower() in names for message in self.messages], np.bool_)
        return np.flatnonzero(wanted[self.codes])

    def lags(self) -> Lags:
        """Return the lag of each event; `lost` counts the entries before each that were lost."""
        gone = [places for reason, places in self.ring.rejected.items() if len(places)]
        lost = np.zeros(len(self), np.int64)
        if gone and len(self):
            size, oldest = len(self.ring.entries), int(self.place[0])
            behind = np.sort((np.concatenate(gone) - oldest) % size)
            lost = np.searchsorted(behind, (self.place - oldest) % size)
        depth = np.array([message.depth for message in self.messages], np.int64)[self.codes]
        anchor = anchors(depth)
        at = np.maximum(anchor, 0)
        unit = units(self.codes, self.messages)
        fault = np.select(
            [depth < 0, anchor < 0, self.core != self.core[at], lost != lost[at], unit != unit[at]],
            [UNNAMED, FIRST, OTHER_CORE, LOST, BETWEEN],
            COUNTED,
        )
        return Lags(anchor, np.where(anchor < 0, 0, self.tsc - self.tsc[at]), fault)


def _place(message: Message, name: str) -> int:
    return message.arguments.index(name) if name in message.arguments else -1


def timeline(path: Path, hz: int = 0) -> Timeline:
    """Return the decoded timeline; `hz` is the frequency of the TSC, 0 to have it from the clock readings in the ring.

    Raises InputError where it is none, is damaged as a whole, is empty, or where the frequency cannot be determined.
    """
    ring = read_ring(path)
    order = ring.order
    if not len(order):
        raise InputError("holds no event: its ring is empty", path)
    numbers = ring.entries["message"][order]
    messages, codes = _coded(ring.strings, numbers)
    tsc, core = ring.entries["tsc"][order].astype(np.int64), ring.entries["core"][order].astype(np.int64)
    clock = clock_of(_readings(ring, messages, codes, tsc, core), int(tsc[0]), hz, path)
    if int(tsc.max()) // clock.hz - int(tsc.min()) // clock.hz > LONGEST_NS // SECOND:
        raise InputError("its stamps reach over more than 70 years: damage, or another --tsc-hz", path)
    shown = clock.stamps(tsc, core)
    return Timeline(ring, messages, codes, tsc, core, order, shown if clock.real else shown - shown[0], clock)


def _coded(strings: bytes, numbers: Numbers) -> tuple[tuple[Message, ...], Int]:
    """Return the messages that occur, and which of them each event is; equal texts under two numbers are one message."""
    table: dict[Message, int] = {}
    codes = np.zeros(1 << 16, np.int64)
    for number in np.flatnonzero(np.bincount(numbers, minlength=1)).tolist():
        codes[number] = table.setdefault(_at(strings, number), len(table))
    return tuple(table), codes[numbers]


def _readings(ring: Ring, messages: Sequence[Message], codes: Int, tsc: Int, core: Int) -> Readings:
    """Return the clock readings among the events; arguments that no clock shows are left out."""
    shows = [_place(message, READING_ARGUMENT) if message.name.lower() == READING else -1 for message in messages]
    places = np.array(shows, np.int64)
    rows = np.flatnonzero(places[codes] >= 0)
    shown = ring.entries["arguments"][ring.order[rows], places[codes[rows]]]
    rows, shown = rows[(shown >= 1) & (shown < MOST_NS)], shown[(shown >= 1) & (shown < MOST_NS)]
    return Readings(tsc[rows], core[rows], shown.astype(np.int64))


def read(path: Path, context: Context) -> Iterator[Events]:
    """Yield the lags of a timeline in chunks, oldest first: each of its (event, app, anchor) is a series of kind lag.

    Raises InputError where `timeline` does, or where there are more series than can be held.
    """
    recorded = timeline(path, int(context.options.get(TSC_HZ, "0")))
    account = context.account
    account.accept(len(recorded))
    for reason, places in recorded.ring.rejected.items():
        reject(account, reason, places + 1)
    for note in (*recorded.ring.notes, *recorded.clock.notes):
        account.note(note)
    lags = recorded.lags()
    rows = np.flatnonzero(lags.fault == COUNTED)
    latency = nanoseconds(lags.cycles[rows], recorded.clock.hz)
    usable = latency <= DAY_NS
    _note_lost(lags, ~usable, account)
    rows, latency = rows[usable], latency[usable]
    table, series = _series(recorded, rows, lags.anchor[rows], context.series, path)
    zero = 0 if recorded.clock.real else (context.zero.epoch_ns or 0)
    end = recorded.stamp_ns[rows] + (zero + context.offset_ns)
    for first in range(0, len(rows), CHUNK):
        part = slice(first, first + CHUNK)
        yield Events(table, series[part], end[part], latency[part])


def _series(recorded: Timeline, rows: Int, anchor: Int, labels: Series, path: Path) -> tuple[tuple[Series, ...], Int]:
    """Return the series of (event, anchor) pairs, and which of them each of the events `rows` belongs to."""
    count = len(recorded.messages)
    pairs, codes = np.unique(recorded.codes[rows] * count + recorded.codes[anchor], return_inverse=True)
    table: dict[Series, int] = {}
    places = np.zeros(len(pairs), np.int64)
    if len(pairs) > MOST_SERIES:
        raise InputError(f"more than {MOST_SERIES:,} pairs of an event and the one it counts from: damage?", path)
    for place, pair in enumerate(pairs.tolist()):
        event, before = recorded.messages[pair // count], recorded.messages[pair % count]
        tag = f"{event.level},{event.rate} after {before.text}"
        series = labels.replaced(op=event.name.lower(), job=event.app, kind=LAG, tag=tag)
        places[place] = table.setdefault(series, len(table))
    return tuple(table), places[codes]


def _note_lost(lags: Lags, too_long: Bool, account: Account) -> None:
    """Note how many events have no lag that counts, and why."""
    counts = {reason: int(np.count_nonzero(lags.fault == number)) for number, reason in enumerate(REASONS) if reason}
    counts["longer than a day"] = int(np.count_nonzero(too_long))
    reasons = [f"{reason} ({count:,})" for reason, count in counts.items() if count]
    if reasons:
        account.note(f"{sum(counts.values()):,} of {len(lags.fault):,} events have no lag that counts: {'; '.join(reasons)}")


# Snabb timelines as sources: host, process, start.


def locate(path: Path, around: Around) -> Source:
    """Return the source of a timeline; InputError where it is none, or the speed of its counter is not known."""
    context = around.context(path, origin="place of the file", process=process_of(path), kind=LAG)
    recorded = timeline(path, around.options.tsc_hz)
    own = TimeZero(int(recorded.stamp_ns[0]), "clock readings in the timeline") if recorded.clock.real else TimeZero()
    zero = around.zero(path, own, lambda: int(recorded.stamp_ns[-1]), absolute=recorded.clock.real)
    return Source(path, SNABB, replace(context, zero=zero), layout=str(events_layout(around.options.digits)))


READER = Reader(
    locate,
    harmless=frozenset({SEAM, WRITING}),
    timed=False,
    events=read,
    accepts=looks_like_timeline,
    folder_is_host=lambda path: plain_name(path) not in OWN_NAMES,
)
