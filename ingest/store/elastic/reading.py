"""Reading documents back: one search where it is enough, else pages of a point in time; never part of an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import orjson

from ingest.core.errors import StoreError
from ingest.store.elastic.connection import Connection, Refusal

MOST_HITS = 10_000
PAGE = 1000
PAGE_BYTES = 32 << 20  # of documents, in an answer to a question: what becomes of them in memory is some five times that
KEEP_ALIVE = "5m"

Query = Mapping[str, Any]


def search(connection: Connection, index: str | None, body: Mapping[str, Any], **params: Any) -> Mapping[str, Any]:
    """Return the answer of a search; a shard that fails makes it fail. StoreError for what the server refuses."""
    path = f"/{index}/_search" if index else "/_search"
    if index:
        params = {"ignore_unavailable": True, **params}
    try:
        answer: Mapping[str, Any] = connection.call("POST", path, body, allow_partial_search_results=False, **params)
    except Refusal as error:
        raise StoreError(f"{connection.address.url} refuses a search: {error}") from None
    _check_whole(connection, answer)
    return answer


def searches(connection: Connection, index: str, bodies: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the answers of several searches, asked in one request; StoreError where one is refused or fails."""
    head = orjson.dumps({"index": index, "ignore_unavailable": True, "allow_partial_search_results": False})
    text = b"".join(head + b"\n" + orjson.dumps(body) + b"\n" for body in bodies)
    try:
        answers: list[Mapping[str, Any]] = connection.call("POST", "/_msearch", text)["responses"]
    except Refusal as error:
        raise StoreError(f"{connection.address.url} refuses a search: {error}") from None
    for answer in answers:
        if "error" in answer:
            reason = answer["error"].get("reason")
            raise StoreError(f"{connection.address.url} refuses a search: {answer.get('status')} {reason}")
        _check_whole(connection, answer)
    return answers


def _check_whole(connection: Connection, answer: Mapping[str, Any]) -> None:
    if answer.get("timed_out") or answer.get("_shards", {}).get("failed"):
        raise StoreError(f"{connection.address.url} answers with part of the data only: try again")


def every(query: Query, source: Any = ()) -> dict[str, Any]:
    """Return the search for all documents that a query finds, for kinds of documents of which there are few."""
    return {"size": MOST_HITS, "query": query, "_source": source or True, "track_total_hits": MOST_HITS + 1}


def documents(
    connection: Connection,
    index: str,
    query: Query,
    found: Mapping[str, Any] | None = None,
    *,
    includes: Sequence[str] = (),
    excludes: Sequence[str] = (),
) -> list[Mapping[str, Any]]:
    """Return all documents (their `_source`) that a query finds, for kinds of documents of which there are few.

    `found` is the answer to the search of `every`, where that was asked already.
    """
    source: Any = {"includes": list(includes), "excludes": list(excludes)} if includes or excludes else True
    hits = (found or search(connection, index, every(query, source)))["hits"]
    if hits["total"]["value"] <= MOST_HITS:
        return [hit["_source"] for hit in hits["hits"]]
    return [hit["_source"] for page in pages(connection, index, query, source) for hit in page]


def guarded_hits(connection: Connection, index: str, query: Query) -> list[Mapping[str, Any]]:
    """Return all hits of a query for records, each with the numbers that guard it against others."""
    body = {"size": MOST_HITS, "query": query, "track_total_hits": MOST_HITS + 1, "seq_no_primary_term": True}
    hits = search(connection, index, body)["hits"]
    if hits["total"]["value"] <= MOST_HITS:
        return list(hits["hits"])
    return [hit for page in pages(connection, index, query, source=True, seq_no_primary_term=True) for hit in page]


class Expected(NamedTuple):
    """How many documents a query will find, and about how many bytes they have."""

    documents: int
    bytes: int

    @property
    def page(self) -> int:
        """Return how many of them to read at once; the server gives 10,000 at most."""
        return min(MOST_HITS, max(PAGE, PAGE_BYTES * self.documents // max(self.bytes, 1)))


@contextmanager
def point_in_time(connection: Connection, index: str) -> Iterator[str | None]:
    """Give the id of a point in time over indices, or None if there is no such index."""
    try:
        opened = connection.call("POST", f"/{index}/_pit", keep_alive=KEEP_ALIVE, ignore_unavailable=True)
    except Refusal as error:
        if error.status == 404:
            yield None
            return
        raise StoreError(f"{connection.address.url} refuses a point in time: {error}") from None
    name = opened["id"]
    try:
        yield name
    finally:
        with suppress(Exception):  # it ends by itself, and what is being raised already matters more
            connection.once("DELETE", "/_pit", {"id": name})


def pages(
    connection: Connection,
    index: str,
    query: Query,
    source: Any,
    sort: Sequence[Any] = ("_shard_doc",),
    size: int = PAGE,
    expected: Expected | None = None,
    **words: Any,
) -> Iterator[list[Mapping[str, Any]]]:
    """Yield all hits of a query in pages, all of one point in time: one search where a page is enough for them.

    Pages are of `size` hits; where it is said what is `expected`, of as many as fit an answer.
    """
    if expected is not None:
        size = expected.page
        if expected.documents > size:
            yield from _paged(connection, index, query, source, sort, size, **words)
            return
    ordered = [entry for entry in sort if entry != "_shard_doc"]
    first = {"size": size, "query": query, "_source": source, "sort": ordered or ["_doc"], "track_total_hits": False, **words}
    hits = search(connection, index, first)["hits"]["hits"]
    if len(hits) < size:
        if hits:
            yield hits
        return
    yield from _paged(connection, index, query, source, sort, size, **words)


def _paged(
    connection: Connection, index: str, query: Query, source: Any, sort: Sequence[Any], size: int, **words: Any
) -> Iterator[list[Mapping[str, Any]]]:
    with point_in_time(connection, index) as opened:
        pit, after = opened, None
        while pit is not None:
            body: dict[str, Any] = {
                "size": size,
                "query": query,
                "_source": source,
                "sort": list(sort),
                "track_total_hits": False,
                "pit": {"id": pit, "keep_alive": KEEP_ALIVE},
                **words,
            }
            if after is not None:
                body["search_after"] = after
            answer = search(connection, None, body)
            hits, pit = answer["hits"]["hits"], answer.get("pit_id", pit)
            if hits:
                yield hits
            if len(hits) < size:
                return
            after = hits[-1]["sort"]
