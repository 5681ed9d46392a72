"""NDJSON as Arrow columns, block by block: one object a line, with the line of each; other keys than the wanted are left alone.

Numbers are tried as integers, as decimals of whole ns, as longer decimals, as floats: the first that a whole block fits. A
block with a fault in it is gone through line by line, and only that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from ingest.core.intervals import Int
from ingest.core.timing import MOST_NS
from ingest.read.account import Account
from ingest.read.delimited.arrow_lines import TOO_LONG, arrow, reject
from ingest.read.delimited.arrow_numbers import MORE_PLACES, PRECISION, places, types
from ingest.read.delimited.description import Columns
from ingest.read.text import CUT_OFF, LONGEST_LINE, NEWLINE, NULS, whole_blocks

NO_OBJECT = "no JSON object"
LEVELS = 4


def tables_of_json(path: Path, columns: Columns, account: Account, upto: int | None = None) -> Iterator[tuple[Any, Int]]:
    """Yield the wanted columns of all lines of a file (or of its first `upto` bytes) with their line numbers.

    What is no object is counted.
    """
    reader = _Objects(columns, account, path)
    for block in whole_blocks(path, account, upto):
        yield from reader.tables(bytes(block))


class _Objects:
    """Parses the blocks of one file in turn; `line` is the number of the next line."""

    def __init__(self, columns: Columns, account: Account, path: Path) -> None:
        self.pa = arrow(path)
        import pyarrow.json

        self.json = pyarrow.json
        self.account = account
        self.line = 1
        self._open = False
        self._level = 0
        self._numbers = {name: columns.units[role] for role, name in columns.roles.items()}
        self._words = tuple(columns.labels.values())

    def _schema(self, level: int) -> Any:
        pa = self.pa
        fields = [(name, types(pa, unit)[level] if unit else pa.string()) for name, unit in self._numbers.items()]
        return pa.schema([*fields, *((name, pa.string()) for name in self._words if name not in self._numbers)])

    def tables(self, text: bytes) -> Iterator[tuple[Any, Int]]:
        """Yield the columns of the objects in a block with their line numbers."""
        text = self._whole_lines(text)
        count = text.count(b"\n")
        if not count:
            return
        table = self._block(text) if b"\n\n" not in text and b"\r" not in text else None
        if table is not None and len(table) == count and (_ready := self._ready(table)) is not None:
            yield _ready, np.arange(self.line, self.line + count)
        else:
            yield from self._by_line(text)
        self.line += count

    def _whole_lines(self, text: bytes) -> bytes:
        """Return the whole lines of a block; half an object at the end is rejected, a whole one without newline is taken."""
        if self._open:
            at = text.find(b"\n") + 1
            if not at:
                return b""
            text, self._open = text[at:], False
            self.line += 1
        if not text or text[-1] == NEWLINE:
            return text
        cut = text.rfind(b"\n") + 1
        rest = text[cut:]
        if len(rest) < LONGEST_LINE and _object(rest) is not None:
            return text + b"\n"
        if rest.strip():
            self.account.reject(TOO_LONG if len(rest) >= LONGEST_LINE else CUT_OFF, [self.line + text.count(b"\n")])
        self._open = True
        return text[:cut]

    def _block(self, text: bytes) -> Any:
        """Return the columns of a block, None where no level of numbers fits all of it."""
        for level in range(self._level, LEVELS):
            try:
                table = self.json.read_json(
                    self.pa.BufferReader(text),
                    read_options=self.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
                    parse_options=self.json.ParseOptions(explicit_schema=self._schema(level), unexpected_field_behavior="ignore"),
                )
            except (self.pa.ArrowInvalid, self.pa.ArrowNotImplementedError, self.pa.ArrowKeyError):
                continue
            self._level = level
            return table
        return None

    def _ready(self, table: Any) -> Any:
        """Return the table with texts coded and ISO 8601 texts as times, None where one is no time."""
        pa = self.pa
        columns = {}
        for name in table.column_names:
            column = table.column(name).combine_chunks()
            if self._numbers.get(name) == 0:
                column = _stamps(pa, column)
                if column is None:
                    return None
            elif name in self._words:
                column = column.dictionary_encode()
            columns[name] = column
        return pa.table(columns)

    def _by_line(self, text: bytes) -> Iterator[tuple[Any, Int]]:
        """Yield the objects of a block with a fault in it."""
        numbers: list[int] = []
        cells: dict[str, list[Any]] = {name: [] for name in (*self._numbers, *self._words)}
        bad: dict[str, list[int]] = {}
        for place, line in enumerate(text.split(b"\n")[:-1]):
            if not line.strip():
                continue
            entry = _object(line)
            if entry is None:
                reason = NULS if b"\0" in line else NO_OBJECT
                bad.setdefault(reason, []).append(self.line + place)
                continue
            numbers.append(self.line + place)
            for name, unit in self._numbers.items():
                cells[name].append(_number(entry.get(name), unit) if unit else _stamp(self.pa, entry.get(name)))
            for name in self._words:
                word = entry.get(name)
                cells[name].append(str(word) if isinstance(word, (str, int, float)) else None)
        for reason, lines in bad.items():
            reject(self.account, reason, np.array(lines, np.int64))
        if numbers:
            yield self._table(cells), np.array(numbers, np.int64)

    def _table(self, cells: Mapping[str, list[Any]]) -> Any:
        pa = self.pa
        columns = {}
        for name, values in cells.items():
            if name in self._words:
                columns[name] = pa.array(values, pa.string()).dictionary_encode()
            elif self._numbers[name] == 0:
                columns[name] = pa.array(values, pa.int64())
            else:
                columns[name] = pa.array(values, pa.decimal128(PRECISION, places(self._numbers[name])))
        return pa.table(columns)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return entry if isinstance(entry, dict) else None


def _number(value: Any, unit_ns: int) -> Decimal | None:
    """Return a number in whole ns of its unit, rounded as those of whole blocks are; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = Decimal(value if isinstance(value, (int, str)) else repr(value))
        digits = -int(number.as_tuple().exponent)
        if abs(number) * unit_ns >= MOST_NS:
            return None
    except (InvalidOperation, ValueError):
        return None
    rounding = ROUND_FLOOR if digits <= places(unit_ns) + MORE_PLACES else ROUND_HALF_EVEN
    return number.quantize(Decimal(1).scaleb(-places(unit_ns)), rounding)


def _stamps(pa: Any, column: Any) -> Any:
    """Return ISO 8601 texts as times, None where one is none."""
    for kind in (pa.timestamp("ns", "UTC"), pa.timestamp("ns")):
        try:
            return column.cast(kind).cast(pa.int64())
        except pa.ArrowInvalid:
            continue
    return None


def _stamp(pa: Any, value: Any) -> int | None:
    if not isinstance(value, str):
        return None
    stamps = _stamps(pa, pa.array([value]))
    return None if stamps is None else stamps[0].as_py()
