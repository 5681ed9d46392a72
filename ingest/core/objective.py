"""An objective: a percentile that is to stay below a threshold in every window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ingest.core.marks import Phase
from ingest.core.quantiles import Percentile

VIOLATE, HOLD, OK = "violate", "hold", "ok"


@dataclass(frozen=True, slots=True)
class Objective:
    """One promise: a percentile of each window, at most `threshold_ns`, of the series whose labels match the globs in `where`.

    An episode lasts at least `for_ns`; violated windows at most `hold_ns` apart are one episode. `budget` is the share of windows
    that may be violated, None where there is no such promise. Windows that do not lie in all of `phases` are not judged. `line`
    is where it is written.
    """

    name: str
    percentile: Percentile
    threshold_ns: int
    window_ns: int
    for_ns: int
    hold_ns: int
    no_data: str = HOLD
    where: Mapping[str, str] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    line: int = 0
    budget: Fraction | None = None
    phases: tuple[Phase, ...] = ()
