"""Durations, instants, latencies and numbers: as people type them, and as they are written for people and in csv."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any

import numpy as np

from ingest.core.errors import UsageError
from ingest.core.values import Value

# Durations and instants as people write them: 10s, 500ms, 2026-11-20T20:39:06Z, +90s, now-15m.


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
OTHER_NAMES = {  # of units, as people type them; the micro sign and the Greek letter are two characters
    "ns": "nsec nsecs nanosecond nanoseconds",
    "us": "\u00b5s \u03bcs usec usecs \u00b5sec \u03bcsec microsecond microseconds",
    "ms": "msec msecs millisecond milliseconds",
    "s": "sec secs second seconds",
    "min": "mins minute minutes",
    "h": "hr hrs hour hours",
    "d": "day days",
}
UNIT_OF = {unit: unit for unit in UNITS_NS} | {name: unit for unit, names in OTHER_NAMES.items() for name in names.split()}
DURATION = re.compile(r"^\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z\u00b5\u03bc]+)\s*$")
CLOCK = re.compile(r"^([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]{1,9})?))?Z?$")
NOTHING = re.compile(r"0+(\.0+)?")
DASHED = re.compile(r"^\s*([+0-9][^-]*?)\s*-\s*([+0-9][^-]*?)\s*$")
EARLY = 10**8  # as epoch seconds 1973: nobody means that
EPOCH_MS_FROM = 10**11
MOST_NS = 1 << 62  # every instant is nearer to 1970, so that sums of two and the arithmetic of windows fit int64
AGES = "1824 to 2115"
OUT_OF_RANGE = f"a time outside of the years {AGES}"


class FarTimeError(UsageError):
    """A time that lies outside of the years that can be counted with."""


def parse_duration(text: str, *, zero: bool = False) -> int:
    """Return a duration in ns; UsageError unless it is a number with a unit and at least one ns, or none where `zero` may be."""
    duration = 0 if zero and isinstance(text, str) and NOTHING.fullmatch(text.strip()) else _length(text)
    if duration is None:
        plain = text.strip() if isinstance(text, str) else ""
        meant = f"{plain}s is {plain} seconds" if re.fullmatch(r"[0-9.]+", plain) else "as in 10s"
        raise UsageError(f"{text!r} is not a duration: give a number with ns, us, ms, s, m, h or d, {meant}")
    if not (0 if zero else 1) <= duration < 2**62:
        raise UsageError(f"{text!r} is not a duration that can be used here")
    return duration


def _length(text: str) -> int | None:
    """Return a length of time in ns, 0 too; None for what is no number with a unit."""
    match = DURATION.match(text) if isinstance(text, str) else None
    unit = UNIT_OF.get(match[2]) if match else None
    return int(Decimal(match[1]) * UNITS_NS[unit]) if match and unit else None


def format_duration(duration_ns: int) -> str:
    """Return a duration in its largest whole unit: 10s, 1m, 500ms."""
    for unit in ("d", "h", "m", "s", "ms", "us"):
        if duration_ns % UNITS_NS[unit] == 0 and duration_ns:
            return f"{duration_ns // UNITS_NS[unit]}{unit}"
    return f"{duration_ns}ns"


def split_range(text: str) -> tuple[str, str] | None:
    """Return both ends of a range `A..B` or `A-B` as they are typed, an open one empty; None for what is none."""
    if dashed := None if ".." in text else DASHED.match(text):
        return dashed[1], dashed[2]
    first, dots, last = text.partition("..")
    return (first.strip(), last.strip()) if dots and ".." not in last and "," not in last else None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Instant(Value):
    """A point in time: ns since 1970, or since the start of the run where `relative`, or since midnight (UTC) where `of_day`."""

    ns: int
    relative: bool = False
    of_day: bool = False

    def checked_in(self, run: str, start_ns: int, end_ns: int) -> None:
        """Raise UsageError where a time of day comes several times in a run."""
        if self.of_day and end_ns - start_ns > 23 * UNITS_NS["h"]:
            second = self.ns // UNITS_NS["s"]
            clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
            lasts, right = format_duration(end_ns - start_ns), f"{utc(start_ns)[:10]}T{clock}Z"
            raise UsageError(f"{clock} may be several times of {run}, which lasts {lasts}: write its date, as in {right}")

    def epoch_ns(self, run_start_ns: int) -> int:
        """Return the epoch ns for a run that began at `run_start_ns`; what lies past all instants is the last one.

        A time of day is the first one from an hour before that start on.
        """
        if self.of_day:
            earliest = run_start_ns - UNITS_NS["h"]
            return earliest + (self.ns - earliest) % UNITS_NS["d"]
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


def parse_instant(text: str, *, early: bool = False) -> Instant:
    """Return the instant of ISO 8601 text, epoch seconds or ms, `+90s` or `90s` (from the run's start), `21:00:30` or `now-15m`.

    Text without a zone is UTC. UsageError if it is none of these, or, unless it may be `early`, a number that is hardly one of
    seconds since 1970; FarTimeError if it is not in the years 1824 to 2115.
    """
    instant = _instant(text, early=early)
    if not is_instant(instant.ns):
        raise FarTimeError(f"{text!r} lies outside of the years {AGES}: give a time within them")
    return instant


def _instant(text: str, *, early: bool) -> Instant:
    word = text.strip() if isinstance(text, str) else ""
    since = _length(word.removeprefix("+"))
    if since is not None:
        return Instant(since, relative=True)
    if ".." in word:
        begin, _, end = word.partition("..")
        raise UsageError(f"{text!r} is a range, where one time is taken: --from {begin or 'T'} --to {end or 'T'}")
    if word.startswith("+"):
        return Instant(parse_duration(word[1:]), relative=True)  # says what is wrong with it
    if clock := CLOCK.match(word):
        minutes = 60 * int(clock[1]) + int(clock[2])
        return Instant(minutes * UNITS_NS["min"] + int(Decimal(clock[3] or "0") * UNITS_NS["s"]), of_day=True)
    if word == "now":
        return Instant(time.time_ns())
    if word.startswith("now-"):
        return Instant(time.time_ns() - parse_duration(word[4:]))
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", word):
        number = Decimal(word)
        if number < EARLY and not early:
            raise UsageError(f"{text!r} has no unit: +{word}s is {word} seconds after the start of the run")
        return Instant(int(number * (UNITS_NS["ms"] if number >= EPOCH_MS_FROM else UNITS_NS["s"])))
    stamp_ns = iso_ns(word)
    if stamp_ns is None:
        raise UsageError(
            f"{text!r} is not a time: give 21:00:30, ISO 8601, epoch seconds or ms, +90s (from the run's start) or now-15m"
        )
    return Instant(stamp_ns)


# How times, latencies and numbers are written, for people and in csv.


SECOND = 1e9
MS = 1_000_000
INFINITE = float("inf")
WHOLE = 2.0**63
PLAIN = 1e15  # whole numbers below it have at most 15 digits

STEPS = (  # unit, and the number from which on the next is taken
    (1, "ns", 1e3),
    (1e3, "µs", 1e3),
    (1e6, "ms", 1e3),
    (1e9, "s", 1e4),
    (3600e9, "h", 1e3),
    (86_400e9, "d", 1e3),
)
LARGE = 100
NEARLY_ALL = 0.9

Stamp = Callable[[int], str]


def utc(stamp_ns: int) -> str:
    """Return ISO 8601 in UTC with milliseconds: 2026-11-20T20:39:06.000Z."""
    return f"{np.datetime64(stamp_ns // MS, 'ms')}Z"


def utc_column(stamps_ns: Any) -> list[str]:
    """Return what `utc` does of each stamp of an array."""
    return [f"{text}Z" for text in np.datetime_as_string((stamps_ns // MS).view("M8[ms]")).tolist()]


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


def number_column(values: Any) -> list[str]:
    """Return what `number` does of each value of an array: at once where all are whole, as most columns are."""
    numbers = np.asarray(values)
    if numbers.dtype.kind == "i":
        return [str(value) for value in numbers.tolist()]
    if numbers.dtype == np.float64 and bool((np.abs(numbers) < WHOLE).all()):
        if bool((numbers == np.trunc(numbers)).all()):
            return [str(value) for value in numbers.astype(np.int64).tolist()]
        if bool((np.abs(numbers) < PLAIN).all()) and bool((numbers != 0).all()):
            return [f"{value:.15g}" for value in numbers.tolist()]
    return [number(value) for value in numbers.tolist()]


def latency(value_ns: float) -> str:
    """Return a latency for people, three digits in the unit that fits: 4.23ms; four from 1,000 s on; empty if not a number.

    An infinite one, or one of 2^63 - 1 ns as stores keep it, is that of an operation that failed.
    """
    if value_ns != value_ns:  # noqa: PLR0124  # NaN
        return ""
    if float(value_ns) >= WHOLE:
        return "failed"
    for scale, unit, below in STEPS:
        shown = three_digits(value_ns / scale, whole=scale == 1)
        if abs(float(shown)) < below:
            return shown + unit
    return f"{round(value_ns / scale, -1 if value_ns >= 10_000 * scale else 0):,.0f}{unit}"


def spaced(quantity: str) -> str:
    """Return a quantity with a space before its unit: 4.23 ms."""
    return re.sub(r"(?<=\d)(?=[a-zµ])", " ", quantity)


def fine_latency(value_ns: float) -> str:
    """Return a latency for a comparison, four digits in ms, or in s from a second on: 0.2847 ms, 4.027 s; failed."""
    if value_ns == INFINITE:
        return "failed"
    return f"{figure(value_ns / SECOND, 4)} s" if value_ns >= SECOND else f"{figure(value_ns / MS, 4)} ms"


def three_digits(value: float, *, whole: bool = False) -> str:
    """Return a number with three digits, more only in front of the point: 4.00, 40.0, 400; without decimals where `whole`."""
    for decimals in () if whole else (2, 1):
        text = f"{value:.{decimals}f}"
        if abs(float(text)) < 10 ** (3 - decimals):
            return text
    return f"{value:.0f}"


def figure(value: float, digits: int = 3) -> str:
    """Return a number for people in that many digits, never in powers of ten: 0.0123, 1.5, 12,346; empty if not a number.

    Digits in front of the point are all there, zeros at the end of decimals are left out.
    """
    if not math.isfinite(value):
        return ""
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{decimals}f}"
    if decimals and len(text.replace(",", "").lstrip("-0.").replace(".", "")) > digits:  # 9.996 has become 10.00
        text = f"{value:,.{decimals - 1}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def size(number: float) -> str:
    """Return a number of bytes for people: 1.5 GB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{figure(number)} {unit}"
        number /= 1000
    return f"{figure(number)} TB"


def up_to(share: float) -> str:
    """Return a cumulative share in percent, so that the rest is told from nothing: 12.5 %, 99.98 %; 100 % for all alone."""
    if share < NEARLY_ALL or share >= 1:
        return f"{figure(100 * share)} %"
    decimals = 1 - math.floor(math.log10(100 * (1 - share)))
    grain = 10**decimals
    text = f"{math.floor(100 * share * grain) / grain:.{decimals}f}"
    return f"{text.rstrip('0').rstrip('.')} %"
