"""The benchmarks' sink: what the real client hears from it, and that it counts what a slow reader of the same bodies counts."""

from __future__ import annotations

import http.client
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from elasticsearch import BadRequestError, Elasticsearch, NotFoundError, helpers

SINK = Path(__file__).parent.parent / "benchmarks" / "sink.py"


@dataclass
class Sink:
    process: subprocess.Popen
    port: int
    record: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stats(self) -> dict:
        return self.ask("GET", "/_sink/stats")[1]

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, dict]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Sink]:
    record = tmp_path / "bodies"
    command = [sys.executable, str(SINK), "--record", str(record)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Sink(process, int(process.stdout.readline()), record)
        process.stdin.close()
        assert process.wait(10) == 0


def actions(count: int, **words: object) -> list[dict]:
    return [
        {"_index": "tailboard-intervals-2026.11", "_id": str(number), "_source": {"n": number, "t": 'a\n"{"delete"'}, **words}
        for number in range(count)
    ]


def bodies_in(record: Path) -> list[bytes]:
    found, text = [], record.read_bytes()
    while text:
        size, rest = text.split(b"\n", 1)
        found.append(rest[: int(size)])
        text = rest[int(size) :]
    return found


def test_the_real_clients_bulk_is_counted_and_recorded(sink: Sink) -> None:
    with Elasticsearch(sink.url) as client:
        done = list(helpers.streaming_bulk(client, actions(2500), chunk_size=999))
        assert [ok for ok, _ in done] == [True] * 2500
        assert all(item["index"]["status"] == 201 for _, item in done)
        created = client.bulk(operations=[{"create": {"_index": "i", "_id": "1"}}, {"n": 1}])
        assert [list(item) for item in created["items"]] == [["create"]]
        zipped = Elasticsearch(sink.url, http_compress=True)
        assert len(zipped.bulk(operations=[{"index": {"_index": "i"}}, {"n": 1}] * 7)["items"]) == 7
        zipped.close()
    bodies = bodies_in(sink.record)
    found = sink.stats()
    assert (found["bulk_requests"], found["documents"], found["deletes"]) == (5, 2508, 0)
    assert found["bulk_bytes"] == sum(map(len, bodies))
    lines = [json.loads(line) for body in bodies for line in body.splitlines()]
    assert [line["index"]["_id"] for line in lines[:5000:2]] == [str(number) for number in range(2500)]


def test_mixed_operations_keep_their_order_in_the_answer(sink: Sink) -> None:
    chance = random.Random(4)
    ops = [chance.choice(["index", "create", "delete"]) for _ in range(500)]
    lines = [
        part
        for op in ops
        for part in ([{op: {"_index": "i", "_id": "x"}}] if op == "delete" else [{op: {"_index": "i"}}, {"n": 1}])
    ]
    with Elasticsearch(sink.url) as client:
        got = client.bulk(operations=lines)
        assert [next(iter(item)) for item in got["items"]] == ops
        assert {item["delete"]["result"] for item in got["items"] if "delete" in item} == {"deleted"}
        only = client.bulk(operations=[{"delete": {"_index": "i", "_id": "x"}}] * 3)
        assert [next(iter(item)) for item in only["items"]] == ["delete"] * 3
    found = sink.stats()
    assert (found["documents"], found["deletes"]) == (500 - ops.count("delete"), ops.count("delete") + 3)


def test_filter_path_cuts_the_answer_as_a_node_does(sink: Sink) -> None:
    body = b'{"index":{}}\n{}\n' * 3
    assert sink.ask("POST", "/i/_bulk?filter_path=errors,items.*.status", body)[1] == {
        "errors": False,
        "items": [{"index": {"status": 201}}] * 3,
    }
    assert sink.ask("POST", "/i/_bulk?filter_path=errors,items.*.error", body)[1] == {"errors": False}
    assert set(sink.ask("POST", "/i/_bulk", body)[1]) == {"errors", "took", "items"}
    assert set(sink.ask("POST", "/i/_bulk?filter_path=took,items.*.result,items.*.error.type", body)[1]["items"][0]["index"]) == {
        "result"
    }
    status, got = sink.ask("POST", "/i/_bulk?filter_path=-items", body)
    assert status == 400 and "filter_path=-items" in got["error"]["reason"]


@pytest.mark.parametrize("body", [b"", b'{"index":{}}\n{}', b'{"index":{}}\n', b"no action\n\n", b'{"delete":{}}\n{}\n'])
def test_a_body_that_cannot_be_counted_is_refused(sink: Sink, body: bytes) -> None:
    assert sink.ask("POST", "/_bulk", body)[0] == 400
    assert sink.stats()["documents"] == 0


def test_large_bodies_and_many_connections_at_once(sink: Sink) -> None:
    body = b'{"index":{}}\n{"x":"' + b"y" * 3000 + b'"}\n'

    def send(count: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", sink.port, timeout=30)
        sizes = []
        for times in (count, 1, count * 2):
            connection.request("POST", "/_bulk", body * times)
            sizes.append(len(json.loads(connection.getresponse().read())["items"]))
        connection.close()
        assert sizes == [count, 1, count * 2]
        return sum(sizes)

    with ThreadPoolExecutor(4) as pool:
        sent = sum(pool.map(send, [900, 1500, 10, 2000]))
    found = sink.stats()
    assert (found["documents"], found["bulk_bytes"]) == (sent, sent * len(body))
    assert found["cpu_seconds"] < 5


def test_what_a_load_asks_besides(sink: Sink) -> None:
    with Elasticsearch(sink.url) as client:
        assert client.info()["version"]["number"] == "9.5.3"
        assert client.ping()
        with pytest.raises(NotFoundError):
            client.indices.get_index_template(name="tailboard-intervals")
        template = {"index_patterns": ["tailboard-intervals-*"], "_meta": {"version": "1"}}
        client.indices.put_index_template(
            name="tailboard-intervals", index_patterns=template["index_patterns"], meta=template["_meta"]
        )
        for name in ("tailboard-intervals", "tailboard-*"):
            (got,) = client.indices.get_index_template(name=name)["index_templates"]
            assert (got["name"], got["index_template"]) == ("tailboard-intervals", template)
        assert not client.indices.exists_index_template(name="other")
        client.cluster.put_component_template(name="c", template={"settings": {"a": 1}})
        assert client.cluster.get_component_template(name="c")["component_templates"][0]["component_template"]["template"]
        assert client.index(index="runs", id="r/1", document={"a": 1})["result"] == "created"
        assert client.index(index="runs", id="r/1", document={"a": 2})["_version"] == 2
        assert client.get(index="runs", id="r/1")["_source"] == {"a": 2}
        client.delete(index="runs", id="r/1")
        with pytest.raises(NotFoundError):
            client.get(index="runs", id="r/1")
        aggregations = {
            "w": {"date_histogram": {"field": "t", "fixed_interval": "1s"}},
            "n": {"sum": {"field": "c"}},
            "p": {"percentiles": {"field": "h"}},
        }
        got = client.search(index="i", aggs=aggregations)
        assert got["aggregations"] == {"w": {"buckets": []}, "n": {"value": 0}, "p": {"values": {}}}
        pit = client.open_point_in_time(index="i", keep_alive="1m")["id"]
        assert client.search(pit={"id": pit})["hits"]["hits"] == []
        assert client.close_point_in_time(id=pit)["succeeded"]
        assert client.count(index="i")["count"] == 0
        assert client.indices.refresh(index="i")["_shards"]["failed"] == 0
        with pytest.raises(BadRequestError):
            client.bulk(body=b"nothing\n")
    status, got = sink.ask("POST", "/_reindex", b"{}")
    assert status == 501 and "POST /_reindex" in got["error"]["reason"]
