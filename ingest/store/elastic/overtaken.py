"""Two loads of one source at the same time, the file having grown in between: neither may leave the older content as complete.

Documents bear the same ids in every generation, so a slow load of the older content may overwrite what a quicker one of the
newer has written. The slow one sees at its end that it was overtaken, and opens the source again. The quick one counts at its
end what is there in its generation. Either way the next load reads the source once more.
"""

from __future__ import annotations

from collections.abc import Iterable

from ingest.core.errors import StoreError
from ingest.store.elastic.connection import Connection
from ingest.store.elastic.filters import Filters
from ingest.store.elastic.names import Names
from ingest.store.elastic.record_documents import SourceState
from ingest.store.elastic.records import Records
from ingest.store.elastic.tallies import counted
from ingest.store.records import SourceRecord, not_there


def check_not_overtaken(records: Records, run: str, finished: Iterable[SourceRecord]) -> None:
    """Raise StoreError where another load has read a source again since this one began; the source counts as loading then."""
    late = reopen_overtaken(records, run, finished)
    if late:
        raise StoreError(_sentence(late[0]))


def reopen_overtaken(records: Records, run: str, written: Iterable[SourceRecord]) -> list[SourceRecord]:
    """Return the sources that another load has begun again since they were written; they count as loading from now on."""
    there = {record.source: record.generation for record in records.sources(run)}
    late = [source for source in written if there.get(source.source, 0) > source.generation]
    for source in late:
        records.reopen(run, source.source)
    return late


def check_all_there(connection: Connection, names: Names, source: SourceRecord, state: SourceState) -> None:
    """Raise StoreError where the server does not hold all that was written of a source that was read again.

    A slower load may have overwritten documents. Asked before what earlier generations left is deleted.
    """
    filters: Filters = [
        {"term": {"run.id": source.run}},
        {"term": {"source.id": source.source}},
        {"term": {"generation": source.generation}},
    ]
    documents, samples = counted(connection, names.all("intervals"), filters)
    if documents < state.written - state.refused:
        raise StoreError(_sentence(source))
    if documents == state.written and samples != state.samples:
        raise not_there(source, state.samples, samples)


def _sentence(source: SourceRecord) -> str:
    return f"{source.path} was loaded by another program at the same time: run the same load again"
