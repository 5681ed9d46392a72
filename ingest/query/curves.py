"""The percentile curve: latency against 1/(1 - q), of measured histograms and of hgrm and SLA files beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ingest.core.quantiles import reported
from ingest.query.lags import whole_counts
from ingest.query.means import check_bins
from ingest.query.question import Answer
from ingest.query.table import Table, of_rows
from ingest.read.curves import Curve, named_apart

LAST = 100.0

TICKS = 5


def curves(answer: Answer, others: Sequence[Curve] = (), ticks: int = TICKS) -> Table:
    """Return one row per curve and level: curve, percentile (as a share), x = 1/(1 - percentile), value (ns), count so far.

    Windows must span the whole range (step all). Levels halve their distance to 1 every `ticks` steps, as in hgrm. NaN for
    what a file does not hold, and for x at the last level of a curve. Error bound: that of each layout.
    """
    check_bins(answer, "percentile curves")
    measured = _measured(answer, ticks)
    rows = [
        (curve.name, share, x if x < math.inf else math.nan, value, count)
        for curve in (*measured, *named_apart(others, {curve.name for curve in measured}))
        for share, x, value, count in zip(
            curve.shares, curve.x, curve.values_ns, curve.counts or (math.nan,) * len(curve.shares), strict=True
        )
    ]
    return of_rows(rows, {"curve": object, "percentile": None, "x": None, "value": None, "count": float}, ("curve",))


def _measured(answer: Answer, ticks: int) -> list[Curve]:
    """Return the curve of each group of an answer, named by its labels."""
    measured = []
    for part in whole_counts(answer):
        values = reported(part)
        for row in range(len(part)):
            key = part.table[part.series[row]]
            name = ", ".join(label or "-" for label in key) or "all"
            entries = slice(part.indptr[row], part.indptr[row + 1])
            passed = np.cumsum(part.counts[entries]).tolist()
            rows = list(levels(passed, ticks))
            shares = tuple(level / 100 for _, level in rows)
            x = tuple(1 / (1 - share) if share < 1 else math.inf for share in shares)
            shown = values[entries].tolist()
            latencies = tuple(float(shown[at]) for at, _ in rows)
            measured.append(Curve(name, shares, x, latencies, tuple(passed[at] for at, _ in rows)))
    return measured


def levels(cumulative: list[int], ticks: int) -> Iterator[tuple[int, float]]:
    """Yield (entry, percentile level) for each row: levels halve their distance to 100 every `ticks` steps."""
    total, level = cumulative[-1], 0.0
    for at, passed in enumerate(cumulative):
        reached = 100.0 * passed / total
        while reached >= level:
            yield at, level
            halvings = int(math.log(100.0 / (100.0 - level)) / math.log(2)) + 1 if level < LAST else 0
            if not halvings or halvings >= 62:
                break
            level += 100.0 / (ticks * 2**halvings)
            if passed == total:
                break
    if level != LAST or total:
        yield len(cumulative) - 1, LAST
