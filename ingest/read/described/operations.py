"""Single operations in delimited files and NDJSON of any tool, read as a description says.

Delimited files and NDJSON of any tool, read as a description says (see `description`).

    done_ms,took,type            {"done_ms": 1700000000123, "took": 845, "type": "get", "node": "h1"}
    1700000000123,845,get        {"done_ms": 1700000000124, "took": 102, "type": "put", "node": "h1"}

Numbers may have decimals; ns are exact, what lies below is rounded down. Lines may come in any order. A line that lacks a
column, or whose times are none, is counted with its reason, the others are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, InvalidOperation
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from ingest.core.errors import InputError
from ingest.core.events import Events
from ingest.core.intervals import Int
from ingest.core.labels import Series, failed_kind
from ingest.core.units import MOST_NS, UNITS_NS
from ingest.read.account import Account
from ingest.read.context import NOT_REAL, NOT_RELATIVE, YEAR_NS, Context, TimeZero
from ingest.read.described.description import BY_DIGITS, Columns, Description, is_like
from ingest.read.described.table import (
    DECIMAL,
    DURATION,
    FLOAT,
    LOOKED_AT,
    MARK,
    MORE_PLACES,
    NOT_WANTED,
    PRECISION,
    WHITESPACE,
    Form,
    Lines,
    WholeLines,
    arrow,
    durations,
    fields,
    lying,
    nanoseconds,
    places,
    reject,
    sound_rows,
    tables,
    types,
    usual_width,
)
from ingest.read.format_names import DESCRIBED
from ingest.read.formats import AGAIN, Reader
from ingest.read.operations import DAY_NS, TOO_MANY_LABELS, SeriesTable, events_layout, newest_ns
from ingest.read.sources import Around, Source
from ingest.read.text import LONGEST_LINE, NULS, TABLE_ENDINGS, decimal_of, head, name_without, whole_blocks

NO_NUMBER = "a time, latency or weight is no number, or is missing"
TOO_HEAVY = "a weight of 0 or less, or so large that weight times latency passes 2^60 ns"
DECIMAL_COMMA = re.compile(r"-?\d+,\d+")
ENDING = re.compile(r"_(?P<unit>[^_()]*)$|\((?P<inside>[^()]*)\)$")
MOST_WEIGHED = 1 << 60
DIGITS_NS = ((11, 10**9), (14, 10**6), (17, 10**3))  # of times since 1970, for the next thousand years
YEAR = r"(?:18(?:2[4-9]|[3-9]\d)|19\d\d|20\d\d|21(?:0\d|1[0-5]))"  # of timing.AGES
ISO_ZONED = YEAR + r"-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[-+]\d\d:?\d\d)"
ISO_PLAIN = YEAR + r"-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?"


def columns_of(path: Path, context: Context, description: Description) -> Columns:
    """Return where everything stands in a file; InputError where a column or its unit is missing."""
    start = head(path, upto=context.upto).lstrip(b"\xef\xbb\xbf")
    lines = [*start.split(b"\n"), b""]
    at = _first_at(lines, description)
    first, second = lines[at : at + 2]
    if not first.strip():
        raise InputError("holds no line in its beginning", path)
    roles, conditions = dict(description.columns), (*description.failed, *description.where)
    if first.lstrip()[:1] == b"{" or (first.lstrip()[:1] == b"[" and any(EACH in name.split(".") for name in roles.values())):
        _check_once([*roles.values(), *description.labels.values()], path)
        labels = {**description.labels, **{name: name for name in conditions}}
        begun = start.lstrip()
        units = _units(roles, context, description, path, _first_values(begun, description))
        return Columns((), 0, roles, units, labels, {}, start=begun)
    cells = _cells(first, description, path)
    if not description.header and not description.blanks:
        numbers = [int(name) for name in (*roles.values(), *description.labels.values(), *conditions) if name.isdigit()]
        least = max(numbers, default=0)
        rows = ((line, _cells(line, description, path)) for line in lines[at:-1] if line.strip())
        looked = list(islice((row for row in rows if _taken(row[1], description)), LOOKED_AT))
        width = usual_width((len(row) for _, row in looked), least) or least
        first, cells = next(((line, row) for line, row in looked if len(row) == width), (b"", [""] * width))
    names = tuple(cells) if description.header else tuple(str(number + 1) for number in range(len(cells)))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two columns are called {twice!r}: name columns by number, and header: false", path, 1)

    def place(role: str, name: str) -> str:
        if name in names:
            return name
        if name.isdigit() and 1 <= int(name) <= len(names):
            return names[int(name) - 1]
        there = ", ".join(names[:12])
        raise InputError(f"no column {name!r} for {role}: there are {there} ({description.path} names them)", path, 1)

    roles = {role: place(role, name) for role, name in roles.items()}
    labels = {label: place(label, name) for label, name in description.labels.items()}
    _check_once([*roles.values(), *labels.values()], path)
    labels |= {name: place("failed and where", name) for name in conditions}
    blanks = names.index(free) if description.blanks and (free := place("blanks", description.blanks)) else None
    if blanks is not None and names[blanks] in roles.values():
        raise InputError(f"column {names[blanks]!r} holds numbers and cannot hold blanks", path, 1)
    data = _cells(second if description.header else first, description, path, len(names), blanks)
    sample = dict(zip(names, data, strict=False))
    units = _units(roles, context, description, path, sample)
    return Columns(names, at + int(description.header), roles, units, labels, sample, blanks)


def _first_values(start: bytes, description: Description) -> dict[str, str]:
    """Return the texts of the times of the first object of JSON that is to be taken, by key; none of a long document."""
    for line in start.split(b"\n"):
        entry = _object(line) or {}
        found = {name: _found(entry, _steps(name, start)) for name in (*description.columns.values(), *description.where)}
        texts = {name: _word(values[0]) or "" for name, values in found.items() if values}
        if all(is_like(texts.get(name, ""), globs) for name, globs in description.where.items()) and any(texts.values()):
            return texts
    return {}


def _first_at(lines: Sequence[bytes], description: Description) -> int:
    """Return which line names the columns, or is the first of data: before a table that blanks part text may stand."""
    if description.delimiter != WHITESPACE:
        return 0
    columns = tuple(description.columns.values())
    names = {name for name in (*columns, *description.labels.values()) if not name.isdigit()}
    places = [int(name) - 1 for name in columns if name.isdigit()]

    def fits(cells: Sequence[str]) -> bool:
        """Return whether a line names all wanted columns, or begins a number in each of those that are numbered."""
        if description.header:
            return bool(names) and names <= set(cells)
        return all(0 <= place < len(cells) and cells[place].lstrip("-.")[:1].isdigit() for place in places)

    return next((number for number, line in enumerate(lines[:100]) if (cells := fields(line)) and fits(cells)), 0)


def _check_once(names: Sequence[str], path: Path) -> None:
    """Raise InputError where one column is to be two things."""
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"column {name!r} is wanted twice: each can be one time, the weight or one label", path, 1)


def _taken(cells: Sequence[str], description: Description) -> bool:
    """Return whether a line of a table without names is one that `where` takes; one that lacks the column is none."""
    places = ((int(name) - 1, globs) for name, globs in description.where.items() if name.isdigit())
    return all(place < len(cells) and is_like(cells[place], globs) for place, globs in places)


def _cells(line: bytes, description: Description, path: Path, width: int = 0, blanks: int | None = None) -> list[str]:
    import csv

    if description.delimiter == WHITESPACE:
        return fields(line, width, blanks)
    text = line.decode("utf-8", "replace").replace("\0", "").replace("\r", " ")
    try:
        texts = csv.reader([text], delimiter=description.delimiter, quotechar='"' if description.quotes else None)
        return [cell.strip() for cell in next(texts, [])]
    except csv.Error as error:
        raise InputError(f"its first lines cannot be cut into columns: {error}", path) from None


def _units(
    roles: Mapping[str, str], context: Context, description: Description, path: Path, sample: Mapping[str, str]
) -> dict[str, int]:
    """Return the unit of each role in ns; `sample` has first values of columns, by which a time may tell its own."""
    units = {}
    for role, name in roles.items():
        match = ENDING.search(name.removesuffix(f".{EACH}"))
        ending = UNITS_NS.get(match["unit"] or match["inside"]) if match else None
        unit = description.units.get(role, ending if ending is not None else context.recorded_unit_ns)
        if unit is None and role != "weight":
            told = f"is given neither in {description.path} (unit:) nor by its name's ending (_us)"
            raise InputError(f"the unit of column {name!r} {told}: give it there, or with --recorded-unit", path, 1)
        if unit == BY_DIGITS:
            whole = sample.get(name, "").partition(".")[0]
            unit = next((ns for digits, ns in DIGITS_NS if len(whole) <= digits), 1) if whole.isdecimal() else 0
        units[role] = 1 if role == "weight" else unit or 0
    return units


def read(path: Path, context: Context) -> Iterator[Events]:
    """Yield the operations of a file, in ns; lines that cannot be taken are counted with their reason.

    Stamps from a year after 1970 on are epoch times, others relative: as most in the first chunk are, all are to be. Raises
    InputError where a column is missing, or where nothing describes the file.
    """
    description = context.description
    if not isinstance(description, Description):
        raise InputError("no description of its columns: --input-format takes the path of one, such as events.yml", path)
    pa = arrow(path)
    columns = columns_of(path, context, description)

    def series_of(labels: Mapping[str, str]) -> Series | None:
        if not all(is_like(labels[name], globs) for name, globs in description.where.items()):
            return None
        given = {**description.fixed, **{name: labels[name] for name in description.labels}}
        texts = {name: text.lower() if name == "op" else text for name, text in given.items() if text}
        failed = any(is_like(labels[name], globs) for name, globs in description.failed.items())
        return context.series.replaced(**texts, kind=failed_kind(description.kind) if failed else description.kind)

    series = SeriesTable(series_of)
    if not columns.names:  # NDJSON
        objects = _Objects(pa, columns, context.account)
        blocks = whole_blocks(path, context.account, context.upto)
        chunks: Iterator[tuple[Any, Int]] = chain.from_iterable(objects.tables(block) for block in blocks)
        if is_document(columns.start, columns.roles.values()):
            chunks = objects.document(path, context.upto)
    else:
        chunks = tables(path, Lines(_form(columns, description), context.account, skipped=columns.skipped), context.upto)
    real: bool | None = None  # whether stamps are real times: not known before the first rows
    for table, lines in chunks:
        codes = series.codes({label: table.column(name) for label, name in columns.labels.items()}, len(table))
        if len(wanted := np.flatnonzero(codes != -1)) < len(table):
            context.account.skip(NOT_WANTED, len(table) - len(wanted))
            table, lines, codes = table.take(wanted), lines[wanted], codes[wanted]  # noqa: PLW2901
        sure = np.ones(len(table), np.bool_)
        by_role: dict[str, Int] = {}
        for role, name in columns.roles.items():
            unit = columns.units[role]
            by_role[role], known = nanoseconds(pa, table.column(name), unit or 1) if unit >= 0 else durations(table.column(name))
            sure &= known
        latency = by_role["latency"] if "latency" in by_role else by_role["end"] - by_role["start"]
        end = by_role["end"] if "end" in by_role else by_role["start"] + latency
        weight = by_role.get("weight")
        heavy = np.zeros_like(sure) if weight is None else (weight < 1) | (weight > MOST_WEIGHED // np.maximum(latency, 1))
        faults: list[tuple[str, Any]] = [
            (NO_NUMBER, ~sure),
            ("it ended before it began", latency < 0),
            ("a latency of more than a day: damage, or another unit than was given", latency > DAY_NS),
            (TOO_HEAVY, heavy),
            (TOO_MANY_LABELS, codes == -2),
        ]
        sound = ~np.logical_or.reduce([bad for _, bad in faults])
        dated = end - latency >= YEAR_NS
        if real is None and sound.any():
            real = 2 * int(np.count_nonzero(dated & sound)) >= int(np.count_nonzero(sound))
        faults.append((NOT_REAL if real else NOT_RELATIVE, dated if real is False else ~dated))
        good = sound_rows(context.account, lines, faults)
        base = context.offset_ns + (0 if real else context.zero.epoch_ns or 0)
        yield Events(series.table, codes, end + base, latency, weight).take(good)


def _form(columns: Columns, description: Description) -> Form:
    """Return the form of a line: quick types after the first line of data, then decimals, then floats."""
    pa = arrow()
    numbers = {name: columns.units[role] for role, name in columns.roles.items()}
    words = {name: pa.dictionary(pa.int32(), pa.binary()) for name in columns.labels.values()}
    types = [{name: _types(unit)[level] for name, unit in numbers.items()} for level in range(2)]
    tiers = [(_pattern(columns, description, numbers, level), {**words, **types[level]}) for level in range(2)]
    quick = {name: _quick(columns.sample.get(name, ""), unit) for name, unit in numbers.items()}
    shape = Form(columns.names, {**words, **quick}, tiers, NO_NUMBER, description.delimiter, description.quotes, hexadecimal=True)
    if description.where:
        places = [(columns.names.index(columns.labels[name]), globs) for name, globs in description.where.items()]

        def unwanted(cells: Sequence[str]) -> bool:
            """Return whether a line of other columns is none that is to be taken; one that lacks the column tells nothing."""
            return any(place < len(cells) and not is_like(cells[place], globs) for place, globs in places)

        shape = replace(shape, unwanted=unwanted)
    by_blanks = description.delimiter == WHITESPACE
    names = [re.escape(name) if by_blanks else rf'[ \t]*"?{re.escape(name)}"?[ \t]*' for name in columns.names]
    again = _escaped(MARK if by_blanks else description.delimiter).join(names)  # a header line that comes again
    passed = rf"^(?:{again})?\r?\n$" if description.header else shape.passed
    if not by_blanks:
        return replace(shape, passed=passed)
    return replace(shape, delimiter=MARK, quoted=False, passed=passed, marked=True, blanks=columns.blanks)


def _types(unit_ns: int) -> list[Any]:
    """Return the two types that numbers of a unit (or ISO 8601 text, or durations with their unit) are sifted as."""
    pa = arrow()
    if unit_ns < 0:
        return [pa.string()] * 2
    return [pa.timestamp("ns", "UTC"), pa.timestamp("ns")] if not unit_ns else types(pa, unit_ns)[2:]


def _quick(sample: str, unit_ns: int) -> Any:
    """Return the type that suits the first value of a column."""
    pa = arrow()
    if unit_ns < 0:
        return pa.string()
    if not unit_ns:
        return _types(0)[0 if sample[-1:] == "Z" or "+" in sample or sample.count("-") > 2 else 1]
    return types(pa, unit_ns)[0 if sample.lstrip("-").isdigit() else 1]


def _pattern(columns: Columns, description: Description, numbers: Mapping[str, int], level: int) -> str:
    """Return the pattern of whole lines whose numbers are decimals (or times with a zone), or any floats (or without)."""
    plain, stamp = (DECIMAL, FLOAT)[level], (ISO_ZONED, ISO_PLAIN)[level]
    if description.delimiter == WHITESPACE:
        kinds = {name: _cell(unit, plain, stamp) for name, unit in numbers.items()}
        return "^" + _escaped(MARK).join(kinds.get(name, r"[^\n\x1f]*") for name in columns.names) + "\n$"
    space = "" if description.delimiter in " \t" else "[ \\t]*"
    delimiter = _escaped(description.delimiter)
    other = rf'(?:"(?:[^"\n]|"")*"|[^"\n{delimiter}]*)' if description.quotes else rf"[^\n{delimiter}]*"
    cells = [
        rf'{space}"?{_cell(numbers[name], plain, stamp)}"?{space}' if name in numbers else f"{space}{other}"
        for name in columns.names
    ]
    return "^" + delimiter.join(cells) + "\n$"


def _cell(unit_ns: int, plain: str, stamp: str) -> str:
    return DURATION if unit_ns < 0 else plain if unit_ns else stamp


def _escaped(mark: str) -> str:
    return f"\\x{ord(mark):02x}"


def first_end_ns(path: Path, context: Context, description: Description) -> int:
    """Return the completion of the first operation that can be read, in ns of the file's clock; InputError if there is none."""
    for events in read(path, replace(context, description=description)):
        if len(events):
            return int(events.end_ns[0])
    sample = columns_of(path, context, description).sample
    commas = [name for name in description.columns.values() if DECIMAL_COMMA.fullmatch(sample.get(name, ""))]
    reasons = [reason for reason, _ in context.account.rejected.most_common(1)]
    reasons += [f"column {commas[0]!r} has decimal commas: write points, as with LC_ALL=C"] if commas else []
    raise InputError(f"holds no operation that can be read{': ' if reasons else ''}{'; '.join(reasons)}", path)


def locate(path: Path, around: Around) -> Source:
    """Return the source of a described file; InputError where a column is missing or no operation can be read."""
    context = around.context(path, process=name_without(path, TABLE_ENDINGS))
    description = context.description
    if not isinstance(description, Description):
        raise InputError("no description of its columns: --input-format takes the path of one, such as events.yml", path)
    quiet = replace(context, account=Account(path=str(path)), zero=TimeZero(0), offset_ns=0)
    first = first_end_ns(path, quiet, description)
    dated = first >= YEAR_NS
    own = TimeZero(first, "epoch stamps in the log") if dated else TimeZero()
    zero = around.zero(path, own, lambda: newest_ns(read(path, quiet)), absolute=dated)
    return Source(path, DESCRIBED, replace(context, zero=zero), layout=str(events_layout(around.options.digits)))


READER = Reader(locate, events=read, grows=AGAIN, arrow=True)


# JSON as Arrow columns: objects a line, block by block, with the line of each; or one document. Other keys are left alone.
#
# Keys lead into objects and arrays: `metrics.latency.value`, `details.*.latency`, where each entry is an operation, `ttfts.*`.
# Numbers are tried as integers, as decimals of whole ns, as longer decimals, as floats: the first that a whole block
# fits. A block with a fault in it is gone through line by line, and only that one.


NO_OBJECT = "no JSON object"
UNLIKE = "arrays of unlike lengths"
EACH = "*"
LEVELS = 4
MOST_DOCUMENT = 1 << 28
TOKEN = rb'"%b"\s*:\s*\[?\s*(?:(true|false)|(-?\d+))\s*[,}\]]'


def is_document(start: bytes, names: Iterable[str]) -> bool:
    """Return whether a file that begins so is one JSON document, not an object a line: only where keys lead into arrays."""
    if not any(EACH in name.split(".") for name in names):
        return False
    first, _, rest = start.lstrip().partition(b"\n")
    return _object(first) is None or not rest.strip()


def _steps(name: str, start: bytes) -> tuple[str, ...]:
    """Return the keys on the way to a value; a name that stands in the file as a whole, dots and all, is one key."""
    if b'"%b"' % name.encode() in start:
        return (name,)
    return tuple(name.split("."))


class _Objects:
    """Parses the blocks of one file in turn."""

    def __init__(self, pa: Any, columns: Columns, account: Account) -> None:
        self.pa = pa
        import pyarrow.json

        self.json = pyarrow.json
        self.account = account
        self._whole = WholeLines(account)
        self._level = 0
        self._numbers = {name: columns.units[role] for role, name in columns.roles.items()}
        self._words = tuple(columns.labels.values())
        self._way: tuple[str, ...] = ("",) if columns.start[:1] == b"[" else ()  # to the values of an array without a name
        self._learn(columns.start)

    def _learn(self, start: bytes) -> None:
        """Take the way to each value, and of words whether they are written as texts, whole numbers or truth values."""
        pa = self.pa
        self._paths = {name: (*self._way, *_steps(name, start)) for name in (*self._numbers, *self._words)}
        self._kinds = dict.fromkeys(self._words, pa.string())
        for name in self._words:
            key = next((step for step in reversed(self._paths[name]) if step != EACH), "")
            if match := re.search(TOKEN % re.escape(key.encode()), start):
                self._kinds[name] = pa.bool_() if match[1] else pa.int64()

    def document(self, path: Path, upto: int | None) -> Iterator[tuple[Any, Int]]:
        """Yield the operations in the arrays of one document (or several after one another); InputError where it is too large."""
        pieces, size = [], 0
        for block in whole_blocks(path, self.account, upto):
            pieces.append(bytes(block))
            size += len(block)
            if size > MOST_DOCUMENT:
                raise InputError("more than 256 MiB are no single document: write an object a line", path)
        text = b"".join(pieces).strip()
        text = b'{"":%b}' % text if self._way else text
        table = self._block(text + b"\n", several=True)
        if table is not None and (ready := self._ready(table)) is not None:
            yield ready[0], np.ones(len(ready[1]), np.int64)
        else:
            yield from self._by_line(text.replace(b"\n", b" ") + b"\n")

    def tables(self, block: memoryview) -> Iterator[tuple[Any, Int]]:
        """Yield the columns of the objects in a block with their line numbers; the last needs no newline if it is whole."""
        text = bytes(block)
        rest = text[text.rfind(b"\n") + 1 :]
        if not rest.strip():
            text = text[: len(text) - len(rest)]
        elif len(rest) < LONGEST_LINE and _object(rest) is not None:
            text += b"\n"
        text = self._whole.of(memoryview(text)).tobytes()
        count = text.count(b"\n")
        if not count:
            return
        table = self._block(text) if b"\n\n" not in text and b"\r" not in text else None
        if table is not None and len(table) == count and (ready := self._ready(table)) is not None:
            yield ready[0], self._whole.line + ready[1]
        else:
            yield from self._by_line(text)
        self._whole.line += count

    def _schema(self, level: int) -> Any:
        """Return the schema of all wanted values: objects and arrays as deep as their names say."""
        pa = self.pa
        tree: dict[str, Any] = {}
        for name, steps in self._paths.items():
            unit = self._numbers.get(name)
            kind = self._kinds[name] if unit is None else types(pa, unit)[level] if unit > 0 else pa.string()
            *way, last = steps
            here: dict[str, Any] = tree
            for step in way:
                here = here.setdefault(step, {})
            here[last] = kind

        def typed(part: Any) -> Any:
            if not isinstance(part, dict):
                return part
            if EACH in part:
                return pa.list_(typed(part[EACH]))
            return pa.struct([(key, typed(inner)) for key, inner in part.items()])

        return pa.schema([(key, typed(inner)) for key, inner in tree.items()])

    def _block(self, text: bytes, *, several: bool = False) -> Any:
        """Return the columns of a block, None where no level of numbers fits all of it; `several` lines may be one object."""
        pa, json = self.pa, self.json
        whole = json.ReadOptions(use_threads=False, block_size=len(text) + 1)
        for level in range(self._level, LEVELS):
            wanted = json.ParseOptions(
                explicit_schema=self._schema(level), newlines_in_values=several, unexpected_field_behavior="ignore"
            )
            try:
                table = json.read_json(pa.BufferReader(text), read_options=whole, parse_options=wanted)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError):
                continue
            self._level = level
            return table
        return None

    def _ready(self, table: Any) -> tuple[Any, Int] | None:
        """Return a table of all wanted values and the row of each; None where one is no time, or arrays are of unlike lengths."""
        pa, columns = self.pa, {}
        lengths: Any = None
        of_lines: list[str] = []
        for name, steps in self._paths.items():
            column = table.column(steps[0])
            column = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
            for step in steps[1:]:
                if step == EACH:
                    mine = lying(pa.compute.list_value_length(column).fill_null(-1), np.int32)
                    if (lengths is not None and not np.array_equal(lengths, mine)) or (mine < 0).any():
                        return None
                    lengths, column = mine, pa.compute.list_flatten(column)
                else:
                    column = pa.compute.struct_field(column, [step])
            if EACH not in steps:
                of_lines.append(name)
            columns[name] = column
        rows = np.arange(len(table)) if lengths is None else np.repeat(np.arange(len(table)), lengths)
        for name, column in columns.items():
            values = column.take(pa.array(rows)) if lengths is not None and name in of_lines else column
            if self._numbers.get(name) == 0:
                values = _stamps(pa, values)
                if values is None:
                    return None
            elif name not in self._numbers:
                values = (values if pa.types.is_string(values.type) else values.cast(pa.string())).dictionary_encode()
            columns[name] = values
        return pa.table(columns), rows

    def _by_line(self, text: bytes) -> Iterator[tuple[Any, Int]]:
        """Yield the objects of a block with a fault in it."""
        numbers: list[int] = []
        cells: dict[str, list[Any]] = {name: [] for name in (*self._numbers, *self._words)}
        bad: dict[str, list[int]] = {}
        sound = b""
        for place, line in enumerate(text.split(b"\n")[:-1]):
            if not line.strip():
                continue
            entry = _object(line)
            if entry is None:
                reason = NULS if b"\0" in line else NO_OBJECT
                bad.setdefault(reason, []).append(self._whole.line + place)
                continue
            sound = line
            found = {name: _found(entry, steps) for name, steps in self._paths.items()}
            arrays = {name: values for name, values in found.items() if EACH in self._paths[name]}
            count = {len(values or ()) for values in arrays.values()} or {1}
            if None in arrays.values() or len(count) > 1:
                lacking = next((f"no array {name}" for name, values in arrays.items() if values is None), UNLIKE)
                bad.setdefault(lacking, []).append(self._whole.line + place)
                continue
            rows = count.pop()
            numbers += [self._whole.line + place] * rows
            for name, values in found.items():
                several = (values or []) if EACH in self._paths[name] else (values or [None]) * rows
                unit = self._numbers.get(name)
                if unit is None:
                    cells[name] += [_word(value) for value in several]
                elif unit > 0:
                    cells[name] += [_number(value, unit) for value in several]
                else:
                    cells[name] += [_word(value) if unit else _stamp(self.pa, value) for value in several]
        if sound and not self._way:
            self._learn(sound)  # what comes is more like this than like the beginning
        for reason, lines in bad.items():
            reject(self.account, reason, np.array(lines, np.int64))
        if numbers:
            pa = self.pa
            columns = {name: pa.array(cells[name], pa.string()).dictionary_encode() for name in self._words}
            for name, unit in self._numbers.items():
                kind = pa.decimal128(PRECISION, places(unit)) if unit > 0 else pa.string() if unit else pa.int64()
                columns[name] = pa.array(cells[name], kind)
            yield pa.table(columns), np.array(numbers, np.int64)


def _found(entry: Any, steps: Sequence[str]) -> list[Any] | None:
    """Return the values at the end of a way: one, or all of an array; None where there is no array."""
    found = [entry]
    for step in steps:
        if step != EACH:
            found = [holder.get(step) if isinstance(holder, dict) else None for holder in found]
        elif isinstance(found[0], list):
            found = found[0]
        else:
            return None
    return found


def _word(value: Any) -> str | None:
    """Return a value as the text that JSON has for it, None for null, objects and arrays."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (str, int, float)) else None


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
        number = Decimal(value) if isinstance(value, int) else decimal_of(value if isinstance(value, str) else repr(value))
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
