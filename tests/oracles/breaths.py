"""What is kept of breaths, a second time: loops over single breaths, bins by halving, lines by exact fractions; nothing of `ingest`."""

from __future__ import annotations

import hashlib
from collections import Counter
from fractions import Fraction

SECOND = 10**9
MASK = 2**64 - 1
CALLBACKS = {"app.pulled": "app.pull", "app.pushed": "app.push"}


def lower(value: int, top: int) -> tuple[int, int | None]:
    """Return the edges of the bin that a number lies in: whole numbers to 15, then eight bins an octave; no upper one from `top`."""
    if value >= top:
        return top, None
    if value < 16:
        return value, value + 1
    wide = 1
    while value // wide >= 16:
        wide *= 2
    return value // wide * wide, (value // wide + 1) * wide


def cell(packets: int, cycles: int) -> tuple[int, int | None, int, int | None]:
    """Return the edges of the cell of a breath: packets and cycles a packet."""
    return (*lower(packets, 4096), *lower(cycles // packets, 2**32))


def density(breaths: list[dict]) -> Counter:
    """Return how many breaths lie in each cell."""
    return Counter(cell(int(one["packets"]), one["cycles"]) for one in breaths if one["packets"])


def window(end: int) -> int:
    """Return the start of the second (start, start + 1 s] that a moment lies in."""
    return -(-end // SECOND) * SECOND - SECOND


def line(breaths: list[dict]) -> dict[str, Fraction]:
    """Return the line of least squares, from distances to the means; each breath counts `weight` times if it has one."""
    points = [(Fraction(int(one["packets"])), Fraction(one["cycles"]), one.get("weight", 1)) for one in breaths]
    total = sum(w for _, _, w in points)
    x, y = (sum(one[axis] * one[2] for one in points) / total for axis in (0, 1))
    across = sum(w * (p - x) ** 2 for p, _, w in points)
    slope = sum(w * (p - x) * (c - y) for p, c, w in points) / across
    base = y - slope * x
    left = sum(w * (c - base - slope * p) ** 2 for p, c, w in points)
    whole = sum(w * (c - y) ** 2 for _, c, w in points)
    alike = Fraction(total) ** 2 / sum(w * w for _, _, w in points)
    residual2 = left / total * alike / (alike - 2)
    return {
        "base": base,
        "slope": slope,
        "explained": 1 - left / whole if whole else Fraction(1),
        "residual2": residual2,
        "error2": residual2 / (alike * across / total),
    }


def order(host: str, process: str, op: str, job: str, number: int, cycles: int) -> int:
    """Return the place of a breath in the order of the sample: 53 bits of two rounds of splitmix64."""
    named = f"{host}\x1f{process}\x1f{op}\x1f{job}".encode()
    seed = int.from_bytes(hashlib.blake2b(named, digest_size=8).digest(), "little")
    return mixed(mixed((number & MASK) ^ seed) ^ cycles) >> 11


def mixed(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def callbacks(events: list[dict]) -> list[dict]:
    """Return what each callback moved, of decoded events: those right within whose pair nothing of their level lies."""
    found = []
    for event in events:
        start = events[event["anchor"]] if event["anchor"] is not None else None
        if event["name"] not in CALLBACKS or start is None or start["name"] != CALLBACKS[event["name"]]:
            continue
        if (
            start["attributes"] != event["attributes"]
            or start["core"] != event["core"]
            or start["breath_unit"] != event["breath_unit"]
        ):
            continue
        before, after = (dict(zip(one["names"], one["arguments"])) for one in (start, event))
        grown = {name: after[name] - before[name] for name in after if name in before and after[name] >= before[name]}
        packets = [grown[name] for name in ("inpackets", "outpackets") if name in grown]
        told = {"op": event["name"], "app": event["attributes"].get("app", ""), "cycles": event["lag"], "tsc": event["tsc"]}
        found.append({**told, "packets": max(packets) if packets else None})
    return found
