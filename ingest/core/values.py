"""What frozen records that every start makes have in common: one `==`, hash and text for all, in place of one compiled for each.

A dataclass compiles its methods from text when it is made: half of what making it takes are those three. So a class that each
start of a command makes is a `Value`, made with `eq=False, repr=False`; what is a key of large tables (`Series`, layouts) is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter, index
from typing import Any

from ingest.core.errors import UsageError


class Value:
    """Base of frozen dataclasses: equal if of one class and equal in all fields."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        told = _fields(self)
        return bool(told(self) == told(other))

    def __hash__(self) -> int:
        return hash(_fields(self)(self))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)  # type: ignore[attr-defined]  # a dataclass's
        return f"{self.__class__.__qualname__}({shown})"


_known: dict[type[Value], attrgetter[Any]] = {}


def _fields(value: Value) -> attrgetter[Any]:
    """Return what gives the fields of values of a class."""
    kind = value.__class__
    if kind not in _known:
        _known[kind] = attrgetter(*kind.__match_args__)  # type: ignore[attr-defined]  # a dataclass's
    return _known[kind]


# What callers of the Python interface give: the one meaning that it can have, or UsageError.


def several(value: Any, kind: type | tuple[type, ...], what: str, example: str) -> tuple[Any, ...]:
    """Return values of a kind as a tuple, one of them as a tuple of one; UsageError, with an `example`, for anything else."""
    if isinstance(value, kind):
        return (value,)
    values = tuple(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes, dict)) else (None,)
    if any(not isinstance(one, kind) for one in values):
        raise UsageError(f"{what} takes {example}, not {value!r}")
    return values


def one_of(kind: type | tuple[type, ...], value: Any, what: str, example: str) -> Any:
    """Return a value of a kind; UsageError, with an `example`, for anything else."""
    if not isinstance(value, kind):
        raise UsageError(f"{what} takes {example}, not {value!r}")
    return value


def at_least(least: int, value: Any, what: str) -> int:
    """Return a whole number of 64 bits, also one of NumPy; UsageError for anything else, and for one below the least."""
    try:
        number = least - 1 if isinstance(value, bool) else index(value)
    except TypeError:
        number = least - 1
    if not least <= number < 1 << 63:
        raise UsageError(f"{what} takes a whole number from {least} {'on' if number < least else 'to 2^63 - 1'}, not {value!r}")
    return number


def true_or_false(record: object, names: Iterable[str]) -> None:
    """Check some fields of a record; UsageError for one that is neither True nor False, as for the text "no"."""
    for name in names:
        one_of(bool, getattr(record, name), name, "True or False")
