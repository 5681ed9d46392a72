"""Episodes in Elasticsearch: one document each under an id of its own, in an index without a period; there are few."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from ingest.core.errors import StoreError
from ingest.query.verdicts import Episode
from ingest.store.elastic.bulk import put_at_once
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
    index, kept = names.one("episodes"), {episode.id for episode in episodes}
    lines = [episode_line(episode, names) for episode in episodes]
    whose = {"bool": {"filter": [{"term": {"run.id": run}}, {"term": {"objective.name": objective}}]}}
    for page in pages(connection, index, whose, source=False):
        lines += [deletion(hit["_index"], hit["_id"]) for hit in page if hit["_id"] not in kept]
    for chunk in chunked(lines):
        refused = [outcome["error"] for outcome in put_at_once(connection, chunk, "an episode") if "error" in outcome]
        if refused:
            raise StoreError(f"{connection.address.url}: an episode is refused: {refused[0].get('reason')}")


def episode_line(episode: Episode, names: Names) -> bytes:
    """Return an episode as both lines of a bulk request."""
    action = {"index": {"_index": names.one("episodes"), "_id": episode.id}}
    return orjson.dumps(action) + b"\n" + orjson.dumps(_document(episode)) + b"\n"


def episodes_of(connection: Connection, names: Names, runs: Iterable[str]) -> list[Episode]:
    """Return the episodes of runs in time order."""
    stored = documents(connection, names.one("episodes"), {"terms": {"run.id": sorted(runs)}})
    episodes = [_episode(document) for document in stored]
    return sorted(
        episodes, key=lambda episode: (episode.start_ns, episode.run, episode.objective, json.dumps(dict(episode.labels)))
    )


def _document(episode: Episode) -> dict[str, Any]:
    peak = {} if episode.peak_ns is None else {"peak_ns": episode.peak_ns}
    return {
        "@timestamp": episode.start_ns // MS,
        "run": {"id": episode.run},
        "kind": episode.kind,
        "objective": {
            "name": episode.objective,
            "percentile": episode.percentile,
            "threshold_ns": episode.threshold_ns,
            "window_ns": episode.window_ns,
        },
        "episode": {
            "labels": dict(episode.labels),
            "group": episode.group,
            "start_ns": episode.start_ns,
            "end_ns": episode.end_ns,
            "end": episode.end_ns // MS,
            "duration_ns": episode.end_ns - episode.start_ns,
            **peak,
            "peak_open": episode.peak_open,
            "samples": episode.samples,
            "windows": episode.windows,
            "silent": episode.silent,
            "thin": episode.thin,
            "worst_host": episode.worst_host,
            "state": episode.state,
        },
    }


def _episode(document: Mapping[str, Any]) -> Episode:
    promise, episode = document["objective"], document["episode"]
    return Episode(
        objective=promise["name"],
        run=document["run"]["id"],
        labels=tuple(episode["labels"].items()),
        kind=document["kind"],
        percentile=promise["percentile"],
        threshold_ns=int(promise["threshold_ns"]),
        window_ns=int(promise["window_ns"]),
        start_ns=int(episode["start_ns"]),
        end_ns=int(episode["end_ns"]),
        peak_ns=None if episode.get("peak_ns") is None else int(episode["peak_ns"]),
        peak_open=bool(episode["peak_open"]),
        samples=int(episode["samples"]),
        windows=int(episode["windows"]),
        silent=int(episode["silent"]),
        thin=int(episode["thin"]),
        worst_host=episode["worst_host"],
        state=episode["state"],
    )
