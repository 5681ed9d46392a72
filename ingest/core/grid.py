"""The time grid: windows (start, start + step], and how the rows of a source come to lie in them.

A histogram row is stamped at its end and covers (previous row of the same series, this row]. `to_windows` keeps a row
whole where it lies inside one window and cuts it by time where it does not; `in_flight` spreads each I/O over the time
it was under way instead. Both keep every count: the sum over windows is the sum over rows.

    row (9.2 s, 10.2 s] with bins {40: 3, 41: 2}, step 10 s: share f = 0.8, cumulative 3, 5 -> round(2.4), round(4.0)
    window (0, 10]:  {40: 2, 41: 2}          window (10, 20]:  {40: 1}
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ingest.core import kernel
from ingest.core.errors import CapacityError, InputError
from ingest.core.intervals import (
    DENSE_CELLS,
    MOST_SAMPLES,
    TOO_MANY,
    Exact,
    Intervals,
    Key,
    concatenate,
    distinct_rows,
    gather,
    sum_rows,
    summed,
    surely_addable,
)

Int = NDArray[np.int64]

MS = 1_000_000
SECOND = 1000 * MS
STEPS = tuple([100 * MS] + [n * SECOND for n in (1, 5, 10, 30)] + [n * 60 * SECOND for n in (1, 5, 10, 30)] + [3600 * SECOND])
WEIGHT_BITS = 16
MANY = 4
MOST_EXACT = 1 << 50  # a quotient of numbers up to this is nearer to its own value in float64 than to a half that it is not
INT64_MAX = np.iinfo(np.int64).max
UNTIMED = "means do not say when their I/Os were in flight: leave out --attribution in-flight"


def window_start(stamps_ns: Int, step_ns: int) -> Int:
    """Return the start of the window (start, start + step] that holds each stamp; windows begin at whole steps of the epoch."""
    return -(-stamps_ns // step_ns) * step_ns - step_ns


def stored_step(median_width_ns: float) -> int:
    """Return the step that rows of this width are stored at: the smallest of STEPS that is at least 0.9 x the width."""
    return next((step for step in STEPS if step >= 0.9 * median_width_ns), STEPS[-1])


def common_step(own_ns: int, step_ns: int) -> int:
    """Return the widest of STEPS that divides `step_ns` and is at most `own_ns`; 0 where none does."""
    return next((step for step in reversed(STEPS) if step <= own_ns and step_ns % step == 0), 0)


def cut_down(rows: Intervals[Key], own_ns: int, step_ns: int) -> Intervals[Key]:
    """Return rows of a source whose own step is `own_ns`, cut on their way down to windows of a narrower `step_ns`.

    They are cut at the edges of their own step first, then at those of each of STEPS that is narrower, but for `step_ns`
    itself. As each of STEPS divides the next, windows of any of them add up to those of a wider one: how a row is spread does
    not depend on the step that it is stored at. Rows without bins, and those that lie within the windows, stay whole.
    """
    if not rows.layout.has_bins or rows.completions is not None:
        return rows
    for step in reversed(STEPS):
        if step_ns < step <= own_ns:
            rows = _cut_at_edges(rows, step)
    return rows


def _cut_at_edges(rows: Intervals[Key], step_ns: int) -> Intervals[Key]:
    """Return the rows cut at each edge of windows of `step_ns`; the pieces bear their own bounds."""
    crossing = rows.start_ns // step_ns * step_ns < window_start(rows.end_ns, step_ns)
    done, rest = [rows.take(np.flatnonzero(~crossing))], rows.take(np.flatnonzero(crossing))
    while len(rest):
        head, rest = _cut(rest, rest.start_ns // step_ns * step_ns + step_ns)
        further = rest.end_ns > rest.start_ns + step_ns
        done += [head, rest.take(np.flatnonzero(~further))]
        rest = rest.take(np.flatnonzero(further))
    return _without_zeros(concatenate(done)) if len(done) > 1 else rows


def to_windows(rows: Intervals[Key], step_ns: int, stored_ns: int = 0) -> Intervals[Key]:
    """Return the rows cut at the edges of windows of `step_ns`: each result row lies in one window and bears its bounds.

    With `stored_ns`, of which the step is a multiple, rows that cross an edge are cut at every edge of that finer grid on
    their way: the same counts as if they had been stored at it and added up. Rows that a store would cut lose their exact values.

    Across windows a row is cut by time: of what remains, the share f goes to the next window as
    round(f * C_b) - round(f * C_(b-1)) for each bin b, C being the cumulative count in value order (halves to even,
    exact integer arithmetic). Bins and sums stay exact; a cut row loses its exact values. Zero-width rows are points.
    Rows of one series in one window are not yet added up: see `intervals.merged`. Rows without bins are not cut: each goes whole
    to the window that holds its middle, with its mean and maximum.
    """
    cut = _without_zeros(concatenate(window_parts(rows, step_ns, stored_ns)))
    filled = np.diff(cut.indptr) > 0
    return cut if filled.all() else cut.take(np.flatnonzero(filled))


def window_parts(rows: Intervals[Key], step_ns: int, stored_ns: int = 0) -> list[Intervals[Key]]:
    """Return what `to_windows` does in parts that are only good for adding up: some of their counts are zero."""
    if not rows.layout.has_bins:
        whole = window_start(_middle(rows), step_ns)
        return [rows.at(whole, whole + step_ns)]
    last = window_start(rows.end_ns, step_ns)
    crossing = np.flatnonzero(rows.start_ns // step_ns * step_ns < last)
    if stored_ns and rows.exact is not None:
        kept = rows.start_ns // stored_ns * stored_ns >= window_start(rows.end_ns, stored_ns)
        rows = replace(rows, exact=replace(rows.exact, known=rows.exact.known & kept))
    if not len(crossing):
        return [rows.at(last, last + step_ns)]
    rest = rows.take(crossing)
    done = _without_rows(rows.at(last, last + step_ns), crossing)
    if stored_ns and stored_ns != step_ns:
        return done + [coarsened(part, step_ns) for part in window_parts(rest, stored_ns)]
    while len(rest):
        edge = rest.start_ns // step_ns * step_ns + step_ns
        head, rest = _cut(rest, edge)
        done.append(head.at(edge - step_ns, edge))
        rest = _without_zeros(rest) if MANY * np.count_nonzero(rest.counts != 0) < len(rest.counts) else rest
        further = np.flatnonzero(rest.end_ns > edge + step_ns)
        last = window_start(rest.end_ns, step_ns)
        done += _without_rows(rest.at(last, last + step_ns), further)
        rest = rest.take(further)
    return done


def window_sums(rows: Intervals[Key], step_ns: int, stored_ns: int = 0) -> list[Intervals[Key]]:
    """Return what `window_parts` does for adding up; where many rows lie in a window they are added up while they are cut.

    As many windows are added up together as stay in a processor's cache: one may come more than once.
    """
    loop, known = kernel.window_rows, len(rows.table)
    if loop is None or rows.exact is not None or rows.completions is not None or not len(rows.bins) or not rows.layout.has_bins:
        return window_parts(rows, step_ns, stored_ns)
    filled, fine = np.flatnonzero(rows.indptr[1:] > rows.indptr[:-1]), stored_ns or step_ns
    low, high = int(rows.bins[rows.indptr[filled]].min()), int(rows.bins[rows.indptr[filled + 1] - 1].max())
    first, last = rows.start_ns // step_ns, -(-rows.end_ns // step_ns) - 1
    crossing = first < last
    pieces = np.where(crossing, -(-rows.end_ns // fine) - rows.start_ns // fine, 1)
    width, held = high + 1 - low, np.diff(rows.indptr)
    room, windows = int((held * pieces).sum()), int(last.max()) - int(np.minimum(first, last).min()) + 1
    sparse = windows * known * width > len(rows.bins)  # looking for what is not zero would take longer than all else
    if sparse or known * width > DENSE_CELLS or room > MANY * len(rows.bins) or not surely_addable([rows.counts]):
        return window_parts(rows, step_ns, stored_ns)
    windows = min(windows, DENSE_CELLS // (known * width))
    most = int(pieces.sum())
    of, begin, indptr = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most + 1, np.int64)
    bins, counts = np.empty(room + 1, np.int64), np.empty(room + 1, np.int64)
    cells = windows * known
    found = loop(
        *kernel.words(rows.series, rows.start_ns, rows.end_ns, rows.indptr, rows.bins, rows.counts),
        *(step_ns, fine, known, low, width),
        *(np.empty(2 * int(held.max()), np.int64), np.zeros(cells * width, np.int64), np.full(cells, width), np.full(cells, -1)),
        *(of, begin, indptr, bins, counts),
    )
    of, begin, indptr = of[:found], begin[:found], indptr[: found + 1]
    bins, counts = bins[: indptr[-1]].copy(), counts[: indptr[-1]].copy()  # so that no more is held than is there
    return [Intervals(rows.layout, rows.table, of, begin, begin + step_ns, indptr, bins, counts)]


def _without_rows(rows: Intervals[Key], left_out: Int) -> list[Intervals[Key]]:
    """Return rows without the counts of some; of a few that are left out zeros stand for them, as that is quicker."""
    if len(left_out) == len(rows):
        return []
    if not len(left_out):
        return [rows]
    if MANY * len(left_out) > len(rows):
        keep = np.ones(len(rows), np.bool_)
        keep[left_out] = False
        return [rows.take(np.flatnonzero(keep))]
    counts = rows.counts.copy()
    counts[gather(rows.indptr, left_out)[1]] = 0
    return [replace(rows, counts=counts)]


def whole_windows(from_ns: int | None, to_ns: int | None, step_ns: int) -> tuple[int | None, int | None]:
    """Return the range of all windows of `step_ns` that a range touches: its begin moved down, its end up to the grid."""
    low = None if from_ns is None else from_ns // step_ns * step_ns
    return low, None if to_ns is None else -(-to_ns // step_ns) * step_ns


def in_windows(rows: Intervals[Key], from_ns: int | None, to_ns: int | None, step_ns: int) -> Intervals[Key]:
    """Return what of the rows lies in windows of `step_ns` that begin in [from, to), both edges of that grid.

    The same counts as if the rows had been stored in such windows: rows that cross an edge of the range are cut at every edge
    of the grid on their way, the others stay whole. Rows without bins are taken where their middle lies.
    """
    low = np.iinfo(np.int64).min if from_ns is None else from_ns
    high = INT64_MAX if to_ns is None else to_ns
    if rows.completions is not None or not rows.layout.has_bins:
        return clipped(rows, from_ns, to_ns)
    last = window_start(rows.end_ns, step_ns)
    first = np.minimum(rows.start_ns // step_ns * step_ns, last)  # of a point on an edge it is the window before
    inside = (first >= low) & (last < high)
    whole = rows.take(np.flatnonzero(inside))
    crossing = np.flatnonzero(~inside & (last >= low) & (first < high))
    if not len(crossing):
        return whole
    cut = _without_zeros(concatenate(window_parts(rows.take(crossing), step_ns)))
    ours = (cut.start_ns >= low) & (cut.start_ns < high) & (np.diff(cut.indptr) > 0)
    return concatenate([whole, cut.take(np.flatnonzero(ours))])


def clipped(rows: Intervals[Key], from_ns: int | None, to_ns: int | None) -> Intervals[Key]:
    """Return the parts of the rows in (from, to], cut by time as `to_windows` does.

    In-flight windows are taken whole where they begin in [from, to), rows without bins where their middle lies in (from, to].
    """
    low = np.iinfo(np.int64).min if from_ns is None else from_ns
    high = INT64_MAX if to_ns is None else to_ns
    if not rows.layout.has_bins:
        middle = _middle(rows)
        inside = rows.take(np.flatnonzero((middle > low) & (middle <= high)))
        return replace(inside, start_ns=np.maximum(inside.start_ns, low), end_ns=np.minimum(inside.end_ns, high))
    if rows.completions is not None:
        return rows.take(np.flatnonzero((rows.start_ns >= low) & (rows.start_ns < high)))
    if from_ns is not None:
        rows = rows.take(np.flatnonzero(rows.end_ns > from_ns))
        early = rows.start_ns < from_ns
        if early.any():
            _, tail = _cut(rows.take(np.flatnonzero(early)), np.full(int(early.sum()), from_ns))
            rows = concatenate([_without_zeros(tail), rows.take(np.flatnonzero(~early))])
    if to_ns is not None:
        rows = rows.take(np.flatnonzero((rows.start_ns < to_ns) | (rows.end_ns <= to_ns)))
        late = rows.end_ns > to_ns
        if late.any():
            head, _ = _cut(rows.take(np.flatnonzero(late)), np.full(int(late.sum()), to_ns))
            rows = concatenate([rows.take(np.flatnonzero(~late)), _without_zeros(head)])
    return rows


def _middle(rows: Intervals) -> Int:
    return rows.start_ns + (rows.end_ns - rows.start_ns) // 2


def _cut(rows: Intervals[Key], edge: Int) -> tuple[Intervals[Key], Intervals[Key]]:
    """Return what of each row lies before its edge and what lies after; every edge is inside its row."""
    before = _share(rows, edge - rows.start_ns, rows.end_ns - rows.start_ns)
    zeros = np.zeros(len(rows), np.int64)
    exact = rows.exact and Exact(zeros, zeros, zeros, np.zeros(len(rows), np.bool_))
    if rows.completions is not None:
        raise ValueError("in-flight weights are spread once, not cut again")
    head = replace(rows, end_ns=edge, counts=before, exact=exact)
    tail = replace(rows, start_ns=edge, counts=rows.counts - before, exact=exact)
    return head, tail


def _share(rows: Intervals, part: Int, whole: Int) -> Int:
    """Return the counts of the share part/whole of each row, by rounding its cumulative counts."""
    if kernel.share is not None:
        before = np.empty(len(rows.counts), np.int64)
        kernel.share(*kernel.words(rows.counts, rows.indptr, part, whole), before)
        return before
    total = np.zeros(len(rows.counts) + 1, np.int64)
    np.cumsum(rows.counts, out=total[1:])
    width = np.diff(rows.indptr)
    cumulative = total[1:] - np.repeat(total[rows.indptr[:-1]], width)
    divisor = np.gcd(part, whole)
    top, bottom = np.repeat(part // divisor, width), np.repeat(whole // divisor, width)
    rounded = _rounded_share(cumulative, top, bottom)
    before = np.diff(rounded, prepend=0)
    firsts = rows.indptr[:-1][width > 0]
    before[firsts] = rounded[firsts]
    return before


def _rounded_share(values: Int, top: Int, bottom: Int) -> Int:
    """Return round(values * top / bottom), halves to even, exact also where the product passes 2^63."""
    if int(values.max(initial=1)) <= MOST_EXACT // int(max(top.max(initial=1), bottom.max(initial=1))):
        return np.rint(values * top / bottom).astype(np.int64)
    if int(values.max(initial=1)) <= INT64_MAX // 4 // int(max(top.max(initial=1), bottom.max(initial=1))):
        return round_ratio(values * top, bottom)
    large = np.maximum(values, 1) > INT64_MAX // 4 // np.maximum(np.maximum(top, bottom), 1)
    out = round_ratio(np.where(large, 0, values) * top, bottom)
    for at in np.flatnonzero(large):
        product, divisor = int(values[at]) * int(top[at]), int(bottom[at])
        quotient, rest = divmod(product, divisor)
        out[at] = quotient + (2 * rest > divisor or (2 * rest == divisor and quotient % 2))
    return out


def round_ratio(top: Int, bottom: Int | int) -> Int:
    """Return top / bottom rounded, halves to even, from floor(top / bottom + 1/2)."""
    rounded, rest = np.divmod(2 * top + bottom, 2 * bottom)
    rounded -= (rest == 0) & (rounded & 1 == 1)
    return rounded


def _without_zeros(rows: Intervals[Key]) -> Intervals[Key]:
    keep = np.flatnonzero(rows.counts != 0)
    if len(keep) == len(rows.counts):
        return rows
    indptr = np.searchsorted(keep, rows.indptr)
    return replace(rows, indptr=indptr, bins=rows.bins.take(keep), counts=rows.counts.take(keep))


def in_flight(rows: Intervals[Key], step_ns: int) -> Intervals[Key]:
    """Return windows in which each I/O counts by the share of its latency that it was in flight there.

    A row over (P, T] completes at M = (P + T) / 2; an I/O of bin value v is under way in (M - v, M]. Its weights are
    integers of 2^-16 and add up to 65,536 exactly. `counts` are weights, `completions` the I/Os that completed in the
    window. InputError for rows without bins, CapacityError for
    weights that cannot be added up. Source: the distributed-fio percentile paper's weighting, without the
    half-interval term of fio's script.
    """
    if not rows.layout.has_bins:
        raise InputError(UNTIMED)
    if int(rows.counts.max(initial=0)) > MOST_SAMPLES >> WEIGHT_BITS:
        raise CapacityError(TOO_MANY)
    middle = _middle(rows)
    row = rows.row
    end = middle[row]
    latency = rows.layout.values[rows.bins]
    last = window_start(end, step_ns)
    first = np.minimum((end - latency) // step_ns * step_ns, last)
    pieces = (last - first) // step_ns + 1
    entry = np.repeat(np.arange(len(row)), pieces)
    offset = np.arange(len(entry)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    start = first[entry] + offset * step_ns
    edge = np.minimum(start + step_ns, end[entry])
    begin = end[entry] - latency[entry]
    done = _rounded_share(np.full(len(entry), 1 << WEIGHT_BITS), edge - begin, np.maximum(latency[entry], 1))
    done = np.where((latency[entry] == 0) | (edge == end[entry]), 1 << WEIGHT_BITS, done)
    weight = np.where(offset == 0, done, np.diff(done, prepend=0)) * rows.counts[entry]
    final = offset == pieces[entry] - 1
    (series, starts), group = distinct_rows(rows.series[row[entry]], start)
    count = len(starts)
    order = np.argsort(group, kind="stable")
    indptr = np.searchsorted(group, np.arange(count + 1), sorter=order)
    indptr, bins, counts = sum_rows(indptr, rows.bins[entry[order]], weight[order], np.arange(count), count)
    completions = summed(np.where(final, rows.counts[entry], 0), group, count)
    return Intervals(rows.layout, rows.table, series, starts, starts + step_ns, indptr, bins, counts, None, completions)


def coarsened(windows: Intervals[Key], step_ns: int) -> Intervals[Key]:
    """Return windows relabelled to the window of a multiple of their step that holds them; see `intervals.merged`."""
    starts = windows.start_ns // step_ns * step_ns
    return windows.at(starts, starts + step_ns)
