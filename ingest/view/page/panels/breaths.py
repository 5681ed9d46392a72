"""Breath efficiency in the report: what breaths of Snabb processes cost, beside what they moved.

The panels are in breaths.html; breaths.js adds up the windows in view and draws the line through them. A page holds

    windows     of each process (and callback of an app): counts, sums and cells, in as wide windows as keep it small
    points      the sample of single breaths, at most MOST_POINTS of a run, spread evenly over its processes, and the longest
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.breaths import (
    CYCLES,
    LONGEST,
    PACKETS,
    BreathSample,
    BreathWindows,
    StoredBreaths,
    longest,
    relabelled,
    taken,
    weight_of,
)
from ingest.core.grid import SECOND
from ingest.core.intervals import sum_rows
from ingest.query.breaths import breath_rows, names_of
from ingest.view.page.template import AFTER_DISTRIBUTION, Section
from ingest.view.vega import MS, printable, spec

NAME = "breaths"
MOST_CELLS = 60_000
MOST_POINTS, MOST_LONGEST = 4_000, 1_000
WIDTHS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)
SHOWN = "4"
FITTED_SUMS = 5  # the first of SUMS: what a line needs
STATE = {"process": "", "pictures": SHOWN, "spread": "log"}


def sections_of(kept: StoredBreaths, runs: Sequence[str]) -> list[Section]:
    """Return the section on breaths where there are any; `runs` are the runs of the report in their order."""
    if not len(breath_rows(kept.windows)):
        return []
    contents = [content_of(own) for own in ([of_run(kept, run) for run in runs] if len(runs) > 1 else [kept])]
    specs = {"breaths": spec("breaths"), "density": spec("breath-density")}
    return [Section(NAME, AFTER_DISTRIBUTION, ("panels/breaths.js",), contents, specs, STATE)]


def content_of(kept: StoredBreaths) -> dict[str, Any]:
    """Return what the page shows of a run: streams, their windows, points and edges of cells; no streams without breaths."""
    if not len(kept.windows):
        return {"streams": []}
    (step, windows), sample = widened(kept.windows), thinned(kept.sample)
    name = names_of(kept.windows)
    origin = int(windows.start_ns.min())
    numbered = {stream: number for number, stream in enumerate(windows.table)}
    return {
        "streams": [{"name": printable(name(stream)), "op": stream.op, "app": printable(stream.job)} for stream in windows.table],
        "step": step // MS,
        "origin": origin / MS,
        "sampled": len(kept.sample),
        "windows": _contiguous(
            {
                "stream": windows.series,
                "weight": weight_of(windows.rate),
                "at": (windows.start_ns - origin) // step,
                **{column: getattr(windows, column) for column in ("count", "known", "idle", "longest")},
                "sums": windows.sums[:, :FITTED_SUMS].T,
                "ptr": windows.indptr,
                "cell": windows.cells,
                "n": windows.counts,
            }
        ),
        "points": _contiguous(
            {
                "stream": np.array([numbered[stream] for stream in sample.table], np.int64)[sample.series],
                "t": -(-sample.at_ns // MS),
                "x": sample.packets,
                "y": sample.cycles,
            }
        ),
        "edges": {"packets": PACKETS.edges, "cycles": CYCLES.edges},
    }


def _contiguous(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return columns as they can be written: one number after the other in memory."""
    return {name: np.ascontiguousarray(column) for name, column in columns.items()}


def widened(windows: BreathWindows) -> tuple[int, BreathWindows]:
    """Return a width in ns and the windows added up to it: the narrowest that leaves at most MOST_CELLS cells."""
    for seconds in WIDTHS:
        wide = added_up(windows, seconds * SECOND)
        if len(wide.cells) <= MOST_CELLS:
            return seconds * SECOND, wide
    return WIDTHS[-1] * SECOND, wide


def added_up(windows: BreathWindows, step_ns: int) -> BreathWindows:
    """Return windows added up to a multiple of their width; counts and cells exactly, sums as far as doubles go."""
    keys = np.stack([windows.series, windows.rate, windows.start_ns // step_ns * step_ns])
    distinct, row = np.unique(keys, axis=1, return_inverse=True)
    row, rows = row.reshape(-1), distinct.shape[1]
    longest = np.zeros(rows, np.int64)
    np.maximum.at(longest, row, windows.longest)
    summed: dict[str, Any] = {"longest": longest}
    for name in ("count", "known", "idle", "sums"):
        numbers = getattr(windows, name)
        summed[name] = np.zeros((rows, *numbers.shape[1:]), numbers.dtype)
        np.add.at(summed[name], row, numbers)
    summed |= zip(("series", "rate", "start_ns"), distinct, strict=True)
    of_cells = sum_rows(windows.indptr, windows.cells, windows.counts, row, rows)
    summed |= zip(("indptr", "cells", "counts"), of_cells, strict=True)
    return replace(windows, **summed)


def thinned(sample: BreathSample, most: int = MOST_POINTS) -> BreathSample:
    """Return at most `most` breaths, as many of each process, those that come first in the order, and the longest; by time.

    The longest are those of each window, and of each process, as many of each as MOST_LONGEST has room for.
    """
    each = max(1, most // max(1, len(sample.table)))
    many = max(LONGEST, MOST_LONGEST // max(1, len(sample.table)))
    long = longest(sample.series, sample.rate, sample.at_ns, sample.cycles)
    place = np.zeros(len(sample), np.int64)
    for code in range(len(sample.table)):
        mine = np.flatnonzero(sample.series == code)
        place[mine[np.argsort(sample.order[mine], kind="stable")]] = np.arange(len(mine))
        own = mine[long[mine]]
        place[own[np.argsort(-sample.cycles[own], kind="stable")[:many]]] = 0
    kept = taken(sample, np.flatnonzero(place < each))
    return taken(kept, np.lexsort((kept.order, kept.at_ns)))


def of_run(kept: StoredBreaths, run: str) -> StoredBreaths:
    """Return what is kept of one run."""
    mine = lambda series: series if series.run == run else None
    return StoredBreaths(relabelled(kept.windows, mine), relabelled(kept.sample, mine))
