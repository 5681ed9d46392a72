"""Random incidents for tests: single operations of some hosts, with slow stretches, stalls of a host and total stalls."""

from __future__ import annotations

import random
from pathlib import Path

from oracles.episodes import Event, Promise

MS, SECOND = 1_000_000, 1_000_000_000
ZERO = 1_795_208_404 * SECOND
OPS = ("read", "write")
DESCRIPTION = "time: done_us\nlatency: took_ns\nlabels: {op: type, host: node}\nkind: completion\n"


def drawn(seed: int) -> tuple[list[Event], Promise]:
    """Return the operations of a run of 20 to 60 s, and an objective."""
    noise = random.Random(seed)
    hosts = [f"h{number}" for number in range(1, noise.randint(2, 4))]
    seconds = noise.randint(20, 60)
    busy = noise.choice((1, 3, 40))
    slow = {(host, second) for host in hosts for second in _stretch(noise, seconds) if noise.random() < 0.9}
    silent = {(host, second) for host in hosts if noise.random() < 0.5 for second in _stretch(noise, seconds)}
    if noise.random() < 0.5:
        silent |= {(host, second) for second in _stretch(noise, seconds) for host in hosts}
    events = []
    for second in range(seconds):
        for host in hosts:
            if (host, second) in silent:
                continue
            for _ in range(noise.randint(0 if noise.random() < 0.1 else 1, busy)):
                latency = (
                    noise.randint(20 * MS, 900 * MS)
                    if (host, second) in slow and noise.random() < 0.5
                    else noise.randint(100_000, 9 * MS)
                )
                end = ZERO + second * SECOND + noise.randint(1, 1_000_000) * 1000
                events.append((host, noise.choice(OPS), end, latency))
    events = events or [(hosts[0], "read", ZERO + SECOND, MS)]
    return events, promised(noise)


def promised(noise: random.Random) -> Promise:
    """Return a random objective of windows of 1 to 3 s."""
    window = noise.randint(1, 3) * SECOND
    return Promise(
        percentile=noise.choice(("50", "90", "99", "99.9", "100")),
        threshold=noise.choice((5, 10, 100)) * MS,
        window=window,
        lasting=noise.choice((0, window, 3 * window, 5 * SECOND)),
        hold=noise.choice((0, window, 2 * window, 7 * SECOND)),
        no_data=noise.choice(("violate", "hold", "ok")),
        where=noise.choice(({}, {}, {"op": "read"}, {"host": "h1"})),
        by=noise.choice(((), ("host",), ("op",), ("op", "host"))),
    )


def _stretch(noise: random.Random, seconds: int) -> range:
    first = noise.randrange(seconds)
    return range(first, min(seconds, first + noise.choice((1, 2, 5, 15))))


def written(folder: Path, events: list[Event]) -> Path:
    """Write the operations as a described file and return it; its description lies beside it as events.yml."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "events.yml").write_text(DESCRIPTION)
    path = folder / "run.csv"
    lines = [f"{end // 1000},{latency},{op},{host}" for host, op, end, latency in events]
    path.write_text("\n".join(["done_us,took_ns,type,node", *lines, ""]))
    return path


def as_yaml(promise: Promise, name: str = "a") -> str:
    """Return the objective as SLA.yml writes it."""
    where = ", ".join(f"{label}: {text}" for label, text in promise.where.items())
    by = ", ".join(promise.by)
    promised = f"percentile: {promise.percentile}, threshold: {promise.threshold}ns"
    if promise.rate is not None:
        promised = f"rate: '>= {float(promise.rate)}/s'"
    return (
        f"objectives:\n  - {{name: {name}, {promised}, "
        f"window: {promise.window}ns, for: {promise.lasting}ns, hold: {promise.hold}ns, no_data: {promise.no_data}, "
        f"where: {{{where}}}, by: [{by}]}}\n"
    )


def drawn_marks(seed: int) -> list[tuple[int, int | None]]:
    """Return marks of a run: some on edges of seconds, some between, some without an end, some that overlap."""
    noise = random.Random(f"marks {seed}")
    spans: list[tuple[int, int | None]] = []
    for _ in range(noise.randint(1, 4)):
        low = ZERO + noise.randint(0, 45) * SECOND + noise.choice((0, 0, 1, 400 * MS, 999_999_999))
        length = noise.choice((None, 1, 2 * SECOND, 5 * SECOND, 5 * SECOND + 300 * MS, 12 * SECOND))
        spans.append((low, None if length is None else low + length))
    return spans
