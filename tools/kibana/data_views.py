"""Data views: an index pattern each, with the units and descriptions of mappings/fields.yml.

Kibana then shows 4230000 ns as 4.230 ms wherever a field appears. Its durations know no unit below a millisecond: three digits
are microseconds. The view of runs has no time field, because the records of sources have no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ingest.core.schema import ELASTICSEARCH, fields, in_store, indices
from ingest.store.elastic.templates import Names
from tools.kibana.objects import SavedObject

Field = dict[str, Any]

TIME_FIELD = "@timestamp"
DURATIONS = {"ns": "nanoseconds", "ms": "milliseconds"}
NUMBERS = frozenset({"long", "double"})
NOT_LISTED = frozenset({"labels", "object"})


def data_views(prefix: str) -> list[SavedObject]:
    """Return the data views for the indices of a prefix, one for each kind of index."""
    return [data_view(prefix, index) for index in indices()]


def data_view(prefix: str, index: str) -> SavedObject:
    """Return the data view of a kind of index."""
    listed = [field for field in view_fields(index).values() if field["type"] not in NOT_LISTED]
    formats = {field["name"]: form for field in listed if (form := field_format(field)) is not None}
    attributes = {
        "title": pattern(prefix, index),
        "name": f"{prefix} {index}",
        "fieldFormatMap": formats,
        "fieldAttrs": {field["name"]: {"customDescription": field["description"]} for field in listed},
        "allowNoIndex": True,
    }
    return SavedObject("index-pattern", view_id(prefix, index), {**attributes, **timed(index)})


def view_id(prefix: str, index: str) -> str:
    """Return the id of the data view of a kind of index."""
    return f"{prefix}-{index}"


def index_of(identity: str) -> str:
    """Return the kind of index that a data view is of, from its id."""
    return identity.rsplit("-", 1)[-1]


def pattern(prefix: str, index: str) -> str:
    """Return the indices of a kind as Elasticsearch takes them."""
    names = Names(prefix)
    return names.pattern(index)


def timed(index: str) -> dict[str, str]:
    """Return the time field of a data view: none where some of its documents have no time."""
    everywhere = all(any(field["name"] == TIME_FIELD for field in own) for own in _documents(index))
    return {"timeFieldName": TIME_FIELD} if everywhere else {}


def view_fields(index: str) -> dict[str, Field]:
    """Return the fields that documents of a kind of index have in Elasticsearch, by name; of two alike the first."""
    fields_by_name: dict[str, Field] = {}
    for own in _documents(index):
        for field in own:
            fields_by_name.setdefault(field["name"], field)
    return fields_by_name


def field_format(field: Field) -> dict[str, Any] | None:
    """Return how Kibana shows a number of this unit; None for its own way."""
    unit, number = field.get("unit"), field["type"] in NUMBERS
    if number and unit in DURATIONS:
        shown = {"outputFormat": "humanizePrecise", "outputPrecision": 3, "useShortSuffix": True, "includeSpaceWithSuffix": True}
        return {"id": "duration", "params": {"inputFormat": DURATIONS[unit], **shown}}
    if number and unit == "bytes":
        return {"id": "bytes", "params": {"pattern": "0,0.[0] b"}}
    if number and unit == "samples":
        return {"id": "number", "params": {"pattern": "0,0"}}
    return None


def _documents(index: str) -> Iterator[list[Field]]:
    """Yield the fields of each document that goes to a kind of index."""
    documents = fields()["documents"]
    for document in documents.values():
        if document.get("index") == index:
            joined = in_store(documents[document["joins"]], ELASTICSEARCH) if "joins" in document else []
            yield [*in_store(document, ELASTICSEARCH), *joined]
