"""Modes: latencies gather at two or more places, and their shares may change during the run.

Places are maxima of the density over the logarithm of latencies, made smooth by a kernel never narrower than the unit
that was recorded in (a log in whole microseconds has gaps, not modes). Between two modes the density falls to at most VALLEY of
the lower one. Both have to be there at the same time: what an episode makes slow is no mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ingest.core.intervals import Bool, Int
from ingest.query.findings import of_known
from ingest.query.findings.changes import changes_of
from ingest.query.findings.levels import (
    Together,
    all_do,
    block_edges,
    gatherings,
    in_blocks,
    passing,
    pooled,
    usable,
    window_of_change,
)
from ingest.query.findings.model import MODES, STEP, Claim, Float, Ground

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


@dataclass(frozen=True, slots=True)
class Places:
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
        valley = _widest(places)
        slow = _above(ground, valley)
        if not _at_once(ground, slow, members):
            continue
        claims.append(_claim(ground, together, places, valley, slow, aside, edges, len(sets)))
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
    widths = np.maximum(_widths(logs), KERNEL)
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
    for part in (first + second, first, second):
        places = places_of(ground, bins, part)
        if places is not None:
            return places
    return None


def _counts(ground: Ground) -> tuple[Int, Int]:
    """Return the bins that are used, and the counts (2, G, bins) of each group in each half of the run."""
    half = (2 * ground.window_of >= ground.shape[1]).astype(np.int64)
    groups = ground.shape[0]
    counts = ground.by_bin(half * groups + ground.group_of, 2 * groups)
    return ground.occupied, counts.reshape(2, groups, -1)


def _widths(logs: Float) -> Float:
    """Return how wide the kernel of each used bin must be at least: the smaller of the gaps to its neighbours."""
    gaps = np.diff(logs)
    widths: Float = np.minimum(np.append(gaps, gaps[-1]), np.append(gaps[0], gaps))
    return widths


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


def _widest(places: Places) -> float:
    """Return the valley that divides the samples most evenly."""
    below = np.cumsum(places.shares)[:-1]
    return places.valleys_ns[int(np.argmin(np.abs(below - 0.5)))]


def _above(ground: Ground, valley_ns: float) -> Float:
    """Return the samples above a latency by group and window, (G, T)."""
    slow = ground.rows.layout.middles_of(ground.rows.bins) > valley_ns
    row = ground.rows.row[slow]
    codes = ground.group_of[row] * ground.shape[1] + ground.window_of[row]
    above: Float = np.bincount(codes, ground.rows.counts[slow], math.prod(ground.shape)).reshape(ground.shape).astype(np.float64)
    return above


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


def _claim(
    ground: Ground, together: Together, places: Places, valley: float, slow: Float, aside: Bool, edges: Int, sets: int
) -> Claim:
    """Return the claim of modes; where the shares change it is about the time with more slow ones."""
    members = together.members
    held = np.maximum(ground.samples, 1)
    shares = np.where(ground.samples > 0, slow / held, np.nan)
    window, before, after = _change(ground, members, shares, slow, valley, aside, edges, sets)
    changes = abs(after - before) >= LEAST_MOVED
    cells = np.zeros(ground.shape, np.bool_)
    reach = (np.arange(ground.shape[1]) >= window) == (after > before) if changes else np.ones(ground.shape[1], np.bool_)
    first, last = np.flatnonzero(reach)[[0, -1]]
    if changes:
        cells[np.ix_(members, reach)] = True
    return Claim(
        kind=MODES,
        who=together.who,
        start_ns=int(ground.start_ns[first]),
        end_ns=int(ground.start_ns[last]) + ground.step_ns,
        cells=cells,
        value_ns=places.peaks_ns[-1],
        times=places.peaks_ns[-1] / places.peaks_ns[0],
        samples=int(slow[members].sum()),
        certainty=abs(after - before) if changes else 0.0,
        latency_ns=(int(valley), int(of_known.most(ground.top_ns[members]))),
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
    blocks = in_blocks(np.where(aside, np.nan, 2 * np.arcsin(np.sqrt(shares))), edges)
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
