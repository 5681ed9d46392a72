"""KQL: the part of Kibana's query language that panels are written in, and the query that Kibana makes of it.

rollup.overview: true and rollup.scope: (cluster or host) and source.state: "complete" and kind_preference < -15
latency.count > 0
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ingest.core.errors import UsageError

Scalar = str | int | bool

VALUE = r'"(?:[^"\\]|\\.)*"|\w+'
BOUND = r" < (?P<below>-?\d+)| > (?P<above>-?\d+)"
CLAUSE = re.compile(rf"(?P<field>[\w.@]+)(?:{BOUND}|: (?:(?P<one>{VALUE})|\((?P<any>(?:{VALUE})(?: or (?:{VALUE}))*)\)))")
PLAIN = re.compile(r"\w+")
WORDS = frozenset({"and", "or", "not", "true", "false"})


class Below(int):
    """All numbers below one, in the place of a value."""


class Above(int):
    """All numbers above one, in the place of a value."""


SIGNS: dict[type[Scalar], tuple[str, str]] = {Below: ("<", "lt"), Above: (">", "gt")}


def written(terms: Mapping[str, Scalar | Sequence[Scalar]]) -> str:
    """Return KQL for documents that have, in each field, the value or one of the values."""
    return " and ".join(
        f"{field} {SIGNS[type(value)][0]} {int(value)}" if isinstance(value, (Below, Above)) else f"{field}: {_any(value)}"
        for field, value in terms.items()
    )


def parsed(text: str) -> dict[str, list[Scalar]]:
    """Return the values by field that KQL of the above form asks for; UsageError for any other."""
    values: dict[str, list[Scalar]] = {}
    rest = text
    while rest:
        clause = CLAUSE.match(rest)
        if clause is None or clause["field"] in values:
            raise UsageError(f"KQL of a form that is not supported here: {text}")
        words = re.findall(VALUE, clause["one"] or clause["any"] or "")
        bounds: list[Scalar] = [kind(clause[name]) for kind, name in ((Below, "below"), (Above, "above")) if clause[name]]
        values[clause["field"]] = bounds or [_value(word) for word in words if word != "or"]
        rest = rest[clause.end() :]
        if rest and not rest.startswith(" and "):
            raise UsageError(f"KQL of a form that is not supported here: {text}")
        rest = rest.removeprefix(" and ")
    return values


def query(text: str) -> dict[str, Any]:
    """Return the Elasticsearch query that Kibana makes of KQL."""
    clauses = [
        {"bool": {"should": [_clause(field, value) for value in values], "minimum_should_match": 1}}
        for field, values in parsed(text).items()
    ]
    return {"bool": {"filter": clauses}}


def _clause(field: str, value: Scalar) -> dict[str, Any]:
    return (
        {"range": {field: {SIGNS[type(value)][1]: int(value)}}} if isinstance(value, (Below, Above)) else {"term": {field: value}}
    )


def _any(value: Scalar | Sequence[Scalar]) -> str:
    if isinstance(value, (str, int)):
        return _word(value)
    return _word(value[0]) if len(value) == 1 else f"({' or '.join(_word(word) for word in value)})"


def _word(value: Scalar) -> str:
    if isinstance(value, (bool, int)):
        return str(value).lower()
    if PLAIN.fullmatch(value) and value not in WORDS and not value.isdigit():
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _value(text: str) -> Scalar:
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdigit() else text
