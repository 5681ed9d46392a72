"""Marks: what happened at a time of a run, or from one time to another; whose they are, and which of many are kept.

A mark has a time, and an end where it lasted (a pause of a garbage collector, a move of data). Its text is one line. Stores
and pages take marks as mappings: run, at_ns, text, and end_ns where there is an end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ingest.core.dataclass import dataclass
from ingest.core.errors import UsageError
from ingest.core.timing import MOST_NS, Instant

LONGEST_TEXT = 300
MOST_OF_RUN = 10_000
AFTER_END_NS = 600 * 10**9
CUT = "..."
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
        return 0 if self.end is None else self.end.ns - self.at.ns


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
    if end is not None and end.ns < at.ns:
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
    """Return the marks that overlap a run, in time order, as stores and pages take them; the same mark twice is one."""
    noted_marks: dict[tuple[int, str], Noted] = {}
    for mark in marks:
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
