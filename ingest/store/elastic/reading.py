"""Reading documents back: one search where it is enough, else pages of a point in time; never part of an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from ingest.core.errors import StoreError
from ingest.core.fields import indices
from ingest.http import Answer
from ingest.store.elastic.columns import Columns, Documents, columns_of
from ingest.store.elastic.connection import CLOSED, Connection, Decode, Refusal, closed_in
from ingest.store.elastic.encoding import deletion
from ingest.store.elastic.names import Names

MOST_HITS = 10_000
PAGE = 1000
PAGE_BYTES = 36 << 20  # of an answer with histograms: what becomes of them in memory is some four times that
KEEP_ALIVE = "5m"
CLOSED_SETTING = "index.verified_before_close"

Query = Mapping[str, Any]
Content = TypeVar("Content")


class Page(NamedTuple, Generic[Content]):
    """A page of hits: what was made of them, how many they are, what the last was sorted by, where the next page is asked for."""

    content: Content
    hits: int
    after: Any
    point: str | None
    size: int = 0


Ask = Callable[[Connection, str | None, Mapping[str, Any]], Page[Content]]


def search(connection: Connection, index: str | None, body: Mapping[str, Any], **params: Any) -> Mapping[str, Any]:
    """Return the answer of a search; a shard that fails makes it fail. StoreError for what the server refuses."""
    answer: Mapping[str, Any] = _asked(connection, index, body, Answer.decoded, **params)
    _check_whole(connection, answer)
    return answer


def _in_columns(connection: Connection, index: str | None, body: Mapping[str, Any]) -> Page[Columns]:
    """Return a page of a search as `search` does, its documents in columns."""
    columns: Columns = _asked(connection, index, body, columns_of)
    _check_whole(connection, columns.answer)
    return Page(columns, len(columns.bare), columns.after, columns.answer.get("pit_id"), columns.size)


def _as_objects(connection: Connection, index: str | None, body: Mapping[str, Any]) -> Page[Sequence[Mapping[str, Any]]]:
    answer = search(connection, index, body)
    hits = answer["hits"]["hits"]
    return Page(hits, len(hits), hits[-1]["sort"] if hits else (), answer.get("pit_id"))


def _asked(connection: Connection, index: str | None, body: Mapping[str, Any], decode: Decode, **params: Any) -> Any:
    path = f"/{index}/_search" if index else "/_search"
    if index:
        params = {**_whole_of(index), **params}
    try:
        return connection.call("POST", path, body, decode=decode, allow_partial_search_results=False, **params)
    except Refusal as error:
        raise StoreError(f"{connection.address.url} refuses a search: {error}") from None


def settings_in(connection: Connection, names: Names) -> dict[str, Mapping[str, Any]]:
    """Return the settings of all indices of a site, closed ones, too, by name."""
    pattern = ",".join(names.pattern(index) for index in indices())
    path = f"/{pattern}/_settings"
    answer = connection.call("GET", path, ignore_unavailable=True, expand_wildcards="open,closed", flat_settings=True)
    return {name: entry.get("settings", {}) for name, entry in sorted(answer.items())}


def is_closed(settings: Mapping[str, Any]) -> bool:
    """Return whether an index is closed, by its settings."""
    return str(settings.get(CLOSED_SETTING)) == "true"


def _whole_of(index: str) -> dict[str, Any]:
    """Return the parameters with which a search of indices has all of them: a closed one is refused, not left out in silence.

    An index of its own may not be there yet.
    """
    return {"expand_wildcards": "open,closed"} if "*" in index else {"ignore_unavailable": True}


def searches(connection: Connection, index: str, bodies: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the answers of several searches, asked in one request; StoreError where one is refused or fails."""
    head = orjson.dumps({"index": index, **_whole_of(index), "allow_partial_search_results": False})
    text = b"".join(head + b"\n" + orjson.dumps(body) + b"\n" for body in bodies)
    try:
        answers: list[Mapping[str, Any]] = connection.call("POST", "/_msearch", text)["responses"]
    except Refusal as error:
        raise StoreError(f"{connection.address.url} refuses a search: {error}") from None
    for answer in answers:
        if "error" in answer:
            if answer["error"].get("type") == CLOSED:
                raise StoreError(closed_in(answer["error"]))
            reason = answer["error"].get("reason")
            raise StoreError(f"{connection.address.url} refuses a search: {answer.get('status')} {reason}")
        _check_whole(connection, answer)
    return answers


def _check_whole(connection: Connection, answer: Mapping[str, Any]) -> None:
    if answer.get("timed_out") or answer.get("_shards", {}).get("failed"):
        raise StoreError(f"{connection.address.url} answers with part of the data only: try again")


def edges(connection: Connection, index: str, query: Query) -> tuple[int, int] | None:
    """Return the starts in ms of the first and the last document that a query finds; None where there is none."""
    aggs = {"first": {"min": {"field": "@timestamp"}}, "last": {"max": {"field": "@timestamp"}}}
    found = search(connection, index, {"size": 0, "query": query, "aggs": aggs}).get("aggregations")
    if not found or found["first"]["value"] is None:
        return None
    return int(found["first"]["value"]), int(found["last"]["value"])


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
    """How many documents a query finds, at most, and how many bytes they have."""

    documents: int
    bytes: int

    @property
    def page(self) -> int:
        """Return how many of them to read at once; the server gives 10,000 at most."""
        return _page_of(self.bytes / max(self.documents, 1))


def _page_of(size: float) -> int:
    """Return how many documents of a size in bytes are read at once."""
    return max(1, min(MOST_HITS, int(PAGE_BYTES // max(size, 1))))


@contextmanager
def point_in_time(connection: Connection, index: str) -> Iterator[str | None]:
    """Give the id of a point in time over indices, or None if there is no such index."""
    try:
        opened = connection.call("POST", f"/{index}/_pit", keep_alive=KEEP_ALIVE, **_whole_of(index))
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
) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yield all hits of a query in pages of `size`, all of one point in time: one search where a page is enough for them."""
    body = {"query": query, "_source": source, "track_total_hits": False, **words}
    yield from _pages(connection, index, body, sort, size, _as_objects, alone=True)


def deletions(connection: Connection, index: str, filters: Sequence[Query]) -> Iterator[bytes]:
    """Yield the bulk lines that delete all documents that meet the filters."""
    for page in pages(connection, index, {"bool": {"filter": list(filters)}}, source=False):
        yield from (deletion(hit["_index"], hit["_id"]) for hit in page)


def columns(
    connection: Connection,
    index: str,
    query: Query,
    source: Sequence[str],
    sort: Sequence[Any] = ("_shard_doc",),
    expected: Expected | None = None,
) -> Iterator[Documents]:
    """Yield all documents of a query in columns, some at a time, in pages as `pages` does.

    A page has as many as fit into PAGE_BYTES, by what is `expected` at first, then by those that came before.
    """
    body = {"query": query, "_source": list(source), "track_total_hits": False}
    size = PAGE if expected is None else expected.page
    alone = expected is None or expected.documents < size
    for page in _pages(connection, index, body, sort, size, _in_columns, alone=alone):
        yield from page.documents()


def _pages(
    connection: Connection,
    index: str,
    body: Mapping[str, Any],
    sort: Sequence[Any],
    size: int,
    ask: Ask[Content],
    *,
    alone: bool,
) -> Iterator[Content]:
    """Yield the hits of a search in pages; `alone` tries first whether one search is enough."""
    if alone:
        ordered = [entry for entry in sort if entry != "_shard_doc"]
        page = ask(connection, index, {**body, "size": size, "sort": ordered or ["_doc"]})
        if page.hits < size:
            if page.hits:
                yield page.content
            return
        size = _next_size(page, size)
    with point_in_time(connection, index) as opened:
        pit: str | None = opened
        after: dict[str, Any] = {}
        while pit is not None:
            at = {"size": size, "sort": list(sort), "pit": {"id": pit, "keep_alive": KEEP_ALIVE}}
            page = ask(connection, None, {**body, **at, **after})
            pit = page.point or pit
            if page.hits:
                yield page.content
            if page.hits < size:
                return
            after, size = {"search_after": page.after}, _next_size(page, size)


def _next_size(page: Page[Any], size: int) -> int:
    """Return how many documents the next page is to have; those of Python objects, whose size is not known, as many always."""
    return _page_of(page.size / page.hits) if page.size else size
