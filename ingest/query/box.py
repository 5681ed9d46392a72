"""Who is over-represented in a box of time and latency: every label's values, counted inside and outside, ranked by lift.

Who is over-represented in a box of time and latency: every label's values, counted inside and outside, ranked by lift.

    explained(origin, Question(), parse_box("+26s..+36s,1s.."))

The data are read twice: once for kinds, layouts and what is missing, once window by window, of which only sums are kept. So a box
is exact: its edges are moved outwards to those of stored windows and of bins, and then every sample is inside or outside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ingest.core.coverage import ANY_TIME
from ingest.core.errors import UsageError
from ingest.core.grid import MS, SECOND, whole_windows
from ingest.core.intervals import Int, Intervals, row_sums
from ingest.core.labels import FAILED, IN_FLIGHT, LABELS, LAG, OK, OUTCOME, Group, outcome_of
from ingest.core.layout import Layout, Mixed, common_layout, shared_edges
from ingest.core.quantiles import parse_percentiles, percentile_values
from ingest.core.units import Instant, parse_duration, parse_instant, split_range
from ingest.query.batch_means import Lift, Side, lifts, windows_with
from ingest.query.compare import UNLIKE_EVENTS
from ingest.query.coverage import cut_at
from ingest.query.means import check_bins
from ingest.query.offsets import OffsetOverview, offset_overviews
from ingest.query.origin import Origin
from ingest.query.overview import AN_OCTAVE
from ingest.query.question import ALL, Answer, Question, edges_of, failed_words
from ingest.query.table import Table, of_rows
from ingest.query.windows import Bounds, Span, widen

NAMES = tuple(name for name in LABELS if name != "kind")
MOST_WINDOWS = 240  # of a side, that bounds are made of: neighbours are added up to so many
PERCENTILES = parse_percentiles("50,90,99,100")
SIDES = ("inside", "outside", "during", "other")  # the last two: in the time of the box, and at all other times
ELSEWHERE, BEFORE, AFTER, SAME_TIME = AGAINST = ("rest", "before", "after", "time")  # what a box is held against
NOT_COUNTED = "they are in no box; --where outcome=failed counts them by how long they took"
FORM = "--box takes a range of time and one of latency, such as +26s..+36s,1s.. (either may be open, as in ..,1s..)"


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of time and latency, ends that are open None: from `begin` to `end`, latencies from `low_ns` to `high_ns`."""

    begin: Instant | None = None
    end: Instant | None = None
    low_ns: int = 0
    high_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """A box as it was used, what is in it, and the values of all labels by lift.

    `spans` are the used times of each run in ns since 1970, an end that is open None; `low_ns` and `high_ns` the used latencies:
    edges of bins. `table` has the columns label, value, inside, outside, share_inside, share_outside, lift, lo, hi, score,
    verdict, exact, complete, highest score first. `stands_out` says of each of its rows whether the share inside is
    higher by more than chance could do if samples did not depend on one another. `windows` is in how many windows of
    `window_ns` the samples of the box lie. `distribution` has the samples by latency, in rows of at most eight an octave: lower
    and upper (ns), then SIDES: in the box, outside of it, in its time whatever their latency, at all other times. `percentiles`
    has, of `PERCENTILES`, the latency of each of SIDES in ns, NaN where there are too few samples.
    `against` is one of AGAINST: outside are all other samples, those of the time before or after the box whatever their
    latency, or those of its time with another latency. `answer` is that of the whole range by run.
    """

    asked: Box
    against: str
    spans: Mapping[str, Bounds]
    low_ns: int
    high_ns: int | None
    inside: int
    outside: int
    windows: int
    window_ns: int
    table: Table
    stands_out: tuple[bool, ...]
    distribution: Table
    percentiles: tuple[tuple[float, ...], ...]
    notes: tuple[str, ...]
    answer: Answer


def parse_box(text: str) -> Box:
    """Return the box of `FROM..TO,LOW..HIGH`; UsageError unless it is one."""
    times, comma, latencies = text.partition(",")
    ends = split_range(times), split_range(latencies) if comma else ("", "")
    for part, range_of_it in zip((times, latencies), ends, strict=True):
        if range_of_it is None:
            one = part.strip()
            single = one and "," not in one and ".." not in one
            raise UsageError(f"{FORM}, not {part!r}" + (f": {one}.. is from there on, ..{one} up to there" if single else ""))
    (begin, end), (low, high) = ends  # type: ignore[misc]
    box = Box(
        parse_instant(begin) if begin else None,
        parse_instant(end) if end else None,
        parse_duration(low, zero=True) if low else 0,
        parse_duration(high) if high else None,
    )
    edges = [edge for edge in (box.begin, box.end) if edge is not None and not edge.of_day]  # of which it is known where they lie
    alike = len(edges) == 2 and edges[0].relative == edges[1].relative
    if (alike and edges[0].ns >= edges[1].ns) or (box.high_ns is not None and box.low_ns >= box.high_ns):
        raise UsageError(f"--box {text}: it ends before it begins")
    return box


def explained(origin: Origin, question: Question, box: Box, against: str = ELSEWHERE) -> Explained:
    """Return who is over-represented in a box against what the question selects beside it (one of AGAINST: see Explained).

    `by` and `step` of the question are not looked at. InputError where nothing is selected or it holds means alone, UsageError
    where it selects several kinds of latency of a run, or asks for shares of I/Os in flight.
    """
    if question.attribution == IN_FLIGHT:
        raise UsageError("a box counts whole I/Os: leave out --attribution in-flight")
    whole = origin.answer(replace(question, by=("run",), step=ALL, merge_runs=False))
    check_bins(whole, "boxes of latency")
    if question.slowest_failures and any(outcome_of(kind) == FAILED for _, kind in whole.layouts):
        of_others = replace(question, where={**question.where, OUTCOME: OK})  # how long failed ones took is no latency
        others = explained(origin, of_others, box, against)
        return replace(others, notes=(*others.notes, *failed_words(whole.parts, NOT_COUNTED)))
    kinds = frozenset(whole.layouts)  # the run and kind of all that is counted
    if len({run for run, _ in kinds}) < len(kinds):
        raise UsageError(f"a box counts one kind of latency: choose it with --where kind=..., one of {whole.kind}")
    layout = common_layout(layout for layouts in whole.layouts.values() for layout in layouts)
    if isinstance(layout, Mixed):  # a box ends where no bin goes on
        layout = shared_edges(layout, np.unique(np.concatenate([part.in_layout(layout).bins for part in whole.parts])))
    counting = _Counting(box, against, layout, whole, max(run.step_ns for run in origin.runs() if run.run in whole.runs))
    for rows in origin.windows(replace(question, by=NAMES, step=ALL)):
        counting.add(rows.where(lambda key: key[:2] in kinds))
    notes = (UNLIKE_EVENTS,) if any(kind == LAG for _, kind in kinds) else ()
    return counting.explained(notes)


class _Clock(NamedTuple):
    """Where the windows of a run stand among those of a side: from `first` on `number` of them, the first begins at `base_ns`."""

    first: int
    number: int
    base_ns: int
    width_ns: int

    def places(self, starts_ns: Int) -> Int:
        """Return the places of windows by their starts."""
        return self.first + np.clip((starts_ns - self.base_ns) // self.width_ns, 0, self.number - 1)


class _Values:
    """The samples of the values of a label inside and outside: exact sums, and by window."""

    def __init__(self, wide: Sequence[int]) -> None:
        self.codes: dict[str, int] = {}
        self.sums = np.zeros((2, 0), np.int64)
        self._windows = [np.zeros((0, number)) for number in wide]

    def add(self, values: Sequence[str], rows: Int, places: Sequence[Int], counts: Sequence[Int]) -> None:
        """Add rows, of `values[rows]`: their counts of each side at places of windows."""
        codes = np.array([self.codes.setdefault(value, len(self.codes)) for value in values], np.int64)[rows]
        if len(self.codes) > self.sums.shape[1]:
            more = max(len(self.codes), 2 * self.sums.shape[1]) - self.sums.shape[1]
            self.sums = np.pad(self.sums, ((0, 0), (0, more)))
            self._windows = [np.pad(side, ((0, more), (0, 0))) for side in self._windows]
        for side, (place, count) in enumerate(zip(places, counts, strict=True)):
            np.add.at(self.sums[side], codes, count)
            np.add.at(self._windows[side], (codes, place), count)

    def sides(self) -> tuple[Side, Side]:
        """Return the windows of both sides, values in the order of their codes."""
        inside, outside = (side[: len(self.codes)] for side in self._windows)
        return Side(inside, inside.sum(axis=0)), Side(outside, outside.sum(axis=0))


class _Counting:
    """Adds up windows, inside and outside of a box."""

    def __init__(self, box: Box, against: str, layout: Layout, whole: Answer, step_ns: int) -> None:
        self._box, self._against, self._layout, self._whole, self._step_ns = box, against, layout, whole, step_ns
        self._first, self._stop = _bins_of(box, layout)
        self._bounds: dict[str, Bounds] = {}
        spans = _spans_of(whole)
        self._clocks = (
            _clocks(
                {run: _clipped(span, edges_of(box.begin, box.end, whole.run_start_ns[run])) for run, span in spans.items()},
                step_ns,
            ),
            _clocks(spans, step_ns),
        )
        wide = [sum(clock.number for clock in clocks.values()) for clocks in self._clocks]
        self._labels = {name: _Values(wide) for name in NAMES}
        self._bins = np.zeros((len(SIDES), layout.bins), np.int64)

    def add(self, rows: Intervals[Group]) -> None:
        """Add rows whose keys are run, kind, then NAMES."""
        for run, own in rows.split(lambda key: key[0]):
            if len(own):
                self._add(run, own.in_layout(self._layout))

    def _add(self, run: str, rows: Intervals[Group]) -> None:
        bounds = self._bounds.setdefault(run, self._used(run, int(rows.end_ns[0] - rows.start_ns[0])))
        begin, end = (limit if edge is None else edge for edge, limit in zip(bounds, ANY_TIME, strict=True))
        during = (rows.start_ns >= begin) & (rows.start_ns < end)
        timed = during[rows.row]
        banded = (rows.bins >= self._first) & (rows.bins < self._stop) & timed
        beside = {BEFORE: (rows.start_ns < begin)[rows.row], AFTER: (rows.start_ns >= end)[rows.row], SAME_TIME: timed}
        held = beside.get(self._against, True) & ~banded
        counts = [row_sums(rows.indptr, np.where(chosen, rows.counts, 0)) for chosen in (banded, held)]
        for side, chosen in enumerate((banded, held, timed, ~timed)):
            np.add.at(self._bins[side], rows.bins[chosen], rows.counts[chosen])
        places = [clocks[run].places(rows.start_ns) for clocks in self._clocks]
        for place, name in enumerate(NAMES):
            self._labels[name].add([key[2 + place] for key in rows.table], rows.series, places, counts)

    def _used(self, run: str, step_ns: int) -> Bounds:
        """Return from when to when the box holds windows of a run."""
        return whole_windows(*edges_of(self._box.begin, self._box.end, self._whole.run_start_ns[run]), step_ns)

    def explained(self, notes: tuple[str, ...]) -> Explained:
        """Return what was counted."""
        several = {name: values for name, values in self._labels.items() if len(values.codes) > 1}
        rows = sum(len(values.codes) for values in several.values())
        lines = [line for name, values in several.items() for line in self._lines(name, values, rows)]
        lines.sort(key=lambda line: (-(line.shares[0] - line.shares[1]), NAMES.index(line.label), line.value))
        bins = self._bins
        inside, outside = (int(counts.sum()) for counts in bins[:2])
        edges = self._layout.edges
        is_open = self._stop == self._layout.bins and (self._layout.open_ended or self._box.high_ns is None)
        runs = self._labels["run"].sides()[0]
        return Explained(
            asked=self._box,
            against=self._against,
            spans={run: self._bounds.get(run, self._used(run, self._step_ns)) for run in self._whole.runs},
            low_ns=int(edges[self._first]),
            high_ns=None if is_open else int(edges[self._stop]),
            inside=inside,
            outside=outside,
            windows=windows_with(runs.every),
            window_ns=max(clock.width_ns for clock in self._clocks[0].values()),
            table=_table(lines),
            stands_out=tuple(line.lift.stands_out for line in lines),
            distribution=_distribution(self._layout, bins),
            percentiles=_percentiles(self._layout, bins),
            notes=notes,
            answer=self._whole,
        )

    def _lines(self, name: str, values: _Values, rows: int) -> list[_Line]:
        """Return a line of each value of a label; `rows` is how many there are of all labels."""
        names = list(values.codes)
        codes, anytime = np.arange(len(names)), np.full(len(names), ANY_TIME[1])
        lacking = cut_at(codes, [(value,) for value in names], -anytime, anytime, (name,), self._whole.missing)
        complete = lacking.complete(len(names)).tolist()
        sums = values.sums[:, : len(names)].tolist()
        totals = [max(sum(side), 1) for side in sums]
        return [
            _Line(name, names[code], counts, (counts[0] / totals[0], counts[1] / totals[1]), lift, complete[code])
            for code, (counts, lift) in enumerate(zip(zip(*sums, strict=True), lifts(*values.sides(), rows), strict=True))
        ]


class _Line(NamedTuple):
    """A value of a label: its counts and shares on both sides."""

    label: str
    value: str
    counts: tuple[int, int]
    shares: tuple[float, float]
    lift: Lift
    complete: bool


def _bins_of(box: Box, layout: Layout) -> tuple[int, int]:
    """Return the first bin that a box touches, and that after the last."""
    edges, last = layout.edges, layout.bins
    beyond = not layout.open_ended and box.low_ns >= int(edges[-1])
    first = last if beyond else int(layout.index(np.array([box.low_ns]))[0])
    stop = last if box.high_ns is None else int(layout.index(np.array([box.high_ns - 1]))[0]) + 1
    return first, max(first, stop)


def _spans_of(whole: Answer) -> dict[str, Span]:
    """Return from when to when the rows of each run are."""
    spans: dict[str, Span] = {}
    place = whole.by.index("run")
    for part in whole.parts:
        for code, low, high in zip(part.series.tolist(), part.start_ns.tolist(), part.end_ns.tolist(), strict=True):
            widen(spans, part.table[code][place], (low, high))
    return spans


def _clipped(span: Span, bounds: Bounds) -> Span:
    """Return what of a span lies within bounds; where nothing does, nothing at its end."""
    low = span[0] if bounds[0] is None else min(max(span[0], bounds[0]), span[1])
    return low, max(low, span[1] if bounds[1] is None else min(span[1], bounds[1]))


def _clocks(spans: Mapping[str, Span], step_ns: int) -> dict[str, _Clock]:
    """Return where the windows of each run stand: neighbours are added up to about MOST_WINDOWS of all runs."""
    total = sum(high - low for low, high in spans.values())
    width = step_ns * max(1, -(-total // (MOST_WINDOWS * step_ns)))
    clocks, first = {}, 0
    for run, (low, high) in spans.items():
        base = low // width * width
        clocks[run] = _Clock(first, -(-high // width) - low // width + 1, base, width)
        first += clocks[run].number
    return clocks


def _distribution(layout: Layout, bins: Int) -> Table:
    """Return the samples of all sides by latency, as wide as the page holds them; empty rows are left out."""
    wide = layout.coarser(AN_OCTAVE)
    sums = np.zeros((len(bins), wide.bins), np.int64)
    for side, counts in zip(sums, bins, strict=True):
        np.add.at(side, layout.moved_to(wide), counts)
    used = np.flatnonzero(sums[:2].any(axis=0))
    columns = {"lower": wide.edges[used], "upper": wide.edges[used + 1]}
    return Table({**columns, **dict(zip(SIDES, sums[:, used], strict=True))}, ())


def _percentiles(layout: Layout, bins: Int) -> tuple[tuple[float, ...], ...]:
    """Return percentiles of all sides in ns, NaN where one has too few samples."""
    many = len(bins)
    zeros = np.zeros(many, np.int64)
    rows, places = np.nonzero(bins)
    indptr = np.searchsorted(rows, np.arange(many + 1)).astype(np.int64)
    sides = Intervals(layout, ((),) * many, np.arange(many), zeros, zeros, indptr, places, bins[rows, places])
    filled = np.flatnonzero(np.diff(indptr) > 0)
    columns = np.full((many, len(PERCENTILES)), math.nan)
    for place, percentile in enumerate(PERCENTILES):
        columns[filled, place] = percentile_values(sides.take(filled), percentile)
    return tuple(tuple(values) for values in columns.T.tolist())


def _table(lines: Sequence[_Line]) -> Table:
    """Return the columns of lines in their order."""
    rows = [
        (
            *(line.label, line.value, *line.counts, *line.shares, line.lift.lift, line.lift.low, line.lift.high),
            *(line.shares[0] - line.shares[1], line.lift.verdict, True, line.complete),
        )
        for line in lines
    ]
    kinds = dict.fromkeys(("label", "value"), object) | dict.fromkeys(("inside", "outside"), np.int64)
    kinds |= dict.fromkeys(("share_inside", "share_outside", "lift", "lo", "hi", "score"), np.float64)
    return of_rows(rows, {**kinds, "verdict": object, "exact": np.bool_, "complete": np.bool_}, ("label", "value"))


# When within the second the events of a box's time happened, beside those of all other times: for sources of single events.
#
# Offsets are kept without latencies, so these are events of all latencies in the seconds that the box touches. The page counts
# the same from the ticks that it holds (view/page/panels/offsets.js).


ROWS = 50  # of 20 ms, which all resolutions divide
LEAST_TIMES, LEAST_SPREADS = 1.5, 4


@dataclass(frozen=True, slots=True)
class BoxOffsets:
    """Events by offset within the second, in ROWS rows: in the seconds that the box touches, and in all others of the runs."""

    inside: Int
    outside: Int

    @property
    def first(self) -> int | None:
        """Return the row that has most more of the events inside than of the others; None where none stands out.

        One stands out with 1.5 times the share, and more than is expected by four standard deviations of both, were events
        independent.
        """
        sums = int(self.inside.sum()), int(self.outside.sum())
        if not all(sums):
            return None
        shares = self.inside / sums[0], self.outside / sums[1]
        row = int(np.argmax(shares[0] - shares[1]))
        inside, expected = float(self.inside[row]), float(shares[1][row]) * sums[0]
        clear = shares[0][row] >= LEAST_TIMES * shares[1][row] and inside - expected > LEAST_SPREADS * (inside + expected) ** 0.5
        return row if clear else None


def box_offsets(origin: Origin, question: Question, spans: Mapping[str, Bounds]) -> BoxOffsets | None:
    """Return the offsets of a box that was used from when to when in each run (`Explained.spans`); None without single events.

    Runs and labels of the question select.
    """
    overviews = offset_overviews(origin, {run: run for run in spans}, question, full=True)
    if not overviews:
        return None
    sides = np.sum([_sides(overview, spans[overview.ticks.run]) for overview in overviews], axis=0)
    return BoxOffsets(*sides)


def _sides(overview: OffsetOverview, span: Bounds) -> Int:
    """Return the events of a run by row: inside, outside."""
    fine, index, count = overview.ticks.resolution, overview.ticks.fine.index, overview.ticks.fine.count
    column, within = np.divmod(index, 1000 // fine.tick_ms)
    begin, end = (edge if edge is not None else limit for edge, limit in zip(span, ANY_TIME, strict=True))
    start = column * fine.seconds * SECOND
    during = (start < end) & (start + fine.seconds * SECOND > begin)
    row = within * fine.tick_ms * ROWS // (SECOND // MS)
    sums = np.zeros((2, ROWS), np.int64)
    np.add.at(sums, (np.where(during, 0, 1), row), count)
    return sums
