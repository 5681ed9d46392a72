"""What every store must do, held on each of them: SQLite, the Elasticsearch double, and a real server if ELASTICSEARCH_URL is set."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingest.core.errors import InputError, StoreError
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import parse_instant
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.store import answers, open_store
from ingest.store.elastic import holdings
from ingest.view.text import csv_lines
from oracles.per_io import histogram_files
from tests.oracles import documents as brute
from tests.store.grounds import grounds, loaded

pytestmark = pytest.mark.contract
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cbt-archive"
FIO = ROOT / "tests" / "data" / "fio"
SECOND = 1_000_000_000
PERCENTS = ("0", "50", "90", "99", "99.9", "100")
ALL = Wanted(parse_percentiles("0,50,90,99,99.9,100"))
KINDS = ["sqlite", "double", *(["server"] if os.environ.get("ELASTICSEARCH_URL") else [])]
ZERO = {"t0": 1_789_999_200 * SECOND}
STRETCH = (parse_instant("2026-11-20T21:00:20Z"), parse_instant("2026-11-20T21:00:50Z"))

QUESTIONS = {
    "cluster at the stored step": Question(step=SECOND),
    "hosts": Question(by=("host",), step=SECOND),
    "hosts and ops at 10 s": Question(by=("host", "op"), step=10 * SECOND),
    "30 s from 10 s rollups": Question(by=("op",), step=30 * SECOND),
    "7 s": Question(by=("op",), step=7 * SECOND),
    "a minute": Question(by=("host",), step=60 * SECOND),
    "whole run": Question(by=("host", "op"), step="all"),
    "threads": Question(by=("host", "volume", "job", "op"), step=5 * SECOND),
    "volumes": Question(by=("volume",), step=30 * SECOND),
    "jobs of the whole run": Question(by=("job",), step="all"),
    "one volume": Question(by=("host",), where={"volume": "1"}, step=10 * SECOND),
    "one host": Question(where={"host": "ceph-c"}, step=10 * SECOND),
    "reads of two hosts": Question(by=("host",), where={"host": "ceph-[ab]", "op": "read"}, step="all"),
    "a setting of the run": Question(by=("mode", "op"), where={"iodepth": "4"}, step="all"),
    "a stretch": Question(begin=STRETCH[0], end=STRETCH[1], step=10 * SECOND),
    "a stretch of volumes": Question(by=("volume",), begin=STRETCH[0], end=STRETCH[1], step=10 * SECOND),
    "a stretch added up": Question(by=("volume",), begin=STRETCH[0], end=STRETCH[1], step="all"),
    "auto": Question(by=("op",)),
}


def csv(answer) -> list[str]:
    return list(csv_lines(percentiles(answer, ALL)))


def answered(url: str, question: Question) -> list[str]:
    with open_store(url) as store:
        return csv(store.answer(question))


@pytest.fixture(params=KINDS)
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


@pytest.fixture(scope="module", params=KINDS)
def example(request, tmp_path_factory):
    with grounds(request.param, tmp_path_factory.mktemp("example")) as found:
        loaded(found.url, [EXAMPLE], run=EXAMPLE.name)
        yield found


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("example", KINDS[1:], indirect=True, scope="module")
@pytest.mark.parametrize(
    ("cost", "summed"),
    [(0, True), pytest.param(10**9, False, marks=pytest.mark.slow)],
    ids=["added up in the server", "documents read back"],
)
def test_both_ways_of_asking_a_server_give_the_same_rows(example, monkeypatch, cost: int, summed: bool) -> None:
    asked = [question for question in QUESTIONS.values() if question.by and question.step != "auto"]
    expected = [answered(example.url, question) for question in asked]
    calls = []
    real = holdings.summed_windows
    monkeypatch.setattr(holdings, "SUM_CELL", cost)
    monkeypatch.setattr(holdings, "summed_windows", lambda *words: calls.append(words) or real(*words))
    monkeypatch.setattr(answers, "ROLLUP_LABELS", set())
    for number, (question, rows) in enumerate(zip(asked, expected), 1):
        assert answered(example.url, question) == rows
        assert len(calls) == (number if summed else 0) or question.by == ("host", "volume", "job", "op")


@pytest.mark.cases(8)
@pytest.mark.parametrize("name", [name for name, question in QUESTIONS.items() if "mode" not in question.by and name != "auto"])
def test_answers_equal_a_brute_force_over_the_documents(example, name: str) -> None:
    question = QUESTIONS[name]
    step = 0 if question.step == "all" else int(question.step)
    reach = (question.begin.epoch_ns(0) if question.begin else None, question.end.epoch_ns(0) if question.end else None)
    expected = brute.rows(example.documents(), question.by, dict(question.where), step, reach, PERCENTS)
    with open_store(example.url) as store:
        table = percentiles(store.answer(question), ALL)
    columns = table.columns
    start = [at if step else 0 for at in columns["start_ns"].tolist()]
    keys = list(zip(start, *(columns[name] for name in question.by)))
    assert set(keys) == set(expected)
    for row, key in enumerate(keys):
        cell = expected[key]
        assert columns["count"][row] == cell["count"]
        assert columns["mean"][row] == pytest.approx(float(cell["mean"]), rel=1e-12)
        for percent in PERCENTS[1:-1]:
            found = columns[f"p{percent}"][row]
            assert (None if found != found else found) == cell[f"p{percent}"], (key, percent)


@pytest.mark.slow
def test_the_second_load_changes_nothing(ground) -> None:
    first = loaded(ground.url, [EXAMPLE])
    before = ground.documents(), ground.rollups()
    second = loaded(ground.url, [EXAMPLE])
    assert first.documents == len(before[0]) > 1000
    assert (second.documents, dict(second.duplicate)) == (0, {"already loaded": 12})
    assert (ground.documents(), ground.rollups()) == before


@pytest.mark.slow
def test_rollups_equal_the_sums_of_documents(example) -> None:
    documents = example.documents()
    for scope, by in (("host", ("host", "op")), ("cluster", ("op",))):
        for step in (SECOND, 10 * SECOND, 60 * SECOND, 0):
            expected = brute.rows(documents, by, {}, step, (None, None), ("50", "99", "99.9"))
            found = {}
            for row in example.rollups():
                if row[1] == scope and row[3] == step:
                    key = (row[4] if step else 0, row[6], row[5]) if scope == "host" else (row[4] if step else 0, row[5])
                    found[key] = (row[9], row[15], row[19], row[20])
            assert found == {key: (one["count"], one["p50"], one["p99"], one["p99.9"]) for key, one in expected.items()}


def a_log(folder: Path, lines: slice | None = None, name: str = "a_clat_hist.1.log", source: str = "randrw") -> Path:
    folder.mkdir(exist_ok=True)
    text = (FIO / source / "a_clat_hist.1.log").read_bytes().splitlines(keepends=True)
    (folder / name).write_bytes(b"".join(text[lines] if lines else text))
    return folder


def same_as_clean(ground, tmp_path: Path, load) -> None:
    """Hold what is there against a load of the same into a fresh store."""
    server = os.environ.get("ELASTICSEARCH_URL") in ground.url.split("?")
    with grounds("sqlite" if "sqlite" in ground.url else "server" if server else "double", tmp_path) as clean:
        load(clean.url)
        assert ground.documents() == clean.documents()
        assert ground.rollups() == clean.rollups()


def test_a_source_that_grew_is_read_again(ground, tmp_path: Path) -> None:
    logs = a_log(tmp_path / "logs", slice(0, 4))
    loaded(ground.url, [logs], reading=ZERO)
    a_log(logs)
    loaded(ground.url, [logs], reading=ZERO)
    same_as_clean(ground, tmp_path, lambda url: loaded(url, [logs], reading=ZERO))


def test_a_repair_that_lowers_a_count_replaces(ground, tmp_path: Path) -> None:
    logs = a_log(tmp_path / "logs")
    loaded(ground.url, [logs], reading=ZERO)
    a_log(logs, slice(0, -2))
    with pytest.raises(InputError, match="--replace"):
        loaded(ground.url, [logs], reading=ZERO)
    loaded(ground.url, [logs], reading=ZERO, replace=True)
    same_as_clean(ground, tmp_path, lambda url: loaded(url, [logs], reading=ZERO))


@pytest.mark.slow
def test_another_step_or_unit_replaces_everything(ground, tmp_path: Path) -> None:
    loaded(ground.url, [EXAMPLE])
    with pytest.raises(StoreError, match=r"another step \(1s then, 5s now\): use --replace"):
        loaded(ground.url, [EXAMPLE], step_ns=5 * SECOND)
    loaded(ground.url, [EXAMPLE], step_ns=5 * SECOND, replace=True)
    same_as_clean(ground, tmp_path, lambda url: loaded(url, [EXAMPLE], step_ns=5 * SECOND))


def test_a_replaced_run_of_other_hosts_and_kinds_leaves_nothing_behind(ground, tmp_path: Path) -> None:
    logs = a_log(tmp_path / "logs")
    loaded(ground.url, [logs], reading=ZERO)
    loaded(ground.url, [logs], reading=ZERO, replace=True, attribution="in-flight")
    same_as_clean(ground, tmp_path, lambda url: loaded(url, [logs], reading=ZERO, attribution="in-flight"))


def test_hosts_that_come_one_after_another_with_other_layouts(ground, tmp_path: Path) -> None:
    sources = ("coarse-1", "coarse-3", "coarse-2")
    for place, source in enumerate(sources):
        loaded(ground.url, [a_log(tmp_path / f"h{place}", source=source)], reading={**ZERO, "host": f"h{place}"})
    with grounds("sqlite", tmp_path) as clean:
        for place in reversed(range(len(sources))):
            loaded(clean.url, [tmp_path / f"h{place}"], reading={**ZERO, "host": f"h{place}"})
        assert ground.documents() == clean.documents()
        assert ground.rollups() == clean.rollups()


@pytest.mark.slow
def test_in_flight_weights(ground) -> None:
    loaded(ground.url, [EXAMPLE], run=EXAMPLE.name, attribution="in-flight")
    question = Question(by=("host",), step=SECOND, attribution="in-flight")
    assert answered(ground.url, question) == csv(Files([EXAMPLE]).answer(question))
    with open_store(ground.url) as store:
        assert store.answer(question).samples == 59015


@pytest.mark.slow
def test_marks_runs_and_deletion(ground, tmp_path: Path) -> None:
    loaded(ground.url, [EXAMPLE])
    loaded(ground.url, [a_log(tmp_path / "logs")], run="other", reading=ZERO)
    kept = [one for one in ground.documents() if one["run"] == "other"]
    with open_store(ground.url, write=True) as store:
        names = [record.run for record in store.runs()]
        assert [record.state for record in store.runs()] == ["complete"] * len(names)
        run = next(name for name in names if name != "other")
        store.mark(run, 5, "later")
        store.mark(run, 3, "osd.3 down")
        store.mark(run, 3, "osd.3 down")
        assert [(mark["at_ns"], mark["text"]) for mark in store.marks_of([run])] == [(3, "osd.3 down"), (5, "later")]
        assert store.delete_run(run) > 1000
        assert [record.run for record in store.runs()] == ["other"]
        assert store.marks_of([run]) == []
    assert ground.documents() == kept
    assert {row[0] for row in ground.rollups()} == {"other"}


def test_export_gives_every_window_back(example) -> None:
    question = Question(by=("host", "volume", "job", "op"), step="auto")
    with open_store(example.url) as store:
        samples = sum(int(part.counts.sum()) for part in store.windows(question))
    assert samples == 59015


def test_facts_and_warnings_are_those_of_the_account(ground) -> None:
    loaded(ground.url, histogram_files(FIO / "latency-target"), reading=ZERO)
    with open_store(ground.url) as store:
        answer = store.answer(Question(step="all"))
        facts = dict(store.facts(answer))
    assert answer.warnings[0] == "2 rows repaired: counts wrapped by a latency_target reset"
    assert facts["Sources"].startswith("1 file, ")
