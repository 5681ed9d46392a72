"""The scripts of the pages: small files of short functions, each of which a browser can read, and none that no page takes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "ingest" / "view" / "page"
SCRIPTS = {path.relative_to(PAGE).as_posix(): path.read_text(encoding="utf-8") for path in sorted(PAGE.rglob("*.js"))}
MOST_LINES, MOST_OF_FUNCTION = 340, 60
BEGINS = re.compile(r"(?:\bfunction\b.*|=> |^\s*(?:async )?\*?\s*(?!if\b|for\b|while\b|switch\b|catch\b|else\b)\w+\(.*\) )\(?\{$")


def functions_of(text: str) -> list[tuple[int, int, str]]:
    """Return the functions of several lines of a script, as its layout shows them: first line, how many, what the first says.

    What begins in the first column is the script itself, in one function so that its names are its own.
    """
    lines = text.splitlines()
    found = []
    for at, line in enumerate(lines):
        indent = line[: len(line) - len(line.lstrip())]
        if indent and BEGINS.search(line):
            length = next(more for more, after in enumerate(lines[at + 1 :], 2) if after.startswith(f"{indent}}}"))
            found.append((at + 1, length, line.strip()))
    return found


def test_h8_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{name}:{first}": (length, head)
        for name, text in SCRIPTS.items()
        for first, length, head in functions_of(text)
        if length > MOST_OF_FUNCTION
    }
    assert long == {}
    assert sum(len(functions_of(text)) for text in SCRIPTS.values()) > 150


@pytest.mark.parametrize(
    "head",
    [
        "function long(a, { b }) {",
        "const long = (a) => {",
        "async function* long() {",
        "long(a) {",
        "* long() {",
        "list.forEach((a) => {",
    ],
)
def test_the_length_of_a_function_is_that_of_its_lines(head: str) -> None:
    text = "\n".join(["(() => {", f"  {head}", *["    if (a) {", "    }"] * 30, "  }" if head[-3] != ">" else "  });", "})();"])
    assert [(first, length) for first, length, _ in functions_of(text)] == [(2, 62)]


def test_scripts_stay_small() -> None:
    assert {name: lines for name, text in SCRIPTS.items() if (lines := len(text.splitlines())) > MOST_LINES} == {}


def test_every_script_is_taken_by_a_page_and_can_be_read() -> None:
    from ingest.view.page.finished import SCRIPTS as finished
    from ingest.view.page.report import FIRST, LAST

    taken = {*finished, *FIRST, *LAST}
    named = "\n".join(path.read_text(encoding="utf-8") for path in PAGE.parents[1].rglob("*.py"))
    assert [name for name in SCRIPTS if name not in taken and f'"{name}"' not in named] == []
    node = shutil.which("node")
    if node is None:
        if os.environ.get("CI"):
            pytest.fail("node is not here, and CI is to test scripts")
        pytest.skip("node is not here")
    joined = "\n".join(
        text for name, text in SCRIPTS.items() if not name.startswith("live/waiting") and name != "script/finished.js"
    )
    done = subprocess.run([node, "--check", "-"], input=joined, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr  # no two of them use the same name
