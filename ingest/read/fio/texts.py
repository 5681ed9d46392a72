"""The JSON documents in a text: fio's own, whatever stands around them, and those that others wrapped or sent through a log.

    some text of a shell>{                      [                       [pod/fio] {
      "fio version" : "fio-3.33",                 {                     [pod/fio]   "fio version" : "fio-3.33",
      ...                                           "fio version": ..     ...
    }                                             }                     [pod/fio] }
                                                ]

fio puts the outer braces on lines of their own and indents all between them, as all do that write JSON for people. So a document
ends with the first line that begins with its closing brace. Others write a document, or many of them, into one line.
Traps: what stands in front of the first brace may be some text that was printed before, or stand in front of every line; a time
stamp there has other digits in each line, but as many of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson

from ingest.core.errors import InputError

LARGEST_DOCUMENT = 256 << 20
TOO_LARGE = (
    "a JSON document of more than 256 MB; of many in one, take them apart: "
    """jq -c '.. | objects | select(has("fio version"))' FILE > fio.json"""
)
BEHIND = "fio's JSON behind something on each line, which is not of one width: cut it off, as with sed 's/^.*Z //' FILE"
BROKEN, CUT_OFF = (
    "document breaks off before the next begins",
    "last document breaks off: fio was still writing, or the copy is partial",
)
INDENT = (b" ", b"\t")  # what lines inside a document begin with
STRETCH = re.compile(rb"([ \t][^\n]*+(?:\n[ \t][^\n]*+)*+|[^\n]*+)\n?")
OF_FIO = b'"fio version"'
NAMED = re.compile(rb'"fio version"\s*:\s*"')
COMPACT = re.compile(rb'(?:\[\s*)?\{\s*"fio version"\s*:')
COMMENTS = (b"", b"//", b"#", b"*", b"--")  # in front of each line of an example in a program: no log of a run
CLOSING = {b"{": b"}", b"[": b"]"}
DIGITS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else byte for byte in range(256))


def texts(
    chunks: Iterable[memoryview | bytes], path: Path, bad: list[tuple[str, int]], lines_before: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Yield (line, text) of each document in blocks of lines, which `lines_before` others precede.

    What breaks off goes to `bad`, with its line. InputError for a document that is too large to be held.
    """
    scan = _Scan(bad, lines_before)
    for block in _whole_lines(chunks, path):
        for raw in _stretches(block):
            yield from scan.take(raw)
        if scan.size > LARGEST_DOCUMENT:
            raise InputError(TOO_LARGE, path, scan.begin)
    yield from scan.rest()


class _Scan:
    """Takes the lines of a text in order. `begin` is the line that the open document begins with, `size` its length so far."""

    def __init__(self, bad: list[tuple[str, int]], lines_before: int) -> None:
        self.begin = self.size = 0
        self._number = lines_before
        self._bad = bad
        self._lines: list[bytes] = []
        self._closing = b"}"
        self._guessed = False  # a brace behind other text: a document only if it says that it is of fio
        self._prefix: bytes | None = None  # what stands in front of each line, digits as 0
        self._passed = False  # whether a line without it came in between
        self._before: tuple[bytes, int] | None = None  # a line that may begin a document, if the next one is of it

    def take(self, raw: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the documents that end with a line, or with neighbours that are indented."""
        inner = raw.count(b"\n")
        self._number += 1 + inner
        if self._prefix is not None:
            width = len(self._prefix)
            if raw[:width].translate(DIGITS) != self._prefix:  # a line of another log, or one that is empty
                self._passed |= bool(raw.strip())
                return
            raw = raw[width:]
        if self._before is not None and self._begins(raw, self._number - inner):
            return
        if self._lines and raw[:1] in INDENT:
            self._lines.append(raw)
            self.size += len(raw) - inner
            return
        line = raw.rstrip()
        if not self._lines:
            yield from self._outside(line, inner)
        elif line.startswith(self._closing):
            yield from self._close()
            if line.endswith(b"{"):
                self._before = (line[1:], self._number)
        elif line == b"{":
            if not self._guessed or any(OF_FIO in line for line in self._lines):
                self._bad.append((BROKEN, self.begin))
            self._open(line, self._number)
        else:
            self._lines.append(line)
            self.size += len(line)

    def _outside(self, line: bytes, inner: int) -> Iterator[tuple[int, bytes]]:
        """Yield the document that a line outside of any holds; one that goes on in the next lines is open then."""
        if line.startswith(b"{"):
            end = _end_of(line)
            if end:
                yield self._number, line[:end]
            else:
                self._open(line, self._number)
        elif line.startswith(b"[") and line.endswith(b"]") and OF_FIO in line:
            yield self._number, line
        elif found := COMPACT.search(line):
            whole = line[found.start() :]
            yield self._number - inner + line.count(b"\n", 0, found.start()), whole[: _end_of(whole) or len(whole)]
        elif line == b"[" or line.endswith(b"{"):
            self._before = (line, self._number)
        elif OF_FIO in line and line[:1] not in INDENT and NAMED.search(line):
            self._bad.append((BEHIND, self._number))

    def _begins(self, raw: bytes, number: int) -> bool:
        """Return whether the line after one that may begin a document is of it: then it is open."""
        before, begin = self._before or (b"", 0)
        self._before = None
        first = raw.partition(b"\n")[0]
        if before == b"[":
            begins = raw[:1] in INDENT and first.lstrip()[:1] in CLOSING
        else:
            begins = raw[:1] in INDENT and first.lstrip()[:1] == b'"'
        if begins:
            self._open(before[-1:], begin, guessed=True)
            self._lines.append(raw)
            self.size += len(raw)
            return True
        width = len(before) - 1
        shape = before[:width].translate(DIGITS)
        if before[:width].strip() in COMMENTS:
            return False
        if first[:width].translate(DIGITS) == shape and first[width:].lstrip()[:1] == b'"' and number == begin + 1:
            self._open(b"{", begin, guessed=True)
            self._prefix = shape
            self._lines.append(first[width:])
            return True
        return False

    def _open(self, line: bytes, number: int, *, guessed: bool = False) -> None:
        self.begin, self._lines, self.size = number, [line], len(line)
        self._closing, self._guessed, self._prefix = CLOSING[line[:1]], guessed, None
        self._passed = False

    def _close(self) -> Iterator[tuple[int, bytes]]:
        text = b"\n".join([*self._lines, self._closing])
        if self._passed and not _is_json(text):
            self._bad.append((BEHIND, self.begin))
        elif not self._guessed or OF_FIO in text:
            yield self.begin, text
        self._lines, self._prefix, self.size = [], None, 0

    def rest(self) -> Iterator[tuple[int, bytes]]:
        """Yield the document that is open at the end of a text if it is whole."""
        if not self._lines:
            return
        text = b"\n".join(self._lines)
        if _is_json(text):
            yield self.begin, text
        elif not self._guessed or OF_FIO in text:
            self._bad.append((BEHIND if self._passed else CUT_OFF, self.begin))


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _end_of(line: bytes) -> int:
    """Return where the document that a line begins with ends in it, 0 where it goes on in the next lines."""
    if len(line) == 1 or OF_FIO not in line:
        return len(line) if len(line) > 1 and line.endswith(b"}") else 0
    if line.endswith((b"}", b"]")):
        return len(line)
    text = line.decode("utf-8", "surrogateescape")
    try:
        end = json.JSONDecoder().raw_decode(text)[1]
    except ValueError:
        return 0
    return len(text[:end].encode("utf-8", "surrogateescape"))


def _whole_lines(chunks: Iterable[memoryview | bytes], path: Path) -> Iterator[bytes]:
    """Yield blocks of whole lines: a line that is longer than a block comes in several."""
    pieces: list[bytes] = []
    for chunk in chunks:
        pieces.append(bytes(chunk))
        if pieces[-1].endswith(b"\n"):
            yield b"".join(pieces) if len(pieces) > 1 else pieces[0]
            pieces = []
        elif sum(map(len, pieces)) > LARGEST_DOCUMENT:
            raise InputError(TOO_LARGE, path)
    if pieces:
        yield b"".join(pieces)


def _stretches(block: bytes) -> Iterator[bytes]:
    """Yield the lines of a block; neighbours that are indented come as one, as they are almost all."""
    if b"\r" in block:
        yield from block.splitlines()
        return
    at = 0
    while at < len(block) and (match := STRETCH.match(block, at)):
        yield match[1]
        at = match.end()
