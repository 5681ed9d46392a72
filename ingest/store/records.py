"""What a store keeps about runs and sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ingest.series import Series

Spans = Mapping[Series, tuple[int, int]]

LOADING, COMPLETE = "loading", "complete"
UNKNOWN_ZERO = "unknown"


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
