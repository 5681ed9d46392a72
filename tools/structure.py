"""The structure of the package, measured: `python -m tools.structure [ROOT]` prints a line for each room.

A room is a folder below ingest/ (or a module of its own there). Its columns: modules; statements, which are lines that are no
blank, comment, docstring or import; lines of imports. Below the table stand what should not be: circles of imports, those inside
of functions counted (imports for checkers of types alone are not: nothing is loaded by them), and pairs of modules that are only
ever imported together, which are one idea in two files.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = "ingest"


class Size(NamedTuple):
    """How large a room is."""

    modules: int = 0
    statements: int = 0
    imports: int = 0

    def plus(self, other: Size) -> Size:
        """Return both added up."""
        return Size(*map(sum, zip(self, other, strict=True)))


def modules_of(root: Path = ROOT) -> dict[str, ast.Module]:
    """Return the syntax tree of each module of the package below a checkout, by its dotted name."""
    found = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text("utf-8"))
    return found


def imported(node: ast.AST, modules: Mapping[str, ast.Module], *, types: bool, local: bool) -> Iterator[str]:
    """Yield the modules that a module imports; with those for types, and those inside of functions, where that is asked."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ImportFrom) and child.module:
            whole = [f"{child.module}.{alias.name}" for alias in child.names]
            yield from (one if one in modules else child.module for one in whole)
        elif isinstance(child, ast.expr) or (isinstance(child, ast.If) and not types and "TYPE_CHECKING" in ast.dump(child.test)):
            continue
        elif local or not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from imported(child, modules, types=types, local=local)


def circle(modules: Mapping[str, ast.Module], *, types: bool = False, local: bool = True, below: str = PACKAGE) -> list[str]:
    """Return the modules of a circle of imports among those below a package, none where there is no circle."""
    chosen = {name for name in modules if name == below or name.startswith(f"{below}.")}
    edges = {name: (set(imported(modules[name], modules, types=types, local=local)) & chosen) - {name} for name in sorted(chosen)}
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def only_together(modules: Mapping[str, ast.Module]) -> list[tuple[str, str]]:
    """Return the pairs of modules of one folder that two modules or more import, and none without the other."""
    importers: dict[str, set[str]] = {name: set() for name in modules}
    for name, tree in modules.items():
        for other in set(imported(tree, modules, types=False, local=True)) & importers.keys():
            importers[other].add(name)
    return [
        (one, two)
        for one, two in combinations(sorted(importers), 2)
        if one.rpartition(".")[0] == two.rpartition(".")[0]
        and len(importers[one] - {two}) > 1
        and importers[one] - {two} == importers[two] - {one}
    ]


def size_of(tree: ast.Module, text: str) -> Size:
    """Return the size of one module."""
    imports: set[int] = set()
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
            first = node.body[0]
            docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    left = [
        line
        for number, line in enumerate(text.splitlines(), 1)
        if number not in imports | docstrings and line.strip() and not line.strip().startswith("#")
    ]
    return Size(1, len(left), len(imports))


def rooms(root: Path = ROOT) -> dict[str, Size]:
    """Return the size of each room; the room of a module beside the rooms is `.`."""
    sizes: dict[str, Size] = defaultdict(Size)
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root / PACKAGE).parts
        text = path.read_text("utf-8")
        room = parts[0] if len(parts) > 1 else "."
        sizes[room] = sizes[room].plus(size_of(ast.parse(text), text))
    return dict(sorted(sizes.items()))


def main() -> None:
    """Print the table of a checkout, and what should not be."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    sizes, modules = rooms(root), modules_of(root)
    print("| room | modules | statements | lines of imports |\n|---|---:|---:|---:|")
    for room, size in [*sizes.items(), ("all", Size(*map(sum, zip(*sizes.values(), strict=True))))]:
        print(f"| {room} | {size.modules:,} | {size.statements:,} | {size.imports:,} |")
    print("\ncircle:", " -> ".join(circle(modules)) or "none")
    for one, two in only_together(modules):
        print(f"only together: {one} and {two}")


if __name__ == "__main__":
    main()
