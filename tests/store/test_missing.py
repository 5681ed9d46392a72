"""What sources lack reaches every store: the same answers as from files, rollups that say it, stores of earlier versions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from ingest.read.sources import ReadOptions
from ingest.store import answers as store_answers
from ingest.store import open_store
from ingest.store.sqlite import file as sqlite_file
from ingest.store.sqlite.store import SqliteStore
from ingest.view.text import csv_lines
from tests.databases import database
from tests.store.grounds import ElasticGround, grounds

DATA = Path(__file__).parents[1] / "data"
MASKED = DATA / "fio" / "cases" / "fio37-masked"
SECOND = 1_000_000_000
QUESTIONS = [
    Question(step=SECOND, by=("op",)),
    Question(step=10 * SECOND),
    Question(step="all", by=("host", "op", "job")),
    Question(step="all", where={"op": "write"}),
]


@pytest.fixture(params=["sqlite", "double"])
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


def lines(answer: Answer) -> list[str]:
    return list(csv_lines(percentiles(answer, Wanted(parse_percentiles("50,90,99"), possible=True))))


def test_a5_files_and_stores_give_the_same_ranges_and_caveats(ground, masked: Path) -> None:
    assert command(["load", str(masked), "--run", "m", "--store", ground.url]) == 0
    files = Files([masked], ReadOptions(run="m"), jobs=1)
    with open_store(ground.url) as store:
        for question in QUESTIONS:
            from_files, from_store = files.answer(question), store.answer(question)
            assert lines(from_store) == lines(from_files)
            assert ",false,false," in lines(from_store)[1]
            assert sorted(from_store.caveats, key=str) == sorted(from_files.caveats, key=str)


def test_a5_rollups_on_a_server_say_that_they_are_not_complete(tmp_path: Path, masked: Path) -> None:
    sound = DATA / "fio" / "two-sections"
    with grounds("double", tmp_path) as ground:
        assert isinstance(ground, ElasticGround)
        weighed, corrected = ["--attribution", "in-flight"], ["--expected-interval", "1ms"]
        for folder, run, words in (
            (masked, "m", []),
            (sound, "s", []),
            (masked, "w", weighed),
            (sound, "f", weighed),
            (masked, "c", corrected),
        ):
            assert command(["load", str(folder), "--run", run, "--store", ground.url, *words]) == 0
        found = {(hit["_source"]["run"]["id"], hit["_source"]["rollup"]["complete"]) for hit in ground.hits("rollups-*")}
        assert found == {("m", False), ("s", True), ("w", False), ("f", True), ("c", False)}


def test_a_refused_log_that_comes_later_makes_windows_of_others_incomplete(ground, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    for file in (DATA / "fio" / "two-sections").iterdir():
        shutil.copy(file, folder)
    assert command(["load", str(folder), "--run", "r", "--store", ground.url]) == 0
    bad = folder / "b_clat_hist.1.log"
    bad.write_text("1, 2, 3, 4\n" * 5)
    assert command(["load", str(folder), "--run", "r", "--store", ground.url]) == 0
    table = lambda: percentiles(answered(ground.url), Wanted(parse_percentiles("50"))).columns["complete"].tolist()  # noqa: E731
    assert set(table()) == {False}
    if isinstance(ground, ElasticGround):
        assert {hit["_source"]["rollup"]["complete"] for hit in ground.hits("rollups-*")} == {False}
    bad.unlink()
    assert command(["load", str(folder), "--run", "r", "--store", ground.url]) == 0
    assert set(table()) == {True}


def test_what_all_sources_lack_is_worked_out_once_for_several_questions(tmp_path: Path, masked: Path, monkeypatch) -> None:
    url, worked_out, missing_in = f"sqlite:{tmp_path / 's.db'}", [], store_answers.missing_in
    assert command(["load", str(masked), "--run", "r", "--store", url]) == 0
    monkeypatch.setattr(store_answers, "missing_in", lambda run, own: (worked_out.append(run), missing_in(run, own))[1])
    with SqliteStore(str(tmp_path / "s.db")) as store, store.knowing_runs():
        asked = [store.answer(Question(by=by)) for by in ((), ("host",), ("op",))]
    assert worked_out == ["r"] and all(answer.missing for answer in asked)


def answered(url: str) -> Answer:
    with open_store(url) as store:
        return store.answer(Question(step=SECOND))


def test_a_store_of_version_3_is_read_and_says_what_it_cannot_know(tmp_path: Path, masked: Path) -> None:
    url, path = f"sqlite:{tmp_path / 'older.db'}", tmp_path / "older.db"
    for folder, run in ((masked, "m"), (DATA / "fio" / "two-sections", "s")):
        assert command(["load", str(folder), "--run", run, "--store", url]) == 0
    with database(path) as db:  # as version 3 has kept it
        for run, source, account in db.execute("SELECT run, source, account FROM sources").fetchall():
            told = json.loads(account)
            del told["missing"]
            told = {name: value for name, value in told.items() if name not in ("held", "stated")}
            db.execute("UPDATE sources SET account = ? WHERE run = ? AND source = ?", (json.dumps(told), run, source))
        db.execute("PRAGMA user_version = 3")
    db.close()
    content = path.read_bytes()
    with open_store(url) as store:
        for run, complete in (("m", False), ("s", True)):
            answer = store.answer(Question(runs=(run,), step=SECOND))
            table = percentiles(answer, Wanted(parse_percentiles("50")))
            assert set(table.columns["complete"].tolist()) == {complete}
            assert [one.code for one in answer.caveats] == ([] if complete else ["before"])
    assert path.read_bytes() == content
    assert command(["load", str(masked), "--run", "m", "--store", url, "--replace"]) == 0
    with open_store(url) as store:
        assert {one.code for one in store.answer(Question(runs=("m",))).caveats} == {"damaged-bins"}
    with database(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (sqlite_file.SCHEMA_VERSION,)


def test_the_tables_of_version_3_are_those_of_version_4() -> None:
    older, newer = ((DATA / "store" / f"version-{number}.sql").read_text() for number in (3, 4))
    assert older.replace("user_version = 3", "user_version = 4") == newer
