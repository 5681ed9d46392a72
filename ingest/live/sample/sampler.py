"""Polls on a clock, and the record of each; `sample_file` is the reader's side.

Polls are due at whole multiples of the interval since the first, by a clock that nobody sets: no poll moves those after it. What
is not asked, because a poll took too long or the machine slept, is a record of its own, as is a command that failed.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from shlex import join
from typing import Any, NoReturn, Protocol

from ingest.core.errors import counted
from ingest.core.timing import format_duration
from ingest.live.sample.asking import SECOND, Reply, Stop, ask
from ingest.read.histograms.sample_file import BEFORE, BEGIN, END, MISSED, POLL, seconds

MOST_ERROR = 2000
OUTSIDE_STRINGS = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|\s+')
STOPPED = "tailboard was stopped while the command ran"
NOT_RUNNING = "tailboard sample did not run"
SLEPT = "this machine, or tailboard, stood still"
TOO_LONG = "the poll before took too long"
NO_ROOM = "could not be written, so this poll is lost: {}"
NOT_WRITTEN = "the answer could not be written"
BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # goes on while the machine sleeps


class Clock(Protocol):
    """What a sampler knows of time, in ns."""

    def now(self) -> int:
        """Return a time that only goes forward."""
        ...

    def wall(self) -> int:
        """Return the time of day since 1970."""
        ...

    def wait(self, duration_ns: int) -> None:
        """Return after a while, or as soon as the sampler is stopped."""
        ...


@dataclass(frozen=True, slots=True)
class RealClock:
    """The clocks of this machine; waits end with `stop`."""

    stop: Stop

    def now(self) -> int:
        """Return ns of a clock that only goes forward."""
        return time.clock_gettime_ns(BOOT)

    def wall(self) -> int:
        """Return ns since 1970."""
        return time.time_ns()

    def wait(self, duration_ns: int) -> None:
        """Return after a while, or when stopped."""
        self.stop.wait(duration_ns / SECOND)


class Lines(Protocol):
    """Where lines go."""

    def write(self, line: str, before: str = "") -> str:
        """Write a line, in a new file behind the line `before`; returns why it could not be, empty text where it was."""
        ...


def inlined(text: str) -> str:
    """Return text as a JSON value: what is a JSON object or array itself, without blanks, its numbers as they were written."""
    if text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            json.loads(text, parse_constant=_refuse)
            return OUTSIDE_STRINGS.sub(r"\1", text)
    return json.dumps(text)


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


@dataclass(slots=True)
class Sampler:
    """Asks a command on a clock until it is stopped; says what goes wrong and when it is well again.

    `run` returns when the time is over or `stop` was asked for; `answered`, `failed` and `missed` count polls.
    """

    command: tuple[str, ...]
    every_ns: int
    timeout_ns: int
    host: str
    lines: Lines
    clock: Clock
    stop: Stop
    say: Callable[[str], None]
    for_ns: int | None = None
    answered: int = 0
    failed: int = 0
    missed: int = 0
    error: str = ""
    _failing: int = field(default=0, init=False)
    _before: str = field(default="", init=False)
    _unwritten: tuple[int, int, int] | None = field(default=None, init=False)  # polls, first and last

    def run(self, last_ns: int | None = None) -> None:
        """Ask until the end; `last_ns` is when the newest record before was written."""
        begin, wall = self.clock.now(), self.clock.wall()
        self._write(BEGIN, {"every": format_duration(self.every_ns), "timeout": format_duration(self.timeout_ns)})
        away = 0 if last_ns is None else (wall - last_ns) // self.every_ns
        if last_ns is not None and away > 0:
            self._missing(away, last_ns + self.every_ns, last_ns + away * self.every_ns, NOT_RUNNING)
        tick = 0
        while not self.stop.why and (self.for_ns is None or tick * self.every_ns <= self.for_ns):
            due = begin + tick * self.every_ns
            self.clock.wait(max(due - self.clock.now(), 0))
            if self.stop.why:
                break
            late = (self.clock.now() - due) // self.every_ns
            if late > 0:
                self._skipped(begin, tick, late, SLEPT)
                tick += late
                continue
            if not self._poll():
                break
            after = max(tick + 1, -(-(self.clock.now() - begin) // self.every_ns))
            if after > tick + 1:
                self._skipped(begin, tick + 1, after - tick - 1, TOO_LONG)
            tick = after
        why = self.stop.why or f"{format_duration(self.for_ns or 0)} are over"
        self._write(END, {"why": why, "answered": self.answered, "failed": self.failed, "missed": self.missed})

    def _poll(self) -> bool:
        """Ask once; returns whether the answer counts, false where the end came in between."""
        began = self.clock.now()
        reply = ask(self.command, self.timeout_ns, self.stop)
        if self.stop.why:
            self._missing(1, self.clock.wall(), self.clock.wall(), STOPPED)
            return False
        record: dict[str, Any] = {"took": _Raw(seconds(self.clock.now() - began)), "status": reply.status}
        if reply.error:
            record["error"] = reply.error
        if reply.stderr.strip():
            record["stderr"] = reply.stderr.decode("utf-8", "replace")[-MOST_ERROR:]
        if reply.said.strip():
            record["said"] = _Raw(inlined(reply.said.decode("utf-8", "replace")))
        written = self._write(POLL, record)
        if reply.error:
            self._failed(reply)
        elif written:
            self.answered += 1
            if self._failing:
                self.say(f"answers again after {counted(self._failing, 'poll')} without an answer")
            self._failing = 0
        return True

    def _failed(self, reply: Reply) -> None:
        """Count a poll without an answer; the first of several in a row, and each other reason, is said."""
        self.failed += 1
        self._failing += 1
        lines = reply.stderr.decode("utf-8", "replace").strip().splitlines()
        sentence = f"{reply.error}: {lines[-1][:MOST_ERROR]}" if lines else reply.error
        if self._failing == 1 or sentence != self.error:
            self.say(f"no answer: {sentence}")
        self.error = sentence

    def _skipped(self, begin: int, tick: int, polls: int, why: str) -> None:
        """Note polls that were due and were not made, those after the end left out."""
        if self.for_ns is not None:
            polls = min(polls, self.for_ns // self.every_ns - tick + 1)
        if polls < 1:
            return
        shift = self.clock.wall() - self.clock.now() + begin
        self._missing(polls, shift + tick * self.every_ns, shift + (tick + polls - 1) * self.every_ns, why)

    def _missing(self, polls: int, first_ns: int, last_ns: int, why: str) -> None:
        self.missed += polls
        self._write(MISSED, {"polls": polls, "from": _Raw(seconds(first_ns)), "to": _Raw(seconds(last_ns)), "why": why})
        clock = time.strftime("%H:%M:%SZ", time.gmtime(first_ns // SECOND))
        self.say(f"{counted(polls, 'poll')} missed from {clock} on: {why}")

    def _write(self, record: str, values: dict[str, Any]) -> bool:
        """Write a record, after one of the polls that could not be written before; returns whether there was room for it."""
        now, gap = self.clock.wall(), ""
        if self._unwritten is not None:
            polls, first, last = self._unwritten
            values_of_gap = {"polls": polls, "from": _Raw(seconds(first)), "to": _Raw(seconds(last)), "why": NOT_WRITTEN}
            gap = self._line(MISSED, last, values_of_gap)
        why = self.lines.write(gap + self._line(record, now, values), self._before)
        if not why:
            self._unwritten = None
            if record == POLL and "error" not in values:
                self._before = self._line(BEFORE, now, values)
            return True
        if record in (POLL, MISSED):
            polls, first, _ = self._unwritten or (0, now, now)
            self._unwritten = polls + values.get("polls", 1), first, now
        self.missed += record == POLL and "error" not in values
        self.say(NO_ROOM.format(why))
        return False

    def _line(self, record: str, at_ns: int, values: dict[str, Any]) -> str:
        pairs = {
            "sampled_at": _Raw(seconds(at_ns)),
            "record": record,
            "host": self.host,
            "command": join(self.command),
            **values,
        }
        cells = (f"{json.dumps(name)}:{value if isinstance(value, _Raw) else json.dumps(value)}" for name, value in pairs.items())
        return "{" + ",".join(cells) + "}\n"


class _Raw(str):
    """Text that is JSON already."""

    __slots__ = ()
