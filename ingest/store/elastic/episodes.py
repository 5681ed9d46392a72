"""Episodes in Elasticsearch: one document each under an id of its own, in an index without a period; there are few."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from ingest.core.errors import StoreError
from ingest.query.verdicts import Episode
from ingest.store.elastic.connection import Connection
from ingest.store.elastic.encoding import MS, chunked, deletion
from ingest.store.elastic.names import Names
from ingest.store.elastic.reading import documents, pages
from ingest.store.elastic.templates import INDEX, stored_template


def keep_episodes(connection: Connection, names: Names, run: str, objective: str, episodes: Sequence[Episode]) -> None:
    """Write all episodes of an objective in a run, then delete those of an earlier check that no longer hold.

    A repeat after a failure converges: documents are written by id. StoreError where the server refuses one, or was set up before
    there were episodes.
    """
    if stored_template(connection, INDEX, names.one("episodes")) is None:
        url = connection.address.url
        raise StoreError(f"{url} has no index template {names.one('episodes')}: tailboard setup --elasticsearch {url}")
    index, kept = names.one("episodes"), {one.id for one in episodes}
    lines = [episode_line(one, names) for one in episodes]
    whose = {"bool": {"filter": [{"term": {"run.id": run}}, {"term": {"objective.name": objective}}]}}
    for page in pages(connection, index, whose, source=False):
        lines += [deletion(hit["_index"], hit["_id"]) for hit in page if hit["_id"] not in kept]
    for chunk in chunked(lines):
        answer = connection.call("POST", "/_bulk", chunk.body, refresh=True)
        told = [outcome for item in answer["items"] for outcome in item.values()]
        refused = [one["error"] for one in told if "error" in one]
        if refused:
            raise StoreError(f"{connection.address.url}: an episode is refused: {refused[0].get('reason')}")


def episode_line(one: Episode, names: Names) -> bytes:
    """Return an episode as both lines of a bulk request."""
    action = {"index": {"_index": names.one("episodes"), "_id": one.id}}
    return orjson.dumps(action) + b"\n" + orjson.dumps(_document(one)) + b"\n"


def episodes_of(connection: Connection, names: Names, runs: Iterable[str]) -> list[Episode]:
    """Return the episodes of runs in time order."""
    found = documents(connection, names.one("episodes"), {"terms": {"run.id": sorted(runs)}})
    told = [_episode(one) for one in found]
    return sorted(told, key=lambda one: (one.start_ns, one.run, one.objective, json.dumps(dict(one.labels))))


def _document(one: Episode) -> dict[str, Any]:
    peak = {} if one.peak_ns is None else {"peak_ns": one.peak_ns}
    return {
        "@timestamp": one.start_ns // MS,
        "run": {"id": one.run},
        "kind": one.kind,
        "objective": {
            "name": one.objective,
            "percentile": one.percentile,
            "threshold_ns": one.threshold_ns,
            "window_ns": one.window_ns,
        },
        "episode": {
            "labels": dict(one.labels),
            "group": one.group,
            "start_ns": one.start_ns,
            "end_ns": one.end_ns,
            "end": one.end_ns // MS,
            "duration_ns": one.end_ns - one.start_ns,
            **peak,
            "peak_open": one.peak_open,
            "samples": one.samples,
            "windows": one.windows,
            "silent": one.silent,
            "thin": one.thin,
            "worst_host": one.worst_host,
            "state": one.state,
        },
    }


def _episode(document: Mapping[str, Any]) -> Episode:
    promise, told = document["objective"], document["episode"]
    return Episode(
        objective=promise["name"],
        run=document["run"]["id"],
        labels=tuple(told["labels"].items()),
        kind=document["kind"],
        percentile=promise["percentile"],
        threshold_ns=int(promise["threshold_ns"]),
        window_ns=int(promise["window_ns"]),
        start_ns=int(told["start_ns"]),
        end_ns=int(told["end_ns"]),
        peak_ns=None if told.get("peak_ns") is None else int(told["peak_ns"]),
        peak_open=bool(told["peak_open"]),
        samples=int(told["samples"]),
        windows=int(told["windows"]),
        silent=int(told["silent"]),
        thin=int(told["thin"]),
        worst_host=told["worst_host"],
        state=told["state"],
    )
