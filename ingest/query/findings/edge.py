"""Edge: the first or last windows of a run are not like the others, as while a load ramps up or its threads end one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ingest.query.findings.ground import is_lost, member
from ingest.query.findings.model import EDGE, SECOND, Claim, Float, Ground

SHARE, LONGEST_NS = 0.05, 10 * SECOND  # of the run, and at most this long
SLOWER = 2.0  # times the excess of any such stretch within the run
FEWER = 0.7  # of the usual rate
LEAST_RUN = 20
LOST = 0.25  # of the stretch


def edges(ground: Ground, _so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return a claim for each end of the run at which a member has more excess, or fewer completions, than anywhere within."""
    windows = len(ground.start_ns)
    most = min(math.floor(SHARE * windows), LONGEST_NS // ground.step_ns)
    if windows < LEAST_RUN or most < 1:
        return []
    claims = []
    for who in sorted({member(labels) for labels in ground.groups}):
        codes = [code for code, labels in enumerate(ground.groups) if member(labels) == who]
        excess = ground.excess_ns[codes].sum(axis=0)
        completions = ground.samples[codes].sum(axis=0).astype(np.float64)
        for first, last in ((0, most), (windows - most, windows)):
            times, fewer = _slower(excess, first, last), _fewer(completions, ground, first, last)
            if times < SLOWER and not fewer:
                continue
            start, end = int(ground.start_ns[first]), int(ground.start_ns[last - 1]) + ground.step_ns
            if is_lost(ground, codes, start, end, LOST):  # what a log lacks may be counted there: its last row is of all of it
                continue
            cells = np.zeros(ground.shape, np.bool_)
            cells[codes, first:last] = True
            claims.append(
                Claim(
                    kind=EDGE,
                    who=who,
                    start_ns=start,
                    end_ns=end,
                    cells=cells,
                    samples=int(completions[first:last].sum()),
                    missing=fewer,
                    certainty=times if math.isfinite(times) else 0.0,
                    details={"first": first == 0, "slower": times >= SLOWER, "fewer": fewer > 0},
                )
            )
    return claims


def _slower(excess: Float, first: int, last: int) -> float:
    """Return how many times the excess of a stretch is the largest of any stretch of its length outside of both ends."""
    length = last - first
    largest = _largest(excess[length : len(excess) - length], length)
    return float(excess[first:last].sum()) / largest if largest else 0.0


def _fewer(completions: Float, ground: Ground, first: int, last: int) -> float:
    """Return the completions that lack in whole windows of a stretch, 0 unless all that lack are below FEWER of the usual rate.

    And unless SLOWER times as many lack as in any stretch of that length within the run.
    """
    length = last - first
    inside = np.zeros(len(completions), np.bool_)
    inside[length : len(completions) - length] = True
    inner, mine = ground.whole & inside, ground.whole.copy()
    mine[:first] = mine[last:] = False
    if not inner.any() or not mine.any():
        return 0.0
    usual = float(np.median(completions[inner]))
    low = min(FEWER * usual, float(np.quantile(completions[inner], 0.05)))
    lacking = np.where(ground.whole & (completions < low), usual - completions, 0.0)
    missing = float(lacking[mine].sum())
    # A ramp that is longer than the stretch goes on within the run: that is no second one.
    full = np.flatnonzero(inside & (lacking == 0))
    if len(full):
        inside[: full[0]] = inside[full[-1] :] = False
    return missing if missing > SLOWER * _largest(lacking[inside], length) else 0.0


def _largest(values: Float, length: int) -> float:
    """Return the largest sum of so many neighbours, 0 where there are fewer."""
    sums = np.convolve(values, np.ones(length), "valid") if len(values) >= length else np.zeros(1)
    return float(sums.max())
