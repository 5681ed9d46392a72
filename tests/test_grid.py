"""The time grid: no count is lost, rows are cut by the rule of the design, and weights of an I/O sum to one."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.grid import (
    MOST_EXACT,
    STEPS,
    _rounded_share,
    clipped,
    coarsened,
    in_flight,
    stored_step,
    to_windows,
    window_start,
)
from ingest.core.intervals import Intervals, merged
from oracles import brute
from strategies import FIO_LAYOUTS, check, intervals, made, per_key, totals

MS = 1_000_000
SECOND = 1000 * MS
COARSE = FIO_LAYOUTS[6]
STEP_NS = st.sampled_from([100 * MS, 300 * MS, SECOND, 7 * SECOND, 1_234_567, 3600 * SECOND])


def plain(rows: Intervals) -> list[tuple[int, brute.Row]]:
    """Return (series code, row of the oracle)."""
    found = []
    for number, code in enumerate(rows.series):
        held = range(rows.indptr[number], rows.indptr[number + 1])
        counts = {int(rows.bins[at]): int(rows.counts[at]) for at in held}
        found.append((int(code), (int(rows.start_ns[number]), int(rows.end_ns[number]), counts)))
    return found


@given(intervals(), STEP_NS)
def test_windows_are_those_of_the_oracle(rows: Intervals, step: int) -> None:
    if step < 100 * MS:
        step = 100 * MS + step
    expected: dict[tuple, Counter[int]] = {}
    for code, row in plain(rows):
        for start, counts in brute.split(row, step):
            expected.setdefault((rows.table[code], start, start + step), Counter()).update(counts)
    found = per_key(merged([to_windows(rows, step)]))
    kept = {key: {slot: n for slot, n in counts.items() if n} for key, counts in expected.items()}
    assert found == {key: counts for key, counts in kept.items() if counts}


@given(
    st.lists(st.tuples(st.integers(1, 1 << 51), st.integers(1, 1 << 20), st.integers(0, 2)), min_size=1, max_size=5), st.data()
)
def test_shares_are_rounded_to_the_nearest_number_halves_to_even(cases: list[tuple[int, int, int]], data: st.DataObject) -> None:
    counts = [min(count, MOST_EXACT // bottom + beyond) for count, bottom, beyond in cases]
    tops = [data.draw(st.integers(0, bottom)) for _, bottom, _ in cases]
    bottoms = [bottom for _, bottom, _ in cases]
    rounded = _rounded_share(*(np.array(column, np.int64) for column in (counts, tops, bottoms)))
    assert rounded.tolist() == [
        round(Fraction(count * top, bottom)) for count, top, bottom in zip(counts, tops, bottoms, strict=True)
    ]


@given(intervals(), st.sampled_from([100 * MS, 300 * MS, SECOND]), st.sampled_from([1, 2, 7, 60]))
def test_windows_of_a_multiple_are_sums_of_stored_windows(rows: Intervals, stored: int, multiple: int) -> None:
    step = stored * multiple
    direct = per_key(merged([to_windows(rows, step, stored)]))
    assert direct == per_key(merged([coarsened(to_windows(rows, stored), step)]))
    expected: dict[tuple, Counter[int]] = {}
    for code, row in plain(rows):
        for start, counts in brute.windows([row], step, stored).items():
            expected.setdefault((rows.table[code], start, start + step), Counter()).update(counts)
    assert direct == expected


@given(intervals(), STEP_NS)
def test_windows_keep_every_count_of_every_bin(rows: Intervals, step: int) -> None:
    step = max(step, 50 * MS)
    cut = to_windows(rows, step)
    check(cut)
    assert totals(cut) == totals(rows)
    assert (cut.start_ns % step == 0).all() and (cut.end_ns == cut.start_ns + step).all()


def test_the_example_of_the_module() -> None:
    row = made(FIO_LAYOUTS[4], [(0, 9200 * MS, 10_200 * MS, {40: 3, 41: 2})])
    cut = to_windows(row, 10 * SECOND)
    assert [row for _, row in plain(cut)] == [(0, 10 * SECOND, {40: 2, 41: 2}), (10 * SECOND, 20 * SECOND, {40: 1})]


@pytest.mark.parametrize(
    ("name", "start", "end", "window"),
    [
        ("inside", 1100, 1900, 1000),
        ("whole window", 1000, 2000, 1000),
        ("point on an edge", 2000, 2000, 1000),
        ("point inside", 1500, 1500, 1000),
        ("ends on an edge", 1500, 2000, 1000),
        ("begins on an edge", 2000, 2001, 2000),
        ("before 1970", -1500, -1200, -2000),
    ],
)
def test_which_window_a_row_lies_in(name: str, start: int, end: int, window: int) -> None:
    [row] = plain(to_windows(made(COARSE, [(0, start * MS, end * MS, {1: 7})]), SECOND))
    assert row[1] == (window * MS, window * MS + SECOND, {1: 7}), name


def test_counts_near_the_top_of_int64_are_cut_exactly() -> None:
    counts = {1: 2**60 + 1, 2: 2**59 + 3}
    row = (1, 3 * SECOND - 2, counts)
    found = [part for _, part in plain(to_windows(made(COARSE, [(0, *row)]), SECOND))]
    assert [(start, part) for start, _, part in found] == brute.split(row, SECOND)


@given(intervals(), st.integers(0, 30_000))
def test_what_lies_before_and_after_adds_up(rows: Intervals, at_ms: int) -> None:
    at = at_ms * MS
    before, after = clipped(rows, None, at), clipped(rows, at, None)
    check(before)
    check(after)
    joined = Counter(totals(before))
    joined.update(totals(after))
    assert joined == Counter(totals(rows))
    assert (before.end_ns <= at).all() and (after.end_ns > at).all() and (after.start_ns >= at).all()


@given(intervals(), st.integers(0, 15_000), st.integers(0, 15_000))
def test_clipping_twice_is_clipping_once(rows: Intervals, from_ms: int, length_ms: int) -> None:
    low, high = from_ms * MS, (from_ms + length_ms) * MS
    both = clipped(rows, low, high)
    check(both)
    assert totals(both) == totals(clipped(clipped(rows, low, None), None, high))
    assert (both.start_ns >= low).all() and (both.end_ns <= high).all()


@given(intervals(), st.sampled_from([2, 3, 10]))
def test_widening_windows_keeps_every_count(rows: Intervals, multiple: int) -> None:
    windows = to_windows(rows, SECOND)
    wide = merged([coarsened(windows, multiple * SECOND)])
    assert totals(wide) == totals(rows)
    assert (wide.start_ns % (multiple * SECOND) == 0).all()


@pytest.mark.parametrize(
    ("width_ms", "step_ms"),
    [(1, 100), (110, 100), (112, 1000), (500, 1000), (1000, 1000), (1111, 1000), (1112, 5000), (10**9, 3_600_000)],
)
def test_the_stored_step_is_the_smallest_of_nine_tenths_of_a_row(width_ms: int, step_ms: int) -> None:
    assert stored_step(width_ms * MS) == step_ms * MS
    assert step_ms * MS in STEPS


@pytest.mark.parametrize(("stamp", "start"), [(0, -10), (1, 0), (10, 0), (11, 10), (-1, -10)])
def test_a_window_holds_its_end_not_its_start(stamp: int, start: int) -> None:
    assert window_start(np.array([stamp]), 10).tolist() == [start]


@given(intervals(most=4), STEP_NS)
def test_in_flight_weights_of_an_io_add_up_to_one(rows: Intervals, step: int) -> None:
    step = max(step, 100 * MS)
    spread = in_flight(rows, step)
    check(spread)
    assert totals(spread) == {key: count * 65_536 for key, count in totals(rows).items()}
    assert spread.completions.sum() == rows.counts.sum()


@given(intervals(most=4), STEP_NS)
def test_in_flight_weights_are_shares_of_the_latency(rows: Intervals, step: int) -> None:
    """Brute force in fractions: an I/O of value v that completes at the middle M of its row is under way in (M - v, M]."""
    step = max(step, 100 * MS)
    expected: dict[tuple, Fraction] = {}
    completed: Counter = Counter()
    entries: Counter = Counter()
    for code, (start, end, counts) in plain(rows):
        middle = start + (end - start) // 2
        for slot, count in counts.items():
            value = brute.value_of(29, slot)
            last = brute.window_of(middle, step)
            window = min((middle - value) // step * step, last)
            while window <= last:
                inside = min(window + step, middle) - max(window, middle - value)
                share = Fraction(inside, value) if value else Fraction(1)
                expected[code, window, slot] = expected.get((code, window, slot), Fraction(0)) + share * count * 65_536
                entries[code, window, slot] += count
                window += step
            completed[code, last] += count
    found: dict[tuple, int] = {}
    spread = in_flight(rows, step)
    for number, (code, (start, _, counts)) in enumerate(plain(spread)):
        assert spread.completions[number] == completed[code, start]
        for slot, weight in counts.items():
            found[code, start, slot] = weight
    for key in expected.keys() | found.keys():
        assert abs(found.get(key, 0) - expected.get(key, Fraction(0))) <= entries[key]
