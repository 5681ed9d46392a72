"""Vega specs, and the flat tables that they are drawn from.

A spec in kibana/vega/ holds all the drawing and no values. Its `data` entries that are a bare name are holes: `with_values`
fills them with rows, the report's page does the same in the browser, Kibana's compiler puts a request there. Times are
epoch ms, latencies ns; rows are ordered by time, group, then latency.

    points   percentiles, rate, heatmap (the line over it): t, t2, label, v, n, beyond, open    v in ns, or I/Os a second
             surface, tails: t, t2, row, v, n, open         distribution: label, x, v, cum, n, open (x is 1 / (1 - q))
             load: run, name, label, x, v, n                runs: run, name, t, t2, v (ms since the run's start)
             omission: t, t2, label, low, v, high, n,       median, percentile (null: too few samples) and maximum of a kind
             and open, open_high                            of v and of high
             gap: t, t2, label, v, service, response, n,    response minus service at a percentile, of an operation
             and open
    cells    heatmap: t, t2, lower, upper, c, open, over    the samples of a window in [lower, upper); over: dropped from the map
             and n, cum, rank, part                         of its window, up to here; share of cells at most as full; c / most
             maps: as heatmap, and run, name                t, t2 in ms since the run's start; rank and part among all runs
    gaps     t, t2 (tails: row)                             no completions
    whole    percentiles: label, v                          the percentile of all windows together
    rows     surface, tails: row                            in the order in which they are drawn
    thin     percentiles, tails: t, t2, label, row, v, n    too few samples for the percentile: v is their maximum
    marks    t, text                                        what someone noted down

`open` is 1 where a value lies in the last bin of an open-ended layout: it is at least v (or lower). `beyond` counts the samples
above the percentile's rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from ingest.fields import assets
from ingest.grid import WEIGHT_BITS
from ingest.intervals import Intervals
from ingest.layout import LogLinear, common_layout
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer
from ingest.ranks import Percentile, parse_percentiles
from ingest.series import Group

Columns = dict[str, list[Any]]
Arrays = dict[str, NDArray[Any]]

ROWS_AN_OCTAVE = 8
HIGHEST = parse_percentiles("100")[0]
MS = 1_000_000


def spec(name: str) -> dict[str, Any]:
    """Return the spec kibana/vega/NAME.json, without data."""
    content: dict[str, Any] = orjson.loads((assets("kibana") / "vega" / f"{name}.json").read_bytes())
    return content


def with_values(spec: Mapping[str, Any], tables: Mapping[str, Columns], **signals: Any) -> dict[str, Any]:
    """Return the spec with its holes filled and some signals set; KeyError where it needs a table that is not there."""
    filled = [{**entry, "values": rows(tables[entry["name"]])} if entry.keys() == {"name"} else entry for entry in spec["data"]]
    told = [{**one, "value": signals[one["name"]]} if one["name"] in signals else one for one in spec["signals"]]
    return {**spec, "data": filled, "signals": told}


def rows(columns: Columns) -> list[dict[str, Any]]:
    """Return a table as one mapping a row, as Vega takes it."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def points(answer: Answer, wanted: Sequence[Percentile]) -> Columns:
    """Return one row per window, group and percentile that its samples can carry, values as the query answers them."""
    table = percentiles(answer, Wanted(wanted))
    names = group_names(answer)
    groups = [names[key] for key in zip(*(table.columns[label] for label in answer.by), strict=True)] if answer.by else None
    count = np.asarray(table.columns["count"])
    found: list[Arrays] = []
    for percentile in wanted:
        values = np.asarray(table.columns[percentile.name], np.float64)
        told = np.flatnonzero(~np.isnan(values))
        text = f"p{percentile.text}"
        label = [text] * len(count) if groups is None else groups
        label = [f"{name} {text}" for name in label] if groups is not None and len(wanted) > 1 else label
        found.append(
            {
                "t": _milliseconds(table.columns["start_ns"])[told],
                "t2": _milliseconds(table.columns["end_ns"])[told],
                "label": np.array(label, object)[told],
                "v": values[told],
                "n": count[told],
                "beyond": (count - percentile.ranks(count))[told],
                "open": np.asarray(table.columns[f"{percentile.name}_censored"])[told].astype(np.int64),
            }
        )
    return {name: np.concatenate([one[name] for one in found]).tolist() for name in found[0]}


def thin(answer: Answer, wanted: Sequence[Percentile]) -> Columns:
    """Return one row per window, group and percentile that its samples are too few for, with their maximum."""
    told = points(answer, wanted)
    highest = points(answer, [HIGHEST])
    known = set(zip(told["t"], told["label"], strict=True))
    named = bool(answer.by)
    found: Columns = {name: [] for name in highest}
    for percentile in wanted:
        for row in rows(highest):
            name = row["label"] if named else ""
            label = f"{name} p{percentile.text}".strip() if not named or len(wanted) > 1 else name
            if (row["t"], label) not in known:
                for name, value in {**row, "label": label}.items():
                    found[name].append(value)
    return found


def gaps(answer: Answer) -> Columns:
    """Return the windows between the first and the last in which no group has a sample."""
    starts = np.unique(np.concatenate([part.start_ns for part in answer.parts if len(part)]))
    step = answer.step_ns
    missing = np.setdiff1d(np.arange(starts[0], starts[-1], step), starts) if step else starts[:0]
    return {"t": _milliseconds(missing).tolist(), "t2": _milliseconds(missing + step).tolist()}


def noted(marks: Sequence[Mapping[str, Any]]) -> Columns:
    """Return the marks as a table."""
    return {"t": [mark["at_ns"] / MS for mark in marks], "text": [printable(mark["text"]) for mark in marks]}


def curve(answer: Answer) -> Columns:
    """Return the distribution of each group as steps: value v up to x = 1 / (1 - q), q the share of samples up to its bin.

    The last bin ends at x = N: a percentile above 1 - 1/N has no sample beyond it.
    """
    names = group_names(answer)
    columns: Columns = {name: [] for name in ("label", "x", "v", "cum", "n", "open")}
    for part in answer.parts:
        for row in range(len(part)):
            span = slice(int(part.indptr[row]), int(part.indptr[row + 1]))
            cumulative = np.cumsum(part.counts[span])
            total = int(cumulative[-1])
            key = part.table[part.series[row]]
            label = names[key] if isinstance(key, tuple) else ""
            beyond = np.maximum(total - cumulative, 1)
            entries = span.stop - span.start
            columns["label"] += [label] * (entries + 1)
            columns["x"] += [1.0, *(total / beyond).tolist()]
            values = part.layout.values[part.bins[span]].tolist()
            columns["v"] += [values[0], *values]
            columns["cum"] += [0, *cumulative.tolist()]
            columns["n"] += [total] * (entries + 1)
            columns["open"] += [0, *((part.bins[span] == part.layout.bins - 1) & part.layout.open_ended).astype(int).tolist()]
    return columns


def cells(answer: Answer) -> Columns:
    """Return one row per window, group and occupied heat-map row [lower, upper); counts add up to the answer's samples.

    All groups have the same rows: unlike layouts are moved to their common one first.
    """
    common = common_layout(part.layout for part in answer.parts)
    layout = row_layout(common)
    moved = [part.in_layout(common).in_layout(layout) for part in answer.parts]
    edges = layout.edges
    flat = [
        _entries(part, answer) | {"lower": edges[part.bins], "upper": edges[part.bins + 1], "over": np.zeros(len(part.bins), int)}
        for part in moved
    ]
    return _shaded(_ordered(flat, answer, ("lower", "upper", "over")))


def _shaded(columns: Columns) -> Columns:
    """Return cells with n, cum, rank and part: what their shade and their text need."""
    counts = np.array(columns["c"], np.float64)
    groups = list(zip(columns["t"], columns["group"], strict=True))
    first = np.array([at == 0 or groups[at - 1] != group for at, group in enumerate(groups)], np.bool_)
    starts = np.flatnonzero(first)
    total = np.cumsum(counts)
    number = np.cumsum(first) - 1
    before = np.concatenate([[0.0], total])[starts]
    ends = np.append(starts[1:], len(counts)) - 1
    ranks = np.searchsorted(np.sort(counts), counts, side="right") / max(len(counts), 1)
    return {
        **columns,
        "n": (total[ends] - before)[number].tolist(),
        "cum": (total - before[number]).tolist(),
        "rank": ranks.tolist(),
        "part": (counts / max(1.0, float(counts.max(initial=0)))).tolist(),
    }


def row_layout(layout: LogLinear, an_octave: int = ROWS_AN_OCTAVE) -> LogLinear:
    """Return the layout of heat-map rows: 8 an octave where their edges are edges of the bins, else the bins themselves."""
    unit = layout.unit_ns << layout.coarseness
    top = -(-int(layout.edges[-1]) // unit)
    octaves = max(1, (top - 1).bit_length() - an_octave.bit_length() + 2)
    reaching = LogLinear(an_octave, an_octave * octaves, unit, open_ended=layout.open_ended)
    last = int(reaching.index(layout.edges[-2:-1])[0])
    coarser = replace(reaching, fine=last + 1)
    return coarser if layout.nests_in(coarser) else layout


def group_names(answer: Answer) -> dict[Group, str]:
    """Return the text of each group that has rows, in the order of the labels; unlike groups have unlike texts."""
    names: dict[Group, str] = {}
    found = {part.table[code] for part in answer.parts for code in np.unique(part.series)}
    for key in sorted(key for key in found if isinstance(key, tuple)):
        text = printable(", ".join(label or "-" for label in key)) or "all"
        while text in names.values():
            text += "'"
        names[key] = text
    return names


def printable(text: str) -> str:
    """Return text that is Unicode throughout: bytes of file names that were none are written as numbers."""
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


def _entries(part: Intervals, answer: Answer) -> Arrays:
    """Return what all tables have of each bin entry; `group` as the number of its name."""
    numbers = {key: number for number, key in enumerate(group_names(answer))}
    codes = np.array([numbers.get(key, -1) if isinstance(key, tuple) else -1 for key in part.table], np.int64)
    row = part.row
    return {
        "t": _milliseconds(part.start_ns)[row],
        "t2": _milliseconds(part.end_ns)[row],
        "group": codes[part.series][row],
        "c": part.counts if part.completions is None else part.counts / (1 << WEIGHT_BITS),
        "open": (part.bins == part.layout.bins - 1).astype(np.int64) * part.layout.open_ended,
    }


def _milliseconds(stamps_ns: NDArray[np.int64]) -> NDArray[Any]:
    return stamps_ns // MS if not (stamps_ns % MS).any() else stamps_ns / MS


def _ordered(parts: Sequence[Arrays], answer: Answer, values: Sequence[str]) -> Columns:
    """Return the parts after one another, ordered by window, group and the first of `values`, groups named."""
    joined = {name: np.concatenate([part[name] for part in parts]) for name in ("t", "t2", "group", *values, "c", "open")}
    order = np.lexsort((joined[values[0]], joined["group"], joined["t"]))
    columns = {name: column[order].tolist() for name, column in joined.items()}
    names = list(group_names(answer).values())
    columns["group"] = [names[number] for number in columns["group"]]
    return columns
