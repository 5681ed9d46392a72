"""The three standard streams, whatever state the caller has left them in.

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
from contextlib import contextmanager
from typing import Any

from ingest.core.errors import InputError

INPUT, OUTPUT, ERRORS = range(3)


class ReaderGoneError(Exception):
    """The reader of our output has gone, as `head` does. No OSError: Click and rich end the process with 1 for a broken pipe."""


class UnwritableError(InputError):
    """Standard output takes nothing."""


class _Output(io.FileIO):
    def write(self, data: Any) -> int:
        """Return how many bytes were written; ReaderGoneError, UnwritableError."""
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
        try:
            return super().write(data)
        except OSError:
            return len(memoryview(data).cast("B"))


def hold_streams() -> None:
    """See to it that the three streams are there for the rest of the process, and that what they cannot do is one error."""
    for number in (INPUT, OUTPUT, ERRORS):
        if not _is_open(number):
            os.open(os.devnull, os.O_RDONLY)  # takes the lowest number that is free, which is this one; writing to it fails
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(INPUT, closefd=False)), "utf-8")
    sys.stdout = _text(_Output(OUTPUT, "wb", closefd=False), sys.stdout, by_line=os.isatty(OUTPUT))
    sys.stderr = _text(_Errors(ERRORS, "wb", closefd=False), sys.stderr, by_line=True)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


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
