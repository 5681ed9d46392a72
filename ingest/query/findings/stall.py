"""Stall: completions of a member stop, then some arrive with latencies as long as the gap.

completions a window   230 228  80   0   0   0  61 229        a dark stretch between windows that complete something
largest latency        1ms 1ms 1ms          ... 4.0s 1ms      samples of at least half the gap: what was under way
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ingest.core.intervals import Bool
from ingest.query.findings import of_known
from ingest.query.findings.ground import is_lost, member
from ingest.query.findings.model import SECOND, STALL, Claim, Float, Ground, Labels

DARK = 0.2  # of the usual rate
LEAST_NS = SECOND
CHANCE = 8.0  # times the longest gap that chance would make
LATE = 0.5  # of the gap
AFTER = 2  # windows after the gap in which late samples arrive
LEAST_LIVE = 2  # windows that the usual rate is taken of
FEW, LONGER = 4, 3.0  # where there are more gaps than that, one counts only if it is that much longer than the median gap
NO_LATE_ONE = "no late completion came afterwards: nothing was under way, as when the load itself pauses"


@dataclass(frozen=True, slots=True)
class Gap:
    """A dark stretch: its first window and the one after its last, when it began and ended in ns, what did not complete."""

    first: int
    last: int
    start_ns: int
    end_ns: int
    missing: float


def stalls(ground: Ground, _so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return a claim for each stall of a member with all that it does, and of single operations where the rest went on.

    None where samples of that time are known to be missing: rows that a log has lost look like a stall.
    """
    members = sorted({member(labels) for labels in ground.groups})
    claims, dark = [], np.zeros(ground.shape, np.bool_)
    for who in members:
        codes = [code for code, labels in enumerate(ground.groups) if member(labels) == who]
        for gap in gaps(ground.samples[codes].sum(axis=0).astype(np.float64), ground):
            if is_lost(ground, codes, gap.start_ns, gap.end_ns):
                continue
            claims.append(_claim(gap, codes, who, ground))
            dark[codes, max(gap.first - 1, 0) : gap.last + 1] = True
    for code, labels in enumerate(ground.groups):
        if sum(member(other) == member(labels) for other in ground.groups) == 1:
            continue
        own = gaps(ground.samples[code].astype(np.float64), ground)
        own = [gap for gap in own if not is_lost(ground, [code], gap.start_ns, gap.end_ns)]
        claims += [_claim(gap, [code], labels, ground) for gap in own if not dark[code, gap.first : gap.last].any()]
    return claims


def gaps(completions: Float, ground: Ground) -> list[Gap]:
    """Return the stretches in which a series of completions stops, between windows in which it does not.

    A stretch that is dark in part of its first or last window begins or ends within it, by how much is missing there.
    """
    live = completions[ground.whole & (completions > 0)]
    if len(live) < LEAST_LIVE:
        return []
    usual, step = float(np.median(live)), ground.step_ns
    dark: Bool = completions < DARK * usual
    edges = np.flatnonzero(np.diff(np.concatenate([[False], dark, [False]]).astype(np.int8)))
    stretches = [
        _gap(first, last, completions, usual, ground)
        for first, last in edges.reshape(-1, 2).tolist()
        if first > 0 and last < len(completions) and completions[:first].any() and completions[last:].any()
    ]
    rate = usual / step
    longest = math.log(max(rate * step * len(completions), math.e)) / rate
    lengths = [gap.end_ns - gap.start_ns for gap in stretches]
    least = max(LEAST_NS, CHANCE * longest)
    if len(lengths) > FEW:
        least = max(least, LONGER * float(np.median(lengths)))
    return [gap for gap, length in zip(stretches, lengths, strict=True) if length >= least]


def _gap(first: int, last: int, completions: Float, usual: float, ground: Ground) -> Gap:
    step = ground.step_ns
    lacking = np.maximum(1 - completions[first - 1 : last + 1] / usual, 0.0)
    noise = 3 / math.sqrt(usual)
    before, after = (0.0 if part < noise else part for part in (float(lacking[0]), float(lacking[-1])))
    return Gap(
        first,
        last,
        int(ground.start_ns[first]) - round(before * step),
        int(ground.start_ns[last]) + round(after * step),
        (float(lacking[1:-1].sum()) + before + after) * usual,
    )


def _claim(gap: Gap, codes: list[int], who: Labels, ground: Ground) -> Claim:
    length, began = gap.end_ns - gap.start_ns, gap.start_ns
    first, last = max(gap.first - 1, 0), min(gap.last + AFTER, len(ground.start_ns))
    groups, windows = np.array(codes, np.int64), np.arange(first, last)
    counts = ground.counts(groups, windows)
    layout = ground.rows.layout
    late = np.flatnonzero((counts > 0) & (layout.values >= LATE * length))
    top = float(of_known.most(ground.top_ns[codes, first:last])) if len(late) else None
    if top is not None and abs(length - top) <= ground.step_ns:  # what ends with the gap was under way since it began
        began, length = gap.end_ns - round(top), round(top)
    typical = _typical_p99(codes, ground)
    cells = np.zeros(ground.shape, np.bool_)
    cells[codes, first:last] = len(late) > 0  # without late ones the gap explains no latency
    return Claim(
        kind=STALL,
        who=who,
        start_ns=began,
        end_ns=gap.end_ns,
        cells=cells,
        value_ns=top,
        times=None if top is None or not typical else top / typical,
        samples=int(counts[late].sum()),
        missing=gap.missing,
        certainty=length / LEAST_NS,
        latency_ns=(int(layout.edges[late[0]]), math.ceil(top or 0) + 1) if len(late) else None,
        against="" if len(late) else NO_LATE_ONE,
        details={"typical_ns": typical, "gap_ns": length, "silent": not ground.samples[codes, gap.first : gap.last].any()},
    )


def _typical_p99(codes: list[int], ground: Ground) -> float:
    """Return the median of the p99s of groups over all windows, the highest of them, in ns."""
    return max(float(of_known.median(ground.p99_ns[code])) for code in codes)
