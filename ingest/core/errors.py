"""Errors that reach a user, each with the exit status of the command contract.

Every message says what is wrong, where (path:line where there is one) and what to do about it. Only the command line
prints them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # --help does without
    from pathlib import Path

MOST_LISTED = 5


def listed(names: Iterable[str], most: int = MOST_LISTED) -> str:
    """Return names for a sentence: the first `most`, and how many more there are."""
    all_names = list(names)
    more = f" and {len(all_names) - most} more" if len(all_names) > most else ""
    return ", ".join(all_names[:most]) + more


def counted(number: int, noun: str, many: str = "") -> str:
    """Return a number with its noun for a sentence: `1 file`, `2,000 files`; `many` is the plural where it is not noun + s."""
    return f"{number:,} {plural(number, noun, many)}"


def plural(number: int, noun: str, many: str = "") -> str:
    """Return a noun as it stands behind a number: `file` behind 1, else `files`, or `many`."""
    return noun if number == 1 else many or f"{noun}s"


class TailboardError(Exception):
    """An error whose text is a sentence for the user."""

    exit_status = 70


class UsageError(TailboardError):
    """The words of a call do not fit together."""

    exit_status = 2


class InputError(TailboardError):
    """An input is refused: it is not what it claims to be, or cannot be read."""

    exit_status = 3

    def __init__(self, reason: str, path: Path | str | None = None, line: int | None = None) -> None:
        self.reason = reason
        self.path = path
        self.line = line
        where = "" if path is None else f"{path}:{line}: " if line is not None else f"{path}: "
        super().__init__(where + reason)

    def __reduce__(self) -> tuple[object, ...]:
        """Return what pickling needs, so that a worker process can hand the error on whole."""
        return (InputError, (self.reason, self.path, self.line))


class CapacityError(TailboardError):
    """There are more samples than can be counted: none is left out silently, so nothing is answered or stored."""

    exit_status = 3


class StoreError(TailboardError):
    """A store is unavailable or refuses."""

    exit_status = 4


class DeliveryError(TailboardError):
    """A message could not be delivered."""

    exit_status = 4


class RefusedError(DeliveryError):
    """The receiver of a message understood and refused it: sending it again does not help."""
