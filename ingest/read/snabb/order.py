"""The order in which the entries of a ring were written, by their stamps alone: the writer's place is not in the file.

On one core stamps never run back, but for the seam: the newest entry lies before it, the oldest behind it. Cores need not
agree on the time, so each is looked at by itself, and the writer stands where the seams of all cores meet: behind the
largest stamp, unless counters lie apart.

    stamps  90 95 | 20 35 61 77      full, the writer stands after 95: 35 61 77 90 95; 20 may be half overwritten
    stamps  20 35 61 77  0  0        not full: as they lie

A single stamp that lies outside those before and after it is damage, and only its entry is lost. More than one seam is
what no writer leaves: such a file is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import InputError
from ingest.core.intervals import Bool, Int

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
        whole: Int = raw.astype(np.int64)
        return whole
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
    if not size:
        _check_falls(stamps[by_core], cores[by_core], path, full=False)
        return kept, outliers
    falls = _check_falls(stamps[by_core], cores[by_core], path, full=True)
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
    inside: Bool = (stamps[after] < stamps) & (stamps < stamps[before]) & _inner(before, after)
    return inside


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
