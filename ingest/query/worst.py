"""When was it worst, and which series contributed most: the windows whose samples lie furthest above the usual of the range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Intervals
from ingest.core.ranks import Percentile, censored, extremes, parse_percentiles, percentile_values
from ingest.core.series import Group
from ingest.query.lags import in_events, mixed_rows
from ingest.query.question import Answer
from ingest.query.regrouped import regrouped
from ingest.query.steps import widened

MEDIAN, MAX = parse_percentiles("50,100")
WHOLE_RANGE = 1 << 62


@dataclass(frozen=True, slots=True)
class Worst:
    """A window: its bounds, its samples, and by how many ns these lie above the percentile of the whole range, added up.

    `value_ns` is the window's own percentile, None where its samples cannot carry it, `open` says that it is a lower bound;
    `max_ns` is its p100. `makers` names each group with its part of the excess, largest first.
    """

    start_ns: int
    end_ns: int
    samples: int
    value_ns: int | None
    max_ns: int
    open: bool
    excess_ns: float
    makers: tuple[tuple[str, float], ...]


def worst_windows(answer: Answer, label: str, percentile: Percentile, most: int = 8) -> list[Worst]:
    """Return the windows of all groups together with the largest excess, largest first, then earliest; none without any.

    The excess of a window is the sum, over its samples, of what each lies above the percentile of the whole range (its median,
    where it cannot carry the percentile or nothing lies above that): 3 samples of 4 s weigh more than 10 of 80 ms. Samples
    count as what their bin reports, so it has the error bound of bins. `label` is one of the answer's labels: makers are told
    by it.
    """
    together = regrouped(answer, ())
    if not together.parts:
        return []
    (rows,) = together.parts
    (whole,) = widened(together.parts, WHOLE_RANGE)
    values, highest = percentile_values(rows, percentile), percentile_values(rows, MAX)
    count = rows.samples if rows.completions is None else rows.completions
    values[mixed_rows(together, rows) & ~percentile.carried(count)] = np.nan
    (opens,) = censored(rows, [percentile])
    tries = [float(percentile_values(whole, wanted)[0]) for wanted in (percentile, MEDIAN)]
    usual = next((value for value in tries if not np.isnan(value) and above_of(rows, value).any()), tries[-1])
    above = above_of(rows, usual)
    order = np.lexsort((rows.start_ns, -above))[:most]
    makers = regrouped(answer, (label,))
    unlike = mixed_rows(together, rows).any()
    parts = [part.in_layout(rows.layout) for part in (in_events(makers) if unlike else makers.parts)]
    return [
        Worst(
            int(rows.start_ns[row]),
            int(rows.end_ns[row]),
            int(count[row]),
            None if np.isnan(values[row]) else int(values[row]),
            int(highest[row]),
            bool(opens[row]),
            float(above[row]),
            _makers(parts, int(rows.start_ns[row]), usual),
        )
        for row in order.tolist()
        if above[row] > 0
    ]


def above_of(rows: Intervals[Group], usual_ns: float) -> NDArray[np.float64]:
    """Return of each row by how many ns its samples lie above a latency, added up; in their weights, where samples have any."""
    low, high, *_ = extremes(rows)
    reported = np.clip(rows.layout.values[rows.bins], low[rows.row], high[rows.row])
    above = np.maximum(reported - usual_ns, 0) * rows.counts
    return np.bincount(rows.row, above, len(rows)).astype(np.float64)


def _makers(parts: list[Intervals[Group]], start_ns: int, usual_ns: float) -> tuple[tuple[str, float], ...]:
    makers: dict[str, float] = {}
    for part in parts:
        mine = np.flatnonzero(part.start_ns == start_ns)
        for row, above in zip(mine.tolist(), above_of(part.take(mine), usual_ns).tolist(), strict=True):
            name = part.table[part.series[row]][0]
            makers[name] = makers.get(name, 0.0) + above
    return tuple(sorted(((name, above) for name, above in makers.items() if above), key=lambda pair: (-pair[1], pair[0])))
