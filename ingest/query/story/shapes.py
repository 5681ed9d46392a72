"""The shapes of a problem that are looked for by themselves: stall, rhythm, modes, slow or throttled member, omission.

What changes over a run without such a shape is found in segments.py.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from ingest.core.coverage import OMISSION as WARNING
from ingest.core.grid import SECOND
from ingest.core.intervals import Bool, Int, median, row_sums
from ingest.core.layout import Float
from ingest.core.quantiles import Ranked, parse_percentiles
from ingest.query.story.ground import (
    DRIFT,
    ENOUGH,
    EPISODE,
    FAILURES,
    IMBALANCE,
    MODES,
    OMISSION,
    OP,
    RHYTHM,
    SLOW_MEMBER,
    STALL,
    STEP,
    THROTTLED,
    THROUGHOUT,
    Claim,
    ClaimedCells,
    Ground,
    Labels,
    Stretches,
    Usual,
    apart,
    as_detail,
    as_one,
    at_one_time,
    beyond_peers,
    binned,
    covered_groups,
    doing_the_same,
    is_lost,
    known_mean,
    known_median,
    known_most,
    member,
    most_times,
    numbers_by,
    own_groups,
    part_starts,
    peers_of,
    stretches_of,
)
from ingest.query.story.segments import (
    AT_ONCE,
    CHANCE,
    CLASSES,
    DONE,
    HALF,
    LEAST_TIMES,
    LOGS,
    MOSTLY,
    Together,
    added_over,
    added_up,
    common,
    every_count,
    gatherings,
    likeliest,
    log_tail,
    measured,
    not_made_up,
    rate_gains,
    sets_of,
    share_gains,
    shares_of,
    stalled_cells,
    stretches_where,
    wandering,
)

# Stall: completions of a member stop, then some arrive with latencies as long as the gap.
#
# completions a window   230 228  80   0   0   0  61 229        a dark stretch between windows that complete something
# largest latency        1ms 1ms 1ms          ... 4.0s 1ms      samples of at least half the gap: what was under way


DARK, EMPTY = 0.2, 0.08  # of the usual rate: of each window of a gap, and of all of them
LEAST_NS = SECOND
STALL_CHANCE = 8.0  # times the longest gap that chance would make
LATE, WAITED = 0.5, 0.9  # of the gap
AFTER = 2  # windows after the gap in which late samples arrive
LEAST_LIVE = 2  # windows that the usual rate is taken of
STALL_FEW, LONGER = 4, 3.0  # where there are more gaps than that, one counts only if it is that much longer than the median gap
TAIL = (0.5, 0.8), (0.7, 0.9)  # parts of the largest latencies of cells that their tail is taken of ...
LEAST_TOPS, MOST_TOPS = 40, 60  # ... of so many cells at least; of those beyond it the farthest
MOST_WAITED = 0.75  # of the groups of a set that stalls
BESIDE = 8  # windows
AS_LONG = 2.0  # times: what waited and what did not complete
LEAST_LACKING, LIKELIER = 5.0, 1.5  # a chi-square, and the logarithm of odds that a set stopped
NORMAL_MEDIAN = NormalDist().inv_cdf(0.75)  # of the absolute value
NO_LATE_ONE = "no late completion came afterwards: nothing was under way, as when the load itself pauses"


class Gap(NamedTuple):
    """A dark stretch: its first window and the one after its last, when it began and ended in ns, what did not complete.

    What is made up for right after it is not counted. It is `open` where more than usual completes in a window right after it, as
    what was waiting does: then it may have ended anywhere within the first. `likely_ns` is when it began by what is missing
    in the window before it, be that chance.
    """

    first: int
    last: int
    start_ns: int
    end_ns: int
    missing: float
    likely_ns: int
    open: bool


def stalls(ground: Ground, _so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return a claim for each stall, of all members first, then of each label, then of single operations of a member.

    None where samples of that time are known to be missing (rows that a log has lost look like a stall), but where one that
    completes then was under way for as long: it is known what it waited for. None where what completes is slow, and none late.
    """
    claims, dark, slow = [], *np.zeros((2, *ground.shape), np.bool_)
    for who, members in ground.once(sets_of):
        for gap in gaps(ground.samples[members].sum(axis=0).astype(np.float64), ground):
            if dark[members, gap.first : gap.last].any():
                continue
            stall = _stall(gap, members.tolist(), who, ground)
            waited = (stall.value_ns or 0) >= WAITED * (gap.end_ns - gap.start_ns)
            slow[members, gap.first : gap.last] |= stall.value_ns is None and _is_slow(ground, members, gap)
            if stall.value_ns is None and slow[members, gap.first : gap.last].any():  # of some of them nothing may complete
                continue
            if not waited and is_lost(ground, members.tolist(), gap.start_ns, gap.end_ns):
                continue
            claims.append(stall)
            dark[members, max(gap.first - 1, 0) : gap.last + 1] = True
    return [_of_stopped(ground, claim) for claim in _as_one(ground, [*claims, *_short_stalls(ground, dark)])]


def _of_stopped(ground: Ground, claim: Claim) -> Claim:
    """Return the claim of a stall without the groups of which none waited, and that did more than half of the usual meanwhile."""
    groups = np.array(sorted(covered_groups(ground, claim.who)))
    starts, step = ground.start_ns, ground.step_ns
    share = np.clip(np.minimum(starts + step, claim.end_ns) - np.maximum(starts, claim.start_ns), 0, step) / step
    inside = share > MOSTLY
    done, rate = ground.samples[groups][:, inside].sum(axis=1), median(ground.samples[groups], axis=1)
    due = rate * share[inside].sum()
    waited = _waited(ground, ground.near(claim.start_ns, claim.end_ns), claim.value_ns or np.inf)[groups]
    stopped = waited | (due < ENOUGH) | (rate * inside.sum() - done >= due / 2)
    if stopped.all() or not stopped.any():
        return claim
    dense = claim.cells.dense
    dense[groups[~stopped]] = False
    own = as_detail(ground, claim.who, groups[stopped])
    return replace(claim, cells=ClaimedCells.of(dense), details={**claim.details, **own})


def _is_slow(ground: Ground, members: Int, gap: Gap) -> bool:
    """Return whether what little completes within a gap takes longer than usual: where none was late, nothing has stopped."""
    usual = known_median(ground.p50_ns[members], axis=1, keepdims=True)
    return bool(known_median((ground.p50_ns[members, gap.first : gap.last] / usual).ravel()) > AS_LONG)


def _as_one(ground: Ground, claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims with one instead of several at a time, of the widest set of which operations of most members waited then.

    Windows of some are not quite dark where rows of logs lie in two windows; of others they are not dark enough for a claim.
    """
    out, left = [], sorted(claims, key=lambda claim: -claim.certainty)
    while left:
        claim = left.pop(0)
        wide = _waited_most(ground, claim) if claim.value_ns is not None else None
        if wide is not None:
            every = frozenset(wide.members.tolist())
            within = [other for other in left if at_one_time(claim, other) and covered_groups(ground, other.who) <= every]
            claim = _of_all(ground, wide, [claim, *within])
            left = [other for other in left if not any(other is one for one in within)]
        out.append(claim)
    return out


def _waited_most(ground: Ground, claim: Claim) -> Together | None:
    """Return the widest set around that of a stall of which operations of most members waited then for as long."""
    waited = _waited(ground, ground.near(claim.start_ns, claim.end_ns), claim.value_ns or 0)
    mine = covered_groups(ground, claim.who)
    wider = (each for each in ground.once(sets_of) if len(each.members) > len(mine))
    return next(
        (each for each in wider if waited[each.members].mean() >= MOST_WAITED and mine < set(each.members.tolist())), None
    )


def _waited(ground: Ground, windows: Bool | slice, longest_ns: float) -> Bool:
    """Return of which groups an operation waited in some windows for about as long as the longest."""
    waited: Bool = known_most(ground.top_ns[:, windows], axis=1) >= LATE * longest_ns
    return waited


def _of_all(ground: Ground, together: Together, claims: Sequence[Claim]) -> Claim:
    """Return the claim that a set stalled of which several did, at their median time; the first is the most certain."""
    windows = ground.near(claims[0].start_ns, claims[0].end_ns)
    longest = max(claims, key=lambda claim: claim.value_ns or 0)
    counts = ground.counts(together.members, np.flatnonzero(windows))
    done = ground.samples[together.members].sum(axis=0).astype(np.float64)
    waited = ground.cells(together.members, windows)
    return replace(
        longest,
        who=together.who,
        start_ns=round(float(median([claim.start_ns for claim in claims]))),
        end_ns=round(float(median([claim.end_ns for claim in claims]))),
        cells=ClaimedCells.of(np.logical_or.reduce([waited, *(claim.cells.dense for claim in claims)])),
        samples=int(counts[ground.rows.layout.values >= LATE * (longest.value_ns or 0)].sum()),
        missing=max(float((median(done) - done[windows]).sum()), sum(claim.missing for claim in claims)),
        details={**longest.details, "silent": False},
    )


class Wait(NamedTuple):
    """Groups that may have stopped within some windows while one operation waited for `longest_ns`.

    `due` is what they do usually in each of the windows; `chance` a logarithm, of both by chance.
    """

    chance: float
    longest_ns: float
    first: int
    end: int
    together: Together
    due: float


def _short_stalls(ground: Ground, dark: Bool) -> list[Claim]:
    """Return a claim for each stall that leaves no window dark: one operation waited, and about as much did not complete.

    Of a load with few operations under way an outage shows in these alone. None is in cells that are `dark`.
    """
    claims = []
    for wait in sorted(_waits(ground, dark), key=lambda wait: wait.chance):
        members = wait.together.members
        if wait.chance < math.log(CHANCE) and not dark[members, wait.first : wait.end].any():
            claims.append(_stall(_gap_of(ground, wait), members.tolist(), wait.together.who, ground))
            dark |= ground.cells(members, slice(wait.first - 1, wait.end + 1))
    least = LONGER * float(median([claim.value_ns or 0 for claim in claims])) if len(claims) > STALL_FEW else 0.0
    return [claim for claim in claims if (claim.value_ns or 0) >= least]  # what comes again and again is no single outage


def _waits(ground: Ground, dark: Bool) -> Iterator[Wait]:
    """Yield what may have waited: operations that took far longer than all others, each with what did not complete meanwhile.

    How many are so far by chance: as of a tail that falls as a power of the latency, as slowly as its upper parts do.
    """
    count = ground.shape[1]
    logs = np.log(ground.top_ns) - np.log(known_median(ground.p99_ns, axis=1, keepdims=True))
    known = logs[~np.isnan(logs)]
    if len(known) < LEAST_TOPS or count <= 2 * BESIDE:
        return
    ends = [np.quantile(known, part) for part in TAIL]
    falls = min(math.log((1 - low) / (1 - high)) / max(b - a, 1e-9) for (low, high), (a, b) in zip(TAIL, ends, strict=True))
    chances = math.log(len(known) * (1 - TAIL[-1][1])) - falls * (logs - ends[-1][1])
    likely = np.flatnonzero((chances < 0).ravel())
    sets = ground.once(sets_of) if len(likely) else []
    having = numbers_by(together.members.tolist() for together in sets)
    for cell in likely[np.argsort(-logs.ravel()[likely])][:MOST_TOPS].tolist():
        code, window = divmod(cell, count)
        longest = float(ground.top_ns[code, window])
        windows = math.ceil(longest / ground.step_ns)
        spans = [(end - more, end) for end in (window, window + 1) for more in (windows + 1, windows)]
        for first, end in spans:
            if first < 1 or end >= count or dark[code, first:end].any() or _all_slow(ground, code, (first, end), longest):
                continue
            near = ground.samples[:, max(first - BESIDE, 0) : end + BESIDE]
            rates = median(near, axis=1)
            gains = rate_gains(ground.samples[:, first:end].sum(axis=1), rates * (end - first))
            mine = [sets[number] for number in having[code]]
            together = mine[likeliest(mine, gains)[0]]
            if 2 * _waited(ground, slice(first - 1, end + 1), longest)[together.members].mean() < 1:
                continue  # where all stop, one operation of each waits
            series, due = ground.samples[together.members].sum(axis=0), float(rates[together.members].sum())
            chance = chances[code, window] + _chance_of_lacking(series, (first, end), due, longest / ground.step_ns)
            far = (chances[:, first - 1 : end + 1] < 0).any(axis=1)
            widest = next(each for each in mine if far[each.members].mean() >= MOST_WAITED)
            if len(widest.members) > len(together.members):  # what waited may have come in a burst by the end of the window
                together, due = widest, float(rates[widest.members].sum())
            yield Wait(chance + math.log(len(spans)), longest, first, end, together, due)


def _all_slow(ground: Ground, code: int, span: tuple[int, int], longest: float) -> bool:
    """Return whether it is no lone operation: the others take longer in these windows, too, or some took as long just before.

    An outage of less than half a window holds up less than half of what completes in any; what waited for a longer one comes
    at once, so that what is slow after that without being more than usual has not waited.
    """
    (first, end), times, done = span, ground.p50_ns[code] / known_median(ground.p50_ns[code]), ground.samples[code]
    near, windows, most = times[first - 1 : end + 1], longest / ground.step_ns, float(median(done))
    slow = float(known_median(near)) > AS_LONG or (2 * windows < 1 and float(known_most(times[first - 1 : end + 2])) > AS_LONG)
    for at in range(end, min(end + 2, len(done))):  # the row of what waited lies in two windows
        after = slice(at, at + AFTER)
        slow |= float(np.nan_to_num(times[after]).min()) > AS_LONG and done[after].sum() < most * (AFTER + windows / 2)
    return slow or bool(longest < LONGER * known_most(ground.top_ns[code, max(first - 2 * BESIDE, 0) : first - 1]))


def _chance_of_lacking(series: Int, span: tuple[int, int], rate: float, stopped: float) -> float:
    """Return the logarithm of the chance that so little completes in some windows, of which each has a rate.

    By counting, as much more as neighbours of that length differ. Infinite where what lacks is not about what does in so many
    windows that all `stopped`, or that they did not is as likely.
    """
    first, end = span
    inside, due = float(series[first:end].sum()), rate * (end - first)
    left = max(min(inside, due - rate * (stopped - 0.5)), due - rate * stopped, HALF)  # rows at either end lie in two windows
    if inside >= due or left >= due or not stopped / AS_LONG <= (due - inside) / rate <= stopped * AS_LONG:
        return math.inf
    sums = np.lib.stride_tricks.sliding_window_view(series, end - first).sum(axis=1)
    inflated = max((float(median(np.abs(sums[end - first :] - sums[: first - end]))) / NORMAL_MEDIAN) ** 2 / 2 / due, 1.0)
    chi = 2 * ((inside * math.log(inside / due) if inside else 0.0) + due - inside) / inflated
    likelier = (inside * math.log(left / due) + due - left) / inflated
    return log_tail(chi) if chi >= LEAST_LACKING and likelier >= LIKELIER else math.inf


def _gap_of(ground: Ground, wait: Wait) -> Gap:
    """Return the gap of what waited within some windows; it ends where what is missing in the last of them says."""
    done = ground.samples[wait.together.members, wait.first : wait.end].sum(axis=0)
    lacking, step = np.maximum(wait.due - done, 0.0), ground.step_ns
    share = float(lacking[-1]) * wait.longest_ns / max(float(lacking.sum()) * step, 1.0)  # of the last window
    within = min(share, 1.0) * step if len(lacking) > 1 else (step + min(wait.longest_ns, step)) / 2
    ended = int(ground.start_ns[wait.end - 1]) + round(within)
    began = ended - round(wait.longest_ns)
    return Gap(wait.first, wait.end - 1, began, ended, float(lacking.sum()), began, open=False)


def gaps(completions: Float, ground: Ground) -> list[Gap]:
    """Return the stretches in which a series of completions stops, between windows in which it does not.

    A stretch that is dark in part of its first or last window begins or ends within it, by how much is missing there.
    """
    live = completions[ground.whole & (completions > 0)]
    if len(live) < LEAST_LIVE:
        return []
    usual, step = float(median(live)), ground.step_ns
    dark: Bool = completions < DARK * usual
    found = [
        _gap(first, last, completions, usual, ground)
        for first, last in stretches_where(dark)
        if first > 0 and last < len(completions) and completions[:first].any() and completions[last:].any()
    ]
    # Windows below DARK of a member that does a fifth of its work are no gap.
    found = [gap for gap in found if completions[gap.first : gap.last].mean() <= EMPTY * usual]
    rate = usual / step
    longest = math.log(max(rate * step * len(completions), math.e)) / rate
    lengths = [gap.end_ns - gap.start_ns for gap in found]
    least = max(LEAST_NS, STALL_CHANCE * longest)
    if len(lengths) > STALL_FEW:
        least = max(least, LONGER * float(median(lengths)))
    return [gap for gap, length in zip(found, lengths, strict=True) if length >= least]


def _gap(first: int, last: int, completions: Float, usual: float, ground: Ground) -> Gap:
    step = ground.step_ns
    lacking = np.maximum(1 - completions[first - 1 : last + 1] / usual, 0.0)
    noise = 3 / math.sqrt(usual)
    before, after = (0.0 if part < noise else part for part in (float(lacking[0]), float(lacking[-1])))
    lost = (float(lacking[1:-1].sum()) + before + after) * usual
    return Gap(
        first,
        last,
        int(ground.start_ns[first]) - round(before * step),
        int(ground.start_ns[last]) + round(after * step),
        not_made_up(lost, completions[last:], usual),
        likely_ns=int(ground.start_ns[first]) - round(float(lacking[0]) * step),
        open=bool(completions[last : last + AFTER].max() > (1 + noise) * usual),
    )


def _caught_up(ground: Ground, codes: Int | Sequence[int], last: int) -> int:
    """Return the first window from `last` on in which a load has caught up: what is late after a stall waits for its turn.

    Meanwhile more than usual completes; what is slow without that is an event of its own.
    """
    p50, done = ground.p50_ns[codes], ground.samples[codes].sum(axis=0)
    slow = np.nan_to_num(known_median(p50 / known_median(p50, axis=1, keepdims=True), axis=0)[last:]) > AS_LONG
    waits = slow & (np.cumsum(done[last:] - median(done)) > 0)
    return min(last + (len(waits) if waits.all() else int(waits.argmin())) + 1, len(done))  # a row lies in two windows


def _stall(gap: Gap, codes: list[int], who: Labels, ground: Ground) -> Claim:
    length, began, ended = gap.end_ns - gap.start_ns, gap.start_ns, gap.end_ns
    first, last = max(gap.first - 1, 0), _caught_up(ground, codes, min(gap.last + AFTER, len(ground.start_ns)))
    groups, windows = np.array(codes, np.int64), np.arange(first, last)
    counts = ground.counts(groups, windows)
    layout = ground.rows.layout
    late = np.flatnonzero((counts > 0) & (layout.values >= LATE * length))
    top = float(known_most(ground.top_ns[codes, first:last])) if len(late) else None
    if top is not None and -1 <= (top - length) / ground.step_ns <= AFTER:  # what ends with the gap was under way since it began
        ended = max(ended, gap.likely_ns + round(top)) if gap.open else ended
        began, length = ended - round(top), round(top)
    typical = max(float(known_median(ground.p99_ns[code])) for code in codes)  # the highest of the groups
    return Claim(
        kind=STALL,
        who=who,
        start_ns=began,
        end_ns=ended,
        cells=ground.claimed(codes if len(late) else (), slice(first, last)),  # without late ones the gap explains no latency
        value_ns=top,
        times=None if top is None or not typical else top / typical,
        samples=int(counts[late].sum()),
        missing=gap.missing,
        certainty=length / LEAST_NS,
        latency_ns=(int(layout.lower[late].min()), math.ceil(top or 0) + 1) if len(late) else None,
        against="" if len(late) else NO_LATE_ONE,
        details={
            "typical_ns": typical,
            "gap_ns": length,
            "silent": gap.first < gap.last and not ground.samples[codes, gap.first : gap.last].any(),
            "open": gap.open and not len(late),  # the longest of late ones tells how long it was
        },
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


class Beside:
    """A level of all groups in stretches, NaN in those that are left aside: what it is in the middle, and who is usual by it.

    What is known of all that do the same is found once, not once a group.
    """

    def __init__(self, level: Level, ns: Float, ground: Ground) -> None:
        self.level, self.ns = level, ns
        self.middles = known_median(ns, axis=1)
        self.usual = Usual(self.middles, ground, BEYOND)
        self._known: dict[int, Int] = {}
        self._holds: dict[int, bool] = {}

    def holds(self, alike: Int) -> bool:
        """Return whether it is a level of all groups that do the same."""
        first = int(alike[0])
        if first not in self._holds:
            self._holds[first] = len(self.level.groups) == len(self.ns) or self.level.groups.issuperset(alike.tolist())
        return self._holds[first]

    def unknown(self, code: int, alike: Int) -> Bool:
        """Return in which stretches it is known of none of the peers of a group."""
        first = int(alike[0])
        if first not in self._known:
            self._known[first] = (~np.isnan(self.ns[alike])).sum(axis=0)
        none: Bool = self._known[first] == ~np.isnan(self.ns[code])
        return none


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
    events = [stretches.mostly(claim.cells.dense) for claim in so_far if claim.kind in OWN]
    own = numbers_by(own_groups(ground, claim) for claim in so_far if claim.kind in OWN)
    often = sum((event.astype(np.int64) for event in events), np.zeros(stretches.samples.shape, np.int64))

    @lru_cache(maxsize=2)  # what most members have, who have no event of their own, and that of one who has
    def beside(own_events: tuple[int, ...]) -> list[Beside]:
        """Return each level in stretches without the events of others."""
        aside = often > sum((events[at].astype(np.int64) for at in own_events), np.zeros_like(often))
        return [Beside(level, np.where(aside, np.nan, level.ns), ground) for level in levels]

    filled = stretches.samples
    slower = [_slower(ground, filled[code], beside(tuple(own.get(code, ()))), code) for code in range(len(ground.groups))]
    throttled = _throttled([_worst(some, PEERS_MOST) for some in slower], ground)
    said = _covered(ground, throttled)
    slow = _slow([_worst(some, THROUGHOUT) for some in slower], said, ground)
    explained = said | _covered(ground, slow) | {code for code, some in enumerate(slower) if _worst(some, PEERS_MOST) is not None}
    return [*throttled, *slow, *_unequal(stretches.samples, explained, ground)]


def _covered(ground: Ground, claims: Iterable[Claim]) -> set[int]:
    return {code for claim in claims for code in own_groups(ground, claim)}


def _levels(ground: Ground, stretches: Stretches, so_far: Sequence[Claim]) -> list[Level]:
    """Return what members are compared by: p50 and p99, and where all peers have modes the p50 on either side of the valley."""
    every = frozenset(range(len(ground.groups)))
    wanted = [("p50", 0.5, 0.0, math.inf, every), ("p99", 0.99, 0.0, math.inf, every)]
    for claim in so_far:
        if claim.kind == MODES:
            valley, groups = float(claim.details["valley_ns"]), covered_groups(ground, claim.who)
            same = (doing_the_same(ground)[code] for code in groups)
            if not any(len(groups) >= len(alike) and groups.issuperset(alike.tolist()) for alike in same):
                continue  # nobody is compared by it
            wanted += [("p50", 0.5, 0.0, valley, groups), ("p50", 0.5, valley, math.inf, groups)]
    found = stretches.quantiles([(share, low, high) for _, share, low, high, _ in wanted])
    return [
        Level(name, *quantiles, groups, low, high) for (name, _, low, high, groups), quantiles in zip(wanted, found, strict=True)
    ]


def _slower(ground: Ground, filled: Float, levels: Sequence[Beside], code: int) -> list[Slower]:
    """Return at which levels a group is slower than its peers: p50, p99, and both of its modes where it is so at both.

    `filled` are its samples by stretch.
    """
    alike = doing_the_same(ground)[code]
    if len(alike) < 2 or filled.sum() < SAMPLED or (filled > 0).sum() < LEAST_STRETCHES:  # itself alone
        return []
    out = []
    for usually in (each for each in levels if each.holds(alike)):
        level, none = usually.level, usually.unknown(code, alike)
        beside = Beside(level, np.where(none, level.ns, usually.ns), ground) if none.any() else usually  # as of all members
        peers = beside.usual.peers(code)
        throughout = beyond_peers(beside.ns, peers, code, BEYOND)
        if throughout < PEERS_MOST:
            continue
        value, theirs = float(level.whole_ns[code]), sorted(level.whole_ns[peers].tolist())[(len(peers) - 1) // 2]
        if apart(ground, theirs, value):
            above = alike[beside.middles[alike] > beside.middles[code]]
            worse = tuple(sorted({*above.tolist()}.difference(peers)))
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
    work = cache(lambda *codes: _work(ground, codes))
    claims: list[Claim] = []
    for who, codes in codes_of.items():
        own = [found for code in codes if (found := slower[code]) is not None]
        ceiling = _ceiling(work(*codes), [work(*others) for other, others in codes_of.items() if other != who]) if own else None
        if ceiling is not None and ceiling.share * most_times(ground, codes) < CEILING:
            claims.append(_peer(THROTTLED, codes, who, ground, max(own, key=lambda each: each.times), ceiling))
            continue
        for code, found in ((code, found) for code in codes if (found := slower[code]) is not None):
            ceiling = _ceiling(work(code), [work(peer) for peer in peers_of(ground, code)])
            if ceiling is not None and ceiling.share * most_times(ground, [code]) < CEILING:
                claims.append(_peer(THROTTLED, [code], ground.groups[code], ground, found, ceiling))
    return claims


def _unequal(samples: Float, explained: set[int], ground: Ground) -> list[Claim]:
    """Return a claim for each group that completes far more, or far fewer, than its peers throughout.

    Peers that are slow or throttled are left aside, and one that does fewer because it is: that explains it. Of two the one that
    does more is named. It must be so whatever those that do fewer lack. What a group did whose data begin late or end early is
    not known of all the run.
    """
    filled = ground.samples > 0
    reach = filled.shape[1] - filled.argmax(axis=1) - filled[:, ::-1].argmax(axis=1)
    totals = np.where(reach >= THROUGHOUT * filled.shape[1], samples.sum(axis=1), 0)
    with np.errstate(divide="ignore"):
        fewer = 1 / samples
    most = cache(lambda code: most_times(ground, [code]))
    by_more, by_fewer = (Usual(levels, ground, UNEQUAL) for levels in (totals, 1 / np.maximum(totals, 1)))
    claims = []
    for code, labels in enumerate(ground.groups):
        if totals[code] < SAMPLED:
            continue
        above, below = (
            [peer for peer in usual.peers(code) if totals[peer] >= SAMPLED and peer not in explained]
            for usual in (by_more, by_fewer)
        )
        more = beyond_peers(samples, above, code, UNEQUAL) >= THROUGHOUT
        several = bool(below) and sum(totals[peer] >= SAMPLED for peer in peers_of(ground, code)) > 1
        less = several and code not in explained and beyond_peers(fewer, below, code, UNEQUAL) >= THROUGHOUT
        if not more and not less:
            continue
        peers = above if more else below
        times = float(totals[code] / median(totals[peers]))
        least = totals[code] / median([totals[peer] * most(peer) for peer in peers]) if more else 1 / (times * most(code))
        if least >= UNEQUAL:
            claims.append(_whole(IMBALANCE, [code], labels, ground, times, {"more": more}))
    return claims


def _overall(ground: Ground, code: int, name: str) -> float:
    """Return a percentile of a group over the whole run in ns, as the command of the finding shows it."""
    whole = as_one(ground.rows.take(ground.rows_of([code], slice(None))))
    (percentile,) = parse_percentiles(name)
    return float(Ranked(whole).values(np.zeros(1, np.int64), percentile.ranks(whole.samples))[0])


def _work(ground: Ground, groups: Sequence[int]) -> Work:
    """Return what groups do together in the windows that lie wholly within the data."""
    codes = list(groups)
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
    if not others or not len(work.rate) or not median(work.rate):
        return None
    theirs = median(np.array([other.rate for other in others]), axis=0)
    usual, own = float(median(theirs)), float(median(work.rate))
    if not usual or float(np.mean(work.rate < CEILING * theirs)) < THROUGHOUT or own >= CEILING * usual:
        return None
    width = max(1, math.ceil(COUNTED / own))
    varies, they_vary = _varies(work.rate, width), float(median([_varies(other.rate, width) for other in others]))
    queued = work.under_way >= QUEUED * float(median([other.under_way for other in others]))
    steady = math.isfinite(they_vary) and varies <= STEADIER * they_vary
    return Ceiling(own / usual, varies) if steady or (queued and varies <= STEADY) else None


def _peer(kind: str, codes: list[int], who: Labels, ground: Ground, slower: Slower, ceiling: Ceiling | None = None) -> Claim:
    level = slower.level
    details: dict[str, Any] = {"typical_ns": slower.theirs_ns, "op": slower.op}
    details |= {"measure": level.name, "above_ns": level.above_ns, "upto_ns": level.upto_ns}
    if ceiling is not None:
        rate = _work(ground, codes).rate
        a_second = float(median(rate)) * SECOND / ground.step_ns if len(rate) else 0.0
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
        cells=ground.claimed(() if kind == IMBALANCE else codes, slice(None)),  # that explains no latency
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
SCREEN = 0.7  # instead of VALLEY, where all sets are looked at together with one kernel
LEAST_APART = math.log(1.5)
LEAST_COUNT = 1000
BEYOND_CHANCE = 6.0  # standard deviations of the count at a maximum, that the valley lies below it
KERNEL = 0.1  # of the logarithm: a tenth of the latency
REACH = 6.0  # widths of a kernel from its middle
POINTS = 400
TOGETHER = 0.6  # of the smaller mode, that comes in windows with the other one


class Places(NamedTuple):
    """Where a distribution has its maxima (ns), the share of samples at each, and the latencies (ns) of the valleys between."""

    peaks_ns: tuple[float, ...]
    shares: tuple[float, ...]
    valleys_ns: tuple[float, ...]


def modes(ground: Ground, _so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return the modes of all members, of those of a host or operation, of each; each member's are said once.

    They are facts: that their shares change is said by segments.py.
    """
    claims: list[Claim] = []
    taken: set[int] = set()
    for together in _may_have_modes(ground):
        members = together.members
        if taken & set(members.tolist()):
            continue
        places = _places(ground, members)
        if places is None:
            continue
        below = np.cumsum(places.shares)[:-1]
        valley = places.valleys_ns[int(np.argmin(np.abs(below - 0.5)))]  # the one that divides the samples most evenly
        slow = _above(ground, valley, members)
        if not _at_once(ground.samples[members] - slow, slow):
            continue
        claims.append(_modes(ground, together, places, valley, int(slow.sum())))
        taken |= set(members.tolist())
    return claims


def places_of(ground: Ground, counts: Int) -> Places | None:
    """Return the modes of counts by bin, None where there is one."""
    used = np.flatnonzero(counts)
    total = int(counts.sum())
    if total < LEAST_COUNT or len(used) < 3:
        return None
    layout = ground.rows.layout
    used = used[np.argsort(layout.middles_of(used), kind="stable")]
    logs = np.log(np.maximum(layout.middles_of(used).astype(np.float64), 1.0))
    weights = counts[used].astype(np.float64)
    grid = np.linspace(logs[0] - 3 * KERNEL, logs[-1] + 3 * KERNEL, POINTS)
    widths = np.log(layout.upper[used] / np.maximum(layout.lower[used], 1.0))
    for own in layout.member_bins:  # a bin is as wide as the way to the next of its own layout, whatever lies between
        mine = np.flatnonzero(np.isin(used, own))
        gaps = np.diff(logs[mine], prepend=-np.inf, append=np.inf)
        widths[mine] = np.where(len(mine) > 1, np.minimum(gaps[:-1], gaps[1:]), widths[mine])
    widths = np.maximum(widths, KERNEL)
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


def _places(ground: Ground, members: Int) -> Places | None:
    """Return the modes of some groups: of the whole run, else of one of its halves, where their shares may tell them apart."""
    later = 2 * np.arange(ground.shape[1]) >= ground.shape[1]
    first, second = (ground.counts(members, half) for half in (~later, later))
    found = (places_of(ground, counts) for counts in (first + second, first, second))
    return next((places for places in found if places is not None), None)


class Halves(NamedTuple):
    """Counts of each group in each half of the run, (2, G, places), at the places of a `grid` of latencies that hold any.

    The grid is of logarithms. `divides` is which of its POINTS part what a group does into two that it does in the same parts of
    the run, (G, POINTS).
    """

    grid: Float
    place: Int
    counts: Int
    divides: Bool


def _halves(ground: Ground) -> Halves:
    middles = ground.rows.layout.middles_of(ground.occupied)
    order = np.argsort(middles, kind="stable")
    logs = np.log(np.maximum(middles[order].astype(np.float64), 1.0))
    grid = np.linspace(logs[0], logs[-1], POINTS)
    place, starts = np.unique(np.searchsorted(grid, logs), return_index=True)
    upto = np.searchsorted(place, np.arange(POINTS), side="right") - 1
    later = 2 * part_starts(ground) >= ground.shape[1]
    counts = np.zeros((2, len(ground.groups), len(place)), np.int32 if ground.samples.sum() < 1 << 31 else np.int64)
    divides = np.zeros((len(ground.groups), POINTS), np.bool_)
    for codes, of_parts in binned(ground):
        for divided, (first, second), bins in zip(divides[codes], counts[:, codes].swapaxes(0, 1), of_parts, strict=True):
            own = np.add.reduceat(bins[:, order], starts, axis=1)
            own[~later].sum(axis=0, out=first)
            own[later].sum(axis=0, out=second)
            low = own.cumsum(axis=1)[:, upto]
            high = low[:, -1:] - low
            smaller = np.minimum(low.sum(axis=0), high.sum(axis=0))
            enough = smaller >= LEAST_SHARE / 2 * low[:, -1].sum()
            divided[:] = enough & (np.minimum(low, high).sum(axis=0) >= TOGETHER * smaller)
    return Halves(grid, place, counts, divides)


def _may_have_modes(ground: Ground) -> list[Together]:
    """Return the sets that may have modes: all are looked at together, where `places_of` and `_at_once` ask for more.

    Their density, on one grid and by the narrowest kernel, falls anywhere but near its ends, in the run or a half of it; and what
    each member does on either side of such a place it does in the same parts of the run: else it does so in no windows.
    """
    sets, halves = ground.once(sets_of), _halves(ground)
    kernels = np.exp(-0.5 * ((halves.grid[:, None] - halves.grid) / KERNEL) ** 2)
    may = list[Together]()
    for few in shares_of(len(sets)):
        some = sets[few]
        held = np.zeros((3, len(some), POINTS))
        held[:2, :, halves.place] = added_over(some, halves.counts)
        held[2] = held[0] + held[1]
        density = held @ kernels
        left = np.maximum.accumulate(density, axis=-1)
        right = np.maximum.accumulate(density[..., ::-1], axis=-1)[..., ::-1]
        below = held.cumsum(axis=-1) / np.maximum(held.sum(axis=-1, keepdims=True), 1)
        falls = (density <= SCREEN * np.minimum(left, right)) & (np.minimum(below, 1 - below) >= LEAST_SHARE / 2)
        for together, own in zip(some, falls.any(axis=0), strict=True):
            if own.any() and (own & halves.divides[together.members].all(axis=0)).any():
                may.append(together)
    return may


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


def _above(ground: Ground, valley_ns: float, members: Int) -> Int:
    """Return the samples of some groups above a latency by window, (members, T)."""
    slow = ground.rows.layout.middles_of(np.arange(ground.rows.layout.bins)) > valley_ns
    rows = ground.rows_of(members, slice(None))
    above, order = np.zeros((len(members), ground.shape[1]), np.int64), np.argsort(members)
    for place, part in ground.rows.take(rows).pieces():
        own = order[np.searchsorted(members[order], ground.group_of[rows[place]])]
        above[own, ground.window_of[rows[place]]] = row_sums(part.indptr, part.counts * slow[part.bins])
    return above


def _at_once(below: Int, above: Int) -> bool:
    """Return whether each member has both modes, and has them in the same windows, (members, T)."""
    for high, low in zip(above, below, strict=True):
        smaller = min(high.sum(), low.sum())
        if smaller < LEAST_SHARE / 2 * (high.sum() + low.sum()) or np.minimum(high, low).sum() < TOGETHER * smaller:
            return False
    return True


def _modes(ground: Ground, together: Together, places: Places, valley: float, slow: int) -> Claim:
    """Return the claim of modes: a fact of the run."""
    members = together.members
    return Claim(
        MODES,
        together.who,
        *ground.span(0, -1),
        cells=ground.claimed((), slice(None)),
        value_ns=places.peaks_ns[-1],
        times=places.peaks_ns[-1] / places.peaks_ns[0],
        samples=slow,
        latency_ns=(int(valley), int(known_most(ground.top_ns[members]))),
        details={"changes": False, "peaks_ns": places.peaks_ns, "shares": places.shares, "valley_ns": valley},
    )


# Rhythms: slow windows, or windows that complete little, which come back with a period, all the run or from one time to another.
#
# Candidates for periods are peaks of the periodogram against the spectrum around them, summed over harmonics (a short event has
# many). Of all periods, phases and widths the one is taken whose events explain most of the variance: at a half of the period
# every second event is none, at twice the period half of them lie beside. What decides is how far windows of events are above
# those around them, half a period to either side, against how far other stretches as long are: no wandering level moves that.


LEAST_PERIODS = 8
RHYTHM_LEAST_WINDOWS = 3  # of a period: below, windows are too coarse to tell phases
LEAST_KEPT = 0.75  # of the periods, whose event is at least half as strong as usual
RHYTHM_CHANCE = 1e-4  # of all that is tried: contrasts of few samples are not normal, and the best of their ranges is taken
ONE = 2.0  # times the median event, that one counts at most
LEAST_EXPLAINED = 0.2  # of the variance of windows, by the events
OVERSAMPLED = 8
LEAST_BEYOND, MOST_BEYOND = 3.0, 8.0  # deviations
PEAKS = 5  # candidates of a series that are folded
# Of the sum over 1 to 5 harmonics, in units of the spectrum around: alike by chance, but for periods of less than 4 windows,
# which are few, and of whose events a row of a log, which lies in two windows, leaves little.
LEAST_PEAK = (15.0, 30.0, 33.5, 37.0, 40.0)
# About 3 in 1,000 series without a rhythm have such a peak, e times fewer for each 0.11 of it more; one run in 100 may have one.
BY_CHANCE, FALLS, PEAK_CHANCE = 0.003, 0.11, 0.01
MULTIPLIED, MOST_MULTIPLE = 4, 5
ALIKE = 0.01
RHYTHM_AROUND = 61  # frequencies whose median is the spectrum around one
WIDTHS = (0.05, 0.1, 0.2, 0.33)  # of a period, that events are; what lasts longer is no event
LEAST_WIDTH, ROW_WIDTH = 0.7, 2.0  # windows: a row of a log, which may be all that an event is, lies in two of them
PHASES = 24  # of a period
MISSING = "missing"
ONE_MORE = 1.5  # samples of each group
PACED = 0.5  # times the variance that counting makes, below which completions come at a rate that is kept
LEVEL = "level"
EVEN = (LEVEL, MISSING)  # what is as often too high as too low
MEASURES = {LEVEL: LOGS, "p90": 2, "p99": 3, MISSING: DONE}  # places in Counts.fine


@dataclass(frozen=True, slots=True)
class Beat:
    """Events at `first`, `first` + `period`, ... before `end`, `width` windows long.

    `gain` is the root of what they explain of the squares of the series, `certainty` how far that is beyond chance; in the share
    `kept` of its periods there is an event.
    """

    period: float
    first: float
    end: float
    width: float
    gain: float
    certainty: float = 0.0
    kept: float = 1.0

    def windows(self, count: int) -> Bool:
        """Return which of so many windows are those of events, for at least half of what an event may have of a window."""
        since = np.clip(np.arange(count + 1), self.first, self.end) - self.first
        turns = np.floor(since / self.period)
        held = turns * self.width + np.minimum(since - turns * self.period, self.width)
        inside: Bool = np.diff(held) >= min(self.width, 1.0) / 2
        return inside


def rhythms(ground: Ground, so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return the rhythms of a run: of all members, of those of a host or an operation, of each.

    What a stall held back is of none of them, whenever it came.
    """
    whole = np.flatnonzero(ground.whole)
    span = slice(int(whole[0]), int(whole[-1]) + 1)
    if span.stop - span.start <= LEAST_PERIODS * RHYTHM_LEAST_WINDOWS + 1:
        return []
    sets = ground.once(sets_of)
    fine, stalled = every_count(ground).fine[:, :, span], stalled_cells(ground, so_far)[:, span]
    if stalled.any():
        fine = fine.copy()
        fine[[*range(CLASSES + 1), LOGS]] *= ~stalled
    tests, likely = len(sets) * len(MEASURES), []
    for measure, place in MEASURES.items():
        series = _series(sets, fine, place)
        found = (each for first in range(0, len(sets), AT_ONCE) for each in periods_of(series[first : first + AT_ONCE], tests))
        for own, (strength, periods) in zip(enumerate(series), found, strict=True):
            likely += [(strength, measure, *own, periods)] if periods else []
    claims: list[Claim] = []
    free = np.ones(len(ground.groups), np.bool_)
    for _, measure, number, series, periods in sorted(likely, key=lambda each: -each[0]):
        if not free[sets[number].members].all():
            continue
        slow = None if measure in EVEN else fine[[MEASURES[measure], 0]][:, sets[number].members].sum(axis=1)
        beat = beat_of(series, periods, tests, slow)
        if beat is None:
            continue
        inside = beat.windows(fine.shape[2])
        then, usually = (fine[:, :, where].sum(axis=2) for where in (inside, ~inside))
        if measure == MISSING:
            gains = rate_gains(then[DONE], usually[DONE] * inside.sum() / (~inside).sum())
        else:  # of the shares of slow samples that which tells most
            mine = sets[number].members
            every = [share_gains(then[at], then[0], usually[at], usually[0]) for at in range(1, CLASSES)]
            told = max(range(1, CLASSES), key=lambda at: float(every[at - 1][mine].sum(axis=0).max()))
            more = then[told, mine].sum() / inside.sum() - usually[told, mine].sum() / (~inside).sum()
            done = fine[0, mine].sum(axis=0)
            # Rows of a paced load are alike: which of two windows their slowest samples are counted in comes back with a period.
            if done.var() < PACED * done.mean() and more <= ONE_MORE * len(mine):
                continue
            gains = every[told - 1]
        _, together = likeliest(sets, np.where(free[:, None], gains, -np.inf), noise=1.0)
        if (claim := _rhythm(ground, together, beat, measure, span)) is not None:
            claims.append(claim)
            free[together.members] = False
    return claims


def _series(sets: Sequence[Together], fine: Float, place: int) -> Float:
    """Return how far windows of sets are from usual, (M, T): their share of slow samples, or what did not complete; high is bad.

    In deviations of windows, at least those of counting; drawn in, so that no wild window decides.
    """
    hits, of = (added_over(sets, part) for part in (fine[place], fine[0]))
    if place == DONE:
        usual = np.maximum(median(hits, axis=1, keepdims=True), 1.0)
        values = (usual - hits) / np.sqrt(usual)
    elif place == LOGS:
        values = hits / np.sqrt(np.maximum(of, 1))
    else:
        share = hits.sum(axis=1, keepdims=True) / np.maximum(of.sum(axis=1, keepdims=True), 1.0)
        values = (hits - of * share) / np.sqrt(np.maximum(of, 1) * np.maximum(share * (1 - share), 1e-9))
    values -= median(values, axis=1, keepdims=True)
    spread = 1.4826 * median(np.abs(values), axis=1, keepdims=True)
    least = {DONE: 0.25, LOGS: 1e-9}.get(place, 1.0)  # a paced rate varies less than counting does
    drawn_in: Float = np.clip(values / np.maximum(spread, least), -LEAST_BEYOND, MOST_BEYOND)
    return drawn_in


def beat_of(series: Float, periods: Sequence[float], tests: int, slow: Float | None = None) -> Beat | None:
    """Return the rhythm of a series of windows with one of the periods, None where it has none that is beyond chance.

    Held to RHYTHM_CHANCE for all periods, phases, beginnings and ends and `tests` together; `slow` are the slow samples and all
    of windows (2, T), where the series is of their share.
    """
    best = _fitted(series, periods)
    if best is None:
        return None
    turns = (best.end - best.first) / best.period
    near = best.period + np.linspace(-1, 1, 9) * max(best.width, 1.0) / turns
    return _certain(series, _fitted(series, near.tolist(), best) or best, tests, slow)


def periods_of(series: Float, tests: int = 1) -> list[tuple[float, list[float]]]:
    """Return candidates for the period in windows of each series (M, T), the strongest first, and how strong that is.

    Beyond what chance makes of so many `tests`.
    """
    least = 1 + FALLS * max(math.log(tests * BY_CHANCE / PEAK_CHANCE), 0.0)
    count = series.shape[1]
    size = 1 << math.ceil(math.log2(OVERSAMPLED * count))
    waves = np.fft.rfft(series - series.mean(axis=1, keepdims=True), size)
    power = waves.real**2 + waves.imag**2
    parts = max(power.shape[1] // (RHYTHM_AROUND * OVERSAMPLED), 1)
    around = median(power[:, : power.shape[1] // parts * parts].reshape(len(series), parts, -1), axis=2)
    # The spectrum around each frequency, by the line between the middles of two parts.
    at = np.linspace(0, parts - 1, power.shape[1])
    part = np.minimum(at.astype(np.int64), max(parts - 2, 0))
    slope = np.append(np.diff(around, axis=1), np.zeros((len(series), 1)), axis=1)
    each = np.bincount(part)  # of the frequencies, which rise: how many lie between the middles of each two parts
    line = np.repeat(slope[:, : len(each)], each, axis=1)
    line *= at - part
    line += np.repeat(around[:, : len(each)], each, axis=1)
    power /= np.maximum(line, 1e-300, out=line)
    np.minimum(power, 60.0, out=power)
    places = np.arange(math.ceil(size * LEAST_PERIODS / count), size // RHYTHM_LEAST_WINDOWS + 1)
    summed, many = np.zeros((len(series), len(places))), np.zeros(len(places), np.int64)
    for harmonic in range(1, len(LEAST_PEAK) + 1):
        inside = int(np.searchsorted(places * harmonic, power.shape[1]))
        summed[:, :inside] += power[:, places[0] * harmonic :: harmonic][:, :inside]
        many[:inside] += 1
    summed /= np.array(LEAST_PEAK)[many - 1]
    most = count / LEAST_PERIODS * (1 + ALIKE)
    found = []
    for own, strength in zip(summed, summed.max(axis=1).tolist(), strict=True):
        strongest = list[float]()
        while len(strongest) < PEAKS and own[best := int(own.argmax())] >= least:
            strongest.append(size / float(places[best]))
            own[max(best - OVERSAMPLED, 0) : best + OVERSAMPLED + 1] = 0.0
        # A harmonic of a short event is as strong as the event itself: its multiples are tried, too.
        several = [period * multiple for period in strongest[:MULTIPLIED] for multiple in range(2, MOST_MULTIPLE + 1)]
        found.append((strength, strongest + [period for period in several if period <= most]))
    return found


def _contrasts(values: Float, starts: Float, period: float, width: float) -> Float:
    """Return by how much events that begin at `starts` (any shape) are above what is around them; NaN where not in the run."""
    below = added_up(values)

    def upto(times: Float) -> Float:
        return np.interp(times, np.arange(len(below)), below)

    middle = starts + width / 2
    low, high = np.maximum(middle - period / 2, 0), np.minimum(middle + period / 2, len(values))
    event = upto(starts + width) - upto(starts)
    beside = (upto(high) - upto(low) - event) / np.maximum(high - low - width, 0.5)
    return np.where((starts > -0.5) & (starts + width < len(values) + 0.5), event / width - beside, np.nan)


def _fitted(values: Float, periods: Sequence[float], near: Beat | None = None) -> Beat | None:
    """Return the rhythm of one of the periods whose events explain most, in the turns in which they do; of widths `near` one."""
    count, best = len(values), None
    for period in periods:
        widest = max(WIDTHS[-1] * period, ROW_WIDTH)
        widths = [*(max(share * period, LEAST_WIDTH) for share in WIDTHS), widest]
        if near is not None:
            widths = [near.width * times for times in (0.75, 1.0, 1.25) if near.width * times <= widest]
        phases = np.arange(0, period, max(period / PHASES, 0.25 if near is None else 0.1))
        for width in dict.fromkeys(widths):
            starts: Float = phases[:, None] + period * np.arange(-1, math.ceil(count / period))
            contrast = np.nan_to_num(_contrasts(values, starts, period, width))
            weight = math.sqrt(width * (1 - width / period))
            # Of each phase, from the turn to the turn between which events are at least half as strong as usual.
            upper = contrast * (contrast >= contrast.mean(axis=1, keepdims=True))
            usual = upper.sum(axis=1) / np.maximum((upper != 0).sum(axis=1), 1)
            sums = added_up(contrast - usual[:, None] / 2)
            end = (sums - np.minimum.accumulate(sums, axis=1)).argmax(axis=1)
            first = np.where(np.arange(sums.shape[1]) <= end[:, None], sums, np.inf).argmin(axis=1)
            held = np.maximum(end - first, 1)
            added = added_up(contrast)
            rows = np.arange(len(phases))
            gains = weight * (added[rows, end] - added[rows, first]) / np.sqrt(held)
            gains[end - first < LEAST_PERIODS - 1] = 0
            top = int(gains.argmax())
            if gains[top] > (best.gain if best else 0.0):
                low, high = starts[top, first[top]], starts[top, end[top] - 1] + period
                best = Beat(period, float(low), float(high), width, float(gains[top]))
    return best


def _certain(values: Float, beat: Beat, tests: int, slow: Float | None) -> Beat | None:
    """Return a rhythm that is beyond chance, None where it is not: by how contrasts of all phases vary in that time."""
    turns = beat.first + beat.period * np.arange(round((beat.end - beat.first) / beat.period), dtype=np.float64)
    own = _contrasts(values, turns, beat.period, beat.width)
    own = own[~np.isnan(own)]
    own = np.minimum(own, ONE * median(own))  # one that is far stronger is an event of its own
    step = max(beat.width / 2, 0.5)
    shifts = step * np.arange(math.ceil(beat.period / step), dtype=np.float64)
    others = _contrasts(values, turns + shifts[:, None], beat.period, beat.width)
    others -= known_mean(others, axis=1, keepdims=True)
    of_counting = math.sqrt(1 / beat.width + 1 / (beat.period - beat.width))
    seen = math.sqrt(float(known_mean(others**2)))
    varies = max(seen, of_counting / 2)
    stretch = values[max(int(beat.first), 0) : math.ceil(beat.end)]
    explained = beat.gain**2 / max(float(((stretch - stretch.mean()) ** 2).sum()), 1e-300)
    kept = float(np.mean(own >= median(own) / 2))
    tried = tests * len(values) / 2 * beat.period / beat.width * len(WIDTHS) * (len(values) / beat.period) ** 2 / 2
    # How contrasts vary is seen of so many that do not overlap: Student's tail, not the normal one. Where less is seen than
    # counting makes, and that varies as far up as down, it is known.
    known = max(float(np.count_nonzero(~np.isnan(others)) - len(others)) * min(step / beat.width, 1.0), 1.0)
    strength = float(own.mean()) ** 2 * len(own) / varies**2
    tail = strength / 2 if slow is None and varies > seen else (known + 1) / 2 * math.log1p(strength / known)
    tail = tail if slow is None else min(tail, _by_counting(slow, beat))  # of few that are slow it tells no more than they do
    certainty = tail - math.log(tried / RHYTHM_CHANCE)
    if certainty <= 0 or kept < LEAST_KEPT or explained < LEAST_EXPLAINED or len(own) < LEAST_PERIODS - 1:
        return None
    return replace(beat, certainty=certainty, kept=kept)


def _by_counting(slow: Float, beat: Beat) -> float:
    """Return the logarithm of how unlikely it is by chance that so many of the slow samples in its time are in its events."""
    inside, time = beat.windows(slow.shape[1]), slice(max(int(beat.first), 0), math.ceil(beat.end))
    (hits, of), (every, whole) = slow[:, inside].sum(axis=1), slow[:, time].sum(axis=1)
    due, rest = of / max(whole, 1) * every, every - hits
    return float(hits * math.log(hits / due) + (rest * math.log(rest / (every - due)) if rest else 0.0)) if hits > due else 0.0


def _rhythm(ground: Ground, together: Together, beat: Beat, measure: str, span: slice) -> Claim | None:
    """Return the claim of a rhythm, with how slow its windows are against all others; None where that is hardly slower."""
    members, count, step = together.members, span.stop - span.start, ground.step_ns
    during, usual = np.zeros((2, ground.shape[1]), np.bool_)
    first, last = max(math.floor(beat.first), 0), min(math.ceil(beat.end), count)
    first, last = (0 if first < beat.period else first), (count if count - last < beat.period else last)
    # Until the end of the run there may be one more, of which a part is there.
    during[span] = (replace(beat, end=float(count)) if last == count else beat).windows(count)
    usual[span] = ~during[span]
    missing, value = 0.0, None
    if measure == MISSING:
        then, reach = ground.samples[members][:, during], math.ceil(beat.period)
        # Of each window those of one period before and after it: a level that changes is none of it.
        beside = np.pad(np.where(usual, ground.samples[members], np.nan), ((0, 0), (reach, reach)), constant_values=np.nan)
        near = np.lib.stride_tricks.sliding_window_view(beside, 2 * reach + 1, axis=1)[:, during]
        lacks = np.nan_to_num(known_median(near, axis=2)) - then
        missing, lack = float(np.maximum(lacks, 0).sum()), float(median(lacks.sum(axis=0)))
        # What is paced completes one more in some windows than in others, and that comes back with a period.
        least = max(float(median(then.sum(axis=0))), 1.0)
        times = 1 + lack / least if lack > ONE_MORE * len(members) else 1.0
    else:
        reached = measured(ground, members, during, usual, in_bins=True)  # its phases gather whatever its size
        if reached is None:
            return None
        measure, typical_ns, value = reached
        times = value / typical_ns if typical_ns > 0 else math.inf
    if not times >= LEAST_TIMES:
        return None
    cells = ground.cells(members, during)
    with np.errstate(all="ignore"):
        low = -float(known_most(-ground.p50_ns[cells])) if cells.any() else 0.0
        high = float(known_most(ground.top_ns[cells])) if cells.any() else 0.0
    return Claim(
        RHYTHM,
        together.who,
        *ground.span(span.start + first if first else 0, span.start + last - 1 if last < count else -1),
        cells=ClaimedCells.of(cells),
        value_ns=value,
        times=times,
        samples=int(ground.samples[cells].sum()),
        missing=missing,
        certainty=beat.certainty,
        latency_ns=None if math.isnan(low) else (int(low), int(high)),
        details={
            "measure": measure,
            "period_ns": beat.period * step,
            "first_ns": int(ground.start_ns[0] + (span.start + max(beat.first, 0)) * step),
            "width_ns": beat.width * step,
            "kept": beat.kept,
            **as_detail(ground, *together),
        },
    )


# Failures: when, and of whom, more operations failed than otherwise.
#
# A scan over all stretches of windows and all sets of members: the one whose share of failures differs most from that of all
# others, by likelihood in units of what shares vary by without it, is told; then the next in what that leaves. Who did it are the
# members that one common effect makes likeliest, any of them. What is nowhere more than elsewhere is said of the whole run.


MOST_TOLD, LEAST_SCORE, LEAST_MORE, SCANNED = 3, 12.0, 2.0, 180  # SCANNED: stretches begin and end at so many places at most
ENOUGH_FAILED, FEWEST_BLOCKS = 4, 16  # failures in a block, so that its share tells what chance does; blocks of a run
LEAST_OTHER = 6.0  # in likelihood, of an effect of its own on the others
FEWEST_SPANS = 5  # that tell how much failures vary from one to the next


def failures(ground: Ground, _so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return a claim of each stretch in which operations failed; it explains no window's excess."""
    told = ground.outcomes
    if told is None:
        return []
    sets, windows = gatherings(told.groups), told.failed.shape[1]
    left, claims, everywhere = np.ones(told.failed.shape, np.bool_), list[Claim](), common(told.groups)
    while len(claims) < MOST_TOLD and told.failed[left].any():
        failed, every = (np.where(left, counts, 0) for counts in (told.failed, told.every))
        chances = _chances(failed, every, sets)
        scored = [_stretch(failed, every, together.members, chance) for together, chance in zip(sets, chances, strict=True)]
        best = int(np.argmax([round(found[0], 6) for found in scored]))  # of equals the widest
        score, first, last = scored[best]
        own = sets[best].members
        score *= chances[best][last - first] / max(chances[best][last - first], _bunched(failed, every, slice(first, last + 1)))
        if score - math.log(len(sets)) >= LEAST_SCORE:
            own = _failing(told.groups, failed, every, own, slice(first, last + 1))
            _, first, last = _stretch(failed, every, own, chances[best])
        elif claims:
            break
        else:
            own, first, last = sets[0].members, 0, windows - 1
        during = slice(first, last + 1)
        inside = [int(counts[own, during].sum()) for counts in (failed, every)]
        rest = [int(counts.sum()) - part for counts, part in zip((failed, every), inside, strict=True)]
        who = tuple(label for label in common([told.groups[code] for code in own]) if label not in everywhere)
        named = [code for code, labels in enumerate(told.groups) if set(who) <= set(labels)] == own.tolist()
        details = {
            "failed": inside[0],
            "of": inside[1],
            "rest": rest[0] / rest[1] if rest[1] else None,
            "whole": during == slice(0, windows),
            "members": [] if named else [dict(labels) for labels in dict.fromkeys(member(told.groups[code]) for code in own)],
        }
        none = ground.claimed((), slice(None))
        claims.append(Claim(FAILURES, who, *ground.span(first, last), cells=none, samples=inside[1], details=details))
        left[own, during] = False
    return claims


def _chances(failed: Int, every: Int, sets: Sequence[Together]) -> list[Float]:
    """Return of each set by how many times its share varies more than by counting, by the number of windows.

    As alike sets do, and no more than that of all operations does, which have the most failures to tell it by.
    """
    counts = [np.array([part[together.members].sum(axis=0) for together in sets]) for part in (failed, every)]
    kinds: dict[tuple[str, ...], list[int]] = {}
    for number, together in enumerate(sets):
        kinds.setdefault(tuple(name for name, _ in together.who) if number else (), []).append(number)
    found: dict[int, Float] = {}
    windows = failed.shape[1]
    for alike in kinds.values():
        wide = math.ceil(ENOUGH_FAILED * windows * len(alike) / max(int(counts[0][alike].sum()), 1))
        wide = max(1, min(wide, windows // FEWEST_BLOCKS))
        hits, of = (np.add.reduceat(part[alike], np.arange(0, windows, wide), axis=1).astype(np.float64) for part in counts)
        own = np.repeat(wandering(hits, of), wide)[:windows]
        found |= dict.fromkeys(alike, np.minimum(own, found.get(0, own)))
    return [found[number] for number in range(len(sets))]


def _bunched(failed: Int, every: Int, during: slice) -> float:
    """Return by how many times failures vary more than if each came by itself, outside a stretch of windows or in it; at least 1.

    Around the shares of each group and of all together there, by windows and by spans as long as the stretch. Failures of which
    twenty come at once, wherever they do, tell as much as a twentieth of them.
    """
    inside = np.zeros(failed.shape[1], np.bool_)
    inside[during] = True
    found = [1.0]
    for windows in (inside, ~inside):
        for span in (1, during.stop - during.start):
            starts = np.arange(0, np.count_nonzero(windows) - span + 1, span)
            if len(starts) < FEWEST_SPANS:
                continue
            spans = [np.add.reduceat(part[:, windows][:, : len(starts) * span], starts, axis=1) for part in (failed, every)]
            for hits, of in (spans, [part.sum(axis=0, keepdims=True) for part in spans]):
                total, held = hits.sum(axis=1), of.sum(axis=1)
                some = (total > 0) & (total < held)
                share = (total[some] / held[some])[:, None]
                squares = (hits[some] - share * of[some]) ** 2 / np.maximum(share * (1 - share) * of[some], 1e-9)
                varied = squares.sum(axis=1) / np.maximum(np.count_nonzero(of[some], axis=1) - 1, 1)
                found.append(float(np.average(varied, weights=total[some])) if some.any() else 1.0)
    return max(found)


def _failing(groups: Sequence[Labels], failed: Int, every: Int, own: Int, during: slice) -> Int:
    """Return the groups that failed more in some windows: whole members, with the operations that `own` has.

    Those that are likeliest to have one effect in common while all others have another one, or none; choosing them costs.
    """
    ops = {dict(groups[code]).get(OP) for code in own.tolist()}
    units: dict[Labels, list[int]] = {}
    for code, labels in enumerate(groups):
        if dict(labels).get(OP) in ops:
            units.setdefault(member(labels), []).append(code)
    inside = [np.array([part[codes, during].sum() for codes in units.values()], np.float64) for part in (failed, every)]
    usual = [np.full(len(units), float(part.sum() - of.sum())) for part, of in zip((failed, every), inside, strict=True)]
    order = np.argsort(-inside[0] / np.maximum(inside[1], 1), kind="stable")
    gains, many = share_gains(*inside, *usual)[order], len(units)
    others = np.append(np.cumsum(gains[::-1], axis=0)[::-1].max(axis=1)[1:] - LEAST_OTHER, 0.0).clip(0)
    costs = [math.log(math.comb(many, count)) for count in range(1, many + 1)]
    chosen = order[: 1 + int(np.argmax(np.cumsum(gains, axis=0).max(axis=1) + others - costs))]
    members = list(units.values())
    return np.array(sorted(code for number in chosen.tolist() for code in members[number]), np.int64)


def _stretch(failed: Int, every: Int, own: Int, chance: Float) -> tuple[float, int, int]:
    """Return the stretch of windows in which some groups' share of failures is most unlike that of the rest: score, first, last.

    The score is the log of the ratio of likelihoods, in units of `chance` by the number of windows. All other groups are part of
    the rest.
    """
    total, windows = (int(failed.sum()), int(every.sum())), failed.shape[1]
    failed, every = failed[own].sum(axis=0), every[own].sum(axis=0)
    wide = -(-windows // SCANNED)
    starts = np.arange(0, windows, wide)
    sums = [np.append(0, np.cumsum(np.add.reduceat(counts, starts))) for counts in (failed, every)]
    inside, of = (np.triu(each[1:] - each[:-1, None]).astype(np.float64) for each in sums)
    outside, of_rest = total[0] - inside, total[1] - of
    lengths = np.clip(np.append(starts[1:], windows) - starts[:, None], 1, windows)
    with np.errstate(all="ignore"):
        expected = total[0] * of / total[1]
        score = inside * np.log(inside / expected) + np.where(outside > 0, outside * np.log(outside / (total[0] - expected)), 0.0)
        more = (inside / of >= LEAST_MORE * outside / of_rest) | (of_rest <= 0)
    score = np.where((inside > expected) & more & np.isfinite(score), score / chance[lengths - 1], 0.0)
    first, last = np.unravel_index(int(score.argmax()), score.shape)
    low, high = int(first) * wide, min((int(last) + 1) * wide, windows)
    bad = np.flatnonzero(failed[low:high])
    return float(score[first, last]), low + int(bad[0]) if len(bad) else low, low + int(bad[-1]) if len(bad) else high - 1


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
            cells=ground.claimed((), slice(None)),
            samples=int(ground.samples.sum()),
            details={"said": tuple(re.sub(f"^.*?{WARNING}", "", text) for text in said)},
        )
    ]
