"""Episodes in Elasticsearch: one document each under an id of its own, in an index without a period; there are few."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ingest.core.errors import StoreError
from ingest.query.verdicts import Episode
from ingest.store.elastic.bulk import put_all_at_once
from ingest.store.elastic.connection import Connection
from ingest.store.elastic.encoding import MS, deletion, writing_line
from ingest.store.elastic.names import Names
from ingest.store.elastic.reading import documents, pages
from ingest.store.elastic.templates import INDEX, stored_template

PROMISE = ("percentile", "threshold_ns", "window_ns")
FOUND = ("peak_open", "samples", "windows", "silent", "thin", "worst_host", "state")


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
    put_all_at_once(connection, lines, "an episode")


def episode_line(episode: Episode, names: Names) -> bytes:
    """Return an episode as both lines of a bulk request."""
    return writing_line(names.one("episodes"), episode.id, _document(episode))


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
        "objective": {"name": episode.objective, **{name: getattr(episode, name) for name in PROMISE}},
        "episode": {
            "labels": dict(episode.labels),
            "group": episode.group,
            "start_ns": episode.start_ns,
            "end_ns": episode.end_ns,
            "end": episode.end_ns // MS,
            "duration_ns": episode.end_ns - episode.start_ns,
            **peak,
            **{name: getattr(episode, name) for name in FOUND},
        },
    }


def _episode(document: Mapping[str, Any]) -> Episode:
    promise, episode = document["objective"], document["episode"]
    return Episode(
        objective=promise["name"],
        run=document["run"]["id"],
        labels=tuple(episode["labels"].items()),
        kind=document["kind"],
        peak_ns=episode.get("peak_ns"),
        **{name: promise[name] for name in PROMISE},
        **{name: episode[name] for name in ("start_ns", "end_ns", *FOUND)},
    )
