"""One method for what changes over a run: each set of members is cut into levels, any number at once; worse levels are named.

    samples above each member's own p50, p90, p99; completions; by window    . . : : . . . . # # # # . . . .
    cut into levels (optimal partitioning)                                   |               |       |
    the levels that are worse than its usual ones, beyond chance                             [8 times]

What is looked at is shares of samples above each member's own quantiles, so that no change of the mix of members moves them, and
completions. Chance is what levels of that length do by themselves: counting, and wandering. That is measured by differences of
neighbouring spans of 1 to 32 blocks, which an episode cannot move, over all sets of a kind together and of the set itself where
it is worse; an autoregressive series beside counting is fitted to these (`_inflation`).

A level is held against chance for all sets and all places together; then the set is chosen whose members did the same at that
time (`Search.who`), its blocks are taken out, and what is left is tested again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from ingest.core import kernel
from ingest.core.intervals import Bool, Int, median
from ingest.core.layout import Float, Layout
from ingest.core.quantiles import counts_above, weighed
from ingest.query.change_points import kept_share, tamed, whitened
from ingest.query.story.ground import (
    DRIFT,
    EDGE,
    EPISODE,
    HOST,
    MODES,
    RHYTHM,
    STALL,
    STEP,
    Claim,
    Ground,
    Labels,
    apart,
    as_detail,
    binned,
    by_bin,
    covered_groups,
    known_mean,
    known_median,
    known_most,
    lost_windows,
    member,
    numbers_by,
    own_groups,
)

Levels = list[tuple[int, int]]  # first block, end

NORMAL = NormalDist()
RANKS = (0.5, 0.9, 0.99)  # above which samples are counted, of each group by itself ...
FAR = 4.0  # ... and above so many times its p99: what waits for an outage is further than any level wanders
CLASSES = len(RANKS) + 1
FARTHEST = CLASSES - 1  # measures count from 0; places in `over` from 1
DONE, LOGS, DUE = CLASSES + 1, CLASSES + 2, CLASSES + 3  # places beside the classes
TABLE = np.linspace(0, 1, 129)  # ranks at which the latencies of a group are kept
MOST = 240  # blocks that a run is searched in
LEAST_RUN = 20  # blocks
CHANCE = 0.01  # of a false finding in a run, about: see docs/explanation/findings.md
LEAST_TIMES = 1.2  # of the level
LEVEL = 1.1  # that usual levels differ
MORE = 1.4  # that shares of slow samples differ usually
AGAINST = 10.0  # logarithm of the odds that windows are none of an event at an end of the run, or groups of one of a set
WORN = math.log(10)  # times the time constant of what wears off, after which a tenth of it is left
BENT = 1.06  # times the squares that a curve leaves of what drifts, beside a line that is level before or after a time
EXCEPTED = 0.25  # of the groups of a set, that may not do what it does
TWICE = 2.0  # as slow: hardly a series wanders as far, so that its thirds are one test, not one of all sets
STEADY, STILL = 1 / 8, 1 / 4  # of a drift, that the level moves at least from each third of the run to the next; hardly any more
PART = 0.25  # of the height of the highest level, in logarithms, that those of one event have
HIGHER = 0.5, 1.0  # such parts, where all of that is within chance
AT_MOST = 3  # windows, of what may be shorter than they are
FEW_BLOCKS = 6  # of a level whose ends are tried a block further in where it is no event
LONG = 3  # windows of an event that tell how bad it is without those at its ends
MOSTLY = 0.5  # of a window at an end of an event, that is of it
WEARS_OFF = 0.1  # of what levels at the beginning of the run take longer
INNER = 1.5  # times, that a level stands out of raised ones around it
LEAST_TAIL, LEAST_RARE = 1.8, 0.004  # times, of the share of samples above p99 (of the far ones), or of this share of all ...
LEAST_TYPICAL = 0.02  # of the samples of a set: what a wide row leaves in windows whose own rows are gone is no typical level
LEAST_SLOW = 6  # ... and so many of them
LEAST_RATE, LEAST_EDGE_RATE, HARDLY = 0.85, 0.8, 0.2  # of the usual rate; what completes after hardly anything did was waiting
LEAST_EXCESS = 0.02  # of all excess of the run, that a finding has
LEAST_MISSING = 0.001  # of all completions
SHORTEST, LEAST_SHORT = (1, 2, 3, 4), 16.0  # blocks, of stretches that are looked at beside levels; a chi-square of them
SPANS = (1, 2, 4, 8, 16, 32)  # blocks in a row whose differences measure what chance does
UNSURE = 1.25  # times, that levels may vary more than the lower of two estimates says
OWN_BY_CHANCE = 0.4  # times, that one of alike sets seems to vary more
HALF = 0.5  # an event that is added where there may be none (Jeffreys)
LEAST_NOISE = np.array([1.0] * CLASSES + [0.25])  # times what counting makes: a paced rate varies less
AT_ONCE = 64  # sets that are cut into levels together: what is summed stays in a processor's cache
EASIER = 0.99  # times the penalty of one more level, where it is first asked what is usual
SEARCHED = 8  # blocks: the length whose noise weighs the search
PHIS = np.array([0, 0.3, 0.5, 0.7, 0.8, 0.87, 0.92, 0.95, 0.97, 0.98, 0.99])
SHARES = np.concatenate([[0.0], np.geomspace(0.02, 200, 40)])  # of the variance of a block that wanders, beside that of counting
EFFECTS = np.concatenate([np.linspace(0.1, 3, 30), np.linspace(3.5, 12, 18)])  # logarithms of odds, or of rates, that are tried


def shares_of(sets: int) -> Iterator[slice]:
    """Yield the sets that are looked at together, a share of all: what is made of them meanwhile is held of these alone."""
    return (slice(first, first + AT_ONCE) for first in range(0, sets, AT_ONCE))


class Together(NamedTuple):
    """Some groups of a ground that have labels in common and may do the same at the same time: all, those of a host, of an op."""

    who: Labels
    members: Int


def gatherings(groups: Sequence[Labels]) -> list[Together]:
    """Return all groups, those of each label and of each member, and each by itself, the most first."""
    having = {label: set(codes) for label, codes in numbers_by(groups).items()}
    every = range(len(groups))
    named = [*((label,) for label in having), *dict.fromkeys(member(labels) for labels in groups)]
    shared = (sorted((having[label] for label in who), key=len) for who in named)
    described = (tuple(sorted(some[0].intersection(*some[1:]))) if some else tuple(every) for some in shared)
    sets = dict.fromkeys((tuple(every), *described, *((code,) for code in every)))
    return [together_of(groups, members) for members in sorted(sets, key=lambda members: -len(members))]


def together_of(groups: Sequence[Labels], members: Sequence[int]) -> Together:
    """Return some groups, named by what these have in common, but for what all have: of that the host alone."""
    everywhere = {label for label in common(groups) if label[0] != HOST}
    who = (label for label in common([groups[code] for code in members]) if label not in everywhere)
    return Together(tuple(who), np.array(members, np.int64))


def sets_of(ground: Ground) -> list[Together]:
    """Return what `gatherings` makes of the groups of a ground; asked for once: of thousands it takes milliseconds."""
    return gatherings(ground.groups)


def added_over(sets: Sequence[Together], values: Any) -> Float:
    """Return the sums over the groups of each set, (..., sets, n), of values (..., groups, n)."""
    out: Float = np.empty((*values.shape[:-2], len(sets), values.shape[-1]))
    alone = np.array([len(together.members) == 1 for together in sets])
    single = [int(together.members[0]) for together in sets if len(together.members) == 1]
    out[..., alone, :] = values[..., single, :]
    for number in np.flatnonzero(~alone).tolist():
        out[..., number, :] = values[..., sets[number].members, :].sum(axis=-2)
    return out


def common(groups: Sequence[Labels]) -> Labels:
    """Return the labels that all groups have; an empty one is none."""
    return tuple(label for label in groups[0] if label[1] and all(label in labels for labels in groups))


@dataclass(frozen=True, slots=True)
class Counts:
    """What is counted of each group (G) in blocks (n) of `width` windows, from window `first` on.

    `over` (5, G, n) are the samples, and those above the group's own p50, p90, p99 and FAR times that, which are `cuts` (4, G) in
    logarithms of ns; `done` its completions, `due` those that its mean rate makes (0 where it is not known what it did); `logs`
    the sums of logarithms of latencies above their mean, `table` (G, ranks) these logarithms at the ranks of TABLE.
    `fine` is `over`, `done`, `logs` and `due` (8, G, T) by window.
    """

    first: int
    width: int
    over: Float
    done: Float
    due: Float
    logs: Float
    fine: Float
    cuts: Float
    table: Float

    @property
    def blocks(self) -> int:
        """Return how many blocks there are."""
        return int(self.over.shape[2])

    def windows(self, first: int, end: int) -> slice:
        """Return the windows of blocks `first` to `end`."""
        return slice(*(self.first + block * self.width for block in (first, end)))

    def in_windows(self, blocks: Bool, *, beyond: bool = False) -> Bool:
        """Return for each window what is true of its block; `beyond` of those that lie in none."""
        own = np.repeat(blocks, self.width, axis=-1)
        ends = self.first, self.fine.shape[2] - self.first - own.shape[-1]
        whole: Bool = np.pad(own, [*[(0, 0)] * (own.ndim - 1), ends], constant_values=beyond)
        return whole


class Cells(NamedTuple):
    """What is counted of each group and window, (LOGS + 1, G, T), as in Counts, with its cuts and table."""

    counted: Float
    cuts: Float
    table: Float


def _cells(ground: Ground, aside: Bool | None = None) -> Cells:
    """Return what is counted of each window; the quantiles of a group are those of its cells (G, T) that are not left `aside`."""
    groups, windows = ground.shape
    logs = np.log(np.maximum(ground.rows.layout.middles_of(ground.occupied).astype(np.float64), 1.0))
    taken = None
    if aside is not None:
        out = np.flatnonzero(aside[ground.group_of, ground.window_of])
        taken = by_bin(ground.rows.take(out), ground.occupied, ground.group_of[out], groups)
    cuts, table, centre = np.empty((CLASSES, groups), np.int64), np.empty((groups, len(TABLE))), np.empty(groups)
    for codes, counts in binned(ground):
        totals = counts.sum(axis=1, dtype=np.float64)
        totals -= 0 if taken is None else taken[codes]
        held = np.maximum(totals.sum(axis=1, keepdims=True), 1)
        below = totals.cumsum(axis=1) / held
        # Of the bins at and below the rank the one nearest to it: in wide bins the share above it is what it is.
        for place, rank in enumerate(RANKS):
            cuts[place, codes] = np.abs(below - rank).argmin(axis=1)
        table[codes] = [logs[np.minimum(np.searchsorted(row, TABLE), len(logs) - 1)] for row in below]
        centre[codes] = (totals @ logs) / held[:, 0]
    cuts[-1] = np.minimum(np.searchsorted(logs, logs[cuts[-2]] + math.log(FAR)), len(logs) - 1)
    log_of = np.zeros(ground.rows.layout.bins)
    log_of[ground.occupied] = logs
    counted = np.zeros((LOGS + 1, groups, windows))
    counted[0] = counted[DONE] = ground.samples
    above = counts_above(ground.rows, ground.occupied[cuts.T[ground.group_of]])
    counted[1 : CLASSES + 1, ground.group_of, ground.window_of] = above.T
    at = ground.group_of, ground.window_of
    counted[LOGS][at] = weighed(ground.rows, log_of) - centre[at[0]] * ground.samples[at]
    return Cells(counted, logs[cuts], table)


def every_count(ground: Ground) -> Counts:
    """Return what is counted of a ground."""
    return ground.once(counts_of)


def counts_of(ground: Ground, aside: Bool | None = None, stalled: Bool | None = None) -> Counts:
    """Return what is counted of a ground, without the cells (G, T) left `aside`; those `stalled` move no quantile of a group."""
    counted, cuts, table = ground.once(_cells) if stalled is None or not stalled.any() else _cells(ground, stalled)
    kept = np.True_ if aside is None else ~aside
    fine, known = np.empty((DUE + 1, *ground.shape)), _known(ground) & kept
    np.multiply(counted, kept, out=fine[:DUE])
    whole = np.flatnonzero(ground.whole)
    first, count = int(whole[0]), int(whole[-1]) + 1 - int(whole[0])
    width = -(-count // MOST)
    used = slice(first, first + count // width * width)

    def blocks(values: Float) -> Float:
        added: Float = values[..., used].reshape(*values.shape[:-1], -1, width).sum(axis=-1)
        added[..., 0] += values[..., :first].sum(axis=-1)  # a warm-up of a second is in the window that is a part
        added[..., -1] += values[..., used.stop :].sum(axis=-1)  # and so is what happens at the end
        return added

    fine[DONE], fine[DUE] = ground.samples * known, known
    over, done, exposed, logs = (blocks(fine[at]) for at in (slice(CLASSES + 1), DONE, DUE, LOGS))
    rate = (done.sum(axis=1) / np.maximum(exposed.sum(axis=1), 1))[:, None]
    fine[DUE] *= rate
    return Counts(first, width, over, done, exposed * rate, logs, fine, cuts, table)


def _known(ground: Ground) -> Bool:
    """Return in which windows (G, T) it is known how much groups did: between their first and last ones, without what is lost."""
    filled = ground.samples > 0
    first = filled.argmax(axis=1)[:, None]
    last = ground.shape[1] - 1 - filled[:, ::-1].argmax(axis=1)[:, None]
    at, inner = np.arange(ground.shape[1]), np.flatnonzero(ground.whole)
    # The windows in which a group begins and ends are parts, as those are in which the run does.
    known: Bool = (at > first) & (at >= inner[0]) & (at < last) & (at <= inner[-1]) & ~lost_windows(ground)
    return known


# Chance: how much more levels differ than by counting alone.


def _kept(blocks: int, span: int) -> float:
    """Return the share of differences of neighbouring spans that is used: an episode makes some of them large."""
    return 1 - max(0.05, min(8 * span / blocks, 0.5))


@lru_cache(maxsize=64)
def _of_lowest(kept: float) -> float:
    """Return the mean of the lowest share of squares of normal numbers."""
    z = NORMAL.inv_cdf((1 + kept) / 2)
    return 1 - 2 * z * NORMAL.pdf(z) / kept


def _ratio(below: Float, of_below: Float, span: int, usable: Bool, *, binomial: bool, around: bool = False) -> Float:
    """Return by how many times spans of blocks vary more than counting makes them, (sets); NaN where too few can be seen.

    Each against the next one, which no episode moves; or `around` the mean of the usable blocks, where wandering shows in full.
    `below` are counts, `of_below` of how many, both added up.
    """
    blocks, step = usable.shape[1], max(span // 2, 1)
    last = blocks - (1 if around else 2) * span  # that a span begins at
    out = np.full(len(below), np.nan)
    if last // step + 1 < 5:
        return out

    def spans(sums: Float, after: int = 0) -> Float:
        return sums[:, after + span : after + span + last + 1 : step] - sums[:, after : after + last + 1 : step]

    one, of_one = spans(below), spans(of_below)
    if around:
        two, of_two = ((np.diff(sums, axis=1) * usable).sum(axis=1, keepdims=True) for sums in (below, of_below))
        share = np.broadcast_to(two / np.maximum(of_two, 1e-9), one.shape)
        expected = 1 / np.maximum(of_one, 1e-9)
    else:
        two, of_two = spans(below, span), spans(of_below, span)
        share = (one + two) / np.maximum(of_one + of_two, 1e-9)
        expected = 1 / np.maximum(of_one, 1e-9) + 1 / np.maximum(of_two, 1e-9)
    open_ = (of_one > 0) & (of_two > 0) & (share > 0)
    if not usable.all():
        barred = added_up((~usable).astype(np.float64))
        open_ &= (spans(barred) == 0) if around else (spans(barred) + spans(barred, span) == 0)
    if binomial:
        open_ &= share < 1
    variance = share * (1 - share if binomial else 1.0)
    with np.errstate(all="ignore"):
        squares = np.where(open_, (one / of_one - two / of_two) ** 2 / (variance * expected), 0.0)
    held = open_.sum(axis=1)
    if around:  # in usual blocks there is no episode; a span is part of the mean
        own = span / np.maximum(usable.sum(axis=1), 1)
        return np.where(held >= 5, squares.sum(axis=1) / np.maximum(held, 1) + own, np.nan)
    kept = _kept(blocks, span)
    used = np.maximum((held * kept).astype(np.int64), 1)
    squares = np.sort(np.where(open_, squares, np.inf), axis=1)
    lowest = np.where(np.arange(squares.shape[1]) < used[:, None], squares, 0.0).sum(axis=1)
    return np.where(held >= 5, lowest / used / _of_lowest(round(kept, 3)), np.nan)


def _inflation(ratios: Float, members: int, blocks: int, *, around: bool) -> Float:
    """Return by how many times 1 to `blocks` blocks vary more than by counting, from ratios by SPANS: (2, blocks).

    Their mean, and its difference from that of as many beside them, which slow wandering moves less. The mean over all series
    that wander by PHIS and SHARES, weighed by how well they fit the ratios: of neighbours, or of spans `around` the mean of all
    blocks.
    """
    spans = np.array(SPANS)
    seen = ~np.isnan(ratios) & (spans <= blocks / (6 if around else 15))
    if not seen.any():
        return np.full((2, blocks), np.inf if around else 1.0)
    fitted, wanders = _wandering(blocks, around=around)
    weights = min(members, 20) * blocks / np.maximum(spans // 2, 1) / 10
    squares = (weights * (fitted - np.log(np.maximum(ratios, 0.7))) ** 2)[:, :, seen].sum(axis=2) + 0.02 * (SHARES[:, None] > 0)
    likely = np.exp(-(squares - squares.min()) / 2)
    out: Float = np.exp(np.einsum("sp,wspn->wn", likely / likely.sum(), wanders))
    return out


@lru_cache(maxsize=4)
def _wandering(blocks: int, *, around: bool) -> tuple[Float, Float]:
    """Return the logarithms of how many times series that wander by PHIS and SHARES vary more, by SPANS and by 1 to `blocks`.

    Of the latter both what means and what their differences from neighbours do, (2, SHARES, PHIS, blocks).
    """
    spans, lengths = np.array(SPANS), np.arange(1, blocks + 1)
    beside = _variance(np.array([blocks]), PHIS) if around else _covariance(spans, PHIS)
    differences = np.maximum(_variance(spans, PHIS) - beside, 0)  # (PHIS, SPANS); below 0 for spans that are not seen
    fitted = np.log1p(SHARES[:, None, None] * spans * differences)
    means = _variance(lengths, PHIS)
    ways = np.maximum(np.stack([means, means - _covariance(lengths, PHIS)]), 0)
    wanders: Float = np.log1p(SHARES[:, None, None] * lengths * ways[:, None])
    return fitted, wanders


def _variance(lengths: Int, phis: Float) -> Float:
    """Return the variance of the mean of so many of an autoregressive series of variance 1, (phis, lengths)."""
    phi = phis[:, None]
    return (1 + phi) / (1 - phi) / lengths - 2 * phi * (1 - phi**lengths) / (lengths * (1 - phi)) ** 2


def _covariance(lengths: Int, phis: Float) -> Float:
    """Return the covariance of the means of two neighbouring stretches of it."""
    phi = phis[:, None]
    return phi * ((1 - phi**lengths) / (lengths * (1 - phi))) ** 2


@dataclass(frozen=True, slots=True)
class Sums:
    """What is counted of each set of members (M) that is looked at, as in Counts; sets alike have the same number in `kinds`."""

    sets: list[Together]
    kinds: Int
    over: Float
    done: Float
    due: Float
    logs: Float


def _sums(ground: Ground, counts: Counts) -> Sums:
    sets = ground.once(sets_of)
    names = [tuple(name for name, _ in together.who) for together in sets]
    kinds = {name: kind for kind, name in enumerate(sorted(set(names)))}
    added = (added_over(sets, values) for values in (counts.over, counts.done, counts.due, counts.logs))
    return Sums(sets, np.array([kinds[name] for name in names], np.int64), *added)


@dataclass(frozen=True, slots=True)
class Noise:
    """By how many times levels of sets (M) vary more than by counting: as each of the `kinds` does, and as sets themselves do.

    `of_kind` (2, kinds, blocks, 5) is that by length, of each share and of the rate: of levels, and of their differences from
    what is near them. `times` (2, M, 5) is how much more a set does so.
    """

    kinds: Int
    of_kind: Float
    times: Float

    def of(self, sets: int | slice | Bool, length: int, *, near: bool = False) -> Float:
        """Return it of levels of so many blocks, or of their differences from what is `near` them, (..., 5)."""
        noise: Float = self.of_kind[int(near), self.kinds[sets], length - 1] * self.times[int(near), sets]
        return noise


def _noise(sums: Sums, usual: tuple[Bool, Bool] | None = None) -> Noise:
    """Return by how many times levels of sets vary more than by counting.

    As all sets of a kind do, by what neighbours tell and what spans do around their mean. Where it is known what is
    `usual` (of latency, of rate), by these blocks alone, and where a set itself does so more, as it does.
    """
    everywhere = np.ones(sums.done.shape, np.bool_)
    latency, rate = usual or (everywhere, everywhere)
    ways = np.empty((2, len(sums.sets), len(SPANS), CLASSES + 1))  # of neighbours, around the mean
    for few in shares_of(len(sums.sets)):
        over, done, due = (added_up(counts[..., few, :]) for counts in (sums.over, sums.done, sums.due))
        for (way, around), (place, span) in product(zip(ways, (False, True), strict=True), enumerate(SPANS)):
            for at in range(FARTHEST):
                way[few, place, at] = _ratio(over[at + 1], over[at], span, latency[few], binomial=True, around=around)
            # So few are far that differences of neighbours tell nothing of them: as those above p99.
            way[few, place, FARTHEST] = way[few, place, FARTHEST - 1]
            way[few, place, RATE] = _ratio(done, due, span, rate[few], binomial=False, around=around)
    sets, blocks = sums.done.shape
    of_kind, times = np.ones((2, int(sums.kinds.max()) + 1, blocks, CLASSES + 1)), np.ones((2, sets, CLASSES + 1))
    for kind in range(of_kind.shape[1]):
        alike = np.flatnonzero(sums.kinds == kind)
        pooled = [known_median(way[alike], axis=0) for way in ways]  # (SPANS, 5)
        # Of neighbours an episode moves those that are as long as it: the shortest alone tell what a set does by itself.
        for out, (own, spans) in zip(times, ((ways[1], 4) if usual else (ways[0], 2), (ways[0], 2)), strict=True):
            usually = known_mean(known_median(own[alike], axis=0)[:spans], axis=0)
            more = known_mean(own[alike][:, :spans], axis=1) / np.maximum(usually, LEAST_NOISE)
            out[alike] = np.maximum(np.where(np.isnan(more), 1.0, more) - OWN_BY_CHANCE, 1.0)
        for at in (*range(FARTHEST), RATE):
            pool = _combined(
                *(_inflation(way[:, at], len(alike), blocks, around=bool(number)) for number, way in enumerate(pooled))
            )
            highest = known_most(pooled[1][:, at])
            steady = 1.0 if math.isnan(highest) else float(np.clip(highest, LEAST_NOISE[at], 1))
            of_kind[:, kind, :, at] = np.maximum(pool, 1) * steady
    for noise in (of_kind, times):
        noise[..., FARTHEST] = noise[..., FARTHEST - 1]
    return Noise(sums.kinds, of_kind, times)


def wandering(hits: Float, of: Float) -> Float:
    """Return by how many times a share varies more than by counting, by the number of blocks that it is taken of, at least 1.

    `hits` of `of` are those of alike sets in blocks (both sets x blocks): as half of the sets do, by what neighbours tell and
    what spans do around their mean.
    """
    everywhere, ways = np.ones(hits.shape, np.bool_), []
    below, of_below = added_up(hits + HALF), added_up(of + 1)  # none of so many is alike, too
    for around in (False, True):
        ratios = (_ratio(below, of_below, span, everywhere, binomial=True, around=around) for span in SPANS)
        ways.append(_inflation(np.array([known_median(each, axis=0) for each in ratios]), *hits.shape, around=around))
    most: Float = np.maximum(_combined(*ways)[0], 1.0)
    return most


def _combined(neighbours: Float, around: Float) -> Float:
    """Return what two estimates of how much more levels vary tell together: the mean of their logarithms.

    The lower of two is too low more often than not. But an event shows in one of them alone: no more than UNSURE times the lower.
    """
    lower = np.minimum(neighbours, around)
    both: Float = np.where(np.isinf(around), lower, np.sqrt(neighbours * around))
    return np.minimum(both, 1 + UNSURE * (lower - 1))


# Levels: optimal partitioning, all sets at once.


def _xlogx(values: Any) -> Any:
    return values * np.log(np.maximum(values, 1e-300))


@cache
def log_of() -> Float:
    """Return logarithms of counts: 2 MB, which takes a third of the time."""
    logs: Float = np.log(np.maximum(np.arange(1 << 18, dtype=np.float64), 1.0))
    return logs


@cache
def xlogx_of() -> Float:
    """Return what `_xlogx` does of as many counts."""
    logs = log_of()
    return np.arange(len(logs)) * logs


def _xlogx_of(counts: Int) -> Float:
    """Return what `_xlogx` does of counts, the first of which are the largest."""
    table = xlogx_of()
    out: Float = table.take(counts, mode="clip")
    if counts[0].max(initial=0) >= len(table):  # of a level that begins with the run: none of the others is larger
        large = counts >= len(table)
        out[large] = _xlogx(counts[large].astype(np.float64))
    return out


def _unlike(hits: Any, of: Any) -> Any:
    """Return -2 log-likelihood of so many of so many, at their own share."""
    return -2 * (_xlogx(hits) + _xlogx(of - hits) - _xlogx(of))


def added_up(values: Float) -> Float:
    """Return the sums of values before each place along the last axis, one more than there are values."""
    return np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)


def _inside(values: Any, length: int) -> Float:
    """Return the sums of so many values in a row along the last axis."""
    below = added_up(values.astype(np.float64))
    return below[..., length:] - below[..., :-length]


def _of_level(hits: Float, of: Float, level: Int) -> Float:
    """Return of each block (M, n) the share of hits of the level that it is in; `level` is its number."""
    place = level + (level.max(initial=0) + 1) * np.arange(len(level))[:, None]
    below, above = (np.bincount(place.ravel(), part.ravel()) for part in (of + 2 * HALF, hits + HALF))
    share: Float = (above / np.maximum(below, 1e-300))[place]
    return share


class Cut(NamedTuple):
    """The levels of sets, by the `noise` of each (M, shares) that they were found with."""

    levels: list[Levels]
    noise: Float


Counted = tuple[Float, Float, Float | None]  # what `_partition` takes


def _cut_latency(sums: Sums, noise: Noise, among: Bool, before: Cut | None = None) -> Cut:
    """Return the levels of the latencies of the sets `among` all (M); `before` are those that another noise made."""
    searched = noise.of(slice(None), min(SEARCHED, sums.done.shape[1]))[:, :CLASSES]
    weight = -2 / searched.T  # (4, M)
    # Each share is of the one before: what is above both, and what is above the first alone. Two of a weight share a term.
    weights = np.concatenate([-weight[:1], weight[:-1] - weight[1:], weight[-1:], weight])
    used = np.flatnonzero(weights.any(axis=1))

    def counted(few: Int) -> Counted:
        over = sums.over[:, few]
        of = (over[at] if at <= CLASSES else over[at - CLASSES - 1] - over[at - CLASSES] for at in used.tolist())
        return np.stack([*of]), weights[used][:, few], None

    return _cut(counted, searched, among, sums.done.shape[1], before)


def _cut_rate(sums: Sums, noise: Noise, among: Bool, before: Cut | None = None) -> Cut:
    """Return the levels of the rates of the sets `among` all (M)."""
    searched = noise.of(slice(None), min(SEARCHED, sums.done.shape[1]))[:, CLASSES:]

    def counted(few: Int) -> Counted:
        return sums.done[None, few], -2 / searched[few].T, sums.due[few]

    return _cut(counted, searched, among, sums.done.shape[1], before)


def _cut(counted: Callable[[Int], Counted], noise: Float, among: Bool, blocks: int, before: Cut | None) -> Cut:
    """Return the levels of the sets `among` all; of the others one level. `counted` is asked for few at a time.

    Those `before` were found with EASIER a penalty: what was one level then is one still where noise is no more than that lower,
    as no cut gained as much.
    """
    levels, again, times = [[(0, blocks)]] * len(noise), np.flatnonzero(among), EASIER
    if before is not None:
        levels = list(before.levels)
        as_before = np.array([len(each) == 1 for each in levels]) & (noise >= EASIER * before.noise).all(axis=1)
        again, times = np.flatnonzero(among & ~as_before), 1.0
    for few in shares_of(len(again)):
        for number, own in zip(again[few].tolist(), _partition(*counted(again[few]), times=times), strict=True):
            levels[number] = own
    return Cut(levels, noise)


def _partition(counts: Float, weights: Float, due: Float | None, *, times: float) -> list[Levels]:
    """Return the cheapest levels of each set of M (Jackson et al. 2005); one more costs 2 log n + 3, so many times.

    A level costs the sum of `weights` (A, M) times x log x of each of its `counts` (A, M, n); where it is known how many were
    `due` (M, n), times x log x / due.
    """
    sets, blocks = counts.shape[1:]
    penalty = times * (2 * math.log(blocks) + 3)
    back = np.zeros((sets, blocks + 1), np.int64)
    if sets and kernel.cut_levels is not None:
        below = np.ascontiguousarray(added_up(counts).swapaxes(0, 1), np.int64)
        usual = np.empty(0) if due is None else added_up(due)
        kernel.cut_levels(below, np.ascontiguousarray(weights.T), usual, log_of(), penalty, np.empty(blocks + 1), back)
    else:
        back[:] = _places_before(counts, weights, due, penalty)
    out = []
    for row in back.tolist():
        levels, end = [], blocks
        while end > 0:
            levels.append((row[end], end))
            end = row[end]
        out.append(levels[::-1])
    return out


def _places_before(counts: Float, weights: Float, due: Float | None, penalty: float) -> Int:
    """Return where the cheapest level that ends before each block begins, (M, n + 1)."""
    sets, blocks = counts.shape[1:]
    back = np.zeros((blocks + 1, sets), np.int64)
    # Blocks first: what ends at one is then subtracted, looked up and added up where it lies.
    below = np.ascontiguousarray(added_up(counts).transpose(2, 0, 1)).astype(np.int64)
    usual = None if due is None else np.ascontiguousarray(added_up(due).T)
    best = np.full((blocks + 1, sets), -penalty)
    for end in range(1, blocks + 1):
        inside = below[end] - below[:end]
        terms = _xlogx_of(inside)
        if usual is not None:
            terms[:, 0] -= inside[:, 0] * np.log(np.maximum(usual[end] - usual[:end], 1e-300))
        total = np.einsum("am,nam->nm", weights, terms)
        total += best[:end]
        back[end] = total.argmin(axis=0)
        best[end] = total.min(axis=0) + penalty
    return back.T


def _usual_latency(sums: Sums, number: int, levels: Sequence[tuple[int, int]]) -> Bool:
    """Return the blocks (n) of the levels that are usual for a set: near its lowest quarter, by level and by slow samples."""
    if len(levels) == 1:
        return np.ones(sums.done.shape[1], np.bool_)
    edges = [first for first, _ in levels]
    held = np.maximum(np.add.reduceat(sums.over[:, number], edges, axis=1), 1e-9)
    lengths = np.array([end - first for first, end in levels], np.float64)
    level = np.add.reduceat(sums.logs[number], edges) / held[0]
    usual = level < _lowest(level, lengths, 0.25) + math.log(LEVEL)
    for at, more in {2: 0.02, 3: 0.002, 4: 0.001}.items():
        share = held[at] / held[0]
        usual &= ~(share > MORE * _lowest(share[usual], lengths[usual], 0.35) + more)
    return np.repeat(usual, lengths.astype(np.int64))


def _usual_rate(sums: Sums, number: int, levels: Sequence[tuple[int, int]]) -> Bool:
    """Return the blocks (n) of the levels whose rate is near the highest three tenths of a set's."""
    if len(levels) == 1:
        return np.ones(sums.done.shape[1], np.bool_)
    edges = [first for first, _ in levels]
    lengths = np.array([end - first for first, end in levels], np.float64)
    due = np.add.reduceat(sums.due[number], edges)
    rate = np.where(due > 0, np.add.reduceat(sums.done[number], edges) / np.maximum(due, 1e-9), np.inf)
    known = due > 0
    if not known.any():
        return np.ones(sums.done.shape[1], np.bool_)
    high = -_lowest(-rate[known], lengths[known], 0.3)
    return np.repeat(rate >= LEAST_RATE * high, lengths.astype(np.int64))


def _lowest(values: Float, lengths: Float, share: float) -> float:
    """Return the value below which so much of the run lies."""
    order = np.argsort(values)
    return float(values[order[np.searchsorted(np.cumsum(lengths[order]), share * lengths.sum())]])


# Events: levels that are worse than the usual ones.


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """Blocks `first` to `end` in which a set is worse: `measure` is a share (0 to 3) or the rate (4).

    `strength` is a chi-square of one degree of freedom against the `usual` blocks (n), of the blocks that are `sure`: all, but of
    what wears off the highest levels alone. `inner` are those that stand out of raised levels around them.
    """

    number: int
    first: int
    end: int
    measure: int
    strength: float
    usual: Bool
    sure: tuple[int, int]
    inner: bool = False


RATE = CLASSES  # the measure after those of shares
Test = Callable[[int, int, int, Bool], Event | None]  # of a set, the first block, the end, usual blocks


class Search:
    """The levels of all sets of a ground, and what is free to be claimed of it."""

    def __init__(
        self,
        ground: Ground,
        counts: Counts,
        tried: float | None = None,
        hidden: Bool | None = None,
        drifting: Float | None = None,
    ) -> None:
        """Cut the sets into levels; `tried` is for how many places an event is held against chance: all stretches of all sets.

        A second search, by other counts, is of the latencies of sets with `hidden` groups (G), at a tenth of the chance.
        """
        self.ground, self.counts = ground, counts
        self.sums = _sums(ground, counts)
        self.free = np.ones(counts.done.shape, np.bool_)
        # Of each group (G) the number of the set that it is by itself.
        alone = {int(each.members[0]): number for number, each in enumerate(self.sums.sets) if len(each.members) == 1}
        self.alone = np.array([alone[group] for group in range(len(counts.done))])
        # By how much the level of each group drifts, a logarithm.
        self.drifting = np.zeros(len(counts.done)) if drifting is None else drifting
        low, middle, high = (np.array([np.interp(rank, TABLE, row) for row in counts.table]) for rank in (0.16, 0.5, 0.84))
        self.spread = np.minimum(high - middle, middle - low)  # of one mode, where there are two
        sets, blocks = self.sums.done.shape
        # Which sets are searched for levels of latency, and of rate, (2, M).
        self.among = np.ones((2, sets), np.bool_)
        if hidden is not None:
            self.among[:] = [[hidden[each.members].any() for each in self.sums.sets], [False] * sets]
        noise = _noise(self.sums)
        before = _cut_latency(self.sums, noise, self.among[0]), _cut_rate(self.sums, noise, self.among[1])
        usual = tuple(np.where(each.sum(axis=1, keepdims=True) >= 0.25 * blocks, each, True) for each in self._usual(*before))
        self.noise = _noise(self.sums, (usual[0], usual[1]))
        cuts = (
            _cut_latency(self.sums, self.noise, self.among[0], before[0]),
            _cut_rate(self.sums, self.noise, self.among[1], before[1]),
        )
        self.latency, self.rate = (cut.levels for cut in cuts)
        self.usual_latency, self.usual_rate = self._usual(*cuts)
        chance = CHANCE if hidden is None else CHANCE / 10
        self.limit = math.log(chance) - math.log(tried or blocks * math.log(blocks) * sets)

    def _usual(self, latency: Cut, rate: Cut) -> tuple[Bool, Bool]:
        """Return the blocks (M, n) of the levels that are usual, of latency and of rate."""
        slow, few = (
            np.stack([of(self.sums, number, each) for number, each in enumerate(cut.levels)])
            for of, cut in ((_usual_latency, latency), (_usual_rate, rate))
        )
        return slow, few

    def drifts(self) -> list[tuple[Together, float]]:
        """Return the sets whose level moves all the time in one direction, without groups that do not, and by how much in all.

        A line through the levels of blocks, as steep as a series that wanders as what is left of them is once in 100 runs. It
        fits better than two levels do, and moves from each third to the next.
        """
        slopes = np.array([_slope(self.level(members)) for _, members in self.sums.sets])
        of_group = slopes[self.alone, 0]
        found, limit = [], math.log(CHANCE / len(slopes))
        for number, (size, strength) in enumerate(slopes):
            moved = limit if abs(size) < math.log(TWICE) else math.log(CHANCE)
            if log_tail(strength) < limit and log_tail(self._thirds(number)) < moved:
                together = self._all_of(number, of_group * np.sign(size) >= ALIKE * abs(size))
                if together is not None and not self.drifting[together.members].any():
                    moved_by, _ = _slope(self.level(together.members))
                    self.drifting[together.members] = abs(moved_by)
                    found.append((together, moved_by))
        return found

    def with_alike(self, drifts: Sequence[tuple[Together, float]]) -> list[tuple[Together, float]]:
        """Return the drifts, those of several alike members that are about as large as one."""
        alike: list[list[tuple[Together, float]]] = []
        for (who, members), size in drifts:
            names = [name for name, _ in who]
            for same in alike:
                (other, _), first = same[0]
                if [name for name, _ in other] == names and AS_LARGE <= size / first <= 1 / AS_LARGE:
                    same.append((Together(who, members), size))
                    break
            else:
                alike.append([(Together(who, members), size)])
        out: list[tuple[Together, float]] = []
        for same in alike:
            codes = sorted(code for (_, members), _ in same for code in members.tolist())
            few = len(same) < SEVERAL
            out += same if few else [(together_of(self.ground.groups, codes), _slope(self.level(np.array(codes)))[0])]
        return out

    def _all_of(self, number: int, same: Bool) -> Together | None:
        """Return those that do the `same` (G) of the widest set around that of a number of which at most EXCEPTED do not."""
        mine = set(self.sums.sets[number].members.tolist())
        for who, members in self.sums.sets[: number + 1]:
            if mine <= set(members.tolist()) and same[members].mean() >= 1 - EXCEPTED:
                return Together(who, members[same[members]])
        return None

    def _thirds(self, number: int) -> float:
        """Return how far the first and the last third of a set are apart, a chi-square, as sets of its kind wander."""
        third = self.counts.blocks // 3
        ends = self.sums.over[0, number, :third].sum(), self.sums.over[0, number, -third:].sum()
        if not min(ends):
            return 0.0
        moved = self._mean_log(number, slice(-third, None)) - self._mean_log(number, slice(0, third))
        noise = float(self.noise.of(self.sums.kinds == self.sums.kinds[number], third)[:, 0].min())
        wander = noise * math.pi / 2 * self.spread[self.sums.sets[number].members].mean() ** 2
        return float(moved**2 / max(wander / ends[0] + wander / ends[1], 1e-300))

    def events(self) -> list[Event]:
        """Return what is worse than usual in any set, beyond chance."""
        out = self._short()
        for number in np.flatnonzero(self.among[0]).tolist():
            for usual, test in ((self.usual_latency[number], self.slower), (self.usual_rate[number], self.fewer)):
                for stretch in stretches_where(~usual):
                    for event in self._of_stretch(number, stretch, usual, test):
                        out += [event, *self._within(event)]
        return out

    def _of_stretch(self, number: int, stretch: tuple[int, int], usual: Bool, test: Test) -> list[Event]:
        """Return the events of a stretch: its levels that are about as high as the highest.

        Where these are within chance, those that are higher still. What wears off at the beginning of the run is one, though its
        first levels alone are beyond chance.
        """
        slower = test == self.slower
        of = self._mean_log if slower else self._log_time
        parts = self._parts(number, stretch, usual, PART, slower=slower, wears_off=True)
        found = [event for each in parts if (event := self._trimmed(number, *each, usual, test)) is not None]
        for part in HIGHER:
            if found:
                break
            first, end = self._parts(number, stretch, usual, part, slower=slower)[0]
            if end == self.counts.blocks or of(number, slice(first, end)) - of(number, usual) < math.log(MORE):
                break
            event = self._trimmed(number, first, end, usual, test)
            if event is not None:
                upto = self._parts(number, stretch, usual, PART, slower=slower)[0][1]
                found = [replace(event, end=upto) if event.first == first == 0 and slower else replace(event, inner=True)]
        return found

    def _trimmed(self, number: int, first: int, end: int, usual: Bool, test: Test) -> Event | None:
        """Return the event of a level; of few blocks without one at its ends, where by chance a level is a block too long."""
        event = test(number, first, end, usual)
        if event is not None or end - first > FEW_BLOCKS:
            return event
        inner = [(first + 1, end), (first, end - 1), (first + 1, end - 1)]
        tested = (test(number, *each, usual) for each in inner if each[0] < each[1])
        return max(filter(None, tested), key=lambda each: each.strength, default=None)

    def _short(self) -> list[Event]:
        """Return what is worse than usual, beyond chance, for a few blocks within a usual level: the worst stretch of each set.

        Levels are cut by the noise of SEARCHED blocks, which is several times that of few where series wander.
        """
        out = []
        slow, rare = self.among
        ways = (
            (slow, self.latency, self.usual_latency, self._slow, self.slower),
            (rare, self.rate, self.usual_rate, self._few, self.fewer),
        )
        for (among, levels, usual, beyond_of, test), few in product(ways, shares_of(len(self.sums.sets))):
            if not among[few].any():
                continue
            level = np.array([np.repeat(range(len(own)), [end - first for first, end in own]) for own in levels[few]])
            found = []
            for length in SHORTEST:
                within = _inside(~usual[few], length) == 0
                within &= level[:, length - 1 :] == level[:, : level.shape[1] - length + 1]
                beyond = np.where(within, beyond_of(few, level, length), 0.0)
                first = beyond.argmax(axis=1)
                found.append(zip(beyond.max(axis=1).tolist(), first.tolist(), (first + length).tolist(), strict=True))
            for number, stretches in enumerate(zip(*found, strict=True), few.start):
                strength, first, end = max(stretches)
                beside = usual[number].copy()
                beside[first:end] = False
                if among[number] and strength > LEAST_SHORT and (event := test(number, first, end, beside)) is not None:
                    out.append(event)
        return out

    def _slow(self, few: slice, level: Int, length: int) -> Float:
        """Return how far the shares of slow samples of so many blocks in a row are above those of the level, (few, stretches)."""
        chi = np.zeros((len(level), level.shape[1] - length + 1))
        for at in range(CLASSES):
            of, hits = (self.sums.over[place, few] for place in (at, at + 1))
            share = _of_level(hits, of, level)[:, length - 1 :]
            hits, of = _inside(hits, length), _inside(of, length)
            unlike = -_unlike(hits, of) - 2 * (hits * np.log(share) + (of - hits) * np.log1p(-share))
            chi += np.where(hits > share * of, unlike, 0.0) / self.noise.of(few, length)[:, at, None]
        return chi

    def _few(self, few: slice, level: Int, length: int) -> Float:
        """Return how far what completes in so many blocks in a row is below what the level does, (few, stretches)."""
        done, due = self.sums.done[few], self.sums.due[few]
        rate = _of_level(done, due, level)[:, length - 1 :]
        done, due = _inside(done, length), rate * _inside(due, length)
        unlike = 2 * (_xlogx(done) - done * np.log(np.maximum(due, 1e-300)) - done + due)
        return np.where(done < due, unlike, 0.0) / self.noise.of(few, length)[:, RATE, None]

    def _parts(
        self, number: int, stretch: tuple[int, int], usual: Bool, part: float, *, slower: bool, wears_off: bool = False
    ) -> list[tuple[int, int]]:
        """Return the parts of a stretch: levels that have at least a part of the highest, and what is beside these where longer.

        Of a rate, of the lowest. Levels at the beginning of the run may be what `wears_off`, until WEARS_OFF is left of it.
        """
        cut = (self.latency if slower else self.rate)[number]
        levels = [level for level in cut if stretch[0] <= level[0] and level[1] <= stretch[1]]
        if len(levels) < 2 or not usual.any():
            return [stretch]
        of = self._mean_log if slower else self._log_time
        height = [of(number, slice(*level)) - of(number, usual) for level in levels]
        if max(height) < math.log(LEAST_TIMES):
            return [stretch]
        top = int(np.argmax(height))
        low = high = top
        while low > 0 and height[low - 1] >= part * height[top]:
            low -= 1
        least = part * height[top]
        if wears_off and stretch[0] == 0 == low:  # of what it takes longer, not of the logarithm
            least = math.log1p(WEARS_OFF * math.expm1(height[top]))
        while high + 1 < len(levels) and height[high + 1] >= least:
            high += 1
        main = levels[low][0], levels[high][1]
        rest = [(stretch[0], main[0]), (main[1], stretch[1])]
        longer = [each for each in rest if each[1] - each[0] > main[1] - main[0]]
        return [main, *(own for each in longer for own in self._parts(number, each, usual, part, slower=slower))]

    def _within(self, event: Event) -> list[Event]:
        """Return the levels within a long event that stand out of it as an event does of the run: a pause within a warm-up."""
        if event.measure == RATE:
            return []
        number, found = event.number, []
        levels = [level for level in self.latency[number] if event.first <= level[1] and level[0] <= event.end]  # one beside it
        height = [self._mean_log(number, slice(*level)) for level in levels]
        for place in range(1, len(levels) - 1):
            first, end = levels[place]
            beside = max(height[place - 1], height[place + 1])
            if height[place] > beside + math.log(INNER) and 2 * (end - first) < event.end - event.first:
                usual = np.zeros_like(event.usual)
                usual[levels[place - 1][0] : levels[place + 1][1]] = True
                usual[first:end] = False
                inner = self.slower(number, first, end, usual)
                found += [replace(inner, inner=True)] if inner is not None else []
        return found

    def _mean_log(self, number: int, blocks: slice | Bool) -> float:
        """Return the mean logarithm of a set's latencies in some blocks, above that of each member; 0 where it has none."""
        return float(self.sums.logs[number, blocks].sum() / max(self.sums.over[0, number, blocks].sum(), 1.0))

    def _log_time(self, number: int, blocks: slice | Bool) -> float:
        """Return the logarithm of how long a set takes in some blocks for what it does in one at its mean rate."""
        return math.log(
            (float(self.sums.due[number, blocks].sum()) + HALF) / (float(self.sums.done[number, blocks].sum()) + HALF)
        )

    def again(self, event: Event) -> Event | None:
        """Return an event of what is free still, None where that is none."""
        test = self.fewer if event.measure == RATE else self.slower
        found = test(event.number, *event.sure, event.usual)
        return found and replace(found, first=event.first, end=event.end, inner=event.inner)

    def _free(self, number: int, first: int, end: int) -> tuple[Int, Bool]:
        """Return the groups of a set that are free in at least half of some blocks, and which blocks of each are."""
        members = self.sums.sets[number].members
        members = members[2 * self.free[members, first:end].sum(axis=1) >= end - first]
        return members, self.free[members]

    def slower(self, number: int, first: int, end: int, usual: Bool, limit: float | None = None) -> Event | None:
        """Return the event of a set that is slower in these blocks than usual; None where chance, or too little.

        Where it is known that something happened in these blocks the `limit` of chance is that of one test.
        """
        limit = self.limit if limit is None else limit
        members, free = self._free(number, first, end)
        over, logs = self.counts.over[:, members] * free, self.counts.logs[members] * free
        if not over[0][:, usual].any():
            return None
        inside, beside = over[:, :, first:end].sum(axis=(1, 2)), over[:, :, usual].sum(axis=(1, 2))
        if not inside[0] or beside[0] < LEAST_TYPICAL * over[0].sum():
            return None
        level = logs[:, first:end].sum() / inside[0] - logs[:, usual].sum() / beside[0]
        measure, strength = self._above(number, members, over, logs, slice(first, end), usual)
        if log_tail(strength) + math.log(CLASSES + 1) > limit:
            measure, strength = self._above(number, members, over, logs, slice(first, end), nearest(usual, first, end), near=True)
        if log_tail(strength) + math.log(CLASSES + 1) > limit:
            return None
        tail = any(
            inside[at] >= max(LEAST_TAIL * max(beside[at] / beside[0], least) * inside[0], LEAST_SLOW)
            for at, least in ((FARTHEST, LEAST_RARE), (FARTHEST + 1, LEAST_RARE / 10))
        )
        least = LEAST_TIMES if first > 0 and end < self.counts.blocks else LEVEL  # of a drift this is the middle of its levels
        drift = float(self.drifting[members].mean())  # what it makes is no event
        if level < math.log(least) + drift and not (tail and not drift):
            return None
        return Event(number, first, end, measure, strength, usual, (first, end))

    def _above(
        self, number: int, members: Int, over: Float, logs: Float, blocks: slice, usual: Bool, *, near: bool = False
    ) -> tuple[int, float]:
        """Return the share of slow samples of some blocks that is farthest above the usual ones, and how far any is.

        As a chi-square of one degree of freedom. Usual ones that are `near` share most of a slow wandering.
        """
        inside, beside = (over[:, :, part].sum(axis=(1, 2)) for part in (blocks, usual))
        if not beside[0]:
            return 0, 0.0
        length, level = blocks.stop - blocks.start, logs[:, blocks].sum() / inside[0] - logs[:, usual].sum() / beside[0]
        strengths = self._strengths(members, inside, beside, level, self.noise.of(number, length, near=near))
        measure = int(np.argmax(strengths[:CLASSES]))
        return measure, self._sure(float(strengths.max()), number, length, measure, near=near)

    def _strengths(self, members: Int, inside: Float, beside: Float, level: float, noise: Float) -> Float:
        """Return how far each share, and all together, are above the usual ones: as chi-squares of one degree, 0 where not."""
        # Levels that wander move all latencies: by a deviation of `wander`, where the share asks for `moved` (in logarithms).
        wander = float((noise[0] - 1) * math.pi / 2 * (1 / max(inside[0], 1) + 1 / beside[0]) * self.spread[members].mean() ** 2)
        counted, limits = np.zeros((2, CLASSES))
        for at in range(CLASSES):
            counted[at] = self._chi(inside[at + 1], inside[at], beside[at + 1], beside[at]) / float(noise[at])
            plain = self._chi(inside[at + 1], inside[0], beside[at + 1], beside[0])
            usual_rank = 1 - inside[at + 1] / inside[0]
            usually = np.array([np.interp(usual_rank, TABLE, row) for row in self.counts.table[members]])
            moved = max(float((self.counts.cuts[at][members] - usually).mean()), level)
            limits[at] = 1 / (1 / plain + wander / moved**2) if plain and moved > 0 else 0.0
        limits[0] = counted[0]
        both = float(counted.sum())  # shares are each of the one before: their chances multiply, as of four degrees of freedom
        together = min(both - 2 * math.log1p(both / 2) - math.log1p(both * math.pi / 2), float(limits.max()))
        return np.append(np.minimum(counted, limits), max(together, 0.0))

    def _sure(self, strength: float, number: int, length: int, measure: int, *, near: bool = False) -> float:
        """Return a chi-square that was held against how levels of a length wander, as one against what is known for certain.

        By Student's tail: what wanders tells that as often as there are blocks that do not depend on each other, of all sets
        alike (their effective sample size, by how much more longer levels wander). Counting is certain.
        """
        one, noise = (float(self.noise.of(number, blocks, near=near)[measure]) for blocks in (1, length))
        if noise <= 1:
            return strength
        alike = int((self.sums.kinds == self.sums.kinds[number]).sum())
        known = alike * self.counts.blocks * max((one - 1) / (noise - 1), 1 / length) * (noise / (noise - 1)) ** 2
        return student(strength, known)

    @staticmethod
    def _chi(hits: float, of: float, usual_hits: float, usual_of: float) -> float:
        if not of or not usual_of or hits * usual_of <= usual_hits * of:
            return 0.0
        both = _unlike(np.array([hits + usual_hits, hits, usual_hits]), np.array([of + usual_of, of, usual_of]))
        return max(float(both[0] - both[1] - both[2]), 0.0)

    def fewer(self, number: int, first: int, end: int, usual: Bool) -> Event | None:
        """Return the event of a set that completes less in these blocks than usual; None where chance, or too little."""
        members, free = self._free(number, first, end)
        done, due = self.counts.done[members] * free, self.counts.due[members] * free
        inside, of, beside, usually = (
            float(part.sum()) for part in (done[:, first:end], due[:, first:end], done[:, usual], due[:, usual])
        )
        if not of or not usually or not beside:
            return None
        with np.errstate(all="ignore"):
            middle = float(known_median((done.sum(axis=0) / due.sum(axis=0))[usual]))  # a burst is not what is usual
        expected = of * min(beside / usually, middle)
        if inside >= (LEAST_RATE if first > 0 and end < self.counts.blocks else LEAST_EDGE_RATE) * expected:
            return None
        strength = self._below(number, done, due, slice(first, end), usual)
        if log_tail(strength) > self.limit:
            strength = self._below(number, done, due, slice(first, end), nearest(usual, first, end), near=True)
        share = (expected - inside) / float(self.counts.done[members].sum())
        if log_tail(strength) > self.limit or (share < LEAST_MISSING and inside > 0.15 * expected):
            return None
        return Event(number, first, end, RATE, strength, usual, (first, end))

    def _below(self, number: int, done: Float, due: Float, blocks: slice, usual: Bool, *, near: bool = False) -> float:
        """Return how far the rate of some blocks is below that of the usual ones: a chi-square of one degree, 0 where not."""
        inside, of, beside, usually = (float(part[:, at].sum()) for at in (blocks, usual) for part in (done, due))
        if not beside or not usually or inside * usually >= beside * of:
            return 0.0
        length = blocks.stop - blocks.start
        strength = _poisson(inside, of, beside, usually) / float(self.noise.of(number, length, near=near)[RATE])
        return self._sure(strength, number, length, RATE, near=near)

    def who(self, event: Event) -> tuple[int, Together]:
        """Return the number of the set whose groups did the same in the blocks of an event, and it without those that did not.

        That makes their counts likeliest. Each set is given one effect (on the odds of its share, or on its rate) that all of its
        groups have, and no other group. Each group is held against its own usual blocks: in those of others it may have an event
        of its own.
        """
        known = (self.counts.over[0] + self.counts.due)[:, event.first : event.end].any(axis=1)
        return likeliest(self.sums.sets, self._gains(event), self._noise_of(event), known)

    def _noise_of(self, event: Event) -> float:
        """Return by how many times levels as long as an event vary more than by counting, at least 1."""
        return max(float(self.noise.of(event.number, event.end - event.first)[event.measure]), 1.0)

    def _gains(self, event: Event) -> Float:
        """Return how much likelier each effect makes what groups did in the blocks of an event, (G, EFFECTS)."""
        blocks = slice(event.first, event.end)
        usual = (self.usual_rate if event.measure == RATE else self.usual_latency)[self.alone]
        usual[:, blocks] = False
        usual[~(usual & self.free).any(axis=1)] = event.usual
        usual &= self.free
        if event.measure == RATE:
            hits = (self.counts.done * self.free)[:, blocks].sum(axis=1)
            done, due = ((part * usual).sum(axis=1) for part in (self.counts.done, self.counts.due))
            return rate_gains(hits, done / np.maximum(due, 1e-9) * (self.counts.due * self.free)[:, blocks].sum(axis=1))
        over = self.counts.over[[event.measure + 1, 0]]
        return share_gains(*(over * self.free)[..., blocks].sum(axis=-1), *(over * usual).sum(axis=-1))

    def with_others(self, event: Event, together: Together, pending: Sequence[Event]) -> Together:
        """Return those that did the same, and others of their kind that have an event of their own at the same time."""
        kinds, slower = self.sums.kinds, event.measure != RATE
        near = (each for each in pending if (each.measure != RATE) == slower and _overlap(each, event) >= AT_ONE_TIME)
        others = {each.number for each in near if each.number != event.number and kinds[each.number] == kinds[event.number]}
        if len(others) + 1 < SEVERAL:
            return together
        gains, limit = self._gains(event), AGAINST * self._noise_of(event)
        own, found = gains[:, int(gains[together.members].sum(axis=0).argmax())], [together.members]
        sets = (self.sums.sets[number].members for number in others)
        same = (members for members in sets if own[members].sum() > limit and (own[members] < -limit).mean() <= EXCEPTED)
        found += [members[own[members] >= -limit] for members in same]
        return together if len(found) < SEVERAL else together_of(self.ground.groups, sorted(np.concatenate(found).tolist()))

    def stands_out(self, event: Event, others: Sequence[Event]) -> bool:
        """Return whether an event is to be told before a longer one of the same set around it.

        Not where some of its groups have a stronger one around it: then it may be what that leaves of all.
        """
        if not event.inner:
            return False
        mine = set(self.sums.sets[event.number].members.tolist())
        around = [each for each in others if each.first <= event.first and event.end <= each.end and each is not event]
        longer = any(each.number == event.number and each.measure != RATE for each in around)
        stronger = (each for each in around if each.strength > event.strength)
        return longer and not any(mine > set(self.sums.sets[each.number].members.tolist()) for each in stronger)

    def unclaimed(self, members: Int) -> Bool:
        """Return which windows of groups no event has claimed, (groups, T)."""
        return self.counts.in_windows(self.free[members], beyond=True)

    def of_set(self, event: Event, number: int) -> Event:
        """Return an event with another set."""
        usual = (self.usual_rate if event.measure == RATE else self.usual_latency)[number].copy()
        usual[event.first : event.end] = False
        return replace(event, number=number, usual=usual if usual.any() else event.usual)

    def missing(self, members: Int, usual: Bool, first: int, end: int) -> float:
        """Return how many completions of groups did not happen in some blocks, at the rate of usual ones."""
        done, due = self.counts.done[members], self.counts.due[members]
        beside, usually = done[:, usual].sum(axis=1), np.maximum(due[:, usual].sum(axis=1), 1e-9)
        return float((due[:, first:end].sum(axis=1) * beside / usually - done[:, first:end].sum(axis=1)).sum())

    def lost(self, event: Event, members: Int) -> float:
        """Return how many completions of groups did not happen in an event of fewer, nor were made up for at once."""
        own, usual = slice(event.first, event.end), self.usual_rate[event.number]
        done, due = (part[members].sum(axis=0) for part in (self.counts.done, self.counts.due))
        due = due * float(known_median((done / np.maximum(due, 1e-9))[usual]))  # a burst is not what is usual
        gap = max(float((due - done)[own].sum()), 0.0)
        rest = not_made_up(gap, done[event.end :], due[event.end :])
        return self.missing(members, usual, event.first, event.end) if rest == gap else rest

    def share_of_rate(self, event: Event, members: Int) -> float:
        """Return what share of their usual rate groups have in an event."""
        done = float(self.counts.done[members, event.first : event.end].sum())
        return done / max(done + self.missing(members, self.usual_rate[event.number], event.first, event.end), 1e-9)

    def level(self, members: Int) -> Float:
        """Return the level of groups in each block, as a logarithm; NaN where they have no samples, or these are taken."""
        free = self.free[members]
        held, logs = ((part[members] * free).sum(axis=0) for part in (self.counts.over[0], self.counts.logs))
        return np.where(held > 0, logs / np.maximum(held, 1), np.nan)

    def windows_of(self, event: Event) -> tuple[int, int]:
        """Return the first window of an event and the one after its last: where samples turn from usual to the event's."""
        counts = self.counts
        own = counts.windows(event.first, event.end)
        (hits, of), now, then = self._fine(event, own)
        if event.measure == RATE:
            times = max(now, 0.05 * then) / then if then else 1.0
            odds = hits * math.log(times) - of * (times - 1) * then
        else:
            odds = hits * math.log(now / then) + (of - hits) * math.log((1 - now) / (1 - then)) if 0 < then < now < 1 else of
        # From the window that is most like the event to where the sum is largest, hardly beyond its blocks.
        middle, reach = own.start + int(odds[own].argmax()), 2 * counts.width
        if event.first == 0:  # a warm-up wears off
            middle = max(middle, own.stop - reach)
        low, high = max(own.start - reach, 0), own.stop + reach
        first = middle - int(odds[low : middle + 1][::-1].cumsum().argmax())
        end = middle + int(odds[middle:high].cumsum().argmax()) + 1
        # A level at an end of the run reaches to it, unless what is between speaks against that, or is longer than half of it (a
        # third, where it is known what was done).

        def reaches(between: slice) -> bool:
            most, known = (end - first) // 2, (end - first) // 3
            few = between.stop - between.start <= most and np.count_nonzero(of[between]) <= known
            return few and float(odds[between].sum()) > -AGAINST

        at_start = event.first == 0 and reaches(slice(0, first))
        at_end = event.end == counts.blocks and reaches(slice(end, own.stop))
        first, end = 0 if at_start else first, len(odds) if at_end else end
        return first, end

    def mostly(self, event: Event, first: int, end: int) -> tuple[int, int]:
        """Return windows `first` to `end` of an event without those at its ends of which less than half is of it.

        A row of a log lies in two windows of the run, and an event begins and ends somewhere in a window: of that the share of
        the event is as large as what is seen there is beside the rest of it.
        """
        if first == 0 or end == self.ground.shape[1]:  # a warm-up wears off
            return first, end
        for at_end in sorted((False, True), key=lambda at_end: self._part(event, first, end, at_end=at_end)):
            if end - first > 1 and self._part(event, first, end, at_end=at_end) < MOSTLY:
                first, end = (first, end - 1) if at_end else (first + 1, end)
        return first, end

    def middle(self, event: Event, first: int, end: int) -> int:
        """Return the time in ns around which what is more than usual in windows of an event completed."""
        (hits, of), _, then = self._fine(event, slice(first, end))
        more = np.maximum(hits - then * of, 0.0)[first:end]
        return int(np.average(self.ground.start_ns[first:end], weights=more + 1e-9)) + self.ground.step_ns // 2

    def stopped_before(self, event: Event, first: int, took_ns: float) -> bool:
        """Return whether hardly anything but what was late completed before window `first`, for as long as an operation took."""
        before = slice(max(first - round(took_ns / self.ground.step_ns) + 1, 0), first)
        fine = self.counts.fine[:, self.sums.sets[event.number].members, before].sum(axis=(1, 2))
        return bool(fine[0] - fine[2] <= HARDLY * fine[DUE] > 0)  # what is above p90 may have waited

    def _part(self, event: Event, first: int, end: int, *, at_end: bool) -> float:
        """Return how much of the first or last window of an event is of it, as the others of it are."""
        if end - first < 2:
            return 1.0
        rest, edge = (slice(first, end - 1), end - 1) if at_end else (slice(first + 1, end), first)
        (hits, of), now, then = self._fine(event, rest)
        there = (hits[edge] + 0.5 * now) / (of[edge] + 0.5) if event.measure == RATE else (hits[edge] + 0.5) / (of[edge] + 1)
        return float((there - then) / (now - then)) if now != then else 1.0

    def _fine(self, event: Event, own: slice) -> tuple[tuple[Float, Float], float, float]:
        """Return what is counted of an event's set in each window, and of how many; its level in `own` windows and the usual one.

        That is the samples above a quantile and all of them, with their share; or completions, and those that are due.
        """
        fine = self.counts.fine[:, self.sums.sets[event.number].members].sum(axis=1)
        parts = own, self.counts.in_windows(event.usual)
        if event.measure == RATE:
            hits, of = fine[DONE], fine[DUE]
            now, then = (float(hits[part].sum() / max(of[part].sum(), 1e-9)) for part in parts)
            return (hits, of), now, then
        hits, of = fine[event.measure + 1], fine[0]
        now, then = (float((hits[part].sum() + 0.5) / (of[part].sum() + 1)) for part in parts)
        return (hits, of), now, then


def nearest(usual: Bool, first: int, end: int) -> Bool:
    """Return the usual blocks that are nearest to some others, as many together, on either side."""
    length, near = end - first, np.zeros_like(usual)
    before = first - 1 - np.flatnonzero(usual[max(first - 2 * length, 0) : first][::-1])
    after = end + np.flatnonzero(usual[end : end + 2 * length])
    half = -(-length // 2)
    near[before[: half if len(after) else length]] = True
    near[after[: half if len(before) else length]] = True
    return near


def share_gains(hits: Float, of: Float, usual_hits: Float, usual_of: Float) -> Float:
    """Return the logarithm of how much likelier each of EFFECTS makes so many of so many, of each group: (G, EFFECTS)."""
    share = (usual_hits + 0.5) / (usual_of + 1)
    gains: Float = EFFECTS * hits[:, None] - of[:, None] * np.log1p(share[:, None] * np.expm1(EFFECTS))
    return gains


def rate_gains(done: Float, usual: Float) -> Float:
    """Return the logarithm of how much likelier each of EFFECTS makes so many completions where `usual` are due: (G, EFFECTS)."""
    gains: Float = -EFFECTS * done[:, None] - usual[:, None] * np.expm1(-EFFECTS)
    return gains


def likeliest(sets: Sequence[Together], gains: Float, noise: float = math.inf, known: Bool | None = None) -> tuple[int, Together]:
    """Return the number of the set that is likeliest, as one effect that all of its groups have, and what is left of it.

    Not one of which more than EXCEPTED of those `known` (G) speak against that effect, beyond what makes them vary by `noise`
    more than counting does: what some of its groups do is none of all. Those that do are taken out of what is left.
    """
    totals, held = np.empty(len(sets)), np.ones(len(gains)) if known is None else known
    for number, together in enumerate(sets):
        own = gains[together.members]
        added = own.sum(axis=0)
        best = int(added.argmax())
        against = (own[:, best] < -AGAINST * noise).sum()
        totals[number] = added[best] if against <= EXCEPTED * held[together.members].sum() else -np.inf
    # The widest set that is about as likely as the best: its sets come first.
    number = int(np.flatnonzero(totals >= totals.max() - max(2.0, 0.02 * totals.max()))[0])
    who, members = sets[number]
    own = gains[members]
    best = int(np.maximum(own, 0).sum(axis=0).argmax())  # the effect of those that have one
    return number, Together(who, members[own[:, best] >= -AGAINST * noise])


def _slope(levels: Float) -> tuple[float, float]:
    """Return by how much a line through levels moves in all, and how far that is from none, a chi-square: 0 if it is no drift."""
    known = np.flatnonzero(~np.isnan(levels))
    count = len(known)
    if count < LEAST_RUN:
        return 0.0, 0.0
    values, at = tamed(levels[known]), known / (len(levels) - 1) - 0.5
    centred, aside = values - values.mean(), at - at.mean()
    size = float(aside @ centred / (aside @ aside))
    if abs(size) < math.log(LEAST_TIMES):
        return size, 0.0
    rest = centred - size * aside
    below, places = np.cumsum(centred)[:-1], np.arange(1, count)
    two = float(centred @ centred - (below**2 * count / (places * (count - places))).max())  # squares left by two levels
    thirds = [float(median(part)) for part in np.array_split(values, 3)]
    moves = np.diff(thirds) * np.sign(size)
    # What gets quicker, and hardly any more in the last third, wears off, unless it is a line that is level from some time on.
    wears_off = size < 0 and moves[1] < STILL * abs(size) and _bend(levels)[1] == len(levels)
    if rest @ rest >= two or min(moves) < STEADY * abs(size) or wears_off:
        return size, 0.0
    phi = float(np.clip(kept_share(float(rest[1:] @ rest[:-1] / max(rest @ rest, 1e-300)), count), 0, 0.95))
    white = whitened(np.stack([values, np.ones(count), at]), phi)
    solution, squares, *_ = np.linalg.lstsq(white[1:].T, white[0], rcond=None)
    inverse = np.linalg.inv(white[1:] @ white[1:].T)
    variance = float(squares[0]) / max(count - 3, 1) * inverse[1, 1]
    # As many as do not depend on each other tell how it wanders.
    return size, student(float(solution[1] ** 2) / max(variance, 1e-300), count * (1 - phi) / (1 + phi))


def _bend(levels: Float) -> tuple[int, int]:
    """Return from which block to which levels that drift move: all, unless a line that is level before or after fits far better.

    Better than one that bends all the way, as a factor that grows evenly does in logarithms.
    """
    known = np.flatnonzero(~np.isnan(levels))
    values, count = tamed(levels[known]), len(known)

    def squares(*terms: Float) -> float:
        terms = (np.ones(count), *terms)
        rest = values - np.linalg.lstsq(np.stack(terms, axis=1), values, rcond=None)[0] @ np.stack(terms)
        return float(rest @ rest)

    at = known / len(levels)
    curve = squares(at, at**2)
    places = known[LEAST_RUN // 2 : -LEAST_RUN // 2].tolist()
    ways = [((0, place), squares(np.minimum(known, place))) for place in places]
    ways += [((place, len(levels)), squares(np.maximum(known, place))) for place in places]
    # What wears off, as a warm-up does, until a tenth of it is left.
    parts = np.geomspace(0.02, 1 / WORN, 30).tolist()
    ways += [((0, round(WORN * part * len(levels))), squares(np.exp(-at / part))) for part in parts]
    reach, left = min(ways, key=lambda way: way[1])
    return reach if curve > BENT * left else (0, len(levels))


def stretches_where(chosen: Bool) -> list[tuple[int, int]]:
    """Return where runs of chosen windows begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def _poisson(inside: float, of: float, beside: float, usually: float) -> float:
    """Return how far a count is from the usual rate: -2 log of the ratio of likelihoods."""

    def best(count: float, due: float) -> float:
        return count * math.log(count / due) if count else 0.0

    return 2 * (best(inside, of) + best(beside, usually) - best(inside + beside, of + usually))


def student(chi_square: float, known: float) -> float:
    """Return as what chi-square one counts whose variance is an estimate of so many degrees of freedom: by Student's tail."""
    return max(known - 1, 0.0) * math.log1p(chi_square / known)


def log_tail(chi_square: float) -> float:
    """Return the logarithm of the chance that a chi-square of one degree of freedom is larger."""
    if chi_square > 1000:
        return -chi_square / 2 - math.log(math.pi * chi_square / 2) / 2
    return math.log(math.erfc(math.sqrt(max(chi_square, 0.0) / 2)))


# Claims: what an event is called, by its shape.

SHORT, MANY, STRONGER = 0.06, 4, 3.0  # of a run; so many short events are its own, but for one that is so many times as strong
ALIKE = 0.5  # of the blocks of two events together, that are in both: one event
AT_ONE_TIME = 0.8  # of these, where several hosts have an event each: one of all of them
AS_LARGE = 0.8  # times, that drifts of several are: one of all of them
SEVERAL = 3  # of two each is told by itself
EDGE_SHARE, AFTER = 0.1, 2  # of the run; blocks
HIDES = 0.5  # of the samples above the p99 of a member, that are of what is found
LEAST_MOVED = 0.1  # of all samples, that go from one mode to another
TOLD = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
Measured = tuple[str, float, float]  # a percentile, its usual value and the one reached in ns


def stalled_cells(ground: Ground, so_far: Sequence[Claim]) -> Bool:
    """Return the cells (G, T) of stalls after which something came late: latencies of these are of the stall."""
    stalled = np.zeros(ground.shape, np.bool_)
    for claim in so_far:
        if claim.kind == STALL and claim.value_ns is not None:
            near = ground.near(claim.start_ns, claim.end_ns)
            stalled |= claim.cells.dense | ground.cells(sorted(own_groups(ground, claim)), near)
    return stalled


def changes(ground: Ground, so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return the claims about levels that change over a run: episodes, steps, drifts, edges, shares of modes, rates that fall.

    Where what is found makes the p99 of a member, what that hides is looked for in the rest, by the quantiles of that.
    """
    stalled = stalled_cells(ground, so_far)
    aside = np.logical_or.reduce([stalled, *(claim.cells.dense for claim in so_far if claim.kind == RHYTHM)])
    counts = counts_of(ground, aside, stalled) if aside.any() else every_count(ground)
    if counts.blocks < LEAST_RUN:
        return []
    search = Search(ground, counts)
    drifts = search.drifts()
    events, taken = _events(search, aside, so_far)
    left = [each for each in _drifts_left(search, drifts, events) if _drift(search, *each) is not None]
    told = [_drift(search, *each) for each in search.with_alike(left)]
    slow = counts.fine[len(RANKS)]  # above p99
    hidden = (slow * taken).sum(axis=1) > HIDES * slow.sum(axis=1)
    if hidden.any():
        aside, stalled = aside | taken, stalled | taken
        search = Search(ground, counts_of(ground, aside, stalled), hidden=hidden, drifting=search.drifting)
        events += [each for each in _events(search, aside, so_far)[0] if not _touches(search, each[0], taken)]
    every = [event for event, _ in events]
    return [*filter(None, told), *(mine for event, mine in events if not _comes_back(event, every, counts.blocks))]


def _events(search: Search, aside: Bool, so_far: Sequence[Claim]) -> tuple[list[tuple[Event, Claim]], Bool]:
    """Return the events that are claimed beside the cells (G, T) left `aside`, and the cells that events take, claimed or not.

    The strongest event comes first, then what that leaves.
    """
    counts, pending = search.counts, search.events()
    open_ = ~aside  # what no event explains: beside that an event must matter, however much others are
    for event in pending:
        open_[search.sums.sets[event.number].members, counts.windows(event.first, event.end)] = False
    claims: list[tuple[Event, Claim]] = []
    while pending:
        top = max(pending, key=lambda event: (search.stands_out(event, pending), event.strength))
        number, together = search.who(top)
        if top.inner and number != top.number:  # what stands out is not of that set
            pending = [each for each in pending if each is not top]
            continue
        own = [event for event in pending if event.number == number and _overlap(event, top) >= ALIKE]
        event = max(own, key=lambda event: (event.inner, event.strength), default=search.of_set(top, number))
        together = search.with_others(event, together, pending)
        alone = top.inner and not own and search.again(event) is None  # nothing stands out of raised levels of that set
        claimed = None if alone else _claim(search, event, together, aside, open_, so_far)
        if claimed is None and top.measure == RATE:  # it explains nothing of what is slow then
            pending = [each for each in pending if each is not top]
            continue
        if claimed is not None:
            claims.append((event, claimed))
        members = together.members
        after = AFTER if event.measure == RATE else 1  # what waited arrives then
        search.free[members, max(event.first - 1, 0) : event.end + after] = False
        pending = [again for each in pending if each is not top and (again := search.again(each)) is not None]
    return claims, ~search.unclaimed(np.arange(len(search.free)))


def _drifts_left(
    search: Search, drifts: list[tuple[Together, float]], events: Sequence[tuple[Event, Claim]]
) -> list[tuple[Together, float]]:
    """Return the drifts that what events leave has, too: what drifts by these alone, as by a warm-up, is none."""
    search.free[:] = True
    for event, _ in events:
        if event.measure != RATE:
            search.free[search.sums.sets[event.number].members, event.first : event.end] = False
    left = [_slope(search.level(together.members)) for together, _ in drifts]
    return [each for each, (size, strength) in zip(drifts, left, strict=True) if strength and size * each[1] > 0]


def _touches(search: Search, event: Event, taken: Bool) -> bool:
    """Return whether an event lies beside what is taken (G, T), of most of its groups: it may be what that leaves of another."""
    near = search.counts.windows(max(event.first - 1, 0), event.end + 1)
    return bool(taken[search.sums.sets[event.number].members, near].any(axis=1).mean() > ALIKE)


def _comes_back(event: Event, events: Sequence[Event], blocks: int) -> bool:
    """Return whether an event is one of many short ones of a set, and no far stronger one: what the run does by itself."""
    short = [
        each for each in events if each.number == event.number and each.measure != RATE and each.end - each.first < SHORT * blocks
    ]
    if event not in short or len(short) < MANY:
        return False
    return event.strength <= STRONGER * float(median([each.strength for each in short]))


def _overlap(one: Event, other: Event) -> float:
    """Return the share of the blocks of either that are in both."""
    both = min(one.end, other.end) - max(one.first, other.first)
    return both / (max(one.end, other.end) - min(one.first, other.first))


def not_made_up(lost: float, done: Float, due: Float | float) -> float:
    """Return how many of `lost` completions did not come right afterwards in a burst, beyond what is `due` then; 0 within chance.

    A load with a rate makes up for what it could not do: that happened, later.
    """
    more = done > due + 3 * np.sqrt(due)
    burst = float((done - due)[: len(more) if more.all() else int(more.argmin())].sum())
    rest = lost - burst
    return rest if not burst or rest > 3 * math.sqrt(lost) else 0.0


def _claim(search: Search, event: Event, together: Together, aside: Bool, open_: Bool, so_far: Sequence[Claim]) -> Claim | None:
    """Return the claim of an event, about those `together` that did the same.

    None where its latencies may lie in one bin, or are little beside `open_` excess.

    What lies `aside` is of a stall or a rhythm, and so are its latencies.
    """
    ground, counts = search.ground, search.counts
    members, number = together.members, event.number
    there = number, event.first, event.end
    slower = event if event.measure != RATE else search.slower(*there, search.usual_latency[number], math.log(CHANCE))
    fewer = event if event.measure == RATE else search.fewer(*there, search.usual_rate[number])
    first, end = search.windows_of(event)
    if slower is not None and slower is not event:  # near the ends of a run it is not known what was done
        low, high = search.windows_of(slower)
        first, end = min(first, low) if event.first == 0 else first, max(end, high) if event.end == counts.blocks else end
    inside = np.zeros(ground.shape[1], np.bool_)
    inside[first:end] = True
    usual = counts.in_windows(event.usual) & ~inside
    excess, beside = ground.excess_ns[members], open_[members] & usual
    like_usual = known_mean(np.where(beside, excess, np.nan), axis=1)
    more = float((excess[:, inside].sum(axis=1) - np.nan_to_num(like_usual) * inside.sum()).sum())
    more = max(more, _longer(ground, members, inside, beside))
    # What takes longer while a member does less is of that, however it varies.
    takes = more >= LEAST_EXCESS * (more + float((excess * open_[members]).sum()))
    begin, stop = search.mostly(event, first, end)
    core = np.zeros_like(inside)
    core[begin:stop] = True
    # What others have claimed is none of either, nor are windows at the ends of a long one: what is usual lies in them, too.
    own = search.unclaimed(members) & ~aside[members] & core
    tops = ground.top_ns[members][own if own.any() else np.broadcast_to(core, own.shape)]
    if stop - begin >= LONG:
        own[:, [begin] * (begin > 0) + [stop - 1] * (stop < len(core))] = False
    sides = own, beside if beside.any() else np.broadcast_to(usual, beside.shape)
    reached = measured(ground, members, *sides) if slower is not None and takes else None
    missing = search.lost(event, members) if fewer is not None else 0.0
    rate = 1.0 if fewer is None else search.share_of_rate(event, members)
    if reached is None and (fewer is None or rate > LEAST_RATE):
        return None
    at_start, at_end = first == 0, end == ground.shape[1]
    kind, details = EPISODE, {}
    if (at_start or at_end) and event.end - event.first <= EDGE_SHARE * counts.blocks:
        kind, details = EDGE, {"first": at_start, "slower": reached is not None, "fewer": fewer is not None}
    elif (at_start or at_end) and reached is not None:
        return _step(ground, event, together, (inside, usual), reached, so_far)
    top_ns = float(known_most(tops))
    name, typical, value = reached or ("", 0.0, 0.0)
    span = ground.span(begin, stop - 1)
    # An outage is as long as what waited for it, which completed at once: a few operations, or all that did meanwhile.
    waited = kind == EPISODE and event.measure != RATE and reached is not None and top_ns >= PART * ground.step_ns
    waited = waited and stop - begin <= min(AT_MOST, 1 + math.ceil(top_ns / ground.step_ns))
    if waited and (name != "p50" or search.stopped_before(event, begin, top_ns)):
        ended = search.middle(event, begin, stop)
        span = ended - round(top_ns), ended
    return Claim(
        kind,
        together.who,
        *span,
        cells=ground.claimed(members if takes or rate < HARDLY else (), slice(first, end + AFTER * (rate < HARDLY))),
        value_ns=value if reached else None,
        times=(value / typical if typical else None) if reached else rate,
        samples=int(ground.samples[members][:, core].sum()),
        missing=missing,
        certainty=event.strength,
        latency_ns=(int(typical), math.ceil(top_ns) + 1) if reached else None,
        details={
            "typical_ns": typical,
            "percentile": name,
            "top_ns": top_ns,
            "rate": rate,
            **as_detail(ground, *together),
            **details,
        },
    )


def _longer(ground: Ground, members: Int, inside: Bool, typical: Bool) -> float:
    """Return by how many ns, summed over samples, groups took longer in some windows than in those that are `typical` of each."""
    samples, took = ground.samples[members], np.nan_to_num(ground.mean_ns[members]) * ground.samples[members]
    usual = (took * typical).sum(axis=1) / np.maximum((samples * typical).sum(axis=1), 1)
    return float((took - usual[:, None] * samples)[:, inside].sum())


def measured(ground: Ground, members: Int, inside: Bool, usual: Bool, *, in_bins: bool = False) -> Measured | None:
    """Return the percentile that tells most of what groups do in some windows; None where all are as usual.

    That is p50, unless another moves far more.
    """
    return next(iter(_raised(ground, members, inside, usual, in_bins=in_bins)), None)


def _raised(ground: Ground, members: Int, inside: Bool, usual: Bool, *, in_bins: bool = False) -> list[Measured]:
    """Return the percentiles that are higher in some windows, the one that tells most first.

    None is where both values may lie in one bin, unless `in_bins`.
    """
    sides = [ground.counts(members, windows) for windows in (usual, inside)]
    found = []
    for name, share in TOLD.items():
        typical, value = (quantile(ground.rows.layout, counts, share) for counts in sides)
        if value >= LEAST_TIMES * typical > 0 and (in_bins or apart(ground, typical, value)):  # of 0 nothing is so many times
            found.append((name, typical, value))
    times = {name: math.log(value / max(typical, 1)) for name, typical, value in found}
    most = max(times.values(), default=0.0)
    return sorted(found, key=lambda each: times[each[0]] < (PART if each[0] == "p50" else 1.0) * most)


def quantile(layout: Layout, counts: Int, share: float) -> float:
    """Return a quantile in ns of counts by all bins of a layout, NaN where there are none."""
    below = np.cumsum(counts)
    if not below[-1]:
        return math.nan
    return float(layout.rising[int(np.searchsorted(below, max(math.ceil(share * float(below[-1])), 1)))])


def _step(
    ground: Ground, event: Event, together: Together, sides: tuple[Bool, Bool], reached: Measured, so_far: Sequence[Claim]
) -> Claim:
    """Return the claim of an event from the start of the run on, or to its end: a step (its slower part), or shares of modes."""
    inside, usual = sides
    rises = bool(inside[-1])
    before, later = (usual, inside) if rises else (inside, usual)
    at = int(np.flatnonzero(inside)[0] if rises else np.flatnonzero(inside)[-1] + 1)
    if (claim := _shares(ground, together, so_far, (before, later), at)) is not None:
        return claim
    name, typical, value = reached
    start, end = (typical, value) if rises else (value, typical)
    return _moved(ground, STEP, together, inside, (name, start, end), event.strength, at)


def _drift(search: Search, together: Together, size: float) -> Claim | None:
    """Return the claim of a drift, by the first and the last tenth of the run.

    Of the percentile that tells most where it moves from each third of the run to the next, else of the median; None where
    neither does, or both values may lie in one bin.
    """
    ground, windows = search.ground, search.ground.shape[1]
    tenth = max(windows // 10, 1)
    ends = np.arange(windows) < tenth, np.arange(windows) >= windows - tenth
    usual, inside = ends if size > 0 else ends[::-1]
    members = together.members
    found = _raised(ground, members, inside, usual)
    parts = [ground.counts(members, part) for part in np.array_split(np.arange(windows), 3)]
    for name, low, high in (*found[:1], *(each for each in found[1:] if each[0] == "p50")):
        thirds = [math.log(max(quantile(ground.rows.layout, counts, TOLD[name]), 1)) for counts in parts]
        if name == "p50" or min(np.diff(thirds) * np.sign(size)) >= STEADY * (math.log(high) - math.log(low)):
            break
    else:
        return None
    reached = (name, low, high) if size > 0 else (name, high, low)
    first, end = _bend(search.level(members))
    blocks = np.zeros(search.counts.blocks, np.bool_)
    blocks[first:end] = True
    reach = search.counts.in_windows(blocks)
    reach[: search.counts.first] |= first == 0
    reach[search.counts.first + len(blocks) * search.counts.width :] |= end == len(blocks)
    return _moved(ground, DRIFT, together, reach, reached, abs(size), 0)


def _moved(ground: Ground, kind: str, together: Together, reach: Bool, reached: Measured, certainty: float, at: int) -> Claim:
    """Return the claim of a step or a drift of a set: from one value to another, its slower part the windows of `reach`."""
    name, start, end = reached
    counts = ground.counts(together.members, np.flatnonzero(reach))
    return Claim(
        kind,
        together.who,
        *ground.span(*np.flatnonzero(reach)[[0, -1]]),
        cells=ground.claimed(together.members, reach),
        value_ns=max(start, end),  # of its slower part
        times=end / start if start > 0 else None,
        samples=int(ground.samples[together.members][:, reach].sum()),
        certainty=certainty,
        latency_ns=(int(quantile(ground.rows.layout, counts, 0.25)), int(quantile(ground.rows.layout, counts, 0.99))),
        details={
            "measure": name,
            "from_ns": start,
            "to_ns": end,
            "at_ns": int(ground.start_ns[min(at, ground.shape[1] - 1)]),
            **as_detail(ground, *together),
        },
    )


def _shares(ground: Ground, together: Together, so_far: Sequence[Claim], sides: tuple[Bool, Bool], at: int) -> Claim | None:
    """Return the claim that the shares of two modes change at a window; None where they do not, or where their places move."""
    mine = covered_groups(ground, together.who)
    modes = next((claim for claim in so_far if claim.kind == MODES and mine <= covered_groups(ground, claim.who)), None)
    if modes is None:
        return None
    slow = ground.rows.layout.middles_of(np.arange(ground.rows.layout.bins)) > modes.details["valley_ns"]
    both = [ground.counts(together.members, np.flatnonzero(windows)) for windows in sides]
    before, after = (float(counts[slow].sum() / max(counts.sum(), 1)) for counts in both)
    quick = sorted(quantile(ground.rows.layout, np.where(slow, 0, counts), 0.5) for counts in both)
    if abs(after - before) < LEAST_MOVED or quick[1] >= LEAST_TIMES * quick[0]:
        return None
    reach = (np.arange(ground.shape[1]) >= at) == (after > before)
    return replace(
        modes,
        who=together.who,
        start_ns=int(ground.start_ns[reach][0]),
        end_ns=int(ground.start_ns[reach][-1]) + ground.step_ns,
        cells=ground.claimed(together.members, reach),
        certainty=abs(after - before),
        details={**modes.details, "changes": True, "before": before, "after": after, "at_ns": int(ground.start_ns[at])},
    )
