"""Levels of members over a run: series of blocks, one level against two or a slope, and who moved together.

A run's windows are added up to at most BLOCKS blocks, the median of the windows of each: a stall or a slow event of a few windows
moves no block, and what is left of the dependence of windows is weighed as trends weigh that of nights (query/change_points.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ingest.core.intervals import Int
from ingest.query.change_points import FEW_RUNS, PHIS, fits, kept_share, likelihood, limit_of, places_of, tamed, whitened
from ingest.query.findings import of_known
from ingest.query.findings.model import Float, Ground, Labels

BLOCKS = 60
LEAST_SAMPLES = 20
LEAST_FILLED = 0.8  # of the blocks of a member: with fewer it is not judged
CHANCE = 2.0  # of the limit of 1 in 100, for each doubling of log(tests): the tail of a gain falls as exp(-gain / 2)
LEAST_LENGTH = 0.1  # of a run, that a level lasts
PASSING, LEAST_PASSING = 13, 5  # blocks whose median tells what stays from what passes
HALVES_APART = 0.5  # of a step, that the halves of both levels keep apart: it stays
AROUND = 4  # blocks on either side of a change that are looked at window by window
ALIKE = 0.5  # of what members do together, that each does at least
LEAST_ALIKE = math.log(1.1)


@dataclass(frozen=True, slots=True)
class Together:
    """Some groups of a ground that have labels in common and may do the same at the same time: all, those of a host, of an op."""

    who: Labels
    members: Int


@dataclass(frozen=True, slots=True)
class Change:
    """Where a series of blocks changes: the first block of its new level, by how much, and how far beyond chance (gain)."""

    place: int
    size: float
    certainty: float


def gatherings(groups: Sequence[Labels]) -> list[Together]:
    """Return all groups, those of each label, and each by itself, the most first; each set is named by what it has in common."""
    sets: dict[tuple[int, ...], None] = {tuple(range(len(groups))): None}
    for label in dict.fromkeys(label for labels in groups for label in labels):
        sets[tuple(code for code, labels in enumerate(groups) if label in labels)] = None
    for code in range(len(groups)):
        sets[code,] = None
    ordered = sorted((members for members in sets if members), key=lambda members: -len(members))
    return [Together(common([groups[code] for code in members]), np.array(members, np.int64)) for members in ordered]


def common(groups: Sequence[Labels]) -> Labels:
    """Return the labels that all groups have."""
    return tuple(label for label in groups[0] if all(label in labels for labels in groups))


def block_edges(ground: Ground) -> Int:
    """Return the first window of each block, and the end of the last: at most BLOCKS, of the windows that are whole."""
    whole = np.flatnonzero(ground.whole)
    first, last = int(whole[0]), int(whole[-1]) + 1
    width = max(-(-(last - first) // BLOCKS), 1)
    edges = np.arange(first, last + 1, width)
    return edges if len(edges) > 1 else np.array([first, last])


def judged(values: Float, samples: Int) -> Float:
    """Return values (G, T) where a window has enough samples; where most have too few, those of all are taken."""
    enough = samples >= LEAST_SAMPLES
    few = enough.sum(axis=1) < LEAST_FILLED * np.maximum((samples > 0).sum(axis=1), 1)
    return np.where(enough | (few[:, None] & (samples > 0)), values, np.nan)


def in_blocks(values: Float, edges: Int) -> Float:
    """Return the median of the windows of each block, (G, blocks); NaN where it has none."""
    width = int(edges[1] - edges[0])
    first, last = int(edges[0]), int(edges[-1])
    cells = values[:, first:last].reshape(len(values), -1, width)
    filled = ~np.isnan(cells)
    out = np.full(cells.shape[:2], np.nan)
    some = filled.any(axis=2)
    out[some] = of_known.median(cells[some], axis=1)
    return out


def usable(blocks: Float) -> Int:
    """Return which rows have enough blocks to be judged."""
    count = blocks.shape[1]
    return np.flatnonzero((~np.isnan(blocks)).sum(axis=1) >= max(LEAST_FILLED * count, FEW_RUNS))


def pooled(values: Float, members: Int, of: Callable[..., Float] = of_known.mean) -> Float:
    """Return the mean (or what `of` says) of members less the median of each, by window or block; gaps are bridged."""
    rows = values[members]
    centred = rows - of_known.median(rows, axis=1, keepdims=True)
    held = (~np.isnan(centred)).sum(axis=0)
    known = np.flatnonzero(held)
    mean = np.zeros(rows.shape[1])
    mean[known] = of(centred[:, known], axis=0)
    bridged: Float = np.interp(np.arange(len(mean)), known, mean[known]) if len(known) else mean
    return bridged


def step_of(series: Float, tests: int) -> Change | None:
    """Return the one change of a series of blocks that is beyond chance and stays; None where two levels are no better than one.

    Held to 1 in 100 for all `tests` together.
    """
    count = len(series)
    if count < FEW_RUNS:
        return None
    level, changed = fits(_drawn_in(series)[None], most=1)
    fit = changed[1][0]
    places = np.array(places_of(count, 1), np.int64)[:, 0]
    inner = (places >= max(LEAST_LENGTH * count, 2)) & (places <= count - max(LEAST_LENGTH * count, 2))
    if not inner.any():
        return None
    best = np.where(inner, fit.min(axis=0), np.inf)
    number = int(best.argmin())
    certainty = float(level.min() - best[number]) - _limit(level[0], fit[:, number], count, tests)
    place = int(places[number])
    size = float(np.median(series[place:]) - np.median(series[:place]))
    if certainty <= 0 or not _stays(series, place, size):
        return None
    return Change(place, size, certainty)


def slope_of(series: Float, tests: int) -> Change | None:
    """Return how much a series rises from its first to its last tenth, where a straight line is beyond chance and beats a step.

    The change in each half goes in the same direction. None otherwise.
    """
    count = len(series)
    if count < FEW_RUNS:
        return None
    values = _drawn_in(series)
    level, changed = fits(values[None], most=1)
    rising = np.arange(count) / (count - 1) - 0.5
    fit = np.array([_straight(values, rising, phi) for phi in PHIS.tolist()])
    certainty = float(level.min() - fit[:, 0].min()) - _limit(level[0], fit[:, 0], count, tests)
    size = 0.9 * float(fit[int(fit[:, 0].argmin()), 1])
    if certainty <= 0 or fit[:, 0].min() > changed[1].min():
        return None
    thirds = [float(np.median(third)) for third in np.array_split(values, 3)]
    moved = [(thirds[1] - thirds[0]) * np.sign(size), (thirds[2] - thirds[1]) * np.sign(size)]
    if min(moved) < abs(size) / 8:
        return None
    return Change(count // 2, size, certainty)


def window_of_change(windows: Float, edges: Int, place: int) -> int:
    """Return the window at which a series of windows changes, near the first window of a block."""
    width = int(edges[1] - edges[0])
    middle = int(edges[place])
    if width == 1:
        return middle
    first, last = max(middle - AROUND * width, int(edges[0])), min(middle + AROUND * width, int(edges[-1]))
    _, changed = fits(_without_events(windows[first:last])[None], most=1)
    places = np.array(places_of(last - first, 1), np.int64)[:, 0] + first
    best = changed[1][0].min(axis=0)
    best[np.abs(places - middle) > 2 * width] = np.inf
    return int(places[int(best.argmin())])


def all_do(values: Float, members: Int, place: int, size: float, least: float = LEAST_ALIKE) -> bool:
    """Return whether each of the members moves at that place, in the direction of `size`, by half of it and by `least`."""
    with np.errstate(all="ignore"):
        moved = of_known.median(values[members][:, place:], axis=1) - of_known.median(values[members][:, :place], axis=1)
    return bool((moved * np.sign(size) >= max(ALIKE * abs(size), least)).all())


def quantiles(ground: Ground, members: Int, windows: Int, shares: Sequence[float]) -> list[float]:
    """Return the latencies in ns of which that share of the samples of some groups in some windows are no larger."""
    counts = ground.counts(members, windows)
    below = np.cumsum(counts)
    values = ground.rows.layout.values
    ranks = [max(math.ceil(share * float(below[-1])), 1) for share in shares]
    return [float(values[int(np.searchsorted(below, rank))]) for rank in ranks] if below[-1] else [math.nan for _ in shares]


def _drawn_in(series: Float) -> Float:
    """Return a series without what passes: an episode of up to a tenth of the run hardly moves the median of so many blocks."""
    return tamed(series, PASSING if len(series) >= 2 * PASSING else LEAST_PASSING)


def _without_events(windows: Float) -> Float:
    """Return windows with what is far from those around bridged: drawn in only, events of a rhythm would look like a level."""
    near = _drawn_in(windows)
    kept = near == windows
    return np.interp(np.arange(len(windows)), np.flatnonzero(kept), windows[kept]) if kept.any() else near


def _limit(level: Float, changed: Float, count: int, tests: int) -> float:
    """Return the gain that a series without a change reaches once in 100 times, all `tests` together."""
    phi = kept_share(float(PHIS[int(level.argmin())]), count)
    phi = min(phi, float(PHIS[int(changed.argmin())]) + 0.4)
    return limit_of(count, 1, phi) + CHANCE * math.log(max(tests, 1))


def _straight(values: Float, rising: Float, phi: float) -> tuple[float, float]:
    """Return -2 log-likelihood of a level that rises in a straight line, and by how much it rises."""
    count = len(values)
    columns = whitened(np.stack([values - values.mean(), np.ones(count), rising]), phi)
    solution, *_ = np.linalg.lstsq(columns[1:].T, columns[0], rcond=None)
    rest = columns[0] - solution @ columns[1:]
    return float(likelihood(np.array(rest @ rest), count)) - math.log(1 - phi * phi), float(solution[1])


def _stays(series: Float, place: int, size: float) -> bool:
    """Return whether both halves of the level before and of the level after keep apart."""
    before = [np.median(half) for half in np.array_split(series[:place], 2) if len(half)]
    after = [np.median(half) for half in np.array_split(series[place:], 2) if len(half)]
    direction = np.sign(size)
    apart = min(value * direction for value in after) - max(value * direction for value in before)
    return bool(apart >= HALVES_APART * abs(size))
