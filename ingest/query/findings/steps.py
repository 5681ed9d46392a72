"""Steps and drifts: the level of latencies changes at one time and stays, or moves all the time in one direction.

What most members do together comes first, then what those of one host or operation do, then each by itself; a change that was
said of many is taken out of each of them before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Bool, Int
from ingest.query.findings.changes import Change, changes_of
from ingest.query.findings.ground import apart
from ingest.query.findings.levels import (
    Measure,
    Together,
    all_do,
    block_edges,
    classes_of,
    gatherings,
    measures,
    passing,
    pooled,
    quantile,
    usable,
    window_of_change,
)
from ingest.query.findings.model import DRIFT, Claim, Float, Ground

LEAST = 1.2
MOST_CHANGES = 3  # of one set of members


@dataclass(frozen=True, slots=True)
class Moved:
    """A change of some members together."""

    together: Together
    change: Change


def steps(ground: Ground, so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return the steps and drifts of a run, what most members do first."""
    edges = block_edges(ground)
    if len(edges) - 1 < 2:
        return []
    aside = passing(ground, so_far)
    known: list[Moved] = []
    claims = []
    for measure in measures(ground, so_far, edges, aside):
        for moved in _moves(measure.blocks, gatherings(ground.groups), known):
            known.append(moved)
            claim = _claim(ground, measure, moved, _window(ground, measure, moved, aside, edges), aside)
            claims += [claim] if claim is not None else []
    return claims


def _moves(blocks: Float, sets: list[Together], known: Sequence[Moved]) -> list[Moved]:
    """Return the changes of a measure but those of which another measure (`known`) told."""
    good = set(usable(blocks).tolist())
    rest = blocks.copy()
    for moved in known:
        _take_out(rest, moved)
    found: list[Moved] = []
    for together in sets:
        if not good.issuperset(together.members.tolist()):
            continue
        for _ in range(MOST_CHANGES):
            changes = changes_of(pooled(rest, together.members), 2 * len(sets), math.log(LEAST))
            new = [Moved(together, change) for change in changes if all_do(rest, together.members, change)]
            for moved in new:
                _take_out(rest, moved)
            found += new
            if not new:
                break
    return found


def _take_out(blocks: Float, moved: Moved) -> None:
    """Take a change out of the levels of its members, in place."""
    blocks[moved.together.members] -= moved.change.shape(blocks.shape[1])


def _window(ground: Ground, measure: Measure, moved: Moved, aside: Bool, edges: Int) -> int:
    """Return the window at which a change begins: a drift at the first."""
    if moved.change.kind == DRIFT:
        return 0
    members = moved.together.members
    return window_of_change(ground, members, classes_of(ground, members, measure), aside, edges, moved.change.place)


def _claim(ground: Ground, measure: Measure, moved: Moved, window: int, aside: Bool) -> Claim | None:
    """Return the claim of a change; None where its levels lie within one bin or next to it.

    Levels before and after are those of all samples of the measure but of what passes, of a drift in its first and last tenth.
    A step is about its slower part: the time before it where latencies fell.
    """
    together, change = moved.together, moved.change
    whole = np.flatnonzero(ground.whole & ~aside[together.members].any(axis=0))
    if change.kind == DRIFT:
        tenth = max(len(whole) // 10, 1)
        before, after = whole[:tenth], whole[-tenth:]
    else:
        before, after = whole[whole < window], whole[whole >= window]
    code = int(together.members[0])
    share = float(measure.share[code])
    start, reached = (quantile(ground, together.members, part, measure, share) for part in (before, after))
    if not apart(ground, start, reached):
        return None
    slow = after if reached > start else before
    windows = np.arange(ground.shape[1])
    reach = windows >= 0 if change.kind == DRIFT else (windows >= window) == (reached > start)
    cells = np.zeros(ground.shape, np.bool_)
    cells[np.ix_(together.members, reach)] = True
    low, high = (quantile(ground, together.members, slow, measure, at) for at in (0.25, 0.99))
    first, last = np.flatnonzero(reach)[[0, -1]]
    return Claim(
        kind=change.kind,
        who=together.who,
        start_ns=int(ground.start_ns[first]),
        end_ns=int(ground.start_ns[last]) + ground.step_ns,
        cells=cells,
        value_ns=reached,
        times=reached / start if start > 0 else None,
        samples=int(ground.samples[np.ix_(together.members, slow)].sum()),
        certainty=change.certainty,
        latency_ns=(int(low), int(high)),
        details={
            "measure": f"p{100 * share:.0f}",
            "from_ns": start,
            "to_ns": reached,
            "above_ns": float(measure.above_ns[code]),
            "upto_ns": float(measure.upto_ns[code]),
            "at_ns": int(ground.start_ns[window]),
        },
    )
