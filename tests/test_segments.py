"""One layout a series, numbered in the order of the source, whatever pieces it comes in."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.intervals import Intervals, Segments
from ingest.core.labels import Series
from ingest.core.layout import fio_layout, hdr_layout

LAYOUTS = (fio_layout(29, 1), fio_layout(29, 1, 2), hdr_layout(2, 0, 1000), hdr_layout(3, 0, 1))
SERIES = tuple(Series(run="r", op=op, segment=segment) for op in ("read", "write") for segment in (0, 1, 2))
ROWS = st.lists(st.tuples(st.integers(0, len(SERIES) - 1), st.integers(0, len(LAYOUTS) - 1)), max_size=12)


def rows(codes: list[int], layout: int) -> Intervals:
    series, ones = np.array(codes, np.int64), np.arange(len(codes), dtype=np.int64)
    return Intervals(LAYOUTS[layout], SERIES, series, ones, ones + 1, np.arange(len(codes) + 1), ones * 0, ones * 0 + 1)


def told(segments: Segments, found: list[tuple[int, int]], cut: int) -> list[Series]:
    """Pieces of equal layout, or single rows; `cut` is after how many the state is kept and taken up."""
    names: list[Series] = []
    for number, (code, layout) in enumerate(found):
        if number == cut:
            segments = Segments(json.loads(json.dumps(segments.state())))
        part = segments.apart(rows([code], layout))
        names += [part.table[one] for one in part.series.tolist()]
    return names


def plain(found: list[tuple[int, int]]) -> list[Series]:
    """The same, by the words of the rule: the first number that nothing of these labels has, from its own on."""
    names: dict[tuple[int, int], Series] = {}
    for code, layout in found:
        if (code, layout) not in names:
            own = SERIES[code]
            numbers = (number for number in range(own.segment, 99))
            names[code, layout] = next(
                one for one in (own.replaced(segment=number) for number in numbers) if one not in names.values()
            )
    return [names[one] for one in found]


@given(ROWS, st.integers(0, 12))
def test_b1_each_series_has_one_layout_however_the_rows_come(found: list[tuple[int, int]], cut: int) -> None:
    names = told(Segments(), found, cut)
    assert names == plain(found) == told(Segments(), found, -1)
    layouts: dict[Series, set[int]] = {}
    for name, (_, layout) in zip(names, found):
        layouts.setdefault(name, set()).add(layout)
    assert all(len(one) == 1 for one in layouts.values())


@given(st.lists(st.tuples(st.lists(st.integers(0, len(SERIES) - 1), min_size=1, max_size=5), st.integers(0, 3)), max_size=6))
def test_b1_rows_of_one_piece_are_named_in_their_order(pieces: list[tuple[list[int], int]]) -> None:
    segments, names = Segments(), []
    for codes, layout in pieces:
        before = rows(codes, layout)
        part = segments.apart(before)
        names += [part.table[one] for one in part.series.tolist()]
        assert part.counts.tolist() == before.counts.tolist() and part.start_ns.tolist() == before.start_ns.tolist()
    assert names == plain([(code, layout) for codes, layout in pieces for code in codes])


def test_b1_a_source_of_one_layout_is_left_as_it_is() -> None:
    before = rows([0, 1, 0], 0)
    assert Segments().apart(before) is before
