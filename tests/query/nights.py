"""Nights of a benchmark for tests: fio histogram logs of three hosts and two ops, with the plain samples that they were made of."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from oracles.brute import index_of
from oracles.logs import text

BINS = 1856
HOSTS = ("h1", "h2", "h3")
OPS = ("read", "write")
ZERO_MS = 1_795_208_404_000
DAY_MS = 86_400_000
Samples = dict[tuple[str, str], list[int]]


def drawn(seed: int, count: int = 4000, *, slow: tuple[str, str] | None = None, factor: float = 1.3, by: float = 1.0) -> Samples:
    """Return latencies in ns by host and op; the slowest tenth of `slow` takes `factor` as long, everything `by` as long."""
    noise = random.Random(seed)
    found: Samples = {}
    for place, (host, op) in enumerate((host, op) for host in HOSTS for op in OPS):
        values = [noise.lognormvariate(12 + place / 10, 0.4) * by for _ in range(count)]
        edge = sorted(values)[count * 9 // 10]
        hit = (host, op) == slow
        found[host, op] = [int(value * (factor if hit and value >= edge else 1)) for value in values]
    return found


def written(folder: Path, samples: Samples, night: int = 0, seconds: int = 20) -> Path:
    """Write the logs of a night (its stamps are epoch ms, a day apart) and return its folder."""
    for host in {host for host, _ in samples}:
        lines = []
        for second in range(seconds):
            for direction, op in enumerate(OPS):
                part = samples.get((host, op), [])[second::seconds]
                counts = Counter(index_of(value, BINS - 1) for value in part)
                lines.append((ZERO_MS + night * DAY_MS + 1000 * (second + 1), direction, dict(counts)))
        path = folder / "clients" / host / "fio_clat_hist.1.log"
        path.parent.mkdir(parents=True)
        path.write_text(text(lines, BINS))
    return folder
