"""Findings that stores keep: those that files give, as new as the data, gone with their run."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.query.story.stored import documents_of, is_whole, story_from
from ingest.query.story.story import computed, story
from ingest.read.sources import ReadOptions
from ingest.store import elastic, open_store
from ingest.store.elastic import store as elastic_store
from ingest.store.elastic.client import Connection
from ingest.store.sqlite.store import SqliteStore
from tests.databases import database, rows_in
from tests.store.grounds import ElasticGround, SqliteGround, grounds, loaded
from tests.store.test_contract import EXAMPLE, FIO, KINDS, ZERO

pytestmark = pytest.mark.contract
DATA = Path(__file__).parents[1] / "data" / "store"
SOURCE = "'my logs' --digits 3"


@pytest.fixture(scope="module", params=KINDS)
def example(request, tmp_path_factory):
    with grounds(request.param, tmp_path_factory.mktemp("findings")) as found:
        loaded(found.url, [EXAMPLE], run=EXAMPLE.name)
        yield found


@pytest.fixture(params=KINDS)
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


def rows_of(ground: SqliteGround | ElasticGround) -> list[tuple[str, int, str]]:
    """Return run, rank and text of what a store holds, read past it."""
    if isinstance(ground, SqliteGround):
        found = rows_in(ground.path, "SELECT run, rank, text FROM findings")
    else:
        hits = [hit["_source"] for hit in ground.hits("findings")]
        found = [(hit["run"]["id"], hit["finding"]["rank"], hit.get("text", "")) for hit in hits]
    return sorted(found)


@pytest.mark.slow
def test_the_findings_of_a_store_are_those_of_its_files(example, monkeypatch) -> None:
    files = Files([EXAMPLE], ReadOptions(run=EXAMPLE.name))
    with open_store(example.url) as store:
        assert computed(store, Question(), SOURCE) == computed(files, Question(), SOURCE)
        expected = story(files, Question(), SOURCE)
        monkeypatch.setattr(type(store), "answer", None)  # what is kept is read, nothing is computed
        kept = story(store, Question(), SOURCE)
    assert kept == expected
    assert json.dumps(kept.as_dict()) == json.dumps(expected.as_dict())
    assert [(finding.kind, dict(finding.who)["host"]) for finding in kept.findings] == [
        ("stall", "ceph-b"),
        ("throttled", "ceph-c"),
    ]
    assert all(finding.command.split("'my logs' --digits 3 --")[0] == "tailboard percentiles " for finding in kept.findings)
    run = kept.run
    assert rows_of(example) == [(run, 0, ""), *((run, rank, told.text) for rank, told in enumerate(kept.findings, 1))]


def test_questions_about_a_part_are_computed(example) -> None:
    with open_store(example.url) as store:
        part = Question(where={"host": "ceph-a"})
        assert story(store, part) == computed(store, part) != story(store, Question())
    assert is_whole(Question(runs=("a*",), where={"run": "b"}))
    assert not any(map(is_whole, (part, Question(by=("volume",)), Question(step=10**9), Question(merge_runs=True))))


def test_findings_are_replaced_whole_and_used_only_while_they_are_as_new_as_the_data(ground, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    shutil.copy(FIO / "randrw" / "a_clat_hist.1.log", logs / "a_clat_hist.1.log")
    loaded(ground.url, [logs], reading=ZERO)
    with open_store(ground.url, write=True) as store:
        (first, *_) = store.findings_of(["r"])
        many = [replace(first, rank=rank) for rank in range(5)]
        store.keep_findings("r", many)
        assert [each.rank for each in store.findings_of(["r"])] == [0, 1, 2, 3, 4]
        assert story_from(many, first.stamp) is None  # not as many as its story says
        assert story(store, Question()) == computed(store, Question())
    lines = (logs / "a_clat_hist.1.log").read_text().splitlines(keepends=True)
    (logs / "a_clat_hist.2.log").write_text("".join(lines[:4]))
    loaded(ground.url, [logs], reading=ZERO)
    with open_store(ground.url, write=True) as store:
        kept = store.findings_of(["r"])
        assert kept[0].stamp != first.stamp and len(kept) == 1 + len(story(store, Question()).findings)
        assert story(store, Question()) == computed(store, Question())
        old = documents_of("r", replace(computed(store, Question()), nothing="of before"), first.stamp)
        store.keep_findings("r", old)
        assert story(store, Question()).nothing != "of before"
    assert command(["runs", "delete", "r", "--yes", "--store", ground.url]) == 0
    assert rows_of(ground) == []


def test_findings_of_an_earlier_method_are_computed_anew(ground, tmp_path: Path, monkeypatch) -> None:
    """Also of one of the same version: whoever asks gets what the method of now says, and a load writes it."""
    from ingest.store import findings

    shutil.copytree(Path(findings.__file__).parents[1] / "query" / "story", tmp_path / "story")
    with (tmp_path / "story" / "words.py").open("a") as file:
        file.write("# changed")
    now = findings.method()
    with monkeypatch.context() as patch:
        patch.setattr(findings.stored, "__file__", str(tmp_path / "story" / "stored.py"))
        findings.method.cache_clear()
        assert (earlier := findings.method()) != now
    findings.method.cache_clear()
    assert findings.method() == now
    with monkeypatch.context() as patch:
        patch.setattr(findings, "method", lambda: earlier)
        loaded(ground.url, [FIO / "randrw" / "a_clat_hist.1.log"], reading=ZERO)
        with open_store(ground.url, write=True) as store:
            kept = store.findings_of(["r"])
            store.keep_findings("r", [replace(kept[0], content={**kept[0].content, "nothing": "of before"}), *kept[1:]])
            assert story(store, Question()).nothing == "of before"
    with open_store(ground.url, write=True) as store:
        assert story(store, Question()).nothing == computed(store, Question()).nothing != "of before"
        findings.write_findings(store, "r")
        assert findings.stored_story(store, "r", "").nothing != "of before"


def test_a_run_that_is_not_complete_has_no_findings_yet(ground, tmp_path: Path, monkeypatch) -> None:
    from ingest.store import findings

    logs = FIO / "randrw" / "a_clat_hist.1.log"
    loaded(ground.url, [logs], reading=ZERO)
    with open_store(ground.url, write=True) as store:
        record = store.runs()[0]
        monkeypatch.setattr(type(store), "runs", lambda _self: [replace(record, state="loading")])
        store.keep_findings("r", [])
        findings.write_findings(store, "r")
        assert findings.stored_story(store, "r", "") is None
    assert rows_of(ground) == []


def test_a_watch_that_settles_writes_them(ground, tmp_path: Path) -> None:
    words = ["--until-idle", "30ms", "--interval", "10ms", "--t0", "2026-11-20T21:00:00Z", "--store", ground.url]
    assert command(["watch", str(FIO / "randrw" / "a_clat_hist.1.log"), "--run", "w", *words]) == 0
    with open_store(ground.url) as store:
        assert [told.run for told in store.findings_of(["w"])][:1] == ["w"]
        assert story(store, Question()) == computed(store, Question())


def test_two_requests_write_them(tmp_path: Path, monkeypatch) -> None:
    with grounds("double", tmp_path) as ground:
        loaded(ground.url, [FIO / "randrw" / "a_clat_hist.1.log"], reading=ZERO)
        with open_store(ground.url, write=True) as store:
            kept = store.findings_of(["r"])
            sent: list[str] = []
            real = Connection.call
            monkeypatch.setattr(
                Connection,
                "call",
                lambda self, method, path, *more, **words: (sent.append(path), real(self, method, path, *more, **words))[1],
            )
            elastic_store.keep_findings(store.connection, store.names, "r", kept)
        assert sent == [f"/{ground.prefix}-findings/_search", "/_bulk"]


def test_a_server_that_was_set_up_before_there_were_findings_computes_them(tmp_path: Path) -> None:
    with grounds("double", tmp_path) as ground:
        ground.client.indices.delete_index_template(name=f"{ground.prefix}-findings")
        loaded(ground.url, [FIO / "randrw" / "a_clat_hist.1.log"], reading=ZERO)
        assert rows_of(ground) == []
        with open_store(ground.url) as store:
            assert story(store, Question()) == computed(store, Question())


def test_a_store_of_the_version_before_is_read_without_them(tmp_path: Path) -> None:
    new = SqliteGround(tmp_path)
    loaded(new.url, [FIO / "randrw" / "a_clat_hist.1.log"], reading=ZERO)
    older = tmp_path / "older.db"
    with database(older) as db:
        db.executescript((DATA / "version-5.sql").read_text())
        db.execute("ATTACH ? AS new", (str(new.path),))
        for (table,) in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall():
            columns = ",".join(name for (name,) in db.execute(f"SELECT name FROM pragma_table_info('{table}', 'main')"))
            db.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM new.{table}")
    before = older.read_bytes()
    with open_store(new.url) as fresh, SqliteStore(str(older)) as store:
        assert store.findings_of(["r"]) == []
        assert story(store, Question()) == story(fresh, Question())
    assert older.read_bytes() == before


def test_findings_without_their_run_are_found_and_mended(ground) -> None:
    loaded(ground.url, [FIO / "randrw" / "a_clat_hist.1.log"], reading=ZERO)
    with open_store(ground.url, write=True) as store:
        (first, *_) = store.findings_of(["r"])
        if isinstance(ground, SqliteGround):
            with store.transaction() as db:
                db.execute("UPDATE findings SET run = 'ghost'")
        else:
            elastic.findings.keep_findings(store.connection, store.names, "ghost", [replace(first, run="ghost")])
        assert [fault.kind for fault in store.verify(lambda _run: True).findings] == ["no run"]
        store.verify(lambda _run: True, mend=True)
        assert store.verify(lambda _run: True).findings == []
        assert store.findings_of(["ghost"]) == []


def test_an_error_of_ours_in_a_detector_does_not_fail_a_load(ground, monkeypatch, capsys) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr("ingest.query.story.story.computed", broken)
    assert command(["load", str(EXAMPLE), "--run", "r", "--store", ground.url]) == 0
    assert "what happened in it cannot be worked out: internal error (ZeroDivisionError" in capsys.readouterr().err
    assert rows_of(ground) == []


def test_findings_of_a_run_are_not_of_those_that_a_load_of_its_name_has_made(ground) -> None:
    """`--run p` selects p/q as well: the findings of p were of both, added up."""
    loaded(ground.url, [FIO / "stall"], run="p/q", reading=ZERO)
    loaded(ground.url, [FIO / "randrw" / "a_clat_hist.1.log"], run="p", reading=ZERO)
    with open_store(ground.url) as store:
        for run, log in (("p", FIO / "randrw" / "a_clat_hist.1.log"), ("p/q", FIO / "stall")):
            alone = computed(Files([log], ReadOptions(run=run, **ZERO)), Question(), SOURCE)
            assert story(store, Question().about([run]), SOURCE) == computed(store, Question().about([run]), SOURCE) == alone
            assert story_from(store.findings_of([run]), store.findings_of([run])[0].stamp, SOURCE) == alone
