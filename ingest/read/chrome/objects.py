"""The objects of a JSON array, in pieces of bounded size, however they are laid out and wherever the file breaks off.

    {"traceEvents":[            or just         [
    {"ph":"X","name":"a"},                      {"ph":"X","name":"a"},
    {"ph":"X","name":"b"}                       {"ph":"X","na
    ],"metadata":{}}

A block is cut where one object ends and the next begins, at the last such place, and parsed at once: a cut inside an object or
a text leaves something that is no JSON, and the place before is tried. Only a block with a fault in it is gone through object
by object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from ingest.core.dataclass import dataclass
from ingest.core.errors import InputError
from ingest.core.intervals import Int
from ingest.read.account import Account
from ingest.read.delimited.arrow_lines import reject
from ingest.read.text import whole_blocks

BETWEEN = re.compile(rb"\}\s*,\s*\{")
NEXT = re.compile(r"\}\s*,\s*(?=\{)|\n\s*(?=\{\")")
PASSED = re.compile(r"[\s,]*")
BEGINNING = re.compile(rb'^(?:\xef\xbb\xbf)?\s*(?:\[|\{(?s:.*?)"traceEvents"\s*:\s*\[)')
END = re.compile(r'\]\s*(?:\}?\s*$|,\s*")')
LOOKS = re.compile(rb'"ph"\s*:\s*"[A-Za-z(){}=,]"')
LONGEST = 1 << 23
TRIED = 6
UNFINISHED = 12  # bytes of a word or an escape that may be cut in two
NO_JSON = "no JSON object"
CUT_OFF = "the trace breaks off within its last event: all events before it were kept"
NO_ARRAY = 'no array of trace events: it begins neither with [ nor with {"traceEvents": [...'


def looks_like_chrome(start: bytes) -> bool:
    """Return whether a file begins like trace events."""
    match = BEGINNING.match(start)
    return match is not None and LOOKS.search(start, match.end()) is not None


@dataclass(frozen=True, slots=True)
class Objects:
    """Some objects of the array, and the text that they were parsed from, which begins in line `line`."""

    values: list[Any]
    text: bytes
    line: int
    places: list[int] | None = None

    def lines(self) -> Int:
        """Return the line that each object begins in."""
        newlines = np.flatnonzero(np.frombuffer(self.text, np.uint8) == 10)
        return self.line + np.searchsorted(newlines, np.array(self._places(), np.int64))

    def exact(self) -> list[Any]:
        """Return the objects with each number that has decimals as a Decimal; only their numbers are meant."""
        text = self.text.decode("latin-1")
        decoder = json.JSONDecoder(parse_float=Decimal)
        return [decoder.raw_decode(text, place)[0] for place in self._places()]

    def _places(self) -> list[int]:
        if self.places is not None:
            return self.places
        places = [len(self.text) - len(self.text.lstrip()), *(match.end() - 1 for match in BETWEEN.finditer(self.text))]
        return places if len(places) == len(self.values) else _Walk(self.text, last=True).places


def objects(path: Path, account: Account) -> Iterator[Objects]:
    """Yield the objects of the array in a file; all else is rejected. InputError where there is no array."""
    text, line, begun = b"", 1, False
    for block in whole_blocks(path, account):
        text += bytes(block)
        if not begun:
            match = BEGINNING.match(text)
            if not match and len(text) > LONGEST:
                raise InputError(NO_ARRAY, path, 1)
            if not match:
                continue
            begun, line, text = True, line + text.count(b"\n", 0, match.end()), text[match.end() :]
        part, used = _parsed(text, line)
        if part is None:
            walk = _Walk(text, last=False)
            part, used = walk.objects(line, account), walk.used
            if walk.over:
                yield part
                return
        yield part
        line, text = line + text.count(b"\n", 0, used), text[used:]
    if not begun:
        raise InputError(NO_ARRAY, path, 1)
    yield _Walk(text, last=True).objects(line, account)


def _parsed(text: bytes, line: int) -> tuple[Objects | None, int]:
    """Return the objects up to the last place where one ends, and where the next begins; None where that is no JSON."""
    end = len(text)
    for _ in range(TRIED):
        end = text.rfind(b"}", 0, end)
        match = BETWEEN.match(text, end) if end >= 0 else None
        if end < 0:
            break
        if match is None:
            continue
        try:
            values = orjson.loads(b"[" + text[: end + 1] + b"]")
        except orjson.JSONDecodeError:
            continue
        return Objects(values, text[: end + 1], line), match.end() - 1
    return None, 0


class _Walk:
    """Goes through a text object by object: `values` begin at `places`, `bad` are the places of all else.

    `used` is where an object begins that may go on in the next block, `over` says whether the array has ended. With `last`
    there is no next block.
    """

    def __init__(self, text: bytes, *, last: bool) -> None:
        self.text, self.last = text, last
        self.values: list[Any] = []
        self.places: list[int] = []
        self.bad: list[int] = []
        self.over = self.cut_off = False
        self._plain = text.decode("latin-1")  # a byte is a character: structure is ASCII
        self._damaged = False
        self.used = self._go()

    def objects(self, line: int, account: Account) -> Objects:
        """Return the objects; all else is rejected."""
        newlines = np.flatnonzero(np.frombuffer(self.text, np.uint8) == 10)
        reject(account, NO_JSON, line + np.searchsorted(newlines, np.array(self.bad, np.int64)))
        if self.cut_off:
            account.note(CUT_OFF)
        return Objects(self.values, self.text, line, self.places)

    def _go(self) -> int:
        decoder, plain, place = json.JSONDecoder(), self._plain, 0
        while True:
            place = PASSED.match(plain, place).end()  # type: ignore[union-attr]  # it matches nothing, too
            if place >= len(plain):
                return place
            if plain[place] == "]" and (not self._damaged or END.match(plain, place)):
                self.over = True
                return place
            try:
                _, end = decoder.raw_decode(plain, place)
            except json.JSONDecodeError as error:
                if self._may_go_on(error, place):
                    self.cut_off = self.last
                    return len(plain) if self.last else place
                place = self._resumed(place)
                continue
            except (RecursionError, ValueError):  # brackets by the thousand; a number of thousands of digits
                place = self._resumed(place)
                continue
            self._take(place, end)
            place = end

    def _take(self, place: int, end: int) -> None:
        """Keep what lies there; what has no phase and stands behind damage is a part of that."""
        try:
            value = orjson.loads(self.text[place:end])
        except orjson.JSONDecodeError:  # no UTF-8, or a number that is none (NaN)
            self.bad.append(place)
            return
        if self._damaged and not (isinstance(value, dict) and "ph" in value):
            return
        self._damaged = False
        self.values.append(value)
        self.places.append(place)

    def _may_go_on(self, error: json.JSONDecodeError, place: int) -> bool:
        """Return whether a place is the beginning of an object rather than damage."""
        if len(self._plain) - place > LONGEST and not self.last:
            return False
        return error.msg.startswith("Unterminated") or error.pos >= len(self._plain) - UNFINISHED

    def _resumed(self, place: int) -> int:
        """Return where the next object begins behind damage."""
        if not self._damaged:
            self.bad.append(place)
        self._damaged = True
        match = NEXT.search(self._plain, place + 1)
        return match.end() if match else len(self._plain)
