"""Deleting a run from every index that has documents of it; cut off anywhere, a repeat goes on."""

from __future__ import annotations

from typing import Any

from ingest.fields import indices
from ingest.store.elastic.bulk import Sender
from ingest.store.elastic.connection import Connection
from ingest.store.elastic.encoding import chunked, deletion
from ingest.store.elastic.names import Names
from ingest.store.elastic.reading import pages
from ingest.store.elastic.record_documents import SOURCE


def delete_run(connection: Connection, names: Names, sender: Sender, run: str) -> int:
    """Return how many documents of intervals a run had, once all that belongs to it is deleted.

    Its sources go first: cut off after that, the run is no longer complete. Its record goes last: until then it has a name.
    """
    mine: dict[str, Any] = {"term": {"run.id": run}}
    records, intervals = names.one("runs"), names.all("intervals")
    stages = [(records, {"bool": {"filter": [mine, {"term": {"record": SOURCE}}]}})]
    stages += [(names.pattern(index), mine) for index in indices() if index != "runs"]
    deleted = 0
    for index, query in (*stages, (records, mine)):
        connection.call("POST", f"/{index}/_refresh", ignore_unavailable=True)
        found = pages(connection, index, query, source=False)
        for chunk in chunked(deletion(hit["_index"], hit["_id"]) for page in found for hit in page):
            sender.send(run, chunk)
            deleted += chunk.documents if index == intervals else 0
        sender.flush()
        connection.call("POST", f"/{index}/_refresh", ignore_unavailable=True)
    return deleted
