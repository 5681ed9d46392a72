"""What is held against fio's own counts: both sides are of the same jobs, each once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.read.totals import reconciled


def told(*paths: Path, options: ReadOptions | None = None) -> list[str]:
    files = Files(list(paths), options or ReadOptions(run="r"), jobs=1)
    files.answer(Question(step="all"))
    return list(reconciled(files.found.sources))


def test_a10_raw_logs_of_a_group_are_added_up(fio: Path) -> None:
    lines = told(fio / "cases" / "group-raw-333")
    assert [line.rsplit(",", 1)[0] for line in lines] == [
        "r read total: fio says N = 4800; tailboard 4800",
        "r write total: fio says N = 4800; tailboard 4800",
    ]


@pytest.mark.parametrize(("name", "total"), [("fio-3.42/gr", {"read": 3601, "write": 3601})])
def test_a10_histogram_and_raw_logs_of_a_group_are_one(fio: Path, name: str, total: dict[str, int]) -> None:
    for prefer in ("hist", "raw"):
        lines = told(fio / name, options=ReadOptions(run="r", prefer=prefer))
        for line, (op, count) in zip(lines, total.items(), strict=True):
            assert line.startswith(f"r {op}: fio says N = {count}, p99 = ")
            assert f"; tailboard {count}, " in line


def test_a10_a_host_without_a_json_is_held_against_none(fio: Path, tmp_path: Path) -> None:
    """Two hosts, one JSON: what the other host did is no part of what fio says there."""
    for host in ("h1", "h2"):
        shutil.copytree(fio / "host-folders" / "clients" / host, tmp_path / "clients" / host)
    before = told(tmp_path)
    for file in (tmp_path / "clients" / "h2").glob("*.json"):
        file.unlink()
    alone = told(tmp_path)
    own = json.loads(next((tmp_path / "clients" / "h1").glob("*.json")).read_text())["jobs"][0]
    assert len(before) == len(alone) == 2
    for line, op in zip(alone, ("read", "write"), strict=True):
        count = own[op]["clat_ns"]["N"]
        assert line.startswith(f"r {op}: fio says N = {count}, ") and f"; tailboard {count}, " in line


def test_a10_an_op_that_only_the_raw_log_has_is_counted_once(fio: Path, tmp_path: Path) -> None:
    """The histogram log of the reads, the raw log of both ops, a JSON without bins."""
    folder = fio / "coarse-3"
    document = json.loads((folder / "a.json").read_text())
    for op in ("read", "write"):
        del document["jobs"][0][op]["clat_ns"]["bins"]
    (tmp_path / "a.json").write_text(json.dumps(document, indent=2))
    rows = (folder / "a_clat_hist.1.log").read_text().splitlines(keepends=True)
    reads = [row for row in rows if row.split(", ")[1] == "0"]
    (tmp_path / "a_clat_hist.1.log").write_text("".join(reads))
    shutil.copy(folder / "a_clat.1.log", tmp_path)
    logged = sum(sum(map(int, row.split(", ")[3:])) for row in reads)
    read, write = told(tmp_path)
    theirs = {op: document["jobs"][0][op]["clat_ns"]["N"] for op in ("read", "write")}
    assert f"N = {theirs['read']}, " in read and f"; tailboard {logged}, " in read
    assert f"N = {theirs['write']}, " in write and f"; tailboard {theirs['write']}, " in write
