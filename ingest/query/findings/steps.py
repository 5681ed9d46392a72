"""Steps and drifts: the level of latencies changes at one time and stays, or moves all the time in one direction.

The level is the logarithm of a member's p50, or of its p99, in blocks of windows. What all members do together comes first, then
what those of one host or operation do, then each by itself; a change that was said of many is taken out of them before.
"""

from __future__ import annotations

import math

import numpy as np

from ingest.core.intervals import Int
from ingest.query.findings import of_known
from ingest.query.findings.levels import (
    Change,
    Together,
    all_do,
    block_edges,
    gatherings,
    in_blocks,
    judged,
    pooled,
    quantiles,
    slope_of,
    step_of,
    usable,
    window_of_change,
)
from ingest.query.findings.model import DRIFT, STEP, Claim, Float, Ground

LEAST = 1.2
P50, P99 = "p50", "p99"
SHARES = {P50: 0.5, P99: 0.99}
MOST_CHANGES = 3  # of one set of members
NEAR = 2  # blocks: changes of p50 and p99 of the same members within these are one


def steps(ground: Ground) -> list[Claim]:
    """Return the steps and drifts of a run, what most members do first."""
    edges = block_edges(ground)
    if len(edges) - 1 < 2:
        return []
    moved: list[tuple[str, Together, Change]] = []
    claims = []
    for measure, values in ((P50, ground.p50_ns), (P99, ground.p99_ns)):
        with np.errstate(all="ignore"):
            logs = np.log(judged(np.where(values > 0, values, np.nan), ground.samples))
        for kind, together, change in _changes(logs, edges, gatherings(ground.groups), moved):
            moved.append((kind, together, change))
            claims.append(_claim(ground, kind, measure, together, change, _window(logs, edges, kind, together, change)))
    return claims


def _changes(
    logs: Float, edges: Int, sets: list[Together], known: list[tuple[str, Together, Change]]
) -> list[tuple[str, Together, Change]]:
    """Return kind, members and place of all changes of a measure but those of which another measure (`known`) told."""
    blocks = in_blocks(logs, edges)
    good = set(usable(blocks).tolist())
    rest = blocks.copy()
    for before, together, told in known:
        _take_out(rest, before, together.members, told.place)
    found = []
    tests = 2 * len(sets)
    for together in sets:
        if not good.issuperset(together.members.tolist()):
            continue
        for _ in range(MOST_CHANGES):
            series = pooled(rest, together.members)
            slope = slope_of(series, tests)
            kind = STEP if slope is None else DRIFT
            change = step_of(series, tests) if slope is None else slope
            if change is None or abs(change.size) < math.log(LEAST):
                break
            if not all_do(rest, together.members, change.place, change.size / (1 if kind == STEP else 2)):
                break
            found.append((kind, together, change))
            _take_out(rest, kind, together.members, change.place)
    return found


def _take_out(blocks: Float, kind: str, members: Int, place: int) -> None:
    """Take a change out of the levels of members, in place: of a step each its own, of a drift that of most."""
    if kind == DRIFT:
        rising = np.linspace(-0.5, 0.5, blocks.shape[1])
        filled = [(blocks[code], ~np.isnan(blocks[code])) for code in members.tolist()]
        slopes = [np.polyfit(rising[there], row[there], 1)[0] for row, there in filled if there.sum() > 2]
        blocks[members] -= rising * (np.median(slopes) if slopes else 0.0)
        return
    for code in members.tolist():
        row = blocks[code]
        there = ~np.isnan(row)
        if there[:place].any() and there[place:].any():
            row[place:] -= of_known.median(row[place:]) - of_known.median(row[:place])


def _window(logs: Float, edges: Int, kind: str, together: Together, change: Change) -> int:
    """Return the window at which a change begins: a drift at the first."""
    if kind == DRIFT:
        return 0
    return window_of_change(pooled(logs, together.members, of_known.median), edges, change.place)


def _claim(ground: Ground, kind: str, measure: str, together: Together, change: Change, window: int) -> Claim:
    """Return the claim of a change: levels before and after are those of all samples, of a drift of its first and last tenth."""
    whole = np.flatnonzero(ground.whole)
    if kind == DRIFT:
        tenth = max(len(whole) // 10, 1)
        before, after = whole[:tenth], whole[-tenth:]
    else:
        before, after = whole[whole < window], whole[whole >= window]
    share = SHARES[measure]
    start, reached = (quantiles(ground, together.members, part, (share,))[0] for part in (before, after))
    above = after if change.size > 0 else before
    cells = np.zeros(ground.shape, np.bool_)
    windows = np.arange(ground.shape[1])
    reach = np.ones(len(windows), np.bool_) if kind == DRIFT else (windows >= window) == (change.size > 0)
    cells[np.ix_(together.members, reach)] = True
    low, high = quantiles(ground, together.members, above, (0.25, 0.99))
    return Claim(
        kind=kind,
        who=together.who,
        start_ns=int(ground.start_ns[window]),
        end_ns=int(ground.start_ns[-1]) + ground.step_ns,
        cells=cells,
        value_ns=reached,
        times=reached / start if start > 0 else None,
        samples=int(ground.samples[np.ix_(together.members, above)].sum()),
        certainty=change.certainty,
        latency_ns=(int(low), int(high)),
        details={"measure": measure, "from_ns": start, "to_ns": reached, "members": len(together.members)},
    )
