"""Whether rows count what `fio --client` makes of them, D(n) = d(n) + D(n-2), by the rows alone: for logs without their JSON.

In such rows no bin ever falls against the row before the last. In ordinary rows a bin that holds few samples falls as often as it
rises: of t samples in both rows each lies in the later one with a chance q, which is the share of the later row in all samples
of the two (so that a load which grows is no evidence). The chance that the later row holds at least half of them, bin by bin,
multiplied over bins of up to 60 samples and over rows, is how likely ordinary rows look so. Its logarithm is given in bits.

Measured: 5,621 stretches of 3 to 8 rows of 60 recorded ordinary logs: at most 2.0 bits; 30,000 drawn at random (3 to 12 rows,
29 to 1,856 bins, 3 to 1,000,000 samples a row, steady, growing by a factor, growing evenly, at random, shifting): at most 9.2.
Recorded --client logs: 48 to 2,364 bits; of 8 to 11 rows at coarseness 6: 10 to 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Int

CERTAIN_BITS, DOUBTFUL_BITS = 30, 8
FEWEST_BINS = 5
LEAST_GROWTH, MOST_GROWTH = 0.25, 4
FEW = 60
MOST_ROWS = 100


@dataclass(frozen=True, slots=True)
class Evidence:
    """What rows show: `bits` as above, the bins that rose, how many pairs of rows were compared and how they grow.

    `growth` is what a row adds to the row before the last, against the first two rows: 1 where a steady load is compounded, 0
    where equal rows repeat.
    """

    bits: float = 0.0
    bins: int = 0
    pairs: int = 0
    growth: float = 0.0

    @property
    def possible(self) -> bool:
        """Return whether rows grow as compounded ones do."""
        return LEAST_GROWTH <= self.growth <= MOST_GROWTH

    @property
    def certain(self) -> bool:
        """Return whether no ordinary log looks like this."""
        return self.possible and self.bits >= CERTAIN_BITS and self.bins >= FEWEST_BINS


def evidence(chains: Sequence[Int]) -> Evidence:
    """Return what the rows of a log show, dense and by direction, of which no bin falls."""
    bits, pairs = 0.0, 0
    added: list[int] = []
    first: list[int] = []
    risen: set[int] = set()
    for counts in chains:
        first.extend(counts[:2].sum(axis=1).tolist())
        for earlier, later in zip(counts[: MOST_ROWS - 2], counts[2:MOST_ROWS], strict=False):
            both = earlier + later
            small = np.flatnonzero((both > 0) & (both <= FEW))
            share = round(1000 * int(later.sum()) / max(1, int(both.sum())))
            bits += float(_bits(min(share, 999))[both[small]].sum())
            risen.update(small[later[small] > earlier[small]].tolist())
            added.append(int(later.sum() - earlier.sum()))
            pairs += 1
    growth = float(np.median(added)) / max(1.0, float(np.median(first))) if added else 0.0
    return Evidence(bits, len(risen), pairs, growth)


@cache
def _bits(share: int) -> NDArray[np.float64]:
    """Return, for 0 to 60 samples of two rows, -log2 of the chance that the later row has at least half, at `share` in 1000."""
    q = max(share, 1) / 1000
    samples = np.arange(FEW + 1)[:, None]
    later = np.arange(FEW + 1)[None, :]
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, FEW + 1)))])
    chosen = logs[samples] - logs[later] - logs[np.maximum(samples - later, 0)]
    chance = np.exp(chosen + later * np.log(q) + (samples - later) * np.log(1 - q))
    held = np.where((later <= samples) & (2 * later >= samples), chance, 0.0).sum(axis=1)
    bits: NDArray[np.float64] = -np.log2(np.minimum(held, 1.0))
    return bits
