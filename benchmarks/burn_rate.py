"""Do burn-rate alerts come before the budget is gone, and do quiet hours have none: simulated runs.

    python benchmarks/burn_rate.py --seed 1 --incidents 200 --hours 1000

For budgets of windows and of requests, of periods from an hour to a week. A quiet run uses at most half of its budget: bad
windows come alone or two together on average, bad requests at a rate that wanders by half of itself. An incident begins at a
random time and burns from just fast enough to end the budget within the period up to everything being bad (log-uniform). A budget
smaller than LEAST_BUDGET windows cannot warn: it is left out of the incidents, and quiet runs of it are counted.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ingest.query.burn_rate import burning

SECOND = 1_000_000_000
LEAST_BUDGET = 8


class Run(NamedTuple):
    """A budget: hours of its period, seconds of a window, the share that may be bad, requests a window (0: windows count)."""

    hours: int
    window: int
    share: float
    requests: int

    @property
    def windows(self) -> int:
        """Return how many windows the period has."""
        return self.hours * 3600 // self.window


RUNS = [
    Run(hours, window, share, requests)
    for hours in (1, 4, 24, 168)
    for window in (1, 10, 60)
    for share in (0.001, 0.01, 0.05)
    for requests in (0, 1000)
    if 120 <= hours * 3600 // window <= 100_000
]


def quiet(run: Run, noise: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the bad and all windows, or requests, of a run that uses at most half of its budget."""
    while True:
        bad, every = _wandering(run, noise)
        if bad.sum() <= 0.5 * run.share * every.sum():
            return bad, every


def _wandering(run: Run, noise: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    level = noise.uniform(0, 0.5) * run.share
    if not run.requests:
        together = int(noise.integers(1, 3))
        bad = np.zeros(run.windows, np.int64)
        for at in np.flatnonzero(noise.random(run.windows) < level / together):
            bad[at : at + noise.geometric(1 / together)] = 1
        return bad, np.ones(run.windows, np.int64)
    every = noise.poisson(run.requests, run.windows)
    wanders = np.exp(np.convolve(noise.normal(0, 1, run.windows + 9), np.full(10, 0.16), "valid"))
    return noise.binomial(every, np.minimum(level * wanders / wanders.mean(), 1)), every


def incident(run: Run, noise: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a quiet run in which an incident begins that ends the budget within the period."""
    bad, every = quiet(run, noise)
    at = int(run.windows * noise.uniform(0, 0.8))
    slowest = 1.2 * run.windows / (run.windows - at)
    burn = np.exp(noise.uniform(np.log(slowest), np.log(max(1 / run.share, slowest))))
    bad[at:] = np.maximum(bad[at:], noise.binomial(every[at:], min(burn * run.share, 1.0)))
    return bad, every


def told(run: Run, bad: np.ndarray, every: np.ndarray) -> tuple[list[Any], int | None]:
    """Return the alerts of a run, and when its budget was gone."""
    ends = (np.arange(run.windows) + 1) * run.window * SECOND
    return burning(ends, bad, every, Fraction(str(run.share)), run.window * SECOND, run.hours * 3600 * SECOND)


class Result(NamedTuple):
    """What came of the runs of one kind."""

    run: Run
    false: int
    hours: int
    incidents: int
    before: int
    used: float


def results(seed: int, incidents: int, hours: int, runs: list[Run] = RUNS) -> Iterator[Result]:
    """Yield the result of each kind of run."""
    for number, run in enumerate(runs):
        noise = np.random.default_rng([seed, number])
        times = max(1, hours // run.hours)
        false = sum(len(told(run, *quiet(run, noise))[0]) for _ in range(times))
        used, gone = [], 0
        for _ in range(incidents if run.windows * run.share >= LEAST_BUDGET else 0):
            alerts, end = told(run, *incident(run, noise))
            if end is not None:
                gone += 1
                used += [alerts[0].used] if alerts and alerts[0].start_ns < end else []
        yield Result(run, false, times * run.hours, gone, len(used), float(np.median(used)) if used else float("nan"))


def main() -> None:
    """Print a line for each kind of run, and all together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("seed", 1), ("incidents", 200), ("hours", 1000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    found = []
    print("period window share  of        budget  false/100 h  incidents  before  used then")
    for one in results(**vars(parser.parse_args())):
        found.append(one)
        run, what = one.run, "requests" if one.run.requests else "windows"
        share = one.before / one.incidents if one.incidents else float("nan")
        print(
            f"{run.hours:4} h {run.window:4} s {100 * run.share:4g}% {what:8} {run.windows * run.share:7.1f} "
            f"{100 * one.false / one.hours:12.2f} {one.incidents:10} {100 * share:6.1f}% {100 * one.used:9.0f}%",
            flush=True,
        )
    hours, false = sum(one.hours for one in found), sum(one.false for one in found)
    gone, before = sum(one.incidents for one in found), sum(one.before for one in found)
    print(
        f"all: {false} false in {hours} quiet hours; {before} of {gone} before the budget was gone ({100 * before / gone:.1f} %)"
    )


if __name__ == "__main__":
    main()
