"""Findings that stores keep: written by the load that completes a run, read where they are as new as its data."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Self

from ingest.core.errors import InputError, TailboardError
from ingest.core.pool import freed_memory_given_back, give_back_freed_memory
from ingest.query.question import Question
from ingest.query.story import stored
from ingest.query.story.ground import Story
from ingest.query.story.stored import documents_of, story_from
from ingest.store import Foreseen, Store
from ingest.store.records import COMPLETE, RunRecord, SourceRecord


class EarlyStory:
    """The story of a run that is read and not yet written, worked out by a thread while its last documents and rollups are sent.

    Most of a load's end is waiting for a server, and findings are nearly all computation. The thread ends within `with`: OpenBLAS
    ends its own threads before a process is forked, and waits forever for one that a thread like this has given work just then.
    """

    def __init__(self, run: Foreseen | None) -> None:
        """Begin; of None there is no story."""
        self._run = run
        self._story: Story | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        if run is not None:
            self._thread.start()

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the thread, whether its story is wanted or not: what comes next may fork."""
        if self._run is not None:
            self._thread.join()

    def of(self, loaded: str, stamp: str) -> Story | None:
        """Return the story, waiting for it, if it is that of a run in this state; None if not, or if it cannot be told.

        When a load ended (`loaded`) is not known before; nothing is told of it.
        """
        if self._run is None:
            return None
        self._thread.join()
        return self._story if stamp_of(replace(self._run.record, loaded=loaded), self._run.sources) == stamp else None

    def _work(self) -> None:
        assert self._run is not None
        try:
            from ingest.query.story.story import computed  # while others wait for the server

            give_back_freed_memory()
            self._story = computed(self._run, Question().about([self._run.record.run]))
        except Exception:  # noqa: BLE001  it is asked again of the store, which says what is wrong
            self._story = None


def write_findings(store: Store, run: str, early: EarlyStory | None = None) -> list[str]:
    """Compute the findings of a run and keep them in place of what is there; nothing while the run is not complete.

    An `early` story is kept where the run has become what it is about. Nothing is kept of a run without latencies that findings
    speak of. Return a sentence where they cannot be worked out, for the account of the load, whose data are complete. Raises
    RunGoneError where the run was deleted meanwhile.
    """
    try:
        with store.still(run):
            record = _complete(store, run)
            if record is None:
                return []
            stamp = stamp_of(record, store.sources(run))
            story = None if early is None else early.of(record.loaded, stamp)
            if story is None:
                from ingest.query.story.story import computed

                with freed_memory_given_back():  # windows of all members are held at once, after all that the load has held
                    story = computed(store, Question().about([run]))
    except InputError:  # it holds offsets or means alone
        return []
    except TailboardError:
        raise
    except Exception as error:  # noqa: BLE001  an error of ours in what is said of data does not fail their load
        reason = f"internal error ({type(error).__name__}: {error})"
        return [f"{run}: loaded; what happened in it cannot be worked out: {reason}; please report it"]
    store.keep_findings(run, documents_of(run, story, stamp))
    return []


def stored_story(store: Store, run: str, source: str) -> Story | None:
    """Return the story that a store keeps of a run; None where it has none, or data came since."""
    documents = store.findings_of([run])
    record = _complete(store, run) if documents else None
    return None if record is None else story_from(documents, stamp_of(record, store.sources(run)), source)


def stamp_of(record: RunRecord, sources: Iterable[SourceRecord]) -> str:
    """Return what stands for the state of a run's data, and for the method that judges it: another of either, another stamp."""
    parts = [
        [source.source, source.digest, source.generation, source.state, source.account]
        for source in sorted(sources, key=lambda source: source.source)
    ]
    state = [method(), record.step_ns, record.start_ns, record.zero, record.attribution, record.loaded, parts]
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode("utf-8", "surrogateescape")).hexdigest()


@cache
def method() -> str:
    """Return what stands for the method of findings: its own source, so that what an earlier one found is computed anew."""
    modules = sorted(Path(stored.__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(module.read_bytes() for module in modules)).hexdigest()


def _complete(store: Store, run: str) -> RunRecord | None:
    """Return the record of a run as it is; None while it is not complete."""
    return next((record for record in store.runs() if record.run == run and record.state == COMPLETE), None)
