"""Which windows a load has touched, by the rollups of hosts that have to be made anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ingest.core.csr import distinct
from ingest.core.csr import total as sum_of
from ingest.core.intervals import Int, Intervals
from ingest.core.series import OFFSET, Series
from ingest.store.elastic.encoding import label_in
from ingest.store.records import HOST
from ingest.store.rollups import RollupKey, host_group


@dataclass(frozen=True, slots=True)
class Touch:
    """What one piece of a load touches: starts of windows by rollup of their host, series written, how many samples.

    `rolled` of these samples are in windows that have rollups.
    """

    windows: dict[RollupKey, Int]
    series: tuple[Series, ...]
    layout: str
    exact: bool
    samples: int
    rolled: int


def touch_of(windows: Intervals[Series]) -> Touch:
    """Return the touch of windows; of offsets no rollups are made, so they touch no windows."""
    table = windows.table
    cells: dict[RollupKey, list[Int]] = {}
    present = np.flatnonzero(np.bincount(windows.series, minlength=len(table))).tolist()
    for code in present:
        series = table[code]
        if series.kind == OFFSET:
            continue
        cells.setdefault(host_group(series), []).append(windows.start_ns[windows.series == code])
    starts = {cell: distinct(np.concatenate(parts)) for cell, parts in cells.items()}
    samples = sum_of(windows.counts if windows.completions is None else windows.completions)
    offsets = [code for code in present if table[code].kind == OFFSET]
    rolled = samples - (sum_of(windows.samples[np.isin(windows.series, offsets)]) if offsets else 0)
    return Touch(starts, tuple(table[code] for code in present), str(windows.layout), windows.exact is not None, samples, rolled)


def host_key_in(document: Mapping[str, Any]) -> RollupKey:
    """Return the rollup of a host that a document is of, or is made into."""
    return RollupKey(HOST, label_in(document, "host"), label_in(document, "op"), label_in(document, "kind"))


@dataclass(slots=True)
class Touched:
    """What a load has touched so far: windows by rollup of their host; `also` are starts at which the cluster's may change."""

    windows: dict[RollupKey, list[Int]] = field(default_factory=dict)
    also: list[Int] = field(default_factory=list)

    def add(self, windows: dict[RollupKey, Int]) -> None:
        """Add window starts."""
        for key, starts in windows.items():
            self.windows.setdefault(key, []).append(starts)

    @property
    def hosts(self) -> list[str]:
        """Return the hosts of which something was touched."""
        return sorted({key.host for key in self.windows})

    def starts(self, key: RollupKey) -> Int:
        """Return the starts of the touched windows of a host's rollup, in order."""
        return distinct(np.concatenate(self.windows[key]))

    def slabs(self, width_ns: int) -> Int:
        """Return the starts of the time slabs of `width_ns` in which something was touched, in order."""
        every = [*self.also, *(part for parts in self.windows.values() for part in parts)]
        starts = [distinct(part // width_ns * width_ns) for part in every]
        return distinct(np.concatenate(starts)) if starts else np.empty(0, np.int64)
