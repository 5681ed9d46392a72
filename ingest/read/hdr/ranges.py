"""Long HdrHistogram logs read in parts that begin at about the same time in each, for several processes.

A part is a range of bytes that ends between two lines. What lines take from those before them is their start, which is
known from the first interval on where no StartTime or BaseTime follows it, and where the line before them ended. So a cut
is only made where no tag's next line begins before its last one ended, nearby. Whether all this was true of the whole parts
is shown by their tails (`alike`); where it was not, the log is read again, in one piece.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ingest.core.errors import InputError
from ingest.core.intervals import Intervals
from ingest.core.layout import Layout
from ingest.core.series import Series
from ingest.read.account import FINDINGS_KEPT, Account
from ingest.read.context import Context
from ingest.read.hdr.clock import StampError, seconds_ns, split_line
from ingest.read.hdr.codec import PayloadError, payload_of
from ingest.read.hdr.gaps import joined
from ingest.read.hdr.layouts import MOST_BINS
from ingest.read.hdr.log import CHUNK_ENTRIES, rows_of, unpacked
from ingest.read.hdr.origin import origin_of
from ingest.read.hdr.rows import COMMENT, LEGEND, MOST_SERIES
from ingest.read.hdr.tails import Tail
from ingest.read.text import LONGEST_LINE, head, is_plain

SMALLEST = 4 << 20
NEARBY = 1 << 18
AT_ONCE = 1 << 18
NO_NEWLINE = "a line of more than 1 MiB"


@dataclass(frozen=True, slots=True)
class Part:
    """The bytes [begin, end) of a log, to its end if `end` is None; `front` are the lines that give its start."""

    begin: int
    end: int | None
    front: tuple[bytes, ...]


def cut(paths: Sequence[Path], contexts: Sequence[Context], parts: int) -> tuple[list[list[Part]], list[int]] | None:
    """Return, for each of `parts` ranges of time, the part of each log, and the epoch ns of the cuts between them.

    The longest log is cut into equal numbers of bytes, the others at the same times. None where a log cannot be cut.
    """
    if not all(is_plain(path) for path in paths) or sum(path.stat().st_size for path in paths) < SMALLEST:
        return None
    logs = [_Log(path, context) for path, context in zip(paths, contexts, strict=True)]
    try:
        if any(log.offset_ns is None for log in logs):
            return None
        longest = max(logs, key=lambda log: len(log.data))
        times = [longest.time_at(len(longest.data) * number // parts) for number in range(1, parts)]
        edges = [[log.place_of(time) for time in times] for log in logs]
    except StampError:
        return None
    finally:
        for log in logs:
            log.data.close()
    ranges = []
    for number in range(parts):
        begins = [0 if not number else places[number - 1] for places in edges]
        ends = [None if number == parts - 1 else places[number] for places in edges]
        ranges.append([Part(begin, end, log.front) for begin, end, log in zip(begins, ends, logs, strict=True)])
    return ranges, times


class _Log:
    """A log whose lines are looked up by their place and time."""

    def __init__(self, path: Path, context: Context) -> None:
        with path.open("rb") as stream:
            self.data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        start = head(path)
        self.front = () if origin_of(start).stamps else _front(start)  # stamps that need their line are not looked up
        self.offset_ns: int | None = None
        if self.front:
            scratch = Context(context.series, context.zero, context.offset_ns, recorded_unit_ns=context.recorded_unit_ns)
            self.offset_ns = rows_of(path, scratch).skip_to(self.front, len(self.front))

    def time_at(self, place: int) -> int:
        """Return the epoch ns at which the first line after a place begins; StampError where there is none."""
        begin = self.data.find(b"\n", place) + 1
        end = self.data.find(b"\n", begin)
        if not begin or end < 0 or end - begin > NEARBY:
            raise StampError
        return seconds_ns(split_line(self.data[begin:end])[1]) + (self.offset_ns or 0)

    def place_of(self, time_ns: int) -> int:
        """Return where the first line that begins at a time or later does, moved on to where the log can be cut."""
        first = sum(len(line) + 1 for line in self.front)
        steps = range(first, len(self.data), NEARBY)
        near = bisect_left(steps, time_ns, key=self._time_or_end)
        begin = self.data.find(b"\n", steps[max(near - 1, 0)]) + 1 if steps else 0
        places: list[int] = []
        lines: list[tuple[bytes, int, int]] = []
        while begin and begin < len(self.data) and len(places) < len(self.data):
            end = self.data.find(b"\n", begin)
            if end < 0 or end - begin > NEARBY or begin > steps[max(near - 1, 0)] + 4 * NEARBY:
                break
            tag, start, length, _ = split_line(self.data[begin:end])
            stamp = seconds_ns(start) + (self.offset_ns or 0)
            places.append(begin)
            lines.append((tag, stamp, stamp + seconds_ns(length)))
            begin = end + 1
        chosen = _cut_between(lines, time_ns)
        if chosen is None:
            raise StampError
        return places[chosen]

    def _time_or_end(self, place: int) -> int:
        return self.time_at(place) if self.data.find(b"\n", self.data.find(b"\n", place) + 1) > 0 else 1 << 62


def _front(text: bytes) -> tuple[bytes, ...]:
    """Return the lines up to the first interval that can be read; none if there is none."""
    lines = text.split(b"\n")[:-1]
    for number, line in enumerate(lines):
        if line.startswith((COMMENT, LEGEND)) or not line.strip():
            continue
        try:
            _, start, length, payload = split_line(line)
            seconds_ns(start)
            good = seconds_ns(length) >= 0 and bool(payload_of(payload))
        except (StampError, PayloadError):
            continue
        if good:
            return tuple(lines[: number + 1])
    return ()


def _cut_between(lines: Sequence[tuple[bytes, int, int]], time_ns: int) -> int | None:
    """Return the first line from a time on that every tag's later lines begin at or after all its earlier ones ended."""
    earliest: dict[bytes, int] = {}
    after: list[dict[bytes, int]] = []
    for tag, start, _ in reversed(lines):
        earliest[tag] = min(start, earliest.get(tag, start))
        after.append(dict(earliest))
    after.reverse()
    ends: dict[bytes, int] = {}
    for number, (tag, start, end) in enumerate(lines):
        if start >= time_ns and all(first >= ends.get(later_tag, first) for later_tag, first in after[number].items()):
            return number
        ends[tag] = max(end, ends.get(tag, end))
    return None


def read_part(path: Path, context: Context, part: Part, chunk_entries: int = CHUNK_ENTRIES) -> Iterator[Intervals[Series] | Tail]:
    """Yield the intervals of a part of a log as `hdr.log.read` does, then its tail. Notes are left to `settled`."""
    rows = rows_of(path, context)
    if part.begin:
        rows.skip_to(part.front, sum(block.count(b"\n") for block in _blocks(path, 0, part.begin)))
    yield from unpacked(rows, _blocks(path, part.begin, part.end), chunk_entries)
    yield rows.tail()


def _blocks(path: Path, begin: int, end: int | None) -> Iterator[bytes]:
    """Yield whole lines of a range of bytes in blocks of about 256 KiB; InputError for lines of more than 1 MiB."""
    rest = b""
    with path.open("rb", buffering=0) as stream:
        stream.seek(begin)
        left = end - begin if end is not None else None
        while data := stream.read(AT_ONCE if left is None else min(AT_ONCE, left)):
            left = None if left is None else left - len(data)
            whole = data.rfind(b"\n") + 1
            if whole:
                yield rest + data[:whole]
                rest = data[whole:]
            else:
                rest += data
            if len(rest) >= LONGEST_LINE:
                raise InputError(NO_NEWLINE, path)
    if rest:
        yield rest


def alike(tails: Sequence[Tail]) -> bool:
    """Return whether the parts of a log, in order, gave the rows that the log gives when it is read as one."""
    ends: dict[tuple[bytes, Layout], int] = {}
    for tail in tails:
        if any(first < ends.get(key, first) for key, first in tail.firsts.items()):
            return False
        ends.update(tail.ends)
    bounded = sum(tail.bins for tail in tails) <= MOST_BINS and sum(len(tail.ends) for tail in tails) <= MOST_SERIES
    return bounded and all(tail.plain for tail in tails)


def settled(path: Path, context: Context, tails: Sequence[Tail], accounts: Sequence[Account]) -> None:
    """Make the account of a log that of its parts, in order, with the notes on the log as a whole."""
    whole = Account(path=context.account.path, notes=list(context.account.notes))
    kept: Counter[str] = Counter()
    missing = joined([account.missing for account in accounts], [tail.edges for tail in tails])
    for account in accounts:
        for note in account.notes:
            whole.note(note)
        account.path, account.notes = "", []
        findings, account.findings = account.findings, []
        whole.add(account)
        for finding in findings:
            kept[finding.reason] += 1
            if kept[finding.reason] <= FINDINGS_KEPT:
                whole.findings.append(finding)
    whole.missing = []
    for entry in missing:
        whole.lack(replace(entry, caveat=replace(entry.caveat, subject=whole.path)))
    context.account.replace(whole)
    rows = rows_of(path, context)
    for tail in tails:
        rows.absorb(tail)
    rows.settle()
