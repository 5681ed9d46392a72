"""Phases of a run: what lies during, outside, before or after its marks, as stretches of time that windows must lie in wholly.

    marks       cache on         |==rebalance==|        |=rebalance=|
    after: cache on     |--------------------------------------------
    outside: rebalance* ---------|             |--------|           |
    windows     |  |  |  |  |  |x |  |  |  |  |x |  |  |  |  |  |x |    x: lies across an edge, and is in neither phase

A window (start, end] is in a phase if all of it is. A mark without an end is an instant: a window that holds it, other than at
its edge, is neither before nor after it, and not outside of it. Of several marks that match the stretches are joined: during any
of them, outside of all, before the first begins, after the last has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ingest.core.errors import InputError, UsageError
from ingest.core.nearest import marks_for
from ingest.core.timing import format_duration

DURING, OUTSIDE, BEFORE, AFTER = WORDS = ("during", "outside", "before", "after")
FOREVER = 1 << 62

Span = tuple[int, int]
NotedMark = Mapping[str, Any]


class InstantError(UsageError):
    """Only marks without an end match, and nothing lies during an instant."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A word of WORDS and the glob that texts of marks match; `line` is where it is written."""

    word: str
    glob: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.word} {self.glob!r}"

    def matches(self, mark: NotedMark) -> bool:
        """Return whether a mark is one of those that are meant: by its exact text, or by the glob."""
        return mark["text"] == self.glob or fnmatchcase(mark["text"], self.glob)


@dataclass(frozen=True, slots=True)
class Stretches:
    """The stretches (from, to] of a run in ns that are in a phase: in order, apart from one another; and the phase in words."""

    spans: tuple[Span, ...]
    words: str = ""

    def within(self, low_ns: int, high_ns: int, step_ns: int) -> Stretches:
        """Return the whole windows of a step between two edges of windows; stretches that touch are one. InputError for none."""
        spans: list[Span] = []
        for begin, end in self.spans:
            first, last = max(low_ns, -(-begin // step_ns) * step_ns), min(high_ns, end // step_ns * step_ns)
            if first < last and spans and spans[-1][1] == first:
                spans[-1] = (spans[-1][0], last)
            elif first < last:
                spans.append((first, last))
        if not spans:
            raise InputError(f"no window of {format_duration(step_ns)} lies wholly {self.words}")
        return Stretches(tuple(spans), self.words)


def stretches(phases: Sequence[Phase], marks: Sequence[NotedMark], run: str) -> Stretches:
    """Return what lies in all of these phases of a run, by its marks.

    InputError where no mark of the run matches: of a run without a mark all is `outside`. InstantError where nothing can lie
    during what matches.
    """
    spans: Sequence[Span] = ((-FOREVER, FOREVER),)
    for phase in phases:
        chosen = [mark for mark in marks if phase.matches(mark)]
        if not chosen and phase.word != OUTSIDE:
            texts = [str(mark["text"]) for mark in marks]
            raise InputError(f"no mark of the run matches {phase.word}: {phase.glob} ({marks_for(phase.glob, texts)})")
        if phase.word == DURING and all(mark.get("end_ns") is None for mark in chosen):
            text = str(chosen[0]["text"])
            raise InstantError(
                f"during: {phase.glob} matches the mark {text!r} of {run}, which has no end, and nothing lies during an instant: "
                f"give it an end (tailboard mark --end, or a line of time,end,text), or write after: {phase.glob}"
            )
        spans = _both(spans, _spans(phase.word, chosen))
    return Stretches(tuple(spans), ", ".join(str(phase) for phase in phases))


def _spans(word: str, marks: Iterable[NotedMark]) -> list[Span]:
    """Return the stretches of one phase in order."""
    covered = joined((int(mark["at_ns"]), int(mark["at_ns"] if mark.get("end_ns") is None else mark["end_ns"])) for mark in marks)
    if word == DURING:
        return [(begin, end) for begin, end in covered if begin < end]
    if word == BEFORE:
        return [(-FOREVER, covered[0][0])]
    if word == AFTER:
        return [(covered[-1][1], FOREVER)]
    edges = [-FOREVER, *(edge for span in covered for edge in span), FOREVER]
    return list(zip(edges[::2], edges[1::2], strict=True))


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, those that overlap or touch as one."""
    apart: list[Span] = []
    for begin, end in sorted(spans):
        if apart and begin <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((begin, end))
    return apart


def _both(first: Sequence[Span], second: Sequence[Span]) -> list[Span]:
    """Return what lies in both; each is in order, and its spans are apart."""
    spans, own, other = [], 0, 0
    while own < len(first) and other < len(second):
        low, high = max(first[own][0], second[other][0]), min(first[own][1], second[other][1])
        if low < high:
            spans.append((low, high))
        if first[own][1] < second[other][1]:
            own += 1
        else:
            other += 1
    return spans
