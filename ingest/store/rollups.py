"""Rollups: merged histograms per scope, operation and kind, with their percentiles as plain numbers; the same for every store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ingest.core.documents import known_only
from ingest.core.errors import StoreError
from ingest.core.intervals import NO_BYTES, Intervals, Key, Sum, no_exact
from ingest.core.labels import Series, default_kind
from ingest.core.layout import Layout, common_layout
from ingest.core.quantiles import STORED, Percentile, Ranked, extremes, percentile_values
from ingest.core.units import format_duration
from ingest.store.records import CLUSTER, HOST, StoredSeries

MOST_ENTRIES = 300_000  # bins of windows that are added up together: 5 MB, as many as are read at once


def column_of(percentile: Percentile) -> str:
    """Return the name of a stored percentile: p99_9."""
    return percentile.name.replace(".", "_")


LOWS = {percentile: f"{column_of(percentile)}_low" for percentile in STORED}
VALUES = ("sum", "min", "mean", "max", "exact", "bytes", *map(column_of, STORED), *LOWS.values())


class RollupKey(NamedTuple):
    """What rollups are merged by, within a run; the host of the cluster is empty."""

    scope: str
    host: str
    op: str
    kind: str


def host_group(series: Series) -> RollupKey:
    """Return the key of a series in the rollups of hosts."""
    return RollupKey(HOST, series.host, series.op, series.kind)


def cluster_group(key: Series | RollupKey) -> RollupKey:
    """Return the key of a series, or of a host's rollup, in the rollups of the cluster."""
    return RollupKey(CLUSTER, "", key.op, key.kind)


def layouts_of(stored: Iterable[StoredSeries]) -> dict[RollupKey, Layout]:
    """Return the layout of each group: the common one of all its series."""
    every = list(stored)
    by_group = {**layouts_by(every, host_group), **layouts_by(every, cluster_group)}
    return {group: common_layout(layouts) for group, layouts in by_group.items()}


def layouts_by(stored: Iterable[StoredSeries], grouped: Callable[[Series], RollupKey]) -> dict[RollupKey, set[Layout]]:
    """Return the layouts of the series of each group."""
    layouts: dict[RollupKey, set[Layout]] = {}
    for member in stored:
        layouts.setdefault(grouped(member.series), set()).add(member.layout)
    return layouts


def default_kind_of(stored: Iterable[StoredSeries]) -> str:
    """Return the kind that is taken of a run with these series if none is selected."""
    return default_kind(member.series.kind for member in stored)


def have_moved(before: Mapping[RollupKey, Layout], now: Mapping[RollupKey, Layout]) -> bool:
    """Return whether the layout of a group is another now; groups that are gone are none."""
    return any(now[group] != layout for group, layout in before.items() if group in now)


def merged_in(
    parts: Iterable[Intervals[Key]], grouped: Callable[[Key], RollupKey], layouts: Mapping[RollupKey, Layout]
) -> Iterator[Intervals[RollupKey]]:
    """Yield windows added up under the group of each row, in the group's layout: one part a layout and kind of counts.

    A group that no record lists yet has that of its first series.
    """
    known = dict(layouts)
    buckets: dict[tuple[Layout, bool], Sum[RollupKey]] = {}
    for part in parts:
        for key in part.table:
            known.setdefault(grouped(key), part.layout)
        for target, rows in part.relabelled(grouped).split(known.__getitem__):
            if len(rows):
                buckets.setdefault((target, part.completions is None), Sum(MOST_ENTRIES)).add(rows.in_layout(target))
    for bucket in buckets.values():
        yield from bucket.parts()


class Balance:
    """Samples that went into rollups against those that came out of them, for each way that they are added up."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, int], int] = {}
        self._read = 0

    def reading(self, parts: Iterable[Intervals[Key]]) -> Iterator[Intervals[Key]]:
        """Yield the parts, counted as they go in."""
        for part in parts:
            self._read += samples_of(part)
            yield part

    def wrote(self, windows: Intervals[RollupKey], step_ns: int) -> None:
        """Count windows of one step that come out; their keys begin with the scope."""
        for scope, rows in windows.split(lambda key: key.scope):
            self._sums[scope, step_ns] = self._sums.get((scope, step_ns), 0) + samples_of(rows)

    def check(self, run: str) -> None:
        """Raise StoreError unless the sums of all rollups are that of the windows that were read."""
        for (scope, step), held in sorted(self._sums.items()):
            if held != self._read:
                over = f"over {format_duration(step)}" if step else "over the whole run"
                raise StoreError(
                    f"{run}: the rollups of {scope} {over} hold {held:,} samples, the windows that they are made of "
                    f"{self._read:,}: nothing was changed; run the same command again"
                )


def samples_of(windows: Intervals) -> int:
    """Return how many samples windows hold, completions where they hold shares in flight."""
    return sum((windows.samples if windows.completions is None else windows.completions).tolist())


def without_time(windows: Intervals[Key]) -> Intervals[Key]:
    """Return the windows with start and end zero, so that all of a group add up to one."""
    zero = np.zeros(len(windows), np.int64)
    return replace(windows, start_ns=zero, end_ns=zero)


def rollup_values(windows: Intervals) -> dict[str, list[Any]]:
    """Return the numbers of merged windows by name: VALUES, latencies in ns; None where unknown.

    LOWS are known of windows whose bins are of several layouts alone: the others have one value, and no range.
    """
    low, high, mean, exact = extremes(windows)
    lows, highs, means = low.tolist(), high.tolist(), mean.tolist()
    sums: list[Any] = [None] * len(windows)
    moved = sums
    if windows.exact is not None:
        sums = known_only(windows.exact.sum_ns, windows.exact.known_sum)
    if not windows.layout.has_bins:
        own = windows.exact or no_exact(len(windows))
        lows, highs = known_only(own.min_ns, own.known_min), known_only(own.max_ns, own.known_max)
        means = [None if unknown else value for value, unknown in zip(means, np.isnan(mean).tolist(), strict=True)]
        moved = known_only(own.moved, own.moved != NO_BYTES)
    ranked = Ranked(windows)
    values = {"sum": sums, "min": lows, "mean": means, "max": highs, "exact": exact.astype(int).tolist(), "bytes": moved}
    for percentile in STORED:
        column = percentile_values(windows, percentile, ranked=ranked, others=STORED).tolist()
        values[column_of(percentile)] = [None if value != value else value for value in column]  # noqa: PLR0124  # NaN
    for percentile, name in LOWS.items():
        values[name] = [None] * len(windows)
        picked, ranks, _ = ranked.carrying(percentile)
        unlike = ranked.mixed[picked]
        lows = ranked.between(picked[unlike], ranks[unlike])[0].tolist()
        for row, low in zip(picked[unlike].tolist(), lows, strict=True):
            values[name][row] = low
    return values
