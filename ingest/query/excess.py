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

from ingest.core import kernel
from ingest.core.grid import WEIGHT_BITS
from ingest.core.intervals import Int, Intervals
from ingest.core.labels import Group
from ingest.core.layout import Float, common_layout
from ingest.core.quantiles import parse_percentiles, percentile_values
from ingest.core.units import figure, latency
from ingest.query.question import Answer
from ingest.query.windows import spanned

# By how much samples took longer than as many of a reference: the area by which one quantile function lies above another.


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
    held = [*kernel.narrow(*rows.held)]
    for code in range(len(reference)):
        mine = order[edges[code] : edges[code + 1]]
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
        known = values, under, upto, knots, area, below
        if kernel.excess_rows is not None:
            excess = np.empty(len(mine))
            kernel.excess_rows(*kernel.words(rows.indptr, mine), *held, *known, excess)
            out[mine] = excess
            continue
        for piece, own in rows.take(mine).pieces():
            out[mine[piece]] = own.samples * _areas(own, *known)
    return out


def _areas(own: Intervals[Group], values: Float, under: Float, upto: Float, knots: Float, area: Float, below: Float) -> Float:
    """Return the integral of max(F_reference - F, 0) of each row.

    Of each bin `under` is F_reference just before it, `upto` its integral up to it; `knots` are those of the reference, `area`
    the integral up to each of these, `below` F_reference there.
    """
    total, before = np.concatenate([[0], np.cumsum(own.counts)]), own.row
    share = (total[1:] - total[own.indptr[before]]) / own.samples[before]
    # Where F_reference exceeds the level of a step before its end: from there on it lies above.
    gains = under[own.bins[1:]] > share[:-1]
    gains[own.indptr[1:-1] - 1] = False
    steps = np.flatnonzero(gains)
    first, last, share = own.bins[steps], own.bins[steps + 1], share[steps]
    place = np.searchsorted(below, share, side="right")
    low, since = values[first], knots[place]
    upto_since = np.where(since <= low, upto[first], area[place])
    gained = upto[last] - upto_since - share * (values[last] - np.maximum(low, since))
    sums = np.bincount(own.row[steps], gained, len(own)) + upto[own.bins[own.indptr[:-1]]]
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
