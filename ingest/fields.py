"""mappings/fields.yml and what is generated from it: the SQLite schema and the field reference."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

TYPES = {"long": "INTEGER", "date": "INTEGER", "boolean": "INTEGER", "double": "REAL", "histogram": "BLOB"}


def assets(kind: str) -> Path:
    """Return the folder `mappings` or `kibana`: of the checkout, or inside the installed package."""
    beside = Path(__file__).parents[1] / kind
    return beside if beside.is_dir() else Path(__file__).parent / kind


@lru_cache(maxsize=1)
def fields() -> dict[str, Any]:
    """Return the content of mappings/fields.yml."""
    import yaml

    content: dict[str, Any] = yaml.safe_load((assets("mappings") / "fields.yml").read_text(encoding="utf-8"))
    return content


def column(field: dict[str, Any]) -> str:
    """Return the SQLite column of a field."""
    return str(field.get("sqlite", field["name"].replace(".", "_")))


def sqlite_schema() -> str:
    """Return the SQL that creates the embedded store's tables."""
    content = fields()
    parts = ["-- Generated from fields.yml by `tailboard build`; do not edit.", f"PRAGMA user_version = {content['version']};"]
    for table, document in content["documents"].items():
        single = [field for field in document["fields"] if field.get("key")]
        lines = []
        for field in document["fields"]:
            kind = TYPES.get(field["type"], "TEXT")
            whole = " PRIMARY KEY" if len(single) == 1 and field.get("key") else ""
            lines.append(f"  {column(field)} {kind}{whole}{'' if field.get('null') else ' NOT NULL'}")
        keys = ", ".join(column(field) for field in single)
        if len(single) > 1:
            lines.append(f"  PRIMARY KEY ({keys})")
        unique = ", ".join(column(field) for field in document["fields"] if field.get("unique"))
        if unique:
            lines.append(f"  UNIQUE ({unique})")
        parts.append(f"CREATE TABLE {table} (\n" + ",\n".join(lines) + "\n);")
    return "\n".join(parts) + "\n"


def reference() -> str:
    """Return docs/fields.md: every document with its fields."""
    parts = ["# Fields", "", "Generated from `mappings/fields.yml` by `tailboard build`; do not edit.", ""]
    for table, document in fields()["documents"].items():
        parts += [f"## {table}", "", document["description"].strip(), ""]
        parts += ["| field | SQLite column | type | unit | description |", "|---|---|---|---|---|"]
        for field in document["fields"]:
            name = f"`{field['name']}`" + (" (key)" if field.get("key") else "")
            cells = (name, f"`{column(field)}`", field["type"], field.get("unit", ""), field["description"])
            parts.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
        parts.append("")
    return "\n".join(parts)
