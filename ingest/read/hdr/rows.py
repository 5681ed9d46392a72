"""Lines of an HdrHistogram log -> rows of `Intervals`: batches unpacked at once, series, segments, and the account."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.core.csr import MOST_SAMPLES, gather, sum_rows
from ingest.core.errors import CapacityError, counted
from ingest.core.intervals import Intervals, concatenate
from ingest.core.layout import Layout
from ingest.core.series import Series
from ingest.core.timing import MOST_NS
from ingest.read.context import RATE, Context
from ingest.read.hdr.again import REPEATED, Again
from ingest.read.hdr.clock import OUT_OF_RANGE, Clock, StampError, seconds_ns, split_line
from ingest.read.hdr.codec import Geometry, Payload, PayloadError, payload_of
from ingest.read.hdr.counts import counts_of, taken
from ingest.read.hdr.gaps import Gaps
from ingest.read.hdr.layouts import PAST_RANGE, TOO_MANY, Bins, Layouts, moved
from ingest.read.hdr.origin import LATTE, Origin, named
from ingest.read.hdr.stamps import ADRIFT, SAID, interval_of, rounding_of, usual_intervals
from ingest.read.hdr.tails import Tail
from ingest.read.hdr.tallies import Tallies, key_of
from ingest.read.schedule_seen import Seen
from ingest.read.text import LONGEST_LINE

Int = NDArray[np.int64]

MOST_SEGMENTS = 64
MOST_SERIES = 10_000
CUT_OFF = "the last line is cut off: the file was still being written, or was truncated"
LONG_LINE = "a line of more than 1 MiB"
BACKWARDS = "lines of one tag overlap or run back in time too often: sort the log by time"
TOO_MANY_TAGS = f"more than {MOST_SERIES} tags"
TOTALS = "the tags raw and co-fixed are left out: those of reads and of writes hold the same operations"
NO_HISTOGRAM = "no interval: no histogram at its end"
COMMENT, LEGEND = b"#", b'"'
LINE_BYTES = 64  # that a line is held in until it is unpacked, beside its payload


class _Line(NamedTuple):
    """An interval whose counts are still packed: its line number, (start, end] in ns, and tag."""

    number: int
    start_ns: int
    end_ns: int
    tag: bytes


class _Checked(NamedTuple):
    """Lines of one geometry (places among those that were unpacked), and their bins in the layout that it has."""

    rows: list[int]
    indptr: Int
    bins: Int
    counts: Int
    target: Bins


class _Places(NamedTuple):
    """Which rows have a place, and series, start and end of each of these."""

    keep: Sequence[int]
    codes: Int
    starts: Int
    ends: Int


class Rows:
    """Takes the lines of one log and gives its intervals. `pending` is the bytes of payloads that wait to be unpacked."""

    def __init__(self, context: Context, origin: Origin, unit_ns: int) -> None:
        self.pending = 0
        self.entries = 0
        self.unpacked = 0
        self._context = context
        self._origin = origin
        self._clock = Clock(adrift=origin.adrift)
        self._layouts = Layouts(unit_ns)
        self._number = 0
        self._shift: int | None = None
        self._lines: list[_Line] = []
        self._payloads: list[Payload] = []
        self._table: dict[Series, int] = {}
        self._ends: dict[tuple[bytes, Layout], list[tuple[int, int]]] = {}
        self._firsts: dict[tuple[bytes, Layout], int] = {}
        self._parts: dict[Layout, list[Intervals[Series]]] = {}
        self._trimmed = 0
        self._seen = Seen(context.options.get(RATE, ""))
        self._tallies = Tallies()
        self._again = Again()
        self._righted = False
        self._gaps = Gaps(context)

    def _lost(self, line: _Line) -> None:
        self._gaps.lost(line.start_ns, line.end_ns)

    def take(self, lines: Sequence[bytes], *, whole: bool, room: int) -> int:
        """Take the next lines of the log, until `room` bytes of payloads wait; return how many were taken.

        `whole` says that the end of the last one was seen.
        """
        taken = self._take_together(lines, room)
        while taken < len(lines) and self.pending < room:
            taken += 1
            self._take_line(lines[taken - 1], whole=whole or taken < len(lines))
        return taken

    def _take_together(self, lines: Sequence[bytes], room: int) -> int:
        """Take lines as far as all of them are good, which takes half as long as one by one; return how many were taken."""
        fronts = usual_intervals(lines, self._origin.stamps)
        if fronts is None or not self._origin.totals.isdisjoint(fronts.tags):
            return 0
        payloads, pending = [], self.pending
        with suppress(PayloadError):  # which line it is, and why, is said when it is taken by itself
            for text in fronts.texts:
                payload = payload_of(text)
                payloads.append(payload)
                pending += len(payload.words) + LINE_BYTES
                if pending >= room:
                    break
        taken = len(payloads)
        if not taken:
            return 0
        first = fronts.starts[0]
        moved_by = self._shifted(first) + self._clock.base_of(first)
        starts = [start + moved_by for start in fronts.starts[:taken]]
        ends = [start + length for start, length in zip(starts, fronts.lengths, strict=False)]
        if min(starts) <= -MOST_NS or max(ends) >= MOST_NS:
            return 0
        self._gaps.line(starts[0], ends[0])
        self._gaps.last_ns = starts[-1]
        self._righted |= any(fronts.righted[:taken])
        self._lines.extend(map(_Line, range(self._number + 1, self._number + taken + 1), starts, ends, fronts.tags))
        self._payloads.extend(payloads)
        self._number += taken
        self.pending = pending
        return taken

    def _take_line(self, line: bytes, *, whole: bool) -> None:
        self._number += 1
        first = line[:1]
        if first == COMMENT:
            self._clock.comment(line)
            return
        if first == LEGEND or not (first.isalnum() or line.strip(b" \t\r\0")):
            return
        try:
            tag, stamp, length, text, righted = interval_of(line, self._origin.stamps)
            if not text:
                raise StampError(NO_HISTOGRAM)
            if tag in self._origin.totals:
                self._context.account.skip(TOTALS, 1)
                return
            payload = payload_of(text)
        except (StampError, PayloadError) as error:
            long = len(line) >= LONGEST_LINE
            self._context.account.reject(LONG_LINE if long else str(error) if whole else CUT_OFF, [self._number])
            self._gaps.open()
            return
        start = self._shifted(stamp) + self._clock.base_of(stamp) + stamp
        if not -MOST_NS < start <= start + length < MOST_NS:
            self._context.account.reject(OUT_OF_RANGE, [self._number])
            self._gaps.open()
            return
        self._gaps.line(start, start + length)
        self._righted |= righted
        self._lines.append(_Line(self._number, start, start + length, tag))
        self._payloads.append(payload)
        self.pending += len(payload.words) + LINE_BYTES

    def _shifted(self, stamp: int) -> int:
        """Return the ns that are added to all stamps: the host's offset, and how far --t0 lies from the log's own start."""
        if self._shift is None:
            own, base = self._clock.zero(stamp)[0], self._clock.base_of(stamp)
            zero = self._context.zero
            by_t0 = zero.epoch_ns is not None and "--t0" in zero.origin and (own is None or base != 0)
            self._shift = self._context.offset_ns + ((zero.epoch_ns or 0) - (own or 0) if by_t0 else 0)
        return self._shift

    def unpack(self) -> None:
        """Turn all payloads that wait into rows."""
        lines, payloads = self._lines, self._payloads
        self._lines, self._payloads, self.pending = [], [], 0
        if not lines:
            return
        counts = counts_of(payloads)
        for row, reason in counts.faults.items():
            self._context.account.reject(reason, [lines[row].number])
            self._lost(lines[row])
        by_geometry: dict[Geometry, list[int]] = {}
        met: dict[int, list[int]] = {}  # by identity, as nearly all lines share one object, and hashing it takes long
        for row, payload in enumerate(payloads):
            if row not in counts.faults:
                same = met.get(id(payload.geometry))
                if same is None:
                    same = met[id(payload.geometry)] = by_geometry.setdefault(payload.geometry, [])
                same.append(row)
        checked: list[_Checked] = []
        for geometry, rows in by_geometry.items():
            target = self._layouts.of(geometry)
            if isinstance(target, str):
                self._context.account.reject(target, [lines[row].number for row in rows])
                for row in rows:
                    self._lost(lines[row])
            else:
                checked.append(self._checked(lines, rows, taken(counts, rows), geometry, target))
        following = self._following(lines, checked[0]) if len(checked) == 1 else None
        if following is not None:
            self._add(lines, checked[0], following)
        else:
            self._add_one_by_one(lines, checked)

    def _add_one_by_one(self, lines: list[_Line], checked: list[_Checked]) -> None:
        """Keep the rows of all geometries, each line placed by itself."""
        # In the order of lines, whatever their layouts: segments are numbered by it, and batches may end anywhere.
        groups = {row: group for group, part in enumerate(checked) for row in part.rows}
        places: dict[int, tuple[int, int] | None] = {}
        known: dict[tuple[int, bytes], list[tuple[int, int]]] = {}
        for row, group in sorted(groups.items()):
            line, layout = lines[row], checked[group].target.layout
            segments = known.get((group, line.tag))
            if segments is None:
                segments = known[group, line.tag] = self._ends.setdefault((line.tag, layout), [])
            places[row] = self._placed(line, layout, segments)
        for part in checked:
            self._add(lines, part, _places([places[row] for row in part.rows], [lines[row].end_ns for row in part.rows]))

    def _following(self, lines: list[_Line], checked: _Checked) -> _Places | None:
        """Return the places of lines of one tag, each of which follows the one before it in the first segment; else None."""
        mine = [lines[row] for row in checked.rows]
        tags = {line.tag for line in mine}
        segments = self._ends.get((tags.pop(), checked.target.layout)) if len(tags) == 1 else None
        if not segments:
            return None
        starts, ends = (
            np.array(column, np.int64) for column in ([line.start_ns for line in mine], [line.end_ns for line in mine])
        )
        end, code = segments[0]
        if starts[0] < end or (starts[1:] < ends[:-1]).any():
            return None
        segments[0] = mine[-1].end_ns, code
        return _Places(range(len(mine)), np.full(len(mine), code), starts, ends)

    def _checked(
        self, lines: list[_Line], rows: list[int], csr: tuple[Int, Int, Int], geometry: Geometry, target: Bins
    ) -> _Checked:
        """Return the lines of one geometry with their bins in its layout; those past the end of it are rejected."""
        indptr, bins, counts = csr
        bins = moved(bins, geometry, target)
        past: set[int] = set()
        last = bins[indptr[1:][indptr[1:] > indptr[:-1]] - 1]
        if len(last) and int(last.max()) >= target.layout.bins:
            past = set((np.searchsorted(indptr, np.flatnonzero(bins >= target.layout.bins), side="right") - 1).tolist())
            self._context.account.reject(PAST_RANGE, [lines[rows[place]].number for place in sorted(past)])
            for place in sorted(past):
                self._lost(lines[rows[place]])
        if target.moved_by is not None:
            self._context.account.note("bins of a double histogram are not whole ns: converted to ns bins as fine")
        if not past:
            return _Checked(rows, indptr, bins, counts, target)
        keep = [place for place in range(len(rows)) if place not in past]
        indptr, flat = gather(indptr, np.array(keep, np.int64))
        return _Checked([rows[place] for place in keep], indptr, bins[flat], counts[flat], target)

    def _add(self, lines: list[_Line], checked: _Checked, places: _Places) -> None:
        """Keep the rows of one geometry that have a place."""
        indptr, bins, counts, target = checked.indptr, checked.bins, checked.counts, checked.target
        keep = places.keep
        if len(keep) < len(checked.rows):
            indptr, flat = gather(indptr, np.array(keep, np.int64))
            bins, counts = bins[flat], counts[flat]
        if target.moved_by is not None:
            indptr, bins, counts = sum_rows(indptr, bins, counts, np.arange(len(keep)), len(keep))
        rows = Intervals(target.layout, tuple(self._table), *places[1:], indptr, bins, counts)
        self._parts.setdefault(target.layout, []).append(rows)
        samples, table = rows.samples, rows.table
        self._seen.add(rows, samples)
        self.entries += len(bins)
        self.unpacked += len(keep)
        self._context.account.accept(len(keep))
        self._check_addable(lines, checked.rows, keep, samples)
        for code in dict.fromkeys(places.codes.tolist()):
            key, mine = key_of(table[code]), places.codes == code
            self._tallies.add(key, samples[mine].tolist())
            self._again.add(key, places.starts[mine], samples[mine])
        self._context.account.samples += int(samples.sum())

    def _check_addable(self, lines: list[_Line], rows: list[int], keep: Sequence[int], samples: Int) -> None:
        """Raise CapacityError, naming the line, where the log would hold more samples than can be added up."""
        before = self._context.account.samples
        if before + float(samples.sum(dtype=np.float64)) < 0.999 * MOST_SAMPLES:
            return
        passed = list(accumulate(samples.tolist(), initial=before))[1:]
        row = next((place for place, count in enumerate(passed) if count > MOST_SAMPLES), None)
        if row is not None:
            at = f"{self._context.account.path}:{lines[rows[keep[row]]].number}"
            raise CapacityError(f"{at}: from here on the log holds more than 2^62 samples, which cannot be added up")

    def _placed(self, line: _Line, layout: Layout, segments: list[tuple[int, int]]) -> tuple[int, int] | None:
        """Return the code of the series that a line is of and its start there, None where it has no place.

        `segments` are the end and code of those that there are of its tag and layout.
        """
        place, start = _segment(segments, line)
        if place == len(segments):
            if place >= MOST_SEGMENTS or len(self._table) >= MOST_SERIES:
                self._context.account.reject(BACKWARDS if place >= MOST_SEGMENTS else TOO_MANY_TAGS, [line.number])
                self._lost(line)
                return None
            segments.append((0, self._new_series(line.tag)))
            self._firsts.setdefault((line.tag, layout), line.start_ns)
        code = segments[place][1]
        segments[place] = (line.end_ns, code)
        self._trimmed += start != line.start_ns
        return code, start

    def _new_series(self, tag: bytes) -> int:
        """Return the code of a new series of a tag: the next segment among those of the same labels."""
        labels = named(tag.decode("utf-8", "replace"), self._origin)
        base = self._context.series.replaced(op=labels.op or self._context.series.op, kind=labels.kind, tag=labels.tag)
        segment = 0
        while (series := base.replaced(segment=segment)) in self._table:
            segment += 1
        return self._table.setdefault(series, len(self._table))

    def intervals(self) -> Iterator[Intervals[Series]]:
        """Yield the rows unpacked since the last call, one layout each."""
        self.unpack()
        parts, self._parts, self.entries, self.unpacked = self._parts, {}, 0, 0
        for rows in parts.values():
            yield concatenate(rows)

    def skip_to(self, lines: Sequence[bytes], number: int) -> int:
        """Take the start from the first lines of a log, of which the last is an interval; go on after line `number`.

        Returns what is added to stamps from there on, in ns, as long as no comment says otherwise.
        """
        for line in lines[:-1]:
            self._clock.comment(line)
        stamp = seconds_ns(split_line(lines[-1])[1])
        self._number = number
        return self._clock.base_of(stamp) + self._shifted(stamp)

    def tail(self) -> Tail:
        """Return what the lines so far leave for others of the same log."""
        limits = {BACKWARDS, TOO_MANY_TAGS, TOO_MANY, LONG_LINE}
        limited = self._clock.told_again or limits & self._context.account.rejected.keys()
        return Tail(
            plain=not limited and all(len(segments) == 1 for segments in self._ends.values()),
            firsts=self._firsts,
            ends={key: segments[-1][0] for key, segments in self._ends.items()},
            bins=self._layouts.total,
            trimmed=self._trimmed,
            seen=self._seen,
            tallies=self._tallies.told,
            edges=(self._gaps.first_end_ns, self._gaps.last_ns),
        )

    def absorb(self, tail: Tail) -> None:
        """Add the counts of a part of the log that was read elsewhere to those of the log."""
        self._trimmed += tail.trimmed
        self._seen.absorb(tail.seen)
        self._tallies.absorb(tail.tallies)

    def tell_doubts(self) -> None:
        """Say in the account what cannot be taken for granted in the rows so far: equal tags, stamps put right, the unit."""
        account, origin = self._context.account, self._origin
        account.notes = [note for note in account.notes if not note.endswith(REPEATED)]  # of a log that grows: fewer then
        for sentence in (*self._tallies.doubts(nested=origin is LATTE), *self._again.doubts(self._tallies.overlapping)):
            account.note(sentence)
        if self._righted:
            account.note(SAID[origin.stamps])
        if origin.adrift:
            account.note(ADRIFT)
        if origin.totals:
            account.note(TOTALS)
        if origin.doubt and not self._context.recorded_unit_ns:
            account.note(origin.doubt)

    def settle(self) -> None:
        """Note in the account the changes to the rows as a whole, and the schedule that they show."""
        self._context.account.schedule.append(self._seen.digest(self._context.series))
        if self._trimmed:
            lines = counted(self._trimmed, "line begins", "lines begin")
            why = "because stamps are rounded: moved to that end"
            self._context.account.note(f"{lines} before the previous line ends, {why}")
        self.tell_doubts()


def _places(places: Sequence[tuple[int, int] | None], ends: Sequence[int]) -> _Places:
    """Return the places (series and start) of those rows that have one."""
    keep = [number for number, place in enumerate(places) if place is not None]
    placed = np.array([places[number] for number in keep], np.int64).reshape(-1, 2)
    columns = np.ascontiguousarray(placed[:, 0]), np.ascontiguousarray(placed[:, 1])
    return _Places(keep, *columns, np.array([ends[number] for number in keep], np.int64))


def _segment(ends: list[tuple[int, int]], line: _Line) -> tuple[int, int]:
    """Return the first segment that a line can follow in, and the start it has there."""
    if ends and line.start_ns >= ends[0][0]:
        return 0, line.start_ns
    rounding = rounding_of(line.end_ns - line.start_ns)
    for place, (end, _) in enumerate(ends):
        if line.start_ns >= end:
            return place, line.start_ns
        if end < line.end_ns and end - line.start_ns <= rounding:
            return place, end
    return len(ends), line.start_ns
