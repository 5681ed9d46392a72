"""What a tool itself reported of a whole run, beside its logs; a call that reads no such report does without this module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ingest.core.intervals import Histogram
from ingest.core.series import Series
from ingest.core.whole_runs import WholeRun


@dataclass(frozen=True, slots=True)
class Summary:
    """What the tool itself reports of one job (or group of jobs), op and kind, over the whole run.

    `bins` is None unless the tool wrote its histogram (fio json+). `percentiles` are (text, ns) as the tool printed them. `bytes`
    are those that all its I/Os of the op moved, None where the tool does not say. `span_ns` is from when to when of its job's
    time the op ran, None where that is all of it.
    """

    count: int
    runtime_ns: int
    min_ns: int
    max_ns: int
    mean_ns: float
    percentiles: tuple[tuple[str, int], ...] = ()
    bins: Histogram | None = None
    bytes: int | None = None
    span_ns: tuple[int, int] | None = None

    def whole_run(self, series: Series) -> WholeRun:
        """Return this of a series, as the account of its source keeps it."""
        numbers = (self.count, self.min_ns, self.max_ns, self.mean_ns, self.percentiles)
        return WholeRun(series, *numbers, has_bins=self.bins is not None, bytes=self.bytes)


Job = Mapping[tuple[str, str], Summary]
