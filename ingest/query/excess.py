"""Which events of a run took longer than those of its baseline, and by how much in all: the largest excess is what to look at.

    excess of an event = n of the run * area by which its quantile function lies above that of the baseline

Percentiles hide a cause that is rare: one breath of half a million cycles among ten thousand moves no p99, while the bins of
other events may move by chance. The excess weighs how often by how much. Events lie within one another: what delays an inner one
delays the outer one, too. Counts are those of stored events.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Intervals
from ingest.core.layout import common_layout
from ingest.core.ranks import parse_percentiles, percentile_values
from ingest.core.series import Group
from ingest.core.writing import figure, latency
from ingest.query.areas import excess_of
from ingest.query.question import Answer
from ingest.query.spans import spanned

MOST_NEXT = 2
OP = "op"


@dataclass(frozen=True, slots=True)
class Excess:
    """What the `events` of a group took more than as many of the baseline would have, in ns, and what all of them took.

    `longest_ns` is the largest of the run, `before_ns` that of the baseline. Off by at most the error of the bins of each sample.
    """

    group: Group
    events: int
    excess_ns: float
    total_ns: float
    longest_ns: float
    before_ns: float


def excesses(baseline: Answer, run: Answer) -> list[Excess]:
    """Return the excess of each group that both answers have, those over the whole range with the same labels; largest first."""
    before, after = _rows_of(baseline), _rows_of(run)
    return sorted(
        (_excess(group, before[group], after[group]) for group in sorted(before.keys() & after.keys())),
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
    return (
        f"The largest excess is that of {names[0]}: its {worst.events:,} stored events took {latency(worst.excess_ns)} longer "
        f"than as many of the baseline ({figure(share, 2)} % of their time); the longest took {latency(worst.longest_ns)}, in "
        f"the baseline {latency(worst.before_ns)}." + (f" Next: {', '.join(rest)}." if rest else "")
    )


def _name(group: Group, by: Sequence[str]) -> str:
    """Return what an event is called: its name, and the other labels that it is grouped by."""
    labels = dict(zip(by, group, strict=True))
    return " ".join(filter(None, (labels.pop(OP, ""), *labels.values())))


def _rows_of(answer: Answer) -> dict[Group, Intervals[Group]]:
    """Return the row of each group over the whole range."""
    rows = {}
    for part in spanned(answer.parts):
        for row, code in enumerate(part.series.tolist()):
            rows[part.table[code]] = part.take(np.array([row], np.int64))
    return rows


def _excess(group: Group, baseline: Intervals[Group], run: Intervals[Group]) -> Excess:
    layout = common_layout((baseline.layout, run.layout))
    sides = [side.in_layout(layout) for side in (baseline, run)]
    (excess_ns,) = excess_of(sides[1], np.zeros(1, np.int64), sides[0]).tolist()
    (maximum,) = parse_percentiles("100")
    before, longest = (float(percentile_values(side, maximum)[0]) for side in (baseline, run))
    return Excess(
        group=group,
        events=int(run.counts.sum()),
        excess_ns=excess_ns,
        total_ns=float(layout.values[sides[1].bins].astype(np.float64) @ sides[1].counts),
        longest_ns=longest,
        before_ns=before,
    )
