"""Pictures without a browser: the specs of kibana/vega/ filled with an answer and drawn as png or svg."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import compress
from typing import Any

import numpy as np

from ingest.core.errors import UsageError, counted
from ingest.core.intervals import in_time_order
from ingest.core.labels import Group
from ingest.core.quantiles import Percentile, parse_percentiles
from ingest.core.units import format_duration, local, utc
from ingest.query.coverage import bands
from ingest.query.heatmap import Cells, cells, in_windows, of_step
from ingest.query.means import check_bins
from ingest.query.offsets import OffsetMap, joined, lit_counts
from ingest.query.overview import WHOLE_RANGE, span_of
from ingest.query.question import Answer
from ingest.query.windows import widened
from ingest.read.curves import Curve, named_apart
from ingest.view import vega
from ingest.view.specs import derived
from ingest.view.terminal.heatmap import Asked, notes_of
from ingest.view.terminal.tables import first_of

# Pictures of percentiles of several groups: one colour a group and one dash a percentile, or a small picture for each group.


MOST_COLOURS = 8  # more cannot be told from one another
MOST_FACETS = 60
LONGEST_LABEL = 18
LONGEST_TITLE = 44
BREAKS = "/.:, "
LEAST_COMMON = 3
GREY = "#c4c4c4"
COLOURS = ("#4c78a8", "#f58518", "#e45756", "#72b7b2", "#54a24b", "#eeca3b", "#b279a2", "#ff9da6")  # Vega's tableau10


@dataclass(frozen=True, slots=True)
class Lines:
    """The spec and the tables of a picture of several groups, and what its subtitle has to say of them."""

    spec: Mapping[str, Any]
    tables: Mapping[str, vega.Columns]
    notes: tuple[str, ...]
    faceted: bool = False


def lines_of(answer: Answer, whole: Answer, wanted: Sequence[Percentile]) -> Lines:
    """Return the picture of the percentiles of several groups: `lines`, `points`, `thin` and `whole` bear group and level.

    More than MOST_FACETS groups are those with the highest value of the last percentile, which the notes say.
    """
    names = vega.group_names(answer)
    faceted = len(names) > MOST_COLOURS
    labels, by, notes = _labels_of(answer, names, LONGEST_TITLE if faceted else LONGEST_LABEL)
    tables = {name: _by_level(answer, wanted, labels, make) for name, make in (("points", vega.points), ("thin", vega.thin))}
    tables["whole"] = _by_level(whole, wanted, labels, vega.points)
    if len(names) > MOST_FACETS:
        tables, kept = _worst(tables, wanted[-1])
        notes.append(f"{kept} of {counted(len(names), 'group')}, those with the highest p{wanted[-1].text}")
    if tables["thin"]["v"]:
        notes.append("circles: the maximum, where there are too few samples")
    order = {text: place for place, text in enumerate(labels.values())}
    tables["lines"] = joined_groups(tables["points"], order)
    levels = [f"p{percentile.text}" for percentile in wanted]
    if faceted:
        own = vega.spec("percentiles")["axes"]
        axes = [{key: value for key, value in {**axis, "labelOverlap": True}.items() if key != "title"} for axis in own]
        return Lines(derived("percentiles-facets", levels=levels, axes=axes), tables, tuple(notes), faceted=True)
    return Lines(derived("percentiles-groups", levels=levels, by=by), tables, tuple(notes))


def curves_of(answer: Answer, others: Sequence[Curve] = ()) -> Lines:
    """Return the picture of the distributions of groups and of curves in files: beyond MOST_COLOURS the lower p99s are grey."""
    labels, _, notes = _labels_of(answer, vega.group_names(answer), LONGEST_LABEL)
    points = vega.curve(answer)
    if others and not answer.by:
        labels = dict.fromkeys(labels, "all")
    points["label"] = [labels[name] for name in points["label"]]
    for curve in named_apart(others, labels.values()):  # the highest level of a file has no place on the axis: it is 1 / 0
        finite = [(x, value) for x, value in zip(curve.x, curve.values_ns, strict=True) if x < math.inf]
        for x, value in finite:
            for name, entry in zip(points, (curve.name, x, int(value), 0, 0, 0), strict=True):
                points[name].append(entry)
        labels |= {curve.name: curve.name} if finite else {}
    tail: dict[str, float] = {}  # the value at p99 (x is 100), else the highest
    for label, x, value in zip(points["label"], points["x"], points["v"], strict=True):
        tail[label] = value if x <= 100 or label not in tail else tail[label]
    ranked = sorted(labels.values(), key=lambda label: -tail[label])
    coloured = set(ranked if len(ranked) <= MOST_COLOURS else ranked[: MOST_COLOURS - 1])
    tones = [label for label in labels.values() if label in coloured]
    rest = f"{len(labels) - len(tones)} others"
    tone = [label if label in coloured else rest for label in points["label"]]
    last = sorted(range(len(tone)), key=lambda row: tone[row] != rest)  # grey lies below
    tables = {"points": {name: [column[row] for row in last] for name, column in {**points, "tone": tone}.items()}}
    grey = len(tones) < len(labels)
    spec = derived("distribution-groups", tones=[*tones, *[rest][:grey]], colours=[*COLOURS[: len(tones)], *[GREY][:grey]])
    return Lines(spec, tables, (*notes, *["coloured: those with the highest p99"][:grey]))


def _labels_of(answer: Answer, names: Mapping[Group, str], longest: int) -> tuple[dict[str, str], str, list[str]]:
    """Return a short text by the name of each group, what they are grouped by, and the labels that all have alike."""
    short, constant = short_labels(list(names), longest)
    labels = {names[key]: text for key, text in zip(names, short, strict=True)}
    varying = [name for place, name in enumerate(answer.by) if place not in constant]
    return labels, ", ".join(varying or answer.by), [f"{answer.by[place]} {value or '-'}" for place, value in constant.items()]


def _by_level(answer: Answer, wanted: Sequence[Percentile], labels: Mapping[str, str], make: Any) -> vega.Columns:
    """Return the rows of a table of each percentile by itself, with the group and the percentile in columns of their own."""
    tables: vega.Columns = {}
    for percentile in wanted:
        columns = make(answer, [percentile])
        names = columns["label"]
        columns |= {"group": [labels[name] for name in names], "level": [f"p{percentile.text}"] * len(names)}
        for name, column in columns.items():
            tables.setdefault(name, []).extend(column)
    return tables


def _worst(tables: Mapping[str, vega.Columns], last: Percentile) -> tuple[dict[str, vega.Columns], int]:
    """Return the rows of the groups whose windows reach highest, and how many groups these are."""
    highest: dict[str, float] = {}
    for name in ("points", "thin"):
        rows = zip(tables[name]["group"], tables[name]["level"], tables[name]["v"], strict=True)
        for group, level, value in rows:
            if level == f"p{last.text}":
                highest[group] = max(value, highest.get(group, 0.0))
    kept = set(sorted(highest, key=lambda group: -highest[group])[:MOST_FACETS])
    cut: dict[str, vega.Columns] = {}
    for name, columns in tables.items():
        stay = [group in kept for group in columns["group"]]
        cut[name] = {key: list(compress(column, stay)) for key, column in columns.items()}
    return cut, len(kept)


def joined_groups(points: vega.Columns, order: Mapping[str, int]) -> vega.Columns:
    """Return the windows of each group and percentile as a line of steps: it ends where windows are missing (v null)."""
    named = zip(*(points[name] for name in ("group", "level", "t", "t2", "v")), strict=True)
    rows: list[tuple[Any, ...]] = sorted(named, key=lambda row: row[:3])
    lines: list[tuple[Any, ...]] = []
    for (group, level, begin, end, value), after in zip(rows, [*rows[1:], ()], strict=True):
        place = order[group]
        lines.append((group, level, begin, value, place))
        if after[:3] != (group, level, end):
            lines += [(group, level, end, value, place), (group, level, end, None, place)]
    return vega.columns_of(("group", "level", "t", "v", "order"), lines)


def short_labels(keys: Sequence[Group], longest: int) -> tuple[list[str], dict[int, str]]:
    """Return a text for each group that distinguishes it, and the labels that all groups have alike by their place.

    Labels that are the same everywhere are left out; so are folders and domains that all texts have in common where a text is
    longer than `longest`. What is still longer is cut in the middle. Unlike groups have unlike texts.
    """
    width = len(keys[0]) if keys else 0
    places = range(width if len(keys) > 1 else 0)
    constant = {place: keys[0][place] for place in places if len({key[place] for key in keys}) == 1}
    texts = [vega.printable(", ".join(label or "-" for place, label in enumerate(key) if place not in constant)) for key in keys]
    if any(len(text) > longest for text in texts):  # without what all begin and end with, at whole folders, domains and words
        before = _common(texts)
        after = _common([text[before:][::-1] for text in texts])
        texts = [text[before : len(text) - after] for text in texts]
    shown: list[str] = []
    for text in [cut_in_the_middle(text, longest) for text in texts]:
        number, unlike = 1, text
        while unlike in shown:
            number += 1
            unlike = cut_in_the_middle(text, longest - len(f" {number}")) + f" {number}"
        shown.append(unlike)
    return shown, constant


def _common(texts: Sequence[str]) -> int:
    """Return how many characters all texts begin with, up to and with a mark between words; never all of one."""
    alike = [len(set(letters)) == 1 for letters in zip(*texts, strict=False)]
    common = alike.index(False) if False in alike else len(alike)
    at = max((place + 1 for place, letter in enumerate(texts[0][:common]) if letter in BREAKS), default=0)
    return at if at >= LEAST_COMMON else 0


def cut_in_the_middle(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters: names differ at their ends, so the middle goes."""
    if len(text) <= longest:
        return text
    tail = (longest - 1) * 3 // 5
    return f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"


# Pictures without a browser: the specs of kibana/vega/ filled with an answer and drawn as png or svg, for papers and CI.


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
        return _filled(drawn_lines.spec, tables, answer, clock, notes)
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
    _one_group([*vega.group_names(answer).values()], "a heat map")
    asked = asked or Asked(vega.EIGHTHS)
    if asked.columns > MOST_COLUMNS:
        raise UsageError(f"--columns {asked.columns}: a picture has room for {MOST_COLUMNS}; csv has it for all")
    answer = in_windows(answer, MOST_COLUMNS) if not asked.columns else answer
    lit = asked.lit and of_step(asked.lit, answer.step_ns)
    heat_map = cells(answer, asked.rows, lit, asked.columns)
    narrowed, edges = asked.rows.low_ns or asked.rows.high_ns, heat_map.edges
    reach = [float(edges[0]) or float(edges[1]) / 2, float(edges[-1])] if narrowed else None
    tables, axis, lit_name = map_tables(heat_map, answer), asked.rows.axis, vega.printable(asked.name)
    filled = _filled("heatmap", tables, answer, clock, axis=axis, shading=asked.shading, highlight=lit_name, reach=reach)
    title, notes = filled["title"], notes_of(heat_map)
    return {**filled, "title": {**title, "subtitle": [title["subtitle"], *notes]}} if notes else filled


def map_tables(heat_map: Cells, answer: Answer) -> dict[str, vega.Columns]:
    """Return the tables of a heat map of one group: cells, the line of p99 over them, gaps, and what is missing as marks."""
    columns = vega.cell_columns(heat_map, answer)
    return {
        "cells": {name: column for name, column in columns.items() if name != "group"},
        "points": vega.points(answer, LINE),
        "gaps": vega.gaps(answer),
        "marks": vega.noted(bands(answer)),
    }


def _one_group(names: Sequence[str], what: str) -> None:
    """Raise UsageError for a picture of several groups."""
    if len(names) > 1:
        shown = ", ".join(names[:5]) + (" and more" if len(names) > 5 else "")
        raise UsageError(f"a picture of {what} shows one group, here are {shown}: choose with --where, or leave out --by")


def distribution_picture(answer: Answer, others: Sequence[Curve] = ()) -> dict[str, Any]:
    """Return the filled spec of the distribution of each group, and of `others` from files, on 1 / (1 - q).

    InputError of means without a histogram.
    """
    check_bins(answer, "distributions")
    if len(vega.group_names(answer)) > 1 or others:
        curves = curves_of(answer, others)
        return _filled(curves.spec, curves.tables, answer, "utc", curves.notes)
    return _filled("distribution", {"points": vega.curve(answer)}, answer, "utc")


def drawn(spec: dict[str, Any], form: str, scale: float = SCALE) -> bytes:
    """Return the picture as png or svg; UsageError where vl-convert-python is not installed."""
    try:
        import vl_convert
    except ImportError:
        raise UsageError("pictures need vl-convert-python: pip install vl-convert-python") from None
    if form == "svg":
        text: str = vl_convert.vega_to_svg(spec)
        return text.encode()
    picture: bytes = vl_convert.vega_to_png(spec, scale=scale)
    return picture


def _filled(
    of: str | Mapping[str, Any],
    tables: Mapping[str, vega.Columns],
    answer: Answer,
    clock: str,
    notes: Sequence[str] = (),
    **signals: Any,
) -> dict[str, Any]:
    """Return a spec, or the one of a name, with tables, clock, other signals and a title; `notes` follow in the subtitle."""
    step = f", windows of {format_duration(answer.step_ns)}" if answer.step_ns else ""
    subtitle = "; ".join((f"{answer.latency}, {counted(answer.samples, 'sample')}{step}", *map(vega.printable, notes)))
    head = derived("picture", text=vega.printable(first_of(answer.runs, RUNS_NAMED)), subtitle=subtitle)
    spec = vega.spec(of) if isinstance(of, str) else of
    return {**vega.with_values(spec, tables, **clock_of_answer(answer, clock), **signals), **head}


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


# The offset map as flat tables for kibana/vega/offsets.json (their columns stand in `vega`), and its picture.


def offset_cells(answer: OffsetMap) -> vega.Columns:
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
    starts, period = answer.late_ns, answer.periods.period_ns
    return {"t": (starts / vega.MS).tolist(), "t2": ((starts + period) / vega.MS).tolist(), "n": answer.late.tolist()}


def picture(answer: OffsetMap, shading: str = "rank", clock: str = "utc", highlight: str = "") -> dict[str, Any]:
    """Return the filled spec of an offset map; UsageError where there is more than one group.

    More periods than there are pixels are added up, and it is said. `highlight` names what is highlighted.
    """
    groups = sorted({answer.cells.table[code] for code in np.unique(answer.cells.series).tolist()})
    _one_group([", ".join(label or "-" for label in key) for key in groups], "offsets")
    answer, width = joined(answer, MOST_COLUMNS)
    tables = {"cells": offset_cells(answer), "gaps": gaps(answer), "late": late(answer), "marks": vega.noted(())}
    periods = answer.periods
    wide = f", a column is {format_duration(width)}" if width > periods.period_ns else ""
    subtitle = f"offset within each {format_duration(periods.period_ns)}, {periods.rows} rows, {answer.samples:,} events"
    name, lit = vega.printable(highlight), answer.lit
    red = [f"{name} in red: {int(lit.counts.sum()):,} of {answer.samples:,} events"] if lit is not None else []
    first, last = answer.first_ns / vega.MS, answer.end_ns / vega.MS
    signals = {"period": periods.period_ns, "first": first, "last": last, "shading": shading, "highlight": name}
    signals |= clock_signals(clock, answer.start_of, answer.first_ns)
    head = derived("picture", text=vega.printable(first_of(answer.runs, RUNS_NAMED)), subtitle=[subtitle + wide, *red])
    return {**vega.with_values(vega.spec("offsets"), tables, **signals), **head}
