"""An objective: what is promised of every window, a percentile of latency or a rate, and how much of it may be missed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ingest.core.errors import UsageError
from ingest.core.grid import SECOND
from ingest.core.layout import LAST_NS
from ingest.core.marks import Phase
from ingest.core.quantiles import Percentile, parse_percentiles
from ingest.core.units import figure, latency, parse_duration

ANY_LATENCY = LAST_NS - 1  # no operation that did not fail takes longer
VIOLATE, HOLD, OK = "violate", "hold", "ok"
A_LATENCY = re.compile(r"(?:p(?P<percentile>\d+(?:\.\d+)?%?)|(?P<max>max))\s*<=?\s*(?P<limit>[\d.]+\s*[a-zµ]+)")
A_CHANGE = re.compile(
    r"(?:(?P<measure>\S+)\s+)?at most\s+(?P<share>\d{1,4}(?:\.\d{1,9})?)\s*%\s*(?P<side>above|below)\s+(?P<baseline>\S.*)"
)
A_SHARE = re.compile(r"(?:failures\s*)?<=?\s*(?P<most>\d{1,2}(?:\.\d{1,9})?)\s*%")
ERRORS = re.compile(r"(?:errors?|error[ _-]?rate|failed|failure)\s*(?=<)", re.IGNORECASE)
A_RATE = re.compile(r"(?:rate\s*)?>=?\s*(?P<least>\d{1,15}(?:\.\d{1,9})?)\s*(?:/\s*s)?")


@dataclass(frozen=True, slots=True)
class Latency:
    """A percentile that is to be at most a latency.

    At most ANY_LATENCY means that it is not to be an operation that failed: that at most a share of them fails.
    """

    percentile: Percentile
    threshold_ns: int

    @property
    def most_failed(self) -> str:
        """Return the share of operations that may fail, in words; empty of a promise about a latency."""
        left = 100 - Fraction(self.percentile.top, self.percentile.bottom)
        return f"{figure(float(left), 9)} %" if self.threshold_ns == ANY_LATENCY else ""

    @property
    def missed(self) -> str:
        """Return what is wrong where it is not kept: p99 above 5ms, more than 0.1 % failed."""
        share = self.most_failed
        return f"more than {share} failed" if share else f"{self.percentile.name} above {latency(self.threshold_ns)}"

    def __str__(self) -> str:
        if share := self.most_failed:
            return f"at most {share} failed"
        return f"{self.percentile.name} at most {latency(self.threshold_ns)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the promise as stores and webhooks have it."""
        return {"percentile": self.percentile.text, "threshold_ns": self.threshold_ns}


@dataclass(frozen=True, slots=True)
class Rate:
    """Completions a second that are to be reached at least."""

    least: Fraction

    def needed(self, window_ns: int) -> int:
        """Return how many completions keep the promise in a window."""
        return math.ceil(self.least * window_ns / SECOND)

    def __str__(self) -> str:
        return f"rate at least {per_second(float(self.least))}"

    def to_dict(self) -> dict[str, Any]:
        """Return the promise as stores and webhooks have it: no percentile, no threshold."""
        return {"percentile": "", "threshold_ns": 0, "least_rate": float(self.least)}


@dataclass(frozen=True, slots=True)
class Change:
    """A percentile, or the rate (None), that is to be at most this share worse than in the runs that match `baseline`."""

    percentile: Percentile | None
    share: Fraction
    baseline: str

    @property
    def limit(self) -> Fraction:
        """Return the ratio to the baseline that still keeps the promise: the largest of a percentile, the least of a rate."""
        return 1 + self.share if self.percentile else 1 - self.share

    def __str__(self) -> str:
        measure, side = (self.percentile.name, "above") if self.percentile else ("rate", "below")
        return f"{measure} at most {figure(float(100 * self.share))} % {side} {self.baseline}"


Promise = Latency | Rate | Change


def parse_promise(text: str) -> Promise:
    """Return the promise of a text; UsageError for anything else.

    p99<5ms, max<1s, rate>=5000/s, failures<0.1%, p99 at most 10% above nightly-41, rate at most 5% below nightly-41. `<` says at
    most, as `<=` does: the latency or the share itself keeps the promise.
    """
    if found := A_CHANGE.fullmatch(text.strip()):
        return _change(text, **found.groupdict())
    if found := A_LATENCY.fullmatch(text.strip()):
        [percentile] = parse_percentiles(found["percentile"] or "100")
        if percentile.top:
            return Latency(percentile, parse_duration(found["limit"].replace(" ", "")))
    elif (found := A_RATE.fullmatch(text.strip())) and Fraction(found["least"]):
        return Rate(Fraction(found["least"]))
    elif found := A_SHARE.fullmatch(text.strip()):
        left = 100 - Decimal(found["most"])
        [percentile] = parse_percentiles(f"{left}{'%' if left < 1 else ''}")
        return Latency(percentile, ANY_LATENCY)
    if found := ERRORS.match(text.strip()):
        raise UsageError(f"{text!r} is no objective: do you mean 'failures{text.strip()[found.end() :]}'?")
    raise UsageError(
        f"{text!r} is no objective: give a percentile and a latency, a rate, or a share of failures, as in 'p99<5ms', "
        "'rate>=5000/s', 'failures<0.1%'"
    )


def _change(text: str, measure: str | None, share: str, side: str, baseline: str) -> Change:
    """Return the promise of the words of A_CHANGE."""
    of_rate, allowed = measure == "rate", Fraction(share) / 100
    if side != ("below" if of_rate else "above") or (of_rate and allowed >= 1):
        raise UsageError(f"{text!r} is no objective: 'p99 at most 10% above BASELINE', or 'rate at most 5% below BASELINE'")
    if of_rate:
        return Change(None, allowed, baseline)
    [percentile] = parse_percentiles(measure[1:] if measure and measure.startswith("p") else "100")
    if not 0 < percentile.top < 100 * percentile.bottom:
        raise UsageError(f"{text!r} compares no percentile below 100, and no rate: a maximum has no bounds to be compared by")
    return Change(percentile, allowed, baseline)


def promise_from(percentile: str, threshold_ns: int, least_rate: float | None = None) -> Latency | Rate:
    """Return the promise that `to_dict` has written."""
    if least_rate is not None:
        return Rate(Fraction(str(least_rate)))
    [asked] = parse_percentiles(percentile if float(percentile) > 1 else f"{percentile}%")
    return Latency(asked, threshold_ns)


def per_second(rate: float) -> str:
    """Return a rate for people: 5,000/s."""
    return f"{figure(rate)}/s"


@dataclass(frozen=True, slots=True)
class Budget:
    """The share of the windows of a run, or of its requests, that may miss what is promised.

    `period_ns` is how long the run is to last, None where nobody says: a warning before the budget is gone needs it.
    """

    share: Fraction
    of_requests: bool = False
    period_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Objective:
    """One promise about each window of the series whose labels match the globs in `where`.

    An episode lasts at least `for_ns`; violated windows at most `hold_ns` apart are one episode. `budget` is what may be
    violated, None where there is no such promise. Windows that do not lie in all of `phases` are not judged. `line` is where it
    is written.
    """

    name: str
    promise: Latency | Rate
    window_ns: int
    for_ns: int
    hold_ns: int
    no_data: str = HOLD
    where: Mapping[str, str] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    line: int = 0
    budget: Budget | None = None
    phases: tuple[Phase, ...] = ()


@dataclass(frozen=True, slots=True)
class RunObjective:
    """One promise about whole runs against their baseline, in the series whose labels match the globs in `where`."""

    name: str
    promise: Change
    where: Mapping[str, str] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    line: int = 0


AnyObjective = Objective | RunObjective
