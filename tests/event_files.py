"""Files of single events for tests, in the order in which they are given, and the description that reads them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions

COLUMNS = "end_ns,took_ns,host,process,op,weight"
DESCRIBED = """\
time: end_ns
latency: took_ns
labels: {host: host, process: process, op: op}
weight: weight
"""


def event_file(folder: Path, rows: Iterable[tuple], name: str = "events.csv") -> Path:
    """Write events (end, latency, host, process, op, weight; what is left out is 0, h, p, read, 1)."""
    folder.mkdir(exist_ok=True)
    default = (0, 0, "h", "p", "read", 1)
    lines = [",".join(str(cell) for cell in (*row, *default[len(row) :])) for row in rows]
    path = folder / name
    path.write_text("\n".join([COLUMNS, *lines]) + "\n")
    return path


def description(folder: Path) -> Path:
    """Write the description of such files."""
    folder.mkdir(exist_ok=True)
    path = folder / "events.yml"
    path.write_text(DESCRIBED)
    return path


def reading(folder: Path, **words) -> ReadOptions:
    """Return the options that read such files."""
    return ReadOptions(run="r", description=description_of(str(description(folder))), **words)
