"""The documents of an answer as columns: their numbers in arrays; of documents that differ in numbers alone one is decoded.

    {"_index":"x","_id":"y","_source":{"@timestamp":17,"operation":"read",
     "latency":{"count":97,"histogram":{"values":[5,9],"counts":[95,2]}}},"sort":[1]}

    a shape     {"@timestamp":0,"operation":"read","latency":{"count":1,"histogram":{"cut":null}}}
    numbers     17, 97                the shape has their places
    histogram   5, 9 | 95, 2

A page of 10,000 documents holds millions of numbers and some dozen shapes. As Python's objects they take most of the time of an
answer, and four times the memory. What is not written as a server writes it (blanks, fractions, another order) is decoded as any
JSON and written anew.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from ingest.core.csr import gather
from ingest.core.errors import StoreError
from ingest.core.intervals import Bool, Int
from ingest.http import Answer

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
