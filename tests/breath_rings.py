"""Snabb timelines with breaths of known cost, written by the oracle's writer."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from oracles import snabb as oracle

HZ = 2_600_000_000
BEGAN = 1_700_000_000 * oracle.SECOND
COUNTERS = "inpackets inbytes outpackets outbytes droppackets dropbytes"
APPS = ("nic", "filter")
TOTALS = "breath totalpackets totalbytes totaletherbits"


@dataclass(frozen=True)
class Work:
    """What breaths cost: cycles = base + slope * packets and some noise; a share of them stalls."""

    base: int = 2500
    slope: int = 30
    stalls: float = 0.0
    burst: int = 200
    breaths: int = 1500
    rate: int = 5
    own: bool = False  # breath_end tells packets of the breath, not totals
    counters: bool = False  # callbacks tell link statistics
    longest: tuple[int, ...] = ()  # these breaths take 500,000 cycles more


def ring(work: Work, seed: int, major: int = 3) -> bytes:
    """Return a timeline of these breaths, 2 ms apart."""
    dice = random.Random(seed)
    out = oracle.Writer(8 * work.breaths + 64, major, strings_bytes=8192)
    start = f"1,{work.rate}|engine.breath_start: {TOTALS}"
    end = f"1,{work.rate}|engine.breath_end: {'breath npackets bpp' if work.own else TOTALS}"
    now, total, moved = 10**12, 0, 0
    for number in range(work.breaths):
        packets = 0 if dice.random() < 0.05 else min(int(dice.expovariate(1 / 60)), work.burst)
        cycles = max(800, int(work.base + work.slope * packets + dice.gauss(0, 120)))
        cycles += dice.randrange(60_000, 120_000) if dice.random() < work.stalls else 0
        cycles += 500_000 if number in work.longest else 0
        out.event(start, now, 1, 625 * number, total, 64 * total, 704 * total)
        if number % 10 == 0:
            out.event("2,3|engine.got_monotonic_time: unixnanos", now + 100, 1, BEGAN + (now - 10**12) * oracle.SECOND // HZ)
        if number % 25 == 0:
            at = now + 200
            for app in APPS:
                for event, number_of in (("push", moved), ("pushed", moved + packets)):
                    counted = (number_of, 64 * number_of) * 2 + (0, 0) if work.counters else ()
                    out.event(f"3,3|app.{event} app={app}: {COUNTERS if work.counters else ''}".rstrip(), at, 1, *counted)
                    at += cycles // 3 if event == "push" else 0
            moved += packets
        total += packets
        now += cycles
        told = (packets, 64) if work.own else (total, 64 * total, 704 * total)
        out.event(end, now, 1, 625 * number, *told)
        now += 5_200_000 - cycles
    return out.data()


def rings(folder: Path, **works: Work) -> Path:
    """Write a timeline of each process into a folder, and return that."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, work) in enumerate(sorted(works.items())):
        (folder / f"{name}.timeline").write_bytes(ring(work, seed))
    return folder


GOOD, BAD = Work(), Work(stalls=0.01)
PICTURED = {
    "good": Work(breaths=12_000, counters=True),
    "bad": Work(stalls=0.01, breaths=12_000, counters=True),
    "slow": Work(base=4000, slope=55, breaths=6_000),
    "small-bursts": Work(slope=20, burst=8, breaths=3_000),
}
