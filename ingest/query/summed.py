"""What is kept of log files while they are added up: sums, from when to when they reach, the layouts that were met."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np

from ingest.core.grid import to_windows
from ingest.core.intervals import Intervals, Sum
from ingest.core.layout import LogLinear
from ingest.core.series import LABELS, default_kind
from ingest.query.question import Question
from ingest.query.spans import Reach, Span, ranges, widen
from ingest.query.steps import widened
from ingest.query.streaming.ordered import ordered
from ingest.read import Source

Met = dict[tuple[str, str], set[LogLinear]]  # layouts by run and kind


@dataclass(slots=True)
class Summed:
    """Sums; from when to when rows reach and their layouts, by run and kind; of whole ranges the windows with samples, by run."""

    parts: list[Intervals] = field(default_factory=list)
    reach: Reach = field(default_factory=dict)
    layouts: Met = field(default_factory=dict)
    windows: dict[str, Span] = field(default_factory=dict)

    def windowed(self, rows: Intervals, stored: int) -> Intervals:
        """Return the rows in windows of the stored step that hold samples, and note from when to when these are."""
        found = rows if rows.completions is not None else to_windows(rows, stored)
        filled = found.take(np.flatnonzero(found.samples > 0))
        for run, span in ranges([filled]).items():
            widen(self.windows, run, span)
        return filled

    def widen(self, other: Summed) -> None:
        """Note what was found of another source."""
        for key, span in other.reach.items():
            widen(self.reach, key, span)
        for key, layouts in other.layouts.items():
            self.layouts.setdefault(key, set()).update(layouts)
        for run, span in other.windows.items():
            widen(self.windows, run, span)


def wide_enough(total: Sum, step: int, wider: int) -> tuple[int, Sum]:
    """Return a step that is no less than a wider one, and the sums at it."""
    if wider <= step:
        return step, total
    sums = Sum()
    for part in widened(total.parts(), wider):
        sums.add(part)
    return wider, sums


def is_grained(step: int, stored: int) -> bool:
    """Return whether a run that is stored at a step can be asked at another one (0: all)."""
    return step % stored == 0


def of_kinds(sources: list[Source], question: Question) -> list[Source]:
    """Return the sources whose kinds are asked for, where each tells its kind before it is read (fio's logs do).

    Without a kind asked for it is the default one; but the range of a run, which decides what auto and all are, is that of
    all its kinds.
    """
    kinds: dict[str, set[str]] = {}
    for source in sources:
        kinds.setdefault(source.context.series.run, set()).add(source.context.series.kind)
    if "kind" in question.by or any("" in found for found in kinds.values()):
        return sources
    glob = question.where.get("kind")
    if not glob and not isinstance(question.step, int):
        return sources
    taken = {run: found if glob else {default_kind(found)} for run, found in kinds.items()}
    mine = [source for source in sources if source.context.series.kind in taken[source.context.series.run]]
    return mine if not glob else [one for one in mine if fnmatchcase(one.context.series.kind, glob)] or sources


def told_apart(sources: Sequence[Source]) -> list[list[Source]]:
    """Return the sources by run, host, volume and job, in this order; by as many of these as are known before files are read."""
    first = LABELS[:4]
    known = min(first.index(name) if name in first else 4 for source in sources for name in (*source.row_labels, "kind"))
    groups: dict[tuple[str, ...], list[Source]] = {}
    for source in sources:
        labels = tuple(str(getattr(source.context.series, name)) for name in first[:known])
        groups.setdefault(labels, []).append(source)
    return [some for _, some in sorted(groups.items())]


def in_order(found: Iterable[tuple[int, Sequence[Intervals]]], sizes: Sequence[int]) -> Iterator[Intervals]:
    """Yield the windows of files as `ordered` has them, one group of files after another; `sizes` says how many are in each.

    `found` gives the number of a file, counted through all groups, and its windows, in any order.
    """
    group = np.repeat(np.arange(len(sizes)), sizes).tolist()
    held: list[list[Intervals]] = [[] for _ in sizes]
    left, turn = list(sizes), 0
    for number, parts in found:
        held[group[number]] += parts
        left[group[number]] -= 1
        while turn < len(sizes) and not left[turn]:
            yield from ordered([held[turn]])
            held[turn], turn = [], turn + 1
