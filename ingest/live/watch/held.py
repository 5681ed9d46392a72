"""Windows that may still grow: held until newer ones have begun, written whole each time, kept in checkpoints."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ingest.core.documents import pack, unpack
from ingest.core.intervals import Exact, Intervals, merged
from ingest.core.layout import Layout, parse_layout
from ingest.core.series import LABELS, Series


class Held:
    """The newest window of each series of one log, by layout: rows of a series come in time order, so older ones are whole."""

    def __init__(self, kept: Sequence[Mapping[str, Any]] = ()) -> None:
        """Hold nothing, or what `state` has kept."""
        self._parts: dict[Layout, Intervals[Series]] = {}
        for entry in kept:
            windows = _windows(entry)
            self._parts[windows.layout] = windows

    def add(self, parts: Sequence[Intervals[Series]]) -> list[Intervals[Series]]:
        """Return the windows that rows cut at the grid have changed, each with all that it holds by now."""
        changed = []
        for layout in dict.fromkeys(part.layout for part in parts):
            new = [part for part in parts if part.layout == layout]
            held = self._parts.get(layout)
            rows = merged([*new, *([held] if held is not None else [])])
            if not len(rows):
                continue
            newest = np.full(len(rows.table), np.iinfo(np.int64).min)
            np.maximum.at(newest, rows.series, rows.start_ns)
            self._parts[layout] = alone(rows.take(np.flatnonzero(rows.start_ns == newest[rows.series])))
            met = {key for part in new for key in part.table}
            changed.append(rows.where(met.__contains__))
        return changed

    def state(self) -> list[dict[str, Any]]:
        """Return all windows as values that JSON can hold."""
        return [_kept(windows) for windows in self._parts.values()]


def alone(rows: Intervals[Series]) -> Intervals[Series]:
    """Return rows with arrays of their own: a few windows must not keep all those alive that they were read with."""
    series, start, end, indptr = (part.copy() for part in (rows.series, rows.start_ns, rows.end_ns, rows.indptr))
    own = replace(
        rows, series=series, start_ns=start, end_ns=end, indptr=indptr, bins=rows.bins.copy(), counts=rows.counts.copy()
    )
    if rows.exact is None:
        return own
    low, high, total = (part.copy() for part in (rows.exact.min_ns, rows.exact.max_ns, rows.exact.sum_ns))
    moved = None if rows.exact.bytes is None else rows.exact.bytes.copy()
    return replace(own, exact=Exact(low, high, total, rows.exact.known.copy(), moved))


def _kept(windows: Intervals[Series]) -> dict[str, Any]:
    documents = pack(windows)
    stored: dict[str, Any] = {
        "layout": str(windows.layout),
        "table": [[*(getattr(series, label) for label in LABELS), series.segment] for series in documents.table],
        "series": windows.series.tolist(),
        "start": windows.start_ns.tolist(),
        "end": windows.end_ns.tolist(),
        "coding": documents.coding.tolist(),
        "bins": [base64.b64encode(blob).decode() for blob in documents.blobs.each()],
    }
    if windows.exact is not None:
        exact = windows.exact
        stored["exact"] = [exact.min_ns.tolist(), exact.max_ns.tolist(), exact.sum_ns.tolist(), exact.known.tolist()]
        stored["exact"] += [] if exact.bytes is None else [exact.bytes.tolist()]
    return stored


def _windows(kept: Mapping[str, Any]) -> Intervals[Series]:
    indptr, bins, counts = unpack(np.array(kept["coding"], np.int64), [base64.b64decode(text) for text in kept["bins"]])
    exact = None
    if "exact" in kept:
        low, high, total, known, *moved = kept["exact"]
        exact = Exact(np.array(low, np.int64), np.array(high, np.int64), np.array(total, np.int64), np.array(known, np.bool_))
        if moved:
            exact = replace(exact, bytes=np.array(moved[0], np.int64))
    return Intervals(
        layout=parse_layout(kept["layout"]),
        table=tuple(Series(*labels) for labels in kept["table"]),
        series=np.array(kept["series"], np.int64),
        start_ns=np.array(kept["start"], np.int64),
        end_ns=np.array(kept["end"], np.int64),
        indptr=indptr,
        bins=bins,
        counts=counts,
        exact=exact,
    )
