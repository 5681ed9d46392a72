"""Nearest rank in exact arithmetic, and what is said where data cannot carry a number."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.cli import run as command
from ingest.core.errors import UsageError
from ingest.core.intervals import Exact, Intervals
from ingest.core.layout import fio_layout
from ingest.core.quantiles import Ranked, bounds, censored, extremes, parse_percentiles, percentile_values, saturated, share_below
from strategies import FIO_LAYOUTS, histograms, intervals, made, percents, written

NS = fio_layout(29, 1)
DATA = Path(__file__).parent / "data"
COARSE = FIO_LAYOUTS[6]


@given(percents, st.lists(st.one_of(st.integers(0, 3000), st.integers(0, 2**62)), min_size=1, max_size=5))
def test_ranks_are_those_of_fractions(text: str, counts: list[int]) -> None:
    [percentile] = parse_percentiles(written(text))
    expected = [max(math.ceil(Fraction(count) * Fraction(text) / 100), 1) for count in counts]
    assert percentile.ranks(np.array(counts, np.int64)).tolist() == expected


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 100, 1 << 40]))
def test_entries_of_ranks_are_those_of_a_search_in_each_row(seed: int, most: int) -> None:
    random = np.random.default_rng(seed)
    rows = made(NS, [(0, at, at + 1, {}) for at in range(3)])
    widths = random.integers(1, 1500, 3)
    bins = np.concatenate([np.sort(random.choice(NS.bins, width, replace=False)) for width in widths])
    rows = replace(rows, indptr=np.append(0, np.cumsum(widths)), bins=bins, counts=random.integers(1, most + 1, len(bins)))
    picked = np.repeat(np.arange(3), 3)
    share = random.integers(0, 2**20, 9) / 2**20
    ranks = np.where(np.arange(9) % 3, 1 + (share * (rows.samples[picked] - 1)).astype(np.int64), rows.samples[picked])
    for row, rank, entry in zip(picked.tolist(), ranks.tolist(), Ranked(rows).entries(picked, ranks).tolist(), strict=True):
        running = list(accumulate(rows.counts[rows.indptr[row] : rows.indptr[row + 1]].tolist()))
        assert entry == rows.indptr[row] + next(place for place, reached in enumerate(running) if reached >= rank)


@given(intervals(), st.lists(percents, min_size=1, max_size=4, unique=True))
def test_percentiles_looked_for_together_are_those_looked_for_alone(rows: Intervals, texts: list[str]) -> None:
    wanted = parse_percentiles(",".join(map(written, texts)))
    together = Ranked(rows)
    for percentile in wanted:
        alone = percentile_values(rows, percentile)
        assert np.array_equal(percentile_values(rows, percentile, ranked=together, others=wanted), alone, equal_nan=True)


@given(percents, st.integers(0, 10**6))
def test_carried_is_the_rule(text: str, count: int) -> None:
    [percentile] = parse_percentiles(written(text))
    share = Fraction(text)
    expected = count > 0 and (share <= 50 or share == 100 or count * (100 - share) >= 100)
    assert percentile.carried(np.array([count])).tolist() == [expected]


@pytest.mark.parametrize(
    ("text", "count", "rank"),
    [
        ("99.9", 1000, 999),
        ("99.99", 10_000, 9999),
        ("50", 3, 2),
        ("0", 9, 1),
        ("100", 9, 9),
        ("29", 100, 29),
        ("99.9", 2**62, None),
    ],
)
def test_ranks_that_floating_point_gets_wrong(text: str, count: int, rank: int | None) -> None:
    expected = rank if rank is not None else -(-count * 999 // 1000)
    assert parse_percentiles(text)[0].ranks(np.array([count])).tolist() == [expected]


@pytest.mark.parametrize(
    ("text", "needs"), [("50", 1), ("51", 3), ("75", 4), ("95", 20), ("99", 100), ("99.9", 1000), ("99.99", 10_000), ("100", 1)]
)
def test_how_many_samples_a_percentile_needs(text: str, needs: int) -> None:
    assert parse_percentiles(text)[0].carried(np.array([needs - 1, needs])).tolist() == [False, True]


@given(histograms, percents)
def test_value_is_that_of_the_sorted_samples(held: dict[int, int], text: str) -> None:
    [percentile] = parse_percentiles(written(text))
    rows = made(COARSE, [(0, 0, 1, held)])
    count = sum(held.values())
    value = percentile_values(rows, percentile)[0]
    if not percentile.carried(np.array([count]))[0]:
        assert math.isnan(value)
        return
    rank = max(math.ceil(Fraction(count) * Fraction(text) / 100), 1)
    slot = next(slot for slot in sorted(held) if sum(held[other] for other in held if other <= slot) >= rank)
    assert value == COARSE.values[slot]


@given(intervals(), st.lists(st.decimals(0, 100, places=2), min_size=2, max_size=5))
def test_percentiles_never_fall_as_p_grows(rows: Intervals, numbers: list) -> None:
    wanted = parse_percentiles(",".join(written(f"{number:f}") for number in sorted(numbers)))
    for interpolate in (False, True):
        table = np.array([percentile_values(rows, percentile, interpolate=interpolate) for percentile in wanted])
        for column in table.T:
            carried = column[~np.isnan(column)]
            assert (np.diff(carried) >= 0).all()


@given(histograms)
def test_interpolation_stays_in_the_bin_and_ends_at_its_upper_edge(held: dict[int, int]) -> None:
    rows = made(COARSE, [(0, 0, 1, held)])
    low = min(held)
    first, last = (
        Ranked(rows).interpolated(np.arange(len(rows)), np.array([1])),
        Ranked(rows).interpolated(np.arange(len(rows)), np.array([held[low]])),
    )
    assert COARSE.edges[low] < first <= last == COARSE.edges[low + 1]


def test_interpolation_of_huge_counts_stays_in_the_bin() -> None:
    rows = made(COARSE, [(0, 0, 1, {27: 8_518_380_195})])
    assert COARSE.edges[27] < Ranked(rows).interpolated(np.arange(len(rows)), np.array([2_200_000_000]))[0] < COARSE.edges[28]


def test_one_hundred_is_the_exact_maximum_where_known() -> None:
    exact = Exact(np.array([3]), np.array([77]), np.array([80]), np.array([True]))
    rows = replace(made(COARSE, [(0, 0, 1, {0: 1, 1: 1})]), exact=exact)
    assert percentile_values(rows, parse_percentiles("100")[0]).tolist() == [77]
    low, high, mean, known = extremes(rows)
    assert (low, high, mean, known) == (3, 77, 40, True)


def test_extremes_are_bin_edges_where_nothing_better_is_known() -> None:
    rows = made(NS, [(0, 0, 1, {200: 3, 954: 1}), (0, 1, 2, {10: 1, 1855: 2})])
    low, high, mean, known = extremes(rows)
    assert low.tolist() == [288, 10]
    assert high.tolist() == [1_007_616, 17_045_651_456]
    assert mean.tolist() == [(3 * 290 + 1_003_520) / 4, (10 + 2 * 17_045_651_456) / 3]
    assert not known.any()


def test_the_open_last_bin_is_flagged_and_reports_its_lower_edge() -> None:
    rows = made(NS, [(0, 0, 1, {100: 98, 1855: 2}), (0, 1, 2, {100: 100}), (0, 2, 3, {100: 99, 1855: 1})])
    wanted = parse_percentiles("50,98,99,100")
    assert saturated(rows).tolist() == [2, 0, 1]
    flags = np.array(censored(rows, wanted))
    assert flags[:, 0].tolist() == [False, False, True, True]
    assert flags[:, 1].tolist() == [False, False, False, False]
    assert flags[:, 2].tolist() == [False, False, False, True]
    assert percentile_values(rows, wanted[2]).tolist() == [17_045_651_456, 100, 100]


@given(histograms, st.integers(0, 2**35))
def test_share_below_lies_between_whole_bins(held: dict[int, int], threshold: int) -> None:
    rows = made(COARSE, [(0, 0, 1, held)])
    edges, count = COARSE.edges, sum(held.values())
    surely = sum(n for slot, n in held.items() if edges[slot + 1] <= threshold and slot < 28)
    at_most = sum(n for slot, n in held.items() if edges[slot] < threshold and slot < 28)
    share = share_below(rows, threshold)[0]
    assert surely / count - 1e-9 <= share <= at_most / count + 1e-9


@given(histograms, percents)
def test_the_confidence_interval_is_that_of_the_binomial_distribution(held: dict[int, int], text: str) -> None:
    """Against sums of exact chances: the lowest rank with more than 2.5 % below it, the first with 97.5 %; open sides are NaN."""
    held = {slot: 1 + count % 60 for slot, count in held.items()}
    rows, count = made(COARSE, [(0, 0, 1, held)]), sum(held.values())
    [percentile] = parse_percentiles(written(text))
    low, high = (float(side[0]) for side in bounds(rows, percentile))
    if math.isnan(percentile_values(rows, percentile)[0]):
        assert math.isnan(low) and math.isnan(high)
        return
    share, samples = Fraction(percentile.top, 100 * percentile.bottom), [slot for slot in sorted(held) for _ in range(held[slot])]
    chances = list(accumulate(comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(count + 1)))
    edges, last = COARSE.edges, COARSE.bins - 1
    first = next(k for k, chance in enumerate(chances) if chance > Fraction(25, 1000)) if share < 1 else 0
    end = next(k for k, chance in enumerate(chances) if chance >= Fraction(975, 1000)) + 1 if 0 < share < 1 else count + 1
    first = 0 if share == 0 else first
    assert math.isnan(low) if first < 1 else low == edges[samples[first - 1]]
    assert math.isnan(high) if end > count or samples[end - 1] == last else high == edges[samples[end - 1] + 1]


def test_few_samples_leave_a_side_of_the_confidence_interval_open() -> None:
    """100 samples carry p99, but the largest of them bounds it from above in 63 of 100 cases alone, not in 95."""
    rows = made(COARSE, [(0, 0, 1, {3: 99, 9: 1}), (0, 1, 2, {3: 990, 9: 10})])
    low, high = bounds(rows, parse_percentiles("99")[0])
    assert low.tolist() == [COARSE.edges[3], COARSE.edges[3]]
    assert math.isnan(high[0]) and high[1] == COARSE.edges[10]


@pytest.mark.parametrize("text", ["", "x", "101", "-1", "nan", "inf", "50,,99", "1e-13", "101%"])
def test_what_is_no_percentile(text: str) -> None:
    with pytest.raises(UsageError, match="is not a percentile"):
        parse_percentiles(text)


@pytest.mark.parametrize(
    ("text", "names"), [("50, 99.9", ["p50", "p99.9"]), ("p95,95", ["p95"]), ("0,100", ["p0", "p100"]), ("99.90", ["p99.90"])]
)
def test_names_are_as_written(text: str, names: list[str]) -> None:
    assert [percentile.name for percentile in parse_percentiles(text)] == names


def test_values_at_a_rank() -> None:
    rows = made(COARSE, [(0, 0, 1, {0: 2, 5: 1}), (0, 1, 2, {7: 4})])
    assert Ranked(rows).values(np.arange(len(rows)), np.array([3, 1])).tolist() == [COARSE.values[5], COARSE.values[7]]


def test_percentiles_are_ordered_by_their_size() -> None:
    """50.5 is 505 tenths: more than 99 wholes only as a number."""
    assert [one.text for one in sorted(parse_percentiles("99.9,99,50.5,5,100"))] == ["5", "50.5", "99", "99.9", "100"]
    assert max(parse_percentiles("50.5,99")).text == "99"


@pytest.mark.parametrize(
    ("text", "meant"), [("0.99", "99"), ("p0.999", "99.9"), (".5", "50"), ("50, 0.95", "95"), ("9.9e-1", "99")]
)
def test_n17_a_share_is_no_percentile(text: str, meant: str) -> None:
    """Who writes 0.99 means 99 nearly always; a percent sign says that it is p0.99."""
    word = text.rsplit(",", maxsplit=1)[-1].strip()
    with pytest.raises(UsageError, match=rf"did you mean {re.escape(meant)}\? For p\S+ write \S+%$"):
        parse_percentiles(text)
    (one,) = parse_percentiles(f"{word}%")
    assert Fraction(one.top, one.bottom) == Fraction(word.removeprefix("p"))


def test_n17_low_percentiles_are_asked_with_a_percent_sign() -> None:
    assert [one.name for one in parse_percentiles("0,0.99%,p0.5%,1,99,100")] == ["p0", "p0.99", "p0.5", "p1", "p99", "p100"]


@pytest.mark.parametrize(
    "words",
    [
        ("percentiles", "{log}", "-p", "50,0.99"),
        ("percentiles", "{log}", "-p", "p0.99"),
        ("compare", "{log}", "--baseline", "a", "--run", "b", "-p", "0.99"),
        ("trend", "{log}", "-p", "0.99"),
        ("capacity", "{log}", "--sla", "p0.99<5ms"),
        ("report", "{log}", "--sla", "p0.99<5ms", "-o", "{folder}/r.html"),
        ("check", "{folder}/SLA.yml", "{log}"),
    ],
    ids=" ".join,
)
def test_n17_every_command_refuses_a_share(words: tuple[str, ...], tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "SLA.yml").write_text("objectives:\n  - {name: p, percentile: 0.99, threshold: 5ms, window: 1s}\n")
    log = DATA / "fio" / "randrw"
    assert command([word.format(log=log, folder=tmp_path) for word in words]) == (3 if words[0] == "check" else 2)
    assert "did you mean 99? For p0.99 write 0.99%" in " ".join(capsys.readouterr().err.split())
