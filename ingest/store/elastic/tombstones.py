"""Tombstones: documents in place of the records of deleted runs, with the generations of documents that belonged to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingest.store.coarsening import unfinished
from ingest.store.elastic.record_documents import TOMBSTONE, tombstone
from ingest.store.elastic.records import Records, lives, lowest_generation
from ingest.store.records import DELETING, check_deletable


def mark_deleting(records: Records, run: str, *, force: bool) -> int | None:
    """Note that a run is being deleted, which keeps loads away; return a generation above all that it has.

    None where it is deleted already. StoreError where somebody may be writing to it, unless that is to be forced.
    """
    record = next((known for known in records.runs() if known.run == run), None)
    if record is not None and not force:
        check_deletable(record, unfinished(record))
    above = max((source.generation for source in records.sources(run)), default=0) + 1
    marked: int | None = None

    def change(there: Mapping[str, Any] | None) -> dict[str, Any] | None:
        nonlocal marked
        marked = None
        if there is None or there["record"] == TOMBSTONE:
            return None
        marked = max(above, int(there.get("generation", 0)), int(there["run"].get("generation", 0)) + 1)
        if not lives(there):
            marked = int(there["generation"])
            return None
        return {**there, "generation": marked, "run": {**there["run"], "state": DELETING}}

    records.changed(run, change)
    return marked


def bury(records: Records, run: str, generation: int) -> None:
    """Leave a tombstone in place of the record of a run that was being deleted."""

    def change(there: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return None if there is None or lives(there) or there["record"] == TOMBSTONE else tombstone(run, generation)

    records.changed(run, change)


def entomb(records: Records, run: str, generation: int) -> None:
    """Leave a tombstone for a run that has no record: a later run of its name begins above its generations."""

    def change(there: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if there is not None and (there["record"] != TOMBSTONE or int(there["generation"]) >= generation):
            return None
        return tombstone(run, generation)

    records.changed(run, change)


def dead_generation(records: Records, run: str) -> int | None:
    """Return the last generation of documents that a deleted run of this name may have left; None if none was deleted."""
    there = records.get(run)
    if there is None:
        return None
    document = there["_source"]
    last = lowest_generation(document) - 1 if lives(document) else int(document["generation"])
    return last if last > 0 else None
