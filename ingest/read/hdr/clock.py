"""The stamps of interval lines: their text, and the rules that turn them into a start in epoch time and a length.

The text of an interval line, and the rules that turn its stamps into epoch time.

    #[BaseTime: 1441812279.000 (seconds since epoch)]        #[StartTime: 1441812279.474 (seconds since epoch), Wed Sep ...]
    Tag=A,0.127,1.007,2.769,HISTFAAAAEV42pNp...

Java's reader takes commas and spaces alike for separators; writers use commas. Numbers are decimal seconds, turned into ns
without floating point. .NET and C print them after the locale, in half of the world with a comma: 0,127,1,007,2,769,HISTF...

Start and length of an interval from what stands in its line, also of tools that write other things there.

    Tag=read-st,1.001,1.001,4.2,HISTF...               Cql-stress: the stamp is when the interval ended
    Tag=raw,1.000248,2.000412,4.2,HISTF...             cql-stress-scylla-bench: in place of the length stands the end
    Tag=raw,1.000000,2.000000,4.2,HISTF...             scylla-bench before 0.3.2: the end, in whole seconds
    Tag=read,1795330000000.0,1795330001000.0,4.2,HISTF...   hdrhistogram-go 1.0 and 1.1: start and end in ms since 1970
    3898.058,3899.059,637.0,HISTF...                   the C library's hdr_log_write: the end; see `origin_of`

Each rule looks at one line alone: it holds for a log that is read whole, in parts, or while it grows.
"""

from __future__ import annotations

import re
from decimal import InvalidOperation
from functools import lru_cache

from ingest.core.units import iso_ns
from ingest.read.context import YEAR_NS
from ingest.read.text import decimal_of

SECOND, MS = 1_000_000_000, 1_000_000
NS_DIGITS = 9
MOST_SECONDS = 1 << 32
SEPARATORS = re.compile(rb"[, \t\r\n]+")
START = b"#[StartTime:"
BASES = (b"#[BaseTime:", b"#[Basetime:")  # the second by hdrhistogram-go up to 1.2
TAG = b"Tag="
WITH_COMMAS = (6, 7)  # cells of a line whose numbers have a decimal comma; C prints its maximum as a whole number and `.0`
DATED_NS = 946_684_800 * SECOND  # 2000: no log is older, and no machine has been up for as long
DATE = re.compile(rb"#\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\]")
IN_MS = re.compile(rb"\d{12,13}(?:\.\d*)?")
NEGATIVE = "the interval's length is negative"
NO_NUMBER = "the time stamp is no number"
OUT_OF_RANGE = "the time stamp is out of range"


class StampError(ValueError):
    """A line whose front cannot be read; the text is the reason."""


def seconds_ns(text: bytes) -> int:
    """Return decimal seconds in ns, digits past the ninth cut off; StampError if they are no number of this age."""
    if text[-4:-3] == b"." and len(text) <= NS_DIGITS + 5 and (digits := text[:-4] + text[-3:]).isdigit():
        return int(digits) * MS  # as all known writers write them
    whole, _, part = text.partition(b".")
    if whole.isdigit() and (part.isdigit() or not part) and len(whole) <= NS_DIGITS + 1 and len(part) <= NS_DIGITS:
        return int(whole) * SECOND + (int(part) * 10 ** (NS_DIGITS - len(part)) if part else 0)
    try:
        number = decimal_of(text.decode("ascii"))
    except (InvalidOperation, UnicodeDecodeError):
        raise StampError(NO_NUMBER) from None
    if not number.is_finite():
        raise StampError(NO_NUMBER)
    if abs(number) >= MOST_SECONDS:
        raise StampError(OUT_OF_RANGE)
    return int(number * SECOND)


def split_line(line: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Return (tag, start, length, payload) of an interval line; StampError if it is none."""
    cells = line.split(b",")
    if len(cells) not in (4, 5) or b" " in line:
        cells = SEPARATORS.split(line.strip())
    tag = b""
    if cells[0].startswith(TAG):
        tag = cells.pop(0)[len(TAG) :]
    if len(cells) in WITH_COMMAS and all(cell.isdigit() for cell in cells[:4]):
        cells = [b".".join(cells[:2]), b".".join(cells[2:4]), *cells[-2:]]
    if len(cells) != 4:
        raise StampError("no interval: not `[Tag=..,]start,length,maximum,histogram`")
    return tag, cells[0], cells[1], cells[3].rstrip()


class Clock:
    """What StartTime and BaseTime comments say of the stamps that follow, by the rules of Java's reader.

    Comments after intervals begin another log (an appended one): unlike in Java's reader, its base is then decided anew.
    Stamps that are `adrift` count from a moment that the log does not say: its first interval then begins at StartTime where that
    is a date, or at the date of a comment before it (`#[2026-11-24T18:30:00Z]`, asbench); else time is relative to it.
    """

    def __init__(self, *, adrift: bool = False) -> None:
        self.adrift = adrift
        self.start: int | None = None
        self.base: int | None = None
        self.told_again = False  # after intervals
        self._rows = False

    @property
    def known(self) -> tuple[int | None, int | None, bool, bool, bool]:
        """Return all that it knows, as `knowing` takes it."""
        return self.start, self.base, self.told_again, self._rows, self.adrift

    @staticmethod
    def knowing(start: int | None, base: int | None, told_again: bool, rows: bool, adrift: bool = False) -> Clock:  # noqa: FBT001, FBT002  # as `known` gives it
        """Return a clock that goes on where another one was; older checkpoints do not say `adrift`."""
        clock = Clock(adrift=adrift)
        clock.start, clock.base, clock.told_again, clock._rows = start, base, told_again, rows
        return clock

    @property
    def dated(self) -> bool:
        """Return whether StartTime is a date: not before 2000 where stamps may count since a machine was started."""
        return self.start is not None and self.start >= (DATED_NS if self.adrift else YEAR_NS)

    def comment(self, line: bytes) -> None:
        """Take a comment line; only a readable StartTime or BaseTime counts."""
        if self.adrift and (date := DATE.match(line)) and (dated := iso_ns(date[1].decode())) is not None:
            self._begin()
            self.start = dated
            return
        mark = next((mark for mark in (START, *BASES) if line.startswith(mark)), b"")
        if not mark:
            return
        try:
            stamp = seconds_ns((line[len(mark) :].split(None, 1) or [b""])[0].rstrip(b"]").replace(b",", b"."))
        except StampError:
            return
        if self.adrift and self.dated and not self._rows:
            return  # a date was told before, and StartTime is as the stamps are
        self._begin()
        if mark == START:
            self.start = stamp
        else:
            self.base = stamp

    def _begin(self) -> None:
        """Begin another log, if there were intervals."""
        if self._rows:
            self._rows, self.base, self.told_again = False, None, True

    def base_of(self, stamp: int) -> int:
        """Return the epoch ns that the stamp of an interval counts from."""
        self._rows = True
        if self.start is None:
            self.start = stamp
        if self.base is None and self.adrift:
            self.base = (self.start if self.dated else 0) - stamp
        elif self.base is None:
            self.base = self.start if stamp < self.start - YEAR_NS else 0
        return self.base

    def zero(self, stamp: int) -> tuple[int | None, str]:
        """Return the start of a log whose first stamp this is, and where it was taken from."""
        dated, start = self.dated, self.start
        base = self.base_of(stamp)
        if dated:
            return start, "the head of the log" if self.adrift else "StartTime in the log"
        if base >= YEAR_NS:
            return base, "BaseTime in the log"
        if base + stamp >= YEAR_NS:
            return base + stamp, "epoch stamps in the log"
        return None, "unknown"


USUAL, BY_END, WITH_END, SCYLLA = "", "stamped by its end", "with its end", "as scylla-bench"
ROUNDING_NS = 5_000_000
ROUNDED_SHARE = 10
ADRIFT = "its stamps count from a moment that it does not say: its first interval is taken to begin at the time in its head"
ENDED = "this tool writes the end of an interval in place of its length: taken as its end"
SAID = {
    USUAL: "its stamps are in ms, with the end of an interval in place of its length (hdrhistogram-go 1.0 and 1.1): taken so",
    BY_END: "this tool stamps intervals at their ends: their start is one length earlier",
    WITH_END: ENDED,
    SCYLLA: ENDED,
}


def rounding_of(length_ns: int) -> int:
    """Return by how much two intervals may overlap because their stamps are rounded, in ns."""
    return max(ROUNDING_NS, length_ns // ROUNDED_SHARE)


def interval_of(line: bytes, stamps: str) -> tuple[bytes, int, int, bytes, bool]:
    """Return (tag, start, length, payload) of a line, times in ns by the log's own clock, and whether they were put right.

    StampError if it is no interval.
    """
    tag, start_text, length_text, payload = split_line(line)
    if IN_MS.fullmatch(start_text):
        begin, end = (seconds_ns(_shifted(text)) for text in (start_text, length_text))
        if end < begin:
            raise StampError(NEGATIVE)
        return tag, begin, end - begin, payload, True
    as_printed = start, length = seconds_ns(start_text), _length_ns(length_text)
    if stamps:
        start, length = _put_right(start, length, stamps)
    if length < 0:
        raise StampError(NEGATIVE)
    return tag, start, length, payload, bool(stamps) and (start, length) != as_printed


def _shifted(text: bytes) -> bytes:
    """Return ms as decimal seconds."""
    whole, _, part = text.partition(b".")
    return whole[:-3] + b"." + whole[-3:] + part[: NS_DIGITS - 3]


_length_ns = lru_cache(maxsize=64)(seconds_ns)  # nearly all intervals of a log are as long


def _put_right(start: int, length: int, stamps: str) -> tuple[int, int]:
    if stamps == BY_END:
        return start - length, length
    if stamps == WITH_END:
        return start, length - start
    whole = not start % SECOND and not length % SECOND
    return start, length - start if whole and length >= start else length
