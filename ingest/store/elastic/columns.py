"""The histograms of an answer as columns: their numbers are read from the text at once, and never become an object each.

    {"values":[120320,122368],"counts":[95,2]}   ->   0, and 120320, 122368 | 95, 2 in `Histograms`

A page of 10,000 documents holds millions of numbers; as Python's they take most of the time of an answer and four times the
memory. What is not written as a server writes it (blanks, fractions, another order) is decoded as any JSON.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ingest.core.csr import gather
from ingest.core.intervals import Int
from ingest.http import Answer

OPENING, MIDDLE, CLOSING = b'{"values":[', b'],"counts":[', b"]}"
DOCUMENTS_AT_ONCE = 200  # so that their text and their numbers stay in the cache

Span = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Histograms:
    """The histograms of a page, in CSR form: row i is `values[indptr[i]:indptr[i + 1]]` with as many counts."""

    indptr: Int = field(default_factory=lambda: np.zeros(1, np.int64))
    values: Int = field(default_factory=lambda: np.empty(0, np.int64))
    counts: Int = field(default_factory=lambda: np.empty(0, np.int64))

    def of(self, bodies: Sequence[Any]) -> tuple[Int, Int, Int]:
        """Return row pointers, values and counts of histograms as documents have them: numbers of rows, or values and counts."""
        if bodies and isinstance(bodies[0], int):
            rows = np.array(bodies, np.int64)
            if len(rows) == len(self.indptr) - 1 and np.array_equal(rows, np.arange(len(rows))):
                return self.indptr, self.values, self.counts
            indptr, entries = gather(self.indptr, rows)
            return indptr, self.values[entries], self.counts[entries]
        widths = np.fromiter((len(body["values"]) for body in bodies), np.int64, len(bodies))
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)])
        total = int(indptr[-1])
        values, counts = (
            np.fromiter(chain.from_iterable(body[name] for body in bodies), np.int64, total) for name in ("values", "counts")
        )
        return indptr, values, counts


class Page(NamedTuple):
    """The hits of an answer, their histograms, and how many bytes it had."""

    hits: Sequence[Mapping[str, Any]]
    histograms: Histograms
    size: int

    @property
    def sources(self) -> list[Mapping[str, Any]]:
        """Return the `_source` of each hit: where it had a histogram that is read already, it has its number."""
        return [hit["_source"] for hit in self.hits]


class Columns(NamedTuple):
    """An answer without the numbers of its histograms, these, and how many bytes it had."""

    answer: Mapping[str, Any]
    histograms: Histograms
    size: int


def columns_of(answer: Answer) -> Columns:
    """Return the answer to a search in columns; TransientError for JSON that is cut off."""
    body = answer.body
    spans = list(_spans(body))
    histograms = _read(body, spans) if spans else None
    if histograms is None:
        return Columns(answer.decoded(), Histograms(), len(body))
    texts: list[bytes] = []
    before = 0
    for number, (begin, _, end) in enumerate(spans):
        texts += (body[before:begin], b"%d" % number)
        before = end
    texts.append(body[before:])
    return Columns(Answer(answer.status, answer.headers, b"".join(texts)).decoded(), histograms, len(body))


def _spans(body: bytes) -> Iterator[Span]:
    """Yield where each histogram begins, where its values end and where it ends; none of an answer with any in another form."""
    at = 0
    while (begin := body.find(OPENING, at)) >= 0:
        middle = body.find(b"]", begin)
        end = body.find(b"]", middle + 1) + 1
        if not body.startswith(MIDDLE, middle) or body[end : end + 1] != b"}":
            at = begin + len(OPENING)  # decoded as it is
            continue
        at = end + 1
        yield begin, middle, at


def _read(body: bytes, spans: Sequence[Span]) -> Histograms | None:
    """Return the histograms at some places of a text; None where any of them holds something else than whole numbers."""
    parts = []
    for first in range(0, len(spans), DOCUMENTS_AT_ONCE):
        part = _read_some(body, spans[first : first + DOCUMENTS_AT_ONCE])
        if part is None:
            return None
        parts.append(part)
    widths, values, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Histograms(np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)]), values, counts)


def _read_some(body: bytes, spans: Sequence[Span]) -> tuple[Int, Int, Int] | None:
    """Return how many bins each histogram has (a server takes none with unlike lengths), the values and the counts of all."""
    texts = [body[begin + len(OPENING) : middle] for begin, middle, _ in spans]
    widths = np.array([text.count(b",") + 1 if text else 0 for text in texts], np.int64)
    total = int(widths.sum())
    values = _numbers(texts, total)
    counts = _numbers([body[middle + len(MIDDLE) : end - len(CLOSING)] for _, middle, end in spans], total)
    return None if values is None or counts is None else (widths, values, counts)


def _numbers(texts: Sequence[bytes], total: int) -> Int | None:
    """Return the numbers of all texts; None where they are other than `total` whole numbers."""
    joined = b",".join([*filter(None, texts), b"0"])  # what stands behind the last number would not be seen
    if joined.count(b",") != total:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # NumPy warns of text that it cannot read to its end
            # As it is told how many there are, NumPy need not let an array grow: that takes half the time.
            numbers: Int = np.fromstring(joined, np.int64, total + 1, sep=",")
    except (ValueError, DeprecationWarning):
        return None
    return numbers[:-1]
