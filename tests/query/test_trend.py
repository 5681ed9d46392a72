"""A percentile over many runs: change points on series with and without a step, bounds, order, and the verdict on the newest."""

from __future__ import annotations

import math
import random
import weakref
from dataclasses import replace
from functools import partial
from itertools import pairwise
from statistics import median

import numpy as np
import pytest

from ingest.cli.trend import _nights
from ingest.core.errors import UsageError
from ingest.core.layout import fio_layout
from ingest.core.quantiles import parse_percentiles, rank_bounds
from ingest.query.change_points import FEW_RUNS, change_points
from ingest.query.question import Answer, Question
from ingest.query.trend import Judgement, Night, Reference, alike, bounds_of, in_order, judged, levels, trend
from ingest.view.terminal.trend import notes as notes_of
from ingest.view.terminal.trend import said_of
from oracles.brute import edges
from tests.doubles.origin import SECOND, ZERO, Made, series
from tests.query.nights import BINS, HOSTS, OPS, drawn
from tests.query.test_compare import night

P99 = parse_percentiles("99")


# ---- change points ---------------------------------------------------------------------------------------------------


def noise_of(kind: str, random_numbers: np.random.Generator, count: int) -> np.ndarray:
    """Return values around 400 us without any change: log-normal, wild (Student's t of 2 degrees), or in wide bins."""
    drawn_numbers = random_numbers.standard_t(2, count) if kind == "wild" else random_numbers.normal(0, 1, count)
    values = np.exp(13 + 0.1 * drawn_numbers)
    return np.round(values / 40_000) * 40_000 if kind == "in bins" else values


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["usual", "wild", "in bins"])
@pytest.mark.parametrize("runs", [12, pytest.param(30, marks=pytest.mark.soak)])
def test_false_alarms_are_two_in_a_hundred(kind: str, runs: int) -> None:
    """Any change at all counts here; seeded, 400 series, of which 8 are expected; 16 or more would be a chance of 1 in 100."""
    random_numbers = np.random.default_rng(5)
    alarms = sum(bool(change_points(noise_of(kind, random_numbers, runs), 1.0)) for _ in range(400))
    assert alarms < 16


@pytest.mark.parametrize(("before", "after"), [(10, 5), (20, 10), (7, 7), (5, 12)])
@pytest.mark.parametrize("step", [1.5, pytest.param(1 / 1.5, marks=pytest.mark.slow)])
def test_a_step_is_found_at_its_run(before: int, after: int, step: float) -> None:
    random_numbers = np.random.default_rng(6)
    exact = found = 0
    for _ in range(60):
        values = np.exp(13 + random_numbers.normal(0, 0.08, before + after))
        values[before:] *= step
        places = change_points(values)
        found += len(places) == 1
        exact += places == [before]
    assert found >= 52
    assert exact >= 51


def test_several_steps_are_found_and_a_way_back() -> None:
    random_numbers = np.random.default_rng(7)
    values = np.exp(13 + random_numbers.normal(0, 0.03, 40)) * np.repeat([1, 1.4, 1, 0.6], 10)
    assert change_points(values) == [10, 20, 30]


def test_one_wild_night_is_no_change() -> None:
    random_numbers = np.random.default_rng(8)
    for place in range(20):
        values = np.exp(13 + random_numbers.normal(0, 0.02, 20))
        values[place] *= 100
        assert change_points(values) == []


@pytest.mark.parametrize("wild", [0, 5, 10, 15, 22, 27])
def test_a_step_is_found_beside_a_wild_night(wild: int) -> None:
    values = np.exp(13 + np.random.default_rng(10).normal(0, 0.05, 28))
    values[20:] *= 1.4
    values[wild] *= 1000
    assert change_points(values) == [20]


def test_a_change_below_the_least_is_none() -> None:
    values = np.exp(13 + np.random.default_rng(9).normal(0, 0.002, 30))
    values[15:] *= 1.08
    assert change_points(values, 1.1) == []
    assert change_points(values, 1.05) == [15]


def test_the_same_series_gives_the_same_answer_and_few_runs_give_none() -> None:
    values = np.array([100.0] * 5 + [200.0] * 5) * 1000
    values += np.arange(10)
    assert len(values) == FEW_RUNS
    assert change_points(values) == change_points(values) == [5]
    assert change_points(values[:-1]) == []
    assert change_points(values[:0]) == change_points(values[:1]) == change_points(np.full(50, 7.0)) == []


def test_levels_are_medians_between_changes_and_changes_their_ratios() -> None:
    values = np.array([100, 101, 102, 103, 104, math.nan, 200, 201, 202, 203, 204]) * 1000.0
    level, change = levels(values)
    assert level[:5].tolist() == [102_000] * 5 and math.isnan(level[5]) and level[6:].tolist() == [202_000] * 5
    assert change[6] == 202 / 102 and np.isnan(np.delete(change, 6)).all()


# ---- runs ------------------------------------------------------------------------------------------------------------


BY = Question(by=("host", "op"), step="all")


def history(steps: list[float], slow: tuple[str, str] | None = None, count: int = 800) -> list:
    """Return an answer a night: each as slow as told, from `slow` alone where that is given."""
    return [made.answer(BY) for made in nights_of(steps, slow, count)]


def nights_of(steps: list[float], slow: tuple[str, str] | None = None, count: int = 800) -> list[Made]:
    made_nights = []
    for number, by in enumerate(steps):
        samples = drawn(number, count, by=1.0 if slow else by, slow=slow, factor=by)
        made = replace(night(samples), zero=ZERO + number * 86_400 * SECOND)
        rows = [(replace(one, run=f"nightly-{number + 1}"), at, bins) for one, at, bins in made.rows]
        made_nights.append(replace(made, rows=rows))
    return made_nights


def table_of(answers: list, text: str = "99", windows: dict | None = None, **words):
    wanted = parse_percentiles(text)
    bounds = {answer.runs[0]: bounds_of((windows or {}).get(answer.runs[0], ()), answer.by, wanted) for answer in answers}
    nights, notes = in_order(alike(answers), bounds)
    return trend(nights, wanted, **words), nights, notes


def test_values_bounds_and_counts_are_those_of_the_samples() -> None:
    made = nights_of([1.0, 1.1, 0.9])
    windows = {one.run_names[0]: [one.answer(replace(BY, step="auto"))] for one in made}
    table, nights, notes = table_of([one.answer(BY) for one in made], "50,99", windows)
    assert notes == () and [one.run for one in nights] == ["nightly-1", "nightly-2", "nightly-3"]
    bounds = edges(BINS)
    assert len(table) == 3 * len(HOSTS) * len(OPS) * 2
    for row in range(len(table)):
        cell = {name: column[row] for name, column in table.columns.items()}
        number = int(cell["run"].split("-")[1]) - 1
        samples = sorted(drawn(number, 800, by=[1.0, 1.1, 0.9][number])[cell["host"], cell["op"]])
        low, high = rank_bounds(len(samples), *parse_percentiles(f"{cell['percentile']:g}"))
        assert cell["count"] == len(samples)
        assert cell["value"] == pytest.approx(samples[math.ceil(len(samples) * cell["percentile"] / 100) - 1], rel=1 / 128)
        assert cell["lo"] in bounds or math.isnan(cell["lo"]) or cell["lo"] < cell["value"]
        assert not cell["lo"] > cell["value"] and not cell["hi"] < cell["value"]
        if cell["percentile"] == 50:  # independent draws: the bounds of windows are near those of samples
            assert cell["lo"] == pytest.approx(samples[low - 1], rel=0.06) and cell["hi"] == pytest.approx(
                samples[high - 1], rel=0.06
            )
        assert cell["start_ns"] == ZERO + number * 86_400 * SECOND


def test_the_op_of_the_host_that_changed_is_the_only_one_named() -> None:
    table, *_ = table_of(history([1.0] * 9 + [1.6] * 7, ("h2", "write")), "50,99")
    changed = [row for row in range(len(table)) if not math.isnan(table.columns["change"][row])]
    [row] = changed
    cell = {name: column[row] for name, column in table.columns.items()}
    assert (cell["host"], cell["op"], cell["run"], cell["percentile"]) == ("h2", "write", "nightly-10", 99.0)
    assert 1.4 < cell["change"] < 1.8


def test_runs_stand_in_the_order_of_their_starts_or_else_of_their_names() -> None:
    answers = history([1.0] * 11)
    mixed = answers[:]
    random.Random(1).shuffle(mixed)
    starts = [night.start_ns for night in in_order(mixed)[0]]
    assert starts == sorted(starts)
    without = [replace(answer, relative=True) for answer in mixed]
    nights, notes = in_order(without)
    assert [night.run for night in nights] == [f"nightly-{number}" for number in range(1, 12)]
    assert "no start time: the runs are in the order of their names" in notes[0]
    assert all(night.start_ns == 0 for night in nights)


def test_a_run_whose_samples_are_too_few_is_an_empty_cell_and_no_change() -> None:
    answers = history([1.0] * 12)
    thin = history([1.0] * 12, count=50)
    table, *_ = table_of([*answers[:5], thin[5], *answers[6:]], "99")
    few = table.columns["run"] == "nightly-6"
    assert np.isnan(table.columns["value"][few]).all() and (table.columns["count"][few] == 50).all()
    assert np.isnan(table.columns["lo"][few]).all() and np.isnan(table.columns["level"][few]).all()
    assert np.isnan(table.columns["change"]).all()


def test_a_change_within_wide_bins_is_none() -> None:
    """At coarseness 6 a bin is an octave: neighbouring bins are no change, however often."""
    layout = fio_layout(29, 1, 6)
    for places, expected in (((14, 15), 0), ((14, 17), 1)):
        rows = [
            Made([(series(run=f"n{number}"), 0, {places[number >= 8]: 1000})], layout, ZERO + number * SECOND)
            for number in range(16)
        ]
        nights, _ = in_order([one.answer(Question(by=("op",), step="all")) for one in rows])
        assert np.count_nonzero(~np.isnan(trend(nights, P99).columns["change"])) == expected


def test_unlike_kinds_are_refused() -> None:
    answers = [
        night(drawn(seed, 100), kind=kind).answer(Question(by=("op",), step="all"))
        for seed, kind in ((1, "total"), (2, "completion"))
    ]
    with pytest.raises(UsageError, match="unlike kinds of latency"):
        alike(answers)


# ---- the newest run --------------------------------------------------------------------------------------------------


def test_the_newest_run_is_held_against_the_median_of_those_before() -> None:
    steps = [1.0, 1.02, 0.98, 1.0, 3.0, 1.01, 1.5]
    table, *_ = table_of(history(steps), "50,99")
    for last, ratio in ((3, 1.5 / 1.01), (6, 1.5 / 1.005), (1, 1.5 / 1.01), (100, 1.5 / 1.005)):
        found = judged(table, Reference([f"nightly-{number}" for number in range(1, 8)], last=last))
        assert len(found) == len(HOSTS) * len(OPS) * 2
        for one in found:
            mine = [row for row in range(len(table)) if (table.columns["host"][row], table.columns["op"][row]) == one.labels]
            mine = [row for row in mine if table.columns["measure"][row] == one.measure]
            before = [table.columns["value"][row] for row in mine[:-1]][-last:]
            assert one.run == "nightly-7" and one.last and one.earlier == min(last, 6)
            assert one.ratio == table.columns["value"][mine[-1]] / median(before)
            assert (
                one.least == pytest.approx(table.columns["lo"][mine[-1]] / median(before), nan_ok=True)
                and not one.least >= one.ratio
            )
            assert one.ratio == pytest.approx(ratio, rel=0.2 if one.measure == "p50" else 0.5)


def test_what_the_newest_run_does_not_have_is_not_judged_by_an_older_one() -> None:
    answers = history([1.0, 1.0, 3.0])
    before = [one for one in answers[:2]]
    kept = [row for row in night(drawn(9, 800)).rows if row[0].host != "h2"]
    newest = Made([(replace(one, run="nightly-9"), at, bins) for one, at, bins in kept], zero=ZERO + 9 * 86_400 * SECOND)
    table, nights, _ = table_of([*before, answers[2], newest.answer(Question(by=("host", "op"), step="all"))])
    assert {one.labels for one in judged(table, Reference([night.run for night in nights]))} == {
        (host, op) for host in ("h1", "h3") for op in OPS
    }
    assert notes_of(nights, table)[0] == "nightly-9 has nothing of h2 read p99, h2 write p99"


def test_one_run_has_nothing_to_be_held_against() -> None:
    table, *_ = table_of(history([1.0]))
    assert judged(table, Reference(["nightly-1"])) == []


def test_windows_are_held_of_one_run_at_a_time() -> None:
    """Five runs of 300 hosts held those of all of them: 460 MB, and each percentile laid them out anew."""
    made, held = {one.run_names[0]: one for one in nights_of([1.0, 1.1, 0.9])}, []

    def asked(name: str, question: Question) -> Answer:
        answer = made[name].answer(question)
        if question.step == "auto":
            assert not any(rows() is not None for rows in held)
            held.extend(weakref.ref(part.start_ns) for part in answer.parts)
        return answer

    wanted = parse_percentiles("50,99")
    asks = {name: partial(asked, name) for name in made}
    nights, _, _ = _nights(asks, [*made], {}, BY, wanted)
    assert len(held) >= len(made)
    windows = {name: [one.answer(replace(BY, step="auto"))] for name, one in made.items()}
    table, _, _ = table_of([night.answer for night in nights], "50,99", windows)
    assert str(trend(nights, wanted).columns) == str(table.columns)


def test_rows_of_a_series_follow_one_another_in_order() -> None:
    table, *_ = table_of(history([1.0] * 3), "50,99")
    keys = [tuple(table.columns[name][row] for name in ("host", "op", "percentile", "start_ns")) for row in range(len(table))]
    assert all(first < second for first, second in pairwise(keys))
    assert isinstance(in_order(history([1.0]))[0][0], Night)


def test_a_bound_that_says_nothing_is_left_out() -> None:
    """Of four runs of which one was three times slower: at least 0.000 and 46 more zeros."""
    judgement = Judgement((), "p99", "n4", 0.757, 2.46e-47, 3)
    assert said_of(judgement) == "p99 is 0.757 times the level of the 3 runs before"
    assert said_of(replace(judgement, least=0.5)) == "p99 is 0.757 times the level of the 3 runs before, at least 0.5"
