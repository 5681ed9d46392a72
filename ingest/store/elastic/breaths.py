"""Breaths in Elasticsearch: documents of windows and of single breaths, distinguished by `record`, in one index by time.

{"record":"breaths","@timestamp":...,"process":{"name":"77"},"operation":"breath","breath":{"rate":5,"count":470,...}}
{"record":"point","@timestamp":...,"process":{"name":"77"},"operation":"breath","point":{"packets":204,"cycles":7384,...}}
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ingest.core.breaths import BREATH, SUMS, BreathSample, BreathWindows, Kept, weight_of
from ingest.core.errors import StoreError
from ingest.core.grid import SECOND
from ingest.core.intervals import Int
from ingest.core.series import Series
from ingest.store.elastic.bulk import Sender
from ingest.store.elastic.connection import Connection
from ingest.store.elastic.encoding import MS, Chunk, chunked, labels_document, series_in, writing_line
from ingest.store.elastic.filters import Filters
from ingest.store.elastic.names import Names, digest
from ingest.store.elastic.reading import deletions, documents
from ingest.store.records import SourceRecord

INDEX = "points"
WINDOW, POINT = "breaths", "point"
ESTIMATED = ("all_breaths", "all_packets", "all_bits")
COUNTS = ("count", "known", "idle", "longest")
LABELS = ("run", "host", "process", "op", "job")


def check_template(connection: Connection, names: Names, kept: Collection[str]) -> None:
    """Raise StoreError where the site has no template for this index among `kept`: it was set up by a version that knew none."""
    name, url = names.one(INDEX), connection.address.url
    if INDEX not in kept:
        option = "" if names.prefix == "tailboard" else f" --index-prefix {names.prefix}"
        raise StoreError(f"{url} has no index template {name}: tailboard setup --elasticsearch {url}{option}")


def breath_chunks(kept: Kept, source: SourceRecord, names: Names) -> Iterator[Chunk]:
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
        names.of(INDEX, rows.start_ns),
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
        document = {
            "record": WINDOW,
            "@timestamp": start // MS,
            **heads[code],
            "interval": {"step_ms": SECOND // MS},
            "breath": breath,
        }
        yield writing_line(index, _identity(WINDOW, rows.table[code], rate, start), {**document, **owner})


def _point_lines(rows: BreathSample, owner: Mapping[str, Any], names: Names) -> Iterator[bytes]:
    heads = [labels_document(series) for series in rows.table]
    columns = (rows.series, rows.rate, rows.order, rows.at_ns, rows.packets, rows.cycles)
    listed = zip(names.of(INDEX, rows.at_ns), *(column.tolist() for column in columns), strict=True)
    for index, code, rate, order, at, packets, cycles in listed:
        point = {"order": order, "at_ns": at, "packets": packets, "cycles": cycles}
        document = {"record": POINT, "@timestamp": -(-at // MS), **heads[code], "breath": {"rate": rate}, "point": point}
        yield writing_line(index, _identity(POINT, rows.table[code], order, at), {**document, **owner})


def _identity(record: str, series: Series, *numbers: int) -> str:
    return digest([record, *(getattr(series, label) for label in LABELS), *numbers])


def settle_breaths(connection: Connection, names: Names, sender: Sender, again: Sequence[SourceRecord]) -> None:
    """Let searches see all that was sent, and delete documents of older generations of the sources that were read again."""
    connection.refresh(names.all(INDEX))
    for source in again:
        filters: Filters = [
            {"term": {"run.id": source.run}},
            {"term": {"source.id": source.source}},
            {"range": {"generation": {"lt": source.generation}}},
        ]
        sender.put(deletions(connection, names.all(INDEX), filters))
    if again:
        sender.flush()
        connection.refresh(names.all(INDEX))


def breaths_in(connection: Connection, names: Names, run: str) -> Kept:
    """Return the breaths that are kept of a run."""
    by_record: dict[str, list[Mapping[str, Any]]] = {WINDOW: [], POINT: []}
    for document in documents(connection, names.all(INDEX), {"bool": {"filter": [{"term": {"run.id": run}}]}}):
        by_record[document["record"]].append(document)
    return Kept(_windows(by_record[WINDOW]), _sample(by_record[POINT]))


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
