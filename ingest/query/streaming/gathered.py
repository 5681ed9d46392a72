"""What comes of windows that are let go as soon as they are whole: their rows of the table, and the sum of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ingest.core.csr import MOST_SAMPLES
from ingest.core.grid import INT64_MAX
from ingest.core.intervals import Intervals, Sum, concatenate, merged
from ingest.core.layout import Layout
from ingest.core.series import Group
from ingest.query.percentiles import Wanted, rows_of
from ingest.query.question import Answer
from ingest.query.table import Table

SUM_ENTRIES = 1 << 18
SMALL_ENTRIES = 1 << 15  # a part of fewer waits for others: answering it alone would take longer than all its entries
DENSE_BINS = 1 << 17


class Gathered:
    """The rows of the table of windows that came so far, and the sum of all of them."""

    def __init__(self, by: tuple[str, ...], step_ns: int, wanted: Wanted) -> None:
        self._layout: Layout | None = None
        self._tables: list[Table] = []
        self._small: list[Intervals[Group]] = []
        self._total: Sum[Group] = Sum(SUM_ENTRIES)
        self._dense: _Dense | None = None
        self._empty = Answer((), by, step_ns, "", (), {}, relative=False, series=1)
        self._wanted = wanted
        self._last = -INT64_MAX

    def anew(self) -> Gathered:
        """Return one of the same question that has gathered nothing."""
        return Gathered(self._empty.by, self._empty.step_ns, self._wanted)

    def follows(self, part: Intervals[Group]) -> bool:
        """Return whether windows come after all before, in the layout of these."""
        after, self._last = int(part.start_ns[0]) > self._last, int(part.start_ns[-1])
        alike, self._layout = self._layout in (None, part.layout), part.layout
        return after and alike

    @property
    def tables(self) -> list[Table]:
        """Return the tables of all windows that were answered, in any order."""
        self._answer_small()
        return self._tables

    @property
    def sums(self) -> list[Intervals[Group]]:
        """Return the sums of all windows, one a layout."""
        self._add_dense()
        return self._total.parts()

    def answer(self, part: Intervals[Group]) -> None:
        """Answer windows that are whole."""
        if len(part.bins) >= SMALL_ENTRIES:
            self._answer(part)
        elif len(part):
            self._small.append(replace(part, bins=part.bins.copy(), counts=part.counts.copy()))  # not all that it was cut from
            if sum(len(small.bins) for small in self._small) >= SMALL_ENTRIES:
                self._answer_small()

    def _answer(self, part: Intervals[Group]) -> None:
        self._tables.append(rows_of(part, self._empty, self._wanted))

    def _answer_small(self) -> None:
        if self._small:
            self._answer(concatenate(self._small))
            self._small = []

    def add_answers(self, tables: Sequence[Table]) -> None:
        """Take the tables of windows that were answered elsewhere."""
        self._tables.extend(tables)

    def sum(self, part: Intervals[Group]) -> None:
        """Add windows to the sum of all."""
        if len(part.table) == 1 and part.exact is None and part.completions is None and part.layout.bins <= DENSE_BINS:
            if self._dense is None or (self._dense.layout, self._dense.key) != (part.layout, part.table[0]):
                self._add_dense()
                self._dense = _Dense(part.layout, part.table[0])
            if self._dense.add(part):
                return
        zeros = np.zeros(len(part), np.int64)
        self._total.add(merged([replace(part, start_ns=zeros, end_ns=zeros)]))

    def _add_dense(self) -> None:
        if self._dense is not None:
            self._total.add(self._dense.row())
            self._dense = None


class _Dense:
    """The sum of the windows of one group, bin by bin."""

    def __init__(self, layout: Layout, key: Group) -> None:
        self.layout = layout
        self.key = key
        self._counts = np.zeros(layout.bins, np.int64)
        self._most = 0

    def add(self, part: Intervals[Group]) -> bool:
        """Add windows; return False, and leave them out, where the sum of all might pass what can be added up."""
        most = self._most + int(part.counts.max(initial=0)) * len(part.counts)
        if most > MOST_SAMPLES:
            return False
        self._most = most
        np.add.at(self._counts, part.bins, part.counts)
        return True

    def row(self) -> Intervals[Group]:
        """Return the sum, over no time."""
        bins, zero = np.flatnonzero(self._counts), np.zeros(1, np.int64)
        return Intervals(self.layout, (self.key,), zero, zero, zero, np.array([0, len(bins)]), bins, self._counts[bins])
