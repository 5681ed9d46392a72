"""The truth beneath a histogram: fio's log of every single I/O (`write_lat_log`), and fio's own totals in json+."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

from oracles.brute import OPS, index_of

Sample = tuple[int, int]


def text_of(path: Path) -> str:
    """Return the text of a log, plain or .gz."""
    return (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()


def samples(path: Path) -> dict[str, list[Sample]]:
    """Return (completion in ms, latency in ns) of each I/O by direction, in file order.

        0, 12969, 0, 4096, 0          time ms, latency ns, direction, size, priority
    """
    found: dict[str, list[Sample]] = {}
    for line in text_of(path).splitlines():
        stamp, value, direction = (int(cell) for cell in line.split(",")[:3])
        found.setdefault(OPS[direction], []).append((stamp, value))
    return found


def within(all_samples: list[Sample], after_ms: int, until_ms: int) -> list[int]:
    """Return the latencies of the I/Os that completed in (after, until]."""
    return [value for stamp, value in all_samples if after_ms < stamp <= until_ms]


def binned(values: list[int], bins: int, coarseness: int) -> Counter[int]:
    """Return how many values lie in each of fio's ns bins at a coarseness."""
    return Counter(index_of(value, (bins << coarseness) - 1) >> coarseness for value in values)


def nearest_rank(values: list[int], percent: str) -> int:
    """Return the smallest value that at least `percent` of the values do not exceed."""
    share = Fraction(percent)
    return sorted(values)[max(-(-len(values) * share.numerator // (share.denominator * 100)), 1) - 1]


def json_of(path: Path) -> dict:
    """Return fio's JSON document."""
    return json.loads(path.read_text())


def zero_ms(document: dict, job: int = 0) -> int:
    """Return the epoch ms at which a job began: the end of the run less the longest runtime of its group."""
    group = document["jobs"][job]["groupid"]
    runtimes = [entry[op]["runtime"] for entry in document["jobs"] if entry["groupid"] == group for op in OPS]
    return document["timestamp_ms"] - max(runtimes)


def json_bins(direction: dict, bins: int, coarseness: int, kind: str = "clat_ns") -> Counter[int]:
    """Return fio's own total histogram of a job and direction, folded to a coarseness."""
    found: Counter[int] = Counter()
    for midpoint, count in direction[kind].get("bins", {}).items():
        found[index_of(int(midpoint), (bins << coarseness) - 1) >> coarseness] += count
    return found
