"""What the answer to any question must be, by docs/design.md 4 alone: plain loops over rows that the generator wrote.

Nothing here is imported from the product, and nothing is parsed: a `Row` is what was written into a log. Stored windows are
made of rows, questions are answered from stored windows, whoever is asked: that is what makes files and stores equal.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache

SECOND = 1_000_000_000
MS = 1_000_000
LABELS = ("run", "host", "volume", "job", "op", "kind", "tag", "process")
PERCENTS = ("0", "50", "90", "99", "99.9", "100")
PREFERENCE = {"response": 4, "total": 3, "service": 2, "completion": 1}
MULTIPLES = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)

Labels = tuple[str, ...]
Told = tuple[int, int, int]  # exact minimum, maximum, sum
Span = tuple[int, int]


@dataclass(frozen=True, order=True)
class Layout:
    """A log-linear layout: `half` bins an octave, `fine` of them before 2^coarse neighbours are joined, in units of `unit` ns.

    Of a common one `first` is the widest first bin of those that were moved to it.
    """

    half: int
    fine: int
    unit: int = 1
    coarse: int = 0
    reports: str = "midpoint"
    open: bool = True
    first: int = 0

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
        return low + (high - low) // 2

    def value(self, index: int) -> int:
        low, high = self.lower(index), self.lower(index + 1)
        if self.open and index == self.bins - 1:
            return low
        if self.reports == "midpoint":
            return low + (high - low) // self.unit // 2 * self.unit
        return high - self.unit if self.reports == "highest" else high


@cache
def nests(fine: Layout, coarse: Layout) -> bool:
    """Return whether each edge of `coarse` but its last is one of `fine`."""
    edges = {fine.lower(index) for index in range(fine.bins + (0 if fine.open else 1))}
    return all(coarse.lower(index) in edges for index in range(coarse.bins))


@cache
def common(layouts: frozenset[Layout]) -> Layout:
    """Return the layout that all are moved to: one that all others nest in, else ns bins as wide as the widest, upper edges."""
    for one in sorted(layouts):
        if all(other == one or (other.reports == one.reports and nests(other, one)) for other in layouts):
            return one
    width = max(Fraction(1 << one.coarse, one.half) for one in layouts)
    half = 1
    while Fraction(1, 2 * half) >= width:
        half *= 2
    coarse = 0
    while width >= 1 << (coarse + 1):
        coarse += 1
    tops = [one.lower(one.bins - 1) for one in layouts if one.open]
    top = min(tops) if tops else max(one.lower(one.bins) for one in layouts)
    reach, low, high = Layout(half, 1 << 40), 0, 1 << 16
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if reach.lower(middle) <= top else (low, middle - 1)
    return Layout(half, low + 1, 1, coarse, "upper", bool(tops), max(one.lower(1) for one in layouts))


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


@dataclass
class Cell:
    """What came together: counts by bin, and the exact values as long as all that came had them."""

    counts: dict[int, int] = field(default_factory=dict)
    told: Told | None = None
    begun: bool = False

    def add(self, counts: Mapping[int, int], told: Told | None) -> None:
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


Windows = dict[tuple[Labels, Layout, int], Cell]


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
            windows.setdefault((row.labels, row.layout, at), Cell()).add(counts, told)
    whole = {
        row.labels: (sum(row.counts.values()), row.told) for row in written if isinstance(row, Row) and row.whole and row.told
    }
    return Held(run, step, start, {key: cell for key, cell in windows.items() if cell.counts}, reach, whole, lacks)


def coarsened(one: Held, step: int) -> Held:
    """Return a run with its windows added up to a larger step."""
    windows: Windows = {}
    for (labels, layout, at), cell in one.windows.items():
        windows.setdefault((labels, layout, at // step * step), Cell()).add(cell.counts, cell.told)
    return replace(one, step=step, windows=windows)


@dataclass(frozen=True)
class Asked:
    """A question; `step` is ns, or "all" or "auto". Instants are (ns, relative to the start of the run)."""

    by: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    step: int | str = "all"
    begin: tuple[int, bool] | None = None
    end: tuple[int, bool] | None = None


def preference(kind: str) -> int:
    return -1 if kind.endswith(("in-flight", "corrected")) else PREFERENCE.get(kind, 0)


def answer(runs: Sequence[Held], asked: Asked) -> list[str] | None:
    """Return the lines of the csv, the mean of each row as a fraction `top/bottom`; None where there can be only a refusal."""
    [run] = runs
    at = {name: place for place, name in enumerate(LABELS)}
    chosen = [
        labels
        for labels in run.reach
        if all(fnmatchcase(labels[at[name]] if name in at else "", glob) for name, glob in asked.where.items())
    ]
    begin, end = (None if one is None else one[0] + (run.start if one[1] else 0) for one in (asked.begin, asked.end))
    begin = None if begin is None else begin // run.step * run.step
    end = None if end is None else -(-end // run.step) * run.step
    spans = [run.reach[labels] for labels in chosen]
    if not spans:
        return None
    reach = min(low for low, _ in spans), max(high for _, high in spans)
    step = step_of(run, asked, reach, begin, end)
    if step is None:
        return None
    mine = {
        key: cell
        for key, cell in run.windows.items()
        if key[0] in set(chosen) and (begin is None or key[2] >= begin) and (end is None or key[2] < end)
    }
    if not mine:
        return None
    kinds = {key[0][at["kind"]] for key in mine}
    named = "kind" in asked.by or "kind" in asked.where
    taken = kinds if named else {min(kinds, key=lambda kind: (-preference(kind), kind))}
    by = (*(("kind",) if named and "kind" not in asked.by and len(kinds) > 1 else ()), *asked.by)
    span = reach
    if begin is not None or end is not None:
        first, last = min(key[2] for key in mine), max(key[2] for key in mine) + run.step
        low = reach[0] if first < reach[0] < first + run.step else first
        span = low, reach[1] if last - run.step < reach[1] < last else last
    mine = {key: cell for key, cell in mine.items() if key[0][at["kind"]] in taken}
    lacks = [
        Lack(one.labels, low, high)
        for one in run.lacks
        for low, high in [(max(one.start, begin or one.start), one.end if end is None else min(one.end, end))]
        if one.labels in set(chosen) and one.labels[at["kind"]] in taken and low < high
    ]
    groups: dict[tuple[int, Labels], dict[Layout, Cell]] = {}
    for (labels, layout, start), cell in mine.items():
        group = grouped(labels, by)
        parts = groups.setdefault((start // step * step if step else span[0], group), {})
        parts.setdefault(layout, Cell()).add(cell.counts, cell.told)
    layouts: dict[str, set[Layout]] = {}  # of all that is selected, whenever it was; kinds that are told apart have one each
    for labels, layout, _ in run.windows:
        if labels in set(chosen) and labels[at["kind"]] in taken:
            layouts.setdefault(labels[at["kind"]] if "kind" in by else "", set()).add(layout)

    def told_apart(group: Labels) -> str:
        return group[by.index("kind")] if "kind" in by else ""

    head = ["start", "end", *by, *"count,rate,min,mean,max,exact,complete".split(","), *(f"p{percent}" for percent in PERCENTS)]
    lines = [",".join(head)]
    for (start, group), parts in sorted(groups.items(), key=lambda item: item[0]):
        target = common(frozenset(layouts[told_apart(group)]))
        total = Cell()
        for layout, cell in parts.items():
            moved: dict[int, int] = {}
            for index, count in cell.counts.items():
                place = index if layout == target else target.index(layout.highest(index))
                moved[place] = moved.get(place, 0) + count
            total.add(moved, cell.told)
        if not step and begin is None and end is None and not total.told:
            total.told = whole_told(run, [labels for labels in chosen if grouped(labels, by) == group], total)
        bounds = (start, start + step) if step else span
        lacking = any(
            grouped(one.labels, by) == group and (not step or (bounds[0] < one.end and bounds[1] > one.start)) for one in lacks
        )
        low, high = bounds
        if step:
            spans = [run.reach[labels] for labels in chosen if labels[at["kind"]] in taken]
            reach = min(first for first, _ in spans), max(last for _, last in spans)
            edges = max(reach[0], begin if begin is not None else reach[0]), min(reach[1], end if end is not None else reach[1])
            low, high = max(low, edges[0]), min(high, edges[1])
            low, high = (low, high) if low < high else bounds
        lines.append(
            ",".join([utc(bounds[0]), utc(bounds[1]), *group, *cells_of(total, target, max(high - low, 1), whole=not lacking)])
        )
    return lines


def grouped(labels: Labels, by: Sequence[str]) -> Labels:
    return tuple(dict(zip(LABELS, labels, strict=True)).get(name, "") for name in by)


def whole_told(run: Held, members: Sequence[Labels], total: Cell) -> Told | None:
    """Return the exact values of the rows of whole runs, where they are all that came together."""
    known = [run.whole[labels] for labels in members if labels in run.whole]
    if not known or sum(count for count, _ in known) != sum(total.counts.values()):
        return None
    return min(told[0] for _, told in known), max(told[1] for _, told in known), sum(told[2] for _, told in known)


def step_of(run: Held, asked: Asked, reach: Span, begin: int | None, end: int | None) -> int | None:
    """Return the step in ns, 0 for all, None where the run cannot be asked at it."""
    if asked.step == "all":
        return 0
    if asked.step == "auto":
        low = max(reach[0] // run.step * run.step, reach[0] // run.step * run.step if begin is None else begin)
        high = min(-(-reach[1] // run.step) * run.step, -(-reach[1] // run.step) * run.step if end is None else end)
        length = max(high - low, run.step)
        return next(run.step * many for many in MULTIPLES if length <= 150 * run.step * many)
    return None if int(asked.step) % run.step else int(asked.step)


def cells_of(cell: Cell, layout: Layout, length: int, *, whole: bool) -> list[str]:
    """Return count, rate, min, mean as a fraction, max, exact, complete and the percentiles."""
    bins = sorted(cell.counts)
    count = sum(cell.counts.values())
    if cell.told:
        low, high, total = cell.told
    else:
        low = layout.lower(bins[0])
        if layout.reports == "upper":  # counts came by the highest value of their bin, which began below
            low = max(min(low - layout.first, low * layout.half // (layout.half + (1 << layout.coarse))), 0)
        high = layout.value(bins[-1]) if layout.reports == "highest" else layout.lower(bins[-1] + 1)
        if layout.open and bins[-1] == layout.bins - 1:
            high = layout.lower(bins[-1])
        total = sum(layout.middle(index) * cell.counts[index] for index in bins)
    found = [
        str(count),
        number(count / (length / 1e9)),
        str(low),
        f"{total}/{count}",
        str(high),
        "true" if cell.told and whole else "false",
        "true" if whole else "false",
    ]
    for percent in PERCENTS:
        share = Fraction(percent)
        if 50 < share < 100 and count * (100 - share) < 100:
            found.append("")
        elif percent == "100" and cell.told:
            found.append(str(high))
        else:
            rank, seen = max(-(-count * share.numerator // (share.denominator * 100)), 1), 0
            for index in bins:
                seen += cell.counts[index]
                if seen >= rank:
                    value = layout.value(index)
                    found.append(str(min(max(value, low), high) if cell.told else value))
                    break
    return found


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
