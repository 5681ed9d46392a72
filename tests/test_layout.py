"""Bin geometry: fio's own vectors, edges without gaps, coarsening, and layouts that meet in a merge."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.layout import LogLinear, Mixed, common_layout, fio_layout, parse_layout
from oracles import brute
from strategies import FIO_LAYOUTS, HDR_LAYOUTS, layouts, made, totals

NS, US = fio_layout(29, 1), fio_layout(19, 1000)

# fio stat.c, printed by fio itself: index, lower, upper, midpoint in units of the layout.
VECTORS = [
    (0, 0, 1, 0),
    (63, 63, 64, 63),
    (64, 64, 65, 64),
    (127, 127, 128, 127),
    (128, 128, 130, 129),
    (129, 130, 132, 131),
    (191, 254, 256, 255),
    (192, 256, 260, 258),
    (255, 508, 512, 510),
    (256, 512, 520, 516),
    (927, 778240, 786432, 782336),
    (928, 786432, 794624, 790528),
    (954, 999424, 1007616, 1003520),
    (1215, 16646144, 16777216, 16711680),
    (1216, 16777216, 17039360, 16908288),
    (1855, 17045651456, 17179869184, 17112760320),
]
VALUES = [
    (0, 0),
    (127, 127),
    (128, 128),
    (129, 128),
    (130, 129),
    (255, 191),
    (256, 192),
    (511, 255),
    (512, 256),
    (1000, 317),
    (10_000, 526),
    (100_000, 737),
    (10**6, 954),
    (10**7, 1164),
    (10**8, 1375),
    (10**9, 1591),
    (10**10, 1802),
    (17_179_869_183, 1855),
    (30_000_000_000, 1855),
]
COARSE = [
    (3, 15, 120, 128),
    (3, 16, 128, 144),
    (3, 119, 983_040, 1_048_576),
    (3, 231, 16_106_127_360, 17_179_869_184),
    (6, 14, 524_288, 1_048_576),
    (6, 28, 8_589_934_592, 17_179_869_184),
    (1, 927, 16_911_433_728, 17_179_869_184),
]


@pytest.mark.parametrize(("index", "lower", "upper", "middle"), VECTORS)
@pytest.mark.parametrize("layout", [NS, US], ids=["ns", "us"])
def test_vectors_of_fio(layout: LogLinear, index: int, lower: int, upper: int, middle: int) -> None:
    if index >= layout.bins:
        pytest.skip("past the top of the layout of us")
    unit = layout.unit_ns
    assert (layout.edges[index], layout.edges[index + 1]) == (lower * unit, upper * unit)
    last = index == layout.bins - 1
    assert layout.values[index] == (lower if last else middle) * unit


@pytest.mark.parametrize(("value", "index"), VALUES)
def test_value_to_index(value: int, index: int) -> None:
    assert NS.index(np.array([value])) == [index]
    assert US.index(np.array([value * 1000])) == [min(index, 1215)]


@pytest.mark.parametrize(("coarseness", "index", "lower", "upper"), COARSE)
def test_coarse_vectors_of_fio(coarseness: int, index: int, lower: int, upper: int) -> None:
    layout = fio_layout(29, 1, coarseness)
    assert (layout.edges[index], layout.edges[index + 1]) == (lower, upper)


@pytest.mark.parametrize("layout", FIO_LAYOUTS, ids=str)
def test_fio_edges_are_those_of_the_formula(layout: LogLinear) -> None:
    assert layout.edges.tolist() == brute.edges(layout.bins)
    assert layout.values.tolist() == [brute.value_of(layout.bins, index) for index in range(layout.bins)]


@pytest.mark.parametrize("layout", FIO_LAYOUTS + HDR_LAYOUTS, ids=str)
def test_edges_leave_no_gap_and_values_lie_in_their_bin(layout: LogLinear) -> None:
    assert layout.edges[0] == 0
    assert (np.diff(layout.edges) > 0).all()
    assert len(layout.values) == layout.bins == len(layout.edges) - 1
    assert (layout.edges[:-1] <= layout.values).all() and (layout.values < layout.edges[1:]).all()
    assert not layout.edges.flags.writeable and not layout.values.flags.writeable


@given(layouts, st.integers(0, 2**45))
def test_a_value_lies_in_its_bin(layout: LogLinear, value: int) -> None:
    index = int(layout.index(np.array([value]))[0])
    assert layout.edges[index] <= value
    assert value < layout.edges[index + 1] or index == layout.bins - 1


@given(layouts, st.integers(1, 2**45))
def test_the_stated_error_holds(layout: LogLinear, value: int) -> None:
    """From 2 * half units on; below, where bins are of one width, half a bin (a bin for upper edges) is the bound."""
    index = int(layout.index(np.array([value]))[0])
    distance = abs(int(layout.values[index]) - value)
    if value >= 2 * layout.half * layout.unit_ns:
        assert distance <= layout.error * value or index == layout.bins - 1
    else:
        assert distance < layout.unit_ns << layout.coarseness


def test_error_bounds_as_promised() -> None:
    assert [fio_layout(29, 1, c).error for c in range(7)] == [Fraction(1 << c, 128) for c in range(7)]
    assert HDR_LAYOUTS[0].error == Fraction(1, 128)


@pytest.mark.parametrize("layout", FIO_LAYOUTS + HDR_LAYOUTS, ids=str)
def test_text_form_reads_back(layout: LogLinear) -> None:
    assert parse_layout(str(layout)) == layout


@pytest.mark.parametrize(
    "text", ["", "linear:1", "loglinear:64:1856:1ns:c0:midpoint:ajar", "loglinear:63:1856:1ns:c0:midpoint:open"]
)
def test_text_that_is_no_layout_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a bin layout"):
        parse_layout(text)


@pytest.mark.parametrize("bad", [{"half": 3}, {"reports": "mean"}, {"fine": 0}, {"unit_ns": 0}, {"coarseness": 40}])
def test_impossible_layouts_are_refused(bad: dict) -> None:
    with pytest.raises(ValueError):
        LogLinear(**{"half": 64, "fine": 1856, **bad})


@given(
    st.integers(0, 3), st.integers(0, 3), st.dictionaries(st.integers(0, 1855), st.integers(1, 2**40), min_size=1, max_size=20)
)
def test_coarsening_in_two_steps_is_coarsening_once(first: int, second: int, counts: dict[int, int]) -> None:
    fine = made(NS, [(0, 0, 1, counts)])
    twice = fine.in_layout(fio_layout(29, 1, first)).in_layout(fio_layout(29, 1, first + second))
    once = fine.in_layout(fio_layout(29, 1, first + second))
    assert totals(twice) == totals(once)
    folded: dict = {}
    for slot, count in counts.items():
        key = (fine.table[0], slot >> (first + second))
        folded[key] = folded.get(key, 0) + count
    assert totals(once) == folded


@given(layouts, layouts, st.data())
def test_a_common_layout_keeps_counts_and_reports_no_less(one: LogLinear, two: LogLinear, data: st.DataObject) -> None:
    common = common_layout([one, two])
    assert common == common_layout([two, one])
    for layout in (one, two):
        counts = data.draw(st.dictionaries(st.integers(0, layout.bins - 1), st.integers(1, 1000), min_size=1, max_size=5))
        rows = made(layout, [(0, 0, 1, counts)])
        moved = rows.in_layout(common)
        assert moved.counts.sum() == sum(counts.values())
        if isinstance(common, Mixed):
            for slot in counts:
                assert common.values[int(layout.moved_to(common)[slot])] == layout.values[slot]


@pytest.mark.parametrize(
    ("layouts_met", "expected"),
    [
        ([NS], NS),
        ([NS, fio_layout(29, 1, 3)], fio_layout(29, 1, 3)),
        ([fio_layout(29, 1, 6), NS, fio_layout(29, 1, 2)], fio_layout(29, 1, 6)),
        ([US, fio_layout(19, 1000, 4)], fio_layout(19, 1000, 4)),
    ],
    ids=["one", "finer", "three", "us"],
)
def test_like_layouts_meet_in_the_coarsest(layouts_met: list[LogLinear], expected: LogLinear) -> None:
    assert common_layout(layouts_met) == expected


def test_unlike_units_keep_their_bins_side_by_side() -> None:
    common = common_layout([NS, US])
    assert isinstance(common, Mixed) and common.parts == (US, NS) and common.bins == NS.bins + US.bins
    places = [layout.moved_to(common) for layout in (NS, US)]
    assert sorted(np.concatenate(places).tolist()) == list(range(common.bins))
    for layout, moved in zip((NS, US), places, strict=True):
        assert (common.lower[moved] == layout.edges[:-1]).all() and (common.upper[moved] == layout.edges[1:]).all()
        assert (common.values[moved] == layout.values).all() and np.flatnonzero(common.opened(moved)).tolist() == [
            layout.bins - 1
        ]
