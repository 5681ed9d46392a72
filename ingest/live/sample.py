"""Commands that are asked on a clock, and the file that `tailboard record sample` appends to."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shlex import join
from typing import Any

from ingest.core.errors import InputError, counted
from ingest.core.units import format_duration
from ingest.read.sample_file import BEFORE, BEGIN, END, MISSED, POLL, START, is_sample_file, seconds
from ingest.read.text import last_line_end

# A command that is asked once: what it says, how long it may take, and that it is gone afterwards, with its children.


SECOND = 1_000_000_000
MOST_SAID = 64 << 20
TOO_MUCH = f"it said more than {MOST_SAID >> 20} MiB"
GRACE_SECONDS = 1.0
PIECE = 1 << 16


class Stop:
    """Whether a sampler is to end, for which reason; ends a wait, and the command that runs.

    A wait is for a lock that a signal lets go: an Event has a lock inside, which a signal that comes while the wait begins or
    ends would wait for without an end.
    """

    def __init__(self) -> None:
        self.why = ""
        self.signal = 0
        self._going = threading.Lock()
        self._going.acquire()
        self._group: int | None = None

    def __call__(self, number: int, _: object) -> None:
        """Take a signal."""
        self.signal, self.why = number, signal.Signals(number).name
        if self._going.locked():
            self._going.release()
        self._kill()

    def running(self, group: int | None) -> None:
        """Note which group of processes runs; it is killed at once if the end was asked for just before."""
        self._group = group
        if self.why:
            self._kill()

    def wait(self, wait_seconds: float) -> None:
        """Return after a while, or when stopped."""
        if not self.why:
            self._going.acquire(timeout=wait_seconds)

    def _kill(self) -> None:
        if self._group is not None:
            kill(self._group)


@dataclass(frozen=True, slots=True)
class Reply:
    """How a command ended: `error` is empty where it answered. `status` None: it could not be started, or was killed here."""

    status: int | None
    said: bytes = b""
    stderr: bytes = b""
    error: str = ""


def kill(group: int) -> None:
    """Kill a group of processes, if it is there."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def ask(command: Sequence[str], timeout_ns: int, stop: Stop) -> Reply:
    """Return what a command said.

    One that takes longer than `timeout_ns`, or says more than 64 MiB, is killed with its children.
    """
    try:
        process = subprocess.Popen(  # noqa: S603  # running the user's command is what this is for
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        return Reply(None, error=f"cannot be started: {error.strerror or error}")
    stop.running(process.pid)
    try:
        return _ended(process, timeout_ns)
    finally:
        stop.running(None)


def _ended(process: subprocess.Popen[bytes], timeout_ns: int) -> Reply:
    """Return what a command said until it ended, or had to be killed."""
    assert process.stdout is not None
    assert process.stderr is not None
    end = time.monotonic() + timeout_ns / SECOND
    held = {stream.fileno(): bytearray() for stream in (process.stdout, process.stderr)}
    with selectors.DefaultSelector() as streams:
        for number in held:
            os.set_blocking(number, False)
            streams.register(number, selectors.EVENT_READ)
        drained = _drained(streams, held, end)
        if drained:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(end - time.monotonic(), 0))
        error = ""
        much = sum(map(len, held.values())) > MOST_SAID
        if process.poll() is None:
            error = f"killed: {TOO_MUCH}" if much else f"killed: it took longer than {format_duration(timeout_ns)}"
            kill(process.pid)
            _drained(streams, held, time.monotonic() + GRACE_SECONDS)
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
        elif not drained:  # a child of it holds its output open, or writes without end
            error = TOO_MUCH if much else f"its output was still open after {format_duration(timeout_ns)}"
            kill(process.pid)
    process.stdout.close()
    process.stderr.close()
    said, stderr = (bytes(part) for part in held.values())
    if error:
        return Reply(None, b"", stderr, error)
    status = process.returncode
    if status:
        word = f"ended by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        return Reply(status, said, stderr, word)
    return Reply(0, said, stderr, "" if said.strip() else "it said nothing")


def _drained(streams: selectors.BaseSelector, held: dict[int, bytearray], end: float) -> bool:
    """Read into `held` until all streams are closed; returns whether they were before `end`, and before it was too much."""
    while streams.get_map():
        left = end - time.monotonic()
        if left <= 0 or sum(map(len, held.values())) > MOST_SAID:
            return False
        for key, _ in streams.select(left):
            data = os.read(key.fd, PIECE)
            held[key.fd] += data
            if not data:
                streams.unregister(key.fd)
    return True


# The file that `tailboard record sample` appends to.
#
# A line is written at once and whole: a kill leaves at most its beginning, which the next start takes away.


NEWEST = re.compile(rb'\{"sampled_at":(\d{1,12})\.(\d{9})\b')
LONGEST_STAMP = 64
IN_USE = "another tailboard record sample writes to it: give another name with -o"
NO_LOCK = "cannot be locked ({}), so two samplers might write to it at once: give a file on a local disk with -o"


class SampleLog:
    """A file of samples that this process alone appends to; `cut` is how many bytes of a broken last line were taken away.

    `last_ns` is when the newest record was written, None in a new file. InputError where the file is another's.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self.cut = 0
        self.last_ns: int | None = None
        self._open()

    def _open(self) -> None:
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror or error}", self._path) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._mend()
        except OSError as error:
            self.close()
            in_use = error.errno in (errno.EWOULDBLOCK, errno.EACCES)
            raise InputError(IN_USE if in_use else NO_LOCK.format(error.strerror or error), self._path) from None
        except InputError:
            self.close()
            raise

    def _mend(self) -> None:
        """Take a last line away that was cut off by a kill, and find the newest record."""
        size = os.fstat(self._file).st_size
        mark = START.encode()
        end = last_line_end(self._path) if size else 0
        begins = {0, end} if end < size else {0}
        strange = any(not mark.startswith(os.pread(self._file, len(mark), place)[: size - place]) for place in begins if size)
        if strange or (end and not is_sample_file(self._path)):
            raise InputError("is no file that tailboard record sample writes: give another name with -o", self._path)
        if end < size:
            os.ftruncate(self._file, end)
            self.cut = size - end
        self.last_ns = self._newest(end)

    def _newest(self, end: int) -> int | None:
        begin = end
        while begin > 0:
            begin = max(0, begin - PIECE)
            place = os.pread(self._file, min(PIECE, end - 1 - begin), begin).rfind(b"\n")
            if place >= 0:
                begin += place + 1
                break
        match = NEWEST.match(os.pread(self._file, LONGEST_STAMP, begin)) if end else None
        return None if match is None else int(match[1]) * SECOND + int(match[2])

    def write(self, line: str, before: str = "") -> str:
        """Append a line, whole or not at all; returns why it could not be, empty text where it was.

        Where the file was renamed or deleted a new one is begun; one that is empty begins with the line `before`.
        """
        try:
            self._follow()
        except InputError as error:
            return error.reason
        size = os.fstat(self._file).st_size
        data = memoryview((line if size else before + line).encode())
        try:
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, size)
            return error.strerror or str(error)
        return ""

    def _follow(self) -> None:
        """Begin a new file where the old one was renamed or deleted."""
        try:
            gone = self._file < 0 or not os.path.samestat(self._path.stat(), os.fstat(self._file))
        except OSError:
            gone = True
        if gone:
            self.close()
            self._open()

    def close(self) -> None:
        """Let others write to the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


# Polls on a clock, and the record of each; `sample_file` is the reader's side.
#
# Polls are due at whole multiples of the interval since the first, by a clock that nobody sets: no poll moves those after it.
# What is not asked, because a poll took too long or the machine slept, is a record of its own, as is a command that failed.


MOST_ERROR = 2000
OUTSIDE_STRINGS = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|\s+')
BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # goes on while the machine sleeps


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


def inlined(text: str) -> str:
    """Return text as a JSON value: what is a JSON object or array itself, without blanks, its numbers as they were written."""
    if text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            json.loads(text, parse_constant=int)  # a ValueError for NaN and infinities, which JSON does not have
            return OUTSIDE_STRINGS.sub(r"\1", text)
    return json.dumps(text)


@dataclass(slots=True)
class Sampler:
    """Asks a command on a clock until it is stopped; says what goes wrong and when it is well again.

    `run` returns when the time is over or `stop` was asked for; `answered`, `failed` and `missed` count polls. `write` takes a
    line, and one to write before it in a new file; it returns why it could not be written, empty text where it was.
    """

    command: tuple[str, ...]
    every_ns: int
    timeout_ns: int
    host: str
    write: Callable[[str, str], str]
    clock: RealClock
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
            self._missing(away, last_ns + self.every_ns, last_ns + away * self.every_ns, "tailboard record sample did not run")
        tick = 0
        while not self.stop.why and (self.for_ns is None or tick * self.every_ns <= self.for_ns):
            due = begin + tick * self.every_ns
            self.clock.wait(max(due - self.clock.now(), 0))
            if self.stop.why:
                break
            late = (self.clock.now() - due) // self.every_ns
            if late > 0:
                self._skipped(begin, tick, late, "this machine, or tailboard, stood still")
                tick += late
                continue
            if not self._poll():
                break
            after = max(tick + 1, -(-(self.clock.now() - begin) // self.every_ns))
            if after > tick + 1:
                self._skipped(begin, tick + 1, after - tick - 1, "the poll before took too long")
            tick = after
        why = self.stop.why or f"{format_duration(self.for_ns or 0)} are over"
        self._write(END, {"why": why, "answered": self.answered, "failed": self.failed, "missed": self.missed})

    def _poll(self) -> bool:
        """Ask once; returns whether the answer counts, false where the end came in between."""
        began = self.clock.now()
        reply = ask(self.command, self.timeout_ns, self.stop)
        if self.stop.why:
            self._missing(1, self.clock.wall(), self.clock.wall(), "tailboard was stopped while the command ran")
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
        self._write(MISSED, _gap(polls, first_ns, last_ns, why))
        clock = time.strftime("%H:%M:%SZ", time.gmtime(first_ns // SECOND))
        self.say(f"{counted(polls, 'poll')} missed from {clock} on: {why}")

    def _write(self, record: str, values: dict[str, Any]) -> bool:
        """Write a record, after one of the polls that could not be written before; returns whether there was room for it."""
        now, gap = self.clock.wall(), ""
        if self._unwritten is not None:
            gap = self._line(MISSED, self._unwritten[-1], _gap(*self._unwritten, "the answer could not be written"))
        why = self.write(gap + self._line(record, now, values), self._before)
        if not why:
            self._unwritten = None
            if record == POLL and "error" not in values:
                self._before = self._line(BEFORE, now, values)
            return True
        if record in (POLL, MISSED):
            polls, first, _ = self._unwritten or (0, now, now)
            self._unwritten = polls + values.get("polls", 1), first, now
        self.missed += record == POLL and "error" not in values
        self.say(f"could not be written, so this poll is lost: {why}")
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


def _gap(polls: int, first_ns: int, last_ns: int, why: str) -> dict[str, Any]:
    """Return what a record says of polls that are missing."""
    return {"polls": polls, "from": _Raw(seconds(first_ns)), "to": _Raw(seconds(last_ns)), "why": why}


class _Raw(str):
    """Text that is JSON already."""

    __slots__ = ()
