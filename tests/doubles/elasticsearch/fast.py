"""The plain document, read at once: what `documents.read` would find, or None where it has to decide itself.

Plain is: every field mapped, no arrays but those of histograms, no booleans but those of boolean fields, no repeated names (the fast JSON parser would keep
the last; the server refuses them: names and booleans are counted in the text), numbers and strings where the mapping wants them.
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
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(document, dict):
        return None
    seen = _Seen(disabled)
    try:
        _object(document, plan, "", seen)
    except _Doubt:
        return None
    whole = raw.count(b'":') == seen.names and raw.count(b"true") + raw.count(b"false") == seen.booleans
    return Parsed(seen.fields) if whole else None


class _Seen:
    """What of a document was understood: its values, and how many names and booleans its text must have then."""

    __slots__ = ("booleans", "disabled", "fields", "names")

    def __init__(self, disabled: set[str]) -> None:
        self.fields: dict[str, Any] = {}
        self.names = 0
        self.booleans = 0
        self.disabled = disabled


def _object(document: dict[str, Any], plan: Plan, path: str, seen: _Seen) -> None:
    seen.names += len(document)
    for name, value in document.items():
        item = plan.get(name)
        if type(item) is dict:
            full = f"{path}.{name}" if path else name
            if full in seen.disabled:
                _skipped(value, seen)
            elif type(value) is dict:
                _object(value, item, full, seen)
            else:
                raise _Doubt
        elif item is None:
            raise _Doubt
        elif value is not None:
            _field(item, value, seen)


def _skipped(value: Any, seen: _Seen) -> None:
    """Count the names and booleans of an object that the index keeps but does not look into."""
    if type(value) is dict:
        seen.names += len(value)
        for inner in value.values():
            _skipped(inner, seen)
    elif type(value) is list:
        for inner in value:
            _skipped(inner, seen)
    elif type(value) is bool:
        seen.booleans += 1


def _field(item: Field, value: Any, seen: _Seen) -> None:
    kind, fields = item.kind, seen.fields
    if kind == "histogram":
        bins = histogram.fast(value)
        if bins is None:
            raise _Doubt
        fields[item.path] = bins
        seen.names += 2
    elif kind == "keyword":
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
    elif kind == "boolean":
        if type(value) is not bool:
            raise _Doubt
        fields[item.path] = value
        seen.booleans += 1
    elif kind == "flattened":
        _flattened(item, value, seen)
    else:
        raise _Doubt


def _flattened(item: Field, value: Any, seen: _Seen) -> None:
    if type(value) is not dict:
        raise _Doubt
    leaves = []
    for name, leaf in value.items():
        if type(leaf) is not str or len(leaf) > item.parameters["ignore_above"]:
            raise _Doubt
        seen.fields[f"{item.path}.{name}"] = leaf
        leaves.append(leaf)
    if leaves:
        seen.fields[item.path] = leaves[0] if len(leaves) == 1 else leaves
    seen.names += len(value)
