"""Runs made for findings: hosts whose level wanders from window to window, and causes that are put in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Intervals
from ingest.core.layout import LogLinear, fio_layout
from ingest.query.question import Answer
from ingest.query.story.ground import SECOND, Ground, ground_of

LAYOUT = fio_layout(29, 1)
START = 1_700_000_000 * SECOND
Float = NDArray[np.float64]
Change = Callable[["Run"], None]


class Run:
    """A run to be: `level` (hosts, windows) is the log of each window's factor, `rate` its completions; `slow` the share of a mode.

    `waited` are operations by host, window and ns.
    """

    def __init__(
        self,
        seed: int,
        hosts: int = 4,
        windows: int = 600,
        rate: int = 200,
        phi: float = 0.8,
        sigma: float = 0.5,
        by: str = "host",
    ) -> None:
        self.random = np.random.default_rng(seed)
        own = np.stack([wander(self.random, windows, phi) for _ in range(hosts)])
        shared = wander(self.random, windows, phi)
        self.level = 0.05 * (np.sqrt(2 / 3) * own + np.sqrt(1 / 3) * shared)
        self.rate = rate * np.exp(0.03 * self.random.standard_normal((hosts, windows)))
        self.slow = np.zeros((hosts, windows))
        self.waited: list[tuple[int, int, float]] = []
        self.sigma = sigma
        self.groups = [("abcdefghijklmnopqrstuvwxyz"[host], "read") for host in range(hosts)]
        self.by = (by, "op")

    def ground(self) -> Ground:
        """Return the run in windows of 1 s."""
        hosts, windows = self.level.shape
        counts = self.random.poisson(self.rate)
        cell = np.repeat(np.arange(hosts * windows), counts.ravel())
        logs = np.log(1e6) + self.sigma * self.random.standard_normal(len(cell))
        slow = self.random.random(len(cell)) < self.slow.ravel()[cell]
        logs[slow] = np.log(8e6) + 0.3 * self.random.standard_normal(int(slow.sum()))
        values = np.exp(logs + self.level.ravel()[cell])
        for host, window, took in self.waited:
            cell, values = np.append(cell, host * windows + window), np.append(values, took)
        return ground_from(cell, values, windows, self.groups, self.by)


def ground_from(
    cell: NDArray[np.int64],
    values_ns: Float,
    windows: int,
    groups: Sequence[tuple[str, ...]],
    by: tuple[str, ...],
    layout: LogLinear = LAYOUT,
) -> Ground:
    """Return samples as a ground; sample i is in window `cell[i] % windows` of group `cell[i] // windows`."""
    codes = cell * layout.bins + layout.index(values_ns.astype(np.int64))
    used, counts = np.unique(codes, return_counts=True)
    rows, row_of = np.unique(used // layout.bins, return_inverse=True)
    start = START + (rows % windows) * SECOND
    part = Intervals(
        layout=layout,
        table=tuple(groups),
        series=rows // windows,
        start_ns=start,
        end_ns=start + SECOND,
        indptr=np.searchsorted(row_of, np.arange(len(rows) + 1)),
        bins=used % layout.bins,
        counts=counts.astype(np.int64),
    )
    return ground_of(
        Answer(
            parts=(part,),
            by=by,
            step_ns=SECOND,
            kind="completion",
            runs=("r",),
            run_start_ns={"r": START},
            relative=False,
            series=len(groups),
            covered={"r": (START, START + windows * SECOND)},
        )
    )


def wander(random: np.random.Generator, count: int, phi: float) -> Float:
    """Return an autoregressive series of deviation 1."""
    noise = np.sqrt(1 - phi * phi) * random.standard_normal(count)
    noise[0] = random.standard_normal()
    for place in range(1, count):
        noise[place] += phi * noise[place - 1]
    return noise


# What happens to some hosts in a stretch of windows.


def slower(run: Run, hosts: slice, stretch: slice) -> None:
    run.level[hosts, stretch] += np.log(2)


def less(run: Run, hosts: slice, stretch: slice) -> None:
    run.rate[hosts, stretch] *= 0.4


def stopped(run: Run, hosts: slice, stretch: slice) -> None:
    """Nothing for 5 s; then what waited completes."""
    first = (stretch.start + stretch.stop) // 2
    run.rate[hosts, first : first + 5] = 0
    run.waited += [(host, first + 5, 5e9) for host in range(*hosts.indices(len(run.rate))) for _ in range(8)]


def in_turn(run: Run, hosts: slice, stretch: slice) -> None:
    run.level[hosts, stretch][:, ::10] += 1
    run.level[hosts, stretch][:, 1::10] += 1


def more_and_more(run: Run, hosts: slice, _stretch: slice) -> None:
    """Three times as slow in the end, whatever the stretch."""
    run.level[hosts] += np.linspace(0, np.log(3), run.level.shape[1])
