"""Rows that are not in a histogram log although fio wrote them: lines that were deleted, or lost in a copy.

fio's clock for rows goes on by log_hist_msec with each row, however late it was (stat.c, `hist_last`): row n is written at the
first completion at or after h + n * log_hist_msec. A row that is late by a whole log_hist_msec or more is therefore followed by
one that holds a single sample. So of all rows whose next row holds more, stamp - n * log_hist_msec differs by less than
log_hist_msec; where it grows by that much or more, rows are missing. A stall leaves its rows behind it, and is none.

Measured: 158 directions of 101 recorded logs, stalls and ramps among them: none shows a missing row; one row deleted in the
middle of 1,701: 1,698 seen, and the others are in logs of 8 rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ingest.core.intervals import Int

MOST = 64
LOOK_AHEAD = 16  # proofs of which the one that says best where rows are missing is taken
LOOK_BACK = 64  # rows that are carried from chunk to chunk


class Hole(NamedTuple):
    """Where rows are missing: between the stamps (file ms) of two rows of a direction, and how many."""

    after_ms: int
    before_ms: int
    rows: int


def period_ms(options: Mapping[str, str]) -> int:
    """Return log_hist_msec, 0 where the job's options are not known: then nothing shows that a row is missing."""
    option = options.get("log_hist_msec", "")
    return int(option) if option.isdigit() else 0


class Watch:
    """Looks for missing rows of one direction, chunk by chunk."""

    def __init__(self) -> None:
        self._stamps = np.empty(0, np.int64)
        self._samples = np.empty(0, np.int64)

    def holes(self, stamps: Int, samples: Int, began: Int, period: int) -> list[Hole]:
        """Return the holes that the next rows show; `began` are the places of rows at which time begins anew."""
        holes: list[Hole] = []
        bounds = [0, *began[began > 0].tolist(), len(stamps)]
        for first, last in pairwise(bounds):
            if first or began[:1].tolist() == [0]:
                self._stamps, self._samples = stamps[:0], samples[:0]
            self._stamps = np.concatenate([self._stamps, stamps[first:last]])
            self._samples = np.concatenate([self._samples, samples[first:last]])
            found = _holes(self._stamps, self._samples, period)
            holes += [Hole(int(self._stamps[low]), int(self._stamps[high]), rows) for low, high, rows in found]
            kept = max(0, len(self._stamps) - LOOK_BACK, *(high for _, high, _ in found))
            self._stamps, self._samples = self._stamps[kept:], self._samples[kept:]
        return holes


def levels(stamps: Int, number: Int, period: int | Int) -> Int:
    """Return how late rows of these numbers are, against the first of all."""
    late: Int = stamps - number * period
    return late


def _holes(stamps: Int, samples: Int, period: int) -> list[tuple[int, int, int]]:
    """Return between which rows others are missing, and how many; where there are more than `MOST` holes the last one is all."""
    in_time = np.flatnonzero(samples[1:] > 1)
    late = levels(stamps[in_time], in_time, period)
    holes: list[tuple[int, int, int]] = []
    while len(holes) < MOST:
        proof = np.flatnonzero(late - np.minimum.accumulate(late) >= period) if len(late) else in_time
        if not len(proof):
            return holes
        pairs = [(int(np.flatnonzero(late[:at] <= late[at] - period)[-1]), int(at)) for at in proof[:LOOK_AHEAD]]
        first, last = min(pairs, key=lambda pair: pair[1] - pair[0])
        rows = max(1, round(int(late[last] - late[first]) / period))
        # Rows are missing after the first of the pair and, as the second may be late itself, before the row that follows it.
        holes.append((int(in_time[first]), int(in_time[last]) + 1, rows))
        late[last:] -= rows * period
        late[first + 1 : last] = late[first]
    return [*holes[:-1], (holes[-1][0], len(stamps) - 1, holes[-1][2])]
