"""unified_rw_reporting: fio counts all ops together; its logs keep them apart."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.read.totals import reconciled
from oracles import per_io

BINS, COARSENESS = 232, 3


def test_a9_the_last_interval_is_there_and_time_zero_known(fio: Path, taken: Any) -> None:
    folder = fio / "cases" / "unified-333"
    document = per_io.json_of(folder / "out.json")
    read = taken(folder)
    theirs = per_io.json_bins(document["jobs"][0]["mixed"], 1856, 0)
    assert sum((read.total(op) for op in ("read", "write", "mixed")), Counter()) == theirs
    [last] = read.of("mixed")
    zero = (document["timestamp_ms"] - 4001) * 10**6
    assert last.start_ns == max(row.end_ns for row in read.rows if row.series.op != "mixed") == zero + 3504 * 10**6
    assert last.end_ns == zero + 4001 * 10**6
    assert sum(last.counts.values()) == 400


def test_a9_counts_are_those_of_each_io(fio: Path, taken: Any) -> None:
    folder = fio / "unified"
    read = taken(*per_io.histogram_files(folder), folder / "a.json")
    rows = per_io.samples(folder / "a_clat.1.log")
    ours = sum((read.total(op) for op in ("read", "write", "mixed")), Counter())
    assert ours == per_io.binned([value for op in rows.values() for _, value in op], BINS, COARSENESS)
    logged = sum(sum(read.total(op).values()) for op in ("read", "write"))
    assert sum(read.total("mixed").values()) == sum(map(len, rows.values())) - logged > 0


@pytest.mark.parametrize(("name", "ops"), [("unified", ["mixed"]), ("unified-both", ["read", "write"])])
def test_a9_a_json_alone_counts_each_io_once(fio: Path, tmp_path: Path, taken: Any, name: str, ops: list[str]) -> None:
    (tmp_path / "a.json").write_bytes((fio / name / "a.json").read_bytes())
    read = taken(tmp_path)
    assert sorted({row.series.op for row in read.rows}) == ops
    count = sum(map(len, per_io.samples(fio / name / "a_clat.1.log").values()))
    assert sum(sum(row.counts.values()) for row in read.rows if row.series.kind == "completion") == count


@pytest.mark.parametrize(("name", "lines"), [("unified", ["mixed"]), ("unified-both", ["read", "write"])])
@pytest.mark.parametrize("prefer", ["hist", "raw"])
def test_a9_what_was_read_is_held_against_the_sum(fio: Path, name: str, lines: list[str], prefer: str) -> None:
    files = Files([fio / name], ReadOptions(run="r", prefer=prefer), jobs=1)
    files.answer(Question(step="all", where={"kind": "completion"}))
    told = [line for line in reconciled(files.found.sources) if " total" not in line]
    entry = per_io.json_of(fio / name / "a.json")["jobs"][0]
    for line, op in zip(told, lines, strict=True):
        assert f"r {op}: fio says N = {entry[op]['clat_ns']['N']}, " in line
        assert f"; tailboard {entry[op]['clat_ns']['N']}, " in line


def test_a9_rows_of_an_older_run_are_known_by_the_sum(fio: Path, tmp_path: Path, taken: Any) -> None:
    folder = fio / "unified"
    (tmp_path / "a.json").write_text(json.dumps(json.loads((folder / "a.json").read_text()), indent=2))
    text = (folder / "a_clat.1.log").read_text()
    (tmp_path / "a_clat.log").write_text(text + text)
    read = taken(tmp_path)
    assert read.account.rejected == {"row of an older run that was appended to": len(text.splitlines())}
    assert sum(sum(row.counts.values()) for row in read.rows) == len(text.splitlines())
