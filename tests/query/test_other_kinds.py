"""Logs of several tools in one run: kinds of latency are never added up, and what an answer is not about is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ingest.core.grid import SECOND
from ingest.core.labels import Series
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import Instant
from ingest.query.coverage import taken_of
from ingest.query.files import Files
from ingest.query.percentiles import Wanted
from ingest.query.question import Answer, Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from oracles.logs import text as text_of
from tests.store.grounds import grounds, loaded

DATA = Path(__file__).parents[1] / "data"
READING = {"t0": 1_793_491_200_000_000_000, "recorded_unit_ns": 1000}


def said(answer: Answer) -> list[str]:
    return [text for text in answer.warnings if "is not in these numbers; --by kind" in text]


@pytest.mark.parametrize("store", ["sqlite", "double"])
def test_jobs_of_another_kind_are_named(store: str, tmp_path: Path) -> None:
    """An HdrHistogram log beside one of fio: the answer was about fio's alone, and nothing said so."""
    logs = tmp_path / "logs"
    logs.mkdir()
    shutil.copy(DATA / "fio" / "coarse-3" / "a_clat_hist.1.log", logs)
    shutil.copy(DATA / "hdr" / "1.2.1-3-digits.hlog", logs / "database.hlog")
    beside = ["database: latency of no named kind is not in these numbers; --by kind shows it, too"]
    with grounds(store, tmp_path) as ground:
        loaded(ground.url, [logs], run="logs", reading=READING)
        files = Files([logs], ReadOptions(run="logs", **READING))
        with open_store(ground.url) as kept:
            for question, told, of_files, of_store in (
                (Question(step="all"), beside, 1, 2),  # a stored series is of one operation
                (Question(step="all", by=("op",)), beside, 1, 2),
                (Question(step="all", by=("kind",)), [], 2, 3),
                (Question(step="all", where={"kind": "completion"}), [], 2, 2),  # of the other only its rows tell a kind
                (Question(step="all", where={"process": "database"}), [], 1, 1),
            ):
                for origin, number in ((files, of_files), (kept, of_store)):
                    answer = origin.answer(question)
                    assert (said(answer), answer.series) == (told, number), question


@pytest.mark.cases(3)
@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", "double"])
@pytest.mark.parametrize("fio", [("a_lat.1.log", "a_clat_hist.1.log"), ("a_lat.1.log",), ("a_clat_hist.1.log",)])
def test_files_and_stores_name_the_same(store: str, fio: tuple[str, ...], tmp_path: Path) -> None:
    """Files learn the kinds of some logs from their rows, and do not read logs of fio whose kind is not asked for."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in fio:
        shutil.copy(DATA / "fio" / "coarse-3" / name, logs)
    shutil.copy(DATA / "fio" / "coarse-3" / "a_clat_hist.1.log", logs / "a_clat_hist.2.log")
    shutil.copy(DATA / "raw" / "ycsb" / "raw.csv", logs / "db.csv")
    reading = {"t0": READING["t0"]}
    with grounds(store, tmp_path) as ground:
        loaded(ground.url, [logs], run="logs", reading=reading)
        files = Files([logs], ReadOptions(run="logs", **reading))
        with open_store(ground.url) as kept:
            for question in (
                Question(step="all"),
                Question(step=10**9),
                Question(step=10**9, by=("host", "job")),
                Question(step=10**9, by=("kind",)),
                Question(),
                Question(step=10**9, where={"job": "1"}),
                Question(step=10**9, where={"process": "db"}),
                Question(step=10**9, where={"op": "read"}),
                Question(step="all", where={"kind": "service"}),
            ):
                told = [said(origin.answer(question)) for origin in (files, kept)]
                assert told[0] == told[1], question
                whole = question.where in ({}, {"op": "read"}) and "kind" not in question.by
                assert bool(told[0]) is whole, question


def test_a_job_with_logs_of_several_names_is_not_left_out(tmp_path: Path) -> None:
    """fio names each log by an option of its own; and a job whose kind is missing by name is not named twice."""
    shutil.copy(DATA / "fio" / "coarse-3" / "a_lat.1.log", tmp_path / "slow_lat.1.log")
    shutil.copy(DATA / "fio" / "coarse-3" / "a_clat_hist.1.log", tmp_path / "bins_clat_hist.1.log")
    answer = Files([tmp_path]).answer(Question(step="all"))
    assert (answer.kind, said(answer), answer.series) == ("total", [], 1)
    shutil.copy(DATA / "fio" / "coarse-3" / "a_clat_hist.1.log", tmp_path / "bins_clat_hist.2.log")
    answer = Files([tmp_path]).answer(Question(step="all"))
    assert said(answer) == []
    assert {lack.entry.caveat.code for lack in answer.missing} == {"other-kind"}


def test_a_series_is_taken_as_what_is_made_of_it_where_that_is_there() -> None:
    own = [Series(run="r", kind=kind) for kind in ("completion", "completion.corrected", "total", "")]
    there = {"r": {"completion", "completion.corrected", "total"}}
    assert taken_of(own, there, {"r": {"completion.corrected"}}) == [own[1], own[3]]
    assert taken_of(own, {"r": {"completion.in-flight", "total"}}, {"r": {"completion.in-flight"}}) == [own[0], own[3]]
    assert taken_of(own, {"r": {*there["r"], ""}}, {"r": {""}}) == [own[3]]
    assert taken_of(own, there, {}) == [own[3]]


@pytest.mark.parametrize("store", ["sqlite", "double"])
def test_what_a_log_lacks_is_told_with_the_answers_that_it_is_of(store: str, tmp_path: Path) -> None:
    """The range of a whole run is that of all its logs: what those of another kind lack was told of its numbers, too."""
    logs = tmp_path / "logs"
    logs.mkdir()
    raw = "".join(f"{at}, {9000 + at}, 0, 4096, 0, 0\n" for at in range(100, 6500, 100))
    options = {"write_lat_log": "a", "write_hist_log": "a", "log_hist_msec": "1000"}
    job = {"jobname": "x", "job options": options, "read": {"total_ios": 64, "runtime": 6500, "clat_ns": {"N": 64}}}
    for name in ("1", "2"):
        (logs / f"a_lat.{name}.log").write_text(raw)
        (logs / f"a_clat_hist.{name}.log").write_text(text_of([(1000, 0, {200: 9}), (2000, 0, {210: 9})], 1856))
    fio = {"fio version": "fio-3.33", "timestamp_ms": 1_700_000_006_500, "jobs": [job, job]}
    (logs / "out.json").write_text(json.dumps(fio))
    first, second = f"{logs}/a_clat_hist.1.log", f"{logs}/a_clat_hist.2.log"
    with grounds(store, tmp_path) as ground:
        loaded(ground.url, [logs], run="logs")
        with open_store(ground.url) as kept:
            for question, expected in (
                (Question(step="all"), ()),
                (Question(), ()),
                (Question(step="all", by=("kind",)), (first, second)),
                (Question(step="all", where={"kind": "completion"}), (first, second)),
                (Question(step="all", where={"kind": "completion", "job": "2"}), (second,)),
                (Question(step="all", by=("kind",), where={"job": "1"}), (first,)),
                (Question(step=SECOND, where={"kind": "completion"}, end=Instant(1_700_000_001 * SECOND)), ()),
            ):
                for origin in (Files([logs], ReadOptions(run="logs")), kept):
                    answer = origin.answer(question)
                    said = [text for text in answer.warnings if "fio counts 64, its log holds 18; fio never writes" in text]
                    named = tuple(name for name in (first, second) if any(name in text for text in said))
                    assert named == expected and len(said) <= 1, question


@pytest.mark.parametrize("step", ["all", 3 * SECOND])
@pytest.mark.parametrize("copies", [1, 2])
def test_files_whose_rows_alone_tell_their_kind_are_counted(tmp_path: Path, step: str | int, copies: int) -> None:
    """Rows without a tag have no kind, beside others: the file may hold any, however it is read (3,600 samples from 0 files)."""
    for number in range(copies):
        shutil.copy(DATA / "hdr" / "go_base.hlog", tmp_path / f"host{number}.hlog")
    files = Files([tmp_path], ReadOptions(recorded_unit_ns=1))
    question = Question(step=step)
    answers = [
        files.answer(question),
        *([files.percentiles(question, Wanted(parse_percentiles("50,99")))[1]] if step != "all" else []),
    ]
    assert [answer.made_of for answer in answers] == ["1 file" if copies == 1 else "2 files"] * len(answers)
