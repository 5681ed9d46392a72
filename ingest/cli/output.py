"""What commands print and write: the standard streams in whatever state the caller left them, sentences, progress, files.

    standard output    its reader has gone (`| head`): ReaderGoneError, which ends a command quietly
                       closed, or no room: UnwritableError, a sentence
    standard error     what cannot be written there is dropped: a message never changes what a command does or returns
    standard input     closed: empty

A closed stream is no small thing: the next file that is opened gets its number, and what is printed would end in that file.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from ingest.api.output import replacing, write_whole
from ingest.core.errors import InputError, shown

INPUT, OUTPUT, ERRORS = range(3)
INTERRUPTED = 130  # the exit status after Ctrl-C
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Waiting:
    """A line on the terminal where a command has printed nothing for a second: its name, and for how long.

    It is gone before something is printed. It is moved on by a timer, not by a thread: workers are forked, and a thread may hold
    a lock then.
    """

    def __init__(self) -> None:
        self._name, self._began = "", 0.0
        self._runs = self._shown = False

    def begin(self, name: str = "") -> None:
        """Wait from now on; nothing at all where stderr is no terminal."""
        if not os.isatty(ERRORS):
            return
        import signal
        import time

        self._name, self._began, self._runs = name or self._name, self._began or time.monotonic(), True
        with suppress(ValueError):  # a command that is called in another thread has no signals
            signal.signal(signal.SIGALRM, self._tick)
            signal.setitimer(signal.ITIMER_REAL, 1, 1)

    def _tick(self, *_: object) -> None:
        import time

        if self._runs:
            self._shown = True
            os.write(ERRORS, f"\r\x1b[K{self._name}: {time.monotonic() - self._began:.0f} s".encode())

    def over(self) -> None:
        """Take the line away: something is printed."""
        if not self._runs:
            return
        import signal

        self._runs = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self._shown:
            self._shown = False
            os.write(ERRORS, b"\r\x1b[K")


WAITING = _Waiting()


class ReaderGoneError(Exception):
    """The reader of our output has gone, as `head` does. No OSError: Click and rich end the process with 1 for a broken pipe."""


class UnwritableError(InputError):
    """Standard output takes nothing."""


class _Output(io.FileIO):
    def write(self, data: Any) -> int:
        """Return how many bytes were written; ReaderGoneError, UnwritableError."""
        WAITING.over()
        try:
            return super().write(data)
        except BrokenPipeError:
            raise ReaderGoneError from None
        except OSError as error:
            why = "standard output is closed" if error.errno == errno.EBADF else error.strerror
            raise UnwritableError(f"the output cannot be written: {why}") from None


class _Errors(io.FileIO):
    def write(self, data: Any) -> int:
        """Return how many bytes were taken: all of them where they cannot be written."""
        WAITING.over()
        try:
            return super().write(data)
        except OSError:
            return len(memoryview(data).cast("B"))


def hold_streams() -> None:
    """See to it that the three streams are there for the rest of the process, and that what they cannot do is one error."""
    for number in (INPUT, OUTPUT, ERRORS):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # takes the lowest number that is free, which is this one; writing to it fails
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(INPUT, closefd=False)), "utf-8")
    sys.stdout = _text(_Output(OUTPUT, "wb", closefd=False), sys.stdout, by_line=os.isatty(OUTPUT))
    sys.stderr = _text(_Errors(ERRORS, "wb", closefd=False), sys.stderr, by_line=True)


def _text(raw: io.FileIO, before: Any, *, by_line: bool) -> io.TextIOWrapper:
    """Return a stream of text; what its encoding does not have is written as numbers, so that no character is an error."""
    encoding = before.encoding if before is not None else "utf-8"
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=by_line)


def drop_output() -> None:
    """Discard all output from now on, also what is buffered."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@contextmanager
def verdict_stands() -> Iterator[None]:
    """Print a verdict inside this: the exit status reports it also where nobody reads the rows to their end."""
    try:
        yield
        sys.stdout.flush()
    except ReaderGoneError:
        drop_output()


def say(text: object, before: str = "") -> None:
    """Print a line to stderr; control characters in it (a file may be called anything) are shown as their numbers."""
    print(f"{before}tailboard: {shown(text)}", file=sys.stderr, flush=True)


def print_bytes(content: bytes) -> None:
    """Write bytes to stdout, behind what was printed before."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)


class Progress:
    """A bar that moves on for each finished item; nothing at all where stderr is no terminal."""

    def __init__(self, what: str, total: int = 0) -> None:
        """Prepare a bar; it shows once it is entered."""
        self._bar: Any = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress as Bar
            from rich.progress import TimeElapsedColumn

            self._bar = Bar(*Bar.get_default_columns(), TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(what, total=total or None)

    def __enter__(self) -> Self:
        """Show the bar."""
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away; what comes now may take its time, too."""
        if self._bar is not None:
            self._bar.stop()
            WAITING.begin()

    def __call__(self, done: int, total: int, note: str = "") -> None:
        """Show `done` of `total`, with a word on how fast; the bar itself shows the time that is left."""
        if self._bar is not None:
            description = {"description": note} if note else {}
            self._bar.update(self._task, completed=done, total=total, **description)


@contextmanager
def written_to(output: str) -> Iterator[None]:
    """Have what is printed inside this written to a file, whole, or leave what was there before; `-` is standard output.

    InputError where it cannot be written.
    """
    if output == "-":
        yield
        return
    before = sys.stdout
    with replacing(output) as unfinished:
        try:
            raw = _Output(unfinished, "wb")
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror or error}", output) from None
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", newline="")
        try:
            yield
            sys.stdout.flush()
            written = raw.tell()
        finally:
            with suppress(UnwritableError):
                sys.stdout.close()
            sys.stdout = before
    from ingest.core.units import size  # NumPy, which --help does without

    say(f"wrote {output} ({size(written)})")


class _Array(io.TextIOBase):
    """Lines of JSON objects, written on as one JSON array."""

    def __init__(self, out: Any) -> None:
        self._out, self._before, self._kept = out, "[\n", ""

    def write(self, text: str) -> int:
        """Take text, and write on the lines that are whole."""
        *lines, self._kept = (self._kept + text).split("\n")
        for line in lines:
            self._out.write(self._before + line)
            self._before = ",\n"
        return len(text)

    def end(self) -> None:
        """Write the end of the array."""
        self._out.write("[]\n" if self._before == "[\n" else "\n]\n")


@contextmanager
def as_array() -> Iterator[None]:
    """Have the lines of JSON that are printed inside this written as one array."""
    before = sys.stdout
    sys.stdout = array = _Array(before)
    try:
        yield
        array.end()
    finally:
        sys.stdout = before


def write_page(html: str, output: str) -> None:
    """Write a page to a file, or to stdout; InputError where it cannot be written."""
    if output == "-":
        sys.stdout.write(html)
        return
    write_whole(output, html)
    say(f"wrote {output} ({len(html.encode()) / 1e6:.1f} MB, opens offline)")


def of_the_system(error: OSError) -> str:
    """Return a sentence for output that finds no room, or for a file that the system refuses; empty text for another error."""
    if error.errno in FULL:
        return f"the output cannot be written: {error.strerror}"
    return f"{os.fsdecode(error.filename)}: {error.strerror}" if isinstance(error.filename, str | bytes) else ""
