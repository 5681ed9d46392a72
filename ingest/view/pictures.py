"""Pictures without a browser: the specs of kibana/vega/ filled with an answer and drawn as png or svg, for papers and CI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ingest.core.errors import UsageError, counted
from ingest.core.ranks import Percentile, parse_percentiles
from ingest.core.timing import format_duration
from ingest.core.writing import local, utc
from ingest.query.cells import cells, in_windows, of_step
from ingest.query.means import check_bins
from ingest.query.missing import bands
from ingest.query.overview import span_of
from ingest.query.question import Answer
from ingest.query.steps import widened
from ingest.query.worst import WHOLE_RANGE
from ingest.view import vega
from ingest.view.grouped_lines import curves_of, lines_of
from ingest.view.specs import derived
from ingest.view.terminal.heatmap import Asked, notes_of
from ingest.view.terminal.tables import first_of

SCALE = 2.0
RUNS_NAMED = 2
MOST_COLUMNS = 700
LINE = parse_percentiles("99")


Notes = Sequence[Mapping[str, Any]]


def percentiles_picture(answer: Answer, wanted: Sequence[Percentile], clock: str = "utc", marks: Notes = ()) -> dict[str, Any]:
    """Return the filled spec of percentiles over time: a line for each percentile, dashed for all windows together.

    Several groups have a colour each, and each percentile a dash; beyond MOST_COLOURS groups each has a picture of its own, all
    on the same axes. `marks` (at_ns, text, end_ns) are drawn as lines and bands. InputError of means without a histogram.
    """
    check_bins(answer, "pictures of percentiles")
    whole = replace(answer, parts=tuple(widened(answer.parts, WHOLE_RANGE)))
    if len(vega.group_names(answer)) > 1:
        drawn_lines = lines_of(answer, whole, wanted)
        tables = {**drawn_lines.tables, "gaps": vega.gaps(answer), "marks": vega.noted(marks)}
        notes = (*([_days(answer, clock)] if drawn_lines.faceted else ()), *drawn_lines.notes)  # else the axis has them
        return _filled("percentiles", tables, answer, clock, of=drawn_lines.spec, notes=notes)
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
    heat_map = cells(answer, asked.rows, lit, asked.columns)
    columns = vega.cell_columns(heat_map, answer)
    tables = {
        "cells": {name: column for name, column in columns.items() if name != "group"},
        "points": vega.points(answer, LINE),
        "gaps": vega.gaps(answer),
        "marks": vega.noted(bands(answer)),
    }
    reach = [float(heat_map.edges[0]) or float(heat_map.edges[1]) / 2, float(heat_map.edges[-1])] if asked.is_narrowed else None
    filled = _filled("heatmap", tables, answer, clock)
    signals = {"axis": asked.rows.axis, "shading": asked.shading, "highlight": vega.printable(asked.name), "reach": reach}
    notes = notes_of(heat_map)
    title = {**filled["title"], "subtitle": [filled["title"]["subtitle"], *notes]}
    filled_signals = [
        {**signal, "value": signals[signal["name"]]} if signal["name"] in signals else signal for signal in filled["signals"]
    ]
    return {**filled, "signals": filled_signals, "title": title if notes else filled["title"]}


def distribution_picture(answer: Answer) -> dict[str, Any]:
    """Return the filled spec of the distribution of each group, on 1 / (1 - q); InputError of means without a histogram."""
    check_bins(answer, "distributions")
    if len(vega.group_names(answer)) > 1:
        curves = curves_of(answer)
        return _filled("distribution", curves.tables, answer, "utc", of=curves.spec, notes=curves.notes)
    return _filled("distribution", {"points": vega.curve(answer)}, answer, "utc")


def drawn(spec: dict[str, Any], form: str, scale: float = SCALE) -> bytes:
    """Return the picture as png or svg; UsageError where vl-convert-python is not installed."""
    try:
        import vl_convert
    except ImportError:
        raise UsageError("pictures need vl-convert-python: pip install 'tailboard[report]'") from None
    if form == "svg":
        text: str = vl_convert.vega_to_svg(spec)
        return text.encode()
    picture: bytes = vl_convert.vega_to_png(spec, scale=scale)
    return picture


def _filled(
    name: str,
    tables: Mapping[str, vega.Columns],
    answer: Answer,
    clock: str,
    *,
    of: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a spec (`of`, else the one of that name) with its tables, its clock and a title; `notes` follow in the subtitle."""
    step = f", windows of {format_duration(answer.step_ns)}" if answer.step_ns else ""
    subtitle = "; ".join((f"{answer.latency}, {counted(answer.samples, 'sample')}{step}", *map(vega.printable, notes)))
    head = derived("picture", text=vega.printable(first_of(answer.runs, RUNS_NAMED)), subtitle=subtitle)
    spec = vega.with_values(vega.spec(name) if of is None else of, tables, **clock_of_answer(answer, clock))
    return {**spec, **head}


def _days(answer: Answer, clock: str) -> str:
    """Return what an axis of time says below it: the zone and the days, or that times are elapsed."""
    if clock == "elapsed":
        return "elapsed since the start of the run"
    stamp = utc if clock == "utc" else local
    days = dict.fromkeys(stamp(end)[:10] for end in span_of(answer.parts))
    return f"{'UTC' if clock == 'utc' else 'local time'}, {' to '.join(days)}"


def clock_of_answer(answer: Answer, clock: str) -> dict[str, Any]:
    """Return the signals that say how times of an answer are shown: utc, local or elapsed."""
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
