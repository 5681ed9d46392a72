"""Vega specs, and the flat tables that they are drawn from.

A spec in kibana/vega/ holds all the logic and no values. Its `data` entries that are a bare name are holes: `with_values`
fills them with rows, the report's page does the same in the browser, Kibana's compiler puts a request there. Times are
epoch ms, latencies ns; rows are ordered by t, group, then latency.

    bins    t, t2, group, v, c, open              c samples in one bin of a window; v is the value the bin reports
    cells   t, t2, group, lower, upper, c, open   the same samples in 8 rows an octave, whose edges are bin edges
    marks   t, text                               what someone noted down

`open` is 1 in the last bin of an open-ended layout: the latency is at least v (or lower).
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
from ingest.query.question import Answer
from ingest.series import Group

Columns = dict[str, list[Any]]
Arrays = dict[str, NDArray[Any]]

ROWS_AN_OCTAVE = 8
MS = 1_000_000


def spec(name: str) -> dict[str, Any]:
    """Return the spec kibana/vega/NAME.json, without data."""
    content: dict[str, Any] = orjson.loads((assets("kibana") / "vega" / f"{name}.json").read_bytes())
    return content


def with_values(spec: Mapping[str, Any], tables: Mapping[str, Columns]) -> dict[str, Any]:
    """Return the spec with its holes filled; KeyError where it needs a table that is not there."""
    filled = [{**entry, "values": rows(tables[entry["name"]])} if entry.keys() == {"name"} else entry for entry in spec["data"]]
    return {**spec, "data": filled}


def rows(columns: Columns) -> list[dict[str, Any]]:
    """Return a table as one mapping a row, as Vega takes it."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def tables(answer: Answer, marks: Sequence[Mapping[str, Any]] = ()) -> dict[str, Columns]:
    """Return all tables of an answer: bins, cells and marks."""
    noted: Columns = {"t": [mark["at_ns"] / MS for mark in marks], "text": [printable(mark["text"]) for mark in marks]}
    return {"bins": bins(answer), "cells": cells(answer), "marks": noted}


def bins(answer: Answer) -> Columns:
    """Return one row per window, group and occupied bin; counts add up to the answer's samples, values are those of the bins."""
    flat = [_entries(part, answer) | {"v": part.layout.values[part.bins]} for part in answer.parts]
    return _ordered(flat, answer, ("v",))


def cells(answer: Answer) -> Columns:
    """Return one row per window, group and occupied heat-map row [lower, upper); counts add up to the answer's samples.

    All groups have the same rows: unlike layouts are moved to their common one first.
    """
    common = common_layout(part.layout for part in answer.parts)
    layout = row_layout(common)
    moved = [part.in_layout(common).in_layout(layout) for part in answer.parts]
    edges = layout.edges
    flat = [_entries(part, answer) | {"lower": edges[part.bins], "upper": edges[part.bins + 1]} for part in moved]
    return _ordered(flat, answer, ("lower", "upper"))


def row_layout(layout: LogLinear) -> LogLinear:
    """Return the layout of heat-map rows: 8 an octave where their edges are edges of the bins, else the bins themselves."""
    unit = layout.unit_ns << layout.coarseness
    top = -(-int(layout.edges[-1]) // unit)
    octaves = max(1, (top - 1).bit_length() - ROWS_AN_OCTAVE.bit_length() + 2)
    reaching = LogLinear(ROWS_AN_OCTAVE, ROWS_AN_OCTAVE * octaves, unit, open_ended=layout.open_ended)
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
