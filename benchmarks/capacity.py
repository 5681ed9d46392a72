"""How often the interval of `tailboard check --capacity` holds the truth: simulated queues whose capacity is known otherwise.

    python benchmarks/capacity.py [--cases 1000] [--seed 1]

Prints, for M/M/1, M/D/1 and closed loops of clients, how many cases were bracketed, how often the interval held the true
capacity, and its median width against the gap between the loads that were tested on either side of the truth.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]
from tests.query import queues  # noqa: E402  # found by the line above

if TYPE_CHECKING:
    from ingest.query.capacity import Capacity

AT_ONCE = 50  # closed loops are simulated side by side


def main() -> None:
    """Simulate, and print a row for each kind of queue and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    third = options.cases // 3
    kinds = {
        "M/M/1": open_cases(options.cases - 2 * third, options.seed, constant=False),
        "M/D/1": open_cases(third, options.seed, constant=True),
        "closed loop": loops(third, options.seed),
    }
    print("queue,cases,bracketed,covered,median width / gap")
    for name, cases in (*kinds.items(), ("all", [case for some in kinds.values() for case in some])):
        print(row(name, cases), flush=True)


def open_cases(count: int, seed: int, *, constant: bool) -> list[tuple[float, float, Capacity]]:
    """Return random cases of an open queue: truth, gap, what the product says."""
    return [queues.open_case(np.random.default_rng([seed, case]), constant=constant) for case in range(count)]


def loops(count: int, seed: int) -> list[tuple[float, float, Capacity]]:
    """Return random cases of closed loops, half of them with depths that double."""
    cases: list[tuple[float, float, Capacity]] = []
    sweeps = ((2.0, (1, 2, 4, 8, 16, 32)), (6.0, (1, 2, 4, 6, 8, 12, 16, 24, 32)))
    for turn in range(0, count, AT_ONCE):
        noise = np.random.default_rng([seed, turn])
        delay, depths = sweeps[turn // AT_ONCE % 2]
        cases += queues.closed_cases(noise, min(AT_ONCE, count - turn), delay, depths)
    return cases


def row(name: str, cases: list[tuple[float, float, Capacity]]) -> str:
    """Return a line of the table."""
    told = [case for case in cases if case[2].verdict == "bracketed"]
    covered = sum(capacity.low <= truth <= capacity.high for truth, _, capacity in told) / len(told)
    width = float(np.median([(capacity.high - capacity.low) / gap for _, gap, capacity in told]))
    return f"{name},{len(cases)},{len(told)},{100 * covered:.1f} %,{width:.2f}"


if __name__ == "__main__":
    main()
