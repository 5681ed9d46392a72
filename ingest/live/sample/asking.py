"""A command that is asked once: what it says, how long it may take, and that it is gone afterwards, with its children."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from ingest.core.timing import format_duration

SECOND = 1_000_000_000
MOST_SAID = 64 << 20
TOO_MUCH = f"it said more than {MOST_SAID >> 20} MiB"
GRACE_SECONDS = 1.0
PIECE = 1 << 16


class Stop:
    """Whether a sampler is to end, for which reason; ends a wait, and the command that runs."""

    def __init__(self) -> None:
        self.why = ""
        self.signal = 0
        self._event = threading.Event()
        self._group: int | None = None

    def __call__(self, number: int, _: object) -> None:
        """Take a signal."""
        self.signal, self.why = number, signal.Signals(number).name
        self._event.set()
        self._kill()

    def running(self, group: int | None) -> None:
        """Note which group of processes runs; it is killed at once if the end was asked for just before."""
        self._group = group
        if self.why:
            self._kill()

    def wait(self, wait_seconds: float) -> None:
        """Return after a while, or when stopped."""
        self._event.wait(wait_seconds)

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
