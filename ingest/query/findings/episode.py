"""Episode: a stretch of windows far beyond what is typical, with typical ones before and after it.

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
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Bool
from ingest.query.findings import of_known
from ingest.query.findings.blocks import THIN, Blocks, carrying, in_blocks
from ingest.query.findings.model import EPISODE, RHYTHM, Claim, Float, Ground

LEAST = 1.5  # times typical
FAR = 3.0  # deviations of the windows
CHANCE = 0.01  # of any in the run
FEW_FOLLOW = 0.25  # how surely one window beyond is followed by another where hardly any is
LEAST_WINDOWS = 3
ALONE, ALONE_SAMPLES = 4.0, 5  # one or two windows: times beyond all others, and so many samples in them that are
FEW = 5  # stretches that are as far beyond all others as one alone has to be
AROUND = 10  # windows on either side in which the ends of a stretch are looked for
NEARBY = 30  # windows on either side that make the level around a window
BRIDGED = 2  # windows within a stretch that need not be beyond
MOST = 0.4  # of the run
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


@dataclass(frozen=True, slots=True)
class _Level:
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
            series = _logs(values, blocks.samples[code])[kept]
            for within in stretches(series, len(ground.groups)):
                stretch = replace(within, first=int(kept[within.first]), last=int(kept[within.last - 1]) + 1)
                if all(stretch.first >= other.last or other.first >= stretch.last for _, other in found):
                    found.append((name, stretch))
        claims += [
            _claim(ground, code, name, stretch, width) for name, stretch in found if _carried(ground, code, name, stretch, width)
        ]
    return claims


def _logs(values: Float, samples: Float) -> Float:
    """Return logarithms of percentiles, NaN for windows of so few samples that a percentile says nothing."""
    with np.errstate(invalid="ignore"):
        logs: Float = np.log(np.where((samples >= THIN / 2) & (values > 0), values, np.nan))
    return logs


def stretches(logs: Float, groups: int) -> list[Stretch]:
    """Return the stretches of a series that are beyond what its own windows do by chance, `groups` of which are looked at.

    Those beyond the level around them count where that level itself is beyond the median of the series.
    """
    if np.count_nonzero(~np.isnan(logs)) < LEAST_RUN:
        return []
    whole = _level(logs[None])
    out = _sure(_beyond(logs, whole, groups), len(logs))
    raised = float(whole.middle[0]) + math.log(LEAST)
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
    return _Level(middle, np.maximum(math.log(LEAST), FAR * np.maximum(middle - low, high - middle)))


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
        if height >= math.log(LEAST) and all(first >= other.last for other in out):
            certainty = _certainty(above, beyond, first, last, groups)
            out.append(Stretch(first, last, float(np.nanmedian(levels[first:last])), height, certainty))
    return out


def _sure(found: Sequence[Stretch], windows: int) -> list[Stretch]:
    """Return the stretches that chance does not make and that have typical windows before and after them."""
    whole = [stretch for stretch in found if stretch.first > 0 and stretch.last < windows]
    return [stretch for stretch in whole if stretch.certainty > 0 and stretch.last - stretch.first <= MOST * windows]


def _few(above: Float, stretches: Sequence[Stretch]) -> list[Stretch]:
    """Return stretches, the FEW highest of them as certain as they are ALONE times beyond all windows outside of these.

    The first and last windows are not asked: what is around them is on one side only, and a warm-up falls steeply there.
    """
    highest = sorted(stretches, key=lambda stretch: -stretch.above)
    outside = above.copy()
    outside[:AROUND] = outside[-AROUND:] = np.nan
    for number, stretch in enumerate(highest[:FEW]):
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
    low, high = max(0, begin - AROUND), min(len(above), end + AROUND)
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
    if last - first < LEAST_WINDOWS:
        rest = logs[outside & ~np.isnan(logs)]
        return float(of_known.least(inside) - rest.max() - math.log(ALONE)) if len(rest) and not np.isnan(inside).all() else 0.0
    often = (count + 1) / windows
    followed = int((others[1:] & others[:-1]).sum())
    follows = (followed + FEW_FOLLOW) / (count + 1)
    length = int(beyond[first:last].sum())
    expected = math.log(groups * windows * often) + (length - 1) * math.log(max(follows, often))
    return math.log(CHANCE) - expected


def _carried(ground: Ground, code: int, name: str, stretch: Stretch, width: int) -> bool:
    """Return whether enough samples of a stretch are far out: a few windows are not judged by a single sample."""
    if stretch.last - stretch.first >= LEAST_WINDOWS or name == "p50":
        return True
    windows = np.arange(stretch.first * width, min(stretch.last * width, len(ground.start_ns)))
    counts = ground.counts(np.array([code]), windows)
    limit = math.exp(stretch.typical + stretch.above) / 2
    return int(counts[ground.rows.layout.values >= limit].sum()) >= ALONE_SAMPLES


def _claim(ground: Ground, code: int, name: str, stretch: Stretch, width: int) -> Claim:
    first, last = stretch.first * width, min(stretch.last * width, len(ground.start_ns))
    cells = np.zeros(ground.shape, np.bool_)
    cells[code, first:last] = True
    values = ground.p50_ns if name == "p50" else ground.p99_ns
    typical = math.exp(stretch.typical)
    inside = np.sort(values[code, first:last][~np.isnan(values[code, first:last])])
    reached = float(inside[(len(inside) - 1) // 2])  # that of a window, which the command of the finding shows
    return Claim(
        kind=EPISODE,
        who=ground.groups[code],
        start_ns=int(ground.start_ns[first]),
        end_ns=int(ground.start_ns[last - 1]) + ground.step_ns,
        cells=cells,
        value_ns=reached,
        times=reached / typical if typical else None,
        samples=int(ground.samples[code, first:last].sum()),
        certainty=stretch.certainty,
        latency_ns=(int(typical), math.ceil(float(of_known.most(ground.top_ns[code, first:last]))) + 1),
        details={"typical_ns": typical, "percentile": name, "top_ns": float(of_known.most(ground.top_ns[code, first:last]))},
    )
