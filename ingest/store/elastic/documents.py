"""Windows -> lines of a bulk request, and documents of a search -> windows, as columns.

The documents of an answer as columns: their numbers in arrays; of documents that differ in numbers alone one is decoded.

    {"_index":"x","_id":"y","_source":{"@timestamp":17,"operation":"read",
     "latency":{"count":97,"histogram":{"values":[5,9],"counts":[95,2]}}},"sort":[1]}

    a shape     {"@timestamp":0,"operation":"read","latency":{"count":1,"histogram":{"cut":null}}}
    numbers     17, 97                the shape has their places
    histogram   5, 9 | 95, 2

A page of 10,000 documents holds millions of numbers and some dozen shapes. As Python's objects they take most of the time of an
answer, and four times the memory. What is not written as a server writes it (blanks, fractions, another order) is decoded as any
JSON and written anew.

Windows -> lines of a bulk request, and documents of an answer -> windows.

    {"index":{"_index":"tailboard-intervals-2026.11","_id":"u1Zc3gJ0sV6m8Wm5b4Yq1db3b6e8"}}
    {"@timestamp":1789999200000,"run":{"id":"nightly-42"},"host":{"name":"ceph-a"},...,"latency":{"layout":"loglinear:64:...",
     "error":0.0078125,"count":97,"histogram":{"values":[120320,122368],"counts":[95,2]}}}

A histogram holds the value that each occupied bin reports, which its layout turns back into the bin: nothing is lost.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, pairwise, repeat
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from ingest.core.documents import known_only
from ingest.core.errors import StoreError
from ingest.core.grid import SECOND
from ingest.core.intervals import NO_BYTES, NO_MAX, NO_MIN, NO_SUM, Bool, Exact, Int, Intervals, Key, distinct, exact_of, gather
from ingest.core.labels import Series, kind_preference
from ingest.core.layout import Layout, parse_layout
from ingest.core.offsets import is_offsets
from ingest.core.schema import indices
from ingest.http import Answer
from ingest.store.elastic.client import CLOSED, Connection, Decode, Refusal, closed_in
from ingest.store.elastic.templates import Names, series_digest, window_ids
from ingest.store.lifecycle import step_in
from ingest.store.records import RunRecord, SourceRecord, step_of

HISTOGRAM = re.compile(rb'\{"values":\[([^]]*)\],"counts":\[([^]]*)\]\}')
SOURCE, SORT = b'"_source":', b',"sort":['
CUT: Mapping[str, Any] = {"cut": None}  # stands in a shape for its histogram
CUT_OUT = orjson.dumps(CUT)
NUMBER, NUMBER_OF_KEY = re.compile(rb'":(-?\d+)'), re.compile(rb'(?<!\\)":(-?\d+)')
DOCUMENTS_AT_ONCE = 1000  # so that their numbers, and what is added up of them, stay in the cache
MOST_SHAPES = 4096
COUNTS_AT_ONCE = 1 << 15  # for the same reason
MOST_DIGITS = 19  # of 2^63, past which a number is below 0
LAST = b"-1"  # behind all numbers, which are not below 0: it comes last only where they are as many as they should be
Letters = NDArray[np.uint8]
FOREIGN = "it was not written by tailboard"


@dataclass(frozen=True, slots=True)
class Documents:
    """Documents in columns: row i is of `shapes[shape[i]]`, its numbers begin at `first[i]` of `numbers`.

    Its histogram is `values[indptr[i]:indptr[i + 1]]` with as many counts. Shapes are shared: nobody changes them.
    """

    shapes: Sequence[Mapping[str, Any]]
    shape: Int
    first: Int
    numbers: Int
    indptr: Int
    values: Int
    counts: Int

    def __len__(self) -> int:
        return len(self.shape)

    def take(self, rows: Int) -> Documents:
        """Return the given rows in the given order."""
        if np.array_equal(rows, np.arange(len(self))):
            return self
        indptr, entries = gather(self.indptr, rows)
        histograms = indptr, self.values[entries], self.counts[entries]
        return Documents(self.shapes, self.shape[rows], self.first[rows], self.numbers, *histograms)

    def where(self, wanted: Callable[[Mapping[str, Any]], bool]) -> Documents:
        """Return the rows of the shapes that are wanted."""
        return self.take(np.flatnonzero(self.codes(lambda shape: int(wanted(shape))) == 1))

    def codes(self, of: Callable[[Mapping[str, Any]], int]) -> Int:
        """Return of each row what `of` gives for its shape; -1 for shapes that no row has."""
        there = np.bincount(self.shape, minlength=len(self.shapes)).tolist()
        codes = [of(shape) if rows else -1 for shape, rows in zip(self.shapes, there, strict=True)]
        return np.array(codes, np.int64)[self.shape]

    def column(self, *path: str) -> tuple[Int, Bool]:
        """Return the number of each row at a path, 0 where it has none, and where it has one.

        StoreError where something else than a whole number is there.
        """
        places = self.codes(lambda shape: _place(shape, path))
        known = places >= 0
        found = np.zeros(len(self), np.int64)
        found[known] = self.numbers[(self.first + places)[known]]
        return found, known

    def known_column(self, *path: str) -> Int:
        """Return the number of each row at a path; StoreError where a row has none."""
        found, known = self.column(*path)
        if not known.all():
            raise StoreError(f"a document has no {'.'.join(path)}: {FOREIGN}")
        return found

    def check_histograms(self, field: str) -> None:
        """Raise StoreError unless the histograms are those of a field, and all rows have one."""
        if not (self.codes(lambda shape: int(shape.get(field, {}).get("histogram") == CUT)) == 1).all():
            raise StoreError(f"a document has no {field}.histogram: {FOREIGN}")


NO_NUMBERS = np.empty(0, np.int64)
NOTHING = Documents((), NO_NUMBERS, NO_NUMBERS, NO_NUMBERS, np.zeros(1, np.int64), NO_NUMBERS, NO_NUMBERS)


class Columns(NamedTuple):
    """An answer without its hits, their documents in columns but for the histograms, which are texts, and how long it was.

    `after` is what the last hit was sorted by.
    """

    answer: Mapping[str, Any]
    bare: Documents
    values: Sequence[bytes]
    counts: Sequence[bytes]
    after: Sequence[Any]
    size: int

    def documents(self) -> Iterator[Documents]:
        """Yield the documents, some at a time; StoreError for one that holds something else than histograms of whole numbers."""
        bare, filled = self.bare, self.bare.indptr
        for first in range(0, len(bare), DOCUMENTS_AT_ONCE):
            last = min(first + DOCUMENTS_AT_ONCE, len(bare))
            texts = slice(filled[first], filled[last])
            histograms = _histograms(self.values[texts], self.counts[texts], np.diff(filled[first : last + 1]) == 1)
            yield Documents(bare.shapes, bare.shape[first:last], bare.first[first:last], bare.numbers, *histograms)


def columns_of(answer: Answer) -> Columns:
    """Return the answer to a search whose hits are sorted; TransientError for JSON that is cut off."""
    if columns := _columns(answer.body):
        return columns
    decoded = answer.decoded()
    hits = decoded["hits"]["hits"]
    if not hits:
        return Columns(decoded, NOTHING, (), (), (), len(answer.body))
    anew = [{"_index": "", "_source": _plain(hit["_source"]), "sort": hit.get("sort", ())} for hit in hits]
    columns = _columns(orjson.dumps({**decoded, "hits": {"hits": anew}}))
    if columns is None:
        raise StoreError(f"documents hold more than one histogram each: {FOREIGN}")
    return columns


def _columns(text: bytes) -> Columns | None:
    """Return an answer in columns; None where it is not written as a server writes it, or has no hits."""
    pieces = HISTOGRAM.split(text)
    bare, values, counts = CUT_OUT.join(pieces[::3]), pieces[1::3], pieces[2::3]
    head, source, rest = bare.partition(SOURCE)
    found, sort, ending = rest.rpartition(SORT)
    try:
        answer = orjson.loads(b"".join((head, source, b"null", sort, ending)))
        [last] = answer["hits"]["hits"]
        after = last["sort"]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None
    first, *others = found.split(SORT)
    documents = _in_columns([first, *(between.partition(SOURCE)[2] for between in others)])
    if documents is None or documents.indptr[-1] != len(values):
        return None
    return Columns(answer, documents, values, counts, after, len(text))


def _in_columns(texts: Sequence[bytes]) -> Documents | None:
    """Return documents in columns, but for their histograms: `indptr` says which have one. None where a text is no document."""
    text = b"\n".join(texts)
    pieces = (NUMBER_OF_KEY if b"\\" in text else NUMBER).split(text)
    names = b'":0'.join(pieces[::2]).split(b"\n")
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    shapes = [shape for name in places if (shape := _shape(name)) is not None]
    if len(names) != len(texts) or len(shapes) != len(places):
        return None
    of_rows = np.fromiter(map(places.__getitem__, names), np.int64, len(names))
    widths = np.array([shape.numbers for shape in shapes], np.int64)[of_rows]
    filled = np.array([name.count(CUT_OUT) for name in places], np.int64)
    if int(filled.max()) > 1 or any(b'"values":' in name for name in places):
        return None
    numbers = np.array([int(number) for number in pieces[1::2]], np.int64)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(filled[of_rows])])
    columns = of_rows, np.cumsum(widths) - widths, numbers, indptr
    return Documents([shape.document for shape in shapes], *columns, NO_NUMBERS, NO_NUMBERS)


def _plain(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document whose histogram, if it has one, is written as tailboard writes it; StoreError where that cannot be."""
    plain = dict(source)
    for name in ("latency", "in_flight", "offset"):
        body = source.get(name)
        if isinstance(body, Mapping) and isinstance(histogram := body.get("histogram"), Mapping):
            if not isinstance(histogram.get("values"), list) or not isinstance(histogram.get("counts"), list):
                raise StoreError(f"a document holds {str(histogram)[:100]} as histogram: {FOREIGN}")
            plain[name] = {**body, "histogram": {of: histogram[of] for of in ("values", "counts")}}
    return plain


def _histograms(values: Sequence[bytes], counts: Sequence[bytes], with_one: Bool) -> tuple[Int, Int, Int]:
    """Return row pointers, values and counts of the histograms of rows that are `with_one`; StoreError for fractions."""
    indptr = np.zeros(len(with_one) + 1, np.int64)
    filled = np.array([len(text) for text in counts], np.int64)
    joined = b",".join([*filter(None, counts), b""])
    ends = np.flatnonzero(np.frombuffer(joined, np.uint8) == ord(","))
    each = _counts(joined, ends)
    of = None if each is None else _numbers(b",".join([*filter(None, values), LAST]), len(ends))
    if each is None or of is None:
        plain_values, plain_counts = ([_listed(text) for text in texts] for texts in (values, counts))
        if plain_values == values and plain_counts == counts:
            raise StoreError(f"a document holds a histogram of negative counts, or of other values than counts: {FOREIGN}")
        return _histograms(plain_values, plain_counts, with_one)
    last = np.searchsorted(ends, np.cumsum(filled[filled > 0] + 1) - 1) + 1
    widths = np.zeros(len(filled), np.int64)
    widths[filled > 0] = np.diff(last, prepend=0)
    indptr[1:][with_one] = widths
    np.cumsum(indptr, out=indptr)
    return indptr, of, each


def _listed(text: bytes) -> bytes:
    """Return a list of numbers as tailboard writes it, of whatever form JSON has for them; StoreError where it has none."""
    try:
        numbers = orjson.loads(b"[%b]" % text)
        if any(int(number) != float(number) for number in numbers):
            raise ValueError(text)
    except (TypeError, ValueError):
        raise StoreError(f"a document holds {text[:100].decode()} in a histogram: {FOREIGN}") from None
    return b",".join([b"%d" % int(number) for number in numbers])


class Shape(NamedTuple):
    """A document with the place of its column in place of each number, and how many numbers it has."""

    document: Mapping[str, Any]
    numbers: int


@lru_cache(maxsize=MOST_SHAPES)
def _shape(text: bytes) -> Shape | None:
    """Return the shape that a text with all numbers 0 is of; None where it is no document."""
    places = count()
    numbered = NUMBER_OF_KEY.sub(lambda _: b'":%d' % next(places), text)
    try:
        document = orjson.loads(numbered)
    except orjson.JSONDecodeError:
        return None
    return Shape(document, next(places)) if isinstance(document, dict) else None


def _place(shape: Any, path: Sequence[str]) -> int:
    """Return the place of the number at a path of a shape, -1 where it has none."""
    for step in path:
        shape = shape.get(step) if isinstance(shape, Mapping) else None
    if shape is None:
        return -1
    if type(shape) is not int:
        raise StoreError(f"a document holds {str(shape)[:100]!r} as {'.'.join(path)}: {FOREIGN}")
    return shape


def _counts(text: bytes, ends: Int) -> Int | None:
    """Return the numbers of a text that has commas at `ends`, behind each of them; None where there is anything else."""
    numbers = np.empty(len(ends), np.int64)
    letters, begin = np.frombuffer(text, np.uint8), 0
    for first in range(0, len(ends), COUNTS_AT_ONCE):
        part = ends[first : first + COUNTS_AT_ONCE]
        stop = int(part[-1]) + 1
        found = _short_numbers(letters[begin:stop], part - begin)
        if found is None:
            return None
        numbers[first : first + COUNTS_AT_ONCE] = found
        begin = stop
    return numbers


def _short_numbers(letters: Letters, ends: Int) -> Int | None:
    """Return what `_counts` does of letters, best of numbers of few digits.

    letters    7 , 1  2  3    4    5 ,
    pairs      7   1 12 23   34   45       the number that ends here, of two digits at most
    fours      7   1 12 123 1234 2345      of four: two pairs
    """
    digits = letters - np.uint8(ord("0"))  # more than 9 for anything else
    is_digit = digits <= 9
    sizes = ends.copy()
    sizes[1:] -= ends[:-1] + 1
    most = int(sizes.max())
    if np.count_nonzero(is_digit) != len(letters) - len(ends) or most > MOST_DIGITS or not sizes.min():
        return None
    known = is_digit.view(np.uint8)
    digits *= known
    pairs = digits.copy()
    pairs[1:] += digits[:-1] * np.uint8(10)
    pairs *= known
    fours = pairs.astype(np.uint16)
    before = (pairs[:-2] * known[1:-1]).astype(np.uint16)
    before *= np.uint16(100)
    fours[2:] += before
    numbers = fours.take(ends - 1).astype(np.int64)
    for place in range(4, most, 4):
        rows = np.flatnonzero(sizes > place)
        numbers[rows] += fours.take(ends[rows] - 1 - place) * np.int64(10**place)
    return None if most == MOST_DIGITS and numbers.min() < 0 else numbers


def _numbers(text: bytes, total: int) -> Int | None:
    """Return the numbers of a text that ends with LAST; None where they are other than `total` whole ones."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # NumPy warns of text that it cannot read to its end
            # As it is told how many there are, NumPy need not let an array grow: that takes half the time.
            numbers: Int = np.fromstring(text, np.int64, total + 1, sep=",")
    except (ValueError, DeprecationWarning):
        return None
    # Where there are fewer, LAST comes earlier, and NumPy leaves the rest of the array as the memory was.
    return numbers[:-1] if numbers[-1] == int(LAST) and not (numbers[:-1] < 0).any() else None


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
LONGEST_KEYWORD = 32_766
NUMBERS = tuple(f"latency.{name}" for name in ("layout", "count", "sum", "min", "max", "exact", "bytes", "histogram"))
READ = ("@timestamp", *NUMBERS, "in_flight", *PATHS.values(), "interval.end_ns")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a bulk request: `body` holds two lines for each of `documents`."""

    body: bytes
    documents: int


def labels_document(series: Series) -> dict[str, Any]:
    """Return the labels of a series as fields of a document; labels that the source does not have are left out."""
    values = ((path, getattr(series, label)) for label, path in FIELDS.items())
    return {field: dict.fromkeys(inner, value) if inner else value for (field, *inner), value in values if value}


def interval_chunks(windows: Intervals[Series], run: RunRecord, source: SourceRecord, names: Names) -> list[Chunk]:
    """Return the documents of whole windows, ready to be sent, in pieces of bounded size."""
    table = windows.table
    step = step_of(table, step_in(run, source.step_ns))
    ids = window_ids([series_digest(series, step) for series in table], windows.series, windows.start_ns, step)
    common = {"source": {"id": source.source}, "generation": source.generation, "interval": {"step_ms": step // MS}}
    heads = [
        inner({**labels_document(series), "kind_preference": kind_preference(series.kind), "segment": series.segment, **common})
        for series in table
    ]
    layout = {"layout": str(windows.layout)} if is_offsets(windows) else geometry(windows.layout)
    opening = b'"%b":' % (b"offset" if is_offsets(windows) else b"latency") + orjson.dumps(layout)[:-1]
    samples = (windows.samples if windows.completions is None else windows.completions).tolist()
    indices, starts = names.of("intervals", windows.start_ns), (windows.start_ns // MS).tolist()
    rows = zip(indices, ids, starts, windows.series.tolist(), samples, _exact_texts(windows), strict=True)
    begun = (
        b'{"index":{"_index":"%b","_id":"%b"}}\n{"@timestamp":%d,%b,%b,"count":%d%b'
        % (index.encode(), id_.encode(), at, heads[code], opening, count, exact)
        for index, id_, at, code, count, exact in rows
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
    """Return the fields of a layout in a document; without bins there is no error. StoreError where no keyword holds its text."""
    if len(str(layout)) > LONGEST_KEYWORD:
        raise StoreError(f"{len(layout.members)} unlike lists of bins are too long for Elasticsearch: load them as several runs")
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
    lines = iter(chunk.body.split(b"\n"))
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


# Reading documents back: one search where it is enough, else pages of a point in time; never part of an answer.


MOST_HITS = 10_000
PAGE = 1000
PAGE_BYTES = 36 << 20  # of an answer with histograms: what becomes of them in memory is some four times that
KEEP_ALIVE = "5m"
CLOSED_SETTING = "index.verified_before_close"

Query = Mapping[str, Any]
Content = TypeVar("Content")


class Page(NamedTuple, Generic[Content]):
    """A page of hits: what was made of them, how many they are, what the last was sorted by, where the next page is asked for."""

    content: Content
    hits: int
    after: Any
    point: str | None
    size: int = 0


Ask = Callable[[Connection, str | None, Mapping[str, Any]], Page[Content]]


def search(connection: Connection, index: str | None, body: Mapping[str, Any], **params: Any) -> Mapping[str, Any]:
    """Return the answer of a search; a shard that fails makes it fail. StoreError for what the server refuses."""
    answer: Mapping[str, Any] = _asked(connection, index, body, Answer.decoded, **params)
    _check_whole(connection, answer)
    return answer


def _search_columns(connection: Connection, index: str | None, body: Mapping[str, Any]) -> Page[Columns]:
    """Return a page of a search as `search` does, its documents in columns."""
    columns: Columns = _asked(connection, index, body, columns_of)
    _check_whole(connection, columns.answer)
    return Page(columns, len(columns.bare), columns.after, columns.answer.get("pit_id"), columns.size)


def _as_objects(connection: Connection, index: str | None, body: Mapping[str, Any]) -> Page[Sequence[Mapping[str, Any]]]:
    answer = search(connection, index, body)
    hits = answer["hits"]["hits"]
    return Page(hits, len(hits), hits[-1]["sort"] if hits else (), answer.get("pit_id"))


def _asked(connection: Connection, index: str | None, body: Mapping[str, Any], decode: Decode, **params: Any) -> Any:
    path = f"/{index}/_search" if index else "/_search"
    if index:
        params = {**_whole_of(index), **params}
    try:
        return connection.call("POST", path, body, decode=decode, allow_partial_search_results=False, **params)
    except Refusal as error:
        raise StoreError(f"{connection.address.url} refuses a search: {error}") from None


def settings_in(connection: Connection, names: Names) -> dict[str, Mapping[str, Any]]:
    """Return the settings of all indices of a site, closed ones, too, by name."""
    pattern = ",".join(names.pattern(index) for index in indices())
    path = f"/{pattern}/_settings"
    answer = connection.call("GET", path, ignore_unavailable=True, expand_wildcards="open,closed", flat_settings=True)
    return {name: entry.get("settings", {}) for name, entry in sorted(answer.items())}


def is_closed(settings: Mapping[str, Any]) -> bool:
    """Return whether an index is closed, by its settings."""
    return str(settings.get(CLOSED_SETTING)) == "true"


def _whole_of(index: str) -> dict[str, Any]:
    """Return the parameters with which a search of indices has all of them: a closed one is refused, not left out in silence.

    An index of its own may not be there yet.
    """
    return {"expand_wildcards": "open,closed"} if "*" in index else {"ignore_unavailable": True}


def searches(connection: Connection, index: str, bodies: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the answers of several searches, asked in one request; StoreError where one is refused or fails."""
    head = orjson.dumps({"index": index, **_whole_of(index), "allow_partial_search_results": False})
    text = b"".join(head + b"\n" + orjson.dumps(body) + b"\n" for body in bodies)
    try:
        answers: list[Mapping[str, Any]] = connection.call("POST", "/_msearch", text)["responses"]
    except Refusal as error:
        raise StoreError(f"{connection.address.url} refuses a search: {error}") from None
    for answer in answers:
        if "error" in answer:
            if answer["error"].get("type") == CLOSED:
                raise StoreError(closed_in(answer["error"]))
            reason = answer["error"].get("reason")
            raise StoreError(f"{connection.address.url} refuses a search: {answer.get('status')} {reason}")
        _check_whole(connection, answer)
    return answers


def _check_whole(connection: Connection, answer: Mapping[str, Any]) -> None:
    if answer.get("timed_out") or answer.get("_shards", {}).get("failed"):
        raise StoreError(f"{connection.address.url} answers with part of the data only: try again")


def edges(connection: Connection, index: str, query: Query) -> tuple[int, int] | None:
    """Return the starts in ms of the first and the last document that a query finds; None where there is none."""
    aggs = {"first": {"min": {"field": "@timestamp"}}, "last": {"max": {"field": "@timestamp"}}}
    found = search(connection, index, {"size": 0, "query": query, "aggs": aggs}).get("aggregations")
    if not found or found["first"]["value"] is None:
        return None
    return int(found["first"]["value"]), int(found["last"]["value"])


def every(query: Query, source: Any = ()) -> dict[str, Any]:
    """Return the search for all documents that a query finds, for kinds of documents of which there are few."""
    return {"size": MOST_HITS, "query": query, "_source": source or True, "track_total_hits": MOST_HITS + 1}


def documents(
    connection: Connection, index: str, query: Query, found: Mapping[str, Any] | None = None, source: Any = ()
) -> list[Mapping[str, Any]]:
    """Return all documents (their `_source`, or what is asked of it) that a query finds: see `hits_of`."""
    return [hit["_source"] for hit in hits_of(connection, index, query, found, source)]


def hits_of(
    connection: Connection, index: str, query: Query, found: Mapping[str, Any] | None = None, source: Any = (), **words: Any
) -> list[Mapping[str, Any]]:
    """Return all hits of a query, for kinds of documents of which there are few.

    `found` is the answer to the search of `every`, where that was asked already.
    """
    first = (found or search(connection, index, {**every(query, source), **words}))["hits"]
    if first["total"]["value"] <= MOST_HITS:
        return list(first["hits"])
    return list(hits(connection, index, query, source or True, **words))


class Expected(NamedTuple):
    """How many documents a query finds, at most, and how many bytes they have."""

    documents: int
    bytes: int


def _page_of(size: float) -> int:
    """Return how many documents of a size in bytes are read at once; the server gives 10,000 at most."""
    return max(1, min(MOST_HITS, int(PAGE_BYTES // max(size, 1))))


@contextmanager
def point_in_time(connection: Connection, index: str) -> Iterator[str | None]:
    """Give the id of a point in time over indices, or None if there is no such index."""
    try:
        opened = connection.call("POST", f"/{index}/_pit", keep_alive=KEEP_ALIVE, **_whole_of(index))
    except Refusal as error:
        if error.status == 404:
            yield None
            return
        raise StoreError(f"{connection.address.url} refuses a point in time: {error}") from None
    name = opened["id"]
    try:
        yield name
    finally:
        with suppress(Exception):  # it ends by itself, and what is being raised already matters more
            connection.once("DELETE", "/_pit", {"id": name})


def hits(connection: Connection, index: str, query: Query, source: Any, **words: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all hits of a query, read in pages of one point in time: one search where a page is enough for them."""
    body = {"query": query, "_source": source, "track_total_hits": False, "size": PAGE, "sort": ["_shard_doc"], **words}
    for page in _pages(connection, index, body, _as_objects, alone=True):
        yield from page


def deletions(connection: Connection, index: str, filters: Sequence[Query]) -> Iterator[bytes]:
    """Yield the bulk lines that delete all documents that meet the filters."""
    for hit in hits(connection, index, {"bool": {"filter": list(filters)}}, source=False):
        yield deletion(hit["_index"], hit["_id"])


def columns(
    connection: Connection,
    index: str,
    query: Query,
    source: Sequence[str],
    sort: Sequence[Any] = ("_shard_doc",),
    expected: Expected | None = None,
) -> Iterator[Documents]:
    """Yield all documents of a query in columns, some at a time, in pages of one point in time.

    A page has as many as fit into PAGE_BYTES, by what is `expected` at first, then by those that came before.
    """
    size = PAGE if expected is None else _page_of(expected.bytes / max(expected.documents, 1))
    body = {"query": query, "_source": list(source), "track_total_hits": False, "size": size, "sort": list(sort)}
    alone = expected is None or expected.documents < size
    for page in _pages(connection, index, body, _search_columns, alone=alone):
        yield from page.documents()


def _pages(connection: Connection, index: str, body: Mapping[str, Any], ask: Ask[Content], *, alone: bool) -> Iterator[Content]:
    """Yield the hits of a search in pages; `alone` tries first whether one search is enough."""
    size: int = body["size"]
    if alone:
        ordered = [entry for entry in body["sort"] if entry != "_shard_doc"]
        page = ask(connection, index, {**body, "sort": ordered or ["_doc"]})
        if page.hits < size:
            if page.hits:
                yield page.content
            return
        size = _next_size(page, size)
    with point_in_time(connection, index) as opened:
        pit: str | None = opened
        after: dict[str, Any] = {}
        while pit is not None:
            at = {"size": size, "pit": {"id": pit, "keep_alive": KEEP_ALIVE}}
            page = ask(connection, None, {**body, **at, **after})
            pit = page.point or pit
            if page.hits:
                yield page.content
            if page.hits < size:
                return
            after, size = {"search_after": page.after}, _next_size(page, size)


def _next_size(page: Page[Any], size: int) -> int:
    """Return how many documents the next page is to have; those of Python objects, whose size is not known, as many always."""
    return _page_of(page.size / page.hits) if page.size else size
