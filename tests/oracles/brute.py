"""Percentiles over time from fio histogram logs, by the definitions alone: slow, short, exact.

Bins by fio's formula, rows (previous row of the direction, this row], the splitting rule of the design (of what remains,
the share f goes on as round(f * C_b) - round(f * C_(b-1)), halves to even), sums, nearest rank.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import accumulate, takewhile

MS = 1_000_000
OPS = ("read", "write", "trim")
Row = tuple[int, int, dict[int, int]]


def lower_edge(index: int) -> int:
    """Return the lower edge of fio's bin in its unit: 64 bins an octave, the first 128 one unit wide."""
    octave = max(index // 64 - 1, 0)
    return index if index < 128 else (64 + index % 64) << octave


def index_of(value: int, last: int) -> int:
    """Return fio's bin of a value (stat.c plat_val_to_idx)."""
    shift = max(value.bit_length() - 7, 0)
    return min(value if not shift else (shift << 6) + (value >> shift), last)


@cache
def geometry(bins: int) -> tuple[int, int, int]:
    """Return (unit in ns, groups, coarseness) of a log with this many bins."""
    return next((unit, groups, c) for unit, groups in ((1, 29), (1000, 19)) for c in range(7) if groups * 64 == bins << c)


@cache
def edges(bins: int) -> list[int]:
    """Return the edges in ns of a log with this many bins."""
    unit, _, coarseness = geometry(bins)
    return [lower_edge(index << coarseness) * unit for index in range(bins + 1)]


def value_of(bins: int, index: int) -> int:
    """Return what is reported for a bin: its midpoint as fio prints it, the lower edge of the open last bin."""
    unit, low, high = geometry(bins)[0], edges(bins)[index], edges(bins)[index + 1]
    return low if index == bins - 1 else low + (high - low) // unit // 2 * unit


def rows_of(text: str, zero_ns: int = 0) -> dict[str, list[Row]]:
    """Return the rows (start, end, {bin: count}) of each direction of a per-interval log with relative stamps."""
    found: dict[str, list[Row]] = {}
    for line in text.splitlines():
        stamp, direction, _, *cells = map(int, line.split(","))
        chain = found.setdefault(OPS[direction], [])
        start = chain[-1][1] if chain else zero_ns
        chain.append((start, zero_ns + stamp * MS, {slot: count for slot, count in enumerate(cells) if count}))
    return found


def width_of(found: dict[str, list[Row]]) -> int:
    """Return log_hist_msec of rows that nothing says it of: the median width of rows of several samples, or less.

    At most the width that half of the time is covered by, and the mean.
    """
    steps = sorted((after[1] - before[1]) // MS for rows in found.values() for before, after in zip(rows, rows[1:], strict=False))
    steps = [step for step in steps if step >= 0]
    if not sum(steps):
        return 1000
    half = next(step for place, step in enumerate(steps) if 2 * sum(steps[: place + 1]) >= sum(steps))
    several = sorted(
        (after[1] - before[1]) // MS
        for rows in found.values()
        for before, after in zip(rows, rows[1:], strict=False)
        if sum(after[2].values()) != 1 and after[1] > before[1]
    )
    middle = [several[(len(several) - 1) // 2], several[len(several) // 2]] if several else []
    return min(half, max(1, round(sum(steps) / len(steps))), *([sum(middle) // 2] if middle else []))


def settled(rows: list[Row], width_ms: int, bins: int, *, stated: bool) -> list[Row]:
    """Return the rows of a direction with the gaps in them: a row that comes late ends when it was due, but for its last sample.

    fio's clock for rows goes on by a width a row. The first completion from then on is the last sample of its row, at its stamp: the
    longest if that is as long as the gap or the interval before it, else the one in the middle. A width is taken for a 32nd longer, and a row is late from
    as much on. Where fio has `stated` the width (log_hist_msec), when the first row was due all rows that follow it show. A row that
    is late by a width, and that no row of one sample follows, comes after rows that are not there. An empty row is rejected: what
    it held, and so when the next one was due, is not known.
    """
    found: list[Row] = []
    slack = max(width_ms // 32, 1) * MS
    width = width_ms * MS + slack
    due = 0
    for number, (start, end, counts) in enumerate(rows):
        late = end - min(end, due + width) if number else 0
        follower = next((sum(row[2].values()) for row in rows[number + 1 :] if row[2]), 1)
        if not counts:
            continue
        first = not number or not rows[number - 1][2]
        whole = list(takewhile(lambda row: row[2], rows)) if stated and not number else []
        latest = min((row[1] - place * width_ms * MS for place, row in enumerate(whole)), default=end)
        if latest < end - slack and sum(counts.values()) > 1:
            due = end
            found += _last_apart((start, end, counts), latest, bins)
        elif first or (late >= width and follower > 1 and not (number + 1 < len(rows) and not rows[number + 1][2])):
            due = end
            found.append((start, end, counts))
        else:
            until, due = max(due + width_ms * MS, start + MS), min(end, due + width)
            if sum(counts.values()) == 1:
                found.append((end, end, counts))
            else:
                found += _last_apart((start, end, counts), until, bins) if due < end - slack else [(start, end, counts)]
    return found


def _last_apart(row: Row, until: int, bins: int) -> list[Row]:
    """Return a row that came late as what completed by a moment, and its last sample."""
    start, end, counts = row
    top = max(slot for slot, count in counts.items() if count)
    reaches = top == bins - 1 or edges(bins)[top + 1] > min(end - until, until - start)
    passed = accumulate(counts[slot] for slot in sorted(counts))
    middle = next(slot for slot, seen in zip(sorted(counts), passed, strict=True) if seen >= (sum(counts.values()) + 1) // 2)
    last = top if reaches else middle
    return [(start, until, dict(+(Counter(counts) - Counter([last])))), (end, end, {last: 1})]


def bins_in(text: str) -> int:
    """Return how many bins the rows of a log have."""
    return text.split("\n", 1)[0].count(",") - 2


def window_of(stamp: int, step: int) -> int:
    """Return the start of the window (start, start + step] that holds a stamp."""
    return -(-stamp // step) * step - step


def split(row: Row, step: int) -> list[tuple[int, dict[int, int]]]:
    """Return the parts of a row by the window they lie in."""
    start, end, counts = row
    parts = []
    while start // step * step < window_of(end, step):
        edge = start // step * step + step
        share, seen, head = Fraction(edge - start, end - start), 0, {}
        for slot in sorted(counts):
            head[slot] = round(share * (seen + counts[slot])) - round(share * seen)
            seen += counts[slot]
        parts.append((edge - step, head))
        start, counts = edge, {slot: counts[slot] - head[slot] for slot in counts}
    return [*parts, (window_of(end, step), counts)]


STEPS = tuple(tenths * 10**8 for tenths in (1, 10, 50, 100, 300, 600, 3000, 6000, 18_000, 36_000))


def windows(rows: list[Row], step: int, stored: int = 0, own: int = 0) -> dict[int, Counter[int]]:
    """Return the histogram of each window that holds samples.

    A row that crosses an edge is cut at every edge of the stored step on its way, where `step` is a multiple of that. With the
    `own` step of their source rows are cut at that instead: where it is wider than the stored one first at it, then at each of
    STEPS in between.
    """
    fine = stored if stored and step % stored == 0 else step
    if own and fine == stored:
        fine = min(own, fine)
        for wider in (wider for wider in reversed(STEPS) if fine < wider <= own):
            pieces = ((row, *piece) for row in rows for piece in split(row, wider))
            rows = [(max(row[0], start), min(row[1], start + wider), counts) for row, start, counts in pieces]
    found: dict[int, Counter[int]] = {}
    for row in rows:
        inside = row[0] // step * step >= window_of(row[1], step)
        for start, counts in split(row, step if inside else fine):
            held = found.setdefault(start // step * step, Counter())
            held.update({slot: count for slot, count in counts.items() if count})
    return {start: counts for start, counts in found.items() if counts}


def percentile(counts: Counter[int], percent: str) -> int | None:
    """Return the bin of the nearest rank, None where no sample would lie beyond; `percent` is decimal text."""
    total, share = sum(counts.values()), Fraction(percent)
    if not total or (50 < share < 100 and total * (100 - share) < 100):
        return None
    rank = max(-(-total * share.numerator // (share.denominator * 100)), 1)
    seen = 0
    for slot in sorted(counts):
        seen += counts[slot]
        if seen >= rank:
            return slot
    raise AssertionError("a rank past all samples")


def cell(counts: Counter[int], bins: int, percents: tuple[str, ...]) -> dict[str, int | None]:
    """Return what a result row must say: count, percentiles, and min and max as bin edges."""
    at, limits = sorted(counts), edges(bins)
    found: dict[str, int | None] = {"count": sum(counts.values()), "min": limits[at[0]]}
    found["max"] = limits[at[-1]] if at[-1] == bins - 1 else limits[at[-1] + 1]
    for percent in percents:
        place = percentile(counts, percent)
        found[f"p{percent}"] = None if place is None else value_of(bins, place)
    return found
