"""Where did the samples lie, over time and latency: the cells of a heat map, its rows of latency, and the distribution in all.

Counts of ranges spread over other ranges in proportion to their overlap: what heat maps are resampled by.

    ranges [0, 20): 10, [20, 30): 20, [30, 100): 60        over ten rows of [0, 120)
    6, 12, 17.14, 10.29, 10.29, 10.29, 10.29, 10.29, 3.43, 0

A range is taken to be evenly filled. Where every range lies in one row, counts stay whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import InputError, UsageError, choices, counted
from ingest.core.grid import WEIGHT_BITS
from ingest.core.intervals import Int, Intervals, in_time_order, surely_addable
from ingest.core.labels import Group, as_options, fits
from ingest.core.layout import Failing, Float, Layout, LogLinear, Mixed, common_layout, shared_edges
from ingest.core.quantiles import or_failed
from ingest.core.units import format_duration, latency
from ingest.core.values import one_of
from ingest.query.lags import whole_counts
from ingest.query.means import check_bins
from ingest.query.question import Answer, Question
from ingest.query.table import Table, concatenated, label_columns
from ingest.query.windows import in_own_layouts, regrouped, widened

# Where did the samples lie, over time and latency, and how are they distributed in all.


LADDERS: tuple[tuple[float, ...], ...] = (
    tuple(10 ** (step / 40) for step in range(40)),
    (1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3.15, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9),
    (1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8),
    (1, 1.5, 2, 3, 5, 7),
    (1, 2, 5),
    (1, 3),
    (1,),
)  # finest first; of ISO 3 where they have ten steps and more
HIGHEST_POWER = 18


def heatmap(answer: Answer) -> Table:
    """Return one row per window, group and occupied bin: start_ns, end_ns, labels, lower, upper (ns), count.

    Exact bins: a row's count samples lie in [lower, upper), in the last bin of an open layout at or above lower. Bins of several
    layouts overlap. Operations that failed are above all: lower and upper are inf.
    """
    one_of(Answer, answer, "answer", "what origin.answer(question) gives")
    check_bins(answer, "heat maps")
    tables = []
    for part in map(in_time_order, whole_counts(answer)):
        row, (lower, upper) = part.row, _edges(part)
        columns = {"start_ns": part.start_ns[row], "end_ns": part.end_ns[row]}
        columns |= label_columns(part.table, answer.by, part.series[row])
        columns |= {"lower": lower, "upper": upper, "count": part.counts}
        tables.append(Table(columns, answer.by))
    return concatenated(tables) if len(tables) > 1 else tables[0]


def _edges(part: Intervals[Group]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the edges in ns of the bin of each entry, inf of operations that failed."""
    return or_failed(part, part.layout.lower[part.bins]), or_failed(part, part.layout.upper[part.bins])


def distribution(answer: Answer) -> Table:
    """Return one row per group and occupied bin over all windows: labels, lower, upper (ns), count, cumulative.

    Operations that failed are above all: lower and upper are inf.

    `cumulative` counts the samples of the group up to and with the bin, of overlapping bins those that end no higher. Windows
    must span the whole range (step all).
    """
    one_of(Answer, answer, "answer", "what origin.answer(question) gives")
    check_bins(answer, "distributions")
    tables = [_distributed(part, answer, part.row, *_edges(part), part.counts) for part in whole_counts(answer)]
    return concatenated(tables, order=()) if len(tables) > 1 else tables[0]


def _distributed(part: Intervals[Group], answer: Answer, row: Int, lower: NDArray[Any], upper: NDArray[Any], count: Int) -> Table:
    """Return the table of a distribution from its rows, those of a group one after another."""
    first = np.flatnonzero(np.append(True, np.diff(row) != 0))
    before = (np.cumsum(count) - count)[first]
    cumulative = np.cumsum(count) - np.repeat(before, np.diff(np.append(first, len(row))))
    columns = {**label_columns(part.table, answer.by, part.series[row]), "lower": lower, "upper": upper}
    return Table({**columns, "count": count, "cumulative": cumulative}, answer.by)


def ranges(answer: Answer, most: int) -> Table:
    """Return `distribution` for a reader: bins added up to ranges that begin near 1, 2, 5, 10, ...; counts stay exact.

    `share` is the part of the group's samples up to and with the range.

    LADDERS says where ranges may begin. The finest of them is taken that gives no group more than `most` ranges, and all groups
    no more than twice as many; the coarsest where none does. A range begins where a bin begins, next to the number of the ladder.
    Ranges without samples are left out. Windows must span the whole range (step all). Of bins of several layouts in a group a
    range begins where no bin that holds samples goes on: bins that overlap are in one range.
    """
    check_bins(answer, "distributions")
    parts = [own for part in whole_counts(answer) for own in in_own_layouts(part)]
    for ladder in LADDERS:
        tables, longest = zip(*(_in_ranges(part, answer, ladder) for part in parts), strict=True)
        if max(longest) <= most and sum(map(len, tables)) <= 2 * most:
            break
    return concatenated(tables, order=()) if len(tables) > 1 else tables[0]


def _in_ranges(part: Intervals[Group], answer: Answer, ladder: Sequence[float]) -> tuple[Table, int]:
    """Return a part in ranges that begin next to the numbers of a ladder, times powers of ten, and the most ranges of a group."""
    timed: Layout = part.layout.timed
    own = shared_edges(timed, np.unique(part.succeeded().bins)) if isinstance(timed, Mixed) else timed
    edges, bins = own.edges, part.bins
    if timed is part.layout:
        bins = timed.moved_to(own)[bins]
    else:  # failed operations are a range of their own
        edges, bins = np.append(edges, np.inf), part.layout.moved_to(Failing(own))[bins]
    steps = np.outer(10.0 ** np.arange(HIGHEST_POWER + 1), ladder).ravel()
    after = np.clip(np.searchsorted(edges, steps), 1, len(edges) - 1)
    nearest = np.where(steps - edges[after - 1] <= edges[after] - steps, after - 1, after)
    beyond = [] if timed is part.layout else [own.bins]
    starts = np.unique(np.concatenate([[0], nearest[nearest < own.bins], beyond]).astype(np.int64))  # the first bin of each range
    ends = np.append(starts[1:], len(edges) - 1)
    row, place = part.row, np.searchsorted(starts, bins, side="right") - 1
    order = np.lexsort((place, row))
    row, place, held = row[order], place[order], part.counts[order]
    first = np.flatnonzero(np.append(True, (np.diff(row) != 0) | (np.diff(place) != 0)))
    counts = np.add.reduceat(held, first)
    lower, upper = edges[starts[place[first]]], edges[ends[place[first]]]
    table = _distributed(part, answer, row[first], np.where(np.isinf(upper), upper, lower), upper, counts)
    totals = np.bincount(row[first], counts)[row[first]]
    table = replace(table, columns={**table.columns, "share": table.columns["cumulative"] / totals})
    return table, int(np.bincount(row[first]).max(initial=0))


def overlaps(lower: Int, upper: Int, edges: NDArray[Any]) -> tuple[Int, Int, Float]:
    """Return (range, row, share): the share of each range [lower, upper) that lies in each row [edges[i], edges[i + 1]).

    Edges ascend; what of a range lies outside of all rows is in no share.
    """
    first = np.maximum(np.searchsorted(edges, lower, side="right") - 1, 0)
    last = np.minimum(np.searchsorted(edges, upper, side="left") - 1, len(edges) - 2)
    width = np.maximum(last - first + 1, 0)
    which = np.repeat(np.arange(len(lower)), width)
    row = np.arange(int(width.sum())) - np.repeat(np.cumsum(width) - width - first, width)
    shared = np.minimum(upper[which], edges[row + 1]) - np.maximum(lower[which], edges[row])
    share = shared / (upper[which] - lower[which])
    kept = np.flatnonzero(share > 0)
    return which[kept], row[kept], share[kept]


def autoscaled(most: int) -> int:
    """Return a round limit above `most`, at most a quarter higher, that stays while the maximum wanders a little."""
    unit: int = 10 ** (len(str(most)) + 3)
    scaled = most * 10**3
    limit, turn = (scaled // unit + 1) * unit, 0
    while 4 * limit >= 5 * scaled and unit > 1:
        unit //= 2 if turn % 2 else 5
        limit, turn = (scaled // unit + 1) * unit, turn + 1
    return -(-limit // 10**3)


# The rows of a latency heat map: how many, between which latencies, nested in bins or equally high.


LINEAR_ROWS = 40
EVENLY = LogLinear(64, 57 * 64, open_ended=False)  # what bins that overlap are spread over: up to 2^62 ns
SPREAD = "histograms of unlike bins: counts are spread evenly within a bin, those without an upper edge stand at the lower one"
NONE = Fraction(0)
ALL_FAILED = "all of these operations failed: a heat map of how long they took needs --failures apart"
ENTRY = ("start", "end", "group", "place", "count")


@dataclass(frozen=True, slots=True)
class Rows:
    """Which rows a map is to have.

    `low_ns` to `high_ns` is the range of latency (0: as far as there are samples), `most` how many rows at most (on a linear
    axis: how many; 0: no limit, on a linear axis 40), `octave` how many an octave at most (0: down to the bins themselves);
    where it is given, one an octave may be more than `most`. `drop` is the share of samples that may lie above the map, in a
    row of their own.
    """

    axis: str = "log"
    low_ns: int = 0
    high_ns: int = 0
    most: int = 0
    octave: int = 0
    drop: Fraction = NONE


@dataclass(frozen=True, slots=True)
class Ladder:
    """The rows: edges in ns, the first row that is open-ended, those that are shown (first, stop), the row of what was dropped.

    Rows outside of those shown hold what lies below and above; there is no dropped row where `over` is past the last.
    """

    edges: NDArray[Any]
    open_from: int
    first: int
    stop: int
    over: int

    @property
    def failed(self) -> int:
        """Return the row of operations that failed, which is past all others."""
        return len(self.edges) + 1


def ladder(rows: Rows, layout: Layout, sums: NDArray[Any]) -> Ladder:
    """Return the rows that are asked for, where `sums` are the samples of each bin of the layout.

    UsageError where the range holds no sample, or more rows are needed on a logarithmic axis.
    """
    if rows.axis == "linear":
        return _linear(rows, layout, sums)
    full = _logarithmic(rows, layout, np.flatnonzero(sums), kept(sums, rows.drop))
    if not rows.drop:
        return full
    places = np.searchsorted(full.edges, layout.edges[:-1], side="right") - 1
    held = np.zeros(len(full.edges) - 1)
    np.add.at(held, np.minimum(places, len(held) - 1), sums)
    stop, top = kept(held, rows.drop), int(np.flatnonzero(held)[-1])
    if stop > top:
        return full
    edges = np.concatenate([full.edges[: stop + 1], full.edges[top + 1 : top + 2]])
    return Ladder(edges, stop if top >= full.open_from else stop + 1, full.first, stop, stop)


def _logarithmic(rows: Rows, layout: Layout, used: Int, below: int) -> Ladder:
    """Return the finest rows that nest in the bins, are no more than asked, and hold the range, or the first `below` bins."""
    end = rows.high_ns or layout.edges[below]
    inside = used[(layout.edges[used + 1] > rows.low_ns) & (layout.edges[used] < end)]
    if not len(inside):
        raise UsageError(_nowhere(layout, used))
    an_octave = rows.octave or layout.octave
    while True:
        finest = an_octave >= layout.octave
        chosen = layout if finest else layout.coarser(an_octave)
        edges = chosen.edges
        low, high = rows.low_ns or int(layout.edges[inside[0]]), rows.high_ns or int(layout.edges[inside[-1]]) + 1
        first, stop = int(np.searchsorted(edges, low, side="right")) - 1, int(np.searchsorted(edges[:-1], high, side="left"))
        least = an_octave == 1 or (chosen == layout and not finest)
        if not rows.most or stop - first <= rows.most or (least and rows.octave):
            return Ladder(edges, chosen.bins - 1 if chosen.open_ended else chosen.bins, first, stop, len(edges))
        if least:
            said = f"{stop - first} rows are the least on a logarithmic axis here"
            raise UsageError(f"--rows {rows.most}: {said}; choose a range with --latency, or --axis linear")
        an_octave //= 2


def _linear(rows: Rows, layout: Layout, sums: NDArray[Any]) -> Ladder:
    """Return equal rows of the range, else of what is left below the drop; one row more where samples lie above them."""
    used = np.flatnonzero(sums)
    top = int(layout.edges[used[-1]] + 1) if _is_open(layout, used[-1]) else int(layout.edges[used[-1] + 1])
    high = rows.high_ns or autoscaled(min(int(layout.edges[kept(sums, rows.drop)]), top))
    if rows.low_ns >= min(high, top) or high <= layout.edges[used[0]]:
        raise UsageError(_nowhere(layout, used))
    low, widest = rows.low_ns, int(np.diff(layout.edges)[used[layout.edges[used] < high]].max())
    most = rows.most or max(1, min(LINEAR_ROWS, (high - low) // widest))
    inner = low + (high - low) * np.arange(most + 1) / most
    below, above = [0.0] if low else [], [float(top)] if top > high else []
    edges = np.concatenate([below, inner, above])
    open_from = int(np.searchsorted(edges, layout.edges[-2], side="right")) - 1 if _is_open(layout, used[-1]) else len(edges)
    stop = len(below) + most
    return Ladder(edges, open_from, len(below), stop, len(edges) if rows.high_ns else stop)


def _is_open(layout: Layout, place: int) -> bool:
    return layout.open_ended and place == layout.bins - 1


def kept(sums: NDArray[Any], drop: Fraction) -> int:
    """Return how many of the lowest rows or bins stay where at most the share `drop` of all samples may lie above them."""
    above = np.cumsum(sums[::-1])[::-1]
    allowed = drop * Fraction(float(above[0])) if len(above) else NONE
    return int(np.flatnonzero(above > float(allowed))[-1]) + 1


def _nowhere(layout: Layout, used: Int) -> str:
    low, high = latency(int(layout.edges[used[0]])), latency(int(layout.edges[used[-1] + 1]))
    return f"no samples in the range of --latency: they lie between {low} and {high}"


# The cells of a latency heat map: samples by column of time and row of latency, re-binned from windows and bins.
#
# On a logarithmic axis rows nest in the bins, from the bins themselves down to one an octave: counts are whole. On a linear
# axis rows are equally high, and so are columns where a number of them is asked for: counts are spread by overlap (see
# `overlap`). Only what has samples is a cell. Every sample is in a cell, or counted as below or above the range that was asked.


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells ordered by start, group, row: count samples of a group in [lower, upper) ns and (start, end] ns.

    `over` marks what the drop left out: all samples at or above `lower`. `open` marks rows whose samples are at or above
    `lower` as their layout is open-ended. Cells from inf to inf are of operations that failed. `lit` counts the highlighted among
    them. `n` and `cum` are the samples of the column and those up to and with the row. `edges` are those of the rows that are
    shown, `starts` those of the columns, filled or not. `below` and `above` count what lies outside of the range that was asked.
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
    def failed(self) -> NDArray[np.bool_]:
        """Return which cells are of operations that failed."""
        failed: NDArray[np.bool_] = np.isinf(self.lower)
        return failed

    @property
    def left_out(self) -> float:
        """Return how many samples the drop left out."""
        return float(self.count[self.over > 0].sum())

    def table(self, *, dropped: bool) -> Table:
        """Return start_ns, end_ns, labels, lower, upper, count; `over` where `dropped`, `highlighted` where something is."""
        columns: dict[str, Any] = {"start_ns": self.start_ns, "end_ns": self.end_ns}
        columns |= label_columns(self.groups, self.by, self.group)
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

    def taken(self, which: NDArray[np.bool_]) -> _Entries:
        """Return some of the entries."""
        if which.all():
            return self
        return _Entries(*(getattr(self, name)[which] for name in ENTRY))

    def beside(self, failed: _Entries, place: int) -> _Entries:
        """Return these entries and those of operations that failed, which are at a place of their own."""
        if not len(failed.place):
            return self
        above = replace(failed, place=np.full(len(failed.place), place))
        return _Entries(*(np.concatenate([getattr(self, name), getattr(above, name)]) for name in ENTRY))


def cells(answer: Answer, rows: Rows | None = None, lit: Answer | None = None, columns: int = 0) -> Cells:
    """Return the cells of an answer in these rows, and in so many columns of equal width (0: its windows).

    `lit` is the part of the answer that is highlighted. UsageError where the range holds no sample, where the rows are too few
    for a logarithmic axis, or columns narrower than windows; InputError of means without a histogram.
    """
    check_bins(answer, "heat maps")
    rows = rows or Rows()
    layout = common_layout(part.layout for part in answer.parts)
    groups = tuple(sorted({key for part in answer.parts for key in part.table}))
    every = [_entries(each, layout, groups) for each in (answer, lit) if each]
    asked = [samples.taken(samples.place < layout.timed.bins) for samples in every]
    failed = [samples.taken(samples.place >= layout.timed.bins) for samples in every]
    layout = layout.timed
    if not len(asked[0].place):
        raise UsageError(ALL_FAILED)
    overlapping = isinstance(layout, Mixed)
    if overlapping:
        asked = [_in_rows(samples, layout, EVENLY.edges) for samples in asked]
        layout = EVENLY
    entries = asked[0]
    sums = _sums(entries.place, entries.count, layout.bins)
    row_ladder = ladder(rows, layout, sums)
    span = int(every[0].start.min()), int(every[0].end.max())
    edges = _columns(entries, span, columns) if columns else np.arange(*span, answer.step_ns or max(1, span[1] - span[0]))
    if columns:
        asked, failed = ([_in_columns(samples, edges) for samples in some] for some in (asked, failed))
    both = [_in_rows(samples, layout, row_ladder.edges) for samples in asked]
    both = [samples.beside(own, row_ladder.failed) for samples, own in zip(both, failed, strict=True)]
    starts = edges[:-1] if columns else edges
    notes = (SPREAD,) if overlapping else _notes(rows, layout, np.flatnonzero(sums), row_ladder)
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


def _in_rows(entries: _Entries, layout: Layout, edges: NDArray[Any]) -> _Entries:
    """Return the entries with the numbers of rows between edges for those of bins, bins spread by overlap."""
    used, place = np.unique(entries.place, return_inverse=True)
    lower = layout.lower[used]
    upper = np.where(layout.opened(used), lower + 1, layout.upper[used])  # nothing is known above an open one
    which, row, share = overlaps(lower, upper, edges)
    rows_of = np.bincount(which, minlength=len(used))
    first = np.cumsum(rows_of) - rows_of
    width = rows_of[place]
    entry = np.repeat(np.arange(len(place)), width)
    at = np.arange(len(entry)) - np.repeat(np.cumsum(width) - width, width) + first[place][entry]
    return entries.spread(entry, share[at], place=row[at])


def _shown(both: Sequence[_Entries], ladder: Ladder, groups: tuple[Group, ...]) -> Cells:
    """Return the cells of all entries; those of the second of `both` are what is highlighted in them."""
    every, high = both[0], ladder.failed + 1
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
    over, failed = row == ladder.over, row == ladder.failed
    edges = np.append(ladder.edges, [np.inf] * 3) if failed.any() else ladder.edges
    inside = np.flatnonzero(((row >= ladder.first) & (row < ladder.stop)) | over | failed)
    columns = {
        "start_ns": starts[column // len(groups)],
        "end_ns": end,
        "group": column % len(groups),
        "lower": edges[row],
        "upper": edges[row + 1],
        "count": count,
        "over": over.astype(np.int64),
        "open": ((row >= ladder.open_from) & ~failed).astype(np.int64),
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
        above=float(count[(row >= ladder.stop) & ~over & ~failed].sum()),
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


# Some series beside all: one host, one operation, one process against the rest.


def with_labels(question: Question, highlighted: Mapping[str, str]) -> Question:
    """Return the question whose answer keeps the highlighted labels apart; UsageError for a kind, as kinds are never added up."""
    if "kind" in highlighted:
        raise UsageError("--highlight kind: kinds are never added up; choose one with --where kind=KIND")
    return replace(question, by=tuple(dict.fromkeys((*question.by, *highlighted))))


def split(answer: Answer, question: Question, highlighted: Mapping[str, str]) -> tuple[Answer, Answer]:
    """Return what `question` asks, and the part of it whose labels match, both by the labels of `question` alone.

    `answer` is that of `with_labels`. InputError where nothing matches, UsageError where runs would be added up unasked.
    """
    by = tuple(name for name in answer.by if name in question.by or name not in highlighted)
    if "run" not in by and len(answer.runs) > 1 and not question.merge_runs:
        raise UsageError(f"--highlight run: these are {len(answer.runs)} runs; --merge-runs adds them up")
    places = {answer.by.index(name): glob for name, glob in highlighted.items()}
    parts = [part.where(lambda key: all(fits(key[at], glob) for at, glob in places.items())) for part in answer.parts]
    if not any(len(part) for part in parts):
        asked = " ".join(as_options("--highlight", highlighted))
        names = {", ".join(key[at] or "-" for at in places) for part in answer.parts for key in part.table}
        raise InputError(f"nothing matches {asked}: {choices(', '.join(highlighted.values()), sorted(names))}")
    return regrouped(answer, by), regrouped(replace(answer, parts=tuple(parts)), by)
