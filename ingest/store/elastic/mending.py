"""Mending a site: faulty documents are deleted, rollups made again, sources noted to be read again, one run after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.store.elastic.breaths import settle_breaths
from ingest.store.elastic.deleting import swept
from ingest.store.elastic.names import PERIODIC
from ingest.store.elastic.reading import search
from ingest.store.elastic.rollups import RollupWriter
from ingest.store.elastic.sweeping import Sweeper
from ingest.store.elastic.tombstones import entomb
from ingest.store.elastic.touched import Touched
from ingest.store.records import RunRecord

if TYPE_CHECKING:
    from ingest.store.elastic.store import ElasticStore
    from ingest.store.elastic.verify import ElasticVerifier


def mend(store: ElasticStore, verifier: ElasticVerifier) -> None:
    """Repair the faults. RunGoneError where a run is deleted meanwhile, StoreError where the server refuses."""
    wrong, verification = verifier.wrong, verifier.found
    there = {record.run: record for record in store.runs()}
    ghosts = {run: _highest(store, run) for _, run, _ in wrong.queries if run and run not in verifier.runs and run not in there}
    for (index, run, _), query in wrong.queries.items():
        if run in verifier.runs or run not in there:  # not a run that a load has begun under this name since
            swept(store.connection, store.sender, index, {"filter": [query]})
    for run, generation in ghosts.items():
        entomb(store.records, run, generation)
    sweeper = Sweeper(store.connection, store.names, store.sender)
    for source in wrong.swept.values():
        sweeper.sweep(source)
    if wrong.swept:
        settle_breaths(store.connection, store.names, store.sender, list(wrong.swept.values()))
    for (run, name), source in wrong.sources.items():
        store.records.read_again(run, name, source.generation)
        verification.again[name] = source.path
    for run in sorted(wrong.steps):
        sweeper.sweep_steps(there[run])
    for run in sorted(wrong.rolled | wrong.steps | {run for run, _ in wrong.sources}):
        if run in there:
            with store.writing(run):
                _roll(store, there[run], sweeper)
    verification.mended = True


def _highest(store: ElasticStore, run: str) -> int:
    """Return the highest generation that documents of a run have.

    A server remembers versions of deleted documents for a minute: rollups of a later run of this name must be above them.
    """
    indices = ",".join(store.names.all(index) for index in PERIODIC)
    body = {"size": 0, "query": {"term": {"run.id": run}}, "aggs": {"highest": {"max": {"field": "generation"}}}}
    aggregations = search(store.connection, indices, body).get("aggregations")
    return int(aggregations["highest"]["value"] or 0) if aggregations else 0


def _roll(store: ElasticStore, record: RunRecord, sweeper: Sweeper) -> None:
    """Make all rollups of a run from its documents, in place of those that are there; leftovers are deleted."""
    store.connection.call("POST", f"/{store.names.all('intervals')}/_refresh", ignore_unavailable=True)
    touched = Touched()
    touched.add(sweeper.stored_windows(record))
    if not touched.windows:
        swept(store.connection, store.sender, store.names.all("rollups"), {"filter": [{"term": {"run.id": record.run}}]})
    stored, accounts = store.records.series([record.run])
    parts = (store.connection, store.names, store.sender, store.records)
    missing = store.lacking(record, accounts)
    RollupWriter(*parts, record, touched, lowered=True, anew=True, missing=missing).write(stored)
