"""Findings, episodes, marks and breaths in Elasticsearch: documents under ids of their own."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ingest import __version__
from ingest.core.breaths import BREATH, SUMS, BreathSample, BreathWindows, StoredBreaths, weight_of
from ingest.core.errors import StoreError, counted
from ingest.core.grid import SECOND
from ingest.core.intervals import Int
from ingest.core.labels import Series
from ingest.core.marks import in_time_order, noted
from ingest.core.schema import elasticsearch_mappings
from ingest.query.episodes import CANNOT_TELL, MET, VIOLATED, Episode, Judgement
from ingest.query.story.stored import StoredFinding
from ingest.store.elastic.aggregations import Filters
from ingest.store.elastic.bulk import put_all_at_once, put_at_once
from ingest.store.elastic.client import Connection, Refusal
from ingest.store.elastic.documents import (
    MOST_HITS,
    MS,
    Chunk,
    chunked,
    deletion,
    documents,
    hits,
    labels_document,
    search,
    series_in,
    writing_line,
)
from ingest.store.elastic.templates import INDEX, KEEPS_RATES, Names, digest, stored_template
from ingest.store.records import SourceRecord

# Episodes in Elasticsearch: one document each under an id of its own, in an index without a period; there are few.
# Beside them is what came of each objective: it has a state that no episode has.


PROMISE = ("percentile", "threshold_ns", "window_ns", "least_rate")
JUDGED = {"terms": {"episode.state": [MET, VIOLATED, CANNOT_TELL]}}
FOUND = ("peak_ns", "peak_open", "samples", "windows", "silent", "thin", "worst_host", "state", "lowest_rate")


def keep_episodes(
    connection: Connection, names: Names, run: str, objective: str, episodes: Sequence[Episode], judgement: Judgement | None
) -> None:
    """Write all episodes of an objective in a run and what came of it, then delete those of an earlier check that no longer hold.

    A repeat after a failure converges: documents are written by id. StoreError where the server refuses one, or was set up before
    there were episodes.
    """
    template, url = stored_template(connection, INDEX, names.one("episodes")), connection.address.url
    if template is None:
        raise StoreError(f"{url} has no index template {names.one('episodes')}: tailboard store setup --elasticsearch {url}")
    if int(template.get("version") or 0) < KEEPS_RATES and any(episode.least_rate is not None for episode in episodes):
        raise StoreError(f"{url} has no place for episodes of a rate: tailboard store setup --elasticsearch {url} --overwrite")
    index, kept = names.one("episodes"), {episode.id for episode in episodes}
    lines = [episode_line(episode, names) for episode in episodes]
    if judgement:
        kept.add(judgement.id)
        lines.append(judgement_line(judgement, names))
    whose = {"bool": {"filter": [{"term": {"run.id": run}}, {"term": {"objective.name": objective}}]}}
    there = hits(connection, index, whose, source=False)
    lines += [deletion(hit["_index"], hit["_id"]) for hit in there if hit["_id"] not in kept]
    put_all_at_once(connection, lines, "an episode")


def episode_line(episode: Episode, names: Names) -> bytes:
    """Return an episode as both lines of a bulk request."""
    return writing_line(names.one("episodes"), episode.id, _episode_document(episode))


def judgement_line(judgement: Judgement, names: Names) -> bytes:
    """Return what came of an objective as both lines of a bulk request."""
    times = {"start_ns": judgement.start_ns, "end_ns": judgement.end_ns, "end": judgement.end_ns // MS}
    promise = {"percentile": judgement.percentile, "threshold_ns": judgement.threshold_ns, "window_ns": judgement.window_ns}
    document = {
        "@timestamp": judgement.start_ns // MS,
        "run": {"id": judgement.run},
        "kind": judgement.kind,
        "objective": {"name": judgement.objective, **promise},
        "episode": {**times, "state": judgement.state},
    }
    return writing_line(names.one("episodes"), judgement.id, document)


def episodes_of(connection: Connection, names: Names, runs: Iterable[str]) -> list[Episode]:
    """Return the episodes of runs in time order."""
    of_runs = {"bool": {"filter": [{"terms": {"run.id": sorted(runs)}}], "must_not": [JUDGED]}}
    stored = documents(connection, names.one("episodes"), of_runs)
    episodes = [_episode(document) for document in stored]
    return sorted(
        episodes, key=lambda episode: (episode.start_ns, episode.run, episode.objective, json.dumps(dict(episode.labels)))
    )


def _episode_document(episode: Episode) -> dict[str, Any]:
    start, end = episode.start_ns, episode.end_ns
    times = {"start_ns": start, "end_ns": end, "end": end // MS, "duration_ns": end - start}
    promise, found = (
        {name: value for name in names if (value := getattr(episode, name)) is not None} for names in (PROMISE, FOUND)
    )
    return {
        "@timestamp": start // MS,
        "run": {"id": episode.run},
        "kind": episode.kind,
        "objective": {"name": episode.objective, **promise},
        "episode": {"labels": dict(episode.labels), "group": episode.group, **times, **found},
    }


def _episode(document: Mapping[str, Any]) -> Episode:
    promise, episode = document["objective"], document["episode"]
    return Episode(
        objective=promise["name"],
        run=document["run"]["id"],
        labels=tuple(episode["labels"].items()),
        kind=document["kind"],
        **{name: promise.get(name) for name in PROMISE},
        **{name: episode.get(name) for name in ("start_ns", "end_ns", *FOUND)},
    )


# Findings in Elasticsearch: a document for the story of a run and one for each finding, in an index without a period.
#
# A server that was set up before there were findings has no place for them: none are written, and `explain` computes them.


FINDING = ("rank", "stamp", "kind", "labels", "start_ns", "end_ns", "share", "missing_share", "content")


def keep_findings(connection: Connection, names: Names, run: str, kept: Sequence[StoredFinding]) -> None:
    """Write all findings of a run, and delete those that are there beside them: a search and a bulk request.

    A repeat after a failure converges: documents are written by id. StoreError where the server refuses one.
    """
    index = names.one("findings")
    body = {"size": MOST_HITS, "query": {"bool": {"filter": [{"term": {"run.id": run}}]}}, "_source": False}
    there = {hit["_id"] for hit in search(connection, index, body)["hits"]["hits"]}
    lines = [finding_line(document, names) for document in kept]
    lines += [deletion(index, id_) for id_ in sorted(there - {_id(document) for document in kept})]
    put_all_at_once(connection, lines, "a finding")


def finding_line(document: StoredFinding, names: Names, *, of_now: bool = True) -> bytes:
    """Return a finding as both lines of a bulk request.

    Beside its stamp stands the version that told it, for Kibana, which marks what another one told; unless that is not `of_now`.
    """
    own = {name: getattr(document, name) for name in FINDING}
    own["stamp"] = [document.stamp, *([f"version {__version__}"] if of_now else [])]
    times = {name: own.pop(name) for name in ("start_ns", "end_ns")} | {"end": document.end_ns // MS}
    rest = {name: own.pop(name) for name in ("share", "missing_share", "content")}
    finding = {**own, "labels": dict(document.labels), "who": document.who, **times, **rest}
    text = {"text": document.text} if document.text else {}  # a table of texts has no row without one
    body = {"@timestamp": document.start_ns // MS, "run": {"id": document.run}, "finding": finding, **text}
    return writing_line(names.one("findings"), _id(document), body)


def findings_of(connection: Connection, names: Names, runs: Iterable[str]) -> list[StoredFinding]:
    """Return the findings of runs, by run and rank."""
    stored = documents(connection, names.one("findings"), {"terms": {"run.id": sorted(runs)}})
    kept = [
        StoredFinding(
            run=one["run"]["id"],
            text=one.get("text", ""),
            **{**{name: one["finding"][name] for name in FINDING}, "stamp": stamp if isinstance(stamp, str) else stamp[0]},
        )
        for one in stored
        for stamp in [one["finding"]["stamp"]]  # alone where an earlier version told it
    ]
    return sorted(kept, key=lambda document: (document.run, document.rank))


def _id(document: StoredFinding) -> str:
    return digest(["finding", document.run, document.rank])


# Marks in Elasticsearch: one document each under an id of its own, in an index without a period; there are few.


UNKNOWN_FIELD = "strict_dynamic_mapping_exception"
NOT_FOUND = 404


def keep_marks(connection: Connection, names: Names, run: str, marks: Sequence[Mapping[str, Any]]) -> None:
    """Write marks of a run under ids that time and text give: the same mark twice is one, with the last end.

    StoreError where the server refuses one, or was set up before marks had an end.
    """
    for chunk in chunked([mark_line(run, mark, names) for mark in marks]):
        refused = [outcome["error"] for outcome in put_at_once(connection, chunk, "a mark") if "error" in outcome]
        if not refused:
            continue
        url = connection.address.url
        if refused[0].get("type") == UNKNOWN_FIELD:
            raise StoreError(f"{url} was set up before marks had an end: tailboard store setup --elasticsearch {url} --overwrite")
        raise StoreError(f"{url}: {counted(len(refused), 'mark')} refused, the first: {refused[0].get('reason')}")


def marks_of(connection: Connection, names: Names, runs: Iterable[str]) -> list[Mapping[str, Any]]:
    """Return the marks of runs in time order: run, at_ns, text, and end_ns where there is one."""
    stored = documents(connection, names.one("marks"), {"terms": {"run.id": sorted(runs)}})
    marks = (noted(one["run"]["id"], one["mark"]["at_ns"], one["text"], one["mark"].get("end_ns")) for one in stored)
    return sorted(marks, key=in_time_order)


def mark_line(run: str, mark: Mapping[str, Any], names: Names) -> bytes:
    """Return a mark as both lines of a bulk request."""
    at_ns, text, end_ns = int(mark["at_ns"]), str(mark["text"]), mark.get("end_ns")
    until = {} if end_ns is None else {"end_ns": int(end_ns), "duration_ns": int(end_ns) - at_ns}
    body = {"run": {"id": run}, "@timestamp": at_ns // MS, "mark": {"at_ns": at_ns, **until}, "text": text}
    return writing_line(names.one("marks"), digest([run, at_ns, text]), body)


def widen_index(connection: Connection, names: Names, index: str) -> None:
    """Give indices that are there the fields that were added since: a template reaches only new ones."""
    properties = {"properties": elasticsearch_mappings(index)["properties"]}
    name = names.one(index) if index == "marks" else names.all(index)
    try:
        connection.call("PUT", f"/{name}/_mapping", properties)
    except Refusal as error:
        if error.status != NOT_FOUND:
            raise StoreError(f"the server refuses the new fields of {name}: {error}") from None


# Breaths in Elasticsearch: documents of windows and of single breaths, distinguished by `record`, in one index by time.
#
# {"record":"breaths","@timestamp":...,"process":{"name":"77"},"operation":"breath","breath":{"rate":5,"count":470,...}}
# {"record":"point","@timestamp":...,"process":{"name":"77"},"operation":"breath","point":{"packets":204,"cycles":7384,...}}


BREATHS_INDEX = "points"
WINDOW, POINT = "breaths", "point"
ESTIMATED = ("all_breaths", "all_packets", "all_bits")
COUNTS = ("count", "known", "idle", "longest")
LABELS = ("run", "host", "process", "op", "job")


def check_template(connection: Connection, names: Names, kept: Collection[str]) -> None:
    """Raise StoreError where the site has no template for this index among `kept`: it was set up by a version that knew none."""
    name, url = names.one(BREATHS_INDEX), connection.address.url
    if BREATHS_INDEX not in kept:
        option = "" if names.prefix == "tailboard" else f" --index-prefix {names.prefix}"
        raise StoreError(f"{url} has no index template {name}: tailboard store setup --elasticsearch {url}{option}")


def breath_chunks(kept: StoredBreaths, source: SourceRecord, names: Names) -> Iterator[Chunk]:
    """Yield the breaths of a source as bulk lines."""
    owner = {"source": {"id": source.source}, "generation": source.generation}
    yield from chunked(_window_lines(kept.windows, owner, names))
    yield from chunked(_point_lines(kept.sample, owner, names))


def _window_lines(rows: BreathWindows, owner: Mapping[str, Any], names: Names) -> Iterator[bytes]:
    heads = [labels_document(series) for series in rows.table]
    cells, counts = rows.cells.tolist(), rows.counts.tolist()
    weights = weight_of(rows.rate)
    estimated = [
        (weights * column.astype(np.int64)).tolist() for column in (rows.count, rows.sums[:, 0], rows.sums[:, SUMS.index("bits")])
    ]
    columns = zip(
        names.of(BREATHS_INDEX, rows.start_ns),
        rows.series.tolist(),
        rows.rate.tolist(),
        rows.start_ns.tolist(),
        pairwise(rows.indptr.tolist()),
        zip(*(getattr(rows, name).tolist() for name in COUNTS), strict=True),
        rows.sums.tolist(),
        zip(*estimated, strict=True),
        strict=True,
    )
    for index, code, rate, start, (low, high), numbers, sums, estimates in columns:
        breath = {
            "rate": rate,
            **dict(zip(COUNTS, numbers, strict=True)),
            **dict(zip(SUMS, sums, strict=True)),
            **({"cells": {"values": cells[low:high], "counts": counts[low:high]}} if low < high else {}),
            **(dict(zip(ESTIMATED, estimates, strict=True)) if rows.table[code].op == BREATH else {}),
        }
        head = {"record": WINDOW, "@timestamp": start // MS, **heads[code], "interval": {"step_ms": SECOND // MS}}
        id_ = _identity(WINDOW, rows.table[code], rate, start)
        yield writing_line(index, id_, {**head, "breath": breath, **owner})


def _point_lines(rows: BreathSample, owner: Mapping[str, Any], names: Names) -> Iterator[bytes]:
    heads = [labels_document(series) for series in rows.table]
    columns = (rows.series, rows.rate, rows.order, rows.at_ns, rows.packets, rows.cycles)
    listed = zip(names.of(BREATHS_INDEX, rows.at_ns), *(column.tolist() for column in columns), strict=True)
    for index, code, rate, order, at, packets, cycles in listed:
        point = {"order": order, "at_ns": at, "packets": packets, "cycles": cycles}
        document = {"record": POINT, "@timestamp": -(-at // MS), **heads[code], "breath": {"rate": rate}, "point": point}
        yield writing_line(index, _identity(POINT, rows.table[code], order, at), {**document, **owner})


def _identity(record: str, series: Series, *numbers: int) -> str:
    return digest([record, *(getattr(series, label) for label in LABELS), *numbers])


def breaths_in(connection: Connection, names: Names, run: str, counting: Filters) -> StoredBreaths:
    """Return the breaths that are kept of a run; `counting` are the filters for those that count by the records of sources."""
    by_record: dict[str, list[Mapping[str, Any]]] = {WINDOW: [], POINT: []}
    query = {"bool": {"filter": [{"term": {"run.id": run}}, *counting]}}
    for document in documents(connection, names.all(BREATHS_INDEX), query):
        by_record[document["record"]].append(document)
    return StoredBreaths(_windows(by_record[WINDOW]), _sample(by_record[POINT]))


def _coded(bodies: Sequence[Mapping[str, Any]]) -> tuple[tuple[Series, ...], Int]:
    table: dict[Series, int] = {}
    codes = [table.setdefault(series_in(body), len(table)) for body in bodies]
    return tuple(table), np.array(codes, np.int64)


def _windows(documents: Sequence[Mapping[str, Any]]) -> BreathWindows:
    table, codes = _coded(documents)
    breaths = [document["breath"] for document in documents]
    cells = [breath.get("cells") or {"values": [], "counts": []} for breath in breaths]
    widths = np.array([len(entry["values"]) for entry in cells], np.int64)
    counts = {name: np.array([breath[name] for breath in breaths], np.int64) for name in ("rate", *COUNTS)}
    return BreathWindows(
        table=table,
        series=codes,
        start_ns=np.array([document["@timestamp"] for document in documents], np.int64) * MS,
        **counts,
        sums=np.array([[breath[name] for name in SUMS] for breath in breaths], np.float64).reshape(-1, len(SUMS)),
        indptr=np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
        cells=np.array([cell for entry in cells for cell in entry["values"]], np.int64),
        counts=np.array([count for entry in cells for count in entry["counts"]], np.int64),
    )


def _sample(documents: Sequence[Mapping[str, Any]]) -> BreathSample:
    table, codes = _coded(documents)
    points = [document["point"] for document in documents]
    numbers = (np.array([point[name] for point in points], np.int64) for name in ("order", "at_ns", "packets", "cycles"))
    return BreathSample(table, codes, np.array([document["breath"]["rate"] for document in documents], np.int64), *numbers)
