"""Windows -> lines of a bulk request, and documents of an answer -> windows.

    {"index":{"_index":"tailboard-intervals-2026.11","_id":"u1Zc3gJ0sV6m8Wm5b4Yq1db3b6e8"}}
    {"@timestamp":1789999200000,"run":{"id":"nightly-42"},"host":{"name":"ceph-a"},...,"latency":{"layout":"loglinear:64:...",
     "error":0.0078125,"count":97,"histogram":{"values":[120320,122368],"counts":[95,2]}}}

A histogram holds the value that each occupied bin reports, which its layout turns back into the bin: nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, repeat
from pickle import PickleBuffer
from typing import Any, NamedTuple

import numpy as np
import orjson

from ingest.core.csr import distinct
from ingest.core.documents import known_only
from ingest.core.errors import StoreError
from ingest.core.grid import SECOND
from ingest.core.intervals import NO_BYTES, Int, Intervals, Key, told_exact
from ingest.core.layout import Layout, parse_layout
from ingest.core.offsets import is_offsets
from ingest.core.series import Series, kind_preference
from ingest.store.elastic.columns import Histograms
from ingest.store.elastic.names import Names, series_digest, window_ids
from ingest.store.records import RunRecord, SourceRecord, step_of

MS = 1_000_000

NO_COLUMNS = Histograms()
EndOf = Callable[[Mapping[str, Any]], int]

CHUNK_BYTES, CHUNK_DOCUMENTS = 4 << 20, 1000
FIELDS = {
    "run": ("run", "id"),
    "host": ("host", "name"),
    "volume": ("volume", "name"),
    "job": ("job", "id"),
    "op": ("operation",),
    "kind": ("kind",),
    "tag": ("tag",),
    "process": ("process", "name"),
}
FLOAT_DIGITS, FLOAT_BIAS, MOST_CODE_DIGITS = 52, 1023, 14
PLACES = [(path[0], path[1] if len(path) > 1 else "") for path in FIELDS.values()]
NONE: Mapping[str, Any] = {}
PATHS = {label: ".".join(path) for label, path in FIELDS.items()}
NUMBERS = tuple(f"latency.{name}" for name in ("layout", "count", "sum", "min", "max", "exact", "bytes", "histogram"))
READ = ("@timestamp", *NUMBERS, "in_flight", *PATHS.values(), "interval.end_ns")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a bulk request: `body` holds two lines for each of `documents`; it may be a view of a message."""

    body: bytes | memoryview
    documents: int

    def __reduce__(self) -> tuple[type[Chunk], tuple[PickleBuffer, int]]:
        """Return it with its body apart, which then goes from one process to another without being copied into a pickle."""
        return Chunk, (PickleBuffer(self.body), self.documents)


def labels_document(series: Series) -> dict[str, Any]:
    """Return the labels of a series as fields of a document; labels that the source does not have are left out."""
    document: dict[str, Any] = {}
    for label, path in FIELDS.items():
        value = getattr(series, label)
        if not value:
            continue
        place = document
        for step in path[:-1]:
            place = place.setdefault(step, {})
        place[path[-1]] = value
    return document


def interval_chunks(windows: Intervals[Series], run: RunRecord, source: SourceRecord, names: Names) -> list[Chunk]:
    """Return the documents of whole windows, ready to be sent, in pieces of bounded size."""
    table = windows.table
    step = step_of(table, run.step_ns)
    ids = window_ids([series_digest(series, step) for series in table], windows.series, windows.start_ns, step)
    common = {"source": {"id": source.source}, "generation": source.generation, "interval": {"step_ms": step // MS}}
    heads = [
        inner({**labels_document(series), "kind_preference": kind_preference(series.kind), "segment": series.segment, **common})
        for series in table
    ]
    layout = {"layout": str(windows.layout)} if is_offsets(windows) else geometry(windows.layout)
    opening = b'"%b":' % (b"offset" if is_offsets(windows) else b"latency") + orjson.dumps(layout)[:-1]
    samples = (windows.samples if windows.completions is None else windows.completions).tolist()
    begun = (
        b'{"index":{"_index":"%b","_id":"%b"}}\n{"@timestamp":%d,%b,%b,"count":%d%b'
        % (index.encode(), id_.encode(), at, heads[code], opening, count, exact)
        for index, id_, at, code, count, exact in zip(
            names.of("intervals", windows.start_ns),
            ids,
            (windows.start_ns // MS).tolist(),
            windows.series.tolist(),
            samples,
            _exact_texts(windows),
            strict=True,
        )
    )
    return list(joined_chunks(_ended(windows, begun)))


def _ended(windows: Intervals, begun: Iterable[bytes]) -> Iterator[Sequence[bytes]]:
    """Yield the pieces of each document, begun up to its histogram: weights have a field of their own, and no bins have none.

    A histogram of one bin without meaning would be counted by aggregations of other people.
    """
    end = repeat(b"}}\n")
    if not windows.layout.has_bins:
        return zip(begun, end, strict=False)
    field = b',"histogram":' if windows.completions is None else b'},"in_flight":{"histogram":'
    return zip(begun, repeat(field), histogram_texts(windows), end, strict=False)


def geometry(layout: Layout) -> dict[str, Any]:
    """Return the fields of a layout in a document; without bins there is no error."""
    if not layout.has_bins:
        return {"layout": str(layout)}
    return {"layout": str(layout), "error": float(layout.error)}


def offsets_in(sources: Sequence[Mapping[str, Any]], histograms: Histograms = NO_COLUMNS) -> Iterator[Intervals[Series]]:
    """Yield the windows of offsets in documents (their `_source`) under their series."""
    table: dict[Series, int] = {}
    codes = []
    for document in sources:
        labels = {label: label_in(document, label) for label in FIELDS}
        codes.append(table.setdefault(series_of(labels).replaced(segment=int(document.get("segment", 0))), len(table)))
    moved = [{**body, "latency": body["offset"]} for body in sources]
    if moved:
        layout = parse_layout(moved[0]["latency"]["layout"])
        ends: EndOf = lambda body: body["@timestamp"] * MS + SECOND
        yield _windows(moved, layout, np.array(codes, np.int64), tuple(table), ends, histograms, weighted=False)


def chunked(lines: Iterable[bytes]) -> Iterator[Chunk]:
    """Yield documents (action and source, both lines in one) in chunks of bounded size."""
    return joined_chunks((line,) for line in lines)


def joined_chunks(documents: Iterable[Sequence[bytes]]) -> Iterator[Chunk]:
    """Yield documents (action and source, in pieces) in chunks of bounded size; each byte is copied once."""
    held: list[bytes] = []
    size = number = 0
    for pieces in documents:
        more = sum(map(len, pieces))
        if held and (size + more > CHUNK_BYTES or number == CHUNK_DOCUMENTS):
            yield Chunk(b"".join(held), number)
            held, size, number = [], 0, 0
        held += pieces
        size += more
        number += 1
    if held:
        yield Chunk(b"".join(held), number)


def deletion(index: str, id_: str) -> bytes:
    """Return the bulk line that deletes a document."""
    return orjson.dumps({"delete": {"_index": index, "_id": id_}}) + b"\n"


def documents_of(chunk: Chunk) -> Iterator[tuple[bytes, bytes]]:
    """Yield (action line, document line) of a chunk; a deletion has no document."""
    lines = iter(bytes(chunk.body).split(b"\n"))
    for action in lines:
        if action:
            yield action, b"" if action.startswith(b'{"delete"') else next(lines)


def halves(chunk: Chunk) -> Iterator[Chunk]:
    """Yield a chunk in two parts; one of a single document as it is."""
    pairs = list(documents_of(chunk))
    middle = len(pairs) // 2
    for half in (pairs[:middle], pairs[middle:]):
        if half:
            yield Chunk(b"".join(line + b"\n" for pair in half for line in pair if line), len(half))


def inner(document: Mapping[str, Any]) -> bytes:
    """Return the fields of a document as JSON, without the braces around them."""
    return orjson.dumps(document)[1:-1]


def histogram_texts(windows: Intervals) -> Iterator[bytes]:
    """Yield the histogram of each window, values and counts, as JSON."""
    values, counts = windows.layout.keys[windows.bins], np.ascontiguousarray(windows.counts)
    for begin, end in pairwise(windows.indptr.tolist()):
        yield orjson.dumps({"values": values[begin:end], "counts": counts[begin:end]}, option=orjson.OPT_SERIALIZE_NUMPY)


def _exact_texts(windows: Intervals) -> list[bytes]:
    if windows.exact is None:
        return [b""] * len(windows)
    exact = windows.exact
    moved = () if exact.bytes is None else ((exact.bytes, exact.bytes != NO_BYTES),)
    columns = [
        [b"" if value is None else b',"%b":%d' % (name, value) for value in known_only(values, known)]
        for name, (values, known) in zip((b"sum", b"min", b"max", b"bytes"), (*exact.told, *moved), strict=False)
    ]
    return [b"".join(row) for row in zip(*columns, strict=True)]


def as_stored(series: Series) -> Series:
    """Return the series: the key of windows that stay under it."""
    return series


def windows_in(
    sources: Sequence[Mapping[str, Any]],
    end_of: EndOf,
    key: Callable[[Series], Key | None],
    histograms: Histograms = NO_COLUMNS,
) -> Iterator[Intervals[Key]]:
    """Yield the windows in documents (their `_source`) under what `key` gives their series; without those that it gives None.

    One part a layout and kind of counts. `histograms` are those of a page that was read in columns. `end_of` gives the end of a
    window in ns. Raises StoreError for a document that holds values which are not of its layout.
    """
    buckets: dict[tuple[str, bool], list[Mapping[str, Any]]] = {}
    for document in sources:
        buckets.setdefault((document["latency"]["layout"], "in_flight" in document), []).append(document)
    for (layout, weighted), documents in buckets.items():
        table: dict[Key, int] = {}
        known: dict[tuple[Any, ...], int] = {}
        codes = np.array([_code(document, key, known, table) for document in documents], np.int64)
        chosen = [document for document, code in zip(documents, codes.tolist(), strict=True) if code >= 0]
        if chosen:
            yield _windows(chosen, parse_layout(layout), codes[codes >= 0], tuple(table), end_of, histograms, weighted=weighted)


def _code(
    document: Mapping[str, Any],
    key: Callable[[Series], Key | None],
    known: dict[tuple[Any, ...], int],
    table: dict[Key, int],
) -> int:
    labels = tuple([(document.get(outer) or NONE).get(inner) if inner else document.get(outer) for outer, inner in PLACES])
    if labels not in known:
        group = key(series_of({label: str(value or "") for label, value in zip(FIELDS, labels, strict=True)}))
        known[labels] = -1 if group is None else table.setdefault(group, len(table))
    return known[labels]


def series_of(labels: Mapping[str, Any]) -> Series:
    """Return the series of these labels; a missing or null one is empty text."""
    return Series().replaced(**{label: labels.get(label) or "" for label in FIELDS})


def label_in(document: Mapping[str, Any], label: str) -> str:
    """Return a label of a document; empty text where it has none."""
    value: Any = document
    for step in FIELDS[label]:
        value = value.get(step) if isinstance(value, Mapping) else None
    return str(value or "")


def _windows(
    documents: Sequence[Mapping[str, Any]],
    layout: Layout,
    codes: Int,
    table: Sequence[Key],
    end_of: EndOf,
    histograms: Histograms,
    *,
    weighted: bool,
) -> Intervals[Key]:
    latency = [document["latency"] for document in documents]
    if layout.has_bins:
        bodies = [document["in_flight" if weighted else "latency"]["histogram"] for document in documents]
        indptr, values, counts = histograms.of(bodies)
        bins = bins_of(layout, values)
    else:
        indptr, bins = np.arange(len(documents) + 1), np.zeros(len(documents), np.int64)
        counts = np.array([entry["count"] for entry in latency], np.int64)
    stated = [entry if entry.get("exact", True) else {} for entry in latency] if layout.has_bins else latency
    sums, lows, highs = ([entry.get(name) for entry in stated] for name in ("sum", "min", "max"))
    exact = told_exact(sums, lows, highs, None if layout.has_bins else [entry.get("bytes") for entry in latency])
    return Intervals(
        layout=layout,
        table=table,
        series=codes,
        start_ns=np.array([document["@timestamp"] for document in documents], np.int64) * MS,
        end_ns=np.array([end_of(document) for document in documents], np.int64),
        indptr=indptr,
        bins=bins,
        counts=counts,
        exact=None if exact.says_nothing else exact,
        completions=np.array([entry["count"] for entry in latency], np.int64) if weighted else None,
    )


def bins_of(layout: Layout, values: Int) -> Int:
    """Return the bins that `values` stand for; StoreError if one of them stands for none."""
    keys, coded = layout.keys, _coded(layout)
    if coded is None:
        bins = np.minimum(np.searchsorted(keys, values), layout.bins - 1).astype(np.int64)
    else:
        bins = coded.table.take(_codes(values, coded.digits), mode="clip")
    if not np.array_equal(keys.take(bins), values):
        raise StoreError(f"a document holds values that no bin of its layout {layout} reports: it was not written by tailboard")
    return bins


class Coded(NamedTuple):
    """The bin of each code of a value: its logarithm to so many binary digits, rounded down."""

    digits: int
    table: Int


@lru_cache(maxsize=32)
def _coded(layout: Layout) -> Coded | None:
    """Return the bins of a layout by codes that differ from bin to bin, None where none of some thousand bins do.

    A look into a table takes half the time of a search by halves.
    """
    for digits in range(4, MOST_CODE_DIGITS + 1):
        codes = _codes(layout.keys, digits)
        if np.array_equal(distinct(codes), codes):
            table = np.zeros(int(codes[-1]) + 1, np.int64)
            table[codes] = np.arange(layout.bins)
            return Coded(digits, table)
    return None


def _codes(values: Int, digits: int) -> Int:
    """Return the power of two and the first binary digits behind it of values + 1, as one number: rising, from 0 on."""
    floats = values.astype(np.float64)
    floats += 1
    codes = floats.view(np.int64)
    codes >>= FLOAT_DIGITS - digits
    codes -= FLOAT_BIAS << digits
    return codes
