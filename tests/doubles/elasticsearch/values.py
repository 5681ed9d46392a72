"""Values of plain fields: what a token becomes in a field, and the server's reason if it cannot."""

from __future__ import annotations

import re
from typing import Any

from tests.doubles.elasticsearch.dates import DEFAULT_FORMAT, NotADate, millis_of
from tests.doubles.elasticsearch.errors import CannotDo
from tests.doubles.elasticsearch.mapping import WHOLE, Field
from tests.doubles.elasticsearch.tokens import Token

Json = Any


class Rejected(Exception):
    """A document that the server refuses; `error` is the error object of its item."""

    def __init__(self, kind: str, reason: str, cause: Json = None) -> None:
        super().__init__(reason)
        self.error: Json = {"type": kind, "reason": reason}
        if cause is not None:
            self.error["caused_by"] = cause


def unfit(known: Field, token: Token, identifier: str, reason: str, preview: str, cause: Json = None) -> Rejected:
    """Return the refusal of a value that its field cannot take."""
    error: Json = {"type": "illegal_argument_exception", "reason": reason}
    if cause:
        error["caused_by"] = cause
    text = f"failed to parse field [{known.path}] of type [{known.kind}] in document with id '{identifier}'. Preview of field's value: '{preview}'"
    return Rejected("document_parsing_exception", f"[{token.line}:{token.column}] {text}", error)


def converted(known: Field, token: Token, identifier: str) -> Any:
    """Return the value that a field keeps of a token; raise `Rejected`."""
    kind, value, text = known.kind, token.value, token.text
    shown = value if isinstance(value, str) else text
    if kind in ("keyword", "text"):
        if len(shown.encode()) > 32766:
            raise CannotDo("a term of more than 32766 bytes")
        return shown
    if kind == "date":
        pattern = known["format"] or DEFAULT_FORMAT
        try:
            return millis_of(shown, pattern)
        except NotADate as error:
            inner = {"type": "date_time_parse_exception", "reason": "Failed to parse with all enclosed parsers"}
            raise unfit(
                known, token, identifier, f"failed to parse date field [{shown}] with format [{pattern}]", shown, inner
            ) from error
    if kind == "boolean":
        if value in (True, False) and token.kind == "VALUE_BOOLEAN":
            return value
        if value in ("true", "false", ""):
            return value == "true"
        raise unfit(known, token, identifier, f"Failed to parse value [{shown}] as only [true] or [false] are allowed.", shown)
    return _number(known, token, identifier)


def _number(known: Field, token: Token, identifier: str) -> int | float:
    shown = token.value if isinstance(token.value, str) else token.text
    if token.kind == "VALUE_BOOLEAN" or (isinstance(token.value, str) and known["coerce"] is False):
        raise unfit(
            known, token, identifier, f"Current token ({token.kind}) not numeric, can not use numeric value accessors", shown
        )
    try:
        number = int(shown) if re.fullmatch(r"[+-]?\d+", shown) else float(shown)
    except ValueError as error:
        raise unfit(known, token, identifier, f'For input string: "{shown}"', shown) from error
    bits = WHOLE.get(known.kind)
    if bits is None:
        real = float(number) if abs(number) < 10**309 else float("inf")
        if real in (float("inf"), float("-inf")) or real != real or (known.kind == "float" and abs(real) > 3.4028235677973366e38):
            raise unfit(known, token, identifier, f"[{known.kind}] supports only finite values, but got [{shown}]", shown)
        return real
    if number != number or not -(2**bits) <= int(number) < 2**bits:
        raise unfit(known, token, identifier, f"Value [{shown}] is out of range for a {known.kind}", shown)
    if isinstance(number, float) and number != int(number) and known["coerce"] is False:
        raise unfit(known, token, identifier, f"{shown} cannot be converted to {known.kind} without data loss", shown)
    return int(number)


def guess(token: Token) -> str:
    """Return the type that a new field gets from its first value."""
    if token.kind == "VALUE_BOOLEAN":
        return "boolean"
    if token.kind == "VALUE_NUMBER":
        return "long" if isinstance(token.value, int) else "float"
    if re.match(r"\d{4}(-\d{2}(-\d{2})?)?($|T)|\d{4}/\d{2}/\d{2}", token.value):
        if "/" in token.value:
            raise CannotDo("dynamic date formats with slashes")
        try:
            millis_of(token.value, "strict_date_optional_time")
        except NotADate:
            return "text"
        return "date"
    return "text"
