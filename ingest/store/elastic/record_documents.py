"""Records of runs and sources <-> documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ingest.core.layout import parse_layout
from ingest.core.series import Series
from ingest.store.elastic.encoding import FIELDS, MS, label_in, labels_document
from ingest.store.live import Checkpoint, Watch
from ingest.store.records import LOADING, RunRecord, SourceRecord, Spans, StoredSeries

if TYPE_CHECKING:
    from ingest.store.elastic.touched import Touch

RUN, SOURCE, CHECKPOINT, WATCH, TOMBSTONE = "run", "source", "checkpoint", "watch", "tombstone"
FROZEN = ("load", "step_ns", "attribution", "start_ns", "zero")  # of runs, as their records name them; so are the others
OF_SOURCE = ("path", "size", "digest", "context", "state")
TOLD = ("final_ns", "largest_ns", "told_ns")


@dataclass(slots=True)
class SourceState:
    """What a load knows of a source beside its record: its series as they were written, documents, samples, refused documents."""

    series: dict[Series, StoredSeries] = field(default_factory=dict)
    refused: int = 0
    written: int = 0
    samples: int = 0

    def wrote(self, touch: Touch) -> None:
        """Note series of which documents were written."""
        layout = parse_layout(touch.layout)
        for series in touch.series:
            exact = touch.exact or (series in self.series and self.series[series].exact)
            self.series[series] = StoredSeries(0, series, layout, exact)

    def reached(self, spans: Spans) -> None:
        """Note from when to when its series reach."""
        for series, (first, last) in spans.items():
            if series in self.series:
                self.series[series] = replace(self.series[series], first_ns=first, last_ns=last)


def run_document(run: RunRecord, generation: int, since: int = 0) -> dict[str, Any]:
    """Return the document of a run; `since` is the lowest generation of its sources where one of its name was deleted before."""
    return {
        "record": RUN,
        **({"generation": since} if since else {}),
        "@timestamp": run.start_ns // MS,
        "run": {
            "id": run.run,
            **{name: getattr(run, name) for name in FROZEN},
            "parameters": dict(run.parameters),
            "labels": dict(run.labels),
            "loaded": run.loaded,
            "generation": generation,
        },
        "labels": searchable(run.labels),
    }


def tombstone(run: str, generation: int) -> dict[str, Any]:
    """Return the document in place of the record of a deleted run: no document of the run is of a later generation."""
    return {"record": TOMBSTONE, "generation": generation, "run": {"id": run, "generation": generation}}


def watch_document(watch: Watch) -> dict[str, Any]:
    """Return the document of a watch."""
    return {
        "record": WATCH,
        "run": {"id": watch.run},
        "watch": {"id": watch.watch, **{name: getattr(watch, name) for name in TOLD}},
    }


def watch_of(document: Mapping[str, Any]) -> Watch:
    """Return a watch from its document."""
    fields = document["watch"]
    final, largest, told = (int(fields[name]) for name in TOLD)
    return Watch(document["run"]["id"], fields["id"], final, largest, told)


def checkpoint_document(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the document of a checkpoint."""
    return {
        "record": CHECKPOINT,
        "run": {"id": checkpoint.run},
        "source": {"id": checkpoint.source},
        "watch": {"id": checkpoint.watch},
        "checkpoint": {"state": dict(checkpoint.state)},
    }


def checkpoint_of(document: Mapping[str, Any]) -> Checkpoint:
    """Return a checkpoint from its document."""
    run, source, watch = (document[name]["id"] for name in ("run", "source", "watch"))
    return Checkpoint(run, source, watch, document["checkpoint"]["state"])


def searchable(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels under names that are fields: dots would nest."""
    return {name.replace(".", "_") or "_": str(value) for name, value in labels.items()}


def run_record(document: Mapping[str, Any]) -> RunRecord:
    """Return the record of a run from its document; unless it is being deleted, its state is that of its sources."""
    run = document["run"]
    return RunRecord(
        run=run["id"],
        **{name: run[name] for name in FROZEN},
        parameters=run.get("parameters") or {},
        labels=run.get("labels") or {},
        state=run.get("state") or LOADING,
        loaded=run.get("loaded") or "",
    )


def source_document(record: SourceRecord, state: SourceState) -> dict[str, Any]:
    """Return the document of a source."""
    series = [series_document(stored) for _, stored in sorted(state.series.items())]
    fields = {
        "id": record.source,
        **{name: getattr(record, name) for name in OF_SOURCE},
        "account": dict(record.account),
        "series": series,
        "refused": state.refused,
    }
    return {"record": SOURCE, "run": {"id": record.run}, "generation": record.generation, "source": fields}


def source_record(document: Mapping[str, Any]) -> SourceRecord:
    """Return the record of a source from its document."""
    fields = document["source"]
    return SourceRecord(
        run=document["run"]["id"],
        source=fields["id"],
        **{name: fields[name] for name in OF_SOURCE},
        generation=int(document["generation"]),
        account=fields.get("account") or {},
    )


def series_document(stored: StoredSeries) -> dict[str, Any]:
    """Return the entry of a series in the document of its source."""
    return {
        **labels_document(stored.series),
        "segment": stored.series.segment,
        "layout": str(stored.layout),
        "exact": stored.exact,
        "first_ns": stored.first_ns,
        "last_ns": stored.last_ns,
    }


def stored_series(number: int, run: str, entry: Mapping[str, Any]) -> StoredSeries:
    """Return the series of an entry in the document of a source."""
    labels = {label: label_in(entry, label) for label in FIELDS}
    series = Series(**{**labels, "run": run}, segment=int(entry["segment"]))
    return StoredSeries(number, series, parse_layout(entry["layout"]), bool(entry["exact"]), entry["first_ns"], entry["last_ns"])
