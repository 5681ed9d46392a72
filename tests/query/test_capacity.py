"""The highest load that meets an objective: intervals on queues with known answers, refusals, and every way to ask."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.errors import UsageError
from ingest.query.batch_means import ShareAbove, autocorrelation_time, of_runs, share_above_of
from ingest.query.capacity import (
    ACHIEVED,
    BRACKETED,
    CANNOT_TELL,
    NONE_MEETS,
    Capacity,
    Load,
    axis_of,
    binding,
    capacities,
    crossings,
    isotonic,
    parse_sla,
)
from ingest.store import open_store
from tests.commands import tailboard
from tests.effort import figure
from tests.query import queues
from tests.store.grounds import grounds

CASES = figure(8, 12, 340)  # of each of three queues
SLA = parse_sla("p99<5ms")


# Queues with known answers -------------------------------------------------------------------------------------


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("queue", ["mm1", "md1", "closed"])
def test_the_interval_holds_the_true_capacity(queue: str) -> None:
    """In at least 93 % of cases, give or take chance where they are few; half as wide as the gap between the loads, in the median."""
    requests = 150_000 if CASES > 24 else 60_000
    if queue == "closed":
        cases = queues.closed_cases(np.random.default_rng(11), CASES, 2.0, (1, 2, 4, 8, 12), requests // 4)
    else:
        noises = (np.random.default_rng([seed, 11]) for seed in range(CASES))
        cases = [queues.open_case(noise, constant=queue == "md1", requests=requests) for noise in noises]
    told = [case for case in cases if case[2].verdict == BRACKETED]
    assert len(told) >= 0.9 * len(cases)
    missed = [case for case in told if not case[2].low <= case[0] <= case[2].high]
    chance = 0 if CASES > 24 else 1.6 * math.sqrt(0.07 * 0.93 * len(told))
    assert len(missed) <= 0.07 * len(told) + chance, missed
    assert np.median([(capacity.high - capacity.low) / gap for _, gap, capacity in told]) < (0.5 if CASES > 24 else 0.8)
    for truth, _, capacity in told:
        assert capacity.between[0] <= capacity.low <= capacity.load <= capacity.high <= capacity.between[1], truth
        assert queue != "closed" or {capacity.load, capacity.low, capacity.high} <= set(range(13))  # no half clients


@pytest.mark.parametrize("load", [0.5, 0.7])
def test_the_share_above_a_limit_is_known_as_well_as_windows_vary(load: float) -> None:
    """Bounds from samples as independent ones would miss the truth, which is 1 %, every second time."""
    limit, covered, naive, tries = queues.limit_of_mm1(load), 0, 0, figure(40, 100, 1000)
    for seed in range(tries):
        ends, took = queues.open_queue(np.random.default_rng([seed, 5]), load, 20_000)
        place = np.minimum((ends / ends[-1] * 100).astype(np.int64), 99)
        share = share_above_of(np.bincount(place[took > limit], minlength=100) * 1.0, np.bincount(place, minlength=100) * 1.0)
        low, high = np.quantile(share.draws(400, np.random.default_rng(seed)), [0.025, 0.975])
        covered += low <= 0.01 <= high
        naive += abs(share.value - 0.01) < 1.96 * math.sqrt(share.value * (1 - share.value) / 20_000)
    assert covered >= 0.88 * tries and naive < 0.75 * tries


# Verdicts ------------------------------------------------------------------------------------------------------


def point(load: float, share: float, *, samples: int = 100_000, windows: int = 100, lost: float = 0, run: str = "") -> Load:
    """Return a tested load whose samples are independent."""
    noise = np.random.default_rng([int(load * 1000), samples])
    above = noise.binomial(samples // windows, share, windows).astype(float)
    mine = share_above_of(above, np.full(windows, samples / windows))
    return Load((run or f"run-{load:g}",), load, load, (mine, mine), (1e6 * (1 + share), 1e6 * (1 + share)), lost)


def told(*points: Load, axis: str = "target_rate") -> Capacity:
    [[capacity]] = capacities({("", ()): points}, axis, [SLA])
    return capacity


def test_tested_loads_on_both_sides_bracket() -> None:
    capacity = told(point(100, 0.001), point(200, 0.004), point(300, 0.02), point(400, 0.1))
    assert capacity.verdict == BRACKETED and capacity.between == (200, 300)
    assert 200 < capacity.low < capacity.load < capacity.high < 300 and capacity.high - capacity.low < 40
    assert [at.verdict for at in capacity.points] == ["meets", "meets", "violates", "violates"]
    again = told(point(400, 0.1), point(100, 0.001), point(300, 0.02), point(200, 0.004))
    assert (again.low, again.load, again.high) == (capacity.low, capacity.load, capacity.high)  # whatever the order


@pytest.mark.parametrize(
    ("points", "verdict", "reason"),
    [
        ([(100, 0.02), (200, 0.1)], NONE_MEETS, "the lowest tested load, 100, does not meet p99<5ms: test lower loads"),
        ([(100, 0.02)], NONE_MEETS, "test lower loads"),
        ([(100, 0.1), (200, 0.02)], NONE_MEETS, "look what was different, as p99 falls with the load"),  # R11
        ([(100, 0.02), (200, 0.001)], CANNOT_TELL, "load 100 does not meet p99<5ms and the higher 200 does: look what"),  # R11
        ([(100, 0.001)], CANNOT_TELL, "one load only"),
        ([(100, 0.001), (200, 0.004)], CANNOT_TELL, "every load up to 200 meets p99<5ms, and none is sure not to: test higher"),
        ([(100, 0.001), (200, 0.02), (300, 0.001), (400, 0.1)], CANNOT_TELL, "load 200 does not meet p99<5ms and the higher 300"),
        ([(100, 0.01), (200, 0.0101)], CANNOT_TELL, "no load is sure to meet p99<5ms or not to"),
        ([(100, 0.01), (200, 0.1)], CANNOT_TELL, "no load is sure to meet p99<5ms: test loads below 200"),
    ],
)
def test_a_refusal_says_why_and_what_to_do(points: list[tuple[float, float]], verdict: str, reason: str) -> None:
    capacity = told(*(point(load, share) for load, share in points))
    assert (capacity.verdict, math.isnan(capacity.load)) == (verdict, True) and reason in capacity.reason


def test_too_few_windows_are_sure_of_nothing() -> None:
    capacity = told(point(100, 0.0001, windows=2), point(200, 0.2, windows=2))
    assert capacity.verdict == CANNOT_TELL and {at.verdict for at in capacity.points} == {"cannot tell"}
    assert not any(at.batches for at in capacity.points)


def test_windows_that_follow_one_another_slowly_are_sure_of_little() -> None:
    """AR(1) of 0.99 in 100 windows: about one independent value. The same shares in random order are sure."""
    noise = np.random.default_rng(4)
    sure = 0
    for _ in range(40):
        level = np.zeros(100)
        for at, step in enumerate(noise.normal(0, 0.3, 99), 1):
            level[at] = 0.99 * level[at - 1] + step
        above = 1000 * np.clip(0.006 * np.exp(level - level.mean()), 0, 1)
        slow, mixed = (share_above_of(values, np.full(100, 1000.0)) for values in (above, noise.permutation(above)))
        assert slow.effect > 2 * mixed.effect
        sure += np.quantile(slow.draws(400, noise), 0.975) <= 0.01
    assert sure <= 8


def test_missing_samples_may_all_be_above() -> None:
    points = [(100, 0.001), (200, 0.004), (300, 0.02)]
    whole = told(*(point(*at) for at in points))
    lacking = told(*(point(*at, lost=200) for at in points))
    assert lacking.low < whole.low - 3 and lacking.high == whole.high
    unknown = told(point(100, 0.001), point(200, 0.004, lost=math.inf), point(300, 0.02))
    assert unknown.between == (100, 300) and unknown.points[1].verdict == "cannot tell"
    assert told(*(point(*at, lost=5000) for at in points)).verdict == CANNOT_TELL


def test_runs_at_one_load_are_one_point_and_three_hold_the_variation_between_them() -> None:
    shares = [ShareAbove(above, 100_000, 1.0, 30, 100) for above in (300, 900, 1500)]
    both, three = of_runs(shares[:2]), of_runs(shares)
    assert (both.above, both.samples, both.effect, both.batches) == (1200, 200_000, 1.0, 30)
    assert three.batches == 3 and three.effect > 200
    runs = [point(200, share, run=f"r{share}") for share in (0.003, 0.004, 0.005)]
    capacity = told(point(100, 0.001), *runs, point(300, 0.02))
    assert [len(at.tested.runs) for at in capacity.points] == [1, 3, 1]


def test_of_several_objectives_the_lowest_binds() -> None:
    slas = [parse_sla("p99<5ms"), parse_sla("p99.9<9ms")]
    sweep = [point(100, 0.0002), point(200, 0.0005), point(300, 0.002), point(400, 0.02)]
    [results] = capacities({("", ()): sweep}, "target_rate", slas)
    assert [by_sla.between for by_sla in results] == [(300, 400), (200, 300)] and binding(results) is results[1]
    [results] = capacities({("", ()): sweep[1:]}, "target_rate", [slas[0], parse_sla("p50<1s")])
    assert results[1].verdict == CANNOT_TELL and binding(results) is results[0]  # met as far as the other reaches
    [results] = capacities({("", ()): sweep[2:]}, "target_rate", slas)
    assert binding(results) is results[1] and results[1].verdict == NONE_MEETS


def test_the_knee_is_the_most_throughput_for_its_latency() -> None:
    assert told(point(100, 0.001), point(200, 0.002), point(300, 5e-3), point(400, 0.9)).knee == 300
    assert math.isnan(told(point(100, 0.001), point(200, 0.02)).knee)  # at an end of the sweep


def test_lines_and_groups_have_a_capacity_each() -> None:
    sweep = [point(100, 0.001), point(200, 0.02)]
    results = capacities({("4k", ("read",)): sweep, ("4k", ("write",)): sweep[1:], ("64k", ("read",)): sweep}, "iodepth", [SLA])
    assert [(capacity.line, capacity.group, capacity.verdict) for [capacity] in results] == [
        ("4k", ("read",), BRACKETED), ("4k", ("write",), NONE_MEETS), ("64k", ("read",), BRACKETED),
    ]  # fmt: skip


# Parts ---------------------------------------------------------------------------------------------------------


@given(
    values=st.lists(st.integers(-20, 20), min_size=1, max_size=7),
    weights=st.lists(st.integers(1, 9), min_size=7, max_size=7),
)
def test_isotonic_is_that_of_pooling_neighbours(values: list[int], weights: list[int]) -> None:
    blocks: list[list[float]] = []  # pool adjacent violators: mean, weight, length
    for value, weight in zip(values, weights, strict=False):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            mean, heavy, length = blocks.pop()
            total = blocks[-1][1] + heavy
            blocks[-1] = [(blocks[-1][0] * blocks[-1][1] + mean * heavy) / total, total, blocks[-1][2] + length]
    wanted = [mean for mean, _, length in blocks for _ in range(int(length))]
    got = isotonic(np.array(values, float)[:, None], np.array(weights[: len(values)], float))[:, 0]
    assert np.allclose(got, wanted)


def test_crossings_are_exact_where_the_logit_is_straight() -> None:
    loads = np.array([1.0, 2.0, 4.0, 8.0])
    logits = -7 + 0.6 * loads
    level = 1 / (1 + math.exp(7 - 0.6 * 3.3))
    shares = (1 / (1 + np.exp(-logits)))[:, None]
    straight, cubic, *logarithmic = (float(values[0]) for values in crossings(loads, shares, level, (1.0, 8.0)))
    assert math.isclose(straight, 3.3) and math.isclose(cubic, 3.3)
    assert all(3 < value < 3.6 for value in logarithmic)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
def test_the_autocorrelation_time_is_that_of_the_process(phi: float) -> None:
    noise, times = np.random.default_rng(1), []
    for _ in range(30):
        steps, values = noise.normal(size=400), np.zeros(400)
        for at in range(1, 400):
            values[at] = phi * values[at - 1] + steps[at]
        times.append(autocorrelation_time(values))
    truth = (1 + phi) / (1 - phi)
    assert 0.7 * truth < np.mean(times) < 1.3 * truth


@pytest.mark.parametrize(
    "text", ["p99", "p99<", "99<5ms", "p99>5ms", "p99<5", "p100<5ms", "p0<5ms", "p101<5ms", "p99<5parsec", ""]
)
def test_what_is_no_objective_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_sla(text)


def test_the_load_is_an_offered_rate_then_a_depth_then_what_was_achieved() -> None:
    rates = {"a": {"rate_iops": "100", "iodepth": "1"}, "b": {"rate_iops": "200", "iodepth": "1"}}
    assert axis_of(rates) == ("rate_iops", {"a": (100, ""), "b": (200, "")})
    depths = {f"{size}-{depth}": {"iodepth": f"{depth}", "bs": size} for size in ("4k", "64k") for depth in (1, 2)}
    axis, places = axis_of(depths)
    assert axis == "iodepth" and places["64k-2"] == (2, "64k")
    again = {"a": {"clients": "1"}, "b": {"clients": "2"}, "c": {"clients": "2"}}
    assert axis_of(again)[1] == {"a": (1, ""), "b": (2, ""), "c": (2, "")}
    for labels, wanted in (({"a": {}, "b": {}}, ""), (rates, ACHIEVED)):
        axis, places = axis_of(labels, wanted)
        assert axis == ACHIEVED and all(math.isnan(load) for load, _ in places.values())
    with pytest.raises(UsageError, match="--load bs"):
        axis_of(depths, "bs")


# From logs and stores ------------------------------------------------------------------------------------------

LOADS = (0.3, 0.5, 0.7, 0.8, 0.9)
WORDS = ("--sla", "p99<1200us", "--sla", "p50<1s", "--format", "csv")


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return logs of M/M/1 at several loads; a service takes 0.1 ms."""
    folder, paths = tmp_path_factory.mktemp("sweep"), []
    for load in LOADS:
        ends, took = queues.open_queue(np.random.default_rng(6), load, 40_000)
        paths.append(folder / f"at-{10 * load:g}.hlog")
        paths[-1].write_text(queues.hlog_of(ends, took))
    return paths


def rows(text: str) -> list[dict[str, str]]:
    head, *lines = text.splitlines()
    return [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]


@pytest.mark.slow
def test_logs_on_disk_give_the_capacity_of_what_was_achieved(sweep: list[Path]) -> None:
    truth = 10_000 * (1 - math.log(100) / 12)
    done = tailboard("capacity", *sweep, *WORDS)
    bound, easy = rows(done.stdout)
    assert bound["axis"] == "achieved" and bound["binds"] == "true" and float(bound["lo"]) < truth < float(bound["hi"])
    assert easy["verdict"] == "cannot tell" and easy["capacity"] == ""
    assert "variation from one run to the next is not in it" in done.stderr and "p99<1200us holds up to" in done.stderr
    points = [json.loads(line) for line in tailboard(
        "capacity", *sweep, "--sla", "p99<1200us", "--points", "--format", "ndjson", "--unit", "ms"
    ).stdout.splitlines()]  # fmt: skip
    assert [at["verdict"] for at in points] == ["meets", "meets", "violates", "violates", "violates"]
    for at, load in zip(points, LOADS, strict=True):
        assert abs(at["achieved"] / (10_000 * load) - 1) < 0.1 and abs(at["value"] / (0.1 * queues.limit_of_mm1(load)) - 1) < 0.5
    table = tailboard("capacity", *sweep, "--sla", "p99<1200us").stdout
    assert "p99<1200us holds up to" in table and "above 1200us" in table and "knee: " in table


@pytest.fixture(scope="module", params=["sqlite", pytest.param("double", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, sweep: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with grounds(request.param, tmp_path_factory.mktemp("ground")) as ground:
        for path, load in zip(sweep, LOADS, strict=True):
            words = ["--label", f"target_rate={10_000 * load:g}", "--store", ground.url]
            assert tailboard("load", path, "--run", path.stem, *words).returncode == 0
        yield ground.url


@pytest.mark.slow
def test_a_store_gives_what_files_give_and_knows_the_offered_rate(sweep: list[Path], store: str) -> None:
    for words in (WORDS, (*WORDS, "--points")):
        by_files, by_store = (
            tailboard("capacity", *sources, *words, "--load", "achieved").stdout for sources in (sweep, [store])
        )
        assert by_store == by_files
    [bound, _] = rows(tailboard("capacity", store, *WORDS).stdout)
    assert bound["axis"] == "target_rate" and (bound["met"], bound["missed"]) == ("5000", "7000")
    with open_store(store) as origin:
        assert len(origin.runs()) == len(LOADS)


def exits(words: list[Any]) -> int:
    return tailboard("capacity", *words).returncode


def test_exit_statuses(sweep: list[Path], store: str) -> None:
    assert exits([store, "--sla", "p99<1200us"]) == 0
    assert exits([store, "--sla", "p99<100us"]) == 1
    assert exits([store, "--sla", "p99<1s"]) == 5
    assert exits([store, "--sla", "p99<1200us", "--run", "at-3"]) == 5
    assert exits([store]) == exits([store, "--sla", "5ms"]) == exits([store, "--sla", "p99<5ms", "--load", "moon"]) == 2
    assert exits([store, "--sla", "p99<5ms", "--run", "none*"]) == 3
    assert exits([*itertools.islice(sweep, 2), "--sla", "p99<100us", "--format", "csv"]) == 1
