"""The double against the recorded conversation of the product with a real node: setup, load, queries, coarsening, deletion.

Every answer is compared: status, error, results of items, `_source`, counts, values of aggregations, order of keys. Left out, each
for its reason:

- what `comparing.VOLATILE` names, and `build_type`: this node was another distribution than those of the other recordings;
- **the place of a document in its shard.** The product wrote on several connections, the node kept several segments and merged
  them. So hits that no field of the sort tells apart come in another order, a page ends elsewhere among them, and `_shard_doc`
  has other values: pages of one point in time are compared together, as a set of documents, and by what they were sorted by;
- of equal hits, of which a search wants only the first: which one it is.
"""

from __future__ import annotations

import http.client
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.proofs.comparing import differences, recorded
from tests.doubles.elasticsearch.proofs.replaying import Answered, exchange

pytestmark = [pytest.mark.contract, pytest.mark.slow]
Json = Any
NINE = "application/vnd.elasticsearch+{};compatible-with=9"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request of the product, what the server answered, what the double did."""

    number: int
    path: str
    request: Json
    status: int
    want: Json
    have: Answered

    @property
    def unordered(self) -> bool:
        """Return whether the order of its hits rests on their place in the shard."""
        return "hits" in self.want and self.request.get("size") != 0


@dataclass
class Conversation:
    """The product's requests sent again, with the double's points in time and last hits in place of the server's."""

    points: dict[str, str] = field(default_factory=dict)
    last: dict[str, Json] = field(default_factory=dict)  # of each point in time: what the double's last hit was sorted by

    def send(self, connection: http.client.HTTPConnection, step: Json) -> Exchange:
        """Return the double's answer beside the server's."""
        bulk = "/_bulk" in step["path"]
        body, request = step["request"] or None, None
        if body and not bulk:
            request = orjson.loads(body)
            body = orjson.dumps(self._translated(request)).decode()
        headers = {"Accept": NINE.format("json")}
        if body:
            headers["Content-Type"] = NINE.format("x-ndjson" if bulk else "json")
        want = orjson.loads(step["response"])
        have = exchange(connection, step["method"], step["path"], body, headers)
        if "/_pit?" in step["path"]:
            self.points[want["id"]] = have.body["id"]
        if request and "pit" in request and have.body["hits"]["hits"]:
            self.last[request["pit"]["id"]] = have.body["hits"]["hits"][-1]["sort"]
        return Exchange(step["n"], step["path"], request, step["status"], want, have)

    def _translated(self, request: Json) -> Json:
        if "pit" in request:
            theirs = request["pit"]["id"]
            ours = {**request, "pit": {**request["pit"], "id": self.points[theirs]}}
            return {**ours, "search_after": self.last[theirs]} if "search_after" in ours else ours
        return {**request, "id": self.points[request["id"]]} if request.keys() == {"id"} else request


@pytest.fixture(scope="module")
def exchanges() -> Iterator[list[Exchange]]:
    """Return the whole conversation as the double took part in it."""
    conversation = Conversation()
    with ElasticsearchDouble("9.5.3") as server:
        connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=60)
        found = [conversation.send(connection, step) for step in recorded("product-9.5.3")]
        connection.close()
        assert server.refusals == []
        yield found


def _told(found: list[str], one: Exchange) -> list[str]:
    return [f"{one.number} {one.path}: {line}" for line in found]


@pytest.mark.slow
def test_f3_all_answers_but_the_order_of_hits(exchanges: list[Exchange]) -> None:
    assert len(exchanges) == 702
    found: list[str] = []
    for one in exchanges:
        want, have = one.want, one.have.body
        if one.path == "/":
            want, have = ({**body, "version": {**body["version"], "build_type": ""}} for body in (want, have))
        if one.unordered:
            want, have = ({**body, "hits": {**body["hits"], "hits": []}} for body in (want, have))
        wrong = differences(want, have)
        found += _told(wrong if one.status == one.have.status else [f"status {one.status}, given {one.have.status}", *wrong], one)
    assert found == []


def _hits(one: Exchange, answer: Json) -> list[Json]:
    """Return hits without `_shard_doc`; of one hit among equals what it shows, not which it is."""
    keys = one.request.get("sort", [])
    shown = []
    for hit in answer["hits"]["hits"]:
        sort = [value for key, value in zip(keys, hit.get("sort", []), strict=True) if key != "_shard_doc"] if keys else []
        named = {} if one.request["size"] == 1 else {"_id": hit["_id"]}
        shown.append({**{key: value for key, value in hit.items() if key not in ("_id", "sort")}, **named, "sort": sort})
    assert [hit["sort"] for hit in shown] == sorted((hit["sort"] for hit in shown), reverse="desc" in str(keys))
    return shown


@pytest.mark.slow
def test_all_hits(exchanges: list[Exchange]) -> None:
    pages: dict[str, list[Exchange]] = {}
    for one in exchanges:
        if one.unordered:
            pages.setdefault(
                f"{one.request['pit']['id']} {one.request['query']}" if "pit" in one.request else str(one.number), []
            ).append(one)
    found: list[str] = []
    for parts in pages.values():
        both = []
        for answers in ([one.want for one in parts], [one.have.body for one in parts]):
            hits = [hit for one, answer in zip(parts, answers) for hit in _hits(one, answer)]
            both.append(sorted(hits, key=lambda hit: (hit["sort"], hit["_index"], hit.get("_id", ""))))
        lengths = [[len(answer["hits"]["hits"]) for answer in (one.want, one.have.body)] for one in parts]
        wrong = [f"pages of {lengths} hits"] if any(a != b for a, b in lengths) else []
        if orjson.dumps(both[0]) != orjson.dumps(both[1]):
            wrong += differences(*both)
        found += _told(wrong, parts[-1])
    assert found == []
    assert Counter(map(len, pages.values())) == {1: 203, 2: 2}


@pytest.mark.slow
def test_places_in_a_shard_rise_from_page_to_page(exchanges: list[Exchange]) -> None:
    places: dict[str, list[tuple[Json, ...]]] = {}
    for one in exchanges:
        if one.unordered and "pit" in one.request:
            seen = places.setdefault(f"{one.request['pit']['id']} {one.request['query']}", [])
            seen += [tuple(hit["sort"]) for hit in one.have.body["hits"]["hits"]]
    assert max(map(len, places.values())) > 1000  # more than a page
    for seen in places.values():
        assert all(a < b for a, b in zip(seen, seen[1:]))
