"""The histogram field as the server parses it: measured case by case, see `test_histogram_parser.py`.

    {"values": [100, 200], "counts": [3, 7]}

Equal neighbours and negative values pass; fractions of counts are cut off; strings are refused; bins without counts stay in the
source only. Positions are those of the token at which the server gives up.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.doubles.elasticsearch.hdr import LONG_MAX, java_double
from tests.doubles.elasticsearch.tokens import Broken, Token, Tokens

Bins = tuple[np.ndarray, np.ndarray]


class Malformed(Exception):
    """A histogram that the server refuses; `error` is the cause inside "failed to parse field"."""

    def __init__(self, error: dict[str, object], token: Token) -> None:
        super().__init__(error["reason"])
        self.error = error
        self.token = token


def _wrong(path: str, why: str, token: Token) -> Malformed:
    reason = f"[{token.line}:{token.column}] error parsing field [{path}], {why}"
    return Malformed({"type": "document_parsing_exception", "reason": reason}, token)


def _expect(kind: str, token: Token) -> Token:
    if token.kind != kind:
        reason = f"Failed to parse object: expecting token of type [{kind}] but found [{token.kind}]"
        raise Malformed({"type": "parsing_exception", "reason": reason, "line": token.line, "col": token.column}, token)
    return token


def _values(path: str, tokens: Iterator[Token]) -> list[float]:
    found: list[float] = []
    for token in tokens:
        if token.kind == "END_ARRAY":
            break
        number = _expect("VALUE_NUMBER", token).value
        value = float(number) if abs(number) < 10**309 else float("inf")
        if found and value < found[-1]:
            why = f"[values] values must be in increasing order, got [{java_double(value)}] but previous value was [{java_double(found[-1])}]"
            raise _wrong(path, why, token)
        found.append(value)
    return found


def _counts(path: str, tokens: Iterator[Token], source: Tokens) -> list[int]:
    found: list[int] = []
    for token in tokens:
        if token.kind == "END_ARRAY":
            break
        number = _expect("VALUE_NUMBER", token).value
        if abs(number) > LONG_MAX and number != -LONG_MAX - 1:
            raise Malformed(_too_long(token, source), token)
        count = int(number)
        if count < 0:
            raise _wrong(path, f"[counts] elements must be >= 0 but got {count}", token)
        found.append(count)
    return found


def _too_long(token: Token, source: Tokens) -> dict[str, object]:
    message = f"Numeric value ({token.text}) out of range of long (-9223372036854775808 - 9223372036854775807)"
    return Broken(
        "x_content_parse_exception", "input_coercion_exception", message, source.text, token.line, token.column + len(token.text)
    ).error


def parse(path: str, first: Token, tokens: Iterator[Token], source: Tokens) -> Bins:
    """Return the bins that count something: values (float64) and counts (int64). Raise `Malformed` or `Broken`."""
    _expect("START_OBJECT", first)
    values: list[float] | None = None
    counts: list[int] | None = None
    last = first
    for name in tokens:
        last = name
        if name.kind == "END_OBJECT":
            break
        if name.value not in ("values", "counts"):
            raise _wrong(path, f"with unknown parameter [{name.value}]", name)
        _expect("START_ARRAY", next(tokens))
        if name.value == "values":
            values = _values(path, tokens)
        else:
            counts = _counts(path, tokens, source)
    if values is None:
        raise _wrong(path, "expected field called [values]", last)
    if counts is None:
        raise _wrong(path, "expected field called [counts]", last)
    if len(values) != len(counts):
        raise _wrong(path, f"expected same length from [values] and [counts] but got [{len(values)} != {len(counts)}]", last)
    return kept(np.array(values, dtype=np.float64), np.array(counts, dtype=np.int64))


def kept(values: np.ndarray, counts: np.ndarray) -> Bins:
    """Return the bins without those that count nothing."""
    if counts.size and not counts.all():
        some = counts > 0
        return values[some], counts[some]
    return values, counts


def fast(given: object) -> Bins | None:
    """Return the bins of a histogram without any doubt, else None: then `parse` decides, token by token."""
    if not isinstance(given, dict) or len(given) != 2:
        return None
    values, counts = given.get("values"), given.get("counts")
    if not isinstance(values, list) or not isinstance(counts, list) or len(values) != len(counts):
        return None
    if not values:
        return np.empty(0), np.empty(0, dtype=np.int64)
    try:
        left, right = np.array(values), np.array(counts)
    except (ValueError, OverflowError):
        return None
    if left.ndim != 1 or right.ndim != 1 or left.dtype.kind not in "if" or right.dtype.kind != "i":
        return None
    left = left.astype(np.float64, copy=False)
    if right.min() < 0 or not (left[1:] >= left[:-1]).all() or not np.isfinite(left).all():
        return None
    return kept(left, right)
