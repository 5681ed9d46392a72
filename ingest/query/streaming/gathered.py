"""What comes of windows that are let go as soon as they are whole: their rows of the table, and the sum of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from ingest.core.grid import INT64_MAX
from ingest.core.intervals import Bool, Intervals, Sum, concatenate, merged
from ingest.core.layout import Layout
from ingest.core.series import Group
from ingest.query.percentiles import Wanted, rows_of
from ingest.query.question import Answer
from ingest.query.spans import together
from ingest.query.table import Table

SUM_ENTRIES = 1 << 18
SMALL_ENTRIES = 1 << 15  # a part of fewer waits for others: answering it alone would take longer than all its entries


class Gathered:
    """The rows of the table of windows that came so far, and the sum of all of them."""

    def __init__(self, by: tuple[str, ...], step_ns: int, wanted: Wanted) -> None:
        self._tables: list[Table] = []
        self._waiting: list[Intervals[Group]] = []
        self._total: Sum[Group] = Sum(SUM_ENTRIES)
        self._layout: Layout | None = None
        self._empty = Answer((), by, step_ns, "", (), {}, relative=False, series=1)
        self._wanted = wanted
        self._last = -INT64_MAX

    def anew(self) -> Gathered:
        """Return one of the same question that has gathered nothing."""
        return Gathered(self._empty.by, self._empty.step_ns, self._wanted)

    def take(
        self, windows: Iterable[Intervals[Group]], own: Callable[[Intervals[Group]], Bool] | None = None
    ) -> list[Intervals[Group]] | None:
        """Answer windows and add them up; return those that are not its `own`, which are not answered.

        None where they do not come one after another, all in one layout.
        """
        others = []
        for part in windows:
            after, self._last = int(part.start_ns[0]) > self._last, int(part.start_ns[-1])
            alike, self._layout = self._layout in (None, part.layout), part.layout
            if not (after and alike):
                return None
            mine = own(part) if own else np.ones(len(part), np.bool_)
            self.answer(part if mine.all() else part.take(np.flatnonzero(mine)))
            if not mine.all():
                others.append(part.take(np.flatnonzero(~mine)))
            self.sum(part)
        return others

    @property
    def tables(self) -> list[Table]:
        """Return the tables of all windows that were answered, in any order."""
        self._answer_waiting()
        return self._tables

    @property
    def sums(self) -> list[Intervals[Group]]:
        """Return the sums of all windows, one a layout."""
        return self._total.parts()

    def answer(self, part: Intervals[Group]) -> None:
        """Answer windows that are whole; a few wait for others."""
        if not len(part):
            return
        if len(part.bins) < SMALL_ENTRIES:
            part = replace(part, bins=part.bins.copy(), counts=part.counts.copy())  # not all that it was cut from
        self._waiting.append(part)
        if sum(len(waiting.bins) for waiting in self._waiting) >= SMALL_ENTRIES:
            self._answer_waiting()

    def _answer_waiting(self) -> None:
        if self._waiting:
            rows = concatenate(self._waiting) if len(self._waiting) > 1 else self._waiting[0]
            self._tables.append(rows_of(rows, self._empty, self._wanted))
            self._waiting = []

    def add_answers(self, tables: Sequence[Table]) -> None:
        """Take the tables of windows that were answered elsewhere."""
        self._tables.extend(tables)

    def sum(self, part: Intervals[Group]) -> None:
        """Add windows to the sum of all."""
        self._total.add(merged([together(part)]))
