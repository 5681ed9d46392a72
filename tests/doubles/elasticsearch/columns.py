"""Searchable columns: what a reader holds as arrays, and several readers seen as one.

A column knows for each value the document it belongs to. Values are kept in document order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from tests.doubles.elasticsearch.mapping import WHOLE, Field

if TYPE_CHECKING:
    from tests.doubles.elasticsearch.indices import Index
    from tests.doubles.elasticsearch.shards import Document

REAL = ("double", "float")
NUMERIC = (*WHOLE, *REAL, "date", "boolean")
Ints = np.ndarray
Column = TypeVar("Column")


@dataclass(frozen=True, slots=True)
class Numbers:
    """Values of a number field (int64 for whole numbers, dates and booleans, else float64) and their documents."""

    documents: Ints
    values: np.ndarray


@dataclass(frozen=True, slots=True)
class Words:
    """Codes of a keyword field, their documents, and the words in ascending order that codes number."""

    documents: Ints
    codes: Ints
    words: list[str]


@dataclass(frozen=True, slots=True)
class Bins:
    """Histograms: bins of document d are values[start[d]:start[d+1]]; `present` tells which documents have one."""

    start: Ints
    values: np.ndarray
    counts: np.ndarray
    present: np.ndarray


class Reader:
    """What can be searched of a shard: its documents in order. It never changes, so its columns are made once."""

    def __init__(self, index: Index, shard: int, documents: tuple[Document, ...]) -> None:
        self.index = index
        self.shard = shard
        self.documents = documents
        self._columns: dict[tuple[str, str], Any] = {}

    def __len__(self) -> int:
        return len(self.documents)

    def field(self, path: str) -> Field | None:
        """Return the field as this reader's index maps it."""
        return self.index.mapping.find(path)

    def _raw(self, path: str) -> list[Any]:
        if path == "_ignored":
            return [document.parsed.ignored or None for document in self.documents]
        if path == "_id":
            return [document.identifier for document in self.documents]
        if path == "_index":
            return [self.index.name] * len(self.documents)
        return [document.parsed.fields.get(path) for document in self.documents]

    def _made(self, path: str, kind: str, make: Callable[[], Column]) -> Column:
        key = (path, kind)
        if key not in self._columns:
            self._columns[key] = make()
        return cast("Column", self._columns[key])

    def numbers(self, path: str, *, real: bool) -> Numbers:
        """Return a number field's column."""

        def make() -> Numbers:
            documents, values = _flat(self._raw(path))
            return Numbers(documents, np.array(values, dtype=np.float64 if real else np.int64))

        return self._made(path, "numbers", make)

    def words(self, path: str) -> Words:
        """Return a keyword field's column."""

        def make() -> Words:
            documents, values = _flat(self._raw(path), once=True)
            words = sorted(set(values))
            code = {word: number for number, word in enumerate(words)}
            return Words(documents, np.array([code[value] for value in values], dtype=np.int64), words)

        return self._made(path, "words", make)

    def bins(self, path: str) -> Bins:
        """Return a histogram field's column."""

        def make() -> Bins:
            raw = self._raw(path)
            lengths = np.array([0 if one is None else len(one[0]) for one in raw], dtype=np.int64)
            some = [one for one in raw if one is not None]
            values = np.concatenate([one[0] for one in some]) if some else np.empty(0)
            counts = np.concatenate([one[1] for one in some]) if some else np.empty(0, dtype=np.int64)
            present = np.array([one is not None for one in raw], dtype=bool)
            return Bins(np.concatenate(([0], np.cumsum(lengths))).astype(np.int64), values, counts, present)

        return self._made(path, "bins", make)

    def holds(self, path: str) -> np.ndarray:
        """Return which documents have a value."""
        return self._made(path, "holds", lambda: np.array([value is not None for value in self._raw(path)], dtype=bool))

    @cached_property
    def weights(self) -> Ints:
        """Return each document's `_doc_count`."""
        return np.array([document.parsed.weight for document in self.documents], dtype=np.int64)


def _flat(raw: list[Any], *, once: bool = False) -> tuple[Ints, list[Any]]:
    """Return documents and their values in order; a word that a document repeats is kept once, a number each time."""
    documents: list[int] = []
    values: list[Any] = []
    for number, value in enumerate(raw):
        if isinstance(value, list):
            ordered = sorted(set(value) if once else value)
            documents.extend([number] * len(ordered))
            values.extend(ordered)
        elif value is not None:
            documents.append(number)
            values.append(value)
    return np.array(documents, dtype=np.int64), values


class View:
    """Several readers as one row of documents: document n of reader r is number base[r] + n."""

    def __init__(self, readers: list[Reader]) -> None:
        self.readers = readers
        self.base = np.concatenate(([0], np.cumsum([len(reader) for reader in readers]))).astype(np.int64)
        self._columns: dict[tuple[str, str], Any] = {}

    def __len__(self) -> int:
        return int(self.base[-1])

    def fields(self, path: str) -> list[Field]:
        """Return the field as each index maps it that does, each index once."""
        found: dict[str, Field] = {}
        for reader in self.readers:
            item = reader.field(path)
            if item is not None:
                found.setdefault(reader.index.name, item)
        return list(found.values())

    def _parts(self, path: str, kinds: tuple[str, ...]) -> list[tuple[int, Reader, Field]]:
        found = []
        for place, reader in enumerate(self.readers):
            item = reader.field(path)
            if item is not None and item.kind in kinds:
                found.append((place, reader, item))
        return found

    def _made(self, path: str, kind: str, make: Callable[[str], Column]) -> Column:
        if (path, kind) not in self._columns:
            self._columns[path, kind] = make(path)
        return cast("Column", self._columns[path, kind])

    def numbers(self, path: str) -> Numbers:
        """Return a number field over all readers that map it as one."""
        return self._made(path, "numbers", self._numbers)

    def words(self, path: str) -> Words:
        """Return a keyword field over all readers that map it as one."""
        return self._made(path, "words", self._words)

    def bins(self, path: str) -> Bins:
        """Return a histogram field over all readers that map it as one; other readers' documents have none."""
        return self._made(path, "bins", self._bins)

    def _numbers(self, path: str) -> Numbers:
        parts = self._parts(path, NUMERIC)
        real = any(item.kind in REAL for _, _, item in parts)
        columns = [(place, reader.numbers(path, real=item.kind in REAL)) for place, reader, item in parts]
        documents = [column.documents + self.base[place] for place, column in columns]
        values = [column.values.astype(np.float64) if real else column.values for _, column in columns]
        none = np.empty(0, dtype=np.int64)
        return Numbers(np.concatenate([none, *documents]), np.concatenate(values) if values else np.empty(0))

    def _words(self, path: str) -> Words:
        parts = [(place, reader) for place, reader, _ in self._parts(path, ("keyword", "flattened"))]
        if path in ("_id", "_index", "_ignored"):
            parts = list(enumerate(self.readers))
        columns = [(place, reader.words(path)) for place, reader in parts]
        words = sorted({word for _, column in columns for word in column.words})
        number = {word: code for code, word in enumerate(words)}
        recoded = [np.array([number[word] for word in column.words], dtype=np.int64) for _, column in columns]
        codes = [new[column.codes] for new, (_, column) in zip(recoded, columns)]
        documents = [column.documents + self.base[place] for place, column in columns]
        none = np.empty(0, dtype=np.int64)
        return Words(np.concatenate([none, *documents]), np.concatenate([none, *codes]), words)

    def _bins(self, path: str) -> Bins:
        mapped = {place for place, _, _ in self._parts(path, ("histogram",))}
        none = np.empty(0, dtype=np.int64)
        lengths, values, counts, present = [none], [np.empty(0)], [none], [np.empty(0, dtype=bool)]
        for place, reader in enumerate(self.readers):
            if place in mapped:
                column = reader.bins(path)
                lengths.append(np.diff(column.start))
                values.append(column.values)
                counts.append(column.counts)
                present.append(column.present)
            else:
                lengths.append(np.zeros(len(reader), dtype=np.int64))
                present.append(np.zeros(len(reader), dtype=bool))
        start = np.concatenate(([0], np.cumsum(np.concatenate(lengths)))).astype(np.int64)
        return Bins(start, np.concatenate(values), np.concatenate(counts), np.concatenate(present))

    @cached_property
    def weights(self) -> Ints:
        """Return each document's `_doc_count`."""
        return np.concatenate([np.empty(0, dtype=np.int64), *(reader.weights for reader in self.readers)])

    def document(self, number: int) -> tuple[Reader, Document]:
        """Return a document and its reader."""
        place = int(np.searchsorted(self.base, number, side="right")) - 1
        reader = self.readers[place]
        return reader, reader.documents[number - int(self.base[place])]
