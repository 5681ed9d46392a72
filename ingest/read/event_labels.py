"""Labels of events in Arrow's dictionaries -> the series that they are of, coded; Python sees each combination but once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ingest.core.intervals import Bool, Int
from ingest.core.series import Series

MOST_SERIES = 10_000
TOO_MANY = f"more than {MOST_SERIES:,} series: such labels name single operations, not streams"


class SeriesTable:
    """The series met so far in one file, in the order in which they came."""

    def __init__(self, series_of: Callable[[Mapping[str, str]], Series | None]) -> None:
        """Make series of labels by `series_of`; it gives None for labels that are of no series."""
        self._series_of = series_of
        self._codes: dict[tuple[str, ...], int] = {}
        self._table: dict[Series, int] = {}

    @property
    def table(self) -> tuple[Series, ...]:
        """Return the series by code."""
        return tuple(self._table)

    def codes(self, columns: Mapping[str, Any], rows: int) -> Int:
        """Return the code of each row's series; -1 for a row of no series, -2 where there are too many.

        `columns` are dictionary arrays of text by label; a missing value is empty text.
        """
        if not columns:
            return np.full(rows, self._code((), {}), np.int64)
        parts, words = zip(*(_coded(column) for column in columns.values()), strict=True)
        combined = np.zeros(rows, np.int64)
        for codes, names in zip(parts, words, strict=True):
            combined = combined * len(names) + codes
        met, place = np.unique(combined, return_inverse=True)
        met_codes = []
        for number in met.tolist():
            labels, rest = [], number
            for names in reversed(words):
                rest, code = divmod(rest, len(names))
                labels.append(names[code])
            key = tuple(reversed(labels))
            met_codes.append(self._code(key, dict(zip(columns, key, strict=True))))
        codes_of_met: Int = np.array(met_codes, np.int64)
        return codes_of_met[place.reshape(-1)]

    def _code(self, key: tuple[str, ...], labels: Mapping[str, str]) -> int:
        known = self._codes.get(key)
        if known is not None:
            return known
        if len(self._codes) >= MOST_SERIES:
            return -2
        series = self._series_of(labels)
        code = -1 if series is None else self._table.setdefault(series, len(self._table))
        self._codes[key] = code
        return code


def _coded(column: Any) -> tuple[Int, list[str]]:
    """Return the codes of a dictionary column and its words, the last of them for missing values."""
    values = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if hasattr(values, "num_chunks"):  # a chunked array of one chunk
        values = values.chunk(0)
    words = values.dictionary
    if str(words.type) in ("string", "large_string"):  # of JSON, where pyarrow takes any bytes for text
        words = words.cast("binary")
    words = [_text(word) for word in words.to_pylist()]
    indices = values.indices.fill_null(len(words))
    codes = np.frombuffer(indices.buffers()[1], np.int32)[indices.offset : indices.offset + len(indices)].astype(np.int64)
    return codes, [*words, ""]


def _text(word: Any) -> str:
    text = word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word)
    return "".join(mark for mark in text.strip() if mark.isprintable())


def taken(codes: Int) -> Bool:
    """Return which rows are of a series."""
    of_series: Bool = codes >= 0
    return of_series
