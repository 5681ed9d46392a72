"""The shapes of a problem: stall, slow or throttled member, modes, rhythm, episode, edge, step and drift, omission.

Episode: a stretch of windows far beyond what is typical, with typical ones before and after it.

    log p99     - - - - - - = = = = = - - - -      = beyond the median by FAR deviations of the windows and by LEAST times
                           |stretch|

A stretch counts where chance would not string so many such windows together, given how often the other windows are beyond and how
often one follows another: so a tail that is heavy everywhere, or comes back all the time, is no episode. One window alone counts
where it is ALONE times beyond all others.

Where the level is raised for long (a warm-up, a step), stretches are looked for once more against the level around them: a pause
within a warm-up is an episode, too. There a FEW stretches count that are ALONE times beyond all windows outside of them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ingest.core.grid import SECOND
from ingest.core.intervals import Bool, Int
from ingest.core.layout import Float
from ingest.core.quantiles import Ranked, parse_percentiles
from ingest.query.story.ground import (
    DRIFT,
    EDGE,
    EPISODE,
    IMBALANCE,
    MODES,
    OMISSION,
    OP,
    RHYTHM,
    SLOW_MEMBER,
    STALL,
    STEP,
    THIN,
    THROTTLED,
    THROUGHOUT,
    Blocks,
    Claim,
    Ground,
    Labels,
    Stretches,
    apart,
    as_one,
    beyond_peers,
    carrying,
    covered_groups,
    in_blocks,
    is_lost,
    known_mean,
    known_median,
    known_most,
    member,
    most_times,
    peers_of,
    stretches_of,
    usual_peers,
)
from ingest.query.story.levels import (
    Change,
    Measure,
    Together,
    all_do,
    block_edges,
    changes_of,
    classes_of,
    gatherings,
    judged,
    levels_in_blocks,
    logarithms,
    measures,
    passing,
    pooled,
    quantile,
    usable,
    window_of_change,
)
from ingest.read.schedule import OMISSION as WARNING

# Stall: completions of a member stop, then some arrive with latencies as long as the gap.
#
# completions a window   230 228  80   0   0   0  61 229        a dark stretch between windows that complete something
# largest latency        1ms 1ms 1ms          ... 4.0s 1ms      samples of at least half the gap: what was under way


DARK = 0.2  # of the usual rate
LEAST_NS = SECOND
STALL_CHANCE = 8.0  # times the longest gap that chance would make
LATE = 0.5  # of the gap
AFTER = 2  # windows after the gap in which late samples arrive
LEAST_LIVE = 2  # windows that the usual rate is taken of
STALL_FEW, LONGER = 4, 3.0  # where there are more gaps than that, one counts only if it is that much longer than the median gap
NO_LATE_ONE = "no late completion came afterwards: nothing was under way, as when the load itself pauses"


class Gap(NamedTuple):
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
    members = ground.by_member()
    claims, dark = [], np.zeros(ground.shape, np.bool_)
    for who, codes in members.items():
        for gap in gaps(ground.samples[codes].sum(axis=0).astype(np.float64), ground):
            if is_lost(ground, codes, gap.start_ns, gap.end_ns):
                continue
            claims.append(_stall(gap, codes, who, ground))
            dark[codes, max(gap.first - 1, 0) : gap.last + 1] = True
    for code, labels in enumerate(ground.groups):
        if len(members[member(labels)]) == 1:
            continue
        own = gaps(ground.samples[code].astype(np.float64), ground)
        own = [gap for gap in own if not is_lost(ground, [code], gap.start_ns, gap.end_ns)]
        claims += [_stall(gap, [code], labels, ground) for gap in own if not dark[code, gap.first : gap.last].any()]
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
    least = max(LEAST_NS, STALL_CHANCE * longest)
    if len(lengths) > STALL_FEW:
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


def _stall(gap: Gap, codes: list[int], who: Labels, ground: Ground) -> Claim:
    length, began = gap.end_ns - gap.start_ns, gap.start_ns
    first, last = max(gap.first - 1, 0), min(gap.last + AFTER, len(ground.start_ns))
    groups, windows = np.array(codes, np.int64), np.arange(first, last)
    counts = ground.counts(groups, windows)
    layout = ground.rows.layout
    late = np.flatnonzero((counts > 0) & (layout.values >= LATE * length))
    top = float(known_most(ground.top_ns[codes, first:last])) if len(late) else None
    if top is not None and abs(length - top) <= ground.step_ns:  # what ends with the gap was under way since it began
        began, length = gap.end_ns - round(top), round(top)
    typical = max(float(known_median(ground.p99_ns[code])) for code in codes)  # the highest of the groups
    return Claim(
        kind=STALL,
        who=who,
        start_ns=began,
        end_ns=gap.end_ns,
        cells=ground.cells(codes if len(late) else (), slice(first, last)),  # without late ones the gap explains no latency
        value_ns=top,
        times=None if top is None or not typical else top / typical,
        samples=int(counts[late].sum()),
        missing=gap.missing,
        certainty=length / LEAST_NS,
        latency_ns=(int(layout.lower[late].min()), math.ceil(top or 0) + 1) if len(late) else None,
        against="" if len(late) else NO_LATE_ONE,
        details={"typical_ns": typical, "gap_ns": length, "silent": not ground.samples[codes, gap.first : gap.last].any()},
    )


# Members held against their peers, those that do the same: slow throughout, throttled, and unequal work.
#
# A peer does not count at a time at which it has a finding of its own, such as an episode, unless no other is left then.


BEYOND = 1.25
CEILING = 0.8  # of the median rate of peers
STEADIER = 0.5  # of the coefficient of variation of peers
STEADY, QUEUED = 0.05, 2.0  # or at most this much, while this many times as many operations are under way
COUNTED = 400  # completions in a stretch that a rate is taken of, so that counting by itself varies it by 5 % at most
PEERS_MOST = 0.5  # of the run
UNEQUAL = 1.5
LEAST_STRETCHES = 5
SAMPLED = 100
BOTH = 2  # sides of a valley
OWN = (STALL, RHYTHM, EPISODE, STEP, DRIFT)  # of which a peer may have one that the member has not


class Level(NamedTuple):
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


class Slower(NamedTuple):
    """A group that is slower than its peers: how many times, its value and that of the middle peer in ns, at which level."""

    times: float
    value_ns: float
    theirs_ns: float
    level: Level
    op: str
    throughout: float  # the share of stretches in which it is
    worse: tuple[int, ...]  # peers that do not count, as they are further from the others still


class Work(NamedTuple):
    """What groups complete in each whole window, and how many are under way: rate times mean latency (Little's law)."""

    rate: Float
    under_way: float


class Ceiling(NamedTuple):
    """A rate that stays below that of peers: its share of theirs, and its coefficient of variation."""

    share: float
    varies: float


def beside_peers(ground: Ground, so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return the claims about members held against their peers: throttled, slow throughout, unequal work."""
    stretches = stretches_of(ground)
    levels = _levels(ground, stretches, so_far)
    events = [(covered_groups(ground, claim.who), stretches.mostly(claim.cells)) for claim in so_far if claim.kind in OWN]
    slower = [_slower(ground, stretches, levels, events, code) for code in range(len(ground.groups))]
    throttled = _throttled([_worst(some, PEERS_MOST) for some in slower], ground)
    said = _covered(ground, throttled)
    slow = _slow([_worst(some, THROUGHOUT) for some in slower], said, ground)
    explained = said | _covered(ground, slow) | {code for code, some in enumerate(slower) if _worst(some, PEERS_MOST) is not None}
    return [*throttled, *slow, *_unequal(stretches.samples, explained, ground)]


def _covered(ground: Ground, claims: Iterable[Claim]) -> set[int]:
    return {code for claim in claims for code in covered_groups(ground, claim.who)}


def _levels(ground: Ground, stretches: Stretches, so_far: Sequence[Claim]) -> list[Level]:
    """Return what members are compared by: p50 and p99, and where members have modes the p50 on either side of the valley."""
    every = frozenset(range(len(ground.groups)))
    wanted = [("p50", 0.5, 0.0, math.inf, every), ("p99", 0.99, 0.0, math.inf, every)]
    for claim in so_far:
        if claim.kind == MODES:
            valley, groups = float(claim.details["valley_ns"]), covered_groups(ground, claim.who)
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
    for level in (level for level in levels if level.groups.issuperset((code, *alike))):
        counting = np.where(aside, np.nan, level.ns)
        none = np.isnan(counting[alike]).all(axis=0)
        counting[:, none] = level.ns[:, none]
        middles = known_median(counting, axis=1)
        peers = usual_peers(middles, ground, code, BEYOND)
        throughout = beyond_peers(counting, peers, code, BEYOND)
        if throughout < PEERS_MOST:
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
        _peer(SLOW_MEMBER, [code], ground.groups[code], ground, found)
        for code, found in enumerate(slower)
        if found is not None and known.issuperset(found.worse)
    ]


def _throttled(slower: Sequence[Slower | None], ground: Ground) -> list[Claim]:
    """Return a claim for each member, or one operation of it, with a flat ceiling of its rate and latencies beyond its peers'."""
    codes_of = ground.by_member()
    if len(codes_of) < 2:
        return []
    works = {who: _work(ground, codes) for who, codes in codes_of.items()}
    alone = [_work(ground, [code]) for code in range(len(ground.groups))]
    claims: list[Claim] = []
    for who, codes in codes_of.items():
        own = [found for code in codes if (found := slower[code]) is not None]
        ceiling = _ceiling(works[who], [work for other, work in works.items() if other != who]) if own else None
        if ceiling is not None and ceiling.share * most_times(ground, codes) < CEILING:
            claims.append(_peer(THROTTLED, codes, who, ground, max(own, key=lambda each: each.times), ceiling))
            continue
        for code, found in ((code, found) for code in codes if (found := slower[code]) is not None):
            ceiling = _ceiling(alone[code], [alone[peer] for peer in peers_of(ground, code)])
            if ceiling is not None and ceiling.share * most_times(ground, [code]) < CEILING:
                claims.append(_peer(THROTTLED, [code], ground.groups[code], ground, found, ceiling))
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
    whole = as_one(rows)
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
    return Ceiling(own / usual, varies) if steady or (queued and varies <= STEADY) else None


def _peer(kind: str, codes: list[int], who: Labels, ground: Ground, slower: Slower, ceiling: Ceiling | None = None) -> Claim:
    level = slower.level
    details: dict[str, Any] = {"typical_ns": slower.theirs_ns, "op": slower.op}
    details |= {"measure": level.name, "above_ns": level.above_ns, "upto_ns": level.upto_ns}
    if ceiling is not None:
        rate = _work(ground, codes).rate
        a_second = float(np.median(rate)) * SECOND / ground.step_ns if len(rate) else 0.0
        details |= {"below": ceiling.share, "varies": ceiling.varies, "rate": a_second}
    return replace(
        _whole(kind, codes, who, ground, slower.times, details),
        value_ns=slower.value_ns,
        latency_ns=(int(slower.theirs_ns), math.ceil(float(known_most(ground.top_ns[codes]))) + 1),
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
    beside = ((code, peers) for code in codes if (peers := peers_of(ground, code)))
    p50 = cache(lambda code: _overall(ground, code, "p50"))
    return not any(p50(code) >= BEYOND * max(map(p50, peers)) for code, peers in beside)


def _whole(kind: str, codes: list[int], who: Labels, ground: Ground, times: float, details: dict[str, Any]) -> Claim:
    """Return a claim about the whole run of some groups."""
    filled = np.flatnonzero(ground.samples[codes].sum(axis=0))
    return Claim(
        kind,
        who,
        *ground.span(filled[0], filled[-1]),
        cells=ground.cells(() if kind == IMBALANCE else codes, slice(None)),  # that explains no latency
        times=times,
        samples=int(ground.samples[codes].sum()),
        certainty=abs(math.log(times)),
        details=details,
    )


# Modes: latencies gather at two or more places, and their shares may change during the run.
#
# Places are maxima of the density over the logarithm of latencies, made smooth by a kernel never narrower than the unit that
# was recorded in (a log in whole microseconds has gaps, not modes). Between two modes the density falls to at most VALLEY of
# the lower one. Both have to be there at the same time: what an episode makes slow is no mode.


LEAST_SHARE = 0.05
VALLEY = 2 / 3
LEAST_APART = math.log(1.5)
LEAST_MOVED = 0.1
LEAST_COUNT = 1000
BEYOND_CHANCE = 6.0  # standard deviations of the count at a maximum, that the valley lies below it
KERNEL = 0.1  # of the logarithm: a tenth of the latency
REACH = 6.0  # widths of a kernel from its middle
POINTS = 400
TOGETHER = 0.6  # of the smaller mode, that comes in windows with the other one
FEW_BLOCKS = 10


class Places(NamedTuple):
    """Where a distribution has its maxima (ns), the share of samples at each, and the latencies (ns) of the valleys between."""

    peaks_ns: tuple[float, ...]
    shares: tuple[float, ...]
    valleys_ns: tuple[float, ...]


def modes(ground: Ground, so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return the modes of all members, of those of a host or operation, of each; each member's are said once.

    Claims of shares that change have `details["changes"]`, the others are facts.
    """
    claims: list[Claim] = []
    taken: set[int] = set()
    counts = _counts(ground)  # the bins, and counts of both halves of the run
    sets = gatherings(ground.groups)
    edges, aside = block_edges(ground), passing(ground, so_far)
    for together in sets:
        members = together.members
        if taken & set(members.tolist()):
            continue
        places = _places(ground, counts, members)
        if places is None:
            continue
        below = np.cumsum(places.shares)[:-1]
        valley = places.valleys_ns[int(np.argmin(np.abs(below - 0.5)))]  # the one that divides the samples most evenly
        slow = _above(ground, valley)
        if not _at_once(ground, slow, members):
            continue
        claims.append(_modes(ground, together, places, valley, slow, aside, edges, len(sets)))
        taken |= set(members.tolist())
    return claims


def places_of(ground: Ground, bins: Int, counts: Int) -> Places | None:
    """Return the modes of a histogram, None where it has one; `bins` are those of the counts."""
    used = np.flatnonzero(counts)
    total = int(counts.sum())
    if total < LEAST_COUNT or len(used) < 3:
        return None
    layout = ground.rows.layout
    logs = np.log(np.maximum(layout.middles_of(bins[used]).astype(np.float64), 1.0))
    weights = counts[used].astype(np.float64)
    grid = np.linspace(logs[0] - 3 * KERNEL, logs[-1] + 3 * KERNEL, POINTS)
    gaps = np.diff(logs)
    widths = np.maximum(np.minimum(np.append(gaps, gaps[-1]), np.append(gaps[0], gaps)), KERNEL)
    density = _density(grid, logs, widths, weights)
    peaks, valleys = _kept(density, grid)
    peaks, valleys = _heavy(peaks, valleys, density, grid, logs, weights)
    if len(peaks) < 2:
        return None
    cuts = np.searchsorted(logs, grid[valleys])
    parts = np.add.reduceat(weights, np.concatenate([[0], cuts]))
    return Places(
        tuple(float(math.exp(grid[peak])) for peak in peaks),
        tuple(float(part) / total for part in parts.tolist()),
        tuple(float(math.exp(grid[valley])) for valley in valleys),
    )


def _density(grid: Float, logs: Float, widths: Float, weights: Float) -> Float:
    """Return the sum of normal kernels at the places of a grid; narrow ones, which most are, only where they are not nearly 0."""
    unit, scaled = float(grid[1] - grid[0]), weights / (widths * math.sqrt(2 * math.pi))
    narrow = widths <= 2 * KERNEL
    wide = np.flatnonzero(~narrow)
    density: Float = np.exp(-0.5 * ((grid[:, None] - logs[wide]) / widths[wide]) ** 2) @ scaled[wide]
    if not narrow.any():
        return density
    reach = math.ceil(REACH * float(widths[narrow].max()) / unit)
    place = np.rint((logs[narrow] - grid[0]) / unit).astype(np.int64)[:, None] + np.arange(-reach, reach + 1)
    inside = (place >= 0) & (place < len(grid))
    place = np.clip(place, 0, len(grid) - 1)
    heights = np.exp(-0.5 * ((grid[place] - logs[narrow, None]) / widths[narrow, None]) ** 2) * scaled[narrow, None]
    density += np.bincount(place[inside], heights[inside], len(grid)).astype(np.float64)
    return density


def _places(ground: Ground, counts: tuple[Int, Int], members: Int) -> Places | None:
    """Return the modes of some groups: of the whole run, else of one of its halves, where their shares may tell them apart."""
    bins, halves = counts
    first, second = halves[:, members].sum(axis=1)
    found = (places_of(ground, bins, part) for part in (first + second, first, second))
    return next((places for places in found if places is not None), None)


def _counts(ground: Ground) -> tuple[Int, Int]:
    """Return the bins that are used, and the counts (2, G, bins) of each group in each half of the run."""
    half = (2 * ground.window_of >= ground.shape[1]).astype(np.int64)
    groups = ground.shape[0]
    counts = ground.by_bin(half * groups + ground.group_of, 2 * groups)
    return ground.occupied, counts.reshape(2, groups, -1)


def _kept(density: Float, grid: Float) -> tuple[list[int], list[int]]:
    """Return the places of maxima and of the valleys between them, those of shallow valleys taken together."""
    inner = np.flatnonzero((density[1:-1] > density[:-2]) & (density[1:-1] >= density[2:])) + 1
    peaks = inner.tolist()
    unit = grid[1] - grid[0]
    while len(peaks) > 1:
        valleys = [first + int(density[first:second].argmin()) for first, second in pairwise(peaks)]
        lower = [min(density[first], density[second]) for first, second in pairwise(peaks)]
        ratios = [float(density[valley] / low) for valley, low in zip(valleys, lower, strict=True)]
        for number, (first, second) in enumerate(pairwise(peaks)):
            # The count that a kernel sees is about its height times 2 sqrt(pi) kernel widths.
            seen = lower[number] * 2 * math.sqrt(math.pi) * KERNEL
            if (second - first) * unit < LEAST_APART or seen * (1 - ratios[number]) < BEYOND_CHANCE * math.sqrt(seen):
                ratios[number] = math.inf
        worst = int(np.argmax(ratios))
        if ratios[worst] <= VALLEY:
            return peaks, valleys
        del peaks[worst + (density[peaks[worst]] >= density[peaks[worst + 1]])]
    return peaks, []


def _heavy(
    peaks: list[int], valleys: list[int], density: Float, grid: Float, logs: Float, weights: Float
) -> tuple[list[int], list[int]]:
    """Return the maxima that hold enough of the samples, and the deepest valleys between them."""
    while len(peaks) > 1:
        cuts = np.searchsorted(logs, grid[valleys])
        parts = np.add.reduceat(weights, np.concatenate([[0], cuts])) / weights.sum()
        least = int(np.argmin(parts))
        if parts[least] >= LEAST_SHARE:
            break
        del peaks[least]
        valleys = [first + int(density[first:second].argmin()) for first, second in pairwise(peaks)]
    return peaks, valleys


def _above(ground: Ground, valley_ns: float) -> Float:
    """Return the samples above a latency by group and window, (G, T)."""
    slow = ground.rows.layout.middles_of(ground.rows.bins) > valley_ns
    row = ground.rows.row[slow]
    codes = ground.group_of[row] * ground.shape[1] + ground.window_of[row]
    return np.bincount(codes, ground.rows.counts[slow], math.prod(ground.shape)).reshape(ground.shape).astype(np.float64)


def _at_once(ground: Ground, slow: Float, members: Int) -> bool:
    """Return whether each member has both modes, and has them in the same windows."""
    held = ground.samples[members].astype(np.float64)
    above = slow[members]
    below = held - above
    for high, low in zip(above, below, strict=True):
        smaller = min(high.sum(), low.sum())
        if smaller < LEAST_SHARE / 2 * (high.sum() + low.sum()) or np.minimum(high, low).sum() < TOGETHER * smaller:
            return False
    return True


def _modes(
    ground: Ground, together: Together, places: Places, valley: float, slow: Float, aside: Bool, edges: Int, sets: int
) -> Claim:
    """Return the claim of modes; where the shares change it is about the time with more slow ones."""
    members = together.members
    held = np.maximum(ground.samples, 1)
    shares = np.where(ground.samples > 0, slow / held, np.nan)
    window, before, after = _change(ground, members, shares, slow, valley, aside, edges, sets)
    changes = abs(after - before) >= LEAST_MOVED
    reach = (np.arange(ground.shape[1]) >= window) == (after > before) if changes else np.ones(ground.shape[1], np.bool_)
    return Claim(
        MODES,
        together.who,
        *ground.span(*np.flatnonzero(reach)[[0, -1]]),
        cells=ground.cells(members if changes else (), reach),
        value_ns=places.peaks_ns[-1],
        times=places.peaks_ns[-1] / places.peaks_ns[0],
        samples=int(slow[members].sum()),
        certainty=abs(after - before) if changes else 0.0,
        latency_ns=(int(valley), int(known_most(ground.top_ns[members]))),
        details={
            "changes": changes,
            "peaks_ns": places.peaks_ns,
            "shares": places.shares,
            "valley_ns": valley,
            "before": before,
            "after": after,
            "at_ns": int(ground.start_ns[window]),
        },
    )


def _change(
    ground: Ground, members: Int, shares: Float, slow: Float, valley: float, aside: Bool, edges: Int, sets: int
) -> tuple[int, float, float]:
    """Return at which window the share above the valley changes, and the shares before and after; twice the same without."""
    held = ground.samples[members].sum(axis=0)
    above = slow[members].sum(axis=0)
    overall = float(above.sum() / max(held.sum(), 1))
    blocks = levels_in_blocks(np.where(aside, np.nan, 2 * np.arcsin(np.sqrt(shares))), edges)
    if blocks.shape[1] < FEW_BLOCKS or len(set(usable(blocks).tolist()) & set(members.tolist())) < len(members):
        return 0, overall, overall
    step = next((change for change in changes_of(pooled(blocks, members), sets) if change.kind == STEP), None)
    if step is None or not all_do(blocks, members, step):
        return 0, overall, overall
    slower = (ground.rows.layout.middles_of(np.arange(ground.rows.layout.bins)) > valley).astype(np.int64)
    window = window_of_change(ground, members, np.tile(slower, (len(members), 1)), aside, edges, step.place)
    parts = [(above[part].sum(), held[part].sum()) for part in (slice(0, window), slice(window, None))]
    (slow_before, all_before), (slow_after, all_after) = parts
    return window, float(slow_before / max(all_before, 1)), float(slow_after / max(all_after, 1))


# Rhythms: slow windows, or windows without completions, that come back with a period.
#
# Candidates for periods are peaks of the periodogram against the spectrum around them, summed over harmonics (a short event has
# many). What decides is the fold: in each stretch as long as the period the slowest place is looked up, and these places gather
# at one phase more often than chance (binomial) allows, were each place as likely. The length of the stretches is the period,
# and not a multiple or a fraction of it, if every stretch has its event, and if none of its parts would do as well.


LEAST_PERIODS = 8
RHYTHM_LEAST_WINDOWS = 4  # of a period: below, windows are too coarse to tell phases
LEAST_KEPT = 0.6  # of the stretches, that have their event at the phase
RHYTHM_CHANCE = 0.01
HARMONICS = 5
OVERSAMPLED = 8
LEAST_BEYOND, MOST_BEYOND = 3.0, 8.0  # deviations, that windows are drawn in to: a wild one must not decide
PEAKS = 5  # candidates of a series that are folded
LEAST_PEAK = 40.0  # of the sum over harmonics, in units of the spectrum around; without a rhythm it is at most 37, with one 260
MULTIPLIED, MOST_MULTIPLE = 4, 5
ALIKE = 0.01
RHYTHM_AROUND = 61  # frequencies whose median is the spectrum around one
WIDEST = 0.34  # of a period: what lasts longer is no event
APART = 0.25  # of the contrast of all, that each member has at least
LEAST_TIMES = 1.2
MEASURES = ("p50", "p99", "missing")


@dataclass(frozen=True, slots=True)
class Beat:
    """Events at `first`, `first` + `period`, ..., `width` windows long; how far beyond chance, and in what share of periods."""

    period: float
    first: float
    width: float
    certainty: float
    kept: float

    def windows(self, count: int) -> Bool:
        """Return which of so many windows are those of events, for at least half of what an event may have of a window."""
        return overlaps(count, self.period, self.first, self.width) >= min(self.width, 1.0) / 2


def overlaps(count: int, period: float, first: float, width: float) -> Float:
    """Return what share of each of so many windows lies in events of that width, at `first` and every period from there."""
    since = np.arange(count + 1) - first
    turns = np.floor(since / period)
    return np.diff(turns * width + np.minimum(since - turns * period, width))


def rhythms(ground: Ground, _so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return the rhythms of a run: of all members, of those of a host or an operation, of each."""
    whole = np.flatnonzero(ground.whole)
    span = slice(int(whole[0]), int(whole[-1]) + 1)
    count = span.stop - span.start
    if count < LEAST_PERIODS * RHYTHM_LEAST_WINDOWS:
        return []
    sets = gatherings(ground.groups)
    claims: list[Claim] = []
    taken: set[int] = set()
    for measure, values in _measures(ground, span).items():
        for together in sets:
            if taken & set(together.members.tolist()) or np.isnan(values[together.members]).all():
                continue
            beat = beat_of(_mean(values, together.members), len(sets) * len(MEASURES))
            if beat is None or not _all_have(values, together.members, beat):
                continue
            if (claim := _rhythm(ground, together, beat, measure, span)) is not None:
                claims.append(claim)
                taken |= set(together.members.tolist())
    return claims


def beat_of(series: Float, tests: int) -> Beat | None:
    """Return the rhythm of a series of windows (high is slow), None where it has none that is beyond chance.

    Held to 1 in 100 for all periods, phases and `tests` together.
    """
    folds = (_fold(series, _refined(series, period), tests) for period in _periods(series))
    best = max((beat for beat in folds if beat is not None), key=lambda beat: beat.certainty, default=None)
    return None if best is None else _placed(series, _fundamental(series, best, tests))


def _measures(ground: Ground, span: slice) -> dict[str, Float]:
    """Return what may come back, a row a group: the level of p50, of p99, and completions that are missing; high is bad."""
    measures = {}
    with np.errstate(all="ignore"):
        for name, values in (("p50", ground.p50_ns), ("p99", ground.p99_ns)):
            measures[name] = _levelled(logarithms(judged(values, ground.samples))[:, span])
        rate = ground.samples[:, span] / np.maximum(np.median(ground.samples[:, span], axis=1, keepdims=True), 1)
        measures["missing"] = np.maximum(_levelled(np.where(rate.sum(axis=1, keepdims=True) > 0, -rate, np.nan)), -LEAST_BEYOND)
    return measures


def _levelled(rows: Float) -> Float:
    """Return rows less their median, in units of their usual deviation."""
    out: Float = np.full(rows.shape, np.nan)
    known = np.flatnonzero((~np.isnan(rows)).any(axis=1))
    if len(known):
        centred = rows[known] - known_median(rows[known], axis=1, keepdims=True)
        spread = 1.4826 * known_median(np.abs(centred), axis=1, keepdims=True)
        largest = known_most(np.abs(centred), axis=1, keepdims=True)
        out[known] = centred / np.where(spread > 0, spread, np.where(largest > 0, largest, 1.0))
    return out


def _mean(rows: Float, members: Int) -> Float:
    """Return the mean of members; a window without any counts as usual."""
    values = rows[members]
    held = (~np.isnan(values)).sum(axis=0)
    return np.where(held > 0, np.nansum(values, axis=0) / np.maximum(held, 1), 0.0)


def _periods(series: Float) -> list[float]:
    """Return candidates for the period in windows, the strongest first."""
    count = len(series)
    ranks = np.argsort(np.argsort(series, kind="stable"), kind="stable") / count
    size = 1 << math.ceil(math.log2(OVERSAMPLED * count))
    candidates: list[tuple[float, float]] = []
    # Of the values drawn in, and of their upper ranks alone.
    for values in (np.clip(series, -LEAST_BEYOND, MOST_BEYOND), np.maximum(ranks - 0.8, 0)):
        power = np.abs(np.fft.rfft(values - values.mean(), size)) ** 2
        parts = max(len(power) // (RHYTHM_AROUND * OVERSAMPLED), 1)
        around = np.median(power[: len(power) // parts * parts].reshape(parts, -1), axis=1)
        middles = np.linspace(0, len(power) - 1, len(around))
        white = power / np.maximum(np.interp(np.arange(len(power)), middles, around), 1e-300)
        first, last = math.ceil(size * LEAST_PERIODS / count), size // RHYTHM_LEAST_WINDOWS
        places = np.arange(first, last + 1)
        summed = np.zeros(len(places))
        for harmonic in range(1, HARMONICS + 1):
            inside = places * harmonic < len(white)
            summed[inside] += np.minimum(white[places[inside] * harmonic], 60.0)
        for _ in range(PEAKS):
            best = int(summed.argmax())
            if summed[best] < LEAST_PEAK:
                break
            candidates.append((float(summed[best]), size / float(places[best])))
            summed[max(best - OVERSAMPLED, 0) : best + OVERSAMPLED + 1] = 0.0
    strongest: list[float] = []
    for _, period in sorted(candidates, reverse=True):
        if all(abs(period / other - 1) > ALIKE for other in strongest):
            strongest.append(period)
    # A harmonic of a short event is as strong as the event itself: its multiples are tried, too.
    most = count / LEAST_PERIODS * (1 + ALIKE)
    several = [period * multiple for period in strongest[:MULTIPLIED] for multiple in range(2, MOST_MULTIPLE + 1)]
    return strongest + [period for period in several if period <= most]


def _refined(series: Float, period: float) -> float:
    """Return the period near a candidate whose fold stands out most: phases must not run away over the whole run."""
    count = len(series)
    reach = period * period / count
    trial = period + np.linspace(-reach, reach, 33) / 2
    trial = trial[(trial >= RHYTHM_LEAST_WINDOWS) & (trial <= count / LEAST_PERIODS * 1.01)]
    if not len(trial):
        return period
    values = np.clip(series, -LEAST_BEYOND, MOST_BEYOND)
    parts = max(int(period), 2)
    phase = (np.arange(count) + 0.5) % trial[:, None] / trial[:, None] * parts
    codes = np.minimum(phase.astype(np.int64), parts - 1) + parts * np.arange(len(trial))[:, None]
    sums = np.bincount(codes.ravel(), np.tile(values, len(trial)), parts * len(trial))
    held = np.maximum(np.bincount(codes.ravel(), minlength=parts * len(trial)), 1)
    return float(trial[int((sums / held).reshape(-1, parts).var(axis=1).argmax())])


def _profile(values: Float, period: float) -> Float:
    """Return the mean of values by phase, in as many parts as a period has windows."""
    parts = max(int(period), 2)
    phase = np.minimum((np.arange(len(values)) + 0.5) % period / period * parts, parts - 1).astype(np.int64)
    sums = np.bincount(phase, values, parts)
    return sums / np.maximum(np.bincount(phase, minlength=parts), 1)


def _fold(series: Float, period: float, tests: int) -> Beat | None:
    """Return the rhythm of a period: where the slowest places of its stretches gather, if beyond chance."""
    count = len(series)
    stretches = int(count / period + 0.02)
    if stretches < LEAST_PERIODS:
        return None
    profile = _profile(series, period)
    parts = len(profile)
    top = int(profile.argmax())
    level = (profile.max() + np.median(profile)) / 2
    left = right = top
    while right - left + 1 < parts and profile[(right + 1) % parts] >= level:
        right += 1
    while right - left + 1 < parts and profile[(left - 1) % parts] >= level:
        left -= 1
    width = right - left + 1
    if width > max(WIDEST * parts, 2):
        return None
    # Stretches begin half a period before the events, so that no event lies on an edge.
    middle = (left + width / 2) * period / parts
    offset = (middle - period / 2) % period
    starts = offset + period * np.arange(-1, int(count / period) + 1)
    bounds = np.rint(starts).astype(np.int64)
    hits = total = 0
    reach = max(width * period / parts / 2, 1.0) + 0.5
    for start, first in zip(starts.tolist(), bounds.tolist(), strict=True):
        last = round(start + period)
        if first < 0 or last > count:
            continue
        stretch = series[first:last]
        if stretch.max() <= stretch.min():
            continue
        total += 1
        place = first + int(stretch.argmax()) + 0.5
        hits += abs(place - (start + period / 2)) <= reach
    if total < LEAST_PERIODS - 1 or hits < LEAST_KEPT * total:
        return None
    each = min((2 * reach + 1) / period, 0.9)
    tried = tests * count * period / 2
    certainty = -_log_binomial_tail(hits, total, each) - math.log(tried / RHYTHM_CHANCE)
    if certainty <= 0:
        return None
    return Beat(period, (left * period / parts) % period, width * period / parts, certainty, hits / total)


def _placed(series: Float, beat: Beat) -> Beat:
    """Return the rhythm with the period, phase and width whose events fit the series best (correlation)."""
    values = np.clip(series, -LEAST_BEYOND, MOST_BEYOND)
    values = values - values.mean()
    count = len(series)
    turns = count / beat.period
    best, most = beat, -math.inf
    for width in (beat.width * np.array([1.0, 0.75, 1.25, 0.5, 1.5])).tolist():
        for period in (beat.period + np.linspace(-1, 1, 9) * max(beat.width, 1.0) / turns).tolist():
            for shift in (np.linspace(-1, 1, 13) * max(beat.width, 1.0)).tolist():
                # The middle of the run stays in its place while the period is tried.
                first = beat.first + shift + (beat.width - width) / 2 - (period - beat.period) * turns / 2
                share = overlaps(count, period, first, width)
                fit = float(values @ share) / math.sqrt(max(float(((share - share.mean()) ** 2).sum()), 1e-300))
                if fit > most + 1e-9:
                    best, most = replace(beat, period=period, first=first % period, width=width), fit
    return best


def _log_binomial_tail(hits: int, total: int, each: float) -> float:
    """Return the natural logarithm of the chance of at least so many hits."""
    terms = [
        math.lgamma(total + 1)
        - math.lgamma(k + 1)
        - math.lgamma(total - k + 1)
        + k * math.log(each)
        + (total - k) * math.log1p(-each)
        for k in range(hits, total + 1)
    ]
    top = max(terms)
    return top + math.log(sum(math.exp(term - top) for term in terms))


def _fundamental(series: Float, beat: Beat, tests: int) -> Beat:
    """Return the rhythm of the true period: a multiple where only every second or third event is there, a part where all are.

    A part of the period is taken only if its fold holds by itself: each of its stretches has its event. A multiple is taken where
    events of one of its stretches are far stronger than those of the others.
    """
    best = beat
    for part in range(2, 7):
        if beat.period / part < RHYTHM_LEAST_WINDOWS:
            break
        finer = _fold(series, _refined(series, beat.period / part), tests)
        if finer is not None and finer.kept >= 0.9 * beat.kept and _even(series, finer):
            best = finer
    for multiple in (2, 3):
        if _even(series, best, multiple):
            continue
        coarser = _fold(series, _refined(series, best.period * multiple), tests)
        if coarser is not None:
            return coarser
    return best


def _even(series: Float, beat: Beat, most: int = 3) -> bool:
    """Return whether events are about as strong in each of the first, second (and third) of `most` stretches after another."""
    strength = _strengths(series, beat)
    for multiple in range(2, most + 1):
        classes = [float(np.median(strength[first::multiple])) for first in range(multiple) if len(strength[first::multiple])]
        if min(classes) < max(classes) / 3:
            return False
    return True


def _strengths(series: Float, beat: Beat) -> Float:
    """Return the strongest window of each event above what is usual around it."""
    count = len(series)
    out = []
    start = beat.first
    while start < count:
        first, last = max(int(start), 0), min(math.ceil(start + beat.width), count)
        if last > first:
            around = series[max(int(start - beat.period / 2), 0) : min(int(start + beat.period), count)]
            out.append(float(series[first:last].max() - np.median(around)))
        start += beat.period
    return np.array(out)


def _all_have(values: Float, members: Int, beat: Beat) -> bool:
    """Return whether each of the members is slower in the windows of the events, by a good part of what all are."""
    inside = beat.windows(values.shape[1])
    with np.errstate(all="ignore"):
        contrast = known_mean(values[members][:, inside], axis=1) - known_mean(values[members][:, ~inside], axis=1)
    return bool((contrast >= max(APART * float(known_mean(contrast)), 0.5)).all())


def _rhythm(ground: Ground, together: Together, beat: Beat, measure: str, span: slice) -> Claim | None:
    """Return the claim of a rhythm, with how slow its windows are against all others; None where that is hardly slower."""
    inside = np.zeros(ground.shape[1], np.bool_)
    inside[span] = beat.windows(span.stop - span.start)
    during, else_ = np.flatnonzero(inside), np.flatnonzero(~inside & ground.whole)
    source = {"p50": ground.p50_ns, "p99": ground.p99_ns}.get(measure)
    missing, value = 0.0, None
    if source is None:
        then, usual = (ground.samples[together.members][:, part] for part in (during, else_))
        usual = np.median(usual, axis=1)
        missing = float(np.maximum(usual[:, None] - then, 0).sum())
        times = float(usual.sum() * len(during) / max(float(then.sum()), 1.0))
    else:
        with np.errstate(all="ignore"):
            value, usual_ns = (float(known_median(source[together.members][:, part])) for part in (during, else_))
        times = value / usual_ns if usual_ns > 0 else math.inf
    if not times >= LEAST_TIMES:
        return None
    cells = ground.cells(together.members, during)
    step = ground.step_ns
    first_ns = int(ground.start_ns[0] + (span.start + beat.first) * step)
    with np.errstate(all="ignore"):
        low = -float(known_most(-ground.p50_ns[cells])) if cells.any() else 0.0
        high = float(known_most(ground.top_ns[cells])) if cells.any() else 0.0
    return Claim(
        RHYTHM,
        together.who,
        *ground.span(0, -1),
        cells=cells,
        value_ns=value,
        times=times,
        samples=int(ground.samples[cells].sum()),
        missing=missing,
        certainty=beat.certainty,
        latency_ns=None if math.isnan(low) else (int(low), int(high)),
        details={
            "measure": measure,
            "period_ns": beat.period * step,
            "first_ns": first_ns,
            "width_ns": beat.width * step,
            "kept": beat.kept,
        },
    )


EPISODE_LEAST = 1.5  # times typical
FAR = 3.0  # deviations of the windows
EPISODE_CHANCE = 0.01  # of any in the run
FEW_FOLLOW = 0.25  # how surely one window beyond is followed by another where hardly any is
EPISODE_LEAST_WINDOWS = 3
ALONE, ALONE_SAMPLES = 4.0, 5  # one or two windows: times beyond all others, and so many samples in them that are
EPISODE_FEW = 5  # stretches that are as far beyond all others as one alone has to be
EPISODE_AROUND = 10  # windows on either side in which the ends of a stretch are looked for
NEARBY = 30  # windows on either side that make the level around a window
BRIDGED = 2  # windows within a stretch that need not be beyond
EPISODE_MOST = 0.4  # of the run
LEAST_RUN = 20
DEVIATION = 0.1587  # the share of samples below one deviation under the median


@dataclass(frozen=True, slots=True)
class Stretch:
    """Windows `first` up to `last` (exclusive) of a series of logarithms: what is typical, how far their median lies above."""

    first: int
    last: int
    typical: float
    above: float
    certainty: float


class _Level(NamedTuple):
    """The median of windows, and how far above it a window is beyond; one of each, or one for all."""

    middle: Float
    limit: Float


def episodes(ground: Ground, so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return a claim for each episode of each group; windows of a rhythm of it are left out."""
    widths: dict[int, Blocks] = {}
    beats = np.logical_or.reduce([np.zeros(ground.shape, np.bool_), *(claim.cells for claim in so_far if claim.kind == RHYTHM)])
    claims = []
    for code in range(len(ground.groups)):
        width = carrying(ground, code)
        if len(ground.start_ns) // width < LEAST_RUN:
            continue
        if width not in widths:
            widths[width] = in_blocks(ground, width)
        blocks = widths[width]
        kept = np.flatnonzero(np.add.reduceat(beats[code], np.arange(0, len(ground.start_ns), width)) <= width / 2)
        found: list[tuple[str, Stretch]] = []
        for name, values in (("p50", blocks.p50_ns[code]), ("p99", blocks.p99_ns[code])):
            # A percentile of so few samples says nothing.
            series = logarithms(np.where(blocks.samples[code] >= THIN / 2, values, np.nan))[kept]
            for within in stretches(series, len(ground.groups)):
                stretch = replace(within, first=int(kept[within.first]), last=int(kept[within.last - 1]) + 1)
                if all(stretch.first >= other.last or other.first >= stretch.last for _, other in found):
                    found.append((name, stretch))
        claims += [
            _episode(ground, code, name, stretch, width)
            for name, stretch in found
            if _carried(ground, code, name, stretch, width)
        ]
    return claims


def stretches(logs: Float, groups: int) -> list[Stretch]:
    """Return the stretches of a series that are beyond what its own windows do by chance, `groups` of which are looked at.

    Those beyond the level around them count where that level itself is beyond the median of the series.
    """
    if np.count_nonzero(~np.isnan(logs)) < LEAST_RUN:
        return []
    whole = _level(logs[None])
    out = _sure(_beyond(logs, whole, groups), len(logs))
    raised = float(whole.middle[0]) + math.log(EPISODE_LEAST)
    parts = _level(logs[: len(logs) // NEARBY * NEARBY].reshape(-1, NEARBY))
    if not (parts.middle > raised).any():
        return out
    around = _level(np.lib.stride_tricks.sliding_window_view(np.pad(logs, NEARBY, constant_values=np.nan), 2 * NEARBY + 1))
    found = _sure(_few(logs - around.middle, _beyond(logs, around, groups)), len(logs))
    apart = [stretch for stretch in found if all(stretch.first >= other.last or other.first >= stretch.last for other in out)]
    return out + [stretch for stretch in apart if stretch.typical > raised]


def _level(windows: Float) -> _Level:
    """Return the level of each row of windows (N, M), NaN where none has samples."""
    ordered = np.sort(windows, axis=1)  # NaN come last
    known = np.count_nonzero(~np.isnan(windows), axis=1)
    low, middle, high = (
        np.take_along_axis(ordered, np.maximum(np.rint((known - 1) * share), 0).astype(np.int64)[:, None], 1)[:, 0]
        for share in (DEVIATION, 0.5, 1 - DEVIATION)
    )
    return _Level(middle, np.maximum(math.log(EPISODE_LEAST), FAR * np.maximum(middle - low, high - middle)))


def _beyond(logs: Float, level: _Level, groups: int) -> list[Stretch]:
    """Return the stretches of a series far above a level; their certainty says which of them chance makes."""
    above = logs - level.middle
    with np.errstate(invalid="ignore"):
        beyond: Bool = above > level.limit
    if not beyond.any():
        return []
    raised = np.where(np.isnan(above), 0.0, above)
    levels = np.broadcast_to(level.middle, logs.shape)
    out: list[Stretch] = []
    for begin, end in _joined(beyond):
        first, last = _ends(raised, begin, end)
        height = float(np.median(raised[first:last]))
        if height >= math.log(EPISODE_LEAST) and all(first >= other.last for other in out):
            certainty = _certainty(above, beyond, first, last, groups)
            out.append(Stretch(first, last, float(np.nanmedian(levels[first:last])), height, certainty))
    return out


def _sure(found: Sequence[Stretch], windows: int) -> list[Stretch]:
    """Return the stretches that chance does not make and that have typical windows before and after them."""
    whole = [stretch for stretch in found if stretch.first > 0 and stretch.last < windows]
    return [stretch for stretch in whole if stretch.certainty > 0 and stretch.last - stretch.first <= EPISODE_MOST * windows]


def _few(above: Float, stretches: Sequence[Stretch]) -> list[Stretch]:
    """Return stretches, the FEW highest of them as certain as they are ALONE times beyond all windows outside of these.

    The first and last windows are not asked: what is around them is on one side only, and a warm-up falls steeply there.
    """
    highest = sorted(stretches, key=lambda stretch: -stretch.above)
    outside = above.copy()
    outside[:EPISODE_AROUND] = outside[-EPISODE_AROUND:] = np.nan
    for number, stretch in enumerate(highest[:EPISODE_FEW]):
        outside[max(0, stretch.first - 1) : stretch.last + 1] = np.nan  # with the windows in which it begins and ends
        beyond = stretch.above - float(np.nanmax(outside, initial=-math.inf)) - math.log(ALONE)
        if beyond > 0:
            few = [replace(each, certainty=max(each.certainty, beyond)) for each in highest[: number + 1]]
            highest[: number + 1] = few
    return highest


def _joined(beyond: Bool) -> list[tuple[int, int]]:
    """Return the stretches of windows that are beyond, those at most BRIDGED apart joined."""
    places = np.flatnonzero(beyond)
    cuts = np.flatnonzero(np.diff(places) > BRIDGED + 1) + 1
    return [(int(part[0]), int(part[-1]) + 1) for part in np.split(places, cuts)]


def _ends(above: Float, begin: int, end: int) -> tuple[int, int]:
    """Return where a stretch begins and ends: the part of its surroundings whose sum above half its height is largest."""
    height = float(np.median(above[begin:end]))
    low, high = max(0, begin - EPISODE_AROUND), min(len(above), end + EPISODE_AROUND)
    sums = np.concatenate([[0.0], np.cumsum(np.clip(above[low:high] - height / 2, -height, height))])
    inner = (begin + end) // 2 - low
    first = int(np.argmin(sums[: inner + 1]))
    last = inner + int(np.argmax(sums[inner:]))
    return low + first, low + max(last, first + 1)


def _certainty(logs: Float, beyond: Bool, first: int, last: int, groups: int) -> float:
    """Return how far a stretch is from chance, in powers of e; at most 0 where it is not."""
    outside = np.ones(len(logs), np.bool_)
    outside[first:last] = False
    others = beyond & outside
    count, windows = int(others.sum()), int(outside.sum())
    inside = logs[first:last]
    if last - first < EPISODE_LEAST_WINDOWS:
        rest = logs[outside & ~np.isnan(logs)]
        return float(-known_most(-inside) - rest.max() - math.log(ALONE)) if len(rest) and not np.isnan(inside).all() else 0.0
    often = (count + 1) / windows
    followed = int((others[1:] & others[:-1]).sum())
    follows = (followed + FEW_FOLLOW) / (count + 1)
    length = int(beyond[first:last].sum())
    expected = math.log(groups * windows * often) + (length - 1) * math.log(max(follows, often))
    return math.log(EPISODE_CHANCE) - expected


def _carried(ground: Ground, code: int, name: str, stretch: Stretch, width: int) -> bool:
    """Return whether enough samples of a stretch are far out: a few windows are not judged by a single sample."""
    if stretch.last - stretch.first >= EPISODE_LEAST_WINDOWS or name == "p50":
        return True
    windows = np.arange(stretch.first * width, min(stretch.last * width, len(ground.start_ns)))
    counts = ground.counts(np.array([code]), windows)
    limit = math.exp(stretch.typical + stretch.above) / 2
    return int(counts[ground.rows.layout.values >= limit].sum()) >= ALONE_SAMPLES


def _episode(ground: Ground, code: int, name: str, stretch: Stretch, width: int) -> Claim:
    first, last = stretch.first * width, min(stretch.last * width, len(ground.start_ns))
    values = ground.p50_ns if name == "p50" else ground.p99_ns
    typical = math.exp(stretch.typical)
    inside = np.sort(values[code, first:last][~np.isnan(values[code, first:last])])
    reached = float(inside[(len(inside) - 1) // 2])  # that of a window, which the command of the finding shows
    return Claim(
        EPISODE,
        ground.groups[code],
        *ground.span(first, last - 1),
        cells=ground.cells([code], slice(first, last)),
        value_ns=reached,
        times=reached / typical if typical else None,
        samples=int(ground.samples[code, first:last].sum()),
        certainty=stretch.certainty,
        latency_ns=(int(typical), math.ceil(float(known_most(ground.top_ns[code, first:last]))) + 1),
        details={"typical_ns": typical, "percentile": name, "top_ns": float(known_most(ground.top_ns[code, first:last]))},
    )


# Edge: the first or last windows of a run are not like the others, as while a load ramps up or its threads end one by one.


SHARE, LONGEST_NS = 0.05, 10 * SECOND  # of the run, and at most this long
SLOWER = 2.0  # times the excess of any such stretch within the run
FEWER = 0.7  # of the usual rate
LOST = 0.25  # of the stretch


def edges(ground: Ground, _so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return a claim for each end of the run at which a member has more excess, or fewer completions, than anywhere within."""
    windows = len(ground.start_ns)
    most = min(math.floor(SHARE * windows), LONGEST_NS // ground.step_ns)
    if windows < LEAST_RUN or most < 1:
        return []
    claims = []
    for who, codes in ground.by_member().items():
        excess = ground.excess_ns[codes].sum(axis=0)
        completions = ground.samples[codes].sum(axis=0).astype(np.float64)
        for first, last in ((0, most), (windows - most, windows)):
            largest = _largest(excess[most : windows - most], most)  # of any stretch of that length outside of both ends
            times = float(excess[first:last].sum()) / largest if largest else 0.0
            fewer = _fewer(completions, ground, first, last)
            if times < SLOWER and not fewer:
                continue
            span = ground.span(first, last - 1)
            if is_lost(ground, codes, *span, LOST):  # what a log lacks may be counted there: its last row is of all of it
                continue
            claims.append(
                Claim(
                    EDGE,
                    who,
                    *span,
                    cells=ground.cells(codes, slice(first, last)),
                    samples=int(completions[first:last].sum()),
                    missing=fewer,
                    certainty=times if math.isfinite(times) else 0.0,
                    details={"first": first == 0, "slower": times >= SLOWER, "fewer": fewer > 0},
                )
            )
    return claims


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


# Steps and drifts: the level of latencies changes at one time and stays, or moves all the time in one direction.
#
# What most members do together comes first, then what those of one host or operation do, then each by itself; a change that was
# said of many is taken out of each of them before.


STEP_LEAST = 1.2
MOST_CHANGES = 3  # of one set of members


class Moved(NamedTuple):
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
            members, window = moved.together.members, 0  # a drift begins at the first
            if moved.change.kind == STEP:
                classes = classes_of(ground, members, measure)
                window = window_of_change(ground, members, classes, aside, edges, moved.change.place)
            claims.append(_step(ground, measure, moved, window, aside))
    return [claim for claim in claims if claim is not None]


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
            changes = changes_of(pooled(rest, together.members), 2 * len(sets), math.log(STEP_LEAST))
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


def _step(ground: Ground, measure: Measure, moved: Moved, window: int, aside: Bool) -> Claim | None:
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
    low, high = (quantile(ground, together.members, slow, measure, at) for at in (0.25, 0.99))
    return Claim(
        change.kind,
        together.who,
        *ground.span(*np.flatnonzero(reach)[[0, -1]]),
        cells=ground.cells(together.members, reach),
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


# Omission: the load generator was behind its schedule, as the warning on coordinated omission says of what was read.


def omissions(ground: Ground, _so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return a claim where the warnings of the answer say so; it explains no window's excess."""
    said = [text for text in ground.warnings if WARNING in text]
    if not said:
        return []
    return [
        Claim(
            OMISSION,
            (),
            *ground.span(0, -1),
            cells=ground.cells((), slice(None)),
            samples=int(ground.samples.sum()),
            details={"said": tuple(re.sub(f"^.*?{WARNING}", "", text) for text in said)},
        )
    ]
