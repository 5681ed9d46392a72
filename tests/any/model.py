"""What the answer to any question must be, by docs/design.md 4 alone: plain loops over rows that the generator wrote.

Nothing here is imported from the product, and nothing is parsed: a `Row` is what was written into a log. Stored windows are
made of rows, questions are answered from stored windows, whoever is asked: that is what makes files and stores equal.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache
from typing import Generic, TypeVar

SECOND = 1_000_000_000
MS = 1_000_000
LABELS = ("run", "host", "volume", "job", "op", "kind", "tag", "process")
PERCENTS = ("0", "50", "90", "99", "99.9", "100")
PREFERENCE = {"response": 4, "total": 3, "service": 2, "completion": 1}
MOST = 1 << 62  # samples that can be added up
MULTIPLES = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)

Labels = tuple[str, ...]
Told = tuple[int, int, int]  # exact minimum, maximum, sum
Span = tuple[int, int]


@dataclass(frozen=True, order=True)
class Layout:
    """A log-linear layout: `half` bins an octave, `fine` of them before 2^coarse neighbours are joined, in units of `unit` ns."""

    half: int
    fine: int
    unit: int = 1
    coarse: int = 0
    reports: str = "midpoint"
    open: bool = True

    @property
    def bins(self) -> int:
        return -(-self.fine // (1 << self.coarse))

    def lower(self, index: int) -> int:
        at = min(index << self.coarse, self.fine)
        octave = max(at // self.half - 1, 0)
        return self.unit * (at if at < 2 * self.half else (self.half + at % self.half) << octave)

    def index(self, value: int) -> int:
        return min(bisect_right(range(self.bins + 1), value, key=self.lower) - 1, self.bins - 1)

    def highest(self, index: int) -> int:
        return self.lower(index) if self.open and index == self.bins - 1 else self.lower(index + 1) - 1

    def middle(self, index: int) -> int:
        """Return what a sample of a bin counts as in a mean."""
        low, high = self.lower(index), self.lower(index + 1)
        if self.reports == "midpoint" or (self.open and index == self.bins - 1):
            return self.value(index)
        return min(low + (high - low) // 2, self.value(self.bins - 1)) if self.open else low + (high - low) // 2

    def value(self, index: int) -> int:
        low, high = self.lower(index), self.lower(index + 1)
        if self.is_open(index):
            return low
        return low + (high - low) // self.unit // 2 * self.unit if self.reports == "midpoint" else high - self.unit

    def is_open(self, index: int) -> bool:
        return self.open and index == self.bins - 1


@cache
def nests(fine: Layout, coarse: Layout) -> bool:
    """Return whether each edge of `coarse` but its last is one of `fine`."""
    edges = {fine.lower(index) for index in range(fine.bins + (0 if fine.open else 1))}
    return all(coarse.lower(index) in edges for index in range(coarse.bins))


@cache
def common(layouts: frozenset[Layout]) -> tuple[Layout, ...]:
    """Return the layouts that are left of all where those that nest in another of their kind are brought to that one."""
    return tuple(one for one in sorted(layouts) if not any(other != one and contains(other, one) for other in layouts))


def contains(coarse: Layout, fine: Layout) -> bool:
    return coarse.reports == fine.reports and nests(fine, coarse)


@dataclass(frozen=True)
class Row:
    """An interval (start, end] of a series with its counts; `told` is its exact minimum, maximum and sum.

    The source keeps the exact values of a row that is the `whole` run.
    """

    labels: Labels
    layout: Layout
    start: int
    end: int
    counts: Mapping[int, int]
    told: Told | None = None
    whole: bool = False


@dataclass(frozen=True)
class Points:
    """Single operations (completion, latency) of one file, of whose series each row bears the bounds of its window.

    `low` and `high` are when the first of the file began and the last completed.
    """

    labels: Labels
    layout: Layout
    events: Sequence[tuple[int, int]]
    low: int
    high: int

    def rows(self, step: int) -> list[Row]:
        """Return a row for each window of `step` ns."""
        found: dict[int, list[int]] = {}
        for end, latency in self.events:
            found.setdefault(window_of(end, step), []).append(latency)
        return [
            row_of(self.labels, self.layout, max(at, self.low), min(at + step, self.high), some) for at, some in found.items()
        ]


def row_of(labels: Labels, layout: Layout, start: int, end: int, latencies: Sequence[int]) -> Row:
    """Return a row of single latencies: its exact values are known."""
    counts: dict[int, int] = {}
    for latency in latencies:
        index = layout.index(latency)
        counts[index] = counts.get(index, 0) + 1
    return Row(labels, layout, start, end, counts, (min(latencies), max(latencies), sum(latencies)))


Bin = tuple[Layout, int]
Key = TypeVar("Key")


@dataclass
class Cell(Generic[Key]):
    """What came together: counts by bin, and the exact values as long as all that came had them."""

    counts: dict[Key, int] = field(default_factory=dict)
    told: Told | None = None
    begun: bool = False

    def add(self, counts: Mapping[Key, int], told: Told | None) -> None:
        if not any(counts.values()):
            return
        for index, count in counts.items():
            if count:
                self.counts[index] = self.counts.get(index, 0) + count
        if self.begun:
            mine = self.told
            told = (min(mine[0], told[0]), max(mine[1], told[1]), mine[2] + told[2]) if mine and told else None
        self.told, self.begun = told, True


def window_of(stamp: int, step: int) -> int:
    """Return the start of the window (start, start + step] that holds a stamp."""
    return -(-stamp // step) * step - step


def cuts(row: Row, step: int) -> list[tuple[int, dict[int, int], Told | None]]:
    """Return the parts of a row by the window they lie in: of what remains, the share goes on, halves to even."""
    start, counts, told, parts = row.start, dict(row.counts), row.told, []
    while start // step * step < window_of(row.end, step):
        edge = start // step * step + step
        share, seen, head = Fraction(edge - start, row.end - start), 0, {}
        for index in sorted(counts):
            head[index] = round(share * (seen + counts[index])) - round(share * seen)
            seen += counts[index]
        parts.append((edge - step, head, None))
        start, counts, told = edge, {index: counts[index] - head[index] for index in counts}, None
    return [*parts, (window_of(row.end, step), counts, told)]


@dataclass(frozen=True)
class Lack:
    """Samples in unknown number that a series lacks between two times: fio never writes the last interval of a log."""

    labels: Labels
    start: int
    end: int


Windows = dict[tuple[Labels, Layout, int], Cell[int]]


@dataclass
class Held:
    """A run as it is held: windows of `step` ns by series, layout and start; from when to when series reach; its start."""

    run: str
    step: int
    start: int
    windows: Windows
    reach: Mapping[Labels, Span]
    whole: Mapping[Labels, tuple[int, Told]] = field(default_factory=dict)
    lacks: Sequence[Lack] = ()


def held(run: str, written: Sequence[Row | Points], step: int, start: int, lacks: Sequence[Lack] = ()) -> Held:
    """Return what is held of a run after its rows were put into windows."""
    windows: Windows = {}
    reach: dict[Labels, Span] = {}
    for row in (row for one in written for row in ([one] if isinstance(one, Row) else one.rows(step))):
        low, high = reach.get(row.labels, (row.start, row.end))
        reach[row.labels] = min(low, row.start), max(high, row.end)
        for at, counts, told in cuts(row, step):
            windows.setdefault((row.labels, row.layout, at), Cell[int]()).add(counts, told)
    whole = {
        row.labels: (sum(row.counts.values()), row.told) for row in written if isinstance(row, Row) and row.whole and row.told
    }
    return Held(run, step, start, {key: cell for key, cell in windows.items() if cell.counts}, reach, whole, lacks)


def coarsened(one: Held, step: int) -> Held:
    """Return a run with its windows added up to a larger step."""
    windows: Windows = {}
    for (labels, layout, at), cell in one.windows.items():
        windows.setdefault((labels, layout, at // step * step), Cell[int]()).add(cell.counts, cell.told)
    return replace(one, step=step, windows=windows)


@dataclass(frozen=True)
class Asked:
    """A question; `step` is ns, or "all" or "auto". Instants are (ns, relative to the start of the run)."""

    by: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    step: int | str = "all"
    begin: tuple[int, bool] | None = None
    end: tuple[int, bool] | None = None
    merge: bool = False


def preference(kind: str) -> int:
    return -1 if kind.endswith(("in-flight", "corrected")) else PREFERENCE.get(kind, 0)


AT = {name: place for place, name in enumerate(LABELS)}


class Picked:
    """What a question selects of a run: series, bounds (whole stored windows), windows, from when to when its series reach."""

    def __init__(self, run: Held, asked: Asked) -> None:
        self.run = run
        self.chosen = {
            labels
            for labels in run.reach
            if all(fnmatchcase(labels[AT[name]] if name in AT else "", glob) for name, glob in asked.where.items())
        }
        begin, end = (None if one is None else one[0] + (run.start if one[1] else 0) for one in (asked.begin, asked.end))
        self.begin = None if begin is None else begin // run.step * run.step
        self.end = None if end is None else -(-end // run.step) * run.step
        self.reach = union(run.reach[labels] for labels in self.chosen)
        self.windows = {
            key: cell
            for key, cell in run.windows.items()
            if key[0] in self.chosen and (self.begin is None or key[2] >= self.begin) and (self.end is None or key[2] < self.end)
        }
        self.kinds = {key[0][AT["kind"]] for key in self.windows}
        self.taken: set[str] = set()

    def clipped(self, span: Span) -> Span | None:
        low = span[0] if self.begin is None else max(span[0], self.begin)
        high = span[1] if self.end is None else min(span[1], self.end)
        return (low, high) if low <= high else None

    @property
    def span(self) -> Span:
        """Return from when to when a row over all of the range is."""
        assert self.reach
        if self.begin is None and self.end is None:
            return self.reach
        step = self.run.step
        first, last = min(key[2] for key in self.windows), max(key[2] for key in self.windows) + step
        low = self.reach[0] if first < self.reach[0] < first + step else first
        return low, self.reach[1] if last - step < self.reach[1] < last else last

    @property
    def covered(self) -> Span | None:
        """Return from when to when there is data of what is shown, within the range."""
        reach = self.run.reach
        known = (union(reach[one] for one in self.chosen if one[AT["kind"]] == kind) for kind in self.taken)
        return union(span for one in known if one and (span := self.clipped(one)))

    def lacks(self) -> list[Lack]:
        found = []
        for one in self.run.lacks:
            low, high = max(one.start, self.begin or one.start), one.end if self.end is None else min(one.end, self.end)
            if one.labels in self.chosen and one.labels[AT["kind"]] in self.taken and low < high:
                found.append(Lack(one.labels, low, high))
        return found


def union(spans: Iterable[Span]) -> Span | None:
    known = list(spans)
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def answer(runs: Sequence[Held], asked: Asked) -> list[str] | None:
    """Return the lines of the csv, the mean of each row as a fraction `top/bottom`; None where there can be only a refusal."""
    glob = asked.where.get("run", "*")
    every = [Picked(run, asked) for run in runs if fnmatchcase(run.run, glob)]
    every = every or [Picked(run, asked) for run in runs]
    step = step_of(every, asked)
    picked = [one for one in every if one.windows]
    if step is None or not picked:
        return None
    apart = "kind" in asked.by or "kind" in asked.where
    for one in picked:
        one.taken = one.kinds if apart else {min(one.kinds, key=lambda kind: (-preference(kind), kind))}
    name_runs = len(picked) > 1 and "run" not in asked.by and not asked.merge
    name_kinds = apart and "kind" not in asked.by and len({kind for one in picked for kind in one.taken}) > 1
    by = (*(("run",) if name_runs else ()), *(("kind",) if name_kinds else ()), *asked.by)
    together = union(one.span for one in picked) if asked.merge and "run" not in asked.by else None

    def told_apart(labels: Labels) -> Labels:
        return tuple(labels[AT[name]] if name in by else "" for name in ("run", "kind"))

    groups: dict[tuple[Span, Labels], dict[tuple[str, str], dict[Layout, Cell[int]]]] = {}
    layouts: dict[Labels, set[Layout]] = {}  # of all that is selected, whenever it was; what is told apart has one each
    for one in picked:
        for labels, layout, _ in one.run.windows:
            if labels in one.chosen and labels[AT["kind"]] in one.taken:
                layouts.setdefault(told_apart(labels), set()).add(layout)
        for (labels, layout, at), cell in one.windows.items():
            if labels[AT["kind"]] in one.taken:
                bounds = (at // step * step, at // step * step + step) if step else together or one.span
                parts = groups.setdefault((bounds, grouped(labels, by)), {}).setdefault((one.run.run, labels[AT["kind"]]), {})
                parts.setdefault(layout, Cell[int]()).add(cell.counts, cell.told)
    head = [
        "start",
        "end",
        *by,
        *"count,rate,min,mean,max,exact,complete,failed".split(","),
        *(f"p{percent}" for percent in PERCENTS),
    ]
    lines = [",".join(head)]
    whole = not step and asked.begin is None and asked.end is None
    for (bounds, group), members in sorted(groups.items(), key=lambda item: (item[0][0][0], item[0][1])):
        mine = [one for one in picked if any(run == one.run.run for run, _ in members)]
        some = next(labels for one in mine for labels in one.chosen if grouped(labels, by) == group)
        [target] = {common(frozenset(layouts[told_apart((run, *some[1:5], kind, *some[6:]))])) for run, kind in members}
        total = Cell[Bin]()
        for (run, kind), parts in members.items():
            part = Cell[Bin]()
            for layout, cell in parts.items():
                part.add(moved(cell.counts, layout, target), cell.told)
            held = next(one for one in mine if one.run.run == run)
            if whole and not part.told:
                names = [one for one in held.chosen if grouped(one, by) == group and one[AT["kind"]] == kind]
                part.told = whole_told(held.run, names, part)
            total.add(part.counts, part.told)
        if sum(total.counts.values()) > MOST:
            return None
        lacking = any(
            grouped(lack.labels, by) == group and (not step or (bounds[0] < lack.end and bounds[1] > lack.start))
            for one in picked
            for lack in one.lacks()
        )
        low, high = bounds
        if step:
            seen = union(span for one in (mine if "run" in by else picked) if (span := one.covered))
            low, high = (max(low, seen[0]), min(high, seen[1])) if seen else bounds
            low, high = (low, high) if low < high else bounds
        lines.append(",".join([utc(bounds[0]), utc(bounds[1]), *group, *cells_of(total, max(high - low, 1), whole=not lacking)]))
    return lines


def moved(counts: Mapping[int, int], layout: Layout, targets: Sequence[Layout]) -> dict[Bin, int]:
    """Return counts by bin, those of a layout that nests in one of the targets in bins of that one."""
    target = next(one for one in targets if one == layout or contains(one, layout))
    found: dict[Bin, int] = {}
    for index, count in counts.items():
        place = target, index if layout == target else target.index(layout.highest(index))
        found[place] = found.get(place, 0) + count
    return found


def grouped(labels: Labels, by: Sequence[str]) -> Labels:
    return tuple(dict(zip(LABELS, labels, strict=True)).get(name, "") for name in by)


def whole_told(run: Held, members: Sequence[Labels], total: Cell) -> Told | None:
    """Return the exact values of the rows of whole runs, where they are all that came together."""
    known = [run.whole[labels] for labels in members if labels in run.whole]
    if not known or sum(count for count, _ in known) != sum(total.counts.values()):
        return None
    return min(told[0] for _, told in known), max(told[1] for _, told in known), sum(told[2] for _, told in known)


def step_of(picked: Sequence[Picked], asked: Asked) -> int | None:
    """Return the step in ns, 0 for all, None where runs cannot be asked at it; each of their steps divides the next wider one."""
    if asked.step == "all":
        return 0
    stored = max(one.run.step for one in picked)
    if asked.step == "auto":
        spans = (
            one.reach and one.clipped((one.reach[0] // stored * stored, -(-one.reach[1] // stored) * stored)) for one in picked
        )
        low, high = union(span for span in spans if span) or (0, 0)
        return next(stored * many for many in MULTIPLES if max(high - low, stored) <= 150 * stored * many)
    return None if any(int(asked.step) % one.run.step for one in picked) else int(asked.step)


def cells_of(cell: Cell[Bin], length: int, *, whole: bool) -> list[str]:
    """Return count, rate, min, mean as a fraction, max, exact, complete, failed (none) and the percentiles.

    Of bins of one layout a percentile is what the bin of the rank reports. Of several it is the lowest latency up to which so
    many samples surely lie, because their bins end there; in an open bin, which has no end, the lowest up to which they may.
    """
    count = sum(cell.counts.values())
    if cell.told:
        low, high, total = cell.told
    else:
        low = min(layout.lower(index) for layout, index in cell.counts)
        high = max(
            layout.value(index) if layout.is_open(index) or layout.reports == "highest" else layout.lower(index + 1)
            for layout, index in cell.counts
        )
        total = sum(layout.middle(index) * many for (layout, index), many in cell.counts.items())
    found = [
        str(count),
        number(count / (length / 1e9)),
        str(low),
        f"{total}/{count}",
        str(high),
        "true" if cell.told and whole else "false",
        "true" if whole else "false",
        "0",
    ]
    for percent in PERCENTS:
        share = Fraction(percent)
        if 50 < share < 100 and count * (100 - share) < 100:
            found.append("")
        elif percent == "100" and cell.told:
            found.append(str(high))
        else:
            rank = max(-(-count * share.numerator // (share.denominator * 100)), 1)
            value = value_at(cell.counts, rank)
            found.append(str(min(max(value, low), high) if cell.told else value))
    return found


def value_at(counts: Mapping[Bin, int], rank: int) -> int:
    """Return what is reported of the sample of a rank."""
    several = len({layout for layout, _ in counts}) > 1
    ends = sorted(((math.inf if layout.is_open(index) else layout.highest(index), layout, index) for layout, index in counts))
    end, layout, index = next(place for place in ends if sum(counts[one, at] for top, one, at in ends if top <= place[0]) >= rank)
    if not several:
        return layout.value(index)
    if end < math.inf:
        return int(end)
    begins = sorted({layout.lower(index) for layout, index in counts})
    return next(low for low in begins if sum(many for (one, at), many in counts.items() if one.lower(at) <= low) >= rank)


def number(value: float) -> str:
    return str(int(value)) if int(value) == value else f"{value:.15g}"


def utc(stamp: int) -> str:
    """Return ISO 8601 with ms, rounded down."""
    ms = stamp // MS
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + f".{ms % 1000:03d}Z"


def alike(told: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether lines are what is wanted; a mean, which is a float, may be off by its last digits."""
    if len(told) != len(wanted) or told[0] != wanted[0] or len(told) < 2:
        return False
    place = told[0].split(",").index("mean")
    for one, other in zip(told[1:], wanted[1:], strict=True):
        mine, theirs = one.split(","), other.split(",")
        top, bottom = map(int, theirs.pop(place).split("/"))
        mean = Fraction(mine.pop(place))
        if mine != theirs or abs(mean - Fraction(top, bottom)) > Fraction(top, bottom * 10**12):
            return False
    return True
