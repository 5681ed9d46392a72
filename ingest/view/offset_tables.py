"""The offset map as flat tables for kibana/vega/offsets.json (their columns stand in `vega`), and its picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from ingest.core.errors import UsageError
from ingest.core.intervals import in_time_order
from ingest.core.timing import format_duration
from ingest.query.offsets.map import OffsetMap, joined, lit_counts
from ingest.view import vega
from ingest.view.pictures import clock_signals
from ingest.view.specs import derived
from ingest.view.terminal.tables import first_of

RUNS_NAMED = 2
MOST_COLUMNS = 700


def cells(answer: OffsetMap) -> vega.Columns:
    """Return one row per period and occupied row of offsets: t, t2, lower, upper, c, n.

    All groups must be one: see `picture`. Lower and upper are offsets in ns; n is the count of the period. Where something is
    highlighted also lit: how many of c are.
    """
    part = in_time_order(answer.cells)
    row, edges, counts = part.row, answer.periods.edges, part.counts
    lit = {"lit": lit_counts(answer).tolist()} if answer.lit is not None else {}
    return {
        "t": (part.start_ns[row] / vega.MS).tolist(),
        "t2": (part.end_ns[row] / vega.MS).tolist(),
        "lower": edges[part.bins].tolist(),
        "upper": edges[part.bins + 1].tolist(),
        "c": counts.tolist(),
        "n": part.samples[row].tolist(),
        **lit,
    }


def gaps(answer: OffsetMap) -> vega.Columns:
    """Return the stretches in which nothing was recorded: t, t2."""
    return {name: (edge / vega.MS).tolist() for name, edge in zip(("t", "t2"), answer.missing_ns, strict=True)}


def late(answer: OffsetMap) -> vega.Columns:
    """Return the periods that events of were reported late: t, t2, n."""
    starts = answer.late_ns
    ends = starts + answer.periods.period_ns
    return {"t": (starts / vega.MS).tolist(), "t2": (ends / vega.MS).tolist(), "n": answer.late.tolist()}


def picture(answer: OffsetMap, shading: str = "rank", clock: str = "utc", highlight: str = "") -> dict[str, Any]:
    """Return the filled spec of an offset map; UsageError where there is more than one group.

    More periods than there are pixels are added up, and it is said. `highlight` names what is highlighted.
    """
    groups = sorted({answer.cells.table[code] for code in np.unique(answer.cells.series).tolist()})
    if len(groups) > 1:
        names = [", ".join(label or "-" for label in key) for key in groups]
        shown = ", ".join(names[:5]) + (" and more" if len(names) > 5 else "")
        raise UsageError(f"a picture of offsets shows one group, here are {shown}: choose with --where, or leave out --by")
    answer, width = joined(answer, MOST_COLUMNS)
    tables = {"cells": cells(answer), "gaps": gaps(answer), "late": late(answer), "marks": vega.noted(())}
    periods = answer.periods
    wide = f", a column is {format_duration(width)}" if width > periods.period_ns else ""
    subtitle = f"offset within each {format_duration(periods.period_ns)}, {periods.rows} rows, {answer.samples:,} events"
    red = []
    if answer.lit is not None:
        red = [f"{vega.printable(highlight)} in red: {int(answer.lit.counts.sum()):,} of {answer.samples:,} events"]
    runs = vega.printable(first_of(answer.runs, RUNS_NAMED))
    signals = {
        "period": periods.period_ns,
        "first": answer.first_ns / vega.MS,
        "last": answer.end_ns / vega.MS,
        "shading": shading,
        "highlight": vega.printable(highlight),
        **clock_signals(clock, answer.start_of, answer.first_ns),
    }
    head = derived("picture", text=runs, subtitle=[subtitle + wide, *red])
    return {**vega.with_values(vega.spec("offsets"), tables, **signals), **head}
