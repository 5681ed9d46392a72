"""Snabb timelines: the binary log of events that a Snabb process keeps in a ring, versions 2 and 3.

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import InputError
from ingest.core.events import Events
from ingest.core.grid import SECOND
from ingest.core.intervals import Bool, Int
from ingest.core.series import LAG, Series
from ingest.core.timing import MOST_NS
from ingest.read.account import Account
from ingest.read.context import TSC_HZ, Context
from ingest.read.delimited.arrow_lines import reject
from ingest.read.events import DAY_NS
from ingest.read.snabb.clock import READING, READING_ARGUMENT, Clock, Readings, clock_of, nanoseconds
from ingest.read.snabb.lags import COUNTED, REASONS, Lags, lags_of
from ingest.read.snabb.messages import Message, messages_of
from ingest.read.snabb.ring import Ring, read_ring

Numbers = NDArray[Any]

CHUNK = 1 << 17
MOST_SERIES = 50_000
LONGEST_NS = 1 << 61
NO_EVENT = "holds no event: its ring is empty"


@dataclass(frozen=True, slots=True)
class Timeline:
    """The events of a timeline, oldest first: event i is `messages[codes[i]]`, stored at `tsc[i]` on core `core[i]`.

    `place` is its number in the ring, from 0. `stamp_ns` counts from 1970 where `real`, else from the first event.
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

    @property
    def real(self) -> bool:
        """Return whether stamps are times since 1970."""
        return self.clock.real

    def arguments(self, rows: Int) -> Numbers:
        """Return the six arguments of the given events as they were stored: unsigned integers in version 2, else doubles."""
        numbers: Numbers = self.ring.entries["arguments"][self.place[rows]]
        return numbers

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
        """Return the lag of each event."""
        gone = [places for reason, places in self.ring.rejected.items() if len(places)]
        lost = np.zeros(len(self), np.int64)
        if gone and len(self):
            size, oldest = len(self.ring.entries), int(self.place[0])
            behind = np.sort((np.concatenate(gone) - oldest) % size)
            lost = np.searchsorted(behind, (self.place - oldest) % size)
        return lags_of(self.tsc, self.core, self.codes, self.messages, lost)


def _place(message: Message, name: str) -> int:
    return message.arguments.index(name) if name in message.arguments else -1


def timeline(path: Path, hz: int = 0) -> Timeline:
    """Return the decoded timeline; `hz` is the frequency of the TSC, 0 to have it from the clock readings in the ring.

    Raises InputError where it is none, is damaged as a whole, is empty, or where the frequency cannot be determined.
    """
    ring = read_ring(path)
    order = ring.order
    if not len(order):
        raise InputError(NO_EVENT, path)
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
    there = np.flatnonzero(np.bincount(numbers, minlength=1))
    messages = messages_of(strings, there.tolist())
    table: dict[Message, int] = {}
    codes = np.zeros(1 << 16, np.int64)
    for number, message in messages.items():
        codes[number] = table.setdefault(message, len(table))
    return tuple(table), codes[numbers]


def _readings(ring: Ring, messages: Sequence[Message], codes: Int, tsc: Int, core: Int) -> Readings:
    """Return the clock readings among the events; arguments that no clock shows are left out."""
    places = np.full(len(messages), -1, np.int64)
    for code, message in enumerate(messages):
        if message.name.lower() == READING:
            places[code] = _place(message, READING_ARGUMENT)
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
    zero = 0 if recorded.real else (context.zero.epoch_ns or 0)
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
        series = labels.replaced(op=event.name.lower(), job=event.app, kind=LAG, tag=tag_of(event, before))
        places[place] = table.setdefault(series, len(table))
    return tuple(table), places[codes]


def tag_of(event: Message, anchor: Message) -> str:
    """Return the tag of the lags of an event: its level and rate, and the event that they count from."""
    return f"{event.level},{event.rate} after {anchor.text}"


def _note_lost(lags: Lags, too_long: Bool, account: Account) -> None:
    """Note how many events have no lag that counts, and why."""
    counts = {reason: int(np.count_nonzero(lags.fault == number)) for number, reason in enumerate(REASONS) if reason}
    counts["longer than a day"] = int(np.count_nonzero(too_long))
    reasons = [f"{reason} ({count:,})" for reason, count in counts.items() if count]
    if reasons:
        account.note(f"{sum(counts.values()):,} of {len(lags.fault):,} events have no lag that counts: {'; '.join(reasons)}")
