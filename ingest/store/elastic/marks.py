"""Marks in Elasticsearch: one document each under an id of its own, in an index without a period; there are few."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ingest.core.errors import StoreError, counted
from ingest.core.fields import elasticsearch_mappings
from ingest.core.marks import in_time_order, noted
from ingest.store.elastic.bulk import put_at_once
from ingest.store.elastic.connection import Connection, Refusal
from ingest.store.elastic.encoding import MS, chunked, writing_line
from ingest.store.elastic.names import Names, digest
from ingest.store.elastic.reading import documents

UNKNOWN_FIELD = "strict_dynamic_mapping_exception"
NOT_FOUND = 404


def keep_marks(connection: Connection, names: Names, run: str, marks: Sequence[Mapping[str, Any]]) -> None:
    """Write marks of a run under ids that time and text give: the same mark twice is one, with the last end.

    StoreError where the server refuses one, or was set up before marks had an end.
    """
    for chunk in chunked([mark_line(run, mark, names) for mark in marks]):
        refused = [outcome["error"] for outcome in put_at_once(connection, chunk, "a mark") if "error" in outcome]
        if not refused:
            continue
        url = connection.address.url
        if refused[0].get("type") == UNKNOWN_FIELD:
            raise StoreError(f"{url} was set up before marks had an end: tailboard setup --elasticsearch {url} --overwrite")
        raise StoreError(f"{url}: {counted(len(refused), 'mark')} refused, the first: {refused[0].get('reason')}")


def marks_of(connection: Connection, names: Names, runs: Iterable[str]) -> list[Mapping[str, Any]]:
    """Return the marks of runs in time order: run, at_ns, text, and end_ns where there is one."""
    stored = documents(connection, names.one("marks"), {"terms": {"run.id": sorted(runs)}})
    marks = (noted(one["run"]["id"], one["mark"]["at_ns"], one["text"], one["mark"].get("end_ns")) for one in stored)
    return sorted(marks, key=in_time_order)


def mark_line(run: str, mark: Mapping[str, Any], names: Names) -> bytes:
    """Return a mark as both lines of a bulk request."""
    at_ns, text, end_ns = int(mark["at_ns"]), str(mark["text"]), mark.get("end_ns")
    until = {} if end_ns is None else {"end_ns": int(end_ns), "duration_ns": int(end_ns) - at_ns}
    body = {"run": {"id": run}, "@timestamp": at_ns // MS, "mark": {"at_ns": at_ns, **until}, "text": text}
    return writing_line(names.one("marks"), digest([run, at_ns, text]), body)


def widen_index(connection: Connection, names: Names, index: str) -> None:
    """Give indices that are there the fields that were added since: a template reaches only new ones."""
    properties = {"properties": elasticsearch_mappings(index)["properties"]}
    name = names.one(index) if index == "marks" else names.all(index)
    try:
        connection.call("PUT", f"/{name}/_mapping", properties)
    except Refusal as error:
        if error.status != NOT_FOUND:
            raise StoreError(f"the server refuses the new fields of {name}: {error}") from None
