"""The beginning of a text of `perf script`: whether it is one, the host, and where its clock began.

    # hostname : vm
    # clockid: monotonic (1)
    # reference time: 2026-11-21 14:39:03.232775 = 1795271943.232775 (TOD) = 5467.257712166 (monotonic)

`perf script --header` prints it. The reference is there where `perf record` was given its clock (-k CLOCK_MONOTONIC): the same
moment by the time of day and by the clock of the stamps. `captured on` is no such thing: it has no zone, and means the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ingest.read.account import Account
from ingest.read.perf.lines import FTRACE, NS_DIGITS, SAMPLE, SECOND, samples
from ingest.read.text import head

ANY_SAMPLE = re.compile(SAMPLE.encode())
OTHERS = re.compile(FTRACE.encode())
HOSTNAME = re.compile(rb"^# hostname ?: (\S+)", re.MULTILINE)
REFERENCE = re.compile(rb"^# reference time: .* = (\d{1,10})\.(\d{1,9}) \(TOD\) = (\d{1,10})\.(\d{1,9}) \((\S+)\)", re.MULTILINE)
CAPTURED = b"# captured on"
STAMPED, BEGINNING = re.compile(rb"\d\.\d{6}(?:\d{3})?: "), 1 << 13  # a cheap test before each line is held against a pattern
EPOCH_S = 20 * 365 * 86_400  # no machine has been up for so long: such stamps count from 1970
UNTIMED = re.compile(
    rb"^ *\S[^\n]{0,99}? +\d{1,10}(?:/ *\d{1,10})? +(?:\[\d+\] +)?(?:\d+ +)?"  # name, process, CPU, period
    rb"(?:[\w-]+(?::[\w-]*)*: *\r?\n[ \t]*[0-9a-f]{4,16} [^\n]*\([^\n]*\)\r?$"  # a frame below it
    rb"|(?:block|sched|syscalls|probe\w*):\w+: )",  # or a tracepoint
    re.MULTILINE,
)
NO_STAMPS = (
    "samples of perf script without their time stamps: print them with `perf script -F +time` "
    "(where perf has none, record with `perf record -T`)"
)
LINES_LOOKED_AT, LONGEST_HEAD = 2000, 1 << 12


@dataclass(frozen=True, slots=True)
class Header:
    """The host, empty where unknown; and the epoch ns at which the clock of the stamps was zero, None where unknown."""

    host: str = ""
    zero_ns: int | None = None
    origin: str = "unknown"


def looks_like_perf(start: bytes) -> bool:
    """Return whether a file begins like the text of `perf script`."""
    if start.startswith(b"# ===") and CAPTURED in start[:400]:
        return not lacks_stamps(start)
    return STAMPED.search(start[:BEGINNING]) is not None and next(_samples(start), None) is not None


def lacks_stamps(start: bytes) -> bool:
    """Return whether a file begins like the text of `perf script -F -time`: samples, none of them with a time stamp."""
    return UNTIMED.search(start) is not None and next(_samples(start), None) is None


def header_of(path: Path) -> Header:
    """Return the host and the clock by the beginning of a file."""
    start = head(path)
    named = HOSTNAME.search(start)
    host = named[1].decode("utf-8", "replace") if named else ""
    first = next(_samples(start), None)
    if first and int(first["seconds"]) >= EPOCH_S:
        return Header(host, 0, "epoch stamps in the log")
    match = REFERENCE.search(start)
    if not match:
        return Header(host)
    day, clock = (
        int(seconds) * SECOND + int(part.ljust(NS_DIGITS, b"0")) for seconds, part in ((match[1], match[2]), (match[3], match[4]))
    )
    return Header(host, day - clock, "reference time in the header")


def last_ns(path: Path) -> int:
    """Return the stamp of the newest sample in ns of the file's clock, 0 if there is none; reads all of it."""
    return max((int(chunk.at_ns.max()) for chunk in samples(path, Account(path=str(path))) if len(chunk)), default=0)


def _samples(start: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the samples among the first lines."""
    lines = start.split(b"\n", LINES_LOOKED_AT)
    for line in lines[:-1]:
        if line[:1] in (b"\t", b"#", b"") or len(line) > LONGEST_HEAD:
            continue
        match = ANY_SAMPLE.match(line + b"\n")
        if match and not OTHERS.search(match["comm"] or b""):
            yield match
