"""Sending dead letters again: documents that a server has refused, after the cause was corrected.

    {"status":400,"reason":"...","action":{"index":{"_index":"...","_id":"..."}},"document":{"@timestamp":...}}

A document of an older generation than its source has now is obsolete: the source was read again since. So is one of which run
or source were deleted. What is taken gets its rollups, and a source of which nothing is refused any more is complete.
"""  # a sample of the lines

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from ingest.core.errors import InputError, counted
from ingest.core.series import OFFSET
from ingest.store.elastic.bulk import Delivery, Sender
from ingest.store.elastic.encoding import MS
from ingest.store.elastic.rollups import RollupWriter
from ingest.store.elastic.touched import Touched, host_key_in
from ingest.store.records import record_named

if TYPE_CHECKING:
    from ingest.store.elastic.store import ElasticStore

Source = tuple[str, str]


@dataclass(slots=True)
class ReplayAccount:
    """Counts of dead letters: sent = taken + refused; obsolete ones were not sent; `runs` are sentences on completed runs."""

    sent: int = 0
    taken: int = 0
    refused: int = 0
    obsolete: int = 0
    reason: str = ""
    runs: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter: the bulk lines to send, and its document."""

    lines: bytes
    document: Mapping[str, Any]

    @property
    def run(self) -> str:
        """Return the run that its document is of."""
        return str((self.document.get("run") or {}).get("id", ""))

    @property
    def source(self) -> Source | None:
        """Return run and source of a document of intervals; None for another."""
        source = self.document.get("source")
        return (str(self.document["run"]["id"]), str(source["id"])) if source else None


def replayed(store: ElasticStore, path: Path) -> ReplayAccount:
    """Send all documents of a dead-letter file again and return the account; only those refused again stay in the file.

    Raises InputError for a file that holds something else, StoreError where the server fails.
    """
    letters = list(_letters(path))
    runs = {record.run for record in store.runs()} & {letter.run for letter in letters}
    known = {(run, record.source): record.generation for run in runs for record in store.sources(run)}
    first = {run: store.first_generation(run) for run in runs}
    current = [candidate for candidate in letters if _is_current(candidate, known, first)]
    account = ReplayAccount(sent=len(current), obsolete=len(letters) - len(current))
    again = path.with_name(f"{path.name}.again")
    again.unlink(missing_ok=True)
    again.touch()
    delivery = Delivery()
    sender = Sender(store.connection, delivery, again)
    try:
        by_source: dict[Source | None, list[Letter]] = {}
        for letter in current:
            by_source.setdefault(letter.source, []).append(letter)
        for some in by_source.values():
            sender.put(letter.lines for letter in some)
        sender.flush()
        account.refused = delivery.counts["rejected"]
        account.taken, account.reason = account.sent - account.refused, delivery.first_reason
        for run in sorted({source[0] for source in by_source if source}):
            account.runs.append(_complete(store, sender, run, {s: some for s, some in by_source.items() if s and s[0] == run}))
    finally:
        sender.close()
    again.replace(path)
    if not account.refused:
        path.unlink()
    return account


def _is_current(letter: Letter, known: Mapping[Source, int], first: Mapping[str, int]) -> bool:
    """Return whether a letter is of a run that is still there, and its source was not read again since.

    `known` are the generations of sources, `first` the lowest ones of the runs that are there.
    """
    if letter.run not in first:
        return False
    generation = int(letter.document.get("generation", 0))
    if letter.source is not None:
        return letter.source in known and generation >= known[letter.source]
    return generation >= first[letter.run] or first[letter.run] == 1


def _complete(store: ElasticStore, sender: Sender, run: str, letters: Mapping[Source, list[Letter]]) -> str:
    """Make the rollups of the documents that were sent, and note their sources complete; return a sentence about the run."""
    with store.writing(run):
        try:
            record = record_named(run, store.runs())
            touched = Touched()
            for document in (letter.document for some in letters.values() for letter in some):
                key = host_key_in(document)
                if key.kind != OFFSET and "record" not in document:  # there are no rollups of offsets and breaths
                    touched.add({key: np.array([document["@timestamp"] * MS], np.int64)})
            stored, accounts = store.records.series([run])
            parts = (store.connection, store.names, sender, store.records)
            RollupWriter(*parts, record, touched, lowered=False, missing=store.lacking(record, accounts)).write(stored)
            left = 0
            for source, some in letters.items():
                left += store.records.settle(*source, taken=len(some) - sender.delivery.refused_of(*source))
        finally:
            sender.flush()
    return (
        f"{run}: {counted(left, 'document is', 'documents are')} still missing" if left else f"{run}: nothing is missing any more"
    )


def _letters(path: Path) -> Iterator[Letter]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                fields = orjson.loads(line)
                action, document = fields["action"], fields["document"]
                lines = orjson.dumps(action) + b"\n" + orjson.dumps(document) + b"\n"
                if not isinstance(document, dict):
                    raise TypeError
            except (orjson.JSONDecodeError, KeyError, TypeError):
                raise InputError("is not a dead letter: it needs status, reason, action and document", path, number) from None
            yield Letter(lines, document)
