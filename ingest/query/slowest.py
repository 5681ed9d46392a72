"""The slowest single operations of runs: who, from when to when, and where the log says so at which offset and of which size.

    slowest_operations(origin, {"nightly-42": "nightly-42"}, Question())["nightly-42"][0].latency_ns

For sources of single operations, such as fio's raw logs. Each operation counts once: of fio's logs of one job that of the kind
which a report shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING

import numpy as np

from ingest.core.labels import Series, fits
from ingest.query.aggregate import run_starts
from ingest.query.offsets import chosen_of, events_in, name_of
from ingest.query.origin import SLOWEST, Origin
from ingest.read import offset_sources
from ingest.read.sources import PREFER_RAW, Source

if TYPE_CHECKING:
    from ingest.core.events import Events
    from ingest.query.files import Files
    from ingest.query.question import Question

MOST = 20


@dataclass(frozen=True, slots=True)
class SlowOperation:
    """An operation of a series that completed at `end_ns` (ns since 1970); offset and size in bytes, None where unknown."""

    series: Series
    end_ns: int
    latency_ns: int
    offset: int | None = None
    size: int | None = None

    @property
    def start_ns(self) -> int:
        """Return when it began."""
        return self.end_ns - self.latency_ns


Slowest = dict[str, list[SlowOperation]]


def slowest_operations(origin: Origin, names: Mapping[str, str], question: Question) -> Slowest:
    """Return the MOST slowest operations of each run in `names` (run: under which name it is shown), the slowest first.

    Range and labels of the question select. Runs without single operations are left out, as are all runs of an origin that
    keeps none. UsageError for labels that there are not.
    """
    find = origin.offers.get(SLOWEST)
    return find(names, question) if find else {}


def of_files(files: Files, names: Mapping[str, str], question: Question) -> Slowest:
    """Return the slowest operations in files; where a raw log and a histogram log hold the same I/Os, those of the raw log."""
    if any(skipped.action == "shadowed" for skipped in files.found.skipped):
        files = files.preferring(PREFER_RAW)
    wanted = chosen_of(question)
    wanted.check(files.found.labels)
    kinds = question.where.get("kind", "*")
    logs = [source for source in files.found.sources if source.context.series.run in names]
    sources = [source for source in offset_sources(logs) if fits(source.context.series.kind, kinds)]
    name, starts, mine, found = name_of(wanted, files.found.labels, names), run_starts(sources), Slowest(), Slowest()

    def work(some: Sequence[Source]) -> None:
        for source in some:
            shown = names[source.context.series.run]
            for events, _ in events_in(source, question, starts[source.context.series.run]):
                mine[shown] = _slowest([*mine.get(shown, ()), *_of(events.where(lambda series: name(series) is not None))])

    for part in files.in_processes([[source] for source in sources], work, lambda: mine):
        for run, operations in part.items():
            found[run] = _slowest([*found.get(run, ()), *operations])
    return {run: operations for run, operations in found.items() if operations}


def _slowest(operations: Sequence[SlowOperation]) -> list[SlowOperation]:
    """Return the MOST slowest; of equally slow ones the first."""
    return nsmallest(MOST, operations, key=lambda one: (-one.latency_ns, one.end_ns, one.series, one.offset or 0))


def _of(events: Events) -> list[SlowOperation]:
    """Return the operations of a chunk that may be among the slowest."""
    latency = events.latency_ns
    least = np.partition(latency, len(latency) - MOST)[len(latency) - MOST] if len(latency) > MOST else 0
    rows = np.flatnonzero(latency >= least)
    if len(rows) > MOST:  # many are as slow as the last of them
        rows = rows[np.lexsort((events.end_ns[rows], -latency[rows]))[:MOST]]
    places = [None if column is None else column[rows].tolist() for column in (events.offset, events.size)]
    offsets, sizes = ([None] * len(rows) if column is None else column for column in places)
    columns = (events.series[rows].tolist(), events.end_ns[rows].tolist(), latency[rows].tolist(), offsets, sizes)
    return [SlowOperation(events.table[series], *rest) for series, *rest in zip(*columns, strict=True)]
