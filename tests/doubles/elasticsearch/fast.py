"""The plain document, read at once: what `documents.read` would find, or None where it has to decide itself.

Plain is: every field mapped, no arrays but those of histograms, no booleans, no repeated names (the fast JSON parser would keep
the last; the server refuses them: names are counted in the text), numbers and strings where the mapping wants them.
`test_documents.py` holds both readers against each other.
"""

from __future__ import annotations

from typing import Any

import orjson

from tests.doubles.elasticsearch import histogram
from tests.doubles.elasticsearch.dates import DEFAULT_FORMAT, NotADate, millis_of
from tests.doubles.elasticsearch.documents import Parsed
from tests.doubles.elasticsearch.mapping import WHOLE, Field, Mapping

Plan = dict[str, Any]


class _Doubt(Exception):
    pass


def plan_of(mapping: Mapping) -> Plan:
    """Return the mapping as nested names: a field, or the plan of an object."""
    plan: Plan = {}
    for path in mapping.objects:
        _place(plan, path, {})
    for path, item in mapping.fields.items():
        if item.parent is None:
            _place(plan, path, item)
    return plan


def _place(plan: Plan, path: str, what: Any) -> None:
    if not path:
        return
    *above, last = path.split(".")
    for part in above:
        plan = plan.setdefault(part, {})
    if isinstance(what, dict):
        plan.setdefault(last, what)
    else:
        plan[last] = what


def read(raw: bytes, plan: Plan, disabled: set[str]) -> Parsed | None:
    """Return a document's values if it is plain, else None."""
    if disabled or b"true" in raw or b"false" in raw:
        return None
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(document, dict):
        return None
    fields: dict[str, Any] = {}
    try:
        names = _object(document, plan, fields)
    except _Doubt:
        return None
    return Parsed(fields) if raw.count(b'":') == names else None


def _object(document: dict[str, Any], plan: Plan, fields: dict[str, Any]) -> int:
    names = len(document)
    for name, value in document.items():
        item = plan.get(name)
        if type(item) is dict:
            if type(value) is not dict:
                raise _Doubt
            names += _object(value, item, fields)
        elif item is None:
            raise _Doubt
        elif value is not None:
            names += _field(item, value, fields)
    return names


def _field(item: Field, value: Any, fields: dict[str, Any]) -> int:
    kind = item.kind
    if kind == "histogram":
        bins = histogram.fast(value)
        if bins is None:
            raise _Doubt
        fields[item.path] = bins
        return 2
    if kind == "keyword":
        if type(value) is not str or len(value) > min(item.parameters["ignore_above"], 8000) or item.parameters["fields"]:
            raise _Doubt
        fields[item.path] = value
    elif kind in WHOLE:
        if type(value) is not int or not -(2 ** WHOLE[kind]) <= value < 2 ** WHOLE[kind]:
            raise _Doubt
        fields[item.path] = value
    elif kind == "double":
        if type(value) not in (int, float) or value - value != 0:
            raise _Doubt
        fields[item.path] = float(value)
    elif kind == "date":
        if type(value) not in (int, str) or (type(value) is int and 1000 <= value <= 9999):
            raise _Doubt
        try:
            fields[item.path] = (
                value
                if type(value) is int and "epoch_millis" in (item["format"] or DEFAULT_FORMAT)
                else millis_of(value, item["format"])
            )
        except NotADate as error:
            raise _Doubt from error
    elif kind == "flattened":
        return _flattened(item, value, fields)
    else:
        raise _Doubt
    return 0


def _flattened(item: Field, value: Any, fields: dict[str, Any]) -> int:
    if type(value) is not dict:
        raise _Doubt
    leaves = []
    for name, leaf in value.items():
        if type(leaf) is not str or len(leaf) > item.parameters["ignore_above"]:
            raise _Doubt
        fields[f"{item.path}.{name}"] = leaf
        leaves.append(leaf)
    if leaves:
        fields[item.path] = leaves[0] if len(leaves) == 1 else leaves
    return len(value)
