"""Findings in Elasticsearch: a document for the story of a run and one for each finding, in an index without a period.

A server that was set up before there were findings has no place for them: none are written, and `explain` computes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ingest.query.findings.kept import KeptFinding
from ingest.store.elastic.bulk import put_all_at_once
from ingest.store.elastic.connection import Connection
from ingest.store.elastic.encoding import MS, deletion, writing_line
from ingest.store.elastic.names import Names, digest
from ingest.store.elastic.reading import MOST_HITS, documents, search

FINDING = ("rank", "stamp", "kind", "labels", "start_ns", "end_ns", "share", "missing_share", "content")


def keep_findings(connection: Connection, names: Names, run: str, kept: Sequence[KeptFinding]) -> None:
    """Write all findings of a run, and delete those that are there beside them: a search and a bulk request.

    A repeat after a failure converges: documents are written by id. StoreError where the server refuses one.
    """
    index = names.one("findings")
    body = {"size": MOST_HITS, "query": {"bool": {"filter": [{"term": {"run.id": run}}]}}, "_source": False}
    there = {hit["_id"] for hit in search(connection, index, body)["hits"]["hits"]}
    lines = [finding_line(document, names) for document in kept]
    lines += [deletion(index, id_) for id_ in sorted(there - {_id(document) for document in kept})]
    put_all_at_once(connection, lines, "a finding")


def finding_line(document: KeptFinding, names: Names) -> bytes:
    """Return a finding as both lines of a bulk request."""
    body = {
        "@timestamp": document.start_ns // MS,
        "run": {"id": document.run},
        "finding": {
            **{name: getattr(document, name) for name in ("rank", "stamp", "kind")},
            "labels": dict(document.labels),
            "who": document.who,
            "start_ns": document.start_ns,
            "end_ns": document.end_ns,
            "end": document.end_ns // MS,
            **{name: getattr(document, name) for name in ("share", "missing_share", "content")},
        },
        **({"text": document.text} if document.text else {}),  # a table of texts has no row without one
    }
    return writing_line(names.one("findings"), _id(document), body)


def findings_of(connection: Connection, names: Names, runs: Iterable[str]) -> list[KeptFinding]:
    """Return the findings of runs, by run and rank."""
    stored = documents(connection, names.one("findings"), {"terms": {"run.id": sorted(runs)}})
    kept = [
        KeptFinding(run=one["run"]["id"], text=one.get("text", ""), **{name: one["finding"][name] for name in FINDING})
        for one in stored
    ]
    return sorted(kept, key=lambda document: (document.run, document.rank))


def _id(document: KeptFinding) -> str:
    return digest(["finding", document.run, document.rank])
