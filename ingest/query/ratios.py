"""The bounds of the ratios of a pair of answers, from their windows: which rows are one group, and how many are held together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ingest.core.layout import common_layout
from ingest.core.series import Group
from ingest.query.dependent import LEAST_BATCHES, Windows, ratio_between, windows_of

if TYPE_CHECKING:
    from ingest.core.intervals import Intervals
    from ingest.core.ranks import Percentile
    from ingest.query.question import Answer

Float = NDArray[np.float64]

KEPT = 64  # groups whose windows are held at a time: 1 to 2 MB each


class Ratios:
    """The bounds of the ratios of all groups that both sides have, at some percentiles, held together."""

    def __init__(self, sides: Sequence[Sequence[Answer]], percentiles: Sequence[Percentile]) -> None:
        """Take the windows of both sides, an answer for each run, grouped alike."""
        self._sides = [_Side(answers) for answers in sides]
        shared = set(self._sides[0].counts) & set(self._sides[1].counts)
        bounded = [group for group in shared if all(side.counts[group] >= LEAST_BATCHES for side in self._sides)]
        self.rows = max(1, len(bounded) * len(percentiles))
        self._windows = lru_cache(maxsize=KEPT)(lambda group: tuple(side.windows(group) for side in self._sides))

    def of(self, groups: Sequence[Group], percentile: Percentile, ratios: Float) -> tuple[Float, Float]:
        """Return the bounds of the ratios of groups at a percentile, NaN where there are none (see `dependent`)."""
        low, high = np.full(len(groups), math.nan), np.full(len(groups), math.nan)
        for row, (group, ratio) in enumerate(zip(groups, ratios.tolist(), strict=True)):
            baseline, run = self._windows(group)
            if baseline is not None and run is not None:
                low[row], high[row] = ratio_between(baseline, run, percentile, ratio, self.rows)
        return low, high


def sides_of(answers: Sequence[Answer]) -> dict[Group, Windows]:
    """Return the windows of each group of one side, of which there is an answer for each run."""
    side = _Side(answers)
    return {group: windows for group in side.counts if (windows := side.windows(group)) is not None}


class _Side:
    """The windows of one side by group."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._step_ns = max((answer.step_ns for answer in answers), default=0)
        self._rows: dict[Group, list[tuple[Intervals, NDArray[np.int64]]]] = {}
        for answer in answers:
            for part in answer.parts:
                order = np.lexsort((part.start_ns, part.series))
                codes, firsts = np.unique(part.series[order], return_index=True)
                for code, rows in zip(codes.tolist(), np.split(order, firsts[1:]), strict=True):
                    self._rows.setdefault(part.table[code], []).append((part, rows))
        self.counts = {group: sum(len(rows) for _, rows in own) for group, own in self._rows.items()}

    def windows(self, group: Group) -> Windows | None:
        """Return the windows of a group, None where it has none with bins."""
        runs = [part.take(rows) for part, rows in self._rows.get(group, ()) if part.layout.has_bins]
        if not runs:
            return None
        layout = common_layout({rows.layout for rows in runs})
        return windows_of([rows.in_layout(layout) for rows in runs], self._step_ns)
