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
from ingest.core.intervals import NO_BYTES, NO_MAX, NO_MIN, NO_SUM, Exact, Int, Intervals, Key, exact_of
from ingest.core.layout import Layout, parse_layout
from ingest.core.offsets import is_offsets
from ingest.core.series import Series, kind_preference
from ingest.store.elastic.columns import Documents
from ingest.store.elastic.names import Names, series_digest, window_ids
from ingest.store.records import RunRecord, SourceRecord, step_of

MS = 1_000_000

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
LATENCY, OFFSETS = "latency", "offset"
EXTREMES = (("sum", NO_SUM), ("min", NO_MIN), ("max", NO_MAX))
MOST_SERIES = 4096
FLOAT_DIGITS, FLOAT_BIAS, MOST_CODE_DIGITS = 52, 1023, 14
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


def writing_line(index: str, id_: str, body: object, kind: str = "index", **guard: int) -> bytes:
    """Return both lines of a bulk request that write a document; `guard` are the numbers under which alone it is written."""
    return orjson.dumps({kind: {"_index": index, "_id": id_, **guard}}) + b"\n" + orjson.dumps(body) + b"\n"


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


def windows_in(documents: Documents, end_ns: Int, key: Callable[[Series], Key | None]) -> Iterator[Intervals[Key]]:
    """Yield the windows in documents, which end at `end_ns`, under what `key` gives their series; without those it gives None.

    One part a layout and kind of counts. Raises StoreError for a document that holds values which are not of its layout.
    """
    table: dict[Key, int] = {}

    def coded(shape: Mapping[str, Any]) -> int:
        group = key(series_in(shape))
        return -1 if group is None else table.setdefault(group, len(table))

    codes = documents.codes(coded)
    yield from _by_kind(documents, codes, tuple(table), end_ns, LATENCY)


def offsets_in(documents: Documents) -> Iterator[Intervals[Series]]:
    """Yield the windows of offsets in documents under their series."""
    plain: dict[Series, int] = {}
    codes = documents.codes(lambda shape: plain.setdefault(series_in(shape), len(plain)))
    segments, _ = documents.column("segment")
    table: dict[Series, int] = {}
    pairs = list(zip(codes.tolist(), segments.tolist(), strict=True))
    keys = list(plain)
    places = {pair: table.setdefault(keys[pair[0]].replaced(segment=pair[1]), len(table)) for pair in set(pairs)}
    codes = np.array([places[pair] for pair in pairs], np.int64)
    yield from _by_kind(documents, codes, tuple(table), starts_of(documents) + SECOND, OFFSETS)


def starts_of(documents: Documents) -> Int:
    """Return the starts in ns of the windows in documents."""
    return documents.known_column("@timestamp") * MS


def series_in(document: Mapping[str, Any]) -> Series:
    """Return the series whose labels a document bears, without its segment."""
    return _series(*(label_in(document, label) for label in FIELDS))


@lru_cache(maxsize=MOST_SERIES)
def _series(*labels: str) -> Series:
    return series_of(dict(zip(FIELDS, labels, strict=True)))


def series_of(labels: Mapping[str, Any]) -> Series:
    """Return the series of these labels; a missing or null one is empty text."""
    return Series().replaced(**{label: labels.get(label) or "" for label in FIELDS})


def label_in(document: Mapping[str, Any], label: str) -> str:
    """Return a label of a document; empty text where it has none."""
    value: Any = document
    for step in FIELDS[label]:
        value = value.get(step) if isinstance(value, Mapping) else None
    return str(value or "")


def _by_kind(documents: Documents, codes: Int, table: Sequence[Key], end_ns: Int, field: str) -> Iterator[Intervals[Key]]:
    """Yield the documents whose code is not -1 as windows of `table`: one part a layout and kind of counts."""
    kinds: dict[tuple[str, bool], int] = {}
    of_rows = documents.codes(lambda shape: kinds.setdefault((str(shape[field]["layout"]), "in_flight" in shape), len(kinds)))
    for (layout, weighted), kind in kinds.items():
        rows = np.flatnonzero((of_rows == kind) & (codes >= 0))
        if len(rows):
            keys = distinct(codes[rows])
            ours, series = [table[key] for key in keys.tolist()], np.searchsorted(keys, codes[rows])
            yield _windows(documents.take(rows), parse_layout(layout), series, ours, end_ns[rows], field, weighted=weighted)


def _windows(
    documents: Documents, layout: Layout, codes: Int, table: Sequence[Key], end_ns: Int, field: str, *, weighted: bool
) -> Intervals[Key]:
    completions = documents.known_column(field, "count")
    if layout.has_bins:
        documents.check_histograms("in_flight" if weighted else field)
        indptr, bins, counts = documents.indptr, bins_of(layout, documents.values), documents.counts
    else:
        indptr, bins, counts = np.arange(len(documents) + 1), np.zeros(len(documents), np.int64), completions
    exact = _exact(documents, field, has_bins=layout.has_bins)
    return Intervals(
        layout=layout,
        table=table,
        series=codes,
        start_ns=starts_of(documents),
        end_ns=end_ns,
        indptr=indptr,
        bins=bins,
        counts=counts,
        exact=None if exact.says_nothing else exact,
        completions=completions if weighted else None,
    )


def _exact(documents: Documents, field: str, *, has_bins: bool) -> Exact:
    """Return the exact values of documents; those of merged bins are only exact where the document says so."""
    stated = documents.codes(lambda shape: int(shape[field].get("exact", True) or not has_bins)) == 1
    total, low, high = (
        np.where(stated & known, values, none)
        for none, (values, known) in ((none, documents.column(field, name)) for name, none in EXTREMES)
    )
    moved, told = documents.column(field, "bytes")
    return exact_of(total, low, high, np.where(told, moved, NO_BYTES) if told.any() and not has_bins else None)


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
