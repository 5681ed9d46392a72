"""Saved objects: what Kibana stores and imports, with fixed ids.

    kibana/saved_objects/dashboard/tailboard-cluster-latency.json      decoded: texts that hold JSON stand there as JSON
    kibana/tailboard.ndjson                                            the lines that Kibana imports, a line an object

Versions are the oldest that every Kibana from 8.19 on takes: an object without a version would run through all migrations, one
with a newer version than the server's is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

CORE_VERSION = "8.8.0"
SPEC = "spec"
TYPE_VERSIONS = {"dashboard": "10.2.0", "lens": "8.9.0", "visualization": "8.5.0", "index-pattern": "8.0.0", "links": "10.1.0"}
TEXTS_OF_JSON = {
    *("panelsJSON", "optionsJSON", "searchSourceJSON", "ignoreParentSettingsJSON"),
    *("visState", "uiStateJSON", "spec", "fieldFormatMap", "fieldAttrs"),
}


@dataclass(frozen=True, slots=True)
class Reference:
    """A saved object that another one names."""

    type: str
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class SavedObject:
    """A saved object; attributes are decoded: what Kibana keeps as a text of JSON is JSON here."""

    type: str
    id: str
    attributes: Mapping[str, Any]
    references: tuple[Reference, ...] = field(default=())

    @property
    def title(self) -> str:
        """Return what people see."""
        return str(self.attributes.get("name") or self.attributes["title"])

    @property
    def path(self) -> str:
        """Return its file under kibana/saved_objects/."""
        return f"{self.type}/{self.id}.json"


def file_text(saved: SavedObject) -> str:
    """Return the reviewable file of an object: decoded, keys sorted."""
    return json.dumps({**line(saved), "attributes": saved.attributes}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def line(saved: SavedObject) -> dict[str, Any]:
    """Return an object as Kibana imports it: texts of JSON encoded."""
    return {
        "id": saved.id,
        "type": saved.type,
        "attributes": _encoded(saved.attributes),
        "references": [asdict(reference) for reference in saved.references],
        "coreMigrationVersion": CORE_VERSION,
        "typeMigrationVersion": TYPE_VERSIONS[saved.type],
    }


def line_text(saved: SavedObject) -> str:
    """Return the line of an object in the file that Kibana imports; it holds no line break."""
    return _text(line(saved))


def ndjson(objects: Iterable[SavedObject]) -> bytes:
    """Return the file that Kibana imports, a line an object."""
    return "".join(line_text(saved) + "\n" for saved in objects).encode()


def object_of(content: Mapping[str, Any]) -> SavedObject:
    """Return the object of a parsed line or file; texts of JSON are decoded where they are not yet."""
    references = tuple(Reference(reference["type"], reference["id"], reference["name"]) for reference in content["references"])
    return SavedObject(content["type"], content["id"], _decoded(content["attributes"]), references)


def _encoded(value: Any) -> Any:
    """Return attributes with every text of JSON as text, the inner ones first."""
    if isinstance(value, Mapping):
        return {
            key: readable(inner) if key == SPEC else _text(_encoded(inner)) if key in TEXTS_OF_JSON else _encoded(inner)
            for key, inner in value.items()
        }
    return [_encoded(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _decoded(value: Any) -> Any:
    """Return attributes with every text of JSON as what it says, the outer ones first: the inverse of `_encoded`."""
    if isinstance(value, Mapping):
        texts = {key: json.loads(inner) for key, inner in value.items() if key in TEXTS_OF_JSON and isinstance(inner, str)}
        return {key: inner if key == SPEC else _decoded(inner) for key, inner in {**value, **texts}.items()}
    return [_decoded(inner) for inner in value] if isinstance(value, list) else value


def readable(value: Any, before: str = "", most: int = 110) -> str:
    """Return JSON as people read it in Kibana's editor: lines of at most `most` characters where that can be, indented."""
    line = json.dumps(value, ensure_ascii=False)
    if len(before) + len(line) <= most or not isinstance(value, (Mapping, list, tuple)) or not value:
        return line
    deeper = f"{before} "
    if isinstance(value, Mapping):
        rows = [f"{json.dumps(key, ensure_ascii=False)}: {readable(inner, deeper, most)}" for key, inner in value.items()]
    else:
        rows = [readable(inner, deeper, most) for inner in value]
    first, last = "{}" if isinstance(value, Mapping) else "[]"
    return f"{first}\n" + ",\n".join(deeper + row for row in rows) + f"\n{before}{last}"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
