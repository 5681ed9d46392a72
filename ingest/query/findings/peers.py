"""Members held against their peers, those that do the same: slow throughout, throttled, and unequal work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ingest.core.intervals import merged
from ingest.core.ranks import Ranked, parse_percentiles
from ingest.query.findings import of_known
from ingest.query.findings.blocks import THROUGHOUT, Blocks, beyond_peers, throughout, usual_peers
from ingest.query.findings.ground import OP, member, peers_of
from ingest.query.findings.model import IMBALANCE, SLOW_MEMBER, THROTTLED, Claim, Float, Ground, Labels
from ingest.query.spans import together

BEYOND = 1.25
CEILING = 0.8  # of the median rate of peers
STEADY, STEADIER = 0.05, 0.5  # coefficients of variation: at most this, or at most this share of the peers'
COUNTED = 400  # completions in a window that a rate is taken of, so that counting by itself varies it by 5 % at most
MOST = 0.5  # of the run
UNEQUAL = 1.5
LEAST_BLOCKS = 5
SAMPLED = 100

Slower = tuple[float, float, float, str, str]  # times, value and that of a peer in ns, of which percentile of which operation


def beside_peers(ground: Ground) -> list[Claim]:
    """Return the claims about members held against their peers: throttled, slow throughout, unequal work."""
    blocks = throughout(ground)
    slower = [_slower(blocks, ground, code, MOST) for code in range(len(ground.groups))]
    return [*_throttled(slower, ground), *_slow(blocks, ground), *_unequal(blocks, slower, ground)]


def _slow(blocks: Blocks, ground: Ground) -> list[Claim]:
    """Return a claim for each group whose p50 or p99 is beyond all its peers throughout."""
    claims = []
    for code, labels in enumerate(ground.groups):
        found = _slower(blocks, ground, code, THROUGHOUT)
        if found is not None:
            claims.append(_claim(SLOW_MEMBER, [code], labels, ground, found))
    return claims


def _throttled(slower: Sequence[Slower | None], ground: Ground) -> list[Claim]:
    """Return a claim for each member, or one operation of it, with a flat ceiling of its rate and latencies beyond its peers'."""
    members = sorted({member(labels) for labels in ground.groups})
    if len(members) < 2:
        return []
    rates = {who: _rate(ground, [code for code, labels in enumerate(ground.groups) if member(labels) == who]) for who in members}
    claims: list[Claim] = []
    for who in members:
        codes = [code for code, labels in enumerate(ground.groups) if member(labels) == who]
        others = [rate for other, rate in rates.items() if other != who]
        own = [found for code in codes if (found := slower[code]) is not None]
        ceiling = _ceiling(rates[who], others)
        if ceiling is not None and own:
            claims.append(_claim(THROTTLED, codes, who, ground, max(own), ceiling))
            continue
        for code in codes:
            found = slower[code]
            ceiling = _ceiling(_rate(ground, [code]), [_rate(ground, [peer]) for peer in peers_of(ground, code)])
            if ceiling is not None and found is not None:
                claims.append(_claim(THROTTLED, [code], ground.groups[code], ground, found, ceiling))
    return claims


def _unequal(blocks: Blocks, slower: Sequence[Slower | None], ground: Ground) -> list[Claim]:
    """Return a claim for each group that completes far more, or far fewer, than its peers throughout.

    Peers that are slow or throttled are left aside, and one that does fewer because it is: that explains it. Of two the one that
    does more is named.
    """
    slow = {code for code, found in enumerate(slower) if found is not None}
    totals = blocks.samples.sum(axis=1)
    with np.errstate(divide="ignore"):
        fewer = 1 / blocks.samples
    claims = []
    for code, labels in enumerate(ground.groups):
        every = [peer for peer in peers_of(ground, code) if totals[peer] >= SAMPLED]
        others = [peer for peer in every if peer not in slow]
        if totals[code] < SAMPLED or not others:
            continue
        above = [peer for peer in usual_peers(totals, ground, code, UNEQUAL) if peer in others]
        below = [peer for peer in usual_peers(1 / np.maximum(totals, 1), ground, code, UNEQUAL) if peer in others]
        more = beyond_peers(blocks.samples, above, code, UNEQUAL) >= THROUGHOUT
        less = len(every) > 1 and code not in slow and beyond_peers(fewer, below, code, UNEQUAL) >= THROUGHOUT
        times = float(totals[code] / np.median(totals[above if more else below])) if more or less else 1.0
        if max(times, 1 / times) >= UNEQUAL:
            claims.append(_whole(IMBALANCE, [code], labels, ground, times, {"more": more}))
    return claims


def _slower(blocks: Blocks, ground: Ground, code: int, share: float) -> Slower | None:
    """Return how many times slower a group is than its peers at p50 or p99, its value and theirs in ns, and which; else None.

    It is where it is beyond all of them that are not slow themselves in that share of blocks.
    """
    if not peers_of(ground, code) or blocks.samples[code].sum() < SAMPLED or (blocks.samples[code] > 0).sum() < LEAST_BLOCKS:
        return None
    best = None
    for name, values in (("p50", blocks.p50_ns), ("p99", blocks.p99_ns)):
        levels = of_known.median(values, axis=1)
        peers = usual_peers(levels, ground, code, BEYOND)
        if beyond_peers(values, peers, code, BEYOND) < share:
            continue
        value, theirs = (
            _overall(ground, code, name),
            sorted(_overall(ground, peer, name) for peer in peers)[(len(peers) - 1) // 2],
        )
        found = (value / theirs, value, theirs, name, dict(ground.groups[code]).get(OP, ""))
        best = found if best is None else max(best, found)
    return best


def _overall(ground: Ground, code: int, name: str) -> float:
    """Return a percentile of a group over the whole run in ns, as the command of the finding shows it."""
    rows = ground.rows.take(np.flatnonzero(ground.group_of == code))
    whole = merged([together(rows.keyed((("",),), np.zeros(len(rows), np.int64)))])
    (percentile,) = parse_percentiles(name)
    return float(Ranked(whole).values(np.zeros(1, np.int64), percentile.ranks(whole.samples))[0])


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
    """Return the share of the peers' rate that a rate stays below, and how much both vary; None where it is no ceiling."""
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
    found: Slower,
    ceiling: tuple[float, float, float] | None = None,
) -> Claim:
    times, value, theirs, percentile, op = found
    details = {"typical_ns": theirs, "percentile": percentile, "op": op, "ceiling": ceiling, "rate": _per_second(ground, codes)}
    claim = _whole(kind, codes, who, ground, times, details)
    low, high = theirs, float(of_known.most(ground.top_ns[codes]))
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
        against=_tail_alone(ground, codes, percentile),
        details=details,
    )


def _tail_alone(ground: Ground, codes: list[int], percentile: str) -> str:
    """Return what speaks against a member that is slow as a whole: that its median is no worse than its peers'."""
    if percentile != "p99":
        return ""
    for code in codes:
        mine, theirs = _overall(ground, code, "p50"), max(_overall(ground, peer, "p50") for peer in peers_of(ground, code))
        if mine <= theirs:
            what = f"{dict(ground.groups[code]).get(OP, '')} p50".strip()
            return f"its {what} is no worse than that of its peers: half of what it does is as quick as theirs"
    return ""


def of_the_tail(ground: Ground, codes: Iterable[int]) -> bool:
    """Return whether members that are slower than their peers are not so at p50: each within BEYOND of its slowest peer."""
    for code in codes:
        peers = peers_of(ground, code)
        if peers and _overall(ground, code, "p50") >= BEYOND * max(_overall(ground, peer, "p50") for peer in peers):
            return False
    return True


def _per_second(ground: Ground, codes: list[int]) -> float:
    rate = _rate(ground, codes)
    return float(np.median(rate)) * 1e9 / ground.step_ns if len(rate) else 0.0


def _whole(kind: str, codes: list[int], who: Labels, ground: Ground, times: float, details: dict[str, object]) -> Claim:
    """Return a claim about the whole run of some groups."""
    cells = np.zeros(ground.shape, np.bool_)
    cells[codes] = kind != IMBALANCE  # which explains no latency
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
