"""Coarsening on every store: the same answers at the larger step, no mixture with what is loaded later, whole after any kill."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.errors import StoreError, UsageError
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.elastic.runs import CachedRecords, Sweeper
from ingest.store.lifecycle import COARSENING
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.effort import figure
from tests.store.grounds import SERVER, ElasticGround, SqliteGround, grounds, loaded, loads_at_once, many_logs
from tests.store.test_contract import EXAMPLE, KINDS, QUESTIONS, SECOND, ZERO, a_log, answered
from tests.store.test_offsets import made, store_of

pytestmark = pytest.mark.contract
MINUTE = 60 * SECOND
ASKED = {
    name: one
    for name, one in QUESTIONS.items()
    if one.step == "all" or (isinstance(one.step, int) and one.step % (10 * SECOND) == 0)
}


@pytest.fixture(params=KINDS)
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


def coarsened(url: str, step_ns: int, run: str = "") -> None:
    with open_store(url, write=True) as store:
        for record in store.runs():
            if record.run == run or not run:
                store.coarsen(record.run, step_ns)


def steps(url: str) -> set[int]:
    with open_store(url) as store:
        return {record.step_ns for record in store.runs()}


def added_up(documents: list[dict], step: int) -> list[dict]:
    """Documents at a larger step, added up one bin after another; min, max and sum only where all parts have them."""
    cells: dict[tuple, list[dict]] = {}
    for one in documents:
        labels = tuple(
            value for name, value in one.items() if name not in ("step", "start", "bins", "count", "sum", "min", "max")
        )
        cells.setdefault((labels, one["start"] // step * step), []).append(one)
    found = []
    for (_, start), parts in cells.items():
        bins = sum((Counter(part["bins"]) for part in parts), Counter())
        known = all(part["sum"] is not None for part in parts)
        told = {
            name: pick(part[name] for part in parts) if known else None
            for name, pick in (("sum", sum), ("min", min), ("max", max))
        }
        count = sum(part["count"] for part in parts)
        found.append({**parts[0], "step": step, "start": start, "bins": dict(sorted(bins.items())), "count": count, **told})
    return sorted(found, key=repr)


@pytest.mark.slow
def test_answers_at_the_larger_step_stay_what_they_were(ground) -> None:
    loaded(ground.url, [EXAMPLE], run=EXAMPLE.name)
    before = {name: answered(ground.url, question) for name, question in ASKED.items()}
    fine = ground.documents()
    coarsened(ground.url, 10 * SECOND)
    assert steps(ground.url) == {10 * SECOND}
    assert {name: answered(ground.url, question) for name, question in ASKED.items()} == before
    assert ground.documents() == added_up(fine, 10 * SECOND) and len(ground.documents()) < len(fine) / 4
    assert {row[3] for row in ground.rollups()} == {10 * SECOND, MINUTE, 0}
    with pytest.raises(UsageError, match="not a multiple of the stored step 10s"):
        answered(ground.url, Question(step=5 * SECOND))
    coarsened(ground.url, MINUTE)
    minutes = [name for name in ASKED if ASKED[name].step in ("all", MINUTE) and ASKED[name].begin is None]
    assert len(minutes) > 3 and {name: answered(ground.url, ASKED[name]) for name in minutes} == {
        name: before[name] for name in minutes
    }
    assert ground.documents() == added_up(fine, MINUTE)


@pytest.mark.slow
def test_exact_values_and_weights_stay_what_they_were(ground, tmp_path: Path) -> None:
    store_of(ground.url, tmp_path / "logs", made(), run="raw")
    loaded(ground.url, [EXAMPLE], run="cbt", attribution="in-flight")
    asked = [Question(runs=("raw",), step="all"), Question(runs=("raw",), by=("host", "op"), step=MINUTE)]
    asked += [Question(runs=("cbt",), by=("host",), step=step, attribution="in-flight") for step in (MINUTE, "all")]
    before = [answered(ground.url, question) for question in asked]
    coarsened(ground.url, MINUTE)
    assert [answered(ground.url, question) for question in asked] == before
    assert ",true," in before[0][1], "single operations have exact values"


@pytest.mark.slow
def test_offsets_keep_their_seconds(ground, tmp_path: Path) -> None:
    store_of(ground.url, tmp_path / "logs", made())
    fine, offsets = ground.documents(), ground.offsets()
    coarsened(ground.url, MINUTE)
    assert ground.offsets() == offsets and len(offsets) > 100
    assert ground.documents() == added_up(fine, MINUTE)


def test_a_later_load_is_nothing_new_or_refused(ground, tmp_path: Path) -> None:
    logs = a_log(tmp_path / "logs", slice(0, 4))
    loaded(ground.url, [logs], reading=ZERO)
    coarsened(ground.url, 10 * SECOND)
    before = ground.documents(), ground.rollups()
    with open_store(ground.url) as store:
        assert dict(store.facts(store.answer(Question(step="all"))))["Stored step"] == "10s, coarsened from 1s"
    again = loaded(ground.url, [logs], reading=ZERO)
    assert (again.documents, dict(again.duplicate)) == (0, {"already loaded": 1})
    with pytest.raises(StoreError, match=r"another step \(10s then, 1s now\): use --replace"):
        loaded(ground.url, [logs], reading=ZERO, step_ns=SECOND)
    a_log(logs)
    with pytest.raises(StoreError, match="was coarsened from 1s to 10s, and 1 of these sources are new"):
        loaded(ground.url, [logs], reading=ZERO)
    with pytest.raises(StoreError, match="was coarsened from 1s to 10s"):
        loaded(ground.url, [a_log(tmp_path / "other", source="coarse-3")], reading={**ZERO, "host": "h2"})
    part = {"reading": {**ZERO, "host": "h2"}, "step_ns": 10 * SECOND, "replace": True}
    with pytest.raises(
        StoreError, match=r"another grid \(coarsened from 1s then, as loaded now\); 1 source of the run is not among"
    ):
        loaded(ground.url, [a_log(tmp_path / "other", source="coarse-3")], **part)
    assert (ground.documents(), ground.rollups()) == before
    loaded(ground.url, [logs], reading=ZERO, replace=True)
    with grounds("sqlite", tmp_path) as clean:
        loaded(clean.url, [logs], reading=ZERO)
        assert ground.documents() == clean.documents() and ground.rollups() == clean.rollups()


def test_what_cannot_be_coarsened_is_refused(ground, tmp_path: Path) -> None:
    loaded(ground.url, [a_log(tmp_path / "logs")], reading=ZERO, step_ns=10 * SECOND)
    before = ground.documents(), ground.rollups()
    with open_store(ground.url, write=True) as store:
        for step, why in (
            (SECOND, "1s is not a larger multiple"),
            (7 * SECOND, "7s cannot be a stored step"),
        ):
            with pytest.raises(UsageError, match=why):
                store.coarsen("r", step)
        done = store.coarsen("r", 10 * SECOND)
        assert (done.from_ns, done.to_ns, done.before, done.after) == (10 * SECOND, 10 * SECOND, 0, 0)
        record = store.runs()[0]
        store.begin(record, [replace(store.sources("r")[0], source="another")])
        with pytest.raises(StoreError, match="is not complete"):
            store.coarsen("r", MINUTE)
    assert (ground.documents(), ground.rollups()) == before


def test_a_load_with_the_step_of_before_is_refused_where_it_begins(ground, tmp_path: Path) -> None:
    loaded(ground.url, [a_log(tmp_path / "logs")], reading=ZERO)
    with open_store(ground.url, write=True) as store:
        record, source = store.runs()[0], store.sources("r")[0]
        coarsened(ground.url, MINUTE)
        with pytest.raises(StoreError, match="another step, 1m and not 1s"):
            store.begin(record, [source])
        with pytest.raises(StoreError, match="was coarsened from 1s to 1m, and 1 of these sources are new"):
            store.begin(store.runs()[0], [source])


@pytest.mark.slow
def test_on_a_server_a_coarsening_cut_off_anywhere_is_told_keeps_loads_away_and_is_completed(tmp_path: Path, monkeypatch) -> None:
    with grounds("double", tmp_path) as ground:
        loaded(ground.url, [EXAMPLE], run=EXAMPLE.name)
        question = Question(by=("host", "op"), step=MINUTE)
        before, fine = answered(ground.url, question), ground.documents()
        with monkeypatch.context() as broken:
            broken.setattr(Sweeper, "sweep_steps", cut_off)
            with pytest.raises(StoreError, match="cut off"):
                coarsened(ground.url, MINUTE)
        assert len(ground.documents()) > len(fine), "old and new documents are there"
        assert answered(ground.url, question) == before
        with open_store(ground.url) as store:
            (record,) = store.runs()
            assert record.state == "loading" and record.parameters[COARSENING] == MINUTE
            assert any("--step 1m completes it" in told for told in store.answer(question).warnings)
        for words in ({}, {"step_ns": MINUTE}):
            with pytest.raises(StoreError, match=r"is being coarsened, or its coarsening was cut off|another step"):
                loaded(ground.url, [EXAMPLE], run=EXAMPLE.name, **words)
        with pytest.raises(StoreError, match="--step 1m completes it"):
            coarsened(ground.url, 5 * MINUTE)
        coarsened(ground.url, MINUTE)
        assert ground.documents() == added_up(fine, MINUTE) and answered(ground.url, question) == before
        with open_store(ground.url) as store:
            assert store.runs()[0].state == "complete" and not store.answer(question).warnings


@pytest.mark.slow
def test_two_coarsenings_to_unlike_steps_do_not_mix(tmp_path: Path, monkeypatch) -> None:
    """The second had read the record before the first put its mark there."""
    with grounds("double", tmp_path) as ground:
        loaded(ground.url, [EXAMPLE], run=EXAMPLE.name)
        fine = ground.documents()
        with open_store(ground.url, write=True) as store:
            (record,) = store.runs()
            monkeypatch.setattr(store, "runs", lambda: [record])
            with monkeypatch.context() as broken:
                broken.setattr(Sweeper, "sweep_steps", cut_off)
                with pytest.raises(StoreError, match="cut off"):
                    coarsened(ground.url, 10 * SECOND)
            with pytest.raises(StoreError, match=r"--step 10s completes it|replaced, coarsened or deleted in the meantime"):
                store.coarsen(record.run, MINUTE)
        assert {one["step"] for one in ground.documents()} == {SECOND, 10 * SECOND}, "the second has written nothing"
        coarsened(ground.url, 10 * SECOND)
        assert ground.documents() == added_up(fine, 10 * SECOND)


def cut_off(*_: object) -> int:
    raise StoreError("cut off")


@pytest.mark.slow
@pytest.mark.parametrize("held", [False, True], ids=["a question", "a question of a command"])
def test_an_answer_that_was_overtaken_is_given_again(tmp_path: Path, monkeypatch, held: bool) -> None:
    from tests.store.test_contract import csv

    with grounds("double", tmp_path) as ground:
        loaded(ground.url, [EXAMPLE], run=EXAMPLE.name)
        question = Question(by=("volume",), step=MINUTE)

        def told(store) -> object:
            return csv(store.answer(question))

        with open_store(ground.url) as store:
            before = told(store)
        with open_store(ground.url) as store, store.knowing_runs() if held else nullcontext():
            real, turns = CachedRecords.series, []

            def overtaken(self, runs):
                if not turns:
                    turns.append(1)
                    coarsened(ground.url, MINUTE)
                return real(self, runs)

            monkeypatch.setattr(CachedRecords, "series", overtaken)
            assert told(store) == before and turns


def coarsen_command(url: str) -> list[str]:
    return [sys.executable, "-m", "ingest", "runs", "coarsen", "*", "--step", "1m", "--store", url]


def load_command(logs: Path, url: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "ingest", "load", str(logs), "--run", "r", "--store", url, "--t0", "1789999200", *more]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("double", marks=pytest.mark.slow)])
def killing_ground(request, tmp_path_factory):
    """Logs in a store, how long their coarsening takes, and what it leaves."""
    folder = tmp_path_factory.mktemp("kill")
    logs = many_logs(folder / "logs", turns=120 if request.param == "sqlite" else 20)
    with ElasticsearchDouble(version=SERVER) as double:
        make = (lambda: SqliteGround(folder)) if request.param == "sqlite" else (lambda: ElasticGround(double.url))
        clean = make()
        subprocess.run(load_command(logs, clean.url), check=True, stderr=subprocess.DEVNULL)
        asked = answered(clean.url, Question(by=("host", "op"), step=MINUTE))
        began, before = time.monotonic(), len(double.requests)
        subprocess.run(coarsen_command(clean.url), check=True, stderr=subprocess.DEVNULL)
        # How far a coarsening is: in requests that the server has seen, or in time.
        clock = (lambda: len(double.requests)) if request.param == "double" else time.monotonic
        whole = len(double.requests) - before if request.param == "double" else time.monotonic() - began
        yield make, logs, (clock, whole), (asked, clean.documents(), clean.rollups())
        assert not double.refusals


def killed(words: list[str], clock, after: float) -> bool:
    """Run a command and kill it once the clock has gone on that far; whether it was still there."""
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True)
    began = clock()
    while process.poll() is None and clock() - began < after:
        time.sleep(0.005)
    hit = process.poll() is None
    if hit:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return hit


def killed_and_completed(seed: int, ground) -> int:
    make, logs, (clock, whole), (asked, documents, rollups) = ground
    chance, store, hits = random.Random(seed), make(), 0
    subprocess.run(load_command(logs, store.url), check=True, stderr=subprocess.DEVNULL)
    for earliest, latest in ((0.2, 0.7), (0.3, 0.9), (0.4, 1)):
        hits += killed(coarsen_command(store.url), clock, whole * chance.uniform(earliest, latest))
        assert answered(store.url, Question(by=("host", "op"), step=MINUTE)) == asked
    subprocess.run(coarsen_command(store.url), check=True, stderr=subprocess.DEVNULL)
    assert (store.documents(), store.rollups()) == (documents, rollups)
    assert answered(store.url, Question(by=("host", "op"), step=MINUTE)) == asked
    return hits


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.ordeal
def test_killed_at_random_moments_a_coarsening_is_completed_exactly(killing_ground) -> None:
    hits = seed = 0
    while seed < figure(1, 1, 5) or not hits:  # now and then a coarsening has ended before it is killed
        hits += killed_and_completed(seed, killing_ground)
        seed += 1
        assert seed < 30


@pytest.mark.ordeal
@pytest.mark.soak
def test_killed_twenty_times(killing_ground) -> None:
    assert sum(killed_and_completed(seed, killing_ground) for seed in range(100, 120)) >= 20


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.ordeal
@pytest.mark.parametrize(
    "ground", [pytest.param(kind, marks=() if kind == "sqlite" else pytest.mark.slow) for kind in KINDS], indirect=True
)
def test_loads_and_coarsenings_at_once_leave_one_step(ground, tmp_path: Path) -> None:
    """Whoever comes first: the run is whole at one of the two steps, and a repeat of both commands changes nothing any more."""
    logs = many_logs(tmp_path / "logs", files=3, turns=20)
    loads_at_once([load_command(logs, ground.url)])
    fine = ground.documents()
    both = [
        subprocess.Popen(one, stderr=subprocess.DEVNULL)
        for one in (coarsen_command(ground.url), load_command(logs, ground.url)) * 2
    ]
    for process in both:
        assert process.wait(timeout=600) in (0, 4)
    assert command(coarsen_command(ground.url)[3:]) == 0
    assert ground.documents() == added_up(fine, MINUTE)
