"""Rules for specs: what Kibana's Vega takes without a complaint, and nothing from outside."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tools.kibana.lint.objects import Objects, Problem, spec_of, tables_of

SCHEMA = "https://vega.github.io/schema/vega/v5.json"
SEARCH = "elasticsearch"
CODE = re.compile(r"\b(eval|Function|setTimeout|setInterval)\s*\(")
OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*://|(?:^|[\s\"'(=])//\w", re.IGNORECASE)


def vega(objects: Objects) -> Iterator[Problem]:
    """Yield specs of another schema, and what loads or runs anything but a search."""
    for saved in objects.of("visualization"):
        spec = spec_of(saved)
        if not spec:
            yield saved.id, "it holds no Vega spec"
        elif spec.get("$schema") != SCHEMA:
            yield saved.id, f"its $schema is {spec.get('$schema')}, not {SCHEMA}"
        for entry in tables_of(spec):
            if not all(isinstance(step, Mapping) and "type" in step for step in entry.get("transform", ())):
                yield saved.id, f"{entry['name']} has a transform without a type"
        for key, value in _pairs(spec):
            if key == "url" and not _is_search(value):
                yield saved.id, f"it loads {value}"
            elif key == "loader":
                yield saved.id, "it has a loader"
            elif isinstance(value, str) and (code := CODE.search(value)):
                yield saved.id, f"it calls {code[1]}"


def external_url(objects: Objects) -> Iterator[Problem]:
    """Yield addresses outside of Kibana."""
    for saved in objects.files.values():
        for key, value in _pairs(saved.attributes):
            if isinstance(value, str) and key != "$schema" and OUTSIDE.search(value):
                yield saved.id, f"{key} holds an address: {value}"


def _is_search(url: Any) -> bool:
    return isinstance(url, Mapping) and "index" in url and url.get("%type%", SEARCH) == SEARCH


def _pairs(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all values with the names that they stand under; elements of lists under that of the list."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield name, inner
            yield from _pairs(inner, name)
    elif isinstance(value, list):
        for inner in value:
            if not isinstance(inner, (Mapping, list)):
                yield key, inner
            yield from _pairs(inner, key)
