"""Histograms of one file, by series: counts since a start become counts of intervals, repeated ones are left out.

A poller stamps what it was told; counts are those of one interval, or all since a start (`total`). Of totals neighbours are
subtracted, so that the first is only a baseline, unless the tool says that it began shortly before. Where a count falls, or the
start is another, what was counted had been set to zero: the new counts are taken as they are, and what was counted between the
last poll and that moment is kept as missing. Documents may come in any order and more than once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter

import numpy as np

from ingest.core.caveats import Caveat
from ingest.core.csr import MOST_SAMPLES
from ingest.core.errors import CapacityError, counted
from ingest.core.intervals import Int, Intervals
from ingest.core.layout import Layout
from ingest.core.missing import Missing, labels_of
from ingest.core.series import Series
from ingest.core.timing import MOST_NS
from ingest.read.context import Context
from ingest.read.formats import ROW_LABELS
from ingest.read.lacks import REJECTED, SEE_INSPECT

RESET = "counter-reset"
TWICE = "the same histogram again: a series and time that were read before"
OTHER = "another histogram of a series and time that were read before"
BASELINE = "counts since a start that is long before or not known: what the next histogram is held against"
NO_START = "one histogram alone, and nothing says when it began: two are needed, or how far apart they are"
BACKWARDS = "it ends before it begins"
OVERLAP = "histograms of one series overlap in time too often"
OTHER_EDGES = "bins changed to others that cannot be held against those before: counting begins anew there"
SET_BACK = "the clock was set back: its time is before that of the one before"
STAMPS = "a time that cannot be counted with"
NOT_TAKEN = "histograms were rejected: their samples are missing"
LATE_TIMES = 3
MOST_LOST = 64
MOST_SEGMENTS = 64


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


@dataclass(frozen=True, slots=True)
class Lost:
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

    def __init__(self, context: Context, every_ns: int = 0) -> None:
        self._context = context
        self._every_ns = every_ns
        self._held: dict[Series, list[Poll]] = {}
        self._resets = 0
        self._lost_ones: list[Lost] = []

    def reject(self, reason: str, line: int, lost: Lost) -> None:
        """Count a histogram that cannot be taken; its samples are missing, unless a later one of the series holds them, too."""
        self._context.account.reject(reason, [line])
        self._lost_ones.append(lost)

    def add(self, poll: Poll) -> None:
        """Take a histogram."""
        stamps = (poll.end_ns, poll.end_ns if poll.start_ns is None else poll.start_ns)
        if not all(-MOST_NS < stamp < MOST_NS for stamp in stamps):
            self._context.account.reject(STAMPS, [poll.line])
        elif poll.start_ns is not None and poll.start_ns > poll.end_ns:
            self._context.account.reject(BACKWARDS, [poll.line])
        else:
            self._held.setdefault(poll.series, []).append(poll)

    def leave_out_intervals(self, lines: AbstractSet[int]) -> None:
        """Leave out what was counted in intervals and stands on some lines; counts since a start stay."""
        if not lines:
            return
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
            every = self._every_ns or typical_gap([poll.end_ns for poll in polls])
            totals, alone = [poll for poll in polls if poll.total], [poll for poll in polls if not poll.total]
            rows = [*self._differences(totals, every), *self._begun(alone, every)]
            for poll in self._apart(rows):
                by_layout.setdefault(poll.layout, []).append(poll)
        if self._resets:
            times = counted(self._resets, "time", "times")
            self._context.account.note(f"counters were set to zero {times}: what was counted just before is lost")
        for lost in self._lost_ones[:MOST_LOST]:
            self._keep(lost)
        if len(self._lost_ones) > MOST_LOST:
            self._lack(Lost(self._context.series))
        for layout, polls in by_layout.items():
            yield self._rows(layout, polls)

    def _keep(self, lost: Lost) -> None:
        """Keep the samples of a histogram that cannot be taken as missing, unless a later one counts from the same start."""
        if not lost.total:
            self._lack(lost)
            return
        ends = [poll.end_ns for poll in self._held.get(lost.series, ()) if _from_one_start(poll.start_ns, lost.start_ns)]
        if lost.end_ns is None:
            return
        if not any(end > lost.end_ns for end in ends):
            before = max((end for end in ends if end < lost.end_ns), default=lost.start_ns)
            if before is not None:
                self._lack(replace(lost, start_ns=before, samples=None))

    def _lack(self, lost: Lost) -> None:
        account, offset = self._context.account, self._context.offset_ns
        start, end = lost.start_ns, lost.end_ns
        if start is None and end is not None:  # an interval begins where the one before ended
            start = max((poll.end_ns for polls in self._held.values() for poll in polls if poll.end_ns < end), default=None)
        if start is None or end is None or not -MOST_NS < start <= end < MOST_NS:
            start = end = None
        else:
            start, end = start + offset, end + offset
        labels = labels_of(lost.series, unknown=ROW_LABELS if lost.series == self._context.series else ())
        account.lack(Missing(labels, start, end, lost.samples, 0, None, Caveat(REJECTED, account.path, NOT_TAKEN, SEE_INSPECT)))

    def _once(self, polls: list[Poll]) -> list[Poll]:
        """Return the polls of a series in order of time, each once."""
        ordered = sorted(polls, key=lambda poll: (poll.end_ns, -1 if poll.start_ns is None else poll.start_ns, poll.line))
        kept: list[Poll] = []
        for poll in ordered:
            if kept and (kept[-1].end_ns, kept[-1].start_ns) == (poll.end_ns, poll.start_ns):
                if _same(kept[-1], poll):
                    self._context.account.skip(TWICE, 1)
                else:
                    self._context.account.reject(OTHER, [poll.line])
            else:
                kept.append(poll)
        return kept

    def _begun(self, polls: Iterable[Poll], every_ns: int) -> Iterator[Poll]:
        """Yield counts of intervals with their beginnings: where it is not said, the end of the one before."""
        before: int | None = None
        for poll in polls:
            start = poll.start_ns
            if start is None and before is None:
                start = poll.end_ns - every_ns if every_ns else None
            elif start is None and before is not None:
                start = max(before, poll.end_ns - self._every_ns) if self._every_ns else before
            before = poll.end_ns
            if start is None:
                self._context.account.reject(NO_START, [poll.line])
            else:
                yield replace(poll, start_ns=start)

    def _differences(self, polls: Iterable[Poll], every_ns: int) -> Iterator[Poll]:
        """Yield what was counted between neighbours."""
        before: Poll | None = None
        for poll in self._of_one_clock(list(polls)):
            row = self._first(poll, every_ns) if before is None else self._since(before, poll)
            before = poll
            if row is None:
                self._context.account.skip(BASELINE, 1)
            else:
                yield row

    def _of_one_clock(self, polls: list[Poll]) -> list[Poll]:
        """Return counts since a start, in order of time, without those that a clock that was set back has put before others.

        Such counts fall in the order of their times and never in that of their lines. Each fall would be taken for a reset.
        """
        by_line = sorted(polls, key=attrgetter("line"))
        if (
            [poll.line for poll in by_line] == [poll.line for poll in polls]
            or len({poll.start_ns for poll in polls}) > 1
            or not _falls(polls)
            or _falls(by_line)
        ):
            return polls
        kept = by_line[:1]
        for poll in by_line[1:]:
            if poll.end_ns > kept[-1].end_ns:
                kept.append(poll)
            else:
                self._context.account.reject(SET_BACK, [poll.line])
        return kept

    def _first(self, poll: Poll, every_ns: int) -> Poll | None:
        """Return all of the first counts where they began shortly before, or where there are no others."""
        if poll.start_ns is None or (every_ns and poll.end_ns - poll.start_ns > LATE_TIMES * every_ns):
            return None
        return poll

    def _since(self, before: Poll, poll: Poll) -> Poll | None:
        """Return what was counted since the poll before; all of it where counting began anew."""
        begun = None not in (before.start_ns, poll.start_ns) and before.start_ns != poll.start_ns
        if not begun and before.layout != poll.layout and not before.layout.nests_in(poll.layout):
            self._context.account.note(OTHER_EDGES)
            self._lost(before, poll)
            return None
        if not begun:
            bins, counts = poll.bins, poll.counts
            older = sparse(before.layout.moved_to(poll.layout)[before.bins], before.counts)
            where = np.searchsorted(bins, older[0])
            there = where < len(bins)
            same = np.zeros(len(where), np.bool_)
            same[there] = bins[where[there]] == older[0][there]
            if same.all() and (counts[where] >= older[1]).all():
                left = counts.copy()
                left[where] -= older[1]
                return replace(poll, start_ns=before.end_ns, bins=bins[left > 0], counts=left[left > 0])
        self._lost(before, poll)
        start = before.end_ns if poll.start_ns is None or not begun else max(before.end_ns, poll.start_ns)
        return replace(poll, start_ns=min(start, poll.end_ns))

    def _lost(self, before: Poll, poll: Poll) -> None:
        """Keep that samples were lost where counting began anew."""
        self._resets += 1
        sentence = "the tool began to count anew: what it had counted since the poll before is lost"
        caveat = Caveat(RESET, self._context.account.path, sentence, "poll more often")
        offset = self._context.offset_ns
        labels = labels_of(poll.series)
        self._context.account.lack(Missing(labels, before.end_ns + offset, poll.end_ns + offset, None, 0, None, caveat))

    def _apart(self, polls: list[Poll]) -> Iterator[Poll]:
        """Yield the rows of a series in segments that do not overlap."""
        ends: list[int] = []
        for poll in sorted(polls, key=attrgetter("end_ns", "line")):
            start = poll.end_ns if poll.start_ns is None else poll.start_ns
            place = next((number for number, end in enumerate(ends) if start >= end), len(ends))
            if place == MOST_SEGMENTS:
                self._context.account.reject(OVERLAP, [poll.line])
                continue
            ends[place : place + 1] = [poll.end_ns]
            yield poll if not place else replace(poll, series=poll.series.replaced(segment=place))

    def _rows(self, layout: Layout, polls: list[Poll]) -> Intervals[Series]:
        account, offset = self._context.account, self._context.offset_ns
        table: dict[Series, int] = {}
        codes = [table.setdefault(poll.series, len(table)) for poll in polls]
        samples = sum(float(poll.counts.sum(dtype=np.float64)) for poll in polls)
        if account.samples + samples > 0.999 * MOST_SAMPLES:
            raise CapacityError(f"{account.path} holds more than 2^62 samples, which cannot be added up")
        account.accept(len(polls))
        account.samples += sum(poll.samples for poll in polls)
        return Intervals(
            layout=layout,
            table=tuple(table),
            series=np.array(codes, np.int64),
            start_ns=np.array([poll.start_ns for poll in polls], np.int64) + offset,
            end_ns=np.array([poll.end_ns for poll in polls], np.int64) + offset,
            indptr=np.cumsum([0, *(len(poll.bins) for poll in polls)]).astype(np.int64),
            bins=np.concatenate([poll.bins for poll in polls]),
            counts=np.concatenate([poll.counts for poll in polls]),
        )


def _from_one_start(start: int | None, other: int | None) -> bool:
    return start is None or other is None or start == other


def _falls(polls: Sequence[Poll]) -> bool:
    return any(later.samples < earlier.samples for earlier, later in pairwise(polls))


def _same(poll: Poll, other: Poll) -> bool:
    return poll.layout == other.layout and np.array_equal(poll.bins, other.bins) and np.array_equal(poll.counts, other.counts)


def typical_gap(ends: Sequence[int]) -> int:
    """Return the median distance of times that rise, 0 of one alone."""
    gaps = np.diff(np.array(ends, np.int64))
    return int(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 0
