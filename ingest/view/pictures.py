"""Pictures without a browser: the specs of kibana/vega/ filled with an answer and drawn as png or svg, for papers and CI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ingest.errors import UsageError
from ingest.query.question import Answer, widened
from ingest.ranks import Percentile, parse_percentiles
from ingest.timing import format_duration
from ingest.view import vega

WHOLE_RANGE = 1 << 62
SCALE = 2.0
RUNS_NAMED = 2
LINE = parse_percentiles("99")


def percentiles_picture(answer: Answer, wanted: Sequence[Percentile], clock: str = "utc") -> dict[str, Any]:
    """Return the filled spec of percentiles over time: a line for each group and percentile, dashed for all windows together."""
    whole = replace(answer, parts=tuple(widened(answer.parts, WHOLE_RANGE)))
    tables = {
        "points": vega.points(answer, wanted),
        "thin": vega.thin(answer, wanted),
        "whole": vega.points(whole, wanted),
        "gaps": vega.gaps(answer),
        "marks": vega.noted(()),
    }
    return _filled("percentiles", tables, answer, clock)


def heatmap_picture(answer: Answer, clock: str = "utc") -> dict[str, Any]:
    """Return the filled spec of a heat map with its p99; UsageError where there is more than one group."""
    names = list(vega.group_names(answer).values())
    if len(names) > 1:
        shown = ", ".join(names[:5]) + (" and more" if len(names) > 5 else "")
        raise UsageError(f"a picture of a heat map shows one group, here are {shown}: choose with --where, or leave out --by")
    cells = vega.cells(answer)
    tables = {
        "cells": {name: column for name, column in cells.items() if name != "group"},
        "points": vega.points(answer, LINE),
        "gaps": vega.gaps(answer),
        "marks": vega.noted(()),
    }
    return _filled("heatmap", tables, answer, clock)


def distribution_picture(answer: Answer) -> dict[str, Any]:
    """Return the filled spec of the distribution of each group, on 1 / (1 - q)."""
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
    title = {
        "text": vega.printable(runs),
        "subtitle": f"{answer.kind} latency, {answer.samples:,} samples{step}",
        "anchor": "start",
        "offset": 14,
    }
    spec = vega.with_values(vega.spec(name), tables, **_clock(answer, clock))
    return {**spec, "background": "white", "title": title}


def _clock(answer: Answer, clock: str) -> dict[str, Any]:
    """Return the signals that say how times are shown."""
    if clock == "elapsed":
        return {"clock": clock, "origin": answer.start_of / vega.MS}
    if clock == "local":
        start = datetime.fromtimestamp(min(int(part.start_ns.min()) for part in answer.parts) // 1_000_000_000).astimezone()
        offset = start.utcoffset()
        return {"clock": clock, "zone": start.tzname() or "local", "origin": -(offset.total_seconds() if offset else 0) * 1000}
    return {}
