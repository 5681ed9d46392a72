"""Loud refusals: what the double cannot do is 501 and remembered; what a server refuses is refused as a server does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.proofs.replaying import send

pytestmark = [pytest.mark.contract, pytest.mark.slow]
Json = Any
P = {"percentiles": {"field": "h", "hdr": {}}}
CANNOT: list[tuple[str, str, Json]] = [
    ("GET", "/_nodes", None),
    ("POST", "/x/_forcemerge", None),
    ("POST", "/x/_async_search", {}),
    ("POST", "/x/_search", {"query": {"match": {"k": "a"}}}),
    ("POST", "/x/_search", {"query": {"regexp": {"k": "a.*"}}}),
    ("POST", "/x/_search", {"query": {"term": {"k": {"value": "a", "boost": 2}}}}),
    ("POST", "/x/_search", {"query": {"bool": {"filter": [], "boost": 2}}}),
    ("POST", "/x/_search", {"query": {"term": {"k": "a"}}}),  # its hits would have scores
    ("POST", "/x/_search", {"query": {"range": {"t": {"gte": "now-1d/d"}}}}),
    ("POST", "/x/_search", {"size": 0, "aggs": {"a": {"percentiles": {"field": "h"}}}}),
    ("POST", "/x/_search", {"size": 0, "aggs": {"a": {"percentiles": {"field": "h", "tdigest": {"compression": 100}}}}}),
    ("POST", "/x/_search", {"size": 0, "aggs": {"a": {"percentile_ranks": {"field": "h", "values": [1]}}}}),
    ("POST", "/x/_search", {"size": 0, "aggs": {"a": {"significant_terms": {"field": "k"}}}}),
    ("POST", "/x/_search", {"size": 0, "aggs": {"a": {"stats": {"field": "n"}}}}),
    ("POST", "/x/_search", {"size": 0, "aggs": {"a": {"terms": {"field": "k", "include": "a.*"}}}}),
    (
        "POST",
        "/x/_search",
        {"size": 0, "aggs": {"a": {"date_histogram": {"field": "t", "fixed_interval": "1d", "time_zone": "Europe/Berlin"}}}},
    ),
    ("POST", "/x/_search", {"size": 0, "aggs": {"a": {"date_histogram": {"field": "t", "calendar_interval": "month"}}}}),
    ("POST", "/x/_search", {"size": 0, "aggs": {"a": {"avg_bucket": {"buckets_path": "x"}}}}),
    ("POST", "/x/_search", {"collapse": {"field": "k"}}),
    ("POST", "/x/_search", {"runtime_mappings": {}}),
    ("POST", "/x/_search?scroll=1m", {}),
    ("POST", "/x/_search?routing=a", {}),
    ("POST", "/x/_search?timeout=1ms", {}),
    ("POST", "/x/_search", {"fields": ["k"]}),
    ("POST", "/x/_bulk?pipeline=p", '{"index":{}}\n{}\n'),
    ("POST", "/x/_bulk?require_data_stream=true", '{"index":{}}\n{}\n'),
    ("POST", "/x/_bulk", '{"update":{"_id":"1"}}\n{"doc":{}}\n'),
    ("POST", "/x/_bulk", '{"index":{"_id":"1","routing":"r"}}\n{}\n'),
    ("POST", "/x/_bulk", '{"index":{"_id":"1","version":3}}\n{}\n'),
    ("PUT", "/y", {"mappings": {"properties": {"a": {"type": "geo_point"}}}}),
    ("PUT", "/y", {"mappings": {"properties": {"a": {"type": "keyword", "doc_values": False}}}}),
    ("PUT", "/y", {"mappings": {"dynamic_templates": [{"a": {"match": "*", "mapping": {"type": "keyword"}}}]}}),
    ("PUT", "/y", {"mappings": {"dynamic": "strict_allow_templates"}}),
    ("PUT", "/y", {"settings": {"index.mode": "logsdb"}}),
    ("PUT", "/y", {"settings": {"index.sort.field": "n"}}),
    ("PUT", "/y", {"aliases": {"a": {}}}),
    ("PUT", "/_index_template/t", {"index_patterns": ["a-*"], "data_stream": {}}),
    ("GET", "/_cat/indices", None),
    ("GET", "/_cat/indices?format=json&h=creation.date", None),
    ("GET", "/x/_stats/search", None),
    ("POST", "/_query", {"query": "FROM x | STATS PERCENTILE(n, 99)"}),
    ("POST", "/_query", {"query": "ROW a = 1"}),
    ("POST", "/_query", {"query": "FROM x | STATS MAX(h)"}),
    ("POST", "/_query", {"query": "FROM x | LIMIT 5"}),
]
REFUSED: list[tuple[str, str, Json, int, str]] = [
    ("POST", "/x/_search", {"query": {"matsch": {}}}, 400, "parsing_exception"),
    ("POST", "/x/_search", {"aggs": {"a": {"termen": {}}}}, 400, "parsing_exception"),
    ("POST", "/x/_search", {"sice": 1}, 400, "parsing_exception"),
    ("POST", "/x/_search?sice=1", {}, 400, "illegal_argument_exception"),
    ("POST", "/x/_search", {"search_after": [1]}, 400, "illegal_argument_exception"),
    ("POST", "/x/_search", {"sort": ["t"], "search_after": [1, 2]}, 400, "illegal_argument_exception"),
    ("POST", "/x/_search", {"sort": ["nothing"]}, 400, "search_phase_execution_exception"),
    ("POST", "/x/_search", {"query": {"range": {"t": {"gte": "yesterday"}}}}, 400, "search_phase_execution_exception"),
    ("POST", "/x/_search", {"query": {"term": {"n": "many"}}}, 400, "search_phase_execution_exception"),
    ("POST", "/x/_search", {"size": 0, "aggs": {"a": {"max": {"field": "k"}}}}, 400, "search_phase_execution_exception"),
    ("POST", "/x/_search", {"sort": ["_shard_doc"]}, 400, "illegal_argument_exception"),
    ("POST", "/x/_bulk?refresh=perhaps", '{"index":{}}\n{}\n', 400, "illegal_argument_exception"),
    ("POST", "/x/_pit", None, 400, "action_request_validation_exception"),
    ("PUT", "/Upper", None, 400, "invalid_index_name_exception"),
    ("PUT", "/x/_settings", {"index.number_of_shards": 3}, 400, "illegal_argument_exception"),
    ("PUT", "/x/_mapping", {"properties": {"k": {"type": "long"}}}, 400, "illegal_argument_exception"),
    ("PUT", "/_index_template/t", {"composed_of": []}, 400, "x_content_parse_exception"),
    ("DELETE", "/_index_template/t", None, 404, "resource_not_found_exception"),
    ("GET", "/nothing/_mapping", None, 404, "index_not_found_exception"),
    ("GET", "/nothing/_doc/1", None, 404, "index_not_found_exception"),
    ("POST", "/_query", {"query": "FROM nothing | STATS COUNT(*)"}, 400, "verification_exception"),
    ("POST", "/_query", {"query": "FROM x | STATS MAX(nothing)"}, 400, "verification_exception"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[ElasticsearchDouble]:
    """Return a double with an index of one document."""
    with ElasticsearchDouble() as double:
        properties = {name: {"type": kind} for name, kind in (("h", "histogram"), ("k", "keyword"), ("t", "date"), ("n", "long"))}
        send(double, "PUT", "/x", {"mappings": {"properties": properties}})
        send(double, "PUT", "/x/_doc/1?refresh=true", {"k": "a", "n": 1, "t": 0, "h": {"values": [1], "counts": [1]}})
        yield double


@pytest.mark.parametrize(("method", "path", "body"), CANNOT)
def test_what_the_double_cannot_do(server: ElasticsearchDouble, method: str, path: str, body: Json) -> None:
    before = len(server.refusals)
    answer = send(server, method, path, body)
    assert (answer.status, answer.body["error"]["type"]) == (501, "double_cannot_do_this")
    assert len(server.refusals) == before + 1
    assert f"{method} {path}: {answer.body['error']['reason']}" == server.refusals[-1]
    assert "double broke" not in server.refusals[-1]


@pytest.mark.parametrize(("method", "path", "body", "status", "kind"), REFUSED)
def test_what_a_server_refuses(server: ElasticsearchDouble, method: str, path: str, body: Json, status: int, kind: str) -> None:
    before = list(server.refusals)
    answer = send(server, method, path, body)
    assert (answer.status, answer.body["error"]["type"]) == (status, kind)
    assert server.refusals == before


def test_requests_are_listed(server: ElasticsearchDouble) -> None:
    send(server, "POST", "/x/_count?preference=a", '{"query":{"match_all":{}}}')
    last = server.requests[-1]
    assert tuple(last) == ("POST", "/x/_count?preference=a", 200, 26)


def test_more_buckets_than_the_limit(server: ElasticsearchDouble) -> None:
    ranges = [{"from": n, "to": n + 1} for n in range(4)]
    body = {"size": 0, "aggs": {"t": {"terms": {"field": "k"}, "aggs": {"r": {"range": {"field": "h", "ranges": ranges}}}}}}
    with ElasticsearchDouble(max_buckets=5) as double:
        send(double, "PUT", "/x", {"mappings": {"properties": {"h": {"type": "histogram"}, "k": {"type": "keyword"}}}})
        send(double, "PUT", "/x/_doc/1?refresh=true", {"k": "a"})
        assert send(double, "POST", "/x/_search", body).status == 200
        ranges.append({"from": 9})
        too_many = send(double, "POST", "/x/_search", body)
        assert too_many.body["error"]["caused_by"]["type"] == "too_many_buckets_exception"
