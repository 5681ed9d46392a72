"""Histograms that a tool answered when it was polled: documents, lines, bins, and counts since a start as intervals.

JSON documents of a text, one a line or each spread over lines, one after another or in an array.

    {"a": 1}            {                   [{"a": 1},
    {"a": 2}              "a": 1             {"a": 2}]
                        }
                        {
                          "a": 2
                        }

A document is an object that stands in no other; arrays around it count for nothing. Damage costs the document that it is in: the
next one begins where an object stands that is not farther in.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from ingest.core.coverage import SEE_INSPECT, Caveat, Missing, labels_of
from ingest.core.errors import CapacityError, InputError, as_text, counted
from ingest.core.intervals import MOST_SAMPLES, Int, Intervals
from ingest.core.labels import Series
from ingest.core.layout import LAST_NS, MOST_EDGES, Edges, Layout
from ingest.core.units import MOST_NS
from ingest.read.account import Account
from ingest.read.context import OWN_STAMPS, SHADOWING, SPANS, Context, TimeZero
from ingest.read.described.description import HistogramDescription
from ingest.read.formats import AGAIN, ROW_LABELS, Reader
from ingest.read.missing import REJECTED
from ingest.read.polled_series import name_of, parse_spans, spans_of
from ingest.read.sources import Around, Source
from ingest.read.text import CUT_OFF, TABLE_ENDINGS, decimal_of, name_without, whole_blocks

# Histograms of one file, by series: counts since a start become counts of intervals, repeated ones are left out.
#
# A poller stamps what it was told; counts are those of one interval, or all since a start (`total`). Of totals neighbours are
# subtracted, so that the first is only a baseline, unless the tool says that it began shortly before. Where the whole falls, or
# the start moves by more than a poll, what was counted had been set to zero: the new counts are taken as they are, and what was
# counted between the last poll and that moment is kept as missing. Documents may come in any order and more than once.


OTHER_FORM = "the same histogram in another form, of other bins: a series, time and count that were read before"
TWICE = "the same histogram again: a series and time that were read before"
BASELINE = "counts since a start that is long before or not known: what the next histogram is held against"
NO_START = "one histogram alone, and nothing says when it began: two are needed, or how far apart they are"
OTHER_EDGES = "bins changed to others that cannot be held against those before: counting begins anew there"
SET_BACK = "the clock was set back: its time is before that of the one before"
NOT_TAKEN = "histograms were rejected: their samples are missing"
NOT_READ = "lines were rejected: if they held histograms, their samples are missing"
DIPS = "bins fall while the whole does not: they were read one after another, and hold what later ones show"
FEW = 8  # samples: bins may fall by so many while next to nothing is counted
FALLING = 100  # of bins that fall a hundredth at most may be missing where nothing says that the start is the same
LATE_TIMES = 3
MOST_LOST = 64
MOST_SEGMENTS, MOST_FILES = 64, 1 << 20


@dataclass(frozen=True, slots=True)
class Poll:
    """One histogram: `counts[i]` samples in bin `bins[i]`, bins rising, none empty.

    `start_ns` is when counting began, None where the tool does not say.
    """

    line: int
    series: Series
    start_ns: int | None
    end_ns: int
    layout: Layout
    bins: Int
    counts: Int
    total: bool

    @property
    def samples(self) -> int:
        """Return how many samples there are."""
        return int(self.counts.sum())


class Lost(NamedTuple):
    """A histogram that cannot be taken, so far as it is known whose it was: None for what it does not say."""

    series: Series
    start_ns: int | None = None
    end_ns: int | None = None
    samples: int | None = None
    total: bool = False


def sparse(places: Int, counts: Sequence[int] | Int) -> tuple[Int, Int]:
    """Return bins rising and their counts, those of equal bins added up and empty ones left out."""
    values = np.asarray(counts, np.int64)
    bins, where = np.unique(places[values > 0], return_inverse=True)
    sums = np.zeros(len(bins), np.int64)
    np.add.at(sums, where, values[values > 0])
    return bins.astype(np.int64), sums


class Polls:
    """Takes the histograms of one file; `every_ns` is how far apart they are where nothing else says it (0: not known)."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.every_ns = 0
        self._held: dict[Series, list[Poll]] = {}
        self._lost_ones: list[Lost] = []
        self._told: set[int] = set()

    def reject(self, reason: str, line: int, lost: Lost | None) -> None:
        """Count a histogram that cannot be taken; its samples are missing, unless a later one of the series holds them, too.

        `lost` None: it costs no samples. Of lines that are rejected otherwise it is not known what they held (`keep_unread`).
        """
        self._context.account.reject(reason, [line])
        self._told.add(line)
        if lost is not None:
            self._lost_ones.append(lost)

    def tell(self, lines: Iterable[int]) -> None:
        """Take lines that are rejected and of which others say what they cost."""
        self._told.update(lines)

    def add(self, poll: Poll) -> None:
        """Take a histogram."""
        stamps = (poll.end_ns, poll.end_ns if poll.start_ns is None else poll.start_ns)
        if not all(-MOST_NS < stamp < MOST_NS for stamp in stamps):
            self.reject("a time that cannot be counted with", poll.line, Lost(poll.series, None, None, poll.samples))
        elif poll.start_ns is not None and poll.start_ns > poll.end_ns:
            self.reject("it ends before it begins", poll.line, Lost(poll.series, None, None, poll.samples))
        else:
            self._held.setdefault(poll.series, []).append(poll)

    def leave_out_intervals(self, lines: AbstractSet[int]) -> None:
        """Leave out what was counted in intervals and stands on some lines; counts since a start stay."""
        kept = {series: [poll for poll in polls if poll.total or poll.line not in lines] for series, polls in self._held.items()}
        self._held = {series: polls for series, polls in kept.items() if polls}

    @property
    def is_total(self) -> bool:
        """Return whether all counts are since a start."""
        return all(poll.total for polls in self._held.values() for poll in polls)

    def by_series(self) -> list[tuple[Poll, ...]]:
        """Return the histograms that were taken so far, those of a series together."""
        return [tuple(polls) for polls in self._held.values()]

    def intervals(self) -> Iterator[Intervals[Series]]:
        """Yield the rows of all series, one layout each; notes what was left out. CapacityError past 2^62 samples."""
        by_layout: dict[Layout, list[Poll]] = {}
        for series in self._held:
            polls = self._once(self._held[series])
            every = self.every_ns or typical_gap([poll.end_ns for poll in polls])
            totals, alone = [poll for poll in polls if poll.total], [poll for poll in polls if not poll.total]
            for poll in self._apart([*self._differences(totals, every), *self._begun(alone, every)]):
                by_layout.setdefault(poll.layout, []).append(poll)
        for lost in self._lost_ones[:MOST_LOST]:
            self._keep(lost)
        if len(self._lost_ones) > MOST_LOST:
            self._lack(Lost(self._context.series))
        for layout, polls in by_layout.items():
            yield self._rows(layout, polls)

    def keep_unread(self) -> None:
        """Keep what lines have cost of which it is not known what they held.

        Counts since a start are in a later histogram of their series, too, where there is one. Counts of an interval end between
        those on the lines before and after.
        """
        lines = [line for line in self._context.account.rejected_lines if line not in self._told]
        if not lines:
            return
        polls = sorted((poll for polls in self._held.values() for poll in polls), key=attrgetter("line"))
        places = [bisect_left(polls, line, key=attrgetter("line")) for line in lines]
        lost = {Lost(self._context.series, *_around(polls, place)) for place in places if not self.is_total}
        by_time = all(earlier.end_ns <= later.end_ns for earlier, later in pairwise(polls))  # else series after series
        behind = [(line, polls[place - 1].series) for line, place in zip(lines, places, strict=True) if place]
        for series, held in self._held.items():
            own = [line for line, nearest in behind if by_time or nearest == series]
            if held[0].total and own and max(poll.line for poll in held) < own[-1]:
                ends = sorted({poll.end_ns for poll in held})
                lost.add(Lost(series, ends[-2] if len(ends) > 1 else None))
        for one in sorted(lost, key=str) if len(lost) <= MOST_LOST else [Lost(self._context.series)]:
            self._lack(one, NOT_READ)

    def _keep(self, lost: Lost) -> None:
        """Keep the samples of a histogram that cannot be taken as missing, unless a later one counts from the same start."""
        if not lost.total:  # of a time that cannot be read nothing is taken for known
            self._lack(lost if lost.end_ns is not None else lost._replace(start_ns=None))
            return
        held = self._held.get(lost.series, ())
        ends = [poll.end_ns for poll in held if None in (poll.start_ns, lost.start_ns) or poll.start_ns == lost.start_ns]
        if lost.end_ns is not None and not any(end > lost.end_ns for end in ends):
            before = max((end for end in ends if end < lost.end_ns), default=lost.start_ns)
            if before is not None:
                self._lack(lost._replace(start_ns=before, samples=None))

    def _lack(self, lost: Lost, sentence: str = NOT_TAKEN) -> None:
        account, offset = self._context.account, self._context.offset_ns
        start, end = lost.start_ns, lost.end_ns
        if start is None and end is not None:  # an interval begins where the one before ended
            start = max((poll.end_ns for polls in self._held.values() for poll in polls if poll.end_ns < end), default=None)
        known = [stamp for stamp in (start, end) if stamp is not None]
        if sorted(known) != known or not all(-MOST_NS < stamp < MOST_NS for stamp in known):
            start = end = None
        start, end = (None if stamp is None else stamp + offset for stamp in (start, end))
        labels = labels_of(lost.series, unknown=ROW_LABELS if lost.series == self._context.series else ())
        account.lack(Missing(labels, start, end, lost.samples, 0, None, Caveat(REJECTED, account.path, sentence, SEE_INSPECT)))

    def _once(self, polls: list[Poll]) -> list[Poll]:
        """Return the polls of a series in order of time, each once."""
        kept: list[Poll] = []
        for poll in sorted(polls, key=lambda poll: (poll.end_ns, -1 if poll.start_ns is None else poll.start_ns, poll.line)):
            last = kept[-1] if kept else None
            if last is None or (last.end_ns, last.start_ns) != (poll.end_ns, poll.start_ns):
                kept.append(poll)
            elif last.layout == poll.layout and np.array_equal(last.bins, poll.bins) and np.array_equal(last.counts, poll.counts):
                self._context.account.skip(TWICE, 1)
            elif last.layout != poll.layout and last.samples == poll.samples:
                self._context.account.skip(OTHER_FORM, 1)
            else:
                self.reject("another histogram of a series and time that were read before", poll.line, _lost_with(poll))
        return kept

    def _begun(self, polls: Iterable[Poll], every_ns: int) -> Iterator[Poll]:
        """Yield counts of intervals with their beginnings: where it is not said, the end of the one before."""
        before: int | None = None
        for poll in polls:
            start = before if poll.start_ns is None else poll.start_ns
            if poll.start_ns is None and before is not None and self.every_ns:
                start = max(before, poll.end_ns - self.every_ns)
            elif start is None and every_ns:
                start = poll.end_ns - every_ns
            before = poll.end_ns
            if start is None:
                self.reject(NO_START, poll.line, _lost_with(poll))
            else:
                yield replace(poll, start_ns=start)

    def _differences(self, polls: list[Poll], every_ns: int) -> Iterator[Poll]:
        """Yield what was counted between neighbours."""
        before: Poll | None = None
        for poll in self._of_one_clock(polls):
            up_to_now = poll
            if before is not None:
                row, up_to_now = self._since(before, poll)
            else:  # all of the first counts where they began shortly before, or where there are no others
                began = poll.start_ns
                late = began is None or (every_ns and poll.end_ns - began > LATE_TIMES * every_ns)
                row = None if late else poll
            before = up_to_now
            if row is None:
                self._context.account.skip(BASELINE, 1)
            else:
                yield row

    def _of_one_clock(self, polls: list[Poll]) -> list[Poll]:
        """Return counts since a start, in order of time, without those that a clock that was set back has put before others.

        Such counts fall in the order of their times and never in that of their lines. Each fall would be taken for a reset.
        """
        by_line = sorted(polls, key=attrgetter("line"))
        if len({poll.start_ns for poll in polls}) > 1 or not _falls(polls) or _falls(by_line):
            return polls
        kept = by_line[:1]
        for poll in by_line[1:]:
            if poll.end_ns > kept[-1].end_ns:
                kept.append(poll)
            else:
                self.reject(SET_BACK, poll.line, _lost_with(poll))
        return kept

    def _since(self, before: Poll, poll: Poll) -> tuple[Poll | None, Poll]:
        """Return what was counted since the poll before, and the counts up to now that the next is held against.

        Counting began anew where the whole falls, or the start moves by more than a poll (`_began_anew`): then all is new. A bin
        that falls while the whole does not was read before others were, of samples that bins above hold already.
        """
        begun = _began_anew(before, poll)
        if not begun and before.layout != poll.layout and not before.layout.nests_in(poll.layout):
            self._context.account.note(OTHER_EDGES)
            self._lost(before, poll)
            return None, poll
        if not begun:
            older = sparse(before.layout.moved_to(poll.layout)[before.bins], before.counts)
            bins = np.union1d(older[0], poll.bins)
            had, has = (_at(bins, *counted) for counted in (older, (poll.bins, poll.counts)))
            left = has - had
            fallen, more = -int(left[left < 0].sum()), int(left.sum())
            started = None not in (before.start_ns, poll.start_ns)  # else a whole that rises may be counted anew, too
            if more >= 0 and fallen <= (max(more, FEW) if started else max(1, int(had[left < 0].sum()) // FALLING)):
                if fallen:
                    self._context.account.note(DIPS)
                    left = np.diff(np.minimum(np.maximum.accumulate(np.cumsum(left)), more).clip(0), prepend=0)
                parts = [replace(poll, bins=bins[some > 0], counts=some[some > 0]) for some in (left, had + left)]
                return replace(parts[0], start_ns=before.end_ns), parts[1]
        self._lost(before, poll)
        start = before.end_ns if poll.start_ns is None or not begun else max(before.end_ns, poll.start_ns)
        return replace(poll, start_ns=min(start, poll.end_ns)), poll

    def _lost(self, before: Poll, poll: Poll) -> None:
        """Keep that samples were lost where counting began anew."""
        sentence = "the tool began to count anew: what it had counted since the poll before is lost"
        caveat = Caveat("counter-reset", self._context.account.path, sentence, "poll more often")
        offset = self._context.offset_ns
        labels = labels_of(poll.series)
        self._context.account.lack(Missing(labels, before.end_ns + offset, poll.end_ns + offset, None, 0, None, caveat))

    def _apart(self, polls: list[Poll]) -> Iterator[Poll]:
        """Yield the rows of a series in segments that do not overlap.

        A series that is named by its own labels alone may go on in another file: each file has segments of its own, as a store
        keeps one source of a series.
        """
        ends: list[int] = []
        file = self._context.series.process
        first = (
            0
            if not polls or polls[0].series.process == file
            else MOST_SEGMENTS * (1 + crc32(as_text(file).encode()) % MOST_FILES)
        )
        for poll in sorted(polls, key=attrgetter("end_ns", "line")):
            start = poll.end_ns if poll.start_ns is None else poll.start_ns
            place = next((number for number, end in enumerate(ends) if start >= end), len(ends))
            if place == MOST_SEGMENTS:
                lost = _lost_with(replace(poll, total=False))
                self.reject("histograms of one series overlap in time too often", poll.line, lost)
                continue
            ends[place : place + 1] = [poll.end_ns]
            segment = first + place
            yield poll if not segment else replace(poll, series=poll.series.replaced(segment=segment))

    def _rows(self, layout: Layout, polls: list[Poll]) -> Intervals[Series]:
        account, offset = self._context.account, self._context.offset_ns
        table: dict[Series, int] = {}
        codes = [table.setdefault(poll.series, len(table)) for poll in polls]
        samples = sum(float(poll.counts.sum(dtype=np.float64)) for poll in polls)
        if account.samples + samples > 0.999 * MOST_SAMPLES:
            raise CapacityError(f"{account.path} holds more than 2^62 samples, which cannot be added up")
        account.accept(len(polls))
        account.samples += sum(poll.samples for poll in polls)
        start_ns = np.array([poll.start_ns for poll in polls], np.int64) + offset
        end_ns = np.array([poll.end_ns for poll in polls], np.int64) + offset
        indptr = np.cumsum([0, *(len(poll.bins) for poll in polls)]).astype(np.int64)
        bins, counts = np.concatenate([poll.bins for poll in polls]), np.concatenate([poll.counts for poll in polls])
        return Intervals(layout, tuple(table), np.array(codes, np.int64), start_ns, end_ns, indptr, bins, counts)


def _began_anew(before: Poll, poll: Poll) -> bool:
    """Return whether a poll says that counting began after the poll before, or at a start that is more than a poll away.

    Tools that work out when they began, from how long they have been running, say it some ms earlier or later each time.
    """
    if before.start_ns is None or poll.start_ns is None or before.start_ns == poll.start_ns:
        return False
    return poll.start_ns > before.end_ns or abs(poll.start_ns - before.start_ns) > poll.end_ns - before.end_ns


def _at(places: Int, bins: Int, counts: Int) -> Int:
    """Return the counts at some places, which hold all bins."""
    spread = np.zeros(len(places), np.int64)
    spread[np.searchsorted(places, bins)] = counts
    return spread


def _lost_with(poll: Poll) -> Lost:
    """Return what is lost with a histogram that was read."""
    return Lost(poll.series, poll.start_ns, poll.end_ns, poll.samples, poll.total)


def _around(polls: Sequence[Poll], place: int) -> tuple[int | None, int | None]:
    """Return from when to when what stood between two polls, in order of lines, may have been counted."""
    to_ns = polls[place].end_ns if place < len(polls) else None
    last = polls[place - 1].end_ns if place else None
    from_ns = max((poll.end_ns for poll in polls[:place] if last is not None and poll.end_ns < last), default=None)
    in_order = from_ns is None or to_ns is None or from_ns < to_ns
    return (from_ns, to_ns) if in_order else (None, None)


def _falls(polls: Sequence[Poll]) -> bool:
    return any(later.samples < earlier.samples for earlier, later in pairwise(polls))


def typical_gap(ends: Sequence[int]) -> int:
    """Return the median distance of times that rise, 0 of one alone."""
    gaps = np.diff(np.array(ends, np.int64))
    return int(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 0


# Histograms with the bins that a file shows, and with those that all of its histograms have in common.


OPEN = None


@dataclass(frozen=True, slots=True)
class FileBin:
    """A bin as a file has it: the last whole ns below it and its own last one (None: none), and its count."""

    before: int | None
    last: int | None
    count: int


@dataclass(frozen=True, slots=True)
class FileHistogram:
    """A histogram as a file has it."""

    line: int
    series: Series
    start_ns: int | None
    end_ns: int
    bins: Sequence[FileBin]
    total: bool


def in_bins(found: Sequence[FileHistogram], description: HistogramDescription, context: Context, held: Polls) -> None:
    """Add histograms to `held` with the bins that all have in common: by the rule, else of all edges that the file shows."""
    shared: tuple[int, ...] | None = description.rule
    if not shared:
        every = {end for entry in found for one in entry.bins for end in (one.before, one.last) if end is not None}
        shared = tuple(sorted(every)) if len(every) < MOST_EDGES - 1 else None
    known: dict[tuple[tuple[int, ...], bool], tuple[Edges, Int]] = {}
    below = 0
    for entry in found:
        own = tuple(sorted({end for one in entry.bins for end in (one.before, one.last) if end is not None}))
        is_open = description.is_open or any(one.last is OPEN for one in entry.bins)
        whole = shared is not None and (bool(description.rule) or not _cut(entry.bins, shared))
        ends, is_open = (
            (shared or (), is_open or any(one.last is OPEN for entry in found for one in entry.bins)) if whole else (own, is_open)
        )
        try:
            if (ends, is_open) not in known:
                known[ends, is_open] = Edges.of_ends(ends, is_open=is_open)
            layout = known[ends, is_open][0]
            lasts = [layout.edges[-2] if one.last is OPEN else one.last for one in entry.bins]
            below += sum(one.count for last, one in zip(lasts, entry.bins, strict=True) if last < 0)
            places = layout.index(np.array([min(max(last, 0), LAST_NS // 2) for last in lasts], np.int64))
            bins, counts = sparse(places, [one.count if last >= 0 else 0 for last, one in zip(lasts, entry.bins, strict=True)])
            held.add(Poll(entry.line, entry.series, entry.start_ns, entry.end_ns, layout, bins, counts, entry.total))
        except (ValueError, OverflowError) as error:
            held.reject(str(error), entry.line, Lost(entry.series, entry.start_ns, entry.end_ns, total=entry.total))
    if below:
        context.account.note(f"{counted(below, 'value', 'values')} below zero: no latencies, left out")


def _cut(bins: Sequence[FileBin], ends: Sequence[int]) -> bool:
    """Return whether one of the bins with samples has an edge of others inside."""
    below = -1
    for one in bins:
        before = below if one.before is None else one.before
        below = before if one.last is OPEN else one.last
        if one.count and any(before < end < (1 << 62 if one.last is OPEN else one.last) for end in ends):
            return True
    return False


LONGEST_DOCUMENT = 64 << 20  # bytes of a line: a poll of a large server takes a tenth of it
NO_JSON = "no JSON object"
TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}"]')
AROUND = re.compile(rb"[][,\s]*")
Parse = Callable[[bytes], Any]


def parsed(text: bytes | str) -> Any:
    """Return what JSON says: numbers with decimals as `Decimal`, NaN as None. ValueError where it is no JSON."""
    return json.loads(text, parse_float=Decimal, parse_constant=lambda _: None)


def documents_of(
    lines: Iterable[tuple[int, bytes, bool]], account: Account, parse: Parse = parsed
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the documents of lines (number, text, whether its end was seen) with the line that each begins in.

    What is no object is rejected, once a line, or once a document that is spread over lines.
    """
    found = _Found(account, parse)
    for number, line, ended in lines:
        if line.strip():
            yield from found.of(number, line, ended=ended)
    found.finish()


class _Found:
    """Takes lines; `_parts` are those of the document that has not ended yet, which began at the first of the lines `_begun`.

    Others of `_begun` are those where one may have begun, too.
    """

    def __init__(self, account: Account, parse: Parse) -> None:
        self._account, self._parse = account, parse
        self._parts: list[bytes] = []
        self._begun: list[int] = []
        self._depth = self._indent = 0
        self._deeper = False
        self._ended = True

    def of(self, number: int, line: bytes, *, ended: bool) -> list[tuple[int, dict[str, Any]]]:
        """Return the documents that end in a line."""
        indent = len(line) - len(line.lstrip())
        if self._parts and self._begins_anew(line, indent):
            self._give_up(NO_JSON)
        if not self._parts:
            with suppress(ValueError, RecursionError):
                value = self._parse(line)
                entries = value if isinstance(value, list) else [value]
                if not all(isinstance(entry, dict) for entry in entries):
                    self._account.reject(NO_JSON, [number])
                    return []
                return [(number, entry) for entry in entries]
        else:
            self._deeper |= len(self._parts) == 1 and indent > self._indent
            if indent <= self._indent and line.lstrip().startswith(b"{"):
                self._begun.append(number)
        self._ended = ended
        return self._scanned(number, line, indent, ended=ended)

    def finish(self) -> None:
        """Reject the document that has no end."""
        if self._parts:
            self._give_up(NO_JSON if self._ended and len(self._parts) == 1 else CUT_OFF)

    def _begins_anew(self, line: bytes, indent: int) -> bool:
        """Return whether a line begins a document though the one before has not ended: that one is damaged."""
        if indent > self._indent or not line.lstrip().startswith(b"{"):
            return False
        if self._deeper:
            return True
        try:
            return bool(self._parse(line.strip().rstrip(b",")))
        except (ValueError, RecursionError):
            return False

    def _scanned(self, number: int, line: bytes, indent: int, *, ended: bool) -> list[tuple[int, dict[str, Any]]]:
        """Return the documents that end in a line, which is gone through bracket by bracket."""
        found: list[tuple[int, dict[str, Any]]] = []
        begin = behind = 0  # where the document begins in this line, and where the one before has ended
        if not self._parts:
            self._begun = [number]
        try:
            for token in TOKEN.finditer(line):
                mark = token[0]
                if mark == b'"':
                    raise ValueError(NO_JSON)
                if not self._depth and mark == b"{":
                    self._only_around(line[behind : token.start()])
                    begin, self._depth = token.start(), 1
                elif self._depth:
                    self._depth += (mark in (b"{", b"[")) - (mark in (b"}", b"]"))
                    if not self._depth:
                        behind = token.end()
                        found.append((self._begun[0], self._parse(b"\n".join([*self._parts, line[begin:behind]]))))
                        self._parts, self._begun, self._deeper = [], [number], False
            if not self._depth:
                self._only_around(line[behind:])
        except (ValueError, RecursionError):
            self._give_up(NO_JSON if ended else CUT_OFF)
            return []
        if self._depth:
            self._indent = self._indent if self._parts else indent
            self._parts.append(line[begin:])
        return found

    def _only_around(self, text: bytes) -> None:
        """Raise ValueError where there is more around documents than brackets and commas."""
        if not AROUND.fullmatch(text):
            raise ValueError(NO_JSON)

    def _give_up(self, reason: str) -> None:
        self._account.reject(reason, self._begun)
        self._parts, self._depth, self._deeper = [], 0, False


# Lines and documents of a file, and what their histograms are read into; the source that such a file is.


METRICS = "several-metrics"
BELOW_ZERO = "values below zero: not a latency"
ENDINGS = (*TABLE_ENDINGS, ".jsonl", ".ndjson", ".json", ".txt", ".log", ".prom")
KEYS = re.compile(r"[\[{]")
SHOWN = 4
Filling = Callable[[Path, Context, Polls], None]


class WrongError(ValueError):
    """A histogram that cannot be taken, with the reason in words."""


def lines_of(path: Path, context: Context) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the lines of a file with their numbers, and whether their end was seen; InputError for one of more than 64 MiB."""
    number, size = 0, 0
    pieces: list[bytes] = []  # of a line that has not ended: to add each to those before took a time that grows as its square
    for block in whole_blocks(path, context.account, context.upto):
        first, *lines = bytes(block).split(b"\n")
        pieces.append(first)
        size += len(first)
        if size > LONGEST_DOCUMENT:
            raise InputError("a line of more than 64 MiB", path, number + 1)
        if not lines:
            continue
        last = lines.pop()
        for line in (b"".join(pieces), *lines):
            number += 1
            yield number, line, True
        pieces, size = [last], len(last)
    if rest := b"".join(pieces):
        yield number + 1, rest, False


def objects_of(path: Path, context: Context) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON objects of a file with their lines, one a line or spread over lines; all else is rejected."""
    yield from documents_of(lines_of(path, context), context.account)


def whole(value: Any) -> int:
    """Return a count or stamp as a whole number; WrongError where it is none."""
    try:
        known = isinstance(value, (str, int, Decimal)) and not isinstance(value, bool)
        number = (decimal_of(value) if isinstance(value, str) else Decimal(value)) if known else None
        if number is None or not number.is_finite() or number != int(number) or not -(2**62) < number < 2**62:
            raise WrongError(f"{_short(value)} is no whole number")
        return int(number)
    except ArithmeticError:
        raise WrongError(f"{_short(value)} is no number") from None


def word(value: Any) -> str:
    """Return a label, empty text for none; WrongError where it is no text: it would name another series."""
    if not isinstance(value, str | None):
        raise WrongError(f"{_short(value)} is no label")
    return value or ""


def count(value: Any) -> int:
    """Return a count; WrongError where it is no whole number from 0 on."""
    number = whole(value)
    if number < 0:
        raise WrongError("a count below zero")
    return number


def end_ns(value: Any, unit_ns: int) -> int:
    """Return an edge in whole ns, rounded down; WrongError where it is no number."""
    try:
        number = decimal_of(str(value)) * unit_ns
        return math.floor(max(min(number, Decimal(2**62)), Decimal(-(2**62))))
    except (ArithmeticError, ValueError):
        raise WrongError(f"{_short(value)} is no edge") from None


def between_edges(ends_ns: Sequence[int], counts: Sequence[int], *, is_open: bool) -> tuple[Layout, Int]:
    """Return the layout of buckets that end at these ns, and the bin of each; with `is_open` one more holds all above.

    WrongError where one below zero holds samples, or there is no layout of such edges.
    """
    if any(number for end, number in zip(ends_ns, counts, strict=False) if end < 0):
        raise WrongError(BELOW_ZERO)
    try:
        return Edges.of_ends(ends_ns, is_open=is_open)
    except ValueError as error:
        raise WrongError(str(error)) from None


def _short(value: Any) -> str:
    return repr(str(value) if isinstance(value, Decimal) else value)[:40]


# One series in two forms, as classic and native histograms of Prometheus: files of their own, in bins of two kinds.


def _not_shadowed(part: Intervals[Series], context: Context) -> Intervals[Series]:
    """Return the rows without those that another file holds in the other form."""
    shadowing = parse_spans(context.options.get(SHADOWING, ""))
    codes: dict[str, list[int]] = {}  # segments of a series have the same name
    for code, series in enumerate(part.table) if shadowing else ():
        codes.setdefault(name_of(series, context), []).append(code)
    left = np.ones(len(part), np.bool_)
    for span in shadowing:
        start_ns, end_ns = (edge + context.offset_ns for edge in (span.start_ns, span.end_ns))
        within = (part.end_ns > start_ns) & (part.start_ns < end_ns)
        left &= ~(within & np.isin(part.series, codes.get(span.series, [])))
    if left.all():
        return part
    kept = part.take(np.flatnonzero(left))
    out = int(part.samples.sum()) - int(kept.samples.sum())
    context.account.samples -= out
    context.account.shadowed += out
    return kept


def polled(
    format_name: str,
    fill: Filling,
    none: str,
    *,
    grows: str = AGAIN,
    accepts: Callable[[Path, bytes], bool] | None = None,
    names_series: bool = False,
) -> Reader:
    """Return the reader of a format whose histograms `fill` takes of a file; `none` is why one without any is refused.

    With `names_series` two files may hold the same series: each keeps which, and from when to when.
    """

    def filled(path: Path, context: Context) -> Polls:
        held = Polls(context)
        fill(path, context, held)
        return held

    def locate(path: Path, around: Around) -> Source:
        context = around.context(path, process=name_without(path, ENDINGS))
        quiet = replace(context, account=Account(path=str(path)), offset_ns=0)
        filled_parts = [part for part in filled(path, quiet).intervals() if len(part)]
        if not filled_parts:
            reasons = [*quiet.account.rejected, *quiet.account.skipped]
            raise InputError(f"no histogram in it can be taken: {reasons[0]}" if reasons else none, path)
        start = min(int(part.start_ns.min()) for part in filled_parts)
        widths = np.concatenate([part.end_ns - part.start_ns for part in filled_parts])
        zero = around.zero(path, TimeZero(start, OWN_STAMPS), lambda: 0, absolute=True)
        if names_series:
            context = replace(context, options={**context.options, SPANS: spans_of(filled_parts, context)})
        return Source(path, format_name, replace(context, zero=zero), int(np.median(widths)), str(filled_parts[0].layout))

    def rows(path: Path, context: Context) -> Iterator[Intervals[Series]]:
        held = filled(path, context)
        parts = [_not_shadowed(part, context) for part in held.intervals()]
        held.keep_unread()
        names = sorted({KEYS.split(series.tag)[0] for part in parts for series in part.table} - {""})
        if len(names) > 1:
            shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
            sentence = f"it holds {len(names)} metrics ({shown}), which may count the same operations"
            context.account.caveats.append(Caveat(METRICS, str(path), sentence, f"choose one, as in --where 'tag={names[0]}*'"))
        yield from parts

    return Reader(locate, rows=rows, accepts=accepts, grows=grows, row_labels=(*ROW_LABELS, "host", "volume", "process"))
