"""Which events of a run took longer than those of its baseline, and by how much in all: the area between quantile functions.

Which events of a run took longer than those of its baseline, and by how much in all: the largest excess is what to look at.

    excess of an event = n of the run * area by which its quantile function lies above that of the baseline

Percentiles hide a cause that is rare: one breath of half a million cycles among ten thousand moves no p99, while the bins of
other events may move by chance. The excess weighs how often by how much. Events lie within one another: what delays an inner one
delays the outer one, too. Of sampled events each stored one counts as many as it stands for: what is rarely stored may be most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ingest.core.grid import WEIGHT_BITS
from ingest.core.intervals import Int, Intervals
from ingest.core.labels import Group
from ingest.core.layout import Float, common_layout
from ingest.core.quantiles import parse_percentiles, percentile_values
from ingest.core.units import figure, latency
from ingest.query.question import Answer
from ingest.query.windows import pieces, spanned

# By how much samples took longer than as many of a reference: the area by which one quantile function lies above another.


CELLS = 1 << 14
MANY_ROWS = 100  # from here on the table of all cells takes less time than it spares


def excess_of(rows: Intervals[Group], group: Int, reference: Intervals[Group]) -> Float:
    """Return N times the one-sided area between the quantile function of each row and its reference's, in ns; `group` is its row.

    The area by which one quantile function lies above another is that by which its distribution function lies below: the
    integral of max(F_reference - F, 0) over latencies. F is a step function, so that it is a difference of two integrals of
    F_reference on each of its steps. Exact for the bins.
    """
    values = rows.layout.rising.astype(np.float64)
    out = np.zeros(len(rows))
    order = np.argsort(group, kind="stable")
    edges = np.searchsorted(group[order], np.arange(len(reference) + 1))
    for code in range(len(reference)):
        mine = np.sort(order[edges[code] : edges[code + 1]])
        if not len(mine):
            continue
        kept = slice(int(reference.indptr[code]), int(reference.indptr[code + 1]))
        knots = values[reference.bins[kept]]
        below = np.cumsum(reference.counts[kept]) / reference.counts[kept].sum()
        area = np.concatenate([[0.0], np.cumsum(np.diff(knots) * below[:-1])])
        place = np.searchsorted(knots, values, side="right") - 1
        inside = np.maximum(place, 0)
        upto = np.where(place < 0, 0.0, area[inside] + below[inside] * (values - knots[inside]))  # of F_reference, by bin
        place = np.searchsorted(knots, values) - 1
        under = np.where(place < 0, 0.0, below[np.maximum(place, 0)])  # of F_reference, just before each bin
        found = Places(below, many=len(mine) > MANY_ROWS)
        for piece, own in pieces(rows.take(mine)):
            out[mine[piece]] = own.samples * _areas(own, values, under, upto, (knots, area, found))
    return out


class Places:
    """Finds the first of rising shares that is above another: `np.searchsorted(shares, other, side="right")`, for many others.

    Where no share lies within a cell of the unit interval, a table knows the place of all that do.
    """

    def __init__(self, shares: Float, *, many: bool) -> None:
        self._shares, self._table = shares, np.empty(0, np.int64)
        if many:
            self._table = np.searchsorted(shares, np.arange(CELLS + 2) / CELLS, side="right")
            self._open = self._table[1:] > self._table[:-1]

    def above(self, others: Float) -> Int:
        """Return the place of each; all lie within 0 and 1."""
        if not len(self._table):
            return np.searchsorted(self._shares, others, side="right")
        cell = (others * CELLS).astype(np.int64)  # exact: CELLS is a power of two
        place: Int = self._table[cell]
        within = np.flatnonzero(self._open[cell])
        place[within] = np.searchsorted(self._shares, others[within], side="right")
        return place


def _areas(own: Intervals[Group], values: Float, under: Float, upto: Float, reference: tuple[Float, Float, Places]) -> Float:
    """Return the integral of max(F_reference - F, 0) of each row.

    Of each bin `under` is F_reference just before it, `upto` its integral up to it; `reference` are its knots, the integral up to
    each of these, and what finds them by F_reference.
    """
    knots, area, found = reference
    width, total = np.diff(own.indptr), np.concatenate([[0], np.cumsum(own.counts)])
    before, after = total[own.indptr[:-1]], total[own.indptr[1:]]
    share = (total[1:] - np.repeat(before, width)) / np.repeat(after - before, width)
    # Where F_reference exceeds the level of a step before its end: from there on it lies above.
    gains = under[own.bins[1:]] > share[:-1]
    gains[own.indptr[1:-1] - 1] = False
    steps = np.flatnonzero(gains)
    first, last, share = own.bins[steps], own.bins[steps + 1], share[steps]
    place = found.above(share)
    low, since = values[first], knots[place]
    upto_since = np.where(since <= low, upto[first], area[place])
    gained = np.zeros(len(own.bins))
    gained[steps] = upto[last] - upto_since - share * (values[last] - np.maximum(low, since))
    begin = own.indptr[:-1]
    sums: Float = np.add.reduceat(gained, begin) + upto[own.bins[begin]]
    return np.maximum(sums, 0.0)


MOST_NEXT = 2
OP = "op"


@dataclass(frozen=True, slots=True)
class Excess:
    """What the events of a group took more than as many of the baseline would have, in ns, and what all of them took.

    `events` were stored, each of which stands for `weight` events (0: they differ in that). `longest_ns` is the largest of the
    run, `before_ns` that of the baseline. Off by at most the error of the bins of each sample.
    """

    group: Group
    events: int
    weight: int
    excess_ns: float
    total_ns: float
    longest_ns: float
    before_ns: float


def excesses(baseline: Answer, run: Answer) -> list[Excess]:
    """Return the excess of each group that both answers have, those over the whole range with the same labels; largest first."""
    before, after = _rows_of(baseline), _rows_of(run)
    return sorted(
        (
            _excess(group, before[group], after[group], 1 if run.weights is None else run.weights.get(group, 0))
            for group in sorted(before.keys() & after.keys())
        ),
        key=lambda found: -found.excess_ns,
    )


def excess_sentence(baseline: Answer, run: Answer) -> str:
    """Return which event has the largest excess, and how its longest one compares; empty where none has any."""
    found = [excess for excess in excesses(baseline, run) if excess.excess_ns > 0]
    if not found:
        return ""
    worst, names = found[0], [_name(excess.group, run.by) for excess in found]
    share = 100 * worst.excess_ns / worst.total_ns
    rest = [f"{name} {latency(excess.excess_ns)}" for name, excess in zip(names, found, strict=True)][1 : 1 + MOST_NEXT]
    stored = f"its {worst.events:,} stored events" + (f", one in {worst.weight:,}," if worst.weight > 1 else "")
    longer = f"{latency(worst.excess_ns)} longer" + ("" if worst.weight == 1 else " in all")
    return (
        f"The largest excess is that of {names[0]}: {stored} took {longer} "
        f"than as many of the baseline ({figure(share, 2)} % of their time); the longest took {latency(worst.longest_ns)}, in "
        f"the baseline {latency(worst.before_ns)}." + (f" Next: {', '.join(rest)}." if rest else "")
    )


def _name(group: Group, by: Sequence[str]) -> str:
    """Return what an event is called: its name, and the other labels that it is grouped by."""
    labels = dict(zip(by, group, strict=True))
    return " ".join(filter(None, (labels.pop(OP, ""), *labels.values())))


def _rows_of(answer: Answer) -> dict[Group, Intervals[Group]]:
    """Return the row of each group over the whole range."""
    parts = ((part, row, code) for part in spanned(answer.parts) for row, code in enumerate(part.series.tolist()))
    return {part.table[code]: part.take(np.array([row], np.int64)) for part, row, code in parts}


def _excess(group: Group, baseline: Intervals[Group], run: Intervals[Group], weight: int) -> Excess:
    """Return the excess of a group whose counts are of stored events; where `weight` is 0 they are weighed, in units of 2^-16."""
    times = weight or 1 / (1 << WEIGHT_BITS)
    layout = common_layout((baseline.layout, run.layout))
    sides = [side.in_layout(layout) for side in (baseline, run)]
    (excess_ns,) = excess_of(sides[1], np.zeros(1, np.int64), sides[0]).tolist()
    (maximum,) = parse_percentiles("100")
    before, longest = (float(percentile_values(side, maximum)[0]) for side in (baseline, run))
    return Excess(
        group=group,
        events=int((run.counts if run.completions is None else run.completions).sum()),
        weight=weight,
        excess_ns=excess_ns * times,
        total_ns=float(layout.rising[sides[1].bins].astype(np.float64) @ sides[1].counts) * times,
        longest_ns=longest,
        before_ns=before,
    )
