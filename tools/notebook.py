"""The notebook of docs/, executed: `python -m tools.notebook` writes docs/notebook.ipynb with what its cells answer.

It is run without Jupyter: a cell shows what it prints, and its last expression as Jupyter would. A cell that imports a library
which is not installed keeps the output that it has in the file.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import shutil
from collections.abc import Mapping
from contextlib import chdir, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"
TEXT, CODE = "markdown", "code"
CELLS = (
    (
        TEXT,
        """# Latency percentiles in a notebook
`python -m tools.notebook` has executed this page in a copy of the folder `examples/`. All words are those of the command line
([Python](reference/python.md)).""",
    ),
    (
        CODE,
        """import ingest

run = ingest.read("cbt-archive")
run""",
    ),
    (TEXT, "## Percentiles over time\nHosts are merged exactly, unless `by` keeps them apart. Latencies are in ns in columns."),
    (CODE, """run.percentiles(step="20s", by="host", where="op=read", p=[50, 99, 99.9])"""),
    (TEXT, "## What happened"),
    (CODE, "run.explain()"),
    (TEXT, "## A heat map"),
    (CODE, """run.heatmap(step="2s", where="op=read")"""),
    (
        TEXT,
        "## Your own library\nColumns are arrays of NumPy; `rows` as a whole is an Arrow stream for other libraries.",
    ),
    (
        CODE,
        """import matplotlib.pyplot as plt

rows = run.percentiles(step="5s", by="host", p=99)
figure, axes = plt.subplots(figsize=(8, 3))
for host in sorted(set(rows["host"])):
    own = rows["host"] == host
    axes.semilogy(rows["start"][own], rows["p99"][own] / 1e6, label=host)
axes.set_ylabel("p99 (ms)")
axes.legend()
figure""",
    ),
    (
        CODE,
        """import pyarrow as pa

rows = run.percentiles(step="5s", by="host", p=99)
pa.table(rows).group_by("host").aggregate([("p99", "max")]).sort_by("host").to_pydict()""",
    ),
    (
        TEXT,
        """## Two runs
A second run, of which we know the truth: a copy of the first in which each operation took twice as long. 64 columns of
fio's histograms are one doubling. (fio's own totals would contradict it, so they are left out.)""",
    ),
    (
        CODE,
        """import gzip
import shutil
from pathlib import Path

twice = Path("twice")
shutil.copytree("cbt-archive", twice, ignore=shutil.ignore_patterns("json_output*"))
for log in twice.rglob("*_clat_hist*"):
    rows = [line.split(", ") for line in gzip.decompress(log.read_bytes()).decode().splitlines()]
    text = "".join(", ".join([*row[:3], *["0"] * 64, *row[3:-64]]) + "\\n" for row in rows)
    log.write_bytes(gzip.compress(text.encode()))
change = run.compare(ingest.read(twice), by="op", p=[50, 99])
change""",
    ),
    (CODE, "print(change.verdict[0])"),
    (TEXT, "## An objective"),
    (
        CODE,
        """kept = run.check("p99<5ms", where="host=ceph-a")
kept""",
    ),
)


def output_of(value: object) -> dict[str, Any]:
    """Return what Jupyter keeps of the value of a cell: text, HTML, or the picture of a figure."""
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, dpi=80, metadata={"Software": None})
        return {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": ["a figure"]}
    html = getattr(value, "_repr_html_", lambda: "")()
    return {"text/plain": repr(value).splitlines(keepends=True), **({"text/html": [html]} if html else {})}


def executed(source: str, bound: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the outputs of a cell, run with the names that earlier cells have bound; ImportError where a library is missing."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), bound)  # noqa: S102  # the cells above
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), bound)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)})
    if value is not None:
        outputs.append({"output_type": "display_data", "metadata": {}, "data": output_of(value)})
    return outputs


def notebook(before: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the notebook as nbformat 4 has it, executed beside a copy of the example; `before` stays without a library."""
    cells: list[dict[str, Any]] = []
    bound: dict[str, Any] = {"__name__": "__main__"}
    with TemporaryDirectory() as folder, chdir(folder):
        shutil.copytree(NOTEBOOK.parents[1] / "examples" / "cbt-archive", "cbt-archive")
        for number, (kind, source) in enumerate(CELLS):
            lines = source.splitlines(keepends=True)
            cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": lines}
            if kind == CODE:
                try:
                    outputs = executed(source, bound)
                except ImportError:
                    outputs = before.get(source, [])
                cell |= {"execution_count": None, "outputs": outputs}
            cells.append(cell)
    return {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}


def kept() -> dict[str, list[dict[str, Any]]]:
    """Return the outputs in the file by the source of their cells."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if NOTEBOOK.exists() else []
    return {"".join(cell["source"]): cell.get("outputs", []) for cell in cells}


if __name__ == "__main__":
    NOTEBOOK.write_text(json.dumps(notebook(kept()), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
