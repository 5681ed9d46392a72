"""Modules import downwards: no circle at run time, and among readers none that holds types alone either."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "ingest").rglob("*.py"))}


def imported(node: ast.AST, *, types: bool, local: bool) -> Iterator[str]:
    """Yield the modules that a module imports; with those for types, and those inside of functions, where that is asked."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ImportFrom) and child.module:
            whole = [f"{child.module}.{alias.name}" for alias in child.names]
            yield from (one if one in MODULES else child.module for one in whole)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test) and not types:
            continue
        elif local or not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from imported(child, types=types, local=local)


def circle(*, types: bool, local: bool, below: str = "ingest") -> list[str]:
    """Return the modules of a circle of imports among those below a package, none where there is no circle."""
    chosen = {name for name in MODULES if name == below or name.startswith(f"{below}.")}
    edges = {name: (set(imported(MODULES[name], types=types, local=local)) & chosen) - {name} for name in sorted(chosen)}
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_by_others() -> None:
    assert circle(types=False, local=False) == []


@pytest.mark.parametrize("local", [False, True])
def test_readers_import_downwards_for_types_too(local: bool) -> None:
    assert circle(types=True, local=local, below="ingest.read") == []


def test_a_circle_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "if TYPE_CHECKING:\n    from ingest.read.sources import Source\n"
    monkeypatch.setitem(MODULES, "ingest.read.format_names", ast.parse(text))
    assert circle(types=False, local=True, below="ingest.read") == []
    assert set(circle(types=True, local=False, below="ingest.read")) == {"ingest.read.format_names", "ingest.read.sources"}
