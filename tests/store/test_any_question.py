"""Any question has one answer, whoever is asked: files, SQLite and Elasticsearch, over histograms, operations and shares in flight."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ingest import Files, Question, open_store, parse_instant
from ingest.errors import TailboardError
from ingest.query.percentiles import percentiles
from ingest.read import ReadOptions
from ingest.view.text import csv_lines
from tests.live.feeding import ALL, EPOCH, HLOG, OPERATIONS, SECOND, YCSB, Kind
from tests.store.grounds import grounds, loaded

IN_FLIGHT = {"attribution": "in-flight"}
RUNS: Mapping[str, tuple[Kind, int, Mapping[str, Any]]] = {
    "operations": (OPERATIONS, 60, {}),
    "events": (YCSB, 70, {}),
    "histograms": (HLOG, 130, {}),
    "operations-in-flight": (OPERATIONS, 60, IN_FLIGHT),
    "events-in-flight": (YCSB, 70, IN_FLIGHT),
    "fine": (YCSB, 30, {"step_ns": SECOND // 10}),
}
LABELS = ("host", "op", "kind", "process", "job", "volume", "run", "tag")
WHERE = ("host=h1", "op=read", "process=x", "host=h[12]", "kind=*", "op=nope", "kind=service")
SELECTIONS = ({}, {}, *(dict([words.split("=")]) for words in WHERE))
SECONDS = (-5, 0, 3, 10, 17, 20, 30, 45, 60, 61, 90, 120)


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """The logs of each run in a folder of its own, and the URLs of a SQLite store and a server that hold all of them."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("any")
    with grounds("sqlite", folder) as sqlite, grounds("double", folder) as double:
        for run, (log, rows, words) in RUNS.items():
            for host in ("h1", "h2", "h3"):
                path = folder / run / host / log.name
                path.parent.mkdir(parents=True)
                path.write_bytes(log.text(random.Random(f"{run} {host}"), rows))
            for ground in (sqlite, double):
                loaded(ground.url, [folder / run], run, **{"step_ns": SECOND, "jobs": 1, **words})
        yield folder, sqlite.url, double.url


def instant(rng: random.Random) -> Any:
    second = rng.choice(SECONDS)
    if rng.random() < 0.3:
        return parse_instant(f"+{max(second, 0)}s")
    return parse_instant(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH + second)))


def asked(rng: random.Random) -> tuple[str, Question]:
    run = rng.choice(list(RUNS))
    words = RUNS[run][2]
    fine = [SECOND // 10, SECOND // 2] if "step_ns" in words else []
    question = Question(
        runs=(run,),
        by=tuple(rng.sample(LABELS, rng.randint(0, 3))),
        where=rng.choice(SELECTIONS),
        step=rng.choice(["all", "all", "auto", *fine, *(SECOND * many for many in (1, 2, 5, 7, 10, 30, 60))]),
        begin=instant(rng) if rng.random() < 0.4 else None,
        end=instant(rng) if rng.random() < 0.4 else None,
        attribution=words.get("attribution", "completion"),
    )
    return run, question


def answer(origin: Any, question: Question) -> list[str]:
    try:
        return list(csv_lines(percentiles(origin.answer(question), ALL)))
    except TailboardError as error:
        return [str(error)]


def check(there: tuple[Path, str, str], seed: int, questions: int) -> int:
    """Ask so many questions; return how many had rows. Of files only what they know alike: they see between windows."""
    folder, *urls = there
    rng, filled = random.Random(seed), 0
    for _ in range(questions):
        run, question = asked(rng)
        found = []
        for url in urls:
            with open_store(url) as store:
                found.append(answer(store, question))
        bounds = [one for one in (question.begin, question.end) if one is not None]
        between = RUNS[run][0] is YCSB and "in-flight" not in run and question.step == "all" and bounds  # a row spans its events
        if run != "fine" and not between and not any(one.relative for one in bounds):
            found.append(answer(Files([folder / run], ReadOptions(run=run), jobs=1), question))
        assert all(one == found[0] for one in found), (seed, question)
        filled += len(found[0]) > 1
    return filled


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_files_and_stores_answer_alike(there, seed: int) -> None:
    assert check(there, seed, 50) > 20


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 110))
def test_files_and_stores_answer_alike_a_thousand_times(there, seed: int) -> None:
    check(there, seed, 300)


def test_zero_after_the_start_is_the_start() -> None:
    assert parse_instant("+0s").epoch_ns(7) == 7
