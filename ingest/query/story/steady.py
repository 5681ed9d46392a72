"""From when on a run is steady: where the levels at its beginning, which are unlike what follows, end (`--from steady`).

    all members together, by block    # # # # : : . . . . . . # . . . . . . . . . .    of the second half most are like `.`
    levels                            |       |   |           | |                      those before the first like these: warm-up

All members are looked at as one series, of shares above each member's own quantiles and of completions, cut into levels as in
segments.py. Levels like the middle one of the second half of the run are the usual ones. What comes before the first of them is
the warm-up, as far as its levels are slower, quicker or do less or more than the usual ones beyond chance. It ends within the
first half of the run: later than that, or where the level drifts all the time, the run does not settle. (Half a run is also the
most that MSER, the rule of White and others for simulations, cuts off.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

import numpy as np

from ingest.core.errors import InputError
from ingest.core.grid import SECOND
from ingest.core.intervals import Bool
from ingest.core.layout import Float
from ingest.query.origin import FINDINGS, Origin
from ingest.query.question import STEADY, Question, Steady, selected_runs
from ingest.query.story.ground import Ground, NoGroundError, grounds, known_median
from ingest.query.story.segments import (
    LEAST_RATE,
    LEAST_RUN,
    LEVEL,
    MORE,
    Counts,
    Event,
    Search,
    every_count,
)
from ingest.query.story.words import PERCENT, shown

MOST_WARM_UP = 0.5  # of the run
OFTENER = 1.5  # times, that operations above p99 are in the warm-up what all operations are: it makes the tail
SLOW = 0.002  # of all samples, that shares of slow ones differ at least
ABOVE = 0.01  # of all operations: those above p99


def steady_runs(origin: Origin, question: Question) -> dict[str, Steady]:
    """Return from when on the runs that a question selects are steady, by the whole of each, whatever is selected of it.

    Of a run that a store has findings of these say it. Files are read once for it, of one host or volume up to three times.
    """
    kept = origin.offers.get(FINDINGS)
    runs = {}
    for run in selected_runs([record.run for record in origin.runs()], question):
        story = kept(run, "") if kept else None
        runs[run] = story.steady if story and story.steady else _looked_at(origin, run)
    return runs


def _looked_at(origin: Origin, run: str) -> Steady:
    try:
        return steady_of(grounds(origin, Question().about([run]))[0])
    except (NoGroundError, InputError) as reason:
        return Steady(why=f"its warm-up cannot be told ({reason})")


def steady_of(ground: Ground) -> Steady:
    """Return from when on a run is steady, all of its members together."""
    counts = _together(every_count(ground))
    if counts.blocks < LEAST_RUN:
        return Steady(why=f"a warm-up cannot be told in fewer than {LEAST_RUN} windows")
    search = Search(replace(ground, groups=((),)), counts, tried=counts.blocks)  # it begins with the run, and has any length
    if search.drifts():
        return Steady(why="it does not settle (its latency drifts all the time)")
    events = [event for event in (_latency(search), _rate(search)) if event is not None]
    ends = [search.windows_of(event)[0 if event.first else 1] for event in events]
    if not ends:
        return Steady()
    end, windows = max(ends), ground.shape[1]
    start_ns = int(ground.start_ns[min(end, windows - 1)])
    since = f"{round((start_ns - ground.zero_ns) / SECOND, 3):.9g}"
    if end > MOST_WARM_UP * windows:
        return Steady(why=f"it does not settle in its first half (its level changes at +{since}s)")
    return Steady(start_ns, tail=_tail(ground, end, since))


def _together(counts: Counts) -> Counts:
    """Return the counts of all groups as those of one."""
    sums = {name: getattr(counts, name).sum(axis=-2, keepdims=True) for name in ("over", "done", "due", "logs", "fine")}
    return replace(counts, **sums, cuts=counts.cuts.mean(axis=1, keepdims=True), table=counts.table.mean(axis=0, keepdims=True))


def _latency(search: Search) -> Event | None:
    """Return the levels of latency before the usual ones as one event, or what comes after them where that is the slower."""
    levels, (over,) = search.latency[0], search.sums.over.transpose(1, 0, 2)
    held = np.maximum(_by_level(over[0], levels), 1e-9)
    height, slow = _by_level(search.sums.logs[0], levels) / held, _by_level(over[3], levels) / held
    usual = abs(height - _middle(height, levels, search)) < math.log(LEVEL)
    share = _middle(np.where(usual, slow, np.nan), levels, search)
    usual &= (slow < MORE * share + SLOW) & (share < MORE * slow + SLOW)
    return _before(search, levels, usual, rate=False)


def _rate(search: Search) -> Event | None:
    """Return the levels of the rate before the usual ones as one event, or what comes after them where that does less."""
    levels = search.rate[0]
    rate = _by_level(search.sums.done[0], levels) / np.maximum(_by_level(search.sums.due[0], levels), 1e-9)
    middle = _middle(rate, levels, search)
    return _before(search, levels, (LEAST_RATE * middle <= rate) & (LEAST_RATE * rate <= middle), rate=True)


def _by_level(values: Float, levels: Sequence[tuple[int, int]]) -> Float:
    return np.add.reduceat(values, [first for first, _ in levels])


def _middle(values: Float, levels: Sequence[tuple[int, int]], search: Search) -> float:
    """Return the median over the second half of the run of a value that each level has, of those where it is known."""
    half = search.counts.blocks // 2
    lengths = np.array([max(end - max(first, half), 0) for first, end in levels])
    return float(known_median(np.repeat(values, lengths)))


def _before(search: Search, levels: Sequence[tuple[int, int]], usual: Bool, *, rate: bool) -> Event | None:
    """Return what lies before the first usual level as an event, where a level of it is unlike the longest usual one.

    The event is what is worse: these levels, or all that follows. None where neither is beyond chance.
    """
    test = search.fewer if rate else search.slower
    first_usual = int(usual.argmax())
    longest = max(compress(levels, usual.tolist()), key=lambda level: level[1] - level[0], default=levels[0])
    end = levels[first_usual][0]
    for level in levels[:first_usual]:
        if (worse := test(0, *level, _blocks(search, longest))) is not None:
            return replace(worse, first=0, end=end)
        if (worse := test(0, *longest, _blocks(search, level))) is not None:
            return replace(worse, first=end, end=search.counts.blocks, usual=_blocks(search, (0, end)))
    return None


def _blocks(search: Search, level: tuple[int, int]) -> Bool:
    chosen = np.zeros(search.counts.blocks, np.bool_)
    chosen[slice(*level)] = True
    return chosen


def _tail(ground: Ground, end: int, since: str) -> str:
    """Return what the windows before `end` hold of the operations above the p99 of the run, in words."""
    all_groups = np.arange(ground.shape[0])
    warm, later = (ground.counts(all_groups, windows) for windows in (np.arange(end), np.arange(end, ground.shape[1])))
    counts = warm + later
    above = counts[::-1].cumsum()[::-1] - counts  # of each bin, how many samples lie above it
    cut = int(abs(above - ABOVE * counts.sum()).argmin())
    share, of_all = float(warm[cut + 1 :].sum() / max(above[cut], 1)), float(warm.sum() / counts.sum())
    rest = f"warm-up; --from {STEADY} leaves it out."
    if share < OFTENER * of_all:
        return f"The first {since} s are unlike what follows, and hold {PERCENT * of_all:.0f} % of all operations: {rest}"
    p99 = shown(float(ground.rows.layout.rising[cut]))
    held = f"{PERCENT * share:.0f} % of the operations above p99 ({p99}), and {PERCENT * of_all:.0f} % of all"
    return f"The first {since} s hold {held}: {rest}"
