"""Marks and phases: what happened at a time of a run, and the stretches of time that lie during, before or after it.

Phases of a run: what lies during, outside, before or after its marks, as stretches of time that windows must lie in wholly.

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

from ingest.core.errors import InputError, UsageError, marks_for
from ingest.core.units import MOST_NS, UNITS_NS, Instant, format_duration

# Marks: what happened at a time of a run, or from one time to another; whose they are, and which of many are kept.
#
# A mark has a time, and an end where it lasted (a pause of a garbage collector, a move of data). Its text is one line. Stores
# and pages take marks as mappings: run, at_ns, text, and end_ns where there is an end.


LONGEST_TEXT = 300
MOST_OF_RUN = 10_000
AFTER_END_NS = 600 * 10**9
CUT = "..."
DAY = UNITS_NS["d"]
ACCEPTED = "new level accepted"

Noted = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mark:
    """What happened at a time, or from `at` to `end`; both in epoch ns, or both since the start of a run."""

    at: Instant
    text: str
    end: Instant | None = None

    @property
    def lasts_ns(self) -> int:
        """Return how long it lasted, 0 where it has no end."""
        if self.end is None:
            return 0
        return (self.end.ns - self.at.ns) % DAY if self.end.of_day else self.end.ns - self.at.ns


def one_line(text: str) -> str:
    """Return the text of a mark as it is kept: trimmed, what cannot be printed as \\x1b, no longer than LONGEST_TEXT."""
    shown = "".join(letter if letter.isprintable() else _escaped(letter) for letter in text.strip())
    return shown if len(shown) <= LONGEST_TEXT else shown[: LONGEST_TEXT - len(CUT)] + CUT


def _escaped(letter: str) -> str:
    number = ord(letter)
    return f"\\x{number:02x}" if number < 1 << 8 else f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"


def checked(at: Instant, end: Instant | None, text: str) -> Mark:
    """Return the mark of these words; UsageError for a time that cannot be kept, an end before the time, and empty text."""
    for moment in (at, end):
        if moment is not None and not 0 <= moment.ns < MOST_NS:
            raise UsageError("its time is not between 1970 and 2115")
    if end is not None and end.relative != at.relative:
        raise UsageError("its time and its end count from different starts: give both from the run's start (+90s), or neither")
    if end is not None and at.of_day and not end.of_day:
        raise UsageError("its time has no date and its end has one: give both or neither")
    if end is not None and end.ns < at.ns and not end.of_day:
        raise UsageError("it ends before it begins; put quotes around a text that has commas")
    kept = one_line(text)
    if not kept:
        raise UsageError("it has no text")
    return Mark(at, kept, end)


def noted(run: str, at_ns: int, text: str, end_ns: int | None = None) -> Noted:
    """Return a mark of a run as stores and pages take it."""
    return {"run": run, "at_ns": at_ns, "text": text, **({} if end_ns is None else {"end_ns": end_ns})}


def overlaps(mark: Mark, start_ns: int, end_ns: int, *, relative: bool = False) -> bool:
    """Return whether a mark overlaps a run; one at a clock time is of no run that is `relative`: its start is unknown."""
    if relative and not mark.at.relative:
        return False
    last = mark.at if mark.end is None else mark.end
    return mark.at.epoch_ns(start_ns) <= end_ns and last.epoch_ns(start_ns) >= start_ns


def of_run(marks: Iterable[Mark], run: str, start_ns: int, end_ns: int, *, relative: bool = False) -> list[Noted]:
    """Return the marks that overlap a run, in time order, as stores and pages take them; the same mark twice is one.

    UsageError for one at a time of day that the run has several times.
    """
    noted_marks: dict[tuple[int, str], Noted] = {}
    for mark in marks:
        mark.at.checked_in(run, start_ns, end_ns)
        if overlaps(mark, start_ns, end_ns, relative=relative):
            at = mark.at.epoch_ns(start_ns)
            noted_marks[at, mark.text] = noted(run, at, mark.text, None if mark.end is None else mark.end.epoch_ns(start_ns))
    return sorted(noted_marks.values(), key=in_time_order)


def accepting(reason: str = "") -> str:
    """Return the text of the mark by which the level of a run is accepted as normal, with the reason where there is one."""
    return one_line(f"{ACCEPTED}: {reason}" if reason.strip() else ACCEPTED)


def accepts(mark: Mapping[str, Any]) -> bool:
    """Return whether a mark accepts the level of its run."""
    text = str(mark["text"])
    return text == ACCEPTED or text.startswith(f"{ACCEPTED}:")


def in_time_order(mark: Mapping[str, Any]) -> tuple[int, str]:
    """Return what marks are ordered by."""
    return int(mark["at_ns"]), str(mark["text"])


def lasted(mark: Mapping[str, Any]) -> int | None:
    """Return how long a mark lasted in ns, None where it has no end."""
    return None if mark.get("end_ns") is None else int(mark["end_ns"]) - int(mark["at_ns"])


def longest(marks: Sequence[Noted], most: int) -> list[Noted]:
    """Return at most so many marks in time order: first those without an end, then those that lasted longest."""
    if len(marks) <= most:
        return list(marks)

    def rank(mark: Noted) -> tuple[bool, int, int]:
        length = lasted(mark)
        return length is not None, -(length or 0), int(mark["at_ns"])

    return sorted(sorted(marks, key=rank)[:most], key=in_time_order)


DURING, OUTSIDE, BEFORE, AFTER = WORDS = ("during", "outside", "before", "after")
FOREVER = 1 << 62

Span = tuple[int, int]
NotedMark = Mapping[str, Any]


class InstantError(UsageError):
    """Only marks without an end match a phase, written in a `line`, and nothing lies during an instant."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.line = line


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
                f"give it an end (tailboard runs mark --end, or a line of time,end,text), or write after: {phase.glob}",
                phase.line,
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
