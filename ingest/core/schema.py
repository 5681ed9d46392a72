"""mappings/fields.yml, and the Elasticsearch mappings that follow from it; `tools/build.py` makes files of it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

ELASTICSEARCH = "elasticsearch"
LABEL_LENGTH = 1024
DATE_FORMAT = "epoch_millis||strict_date_optional_time"


def assets(kind: str) -> Path:
    """Return the folder `mappings`, `kibana` or `examples`: of the checkout, or inside the installed package."""
    beside = Path(__file__).parents[2] / kind
    return beside if beside.is_dir() else Path(__file__).parents[1] / kind


@lru_cache(maxsize=1)
def fields() -> dict[str, Any]:
    """Return the content of mappings/fields.yml."""
    content: dict[str, Any] = yaml_of((assets("mappings") / "fields.yml").read_bytes())
    return content


def yaml_of(data: bytes) -> Any:
    """Return what a text of YAML says; yaml.YAMLError where it is none. libyaml, where it is there, takes a tenth of the time."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)(data).get_single_data()


@lru_cache(maxsize=1)
def schema_version() -> int:
    """Return the version of mappings/fields.yml, which is not parsed for it: that takes longer than a small load."""
    with (assets("mappings") / "fields.yml").open(encoding="utf-8") as lines:
        return next(int(line.partition(":")[2]) for line in lines if line.startswith("version:"))


def in_store(document: dict[str, Any], store: str) -> list[dict[str, Any]]:
    """Return the fields of a document that a store has."""
    return [field for field in document["fields"] if field.get("only", store) == store]


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
