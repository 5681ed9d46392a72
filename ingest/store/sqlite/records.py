"""Records of runs and sources as rows of a SQLite store."""

from __future__ import annotations

import json
from typing import Any

from ingest.store.records import RunRecord, SourceRecord
from ingest.store.sqlite.damage import object_in

RUNS = ("run", "load", "step_ns", "attribution", "start_ns", "zero", "parameters", "labels", "state", "loaded")
SOURCES = ("run", "source", "path", "size", "digest", "context", "state", "generation", "account")


def run_record(row: tuple[Any, ...]) -> RunRecord:
    """Return a row of RUNS as a record."""
    run, load, step_ns, attribution, start_ns, zero, parameters, labels, state, loaded = row
    options, own_labels = object_in(parameters), object_in(labels)
    return RunRecord(run, load, step_ns, attribution, start_ns, zero, options, own_labels, state, loaded)


def source_record(row: tuple[Any, ...]) -> SourceRecord:
    """Return a row of SOURCES as a record."""
    run, source, path, size, digest, context, state, generation, account = row
    return SourceRecord(run, source, path, size, digest, context, state, generation, object_in(account))


def run_row(run: RunRecord) -> tuple[Any, ...]:
    """Return the row of a run."""
    parameters, labels = (json.dumps(dict(values), sort_keys=True) for values in (run.parameters, run.labels))
    return (
        *(run.run, run.load, run.step_ns, run.attribution, run.start_ns, run.zero),
        *(parameters, labels, run.state, run.loaded),
    )


def source_row(source: SourceRecord) -> tuple[Any, ...]:
    """Return a record as a row of SOURCES."""
    return tuple(json.dumps(source.account) if name == "account" else getattr(source, name) for name in SOURCES)
