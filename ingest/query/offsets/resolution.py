"""How finely the offsets of a run are kept for a page: ticks, columns, and which threads by themselves.

It follows from the counts of a first pass alone, so that it is the same however many processes read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Int
from ingest.core.series import Group

LABELS = ("host", "volume", "job", "process", "tag", "op")
HOST = 1  # the place of the host in (run, *LABELS)
REST = "rest"
MOST_ENTRIES, MOST_WIDE = 900_000, 150_000  # at most 3 characters of a page each, usually one
SPARSE = 2  # how many others a tick of 1 ms takes the room of: the distances between them are large
COLUMNS = 720
TICKS_MS = ((256, 1), (256, 10), (256, 20), (64, 20))  # of how many threads, what ticks
WIDTHS = (2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
FEWER = (64, 32, 16, 8, 4, 2, 1)
LEAST_BESIDE_HOSTS = 16
WIDE_MS = (200, 600, 1_200, 6_000, 12_000, 72_000, 1_728_000)  # each in rows of whole minutes, hours and days


@dataclass(frozen=True, slots=True)
class Resolution:
    """How finely the events of a run are kept: ticks, and which threads by themselves (None: all).

    The others are added up, by host or all together.
    """

    tick_ms: int = 1
    seconds: int = 1
    wide_ms: int = 0
    threads: frozenset[Group] | None = None
    by_host: bool = True

    def index(self, time_ms: Int) -> Int:
        """Return the number of the fine tick that each time lies in."""
        if self.seconds == 1:
            return time_ms // self.tick_ms
        second, within = np.divmod(time_ms, 1000)
        index: Int = second // self.seconds * (1000 // self.tick_ms) + within // self.tick_ms
        return index

    def fold(self, key: Group) -> Group:
        """Return (host, volume, job, process, tag, op, "") of a thread that is kept, else what it is added up in."""
        if self.threads is None or key in self.threads:
            return (*key[1:], "")
        return (key[HOST] if self.by_host else "", *[""] * (len(LABELS) - 1), REST)


def resolution_of(totals: Mapping[Group, int], seconds: int, most: int) -> Resolution:
    """Return the finest resolution of which the ticks that can be filled are at most `most`.

    `totals` are the events of each thread, `seconds` those in which there were any. Finer ticks are given up first, then
    threads, then columns down to as many as a picture has, threads again, then hosts, then threads down to one.
    """
    order = sorted(totals, key=lambda key: (-totals[key], key))
    enough = -(-seconds // COLUMNS)
    widths = sorted({1, *(width for width in WIDTHS if width < enough), enough})
    tries = [(1, *ticks, True) for ticks in TICKS_MS] + [(width, FEWER[0], TICKS_MS[-1][1], True) for width in widths]
    tries += [(enough, threads, TICKS_MS[-1][1], True) for threads in FEWER if threads >= LEAST_BESIDE_HOSTS]
    tries += [(enough, threads, TICKS_MS[-1][1], False) for threads in FEWER]
    for width, threads, tick, by_host in tries:
        cells = -(-seconds // width) * (1000 // tick)
        if _filled(order, totals, threads, cells, by_host=by_host) * (SPARSE if tick == 1 else 1) <= most:
            break
    kept = None if len(order) <= threads else frozenset(order[:threads])
    wide = 0
    if width > 1:
        room = most * MOST_WIDE // MOST_ENTRIES
        fits = (
            tick_ms
            for tick_ms in WIDE_MS
            if _filled(order, totals, threads, -(-seconds * 1000 // tick_ms), by_host=by_host) <= room
        )
        wide = next(fits, WIDE_MS[-1])
    return Resolution(tick, width, wide, kept, by_host)


def _filled(order: Sequence[Group], totals: Mapping[Group, int], threads: int, cells: int, *, by_host: bool) -> int:
    """Return an upper bound of how many ticks are filled where `cells` can be, by thread."""
    rest: dict[str, int] = {}
    for key in order[threads:]:
        host = key[HOST] if by_host else ""
        rest[host] = rest.get(host, 0) + totals[key]
    return sum(min(total, cells) for total in (*(totals[key] for key in order[:threads]), *rest.values()))
