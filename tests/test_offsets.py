"""Columns and rows of events: equal to a brute force cell by cell, whatever the period, the rows and the chunks."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.errors import UsageError
from ingest.core.events import Events
from ingest.core.intervals import Intervals, merged
from ingest.core.labels import Series
from ingest.core.offsets import LAYOUT, Order, Periods, Stored, from_bins, shared
from oracles import offsets as oracle

MS, SECOND = oracle.MS, oracle.SECOND
DAY = 86_400 * SECOND
ZERO = 1_789_999_200 * SECOND
NAMES = ("a", "b", "c")
PERIODS = st.sampled_from([100 * MS, SECOND, 60 * SECOND, 3600 * SECOND, DAY, 7 * MS, 1_500_000])
ROWS = st.integers(1, 120)
TIMES = st.one_of(st.integers(ZERO, ZERO + 3 * SECOND), st.integers(ZERO - 2 * DAY, ZERO + 2 * DAY), st.integers(0, 10 * SECOND))
LISTED = st.lists(st.tuples(st.sampled_from(NAMES), TIMES, st.integers(1, 5)), max_size=60)


def events_of(listed, latency=None, weighted=True) -> Events:
    table = tuple(Series(run="r", process=name, kind="service") for name in NAMES)
    codes = np.array([NAMES.index(name) for name, _, _ in listed], np.int64)
    ends = np.array([time for _, time, _ in listed], np.int64)
    weight = np.array([many for _, _, many in listed], np.int64) if weighted else None
    return Events(table, codes, ends, np.array(latency or [0] * len(listed), np.int64), weight)


def cells_of(*parts: Intervals) -> Counter:
    found = Counter()
    for part in parts:
        for entry, row in enumerate(part.row.tolist()):
            key = part.table[part.series[row]]
            name = key.process if isinstance(key, Series) else key[0]
            found[name, int(part.start_ns[row]), int(part.bins[entry])] += int(part.counts[entry])
    return found


@given(listed=LISTED, period=PERIODS, rows=ROWS)
def test_counts_equal_a_brute_force_cell_by_cell(listed, period: int, rows: int) -> None:
    events = events_of(listed)
    placed = Periods(period, rows).placed(events, [(name,) for name in NAMES], events.series)
    assert cells_of(placed) == oracle.cells(listed, period, rows)
    assert (placed.end_ns - placed.start_ns == period).all() and (placed.counts > 0).all()
    single = Periods(period, rows).placed(events_of(listed, weighted=False), [(name,) for name in NAMES], events.series)
    assert cells_of(single) == oracle.cells([(name, time, 1) for name, time, _ in listed], period, rows)


@given(period=PERIODS, rows=ROWS, time=TIMES)
def test_edges_hold_what_rows_hold(period: int, rows: int, time: int) -> None:
    periods = Periods(period, rows)
    assert list(zip(periods.edges[:-1].tolist(), periods.edges[1:].tolist())) == oracle.edges(period, rows)
    row, offset = int(periods.row(np.array([time]))[0]), time % period
    assert periods.edges[row] <= offset < periods.edges[row + 1]
    assert periods.edges[0] == 0 and periods.edges[-1] == period


def test_flamescopes_example_with_exact_arithmetic() -> None:
    """Floats put 5086.2 and 5106.4 one row too low, because 5086.2 mod 1 is 0.19999..."""
    stamps = [
        int(text.replace(".", "")) * 1000 for text in ("5076.100000", "5086.200000", "5096.300000", "5106.400000", "5116.500000")
    ]
    placed = Periods().placed(events_of([("a", stamp, 1) for stamp in stamps]), [("a",)], np.zeros(5, np.int64))
    columns = ((placed.start_ns - 5076 * SECOND) // SECOND).tolist()
    top_first = (49 - placed.bins).tolist()
    assert list(zip(columns, top_first)) == [(0, 44), (10, 39), (20, 34), (30, 29), (40, 24)]
    floats = [50 - int(50 * (stamp / 1e9 % 1)) - 1 for stamp in stamps]
    assert floats == [44, 40, 34, 30, 24]


def test_a_column_begins_with_its_offset_0() -> None:
    placed = Periods().placed(events_of([("a", ZERO - 1, 1), ("a", ZERO, 1)]), [("a",)], np.zeros(2, np.int64))
    assert cells_of(placed) == {("a", ZERO - SECOND, 49): 1, ("a", ZERO, 0): 1}


def test_the_stored_layout_is_linear() -> None:
    assert LAYOUT.edges.tolist() == [MS * at for at in range(1001)]
    assert LAYOUT.values.tolist() == LAYOUT.edges[:-1].tolist()


def test_an_impossible_map_is_refused() -> None:
    for words, reason in (
        ((SECOND, 0), "0 rows"),
        ((SECOND, 1001), "1001 rows"),
        ((999_999, 5), "period of 999999ns"),
        ((8 * DAY, 5), "period of 8d"),
    ):
        with pytest.raises(UsageError, match=reason):
            Periods(*words)
    with pytest.raises(UsageError, match="60 rows in 50ms are finer than the 1 ms"):
        from_bins(stored(events_of([("a", ZERO, 1)])), Periods(50 * MS, 60))
    with pytest.raises(UsageError, match="ask the files"):
        from_bins(stored(events_of([("a", ZERO, 1)])), Periods(1_500_000, 1))


def stored(*chunks: Events, most_held: int = 1 << 20) -> Intervals:
    kept = Stored(most_held)
    parts = []
    for chunk in chunks:
        kept.add(chunk)
        parts += kept.whole()
    return merged([*parts, *kept.rest()])


@given(listed=LISTED.filter(bool), period=PERIODS.filter(lambda period: period % MS == 0), rows=ROWS)
def test_stored_offsets_give_the_same_cells_or_share_milliseconds(listed, period: int, rows: int) -> None:
    if period < rows * MS:
        rows = period // MS
    periods = Periods(period, rows)
    whole, straddling = from_bins(stored(events_of(listed)), periods)
    found = cells_of(whole, shared(straddling, periods)) if len(straddling) else cells_of(whole)
    assert found == oracle.resampled(listed, period, rows)
    assert sum(found.values()) == sum(many for _, _, many in listed)
    if not periods.resampled:
        assert found == oracle.cells(listed, period, rows)


@given(
    listed=st.lists(
        st.tuples(st.sampled_from(NAMES), st.integers(ZERO, ZERO + 20 * SECOND), st.integers(1, 3)), min_size=1, max_size=80
    ),
    latency=st.lists(st.integers(0, 4 * SECOND), min_size=80, max_size=80),
    cuts=st.lists(st.integers(0, 80), max_size=6),
    held=st.sampled_from([1, 5, 1 << 20]),
    in_order=st.sampled_from(["as it comes", "of ends", "of starts"]),
)
def test_windows_are_given_out_once_and_late_events_apart(listed, latency, cuts, held: int, in_order: str) -> None:
    rows = [(*one, took) for one, took in zip(listed, latency)]
    if in_order != "as it comes":
        rows.sort(key=lambda row: row[1] - (row[3] if in_order == "of starts" else 0))
    chunks = [rows[begin:end] for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(rows)])]
    kept, parts = Stored(held), []
    for chunk in chunks:
        kept.add(events_of([row[:3] for row in chunk], [row[3] for row in chunk]))
        parts += kept.whole()
    parts += kept.rest()
    flags = oracle.late([(name, end - took, end) for name, end, _, took in rows])
    expected = Counter()
    for (name, end, many, _), behind in zip(rows, flags):
        expected[name, int(behind), end // SECOND * SECOND, end % SECOND // MS] += many
    found, windows = Counter(), []
    for part in parts:
        series = [part.table[code] for code in part.series.tolist()]
        windows += zip(series, part.start_ns.tolist())
        for row, at, number in zip(part.row.tolist(), part.bins.tolist(), part.counts.tolist()):
            found[series[row].process, series[row].segment, int(part.start_ns[row]), at] += number
    assert found == expected
    assert len(windows) == len(set(windows))
    assert {one.kind for one, _ in windows} == {"offset"}
    if in_order != "as it comes":
        assert not any(flags)


@given(
    rows=st.lists(
        st.tuples(st.sampled_from(NAMES), st.integers(ZERO, ZERO + 9 * SECOND), st.integers(0, 3 * SECOND)), max_size=60
    ),
    cut=st.integers(0, 60),
    far=st.booleans(),
)
def test_what_came_late_is_told_chunk_by_chunk(rows, cut: int, far: bool) -> None:
    if far:  # so far apart that series cannot be laid side by side in 64 bits
        rows = [("b", 0, 0), *rows, ("a", 2**62, 0), *rows]
    order, found = Order(), []
    for part in (rows[:cut], rows[cut:]):
        found += order.late(events_of([(name, end, 1) for name, end, _ in part], [took for _, _, took in part])).tolist()
    assert found == oracle.late([(name, end - took, end) for name, end, took in rows])
