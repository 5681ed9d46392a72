"""Which fields a Lens panel can do what with: types as in mappings/fields.yml."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ingest.core.errors import UsageError
from tools.kibana.config import Panel
from tools.kibana.data_views import Field, view_fields

FUNCTIONS = ("max", "min", "sum", "unique", "rate")
RATED = "latency.count"
NUMBERS = frozenset({"long", "double", "date"})
COUNTS = frozenset({None, "samples"})
WORDS = frozenset({"keyword", "long", "boolean"})
MOST_TERMS = 1000


def checked_value(panel: Panel, function: str, used: Iterable[str], measured: str) -> None:
    """Raise UsageError if a field is none of the panel's view, or the function is not for the field that is measured."""
    known = view_fields(panel.words["view"])
    for name in used:
        if name not in known:
            raise UsageError(f"panel {panel.id}: {panel.words['view']} have no field {name}")
    field = known[measured]
    if function in ("max", "min") and field["type"] not in NUMBERS:
        raise UsageError(f"panel {panel.id}: {measured} is no number: it has no {function}")
    if function == "sum" and not (field["type"] == "long" and field.get("unit") in COUNTS):
        raise UsageError(f"panel {panel.id}: {measured} is no count: only counts can be added up")
    if function == "unique" and field["type"] not in WORDS:
        raise UsageError(f"panel {panel.id}: different values of {measured} cannot be counted")
    if function == "rate" and (measured != RATED or panel.words.get("level") not in ("overview", "stored")):
        raise UsageError(f"panel {panel.id}: a rate is of {RATED}, of windows of rollups")


def checked_bucket(panel: Panel, name: str, size: Any) -> None:
    """Raise UsageError if documents cannot be grouped by a field, or not into that many buckets."""
    field = view_fields(panel.words["view"]).get(name)
    if field is None:
        raise UsageError(f"panel {panel.id}: {panel.words['view']} have no field {name}")
    if not is_word(field):
        raise UsageError(f"panel {panel.id}: rows by {name} are not possible: it is of type {field['type']}")
    if not isinstance(size, int) or not 1 <= size <= MOST_TERMS:
        raise UsageError(f"panel {panel.id}: `size` is a number from 1 to {MOST_TERMS}")


def is_word(field: Field) -> bool:
    """Return whether documents can be grouped by a field's values; a date with unit ns is a number in Elasticsearch."""
    return field["type"] in WORDS or (field["type"] == "date" and field["unit"] == "ns")


def data_type(field: Field) -> str:
    """Return the type of a field as Lens names it."""
    if field["type"] == "date" and field["unit"] == "ms":
        return "date"
    return {"keyword": "string", "text": "string", "boolean": "boolean", "histogram": "histogram"}.get(field["type"], "number")
