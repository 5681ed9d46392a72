"""Queries, sorted hits, and other ways to ask, against plain Python."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.proofs.asking import CUTS, T0, ask, listed, numbers, rows
from tests.doubles.elasticsearch.proofs.replaying import send

pytestmark = [pytest.mark.contract, pytest.mark.slow]
Json = Any


@pytest.fixture(scope="module")
def server() -> Any:
    """Return a double for all examples: each has indices of its own."""
    with ElasticsearchDouble() as double:
        yield double
        assert double.refusals == []


PREDICATES: list[tuple[Json, Any]] = [
    ({"match_all": {}}, lambda d: True),
    ({"terms": {"k": ["a", "c"]}}, lambda d: bool({"a", "c"} & set(listed(d, "k")))),
    ({"terms": {"n": [1, 2, "-3", 4.0]}}, lambda d: bool({1, 2, -3, 4} & set(listed(d, "n")))),
    ({"range": {"n": {"gt": -2, "lte": 3}}}, lambda d: any(-2 < v <= 3 for v in listed(d, "n"))),
    ({"range": {"n": {"gte": 0.5}}}, lambda d: any(v >= 0.5 for v in listed(d, "n"))),
    ({"range": {"d": {"lt": 1.25}}}, lambda d: any(v < 1.25 for v in listed(d, "d"))),
    (
        {"range": {"t": {"gte": T0 + 1000, "lt": T0 + 30_000, "format": "epoch_millis"}}},
        lambda d: T0 + 1000 <= d["t"] < T0 + 30_000,
    ),
    ({"range": {"t": {"gte": "2026-09-21T14:00:30Z"}}}, lambda d: d["t"] >= T0 + 30_000),
    ({"range": {"t": {"gt": "2026-09-21T14:00:30"}}}, lambda d: d["t"] > T0 + 30_999),
    ({"range": {"t": {"lte": "2026-09-21T14:00"}}}, lambda d: d["t"] <= T0 + 59_999),
    ({"range": {"k": {"gte": "b"}}}, lambda d: any(v >= "b" for v in listed(d, "k"))),
    ({"exists": {"field": "h"}}, lambda d: "h" in d),
    ({"exists": {"field": "k"}}, lambda d: bool(listed(d, "k"))),
    ({"prefix": {"k": "b"}}, lambda d: "b" in listed(d, "k")),
    ({"wildcard": {"k": {"value": "?"}}}, lambda d: bool(listed(d, "k"))),
    ({"wildcard": {"k": "\\?*"}}, lambda d: False),
    ({"term": {"nothing": 1}}, lambda d: False),
]


def conditions() -> Any:
    """Return a strategy of queries with what they mean."""
    leaf = st.sampled_from(PREDICATES)

    def grow(inner: Any) -> Any:
        lists = st.lists(inner, max_size=2)
        return st.tuples(lists, lists, lists, lists, st.sampled_from([None, 0, 1, 2, -1, "50%"])).map(
            lambda given: compound(*given)
        )

    return st.recursive(leaf, grow, max_leaves=5)


def compound(must: Any, filters: Any, should: Any, must_not: Any, least: Any) -> tuple[Json, Any]:
    """Return a bool query and what it means."""
    clauses = {"must": must, "filter": filters, "should": should, "must_not": must_not}
    body: Json = {name: [query for query, _ in one] for name, one in clauses.items()}
    number = (0 if must or filters else 1) if least is None else least
    if least is not None:
        body["minimum_should_match"] = least
    if isinstance(number, str):
        number = len(should) // 2
    elif number < 0:
        number += len(should)

    def holds(document: Json) -> bool:
        all_of = all(test(document) for _, test in must + filters) and not any(test(document) for _, test in must_not)
        return all_of and (not should or sum(test(document) for _, test in should) >= number)

    return {"bool": body}, holds


@pytest.mark.slow
@CUTS
@given(rows, conditions())
def test_queries(server: ElasticsearchDouble, documents: list[Json], condition: tuple[Json, Any]) -> None:
    query, holds = condition
    filters = {"f": {"filter": query}, "g": {"filters": {"filters": {"yes": query, "no": {"bool": {"must_not": query}}}}}}
    body = {
        "size": 100,
        "query": {"constant_score": {"filter": query}},
        "sort": [{"t": "asc"}],
        "track_total_hits": True,
        "_source": False,
        "aggs": filters,
    }
    answer = ask(server, documents, body)
    want = {str(number) for number, document in enumerate(documents) if holds(document)}
    assert {hit["_id"] for hit in answer["hits"]["hits"]} == want
    assert answer["hits"]["total"] == {"value": len(want), "relation": "eq"}
    assert answer["aggregations"]["f"]["doc_count"] == len(want)
    assert answer["aggregations"]["g"]["buckets"] == {"yes": {"doc_count": len(want)}, "no": {"doc_count": 0}}


@CUTS
@given(rows, st.sampled_from(["t", "n", "d", "k"]), st.booleans(), st.booleans())
def test_sorted_hits(server: ElasticsearchDouble, documents: list[Json], field: str, down: bool, first: bool) -> None:
    key = {field: {"order": "desc" if down else "asc", "missing": "_first" if first else "_last"}}
    hits = ask(server, documents, {"size": 100, "sort": [key, {"_doc": "asc"}], "_source": {"includes": [field]}}, indices=1)[
        "hits"
    ]["hits"]
    pick = max if down else min

    def place(number: int) -> tuple[bool, Any]:
        found = listed(documents[number], field)
        return bool(found), pick(found) if found else None

    having = sorted((n for n in range(len(documents)) if place(n)[0]), key=lambda n: place(n)[1], reverse=down)
    without = [n for n in range(len(documents)) if not place(n)[0]]
    order = without + having if first else having + without
    assert [hit["_id"] for hit in hits] == [str(number) for number in order]
    for hit, number in zip(hits, order):
        assert hit["_source"] == {name: value for name, value in documents[number].items() if name == field}
        if place(number)[0]:
            assert hit["sort"][0] == place(number)[1]


def test_several_searches_at_once(server: ElasticsearchDouble) -> None:
    name = f"m{next(numbers)}"
    send(server, "PUT", f"/{name}/_doc/1?refresh=true", {"n": 1})
    lines = f'{{"index":"{name}"}}\n{{"size":0}}\n{{"index":"no-such-index"}}\n{{"size":0}}\n{{}}\n{{"size":0,"query":{{"term":{{"_index":"{name}"}}}}}}\n'
    found = send(server, "POST", "/_msearch", lines).body["responses"]
    assert [one["status"] for one in found] == [200, 404, 200]
    assert (found[0]["hits"]["total"]["value"], found[2]["hits"]["total"]["value"]) == (1, 1)
    assert found[1]["error"]["type"] == "index_not_found_exception"


def test_filter_path(server: ElasticsearchDouble) -> None:
    name = f"f{next(numbers)}"
    send(server, "PUT", f"/{name}/_doc/1?refresh=true", {"a": {"b": 1, "c": 2}})
    path = f"/{name}/_search?filter_path="
    assert send(server, "POST", f"{path}hits.hits._source.a.b").body == {"hits": {"hits": [{"_source": {"a": {"b": 1}}}]}}
    assert send(server, "POST", f"{path}**.b,timed_out").body == {
        "timed_out": False,
        "hits": {"hits": [{"_source": {"a": {"b": 1}}}]},
    }
    assert send(server, "POST", f"{path}-took,-_shards,-hits.hits,-hits.max_score").body == {
        "timed_out": False,
        "hits": {"total": {"value": 1, "relation": "eq"}},
    }
    assert send(server, "POST", f"{path}nothing").body == {}


def test_a_post_filter_is_of_hits_alone(server: ElasticsearchDouble) -> None:
    name = f"p{next(numbers)}"
    for number in range(4):
        send(server, "PUT", f"/{name}/_doc/{number}?refresh=true", {"n": number, "m": number % 2})
    body = {
        "size": 9,
        "sort": [{"n": "desc"}],
        "post_filter": {"range": {"m": {"gt": 0}}},
        "aggs": {"s": {"sum": {"field": "n"}}},
    }
    found = send(server, "POST", f"/{name}/_search", {**body, "query": {"range": {"n": {"gte": 1}}}}).body
    assert [hit["_id"] for hit in found["hits"]["hits"]] == ["3", "1"]
    assert found["hits"]["total"]["value"] == 2 and found["aggregations"]["s"]["value"] == 6
