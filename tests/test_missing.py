"""Percentiles of samples of which some are missing: the interval holds the truth, and both of its ends can be reached."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.core.coverage import MOST_ALIKE, NO_LACK, OPEN, UNKNOWN, Caveat, Missing, MissingRows, Possible, sentences
from ingest.core.intervals import Intervals
from ingest.core.layout import fio_layout
from ingest.core.quantiles import Ranked, parse_percentiles
from tests.effort import figure

LAYOUT = fio_layout(29, 1)
TEXTS = ("0", "1", "33.3", "50", "75", "90", "99", "99.9", "100")


def nearest_rank(values: list[float], text: str) -> float:
    """Return the percentile by the definition, in exact fractions."""
    ordered = sorted(values)
    rank = max(1, math.ceil(len(ordered) * Fraction(text) / 100))
    return ordered[rank - 1]


def rows_of(several: list[list[int]]) -> Intervals:
    """Return one row for each list of values, all of which lie in bins of 1 ns."""
    bins, counts, indptr = [], [], [0]
    for values in several:
        found, number = np.unique(np.array(values, np.int64), return_counts=True)
        bins += found.tolist()
        counts += number.tolist()
        indptr.append(len(bins))
    rows = np.arange(len(several))
    arrays = (rows, rows * 10, rows * 10 + 10, np.array(indptr), np.array(bins, np.int64), np.array(counts, np.int64))
    return Intervals(LAYOUT, tuple((f"g{n}",) for n in rows), *arrays)


def lacking_of(entries: list[tuple[int, int, int, int, int]]) -> MissingRows:
    """Return entries of (row, least, most, low, high)."""
    return MissingRows(*(np.array([entry[n] for entry in entries], np.int64) for n in range(5)))


def possible(rows: Intervals, lacking: MissingRows) -> Possible:
    """Return what is possible with the values that bins report."""
    ranked = Ranked(rows)
    return Possible(rows, lacking, ranked.between, ranked.ends)


VALUES = st.integers(0, 120)  # bins of 1 ns: they report what they hold
RANGES = st.tuples(VALUES, VALUES).map(sorted)


@st.composite
def worlds(draw: st.DrawFn) -> list[tuple[list[int], list[tuple[int, int, int, int, list[int]]]]]:
    """Rows: the samples that are there, and entries of (least, most, low, high, the samples that are really missing)."""
    rows = []
    for _ in range(draw(st.integers(1, 4))):
        there = draw(st.lists(VALUES, max_size=12))
        entries = []
        for _ in range(draw(st.integers(0, 3))):
            low, high = draw(RANGES)
            lost = draw(st.lists(st.integers(low, high), max_size=5))
            least = draw(st.integers(0, len(lost)))
            most = max(1, len(lost) + draw(st.integers(0, 3)))
            entries.append((least, most, low, high, lost))
        rows.append((there, entries))
    return rows


def extremes(there: list[int], entries: list[tuple[int, int, int, int, list[int]]], text: str) -> tuple[float, float]:
    """Return the least and largest percentile of all numbers of missing samples, at the bottoms and at the tops."""
    lows, highs = [], []
    for numbers in product(*(range(least, most + 1) for least, most, *_ in entries)):
        bottom = there + [one[2] for one, number in zip(entries, numbers, strict=True) for _ in range(number)]
        top = there + [one[3] for one, number in zip(entries, numbers, strict=True) for _ in range(number)]
        if bottom:
            lows.append(nearest_rank(bottom, text))
            highs.append(nearest_rank(top, text))
    return min(lows), max(highs)


@settings(max_examples=figure(120, 250, 5000))
@given(worlds(), st.sampled_from(TEXTS))
def test_the_interval_holds_the_truth_and_both_ends_can_be_reached(
    world: list[tuple[list[int], list[tuple[int, int, int, int, list[int]]]]], text: str
) -> None:
    rows = rows_of([there for there, _ in world])
    flat = [(row, *entry[:4]) for row, (_, entries) in enumerate(world) for entry in entries]
    (percentile,) = parse_percentiles(text)
    found = possible(rows, lacking_of(flat)) if flat else possible(rows, NO_LACK)
    low, high = found.between(percentile)
    assert found.rows.tolist() == sorted({row for row, *_ in flat})
    for place, row in enumerate(found.rows.tolist()):
        there, entries = world[row]
        assert (low[place], high[place]) == extremes(there, entries, text)
        truth = there + [value for *_, lost in entries for value in lost]
        if truth:
            assert low[place] <= nearest_rank(truth, text) <= high[place]


def test_samples_in_unknown_number_may_be_as_many_as_it_takes() -> None:
    rows = rows_of([[50, 60, 70]])
    found = possible(rows, lacking_of([(0, 0, UNKNOWN, 55, OPEN)]))
    median, least, most = parse_percentiles("50,0,100")
    assert [float(end[0]) for end in found.between(median)] == [55, math.inf]
    assert [float(end[0]) for end in found.between(least)] == [50, 50]
    assert [float(end[0]) for end in found.between(most)] == [70, math.inf]
    found = possible(rows, lacking_of([(0, 0, UNKNOWN, 65, 65)]))
    assert [float(end[0]) for end in found.between(median)] == [60, 65]


def test_what_is_missing_above_leaves_low_percentiles_as_they_are() -> None:
    rows = rows_of([list(range(100))])
    found = possible(rows, lacking_of([(0, 1, 1, 110, OPEN)]))
    for text, low, high in (("50", 50, 50), ("99", 99, 99), ("100", 110, math.inf)):
        (percentile,) = parse_percentiles(text)
        assert [float(end[0]) for end in found.between(percentile)] == [low, high]


def test_counts_near_the_largest_do_not_wrap() -> None:
    rows = rows_of([[1, 2]])
    rows.counts[:] = 2**60
    found = possible(rows, lacking_of([(0, 2**60, 2**60, 100, 110)]))
    (percentile,) = parse_percentiles("66.7")
    assert [float(end[0]) for end in found.between(percentile)] == [100, 110]


@pytest.mark.parametrize("count", [None, 3])
def test_an_entry_is_what_was_told_of_it(count: int | None) -> None:
    entry = Missing({"run": "r", "host": "a"}, None, 5, count, 0, None, Caveat("c", "x.log", "s", "do it"))
    assert Missing.from_dict("r", entry.to_dict()) == entry
    assert entry.span[1] == 5


def test_of_many_caveats_that_are_alike_the_first_is_said() -> None:
    """A note for each log and operation of a cluster hid the table below them."""
    damaged = [Caveat("damaged-tail", f"{at}.log", f"{at} samples are not in the log", "use json+") for at in range(9)]
    others = [Caveat("other-kind", "h2", "has another kind"), Caveat("damaged-tail", "h3", "lost some", "look at it")]
    mixed = [damaged[0], others[0], *damaged[1:], others[1]]
    assert sentences(mixed) == (
        "0.log: 0 samples are not in the log (8 more like this); use json+",
        "h2: has another kind",
        "h3: lost some; look at it",
    )
    assert sentences(damaged[:MOST_ALIKE]) == tuple(map(str, damaged[:MOST_ALIKE]))
    assert len(sentences(damaged[: MOST_ALIKE + 1])) == 1
    assert sentences([*others, *others]) == tuple(map(str, others)) and sentences([]) == ()
