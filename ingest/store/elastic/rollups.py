"""Rollups: documents -> merged histograms by host, then by cluster, from the server or from what a load remembers.

Rollups of a load that writes what nobody else has written: made from memory, and only what others have is read.

    others  none: this load alone has sources in the run    -> nothing is read
            all complete, and of other hosts                -> their rollups of hosts, for the cluster and the whole run
            any other                                       -> all documents of this load's hosts, as `RollupWriter` does

The first two hold only if nobody joins the run before all is written: whoever calls this finds out afterwards, by writing the
record of the run under the guard of the load's beginning, and has all of it made by `RollupWriter` where somebody has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson

from ingest.core.errors import StoreError
from ingest.core.grid import SECOND, coarsened
from ingest.core.intervals import Int, Intervals, Key, Sum, concatenate, distinct, merged
from ingest.core.intervals import total as sum_of
from ingest.core.labels import OFFSET, Group, Series, kind_preference
from ingest.core.layout import Layout
from ingest.core.units import format_duration
from ingest.query.coverage import Lack
from ingest.query.question import Answer, AnswerKey, Question
from ingest.store.answers import Catalogue, Plan, answer_from
from ingest.store.coverage import complete_rollups, identified
from ingest.store.elastic.aggregations import HOLDS_SAMPLES, LATENCIES, any_of, at_steps, one_of, rollups_of, slab_filter
from ingest.store.elastic.documents import (
    MS,
    READ,
    as_stored,
    columns,
    deletion,
    deletions,
    edges,
    geometry,
    histogram_texts,
    hits,
    inner,
    joined_chunks,
    labels_document,
    search,
    starts_of,
    windows_in,
)
from ingest.store.elastic.runs import SharedWindows, searchable
from ingest.store.elastic.templates import Names, digest, window_ids
from ingest.store.live import ALL_FINAL, Marks
from ingest.store.records import CLUSTER, HOST, WHOLE_RUN, RunRecord, SourceRecord, StoredSeries, overview_step, rollup_steps
from ingest.store.rollups import (
    LOWS,
    RollupKey,
    cluster_group,
    host_group,
    layouts_of,
    merged_in,
    rollup_values,
    samples_of,
    without_time,
)

if TYPE_CHECKING:
    from ingest.store.elastic.store import ElasticStore


# Merged windows -> the bulk lines of rollups.


VERSION_BITS = 48
ROLLUP_HEAD = b'{"@timestamp":%d,%b,"rollup":{%b%b},"interval":{"end_ns":%d},"final":%b,%b,"latency":'
COMPLETE_TEXTS = {None: b"", True: b',"complete":true', False: b',"complete":false'}
EXACT = 1 << VERSION_BITS - 1  # counts below it are distinguished one by one


@dataclass(frozen=True, slots=True)
class RollupDocuments:
    """Makes the documents of one run's rollups; `marks` say which windows are final, `missing` what the run lacks.

    `kind` is the default one of the run. `missing` None is for a server that was set up before rollups said whether they are
    complete, and not `wide` for one of before `LOWS`, the start of the run and its default kind.
    """

    run: RunRecord
    names: Names
    marks: Marks
    kind: str
    missing: tuple[Lack, ...] | None = ()
    wide: bool = True

    def lines(self, windows: Intervals[RollupKey], step_ns: int, generation: int) -> Iterator[Sequence[bytes]]:
        """Yield the bulk lines of merged windows, each document in pieces."""
        values = rollup_values(windows)
        names = [name for name in values if self.wide or name not in LOWS.values()]
        numbers = zip(*(values[name] for name in names), strict=True)
        texts = histogram_texts(windows) if windows.layout.has_bins else repeat(b"", len(windows))
        keys = windows.table
        prefixes = [digest([self.run.run, *key, step_ns]) for key in keys]
        ids = window_ids(prefixes, windows.series, windows.start_ns, step_ns)
        counts = (windows.samples if windows.completions is None else windows.completions).tolist()
        versions = versions_of(generation, windows.samples).tolist()
        layout = geometry(windows.layout)
        codes, starts, ends = windows.series.tolist(), windows.start_ns.tolist(), windows.end_ns.tolist()
        indices = self.names.of("rollups", windows.start_ns)
        whole: list[bool | None] = [None if self.missing is None else True] * len(windows)
        if self.missing:
            whole = [bool(flag) for flag in complete_rollups(windows, step_ns, self.missing)]
        heads = [self._of_key(key, step_ns, generation) for key in keys]
        finals = [self.marks.of(key.host) for key in keys]
        field = b"" if not windows.layout.has_bins else b',"histogram":'
        if windows.completions is not None and field:
            field = b'},"in_flight":{"histogram":'
        for index, id_, version, code, start, end, count, row, histogram, complete in zip(
            indices, ids, versions, codes, starts, ends, counts, numbers, texts, whole, strict=True
        ):
            known = {name: value for name, value in zip(names, row, strict=True) if value is not None}
            latency = orjson.dumps({**layout, "count": count, **known, "exact": bool(known["exact"])})
            of_key, rollup, generations = heads[code]
            final = b"true" if end <= finals[code] else b"false"
            parts = start // MS, of_key, rollup, COMPLETE_TEXTS[complete], end, final, generations
            yield action(index, id_, version), ROLLUP_HEAD % parts, latency[:-1], field, histogram, b"}}\n"

    def _of_key(self, key: RollupKey, step_ns: int, generation: int) -> tuple[bytes, bytes, bytes]:
        """Return what all rollups of a key and step have alike, as JSON: its labels, what sort of rollup it is, and the rest."""
        head = self.head(key, (0, 0), step_ns, generation)
        rollup, *_ = (head.pop(name) for name in ("rollup", "@timestamp", "interval", "final"))
        rest: dict[str, Any] = {name: head.pop(name) for name in ("generation", "labels") if name in head}
        return inner(head), inner(rollup), inner(rest)

    def head(self, key: RollupKey, span: tuple[int, int], step_ns: int, generation: int) -> dict[str, Any]:
        """Return the fields of a rollup beside its latencies, and beside whether it is complete."""
        start, end = span
        own, wide = step_ns == self.run.step_ns, step_ns == overview_step(self.run.step_ns)
        rollup = {"scope": key.scope, "step_ms": step_ns // MS, "stored": own, "overview": wide}
        labels = labels_document(Series(run=self.run.run, **_labels_of(key)))
        if self.wide:
            rollup["default_kind"] = key.kind == self.kind
            labels["run"]["start"] = self.run.start_ns // MS
        return {
            "@timestamp": start // MS,
            **labels,
            "kind_preference": kind_preference(key.kind),
            "rollup": rollup,
            "interval": {"end_ns": end},
            "final": end <= self.marks.of(key.host),
            "generation": generation,
            **({"labels": searchable(self.run.labels)} if self.run.labels else {}),
        }


def versions_of(generation: int, samples: Int) -> Int:
    """Return the versions of rollups: rising with the generation, and within one with their counts.

    Counts from 2^47 on are distinguished in steps of 2^16: however large, they stay below the next generation.
    """
    return (generation << VERSION_BITS) + np.where(samples < EXACT, samples, EXACT + (samples - EXACT >> 16))


def action(index: str, id_: str, version: int) -> bytes:
    """Return the action line of a rollup: its version must not be below the stored one."""
    line = b'{"index":{"_index":"%b","_id":"%b","version":%d,"version_type":"external_gte"}}\n'
    return line % (index.encode(), id_.encode(), version)


# Windows as they go from one process to another, and are held in great number: in as few bytes as they fit in.


def narrowed(part: Intervals[Key]) -> Intervals[Key]:
    """Return windows with bins and counts of 2 or 4 bytes each where they fit."""
    return replace(part, bins=_narrow(part.bins), counts=_narrow(part.counts))


def widened(part: Intervals[Key]) -> Intervals[Key]:
    """Return windows with bins and counts of the full width that sums need."""
    return replace(part, bins=part.bins.astype(np.int64, copy=False), counts=part.counts.astype(np.int64, copy=False))


def _narrow(column: Any) -> Any:
    if not len(column):
        return column
    most = int(column.max())
    return column.astype(np.uint16) if most < 1 << 16 else column.astype(np.int32) if most < 1 << 31 else column


# The windows of a run that a load has just written, kept for its findings: they need not be read back from the server.
#
# Findings look at hosts, whose windows are added up for rollups anyway; of a run with one host at its volumes and jobs, which
# documents alone know. So these windows are kept, as long as they fit.
#
# All of it is there once the logs are read, while the server still takes the last documents and all rollups: findings are
# worked out meanwhile, from the run as it will be when all is in.


MOST_KEPT = 30_000_000  # bytes of bins and counts: of a run, and of all reading processes together
LABELS_KEPT = ("run", "host", "volume", "job", "tag", "op", "kind")
LABELS_OF_HOSTS = ("run", "host", "op", "kind")

Windows = list[Intervals[Series]]


@dataclass(slots=True)
class CachedWindows:
    """The windows of a run, under the labels that findings look at; `kept` is None once they have more than `most` bytes."""

    most: int = field(default_factory=lambda: MOST_KEPT)
    kept: Windows | None = field(default_factory=list)
    _bytes: int = 0

    def add(self, windows: Intervals[Series]) -> None:
        """Add windows of latencies as they are written."""
        if self.kept is not None:
            rows = narrowed(
                _as_documents(windows).relabelled(
                    lambda series: Series(**{label: getattr(series, label) for label in LABELS_KEPT})
                )
            )
            self.kept.append(rows)
            self._bytes += _bytes_of(rows)
        self._check()

    def take(self, kept: Windows | None) -> None:
        """Add what another process has kept."""
        self.most = MOST_KEPT  # of all of them together
        self.kept = None if kept is None or self.kept is None else self.kept + kept
        self._bytes += sum(map(_bytes_of, kept or ()))
        self._check()

    def _check(self) -> None:
        if self._bytes > self.most:
            self.kept = None


class NotCachedError(Exception):
    """A question about windows that were not kept."""


@dataclass(frozen=True, slots=True)
class CachedRun:
    """A run that a load alone has written, as it is once all that was sent is in: what is asked of it is answered from memory.

    `hosts` are its windows added up by host, operation and kind, `kept` those of its series where they fit.
    """

    record: RunRecord
    sources: Sequence[SourceRecord]
    series: Sequence[StoredSeries]
    hosts: Sequence[Intervals[RollupKey]]
    kept: Windows | None

    def answer(self, question: Question) -> Answer:
        """Return the merged windows that a question asks for, as the server's documents give them.

        NotCachedError where they were not kept; raises what `answer_from` raises.
        """
        return answer_from(self, [self.record], question, rollups=False)

    def catalogue(self, records: Sequence[RunRecord]) -> Catalogue:
        """Return what is held of the run."""
        accounts = [identified(source.source, source.account) for source in self.sources]
        return Catalogue(records, self.series, {self.record.run: accounts})

    def shares(self, series: Sequence[StoredSeries], key: AnswerKey, windows: int) -> Iterator[Sequence[StoredSeries]]:
        """Yield all series at once."""
        if series:
            yield series

    def document_windows(self, plan: Plan, key: AnswerKey, step_ns: int) -> Iterator[Intervals[Group]]:
        """Yield windows of the run under the groups that `key` gives: one part a layout and kind of counts."""
        bounded = plan.begin_ns is not None or plan.end_ns is not None
        if not bounded and set(plan.labels) <= {*LABELS_OF_HOSTS}:
            run = self.record.run
            parts = [part.relabelled(lambda name: key(Series(run=run, **_labels_of(name)))) for part in self.hosts]
            yield from (part for part in parts if len(part))
        elif not bounded and self.kept is not None and set(plan.labels) <= {*LABELS_KEPT}:
            yield from _joined(part.relabelled(key) for part in self.kept)
        else:
            raise NotCachedError(f"windows by {', '.join(plan.labels)}")

    def rollup_windows(self, plan: Plan) -> Iterator[Intervals[Series]]:
        """Raise NotCachedError: there are no rollups yet."""
        raise NotCachedError("rollups")

    def rollup_span(self, plan: Plan) -> tuple[int, int] | None:
        """Raise NotCachedError: there are no rollups yet."""
        raise NotCachedError("rollups")

    def sorted_windows(self, plan: Plan, key: AnswerKey, by: Sequence[str]) -> Iterator[Sequence[Intervals[Group]]]:
        """Raise NotCachedError: windows are not kept in this order."""
        raise NotCachedError("windows in the order of their groups")


def _joined(parts: Iterable[Intervals[Group]]) -> Iterator[Intervals[Group]]:
    """Yield one part a layout and kind of counts, in the order of keys, so that adding them up copies nothing more."""
    kinds: dict[tuple[Layout, bool], list[Intervals[Group]]] = {}
    for windows in parts:
        if len(windows):
            kinds.setdefault((windows.layout, windows.completions is None), []).append(windows)
    for alike in kinds.values():
        alike.sort(key=lambda windows: (min(windows.table), int(windows.start_ns[0])))
        yield widened(concatenate(alike))


def _labels_of(key: RollupKey) -> dict[str, Any]:
    return {"host": key.host, "op": key.op, "kind": key.kind}


def _bytes_of(windows: Intervals[Series]) -> int:
    return int(windows.bins.nbytes + windows.counts.nbytes)


def _as_documents(windows: Intervals[Series]) -> Intervals[Series]:
    """Return windows as they are read back: those with bins have no bytes, and exact values that say nothing are none."""
    exact = windows.exact
    if exact is None:
        return windows
    exact = replace(exact, bytes=None) if windows.layout.has_bins else exact
    return replace(windows, exact=None if exact.says_nothing else exact)


# The windows of hosts that a load has written, added up as it goes: what its rollups are made of where nobody else writes them.
#
# Each reading process adds up what it packs, and hands its sums over when it ends: they are far fewer than the windows. Memory
# is bounded. Where a load has more windows than fit, all are let go, and read back from the server.


MOST_ENTRIES, LEAST_ENTRIES = 2_000_000, 500_000  # 16 bytes each; of all reading processes, of one of them
FOREVER = 1 << 62

Kind = tuple[Layout, bool]


class ProcessTotals(NamedTuple):
    """What one process has gathered: sums of its windows, none where they are not `whole`; of how many samples in all.

    `kept` are the windows themselves, if they are of one host and few enough.
    """

    whole: bool
    samples: int
    parts: list[Intervals[RollupKey]]
    kept: Windows | None


@dataclass(slots=True)
class HostTotals:
    """Sums of windows of a run's step by host, operation and kind; once more than fit they are let go, and no longer `whole`.

    `samples` are those of all windows that were added, also where these were let go.
    """

    most_entries: int = field(default_factory=lambda: MOST_ENTRIES)
    whole: bool = True
    samples: int = 0
    step_ns: int = 1
    keeps_bytes: bool = True
    remembered: CachedWindows = field(default_factory=CachedWindows)
    _parts: dict[Kind, list[Intervals[RollupKey]]] = field(default_factory=dict)
    _entries: int = 0
    _limit: int = 0

    def share(self, processes: int) -> None:
        """Hold no more than is left for one of so many reading processes."""
        self.most_entries = max(min(LEAST_ENTRIES, MOST_ENTRIES), MOST_ENTRIES // processes)
        self.remembered.most //= processes

    def add(self, windows: Intervals[Series]) -> None:
        """Add windows of series. Offsets have no rollups and are left out."""
        latencies = all(series.kind != OFFSET for series in windows.table)
        rows = windows if latencies else windows.where(lambda series: series.kind != OFFSET)
        rows = rows if self.keeps_bytes else without_bytes(rows)
        if len(rows):
            self.samples += sum_of(rows.counts if rows.completions is None else rows.completions)
            self.remembered.add(rows)
            if self.whole:
                self._hold(coarsened(rows.relabelled(host_group), self.step_ns))

    def take(self, sums: ProcessTotals) -> None:
        """Add what a reading process has handed over."""
        self.most_entries = MOST_ENTRIES  # of all of them together
        self.samples += sums.samples
        self.whole &= sums.whole
        for part in sums.parts:
            self._hold(widened(part))
        self.remembered.take(sums.kept)

    def sums(self) -> ProcessTotals:
        """Hand over what was gathered, in as few bytes as it fits in: it goes from one process to another."""
        sums = ProcessTotals(self.whole, self.samples, [narrowed(part) for part in self.parts()], self.remembered.kept)
        self.samples, self._parts, self._entries, self.remembered = 0, {}, 0, CachedWindows()
        return sums

    def _hold(self, windows: Intervals[RollupKey]) -> None:
        self._parts.setdefault((windows.layout, windows.completions is None), []).append(windows)
        self._entries += len(windows.bins)
        if self._entries > max(self._limit, self.most_entries):
            self.settle()

    def parts(self) -> list[Intervals[RollupKey]]:
        """Return the sums: one part a layout and kind of counts."""
        self.settle()
        return [part for parts in self._parts.values() for part in parts]

    def settle(self) -> None:
        """Add up what was added; all of it is let go where that is more than fits, or some was let go elsewhere."""
        self._parts = {kind: [merged(parts)] for kind, parts in self._parts.items()}
        self._entries = sum(len(part.bins) for [part] in self._parts.values())
        self.whole &= self._entries <= self.most_entries
        if not self.whole:
            self._parts, self._entries = {}, 0
        self._limit = self._entries + self.most_entries // 4


def without_bytes(windows: Intervals[Key]) -> Intervals[Key]:
    """Return windows without the bytes that were moved in them."""
    if windows.exact is None or windows.exact.bytes is None:
        return windows
    return replace(windows, exact=replace(windows.exact, bytes=None))


# Rollups: documents -> merged histograms by host, then by cluster, for the windows that a load has touched.
#
# Several loaders may write rollups of one run at once. Each stage refreshes, reads the run's generation, reads back what it
# merges, and writes with version generation * 2^48 + count (`external_gte`): while samples are only added, whoever refreshed
# last has seen most and wins. A loader that takes something away (a source read again, a replaced run) raises the generation
# after it has refreshed: from then on everybody reads what is left, and whatever was merged before loses.
#
# Hosts are merged from documents; the cluster, and the whole run, from the rollups of hosts. A cell that has lost its last
# sample is overwritten by one without any.


SLAB_NS = 60 * SECOND
OLDEST_FIRST = ({"@timestamp": "asc"}, "_shard_doc")
WINDOWS_OF_HOSTS = ({"term": {"rollup.scope": HOST}}, {"range": {"rollup.step_ms": {"gt": WHOLE_RUN}}})

Layouts = dict[RollupKey, Layout]


class Stage(NamedTuple):
    """The rollups of one scope and step."""

    scope: str
    step_ns: int


@dataclass(frozen=True, slots=True)
class RollupWriter:
    """Makes the rollups of one run anew where a load has touched it. `lowered` says that something may have gone.

    `marks` say which windows are final; a run that is `grown` to its end has rollups of the whole run, too. `missing` are the
    entries that the run lacks, None where the server's rollups have no field for it. Where all rollups of a run are made `anew`,
    whatever was touched, those of older generations are deleted: of hosts before the cluster's are made of them. `kind` is the
    default one of the run.
    """

    store: ElasticStore
    run: RunRecord
    touched: SharedWindows
    kind: str
    lowered: bool = False
    marks: Marks = ALL_FINAL
    grown: bool = True
    anew: bool = False
    missing: tuple[Lack, ...] | None = ()
    sent: Counter[Stage] = field(default_factory=Counter)

    @property
    def slab_ns(self) -> int:
        """Return the width of the time slabs that are merged one after another; no window of any step straddles two."""
        return slab_of(self.run.step_ns)

    @property
    def _steps(self) -> tuple[int, ...]:
        """Return the steps that windows of rollups have."""
        return rollup_steps(self.run.step_ns)[:-1]

    @property
    def widest_ns(self) -> int:
        """Return the widest of these steps."""
        return self._steps[-1]

    @property
    def _documents(self) -> RollupDocuments:
        return RollupDocuments(self.run, self.store.names, self.marks, self.kind, self.missing, self.store.site.wide_rollups)

    def write(self, stored: Sequence[StoredSeries]) -> None:
        """Write the rollups of hosts, then those of the cluster and of the whole run; `stored` are all series of the run."""
        self._refresh("intervals")  # offsets have no rollups, and searches must see them, too
        if not self.anew and not len(self.touched.slabs(self.slab_ns)):
            return
        layouts = layouts_of(stored)
        first = self._generation()
        self.write_hosts(stored, layouts, first)
        self.write_cluster(layouts, first)

    def write_cluster(self, layouts: Layouts, first: int) -> None:
        """Write the rollups of the cluster and of the whole run, those of hosts being sent; `first` is their generation."""
        self._refresh("rollups")
        if self.anew:
            self._drop_older(first, WINDOWS_OF_HOSTS)
        generation = self._generation()
        gone = Gone(self._touched_cluster(), self._steps)
        query = [*rollups_of(self.run.run, HOST, self.run.step_ns), *self._in_slabs(self.touched.slabs(self.slab_ns))]
        for parts in self.slabs(self.store.names.all("rollups"), query, self.run.step_ns):
            self._write_steps(merged_in(parts, cluster_group, layouts), gone, generation)
        self._write_gone(gone, generation)
        if self.grown:
            self._write_whole(layouts, generation)
        if self.anew:
            self._refresh("rollups")
            self._drop_older(generation, [{"bool": {"must_not": [{"bool": {"filter": WINDOWS_OF_HOSTS}}]}}])
        self.store.sender.show(self.store.names.all("rollups"))
        self.check_sent(generation)

    def write_at_once(self, stored: Sequence[StoredSeries], generation: int) -> None:
        """Write the rollups of windows from the documents of all hosts, read once: for a run that nobody else is writing to.

        Not those of the whole run.
        """
        slabs, layouts = self.touched.slabs(self.slab_ns), layouts_of(stored)
        if not len(slabs):
            return
        query = self.documents_of(stored, slabs)
        gone = Gone({**self._touched_hosts(), **self._touched_cluster()}, self._steps)
        touched = set(self.touched.hosts)
        for parts in self.slabs(self.store.names.all("intervals"), query, self.run.step_ns):
            hosts = [merged([part]) for part in merged_in(parts, host_group, layouts)]
            self._write_steps((part.where(lambda key: key.host in touched) for part in hosts), gone, generation)
            self._write_steps(merged_in(hosts, cluster_group, layouts), gone, generation)
        self._write_gone(gone, generation)
        self.store.sender.show(self.store.names.all("rollups"))

    def documents_of(self, stored: Sequence[StoredSeries], slabs: Int, *hosts: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the filters for the documents of the series of the run in time slabs, of some hosts."""
        step = at_steps(self.run, stored)
        return [{"term": {"run.id": self.run.run}}, step, LATENCIES, *hosts, *self._in_slabs(slabs)]

    def _in_slabs(self, slabs: Int) -> list[dict[str, Any]]:
        """Return the filter for windows in time slabs; none where all of them are made anew."""
        return [] if self.anew else [slab_filter(slabs, self.slab_ns)]

    def _touched_hosts(self) -> dict[RollupKey, Int]:
        return {key: self.touched.starts(key) for key in self.touched.windows}

    def _touched_cluster(self) -> dict[RollupKey, Int]:
        touched: dict[RollupKey, Int] = {}
        for host in self.touched.windows:
            key = cluster_group(host)
            touched[key] = np.union1d(touched.get(key, np.empty(0, np.int64)), self.touched.starts(host))
        return touched

    def check_sent(self, generation: int) -> None:
        """Raise StoreError where rollups hold less than was sent, and nobody has taken anything away since.

        Another load may have added to them: more is no fault.
        """
        hosts: dict[str, Any] = {"bool": {"filter": [{"term": {"rollup.scope": HOST}}, one_of("host.name", self.touched.hosts)]}}
        touched = [] if self.anew else [any_of([hosts, {"term": {"rollup.scope": CLUSTER}}])]
        windows = [*self._in_slabs(self.touched.slabs(self.slab_ns)), *touched]
        stages = {f"{stage.scope} {stage.step_ns}": stage for stage in self.sent}
        aggs = {
            name: {
                "filter": {"bool": {"filter": [*rollups_of(self.run.run, scope, step), *(windows if step else [])]}},
                "aggs": {"count": {"sum": {"field": "latency.count"}}},
            }
            for name, (scope, step) in stages.items()
        }
        body = {"size": 0, "query": {"bool": {"filter": [{"term": {"run.id": self.run.run}}]}}, "aggs": aggs}
        sums = search(self.store.connection, self.store.names.all("rollups"), body).get("aggregations") or {} if aggs else {}
        for name, stage in stages.items():
            there = int(sums[name]["count"]["value"]) if name in sums else 0
            if there < self.sent[stage] and self.store.records.generation(self.run.run) == generation:
                raise StoreError(
                    f"{self.run.run}: {self.sent[stage]:,} samples were sent in rollups ({stage.scope}, "
                    f"{format_duration(stage.step_ns) if stage.step_ns else 'whole run'}) and {there:,} are in the store: "
                    "run the same command again"
                )

    def _refresh(self, index: str) -> None:
        self.store.sender.flush()
        self.store.sender.refresh(self.store.names.all(index))

    def _generation(self) -> int:
        records = self.store.records
        return records.raise_generation(self.run.run) if self.lowered or self.anew else records.generation(self.run.run)

    def write_hosts(self, stored: Sequence[StoredSeries], layouts: Layouts, generation: int) -> None:
        """Write the rollups of hosts from their documents."""
        hosts = [] if self.anew else [one_of("host.name", self.touched.hosts)]
        index, query = self.store.names.all("intervals"), self.documents_of(stored, self.touched.slabs(self.slab_ns), *hosts)
        gone = Gone(self._touched_hosts(), self._steps)
        for parts in self.slabs(index, query, self.run.step_ns):
            self._write_steps(merged_in(parts, host_group, layouts), gone, generation)
        self._write_gone(gone, generation)

    def _write_whole(self, layouts: Layouts, generation: int) -> None:
        whole: Sum[RollupKey] = Sum()
        for parts in self.slabs(self.store.names.all("rollups"), rollups_of(self.run.run, HOST, self.widest_ns), self.widest_ns):
            self.add_whole(whole, list(merged_in(parts, host_group, layouts)), layouts)
        filled = {"bool": {"filter": [*rollups_of(self.run.run, HOST, self.run.step_ns), HOLDS_SAMPLES]}}
        if found := edges(self.store.connection, self.store.names.all("rollups"), filled):
            low, high = found[0] * MS, found[1] * MS + self.run.step_ns
        else:
            low = high = self.run.start_ns
        self.write_whole(whole, (low, high), generation)
        self.store.sender.flush()
        self.drop_strays(low)

    def add_whole(self, whole: Sum[RollupKey], hosts: Sequence[Intervals[RollupKey]], layouts: Layouts) -> None:
        """Add windows of hosts to the sums of the whole run, of hosts and of the cluster."""
        for windows in (*hosts, *merged_in(hosts, cluster_group, layouts)):
            whole.add(without_time(windows))

    def write_whole(self, whole: Sum[RollupKey], span: tuple[int, int], generation: int) -> None:
        """Write the rollups of the whole run, which reaches from the one time to the other; touched ones without samples, too."""
        low, high = span
        gone = {*self.touched.windows, *map(cluster_group, self.touched.windows)}
        for part in whole.parts():
            gone -= set(part.table)
            spanned = replace(part, start_ns=np.full(len(part), low), end_ns=np.full(len(part), high))
            self._send(spanned, WHOLE_RUN, generation)
        for key in sorted(gone):
            self._send_empty(key, np.array([low]), WHOLE_RUN, generation)

    def drop_strays(self, start_ns: int) -> None:
        """Delete rollups of the whole run from indices of a period in which it no longer begins."""
        home = self.store.names.of("rollups", np.array([start_ns]))[0]
        query = [{"term": {"run.id": self.run.run}}, {"term": {"rollup.step_ms": WHOLE_RUN}}]
        there = hits(self.store.connection, self.store.names.all("rollups"), {"bool": {"filter": query}}, source=False)
        self.store.sender.put([deletion(hit["_index"], hit["_id"]) for hit in there if hit["_index"] != home])

    def _drop_older(self, generation: int, filters: Sequence[Mapping[str, Any]]) -> None:
        """Delete the rollups of the run that are of an older generation."""
        query: list[Mapping[str, Any]] = [
            {"term": {"run.id": self.run.run}},
            {"range": {"generation": {"lt": generation}}},
            *filters,
        ]
        self.store.sender.put(deletions(self.store.connection, self.store.names.all("rollups"), query))
        self._refresh("rollups")

    def slabs(self, index: str, filters: Sequence[Mapping[str, Any]], step_ns: int) -> Iterator[list[Intervals[Series]]]:
        """Yield the windows of a query under their series, all of one time slab after another."""
        held: list[Intervals[Series]] = []
        slab = None
        for documents in columns(self.store.connection, index, {"bool": {"filter": list(filters)}}, READ, OLDEST_FIRST):
            filled = documents.where(lambda shape: "layout" in shape["latency"])
            starts = starts_of(filled)
            numbers = starts // self.slab_ns
            for number in distinct(numbers).tolist():
                if slab is not None and number != slab:
                    yield held
                    held = []
                slab = number
                rows = np.flatnonzero(numbers == number)
                windows = windows_in(filled.take(rows), starts[rows] + step_ns, as_stored)
                held += [coarsened(part, step_ns) for part in windows]
        if held:
            yield held

    def _write_steps(self, parts: Iterable[Intervals[RollupKey]], gone: Gone, generation: int) -> None:
        """Write merged windows at each step; they are taken out of `gone`."""
        for part in parts:
            if len(part):
                self.write_windows(merged([part]), generation, gone)

    def write_windows(self, windows: Intervals[RollupKey], generation: int, gone: Gone | None = None) -> Intervals[RollupKey]:
        """Write merged windows at each step, taken out of `gone`; return those of the widest."""
        for step in self._steps:
            windows = windows if step == self.run.step_ns else merged([coarsened(windows, step)])
            if gone is not None:
                gone.found(windows, step)
            self._send(windows, step, generation)
        return windows

    def _write_gone(self, gone: Gone, generation: int) -> None:
        """Overwrite the rollups of windows that have lost their last sample."""
        for (key, step), starts in gone.cells.items():
            if len(starts):
                self._send_empty(key, starts, step, generation)

    def _send_empty(self, key: RollupKey, starts: Int, step: int, generation: int) -> None:
        ids = window_ids([digest([self.run.run, *key, step])], np.zeros(len(starts), np.int64), starts, step)
        self.store.sender.put(
            action(index, id_, generation << VERSION_BITS)
            + orjson.dumps({**self._documents.head(key, (start, start + step), step, generation), "latency": {"count": 0}})
            + b"\n"
            for index, id_, start in zip(self.store.names.of("rollups", starts), ids, starts.tolist(), strict=True)
        )

    def _send(self, windows: Intervals[RollupKey], step_ns: int, generation: int) -> None:
        for scope, rows in windows.split(lambda key: key.scope):
            self.sent[Stage(scope, step_ns)] += samples_of(rows)
        for chunk in joined_chunks(self._documents.lines(windows, step_ns, generation)):
            self.store.sender.send(chunk)


def slab_of(step_ns: int) -> int:
    """Return the width of the time slabs of a run."""
    return max(SLAB_NS, step_ns)


class Gone:
    """Windows that were touched and of which nothing was found yet, by key and step."""

    def __init__(self, touched: Mapping[RollupKey, Int], steps: Sequence[int]) -> None:
        self.cells = {(key, step): distinct(starts // step * step) for key, starts in touched.items() for step in steps}

    def found(self, windows: Intervals[RollupKey], step_ns: int) -> None:
        """Take windows out."""
        for code, key in enumerate(windows.table):
            cell = (key, step_ns)
            if cell in self.cells:
                self.cells[cell] = np.setdiff1d(self.cells[cell], windows.start_ns[windows.series == code])


class OwnRollups:
    """Makes the rollups of one load from the windows that it has gathered; `others` are sources of the run that are not its."""

    def __init__(self, writer: RollupWriter, gathered: HostTotals, layouts: Layouts) -> None:
        self._writer = writer
        self._gathered = gathered
        self._layouts = layouts
        self._slabs = writer.touched.slabs(writer.slab_ns)

    def write_alone(self, generation: int, *, others: bool) -> None:
        """Write all rollups from memory, with those of hosts that complete `others` have left."""
        writer, whole = self._writer, Sum[RollupKey]()
        low, high = FOREVER, -FOREVER
        hosts: list[Intervals[RollupKey]] = []
        for part in merged_in(self._gathered.parts(), _itself, self._layouts):
            windows = merged([part])
            hosts.append(windows)
            low, high = min(low, int(windows.start_ns.min())), max(high, int(windows.end_ns.max()))
            widest = writer.write_windows(windows, generation)
            writer.add_whole(whole, [widest], self._layouts)
        theirs: list[Intervals[RollupKey]] = []
        if others:
            query = [*rollups_of(writer.run.run, HOST, writer.run.step_ns), slab_filter(self._slabs, writer.slab_ns)]
            theirs = [part for parts in self._of_others(query, writer.run.step_ns) for part in parts]
        every = [*hosts, *theirs]
        for part in merged_in(every, cluster_group, self._layouts):
            writer.write_windows(merged([part]), generation)
        if others:
            for parts in self._of_others(rollups_of(writer.run.run, HOST, writer.widest_ns), writer.widest_ns):
                writer.add_whole(whole, list(merged_in(parts, _itself, self._layouts)), self._layouts)
            filled = [*rollups_of(writer.run.run, HOST, writer.run.step_ns), HOLDS_SAMPLES, self._not_mine()]
            if found := edges(writer.store.connection, writer.store.names.all("rollups"), {"bool": {"filter": filled}}):
                low, high = min(low, found[0] * MS), max(high, found[1] * MS + writer.run.step_ns)
        writer.write_whole(whole, (low, high), generation)
        if others:
            writer.drop_strays(low)

    def _of_others(self, query: Sequence[dict[str, Any]], step_ns: int) -> Iterator[list[Intervals[RollupKey]]]:
        """Yield rollups of hosts that this load has nothing of, slab by slab."""
        for parts in self._writer.slabs(self._writer.store.names.all("rollups"), [*query, self._not_mine()], step_ns):
            yield [part.relabelled(host_group) for part in parts]

    def _not_mine(self) -> dict[str, Any]:
        """Return the query for rollups of hosts that this load has nothing of."""
        return {"bool": {"must_not": [one_of("host.name", self._writer.touched.hosts)]}}


def _itself(key: RollupKey) -> RollupKey:
    return key
