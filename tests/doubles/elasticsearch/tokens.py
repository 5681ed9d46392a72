"""JSON, token by token with positions, as strict as the server: only for what the fast parser refuses or cannot vouch for.

The server's parser stops at the first fault it meets, names line and column of the token, forbids duplicate fields, NaN and
Infinity, and keeps the text of numbers. Errors are met while reading, not before: what stands before a fault was understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
STRING = re.compile(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"')
SPACE = re.compile(r"[ \t\r\n]*")
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})*|.)")
PLAIN = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
LITERALS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its type in the server's words, what it means, its text, and its column (from 1)."""

    kind: str
    value: Any
    text: str
    column: int
    line: int = 1


class Broken(Exception):
    """JSON that is none; `error` is the server's error object with its chain of causes."""

    def __init__(
        self, kind: str, inner: str, message: str, text: str, line: int, column: int, *, short: str | None = None
    ) -> None:
        where = f'\n at [Source: (byte[])"{text[:500]}"; line: {line}, column: {column}]'
        long = message + where
        self.reason = f"[{line}:{column}] {short or long}"
        self.error: dict[str, Any] = {"type": kind, "reason": self.reason, "caused_by": {"type": inner, "reason": long}}
        super().__init__(self.reason)
        self.place = (text, line, column)

    def at_colon(self) -> Broken:
        """Return what the server's parser says if it is made to go on after a repeated name."""
        message = "Unexpected character (':' (code 58)): was expecting comma to separate Object entries"
        return Broken("x_content_parse_exception", "json_parse_exception", message, *self.place)


def _unescape(body: str) -> str:
    if "\\" not in body:
        return body

    def one(match: re.Match[str]) -> str:
        code = match.group(1)
        if code[0] != "u":
            return PLAIN.get(code, code)
        units = [int(part, 16) for part in code[1:].split("\\u")]
        return b"".join(unit.to_bytes(2, "little") for unit in units).decode("utf-16-le", "surrogatepass")

    return ESCAPE.sub(one, body)


class Tokens:
    """The tokens of a text, one after the other; `last` is the newest, for positions of faults that are of no token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.last = Token("START", None, "", 1)

    def __iter__(self) -> Iterator[Token]:
        yield from self._value()
        self._skip()

    def _place(self, at: int) -> tuple[int, int]:
        line = self.text.count("\n", 0, at) + 1
        start = self.text.rfind("\n", 0, at) + 1
        return line, len(self.text[start:at].encode()) + 1

    def _skip(self) -> str:
        self.at = SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]  # it matches the empty text
        return self.text[self.at : self.at + 1]

    def _token(self, kind: str, value: Any, end: int) -> Token:
        line, column = self._place(self.at)
        self.last = Token(kind, value, self.text[self.at : end], column, line)
        self.at = end
        return self.last

    def _ended(self, what: str) -> Broken:
        line, column = self._place(len(self.text))
        return Broken(
            "x_content_e_o_f_exception", "json_e_o_f_exception", f"Unexpected end-of-input{what}", self.text, line, column,
            short="Unexpected end of file",
        )  # fmt: skip

    def _wrong(self, message: str, at: int) -> Broken:
        line, column = self._place(at)
        return Broken("x_content_parse_exception", "json_parse_exception", message, self.text, line, column)

    def _value(self) -> Iterator[Token]:
        char = self._skip()
        if char == "{":
            yield from self._object()
        elif char == "[":
            yield from self._array()
        elif char == '"':
            yield self._string("VALUE_STRING")
        elif char and (char.isdigit() or char == "-"):
            yield self._number()
        elif char and (char.isalpha() or char == "_"):
            yield self._word()
        elif char == "":
            raise self._ended(" within/between Object entries" if self.last.kind == "FIELD_NAME" else "")
        else:
            raise self._wrong(f"Unexpected character ('{char}' (code {ord(char)})): expected a valid value", self.at + 1)

    def _string(self, kind: str) -> Token:
        match = STRING.match(self.text, self.at)
        if match is None:
            if '"' not in self.text[self.at + 1 :]:
                raise self._ended(" in VALUE_STRING")
            raise self._wrong("Illegal unquoted or escaped character in a string", self.at + 1)
        return self._token(kind, _unescape(match.group(1)), match.end())

    def _number(self) -> Token:
        match = NUMBER.match(self.text, self.at)
        if match is None or self.text[match.end() : match.end() + 1].isalnum():
            raise self._wrong("Unexpected character in a number", self.at + 1)
        whole = match.group(1) is None and match.group(2) is None
        return self._token("VALUE_NUMBER", int(match.group()) if whole else float(match.group()), match.end())

    def _word(self) -> Token:
        match = WORD.match(self.text, self.at)
        word = match.group() if match else ""
        if word not in LITERALS:
            end = self.at + len(word)
            if self.last.kind != "FIELD_NAME":
                line, column = self._place(self.at)
                self.last = Token("BAD", None, word, column, line)  # the server's position is then this token's
            if word in ("NaN", "Infinity"):
                raise self._wrong(
                    f"Non-standard token '{word}': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow", end
                )
            raise self._wrong(
                f"Unrecognized token '{word}': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')",
                end,
            )
        return self._token("VALUE_NULL" if word == "null" else "VALUE_BOOLEAN", LITERALS[word], self.at + len(word))

    def _object(self) -> Iterator[Token]:
        line, column = self._place(self.at)
        opened = f': expected close marker for Object (start marker at [Source: (byte[])"{self.text[:500]}"; line: {line}, column: {column}])'
        yield self._token("START_OBJECT", None, self.at + 1)
        seen: set[str] = set()
        while True:
            char = self._skip()
            if char == "}" and (not seen or self.last.kind != "COMMA"):
                break
            if char == "":
                raise self._ended(opened)
            if char != '"':
                raise self._wrong(
                    f"Unexpected character ('{char}' (code {ord(char)})): was expecting double-quote to start field name",
                    self.at + 1,
                )
            start = self.at
            before = self.last
            name = self._string("FIELD_NAME")
            if name.value in seen:
                self.last = before
                raise self._wrong(f"Duplicate field '{name.value}'", start + len(name.text))
            seen.add(name.value)
            char = self._skip()
            if char != ":":
                raise (
                    self._ended(opened)
                    if char == ""
                    else self._wrong(
                        f"Unexpected character ('{char}' (code {ord(char)})): was expecting a colon to separate field name and value",
                        self.at + 1,
                    )
                )
            yield name
            self.at += 1
            yield from self._value()
            if not self._comma("}", opened, "Object"):
                break
        yield self._token("END_OBJECT", None, self.at + 1)

    def _comma(self, closing: str, opened: str, what: str) -> bool:
        char = self._skip()
        if char == closing:
            return False
        if char == "":
            raise self._ended(opened)
        if char != ",":
            raise self._wrong(
                f"Unexpected character ('{char}' (code {ord(char)})): was expecting comma to separate {what} entries", self.at + 1
            )
        self.at += 1
        if self._skip() == closing:
            raise self._wrong(f"Unexpected character ('{closing}' (code {ord(closing)})): expected a value", self.at + 1)
        return True

    def _array(self) -> Iterator[Token]:
        line, column = self._place(self.at)
        opened = f': expected close marker for Array (start marker at [Source: (byte[])"{self.text[:500]}"; line: {line}, column: {column}])'
        yield self._token("START_ARRAY", None, self.at + 1)
        if self._skip() != "]":
            while True:
                yield from self._value()
                if not self._comma("]", opened, "Array"):
                    break
        yield self._token("END_ARRAY", None, self.at + 1)


def parse(text: str) -> Any:
    """Return the value of a text; raise `Broken` where the server would."""
    stream = Tokens(text)
    tokens = iter(stream)
    value = build(next(tokens), tokens)
    for _ in tokens:
        pass
    return value


def build(token: Token, tokens: Iterator[Token]) -> Any:
    """Return the value that begins with a token."""
    if token.kind == "START_OBJECT":
        found: dict[str, Any] = {}
        for name in tokens:
            if name.kind == "END_OBJECT":
                return found
            found[name.value] = build(next(tokens), tokens)
    if token.kind == "START_ARRAY":
        items: list[Any] = []
        for item in tokens:
            if item.kind == "END_ARRAY":
                return items
            items.append(build(item, tokens))
    return token.value


def place_of(text: str, name: str) -> tuple[int, int]:
    """Return line and column of the value of the first field of that name: what errors of requests point at."""
    after = False
    try:
        for token in Tokens(text):
            if after:
                return token.line, token.column
            after = token.kind == "FIELD_NAME" and token.value == name
    except Broken:
        pass
    return 1, 1


def end_of(text: str, start: int) -> int:
    """Return where a value ends, counting brackets only: what an ignored field is skipped by."""
    if text[start] not in "{[":
        match = re.compile(r'"(?:[^"\\]|\\.)*"|[^,}\]\s]+').match(text, start)
        return match.end() if match else start + 1
    depth = 0
    for match in re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]').finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(match.group(), 0)
        if depth == 0:
            return match.end()
    return len(text)
