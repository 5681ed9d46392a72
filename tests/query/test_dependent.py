"""Bounds from whole windows: against brute force over plain samples, against tables of Student's t, and by what they promise."""

from __future__ import annotations

import gc
import math
import weakref
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import figure
from ingest.core.intervals import Intervals
from ingest.core.layout import LogLinear, fio_layout
from ingest.core.quantiles import parse_percentiles
from ingest.query.batch_means import (
    LEAST_BATCHES,
    Ratios,
    Windows,
    batch_length,
    ratio_between,
    student,
    values_between,
    windows_of,
)
from ingest.query.question import Answer

FINE = LogLinear(1 << 15, 1 << 19, reports="highest", open_ended=False)
SECOND = 1_000_000_000
P50, P90, P99 = parse_percentiles("50,90,99")


def rows_of(samples: np.ndarray, layout: LogLinear = FINE) -> Intervals:
    """Return a window for each row of samples in ns, all of one group."""
    binned = [np.unique(layout.index(row.astype(np.int64)), return_counts=True) for row in samples]
    starts = np.arange(len(samples)) * SECOND
    indptr = np.cumsum([0, *(len(bins) for bins, _ in binned)])
    bins, counts = (np.concatenate([pair[place] for pair in binned]) for place in (0, 1))
    return Intervals(layout, (("x",),), np.zeros(len(samples), np.int64), starts, starts + SECOND, indptr, bins, counts)


def windows(*runs: np.ndarray, layout: LogLinear = FINE) -> Windows:
    return windows_of([rows_of(run, layout) for run in runs], SECOND)


def series(noise: np.random.Generator, length: int, correlation: float) -> np.ndarray:
    """Return a stationary AR(1) series of variance 1."""
    values = np.empty(length)
    values[0] = noise.normal()
    for at in range(1, length):
        values[at] = correlation * values[at - 1] + math.sqrt(1 - correlation**2) * noise.normal()
    return values


def latencies(noise: np.random.Generator, length: int, correlation: float = 0.0, by: float = 1.0, each: int = 200) -> np.ndarray:
    """Return windows of lognormal latencies whose level is a series with a correlation between neighbours."""
    level = 0.1 * series(noise, length, correlation)
    return by * np.exp(11 + level[:, None] + 0.5 * noise.normal(size=(length, each)))


# Student's t with `tail` above it, from the table of Abramowitz and Stegun (26.10).
TABLE = [
    *[(3, 0.025, 3.182), (4, 0.025, 2.776), (5, 0.025, 2.571), (10, 0.025, 2.228), (30, 0.025, 2.042), (120, 0.025, 1.980)],
    *[(4, 0.005, 4.604), (8, 0.005, 3.355), (20, 0.005, 2.845), (60, 0.005, 2.660), (5, 0.0005, 6.869), (40, 0.0005, 3.551)],
]


@pytest.mark.parametrize(("freedom", "tail", "value"), TABLE)
def test_students_t_is_that_of_the_tables(freedom: float, tail: float, value: float) -> None:
    assert student(freedom, tail) == pytest.approx(value, abs=0.0006)


@given(st.floats(2, 500), st.floats(0.00005, 0.2))
def test_students_t_leaves_its_tail_above_it(freedom: float, tail: float) -> None:
    """The density of Student's t, added up numerically."""
    freedom = round(freedom, 1)
    first = student(freedom, tail)
    angles = np.linspace(math.atan(first / math.sqrt(freedom)), math.pi / 2, 20_001)
    density = np.cos(angles) ** (freedom - 1)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    assert scale * np.trapezoid(density, angles) == pytest.approx(tail, rel=0.01)


def brute(baseline: np.ndarray, run: np.ndarray, quantile: float, rows: int = 1) -> tuple[float, float]:
    """Return the least and largest possible ratio on a fine grid, from plain samples: every window is a batch."""

    def possible(ratio: float) -> bool:
        both = np.sort(np.concatenate([baseline.ravel(), run.ravel() / ratio]))  # sides of equal size count alike
        value = both[math.ceil(quantile * len(both)) - 1]
        shares = [(baseline > value).mean(axis=1), (run / ratio > value).mean(axis=1)]
        variances = [share.var(ddof=1) / len(share) for share in shares]
        freedom = sum(variances) ** 2 / sum(own**2 / (len(share) - 1) for own, share in zip(variances, shares, strict=True))
        return abs(shares[0].mean() - shares[1].mean()) <= student(freedom, 0.015 / rows) * math.sqrt(sum(variances))

    middle = math.log(np.quantile(run, quantile) / np.quantile(baseline, quantile))
    grid = [ratio for ratio in np.exp(middle + np.arange(-0.5, 0.5, 0.002)) if possible(ratio)]
    return min(grid), max(grid)


@pytest.mark.slow
@pytest.mark.parametrize("percentile", [P50, P90, P99], ids=str)
def test_bounds_are_those_of_plain_samples_where_windows_do_not_depend_on_one_another(percentile, monkeypatch) -> None:
    monkeypatch.setattr("ingest.query.batch_means.batch_length", lambda *_: 1)
    for seed in range(figure(3, 8, 24)):
        noise = np.random.default_rng(seed)
        baseline, run = latencies(noise, 40), latencies(noise, 40, by=1.3)
        quantile = float(percentile.text) / 100
        ratio = np.quantile(run, quantile) / np.quantile(baseline, quantile)
        low, high = ratio_between(windows(baseline), windows(run), percentile, ratio, rows=1 + seed)
        wanted = brute(baseline, run, quantile, rows=1 + seed)
        assert low == pytest.approx(wanted[0], rel=0.015) and high == pytest.approx(wanted[1], rel=0.015)


@settings(max_examples=figure(25, 80, 1000))
@given(st.integers(0, 10**6), st.sampled_from([P50, P90, P99]), st.integers(1, 20))
def test_bounds_of_both_ways_round_are_inverse_and_hold_the_ratio(seed: int, percentile, rows: int) -> None:
    noise = np.random.default_rng(seed)
    first, second = (windows(latencies(noise, 60, 0.3, each=60)) for _ in range(2))
    share = 1 - float(percentile.text) / 100
    ratio = second.value_above(share) / first.value_above(share)
    low, high = ratio_between(first, second, percentile, ratio, rows)
    back = ratio_between(second, first, percentile, 1 / ratio, rows)
    assert not low > ratio and not high < ratio
    assert np.allclose([low, high], [1 / back[1], 1 / back[0]], rtol=0.004, equal_nan=True)
    assert not ratio_between(first, second, percentile, ratio, rows + 5)[0] > low * 1.002


@pytest.mark.slow
@pytest.mark.parametrize("percentile", [P50, P90, P99], ids=str)
def test_bounds_of_one_run_hold_the_truth(percentile) -> None:
    """Independent windows of known percentiles, and the mirror: what bounds a percentile bounds the share of samples below it."""
    quantile, held, tries = float(percentile.text) / 100, 0, figure(40, 100, 1000)
    true = math.exp(11 + math.hypot(0.1, 0.5) * NormalDist().inv_cdf(quantile))
    for seed in range(tries):
        side = windows(latencies(np.random.default_rng(1000 + seed), 80, each=60))
        low, high = values_between(side, percentile)
        assert not low > side.value_above(1 - quantile) and not high < side.value_above(1 - quantile)
        held += not (low > true or high < true)
    assert held >= 0.9 * tries
    assert all(math.isnan(bound) for bound in values_between(windows(latencies(np.random.default_rng(1), 4)), percentile))


def test_twice_the_latencies_are_twice_the_bounds() -> None:
    noise = np.random.default_rng(5)
    baseline, run = latencies(noise, 80), latencies(noise, 80)
    once = ratio_between(windows(baseline), windows(run), P90, 1.0)
    twice = ratio_between(windows(baseline), windows(2 * run), P90, 2.0)
    assert np.allclose(np.array(twice) / 2, once, rtol=0.003)


def test_the_width_of_bins_is_in_the_bounds() -> None:
    """All samples in one bin each: true latencies may lie anywhere in it."""
    coarse = fio_layout(29, 1, 4)
    samples = np.full((20, 50), 1000.0)
    low, high = ratio_between(windows(samples, layout=coarse), windows(samples, layout=coarse), P50, 1.0)
    edges = coarse.edges[coarse.index(np.array([1000]))[0] :][:2]
    assert low <= edges[0] / edges[1] * 1.001 and high >= edges[1] / edges[0] * 0.999


def test_batches_are_as_long_as_windows_resemble_their_neighbours() -> None:
    lengths = {}
    for correlation in (0.0, 0.5, 0.9):
        noise = np.random.default_rng(1)
        measured = [batch_length(windows(latencies(noise, 150, correlation, each=60)), P50) for _ in range(11)]
        lengths[correlation] = float(np.median(measured))
    assert lengths[0.0] <= 6 < lengths[0.9] and lengths[0.0] < lengths[0.5] < lengths[0.9]


def test_too_few_windows_have_no_bounds() -> None:
    noise = np.random.default_rng(2)
    few, many = windows(latencies(noise, LEAST_BATCHES - 1)), windows(latencies(noise, 60))
    assert all(math.isnan(bound) for bound in ratio_between(few, many, P50, 1.0))
    assert all(math.isnan(bound) for bound in ratio_between(many, few, P50, 1.0))


def test_the_windows_of_a_comparison_go_with_it() -> None:
    """A page compares by each label in turn: windows that waited for the collector of circles were 200 MB of 160 hosts."""
    rows = rows_of(latencies(np.random.default_rng(3), 100)).keyed((("a",),), np.zeros(100, np.int64))
    sides = [[Answer((rows,), ("host",), 1, "", ("r",), {"r": 0}, relative=False, series=1)] for _ in range(2)]
    ratios = Ratios(sides, [P99])
    low, high = ratios.of([("a",)], P99, np.ones(1))
    assert low[0] < 1 < high[0]
    left = weakref.ref(ratios)
    gc.disable()
    try:
        del ratios
        assert left() is None
    finally:
        gc.enable()


def test_three_pauses_that_fall_on_one_side_are_no_evidence() -> None:
    """C1: of six windows in a hundred p99.9 is a pause; chance puts them where it will."""
    noise = np.random.default_rng(3)
    baseline, run = latencies(noise, 60), latencies(noise, 60)
    run[[10, 30, 50], :40] = 1e7
    low, _ = ratio_between(windows(baseline), windows(run), P99, 10.0)
    assert not low > 1


def test_the_spread_between_three_runs_a_side_bounds_their_ratio() -> None:
    """Runs of one machine that differ by 10 % from one another: within each the windows are alike, and would say otherwise."""
    noise = np.random.default_rng(4)
    wrong = {1: 0, 4: 0}
    for _ in range(figure(30, 60)):
        for runs in wrong:
            sides = [
                windows(*(latencies(noise, 30, by=math.exp(0.1 * noise.normal()), each=40) for _ in range(runs))) for _ in "ab"
            ]
            ratio = sides[1].value_above(0.5) / sides[0].value_above(0.5)
            low, high = ratio_between(*sides, P50, ratio)
            wrong[runs] += low > 1 or high < 1
    assert wrong[4] <= 4 < wrong[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("correlation", "most_certain", "most_silent"), [(0.0, 0.08, 0.1), (0.5, 0.1, 0.15)], ids=["independent", "dependent"]
)
def test_c1_equal_runs_are_seldom_called_different(correlation: float, most_certain: float, most_silent: float) -> None:
    """The full figures are in benchmarks/verdicts.py."""
    noise = np.random.default_rng(6)
    tries = figure(40, 100, 1000)
    certain, silent = 0, 0
    for _ in range(tries):
        first, second = (windows(latencies(noise, 100, correlation, each=60)) for _ in range(2))
        low, high = ratio_between(first, second, P50, second.value_above(0.5) / first.value_above(0.5))
        silent += math.isnan(low) and math.isnan(high)
        certain += low > 1 or high < 1
    assert certain <= most_certain * tries and silent <= most_silent * tries
