"""Columns of ES|QL and what expressions make of them; null goes through all but IS NULL, and OR and AND where they are decided."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tests.doubles.elasticsearch.columns import View
from tests.doubles.elasticsearch.dates import NotADate, millis_of
from tests.doubles.elasticsearch.errors import CannotDo, Refusal, refuse
from tests.doubles.elasticsearch.esql_words import Command, Node
from tests.doubles.elasticsearch.leaves import wildcard

Json = Any
Column = tuple[str, list[Any]]  # type and values
TYPES = {
    "keyword": "keyword",
    "long": "long",
    "integer": "integer",
    "short": "integer",
    "byte": "integer",
    "double": "double",
    "float": "double",
    "date": "date",
    "boolean": "boolean",
}
WHOLE = ("long", "integer")
NUMBERS = ("long", "integer", "double")
LONG = 2**63


class Table:
    """Columns of the same length, by name; source columns are read when they are asked for."""

    def __init__(self, query: str, view: View | None, size: int, columns: dict[str, Column], major: int) -> None:
        self.query = query
        self.view = view
        self.size = size
        self.columns = columns
        self.major = major
        self.loaded = 0

    def problem(self, place: int, what: str) -> Refusal:
        """Return the refusal of a query that parses but makes no sense."""
        line = self.query.count("\n", 0, place) + 1
        column = place - (self.query.rfind("\n", 0, place) + 1) + 1
        return refuse(400, "verification_exception", f"Found 1 problem\nline {line}:{column}: {what}")

    def column(self, name: str, place: int) -> Column:
        """Return a column."""
        if name not in self.columns:
            if self.view is None:
                raise self.problem(place, f"Unknown column [{name}]")
            self.columns[name] = self._read(self.view, name, place)
        return self.columns[name]

    def _read(self, view: View, name: str, place: int) -> Column:
        kinds = {item.kind for item in view.fields(name)}
        if not kinds:
            raise self.problem(place, f"Unknown column [{name}]")
        if "histogram" in kinds:
            if self.major >= 9:
                return "histogram", [document.parsed.fields.get(name) for reader in view.readers for document in reader.documents]
            raise self.problem(place, f"Cannot use field [{name}] with unsupported type [histogram]")
        types = {TYPES.get(kind) for kind in kinds}
        kind = types.pop()
        if types or kind is None:
            raise CannotDo(f"ES|QL on the field [{name}] of type {sorted(kinds)}")
        values: list[Any] = []
        for reader in view.readers:
            for document in reader.documents:
                value = document.parsed.fields.get(name)
                if isinstance(value, list):
                    raise CannotDo(f"ES|QL on the field [{name}] with several values in a document")
                values.append(value)
        self.loaded += 0 if kind == "keyword" else sum(value is not None for value in values)
        return kind, values

    def kept(self, rows: list[int]) -> Table:
        """Return some rows, in that order; source columns not yet read are read now only if asked for later."""
        chosen = {name: (kind, [values[row] for row in rows]) for name, (kind, values) in self.columns.items()}
        table = Table(self.query, None, len(rows), chosen, self.major)
        table.loaded = self.loaded
        return table

    def load(self, commands: list[Command]) -> None:
        """Read all source columns that the commands name, as the server checks them: before it computes anything."""
        made: set[str] = set()
        for command in commands:
            nodes = [
                item[1] if isinstance(item, tuple) and isinstance(item[1], Node) else item[0] if isinstance(item, tuple) else item
                for item in (*command.items, *command.groups)
            ]
            for node in nodes:
                if isinstance(node, Node):
                    self._load(node, made)
            if command.name == "KEEP":
                for pattern in command.items:
                    if "*" not in pattern and pattern not in made:
                        self.column(pattern, self.query.find(pattern))
            if command.name in ("EVAL", "STATS"):
                made |= {item[0] for item in (*command.items, *command.groups)}
            if command.name == "STATS":
                return

    def _load(self, node: Node, made: set[str]) -> None:
        if node.kind == "field" and node.value not in made:
            self.column(node.value, node.place)
        for part in node.parts:
            self._load(part, made)


def evaluate(node: Node, table: Table) -> Column:
    """Return the column of an expression."""
    if node.kind == "field":
        return table.column(node.value, node.place)
    if node.kind == "literal":
        kind = {bool: "boolean", int: "integer", float: "double", str: "keyword"}.get(type(node.value), "null")
        return kind, [node.value] * table.size
    if node.kind in ("AND", "OR", "NOT", "NULL?"):
        return "boolean", _logic(node, table)
    if node.kind in ("==", "!=", "<", "<=", ">", ">=", "IN", "LIKE"):
        return "boolean", _comparison(node, table)
    if node.kind in ("+", "-", "*", "/", "%", "negative"):
        return _arithmetic(node, table)
    if node.kind == "TO_EXPONENTIAL_HISTOGRAM":
        kind, values = evaluate(node.parts[0], table)
        if kind == "histogram":
            return "exponential_histogram", values
    raise CannotDo(f"ES|QL {node.kind} here: {node.text}")


def _logic(node: Node, table: Table) -> list[Any]:
    columns = [evaluate(part, table) for part in node.parts]
    if node.kind == "NULL?":
        return [value is None for value in columns[0][1]]
    if any(kind not in ("boolean", "null") for kind, _ in columns):
        raise CannotDo(f"ES|QL {node.kind} of other than booleans: {node.text}")
    if node.kind == "NOT":
        return [None if value is None else not value for value in columns[0][1]]
    decides = node.kind == "OR"
    pairs = zip(columns[0][1], columns[1][1])
    return [decides if decides in (a, b) else None if a is None or b is None else not decides for a, b in pairs]


def _alike(table: Table, node: Node, columns: list[Column]) -> list[list[Any]]:
    """Return columns made comparable: text becomes a date beside a date."""
    kinds = {kind for kind, _ in columns} - {"null"}
    if "date" in kinds:
        try:
            return [
                [value if value is None or kind == "date" else millis_of(value, "strict_date_optional_time") for value in values]
                for kind, values in columns
            ]
        except NotADate as error:
            raise table.problem(node.place, f"Cannot convert string [{error}] to [DATETIME]") from error
    if len(kinds) > 1 and not kinds <= set(NUMBERS):
        raise CannotDo(f"ES|QL comparison of {sorted(kinds)}: {node.text}")
    return [values for _, values in columns]


def _comparison(node: Node, table: Table) -> list[Any]:
    columns = [evaluate(part, table) for part in node.parts]
    if node.kind == "LIKE":
        if columns[0][0] != "keyword":
            raise CannotDo(f"ES|QL LIKE on {columns[0][0]}")
        pattern = wildcard(node.value)
        return [None if value is None else pattern.fullmatch(value) is not None for value in columns[0][1]]
    alike = _alike(table, node, columns)
    if node.kind == "IN":
        found: list[Any] = []
        for value, *others in zip(*alike):
            if value is None:
                found.append(None)
            else:
                found.append(True if value in [one for one in others if one is not None] else None if None in others else False)
        return found
    compare: Callable[[Any, Any], bool] = {
        "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    }[node.kind]  # fmt: skip
    return [None if a is None or b is None else compare(a, b) for a, b in zip(*alike)]


def _arithmetic(node: Node, table: Table) -> Column:
    columns = [evaluate(part, table) for part in node.parts]
    kinds = [kind for kind, _ in columns]
    if any(kind not in NUMBERS for kind in kinds):
        raise CannotDo(f"ES|QL arithmetic on {kinds}: {node.text}")
    kind = "double" if "double" in kinds else "long" if "long" in kinds else "integer"
    if node.kind == "negative":
        return kind, [None if value is None else -value for value in columns[0][1]]
    values = [
        None if a is None or b is None else _operate(node.kind, a, b, whole=kind != "double")
        for a, b in zip(columns[0][1], columns[1][1])
    ]
    limit = LONG if kind == "long" else 2**31
    if kind != "double" and any(value is not None and not -limit <= value < limit for value in values):
        raise CannotDo("ES|QL arithmetic that overflows: null and a warning on a server")
    return kind, values


def _operate(sign: str, a: Any, b: Any, *, whole: bool) -> Any:
    if sign in ("/", "%") and b == 0:
        raise CannotDo("ES|QL division by zero: null and a warning on a server")
    if sign == "/":
        return int(math.copysign(abs(a) // abs(b), a * b)) if whole else a / b
    if sign == "%":
        return int(math.fmod(a, b)) if whole else math.fmod(a, b)
    return {"+": a + b, "-": a - b, "*": a * b}[sign]
