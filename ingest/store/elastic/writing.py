"""Writing to a run that may be deleted meanwhile: its record is read once more after the last thing that was written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ingest.core.errors import StoreError
from ingest.store.elastic.deleting import sweep_dead, sweep_index
from ingest.store.elastic.overtaken import reopen_overtaken
from ingest.store.records import RunGoneError, SourceRecord

if TYPE_CHECKING:
    from ingest.store.elastic.store import ElasticStore

EVERY_GENERATION = 1 << 40


@contextmanager
def writing(store: ElasticStore, run: str, sources: Sequence[SourceRecord] = ()) -> Iterator[None]:
    """Hold the writes to a run, of some of its sources: RunGoneError where the run was deleted before their end.

    All that they wrote is deleted then.
    """
    generation = min((source.generation for source in sources), default=EVERY_GENERATION)
    with leaving_nothing(store, run, sources):
        yield
        store.records.check_alive(run, generation)


@contextmanager
def leaving_nothing(store: ElasticStore, run: str, sources: Sequence[SourceRecord] = ()) -> Iterator[None]:
    """Hold writes that find out for themselves whether the run was deleted: all that they wrote is deleted then."""
    generation = min((source.generation for source in sources), default=EVERY_GENERATION)
    try:
        yield
    except StoreError as error:
        if not isinstance(error, RunGoneError) and _is_alive(store, run, generation):
            raise
        with suppress(StoreError):  # the first failure is known
            store.flush()
        store.stop_senders()
        reopen_overtaken(store.records, run, sources)
        sweep_dead(store.connection, store.names, store.sender, store.records, run, sources)
        store.stop_senders()
        raise RunGoneError(run) from None


@contextmanager
def keeping(store: ElasticStore, index: str, run: str, *, known: bool = False) -> Iterator[None]:
    """Hold the writing of marks, episodes or findings of a run: RunGoneError where it was deleted, and they are deleted, too.

    A run that was just read is `known`, and is not looked for at the beginning.
    """
    if not known:
        store.records.check_alive(run, EVERY_GENERATION)
    yield
    try:
        store.records.check_alive(run, EVERY_GENERATION)
    except RunGoneError:
        sweep_index(store.connection, store.names, store.sender, index, run)
        store.stop_senders()
        raise


def _is_alive(store: ElasticStore, run: str, generation: int) -> bool:
    """Return whether a run is still the one that sources of a generation were begun in; true where nobody answers."""
    try:
        store.records.check_alive(run, generation)
    except RunGoneError:
        return False
    except StoreError:
        return True
    return True
