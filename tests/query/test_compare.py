"""Two runs against each other: bounds against brute force and simulation, order of effects, and what is refused."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.coverage import Caveat, Missing
from ingest.core.errors import UsageError
from ingest.core.layout import LogLinear, fio_layout, hdr_layout
from ingest.core.quantiles import parse_percentiles, rank_bounds
from ingest.query.compare import alone, compare, grouped, halvings, together
from ingest.query.coverage import Lack
from ingest.query.question import AUTO, Answer, Question
from ingest.query.table import Table
from oracles.brute import index_of
from strategies import percents, written
from tests.doubles.origin import NS, SECOND, ZERO, Made, series
from tests.query.nights import BINS, HOSTS, OPS, Samples, drawn

FINE = LogLinear(1 << 15, 1 << 19, reports="highest", open_ended=False)
WHOLE = Question(by=("host", "op"), step="all")
PERCENTILES = parse_percentiles("50,95,99,99.9")
WINDOWS = 20


def night(samples: Samples, layout=NS, kind: str = "completion") -> Made:
    """Return a run of these samples, one after the other in 20 windows, in fio's bins by its own formula where the layout is fio's."""
    rows = []
    for (host, op), values in samples.items():
        bins = [index_of(value, BINS - 1) for value in values] if layout == NS else layout.index(np.array(values)).tolist()
        for at in range(WINDOWS):
            counts = Counter(bins[at::WINDOWS])
            if counts:
                rows.append((series(op, host, kind=kind), at, dict(counts)))
    return Made(rows, layout)


def windows_of(*nights: Made, question: Question = WHOLE) -> tuple[Answer, ...]:
    return tuple(one.answer(replace(question, step=AUTO)) for one in nights)


def pair_of(baseline: Made, run: Made, question: Question = WHOLE, **words):
    windows = windows_of(baseline, question=question), windows_of(run, question=question)
    return grouped(baseline.answer(question), run.answer(question), question.by, windows=windows, **words)


def rows_of(table: Table) -> list[dict]:
    return [{name: column[row] for name, column in table.columns.items()} for row in range(len(table))]


def of(table: Table, **labels) -> dict:
    [row] = [row for row in rows_of(table) if all(row[name] == value for name, value in labels.items())]
    return row


# ---- bounds ----------------------------------------------------------------------------------------------------------


def chances(count: int, share: Fraction) -> list[Fraction]:
    """P(B <= k) of the binomial distribution, k = 0 ... count."""
    below, total = [], Fraction(0)
    for k in range(count + 1):
        total += math.comb(count, k) * share**k * (1 - share) ** (count - k)
        below.append(total)
    return below


@given(st.integers(1, 60), percents)
def test_rank_bounds_are_those_of_the_binomial_distribution(count: int, text: str) -> None:
    [percentile] = parse_percentiles(written(text))
    share = Fraction(text) / 100
    low, high = rank_bounds(count, percentile)
    if share in (0, 1):
        assert (low, high) == (0, count + 1)
        return
    below = [Fraction(0), *chances(count, share)]  # below[k] = P(B <= k - 1)
    assert low == max(k for k in range(count + 1) if below[k] <= Fraction(1, 40))
    assert high == min(k for k in range(1, count + 2) if below[k] >= Fraction(39, 40))


@pytest.mark.parametrize(("text", "count"), [("50", 3_999_000), ("99", 100_000_000), ("99.9", 990_000_000)])
def test_large_counts_have_the_ranks_of_the_normal_distribution(text: str, count: int) -> None:
    """Below the bound the binomial distribution is added up, above it is not: both sides of it agree."""
    [percentile] = parse_percentiles(text)
    for many in (count, 2 * count):
        share = float(text) / 100
        reach = NormalDist().inv_cdf(0.975) * math.sqrt(many * share * (1 - share))
        low, high = rank_bounds(many, percentile)
        assert low == pytest.approx(many * share - reach, abs=3)
        assert high == pytest.approx(many * share + reach, abs=3)


def test_a_difference_within_the_bins_is_no_difference() -> None:
    for layout in (NS, fio_layout(29, 1, 4), hdr_layout(3, 0, 1)):
        at = layout.bins // 2
        nights = [Made([(series(), window, {place: 10**9}) for window in range(WINDOWS)], layout) for place in (at, at + 1)]
        whole = Question(by=("op",), step="all")
        assert all(row["ratio"] > 1 >= row["lo"] for row in rows_of(compare(pair_of(*nights, whole), PERCENTILES)))
        far = [Made([(series(), window, {place: 10**9}) for window in range(WINDOWS)], layout) for place in (at, at + 3)]
        assert all(row["lo"] > 1 for row in rows_of(compare(pair_of(*far, whole), PERCENTILES)))


def test_what_too_few_samples_leave_open() -> None:
    shuffled = [np.random.default_rng(1).permutation(np.arange(1000, last)).tolist() for last in (1999, 5000)]
    nights = [night({("h1", "read"): values}) for values in shuffled]
    table = compare(pair_of(*nights), parse_percentiles("0,50,99.9,100"))
    few = of(table, percentile=99.9)
    assert math.isnan(few["baseline"]) and math.isnan(few["ratio"]) and math.isnan(few["lo"]) and few["run"] > 4900
    for percentile in (0, 100):
        row = of(table, percentile=percentile)
        assert row["ratio"] > 0 and math.isnan(row["lo"]) and math.isnan(row["hi"])
    assert of(table, percentile=50)["lo"] > 1


def test_latencies_in_the_open_last_bin_bound_the_ratio_from_one_side() -> None:
    last, low = NS.bins - 1, 1500
    cases = {(low, last): (True, False), (last, low): (False, False), (last, last): (False, False)}
    for places, (ratio, hi) in cases.items():
        nights = [Made([(series(), at, {place: 10_000}) for at in range(WINDOWS)]) for place in places]
        row = of(compare(pair_of(*nights, Question(step="all")), parse_percentiles("99")))
        assert (row["ratio"] == row["ratio"], row["hi"] == row["hi"]) == (ratio, hi)
        assert (row["baseline_censored"], row["run_censored"]) == tuple(place == last for place in places)


def test_latencies_of_zero_have_no_ratio() -> None:
    nights = [Made([(series(), at, {place: 10_000}) for at in range(WINDOWS)]) for place in (0, 5)]
    row = of(compare(pair_of(*nights, Question(step="all")), parse_percentiles("99")))
    assert (row["baseline"], row["run"]) == (0, 5)
    assert math.isnan(row["ratio"]) and math.isnan(row["lo"]) and math.isnan(row["hi"])


def test_missing_samples_widen_bounds_by_all_that_the_percentile_can_be() -> None:
    """3,600 samples of the run are missing, all above 1 ms: p50 is then that of a rank 1,800 further up at most."""
    good, bad = drawn(1, 12_000), drawn(2, 12_000)
    whole = pair_of(night(good), night(bad), Question(step="all"))
    entry = Missing({"run": "r"}, ZERO, ZERO + WINDOWS * SECOND, 3600, 1_000_000, None, Caveat("gone", "a", "b", "c"))
    lacking = replace(whole, run=replace(whole.run, missing=(Lack(entry, sure=True),)))
    before, after = (of(compare(pair, parse_percentiles("50"))) for pair in (whole, lacking))
    merged = sorted(value for values in bad.values() for value in values)
    most = merged[math.ceil((len(merged) + 3600) / 2) - 1] / merged[math.ceil(len(merged) / 2) - 1]
    assert after["lo"] == pytest.approx(before["lo"], rel=1e-9)
    assert after["hi"] / before["hi"] == pytest.approx(most, rel=0.02) and most > 1.01


# ---- who moved -------------------------------------------------------------------------------------------------------


@pytest.mark.cases(6)
@pytest.mark.parametrize("slow", [(host, op) for host in HOSTS for op in OPS])
def test_the_op_of_the_host_that_became_slower_in_its_tail_is_named_first(slow: tuple[str, str]) -> None:
    good, bad = drawn(1), drawn(2, slow=slow)
    table = compare(pair_of(night(good), night(bad)), parse_percentiles("50,95,99"))
    first = rows_of(table)[:2]
    assert [(row["host"], row["op"]) for row in first] == [slow, slow]
    assert {row["percentile"] for row in first} == {95.0, 99.0}
    assert all(row["lo"] > 0.95 and row["lo"] < 1.3 < row["hi"] for row in first)  # 18 rows held together
    assert max(row["lo"] for row in first) > 1.1
    assert all(row["lo"] < 1.05 for row in rows_of(table)[2:])
    middle = of(table, host=slow[0], op=slow[1], percentile=50.0)
    assert middle["lo"] <= 1 <= middle["hi"]


def test_values_and_counts_are_those_of_the_samples() -> None:
    good, bad = drawn(3), drawn(4, 2500)
    for row in rows_of(compare(pair_of(night(good), night(bad)), PERCENTILES)):
        key = row["host"], row["op"]
        assert (row["count_baseline"], row["count_run"]) == (len(good[key]), len(bad[key]))
        for name, samples in (("baseline", sorted(good[key])), ("run", sorted(bad[key]))):
            exact = samples[math.ceil(Fraction(str(row["percentile"])) * len(samples) / 100) - 1]
            assert row[name] == pytest.approx(exact, rel=1 / 128)
        assert row["ratio"] == row["run"] / row["baseline"]


def test_rows_come_with_the_largest_certain_effect_first() -> None:
    good, bad = drawn(5), drawn(6, slow=("h3", "read"), factor=0.5)
    bad["h1", "write"] = [3 * value for value in bad["h1", "write"][:12]]  # three times as slow, but hardly any samples
    found = rows_of(compare(pair_of(night(good), night(bad)), PERCENTILES))
    least = [
        max(math.log(row["lo"]) if row["lo"] == row["lo"] else 0, -math.log(row["hi"]) if row["hi"] == row["hi"] else 0, 0)
        for row in found
    ]
    assert least == sorted(least, reverse=True)
    unsure = [abs(math.log(row["ratio"])) if row["ratio"] == row["ratio"] else -1 for row, one in zip(found, least) if not one]
    assert unsure == sorted(unsure, reverse=True)
    assert (found[0]["host"], found[0]["op"]) in (("h3", "read"), ("h1", "write"))
    assert [row["hi"] < 1 for row in found if (row["host"], row["op"]) == ("h3", "read")].count(True) >= 2


def test_groups_of_one_run_alone_are_listed_and_come_last() -> None:
    good, bad = drawn(1), drawn(2)
    for op in OPS:
        del good["h2", op], bad["h3", op]
    table = compare(pair_of(night(good), night(bad)), parse_percentiles("99"))
    assert alone(table) == ([("h3", "read"), ("h3", "write")], [("h2", "read"), ("h2", "write")])
    found = rows_of(table)
    assert [row["ratio"] == row["ratio"] for row in found] == [True] * 2 + [False] * 4
    gone = of(table, host="h3", op="read")
    assert (gone["count_baseline"], gone["count_run"]) == (len(good["h3", "read"]), 0)
    assert gone["baseline"] > 0 and math.isnan(gone["run"])


def test_the_same_run_differs_nowhere() -> None:
    samples = drawn(1)
    for row in rows_of(compare(pair_of(night(samples), night(samples)), PERCENTILES)):
        assert row["ratio"] == 1
        if row["percentile"] < 99:  # four samples above p99.9 bound nothing
            assert row["lo"] < 1 < row["hi"]
        assert row["verdict"] in ("same", "cannot tell")


def test_shifts_are_taken_where_one_over_one_minus_q_doubles() -> None:
    pair = pair_of(night(drawn(1)), night(drawn(2)), Question(step="all"))
    found = [Fraction(one.top, 100 * one.bottom) for one in halvings(pair)]
    assert found == [1 - Fraction(1, 2**power) for power in range(1, 15)]
    small = pair_of(night(drawn(1, 10)), night(drawn(2, 10)))
    assert [one.text for one in halvings(small)] == ["50", "75", "87.5"]
    assert not np.isnan(compare(small, halvings(small)).columns["ratio"]).any()


# ---- kinds, bins, runs -----------------------------------------------------------------------------------------------


def test_unlike_kinds_are_refused_unless_asked() -> None:
    whole = Question(by=("op",), step="all")
    sides = night(drawn(1), kind="service"), night(drawn(2), kind="service.corrected")
    with pytest.raises(UsageError, match=r"holds service latency, r service\.corrected: unlike kinds are not compared"):
        pair_of(*sides, whole)
    assert len(compare(pair_of(*sides, whole, unlike=True), PERCENTILES)) == 8
    with pytest.raises(UsageError, match="unlike kinds are not added up"):
        together([one.answer(whole) for one in sides])


def test_several_kinds_are_compared_each_with_its_like() -> None:
    sides = []
    for seed, slow in ((1, None), (2, ("h1", "read"))):
        plain = night(drawn(seed, slow=slow)).rows
        sides.append(
            Made([*plain, *((series(one.op, one.host, kind="total"), at, bins) for one, at, bins in night(drawn(seed + 5)).rows)])
        )
    question = Question(by=("kind", "host", "op"), step="all", where={"kind": "*"})
    pair = grouped(sides[0].answer(question), sides[1].answer(question), question.by)
    table = compare(pair, parse_percentiles("95"))
    assert pair.by == ("kind", "host", "op")
    first = rows_of(table)[0]
    assert (first["kind"], first["host"], first["op"]) == ("completion", "h1", "read")


@pytest.mark.parametrize(
    "layouts", [(NS, fio_layout(29, 1, 2)), (hdr_layout(3, 0, 1), NS), (fio_layout(29, 1, 1), hdr_layout(2, 0, 1))]
)
def test_unlike_bins_are_compared_in_common_ones(layouts: tuple[LogLinear, LogLinear]) -> None:
    good, bad = drawn(1), drawn(2, slow=("h2", "read"))
    pair = pair_of(night(good, layouts[0]), night(bad, layouts[1]))
    assert "unlike bins are compared as they are" in pair.notes[0]
    table = compare(pair, parse_percentiles("50,95"))
    assert (rows_of(table)[0]["host"], rows_of(table)[0]["op"]) == ("h2", "read")
    for row in rows_of(table):
        key = row["host"], row["op"]
        for name, samples in (("baseline", good[key]), ("run", bad[key])):
            exact = sorted(samples)[math.ceil(row["percentile"] * len(samples) / 100) - 1]
            assert row[name] == pytest.approx(exact, rel=1 / 16)


def test_in_flight_weights_are_refused() -> None:
    question = Question(by=("op",), step="all", attribution="in-flight")
    sides = [night(drawn(1, 100)).answer(Question(by=("op",), step=10**9, attribution="in-flight")) for _ in range(2)]
    with pytest.raises(UsageError, match="in-flight weights are shares"):
        compare(grouped(*sides, question.by), PERCENTILES)


def test_runs_of_one_side_are_added_up() -> None:
    samples = [drawn(seed, 1000) for seed in (1, 2, 3)]
    alone_answers: list[Answer] = [night(one).answer(WHOLE) for one in samples]
    joined = together(alone_answers[:2])
    sums = {key: samples[0][key] + samples[1][key] for key in samples[0]}
    expected = compare(grouped(night(sums).answer(WHOLE), alone_answers[2], WHOLE.by), PERCENTILES)
    found = compare(grouped(joined, alone_answers[2], WHOLE.by), PERCENTILES)
    assert rows_of(found) == rows_of(expected) or str(rows_of(found)) == str(rows_of(expected))
