"""False changes and steps found of `trend` beside Apache Otava: 200 series of 30 nights of eight kinds, the same for both.

    make bench-trend, or: python benchmarks/verdicts_trend.py [--series 200] [--seed 5] [--otava PYTHON]

The noise was chosen before the method: between nights 3 to 5 %, steps of 15 to 30 %. Seeds 1 to 3 were for making the method;
docs/explanation/verdicts.md has the figures of seed 5. A last table says how often `--fail-above 1.2` fails without a change.
Otava pins old libraries, so it has an environment of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from ingest.query.table import Table
from ingest.query.trend import Judgement, Reference, judged, levels

HOME = Path(__file__).parent.parent
NIGHTS, NEAR = 30, 2
NOISE, STEP, OUTLIER = (0.03, 0.05), (0.15, 0.30), (1.5, 3.0)
WEEK = 7
LIMIT, LENGTHS = 1.2, (3, 5, 8, 12, 20, 30)
KINDS = ("independent", "AR .5", "AR .8", "one outlier", "step", "drift", "slow week", "last night only")
AUTOREGRESSIVE = {"AR .5": 0.5, "AR .8": 0.8}
OTAVA = """
import json, sys
from otava.analysis import compute_change_points
found = []
for values in json.load(sys.stdin):
    points = compute_change_points(values, window_len=50, max_pvalue=0.001, min_magnitude=float(sys.argv[1]))
    found.append([int(point.index) for point in (points[0] if isinstance(points, tuple) else points)])
json.dump(found, sys.stdout)
"""
SETTINGS = {"any change counts": 0.0, "changes of 10 % and more": 0.1}

Nights = tuple[list[float], list[int]]
Finds = Callable[[list[list[float]], float], list[list[int]]]


def wandering(noise: np.random.Generator, count: int, phi: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return deviations of 1 of which each keeps a share of the one before it."""
    drawn = noise.normal(0, 1, count)
    for night in range(1, count):
        drawn[night] = phi * drawn[night - 1] + math.sqrt(1 - phi * phi) * drawn[night]
    return drawn


def series(kind: str, noise: np.random.Generator) -> Nights:
    """Return the values of a series, and the nights at which its level changes."""
    spread, step = noise.uniform(*NOISE), math.log(1 + noise.uniform(*STEP))
    logs = spread * wandering(noise, NIGHTS, AUTOREGRESSIVE.get(kind, 0.0))
    places: list[int] = []
    if kind == "one outlier":
        logs[noise.integers(3, NIGHTS - 3)] += math.log(noise.uniform(*OUTLIER))
    elif kind == "step":
        places = [int(noise.integers(5, NIGHTS - 2))]
        logs[places[0] :] += step
    elif kind == "drift":
        logs += np.linspace(0, step, NIGHTS)
    elif kind == "slow week":
        first = int(noise.integers(5, NIGHTS - 5 - WEEK + 1))
        places = [first, first + WEEK]
        logs[first : first + WEEK] += step
    elif kind == "last night only":
        places = [NIGHTS - 1]
        logs[-1] += step
    return (400_000 * np.exp(logs)).tolist(), places


def verdict(values: list[float], least: float) -> tuple[list[int], Judgement]:
    """Return the change points of a series, and the verdict on its newest night."""
    nights = np.array(values)
    level, change = levels(nights, 1 + least)
    names = np.array([str(night) for night in range(len(nights))], object)
    columns = {"run": names, "value": nights, "lo": nights, "hi": nights, "level": level, "change": change}
    columns |= {"count": np.full(len(nights), 10**6), "measure": np.full(len(nights), "p99", object)}
    (judgement,) = judged(Table(columns, ("run",)), Reference(names.tolist(), least_change=1 + least))
    return np.flatnonzero(~np.isnan(change)).tolist(), judgement


def ours(several: list[list[float]], least: float) -> list[list[int]]:
    """Return the change points of each series, and its newest night where that is certain to be above the level before."""
    found = []
    for places, judgement in (verdict(values, least) for values in several):
        alone = judgement.since is None and judgement.least > 1 and judgement.ratio > 1 + least
        found.append([*places, NIGHTS - 1] if alone else places)
    return found


def of_otava(python: str) -> Finds:
    """Return what finds change points by Otava; its significance of 0.001 and window of 50 are its own."""

    def find(several: list[list[float]], least: float) -> list[list[int]]:
        done = subprocess.run(
            [python, "-W", "ignore", "-c", OTAVA, str(least)],
            input=json.dumps(several),
            capture_output=True,
            text=True,
            check=True,
        )
        found: list[list[int]] = json.loads(done.stdout)
        return found

    return find


def scores(kind: str, made: list[Nights], found: list[list[int]]) -> tuple[float, float]:
    """Return the percentage of series with a false change, and of changes found within NEAR nights (NaN: there are none)."""
    if kind == "drift":
        return math.nan, 100 * sum(map(bool, found)) / len(made)
    pairs = [(places, mine) for (_, places), mine in zip(made, found, strict=True)]
    false = sum(any(all(abs(place - true) > NEAR for true in places) for place in mine) for places, mine in pairs)
    true = [any(abs(place - real) <= NEAR for place in mine) for places, mine in pairs for real in places]
    return 100 * false / len(made), 100 * sum(true) / len(true) if true else math.nan


def tables(count: int, seed: int, tools: dict[str, Finds]) -> Iterator[str]:
    """Yield the lines of a table for each setting."""
    made = {
        kind: [series(kind, np.random.default_rng([seed, row, one])) for one in range(count)] for row, kind in enumerate(KINDS)
    }
    for setting, least in SETTINGS.items():
        yield f"\n{setting} (% of {count} series, seed {seed})\n"
        yield "| nights | " + " | ".join(f"false, {tool} | found, {tool}" for tool in tools) + " |"
        yield "|---|" + "---|" * (2 * len(tools))
        for kind in KINDS:
            cells: list[float] = []
            for find in tools.values():
                cells += scores(kind, made[kind], find([values for values, _ in made[kind]], least))
            yield f"| {kind} | " + " | ".join("" if math.isnan(cell) else f"{cell:.1f}" for cell in cells) + " |"


def failures(count: int, seed: int) -> Iterator[str]:
    """Yield the lines of a table of how often series without a change fail."""
    yield f"\n--fail-above {LIMIT} without a change (% of {count} series, seed {seed})\n"
    yield "| between nights | " + " | ".join(f"{nights} nights" for nights in LENGTHS) + " |"
    yield "|---|" + "---|" * len(LENGTHS)
    for spread in (0.05, 0.1, 0.2):
        for phi in (0.0, 0.5, 0.8):
            cells = []
            for nights in LENGTHS:
                noise = np.random.default_rng([seed, nights])
                several = [np.exp(spread * wandering(noise, nights, phi)) * 400_000 for _ in range(count)]
                failed = sum(verdict(values.tolist(), 0.1)[1].certain() > LIMIT for values in several)
                cells.append(f"{100 * failed / count:.1f}")
            yield f"| {100 * spread:.0f} %, AR {phi:g} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=200, help="series of each kind")
    parser.add_argument("--seed", type=int, default=5)
    default = os.environ.get("TAILBOARD_OTAVA", str(HOME / ".venv-otava" / "bin" / "python"))
    parser.add_argument("--otava", default=default, help="the Python of an environment with apache-otava [default: %(default)s]")
    words = parser.parse_args()
    if not Path(words.otava).exists():
        sys.exit(f"{words.otava} is not there: make .venv-otava/.ready, or name a Python that has apache-otava with --otava")
    tools = {"tailboard": ours, "Otava": of_otava(words.otava)}
    for line in chain(tables(words.series, words.seed, tools), failures(2 * words.series, words.seed)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
