"""Histograms that a script prints to a terminal, whose times have no date, or that have no time at all.

Times of day are held against each other: the file was last written when the last was printed, whatever the time zone. What has
no time stands, as a point, at the time of the file. A caveat says which of them was done.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ingest.core.coverage import Caveat
from ingest.core.labels import CLIENT, DEVICE, Series, in_layer
from ingest.core.units import UNITS_NS, iso_ns
from ingest.read.context import Context
from ingest.read.described.description import NDJSON, HistogramDescription
from ingest.read.operations import DAY_NS
from ingest.read.polls import FileBin, FileHistogram, Lost, Polls, in_bins, typical_gap

CLOCK = re.compile(r"^([0-9][0-9]):([0-9][0-9]):([0-9][0-9])(?:\.([0-9]{1,9}))?:?$")
NUMBER = re.compile(r"^[0-9]{9,10}(?:\.[0-9]{1,9})?$|^[0-9]{12,13}$|^[0-9]{15,16}$|^[0-9]{18,19}$")
DIGITS_OF = {10: "s", 13: "ms", 16: "us", 19: "ns"}
BY_FILE, GUESSED = "time-of-file", "since-a-start"
TO_THE_FILE = "its times of day have no date: the last is taken as the time of the file"
NO_TIMES = "nothing in it says when it was printed: its counts stand at the time of the file"
COPIED = "copy it with cp -p, or have the tool print the time with its date"
PRINT_TIMES = "have the tool print a time before each histogram"
SINCE_START = "its counts never fall: they are taken as those since the start of the script"
CLEARED = "its counts fall from one print to the next: they are taken as those of intervals"
DESCRIBE_IT = "if that is wrong, describe it: --input-format FILE.yml with over_time"
UNTIMED = "no time was printed before it, and others of its file have one: give it as a file of its own"
BLOCK_DEVICES = re.compile(r"^Tracing block device I/O")
NO_BIN = "no bin of a histogram where one should be, or one whose head is not there: it was damaged"
NOT_CHAINED = "its bins do not follow one another: lines of it are not there"
DAMAGED = re.compile(r"\||->|\0")  # in a line that should be a bin
NEVER = "nothing says when each was printed: have the tool print a time before each (biolatency -T; bpftrace: time())"
AS_SHOWN = HistogramDescription("", NDJSON, "")


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time as it was printed, in ns: since 1970, or since midnight (`of_day`)."""

    ns: int
    of_day: bool


@dataclass(frozen=True, slots=True)
class Print:
    """A histogram; `stamp` is the number of the last time that its `script` printed before it, None where there was none.

    `since` is that of the time when counting began, where the tool cleared its counts then: None where that is not known.
    """

    line: int
    series: Series
    bins: Sequence[FileBin]
    stamp: int | None
    since: int | None = None
    script: int = 0


@dataclass(slots=True)
class Script:
    """The script that prints, of which a file may hold several: all times so far, the `first` of its own, what it times.

    `beginning` is the line by which each begins.
    """

    beginning: re.Pattern[str]
    stamps: list[Stamp] = field(default_factory=list)
    first: int = 0
    times_devices: bool = False

    @property
    def newest(self) -> int | None:
        """Return the number of the last time that this script printed."""
        return len(self.stamps) - 1 if len(self.stamps) > self.first else None

    def takes(self, text: str) -> bool:
        """Return whether a line is a time, or one by which a script begins, and take it."""
        begins, devices = (pattern.match(text) is not None for pattern in (self.beginning, BLOCK_DEVICES))
        if begins:
            self.first = len(self.stamps)
        if begins or devices:
            self.times_devices = devices
            return True
        if stamp := stamp_of(text):
            self.stamps.append(stamp)
        return stamp is not None


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
    since = iso_ns(text) if re.match(r"^[0-9]{4}-[0-9][0-9]-[0-9][0-9][T ][0-9][0-9]:", text) else None
    return None if since is None else Stamp(since, of_day=False)


def add(
    prints: Sequence[Print], stamps: Sequence[Stamp], path_ns: int, context: Context, held: Polls, *, total: bool | None
) -> None:
    """Add what was printed to `held`, with all times that were printed; `path_ns` is the time of the file.

    `total` None: whether counts fall decides.
    """
    if all(entry.stamp is None for entry in prints) and len({entry.series for entry in prints}) < len(prints):
        for entry in prints:
            held.reject(NEVER, entry.line, Lost(entry.series))
        return
    prints = _unbroken(prints, held)
    timed = [entry for entry in prints if entry.stamp is not None]
    if timed and len(timed) < len(prints):
        for entry in prints:
            if entry.stamp is None:
                held.reject(UNTIMED, entry.line, Lost(entry.series))
        prints = timed
    # Printed twice after the last time: the second time as the script ended.
    series = [entry.series for entry in prints if entry.stamp == len(stamps) - 1]
    times = _resolved(stamps, path_ns, at_the_end=len(set(series)) < len(series))
    path = context.account.path
    if any(entry.stamp is not None and stamps[entry.stamp].of_day for entry in prints):
        context.account.caveats.append(Caveat(BY_FILE, path, TO_THE_FILE, COPIED))
    elif prints and all(entry.stamp is None for entry in prints):
        context.account.caveats.append(Caveat(BY_FILE, path, NO_TIMES, PRINT_TIMES))
    kept = _each_once(prints, [path_ns if entry.stamp is None else times[entry.stamp] for entry in prints], path_ns, held)
    if total is None:
        total = _is_total([entry for entry, _ in kept])
        several = len({entry.series for entry, _ in kept}) < len(kept)
        if several:
            context.account.caveats.append(Caveat(GUESSED, path, SINCE_START if total else CLEARED, DESCRIBE_IT))
        total = total and several
    every = typical_gap(times)
    alone = {series for series, number in Counter(entry.series for entry, _ in kept).items() if number == 1}
    histograms, begun = [], set[Series]()
    for entry, end in kept:
        start = None if entry.since is None or (total and entry.series in begun) else times[entry.since]
        begun.add(entry.series)
        if (start is None or start > end) and not total and every and entry.stamp is not None:
            start = end - every  # the first; or a clock that was set back
        elif start is None and entry.series in alone:
            start = end
        histograms.append(FileHistogram(entry.line, entry.series, start, end, entry.bins, total))
    in_bins(histograms, AS_SHOWN, context, held)


def _unbroken(prints: Sequence[Print], held: Polls) -> list[Print]:
    """Return what was printed without histograms of which a bin is gone: tools print all from the first to the last."""
    whole = []
    for entry in prints:
        if any(one.last != other.before for one, other in pairwise(entry.bins)):
            held.reject(NOT_CHAINED, entry.line, Lost(entry.series))
        else:
            whole.append(entry)
    return whole


def _resolved(stamps: Sequence[Stamp], path_ns: int, *, at_the_end: bool) -> list[int]:
    """Return the times since 1970; those of a day count from the last, a step back of more than half a day is midnight.

    The last is the time of the file; one interval before it where the script printed once more `at_the_end`.
    """
    days, before = 0, None
    passed: list[int] = []
    for stamp in stamps:
        if stamp.of_day and before is not None and stamp.ns < before - DAY_NS // 2:
            days += 1
        before = stamp.ns if stamp.of_day else before
        passed.append(stamp.ns + days * DAY_NS if stamp.of_day else stamp.ns)
    clocks = sorted({ns for stamp, ns in zip(stamps, passed, strict=True) if stamp.of_day})
    if not clocks:
        return passed
    shift = path_ns - clocks[-1] - ((typical_gap(clocks) or UNITS_NS["s"]) if at_the_end else 0)
    return [ns + shift if stamp.of_day else ns for stamp, ns in zip(stamps, passed, strict=True)]


def _each_once(prints: Sequence[Print], ends: Sequence[int], path_ns: int, held: Polls) -> list[tuple[Print, int]]:
    """Return each series once a time; a second print after the last time is what a script prints when it ends."""
    seen: set[tuple[Series, int]] = set()
    kept: list[tuple[Print, int]] = []
    last = {entry.series: at for at, entry in enumerate(prints)}
    for at, (entry, end) in enumerate(zip(prints, ends, strict=True)):
        if (entry.series, end) not in seen:
            seen.add((entry.series, end))
            kept.append((entry, end))
        elif last[entry.series] == at and end < path_ns:
            kept.append((replace(entry, since=entry.stamp), path_ns))
        else:
            held.reject("the same histogram twice without a time in between", entry.line, Lost(entry.series))
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


def with_labels(base: Series, *, device: bool, **labels: str) -> Series:
    """Return the series of a printed histogram: service latencies, of the layer of devices where it is or names one."""
    layer = DEVICE if device or labels.get("volume", "") not in ("", base.volume) else CLIENT
    return base.replaced(kind=in_layer("service", layer), **labels)
