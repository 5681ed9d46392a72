"""A box of time and latency in the report: who is over-represented in it, counted in the page itself.

The panel is in box.html; box.js counts, box_panel.js shows. Of each run the labels' cells (query/overview.py), of each label

    base64( deflate( streams ) )    as in packing.py: windows, widths, bins and counts of all rows, key after key

A page holds them in MOST_CHARACTERS: windows are widened to a quarter at most, then the label that takes most room is left out,
which the panel says.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ingest.core.errors import counted
from ingest.core.intervals import Intervals
from ingest.core.labels import Group
from ingest.query.overview import BoxCells, Overview, coarser
from ingest.view.page.packing import planes, steps
from ingest.view.page.template import AFTER_HOSTS, Section
from ingest.view.vega import MS, printable

MOST_CHARACTERS = 420_000  # of all runs
COARSER = 2  # how often windows are made twice as wide


def sections(runs: Sequence[Overview]) -> list[Section]:
    """Return the section of the runs on a page, none where no run has cells."""
    content = {printable(run.run): _run(run.boxes, MOST_CHARACTERS // len(runs)) for run in runs if run.boxes is not None}
    scripts = ("panels/box.js", "panels/box_panel.js")
    return [Section("box", AFTER_HOSTS, scripts, content, state={"box": "", "against": ""})] if content else []


def _run(cells: BoxCells, most: int) -> dict[str, Any]:
    """Return what the page holds of the cells of a run, in about `most` characters."""
    content = _content(cells)
    for _ in range(COARSER):
        if _size(content) > most and cells.step_ns:
            cells = coarser(cells)
            content = _content(cells)
    left = [f"{name} ({counted(values, 'value')})" for name, values in cells.left.items()]
    while _size(content) > most and len(content["labels"]) > 1:
        largest = max(content["labels"][1:], key=lambda label: len(label["data"]))
        content["labels"].remove(largest)
        values = len({key["value"] for key in largest["keys"]})
        left.insert(0, f"{largest['name']} ({counted(values, 'value')})")
    return {**content, "left": left}


def _size(content: dict[str, Any]) -> int:
    return sum(len(label["data"]) for label in content["labels"])


def _content(cells: BoxCells) -> dict[str, Any]:
    """Return the windows, the edges of bins and the labels; `last` is the bin without an upper edge, -1 where all have one."""
    rows = list(cells.labels.values())
    layout = rows[0].layout
    low, high = min(int(part.start_ns.min()) for part in rows), max(int(part.end_ns.max()) for part in rows)
    step = cells.step_ns or max(high - low, 1)
    highest = max(int(part.bins.max(initial=0)) for part in rows)
    return {
        "origin": low / MS,
        "step": step / MS,
        "windows": -(-(high - low) // step),
        "edges": layout.edges[: highest + 2],
        "values": layout.values[: highest + 1],
        "last": layout.bins - 1 if layout.open_ended else -1,
        "labels": [_label(name, part, low, step) for name, part in cells.labels.items()],
    }


def _label(name: str, unordered: Intervals[Group], low: int, step: int) -> dict[str, Any]:
    """Return a label: its keys (value, op, kind), how many rows each has, how many entries there are, and the streams."""
    unordered = unordered.in_key_order()
    codes, sizes = np.unique(unordered.series, return_counts=True)
    part = unordered.take(np.lexsort((unordered.start_ns, unordered.series)))
    columns = (
        steps((part.start_ns - low) // step, np.cumsum(sizes) - sizes),
        np.diff(part.indptr),
        steps(part.bins, part.indptr[:-1]),
        part.counts,
    )
    packed = base64.b64encode(zlib.compress(b"".join(map(planes, columns)), 6)).decode("ascii")
    keys = [dict(zip(("value", "op", "kind"), map(printable, part.table[code]), strict=True)) for code in codes.tolist()]
    return {"name": name, "keys": keys, "rows": sizes.tolist(), "entries": len(part.bins), "data": packed}
