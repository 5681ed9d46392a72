"""What estimators share: where their values stand in the exact table, and percentiles of plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Int
from ingest.core.ranks import Percentile
from ingest.core.series import Group
from ingest.query.table import Table

Float = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The values of an estimator for a table, by the exact column that they stand beside (`mean`, `p99`), NaN where none.

    `truth` is what they are held against where that is not the exact column. `notes` say what was done and what cannot be.
    """

    name: str
    columns: Mapping[str, Float]
    notes: tuple[str, ...] = ()
    truth: Mapping[str, Float] = field(default_factory=dict)

    def errors(self, exact: Mapping[str, Float]) -> dict[str, Float]:
        """Return how far each value lies from the true one, as a share of it: -0.8 is 80 % too low."""
        return {name: relative(values, self.truth.get(name, exact[name])) for name, values in self.columns.items()}


def relative(values: Float, truth: Float) -> Float:
    """Return value / truth - 1; NaN where either is missing or the truth is 0."""
    true_values = np.asarray(truth, np.float64)
    errors: Float = np.full(len(values), np.nan)
    np.divide(values - true_values, true_values, out=errors, where=true_values > 0)
    return errors


class Places:
    """The rows of a table by group and window, to find where other rows of the same windows belong."""

    def __init__(self, table: Table, step_ns: int) -> None:
        names = [table.columns[name].tolist() for name in table.labels]
        groups: list[Group] = list(zip(*names, strict=True)) if names else [()] * len(table)
        self.size = len(table)
        self.step_ns = step_ns
        self.known: dict[Group, int] = {}
        self.group = np.array([self.known.setdefault(group, len(self.known)) for group in groups], np.int64)
        starts = np.asarray(table.columns["start_ns"], np.int64) if step_ns else np.zeros(self.size, np.int64)
        self.starts, window = np.unique(starts, return_inverse=True)
        key = self.group * len(self.starts) + window.reshape(-1)
        self.order = np.argsort(key, kind="stable")
        self.key = key[self.order]

    def rows(self, groups: Sequence[Group | None], codes: Int, starts_ns: Int) -> Int:
        """Return the table's row of each value, -1 where it has none; `groups[codes[i]]` at the window that starts there."""
        if not self.size or not len(codes):
            return np.full(len(codes), -1)
        group = np.array([-1 if member is None else self.known.get(member, -1) for member in groups], np.int64)[codes]
        starts = starts_ns if self.step_ns else np.zeros(len(codes), np.int64)
        window = np.minimum(np.searchsorted(self.starts, starts), len(self.starts) - 1)
        key = group * len(self.starts) + window
        place = np.minimum(np.searchsorted(self.key, key), self.size - 1)
        there = (group >= 0) & (self.starts[window] == starts) & (self.key[place] == key)
        return np.where(there, self.order[place], -1)


def means_of(at: Int, values: NDArray[np.int64] | Float, size: int) -> Float:
    """Return the plain mean of the values at each row, NaN where there is none."""
    count = np.bincount(at, minlength=size)
    total = np.bincount(at, weights=values, minlength=size)
    means: Float = np.full(size, np.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means


@dataclass(frozen=True, slots=True)
class Sorted:
    """Values by row, in order of size within each: what ranks and quantiles are looked up in."""

    rows: Int
    first: Int
    count: Int
    values: NDArray[np.int64] | Float
    size: int

    @classmethod
    def of(cls, at: Int, values: NDArray[np.int64] | Float, size: int) -> Sorted:
        """Return the values at each row (not -1) in order."""
        order = np.lexsort((values, at))
        rows, first, count = np.unique(at[order], return_index=True, return_counts=True)
        return cls(rows, first, count, values[order], size)

    def nearest(self, percentile: Percentile, *, carried: bool = False) -> Float:
        """Return the value of rank ceil(N p / 100) of each row; with `carried` NaN where so few cannot carry it."""
        values = np.full(self.size, np.nan)
        values[self.rows] = self.values[self.first + percentile.ranks(self.count) - 1]
        if carried:
            values[self.rows[~percentile.carried(self.count)]] = np.nan
        return values

    def interpolated(self, percentile: Percentile) -> Float:
        """Return the quantile of each row between its neighbours at (N - 1) p / 100, as NumPy and pandas have it."""
        share = percentile.top / (100 * percentile.bottom)
        place = (self.count - 1) * share
        low = np.floor(place).astype(np.int64)
        below = self.values[self.first + low].astype(np.float64)
        above = self.values[self.first + np.minimum(low + 1, self.count - 1)].astype(np.float64)
        quantiles = np.full(self.size, np.nan)
        quantiles[self.rows] = below + (above - below) * (place - low)
        return quantiles
