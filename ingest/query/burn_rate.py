"""Is an error budget being used up too fast: multiwindow, multi-burn-rate alerts, which come before it is gone.

    burn rate      share of bad windows (or requests) / the share that the budget allows: at 1 the budget lasts for its period
    alert          both a long window and a short one, a twelfth of it, burn at least as fast as their pair says

    long window    period / 720    period / 120    period / 10
    burn rate             14.4               6              3       uses 2 %, 5 %, 30 % of the budget in the long window

What burns slower is told once three quarters of the budget are used and a tenth of the period still burns at 1 or more. A short
window holds one window at least; a long one LEAST bad ones more than LEAST_RATE times what the budget allows: two are no trend.

Source: Google, The Site Reliability Workbook (2018), chapter 5, for a period of 30 days: pairs of 1 h and 5 min, 6 h and 30 min.
Its third pair burns at 1 over 3 days, for a ticket; here that would be told in quiet runs. The third pair here, LEAST and the
rule of three quarters were chosen by simulation (benchmarks/burn_rate.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Bool, Int
from ingest.core.units import figure, format_duration

PAIRS = ((720, 14.4), (120, 6.0), (10, 3.0))  # the period over a long window, and the burn rate
SHORT = 12  # a long window over its short one
LEAST, LEAST_RATE = 10, 3
DIGITS = 9
MOST_USED, SLOW = 0.75, 10


@dataclass(frozen=True, slots=True)
class BurnAlert:
    """From when to when the budget of a group of a run was being used up too fast: ends of windows in ns.

    When it began the budget burned at `burn_rate` over a window of `long_ns`, and the share `used` of it was gone. It is `open`
    where it lasts until the last window.
    """

    start_ns: int
    end_ns: int
    burn_rate: float
    long_ns: int
    used: float
    open: bool
    objective: str = ""
    run: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Return what burns in words: at a burn rate of 14.4 over 12m, with 5 % of the budget used."""
        burns = f"at a burn rate of {figure(self.burn_rate)} over {format_duration(self.long_ns)}"
        return f"{burns}, with {figure(100 * self.used)} % of the budget used"


def burning(
    ends_ns: Int, bad: Int, every: Int, share: Fraction, step_ns: int, period_ns: int
) -> tuple[list[BurnAlert], int | None]:
    """Return the alerts of a series of windows in the order of time, and when the budget was gone (end of a window, None: never).

    In each window `bad` of `every` were bad (windows themselves count 1), and `share` may be, in each period.
    """
    if not share or not len(ends_ns):
        return [], None
    place, whole = np.arange(1, len(ends_ns) + 1), max(period_ns // step_ns, 1)
    sums = [np.append(0, np.cumsum(each)) for each in (bad, every, bad * share.denominator > share.numerator * every)]

    def within(windows: int) -> tuple[NDArray[np.float64], Int]:
        """Return the burn rate of the last so many windows (before the first all was good), and how many of them are bad."""
        first = np.maximum(place - windows, 0)
        lost, all_of, worse = (each[place] - each[first] for each in sums)
        rate = np.divide(lost, all_of * float(share), out=np.zeros(len(place)), where=all_of > 0)
        return np.round(rate * np.minimum(place / windows, 1), DIGITS), worse

    used = within(whole)[0]
    rates, longs, alert = np.zeros(len(place)), np.zeros(len(place), np.int64), np.zeros(len(place), np.bool_)
    lasting = alert.copy()
    for part, factor in PAIRS:
        short = whole // part // SHORT
        if short:
            rate, worse = within(whole // part)
            fast = (rate >= factor) & (worse >= math.ceil(LEAST + LEAST_RATE * share * (whole // part)))
            both = fast & (within(short)[0] >= factor)
            rates, longs = np.where(both & ~alert, rate, rates), np.where(both & ~alert, whole // part, longs)
            alert, lasting = alert | both, lasting | fast
    rate, _ = within(max(whole // SLOW, 1))
    slow = (used >= MOST_USED) & (rate >= 1)
    rates, longs = np.where(slow & ~alert, rate, rates), np.where(slow & ~alert, max(whole // SLOW, 1), longs)
    gone = np.flatnonzero(used > 1)
    return [
        BurnAlert(
            int(ends_ns[first]),
            int(ends_ns[last]),
            float(rates[first]),
            int(longs[first]) * step_ns,
            float(used[first]),
            last == len(place) - 1,
        )
        for first, last in _stretches(alert | slow, lasting | slow)
    ], (int(ends_ns[gone[0]]) if len(gone) else None)


def _stretches(begins: Bool, lasts: Bool) -> list[tuple[int, int]]:
    """Return the stretches of windows that last, from the first window in each at which one begins to the last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], lasts, [False]])))
    found = []
    for low, high in edges.reshape(-1, 2).tolist():
        if (inside := begins[low:high]).any():
            found.append((low + int(np.argmax(inside)), high - 1))
    return found
