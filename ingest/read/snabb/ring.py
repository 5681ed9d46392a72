"""The file beneath a Snabb timeline: its header, its ring of entries, its table of strings.

    header    64 bytes      magic, version, bytes of entries, bytes of strings
    entries   64 bytes each stamp (TSC), message, core, six arguments; little-endian; numbers are doubles since version 3
    strings                 texts of the messages, each at a multiple of 16 bytes: its number is that multiple

Nothing is locked while Snabb writes. A live file is copied at once, its newest entry is looked at a second time, and the
entry at the seam, which may be half overwritten, is left out (see `order`).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ingest.core.errors import InputError
from ingest.core.intervals import Int
from ingest.read.snabb.names import MAGIC, MAGIC_BYTES
from ingest.read.snabb.order import SEAM, WRITING, Entries, in_order
from ingest.read.text import COMPRESSED, CORRUPT, open_input

HEADER = struct.Struct("<QHHII")
HEADER_BYTES = ENTRY_BYTES = 64
ARGUMENTS = 6
NUMBERS = {2: "<u8", 3: "<f8"}
ALIGNED = 16
MOST_STRINGS = ALIGNED << 16
MOST_COMPRESSED = 1 << 29
READ_AT_ONCE = 1 << 20
ATTEMPTS = 4
EXPECTED = (SEAM, WRITING)


@dataclass(frozen=True, slots=True)
class Ring:
    """The entries of a timeline and the places of those that are taken, oldest first, in `order`.

    `rejected` holds, by reason, the places of entries that were there and are not taken; `strings` is the table of texts.
    """

    version: tuple[int, int]
    entries: Entries
    strings: bytes
    order: Int
    rejected: Mapping[str, Int]
    notes: tuple[str, ...] = ()


def dtype_of(major: int) -> np.dtype[Any]:
    """Return the dtype of an entry: 64 bytes, stamps and arguments unsigned integers in version 2, doubles in version 3."""
    number = NUMBERS[major]
    return np.dtype([("tsc", number), ("message", "<u2"), ("core", "<u2"), ("reserved", "<u4"), ("arguments", number, ARGUMENTS)])


def read_ring(path: Path) -> Ring:
    """Return the ring of a timeline, plain (mapped and copied once) or compressed.

    Memory: the size in the header, which a plain file must have, and half as much again while it is put in order.
    InputError where it is no timeline, is cut off, changes too fast, or where its stamps have no order.
    """
    if path.suffix in COMPRESSED:
        return _ring_of(_decompressed(path), path)
    try:
        with open_input(path) as stream:
            size = size_of(stream.read(HEADER_BYTES), path)
            there = path.stat().st_size
            if there < size:
                raise InputError(_cut_off(size, there), path)
            with mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ) as mapped:
                ring = _settled(mapped, path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path) from None
    more = (f"{there - size:,} bytes behind the end that its header states were not read",) if there > size else ()
    return replace(ring, notes=more)


def _settled(mapped: mmap.mmap, path: Path) -> Ring:
    """Return the ring of a file that may be written to all the while: copied until the doubtful part is the same twice.

    In doubt are the newest entry and those whose stamps do not fit; the seam is left out anyway.
    """
    for _ in range(ATTEMPTS):
        copied = bytes(mapped)
        try:
            ring = _ring_of(copied, path)
        except InputError:
            if copied == mapped[:]:
                raise
            continue
        doubtful = [ring.order[-1:], *(places for reason, places in ring.rejected.items() if reason not in EXPECTED)]
        starts = (HEADER_BYTES + ENTRY_BYTES * np.concatenate(doubtful)).tolist()
        if all(copied[start : start + ENTRY_BYTES] == mapped[start : start + ENTRY_BYTES] for start in starts):
            return _without_overwritten(ring, copied, mapped)
    raise InputError("is written to faster than it can be read: copy it, or stop the process that writes it", path)


def _decompressed(path: Path) -> bytes:
    """Return what a compressed file holds, up to the end that its header states."""
    data = bytearray()
    wanted = HEADER_BYTES
    with open_input(path) as stream:
        while len(data) < wanted:
            try:
                got = _some(stream, min(wanted - len(data), READ_AT_ONCE))
            except CORRUPT as error:
                raise InputError(f"compressed data is damaged or cut off ({error})", path) from None
            except OSError as error:
                raise InputError(f"cannot be read: {error.strerror or error}", path) from None
            if not got:
                break
            data += got
            if wanted == HEADER_BYTES and len(data) >= HEADER_BYTES:
                wanted = size_of(bytes(data), path)
                if wanted > MOST_COMPRESSED:
                    raise InputError(f"would hold {wanted:,} bytes: decompress a timeline of this size first", path)
    size = size_of(bytes(data[:HEADER_BYTES]), path)
    if len(data) < size:
        raise InputError(_cut_off(size, len(data)), path)
    return bytes(data)


def _some(stream: Any, most: int) -> bytes:
    """Return the next bytes of a compressed stream, none at its end."""
    if hasattr(stream, "read1"):
        return bytes(stream.read1(most))
    buffer = bytearray(most)
    return bytes(buffer[: stream.readinto(memoryview(buffer))])


def _cut_off(wanted: int, there: int) -> str:
    return f"is cut off: its header states {wanted:,} bytes, {there:,} are there"


def size_of(head: bytes, path: Path) -> int:
    """Return the size in bytes of the file by its header; InputError where it is no header of a timeline."""
    if len(head) < HEADER_BYTES:
        raise InputError(f"is not a Snabb timeline: it has {len(head)} bytes, its header alone would have {HEADER_BYTES}", path)
    magic, major, minor, entries, strings = HEADER.unpack_from(head)
    if magic != MAGIC:
        if head.startswith(MAGIC_BYTES[:4]):
            raise InputError("is not a Snabb timeline that can be read: its magic number is that of a draft, or damaged", path)
        raise InputError(f"is not a Snabb timeline: it begins with {head[:8].hex()}, not with {MAGIC_BYTES.hex()}", path)
    if major not in NUMBERS:
        raise InputError(f"is a Snabb timeline of version {major}.{minor}: versions 2 and 3 are known", path)
    if not entries or entries % ENTRY_BYTES:
        raise InputError(f"has a damaged header: {entries:,} bytes are no entries of {ENTRY_BYTES} bytes", path)
    if strings > MOST_STRINGS:
        raise InputError(f"has a damaged header: {strings:,} bytes of texts, where numbers reach {MOST_STRINGS:,}", path)
    return HEADER_BYTES + int(entries) + int(strings)


def _without_overwritten(ring: Ring, copied: bytes, mapped: mmap.mmap) -> Ring:
    """Return the ring without its oldest entries that were written over meanwhile: perhaps while they were copied, in part."""
    gone = 0
    for place in ring.order:
        start = HEADER_BYTES + ENTRY_BYTES * int(place)
        if copied[start : start + ENTRY_BYTES] == mapped[start : start + ENTRY_BYTES]:
            break
        gone += 1
    if not gone:
        return ring
    seam = np.concatenate([ring.rejected.get(SEAM, ring.order[:0]), ring.order[:gone]])
    return replace(ring, order=ring.order[gone:], rejected={**ring.rejected, SEAM: seam})


def _ring_of(data: bytes, path: Path) -> Ring:
    size = size_of(data[:HEADER_BYTES], path)
    _, major, minor, length, _ = HEADER.unpack_from(data)
    entries = np.frombuffer(data, dtype_of(major), length // ENTRY_BYTES, HEADER_BYTES)
    order, rejected = in_order(entries, path)
    return Ring((major, minor), entries, data[HEADER_BYTES + length : size], order, rejected)
