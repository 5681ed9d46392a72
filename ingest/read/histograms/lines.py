"""Lines and documents of a file, and what their histograms are read into; the source that such a file is."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from ingest.core.caveats import Caveat
from ingest.core.edges import Edges
from ingest.core.errors import InputError
from ingest.core.intervals import Int, Intervals
from ingest.core.layout import Layout
from ingest.core.missing import Missing, labels_of
from ingest.core.series import Series
from ingest.read.account import Account
from ingest.read.context import OWN_STAMPS, Context, TimeZero
from ingest.read.formats import ROW_LABELS
from ingest.read.histograms.documents import NO_JSON, documents_of
from ingest.read.histograms.polls import Polls
from ingest.read.lacks import REJECTED, SEE_INSPECT
from ingest.read.sources import Around, Source
from ingest.read.text import CUT_OFF, NEWLINE, TABLE_ENDINGS, name_without, whole_blocks

NOT_READ = "lines were rejected: if they held histograms, their samples are missing"
METRICS = "several-metrics"
BELOW_ZERO = "values below zero: not a latency"
ENDINGS = (*TABLE_ENDINGS, ".jsonl", ".ndjson", ".json", ".txt", ".log", ".prom")
KEYS = re.compile(r"[\[{]")
SHOWN = 4
Filled = Callable[[Path, Context], Polls]


class WrongError(ValueError):
    """A histogram that cannot be taken, with the reason in words."""


def lines_of(path: Path, context: Context) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the lines of a file with their numbers, and whether their end was seen."""
    number, rest = 0, b""
    for block in whole_blocks(path, context.account, context.upto):
        text = rest + bytes(block)
        lines = text.split(b"\n")
        rest = lines.pop()
        for line in lines:
            number += 1
            yield number, line, True
        if block[-1] == NEWLINE:
            rest = b""
    if rest:
        yield number + 1, rest, False


def objects_of(path: Path, context: Context) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON objects of a file with their lines, one a line or spread over lines; all else is rejected."""
    yield from documents_of(lines_of(path, context), context.account)


def whole(value: Any) -> int:
    """Return a count or stamp as a whole number; WrongError where it is none."""
    try:
        number = Decimal(value) if isinstance(value, (str, int, Decimal)) and not isinstance(value, bool) else None
        if number is None or not number.is_finite() or number != int(number) or not -(2**62) < number < 2**62:
            raise WrongError(f"{_short(value)} is no whole number")
        return int(number)
    except ArithmeticError:
        raise WrongError(f"{_short(value)} is no number") from None


def count(value: Any) -> int:
    """Return a count; WrongError where it is no whole number from 0 on."""
    number = whole(value)
    if number < 0:
        raise WrongError("a count below zero")
    return number


def end_ns(value: Any, unit_ns: int) -> int:
    """Return an edge in whole ns, rounded down; WrongError where it is no number."""
    try:
        number = Decimal(str(value)) * unit_ns
        return math.floor(max(min(number, Decimal(2**62)), Decimal(-(2**62))))
    except (ArithmeticError, ValueError):
        raise WrongError(f"{_short(value)} is no edge") from None


def between_edges(ends_ns: Sequence[int], counts: Sequence[int], *, is_open: bool) -> tuple[Layout, Int]:
    """Return the layout of buckets that end at these ns, and the bin of each; with `is_open` one more holds all above.

    WrongError where one below zero holds samples, or there is no layout of such edges.
    """
    if any(number for end, number in zip(ends_ns, counts, strict=False) if end < 0):
        raise WrongError(BELOW_ZERO)
    try:
        return Edges.of_ends(ends_ns, is_open=is_open)
    except ValueError as error:
        raise WrongError(str(error)) from None


def _short(value: Any) -> str:
    return repr(str(value) if isinstance(value, Decimal) else value)[:40]


def readers(
    format_name: str, filled: Filled, none: str
) -> tuple[Callable[[Path, Around], Source], Callable[[Path, Context], Iterator[Intervals[Series]]]]:
    """Return `locate` and `rows` of a format whose histograms `filled` takes; `none` is why a file without any is refused."""

    def locate(path: Path, around: Around) -> Source:
        context = around.context(path, process=name_without(path, ENDINGS))
        quiet = replace(context, account=Account(path=str(path)), offset_ns=0)
        parts = list(filled(path, quiet).intervals())
        filled_parts = [part for part in parts if len(part)]
        if not filled_parts:
            reasons = [*quiet.account.rejected, *quiet.account.skipped]
            raise InputError(f"no histogram in it can be taken: {reasons[0]}" if reasons else none, path)
        start = min(int(part.start_ns.min()) for part in filled_parts)
        widths = np.concatenate([part.end_ns - part.start_ns for part in filled_parts])
        zero = around.zero(path, TimeZero(start, OWN_STAMPS), lambda: 0, absolute=True)
        return Source(path, format_name, replace(context, zero=zero), int(np.median(widths)), str(filled_parts[0].layout))

    def rows(path: Path, context: Context) -> Iterator[Intervals[Series]]:
        held = filled(path, context)
        parts = list(held.intervals())
        if not held.is_total and (NO_JSON in context.account.rejected or CUT_OFF in context.account.rejected):
            caveat = Caveat(REJECTED, str(path), NOT_READ, SEE_INSPECT)
            context.account.lack(Missing(labels_of(context.series, unknown=ROW_LABELS), None, None, None, 0, None, caveat))
        context.account.caveats.extend(_several(path, parts))
        yield from parts

    return locate, rows


def _several(path: Path, parts: list[Intervals[Series]]) -> Iterator[Caveat]:
    """Yield a caveat where a file holds several metrics: they may count the same operations."""
    names = sorted({KEYS.split(series.tag)[0] for part in parts for series in part.table} - {""})
    if len(names) > 1:
        shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
        sentence = f"it holds {len(names)} metrics ({shown}), which may count the same operations"
        yield Caveat(METRICS, str(path), sentence, f"choose one, as in --where 'tag={names[0]}*'")
