"""Rows without a histogram: what merging, cutting, percentiles and extremes make of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.documents import Whole, told_exact
from ingest.core.errors import InputError
from ingest.core.grid import clipped, coarsened, in_flight, to_windows
from ingest.core.intervals import (
    MOST_SAMPLES,
    NO_BYTES,
    NO_MAX,
    NO_MIN,
    NO_SUM,
    Exact,
    Intervals,
    Sum,
    concatenate,
    merged,
    no_exact,
)
from ingest.core.labels import Series, default_kind, kind_preference
from ingest.core.layout import NO_BINS, common_layout, fio_layout, parse_layout
from ingest.core.quantiles import bounds, extremes, parse_percentiles, percentile_values, saturated, share_below
from ingest.live.watch.tail import OpenWindows
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer
from ingest.read.account import Account
from ingest.read.schedule import with_corrected

MS = 1_000_000
READ = Series(run="r", op="read", kind="completion.mean")


def means(*rows: tuple[int, int, int, int, int | None], moved: list[int | None] | None = None) -> Intervals:
    """Return rows (start ms, end ms, count, mean in ns, maximum in ns or None), and the bytes of each or None."""
    starts, ends, counts, values, highs = zip(*rows, strict=True)
    sums = [count * value for count, value in zip(counts, values, strict=True)]
    return Intervals(
        layout=NO_BINS,
        table=(READ,),
        series=np.zeros(len(rows), np.int64),
        start_ns=np.array(starts, np.int64) * MS,
        end_ns=np.array(ends, np.int64) * MS,
        indptr=np.arange(len(rows) + 1),
        bins=np.zeros(len(rows), np.int64),
        counts=np.array(counts, np.int64),
        exact=told_exact(sums, [None] * len(rows), highs, moved),
    )


def test_a18_layout_without_bins_is_stored_and_read_back() -> None:
    assert str(NO_BINS) == "nobins"
    assert parse_layout("nobins") == NO_BINS
    assert not NO_BINS.has_bins
    assert fio_layout(29, 1).has_bins
    assert common_layout([NO_BINS, NO_BINS]) == NO_BINS


def test_a18_means_are_never_added_to_histograms() -> None:
    fio = fio_layout(29, 1)
    with pytest.raises(InputError, match="never added to histograms"):
        common_layout([NO_BINS, fio])
    with pytest.raises(InputError, match="never added to histograms"):
        NO_BINS.moved_to(fio)
    with pytest.raises(InputError, match="never added to histograms"):
        means((0, 100, 2, 10, None)).in_layout(fio)


def test_a18_merged_means_are_weighted_and_an_unknown_maximum_stays_unknown() -> None:
    rows = merged(
        [means((0, 100, 3, 100, 500)), means((0, 100, 1, 500, 900)), means((100, 200, 1, 7, 9), (100, 200, 1, 9, None))]
    )
    low, high, mean, exact = extremes(rows)
    assert rows.samples.tolist() == [4, 2]
    assert mean.tolist() == [200, 8]
    assert high.tolist()[0] == 900
    assert np.isnan(high[1])
    assert np.isnan(low).all()
    assert not exact.any()


def test_a18_a_row_goes_whole_to_the_window_of_its_middle() -> None:
    rows = merged([to_windows(means((40, 140, 3, 100, 500), (140, 240, 1, 500, 900), (240, 260, 5, 1, 2)), 100 * MS)])
    assert rows.start_ns.tolist() == [0, 100 * MS, 200 * MS]
    assert rows.samples.tolist() == [3, 1, 5]
    assert extremes(rows)[2].tolist() == [100, 500, 1]
    assert extremes(rows)[1].tolist() == [500, 900, 2]


def test_a18_a_range_takes_rows_whole() -> None:
    rows = means((0, 100, 1, 1, None), (100, 200, 2, 1, None), (200, 300, 4, 1, None))
    assert clipped(rows, 50 * MS, 150 * MS).samples.tolist() == [2]
    assert clipped(rows, 49 * MS, None).samples.tolist() == [1, 2, 4]
    assert clipped(rows, None, 149 * MS).samples.tolist() == [1]


def test_a18_no_percentile_but_the_maximum() -> None:
    rows = means((0, 100, 1000, 100, 500), (100, 200, 1000, 100, None))
    for text in ("0", "50", "99"):
        assert np.isnan(percentile_values(rows, parse_percentiles(text)[0])).all()
    (most,) = parse_percentiles("100")
    assert percentile_values(rows, most).tolist()[0] == 500
    assert np.isnan(percentile_values(rows, most)[1])
    assert np.isnan(bounds(rows, parse_percentiles("50")[0])).all()
    assert np.isnan(share_below(rows, 10**9)).all()
    assert not saturated(rows).any()


def test_a18_table_of_means_has_empty_cells() -> None:
    answer = Answer((means((0, 100, 10, 100, None)).relabelled(lambda _: ()),), (), 100 * MS, READ.kind, ("r",), {}, False, 1)
    table = percentiles(answer, Wanted(parse_percentiles("50,99"), below_ns=(1000,), bounds=True))
    assert table.columns["count"].tolist() == [10]
    assert table.columns["mean"].tolist() == [100]
    assert table.columns["rate"].tolist() == [100]
    for name in ("min", "max", "p50", "p99", "p99_lo", "p99_hi", "below_1us"):
        assert np.isnan(table.columns[name]).all(), name


def test_a18_in_flight_cannot_be_had_of_means() -> None:
    with pytest.raises(InputError, match="in flight"):
        in_flight(means((0, 100, 1, 1, None)), 100 * MS)


def test_a18_means_are_not_corrected() -> None:
    assert len(list(with_corrected(iter([means((0, 100, 1, 10**9, None))]), 1000, Account()))) == 1


def test_a18_means_are_the_default_kind_only_where_nothing_has_bins() -> None:
    assert default_kind(["completion.mean", "submission.mean", "total.mean"]) == "total.mean"
    assert default_kind(["total.mean", "completion"]) == "completion"
    assert default_kind(["total.mean", "completion.corrected", "submission.in-flight"]) != "total.mean"
    assert default_kind(["offset", "completion.mean"]) == "completion.mean"
    assert kind_preference("completion.mean") < kind_preference("offset")


def test_a18_unknown_values_survive_the_form_that_stores_keep() -> None:
    found = told_exact([5, None, 7, None], [None, None, 1, None], [3, None, None, 4], [None, 0, 9, None])
    assert found.known.tolist() == [True, False, True, True]
    assert found.known_sum.tolist() == [True, False, True, False]
    assert found.min_ns.tolist() == [NO_MIN, 0, 1, NO_MIN]
    assert found.max_ns.tolist() == [3, 0, NO_MAX, 4]
    assert found.sum_ns.tolist() == [5, 0, 7, NO_SUM]
    assert found.moved.tolist() == [NO_BYTES, 0, 9, NO_BYTES]
    assert isinstance(found, Exact)
    assert told_exact([5], [1], [6], [None]).bytes is None


amounts = st.one_of(st.integers(0, 5000), st.integers(0, 2**40), st.none())


@st.composite
def moving(draw: st.DrawFn) -> Intervals:
    """Draw rows of means with the bytes that their I/Os moved, of some of them not known."""
    rows, moved = [], []
    for _ in range(draw(st.integers(1, 12))):
        start = draw(st.integers(0, 3000))
        width = draw(st.sampled_from([0, 1, 99, 100, 101, 499, 1700]))
        rows.append((start, start + width, draw(st.integers(1, 50)), draw(st.integers(1, 10**6)), None))
        moved.append(draw(amounts))
    return means(*rows, moved=moved)


def by_window(rows: Intervals, step_ms: int) -> dict[int, int | None]:
    """Return the bytes of each window by a plain loop: a row goes whole where its middle lies, and one that is open leaves all open."""
    found: dict[int, int | None] = {}
    moved = [None if one == NO_BYTES else one for one in rows.exact.moved.tolist()]
    for start, end, one in zip(rows.start_ns.tolist(), rows.end_ns.tolist(), moved, strict=True):
        window = -(-(start + (end - start) // 2) // (step_ms * MS)) - 1
        before = found.get(window, 0)
        found[window] = None if one is None or before is None else before + one
    return found


def told(rows: Intervals, step_ms: int) -> dict[int, int | None]:
    moved = (None if one == NO_BYTES else one for one in (rows.exact or no_exact(len(rows))).moved.tolist())
    return dict(zip((rows.start_ns // (step_ms * MS)).tolist(), moved, strict=True))


@given(rows=moving(), cuts=st.lists(st.integers(0, 12), max_size=3), factor=st.sampled_from([1, 2, 5]))
def test_a18_bytes_are_kept_by_splitting_merging_and_coarsening(rows: Intervals, cuts: list[int], factor: int) -> None:
    edges = sorted({0, len(rows), *(min(one, len(rows)) for one in cuts)})
    pieces = [rows.take(np.arange(low, high)) for low, high in zip(edges, edges[1:])] or [rows]
    expected = by_window(rows, 100)
    windows = [to_windows(piece, 100 * MS) for piece in pieces]
    assert told(merged(windows), 100) == expected
    assert told(merged([merged([one]) for one in windows]), 100) == expected
    assert told(merged(windows[::-1]), 100) == expected
    running = Sum(most_entries=2)
    for one in windows:
        running.add(one)
    assert told(merged(running.parts()), 100) == expected
    coarse = merged([coarsened(merged(windows), factor * 100 * MS)])
    joined: dict[int, int | None] = {}
    for window, one in expected.items():
        before = joined.get(window // factor, 0)
        joined[window // factor] = None if one is None or before is None else before + one
    assert told(coarse, factor * 100) == joined
    together = concatenate(windows)
    if all(one is not None for one in expected.values()):
        assert sum(joined.values()) == int(rows.exact.moved.sum()) == int(together.exact.moved.sum())


@given(rows=moving())
def test_a18_bytes_are_kept_while_windows_are_held(rows: Intervals) -> None:
    windows = merged([to_windows(rows, 100 * MS)])
    whole = Whole()
    found = [
        *whole.add([windows.take(np.arange(len(windows) // 2))]),
        *whole.add([windows.take(np.arange(len(windows) // 2, len(windows)))]),
    ]
    assert told(merged([*found, *whole.rest()]), 100) == told(windows, 100)
    held = OpenWindows()
    held.add([windows])
    again = OpenWindows(json.loads(json.dumps(held.state())))
    [before], [after] = held.add([windows]), again.add([windows])
    assert told(before, 100) == told(after, 100)


def test_a18_bytes_past_what_can_be_counted_are_unknown_and_never_wrap() -> None:
    rows = merged([means((0, 100, 1, 1, None), moved=[MOST_SAMPLES - 1]), means((0, 100, 1, 1, None), moved=[7])])
    assert rows.exact.moved.tolist() == [NO_BYTES]
    assert rows.exact.known_sum.tolist() == [True]
    rows = merged([means((0, 100, 1, 1, None), moved=[MOST_SAMPLES - 7]), means((0, 100, 1, 1, None), moved=[7])])
    assert rows.exact.moved.tolist() == [MOST_SAMPLES]
