"""The order in which a server gives the keys of an object that it held in a map of Java (`HashMap`): recorded, and the same on each run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Json = Any
LEAST = 16  # the table of a new map; it doubles when more than three quarters are taken


def _hash(text: str) -> int:
    """Return what `HashMap` makes of `String.hashCode`, which is taken of UTF-16 units."""
    units = text.encode("utf-16-be")
    code = 0
    for high, low in zip(units[::2], units[1::2]):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code ^ (code >> 16)


def hash_order(names: Iterable[str], least: int = LEAST) -> list[str]:
    """Return names in the order of a `HashMap` that they were put into one by one: by slot, within a slot as they came."""
    given = list(names)
    slots = least
    while len(given) > slots * 3 // 4:
        slots *= 2
    return sorted(given, key=lambda name: _hash(name) & (slots - 1))


def reduced_order(names: Iterable[str]) -> list[str]:
    """Return aggregations in the order in which a server answers them once it has put answers of several shards or buckets together.

    Recorded on 9.5.3 and 8.19.21: a `HashMap` made for their number, that they enter from the last to the first.
    """
    backwards = list(names)[::-1]
    slots = 1
    while slots * 3 < len(backwards) * 4:
        slots *= 2
    return sorted(backwards, key=lambda name: _hash(name) & (slots - 1))


def hashed(value: Json) -> Json:
    """Return JSON with the keys of every object in that order."""
    if isinstance(value, dict):
        return {name: hashed(value[name]) for name in hash_order(value)}
    if isinstance(value, list):
        return [hashed(one) for one in value]
    return value
