"""The excess of events: areas between quantile functions against exact fractions, and the event that a sentence names."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from breath_rings import Work, rings
from ingest.core.units import latency
from ingest.query.excess import excess_sentence, excesses
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.query.windows import regrouped
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from oracles.events import index_of, midpoint
from tests.cli.test_commands import tailboard
from tests.query.incidents import SECOND, ZERO, written


def answer_of(folder: Path, latencies: dict[str, list[int]]):
    events = [
        ("h", op, ZERO + place * SECOND // 10 + 1000, value) for op, own in latencies.items() for place, value in enumerate(own)
    ]
    path = written(folder, sorted(events, key=lambda one: one[2]))
    files = Files([path], ReadOptions(description=description_of(str(folder / "events.yml"))), jobs=1)
    return files.answer(Question(by=("op",), step="all"))


def area(baseline: list[int], run: list[int]) -> Fraction:
    """Return n of the run times the area where its quantile function lies above: each latency as its bin reports it."""
    before, after = (sorted(midpoint(index_of(value)) for value in own) for own in (baseline, run))
    total, cuts = Fraction(0), sorted({Fraction(i, len(own)) for own in (before, after) for i in range(len(own) + 1)})
    for low, high in zip(cuts, cuts[1:]):
        middle = (low + high) / 2
        at = [own[int(middle * len(own))] for own in (before, after)]
        total += max(0, at[1] - at[0]) * (high - low)
    return total * len(run)


@pytest.mark.parametrize("seed", range(6))
def test_the_excess_is_the_area_between_quantile_functions(tmp_path: Path, seed: int) -> None:
    noise = random.Random(seed)
    sides = [
        {op: [int(noise.lognormvariate(13, spread)) for _ in range(noise.randint(1, 40))] for op in ("read", "write")}
        for spread in (0.5, noise.choice((0.5, 1.5)))
    ]
    found = excesses(answer_of(tmp_path / "a", sides[0]), answer_of(tmp_path / "b", sides[1]))
    expected = {op: area(sides[0][op], sides[1][op]) for op in ("read", "write")}
    assert {one.group: one.excess_ns for one in found} == {
        (op,): pytest.approx(float(value), rel=1e-9, abs=1e-6) for op, value in expected.items()
    }
    assert [one.excess_ns for one in found] == sorted((one.excess_ns for one in found), reverse=True)
    for one in found:
        (op,) = one.group
        assert (one.events, one.longest_ns, one.before_ns) == (len(sides[1][op]), max(sides[1][op]), max(sides[0][op]))


def test_without_any_excess_there_is_no_sentence(tmp_path: Path) -> None:
    sides = [{"read": [10_000, 20_000]}, {"read": [9_000, 20_000]}]
    assert excess_sentence(*(answer_of(tmp_path / str(place), own) for place, own in enumerate(sides))) == ""


def weighed(answer, **weights: int):
    """Return an answer by op whose stored events stand for so many each."""
    return replace(answer, weights={(op,): weight for op, weight in weights.items()})


def test_events_of_which_few_were_stored_weigh_what_they_stand_for(tmp_path: Path) -> None:
    """All 3 of one took 1 ms longer each, 20 stored ones of another 10 us: as one in 3,125 was stored these are 625 ms in all."""
    sides = [{"all": [1_000_000] * 3, "few": [100_000] * 20}, {"all": [2_000_000] * 3, "few": [110_000] * 20}]
    answers = [weighed(answer_of(tmp_path / str(place), own), all=1, few=3125) for place, own in enumerate(sides)]
    found = excesses(*answers)
    assert [(one.group, one.events, one.weight) for one in found] == [(("few",), 20, 3125), (("all",), 3, 1)]
    expected = {op: float(area(sides[0][op], sides[1][op])) for op in ("few", "all")}
    assert [one.excess_ns for one in found] == [pytest.approx(3125 * expected["few"]), pytest.approx(expected["all"])]
    told = excess_sentence(*answers)
    assert told.startswith(
        f"The largest excess is that of few: its 20 stored events, one in 3,125, took {latency(found[0].excess_ns)} longer in all"
    )
    assert told.endswith(f" Next: all {latency(found[1].excess_ns)}.")


def test_an_event_of_several_rates_weighs_the_sum(tmp_path: Path) -> None:
    sides = [{"a": [1_000_000] * 4, "b": [1_000_000] * 4}, {"a": [3_000_000] * 4, "b": [1_500_000] * 4}]
    answers = [weighed(answer_of(tmp_path / str(place), own), a=1, b=25) for place, own in enumerate(sides)]
    together = [regrouped(answer, ()) for answer in answers]
    (found,) = excesses(*together)
    before, after = ([value for op, weight in (("a", 1), ("b", 25)) for value in own[op] * weight] for own in sides)
    assert found.excess_ns == pytest.approx(float(area(before, after)), rel=1e-6)
    assert (found.events, found.weight) == (8, 0)
    assert "its 8 stored events took " in excess_sentence(*together) and " longer in all than " in excess_sentence(*together)


@pytest.fixture(scope="module")
def nights(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("nights")
    works = {"good": Work(breaths=3000, counters=True), "bad": Work(breaths=3000, slope=29, counters=True, longest=(1003, 2001))}
    return [rings(folder / name, router=work) for name, work in works.items()]


def test_c6_the_sentence_names_the_event_that_took_longer_not_one_that_moved_by_chance(nights: list[Path]) -> None:
    answers = [Files([night], ReadOptions(run=night.name), jobs=1).answer(Question(by=("op",), step="all")) for night in nights]
    found = excesses(*answers)
    assert found[0].group == ("engine.breath_end",)
    # Two breaths of half a million cycles more, at 2.6 GHz; all others cost a little less.
    assert found[0].excess_ns == pytest.approx(2 * 500_000 / 2.6, rel=0.02)
    assert all(one.excess_ns < found[0].excess_ns / 10 for one in found[1:])
    sentence = excess_sentence(*answers)
    assert sentence.startswith("The largest excess is that of engine.breath_end: its 3,000 stored events took ")
    assert f"the longest took {latency(found[0].longest_ns)}, in the baseline {latency(found[0].before_ns)}." in sentence


@pytest.mark.slow
def test_c6_the_command_and_its_page_say_so(nights: list[Path], tmp_path: Path) -> None:
    words = (*nights, "--baseline", "good", "--run", "bad")
    told = tailboard("compare", *words, "--by", "op")
    assert told.stdout.startswith("The largest excess is that of engine.breath_end: ")
    apart = tailboard("compare", *words)  # unlike events are added up in its table; the verdict keeps them apart, as on the page
    assert apart.stdout.startswith("The largest excess is that of engine.breath_end: ")
    page = tmp_path / "compare.html"
    assert tailboard("compare", *words, "-o", page).returncode == 0
    assert page.read_text().count("The largest excess is that of engine.breath_end: ") == 1
