"""When was it worst, and which series contributed most: the windows with the highest percentile, the samples of their tails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ingest.core.csr import total
from ingest.core.intervals import Intervals
from ingest.core.ranks import Percentile, Ranked, censored, parse_percentiles, percentile_values
from ingest.core.series import Group
from ingest.query.lags import in_events, mixed_rows
from ingest.query.question import Answer, regrouped

MAX = parse_percentiles("100")[0]


@dataclass(frozen=True, slots=True)
class Worst:
    """A window: its bounds and percentile in ns, its samples, and of those in the percentile's bin or above each group's count.

    `open` says that the percentile is a lower bound, `max_ns` its p100. `makers` names each group with its samples, most first.
    """

    start_ns: int
    end_ns: int
    samples: int
    value_ns: int
    max_ns: int
    open: bool
    makers: tuple[tuple[str, int], ...]


def worst_windows(answer: Answer, label: str, percentile: Percentile, most: int = 8) -> list[Worst]:
    """Return the windows of all groups together with the highest percentile, highest first, then earliest.

    `label` is one of the answer's labels: by it the samples at or above the percentile are counted. Windows whose samples
    cannot carry the percentile are left out. Exact where the groups share a layout, else in their common one.
    """
    together = regrouped(answer, ())
    if not together.parts:
        return []
    (rows,) = together.parts
    values = percentile_values(rows, percentile)
    count = rows.samples if rows.completions is None else rows.completions
    values[mixed_rows(together, rows) & ~percentile.carried(count)] = np.nan
    (opens,) = censored(rows, [percentile])
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.lexsort((rows.start_ns[known], -values[known]))][:most]
    bins = Ranked(rows).bins(order, percentile.ranks(rows.samples[order]))
    lower = rows.layout.edges[bins]
    highest = percentile_values(rows, MAX)
    makers = regrouped(answer, (label,))
    unlike = mixed_rows(together, rows).any()
    parts = [part.in_layout(rows.layout) for part in (in_events(makers) if unlike else makers.parts)]
    return [
        Worst(
            int(rows.start_ns[row]),
            int(rows.end_ns[row]),
            int(count[row]),
            int(values[row]),
            int(highest[row]),
            bool(opens[row]),
            _makers(parts, int(rows.start_ns[row]), int(edge)),
        )
        for row, edge in zip(order.tolist(), lower.tolist(), strict=True)
    ]


def _makers(parts: list[Intervals[Group]], start_ns: int, lower_ns: int) -> tuple[tuple[str, int], ...]:
    makers: dict[str, int] = {}
    for part in parts:
        for row in np.flatnonzero(part.start_ns == start_ns).tolist():
            entries = slice(int(part.indptr[row]), int(part.indptr[row + 1]))
            above = part.layout.edges[part.bins[entries]] >= lower_ns
            key = part.table[part.series[row]]
            name = key[0]
            makers[name] = makers.get(name, 0) + total(part.counts[entries][above])
    return tuple(sorted(((name, samples) for name, samples in makers.items() if samples), key=lambda pair: (-pair[1], pair[0])))
