"""Files of marks: what happened while a benchmark ran, a line each, or the log of a JVM's garbage collector.

Logs of a JVM's garbage collector (JDK 9 or later, -Xlog:gc*): each pause is a mark that ends at the stamp of its line.

    [2026-11-22T08:10:38.987+0000][0.128s][gc,start ] GC(0) Pause Young (Normal) (G1 Evacuation Pause)
    [2026-11-22T08:10:38.993+0000][0.134s][gc       ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 6M->6M(64M) 5.955ms
    [2026-11-22T08:10:38.993+0000][0.134s][safepoint] Safepoint "G1CollectForAllocation", Time since last: 48130001 ns,
        Reaching safepoint: 7118 ns, Cleanup: 10882 ns, At safepoint: 6061182 ns, Total: 6079182 ns     (one line)

- **A pause is logged at its end** (verified with JDK 17: the stamp of `gc,start` plus the length is that of the line). Its length
  has ns or us, its stamp ms: a mark may lie up to 1 ms too early.
- **Decorations** are chosen by who logs: of [time], [utctime] and [timemillis] the first gives the clock; level, tags, pid, tid,
  host name are passed over. Uptime and timenanos count from an unknown start: without a clock time the log is refused.
- **A safepoint is what stops the application**, with the time until all threads have stopped. Where they are logged, too
  (-Xlog:gc*,safepoint), a pause that lies in one is part of its text and no mark of its own.
- **Concurrent phases stop nothing** and are counted only; so are the lines of `gc,start`, and a pause that was cut off.
- Some JVMs write a comma in numbers, after the locale.

Files of marks: what happened while a benchmark ran, a line each, or the log of a JVM's garbage collector.

    # time,text or time,end,text
    time,end,text
    2026-11-20T21:00:30Z,,osd.3 down
    2026-11-20T21:00:30+00:00,2026-11-20T21:00:41Z,"recovery, two pools"
    +33s,second phase

Times are ISO 8601 (without a zone: UTC, which is said), epoch seconds or ms, +90s from the start of each run, or 14:02:10, which
is taken on the day of each run, as UTC, and refused where a run has it twice. The first line may be a heading. Without one, a
second cell that is a time or empty is an end; all else is text, whatever commas it has. A line that is no mark is left out and
counted with its reason. GC logs are recognised by their lines: see gc_log.py.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from ingest.core.errors import InputError, UsageError, counted, plural
from ingest.core.marks import LONGEST_TEXT, Mark, checked, one_line
from ingest.core.units import CLOCK, MOST_NS, UNITS_NS, FarTimeError, Instant, iso_ns, parse_instant
from ingest.read.account import Account
from ingest.read.discovery import check_is_there
from ingest.read.text import head, numbered_lines, plain_name

MS, US = UNITS_NS["ms"], UNITS_NS["us"]
EPOCH_MS_FROM = 10**11  # smaller ones are milliseconds since the JVM started
LOOKED_AT = 400
MOST_PENDING = 400
DECORATED = re.compile(r"((?:\[[^\[\]\n]{0,120}\])+) ?(.*)")
TAGS = re.compile(r"\[(?:gc(?:,[a-z]+)*|safepoint(?:,[a-z]+)*) *\]")
USING = r"Using (?:Serial|Parallel|G1|Shenandoah|Concurrent Mark Sweep|Epsilon)$|Initializing The Z Garbage"
MESSAGE = re.compile(rf"GC\(\d+\) |Safepoint \"|{USING}")
PAUSE = re.compile(r"GC\((\d+)\)\s+((?:[A-Za-z]: )?Pause\b.*?)\s+(\d+(?:[.,]\d+)?)ms\s*$")
CONCURRENT = re.compile(r"GC\(\d+\)\s+(?:[A-Za-z]: )?Concurrent\b.*\d+(?:[.,]\d+)?ms\s*$")
SAFEPOINT = re.compile(r"Safepoint \"([^\"]*)\", .*?Reaching safepoint: (\d{1,18}) ns,.* Total: (\d{1,18}) ns\s*$")
STOPPED = re.compile(
    r"Total time for which application threads were stopped: (\d+[.,]\d+) seconds, Stopping threads took: (\d+[.,]\d+) seconds"
)
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]\d{3,9}(?:Z|[+-]\d\d:?\d\d)?$")
OLD = re.compile(rb"^(?:\d{4}-\d\d-\d\dT[\d:.,+-]+: )?\d+[.,]\d+: \[(?:Full )?GC\b", re.MULTILINE)
NO_CLOCK = (
    "its lines have no clock time, so they cannot be placed in a run: log with the decoration time, "
    "as in -Xlog:gc*:file=gc.log:time,uptime,level,tags"
)
GC_OF_OLD_JVM = "this is a GC log of a JVM before 9, which is not read: JDK 9 and later write -Xlog:gc*:file=gc.log:time,uptime"


def looks_like_gc_log(start: bytes) -> bool:
    """Return whether a file that begins so is a log of a JVM's garbage collector (JDK 9 or later), whatever its decorations."""
    for raw in start.split(b"\n", LOOKED_AT)[:LOOKED_AT]:
        line = raw[:1000].decode("utf-8", "replace").rstrip("\r")
        match = DECORATED.match(line)
        looks = (TAGS.search(match[1]), MESSAGE.match(match[2])) if match else (PAUSE.match(line), SAFEPOINT.match(line))
        if any(looks):
            return True
    return False


def looks_like_old_gc_log(start: bytes) -> bool:
    """Return whether a file that begins so is a GC log of a JVM before 9."""
    return OLD.search(start) is not None


@dataclass(slots=True)
class _Reading:
    """What is known while a log is read: pauses that may lie in the safepoint whose line is still to come."""

    name: str
    pending: list[tuple[int, int, str]] = field(default_factory=list)
    folded: int = 0
    concurrent: int = 0

    def rest(self) -> Iterator[Mark]:
        """Yield the pauses that lie in no safepoint."""
        for start, end, text in self.pending:
            yield self._mark("GC", start, end, text)
        self.pending.clear()

    def safepoint(self, start: int, end: int, what: str, reaching: int) -> Iterator[Mark]:
        """Yield a safepoint with the pauses that lie in it, after those that came before it."""
        inside = [pause for pause in self.pending if min(pause[:2]) >= start - MS]  # stamps are cut to ms
        self.pending = [pause for pause in self.pending if min(pause[:2]) < start - MS]
        yield from self.rest()
        self.folded += len(inside)
        slow = reaching >= MS or 10 * reaching >= end - start > MS
        parts = [what, *([f"{length(reaching)} to reach"] if slow else []), *(text for _, _, text in inside)]
        yield self._mark("Safepoint", start, end, ", ".join(word for word in parts if word))

    def _mark(self, kind: str, start: int, end: int, text: str) -> Mark:
        return Mark(Instant(start), one_line(f"{kind} {length(end - start)}: {text}, {self.name}"), Instant(end))


def gc_pauses(path: Path, account: Account) -> Iterator[Mark]:
    """Yield the pauses of a log in its order. InputError where its lines have no clock; single ones are rejected."""
    reading = _Reading(plain_name(path))
    first_unclocked = 0
    for number, raw in numbered_lines(path, account):
        if not any(word in raw for word in (b"Pause", b"afepoint", b"stopped", b"Concurrent")):
            continue
        line = raw.decode("utf-8", "backslashreplace").rstrip("\r")
        words, message = match.groups() if (match := DECORATED.match(line)) else ("", line)
        if CONCURRENT.match(message):
            reading.concurrent += 1
            continue
        pause = _pause(message)
        if pause is None:
            if message.startswith("Safepoint ") and "safepoint" in words:
                account.reject("safepoint without a length", [number])
            continue
        end = clock_of(words)
        if end is None:
            first_unclocked = first_unclocked or number
            account.reject("its decorations hold no clock time", [number])
            continue
        account.accept(1)
        lasted, what, reaching = pause
        if reaching is not None:
            yield from reading.safepoint(max(0, end - lasted), end, what, reaching)
            continue
        reading.pending.append((max(0, end - lasted), end, what))
        if len(reading.pending) > MOST_PENDING:
            yield from reading.rest()
    if first_unclocked and not account.accepted:
        raise InputError(NO_CLOCK, path, first_unclocked)
    yield from reading.rest()
    account.skip("concurrent phases left out: they pause nothing", reading.concurrent)
    if reading.folded:
        account.note(f"{reading.folded:,} pauses of the collector lie in safepoints and are shown as these")
    if not account.rows:
        account.note("it holds no pause")


def _pause(message: str) -> tuple[int, str, int | None] | None:
    """Return the length of a pause in ns, its text, and for a safepoint how long it took to reach; None for other lines."""
    if match := PAUSE.match(message):
        return _nanoseconds(match[3], MS), f"{match[2]}, GC({match[1]})", None
    if match := SAFEPOINT.match(message):
        return int(match[3]), match[1], int(match[2])
    if match := STOPPED.match(message):
        second = UNITS_NS["s"]
        return _nanoseconds(match[1], second), "", _nanoseconds(match[2], second)
    return None


def _nanoseconds(text: str, unit_ns: int) -> int:
    return min(int(Decimal(text.replace(",", ".")) * unit_ns), MOST_NS)


def clock_of(decorations: str) -> int | None:
    """Return the epoch ns of a line's decorations: of [time], [utctime] or [timemillis]; None where none is there."""
    for word in decorations[1:-1].split("]["):
        text = word.strip()
        if ISO.match(text):
            stamp_ns = iso_ns(text.replace(",", "."))
            if stamp_ns is None:
                continue
            return stamp_ns if 0 <= stamp_ns < MOST_NS else None
        if text.endswith("ms") and text[:-2].isdigit() and EPOCH_MS_FROM <= int(text[:-2]) < MOST_NS // MS:
            return int(text[:-2]) * MS
    return None


def length(span_ns: int) -> str:
    """Return how long a pause was, for people: 5.96 ms."""
    ms = span_ns / MS
    if ms >= 1000:
        return f"{ms / 1000:.2f} s"
    return f"{ms:.0f} ms" if ms >= 100 else f"{ms:.1f} ms" if ms >= 10 else f"{ms:.2f} ms" if ms >= 1 else f"{ms * 1000:.0f} us"


MOST_MARKS = 200_000
TIME_FORM = "give ISO 8601, epoch seconds or ms, +90s (from the run's start), or 14:02:10 (UTC, on the day of the run)"
NO_ZONE, NO_DAY = "time has no zone: taken as UTC", "time has no date: taken on the day of the run, as UTC"
TIMES = ("time", "at", "start", "begin", "from", "when", "timestamp", "date")
ENDS = ("end", "to", "until", "stop")
TEXTS = ("text", "mark", "what", "event", "label", "note", "description", "message", "annotation")
ZONED = re.compile(r"(?:[zZ]|[+-]\d\d(?::?\d\d){0,2})\s*$")


class MarksFile(NamedTuple):
    """The marks of a file in its order, and what became of its lines."""

    path: Path
    marks: tuple[Mark, ...]
    account: Account

    @property
    def said(self) -> list[str]:
        """Return sentences about the lines that were taken, repaired and left out."""
        return [f"{self.path}: {counted(len(self.marks), 'mark')}", *said_of(self.path, self.account, "mark")]


def said_of(path: Path, account: Account, what: str) -> list[str]:
    """Return sentences about the lines of a file, each of which is one of `what`, that were repaired and left out."""
    sentences = [f"{path}: {note}" for note in (*account.notes, *filter(None, [account.cut_short]))]
    sentences += [f"{path}: {count:,} {reason}" for reason, count in sorted(account.skipped.items())]
    sentences += [f"{path}: {counted(count, what)}: {reason}" for reason, count in sorted(account.repaired.items())]
    shown = [str(finding) for finding in account.findings if finding.action == "rejected"]
    left = account.rows_rejected - len(shown)
    return [*sentences, *shown, *([f"{path}: ... and {left:,} more {plural(left, 'line')} rejected"] if left > 0 else [])]


def read_marks(path: Path) -> MarksFile:
    """Return the marks of a file: of a GC log its pauses. InputError where it cannot be read or no line of it is a mark."""
    check_is_there(path)
    start = head(path)
    account = Account(str(path))
    if looks_like_gc_log(start):
        return _bounded(path, gc_pauses(path, account), account)
    if looks_like_old_gc_log(start):
        raise InputError(GC_OF_OLD_JVM, path)
    marks_file = _bounded(path, _lines(path, account), account)
    if marks_file.marks:
        return marks_file
    if not account.rows_rejected:
        raise InputError("it holds no marks: give lines of time,text or time,end,text", path)
    first = account.findings[0]
    raise InputError(f"no line of it is a mark: {first.reason}", path, first.line)


def _bounded(path: Path, marks: Iterator[Mark], account: Account) -> MarksFile:
    """Return what a file holds; of too many marks those without an end and the longest, which is said."""
    kept: list[Mark] = []
    total = 0
    for mark in marks:
        total += 1
        kept.append(mark)
        if len(kept) >= 2 * MOST_MARKS:
            kept = _longest(kept)
    if total > MOST_MARKS:
        kept = _longest(kept)
        account.note(f"{total:,} marks are more than are taken of a file: the {MOST_MARKS:,} longest are kept")
    return MarksFile(path, tuple(kept), account)


def _longest(marks: Sequence[Mark]) -> list[Mark]:
    ranked = sorted(range(len(marks)), key=lambda place: (marks[place].end is not None, -marks[place].lasts_ns, place))
    return [marks[place] for place in sorted(ranked[:MOST_MARKS])]


def numbered_cells(path: Path, account: Account) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line that holds any; what is no CSV is rejected, comments are passed over."""
    for number, line in numbered_lines(path, account):
        text = line.decode("utf-8", "backslashreplace").lstrip("\ufeff").strip()
        if not text or text.startswith("#"):
            continue
        try:
            yield number, next(csv.reader([text], strict=True, skipinitialspace=True)) if '"' in text else text.split(",")
        except csv.Error as error:
            account.reject(f"it is not CSV ({error})", [number])


def _lines(path: Path, account: Account) -> Iterator[Mark]:
    """Yield the marks of a file of lines; `account` counts them."""
    columns: tuple[str, ...] = ()
    heading = False
    for number, cells in numbered_cells(path, account):
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


def _heading(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a heading: time, end, text; none where it is no heading."""
    known = {name: what for what, names in (("time", TIMES), ("end", ENDS), ("text", TEXTS)) for name in names}
    columns = tuple(known.get(cell.strip().lower(), "") for cell in cells)
    return columns if columns in (("time", "text"), ("time", "end", "text")) else ()


def _mark(cells: Sequence[str], columns: Sequence[str]) -> tuple[Mark, list[str]]:
    """Return the mark of a line and what had to be assumed; UsageError says why it is none."""
    if len(cells) < max(2, len(columns)):
        raise UsageError("it has too few columns: give time,text or time,end,text")
    at, second = instant_of(cells[0]), instant_of(cells[1])
    if at is None:
        raise UsageError(f"{cells[0][:40]!r} is not a time: {TIME_FORM}")
    an_end = second is not None and (at.of_day or not second.of_day)  # else 12:00 may be a part of the text
    ends = "end" in columns if columns else len(cells) > 2 and (not cells[1].strip() or an_end)
    end = second if ends else None
    if ends and cells[1].strip() and end is None:
        raise UsageError(f"{cells[1][:40]!r} is not a time, and its column holds ends")
    text = ",".join(cells[2 if ends else 1 :])
    mark = checked(at, end, text)
    repairs = assumed_of(*cells[: 2 if ends else 1])
    if len(text.strip()) > LONGEST_TEXT or len(mark.text) == LONGEST_TEXT:
        repairs.append(f"text is cut after {LONGEST_TEXT} characters")
    return mark, repairs


def instant_of(text: str) -> Instant | None:
    """Return the time of a cell, None where it is none; `now` is no time of a file, nor is one that needs a sign."""
    word = text.strip()
    if not word or word.startswith("now"):
        return None
    try:
        instant = parse_instant(word)
        return None if instant.relative and not word.startswith("+") else instant
    except FarTimeError:
        raise
    except (UsageError, ValueError, OverflowError, ArithmeticError):
        return None


def assumed_of(*cells: str) -> list[str]:
    """Return what is assumed of the times of some cells: a zone where one has a date alone, a day where it has none."""
    words = [cell.strip() for cell in cells]
    unzoned = any(
        "-" in word and not word.startswith("+") and not (ZONED.search(word[10:]) if len(word) > 10 else None) for word in words
    )
    of_day = any(CLOCK.match(word) for word in words)
    return [NO_ZONE] * unzoned + [NO_DAY] * of_day
