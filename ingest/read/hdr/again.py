"""Which lines of a log repeat an earlier one of their tag: the same time and number of samples, perhaps the same operations.

A log that was put together from parts that overlap, or appended to itself, holds lines twice; so does one that two programs of
equal load write to. Numbers of samples cannot tell the two apart, so the lines are counted, and it is said. Held are the latest
lines of each tag, as plain columns until a line goes back in time for the first time.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import counted
from ingest.read.hdr.tallies import Key

Int = NDArray[np.int64]
MOST_LINES = 1 << 16
REPEATED = "the time and number of samples of an earlier one: perhaps the same operations, which are then counted twice"

Op = tuple[str, str, str]  # op, kind, tag


class _Lines:
    """The latest lines of one tag: at least `MOST_LINES` where there are as many, at most three times that."""

    def __init__(self) -> None:
        self._columns: list[tuple[Int, Int]] = []  # starts and samples that are in no set yet
        self._waiting = 0
        self._sets: tuple[set[tuple[int, int]], set[tuple[int, int]]] = set(), set()

    def add(self, starts: Int, samples: Int) -> None:
        self._columns.append((starts, samples))
        self._waiting += len(starts)
        while self._waiting - len(self._columns[0][0]) >= MOST_LINES:
            self._waiting -= len(self._columns.pop(0)[0])

    def repeated(self, starts: Int, samples: Int) -> int:
        """Return how many of these lines are among the latest; lines without samples repeat nothing."""
        late, early = self._sets
        for some, counts in self._columns:
            late.update(zip(some.tolist(), counts.tolist(), strict=True))
        self._columns, self._waiting = [], 0
        if len(late) >= MOST_LINES:
            self._sets = set(), late
        return sum(
            1 for line in zip(starts.tolist(), samples.tolist(), strict=True) if line[1] and (line in late or line in early)
        )


class Again:
    """Takes the lines of each series as they come. `repeated` is how many of each tag repeat one of an earlier segment."""

    def __init__(self, repeated: Iterable[tuple[Op, int]] = ()) -> None:
        self.repeated: dict[Op, int] = dict(repeated)
        self._latest: dict[Op, _Lines] = {}

    def add(self, key: Key, starts: Int, samples: Int) -> None:
        """Take the next lines of a series: their starts in ns, and how many samples each holds."""
        op, segment = key[:3], key[3]
        latest = self._latest.setdefault(op, _Lines())
        if segment and (found := latest.repeated(starts, samples)):
            self.repeated[op] = self.repeated.get(op, 0) + found
        latest.add(starts, samples)

    def doubts(self, told: set[Op]) -> list[str]:
        """Return a sentence on each tag with repeated lines, but those of which it was told already."""
        return [_sentence(op, lines) for op, lines in sorted(self.repeated.items()) if op not in told]


def _sentence(op: Op, lines: int) -> str:
    name = op[2] or op[0]
    whose = f"of tag {name!r}" if name else "without a tag"
    many = counted(lines, f"line {whose} repeats", f"lines {whose} repeat")
    return f"{many} {REPEATED}"
