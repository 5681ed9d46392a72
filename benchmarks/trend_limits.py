"""The limits of ingest/query/change_points.py: what 1 % of series without a step exceed, by runs and phi. Takes minutes.

python benchmarks/trend_limits.py
"""

from __future__ import annotations

import math

import numpy as np

from ingest.query.change_points import LIMIT_PHIS, LIMIT_RUNS, fits

SPREAD = 0.04
SHARE = 0.01
CELLS = 3_000_000
MOST, FEWEST = 20_000, 1_000


def gains(count: int, phi: float, series: int, seed: int) -> dict[int, np.ndarray]:
    """Return the gains of so many series without a step, by the number of changes."""
    noise = np.random.default_rng([seed, count, round(phi * 100)])
    found: dict[int, list[np.ndarray]] = {1: [], 2: []}
    left = series
    while left:
        rows = min(left, 200)
        drawn = noise.normal(0, 1, (rows, count))
        for run in range(1, count):
            drawn[:, run] = phi * drawn[:, run - 1] + math.sqrt(1 - phi * phi) * drawn[:, run]
        level, changed = fits(drawn * SPREAD)
        for changes, fit in changed.items():
            if fit.size:
                found[changes].append(level.min(axis=1) - fit.min(axis=(1, 2)))
        left -= rows
    return {changes: np.concatenate(parts) for changes, parts in found.items()}


def main() -> None:
    """Print LIMITS."""
    limits: dict[int, list[list[float]]] = {1: [], 2: []}
    for count in LIMIT_RUNS:
        for rows in limits.values():
            rows.append([])
        for phi in LIMIT_PHIS:
            series = max(FEWEST, min(MOST, CELLS // count**2 * 10))
            for changes, reached in gains(count, phi, series, 1).items():
                limits[changes][-1].append(round(float(np.quantile(reached, 1 - SHARE)), 1))
        print(count, limits[1][-1], limits[2][-1], flush=True)


if __name__ == "__main__":
    main()
