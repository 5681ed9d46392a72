"""Reading documents back: one search where it is enough, else pages of a point in time; never part of an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ingest.core.errors import StoreError
from ingest.store.elastic.connection import Connection, Refusal

MOST_HITS = 10_000
PAGE = 1000
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
    if answer.get("timed_out") or answer.get("_shards", {}).get("failed"):
        raise StoreError(f"{connection.address.url} answers with part of the data only: try again")
    return answer


def documents(
    connection: Connection, index: str, query: Query, includes: Sequence[str] = (), excludes: Sequence[str] = ()
) -> list[Mapping[str, Any]]:
    """Return all documents (their `_source`) that a query finds, for kinds of documents of which there are few."""
    source: Any = {"includes": list(includes), "excludes": list(excludes)} if includes or excludes else True
    body = {"size": MOST_HITS, "query": query, "_source": source, "track_total_hits": MOST_HITS + 1}
    answer = search(connection, index, body)
    hits = answer["hits"]
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
    **words: Any,
) -> Iterator[list[Mapping[str, Any]]]:
    """Yield all hits of a query in pages, all of one point in time: one search where a page is enough for them."""
    ordered = [entry for entry in sort if entry != "_shard_doc"]
    first = {"size": size, "query": query, "_source": source, "sort": ordered or ["_doc"], "track_total_hits": False, **words}
    hits = search(connection, index, first)["hits"]["hits"]
    if len(hits) < size:
        if hits:
            yield hits
        return
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
