"""Columns of a Lens layer, as Kibana stores them: buckets, numbers, and the rate, which is a formula of four numbers.

A rate is what was counted in the windows that are there, over their time. Dividing by the width of a bucket instead (`timeScale`)
would double it where a bucket is half as wide as a window, and would add up the kinds, of which each counts every I/O (a run
without a kind has one):

    1000 * sum(latency.count) / (unique_count(@timestamp) * max(rollup.step_ms) * pick_max(unique_count(kind), 1))

Documents without a label are a row or a line, too. Kibana asks for them only where it may also add what lies beyond the size of a
list up to "Other", with a second search; so a list of one, which is there to choose, is of fields that each document has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.kibana.data_views import view_fields
from tools.kibana.kql import written
from tools.kibana.lens_fields import RATED, data_type
from tools.kibana.lens_words import Terms, Value, Windows

Column = dict[str, Any]

OPERATIONS = {"max": "max", "min": "min", "sum": "sum", "unique": "unique_count"}
RATE = f"1000 * sum({RATED}) / (unique_count(@timestamp) * max(rollup.step_ms) * pick_max(unique_count(kind), 1))"
RATE_PARTS = (("sum", RATED), ("unique", "@timestamp"), ("max", "rollup.step_ms"), ("unique", "kind"))
RUN = "run.id"
DIRECTIONS = {"value": "desc", "name": "asc", "latest": "desc", "began": "desc"}


def number_columns(view: str, identity: str, value: Value) -> dict[str, Column]:
    """Return the columns of a value in their order, by id: one, or those of a formula."""
    if value.function != "rate":
        return {identity: _number(view, value.function, value.field, value.label, value.where)}
    parts = {
        f"{identity}X{place}": _number(view, function, name, f"Part of {RATE}", value.where, within=True)
        for place, (function, name) in enumerate(RATE_PARTS)
    }
    return {identity: _formula(value.label, f"{identity}X4"), **parts, f"{identity}X4": _division(list(parts))}


def window_column(windows: Windows) -> Column:
    """Return the column of buckets over time; windows without data stay, as gaps."""
    return {
        **_column("@timestamp", "date", "date_histogram", "interval", bucketed=True),
        "sourceField": "@timestamp",
        "params": {"interval": windows.every, "includeEmptyRows": True, "dropPartials": False},
    }


def terms_column(view: str, terms: Terms, by: str | None) -> Column:
    """Return the column of buckets by a field's values; `by` is the column that orders them by value."""
    order: dict[str, Any] = {"orderBy": {"type": "alphabetical", "fallback": False}}
    if terms.order == "began":
        stored = ("max", "run.start") if "run.start" in view_fields(view) else ("min", "@timestamp")
        order = {"orderBy": {"type": "custom"}, "orderAgg": _number(view, *stored, terms.order, {}, within=True)}
    elif terms.order == "value" and by is not None:
        order = {"orderBy": {"type": "column", "columnId": by}, "accuracyMode": True}  # other shards have other best ones
    direction = DIRECTIONS["name" if terms.order == "value" and by is None else terms.order]
    missing = view_fields(view)[terms.field]["type"] == "keyword" and terms.field != RUN
    kept = {"otherBucket": missing, "missingBucket": missing, "parentFormat": {"id": "terms"}}
    chosen = {"include": [], "exclude": [], "includeIsRegex": False, "excludeIsRegex": False}
    return {
        **_column(terms.label, data_type(view_fields(view)[terms.field]), "terms", "ordinal", bucketed=True),
        "sourceField": terms.field,
        "params": {"size": terms.size, **order, "orderDirection": direction, **kept, **chosen},
    }


def layer(columns: Mapping[str, Column], *, unfiltered: bool) -> dict[str, Any]:
    """Return the layer that holds the columns, buckets first."""
    order = sorted(columns, key=lambda identity: not columns[identity]["isBucketed"])
    fixed = {"incompleteColumns": {}, "sampling": 1}
    return {"columnOrder": order, "columns": dict(columns), "ignoreGlobalFilters": unfiltered, **fixed}


def _number(view: str, function: str, name: str, label: str, where: Mapping[str, Any], *, within: bool = False) -> Column:
    kind = data_type(view_fields(view)[name]) if function in ("max", "min") else "number"
    column = {
        **_column(label, kind, OPERATIONS[function], "ratio", bucketed=False),
        "sourceField": name,
        "params": {"emptyAsNull": not within},
    }
    return {**column, "filter": {"language": "kuery", "query": written(where)}} if where else column


def _formula(label: str, reference: str) -> Column:
    shown = {"format": {"id": "number", "params": {"decimals": 0}}}
    return {
        **_column(label, "number", "formula", "ratio", bucketed=False),
        "params": {"formula": RATE, "isFormulaBroken": False, **shown},
        "references": [reference],
    }


def _division(parts: Sequence[str]) -> Column:
    """Return the column that computes the rate, its formula parsed as Kibana parses it."""
    counted, windows, step, kinds = parts
    above, _, below = RATE.partition(" / ")
    inner = below[1:-1]
    start = len(RATE) - 1 - len(inner)
    product, _, last = inner.rpartition(" * ")
    covered = _call("multiply", [windows, step], start, product)
    alike = _call("pick_max", [kinds, 1], len(RATE) - 1 - len(last), last)
    ratio = _call(
        "divide", [_call("multiply", [1000, counted], 0, above), _call("multiply", [covered, alike], start, inner)], 0, RATE
    )
    return {
        **_column(f"Part of {RATE}", "number", "math", "ratio", bucketed=False),
        "params": {"tinymathAst": ratio},
        "references": list(parts),
    }


def _call(name: str, args: list[Any], start: int, text: str) -> dict[str, Any]:
    return {"type": "function", "name": name, "args": args, "location": {"min": start, "max": start + len(text)}, "text": text}


def _column(label: str, kind: str, operation: str, scale: str, *, bucketed: bool) -> Column:
    named = {"label": label, "customLabel": True, "dataType": kind}
    return {**named, "operationType": operation, "scale": scale, "isBucketed": bucketed}
