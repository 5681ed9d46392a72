"""HdrHistogram interval logs, versions 1.01 to 1.3, of jHiccup, cassandra-stress, YCSB and others: lines -> `Intervals`.

HdrHistogram interval logs: versions 1.01 to 1.3, of jHiccup, cassandra-stress, YCSB, wrk2 and others.

    #[Logged with jHiccup version 2.0.7-SNAPSHOT]
    #[Histogram log format version 1.2]
    #[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09 08:24:39 PDT 2015]
    "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
    0.127,1.007,2.769,HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsPEBEJISEuATEZMQ4uASkhIR4nrxg9v2lMaxhvMekILGZkKmcC...
    Tag=insert-rt,1.134,0.999,0.442,HISTFAAAAEJ42pNpmSzMwMAgxwABTBDKT4GBgdnNYMcCBvsPEBEWLj45FTExAT4pBSEBKa6UkAgBi1...

A line is an interval: start and length in seconds, its maximum, its histogram. Traps, and what is done:

* the recorded unit is nowhere stated: taken from the tool's first comment, else asked for (--recorded-unit);
* stamps are seconds since BaseTime; without one since StartTime if they lie more than a year before it, else since 1970.
  Comments further down begin another log that was appended: they replace what was said before, unit, op and kind, too;
* an interval that begins a little before StartTime counts (tools that read from 0.0 on lose it);
* the maximum says nothing that the histogram does not, and is not read;
* lines of one tag may overlap (unions, appended logs): overlaps by the rounding of stamps are taken off the later line, a
  line within another one goes to a further segment of its series;
* the last line may be cut off while the tool is still writing.

Source: HdrHistogram's HistogramLogWriter, HistogramLogScanner and HistogramLogReader; checked against the Java library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.core.coverage import Caveat, Missing, labels_of
from ingest.core.errors import CapacityError, InputError, counted, listed
from ingest.core.intervals import MOST_SAMPLES, Intervals, concatenate, gather, sum_rows
from ingest.core.labels import LABELS, Series
from ingest.core.layout import Layout, parse_layout
from ingest.core.units import MOST_NS, figure
from ingest.read.context import FORM, RATE, Context, TimeZero
from ingest.read.format_names import HDR
from ingest.read.formats import PIECES, ROW_LABELS, Reader
from ingest.read.hdr.clock import (
    ADRIFT,
    OUT_OF_RANGE,
    SAID,
    Clock,
    StampError,
    interval_of,
    rounding_of,
)
from ingest.read.hdr.payload import (
    PAST_RANGE,
    Bins,
    Geometry,
    Layouts,
    Payload,
    PayloadError,
    counts_of,
    moved,
    payload_of,
    taken,
    upper_edge,
)
from ingest.read.hdr.tools import ASBENCH, LATTE, Origin, in_further_head, looks_like_hdr, named, origin_of
from ingest.read.missing import REJECTED, SENTENCE
from ingest.read.schedule import Seen
from ingest.read.sources import Around, Source
from ingest.read.text import LONGEST_LINE, blocks, head, name_without, whole_blocks

# Where lines of an HdrHistogram log were rejected: the stretches of time of which something is missing.


MOST_GAPS = 64


class Gaps:
    """Keeps in the account the stretches between the lines before and after those that were rejected, in order of the log.

    After a line that was rejected before its time was known, all that follows may be missing until the next good one.
    `last_ns` is the start of the last good line.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.last_ns: int | None = None

    def open(self) -> None:
        """Note a line that was rejected before it was known when it was."""
        if self._opened is None:
            self.lost(self.last_ns, None)

    def line(self, start_ns: int, end_ns: int) -> None:
        """Note a line that is good so far."""
        missing = self._context.account.missing
        if missing and (opened := self._opened) is not None:
            missing.remove(opened)
            self.lost(opened.from_ns, end_ns)
        self.last_ns = start_ns

    @property
    def _opened(self) -> Missing | None:
        """Return the entry of a stretch that has no end yet."""
        missing = self._context.account.missing
        return next((entry for entry in reversed(missing) if entry.caveat.code == REJECTED and entry.to_ns is None), None)

    def lost(self, from_ns: int | None, to_ns: int | None, series: Series | None = None) -> None:
        """Keep a stretch, as of a line of known time that was rejected, and of a `series` where that is known.

        Of very many one is kept, from the first to the last, that may be of any series of the log.
        """
        account = self._context.account
        own = [entry for entry in account.missing if entry.caveat.code == REJECTED]
        if len(own) >= MOST_GAPS:
            series = None
            for old in own:
                account.missing.remove(old)
            begins, ends = [from_ns, *(gap.from_ns for gap in own)], [to_ns, *(gap.to_ns for gap in own)]
            from_ns = None if None in begins else min(begin for begin in begins if begin is not None)
            to_ns = None if None in ends else max(end for end in ends if end is not None)
        labels = labels_of(self._context.series, unknown=ROW_LABELS) if series is None else labels_of(series)
        account.lack(Missing(labels, from_ns, to_ns, None, 0, None, Caveat(REJECTED, account.path, SENTENCE)))


# Which tags of a log hold equal numbers of samples, interval by interval: perhaps the same operations, written twice.
#
# Held of each series are its intervals, its samples, and a hash of the sequence of its counts, which can be put together from
# those of parts. Only series of one kind are compared: service, response and wait times are never added up.


MANY = 10
PRIME, FACTOR = (1 << 61) - 1, 0x1F3D5B79A2C4E68F
NAMED_MOST = 6
NESTED = "the tags cycles and requests hold the same work, as a cycle is made of requests: choose one with --where tag="

Key = tuple[str, str, str, int]  # op, kind, tag, segment
Tally = tuple[int, int, int]  # intervals, samples, hash


class TagTotals:
    """The counts of each series so far: `told` are intervals, samples and hash."""

    def __init__(self, stored: Iterable[tuple[Key, Tally]] = ()) -> None:
        self.told: dict[Key, Tally] = dict(stored)

    def add(self, key: Key, counts: Sequence[int]) -> None:
        """Take the next intervals of a series: how many samples each holds."""
        rows, samples, value = self.told.get(key, (0, 0, 0))
        for count in counts:
            value = (value * FACTOR + count + 1) % PRIME
        self.told[key] = rows + len(counts), samples + sum(counts), value

    @property
    def overlapping(self) -> set[tuple[str, str, str]]:
        """Return op, kind and tag of those of whose overlapping lines `doubts` tells."""
        return {keys[0][:3] for keys in self._alike() if len({key[:3] for key in keys}) == 1}

    def _alike(self) -> list[list[Key]]:
        """Return the series of one kind whose counts are equal in each interval, where there are several."""
        alike: dict[tuple[str, Tally], list[Key]] = {}
        for key, tally in self.told.items():
            if tally[0] >= MANY and tally[1]:
                alike.setdefault((key[1], tally), []).append(key)
        return [keys for keys in alike.values() if len(keys) > 1]

    def doubts(self, *, nested: bool) -> list[str]:
        """Return sentences about tags that perhaps hold the same operations, or surely where they are `nested`."""
        doubts = [_equal(sorted(keys)) for keys in self._alike()]
        if nested and {"cycles", "requests"} <= {tag.rpartition(".")[2] for _, _, tag, _ in self.told}:
            doubts.append(NESTED)
        return doubts


def _equal(keys: Sequence[Key]) -> str:
    """Return the sentence on series of one kind whose counts are equal in each interval."""
    often = "twice" if len(keys) == 2 else f"{len(keys)} times"
    counted = f"perhaps the same operations, which are then counted {often}"
    by_op = len({op for op, _, _, _ in keys}) == len(keys) and all(op for op, _, _, _ in keys)
    names = list(dict.fromkeys(op if by_op else tag or op for op, _, tag, _ in keys))
    if len(names) == 1:
        whose = f"tag {names[0]!r}" if names[0] else "no tag"
        return f"lines of {whose} overlap and hold equal numbers of samples in every interval: {counted}"
    shown = [repr(name) if name else "none" for name in names]
    texts = listed(shown, NAMED_MOST) if len(shown) > NAMED_MOST else f"{', '.join(shown[:-1])} and {shown[-1]}"
    label = "op" if by_op else "tag"
    return f"the {label}s {texts} hold equal numbers of samples in every interval: {counted}; choose one with --where {label}="


# Which lines of a log repeat an earlier one of their tag: the same time and number of samples, perhaps the same operations.
#
# A log that was put together from parts that overlap, or appended to itself, holds lines twice; so does one that two programs
# of equal load write to. Numbers of samples cannot tell the two apart, so the lines are counted, and it is said. Held are the
# latest lines, in at most 1 MB a log: the fewer of each tag, the more tags there are.


Int = NDArray[np.int64]
MOST_LINES, FEWEST_LINES = 1 << 16, 64  # of all tags of a log, of one
MIXING = np.uint64(0x9E3779B97F4A7C15)
REPEATED = "the time and number of samples of an earlier one: perhaps the same operations, which are then counted twice"

Op = tuple[str, str, str]  # op, kind, tag


class _Lines:
    """The latest lines of one tag as numbers of 8 bytes, in one array: a watch adds them one by one, for days."""

    def __init__(self) -> None:
        self._held = np.empty(FEWEST_LINES, np.uint64)
        self._size = 0

    def add(self, lines: NDArray[np.uint64], most: int) -> None:
        """Take the next lines; at least `most` of the latest are held where there are as many, at most twice that."""
        if self._size + len(lines) > 2 * most:
            lines = lines[-most:]
            kept = min(self._size, most)
            self._held[:kept] = self._held[self._size - kept : self._size].copy()
            self._size = kept
        if self._size + len(lines) > len(self._held):
            self._held = np.resize(self._held, 2 * (self._size + len(lines)))
        self._held[self._size : self._size + len(lines)] = lines
        self._size += len(lines)

    def repeated(self, lines: NDArray[np.uint64]) -> int:
        """Return how many of these lines are among those that are held."""
        return int(np.isin(lines, self._held[: self._size]).sum())


def _numbers(starts: Int, samples: Int) -> NDArray[np.uint64]:
    """Return lines as one number each: those of another time or number of samples have, but for one in 2^64, another."""
    mixed = starts.astype(np.uint64) * MIXING ^ samples.astype(np.uint64)
    return (mixed ^ mixed >> np.uint64(31)) * MIXING


class Again:
    """Takes the lines of each series as they come. `repeated` is how many of each tag repeat one of an earlier segment."""

    def __init__(self, repeated: Iterable[tuple[Op, int]] = ()) -> None:
        self.repeated: dict[Op, int] = dict(repeated)
        self._latest: dict[Op, _Lines] = {}

    def add(self, key: Key, starts: Int, samples: Int) -> None:
        """Take the next lines of a series: their starts in ns, and how many samples each holds."""
        op, segment = key[:3], key[3]
        latest = self._latest.setdefault(op, _Lines())
        lines = _numbers(starts, samples)
        if segment and (found := latest.repeated(lines[samples > 0])):  # lines without samples repeat nothing
            self.repeated[op] = self.repeated.get(op, 0) + found
        latest.add(lines, max(FEWEST_LINES, MOST_LINES // len(self._latest)))

    def doubts(self, told: set[Op]) -> list[str]:
        """Return a sentence on each tag with repeated lines, but those of which it was told already."""
        doubts = []
        for op, lines in sorted((op, lines) for op, lines in self.repeated.items() if op not in told):
            whose = f"of tag {op[2] or op[0]!r}" if op[2] or op[0] else "without a tag"
            doubts.append(f"{counted(lines, f'line {whose} repeats', f'lines {whose} repeat')} {REPEATED}")
        return doubts


# Lines of an HdrHistogram log -> rows of `Intervals`: batches unpacked at once, series, segments, and the account.


MOST_SEGMENTS = 64
MOST_SERIES = 10_000
CUT_OFF = "the last line is cut off: the file was still being written, or was truncated"
LONG_LINE = "a line of more than 1 MiB"
BACKWARDS = "lines of one tag overlap or run back in time too often: sort the log by time"
TOO_MANY_TAGS = f"more than {MOST_SERIES} tags"
TOTALS = "the tags raw and co-fixed are left out: those of reads and of writes hold the same operations"
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


class Rows:
    """Takes the lines of one log and gives its intervals. `pending` is the bytes of payloads that wait to be unpacked."""

    def __init__(self, context: Context, origin: Origin, unit_ns: int) -> None:
        self.pending = self.entries = self.unpacked = 0
        self._context = context
        self._origin = origin
        self._clock = Clock(adrift=origin.adrift)
        self._layouts = Layouts(unit_ns)
        self._number = self._trimmed = 0
        self._shift: int | None = None
        self._lines: list[_Line] = []
        self._payloads: list[Payload] = []
        self._table: dict[Series, int] = {}
        self._ends: dict[tuple[bytes, Layout], list[tuple[int, int]]] = {}
        self._parts: dict[Layout, list[Intervals[Series]]] = {}
        self._seen = Seen(context.options.get(RATE, ""))
        self._tallies = TagTotals()
        self._again = Again()
        self._righted = False
        self._gaps = Gaps(context)
        self._begun = False  # whether a head has ended, so that a comment begins another
        self._said_by = b""  # the comment of a further head that names the origin
        self._notes: dict[str, None] = {}  # of the origins before

    def _comment(self, line: bytes) -> None:
        """Take a comment. In a further head, as of logs that were put together, it tells unit, op and kind of what follows."""
        self._clock.comment(line)
        if not self._begun or (origin := in_further_head(line, self._origin)) is None:
            return
        self._begun = False
        if origin != self._origin:
            self.unpack()
            self._become(origin, line)

    def _become(self, origin: Origin, said_by: bytes) -> None:
        """Read what follows as of another origin, which a comment names."""
        self._notes.update(dict.fromkeys(self._told()))
        self._righted = False
        unit = self._context.recorded_unit_ns or origin.unit_ns
        self._origin, self._said_by, self._clock.adrift = origin, said_by, origin.adrift
        if unit is not None and unit != self._layouts.unit_ns:
            self._layouts = Layouts(unit, self._layouts.bins)

    def _told(self) -> list[str]:
        """Return what is to be said of lines of the origin that there is now."""
        origin = self._origin
        doubt = origin.doubt if not self._context.recorded_unit_ns else ""
        notes = (
            SAID[origin.stamps] if self._righted else "",
            ADRIFT if origin.adrift else "",
            TOTALS if origin.totals else "",
            doubt,
        )
        return [note for note in notes if note]

    def _key(self, tag: bytes) -> bytes:
        """Return what tells the lines of a tag from those of others, and of the same tag in another head."""
        return tag + b"\0" + self._said_by if self._said_by else tag

    def _reject(self, reason: str, lines: Sequence[_Line]) -> None:
        """Leave out lines of known time."""
        self._context.account.reject(reason, [line.number for line in lines])
        for line in lines:
            self._gaps.lost(line.start_ns, line.end_ns, self._series_of(line.tag))

    def take(self, line: bytes, *, whole: bool) -> None:
        """Take the next line of the log; `whole` says that its end was seen."""
        self._number += 1
        first = line[:1]
        if first == COMMENT:
            self._comment(line)
            return
        if first == LEGEND or not (first.isalnum() or line.strip(b" \t\r\0")):
            return
        self._begun = True
        try:
            tag, stamp, length, text, righted = interval_of(line, self._origin.stamps)
            if not text:
                raise StampError("no interval: no histogram at its end")
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
            self._reject(reason, [lines[row]])
        by_geometry: dict[Geometry, list[int]] = {}
        for row, payload in enumerate(payloads):
            if row not in counts.faults:
                by_geometry.setdefault(payload.geometry, []).append(row)
        checked: list[_Checked] = []
        for geometry, rows in by_geometry.items():
            target = self._layouts.of(geometry)
            if isinstance(target, str):
                self._reject(target, [lines[row] for row in rows])
            else:
                checked.append(self._checked(lines, rows, taken(counts, rows), geometry, target))
        self._place(lines, checked)

    def _place(self, lines: list[_Line], checked: list[_Checked]) -> None:
        """Keep the rows of all geometries that have a place."""
        # In the order of lines, whatever their layouts: segments are numbered by it, and batches may end anywhere.
        groups = {row: group for group, part in enumerate(checked) for row in part.rows}
        places: dict[int, tuple[int, int] | None] = {}
        known: dict[tuple[int, bytes], list[tuple[int, int]]] = {}
        for row, group in sorted(groups.items()):
            line, layout = lines[row], checked[group].target.layout
            segments = known.get((group, line.tag))
            if segments is None:
                segments = known[group, line.tag] = self._ends.setdefault((self._key(line.tag), layout), [])
            places[row] = self._placed(line, layout, segments)
        for part in checked:
            keep = [at for at, row in enumerate(part.rows) if places[row] is not None]
            placed = np.array([places[part.rows[at]] for at in keep], np.int64).reshape(-1, 2)
            codes, starts = map(np.ascontiguousarray, placed.T)
            ends = np.array([lines[part.rows[at]].end_ns for at in keep], np.int64)
            self._add(lines, part, keep, codes, starts, ends)

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
            self._reject(PAST_RANGE, [lines[rows[place]] for place in sorted(past)])
        if target.moved_by is not None:
            self._context.account.note("bins of a double histogram are not whole ns: converted to ns bins as fine")
        if not past:
            return _Checked(rows, indptr, bins, counts, target)
        keep = [place for place in range(len(rows)) if place not in past]
        indptr, flat = gather(indptr, np.array(keep, np.int64))
        return _Checked([rows[place] for place in keep], indptr, bins[flat], counts[flat], target)

    def _add(self, lines: list[_Line], checked: _Checked, keep: Sequence[int], codes: Int, starts: Int, ends: Int) -> None:
        """Keep these rows of one geometry: the series, start and end of each are given."""
        indptr, bins, counts, target = checked.indptr, checked.bins, checked.counts, checked.target
        if len(keep) < len(checked.rows):
            indptr, flat = gather(indptr, np.array(keep, np.int64))
            bins, counts = bins[flat], counts[flat]
        if target.moved_by is not None:
            indptr, bins, counts = sum_rows(indptr, bins, counts, np.arange(len(keep)), len(keep))
        rows = Intervals(target.layout, tuple(self._table), codes, starts, ends, indptr, bins, counts)
        self._parts.setdefault(target.layout, []).append(rows)
        samples, table = rows.samples, rows.table
        self._seen.add(rows, samples)
        self.entries += len(bins)
        self.unpacked += len(keep)
        self._context.account.accept(len(keep))
        self._check_addable(lines, checked.rows, keep, samples)
        for code in dict.fromkeys(codes.tolist()):
            series, mine = table[code], codes == code
            key = series.op, series.kind, series.tag, series.segment
            self._tallies.add(key, samples[mine].tolist())
            self._again.add(key, starts[mine], samples[mine])
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
                self._reject(BACKWARDS if place >= MOST_SEGMENTS else TOO_MANY_TAGS, [line])
                return None
            segments.append((0, self._new_series(line.tag)))
        code = segments[place][1]
        segments[place] = (line.end_ns, code)
        self._trimmed += start != line.start_ns
        return code, start

    def _new_series(self, tag: bytes) -> int:
        """Return the code of a new series of a tag: the next segment among those of the same labels."""
        base, segment = self._series_of(tag), 0
        while (series := base.replaced(segment=segment)) in self._table:
            segment += 1
        return self._table.setdefault(series, len(self._table))

    def _series_of(self, tag: bytes) -> Series:
        """Return the first series of a tag."""
        op, kind, own_tag = named(tag.decode("utf-8", "replace"), self._origin)
        return self._context.series.replaced(op=op or self._context.series.op, kind=kind, tag=own_tag)

    def intervals(self) -> Iterator[Intervals[Series]]:
        """Yield the rows unpacked since the last call, one layout each."""
        self.unpack()
        parts, self._parts, self.entries, self.unpacked = self._parts, {}, 0, 0
        for rows in parts.values():
            yield concatenate(rows)

    def tell_doubts(self) -> None:
        """Say in the account what cannot be taken for granted in the rows so far: equal tags, stamps put right, the unit."""
        account, origin = self._context.account, self._origin
        account.notes = [note for note in account.notes if not note.endswith(REPEATED)]  # of a log that grows: fewer then
        for sentence in (*self._tallies.doubts(nested=origin is LATTE), *self._again.doubts(self._tallies.overlapping)):
            account.note(sentence)
        for sentence in (*self._notes, *self._told()):
            account.note(sentence)

    def settle(self) -> None:
        """Note in the account the changes to the rows as a whole, and the schedule that they show."""
        self._context.account.schedule.append(self._seen.digest(self._context.series))
        if self._trimmed:
            lines = counted(self._trimmed, "line begins", "lines begin")
            why = "because stamps are rounded: moved to that end"
            self._context.account.note(f"{lines} before the previous line ends, {why}")
        self.tell_doubts()


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


BATCH_BYTES = 1 << 18
CHUNK_ENTRIES = 1 << 17
CHUNK_ROWS = 20_000
HEAD_ROWS = 200
NEWLINE = 10
UNIT_UNKNOWN = "the unit that it was recorded in cannot be determined: give --recorded-unit ns, 100ns, us or ms"


class Peeked(NamedTuple):
    """The head of a log: its origin, its start and where that was taken from, row width, and how its stamps count.

    `base_ns` is what the first stamps count from, 0 for epoch stamps; `largest` the largest value, in recorded units.
    """

    origin: Origin
    zero_ns: int | None
    zero_origin: str
    width_ns: int
    base_ns: int
    largest: float
    layout: str


def peek(path: Path, context: Context) -> Peeked:
    """Return the head of a log; InputError if it holds no interval that can be read."""
    text = head(path)
    origin = origin_of(text)
    clock = Clock(adrift=origin.adrift)
    widths: list[int] = []
    payloads: list[Payload] = []
    first: int | None = None
    zero: tuple[int | None, str] = (None, "unknown")
    reason = ""
    for line in text.split(b"\n"):
        if line.startswith(COMMENT):
            clock.comment(line)
            continue
        if line.startswith(LEGEND) or not line.strip() or len(widths) >= HEAD_ROWS:
            continue
        try:
            _, stamp, width, payload, _ = interval_of(line, origin.stamps)
            payloads.append(payload_of(payload))
        except (StampError, PayloadError) as error:
            reason = reason or str(error)
            continue
        if first is None:
            first = stamp
            zero = clock.zero(stamp)
        widths.append(width)
    if first is None:
        raise InputError(f"holds no interval that can be read{': ' + reason if reason else ''}", path)
    unit = context.recorded_unit_ns or origin.unit_ns
    known = Layouts(unit or 1).of(payloads[0].geometry)
    layout = str(known.layout) if isinstance(known, Bins) and unit else ""
    counts = counts_of(payloads)
    filled = ((payloads[row].geometry, counts.indptr[row + 1] - 1) for row in np.flatnonzero(np.diff(counts.indptr)).tolist())
    largest = max((upper_edge(geometry, int(counts.bins[last])) * geometry.ratio for geometry, last in filled), default=0.0)
    return Peeked(origin, *zero, sorted(widths)[len(widths) // 2], clock.base_of(first), largest, layout)


def last_end_ns(path: Path) -> int:
    """Return the latest end of all lines, by the log's own clock."""
    origin = origin_of(head(path))
    clock, latest, stamps = Clock(adrift=origin.adrift), 0, origin.stamps
    for block in blocks(path):
        for line in bytes(block).split(b"\n"):
            if line.startswith(COMMENT):
                clock.comment(line)
                continue
            with suppress(StampError):
                _, stamp, length, _, _ = interval_of(line, stamps)
                latest = max(latest, clock.base_of(stamp) + stamp + length)
    return latest


def read(path: Path, context: Context, chunk_entries: int = CHUNK_ENTRIES) -> Iterator[Intervals[Series]]:
    """Yield the intervals of a log in bounded chunks, one layout each; bins and counts exactly as the tool recorded them.

    Times are epoch ns (relative ns where the start is unknown). A tag's op, kind and tag make its series, with a
    segment for each layout and each overlapping row. Error bound: 1/128 for 2 digits, 1/1024 for 3. Lines that cannot be
    taken are counted in the account with their reason. A chunk holds about `chunk_entries` bins. Raises InputError where
    the unit is unknown or the file cannot be read.
    """
    rows = rows_of(path, context)
    yield from unpacked(rows, whole_blocks(path, context.account, context.upto), chunk_entries)
    rows.settle()


def rows_of(path: Path, context: Context) -> Rows:
    """Return what takes the lines of a log; InputError where the unit is unknown."""
    origin = origin_of(head(path))
    unit = context.recorded_unit_ns or origin.unit_ns
    if unit is None:
        raise InputError(UNIT_UNKNOWN, path)
    return Rows(context, origin, unit)


def unpacked(rows: Rows, text: Iterable[memoryview | bytes], chunk_entries: int = CHUNK_ENTRIES) -> Iterator[Intervals[Series]]:
    """Yield the intervals of blocks of whole lines in chunks."""
    batch = min(BATCH_BYTES, 2 * chunk_entries)
    for block in text:
        ended = block[-1] == NEWLINE
        lines = bytes(block).removesuffix(b"\n").split(b"\n")
        for number, line in enumerate(lines, 1):
            rows.take(line, whole=ended or number < len(lines))
            if rows.pending >= batch:
                rows.unpack()
                if rows.entries >= chunk_entries or rows.unpacked >= CHUNK_ROWS:
                    yield from rows.intervals()
    yield from rows.intervals()


# Rows of an HdrHistogram log that grows: the state that the lines to come need, as plain values and back.


class ResumableRows(Rows):
    """Takes the lines of one log, and can go on after another process has taken some of them."""

    def __init__(self, context: Context, origin: Origin, unit_ns: int, state: Mapping[str, Any] | None = None) -> None:
        super().__init__(context, origin, unit_ns)
        if state is None:
            return
        self._clock = Clock.knowing(*state["clock"])
        self._number = state["lines"]
        self._shift = state["shift"]
        self._table = {Series(*labels): code for code, labels in enumerate(state["series"])}
        for tag, layout, ends in state["ends"]:
            self._ends[tag.encode("latin-1"), parse_layout(layout)] = [(end, code) for end, code in ends]
        for geometry in state["geometries"]:
            self._layouts.of(Geometry(*geometry))
        self._trimmed = state["trimmed"]
        self._tallies = TagTotals((tuple(key), tuple(tally)) for key, tally in state.get("tallies", ()))
        self._again = Again((tuple(op), lines) for op, lines in state.get("repeated", ()))
        self._gaps.last_ns = state.get("last_line_ns")
        said_by = state.get("said_by", "").encode("latin-1")
        if said_by and (further := in_further_head(said_by, origin)):
            self._become(further, said_by)
        self._begun = state.get("begun", True)

    def state(self) -> dict[str, Any]:
        """Return the state that the lines to come need, as values that JSON can hold. All lines taken are in `intervals`."""
        return {
            "clock": self._clock.known,
            "lines": self._number,
            "shift": self._shift,
            "series": [[*(getattr(series, label) for label in LABELS), series.segment] for series in self._table],
            "ends": [[tag.decode("latin-1"), str(layout), ends] for (tag, layout), ends in self._ends.items()],
            "geometries": [[geometry.digits, geometry.unit_magnitude, geometry.ratio] for geometry in self._layouts.found],
            "trimmed": self._trimmed,
            "last_line_ns": self._gaps.last_ns,
            "said_by": self._said_by.decode("latin-1"),
            "begun": self._begun,
            "tallies": [[key, tally] for key, tally in self._tallies.told.items()],
            "repeated": [[op, lines] for op, lines in self._again.repeated.items()],
        }


# HdrHistogram interval logs as sources: labels, start, recorded unit.


ENDINGS = (".hlog", ".hdrhist", ".hdr", ".histo", ".log", ".csv", ".txt")
ASBENCH_NAME = re.compile(r"(?P<op>read|write|udf)_")
LARGE = {"ns": 1.0, "100ns": 1e2, "us": 1e3, "ms": 1e6}


def locate(path: Path, around: Around) -> Source:
    """Return the source of a log; InputError where it holds no interval, or its unit is not known."""
    context = around.context(path, process=name_without(path, ENDINGS))
    peeked = peek(path, context)
    if peeked.origin is ASBENCH and (match := ASBENCH_NAME.match(path.name)):
        context = replace(context, series=context.series.replaced(op=match["op"]))
    if peeked.origin.in_two_forms:
        context = replace(context, options={**context.options, FORM: " ".join(sorted(_ops_in(path)))})
    asked = around.options.recorded_unit_ns
    if (asked or peeked.origin.unit_ns) is None:
        sizes = [f"{figure(peeked.largest * scale / 1e9)} s in {unit}" for unit, scale in LARGE.items()]
        raise InputError(f"{UNIT_UNKNOWN} (its largest value at the beginning would be {', '.join(sizes)})", path)
    if around.options.growing and not peeked.origin.settled:
        raise InputError("its first lines do not tell yet what their numbers are: it is read once there are more", path)
    if asked and peeked.origin.unit_ns not in (None, asked):
        context.account.note(f"{peeked.origin.tool} records in another unit than --recorded-unit says: --recorded-unit was used")
    dated = peeked.zero_ns is not None and not peeked.base_ns  # its stamps are real times
    own = TimeZero(peeked.zero_ns, peeked.zero_origin)
    absolute = dated and not isinstance(around.options.t0, int)
    zero = around.zero(path, own, lambda: last_end_ns(path) - (peeked.zero_ns or 0), absolute=absolute)
    return Source(path, HDR, replace(context, zero=zero), peeked.width_ns, peeked.layout)


def _ops_in(path: Path) -> set[str]:
    """Return the ops that the heads of a log of YCSB name."""
    comments = (line for block in blocks(path) for line in bytes(block).split(b"\n") if line.startswith(COMMENT))
    return {origin.op for line in comments if (origin := in_further_head(line, Origin())) is not None and origin.op}


READER = Reader(locate, rows=read, accepts=lambda _, start: looks_like_hdr(start), grows=PIECES)
