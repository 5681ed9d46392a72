"""Subsecond offsets in the report: the panel for runs that have them, and the ticks that its maps are made of.

The panels are in offsets.html; offsets.js makes maps of the ticks, offsets_panel.js draws them. Of each run

    base64( deflate( streams ) )    as in packing.py: of the tables fine, wide and late the distances of ticks, then counts;
                                    then of each gap the distance from the end of the one before it, and its length, in ms
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ingest.core.grid import MS
from ingest.core.labels import THREAD, Group
from ingest.query.offsets import LABELS, REST, OffsetOverview, Ticks
from ingest.query.overview import thread_name
from ingest.view.page.packing import planes
from ingest.view.page.template import AFTER_HEATMAP, Section
from ingest.view.specs import derived, unversioned
from ingest.view.vega import printable, spec

SCRIPTS = ("panels/offsets.js", "panels/offsets_panel.js")
STATE = {
    "offset_period": "1000",
    "offset_rows": "50",
    "offset_shading": "rank",
    "offset_by": "process",
    **dict.fromkeys(("offset_each", "offset_only", "offset_not", "offset_lit", "offset_cell"), ""),
}


def sections(overviews: Sequence[OffsetOverview], runs: Sequence[str]) -> list[Section]:
    """Return the section of the runs on a page that have offsets, if any; of others it is said where to find them."""
    shown = [overview for overview in overviews if overview.ticks.run in runs]
    if not shown:
        return []
    others = [overview.ticks.run for overview in overviews if overview not in shown]
    said = [f"{run} has no latencies: a report of this run only shows its offsets" for run in others]
    whole = section(shown)
    return [replace(whole, notes=[*whole.notes, *said])]


def section(overviews: Sequence[OffsetOverview]) -> Section:
    """Return the panels of the runs that have offsets."""
    specs = {  # a map is one picture: a page draws 36,000 cells so
        "offsets": derived("offsets-map"),
        "offset_column": derived("offsets-column"),
        "offset_latency": unversioned(spec("distribution")),
    }
    content = {printable(overview.ticks.run): _run(overview) for overview in overviews}
    notes = [note for overview in overviews for note in notes_of(overview, named=len(overviews) > 1)]
    return Section("offsets", AFTER_HEATMAP, SCRIPTS, content, specs, STATE, notes)


def notes_of(overview: OffsetOverview, *, named: bool) -> list[str]:
    """Return what was left out or coarsened of a run's offsets, as sentences."""
    ticks, fine = overview.ticks, overview.ticks.resolution
    head = f"subsecond offsets of {ticks.run}" if named else "subsecond offsets"
    kept = [f"in ticks of {fine.tick_ms} ms"] if fine.tick_ms > 1 else []
    kept += [f"{fine.seconds} seconds added up in a column"] if fine.seconds > 1 else []
    if ticks.folded:
        threads = sum(group[-1] != REST for group in ticks.fine.groups)
        kept.append(f"by the {threads} threads with the most events, {ticks.folded:,} others added up")
    kept_notes = [f"{head} are kept {', '.join(kept)}, for the size of the page (--full lifts that)"] if kept else []
    return [*kept_notes, *(f"{head}: {note}" for note in overview.notes)]


def _run(overview: OffsetOverview) -> dict[str, Any]:
    """Return what the page shows of a run; its streams are `data`."""
    ticks = overview.ticks
    streams: list[bytes] = []
    tables: dict[str, dict[str, Any] | None] = {"wide": None}
    for name, table in (("fine", ticks.fine), ("wide", ticks.wide), ("late", ticks.late)):
        if table is not None:
            tables[name] = _table(table, len(ticks.fine.groups), streams)
    edges = np.diff(ticks.gaps_ms.T.reshape(-1), prepend=ticks.first_ms)
    streams += [planes(edges[::2]), planes(edges[1::2])]
    return {
        "start": overview.start_ns / MS,
        "relative": overview.relative,
        "groups": [_group(group, by_host=ticks.resolution.by_host) for group in ticks.fine.groups],
        "folded": ticks.folded,
        "tick": ticks.resolution.tick_ms,
        "seconds": ticks.resolution.seconds,
        "wideTick": ticks.resolution.wide_ms,
        "first": ticks.first_ms,
        "end": ticks.end_ms,
        "gaps": ticks.gaps_ms.shape[1],
        "lateTick": ticks.late_ms,
        **tables,
        "data": base64.b64encode(zlib.compress(b"".join(streams), 6)).decode("ascii"),
    }


def _table(ticks: Ticks, groups: int, streams: list[bytes]) -> dict[str, Any]:
    """Return how many ticks each group has and what the first number counts from; the numbers are added to the streams."""
    rows = np.bincount(ticks.group, minlength=groups)
    base = int(ticks.index.min()) if len(ticks.index) else 0
    steps = np.diff(ticks.index, prepend=base)
    firsts = (np.cumsum(rows) - rows)[rows > 0]
    steps[firsts] = ticks.index[firsts] - base
    streams += [planes(steps), planes(ticks.count)]
    return {"rows": rows.tolist(), "base": base}


def _group(group: Group, *, by_host: bool) -> dict[str, Any]:
    known = dict(zip(LABELS, group, strict=False))
    labels = {name: printable(known[name]) for name in ("host", "process", "op")}
    thread = printable(thread_name(tuple(known[name] for name in THREAD)))
    return {**labels, "thread": thread, "rest": (1 if by_host else 2) if group[-1] == REST else 0}
