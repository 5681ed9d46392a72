"""Members held against their peers, those that do the same: slow throughout, throttled, and unequal work."""

from __future__ import annotations

import math

import numpy as np

from ingest.query.findings.blocks import THROUGHOUT, Blocks, agree, beyond_peers, throughout
from ingest.query.findings.ground import member, peers_of
from ingest.query.findings.model import IMBALANCE, SLOW_MEMBER, THROTTLED, Claim, Float, Ground, Labels

BEYOND = 1.25
CEILING = 0.8  # of the median rate of peers
STEADY, STEADIER = 0.05, 0.5  # coefficients of variation: at most this, or at most this share of the peers'
COUNTED = 400  # completions in a window that a rate is taken of, so that counting by itself varies it by 5 % at most
MOST = 0.5  # of the run
UNEQUAL = 1.5
LEAST_BLOCKS = 5
SAMPLED = 100


def slow_members(ground: Ground) -> list[Claim]:
    """Return a claim for each group whose p50 or p99 is beyond all its peers throughout."""
    blocks = throughout(ground)
    claims = []
    for code, labels in enumerate(ground.groups):
        found = _slower(blocks, ground, code, THROUGHOUT)
        if found is not None:
            claims.append(_claim(SLOW_MEMBER, [code], labels, ground, found))
    return claims


def throttled_members(ground: Ground) -> list[Claim]:
    """Return a claim for each member (or one operation of it) with a flat ceiling of its rate, and latencies beyond its peers'."""
    blocks = throughout(ground)
    members = sorted({member(labels) for labels in ground.groups})
    if len(members) < 2:
        return []
    rates = {who: _rate(ground, [code for code, labels in enumerate(ground.groups) if member(labels) == who]) for who in members}
    claims: list[Claim] = []
    for who in members:
        codes = [code for code, labels in enumerate(ground.groups) if member(labels) == who]
        others = [rate for other, rate in rates.items() if other != who]
        slower = [found for code in codes if (found := _slower(blocks, ground, code, MOST)) is not None]
        ceiling = _ceiling(rates[who], others)
        if ceiling is not None and slower:
            claims.append(_claim(THROTTLED, codes, who, ground, max(slower), ceiling))
            continue
        for code in codes:
            found = _slower(blocks, ground, code, MOST)
            ceiling = _ceiling(_rate(ground, [code]), [_rate(ground, [peer]) for peer in peers_of(ground, code)])
            if ceiling is not None and found is not None:
                claims.append(_claim(THROTTLED, [code], ground.groups[code], ground, found, ceiling))
    return claims


def imbalances(ground: Ground) -> list[Claim]:
    """Return a claim for each group that completes far more, or far fewer, than all its peers throughout.

    Where there are two the one that does more is named, and nothing where a peer is slow or throttled: that explains it.
    """
    blocks = throughout(ground)
    explained = {code for code in range(len(ground.groups)) if _slower(blocks, ground, code, MOST) is not None}
    claims = []
    totals = blocks.samples.sum(axis=1)
    with np.errstate(divide="ignore"):
        fewer = 1 / blocks.samples
    for code, labels in enumerate(ground.groups):
        peers = peers_of(ground, code)
        if explained.intersection([code, *peers]) or not agree(totals, ground, code) or totals[code] < SAMPLED:
            continue
        more = beyond_peers(blocks.samples, ground, code, UNEQUAL) >= THROUGHOUT
        less = len(peers) > 1 and beyond_peers(fewer, ground, code, UNEQUAL) >= THROUGHOUT
        if more or less:
            times = float(totals[code] / np.median(totals[peers]))
            claims.append(_whole(IMBALANCE, [code], labels, ground, times, {"more": more}))
    return claims


def _slower(blocks: Blocks, ground: Ground, code: int, share: float) -> tuple[float, float, float, str] | None:
    """Return how many times slower a group is than its peers at p50 or p99, its value and theirs in ns, and which; else None.

    It is where it is beyond all of them in that share of blocks, and they agree with each other better than with it.
    """
    if not peers_of(ground, code) or blocks.samples[code].sum() < SAMPLED or (blocks.samples[code] > 0).sum() < LEAST_BLOCKS:
        return None
    best = None
    for name, values in (("p50", blocks.p50_ns), ("p99", blocks.p99_ns)):
        levels = _middles(values)
        if beyond_peers(values, ground, code, BEYOND) < share or not agree(levels, ground, code):
            continue
        theirs = float(np.median(levels[peers_of(ground, code)]))
        found = (float(levels[code]) / theirs, float(levels[code]), theirs, name)
        best = found if best is None else max(best, found)
    return best


def _middles(values: Float) -> Float:
    """Return the median of each row over what is known, NaN where nothing is."""
    return np.array([float(np.median(row[~np.isnan(row)])) if (~np.isnan(row)).any() else math.nan for row in values])


def _rate(ground: Ground, codes: list[int]) -> Float:
    """Return the completions of groups together in the windows that lie wholly within the data."""
    rate: Float = ground.samples[codes].sum(axis=0)[ground.whole].astype(np.float64)
    return rate


def _varies(rate: Float, width: int) -> float:
    """Return the coefficient of variation of a rate in stretches of so many windows; infinite where they are too few."""
    stretches = rate[: len(rate) // width * width].reshape(-1, width).sum(axis=1)
    if len(stretches) < LEAST_BLOCKS or not stretches.mean():
        return math.inf
    return float(stretches.std(ddof=1) / stretches.mean())


def _ceiling(rate: Float, others: list[Float]) -> tuple[float, float, float] | None:
    """Return the share of the peers' rate that a rate stays below, how much it varies and they do; None where it is no ceiling."""
    if not others or not len(rate) or not np.median(rate):
        return None
    theirs = np.median(np.array(others), axis=0)
    usual = float(np.median(theirs))
    if not usual or float(np.mean(rate < CEILING * theirs)) < THROUGHOUT or float(np.median(rate)) >= CEILING * usual:
        return None
    width = max(1, math.ceil(COUNTED / float(np.median(rate))))
    own, peers = _varies(rate, width), float(np.median([_varies(other, width) for other in others]))
    if own > max(STEADY, STEADIER * peers if math.isfinite(peers) else 0.0):
        return None
    return float(np.median(rate)) / usual, own, peers


def _claim(
    kind: str,
    codes: list[int],
    who: Labels,
    ground: Ground,
    found: tuple[float, float, float, str],
    ceiling: tuple[float, float, float] | None = None,
) -> Claim:
    times, value, theirs, percentile = found
    details = {"typical_ns": theirs, "percentile": percentile, "ceiling": ceiling, "rate": _per_second(ground, codes)}
    claim = _whole(kind, codes, who, ground, times, details)
    low, high = theirs, float(np.nanmax(ground.top_ns[codes]))
    return Claim(
        kind,
        who,
        claim.start_ns,
        claim.end_ns,
        claim.cells,
        value_ns=value,
        times=times,
        samples=claim.samples,
        certainty=claim.certainty,
        latency_ns=(int(low), math.ceil(high) + 1),
        details=details,
    )


def _per_second(ground: Ground, codes: list[int]) -> float:
    rate = _rate(ground, codes)
    return float(np.median(rate)) * 1e9 / ground.step_ns if len(rate) else 0.0


def _whole(kind: str, codes: list[int], who: Labels, ground: Ground, times: float, details: dict[str, object]) -> Claim:
    """Return a claim about the whole run of some groups."""
    cells = np.zeros(ground.shape, np.bool_)
    cells[codes] = True
    filled = np.flatnonzero(ground.samples[codes].sum(axis=0))
    return Claim(
        kind=kind,
        who=who,
        start_ns=int(ground.start_ns[filled[0]]),
        end_ns=int(ground.start_ns[filled[-1]]) + ground.step_ns,
        cells=cells,
        times=times,
        samples=int(ground.samples[codes].sum()),
        certainty=abs(math.log(times)),
        details=details,
    )
