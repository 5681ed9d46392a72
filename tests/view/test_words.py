"""What the page says of its numbers: words.js in Node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

WORDS = Path(__file__).parents[2] / "ingest" / "view" / "page" / "script" / "words.js"
MS = 1_000_000
NODE = shutil.which("node")


def said(*cells: list[float]) -> list[str]:
    """Return what is said of each list of cells of these latencies in ms."""
    points = [[{"v": value * MS} for value in values] for values in cells]
    program = f"process.stdout.write(JSON.stringify(JSON.parse(process.argv[1]).map(require({json.dumps(str(WORDS))}).alike)))"
    done = subprocess.run([str(NODE), "-e", program, json.dumps(points)], capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


@pytest.mark.skipif(NODE is None and not os.environ.get("CI"), reason="node is not here")
def test_nothing_stands_out_only_where_no_cell_does() -> None:
    quiet = [5.0, 5.5, 6.0, 7.0, 6.1, 5.2, 5.4, 6.6, 5.9, 9.0]
    assert said(quiet, [*quiet, 0.4]) == [  # a window of few samples is low by itself
        "Nothing stands out: all lie between 5 ms and 9 ms.",
        "Nothing stands out: all lie between 400 µs and 9 ms.",
    ]
    # One of two hosts, of three, and of ten, five times as slow as the others throughout; one window; one cell, and none.
    slow = [[*others * quiet, *(5 * value for value in quiet)] for others in (1, 2, 9)]
    assert said(*slow, [*quiet, 30.0], [5.0], []) == 6 * [""]
