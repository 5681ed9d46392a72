"""Failed operations: counted beside the others and slower than any, the same from files and every store; told apart on request."""

from __future__ import annotations

import csv
import random
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from ingest.core.units import parse_duration
from ingest.core.objective import parse_promise, promise_from
from ingest.core.units import iso_ns
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.objectives.check import check as judge
from ingest.objectives.objectives import objective_of
from ingest.query.files import Files
from ingest.query.origin import Origin
from ingest.query.percentiles import Wanted, table_of
from ingest.query.question import Question
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.view.text import csv_lines
from tests.effort import figure
from tests.oracles import failures
from tests.oracles.failures import Operation
from tests.store.grounds import grounds

EPOCH_MS = 1_790_000_000_000
MS, SECOND = failures.MS, 1_000_000_000
PERCENTS = ("1", "50", "90", "99", "100")
QUESTIONS = [
    Question(step="all"),
    Question(step="1s"),
    Question(step="5s", by=("host",)),
    Question(step="5s", by=("op", "host")),
    Question(step="all", by=("outcome",)),
    Question(step="5s", by=("host", "outcome")),
    Question(step="1s", where={"outcome": "ok"}),
    Question(step="5s", where={"outcome": "failed"}, by=("op",)),
    Question(step="all", where={"op": "get"}, by=("host",)),
    Question(step="5s", where={"kind": "service"}),
]


def random_operations(rolled: random.Random) -> list[Operation]:
    """Operations of some hosts over 20 s: none, few, many or all of them fail, some quickly, some after a time-out."""
    made = []
    for number in range(rolled.randint(1, 3)):
        share, since = rolled.choice((0, 0.002, 0.05, 0.6, 1)), rolled.randint(0, 15)
        for _ in range(rolled.choice((3, 40, 400))):
            at = rolled.randint(1, 20_000)
            failed = at > 1000 * since and rolled.random() < share
            took = int(rolled.lognormvariate(1, 1) * MS) if not failed else rolled.choice((rolled.randint(0, 50), 5000)) * MS
            made.append(Operation(f"h{number}", rolled.choice(("get", "put")), (EPOCH_MS + at) * MS, took, failed))
    return made


def selected(operations: list[Operation], question: Question) -> list[Operation]:
    outcome = question.where.get("outcome", "*")
    return [
        one
        for one in operations
        if question.where.get("op", one.op) == one.op and outcome in ("*", "failed" if one.failed else "ok")
    ]


def told(origin: Origin, question: Question) -> list[dict[str, str]]:
    table, _ = table_of(origin, question, Wanted(PERCENTS))
    return list(csv.DictReader(csv_lines(table)))


def check(origin: Origin, operations: list[Operation], question: Question) -> list[dict[str, str]]:
    """Hold an answer against loops over the operations; return its rows."""
    chosen = selected(operations, question)
    if not chosen:
        return []
    by = (*question.by, *({"outcome"} & set(question.where)))
    step = 0 if question.step == "all" else int(question.step)
    wanted = failures.rows(chosen, PERCENTS, step, by)
    found = told(origin, question)
    assert len(found) == len(wanted)
    for row in found:
        at = iso_ns(row["start"]) if step else 0
        key = (at, *(row.get(name, question.where.get(name)) for name in by))
        assert {name: row[name] for name in wanted[key]} == wanted[key], (question, key)
    return found


def logs(tmp_path: Path, operations: list[Operation]) -> tuple[Path, ReadOptions]:
    described = failures.write(tmp_path / "logs", operations, failed=("false", "FALSE"))
    return tmp_path / "logs", ReadOptions(description=description_of(str(described)))


@pytest.mark.parametrize("seed", range(figure(6, 40)))
def test_failed_operations_are_slower_than_any(seed: int, tmp_path: Path) -> None:
    operations = random_operations(random.Random(seed))
    folder, options = logs(tmp_path, operations)
    files = Files([folder], options, 1)
    for question in QUESTIONS:
        check(files, operations, question)


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("double", marks=pytest.mark.slow)])
def test_stores_rank_failed_operations_as_files_do(kind: str, tmp_path: Path) -> None:
    for seed in range(figure(2, 20)):
        here = tmp_path / str(seed)
        here.mkdir()
        operations = random_operations(random.Random(1000 + seed))
        folder, options = logs(here, operations)
        files = Files([folder], options, 1)
        with grounds(kind, here) as ground:
            with open_store(ground.url, write=True) as store:
                load([folder], store, LoadOptions(ReadOptions(run="run", description=options.description), jobs=1))
            with open_store(ground.url) as store:
                for question in QUESTIONS:
                    assert check(store, operations, question) == check(files, operations, question)


def windows_that_fail(operations: list[Operation], share: Fraction) -> list[tuple[int, int, int]]:
    """Windows of 1 s in which more than a share of operations failed, neighbours together: start, end, operations in them."""
    windows: dict[int, list[bool]] = {}
    for one in operations:
        windows.setdefault(-(-one.end_ns // SECOND) - 1, []).append(one.failed)
    bad = [at for at in sorted(windows) if sum(windows[at]) > share * len(windows[at])]
    episodes: list[tuple[int, int, int]] = []
    for at in bad:
        begin, end, count = episodes.pop() if episodes and episodes[-1][1] == at * SECOND else (at * SECOND, 0, 0)
        episodes.append((begin, (at + 1) * SECOND, count + len(windows[at])))
    return episodes


@pytest.mark.parametrize("kind", ["files", pytest.param("sqlite", marks=pytest.mark.slow)])
def test_a_share_of_failures_is_an_objective(kind: str, tmp_path: Path) -> None:
    for seed in range(figure(6, 60)):
        rolled, here = random.Random(2000 + seed), tmp_path / str(seed)
        here.mkdir()
        operations = random_operations(rolled)
        most = rolled.choice(("0", "0.1", "5", "60"))
        folder, options = logs(here, operations)
        objective = replace(objective_of(f"failures < {most} %", SECOND), hold_ns=0, no_data="ok")
        with ExitStack() as stack:
            origin: Origin = Files([folder], options, 1)
            if kind == "sqlite":
                ground = stack.enter_context(grounds(kind, here))
                with open_store(ground.url, write=True) as store:
                    load([folder], store, LoadOptions(ReadOptions(run="run", description=options.description), jobs=1))
                origin = stack.enter_context(open_store(ground.url))
            [run] = origin.runs()
            [verdict] = judge(origin.answer, {run.run: {}}, [objective], Question()).verdicts
        expected = windows_that_fail(operations, Fraction(most) / 100)
        assert [(each.start_ns, each.end_ns, each.samples) for each in verdict.episodes] == expected
        assert all(each.worst == "failed" for each in verdict.episodes)
        assert (verdict.over, verdict.requests) == (sum(one.failed for one in operations), len(operations))


@pytest.mark.parametrize("text", ["failures<0.1%", "failures <= 0.1 %", "< 0.1%"])
def test_a_share_of_failures_is_one_promise_however_it_is_written(text: str) -> None:
    promise = parse_promise(text)
    assert str(promise) == "at most 0.1 % failed" and promise_from(**promise.to_dict()) == promise


def test_a_percentile_among_failures_misses_any_latency(tmp_path: Path) -> None:
    operations = [Operation("h", "get", (EPOCH_MS + 10 * at) * MS, MS, failed=at >= 90) for at in range(1, 101)]
    folder, options = logs(tmp_path, operations)
    files = Files([folder], options, 1)
    [run] = files.runs()
    objectives = [objective_of("p99<1h", SECOND), objective_of("p50<1h", SECOND)]
    worst, median = judge(files.answer, {run.run: {}}, objectives, Question()).verdicts
    assert [each.worst for each in worst.episodes] == ["failed"] and not median.episodes
    assert judge(files.answer, {run.run: {}}, objectives[:1], Question(where={"outcome": "ok"})).met
