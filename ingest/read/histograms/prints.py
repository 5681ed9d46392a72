"""Histograms that a script prints to a terminal, whose times have no date, or that have no time at all.

Times of day are held against each other: the file was last written when the last was printed, whatever the time zone. What has
no time stands, as a point, at the time of the file. A caveat says which of them was done.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ingest.core.caveats import Caveat
from ingest.core.dataclass import dataclass
from ingest.core.series import Series
from ingest.core.timing import UNITS_NS, iso_ns
from ingest.read.context import Context
from ingest.read.events import DAY_NS
from ingest.read.histograms.description import NDJSON, HistogramDescription
from ingest.read.histograms.file_bins import FileBin, FileHistogram, in_bins
from ingest.read.histograms.polls import Lost, Polls

CLOCK = re.compile(r"^(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?:?$")
NUMBER = re.compile(r"^\d{9,10}(?:\.\d{1,9})?$|^\d{12,13}$|^\d{15,16}$|^\d{18,19}$")
DIGITS_OF = {10: "s", 13: "ms", 16: "us", 19: "ns"}
BY_FILE, GUESSED = "time-of-file", "since-a-start"
TO_THE_FILE = "its times of day have no date: the last is taken as the time of the file"
NO_TIMES = "nothing in it says when it was printed: its counts stand at the time of the file"
COPIED = "copy it with cp -p, or have the tool print the time with its date"
PRINT_TIMES = "have the tool print a time before each histogram"
SINCE_START = "its counts never fall: they are taken as those since the start of the script"
CLEARED = "its counts fall from one print to the next: they are taken as those of intervals"
DESCRIBE_IT = "if that is wrong, describe it: --input-format FILE.yml with over_time"
NEVER = "nothing says when each was printed: have the tool print a time before each (biolatency -T; bpftrace: time())"
TWICE = "the same histogram twice without a time in between"
AS_SHOWN = HistogramDescription("", NDJSON, "")


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time as it was printed, in ns: since 1970, or since midnight (`of_day`)."""

    ns: int
    of_day: bool


@dataclass(frozen=True, slots=True)
class Print:
    """A histogram, and the last time that was printed before it (None: there was none)."""

    line: int
    series: Series
    bins: Sequence[FileBin]
    stamp: Stamp | None


def stamp_of(text: str) -> Stamp | None:
    """Return the time that a line is, None where it is something else."""
    text = text.strip()
    if match := CLOCK.match(text):
        hours, minutes, whole, part = match[1], match[2], match[3], (match[4] or "").ljust(9, "0")
        return Stamp(((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * UNITS_NS["s"] + int(part), of_day=True)
    if NUMBER.match(text):
        whole, _, part = text.partition(".")
        unit = UNITS_NS[next(unit for digits, unit in DIGITS_OF.items() if len(whole) <= digits)]
        return Stamp(int(whole) * unit + int(part.ljust(9, "0") if part else 0), of_day=False)
    since = iso_ns(text) if re.match(r"^\d{4}-\d\d-\d\d[T ]\d\d:", text) else None
    return None if since is None else Stamp(since, of_day=False)


def add(prints: Sequence[Print], path_ns: int, context: Context, held: Polls, *, total: bool | None) -> None:
    """Add what was printed to `held`; `path_ns` is the time of the file. `total` None: whether counts fall decides."""
    if all(entry.stamp is None for entry in prints) and len({entry.series for entry in prints}) < len(prints):
        for entry in prints:
            held.reject(NEVER, entry.line, Lost(entry.series))
        return
    stamps = _resolved([entry.stamp for entry in prints], path_ns)
    ends = [path_ns if end is None else end for end in stamps]
    _say(prints, context)
    kept = _each_once(prints, ends, path_ns, held)
    if total is None:
        total = _is_total([entry for entry, _ in kept])
        several = len({entry.series for entry, _ in kept}) < len(kept)
        if several:
            context.account.caveats.append(Caveat(GUESSED, context.account.path, SINCE_START if total else CLEARED, DESCRIBE_IT))
        total = total and several
    times = Counter(entry.series for entry, _ in kept)
    histograms = [
        FileHistogram(entry.line, entry.series, end if times[entry.series] == 1 else None, end, entry.bins, total)
        for entry, end in kept
    ]
    in_bins(histograms, AS_SHOWN, context, held)


def _say(prints: Sequence[Print], context: Context) -> None:
    path = context.account.path
    if any(entry.stamp is not None and entry.stamp.of_day for entry in prints):
        context.account.caveats.append(Caveat(BY_FILE, path, TO_THE_FILE, COPIED))
    elif prints and all(entry.stamp is None for entry in prints):
        context.account.caveats.append(Caveat(BY_FILE, path, NO_TIMES, PRINT_TIMES))


def _resolved(stamps: Sequence[Stamp | None], path_ns: int) -> list[int | None]:
    """Return the times since 1970; those of a day count from the last, a step back of more than half a day is midnight."""
    days, before = 0, None
    passed: list[int | None] = []
    for stamp in stamps:
        if stamp is None or not stamp.of_day:
            passed.append(None if stamp is None else stamp.ns)
            continue
        if before is not None and stamp.ns < before - DAY_NS // 2:
            days += 1
        before = stamp.ns
        passed.append(stamp.ns + days * DAY_NS)
    clocks = [ns for stamp, ns in zip(stamps, passed, strict=True) if stamp is not None and stamp.of_day and ns is not None]
    shift = path_ns - max(clocks) if clocks else 0
    return [
        ns + shift if stamp is not None and stamp.of_day and ns is not None else ns
        for stamp, ns in zip(stamps, passed, strict=True)
    ]


def _each_once(prints: Sequence[Print], ends: Sequence[int], path_ns: int, held: Polls) -> list[tuple[Print, int]]:
    """Return each series once a time; a second print after the last time is what a script prints when it ends."""
    seen: dict[tuple[Series, int], int] = {}
    kept: list[tuple[Print, int]] = []
    last = {entry.series: at for at, entry in enumerate(prints)}
    for at, (entry, end) in enumerate(zip(prints, ends, strict=True)):
        if (entry.series, end) not in seen:
            seen[entry.series, end] = at
            kept.append((entry, end))
        elif last[entry.series] == at and end < path_ns:
            kept.append((entry, path_ns))
        else:
            held.reject(TWICE, entry.line, Lost(entry.series))
    return kept


def _is_total(prints: Iterable[Print]) -> bool:
    """Return whether counts are since a start: not if they fall between half of the neighbours or more."""
    before: dict[Series, dict[int | None, int]] = {}
    falls = pairs = 0
    for entry in prints:
        counts = {one.last: one.count for one in entry.bins}
        if entry.series in before:
            pairs += 1
            falls += any(counts.get(last, 0) < count for last, count in before[entry.series].items())
        before[entry.series] = counts
    return not pairs or 2 * falls < pairs


def with_labels(base: Series, **labels: str) -> Series:
    """Return the series of a printed histogram: service latencies."""
    return base.replaced(kind="service", **labels)
