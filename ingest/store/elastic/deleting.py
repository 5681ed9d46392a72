"""Deleting a run from all indices, while somebody may be writing to it; cut off anywhere, a repeat goes on.

1. The run's record says that it is being deleted, and a generation above all that it has: loads are refused from here on.
2. All documents of the run go, up to that generation.
3. A tombstone stays in place of the record: a later run of this name begins above its generation.

Nobody can lock a server. Who was writing to the run reads its record once more after the last thing that was written. It was
read before stage 1: then stage 2 finds what was written. Else the writer sees it, and deletes by `sweep_dead` what it wrote:
its generation distinguishes it from the documents of a later run of this name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ingest.core.errors import StoreError
from ingest.core.fields import indices
from ingest.store.elastic.bulk import Sender
from ingest.store.elastic.connection import Connection, closed_sentence
from ingest.store.elastic.encoding import deletion
from ingest.store.elastic.names import PERIODIC, Names
from ingest.store.elastic.reading import is_closed, pages, settings_in
from ingest.store.elastic.record_documents import RUN, SOURCE, TOMBSTONE
from ingest.store.elastic.records import Records
from ingest.store.elastic.tombstones import bury, dead_generation, mark_deleting
from ingest.store.records import SourceRecord


def delete_run(connection: Connection, names: Names, sender: Sender, records: Records, run: str, *, force: bool) -> int:
    """Return how many documents of intervals a run had, once all that belongs to it is deleted.

    Its sources go first: cut off after that, the run is no longer complete. StoreError where somebody may be writing to it,
    unless it is to be deleted by `force`.
    """
    closed = [name for name, settings in settings_in(connection, names).items() if is_closed(settings)]
    if closed:  # before anything is deleted, or said to be
        raise StoreError(f"{connection.address.url}: {closed_sentence(closed[0])}")
    generation = mark_deleting(records, run, force=force)
    if generation is None:
        return 0
    mine = _up_to(run, generation)
    stages = [(names.one("runs"), {**mine, "filter": [*mine["filter"], {"term": {"record": SOURCE}}]})]
    stages += [(names.pattern(index), mine) for index in indices() if index != "runs"]
    stages.append((names.one("runs"), {**mine, "must_not": [*mine["must_not"], {"terms": {"record": [RUN, TOMBSTONE]}}]}))
    deleted = {index: swept(connection, sender, index, query) for index, query in stages}
    bury(records, run, generation)
    return deleted[names.all("intervals")]


def sweep_dead(
    connection: Connection, names: Names, sender: Sender, records: Records, run: str, sources: Iterable[SourceRecord] = ()
) -> None:
    """Delete documents that a writer wrote to a run after it was deleted; `sources` are those of the writer."""
    last = dead_generation(records, run)
    if last is None:  # there is no tombstone: somebody has deleted the record by hand
        last = max((source.generation for source in sources), default=0)
    mine = _up_to(run, last)
    swept(connection, sender, names.one("runs"), {**mine, "filter": [*mine["filter"], {"term": {"record": SOURCE}}]})
    for index in PERIODIC:
        swept(connection, sender, names.all(index), mine)


def sweep_index(connection: Connection, names: Names, sender: Sender, index: str, run: str) -> None:
    """Delete the documents of a deleted run in an index."""
    swept(connection, sender, names.pattern(index), {"filter": [{"term": {"run.id": run}}]})


def _up_to(run: str, generation: int) -> dict[str, Any]:
    """Return the query for all documents of a run up to a generation, and those without one."""
    return {"filter": [{"term": {"run.id": run}}], "must_not": [{"range": {"generation": {"gt": generation}}}]}


def swept(connection: Connection, sender: Sender, index: str, query: dict[str, Any]) -> int:
    """Return how many documents a query finds, once they are deleted."""
    connection.refresh(index)
    hit_pages = pages(connection, index, {"bool": query}, source=False)
    deleted = sender.put(deletion(hit["_index"], hit["_id"]) for page in hit_pages for hit in page)
    sender.flush()
    connection.refresh(index)
    return deleted
