"""When requests were due, and what that says of a run: target rate, achieved rate, largest schedule lag.

    due      T0 + n / rate, or a column of the log        wait      started - due
    service  ended - started                              response  ended - due = wait + service

A generator that falls behind its schedule hides waiting time: its service times are those of fewer requests than were due.
Under 99 % of the target rate that is said with every answer.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ingest.core.intervals import Int
from ingest.core.timing import format_duration

SECOND = 1_000_000_000
ENOUGH = Fraction(99, 100)
UNSCHEDULED = (
    "service time only: it is unknown when requests were due (--rate, --intended-start-column), so omitted waiting cannot be seen"
)


def due_at(start_ns: int, count: int, rate: Fraction) -> Int:
    """Return when each of `count` requests was due: start + n / rate, rounded down to ns, exact for any n."""
    numbers = np.arange(count, dtype=np.int64)
    interval = SECOND / rate
    whole, part = divmod(interval.numerator, interval.denominator)
    if part * count >= 2**63:
        exact = [start_ns + n * interval.numerator // interval.denominator for n in range(count)]
        return np.array(exact, np.int64)
    due: Int = start_ns + numbers * whole + numbers * part // interval.denominator
    return due


def facts(samples: int, span_ns: int, target: Fraction | None, lag_ns: int | None) -> list[str]:
    """Return sentences about a scheduled run: its rates and lag, and a warning if service times cannot be trusted."""
    if span_ns <= 0 or not samples:
        return []
    achieved = Fraction(samples * SECOND, span_ns)
    if target is None:
        return [f"schedule: achieved {_rate(achieved)}{_lag(lag_ns)}"]
    share = achieved / target
    sentences = [f"schedule: target {_rate(target)}, achieved {_rate(achieved)} ({float(100 * share):.1f} %){_lag(lag_ns)}"]
    if share < ENOUGH:
        sentences.append(
            f"coordinated omission: only {float(100 * share):.1f} % of the requests that were due could be sent in time; "
            "percentiles of service time leave out what waited: read response time"
        )
    return sentences


def _rate(rate: Fraction) -> str:
    return f"{float(rate):,.6g}/s" if rate < SECOND else f"{float(rate):.4g}/s"


def _lag(lag_ns: int | None) -> str:
    if lag_ns is None:
        return ""
    rounded = lag_ns // 1_000_000 * 1_000_000 if lag_ns >= SECOND else lag_ns // 1000 * 1000
    return f", largest lag {format_duration(rounded or lag_ns)}"
