"""Findings that stores keep: written by the load that completes a run, read where they are as new as its data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from ingest import __version__
from ingest.core.errors import InputError, TailboardError
from ingest.core.parallel import freed_memory_given_back
from ingest.query.findings.kept import documents_of, story_from
from ingest.query.findings.model import Story
from ingest.query.findings.story import computed
from ingest.query.overview import literal
from ingest.query.question import Question
from ingest.store import Store
from ingest.store.records import COMPLETE, RunRecord, SourceRecord


def write_findings(store: Store, run: str) -> list[str]:
    """Compute the findings of a run and keep them in place of what is there; nothing while the run is not complete.

    Nothing is kept of a run without latencies that findings speak of. Return a sentence where they cannot be worked out, for
    the account of the load, whose data are complete. Raises RunGoneError where the run was deleted meanwhile.
    """
    try:
        with store.still(run):
            stamp = _stamp_now(store, run)
            if stamp is None:
                return []
            with freed_memory_given_back():  # windows of all members are held at once, after all that the load has held
                story = computed(store, Question(runs=(literal(run),)))
    except InputError:  # it holds offsets or means alone
        return []
    except TailboardError:
        raise
    except Exception as error:  # noqa: BLE001  an error of ours in what is said of data does not fail their load
        reason = f"internal error ({type(error).__name__}: {error})"
        return [f"{run}: loaded; what happened in it cannot be worked out: {reason}; please report it"]
    store.keep_findings(run, documents_of(run, story, stamp))
    return []


def kept_story(store: Store, run: str, source: str) -> Story | None:
    """Return the story that a store keeps of a run; None where it has none, or data came since."""
    documents = store.findings_of([run])
    stamp = _stamp_now(store, run) if documents else None
    return None if stamp is None else story_from(documents, stamp, source)


def stamp_of(record: RunRecord, sources: Iterable[SourceRecord]) -> str:
    """Return what stands for the state of a run's data, and for the version that judges it: another state, another stamp."""
    parts = [
        [source.source, source.digest, source.generation, source.state, source.account]
        for source in sorted(sources, key=lambda source: source.source)
    ]
    state = [__version__, record.step_ns, record.start_ns, record.zero, record.attribution, record.loaded, parts]
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode("utf-8", "surrogateescape")).hexdigest()


def _stamp_now(store: Store, run: str) -> str | None:
    """Return the stamp of a run as it is, None while it is not complete."""
    record = next((record for record in store.runs() if record.run == run), None)
    return None if record is None or record.state != COMPLETE else stamp_of(record, store.sources(run))
