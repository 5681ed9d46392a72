"""How often `compare` calls equal executions different, how often it finds a true shift, and how often it cannot tell.

    python benchmarks/verdicts.py [--splits 1000] [--log PATH ...] [--seed N]

What is compared does not differ: the windows of one log at random in two halves, the two halves in time of a series that is
stationary by construction (AR(1): the log of each window's level depends on that of the window before), or, for the power, one of
the halves times a shift. The bounds are those of the product (`ratio_between`), for one row. For each cell: share of splits that
are called slower or faster, that `--fail-above 1.2` fails, that have no bounds (too few batches), and that are neither different
nor the same. Figures and what follows from them are in docs/explanation/verdicts.md.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
from measure import print_table

from ingest.core.grid import SECOND
from ingest.core.quantiles import parse_percentiles
from ingest.query.batch_means import Windows, ratio_between, sides_of
from ingest.query.compare import UNKNOWN, verdict
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "data" / "verdicts"
PERCENTILES = parse_percentiles("50,90,99,99.9")
LIMIT = 1.2
WINDOWS, SAMPLES, LEVEL, SPREAD = 100, 1000, 0.1, 0.5
AN_OCTAVE = 128
LEAST_NS, OCTAVES = 1000.0, 20
Pair = tuple[Windows, Windows]
Make = Callable[[np.random.Generator], Pair]


@dataclass
class Cell:
    """What was said of the splits of a cell at one percentile."""

    splits: int = 0
    certain: int = 0
    failed: int = 0
    silent: int = 0
    undecided: int = 0

    def add(self, low: float, high: float) -> None:
        """Count one more split with these bounds."""
        self.splits += 1
        self.certain += low > 1 or high < 1
        self.failed += low > LIMIT
        self.silent += math.isnan(low) and math.isnan(high)
        self.undecided += verdict(low, high) == UNKNOWN and not (math.isnan(low) and math.isnan(high))

    def text(self) -> str:
        """Return certain / failed / no bounds / undecided in percent."""
        counts = (self.certain, self.failed, self.silent, self.undecided)
        return " / ".join(f"{100 * count / self.splits:.1f}" for count in counts)


def windows_of(levels: NDArray[np.float64], random: np.random.Generator, shift: float = 1.0, runs: int = 1) -> Windows:
    """Return windows of lognormal latencies around levels (log), in bins of 0.5 %; an equal share of them is of each run."""
    logs = math.log(1e6 * shift / LEAST_NS) + levels[:, None] + SPREAD * random.normal(size=(len(levels), SAMPLES))
    bins = np.clip(logs / math.log(2) * AN_OCTAVE, 0, AN_OCTAVE * OCTAVES - 1).astype(np.int64)
    width = AN_OCTAVE * OCTAVES + 1
    counts = np.bincount((bins + width * np.arange(len(levels))[:, None]).ravel(), minlength=width * len(levels))
    counts = counts.reshape(-1, width).astype(np.float64)
    used = np.flatnonzero(counts.sum(axis=0))
    edges = LEAST_NS * 2 ** (np.arange(width) / AN_OCTAVE)
    above = np.concatenate([counts[:, used], np.zeros((len(levels), 1))], axis=1)[:, ::-1].cumsum(axis=1)[:, ::-1]
    return Windows(tuple(np.split(above, runs)), edges[used], edges[used + 1], is_open=False, step_ns=SECOND)


def halves(correlation: float, shift: float = 1.0, windows: int = WINDOWS) -> Make:
    """Return what makes both halves in time of a series, the second one times a shift."""

    def make(random: np.random.Generator) -> Pair:
        levels = np.empty(2 * windows)
        levels[0] = random.normal()
        for at in range(1, len(levels)):
            levels[at] = correlation * levels[at - 1] + math.sqrt(1 - correlation**2) * random.normal()
        levels *= LEVEL
        return windows_of(levels[:windows], random), windows_of(levels[windows:], random, shift)

    return make


def several(baseline: int, run: int, deviation: float, shift: float = 1.0, windows: int = 50) -> Make:
    """Return what makes runs that differ by a standard deviation (log), `baseline` and `run` of them on a side."""

    def side(random: np.random.Generator, runs: int, by: float) -> Windows:
        levels = np.repeat(deviation * random.normal(size=runs), windows) + LEVEL / 4 * random.normal(size=runs * windows)
        return windows_of(levels, random, by, runs)

    return lambda random: (side(random, baseline, 1.0), side(random, run, shift))


def at_random(windows: Windows) -> Make:
    """Return what puts the windows of a log at random in two halves, each in the order of time."""

    def make(random: np.random.Generator) -> Pair:
        (above,) = windows.above
        first = np.sort(random.permutation(len(above))[: len(above) // 2])
        second = np.setdiff1d(np.arange(len(above)), first)
        return part(windows, first), part(windows, second)

    return make


def part(windows: Windows, rows: NDArray[np.int64]) -> Windows:
    """Return some windows."""
    return Windows((windows.above[0][rows],), windows.lowest, windows.edges, windows.is_open, windows.step_ns)


def logs(paths: Sequence[Path]) -> Iterator[tuple[str, Make]]:
    """Yield the name of each op of each log, and what splits its windows of a second."""
    for path in paths:
        answer = Files([path], ReadOptions(recorded_unit_ns=1)).answer(Question(step=SECOND, by=("op",)))
        for group, windows in sides_of([answer]):
            yield f"{path.name} {' '.join(group)}".strip() + f" ({len(windows.above[0])} windows)", at_random(windows)


def measured(make: Make, splits: int, seed: int) -> list[Cell]:
    """Return what is said of `splits` pairs at each percentile."""
    random = np.random.default_rng(seed)
    cells = [Cell() for _ in PERCENTILES]
    for _ in range(splits):
        baseline, run = make(random)
        for cell, percentile in zip(cells, PERCENTILES, strict=True):
            share = 1 - percentile.top / (100 * percentile.bottom)
            below, ratio = baseline.value_above(share), run.value_above(share)
            cell.add(*ratio_between(baseline, run, percentile, ratio / below if below else math.nan))
    return cells


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=1000)
    parser.add_argument("--only", default="", help="only cells whose name has this in it")
    parser.add_argument("--seed", type=int, default=20_261_122)
    parser.add_argument("--log", type=Path, action="append", default=[], help="a further log or archive of at least 60 windows")
    wanted = parser.parse_args()
    recorded = [ROOT / "examples" / "cbt-archive", *sorted(RECORDED.glob("*.*log*")), *wanted.log]
    cells = {
        **dict(logs(recorded)),
        **{f"AR(1) {phi:g}, halves of {WINDOWS} windows": halves(phi) for phi in (0, 0.3, 0.5, 0.7, 0.9, 0.99)},
        "AR(1) 0.5, 240 windows": halves(0.5, windows=240),
        "AR(1) 0.9, 240 windows": halves(0.9, windows=240),
        "AR(1) 0.5, shift 20 %": halves(0.5, 1.2),
        "AR(1) 0.5, shift 50 %": halves(0.5, 1.5),
        **{
            f"{baseline} against {run} runs, sd between runs 3 %": several(baseline, run, 0.03)
            for baseline, run in ((1, 1), (3, 1), (5, 1), (3, 3), (5, 5))
        },
        "5 against 5 runs, sd 3 %, shift 10 %": several(5, 5, 0.03, 1.1),
        "5 against 1 runs, sd 3 %, shift 20 %": several(5, 1, 0.03, 1.2),
    }
    rows = []
    for name, make in cells.items():
        if wanted.only not in name:
            continue
        rows.append([name, *(cell.text() for cell in measured(make, wanted.splits, wanted.seed))])
        print(*rows[-1], sep=" | ", flush=True)
    said = f"% certain / failed by --fail-above {LIMIT:g} / no bounds / neither different nor the same"
    headings = ["what is compared", *(percentile.name for percentile in PERCENTILES)]
    print_table(f"{wanted.splits} splits a cell: {said}", headings, rows)


if __name__ == "__main__":
    main()
