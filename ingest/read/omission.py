"""Coordinated omission: the correction of a histogram whose requests were due at a known interval.

A closed-loop generator that waits for a slow answer sends nothing meanwhile: the requests that were due are missing from
its histogram. Where their interval I is known, each sample of value v stands also for those that would have waited behind
it: v - I, v - 2I, ... down to I.

    I = 10 ms, one sample of 35 ms among thousands of 1 ms  ->  35, 25, 15 ms

Right only for service times that were measured without a schedule, never twice, and never for response times. So corrected
counts are a kind of their own (`service.corrected`), taken only when asked for.

Source: HdrHistogram's copyCorrectedForCoordinatedOmission, which takes the highest value of each bin; checked against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ingest.core.errors import counted
from ingest.core.intervals import Int, Intervals
from ingest.core.layout import Layout
from ingest.core.series import CORRECTED, Series, is_mean
from ingest.read.account import Account
from ingest.read.schedule_seen import Seen

MEASURED_FROM_SCHEDULE = ("response", "wait", "lag", "offset", "submission")
MOST_SAMPLES = 1 << 53
DENSE_CELLS = 1 << 21
TOO_MANY = "more samples than can be counted would be added: the expected interval is too short for these latencies"


def corrected_kind(kind: str) -> str:
    """Return the kind of corrected data: `service.corrected`."""
    return f"{kind}.{CORRECTED}" if kind else CORRECTED


def correctable(series: Series) -> bool:
    """Return whether a series may lack what waited: not where time counts from a schedule, and never twice."""
    kind = series.kind
    return not is_mean(kind) and kind not in MEASURED_FROM_SCHEDULE and not kind.endswith(CORRECTED)


def with_corrected(chunks: Iterator[Intervals[Series]], interval_ns: int, account: Account) -> Iterator[Intervals[Series]]:
    """Yield the chunks of a reader, each followed by what of it can be corrected, under the corrected kind.

    The account is left what the correction shows of a schedule.
    """
    seen, series = Seen(), None
    for chunk in chunks:
        yield chunk
        rows = chunk.relabelled(lambda key: key.replaced(kind=corrected_kind(key.kind)) if correctable(key) else None)
        if not len(rows):
            continue
        put_back, dropped = corrected(rows, interval_ns)
        if dropped:
            account.note(f"{counted(dropped, 'interval is', 'intervals are')} not corrected: {TOO_MANY}")
        seen.add(chunk)
        seen.add(put_back)
        series = series or next(iter(chunk.table), None)
        yield put_back
    if series is not None:
        account.schedule.append(seen.digest(series, expected_ns=interval_ns))


def corrected(rows: Intervals[Series], interval_ns: int) -> tuple[Intervals[Series], int]:
    """Return the rows with what was omitted put back, and how many rows had to be left out.

    Counts equal the Java library's, bin by bin. Each sample counts as the highest value of its bin, so the error bound is
    that of the layout, once more for the samples added.
    """
    if interval_ns < 1:
        raise ValueError(f"an expected interval of {interval_ns} ns")
    values = rows.layout.edges[1:] - rows.layout.grain
    added = rows.counts.astype(np.float64) * np.maximum(values[rows.bins] // interval_ns - 1, 0)
    totals = np.zeros(len(rows))
    np.add.at(totals, rows.row, added + rows.counts)
    good = np.flatnonzero(totals < MOST_SAMPLES)
    kept = rows if len(good) == len(rows) else rows.take(good)
    width = int(kept.bins.max(initial=0)) + 1
    step = max(1, DENSE_CELLS // width)
    parts = [_block(kept, first, min(first + step, len(kept)), width, interval_ns) for first in range(0, len(kept), step)]
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([part[0] for part in parts]))]) if parts else np.zeros(1, np.int64)
    bins = np.concatenate([part[1] for part in parts]) if parts else kept.bins
    counts = np.concatenate([part[2] for part in parts]) if parts else kept.counts
    return replace(kept, indptr=indptr, bins=bins, counts=counts, exact=None), len(rows) - len(kept)


def _block(rows: Intervals[Series], first: int, last: int, width: int, interval_ns: int) -> tuple[Int, Int, Int]:
    """Return the lengths, bins and counts of rows first to last, corrected."""
    entries = slice(rows.indptr[first], rows.indptr[last])
    row = np.repeat(np.arange(last - first), np.diff(rows.indptr[first : last + 1]))
    bins, counts = rows.bins[entries], rows.counts[entries]
    dense = np.zeros((last - first, width), np.int64)
    dense[row, bins] = counts
    values = rows.layout.edges[1:] - rows.layout.grain
    order = np.argsort(bins, kind="stable")
    distinct, begins = np.unique(bins[order], return_index=True)
    ends = np.append(begins[1:], len(bins))
    for place in np.flatnonzero(values[distinct] >= 2 * interval_ns).tolist():
        low, weights = _omitted(rows.layout, int(values[distinct[place]]), interval_ns)
        chosen = order[begins[place] : ends[place]]
        dense[row[chosen], low : low + len(weights)] += counts[chosen, None] * weights
    where = np.nonzero(dense)
    return np.bincount(where[0], minlength=last - first), where[1], dense[where]


def _omitted(layout: Layout, value: int, interval_ns: int) -> tuple[int, Int]:
    """Return the first bin and how many of value - I, value - 2I, ... >= I fall into each bin from there on."""
    low, high = (int(index) for index in layout.index(np.array([interval_ns, value - interval_ns])))
    edges = layout.edges[low : high + 2].copy()
    edges[0] = interval_ns
    at_or_above = np.minimum((value - edges) // interval_ns, value // interval_ns - 1)
    return low, -np.diff(np.maximum(at_or_above, 0))
