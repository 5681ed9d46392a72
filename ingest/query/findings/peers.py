"""Members held against their peers, those that do the same: slow throughout, throttled, and unequal work.

A peer does not count at a time at which it has a finding of its own, such as an episode, unless no other is left then.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ingest.core.intervals import Bool, merged
from ingest.core.ranks import Ranked, parse_percentiles
from ingest.query.findings import of_known
from ingest.query.findings.blocks import THROUGHOUT, Stretches, beyond_peers, stretches_of, usual_peers
from ingest.query.findings.ground import OP, apart, covered_groups, member, most_times, peers_of
from ingest.query.findings.model import (
    DRIFT,
    EPISODE,
    IMBALANCE,
    MODES,
    RHYTHM,
    SECOND,
    SLOW_MEMBER,
    STALL,
    STEP,
    THROTTLED,
    Claim,
    Float,
    Ground,
    Labels,
)
from ingest.query.spans import together

BEYOND = 1.25
CEILING = 0.8  # of the median rate of peers
STEADIER = 0.5  # of the coefficient of variation of peers
STEADY, QUEUED = 0.05, 2.0  # or at most this much, while this many times as many operations are under way
COUNTED = 400  # completions in a stretch that a rate is taken of, so that counting by itself varies it by 5 % at most
MOST = 0.5  # of the run
UNEQUAL = 1.5
LEAST_STRETCHES = 5
SAMPLED = 100
BOTH = 2  # sides of a valley
OWN = (STALL, RHYTHM, EPISODE, STEP, DRIFT)  # of which a peer may have one that the member has not


@dataclass(frozen=True, slots=True)
class Level:
    """A percentile of each group in stretches of the run, and over all of it, ns (G, stretches) and (G).

    Of all samples, or of those on one side of the valley between modes, which all of `groups` have.
    """

    name: str
    ns: Float
    whole_ns: Float
    groups: frozenset[int]
    above_ns: float
    upto_ns: float

    @property
    def valley_ns(self) -> float:
        """Return the latency between two modes that it is on one side of, 0 where it is of all samples."""
        return self.above_ns if math.isinf(self.upto_ns) else self.upto_ns


@dataclass(frozen=True, slots=True)
class Slower:
    """A group that is slower than its peers: how many times, its value and that of the middle peer in ns, at which level."""

    times: float
    value_ns: float
    theirs_ns: float
    level: Level
    op: str
    throughout: float  # the share of stretches in which it is
    worse: tuple[int, ...]  # peers that do not count, as they are further from the others still


@dataclass(frozen=True, slots=True)
class Work:
    """What groups complete in each whole window, and how many are under way: rate times mean latency (Little's law)."""

    rate: Float
    under_way: float


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A rate that stays below that of peers: its share of theirs, and the coefficient of variation of it and of theirs."""

    share: float
    varies: float
    theirs_vary: float


def beside_peers(ground: Ground, so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return the claims about members held against their peers: throttled, slow throughout, unequal work."""
    stretches = stretches_of(ground)
    levels = _levels(ground, stretches, so_far)
    events = [(covered_groups(ground, claim.who), stretches.mostly(claim.cells)) for claim in so_far if claim.kind in OWN]
    slower = [_slower(ground, stretches, levels, events, code) for code in range(len(ground.groups))]
    throttled = _throttled([_worst(some, MOST) for some in slower], ground)
    said = _covered(ground, throttled)
    slow = _slow([_worst(some, THROUGHOUT) for some in slower], said, ground)
    explained = said | _covered(ground, slow) | {code for code, some in enumerate(slower) if _worst(some, MOST) is not None}
    return [*throttled, *slow, *_unequal(stretches.samples, explained, ground)]


def _covered(ground: Ground, claims: Iterable[Claim]) -> set[int]:
    return {code for claim in claims for code in covered_groups(ground, claim.who)}


def _levels(ground: Ground, stretches: Stretches, so_far: Sequence[Claim]) -> list[Level]:
    """Return what members are compared by: p50 and p99, and where members have modes the p50 on either side of the valley."""
    every = frozenset(range(len(ground.groups)))
    wanted = [("p50", 0.5, 0.0, math.inf, every), ("p99", 0.99, 0.0, math.inf, every)]
    for claim in so_far:
        if claim.kind == MODES:
            valley, groups = float((claim.details or {})["valley_ns"]), covered_groups(ground, claim.who)
            wanted += [("p50", 0.5, 0.0, valley, groups), ("p50", 0.5, valley, math.inf, groups)]
    whole = stretches.together()
    return [
        Level(name, stretches.quantile(share, low, high), whole.quantile(share, low, high)[:, 0], groups, low, high)
        for name, share, low, high, groups in wanted
    ]


def _slower(
    ground: Ground, stretches: Stretches, levels: Sequence[Level], events: Sequence[tuple[frozenset[int], Bool]], code: int
) -> list[Slower]:
    """Return at which levels a group is slower than its peers: p50, p99, and both of its modes where it is so at both."""
    filled, alike = stretches.samples[code], peers_of(ground, code)
    if not alike or filled.sum() < SAMPLED or (filled > 0).sum() < LEAST_STRETCHES:
        return []
    theirs_alone = [cells for groups, cells in events if code not in groups]
    aside = np.logical_or.reduce(theirs_alone) if theirs_alone else np.zeros(stretches.samples.shape, np.bool_)
    out = []
    for level in levels:
        if not level.groups.issuperset((code, *alike)):
            continue
        counting = np.where(aside, np.nan, level.ns)
        none = np.isnan(counting[alike]).all(axis=0)
        counting[:, none] = level.ns[:, none]
        middles = of_known.median(counting, axis=1)
        peers = usual_peers(middles, ground, code, BEYOND)
        throughout = beyond_peers(counting, peers, code, BEYOND)
        if throughout < MOST:
            continue
        value, theirs = float(level.whole_ns[code]), sorted(level.whole_ns[peers].tolist())[(len(peers) - 1) // 2]
        if apart(ground, theirs, value):
            worse = tuple(peer for peer in alike if peer not in peers and middles[peer] > middles[code])
            op = dict(ground.groups[code]).get(OP, "")
            out.append(Slower(value / theirs, value, theirs, level, op, throughout, worse))
    sides = Counter(each.level.valley_ns for each in out)
    return [each for each in out if sides[each.level.valley_ns] == BOTH or not each.level.valley_ns]


def _worst(slower: Sequence[Slower], share: float) -> Slower | None:
    """Return where a group is slowest, of those in that share of stretches: at p50 or p99, else in one of its modes."""
    long = [each for each in slower if each.throughout >= share]
    plain = [each for each in long if not each.level.valley_ns]
    return max(plain or long, key=lambda each: each.times, default=None)


def _slow(slower: Sequence[Slower | None], said: set[int], ground: Ground) -> list[Claim]:
    """Return a claim for each group that is slower than its peers throughout; none while a peer that is worse is not said."""
    known = said | {code for code, found in enumerate(slower) if found is not None}
    return [
        _claim(SLOW_MEMBER, [code], ground.groups[code], ground, found)
        for code, found in enumerate(slower)
        if found is not None and known.issuperset(found.worse)
    ]


def _throttled(slower: Sequence[Slower | None], ground: Ground) -> list[Claim]:
    """Return a claim for each member, or one operation of it, with a flat ceiling of its rate and latencies beyond its peers'."""
    members = sorted({member(labels) for labels in ground.groups})
    if len(members) < 2:
        return []
    codes_of = {who: [code for code, labels in enumerate(ground.groups) if member(labels) == who] for who in members}
    works = {who: _work(ground, codes) for who, codes in codes_of.items()}
    alone = [_work(ground, [code]) for code in range(len(ground.groups))]
    claims: list[Claim] = []
    for who, codes in codes_of.items():
        own = [found for code in codes if (found := slower[code]) is not None]
        ceiling = _ceiling(works[who], [work for other, work in works.items() if other != who]) if own else None
        if ceiling is not None and ceiling.share * most_times(ground, codes) < CEILING:
            claims.append(_claim(THROTTLED, codes, who, ground, max(own, key=lambda each: each.times), ceiling))
            continue
        for code in codes:
            found = slower[code]
            if found is None:
                continue
            ceiling = _ceiling(alone[code], [alone[peer] for peer in peers_of(ground, code)])
            if ceiling is not None and ceiling.share * most_times(ground, [code]) < CEILING:
                claims.append(_claim(THROTTLED, [code], ground.groups[code], ground, found, ceiling))
    return claims


def _unequal(samples: Float, explained: set[int], ground: Ground) -> list[Claim]:
    """Return a claim for each group that completes far more, or far fewer, than its peers throughout.

    Peers that are slow or throttled are left aside, and one that does fewer because it is: that explains it. Of two the one that
    does more is named. It must be so whatever those that do fewer lack.
    """
    totals = samples.sum(axis=1)
    with np.errstate(divide="ignore"):
        fewer = 1 / samples
    most = cache(lambda code: most_times(ground, [code]))
    claims = []
    for code, labels in enumerate(ground.groups):
        every = [peer for peer in peers_of(ground, code) if totals[peer] >= SAMPLED]
        others = [peer for peer in every if peer not in explained]
        if totals[code] < SAMPLED or not others:
            continue
        above = [peer for peer in usual_peers(totals, ground, code, UNEQUAL) if peer in others]
        below = [peer for peer in usual_peers(1 / np.maximum(totals, 1), ground, code, UNEQUAL) if peer in others]
        more = beyond_peers(samples, above, code, UNEQUAL) >= THROUGHOUT
        less = len(every) > 1 and code not in explained and beyond_peers(fewer, below, code, UNEQUAL) >= THROUGHOUT
        if not more and not less:
            continue
        peers = above if more else below
        times = float(totals[code] / np.median(totals[peers]))
        least = totals[code] / np.median([totals[peer] * most(peer) for peer in peers]) if more else 1 / (times * most(code))
        if least >= UNEQUAL:
            claims.append(_whole(IMBALANCE, [code], labels, ground, times, {"more": more}))
    return claims


def _overall(ground: Ground, code: int, name: str) -> float:
    """Return a percentile of a group over the whole run in ns, as the command of the finding shows it."""
    rows = ground.rows.take(np.flatnonzero(ground.group_of == code))
    whole = merged([together(rows.keyed((("",),), np.zeros(len(rows), np.int64)))])
    (percentile,) = parse_percentiles(name)
    return float(Ranked(whole).values(np.zeros(1, np.int64), percentile.ranks(whole.samples))[0])


def _work(ground: Ground, codes: list[int]) -> Work:
    """Return what groups do together in the windows that lie wholly within the data."""
    samples = ground.samples[codes][:, ground.whole].astype(np.float64)
    took = np.nan_to_num(ground.mean_ns[codes][:, ground.whole]) * samples
    return Work(samples.sum(axis=0), float(took.sum()) / max(samples.shape[1] * ground.step_ns, 1))


def _varies(rate: Float, width: int) -> float:
    """Return the coefficient of variation of a rate in stretches of so many windows; infinite where they are too few."""
    stretches = rate[: len(rate) // width * width].reshape(-1, width).sum(axis=1)
    if len(stretches) < LEAST_STRETCHES or not stretches.mean():
        return math.inf
    return float(stretches.std(ddof=1) / stretches.mean())


def _ceiling(work: Work, others: Sequence[Work]) -> Ceiling | None:
    """Return the ceiling that a rate has and those of peers have not; None where it is none.

    It is steadier than theirs. Where it is not (their load may be paced), it is steady at least, while far more operations are
    under way than at peers: a member of a closed loop that is merely slow has as many as they, and a rate as noisy as theirs.
    """
    if not others or not len(work.rate) or not np.median(work.rate):
        return None
    theirs = np.median(np.array([other.rate for other in others]), axis=0)
    usual, own = float(np.median(theirs)), float(np.median(work.rate))
    if not usual or float(np.mean(work.rate < CEILING * theirs)) < THROUGHOUT or own >= CEILING * usual:
        return None
    width = max(1, math.ceil(COUNTED / own))
    varies, they_vary = _varies(work.rate, width), float(np.median([_varies(other.rate, width) for other in others]))
    queued = work.under_way >= QUEUED * float(np.median([other.under_way for other in others]))
    steady = math.isfinite(they_vary) and varies <= STEADIER * they_vary
    return Ceiling(own / usual, varies, they_vary) if steady or (queued and varies <= STEADY) else None


def _claim(kind: str, codes: list[int], who: Labels, ground: Ground, slower: Slower, ceiling: Ceiling | None = None) -> Claim:
    level = slower.level
    details: dict[str, Any] = {"typical_ns": slower.theirs_ns, "op": slower.op}
    details |= {"measure": level.name, "above_ns": level.above_ns, "upto_ns": level.upto_ns}
    if ceiling is not None:
        details |= {"below": ceiling.share, "varies": ceiling.varies, "rate": _per_second(ground, codes)}
    return replace(
        _whole(kind, codes, who, ground, slower.times, details),
        value_ns=slower.value_ns,
        latency_ns=(int(slower.theirs_ns), math.ceil(float(of_known.most(ground.top_ns[codes]))) + 1),
        against=_tail_alone(ground, codes, level),
    )


def _tail_alone(ground: Ground, codes: list[int], level: Level) -> str:
    """Return what speaks against a member that is slow as a whole: that its median is no worse than its peers'."""
    if level.name != "p99":
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
    rate = _work(ground, codes).rate
    return float(np.median(rate)) * SECOND / ground.step_ns if len(rate) else 0.0


def _whole(kind: str, codes: list[int], who: Labels, ground: Ground, times: float, details: dict[str, Any]) -> Claim:
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
