"""Queries of one field: which documents of a view have a value that fits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.doubles.elasticsearch.columns import NUMERIC, View
from tests.doubles.elasticsearch.dates import DEFAULT_FORMAT, NotADate, millis_of
from tests.doubles.elasticsearch.errors import CannotDo, ShardFailure, query_shard
from tests.doubles.elasticsearch.mapping import WHOLE, Field

Json = Any
NO_SEARCH = "[histogram] field do not support searching, use dedicated aggregations instead: [{}]"
LONG = 2**63
WORDS = {"keyword", "flattened"}
SIDES: dict[str, Any] = {"gte": np.greater_equal, "gt": np.greater, "lte": np.less_equal, "lt": np.less}


def everything(view: View) -> np.ndarray:
    """Return all documents."""
    return np.ones(len(view), dtype=bool)


def nothing(view: View) -> np.ndarray:
    """Return no document."""
    return np.zeros(len(view), dtype=bool)


def _mark(view: View, documents: np.ndarray) -> np.ndarray:
    mask = nothing(view)
    mask[documents] = True
    return mask


def words(view: View, path: str, fits: Callable[[str], bool]) -> np.ndarray:
    """Return the documents with a word that fits."""
    column = view.words(path)
    fitting = np.array([fits(word) for word in column.words], dtype=bool)
    return _mark(view, column.documents[fitting[column.codes]] if len(fitting) else column.documents[:0])


def _kinds(view: View, path: str) -> dict[str, Field]:
    kinds = {item.kind: item for item in view.fields(path)}
    if "histogram" in kinds:
        raise query_shard(NO_SEARCH.format(path))
    if "text" in kinds:
        raise CannotDo(f"searching the text field [{path}]")
    for item in kinds.values():
        if item["index"] is False:
            raise CannotDo(f"searching the field [{path}] that is not indexed")
    return kinds


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def equal(view: View, path: str, values: list[Any], now: int) -> np.ndarray:
    """Return the documents with one of some values."""
    wanted = {_word(value) for value in values}
    if path in ("_id", "_index"):
        return words(view, path, lambda word: word in wanted)
    found = nothing(view)
    kinds = _kinds(view, path)
    if kinds.keys() & WORDS:
        found |= words(view, path, lambda word: word in wanted)
    numeric = [item for kind, item in kinds.items() if kind in NUMERIC]
    if not numeric:
        return found
    column = view.numbers(path)
    if numeric[0].kind == "date":  # a date without a time stands for its whole day
        inside = np.zeros(len(column.values), dtype=bool)
        for value in values:
            first, last = (_date(numeric[0], value, None, now, up=up) for up in (False, True))
            inside |= (column.values >= first) & (column.values <= last)
    else:
        numbers = [number for value in values for number in _number(numeric[0], value)]
        inside = np.isin(column.values, np.array(numbers, dtype=column.values.dtype))
    found |= _mark(view, column.documents[inside])
    return found


def phrase(view: View, path: str, value: Any, now: int) -> np.ndarray:
    """Return the documents whose keyword, number or boolean is a value; text, which is cut into words, is not done."""
    if "text" in _kinds(view, path):
        raise CannotDo("query [match_phrase] on a text field")
    return equal(view, path, [value], now)


def _number(item: Field, value: Any) -> list[Any]:
    if item.kind == "boolean":
        if value in (True, False, "true", "false"):
            return [value in (True, "true")]
        raise query_shard(f"Can't parse boolean value [{value}], expected [true] or [false]")
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        reason = f'For input string: "{value}"'
        cause = {"type": "number_format_exception", "reason": reason}
        failed = {"type": "query_shard_exception", "reason": f"failed to create query: {reason}", "caused_by": cause}
        raise ShardFailure(400, failed, repeated=False, per_index=True) from error
    if item.kind in WHOLE:
        whole = value if isinstance(value, int) else int(number)
        return [whole] if number == int(number) and -LONG <= whole < LONG else []
    return [float(np.float32(number)) if item.kind == "float" else number]


def _date(item: Field, value: Any, pattern: str | None, now: int, *, up: bool = False) -> int:
    wanted = pattern or item["format"] or DEFAULT_FORMAT
    try:
        return millis_of(value, wanted, up=up, now=now)
    except NotADate as error:
        reason = f"failed to parse date field [{value}] with format [{wanted}]"
        inner = {"type": "date_time_parse_exception", "reason": "Failed to parse with all enclosed parsers"}
        cause = {"type": "illegal_argument_exception", "reason": reason, "caused_by": inner}
        failed = {
            "type": "parse_exception",
            "reason": f"{reason}: [Failed to parse with all enclosed parsers]",
            "caused_by": cause,
        }
        raise ShardFailure(400, failed, repeated=False) from error


def in_range(view: View, path: str, bounds: Json, pattern: str | None, now: int) -> np.ndarray:
    """Return the documents with a value within bounds: gte, gt, lte, lt."""
    if path in ("_id", "_index"):
        raise CannotDo(f"query [range] on [{path}]")
    if any(item.kind == "histogram" for item in view.fields(path)):
        raise query_shard(f"Field [{path}] of type [histogram] does not support range queries")
    found = nothing(view)
    kinds = _kinds(view, path)
    if kinds.keys() & WORDS:
        found |= words(view, path, lambda word: all(_compare(name, word, str(limit)) for name, limit in bounds.items()))
    numeric = [item for kind, item in kinds.items() if kind in NUMERIC]
    if numeric:
        column = view.numbers(path)
        inside = np.ones(len(column.values), dtype=bool)
        for name, limit in bounds.items():
            inside &= SIDES[name](column.values, _limit(numeric[0], name, limit, pattern, now))
        found |= _mark(view, column.documents[inside])
    return found


def _limit(item: Field, name: str, limit: Any, pattern: str | None, now: int) -> Any:
    if item.kind == "boolean":
        raise CannotDo("query [range] on a boolean")
    if item.kind == "date":
        return _date(item, limit, pattern, now, up=name in ("gt", "lte"))
    number = _number(item, limit)
    return number[0] if number else float(limit)


def _compare(name: str, word: str, limit: str) -> bool:
    return {"gte": word >= limit, "gt": word > limit, "lte": word <= limit, "lt": word < limit}[name]


def existing(view: View, path: str) -> np.ndarray:
    """Return the documents that have the field, or for an object one below it."""
    if path in ("_id", "_index"):
        return everything(view)
    parts = [np.empty(0, dtype=bool)]
    for reader in view.readers:
        own = reader.field(path)
        if own is not None and own.kind == "text":
            raise CannotDo("query [exists] on a text field")
        paths = [path] if own is not None or path == "_ignored" else [item.path for item in reader.index.mapping.below(path)]
        columns = [reader.holds(one) for one in paths]
        parts.append(np.logical_or.reduce(columns) if columns else np.zeros(len(reader), dtype=bool))
    return np.concatenate(parts)


def matching(view: View, path: str, fits: Callable[[str], bool]) -> np.ndarray:
    """Return the documents with a word that fits a pattern."""
    if path == "_id":
        raise CannotDo("patterns on [_id]")
    if path != "_index":
        others = _kinds(view, path).keys() - WORDS
        if others:
            kind = min(others)
            reason = (
                f"Can only use prefix queries on keyword, text and wildcard fields - not on [{path}] which is of type [{kind}]"
            )
            raise query_shard(reason, cause=False)
    return words(view, path, fits)


def wildcard(text: str) -> re.Pattern[str]:
    """Return the expression of a wildcard: * and ?, a backslash takes the next character as it is."""
    parts, place = [], 0
    while place < len(text):
        char = text[place]
        if char == "\\" and place + 1 < len(text):
            place += 1
            parts.append(re.escape(text[place]))
        else:
            parts.append({"*": ".*", "?": "."}.get(char) or re.escape(char))
        place += 1
    return re.compile("".join(parts), re.DOTALL)
