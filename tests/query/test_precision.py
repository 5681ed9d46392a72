"""The stated bound of an answer holds: of every layout that a reader can make, alone and merged, against the sorted samples."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import tailboard
from effort import figure
from ingest.core.documents import pack, unpack
from ingest.core.intervals import Exact, Intervals, merged
from ingest.core.layout import Layout, LogLinear, Mixed, common_layout, fio_layout, hdr_layout, parse_layout
from ingest.core.quantiles import Ranked, censored, extremes, parse_percentiles, percentile_values, saturated
from ingest.query.files import Files
from ingest.query.precision import Precision, of_bins, precision_from, precision_in, precision_of, together
from ingest.query.question import Question
from ingest.read.hdr.payload import Geometry, Layouts
from ingest.read.operations import events_layout
from ingest.store.elastic.documents import bins_of
from ingest.view.hlog import text as hgrm_text
from ingest.view.terminal.tables import bound_text
from strategies import made

DATA = Path(__file__).parents[1] / "data" / "precision"
# Of lowest20000.hlog, from the values that were recorded in it (60,000 of them): nearest ranks and mean in ns.
TRUTH = {"1": 24_799, "50": 99_182, "90": 213_471, "99": 397_245}
MEAN = 118_859.51693333333
MOST_DIGITS = figure(3, 3, 5)  # bins of 5 digits are 50 MB a layout

FIO = [fio_layout(groups, unit, c) for groups, unit in ((29, 1), (19, 1000), (29, 1000), (37, 1)) for c in range(7)]
HDR = [
    hdr_layout(digits, magnitude, recorded)
    for digits in range(MOST_DIGITS + 1)
    for magnitude in (0, 5, 14)
    for recorded in (1, 3, 1000, 1_000_000)  # 3: a ratio of double histograms
]
EVENTS = [events_layout(digits) for digits in range(MOST_DIGITS + 1)]


def _double(digits: int, ratio: float, magnitude: int) -> LogLinear:
    found = Layouts(1000).of(Geometry(digits, magnitude, ratio))
    assert not isinstance(found, str)
    return found.layout


DOUBLES = [_double(digits, ratio, magnitude) for digits in (0, 2, 3) for ratio in (2.0**-20, 1.1e-3) for magnitude in (0, 14)]
LAYOUTS = FIO + HDR + EVENTS + DOUBLES
PERCENTS = ("0", "1", "10", "50", "75", "90", "99", "99.9", "100")


@st.composite
def recordings(draw: st.DrawFn) -> list[tuple[LogLinear, list[int]]]:
    """Draw one to three layouts, each with latencies in whole units of what was recorded."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        layout = draw(st.sampled_from(LAYOUTS))
        most = int(layout.edges[-1]) // layout.recorded_unit - 1
        units = st.one_of(st.integers(0, min(most, 300)), st.integers(0, min(most, 1 << 20)), st.integers(0, min(most, 1 << 34)))
        found.append((layout, [unit * layout.recorded_unit for unit in draw(st.lists(units, min_size=1, max_size=30))]))
    return found


def rows_of(layout: LogLinear, values: list[int]) -> Intervals:
    """Return one row with the histogram of values, found by looking at each edge in turn."""
    held: dict[int, int] = {}
    for value in values:
        low, high = 0, layout.bins - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if int(layout.edges[middle]) <= value else (low, middle - 1)
        held[low] = held.get(low, 0) + 1
    return made(layout, [(0, 0, 1, held)])


def within(shown: float, true: float, bound: Precision) -> bool:
    """Return whether a latency lies as near to the recorded one as the bound says."""
    distance = abs(Fraction(shown) - Fraction(true))
    near = distance <= Fraction(bound.share) * Fraction(true) * (1 + Fraction(1, 10**12))
    return near or (shown <= bound.low_ns and distance <= bound.off_ns)


def spans(layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest latency in ns that a sample in each bin can have; 2^63 - 1 where there is no highest."""
    every = np.arange(layout.bins)
    low, high = layout.lowest_of(every), layout.upper - layout.recorded_unit
    if isinstance(layout, Mixed):
        high = layout.tops_of(every)
    return low, np.where(layout.opened(every), np.iinfo(np.int64).max, np.maximum(high, low))


def holds(common: Layout, bins: np.ndarray, low: np.ndarray, high: np.ndarray) -> bool:
    """Return whether samples between `low` and `high` that were put into bins are where these say."""
    least, most = (side[bins] for side in spans(common))
    shown = common.values[bins]
    opened = common.opened(bins)
    return bool((least <= low).all() and (most >= high).all() and (shown[opened] <= low[opened]).all())


SAMPLES = list(dict.fromkeys(layout for layout in LAYOUTS if layout.bins <= 6000))


@pytest.mark.parametrize("one", [layout for layout in SAMPLES if layout.half <= figure(16, 64, 1024)], ids=str)
def test_merged_bins_hold_what_they_say_whichever_layouts_meet(one: LogLinear) -> None:
    """Every bin of every pair: also where a bin of a closed layout straddles the edge that an open one ends at."""
    for other in SAMPLES:
        common = common_layout((one, other))
        assert common == common_layout((other, one)) == common_layout((common, one)) == common_layout((common, other))
        assert parse_layout(str(common)) == common
        assert (np.diff(common.tops_of(np.arange(common.bins))) >= 0).all() and (np.diff(common.keys) > 0).all()
        for layout in (one, other):
            assert holds(common, layout.moved_to(common), *spans(layout)), (layout, common)


@settings(max_examples=figure(100, 500, 20_000))
@given(*[st.sampled_from(SAMPLES)] * 3)
def test_what_was_merged_may_be_merged_again(one: LogLinear, two: LogLinear, three: LogLinear) -> None:
    first = common_layout((one, two))
    common = common_layout((first, three))
    for layout in (one, two):
        assert holds(common, first.moved_to(common)[layout.moved_to(first)], *spans(layout))
    assert holds(common, three.moved_to(common), *spans(three))
    assert common == common_layout((one, two, three)) == common_layout((one, common_layout((two, three))))


@pytest.mark.parametrize(
    ("closed", "at"),
    [
        (hdr_layout(0, 0, 1000), 16_400_000_000),
        (hdr_layout(0, 14, 1_000_000), 17_000_000_000),
        (fio_layout(19, 1000), 16_643_500_000),
    ],
    ids=["0 digits", "ms x 2^14", "two units of fio"],
)
def test_a_bin_that_straddles_the_last_edge_of_others_keeps_its_own_edges(closed: LogLinear, at: int) -> None:
    """An open bin that holds nothing is no reason for `>=`: the bin of `at` has an upper edge."""
    parts = [rows_of(closed, [at]), rows_of(fio_layout(29, 1), [1000])]
    total = merged(parts)
    (most,) = parse_percentiles("100")
    (opened,) = censored(total, [most])
    low, high = (int(closed.edges[closed.index(np.array([at]))[0] + side]) for side in (0, 1))
    for shown in (percentile_values(total, most), percentile_values(total, most, interpolate=True), extremes(total)[1]):
        assert not opened[0] and low <= at <= shown[0] <= high


def test_nothing_is_known_of_how_samples_are_spread_in_the_open_last_bin() -> None:
    layout = fio_layout(29, 1)
    rows = made(layout, [(0, 0, 1, {layout.bins - 1: 10})])
    (median,) = parse_percentiles("50")
    assert percentile_values(rows, median, interpolate=True) == [layout.edges[-2]]


@pytest.mark.slow
@settings(max_examples=figure(60, 200, 5000))
@given(recordings(), st.booleans())
def test_b5_the_true_value_lies_within_the_stated_bound(found: list, exact: bool) -> None:
    """Percentiles, mean, minimum and maximum, with and without exact extremes, through documents of both stores."""
    parts = [rows_of(layout, values) for layout, values in found]
    truth = sorted(value for _, values in found for value in values)
    total = merged(parts)
    layout = total.layout
    assert layout == common_layout(layout for layout, _ in found) == parse_layout(str(layout))
    for part in (*parts, total):  # what stores keep gives the same bins back
        packed = pack(part)
        indptr, bins, counts = unpack(packed.coding, packed.blobs.each())
        assert (indptr.tolist(), bins.tolist(), counts.tolist()) == (
            part.indptr.tolist(),
            part.bins.tolist(),
            part.counts.tolist(),
        )
        assert bins_of(part.layout, part.layout.keys[part.bins]).tolist() == part.bins.tolist()
    if exact:
        told = (np.array([number]) for number in (truth[0], truth[-1], sum(truth)))
        total = Intervals(
            **{**{name: getattr(total, name) for name in Intervals.__slots__}, "exact": Exact(*told, np.array([True]))}
        )
    low, high, mean, _ = (column[0] for column in extremes(total))
    above = bool(saturated(total)[0])
    assert low <= truth[0] and (high >= truth[-1] or above)
    assert low <= mean <= high
    for percent in PERCENTS:
        wanted = parse_percentiles(percent)
        shown = percentile_values(total, wanted[0])[0]
        if math.isnan(shown):
            continue
        true = truth[max(math.ceil(Fraction(len(truth)) * Fraction(percent) / 100), 1) - 1]
        bound = precision_of([total], wanted)
        assert bound is not None and low <= shown <= high
        opened = bool(censored(total, wanted)[0][0])
        assert shown <= true if opened else within(shown, true, bound), (percent, shown, true, bound)
        spread = percentile_values(total, wanted[0], interpolate=True)[0]
        wide = precision_in(Ranked(total), wanted, interpolate=True)
        assert wide is not None
        assert spread <= true if opened else within(spread, true, wide), (percent, spread, true, wide)
    every = precision_from([total])
    assert every is not None
    true = sum(truth) / len(truth)
    assert above or abs(mean - true) <= every.share * true * (1 + 1e-9) + every.off_ns, (
        mean,
        every,
    )


@pytest.mark.slow
@given(recordings(), st.integers(50, 100))
def test_the_bound_from_a_percentile_on_is_that_of_all_of_them(found: list, percent: int) -> None:
    total = merged([rows_of(layout, values) for layout, values in found])
    bound = precision_from([total], parse_percentiles(f"{percent}")[0])
    for number in range(percent, 101):
        one = precision_of([total], parse_percentiles(f"{number}"))
        assert one is not None and bound is not None and together([one, bound]) == bound


def test_b5_the_bound_of_a_log_of_jhiccup() -> None:
    """Its first bins are 16 us wide: the nominal 0.78 % was false by a factor of 40."""
    answer = Files([DATA / "lowest20000.hlog"]).answer(Question(step="all"))
    (part,) = answer.parts
    for percent, true in TRUTH.items():
        wanted = parse_percentiles(percent)
        shown, bound = percentile_values(part, wanted[0])[0], precision_of([part], wanted)
        assert bound is not None and within(shown, true, bound)
        assert bound.share >= abs(shown - true) / true
    assert extremes(part)[2][0] == pytest.approx(MEAN, rel=1e-3)
    assert precision_of([part], parse_percentiles("99")) == Precision(pytest.approx(1 / 24, rel=1e-3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "said"), [("99", "error bound ± 4.2 %"), ("50,99", "error bound ± 17 %"), ("1,99", "± 100 %")]
)
def test_b5_the_heading_says_the_bound_of_what_is_shown(wanted: str, said: str) -> None:
    shown = tailboard("percentiles", DATA / "lowest20000.hlog", "-p", wanted, "--step", "all").stdout
    assert said in shown


def test_bounds_in_words() -> None:
    coarse = hdr_layout(2, 14, 1)
    assert bound_text(None) == "none"
    assert bound_text(of_bins(fio_layout(29, 1), np.array([500]))) == "± 0.78 %"
    assert bound_text(of_bins(coarse, np.array([0, 3]))) == "± 33 %, below 16.4µs by up to 16.4µs"
    assert bound_text(of_bins(fio_layout(29, 1, 6), np.array([0, 20]))) == "± 50 %, below 64ns by up to 32ns"
    assert bound_text(of_bins(fio_layout(29, 1), np.array([1855]))) == "± 0.78 %"  # shown as >=


def test_b6_one_mean_by_the_middles_of_bins() -> None:
    """HdrHistogram's highest values made it 2.8 % too high, and the hgrm export said another number."""
    layout = hdr_layout(2, 0, 1)
    held = {200: 3, 500: 5, 900: 2}
    middles = {200: 200, 500: 500, 900: 900}
    rows = made(layout, [(0, 0, 1, held)])
    for slot in held:
        low, high = int(layout.edges[slot]), int(layout.edges[slot + 1])
        middles[slot] = low + (high - low) // 2  # Java: lowestEquivalentValue + (sizeOfEquivalentValueRange >> 1)
    mean = sum(middles[slot] * count for slot, count in held.items()) / 10
    assert extremes(rows)[2].tolist() == [mean]
    assert f"#[Mean    = {mean:12.2f}," in hgrm_text(rows, 1)


def test_b7_percentiles_lie_within_exact_extremes() -> None:
    """p99 said 1,000,447 where all values are 1,000,000."""
    layout = fio_layout(29, 1)
    slot = int(layout.index(np.array([1_000_000]))[0])
    rows = made(layout, [(0, 0, 1, {slot: 1000})])
    for low, high in ((1_000_000, 1_000_000), (999_425, 999_430), (1_007_000, 1_007_600)):
        exact = Exact(np.array([low]), np.array([high]), np.array([1000 * low]), np.array([True]))
        known = Intervals(**{**{name: getattr(rows, name) for name in Intervals.__slots__}, "exact": exact})
        for percent in ("0", "50", "99", "100"):
            (wanted,) = parse_percentiles(percent)
            for interpolate in (False, True):
                assert low <= percentile_values(known, wanted, interpolate=interpolate)[0] <= high


def test_b7_the_maximum_of_a_histogram_is_a_value_that_it_can_hold() -> None:
    """9 where YCSB says 8: the exclusive edge. Values in units of 1 us, bins from 2 us on of two."""
    rows = made(hdr_layout(3, 0, 1000), [(0, 0, 1, {3: 1, 8: 1})])
    low, high, *_ = extremes(rows)
    assert (low[0], high[0]) == (3000, 8000)
    wide = made(hdr_layout(3, 4, 1000), [(0, 0, 1, {3: 1, 8: 1})])
    assert (extremes(wide)[0][0], extremes(wide)[1][0]) == (48_000, 143_000)
