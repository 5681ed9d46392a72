"""Logs of unknown start beside logs with a known one: they stand apart, as a run of their own on an elapsed axis.

    nightly: a.log begins 2026-11-22T05:50:16Z, b.log has no date     ->     run nightly: a.log      run nightly/undated: b.log

Put on one axis, a log that begins at 0 and one of today would be half a century apart: steps, rates and the life of the run
would all be wrong. So nothing of a dated run changes when an undated log is added to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ingest.read.sources import Found, Source

UNDATED = "undated"


def apart(discovered: Found, dated: Collection[str] = ()) -> Found:
    """Return the discovered files with undated sources in runs of their own where their run has dated ones.

    `dated` are runs that have dated sources elsewhere: in the store that they are loaded into.
    """
    clocks = {(source.context.series.run, _is_dated(source)) for source in discovered.sources}
    real = {*dated, *(run for run, known in clocks if known)}
    moved = {run: undated_name(run, real) for run, known in sorted(clocks) if not known and run in real}
    if not moved:
        return discovered
    labels: Mapping[str, Mapping[str, str]] = {name: discovered.labels.get(run, {}) for run, name in moved.items()}
    return replace(
        discovered,
        sources=tuple(source if _is_dated(source) else _in_run(source, moved) for source in discovered.sources),
        labels={**labels, **discovered.labels},
    )


def undated_name(run: str, dated: Collection[str] = ()) -> str:
    """Return the name for the undated sources of a run; never that of a dated run."""
    name = f"{run}/{UNDATED}"
    while name in dated:
        name = f"{name}/{UNDATED}"
    return name


def undated_part_of(run: str) -> str:
    """Return the run that an undated one was taken out of, by its name; empty text where it is a run like any other."""
    base, _, last = run.rpartition("/")
    return base if last == UNDATED else ""


def _is_dated(source: Source) -> bool:
    return source.context.zero.epoch_ns is not None


def _in_run(source: Source, moved: Mapping[str, str]) -> Source:
    series = source.context.series
    if series.run not in moved:
        return source
    return replace(source, context=replace(source.context, series=series.replaced(run=moved[series.run])))
