"""What a series of blocks does over a run: it keeps its level, changes it at one time, moves in a straight line, or both.

    level  - - - - - -      step  - - - = = =      drift  . - = ^      both  . - = # # ^

All four are fitted by least squares to blocks of which each keeps a share `phi` of the deviation of the one before it, and
weighed as trends weigh nights (query/change_points.py): a change is one where it gains more than chance does in 1 of 100 runs.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Int
from ingest.query.change_points import FEW_RUNS, PHIS, kept_share, likelihood, limit_of, tamed, whitened
from ingest.query.findings.model import DRIFT, STEP, Float

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


@dataclass(frozen=True, slots=True)
class Change:
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


@dataclass(frozen=True, slots=True)
class _Columns:
    """What is fitted with one phi, made independent and of length 1, each without those before it; steps are (count, places)."""

    phi: float
    ones: Float
    rising: Float
    steps: Float
    steps_beside: Float  # without what `rising` explains of them


@dataclass(frozen=True, slots=True)
class _Fits:
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
    values = _drawn_in(series)
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


def _drawn_in(series: Float) -> Float:
    """Return a series without what passes: an episode of up to a tenth of the run hardly moves the median of so many blocks."""
    return tamed(series, PASSING if len(series) >= 2 * PASSING else LEAST_PASSING)


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
