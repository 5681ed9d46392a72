"""The file that `tailboard sample` appends to.

A line is written at once and whole: a kill leaves at most its beginning, which the next start takes away.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path

from ingest.core.errors import InputError
from ingest.read.histograms.sample_file import START, is_sample_file
from ingest.read.text import last_line_end

SECOND = 1_000_000_000
PIECE = 1 << 16
NEWEST = re.compile(rb'\{"sampled_at":(\d{1,12})\.(\d{9})\b')
LONGEST_STAMP = 64
NOT_OURS = "is no file that tailboard sample writes: give another name with -o"
IN_USE = "another tailboard sample writes to it: give another name with -o"
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
        if any(not mark.startswith(os.pread(self._file, len(mark), place)[: size - place]) for place in begins if size):
            raise InputError(NOT_OURS, self._path)
        if end and not is_sample_file(self._path):
            raise InputError(NOT_OURS, self._path)
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
