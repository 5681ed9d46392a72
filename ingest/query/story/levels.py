"""Levels of members over a run, and what a series of them does: it keeps its level, changes it, or moves.

What a series of blocks does over a run: it keeps its level, changes it at one time, moves in a straight line, or both.

    level  - - - - - -      step  - - - = = =      drift  . - = ^      both  . - = # # ^

All four are fitted by least squares to blocks of which each keeps a share `phi` of the deviation of the one before it, and
weighed as trends weigh nights (query/change_points.py): a change is one where it gains more than chance does in 1 of 100 runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ingest.core.intervals import Bool, Int
from ingest.core.layout import Float
from ingest.core.quantiles import Ranked
from ingest.query.change_points import FEW_RUNS, PHIS, fits, kept_share, likelihood, limit_of, places_of, tamed, whitened
from ingest.query.story.ground import (
    DRIFT,
    EPISODE,
    MODES,
    OP,
    RHYTHM,
    STALL,
    STEP,
    Claim,
    Ground,
    Labels,
    added_up,
    covered_groups,
    known_mean,
    known_median,
)

CHANCE = 2.0  # of the limit of 1 in 100, for each doubling of log(tests): the tail of a gain falls as exp(-gain / 2)
NO_PLACE = (
    4.0  # that the limit of a drift is lower: it is not looked for at many places (1 in 100 of series that wander, simulated)
)
WIDER = 0.4  # that phi may lie above the one that is left once the change is taken out: until then a change looks like wandering
LEAST_LENGTH = 0.1  # of a run, that a level lasts
PASSING, LEAST_PASSING = 13, 5  # blocks whose median tells what stays from what passes
HALVES_APART = 0.5  # of a step, that the halves of both levels keep apart: it stays
STEADY = 1 / 8  # of a drift, that the level moves at least from each third of the run to the next
INNER = 0.9  # of a line from end to end: from the middle of the first tenth to that of the last


class Change(NamedTuple):
    """A step or a drift: the first block of the new level (of a drift the middle one), by how much, how far beyond chance."""

    kind: str
    place: int
    size: float
    certainty: float

    def shape(self, count: int) -> Float:
        """Return what it adds to each of so many blocks."""
        if self.kind == STEP:
            return np.where(np.arange(count) >= self.place, self.size, 0.0)
        return self.size / INNER * _rising(count)


class _Columns(NamedTuple):
    """What is fitted with one phi, made independent and of length 1, each without those before it; steps are (count, places)."""

    phi: float
    ones: Float
    rising: Float
    steps: Float
    steps_beside: Float  # without what `rising` explains of them


class _Fits(NamedTuple):
    """-2 log-likelihoods of one level and of a drift, (PHIS), of a step and of both, (PHIS, places)."""

    level: Float
    drift: Float
    step: Float
    both: Float


def changes_of(series: Float, tests: int, least: float = 0.0) -> list[Change]:
    """Return what a series does beyond chance: a drift, a step, a drift and then a step, or nothing; each of at least that size.

    Held to 1 in 100 for all `tests` together. A step stays: the halves of the levels before and after it keep apart. A drift
    moves from each third of the run to the next.
    """
    count = len(series)
    places = _places(count)
    if count < FEW_RUNS or not len(places):
        return []
    # Without what passes: an episode of up to a tenth of the run hardly moves the median of so many blocks.
    values = tamed(series, PASSING if count >= 2 * PASSING else LEAST_PASSING)
    fits = _fitted(values, places)
    at, turn = (int(fit.min(axis=0).argmin()) for fit in (fits.step, fits.both))
    step, both = fits.step[:, at], fits.both[:, turn]
    drifts, steps = _beyond(step, both, tests, count), _beyond(fits.drift, both, tests, count)
    if drifts > 0 and steps > 0:
        rise, size = _sizes(values, int(places[turn]), float(PHIS[int(both.argmin())]))
        drift, after = Change(DRIFT, count // 2, rise, drifts), Change(STEP, int(places[turn]), size, steps)
        large = min(abs(rise), abs(size)) >= least
        if large and _stays(series - drift.shape(count), after) and _moves(values - after.shape(count), rise):
            return [drift, after]
    drifts, steps = _beyond(fits.level, fits.drift, tests, count) + NO_PLACE, _beyond(fits.level, step, tests, count)
    if drifts > 0 and fits.drift.min() <= fits.step.min():
        rise = _sizes(values, None, float(PHIS[int(fits.drift.argmin())]))[0]
        if abs(rise) >= least and _moves(values, rise):
            return [Change(DRIFT, count // 2, rise, drifts)]
    place = int(places[at])
    after = Change(STEP, place, float(np.median(series[place:]) - np.median(series[:place])), steps)
    return [after] if steps > 0 and abs(after.size) >= least and _stays(series, after) else []


def _places(count: int) -> Int:
    """Return the first blocks that a second level may have."""
    shortest = math.ceil(max(LEAST_LENGTH * count, 2))
    return np.arange(shortest, count - shortest + 1)


def _rising(count: int) -> Float:
    """Return a line from -1/2 to 1/2."""
    return np.arange(count) / (count - 1) - 0.5


def _fitted(values: Float, places: Int) -> _Fits:
    """Return how well each of the four fits."""
    count, shape = len(values), (len(PHIS), len(places))
    fits = _Fits(np.empty(len(PHIS)), np.empty(len(PHIS)), np.empty(shape), np.empty(shape))
    centred = (values - values.mean())[None]
    for number, columns in enumerate(_columns(count)):
        white = whitened(centred, columns.phi)[0]
        flat = white - columns.ones * (columns.ones @ white)
        bent = flat - columns.rising * (columns.rising @ flat)
        start = -math.log(1 - columns.phi**2)
        fits.level[number], fits.drift[number] = likelihood(np.array([flat @ flat, bent @ bent]), count) + start
        fits.step[number] = likelihood(flat @ flat - (flat @ columns.steps) ** 2, count) + start
        fits.both[number] = likelihood(bent @ bent - (bent @ columns.steps_beside) ** 2, count) + start
    return fits


@lru_cache(maxsize=8)
def _columns(count: int) -> tuple[_Columns, ...]:
    """Return what is fitted to a series of so many blocks, for each of PHIS."""
    out = []
    stepped = (np.arange(count)[:, None] >= _places(count)).astype(np.float64)
    for phi in PHIS.tolist():
        ones, rising = (whitened(row[None], phi)[0] for row in (np.ones(count), _rising(count)))
        steps: Float = whitened(stepped.T, phi).T
        ones = ones / math.sqrt(ones @ ones)
        rising = rising - ones * (ones @ rising)
        rising = rising / math.sqrt(rising @ rising)
        steps = steps - np.outer(ones, ones @ steps)
        beside = steps - np.outer(rising, rising @ steps)
        out.append(_Columns(phi, ones, rising, *(each / np.sqrt((each**2).sum(axis=0)) for each in (steps, beside))))
    return tuple(out)


def _sizes(values: Float, place: int | None, phi: float) -> tuple[float, float]:
    """Return by how much a series rises from its first to its last tenth, and by how much it steps at a place (0 without)."""
    count = len(values)
    rows = [values, np.ones(count), _rising(count)]
    if place is not None:
        rows.append((np.arange(count) >= place).astype(np.float64))
    columns = whitened(np.stack(rows), phi)
    solution, *_ = np.linalg.lstsq(columns[1:].T, columns[0], rcond=None)
    return INNER * float(solution[1]), float(solution[2]) if place is not None else 0.0


def _beyond(simple: Float, richer: Float, tests: int, count: int) -> float:
    """Return by how much a fit gains more than it does once in 100 times where the simple one is true, all `tests` together."""
    phi = kept_share(float(PHIS[int(simple.argmin())]), count)
    phi = min(phi, float(PHIS[int(richer.argmin())]) + WIDER)
    limit = limit_of(count, 1, phi) + CHANCE * math.log(max(tests, 1))
    return float(simple.min() - richer.min()) - limit


def _moves(values: Float, rise: float) -> bool:
    """Return whether a series moves in the direction of a drift from each third to the next."""
    thirds = [float(np.median(third)) for third in np.array_split(values, 3)]
    return bool(min(np.diff(thirds) * np.sign(rise)) >= STEADY * abs(rise))


def _stays(series: Float, step: Change) -> bool:
    """Return whether both halves of the level before and of the level after keep apart."""
    before, after = (
        [float(np.median(half)) * np.sign(step.size) for half in np.array_split(part, 2) if len(half)]
        for part in (series[: step.place], series[step.place :])
    )
    return bool(min(after) - max(before) >= HALVES_APART * abs(step.size))


# Levels of members over a run: what is measured, in blocks of windows, and which members may move together.
#
# A run's windows are added up to at most BLOCKS blocks, the median of the windows of each: a slow event of a few windows moves
# no block, and those that belong to a stall, a rhythm or an episode are left out. Where latencies have modes, p50 and p99 tell
# of their shares, and a level is the p50 of what is at each of the two places.


BLOCKS = 60
LEAST_SAMPLES = 20
TAILS = ((0.99, 500), (0.95, 100), (0.9, 0))  # percentiles of blocks, each where a usual block has so many samples
LEAST_FILLED = 0.8  # of the blocks of a member: with fewer it is not judged
LEVELS_PASSING = (STALL, RHYTHM, EPISODE)
MOST_PASSING = 0.5  # of the windows of a member: what lasts longer is not left out
FEW = 3  # members whose median is no more than their mean
AROUND = 4  # blocks on either side of a change that are looked at window by window
CLASSES = np.array([0.02, 0.05, *(np.arange(1, 10) / 10), 0.95, 0.98, 0.99, 0.995])  # ranks between which samples are counted
ALIKE = 0.5  # of what members do together, that each does at least


class Measure(NamedTuple):
    """A quantile of members, as logarithms of ns in blocks (G, blocks), NaN where it tells nothing; `share` by group.

    Samples of a group are those within (`above_ns`, `upto_ns`], by group: all of them where it has no modes.
    """

    blocks: Float
    share: Float
    above_ns: Float
    upto_ns: Float


class Together(NamedTuple):
    """Some groups of a ground that have labels in common and may do the same at the same time: all, those of a host, of an op."""

    who: Labels
    members: Int


def gatherings(groups: Sequence[Labels]) -> list[Together]:
    """Return all groups, those of each label, and each by itself, the most first; each set is named by what it has in common.

    But for the operation, where all groups have the same.
    """
    labels_there = dict.fromkeys(label for labels in groups for label in labels)
    by_label = (tuple(code for code, labels in enumerate(groups) if label in labels) for label in labels_there)
    sets = dict.fromkeys((tuple(range(len(groups))), *by_label, *((code,) for code in range(len(groups)))))
    everywhere = {label for label in common(groups) if label[0] == OP}
    gathered = []
    for members in sorted(sets, key=lambda members: -len(members)):
        who = (label for label in common([groups[code] for code in members]) if label not in everywhere)
        gathered.append(Together(tuple(who), np.array(members, np.int64)))
    return gathered


def common(groups: Sequence[Labels]) -> Labels:
    """Return the labels that all groups have; an empty one is none."""
    return tuple(label for label in groups[0] if label[1] and all(label in labels for labels in groups))


def measures(ground: Ground, so_far: Sequence[Claim], edges: Int, aside: Bool) -> list[Measure]:
    """Return the levels that are looked at, without windows `aside`: p50 and p99, or the p50 on either side of a valley."""
    valleys = np.full(len(ground.groups), np.nan)
    for claim in so_far:
        if claim.kind == MODES:
            valleys[list(covered_groups(ground, claim.who))] = claim.details["valley_ns"]
    none, every = np.zeros(len(valleys)), np.full(len(valleys), np.inf)
    low = _middle(ground, edges, aside, none, np.where(np.isnan(valleys), np.inf, valleys))
    high = _tail(ground, edges, aside)
    cut = ~np.isnan(valleys)
    if not cut.any():
        return [low, high]
    upper = _middle(ground, edges, aside, np.where(cut, valleys, 0), every)
    blocks = np.where(cut[:, None], upper.blocks, high.blocks)
    share, above_ns = np.where(cut, upper.share, high.share), np.where(cut, upper.above_ns, high.above_ns)
    return [low, Measure(blocks, share, above_ns, every)]


def _middle(ground: Ground, edges: Int, aside: Bool, above_ns: Float, upto_ns: Float) -> Measure:
    """Return the p50 of the samples within bounds of each group: that of each window, and the median of these in a block.

    NaN in blocks with far fewer samples than usual.
    """
    bounded = bool(above_ns.any() or np.isfinite(upto_ns).any())
    ns, samples = _median_within(ground, above_ns, upto_ns) if bounded else (ground.p50_ns, ground.samples)
    blocks = levels_in_blocks(judged(logarithms(np.where(aside, np.nan, ns)), samples), edges)
    kept = np.where(aside, 0, samples)[:, : int(edges[-1])]
    held = np.add.reduceat(kept, edges[:-1], axis=1).astype(np.float64)
    least = np.minimum(LEAST_SAMPLES, np.median(held, axis=1, keepdims=True) / 2)
    return Measure(np.where(held >= least, blocks, np.nan), np.full(len(ns), 0.5), above_ns, upto_ns)


def _tail(ground: Ground, edges: Int, aside: Bool) -> Measure:
    """Return the p99 of each block, or the p95 or p90 where that has too few samples above it.

    Not that of its windows: the p99 of 99 samples is the largest of them, that of 101 the second: it would tell of the rate.
    """
    windows = np.arange(ground.shape[1])
    block = np.where(windows < edges[-1], np.searchsorted(edges, windows, side="right") - 1, -1)
    cube = added_up(ground, block, aside)
    usual = np.median(cube.samples, axis=1)
    share = np.select([usual >= least for _, least in TAILS], [tail for tail, _ in TAILS], TAILS[-1][0])
    blocks = np.stack([cube.quantile(tail) for tail, _ in TAILS])
    chosen = np.argmax([share == tail for tail, _ in TAILS], axis=0)
    ns = blocks[chosen, np.arange(len(share))]
    return Measure(logarithms(ns), share, np.zeros(len(share)), np.full(len(share), np.inf))


def passing(ground: Ground, so_far: Sequence[Claim]) -> Bool:
    """Return the windows (G, T) that belong to what passes; none of a member of which these are most."""
    cells = np.zeros(ground.shape, np.bool_)
    for claim in so_far:
        if claim.kind in LEVELS_PASSING:
            cells |= claim.cells
    cells[cells.mean(axis=1) > MOST_PASSING] = False
    return cells


def block_edges(ground: Ground) -> Int:
    """Return the first window of each block, and the end of the last: at most BLOCKS, of the windows that are whole."""
    whole = np.flatnonzero(ground.whole)
    first, last = int(whole[0]), int(whole[-1]) + 1
    width = max(-(-(last - first) // BLOCKS), 1)
    edges = np.arange(first, last + 1, width)
    return edges if len(edges) > 1 else np.array([first, last])


def logarithms(values: Float) -> Float:
    """Return logarithms, NaN of what is not above 0."""
    with np.errstate(all="ignore"):
        logs: Float = np.log(np.where(values > 0, values, np.nan))
    return logs


def judged(values: Float, samples: Int) -> Float:
    """Return values (G, T) where a window has enough samples; where most have too few, those of all are taken."""
    enough = samples >= LEAST_SAMPLES
    few = enough.sum(axis=1) < LEAST_FILLED * np.maximum((samples > 0).sum(axis=1), 1)
    return np.where(enough | (few[:, None] & (samples > 0)), values, np.nan)


def levels_in_blocks(values: Float, edges: Int) -> Float:
    """Return the median of the windows of each block, (G, blocks); NaN where it has none."""
    width = int(edges[1] - edges[0])
    first, last = int(edges[0]), int(edges[-1])
    cells = values[:, first:last].reshape(len(values), -1, width)
    filled = ~np.isnan(cells)
    out = np.full(cells.shape[:2], np.nan)
    some = filled.any(axis=2)
    out[some] = known_median(cells[some], axis=1)
    return out


def usable(blocks: Float) -> Int:
    """Return which rows have enough blocks to be judged."""
    count = blocks.shape[1]
    return np.flatnonzero((~np.isnan(blocks)).sum(axis=1) >= max(LEAST_FILLED * count, FEW_RUNS))


def pooled(blocks: Float, members: Int) -> Float:
    """Return what most members do: the median of their blocks, less the median of each; gaps are bridged."""
    rows = blocks[members]
    centred = rows - known_median(rows, axis=1, keepdims=True)
    middle = known_median(centred, axis=0) if len(members) >= FEW else known_mean(centred, axis=0)
    known = np.flatnonzero(~np.isnan(middle))
    return np.interp(np.arange(len(middle)), known, middle[known]) if len(known) else np.zeros(len(middle))


def classes_of(ground: Ground, members: Int, measure: Measure) -> Int:
    """Return for each of some members and each bin its class by rank (see CLASSES), -1 for what is left out."""
    middles = ground.rows.layout.middles_of(np.arange(ground.rows.layout.bins))
    out = np.full((len(members), len(middles)), -1, np.int64)
    for number, code in enumerate(members.tolist()):
        inside = (middles > measure.above_ns[code]) & (middles <= measure.upto_ns[code])
        counts = np.where(inside, ground.counts(np.array([code]), np.arange(ground.shape[1])), 0)
        place = (np.cumsum(counts) - counts / 2) / max(float(counts.sum()), 1.0)
        out[number, inside] = np.searchsorted(CLASSES, place[inside])
    return out


def window_of_change(ground: Ground, members: Int, classes: Int, passing: Bool, edges: Int, place: int) -> int:
    """Return the window at which members change, near the first window of a block.

    Of each window it is known how much its samples look like those after the change rather than those before it: the mean
    logarithm of the ratio of their likelihoods, by class. Two levels are fitted to that, windows hanging together as blocks do
    (query/change_points.py), and the change is as likely before the window that is returned as after it.
    """
    width, middle = int(edges[1] - edges[0]), int(edges[place])
    if width == 1:
        return middle
    first, last = max(middle - AROUND * width, int(edges[0])), min(middle + AROUND * width, int(edges[-1]))
    later, held = np.zeros((2, last - first))
    for mine, code in zip(classes, members.tolist(), strict=True):
        near = (ground.group_of == code) & (ground.window_of >= first) & (ground.window_of < last)
        rows = np.flatnonzero(near & ~passing[code, ground.window_of])
        part = ground.rows.take(rows)
        kind = mine[part.bins]
        kept = kind >= 0
        kinds = int(mine.max()) + 1
        window = ground.window_of[rows][part.row] - first
        counts = np.bincount((window * kinds + kind)[kept], part.counts[kept], len(later) * kinds).reshape(-1, kinds)
        before, after = counts[: middle - first - width].sum(axis=0), counts[middle - first + width :].sum(axis=0)
        odds = [np.log((held + 0.5) / (held.sum() + 0.5 * kinds)) for held in (before, after)]
        later += counts @ (odds[1] - odds[0])
        held += counts.sum(axis=1)
    filled = np.flatnonzero(held)
    if not len(filled):
        return middle
    looks = np.interp(np.arange(len(held)), filled, later[filled] / held[filled])
    places = np.array(places_of(len(looks), 1), np.int64)[:, 0] + first
    fit = np.where(np.abs(places - middle) <= 2 * width, fits(looks[None], most=1)[1][1][0], np.inf)
    likely = np.exp(-(fit - fit.min()) / 2).sum(axis=0).cumsum()
    return int(places[np.searchsorted(likely, likely[-1] / 2)])


def all_do(blocks: Float, members: Int, change: Change) -> bool:
    """Return whether each of the members does at least ALIKE of what they do together: its blocks fitted by that shape."""
    shape = np.broadcast_to(change.shape(blocks.shape[1]), (len(members), blocks.shape[1]))
    rows = blocks[members]
    shape = np.where(np.isnan(rows), np.nan, shape)
    centred, shape = (part - known_mean(part, axis=1, keepdims=True) for part in (rows, shape))
    return bool((np.nansum(centred * shape, axis=1) >= ALIKE * np.nansum(shape**2, axis=1)).all())


def quantile(ground: Ground, members: Int, windows: Int, measure: Measure, share: float) -> float:
    """Return the quantile in ns of the samples of a measure, of members in windows; NaN where they have none."""
    layout = ground.rows.layout
    middles = layout.middles_of(np.arange(layout.bins))
    counts = np.zeros(layout.bins, np.int64)
    for code in members.tolist():
        inside = (middles > measure.above_ns[code]) & (middles <= measure.upto_ns[code])
        counts += np.where(inside, ground.counts(np.array([code]), windows), 0)
    below = np.cumsum(counts)
    if not below[-1]:
        return math.nan
    return float(layout.rising[int(np.searchsorted(below, max(math.ceil(share * float(below[-1])), 1)))])


def _median_within(ground: Ground, above_ns: Float, upto_ns: Float) -> tuple[Float, Int]:
    """Return the p50 in ns of each group and window (G, T) within bounds of each group, and of how many samples it is."""
    rows, group = ground.rows, ground.group_of
    middles = rows.layout.middles_of(rows.bins)
    low, inside = (middles <= above_ns[group][rows.row]), middles <= upto_ns[group][rows.row]
    below, upto = (np.bincount(rows.row[part], rows.counts[part], len(rows)).astype(np.int64) for part in (low, inside))
    filled = np.flatnonzero(upto > below)
    ns, samples = np.full(ground.shape, np.nan), np.zeros(ground.shape, np.int64)
    held = (upto - below)[filled]
    ns[group[filled], ground.window_of[filled]] = Ranked(rows).values(filled, below[filled] + (held + 1) // 2)
    samples[group[filled], ground.window_of[filled]] = held
    return ns, samples
