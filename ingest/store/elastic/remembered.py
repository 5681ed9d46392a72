"""The windows of a run that a load has just written, kept for its findings: they need not be read back from the server.

Findings look at hosts, whose windows are added up for rollups anyway; of a run with one host at its volumes and jobs, which
documents alone know. So the windows of a single host are kept, as long as they fit.

All of it is there once the logs are read, while the server still takes the last documents and all rollups: findings are worked
out meanwhile, from the run as it will be when all is in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ingest.core.csr import distinct
from ingest.core.intervals import Intervals, concatenate
from ingest.core.layout import Layout
from ingest.core.series import Group, Series
from ingest.query.question import Answer, Key, Question
from ingest.store.answers import Catalogue, Plan, answer_from
from ingest.store.elastic.passing import narrowed, widened
from ingest.store.lacking import identified
from ingest.store.records import RunRecord, SourceRecord, StoredSeries
from ingest.store.rollups import RollupKey

MOST_KEPT = 30_000_000  # bytes of bins and counts: of a run, and of all reading processes together
LABELS_KEPT = ("run", "host", "volume", "job", "op", "kind")
LABELS_OF_HOSTS = ("run", "host", "op", "kind")

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


class NotRememberedError(Exception):
    """A question about windows that were not kept."""


@dataclass(frozen=True, slots=True)
class RememberedRun:
    """A run that a load alone has written, as it is once all that was sent is in: what is asked of it is answered from memory.

    `hosts` are its windows added up by host, operation and kind, `kept` those of its series where it has one host.
    """

    record: RunRecord
    sources: Sequence[SourceRecord]
    series: Sequence[StoredSeries]
    hosts: Sequence[Intervals[RollupKey]]
    kept: Windows | None

    def answer(self, question: Question) -> Answer:
        """Return the merged windows that a question asks for, as the server's documents give them.

        NotRememberedError where they were not kept; raises what `answer_from` raises.
        """
        return answer_from(self, [self.record], question, rollups=False)

    def catalogue(self, records: Sequence[RunRecord]) -> Catalogue:
        """Return what is held of the run."""
        accounts = [identified(source.source, source.account) for source in self.sources]
        return Catalogue(records, self.series, {self.record.run: accounts})

    def shares(self, series: Sequence[StoredSeries], key: Key) -> Iterator[Sequence[StoredSeries]]:
        """Yield all series at once."""
        if series:
            yield series

    def document_windows(self, plan: Plan, key: Key, step_ns: int) -> Iterator[Intervals[Group]]:
        """Yield windows of the run under the groups that `key` gives: one part a layout and kind of counts."""
        bounded = plan.begin_ns is not None or plan.end_ns is not None
        if not bounded and set(plan.labels) <= {*LABELS_OF_HOSTS}:
            run = self.record.run
            parts = [part.relabelled(lambda name: key(_of_host(run, name))) for part in self.hosts]
            yield from (part for part in parts if len(part))
        elif not bounded and self.kept is not None and set(plan.labels) <= {*LABELS_KEPT}:
            yield from _joined(part.relabelled(key) for part in self.kept)
        else:
            raise NotRememberedError(f"windows by {', '.join(plan.labels)}")

    def rollup_windows(self, plan: Plan) -> Iterator[Intervals[Series]]:
        """Raise NotRememberedError: there are no rollups yet."""
        raise NotRememberedError("rollups")

    def rollup_span(self, plan: Plan) -> tuple[int, int] | None:
        """Raise NotRememberedError: there are no rollups yet."""
        raise NotRememberedError("rollups")

    def sorted_windows(self, plan: Plan, key: Key, by: Sequence[str]) -> Iterator[Sequence[Intervals[Group]]]:
        """Raise NotRememberedError: windows are not kept in this order."""
        raise NotRememberedError("windows in the order of their groups")


def _joined(parts: Iterable[Intervals[Group]]) -> Iterator[Intervals[Group]]:
    """Yield one part a layout and kind of counts, in the order of keys, so that adding them up copies nothing more."""
    kinds: dict[tuple[Layout, bool], list[Intervals[Group]]] = {}
    for windows in parts:
        if len(windows):
            kinds.setdefault((windows.layout, windows.completions is None), []).append(windows)
    for alike in kinds.values():
        alike.sort(key=lambda windows: (min(windows.table), int(windows.start_ns[0])))
        yield widened(concatenate(alike))


def _of_host(run: str, key: RollupKey) -> Series:
    return Series(run=run, host=key.host, op=key.op, kind=key.kind)


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
