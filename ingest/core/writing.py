"""How times, latencies and numbers are written, for people and in csv."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, tzinfo

import numpy as np

SECOND = 1e9
MS = 1_000_000
INFINITE = float("inf")

STEPS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))
LARGE = 100
MIDDLE = 10

Stamp = Callable[[int], str]


def utc(stamp_ns: int) -> str:
    """Return ISO 8601 in UTC with milliseconds: 2026-11-20T20:39:06.000Z."""
    return f"{np.datetime64(stamp_ns // MS, 'ms')}Z"


def local(stamp_ns: int, zone: tzinfo | None = None) -> str:
    """Return ISO 8601 in the local time zone (or `zone`) with its offset."""
    return datetime.fromtimestamp(stamp_ns // MS / 1000, zone).astimezone(zone).isoformat(timespec="milliseconds")


def elapsed(zero_ns: int) -> Stamp:
    """Return a function that gives seconds since `zero_ns`."""
    return lambda stamp_ns: number((stamp_ns - zero_ns) / SECOND)


def number(value: float) -> str:
    """Return a number as csv has it: whole numbers without a point, at most 15 digits, empty if not a number or without bound."""
    if value != value or value in (INFINITE, -INFINITE):  # noqa: PLR0124  # NaN is the one value unlike itself
        return ""
    whole = int(value)
    return str(whole) if whole == value else f"{value:.15g}"


def latency(value_ns: float) -> str:
    """Return a latency for people: 4.23ms; empty if not a number."""
    if value_ns != value_ns:  # noqa: PLR0124  # NaN
        return ""
    scale, unit = next(((scale, unit) for scale, unit in STEPS if abs(value_ns) >= scale), STEPS[-1])
    shown = value_ns / scale
    digits = 0 if shown >= LARGE or scale == 1 else 1 if shown >= MIDDLE else 2
    return f"{shown:.{digits}f}{unit}"
