"""Phases: which windows lie during, outside, before and after marks, and what is found in them, against loops over every window."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.errors import InputError, UsageError
from ingest.core.marks import AFTER, BEFORE, DURING, OUTSIDE, WORDS, InstantError, Mark, Phase, noted, stretches
from ingest.core.units import Instant
from ingest.objectives.check import Checked, check
from ingest.objectives.objectives import read_objectives
from ingest.query.compare import noted_in, sides_of
from ingest.query.episodes import ENDED, OPEN, Episode
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from oracles import episodes as oracle
from tests.effort import figure
from tests.query.incidents import MS, SECOND, ZERO, drawn, drawn_marks, written
from tests.query.test_episodes import at, spans
from tests.store.grounds import grounds, loaded


def marks_of(spans: list[tuple[int, int | None]], text: str = "m") -> list[dict]:
    return [noted("r", low, f"{text} {number}", high) for number, (low, high) in enumerate(spans)]


def judged_windows(word: str, marks: list[dict], low: int, high: int, step: int) -> list[int]:
    """Return the starts of the windows between two edges that a phase holds."""
    try:
        chosen = stretches([Phase(word, "m*")], marks, "r").within(low, high, step)
    except InputError:
        return []
    ends = [edge for span in chosen.spans for edge in span]
    assert ends == sorted(ends)
    assert len(ends) == len(set(ends)), "stretches that touch are one"
    return [start for begin, end in chosen.spans for start in range(begin, end, step)]


SPANS = st.lists(
    st.tuples(st.integers(-40, 140), st.none() | st.integers(0, 60)).map(
        lambda pair: (pair[0], None if pair[1] is None else pair[0] + pair[1])
    ),
    min_size=1,
    max_size=5,
)


@given(spans=SPANS, step=st.integers(1, 12), first=st.integers(-5, 5), count=st.integers(1, 20))
def test_a_window_is_in_a_phase_exactly_where_all_of_it_is(spans: list, step: int, first: int, count: int) -> None:
    marks, low, high = marks_of(spans), first * step, (first + count) * step
    windows = range(low, high, step)
    inside: dict[str, list[int]] = {}
    for word in WORDS:
        if word == DURING and all(end is None for _, end in spans):
            with pytest.raises(InstantError, match="has no end"):
                stretches([Phase(word, "m*")], marks, "r")
            continue
        inside[word] = judged_windows(word, marks, low, high, step)
        assert inside[word] == [start for start in windows if oracle.in_phase(word, spans, start, start + step)], word
    during, outside = inside.get(DURING, []), inside[OUTSIDE]
    across = [
        start
        for start in windows
        if any(
            start < edge < start + step or (end is not None and start == begin and edge == end)
            for begin, end in spans
            for edge in (begin, end)
            if edge is not None
        )
    ]
    assert not set(during) & set(outside)
    # What is neither holds an edge of a mark: no other window is left out.
    assert set(windows) - set(during) - set(outside) <= set(across)


@given(spans=SPANS, others=SPANS, step=st.integers(1, 12), word=st.sampled_from(WORDS[1:]), other=st.sampled_from(WORDS[1:]))
def test_of_two_phases_a_window_lies_in_both(spans: list, others: list, step: int, word: str, other: str) -> None:
    marks, low, high = [*marks_of(spans), *marks_of(others, "n")], -10 * step, 12 * step
    try:
        chosen = stretches([Phase(word, "m*"), Phase(other, "n*")], marks, "r").within(low, high, step).spans
    except InputError:
        chosen = ()
    assert [start for begin, end in chosen for start in range(begin, end, step)] == [
        start
        for start in range(low, high, step)
        if oracle.in_phase(word, spans, start, start + step) and oracle.in_phase(other, others, start, start + step)
    ]


# ---- objectives --------------------------------------------------------------------------------------------------------


def phased(folder: Path, events: list[oracle.Event], text: str, marks: list[Mark], ground=None, **words) -> Checked:
    """Return what check says: of files with marks of files, or of a store that keeps them."""
    path = written(folder, events)
    (folder / "SLA.yml").write_text(text)
    reading = {"description": description_of(str(folder / "events.yml"))}
    objectives, question = read_objectives(folder / "SLA.yml"), words.pop("question", Question())
    words |= {"objectives": objectives, "selection": question, "path": folder / "SLA.yml"}
    if ground is None:
        files = Files([path], ReadOptions(**reading), jobs=1)
        return check(files.answer, {run: {} for run in files.run_names}, noted=noted_in(files, marks), **words)
    loaded(ground.url, [path], run=folder.name, reading=reading)
    with open_store(ground.url, write=True) as store:
        store.mark_all(folder.name, [noted("", each.at.ns, each.text, each.end and each.end.ns) for each in marks])
        return check(store.answer, {folder.name: {}}, noted=noted_in(store), **words)


BUSY = at(*range(30)) + at(9, 10, 11, 12, 20, ms=50)
MOVE = [Mark(Instant(ZERO + 10 * SECOND), "rebalance 3", Instant(ZERO + 12 * SECOND))]


def told_of(folder: Path, words: str, marks: list[Mark], **more) -> tuple[Checked, list[Episode]]:
    text = f"objectives:\n  - {{name: a, percentile: 99, threshold: 5ms, window: 1s, {words}}}\n"
    told = phased(folder, BUSY, text, marks, **more)
    return told, [one for verdict in told.verdicts for one in verdict.episodes]


@pytest.mark.parametrize(
    ("words", "expected", "judged"),
    [
        ("hold: 0", [(9, 13), (20, 21)], (30, 0)),
        ("during: 'rebalance*'", [(10, 12)], (2, 28)),
        ("outside: 'rebalance*'", [(9, 10), (12, 13), (20, 21)], (28, 2)),
        ("outside: 'rebalance*', hold: 20s", [(9, 10), (12, 21)], (28, 2)),
        ("outside: rebalance 3, for: 2s", [], (28, 2)),
        ("before: 'rebalance*'", [(9, 10)], (10, 20)),
        ("after: 'rebalance*'", [(12, 13), (20, 21)], (18, 12)),
        ("after: 'rebal*', before: 'rebal*'", None, None),
        ("outside: 'other*'", [(9, 13), (20, 21)], (30, 0)),
    ],
)
def test_an_episode_never_reaches_over_what_is_not_judged(tmp_path: Path, words: str, expected, judged) -> None:
    if expected is None:
        with pytest.raises(InputError, match="no window of 1s lies wholly before 'rebal\\*', after 'rebal\\*'"):
            told_of(tmp_path, words, MOVE)
        return
    told, episodes = told_of(tmp_path, words, MOVE)
    (verdict,) = told.verdicts
    assert spans(episodes) == expected
    assert (verdict.windows, verdict.not_judged) == judged
    assert all(one.state == ENDED for one in episodes) or "hold: 20s" in words
    assert any("other*" in warning for warning in told.warnings) == ("other" in words)


def test_what_is_violated_up_to_the_end_of_a_phase_has_ended_with_it_and_at_the_end_of_the_run_is_open(tmp_path: Path) -> None:
    late = [replace(MOVE[0], at=Instant(ZERO + 21 * SECOND), end=Instant(ZERO + 22 * SECOND))]
    assert [one.state for one in told_of(tmp_path / "a", "before: 'reb*', hold: 30s", late)[1]] == [ENDED]
    early = [replace(MOVE[0], at=Instant(ZERO), end=Instant(ZERO + SECOND))]
    assert [one.state for one in told_of(tmp_path / "b", "after: 'reb*', hold: 30s", early)[1]] == [OPEN]


def test_a_budget_is_a_share_of_the_windows_that_are_judged(tmp_path: Path) -> None:
    told, _ = told_of(tmp_path / "a", "during: 'reb*', budget: 50%", MOVE)
    assert (told.verdicts[0].used, told.met) == ((1, 1), False)
    told, _ = told_of(tmp_path / "b", "outside: 'reb*', budget: 11%", MOVE)
    assert (told.verdicts[0].violated, told.verdicts[0].windows, told.met) == (3, 28, True)


@pytest.mark.parametrize("word", [DURING, BEFORE, AFTER])
def test_a_mark_that_is_not_there_leaves_its_objective_unjudged_and_names_those_that_are(tmp_path: Path, word: str) -> None:
    text = (
        "objectives:\n  - {name: a, percentile: 99, threshold: 5ms, window: 1s}\n"
        f"  - {{name: b, percentile: 99, threshold: 5ms, window: 1s, {word}: 'cache*'}}\n"
    )
    told = phased(tmp_path, BUSY, text, MOVE)
    assert [verdict.objective.name for verdict in told.verdicts] == ["a"]
    (left,) = told.unjudged
    assert left.objective.name == "b"
    assert left.reason == f"no mark of the run matches {word}: cache* (its marks: 'rebalance 3')"


def test_during_an_instant_is_an_error_with_its_line_and_waits_for_an_end_while_a_run_grows(tmp_path: Path) -> None:
    text = (
        "objectives:\n  - {name: a, percentile: 99, threshold: 5ms, window: 1s}\n  - name: b\n    percentile: 99\n"
        "    threshold: 5ms\n    window: 1s\n    during: cache on\n"
    )
    marks = [Mark(Instant(ZERO + 10 * SECOND), "cache on")]
    with pytest.raises(InputError, match="which has no end, and nothing lies during an instant: give it an end") as caught:
        phased(tmp_path, BUSY, text, marks)
    assert (caught.value.path, caught.value.line) == (tmp_path / "SLA.yml", 7)
    told = phased(tmp_path, BUSY, text, marks, growing=True)
    assert [entry.objective.name for entry in told.unjudged] == ["b"]


def test_a_range_is_cut_first_and_what_lies_outside_of_it_is_not_counted(tmp_path: Path) -> None:
    question = Question(begin=Instant(5 * SECOND, relative=True), end=Instant(15 * SECOND, relative=True))
    told, episodes = told_of(tmp_path, "outside: 'rebalance*'", MOVE, question=question)
    (verdict,) = told.verdicts
    zero = verdict.zero_ns
    low, high = -(-(zero + 5 * SECOND) // SECOND) * SECOND, (zero + 15 * SECOND) // SECOND * SECOND
    assert verdict.windows + verdict.not_judged == (high - low) // SECOND
    assert verdict.not_judged == 2
    assert spans(episodes) == [(9, 10), (12, 13)]


# ---- two sides of a run ------------------------------------------------------------------------------------------------


def latencies_in(answer, steps: set[int]) -> Counter:
    """Return how many samples each group of an answer holds in each bin."""
    found: Counter = Counter()
    for part in answer.parts:
        for row in range(len(part)):
            for place in range(part.indptr[row], part.indptr[row + 1]):
                found[part.table[part.series[row]], int(part.layout.values[part.bins[place]])] += int(part.counts[place])
    steps.add(answer.step_ns)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["files", "sqlite", "double"])
def test_both_sides_hold_the_windows_of_their_phase_whatever_the_step(tmp_path: Path, kind: str) -> None:
    tried = 0
    with contextlib.ExitStack() as stack:
        ground = None if kind == "files" else stack.enter_context(grounds(kind, tmp_path))
        for seed in range(figure(quick=6 if kind == "files" else 3, full=8, soak=200)):
            events, _ = drawn(seed)
            spans = [(low, None if seed % 2 else high or low + 3 * SECOND) for low, high in drawn_marks(seed)]
            path, run = written(tmp_path / str(seed), events), f"r{seed}"
            reading = {"description": description_of(str(tmp_path / str(seed) / "events.yml"))}
            if ground is None:
                origin = Files([path], ReadOptions(run=run, **reading), jobs=1)
            else:
                loaded(ground.url, [path], run=run, reading=reading)
                origin = stack.enter_context(open_store(ground.url))
            marks = [Mark(Instant(low), "move", None if high is None else Instant(high)) for low, high in spans]
            words = (BEFORE, AFTER) if seed % 2 else (OUTSIDE, DURING)
            starts = [oracle.window_of(end, SECOND) for *_, end, _ in events]
            inside = [{start for start in starts if oracle.in_phase(word, spans, start, start + SECOND)} for word in words]
            windows = range(min(starts), max(starts) + SECOND, SECOND)
            whole = [[start for start in windows if oracle.in_phase(word, spans, start, start + SECOND)] for word in words]
            if not all(whole):
                with pytest.raises(InputError, match="lies wholly"):
                    sides_of(origin, run, "mo*", Question(), marks)
                continue
            sides = sides_of(origin, run, "mo*", Question(), marks)
            assert [side.name for side in sides] == [f"{run} {word} 'mo*'" for word in words]
            left = len(windows) - sum(map(len, whole))
            assert [note.split()[0] for note in sides[0].notes] == ([str(left)] if left else [])
            for side, own, held in zip(sides, inside, whole, strict=True):
                assert [start for low, high in side.spans for start in range(low, high, SECOND)] == held
                mine = [one for one in events if oracle.window_of(one[2], SECOND) in own]
                if not mine:
                    with pytest.raises(InputError, match="nothing of what is asked lies in"):
                        side.ask(origin.answer)(Question(step="all"))
                    continue
                expected = Counter(((op,), oracle.midpoint(oracle.index_of(latency))) for _, op, _, latency in mine)
                steps: set[int] = set()
                for step in ("all", "auto", SECOND, 7 * SECOND):
                    answer = side.ask(origin.answer)(Question(by=("op",), step=step))
                    assert latencies_in(answer, steps) == expected, (seed, step)
                    assert (answer.runs, set(answer.run_start_ns)) == ((side.name,), {side.name})
                assert {0, SECOND, 7 * SECOND} <= steps
                tried += 1
    assert tried > 3


def test_sides_are_refused_with_a_sentence(tmp_path: Path) -> None:
    path = written(tmp_path, BUSY)
    files = Files([path], ReadOptions(run="r", description=description_of(str(tmp_path / "events.yml"))), jobs=1)
    mixed = [*MOVE, Mark(Instant(ZERO + 20 * SECOND), "rebalance ends")]
    for marks, glob, error, text in (
        (
            [],
            "cache on",
            InputError,
            r"--at cache on matches no mark of r \(its marks: none\): note it with tailboard runs mark, or give --marks",
        ),
        (MOVE, "cache on", InputError, r"\(its marks: 'rebalance 3'\)"),
        (mixed, "reb*", UsageError, "--at reb\\* matches marks with an end and marks without one"),
        ([replace(MOVE[0], at=Instant(ZERO + 10 * SECOND + place * 1000), text=str(place)) for place in range(3)], "*", None, ""),
        ([Mark(Instant(ZERO - SECOND), "early")], "early", InputError, "no mark"),
        ([Mark(Instant(ZERO + 40 * SECOND), "late")], "late", InputError, "no window of 1s lies wholly after 'late'"),
    ):
        if error is None:
            assert len(sides_of(files, "r", glob, Question(), marks)) == 2
            continue
        with pytest.raises(error, match=text):
            sides_of(files, "r", glob, Question(), marks)
    many = [Mark(Instant(ZERO + place * 200 * MS), "gc", Instant(ZERO + place * 200 * MS + 1)) for place in range(150)]
    long = Files(
        [written(tmp_path / "long", at(*range(400)))],
        ReadOptions(run="r", description=description_of(str(tmp_path / "events.yml"))),
    )
    far = [
        replace(mark, at=Instant(mark.at.ns * 10 - 9 * ZERO), end=Instant(mark.at.ns * 10 - 9 * ZERO + SECOND)) for mark in many
    ]
    with pytest.raises(UsageError, match=r"--at gc cuts r into \d+ stretches, and each is read by itself: at most 100"):
        sides_of(long, "r", "gc", Question(), far)
