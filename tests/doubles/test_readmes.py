"""The READMEs of the doubles name every file of theirs, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("double", ["elasticsearch", "kibana"])
def test_every_file_is_named(double: str) -> None:
    named = re.findall(r"^\| `(\w+\.py)` \|", (HERE / double / "README.md").read_text(), re.MULTILINE)
    there = [
        path.name
        for folder in (HERE / double, HERE / double / "proofs")
        for path in folder.glob("*.py")
        if path.name != "__init__.py"
    ]
    assert sorted(named) == sorted(there)
