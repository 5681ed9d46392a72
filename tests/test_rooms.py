"""The rooms of the house: what is in a room may import what is in the rooms before it, never what comes after."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

HOUSE = Path(__file__).parents[1] / "ingest"
ROOMS = (
    "core",
    "environment",
    "http",
    "read",
    "query",
    "store",
    "load",
    "objectives",
    "view",
    "live",
    "api",
    "cli",
)  # docs/design.md 10


def room_of(module: str) -> str:
    """Return the room that a dotted name below `ingest` is in; "" for the package itself."""
    return (module.split(".") + [""])[1]


def is_module(name: str) -> bool:
    """Return whether a dotted name is a module or package of the house, not a name within one."""
    place = HOUSE.parent.joinpath(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def imports(path: Path) -> list[str]:
    """Return every module of the house that a file imports, wherever in it, types included."""
    return imports_of(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports_of(nodes: Iterable[ast.AST]) -> list[str]:
    found: list[str] = []
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "ingest":
            found += [
                f"{node.module}.{one.name}" if is_module(f"{node.module}.{one.name}") else node.module for one in node.names
            ]
        elif isinstance(node, ast.Import):
            found += [one.name for one in node.names if one.name.split(".")[0] == "ingest"]
    return found


def modules() -> dict[str, Path]:
    """Return the file of each module."""
    found = {}
    for path in sorted(HOUSE.rglob("*.py")):
        parts = path.relative_to(HOUSE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def test_every_module_is_in_a_room() -> None:
    outside = {module for module in modules() if room_of(module) not in (*ROOMS, "", "__main__")}
    assert outside == set()


def test_a_room_imports_only_from_the_rooms_before_it() -> None:
    upward = []
    for module, path in modules().items():
        mine = room_of(module)
        if mine not in ROOMS:
            continue
        upward += [
            f"{path.relative_to(HOUSE)} imports {other}"
            for other in imports(path)
            if room_of(other) in ROOMS and ROOMS.index(room_of(other)) > ROOMS.index(mine)
        ]
    assert upward == []


def test_no_room_imports_the_tools_of_the_checkout() -> None:
    of_tools = re.compile(r"^\s*(from|import) tools\b", re.MULTILINE)
    assert [name for name, path in modules().items() if of_tools.search(path.read_text(encoding="utf-8"))] == []


def test_every_room_and_every_place_that_the_guides_name_is_there() -> None:
    readme = (HOUSE / "README.md").read_text(encoding="utf-8")
    named = {
        name
        for row in readme.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`([a-z]+)(?:\.py|/)`", row.split("|")[1])
    }
    assert named == set(ROOMS)
    table = (HOUSE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Where is ...")[2].partition("\n## ")[0]
    places = [place for row in table.splitlines() for place in re.findall(r"`([^`]+/[^`]*)`", row) if "COMMAND" not in place]
    assert len(places) > 12
    assert [place for place in places if not (HOUSE.parent / place).exists()] == []
