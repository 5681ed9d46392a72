"""The files that are watched, as the file system shows them, and what has become of one that was being read.

A file is known by device and inode. A log that was renamed is found again by them; one that was copied and emptied
(copytruncate) by its first bytes; one that was written anew under its name by its first bytes and those before the place up
to which it was read.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ingest.core.errors import InputError
from ingest.read.discovery import listed_files
from ingest.read.text import head, is_plain

HEAD_BYTES, MARK_BYTES = 1024, 64
MOST_FILES, FILES_LEFT = 1 << 16, 64

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as it is: where, its size in bytes, when it was changed."""

    place: Place
    size: int
    mtime_ns: int


class Fate(Enum):
    """What has become of a file: as it was or grown, moved to another name, emptied or overwritten, gone."""

    SAME = "same"
    MOVED = "moved"
    REWRITTEN = "rewritten"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Print:
    """What a file is known by beside its place: a digest of its first bytes, and the bytes before `offset`."""

    offset: int
    head_size: int
    head: str
    mark: bytes

    @staticmethod
    def from_state(state: Sequence[Any]) -> Print:
        """Return the print that a checkpoint keeps."""
        offset, size, head, mark = state
        return Print(offset, size, head, bytes.fromhex(mark))

    @staticmethod
    def of(descriptor: int, offset: int) -> Print:
        """Return the print of an open file that was read up to `offset`."""
        size = min(offset, HEAD_BYTES)
        mark = os.pread(descriptor, min(offset, MARK_BYTES), max(0, offset - MARK_BYTES))
        return Print(offset, size, _digest(os.pread(descriptor, size, 0)), mark)

    def grown(self, start: bytes, data: bytes) -> Print:
        """Return the print of a file of which more was read; `start` are its first bytes, which were read before that.

        The file itself is not asked again: it may have been emptied meanwhile.
        """
        first = (start[: self.offset] + data)[:HEAD_BYTES]
        return Print(self.offset + len(data), len(first), _digest(first), (self.mark + data)[-MARK_BYTES:])

    def fits(self, descriptor: int) -> bool:
        """Return whether an open file holds what was read, as far as can be determined: any does where that is nothing."""
        return not self.offset or (os.fstat(descriptor).st_size >= self.offset and self == Print.of(descriptor, self.offset))

    def begins(self, path: Path) -> bool:
        """Return whether a file, decompressed by its ending, begins as this one did; of plain ones all that is known is held."""
        try:
            start = head(path, self.head_size)
            if not self.head_size or _digest(start) != self.head:
                return False
            if not is_plain(path) or path.stat().st_size < self.offset:
                return True
            with path.open("rb") as stream:
                return self.fits(stream.fileno())
        except (OSError, InputError):
            return False


class Head:
    """The first bytes of a file, read once, which thousands of prints are held against."""

    def __init__(self, path: Path) -> None:
        self._digests: dict[int, str] = {}
        try:
            self._start = head(path, HEAD_BYTES)
        except (OSError, InputError):
            self._start = b""

    def may_be(self, known: Print) -> bool:
        """Return whether a file that is known by a print may begin as this one does; `begins` looks closer."""
        if known.head_size not in self._digests:
            self._digests[known.head_size] = _digest(self._start[: known.head_size])
        return self._digests[known.head_size] == known.head


@dataclass(frozen=True, slots=True)
class Gone:
    """A file that was read to its end and is there no more, where it was and what it is known by; the store has all else."""

    path: Path
    known: Print


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def hold_many_files() -> None:
    """Let this process open as many files as it may: each log that is read while it grows is held open."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def held_open(path: Path) -> int:
    """Return the descriptor of a file that is to be held open; OSError EMFILE where only those for other work are left."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    if descriptor >= os.sysconf("SC_OPEN_MAX") - FILES_LEFT:
        os.close(descriptor)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return descriptor


def scanned(paths: Iterable[Path]) -> dict[Path, Seen]:
    """Return all files under the paths, each once, without files that vanish meanwhile and without anything that is no file."""
    files: dict[Path, Seen] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            seen = path.stat()
            if stat.S_ISDIR(seen.st_mode):
                for inside in listed_files(path):
                    with contextlib.suppress(OSError):
                        files[inside] = _seen(inside.stat())
            elif stat.S_ISREG(seen.st_mode):
                files[path] = _seen(seen)
    return files


def _seen(status: os.stat_result) -> Seen:
    return Seen((status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns)


def fate_of(path: Path, place: Place, known: Print, files: Mapping[Path, Seen], names: Mapping[Place, Path]) -> tuple[Fate, Path]:
    """Return what has become of a file that was read up to somewhere, and its path now.

    A file that was copied over it, whole and with what was read at its beginning, is the same.
    """
    here = files.get(path)
    if here is not None and here.place == place:
        return (Fate.SAME if _fits(path, known, place) else Fate.REWRITTEN), path
    moved = names.get(place)
    if moved is not None and _fits(moved, known, place):
        return Fate.MOVED, moved
    if here is not None and known.offset and _fits(path, known, here.place):
        return Fate.SAME, path
    return Fate.GONE, path


def _fits(path: Path, known: Print, place: Place) -> bool:
    """Return whether the file at a place holds what was read; one that has moved since files were looked at is not judged."""
    try:
        with path.open("rb", buffering=0) as stream:
            status = os.fstat(stream.fileno())
            return (status.st_dev, status.st_ino) != place or known.fits(stream.fileno())
    except OSError:
        return True
