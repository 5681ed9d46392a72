"""Modules import downwards: no circle, imports inside of functions counted; an idea is one module; what is measured is what is there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools import structure


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    return structure.modules_of()


@pytest.fixture(scope="module")
def readers(modules: dict[str, ast.Module]) -> dict[str, ast.Module]:
    return {name: module for name, module in modules.items() if name.startswith("ingest.read.")}


def test_no_module_imports_itself_by_others(modules: dict[str, ast.Module]) -> None:
    assert structure.circle(modules) == []


def test_readers_import_downwards_for_types_too(modules: dict[str, ast.Module]) -> None:
    assert structure.circle(modules, types=True, below="ingest.read") == []


@pytest.mark.parametrize("text", ["{line}", "def read():\n    {line}"])
def test_a_circle_would_be_seen(readers: dict[str, ast.Module], text: str) -> None:
    line = "from ingest.read.sources import Source"
    circle = {**readers, "ingest.read.format_names": ast.parse(text.format(line=line))}
    assert set(structure.circle(circle)) == {"ingest.read.format_names", "ingest.read.sources"}


def test_a_circle_for_types_alone_would_be_seen(readers: dict[str, ast.Module]) -> None:
    text = "if TYPE_CHECKING:\n    from ingest.read.sources import Source\n"
    circle = {**readers, "ingest.read.format_names": ast.parse(text)}
    assert structure.circle(circle) == []
    assert set(structure.circle(circle, types=True, below="ingest.read")) == {"ingest.read.format_names", "ingest.read.sources"}


def test_no_two_modules_are_only_ever_imported_together(modules: dict[str, ast.Module]) -> None:
    assert structure.only_together(modules) == []


def test_two_modules_that_are_only_imported_together_would_be_seen() -> None:
    both = ast.parse("from ingest.one import a\nfrom ingest.two import b")
    modules = {"ingest.one": ast.parse(""), "ingest.two": ast.parse(""), "ingest.x": both, "ingest.y": both}
    assert structure.only_together(modules) == [("ingest.one", "ingest.two")]
    assert structure.only_together({**modules, "ingest.z": ast.parse("from ingest.two import b")}) == []


def test_statements_are_lines_of_code(tmp_path: Path) -> None:
    house = tmp_path / "ingest" / "core"
    house.mkdir(parents=True)
    (house / "a.py").write_text('"""A\nroom."""\n\nimport os\nfrom x import (\n    y,\n)\n\n# why\nb = [\n    1,\n]\n', "utf-8")
    assert structure.rooms(tmp_path) == {"core": structure.Size(1, 3, 4)}
