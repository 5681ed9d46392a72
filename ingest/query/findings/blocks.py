"""Windows of a ground taken together: where so few samples lie in each that chance would speak, and where a level lasts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ingest.core.intervals import Bool, Int, Intervals, merged
from ingest.core.ranks import Ranked
from ingest.core.series import Group
from ingest.query.findings import of_known
from ingest.query.findings.ground import P50, P99, peers_of
from ingest.query.findings.model import Float, Ground

THIN = 20  # samples: windows of fewer are judged together with their neighbours
TOGETHER = 20  # blocks that a run is cut into where something must hold throughout
THROUGHOUT = 0.8


@dataclass(frozen=True, slots=True)
class Blocks:
    """The groups (rows) in blocks of `width` neighbouring windows: samples, p50 and p99 in ns, NaN where nothing completed."""

    width: int
    samples: Float
    p50_ns: Float
    p99_ns: Float


def in_blocks(ground: Ground, width: int) -> Blocks:
    """Return the groups in blocks of so many windows; the last one holds what is left. Exact for the bins."""
    if width == 1:
        return Blocks(1, ground.samples.astype(np.float64), ground.p50_ns, ground.p99_ns)
    groups, windows = ground.shape
    shape = groups, -(-windows // width)
    block = ground.window_of // width
    keyed: Intervals[Group] = ground.rows.keyed(tuple((f"{code:09}",) for code in range(groups)), ground.group_of)
    rows = merged([keyed.at(block, block + 1)])
    ranked, every = Ranked(rows), np.arange(len(rows))
    group = np.array([int(key[0]) for key in rows.table], np.int64)[rows.series]
    columns = [rows.samples.astype(np.float64)]
    columns += [ranked.values(every, percentile.ranks(ranked.samples)).astype(np.float64) for percentile in (P50, P99)]
    out = [np.zeros(shape), np.full(shape, np.nan), np.full(shape, np.nan)]
    for target, column in zip(out, columns, strict=True):
        target[group, rows.start_ns] = column
    return Blocks(width, *out)


def carrying(ground: Ground, group: int) -> int:
    """Return how many windows must be taken together so that a median one of a group has THIN samples."""
    filled = ground.samples[group][ground.samples[group] > 0]
    middle = float(np.median(filled)) if len(filled) else 0.0
    return max(1, int(np.ceil(THIN / middle))) if middle else len(ground.start_ns)


@dataclass(frozen=True, slots=True)
class Stretches:
    """The groups in stretches of a run: counts by used bin, (G, stretches, bins); `stretch` is the one of each window."""

    stretch: Int
    values_ns: Int
    middles_ns: Int
    below: Int  # counts added up from the lowest bin on

    @property
    def samples(self) -> Float:
        """Return how many samples each group has in each stretch."""
        count: Float = self.below[..., -1].astype(np.float64)
        return count

    def quantile(self, share: float, above_ns: float = 0.0, upto_ns: float = math.inf) -> Float:
        """Return a quantile in ns of the samples within bounds (by the middles of their bins), NaN where there are none."""
        first, last = np.searchsorted(self.middles_ns, [above_ns, upto_ns], side="right")
        before = self.below[..., first - 1] if first else np.zeros(self.below.shape[:2], np.int64)
        held = (self.below[..., last - 1] if last else before) - before
        rank = before + np.maximum(np.ceil(share * held), 1).astype(np.int64)
        place = np.minimum((self.below < rank[..., None]).sum(axis=2), len(self.values_ns) - 1)
        return np.where(held > 0, self.values_ns[place].astype(np.float64), np.nan)

    def together(self) -> Stretches:
        """Return the whole run as one stretch."""
        return replace(self, below=self.below.sum(axis=1, keepdims=True))

    def mostly(self, cells: Bool) -> Bool:
        """Return which stretches of groups lie for the most part within windows (G, T)."""
        starts = np.flatnonzero(np.diff(self.stretch, prepend=-1))
        inside = np.add.reduceat(cells.astype(np.int64), starts, axis=1)
        return inside > np.diff(np.append(starts, cells.shape[1])) / 2


def stretches_of(ground: Ground) -> Stretches:
    """Return the groups in TOGETHER stretches (one more where windows are left over)."""
    windows = np.arange(ground.shape[1])
    return added_up(ground, windows // max(1, len(windows) // TOGETHER))


def added_up(ground: Ground, stretch: Int, aside: Bool | None = None) -> Stretches:
    """Return the groups in stretches: `stretch` has that of each window, -1 for none; windows `aside` (G, T) are left out."""
    layout, used = ground.rows.layout, ground.occupied
    shape = ground.shape[0], int(stretch.max()) + 1, len(used)
    of_window = np.broadcast_to(stretch, ground.shape)
    if aside is not None:
        of_window = np.where(aside, -1, of_window)
    of_row = of_window[ground.group_of, ground.window_of]
    of_row = np.where(of_row < 0, -1, ground.group_of * shape[1] + of_row)
    total = ground.by_bin(of_row, shape[0] * shape[1]).reshape(shape)
    return Stretches(stretch, layout.values[used], layout.middles_of(used), total.cumsum(axis=2))


def beyond_peers(values: Float, peers: Sequence[int], group: int, times: float) -> float:
    """Return the share of blocks in which a value of a group is at least `times` as high as that of each of its peers.

    Of the blocks in which the group and a peer have values; 0 without peers.
    """
    if not peers:
        return 0.0
    mine, theirs = values[group], values[list(peers)]
    known: Bool = ~np.isnan(mine) & ~np.isnan(theirs).all(axis=0)
    if not known.any():
        return 0.0
    highest = of_known.most(theirs[:, known], axis=0)
    return float(np.mean(mine[known] >= times * highest))


def usual_peers(levels: Float, ground: Ground, group: int, times: float) -> list[int]:
    """Return the peers of a group that are not beyond the others themselves: `levels` has one number a group.

    Sorted by level, the first gap of at least `times` above half of the members parts them; without one all are usual.
    None where those that are left do not agree with each other better than with the group.
    """
    alike = [code for code in (group, *peers_of(ground, group)) if levels[code] > 0]
    if group not in alike:
        return []
    order = sorted(alike, key=lambda code: float(levels[code]))
    half = -(-len(order) // 2)
    cut = next((at for at in range(half, len(order)) if levels[order[at]] >= times * levels[order[at - 1]]), len(order))
    usual = [code for code in order[:cut] if code != group]
    if not usual:
        return []
    theirs = levels[usual]
    nearest = float(np.exp(np.abs(np.log(theirs / levels[group])).min()))
    return usual if float(theirs.max() / theirs.min()) < nearest else []
