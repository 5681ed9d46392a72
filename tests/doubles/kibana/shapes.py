"""Which attributes a saved object may have, and of which kind: what Kibana itself checks when it stores one.

Its schemas for dashboard version 2, visualization 8.8.0 and links, and for data views and Lens what their types may hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = Any
TEXT, TRUTH, NUMBER, WORDS = (str,), (bool,), (int, float), (dict,)
SEARCH = {"searchSourceJSON": TEXT}
# Attributes by type, with their kinds. A dict is an object with these keys alone.
SHAPES: Mapping[str, Mapping[str, Any]] = {
    "dashboard": {
        "title": TEXT,
        "description": TEXT,
        "panelsJSON": TEXT,
        "optionsJSON": TEXT,
        "timeRestore": TRUTH,
        "timeFrom": TEXT,
        "timeTo": TEXT,
        "refreshInterval": {"pause": TRUTH, "value": NUMBER, "display": TEXT, "section": NUMBER},
        "controlGroupInput": {
            "panelsJSON": TEXT, "controlStyle": TEXT, "chainingSystem": TEXT, "ignoreParentSettingsJSON": TEXT, "showApplySelections": TRUTH,
        },
        "kibanaSavedObjectMeta": SEARCH,
        "hits": NUMBER,
        "version": NUMBER,
    },
    "visualization": {
        "title": TEXT,
        "description": TEXT,
        "version": NUMBER,
        "kibanaSavedObjectMeta": SEARCH,
        "uiStateJSON": TEXT,
        "visState": TEXT,
        "savedSearchRefName": TEXT,
    },
    "links": {"title": TEXT, "description": TEXT, "links": (list,), "layout": TEXT},
    "lens": {"title": TEXT, "description": TEXT, "visualizationType": TEXT, "state": WORDS, "uiStateJSON": TEXT, "version": NUMBER},
    "index-pattern": {
        "title": TEXT,
        "name": TEXT,
        "type": TEXT,
        "timeFieldName": TEXT,
        "fields": TEXT,
        "fieldAttrs": TEXT,
        "fieldFormatMap": TEXT,
        "runtimeFieldMap": TEXT,
        "sourceFilters": TEXT,
        "typeMeta": TEXT,
        "allowNoIndex": TRUTH,
        "allowHidden": TRUTH,
    },
}  # fmt: skip


def shape_problems(line: Json) -> list[str]:
    """Return what Kibana refuses when it stores the object."""
    return list(_shaped(line["attributes"], SHAPES.get(line["type"], {}), "attributes")) if line["type"] in SHAPES else []


def _shaped(value: Json, shape: Mapping[str, Any], where: str) -> Iterator[str]:
    for name, inner in value.items():
        at = f"{where}.{name}"
        if name not in shape:
            yield f"[{at}]: definition for this key is missing"
        elif isinstance(shape[name], dict):
            yield from _shaped(inner, shape[name], at) if isinstance(inner, dict) else [f"[{at}]: expected a plain object value"]
        elif not isinstance(inner, shape[name]) or (isinstance(inner, bool) and bool not in shape[name]):
            yield f"[{at}]: expected value of type [{shape[name][0].__name__}] but got [{type(inner).__name__}]"
    if where == "attributes" and "title" in shape and "title" not in value:
        yield "[attributes.title]: expected value of type [string] but got [undefined]"
