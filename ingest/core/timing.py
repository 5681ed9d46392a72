"""Durations and instants as people write them: 10s, 500ms, 2026-11-20T20:39:06Z, +90s, now-15m."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from ingest.core.errors import UsageError
from ingest.core.values import Value

UNITS_NS = {
    "ns": 1,
    "us": 1000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60 * 1_000_000_000,
    "min": 60 * 1_000_000_000,
    "h": 3600 * 1_000_000_000,
    "d": 86_400 * 1_000_000_000,
}
DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|min|m|h|d)\s*$")
START = r"\+0(\.0*)?\s*(ns|us|µs|ms|s|min|m|h|d)"
EPOCH_MS_FROM = 10**11
MOST_NS = 1 << 62  # every instant is nearer to 1970, so that sums of two and the arithmetic of windows fit int64
AGES = "1824 to 2115"
OUT_OF_RANGE = f"a time outside of the years {AGES}"


class FarTimeError(UsageError):
    """A time that lies outside of the years that can be counted with."""


def parse_duration(text: str) -> int:
    """Return a duration in ns; UsageError unless it is a number with a unit and at least one ns."""
    match = DURATION.match(text)
    if not match:
        raise UsageError(f"{text!r} is not a duration: give a number with ns, us, ms, s, m, h or d, as in 10s")
    duration = int(Decimal(match[1]) * UNITS_NS[match[2].replace("µ", "u")])
    if not 0 < duration < 2**62:
        raise UsageError(f"{text!r} is not a duration that can be used here")
    return duration


def format_duration(duration_ns: int) -> str:
    """Return a duration in its largest whole unit: 10s, 1m, 500ms."""
    for unit in ("d", "h", "m", "s", "ms", "us"):
        if duration_ns % UNITS_NS[unit] == 0 and duration_ns:
            return f"{duration_ns // UNITS_NS[unit]}{unit}"
    return f"{duration_ns}ns"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Instant(Value):
    """A point in time: ns since 1970, or since the start of the run where `relative`."""

    ns: int
    relative: bool = False

    def epoch_ns(self, run_start_ns: int) -> int:
        """Return the epoch ns for a run that began at `run_start_ns`; what lies past all instants is the last one."""
        return min(self.ns + run_start_ns, MOST_NS - 1) if self.relative else self.ns


def is_instant(stamp_ns: int) -> bool:
    """Return whether a time in epoch ns is one that can be counted with: in the years 1824 to 2115."""
    return -MOST_NS < stamp_ns < MOST_NS


def iso_ns(text: str) -> int | None:
    """Return ISO 8601 text in epoch ns, without a zone in UTC, however far away it is; None if it is none."""
    try:
        stamp = datetime.fromisoformat(text)
    except ValueError:
        return None
    try:
        since = (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    except OverflowError:  # the first and last day of all years, in a zone that moves them beyond
        return -MOST_NS if stamp.year == 1 else MOST_NS
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000


def parse_instant(text: str) -> Instant:
    """Return the instant of ISO 8601 text, epoch seconds or ms, `+90s` (from the run's start) or `now-15m`.

    ISO text without a zone is UTC. UsageError if it is none of these, FarTimeError if it is not in the years 1824 to 2115.
    """
    instant = _instant(text)
    if not is_instant(instant.ns):
        raise FarTimeError(f"{text!r} lies outside of the years {AGES}: give a time within them")
    return instant


def _instant(text: str) -> Instant:
    word = text.strip()
    if word.startswith("+"):
        return Instant(0 if re.fullmatch(START, word) else parse_duration(word[1:]), relative=True)
    if word == "now":
        return Instant(time.time_ns())
    if word.startswith("now-"):
        return Instant(time.time_ns() - parse_duration(word[4:]))
    if re.fullmatch(r"\d+(\.\d+)?", word):
        number = Decimal(word)
        return Instant(int(number * (UNITS_NS["ms"] if number >= EPOCH_MS_FROM else UNITS_NS["s"])))
    stamp_ns = iso_ns(word)
    if stamp_ns is None:
        raise UsageError(f"{text!r} is not a time: give ISO 8601, epoch seconds or ms, +90s (from the run's start) or now-15m")
    return Instant(stamp_ns)
