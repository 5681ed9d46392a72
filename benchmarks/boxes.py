"""How often a box calls a value over- or under-represented that is not, how often one that is, and how often it cannot tell.

    python benchmarks/boxes.py [--tries 1000] [--seed N]

A run of 200 windows of about 60 samples, of which a value has the share that a stationary series gives (AR(1) on the log-odds, so
neighbours resemble each other); a box of some windows and of 30 % of their samples. Inside, the odds of the value are the same as
outside, or times a factor. The bounds are those of the product (`ingest/query/batch_means.py`), for one value. The figures are in
docs/explanation/boxes.md.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from measure import print_table

from ingest.query.batch_means import LESS, MORE, Side, lifts

WINDOWS, SAMPLES, BANDED, SPREAD = 200, 60, 0.3, 0.4
CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.9)
INSIDE = (6, 12, 30, 60)
FACTORS = (1.0, 2.0, 4.0)


def called(noise: np.random.Generator, correlation: float, inside: int, factor: float) -> str:
    """Return the verdict on a value in a box of so many windows, `none` where there is no bound."""
    level = np.zeros(WINDOWS)
    for at in range(1, WINDOWS):
        level[at] = correlation * level[at - 1] + math.sqrt(1 - correlation**2) * noise.normal()
    every = noise.poisson(SAMPLES, WINDOWS)
    odds = 0.5 * np.exp(SPREAD * level)
    begin = int(noise.integers(0, WINDOWS - inside))
    during = (np.arange(WINDOWS) >= begin) & (np.arange(WINDOWS) < begin + inside)
    banded = np.where(during, noise.binomial(every, BANDED), 0)
    own_in = noise.binomial(banded, factor * odds / (1 + factor * odds))
    own_out = noise.binomial(every - banded, odds / (1 + odds))
    sides = [
        Side(np.stack([own, total - own]).astype(float), total.astype(float))
        for own, total in ((own_in, banded), (own_out, every - banded))
    ]
    lift = lifts(sides[0], sides[1], 1)[0]
    return "none" if math.isnan(lift.low) else lift.verdict


def main() -> None:
    """Print, for each cell, in % more or less / no bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=1000, help="boxes a cell")
    parser.add_argument("--seed", type=int, default=21)
    words = parser.parse_args()
    noise = np.random.default_rng(words.seed)
    rows = []
    for factor in FACTORS:
        for correlation in CORRELATIONS:
            cells = []
            for inside in INSIDE:
                verdicts = [called(noise, correlation, inside, factor) for _ in range(words.tries)]
                share = 100 * sum(verdict in (MORE, LESS) for verdict in verdicts) / words.tries
                silent = 100 * verdicts.count("none") / words.tries
                cells.append(f"{share:.1f} / {silent:.1f}")
            rows.append((f"odds times {factor:g}, AR(1) {correlation:g}", *cells))
    print_table(
        "Values called more or less, and without bounds, in %", ["what", *(f"{inside} windows" for inside in INSIDE)], rows
    )


if __name__ == "__main__":
    main()
