"""Rollups: merged histograms per scope, operation and kind, with their percentiles as plain numbers; the same for every store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ingest.core.documents import known_only
from ingest.core.errors import StoreError
from ingest.core.intervals import NO_BYTES, Intervals, Sum, no_exact
from ingest.core.layout import LogLinear, common_layout
from ingest.core.ranks import STORED, Percentile, Ranked, extremes, percentile_values
from ingest.core.series import Group, Series
from ingest.core.timing import format_duration
from ingest.store.records import CLUSTER, HOST, StoredSeries

MOST_ENTRIES = 1_000_000


def column_of(percentile: Percentile) -> str:
    """Return the name of a stored percentile: p99_9."""
    return percentile.name.replace(".", "_")


VALUES = ("sum", "min", "mean", "max", "exact", "bytes", *map(column_of, STORED))


class Key(NamedTuple):
    """What rollups are merged by, within a run; the host of the cluster is empty."""

    scope: str
    host: str
    op: str
    kind: str


def host_group(key: Series | Group) -> Key:
    """Return what a series counts in on its host."""
    if not isinstance(key, Series):
        raise TypeError("hosts are merged from series")
    return Key(HOST, key.host, key.op, key.kind)


def cluster_group(key: Series | Group) -> Key:
    """Return what a series, or a host's rollup, counts in for the cluster."""
    if not isinstance(key, Series | Key):
        raise TypeError("the cluster is merged from series or hosts")
    return Key(CLUSTER, "", key.op, key.kind)


def key_of(key: Series | Group) -> Key:
    """Return the key of a rollup; TypeError for what is none."""
    if not isinstance(key, Key):
        raise TypeError("rollups are of groups")
    return key


def layouts_of(stored: Sequence[StoredSeries]) -> dict[Key, LogLinear]:
    """Return the layout of each group: the common one of all its series."""
    found = {**layouts_by(stored, host_group), **layouts_by(stored, cluster_group)}
    return {group: common_layout(layouts) for group, layouts in found.items()}


def layouts_by(stored: Iterable[StoredSeries], grouped: Callable[[Series], Key]) -> dict[Key, set[LogLinear]]:
    """Return the layouts of the series of each group."""
    found: dict[Key, set[LogLinear]] = {}
    for one in stored:
        found.setdefault(grouped(one.series), set()).add(one.layout)
    return found


def layouts_moved(stored: Sequence[StoredSeries], mine: set[Series]) -> bool:
    """Return whether the layout of a host or of the cluster is another because of the series that were written now."""
    before: dict[Key, set[LogLinear]] = {}
    after: dict[Key, set[LogLinear]] = {}
    for one in stored:
        for group in (host_group(one.series), cluster_group(one.series)):
            after.setdefault(group, set()).add(one.layout)
            if one.series not in mine:
                before.setdefault(group, set()).add(one.layout)
    return any(common_layout(layouts) != common_layout(after[group]) for group, layouts in before.items())


def merged_in(
    parts: Iterable[Intervals], grouped: Callable[[Series | Group], Key], layouts: dict[Key, LogLinear]
) -> Iterator[Intervals]:
    """Yield windows added up under the group of each row, in the group's layout: one part a layout and kind of counts."""
    buckets: dict[tuple[LogLinear, bool], Sum] = {}
    for part in parts:
        groups = [grouped(key) for key in part.table]
        table = {group: code for code, group in enumerate(dict.fromkeys(groups))}
        codes = np.array([table[group] for group in groups], np.int64)
        moved = replace(part, table=tuple(table), series=codes[part.series])
        targets = [layouts[group] for group in table]
        for target in dict.fromkeys(targets):
            rows = np.flatnonzero(np.array([target == other for other in targets])[moved.series])
            chosen = moved if len(rows) == len(moved) else moved.take(rows)
            if len(rows):
                buckets.setdefault((target, part.completions is None), Sum(MOST_ENTRIES)).add(chosen.in_layout(target))
    for bucket in buckets.values():
        yield from bucket.parts()


class Balance:
    """Samples that went into rollups against those that came out of them, for each way that they are added up."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, int], int] = {}
        self._read = 0

    def reading(self, parts: Iterable[Intervals]) -> Iterator[Intervals]:
        """Yield the parts, counted as they go in."""
        for part in parts:
            self._read += samples_of(part)
            yield part

    def wrote(self, windows: Intervals, step_ns: int) -> None:
        """Count windows of one step that come out; their keys begin with the scope."""
        counts = windows.samples if windows.completions is None else windows.completions
        scopes = [key_of(key).scope for key in windows.table]
        for scope in dict.fromkeys(scopes):
            mine = np.array([scope == other for other in scopes], np.bool_)[windows.series]
            self._sums[scope, step_ns] = self._sums.get((scope, step_ns), 0) + sum(counts[mine].tolist())

    def check(self, run: str) -> None:
        """Raise StoreError unless each way has come to the sum of what was read."""
        for (scope, step), found in sorted(self._sums.items()):
            if found != self._read:
                over = f"over {format_duration(step)}" if step else "over the whole run"
                raise StoreError(
                    f"{run}: the rollups of {scope} {over} hold {found:,} samples, the windows that they are made of "
                    f"{self._read:,}: nothing was changed; run the same command again"
                )


def samples_of(windows: Intervals) -> int:
    """Return how many samples windows hold, completions where they hold shares in flight."""
    return sum((windows.samples if windows.completions is None else windows.completions).tolist())


def without_time(windows: Intervals) -> Intervals:
    """Return the windows with start and end zero, so that all of a group add up to one."""
    zero = np.zeros(len(windows), np.int64)
    return replace(windows, start_ns=zero, end_ns=zero)


def rollup_values(windows: Intervals) -> dict[str, list[Any]]:
    """Return the numbers of merged windows by name: VALUES, latencies in ns; None where unknown."""
    low, high, mean, exact = extremes(windows)
    lows, highs, means = low.tolist(), high.tolist(), mean.tolist()
    sums: list[Any] = [None] * len(windows)
    moved = sums
    if windows.exact is not None:
        sums = known_only(windows.exact.sum_ns, windows.exact.known_sum)
    if not windows.layout.has_bins:
        told = windows.exact or no_exact(len(windows))
        lows, highs = known_only(told.min_ns, told.known_min), known_only(told.max_ns, told.known_max)
        means = [None if unknown else value for value, unknown in zip(means, np.isnan(mean).tolist(), strict=True)]
        moved = known_only(told.moved, told.moved != NO_BYTES)
    ranked = Ranked(windows)
    values = {"sum": sums, "min": lows, "mean": means, "max": highs, "exact": exact.astype(int).tolist(), "bytes": moved}
    for percentile in STORED:
        column = percentile_values(windows, percentile, ranked=ranked).tolist()
        values[column_of(percentile)] = [None if value != value else value for value in column]  # noqa: PLR0124  # NaN
    return values
