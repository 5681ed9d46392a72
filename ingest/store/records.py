"""What a store keeps about runs, sources and series, and which rollups it keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ingest.grid import SECOND
from ingest.layout import LogLinear
from ingest.series import IN_FLIGHT, OFFSET, Group, Series

Spans = Mapping[Series, tuple[int, int]]

LOADING, COMPLETE = "loading", "complete"
UNKNOWN_ZERO = "unknown"
HOST, CLUSTER = "host", "cluster"
WHOLE_RUN = 0
COARSE_STEPS = (10 * SECOND, 60 * SECOND)


def rollup_steps(step_ns: int) -> tuple[int, ...]:
    """Return the steps that rollups are kept at: the stored one, 10 s and 1 min if they are multiples of it, the whole run."""
    coarse = [step for step in COARSE_STEPS if step > step_ns and step % step_ns == 0]
    return (step_ns, *coarse, WHOLE_RUN)


def step_of(table: Iterable[Series | Group], step_ns: int) -> int:
    """Return the width of the windows of some series in a run that is stored at `step_ns`: offsets are always in seconds."""
    return SECOND if any(isinstance(key, Series) and key.kind == OFFSET for key in table) else step_ns


def overview_step(step_ns: int) -> int:
    """Return the step that dashboards read rollups at: 10 s, or the stored step where that is wider."""
    return max(step_ns, COARSE_STEPS[0])


@dataclass(frozen=True, slots=True)
class StoredSeries:
    """A series with its number, its layout, whether it has exact values, and from when to when it reaches (if known)."""

    number: int
    series: Series
    layout: LogLinear
    exact: bool
    first_ns: int | None = None
    last_ns: int | None = None

    @property
    def weighted(self) -> bool:
        """Return whether its counts are in-flight weights."""
        return self.series.kind.endswith(IN_FLIGHT)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as its first load froze it: step, attribution, time zero, reading parameters, labels."""

    run: str
    load: str
    step_ns: int
    attribution: str = "completion"
    start_ns: int = 0
    zero: str = UNKNOWN_ZERO
    parameters: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    state: str = LOADING
    loaded: str = ""


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A source of a run: its identity, where it was read, digests of its content and of what was read with it."""

    run: str
    source: str
    path: str
    size: int
    digest: str
    context: str = ""
    state: str = LOADING
    generation: int = 1
    account: Mapping[str, Any] = field(default_factory=dict)
