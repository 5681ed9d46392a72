"""The cells of a latency heat map: samples by column of time and row of latency, re-binned from windows and bins.

On a logarithmic axis rows nest in the bins, from the bins themselves down to one an octave: counts are whole. On a linear axis
rows are equally high, and so are columns where a number of them is asked for: counts are spread by overlap (see `overlap`).
Only what has samples is a cell. Every sample is in a cell, or counted as below or above the range that was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.csr import surely_addable
from ingest.core.dataclass import dataclass
from ingest.core.errors import UsageError, counted
from ingest.core.grid import WEIGHT_BITS
from ingest.core.intervals import Int
from ingest.core.layout import Layout, common_layout
from ingest.core.series import Group
from ingest.core.timing import format_duration
from ingest.core.writing import latency
from ingest.query.latency_rows import Ladder, Rows, ladder
from ingest.query.means import check_bins
from ingest.query.overlap import overlaps
from ingest.query.question import Answer
from ingest.query.steps import widened
from ingest.query.table import Table


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells ordered by start, group, row: count samples of a group in [lower, upper) ns and (start, end] ns.

    `over` marks what the drop left out: all samples at or above `lower`. `open` marks rows whose samples are at or above
    `lower` as their layout is open-ended. `lit` counts the highlighted among them. `n` and `cum` are the samples of the column
    and those up to and with the row. `edges` are those of the rows that are shown, `starts` those of the columns, filled or not.
    `below` and `above` count what lies outside of the range that was asked.
    """

    start_ns: Int
    end_ns: Int
    group: Int
    lower: NDArray[Any]
    upper: NDArray[Any]
    count: NDArray[Any]
    over: Int
    open: Int
    n: NDArray[Any]
    cum: NDArray[Any]
    lit: NDArray[Any] | None
    groups: tuple[Group, ...]
    by: tuple[str, ...]
    edges: NDArray[Any]
    starts: Int
    below: float
    above: float
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.count)

    @property
    def left_out(self) -> float:
        """Return how many samples the drop left out."""
        return float(self.count[self.over > 0].sum())

    def table(self, *, dropped: bool) -> Table:
        """Return start_ns, end_ns, labels, lower, upper, count; `over` where `dropped`, `highlighted` where something is."""
        columns: dict[str, Any] = {"start_ns": self.start_ns, "end_ns": self.end_ns}
        for place, name in enumerate(self.by):
            columns[name] = np.array([key[place] for key in self.groups], object)[self.group]
        columns |= {"lower": self.lower, "upper": self.upper, "count": self.count}
        columns |= {"highlighted": self.lit} if self.lit is not None else {}
        columns |= {"over": self.over} if dropped else {}
        return Table(columns, self.by)


@dataclass(frozen=True, slots=True)
class _Entries:
    """Samples by window, group and place: the number of a bin, later that of a row."""

    start: Int
    end: Int
    group: Int
    place: Int
    count: NDArray[Any]

    def spread(self, which: Int, share: NDArray[np.float64], **columns: Int) -> _Entries:
        """Return entries repeated as `which` says, each with its share of the count; whole counts where shares are whole."""
        count = self.count[which] if (share == 1).all() else self.count[which] * share
        kept = {name: getattr(self, name)[which] for name in ("start", "end", "group", "place")}
        return _Entries(**{**kept, **columns, "count": count})


def cells(answer: Answer, rows: Rows | None = None, lit: Answer | None = None, columns: int = 0) -> Cells:
    """Return the cells of an answer in these rows, and in so many columns of equal width (0: its windows).

    `lit` is the part of the answer that is highlighted. UsageError where the range holds no sample, where the rows are too few
    for a logarithmic axis, or columns narrower than windows; InputError of means without a histogram.
    """
    check_bins(answer, "heat maps")
    rows = rows or Rows()
    layout = common_layout(part.layout for part in answer.parts)
    groups = tuple(sorted({key for part in answer.parts for key in part.table}))
    entries = _entries(answer, layout, groups)
    sums = _sums(entries.place, entries.count, layout.bins)
    row_ladder = ladder(rows, layout, sums)
    span = int(entries.start.min()), int(entries.end.max())
    asked = (entries, _entries(lit, layout, groups)) if lit else (entries,)
    edges = _columns(entries, span, columns) if columns else np.arange(*span, answer.step_ns or max(1, span[1] - span[0]))
    both = [_in_rows(_in_columns(samples, edges) if columns else samples, layout, row_ladder) for samples in asked]
    starts = edges[:-1] if columns else edges
    notes = _notes(rows, layout, np.flatnonzero(sums), row_ladder)
    return replace(_shown(both, row_ladder, groups), by=answer.by, starts=starts, notes=notes)


def in_windows(answer: Answer, most: int) -> Answer:
    """Return the answer in at most so many windows: neighbours are added up, exactly."""
    low = min(int(part.start_ns.min()) for part in answer.parts)
    high = max(int(part.end_ns.max()) for part in answer.parts)
    step = wider = answer.step_ns or high - low
    while -(-high // wider) - low // wider > most and answer.step_ns:
        wider += step
    return answer if wider == step else of_step(answer, wider)


def of_step(answer: Answer, step_ns: int) -> Answer:
    """Return the answer in windows of a multiple of its step; one window of the whole range stays that."""
    if step_ns == answer.step_ns:
        return answer
    return replace(answer, parts=tuple(widened(answer.parts, step_ns)), step_ns=step_ns)


def _entries(answer: Answer, layout: Layout, groups: Sequence[Group]) -> _Entries:
    numbers = {key: number for number, key in enumerate(groups)}
    pieces: list[tuple[NDArray[Any], ...]] = []
    for part in (part.in_layout(layout) for part in answer.parts):
        codes = np.array([numbers.get(key, -1) for key in part.table], np.int64)
        row = part.row
        counts = part.counts if part.completions is None else part.counts / (1 << WEIGHT_BITS)
        pieces.append((part.start_ns[row], part.end_ns[row], codes[part.series][row], part.bins, counts))
    if not surely_addable(column[-1] for column in pieces):  # whole counts as far as all of them can be added up
        pieces = [(*column[:-1], column[-1].astype(np.float64)) for column in pieces]
    return _Entries(*(np.concatenate(column) for column in zip(*pieces, strict=True)))


def _columns(entries: _Entries, span: tuple[int, int], columns: int) -> Int:
    """Return the edges of columns of equal width; UsageError where they would be narrower than the windows."""
    low, high = span
    wide = int((entries.end - entries.start).max())
    if (high - low) < wide * columns:
        most = f"{counted((high - low) // wide, 'window')} of {format_duration(wide)}"
        raise UsageError(f"{columns} columns would be narrower than the windows, and invent detail: {most}")
    return np.array([low + (high - low) * place // columns for place in range(columns + 1)], np.int64)


def _in_columns(entries: _Entries, edges: Int) -> _Entries:
    """Return the entries in columns, windows spread by overlap."""
    which, column, share = overlaps(entries.start, entries.end, edges)
    return entries.spread(which, share, start=edges[column], end=edges[column + 1])


def _in_rows(entries: _Entries, layout: Layout, ladder: Ladder) -> _Entries:
    """Return the entries with the numbers of rows for those of bins, bins spread by overlap."""
    lower, upper = layout.edges[:-1], layout.edges[1:].copy()
    if layout.open_ended:
        upper[-1] = lower[-1] + 1  # nothing is known above it
    used, place = np.unique(entries.place, return_inverse=True)
    which, row, share = overlaps(lower[used], upper[used], ladder.edges)
    rows_of = np.bincount(which, minlength=len(used))
    first = np.cumsum(rows_of) - rows_of
    width = rows_of[place]
    entry = np.repeat(np.arange(len(place)), width)
    at = np.arange(len(entry)) - np.repeat(np.cumsum(width) - width, width) + first[place][entry]
    return entries.spread(entry, share[at], place=row[at])


def _shown(both: Sequence[_Entries], ladder: Ladder, groups: tuple[Group, ...]) -> Cells:
    """Return the cells of all entries; those of the second of `both` are what is highlighted in them."""
    every, high = both[0], len(ladder.edges) - 1
    starts = np.unique(every.start)
    keys = [(np.searchsorted(starts, samples.start) * len(groups) + samples.group) * high + samples.place for samples in both]
    key, where = np.unique(keys[0], return_inverse=True)
    count = _sums(where, every.count, len(key))
    lit = _sums(np.searchsorted(key, keys[1]), both[1].count, len(key)) if len(both) > 1 else None
    end = np.zeros(len(key), np.int64)
    end[where] = every.end
    row, column = key % high, key // high
    firsts = np.diff(column, prepend=-1) != 0
    total = np.cumsum(count)
    number = np.cumsum(firsts) - 1
    before = np.concatenate([np.zeros(1, count.dtype), total])[np.flatnonzero(firsts)]
    ends = np.append(np.flatnonzero(firsts)[1:], len(count)) - 1
    over = row == ladder.over
    inside = np.flatnonzero(((row >= ladder.first) & (row < ladder.stop)) | over)
    columns = {
        "start_ns": starts[column // len(groups)],
        "end_ns": end,
        "group": column % len(groups),
        "lower": ladder.edges[row],
        "upper": ladder.edges[row + 1],
        "count": count,
        "over": over.astype(np.int64),
        "open": (row >= ladder.open_from).astype(np.int64),
        "n": (total[ends] - before)[number],
        "cum": total - before[number],
    }
    return Cells(
        **{name: column[inside] for name, column in columns.items()},
        lit=None if lit is None else lit[inside],
        groups=groups,
        by=(),
        starts=starts,
        edges=ladder.edges[ladder.first : ladder.stop + 1],
        below=float(count[row < ladder.first].sum()),
        above=float(count[(row >= ladder.stop) & ~over].sum()),
    )


def _sums(where: Int, counts: NDArray[Any], size: int) -> NDArray[Any]:
    out = np.zeros(size, counts.dtype)
    np.add.at(out, where, counts)
    return out


def _notes(rows: Rows, layout: Layout, used: Int, ladder: Ladder) -> tuple[str, ...]:
    """Return a warning where rows that were asked for are finer than the bins."""
    edges = ladder.edges[ladder.first : ladder.stop + 1]
    shown = used[(layout.edges[used + 1] > edges[0]) & (layout.edges[used] < edges[-1])]
    widest, high = int(np.diff(layout.edges)[shown].max(initial=0)), float(edges[1] - edges[0])
    if rows.axis == "log" or high >= widest:
        return ()
    return (f"rows of {latency(high)} are finer than bins of {latency(widest)}: counts are spread evenly within a bin",)
