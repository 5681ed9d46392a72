"""Steps, drifts, rhythms and modes: each is found where it was put in, and nothing near it is taken for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import figure
from ingest.core.errors import listed
from ingest.core.layout import fio_layout
from ingest.query.story.ground import DRIFT, EPISODE, MODES, RHYTHM, SECOND, STALL, STEP, Claim, ClaimedCells, Finding, Ground
from ingest.query.story.segments import PART, Search, changes, every_count, gatherings
from ingest.query.story.shapes import beat_of, modes, periods_of, rhythms, stalls
from ingest.query.story.story import joined, story_of
from query.findings_runs import START, Run, ground_from, in_turn, less, more_and_more, slower, stopped, wander

ALL, B = slice(None), slice(1, 2)
WINDOWS = 300


def run_of(seed: int, **labels: float) -> Run:
    """Return a run that is short, so that tests are."""
    return Run(seed, hosts=3, windows=WINDOWS, rate=80, **labels)


def steps(ground: Ground, so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return the steps and drifts, and changes of shares, of a ground."""
    return [claim for claim in changes(ground, so_far) if claim.kind in (STEP, DRIFT, MODES)]


def at_s(claim: Claim) -> float:
    """Return the time of a change in s of the run."""
    assert claim.details is not None
    return (claim.details["at_ns"] - START) / SECOND


def span_s(found: Claim | Finding) -> tuple[float, float]:
    """Return from when to when something is said, in s of the run."""
    return (found.start_ns - START) / SECOND, (found.end_ns - START) / SECOND


def host_of(claim: Claim | Finding) -> str:
    """Return the host that a claim names, empty for all."""
    return dict(claim.who).get("host", "")


@pytest.mark.parametrize(("which", "host", "factor"), [(ALL, "", 1.3), (ALL, "", 1 / 1.3), (B, "b", 1.6), (B, "b", 1 / 1.6)])
def test_a_step_is_said_once_with_who_when_and_how_far(which: slice, host: str, factor: float) -> None:
    run = run_of(1)
    run.level[which, 130:] += np.log(factor)
    (claim,) = steps(run.ground())
    assert (claim.kind, host_of(claim)) == (STEP, host)
    assert abs(at_s(claim) - 130) <= 2
    assert claim.times == pytest.approx(factor, rel=0.08)
    assert claim.cells.dense[1, 250 if factor > 1 else 50] and not claim.cells.dense[1, 50 if factor > 1 else 250]


@pytest.mark.parametrize(("which", "host"), [(ALL, ""), (B, "b")])
def test_a_drift_is_no_step(which: slice, host: str) -> None:
    run = run_of(2)
    run.level[which] += np.log(np.linspace(1, 1.5, WINDOWS))
    (claim,) = steps(run.ground())
    assert (claim.kind, host_of(claim)) == (DRIFT, host)
    assert claim.times == pytest.approx(1.45, rel=0.12)


def test_what_passes_or_stops_or_is_slow_throughout_is_no_step() -> None:
    passing = run_of(3)
    passing.level[:, 100:130] += np.log(3)
    passing.rate[1, 200:204] = 0
    passing.level[1, 204] += np.log(4000)
    passing.level[2] += np.log(1.5)
    assert steps(passing.ground()) == []
    beginning = run_of(4)
    beginning.level[:, :15] += np.log(3)
    assert steps(beginning.ground()) == []


def test_two_hosts_that_step_at_other_times_are_two_findings() -> None:
    run = run_of(5)
    run.level[0, 100:] += np.log(1.4)
    run.level[2, 200:] += np.log(1.4)
    found = sorted((host_of(claim), round(at_s(claim) / 10)) for claim in steps(run.ground()))
    assert found == [("a", 10), ("c", 20)]


def test_a_host_with_two_operations_is_named_once() -> None:
    run = run_of(6)
    run.groups = [("a", "read"), ("a", "write"), ("b", "read")]
    run.level[:2, 150:] += np.log(1.4)
    assert [claim.who for claim in steps(run.ground())] == [(("host", "a"),)]


def test_gatherings_are_named_by_what_they_have_in_common() -> None:
    groups = [(("host", host), ("op", op)) for host in "ab" for op in ("read", "write")]
    named = {together.who: together.members.tolist() for together in gatherings(groups)}
    assert named[()] == [0, 1, 2, 3]
    assert named[("host", "b"),] == [2, 3]
    assert named[("op", "read"),] == [0, 2]
    assert len(named) == 9


@pytest.mark.slow
@pytest.mark.parametrize(("which", "host"), [(ALL, ""), (B, "b")])
@pytest.mark.parametrize("period", [8.0, 13.7, 30.0])
def test_a_rhythm_is_named_with_its_period_and_phase(which: slice, host: str, period: float) -> None:
    run = run_of(7)
    fine = np.arange(0, WINDOWS, 0.05)
    run.level[which] += np.log(3) * ((fine - 3.2) % period < max(period / 10, 1)).reshape(WINDOWS, -1).mean(axis=1)
    (claim,) = rhythms(run.ground())
    assert claim.details is not None
    assert (claim.kind, host_of(claim)) == (RHYTHM, host)
    assert claim.details["period_ns"] / SECOND == pytest.approx(period, rel=0.02)
    late = ((claim.details["first_ns"] - START) / SECOND - 3.2 + period / 2) % period - period / 2
    assert abs(late) <= 1.5
    assert steps(run.ground()) == [] and modes(run.ground()) == []


@pytest.mark.parametrize(("which", "host", "first"), [(ALL, "", 20), (B, "b", 150)])
def test_a_rhythm_of_a_part_of_the_run_is_said_from_when_to_when(which: slice, host: str, first: int) -> None:
    """It was no rhythm, or one of all the run, or of one host for all: stretches of the whole run decided."""
    run = run_of(8)
    late = np.arange(WINDOWS) - first
    run.level[which, (late >= 0) & (late < 120) & (late % 12 < 2)] += np.log(5)
    (claim,) = rhythms(run.ground())
    assert host_of(claim) == host
    assert claim.details["period_ns"] / SECOND == pytest.approx(12, rel=0.02)
    assert (claim.start_ns - START) / SECOND == pytest.approx(first, abs=2)
    assert (claim.end_ns - START) / SECOND == pytest.approx(first + 120, abs=12)


def test_windows_without_completions_that_come_back_are_a_rhythm() -> None:
    run = run_of(8)
    run.rate[:, 4::20] = 2
    (claim,) = rhythms(run.ground())
    assert claim.details is not None
    assert claim.details["period_ns"] / SECOND == pytest.approx(20, rel=0.02)
    assert claim.missing > 3 * 80 * 14 * 0.8


@given(st.integers(8, 36), st.integers(1, 3), st.integers(0, 30), st.integers(0, 2**32 - 1))
@settings(max_examples=figure(15, 100, 400), deadline=None)
def test_a_harmonic_is_never_named_as_the_period(period: int, width: int, first: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    series = wander(random, 300, 0.7)
    series[(np.arange(300) - first) % period < min(width, period // 5)] += 12
    beat = beat_of(series, periods_of(series[None])[0][1], 3)
    assert beat is not None
    assert beat.period == pytest.approx(period, rel=0.02)


@pytest.mark.parametrize("multiple", [2, 3])
def test_every_second_event_that_is_strong_makes_the_longer_period(multiple: int) -> None:
    random = np.random.default_rng(9)
    series = wander(random, 480, 0.7)
    series[3::10] += 2
    series[3 :: 10 * multiple] += 14
    beat = beat_of(series, periods_of(series[None])[0][1], 1)
    assert beat is not None
    assert beat.period == pytest.approx(10 * multiple, rel=0.02)


def test_a_few_slow_stretches_are_no_rhythm() -> None:
    run = run_of(10)
    for first in (40, 41, 90, 170, 222):
        run.level[:, first : first + 3] += np.log(4)
    assert rhythms(run.ground()) == []


@pytest.mark.parametrize("sigma", [0.3, 1.0])
@pytest.mark.parametrize("after", [0.1, 0.5])
def test_shares_of_modes_that_change_are_said_with_their_time(sigma: float, after: float) -> None:
    run = run_of(11, sigma=sigma)
    run.slow[:] = 0.3
    run.slow[:, 140:] = after
    ground = run.ground()
    (claim,) = steps(ground, modes(ground))
    assert claim.details is not None
    assert (claim.kind, host_of(claim), claim.details["changes"]) == (MODES, "", True)
    assert abs(at_s(claim) - 140) <= 3
    assert claim.details["after"] - claim.details["before"] == pytest.approx(after - 0.3, abs=0.07)
    assert claim.details["peaks_ns"][-1] == pytest.approx(8e6, rel=0.15)


def test_modes_whose_shares_stay_are_a_fact_and_one_of_their_host() -> None:
    run = run_of(12)
    run.slow[1] = 0.3
    (claim,) = modes(run.ground())
    assert claim.details is not None
    assert (host_of(claim), claim.details["changes"], bool(claim.cells.own.any())) == ("b", False, False)
    assert claim.details["shares"][1] == pytest.approx(0.3, abs=0.05)


def test_what_an_episode_or_another_host_makes_slow_is_no_mode() -> None:
    run = run_of(13, sigma=0.3)
    run.level[:, 50:80] += np.log(8)
    run.level[2] += np.log(8)
    assert modes(run.ground()) == []


def test_a_log_in_coarse_units_has_gaps_and_no_modes() -> None:
    random = np.random.default_rng(14)
    cell = np.repeat(np.arange(300), 100)
    values = np.round(np.exp(1.2 + 0.5 * random.standard_normal(len(cell)))) * 1e6
    assert modes(ground_from(cell, np.maximum(values, 1e6), 300, [("a", "read")], ("host", "op"))) == []


@pytest.mark.parametrize("phi", [0.5, 0.9])
def test_quiet_runs_have_nothing(phi: float) -> None:
    said = []
    for seed in range(figure(6, 15, 300)):
        ground = Run(100 + seed, hosts=1 + seed % 4, windows=WINDOWS, rate=60, phi=phi, sigma=0.3 + 0.1 * (seed % 8)).ground()
        said += [claim.kind for detect in (steps, rhythms, modes) for claim in detect(ground)]
    assert said == []


def test_the_story_of_a_rhythm_is_one_finding_in_words() -> None:
    run = run_of(16)
    run.level[:, 5::15] += np.log(3)
    told = story_of(run.ground())
    (finding,) = [finding for finding in told.findings if finding.kind != "edge"]
    assert finding.kind == RHYTHM
    assert re.search(r"every 15 s, for at most 1 s each time, first at 22:13:25.0, p50 3\.\d+ ms", finding.text)
    assert re.fullmatch(r"median 3\.\d+ ms", finding.value)


@pytest.mark.parametrize(("windows", "said"), [(1, "at most 1"), (2, "at most 2"), (4, "about 4")])
def test_what_is_no_longer_than_a_row_smears_is_said_to_last_at_most(windows: int, said: str) -> None:
    run = run_of(16)
    for later in range(windows):
        run.level[:, 5 + later :: 20] += np.log(3)
    told = story_of(run.ground())
    assert any(f"every 20 s, for {said} s each time, " in finding.text for finding in told.findings)


# ---- A step and a drift at once, beside modes, beside what passes; the time of a change.


def test_what_is_claimed_to_pass_is_left_out_of_levels() -> None:
    """An episode of 25 windows and a step soon after it: without the episode the step is as it was put in."""
    run = run_of(20)
    run.level[:, 90:115] += np.log(4)
    run.level[1, 150:] += np.log(1.3)
    ground = run.ground()
    (claim,) = steps(ground)
    assert (claim.kind, host_of(claim), claim.times) == (STEP, "b", pytest.approx(1.3, rel=0.06))
    assert abs(at_s(claim) - 150) <= 2


def test_the_slow_part_of_a_step_down_is_the_time_before_it() -> None:
    run = run_of(21)
    run.level[:, :120] += np.log(1.5)
    told = story_of(run.ground())
    (finding,) = [finding for finding in told.findings if finding.kind == STEP]
    assert (finding.start_ns - START) / SECOND == 0
    assert (finding.end_ns - START) / SECOND == pytest.approx(120, abs=2)
    assert re.match(r"all hosts were 1\.\d+ times slower until 22:15:(19|20|21)\.0 than from there on: p50 went", finding.text)


@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_the_time_of_a_step_of_one_host_is_within_two_windows(sigma: float) -> None:
    """Two operations of few samples each: the p50 of a window alone would not tell."""
    late = []
    for seed in range(figure(6, 15, 60)):
        run = run_of(40 + seed, sigma=sigma)
        run.groups = [("a", "read"), ("a", "write"), ("b", "read")]
        run.level[:2, 130 + seed :] += np.log(1.35)
        (claim,) = steps(run.ground())
        assert claim.who == (("host", "a"),)
        late.append(abs(at_s(claim) - 130 - seed))
    assert max(late) <= 2


def test_what_lies_within_a_bin_or_its_neighbour_is_no_difference() -> None:
    """Bins a factor of 2 wide: 0.95 and 1.15 ms are in neighbours; 0.9 and 2.3 ms have a bin between them."""
    random = np.random.default_rng(22)
    cell = np.repeat(np.arange(300), 100)
    for factor, said in ((1.2, []), (2.5, [STEP])):
        values = 0.95e6 * np.exp(0.02 * random.standard_normal(len(cell))) * np.where(cell >= 150, factor, 1)
        ground = ground_from(cell, values, 300, [("a", "read")], ("host", "op"), fio_layout(29, 1, 6))
        assert [claim.kind for claim in steps(ground)] == said


def test_a_rhythm_with_one_period_that_is_seen_in_single_members_is_one_finding() -> None:
    """Of a closed loop: p50 told of reads of all hosts, and p99 of writes of each of them."""
    run = run_of(23)
    run.level[:, 5::15] += np.log(3)
    ground = run.ground()
    (claim,) = rhythms(ground)
    assert claim.details is not None
    apart = [
        replace(claim, who=labels, cells=ClaimedCells.of(claim.cells.dense & (np.arange(3) == code)[:, None]))
        for code, labels in enumerate(ground.groups)
    ]
    (whole,) = joined(ground, apart)
    assert whole.who == () and (whole.cells.dense == claim.cells.dense).all()
    other = replace(apart[0], details={**claim.details, "period_ns": 1.5 * claim.details["period_ns"]})
    assert len(joined(ground, [other, *apart[1:]])) == 3


@pytest.mark.parametrize("slow", [[(20, 40)], [(10, 16), (40, 46)]])
def test_a_plateau_of_a_third_of_the_run_and_two_episodes_are_found(slow: list[tuple[int, int]]) -> None:
    """Samples of 3 hosts over 60 s, one of them 8 times slower: nothing stood out from a sixth of the run on, or of two episodes."""
    run = Run(6, hosts=3, windows=60, rate=200, phi=0)
    for first, end in slow:
        run.level[2, first:end] += np.log(8)
    told = story_of(run.ground()).findings
    times = sorted(span_s(found) for found in told)
    assert times == slow
    assert {dict(found.who)["host"] for found in told} == {"c"}
    assert all(found.times == pytest.approx(8, rel=0.1) for found in told)


def test_an_outage_is_told_in_the_window_that_holds_most_of_it_and_by_what_waited_for_it() -> None:
    """A row of a log lies in two windows of the run: what waited 0.4 s of the row is seen in both."""
    run = run_of(11)
    run.slow[1, 100:102] = 0.3, 0.08
    run.sigma = 0.2
    (found,) = [claim for claim in changes(run.ground()) if claim.kind == EPISODE]
    assert (host_of(found), *span_s(found)) == ("b", 100, 101)
    assert found.times is not None and found.times > 6 and found.details["percentile"] != "p50"
    assert found.cells.dense[1, 101]


def test_what_a_stall_made_wait_hides_no_slow_share_of_other_times() -> None:
    run = run_of(12)
    run.rate[:, 200:206] = 0
    run.rate[:, 206] *= 7
    run.level[:, 206] += np.log(4000)
    run.slow[:, 60:110] = 0.02
    told = story_of(run.ground()).findings
    assert [(found.kind, dict(found.who), round((found.start_ns - START) / SECOND, -1)) for found in told] == [
        ("stall", {}, 200),
        ("episode", {}, 60),
    ]


def test_an_episode_of_all_is_not_made_by_a_stronger_one_of_a_host_within_it() -> None:
    """Nothing is left of it: all but one host were as usual, and that one has its own finding."""
    run = run_of(13)
    run.level[:, 90:150] += np.log(1.1)
    run.level[1, 110:116] += np.log(20)
    found = [claim for claim in changes(run.ground()) if claim.kind == EPISODE]
    assert [(host_of(claim), round((claim.start_ns - START) / SECOND)) for claim in found] == [("b", 110)]


@pytest.mark.parametrize("seed", [20, 30])
def test_what_a_warm_up_of_all_moves_is_no_drift_of_one(seed: int) -> None:
    run = run_of(seed)
    run.level[:, :130] += np.log(3) * np.exp(-np.arange(130) / 60)
    run.level[1] += np.log(np.linspace(1.15, 1, WINDOWS))
    assert {(claim.kind, host_of(claim)) for claim in steps(run.ground())} == {(STEP, "")}


@pytest.mark.parametrize("seed", [2, 7, 9])
def test_a_tail_that_grows_at_once_is_no_drift(seed: int) -> None:
    run = run_of(seed)
    run.level[1] += np.log(np.linspace(1, 1.18, WINDOWS))
    run.slow[1, 100:] = 0.04
    assert DRIFT not in {claim.kind for claim in changes(run.ground())}


def test_a_stall_is_as_long_as_what_waited_the_longest_from_when_less_completes() -> None:
    """What waited is written in a row that lies in two windows of the run: the first of them does not end the stall."""
    run = run_of(16)
    run.sigma = 0.02
    run.rate[1, 199:205] = 52, 0, 0, 0, 140, 300
    run.level[1, 203:205] = np.log(4500)
    (found,) = stalls(run.ground())
    began, ended = span_s(found)
    assert began == pytest.approx(199.65, abs=0.15)
    assert ended - began == pytest.approx(4.65, abs=0.2)


@pytest.mark.parametrize(("hosts", "who"), [([1], "b"), ([0, 1, 2], "")])
def test_one_operation_that_waited_while_no_other_completed_is_a_stall(hosts: list[int], who: str) -> None:
    """Of a load with one operation under way an outage of 0.7 s is one slow operation of 24,000, and 0.2 % of what completes."""
    run = run_of(31)
    run.rate[hosts, 150:152] *= [[0.7, 0.6]]
    run.waited = [(host, 151, 0.7 * SECOND) for host in hosts]
    (found,) = story_of(run.ground()).findings
    began, ended = span_s(found)
    assert (found.kind, dict(found.who).get("host", "")) == (STALL, who)
    assert (began, ended) == (pytest.approx(150.7, abs=0.2), pytest.approx(151.4, abs=0.2))


def test_neither_a_slow_operation_nor_a_window_with_fewer_is_a_stall_by_itself() -> None:
    run = run_of(32)
    run.waited = [(1, 80, 0.7 * SECOND)]
    run.rate[1, 200] *= 0.6
    assert stalls(run.ground()) == []


def test_where_operations_wait_as_long_all_the_time_none_is_a_stall() -> None:
    """A tail that falls as a power of the latency: the longest of 24,000 operations are as long as such a tail makes them."""
    run = run_of(33)
    run.rate[:] = 80
    tail = 3e6 * run.random.pareto(0.9, 900)
    run.waited = [
        (int(each), int(at), took) for each, at, took in zip(run.random.integers(0, 3, 900), range(900), tail, strict=True)
    ]
    run.waited = [(host, at % WINDOWS, took) for host, at, took in run.waited]
    assert stalls(run.ground()) == []


def test_a_host_that_is_so_slow_that_windows_stay_empty_is_one_episode() -> None:
    """Each empty stretch was a stall of its own after which nothing came late, and what was left of the episode a third of it."""
    run = Run(34, hosts=3, windows=WINDOWS, rate=10)
    run.rate[1, 120:180] /= 40
    run.level[1, 120:180] += np.log(40)
    (found,) = story_of(run.ground()).findings
    times = span_s(found)
    assert (found.kind, dict(found.who)["host"], times) == (EPISODE, "b", (120, 180))


def test_a_pause_after_which_nothing_came_late_stays_a_stall() -> None:
    run = run_of(35)
    run.rate[:, 120:126] = 0
    (found,) = story_of(run.ground()).findings
    assert found.kind == STALL and "no late completion" in found.text


def test_two_of_three_hosts_are_not_all() -> None:
    run = run_of(36)
    run.level[1, 100:110] += np.log(20)
    run.level[2, 100:110] += np.log(6)
    told = story_of(run.ground()).findings
    assert sorted((dict(found.who)["host"], round(found.times or 0, -1)) for found in told) == [("b", 20), ("c", 10)]


@pytest.mark.parametrize("slow", [slice(0, 90), slice(210, None)])
def test_beside_the_slower_part_of_a_step_stands_how_slow_that_is(slow: slice) -> None:
    run = run_of(39)
    run.level[:, slow] += np.log(3)
    (found,) = story_of(run.ground()).findings
    name, reached = found.value.split(" ", 1)
    assert (found.kind, name) == (STEP, "median") and f"{'from' if slow.start == 0 else 'to'} {reached}" in found.text


def test_all_did_less_of_their_work() -> None:
    run = run_of(43)
    run.rate[:, 100:120] *= 0.4
    (found,) = story_of(run.ground()).findings
    assert found.text.startswith("all hosts did 40 % of their usual work from ")


@pytest.mark.parametrize(("level", "words"), [(slice(None), "until"), (slice(None, None, -1), "from")])
def test_a_drift_that_ends_or_begins_within_the_run_says_when(level: slice, words: str) -> None:
    """What wears off over 60 % of the run and is level from there on was said of the whole run."""
    run = run_of(37)
    run.level[1] += np.maximum(np.log(8) * (1 - np.arange(WINDOWS) / 180), 0)[level]
    (found,) = story_of(run.ground()).findings
    times = span_s(found)
    assert found.kind == DRIFT and f"little by little {words}" in found.text
    assert times == pytest.approx((0, 180) if words == "until" else (120, 300), abs=15)


def test_a_rate_that_is_low_at_the_beginning_hides_no_event_right_after_it() -> None:
    """All of it was "doing less at the beginning of the run": a little less for 6 s, and nearly nothing for 4."""
    run = run_of(38)
    run.rate[1, :6] *= 0.83
    run.rate[1, 6:10] *= 0.05
    run.level[1, 6:10] += np.log(20)
    (found,) = (claim for claim in changes(run.ground()) if host_of(claim) == "b")
    assert (found.kind, *span_s(found)) == (EPISODE, 6, 10)


def test_a_rhythm_of_few_windows_is_told_where_windows_vary_no_more_than_counting_makes_them() -> None:
    """Short periods leave few stretches to see that by: as an estimate of 20 degrees of freedom it never was beyond chance."""
    run = Run(40, hosts=3, windows=75, rate=25)
    fine = np.arange(0, 75, 0.01)
    run.level[1] += np.log(3) * ((fine - 0.3) % 3.55 < 0.9).reshape(75, -1).mean(axis=1)
    (claim,) = rhythms(run.ground())
    assert host_of(claim) == "b" and claim.details["period_ns"] / SECOND == pytest.approx(3.55, rel=0.01)


@pytest.mark.parametrize("rate", [3.76, 5.755])
@pytest.mark.parametrize("hosts", [1, 3])
def test_what_a_paced_load_completes_beats_with_windows_and_is_no_rhythm(rate: float, hosts: int) -> None:
    """Of 3.76 a second every fourth window has three instead of four, of all hosts alike."""
    counts = np.diff(np.floor(rate * np.arange(WINDOWS + 1))).astype(np.int64)
    cell = np.repeat(np.arange(hosts * WINDOWS), np.tile(counts, hosts))
    values = 1e6 * np.exp(0.3 * np.random.default_rng(40).standard_normal(len(cell)))
    groups = [(host, "read") for host in "abc"[:hosts]]
    assert rhythms(ground_from(cell, values, WINDOWS, groups, ("host", "op"))) == []


def test_modes_of_many_members_are_told_of_the_largest() -> None:
    run = Run(41, hosts=8, windows=60, rate=60)
    run.slow[:] = 0.4
    run.level += np.linspace(0, 3, 8)[:, None]  # places of one are not those of another
    *told, others = [caveat for caveat in story_of(run.ground()).caveats if "gather" in caveat]
    assert len(told) == len({text.split(" gather")[0] for text in told}) == 4
    assert others == "Latencies of 3 other members gather at several places, too."


def test_a_burst_right_after_a_gap_tells_that_it_ended_within_a_window_that_is_filled() -> None:
    """A paced load makes up in the last 0.2 s of window 202 for what it had lacked before: as many as usual complete in it."""
    run = run_of(42)
    run.sigma = 0.02
    run.rate[1, 199:205] = 44, 0, 0, 74, 290, 80
    run.level[1, 202:204] = np.log(3300)
    (found,) = stalls(run.ground())
    began, ended = span_s(found)
    assert (began, ended) == (pytest.approx(199.5, abs=0.2), pytest.approx(202.9, abs=0.3))


def test_all_hosts_stall_where_operations_of_most_of_them_waited() -> None:
    run = run_of(43)
    run.rate[:] = 80
    run.rate[:, 150] = 52
    run.waited = [(1, 150, 0.3 * SECOND)]
    assert [dict(claim.who) for claim in stalls(run.ground())] in ([], [{"host": "b"}])
    run.waited += [(0, 150, 0.3 * SECOND)]
    assert [claim.who for claim in stalls(run.ground())] == [()]


def test_stalls_of_some_hosts_that_are_an_outage_of_all_are_told_as_that() -> None:
    """Windows of the others are not quite dark: a row of a log lies in two of them."""
    run = Run(44, hosts=6, windows=120, rate=60)
    run.rate[:, 60:63] *= 0.25
    run.rate[:2, 60:63] = 0
    run.waited = [(host, 63, 3 * SECOND) for host in range(6) for _ in range(4)]
    assert [found.who for found in story_of(run.ground()).findings] == [()]


def test_pauses_of_members_while_all_do_less_are_chance() -> None:
    """Of 4 operations a second at a tenth of their rate some member does none for 8 s."""
    run = Run(61, hosts=8, windows=150, rate=4)
    run.rate[:, 60:75] *= 0.13
    assert {(found.kind, found.who) for found in story_of(run.ground()).findings} == {(EPISODE, ())}


def test_what_a_rhythm_makes_slow_is_none_of_the_numbers_of_what_lasts_meanwhile() -> None:
    """It took 1.6 times as long for 28 s, and that was told as 20 times, which the rhythm made."""
    run = run_of(47)
    run.level[1] += np.log(20) * (np.arange(WINDOWS) % 30 < 4)
    run.level[1, 140:168] += np.log(1.6)
    told = {found.kind: found for found in story_of(run.ground()).findings}
    assert told.keys() == {RHYTHM, EPISODE}
    assert told[EPISODE].times == pytest.approx(1.6, rel=0.15)


def test_windows_that_are_of_an_episode_in_part_do_not_tell_how_bad_it_is() -> None:
    """Of a closed loop most of what completes in the windows of an episode is of before and after it."""
    run = Run(48, hosts=3, windows=WINDOWS, rate=100)
    run.rate[1, 121:127], run.slow[1, 121:127] = 8, 1
    run.rate[1, [120, 127]], run.slow[1, [120, 127]] = 40, 0.1
    (found,) = story_of(run.ground()).findings
    assert (found.kind, found.value.split(" ")[0]) == (EPISODE, "median") and found.times == pytest.approx(8, rel=0.15)


@pytest.mark.parametrize(("factor", "windows"), [(1.7, 90), (4, 66)])
def test_a_drift_of_all_is_told_of_all_however_each_wanders(factor: float, windows: int) -> None:
    """Of some hosts a line did not fit better than two levels: the others were told one by one; of all it moved its own chance."""
    run = Run(48, hosts=10, windows=windows, rate=40, phi=0.7)
    run.level *= 2
    run.level += np.log(np.linspace(1, factor, windows))
    (found,) = story_of(run.ground()).findings
    assert (found.kind, found.who) == (DRIFT, ())


def test_while_all_are_so_slow_that_some_complete_nothing_none_of_these_has_stalled() -> None:
    run = Run(52, hosts=26, windows=69, rate=40)
    run.rate[:, 50:53] *= [[0.33, 0.06, 0.33]]
    run.rate[:5, 51] = 0
    run.level[:, 51] += np.log(24)
    ground = run.ground()
    assert stalls(ground) == []
    assert [(found.kind, found.who) for found in story_of(ground).findings] == [(EPISODE, ())]


def test_what_is_left_of_a_stretch_beside_its_highest_level_has_parts_of_its_own() -> None:
    """An episode of 2 s, a minute a little slower than usual, and another episode: of the last nothing was told."""
    run = Run(51, hosts=3, windows=200, rate=80)
    run.level[1, 0:2] += np.log(17)
    run.level[1, 2:60] += 0.12
    run.level[1, 60:62] += np.log(6)
    search = Search(ground := run.ground(), every_count(ground))
    number = next(number for number, (who, _) in enumerate(search.sums.sets) if dict(who).get("host") == "b")
    search.latency[number] = [(0, 2), (2, 60), (60, 62), (62, 200)]
    assert search._parts(number, (0, 62), np.arange(200) >= 62, PART, slower=True) == [(0, 2), (60, 62), (2, 60)]


def test_where_as_few_are_usual_as_are_not_both_wander() -> None:
    """A level is held against what is near it: that wanders as much, so that twice the variance is what chance does."""
    search = Search(ground := run_of(53).ground(), every_count(ground))
    inside, usual = np.array([1000.0, 900, 500, 100, 0]), np.array([1000.0, 500, 100, 10, 0])
    near, far = (search._strengths(np.array([1]), inside, held * usual, 0.5, np.array([400.0, 1, 1, 1, 1])) for held in (1, 1000))
    assert near.max() == pytest.approx(far.max() / 2, rel=0.1)


def test_an_episode_of_all_is_of_all_though_one_host_was_slower_for_longer_before() -> None:
    """By its own quantiles, which that had made, it did not do the same: both others were told by themselves."""
    run = run_of(46)
    run.level[1, :165] += np.log(np.linspace(9, 7, 165))
    run.level[:, 255:270] += np.log(3.5)
    told = [(found.kind, host_of(found)) for found in story_of(run.ground()).findings]
    assert sorted(told) == [(EPISODE, ""), (STEP, "b")]


def test_what_a_stall_of_another_host_held_back_is_of_no_rhythm() -> None:
    run = Run(55, hosts=3, windows=75, rate=150)
    run.level[1] += np.log(15) * (np.arange(75) % 3 == 0)
    run.rate[2, 16:24] = 0
    run.waited = [(2, at, 1e9 * (at - 15.5)) for at in (24, 27) for _ in range(600)]
    assert [host_of(found) for found in story_of(run.ground()).findings if found.kind == RHYTHM] == ["b"]


def test_the_last_event_of_a_rhythm_that_the_end_of_the_run_cuts_off_is_of_it() -> None:
    run = run_of(56)
    run.level += np.log(2.6) * (((np.arange(WINDOWS) - 10) % 12 < 3) & (np.arange(WINDOWS) > 60))
    assert [found.kind for found in story_of(run.ground()).findings] == [RHYTHM]


def test_an_outage_that_is_no_stall_is_as_long_as_what_waited_for_it() -> None:
    """With few operations a second too few windows are dark. It was told for the two in which all that waited completed."""
    run = Run(57, hosts=3, windows=200, rate=22)
    run.rate[1, 120:125] = [14, 5, 0, 0, 10]
    run.waited = [(1, 123 + (number > 15), 2.8e9 * (number + 1) / 70) for number in range(70)]
    slower = [claim for claim in changes(run.ground()) if claim.value_ns]
    assert [host_of(claim) for claim in slower] == ["b"]
    assert span_s(slower[0]) == pytest.approx((121.5, 124.3), abs=0.3)


@pytest.mark.parametrize("stretch", [slice(0, 30), slice(120, 180)], ids=["first", "within"])
@pytest.mark.parametrize("event", [slower, less, stopped, in_turn, more_and_more])
@pytest.mark.parametrize(("hosts", "some"), [(3, 2), (10, 8), (10, 10), (10, 7), (10, 5), (10, 3), (2, 1)])
def test_all_hosts_are_all_that_did_it(stretch: slice, event: Callable[[Run, slice, slice], None], hosts: int, some: int) -> None:
    """`all hosts were 1.77 times slower`, of ten of which two were as quick as ever: eight were, 2 times."""
    run = Run(2, hosts=hosts, windows=240, phi=0.3)
    event(run, slice(some), slice(None) if event is in_turn else stretch)
    names = [host for host, _ in run.groups]
    told = [finding for finding in story_of(run.ground()).findings if finding.samples > 200 or finding.missing > 200]
    for finding in told:
        if some < 3:  # each by itself
            assert dict(finding.who)["host"] in names[:some], finding.text
        elif some == hosts:
            assert finding.who == () and not finding.members, finding.text
        elif 2 * some >= hosts:
            assert finding.text.startswith(f"{some} of {hosts} hosts "), finding.text
            assert f". Not {listed(names[some:], 5)}." in finding.text
        else:
            assert finding.text.startswith(f"{some} of {hosts} hosts ({listed(names[:some], 5)}) "), finding.text
        assert not finding.members or [dict(labels)["host"] for labels in finding.members] == names[:some]
        named = [word for word in finding.command.split() if word.startswith("host=")]
        assert named == ([f"host={host}" for host in names[:some]] if finding.members and some <= 5 else named[:1]), (
            finding.command
        )
        if event is slower and finding.times is not None:
            assert max(finding.times, 1 / finding.times) == pytest.approx(2, rel=0.1), finding.text
        elif event is less and finding.times is not None:
            assert finding.times == pytest.approx(0.4, rel=0.1), finding.text
    assert told


@pytest.mark.parametrize(("turns", "told"), [((0, 0, 0), 1), ((0, 4, 8), 3)])
def test_rhythms_of_several_hosts_are_one_where_they_are_in_step(turns: Sequence[int], told: int) -> None:
    run = Run(2, hosts=10, windows=240, phi=0.3)
    for host, turn in enumerate(turns):
        in_turn(run, slice(host, host + 1), slice(turn, None, None))
    found = [finding for finding in story_of(run.ground()).findings if finding.kind == RHYTHM]
    assert len(found) == told


@pytest.mark.parametrize("windows", [2, 5])
@pytest.mark.parametrize("event", [slower, less])
@pytest.mark.parametrize("seed", range(3))
def test_what_some_hosts_did_for_a_moment_is_said_of_these(
    seed: int, event: Callable[[Run, slice, slice], None], windows: int
) -> None:
    """Of 120 operations a second: no other host speaks against a little of it, and all together did a little less."""
    run = Run(seed, hosts=10, windows=200, phi=0.3, rate=120)
    event(run, slice(4), slice(100, 100 + windows))
    (finding,) = story_of(run.ground()).findings
    assert finding.text.startswith("4 of 10 hosts (a, b, c, d) "), finding.text
