"""Sending documents: what never fits is halved and named, what passes is waited for, dead letters are always named."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest.cli import run as command
from ingest.core.errors import StoreError
from ingest.core.marks import noted
from ingest.store import open_store
from ingest.store.elastic.bulk import Delivery, Sender
from ingest.store.elastic.client import Connection, parse_address
from ingest.store.elastic.documents import Chunk
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.errors import illegal
from tests.doubles.elasticsearch.templates import Templates
from tests.doubles.fault_proxy import FaultProxy
from tests.doubles.faults import Fault
from tests.store.grounds import ElasticGround, SqliteGround, loaded
from tests.store.test_contract import EXAMPLE, SECOND, ZERO, a_log
from tests.store.test_elastic import SERVER, _made, _spoiled

FLOOD = {"index.blocks.read_only_allow_delete": True}
FIO = Path(__file__).parents[1] / "data" / "fio" / "randrw"
T0 = ("--t0", "2026-11-20T21:00:00Z")


@pytest.fixture
def double() -> Iterator[ElasticsearchDouble]:
    with ElasticsearchDouble(version=SERVER) as found:
        yield found
        assert not found.refusals, found.refusals


def sent(double: ElasticsearchDouble, bodies: list[bytes], letters: Path, patience: float) -> Delivery:
    """Send documents with texts of some lengths in one chunk; return what became of them."""
    lines = [b'{"index":{"_index":"plain","_id":"%d"}}\n{"text":"%b"}\n' % (number, body) for number, body in enumerate(bodies)]
    connection = Connection(parse_address(double.url))
    connection.patience = patience
    connection.open()
    delivery = Delivery()
    sender = Sender(connection, delivery, letters)
    try:
        sender.send(Chunk(b"".join(lines), len(lines)))
        sender.flush()
    finally:
        sender.close()
        connection.close()
    return delivery


@pytest.mark.parametrize("breaker", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["pressure", "breaker"])
def test_f6_a_body_that_never_fits_is_halved_down_to_the_document(double, tmp_path: Path, breaker: bool) -> None:
    """The server says by its numbers that a body is too large for ever; its breaker leaves that open."""
    memory = double.hold_at_most(1_000, breaker=breaker)
    letters = tmp_path / "letters"
    delivery = sent(double, [b"x" * (2_000 if number == 9 else 50) for number in range(40)], letters, patience=2.0)
    assert delivery.counts["sent"] == 40
    assert (delivery.counts["created"], delivery.counts["rejected"]) == (39, 1)
    assert len(double.documents("plain")) == 39
    letter = json.loads(letters.read_text())
    assert letter["action"]["index"]["_id"] == "9" and letter["status"] == 429
    assert ("circuit_breaking_exception" if breaker else "es_rejected_execution_exception") in letter["reason"]
    assert breaker or memory.refused <= 11, "what can be known at once is not tried again"


def test_f4_bodies_are_halved_on_413_and_grow_again_while_all_goes_well(tmp_path: Path) -> None:
    """A body of 400 kB is halved until it fits; those after it begin at the size that fitted."""
    most = 100_000
    with ElasticsearchDouble(version=SERVER, max_content_length=most) as double:
        connection = Connection(parse_address(double.url))
        connection.open()
        sender = Sender(connection, Delivery(), tmp_path / "letters", senders=1)
        chunks = [
            Chunk(b'{"index":{"_index":"plain","_id":"%d"}}\n{"text":"%b"}\n' % (number, b"x" * 9_900), 1)
            for number in range(200)
        ]
        refused = []
        for first in range(0, len(chunks), 40):
            for chunk in chunks[first : first + 40]:
                sender.send(chunk)
            sender.flush()
            refused.append(sum(seen.status == 413 for seen in double.requests))
        sender.close()
        connection.close()
        taken = [seen.length for seen in double.requests if seen.status == 200 and seen.path.startswith("/_bulk")]
        assert len(double.documents("plain")) == 200 and sender.delivery.counts["created"] == 200
    assert refused == [3] * 5, "what was too large once is not tried again soon"
    assert max(taken) <= most and sorted(taken)[len(taken) // 2] > most / 2, "bodies stay near what fits"


@pytest.mark.parametrize("fault", [Fault.TOO_LARGE, Fault.REJECT_ITEMS], ids=str)
def test_f6_marks_and_findings_are_halved_and_sent_again(double, tmp_path: Path, fault: Fault) -> None:
    """413 was an internal error, an overloaded server a refusal: found by fifty loads with kills and faults."""
    ground = ElasticGround(double.url)
    loaded(ground.url, [a_log(tmp_path / "logs")], reading=ZERO)
    with FaultProxy(double.url, seed=3, share=0.5, faults=[fault], only=lambda _, path: "_bulk" in path) as proxy:
        with open_store(f"{proxy.url}?index_prefix={ground.prefix}", write=True) as store:
            story = store.findings_of(["r"])[0]
            for turn in range(4):
                store.mark_all("r", [noted("r", number * SECOND, "x") for number in range(10)])
                store.keep_findings("r", [replace(story, rank=rank, text=f"{turn}") for rank in range(10)])
        assert proxy.injected[fault] >= 2
    with open_store(ground.url) as store:
        assert len(store.marks_of(["r"])) == 10
        assert [(kept.rank, kept.text) for kept in store.findings_of(["r"])] == [(rank, "3") for rank in range(10)]


def test_f6_a_load_goes_through_a_server_of_little_memory(double, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    ground, clean = ElasticGround(double.url), ElasticGround(double.url)
    loaded(clean.url, [FIO], reading=ZERO)
    memory = double.hold_at_most(9_000)
    account = loaded(ground.url, [FIO], reading=ZERO)
    assert memory.refused and account.delivered["rejected"] == 0
    assert (ground.documents(), ground.rollups()) == (clean.documents(), clean.rollups())


def test_f6_an_overloaded_server_loses_no_document_to_the_dead_letters(double, tmp_path: Path) -> None:
    """Nothing is taken for as long as patience lasts: then the documents are not at fault, and the load is to be repeated."""
    double.hold_at_most(0, breaker=True)
    with pytest.raises(StoreError, match="it is overloaded or starting, for 0 s now; run the same load again later"):
        sent(double, [b"x"] * 8, tmp_path / "letters", patience=0.4)
    assert not (tmp_path / "letters").exists()


def test_f7_flood_stage_is_waited_for(double, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    ground = ElasticGround(double.url)
    index = _made(ground)
    ground.client.indices.put_settings(index=index, settings=FLOOD)
    blocked = threading.Event()

    def make_room() -> None:
        while not any(seen.path.startswith("/_bulk") for seen in double.requests):
            if blocked.wait(0.01):
                return
        blocked.wait(0.5)
        ground.client.indices.put_settings(index=index, settings={"index.blocks.read_only_allow_delete": None})

    thread = threading.Thread(target=make_room)
    thread.start()
    try:
        account = loaded(ground.url, [FIO], reading={"t0": 1_795_208_400 * SECOND})
    finally:
        blocked.set()
        thread.join()
    assert account.delivered["retried"] > 0 and account.delivered["rejected"] == 0
    assert sum(one["count"] for one in ground.documents()) == account.rows.samples


@pytest.mark.slow
def test_f7_a_load_that_ends_in_an_error_names_its_dead_letters(double, tmp_path: Path, monkeypatch, capsys) -> None:
    """Some documents are refused each for itself, then the server takes no more."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAILBOARD_ES_PATIENCE", "0.3")
    ground = ElasticGround(double.url)
    monkeypatch.setattr("ingest.store.elastic.documents.labels_document", _spoiled)
    real = Sender.flush

    def flush(sender: Sender) -> None:
        real(sender)
        double.hold_at_most(0, breaker=True)

    monkeypatch.setattr(Sender, "flush", flush)
    assert command(["load", str(EXAMPLE), "--run", "r", "--store", ground.url]) == 4
    told = capsys.readouterr().err
    letters = Path("tailboard-dead-letters.ndjson").read_text().splitlines()
    assert f"{len(letters)} documents were refused by the server and lie in tailboard-dead-letters.ndjson" in told
    assert "overloaded or starting" in told.splitlines()[-1]


@pytest.mark.parametrize("words", [[], ["--format", "hlog"], ["--format", "hgrm"], ["--format", "documents"]])
def test_f7_an_export_prints_nothing_before_its_store_answers(words: list[str], tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("TAILBOARD_ES_PATIENCE", "0.1")
    url = f"sqlite:{tmp_path / 's.db'}"
    assert command(["load", str(FIO), "--run", "r", "--store", url, *T0]) == 0
    capsys.readouterr()
    for store, run, status in (("http://127.0.0.1:9", "r", 4), (f"sqlite:{tmp_path}/none.db", "r", 4), (url, "none", 3)):
        assert command(["export", store, "--run", run, *words]) == status
        assert capsys.readouterr().out == "", (store, run)


def test_f7_a_watch_says_what_it_has_loaded(tmp_path: Path, capsys) -> None:
    url = f"sqlite:{tmp_path / 's.db'}"
    assert command(["watch", str(FIO), "--run", "r", "--store", url, "--until-idle", "200ms", "--interval", "50ms", *T0]) == 0
    told = capsys.readouterr().err
    assert "nothing new: 0 documents" not in told
    assert "2 files whole, 1358 rows, 2700 samples, 20 documents into" in told.splitlines()[-1], told
    assert command(["watch", str(FIO), "--run", "r", "--store", url, "--until-idle", "200ms", "--interval", "50ms", *T0]) == 0
    assert "nothing new: 0 documents" in capsys.readouterr().err


def test_a_cluster_that_makes_no_further_index_refuses_no_document(double, tmp_path: Path) -> None:
    """It is not the documents that are at fault: the load stops with what to do, and nothing goes to the dead letters."""
    double.node.indices.most = 0
    with pytest.raises(
        StoreError, match=r"as many shards as it may have: delete old indices, or raise cluster\.max_shards_per_node"
    ):
        sent(double, [b"x"] * 20, tmp_path / "letters", patience=2.0)
    assert not (tmp_path / "letters").exists()


def test_setup_says_of_a_template_that_it_is_there_once_it_is(double, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Templates.put_component

    def put(self: Templates, name: str, *rest: Any, **more: Any) -> None:
        if name.endswith("runs-mappings"):
            raise illegal("no")
        real(self, name, *rest, **more)

    monkeypatch.setattr(Templates, "put_component", put)
    assert command(["setup", "--elasticsearch", double.url]) != 0
    told = capsys.readouterr().err
    assert "the server refuses the component template tailboard-runs-mappings" in told
    assert "component template tailboard-rollups-mappings is created" in told
    assert "component template tailboard-runs-mappings is created" not in told
    assert "index template" not in told


def test_a_deletion_in_an_index_that_is_not_there_is_none_and_makes_no_index(double, tmp_path: Path) -> None:
    """As a real node answers: 404 and index_not_found_exception. It ended the command that deleted."""
    connection = Connection(parse_address(double.url))
    connection.open()
    delivery = Delivery()
    sender = Sender(connection, delivery, tmp_path / "letters")
    lines = b'{"delete":{"_index":"gone","_id":"1"}}\n{"index":{"_index":"plain","_id":"2"}}\n{"text":"x"}\n'
    try:
        sender.send(Chunk(lines, 2))
        sender.flush()
    finally:
        sender.close()
        connection.close()
    assert (delivery.counts["superseded"], delivery.counts["created"], delivery.counts["rejected"]) == (1, 1, 0)
    assert double.index_names() == ["plain"]
    assert not (tmp_path / "letters").exists()


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("status", "failed", "words"),
    [
        (500, "refresh_failed_engine_exception", "refresh="),
        (503, "unavailable_shards_exception", "timeout="),
        (503, "process_cluster_event_timeout_exception", "timeout="),
    ],
)
def test_items_of_a_shard_that_failed_are_sent_again(
    double, tmp_path: Path, monkeypatch, status: int, failed: str, words
) -> None:
    """They may be written already: seen on nodes. The double writes them, and each third answer says that the shard failed.

    At a refresh; or because the only node that held it was killed: 503 of an item ended the load.
    """
    outcome = {"status": status, "error": {"type": failed, "reason": "it failed"}}
    sent, answers = Connection.sent, []

    def failing(self, method: str, target: str, *rest):
        code, headers, body = sent(self, method, target, *rest)
        if "/_bulk" not in target or words not in target:
            return code, headers, body
        answers.append(target)
        if len(answers) % 3 == 1:
            items = json.loads(body)["items"]
            broken = [{op: {**item, **outcome} for op, item in one.items()} for one in items]
            body = json.dumps({"errors": True, "items": broken}).encode()
        return code, headers, body

    monkeypatch.setattr(Connection, "sent", failing)
    ground, file = ElasticGround(double.url), SqliteGround(tmp_path)
    for store in (ground, file):
        loaded(store.url, [EXAMPLE])
    assert len(answers) > 1  # the first one failed; how many there are depends on when senders are idle
    assert ground.documents() == file.documents()
