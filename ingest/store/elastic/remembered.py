"""The windows of a run that a load has just written, kept for its findings: they need not be read back from the server.

Findings look at hosts, which rollups know; of a run with one host at its volumes and jobs, which documents alone know. So the
windows of a single host are kept, as long as they fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ingest.core.csr import distinct
from ingest.core.intervals import Intervals, concatenate
from ingest.core.layout import Layout
from ingest.core.series import Group, Series
from ingest.query.question import Key
from ingest.store.answers import Plan
from ingest.store.elastic.holdings import ElasticHoldings
from ingest.store.elastic.passing import narrowed, widened

MOST_KEPT = 30_000_000  # bytes of bins and counts: of a run, and of all reading processes together
LABELS_KEPT = ("run", "host", "volume", "job", "op", "kind")

Windows = list[Intervals[Series]]


@dataclass(slots=True)
class Remembered:
    """The windows of one host, under the labels that findings look at; `kept` is None once they have more than `most` bytes."""

    most: int = field(default_factory=lambda: MOST_KEPT)
    kept: Windows | None = field(default_factory=list)
    _hosts: set[str] = field(default_factory=set)
    _bytes: int = 0

    def add(self, windows: Intervals[Series]) -> None:
        """Add windows of latencies as they are written."""
        self._hosts |= {windows.table[code].host for code in distinct(windows.series).tolist()}
        if self.kept is not None:
            rows = narrowed(_as_documents(windows).relabelled(_labels_kept))
            self.kept.append(rows)
            self._bytes += _bytes_of(rows)
        self._check()

    def take(self, kept: Windows | None) -> None:
        """Add what another process has kept."""
        self.most = MOST_KEPT  # of all of them together
        self.kept = None if kept is None or self.kept is None else self.kept + kept
        self._hosts |= {series.host for part in kept or () for series in part.table}
        self._bytes += sum(map(_bytes_of, kept or ()))
        self._check()

    def _check(self) -> None:
        if len(self._hosts) > 1 or self._bytes > self.most:
            self.kept = None


@dataclass(frozen=True, slots=True)
class Remembering(ElasticHoldings):
    """The holdings of a site, of which the documents of one run are `kept` here as well."""

    run: str
    kept: Windows

    def document_windows(self, plan: Plan, key: Key, step_ns: int) -> Iterator[Intervals[Group]]:
        """Yield windows of a plan's series under the groups that `key` gives."""
        bounded = plan.begin_ns is not None or plan.end_ns is not None
        if plan.record.run != self.run or bounded or not set(plan.labels) <= {*LABELS_KEPT}:
            yield from ElasticHoldings.document_windows(self, plan, key, step_ns)
            return
        kinds: dict[tuple[Layout, bool], list[Intervals[Group]]] = {}
        for part in self.kept:
            windows = part.relabelled(key)
            if len(windows):
                kinds.setdefault((windows.layout, windows.completions is None), []).append(windows)
        for parts in kinds.values():
            # In the order of keys, so that adding them up copies nothing more.
            parts.sort(key=lambda windows: (min(windows.table), int(windows.start_ns[0])))
            yield widened(concatenate(parts))


def _bytes_of(windows: Intervals[Series]) -> int:
    return int(windows.bins.nbytes + windows.counts.nbytes)


def _labels_kept(series: Series) -> Series:
    return Series(**{label: getattr(series, label) for label in LABELS_KEPT})


def _as_documents(windows: Intervals[Series]) -> Intervals[Series]:
    """Return windows as they are read back: those with bins have no bytes, and exact values that say nothing are none."""
    exact = windows.exact
    if exact is None:
        return windows
    exact = replace(exact, bytes=None) if windows.layout.has_bins else exact
    return replace(windows, exact=None if exact.says_nothing else exact)
