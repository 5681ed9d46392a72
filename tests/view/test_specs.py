"""Specs are JSON: those of kibana/vega/, and those of ingest/view/specs/ which begin with one of them."""

from __future__ import annotations

import ast
import copy
import json
from pathlib import Path

import pytest

from ingest.view.specs import changed, derived, filled
from ingest.view.vega import spec

VIEW = Path(__file__).parents[2] / "ingest"
KEYS = {"$schema", "encoding", "encode", "mark", "scales", "axes", "strokeWidth", "fillOpacity"}  # no data of ours has such a key
FILES = sorted((VIEW / "view" / "specs").glob("*.json"))
GIVEN = {
    "marks": [{"name": "a", "from": {"data": "x"}, "w": {"value": 1}}, {"name": "b"}, {"type": "group"}],
    "width": 9,
    "range": [1, 2],
}


def keys_of(tree: ast.AST) -> set[str]:
    return {
        key.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


@pytest.mark.slow
def test_h8_no_module_builds_a_spec() -> None:
    built = {
        str(path.relative_to(VIEW)): found
        for path in VIEW.rglob("*.py")
        if (found := keys_of(ast.parse(path.read_text(encoding="utf-8"))) & KEYS)
    }
    assert built == {
        "cli/__init__.py": {"mark"},  # the command
        "store/elastic/findings.py": {"mark"},
    }


def test_that_would_be_found() -> None:
    assert keys_of(ast.parse('drawn = {**base, "marks": [{"type": "rect", "encode": {"update": {}}}]}')) & KEYS == {"encode"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"width": 3}, {**GIVEN, "width": 3}),
        ({"range": [5]}, {**GIVEN, "range": [5]}),
        ({"width": None}, {key: value for key, value in GIVEN.items() if key != "width"}),
        ({"marks": [{"name": "c"}]}, {**GIVEN, "marks": [*GIVEN["marks"], {"name": "c"}]}),
        ({"marks": [{"name": "c", "before": "b"}]}, {**GIVEN, "marks": [GIVEN["marks"][0], {"name": "c"}, *GIVEN["marks"][1:]]}),
        ({"marks": [{"name": "a", "gone": True}]}, {**GIVEN, "marks": GIVEN["marks"][1:]}),
        (
            {"marks": [{"name": "b", "instead": True, "from": 1}]},
            {**GIVEN, "marks": [GIVEN["marks"][0], {"name": "b", "from": 1}, {"type": "group"}]},
        ),
        (
            {"marks": [{"name": "a", "w": {"value": None, "field": "wide"}}]},
            {**GIVEN, "marks": [{"name": "a", "from": {"data": "x"}, "w": {"field": "wide"}}, *GIVEN["marks"][1:]]},
        ),
    ],
)
def test_what_a_file_can_change(change, expected) -> None:
    before = copy.deepcopy(GIVEN)
    assert changed(GIVEN, change) == expected
    assert before == GIVEN


def test_places_are_filled_and_none_is_left_out() -> None:
    assert filled({"a": [{"fill": "b"}, {"value": {"fill": "c"}}]}, {"b": [1], "c": None}) == {"a": [[1], {"value": None}]}
    with pytest.raises(KeyError, match="subtitle"):
        derived("picture", text="x")


def places(part) -> set[str]:
    """Return the names of the values that a part of a file has places for."""
    if isinstance(part, list):
        return set().union(*map(places, part))
    if isinstance(part, dict):
        return {part["fill"]} if part.keys() == {"fill"} else set().union(*map(places, part.values()))
    return set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_changes_only_what_its_base_has(path: Path) -> None:
    told = json.loads(path.read_text(encoding="utf-8"))
    if "base" not in told:
        return
    base = spec(told["base"])
    for part in ("signals", "data", "scales", "marks"):
        names = {entry.get("name") for entry in base[part]}
        for entry in told.get(part, ()):
            if "gone" in entry or "instead" in entry or "before" in entry:
                assert entry.get("before", entry["name"]) in names
    assert derived(path.stem, **dict.fromkeys(places(told), [])) != base
