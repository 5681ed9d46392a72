"""Values in records, as descriptions name them: edges, times and words, exact whatever they are written as."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ingest.core.timing import iso_ns
from ingest.read.histograms.description import UNITS
from ingest.read.histograms.lines import WrongError

NO_TIME = "no time where the description says"
WORDS_OPEN = ("+inf", "inf", "infinity", "")


def as_word(value: Any) -> str:
    """Return a value as text, empty text for none."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def decoded(value: Any) -> Any:
    """Return a Python literal with bytes as text and floats as exact decimals of what was written."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, dict):
        return {as_word(decoded(key)): decoded(entry) for key, entry in value.items()}
    return [decoded(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def numeral(value: Any) -> Any:
    """Return a number without the blanks around its text."""
    return value.strip() if isinstance(value, str) else value


def bound_ns(value: Any, unit: Fraction) -> Fraction | None:
    """Return an edge in ns, None of one that is open; WrongError where it is no number."""
    if value is None or (isinstance(value, str) and value.strip().lower() in WORDS_OPEN):
        return None
    try:
        number = Decimal(as_word(value).strip())
        if not number.is_finite():
            return None
        if abs(number) > 10**22 or (number and abs(number) < Decimal("1e-30")):
            raise WrongError("an edge or time out of range")
        return Fraction(number) * unit
    except ArithmeticError:
        raise WrongError(f"{as_word(value)[:40]!r} is no number") from None


def stamp_ns(value: Any, unit: str, zone: str) -> int:
    """Return a time in ns since 1970; WrongError where it is none."""
    if value is None:
        raise WrongError(NO_TIME)
    text = as_word(value).strip()
    if unit in UNITS:
        number = bound_ns(text, UNITS[unit])
        if number is None or abs(number) > 2**62:
            raise WrongError(f"{text[:40]!r} is no time")
        return int(number // 1)
    if unit != "iso":
        try:
            text = datetime.strptime(text, unit).isoformat()  # noqa: DTZ007 - its zone follows
        except ValueError:
            raise WrongError(f"{text[:40]!r} is no time as described") from None
    stamp = iso_ns(text if not zone or re.search(r"(Z|[-+]\d\d:?\d\d)$", text) else text + zone)
    if stamp is None:
        raise WrongError(f"{text[:40]!r} is no time")
    return stamp
