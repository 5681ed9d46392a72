"""Specs that are not for Kibana: what a page or a picture draws otherwise than the spec of kibana/vega/ which it begins with.

A file that names a `base` holds what it changes: mappings are merged, null leaves a key out, lists of named entries are merged by
these names. An entry that the base lacks comes last, or `before` another; one that is `gone` is left out, one that is `instead`
replaces that of its name.
`{"fill": NAME}` is a place for a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

import orjson

from ingest.view.vega import spec

WORDS = ("before", "gone", "instead")


def derived(name: str, **values: Any) -> dict[str, Any]:
    """Return the spec of a file of this folder (see `read`), without the version that vega-embed would warn of."""
    content = read(name, **values)
    base = content.pop("base", None)
    return unversioned(content if base is None else changed(spec(base), content))


def read(name: str, **values: Any) -> dict[str, Any]:
    """Return what a file of this folder holds, its places filled; KeyError where a place has no value."""
    text = resources.files("ingest.view.specs").joinpath(f"{name}.json").read_bytes()
    content: dict[str, Any] = filled(orjson.loads(text), values)
    return content


def unversioned(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec without the version that vega-embed would warn of."""
    return {key: value for key, value in whole.items() if key != "$schema"}


def filled(part: Any, values: Mapping[str, Any]) -> Any:
    """Return a part of a spec with every `{"fill": NAME}` replaced by the value of that name."""
    if isinstance(part, list):
        return [filled(entry, values) for entry in part]
    if isinstance(part, dict):
        return values[part["fill"]] if part.keys() == {"fill"} else {key: filled(value, values) for key, value in part.items()}
    return part


def changed(base: Any, change: Any) -> Any:
    """Return a part of a spec as a file changes it."""
    if isinstance(base, dict) and isinstance(change, dict):
        merged = base | {key: changed(base.get(key), value) for key, value in change.items()}
        return {key: value for key, value in merged.items() if key not in change or change[key] is not None}
    named = isinstance(change, list) and all(isinstance(entry, dict) and "name" in entry for entry in change)
    if not named or not isinstance(base, list):
        return change
    entries = list(base)
    for entry in change:
        inner = {key: value for key, value in entry.items() if key not in WORDS}
        names = [known.get("name") for known in entries]
        if entry["name"] not in names:
            entries.insert(names.index(entry["before"]) if "before" in entry else len(entries), inner)
            continue
        at = names.index(entry["name"])
        entries[at : at + 1] = [] if entry.get("gone") else [inner if entry.get("instead") else changed(entries[at], inner)]
    return entries
