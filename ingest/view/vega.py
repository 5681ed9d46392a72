"""Vega specs, and the flat tables that they are drawn from.

A spec in kibana/vega/ holds all the drawing and no values. Its `data` entries that are a bare name are holes: `with_values`
fills them with rows, the report's page does the same in the browser, Kibana's compiler puts a request there. Times are
epoch ms, latencies ns; rows are ordered by time, group, then latency.

    points   percentiles, rate, heatmap (the line over it): t, t2, label, v, n, beyond, open    v in ns, or I/Os a second
             surface, tails: t, t2, row, v, n, open         distribution: label, x, v, cum, n, open (x is 1 / (1 - q))
             load: run, name, label, x, rate, v, n          runs: run, name, t, t2, v (ms since the run's start)
             load, capacities: label, text, load, low, high  (loads on its x axis)
             movers, shifts: i, row, x, ratio, lo, hi,      ratios of a comparison with their bounds (null: not known), drawn from
             first, last, cut_low, cut_high, verdict,       first to last; values in ns and samples of both sides
             baseline, run, open_baseline, ..., n_run
             trend: i, run, t, label, v, lo, hi, n, open,   a percentile by run (see trend.py); lo 0: not drawn
             level, change, m                               m: latency (or nothing), throughput, share: in billionths
             omission: t, t2, label, low, v, high, n,       median, percentile (null: too few samples) and maximum of a kind
             and open, open_high                            of v and of high
             gap: t, t2, label, v, service, response, n,    response minus service at a percentile, of an operation
             and open
    cells    heatmap: t, t2, lower, upper, c, open, over    the samples of a window in [lower, upper); over: dropped from the map
             and n, cum                                     of its window, up to here
             and lit                                        how many of c are highlighted, where something is
             maps: as heatmap, and run, name                t, t2 in ms since the run's start
             offsets: t, t2, lower, upper, c, n             events of a period by offset in it [lower, upper); n of the period
             and lit                                        as heatmap; periods follow one another, starts are whole periods
    gaps     t, t2 (tails: row)                             no completions; offsets: stretches in which nothing was recorded
    late     offsets: t, t2, n                              periods of which n events were reported late
    whole    percentiles: label, v                          the percentile of all windows together
    rows     surface, tails: row                            in the order in which they are drawn
    thin     percentiles, tails: t, t2, label, row, v, n    too few samples for the percentile: v is their maximum
    marks    t, t2, text                                    what someone noted down; t2 null: it has no end

`open` is 1 where a value lies in the last bin of an open-ended layout: it is at least v (or lower). `beyond` counts the samples
above the percentile's rank.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from ingest.core.errors import shown
from ingest.core.labels import Group
from ingest.core.quantiles import Percentile, Ranked, parse_percentiles, reported
from ingest.core.schema import assets
from ingest.query.heatmap import Cells, Rows
from ingest.query.heatmap import cells as of_latency
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer

Columns = dict[str, list[Any]]

EIGHTHS = Rows(octave=8)
HIGHEST = parse_percentiles("100")[0]
MS = 1_000_000


def spec(name: str) -> dict[str, Any]:
    """Return the spec kibana/vega/NAME.json, without data."""
    content: dict[str, Any] = orjson.loads((assets("kibana") / "vega" / f"{name}.json").read_bytes())
    return content


def with_values(spec: Mapping[str, Any], tables: Mapping[str, Columns], **signals: Any) -> dict[str, Any]:
    """Return the spec with its holes filled and some signals set; KeyError where it needs a table that is not there."""
    filled = [{**entry, "values": rows(tables[entry["name"]])} if entry.keys() == {"name"} else entry for entry in spec["data"]]
    filled_signals = [
        {**signal, "value": signals[signal["name"]]} if signal["name"] in signals else signal for signal in spec["signals"]
    ]
    return {**spec, "data": filled, "signals": filled_signals}


def rows(columns: Columns) -> list[dict[str, Any]]:
    """Return a table as one mapping a row, as Vega takes it."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def columns_of(names: Collection[str], rows: Iterable[Iterable[Any]]) -> Columns:
    """Return the table of rows that have a cell for each of the names."""
    columns = [*zip(*rows, strict=True)] or [()] * len(names)
    return {name: [*column] for name, column in zip(names, columns, strict=True)}


def points(answer: Answer, wanted: Sequence[Percentile]) -> Columns:
    """Return one row per window, group and percentile that its samples can carry, values as the query answers them."""
    table = percentiles(answer, Wanted(wanted))
    names = group_names(answer)
    groups = [names[key] for key in zip(*(table.columns[label] for label in answer.by), strict=True)] if answer.by else None
    count = np.asarray(table.columns["count"])
    tables: list[dict[str, NDArray[Any]]] = []
    for percentile in wanted:
        values = np.asarray(table.columns[percentile.name], np.float64)
        known = np.flatnonzero(np.isfinite(values))  # no line leads to operations that failed
        text = f"p{percentile.text}"
        label = [text] * len(count) if groups is None else groups
        label = [f"{name} {text}" for name in label] if groups is not None and len(wanted) > 1 else label
        tables.append(
            {
                "t": _milliseconds(table.columns["start_ns"])[known],
                "t2": _milliseconds(table.columns["end_ns"])[known],
                "label": np.array(label, object)[known],
                "v": values[known],
                "n": count[known],
                "beyond": (count - percentile.ranks(count))[known],
                "open": np.asarray(table.columns[f"{percentile.name}_censored"])[known].astype(np.int64),
            }
        )
    return {name: np.concatenate([columns[name] for columns in tables]).tolist() for name in tables[0]}


def thin(answer: Answer, wanted: Sequence[Percentile]) -> Columns:
    """Return one row per window, group and percentile that its samples are too few for, with their maximum."""
    columns = points(answer, wanted)
    highest = points(answer, [HIGHEST])
    known = set(zip(columns["t"], columns["label"], strict=True))
    named = bool(answer.by)
    windows = []
    for percentile in wanted:
        for row in rows(highest):
            name = row["label"] if named else ""
            label = f"{name} p{percentile.text}".strip() if not named or len(wanted) > 1 else name
            if (row["t"], label) not in known:
                windows.append({**row, "label": label}.values())
    return columns_of(highest, windows)


def gaps(answer: Answer) -> Columns:
    """Return the windows between the first and the last in which no group has a sample."""
    starts = np.unique(np.concatenate([part.start_ns for part in answer.parts if len(part)]))
    step = answer.step_ns
    missing = np.setdiff1d(np.arange(starts[0], starts[-1], step), starts) if step else starts[:0]
    return {"t": _milliseconds(missing).tolist(), "t2": _milliseconds(missing + step).tolist()}


def noted(marks: Sequence[Mapping[str, Any]]) -> Columns:
    """Return the marks as a table; several runs may have the same, which is drawn once."""
    once = {(mark["at_ns"], mark.get("end_ns"), mark["text"]): None for mark in marks}
    return {
        "t": [at / MS for at, _, _ in once],
        "t2": [None if end is None else end / MS for _, end, _ in once],
        "text": [printable(text) for _, _, text in once],
    }


def note_of(mark: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mark as a page's content holds it: run, t, text, and t2 where it has an end."""
    until = {} if mark.get("end_ns") is None else {"t2": mark["end_ns"] / MS}
    return {"run": printable(mark.get("run", "")), "t": mark["at_ns"] / MS, **until, "text": printable(mark["text"])}


def curve(answer: Answer, most: int = 0) -> Columns:
    """Return the distribution of each group as steps: value v up to x = 1 / (1 - q), q the share of samples up to its bin.

    The last bin ends at x = N: a percentile above 1 - 1/N has no sample beyond it. Where a group has more than `most` steps
    (0: however many) those too near to the one before to be seen are left out.
    """
    names = group_names(answer)
    columns: Columns = {name: [] for name in ("label", "x", "v", "cum", "n", "open")}
    for each in answer.parts:
        part = Ranked(each).rows  # the bins of each row in the order in which they end
        values = reported(part)
        for row in range(len(part)):
            span = slice(int(part.indptr[row]), int(part.indptr[row + 1]))
            cumulative = np.cumsum(part.counts[span])
            total = int(cumulative[-1])
            key = part.table[part.series[row]]
            label = names[key]
            beyond = np.maximum(total - cumulative, 1)
            x, bins = total / beyond, part.bins[span]
            kept = _apart(x, most)
            kept = kept[bins[kept] < part.layout.timed.bins]  # operations that failed are beyond the curve
            columns["label"] += [label] * (len(kept) + 1)
            columns["x"] += [1.0, *x[kept].tolist()]
            columns["v"] += [int(values[span][0]), *values[span][kept].tolist()]
            columns["cum"] += [0, *cumulative[kept].tolist()]
            columns["n"] += [total] * (len(kept) + 1)
            columns["open"] += [0, *part.layout.opened(bins[kept]).astype(int).tolist()]
    return columns


def _apart(x: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Return the steps of a curve that can be distinguished where it has about `most` places on a logarithmic axis."""
    if not most or len(x) <= most:
        return np.arange(len(x))
    places = np.floor(np.log(x) / np.log(max(float(x[-1]), 2.0)) * most)
    return np.flatnonzero(np.append(np.diff(places) != 0, True))  # the last of each place, so that no step comes too early


def cells(answer: Answer, rows: Rows = EIGHTHS, lit: Answer | None = None, columns: int = 0) -> Columns:
    """Return one row per cell of a heat map, eight rows an octave unless asked otherwise; what its shade and its text need.

    All groups have the same rows. What lies outside of a range of `rows` is in no cell, but in n and cum.
    """
    return cell_columns(of_latency(answer, rows, lit, columns), answer)


def cell_columns(heat_map: Cells, answer: Answer) -> Columns:
    """Return cells as the columns of the spec; those of operations that failed are `over` the map, as what was dropped."""
    names, failed = group_names(answer), heat_map.failed
    if failed.any():
        top = float(heat_map.edges[-1])
        lower, upper = (np.where(failed, top, edges) for edges in (heat_map.lower, heat_map.upper))
        heat_map = replace(heat_map, lower=lower, upper=upper, over=np.where(failed, 1, heat_map.over))
    lit = {} if heat_map.lit is None else {"lit": heat_map.lit.tolist()}
    return {
        "t": _milliseconds(heat_map.start_ns).tolist(),
        "t2": _milliseconds(heat_map.end_ns).tolist(),
        "group": [names[heat_map.groups[number]] for number in heat_map.group.tolist()],
        **{name: getattr(heat_map, name).tolist() for name in ("lower", "upper", "over")},
        "c": heat_map.count.tolist(),
        **{name: getattr(heat_map, name).tolist() for name in ("open", "n", "cum")},
        **lit,
    }


def group_names(answer: Answer) -> dict[Group, str]:
    """Return the text of each group that has rows, in the order of the labels; unlike groups have unlike texts."""
    names: dict[Group, str] = {}
    keys = {part.table[code] for part in answer.parts for code in np.unique(part.series)}
    for key in sorted(keys):
        text = printable(", ".join(label or "-" for label in key)) or "all"
        while text in names.values():
            text += "'"
        names[key] = text
    return names


def printable(text: str) -> str:
    """Return text as pictures and pages hold it: what acts on who shows it, and what XML does not have, as its number."""
    return shown(text)


def short_names(names: Sequence[str]) -> list[str]:
    """Return names of runs without the folders that all of them have in common."""
    texts = [printable(name) for name in names]
    if len(texts) < 2:
        return texts
    folders = [name.split("/") for name in texts]
    same = next((at for at, parts in enumerate(zip(*folders, strict=False)) if len(set(parts)) > 1), min(map(len, folders)) - 1)
    return ["/".join(parts[same:]) for parts in folders]


def _milliseconds(stamps_ns: NDArray[np.int64]) -> NDArray[Any]:
    return stamps_ns // MS if not (stamps_ns % MS).any() else stamps_ns / MS
