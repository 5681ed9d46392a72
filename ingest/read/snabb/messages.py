"""What the entries of a Snabb timeline mean: the texts in its table of strings.

    1,5|engine.breath_start: breath totalpackets totalbytes totaletherbits      level, rate, name, arguments
    3,3|app.pull app=0000:01:00.0:                                              attributes before the last colon
    5|engine.breath_start: breath totalpackets                                  until November 2018: one digit for both

What follows the first line is prose. Level 0 is outermost, and the rate says how often an event is stored (9 always, each
number below a fifth of that). The single digit of older files counts the other way round: high is outermost and often.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ingest.core.dataclass import dataclass
from ingest.read.snabb.ring import ALIGNED, ARGUMENTS

OUTERMOST = 9
FRONT = re.compile(r"(\d)(?:,(\d))?\|(.*)", re.DOTALL)
NAME = re.compile(r"\w+", re.ASCII)
EVENT = re.compile(r"[\w.\-/]+")


@dataclass(frozen=True, slots=True)
class Message:
    """An event as the program announced it: `name` as category.event, its attributes, the names of its arguments.

    `level` and `rate` are as spelled; `depth` counts from 0, the outermost, in either spelling. Unknown messages have no name,
    and level, rate and depth -1.
    """

    name: str
    level: int
    rate: int
    depth: int
    attributes: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Return whether the table of strings describes this."""
        return bool(self.name)

    @property
    def text(self) -> str:
        """Return name and attributes as the program wrote them: app.push app=tee."""
        return " ".join((self.name, *(f"{name}={value}" for name, value in self.attributes)))

    @property
    def app(self) -> str:
        """Return the name of the app, followed by other attributes as name=value; empty where there is none."""
        return " ".join(value if name == "app" else f"{name}={value}" for name, value in self.attributes)


UNKNOWN = Message("", -1, -1, -1)


def message_of(text: str) -> Message:
    """Return the message that a text of the table announces; an unknown one where it announces none."""
    line = text.split("\n", 1)[0].rstrip()
    front = FRONT.fullmatch(line)
    if not front:
        return UNKNOWN
    body, names = _split(front[3])
    words = body.split()
    if not words or not EVENT.fullmatch(words[0]):
        return UNKNOWN
    level = int(front[1])
    pairs = tuple((name, value) for name, mark, value in (word.partition("=") for word in words[1:]) if mark and name)
    if front[2] is None:
        return Message(words[0], level, level, OUTERMOST - level, pairs, names)
    return Message(words[0], level, int(front[2]), level, pairs, names)


def _split(body: str) -> tuple[str, tuple[str, ...]]:
    """Return what stands before the last colon that only names follow, and these names; values may hold colons themselves."""
    front, colon, behind = body.rpartition(":")
    names = behind.split()
    if colon and all(NAME.fullmatch(name) for name in names):
        return front, tuple(names[:ARGUMENTS])
    return body, ()


def messages_of(strings: bytes, numbers: Iterable[int]) -> dict[int, Message]:
    """Return the message of each of these numbers; unknown ones where the table has no text there."""
    return {number: _at(strings, number) for number in numbers}


def _at(strings: bytes, number: int) -> Message:
    start = number * ALIGNED
    if start >= len(strings) or (start and strings[start - 1]):
        return UNKNOWN
    end = strings.find(b"\0", start)
    return message_of(strings[start : end if end >= 0 else len(strings)].decode("utf-8", "replace"))
