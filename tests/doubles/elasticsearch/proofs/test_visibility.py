"""What searches see and when, versions, deletions, points in time: the semantics a store relies on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.proofs.replaying import send

pytestmark = [pytest.mark.contract, pytest.mark.slow]
Json = Any


@pytest.fixture
def server() -> Iterator[ElasticsearchDouble]:
    """Return a double with an index that refreshes every five seconds."""
    with ElasticsearchDouble() as double:
        properties = {"t": {"type": "date"}, "n": {"type": "long"}, "k": {"type": "keyword"}}
        settings = {"refresh_interval": "5s", "number_of_replicas": 0}
        assert (
            send(double, "PUT", "/x", {"settings": settings, "mappings": {"dynamic": "strict", "properties": properties}}).status
            == 200
        )
        yield double
        assert double.refusals == []


def put(server: ElasticsearchDouble, name: str, query: str = "", **values: Json) -> Any:
    """Write a document."""
    return send(server, "PUT", f"/x/_doc/{name}{query}", values)


def count(server: ElasticsearchDouble, index: str = "x") -> int:
    """Return how many documents searches see."""
    answers = {
        send(server, "GET", f"/{index}/_count").body["count"],
        send(server, "POST", f"/{index}/_search", {"size": 0}).body["hits"]["total"]["value"],
    }
    (found,) = answers
    return int(found)


def test_a_document_is_read_by_id_before_it_is_found(server: ElasticsearchDouble) -> None:
    assert put(server, "a", n=1).body["result"] == "created"
    assert send(server, "GET", "/x/_doc/a").body["_source"] == {"n": 1}
    assert send(server, "POST", "/x/_mget", {"ids": ["a"]}).body["docs"][0]["found"] is True
    assert send(server, "HEAD", "/x/_doc/a").status == 200
    assert count(server) == 0
    send(server, "POST", "/x/_refresh")
    assert count(server) == 1


@pytest.mark.parametrize(("refresh", "forced"), [("true", True), ("wait_for", False), ("", True)])
def test_a_write_can_ask_to_be_seen(server: ElasticsearchDouble, refresh: str, forced: bool) -> None:
    answer = put(server, "a", f"?refresh={refresh}", n=1)
    assert answer.body.get("forced_refresh", False) is forced
    assert count(server) == 1


def test_a_bulk_can_ask_to_be_seen(server: ElasticsearchDouble) -> None:
    lines = '{"index":{"_id":"a"}}\n{"n":1}\n{"create":{"_id":"a"}}\n{"n":2}\n'
    answer = send(server, "POST", "/x/_bulk?refresh=true", lines)
    first, second = (next(iter(item.values())) for item in answer.body["items"])
    assert first["forced_refresh"] is True
    assert "forced_refresh" not in second
    assert second["status"] == 409
    assert count(server) == 1


def test_the_interval_makes_visible_what_was_written_before_its_end(server: ElasticsearchDouble) -> None:
    put(server, "early", n=1)
    server.advance(4)
    assert count(server) == 0
    server.advance(2)  # past the first tick
    put(server, "late", n=2)
    assert count(server) == 1
    server.advance(3)
    assert count(server) == 1
    server.advance(2)  # past the second
    assert count(server) == 2


def test_without_an_interval_only_asking_helps(server: ElasticsearchDouble) -> None:
    send(server, "PUT", "/x/_settings", {"index": {"refresh_interval": "-1"}})
    put(server, "a", n=1)
    server.advance(3600)
    assert count(server) == 0
    send(server, "PUT", "/x/_settings", {"index": {"refresh_interval": "1s"}})
    server.advance(2)
    assert count(server) == 1


def test_waiting_for_a_refresh_that_never_comes_is_refused() -> None:
    with ElasticsearchDouble() as double:
        send(double, "PUT", "/x", {"settings": {"refresh_interval": "-1"}})
        assert put(double, "a", "?refresh=wait_for", n=1).status == 501
        assert len(double.refusals) == 1


def test_the_default_interval_is_a_second() -> None:
    with ElasticsearchDouble() as double:
        put(double, "a", n=1)
        assert count(double) == 0
        double.advance(1.1)
        assert count(double) == 1


def test_overwritten_and_deleted_documents_are_seen_until_the_refresh(server: ElasticsearchDouble) -> None:
    put(server, "a", "?refresh=true", n=1)
    put(server, "a", n=2)
    found = send(server, "POST", "/x/_search", {}).body["hits"]["hits"]
    assert [hit["_source"] for hit in found] == [{"n": 1}]
    assert send(server, "GET", "/x/_doc/a").body["_source"] == {"n": 2}
    assert send(server, "DELETE", "/x/_doc/a").body["result"] == "deleted"
    assert count(server) == 1
    assert send(server, "GET", "/x/_doc/a").status == 404
    send(server, "POST", "/_refresh")
    assert count(server) == 0


def test_a_point_in_time_stays_as_it_was(server: ElasticsearchDouble) -> None:
    for number in range(25):
        put(server, str(number), n=number, t=100_000 * (number // 10))
    send(server, "POST", "/x/_refresh")
    point = send(server, "POST", "/x/_pit?keep_alive=1m").body["id"]
    put(server, "new", "?refresh=true", n=99, t=0)
    put(server, "3", "?refresh=true", n=-3, t=999_999)
    send(server, "DELETE", "/x/_doc/4?refresh=true")
    seen: list[int] = []
    after = None
    while True:
        body: Json = {"size": 7, "pit": {"id": point, "keep_alive": "1m"}, "sort": [{"t": "desc"}], "track_total_hits": False}
        if after:
            body["search_after"] = after
        hits = send(server, "POST", "/_search", body).body["hits"]["hits"]
        if not hits:
            break
        seen += [hit["_source"]["n"] for hit in hits]
        after = hits[-1]["sort"]
        assert len(after) == 2  # the tie is broken by a key that nobody asked for
    assert seen == [*range(20, 25), *range(10, 20), *range(10)]
    assert count(server) == 25
    assert send(server, "DELETE", "/_pit", {"id": point}).body == {"succeeded": True, "num_freed": 1}
    assert send(server, "DELETE", "/_pit", {"id": point}).status == 404


def test_a_point_in_time_expires(server: ElasticsearchDouble) -> None:
    point = send(server, "POST", "/x/_pit?keep_alive=1m").body["id"]
    server.advance(50)
    assert send(server, "POST", "/_search", {"pit": {"id": point}}).status == 200
    server.advance(50)
    assert send(server, "POST", "/_search", {"pit": {"id": point}}).status == 200
    server.advance(70)
    gone = send(server, "POST", "/_search", {"pit": {"id": point}})
    assert (gone.status, gone.body["error"]["failed_shards"][0]["reason"]["type"]) == (404, "search_context_missing_exception")


def test_a_point_in_time_of_a_deleted_index_fails(server: ElasticsearchDouble) -> None:
    put(server, "a", "?refresh=true", n=1)
    send(server, "PUT", "/y/_doc/b?refresh=true", {"n": 2})
    point = send(server, "POST", "/x,y/_pit?keep_alive=1m").body["id"]
    send(server, "DELETE", "/y")
    partly = send(server, "POST", "/_search", {"pit": {"id": point}})
    assert partly.body["_shards"]["failed"] == 1
    assert partly.body["hits"]["total"]["value"] == 1
    assert send(server, "POST", "/_search?allow_partial_search_results=false", {"pit": {"id": point}}).status == 404
    send(server, "DELETE", "/x")
    assert send(server, "POST", "/_search", {"pit": {"id": point}}).status == 404


@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        ("external_gte", [(5, 201), (5, 200), (4, 409), (7, 200), (6, 409)]),
        ("external", [(5, 201), (5, 409), (4, 409), (7, 200), (8, 200)]),
    ],
)
def test_versions_from_outside(server: ElasticsearchDouble, kind: str, steps: list[tuple[int, int]]) -> None:
    best = None
    for version, status in steps:
        line = f'{{"index":{{"_index":"x","_id":"a","version":{version},"version_type":"{kind}"}}}}\n{{"n":{version}}}\n'
        (item,) = send(server, "POST", "/_bulk", line).body["items"]
        assert item["index"]["status"] == status, version
        if status != 409:
            best = version
        assert send(server, "GET", "/x/_doc/a").body["_version"] == best
        assert server.documents("x")["a"]["n"] == best


def test_a_deleted_document_keeps_its_version_for_a_minute(server: ElasticsearchDouble) -> None:
    put(server, "a", n=1)
    assert send(server, "DELETE", "/x/_doc/a").body["_version"] == 2
    late = '{"index":{"_index":"x","_id":"a","version":1,"version_type":"external_gte"}}\n{"n":1}\n'
    assert send(server, "POST", "/_bulk", late).body["items"][0]["index"]["status"] == 409
    server.advance(61)
    assert send(server, "POST", "/_bulk", late).body["items"][0]["index"]["status"] == 201


def test_sequence_numbers_guard_a_write(server: ElasticsearchDouble) -> None:
    first = put(server, "a", n=1).body
    guard = f"?if_seq_no={first['_seq_no']}&if_primary_term={first['_primary_term']}"
    assert put(server, "a", guard, n=2).status == 200
    assert put(server, "a", guard, n=3).status == 409
    assert server.documents("x") == {"a": {"n": 2}}


def test_three_shards_hold_what_one_would() -> None:
    with ElasticsearchDouble() as double:
        send(double, "PUT", "/x", {"settings": {"number_of_shards": 3, "number_of_replicas": 0}})
        lines = "".join(f'{{"index":{{"_id":"{number}"}}}}\n{{"n":{number}}}\n' for number in range(100))
        send(double, "POST", "/x/_bulk", lines)
        put(double, "0", "?refresh=true", n=0)  # one shard of three is refreshed
        some = count(double)
        assert 0 < some < 100
        send(double, "POST", "/x/_refresh")
        answer = send(double, "POST", "/x/_search", {"size": 100, "sort": ["n"], "aggs": {"s": {"sum": {"field": "n"}}}}).body
        assert answer["_shards"] == {"total": 3, "successful": 3, "skipped": 0, "failed": 0}
        assert [hit["_source"]["n"] for hit in answer["hits"]["hits"]] == list(range(100))
        assert answer["aggregations"]["s"]["value"] == 4950.0


def test_dynamic_templates_map_labels() -> None:
    mappings = {
        "dynamic": "strict",
        "dynamic_templates": [{"labels": {"path_match": "labels.*", "mapping": {"type": "keyword"}}}],
        "properties": {"labels": {"type": "object", "dynamic": True}},
    }
    with ElasticsearchDouble() as double:
        send(double, "PUT", "/x", {"mappings": mappings})
        assert put(double, "a", "?refresh=true", labels={"bench": "rbd"}).status == 201
        assert put(double, "b", "?refresh=true", labels={"bench": "cephfs"}).status == 201
        assert put(double, "c", other="x").status == 400
        found = send(double, "POST", "/x/_search", {"query": {"terms": {"labels.bench": ["rbd"]}}}).body["hits"]["hits"]
        assert [hit["_id"] for hit in found] == ["a"]
        tree = send(double, "GET", "/x/_mapping").body["x"]["mappings"]["properties"]
        assert tree == {"labels": {"dynamic": "true", "properties": {"bench": {"type": "keyword"}}}}
        assert double.refusals == []


def test_templates_shape_new_indices() -> None:
    with ElasticsearchDouble() as double:
        low = {
            "template": {
                "settings": {"number_of_shards": 2, "refresh_interval": "30s"},
                "mappings": {"properties": {"a": {"type": "long"}, "b": {"type": "long"}}},
            }
        }
        high = {
            "template": {
                "settings": {"index.refresh_interval": "10s"},
                "mappings": {"_meta": {"v": 2}, "properties": {"b": {"type": "keyword"}}},
            }
        }
        send(double, "PUT", "/_component_template/low", low)
        send(double, "PUT", "/_component_template/x@custom", high)
        index = {
            "index_patterns": ["x-*"],
            "composed_of": ["low", "x@custom"],
            "priority": 200,
            "version": 3,
            "_meta": {"by": "us"},
            "template": {"mappings": {"dynamic": "strict", "_meta": {"w": 1}}},
        }
        send(double, "PUT", "/_index_template/x", index)
        send(
            double,
            "PUT",
            "/_index_template/all",
            {"index_patterns": ["*"], "priority": 1, "template": {"settings": {"number_of_shards": 5}}},
        )
        put_one = send(double, "PUT", "/x-1/_doc/1", {"a": 1, "b": "text"})
        assert put_one.status == 201
        assert send(double, "PUT", "/x-1/_doc/2", {"c": 1}).body["error"]["type"] == "strict_dynamic_mapping_exception"
        found = send(double, "GET", "/x-1").body["x-1"]
        assert found["mappings"] == {
            "dynamic": "strict",
            "_meta": {"v": 2, "w": 1},
            "properties": {"a": {"type": "long"}, "b": {"type": "keyword"}},
        }
        assert (found["settings"]["index"]["number_of_shards"], found["settings"]["index"]["refresh_interval"]) == ("2", "10s")
        send(double, "PUT", "/_component_template/x@custom", {"template": {}})
        send(double, "PUT", "/x-2/_doc/1", {"a": 1, "b": 2})
        assert send(double, "GET", "/x-2/_mapping").body["x-2"]["mappings"]["properties"]["b"] == {"type": "long"}
        assert send(double, "GET", "/x-1/_mapping").body["x-1"]["mappings"]["properties"]["b"] == {"type": "keyword"}
        assert double.index_names() == ["x-1", "x-2"]
        assert double.refusals == []
