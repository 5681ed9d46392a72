"""Breaths as they are kept and asked: exact counts and sums in windows of a second, and a bounded sample of single ones.

A breath of a Snabb process takes so many cycles and moves so many packets. Of each process (and of each callback of an app, where
the timeline shows what that moved) a window holds

    cells    how many moved so many packets at so many cycles a packet: a bin of PACKETS and one of CYCLES, in one number
    sums     of packets, cycles, their squares and products: what a fitted line needs, so that lines over any range are exact

Windows are (start, start + 1 s], by when the breath ended, whatever the step of the run. Timelines are samples: a row stands for
5^(9-rate) times what it counts. The sample of single breaths is the KEPT of a process that come first in a fixed order: the same
from files and stores, and those that come first of several processes together are a sample of them all. Behind them come, at
places from BEHIND on, the longest of each window and the LONGEST of the process: a random sample hides the few that are the
cause.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ingest.core.grid import SECOND, window_start
from ingest.core.intervals import Int, distinct_rows, gather
from ingest.core.labels import Series
from ingest.core.layout import LogLinear

Float = NDArray[np.float64]

BREATH = "engine.breath_end"  # what is timed is named by the event that ends it
PACKETS = LogLinear(8, 81)  # packets of a breath, not ns: each number to 15, eight bins an octave, 4,096 and more
CYCLES = LogLinear(8, 241)  # cycles a packet: up to 2^32 and more
CELLS = PACKETS.bins * CYCLES.bins
SUMS = ("packets", "cycles", "packets_squared", "packets_cycles", "cycles_squared", "bytes", "bits")
KEPT, LONGEST = 2000, 20
ALWAYS, FIFTH = 9, 5
ORDERS = 53  # bits: JSON numbers hold them all
BEHIND = 1 << ORDERS

Rows = TypeVar("Rows", "BreathWindows", "BreathSample")


@dataclass(frozen=True, slots=True)
class Work:
    """Breaths or callbacks, one a row: its series, rate, when it ended, its number, cycles, and what it moved (NaN: unknown)."""

    table: tuple[Series, ...]
    series: Int
    rate: Int
    end_ns: Int
    number: Int
    cycles: Int
    packets: Float
    bytes: Float
    bits: Float


@dataclass(frozen=True, slots=True)
class BreathWindows:
    """What is kept of breaths: a row a series (op the event that ends it, job the app), rate and window of 1 s.

    Of `count` breaths `known` show their packets, of which `idle` moved none; all others are in `cells` (CSR, PACKETS bin *
    CYCLES.bins + CYCLES bin). `sums` has a column a name in SUMS, over the known ones. `longest` is the most cycles of one.
    """

    table: tuple[Series, ...]
    series: Int
    rate: Int
    start_ns: Int
    count: Int
    known: Int
    idle: Int
    longest: Int
    sums: Float
    indptr: Int
    cells: Int
    counts: Int

    def __len__(self) -> int:
        return len(self.series)


@dataclass(frozen=True, slots=True)
class BreathSample:
    """Single breaths, one a row; `order` is their place in a fixed order, from BEHIND on of those that only their length keeps.

    Below that the order is independent of all measured values: those that come first are a random sample.
    """

    table: tuple[Series, ...]
    series: Int
    rate: Int
    order: Int
    at_ns: Int
    packets: Int
    cycles: Int

    def __len__(self) -> int:
        return len(self.series)


@dataclass(frozen=True, slots=True)
class StoredBreaths:
    """What is kept of a source, or of several."""

    windows: BreathWindows
    sample: BreathSample


def weight_of(rate: Int) -> Int:
    """Return how many breaths a stored one of each rate stands for: 5^(9-rate)."""
    return FIFTH ** (ALWAYS - np.clip(rate, 0, ALWAYS))


def windows_of(work: Work) -> BreathWindows:
    """Return the windows of breaths, in the order of series, rate and time. Sums are of doubles: exact below 2^53."""
    (series, rate, start), row = distinct_rows(work.series, work.rate, window_start(work.end_ns, SECOND))
    rows = len(start)
    counted = ~np.isnan(work.packets)
    moved = np.where(counted, work.packets, 0.0)
    longest = np.zeros(rows, np.int64)
    np.maximum.at(longest, row, work.cycles)
    indptr, cells, counts = _cells(row, rows, work.cycles, moved)
    return BreathWindows(
        table=work.table,
        series=series,
        rate=rate,
        start_ns=start,
        count=np.bincount(row, minlength=rows),
        known=np.bincount(row[counted], minlength=rows),
        idle=np.bincount(row[counted & (moved < 1)], minlength=rows),
        longest=longest,
        sums=_sums(work, row, rows, counted),
        indptr=indptr,
        cells=cells,
        counts=counts,
    )


def _sums(work: Work, row: Int, rows: int, counted: NDArray[np.bool_]) -> Float:
    packets, cycles = np.where(counted, work.packets, 0.0), np.where(counted, work.cycles, 0).astype(np.float64)
    volumes = (np.where(counted, np.nan_to_num(amounts, nan=0.0), 0.0) for amounts in (work.bytes, work.bits))
    columns = (packets, cycles, packets**2, packets * cycles, cycles**2, *volumes)
    return np.stack([np.bincount(row, weights, minlength=rows).astype(np.float64) for weights in columns], axis=1)


def _cells(row: Int, rows: int, cycles: Int, packets: Float) -> tuple[Int, Int, Int]:
    """Return CSR arrays of the cells of each row, cells rising; what moved less than a packet is in none."""
    busy = np.flatnonzero(packets >= 1)
    whole = np.minimum(packets[busy], 1 << 53).astype(np.int64)
    each = cycles[busy] // whole
    code = PACKETS.index(whole) * CYCLES.bins + CYCLES.index(each)
    codes, counts = np.unique(row[busy] * CELLS + code, return_counts=True)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(codes // CELLS, minlength=rows))])
    return indptr.astype(np.int64), codes % CELLS, counts.astype(np.int64)


def sampled(work: Work, kept: int = KEPT) -> BreathSample:
    """Return of each series the `kept` breaths that come first in the order, then the longest, if they show their packets."""
    rows = np.flatnonzero(~np.isnan(work.packets))
    order = np.zeros(len(work.series), np.int64)
    for code, series in enumerate(work.table):
        mine = rows[work.series[rows] == code]
        order[mine] = orders(series, work.number[mine], work.cycles[mine])
    rows = rows[np.lexsort((rows, order[rows], work.series[rows]))]
    mine = work.series[rows]
    place = np.arange(len(rows)) - np.searchsorted(mine, mine)
    first = place < kept
    long = longest(mine, work.rate[rows], work.end_ns[rows], work.cycles[rows]) & ~first
    order[rows[long]] += BEHIND
    rows = np.concatenate([rows[first], rows[long]])
    rows = rows[np.lexsort((order[rows], work.series[rows]))]
    packets = np.minimum(work.packets[rows], 1 << 53).astype(np.int64)
    return BreathSample(
        work.table, work.series[rows], work.rate[rows], order[rows], work.end_ns[rows], packets, work.cycles[rows]
    )


def longest(series: Int, rate: Int, end_ns: Int, cycles: Int, most: int = LONGEST) -> NDArray[np.bool_]:
    """Return which breaths are the longest of their series, rate and window, or among the `most` longest of their series."""
    chosen = np.zeros(len(series), np.bool_)
    windows = (rate, window_start(end_ns, SECOND))
    for keys, kept in ((windows, 1), ((), most)):
        rows = np.lexsort((-cycles, *keys[::-1], series))
        columns = np.stack([column[rows] for column in (series, *keys)])
        fresh = np.ones(len(rows), np.bool_)
        fresh[1:] = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
        first = np.maximum.accumulate(np.where(fresh, np.arange(len(rows)), 0))
        chosen[rows[np.arange(len(rows)) - first < kept]] = True
    return chosen


def orders(series: Series, number: Int, cycles: Int) -> Int:
    """Return the place of each breath in the order: 53 bits of a hash (splitmix64) of its process, number and cycles."""
    named = f"{series.host}\x1f{series.process}\x1f{series.op}\x1f{series.job}".encode("utf-8", "surrogateescape")
    seed = np.uint64(int.from_bytes(hashlib.blake2b(named, digest_size=8).digest(), "little"))
    hashed = _mixed(_mixed(number.astype(np.uint64) ^ seed) ^ cycles.astype(np.uint64))
    return (hashed >> np.uint64(64 - ORDERS)).astype(np.int64)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        values = values + np.uint64(0x9E3779B97F4A7C15)
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def taken(rows: Rows, which: Int) -> Rows:
    """Return the given rows."""
    held = {"table", "indptr", "cells", "counts"}
    moved = {column.name: getattr(rows, column.name)[which] for column in fields(rows) if column.name not in held}
    if isinstance(rows, BreathWindows):
        indptr, flat = gather(rows.indptr, which)
        moved |= {"indptr": indptr, "cells": rows.cells[flat], "counts": rows.counts[flat]}
    return replace(rows, **moved)


def joined(parts: Sequence[Rows]) -> Rows:
    """Return the rows of several parts, at least one, under one table of series."""
    table: dict[Series, int] = {}
    codes = [np.array([table.setdefault(series, len(table)) for series in part.table], np.int64)[part.series] for part in parts]
    names = [column.name for column in fields(parts[0]) if column.name not in ("table", "series", "indptr")]
    moved = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    first = parts[0]
    if isinstance(first, BreathWindows):
        widths = np.concatenate([np.diff(part.indptr) for part in parts if isinstance(part, BreathWindows)])
        moved["indptr"] = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    return replace(first, table=tuple(table), series=np.concatenate(codes), **moved)


def relabelled(rows: Rows, key: Callable[[Series], Series | None]) -> Rows:
    """Return the rows whose series `key` gives another one for, under that."""
    renamed = [key(series) for series in rows.table]
    table: dict[Series, int] = {}
    codes = np.array([-1 if series is None else table.setdefault(series, len(table)) for series in renamed], np.int64)
    moved = codes[rows.series]
    which = np.flatnonzero(moved >= 0)
    return replace(taken(rows, which), table=tuple(table), series=moved[which])


def only(rows: Rows, key: Callable[[Series], bool]) -> Rows:
    """Return the rows of the series that are asked for."""
    return relabelled(rows, lambda series: series if key(series) else None)


def nothing() -> StoredBreaths:
    """Return no windows and no breaths."""
    none = np.empty(0, np.int64)
    rows, sums, indptr = (none,) * 7, np.empty((0, len(SUMS))), np.zeros(1, np.int64)
    return StoredBreaths(BreathWindows((), *rows, sums, indptr, none, none), BreathSample((), *(none,) * 6))
