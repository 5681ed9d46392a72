"""HdrHistogram for doubles, as far as percentiles and ranks need it: measured on 9.5.3 and 8.19.21 (HdrHistogram 2.1.9).

A value lies in a bin of its octave: octave = floor(log2 v), sub-bin = floor(v / 2^octave * half), half = 1,024 for 3 digits.
That does not depend on what else was recorded. What is *reported* does: the highest value that the integer histogram inside
cannot tell from the bin's lower edge, (integer + 2^k - 1) * lowest / half, where lowest is the lower end of the covered range.
The range starts at [2^800, 2^803) and is extended by what is recorded, in the order of recording; it fails when the integers
would need more than 63 bits. `Range` follows it event by event; bins and counts stay arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

LONG_MAX = 2**63 - 1
HIGHEST_EVER = 2.0**1022  # 4.49423283715579E307
ZERO = np.int64(-(2**62))  # the bin of value 0, below all others


class OutOfRange(Exception):
    """A value that the histogram cannot take; the text is the server's reason."""


def java_double(value: float) -> str:
    """Return a double as Java prints it: 1.0E9, 99.9, 1048576.0."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    return _java_digits(value)


@lru_cache(maxsize=1 << 14)  # the edges of latency come again in every answer
def _java_digits(value: float) -> str:
    if 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        if "e" in text:
            text = f"{value:.20f}".rstrip("0")
        return text if "." in text else text + ".0"
    exponent = f"{value:.17e}".partition("e")[2]
    digits = repr(value).lower().partition("e")[0]
    sign = "-" if digits.startswith("-") else ""
    digits = digits.lstrip("-")
    whole, _, fraction = digits.partition(".")
    stripped = (whole + fraction).lstrip("0").rstrip("0") or "0"
    return f"{sign}{stripped[0]}.{stripped[1:] or '0'}E{int(exponent)}"


def _order(number: int) -> int:
    return max(number, 0).bit_length()


def _shift_left(amount: int) -> int:
    """Return 1L << amount as Java does: only the low six bits count, and the result has a sign."""
    value = 1 << (amount & 63)
    return value - 2**64 if value > LONG_MAX else value


@dataclass(slots=True)
class Range:
    """The covered range of one histogram: extended by values in the order they are recorded."""

    digits: int
    lowest: float = 2.0**800
    highest: float = 2.0**803
    ratio: int = 2
    trackable: int = 0
    minimum: float = math.inf  # of what was recorded, without zeros
    maximum: float = 0.0
    half: int = field(init=False)
    magnitude: int = field(init=False)

    def __post_init__(self) -> None:
        sub = 1 << math.ceil(math.log2(2 * 10**self.digits))
        self.half, self.magnitude = sub // 2, (sub // 2).bit_length() - 1
        self.trackable = self.half * 8 - 1

    def record(self, value: float) -> None:
        """Extend the range to a value, or raise `OutOfRange`."""
        if value == 0:
            return
        try:
            if value < self.lowest:
                self._down(value)
            elif value >= self.highest:
                self._up(value)
        except OutOfRange as error:
            raise OutOfRange(
                f"The value {java_double(value)} is out of bounds for histogram, current covered range "
                f"[{java_double(self.lowest)}, {java_double(self.highest)}) cannot be extended any further.\n"
                f"Caused by: java.lang.ArrayIndexOutOfBoundsException: {error}"
            ) from error
        self.minimum, self.maximum = min(self.minimum, value), max(self.maximum, value)

    def _capped(self, number: float) -> int:
        if number > self.ratio:
            return self.ratio.bit_length() - 1
        return 50 if number > 2.0**50 else _order(math.ceil(number))

    def _length(self) -> int:
        untrackable, buckets = 2 * self.half, 1
        while untrackable <= self.trackable:
            untrackable, buckets = untrackable << 1, buckets + 1
        return (buckets + 1) * self.half

    def _index(self, value: float) -> int:
        integer = int(value * (self.half / self.lowest))
        bucket = max(integer.bit_length() - self.magnitude - 1, 0)
        return ((bucket + 1) << self.magnitude) + (integer >> bucket) - self.half

    def _resize(self, amount: int, cause: str) -> None:
        wanted = _shift_left(amount + _order(self.trackable)) - 1
        if wanted < self.trackable:
            raise OutOfRange(
                f"Cannot resize histogram covered range beyond (1L << 63) / (1L << {self.magnitude}) - 1.\n"
                f"Caused by: java.lang.ArrayIndexOutOfBoundsException: {cause}"
            )
        self.trackable = wanted
        self.ratio <<= amount

    def _down(self, value: float) -> None:
        if value < 0:
            raise OutOfRange("Negative values cannot be recorded")
        while value < self.lowest:
            amount = self._capped(math.ceil(self.lowest / value) - 1.0)
            if self.maximum and self._index(self.maximum) >= self._length() - amount * self.half:
                self._resize(amount, "Operation would overflow, would discard recorded value counts")
                self.highest *= 2.0**amount
            self.lowest /= 2.0**amount
            self.highest /= 2.0**amount

    def _up(self, value: float) -> None:
        if value > HIGHEST_EVER:
            raise OutOfRange(f"Values above {java_double(HIGHEST_EVER)} cannot be recorded")
        while value >= self.highest:
            amount = self._capped(math.ceil((value + math.ulp(value)) / self.highest) - 1.0)
            if self.maximum and self._index(self.minimum) < (amount + 1) * self.half:
                self._resize(amount, "Operation would underflow and lose precision of already recorded value counts")
                self.highest *= 2.0**amount
            else:
                self.lowest *= 2.0**amount
                self.highest *= 2.0**amount


def bins_of(values: np.ndarray, half: int) -> np.ndarray:
    """Return the bin of each value (>= 0): one number that orders them, octave * half + sub-bin."""
    mantissa, exponent = np.frexp(values)
    keys = (exponent.astype(np.int64) - 1) * half + np.floor(mantissa * (2 * half)).astype(np.int64) - half
    return np.where(values == 0, ZERO, keys)


def reported(key: int, covered: Range, *, lowest: bool = False) -> float:
    """Return the value reported for a bin: the highest equivalent one, or its lower edge."""
    if key == ZERO:
        return 0.0
    octave, sub = divmod(key, covered.half)
    doublings = octave - (math.frexp(covered.lowest)[1] - 1)
    integer = (sub + covered.half) << doublings
    if not lowest:
        integer += (1 << doublings) - 1
    return integer * (covered.lowest / covered.half)


@dataclass(frozen=True, slots=True)
class Sketch:
    """One histogram: its range, its bins in ascending order and their cumulative counts (64-bit, wrapping as Java's)."""

    covered: Range
    keys: np.ndarray
    cumulative: np.ndarray

    @property
    def total(self) -> int:
        """Return the number of samples."""
        return int(self.cumulative[-1]) if len(self.cumulative) else 0

    def percentile(self, percent: float) -> float | None:
        """Return the value at a percentile: rank floor(p/100 * N + 0.5), at least 1."""
        total = self.total
        if total == 0:
            return None
        rank = min(max(int((min(percent, 100.0) / 100.0) * total + 0.5), 1), LONG_MAX)
        place = int(np.argmax(self.cumulative >= rank))
        if self.cumulative[place] < rank:
            return 0.0
        return reported(int(self.keys[place]), self.covered, lowest=percent == 0)

    def rank(self, value: float) -> float | None:
        """Return the percentage of samples in bins up to the value's."""
        total = self.total
        if total == 0:
            return None
        if value >= self.covered.lowest:
            key = bins_of(np.array([value]), self.covered.half)[0]
        else:
            key = ZERO  # below the range lie only zeros
        place = int(np.searchsorted(self.keys, key, side="right"))
        below = int(self.cumulative[place - 1]) if place else 0
        return 100.0 * below / total


def sketch(values: np.ndarray, counts: np.ndarray, covered: Range) -> Sketch:
    """Return the histogram of values and counts whose range is known to cover them."""
    keys = bins_of(values, covered.half)
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    if not len(keys):
        return Sketch(covered, keys, counts.astype(np.int64))
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    with np.errstate(over="ignore"):
        return Sketch(covered, keys[starts], np.cumsum(np.add.reduceat(counts.astype(np.int64), starts)))


def cover(covered: Range, values: np.ndarray) -> None:
    """Extend a range to values in the order they are recorded: only new extremes can move it."""
    if not len(values):
        return
    positive = np.where(values == 0, np.inf, values)
    low = np.minimum.accumulate(np.minimum(positive, covered.minimum))
    high = np.maximum.accumulate(np.maximum(values, covered.maximum))
    news = np.concatenate(([True], (low[1:] < low[:-1]) | (high[1:] > high[:-1])))
    for value in values[news].tolist():
        covered.record(value)
