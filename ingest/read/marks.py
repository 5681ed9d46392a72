"""Files of marks: what happened while a benchmark ran, a line each, or the log of a JVM's garbage collector.

    # time,text or time,end,text
    time,end,text
    2026-11-20T21:00:30Z,,osd.3 down
    2026-11-20T21:00:30+00:00,2026-11-20T21:00:41Z,"recovery, two pools"
    +33s,second phase

Times are ISO 8601 (without a zone: UTC, which is said), epoch seconds or ms, or +90s from the start of each run. The first line
may be a heading. Without one, a second cell that is a time or empty is an end; all else is text, whatever commas it has.
A line that is no mark is left out and counted with its reason. GC logs are recognised by their lines: see gc_log.py.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ingest.core.dataclass import dataclass
from ingest.core.errors import InputError, UsageError, counted, plural
from ingest.core.marks import LONGEST_TEXT, Mark, checked
from ingest.core.timing import FarTimeError, Instant, parse_instant
from ingest.read.account import Account
from ingest.read.folders import check_is_file
from ingest.read.gc_log import GC_OF_OLD_JVM, gc_pauses, looks_like_gc_log, looks_like_old_gc_log
from ingest.read.text import head, whole_blocks

MOST_MARKS = 200_000
TIMES = ("time", "at", "start", "begin", "from", "when", "timestamp", "date")
ENDS = ("end", "to", "until", "stop")
TEXTS = ("text", "mark", "what", "event", "label", "note", "description", "message", "annotation")
ZONED = re.compile(r"(?:[zZ]|[+-]\d\d(?::?\d\d){0,2})\s*$")
UNZONED = "time has no zone: taken as UTC"


@dataclass(frozen=True, slots=True)
class MarksFile:
    """The marks of a file in its order, and what became of its lines."""

    path: Path
    marks: tuple[Mark, ...]
    account: Account

    @property
    def said(self) -> list[str]:
        """Return sentences about the lines that were taken, repaired and left out."""
        account = self.account
        sentences = [f"{self.path}: {counted(len(self.marks), 'mark')}"]
        sentences += [f"{self.path}: {note}" for note in account.notes]
        for reason, count in sorted(account.skipped.items()):
            sentences.append(f"{self.path}: {count:,} {reason}")
        sentences += [f"{self.path}: {counted(count, 'mark')}: {reason}" for reason, count in sorted(account.repaired.items())]
        sentences += [str(finding) for finding in account.findings if finding.action == "rejected"]
        shown = sum(finding.action == "rejected" for finding in account.findings)
        left = account.rows_rejected - shown
        return sentences + ([f"{self.path}: ... and {left:,} more {plural(left, 'line')} rejected"] if left > 0 else [])


def read_marks(path: Path) -> MarksFile:
    """Return the marks of a file: of a GC log its pauses. InputError where it cannot be read or no line of it is a mark."""
    check_is_file(path)
    start = head(path)
    if looks_like_gc_log(start):
        account = Account(str(path))
        return _bounded(path, gc_pauses(path, account), account)
    if looks_like_old_gc_log(start):
        raise InputError(GC_OF_OLD_JVM, path)
    account = Account(str(path))
    marks_file = _bounded(path, _lines(path, account), account)
    if not marks_file.marks and account.rows_rejected:
        first = account.findings[0]
        raise InputError(f"no line of it is a mark: {first.reason}", path, first.line)
    if not marks_file.marks and not account.rows_rejected:
        raise InputError("it holds no marks: give lines of time,text or time,end,text", path)
    return marks_file


def _bounded(path: Path, marks: Iterator[Mark], account: Account) -> MarksFile:
    """Return what a file holds; of too many marks those without an end and the longest, which is said."""
    kept: list[Mark] = []
    total = 0
    for mark in marks:
        kept.append(mark)
        total += 1
        if len(kept) >= 2 * MOST_MARKS:
            kept = _longest(kept)
    if total > MOST_MARKS:
        kept = _longest(kept)
        account.note(f"{total:,} marks are more than are taken of a file: the {MOST_MARKS:,} longest are kept")
    return MarksFile(path, tuple(kept), account)


def _longest(marks: Sequence[Mark]) -> list[Mark]:
    ranked = sorted(range(len(marks)), key=lambda place: (marks[place].end is not None, -marks[place].lasts_ns, place))
    return [marks[place] for place in sorted(ranked[:MOST_MARKS])]


def _lines(path: Path, account: Account) -> Iterator[Mark]:
    """Yield the marks of a file of lines; `account` counts them."""
    columns: tuple[str, ...] = ()
    heading = False
    for number, text in _texts(path, account):
        if not text or text.startswith("#"):
            continue
        try:
            quoted = '"' in text
            cells = next(csv.reader([text], strict=True, skipinitialspace=True)) if quoted else text.split(",")
        except csv.Error as error:
            account.reject(f"it is not CSV ({error})", [number])
            continue
        if not heading and not account.rows:
            heading, columns = True, _heading(cells)
            if columns:
                continue
        try:
            mark, repairs = _mark(cells, columns)
        except UsageError as error:
            account.reject(str(error), [number])
            continue
        if repairs:
            account.repair(1, {reason: [number] for reason in repairs})
        else:
            account.accept(1)
        yield mark


def _texts(path: Path, account: Account) -> Iterator[tuple[int, str]]:
    """Yield line numbers and trimmed lines."""
    number = 0
    for block in whole_blocks(path, account):
        for line in bytes(block).removesuffix(b"\n").split(b"\n"):
            number += 1
            yield number, line.decode("utf-8", "backslashreplace").lstrip("\ufeff").strip()


def _heading(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a heading: time, end, text; none where it is no heading."""
    known = {name: what for what, names in (("time", TIMES), ("end", ENDS), ("text", TEXTS)) for name in names}
    columns = tuple(known.get(cell.strip().lower(), "") for cell in cells)
    return columns if columns in (("time", "text"), ("time", "end", "text")) else ()


def _mark(cells: Sequence[str], columns: Sequence[str]) -> tuple[Mark, list[str]]:
    """Return the mark of a line and what had to be assumed; UsageError says why it is none."""
    if len(cells) < max(2, len(columns)):
        raise UsageError("it has too few columns: give time,text or time,end,text")
    ends = "end" in columns if columns else len(cells) > 2 and (not cells[1].strip() or _instant(cells[1]) is not None)
    at = _instant(cells[0])
    if at is None:
        raise UsageError(f"{cells[0][:40]!r} is not a time: give ISO 8601, epoch seconds or ms, or +90s (from the run's start)")
    end = _instant(cells[1]) if ends and cells[1].strip() else None
    if ends and cells[1].strip() and end is None:
        raise UsageError(f"{cells[1][:40]!r} is not a time, and its column holds ends")
    text = ",".join(cells[2 if ends else 1 :])
    mark = checked(at, end, text)
    repairs = [UNZONED] if any(_unzoned(cell) for cell in cells[: 2 if ends else 1]) else []
    if len(text.strip()) > LONGEST_TEXT or len(mark.text) == LONGEST_TEXT:
        repairs.append(f"text is cut after {LONGEST_TEXT} characters")
    return mark, repairs


def _instant(text: str) -> Instant | None:
    """Return the time of a cell, None where it is none; `now` is no time of a file."""
    word = text.strip()
    if not word or word.startswith("now"):
        return None
    try:
        return parse_instant(word)
    except FarTimeError:
        raise
    except (UsageError, ValueError, OverflowError, ArithmeticError):
        return None


def _unzoned(text: str) -> bool:
    word = text.strip()
    return "-" in word and not word.startswith("+") and not (ZONED.search(word[10:]) if len(word) > 10 else None)
