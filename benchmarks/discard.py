"""A load whose store keeps nothing: what starting, reading, checking and cutting take, without encoding and sending.

python benchmarks/discard.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import urllib3  # noqa: F401  # a load into Elasticsearch imports it, too

from ingest.core.intervals import Intervals
from ingest.core.pool import keep_freed_memory
from ingest.core.units import parse_instant
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.read.sources import ReadOptions
from ingest.store.records import RunRecord, SourceRecord, Spans, StoredRun

ZERO = "2026-11-01T00:00:00Z"


class Nothing:
    """A store that takes everything and keeps nothing."""

    needs_clock = True
    most_samples = 1 << 53

    def runs(self) -> list[RunRecord]:
        """Return no runs."""
        return []

    def held(self, runs: Sequence[str]) -> dict[str, StoredRun]:
        """Return that nothing is held."""
        return {run: StoredRun(None, 1, []) for run in runs}

    def still(self, run: str) -> AbstractContextManager[None]:
        """Hold nothing."""
        return nullcontext()

    def begin(self, run: RunRecord, sources: Iterable[SourceRecord], *, anew: bool = False) -> None:
        """Note nothing."""

    def packed(self, run: RunRecord, source: SourceRecord, windows: Intervals) -> int:
        """Return how many windows there are."""
        return len(windows)

    def gatherer(self, run: RunRecord, processes: int) -> None:
        """Return None: nothing is added up."""

    def foreseen(self, run: RunRecord) -> None:
        """Return None: nothing will be kept."""

    def write(self, run: RunRecord, source: SourceRecord, packed: int) -> int:
        """Return how many documents there would be."""
        return packed

    def finish_source(self, source: SourceRecord, spans: Spans) -> None:
        """Note nothing."""

    def finish_run(self, run: RunRecord) -> None:
        """Note nothing."""

    def delivered(self) -> Mapping[str, int]:
        """Return nothing."""
        return {}


if __name__ == "__main__":
    keep_freed_memory()
    reading = ReadOptions(run="bench", t0=parse_instant(ZERO).epoch_ns(0))
    account = load([Path(sys.argv[1])], Nothing(), LoadOptions(read=reading))  # type: ignore[arg-type]  # what a load needs
    print(account.documents)
