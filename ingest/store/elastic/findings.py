"""Findings in Elasticsearch: a document for the story of a run and one for each finding, in an index without a period.

A server that was set up before there were findings has no place for them: none are written, and `explain` computes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from ingest.core.errors import StoreError
from ingest.query.findings.kept import KeptFinding
from ingest.store.elastic.bulk import put_at_once
from ingest.store.elastic.connection import Connection
from ingest.store.elastic.encoding import MS, chunked, deletion
from ingest.store.elastic.names import Names, digest
from ingest.store.elastic.reading import MOST_HITS, documents, search


def keep_findings(connection: Connection, names: Names, run: str, kept: Sequence[KeptFinding]) -> None:
    """Write all findings of a run, and delete those that are there beside them: a search and a bulk request.

    A repeat after a failure converges: documents are written by id. StoreError where the server refuses one.
    """
    index = names.one("findings")
    body = {"size": MOST_HITS, "query": {"bool": {"filter": [{"term": {"run.id": run}}]}}, "_source": False}
    there = {hit["_id"] for hit in search(connection, index, body)["hits"]["hits"]}
    lines = [finding_line(document, names) for document in kept]
    lines += [deletion(index, id_) for id_ in sorted(there - {_id(document) for document in kept})]
    for chunk in chunked(lines):
        refused = [outcome["error"] for outcome in put_at_once(connection, chunk, "a finding") if "error" in outcome]
        if refused:
            raise StoreError(f"{connection.address.url}: a finding is refused: {refused[0].get('reason')}")


def finding_line(document: KeptFinding, names: Names) -> bytes:
    """Return a finding as both lines of a bulk request."""
    action = {"index": {"_index": names.one("findings"), "_id": _id(document)}}
    return orjson.dumps(action) + b"\n" + orjson.dumps(_document(document)) + b"\n"


def findings_of(connection: Connection, names: Names, runs: Iterable[str]) -> list[KeptFinding]:
    """Return the findings of runs, by run and rank."""
    stored = documents(connection, names.one("findings"), {"terms": {"run.id": sorted(runs)}})
    return sorted((_kept(document) for document in stored), key=lambda document: (document.run, document.rank))


def _id(document: KeptFinding) -> str:
    return digest(["finding", document.run, document.rank])


def _document(document: KeptFinding) -> dict[str, Any]:
    return {
        "@timestamp": document.start_ns // MS,
        "run": {"id": document.run},
        "finding": {
            "rank": document.rank,
            "stamp": document.stamp,
            "kind": document.kind,
            "labels": dict(document.labels),
            "who": document.who,
            "start_ns": document.start_ns,
            "end_ns": document.end_ns,
            "end": document.end_ns // MS,
            "share": document.share,
            "missing_share": document.missing_share,
            "content": document.content,
        },
        **({"text": document.text} if document.text else {}),  # a table of texts has no row without one
    }


def _kept(document: Mapping[str, Any]) -> KeptFinding:
    finding = document["finding"]
    return KeptFinding(
        run=document["run"]["id"],
        rank=int(finding["rank"]),
        stamp=finding["stamp"],
        kind=finding["kind"],
        labels=finding["labels"],
        start_ns=int(finding["start_ns"]),
        end_ns=int(finding["end_ns"]),
        text=document.get("text", ""),
        share=float(finding["share"]),
        missing_share=float(finding["missing_share"]),
        content=finding["content"],
    )
