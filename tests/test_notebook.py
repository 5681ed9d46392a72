"""The door for Python: ten tasks that somebody in a notebook would try, written down before the door was built."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
LINES = 3  # a task takes no more

TASKS = {
    "p99 over time by host as a frame of pandas": """
run = ingest.read("archive")
frame = run.percentiles(step="10s", by="host", p=[99]).to_pandas()
wide = frame.pivot(index="start", columns="host", values="p99")
""",
    "a heat map for matplotlib": """
m = ingest.read("archive").heatmap(step="1s", where={"op": "read"})
figure, axes = plt.subplots()
axes.pcolormesh(m.times, m.edges, m.counts)
""",
    "compare two runs": """
before, after = ingest.read("archive"), ingest.read("slower")
change = before.compare(after, p=99)
print(change)
""",
    "check an objective": """
kept = ingest.read("archive").check("p99<5ms", where="op=read")
verdict, episodes = kept.verdict, len(kept)
""",
    "merge two hosts exactly": """
run = ingest.read("archive")
both = run.percentiles(step="all", where={"host": ["ceph-a", "ceph-b"]})
p99 = both["p99"]
""",
    "load into a store and ask that": """
run = ingest.read("archive")
loaded = run.load("sqlite:x.db", run="nightly-42")
same = ingest.read("sqlite:x.db").percentiles(step="10s", by="host")
""",
    "a report to send around": """
ingest.read("archive").report("x.html")
""",
    "what happened, as text": """
story = ingest.read("archive").explain()
print(story)
""",
    "the slow minutes of one host": """
rows = ingest.read("archive").percentiles(step="10s", where={"host": "ceph-c"}, p=99)
slow = rows["start"][rows["p99"] > 80e6]
""",
    "several archives": """
runs = ingest.read("archive", "slower")
each = runs.percentiles(step="all", by="run", p=[50, 99])
""",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an archive, and another whose hosts are five ms slower."""
    folder = tmp_path_factory.mktemp("notebook")
    shutil.copytree(ROOT / "examples" / "cbt-archive", folder / "archive")
    return folder


@pytest.mark.parametrize("code", TASKS.values(), ids=TASKS)
def test_a_task_takes_at_most_three_lines(code: str) -> None:
    assert len(code.strip().splitlines()) <= LINES
