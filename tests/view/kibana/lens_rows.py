"""What Lens shows of the server's answer: a row for each innermost bucket, a value under each label. Written after its documentation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tools.kibana.asked import Shown
from tools.kibana.asked_lens import MISSING, lens_request
from tools.kibana.objects import SavedObject

COMPUTED = ("formula", "math")


def asked_rows(served, saved: SavedObject, shown: Shown) -> list[dict[str, Any]]:
    """Return the rows of a panel, from the server."""
    request = lens_request(saved, shown)
    return rows(saved, served.search(request.index, request.body)["aggregations"])


def rows(saved: SavedObject, aggregations: dict[str, Any]) -> list[dict[str, Any]]:
    [layer] = saved.attributes["state"]["datasourceStates"]["formBased"]["layers"].values()
    columns = [(name, layer["columns"][name]) for name in layer["columnOrder"]]
    asked = [(name, column) for name, column in columns if column["operationType"] not in COMPUTED]
    places = {name: str(place) for place, (name, _) in enumerate(asked)}
    buckets = [(name, column) for name, column in asked if column["isBucketed"]]
    numbers = [(name, column) for name, column in asked if not column["isBucketed"]]
    found = []
    for keys, inner in _innermost([places[name] for name, _ in buckets], aggregations):
        values = {name: key for (name, _), key in zip(buckets, keys)}
        values |= {name: _number(inner, places[name], column) for name, column in numbers}
        for name, column in columns:
            if column["operationType"] == "math":
                values[name] = _calculated(column["params"]["tinymathAst"], values)
        for name, column in columns:
            if column["operationType"] == "formula":
                values[name] = values[column["references"][0]]
        shown = [(name, column) for name, column in columns if not column["label"].startswith(("Part of ", "preference"))]
        found.append({column["label"]: values[name] for name, column in shown})
    return found


def _innermost(path: list[str], answer: dict[str, Any]) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    if not path:
        yield [], answer
        return
    for bucket in answer[path[0]]["buckets"]:
        for keys, inner in _innermost(path[1:], bucket):
            yield ["-" if bucket["key"] == MISSING else bucket["key"], *keys], inner


def _number(inner: dict[str, Any], place: str, column: dict[str, Any]) -> Any:
    value = inner[f"{place}-filter"][f"{place}-metric"]["value"] if "filter" in column else inner[place]["value"]
    empty = column["operationType"] in ("sum", "unique_count") and column["params"]["emptyAsNull"] and value == 0
    return None if empty else value


def _calculated(tree: Any, values: dict[str, Any]) -> float | None:
    """Return a formula's value; Kibana shows nothing where it divides by zero or a number is missing."""
    if isinstance(tree, (int, float)):
        return tree
    if isinstance(tree, str):
        return values[tree]
    left, right = (_calculated(one, values) for one in tree["args"])
    if left is None or right is None:
        return None
    if tree["name"] in ("multiply", "pick_max"):
        return left * right if tree["name"] == "multiply" else max(left, right)
    assert tree["name"] == "divide", tree
    return left / right if right else None
