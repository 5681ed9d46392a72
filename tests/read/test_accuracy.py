"""How far percentiles of histogram logs lie from exact ones: one run that fio recorded with both kinds of log.

The run was recorded at coarseness 0; coarser logs of the same run are made by adding up neighbouring bins, as fio does
(recorded ones of other runs are held against their raw logs in test_per_io). docs/explanation/numbers.md prints what comes out.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from oracles import events as oracle

BOTH = Path(__file__).parent.parent / "data" / "raw" / "both"
NUMBERS = Path(__file__).parents[2] / "docs" / "explanation" / "numbers.md"
PERCENTS = ("50", "90", "99", "99.9")


def coarser(text: str, coarseness: int) -> str:
    """Return a histogram log with 2^coarseness neighbouring bins added up."""
    lines, width = [], 1 << coarseness
    for line in text.splitlines():
        stamp, direction, size, *cells = line.split(", ")
        counts = [str(sum(map(int, cells[place : place + width]))) for place in range(0, len(cells), width)]
        lines.append(", ".join([stamp, direction, size, *counts]))
    return "\n".join(lines) + "\n"


def reported(folder: Path, coarseness: int) -> dict[str, dict[str, float]]:
    """Return the percentiles of each op over the whole run, from the histogram log at a coarseness."""
    with lzma.open(BOTH / "a_clat_hist.1.log.xz") as stream:
        text = stream.read().decode()
    (folder / "a_clat_hist.1.log").write_text(coarser(text, coarseness))
    (folder / "a.json").write_bytes((BOTH / "a.json").read_bytes())
    answer = Files([folder], jobs=1).answer(Question(step="all", by=("op",)))
    table = percentiles(answer, Wanted(parse_percentiles(",".join(PERCENTS)))).columns
    return {op: {p: float(table[f"p{p}"][row]) for p in PERCENTS} for row, op in enumerate(table["op"].tolist())}


def exact() -> dict[str, list[int]]:
    with lzma.open(BOTH / "a_clat.1.log.xz") as stream:
        text = stream.read().decode()
    found: dict[str, list[int]] = {}
    for op, _, latency in oracle.fio_events(text):
        found.setdefault(op, []).append(latency)
    return found


def row_of(coarseness: int, op: str, values: list[int], found: dict[str, float]) -> str:
    """Return the line of the table in docs/explanation/numbers.md."""
    errors = []
    for percent in PERCENTS:
        true = oracle.nearest_rank(values, percent)
        errors.append(f"{found[percent] / 1e3:.1f} ({100 * (found[percent] - true) / true:+.2f} %)")
    return f"| {coarseness} | {op} | {' | '.join(errors)} | {100 * 2**coarseness / 128:.2g} % |"


@pytest.mark.parametrize("coarseness", range(7))
def test_errors_keep_their_bound_and_are_those_that_the_docs_print(tmp_path: Path, coarseness: int) -> None:
    values = exact()
    text = NUMBERS.read_text()
    for op, found in reported(tmp_path, coarseness).items():
        for percent, value in found.items():
            true = oracle.nearest_rank(values[op], percent)
            assert abs(value - true) <= true * 2**coarseness / 128, (op, percent)
        line = row_of(coarseness, op, values[op], found)
        assert line in text, f"docs/explanation/numbers.md lacks\n{line}"


def test_the_docs_print_the_exact_values() -> None:
    text = NUMBERS.read_text()
    for op, values in exact().items():
        cells = " | ".join(f"{oracle.nearest_rank(values, percent) / 1e3:.1f}" for percent in PERCENTS)
        assert f"| exact | {op} | {cells} | 0 |" in text, f"docs/explanation/numbers.md lacks\n| exact | {op} | {cells} | 0 |"
