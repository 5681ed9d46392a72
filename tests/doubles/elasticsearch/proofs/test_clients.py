"""Elasticsearch's own Python client against the double, as a judge from elsewhere: 8.x, which servers of both majors take."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from elastic_transport import ConnectionError as NoConnection
from elasticsearch import (
    ApiError,
    AuthenticationException,
    AuthorizationException,
    BadRequestError,
    ConflictError,
    Elasticsearch,
    NotFoundError,
    helpers,
)

from tests.doubles.elasticsearch import ElasticsearchDouble

pytestmark = [pytest.mark.contract, pytest.mark.slow]
Json = Any
DOUBLES = ["9.5.3", "8.19.21"]
MAPPINGS = {
    "dynamic": "strict",
    "properties": {
        "@timestamp": {"type": "date"},
        "host": {"properties": {"name": {"type": "keyword"}}},
        "latency": {"properties": {"histogram": {"type": "histogram"}, "count": {"type": "long"}}},
    },
}


def load(client: Elasticsearch, actions: Any) -> tuple[int, list[Json]]:
    """Return how many documents were taken, and the answers of those that were not."""
    done, errors = helpers.bulk(client, actions, raise_on_error=False)
    assert isinstance(errors, list)
    return done, errors


def connect(server: ElasticsearchDouble, **options: Any) -> Elasticsearch:
    """Return a client without retries, so that each answer is seen."""
    return Elasticsearch(server.url, max_retries=0, **options)


@pytest.fixture(params=DOUBLES)
def server(request: pytest.FixtureRequest) -> Iterator[ElasticsearchDouble]:
    """Return a double of each major."""
    with ElasticsearchDouble(request.param, modules=("reindex",)) as double:
        yield double
        assert double.refusals == []


@pytest.fixture(params=[False, True], ids=["plain", "compressed"])
def client(request: pytest.FixtureRequest, server: ElasticsearchDouble) -> Iterator[Elasticsearch]:
    """Return a client with the templates set up."""
    with connect(server, http_compress=request.param) as found:
        found.cluster.put_component_template(name="m", template={"mappings": MAPPINGS})
        found.cluster.put_component_template(name="m@custom", template={})
        found.indices.put_index_template(
            name="x", index_patterns=["x-*"], composed_of=["m", "m@custom"], priority=300, meta={"version": "1"}, version=2
        )
        yield found


def documents(number: int) -> Iterator[Json]:
    """Yield bulk actions."""
    for place in range(number):
        bins = {"values": [1000, 2000 + place], "counts": [1, 2]}
        source = {
            "@timestamp": 1_789_999_200_000 + 1000 * place,
            "host": {"name": f"h{place % 3}"},
            "latency": {"histogram": bins, "count": 3},
        }
        yield {"_index": f"x-{place % 2}", "_id": str(place), "_source": source}


def test_a_load_and_its_questions(client: Elasticsearch, server: ElasticsearchDouble) -> None:
    assert client.info()["version"]["number"] == server.node.version
    assert client.ping()
    assert client.cluster.health(wait_for_status="yellow", timeout="30s")["status"] in ("green", "yellow")
    assert helpers.bulk(client, documents(500), chunk_size=100) == (500, [])
    assert client.count(index="x-*")["count"] == 0
    client.indices.refresh(index="x-*")
    assert client.count(index="x-*", query={"term": {"host.name": "h1"}})["count"] == 167
    aggs = {
        "t": {
            "date_histogram": {"field": "@timestamp", "fixed_interval": "100s"},
            "aggs": {
                "p": {
                    "percentiles": {
                        "field": "latency.histogram",
                        "percents": [50],
                        "hdr": {"number_of_significant_value_digits": 3},
                        "keyed": False,
                    }
                }
            },
        }
    }
    answer = client.search(index="x-*", size=0, aggs=aggs, allow_partial_search_results=False, track_total_hits=False)
    assert [bucket["doc_count"] for bucket in answer["aggregations"]["t"]["buckets"]] == [100] * 5
    assert client.get(index="x-1", id="7")["_source"]["host"] == {"name": "h1"}
    assert [one["found"] for one in client.mget(index="x-0", ids=["2", "3"])["docs"]] == [True, False]
    assert client.exists(index="x-0", id="2")
    assert not client.exists(index="x-0", id="3")


def test_reading_back_with_a_point_in_time(client: Elasticsearch) -> None:
    helpers.bulk(client, documents(250), refresh="wait_for")
    point = client.open_point_in_time(index="x-*", keep_alive="1m")["id"]
    found: list[int] = []
    after = None
    while True:
        page = client.search(
            pit={"id": point, "keep_alive": "1m"},
            size=60,
            sort=[{"@timestamp": "asc"}],
            search_after=after,
            source={"includes": ["latency.count", "@timestamp"]},
        )
        hits = page["hits"]["hits"]
        if not hits:
            break
        after, point = hits[-1]["sort"], page["pit_id"]
        found += [hit["_source"]["@timestamp"] for hit in hits]
    assert client.close_point_in_time(id=point)["succeeded"] is True
    assert found == [1_789_999_200_000 + 1000 * place for place in range(250)]


def test_errors_as_the_client_raises_them(client: Elasticsearch) -> None:
    with pytest.raises(NotFoundError):
        client.get(index="x-1", id="nothing")
    with pytest.raises(NotFoundError):
        client.search(index="nothing")
    helpers.bulk(client, documents(1))
    with pytest.raises(BadRequestError, match="Result window is too large"):
        client.search(index="x-*", size=10_001)
    client.create(index="x-1", id="a", document={"latency": {"count": 1}})
    with pytest.raises(ConflictError):
        client.create(index="x-1", id="a", document={"latency": {"count": 1}})
    with pytest.raises(BadRequestError, match="strict_dynamic_mapping_exception"):
        client.index(index="x-1", id="b", document={"colour": "red"})


def test_items_that_fail(client: Elasticsearch, server: ElasticsearchDouble) -> None:
    actions = [
        *documents(2),
        {"_index": "x-0", "_id": "bad", "_source": {"latency": {"histogram": {"values": [2, 1], "counts": [1, 1]}}}},
    ]
    done, errors = load(client, actions)
    assert (done, [error["index"]["status"] for error in errors]) == (2, [400])
    server.reject_next(items=0.5)
    done, errors = load(client, documents(10))
    assert (done, {error["index"]["status"] for error in errors}) == (5, {429})
    server.reject_next(whole=1)
    with pytest.raises(ApiError) as caught:
        client.bulk(operations=[{"index": {"_index": "x-0"}}, {}])
    assert caught.value.meta.status == 429
    client.indices.put_settings(index="x-0", settings={"index.blocks.read_only_allow_delete": True})
    done, errors = load(client, documents(4))
    assert (done, [error["index"]["status"] for error in errors]) == (2, [429, 429])


def test_numpy_values_are_sent(client: Elasticsearch) -> None:
    source = {"latency": {"histogram": {"values": np.array([1, 2]), "counts": np.array([3, 4])}, "count": np.int64(7)}}
    helpers.bulk(client, [{"_index": "x-1", "_id": "n", "_source": source}], refresh=True)
    answer = client.search(index="x-1", size=0, aggs={"n": {"value_count": {"field": "latency.histogram"}}})
    assert answer["aggregations"]["n"]["value"] == 7


def test_housekeeping(client: Elasticsearch, server: ElasticsearchDouble) -> None:
    helpers.bulk(client, documents(20), refresh=True)
    rows: Any = client.cat.indices(index="x-*", format="json", h=["index", "docs.count"], s="index")
    assert list(rows) == [{"index": "x-0", "docs.count": "10"}, {"index": "x-1", "docs.count": "10"}]
    assert {one["name"] for one in client.indices.resolve_index(name="x-*")["indices"]} == {"x-0", "x-1"}
    assert client.indices.stats(index="x-0", metric=["docs", "store"])["indices"]["x-0"]["primaries"]["docs"]["count"] == 10
    assert set(client.indices.get_mapping(index="x-*")) == {"x-0", "x-1"}
    assert client.indices.get_index_template(name="x")["index_templates"][0]["index_template"]["version"] == 2
    assert client.cluster.exists_component_template(name="m")
    assert (
        client.indices.simulate_index_template(name="x-9")["template"]["mappings"]
        == client.indices.get_mapping(index="x-0")["x-0"]["mappings"]
    )
    responses = client.msearch(searches=[{"index": "x-0"}, {"size": 0}, {"index": "x-1"}, {"size": 0}])["responses"]
    assert [one["hits"]["total"]["value"] for one in responses] == [10, 10]
    client.indices.delete(index="x-0")
    assert server.index_names() == ["x-1"]
    client.options(ignore_status=404).indices.delete(index="x-0")


def test_a_body_that_is_too_large() -> None:
    with ElasticsearchDouble(max_content_length=10_000) as double, connect(double) as client:
        with pytest.raises(ApiError) as caught:
            helpers.bulk(client, documents(500))
        assert caught.value.meta.status == 413
        assert helpers.bulk(client, documents(20))[0] == 20


def test_nobody_there() -> None:
    with ElasticsearchDouble() as double:
        client = connect(double)
    with pytest.raises(NoConnection):
        client.info()
    assert client.ping() is False


KEY = base64.b64encode(b"key-id:secret").decode()


@pytest.mark.parametrize(
    ("asked", "given", "let_in"),
    [
        ({"api_key": KEY}, {"api_key": KEY}, True),
        ({"api_key": ("key-id", "secret")}, {"api_key": KEY}, True),
        ({"api_key": KEY}, {"api_key": base64.b64encode(b"key-id:wrong").decode()}, False),
        ({"api_key": KEY}, {}, False),
        ({"basic": ("me", "pw")}, {"basic_auth": ("me", "pw")}, True),
        ({"basic": ("me", "pw")}, {"basic_auth": ("me", "no")}, False),
        ({"basic": ("me", "pw")}, {"api_key": KEY}, False),
        ({"basic": ("me", "pw"), "api_key": KEY}, {"api_key": KEY}, True),
    ],
)
def test_credentials(asked: Json, given: Json, let_in: bool) -> None:
    with ElasticsearchDouble(**asked) as double, connect(double, **given) as client:
        if let_in:
            assert client.info()["tagline"]
            return
        with pytest.raises(AuthenticationException) as caught:
            client.info()
        assert caught.value.body["error"]["type"] == "security_exception"
        assert "Basic realm" in str(caught.value.meta.headers["www-authenticate"])


def test_a_denied_write_fails_item_by_item() -> None:
    with (
        ElasticsearchDouble(api_key=KEY, denied=["indices:data/write/bulk[s]"]) as double,
        connect(double, api_key=KEY) as client,
    ):
        done, errors = load(client, documents(2))
        assert done == 0
        assert errors[0]["index"]["status"] == 403
        assert errors[0]["index"]["error"] == {
            "type": "security_exception",
            "reason": "action [indices:data/write/bulk[s]] is unauthorized for API key id [key-id] of user [elastic] on indices [x-0], "
            "this action is granted by the index privileges [create_doc,create,delete,index,write,all]",
        }
        assert double.documents("x-*") == {}


@pytest.mark.parametrize(
    ("action", "privileges", "call"),
    [
        ("indices:data/read/search", "index privileges [read,all]", lambda client: client.search(index="x")),
        (
            "indices:data/write/bulk",
            "index privileges [create_doc,create,delete,index,write,all]",
            lambda client: client.bulk(operations=[{"index": {"_index": "x"}}, {}]),
        ),
        (
            "indices:admin/index_template/put",
            "cluster privileges [manage_index_templates,manage,all]",
            lambda client: client.indices.put_index_template(name="t", index_patterns=["a"]),
        ),
        ("cluster:monitor/main", "cluster privileges [monitor,manage,all]", lambda client: client.info()),
        ("indices:admin/delete", "index privileges [delete_index,manage,all]", lambda client: client.indices.delete(index="x")),
    ],
)
def test_denied_actions(action: str, privileges: str, call: Any) -> None:
    with ElasticsearchDouble(basic=("me", "pw"), denied=[action]) as double, connect(double, basic_auth=("me", "pw")) as client:
        with pytest.raises(AuthorizationException) as caught:
            call(client)
        reason = caught.value.body["error"]["reason"]
        assert reason.startswith(f"action [{action}] is unauthorized for user [me] with effective roles [")
        assert reason.endswith(f"this action is granted by the {privileges}")
