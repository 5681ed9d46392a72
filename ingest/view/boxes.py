"""Who is over-represented in a box, in sentences and as plain values: what text, JSON and csv have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ingest.core.errors import counted
from ingest.core.units import Stamp, figure, format_duration, latency, number
from ingest.query.batch_means import LEAST_BATCHES, MORE
from ingest.query.box import AFTER, BEFORE, ELSEWHERE, PERCENTILES, ROWS, SAME_TIME, SIDES, BoxOffsets, Explained
from ingest.view.text import shown_columns

SAID = 3
FINE = (0.1, 2.0)  # shares and lifts that are shown with three digits
LEAST_TIMES, LEAST_SCORE = 1.5, 0.1  # of what is named where there are no bounds
SECOND = 1e9
WIDTH_MS = 1000 // ROWS
NOTHING = "Nothing is over-represented in this box"
WHERE = {  # what a box is held against: where those are, and of whom the other share is
    ELSEWHERE: ("elsewhere", "of all others"),
    BEFORE: ("before", "of all before it"),
    AFTER: ("after it", "of all after it"),
    SAME_TIME: ("in the rest of its time", "of the others of its time"),
}


def sentences(explained: Explained) -> list[str]:
    """Return the verdict of a box, at most three sentences: who is over-represented, who may be, or that nothing is."""
    if not explained.inside:
        return ["No sample lies in this box."]
    where, _ = WHERE[explained.against]
    if not explained.outside:
        whole = "All samples lie in this box: there is no rest to compare it with."
        return [whole if explained.against == ELSEWHERE else f"No sample lies {where}: there is nothing to compare it with."]
    if not len(explained.table):
        return ["Every label has one value here: there is nothing to tell apart."]
    columns = explained.table.columns
    over = [row for row in range(len(explained.table)) if columns["verdict"][row] == MORE and columns["score"][row] > 0]
    unbounded = math.isnan(columns["lo"][0])
    striking = unbounded and columns["lift"][0] >= LEAST_TIMES and columns["score"][0] >= LEAST_SCORE
    if striking and (explained.stands_out[0] or not over):  # the most of the box leads, also where it may be a single event
        return [_line(explained, 0), _too_few(explained), *(_line(explained, row) for row in over)][:SAID]
    if over:
        return [_line(explained, row) for row in over[:SAID]]
    if columns["score"][0] <= 0:
        return [f"{NOTHING}: all values have the share that they have {where}."]
    return [f"{NOTHING}. Closest: {_line(explained, 0)}", *([_too_few(explained)] if unbounded else [])]


def _line(explained: Explained, row: int) -> str:
    columns = explained.table.columns
    name = f"{columns['label'][row]} {columns['value'][row] or '-'}"
    low, high = float(columns["lo"][row]), float(columns["hi"][row])
    bounds = "" if math.isnan(low) else f" ({times(low)} to {times(high)})" if high < math.inf else f" (at least {times(low)})"
    here = f"{columns['inside'][row]:,} of the {counted(explained.inside, 'sample')} in the box"
    where, others = WHERE[explained.against]
    shares = f"{percent(columns['share_inside'][row])}, {others} {percent(columns['share_outside'][row])}"
    return f"{name} made {here} ({shares}): {times(float(columns['lift'][row]))} times its share {where}{bounds}."


def _too_few(explained: Explained) -> str:
    depend = ", which resemble their neighbours" if explained.windows >= LEAST_BATCHES else ""
    where = f"They lie in {counted(explained.windows, 'window')} of {format_duration(explained.window_ns)}{depend}"
    if explained.stands_out[0]:
        return f"{where}: all this may be a single event, so whether it tends to happen there cannot be told."
    return f"{where}: too few to tell whether chance alone does this."


def times(lift: float) -> str:
    """Return a lift for people: 12, 2.6, 1.04, 0.071."""
    return "many" if math.isinf(lift) else figure(lift, 3 if FINE[0] <= lift < FINE[1] else 2)


def percent(share: float) -> str:
    """Return a share for people: 38.5 %, 0.0068 %."""
    return f"{figure(100 * float(share), 3 if share >= FINE[0] else 2)} %"


def latencies(explained: Explained) -> str:
    """Return the used range of latency for people."""
    low = latency(explained.low_ns) if explained.low_ns else ""
    high = "" if explained.high_ns is None else latency(explained.high_ns)
    if low and high:
        return f"{low} to {high}"
    return f"{low} and above" if low else f"below {high}" if high else "all latencies"


def seconds(explained: Explained, run: str) -> tuple[float | None, float | None]:
    """Return from when to when the box is in a run, in seconds from its start; None where it is open."""
    zero = explained.answer.run_start_ns[run]
    begin, end = (None if edge is None else (edge - zero) / SECOND for edge in explained.spans[run])
    return begin, end


def times_of(explained: Explained, stamp: Stamp) -> str:
    """Return the used time of the first run for people, and that others differ."""
    run = next(iter(explained.spans))
    begin, end = (None if edge is None else stamp(edge) for edge in explained.spans[run])
    since = [None if edge is None else f"{edge:+.9g} s" for edge in seconds(explained, run)]
    if begin is None and end is None:
        return "all the time"
    parts = [f"from {since[0]} ({begin})" if begin else "", f"to {since[1]} ({end})" if end else ""]
    others = f" of {run}; others from their own start" if len(explained.spans) > 1 else ""
    return " ".join(filter(None, parts)) + others


def offsets_sentence(offsets: BoxOffsets) -> str:
    """Return which offsets within the second stand out in the time of a box; empty where there is no rest."""
    sides = [(side, int(side.sum())) for side in (offsets.inside, offsets.outside)]
    if not all(total for _, total in sides):
        return ""
    row, head = offsets.first, "Offsets within the second, of all latencies: "
    inside, outside = (counted(total, "event") for _, total in sides)
    if row is None:
        return f"{head}no {WIDTH_MS} ms of it stand out in its time ({inside}, {outside} at other times)."
    shares = [percent(int(side[row]) / total) for side, total in sides]
    where = f"{row * WIDTH_MS} to {(row + 1) * WIDTH_MS} ms"
    return f"{head}{where} have {shares[0]} of the {inside} in its time, and {shares[1]} of the {outside} at other times."


def plain(explained: Explained, offsets: BoxOffsets | None = None) -> Mapping[str, Any]:
    """Return all of an answer as JSON: box, samples, windows, said, values, percentiles, distribution, offsets, notes."""
    table = explained.table
    names = shown_columns(table)
    values = [{name: _plain(table.columns[name][row]) for name in names} for row in range(len(table))]
    spans = {run: dict(zip(("from_s", "to_s"), seconds(explained, run), strict=True)) for run in explained.spans}
    box = {"low_ns": explained.low_ns, "high_ns": explained.high_ns, "runs": spans}
    percentiles = {
        percentile.name: {f"{side}_ns": _plain(value) for side, value in zip(SIDES, values, strict=True)}
        for percentile, values in zip(PERCENTILES, explained.percentiles, strict=True)
    }
    columns = {"lower_ns": "lower", "upper_ns": "upper", **{side: side for side in SIDES}}
    bins = explained.distribution
    distribution = [{name: int(bins.columns[of][row]) for name, of in columns.items()} for row in range(len(bins))]
    by_offset = [
        {"lower_ms": row * WIDTH_MS, "upper_ms": (row + 1) * WIDTH_MS, "inside": int(inside), "outside": int(outside)}
        for row, (inside, outside) in enumerate(zip(offsets.inside, offsets.outside, strict=True) if offsets else ())
    ]
    return {
        "box": box,
        "against": explained.against,
        "kind": explained.answer.kind,
        **{name: getattr(explained, name) for name in ("inside", "outside", "windows", "window_ns")},
        "complete": not explained.answer.missing,
        "said": sentences(explained),
        "values": values,
        "percentiles": percentiles,
        "distribution": distribution,
        "offsets": by_offset if offsets else None,
        "left_out": [],
        "notes": [*explained.answer.warnings, *explained.notes],
    }


def _plain(value: Any) -> Any:
    """Return a cell as JSON has it: None for what is not a number."""
    plain_value = value.item() if hasattr(value, "item") else value
    if isinstance(plain_value, float):
        return float(number(plain_value)) if math.isfinite(plain_value) else None
    return plain_value
