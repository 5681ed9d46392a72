"""watch --until-accuracy: it ends when percentiles are known well enough, not before, and says why it cannot."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path

import numpy as np
import orjson
import pytest

from ingest.cli import run as command
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import figure
from ingest.live.serve.page import Selection, Subject, view_of
from ingest.live.watch.accuracy import Accuracy
from ingest.query.question import Question
from ingest.query.trend import Night, bounds_of, percentile_of
from ingest.store import open_store
from tests.query.incidents import MS, SECOND, ZERO, written
from tests.view.test_report import content_of


def operations(seconds: int, rate: int, seed: int = 1) -> list[tuple[str, str, int, int]]:
    """Return operations of one host whose latencies are lognormal."""
    noise = random.Random(seed)
    return [
        ("h1", "read", ZERO + second * SECOND + noise.randint(1, 1_000_000) * 1000, round(MS * noise.lognormvariate(0, 1)))
        for second in range(seconds)
        for _ in range(rate)
    ]


def looked(folder: Path, events: list[tuple[str, str, int, int]], percentiles: str = "50,99") -> Accuracy:
    """Return what is known of a run that was loaded into a store."""
    path, url = written(folder, events), f"sqlite:{folder / 'x.db'}"
    assert command(["load", str(path), "--input-format", str(folder / "events.yml"), "--store", url, "--run", "r"]) == 0
    accuracy = Accuracy(0.05, parse_percentiles(percentiles))
    with open_store(url) as store:
        (record,) = store.runs()
        accuracy(store, record.run)
        whole = Question(by=("op",), step="all").about([record.run])
        night = Night(
            record.run,
            0,
            store.answer(whole),
            bounds_of([store.answer(Question(by=("op",)).about([record.run]))], ("op",), accuracy.percentiles),
        )
        for percentile in accuracy.percentiles:
            for (op, *_), (value, low, high, *_) in percentile_of(night, percentile).items():
                assert accuracy.within[record.run, op, percentile.name] == pytest.approx(
                    max(high - value, value - low) / value, nan_ok=True
                )
    return accuracy


def test_what_is_known_comes_nearer_the_longer_a_run_lasts(tmp_path: Path) -> None:
    short, long = (looked(tmp_path / str(seconds), operations(seconds, 100)) for seconds in (60, 600))
    assert short.within.keys() == long.within.keys()
    assert all(long.within[name] < short.within[name] for name in long.within)
    assert not short.reached and "is known to" in short.said()
    assert "let the benchmark run for longer" in short.why_not()


@pytest.mark.parametrize("runs", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_bounds_hold_the_percentile_of_the_process(tmp_path: Path, runs: int) -> None:
    held = 0
    for seed in range(runs):
        accuracy = looked(tmp_path / str(seed), operations(120, 100, seed), "50,90")
        latencies = np.array([one[3] for one in operations(120, 100, seed)])
        for (_, _, name), within in accuracy.within.items():
            true = MS * math.exp({"p50": 0.0, "p90": 1.2816}[name])
            measured = float(np.quantile(latencies, float(name[1:]) / 100))
            held += abs(measured - true) <= within * measured
    assert held >= 2 * runs - 6  # at 95 %: of 40 fewer come once in 100 times


def test_each_run_is_looked_at_in_its_own_time(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'x.db'}"
    for run in ("a", "b"):
        path = written(tmp_path / run, operations(60, 20))
        assert (
            command(["load", str(path), "--input-format", str(tmp_path / run / "events.yml"), "--store", url, "--run", run]) == 0
        )
    accuracy = Accuracy(
        0.05, parse_percentiles("50"), itertools.count().__next__
    )  # a look takes a second, the next is due in ten
    with open_store(url) as store:
        for run in ("a", "b"):
            accuracy(store, run)
        assert {run for run, *_ in accuracy.within} == {"a", "b"}
        accuracy.within.clear()
        accuracy(store, "a")
        assert not accuracy.within
        accuracy.look(store, "a")
        assert {run for run, *_ in accuracy.within} == {"a"}


def test_too_few_windows_are_no_accuracy(tmp_path: Path) -> None:
    accuracy = looked(tmp_path, operations(3, 5))
    assert not accuracy.reached
    assert "has too few windows or samples for bounds" in accuracy.said()


def test_nothing_is_known_better_than_its_bins() -> None:
    accuracy = Accuracy(0.001, parse_percentiles("50"))
    accuracy.within, accuracy.bins = {("r", "read", "p50"): 0.01}, 0.0078
    assert "its bins are 0.78 % wide" in accuracy.why_not()


@pytest.mark.parametrize(("wanted", "status"), [("50%", 0), pytest.param("0.5%", 5, marks=pytest.mark.slow)])
def test_a_watch_ends_when_all_is_known(tmp_path: Path, capfd, wanted: str, status: int) -> None:
    path = written(tmp_path / "logs", operations(120, 50))
    words = ["--input-format", str(tmp_path / "logs" / "events.yml"), "--store", f"sqlite:{tmp_path / 'x.db'}", "--run", "r"]
    ended = command(
        ["watch", str(path), *words, "--interval", "50ms", "--until-accuracy", wanted, "-p", "50,90", "--until-idle", "2s"]
    )
    told = capfd.readouterr().err
    assert ended == status
    assert (f"--until-accuracy {wanted} is not reached: p90 of read is known to" in told) == (status == 5)


@pytest.mark.parametrize("wanted", ["5x", "0", "100%"])
def test_what_is_no_percentage_is_refused(tmp_path: Path, wanted: str, capfd) -> None:
    assert command(["watch", str(tmp_path), "--run", "r", "--until-accuracy", wanted]) == 2
    assert "--until-accuracy takes a percentage such as 5%" in capfd.readouterr().err


def test_percentiles_without_an_accuracy_are_refused(tmp_path: Path, capfd) -> None:
    assert command(["watch", str(tmp_path), "--run", "r", "-p", "50"]) == 2
    assert "-p names the percentiles of --until-accuracy" in capfd.readouterr().err


def test_the_live_page_says_how_well_percentiles_are_known(tmp_path: Path) -> None:
    accuracy = looked(tmp_path, operations(120, 100), "50,95,99,99.9")
    subject = Subject(f"sqlite:{tmp_path / 'x.db'}", Question(), SECOND)
    view = view_of(subject, lambda: "1", Selection(), None)
    (line,) = content_of(orjson.loads(view.update())["data"])[0]["sections"]["live"]["known"]
    said = [
        f"{name} {'not yet' if math.isnan(within) else f'to {figure(100 * within, 2)} %'}"
        for (_, _, name), within in accuracy.within.items()
    ]
    assert line == f"read: {', '.join(said)}" and "%" in line
