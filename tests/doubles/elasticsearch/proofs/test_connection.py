"""The HTTP side: connections that last, clients that vanish, compression, threads, and how fast it is."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
import time
from typing import Any

import numpy as np
import pytest

from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.proofs.replaying import exchange, send

pytestmark = [pytest.mark.contract, pytest.mark.slow]
Json = Any


def test_one_connection_carries_many_requests() -> None:
    with ElasticsearchDouble() as double:
        connection = http.client.HTTPConnection("127.0.0.1", int(double.url.rpartition(":")[2]))
        for _ in range(3):
            assert exchange(connection, "GET", "/", None, {}).status == 200
            assert exchange(connection, "GET", "/nothing", None, {}).status == 404
            assert exchange(connection, "HEAD", "/nothing", None, {}).status == 404
            assert exchange(connection, "POST", "/_bulk", '{"index":{"_index":"x"}}\n{}\n', {}).status == 200
        first = connection.sock
        assert exchange(connection, "GET", "/", None, {}).status == 200
        assert connection.sock is first
        connection.close()


def test_a_client_that_vanishes_leaves_nothing() -> None:
    with ElasticsearchDouble() as double:
        port = int(double.url.rpartition(":")[2])
        line = b'{"index":{"_index":"x","_id":"1"}}\n{}\n'
        head = b"POST /_bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: 9999\r\n\r\n"
        for sent in (b"POST /_bulk HT", head, head + line):
            with socket.create_connection(("127.0.0.1", port)) as one:
                one.sendall(sent)
        time.sleep(0.2)
        assert double.index_names() == []
        assert double.refusals == []
        assert send(double, "GET", "/").status == 200


def test_chunked_and_compressed_bodies() -> None:
    with ElasticsearchDouble() as double:
        body = b'{"index":{"_index":"x","_id":"1"}}\n{"n":1}\n'
        connection = http.client.HTTPConnection("127.0.0.1", int(double.url.rpartition(":")[2]))
        headers = {"Content-Type": "application/x-ndjson", "Transfer-Encoding": "chunked"}
        connection.request("POST", "/_bulk", iter([body[:20], body[20:]]), headers, encode_chunked=True)
        assert json.loads(connection.getresponse().read())["errors"] is False
        headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip", "Accept-Encoding": "gzip"}
        connection.request("POST", "/_bulk", gzip.compress(body * 50), headers)
        answer = connection.getresponse()
        assert answer.headers["content-encoding"] == "gzip"
        assert len(json.loads(gzip.decompress(answer.read()))["items"]) == 50
        connection.close()


def test_threads_write_at_once() -> None:
    with ElasticsearchDouble() as double:

        def write(part: int) -> None:
            lines = "".join(f'{{"index":{{"_index":"x","_id":"{part}-{number}"}}}}\n{{"n":{number}}}\n' for number in range(200))
            assert send(double, "POST", "/_bulk", lines).body["errors"] is False

        threads = [threading.Thread(target=write, args=(part,)) for part in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert len(double.documents("x")) == 1600
        numbers = sorted(document.sequence for document in double.node.indices.by_name["x"].shards[0].live.values())
        assert numbers == list(range(1600))


def test_media_types() -> None:
    with ElasticsearchDouble("9.5.3") as nine, ElasticsearchDouble("8.19.21") as eight:
        for server, version, status in (
            (nine, 9, 200),
            (nine, 8, 200),
            (nine, 7, 400),
            (eight, 9, 400),
            (eight, 8, 200),
            (eight, 7, 200),
        ):
            media = f"application/vnd.elasticsearch+json; compatible-with={version}"
            answer = send(server, "GET", "/", headers={"Accept": media})
            assert answer.status == status
            assert answer.headers["x-elastic-product"] == "Elasticsearch"
            if status == 200:
                assert answer.headers["content-type"] == f"application/vnd.elasticsearch+json;compatible-with={version}"
        assert send(nine, "POST", "/_search", "{}", {"Content-Type": "text/plain"}).status == 406


@pytest.mark.slow
def test_fast_enough_for_a_large_load() -> None:
    """5,000 documents of 100 bins in, then 60 windows of 1,000 ranges out: seconds, with much to spare for slow machines."""
    random = np.random.default_rng(7)
    edges = np.unique(np.geomspace(1000, 1e9, 1001).astype(np.int64))
    properties = {"t": {"type": "date"}, "h": {"type": "histogram"}}
    total = 0
    lines = []
    for number in range(5000):
        chosen = np.sort(random.choice(len(edges) - 1, 100, replace=False))
        counts = random.integers(1, 100, 100)
        total += int(counts.sum())
        source = {
            "t": 1_789_999_200_000 + 10_000 * (number % 60),
            "h": {"values": edges[chosen].tolist(), "counts": counts.tolist()},
        }
        lines.append(f'{{"index":{{"_id":"{number}"}}}}\n{json.dumps(source, separators=(",", ":"))}\n')
    ranges = [{"from": low, "to": high} for low, high in zip(edges[:-1].tolist(), edges[1:].tolist())]
    aggs = {
        "w": {
            "date_histogram": {"field": "t", "fixed_interval": "10s"},
            "aggs": {"b": {"range": {"field": "h", "ranges": ranges}}},
        }
    }
    with ElasticsearchDouble() as double:
        send(double, "PUT", "/x", {"mappings": {"properties": properties}})
        for start in range(0, 5000, 1000):
            assert send(double, "POST", "/x/_bulk", "".join(lines[start : start + 1000])).body["errors"] is False
        send(double, "POST", "/x/_refresh")
        windows = send(double, "POST", "/x/_search", {"size": 0, "aggs": aggs}).body["aggregations"]["w"]["buckets"]
    assert len(windows) == 60
    assert sum(one["doc_count"] for window in windows for one in window["b"]["buckets"]) == total
