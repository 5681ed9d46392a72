"""The file beneath a Snabb timeline: its header, its ring of entries in the order of writing, its table of strings.

The order in which the entries of a ring were written, by their stamps alone: the writer's place is not in the file.

On one core stamps never run back, but for the seam: the newest entry lies before it, the oldest behind it. Cores need not
agree on the time, so each is looked at by itself, and the writer stands where the seams of all cores meet: behind the
largest stamp, unless counters lie apart.

    stamps  90 95 | 20 35 61 77      full, the writer stands after 95: 35 61 77 90 95; 20 may be half overwritten
    stamps  20 35 61 77  0  0        not full: as they lie

A single stamp that lies outside those before and after it is damage, and only its entry is lost. More than one seam is
what no writer leaves: such a file is refused.

The file beneath a Snabb timeline: its header, its ring of entries, its table of strings.

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
from numpy.typing import NDArray

from ingest.core.errors import InputError
from ingest.core.intervals import Bool, Int
from ingest.read.text import COMPRESSED, CORRUPT, open_input, plain_name

Entries = NDArray[Any]

MOST_STAMP = 1 << 62
CPU = 0xFFF

SEAM = "the oldest entry, at the seam of the ring: it may be half overwritten"
WRITING = "an entry without a stamp yet: it was being written"
HOLE = "an entry without a stamp among others: a hole left by a partial copy"
IMPOSSIBLE = "a stamp that no counter shows (not a number, below zero, or past 2^62)"
OUTSIDE = "a stamp outside those before and after it"


def stamps_of(entries: Entries) -> Int:
    """Return the stamps as whole cycles: 0 where an entry was never written, -1 where the stamp is impossible."""
    raw = entries["tsc"]
    possible = (raw >= 1) & (raw < MOST_STAMP)
    if possible.all():
        return raw.astype(np.int64)
    stamps: Int = np.where(possible, raw, 0).astype(np.int64)
    stamps[~possible & (raw != 0)] = -1
    return stamps


def in_order(entries: Entries, path: Path | None = None) -> tuple[Int, dict[str, Int]]:
    """Return the places of the entries that are taken, oldest first, and by reason those that were there and are not.

    Of a full ring the oldest is left out: it may be half overwritten. InputError where stamps of a core run back more often
    than a ring's do.
    """
    stamps = stamps_of(entries)
    written = np.flatnonzero(stamps)
    size, last = len(stamps), int(written[-1]) if len(written) else -1
    full = last == size - 1
    rejected = {IMPOSSIBLE: np.flatnonzero(stamps < 0), HOLE: np.flatnonzero(stamps[: last + 1] == 0)}
    places = np.flatnonzero(stamps > 0)
    order, rejected[OUTSIDE] = _rotated(stamps[places], entries["core"][places], places, size if full else 0, path)
    if not full:
        begun = entries[last + 1].tobytes().strip(b"\0") != b""
        rejected[WRITING] = np.array([last + 1] if begun else [], np.int64)
    elif len(order) > 1 and (order[0] - order[-1]) % size == 1:
        rejected[SEAM], order = order[:1], order[1:]
    return order, {reason: dropped for reason, dropped in rejected.items() if len(dropped)}


def _rotated(stamps: Int, cores: Int, places: Int, size: int, path: Path | None) -> tuple[Int, Int]:
    """Return the places oldest first, and those of stamps outside their neighbours; `size` is that of a full ring, else 0."""
    none = np.empty(0, np.int64)
    if not len(stamps):
        return none, none
    several = bool((cores != cores[0]).any())
    by_core: Int = np.argsort(cores, kind="stable") if several else np.arange(len(stamps))
    keep = np.ones(len(stamps), np.bool_)
    for outside in (_between, _beside_seam, _at_ends):
        out = outside(stamps[by_core], cores[by_core], full=bool(size))
        if out.any():
            keep[by_core[out]] = False
            by_core = by_core[~out]
    kept, outliers = places[keep], places[~keep]
    falls = _check_falls(stamps[by_core], cores[by_core], path, full=bool(size))
    if not size:
        return kept, outliers
    newest = int(kept[np.argmax(stamps[keep])])
    if len(falls):
        after = _neighbours(cores[by_core], full=True)[1]
        newest = _meeting(newest, places[by_core[falls]], places[by_core[after[falls]]], size, path)
    cut = int(np.searchsorted(kept, newest, side="right"))
    return np.concatenate((kept[cut:], kept[:cut])), outliers


def _meeting(newest: int, before: Int, behind: Int, size: int, path: Path | None) -> int:
    """Return the place of the newest entry: it lies in the gaps (last before the seam, first behind it) of all cores.

    `newest` is that of the largest stamp: it is taken if it does. Else counters lie apart, and the gaps alone decide.
    """
    gap = (behind - before) % size
    if ((newest - before) % size < gap).all():
        return newest
    offset = (before - before[0]) % size
    newest = (int(before[0]) + int(offset[offset < gap[0]].max())) % size
    if ((newest - before) % size >= gap).any():
        raise InputError("the seams of its cores do not meet: a partial copy, or several files in one", path)
    return newest


def _neighbours(cores: Int, *, full: bool) -> tuple[Int, Int]:
    """Return, of entries sorted by core, the index of the one before and behind on the same core.

    A full ring is round: behind the last comes the first. Else the first and the last are their own neighbours.
    """
    count = len(cores)
    firsts = np.flatnonzero(np.append(True, cores[1:] != cores[:-1]))
    lasts = np.append(firsts[1:], count) - 1
    before, after = np.arange(-1, count - 1), np.arange(1, count + 1)
    before[firsts], after[lasts] = (lasts, firsts) if full else (firsts, lasts)
    return before, after


def _check_falls(stamps: Int, cores: Int, path: Path | None, *, full: bool) -> Int:
    """Return the entries behind which a smaller stamp follows on their core; InputError where there are too many."""
    falls = np.flatnonzero(stamps > stamps[_neighbours(cores, full=full)[1]])
    twice = falls[1:][cores[falls[1:]] == cores[falls[:-1]]]
    wrong = twice if full else falls
    if len(wrong):
        core = int(cores[wrong[0]])
        times = int(np.count_nonzero(cores[falls] == core))
        allowed = "a full ring has one seam" if full else "a ring that is not full has no seam"
        reason = f"stamps of core {core & CPU} run back {times} times, where {allowed}: a partial copy, or several files in one"
        raise InputError(reason, path)
    return falls


def _between(stamps: Int, cores: Int, *, full: bool) -> Bool:
    """Return which single stamps lie outside the two around them on their core, where these are in order.

    Of neighbours only the one that is further off: the other one was judged by it.
    """
    before, after = _neighbours(cores, full=full)
    low, high = stamps[before], stamps[after]
    off = np.maximum(low - stamps, stamps - high)
    off[(low >= high) | ~_inner(before, after)] = 0
    outside: Bool = (off > 0) & (off >= off[before]) & (off >= off[after])
    return outside


def _beside_seam(stamps: Int, cores: Int, *, full: bool) -> Bool:
    """Return which single stamps lie between the two around them on their core, where these are the two sides of a seam.

    The newest is larger than both, the oldest smaller than both.
    """
    before, after = _neighbours(cores, full=full)
    return (stamps[after] < stamps) & (stamps < stamps[before]) & _inner(before, after)


def _inner(before: Int, after: Int) -> Bool:
    """Return which entries have two neighbours."""
    here = np.arange(len(before))
    inner: Bool = (before != after) & (before != here) & (after != here)
    return inner


def _at_ends(stamps: Int, cores: Int, *, full: bool) -> Bool:
    """Return which first and last stamps of a core are on the wrong side of two neighbours in order; a full ring has none."""
    before, after = _neighbours(cores, full=full)
    here = np.arange(len(stamps))
    first, last = before == here, after == here
    if full or len(stamps) < 3:
        return np.zeros(len(stamps), np.bool_)
    second, third, earlier, former = stamps[after], stamps[after[after]], stamps[before], stamps[before[before]]
    three = (after[after] != after) | (before[before] != before)
    wrong: Bool = three & ((first & (stamps > second) & (second <= third)) | (last & (stamps < earlier) & (former <= earlier)))
    return wrong


# How Snabb timelines are known and named: the first bytes, the file's name, the process.


MAGIC = 0xA3FF7223441D0001
MAGIC_BYTES = struct.pack("<Q", MAGIC)
ENDING = ".timeline"
OWN_NAMES = ("events.timeline", "timeline")  # PID/events.timeline; in older versions and Vita PID/engine/timeline


def looks_like_timeline(path: Path, start: bytes) -> bool:
    """Return whether a file begins as timelines do, or bears the name of one."""
    name = plain_name(path)
    return start.startswith(MAGIC_BYTES[:4]) or name.endswith(ENDING) or (name == "timeline" and path.parent.name == "engine")


def process_of(path: Path) -> str:
    """Return the Snabb process of a timeline: the folder of its number where it lies as Snabb keeps it, else the file's name."""
    name = plain_name(path)
    if name not in OWN_NAMES:
        return name.removesuffix(ENDING)
    folder = path.absolute().parent
    return folder.parent.name if folder.name == "engine" else folder.name


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
        if all(_is_same(copied, mapped, place) for place in np.concatenate(doubtful)):
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


def _is_same(copied: bytes, mapped: mmap.mmap, place: int) -> bool:
    """Return whether an entry stands in the file as it was copied."""
    start = HEADER_BYTES + ENTRY_BYTES * int(place)
    return copied[start : start + ENTRY_BYTES] == mapped[start : start + ENTRY_BYTES]


def _without_overwritten(ring: Ring, copied: bytes, mapped: mmap.mmap) -> Ring:
    """Return the ring without its oldest entries that were written over meanwhile: perhaps while they were copied, in part."""
    gone = next((number for number, place in enumerate(ring.order) if _is_same(copied, mapped, place)), len(ring.order))
    if not gone:
        return ring
    seam = np.concatenate([ring.rejected.get(SEAM, ring.order[:0]), ring.order[:gone]])
    return replace(ring, order=ring.order[gone:], rejected={**ring.rejected, SEAM: seam})


def _ring_of(data: bytes, path: Path) -> Ring:
    size = size_of(data[:HEADER_BYTES], path)
    _, major, minor, length, _ = HEADER.unpack_from(data)
    number = NUMBERS[major]
    fields = [("tsc", number), ("message", "<u2"), ("core", "<u2"), ("reserved", "<u4"), ("arguments", number, ARGUMENTS)]
    entries = np.frombuffer(data, np.dtype(fields), length // ENTRY_BYTES, HEADER_BYTES)
    order, rejected = in_order(entries, path)
    return Ring((major, minor), entries, data[HEADER_BYTES + length : size], order, rejected)
