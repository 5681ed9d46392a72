"""mappings/fields.yml and the files generated from it: the SQLite schema, the Elasticsearch mappings and the field reference."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

SQLITE, ELASTICSEARCH = "sqlite", "elasticsearch"
TYPES = {"long": "INTEGER", "date": "INTEGER", "boolean": "INTEGER", "double": "REAL", "histogram": "BLOB"}
LABEL_LENGTH = 1024
DATE_FORMAT = "epoch_millis||strict_date_optional_time"


def assets(kind: str) -> Path:
    """Return the folder `mappings`, `kibana` or `examples`: of the checkout, or inside the installed package."""
    beside = Path(__file__).parents[2] / kind
    return beside if beside.is_dir() else Path(__file__).parents[1] / kind


@lru_cache(maxsize=1)
def fields() -> dict[str, Any]:
    """Return the content of mappings/fields.yml."""
    import yaml

    content: dict[str, Any] = yaml.safe_load((assets("mappings") / "fields.yml").read_text(encoding="utf-8"))
    return content


@lru_cache(maxsize=1)
def schema_version() -> int:
    """Return the version of mappings/fields.yml, which is not parsed for it: that takes longer than a small load."""
    with (assets("mappings") / "fields.yml").open(encoding="utf-8") as lines:
        return next(int(line.partition(":")[2]) for line in lines if line.startswith("version:"))


def column(field: dict[str, Any]) -> str:
    """Return the SQLite column of a field."""
    return str(field.get("sqlite", field["name"].replace(".", "_")))


def in_store(document: dict[str, Any], store: str) -> list[dict[str, Any]]:
    """Return the fields of a document that a store has."""
    return [field for field in document["fields"] if field.get("only", store) == store]


def sqlite_schema() -> str:
    """Return the SQL that creates the embedded store's tables."""
    content = fields()
    parts = ["-- Generated from fields.yml by `make build`; do not edit.", f"PRAGMA user_version = {content['version']};"]
    for table, document in content["documents"].items():
        own = in_store(document, SQLITE)
        single = [field for field in own if field.get("key")]
        lines = []
        for field in own:
            kind = TYPES.get(field["type"], "TEXT")
            whole = " PRIMARY KEY" if len(single) == 1 and field.get("key") else ""
            lines.append(f"  {column(field)} {kind}{whole}{'' if field.get('null') else ' NOT NULL'}")
        keys = ", ".join(column(field) for field in single)
        if len(single) > 1:
            lines.append(f"  PRIMARY KEY ({keys})")
        unique = ", ".join(column(field) for field in own if field.get("unique"))
        if unique:
            lines.append(f"  UNIQUE ({unique})")
        parts.append(f"CREATE TABLE {table} (\n" + ",\n".join(lines) + "\n);")
    return "\n".join(parts) + "\n"


def indices() -> tuple[str, ...]:
    """Return the kinds of Elasticsearch index that documents go to."""
    return tuple(dict.fromkeys(document["index"] for document in fields()["documents"].values() if "index" in document))


def elasticsearch_mappings(index: str) -> dict[str, Any]:
    """Return the mappings of a kind of index: strict, so that a field of no template is an error and never a guess."""
    documents = fields()["documents"]
    properties: dict[str, Any] = {}
    for document in documents.values():
        if document.get("index") != index:
            continue
        joined = in_store(documents[document["joins"]], ELASTICSEARCH) if "joins" in document else []
        for field in (*in_store(document, ELASTICSEARCH), *joined):
            place = properties
            *parents, name = field["name"].split(".")
            for parent in parents:
                place = place.setdefault(parent, {"properties": {}})["properties"]
            place[name] = _elasticsearch_type(field)
    labels = {"path_match": "labels.*", "mapping": {"type": "keyword", "ignore_above": LABEL_LENGTH}}
    dynamic = {"dynamic_templates": [{"labels": labels}]} if "labels" in properties else {}
    return {"dynamic": "strict", **dynamic, "properties": properties}


def _elasticsearch_type(field: dict[str, Any]) -> dict[str, Any]:
    kind, meta = field["type"], {"meta": {"unit": field["unit"]}} if field.get("unit") in ("ns", "ms") else {}
    if kind == "labels":
        return {"type": "object", "dynamic": True}
    if kind == "object":
        return {"type": "object", "enabled": False}
    if kind == "date":
        return {"type": "date", "format": DATE_FORMAT} if field["unit"] == "ms" else {"type": "long", **meta}
    return {"type": kind, **(meta if kind in ("long", "double") else {})}


def reference() -> str:
    """Return docs/reference/fields.md: every document with its fields."""
    parts = ["# Fields", "", "Generated from `mappings/fields.yml` by `make build`; do not edit.", ""]
    for table, document in fields()["documents"].items():
        parts += [f"## {table}", "", document["description"].strip(), ""]
        if "index" in document:
            joined = f" with the fields of `{document['joins']}`" if "joins" in document else ""
            parts += [f"Elasticsearch: in `tailboard-{document['index']}`{joined}.", ""]
        parts += ["| field | SQLite column | type | unit | description |", "|---|---|---|---|---|"]
        for field in document["fields"]:
            name = f"`{field['name']}`" + (" (key)" if field.get("key") else "")
            shown = "Elasticsearch only" if field.get("only") == ELASTICSEARCH else f"`{column(field)}`"
            only = " (SQLite only)" if field.get("only") == SQLITE else ""
            cells = (name, shown + only, field["type"], field.get("unit", ""), field["description"])
            parts.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
        parts.append("")
    return "\n".join(parts)
