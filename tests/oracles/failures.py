"""What an answer says of operations some of which failed, by the definition alone: loops over single operations.

An operation that failed is slower than any other, whatever it took. So of N operations, the failed among them, the sample of rank
ceil(N * p / 100) in order of latency is a failed one where the rank is above the number of those that did not fail.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from tests.oracles import brute

MS = 1_000_000
INFINITE = "inf"


@dataclass(frozen=True)
class Operation:
    """One operation: where it ran, what it did, when it ended and how long it took, and whether it failed."""

    host: str
    op: str
    end_ns: int
    latency_ns: int
    failed: bool


def write(
    folder: Path, operations: Iterable[Operation], failed: Sequence[str] = ("false",), sound: Sequence[str] = ("true",)
) -> Path:
    """Write a log for each host, in ms and ns, and its description beside the folder; return the description."""
    by_host: dict[str, list[Operation]] = {}
    for one in operations:
        by_host.setdefault(one.host, []).append(one)
    for host, own in by_host.items():
        (folder / host).mkdir(parents=True, exist_ok=True)
        with (folder / host / "requests.csv").open("w", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(("done_ms", "took_ns", "op", "success", "host"))
            for number, one in enumerate(own):
                words = failed if one.failed else sound
                lines.writerow((one.end_ns // MS, one.latency_ns, one.op, words[number % len(words)], host))
    told = folder.parent / f"{folder.name}.yml"
    told.write_text(f"time: done_ms\nlatency: took_ns\nlabels: {{op: op, host: host}}\nfailed: {{success: {list(failed)}}}\n")
    return told


def reported(latency_ns: int) -> int:
    """Return the value of the bin of a latency: the middle of fio's bins without an end."""
    shift = max(latency_ns.bit_length() - 7, 0)
    low = latency_ns >> shift << shift
    return low + (1 << shift) // 2


def percentile(operations: Sequence[Operation], percent: str) -> str:
    """Return a percentile as csv has it: empty where there are too few operations, inf where the rank is that of a failed one."""
    share, count = Fraction(percent) / 100, len(operations)
    if share > Fraction(1, 2) and share < 1 and count * (1 - share) < 1:
        return ""
    timed = sorted(one.latency_ns for one in operations if not one.failed)
    rank = max(math.ceil(count * share), 1)
    if rank > len(timed):
        return INFINITE
    if rank == len(timed) == count and share == 1:
        return str(timed[-1])
    within = timed[0], timed[-1] if len(timed) == count else math.inf
    return str(int(min(max(reported(timed[rank - 1]), within[0]), within[1])))


def row(operations: Sequence[Operation], percents: Sequence[str]) -> dict[str, str]:
    """Return the columns of a row of these operations that failures bear on."""
    timed = [one.latency_ns for one in operations if not one.failed]
    failed = len(operations) - len(timed)
    mean = sum(timed) / len(timed) if timed else None
    return {
        "count": str(len(operations)),
        "failed": str(failed),
        "min": str(min(timed)) if timed else INFINITE,
        "mean": "" if mean is None else str(int(mean)) if mean == int(mean) else f"{mean:.15g}",
        "max": INFINITE if failed else str(max(timed)),
        **{f"p{percent}": percentile(operations, percent) for percent in percents},
    }


def rows(
    operations: Iterable[Operation], percents: Sequence[str], step_ns: int = 0, by: Sequence[str] = ()
) -> dict[tuple[int | str, ...], dict[str, str]]:
    """Return the rows of an answer by start of the window (0: all of it) and labels; `outcome` in `by` tells failed ones apart."""
    groups: dict[tuple[int | str, ...], list[Operation]] = {}
    for one in operations:
        start = brute.window_of(one.end_ns, step_ns) if step_ns else 0
        labels = [("failed" if one.failed else "ok") if name == "outcome" else getattr(one, name) for name in by]
        groups.setdefault((start, *labels), []).append(one)
    apart = "outcome" in by
    plain = {
        key: [Operation(one.host, one.op, one.end_ns, one.latency_ns, failed=False) for one in own] if apart else own
        for key, own in groups.items()
    }
    return {key: row(own, percents) for key, own in plain.items()}
