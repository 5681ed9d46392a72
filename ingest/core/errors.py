"""Errors that reach a user, each with its exit status, words that a wrong word resembles, and text from outside as shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


# Errors that reach a user, each with the exit status of the command contract.
#
# Every message says what is wrong, where (path:line where there is one) and what to do about it. Only the command line
# prints them.


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


# Words that nobody knows: the known ones that they resemble, for the sentence that refuses them.


ALIKE = 0.6  # difflib's own measure of what is close
GLOB = re.compile(r"[*?\[\]]")


def suggestions(word: str, known: Iterable[str]) -> list[str]:
    """Return known words, those most like `word` first; equals in their order. What globs stand for is left out of account."""
    ranked = sorted(((likeness(word, name), name) for name in dict.fromkeys(known)), key=lambda pair: -pair[0])
    return [name for _, name in ranked]


def likeness(word: str, name: str) -> float:
    """Return how alike two words are, 0 to 1, whatever their case; of a path its parts are looked at, too."""
    from difflib import SequenceMatcher  # for errors alone, and each import takes its time

    plain = GLOB.sub("", word).casefold()
    parts = {name.casefold(), *name.casefold().split("/")} - {""}
    return max((SequenceMatcher(None, plain, part).ratio() for part in parts), default=0.0)


def meant(word: str, known: Iterable[str]) -> str:
    """Return `do you mean NAME?` for the known word that is most like this one, empty where none is near."""
    near = suggestions(word, known)[:1]
    return f"do you mean {near[0]}?" if near and likeness(word, near[0]) >= ALIKE else ""


def choices(word: str, known: Iterable[str], *, most: int = MOST_LISTED) -> str:
    """Return what a sentence says behind `no ... WORD:`, the known word that is meant and which ones there are.

    `do you mean host? There are host, op and 3 more`, the nearest first; where none is near, `there are ...` in their order.
    """
    names = list(dict.fromkeys(known))
    if not names:
        return "there is none"
    question = meant(word, names)
    if question:
        return question if len(names) == 1 else f"{question} There are {listed(suggestions(word, names), most)}"
    return f"there {'is' if len(names) == 1 else 'are'} {listed(names, most)}"


def marks_for(glob: str, texts: Iterable[str]) -> str:
    """Return what a sentence says of the marks of a run, none of which a glob matches: `its marks: 'osd.3 down'`."""
    names = suggestions(glob, texts)
    question = meant(glob, names)
    return f"{question} {'I' if question else 'i'}ts marks: {listed(map(repr, names)) or 'none'}".strip()


# Text from outside (names of files, labels) as it can be stored and shown.
#
# b"caf\xe9.log", which is no UTF-8       ->     caf\xe9.log          stored, shown
# "a\x1b[31m.log", which colours a terminal ->     a\x1b[31m.log        shown; csv, ndjson and stores have it as it is


BYTES_FROM, BYTES_TO = 0xDC80, 0xDCFF  # how Python keeps bytes of file names that are no UTF-8
NO_UNICODE = "[\ud800-\udfff]"
# Control characters, marks that turn the direction of text, separators of lines: they move the cursor or forge a line. Python
# calls none of them printable. XML has no control characters either, and its programs end where they meet one.
CONTROLS = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
NUMBERED = rb"\\x([89a-f][0-9a-f])"

STANDS_FOR: dict[str, str] = {}  # what people know the files as that this program made, by path


def as_text(name: Path | str) -> str:
    """Return a name that is Unicode throughout: bytes that are no UTF-8 stand as their numbers."""
    text = str(name)
    return text if text.isascii() else re.sub(NO_UNICODE, lambda match: _number(match[0]), text)


def as_path(text: str) -> Path:
    """Return the path that `as_text` was given: as it is written, else with the bytes that its numbers stand for."""
    from pathlib import Path  # --help does without, and it takes 5 ms to import

    path = Path(text)
    if "\\x" not in text or path.exists():
        return path
    raw = re.sub(NUMBERED, lambda match: bytes([int(match[1], 16)]), text.encode("utf-8", "surrogatepass"))
    other = Path(os.fsdecode(raw))
    return other if other.exists() else path


def shown(text: object) -> str:
    """Return text for people, in one line: control characters stand as their numbers, so that none acts on the terminal."""
    plain = str(text)
    for path, name in STANDS_FOR.items():
        plain = plain.replace(path, name)
    return plain if plain.isprintable() else re.sub(CONTROLS, lambda match: _number(match[0]), plain)


def _number(character: str) -> str:
    code = ord(character)
    if BYTES_FROM <= code <= BYTES_TO:
        return f"\\x{code - 0xDC00:02x}"
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    return short or (f"\\x{code:02x}" if code < 1 << 8 else f"\\u{code:04x}")
