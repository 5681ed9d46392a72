"""Pictures without a browser: the specs of kibana/vega/ filled with an answer and drawn as png or svg, for papers and CI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ingest.core.errors import UsageError
from ingest.core.ranks import Percentile, parse_percentiles
from ingest.core.timing import format_duration
from ingest.query.cells import cells, in_windows, of_step
from ingest.query.means import check_bins
from ingest.query.missing import bands
from ingest.query.question import Answer
from ingest.query.steps import widened
from ingest.view import vega
from ingest.view.specs import derived
from ingest.view.terminal.heatmap import Asked, told

WHOLE_RANGE = 1 << 62
SCALE = 2.0
RUNS_NAMED = 2
MOST_COLUMNS = 700
LINE = parse_percentiles("99")


Notes = Sequence[Mapping[str, Any]]


def percentiles_picture(answer: Answer, wanted: Sequence[Percentile], clock: str = "utc", marks: Notes = ()) -> dict[str, Any]:
    """Return the filled spec of percentiles over time: a line for each group and percentile, dashed for all windows together.

    `marks` (at_ns, text, end_ns) are drawn as lines and bands. InputError of means without a histogram.
    """
    check_bins(answer, "pictures of percentiles")
    whole = replace(answer, parts=tuple(widened(answer.parts, WHOLE_RANGE)))
    tables = {
        "points": vega.points(answer, wanted),
        "thin": vega.thin(answer, wanted),
        "whole": vega.points(whole, wanted),
        "gaps": vega.gaps(answer),
        "marks": vega.noted(marks),
    }
    return _filled("percentiles", tables, answer, clock)


def heatmap_picture(answer: Answer, clock: str = "utc", asked: Asked | None = None) -> dict[str, Any]:
    """Return the filled spec of a heat map with its p99; UsageError where there is more than one group.

    More windows than there are pixels are added up.
    """
    check_bins(answer, "heat maps")
    names = list(vega.group_names(answer).values())
    if len(names) > 1:
        shown = ", ".join(names[:5]) + (" and more" if len(names) > 5 else "")
        raise UsageError(f"a picture of a heat map shows one group, here are {shown}: choose with --where, or leave out --by")
    asked = asked or Asked(vega.EIGHTHS)
    if asked.columns > MOST_COLUMNS:
        raise UsageError(f"--columns {asked.columns}: a picture has room for {MOST_COLUMNS}; csv has it for all")
    answer = in_windows(answer, MOST_COLUMNS) if not asked.columns else answer
    lit = asked.lit and of_step(asked.lit, answer.step_ns)
    found = cells(answer, asked.rows, lit, asked.columns)
    columns = vega.cell_columns(found, answer)
    tables = {
        "cells": {name: column for name, column in columns.items() if name != "group"},
        "points": vega.points(answer, LINE),
        "gaps": vega.gaps(answer),
        "marks": vega.noted(bands(answer)),
    }
    reach = [float(found.edges[0]) or float(found.edges[1]) / 2, float(found.edges[-1])] if asked.is_narrowed else None
    filled = _filled("heatmap", tables, answer, clock)
    signals = {"axis": asked.rows.axis, "shading": asked.shading, "highlight": vega.printable(asked.name), "reach": reach}
    said = told(found)
    title = {**filled["title"], "subtitle": [filled["title"]["subtitle"], *said]}
    told_of = [{**one, "value": signals[one["name"]]} if one["name"] in signals else one for one in filled["signals"]]
    return {**filled, "signals": told_of, "title": title if said else filled["title"]}


def distribution_picture(answer: Answer) -> dict[str, Any]:
    """Return the filled spec of the distribution of each group, on 1 / (1 - q); InputError of means without a histogram."""
    check_bins(answer, "distributions")
    return _filled("distribution", {"points": vega.curve(answer)}, answer, "utc")


def drawn(spec: dict[str, Any], form: str) -> bytes:
    """Return the picture as png or svg; UsageError where vl-convert-python is not installed."""
    try:
        import vl_convert
    except ImportError:
        raise UsageError("pictures need vl-convert-python: pip install 'tailboard[report]'") from None
    if form == "svg":
        text: str = vl_convert.vega_to_svg(spec)
        return text.encode()
    picture: bytes = vl_convert.vega_to_png(spec, scale=SCALE)
    return picture


def _filled(name: str, tables: Mapping[str, vega.Columns], answer: Answer, clock: str) -> dict[str, Any]:
    more = len(answer.runs) - RUNS_NAMED
    runs = ", ".join(answer.runs[:RUNS_NAMED]) + (f" and {more} more" if more > 0 else "")
    step = f", windows of {format_duration(answer.step_ns)}" if answer.step_ns else ""
    head = derived("picture", text=vega.printable(runs), subtitle=f"{answer.kind} latency, {answer.samples:,} samples{step}")
    spec = vega.with_values(vega.spec(name), tables, **_clock(answer, clock))
    return {**spec, **head}


def _clock(answer: Answer, clock: str) -> dict[str, Any]:
    return clock_signals(clock, answer.start_of, min(int(part.start_ns.min()) for part in answer.parts))


def clock_signals(clock: str, start_of_ns: int, first_ns: int) -> dict[str, Any]:
    """Return the signals that say how times are shown, for a picture that begins at `first_ns`."""
    if clock == "elapsed":
        return {"clock": clock, "origin": start_of_ns / vega.MS}
    if clock == "local":
        start = datetime.fromtimestamp(first_ns // 1_000_000_000).astimezone()
        offset = start.utcoffset()
        return {"clock": clock, "zone": start.tzname() or "local", "origin": -(offset.total_seconds() if offset else 0) * 1000}
    return {}
