"""The words of an ES|QL text, and what the parser makes of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tests.doubles.elasticsearch.errors import CannotDo

LEXEME = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/)"
    r'|(?P<text>"""(?:.|\n)*?"""|"(?:[^"\\\n]|\\.)*")'
    r"|(?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>(?:`[^`]*`|[@_A-Za-z][\w@]*)(?:\.(?:`[^`]*`|[@_A-Za-z0-9][\w@]*))*)"
    r"|(?P<sign>==|!=|<=|>=|::|[-+*/%<>=(),|?\[\]:])",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A word of the text and where it stands."""

    kind: str
    text: str
    place: int

    @property
    def word(self) -> str:
        """Return it in upper case if it may be a keyword."""
        return self.text.upper() if self.kind == "name" else self.text


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression: operator, operands, the text it was written as, and its place."""

    kind: str
    value: Any
    parts: tuple[Node, ...]
    text: str
    place: int


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the pipe: its name, and what it is given."""

    name: str
    items: tuple[Any, ...]
    groups: tuple[Any, ...] = ()


def lexemes(text: str, start: int) -> list[Lexeme]:
    """Return the words of a text from a place on, and one for its end."""
    found: list[Lexeme] = []
    place = start
    while place < len(text):
        match = LEXEME.match(text, place)
        if match is None:
            raise CannotDo(f"ES|QL at {text[place : place + 20]!r}")
        if match.lastgroup != "space":
            found.append(Lexeme(str(match.lastgroup), match.group(), place))
        place = match.end()
    return [*found, Lexeme("end", "", len(text))]


def text_of(quoted: str) -> str:
    """Return what a quoted text says."""
    if quoted.startswith('"""'):
        return quoted[3:-3]
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t", "r": "\r"}.get(match.group(1), match.group(1)), quoted[1:-1])
