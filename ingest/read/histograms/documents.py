"""JSON documents of a text, one a line or each spread over lines, one after another or in an array.

    {"a": 1}            {                   [{"a": 1},
    {"a": 2}              "a": 1             {"a": 2}]
                        }
                        {
                          "a": 2
                        }

A document is an object that stands in no other; arrays around it count for nothing. Damage costs the document that it is in: the
next one begins where an object stands that is not farther in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

from ingest.read.account import Account
from ingest.read.text import CUT_OFF

NO_JSON = "no JSON object"
TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}"]')
AROUND = re.compile(rb"[][,\s]*")
Parse = Callable[[bytes], Any]


def parsed(text: bytes | str) -> Any:
    """Return what JSON says: numbers with decimals as `Decimal`, NaN as None. ValueError where it is no JSON."""
    return json.loads(text, parse_float=Decimal, parse_constant=lambda _: None)


def documents_of(
    lines: Iterable[tuple[int, bytes, bool]], account: Account, parse: Parse = parsed
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the documents of lines (number, text, whether its end was seen) with the line that each begins in.

    What is no object is rejected, once a line, or once a document that is spread over lines.
    """
    found = _Found(account, parse)
    for number, line, ended in lines:
        if line.strip():
            yield from found.of(number, line, ended=ended)
    found.finish()


class _Found:
    """Takes lines; `_parts` are those of the document that has not ended yet, which began at the first of the lines `_begun`.

    Others of `_begun` are those where one may have begun, too.
    """

    def __init__(self, account: Account, parse: Parse) -> None:
        self._account, self._parse = account, parse
        self._parts: list[bytes] = []
        self._begun: list[int] = []
        self._depth = self._indent = 0
        self._deeper = False
        self._ended = True

    def of(self, number: int, line: bytes, *, ended: bool) -> list[tuple[int, dict[str, Any]]]:
        """Return the documents that end in a line."""
        indent = len(line) - len(line.lstrip())
        if self._parts and self._begins_anew(line, indent):
            self._give_up(NO_JSON)
        if not self._parts:
            try:
                value = self._parse(line)
                entries = value if isinstance(value, list) else [value]
                if not all(isinstance(entry, dict) for entry in entries):
                    self._account.reject(NO_JSON, [number])
                    return []
                return [(number, entry) for entry in entries]
            except (ValueError, RecursionError):
                pass
        else:
            self._deeper |= len(self._parts) == 1 and indent > self._indent
            if indent <= self._indent and line.lstrip().startswith(b"{"):
                self._begun.append(number)
        self._ended = ended
        return self._scanned(number, line, indent, ended=ended)

    def finish(self) -> None:
        """Reject the document that has no end."""
        if self._parts:
            self._give_up(NO_JSON if self._ended and len(self._parts) == 1 else CUT_OFF)

    def _begins_anew(self, line: bytes, indent: int) -> bool:
        """Return whether a line begins a document though the one before has not ended: that one is damaged."""
        if indent > self._indent or not line.lstrip().startswith(b"{"):
            return False
        if self._deeper:
            return True
        try:
            return bool(self._parse(line.strip().rstrip(b",")))
        except (ValueError, RecursionError):
            return False

    def _scanned(self, number: int, line: bytes, indent: int, *, ended: bool) -> list[tuple[int, dict[str, Any]]]:
        """Return the documents that end in a line, which is gone through bracket by bracket."""
        found: list[tuple[int, dict[str, Any]]] = []
        begin = behind = 0  # where the document begins in this line, and where the one before has ended
        if not self._parts:
            self._begun = [number]
        try:
            for token in TOKEN.finditer(line):
                mark = token[0]
                if mark == b'"':
                    raise ValueError(NO_JSON)
                if not self._depth and mark == b"{":
                    self._only_around(line[behind : token.start()])
                    begin, self._depth = token.start(), 1
                elif self._depth:
                    self._depth += (mark in (b"{", b"[")) - (mark in (b"}", b"]"))
                    if not self._depth:
                        behind = token.end()
                        found.append((self._begun[0], self._parse(b"\n".join([*self._parts, line[begin:behind]]))))
                        self._parts, self._begun, self._deeper = [], [number], False
            if not self._depth:
                self._only_around(line[behind:])
        except (ValueError, RecursionError):
            self._give_up(NO_JSON if ended else CUT_OFF)
            return []
        if self._depth:
            self._indent = self._indent if self._parts else indent
            self._parts.append(line[begin:])
        return found

    def _only_around(self, text: bytes) -> None:
        """Raise ValueError where there is more around documents than brackets and commas."""
        if not AROUND.fullmatch(text):
            raise ValueError(NO_JSON)

    def _give_up(self, reason: str) -> None:
        self._account.reject(reason, self._begun)
        self._parts, self._depth, self._deeper = [], 0, False
