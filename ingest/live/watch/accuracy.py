"""How well percentiles are known while a run grows: a watch ends once all of them are known well enough.

The bounds are those of `trend`: between which a percentile of this execution lies, 95 times in 100, from its windows, and what
missing samples leave open beside them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from ingest.core.errors import InputError
from ingest.core.quantiles import Percentile
from ingest.core.units import figure
from ingest.query.origin import Answering
from ingest.query.question import ALL, AUTO, Question
from ingest.query.trend import Night, bounds_of, percentile_of
from ingest.store import Store

SHARE = 10  # asking about all of a long run may take a tenth of the time
OP = "op"

Key = tuple[str, str]  # an operation, and the name of a percentile


def known(origin: Answering, question: Question, run: str, percentiles: Sequence[Percentile]) -> dict[Key, tuple[float, float]]:
    """Return how well percentiles of a run are known by operation and percentile: the distance of the further bound, as a share.

    NaN where the samples or the windows are too few to say. Beside it is the error bound of the bins. `question` selects what
    of the run; nothing where it has no percentiles.
    """
    by_operation = replace(question, by=(OP,))
    try:
        windows = origin.answer(replace(by_operation, step=AUTO))
        whole = origin.answer(replace(by_operation, step=ALL))
    except InputError:  # nothing has come yet that has percentiles
        return {}
    night = Night(run, 0, whole, bounds_of([windows], whole.by, percentiles))
    return {
        (operation, percentile.name): (max(high - value, value - low) / value if value else math.nan, error)
        for percentile in percentiles
        for (operation, *_), (value, low, high, _, _, error) in percentile_of(night, percentile).items()
    }


class Accuracy:
    """Called by a watch after each cycle; `reached` once every percentile of every run and operation is within `wanted` of it.

    `within` has, by run, operation and percentile, the larger distance of a bound from the value, as a share of it; NaN where the
    samples or the windows are too few to say. `bins` is the error bound of the widest bins that carry them: nothing is known
    better than that.
    """

    def __init__(self, wanted: float, percentiles: Sequence[Percentile], clock: Callable[[], float] = time.monotonic) -> None:
        self.wanted, self.percentiles, self._clock = wanted, percentiles, clock
        self.within: dict[tuple[str, str, str], float] = {}
        self.bins = 0.0
        self._next: dict[str, float] = {}

    def __call__(self, store: Store, run: str) -> None:
        """Look at a run, unless that would take more than its share of the time."""
        began = self._clock()
        if began >= self._next.get(run, began):
            self.look(store, run)
            ended = self._clock()
            self._next[run] = ended + SHARE * (ended - began)

    def look(self, store: Store, run: str) -> None:
        """Find out how well the percentiles of a run are known now."""
        for (operation, name), (within, error) in known(store, Question().about([run]), run, self.percentiles).items():
            self.within[run, operation, name] = within
            self.bins = max(self.bins, error)

    @property
    def reached(self) -> bool:
        """Return whether everything is known well enough."""
        return bool(self.within) and all(within <= self.wanted for within in self.within.values())

    def said(self) -> str:
        """Return the percentile that is known worst in words: p99.9 of write is known to 7.2 %."""
        if not self.within:
            return "no percentile is known yet"
        (_, operation, name), worst = max(self.within.items(), key=lambda each: (math.isnan(each[1]), each[1]))
        known = "has too few windows or samples for bounds" if math.isnan(worst) else f"is known to {figure(100 * worst, 2)} %"
        return f"{name}{f' of {operation}' if operation else ''} {known}"

    def why_not(self) -> str:
        """Return why a run has ended before everything is known well enough, and what helps."""
        if self.bins > self.wanted:
            remedy = f"its bins are {figure(100 * self.bins, 2)} % wide: record with finer ones, or ask for less"
        else:
            remedy = "let the benchmark run for longer"
        return f"--until-accuracy {figure(100 * self.wanted)}% is not reached: {self.said()}; {remedy}"
