"""Archives with many runs: each run's row over its own time, from files and from both stores alike."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest import Files, Question, open_store, parse_percentiles
from ingest.query.percentiles import Wanted, percentiles
from ingest.timing import Instant
from ingest.view.text import csv_lines
from tests.doubles.origin import Made, series
from tests.store.grounds import grounds, loaded

CBT = Path(__file__).parents[1] / "data" / "cbt"
SECOND = 1_000_000_000
BEGAN = 1_795_330_364 * SECOND  # 2026-11-22T06:52:44Z, shortly before the first of the runs
WANTED = Wanted(parse_percentiles("50,99"))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the recorded archive B: two workloads at two depths each, one after the other."""
    folder = tmp_path_factory.mktemp("cbt")
    with tarfile.open(CBT / "B.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    return folder / "B"


@pytest.fixture(scope="module", params=["sqlite", "double"])
def store(request: pytest.FixtureRequest, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with grounds(request.param, tmp_path_factory.mktemp("ground")) as ground:
        loaded(ground.url, [archive], run="B")
        with open_store(ground.url) as store:
            yield store


def rows(origin: Any, question: Question) -> list[dict[str, Any]]:
    table = percentiles(origin.answer(question), WANTED)
    return [dict(zip(table.columns, row, strict=True)) for row in zip(*table.columns.values(), strict=True)]


QUESTIONS = {
    "by run": Question(step="all"),
    "by run and op": Question(step="all", by=("run", "op")),
    "by a setting": Question(step="all", by=("total_iodepth", "host")),
    "some hosts": Question(step="all", where={"host": "client1*"}),
    "a range by the clock": Question(step="all", begin=Instant(BEGAN + 6 * SECOND), end=Instant(BEGAN + 30 * SECOND)),
    "added up": Question(step="all", merge_runs=True),
    "added up, by op": Question(step="all", merge_runs=True, by=("op",)),
    "added up, by run": Question(step="all", merge_runs=True, by=("run",)),
    "added up, a range": Question(step="all", merge_runs=True, begin=Instant(BEGAN + 6 * SECOND)),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_store_says_of_many_runs_what_the_files_say(archive: Path, store: Any, question: Question) -> None:
    known = {record.run: dict(record.labels) for record in store.runs()}
    assert known == {run: dict(labels) for run, labels in Files([archive], jobs=1).found.labels.items()}
    asked = [percentiles(origin.answer(question), WANTED) for origin in (Files([archive], jobs=1), store)]
    assert list(csv_lines(asked[1])) == list(csv_lines(asked[0]))


@pytest.mark.parametrize("by", [(), ("run",), ("op",), ("run", "host", "op")])
def test_a_row_of_one_run_spans_that_run_alone(archive: Path, by: tuple[str, ...]) -> None:
    files = Files([archive], jobs=1)
    found = rows(files, Question(step="all", by=by))
    for run in files.run_names:
        alone = rows(files, Question(step="all", by=by, runs=(run,)))
        mine = [{name: value for name, value in row.items() if name != "run"} for row in found if row["run"] == run]
        assert repr(mine) == repr([{name: value for name, value in row.items() if name != "run"} for row in alone])
    assert len({row["start_ns"] for row in found}) == 4


def test_rows_that_add_runs_up_span_them_all(archive: Path) -> None:
    files = Files([archive], jobs=1)
    apart, (both,) = rows(files, Question(step="all")), rows(files, Question(step="all", merge_runs=True))
    assert (both["start_ns"], both["end_ns"]) == (min(r["start_ns"] for r in apart), max(r["end_ns"] for r in apart))
    assert both["count"] == sum(r["count"] for r in apart)
    assert max(r["rate"] for r in apart) > 1.5 * both["rate"]


def test_ranges_of_runs_that_come_in_several_parts_and_layouts() -> None:
    spans = {"a": (0, 5), "b": (3, 9), "c": (20, 30)}
    made = Made([(series(run=run), at, {100: 10}) for run, (low, high) in spans.items() for at in range(low, high)])
    found = {row["run"]: row for row in rows(made, Question(step="all"))}
    zero = min(row["start_ns"] for row in found.values())
    assert {run: ((r["start_ns"] - zero) // SECOND, (r["end_ns"] - zero) // SECOND) for run, r in found.items()} == spans
    assert {row["rate"] for row in found.values()} == {10.0}
