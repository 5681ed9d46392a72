"""How sure the share of samples above a threshold is, from the variation between whole windows: samples are not independent.

    windows   x_w samples above of n_w; share p = sum x / sum n; what a window has too many: r_w = x_w - p n_w
    batches   of b windows, b = LENGTHS times the integrated autocorrelation time of r, at least so long that there are
              about MOST_BATCHES; the sums of r over batches are as good as independent
    effect    variance of the sum of r by batches / the variance that independent samples would have (at least 1)

The share is then as sure as that of sum n / effect independent samples, of which sum x / effect are above: a beta distribution
(Jeffreys' prior), mixed over the effect, which is known with `freedom` degrees: batches - 1, but no more than CLUSTERS of
the independent samples on the rarer side. A share that rests on a few bursts has a variance that rests on these, too.

Sources: batch means and their t distribution: Alexopoulos and Seila, Output data analysis (Handbook of Simulation, 1998);
the window of the autocorrelation sum: Sokal, Monte Carlo methods in statistical mechanics (1997), section 3. CLUSTERS was
chosen by measured coverage on M/M/1 queues at loads of 0.3 to 0.92 (docs/explanation/verdicts.md).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ingest.core.dataclass import dataclass

Float = NDArray[np.float64]

LENGTHS, CUTOFF = 3.0, 4.0
MOST_BATCHES, LEAST_BATCHES = 30, 4
CLUSTERS = 0.6
LEAST_SHARE = 1e-12


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many samples lie above a threshold, and how much the windows that they come from vary.

    `effect` is NaN where no sample is above, or all are: then nothing varies. `batches` 0 says that there are too few windows.
    """

    above: float
    samples: float
    effect: float
    batches: int
    windows: int

    @property
    def value(self) -> float:
        """Return the share above."""
        return self.above / self.samples if self.samples else math.nan

    def draws(self, count: int, noise: np.random.Generator, effect: float = 1.0, most: float = math.inf) -> Float:
        """Return `count` shares as likely as the windows leave them.

        `effect` is taken where these do not give one; none that is drawn is above `most`, unless the measured one is.
        """
        known = not math.isnan(self.effect)
        mean = self.effect if known else effect
        rarer = min(self.above, self.samples - self.above) / mean
        freedom = max(1.0, min(self.batches - 1, CLUSTERS * rarer))
        drawn = mean * freedom / noise.chisquare(freedom, count) if known else np.full(count, mean)
        effects = np.clip(drawn, 1.0, max(most, mean))
        shares = noise.beta(self.above / effects + 0.5, (self.samples - self.above) / effects + 0.5)
        return np.clip(shares, LEAST_SHARE, 1 - LEAST_SHARE)


def share_of(above: Float, samples: Float) -> Share:
    """Return the share above a threshold of windows in the order of time, those of one run; equal lengths, counts."""
    windows, total, over = len(samples), float(samples.sum()), float(above.sum())
    batches = batches_of(above - over / total * samples) if total and windows >= LEAST_BATCHES else 0
    naive = over * (1 - over / total) if total else 0.0
    if batches < LEAST_BATCHES or naive <= 0:
        return Share(over, total, math.nan, batches, windows)
    starts = np.linspace(0, windows, batches + 1).astype(np.int64)[:-1]
    sums = np.add.reduceat(above, starts) - over / total * np.add.reduceat(samples, starts)
    variance = float(sums @ sums) * batches / (batches - 1)
    return Share(over, total, max(variance / naive, 1.0), batches, windows)


def of_runs(shares: list[Share]) -> Share:
    """Return the share of several runs of the same thing: from three on, how much it varies is that between the runs."""
    above, total = sum(share.above for share in shares), sum(share.samples for share in shares)
    windows = sum(share.windows for share in shares)
    naive = above * (1 - above / total) if total else 0.0
    known = [share for share in shares if not math.isnan(share.effect)]
    within = sum(share.effect * share.samples for share in known) / sum(share.samples for share in known) if known else math.nan
    batches = min(share.batches for share in shares)
    if len(shares) < 3 or naive <= 0:  # of two runs the spread is hardly known
        return Share(above, total, within, batches, windows)
    left = np.array([share.above - above / total * share.samples for share in shares])
    between = float(left @ left) * len(shares) / (len(shares) - 1) / naive
    return Share(above, total, max(between, 1.0), len(shares), windows)


def batches_of(values: Float) -> int:
    """Return into how many batches a series is cut so that their sums are as good as independent."""
    length = LENGTHS * autocorrelation_time(values)
    return max(LEAST_BATCHES, min(MOST_BATCHES, int(len(values) / length)))


def autocorrelation_time(values: Float) -> float:
    """Return 1 + 2 sum of the autocorrelations, summed up to CUTOFF times itself: at least 1, in places of the series."""
    centred = values - values.mean()
    power = np.abs(np.fft.rfft(centred, 2 * len(values))) ** 2
    covariance = np.fft.irfft(power)[: len(values)]
    if covariance[0] <= 0:
        return 1.0
    sums = 1 + 2 * np.cumsum(covariance[1 : max(2, len(values) // 3)]) / covariance[0]
    enough = np.flatnonzero(np.arange(1, len(sums) + 1) >= CUTOFF * np.maximum(sums, 1.0))
    return max(1.0, float(sums[enough[0] if len(enough) else -1]))
