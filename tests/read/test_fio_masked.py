"""fio 3.6 to 3.16 damages bins from 786 us up: recorded with 3.16 (which calls itself 3.7) beside raw logs of the same I/Os."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.context import Context
from ingest.read.fio.histogram_log import is_masked
from ingest.read.sources import ReadOptions
from oracles import logs, per_io

CASE = "cases/fio37-masked"
SET_ASIDE = "fio 3.6 to 3.16 damaged its bins from 786 us up; a raw log holds the same I/Os"
MASK = 928


def jobs(folder: Path) -> list[dict]:
    text = (folder / "out.json").read_text()
    return list(per_io.json.loads(text[text.index("{") :])["jobs"])


def test_a5_a_damaged_log_does_not_shadow_the_raw_log(fio: Path) -> None:
    files = Files([fio / CASE], ReadOptions(run="r"), jobs=1)
    assert {entry.path.name: entry.reason for entry in files.found.skipped if entry.action == "shadowed"} == {
        "x_clat_hist.1.log": SET_ASIDE
    }
    table = percentiles(files.answer(Question(step="all", by=("op",))), Wanted(parse_percentiles("99")))
    assert table.columns["op"].tolist() == ["read", "write"]
    assert table.columns["count"].tolist() == [1200, 1201]
    entry = jobs(fio / CASE)[0]
    told = [entry[op]["clat_ns"]["percentile"]["99.000000"] for op in ("read", "write")]
    assert table.columns["p99"].tolist() == pytest.approx(told, rel=1 / 64)


def test_a5_alone_it_says_how_much_was_lost(fio: Path, tmp_path: Path, taken: Any) -> None:
    for name in ("out.json", "x_clat_hist.1.log"):
        shutil.copy(fio / CASE / name, tmp_path)
    read = taken(tmp_path)
    raw = per_io.samples(fio / CASE / "x_clat.1.log")
    for op, note in zip(("read", "write"), read.account.notes, strict=True):
        values = [value for _, value in raw[op]]
        bins = per_io.binned(values, 1856, 0)
        assert read.total(op) == Counter({slot: count for slot, count in bins.items() if slot < MASK})
        lost = sum(count for slot, count in bins.items() if slot >= MASK)
        share = f"{100 * (len(values) - lost) / len(values):.4g}"
        assert note.endswith(
            f": {op}: {lost} of {len(values)} samples, all of 786 us or more, are not in the log (fio 3.6 to 3.16 damages their bins): "
            f"every percentile is a lower bound, and those above {share} are 786 us or more"
        )


def test_a5_without_a_json_the_garbage_tells(fio: Path, tmp_path: Path, taken: Any) -> None:
    path = tmp_path / "x_clat_hist.1.log"
    shutil.copy(fio / CASE / path.name, path)
    assert is_masked(path, Context())
    assert any(note.endswith("every percentile is a lower bound") for note in taken(path).account.notes)
    shutil.copy(fio / CASE / "x_clat.1.log", tmp_path)
    [raw] = Files([tmp_path], ReadOptions(recorded_unit_ns=1)).found.sources
    assert raw.format == "fio-raw"


def test_a5_a_group_says_once_what_its_logs_lost(fio: Path, tmp_path: Path, taken: Any) -> None:
    folder = fio / "fio-3.16" / "gr"
    for file in (*folder.glob("*_clat_hist*"), folder / "out.json"):
        shutil.copy(file, tmp_path)
    read = taken(tmp_path)
    raw = [per_io.samples(file) for file in sorted(folder.glob("x_clat.*.log"))]
    lost = {op: sum(value >= 786_432 for log in raw for _, value in log[op]) for op in ("read", "write")}
    assert lost["write"] == 0 < lost["read"]
    [note] = read.account.notes
    assert f": read: {lost['read']} of 3600 samples, all of 786 us or more" in note
    for op in ("read", "write"):
        assert sum(read.total(op).values()) == sum(value < 786_432 for log in raw for _, value in log[op])


@pytest.mark.parametrize(
    ("version", "masked"), [((3, 5), False), ((3, 6), True), ((3, 16), True), ((3, 17), False), (None, False)]
)
def test_a5_versions_that_damage(log: Any, version: tuple[int, ...] | None, masked: bool) -> None:
    path = log(logs.text([(1000, 0, {10: 3, 1000: 2})], 1856))
    assert is_masked(path, Context(version=version)) == masked


def test_a5_what_a_reset_wraps_is_no_damage(fio: Path) -> None:
    assert not is_masked(fio / "latency-target" / "a_clat_hist.1.log", Context())
